"""Sums over connected matchings of two graphs: sum_phi prod_v kappa(v, phi(v)), by the number of nodes matched.

A matching is a bijection phi between sets of nodes of the two graphs that preserves edges, their kinds, and the lack of edges; it
is connected if the matched subgraph is. Such matchings are the cliques of a product graph of n n' nodes, which is never built.
There are three ways to sum over them:

- counting: up to two nodes, if the node kernel is 1 for all nodes of a block. Equal nodes and edges are counted, graph by graph.
- closed forms: up to three nodes with one kind of edge. A few sparse-times-dense matrix products and one pass over the
  triangles, so that a pair of nodes costs about as much as its degrees. They count more than matchings and subtract the rest,
  which causes rounding errors relative to the diagonal, not to an entry.
- enumeration: everything else. Matchings are grown one pair of nodes at a time, each visited once.

A Gaussian node kernel is at most 1, so a matching weighs no more than any of its pairs. Those that weigh less than
2^-53 / (s! N_s), where N_s is the largest number of connected subgraphs of s nodes in any graph, are left out: a pair of graphs has
at most s! N_s(G) N_s(G') matchings of s nodes, and K(G, G) is at least the sum of N_s(G) over s, so that this changes no
entry of the normalized matrix by more than rounding does.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import factorial
from typing import Any

import numpy as np

from treegram._core.jit import contracted, inlined, jit, pasted
from treegram._core.machine import allocate, require
from treegram._core.parallel import progress, run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel, is_one
from treegram.pairsum.products import feature_products, sum_rows
from treegram.pairsum.tiles import (
    Layout,
    Rows,
    Span,
    add_scaled,
    clear,
    cut,
    fill_matrix,
    kernel_rows,
    number_alike,
)
from treegram.structure.features import Features, first_from, gather
from treegram.structure.hashing import GOLDEN, mix_codes

# The node kernel of one graph with this many columns, and its products, stay in the second-level cache.
TILE_COLUMNS = 512
STEPS_PER_CALL = 1 << 21  # of the enumeration: compiled code cannot be interrupted, and this takes well under a second
ROWS_PER_TASK = 1024  # rows of one task that computes contributions

# The row graphs: their nodes (as ``pairsum.tiles`` takes them), arcs with the kinds of their edges (from 1), and triangles.
# Neighbors are numbered within their graph.
RowGraphs = namedtuple("RowGraphs", "rows offsets indptr indices codes triangles triangle_starts")
# A tile of columns with the same, numbered by column; triangles (3, n) are sorted by their first column.
Tile = namedtuple("Tile", "columns indptr indices codes triangles")
# The node kernel; the weight that a matching needs to count; bits of an arc's code.
Limits = namedtuple("Limits", "kernel floor bits")
# For one row graph: kappa, the window of each row outside which it is 0, kappa summed over the columns' neighbors, and numbers
# per column.
Closed = namedtuple("Closed", "kappa windows right left both one two three")
# For enumeration: which members of the matching each node is adjacent to, pairs that may come next, the matching itself, the
# weights of its beginnings, and sums by the number of pairs. For contributions: what a matching of s pairs adds to each of its rows,
# and the contributions of each row, by graph of the columns; without rows if they are not wanted.
Cliques = namedtuple(
    "Cliques", "kappa windows masks column_masks listed stack weights totals size_weights contributions"
)

# Marks of nodes that are already matched. No arc has these bits, and they differ, so such a node equals no other.
_ROW_MEMBER, _COLUMN_MEMBER = np.int64(1) << np.int64(62), np.int64(1) << np.int64(61)
MASK_BITS = 61


@dataclass(frozen=True)
class Matchables:
    """The nodes of ``n_graphs`` graphs, in the order of the graphs, and the edges between them."""

    offsets: Ints  # graph i owns the nodes offsets[i] .. offsets[i + 1] - 1
    blocks: Hashes  # nodes of different blocks are never matched
    vectors: Floats  # (n_nodes, n_attributes)
    indptr: Ints  # neighbors of each node, sorted; every edge is listed at both of its ends
    indices: Ints
    arc_codes: Hashes  # of each arc; edges of different kinds are never matched

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return len(self.offsets) - 1


def match_sums(
    left: Matchables,
    right: Matchables | None,
    node_kernel: NodeKernel,
    max_size: int,
    *,
    n_jobs: int | None = None,
) -> Floats:
    """Return the sum over all connected matchings of s nodes, for each pair of graphs and s = 1 .. max_size.

    ``right=None`` means left with itself, which costs half.

    Returns
    -------
    ndarray of shape (max_size, n_left, n_right)
        The same bits for any ``n_jobs``.
    """
    left = _without_vectors(left, node_kernel)
    columns = left if right is None else _without_vectors(right, node_kernel)
    if _can_count([left, columns], node_kernel, max_size):
        return np.stack([_count_products(left, columns, size) for size in range(1, max_size + 1)])
    sums = np.zeros((max_size, left.n_graphs, columns.n_graphs))
    if len(left.blocks) and len(columns.blocks):
        job = _MatchJob.prepare(left, columns, node_kernel, max_size)
        tiles = cut(columns.offsets, 1 + len(columns.blocks) // TILE_COLUMNS)
        fill_matrix(_tile_sums, job, tiles, sums, symmetric=right is None, n_jobs=n_jobs, label="matchings")
    return sums


def match_self_sums(nodes: Matchables, node_kernel: NodeKernel, max_size: int, *, n_jobs: int | None = None) -> Floats:
    """Return the sums of each graph with itself: the diagonal of :func:`match_sums`, shape (max_size, n_graphs)."""
    nodes = _without_vectors(nodes, node_kernel)
    sums = np.zeros((max_size, nodes.n_graphs))
    if _can_count([nodes], node_kernel, max_size):
        for size in range(1, max_size + 1):
            counted, symmetries = _count(nodes, size)
            sums[size - 1] = (sum_rows(counted.counts, nodes.offsets) / size).power(2) @ symmetries
    elif len(nodes.blocks):
        job = _MatchJob.prepare(nodes, nodes, node_kernel, max_size)
        tiles = cut(nodes.offsets, 1 + len(nodes.blocks) // TILE_COLUMNS)
        results = run_tasks(_own_sums, [(job, span) for span in tiles], n_jobs=n_jobs, label="matchings")
        for span, squares in zip(tiles, results, strict=True):
            sums[:, slice(*span)] = squares
    return sums


def match_contributions(
    left: Matchables,
    right: Matchables,
    node_kernel: NodeKernel,
    size_weights: Floats,
    weights: Floats,
    *,
    n_jobs: int | None = None,
) -> Floats:
    """Return what each node on the left adds to the sums of size_weights[s] weights[i, j] S_s(G, G_i) over the graphs on the right.

    A matching is divided equally among its nodes; all are enumerated unless they can be counted. Shape (n_nodes, n_outputs); the
    same bits for any ``n_jobs``.
    """
    max_size = len(size_weights)
    left, right = _without_vectors(left, node_kernel), _without_vectors(right, node_kernel)
    contributions = np.zeros((len(left.blocks), weights.shape[1]))
    size_weights = size_weights / np.arange(1, max_size + 1)
    spans = cut(left.offsets, 1 + len(left.blocks) // ROWS_PER_TASK)
    if _can_count([left, right], node_kernel, max_size):
        for size in range(1, max_size + 1):
            theirs, symmetries = _count(right, size)
            totals = sum_rows(theirs.counts, right.offsets).multiply(symmetries / size).tocsr().T @ weights
            contributions += size_weights[size - 1] * (_count(left, size)[0].aligned(theirs.codes) @ totals)
        return contributions
    if not len(left.blocks) or not len(right.blocks):
        return contributions
    job = _MatchJob.prepare(left, right, node_kernel, max_size)
    tasks = [(job, rows, size_weights, weights) for rows in spans]
    results = run_tasks(_row_contributions, tasks, n_jobs=n_jobs, label="matchings")
    for (first, last), of_rows in zip(spans, results, strict=True):
        contributions[left.offsets[first] : left.offsets[last]] = of_rows
    return contributions


# -------------------------------------------------------------------- counting


def _can_count(sides: list[Matchables], node_kernel: NodeKernel, max_size: int) -> bool:
    """Check that the node kernel is 1 within each block, and matchings are so small that counts give their sums."""
    return max_size <= 2 and is_one(node_kernel, *(nodes.vectors for nodes in sides))


def _count_products(left: Matchables, right: Matchables, size: int) -> Floats:
    """Return the sum over matchings of this size for each pair of graphs.

    A matching maps a subgraph to an equal one in as many ways as it has symmetries:
    S_s(G, G') = sum over distinct subgraphs P of s nodes: |Aut(P)| N_P(G) N_P(G').
    """
    theirs, symmetries = _count(right, size)
    mine = theirs if left is right else _count(left, size)[0]
    return feature_products(
        sum_rows(mine.aligned(theirs.codes), left.offsets) / size,
        sum_rows(theirs.counts, right.offsets).multiply(symmetries / size).tocsr(),
    )


def _count(nodes: Matchables, size: int) -> tuple[Features, Floats]:
    """Count for each node the subgraphs of one node, or of two with an edge, that contain it; return also their symmetries."""
    n = len(nodes.blocks)
    if size == 1:
        features, firsts = gather(np.arange(n + 1), nodes.blocks, np.ones(n))
        return features, np.ones(len(firsts))
    sources = np.repeat(np.arange(n), np.diff(nodes.indptr))
    forward = nodes.blocks[sources]
    for item in (nodes.arc_codes, nodes.blocks[nodes.indices]):
        forward = mix_codes(forward * GOLDEN + item + GOLDEN)
    backward = forward[np.lexsort((sources, nodes.indices))]  # of the same edge from its other end
    features, firsts = gather(nodes.indptr, np.minimum(forward, backward), np.ones(len(sources)))
    features.counts.sum_duplicates()
    return features, 1.0 + (forward == backward)[firsts]


# -------------------------------------------------------------------- preparation


def _without_vectors(nodes: Matchables, node_kernel: NodeKernel) -> Matchables:
    """Return the same nodes without vectors if the node kernel is 1 for any vectors, however far apart."""
    return replace(nodes, vectors=np.zeros((len(nodes.blocks), 1))) if node_kernel == Gaussian(0.0) else nodes


@dataclass(frozen=True)
class _MatchJob:
    """Everything that the tiles of one computation have in common."""

    layout: Layout
    left: Any  # RowGraphs
    right: Any
    max_size: int
    is_closed: bool  # the closed forms apply
    floor: float  # matchings that weigh no more are left out
    bits: int  # of an arc's code

    @classmethod
    def prepare(cls, left: Matchables, right: Matchables, node_kernel: NodeKernel, max_size: int) -> _MatchJob:
        """Number the kinds of edges consistently on both sides, and choose between closed forms and enumeration."""
        n_kinds, codes = number_alike(left.arc_codes, right.arc_codes)
        bits = max(n_kinds.bit_length(), 1)
        if max_size > 1 and bits * (max_size - 1) > MASK_BITS:
            raise ValueError(
                f"max_size={max_size} is too large for graphs with {n_kinds} kinds of edges: the most that can be "
                f"matched is {1 + MASK_BITS // bits} nodes. Use a smaller max_size, or no edge labels."
            )
        is_closed = max_size <= 3 and n_kinds <= 1
        exponent = 53 * np.log(2) + _log_most_matchings([left, right], max_size)
        layout = Layout.make(left, right, node_kernel, exponent)
        graphs = [
            RowGraphs(
                Rows(side.blocks, side.vectors, side.projections),
                nodes.offsets,
                nodes.indptr,
                nodes.indices - np.repeat(nodes.offsets[:-1], np.diff(nodes.indptr[nodes.offsets])),
                own_codes + 1,
                *_list_triangles(nodes, is_needed=is_closed and max_size == 3),
            )
            for nodes, side, own_codes in zip((left, right), (layout.left, layout.right), codes, strict=True)
        ]
        return cls(
            layout=layout,
            left=graphs[0],
            right=graphs[1],
            max_size=max_size,
            is_closed=is_closed,
            floor=float(np.exp(-exponent)) if isinstance(node_kernel, Gaussian) else 0.0,
            bits=bits,
        )


def _list_triangles(nodes: Matchables, *, is_needed: bool) -> tuple[Ints, Ints]:
    """Return all triangles (a < b < c) of all graphs, and where those of each graph start."""
    starts, triangles = np.zeros(nodes.n_graphs + 1, np.int64), np.empty((0, 3), np.int64)
    if is_needed:
        n_triangles = list_triangles(nodes.offsets, nodes.indptr, nodes.indices, starts, triangles)
        triangles = allocate((n_triangles, 3), np.int64, f"Graph {np.diff(starts).argmax()}: its triangles")
        list_triangles(nodes.offsets, nodes.indptr, nodes.indices, starts, triangles)
    return triangles, starts


def _log_most_matchings(sides: list[Matchables], max_size: int) -> float:
    """Return the logarithm of the largest s! N_s, s <= max_size, where N_s bounds the connected subgraphs of s nodes in any graph.

    A connected subgraph of s + 1 nodes has at least two nodes without which it stays connected, and one of s nodes has at
    most s times the largest degree of neighbors: so N_(s+1) <= N_s s degree / 2.
    """
    log_counts = []
    for nodes in sides:
        degrees = np.diff(nodes.indptr).astype(np.float64)
        log_count = np.log(max(float(np.diff(nodes.offsets).max(initial=1)), 1.0))
        for s in range(1, max_size + 1):
            log_counts.append(log_count + np.log(float(factorial(s))))
            log_count += max(np.log(s * max(float(degrees.max(initial=0.0)), 1.0) / 2), 0.0)
    return float(max(log_counts))


# -------------------------------------------------------------------- one tile


def _tile_sums(job: _MatchJob, span: Span, rows: Span) -> Floats:
    """Return the sums of the first row graphs with those of a span: (sizes, rows, columns)."""
    return _sum_rows(job, span, rows).swapaxes(0, 1)


def _own_sums(job: _MatchJob, span: Span) -> Floats:
    """Return the sums of the graphs of a span, each with itself: one tile each."""
    return np.stack([_sum_rows(job, (g, g + 1), (g, g + 1))[g, :, 0] for g in range(*span)], axis=1)


def _sum_rows(job: _MatchJob, span: Span, rows: Span) -> Floats:
    """Return the sums of some row graphs with a tile, shape (rows[1], sizes, column graphs); rows before are 0."""
    out, tile = np.zeros((rows[1], job.max_size, span[1] - span[0])), _tile(job, span)
    if job.is_closed:
        scratch = _new_closed(job, tile, rows)
        for graphs, limits in _calls(job, tile, rows):
            sum_closed(graphs, job.left, tile, limits, scratch, out)
    else:
        _sum_cliques(job, tile, rows, _new_cliques(job, tile, rows), out)
    return out


def _row_contributions(job: _MatchJob, rows: Span, size_weights: Floats, weights: Floats) -> Floats:
    """Return what each node of some row graphs adds to the weighted sums over all column graphs."""
    offsets, n_columns = job.left.offsets, int(job.right.offsets[-1])
    contributions = np.zeros((int(offsets[rows[1]] - offsets[rows[0]]), weights.shape[1]))
    for span in cut(job.right.offsets, 1 + n_columns // TILE_COLUMNS):
        tile, out = _tile(job, span), np.zeros((len(contributions), span[1] - span[0]))
        scratch = _new_cliques(job, tile, rows)._replace(size_weights=size_weights, contributions=out)
        _sum_cliques(job, tile, rows, scratch, np.zeros((rows[1], job.max_size, span[1] - span[0])))
        contributions += np.einsum("ng,go->no", out, weights[slice(*span)])  # BLAS's bits depend on its threads
    return contributions


def _sum_cliques(job: _MatchJob, tile: Any, rows: Span, scratch: Any, out: Floats) -> None:
    for (first, last), limits in _calls(job, tile, rows):
        start = job.left.offsets[first] - job.left.offsets[rows[0]]
        of_span = scratch._replace(contributions=scratch.contributions[start:])
        state = np.array([first, first, 0])
        while state[1] < last:
            sum_cliques(state, last, STEPS_PER_CALL, job.left, tile, limits, of_span, out)


def _calls(job: _MatchJob, tile: Any, rows: Span) -> Iterator[tuple[Span, Any]]:
    """Yield spans of row graphs for one call of a compiled loop each, with their node kernel."""
    offsets = job.left.offsets
    with progress(int(offsets[rows[1]] - offsets[rows[0]]), "matchings") as advance:  # shown if one tile takes long
        for graphs, kernel in job.layout.calls(rows, tile.columns):
            yield graphs, Limits(kernel, job.floor, job.bits)
            advance(int(offsets[graphs[1]] - offsets[graphs[0]]))


def _tile(job: _MatchJob, span: Span) -> Any:
    """Return the nodes of some consecutive graphs as columns, and their edges and triangles by column."""
    order, columns = job.layout.columns(span)
    graphs, start = job.right, int(job.right.offsets[span[0]])
    position = np.empty(len(order), np.int64)
    position[order - start] = np.arange(len(order))
    degrees = np.diff(graphs.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    arcs = np.arange(indptr[-1]) + np.repeat(graphs.indptr[order] - indptr[:-1], degrees)
    first_nodes = graphs.offsets[span[0] + columns.graphs] - start  # of the graph of each column
    triangles = graphs.triangles[graphs.triangle_starts[span[0]] : graphs.triangle_starts[span[1]]]
    triangles = np.sort(position[triangles - start], axis=1)  # by first column: those near a row are found at once
    return Tile(
        columns=columns,
        indptr=indptr,
        indices=position[graphs.indices[arcs] + np.repeat(first_nodes, degrees)],
        codes=graphs.codes[arcs],
        triangles=np.ascontiguousarray(triangles[np.argsort(triangles[:, 0], kind="stable")].T),
    )


def _new_closed(job: _MatchJob, tile: Any, rows: Span) -> Any:
    largest, n_columns, purpose = _largest(job, tile, rows)
    require(16.0 * largest * n_columns, purpose)
    return Closed(
        np.empty((largest, n_columns)),
        np.empty((largest, 2), np.int64),
        np.empty((largest if job.max_size > 1 else 0, n_columns)),
        *(np.empty(n_columns) for _ in range(5)),
    )


def _new_cliques(job: _MatchJob, tile: Any, rows: Span) -> Any:
    (largest, n_columns, purpose), size = _largest(job, tile, rows), job.max_size
    nodes = slice(int(job.left.offsets[rows[0]]), int(job.left.offsets[rows[1]]) + 1)
    degrees = [int(np.diff(indptr).max(initial=0)) for indptr in (job.left.indptr[nodes], tile.indptr)]
    room = degrees[0] * degrees[1] * (size * (size + 1) // 2)
    require(8.0 * (largest * n_columns + 2.0 * room), purpose)
    return Cliques(
        kappa=np.empty((largest, n_columns)),
        windows=np.empty((largest, 2), np.int64),
        masks=np.zeros(largest, np.int64),
        column_masks=np.zeros(n_columns, np.int64),
        listed=allocate((room, 2), np.int64, purpose),
        stack=np.empty((size, 4), np.int64),
        weights=np.empty(size),
        totals=np.empty(size),
        size_weights=np.empty(0),
        contributions=np.empty((0, int(tile.columns.graphs.max(initial=0)) + 1)),
    )


def _largest(job: _MatchJob, tile: Any, rows: Span) -> tuple[int, int, str]:
    """Return the nodes of the largest row graph, the columns of the tile, and the purpose of memory for both."""
    sizes = np.diff(job.left.offsets[rows[0] : rows[1] + 1])
    return int(sizes.max(initial=0)), len(tile.columns.graphs), f"Graph {rows[0] + sizes.argmax()}: its matchings"


# -------------------------------------------------------------------- compiled: triangles and the node kernel


@jit
def list_triangles(offsets, indptr, indices, starts, triangles):
    """Write all triangles (a < b < c), graph by graph, into ``triangles`` (n, 3) as far as it has room; return their number.

    Those of graph g are starts[g] .. starts[g + 1] - 1.
    """
    used = 0
    for g in range(len(offsets) - 1):
        for a in range(offsets[g], offsets[g + 1]):
            for i in range(indptr[a], indptr[a + 1]):
                b = indices[i]
                x, y = i + 1, indptr[b]
                while b > a and x < indptr[a + 1] and y < indptr[b + 1]:
                    c, d = indices[x], indices[y]
                    if c == d:
                        if used < len(triangles):
                            triangles[used, 0], triangles[used, 1], triangles[used, 2] = a, b, c
                        used += 1
                    x += c <= d
                    y += d <= c
        starts[g + 1] = used
    return used


@contracted
def _fill_kappa(g, first_graph, graphs, tile, limits, scratch):
    """Fill kappa (rows of graph g x columns) and its windows; kernel values begin with the rows of ``first_graph``."""
    first, last = graphs.offsets[g], graphs.offsets[g + 1]
    kappa, windows = scratch.kappa, scratch.windows
    kernel_rows(first, last, graphs.offsets[first_graph], graphs.rows, tile.columns, limits.kernel, kappa, windows)
    for v in range(last - first):
        clear(kappa[v, : windows[v, 0]])
        clear(kappa[v, windows[v, 1] :])


# -------------------------------------------------------------------- compiled: closed forms, up to three nodes


@contracted
def _add_neighbors(source, n_rows, indptr, indices, target):
    """Set target[v, j] to the sum of source[v] over the neighbors of j, for v < n_rows.

    Four rows at a time, because finding the neighbors dominates the cost. The last row is repeated if there are fewer.
    """
    end = n_rows - 1
    for v in range(0, n_rows, 4):
        v1, v2, v3 = min(v + 1, end), min(v + 2, end), min(v + 3, end)
        s0, s1, s2, s3 = source[v], source[v1], source[v2], source[v3]
        for j in range(len(indptr) - 1):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(indptr[j], indptr[j + 1]):
                k = indices[i]
                a += s0[k]
                b += s1[k]
                c += s2[k]
                d += s3[k]
            target[v, j], target[v1, j], target[v2, j], target[v3, j] = a, b, c, d


@contracted
def _add_paths(kappa, right, left, both, two, three):
    """Add what one row gives to the sums of its columns: pairs, and paths of three nodes whose ends may be adjacent."""
    for j in range(len(kappa)):
        k, m, n, w = kappa[j], right[j], left[j], both[j]
        two[j] += k * w
        three[j] += k * w * (k + w) - m * n * (m + n)


@contracted
def _open_column_paths(kappa, left, near, span, triangles, three):
    """Subtract one row's paths whose ends are adjacent in the columns' graphs: two for each triangle there.

    Each has a column in the row's own window, and all three in the span of its and its neighbors' windows.
    """
    (first, last), firsts = span, triangles[0]
    for i in range(first_from(first, 0, len(firsts), firsts), first_from(near[1], 0, len(firsts), firsts)):
        a, b, c = firsts[i], triangles[1, i], triangles[2, i]
        if c < near[0] or c >= last:
            continue
        mixed = kappa[b] * left[c] + kappa[c] * left[b]
        three[a] -= 2.0 * (kappa[a] * (left[b] * left[c] - mixed) + left[a] * (mixed - kappa[b] * kappa[c]))


@contracted
def _add_triangle(ka, kb, kc, ma, mb, mc, window, triangles, three):
    """Subtract the paths within one triangle of the row's graph, and add that triangle with all of the columns'.

    The first as in ``_open_column_paths``, for all columns at once. A pair of triangles adds the permanent of kappa between them,
    times 8: the six bijections count once as triangles; as paths, each was counted once and subtracted twice for each of the
    three nodes that may be in the middle, and adding three corrects that. Sums are halved later: 2 (1 + 3) = 8. Triangles whose
    first column is outside the window (first, end) add nothing.
    """
    (first, last, end), firsts = window, triangles[0]
    for j in range(first, last):
        mixed = kb[j] * mc[j] + kc[j] * mb[j]
        three[j] -= 2.0 * (ka[j] * (mb[j] * mc[j] - mixed) + ma[j] * (mixed - kb[j] * kc[j]))
    for i in range(first_from(first, 0, len(firsts), firsts), first_from(end, 0, len(firsts), firsts)):
        x, y, z = firsts[i], triangles[1, i], triangles[2, i]
        three[x] += 8.0 * (
            ka[x] * (kb[y] * kc[z] + kb[z] * kc[y])
            + ka[y] * (kb[x] * kc[z] + kb[z] * kc[x])
            + ka[z] * (kb[x] * kc[y] + kb[y] * kc[x])
        )


@jit
def _add_by_graph(sums, factor, column_graphs, totals):
    """Add factor * sums[j] to totals[graph of j]."""
    for j in range(len(sums)):
        totals[column_graphs[j]] += factor * sums[j]


@pasted  # named tuples are expensive to pass, row by row
def _sum_row(v, arcs, tile, scratch):
    """Add what one row of a graph gives to the sums of the columns, without its graph's triangles."""
    indptr, indices = arcs
    windows = scratch.windows
    if indptr[v] == indptr[v + 1] or windows[v, 0] == windows[v, 1]:
        return
    first, last = windows[v, 0], windows[v, 1]
    for i in range(indptr[v], indptr[v + 1]):
        low, high = windows[indices[i], 0], windows[indices[i], 1]
        if low < high:
            first, last = min(first, low), max(last, high)
    left, both = scratch.left[first:last], scratch.both[first:last]
    clear(left)
    clear(both)
    for i in range(indptr[v], indptr[v + 1]):
        u = indices[i]
        low, high = windows[u, 0], windows[u, 1]
        add_scaled(1.0, scratch.kappa[u, low:high], scratch.left[low:high])
        add_scaled(1.0, scratch.right[u, first:last], both)
    two, three = scratch.two[first:last], scratch.three[first:last]
    _add_paths(scratch.kappa[v, first:last], scratch.right[v, first:last], left, both, two, three)
    _open_column_paths(scratch.kappa[v], scratch.left, windows[v], (first, last), tile.triangles, scratch.three)


