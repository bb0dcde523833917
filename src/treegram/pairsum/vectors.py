"""Sums of explicit vectors: K(G, G') = sum_t <Z_t(G), Z_t(G')> with Z_t(G) = sum_{v in G} F[v, t] z(x_v).

With an explicit map z, a graph is one vector per tree, and everything is linear in the nodes until graphs are compared:

- :func:`add_products` computes Gram matrices: for each tree the product of the vectors of the graphs that have it, common
  trees by matrix products, rare ones in compiled loops. Trees and components come in portions, so that memory is bounded;
- :func:`spread_rows` lays the trees side by side: sparse rows, one block of columns per tree;
- :func:`hash_graphs` moves the block of each tree to a column and sign given by a hash of its code, and adds up all blocks:
  dense rows of any length, whose inner products are the kernel in expectation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import contracted, inlined
from treegram._core.machine import require_rows
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.maps import VectorMap, evaluate
from treegram.structure.features import runs
from treegram.structure.hashing import mix_codes

VECTOR_BYTES = 96 << 20  # of the vectors of all nodes at once: more components are processed in several ranges
PORTION_BYTES = 16 << 20  # of the sums of consecutive trees
SMALL_PRODUCT = 256  # pairs of entries of a tree up to which a compiled loop beats a call to a matrix product
NODES_PER_TASK = 2048  # hashed at once: the vectors of these nodes stay in cache
_LOW_32 = np.uint64(0xFFFFFFFF)
_S32, _S63 = np.uint64(32), np.uint64(63)


@dataclass(frozen=True)
class Entries:
    """The nodes that make up Z_t(G): one entry for each tree t and graph G that has it, tree after tree."""

    n_graphs: int
    trees: Ints  # (n_trees + 1,): tree t owns the entries trees[t] .. trees[t + 1] - 1
    graphs: Ints  # graph of each entry, ascending within a tree
    starts: Ints  # (n_entries + 1,): entry e owns the terms starts[e] .. starts[e + 1] - 1
    rows: Ints  # of each term: the row of its vector
    values: Floats  # of each term: its count, weighted or not

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.trees) - 1


def make_entries(features: sp.csr_matrix, graph_ids: Ints, n_graphs: int, rows: Ints) -> Entries:
    """Make entries from counts (nodes x trees), with nodes in the order of their graphs; ``rows`` are the nodes' vectors."""
    by_tree = features.tocsc()
    by_tree.sort_indices()
    nodes = by_tree.indices.astype(np.int64)
    graphs = graph_ids[nodes]
    firsts, trees = runs(graphs, by_tree.indptr)
    return Entries(
        n_graphs=n_graphs,
        trees=trees,
        graphs=graphs[firsts],
        starts=np.concatenate([firsts, [len(nodes)]]),
        rows=rows[nodes],
        values=by_tree.data.astype(np.float64),
    )


