"""The hot loops of ``structure.trees``: visits, tree codes and their counts, on flat arrays.

A code is a 64-bit hash of a labelled, unordered tree: the label's own hash joined with the sum of the mixed codes of
the children. A sum does not depend on the order of the children, so nothing is ever sorted, and equal children count
as often as they occur.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from treegram._numba import jit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)

ALGORITHM, VISITS, CAPPED = 0, 1, 2
LARGEST_SIZE = 1e300  # finite, so that its product with log(1) is 0; no weight other than 0 and 1 survives such sizes


@njit(inline="always")
def mix(x):
    """The finaliser of splitmix64: a bijection of 64 bits in which every input bit moves every output bit."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


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
def encode(n_visited, depth, base, indptr, indices, node_hashes, arc_hashes, order, distance, codes, sizes):
    """Codes and sizes of T_j(v) for all nodes v of one visit and 1 <= j <= depth - distance, leaves first."""
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
            codes[v, j] = mix(node_hashes[base + v] + codes[v, j] * GOLDEN)


@njit(inline="always")
def _slot(code, v, mask):
    return np.int64((code ^ (np.uint64(v) * GOLDEN)) & mask)


@jit
def _grow(capacity, first, used, nodes, codes, sizes, counts, seen, table):
    """Room for ``capacity`` records; the hash table (records of the current graph only) is laid out anew."""
    if capacity > len(nodes):
        room = 2 * capacity
        new_nodes, new_codes, new_sizes = np.empty(room, np.int64), np.empty(room, np.uint64), np.empty(room)
        new_counts, new_seen = np.empty(room), np.empty((room, 2), np.int64)
        for i in range(used):  # not by slices: those compile for seconds
            new_nodes[i], new_codes[i], new_sizes[i], new_counts[i] = nodes[i], codes[i], sizes[i], counts[i]
            new_seen[i, 0], new_seen[i, 1] = seen[i, 0], seen[i, 1]
        nodes, codes, sizes, counts, seen = new_nodes, new_codes, new_sizes, new_counts, new_seen
    n_slots = len(table)
    while n_slots < 2 * (capacity - first):
        n_slots *= 2
    if n_slots > len(table):
        table = np.full(n_slots, -1, np.int64)
        mask = np.uint64(n_slots - 1)
        for i in range(first, used):
            slot = _slot(codes[i], nodes[i], mask)
            while table[slot] >= first:
                slot = (slot + 1) & (n_slots - 1)
            table[slot] = i
    return nodes, codes, sizes, counts, seen, table


@njit(inline="always")
def _tally(v, code, size, count, root, j, first, used, nodes, codes, sizes, counts, seen, table):
    """Add ``count`` to the record (v, code) of this graph, made if it is new; returns the number of records."""
    n_slots = len(table)
    slot = _slot(code, v, np.uint64(n_slots - 1))
    while True:
        i = table[slot]
        if i < first:  # empty, or left by an earlier graph
            table[slot] = used
            nodes[used], codes[used], sizes[used], counts[used] = v, code, size, count
            seen[used, 0], seen[used, 1] = root, j
            return used + 1
        if codes[i] == code and nodes[i] == v:
            counts[i] += count
            return used
        slot = (slot + 1) & (n_slots - 1)


@jit
def count_trees(offsets, indptr, indices, node_hashes, arc_hashes, depth, counting, first_graph, last_graph):
    """Count every tree at every node of the graphs first_graph .. last_graph - 1.

    Returns records (node, code, size, count, (root, j) where it was first seen), one per node and tree, in an order that
    depends on the graph alone.
    """
    largest = 0
    for g in range(first_graph, last_graph):
        largest = max(largest, offsets[g + 1] - offsets[g])
    order, distance = np.empty(largest, np.int64), np.full(largest, -1, np.int64)
    v_codes, v_sizes = np.empty((largest, depth + 1), np.uint64), np.empty((largest, depth + 1))
    single = np.empty(largest)

    room = 16 * (offsets[last_graph] - offsets[first_graph]) + 64
    nodes, codes, sizes = np.empty(room, np.int64), np.empty(room, np.uint64), np.empty(room)
    counts, seen = np.empty(room), np.empty((room, 2), np.int64)
    table = np.full(1024, -1, np.int64)
    used = 0
    for g in range(first_graph, last_graph):
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        first = used
        single[:n] = 0.0
        for root in range(n):
            n_visited = visit(root, depth, base, indptr, indices, order, distance)
            encode(n_visited, depth, base, indptr, indices, node_hashes, arc_hashes, order, distance, v_codes, v_sizes)
            nodes, codes, sizes, counts, seen, table = _grow(
                used + n_visited * depth + n, first, used, nodes, codes, sizes, counts, seen, table
            )
            top = min(depth, distance[order[n_visited - 1]]) if counting == CAPPED else depth
            for i in range(n_visited):
                v = order[i]
                last = top - distance[v]
                # Algorithm 1 counts T_j for every j up to depth: those beyond the DAG's floor repeat the last one.
                extra = float(distance[v]) if counting == ALGORITHM else 0.0
                single[v] += 1.0 if last > 0 else 1.0 + extra
                for j in range(1, last + 1):
                    count = 1.0 + extra if j == last else 1.0
                    if v_sizes[v, j] == 1.0:
                        single[v] += count
                    else:
                        used = _tally(
                            v, v_codes[v, j], v_sizes[v, j], count, root, j,
                            first, used, nodes, codes, sizes, counts, seen, table,
                        )  # fmt: skip
            for i in range(n_visited):
                distance[order[i]] = -1
        for i in range(first, used):
            nodes[i] += base
            seen[i, 0] += base
        for v in range(n):  # the tree of one node is at every node: counted apart, never looked up
            nodes[used], codes[used], sizes[used], counts[used] = base + v, mix(node_hashes[base + v]), 1.0, single[v]
            seen[used, 0], seen[used, 1] = base + v, 0
            used += 1
    return nodes[:used].copy(), codes[:used].copy(), sizes[:used].copy(), counts[:used].copy(), seen[:used].copy()


@jit
def intern(codes):
    """Number equal codes equally, in order of appearance; returns the numbers and each number's first position."""
    n_slots = 1024
    while n_slots < 2 * len(codes):
        n_slots *= 2
    table = np.full(n_slots, -1, np.int64)
    mask = np.uint64(n_slots - 1)
    ids, firsts = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    n_distinct = 0
    for i in range(len(codes)):
        slot = np.int64(codes[i] & mask)
        while table[slot] >= 0 and codes[firsts[table[slot]]] != codes[i]:
            slot = (slot + 1) & (n_slots - 1)
        if table[slot] < 0:
            table[slot] = n_distinct
            firsts[n_distinct] = i
            n_distinct += 1
        ids[i] = table[slot]
    return ids, firsts[:n_distinct].copy()
