"""The skeleton of all sums over pairs of nodes: node pairs, pairs of paths, matchings.

Nothing of size nodes x nodes is ever stored. The nodes of some consecutive graphs are the columns of a tile, which stays in
cache; rows stream past it; its sums go straight to its pairs of graphs. Here is what does not depend on what is summed: blocks
numbered alike on both sides, places along one direction (so that a Gaussian is computed in a window only), columns cut into
tiles, node kernels other than the Gaussian, and the matrix put together from its tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from treegram._core.parallel import count_workers, run_tasks, send_tasks, share_memory
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.loops import tiles as loops
from treegram.structure.features import sorted_order
from treegram.structure.hashing import number_codes

__all__ = ["Layout", "Side", "Span", "aligned", "complete", "cut", "fill_matrix", "number_alike", "order_by"]

Span = tuple[int, int]  # first graph, and the one after the last

MANY_NUMBERS = 1 << 20  # of symmetric matrices: below, compiling a loop takes longer than it saves
NUMBERS_PER_TASK = 1 << 19  # of a matrix whose lower half is filled
ROWS_AT_ONCE = 64  # of a matrix whose lower half is filled by numpy: these stay in cache
# A task that is sent to a worker is about this part of the work that is left for each worker, or of all its work.
SHARE, SMALLEST_SHARE = 3, 12
SENT_BYTES = 4 << 20  # of such a task's result: those that wait to be fetched take memory, and more workers may come
_LARGEST_CODE = float(2**64 - 2**11)  # of 64 bits, as a double
MANY_DIMENSIONS = 64  # of vectors: beyond, one coordinate is as good a direction as any, and costs nothing


class _Sided(Protocol):
    """Nodes in the order of their graphs; those of different blocks are never compared."""

    @property
    def offsets(self) -> Ints: ...
    @property
    def blocks(self) -> Hashes: ...
    @property
    def vectors(self) -> Floats: ...


@dataclass(frozen=True)
class Side:
    """The nodes of some graphs, in the order of the graphs: those of graph g are offsets[g] .. offsets[g + 1] - 1."""

    offsets: Ints
    blocks: Ints  # numbered from 0, on both sides alike
    vectors: Floats
    places: Floats  # along the direction in which the vectors vary most, in units of the largest coordinate
    by_block: Ints  # the nodes by block, and those of a block by place

    def taken(self, order: Ints) -> Side:
        """The nodes in another order, each within its graph."""
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        return Side(self.offsets, self.blocks[order], self.vectors[order], self.places[order], ranks[self.by_block])


@dataclass(frozen=True)
class Layout:
    """Both sides of a computation, and the node kernel between them."""

    left: Side
    right: Side
    n_blocks: int
    node_kernel: NodeKernel
    extent: float  # the largest coordinate: in units of it nothing overflows

    @classmethod
    def make(cls, left: _Sided, right: _Sided, node_kernel: NodeKernel) -> Layout:
        """The layout of two collections of nodes."""
        collections = (left,) if left is right else (left, right)
        n_blocks, blocks = number_alike(*(nodes.blocks for nodes in collections))
        extent = max(float(np.abs(nodes.vectors).max(initial=0.0)) for nodes in collections) or 1.0
        direction = _widest_direction(right.vectors, extent)
        sides = []
        for nodes, own in zip(collections, blocks, strict=True):
            # einsum, not a matrix product: BLAS would wake threads that spin for longer than this takes. Vectors that may not be
            # written to are copied: loops would be compiled for them anew.
            places = np.einsum("ni,i->n", nodes.vectors / extent, direction)
            by_block = order_by(own, n_blocks, _order_of_places(places))
            sides.append(Side(nodes.offsets, own, np.require(nodes.vectors, requirements=["C", "W"]), places, by_block))
        return cls(sides[0], sides[-1], n_blocks, node_kernel, extent)

    def reach(self, exponent: float) -> float:
        """How far apart places may be before the Gaussian is below e^-exponent; infinite for other kernels."""
        if not isinstance(self.node_kernel, Gaussian):
            return np.inf
        rounding = 8 * np.finfo(float).eps * self.left.vectors.shape[1]
        with np.errstate(over="ignore", divide="ignore"):  # of very small and very large vectors: 0 and inf are right
            width = np.sqrt(self.node_kernel.gamma) * np.float64(self.extent)
            return float(np.sqrt(exponent) / width + rounding)

    def columns(self, span: Span) -> tuple[Ints, Any]:
        """The nodes of some graphs of the right as a tile: which node each column is, and the tile."""
        side = self.right
        first, last = side.offsets[span[0]], side.offsets[span[1]]
        order = side.by_block[(side.by_block >= first) & (side.by_block < last)]
        graphs = np.repeat(np.arange(span[1] - span[0]), np.diff(side.offsets[span[0] : span[1] + 1]))
        tile = loops.Columns(
            graphs=graphs[order - first],
            block_starts=np.searchsorted(side.blocks[order], np.arange(self.n_blocks + 1)),
            vectors=np.ascontiguousarray(side.vectors[order].T),
            places=side.places[order],
        )
        return order, tile

    def kernel(self, rows: Span, columns: Any, reach: float) -> Any:
        """The node kernel of some rows with a tile, as compiled loops take it."""
        if isinstance(self.node_kernel, Gaussian):
            return loops.Kernel(np.empty((0, 0)), float(self.node_kernel.gamma), reach)
        given = np.zeros((rows[1] - rows[0], len(columns.graphs)))
        blocks, vectors = self.left.blocks[slice(*rows)], self.left.vectors[slice(*rows)]
        for block in np.unique(blocks):
            chosen = np.flatnonzero(blocks == block)
            inside = slice(columns.block_starts[block], columns.block_starts[block + 1])
            if inside.stop > inside.start:
                given[chosen, inside] = self.node_kernel(vectors[chosen], columns.vectors[:, inside].T)
        return loops.Kernel(given, 0.0, reach)


def aligned(n_rows: int, n_columns: int) -> Floats:
    """Zeros whose rows start at a line of cache if there are a multiple of 8 columns: loops then load half as many lines."""
    room = np.zeros(n_rows * n_columns + 8)
    start = -room.ctypes.data // 8 % 8
    return room[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


def number_alike(*values: Hashes) -> tuple[int, list[Ints]]:
    """Number equal values equally in all arrays, from 0; gives also how many differ."""
    numbers, firsts = number_codes(np.concatenate(values))
    return len(firsts), np.split(numbers, np.cumsum([len(v) for v in values])[:-1])


def order_by(keys: Ints, n_keys: int, order: Ints) -> Ints:
    """The same order, sorted by keys below ``n_keys``, those of one key as they were."""
    few = keys[order].astype(
        np.min_scalar_type(n_keys)
    )  # of up to 16 bits, for which numpy has a sort without comparisons
    return order[np.argsort(few, kind="stable")]


def _order_of_places(places: Floats) -> Ints:
    """The nodes by place; the order of two whose places differ by rounding alone is left open."""
    if not len(places):
        return np.empty(0, np.int64)
    low, high = places.min(), places.max()
    shares = (places - low) / (high - low) if high > low else np.zeros(len(places))
    return sorted_order((shares * _LARGEST_CODE).astype(np.uint64)).astype(np.int64)


def _widest_direction(vectors: Floats, extent: float) -> Floats:
    """The unit vector along which the vectors vary most: windows along it leave out the most pairs.

    Any direction is right, so a sample will do.
    """
    sample = vectors[:: 1 + len(vectors) // 500] / extent
    centered = sample - sample.mean(axis=0)
    if centered.shape[1] > MANY_DIMENSIONS:
        spread: Floats = np.einsum("ni,ni->i", centered, centered)
        return (np.arange(len(spread)) == spread.argmax()).astype(float)
    direction: Floats = np.linalg.eigh(np.einsum("ni,nj->ij", centered, centered))[1][:, -1]
    return direction


def cut(offsets: Ints, n_tiles: int) -> list[Span]:
    """At most so many spans of consecutive graphs with about as many nodes each, none of them without a graph."""
    goals = offsets[-1] * np.arange(1, n_tiles) / n_tiles
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, goals), [len(offsets) - 1]]))
    return [(int(first), int(last)) for first, last in pairwise(cuts)]


def fill_matrix(
    tile_sums: Callable[[Any, Span, int, Floats, int], None],
    job: Any,
    tiles: list[Span],
    sums: Floats,
    *,
    symmetric: bool,
    n_jobs: int | None,
    label: str,
) -> None:
    """Fill ``sums`` with the sums of all tiles; of a symmetric matrix the upper half, to which :func:`complete` adds the rest.

    ``tile_sums(job, span, n, out, base)`` writes those of the first n rows with a span of columns to ``out``, from the column
    ``base`` on; the job is what all tiles share. Workers that share memory write straight into ``sums``.
    """
    # Later tiles of a symmetric matrix have more rows: the longest tasks first keep all workers busy to the end.
    tasks = [(span, span[1] if symmetric else sums.shape[-2]) for span in reversed(tiles)]
    if share_memory():
        shared_tasks = [(job, span, n_rows, sums, span[0]) for span, n_rows in tasks]
        for _ in run_tasks(tile_sums, shared_tasks, n_jobs=n_jobs, label=label):
            pass
        return
    shared = (tile_sums, job, sums.shape[:-2])
    n_most = SENT_BYTES // (sums.itemsize * int(np.prod(sums.shape[:-2])))
    batches = [(batch,) for batch in _batches(tasks, count_workers(), n_most)]
    for (batch,), part in send_tasks(_make_tiles, shared, batches, n_jobs=n_jobs, label=label):
        first, last, n_rows = _extent(batch)
        sums[..., :n_rows, first:last] = part


_Tile = tuple[Span, int]  # and the number of its rows


def _batches(tiles: list[_Tile], n_workers: int, n_most: int) -> Iterator[list[_Tile]]:
    """Neighboring tiles as one task, ever fewer of them; several have not many more than ``n_most`` pairs of graphs.

    A few tasks are soon sent and their results soon written; short ones at the end keep no worker waiting.
    """
    sizes = [(last - first) * n_rows for (first, last), n_rows in tiles]
    left, smallest = sum(sizes), sum(sizes) / (SMALLEST_SHARE * n_workers)
    batch, size = list[_Tile](), 0
    for tile, own in zip(tiles, sizes, strict=True):
        batch.append(tile)
        size += own
        if size == left or size >= min(max(left / (SHARE * n_workers), smallest), n_most):
            yield batch
            left, batch, size = left - size, [], 0


def _extent(batch: list[_Tile]) -> tuple[int, int, int]:
    """The columns of neighboring tiles, later ones first, and the number of rows."""
    (_, last), n_rows = batch[0]
    return batch[-1][0][0], last, n_rows


def _make_tiles(shared: tuple[Any, ...], batch: list[_Tile]) -> Floats:
    tile_sums, job, leading = shared
    first, last, n_rows = _extent(batch)
    part = np.zeros((*leading, n_rows, last - first))
    for span, n in batch:
        tile_sums(job, span, n, part, span[0] - first)
    return part


def complete(K: Floats, factors: Floats | None = None, *, n_jobs: int | None = None) -> None:
    """Fill the lower half of each symmetric matrix from its upper half, all numbers times the factors of their row and column.

    The two factors are multiplied first, so that the matrix is symmetric in every bit.
    """
    n = K.shape[-1]
    factors = np.ones(K.shape[:-1]) if factors is None else factors
    if K.size < MANY_NUMBERS:
        for point in np.ndindex(K.shape[:-2]):
            _mirror(K[point], factors[point])
        return
    n_tasks = max(1, n * n // NUMBERS_PER_TASK)
    cuts = (n * (1 - np.sqrt(1 - np.arange(n_tasks + 1) / n_tasks))).astype(np.int64) // loops.MIRRORED * loops.MIRRORED
    cuts[-1] = n  # strips of rows with about as many numbers each
    tasks = [
        (K[point], factors[point], int(first), int(last))
        for point in np.ndindex(K.shape[:-2])
        for first, last in pairwise(cuts)
    ]
    for _ in run_tasks(loops.mirror, tasks, n_jobs=n_jobs, label=None):
        pass


def _mirror(matrix: Floats, factors: Floats) -> None:
    """The same as ``loops.mirror`` for all rows, without anything to compile."""
    n = len(matrix)
    for first in range(0, n, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, n)
        rows = matrix[first:last, first:]
        with np.errstate(over="ignore", invalid="ignore"):  # of what stands below the diagonal
            rows *= factors[first:last, None] * factors[first:]
        square, rest = np.split(rows, [last - first], axis=1)
        np.copyto(square, square.T.copy(), where=np.tri(last - first, k=-1, dtype=bool))
        matrix[last:, first:last] = rest.T