@pasted
def _sum_triangle(a, b, c, tile, scratch):
    """Add what one triangle of the row's graph gives; outside the windows of its nodes it gives nothing."""
    wa, wb, wc = scratch.windows[a], scratch.windows[b], scratch.windows[c]
    if wa[0] == wa[1] or wb[0] == wb[1] or wc[0] == wc[1]:
        return
    # The first column of a triangle is not after the window that ends first: one of its nodes is matched with that row.
    window = (min(wa[0], wb[0], wc[0]), max(wa[1], wb[1], wc[1]), min(wa[1], wb[1], wc[1]))
    _add_triangle(
        scratch.kappa[a], scratch.kappa[b], scratch.kappa[c], scratch.right[a], scratch.right[b], scratch.right[c], window,
        tile.triangles, scratch.three,
    )  # fmt: skip


@contracted
def sum_closed(span, graphs, tile, limits, scratch, out):
    """Set out[graph of row, s, graph of column] to S_(s+1), the sum over matchings of s + 1 nodes, s < out.shape[1] <= 3.

    With the node kernel kappa (rows x columns), the adjacency matrices A of the row's and B of the column's graph, M = kappa B,
    N = A kappa, W = A kappa B, all products elementwise:

    - S_1 = sum kappa, S_2 = 1/2 sum kappa W;
    - paths u - v - w, their ends adjacent or not: 1/2 sum (kappa W^2 - N M^2 - M N^2 + W kappa^2);
    - those with ends adjacent in the row's graph: one sum over columns for each of its triangles (a, b, c), of
      kappa_a M_b M_c + ... - kappa_a kappa_b M_c - ...; the same with N for the columns' triangles;
    - triangles: the permanent of kappa between each two.
    """
    for g in range(span[0], span[1]):
        first, n, totals = graphs.offsets[g], graphs.offsets[g + 1] - graphs.offsets[g], out[g]
        _fill_kappa(g, span[0], graphs, tile, limits, scratch)
        clear(scratch.one)
        for v in range(n):
            low, high = scratch.windows[v, 0], scratch.windows[v, 1]
            add_scaled(1.0, scratch.kappa[v, low:high], scratch.one[low:high])
        _add_by_graph(scratch.one, 1.0, tile.columns.graphs, totals[0])
        if len(totals) == 1:
            continue
        clear(scratch.two)
        clear(scratch.three)
        _add_neighbors(scratch.kappa, n, tile.indptr, tile.indices, scratch.right)
        for v in range(n):
            _sum_row(v, (graphs.indptr[first:], graphs.indices), tile, scratch)
        for i in range(graphs.triangle_starts[g], graphs.triangle_starts[g + 1]):
            a, b, c = graphs.triangles[i, 0] - first, graphs.triangles[i, 1] - first, graphs.triangles[i, 2] - first
            _sum_triangle(a, b, c, tile, scratch)
        _add_by_graph(scratch.two, 0.5, tile.columns.graphs, totals[1])
        if len(totals) > 2:
            _add_by_graph(scratch.three, 0.5, tile.columns.graphs, totals[2])


