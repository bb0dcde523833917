"""Sums over connected matchings of two graphs: sum_phi prod_v kappa(v, phi(v)), by the number of nodes matched.

A matching is a bijection phi between a set of nodes of either graph that keeps edges, their kinds, and the lack of edges;
it is connected if the matched part of the graphs is. Such matchings are the cliques of a product graph of n n' nodes,
which is never built. Up to three nodes, and with one kind of edge, the sums have closed forms: a few sparse-times-dense
matrix products and one pass over the triangles, so that a pair of nodes costs about as much as its degrees. They count
more than matchings and take back what is none, which costs rounding errors of the size of the diagonal, not of an entry.
Beyond that, matchings are grown one pair of nodes at a time, each met once. Where the node kernel is 1 for all nodes of a block,
as it is without vectors, parts of up to three nodes are counted instead, graph by graph (``pairsum.parts``).

A Gaussian node kernel is at most 1, so a matching weighs no more than any of its pairs. Those that weigh less than
2^-53 / (s! N_s), where N_s is the most connected parts of s nodes that any graph has, are left out: a pair of graphs has
at most s! N_s(G) N_s(G') matchings of s nodes, and K(G, G) is at least the sum of N_s(G) over s, so that this changes no
entry of the normalized matrix by more than rounding does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import factorial, perm
from typing import Any

import numpy as np

from treegram._core.memory import allocate, require
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.loops import match_shares as share_loops
from treegram.pairsum.loops import matching as loops
from treegram.pairsum.loops.tiles import Rows
from treegram.pairsum.parts import LARGEST_PART, count_parts, list_triangles, part_shares, part_squares, part_sums
from treegram.pairsum.tiles import Layout, Span, cut, fill_matrix, number_alike

__all__ = ["Matchables", "match_self_sums", "match_shares", "match_sums"]


# The node kernel of one graph with as many columns, and its products, stay in the second-level cache.
TILE_COLUMNS = 512
# Compiled code cannot be interrupted: so many multiplications, or steps of the enumeration, keep a call well under a second.
COST_PER_CALL, STEPS_PER_CALL = 1 << 28, 1 << 21
PER_SECOND = 1e8  # matchings that a processor meets, roughly: 2.5e7 of a star of 15 nodes in 0.17 s
PATIENCE = 3 * 3600  # seconds for two nodes and their neighbors; work that may take longer is announced
GIVEN_ROWS = 1024  # rows of a node kernel that is not the Gaussian, computed at a time
SHARED_ROWS = 1024  # rows of one task that is asked what each of them adds


@dataclass(frozen=True)
class Matchables:
    """What is matched: the nodes of ``n_graphs`` graphs, in the order of the graphs, and the edges between them."""

    offsets: Ints  # graph i owns the nodes offsets[i] to offsets[i + 1] - 1
    blocks: Hashes  # nodes of different blocks are never matched
    vectors: Floats  # (n_nodes, n_attributes)
    indptr: Ints  # neighbors of each node, sorted; every edge is there from both of its ends
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
    if _can_count([left, columns], node_kernel, max_size, threshold):
        return part_sums(count_parts(left, max_size), None if right is None else count_parts(columns, max_size))
    sums = np.zeros((max_size, left.n_graphs, columns.n_graphs))
    if len(left.blocks) and len(columns.blocks):
        job = _Job.prepare(left, columns, node_kernel, max_size, threshold)
        tiles = cut(columns.offsets, 1 + len(columns.blocks) // TILE_COLUMNS)
        fill_matrix(_tile_sums, job, tiles, sums, symmetric=right is None, n_jobs=n_jobs, label="matchings")
    return sums


def match_self_sums(
    nodes: Matchables, node_kernel: NodeKernel, max_size: int, *, threshold: float = 0.0, n_jobs: int | None = None
) -> Floats:
    """The sums of each graph with itself: the diagonal of :func:`match_sums`, shape (max_size, n_graphs)."""
    nodes = _flat(nodes, node_kernel)
    if _can_count([nodes], node_kernel, max_size, threshold):
        return part_squares(count_parts(nodes, max_size))
    sums = np.zeros((max_size, nodes.n_graphs))
    if len(nodes.blocks):
        job = _Job.prepare(nodes, nodes, node_kernel, max_size, threshold)
        tiles = cut(nodes.offsets, 1 + len(nodes.blocks) // TILE_COLUMNS)
        tasks = [(job, span) for span in tiles]
        for span, part in zip(tiles, run_tasks(_own_sums, tasks, n_jobs=n_jobs, label="matchings"), strict=True):
            sums[:, slice(*span)] = part
    return sums


def match_shares(
    left: Matchables,
    right: Matchables,
    node_kernel: NodeKernel,
    size_weights: Floats,
    weights: Floats,
    *,
    threshold: float = 0.0,
    n_jobs: int | None = None,
) -> Floats:
    """What each node of the left adds to the sums of size_weights[s] weights[i, j] S_s(G, G_i) over the graphs of the right.

    The nodes of a matching share it equally. Shape (n_nodes, n_outputs); the same bits for any ``n_jobs``.
    """
    max_size = len(size_weights)
    left, right = _flat(left, node_kernel), _flat(right, node_kernel)
    if _can_count([left, right], node_kernel, max_size, threshold):
        counted = count_parts(left, max_size, by_node=True), count_parts(right, max_size)
        return part_shares(*counted, size_weights, weights)
    shares = np.zeros((len(left.blocks), weights.shape[1]))
    if len(left.blocks) and len(right.blocks):
        job = _Job.prepare(left, right, node_kernel, max_size, threshold)
        tasks = [
            (job, rows, size_weights / np.arange(1, max_size + 1), weights)
            for rows in cut(left.offsets, 1 + len(left.blocks) // SHARED_ROWS)
        ]
        parts = run_tasks(_row_shares, tasks, n_jobs=n_jobs, label="matchings")
        for (_, (first, last), *_), part in zip(tasks, parts, strict=True):
            shares[left.offsets[first] : left.offsets[last]] = part
    return shares


# -------------------------------------------------------------------- preparation


@dataclass(frozen=True)
class _Job:
    """Everything that the tiles of one computation share."""

    layout: Layout
    reach: float
    left: Any  # loops.Graphs
    right: Any
    max_size: int
    is_closed: bool  # whether the closed forms apply
    threshold: float
    floor: float  # matchings that weigh no more are left out
    bits: int  # of an arc's code

    @classmethod
    def prepare(
        cls, left: Matchables, right: Matchables, node_kernel: NodeKernel, max_size: int, threshold: float
    ) -> _Job:
        n_kinds, codes = number_alike(left.kinds, right.kinds)
        bits = max(n_kinds.bit_length(), 1)
        if max_size > 1 and bits * (max_size - 1) > loops.MASK_BITS:
            raise ValueError(
                f"max_size={max_size} is too large for graphs with {n_kinds} kinds of edges: the most that can be "
                f"matched is {1 + loops.MASK_BITS // bits} nodes. Use a smaller max_size, or no edge labels."
            )
        is_closed = max_size <= 3 and n_kinds <= 1
        if not is_closed:
            _check_hubs(left, right, max_size)
        layout = Layout.make(left, right, node_kernel)
        exponent = 53 * np.log(2) + _log_most_matchings([left, right], max_size)
        sides = zip((left, right), (layout.left, layout.right), codes, strict=True)
        graphs = [
            loops.Graphs(
                Rows(side.blocks, side.vectors, side.places),
                nodes.offsets,
                nodes.indptr,
                nodes.indices - np.repeat(nodes.offsets[:-1], np.diff(nodes.indptr[nodes.offsets])),
                own_codes + 1,
                *_triangles(nodes, is_needed=is_closed and max_size == 3),
            )
            for nodes, side, own_codes in sides
        ]
        return cls(
            layout=layout,
            reach=layout.reach(exponent),
            left=graphs[0],
            right=graphs[1],
            max_size=max_size,
            is_closed=is_closed,
            threshold=threshold,
            floor=float(np.exp(-exponent)) if isinstance(node_kernel, Gaussian) else 0.0,
            bits=bits,
        )


def _check_hubs(left: Matchables, right: Matchables, max_size: int) -> None:
    """Before matchings are grown: raise if those of the two nodes with the most neighbors cannot be held, warn if they never end."""
    (graph, degree), (other, other_degree) = (_hub(nodes) for nodes in (left, right))
    require(16.0 * degree * other_degree * (max_size * (max_size + 1) // 2), f"Graph {graph}: its matchings")
    counts = {s: perm(degree, s - 1) * perm(other_degree, s - 1) // factorial(s - 1) for s in range(1, max_size + 1)}
    size = max(counts, key=counts.__getitem__)
    if counts[size] > PER_SECOND * PATIENCE:
        warnings.warn(
            f"CSM may not come to an end. A node of graph {graph} has {degree} neighbors, and one of graph {other} has {other_degree}: "
            f"around these two alone there are up to {counts[size]:.1e} matchings of {size} nodes, and a processor looks at about "
            f"{PER_SECOND:.0e} per second. Take a smaller max_size (up to 3 is fast), use_labels=True, a threshold, or leave such graphs out.",
            UserWarning,
            stacklevel=2,
        )


def _hub(nodes: Matchables) -> tuple[int, int]:
    """The node with the most neighbors: its graph, and their number."""
    degrees = np.diff(nodes.indptr)
    node = int(degrees.argmax())
    return int(np.searchsorted(nodes.offsets, node, side="right")) - 1, int(degrees[node])


def _triangles(nodes: Matchables, *, is_needed: bool) -> tuple[Ints, Ints]:
    none = (np.empty((0, 3), np.int64), np.zeros(nodes.n_graphs + 1, np.int64))
    return list_triangles(nodes) if is_needed else none


def _flat(nodes: Matchables, node_kernel: NodeKernel) -> Matchables:
    """Where the node kernel is 1 whatever the vectors, they are equal to it, however far apart."""
    if node_kernel == Gaussian(0.0):
        return replace(nodes, vectors=np.zeros((len(nodes.blocks), 1)))
    return nodes


def _can_count(sides: list[Matchables], node_kernel: NodeKernel, max_size: int, threshold: float) -> bool:
    """Whether the node kernel is 1 within each block, and matchings are so small that counts of parts give their sums."""
    if max_size > LARGEST_PART or threshold >= 1 or not isinstance(node_kernel, Gaussian):
        return False
    vectors = [nodes.vectors for nodes in sides if len(nodes.vectors)]
    return all(bool((some == vectors[0][0]).all()) for some in vectors)


def _log_most_matchings(sides: list[Matchables], max_size: int) -> float:
    """Logarithm of the largest s! N_s over s <= max_size, N_s being at least the connected parts of s nodes in any graph.

    A part of s + 1 connected nodes has at least two nodes without which it stays connected, and one of s nodes has at
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


