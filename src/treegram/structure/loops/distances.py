"""The hot loops of ``structure.distances``: breadth-first visits from all nodes, their distances tallied by group."""

from __future__ import annotations

from collections import namedtuple

from treegram._core.jit import jit
from treegram.structure.loops.visits import DONE, GRAPH, PAUSED, PLACE, ROOT, USED, leave, save, visit

TALLER = -2  # what ``count_distances`` returns if the tally has too few rows
TOP = 5  # in its state: the largest distance from the current group so far

# The group of each node, the first group of each graph; nodes by group, and where those of each group start.
Groups = namedtuple("Groups", "of_node offsets members starts")
# Per record: the group that is reached, in how many steps, from how many pairs of nodes.
Records = namedtuple("Records", "partners lengths counts")


@jit
def _write_tally(first_group, n_groups, top, tally, used, records):
    """Append what is not zero in rows 1 .. top of the tally to the records, and make the tally zero; returns their number.

    Row 0, each member with itself, is no pair of two nodes.
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
def count_distances(graphs, groups, last, scratch, state, numbers, records, budget):
    """How many ordered pairs of two nodes lie how far apart, by group, in the graphs state[GRAPH] .. last - 1.

    ``numbers[a]`` is the number of records of group a; they come by distance and partner. Stops as ``loops.visits`` says;
    state[ROOT] counts the groups of the graph, state[PLACE] the members of the group.
    """
    (offsets, indptr, indices), (order, distance, tally) = graphs, scratch
    used, g, a, i, top, steps = state[USED], state[GRAPH], state[ROOT], state[PLACE], state[TOP], 0
    while g < last:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        first_group, n_groups = groups.offsets[g], groups.offsets[g + 1] - groups.offsets[g]
        while a < n_groups:
            start, stop = groups.starts[first_group + a], groups.starts[first_group + a + 1]
            while start + i < stop:
                n_visited = visit(groups.members[start + i] - base, n, base, indptr, indices, order, distance)
                top = max(top, distance[order[n_visited - 1]])
                if steps > budget or top >= len(tally):
                    leave(n_visited, order, distance)
                    save(state, used, 0, g, a, i)
                    state[TOP] = top
                    return PAUSED if steps > budget else TALLER
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
