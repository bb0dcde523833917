"""Sums over pairs of shortest paths, exactly, by way of the nodes at their ends.

    K(G, G') = sum over u, v in G and u', v' in G' of k(u, u') k(v, v') k_len(d(u, v), d(u', v'))

Taken literally, this costs n^2 n'^2 for two graphs. With A the node kernel of the nodes u of one graph with the nodes u' of
another, and S_d(u, v) the number of pairs (u, v) that are d apart, it is the sum of all entries of A o (S_d A S'_d), over all d,
and costs n^2 n' + n n'^2. It is taken row by row: for one u, ``reached[d]`` is row u of S_d A, and then each u' collects
``reached`` at its own partners, times A(u, u'). What else makes it fast:

- nodes of one graph with equal block and equal vector are joined into one group, and their pairs counted;
- where edges have no direction, a pair (u', v') and its reverse count the same, so that only one of them is looked up;
- a Gaussian node kernel is skipped where that changes no entry of the normalized matrix by more than rounding does.

For the last point, let c_d be the number of pairs (u, v) of G at distance d, and L the largest row sum of k_len. The terms that
have a node kernel below eps sum to at most 2 eps L |c| |c'|, while K(G, G) is at least k_len(0) sum_d c_d >= k_len(0) |c|^2 / max
c_d, from the pairs of each path with itself. With eps = 2^-54 k_len(0) / (L max c_d) the terms that are skipped therefore sum to
at most 2^-53 sqrt(K(G, G) K(G', G')).
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treegram._core.jit import contracted, jit
from treegram._core.machine import require
from treegram._core.parallel import progress, run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.tiles import (
    Layout,
    Span,
    add_scaled,
    clear,
    cut,
    diagonal,
    fill_matrix,
    kernel_rows,
    own_blocks,
)
from treegram.structure.distances import Distances
from treegram.structure.hashing import equal_rows

TILE_COLUMNS = 512  # the rows of one graph, their kernel with a tile and its sums then stay in the second-level cache
STEPS_PER_CALL = 1 << 28  # compiled code cannot be interrupted: this keeps each call well under a second

# Partners of each row: those of row u are starts[u] .. starts[u + 1] - 1, by length.
Partners = namedtuple("Partners", "starts partners lengths counts")
# For each column of a tile the spots of ``reached`` where its partners are: length * n_columns + column, their weights, and
# whether all of these are 1. The spots of column j begin at stops[j, 0]; those of length at most d end before stops[j, d].
Listed = namedtuple("Listed", "spots weights is_plain stops")
# For one row graph: the node kernel of its rows with all columns, windows, and sums by length, also as one long row.
EndScratch = namedtuple("EndScratch", "kernel windows reached blurred long_reached long_blurred")


@dataclass(frozen=True)
class PathEnds:
    """The groups of nodes to sum over, those of ``n_graphs`` graphs, in the order of the graphs, and their distances."""

    n_graphs: int
    graph_ids: Ints
    blocks: Hashes  # the kernel of two nodes is 0 where their blocks differ
    vectors: Floats  # (n_groups, n_attributes)
    distances: Distances

    @property
    def offsets(self) -> Ints:
        """Graph g has the groups offsets[g] .. offsets[g + 1] - 1."""
        return np.searchsorted(self.graph_ids, np.arange(self.n_graphs + 1))

    def reversed(self) -> PathEnds:
        """Return the same paths from their ends to their starts."""
        return replace(self, distances=self.distances.reversed())


def group_equal(graph_ids: Ints, blocks: Hashes, vectors: Floats) -> tuple[Ints, Ints]:
    """Number the distinct (graph, block, vector), graph by graph; return each node's number and one node of each."""
    numbers, first = equal_rows(vectors, graph_ids, blocks)
    # Groups that are near in space are then near in memory: what is gathered from them is in cache.
    order = np.lexsort((*vectors[first].T, blocks[first], graph_ids[first]))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks[numbers], first[order]


