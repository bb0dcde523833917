"""The hot loops of ``structure.hops``: shortest paths counted from all nodes of a graph, on flat arrays.

Columns run through the numbers of edges b = 0, 1, 2, ... and, for each b, through the positions a = 0, 1, ... on a path of b
edges: all of them, or (``halved``) those up to its middle.
"""

from __future__ import annotations

from collections import namedtuple

from treegram._core.jit import jit
from treegram.structure.loops.visits import DONE, GRAPH, PAUSED, ROOT, USED, leave, save, visit

# Of one visit: order and distances; paths from the root to each node; paths onward from it, by their number of edges, and
# positions on paths, both as one flat array: as many entries per node as the graph's diameter needs.
Scratch = namedtuple("Scratch", "order distance inward onward histogram")
Records = namedtuple("Records", "columns counts")


@jit
def first_column(b, halved):
    """The column of the first position on paths of b edges: the number of columns for all shorter paths."""
    if halved:
        return ((b + 1) // 2) * (b // 2 + 1)
    return b * (b + 1) // 2


@jit
def measure(graphs, last, order, distance, state, diameters, budget):
    """diameters[g] = the largest finite distance between two nodes of graph g. Stops as ``loops.visits`` says."""
    offsets, indptr, indices = graphs
    g, root, steps = state[GRAPH], state[ROOT], 0
    while g < last:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        while root < n:
            if steps > budget:
                save(state, 0, 0, g, root, 0)
                return PAUSED
            n_visited = visit(root, n, base, indptr, indices, order, distance)
            diameters[g] = max(diameters[g], distance[order[n_visited - 1]])
            leave(n_visited, order, distance)
            steps += n_visited
            root += 1
        g, root = g + 1, 0
    return DONE


@jit
def _count_paths(n_visited, base, indptr, indices, width, scratch):
    """Shortest paths of one visit: inward[v] from the root to v, onward[v, k] of k edges from v away from the root."""
    order, distance, inward, onward, _ = scratch
    top = distance[order[n_visited - 1]]
    for i in range(n_visited):
        v = order[i]
        inward[v] = 1.0 if i == 0 else 0.0
        onward[v * width] = 1.0
        for k in range(1, top - distance[v] + 1):
            onward[v * width + k] = 0.0
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
                    onward[v * width + k + 1] += onward[w * width + k]


@jit
def _add_positions(n_visited, halved, width, n_columns, scratch):
    """histogram[v, (a, b)] += the number of paths of b edges from the root on which v is at a, its distance."""
    order, distance, inward, onward, histogram = scratch
    top = distance[order[n_visited - 1]]
    for i in range(n_visited):
        v = order[i]
        a = distance[v]
        for b in range(2 * a if halved else a, top + 1):
            histogram[v * n_columns + first_column(b, halved) + a] += inward[v] * onward[v * width + b - a]


@jit
def _write_histogram(n, n_columns, histogram, numbers, used, records):
    """Append what is not zero to the records, and make the histogram zero; returns their number."""
    for v in range(n):
        before = used
        for column in range(n_columns):
            i = v * n_columns + column
            if histogram[i] != 0.0:
                records.columns[used], records.counts[used] = column, histogram[i]
                histogram[i] = 0.0
                used += 1
        numbers[v] = used - before
    return used


@jit
def _count_positive(n, histogram):
    number = 0
    for i in range(n):
        number += histogram[i] != 0.0
    return number


@jit
def count_positions(graphs, asked, diameters, scratch, state, numbers, records, budget):
    """How often each node of the graphs state[GRAPH] .. last - 1 is at each position of a shortest path.

    ``asked`` is (halved, last). ``numbers[v]`` is the number of records of node v; they come by column. Stops as
    ``loops.visits`` says.
    """
    (offsets, indptr, indices), (halved, last) = graphs, asked
    order, distance = scratch.order, scratch.distance
    used, g, root, steps = state[USED], state[GRAPH], state[ROOT], 0
    while g < last:
        base, n, width = offsets[g], offsets[g + 1] - offsets[g], diameters[g] + 1
        n_columns = first_column(width, halved)
        while root < n:
            if steps > budget:
                save(state, used, 0, g, root, 0)
                return PAUSED
            n_visited = visit(root, n, base, indptr, indices, order, distance)
            _count_paths(n_visited, base, indptr, indices, width, scratch)
            _add_positions(n_visited, halved, width, n_columns, scratch)
            leave(n_visited, order, distance)
            steps += n_visited * width
            root += 1
        needed = used + _count_positive(n * n_columns, scratch.histogram)
        if needed > len(records.counts):
            save(state, used, 0, g, root, 0)
            return needed
        used = _write_histogram(n, n_columns, scratch.histogram, numbers[base : base + n], used, records)
        steps += n * n_columns
        g, root = g + 1, 0
    save(state, used, 0, g, root, 0)
    return DONE
