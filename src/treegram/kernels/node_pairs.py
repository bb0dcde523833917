"""The family of kernels that sum over pairs of nodes: K(G, G') = sum over v, v' of <phi(v), phi(v')> k_A(x_v, x_v').

A kernel of this family is defined by its phi, the method ``_features``. ``pairsum.nodes`` computes the sums.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.parallel import one_blas_thread
from treegram._core.params import parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import Grid
from treegram.pairsum.attributes import Gaussian, NodeKernel, is_one, node_kernel_blocks
from treegram.pairsum.entries import entry_sums
from treegram.pairsum.maps import Constant, VectorMap, distinct_rows, nystroem_map
from treegram.pairsum.nodes import Nodes, Weighting, pair_sums, self_sums
from treegram.structure.features import Features, common_codes
from treegram.structure.hashing import node_hashes

LONG_ROW = 32  # features per node from which folding those of a single node pays off
CONTRIBUTIONS_AT_ONCE = 1 << 23  # sums of single nodes with fitted graphs in memory: 64 MiB


@dataclass(frozen=True)
class WeightedFeatures(Features):
    """Features of several kinds; a kind has one weight for each value of a kernel's second one-pass parameter."""

    kinds: Ints  # of each column
    weights: Floats  # (n_kinds, n_weights)


@dataclass(frozen=True)
class NodeView:
    """Graphs as the sums over pairs of nodes see them."""

    nodes: Nodes  # without features
    node_kernel: NodeKernel
    groups: Sequence[Features]  # one row per node; features that are not weighted have the weight 1


@parameters
class NodePairKernel(GraphKernel):
    """A kernel that sums, over pairs of nodes, the product of their features times a kernel of their vectors."""

    _explained_by = "nodes"

    gamma: float | str | None = None
    node_kernel: str | NodeKernel = "rbf"
    missing_labels: str = "degree"

    @abstractmethod
    def _features(self, graphs: Graphs, grid: Grid) -> Sequence[Features]:
        """Compute phi: one row per node, one group for each value of the first one-pass parameter.

        Nodes with different labels share no feature. With ``_adds_up`` the values are ascending, and a group holds the features
        that its value adds. Weighted features have one weight for each value of the second one-pass parameter.
        """

    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        return view_nodes(self, graphs, self._features(graphs, grid))

    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        if right is None:
            return self._symmetric_sums(left)
        rows, columns, weighting = _alike(left, right)
        return by_point(pair_sums(rows, columns, right.node_kernel, weighting, n_jobs=self.n_jobs))

    def _symmetric_sums(self, view: NodeView) -> Floats:
        """Sum a view with itself; long rows without the features of single graphs, so that the diagonal is summed separately."""
        groups, is_long = view.groups, any(_is_long(group) for group in view.groups)
        if is_long:
            groups = [group.kept(group.is_shared(view.nodes.graph_ids)) for group in groups]
        features = [group.counts for group in groups]
        weighting = _weighting(view.groups, [group.codes for group in groups], features)
        K = by_point(pair_sums(_with_features(view, features), None, view.node_kernel, weighting, n_jobs=self.n_jobs))
        if is_long:
            np.einsum("...ii->...i", K)[...] = self._self_sums(view)
        return K

    def _self_sums(self, view: Any) -> Floats:
        features = [_folded(group, view.nodes.graph_ids) for group in view.groups]
        weighting = _weighting(view.groups, [group.codes for group in view.groups], features)
        nodes = _with_features(view, features)
        return by_point(self_sums(nodes, view.node_kernel, weighting, n_jobs=self.n_jobs))

    def _vector_map(self, graphs: Graphs, n_components: int, seed: int) -> VectorMap:
        """Make a map of vectors whose inner products approximate k_A on the nodes of the graphs."""
        if not graphs.n_attributes or not graphs.n_nodes:
            return Constant()
        all_vectors, node_kernel = vectors_and_kernel(self, graphs)
        vectors, numbers = distinct_rows(all_vectors)  # sorted: the map does not depend on the order of nodes
        weights = np.bincount(numbers).astype(np.float64)
        with one_blas_thread():
            return nystroem_map(vectors, weights, node_kernel, n_components, seed=seed)

    # ---------------------------------------------------------------- explanations

    def _raw_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:
        if spread:
            (features,) = view.groups
            return self._spread_over_nodes(graphs, features, entry_contributions(view, self._fitted, weights))
        (contributions,) = node_contributions(view, self._fitted, weights, self.n_jobs)
        return contributions

    def _spread_over_nodes(self, graphs: Graphs, features: Any, per_value: Floats) -> Floats:
        """Divide what each entry of the features adds, ``per_value`` times its value, among the nodes of its tree.

        For kernels with ``_explained_by = "trees"``. Entries are sorted by row and code; shape (n_nodes, n_outputs).
        """
        raise NotImplementedError


def view_nodes(kernel: Any, graphs: Graphs, groups: Sequence[Features]) -> NodeView:
    """Describe graphs as the kernel's parameters for labels and vectors specify."""
    vectors, node_kernel = vectors_and_kernel(kernel, graphs)
    nodes = Nodes(
        n_graphs=len(graphs),
        graph_ids=graphs.graph_ids,
        blocks=node_blocks(kernel, graphs),
        vectors=vectors,
        features=sp.csr_matrix((graphs.n_nodes, 0)),
    )
    return NodeView(nodes, node_kernel, groups)