def path_sums(
    left: PathEnds,
    right: PathEnds | None,
    node_kernel: NodeKernel,
    length_weights: Floats,
    *,
    n_jobs: int | None = None,
) -> Floats:
    """Return one sum per pair of graphs; ``right=None`` means left with itself, which costs half: only the upper half is filled.

    ``length_weights[i]`` is the kernel of two lengths that differ by i, and 0 beyond its end. The result has the same bits
    for any ``n_jobs``.
    """
    columns = left if right is None else right
    sums = np.zeros((left.n_graphs, columns.n_graphs))
    if len(left.graph_ids) and len(columns.graph_ids):
        job = _PathJob.prepare(left, columns, node_kernel, length_weights)
        tiles = cut(job.layout.right.offsets, 1 + len(columns.graph_ids) // TILE_COLUMNS)
        fill_matrix(_tile_sums, job, tiles, sums, symmetric=right is None, n_jobs=n_jobs, label="path sums")
    return sums


def path_self_sums(
    ends: PathEnds, node_kernel: NodeKernel, length_weights: Floats, *, n_jobs: int | None = None
) -> Floats:
    """Return the sum of each graph with itself: the diagonal of :func:`path_sums`."""
    if not len(ends.graph_ids):
        return np.zeros(ends.n_graphs)
    alone = replace(ends, blocks=own_blocks(ends.graph_ids, ends.blocks))
    job = _PathJob.prepare(alone, alone, node_kernel, length_weights)
    return diagonal(_tile_sums, job, n_jobs=n_jobs, label="path sums")


def path_contributions(
    ends: PathEnds,
    others: PathEnds,
    *,
    node_kernel: NodeKernel,
    length_weights: Floats,
    weights: Floats,
    n_jobs: int | None = None,
) -> Floats:
    """Return what the paths that start at each group add to the sums of weights[i, j] K(G, G_i) over the other graphs.

    Shape (n_groups, n_outputs). Groups are the columns here, each counted as a graph of its own.
    """
    contributions = np.zeros((len(ends.graph_ids), weights.shape[1]))
    if len(ends.graph_ids) and len(others.graph_ids):
        job = replace(_PathJob.prepare(others, ends, node_kernel, length_weights), both_ways=False)
        tiles = cut(job.layout.right.offsets, 1 + len(ends.graph_ids) // TILE_COLUMNS)
        tasks = [(job, weights, tile) for tile in tiles]
        for order, sums in run_tasks(_tile_contributions, tasks, n_jobs=n_jobs, label="path sums"):
            contributions[order] = sums
    return contributions


# -------------------------------------------------------------------- preparation


@dataclass(frozen=True)
class _PathJob:
    """Everything that the tiles of one computation have in common."""

    layout: Layout
    row_partners: Any  # Partners
    column_partners: Any
    first_equal: Ints  # for each column: the first of its equals, next to each other if nodes are not joined
    length_weights: Floats
    both_ways: bool

    @classmethod
    def prepare(cls, left: PathEnds, right: PathEnds, node_kernel: NodeKernel, length_weights: Floats) -> _PathJob:
        row_sum = (2.0 * length_weights.sum() - length_weights[0]) / length_weights[0]
        most_pairs = max(_most_pairs(left), _most_pairs(right))
        return cls(
            layout=Layout.make(left, right, node_kernel, 54 * np.log(2) + np.log(row_sum * most_pairs)),
            row_partners=_partners(left.distances),
            column_partners=_partners(right.distances),
            first_equal=_first_equal(right),
            length_weights=length_weights,
            both_ways=right.distances.both_ways,
        )


def _partners(distances: Distances) -> Any:
    return Partners(distances.starts, distances.partners, distances.lengths, distances.counts)


def _first_equal(ends: PathEnds) -> Ints:
    """Return for each group the first of the run of groups with its graph, block and vector."""
    is_new = np.ones(len(ends.graph_ids), bool)
    is_new[1:] = (ends.vectors[1:] != ends.vectors[:-1]).any(axis=1)
    for key in (ends.graph_ids, ends.blocks):
        is_new[1:] |= key[1:] != key[:-1]
    return np.maximum.accumulate(np.where(is_new, np.arange(len(is_new)), 0))


def _most_pairs(ends: PathEnds) -> float:
    """Return the largest number of pairs of nodes of one graph that are equally far apart, at least 1."""
    distances = ends.distances
    graph_ids = np.repeat(ends.graph_ids, np.diff(distances.starts))
    keys = graph_ids * (int(distances.lengths.max(initial=0)) + 1) + distances.lengths
    return float(np.bincount(keys, weights=distances.counts).max(initial=1.0))


# -------------------------------------------------------------------- one tile


def _tile_contributions(job: _PathJob, weights: Floats, tile: Span) -> tuple[Ints, Floats]:
    """Return the groups of a tile, and the weighted sums of each of them with all row graphs."""
    order, columns = job.layout.columns(tile)
    alone = columns._replace(graphs=np.arange(len(order)))
    sums = _sum_columns(job, order, alone, (0, len(job.layout.left.offsets) - 1), len(order))
    return order, sums.T @ weights


def _tile_sums(job: _PathJob, tile: Span, graphs: Span) -> Floats:
    """Return the sums of some consecutive graphs on the left with those of a tile on the right."""
    return _sum_columns(job, *job.layout.columns(tile), graphs, tile[1] - tile[0])


def _sum_columns(job: _PathJob, order: Ints, columns: Any, graphs: Span, n_sums: int) -> Floats:
    """Return the sums of some consecutive graphs on the left with the ``n_sums`` graphs that the columns belong to."""
    paths = (job.row_partners, _list_partners(job, order), job.length_weights)
    offsets, out = job.layout.left.offsets, np.zeros((graphs[1] - graphs[0], n_sums))
    scratch = _new_scratch(job, graphs, len(order), paths[1].stops.shape[1] - 1)
    with progress(int(offsets[graphs[1]] - offsets[graphs[0]]), "path sums") as advance:  # shown if one tile takes long
        for (start, stop), kernel in job.layout.calls(graphs, columns):
            state = np.array([start, offsets[start], start, stop, STEPS_PER_CALL])
            while state[1] < offsets[stop]:
                row = state[1]
                sum_tile(state, offsets, job.layout.rows, columns, kernel, paths, scratch, out[start - graphs[0] :])
                advance(int(state[1] - row))
    return out * 2.0 if job.both_ways else out


def _list_partners(job: _PathJob, columns: Ints) -> Any:
    """Return the spots where the columns of a tile find their partners."""
    partners, n = job.column_partners, len(columns)
    first = int(columns.min()) if n else 0
    inside = slice(int(partners.starts[first]), int(partners.starts[first + n]))
    room, longest = inside.stop - inside.start, int(partners.lengths[inside].max(initial=0))
    listed = Listed(
        spots=np.empty(room, np.uint32),
        weights=np.empty(room),
        is_plain=np.empty(n, np.bool_),
        stops=np.empty((n, longest + 1), np.uint64),
    )
    list_partners(columns, np.argsort(columns), first, partners, job.first_equal, job.both_ways, listed)
    return listed


def _new_scratch(job: _PathJob, graphs: Span, n_columns: int, longest: int) -> Any:
    """Return room for the node kernel of any of the row graphs with a tile, and for the sums over its paths."""
    sizes = np.diff(job.layout.left.offsets[graphs[0] : graphs[1] + 1])
    largest, rows = int(sizes.max(initial=0)), 2 * longest + len(job.length_weights) + 1
    require(8.0 * n_columns * (largest + rows), f"Graph {graphs[0] + sizes.argmax()}: the sums over its paths")
    reached = np.empty((longest + len(job.length_weights), n_columns))
    blurred = np.empty((longest + 1, n_columns))
    return EndScratch(
        kernel=np.empty((largest, n_columns)),
        windows=np.empty((largest, 2), np.int64),
        reached=reached,
        blurred=blurred,
        long_reached=reached.reshape(-1),
        long_blurred=blurred.reshape(-1),
    )


# -------------------------------------------------------------------- compiled

# Unsigned indices are faster: they are never counted from the end.
_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@jit
def list_partners(columns, positions, first, partners, same, halved, listed):
    """Fill the lists of a tile whose column j is the group columns[j], while group first + i is its column positions[i].

    Partners b with equal same[b] collect the same, and are listed once, with their number as weight. With ``halved``, a pair
    that counts in both directions is listed in one.
    """
    starts, n, longest, used = partners.starts, len(columns), listed.stops.shape[1] - 1, 0
    for j in range(n):
        group, d, is_plain, last_spot = columns[j], 0, True, -1
        for i in range(starts[group], starts[group + 1]):
            while d < partners.lengths[i]:
                listed.stops[j, d] = used
                d += 1
            partner, weight = partners.partners[i], partners.counts[i]
            if not halved or partner >= group:
                weight = 0.5 * weight if halved and partner == group else weight
                spot = partners.lengths[i] * n + positions[same[partner] - first]
                if spot == last_spot:
                    listed.weights[used - 1] += weight
                    is_plain = False
                    continue
                last_spot = spot
                listed.spots[used] = spot
                listed.weights[used] = weight
                is_plain = is_plain and weight == 1.0
                used += 1
        listed.is_plain[j] = is_plain
        while d <= longest:
            listed.stops[j, d] = used
            d += 1


@contracted
def _reach_out(partners, lengths, counts, first, top, kernel, windows, reached):
    """Set reached[d] to the sum of counts times kernel rows over all partners that are d away, for 1 <= d <= top."""
    for d in range(1, top + 1):
        clear(reached[d])
    for i in range(len(partners)):
        if lengths[i] > top:
            break
        b = partners[i] - first
        low, high = windows[b, 0], windows[b, 1]
        add_scaled(counts[i], kernel[b, low:high], reached[lengths[i], low:high])


@contracted
def _blur(reached, top, length_weights, new_top, blurred):
    """Set blurred[d] to the sum of length_weights[|d - e|] reached[e] over 1 <= e <= top, for 1 <= d <= new_top."""
    n_weights = len(length_weights)
    for d in range(1, new_top + 1):
        clear(blurred[d])
        for e in range(max(1, d - n_weights + 1), min(top, d + n_weights - 1) + 1):
            add_scaled(length_weights[abs(d - e)], reached[e], blurred[d])


@contracted
def _collect(spots, start, stop, reached):
    """Return the sum of ``reached`` at the spots start .. stop - 1: four parallel sums, as each addition waits for the previous one."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    while start + _4 <= stop:
        s0 += reached[spots[start]]
        s1 += reached[spots[start + _1]]
        s2 += reached[spots[start + _2]]
        s3 += reached[spots[start + _3]]
        start += _4
    while start < stop:
        s0 += reached[spots[start]]
        start += _1
    return (s0 + s1) + (s2 + s3)


@contracted
def _collect_weighted(spots, weights, start, stop, reached):
    """Do the same as ``_collect``, with each value times its weight."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    while start + _4 <= stop:
        s0 += weights[start] * reached[spots[start]]
        s1 += weights[start + _1] * reached[spots[start + _1]]
        s2 += weights[start + _2] * reached[spots[start + _2]]
        s3 += weights[start + _3] * reached[spots[start + _3]]
        start += _4
    while start < stop:
        s0 += weights[start] * reached[spots[start]]
        start += _1
    return (s0 + s1) + (s2 + s3)


@contracted
def _meet(kernel, window, top, spots, weights, is_plain, stops, reached, graphs, totals):
    """Add kernel[j] times what column j collects from lengths up to ``top`` to totals[graph of j], for the j of a window."""
    for j in range(window[0], window[1]):
        if is_plain[j]:
            collected = _collect(spots, stops[j, 0], stops[j, top], reached)
        else:
            collected = _collect_weighted(spots, weights, stops[j, 0], stops[j, top], reached)
        totals[graphs[j]] += kernel[j] * collected


@contracted
def sum_tile(state, offsets, rows, columns, kernel, paths, scratch, out):
    """Add the sums of the graphs g = base .. last - 1 in rows with one tile to out[g - base, graph of column], row by row.

    ``state`` is (graph, row, base, last, budget). After about ``budget`` steps it holds the position to resume at, and ``scratch``
    the node kernel of that graph. ``paths`` is (partners of the rows, spots of the columns, weights of the lengths): the kernel
    of two lengths that differ by i is weights[i]. Named tuples are unpacked first: each attribute access costs a reference count.
    """
    g, u, base, last_graph, budget = state[0], state[1], state[2], state[3], state[4]
    starts, partners, lengths, counts = paths[0]
    spots, weights, is_plain, stops = paths[1]
    length_weights, graphs = paths[2], columns.graphs
    values, windows, reached, blurred, long_reached, long_blurred = scratch
    n_columns, longest, n_weights, steps = len(graphs), stops.shape[1] - 1, len(length_weights), 0
    is_blurred = n_weights > 1 or length_weights[0] != 1.0
    while g < last_graph:
        first, last = offsets[g], offsets[g + 1]
        if u == first:
            kernel_rows(first, last, offsets[base], rows, columns, kernel, values, windows)
        while u < last and steps <= budget:
            start, stop = starts[u], starts[u + 1]
            steps += (stop - start) * n_columns + len(spots)
            if start < stop:
                top = min(np.int64(lengths[stop - 1]), longest + n_weights - 1)
                _reach_out(
                    partners[start:stop], lengths[start:stop], counts[start:stop], first, top, values, windows, reached
                )
                spread = long_reached
                if is_blurred:
                    new_top = min(top + n_weights - 1, longest)
                    _blur(reached, top, length_weights, new_top, blurred)
                    spread, top = long_blurred, new_top
                window = (windows[u - first, 0], windows[u - first, 1])
                _meet(
                    values[u - first], window, top, spots, weights, is_plain, stops, spread, graphs,
                    out[g - base],
                )  # fmt: skip
            u += 1
        if u < last:
            break
        g += 1
    state[0], state[1] = g, u
