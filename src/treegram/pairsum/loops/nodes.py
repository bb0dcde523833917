"""The hot loops of ``pairsum.nodes``: rows of nodes against one tile of columns, features shared times node kernel."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from treegram._numba import contracted, jit
from treegram.pairsum.loops.tiles import add_scaled, clear, copy, gaussian_row, window_of

# Nodes in rows, with their graphs and sparse features.
Rows = namedtuple("Rows", "graphs blocks vectors places indptr indices data")
# The columns that have each feature. ``slots[t]`` is the dense row of a common feature among those of its block, or -1;
# ``kinds`` has the kinds of each block's dense rows, with their number in the last column. A rare feature has the columns
# listed[ends[t - 1] .. ends[t] - 1].
Inverted = namedtuple("Inverted", "slots kinds dense ends listed values")
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
def _add_listed(a, listed, values, window, kernel, graphs, weights, totals):
    """totals[graph of j, :] += a * values * kernel[j] * weights over the listed columns j within the window."""
    low, high = window
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
def _spread_dense(block, kinds, dense, sums, weights, groups, graphs, scratch, totals):
    """Add what the common features of a block gathered in ``sums`` to the totals of the columns' graphs.

    Features of one kind (same group, same weights) are joined first, then columns of one graph: weights come last, when
    few numbers are left. ``scratch`` has one number per column, and one per graph.
    """
    first, last = block
    joined, by_graph = scratch[0][first:last], scratch[1]
    graphs = graphs[first:last]
    c = 0
    while c < len(kinds):
        kind = kinds[c]
        clear(joined)
        while c < len(kinds) and kinds[c] == kind:
            value, total = dense[c, first:last], sums[c, first:last]
            for j in range(len(joined)):
                joined[j] += value[j] * total[j]
            c += 1
        clear(by_graph)
        for j in range(len(joined)):
            by_graph[graphs[j]] += joined[j]
        factors, out = weights[kind], totals[groups[kind]]
        for g in range(len(by_graph)):
            for k in range(len(factors)):
                out[g, k] += by_graph[g] * factors[k]


@contracted
def sum_tile(span, rows, columns, inverted, weights, kernel, out):
    """Add the pair sums of the rows ``span[0] .. span[1] - 1`` with all columns of one tile to ``out``.

    out[graph of row, group, graph of column, weight] += k(row, column) * sum_t F[row, t] F[column, t] weight_t, over the
    features t of each group. Bundles are taken apart first: each look into one costs a count of references.
    """
    row_graphs, row_blocks, row_vectors, row_places, indptr, indices, data = rows
    graphs, block_starts, vectors, places = columns
    slots, block_kinds, dense, ends, listed, values = inverted
    feature_kinds, groups, kind_weights = weights
    given, gamma, reach = kernel
    held, scratch = np.zeros(len(graphs)), (np.empty(len(graphs)), np.empty(out.shape[2]))
    sums = np.empty(dense.shape)
    v = span[0]
    while v < span[1]:
        graph, block = row_graphs[v], row_blocks[v]
        first, last = block_starts[block], block_starts[block + 1]
        kinds = block_kinds[block, : block_kinds[block, -1]]
        for c in range(len(kinds)):
            clear(sums[c, first:last])
        totals = out[graph]
        while v < span[1] and row_graphs[v] == graph and row_blocks[v] == block:
            low, high = first, last
            if len(given):
                copy(given[v - span[0], low:high], held[low:high])
            else:
                low, high = window_of(row_places[v], reach, places, first, last)
                gaussian_row(gamma, row_vectors[v], vectors, low, high, held)
            for i in range(indptr[v], indptr[v + 1]):
                t = indices[i]
                if slots[t] >= 0:
                    add_scaled(data[i], held[low:high], sums[slots[t], low:high])
                    continue
                start, kind = ends[t - 1] if t > 0 else 0, feature_kinds[t]
                if ends[t] > start:
                    _add_listed(
                        data[i], listed[start : ends[t]], values[start : ends[t]], (low, high), held,
                        graphs, kind_weights[kind], totals[groups[kind]],
                    )  # fmt: skip
            v += 1
        if last > first:
            _spread_dense((first, last), kinds, dense, sums, kind_weights, groups, graphs, scratch, totals)
