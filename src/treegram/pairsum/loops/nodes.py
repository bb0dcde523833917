"""The hot loops of the pair sums: rows of nodes against one tile of columns that stays in cache.

Rows come graph by graph. Columns come block by block (nodes of different blocks share no feature) and, within a block,
sorted by their place along one direction of the attribute space, so that the columns near a row are a contiguous window.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from treegram._numba import contracted, jit

_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which stands in the low bits
_UNDERFLOW = -708.0


@intrinsic
def _as_bits(typing_context, x):
    return types.int64(types.float64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _as_float(typing_context, bits):
    return types.float64(types.int64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


@njit(inline="always")
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
    out[:] = 0.0
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
def _copy(source, target):
    """target[:] = source, by a loop: assignments of slices compile for seconds."""
    for j in range(len(target)):
        target[j] = source[j]


@jit
def _place_of(value, places):
    """The first index whose place is not below value, in sorted places."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if places[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def invert(indptr, indices, data, dense_slots, n_dense):
    """For each feature the columns that have it: dense rows for common features, lists for the others.

    ``dense_slots[t]`` is the row of a common feature among those of its block, or -1. Returns the dense values
    (n_dense, n_columns), list ends per feature, listed columns and their values; the list of t starts where that of
    t - 1 ends.
    """
    n_columns = len(indptr) - 1
    dense = np.zeros((n_dense, n_columns))
    ends = np.zeros(len(dense_slots) + 1, np.int64)
    for i in range(len(indices)):
        if dense_slots[indices[i]] < 0:
            ends[indices[i] + 1] += 1
    for t in range(len(dense_slots)):
        ends[t + 1] += ends[t]
    listed, values = np.empty(ends[-1], np.int64), np.empty(ends[-1])
    for j in range(n_columns):
        for i in range(indptr[j], indptr[j + 1]):
            t = indices[i]
            if dense_slots[t] >= 0:
                dense[dense_slots[t], j] = data[i]
            else:
                listed[ends[t]] = j
                values[ends[t]] = data[i]
                ends[t] += 1
    return dense, ends, listed, values


@contracted
def _add_listed(a, listed, values, low, high, kernel, graphs, weights, totals):
    """totals[graph of j, :] += a * values * kernel[j] * weights over the listed columns j within [low, high)."""
    if len(weights) == 1:
        a *= weights[0]
        for i in range(len(listed)):
            j = listed[i]
            if low <= j < high:
                totals[graphs[j], 0] += a * values[i] * kernel[j]
        return
    for i in range(len(listed)):
        j = listed[i]
        if low <= j < high:
            product, row = a * values[i] * kernel[j], totals[graphs[j]]
            for k in range(len(weights)):
                row[k] += product * weights[k]


@contracted
def _add_scaled(a, kernel, out):
    """out += a * kernel."""
    for j in range(len(out)):
        out[j] += a * kernel[j]


@contracted
def _spread_dense(first, last, dense, sums, dense_kinds, kind_groups, kind_weights, graphs, joined, by_graph, totals):
    """Add what the common features gathered in ``sums`` to the totals of the columns' graphs.

    Features of one kind (same group, same weights) are joined first, then columns of one graph: weights come last, when
    few numbers are left. ``joined`` (n_columns) and ``by_graph`` (n_graphs) are scratch.
    """
    graphs, joined = graphs[first:last], joined[first:last]
    c = 0
    while c < len(dense_kinds):
        kind = dense_kinds[c]
        joined[:] = 0.0
        while c < len(dense_kinds) and dense_kinds[c] == kind:
            value, total = dense[c, first:last], sums[c, first:last]
            for j in range(len(joined)):
                joined[j] += value[j] * total[j]
            c += 1
        by_graph[:] = 0.0
        for j in range(len(joined)):
            by_graph[graphs[j]] += joined[j]
        weights, out = kind_weights[kind], totals[kind_groups[kind]]
        for g in range(len(by_graph)):
            for k in range(len(weights)):
                out[g, k] += by_graph[g] * weights[k]


