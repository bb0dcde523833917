"""The hot loops of ``pairsum.nodes``: rows of nodes against one tile of columns, features shared times node kernel."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from treegram._core.jit import contracted, inlined, jit
from treegram.pairsum.loops.tiles import clear, copy, first_from, gaussian_row, gaussian_rows, window_of

AT_ONCE = 4  # rows of one graph and block that are summed together
LANES = (
    8  # columns in a vector of the widest processors, and numbers in a line of cache: blocks start at multiples of it
)
SLACK = 1.25  # by how much the window of such rows may exceed their own, on average

# Sparse features: those of the node v are the places indptr[v] .. indptr[v + 1] - 1.
Entries = namedtuple("Entries", "indptr indices data")
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
# and bins have any sum; two small ones; and of the rows' common features, which wait until all these rows are seen: the place of each
# slot among them or -1, the features, and the factor that each row has for each. Lanes, bins, totals and flags are zero before and after.
Scratch = namedtuple("Scratch", "held joined bins totals in_use window chosen slot_places waiting factors")


@jit
def survey(entries, support, owners, values):
    """Of each feature the number of nodes that have it, which is zero before, and the last such node with its value."""
    indptr, indices, data = entries
    for v in range(len(indptr) - 1):
        for i in range(indptr[v], indptr[v + 1]):
            support[indices[i]] += 1
            owners[indices[i]], values[indices[i]] = v, data[i]


@jit
def arrange(entries, order, numbers, n, arranged):
    """Rows in another order, and features under other numbers; those with the number n are left out. Returns how many entries are left.

    Without a branch: which feature is left out cannot be foreseen.
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
def _join_row(n, window, chosen, i, factors, dense, r, held, lane, joined):
    """joined[lane] += held[r] * (sum of factors[i + m, r] * dense[chosen[m]] over m < n), n at most 4, over the columns of a window."""
    low, high, lane, r = np.uint64(window[0]), np.uint64(window[1]), np.uint64(lane), np.uint64(r)
    x, a = np.uint64(chosen[0]), factors[i, r]
    if n == 1:
        for j in range(low, high):
            joined[lane, j] += held[r, j] * (a * dense[x, j])
        return
    # Those beyond the n-th are the first one, with factors of zero.
    y, b = np.uint64(chosen[1]), factors[i + 1, r]
    z, c = (np.uint64(chosen[2]), factors[i + 2, r]) if n > 2 else (x, 0.0)
    w, e = (np.uint64(chosen[3]), factors[i + 3, r]) if n > 3 else (x, 0.0)
    for j in range(low, high):
        joined[lane, j] += held[r, j] * ((a * dense[x, j] + b * dense[y, j]) + (c * dense[z, j] + e * dense[w, j]))


@contracted
def _join_rows(n, window, chosen, i, factors, dense, held, lane, joined):
    """The same for all rows that are held, whose factors are factors[i]: what is loaded for one feature serves four rows."""
    low, high, lane = np.uint64(window[0]), np.uint64(window[1]), np.uint64(lane)
    x, a, a1, a2, a3 = np.uint64(chosen[0]), factors[i, 0], factors[i, 1], factors[i, 2], factors[i, 3]
    if n == 1:
        for j in range(low, high):
            h, h1, h2, h3 = held[0, j], held[1, j], held[2, j], held[3, j]
            joined[lane, j] += dense[x, j] * ((a * h + a1 * h1) + (a2 * h2 + a3 * h3))
        return
    y, b, b1, b2, b3 = np.uint64(chosen[1]), factors[i + 1, 0], factors[i + 1, 1], factors[i + 1, 2], factors[i + 1, 3]
    if n == 2:
        for j in range(low, high):
            h, h1, h2, h3 = held[0, j], held[1, j], held[2, j], held[3, j]
            first, second = (a * h + a1 * h1) + (a2 * h2 + a3 * h3), (b * h + b1 * h1) + (b2 * h2 + b3 * h3)
            joined[lane, j] += dense[x, j] * first + dense[y, j] * second
        return
    z, c, c1, c2, c3 = np.uint64(chosen[2]), factors[i + 2, 0], factors[i + 2, 1], factors[i + 2, 2], factors[i + 2, 3]
    w, e, e1, e2, e3 = x, 0.0, 0.0, 0.0, 0.0
    if n == 4:
        w, e, e1 = np.uint64(chosen[3]), factors[i + 3, 0], factors[i + 3, 1]
        e2, e3 = factors[i + 3, 2], factors[i + 3, 3]
    for j in range(low, high):
        h, h1, h2, h3 = held[0, j], held[1, j], held[2, j], held[3, j]
        first, second = (a * h + a1 * h1) + (a2 * h2 + a3 * h3), (b * h + b1 * h1) + (b2 * h2 + b3 * h3)
        third, fourth = (c * h + c1 * h1) + (c2 * h2 + c3 * h3), (e * h + e1 * h1) + (e2 * h2 + e3 * h3)
        joined[lane, j] += (dense[x, j] * first + dense[y, j] * second) + (dense[z, j] * third + dense[w, j] * fourth)


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


