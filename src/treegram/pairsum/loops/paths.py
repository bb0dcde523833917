"""The hot loops of the sums over pairs of shortest paths: graphs in rows against one tile of columns that stays in cache.

With A the node kernel of the nodes u of one graph with the nodes u' of another, and S_d(u, v) the number of pairs (u, v) that
are d apart, the sum is that of all entries of A o (S_d A S'_d), over all d. It is taken row by row: for one u, ``reached[d]``
is row u of S_d A, and then each u' collects ``reached`` at its own partners, times A(u, u'). Columns are laid out as in
``loops.nodes``: by block, and by place within a block.
"""

from __future__ import annotations

import numpy as np

from treegram._numba import contracted, jit
from treegram.pairsum.loops.nodes import _add_scaled, _copy, _place_of, gaussian_row

# Indices without a sign are faster: they are never counted from the end.
_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@jit
def list_partners(columns, places, first, starts, partners, lengths, counts, halved):
    """For each column of a tile the spots of ``reached`` where its partners are: length * n_columns + column.

    The tile's column j is the group columns[j], and group first + i is its column places[i]. With ``halved``, a pair that
    counts in both directions is listed in one. Returns the spots, their counts, for each column whether all its counts are 1,
    and ``stops``: the spots of column j begin at stops[j, 0], and those of length at most d end before stops[j, d].
    """
    n, longest, room = len(columns), 0, 0
    for j in range(n):
        room += starts[columns[j] + 1] - starts[columns[j]]
        for i in range(starts[columns[j]], starts[columns[j] + 1]):
            longest = max(longest, lengths[i])
    spots, weights, stops = np.empty(room, np.uint32), np.empty(room), np.empty((n, longest + 1), np.uint64)
    plain, used = np.ones(n, np.bool_), 0
    for j in range(n):
        group, d = columns[j], 0
        for i in range(starts[group], starts[group + 1]):
            while d < lengths[i]:
                stops[j, d] = used
                d += 1
            if not halved or partners[i] >= group:
                spots[used] = lengths[i] * n + places[partners[i] - first]
                weights[used] = 0.5 * counts[i] if halved and partners[i] == group else counts[i]
                plain[j] = plain[j] and weights[used] == 1.0
                used += 1
        while d <= longest:
            stops[j, d] = used
            d += 1
    return spots, weights, plain, stops


@contracted
def fill_kernel(first, last, rows, layout, given, gamma, reach, kernel, windows):
    """The node kernel of the rows first .. last - 1 with the columns of a tile, and the window of columns where it counts."""
    blocks, vectors, places = rows
    block_starts, column_vectors, column_places = layout
    for v in range(first, last):
        low, high = block_starts[blocks[v]], block_starts[blocks[v] + 1]
        if len(given):
            _copy(given[v - first, low:high], kernel[v - first, low:high])
        else:
            near = column_places[low:high]
            high = low + _place_of(places[v] + reach, near)
            low += _place_of(places[v] - reach, near)
            gaussian_row(gamma, vectors[v], column_vectors, low, high, kernel[v - first])
        windows[v - first, 0], windows[v - first, 1] = low, high


@contracted
def reach_out(partners, lengths, counts, first, top, kernel, windows, reached):
    """reached[d] = the sum of counts times kernel rows over all partners that are d away, for 1 <= d <= top."""
    for d in range(1, top + 1):
        reached[d] = 0.0
    for i in range(len(partners)):
        if lengths[i] > top:
            break
        b = partners[i] - first
        low, high = windows[b, 0], windows[b, 1]
        _add_scaled(counts[i], kernel[b, low:high], reached[lengths[i], low:high])


@contracted
def blur(reached, top, length_weights, new_top, blurred):
    """blurred[d] = the sum of length_weights[|d - e|] reached[e] over 1 <= e <= top, for 1 <= d <= new_top."""
    n_weights = len(length_weights)
    for d in range(1, new_top + 1):
        blurred[d] = 0.0
        for e in range(max(1, d - n_weights + 1), min(top, d + n_weights - 1) + 1):
            _add_scaled(length_weights[abs(d - e)], reached[e], blurred[d])


@contracted
def collect(spots, start, stop, reached):
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
def collect_weighted(spots, weights, start, stop, reached):
    """As ``collect``, each times its weight."""
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
def meet(kernel, low, high, top, listed, reached, graphs, totals):
    """totals[graph of j] += kernel[j] times what column j collects from lengths up to ``top``, for low <= j < high."""
    spots, weights, plain, stops = listed
    for j in range(low, high):
        if plain[j]:
            collected = collect(spots, stops[j, 0], stops[j, top], reached)
        else:
            collected = collect_weighted(spots, weights, stops[j, 0], stops[j, top], reached)
        totals[graphs[j]] += kernel[j] * collected


@contracted
def sum_tile(offsets, rows, layout, listed, given, gamma, reach, length_weights, out):
    """out[g, graph of column] += the sums of some graphs in rows with those of one tile.

    Graph g has the rows offsets[g] .. offsets[g + 1] - 1. ``given`` holds the node kernel of all these rows if it is not the
    Gaussian one, which is computed here, and taken as 0 where places are farther apart than ``reach``. The kernel of two
    lengths that differ by i is length_weights[i].
    """
    blocks, vectors, places, starts, partners, lengths, counts = rows
    graphs, block_starts, column_vectors, column_places = layout
    n_columns, longest, n_weights = len(graphs), listed[3].shape[1] - 1, len(length_weights)
    largest = 0
    for g in range(len(offsets) - 1):
        largest = max(largest, offsets[g + 1] - offsets[g])
    kernel, windows = np.empty((largest, n_columns)), np.empty((largest, 2), np.int64)
    reached, blurred = np.empty((longest + n_weights, n_columns)), np.empty((longest + 1, n_columns))
    for g in range(len(offsets) - 1):
        first, last = offsets[g], offsets[g + 1]
        fill_kernel(
            first, last, (blocks, vectors, places), (block_starts, column_vectors, column_places),
            given[first - offsets[0] : last - offsets[0]], gamma, reach, kernel, windows,
        )  # fmt: skip
        for u in range(first, last):
            start, stop = starts[u], starts[u + 1]
            if start == stop:
                continue
            top = min(lengths[stop - 1], longest + n_weights - 1)
            reach_out(
                partners[start:stop], lengths[start:stop], counts[start:stop], first, top, kernel, windows, reached
            )
            spread, low, high = reached, windows[u - first, 0], windows[u - first, 1]
            if n_weights > 1 or length_weights[0] != 1.0:
                new_top = min(top + n_weights - 1, longest)
                blur(reached, top, length_weights, new_top, blurred)
                spread, top = blurred, new_top
            meet(kernel[u - first], low, high, top, listed, spread.reshape(-1), graphs, out[g])
