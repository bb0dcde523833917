"""Breadth-first visits on flat arrays, and how all loops over visits stop and go on.

A loop that may run long has a budget of steps: it stops between two visits, keeps its place in ``state`` and returns PAUSED,
so that a signal is never left waiting. Its caller calls it again until it returns DONE. Any other number is the number of
records for which it needs room before it can go on. Loops return numbers, and never arrays or tuples: numba runs Python code
to make these, and crashes if a signal is pending.
"""

from __future__ import annotations

from treegram._core.jit import inlined, jit

DONE, PAUSED = -1, 0

# Where a loop stands: records written, the first of the current graph, the graph, the root in it, and a place of its own.
USED, FIRST, GRAPH, ROOT, PLACE = range(5)
N_STATE = 5


@jit
def visit(root, depth, base, indptr, indices, order, distance):
    """Breadth-first order of the nodes within ``depth`` of root; fills ``order`` and ``distance``, returns their number.

    Nodes are numbered within their graph, whose first node is ``base``; ``distance`` is -1 elsewhere.
    """
    order[0] = root
    distance[root] = 0
    n_visited = 1
    head = 0
    while head < n_visited and distance[order[head]] < depth:
        v = order[head]
        head += 1
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] < 0:
                distance[w] = distance[v] + 1
                order[n_visited] = w
                n_visited += 1
    return n_visited


@jit
def leave(n_visited, order, distance):
    """Make ``distance`` -1 again at all nodes of a visit."""
    for i in range(n_visited):
        distance[order[i]] = -1


@inlined
def save(state, used, first, graph, root, place):
    """Write down where a loop stands."""
    state[USED], state[FIRST], state[GRAPH], state[ROOT], state[PLACE] = used, first, graph, root, place
