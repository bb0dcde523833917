"""The family of kernels with explicit features: K(G, G') = <phi(G), phi(G')>, one sparse row per graph.

A kernel of this family is defined by its phi, the method ``_features``. :class:`~treegram.FeatureMap` makes rows and names of
columns public.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize as normalize_rows

from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import Grid
from treegram.pairsum.products import feature_products
from treegram.structure.features import Features


@dataclass(frozen=True)
class GraphRows:
    """Graphs as rows of features."""

    n_graphs: int
    groups: Sequence[Features]  # for each point of the grid


class HasFeatures(GraphKernel):
    """Base of the kernels whose rows of features :class:`~treegram.FeatureMap` and explanations read."""

    @property
    @abstractmethod
    def _fitted_counts(self) -> sp.csr_matrix:
        """The rows of the fitted graphs, not normalized."""

    @abstractmethod
    def _feature_rows(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of graphs; features that the fitted graphs do not have get no column.

        Normalized rows still take these into account, so that they are shorter than 1.
        """

    @abstractmethod
    def _name_reader(self) -> Callable[[int], str]:
        """Return a function that gives the name of a column."""

    @abstractmethod
    def _raw_column_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:
        """Return what each node adds to the products of its graph's row with weights, not normalized: (n_nodes, n_outputs)."""

    def _raw_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:
        return self._raw_column_contributions(graphs, view, self._fitted_counts.T @ weights, spread=spread)


@parameters
class ExplicitKernel(HasFeatures):
    """A kernel that is the inner product of rows of features, and that does not use vectors."""

    uses_attributes: ClassVar[bool] = False

    @abstractmethod
    def _features(self, graphs: Graphs, grid: Grid) -> Sequence[Features]:
        """Compute phi: one row per graph, for each point of the grid of one-pass parameters.

        With ``_adds_up`` the values are ascending, and the features are those that a point adds.
        """

    def _node_features(self, graphs: Graphs) -> Features:
        """Compute the features of each node, for explanations: the rows of a graph's nodes add up to its own row."""
        raise NotImplementedError

    @property
    def _fitted_features(self) -> Any:
        (features,) = self._fitted.groups
        return features

    @property
    def _fitted_counts(self) -> sp.csr_matrix:
        return self._fitted_features.counts

    def _feature_rows(self, graphs: Graphs) -> sp.csr_matrix:
        (features,) = self._view_graphs(graphs).groups
        rows = features.counts
        if self.normalize and rows.nnz:  # scikit-learn refuses a matrix without rows or columns
            rows = normalize_rows(rows)
        return Features(rows, features.codes).aligned(self._fitted_features.codes)

    def _name_reader(self) -> Callable[[int], str]:
        return lambda column: self._name_feature(self.graphs_, self._fitted_features, column)

    def _raw_column_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        return self._node_features(graphs).aligned(self._fitted_features.codes) @ weights

    def _describe(self, graphs: Graphs, grid: Grid) -> GraphRows:
        return GraphRows(len(graphs), self._features(graphs, grid))

    def _pair_sums(self, left: GraphRows, right: GraphRows | None) -> Floats:
        columns = left if right is None else right
        sums = np.empty((len(left.groups), left.n_graphs, columns.n_graphs))
        for i, (mine, theirs) in enumerate(zip(left.groups, columns.groups, strict=True)):
            rows = mine.counts if right is None else mine.aligned(theirs.codes)
            feature_products(rows, None if right is None else theirs.counts, sums[i])
        return sums

    def _self_sums(self, view: GraphRows) -> Floats:
        sums = np.empty((len(view.groups), view.n_graphs))
        for i, group in enumerate(view.groups):
            sums[i] = np.asarray(group.counts.multiply(group.counts).sum(axis=1)).ravel()
        return sums
