"""Distances: how many pairs of nodes lie how many edges apart, for groups of nodes that a kernel cannot tell apart.

A distance is the number of edges on a shortest path, along the edges' direction where they have one. Pairs without a path
and pairs of a node with itself are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from treegram._core.memory import allocate, require
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.structure.loops import distances as loops
from treegram.structure.loops.visits import GRAPH, PAUSED
from treegram.structure.visits import STEPS_PER_CALL, graph_spans, run_loop, start_at

__all__ = ["Distances", "count_distances"]


NODES_PER_TASK = 4096
MANY_GROUPS = 4096  # in one graph: from here on it is worth to look whether its distances fit into memory
BYTES_PER_RECORD = 16
FIRST_RECORDS = 1 << 16  # room for so many at first, at most


@dataclass(frozen=True)
class Distances:
    """For each group a of nodes its records: ``counts`` ordered pairs from a to b are ``lengths`` edges apart."""

    starts: Ints  # (n_groups + 1,): the records of group a are starts[a] .. starts[a + 1] - 1, by length and partner
    partners: NDArray[np.int32]  # b, a group of the same graph
    lengths: NDArray[np.int32]
    counts: Floats
    both_ways: bool  # whether every pair counts in both directions, with the same length

    def reversed(self) -> Distances:
        """The same pairs from b to a."""
        n_groups = len(self.starts) - 1
        sources = np.repeat(np.arange(n_groups), np.diff(self.starts)).astype(np.int32)
        order = np.lexsort((sources, self.lengths, self.partners))
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.partners, minlength=n_groups))])
        return Distances(starts, sources[order], self.lengths[order], self.counts[order], self.both_ways)


def count_distances(graphs: Graphs, groups: Ints, group_offsets: Ints, *, n_jobs: int | None = None) -> Distances:
    """Tally the distances between the nodes of each graph, group by group.

    ``groups`` gives the group of each node, ``group_offsets`` the first group of each graph and their total number. Time
    is nodes times edges of each graph; memory that of one record for each pair of groups and distance between them.
    """
    sizes = np.bincount(groups, minlength=group_offsets[-1])
    member_starts = np.concatenate([[0], np.cumsum(sizes)])
    by_group = loops.Groups(groups, group_offsets, np.argsort(groups, kind="stable"), member_starts)
    _check_memory(graphs, by_group)
    numbers = np.zeros(int(group_offsets[-1]), np.int64)
    tasks = [(graphs, by_group, span, numbers) for span in graph_spans(graphs, NODES_PER_TASK)]
    parts = list(run_tasks(_count_some, tasks, n_jobs=n_jobs, label="distances"))
    partners, lengths, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Distances(
        starts=np.concatenate([[0], np.cumsum(numbers)]),
        partners=partners,
        lengths=lengths,
        counts=counts,
        both_ways=not graphs.directed,
    )


def _check_memory(graphs: Graphs, by_group: Any) -> None:
    """In a connected graph there is a record for each pair of groups, at least: enough to tell what can never fit."""
    n_groups = np.diff(by_group.offsets)
    for graph in np.flatnonzero(n_groups > MANY_GROUPS):
        nodes = slice(graphs.offsets[graph], graphs.offsets[graph + 1])
        arcs = slice(graphs.indptr[nodes.start], graphs.indptr[nodes.stop])
        n = nodes.stop - nodes.start
        entries = (np.ones(arcs.stop - arcs.start), graphs.indices[arcs] - nodes.start)
        matrix = sp.csr_matrix((*entries, graphs.indptr[nodes.start : nodes.stop + 1] - arcs.start), shape=(n, n))
        _, parts = connected_components(matrix, connection="strong")
        in_parts = np.unique(np.stack([parts, by_group.of_node[nodes]]), axis=1)[0]
        n_pairs = float((np.bincount(in_parts).astype(np.float64) ** 2).sum())
        require(BYTES_PER_RECORD * n_pairs, f"Graph {graph}: the distances between its {n} nodes")


def _count_some(graphs: Graphs, by_group: Any, span: tuple[int, int], numbers: Ints) -> Any:
    """The records of some graphs; fills ``numbers``, how many each of their groups has."""
    first, last = span
    largest = int(np.diff(graphs.offsets[first : last + 1]).max(initial=0))
    n_groups = np.diff(by_group.offsets[first : last + 1])
    most_groups = int(n_groups.max(initial=0))
    order, distance = np.empty(largest, np.int64), np.full(largest, -1, np.int64)
    tally = np.zeros((16, most_groups), np.int64)
    arrays, state = (graphs.offsets, graphs.indptr, graphs.indices), start_at(first, 1)
    room = 1024 + min(int((n_groups**2).sum()), FIRST_RECORDS)  # one for each pair of groups
    records = loops.Records(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room))

    def count(records: Any) -> int:
        nonlocal tally
        scratch = (order, distance, tally)
        needed = loops.count_distances(arrays, by_group, last, scratch, state, numbers, records, STEPS_PER_CALL)
        if needed != loops.TALLER:
            return int(needed)
        purpose = f"Graph {state[GRAPH]}: a tally of its distances"
        taller = allocate((min(2 * int(state[loops.TOP]) + 2, largest), most_groups), np.int64, purpose)
        taller[: len(tally)] = tally
        tally = taller
        return PAUSED

    return run_loop(count, state, records, "its distances")
