"""The hot loops of ``pairsum.bins``: counting numbered bins per graph, and products of the counts."""

from __future__ import annotations

from treegram._core.jit import jit


@jit
def tally(bins, graph_ids, starts, graphs, counts):
    """For each bin the graphs that have it, and how often: entries starts[i] .. starts[i + 1] - 1; returns their number.

    ``starts`` must be 0. ``graph_ids`` must be sorted: then so are the graphs of each bin.
    """
    n_bins = len(starts) - 1
    for v in range(len(bins)):
        starts[bins[v] + 1] += 1
    for i in range(n_bins):
        starts[i + 1] += starts[i]
    for v in range(len(bins)):  # by bin: starts[i] becomes the end of bin i
        graphs[starts[bins[v]]] = graph_ids[v]
        starts[bins[v]] += 1
    used, begin = 0, 0
    for i in range(n_bins):
        end, starts[i] = starts[i], used
        for place in range(begin, end):
            if used > starts[i] and graphs[used - 1] == graphs[place]:
                counts[used - 1] += 1.0
            else:
                graphs[used], counts[used] = graphs[place], 1.0
                used += 1
        begin = end
    starts[n_bins] = used
    return used


@jit
def add_products(starts, graphs, counts, n_left, K):
    """K[g, h] += the products of the counts of equal bins.

    Graphs below ``n_left`` are rows, the others columns; ``n_left = 0``: all are both, and only K[g, h], g <= h, is added to.
    All numbers are whole, so that the order of the sums does not matter.
    """
    for i in range(len(starts) - 1):
        middle = starts[i]
        while n_left > 0 and middle < starts[i + 1] and graphs[middle] < n_left:
            middle += 1
        for a in range(starts[i], middle if n_left > 0 else starts[i + 1]):
            row, count = K[graphs[a]], counts[a]
            for b in range(middle if n_left > 0 else a, starts[i + 1]):
                row[graphs[b] - n_left] += count * counts[b]