def component_ranges(n_components: int, n_vectors: int) -> Iterator[slice]:
    """Yield ranges of components, so narrow that the vectors of all nodes fit into VECTOR_BYTES; starts are even."""
    width = max(16, VECTOR_BYTES // (8 * max(n_vectors, 1)) // 2 * 2)
    for start in range(0, n_components, width):
        yield slice(start, min(start + width, n_components))


def _portions(sizes: Ints, width: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of trees whose sums, ``sizes`` vectors of this width for each tree, fit into PORTION_BYTES."""
    ends = np.cumsum(sizes)
    room = max(1, PORTION_BYTES // (8 * width))
    first = 0
    while first < len(sizes):
        before = ends[first] - sizes[first]
        last = max(first + 1, int(np.searchsorted(ends, before + room, side="right")))
        yield first, last
        first = last


def _sums(entries: Entries, trees: tuple[int, int], vectors: Floats, n_jobs: int | None) -> Floats:
    """Compute Z_t(G) for the entries of some trees."""
    first, last = (int(entries.trees[t]) for t in trees)
    out = np.empty((last - first, vectors.shape[1]))
    cuts = np.unique(np.linspace(first, last, 5).astype(np.int64))
    tasks = [
        (a, b, entries.starts, entries.rows, entries.values, vectors, out[a - first : b - first])
        for a, b in pairwise(cuts)
    ]
    list(run_tasks(_sum_vectors, tasks, n_jobs=n_jobs, label="trees"))
    return out


# -------------------------------------------------------------------- Gram matrices


def add_products(
    left: Entries,
    left_vectors: Floats,
    right: Entries,
    right_vectors: Floats,
    weights: Floats,
    out: Floats,
    *,
    n_jobs: int | None = None,
) -> None:
    """Add sum_t weights[t, k] <Z_t(G), Z_t(G')> to out[k, G, G'], for vectors that hold a range of components.

    ``left is right`` gives an exactly symmetric result. Time: one product of two (entries x components) matrices for
    each tree; memory: PORTION_BYTES for each side.
    """
    sizes = np.diff(left.trees) + np.diff(right.trees)
    for trees in _portions(sizes, max(left_vectors.shape[1], 1)):
        Z = _sums(left, trees, left_vectors, n_jobs)
        Y = Z if left is right else _sums(right, trees, right_vectors, n_jobs)
        _add_small_products(
            trees, left.trees, left.graphs, Z, right.trees, right.graphs, Y, weights, SMALL_PRODUCT, out
        )
        n_pairs = np.diff(left.trees[trees[0] : trees[1] + 1]) * np.diff(right.trees[trees[0] : trees[1] + 1])
        for t in trees[0] + np.flatnonzero(n_pairs > SMALL_PRODUCT):
            mine, theirs = (slice(side.trees[t], side.trees[t + 1]) for side in (left, right))
            z = Z[mine.start - left.trees[trees[0]] : mine.stop - left.trees[trees[0]]]
            y = z if left is right else Y[theirs.start - right.trees[trees[0]] : theirs.stop - right.trees[trees[0]]]
            _add_block(z @ y.T, left.graphs[mine], right.graphs[theirs], weights[t], out)


def self_products(entries: Entries, vectors: Floats, out: Floats, *, n_jobs: int | None = None) -> None:
    """Add sum_t |Z_t(G)|^2 to out[G], for vectors that hold a range of components."""
    for trees in _portions(np.diff(entries.trees), max(vectors.shape[1], 1)):
        first, last = (int(entries.trees[t]) for t in trees)
        _add_squares(first, last, entries.graphs, _sums(entries, trees, vectors, n_jobs), out)


# -------------------------------------------------------------------- rows


def spread_rows(entries: Entries, vectors: Floats, *, n_jobs: int | None = None) -> sp.csr_matrix:
    """Compute sparse rows: the vectors Z_t(G) of all trees side by side, tree t in columns t D .. t D + D - 1."""
    width = vectors.shape[1]
    n_numbers = float(len(entries.graphs)) * width
    require_rows(entries.n_graphs, n_numbers, 4)  # the sums, a copy in order, and the columns of both
    sums = _sums(entries, (0, entries.n_trees), vectors, n_jobs)
    trees = np.repeat(np.arange(entries.n_trees), np.diff(entries.trees))
    order = np.argsort(entries.graphs, kind="stable")
    counts = np.bincount(entries.graphs, minlength=entries.n_graphs)
    return sp.csr_matrix(
        (
            sums[order].ravel(),
            (trees[order, None] * width + np.arange(width)).ravel(),
            width * np.concatenate([[0], np.cumsum(counts)]),
        ),
        shape=(entries.n_graphs, entries.n_trees * width),
    )


def hash_graphs(
    offsets: Ints,
    attributes: Floats,
    features: sp.csr_matrix,
    codes: Hashes,
    vector_map: VectorMap,
    n_columns: int,
    seed: int,
    *,
    n_jobs: int | None = None,
) -> Floats:
    r"""Compute dense rows of ``n_columns`` numbers, whose inner products are the kernel in expectation.

    .. math:: h(G) = \sum_t s_t R^{c_t} (\epsilon \circ Z_t(G))

    Sign :math:`s_t` and first column :math:`c_t` come from tree t's code and ``seed``, :math:`\epsilon` are random signs of
    the components from ``seed``, and :math:`R^c` moves a vector c columns to the right, wrapping around at the end. A tree
    never meets itself at another column, so that its own product is exact; two different trees meet with independent
    signs, so that what they add has mean 0 and, relative to :math:`\|Z_t\| \|Z_{t'}\|`, variance of at most ``2 /
    n_columns``. As each vector stays in one piece, a node costs one contiguous addition of z for each of its trees.
    """
    columns, signs, component_signs = place_trees(codes, vector_map.n_components, n_columns, seed)
    n_numbers = float(len(offsets) - 1) * n_columns
    require_rows(len(offsets) - 1, n_numbers)
    out = np.empty((len(offsets) - 1, n_columns))
    goals = np.arange(0, offsets[-1] + NODES_PER_TASK, NODES_PER_TASK)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, goals), [len(offsets) - 1]]).clip(max=len(out)))
    tasks = [
        (a, b, offsets, attributes, features, columns, signs, component_signs, vector_map, out)
        for a, b in pairwise(cuts)
    ]
    list(run_tasks(_hash_some, tasks, n_jobs=n_jobs, label="features"))
    return out


def place_trees(codes: Hashes, n_components: int, n_columns: int, seed: int) -> tuple[Ints, Floats, Floats]:
    """Return the first column and the sign of each tree, and the signs of the components, for :func:`hash_graphs`."""
    random = np.random.default_rng(seed)
    tree_seed = random.integers(2**64, dtype=np.uint64)
    component_signs = random.choice((-1.0, 1.0), n_components)
    # 32 bits of a mixed code make the column, another bit the sign.
    bits = mix_codes(mix_codes(codes + tree_seed) ^ tree_seed)
    columns = ((bits & _LOW_32) * np.uint64(n_columns)) >> _S32
    return columns.astype(np.int64), np.where(bits >> _S63, 1.0, -1.0), component_signs


def entry_products(
    attributes: Floats,
    features: sp.csr_matrix,
    places: tuple[Ints, Floats, Floats],
    vector_map: VectorMap,
    weights: Floats,
) -> Floats:
    """Compute what each entry of the features, a tree at a node, adds to products of rows with weights: (n_entries, n_outputs).

    ``places`` are those of :func:`place_trees`; a tree with the sign 0 has no column.
    """
    (columns, signs, component_signs), sums = places, np.zeros((features.nnz, weights.shape[1]))
    n_more = -(-vector_map.n_components // max(len(weights), 1)) + 1  # times that a vector may run over the last column
    around = np.concatenate([weights] * n_more)[: len(weights) + vector_map.n_components]
    around = np.ascontiguousarray(around.T)
    for first in range(0, len(attributes), NODES_PER_TASK):
        last = min(first + NODES_PER_TASK, len(attributes))
        vectors = evaluate(vector_map, attributes[first:last]) * component_signs
        arrays = (features.indptr, features.indices, features.data)
        _fill_entry_products(first, last, *arrays, columns, signs, vectors, around, sums)
    return sums


def _hash_some(
    first: int,
    last: int,
    offsets: Ints,
    attributes: Floats,
    features: sp.csr_matrix,
    columns: Ints,
    signs: Floats,
    component_signs: Floats,
    vector_map: VectorMap,
    out: Floats,
) -> None:
    vectors = evaluate(vector_map, attributes[offsets[first] : offsets[last]])
    vectors *= component_signs
    _hash_rows(first, last, offsets, features.indptr, features.indices, features.data, columns, signs, vectors, out)


# -------------------------------------------------------------------- compiled loops
#
# Every sum has a fixed order, and no two threads ever write to one entry: results have the same bits for any number of threads.
# Loops over components run along contiguous memory, so that they vectorize.


@inlined
def _add_scaled(a, x, out):
    """Add a * x to out, over the length of x."""
    for j in range(len(x)):
        out[j] += a * x[j]


@inlined
def _inner(x, y):
    """Compute <x, y> in four interleaved sums that one vector register holds."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = len(x) // 4 * 4
    for j in range(0, n, 4):
        a += x[j] * y[j]
        b += x[j + 1] * y[j + 1]
        c += x[j + 2] * y[j + 2]
        d += x[j + 3] * y[j + 3]
    for j in range(n, len(x)):
        a += x[j] * y[j]
    return (a + b) + (c + d)


@contracted
def _sum_vectors(first, last, starts, rows, values, vectors, out):
    """Set out[e - first] to the sum of values[i] * vectors[rows[i]] over starts[e] <= i < starts[e + 1], for first <= e < last."""
    for e in range(first, last):
        total = out[e - first]
        total[:] = 0.0
        for i in range(starts[e], starts[e + 1]):
            _add_scaled(values[i], vectors[rows[i]], total)


@contracted
def _add_small_products(trees, starts_left, graphs_left, left, starts_right, graphs_right, right, weights, most, out):
    """Add weights[t, k] <left entry of (t, g), right entry of (t, g')> to out[k, g, g'] for trees[0] <= t < trees[1].

    Trees with more than ``most`` pairs of entries are left out: matrix products are faster for them. The entries of tree
    t are starts[t] .. starts[t + 1] - 1; ``left`` and ``right`` hold their vectors from the first tree onward.
    """
    base_left, base_right = starts_left[trees[0]], starts_right[trees[0]]
    for t in range(trees[0], trees[1]):
        if (starts_left[t + 1] - starts_left[t]) * (starts_right[t + 1] - starts_right[t]) > most:
            continue
        for i in range(starts_left[t], starts_left[t + 1]):
            for j in range(starts_right[t], starts_right[t + 1]):
                product = _inner(left[i - base_left], right[j - base_right])
                for k in range(len(out)):
                    out[k, graphs_left[i], graphs_right[j]] += weights[t, k] * product


@contracted
def _add_block(block, graphs_left, graphs_right, weights, out):
    """Add weights[k] * block[i, j] to out[k, graphs_left[i], graphs_right[j]]."""
    for k in range(len(out)):
        for i in range(len(graphs_left)):
            row = out[k, graphs_left[i]]
            for j in range(len(graphs_right)):
                row[graphs_right[j]] += weights[k] * block[i, j]


@contracted
def _add_squares(first, last, graphs, vectors, out):
    """Add |vectors[e - first]|^2 to out[graphs[e]] for first <= e < last."""
    for e in range(first, last):
        out[graphs[e]] += _inner(vectors[e - first], vectors[e - first])


@contracted(allocates=True)
def _hash_rows(first, last, offsets, indptr, indices, data, columns, signs, vectors, out):
    """Set out[g] to the sum over the nodes v of g and their trees t of signs[t] F[v, t] vectors[v], moved to columns[t].

    For the graphs first <= g < last; ``vectors`` holds only their nodes. A vector that extends beyond the last column
    continues at the first one.
    """
    n_columns, width = out.shape[1], vectors.shape[1]
    row = np.empty(n_columns + width)  # one overhang instead of a test in the inner loop
    for g in range(first, last):
        row[:] = 0.0
        for v in range(offsets[g], offsets[g + 1]):
            vector = vectors[v - offsets[first]]
            for i in range(indptr[v], indptr[v + 1]):
                t = indices[i]
                _add_scaled(signs[t] * data[i], vector, row[columns[t] : columns[t] + width])
        total = out[g]
        total[:] = 0.0
        for j in range(n_columns + width):
            total[j % n_columns] += row[j]


@contracted
def _fill_entry_products(first, last, indptr, indices, data, columns, signs, vectors, weights, sums):
    """Set sums[e, o] to signs[t] F[v, t] <vectors[v], weights[o] from columns[t] onward>, for the entries e = (v, t) of first <= v < last.

    ``vectors`` holds only these nodes; a row of ``weights`` continues beyond its last column with the first ones.
    """
    width = vectors.shape[1]
    for v in range(first, last):
        vector = vectors[v - first]
        for e in range(indptr[v], indptr[v + 1]):
            t = indices[e]
            if signs[t] != 0.0:
                for o in range(len(weights)):
                    product = _inner(vector, weights[o, columns[t] : columns[t] + width])
                    sums[e, o] = signs[t] * data[e] * product
