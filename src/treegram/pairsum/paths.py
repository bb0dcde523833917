"""Sums over pairs of shortest paths, exactly, by way of the nodes at their ends.

    K(G, G') = sum over u, v in G and u', v' in G' of k(u, u') k(v, v') k_len(d(u, v), d(u', v'))

Taken literally this costs n^2 n'^2 for two graphs. As a sum of matrix products (see ``loops.paths``) it costs n^2 n' + n n'^2, and
the first product is a sum of rows. What else makes it fast:

- nodes of one graph with equal block and equal vector are joined into one group, and their pairs counted;
- where edges have no direction, a pair (u', v') and its reverse count the same, so that only one of them is looked up;
- a Gaussian node kernel is skipped where that changes no entry of the normalized matrix by more than rounding does.

The last: let c_d be the number of pairs (u, v) of G at distance d, and L the largest row sum of k_len. The terms that have a
node kernel below eps sum to at most 2 eps L |c| |c'|, while K(G, G) is at least k_len(0) sum_d c_d >= k_len(0) |c|^2 / max c_d,
from the pairs of each path with itself. With eps = 2^-54 k_len(0) / (L max c_d) the part that is skipped is therefore at most
2^-53 sqrt(K(G, G) K(G', G')).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from treegram._core.memory import require
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.loops import paths as loops
from treegram.pairsum.loops.tiles import Rows
from treegram.pairsum.tiles import Layout, Span, cut, fill_matrix
from treegram.structure.distances import Distances
from treegram.structure.hashing import equal_rows

__all__ = ["PathEnds", "group_equal", "path_end_shares", "path_self_sums", "path_sums"]

TILE_COLUMNS = 512  # the rows of one graph, their kernel with a tile and its sums then stay in the second-level cache
SELF_COLUMNS = 64  # of a tile that meets its own graphs only: small, as all but its diagonal is thrown away
ROWS_PER_CALL = 1 << 12  # rows whose node kernel is computed at a time, where it is not the Gaussian
STEPS_PER_CALL = 1 << 28  # compiled code cannot be interrupted: this keeps each call well under a second


@dataclass(frozen=True)
class PathEnds:
    """What is summed over: groups of nodes of ``n_graphs`` graphs, in the order of the graphs, and their distances."""

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
        """The same paths from their ends to their starts."""
        return replace(self, distances=self.distances.reversed())


def group_equal(graph_ids: Ints, blocks: Hashes, vectors: Floats) -> tuple[Ints, Ints]:
    """Number the distinct (graph, block, vector), graph after graph; gives each node's number and one node of each."""
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
    """One sum per pair of graphs; ``right=None`` means left with itself, which costs half: the upper half is filled.

    ``length_weights[i]`` is the kernel of two lengths that differ by i, and 0 beyond its end. The result has the same bits
    for any ``n_jobs``.
    """
    columns = left if right is None else right
    sums = np.zeros((left.n_graphs, columns.n_graphs))
    if len(left.graph_ids) and len(columns.graph_ids):
        job = _Job.prepare(left, columns, node_kernel, length_weights)
        tiles = cut(job.layout.right.offsets, 1 + len(columns.graph_ids) // TILE_COLUMNS)
        fill_matrix(_tile_sums, job, tiles, sums, symmetric=right is None, n_jobs=n_jobs, label="path sums")
    return sums


def path_self_sums(
    ends: PathEnds, node_kernel: NodeKernel, length_weights: Floats, *, n_jobs: int | None = None
) -> Floats:
    """The sum of each graph with itself: the diagonal of :func:`path_sums`."""
    if not len(ends.graph_ids):
        return np.zeros(ends.n_graphs)
    # With blocks of its own no graph meets another.
    _, blocks = np.unique(np.stack([ends.graph_ids.astype(np.uint64), ends.blocks]), axis=1, return_inverse=True)
    own = replace(ends, blocks=blocks.reshape(-1).astype(np.uint64))
    job = _Job.prepare(own, own, node_kernel, length_weights)
    tiles = cut(job.layout.right.offsets, 1 + len(own.graph_ids) // SELF_COLUMNS)
    squares = run_tasks(partial(_square_sums, job), [(tile,) for tile in tiles], n_jobs=n_jobs, label="path sums")
    return np.concatenate([square.diagonal() for square in squares])


def path_end_shares(
    ends: PathEnds,
    others: PathEnds,
    *,
    node_kernel: NodeKernel,
    length_weights: Floats,
    weights: Floats,
    n_jobs: int | None = None,
) -> Floats:
    """What the paths that start at each group add to the sums of weights[i, j] K(G, G_i) over the other graphs.

    Shape (n_groups, n_outputs). Groups are the columns here, each counted as a graph of its own.
    """
    shares = np.zeros((len(ends.graph_ids), weights.shape[1]))
    if len(ends.graph_ids) and len(others.graph_ids):
        job = replace(_Job.prepare(others, ends, node_kernel, length_weights), both_ways=False)
        tiles = cut(job.layout.right.offsets, 1 + len(ends.graph_ids) // TILE_COLUMNS)
        parts = run_tasks(
            partial(_tile_shares, job, weights), [(tile,) for tile in tiles], n_jobs=n_jobs, label="path sums"
        )
        for order, part in parts:
            shares[order] = part
    return shares


# -------------------------------------------------------------------- preparation


@dataclass(frozen=True)
class _Job:
    """Everything that the tiles of one computation share."""

    layout: Layout
    reach: float
    rows: Any  # loops.tiles.Rows
    row_partners: Any  # loops.Partners
    column_partners: Any
    column_same: Ints  # of each column: the first of its equals, which stand side by side where nodes are not joined
    length_weights: Floats
    both_ways: bool

    @classmethod
    def prepare(cls, left: PathEnds, right: PathEnds, node_kernel: NodeKernel, length_weights: Floats) -> _Job:
        layout = Layout.make(left, right, node_kernel)
        row_sum = (2.0 * length_weights.sum() - length_weights[0]) / length_weights[0]
        most_pairs = max(_most_pairs(left), _most_pairs(right))
        side = layout.left
        return cls(
            layout=layout,
            reach=layout.reach(54 * np.log(2) + np.log(row_sum * most_pairs)),
            rows=Rows(side.blocks, side.vectors, side.places),
            row_partners=_partners(left.distances),
            column_partners=_partners(right.distances),
            column_same=_first_equal(right),
            length_weights=length_weights,
            both_ways=right.distances.both_ways,
        )


def _partners(distances: Distances) -> Any:
    return loops.Partners(distances.starts, distances.partners, distances.lengths, distances.counts)


def _first_equal(ends: PathEnds) -> Ints:
    """For each group the first of those before it, without a gap, that have its graph, block and vector."""
    is_new = np.ones(len(ends.graph_ids), bool)
    is_new[1:] = (ends.vectors[1:] != ends.vectors[:-1]).any(axis=1)
    for key in (ends.graph_ids, ends.blocks):
        is_new[1:] |= key[1:] != key[:-1]
    firsts: Ints = np.maximum.accumulate(np.where(is_new, np.arange(len(is_new)), 0))
    return firsts


def _most_pairs(ends: PathEnds) -> float:
    """The largest number of pairs of nodes of one graph that are equally far apart, and at least 1."""
    distances = ends.distances
    graph_ids = np.repeat(ends.graph_ids, np.diff(distances.starts))
    keys = graph_ids * (int(distances.lengths.max(initial=0)) + 1) + distances.lengths
    return float(np.bincount(keys, weights=distances.counts).max(initial=1.0))


# -------------------------------------------------------------------- one tile


def _tile_sums(job: _Job, tile: Span, n_rows: int, out: Floats, base: int) -> None:
    """Write the sums of the first row graphs with those of a tile."""
    out[:n_rows, base : base + tile[1] - tile[0]] = _sum_some(job, tile, (0, n_rows))


def _square_sums(job: _Job, tile: Span) -> Floats:
    return _sum_some(job, tile, tile)


def _tile_shares(job: _Job, weights: Floats, tile: Span) -> tuple[Ints, Floats]:
    """The groups of a tile, and the weighted sums of each of them with all row graphs."""
    order, columns = job.layout.columns(tile)
    alone = columns._replace(graphs=np.arange(len(order)))
    sums = _sum_columns(job, order, alone, (0, len(job.layout.left.offsets) - 1), len(order))
    return order, sums.T @ weights


def _sum_some(job: _Job, tile: Span, graphs: Span) -> Floats:
    """The sums of some consecutive graphs of the left with those of a tile of the right."""
    return _sum_columns(job, *job.layout.columns(tile), graphs, tile[1] - tile[0])


def _sum_columns(job: _Job, order: Ints, columns: Any, graphs: Span, n_sums: int) -> Floats:
    """The sums of some consecutive graphs of the left with the ``n_sums`` graphs that the columns belong to."""
    paths = (job.row_partners, _list_partners(job, order), job.length_weights)
    offsets, out = job.layout.left.offsets, np.zeros((graphs[1] - graphs[0], n_sums))
    held = _held(job, graphs, len(order), paths[1].stops.shape[1] - 1)
    for start, stop in _calls(offsets, graphs):
        row, end = int(offsets[start]), int(offsets[stop])
        kernel = job.layout.kernel((row, end), columns, job.reach)
        state = np.array([start, row, start, stop, STEPS_PER_CALL])
        while state[1] < end:
            loops.sum_tile(state, offsets, job.rows, columns, kernel, paths, held, out[start - graphs[0] :])
    return out * 2.0 if job.both_ways else out


def _calls(offsets: Ints, graphs: Span) -> Iterator[Span]:
    """Consecutive graphs with about ROWS_PER_CALL rows each."""
    first, last = graphs
    while first < last:
        stop = int(np.searchsorted(offsets, offsets[first] + ROWS_PER_CALL, side="right")) - 1
        stop = min(max(stop, first + 1), last)
        yield first, stop
        first = stop


def _list_partners(job: _Job, columns: Ints) -> Any:
    """Where the columns of a tile find their partners."""
    partners, n = job.column_partners, len(columns)
    first = int(columns.min()) if n else 0
    inside = slice(int(partners.starts[first]), int(partners.starts[first + n]))
    room, longest = inside.stop - inside.start, int(partners.lengths[inside].max(initial=0))
    listed = loops.Listed(
        spots=np.empty(room, np.uint32),
        weights=np.empty(room),
        is_plain=np.empty(n, np.bool_),
        stops=np.empty((n, longest + 1), np.uint64),
    )
    loops.list_partners(columns, np.argsort(columns), first, partners, job.column_same, job.both_ways, listed)
    return listed


def _held(job: _Job, graphs: Span, n_columns: int, longest: int) -> Any:
    """Room for the node kernel of any of the row graphs with a tile, and for the sums over its paths."""
    sizes = np.diff(job.layout.left.offsets[graphs[0] : graphs[1] + 1])
    largest, rows = int(sizes.max(initial=0)), 2 * longest + len(job.length_weights) + 1
    require(8.0 * n_columns * (largest + rows), f"Graph {graphs[0] + sizes.argmax()}: the sums over its paths")
    reached = np.empty((longest + len(job.length_weights), n_columns))
    blurred = np.empty((longest + 1, n_columns))
    return loops.Held(
        kernel=np.empty((largest, n_columns)),
        windows=np.empty((largest, 2), np.int64),
        reached=reached,
        blurred=blurred,
        long_reached=reached.reshape(-1),
        long_blurred=blurred.reshape(-1),
    )
