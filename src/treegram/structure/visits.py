"""Running the loops over visits: call after call, each of bounded length, with room for their records.

Compiled code cannot be interrupted, so no call does more than about STEPS_PER_CALL steps. Loops never make room: they ask.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from treegram._core.memory import allocate
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.structure.loops.hashing import fill_table
from treegram.structure.loops.visits import DONE, FIRST, GRAPH, N_STATE, PAUSED, USED

__all__ = ["STEPS_PER_CALL", "empty_table", "graph_spans", "run_loop", "start_at"]

STEPS_PER_CALL = 1 << 23  # a fraction of a second


def graph_spans(graphs: Graphs, nodes_per_task: int) -> list[tuple[int, int]]:
    """Ranges of consecutive graphs with about so many nodes each; never none, and the same for any number of workers."""
    n_parts = graphs.n_nodes // nodes_per_task
    n_parts = max(1, min(len(graphs), n_parts + n_parts % 2))  # an even number: two workers then end at the same time
    cuts = np.searchsorted(graphs.offsets, graphs.n_nodes * np.arange(1, n_parts) / n_parts)
    return list(pairwise([0, *(int(cut) for cut in np.unique(cuts) if 0 < cut < len(graphs)), len(graphs)]))


def start_at(graph: int, n_more: int = 0) -> Ints:
    """The state of a loop that is to start with this graph; some loops keep more numbers in it."""
    state = np.zeros(N_STATE + n_more, np.int64)
    state[GRAPH] = graph
    return state


def empty_table(n_records: int) -> Ints:
    """A hash table for so many records."""
    return np.full(max(1024, 1 << max(2 * n_records - 1, 1).bit_length()), -1, np.int64)


def run_loop(loop: Callable[[Any], int], state: Ints, records: Any, what: str) -> Any:
    """Call ``loop(records)`` until it is done, with more room whenever it asks; gives the records without unused room."""
    while (needed := loop(records)) != DONE:
        if needed > PAUSED:
            records = _with_room(records, needed, state, what)
    return records._make(array if name == "table" else array[: state[USED]] for name, array in _items(records))


def _items(records: Any) -> list[tuple[str, Any]]:
    return list(zip(records._fields, records, strict=True))


def _with_room(records: Any, needed: int, state: Ints, what: str) -> Any:
    """The same records in arrays for ``needed`` records and more; a table is laid out anew."""
    used, first = int(state[USED]), int(state[FIRST])
    larger = {}
    for name, array in _items(records):
        larger[name] = array
        if name == "table":
            if 2 * (needed - first) > len(array):
                larger[name] = empty_table(needed - first)
                fill_table(first, used, larger[records._fields[0]], larger["codes"], larger[name])
        elif needed > len(array):
            purpose = f"Graph {state[GRAPH]}: {what}"
            larger[name] = allocate(needed + needed // 2, array.dtype, purpose)
            larger[name][:used] = array[:used]
    return type(records)(**larger)
