"""Several targets for each graph, some of which may be missing: one regressor for each target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import ParameterError
from treegram._core.params import NOTHING, Allowed, Checked, Instance, parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.models.regressor import GraphRegressor

__all__ = ["MultiTargetRegressor"]


@parameters
class MultiTargetRegressor(RegressorMixin, Checked, BaseEstimator):
    """Regression of several targets: a copy of a regressor for each, fitted on the graphs that have a value.

        Like :class:`sklearn.multioutput.MultiOutputRegressor`, but it accepts missing values.

    Parameters
    ----------
    estimator : regressor or None, default=None
        A regressor of graphs, such as :class:`GraphRidge` or :class:`GraphGP`, or a pipeline that ends in one. None:
        ``GraphRegressor()``.

    Attributes
    ----------
    estimators_ : list of regressors
        The fitted copies, one for each target. Explain them one by one: ``explain(model.estimators_[0], X)``.

    See Also
    --------
    GraphRegressor : for one target.

    Examples
    --------
    >>> import numpy as np
    >>> from treegram import ODDCL, GraphGP, MultiTargetRegressor, load_digits_graphs
    >>> graphs, _ = load_digits_graphs()
    >>> y = np.array([graph.attributes.mean(axis=0) for graph in graphs[:104]])
    >>> y[:50, 0] = np.nan  # not measured
    >>> model = MultiTargetRegressor(GraphGP(ODDCL(), param_grid={})).fit(graphs[:100], y[:100])
    >>> mean, std = model.predict(graphs[100:], return_std=True)
    >>> mean.shape == std.shape == (len(graphs) - 100, 3)
    True
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"estimator": (Instance((BaseEstimator,), "a regressor"), NOTHING)}

    estimator: Any = field(default=None, kw_only=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a copy of the regressor for each target.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs, n_targets)
            A column for each target; NaN where a graph has no value. Each column must have at least two values.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        estimator = GraphRegressor() if self.estimator is None else self.estimator
        if not is_regressor(estimator):
            raise ParameterError(f"estimator of MultiTargetRegressor must be a regressor; got {estimator!r}.")
        graphs, columns = _check_fit(X, y)
        for j, (ids, _) in enumerate(columns):
            if len(ids) < 2:
                raise ValueError(f"y[:, {j}] must have a value for at least two graphs; got {len(ids)}. Leave it out.")
        self.estimators_ = [clone(estimator).fit(graphs[ids], values) for ids, values in columns]
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: FBT001, FBT002 (scikit-learn's signature)
        """Predict all targets of graphs, and their uncertainty.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.
        return_std : bool, default=False
            Whether to also return standard deviations, if the regressor has them: :class:`GraphGP` and
            :class:`GraphRegressor` do.

        Returns
        -------
        mean : ndarray of shape (n_graphs, n_targets)
            A number for each graph and target.
        std : ndarray of shape (n_graphs, n_targets)
            Only with ``return_std``: the standard deviations.
        """
        check_is_fitted(self)
        graphs = as_graphs(X)
        if not return_std:
            return np.column_stack([one.predict(graphs) for one in self.estimators_])
        means, stds = zip(*(one.predict(graphs, return_std=True) for one in self.estimators_), strict=True)
        return np.column_stack(means), np.column_stack(stds)

    def score(self, X: Any, y: Any) -> float:
        """Return the mean R2 of the targets, each on the graphs that have a value.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs, n_targets)
            Their targets; NaN where a graph has no value. A target with fewer than two values is left out.

        Returns
        -------
        float
            The mean over targets; 1 is best.
        """
        graphs, columns = _check_fit(X, y)
        predicted = self.predict(graphs)
        if len(columns) != predicted.shape[1]:
            raise ValueError(f"y must have {predicted.shape[1]} columns, as in fit; got {len(columns)}.")
        scores = [r2_score(values, predicted[ids, j]) for j, (ids, values) in enumerate(columns) if len(ids) > 1]
        if not scores:
            raise ValueError("y must have at least two values in some column, to be scored.")
        return float(np.mean(scores))


def _check_fit(X: Any, y: Any) -> tuple[Graphs, list[tuple[Any, Floats]]]:
    """Return the graphs and, for each target, the ids and the values of the graphs that have one."""
    graphs, targets = as_graphs(X), np.asarray(y, dtype=np.float64)
    if targets.ndim != 2 or not targets.shape[1] or len(targets) != len(graphs):
        raise ValueError(
            f"y must have a row for each of {len(graphs)} graphs and a column for each target; got shape {targets.shape}. For a "
            "single target use GraphRegressor, GraphRidge or GraphGP itself."
        )
    if np.isinf(targets).any():
        i, j = np.argwhere(np.isinf(targets))[0]
        raise ValueError(f"y must be finite, or NaN where a graph has no value; y[{i}, {j}] is {targets[i, j]}.")
    return graphs, [(ids, column[ids]) for column in targets.T for ids in [np.flatnonzero(~np.isnan(column))]]
