"""Sums over pairs of nodes with an explicit map of the vectors in the place of k_A, and how far they are from the exact ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import normalize_gram
from treegram.kernels.choose_map import Costs, MapChoice, MapRequest, choose_map
from treegram.kernels.node_pairs import NodeView, WeightedFeatures, by_point, node_pair_sums, node_self_sums
from treegram.pairsum.maps import VectorMap, distinct_rows, evaluate
from treegram.pairsum.vectors import Entries, add_products, component_ranges, make_entries, self_products
from treegram.structure.features import Features
from treegram.structure.hashing import equal_rows

__all__ = [
    "MappedView",
    "PairSample",
    "draw_seed",
    "gram_costs",
    "map_for",
    "map_nodes",
    "vector_pair_sums",
    "vector_self_sums",
]

SAMPLE_GRAPHS = 48  # on either side of the sample of pairs: some two thousand pairs
SAMPLE_GRAPH_NODES = 20_000  # on either side, so that large graphs do not make the sample dear


@dataclass(frozen=True)
class MappedView:
    """Graphs as the sums of explicit vectors see them, whichever the map."""

    view: NodeView
    vectors: Floats  # the distinct attribute vectors
    rows: Ints  # of each node: its vector
    entries: list[Entries]  # for each group of features, which vectors make up the sums of each feature and graph

    def aligned(self, *codes: Hashes) -> list[Entries]:
        """The entries of the features with the given sorted codes, for each group; other features are left out."""
        matrices = (group.aligned(some) for group, some in zip(self.view.groups, codes, strict=True))
        return [_entries(self.view, matrix, self.rows) for matrix in matrices]


def map_nodes(view: NodeView) -> MappedView:
    """Distinct vectors, and which of them make up the sums."""
    vectors, rows = distinct_rows(view.nodes.vectors)
    return MappedView(view, vectors, rows, [_entries(view, group.counts, rows) for group in view.groups])


def _entries(view: NodeView, counts: sp.csr_matrix, rows: Ints) -> Entries:
    return make_entries(counts, view.nodes.graph_ids, view.nodes.n_graphs, rows)


def _weights(group: Features) -> Floats:
    """The weights of each column, shape (n_columns, n_weights)."""
    return group.weights[group.kinds] if isinstance(group, WeightedFeatures) else np.ones((len(group.codes), 1))


def vector_pair_sums(
    left: MappedView,
    right: MappedView | None,
    vector_map: VectorMap,
    n_jobs: int | None,
    *,
    right_map: VectorMap | None = None,
) -> Floats:
    """The kernel of all pairs of graphs for each point of the grid, not normalized; ``right=None``: left with itself.

    A map of its own for the right side makes k_A the inner product of either map's vectors.
    """
    other = left if right is None else right
    entries = left.entries if right is None else left.aligned(*(group.codes for group in right.view.groups))
    weights = [_weights(group) for group in other.view.groups]
    shape = (len(weights), weights[0].shape[1], left.view.nodes.n_graphs, other.view.nodes.n_graphs)
    out = np.zeros(shape)
    for columns in component_ranges(vector_map.n_components, len(left.vectors) + len(other.vectors)):
        z = evaluate(vector_map, left.vectors, columns, n_jobs=n_jobs)
        y = z if right is None else evaluate(right_map or vector_map, right.vectors, columns, n_jobs=n_jobs)
        for mine, theirs, some, sums in zip(entries, other.entries, weights, out, strict=True):
            add_products(mine, z, theirs, y, some, sums, n_jobs=n_jobs)
    return by_point(other.view, out)


def vector_self_sums(mapped: MappedView, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """The kernel of each graph with itself for each point of the grid, not normalized."""
    weights = [_weights(group) for group in mapped.view.groups]
    scaled = [
        [_scaled(entries, column) for column in some.T] for entries, some in zip(mapped.entries, weights, strict=True)
    ]
    out = np.zeros((len(weights), weights[0].shape[1], mapped.view.nodes.n_graphs))
    for columns in component_ranges(vector_map.n_components, len(mapped.vectors)):
        z = evaluate(vector_map, mapped.vectors, columns, n_jobs=n_jobs)
        for i, some in enumerate(scaled):
            for k, entries in enumerate(some):
                self_products(entries, z, out[i, k], n_jobs=n_jobs)
    return by_point(mapped.view, out)


def _scaled(entries: Entries, weights: Floats) -> Entries:
    """Entries whose squares carry the weights of their trees."""
    if (weights == 1.0).all():
        return entries
    n_terms = np.diff(entries.starts[entries.trees])
    return replace(entries, values=entries.values * np.repeat(np.sqrt(weights), n_terms))


# -------------------------------------------------------------------- choice of a map


def draw_seed(random_state: Any) -> int:
    """One number from which all that is random follows."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def map_for(
    estimator: Any,
    view: NodeView,
    n_attributes: int,
    error_of: Callable[[VectorMap], float],
    seed: int,
    *,
    costs: Costs | None,
) -> MapChoice:
    """The map that the estimator's parameters ask for on the graphs of a view, by its measured error."""
    request = MapRequest(
        method=estimator.method,
        n_components=estimator.n_components,
        tolerance=estimator.tolerance,
        seed=seed,
        node_kernel=view.node_kernel,
        vectors=view.nodes.vectors[:, :n_attributes],
        blocks=view.nodes.blocks,
        costs=costs,
    )
    return choose_map(request, error_of)


