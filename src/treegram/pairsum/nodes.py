"""Sums over pairs of nodes, exactly: K(G, G') = sum_{v in G, v' in G'} <phi(v), phi(v')> k_A(x_v, x_v').

Every kernel that is such a sum goes through :func:`pair_sums`, tile by tile (``pairsum.tiles``). What makes it fast:

- nodes of one graph with equal block and equal vector are merged first;
- a Gaussian k_A is skipped where it is below 2^-53 / (largest graph), which changes no entry of the normalized matrix by
  more than rounding does (by Cauchy-Schwarz the skipped part of K(G, G') is at most 2^-53 sqrt(K(G, G) K(G', G')));
- features that many nodes have are summed as dense rows, up to four features of four nodes at once, the others through lists of
  the nodes that have them; both are gathered by column first, and by graph only once for each row graph and block;
- features that one node has alone add to the diagonal only, and go there straight;
- columns are laid out by lines of cache, and long vectors are compared four rows at once, so that loops load as little as they can;
- several weightings of the features (the lambda grid) and several feature sets (the depths) share each k_A.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.loops import nodes as loops
from treegram.pairsum.tiles import Layout, Span, aligned, cut, fill_matrix, order_by
from treegram.structure.features import add_rows
from treegram.structure.hashing import equal_rows, number_pairs

__all__ = ["Nodes", "Weighting", "pair_sums", "self_sums"]


TILE_COLUMNS = 800  # nodes of the largest block in one tile: its vectors and sums then stay in the second-level cache
SELF_COLUMNS = 4096  # nodes in one tile of graphs that meet themselves alone: blocks are small there
DENSE_SHARE = 0.15  # a feature that this share of its block has is summed densely; below, lists are faster
# Of the result: a tile is held apart until it is written, one or two for each worker. Where the result is large, as many tiles
# as keep the workers busy are enough: in narrow tiles of tiny graphs nothing is left of what a row costs but its start.
TILE_BYTES, MOST_TILES = 8 << 20, 11
# Compiled code cannot be interrupted: so many rows, or rows of so many multiplications, keep each call well under a second.
ROWS_PER_CALL, COST_PER_CALL = 1 << 14, 1 << 30
COMMON_SHARE = 1 / 64  # a feature that this share of all nodes has is looked up among those of its kind
BIN_PAIRS = 0.125  # pairs of nodes per pair of graphs, from which on a kind of feature has a bin
GIVEN_ROWS = 1024  # rows of a node kernel that is not the Gaussian, computed at a time


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

    @property
    def offsets(self) -> Ints:
        """Graph g has the nodes offsets[g] .. offsets[g + 1] - 1."""
        return np.searchsorted(self.graph_ids, np.arange(self.n_graphs + 1))

    def taken(self, chosen: Ints) -> Nodes:
        """Some of the nodes."""
        return replace(
            self,
            graph_ids=self.graph_ids[chosen],
            blocks=self.blocks[chosen],
            vectors=self.vectors[chosen],
            features=self.features[chosen],
        )


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
    """One sum per pair of graphs; ``right=None`` means left with itself, which costs half: the upper half alone is filled.

    Returns
    -------
    ndarray of shape (n_groups, n_weights, n_left, n_right)
        The same bits for any ``n_jobs``. See ``tiles.complete`` for the lower half of a symmetric matrix.
    """
    left = _condense(left, node_kernel)
    columns = left if right is None else _condense(right, node_kernel)
    shape = (weighting.n_groups, weighting.weights.shape[1], left.n_graphs, columns.n_graphs)
    if not len(left.graph_ids) or not len(columns.graph_ids):
        return np.zeros(shape)
    sums = np.empty(shape)
    job = _Job.prepare(left, columns, node_kernel, weighting)
    tiles = job.spans(sums.nbytes)
    fill_matrix(_tile_sums, job, tiles, sums, symmetric=right is None, n_jobs=n_jobs, label="pair sums")
    if right is None:
        np.einsum("...ii->...i", sums)[...] += job.alone
    return sums


def self_sums(nodes: Nodes, node_kernel: NodeKernel, weighting: Weighting, *, n_jobs: int | None = None) -> Floats:
    """The sum of each graph with itself: the diagonal of :func:`pair_sums`, shape (n_groups, n_weights, n_graphs)."""
    nodes = _condense(nodes, node_kernel)
    sums = np.zeros((weighting.n_groups, weighting.weights.shape[1], nodes.n_graphs))
    if len(nodes.graph_ids):
        spans = cut(nodes.offsets, 1 + len(nodes.graph_ids) // SELF_COLUMNS)
        tasks = [(nodes, node_kernel, weighting, span) for span in spans]
        for span, part in zip(spans, run_tasks(_own_sums, tasks, n_jobs=n_jobs, label="self sums"), strict=True):
            sums[:, :, slice(*span)] = part
    return sums


# -------------------------------------------------------------------- preparation


def _condense(nodes: Nodes, node_kernel: NodeKernel) -> Nodes:
    """The fewest nodes that give the same sums: those of one graph with equal block and vector join, their features add up."""
    if node_kernel == Gaussian(
        0.0
    ):  # k_A is 1 whatever the vectors, and features of different blocks are different ones
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
class _Job:
    """Everything that the tiles of one computation share."""

    layout: Layout
    reach: float
    rows: Any  # loops.Rows
    entries: Any  # loops.Entries of the columns
    weights: Any  # loops.Weights
    lanes: _Lanes
    alone: Floats  # (n_groups, n_weights, n_graphs): what is added to the diagonal

    @classmethod
    def prepare(cls, left: Nodes, right: Nodes, node_kernel: NodeKernel, weighting: Weighting) -> _Job:
        """Sort the nodes of the rows, and number the features so that those that many nodes have come first."""
        layout = Layout.make(left, right, node_kernel)
        support, owners, values = _survey(right.features)
        order, alone = _hot_first(right.features, support, weighting), np.empty(0, np.int64)
        if left is right and isinstance(node_kernel, Gaussian):
            # What one node has alone adds to the diagonal only, where k_A(x, x) is 1. Most features are such, and all that the
            # others would do is look for them.
            alone = np.flatnonzero(support == 1)
        else:
            order = np.concatenate([order, _rare_last(right.features, support)])
        kinds, support, feature_blocks = weighting.kinds[order], support[order], layout.right.blocks[owners[order]]
        lanes = _Lanes.choose(
            support, feature_blocks, layout.right.blocks, layout.n_blocks, kinds, len(weighting.groups)
        )
        # Rows of one graph and block by place: neighbors have nearly the same window, and are summed together.
        row_order = order_by(left.graph_ids, left.n_graphs, layout.left.by_block)
        side, rows = layout.left.taken(row_order), _arranged(left.features, row_order, order)
        if len(weighting.groups) > 1:
            sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(len(row_order), len(order))).sort_indices()
        same = left is right
        largest = max(int(np.diff(nodes.offsets).max()) for nodes in (left, right))
        return cls(
            layout=replace(layout, left=side, right=side if same else layout.right),
            reach=layout.reach(53 * np.log(2) + np.log(largest + 1)),
            rows=loops.Rows(left.graph_ids, side.blocks, side.vectors, side.places, *rows),
            entries=rows if same else _arranged(right.features, np.arange(len(right.blocks)), order),
            weights=_binned(support, right.n_graphs, kinds, weighting, lanes),
            lanes=lanes,
            alone=_square_sums(right, owners[alone], values[alone], weighting, weighting.kinds[alone]),
        )

    def columns(self, span: Span) -> tuple[Ints, Ints, Any]:
        """The nodes of some graphs of the right as a tile: the nodes in order, the column of each, and the tile.

        Where k_A is the Gaussian each block starts at a multiple of LANES; columns before it repeat a node, without its features.
        """
        order, tile = self.layout.columns(span)
        if not isinstance(self.layout.node_kernel, Gaussian):
            return order, np.arange(len(order)), tile
        sizes = np.diff(tile.block_starts)
        starts = np.concatenate([[0], np.cumsum(-(-sizes // loops.LANES) * loops.LANES)])
        positions = np.arange(len(order)) + np.repeat(starts[:-1] - tile.block_starts[:-1], sizes)
        at = np.zeros(starts[-1], np.int64)
        at[positions] = np.arange(len(order))
        at = np.maximum.accumulate(at)
        vectors = aligned(len(tile.vectors), len(at))
        np.take(tile.vectors, at, axis=1, out=vectors)
        return order, positions, type(tile)(tile.graphs[at], starts, vectors, tile.places[at])

    def spans(self, n_bytes: int) -> list[Span]:
        """The tiles of a result of so many bytes."""
        largest_block = int(np.bincount(self.layout.right.blocks, minlength=1).max())
        n_tiles = 1 + max(largest_block // TILE_COLUMNS, min(n_bytes // TILE_BYTES, MOST_TILES))
        return cut(self.layout.right.offsets, n_tiles)


def _survey(features: sp.csr_matrix) -> tuple[Ints, Ints, Floats]:
    """Of each feature the number of nodes that have it, one such node, and its value there."""
    n = features.shape[1]
    support, owners = np.zeros((2, n), np.int32)  # short numbers: they are looked up at random
    values = np.zeros(n)
    loops.survey((features.indptr, features.indices, features.data), support, owners, values)
    return support, owners, values


def _square_sums(nodes: Nodes, owners: Ints, values: Floats, weighting: Weighting, kinds: Ints) -> Floats:
    """The weighted squares of single features by graph, shape (n_groups, n_weights, n_graphs)."""
    places = weighting.groups[kinds] * nodes.n_graphs + nodes.graph_ids[owners]
    squares, n_sums = values * values, weighting.n_groups * nodes.n_graphs
    sums: list[Floats] = [
        np.bincount(places, squares * weights[kinds], n_sums).astype(float) for weights in weighting.weights.T
    ]
    return np.stack(sums).reshape(len(sums), weighting.n_groups, -1).swapaxes(0, 1)


def _hot_first(features: sp.csr_matrix, support: Ints, weighting: Weighting) -> Ints:
    """The features of several nodes, those of many nodes first: what is looked up stays in cache.

    Those of many nodes come kind by kind, so that a row's features of one kind are summed at once.
    """
    shared = order_by(64 - np.frexp(support)[1], 65, np.flatnonzero(support > 1))  # by powers of 2
    if len(weighting.groups) > 1:
        is_rare = support < COMMON_SHARE * features.shape[0]
        shared = order_by(is_rare, 2, order_by(weighting.kinds, len(weighting.groups), shared))
    return shared


def _rare_last(features: sp.csr_matrix, support: Ints) -> Ints:
    """The features of one node, in the order of the nodes, and those of none."""
    return np.concatenate([features.indices[support[features.indices] == 1], np.flatnonzero(support == 0)])


def _arranged(features: sp.csr_matrix, row_order: Ints, order: Ints) -> Any:
    """The features of nodes in another order, with the numbers that they have in ``order``; others are left out."""
    numbers = np.full(features.shape[1], len(order), features.indices.dtype)
    numbers[order] = np.arange(len(order))
    indptr, indices, data = np.zeros_like(features.indptr), np.empty_like(features.indices), np.empty(features.nnz)
    entries = (features.indptr, features.indices, features.data)
    n = loops.arrange(entries, row_order, numbers, len(order), (indptr, indices, data))
    return loops.Entries(indptr, indices[:n], data[:n])


@dataclass(frozen=True)
class _Lanes:
    """Which features of a block are summed densely, and where the sums of each kind are gathered: see ``loops.Inverted``."""

    slots: Ints
    lanes: Ints
    lane_kinds: Ints
    n_slots: int  # of the block with the most

    @classmethod
    def choose(
        cls, support: Ints, feature_blocks: Ints, blocks: Ints, n_blocks: int, kinds: Ints, n_kinds: int
    ) -> _Lanes:
        """A dense row for each common feature of a block, and a lane for each kind that has such rows.

        Where all features are of one kind, each block has a lane for it.
        """
        n_features = len(support)
        block_sizes = np.bincount(blocks, minlength=n_blocks)
        common = np.flatnonzero((support > 0) & (support >= DENSE_SHARE * block_sizes[feature_blocks]))
        common = common[np.lexsort((kinds[common], feature_blocks[common]))]
        keys = feature_blocks * n_kinds + kinds  # block and kind
        with_lane = np.arange(n_blocks) if n_kinds == 1 else np.unique(keys[common])
        slot_numbers, _ = _number_within(feature_blocks[common], n_blocks)
        lane_numbers, lane_kinds = _number_within(with_lane // n_kinds, n_blocks)
        lane_kinds[with_lane // n_kinds, lane_numbers] = with_lane % n_kinds
        places = np.minimum(np.searchsorted(with_lane, keys), max(len(with_lane) - 1, 0))
        lanes = (
            np.where(with_lane[places] == keys, lane_numbers[places], -1) if len(with_lane) else np.full(n_features, -1)
        )
        slots = np.full(n_features, -1, np.int64)
        slots[common] = slot_numbers
        return cls(slots.astype(np.int32), lanes.astype(np.int32), lane_kinds, int(slot_numbers.max(initial=-1)) + 1)


def _binned(support: Ints, n_graphs: int, kinds: Ints, weighting: Weighting, lanes: _Lanes) -> Any:
    """The weights, with a bin for each kind that has a lane, or enough pairs of nodes to make weighing a bin the cheaper way."""
    groups = weighting.groups
    is_binned = np.bincount(kinds, np.square(support, dtype=float), len(groups)) >= BIN_PAIRS * n_graphs**2
    for block_kinds in lanes.lane_kinds:
        is_binned[block_kinds[: block_kinds[-1]]] = True
    bin_kinds = np.flatnonzero(is_binned)
    bin_kinds = bin_kinds[np.argsort(groups[bin_kinds], kind="stable")]
    bins = np.full(len(groups), -1, np.int64)
    bins[bin_kinds] = np.arange(len(bin_kinds))
    starts = np.searchsorted(groups[bin_kinds], np.arange(weighting.n_groups + 1))
    return loops.Weights(kinds, groups, weighting.weights, bins, np.append(bin_kinds, 0), starts)


def _number_within(blocks: Ints, n_blocks: int) -> tuple[Ints, Ints]:
    """Number entries within their blocks, which are sorted; gives also a table of zeros for them, numbers in the last column."""
    sizes = np.bincount(blocks, minlength=n_blocks)
    numbers = np.arange(len(blocks)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.zeros((n_blocks, int(sizes.max(initial=0)) + 1), np.int64)
    table[:, -1] = sizes
    return numbers, table


# -------------------------------------------------------------------- one tile


def _tile_sums(job: _Job, span: Span, n_rows: int, out: Floats, base: int) -> None:
    """Write the sums of the first row graphs with those of a span to out[:, :, :n_rows, base : base + column graphs]."""
    offsets = job.layout.left.offsets
    empty = np.flatnonzero(offsets[1 : n_rows + 1] == offsets[:n_rows])
    out[:, :, empty, base : base + span[1] - span[0]] = 0.0
    _add_tile(job, *job.columns(span), span[1] - span[0], int(offsets[n_rows]), out, base)


def _own_sums(nodes: Nodes, node_kernel: NodeKernel, weighting: Weighting, span: Span) -> Floats:
    """The sums of the graphs of a span, each with itself, shape (n_groups, n_weights, graphs).

    With blocks and features that belong to one graph each, graphs never meet another: one tile does for all of them.
    """
    inside = nodes.taken(np.arange(nodes.offsets[span[0]], nodes.offsets[span[1]]))
    graphs, features = (inside.graph_ids - span[0]).astype(np.uint64), inside.features
    blocks, _ = number_pairs(graphs, inside.blocks)
    own, first = number_pairs(np.repeat(graphs, np.diff(features.indptr)), features.indices.astype(np.uint64))
    inside = replace(
        inside,
        n_graphs=span[1] - span[0],
        graph_ids=graphs.astype(np.int64),
        blocks=blocks.astype(np.uint64),
        features=sp.csr_matrix((features.data, own, features.indptr), shape=(len(graphs), len(first))),
    )
    weighting = replace(weighting, kinds=weighting.kinds[features.indices[first]])
    out = np.zeros((weighting.n_groups, weighting.weights.shape[1], inside.n_graphs, 1))
    if len(graphs):
        job = _Job.prepare(inside, inside, node_kernel, weighting)
        order, positions, columns = job.columns((0, inside.n_graphs))
        columns = columns._replace(graphs=np.zeros_like(columns.graphs))
        _add_tile(job, order, positions, columns, 1, len(graphs), out, 0)
        out[..., 0] += job.alone
    return out[..., 0]


def _add_tile(
    job: _Job, order: Ints, positions: Ints, columns: Any, n_graphs: int, n_rows: int, out: Floats, base: int
) -> None:
    """Write the sums of the first rows with a tile that has these nodes at these positions, and so many graphs."""
    inverted = _invert(job, order, positions, len(columns.graphs))
    n_lanes, n_bins, width = job.lanes.lane_kinds.shape[1] - 1, len(job.weights.bin_kinds), len(columns.graphs)
    is_plain = np.array_equal(columns.graphs[positions], np.arange(n_graphs)) and len(columns.block_starts) == 2
    if is_plain:  # what is gathered by column is gathered by graph: no lanes are needed beside the bins
        inverted = inverted._replace(lanes=job.weights.kind_bins[job.weights.kinds].astype(np.int32))
    bins = aligned(n_bins, width if is_plain else n_graphs)
    scratch = loops.Scratch(
        held=aligned(loops.AT_ONCE, width),
        joined=bins if is_plain else aligned(n_lanes, width),
        bins=bins,
        totals=np.zeros((*out.shape[:2], n_graphs)),
        in_use=np.zeros(n_bins if is_plain else n_lanes + n_bins, np.bool_),
        window=np.empty(2, np.int64),
        chosen=np.empty(4, np.int64),
        slot_places=np.full(job.lanes.n_slots, -1, np.int64),
        waiting=np.empty(job.lanes.n_slots, np.int64),
        factors=np.empty((job.lanes.n_slots, loops.AT_ONCE)),
    )
    is_gaussian = isinstance(job.layout.node_kernel, Gaussian)
    by_graph = _by_graph(columns, positions, n_graphs)
    widest = int(np.diff(columns.block_starts).max())
    row_cost = widest * (8 + len(job.rows.indices) // max(len(job.rows.blocks), 1)) + 1
    step = min(ROWS_PER_CALL, 1 + COST_PER_CALL // row_cost) if is_gaussian else GIVEN_ROWS
    for first in range(0, n_rows, step):
        rows = (first, min(first + step, n_rows))
        kernel = job.layout.kernel(rows, columns, job.reach)
        loops.sum_tile(rows, job.rows, columns, is_plain, by_graph, inverted, job.weights, kernel, scratch, base, out)


def _by_graph(columns: Any, positions: Ints, n_graphs: int) -> Any:
    """The columns of a tile that are nodes, by block and graph."""
    n_blocks = len(columns.block_starts) - 1
    keys = np.repeat(np.arange(n_blocks), np.diff(columns.block_starts)) * n_graphs + columns.graphs
    members = positions[np.argsort(keys[positions], kind="stable")]
    keys = keys[members]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    keys = keys[starts]
    block_starts = np.searchsorted(keys, np.arange(n_blocks + 1) * n_graphs)
    return loops.ByGraph(block_starts, members, np.append(starts, len(members)), keys % n_graphs)


def _invert(job: _Job, order: Ints, positions: Ints, n_columns: int) -> Any:
    """The columns of a tile, which are these nodes at these positions, by feature."""
    chosen, starts = job.lanes, job.entries.indptr
    n_entries = int((starts[order + 1] - starts[order]).sum())
    inverted = loops.Inverted(
        slots=chosen.slots,
        lanes=chosen.lanes,
        lane_kinds=chosen.lane_kinds,
        dense=aligned(chosen.n_slots, n_columns),
        ends=np.zeros(len(chosen.slots) + 1, np.int32),
        listed=np.empty(n_entries, np.uint32),
        values=np.empty(n_entries),
    )
    loops.invert(job.entries, order, positions, inverted)
    return inverted