@inlined
def _let_wait(t, r, value, slots, n, places, features, factors):
    """Add the feature t of the row r to the n that wait; gives their number."""
    place = places[slots[t]]
    if place < 0:
        place, places[slots[t]], features[n] = n, n, t
        for row in range(AT_ONCE):
            factors[n, row] = 0.0
        n += 1
    factors[place, r] += value
    return n


@njit(inline="always")  # bundles of arrays are costly to hand over, row by row
def _add_features(v, n, window, features, inverted, held, graphs, weights, waiting, joined, bins, in_use, totals):
    """The features of the n rows from v on, which are held: rare ones go to their lanes, bins or totals, common ones wait.

    Gives the number of those that wait.
    """
    indptr, indices, data = features
    slots, lanes, ends, listed, values = inverted
    feature_kinds, groups, kind_weights, kind_bins = weights
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
    return n_waiting


@jit
def _only_row(i, factors):
    """The row that alone has the i-th of the features that wait, or -1."""
    row = -1
    for r in range(AT_ONCE):
        if factors[i, r] != 0.0:
            if row >= 0:
                return -1
            row = r
    return row


@jit
def _join_waiting(n_rows, n, window, slots, lanes, places, features, factors, chosen, dense, held, joined, in_use):
    """What the n common features of some rows give, up to four of one lane at once; none waits afterwards."""
    first = 0
    while first < n:
        lane, last = lanes[features[first]], first
        while last < n and last < first + 4 and lanes[features[last]] == lane:
            chosen[last - first], places[slots[features[last]]] = slots[features[last]], -1
            last += 1
        in_use[lane] = True
        row = 0 if n_rows == 1 else _only_row(first, factors) if last - first == 1 else -1
        if row >= 0:
            _join_row(last - first, window, chosen, first, factors, dense, row, held, lane, joined)
        else:
            _join_rows(last - first, window, chosen, first, factors, dense, held, lane, joined)
        first = last


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
    held, joined, bins, totals, in_use, window, chosen, slot_places, waiting, factors = scratch
    v = span[0]
    is_begun = v > 0 and row_graphs[v - 1] == row_graphs[v]
    while v < span[1]:
        graph, block = row_graphs[v], row_blocks[v]
        first, last = block_starts[block], block_starts[block + 1]
        while v < span[1] and row_graphs[v] == graph and row_blocks[v] == block:
            window[0], window[1] = window_of(row_places[v], reach, places, first, last)
            n = 1
            if len(given) == 0:
                n = _rows_at_once(v, span[1], window, row_graphs, row_blocks, row_places, reach, places, (first, last))
            # Whole vectors of numbers: columns beyond the window are of the same block, or have no feature.
            low, high = max(window[0] // LANES * LANES, first), min(-(-window[1] // LANES) * LANES, last)
            if len(given):
                copy(given[v - span[0], low:high], held[0, low:high])
            elif n == 1:
                gaussian_row(gamma, v, row_vectors, vectors, low, high, 0, held)
            elif len(vectors) > 3:
                gaussian_rows(gamma, v, row_vectors, vectors, low, high, held)
            else:
                for r in range(n):
                    start, stop = window_of(row_places[v + r], reach, places, first, last)
                    start, stop = max(start // LANES * LANES, first), min(-(-stop // LANES) * LANES, last)
                    clear(held[r, low:start])
                    gaussian_row(gamma, v + r, row_vectors, vectors, start, stop, r, held)
                    clear(held[r, stop:high])
            n_waiting = _add_features(
                v, n, (low, high), (indptr, indices, data), (slots, lanes, ends, listed, values), held, graphs,
                (feature_kinds, groups, kind_weights, kind_bins), (slot_places, waiting, factors), joined, bins, in_use, totals,
            )  # fmt: skip
            _join_waiting(
                n, n_waiting, (low, high), slots, lanes, slot_places, waiting, factors, chosen, dense, held, joined, in_use,
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