def vectors_and_kernel(kernel: Any, graphs: Graphs) -> tuple[Floats, NodeKernel]:
    """Return the vectors of all nodes and k_A, which is 1 without attributes."""
    if not graphs.n_attributes:
        return np.zeros((graphs.n_nodes, 1)), Gaussian(0.0)
    gamma = kernel.gamma_ if isinstance(kernel.gamma, str) else kernel.gamma
    return np.asarray(graphs.attributes), node_kernel_blocks(kernel.node_kernel, gamma, graphs.n_attributes)


def node_blocks(kernel: Any, graphs: Graphs) -> Hashes:
    """Return the label of each node as a hash; the same for all nodes with ``use_labels=False``."""
    if getattr(kernel, "use_labels", True):
        return node_hashes(graphs, kernel.missing_labels)
    return np.zeros(graphs.n_nodes, np.uint64)


def _alike(left: NodeView, right: NodeView) -> tuple[Nodes, Nodes, Weighting]:
    """Return the nodes of both sides with the features that both have, and the weights of these."""
    common = [common_codes(new.codes, old.codes) for new, old in zip(left.groups, right.groups, strict=True)]
    mine, theirs = (
        [group.aligned(codes) for group, codes in zip(view.groups, common, strict=True)] for view in (left, right)
    )
    return _with_features(left, mine), _with_features(right, theirs), _weighting(right.groups, common, theirs)


def node_contributions(left: NodeView, right: NodeView, weights: Floats, n_jobs: int | None) -> Floats:
    """Compute what each node on the left adds to the sums of weights[i, j] K(G, G_i) over the graphs on the right.

    Each node is summed as its own graph. Shape (n_groups, n_nodes, n_outputs), for views of one point.
    """
    rows, columns, weighting = _alike(left, right)
    is_used = np.abs(weights).max(axis=1) > 0
    columns = columns.taken(np.flatnonzero(is_used[columns.graph_ids]))
    n_nodes = len(rows.graph_ids)
    contributions = np.empty((weighting.n_groups, n_nodes, weights.shape[1]))
    step = max(1, CONTRIBUTIONS_AT_ONCE // max(1, weighting.n_groups * columns.n_graphs))
    for first in range(0, n_nodes, step):
        batch = np.arange(first, min(first + step, n_nodes))
        alone = replace(rows.taken(batch), n_graphs=len(batch), graph_ids=np.arange(len(batch)))
        # Fitted graphs on the left: sums of large graphs on the left with single nodes on the right are up to four times faster.
        sums = pair_sums(columns, alone, right.node_kernel, weighting, n_jobs=n_jobs)
        contributions[:, batch] = np.einsum("gin,io->gno", sums[:, 0], weights)
    return contributions


def entry_contributions(left: NodeView, right: NodeView, weights: Floats) -> Floats:
    """Compute the same for each feature of each node, divided by its value, for views of one point with one group.

    Shape (n_entries, n_outputs). Entries are in the order of the features, which are sorted by row and code.
    """
    (mine,), (theirs,) = left.groups, right.groups
    is_used = np.abs(weights).max(axis=1, initial=0.0) > 0
    columns = replace(right.nodes, features=theirs.aligned(mine.codes))
    columns = columns.taken(np.flatnonzero(is_used[columns.graph_ids]))
    mine.counts.sort_indices()
    rows = replace(left.nodes, features=mine.counts)
    if is_one(right.node_kernel, rows.vectors, columns.vectors):
        totals = columns.features.T @ weights[columns.graph_ids]
        return totals[rows.features.indices]
    return entry_sums(rows, columns, right.node_kernel, weights[columns.graph_ids])


def _folded(group: Features, graph_ids: Ints) -> sp.csr_matrix:
    """Return the features for sums of each graph with itself.

    Folding rounds (a root is squared again), so short rows of whole numbers are left as they are.
    """
    return group.folded(graph_ids) if _is_long(group) and not isinstance(group, WeightedFeatures) else group.counts


def _is_long(group: Features) -> bool:
    return bool(group.counts.nnz > LONG_ROW * group.counts.shape[0])


def _with_features(view: NodeView, features: Sequence[sp.csr_matrix]) -> Nodes:
    """Return the nodes with the features of all groups side by side."""
    stacked = features[0] if len(features) == 1 else sp.hstack(features, format="csr")
    return replace(view.nodes, features=stacked)


def _weighting(groups: Sequence[Features], codes: Sequence[Hashes], features: Sequence[sp.csr_matrix]) -> Weighting:
    """Return the weights of the columns of the features, group after group; weighted ones have the given codes, others are 1."""
    kinds, owners, weights, n_kinds = [], [], [], 0
    for i, (group, group_codes, matrix) in enumerate(zip(groups, codes, features, strict=True)):
        if isinstance(group, WeightedFeatures):
            group_kinds, group_weights = group.kinds[np.searchsorted(group.codes, group_codes)], group.weights
        else:
            group_kinds, group_weights = np.zeros(matrix.shape[1], np.int64), np.ones((1, 1))
        kinds.append(n_kinds + group_kinds)
        owners.append(np.full(len(group_weights), i))
        weights.append(group_weights)
        n_kinds += len(group_weights)
    return Weighting(np.concatenate(kinds), np.concatenate(owners), np.concatenate(weights), len(groups))


def weighted_columns(features: Features) -> sp.csr_matrix:
    """Return features of one point of the grid with the roots of their weights, so that inner products of rows carry the weights."""
    if not isinstance(features, WeightedFeatures):
        return features.counts
    roots = np.sqrt(features.weights[features.kinds, 0])
    counts = features.counts.copy()
    counts.data *= roots[counts.indices]
    return counts


def by_point(sums: Floats) -> Floats:
    """Turn sums by group and weight (the first two axes) into sums by point of the grid."""
    return sums.reshape(sums.shape[0] * sums.shape[1], *sums.shape[2:])
