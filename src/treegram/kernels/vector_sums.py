"""Sums over pairs of nodes with an explicit map of the vectors in the place of k_A, and the choice of this map.

The error of a map is always measured, on pairs of graphs whose exact kernel is computed. The rule of ``method="auto"``:

1. the exact sums, where the estimator can fall back to them and there are at most ``EXACT_PAIRS`` pairs of nodes;
2. where there are no more distinct vectors than components allowed, a factorization of their kernel matrix, which is exact;
3. Nystroem with 16, 24, 36, ... components until the error is within the tolerance;
4. if that takes too many components, the exact sums; where the estimator needs a map, Nystroem with the largest number of
   components, and a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from treegram._core.params import NOTHING, SEED, Allowed, Number, Whole, Words
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import normalization_of, normalize_gram, outside_level
from treegram.kernels.node_pairs import NodeView, WeightedFeatures, by_point, node_pair_sums, node_self_sums
from treegram.kernels.oddcl import view_trees
from treegram.pairsum.attributes import Gaussian
from treegram.pairsum.maps import FREQUENCIES, Constant, VectorMap, distinct_rows, evaluate, fourier_map, nystroem_map
from treegram.pairsum.vectors import Entries, add_products, component_ranges, make_entries, self_products
from treegram.structure.features import Features
from treegram.structure.hashing import equal_rows

__all__ = [
    "VECTOR_MAP",
    "MapChoice",
    "MappedView",
    "PairSample",
    "choose_map",
    "draw_seed",
    "map_nodes",
    "vector_pair_sums",
    "vector_self_sums",
]

VECTOR_MAP: Mapping[str, Allowed] = {
    "method": (Words(*FREQUENCIES, "nystroem", "auto"),),
    "n_components": (Whole(1), NOTHING),
    "tolerance": (Number(0, above=True),),
    "random_state": SEED,
}

MAX_COMPONENTS = 1024  # without n_components; beyond, the exact kernel costs less than the vectors
FEWEST_COMPONENTS = 16  # the first number tried; then half as many again, and so on
EXACT_PAIRS = (
    3e8  # pairs of nodes that the exact sums compare in about a second, which a search for a map takes as well
)
SAMPLE_GRAPHS = 48  # on either side of the sample of pairs: about two thousand pairs
SAMPLE_GRAPH_NODES = 20_000  # on either side, so that large graphs do not make the sample expensive


@dataclass(frozen=True)
class MappedView:
    """Graphs as the sums of explicit vectors see them, for any map."""

    view: NodeView
    vectors: Floats  # the distinct attribute vectors
    rows: Ints  # of each node: its vector
    entries: list[Entries]  # for each group of features, which vectors make up the sums of each feature and graph

    def aligned(self, *codes: Hashes) -> list[Entries]:
        """Return the entries of the features with the given sorted codes, for each group, without other features."""
        matrices = (group.aligned(some) for group, some in zip(self.view.groups, codes, strict=True))
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


def vector_pair_sums(left: MappedView, right: MappedView | None, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of all pairs of graphs for each point of the grid, not normalized; ``right=None``: left with itself."""
    other = left if right is None else right
    entries = left.entries if right is None else left.aligned(*(group.codes for group in right.view.groups))
    weights = [_weights(group) for group in other.view.groups]
    shape = (len(weights), weights[0].shape[1], left.view.nodes.n_graphs, other.view.nodes.n_graphs)
    out = np.zeros(shape)
    for columns in component_ranges(vector_map.n_components, len(left.vectors) + len(other.vectors)):
        z = evaluate(vector_map, left.vectors, columns, n_jobs=n_jobs)
        y = z if right is None else evaluate(vector_map, right.vectors, columns, n_jobs=n_jobs)
        for mine, theirs, some, sums in zip(entries, other.entries, weights, out, strict=True):
            add_products(mine, z, theirs, y, some, sums, n_jobs=n_jobs)
    return by_point(other.view, out)


