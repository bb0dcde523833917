"""The hot loops of ``pairsum.nodes``: rows of nodes against one tile of columns, features shared times node kernel."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from treegram._numba import contracted, jit
from treegram.pairsum.loops.tiles import add_scaled, clear, copy, first_from, gaussian_row, gaussian_rows, window_of

AT_ONCE = 4  # rows of one graph and block that are summed together
LANES = (
    8  # columns in a vector of the widest processors, and numbers in a line of cache: blocks start at multiples of it
)
SLACK = 1.25  # by how much the window of such rows may exceed their own, on average

# Nodes in rows, with their graphs and sparse features.
Rows = namedtuple("Rows", "graphs blocks vectors places indptr indices data")
# The columns that have each feature. ``slots[t]`` is the dense row of a common feature among those of its block, or -1. A
# rare feature has the columns listed[ends[t - 1] .. ends[t] - 1]. What features of one kind and block give is gathered in one
# lane, a number per column: ``lanes[t]`` is the feature's, or -1 if its kind has none. ``lane_kinds`` has the kind of each lane
# of a block, their number in the last column.
Inverted = namedtuple("Inverted", "slots lanes lane_kinds dense ends listed values")
# The kind of each feature, the group of each kind, and its weights (n_kinds, n_weights).
Weights = namedtuple("Weights", "kinds groups weights")


@jit
def invert(indptr, indices, data, positions, inverted):
    """Fill ``inverted`` with the features of some nodes, whose columns are ``positions``, ascending.

    Slots and lanes are known, ``dense`` and ``ends`` are zero, and lists have their length.
    """
    slots, dense, ends = inverted.slots, inverted.dense, inverted.ends
    for i in range(len(indices)):
        if slots[indices[i]] < 0:
            ends[indices[i] + 1] += 1
    for t in range(len(slots)):
        ends[t + 1] += ends[t]
    for node in range(len(indptr) - 1):
        j = positions[node]
        for i in range(indptr[node], indptr[node + 1]):
            t = indices[i]
            if slots[t] >= 0:
                dense[slots[t], j] = data[i]
            else:
                inverted.listed[ends[t]], inverted.values[ends[t]] = j, data[i]
                ends[t] += 1


@contracted
def _add_listed(a, start, stop, listed, values, r, held, graphs, kind, weights, group, totals):
    """totals[group, :, graph of j] += weights[kind] * a * values * held[r, j] over some of the listed columns j."""
    for i in range(start, stop):
        j = listed[i]
        product = a * values[i] * held[r, j]
        for k in range(weights.shape[1]):
            totals[group, k, graphs[j]] += product * weights[kind, k]


@contracted
def _join_listed(a, start, stop, listed, values, r, held, lane, joined):
    """joined[lane, j] += a * values * held[r, j] over some of the listed columns j."""
    for i in range(start, stop):
        j = listed[i]
        joined[lane, j] += a * values[i] * held[r, j]


@contracted
def _join_dense(n, window, chosen, factors, dense, r, held, lane, joined):
    """joined[lane] += held[r] * (sum of factors[i] * dense[chosen[i]] over i < n), n at most 4, over the columns of a window."""
    low, high, lane, r = np.uint64(window[0]), np.uint64(window[1]), np.uint64(lane), np.uint64(r)
    x, a = np.uint64(chosen[0]), factors[0]
    if n == 1:
        for j in range(low, high):
            joined[lane, j] += held[r, j] * (a * dense[x, j])
        return
    y, b = np.uint64(chosen[1]), factors[1]
    if n == 2:
        for j in range(low, high):
            joined[lane, j] += held[r, j] * (a * dense[x, j] + b * dense[y, j])
        return
    z, c = np.uint64(chosen[2]), factors[2]
    if n == 3:
        for j in range(low, high):
            joined[lane, j] += held[r, j] * ((a * dense[x, j] + b * dense[y, j]) + c * dense[z, j])
        return
    w, e = np.uint64(chosen[3]), factors[3]
    for j in range(low, high):
        joined[lane, j] += held[r, j] * ((a * dense[x, j] + b * dense[y, j]) + (c * dense[z, j] + e * dense[w, j]))


@contracted
def _spread(block, kinds, joined, weights, groups, graphs, by_graph, totals):
    """Add what the rows of one graph and block gathered in the lanes of these kinds to the totals of the columns' graphs.

    Weights come last, when few numbers are left. Lanes are left zero; ``by_graph`` is scratch, one number per graph.
    """
    first, last = block
    for i in range(len(kinds)):
        clear(by_graph)
        lane = joined[i]
        for j in range(first, last):
            by_graph[graphs[j]] += lane[j]
            lane[j] = 0.0
        factors, out = weights[kinds[i]], totals[groups[kinds[i]]]
        for k in range(len(factors)):
            add_scaled(factors[k], by_graph, out[k])


@contracted
def _write(totals, graph, out):
    """out[:, :, graph] += totals, which are left zero."""
    for group in range(totals.shape[0]):
        for k in range(totals.shape[1]):
            add_scaled(1.0, totals[group, k], out[group, k, graph])
            clear(totals[group, k])


@jit
def _rows_at_once(v, stop, window, graphs, blocks, row_places, reach, places, columns):
    """How many rows from v on to take together: AT_ONCE of one graph and block with nearly the same window, or one.

    ``window`` is that of v, and becomes theirs together.
    """
    last = v + AT_ONCE - 1
    if last >= stop or graphs[last] != graphs[v] or blocks[last] != blocks[v]:
        return 1
    # Rows are sorted by place: the windows of the others lie between the first and the last.
    low, high = window_of(row_places[last], reach, places, columns[0], columns[1])
    if (high - window[0]) * 2 > SLACK * (high - low + window[1] - window[0]):
        return 1
    window[1] = high
    return AT_ONCE


@njit(inline="always")  # bundles of arrays are costly to hand over, row by row
def _add_features(v, r, window, features, inverted, held, graphs, weights, waiting, joined, totals):
    """The features of one row, the r-th that is held: common ones up to four at once, rare ones to their lanes or totals."""
    indptr, indices, data = features
    slots, lanes, dense, ends, listed, values = inverted
    feature_kinds, groups, kind_weights = weights
    chosen, factors = waiting
    low, high = window
    n, lane = 0, -1
    for i in range(indptr[v], indptr[v + 1]):
        t = indices[i]
        if slots[t] >= 0:
            if n == 4 or (n > 0 and lanes[t] != lane):
                _join_dense(n, (low, high), chosen, factors, dense, r, held, lane, joined)
                n = 0
            chosen[n], factors[n], lane = slots[t], data[i], lanes[t]
            n += 1
            continue
        start, stop = ends[t - 1] if t > 0 else 0, ends[t]
        if start < stop and listed[start] < low:
            start = first_from(low, start, stop, listed)
        if start < stop and listed[stop - 1] >= high:
            stop = first_from(high, start, stop, listed)
        if start == stop:
            continue
        if lanes[t] >= 0:
            _join_listed(data[i], start, stop, listed, values, r, held, lanes[t], joined)
        else:
            kind = feature_kinds[t]
            _add_listed(
                data[i], start, stop, listed, values, r, held,
                graphs, kind, kind_weights, groups[kind], totals,
            )  # fmt: skip
    if n > 0:
        _join_dense(n, (low, high), chosen, factors, dense, r, held, lane, joined)


@contracted(allocates=True)
def sum_tile(span, rows, columns, inverted, weights, kernel, held, joined, out):
    """Add the pair sums of the rows ``span[0] .. span[1] - 1`` with all columns of one tile to ``out``.

    out[group, weight, graph of row, graph of column] += k(row, column) * sum_t F[row, t] F[column, t] weight_t, over the
    features t of each group. ``held`` (AT_ONCE rows) and ``joined`` (as many as lanes, zero) are scratch. Bundles are taken
    apart first: each look into one costs a count of references.
    """
    row_graphs, row_blocks, row_vectors, row_places, indptr, indices, data = rows
    graphs, block_starts, vectors, places = columns
    slots, lanes, lane_kinds, dense, ends, listed, values = inverted
    feature_kinds, groups, kind_weights = weights
    given, gamma, reach = kernel
    window, is_wide = np.empty(2, np.int64), len(vectors) > 3 and len(given) == 0
    by_graph, totals = np.empty(out.shape[3]), np.zeros((out.shape[0], out.shape[1], out.shape[3]))
    chosen, factors = np.empty(4, np.int64), np.empty(4)
    v = span[0]
    while v < span[1]:
        graph, block = row_graphs[v], row_blocks[v]
        first, last = block_starts[block], block_starts[block + 1]
        while v < span[1] and row_graphs[v] == graph and row_blocks[v] == block:
            window[0], window[1] = window_of(row_places[v], reach, places, first, last)
            n = 1
            if is_wide:
                n = _rows_at_once(v, span[1], window, row_graphs, row_blocks, row_places, reach, places, (first, last))
            # Whole vectors of numbers: columns beyond the window are of the same block, or have no feature.
            low, high = max(window[0] // LANES * LANES, first), min(-(-window[1] // LANES) * LANES, last)
            if len(given):
                copy(given[v - span[0], low:high], held[0, low:high])
            elif n == AT_ONCE:
                gaussian_rows(gamma, v, row_vectors, vectors, low, high, held)
            else:
                gaussian_row(gamma, v, row_vectors, vectors, low, high, 0, held)
            for r in range(n):
                _add_features(
                    v + r, r, (low, high), (indptr, indices, data), (slots, lanes, dense, ends, listed, values),
                    held, graphs, (feature_kinds, groups, kind_weights), (chosen, factors), joined, totals,
                )  # fmt: skip
            v += n
        if last > first:
            kinds = lane_kinds[block, : lane_kinds[block, -1]]
            _spread((first, last), kinds, joined, kind_weights, groups, graphs, by_graph, totals)
        if v == span[1] or row_graphs[v] != graph:
            _write(totals, graph, out)
