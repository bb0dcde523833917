"""The hot loops of ``structure.distances``: breadth-first visits from all nodes, their distances tallied by group."""

from __future__ import annotations

import numpy as np

from treegram._numba import jit
from treegram.structure.loops.trees import visit


@jit
def tally_from(members, base, n, indptr, indices, groups, first_group, order, distance, tally):
    """tally[d, b] += the number of paths of d steps from the members to nodes of group first_group + b.

    Returns the largest d. ``order`` and ``distance`` (all -1, before and after) are scratch of n entries.
    """
    top = 0
    for i in range(len(members)):
        n_visited = visit(members[i] - base, n, base, indptr, indices, order, distance)
        top = max(top, distance[order[n_visited - 1]])
        for k in range(n_visited):
            w = order[k]
            tally[distance[w], groups[base + w] - first_group] += 1
            distance[w] = -1
    return top


@jit
def write_tally(top, first_group, tally, used, partners, distances, counts):
    """Append what is not zero in rows 1 .. top of the tally to the records, and make the tally zero; returns their number.

    Row 0, each member with itself, is no pair of two nodes.
    """
    for d in range(top + 1):
        for b in range(tally.shape[1]):
            if tally[d, b] > 0 and d > 0:
                partners[used], distances[used], counts[used] = first_group + b, d, tally[d, b]
                used += 1
            tally[d, b] = 0
    return used


@jit
def make_room(room, used, partners, distances, counts):
    """The records in arrays of at least ``room`` entries."""
    if room <= len(counts):
        return partners, distances, counts
    room *= 2
    new_partners, new_distances, new_counts = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    for i in range(used):  # not by slices: those compile for seconds
        new_partners[i], new_distances[i], new_counts[i] = partners[i], distances[i], counts[i]
    return new_partners, new_distances, new_counts


@jit
def count_distances(offsets, indptr, indices, groups, group_offsets, members, member_starts, first_graph, last_graph):
    """How many ordered pairs of two nodes lie how far apart, by group, in the graphs first_graph .. last_graph - 1.

    ``groups[v]`` is the group of node v; graph g has the groups ``group_offsets[g]`` to ``group_offsets[g + 1] - 1``.
    ``members`` lists the nodes by group, those of group a from ``member_starts[a]``. Returns the number of records of each
    group a, and the records (group b, distance from a to b, number of pairs), by distance and b within each a.
    """
    first = group_offsets[first_graph]
    numbers = np.zeros(group_offsets[last_graph] - first, np.int64)
    partners, distances, counts, used = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024), 0
    for g in range(first_graph, last_graph):
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        first_group, n_groups = group_offsets[g], group_offsets[g + 1] - group_offsets[g]
        order, distance, tally = np.empty(n, np.int64), np.full(n, -1, np.int64), np.zeros((n, n_groups), np.int64)
        for a in range(first_group, first_group + n_groups):
            inside = members[member_starts[a] : member_starts[a + 1]]
            top = tally_from(inside, base, n, indptr, indices, groups, first_group, order, distance, tally)
            most = min(len(inside) * n, top * n_groups)  # records of this group, by its visits and by the tally's size
            partners, distances, counts = make_room(used + most, used, partners, distances, counts)
            before = used
            used = write_tally(top, first_group, tally, used, partners, distances, counts)
            numbers[a - first] = used - before
    return numbers, partners[:used].copy(), distances[:used].copy(), counts[:used].copy()