# -------------------------------------------------------------------- compiled: enumeration, any number of nodes

in_loop = inlined(fastmath={"contract"})  # calls with named tuples would take most of the time


@inlined
def _mark(v, mark, shift, arcs, masks):
    """Mark v as matched, at itself and at each neighbor with the kind of their edge; a second call removes the marks."""
    indptr, indices, codes = arcs
    masks[v] ^= mark
    for i in range(indptr[v], indptr[v + 1]):
        masks[indices[i]] ^= codes[i] << shift


@in_loop
def _list_new(pair, shift, root, sides, scratch, used):
    """List the pairs of neighbors of a pair that no earlier member is adjacent to, after those already listed; return their number."""
    (indptr, indices, codes), (column_indptr, column_indices, _) = sides
    u, j = pair
    for x in range(indptr[u], indptr[u + 1]):
        w, alone = indices[x], codes[x] << shift
        if w <= root or scratch.masks[w] != alone:
            continue
        for y in range(column_indptr[j], column_indptr[j + 1]):
            i = column_indices[y]
            if scratch.column_masks[i] == alone and scratch.kappa[w, i] != 0.0:
                scratch.listed[used, 0], scratch.listed[used, 1] = w, i
                used += 1
    return used


@in_loop
def _join(s, root, bits, sides, scratch):
    """Make the pair stack[s, :2] the s-th of the matching, and list the pairs that may come next; return how many are listed.

    These are the earlier candidates that still fit, and those that have become adjacent.
    """
    stack, listed, masks, column_masks = scratch.stack, scratch.listed, scratch.masks, scratch.column_masks
    u, i = stack[s, 0], stack[s, 1]
    used = stack[s - 1, 3] if s > 0 else 0
    stack[s, 2] = used
    _mark(u, _ROW_MEMBER, bits * s, sides[0], masks)
    _mark(i, _COLUMN_MEMBER, bits * s, sides[1], column_masks)
    for c in range(stack[s - 1, 2], stack[s - 1, 3]) if s > 0 else range(0):
        if masks[listed[c, 0]] == column_masks[listed[c, 1]]:
            listed[used, 0], listed[used, 1] = listed[c, 0], listed[c, 1]
            used += 1
    stack[s, 3] = _list_new((u, i), bits * s, root, sides, scratch, used)
    return stack[s, 3]


