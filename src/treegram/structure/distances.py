"""Distances: how many pairs of nodes lie how many edges apart, for groups of nodes that a kernel cannot tell apart.

A distance is the number of edges on a shortest path, along the edges' direction where they have one. Pairs without a path
and pairs of a node with itself are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treegram._parallel import run_tasks
from treegram._types import Floats, Ints
from treegram.graphs import Graphs
from treegram.structure.features import graph_spans
from treegram.structure.loops import distances as loops

__all__ = ["Distances", "count_distances"]


NODES_PER_TASK = 4096


@dataclass(frozen=True)
class Distances:
    """For each group a of nodes its records: ``counts`` ordered pairs from a to b are ``lengths`` edges apart."""

    starts: Ints  # (n_groups + 1,): the records of group a are starts[a] .. starts[a + 1] - 1, by length and partner
    partners: NDArray[np.int32]  # b, a group of the same graph
    lengths: NDArray[np.int32]
    counts: Floats
    both_ways: bool  # whether every pair counts in both directions, with the same length


def count_distances(graphs: Graphs, groups: Ints, group_offsets: Ints, *, n_jobs: int | None = None) -> Distances:
    """Tally the distances between the nodes of each graph, group by group.

    ``groups`` gives the group of each node, ``group_offsets`` the first group of each graph and their total number. Time
    is nodes times edges of each graph; memory that of one record for each pair of groups and distance between them.
    """
    sizes = np.bincount(groups, minlength=group_offsets[-1])
    member_starts = np.concatenate([[0], np.cumsum(sizes)])
    arrays = (
        graphs.offsets,
        graphs.indptr,
        graphs.indices,
        groups,
        group_offsets,
        np.argsort(groups, kind="stable"),
        member_starts,
    )
    tasks = [(*arrays, first, last) for first, last in graph_spans(graphs, NODES_PER_TASK)]
    parts = list(run_tasks(loops.count_distances, tasks, n_jobs=n_jobs, label="distances"))
    numbers, partners, lengths, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Distances(
        starts=np.concatenate([[0], np.cumsum(numbers)]),
        partners=partners,
        lengths=lengths,
        counts=counts,
        both_ways=not graphs.directed,
    )