@contracted
def sum_tile(
    rows, row_graphs, row_blocks, row_vectors, row_places, row_indptr, row_indices, row_data,
    column_graphs, block_starts, column_vectors, column_places, inverted,
    dense_slots, block_kinds, kind_groups, kind_weights, feature_kinds, given, gamma, reach, out,
):  # fmt: skip
    """Add the pair sums of the rows ``rows[0] .. rows[1] - 1`` with all columns of one tile to ``out``.

    out[graph of row, group, graph of column, weight] += k(row, column) * sum_t F[row, t] F[column, t] weight_t, over the
    features t of each group. ``given`` holds the node kernel's values if it is not the Gaussian one, which is computed
    here, and taken as 0 where places are farther apart than ``reach``.
    """
    dense, ends, listed, values = inverted
    kernel, joined = np.zeros(len(column_graphs)), np.empty(len(column_graphs))
    by_graph, sums = np.empty(out.shape[2]), np.empty(dense.shape)
    v = rows[0]
    while v < rows[1]:
        graph, block = row_graphs[v], row_blocks[v]
        first, last = block_starts[block], block_starts[block + 1]
        kinds = block_kinds[block, : block_kinds[block, -1]]
        sums[: len(kinds), first:last] = 0.0
        totals = out[graph]
        while v < rows[1] and row_graphs[v] == graph and row_blocks[v] == block:
            low, high = first, last
            if len(given):
                _copy(given[v - rows[0], low:high], kernel[low:high])
            else:
                places = column_places[first:last]
                low = first + _place_of(row_places[v] - reach, places)
                high = first + _place_of(row_places[v] + reach, places)
                gaussian_row(gamma, row_vectors[v], column_vectors, low, high, kernel)
            for i in range(row_indptr[v], row_indptr[v + 1]):
                t = row_indices[i]
                if dense_slots[t] >= 0:
                    _add_scaled(row_data[i], kernel[low:high], sums[dense_slots[t], low:high])
                    continue
                start, kind = ends[t - 1] if t > 0 else 0, feature_kinds[t]
                if ends[t] > start:
                    _add_listed(
                        row_data[i], listed[start : ends[t]], values[start : ends[t]], low, high, kernel,
                        column_graphs, kind_weights[kind], totals[kind_groups[kind]],
                    )  # fmt: skip
            v += 1
        if last > first:
            _spread_dense(
                first, last, dense, sums, kinds, kind_groups, kind_weights, column_graphs, joined, by_graph, totals
            )


@contracted
def sum_self(
    offsets, blocks, vectors, indptr, indices, data, kind_groups, kind_weights, feature_kinds, given, gamma, out
):
    """out[graph, group, weight] = the pair sum of each graph with itself, rows graph by graph.

    ``given`` holds the node kernel's values of all pairs within graph after graph, row by row, or is empty (Gaussian).
    """
    held = np.zeros(len(feature_kinds))
    n_weights = out.shape[2]
    total = np.zeros(len(kind_groups))
    at = 0
    for g in range(len(offsets) - 1):
        first, last = offsets[g], offsets[g + 1]
        total[:] = 0.0
        columns = vectors[first:last].T.copy()
        kernel = np.empty(last - first)
        for v in range(first, last):
            if len(given):
                _copy(given[at : at + last - first], kernel)
                at += last - first
            else:
                gaussian_row(gamma, vectors[v], columns, 0, last - first, kernel)
            for i in range(indptr[v], indptr[v + 1]):
                held[indices[i]] = data[i]
            for w in range(first, last):
                # Nodes of another block share no feature; their k_A may be anything, so it must not be looked at.
                for i in range(indptr[w], indptr[w + 1]) if blocks[w] == blocks[v] else range(0):
                    total[feature_kinds[indices[i]]] += held[indices[i]] * data[i] * kernel[w - first]
            for i in range(indptr[v], indptr[v + 1]):
                held[indices[i]] = 0.0
        for kind in range(len(kind_groups)):
            for k in range(n_weights):
                out[g, kind_groups[kind], k] += total[kind] * kind_weights[kind, k]
