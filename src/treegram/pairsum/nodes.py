"""Sums over pairs of nodes, exactly: K(G, G') = sum_{v in G, v' in G'} <phi(v), phi(v')> k_A(x_v, x_v').

Every kernel that is such a sum goes through :func:`pair_sums`. Nothing of size nodes x nodes is ever stored: columns
are cut into tiles that stay in cache, and each tile's sums go straight to its pairs of graphs. What makes it fast:

- nodes of one graph with equal block and equal vector are merged first;
- a Gaussian k_A is skipped where it is below 2^-53 / (largest graph), which changes no entry of the normalised matrix by
  more than rounding does (by Cauchy-Schwarz the skipped part of K(G, G') is at most 2^-53 sqrt(K(G, G) K(G', G')));
- features that many nodes have are summed as dense rows, the others through lists of the nodes that have them;
- several weightings of the features (the lambda grid) and several feature sets (the depths) share each k_A.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from treegram._parallel import run_tasks
from treegram._types import Floats, Hashes, Ints
from treegram.attributes import Gaussian, NodeKernel
from treegram.pairsum.loops import nodes as loops

__all__ = ["Nodes", "Weighting", "pair_sums", "self_sums", "widest_direction"]


TILE_COLUMNS = 800  # nodes of the largest block in one tile: its vectors and sums then stay in the second-level cache
DENSE_SHARE = 0.15  # a feature that this share of its block has is summed densely; below, lists are faster
TILE_BYTES = 8 << 20  # of the result: a tile is held apart until it is written, one or two for each worker
MANY_DIMENSIONS = 64  # of vectors: beyond, one coordinate is as good a direction as any, and costs nothing
ROWS_PER_CALL = 1 << 14  # compiled code cannot be interrupted: this keeps each call well under a second


@dataclass(frozen=True)
class Nodes:
    """What is summed over: the nodes of ``n_graphs`` graphs, in the order of the graphs.

    A feature must belong to one block: sums go block by block, and pairs of nodes from different blocks are never met.
    """

    n_graphs: int
    graph_ids: Ints
    blocks: Hashes
    vectors: Floats  # (n_nodes, n_attributes)
    features: sp.csr_matrix  # (n_nodes, n_features)


@dataclass(frozen=True)
class Weighting:
    """Which output a feature counts for, and with which weights; features of one kind are treated alike."""

    kinds: Ints  # kind of each feature
    groups: Ints  # group of each kind: one output matrix per group and weight
    weights: Floats  # (n_kinds, n_weights)
    n_groups: int

    @classmethod
    def alike(cls, n_features: int) -> Weighting:
        """All features with weight 1 in one group."""
        return cls(np.zeros(n_features, np.int64), np.zeros(1, np.int64), np.ones((1, 1)), 1)


def pair_sums(
    left: Nodes, right: Nodes | None, node_kernel: NodeKernel, weighting: Weighting, *, n_jobs: int | None = None
) -> Floats:
    """One sum per pair of graphs; ``right=None`` means left with itself, which costs half.

    Returns
    -------
    ndarray of shape (n_groups, n_weights, n_left, n_right)
        The same bits for any ``n_jobs``.
    """
    left = _condense(left, node_kernel)
    right_nodes = left if right is None else _condense(right, node_kernel)
    shape = (weighting.n_groups, weighting.weights.shape[1], left.n_graphs, right_nodes.n_graphs)
    if not len(left.graph_ids) or not len(right_nodes.graph_ids):
        return np.zeros(shape)
    sums = np.empty(shape)
    job = _Job.prepare(left, right_nodes, node_kernel, weighting, symmetric=right is None)
    # Later tiles of a symmetric matrix have more rows: the longest tasks first keep all workers busy to the end.
    tasks = [(job, tile) for tile in reversed(job.tiles)]
    results = run_tasks(_tile_sums, tasks, n_jobs=n_jobs, label="pair sums")
    for (_, tile), part in zip(tasks, results, strict=True):
        _place(part.transpose(1, 3, 0, 2), tile, sums, symmetric=right is None)
    return sums


def self_sums(nodes: Nodes, node_kernel: NodeKernel, weighting: Weighting) -> Floats:
    """The sum of each graph with itself: the diagonal of :func:`pair_sums`, shape (n_groups, n_weights, n_graphs)."""
    nodes = _condense(nodes, node_kernel)
    offsets = np.searchsorted(nodes.graph_ids, np.arange(nodes.n_graphs + 1))
    given, gamma, vectors = np.empty(0), 0.0, nodes.vectors
    if isinstance(node_kernel, Gaussian):
        gamma = node_kernel.gamma
    else:
        spans = [slice(a, b) for a, b in pairwise(offsets) if b > a]
        given = np.concatenate([given, *(node_kernel(vectors[s], vectors[s]).ravel() for s in spans)])
    out = np.zeros((nodes.n_graphs, weighting.n_groups, weighting.weights.shape[1]))
    features = nodes.features
    loops.sum_self(
        offsets, nodes.blocks, vectors.copy(), features.indptr, features.indices, features.data,
        weighting.groups, weighting.weights, weighting.kinds, given, gamma, out,
    )  # fmt: skip
    return out.transpose(1, 2, 0)


# -------------------------------------------------------------------- preparation


def _condense(nodes: Nodes, node_kernel: NodeKernel) -> Nodes:
    """The fewest nodes that give the same sums."""
    if node_kernel == Gaussian(0.0):  # k_A is 1 whatever the vectors
        nodes = replace(nodes, vectors=np.zeros((len(nodes.vectors), 1)))
    return _merge_equal(nodes)


def _merge_equal(nodes: Nodes) -> Nodes:
    """Join the nodes of one graph with equal block and vector: their features add up."""
    n, d = nodes.vectors.shape
    # + 0.0 makes -0.0 and 0.0 the same bits. The products only propose; equality decides.
    bits = np.ascontiguousarray(nodes.vectors + 0.0).view(np.uint64).reshape(n, d)
    multipliers = np.random.default_rng(0).integers(2**63, size=d + 2, dtype=np.uint64) * 2 + 1
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(32))) * multipliers[:d]
        keys = (bits ^ (bits >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
        keys += nodes.graph_ids.astype(np.uint64) * multipliers[d] + nodes.blocks * multipliers[d + 1]
    _, first, merged = np.unique(keys, return_index=True, return_inverse=True)
    same = (
        (nodes.vectors == nodes.vectors[first][merged]).all(axis=1)
        & (nodes.graph_ids == nodes.graph_ids[first][merged])
        & (nodes.blocks == nodes.blocks[first][merged])
    )
    if len(first) == n or not same.all():
        return nodes
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    joined = sp.csr_matrix((np.ones(n), (place[merged], np.arange(n))), shape=(len(first), n))
    first = first[order]
    return replace(
        nodes,
        graph_ids=nodes.graph_ids[first],
        blocks=nodes.blocks[first],
        vectors=nodes.vectors[first],
        features=(joined @ nodes.features).tocsr(),
    )


@dataclass(frozen=True)
class _Tile:
    """Columns of some consecutive graphs, sorted by block and by place within it."""

    first_graph: int
    last_graph: int
    n_rows: int  # how many rows meet this tile, and of how many graphs
    n_row_graphs: int
    graphs: Ints  # counted from first_graph
    block_starts: Ints
    vectors: Floats  # (d, n_columns)
    places: Floats
    features: sp.csr_matrix


@dataclass(frozen=True)
class _Job:
    """Everything that the tiles of one computation share."""

    node_kernel: NodeKernel
    weighting: Weighting
    symmetric: bool
    row_graphs: Ints
    row_blocks: Ints
    row_vectors: Floats
    row_places: Floats
    row_features: sp.csr_matrix
    dense_slots: Ints
    block_kinds: Ints
    reach: float
    tiles: list[_Tile]

    @classmethod
    def prepare(
        cls, left: Nodes, right: Nodes, node_kernel: NodeKernel, weighting: Weighting, *, symmetric: bool
    ) -> _Job:
        n_left = len(left.graph_ids)
        n_blocks, blocks = _number(np.concatenate([left.blocks, right.blocks]))
        left_blocks, right_blocks = blocks[:n_left], blocks[n_left:]
        extent = max(float(np.abs(nodes.vectors).max(initial=0.0)) for nodes in (left, right)) or 1.0
        direction = widest_direction(right.vectors / extent)
        left_places, right_places = (np.einsum("ni,i->n", nodes.vectors / extent, direction) for nodes in (left, right))
        slots, kinds = _choose_dense(right.features, right_blocks, n_blocks, weighting.kinds)
        rows = np.lexsort((left_blocks, left.graph_ids))
        result_bytes = 8 * left.n_graphs * right.n_graphs * weighting.n_groups * weighting.weights.shape[1]
        largest_block = int(np.bincount(right_blocks, minlength=1).max())
        n_tiles = 1 + max(largest_block // TILE_COLUMNS, result_bytes // TILE_BYTES)
        return cls(
            node_kernel=node_kernel,
            weighting=weighting,
            symmetric=symmetric,
            row_graphs=left.graph_ids[rows],
            row_blocks=left_blocks[rows],
            row_vectors=left.vectors[rows],
            row_places=left_places[rows],
            row_features=left.features[rows],
            dense_slots=slots,
            block_kinds=kinds,
            reach=_reach(left, right, node_kernel, extent),
            tiles=list(_cut(right, right_blocks, n_blocks, right_places, None if symmetric else left, n_tiles)),
        )


def _number(values: Hashes) -> tuple[int, Ints]:
    distinct, numbers = np.unique(values, return_inverse=True)
    return len(distinct), numbers.astype(np.int64)


def _reach(left: Nodes, right: Nodes, node_kernel: NodeKernel, extent: float) -> float:
    """How far apart places may be before the Gaussian is below 2^-53 / (largest graph); places are in units of extent."""
    width = np.sqrt(node_kernel.gamma) * extent if isinstance(node_kernel, Gaussian) else 0.0
    if width == 0:
        return np.inf
    largest = max(int(np.bincount(nodes.graph_ids, minlength=1).max()) for nodes in (left, right))
    rounding = 8 * np.finfo(float).eps * left.vectors.shape[1]
    return float(np.sqrt(53 * np.log(2) + np.log(largest + 1)) / width + rounding)


def widest_direction(vectors: Floats) -> Floats:
    """The unit vector along which the vectors vary most: windows along it leave out the most pairs.

    Any direction is right, so a sample will do. einsum, not a matrix product: BLAS would wake threads that spin for
    longer than this takes.
    """
    sample = vectors[:: 1 + len(vectors) // 2000]
    centred = sample - sample.mean(axis=0)
    if centred.shape[1] > MANY_DIMENSIONS:
        spread: Floats = np.einsum("ni,ni->i", centred, centred)
        return (np.arange(len(spread)) == spread.argmax()).astype(float)
    direction: Floats = np.linalg.eigh(np.einsum("ni,nj->ij", centred, centred))[1][:, -1]
    return direction


def _choose_dense(features: sp.csr_matrix, blocks: Ints, n_blocks: int, kinds: Ints) -> tuple[Ints, Ints]:
    """A dense row for each common feature of a block, rows of one kind side by side.

    Returns each feature's row or -1, and for each block the kinds of its rows, with their number in the last column.
    """
    n_features = features.shape[1]
    support = np.bincount(features.indices, minlength=n_features)
    feature_blocks = np.zeros(n_features, np.int64)
    feature_blocks[features.indices] = np.repeat(blocks, np.diff(features.indptr))
    block_sizes = np.bincount(blocks, minlength=n_blocks)
    common = np.flatnonzero((support > 0) & (support >= DENSE_SHARE * block_sizes[feature_blocks]))
    common = common[np.lexsort((kinds[common], feature_blocks[common]))]
    numbers = np.bincount(feature_blocks[common], minlength=n_blocks)
    rows = np.arange(len(common)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    slots = np.full(n_features, -1, np.int64)
    slots[common] = rows
    block_kinds = np.zeros((n_blocks, int(numbers.max(initial=0)) + 1), np.int64)
    block_kinds[feature_blocks[common], rows] = kinds[common]
    block_kinds[:, -1] = numbers
    return slots, block_kinds


def _cut(
    nodes: Nodes, blocks: Ints, n_blocks: int, places: Floats, rows: Nodes | None, n_tiles: int
) -> Iterator[_Tile]:
    """Tiles of consecutive graphs; ``rows=None`` (symmetric): rows up to the tile's last graph."""
    offsets = np.searchsorted(nodes.graph_ids, np.arange(nodes.n_graphs + 1))
    goals = len(nodes.graph_ids) * np.arange(1, n_tiles) / n_tiles
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, goals), [nodes.n_graphs]]))
    for first, last in pairwise(cuts):
        columns = np.arange(offsets[first], offsets[last])
        columns = columns[np.lexsort((places[columns], blocks[columns]))]
        yield _Tile(
            first_graph=int(first),
            last_graph=int(last),
            n_rows=int(offsets[last]) if rows is None else len(rows.graph_ids),
            n_row_graphs=int(last) if rows is None else rows.n_graphs,
            graphs=nodes.graph_ids[columns] - first,
            block_starts=np.searchsorted(blocks[columns], np.arange(n_blocks + 1)),
            vectors=np.ascontiguousarray(nodes.vectors[columns].T),
            places=places[columns],
            features=nodes.features[columns],
        )