def _tile_sums(job: _Job, span: Span, n_rows: int, out: Floats, base: int) -> None:
    """Write the sums of the first row graphs with those of a span: (sizes, rows, columns)."""
    out[:, :n_rows, base : base + span[1] - span[0]] = _sum_rows(job, span, (0, n_rows)).swapaxes(0, 1)


def _own_sums(job: _Job, span: Span) -> Floats:
    """The sums of the graphs of a span, each with itself: one tile each."""
    return np.stack([_sum_rows(job, (g, g + 1), (g, g + 1))[g, :, 0] for g in range(*span)], axis=1)


def _sum_rows(job: _Job, span: Span, rows: Span) -> Floats:
    """Some row graphs against a tile of the graphs of a span, shape (rows[1], sizes, column graphs); rows before are 0."""
    out = np.zeros((rows[1], job.max_size, span[1] - span[0]))
    tile = _tile(job, span)
    if job.is_closed:
        held = _held_closed(job, tile, rows)
        for (first, last), limits in _calls(job, tile, rows):
            state = np.array([first, 0, first, last, COST_PER_CALL])
            while state[loops.GRAPH] < last:
                loops.sum_closed(state, job.left, tile, limits, held, out)
    else:
        _sum_cliques(job, tile, rows, _held_cliques(job, tile, rows), out)
    return out


