"""Sums over pairs of nodes with inner products of explicit vectors in place of the node kernel.

A graph is then one vector for each feature of its nodes: Z_t(G) = sum over v of phi(v)_t z(x_v).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from treegram._core.types import Floats, Hashes, Ints
from treegram.kernels.node_pairs import NodeView, WeightedFeatures, by_point
from treegram.pairsum.maps import VectorMap, distinct_rows, evaluate
from treegram.pairsum.vectors import Entries, add_products, component_ranges, make_entries, self_products
from treegram.structure.features import Features

__all__ = ["MappedView", "map_nodes", "mapped_pair_sums", "mapped_self_sums"]


@dataclass(frozen=True)
class MappedView:
    """Graphs as the sums of explicit vectors see them, for any map."""

    view: NodeView
    vectors: Floats  # the distinct attribute vectors
    rows: Ints  # of each node: its vector
    entries: list[Entries]  # for each group of features, which vectors make up the sums of each feature and graph

    def aligned(self, *codes: Hashes) -> list[Entries]:
        """Return the entries of the features with the given sorted codes, for each group, without other features."""
        matrices = (group.aligned(wanted) for group, wanted in zip(self.view.groups, codes, strict=True))
        return [_entries(self.view, matrix, self.rows) for matrix in matrices]


def map_nodes(view: NodeView) -> MappedView:
    """Find the distinct vectors, and those that make up the sums."""
    vectors, rows = distinct_rows(view.nodes.vectors)
    return MappedView(view, vectors, rows, [_entries(view, group.counts, rows) for group in view.groups])


def _entries(view: NodeView, counts: sp.csr_matrix, rows: Ints) -> Entries:
    return make_entries(counts, view.nodes.graph_ids, view.nodes.n_graphs, rows)


def _weights(group: Features) -> Floats:
    """Return the weights of each column, shape (n_columns, n_weights)."""
    return group.weights[group.kinds] if isinstance(group, WeightedFeatures) else np.ones((len(group.codes), 1))


def mapped_pair_sums(left: MappedView, right: MappedView | None, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of all pairs of graphs for each point of the grid, not normalized; ``right=None``: left with itself."""
    other = left if right is None else right
    entries = left.entries if right is None else left.aligned(*(group.codes for group in right.view.groups))
    weights = [_weights(group) for group in other.view.groups]
    shape = (len(weights), weights[0].shape[1], left.view.nodes.n_graphs, other.view.nodes.n_graphs)
    out = np.zeros(shape)
    for columns in component_ranges(vector_map.n_components, len(left.vectors) + len(other.vectors)):
        z = evaluate(vector_map, left.vectors, columns, n_jobs=n_jobs)
        y = z if right is None else evaluate(vector_map, right.vectors, columns, n_jobs=n_jobs)
        for mine, theirs, tree_weights, sums in zip(entries, other.entries, weights, out, strict=True):
            add_products(mine, z, theirs, y, tree_weights, sums, n_jobs=n_jobs)
    return by_point(out)


def mapped_self_sums(mapped: MappedView, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of each graph with itself for each point of the grid, not normalized."""
    weights = [_weights(group) for group in mapped.view.groups]
    scaled = [
        [_scaled(entries, column) for column in tree_weights.T]
        for entries, tree_weights in zip(mapped.entries, weights, strict=True)
    ]
    out = np.zeros((len(weights), weights[0].shape[1], mapped.view.nodes.n_graphs))
    for columns in component_ranges(vector_map.n_components, len(mapped.vectors)):
        z = evaluate(vector_map, mapped.vectors, columns, n_jobs=n_jobs)
        for i, by_weight in enumerate(scaled):
            for k, entries in enumerate(by_weight):
                self_products(entries, z, out[i, k], n_jobs=n_jobs)
    return by_point(out)


def _scaled(entries: Entries, weights: Floats) -> Entries:
    """Return entries whose squares carry the weights of their trees."""
    if (weights == 1.0).all():
        return entries
    n_terms = np.diff(entries.starts[entries.trees])
    return replace(entries, values=entries.values * np.repeat(np.sqrt(weights), n_terms))
