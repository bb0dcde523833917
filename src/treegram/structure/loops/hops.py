"""The hot loops of ``structure.hops``: shortest paths counted from all nodes of a graph, on flat arrays.

Columns run through the numbers of edges b = 0, 1, 2, ... and, for each b, through the positions a = 0, 1, ... on a path of b
edges: all of them, or (``halved``) those up to its middle.
"""

from __future__ import annotations

import numpy as np

from treegram._numba import jit
from treegram.structure.loops.trees import visit


@jit
def first_column(b, halved):
    """The column of the first position on paths of b edges: the number of columns for all shorter paths."""
    if halved:
        return ((b + 1) // 2) * (b // 2 + 1)
    return b * (b + 1) // 2


@jit
def longest_distance(base, n, indptr, indices, order, distance):
    """The largest finite distance between two nodes of one graph; ``distance`` must be, and is left, -1 everywhere."""
    longest = 0
    for root in range(n):
        n_visited = visit(root, n, base, indptr, indices, order, distance)
        longest = max(longest, distance[order[n_visited - 1]])
        for i in range(n_visited):
            distance[order[i]] = -1
    return longest


@jit
def count_paths(n_visited, base, indptr, indices, order, distance, inward, onward):
    """Shortest paths of one visit: inward[v] from the root to v, onward[v, k] of k edges from v away from the root."""
    top = distance[order[n_visited - 1]]
    for i in range(n_visited):
        v = order[i]
        inward[v] = 1.0 if i == 0 else 0.0
        onward[v, 0] = 1.0
        for k in range(1, top - distance[v] + 1):
            onward[v, k] = 0.0
    for i in range(n_visited):
        v = order[i]
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] == distance[v] + 1:
                inward[w] += inward[v]
    for i in range(n_visited - 1, -1, -1):
        v = order[i]
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] == distance[v] + 1:
                for k in range(top - distance[v]):
                    onward[v, k + 1] += onward[w, k]


@jit
def add_positions(n_visited, order, distance, inward, onward, halved, histogram):
    """histogram[v, (a, b)] += the number of paths of b edges from the root on which v is at a, its distance."""
    top = distance[order[n_visited - 1]]
    for i in range(n_visited):
        v = order[i]
        a = distance[v]
        for b in range(2 * a if halved else a, top + 1):
            histogram[v, first_column(b, halved) + a] += inward[v] * onward[v, b - a]


@jit
def make_room(room, used, columns, counts):
    """The records in arrays of at least ``room`` entries."""
    if room <= len(counts):
        return columns, counts
    new_columns, new_counts = np.empty(2 * room, np.int32), np.empty(2 * room)
    for i in range(used):  # not by slices: those compile for seconds
        new_columns[i], new_counts[i] = columns[i], counts[i]
    return new_columns, new_counts


@jit
def count_positions(offsets, indptr, indices, halved, first_graph, last_graph):
    """How often each node of the graphs first_graph .. last_graph - 1 is at each position of a shortest path.

    Returns the number of records of each node, and the records (column, count), by column within each node.
    """
    numbers = np.zeros(offsets[last_graph] - offsets[first_graph], np.int64)
    columns, counts, used = np.empty(1024, np.int32), np.empty(1024), 0
    for g in range(first_graph, last_graph):
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        order, distance, inward = np.empty(n, np.int64), np.full(n, -1, np.int64), np.empty(n)
        longest = longest_distance(base, n, indptr, indices, order, distance)
        onward, histogram = np.empty((n, longest + 1)), np.zeros((n, first_column(longest + 1, halved)))
        for root in range(n):
            n_visited = visit(root, n, base, indptr, indices, order, distance)
            count_paths(n_visited, base, indptr, indices, order, distance, inward, onward)
            add_positions(n_visited, order, distance, inward, onward, halved, histogram)
            for i in range(n_visited):
                distance[order[i]] = -1
        columns, counts = make_room(used + histogram.size, used, columns, counts)
        for v in range(n):
            before = used
            for column in range(histogram.shape[1]):
                if histogram[v, column] != 0.0:
                    columns[used], counts[used] = column, histogram[v, column]
                    used += 1
            numbers[base - offsets[first_graph] + v] = used - before
    return numbers, columns[:used].copy(), counts[:used].copy()
