"""Graphs as sums over pairs of nodes see them, and these sums, for one or many points of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.params import FUNCTION, NOTHING, Allowed, Number, Words
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.axes import GridAxes
from treegram.pairsum.attributes import NODE_KERNEL_NAMES, Gaussian, NodeKernel, node_kernel_blocks, scaled_gamma
from treegram.pairsum.entries import entry_sums
from treegram.pairsum.nodes import Nodes, Weighting, pair_sums, self_sums
from treegram.structure.features import Features, common_codes
from treegram.structure.labels import node_hashes

__all__ = [
    "NODE_KERNEL",
    "NodeView",
    "WeightedFeatures",
    "learn_gamma",
    "node_blocks",
    "node_entry_shares",
    "node_pair_sums",
    "node_self_sums",
    "node_shares",
    "vectors_and_kernel",
    "view_nodes",
]

LONG_ROW = 32  # features per node, from which on it pays to fold those that no other node has
SHARES_AT_ONCE = 1 << 23  # of single nodes with fitted graphs: 64 MiB, however many nodes there are
NODE_KERNEL: Mapping[str, Allowed] = {
    "gamma": (Number(0), Words("scale"), NOTHING),
    "node_kernel": (Words(*NODE_KERNEL_NAMES), FUNCTION),
}


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
    axes: GridAxes


def view_nodes(kernel: Any, graphs: Graphs, groups: Sequence[Features], axes: GridAxes) -> NodeView:
    """The view of a kernel, whose parameters say what labels and vectors mean."""
    vectors, node_kernel = vectors_and_kernel(kernel, graphs)
    nodes = Nodes(
        n_graphs=len(graphs),
        graph_ids=graphs.graph_ids,
        blocks=node_blocks(kernel, graphs),
        vectors=vectors,
        features=sp.csr_matrix((graphs.n_nodes, 0)),
    )
    return NodeView(nodes, node_kernel, groups, axes)


def vectors_and_kernel(kernel: Any, graphs: Graphs) -> tuple[Floats, NodeKernel]:
    """The vectors of all nodes and k_A; without attributes k_A is 1."""
    if not graphs.n_attributes:
        return np.zeros((graphs.n_nodes, 1)), Gaussian(0.0)
    gamma = kernel.gamma_ if kernel.gamma == "scale" else kernel.gamma
    return np.asarray(graphs.attributes), node_kernel_blocks(kernel.node_kernel, gamma, graphs.n_attributes)


def learn_gamma(kernel: Any, graphs: Graphs) -> None:
    """Give the kernel its ``gamma_`` where its gamma follows from the vectors of the fitted nodes."""
    if getattr(kernel, "gamma", None) == "scale":
        kernel.gamma_ = scaled_gamma(np.zeros((0, 0)) if graphs.attributes is None else graphs.attributes)


def node_blocks(kernel: Any, graphs: Graphs) -> Hashes:
    """The label of each node as a hash; the same for all nodes where the kernel is told not to use labels."""
    if getattr(kernel, "use_labels", True):
        return node_hashes(graphs, kernel.missing_labels)
    return np.zeros(graphs.n_nodes, np.uint64)


def node_pair_sums(left: NodeView, right: NodeView | None, n_jobs: int | None) -> Floats:
    """The kernel of each pair of graphs for each point of the grid; ``right=None``: left with itself."""
    if right is None:
        return _symmetric_sums(left, n_jobs)
    rows, columns, weighting = _alike(left, right)
    sums = pair_sums(rows, columns, right.node_kernel, weighting, n_jobs=n_jobs)
    return right.axes.points(sums, 2)


def _alike(left: NodeView, right: NodeView) -> tuple[Nodes, Nodes, Weighting]:
    """The nodes of both sides with the features that both have, and their weights."""
    common = [common_codes(new.codes, old.codes) for new, old in zip(left.groups, right.groups, strict=True)]
    rows, columns = (
        _with_features(view, [group.aligned(codes) for group, codes in zip(view.groups, common, strict=True)])
        for view in (left, right)
    )
    return rows, columns, _weighting(right.groups, common)


def node_shares(left: NodeView, right: NodeView, weights: Floats, n_jobs: int | None) -> Floats:
    """What each node of the left adds to the sums of weights[i, j] K(G, G_i) over the graphs of the right.

    Each node is summed as a graph of its own. Shape (n_groups, n_nodes, n_outputs), for views of one point.
    """
    rows, columns, weighting = _alike(left, right)
    is_used = np.abs(weights).max(axis=1) > 0
    columns = columns.taken(np.flatnonzero(is_used[columns.graph_ids]))
    if _is_plain(left, right):
        return _plain_shares(rows, columns, weighting, weights)
    n_nodes = len(rows.graph_ids)
    shares = np.empty((weighting.n_groups, n_nodes, weights.shape[1]))
    step = max(1, SHARES_AT_ONCE // max(1, weighting.n_groups * columns.n_graphs))
    for first in range(0, n_nodes, step):
        some = np.arange(first, min(first + step, n_nodes))
        alone = replace(rows.taken(some), n_graphs=len(some), graph_ids=np.arange(len(some)))
        # The fitted graphs stand first: sums over large graphs on the left and single nodes on the right are up to four times faster.
        sums = pair_sums(columns, alone, right.node_kernel, weighting, n_jobs=n_jobs)
        shares[:, some] = np.einsum("gin,io->gno", sums[:, 0], weights)
    return shares


def _is_plain(left: NodeView, right: NodeView) -> bool:
    """Whether k_A is 1 for all pairs of nodes."""
    is_zero = not left.nodes.vectors.any() and not right.nodes.vectors.any()
    return is_zero and isinstance(right.node_kernel, Gaussian)


def node_entry_shares(left: NodeView, right: NodeView, weights: Floats) -> Floats:
    """The same for each feature of each node, (n_entries, n_outputs), for views of one point with one group.

    Entries are in the order of the features, by row and code.
    """
    (mine,), (theirs,) = left.groups, right.groups
    is_used = np.abs(weights).max(axis=1, initial=0.0) > 0
    columns = replace(right.nodes, features=theirs.aligned(mine.codes))
    columns = columns.taken(np.flatnonzero(is_used[columns.graph_ids]))
    mine.counts.sort_indices()
    rows = replace(left.nodes, features=mine.counts)
    if _is_plain(left, right):
        totals = columns.features.T @ weights[columns.graph_ids]
        shares: Floats = rows.features.data[:, None] * totals[rows.features.indices]
        return shares
    return entry_sums(rows, columns, right.node_kernel, weights[columns.graph_ids])


def _plain_shares(rows: Nodes, columns: Nodes, weighting: Weighting, weights: Floats) -> Floats:
    """The same where k_A is 1: sums of products of features alone."""
    totals = columns.features.T @ weights[columns.graph_ids] * weighting.weights[weighting.kinds]
    shares = np.empty((weighting.n_groups, len(rows.graph_ids), weights.shape[1]))
    for group in range(weighting.n_groups):
        own = np.flatnonzero(weighting.groups[weighting.kinds] == group)
        shares[group] = rows.features[:, own] @ totals[own]
    return shares


def _symmetric_sums(view: NodeView, n_jobs: int | None) -> Floats:
    """Where rows are long, features that one graph alone has are left out of the matrix, and its diagonal is summed apart."""
    graph_ids = view.nodes.graph_ids
    if not any(_is_long(group) for group in view.groups):
        nodes = _with_features(view, [group.counts for group in view.groups])
        weighting = _weighting(view.groups, [group.codes for group in view.groups])
        return view.axes.points(pair_sums(nodes, None, view.node_kernel, weighting, n_jobs=n_jobs), 2)
    kept = [group.kept(group.is_shared(graph_ids)) for group in view.groups]
    nodes = _with_features(view, [group.counts for group in kept])
    weighting = _weighting(view.groups, [group.codes for group in kept])
    K = view.axes.points(pair_sums(nodes, None, view.node_kernel, weighting, n_jobs=n_jobs), 2)
    np.einsum("...ii->...i", K)[...] = node_self_sums(view, n_jobs)
    return K


def node_self_sums(view: NodeView, n_jobs: int | None) -> Floats:
    """The kernel of each graph with itself for each point of the grid."""
    features = [_folded(group, view.nodes.graph_ids) for group in view.groups]
    if any(isinstance(group, WeightedFeatures) for group in view.groups):
        weighting = _weighting(view.groups, [group.codes for group in view.groups])
    else:
        weighting = _plain_weighting([matrix.shape[1] for matrix in features])
    return view.axes.points(self_sums(_with_features(view, features), view.node_kernel, weighting, n_jobs=n_jobs), 1)


def _folded(group: Features, graph_ids: Ints) -> sp.csr_matrix:
    """The features for sums of each graph with itself.

    Folding rounds (a root is squared again), so short rows of whole numbers are left as they are.
    """
    return group.folded(graph_ids) if _is_long(group) and not isinstance(group, WeightedFeatures) else group.counts


def _is_long(group: Features) -> bool:
    return bool(group.counts.nnz > LONG_ROW * group.counts.shape[0])


def _with_features(view: NodeView, features: Sequence[sp.csr_matrix]) -> Nodes:
    """The nodes with the features of all groups side by side."""
    stacked = features[0] if len(features) == 1 else sp.hstack(features, format="csr")
    return replace(view.nodes, features=stacked)


def _weighting(groups: Sequence[Features], codes: Sequence[Hashes]) -> Weighting:
    """The weights of the columns with the given codes, group after group."""
    if not any(isinstance(group, WeightedFeatures) for group in groups):
        return _plain_weighting([len(some) for some in codes])
    kinds, owners, weights, n_kinds = [], [], [], 0
    for i, (group, some) in enumerate(zip(groups, codes, strict=True)):
        assert isinstance(group, WeightedFeatures)
        kinds.append(n_kinds + group.kinds[np.searchsorted(group.codes, some)])
        owners.append(np.full(len(group.weights), i))
        weights.append(group.weights)
        n_kinds += len(group.weights)
    return Weighting(np.concatenate(kinds), np.concatenate(owners), np.concatenate(weights), len(groups))


def _plain_weighting(n_columns: Sequence[int]) -> Weighting:
    """All columns with the weight 1, each group's for an output of its own."""
    n_groups = len(n_columns)
    return Weighting(np.repeat(np.arange(n_groups), n_columns), np.arange(n_groups), np.ones((n_groups, 1)), n_groups)
