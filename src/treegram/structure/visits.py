"""Breadth-first visits, and how loops over visits stop, report progress and resume.

Compiled code cannot be interrupted, so no call does more than about STEPS_PER_CALL steps: a loop with a budget stops between two
visits, keeps its position in ``state`` and returns PAUSED; :func:`run_loop` calls it again until it returns DONE. Any other
value is the number of records that it needs room for before it can resume. Loops return numbers, never arrays or tuples:
numba runs Python code to create these, and crashes if a signal is pending.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from treegram._core.jit import inlined, jit
from treegram._core.machine import allocate
from treegram._core.parallel import progress
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.structure.hashing import empty_table, fill_table

STEPS_PER_CALL = 1 << 23  # a fraction of a second
DONE, PAUSED = -1, 0
# The state of a loop: records written, the first of the current graph, the graph, the root in it, and an index of the loop
# itself.
USED, FIRST, GRAPH, ROOT, ITEM = range(5)
N_STATE = 5


def graph_spans(graphs: Graphs, nodes_per_task: int) -> list[tuple[int, int]]:
    """Split the graphs into consecutive ranges of about ``nodes_per_task`` nodes, at least one; the same for any number of workers."""
    n_spans = graphs.n_nodes // nodes_per_task
    n_spans = max(1, min(len(graphs), n_spans + n_spans % 2))  # an even number: two workers then finish together
    cuts = np.searchsorted(graphs.offsets, graphs.n_nodes * np.arange(1, n_spans) / n_spans)
    return list(pairwise([0, *(int(cut) for cut in np.unique(cuts) if 0 < cut < len(graphs)), len(graphs)]))


def start_at(graph: int, n_more: int = 0) -> Ints:
    """Return the state of a loop that starts with this graph, with ``n_more`` numbers for the loop's own use."""
    state = np.zeros(N_STATE + n_more, np.int64)
    state[GRAPH] = graph
    return state


def run_loop(
    loop: Callable[[Any], int],
    state: Ints,
    offsets: Ints,
    last: int,
    label: str,
    records: Any = None,
    *,
    count_visits: Callable[[Ints], int] | None = None,
) -> Any:
    """Call ``loop(records)`` until it is done with the graphs before ``last``; return the records, cut to those written.

    The loop gets more room whenever it asks for it. Work that takes several calls shows its progress: ``count_visits(state)`` is
    the number of nodes before the next visit, by default offsets[graph] + root.
    """
    count_visits = count_visits or (lambda state: int(offsets[state[GRAPH]] + state[ROOT]))
    n_visits = count_visits(state)
    with progress(int(offsets[last]) - n_visits, label) as advance:
        while (needed := loop(records)) != DONE:
            if needed > PAUSED:
                records = _with_room(records, needed, state, label)
            advance(count_visits(state) - n_visits)
            n_visits = count_visits(state)
    return None if records is None else _cut(records, int(state[USED]))


def _with_room(records: Any, needed: int, state: Ints, label: str) -> Any:
    """Return the same records in arrays with room for ``needed`` records and more; a table is refilled."""
    used, first = int(state[USED]), int(state[FIRST])
    larger = {}
    for name, array in records._asdict().items():
        larger[name] = array
        if name == "table":
            if 2 * (needed - first) > len(array):
                larger[name] = empty_table(needed - first)
                fill_table(first, used, larger[records._fields[0]], larger["codes"], larger[name])
        elif needed > len(array):
            larger[name] = allocate(
                (needed + needed // 2, *array.shape[1:]), array.dtype, f"Graph {state[GRAPH]}: its {label}"
            )
            larger[name][:used] = array[:used]
    return type(records)(**larger)


def _cut(records: Any, used: int) -> Any:
    return records._make(array if name == "table" else array[:used] for name, array in records._asdict().items())


# -------------------------------------------------------------------- compiled


@jit
def visit(root, depth, base, indptr, indices, order, distance):
    """Fill ``order`` and ``distance`` (int64) with the nodes within ``depth`` of root, breadth first; return their number.

    Nodes are numbered within their graph, whose first node is ``base``; ``distance`` is -1 elsewhere. Only nodes below the length
    of ``order`` count: once all of them are reached, the arcs of the rest need not be followed.
    """
    order[0] = root
    distance[root] = 0
    n_visited = 1
    head = 0
    while head < n_visited < len(order) and distance[order[head]] < depth:
        v = order[head]
        head += 1
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if w < len(order) and distance[w] < 0:
                distance[w] = distance[v] + 1
                order[n_visited] = w
                n_visited += 1
    return n_visited


@jit
def leave(n_visited, order, distance):
    """Set ``distance`` to -1 again at all nodes of a visit."""
    for i in range(n_visited):
        distance[order[i]] = -1


@inlined
def save(state, used, first, graph, root, item):
    """Write the position of a loop to its state."""
    state[USED], state[FIRST], state[GRAPH], state[ROOT], state[ITEM] = used, first, graph, root, item
