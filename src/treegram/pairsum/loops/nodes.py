"""The hot loops of ``pairsum.nodes``: rows of nodes against one tile of columns, features shared times node kernel."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from treegram._numba import contracted, jit
from treegram.pairsum.loops.tiles import add_scaled, clear, copy, first_from, gaussian_row, window_of

AT_ONCE = 4  # rows of one graph and block that are summed together
SLACK = 1.25  # by how much the window of such rows may exceed their own, on average

# Nodes in rows, with their graphs and sparse features.
Rows = namedtuple("Rows", "graphs blocks vectors places indptr indices data")
# The columns that have each feature. ``slots[t]`` is the dense row of a common feature among those of its block, or -1. A
# rare feature has the columns listed[ends[t - 1] .. ends[t] - 1]. What features of one kind and block give is gathered in one
# lane, a number per column: ``lanes[t]`` is the feature's, or -1 if its kind has none. ``slot_lanes`` has the lane of each
# dense row of a block, ``lane_kinds`` the kind of each lane, both with their number in the last column.
Inverted = namedtuple("Inverted", "slots lanes slot_lanes lane_kinds dense ends listed values")
# The kind of each feature, the group of each kind, and its weights (n_kinds, n_weights).
Weights = namedtuple("Weights", "kinds groups weights")


@jit
def invert(indptr, indices, data, inverted):
    """Fill ``inverted``, of which slots and kinds are known, ``dense`` and ``ends`` are zero, and lists have their length."""
    slots, dense, ends = inverted.slots, inverted.dense, inverted.ends
    for i in range(len(indices)):
        if slots[indices[i]] < 0:
            ends[indices[i] + 1] += 1
    for t in range(len(slots)):
        ends[t + 1] += ends[t]
    for j in range(len(indptr) - 1):
        for i in range(indptr[j], indptr[j + 1]):
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
def _join_row(kernel, a, b, x, y, lane):
    """lane += kernel (a x + b y), over the columns of a window."""
    for j in range(len(lane)):
        lane[j] += kernel[j] * (a * x[j] + b * y[j])


@contracted
def _join_rows(k0, k1, k2, k3, a, b, x, y, lane):
    """lane += sum_r k_r (a_r x + b_r y): four rows at once load and store the common features once."""
    a0, a1, a2, a3, b0, b1, b2, b3 = a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]
    for j in range(len(lane)):
        by_x = (a0 * k0[j] + a1 * k1[j]) + (a2 * k2[j] + a3 * k3[j])
        by_y = (b0 * k0[j] + b1 * k1[j]) + (b2 * k2[j] + b3 * k3[j])
        lane[j] += x[j] * by_x + y[j] * by_y


@contracted
def _join_dense(n_rows, window, slot_lanes, dense, factors, held, joined):
    """Add what some rows of one graph share with the columns by common features to the lanes of these features.

    ``factors`` has the rows' values (features, rows), zero in its last feature, and is left zero.
    """
    low, high = window
    nothing, n_slots = len(factors) - 1, len(slot_lanes)
    c = _next_used(0, n_slots, factors)
    while c < n_slots:  # in pairs of one lane
        lane = joined[slot_lanes[c], low:high]
        other = _next_used(c + 1, n_slots, factors)
        is_pair = other < n_slots and slot_lanes[other] == slot_lanes[c]
        a, b = factors[c], factors[other if is_pair else nothing]
        x, y = dense[c, low:high], dense[other if is_pair else c, low:high]
        if n_rows == 1:
            _join_row(held[0, low:high], a[0], b[0], x, y, lane)
        else:
            _join_rows(held[0, low:high], held[1, low:high], held[2, low:high], held[3, low:high], a, b, x, y, lane)
        clear(a)
        clear(b)
        c = _next_used(other, n_slots, factors)


@jit
def _next_used(c, last, factors):
    """The first feature from c on that some row has, or ``last``."""
    while c < last and factors[c, 0] == 0.0 and factors[c, 1] == 0.0 and factors[c, 2] == 0.0 and factors[c, 3] == 0.0:
        c += 1
    return c


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
    """How many rows from v on, all of one graph and block, to take together: those with nearly the same window.

    ``window`` is that of v, and becomes theirs together.
    """
    n, total = 1, window[1] - window[0]
    while n < AT_ONCE and v + n < stop and graphs[v + n] == graphs[v] and blocks[v + n] == blocks[v]:
        low, high = window_of(row_places[v + n], reach, places, columns[0], columns[1])
        total += high - low
        low, high = min(low, window[0]), max(high, window[1])
        if (n + 1) * (high - low) > SLACK * total:
            break
        window[0], window[1] = low, high
        n += 1
    return n


@njit(inline="always")  # bundles of arrays are costly to hand over, row by row
def _add_features(v, r, window, features, inverted, held, graphs, weights, factors, joined, totals):
    """The features of one row, the r-th that is held: common ones go to ``factors``, rare ones to their lanes or totals."""
    indptr, indices, data = features
    slots, lanes, ends, listed, values = inverted
    feature_kinds, groups, kind_weights = weights
    low, high = window
    for i in range(indptr[v], indptr[v + 1]):
        t = indices[i]
        if slots[t] >= 0:
            factors[slots[t], r] = data[i]
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


@contracted(allocates=True)
def sum_tile(span, rows, columns, inverted, weights, kernel, out):
    """Add the pair sums of the rows ``span[0] .. span[1] - 1`` with all columns of one tile to ``out``.

    out[group, weight, graph of row, graph of column] += k(row, column) * sum_t F[row, t] F[column, t] weight_t, over the
    features t of each group. Bundles are taken apart first: each look into one costs a count of references.
    """
    row_graphs, row_blocks, row_vectors, row_places, indptr, indices, data = rows
    graphs, block_starts, vectors, places = columns
    slots, lanes, slot_lanes, lane_kinds, dense, ends, listed, values = inverted
    feature_kinds, groups, kind_weights = weights
    given, gamma, reach = kernel
    n_columns, window = len(graphs), np.empty(2, np.int64)
    held, joined = np.zeros((AT_ONCE, n_columns)), np.zeros((lane_kinds.shape[1] - 1, n_columns))
    by_graph = np.empty(out.shape[3])
    factors, totals = np.zeros((len(dense) + 1, AT_ONCE)), np.zeros((out.shape[0], out.shape[1], out.shape[3]))
    v = span[0]
    while v < span[1]:
        graph, block = row_graphs[v], row_blocks[v]
        first, last = block_starts[block], block_starts[block + 1]
        while v < span[1] and row_graphs[v] == graph and row_blocks[v] == block:
            window[0], window[1] = window_of(row_places[v], reach, places, first, last)
            n = _rows_at_once(v, span[1], window, row_graphs, row_blocks, row_places, reach, places, (first, last))
            low, high = window[0], window[1]
            for r in range(n):
                if len(given):
                    copy(given[v + r - span[0], low:high], held[r, low:high])
                else:
                    gaussian_row(gamma, row_vectors[v + r], vectors, low, high, held[r])
                _add_features(
                    v + r, r, (low, high), (indptr, indices, data), (slots, lanes, ends, listed, values),
                    held, graphs, (feature_kinds, groups, kind_weights), factors, joined, totals,
                )  # fmt: skip
            _join_dense(n, (low, high), slot_lanes[block, : slot_lanes[block, -1]], dense, factors, held, joined)
            v += n
        if last > first:
            kinds = lane_kinds[block, : lane_kinds[block, -1]]
            _spread((first, last), kinds, joined, kind_weights, groups, graphs, by_graph, totals)
        if v == span[1] or row_graphs[v] != graph:
            _write(totals, graph, out)
