"""What the hot loops of all pair sums share: the node kernel of one row with a tile of columns that stays in cache.

Rows come graph by graph. Columns come block by block (nodes of different blocks are never compared) and, within a block,
sorted by their place along one direction of the attribute space, so that the columns near a row are a contiguous window.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from treegram._core.jit import contracted, jit

# A tile: for each column its graph, counted from the tile's first; where each block starts; vectors (d, n_columns); places.
Columns = namedtuple("Columns", "graphs block_starts vectors places")
# The nodes that meet it, one row each.
Rows = namedtuple("Rows", "blocks vectors places")
# The node kernel: values of all rows of one call with all columns, or none if it is the Gaussian with this gamma, which is
# taken as 0 where places are farther apart than ``reach``.
Kernel = namedtuple("Kernel", "given gamma reach")

MIRRORED = 64  # rows and columns of a square that is mirrored at a time
_LOG2E = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which stands in the low bits
_UNDERFLOW = -1021.0
# 2^x = 1 + x p(x) for |x| <= 1/2 to 9e-18: p interpolates (2^x - 1) / x at Chebyshev's points.
_C1, _C2, _C3, _C4 = 0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888
_C5, _C6, _C7 = 0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05
_C8, _C9, _C10, _C11 = 1.321544258792169e-06, 1.0178062445845774e-07, 7.072585949269223e-09, 4.4549605981865186e-10


@intrinsic
def _as_bits(typing_context, x):  # noqa: ARG001 (numba's signature)
    return types.int64(types.float64), lambda *args: args[1].bitcast(args[3][0], ir.IntType(64))


@intrinsic
def _as_float(typing_context, bits):  # noqa: ARG001
    return types.float64(types.int64), lambda *args: args[1].bitcast(args[3][0], ir.DoubleType())


@contracted(forceinline=True)
def power_of_2(x):
    """2^x for x <= 0 to 2 units in the last place, 0 below 1e-307; without branches or calls, so that loops vectorize.

    x = n + r, which is exact, 2^r by a polynomial of degree 11 (|r| <= 1/2) in Estrin's order, n added to its exponent's bits.
    """
    shifted = x + _ROUND
    r = x - (shifted - _ROUND)
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r * _C1) + r2 * (_C2 + r * _C3)
    mid = (_C4 + r * _C5) + r2 * (_C6 + r * _C7)
    high = (_C8 + r * _C9) + r2 * (_C10 + r * _C11)
    power = _as_float(_as_bits(low + r4 * (mid + r4 * high)) + (_as_bits(shifted) << 52))
    return power if x > _UNDERFLOW else 0.0


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
def _turn(matrix, i, j):
    """matrix[j : j + 4, i : i + 4] = matrix[i : i + 4, j : j + 4].T, all read before anything is written: whole vectors are moved."""
    i1, i2, i3 = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
    j1, j2, j3 = j + np.uint64(1), j + np.uint64(2), j + np.uint64(3)
    a, a1, a2, a3 = matrix[i, j], matrix[i, j1], matrix[i, j2], matrix[i, j3]
    b, b1, b2, b3 = matrix[i1, j], matrix[i1, j1], matrix[i1, j2], matrix[i1, j3]
    c, c1, c2, c3 = matrix[i2, j], matrix[i2, j1], matrix[i2, j2], matrix[i2, j3]
    d, d1, d2, d3 = matrix[i3, j], matrix[i3, j1], matrix[i3, j2], matrix[i3, j3]
    matrix[j, i], matrix[j, i1], matrix[j, i2], matrix[j, i3] = a, b, c, d
    matrix[j1, i], matrix[j1, i1], matrix[j1, i2], matrix[j1, i3] = a1, b1, c1, d1
    matrix[j2, i], matrix[j2, i1], matrix[j2, i2], matrix[j2, i3] = a2, b2, c2, d2
    matrix[j3, i], matrix[j3, i1], matrix[j3, i2], matrix[j3, i3] = a3, b3, c3, d3


@jit
def mirror(matrix, factors, first, last):
    """Multiply the upper half of some rows of a square matrix by the factors of row and column, and copy it to the lower half.

    Square by square, so that what is read and what is written stay in cache.
    """
    n = len(matrix)
    for top in range(first, last, MIRRORED):
        bottom = min(top + MIRRORED, last)
        for start in range(top, n, MIRRORED):
            stop = min(start + MIRRORED, n)
            for i in range(top, bottom):
                for j in range(np.uint64(max(i, start)), np.uint64(stop)):
                    matrix[np.uint64(i), j] *= factors[np.uint64(i)] * factors[j]
            turned, right = (bottom - (bottom - top) % 4, stop - (stop - start) % 4) if start > top else (top, start)
            for j in range(start, right, 4):
                for i in range(top, turned, 4):
                    _turn(matrix, np.uint64(i), np.uint64(j))
            for i in range(top, bottom):
                for j in range(max(i + 1, right if i < turned else start), stop):
                    matrix[j, i] = matrix[i, j]


@jit
def largest_span(offsets, first, last):
    """The largest of offsets[g + 1] - offsets[g], first <= g < last."""
    largest = 0
    for g in range(first, last):
        largest = max(largest, offsets[g + 1] - offsets[g])
    return largest


@contracted
def gaussian_row(gamma, v, x, columns, low, high, r, out):
    """out[r, j] = exp(-gamma |x[v] - columns[:, j]|^2) for low <= j < high; by differences, so that nothing cancels.

    Places are unsigned: those that might be negative would be counted from the end, and cost a comparison each. Rows are not cut
    out of their arrays: that costs a count of references each.
    """
    d, scale, low, high = len(columns), -gamma * _LOG2E, np.uint64(low), np.uint64(high)
    v, r = np.uint64(v), np.uint64(r)
    if d == 1:
        for j in range(low, high):
            a = x[v, 0] - columns[0, j]
            out[r, j] = power_of_2(scale * (a * a))
        return
    if d == 3:
        for j in range(low, high):
            a, b, c = x[v, 0] - columns[0, j], x[v, 1] - columns[1, j], x[v, 2] - columns[2, j]
            out[r, j] = power_of_2(scale * (a * a + b * b + c * c))
        return
    _square_distances(v, x, columns, low, high, r, out)
    for j in range(low, high):
        out[r, j] = power_of_2(scale * out[r, j])


@contracted
def _square_distances(v, x, columns, low, high, r, out):
    """out[r, j] = |x[v] - columns[:, j]|^2, three dimensions at a time: one load and one store of the sum for all three."""
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
    """The same for the four rows x[v] .. x[v + 3]: each column is loaded once for all of them."""
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
    if first < last and places[first] < place - reach:
        first = first_from(place - reach, first, last, places)
    if first < last and places[last - 1] >= place + reach:
        last = first_from(place + reach, first, last, places)
    return first, last


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
        if len(given):
            for j in range(low, high):
                out[v - first, j] = given[v - base, j]
        else:
            low, high = window_of(places[v], reach, column_places, low, high)
            gaussian_row(gamma, v, vectors, column_vectors, low, high, v - first, out)
        windows[v - first, 0], windows[v - first, 1] = low, high
