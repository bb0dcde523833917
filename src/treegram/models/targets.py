"""Scales of targets: skewed, bounded, heavy-tailed and tied numbers become nearly normal, and predictions come back.

A **blend** of normal scores and the plain numbers is a monotone map of the targets. A model fitted on the scale predicts a normal
distribution there; the map back turns its median into the prediction, and its quantiles into quantiles, exactly. The blend is
the one whose leave-one-out distributions fit the targets best: see `choose_scale`. Models with ``target_transform="auto"``
keep it in ``target_scale_``, which is None if the plain numbers are best, or if there are fewer than three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

from treegram._core.types import Floats

BLENDS = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)  # shares of the plain numbers
QUANTILES = np.linspace(0.05, 0.95, 19)  # whose losses are averaged
_N_KNOTS = 16
_DIGITS = 12  # of targets, relative to their range: the rest is rounding
_LEAST_RANGE = 1e-150  # of targets: squares of smaller numbers are 0
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

    def __getstate__(self) -> dict[str, object]:
        # Without the curve: it has slots, which skops cannot save.
        return {name: value for name, value in vars(self).items() if name != "_curve"}

    def __str__(self) -> str:
        if self.blend == 1.0:
            return "plain values"
        return f"normal scores blended with {self.blend:g} of the plain values" if self.blend else "normal scores"

    def inverse(self, scaled: Floats) -> Floats:
        """Return the targets at positions of the scale."""
        inside = np.clip(scaled, self.scaled[0], self.scaled[-1])
        beyond = scaled - inside
        return self._curve(inside) + np.where(beyond < 0, self.slopes[0], self.slopes[1]) * beyond

    def slope(self, scaled: Floats) -> Floats:
        """Return targets per unit of the scale at positions of the scale."""
        inside = self._curve(np.clip(scaled, self.scaled[0], self.scaled[-1]), 1)
        below, above = scaled < self.scaled[0], scaled > self.scaled[-1]
        return np.select([below, above], list(self.slopes), inside)

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
    lowest, span = float(y.min()), float(np.ptp(y))
    units = np.round((y - lowest) / (span or 1.0), _DIGITS)
    values, counts = np.unique(units, return_counts=True)
    if blend == 1.0 or len(values) < 3 or span < max(_LEAST_RANGE, 10.0**-_DIGITS * float(np.abs(y).max())):
        # The computed deviation of equal numbers may be tiny instead of 0.
        center, spread = float(y.mean()), float(y.std()) if len(values) > 1 else 1.0
        return TargetScale(1.0, center + spread * np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.full(2, spread))
    scores = ndtri((np.cumsum(counts) - counts / 2) / len(y))  # ties share the middle of their ranks
    positions = np.linspace(scores[0], scores[-1], _N_KNOTS)  # even in scores, not in ranks: fine in the tails
    knots = np.interp(positions, scores, values)
    scaled = (1.0 - blend) * positions + blend * (knots - units.mean()) / units.std()
    curve = PchipInterpolator(scaled, knots)
    deciles = np.interp(ndtri([0.1, 0.9]), positions, scaled)
    ends = scaled[[0, -1]]
    # A decile that is one with the end, because of ties, says nothing of the slope: use the next knot.
    deciles = np.where(np.isclose(deciles, ends), scaled[[1, -2]], deciles)
    slopes = (curve(ends) - curve(deciles)) / (ends - deciles)
    of_units = TargetScale(blend, knots, scaled, slopes).transform(units)
    center, spread = float(of_units.mean()), float(of_units.std())
    return TargetScale(blend, lowest + span * knots, (scaled - center) / spread, span * slopes * spread)


def blended_scales(y: Floats, weights: Floats | None = None) -> list[tuple[TargetScale, Floats]]:
    """Return the scale of each blend with the positions of y on it; targets of weight 0 have a position, but no influence."""
    influential = y if weights is None else y[weights > 0]
    scales = [target_scale(influential, blend) for blend in BLENDS]
    return [(scale, scale.transform(y)) for scale in scales]


def choose_scale(
    y: Floats,
    scales: Sequence[TargetScale],
    left_out: Sequence[tuple[Floats, Floats]],
    weights: Floats | None = None,
) -> int:
    """Return the scale on which leave-one-out distributions fit the targets best, by mean pinball loss; ties go to the first.

    ``left_out`` has, for each scale, the mean and the standard deviation of each target when it is left out.
    """
    losses = [mean_pinball_loss(scale, y, *pair, weights) for scale, pair in zip(scales, left_out, strict=True)]
    return int(np.argmin(np.round(np.array(losses) / (max(losses) or 1.0), _DIGITS)))


def mean_pinball_loss(
    scale: TargetScale, y: Floats, mean: Floats, std: Floats | float, weights: Floats | None = None
) -> float:
    """Return the mean loss of the quantiles of normal distributions on a scale, in units of the targets."""
    errors = y - scale.inverse(mean + std * ndtri(QUANTILES)[:, None])  # (n_quantiles, n_graphs)
    losses = np.maximum(QUANTILES[:, None] * errors, (QUANTILES[:, None] - 1.0) * errors).mean(axis=0)
    return float(np.average(losses, weights=weights))
