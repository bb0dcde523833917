"""The hot loops of the sums over pairs of shortest paths: graphs in rows against one tile of columns that stays in cache.

With A the node kernel of the nodes u of one graph with the nodes u' of another, and S_d(u, v) the number of pairs (u, v) that
are d apart, the sum is that of all entries of A o (S_d A S'_d), over all d. It is taken row by row: for one u, ``reached[d]``
is row u of S_d A, and then each u' collects ``reached`` at its own partners, times A(u, u').
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from treegram._core.jit import contracted, jit
from treegram.pairsum.loops.tiles import add_scaled, clear, kernel_rows

# Partners of each row: those of row u are starts[u] .. starts[u + 1] - 1, by length.
Partners = namedtuple("Partners", "starts partners lengths counts")
# For each column of a tile the spots of ``reached`` where its partners are: length * n_columns + column, their weights, and
# whether all of these are 1. The spots of column j begin at stops[j, 0]; those of length at most d end before stops[j, d].
Listed = namedtuple("Listed", "spots weights is_plain stops")
# What is held for one row graph: the node kernel of its rows with all columns, their windows, and sums by length, which are there
# as one long row too.
Held = namedtuple("Held", "kernel windows reached blurred long_reached long_blurred")

# Indices without a sign are faster: they are never counted from the end.
_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@jit
def list_partners(columns, places, first, partners, same, halved, listed):
    """Fill the lists of a tile whose column j is the group columns[j], while group first + i is its column places[i].

    Partners b with one same[b] collect the same, and are listed once, with their number as weight. With ``halved``, a pair
    that counts in both directions is listed in one.
    """
    starts, n, longest, used = partners.starts, len(columns), listed.stops.shape[1] - 1, 0
    for j in range(n):
        group, d, is_plain, last_spot = columns[j], 0, True, -1
        for i in range(starts[group], starts[group + 1]):
            while d < partners.lengths[i]:
                listed.stops[j, d] = used
                d += 1
            partner, weight = partners.partners[i], partners.counts[i]
            if not halved or partner >= group:
                weight = 0.5 * weight if halved and partner == group else weight
                spot = partners.lengths[i] * n + places[same[partner] - first]
                if spot == last_spot:
                    listed.weights[used - 1] += weight
                    is_plain = False
                    continue
                last_spot = spot
                listed.spots[used] = spot
                listed.weights[used] = weight
                is_plain = is_plain and weight == 1.0
                used += 1
        listed.is_plain[j] = is_plain
        while d <= longest:
            listed.stops[j, d] = used
            d += 1


@contracted
def _reach_out(partners, lengths, counts, first, top, kernel, windows, reached):
    """reached[d] = the sum of counts times kernel rows over all partners that are d away, for 1 <= d <= top."""
    for d in range(1, top + 1):
        clear(reached[d])
    for i in range(len(partners)):
        if lengths[i] > top:
            break
        b = partners[i] - first
        low, high = windows[b, 0], windows[b, 1]
        add_scaled(counts[i], kernel[b, low:high], reached[lengths[i], low:high])


@contracted
def _blur(reached, top, length_weights, new_top, blurred):
    """blurred[d] = the sum of length_weights[|d - e|] reached[e] over 1 <= e <= top, for 1 <= d <= new_top."""
    n_weights = len(length_weights)
    for d in range(1, new_top + 1):
        clear(blurred[d])
        for e in range(max(1, d - n_weights + 1), min(top, d + n_weights - 1) + 1):
            add_scaled(length_weights[abs(d - e)], reached[e], blurred[d])


@contracted
def _collect(spots, start, stop, reached):
    """The sum of ``reached`` at the spots start .. stop - 1: four sums side by side, as an addition waits for the last."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    while start + _4 <= stop:
        s0 += reached[spots[start]]
        s1 += reached[spots[start + _1]]
        s2 += reached[spots[start + _2]]
        s3 += reached[spots[start + _3]]
        start += _4
    while start < stop:
        s0 += reached[spots[start]]
        start += _1
    return (s0 + s1) + (s2 + s3)


@contracted
def _collect_weighted(spots, weights, start, stop, reached):
    """As ``_collect``, each times its weight."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    while start + _4 <= stop:
        s0 += weights[start] * reached[spots[start]]
        s1 += weights[start + _1] * reached[spots[start + _1]]
        s2 += weights[start + _2] * reached[spots[start + _2]]
        s3 += weights[start + _3] * reached[spots[start + _3]]
        start += _4
    while start < stop:
        s0 += weights[start] * reached[spots[start]]
        start += _1
    return (s0 + s1) + (s2 + s3)


@contracted
def _meet(kernel, window, top, spots, weights, is_plain, stops, reached, graphs, totals):
    """totals[graph of j] += kernel[j] times what column j collects from lengths up to ``top``, for the j of a window."""
    for j in range(window[0], window[1]):
        if is_plain[j]:
            collected = _collect(spots, stops[j, 0], stops[j, top], reached)
        else:
            collected = _collect_weighted(spots, weights, stops[j, 0], stops[j, top], reached)
        totals[graphs[j]] += kernel[j] * collected


@contracted
def sum_tile(state, offsets, rows, columns, kernel, paths, held, out):
    """out[g - base, graph of column] += the sums of the graphs g = base .. last - 1 in rows with one tile, row by row.

    ``state`` is (graph, row, base, last, budget). After about ``budget`` steps it has where to go on; ``held`` then has the
    node kernel of that graph. ``paths`` is (partners of the rows, spots of the columns, weights of the lengths): the kernel of
    two lengths that differ by i is weights[i]. Bundles are taken apart first: each look into one costs a count of references.
    """
    g, u, base, last_graph, budget = state[0], state[1], state[2], state[3], state[4]
    starts, partners, lengths, counts = paths[0]
    spots, weights, is_plain, stops = paths[1]
    length_weights, graphs = paths[2], columns.graphs
    values, windows, reached, blurred, long_reached, long_blurred = held
    n_columns, longest, n_weights, steps = len(graphs), stops.shape[1] - 1, len(length_weights), 0
    is_blurred = n_weights > 1 or length_weights[0] != 1.0
    while g < last_graph:
        first, last = offsets[g], offsets[g + 1]
        if u == first:
            kernel_rows(first, last, offsets[base], rows, columns, kernel, values, windows)
        while u < last and steps <= budget:
            start, stop = starts[u], starts[u + 1]
            steps += (stop - start) * n_columns + len(spots)
            if start < stop:
                top = min(np.int64(lengths[stop - 1]), longest + n_weights - 1)
                _reach_out(
                    partners[start:stop], lengths[start:stop], counts[start:stop], first, top, values, windows, reached
                )
                spread = long_reached
                if is_blurred:
                    new_top = min(top + n_weights - 1, longest)
                    _blur(reached, top, length_weights, new_top, blurred)
                    spread, top = long_blurred, new_top
                window = (windows[u - first, 0], windows[u - first, 1])
                _meet(
                    values[u - first], window, top, spots, weights, is_plain, stops, spread, graphs,
                    out[g - base],
                )  # fmt: skip
            u += 1
        if u < last:
            break
        g += 1
    state[0], state[1] = g, u
