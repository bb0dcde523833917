"""Sums over pairs of shortest paths, exactly, by way of the nodes at their ends.

    K(G, G') = sum over u, v in G and u', v' in G' of k(u, u') k(v, v') k_len(d(u, v), d(u', v'))

Taken literally this costs n^2 n'^2 for two graphs. As a sum of matrix products (see ``loops.paths``) it costs n^2 n' + n n'^2, and
the first product is a sum of rows. What else makes it fast:

- nodes of one graph with equal block and equal vector are joined into one group, and their pairs counted;
- where edges have no direction, a pair (u', v') and its reverse count the same, so that only one of them is looked up;
- a Gaussian node kernel is skipped where that changes no entry of the normalised matrix by more than rounding does.

The last: let c_d be the number of pairs (u, v) of G at distance d, and L the largest row sum of k_len. The terms that have a
node kernel below eps sum to at most 2 eps L |c| |c'|, while K(G, G) is at least k_len(0) sum_d c_d >= k_len(0) |c|^2 / max c_d,
from the pairs of each path with itself. With eps = 2^-54 k_len(0) / (L max c_d) the part that is skipped is therefore at most
2^-53 sqrt(K(G, G) K(G', G')).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from treegram._parallel import run_tasks
from treegram._types import Floats, Hashes, Ints
from treegram.attributes import Gaussian, NodeKernel
from treegram.pairsum.loops import paths as loops
from treegram.pairsum.nodes import widest_direction
from treegram.structure.distances import Distances

__all__ = ["PathEnds", "group_equal", "path_self_sums", "path_sums"]

Span = tuple[int, int]  # first graph, and the one after the last

TILE_COLUMNS = 512  # the rows of one graph, their kernel with a tile and its sums then stay in the second-level cache
SELF_COLUMNS = 64  # of a tile that meets its own graphs only: small, as all but its diagonal is thrown away
ROWS_PER_CALL = 1 << 12  # compiled code cannot be interrupted: this keeps each call well under a second


@dataclass(frozen=True)
class PathEnds:
    """What is summed over: groups of nodes of ``n_graphs`` graphs, in the order of the graphs, and their distances."""

    n_graphs: int
    graph_ids: Ints
    blocks: Hashes  # the kernel of two nodes is 0 where their blocks differ
    vectors: Floats  # (n_groups, n_attributes)
    distances: Distances


def group_equal(graph_ids: Ints, blocks: Hashes, vectors: Floats) -> tuple[Ints, Ints]:
    """Number the distinct (graph, block, vector), graph after graph; gives each node's number and one node of each."""
    order = np.lexsort((*vectors.T, blocks, graph_ids))
    new = np.ones(len(order), bool)
    new[1:] = (vectors[order[1:]] != vectors[order[:-1]]).any(axis=1)
    for keys in (graph_ids, blocks):
        new[1:] |= keys[order[1:]] != keys[order[:-1]]
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(new) - 1
    return groups, order[new]


def path_sums(
    left: PathEnds,
    right: PathEnds | None,
    node_kernel: NodeKernel,
    length_weights: Floats,
    *,
    n_jobs: int | None = None,
) -> Floats:
    """One sum per pair of graphs; ``right=None`` means left with itself, which costs half.

    ``length_weights[i]`` is the kernel of two lengths that differ by i, and 0 beyond its end. The result has the same bits
    for any ``n_jobs``.
    """
    columns = left if right is None else right
    sums = np.zeros((left.n_graphs, columns.n_graphs))
    if not len(left.graph_ids) or not len(columns.graph_ids):
        return sums
    job = _Job.prepare(left, columns, node_kernel, length_weights)
    # Later tiles of a symmetric matrix meet more rows: the longest tasks first keep all workers busy to the end.
    tiles = _cut(job.column_offsets, TILE_COLUMNS)[::-1]
    tasks = [(job, tile, (0, tile[1] if right is None else left.n_graphs)) for tile in tiles]
    parts = run_tasks(_tile_sums, tasks, n_jobs=n_jobs, label="path sums")
    for (first, last), part in zip(tiles, parts, strict=True):
        sums[: len(part), first:last] = part
        if right is None:
            square = sums[first:last, first:last]
            square += square.T.copy()
            square *= 0.5
            sums[first:last, :first] = part[:first].T
    return sums


def path_self_sums(
    ends: PathEnds, node_kernel: NodeKernel, length_weights: Floats, *, n_jobs: int | None = None
) -> Floats:
    """The sum of each graph with itself: the diagonal of :func:`path_sums`."""
    if not len(ends.graph_ids):
        return np.zeros(ends.n_graphs)
    job = _Job.prepare(ends, ends, node_kernel, length_weights)
    tasks = [(job, tile, tile) for tile in _cut(job.column_offsets, SELF_COLUMNS)]
    squares = run_tasks(_tile_sums, tasks, n_jobs=n_jobs, label="path sums")
    return np.concatenate([square.diagonal() for square in squares])


# -------------------------------------------------------------------- preparation