# -------------------------------------------------------------------- one tile


def _tile_sums(job: _Job, tile: _Tile) -> Floats:
    """The tile's part of the result, shape (row graphs, n_groups, column graphs, n_weights)."""
    weighting, features, rows = job.weighting, tile.features, job.row_features
    inverted = loops.invert(
        features.indptr, features.indices, features.data, job.dense_slots, job.block_kinds.shape[1] - 1
    )
    shape = (tile.n_row_graphs, weighting.n_groups, tile.last_graph - tile.first_graph, weighting.weights.shape[1])
    out = np.zeros(shape)
    gamma = job.node_kernel.gamma if isinstance(job.node_kernel, Gaussian) else None
    step = 1024 if gamma is None else ROWS_PER_CALL
    for first in range(0, tile.n_rows, step):
        span = (first, min(first + step, tile.n_rows))
        loops.sum_tile(
            span, job.row_graphs, job.row_blocks, job.row_vectors, job.row_places,
            rows.indptr, rows.indices, rows.data,
            tile.graphs, tile.block_starts, tile.vectors, tile.places, inverted,
            job.dense_slots, job.block_kinds, weighting.groups, weighting.weights, weighting.kinds,
            _given(job, tile, span) if gamma is None else np.empty((0, 0)), gamma or 0.0, job.reach, out,
        )  # fmt: skip
    return out


def _given(job: _Job, tile: _Tile, span: tuple[int, int]) -> Floats:
    """The node kernel of some rows with the tile's columns, where their blocks are equal."""
    given = np.zeros((span[1] - span[0], len(tile.graphs)))
    blocks = job.row_blocks[slice(*span)]
    for block in np.unique(blocks):
        rows = np.flatnonzero(blocks == block)
        columns = slice(tile.block_starts[block], tile.block_starts[block + 1])
        if columns.stop > columns.start:
            given[rows, columns] = job.node_kernel(job.row_vectors[span[0] + rows], tile.vectors[:, columns].T)
    return given


def _place(part: Floats, tile: _Tile, sums: Floats, *, symmetric: bool) -> None:
    """Write a tile's part, and its mirror image where the matrix is symmetric."""
    columns = slice(tile.first_graph, tile.last_graph)
    sums[:, :, : tile.n_row_graphs, columns] = part
    if symmetric:
        square = sums[:, :, columns, columns]
        square += square.swapaxes(2, 3).copy()
        square *= 0.5
        sums[:, :, columns, : tile.first_graph] = part[:, :, : tile.first_graph].swapaxes(2, 3)
