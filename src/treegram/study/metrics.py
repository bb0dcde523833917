"""Compute the scores of one outer fold from its row.

These are small, fast functions because a report needs tens of thousands of values; tests compare them with scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log10, sqrt

import numpy as np
from scipy.stats import rankdata

from treegram._core.types import Floats, Ints
from treegram.study.protocol import Protocol
from treegram.study.store import DatasetFacts, Row


@dataclass(frozen=True)
class Metric:
    """A score, and its format."""

    name: str
    measure: Callable[[Row], float | None]  # None if it is not defined or was not measured
    higher_is_better: bool = True
    in_percent: bool = True
    # The score of always predicting the largest class, or the mean target.
    baseline: Callable[[DatasetFacts], float] = lambda facts: 100 / len(facts.class_counts)

    def value(self, row: Row) -> float | None:
        """Return the score of a fold as tables show it: in percent if it is a fraction."""
        measured = self.measure(row)
        return 100 * measured if measured is not None and self.in_percent else measured

    def points_of(self, facts: DatasetFacts | None) -> float:
        """Return the factor from scores to points, positive if higher is better.

        A point is a percentage point; for errors, a hundredth of the targets' standard deviation, so that data sets
        with different units can be compared; for R², a hundredth.
        """
        if self.in_percent or facts is None:
            return 1.0
        return 100.0 if self.higher_is_better else -100.0 / facts.targets["deviation"]

    @property
    def title(self) -> str:
        """The name with its unit, for the head of a table."""
        return f"{self.name}, %" if self.in_percent else self.name

    def decimals_of(self, value: float | None, of_percent: int = 2) -> int:
        """Return the number of decimals of a value: ``of_percent`` for percentages, else enough for four digits."""
        if self.in_percent:
            return of_percent
        return max(0, 3 - floor(log10(abs(value)))) if value else 2


def main_metric(protocol: Protocol) -> Metric:
    """Return the score that is tested: the protocol's, by default accuracy or the mean absolute error."""
    metrics = METRICS[protocol.task]
    return next((metric for metric in metrics if metric.name == protocol.metric), metrics[0])


def other_metrics(protocol: Protocol) -> tuple[Metric, ...]:
    """Return the other scores."""
    main = main_metric(protocol)
    return tuple(metric for metric in METRICS[protocol.task] if metric is not main)


# -------------------------------------------------------------------- classification


def _confusion(row: Row) -> Ints:
    """Count the graphs by actual class (row) and predicted class (column), without classes that are never either."""
    classes, codes = np.unique([*row.actual, *row.predicted], return_inverse=True)
    actual, predicted = np.split(codes, 2)
    n = len(classes)
    return np.bincount(n * actual + predicted, minlength=n * n).reshape(n, n)


def _balanced_accuracy(row: Row) -> float:
    counts = _confusion(row)
    actual = counts.sum(axis=1)
    return float((counts.diagonal()[actual > 0] / actual[actual > 0]).mean())


def _macro_f1(row: Row) -> float:
    counts = _confusion(row)
    return float((2 * counts.diagonal() / (counts.sum(axis=0) + counts.sum(axis=1))).mean())


def roc_auc(actual: Ints, decisions: Floats) -> float | None:
    """Average over classes the area under the ROC curve of the class against the rest, where it is defined."""
    decisions = decisions.reshape(len(actual), -1)
    if decisions.shape[1] == 1:
        return _area(decisions[:, 0], actual == 1)
    areas = [_area(column, actual == code) for code, column in enumerate(decisions.T)]
    defined = [area for area in areas if area is not None]
    return float(np.mean(defined)) if defined else None


def _area(decisions: Floats, is_in: np.ndarray) -> float | None:
    """Return the probability that a graph of the class has a higher decision value than another graph; ties count half."""
    n_in, n_out = int(is_in.sum()), int((~is_in).sum())
    if not n_in or not n_out:
        return None
    return float((rankdata(decisions)[is_in].sum() - n_in * (n_in + 1) / 2) / (n_in * n_out))


# -------------------------------------------------------------------- regression


def _squared_error(row: Row) -> float:
    return float(np.mean(np.subtract(row.actual, row.predicted) ** 2))


def _r2(row: Row) -> float | None:
    variance = float(np.var(row.actual))
    return 1.0 - _squared_error(row) / variance if variance > 0 else None


def _f1_of_largest(facts: DatasetFacts) -> float:
    share = max(facts.class_counts.values()) / facts.n_graphs
    return 100 * 2 * share / (1 + share) / len(facts.class_counts)


# By task, with the default first.
METRICS = {
    "classification": (
        Metric(
            "accuracy",
            lambda row: row.score,
            baseline=lambda facts: 100 * max(facts.class_counts.values()) / facts.n_graphs,
        ),
        Metric("balanced accuracy", _balanced_accuracy),
        Metric("macro F1", _macro_f1, baseline=_f1_of_largest),
        Metric("ROC AUC", lambda row: row.roc_auc, baseline=lambda _: 50.0),
    ),
    "regression": (
        Metric(
            "mean absolute error",
            lambda row: row.score,
            higher_is_better=False,
            in_percent=False,
            baseline=lambda facts: facts.targets["mean_error"],
        ),
        Metric(
            "RMSE",
            lambda row: sqrt(_squared_error(row)),
            higher_is_better=False,
            in_percent=False,
            baseline=lambda facts: facts.targets["deviation"],
        ),
        Metric("R²", _r2, in_percent=False, baseline=lambda _: 0.0),
    ),
}
