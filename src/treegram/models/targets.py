"""Scales of targets: skewed, bounded, heavy-tailed and tied numbers become nearly normal, and predictions come back.

A **blend** of normal scores and the plain numbers is a monotone map of the targets. A model fitted on the scale predicts a normal
distribution there; the map back turns its median into the prediction, and its quantiles into quantiles, exactly. The blend is
the one whose leave-one-out distributions fit the targets best: see `choose_scale`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

from treegram._core.types import Floats

__all__ = ["TargetScale", "choose_scale", "mean_pinball_loss", "target_scale"]

BLENDS = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)  # shares of the plain numbers
QUANTILES = np.linspace(0.05, 0.95, 19)  # whose losses are averaged
_N_KNOTS = 16
_N_HALVINGS = 60  # of an interval between two knots: the rest is rounding


@dataclass(frozen=True, eq=False)
class TargetScale:
    """A monotone map between targets and a scale of mean 0 and standard deviation 1: cubic between knots, straight beyond."""

    blend: float  # the share of the plain numbers; 1: the map is a straight line
    targets: Floats  # at the knots, ascending
    scaled: Floats  # at the knots, ascending
    slopes: Floats  # of the straight lines below the first and above the last knot, in targets per unit of the scale

    @cached_property
    def _curve(self) -> PchipInterpolator:
        return PchipInterpolator(self.scaled, self.targets)

    def inverse(self, scaled: Floats) -> Floats:
        """Return the targets at positions of the scale."""
        inside = np.clip(scaled, self.scaled[0], self.scaled[-1])
        beyond = scaled - inside
        targets: Floats = self._curve(inside) + np.where(beyond < 0, self.slopes[0], self.slopes[1]) * beyond
        return targets

    def slope(self, scaled: Floats) -> Floats:
        """Return targets per unit of the scale at positions of the scale."""
        inside = self._curve(np.clip(scaled, self.scaled[0], self.scaled[-1]), 1)
        slopes: Floats = np.where(
            scaled < self.scaled[0], self.slopes[0], np.where(scaled > self.scaled[-1], self.slopes[1], inside)
        )
        return slopes

    def transform(self, targets: Floats) -> Floats:
        """Return the positions of targets on the scale: the inverse of `inverse`."""
        last = len(self.targets) - 1
        interval = np.clip(np.searchsorted(self.targets, targets, side="right") - 1, 0, last - 1)
        low, high = self.scaled[interval], self.scaled[interval + 1]
        for _ in range(_N_HALVINGS):
            middle = (low + high) / 2
            is_above = self._curve(middle) > targets
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        below, above = targets - self.targets[0], targets - self.targets[-1]
        scaled: Floats = np.where(below <= 0, self.scaled[0] + below / self.slopes[0], (low + high) / 2)
        return np.where(above >= 0, self.scaled[-1] + above / self.slopes[1], scaled)


def target_scale(y: Floats, blend: float) -> TargetScale:
    """Return the scale of a blend, from 0 for normal scores to 1 for the plain numbers; it follows units of y."""
    values, counts = np.unique(y, return_counts=True)
    # The computed deviation of equal numbers may be tiny instead of 0.
    center, spread = float(y.mean()), float(y.std()) if len(values) > 1 else 1.0
    if blend == 1.0 or len(values) < 3:
        return TargetScale(1.0, center + spread * np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.full(2, spread))
    scores = ndtri((np.cumsum(counts) - counts / 2) / len(y))  # ties share the middle of their ranks
    positions = np.linspace(scores[0], scores[-1], _N_KNOTS)  # even in scores, not in ranks: fine in the tails
    knots = np.interp(positions, scores, values)
    scaled = (1.0 - blend) * positions + blend * (knots - center) / spread
    curve = PchipInterpolator(scaled, knots)
    deciles = np.interp(ndtri([0.1, 0.9]), positions, scaled)
    ends = scaled[[0, -1]]
    # A decile that is one with the end, because of ties, says nothing of the slope: use the next knot.
    deciles = np.where(np.isclose(deciles, ends), scaled[[1, -2]], deciles)
    slopes = (curve(ends) - curve(deciles)) / (ends - deciles)
    plain = TargetScale(blend, knots, scaled, slopes)
    positions = plain.transform(y)
    center, spread = float(positions.mean()), float(positions.std())
    return TargetScale(blend, knots, (scaled - center) / spread, slopes * spread)


def choose_scale(y: Floats, predict_left_out: Callable[[Floats], tuple[Floats, Floats]]) -> TargetScale:
    """Return the scale on which leave-one-out distributions fit the targets best, by mean pinball loss; ties go to normal scores.

    ``predict_left_out`` receives targets on a scale, and returns the mean and standard deviation of each target when it is left
    out.
    """
    scales = [target_scale(y, blend) for blend in BLENDS]
    losses = []
    for scale in scales:
        mean, std = predict_left_out(scale.transform(y))
        losses.append(mean_pinball_loss(scale, y, mean, std))
    return scales[int(np.argmin(np.round(losses, 12)))]


def mean_pinball_loss(scale: TargetScale, y: Floats, mean: Floats, std: Floats) -> float:
    """Return the mean loss of the quantiles of normal distributions on a scale, in units of the targets."""
    losses = 0.0
    for share in QUANTILES:
        error = y - scale.inverse(mean + std * ndtri(share))
        losses += float(np.maximum(share * error, (share - 1.0) * error).mean())
    return losses / len(QUANTILES)
