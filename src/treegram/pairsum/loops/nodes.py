"""The hot loops of ``pairsum.nodes``: rows of nodes against one tile of columns, features shared times node kernel."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from treegram._numba import contracted, jit
from treegram.pairsum.loops.tiles import clear, copy, first_from, gaussian_row, gaussian_rows, window_of

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
# The columns of a tile by block and graph: those of the segment s are members[ends[s] .. ends[s + 1] - 1] and belong to the graph
# owners[s]; the segments of a block are block_starts[block] .. block_starts[block + 1] - 1.
ByGraph = namedtuple("ByGraph", "block_starts members ends owners")
# The kind of each feature, the group of each kind, and its weights (n_kinds, n_weights). What common kinds give is summed by graph
# in bins, and weighted at the end: ``kind_bins`` has the bin of each kind, or -1, ``bin_kinds`` the kind of each bin, and those of a
# group are bin_starts[group] .. bin_starts[group + 1] - 1.
Weights = namedtuple("Weights", "kinds groups weights kind_bins bin_kinds bin_starts")
# What the loops work in: AT_ONCE rows of node kernels; lanes; bins and one more, which stays zero; totals of the row graph; which lanes
# and bins have any sum; and three small ones. Lanes, bins, totals and flags are zero before and after.
Scratch = namedtuple("Scratch", "held joined bins totals in_use window chosen factors")


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
def _bin_listed(a, start, stop, listed, values, r, held, graphs, kind_bin, bins):
    """bins[kind_bin, graph of j] += a * values * held[r, j] over some of the listed columns j."""
    for i in range(start, stop):
        j = listed[i]
        bins[kind_bin, graphs[j]] += a * values[i] * held[r, j]


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
def _spread_four(lanes, segments, members, ends, owners, kinds, kind_bins, joined, bins):
    """What four lanes have for the columns of each graph, to the bins of their kinds."""
    i, i1, i2, i3 = np.uint64(lanes[0]), np.uint64(lanes[1]), np.uint64(lanes[2]), np.uint64(lanes[3])
    x, x1 = np.uint64(kind_bins[kinds[i]]), np.uint64(kind_bins[kinds[i1]])
    x2, x3 = np.uint64(kind_bins[kinds[i2]]), np.uint64(kind_bins[kinds[i3]])
    place = np.uint64(ends[segments[0]])
    for s in range(np.uint64(segments[0]), np.uint64(segments[1])):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        stop = np.uint64(ends[s + np.uint64(1)])
        while place < stop:
            j = np.uint64(members[place])
            a += joined[i, j]
            b += joined[i1, j]
            c += joined[i2, j]
            d += joined[i3, j]
            place += np.uint64(1)
        graph = np.uint64(owners[s])
        bins[x, graph] += a
        bins[x1, graph] += b
        bins[x2, graph] += c
        bins[x3, graph] += d


@contracted
def _spread(block, segments, by_graph, kinds, kind_bins, graphs, chosen, joined, bins, in_use):
    """Add what the rows of one graph and block gathered in the lanes of these kinds to the bins of the columns' graphs.

    Lanes are left zero. ``in_use`` says which lanes, and behind them which bins, have any sum. Four lanes at once are added up graph
    by graph; the columns of the last few, one by one.
    """
    (first, last), (members, ends, owners), n = block, by_graph, 0
    for i in range(len(kinds)):
        if in_use[i]:
            in_use[i], in_use[len(joined) + kind_bins[kinds[i]]] = False, True
            chosen[n] = i
            n += 1
            if n == 4:
                _spread_four(chosen, segments, members, ends, owners, kinds, kind_bins, joined, bins)
                for r in range(4):
                    clear(joined[chosen[r], first:last])
                n = 0
    for r in range(n):
        lane, kind_bin = np.uint64(chosen[r]), np.uint64(kind_bins[kinds[chosen[r]]])
        for j in range(np.uint64(first), np.uint64(last)):
            bins[kind_bin, np.uint64(graphs[j])] += joined[lane, j]
            joined[lane, j] = 0.0


@contracted
def _weigh_bins(chosen, bin_kinds, weights, group, bins, totals):
    """totals[group, k] += sum of weights[kind, k] * bins over four bins, which are left zero."""
    x, y, z, w = np.uint64(chosen[0]), np.uint64(chosen[1]), np.uint64(chosen[2]), np.uint64(chosen[3])
    n = np.uint64(totals.shape[2])
    for k in range(weights.shape[1]):
        a, b = weights[bin_kinds[x], k], weights[bin_kinds[y], k]
        c, d = weights[bin_kinds[z], k], weights[bin_kinds[w], k]
        for j in range(n):
            totals[group, k, j] += (a * bins[x, j] + b * bins[y, j]) + (c * bins[z, j] + d * bins[w, j])
    for i in range(4):
        clear(bins[chosen[i]])


@contracted
def _write(place, is_begun, bin_kinds, bin_starts, weights, chosen, in_use, bins, totals, out):
    """Write the totals of a row graph, with its bins, to their place in ``out``; totals and bins are left zero.

    Weights come last, when few numbers are left. The last bin is always zero, and fills up the last four of a group.
    """
    graph, base, n_lanes = np.uint64(place[0]), np.uint64(place[1]), len(in_use) - len(bins)
    for group in range(np.uint64(totals.shape[0])):
        n = 0
        for i in range(bin_starts[group], bin_starts[group + 1]):
            if in_use[n_lanes + i]:
                in_use[n_lanes + i] = False
                chosen[n] = i
                n += 1
            if n == 4 or (n > 0 and i == bin_starts[group + 1] - 1):
                for rest in range(n, 4):
                    chosen[rest] = len(bins) - 1
                _weigh_bins(chosen, bin_kinds, weights, group, bins, totals)
                n = 0
        for k in range(np.uint64(totals.shape[1])):
            if is_begun:
                for j in range(np.uint64(totals.shape[2])):
                    totals[group, k, j] += out[group, k, graph, base + j]
            for j in range(np.uint64(totals.shape[2])):
                out[group, k, graph, base + j] = totals[group, k, j]
                totals[group, k, j] = 0.0


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
def _add_features(v, r, window, features, inverted, held, graphs, weights, waiting, joined, bins, in_use, totals):
    """The features of one row, the r-th that is held: common ones up to four at once, rare ones to their lanes, bins or totals."""
    indptr, indices, data = features
    slots, lanes, dense, ends, listed, values = inverted
    feature_kinds, groups, kind_weights, kind_bins = weights
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
            in_use[lane] = True
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
            in_use[lanes[t]] = True
            _join_listed(data[i], start, stop, listed, values, r, held, lanes[t], joined)
            continue
        kind = feature_kinds[t]
        if kind_bins[kind] >= 0:
            in_use[len(joined) + kind_bins[kind]] = True
            _bin_listed(data[i], start, stop, listed, values, r, held, graphs, kind_bins[kind], bins)
        else:
            _add_listed(
                data[i], start, stop, listed, values, r, held,
                graphs, kind, kind_weights, groups[kind], totals,
            )  # fmt: skip
    if n > 0:
        _join_dense(n, (low, high), chosen, factors, dense, r, held, lane, joined)


@contracted
def sum_tile(span, rows, columns, is_plain, by_graph, inverted, weights, kernel, scratch, base, out):
    """Write the pair sums of the rows ``span[0] .. span[1] - 1`` with all columns of one tile to ``out``, from ``base`` on.

    out[group, weight, graph of row, base + graph of column] = sum of k(row, column) * sum_t F[row, t] F[column, t] weight_t, over
    the features t of each group and the rows and columns of the two graphs; added to what the rows of the same graph before the
    span gave. ``is_plain``: there is one block, and column j is the one of graph j. Bundles are taken apart first: each look into one
    costs a count of references.
    """
    row_graphs, row_blocks, row_vectors, row_places, indptr, indices, data = rows
    graphs, block_starts, vectors, places = columns
    slots, lanes, lane_kinds, dense, ends, listed, values = inverted
    feature_kinds, groups, kind_weights, kind_bins, bin_kinds, bin_starts = weights
    given, gamma, reach = kernel
    segment_starts, members, segment_ends, owners = by_graph
    held, joined, bins, totals, in_use, window, chosen, factors = scratch
    is_wide = len(vectors) > 3 and len(given) == 0
    v = span[0]
    is_begun = v > 0 and row_graphs[v - 1] == row_graphs[v]
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
                    v + r, r, (low, high), (indptr, indices, data), (slots, lanes, dense, ends, listed, values), held,
                    graphs, (feature_kinds, groups, kind_weights, kind_bins), (chosen, factors), joined, bins, in_use, totals,
                )  # fmt: skip
            v += n
        if last > first and not is_plain:
            kinds = lane_kinds[block, : lane_kinds[block, -1]]
            _spread(
                (first, last), (segment_starts[block], segment_starts[block + 1]), (members, segment_ends, owners),
                kinds, kind_bins, graphs, chosen, joined, bins, in_use,
            )  # fmt: skip
        if v == span[1] or row_graphs[v] != graph:
            _write((graph, base), is_begun, bin_kinds, bin_starts, kind_weights, chosen, in_use, bins, totals, out)
            is_begun = False
