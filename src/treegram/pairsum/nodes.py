"""Sums over pairs of nodes, exactly: K(G, G') = sum_{v in G, v' in G'} <phi(v), phi(v')> k_A(x_v, x_v').

Every kernel that is such a sum goes through :func:`pair_sums`, tile by tile (``pairsum.tiles``). What makes it fast:

- if k_A is 1, graphs are compared by their total features, and nothing below is needed, unless features have weights;
- nodes of one graph with equal block and equal vector are merged first;
- a Gaussian k_A is skipped where it is below 2^-53 / (largest graph), which changes no entry of the normalized matrix by
  more than rounding does (by Cauchy-Schwarz, what is skipped of K(G, G') is at most 2^-53 sqrt(K(G, G) K(G', G')));
- features that many nodes have are summed as dense rows, up to two features of four nodes at once, the others through lists of
  the nodes that have them; both are gathered by column first, and by graph only once for each row graph and block;
- features that a single node has add to the diagonal only, and go there directly;
- columns are aligned to cache lines, and long vectors are compared four rows at once, so that loops load as little as possible;
- several weightings of the features (the lambda grid) and several feature sets (the depths) share each k_A.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import contracted, inlined, jit, pasted
from treegram._core.parallel import run_tasks, track
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel, is_one
from treegram.pairsum.products import feature_products, sum_rows
from treegram.pairsum.tiles import (
    Layout,
    Span,
    aligned,
    clear,
    copy,
    cut,
    fill_matrix,
    gaussian_row,
    gaussian_rows,
    order_by,
    window_of,
)
from treegram.structure.features import add_rows, first_from
from treegram.structure.hashing import equal_rows, number_pairs

TILE_COLUMNS = 800  # nodes of the largest block in one tile: its vectors and sums then stay in the second-level cache
SELF_COLUMNS = 4096  # nodes in one tile of graphs that meet only themselves: blocks are small there
DENSE_FRACTION = 0.15  # a feature that this fraction of its block has is summed densely; below, lists are faster
# Bytes of the result: a tile is held separately until it is written, one or two for each worker. If the result is large, enough
# tiles to keep the workers busy will do: in narrow tiles of tiny graphs, starting a row dominates its cost.
TILE_BYTES, MOST_TILES = 8 << 20, 11
# Compiled code cannot be interrupted: this many rows, or rows of this many multiplications, keep each call well under a second.
ROWS_PER_CALL, COST_PER_CALL = 1 << 14, 1 << 30
COMMON_FRACTION = 1 / 64  # a feature that this fraction of all nodes has is looked up among those of its kind
KERNEL_ROWS = 1024  # rows of a node kernel that is not the Gaussian, computed at a time
AT_ONCE = 4  # rows of one graph and block that are summed together
LANES = 8  # columns in a vector of the widest processors, and numbers in a cache line: blocks start at multiples of it
SLACK = 1.25  # by how much the window of such rows may exceed their own, on average

# Sparse features: those of the node v are the entries indptr[v] .. indptr[v + 1] - 1.
FeatureEntries = namedtuple("FeatureEntries", "indptr indices data")
# Nodes in rows, with their graphs and sparse features.
FeatureRows = namedtuple("FeatureRows", "graphs blocks vectors projections indptr indices data")
# The columns that have each feature. ``slots[t]`` is the dense row of a common feature among those of its block, or -1. A
# rare feature has the columns listed[ends[t - 1] .. ends[t] - 1]. The sums of features of one kind and block are gathered in one
# lane, a number per column: ``lanes[t]`` is the feature's, or -1 if its kind has none. ``lane_kinds`` has the kind of each lane
# of a block, and their number in the last column.
Inverted = namedtuple("Inverted", "slots lanes lane_kinds dense ends listed values")
# The kind of each feature and its weights (n_kinds, n_weights); the kinds of a group are starts[group] .. starts[group + 1] - 1.
Weights = namedtuple("Weights", "kinds weights starts")
# TileScratch arrays: AT_ONCE rows of node kernels; lanes; bins, which gather the sums of each kind by graph and are weighted at the end;
# totals of the row graph; flags of the lanes and of the bins in use; two small ones; and of the rows' common features, which wait until
# all these rows are seen: the index of each slot among them or -1, the features, and the factor that each row has for each. Lanes,
# bins, totals and flags are zero before and after.
TileScratch = namedtuple(
    "TileScratch", "kernels joined bins totals lanes_in_use bins_in_use window slot_pair slot_indices waiting factors"
)


@dataclass(frozen=True)
class Nodes:
    """The nodes to sum over: those of ``n_graphs`` graphs, in the order of the graphs.

    A feature must belong to one block: sums go block by block, and nodes from different blocks are never paired.
    """

    n_graphs: int
    graph_ids: Ints
    blocks: Hashes
    vectors: Floats  # (n_nodes, n_attributes)
    features: sp.csr_matrix  # (n_nodes, n_features)

    @property
    def offsets(self) -> Ints:
        """Graph g has the nodes offsets[g] .. offsets[g + 1] - 1."""
        return np.searchsorted(self.graph_ids, np.arange(self.n_graphs + 1))

    def taken(self, positions: Ints) -> Nodes:
        """Return some of the nodes."""
        return replace(
            self,
            graph_ids=self.graph_ids[positions],
            blocks=self.blocks[positions],
            vectors=self.vectors[positions],
            features=self.features[positions],
        )


@dataclass(frozen=True)
class Weighting:
    """The output that each feature counts for, and its weights; features of one kind are treated the same."""

    kinds: Ints  # kind of each feature
    groups: Ints  # group of each kind, ascending: one output matrix per group and weight
    weights: Floats  # (n_kinds, n_weights)
    n_groups: int

    @classmethod
    def alike(cls, n_features: int) -> Weighting:
        """Return weight 1 for all features, in one group."""
        return cls(np.zeros(n_features, np.int64), np.zeros(1, np.int64), np.ones((1, 1)), 1)


def pair_sums(
    left: Nodes, right: Nodes | None, node_kernel: NodeKernel, weighting: Weighting, *, n_jobs: int | None = None
) -> Floats:
    """Return one sum per pair of graphs; ``right=None`` means left with itself, which costs half: only the upper half is filled.

    Returns
    -------
    ndarray of shape (n_groups, n_weights, n_left, n_right)
        The same bits for any ``n_jobs``. See ``tiles.complete`` for the lower half of a symmetric matrix.
    """
    columns = left if right is None else right
    shape = (weighting.n_groups, weighting.weights.shape[1], left.n_graphs, columns.n_graphs)
    if _can_count((left, columns), node_kernel, weighting):
        sums, rows = np.empty(shape), _totals(left, weighting)
        others = [None] * len(rows) if right is None else _totals(right, weighting)
        for group in range(len(rows)):
            feature_products(rows[group], others[group], sums[group, 0])
        return sums
    left = _condense(left, node_kernel)
    columns = left if right is None else _condense(right, node_kernel)
    if not len(left.graph_ids) or not len(columns.graph_ids):
        return np.zeros(shape)
    sums = np.empty(shape)
    job = _NodeJob.prepare(left, columns, node_kernel, weighting)
    tiles = job.spans(sums.nbytes)
    fill_matrix(_tile_sums, job, tiles, sums, symmetric=right is None, n_jobs=n_jobs, label="pair sums")
    if right is None:
        np.einsum("...ii->...i", sums)[...] += job.diagonal
    return sums


def self_sums(nodes: Nodes, node_kernel: NodeKernel, weighting: Weighting, *, n_jobs: int | None = None) -> Floats:
    """Return the sum of each graph with itself: the diagonal of :func:`pair_sums`, shape (n_groups, n_weights, n_graphs)."""
    if _can_count((nodes,), node_kernel, weighting):
        totals = _totals(nodes, weighting)
        return np.stack([counts.power(2) @ np.ones(counts.shape[1]) for counts in totals])[:, None]
    nodes = _condense(nodes, node_kernel)
    sums = np.zeros((weighting.n_groups, weighting.weights.shape[1], nodes.n_graphs))
    if len(nodes.graph_ids):
        spans = cut(nodes.offsets, 1 + len(nodes.graph_ids) // SELF_COLUMNS)
        tasks = [(nodes, node_kernel, weighting, span) for span in spans]
        results = run_tasks(_own_sums, tasks, n_jobs=n_jobs, label="self sums")
        for span, squares in zip(spans, results, strict=True):
            sums[:, :, slice(*span)] = squares
    return sums


# -------------------------------------------------------------------- without vectors


def _can_count(sides: tuple[Nodes, ...], node_kernel: NodeKernel, weighting: Weighting) -> bool:
    """Check that k_A and all weights are 1: the sums are then inner products of the total features of each graph."""
    is_plain = weighting.weights.shape[1] == 1 and bool((weighting.weights == 1.0).all())
    return is_plain and is_one(node_kernel, *(nodes.vectors for nodes in sides))


def _totals(nodes: Nodes, weighting: Weighting) -> list[sp.csr_matrix]:
    """Return the total features of each graph, group by group; sorted, so that all sums have the same order."""
    totals = sum_rows(nodes.features, nodes.offsets).tocsc().tocsr()
    groups = weighting.groups[weighting.kinds]
    return [totals[:, groups == group] for group in range(weighting.n_groups)]


# -------------------------------------------------------------------- preparation


def _condense(nodes: Nodes, node_kernel: NodeKernel) -> Nodes:
    """Return the fewest nodes with the same sums: those of one graph with equal block and vector are merged, their features added up."""
    if node_kernel == Gaussian(0.0):  # k_A is 1 for all vectors, and features of different blocks are different ones
        nodes = replace(nodes, vectors=np.zeros((len(nodes.vectors), 1)), blocks=np.zeros_like(nodes.blocks))
    groups, first = equal_rows(nodes.vectors, nodes.graph_ids, nodes.blocks)
    if len(first) == len(groups):
        return nodes
    return replace(
        nodes,
        graph_ids=nodes.graph_ids[first],
        blocks=nodes.blocks[first],
        vectors=nodes.vectors[first],
        features=add_rows(nodes.features, groups, len(first)),
    )


@dataclass(frozen=True)
class _NodeJob:
    """Everything that the tiles of one computation have in common."""

    layout: Layout
    rows: Any  # FeatureRows
    entries: Any  # FeatureEntries of the columns
    weights: Any  # Weights
    lanes: _Lanes
    diagonal: Floats  # (n_groups, n_weights, n_graphs): what features of single nodes add to it

    @classmethod
    def prepare(cls, left: Nodes, right: Nodes, node_kernel: NodeKernel, weighting: Weighting) -> _NodeJob:
        """Sort the nodes of the rows, and number the features so that those that many nodes have come first."""
        largest = max(int(np.diff(nodes.offsets).max()) for nodes in (left, right))
        layout = Layout.make(left, right, node_kernel, 53 * np.log(2) + np.log(largest + 1))
        support, owners, values = _survey(right.features)
        order, alone = _hot_first(right.features, support, weighting), np.empty(0, np.int64)
        if left is right and isinstance(node_kernel, Gaussian):
            # A feature of a single node adds to the diagonal only, where k_A(x, x) is 1. Most features are like this, and the
            # other nodes would spend all their time looking for them.
            alone = np.flatnonzero(support == 1)
        else:
            order = np.concatenate([order, _rare_last(right.features, support)])
        kinds, support, feature_blocks = weighting.kinds[order], support[order], layout.right.blocks[owners[order]]
        lanes = _Lanes.choose(
            support, feature_blocks, layout.right.blocks, layout.n_blocks, kinds, len(weighting.groups)
        )
        # FeatureRows of one graph and block by projection: neighbors have nearly the same window, and are summed together.
        row_order = order_by(left.graph_ids, left.n_graphs, layout.left.by_block)
        side, rows = layout.left.taken(row_order), _arranged(left.features, row_order, order)
        if len(weighting.groups) > 1:
            sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(len(row_order), len(order))).sort_indices()
        same = left is right
        return cls(
            layout=replace(layout, left=side, right=side if same else layout.right),
            rows=FeatureRows(left.graph_ids, side.blocks, side.vectors, side.projections, *rows),
            entries=rows if same else _arranged(right.features, np.arange(len(right.blocks)), order),
            weights=Weights(
                kinds, weighting.weights, np.searchsorted(weighting.groups, np.arange(weighting.n_groups + 1))
            ),
            lanes=lanes,
            diagonal=_square_sums(right, owners[alone], values[alone], weighting, weighting.kinds[alone]),
        )

    def columns(self, span: Span) -> tuple[Ints, Ints, Any]:
        """Return the nodes of some graphs on the right as a tile: the nodes in order, the column of each, and the tile.

        Where k_A is the Gaussian, each block starts at a multiple of LANES; columns before it repeat a node, without its features.
        """
        order, tile = self.layout.columns(span)
        if not isinstance(self.layout.node_kernel, Gaussian):
            return order, np.arange(len(order)), tile
        sizes = np.diff(tile.block_starts)
        starts = np.concatenate([[0], np.cumsum(-(-sizes // LANES) * LANES)])
        positions = np.arange(len(order)) + np.repeat(starts[:-1] - tile.block_starts[:-1], sizes)
        at = np.zeros(starts[-1], np.int64)
        at[positions] = np.arange(len(order))
        at = np.maximum.accumulate(at)
        vectors = aligned(len(tile.vectors), len(at))
        np.take(tile.vectors, at, axis=1, out=vectors)
        return order, positions, type(tile)(tile.graphs[at], starts, vectors, tile.projections[at])

    def spans(self, n_bytes: int) -> list[Span]:
        """Return the tiles of a result of ``n_bytes`` bytes."""
        largest_block = int(np.bincount(self.layout.right.blocks, minlength=1).max())
        n_tiles = 1 + max(largest_block // TILE_COLUMNS, min(n_bytes // TILE_BYTES, MOST_TILES))
        return cut(self.layout.right.offsets, n_tiles)


def _survey(features: sp.csr_matrix) -> tuple[Ints, Ints, Floats]:
    """Return for each feature the number of nodes that have it, one such node, and its value there."""
    n = features.shape[1]
    support, owners = np.zeros((2, n), np.int32)  # short integers: they are looked up at random
    values = np.zeros(n)
    survey((features.indptr, features.indices, features.data), support, owners, values)
    return support, owners, values


def _square_sums(nodes: Nodes, owners: Ints, values: Floats, weighting: Weighting, kinds: Ints) -> Floats:
    """Return the weighted squares of the features of single nodes by graph, shape (n_groups, n_weights, n_graphs)."""
    outputs = weighting.groups[kinds] * nodes.n_graphs + nodes.graph_ids[owners]
    squares, n_sums = values * values, weighting.n_groups * nodes.n_graphs
    sums: list[Floats] = [
        np.bincount(outputs, squares * weights[kinds], n_sums).astype(float) for weights in weighting.weights.T
    ]
    return np.stack(sums).reshape(len(sums), weighting.n_groups, -1).swapaxes(0, 1)


def _hot_first(features: sp.csr_matrix, support: Ints, weighting: Weighting) -> Ints:
    """Return the features of several nodes, those of many nodes first: what is looked up stays in cache.

    Those of many nodes come kind by kind, so that a row's features of one kind are summed at once.
    """
    shared = order_by(64 - np.frexp(support)[1], 65, np.flatnonzero(support > 1))  # by powers of 2
    if len(weighting.groups) > 1:
        is_rare = support < COMMON_FRACTION * features.shape[0]
        shared = order_by(is_rare, 2, order_by(weighting.kinds, len(weighting.groups), shared))
    return shared


def _rare_last(features: sp.csr_matrix, support: Ints) -> Ints:
    """Return the features of one node, in the order of the nodes, and those of none."""
    return np.concatenate([features.indices[support[features.indices] == 1], np.flatnonzero(support == 0)])


def _arranged(features: sp.csr_matrix, row_order: Ints, order: Ints) -> Any:
    """Return the features of nodes in another order, under their indices in ``order``; others are left out."""
    numbers = np.full(features.shape[1], len(order), features.indices.dtype)
    numbers[order] = np.arange(len(order))
    indptr, indices, data = np.zeros_like(features.indptr), np.empty_like(features.indices), np.empty(features.nnz)
    entries = (features.indptr, features.indices, features.data)
    n = arrange(entries, row_order, numbers, len(order), (indptr, indices, data))
    return FeatureEntries(indptr, indices[:n], data[:n])


@dataclass(frozen=True)
class _Lanes:
    """The features of a block that are summed densely, and the lanes that gather the sums of each kind: see ``Inverted``."""

    slots: Ints
    lanes: Ints
    lane_kinds: Ints
    n_slots: int  # of the block with the most

    @classmethod
    def choose(
        cls, support: Ints, feature_blocks: Ints, blocks: Ints, n_blocks: int, kinds: Ints, n_kinds: int
    ) -> _Lanes:
        """Choose a dense row for each common feature of a block, and a lane for each kind that has such rows.

        Where all features are of one kind, each block has a lane for it.
        """
        n_features = len(support)
        block_sizes = np.bincount(blocks, minlength=n_blocks)
        common = np.flatnonzero((support > 0) & (support >= DENSE_FRACTION * block_sizes[feature_blocks]))
        common = common[np.lexsort((kinds[common], feature_blocks[common]))]
        keys = feature_blocks * n_kinds + kinds  # block and kind
        with_lane = np.arange(n_blocks) if n_kinds == 1 else np.unique(keys[common])
        slot_numbers, _ = _number_within(feature_blocks[common], n_blocks)
        lane_numbers, lane_kinds = _number_within(with_lane // n_kinds, n_blocks)
        lane_kinds[with_lane // n_kinds, lane_numbers] = with_lane % n_kinds
        lanes = np.full(n_features, -1)
        if len(with_lane):
            nearest = np.minimum(np.searchsorted(with_lane, keys), len(with_lane) - 1)
            lanes = np.where(with_lane[nearest] == keys, lane_numbers[nearest], -1)
        slots = np.full(n_features, -1, np.int64)
        slots[common] = slot_numbers
        return cls(slots.astype(np.int32), lanes.astype(np.int32), lane_kinds, int(slot_numbers.max(initial=-1)) + 1)


def _number_within(blocks: Ints, n_blocks: int) -> tuple[Ints, Ints]:
    """Number entries within their sorted blocks; also return a table of zeros for them, with their number in the last column."""
    sizes = np.bincount(blocks, minlength=n_blocks)
    numbers = np.arange(len(blocks)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.zeros((n_blocks, int(sizes.max(initial=0)) + 1), np.int64)
    table[:, -1] = sizes
    return numbers, table


# -------------------------------------------------------------------- one tile


def _tile_sums(job: _NodeJob, span: Span, graphs: Span) -> Floats:
    """Return the sums of the first row graphs with those of a span, shape (n_groups, n_weights, rows, columns)."""
    offsets = job.layout.left.offsets[: graphs[1] + 1]
    out = np.empty((len(job.weights.starts) - 1, job.weights.weights.shape[1], graphs[1], span[1] - span[0]))
    out[:, :, np.flatnonzero(np.diff(offsets) == 0)] = 0.0
    _add_tile(job, *job.columns(span), int(offsets[-1]), out)
    return out


def _own_sums(nodes: Nodes, node_kernel: NodeKernel, weighting: Weighting, span: Span) -> Floats:
    """Return the sums of the graphs of a span, each with itself, shape (n_groups, n_weights, graphs).

    With blocks and features that belong to one graph each, no graph meets another: one tile is enough for all of them.
    """
    inside = nodes.taken(np.arange(nodes.offsets[span[0]], nodes.offsets[span[1]]))
    graphs, features = (inside.graph_ids - span[0]).astype(np.uint64), inside.features
    blocks, _ = number_pairs(graphs, inside.blocks)
    columns, first = number_pairs(np.repeat(graphs, np.diff(features.indptr)), features.indices.astype(np.uint64))
    inside = replace(
        inside,
        n_graphs=span[1] - span[0],
        graph_ids=graphs.astype(np.int64),
        blocks=blocks.astype(np.uint64),
        features=sp.csr_matrix((features.data, columns, features.indptr), shape=(len(graphs), len(first))),
    )
    weighting = replace(weighting, kinds=weighting.kinds[features.indices[first]])
    out = np.zeros((weighting.n_groups, weighting.weights.shape[1], inside.n_graphs, 1))
    if len(graphs):
        job = _NodeJob.prepare(inside, inside, node_kernel, weighting)
        order, positions, columns = job.columns((0, inside.n_graphs))
        columns = columns._replace(graphs=np.zeros_like(columns.graphs))
        _add_tile(job, order, positions, columns, len(graphs), out)
        out[..., 0] += job.diagonal
    return out[..., 0]


def _add_tile(job: _NodeJob, order: Ints, positions: Ints, columns: Any, n_rows: int, out: Floats) -> None:
    """Write the sums of the first ``n_rows`` rows with a tile that has these nodes at these positions."""
    inverted = _invert(job, order, positions, len(columns.graphs))
    n_lanes, width = job.lanes.lane_kinds.shape[1] - 1, len(columns.graphs)
    n_kinds, n_graphs = len(job.weights.weights), out.shape[-1]
    scratch = TileScratch(
        kernels=aligned(AT_ONCE, width),
        joined=aligned(n_lanes, width),
        bins=np.zeros((n_kinds, n_graphs)),
        totals=np.zeros((*out.shape[:2], n_graphs)),
        lanes_in_use=np.zeros(n_lanes, np.bool_),
        bins_in_use=np.zeros(n_kinds, np.bool_),
        window=np.empty(2, np.int64),
        slot_pair=np.empty(4, np.int64),
        slot_indices=np.full(job.lanes.n_slots, -1, np.int64),
        waiting=np.empty(job.lanes.n_slots, np.int64),
        factors=np.empty((job.lanes.n_slots, AT_ONCE)),
    )
    is_gaussian = isinstance(job.layout.node_kernel, Gaussian)
    widest = int(np.diff(columns.block_starts).max())
    row_cost = widest * (8 + len(job.rows.indices) // max(len(job.rows.blocks), 1)) + 1
    step = min(ROWS_PER_CALL, 1 + COST_PER_CALL // row_cost) if is_gaussian else KERNEL_ROWS
    starts = range(0, n_rows, step)
    for first in track(starts, total=len(starts), label="pair sums"):  # shown if one tile takes long
        rows = (first, min(first + step, n_rows))
        kernel = job.layout.kernel(rows, columns)
        sum_tile(rows, job.rows, columns, inverted, job.weights, kernel, scratch, out)


def _invert(job: _NodeJob, order: Ints, positions: Ints, n_columns: int) -> Any:
    """Return the columns of a tile, which are these nodes at these positions, by feature."""
    lanes, starts = job.lanes, job.entries.indptr
    n_entries = int((starts[order + 1] - starts[order]).sum())
    inverted = Inverted(
        slots=lanes.slots,
        lanes=lanes.lanes,
        lane_kinds=lanes.lane_kinds,
        dense=aligned(lanes.n_slots, n_columns),
        ends=np.zeros(len(lanes.slots) + 1, np.int32),
        listed=np.empty(n_entries, np.uint32),
        values=np.empty(n_entries),
    )
    invert(job.entries, order, positions, inverted)
    return inverted


# -------------------------------------------------------------------- compiled: preparation


@jit
def survey(entries, support, owners, values):
    """Count the nodes that have each feature in ``support``, which is initially zero; fill the last such node and its value."""
    indptr, indices, data = entries
    for v in range(len(indptr) - 1):
        for i in range(indptr[v], indptr[v + 1]):
            support[indices[i]] += 1
            owners[indices[i]], values[indices[i]] = v, data[i]


@jit
def arrange(entries, order, numbers, n, arranged):
    """Write rows in another order, and features under other numbers without those of number n; return how many entries are left.

    No branch: it would be unpredictable.
    """
    (indptr, indices, data), (new_indptr, new_indices, new_data) = entries, arranged
    used = 0
    for row in range(len(order)):
        for i in range(indptr[order[row]], indptr[order[row] + 1]):
            t = numbers[indices[i]]
            new_indices[used], new_data[used] = t, data[i]
            used += t < n
        new_indptr[row + 1] = used
    return used


@jit
def invert(entries, order, positions, inverted):
    """Fill ``inverted`` with the features of some nodes, whose columns are ``positions``, ascending.

    Slots and lanes are known, ``dense`` and ``ends`` are zero, and lists have room for all entries.
    """
    indptr, indices, data = entries
    slots, dense, ends = inverted.slots, inverted.dense, inverted.ends
    for node in order:
        for i in range(indptr[node], indptr[node + 1]):
            if slots[indices[i]] < 0:
                ends[indices[i] + 1] += 1
    for t in range(len(slots)):
        ends[t + 1] += ends[t]
    for n in range(len(order)):
        j = positions[n]
        for i in range(indptr[order[n]], indptr[order[n] + 1]):
            t = indices[i]
            if slots[t] >= 0:
                dense[slots[t], j] = data[i]
            else:
                inverted.listed[ends[t]], inverted.values[ends[t]] = j, data[i]
                ends[t] += 1


# -------------------------------------------------------------------- compiled: one tile


@contracted
def _bin_listed(a, start, stop, listed, values, r, kernels, graphs, kind, bins):
    """Add a * values * kernels[r, j] to bins[kind, graph of j] over some of the listed columns j."""
    for i in range(start, stop):
        j = listed[i]
        bins[kind, graphs[j]] += a * values[i] * kernels[r, j]


@contracted
def _join_listed(a, start, stop, listed, values, r, kernels, lane, joined):
    """Add a * values * kernels[r, j] to joined[lane, j] over some of the listed columns j."""
    for i in range(start, stop):
        j = listed[i]
        joined[lane, j] += a * values[i] * kernels[r, j]


@contracted
def _join_row(n, window, slot_pair, i, factors, dense, r, kernels, lane, joined):
    """Add kernels[r] * (sum of factors[i + m, r] * dense[slot_pair[m]] over m < n <= 2) to joined[lane] over the columns of a window."""
    low, high, lane, r = np.uint64(window[0]), np.uint64(window[1]), np.uint64(lane), np.uint64(r)
    x, a = np.uint64(slot_pair[0]), factors[i, r]
    if n == 1:
        for j in range(low, high):
            joined[lane, j] += kernels[r, j] * (a * dense[x, j])
        return
    y, b = np.uint64(slot_pair[1]), factors[i + 1, r]
    for j in range(low, high):
        joined[lane, j] += kernels[r, j] * (a * dense[x, j] + b * dense[y, j])


@contracted
def _join_rows(n, window, slot_pair, i, factors, dense, kernels, lane, joined):
    """Do the same for all rows that are held, whose factors are factors[i]: what is loaded for one feature serves four rows."""
    low, high, lane = np.uint64(window[0]), np.uint64(window[1]), np.uint64(lane)
    x, a, a1, a2, a3 = np.uint64(slot_pair[0]), factors[i, 0], factors[i, 1], factors[i, 2], factors[i, 3]
    if n == 1:
        for j in range(low, high):
            h, h1, h2, h3 = kernels[0, j], kernels[1, j], kernels[2, j], kernels[3, j]
            joined[lane, j] += dense[x, j] * ((a * h + a1 * h1) + (a2 * h2 + a3 * h3))
        return
    y, b, b1, b2, b3 = (
        np.uint64(slot_pair[1]),
        factors[i + 1, 0],
        factors[i + 1, 1],
        factors[i + 1, 2],
        factors[i + 1, 3],
    )
    for j in range(low, high):
        h, h1, h2, h3 = kernels[0, j], kernels[1, j], kernels[2, j], kernels[3, j]
        first, second = (a * h + a1 * h1) + (a2 * h2 + a3 * h3), (b * h + b1 * h1) + (b2 * h2 + b3 * h3)
        joined[lane, j] += dense[x, j] * first + dense[y, j] * second


@contracted
def _spread(columns, kinds, graphs, joined, bins, lanes_in_use, bins_in_use):
    """Add what the rows of one graph and block gathered in the lanes of these kinds to the bins of the columns' graphs.

    Lanes are left zero.
    """
    first, last, waiting = np.uint64(columns[0]), np.uint64(columns[1]), -1
    for lane in range(len(kinds)):
        if lanes_in_use[lane]:
            lanes_in_use[lane], bins_in_use[kinds[lane]] = False, True
            if waiting < 0:
                waiting = lane
                continue
            x, y = np.uint64(waiting), np.uint64(lane)
            a, b = np.uint64(kinds[waiting]), np.uint64(kinds[lane])
            for j in range(first, last):
                graph = np.uint64(graphs[j])
                bins[a, graph] += joined[x, j]
                bins[b, graph] += joined[y, j]
                joined[x, j], joined[y, j] = 0.0, 0.0
            waiting = -1
    if waiting >= 0:
        x, a = np.uint64(waiting), np.uint64(kinds[waiting])
        for j in range(first, last):
            bins[a, np.uint64(graphs[j])] += joined[x, j]
            joined[x, j] = 0.0


@contracted
def _weigh_bin(kind, weights, group, bins, totals):
    """Add weights[kind, k] * bins[kind] to totals[group, k]; the bin is left zero."""
    for k in range(np.uint64(weights.shape[1])):
        for j in range(np.uint64(totals.shape[2])):
            totals[group, k, j] += weights[kind, k] * bins[kind, j]
    clear(bins[kind])


@contracted
def _write(graph, is_begun, starts, weights, bins_in_use, bins, totals, out):
    """Write the totals of a row graph, with its bins, to ``out``; totals and bins are left zero.

    Weights are applied last, when few numbers are left.
    """
    graph = np.uint64(graph)
    for group in range(np.uint64(totals.shape[0])):
        for kind in range(starts[group], starts[group + np.uint64(1)]):
            if bins_in_use[kind]:
                bins_in_use[kind] = False
                _weigh_bin(np.uint64(kind), weights, group, bins, totals)
        for k in range(np.uint64(totals.shape[1])):
            if is_begun:
                for j in range(np.uint64(totals.shape[2])):
                    totals[group, k, j] += out[group, k, graph, j]
            for j in range(np.uint64(totals.shape[2])):
                out[group, k, graph, j] = totals[group, k, j]
                totals[group, k, j] = 0.0


@jit
def _rows_at_once(v, stop, window, graphs, blocks, row_projections, reach, projections, columns):
    """Return how many rows from v onward to take together: AT_ONCE of one graph and block with nearly the same window, or one.

    ``window`` is that of v at first, and becomes that of all of them.
    """
    last = v + AT_ONCE - 1
    if last >= stop or graphs[last] != graphs[v] or blocks[last] != blocks[v]:
        return 1
    # FeatureRows are sorted by projection: the windows of the others lie between the first and the last.
    low, high = window_of(row_projections[last], reach, projections, columns[0], columns[1])
    if (high - window[0]) * 2 > SLACK * (high - low + window[1] - window[0]):
        return 1
    window[1] = high
    return AT_ONCE


@inlined
def _let_wait(t, r, value, slots, n, indices, features, factors):
    """Add the feature t of the row r to the n that wait; return their number."""
    index = indices[slots[t]]
    if index < 0:
        index, indices[slots[t]], features[n] = n, n, t
        for row in range(AT_ONCE):
            factors[n, row] = 0.0
        n += 1
    factors[index, r] += value
    return n


@pasted  # named tuples are expensive to pass, row by row
def _add_features(v, n, window, features, inverted, kinds, kernels, graphs, waiting, joined, bins, in_use):
    """Add the features of the n rows from v onward, which are held: rare ones to their lanes or bins, while common ones wait.

    Returns the number of those that wait.
    """
    indptr, indices, data = features
    slots, lanes, ends, listed, values = inverted
    lanes_in_use, bins_in_use = in_use
    low, high = window
    n_waiting = 0
    for r in range(n):
        for i in range(indptr[v + r], indptr[v + r + 1]):
            t = indices[i]
            if slots[t] >= 0:
                n_waiting = _let_wait(t, r, data[i], slots, n_waiting, *waiting)
                continue
            start, stop = ends[t - 1] if t > 0 else 0, ends[t]
            if start < stop and listed[start] < low:
                start = first_from(low, start, stop, listed)
            if start < stop and listed[stop - 1] >= high:
                stop = first_from(high, start, stop, listed)
            if start == stop:
                continue
            if lanes[t] >= 0:
                lanes_in_use[lanes[t]] = True
                _join_listed(data[i], start, stop, listed, values, r, kernels, lanes[t], joined)
            else:
                bins_in_use[kinds[t]] = True
                _bin_listed(data[i], start, stop, listed, values, r, kernels, graphs, kinds[t], bins)
    return n_waiting


@jit
def _only_row(i, factors):
    """Return the only row that has the i-th of the features that wait, or -1."""
    row = -1
    for r in range(AT_ONCE):
        if factors[i, r] != 0.0:
            if row >= 0:
                return -1
            row = r
    return row


@jit
def _join_waiting(
    n_rows, n, window, slots, lanes, indices, features, factors, slot_pair, dense, kernels, joined, in_use
):
    """Add the n common features that wait for some rows, up to two of one lane at once; none waits afterwards."""
    first = 0
    while first < n:
        lane, last = lanes[features[first]], first
        while last < n and last < first + 2 and lanes[features[last]] == lane:
            slot_pair[last - first], indices[slots[features[last]]] = slots[features[last]], -1
            last += 1
        in_use[lane] = True
        row = 0 if n_rows == 1 else _only_row(first, factors) if last - first == 1 else -1
        if row >= 0:
            _join_row(last - first, window, slot_pair, first, factors, dense, row, kernels, lane, joined)
        else:
            _join_rows(last - first, window, slot_pair, first, factors, dense, kernels, lane, joined)
        first = last


@contracted
def sum_tile(span, rows, columns, inverted, weights, kernel, scratch, out):
    """Write the pair sums of the rows ``span[0] .. span[1] - 1`` with all columns of one tile to ``out``.

    out[group, weight, graph of row, graph of column] = sum of k(row, column) * sum_t F[row, t] F[column, t] weight_t, over
    the features t of each group and the rows and columns of the two graphs; added to the sums of rows of the same graph before the
    span. Named tuples are unpacked first: each attribute access costs a reference count.
    """
    row_graphs, row_blocks, row_vectors, row_projections, indptr, indices, data = rows
    graphs, block_starts, vectors, projections = columns
    slots, lanes, lane_kinds, dense, ends, listed, values = inverted
    kinds, kind_weights, group_starts = weights
    kernel_values, gamma, reach = kernel
    kernels, joined, bins, totals, lanes_in_use, bins_in_use, window, slot_pair, slot_indices, waiting, factors = (
        scratch
    )
    v = span[0]
    is_begun = v > 0 and row_graphs[v - 1] == row_graphs[v]
    while v < span[1]:
        graph, block = row_graphs[v], row_blocks[v]
        first, last = block_starts[block], block_starts[block + 1]
        while v < span[1] and row_graphs[v] == graph and row_blocks[v] == block:
            window[0], window[1] = window_of(row_projections[v], reach, projections, first, last)
            n = 1
            if len(kernel_values) == 0:
                n = _rows_at_once(
                    v, span[1], window, row_graphs, row_blocks, row_projections, reach, projections, (first, last)
                )
            # Whole vectors of numbers: columns beyond the window are of the same block, or have no feature.
            low, high = max(window[0] // LANES * LANES, first), min(-(-window[1] // LANES) * LANES, last)
            if len(kernel_values):
                copy(kernel_values[v - span[0], low:high], kernels[0, low:high])
            elif n == 1:
                gaussian_row(gamma, v, row_vectors, vectors, low, high, 0, kernels)
            else:
                gaussian_rows(gamma, v, row_vectors, vectors, low, high, kernels)
            n_waiting = _add_features(
                v, n, (low, high), (indptr, indices, data), (slots, lanes, ends, listed, values), kinds, kernels, graphs,
                (slot_indices, waiting, factors), joined, bins, (lanes_in_use, bins_in_use),
            )  # fmt: skip
            _join_waiting(
                n, n_waiting, (low, high), slots, lanes, slot_indices, waiting, factors, slot_pair, dense, kernels, joined,
                lanes_in_use,
            )  # fmt: skip
            v += n
        if last > first:
            block_kinds = lane_kinds[block, : lane_kinds[block, -1]]
            _spread((first, last), block_kinds, graphs, joined, bins, lanes_in_use, bins_in_use)
        if v == span[1] or row_graphs[v] != graph:
            _write(graph, is_begun, group_starts, kind_weights, bins_in_use, bins, totals, out)
            is_begun = False
