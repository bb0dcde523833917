"""The basis of all sums over pairs of nodes: node pairs, pairs of paths, matchings.

Nothing of size nodes x nodes is ever stored. The nodes of some consecutive graphs are the columns of a tile, which stays in
cache; rows stream past it; its sums go straight to its pairs of graphs. Rows come graph by graph. Columns come block by block
(nodes of different blocks are never compared) and, within a block, sorted by their projection on one direction of the attribute
space, so that the columns near a row are a contiguous window, and a Gaussian is computed in that window only. This module has
everything that does not depend on what is summed: blocks and projections of both sides, tiles, the node kernel of a row with a
tile, and the matrix assembled from its tiles.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from treegram._core.jit import contracted, jit
from treegram._core.parallel import run_tasks, send_tasks, share_memory
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.structure.features import first_from
from treegram.structure.hashing import number_codes

Span = tuple[int, int]  # first graph, and the one after the last

SELF_COLUMNS = 64  # of a tile that meets its own graphs only: small, as all but its diagonal is discarded
ROWS_PER_CALL = 1 << 12  # rows whose node kernel is computed at a time, where it is not the Gaussian
ROWS_AT_ONCE = 64  # of a matrix whose lower half is filled: these stay in cache
MANY_DIMENSIONS = 64  # of vectors: beyond, one coordinate is as good a direction as any, and costs nothing

# A tile: for each column its graph, counted from the tile's first; where each block starts; vectors (d, n_columns); projections.
Columns = namedtuple("Columns", "graphs block_starts vectors projections")
# The nodes that meet it, one row each.
Rows = namedtuple("Rows", "blocks vectors projections")
# The node kernel: values of all rows of one call with all columns, or none if it is the Gaussian with this gamma, which is
# taken as 0 where projections differ by more than ``reach``.
Kernel = namedtuple("Kernel", "values gamma reach")


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
    blocks: Ints  # numbered from 0, consistently on both sides
    vectors: Floats
    projections: Floats  # on the direction in which the vectors vary most, in units of the largest coordinate
    by_block: Ints  # the nodes by block, and those of a block by projection

    def taken(self, order: Ints) -> Side:
        """Return the nodes in another order, each within its graph."""
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        return Side(
            self.offsets, self.blocks[order], self.vectors[order], self.projections[order], ranks[self.by_block]
        )


@dataclass(frozen=True)
class Layout:
    """Both sides of a computation, and the node kernel between them."""

    left: Side
    right: Side
    n_blocks: int
    node_kernel: NodeKernel
    reach: float  # how far projections may differ where the node kernel is not taken as 0

    @classmethod
    def make(cls, left: _Sided, right: _Sided, node_kernel: NodeKernel, exponent: float) -> Layout:
        """Lay out two collections of nodes, along the widest direction of the right one.

        A Gaussian below e^-exponent may be taken as 0. Lengths are in units of the largest coordinate: nothing overflows.
        """
        collections = (left,) if left is right else (left, right)
        n_blocks, blocks = number_alike(*(nodes.blocks for nodes in collections))
        extent = max(float(np.abs(nodes.vectors).max(initial=0.0)) for nodes in collections) or 1.0
        direction = _widest_direction(right.vectors, extent)
        sides = []
        for nodes, numbers in zip(collections, blocks, strict=True):
            # einsum, not a matrix product: BLAS would wake threads that spin for longer than this takes. Read-only vectors are
            # copied: loops would be compiled for them again.
            projections = np.einsum("ni,i->n", nodes.vectors / extent, direction)
            by_block = order_by(numbers, n_blocks, np.argsort(projections, kind="stable"))
            vectors = np.require(nodes.vectors, requirements=["C", "W"])
            sides.append(Side(nodes.offsets, numbers, vectors, projections, by_block))
        reach = np.inf
        if isinstance(node_kernel, Gaussian):
            rounding = 8 * np.finfo(float).eps * left.vectors.shape[1]
            # Of very small and very large vectors, 0 and inf are right.
            with np.errstate(over="ignore", divide="ignore"):
                width = np.sqrt(node_kernel.gamma) * np.float64(extent)
                reach = float(np.sqrt(exponent) / width + rounding)
        return cls(sides[0], sides[-1], n_blocks, node_kernel, reach)

    @property
    def rows(self) -> Any:
        """The nodes on the left, as compiled loops take them."""
        return Rows(self.left.blocks, self.left.vectors, self.left.projections)

    def columns(self, span: Span) -> tuple[Ints, Any]:
        """Return the nodes of some graphs on the right as a tile: the node of each column, and the tile."""
        side = self.right
        first, last = side.offsets[span[0]], side.offsets[span[1]]
        order = side.by_block[(side.by_block >= first) & (side.by_block < last)]
        graphs = np.repeat(np.arange(span[1] - span[0]), np.diff(side.offsets[span[0] : span[1] + 1]))
        tile = Columns(
            graphs=graphs[order - first],
            block_starts=np.searchsorted(side.blocks[order], np.arange(self.n_blocks + 1)),
            vectors=np.ascontiguousarray(side.vectors[order].T),
            projections=side.projections[order],
        )
        return order, tile

    def calls(self, graphs: Span, columns: Any) -> Iterator[tuple[Span, Any]]:
        """Yield spans of these graphs on the left, for one call of a compiled loop each, with their node kernel."""
        first, offsets = graphs[0], self.left.offsets
        while first < graphs[1]:
            stop = int(np.searchsorted(offsets, offsets[first] + ROWS_PER_CALL, side="right")) - 1
            stop = min(max(stop, first + 1), graphs[1])
            yield (first, stop), self.kernel((int(offsets[first]), int(offsets[stop])), columns)
            first = stop

    def kernel(self, rows: Span, columns: Any) -> Any:
        """Return the node kernel of some rows with a tile, as compiled loops take it."""
        if isinstance(self.node_kernel, Gaussian):
            return Kernel(np.empty((0, 0)), float(self.node_kernel.gamma), self.reach)
        values = np.zeros((rows[1] - rows[0], len(columns.graphs)))
        blocks, vectors = self.left.blocks[slice(*rows)], self.left.vectors[slice(*rows)]
        for block in np.unique(blocks):
            in_block = np.flatnonzero(blocks == block)
            inside = slice(columns.block_starts[block], columns.block_starts[block + 1])
            if inside.stop > inside.start:
                values[in_block, inside] = self.node_kernel(vectors[in_block], columns.vectors[:, inside].T)
        return Kernel(values, 0.0, self.reach)


def aligned(n_rows: int, n_columns: int) -> Floats:
    """Return zeros whose rows start at a cache line if n_columns is a multiple of 8: loops then load half as many lines."""
    room = np.zeros(n_rows * n_columns + 8)
    start = -room.ctypes.data // 8 % 8
    return room[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


def number_alike(*values: Hashes) -> tuple[int, list[Ints]]:
    """Give equal values the same number in all arrays, from 0; also return how many are distinct."""
    numbers, firsts = number_codes(np.concatenate(values))
    return len(firsts), np.split(numbers, np.cumsum([len(v) for v in values])[:-1])


def order_by(keys: Ints, n_keys: int, order: Ints) -> Ints:
    """Sort an order by keys below ``n_keys``, stably."""
    small = keys[order].astype(np.min_scalar_type(n_keys))  # up to 16 bits, numpy sorts without comparisons
    return order[np.argsort(small, kind="stable")]


def _widest_direction(vectors: Floats, extent: float) -> Floats:
    """Return the unit vector along which the vectors vary most: windows along it leave out the most pairs.

    Any direction gives correct sums, so a sample is enough. It depends on the order of the vectors, and the last bits of sums
    depend on it: it is computed once, and workers get the projections.
    """
    sample = vectors[:: 1 + len(vectors) // 500] / extent
    centered = sample - sample.mean(axis=0)
    if centered.shape[1] > MANY_DIMENSIONS:
        spread: Floats = np.einsum("ni,ni->i", centered, centered)
        return (np.arange(len(spread)) == spread.argmax()).astype(float)
    return np.linalg.eigh(np.einsum("ni,nj->ij", centered, centered))[1][:, -1]


def cut(offsets: Ints, n_tiles: int) -> list[Span]:
    """Cut the graphs into at most ``n_tiles`` spans of consecutive graphs with about the same number of nodes, none of them empty."""
    goals = offsets[-1] * np.arange(1, n_tiles) / n_tiles
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, goals), [len(offsets) - 1]]))
    return [(int(first), int(last)) for first, last in pairwise(cuts)]


# -------------------------------------------------------------------- the matrix of all tiles


def fill_matrix(
    tile_sums: Callable[[Any, Span, Span], Floats],
    job: Any,
    tiles: list[Span],
    sums: Floats,
    *,
    symmetric: bool,
    n_jobs: int | None,
    label: str,
) -> None:
    """Fill ``sums`` with the sums of all tiles; of a symmetric matrix the upper half, see :func:`complete` for the rest.

    ``tile_sums(job, tile, graphs)`` returns those of some graphs on the left with a tile; the job is what all tiles have in common.
    """
    # Later tiles of a symmetric matrix have more rows: starting with the longest tasks keeps all workers busy.
    tasks = [(tile, (0, tile[1] if symmetric else sums.shape[-2])) for tile in reversed(tiles)]
    results: Iterable[Any]
    if share_memory():
        shared_tasks = [(job, *task) for task in tasks]
        results = zip(tasks, run_tasks(tile_sums, shared_tasks, n_jobs=n_jobs, label=label), strict=True)
    else:
        results = send_tasks(tile_sums, job, tasks, n_jobs=n_jobs, label=label)
    for (tile, graphs), result in results:
        sums[..., slice(*graphs), slice(*tile)] = result


def own_blocks(graph_ids: Ints, blocks: Hashes) -> Hashes:
    """Return blocks that belong to one graph each, in the same order: no graph then meets another."""
    _, numbers = np.unique(np.stack([graph_ids.astype(np.uint64), blocks]), axis=1, return_inverse=True)
    return numbers.reshape(-1).astype(np.uint64)


def diagonal(tile_sums: Callable[[Any, Span, Span], Floats], job: Any, *, n_jobs: int | None, label: str) -> Floats:
    """Return the sums of each graph with itself, for a job whose graphs have blocks of their own, as in :func:`fill_matrix`."""
    offsets = job.layout.right.offsets
    tasks = [(job, tile, tile) for tile in cut(offsets, 1 + int(offsets[-1]) // SELF_COLUMNS)]
    squares = run_tasks(tile_sums, tasks, n_jobs=n_jobs, label=label)
    return np.concatenate([np.einsum("...ii->...i", square) for square in squares], axis=-1)


def complete(K: Floats, factors: Floats | None = None) -> None:
    """Fill the lower half of each symmetric matrix from its upper half, all values times the factors of their row and column.

    The two factors are multiplied first, so that the matrix is symmetric in every bit.
    """
    n = K.shape[-1]
    for point in np.ndindex(K.shape[:-2]):
        matrix = K[point]
        for first in range(0, n, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, n)
            rows = matrix[first:last, first:]
            if factors is not None:
                with np.errstate(over="ignore", invalid="ignore"):  # values below the diagonal are arbitrary
                    rows *= factors[point][first:last, None] * factors[point][first:]
            square, rest = np.split(rows, [last - first], axis=1)
            np.copyto(square, square.T.copy(), where=np.tri(last - first, k=-1, dtype=bool))
            matrix[last:, first:last] = rest.T


def complete_gram(K: Floats, diagonals: Floats, *, normalize: bool | str) -> None:
    """Fill the lower halves of symmetric matrices from the upper ones, and normalize them, in place."""
    is_cosine = normalize and normalize != "tanimoto"
    complete(K, inverse_roots(diagonals) if is_cosine else None)
    if normalize == "tanimoto":
        normalize_gram(K, diagonals, diagonals, normalize=normalize)


def normalize_gram(K: Floats, rows: Floats, columns: Floats, *, normalize: bool | str) -> None:
    """Divide K by sqrt(rows columns) (True) or by rows + columns - K ("tanimoto"), in place; 0 / 0 is 0.

    ``rows`` and ``columns`` are the kernels of the graphs along each axis with themselves, with the leading axes of K. The
    two are combined first, so that a symmetric matrix remains symmetric in every bit.
    """
    is_cosine = normalize != "tanimoto"
    if is_cosine:
        rows, columns = inverse_roots(rows), inverse_roots(columns)
    combine = np.multiply if is_cosine else np.add
    buffer = np.empty((min(ROWS_AT_ONCE, K.shape[-2]), K.shape[-1]))
    for point in np.ndindex(K.shape[:-2]):
        for first in range(0, K.shape[-2], ROWS_AT_ONCE):
            block = K[point][first : first + ROWS_AT_ONCE]
            pairs = combine(rows[point][first : first + ROWS_AT_ONCE, None], columns[point], out=buffer[: len(block)])
            if is_cosine:
                block *= pairs
            else:
                np.divide(block, pairs - block, out=block, where=block != 0)


def inverse_roots(diagonal: Floats) -> Floats:
    """Compute 1 / sqrt(diagonal); 0 for entries that are not positive."""
    positive = diagonal > 0
    return np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)


# -------------------------------------------------------------------- compiled: powers

_LOG2E = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which is then in the low bits
_UNDERFLOW = -1021.0
# 2^x = 1 + x p(x) for |x| <= 1/2 to 9e-18: p interpolates (2^x - 1) / x at Chebyshev's points.
_C1, _C2, _C3, _C4 = 0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888
_C5, _C6, _C7 = 0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05
_C8, _C9, _C10, _C11 = 1.321544258792169e-06, 1.0178062445845774e-07, 7.072585949269223e-09, 4.4549605981865186e-10


@contracted(forceinline=True)
def power_of_2(x):
    """Return 2^x for x <= 0 to 2 units in the last place, 0 below 1e-307; without branches or calls, so that loops vectorize.

    x = n + r, which is exact, 2^r by a polynomial of degree 11 (|r| <= 1/2) in Estrin's order, n added to its exponent's bits.
    """
    shifted = x + _ROUND
    r = x - (shifted - _ROUND)
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r * _C1) + r2 * (_C2 + r * _C3)
    mid = (_C4 + r * _C5) + r2 * (_C6 + r * _C7)
    high = (_C8 + r * _C9) + r2 * (_C10 + r * _C11)
    bits = np.float64(low + r4 * (mid + r4 * high)).view(np.int64)
    power = np.int64(bits + (np.float64(shifted).view(np.int64) << 52)).view(np.float64)
    return power if x > _UNDERFLOW else 0.0


@jit
def clear(values):
    """Set values to 0 in a loop: slice assignments take seconds to compile."""
    for j in range(len(values)):
        values[j] = 0.0


@jit
def copy(source, target):
    """Copy source to target in a loop."""
    for j in range(len(target)):
        target[j] = source[j]


@contracted
def add_scaled(a, values, out):
    """Add a * values to out."""
    for j in range(len(out)):
        out[j] += a * values[j]


# -------------------------------------------------------------------- compiled: the node kernel


@contracted
def gaussian_row(gamma, v, x, columns, low, high, r, out):
    """Set out[r, j] to exp(-gamma |x[v] - columns[:, j]|^2) for low <= j < high; from differences, so that nothing cancels.

    Indices are unsigned: those that might be negative would be counted from the end, and cost a comparison each. Rows are not cut
    out of their arrays: that costs a reference count each.
    """
    scale, low, high = -gamma * _LOG2E, np.uint64(low), np.uint64(high)
    v, r = np.uint64(v), np.uint64(r)
    _square_distances(v, x, columns, low, high, r, out)
    for j in range(low, high):
        out[r, j] = power_of_2(scale * out[r, j])


@contracted
def _square_distances(v, x, columns, low, high, r, out):
    """Set out[r, j] to |x[v] - columns[:, j]|^2, three dimensions at a time: one load and one store of the sum for all three."""
    d = len(columns)
    for j in range(low, high):
        out[r, j] = 0.0
    for i in range(0, d - 2, 3):
        k, k1, k2 = np.uint64(i), np.uint64(i + 1), np.uint64(i + 2)
        for j in range(low, high):
            a, b, c = x[v, k] - columns[k, j], x[v, k1] - columns[k1, j], x[v, k2] - columns[k2, j]
            out[r, j] = ((out[r, j] + a * a) + b * b) + c * c
    for i in range(d - d % 3, d):
        k = np.uint64(i)
        for j in range(low, high):
            a = x[v, k] - columns[k, j]
            out[r, j] += a * a


@contracted
def gaussian_rows(gamma, v, x, columns, low, high, out):
    """Do the same for the four rows x[v] .. x[v + 3]: each column is loaded once for all of them."""
    d, scale, low, high = len(columns), -gamma * _LOG2E, np.uint64(low), np.uint64(high)
    for r in range(np.uint64(4)):
        for j in range(low, high):
            out[r, j] = 0.0
    for i in range(0, d - 2, 3):
        k, k1, k2 = np.uint64(i), np.uint64(i + 1), np.uint64(i + 2)
        a0, a1, a2, a3 = x[v, k], x[v + 1, k], x[v + 2, k], x[v + 3, k]
        b0, b1, b2, b3 = x[v, k1], x[v + 1, k1], x[v + 2, k1], x[v + 3, k1]
        c0, c1, c2, c3 = x[v, k2], x[v + 1, k2], x[v + 2, k2], x[v + 3, k2]
        for j in range(low, high):
            a, b, c = columns[k, j], columns[k1, j], columns[k2, j]
            out[0, j] = ((out[0, j] + (a0 - a) * (a0 - a)) + (b0 - b) * (b0 - b)) + (c0 - c) * (c0 - c)
            out[1, j] = ((out[1, j] + (a1 - a) * (a1 - a)) + (b1 - b) * (b1 - b)) + (c1 - c) * (c1 - c)
            out[2, j] = ((out[2, j] + (a2 - a) * (a2 - a)) + (b2 - b) * (b2 - b)) + (c2 - c) * (c2 - c)
            out[3, j] = ((out[3, j] + (a3 - a) * (a3 - a)) + (b3 - b) * (b3 - b)) + (c3 - c) * (c3 - c)
    for i in range(d - d % 3, d):
        k = np.uint64(i)
        for r in range(np.uint64(4)):
            a0 = x[np.uint64(v) + r, k]
            for j in range(low, high):
                out[r, j] += (a0 - columns[k, j]) * (a0 - columns[k, j])
    for r in range(np.uint64(4)):
        for j in range(low, high):
            out[r, j] = power_of_2(scale * out[r, j])


@jit
def window_of(projection, reach, projections, first, last):
    """Return the first, and the one after the last, of the columns first .. last - 1 whose sorted projections are within reach."""
    if first < last and projections[first] < projection - reach:
        first = first_from(projection - reach, first, last, projections)
    if first < last and projections[last - 1] >= projection + reach:
        last = first_from(projection + reach, first, last, projections)
    return first, last


@contracted
def kernel_rows(first, last, base, rows, columns, kernel, out, windows):
    """Set out[v - first, j] to the node kernel of the rows first <= v < last with the columns j of a window, and fill the windows.

    ``base`` is the first row of this call, with which kernel.values begin. Named tuples are unpacked first: each attribute access
    costs a reference count.
    """
    blocks, vectors, projections = rows.blocks, rows.vectors, rows.projections
    block_starts, column_vectors, column_projections = columns.block_starts, columns.vectors, columns.projections
    kernel_values, gamma, reach = kernel.values, kernel.gamma, kernel.reach
    for v in range(first, last):
        low, high = block_starts[blocks[v]], block_starts[blocks[v] + 1]
        if len(kernel_values):
            for j in range(low, high):
                out[v - first, j] = kernel_values[v - base, j]
        else:
            low, high = window_of(projections[v], reach, column_projections, low, high)
            gaussian_row(gamma, v, vectors, column_vectors, low, high, v - first, out)
        windows[v - first, 0], windows[v - first, 1] = low, high
