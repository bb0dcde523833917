"""Prediction intervals and sets that contain the truth with a stated probability.

The errors of a model on graphs that it has not seen show how far new targets may be from its predictions. Models that have
leave-one-out predictions in closed form use those of the fitted graphs: no graph is set aside, and coverage is close to
the requested one. With **calibration** graphs, which were not fitted, coverage holds by construction (split conformal
prediction): if they and new graphs come from the same source, in any order, the truth is inside with at least the
stated probability, on average over both, whatever the model and however it was chosen (Vovk, Gammerman and Shafer
2005).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from treegram._core.params import NOTHING, Allowed, Words
from treegram._core.types import Array, Floats, Masks
from treegram.exceptions import ParameterError
from treegram.models.base import check_fit, check_numbers
from treegram.models.targets import TargetScale


class _Calibrated:
    """Base of both mixins: the sorted errors on left-out graphs or on calibration graphs."""

    calibration_: Floats

    def calibrate(self, X: Any, y: Any) -> Self:
        """Measure the errors on graphs that the model has not seen, for intervals or sets with a guarantee.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs that were not fitted, from the same source as those to predict. For a coverage of 0.9 there must be
            at least 9 of them; with 100 or more, coverage is close to the requested one.
        y : array-like of shape (n_graphs,)
            Their targets.

        Returns
        -------
        self
            The fitted model, with these errors in ``calibration_``; ``fit`` discards them.
        """
        self._check_one_target()  # type: ignore[attr-defined]
        graphs, targets = check_fit(X, y, self._read_new)  # type: ignore[attr-defined]
        self.calibration_ = np.sort(self._errors(graphs, targets))
        return self

    def _errors(self, X: Any, targets: Array) -> Floats:
        raise NotImplementedError

    def _largest_error(self, coverage: Any) -> float:
        """Return the error that new graphs exceed with probability at most 1 - coverage; infinity for too few graphs."""
        self._check_one_target()  # type: ignore[attr-defined]
        if not hasattr(self, "calibration_"):
            raise ValueError(
                f"{type(self).__name__} is not calibrated: call calibrate(X, y) first, with graphs that were not fitted."
            )
        if not isinstance(coverage, float | np.floating) or not 0 < coverage < 1:
            raise ParameterError(f"coverage must be a number between 0 and 1; got {coverage!r}.")
        rank = int(np.ceil((len(self.calibration_) + 1) * coverage - 1e-9))
        return float(self.calibration_[rank - 1]) if rank <= len(self.calibration_) else np.inf


class PredictsIntervals(_Calibrated):
    """Mixin for regressors, which predict on the scale of their targets, and convert the answers."""

    _allowed: ClassVar[Mapping[str, Allowed]] = {"target_transform": (Words("auto"), NOTHING)}

    target_transform: str | None
    target_scale_: TargetScale | None  # None: the plain numbers

    def _to_scale(self, targets: Floats) -> Floats:
        return targets if self.target_scale_ is None else self.target_scale_.transform(targets)

    def _from_scale(self, scaled: Floats) -> Floats:
        return scaled if self.target_scale_ is None else self.target_scale_.inverse(scaled)

    def _use_scale(self, scale: TargetScale | None) -> None:
        """Remember the scale of the targets; the plain numbers need none."""
        self.target_scale_ = None if scale is None or scale.blend == 1.0 else scale

    def _describe_targets(self) -> str:
        """Return the scale of the targets in words; an empty text if it was not chosen."""
        if self.target_transform is None or not hasattr(self, "target_scale_"):
            return ""
        return f"targets: {self.target_scale_ or 'plain values'}"

    def prediction_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return intervals that contain the targets of new graphs with the given probability.

        They are as long as the errors in ``calibration_`` require: for ``GraphRegressor`` and ``GraphGP``, the
        leave-one-out errors of the fitted graphs; for other models, the errors on the graphs passed to ``calibrate``,
        which must be called first. After ``calibrate``, the probability is guaranteed by construction (split conformal
        prediction). Either way, new graphs must come from the same source, and the probability is an average over
        graphs, not a promise for each.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs that the model has not seen.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        ndarray of shape (n_graphs, 2)
            Lower and upper ends; infinite if there are fewer than coverage / (1 - coverage) errors. For Gaussian
            processes, lengths are proportional to the standard deviations, on the scale of the targets; an interval is
            not symmetric unless this scale is that of the plain numbers.
        """
        largest = self._largest_error(coverage)
        mean, unit = self._mean_and_unit(X)
        return self._from_scale(np.column_stack([mean - largest * unit, mean + largest * unit]))

    def _errors(self, X: Any, targets: Array) -> Floats:
        mean, unit = self._mean_and_unit(X)
        return np.abs(self._to_scale(check_numbers(targets)) - mean) / unit

    def _mean_and_unit(self, X: Any) -> tuple[Floats, Floats]:
        """Return predictions on the scale of the targets, and the unit of their errors, which is above 0."""
        raise NotImplementedError


class PredictsSets(_Calibrated):
    """Mixin for classifiers."""

    classes_: Array
    intercept_: Floats

    def prediction_set(self, X: Any, coverage: float = 0.9) -> Masks:
        """Return sets of classes that contain the classes of new graphs with at least the given probability.

        They are as large as the errors in ``calibration_`` require: for ``GraphClassifier``, the leave-one-out errors
        of the fitted graphs; for other models, the errors on the graphs passed to ``calibrate``, which must be called
        first. After ``calibrate``, the probability is guaranteed by construction (split conformal prediction). Either
        way, new graphs must come from the same source, and the probability is an average over graphs, not a promise for
        each graph or class.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs that the model has not seen.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        ndarray of bool of shape (n_graphs, n_classes)
            True for the classes in the set; columns as in ``classes_``. A graph that the model is unsure about has
            several classes; one that is unlike all classes may have none. With fewer than coverage / (1 - coverage)
            errors, all are True.
        """
        largest = self._largest_error(coverage)
        return -self._class_scores(X) <= largest

    def _errors(self, X: Any, targets: Array) -> Floats:
        codes = np.searchsorted(self.classes_, targets).clip(max=len(self.classes_) - 1)
        unknown = np.flatnonzero(self.classes_[codes] != targets)
        if len(unknown):
            raise ValueError(f"y[{unknown[0]}] is {targets[unknown[0]]!s}, which is not one of the fitted classes.")
        return -self._class_scores(X)[np.arange(len(codes)), codes]

    def _class_scores(self, X: Any) -> Floats:
        """Return a score for each graph and class, higher for likelier classes, (n_graphs, n_classes)."""
        raise NotImplementedError
