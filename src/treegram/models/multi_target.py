"""Several targets for each graph, some of which may be missing: a copy of the regressor for each target."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_consistent_length

from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs


class TakesSeveralTargets:
    """Mixin for regressors: if y has columns, ``fit`` fits a copy of the model for each, on the graphs that have a value.

    ``fit``, ``predict`` and ``score`` work on all columns; everything else is a question to one of ``estimators_``.
    """

    estimators_: list[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc] # of BaseEstimator, which comes after this class
        tags.target_tags.multi_output = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the R2 of the predictions; with several targets their mean, each on the graphs that have a value.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs,) or (n_graphs, n_targets)
            Their targets; with several, NaN where a graph has no value. A target with fewer than two values is left out.
        sample_weight : array-like of shape (n_graphs,), default=None
            Weights of the graphs.

        Returns
        -------
        float
            1 is best.
        """
        if not hasattr(self, "estimators_"):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc] # of RegressorMixin
        graphs, columns = _read_columns(X, y)
        if len(columns) != len(self.estimators_):
            raise ValueError(f"y must have {len(self.estimators_)} columns, as in fit; got {len(columns)}.")
        scores = [
            estimator.score(graphs[ids], values, _rows(sample_weight, ids))
            for estimator, (ids, values) in zip(self.estimators_, columns, strict=True)
            if len(ids) > 1
        ]
        if not scores:
            raise ValueError("y must have at least two values in some column, to be scored.")
        return float(np.mean(scores))

    def _fit_columns(self, X: Any, y: Any, **of_graphs: Any) -> Self:
        """Fit a copy for each column of y; ``of_graphs`` are further arguments of fit with an entry for each graph."""
        graphs, columns = _read_columns(X, y)
        check_consistent_length(graphs, *of_graphs.values())
        for j, (ids, _) in enumerate(columns):
            if len(ids) < 2:
                raise ValueError(f"y[:, {j}] must have a value for at least two graphs; got {len(ids)}. Leave it out.")
        estimators = [
            clone(self).fit(graphs[ids], values, **{name: _rows(array, ids) for name, array in of_graphs.items()})
            for ids, values in columns
        ]
        self._forget()  # type: ignore[attr-defined]
        self.estimators_ = estimators
        return self

    def _predict_columns(self, X: Any, **options: Any) -> Any:
        """Return the predictions of all columns, (n_graphs, n_targets), or a tuple of such arrays."""
        graphs = as_graphs(X)
        predicted = [estimator.predict(graphs, **options) for estimator in self.estimators_]
        if isinstance(predicted[0], tuple):  # means and standard deviations
            return tuple(np.column_stack(arrays) for arrays in zip(*predicted, strict=True))
        return np.column_stack(predicted)


def _rows(array: Any, ids: Ints) -> Any:
    return None if array is None else np.asarray(array)[ids]


def _read_columns(X: Any, y: Any) -> tuple[Graphs, list[tuple[Ints, Floats]]]:
    """Return the graphs and, for each target, the ids and the values of the graphs that have one."""
    graphs, targets = as_graphs(X), np.asarray(y, dtype=np.float64)
    if targets.ndim != 2 or not targets.shape[1] or len(targets) != len(graphs):
        raise ValueError(
            f"y must have a row for each of {len(graphs)} graphs and a column for each target; got shape {targets.shape}."
        )
    if np.isinf(targets).any():
        i, j = np.argwhere(np.isinf(targets))[0]
        raise ValueError(f"y must be finite, or NaN where a graph has no value; y[{i}, {j}] is {targets[i, j]}.")
    return graphs, [(ids, column[ids]) for column in targets.T for ids in [np.flatnonzero(~np.isnan(column))]]