def _row_shares(job: _Job, rows: Span, size_weights: Floats, weights: Floats) -> Floats:
    """What each node of some row graphs adds to the weighted sums over all column graphs."""
    offsets, n_columns = job.left.offsets, int(job.right.offsets[-1])
    shares = np.zeros((int(offsets[rows[1]] - offsets[rows[0]]), weights.shape[1]))
    for span in cut(job.right.offsets, 1 + n_columns // TILE_COLUMNS):
        tile, out = _tile(job, span), np.zeros((len(shares), span[1] - span[0]))
        if job.is_closed:
            _share_closed(job, tile, rows, size_weights, out)
        else:
            held = _held_cliques(job, tile, rows)._replace(size_weights=size_weights, shares=out)
            _sum_cliques(job, tile, rows, held, np.zeros((rows[1], job.max_size, span[1] - span[0])))
        shares += np.einsum("ng,go->no", out, weights[slice(*span)])  # not BLAS, whose bits depend on its threads
    return shares


def _share_closed(job: _Job, tile: Any, rows: Span, size_weights: Floats, out: Floats) -> None:
    held, padded = _held_shares(job, tile, rows, out.shape[1]), np.zeros(3)
    padded[: len(size_weights)] = size_weights
    for (first, last), limits in _calls(job, tile, rows):
        own = out[job.left.offsets[first] - job.left.offsets[rows[0]] :]
        state = np.array([first, 0, first, last, COST_PER_CALL])
        while state[loops.GRAPH] < last:
            share_loops.share_closed(state, job.left, tile, limits, padded, held, own)


def _sum_cliques(job: _Job, tile: Any, rows: Span, held: Any, out: Floats) -> None:
    for (first, last), limits in _calls(job, tile, rows):
        own = held._replace(shares=held.shares[job.left.offsets[first] - job.left.offsets[rows[0]] :])
        state = np.array([first, -1, first, last, STEPS_PER_CALL, -1, 0])
        while state[loops.GRAPH] < last:
            loops.sum_cliques(state, job.left, tile, limits, own, out)


def _calls(job: _Job, tile: Any, rows: Span) -> Iterator[tuple[Span, Any]]:
    """Consecutive row graphs whose node kernel is given together, all of them where it is the Gaussian, and that kernel."""
    sizes = np.diff(job.left.offsets)[slice(*rows)]
    is_gaussian = isinstance(job.layout.node_kernel, Gaussian)
    portions = np.zeros_like(sizes) if is_gaussian else np.cumsum(sizes) // GIVEN_ROWS
    cuts = rows[0] + np.flatnonzero(np.diff(portions)) + 1
    for first, last in pairwise([rows[0], *cuts.tolist(), rows[1]]):
        nodes = (int(job.left.offsets[first]), int(job.left.offsets[last]))
        kernel = job.layout.kernel(nodes, tile.columns, job.reach)
        yield (first, last), loops.Limits(kernel, job.threshold, job.floor, job.bits)


def _tile(job: _Job, span: Span) -> Any:
    """The nodes of some consecutive graphs as columns, and their edges and triangles by column."""
    order, columns = job.layout.columns(span)
    graphs, start = job.right, int(job.right.offsets[span[0]])
    position = np.empty(len(order), np.int64)
    position[order - start] = np.arange(len(order))
    degrees = np.diff(graphs.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    arcs = np.arange(indptr[-1]) + np.repeat(graphs.indptr[order] - indptr[:-1], degrees)
    first_nodes = graphs.offsets[span[0] + columns.graphs] - start  # of the graph of each column
    triangles = graphs.triangles[graphs.triangle_starts[span[0]] : graphs.triangle_starts[span[1]]]
    triangles = np.sort(
        position[triangles - start], axis=1
    )  # by their first columns: those near a row are found at once
    return loops.Tile(
        columns=columns,
        indptr=indptr,
        indices=position[graphs.indices[arcs] + np.repeat(first_nodes, degrees)],
        codes=graphs.codes[arcs],
        triangles=triangles[np.argsort(triangles[:, 0], kind="stable")],
    )


def _held_closed(job: _Job, tile: Any, rows: Span) -> Any:
    largest, n_columns = _largest(job, rows), len(tile.columns.graphs)
    require(16.0 * largest * n_columns, _purpose(job, rows))
    return loops.Closed(
        np.empty((largest, n_columns)),
        np.empty((largest, 2), np.int64),
        np.empty((largest if job.max_size > 1 else 0, n_columns)),
        *(np.empty(n_columns) for _ in range(5)),
    )


def _held_shares(job: _Job, tile: Any, rows: Span, n_graphs: int) -> Any:
    largest, n_columns = _largest(job, rows), len(tile.columns.graphs)
    require(32.0 * largest * n_columns, _purpose(job, rows))
    return share_loops.Held(
        kappa=np.empty((largest, n_columns)),
        windows=np.empty((largest, 2), np.int64),
        right=np.empty((largest, n_columns)),
        left=np.empty((largest, n_columns)),
        both=np.empty((largest, n_columns)),
        row=np.empty(n_columns),
        slopes=np.empty(n_columns),
        three=np.empty(n_columns),
        graphs=np.empty(n_graphs),
    )


def _held_cliques(job: _Job, tile: Any, rows: Span) -> Any:
    largest, n_columns, size = _largest(job, rows), len(tile.columns.graphs), job.max_size
    nodes = slice(int(job.left.offsets[rows[0]]), int(job.left.offsets[rows[1]]) + 1)
    degrees = [int(np.diff(indptr).max(initial=0)) for indptr in (job.left.indptr[nodes], tile.indptr)]
    room = degrees[0] * degrees[1] * (size * (size + 1) // 2)
    purpose = _purpose(job, rows)
    require(8.0 * (largest * n_columns + 2.0 * room), purpose)
    return loops.Cliques(
        kappa=np.empty((largest, n_columns)),
        windows=np.empty((largest, 2), np.int64),
        masks=np.zeros(largest, np.int64),
        column_masks=np.zeros(n_columns, np.int64),
        listed=allocate((room, 2), np.int64, purpose),
        stack=np.empty((size, 4), np.int64),
        weights=np.empty(size),
        totals=np.empty(size),
        size_weights=np.empty(0),
        shares=np.empty((0, int(tile.columns.graphs.max(initial=0)) + 1)),
    )


def _largest(job: _Job, rows: Span) -> int:
    return int(np.diff(job.left.offsets[rows[0] : rows[1] + 1]).max(initial=0))


def _purpose(job: _Job, rows: Span) -> str:
    return f"Graph {rows[0] + int(np.diff(job.left.offsets[rows[0] : rows[1] + 1]).argmax())}: its matchings"