@in_loop
def _advance(s, limits, sides, scratch):
    """Choose the next pair to try, from this matching or the nearest shorter one that has any left, and its weight.

    Returns the index that the pair takes; 0 if there is none.
    """
    stack = scratch.stack
    while s >= 0:
        while stack[s, 2] < stack[s, 3]:
            u, i = scratch.listed[stack[s, 2], 0], scratch.listed[stack[s, 2], 1]
            stack[s, 2] += 1
            weight = scratch.weights[s] * scratch.kappa[u, i]
            if abs(weight) > limits.floor:
                stack[s + 1, 0], stack[s + 1, 1], scratch.weights[s + 1] = u, i, weight
                return s + 1
        _mark(stack[s, 0], _ROW_MEMBER, limits.bits * s, sides[0], scratch.masks)
        _mark(stack[s, 1], _COLUMN_MEMBER, limits.bits * s, sides[1], scratch.column_masks)
        s -= 1
    return 0


@in_loop
def _contribute(s, amount, stack, contributions):
    """Add an amount to the contribution of each of the first s + 1 rows of the current matching."""
    for m in range(s + 1):
        contributions[stack[m, 0]] += amount


@in_loop
def _finish(s, used, size_weight, scratch, contributions):
    """Add all matchings with one more pair, which complete them: nothing follows, so nothing is marked."""
    total, weight = 0.0, scratch.weights[s]
    for c in range(scratch.stack[s, 2], used):
        u, i = scratch.listed[c, 0], scratch.listed[c, 1]
        total += scratch.kappa[u, i]
        if len(contributions):
            contributions[u] += size_weight * weight * scratch.kappa[u, i]
    scratch.totals[s + 1] += weight * total
    if len(contributions):
        _contribute(s, size_weight * weight * total, scratch.stack, contributions)
    scratch.stack[s, 2] = used