def gram_costs(view: NodeView) -> Costs:
    """What a Gram matrix of the graphs of a view costs."""
    nodes = view.nodes
    _, first = equal_rows(nodes.vectors, nodes.graph_ids, nodes.blocks)
    sizes = np.unique(nodes.blocks[first], return_counts=True)[1].astype(np.float64)
    return Costs(float((sizes**2).sum()) / 2, *nodes.vectors.shape)


@dataclass(frozen=True)
class PairSample:
    """Pairs of graphs whose exact kernel is known: all pairs between two random samples, drawn apart."""

    left: Graphs
    right: Graphs
    exact: Floats
    mapped: tuple[MappedView, MappedView]
    normalize: bool
    n_jobs: int | None

    @classmethod
    def draw(cls, estimator: Any, view_of: Callable[[Graphs], NodeView], graphs: Graphs, seed: int) -> PairSample:
        """Some two thousand pairs, fewer where graphs are few or large; ``view_of`` describes them exactly."""
        random = np.random.default_rng([seed, len(graphs)])
        left, right = (graphs[_draw_graphs(graphs, random)] for _ in range(2))
        views = (view_of(left), view_of(right))
        exact = node_pair_sums(*views, estimator.n_jobs)
        if estimator.normalize:
            normalize_gram(exact, *(node_self_sums(view, estimator.n_jobs) for view in views))
        mapped = (map_nodes(views[0]), map_nodes(views[1]))
        return cls(left, right, exact.reshape(exact.shape[-2:]), mapped, estimator.normalize, estimator.n_jobs)

    def error_of(self, vector_map: VectorMap) -> float:
        """The relative error that a map makes on these pairs."""
        approximate = vector_pair_sums(*self.mapped, vector_map, self.n_jobs)
        if self.normalize:
            normalize_gram(approximate, *(vector_self_sums(side, vector_map, self.n_jobs) for side in self.mapped))
        return self.error_against(approximate.reshape(self.exact.shape))

    def error_against(self, approximate: Floats) -> float:
        """Frobenius norm of the difference to the exact values over theirs; 0 where both are 0."""
        difference, size = float(np.linalg.norm(approximate - self.exact)), float(np.linalg.norm(self.exact))
        return difference / size if size else float(difference > 0)


def _draw_graphs(graphs: Graphs, random: np.random.Generator) -> Ints:
    order = random.permutation(len(graphs))[:SAMPLE_GRAPHS]
    n_within = int((np.cumsum(graphs.sizes[order]) <= SAMPLE_GRAPH_NODES).sum())
    return np.sort(order[: max(1, n_within)])
