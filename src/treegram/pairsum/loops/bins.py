"""The hot loops of ``pairsum.bins``: counting pairs of bins per graph, and products of the counts."""

from __future__ import annotations

import numpy as np

from treegram._numba import jit
from treegram.structure.loops.trees import GOLDEN, mix


@jit
def intern_pairs(first, second, table, ids, seen):
    """Number equal pairs (first[v], second[v]) equally, in order of appearance; returns how many differ.

    Fills ``ids``, and ``seen`` with each number's first place. ``table`` is scratch, a power of two larger than all pairs.
    """
    mask = np.uint64(len(table) - 1)
    table[:] = -1
    n_distinct = 0
    for v in range(len(first)):
        slot = np.int64(mix(np.uint64(first[v]) * GOLDEN + np.uint64(second[v])) & mask)
        while table[slot] >= 0:
            place = seen[table[slot]]
            if first[place] == first[v] and second[place] == second[v]:
                break
            slot = (slot + 1) & np.int64(mask)
        if table[slot] < 0:
            table[slot] = n_distinct
            seen[n_distinct] = v
            n_distinct += 1
        ids[v] = table[slot]
    return n_distinct


@jit
def tally(ids, n_distinct, graph_ids, starts, graphs, counts):
    """For each number the graphs that have it, and how often: entries starts[i] .. starts[i + 1] - 1; returns their number.

    ``graph_ids`` must be sorted: then so are the graphs of each number.
    """
    ends = np.zeros(n_distinct + 1, np.int64)
    for v in range(len(ids)):
        ends[ids[v] + 1] += 1
    for i in range(n_distinct):
        ends[i + 1] += ends[i]
    places = np.empty(len(ids), np.int64)
    begins = ends[:-1].copy()
    for v in range(len(ids)):
        places[begins[ids[v]]] = graph_ids[v]
        begins[ids[v]] += 1
    used = 0
    for i in range(n_distinct):
        starts[i] = used
        for place in range(ends[i], ends[i + 1]):
            if used > starts[i] and graphs[used - 1] == places[place]:
                counts[used - 1] += 1.0
            else:
                graphs[used], counts[used] = places[place], 1.0
                used += 1
    starts[n_distinct] = used
    return used


@jit
def _scratch(n):
    n_slots = 16
    while n_slots < 2 * n:
        n_slots *= 2
    return np.empty(n_slots, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)


@jit
def add_products(label_bins, attribute_bins, graph_ids, n_left, K):
    """K[g, h] += the products of the counts of equal pairs (label bin, attribute bin), summed over the columns of bins.

    Graphs below ``n_left`` are rows, the others columns; ``n_left = 0``: all are both, and only K[g, h], g <= h, is added to.
    All numbers are whole, so that the order of the sums does not matter.
    """
    n = len(label_bins)
    table, ids, seen = _scratch(n)
    starts, graphs, counts = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n)
    for column in range(len(attribute_bins)):
        n_distinct = intern_pairs(label_bins, attribute_bins[column], table, ids, seen)
        tally(ids, n_distinct, graph_ids, starts, graphs, counts)
        for i in range(n_distinct):
            middle = starts[i]
            while n_left > 0 and middle < starts[i + 1] and graphs[middle] < n_left:
                middle += 1
            for a in range(starts[i], middle if n_left > 0 else starts[i + 1]):
                row, count = K[graphs[a]], counts[a]
                for b in range(middle if n_left > 0 else a, starts[i + 1]):
                    row[graphs[b] - n_left] += count * counts[b]


@jit
def add_squares(label_bins, attribute_bins, graph_ids, totals):
    """totals[g] += the squares of the counts of graph g, summed over the columns of bins."""
    n = len(label_bins)
    table, ids, seen = _scratch(n)
    starts, graphs, counts = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n)
    for column in range(len(attribute_bins)):
        n_distinct = intern_pairs(label_bins, attribute_bins[column], table, ids, seen)
        used = tally(ids, n_distinct, graph_ids, starts, graphs, counts)
        for i in range(used):
            totals[graphs[i]] += counts[i] * counts[i]


@jit
def count_column(label_bins, attribute_bins, graph_ids):
    """One column of bins as counts: numbers of the pairs in order of appearance, and for each its graphs and counts."""
    n = len(label_bins)
    table, ids, seen = _scratch(n)
    starts, graphs, counts = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n)
    n_distinct = intern_pairs(label_bins, attribute_bins, table, ids, seen)
    used = tally(ids, n_distinct, graph_ids, starts, graphs, counts)
    return ids, starts[: n_distinct + 1].copy(), graphs[:used].copy(), counts[:used].copy()
