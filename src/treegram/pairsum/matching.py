"""Sums over connected matchings of two graphs: sum_phi prod_v kappa(v, phi(v)), by the number of nodes matched.

A matching is a bijection phi between a set of nodes of either graph that keeps edges, their kinds, and the lack of edges;
it is connected if the matched part of the graphs is. Such matchings are the cliques of a product graph of n n' nodes,
which is never built. Up to three nodes, and with one kind of edge, the sums have closed forms: a few sparse-times-dense
matrix products and one pass over the triangles, so that a pair of nodes costs about as much as its degrees. They count
more than matchings and take back what is none, which costs rounding errors of the size of the diagonal, not of an entry.
Beyond that, matchings are grown one pair of nodes at a time, each met once.

A Gaussian node kernel is at most 1, so a matching weighs no more than any of its pairs. Those that weigh less than
2^-53 / (s! N_s), where N_s is the most connected parts of s nodes that any graph has, are left out: a pair of graphs has
at most s! N_s(G) N_s(G') matchings of s nodes, and K(G, G) is at least the sum of N_s(G) over s, so that this changes no
entry of the normalised matrix by more than rounding does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import factorial

import numpy as np

from treegram._parallel import run_tasks
from treegram._types import Floats, Hashes, Ints
from treegram.attributes import Gaussian, NodeKernel
from treegram.pairsum.loops import matching as loops
from treegram.pairsum.nodes import widest_direction

__all__ = ["Matchables", "match_self_sums", "match_sums"]


TILE_COLUMNS = (
    512  # the node kernel of one graph with as many columns, and its products, stay in the second-level cache
)
COST_PER_CALL = (
    1 << 28
)  # compiled code cannot be interrupted: this many multiplications keep a call well under a second
STEPS_PER_CALL = 1 << 21  # the same for enumeration, whose steps are longer and whose number is not known beforehand
GIVEN_ROWS = 1024  # rows of a node kernel that is not the Gaussian, computed at a time


@dataclass(frozen=True)
class Matchables:
    """What is matched: the nodes of ``n_graphs`` graphs, in the order of the graphs, and the edges between them."""

    offsets: Ints  # graph i owns the nodes offsets[i] to offsets[i + 1] - 1
    blocks: Hashes  # nodes of different blocks are never matched
    vectors: Floats  # (n_nodes, n_attributes)
    indptr: Ints  # neighbours of each node, sorted; every edge is there from both of its ends
    indices: Ints
    kinds: Hashes  # of each arc; edges of different kinds are never matched

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
    threshold: float = 0.0,
    n_jobs: int | None = None,
) -> Floats:
    """The sum over all connected matchings of s nodes, for each pair of graphs and s = 1 .. max_size.

    ``right=None`` means left with itself, which costs half. Pairs of nodes whose kernel is at most ``threshold`` in absolute
    value are not matched.

    Returns
    -------
    ndarray of shape (max_size, n_left, n_right)
        The same bits for any ``n_jobs``.
    """
    left = _flat(left, node_kernel)
    columns = left if right is None else _flat(right, node_kernel)
    sums = np.zeros((max_size, left.n_graphs, columns.n_graphs))
    if not len(left.blocks) or not len(columns.blocks):
        return sums
    job = _Job.prepare(left, columns, node_kernel, max_size, threshold)
    tiles = list(_cut(columns))
    # Later tiles of a symmetric matrix have more rows: the longest tasks first keep all workers busy to the end.
    tasks = [(job, span, span[1] if right is None else left.n_graphs) for span in reversed(tiles)]
    results = run_tasks(_tile_sums, tasks, n_jobs=n_jobs, label="matchings")
    for (_, span, n_rows), part in zip(tasks, results, strict=True):
        _place(part.swapaxes(0, 1), span, n_rows, sums, symmetric=right is None)
    return sums


def match_self_sums(
    nodes: Matchables, node_kernel: NodeKernel, max_size: int, *, threshold: float = 0.0, n_jobs: int | None = None
) -> Floats:
    """The sums of each graph with itself: the diagonal of :func:`match_sums`, shape (max_size, n_graphs)."""
    nodes = _flat(nodes, node_kernel)
    sums = np.zeros((max_size, nodes.n_graphs))
    if not len(nodes.blocks):
        return sums
    job = _Job.prepare(nodes, nodes, node_kernel, max_size, threshold)
    tasks = [(job, first, last) for first, last in _cut(nodes)]
    for (_, first, last), part in zip(
        tasks, run_tasks(_self_part, tasks, n_jobs=n_jobs, label="self matchings"), strict=True
    ):
        sums[:, first:last] = part
    return sums


# -------------------------------------------------------------------- preparation


@dataclass(frozen=True)
class _Side:
    """One side of a computation, as the compiled loops take it."""

    nodes: Matchables
    blocks: Ints
    codes: Ints  # kind of each arc, from 1
    places: Floats  # along the direction in which the vectors vary most
    triangles: Ints
    triangle_starts: Ints


@dataclass(frozen=True)
class _Job:
    """Everything that the tiles of one computation share."""

    left: _Side
    right: _Side
    n_blocks: int
    node_kernel: NodeKernel
    max_size: int
    closed: bool  # whether the closed forms apply
    bits: int  # of an arc's code
    floor: float  # matchings that weigh no more are left out
    limits: tuple[float, float, float]  # gamma, how far apart places may be, threshold

    @classmethod
    def prepare(
        cls, left: Matchables, right: Matchables, node_kernel: NodeKernel, max_size: int, threshold: float
    ) -> _Job:
        n_blocks, blocks = _number(left.blocks, right.blocks)
        n_kinds, codes = _number(left.kinds, right.kinds)
        bits = max(n_kinds.bit_length(), 1)
        if max_size > 1 and bits * (max_size - 1) > loops.MASK_BITS:
            raise ValueError(
                f"max_size={max_size} is too large for graphs with {n_kinds} kinds of edges: the most that can be "
                f"matched is {1 + loops.MASK_BITS // bits} nodes. Use a smaller max_size, or no edge labels."
            )
        closed = max_size <= 3 and n_kinds <= 1
        floor, reach, places = _windows(left, right, node_kernel, max_size)
        sides = []
        for nodes, own_blocks, own_codes, own_places in zip((left, right), blocks, codes, places, strict=True):
            triangles, starts = np.empty((0, 3), np.int64), np.zeros(nodes.n_graphs + 1, np.int64)
            if closed and max_size == 3:
                triangles, starts = loops.list_triangles(nodes.offsets, nodes.indptr, nodes.indices)
            sides.append(_Side(nodes, own_blocks, own_codes + 1, own_places, triangles, starts))
        gamma = node_kernel.gamma if isinstance(node_kernel, Gaussian) else 0.0
        return cls(
            left=sides[0],
            right=sides[1],
            n_blocks=n_blocks,
            node_kernel=node_kernel,
            max_size=max_size,
            closed=closed,
            bits=bits,
            floor=floor,
            limits=(gamma, reach, threshold),
        )


def _windows(
    left: Matchables, right: Matchables, node_kernel: NodeKernel, max_size: int
) -> tuple[float, float, list[Floats]]:
    """What a matching must weigh to matter, how far apart places may be for this, and the places of all nodes.

    Places are in units of the largest coordinate, so that nothing overflows.
    """
    extent = max(float(np.abs(nodes.vectors).max(initial=0.0)) for nodes in (left, right)) or 1.0
    direction = widest_direction(right.vectors / extent)
    # einsum, not a matrix product: BLAS would wake threads that spin for longer than this takes.
    places = [np.einsum("ni,i->n", nodes.vectors / extent, direction) for nodes in (left, right)]
    if not isinstance(node_kernel, Gaussian):
        return 0.0, np.inf, places
    exponent = 53 * np.log(2) + _log_most_matchings([left, right], max_size)
    width = np.sqrt(node_kernel.gamma) * extent
    rounding = 8 * np.finfo(float).eps * left.vectors.shape[1]
    reach = float(np.sqrt(exponent) / width + rounding) if width else np.inf
    return float(np.exp(-exponent)), reach, places


def _flat(nodes: Matchables, node_kernel: NodeKernel) -> Matchables:
    """Where the node kernel is 1 whatever the vectors, they are equal to it, however far apart."""
    if node_kernel == Gaussian(0.0):
        return replace(nodes, vectors=np.zeros((len(nodes.blocks), 1)))
    return nodes


def _number(*values: Hashes) -> tuple[int, list[Ints]]:
    """Number equal values equally in all arrays, from 0."""
    distinct, numbers = np.unique(np.concatenate(values), return_inverse=True)
    return len(distinct), np.split(numbers.astype(np.int64), np.cumsum([len(v) for v in values])[:-1])


def _log_most_matchings(sides: list[Matchables], max_size: int) -> float:
    """Logarithm of the largest s! N_s over s <= max_size, N_s being at least the connected parts of s nodes in any graph.

    A part of s + 1 connected nodes has at least two nodes without which it stays connected, and one of s nodes has at
    most s times the largest degree of neighbours: so N_(s+1) <= N_s s degree / 2.
    """
    log_counts = []
    for nodes in sides:
        degrees = np.diff(nodes.indptr).astype(np.float64)
        log_count = np.log(max(float(np.diff(nodes.offsets).max(initial=1)), 1.0))
        for s in range(1, max_size + 1):
            log_counts.append(log_count + np.log(float(factorial(s))))
            log_count += max(np.log(s * max(float(degrees.max(initial=0.0)), 1.0) / 2), 0.0)
    return float(max(log_counts))


def _cut(nodes: Matchables) -> Iterator[tuple[int, int]]:
    """Spans of consecutive graphs with about TILE_COLUMNS nodes each, none of them without a graph."""
    n_tiles = 1 + len(nodes.blocks) // TILE_COLUMNS
    goals = len(nodes.blocks) * np.arange(1, n_tiles) / n_tiles
    cuts = np.unique(np.concatenate([[0], np.searchsorted(nodes.offsets, goals), [nodes.n_graphs]]))
    yield from pairwise(cuts.tolist())


# -------------------------------------------------------------------- one tile


@dataclass(frozen=True)
class _Tile:
    """The nodes of some consecutive graphs as columns, sorted by block and by place within it."""

    graphs: Ints  # of each column, counted from the first
    n_graphs: int
    block_starts: Ints
    vectors: Floats  # (d, n_columns)
    places: Floats
    indptr: Ints
    indices: Ints
    codes: Ints
    triangles: Ints

    @classmethod
    def prepare(cls, side: _Side, first: int, last: int, n_blocks: int) -> _Tile:
        nodes = side.nodes
        start, stop = nodes.offsets[first], nodes.offsets[last]
        order = start + np.lexsort((side.places[start:stop], side.blocks[start:stop]))
        position = np.empty(stop - start, np.int64)
        position[order - start] = np.arange(stop - start)
        degrees = np.diff(nodes.indptr)[order]
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        arcs = np.arange(indptr[-1]) + np.repeat(nodes.indptr[order] - indptr[:-1], degrees)
        triangles = side.triangles[side.triangle_starts[first] : side.triangle_starts[last]]
        sizes = np.diff(nodes.offsets[first : last + 1])
        return cls(
            graphs=np.repeat(np.arange(last - first), sizes)[order - start],
            n_graphs=last - first,
            block_starts=np.searchsorted(side.blocks[order], np.arange(n_blocks + 1)),
            vectors=np.ascontiguousarray(nodes.vectors[order].T),
            places=side.places[order],
            indptr=indptr,
            indices=position[nodes.indices[arcs] - start],
            codes=side.codes[arcs],
            triangles=position[triangles - start],
        )


def _tile_sums(job: _Job, span: tuple[int, int], n_rows: int) -> Floats:
    """The part of the result for the column graphs of a span and the first n_rows row graphs: (rows, sizes, columns)."""
    return _sum_rows(job, _Tile.prepare(job.right, *span, job.n_blocks), 0, n_rows)


def _self_part(job: _Job, first: int, last: int) -> Floats:
    """The sums of the graphs first .. last - 1, each with itself: one tile each."""
    parts = [
        _sum_rows(job, _Tile.prepare(job.right, g, g + 1, job.n_blocks), g, g + 1)[g, :, 0] for g in range(first, last)
    ]
    return np.stack(parts, axis=1)


def _sum_rows(job: _Job, tile: _Tile, first: int, last: int) -> Floats:
    """The row graphs first .. last - 1 against one tile, shape (last, sizes, column graphs); rows before first are 0."""
    out = np.zeros((last, job.max_size, tile.n_graphs))
    side, nodes = job.left, job.left.nodes
    rows = (side.blocks, nodes.vectors, side.places)
    columns = (tile.block_starts, tile.vectors, tile.places)
    for graphs in _spans(job, tile, first, last):
        given = np.empty((0, 0)) if isinstance(job.node_kernel, Gaussian) else _given(job, tile, graphs)
        if job.closed:
            loops.sum_closed(
                graphs, nodes.offsets, nodes.indptr, nodes.indices, side.triangles, side.triangle_starts, rows,
                tile.graphs, tile.indptr, tile.indices, tile.triangles, columns,
                given, job.limits, out,
            )  # fmt: skip
            continue
        start = (int(nodes.offsets[graphs[0]]), 0)
        while start[0] < nodes.offsets[graphs[1]]:
            start = loops.sum_cliques(
                graphs, start, nodes.offsets, (nodes.indptr, nodes.indices, side.codes), rows,
                tile.graphs, (tile.indptr, tile.indices, tile.codes), columns,
                given, job.limits, job.bits, job.floor, STEPS_PER_CALL, out,
            )  # fmt: skip
    return out


def _spans(job: _Job, tile: _Tile, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Consecutive row graphs that are summed in one call: not too much work, or not too many given values."""
    sizes = np.diff(job.left.nodes.offsets)[first:last].astype(np.float64)
    if isinstance(job.node_kernel, Gaussian):
        n_triangles = np.diff(job.left.triangle_starts)[first:last]
        costs = 32.0 * len(tile.graphs) * (sizes + n_triangles) + 16.0 * len(tile.triangles) * n_triangles
        shares = np.cumsum(costs) // COST_PER_CALL
    else:
        shares = np.cumsum(sizes) // GIVEN_ROWS
    cuts = first + np.flatnonzero(np.diff(shares)) + 1
    yield from pairwise([first, *cuts.tolist(), last])


def _given(job: _Job, tile: _Tile, graphs: tuple[int, int]) -> Floats:
    """The node kernel of the rows of some graphs with the tile's columns, where their blocks are equal."""
    rows = slice(job.left.nodes.offsets[graphs[0]], job.left.nodes.offsets[graphs[1]])
    blocks = job.left.blocks[rows]
    vectors = job.left.nodes.vectors[rows]
    given = np.zeros((len(blocks), len(tile.graphs)))
    for block in np.unique(blocks):
        chosen = np.flatnonzero(blocks == block)
        columns = slice(tile.block_starts[block], tile.block_starts[block + 1])
        if columns.stop > columns.start:
            given[chosen, columns] = job.node_kernel(vectors[chosen], tile.vectors[:, columns].T)
    return given


def _place(part: Floats, span: tuple[int, int], n_rows: int, sums: Floats, *, symmetric: bool) -> None:
    """Write a tile's part, and its mirror image where the matrix is symmetric."""
    columns = slice(*span)
    sums[:, :n_rows, columns] = part
    if symmetric:
        square = sums[:, columns, columns]
        square += square.swapaxes(1, 2).copy()
        square *= 0.5
        sums[:, columns, : span[0]] = part[:, : span[0]].swapaxes(1, 2)
