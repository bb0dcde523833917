"""What the hot loops of all pair sums share: the node kernel of one row with a tile of columns that stays in cache.

Rows come graph by graph. Columns come block by block (nodes of different blocks are never compared) and, within a block,
sorted by their place along one direction of the attribute space, so that the columns near a row are a contiguous window.
"""

from __future__ import annotations

from collections import namedtuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from treegram._numba import contracted, jit

# A tile: for each column its graph, counted from the tile's first; where each block starts; vectors (d, n_columns); places.
Columns = namedtuple("Columns", "graphs block_starts vectors places")
# The nodes that meet it, one row each.
Rows = namedtuple("Rows", "blocks vectors places")
# The node kernel: values of all rows of one call with all columns, or none if it is the Gaussian with this gamma, which is
# taken as 0 where places are farther apart than ``reach``.
Kernel = namedtuple("Kernel", "given gamma reach")

_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which stands in the low bits
_UNDERFLOW = -708.0


@intrinsic
def _as_bits(typing_context, x):  # noqa: ARG001 (numba's signature)
    return types.int64(types.float64), lambda *args: args[1].bitcast(args[3][0], ir.IntType(64))


@intrinsic
def _as_float(typing_context, bits):  # noqa: ARG001
    return types.float64(types.int64), lambda *args: args[1].bitcast(args[3][0], ir.DoubleType())


@contracted(no_cpython_wrapper=True, forceinline=True)
def exp(x):
    """e^x for x <= 0 to 2 units in the last place, 0 below 1e-307; without branches or calls, so that loops vectorise.

    x = n ln 2 + r, e^r by its Taylor polynomial of degree 13 (|r| <= ln 2 / 2) in Estrin's order, 2^n by its bits.
    """
    shifted = x * _LOG2E + _ROUND
    n = shifted - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    mid = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    top = 1 / 479001600 + r * (1 / 6227020800)
    power = _as_float((_as_bits(shifted) + 1023) << 52)
    return (low + r4 * mid + (r4 * r4) * (high + r4 * top)) * power if x > _UNDERFLOW else 0.0


@jit
def clear(values):
    """values[:] = 0, by a loop: assignments of slices compile for seconds."""
    for j in range(len(values)):
        values[j] = 0.0


@jit
def copy(source, target):
    """target[:] = source, by a loop."""
    for j in range(len(target)):
        target[j] = source[j]


@contracted
def add_scaled(a, values, out):
    """Out += a * values."""
    for j in range(len(out)):
        out[j] += a * values[j]


@jit
def largest_span(offsets, first, last):
    """The largest of offsets[g + 1] - offsets[g], first <= g < last."""
    largest = 0
    for g in range(first, last):
        largest = max(largest, offsets[g + 1] - offsets[g])
    return largest


@contracted
def gaussian_row(gamma, x, columns, low, high, out):
    """out[j] = exp(-gamma |x - columns[:, j]|^2) for low <= j < high; by differences, so that nothing cancels."""
    out = out[low:high]
    d, n = len(columns), len(out)
    if d == 1:
        c0 = columns[0, low:high]
        for j in range(n):
            a = x[0] - c0[j]
            out[j] = exp(-gamma * (a * a))
        return
    if d == 3:
        c0, c1, c2 = columns[0, low:high], columns[1, low:high], columns[2, low:high]
        for j in range(n):
            a, b, c = x[0] - c0[j], x[1] - c1[j], x[2] - c2[j]
            out[j] = exp(-gamma * (a * a + b * b + c * c))
        return
    clear(out)
    k = 0
    while k + 4 <= d:  # four at a time: one load and one store of the sum for four dimensions
        c0, c1 = columns[k, low:high], columns[k + 1, low:high]
        c2, c3 = columns[k + 2, low:high], columns[k + 3, low:high]
        for j in range(n):
            a, b, c, e = x[k] - c0[j], x[k + 1] - c1[j], x[k + 2] - c2[j], x[k + 3] - c3[j]
            out[j] += (a * a + b * b) + (c * c + e * e)
        k += 4
    for i in range(k, d):
        c0 = columns[i, low:high]
        for j in range(n):
            a = x[i] - c0[j]
            out[j] += a * a
    for j in range(n):
        out[j] = exp(-gamma * out[j])


@jit
def first_from(value, start, stop, values):
    """The first of the places start .. stop of sorted values from which on none is below this one."""
    while start < stop:
        middle = (start + stop) // 2
        if values[middle] < value:
            start = middle + 1
        else:
            stop = middle
    return start


@jit
def window_of(place, reach, places, first, last):
    """The columns first <= j < last, sorted by place, whose places are within reach: from which on, and up to which."""
    return first_from(place - reach, first, last, places), first_from(place + reach, first, last, places)


@contracted
def kernel_rows(first, last, base, rows, columns, kernel, out, windows):
    """out[v - first, j] = the node kernel of the rows first <= v < last with the columns j of a window, and the windows.

    ``base`` is the first row of this call, with which given values begin. Bundles are taken apart first: each look into one
    costs a count of references.
    """
    blocks, vectors, places = rows.blocks, rows.vectors, rows.places
    block_starts, column_vectors, column_places = columns.block_starts, columns.vectors, columns.places
    given, gamma, reach = kernel.given, kernel.gamma, kernel.reach
    for v in range(first, last):
        low, high = block_starts[blocks[v]], block_starts[blocks[v] + 1]
        row = out[v - first]
        if len(given):
            for j in range(low, high):
                row[j] = given[v - base, j]
        else:
            low, high = window_of(places[v], reach, column_places, low, high)
            gaussian_row(gamma, vectors[v], column_vectors, low, high, row)
        windows[v - first, 0], windows[v - first, 1] = low, high