@pasted  # named tuples are expensive to pass, row by row
def _enumerate(v, j, limits, sides, scratch, contributions):
    """Set totals to the sums over all connected matchings whose first pair is (v, j), by size; return the number of steps.

    The rows stack[s] = (u, i, start, end): the current matching has (u, i) as its s-th pair, and listed[start:end] are the
    pairs that may extend its first s + 1 pairs and have not been tried yet; dropping those tried keeps each matching from
    being visited twice (the ESU scheme, on pairs of nodes). The masks hold the members that each node is adjacent to: a
    pair may join if the masks of its two nodes are equal.
    """
    stack, totals, size_weights = scratch.stack, scratch.totals, scratch.size_weights
    clear(totals)
    stack[0, 0], stack[0, 1] = v, j
    totals[0], scratch.weights[0] = scratch.kappa[v, j], scratch.kappa[v, j]
    if len(contributions):
        contributions[v] += size_weights[0] * scratch.kappa[v, j]
    s, last, steps = 0, len(totals) - 1, 1
    while s < last:
        used = _join(s, v, limits.bits, sides, scratch)
        steps += 1 + used - stack[s, 2]
        if s == last - 1:
            _finish(s, used, size_weights[last] if len(contributions) else 0.0, scratch, contributions)
        s = _advance(s, limits, sides, scratch)
        if s == 0:
            break
        totals[s] += scratch.weights[s]
        if len(contributions):
            _contribute(s, size_weights[s] * scratch.weights[s], stack, contributions)
    return steps


