"""The family of kernels with explicit features: K(G, G') = <phi(G), phi(G')>, one sparse row per graph.

A kernel of this family is its phi, the method ``_features``. Rows and their names are public: see also
:class:`~treegram.FeatureMap`, which makes a pipeline step of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize as normalize_rows
from sklearn.utils.validation import check_is_fitted

from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.axes import GridAxes
from treegram.kernels.base import GraphKernel, inverse_roots
from treegram.kernels.grid import Grid
from treegram.pairsum.products import feature_products
from treegram.structure.features import Features

__all__ = ["ExplicitKernel", "HasFeatures"]


@dataclass(frozen=True)
class GraphRows:
    """Graphs as rows of features."""

    n_graphs: int
    groups: Sequence[Features]
    axes: GridAxes


class HasFeatures(GraphKernel):
    """Base of the kernels whose rows of features are public: what explanations need of them."""

    @property
    @abstractmethod
    def _fitted_counts(self) -> sp.csr_matrix:
        """The rows of the fitted graphs, not normalized."""

    @abstractmethod
    def features(self, X: Any) -> sp.csr_matrix:
        """The explicit features of graphs."""

    @abstractmethod
    def _name_reader(self) -> Callable[[int], str]:
        """What gives the name of a column of ``features``."""

    @abstractmethod
    def _raw_column_shares(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        """As ``_column_shares``, without normalization."""

    def _feature_weights(self, weights: Floats) -> Floats:
        """What each column of ``features`` is worth where the fitted graphs have weights: (n_features, n_outputs)."""
        if self._self_kernels is not None:
            weights = weights * inverse_roots(self._self_kernels.reshape(-1))[:, None]
        worth: Floats = self._fitted_counts.T @ weights
        return worth

    def _column_shares(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """What each node adds to the products of its graph's row of ``features`` with weights, (n_nodes, n_outputs)."""
        self._check_explained()
        described = self._describe(graphs, self._own_grid())
        spread = spread and self.explained_by == "trees"
        shares = self._raw_column_shares(graphs, described, weights, spread=spread)
        return self._normalize_shares(graphs, described, shares)

    def _raw_shares(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        return self._raw_column_shares(graphs, described, self._fitted_counts.T @ weights, spread=spread)


@parameters
class ExplicitKernel(HasFeatures):
    """A kernel that is the inner product of rows of features, and that does not look at vectors."""

    uses_attributes: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False  # whether a larger value of a one-pass parameter only adds features

    missing_labels: str = "degree"
    use_edge_labels: bool = False

    @abstractmethod
    def _features(self, graphs: Graphs, grid: Grid) -> Sequence[Features]:
        """phi: one row per graph, for each point of the grid of one-pass parameters.

        With ``adds_up`` the values are ascending, and the features are those that a point adds.
        """

    def _name_feature(self, fitted: Features, column: int) -> str:
        """What a column of the fitted graphs' features counts; its code, unless a kernel can read it."""
        return f"{fitted.codes[column]:016x}"

    def features(self, X: Any) -> sp.csr_matrix:
        """The explicit features of graphs: inner products of rows are the kernel.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not. What the fitted graphs do not have gets no column; normalized rows still take it into account,
            so that they are shorter than 1.

        Returns
        -------
        csr_matrix of shape (n_graphs, n_features)
            One row per graph; :meth:`feature_names` says what each column counts.
        """
        check_is_fitted(self)
        graphs = self._check_like_fitted(X)
        (found,) = self._describe(graphs, self._own_grid()).groups
        rows = found.counts
        if self.normalize and rows.nnz:  # scikit-learn refuses a matrix without rows or columns
            rows = normalize_rows(rows)
        return Features(rows, found.codes).aligned(self._fitted_features.codes)

    def feature_names(self) -> list[str]:
        """What the columns of :meth:`features` count, in words where the kernel can read its features.

        Returns
        -------
        list of str
            One name per column.
        """
        check_is_fitted(self)
        return [self._feature_name(column) for column in range(len(self._fitted_features.codes))]

    def _feature_name(self, column: int) -> str:
        return self._name_feature(self._fitted_features, column)

    def _name_reader(self) -> Callable[[int], str]:
        return self._feature_name

    def _raw_column_shares(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        shares: Floats = self._node_features(graphs).aligned(self._fitted_features.codes) @ weights
        return shares

    def _node_features(self, graphs: Graphs) -> Features:
        """The features of each node, for explanations: the rows of a graph's nodes add up to its own row."""
        raise NotImplementedError

    @property
    def _fitted_counts(self) -> sp.csr_matrix:
        return self._fitted_features.counts

    @property
    def _fitted_features(self) -> Any:
        (features,) = self._fitted.groups
        return features

    def _describe(self, graphs: Graphs, grid: Grid) -> GraphRows:
        axes = GridAxes.of_steps(grid) if self.adds_up else GridAxes.of_points(grid)
        return GraphRows(len(graphs), self._features(graphs, axes.steps), axes)

    def _pair_sums(self, left: GraphRows, right: GraphRows | None) -> Floats:
        columns = left if right is None else right
        sums = np.empty((len(left.groups), left.n_graphs, columns.n_graphs))
        for i, (mine, theirs) in enumerate(zip(left.groups, columns.groups, strict=True)):
            rows = mine.counts if right is None else mine.aligned(theirs.codes)
            feature_products(rows, None if right is None else theirs.counts, sums[i])
        return left.axes.points(sums, 2)

    def _self_sums(self, described: GraphRows) -> Floats:
        sums = np.empty((len(described.groups), described.n_graphs))
        for i, group in enumerate(described.groups):
            sums[i] = np.asarray(group.counts.multiply(group.counts).sum(axis=1)).ravel()
        return described.axes.points(sums, 1)
