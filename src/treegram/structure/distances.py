"""Count the pairs of nodes at each distance, for groups of nodes that a kernel cannot distinguish.

A distance is the number of edges on a shortest path, along the edges' direction where they have one. Pairs without a path
and pairs of a node with itself are left out.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.jit import jit
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.structure.visits import (
    DONE,
    GRAPH,
    ITEM,
    PAUSED,
    ROOT,
    STEPS_PER_CALL,
    USED,
    graph_spans,
    leave,
    run_loop,
    save,
    start_at,
    visit,
)

NODES_PER_TASK = 4096
FIRST_RECORDS = 1 << 16  # initial room, at most
TOP = 5  # index in its state: the largest distance from the current group so far

# The group of each node, the first group of each graph; nodes by group, and where those of each group start.
Groups = namedtuple("Groups", "of_node offsets members starts")
# Per record: the group that is reached, in how many steps, from how many pairs of nodes.
DistanceRecords = namedtuple("DistanceRecords", "partners lengths counts")


@dataclass(frozen=True)
class Distances:
    """The records of each group a of nodes: ``counts`` ordered pairs from a to b are ``lengths`` edges apart."""

    starts: Ints  # (n_groups + 1,): the records of group a are starts[a] .. starts[a + 1] - 1, by length and partner
    partners: NDArray[np.int32]  # b, a group of the same graph
    lengths: NDArray[np.int32]
    counts: Floats
    both_ways: bool  # every pair counts in both directions, with the same length

    def reversed(self) -> Distances:
        """Return the same pairs from b to a."""
        n_groups = len(self.starts) - 1
        sources = np.repeat(np.arange(n_groups), np.diff(self.starts)).astype(np.int32)
        order = np.lexsort((sources, self.lengths, self.partners))
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.partners, minlength=n_groups))])
        return Distances(starts, sources[order], self.lengths[order], self.counts[order], self.both_ways)


def count_distances(graphs: Graphs, groups: Ints, group_offsets: Ints, *, n_jobs: int | None = None) -> Distances:
    """Count the distances between the nodes of each graph, group by group.

    ``groups`` has the group of each node, ``group_offsets`` the first group of each graph and their total number. Time
    is nodes times edges for each graph; memory is one record for each pair of groups and distance between them.
    """
    sizes = np.bincount(groups, minlength=group_offsets[-1])
    member_starts = np.concatenate([[0], np.cumsum(sizes)])
    by_group = Groups(groups, group_offsets, np.argsort(groups, kind="stable"), member_starts)
    numbers = np.zeros(int(group_offsets[-1]), np.int64)
    tasks = [(graphs, by_group, span, numbers) for span in graph_spans(graphs, NODES_PER_TASK)]
    results = list(run_tasks(_count_distances, tasks, n_jobs=n_jobs, label="distances"))
    partners, lengths, counts = (np.concatenate(column) for column in zip(*results, strict=True))
    starts = np.concatenate([[0], np.cumsum(numbers)])
    return Distances(starts, partners, lengths, counts, both_ways=not graphs.directed)


def _count_distances(graphs: Graphs, by_group: Any, span: tuple[int, int], numbers: Ints) -> Any:
    """Return the records of some graphs; fill ``numbers`` with the number of records of each of their groups."""
    first, last = span
    largest = int(np.diff(graphs.offsets[first : last + 1]).max(initial=0))
    n_groups = np.diff(by_group.offsets[first : last + 1])
    most_groups = int(n_groups.max(initial=0))
    order, distance = np.empty(largest, np.int64), np.full(largest, -1, np.int64)
    # Enough rows for any distance: memory is committed only when a row is first written.
    tally = np.zeros((max(largest, 1), most_groups), np.int64)
    arrays, state = (graphs.offsets, graphs.indptr, graphs.indices), start_at(first, 1)
    room = 1024 + min(int((n_groups**2).sum()), FIRST_RECORDS)  # one for each pair of groups
    records = DistanceRecords(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room))

    def count(records: Any) -> int:
        scratch = (order, distance, tally)
        return int(tally_distances(arrays, by_group, last, scratch, state, numbers, records, STEPS_PER_CALL))

    def count_visits(state: Ints) -> int:
        """Return the number of nodes, not of groups: one group may be all nodes of a large graph."""
        return int(by_group.starts[by_group.offsets[state[GRAPH]] + state[ROOT]] + state[ITEM])

    return run_loop(count, state, graphs.offsets, last, "distances", records, count_visits=count_visits)


# -------------------------------------------------------------------- compiled


@jit
def _write_tally(first_group, n_groups, top, tally, used, records):
    """Append the nonzero counts of rows 1 .. top of the tally to the records, and clear it; return their number.

    Row 0, each member with itself, is not a pair of two nodes.
    """
    for d in range(top + 1):
        for b in range(n_groups):
            if tally[d, b] > 0 and d > 0:
                records.partners[used], records.lengths[used] = first_group + b, d
                records.counts[used] = tally[d, b]
                used += 1
            tally[d, b] = 0
    return used


@jit
def tally_distances(graphs, groups, last, scratch, state, numbers, records, budget):
    """Count the ordered pairs of two nodes by distance and group, in the graphs state[GRAPH] .. last - 1.

    ``numbers[a]`` is the number of records of group a; they are sorted by distance and partner. Stops as described in
    ``structure.visits``; state[ROOT] counts the groups of the graph, state[ITEM] the members of the group.
    """
    (offsets, indptr, indices), (order, distance, tally) = graphs, scratch
    used, g, a, i, top, steps = state[USED], state[GRAPH], state[ROOT], state[ITEM], state[TOP], 0
    while g < last:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        first_group, n_groups = groups.offsets[g], groups.offsets[g + 1] - groups.offsets[g]
        while a < n_groups:
            start, stop = groups.starts[first_group + a], groups.starts[first_group + a + 1]
            while start + i < stop:
                n_visited = visit(groups.members[start + i] - base, n, base, indptr, indices, order, distance)
                top = max(top, distance[order[n_visited - 1]])
                if steps > budget:
                    leave(n_visited, order, distance)
                    save(state, used, 0, g, a, i)
                    state[TOP] = top
                    return PAUSED
                for k in range(n_visited):
                    w = order[k]
                    tally[distance[w], groups.of_node[base + w] - first_group] += 1
                    distance[w] = -1
                steps += n_visited
                i += 1
            needed = used + min((stop - start) * n, top * n_groups)  # by the visits, and by the size of the tally
            if needed > len(records.counts):
                save(state, used, 0, g, a, i)
                state[TOP] = top
                return needed
            before = used
            used = _write_tally(first_group, n_groups, top, tally, used, records)
            numbers[first_group + a] = used - before
            steps += top * n_groups
            a, i, top = a + 1, 0, 0
        g, a = g + 1, 0
    save(state, used, 0, g, a, i)
    return DONE
