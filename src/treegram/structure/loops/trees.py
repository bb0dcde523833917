"""The hot loops of ``structure.trees``: tree codes and their counts, on flat arrays.

A code is a 64-bit hash of a labeled, unordered tree: the label's own hash joined with the sum of the mixed codes of
the children. A sum does not depend on the order of the children, so nothing is ever sorted, and equal children count
as often as they occur.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from treegram._core.jit import jit
from treegram.structure.loops.hashing import find, has_room, join, mix
from treegram.structure.loops.visits import DONE, FIRST, GRAPH, PAUSED, ROOT, USED, leave, save, visit

ALGORITHM, VISITS, CAPPED = 0, 1, 2
LARGEST_SIZE = 1e300  # finite, so that its product with log(1) is 0; no weight other than 0 and 1 survives such sizes

# Per record: node, code, count, size of the tree, and the root and depth j where it was first seen.
Records = namedtuple("Records", "nodes codes counts sizes roots depths table")
# Of one visit: order and distances of its nodes, codes and sizes of the trees T_j at each (nodes x depths).
Visit = namedtuple("Visit", "order distance codes sizes")


@jit
def encode(n_visited, depth, base, arcs, hashes, seen):
    """Codes and sizes of T_j(v) for all nodes v of one visit and 1 <= j <= depth - distance, leaves first."""
    (indptr, indices), (node_hashes, arc_hashes) = arcs, hashes
    order, distance, codes, sizes = seen
    for i in range(n_visited - 1, -1, -1):
        v = order[i]
        below = depth - distance[v]
        codes[v, 0] = mix(node_hashes[base + v])
        sizes[v, 0] = 1.0
        if below == 0:
            continue
        for j in range(1, below + 1):
            codes[v, j] = 0
            sizes[v, j] = 1.0
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] == distance[v] + 1:
                for j in range(1, below + 1):
                    codes[v, j] += mix(codes[w, j - 1] + arc_hashes[arc])
                    sizes[v, j] = min(sizes[v, j] + sizes[w, j - 1], LARGEST_SIZE)
        for j in range(1, below + 1):
            # A node without children is the same tree at any j: its code must be that of j = 0.
            codes[v, j] = join(node_hashes[base + v], codes[v, j])


@njit(inline="always")
def extra_count(counting, beyond, distance):
    """How often the largest tree of a node in a visit is counted beyond once.

    Trees cut below the DAG's floor repeat the last one: Algorithm 1 counts T_j for every j up to depth, visits those up to
    depth - distance.
    """
    extra = 0.0 if counting == CAPPED else beyond
    return extra + distance if counting == ALGORITHM else extra


@jit
def _tally_visit(n_visited, top, beyond, counting, seen, single, first, used, records):
    """Count the trees of one visit; those of one node go to ``single``. Returns the number of records.

    The visit has no node farther than ``top``; ``beyond`` is by how much the depth exceeds it.
    """
    order, distance, codes, sizes = seen
    root = order[0]
    for i in range(n_visited):
        v = order[i]
        last = top - distance[v]
        extra = extra_count(counting, beyond, distance[v])
        single[v] += 1.0 if last > 0 else 1.0 + extra
        for j in range(1, last + 1):
            count = 1.0 + extra if j == last else 1.0
            if sizes[v, j] == 1.0:
                single[v] += count
                continue
            i_record = find(v, codes[v, j], first, used, records.nodes, records.codes, records.table)
            if i_record < used:
                records.counts[i_record] += count
                continue
            records.counts[used], records.sizes[used] = count, sizes[v, j]
            records.roots[used], records.depths[used] = root, j
            used += 1
    return used


@jit
def _finish_graph(base, n, first, used, node_hashes, single, records):
    """Number the nodes of a finished graph among all, and add its trees of one node; returns the number of records."""
    for i in range(first, used):
        records.nodes[i] += base
        records.roots[i] += base
    for v in range(n):  # the tree of one node is at every node: counted apart, never looked up
        records.nodes[used], records.codes[used], records.counts[used] = base + v, mix(node_hashes[base + v]), single[v]
        records.sizes[used], records.roots[used], records.depths[used] = 1.0, base + v, 0
        single[v] = 0.0
        used += 1
    return used


@jit
def count_trees(graphs, hashes, asked, seen, single, state, records, budget):
    """Count every tree at every node of the graphs state[GRAPH] .. last - 1, where ``asked`` is (depth, counting, last).

    The depth is a float: it may be far larger than any graph, and only counts then.

    One record per node and tree, in an order that depends on the graph alone. Stops as ``loops.visits`` says.
    """
    (offsets, indptr, indices), (depth, counting, last) = graphs, asked
    used, first, g, root, steps = state[USED], state[FIRST], state[GRAPH], state[ROOT], 0
    while g < last:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        while root < n:
            n_visited = visit(root, np.int64(min(depth, n)), base, indptr, indices, seen.order, seen.distance)
            top = seen.distance[seen.order[n_visited - 1]]
            needed = used + n_visited * top + n
            is_room = has_room(needed, first, records.nodes, records.table)
            if steps > budget or not is_room:
                leave(n_visited, seen.order, seen.distance)
                save(state, used, first, g, root, 0)
                return PAUSED if is_room else needed
            encode(n_visited, top, base, (indptr, indices), hashes, seen)
            used = _tally_visit(n_visited, top, depth - top, counting, seen, single, first, used, records)
            leave(n_visited, seen.order, seen.distance)
            steps += n_visited * (top + 1)
            root += 1
        used = _finish_graph(base, n, first, used, hashes[0], single, records)
        g, root, first = g + 1, 0, used
    save(state, used, first, g, root, 0)
    return DONE


@jit
def order_by_node(nodes, base, ends, order):
    """The records in the order of their nodes, which count from ``base``, otherwise as they are.

    ``ends``, zero and one longer than there are nodes, becomes where the records of each node end.
    """
    for i in range(len(nodes)):
        ends[nodes[i] - base + 1] += 1
    for v in range(1, len(ends)):
        ends[v] += ends[v - 1]
    for i in range(len(nodes)):
        v = nodes[i] - base
        order[ends[v]] = i
        ends[v] += 1