@dataclass(frozen=True)
class _Job:
    """Everything that the tiles of one computation share."""

    node_kernel: NodeKernel
    length_weights: Floats
    left: PathEnds
    right: PathEnds
    row_offsets: Ints
    row_blocks: Ints
    row_places: Floats
    column_offsets: Ints
    column_blocks: Ints
    column_places: Floats
    n_blocks: int
    reach: float

    @classmethod
    def prepare(cls, left: PathEnds, right: PathEnds, node_kernel: NodeKernel, length_weights: Floats) -> _Job:
        n_left = len(left.graph_ids)
        distinct, blocks = np.unique(np.concatenate([left.blocks, right.blocks]), return_inverse=True)
        extent = max(float(np.abs(ends.vectors).max()) for ends in (left, right)) or 1.0
        direction = widest_direction(right.vectors / extent)
        return cls(
            node_kernel=node_kernel,
            length_weights=length_weights,
            left=left,
            right=right,
            row_offsets=_offsets(left),
            row_blocks=blocks[:n_left],
            row_places=np.einsum("nd,d->n", left.vectors / extent, direction),
            column_offsets=_offsets(right),
            column_blocks=blocks[n_left:],
            column_places=np.einsum("nd,d->n", right.vectors / extent, direction),
            n_blocks=len(distinct),
            reach=_reach(left, right, node_kernel, length_weights, extent),
        )


def _offsets(ends: PathEnds) -> Ints:
    """Graph g has the groups offsets[g] .. offsets[g + 1] - 1."""
    return np.searchsorted(ends.graph_ids, np.arange(ends.n_graphs + 1))


def _reach(left: PathEnds, right: PathEnds, node_kernel: NodeKernel, length_weights: Floats, extent: float) -> float:
    """How far apart places may be before the Gaussian is below eps (see above); places are in units of extent."""
    if not isinstance(node_kernel, Gaussian):
        return np.inf
    row_sum = (2.0 * length_weights.sum() - length_weights[0]) / length_weights[0]
    most_pairs = max(_most_pairs(left), _most_pairs(right))
    rounding = 8 * np.finfo(float).eps * left.vectors.shape[1]
    with np.errstate(over="ignore", divide="ignore"):  # of very small and very large vectors: 0 and inf are right
        width = np.sqrt(node_kernel.gamma) * np.float64(extent)
        return float(np.sqrt(54 * np.log(2) + np.log(row_sum * most_pairs)) / width + rounding)


def _most_pairs(ends: PathEnds) -> float:
    """The largest number of pairs of nodes of one graph that are equally far apart, and at least 1."""
    distances = ends.distances
    graph_ids = np.repeat(ends.graph_ids, np.diff(distances.starts))
    keys = graph_ids * (int(distances.lengths.max(initial=0)) + 1) + distances.lengths
    return float(np.bincount(keys, weights=distances.counts).max(initial=1.0))


def _cut(offsets: Ints, n_columns: int) -> list[Span]:
    """Tiles of consecutive graphs with about ``n_columns`` groups each."""
    n_tiles = 1 + int(offsets[-1]) // n_columns
    goals = offsets[-1] * np.arange(1, n_tiles) / n_tiles
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, goals), [len(offsets) - 1]]))
    return [(int(first), int(last)) for first, last in pairwise(cuts)]


# -------------------------------------------------------------------- one tile


def _tile_sums(job: _Job, tile: Span, row_graphs: Span) -> Floats:
    """The sums of some consecutive graphs of the left with those of a tile of the right."""
    first = int(job.column_offsets[tile[0]])
    inside = slice(first, int(job.column_offsets[tile[1]]))
    columns = first + np.lexsort((job.column_places[inside], job.column_blocks[inside]))
    block_starts = np.searchsorted(job.column_blocks[columns], np.arange(job.n_blocks + 1))
    right, left = job.right.distances, job.left.distances
    listed = loops.list_partners(
        columns, np.argsort(columns), first, right.starts, right.partners, right.lengths, right.counts, right.both_ways
    )
    layout = (
        job.right.graph_ids[columns] - tile[0],
        block_starts,
        np.ascontiguousarray(job.right.vectors[columns].T),
        job.column_places[columns],
    )
    rows = (
        job.row_blocks, job.left.vectors, job.row_places, left.starts, left.partners, left.lengths, left.counts
    )  # fmt: skip
    gamma = job.node_kernel.gamma if isinstance(job.node_kernel, Gaussian) else 0.0
    out = np.zeros((row_graphs[1] - row_graphs[0], tile[1] - tile[0]))
    for start, stop in _calls(job.row_offsets, row_graphs):
        offsets = job.row_offsets[start : stop + 1]
        given = _given(job, slice(offsets[0], offsets[-1]), columns, block_starts)
        part = out[start - row_graphs[0] : stop - row_graphs[0]]
        loops.sum_tile(offsets, rows, layout, listed, given, gamma, job.reach, job.length_weights, part)
    return out * 2.0 if right.both_ways else out


def _calls(offsets: Ints, graphs: Span) -> Iterator[Span]:
    """Consecutive graphs with about ROWS_PER_CALL rows each."""
    first, last = graphs
    while first < last:
        stop = int(np.searchsorted(offsets, offsets[first] + ROWS_PER_CALL, side="right")) - 1
        stop = min(max(stop, first + 1), last)
        yield first, stop
        first = stop


def _given(job: _Job, rows: slice, columns: Ints, block_starts: Ints) -> Floats:
    """The node kernel of some rows with a tile's columns where their blocks are equal; empty if it is the Gaussian."""
    if isinstance(job.node_kernel, Gaussian):
        return np.empty((0, 0))
    given = np.zeros((rows.stop - rows.start, len(columns)))
    blocks = job.row_blocks[rows]
    for block in np.unique(blocks):
        chosen = np.flatnonzero(blocks == block)
        span = slice(block_starts[block], block_starts[block + 1])
        if span.stop > span.start:
            block_rows = job.left.vectors[rows.start + chosen]
            given[chosen, span] = job.node_kernel(block_rows, job.right.vectors[columns[span]])
    return given