@contracted
def sum_cliques(state, last_graph, budget, graphs, tile, limits, scratch, out):
    """Add S_(s+1), the sum over connected matchings of s + 1 nodes, to out[graph of row, s, graph of column], s < out.shape[1].

    ``state`` is (first graph, graph, row): after about ``budget`` steps, it holds the position to resume at, unless the last
    graph is done. scratch.contributions, which begin with the rows of the first graph, get size_weights[s] times the sum over
    those that contain the row.
    """
    first_graph, g, v = state[0], state[1], state[2]
    while g < last_graph and budget >= 0:
        first, n = graphs.offsets[g], graphs.offsets[g + 1] - graphs.offsets[g]
        sides = (
            (graphs.indptr[first:], graphs.indices, graphs.codes),
            (tile.indptr, tile.indices, tile.codes),
        )
        if v == 0:
            _fill_kappa(g, first_graph, graphs, tile, limits, scratch)
        while v < n and budget >= 0:
            for j in range(scratch.windows[v, 0], scratch.windows[v, 1]):
                if abs(scratch.kappa[v, j]) > limits.floor:
                    graph = tile.columns.graphs[j]
                    contributions = scratch.contributions[first - graphs.offsets[first_graph] :, graph]
                    budget -= _enumerate(v, j, limits, sides, scratch, contributions)
                    for s in range(out.shape[1]):
                        out[g, s, graph] += scratch.totals[s]
            budget -= len(tile.columns.graphs)
            v += 1
        if v == n:
            g, v = g + 1, 0
    state[1], state[2] = g, v
