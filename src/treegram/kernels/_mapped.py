"""The ODDCL sums with an explicit map of the vectors, and how far they are from the exact ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from treegram._types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels._base import normalize_gram
from treegram.kernels._choice import Wish
from treegram.kernels.oddcl import ODDCL
from treegram.maps import VectorMap, distinct_rows, evaluate
from treegram.pairsum.vectors import Entries, add_products, component_ranges, make_entries, self_products
from treegram.structure.trees import Phi

__all__ = ["Mapped", "PairSample", "draw_seed", "make_wish", "mapped_pair_sums", "mapped_self_sums"]


SAMPLE_GRAPHS = 48  # on either side of the sample of pairs: some two thousand pairs
SAMPLE_GRAPH_NODES = 20_000  # on either side, so that large graphs do not make the sample dear


@dataclass(frozen=True)
class Mapped:
    """What the sums need of some graphs, whichever the map."""

    phi: Phi  # with weighed counts
    graphs: Graphs
    vectors: Floats  # the distinct attribute vectors
    rows: Ints  # of each node: its vector
    entries: Entries

    @classmethod
    def describe(cls, phi: Phi, graphs: Graphs) -> Mapped:
        """Distinct vectors, and which of them make up the sums of each tree and graph."""
        given = np.zeros((graphs.n_nodes, 1)) if not graphs.n_attributes else np.asarray(graphs.attributes)
        vectors, rows = distinct_rows(given)
        return cls(phi, graphs, vectors, rows, make_entries(phi.counts, graphs.graph_ids, len(graphs), rows))

    def aligned_entries(self, codes: Hashes) -> Entries:
        """The entries of the trees with the given sorted codes; other trees are left out."""
        return make_entries(self.phi.aligned(codes), self.graphs.graph_ids, len(self.graphs), self.rows)


def mapped_pair_sums(
    left: Mapped, right: Mapped | None, vector_map: VectorMap, n_jobs: int | None, *, right_map: VectorMap | None = None
) -> Floats:
    """The kernel of all pairs of graphs, not normalised; ``right=None``: left with itself.

    A map of its own for the right side makes k_A the inner product of either map's vectors.
    """
    other = left if right is None else right
    entries = left.entries if right is None else left.aligned_entries(right.phi.codes)
    out = np.zeros((1, len(left.graphs), len(other.graphs)))
    weights = np.ones((other.entries.n_trees, 1))
    for columns in component_ranges(vector_map.n_components, len(left.vectors) + len(other.vectors)):
        z = evaluate(vector_map, left.vectors, columns, n_jobs=n_jobs)
        y = z if right is None else evaluate(right_map or vector_map, right.vectors, columns, n_jobs=n_jobs)
        add_products(entries, z, other.entries, y, weights, out, n_jobs=n_jobs)
    return out[0]


def mapped_self_sums(mapped: Mapped, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """The kernel of each graph with itself, not normalised."""
    out = np.zeros(len(mapped.graphs))
    for columns in component_ranges(vector_map.n_components, len(mapped.vectors)):
        z = evaluate(vector_map, mapped.vectors, columns, n_jobs=n_jobs)
        self_products(mapped.entries, z, out, n_jobs=n_jobs)
    return out


# -------------------------------------------------------------------- choice of a map


def draw_seed(random_state: Any) -> int:
    """One number from which all that is random follows."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def make_wish(estimator: Any, exact: ODDCL, graphs: Graphs, seed: int, *, exact_is_there: bool) -> Wish:
    """What the estimator's parameters ask for on these graphs."""
    nodes = exact._nodes(graphs, None)
    return Wish(
        method=estimator.method,
        n_components=estimator.n_components,
        tolerance=estimator.tolerance,
        seed=seed,
        node_kernel=exact._kernel(graphs),
        vectors=nodes.vectors[:, : graphs.n_attributes],
        blocks=nodes.blocks,
        exact_is_there=exact_is_there,
    )


@dataclass(frozen=True)
class PairSample:
    """Pairs of graphs whose exact kernel is known: all pairs between two random samples, drawn apart."""

    left: Graphs
    right: Graphs
    exact: Floats
    left_mapped: Mapped
    right_mapped: Mapped
    normalize: bool
    n_jobs: int | None

    @classmethod
    def draw(cls, kernel: ODDCL, graphs: Graphs, seed: int) -> PairSample:
        """Some two thousand pairs, fewer where graphs are few or large."""
        random = np.random.default_rng([seed, len(graphs)])
        left, right = (graphs[_draw_graphs(graphs, random)] for _ in range(2))
        exact = kernel.fit(right).transform(left)
        mapped = [Mapped.describe(kernel._describe(side).phi, side) for side in (left, right)]
        return cls(left, right, exact, mapped[0], mapped[1], kernel.normalize, kernel.n_jobs)

    def error_of(self, vector_map: VectorMap) -> float:
        """The relative error that a map makes on these pairs."""
        approximate = mapped_pair_sums(self.left_mapped, self.right_mapped, vector_map, self.n_jobs)
        if self.normalize:
            sides = (self.left_mapped, self.right_mapped)
            normalize_gram(approximate, *(mapped_self_sums(side, vector_map, self.n_jobs) for side in sides))
        return self.error_against(approximate)

    def error_against(self, approximate: Floats) -> float:
        """Frobenius norm of the difference to the exact values over theirs; 0 where both are 0."""
        difference, size = float(np.linalg.norm(approximate - self.exact)), float(np.linalg.norm(self.exact))
        return difference / size if size else float(difference > 0)


def _draw_graphs(graphs: Graphs, random: np.random.Generator) -> Ints:
    order = random.permutation(len(graphs))[:SAMPLE_GRAPHS]
    n_within = int((np.cumsum(graphs.sizes[order]) <= SAMPLE_GRAPH_NODES).sum())
    return np.sort(order[: max(1, n_within)])
