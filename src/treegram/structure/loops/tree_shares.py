"""The hot loop of ``structure.trees.spread_trees``: what trees add, shared by their nodes."""

from __future__ import annotations

import numpy as np
from numba import njit

from treegram._core.jit import jit
from treegram.structure.loops.trees import encode, extra_count
from treegram.structure.loops.visits import DONE, GRAPH, PAUSED, ROOT, leave, save, visit


@jit
def _place(codes, first, last, code):
    """Where a code is among sorted ones."""
    while first < last:
        middle = (first + last) // 2
        if codes[middle] < code:
            first = middle + 1
        else:
            last = middle
    return first


@njit(inline="always")
def _add_scaled(a, values, out):
    """Out += a * values."""
    for o in range(len(out)):
        out[o] += a * values[o]


@jit
def _share_visit(n_visited, top, beyond, counting, base, arcs, seen, entries, parts, mass, shares):
    """Share what the trees of one visit add: each node of a tree gets the same part, and hands it down to its children.

    ``mass[v, j, o]`` is what each node of T_j(v) gets, for each time that T_j(v) is in a larger tree, or is counted itself.
    """
    (indptr, indices), (order, distance, codes, sizes), (starts, entry_codes) = arcs, seen, entries
    for i in range(n_visited):
        mass[order[i], : top - distance[order[i]] + 1] = 0.0
    for i in range(n_visited):
        v = order[i]
        last = top - distance[v]
        for j in range(last + 1):
            count = 1.0 + extra_count(counting, beyond, distance[v]) if j == last else 1.0
            entry = _place(entry_codes, starts[base + v], starts[base + v + 1], codes[v, j])
            _add_scaled(count / sizes[v, j], parts[entry], mass[v, j])
            _add_scaled(1.0, mass[v, j], shares[base + v])
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] == distance[v] + 1:
                for j in range(1, last + 1):
                    _add_scaled(1.0, mass[v, j], mass[w, j - 1])


@jit
def share_trees(graphs, hashes, asked, seen, entries, parts, mass, state, shares, budget):
    """Share what the trees at the nodes of the graphs state[GRAPH], ... add; stops as ``loops.visits`` says.

    ``entries`` are the sorted codes of the trees at each node, and ``parts`` what each adds, for each time it is counted.
    """
    (offsets, indptr, indices), (depth, counting) = graphs, asked
    g, root, steps = state[GRAPH], state[ROOT], 0
    while g < len(offsets) - 1:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        while root < n:
            if steps > budget:
                save(state, 0, 0, g, root, 0)
                return PAUSED
            n_visited = visit(root, np.int64(min(depth, n)), base, indptr, indices, seen.order, seen.distance)
            top = seen.distance[seen.order[n_visited - 1]]
            encode(n_visited, top, base, (indptr, indices), hashes, seen)
            _share_visit(
                n_visited, top, depth - top, counting, base, (indptr, indices), seen, entries, parts, mass, shares
            )
            leave(n_visited, seen.order, seen.distance)
            steps += n_visited * (top + 1)
            root += 1
        g, root = g + 1, 0
    return DONE