def vector_self_sums(mapped: MappedView, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of each graph with itself for each point of the grid, not normalized."""
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
    """Return entries whose squares carry the weights of their trees."""
    if (weights == 1.0).all():
        return entries
    n_terms = np.diff(entries.starts[entries.trees])
    return replace(entries, values=entries.values * np.repeat(np.sqrt(weights), n_terms))


# -------------------------------------------------------------------- the error of a map


@dataclass(frozen=True)
class PairSample:
    """Pairs of graphs whose exact kernel is known: all pairs between two random samples."""

    left: Graphs
    right: Graphs
    exact: Floats
    mapped: tuple[MappedView, MappedView]
    normalization: str
    n_jobs: int | None

    @classmethod
    def draw(cls, estimator: Any, graphs: Graphs, seed: int) -> PairSample:
        """Draw about two thousand pairs, fewer if graphs are few or large."""
        random = np.random.default_rng([seed, len(graphs)])
        left, right = (graphs[_draw_graphs(graphs, random)] for _ in range(2))
        views = (view_trees(estimator, left), view_trees(estimator, right))
        exact = node_pair_sums(*views, estimator.n_jobs)
        normalization = normalization_of(estimator)
        if normalization:
            rows, columns = (node_self_sums(view, estimator.n_jobs) for view in views)
            normalize_gram(exact, rows, columns, normalization)
        mapped = (map_nodes(views[0]), map_nodes(views[1]))
        return cls(left, right, exact.reshape(exact.shape[-2:]), mapped, normalization, estimator.n_jobs)

    def error_of(self, vector_map: VectorMap) -> float:
        """Return the relative error that a map makes on these pairs."""
        approximate = vector_pair_sums(*self.mapped, vector_map, self.n_jobs)
        if self.normalization:
            rows, columns = (vector_self_sums(side, vector_map, self.n_jobs) for side in self.mapped)
            normalize_gram(approximate, rows, columns, self.normalization)
        return self.error_against(approximate.reshape(self.exact.shape))

    def error_against(self, approximate: Floats) -> float:
        """Return the Frobenius norm of the difference divided by that of the exact values; 0 where both are 0."""
        difference, size = float(np.linalg.norm(approximate - self.exact)), float(np.linalg.norm(self.exact))
        return difference / size if size else float(difference > 0)


def _draw_graphs(graphs: Graphs, random: np.random.Generator) -> Ints:
    order = random.permutation(len(graphs))[:SAMPLE_GRAPHS]
    n_within = int((np.cumsum(graphs.sizes[order]) <= SAMPLE_GRAPH_NODES).sum())
    return np.sort(order[: max(1, n_within)])


# -------------------------------------------------------------------- the choice of a map


@dataclass(frozen=True)
class MapChoice:
    """A map, the method that made it, and the reason; ``vector_map=None`` means the exact sums."""

    vector_map: VectorMap | None
    method: str
    reason: str
    error: float = 0.0
    is_complete: bool = False  # whether every distinct vector could be a pivot, so that nothing is approximated
    n_asked: int = 0  # components asked for; a map may have fewer

    def describe(self, error: float) -> str:
        """Return a sentence with the reason and the error that the caller has measured."""
        reason = self.reason if self.reason.startswith(self.method) else f"{self.method}: {self.reason}"
        return f"{reason}; estimated Gram error {error:.1e}."

    def warn(self, estimator: Any, error: float, limit: float) -> None:
        """Warn if a map whose number of components was chosen has a larger error than the limit."""
        is_chosen = estimator.method == "auto" or estimator.n_components is None
        if is_chosen and error > limit:
            warnings.warn(
                f"{self.describe(error)} This is more than tolerance={estimator.tolerance:g}. Scale the attributes "
                "(ScaleAttributes) or lower gamma if nodes should be more alike, give a larger tolerance, n_components or "
                "n_features, or use the exact kernel ODDCL.",
                UserWarning,
                stacklevel=outside_level(),
            )


def draw_seed(random_state: Any) -> int:
    """Draw the number that determines everything random."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def choose_map(
    estimator: Any,
    view: NodeView,
    n_attributes: int,
    error_of: Callable[[VectorMap], float],
    seed: int,
    *,
    can_be_exact: bool,
) -> MapChoice:
    """Make the map that the estimator's parameters ask for, by the rule above for ``method="auto"``."""
    method, most = estimator.method, estimator.n_components or MAX_COMPONENTS
    is_auto = method == "auto"
    if not n_attributes or not len(view.nodes.vectors):
        if is_auto and can_be_exact:
            return MapChoice(None, "exact", "without attributes k_A is 1")
        return MapChoice(
            Constant(), "distinct", "without attributes k_A is 1, and one component is exact", is_complete=True
        )
    gamma: Any = view.node_kernel.gamma if isinstance(view.node_kernel, Gaussian) else None
    if method in FREQUENCIES and gamma is None:
        raise ValueError(
            f"method={method!r} approximates the Gaussian kernel alone; with another node_kernel than 'rbf' use "
            "method='nystroem' or 'auto'."
        )
    if is_auto and can_be_exact and (n_pairs := _count_pairs(view)) <= EXACT_PAIRS:
        return MapChoice(None, "exact", f"{n_pairs:.1e} pairs of nodes with equal labels are few enough")
    vectors, numbers = distinct_rows(view.nodes.vectors)  # sorted: the map does not depend on the order of nodes
    if is_auto and len(vectors) <= most:
        exact_map = nystroem_map(vectors, np.ones(len(vectors)), view.node_kernel, len(vectors), seed=0)
        reason = f"the kernel matrix of the {len(vectors)} distinct vectors is factorized, which is exact"
        return MapChoice(exact_map, "distinct", reason, error_of(exact_map), is_complete=True)
    make: Callable[..., VectorMap]
    if method in FREQUENCIES:
        make = partial(fourier_map, method, vectors.shape[1], gamma=gamma, seed=seed)
    else:
        make = partial(nystroem_map, vectors, np.bincount(numbers).astype(np.float64), view.node_kernel, seed=seed)
    fewest = most if estimator.n_components is not None and not is_auto else FEWEST_COMPONENTS
    choice = _grow(make, "nystroem" if is_auto else method, fewest, most, estimator.tolerance, error_of)
    if is_auto and can_be_exact and choice.error > estimator.tolerance:
        return MapChoice(None, "exact", f"{choice.reason} would have an estimated Gram error of {choice.error:.1e}")
    return replace(choice, is_complete=method not in FREQUENCIES and len(vectors) <= choice.n_asked)


def _grow(
    make: Callable[..., VectorMap],
    method: str,
    fewest: int,
    most: int,
    tolerance: float,
    error_of: Callable[[VectorMap], float],
) -> MapChoice:
    """Raise the number of components by half until the measured error is within the tolerance, or no more are allowed."""
    n_components = min(fewest, most)
    while True:
        found = make(n_components=n_components)
        error = error_of(found)
        if error <= tolerance or n_components >= most:
            return MapChoice(
                found, method, f"{method} with {found.n_components} components", error, n_asked=n_components
            )
        n_components = min(n_components + n_components // 2, most)


def _count_pairs(view: NodeView) -> float:
    """Return the number of pairs of nodes with equal labels, where equal nodes of a graph count once."""
    nodes = view.nodes
    _, first = equal_rows(nodes.vectors, nodes.graph_ids, nodes.blocks)
    sizes = np.unique(nodes.blocks[first], return_counts=True)[1].astype(np.float64)
    return float((sizes**2).sum()) / 2
