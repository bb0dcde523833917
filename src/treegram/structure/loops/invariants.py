"""The hot loops of ``structure.invariants``: balls, the colours of their nodes, and sums over patterns, on flat arrays.

Nodes are numbered within their graph, whose first node is ``base``. Within a ball they are numbered in breadth-first order
from its root, so that the ball of a smaller radius is a prefix: one visit serves all radii. Codes are 64-bit hashes of the
nested tuples that define them; a sorted list becomes a sum of mixed codes, which needs no sorting.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from treegram._numba import jit
from treegram.structure.loops.trees import GOLDEN, mix, visit

WL, SGK, NSPDK = 0, 1, 2
SIZE, INVARIANT, NONE = 0, 1, 2

# order[p] is the node at the place p; distance and place are those of a node, -1 if it is not in the ball. Neighbours by
# place: targets[starts[p] .. starts[p + 1] - 1], with the hashes of the arcs to them. hops, queue and to_root are by place.
Ball = namedtuple("Ball", "order distance place starts targets arcs hops queue to_root")
# The patterns of one graph: ball (root, r) holds nodes[starts[root, r] ..], sizes[root, r] of them, with their colours.
Held = namedtuple("Held", "starts sizes keys nodes colours")
# Sums by (row, code) of all graphs so far; the hash table finds those of the current graph.
Records = namedtuple("Records", "rows codes values table")
# What all graphs share: CSR neighbours, hashes of labels, and colours given for the whole graphs (global scope) or none.
Arrays = namedtuple("Arrays", "offsets indptr indices node_hashes arc_hashes given directed")
# What is asked for: see ``structure.invariants``.
Ask = namedtuple("Ask", "radius distance levels invariant match")
# Arrays to work in: colours (levels + 1, n) and walks (2, n) by place.
Scratch = namedtuple("Scratch", "ball colours walks")


@njit(inline="always")
def join(a, b):
    """The code of the pair (a, b)."""
    return mix(a + b * GOLDEN)


@njit(inline="always")
def number(n):
    """The code of a small number, -1 (not reachable) included."""
    return mix(np.uint64(n + 2) * GOLDEN)


# -------------------------------------------------------------------- one ball


@jit
def _enter(root, depth, base, indptr, indices, arc_hashes, ball):
    """Visit the ball of one root: who is in it, and the arcs inside; returns the number of nodes."""
    n = visit(root, depth, base, indptr, indices, ball.order, ball.distance)
    for p in range(n):
        ball.place[ball.order[p]] = p
    used = 0
    for p in range(n):
        ball.starts[p] = used
        v = base + ball.order[p]
        for arc in range(indptr[v], indptr[v + 1]):
            if ball.place[indices[arc] - base] >= 0:
                ball.targets[used] = ball.place[indices[arc] - base]
                ball.arcs[used] = arc_hashes[arc]
                used += 1
    ball.starts[n] = used
    return n


@jit
def _leave(n, ball):
    for p in range(n):
        ball.distance[ball.order[p]] = -1
        ball.place[ball.order[p]] = -1


@jit
def _refine(n, ball, colours):
    """Weisfeiler-Lehman colours within the first n nodes: colours[i, p] from colours[0, p]."""
    for level in range(1, len(colours)):
        for p in range(n):
            around = np.uint64(0)
            for a in range(ball.starts[p], ball.starts[p + 1]):
                if ball.targets[a] < n:
                    around += mix(colours[level - 1, ball.targets[a]] + ball.arcs[a])
            colours[level, p] = join(colours[level - 1, p], around)


@jit
def _walk(p, n, ball, walks, colours):
    """Spectral colours of one node: colours[i, p] joins the closed walks of length 2 .. i + 1 within the first n nodes.

    The number of walks of any length from q to p is summed modulo 2^64; ``walks`` (2, n) is scratch.
    """
    for q in range(n):
        walks[0, q] = 0
    walks[0, p] = 1
    for length in range(1, len(colours) + 1):
        old, new = walks[(length + 1) % 2], walks[length % 2]
        for q in range(n):
            total = np.uint64(0)
            for a in range(ball.starts[q], ball.starts[q + 1]):
                if ball.targets[a] < n:
                    total += old[ball.targets[a]]
            new[q] = total
        if length > 1:
            colours[length - 1, p] = join(colours[length - 2, p], mix(new[p] + GOLDEN))


@jit
def _hop(p, n, ball):
    """ball.hops[q] = hops from p to q within the first n nodes, -1 if there is no way."""
    for q in range(n):
        ball.hops[q] = -1
    ball.hops[p] = 0
    ball.queue[0] = p
    head, tail = 0, 1
    while head < tail:
        q = ball.queue[head]
        head += 1
        for a in range(ball.starts[q], ball.starts[q + 1]):
            t = ball.targets[a]
            if t < n and ball.hops[t] < 0:
                ball.hops[t] = ball.hops[q] + 1
                ball.queue[tail] = t
                tail += 1


@jit
def _encode(n, ball, directed, labels, codes):
    """codes[p] = (label, hops to the root, multiset of (hops to w, hops from w to the root, label of w) over the ball)."""
    for p in range(n):
        ball.to_root[p] = ball.distance[ball.order[p]]
        if directed:  # the way back to the root is another one
            _hop(p, n, ball)
            ball.to_root[p] = ball.hops[0]
    for p in range(n):
        _hop(p, n, ball)
        around = np.uint64(0)
        for q in range(n):
            around += mix(labels[q] + join(number(ball.hops[q]), number(ball.to_root[q])))
        codes[p] = join(join(labels[p], number(ball.to_root[p])), around)


@jit
def _whole(n, ball, codes, with_arcs):
    """The code of a ball: that of its root, the multiset of its nodes', and (NSPDK) that of its arcs'."""
    members, arcs = np.uint64(0), np.uint64(0)
    for p in range(n):
        members += mix(codes[p] + GOLDEN)
        for a in range(ball.starts[p], ball.starts[p + 1] if with_arcs else ball.starts[p]):
            if ball.targets[a] < n:
                arcs += mix(join(codes[p], codes[ball.targets[a]]) + ball.arcs[a])
    return join(join(codes[0], members), arcs)


@jit
def _colour(n, ball, invariant, directed, colours, walks):
    """The local colours of the first n nodes; colours[0] holds their labels' codes."""
    if invariant == WL:
        _refine(n, ball, colours)
    elif invariant == SGK:
        for p in range(n):
            _walk(p, n, ball, walks, colours)
    else:  # one level: the label's code is replaced
        _encode(n, ball, directed, colours[0], colours[1])


# -------------------------------------------------------------------- all balls of one graph


@jit
def _measure(base, n, radius, arrays, ball, starts, sizes):
    """Where the nodes of each ball (root, r) will stand: starts and sizes; returns how many places that takes."""
    total = 0
    for root in range(n):
        n_visited = visit(root, radius, base, arrays.indptr, arrays.indices, ball.order, ball.distance)
        p = 0
        for r in range(radius + 1):
            while p < n_visited and ball.distance[ball.order[p]] <= r:
                p += 1
            starts[root, r], sizes[root, r] = total, p
            total += p
        for p in range(n_visited):
            ball.distance[ball.order[p]] = -1
    return total


@jit
def _key(n, ball, ask, colours):
    """What another ball of the same radius must share for the two to match."""
    if ask.match == SIZE:
        return number(n)
    if ask.match == INVARIANT:
        return _whole(n, ball, colours[-1], ask.invariant == NSPDK)
    return np.uint64(0)


@jit
def _keep(start, n, base, ball, given, colours, first_level, held):
    """Store the nodes of a ball with their colours: the given ones of the whole graph, if any, or those of the ball."""
    for p in range(n):
        v = ball.order[p]
        held.nodes[start + p] = v
        for level in range(held.colours.shape[1]):
            colour = given[level, base + v] if len(given) else colours[first_level + level, p]
            held.colours[start + p, level] = colour


@jit
def _hold(g, arrays, ask, n_kept, scratch):
    """All balls of graph g, with ``n_kept`` colours for each of their nodes."""
    base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
    ball, colours, walks = scratch
    starts, sizes = np.empty((n, ask.radius + 1), np.int64), np.empty((n, ask.radius + 1), np.int64)
    total = _measure(base, n, ask.radius, arrays, ball, starts, sizes)
    keys = np.empty((n, ask.radius + 1), np.uint64)
    held = Held(starts, sizes, keys, np.empty(total, np.int64), np.empty((total, n_kept), np.uint64))
    is_local = len(arrays.given) == 0 or ask.match == INVARIANT
    first_level = 1 if ask.invariant == NSPDK else 0
    for root in range(n):
        n_visited = _enter(root, ask.radius, base, arrays.indptr, arrays.indices, arrays.arc_hashes, ball)
        for p in range(n_visited):
            colours[0, p] = mix(arrays.node_hashes[base + ball.order[p]])
        for r in range(ask.radius + 1):
            size = sizes[root, r]
            if is_local and (r == 0 or size > sizes[root, r - 1]):  # else the ball is the last one again
                _colour(size, ball, ask.invariant, arrays.directed, colours, walks)
            keys[root, r] = _key(size, ball, ask, colours)
            _keep(starts[root, r], size, base, ball, arrays.given, colours, first_level, held)
        _leave(n_visited, ball)
    return held


# -------------------------------------------------------------------- sums over patterns


@njit(inline="always")
def _slot(row, code, n_slots):
    return np.int64((code ^ (np.uint64(row) * GOLDEN)) & np.uint64(n_slots - 1))


@jit
def _grow(more, first, used, records):
    """Room for ``more`` records; the hash table (records of the current graph only) is laid out anew."""
    rows, codes, values, table = records
    if used + more > len(rows):
        room = 2 * (used + more)
        rows, codes, values = np.empty(room, np.int64), np.empty(room, np.uint64), np.empty(room)
        for i in range(used):
            rows[i], codes[i], values[i] = records.rows[i], records.codes[i], records.values[i]
    n_slots = len(table)
    while n_slots < 2 * (used + more - first):
        n_slots *= 2
    if n_slots > len(table):
        table = np.full(n_slots, -1, np.int64)
        for i in range(first, used):
            slot = _slot(rows[i], codes[i], n_slots)
            while table[slot] >= first:
                slot = (slot + 1) & (n_slots - 1)
            table[slot] = i
    return Records(rows, codes, values, table)


@jit
def _tally(row, code, value, first, used, records):
    """Add ``value`` to the record (row, code) of this graph, made if it is new; returns the number of records."""
    n_slots = len(records.table)
    slot = _slot(row, code, n_slots)
    while True:
        i = records.table[slot]
        if i < first:  # empty, or left by an earlier graph
            records.table[slot] = used
            records.rows[used], records.codes[used], records.values[used] = row, code, value
            return used + 1
        if records.codes[i] == code and records.rows[i] == row:
            records.values[i] += value
            return used
        slot = (slot + 1) & (n_slots - 1)


@jit
def _tally_ball(root, r, key, value, held, first, used, records):
    """Every node of the ball (root, r), under each of its colours."""
    start = held.starts[root, r]
    for i in range(start, start + held.sizes[root, r]):
        for level in range(held.colours.shape[1]):
            used = _tally(held.nodes[i], mix(key + held.colours[i, level]), value, first, used, records)
    return used


@jit
def _settle(first, used, n_rows, at, records, lengths):
    """Sort the records of one graph by row, and say how many each row has: lengths[at ..]."""
    ends = np.zeros(n_rows + 1, np.int64)
    for i in range(first, used):
        ends[records.rows[i] + 1] += 1
    for row in range(n_rows):
        lengths[at + row] = ends[row + 1]
        ends[row + 1] += ends[row]
    codes, values = np.empty(used - first, np.uint64), np.empty(used - first)
    for i in range(first, used):
        place = ends[records.rows[i]]
        ends[records.rows[i]] += 1
        codes[place], values[place] = records.codes[i], records.values[i]
    for i in range(first, used):
        records.codes[i], records.values[i] = codes[i - first], values[i - first]


@njit(inline="always")
def _pair_key(r, d, key, other):
    return join(join(join(number(r), number(d)), key), other)


@jit
def sum_patterns(arrays, ask, first_graph, last_graph, n_kept, scratch, lengths, records):
    """Sum psi over the nodes of graphs first_graph .. last_graph - 1: for each pattern that holds a node, 1 / (its size).

    Fills ``lengths`` with how many records each node has; returns the number of records, and these node by node: codes of
    (match key, colour) and values.
    """
    used = np.int64(0)  # not a literal: each of those would be compiled for
    # Without direction the pair (w, u) shows the second ball of (u, w) as its first: count the first twice.
    once = 1.0 if arrays.directed else np.sqrt(2.0)
    order, distance = scratch.ball.order, scratch.ball.distance
    for g in range(first_graph, last_graph):
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        held = _hold(g, arrays, ask, n_kept, scratch)
        first = used
        for u in range(n):
            n_visited = visit(u, ask.distance, base, arrays.indptr, arrays.indices, order, distance)
            for i in range(n_visited):
                w = order[i]
                d = distance[w]
                distance[w] = -1
                for r in range(ask.radius + 1):
                    used, records = _tally_pattern(u, w, r, d, once, arrays.directed, held, first, used, records)
        _settle(first, used, n, base - arrays.offsets[first_graph], records, lengths)
    return used, records


@jit
def _tally_pattern(u, w, r, d, once, directed, held, first, used, records):
    """One pattern: the ball of u where d is 0, else those of u and w, each node in the role of its ball."""
    n_places = (held.sizes[u, r] + held.sizes[w, r]) * held.colours.shape[1]
    if used + n_places > len(records.rows) or 2 * (used + n_places - first) > len(records.table):
        records = _grow(n_places, first, used, records)
    if d == 0:
        key = _pair_key(r, d, held.keys[u, r], np.uint64(0))
        return _tally_ball(u, r, key, 1.0 / held.sizes[u, r], held, first, used, records), records
    key = _pair_key(r, d, held.keys[u, r], held.keys[w, r])
    value = 1.0 / (held.sizes[u, r] + held.sizes[w, r])
    used = _tally_ball(u, r, key, once * value, held, first, used, records)
    if directed:
        used = _tally_ball(w, r, mix(key + GOLDEN), value, held, first, used, records)
    return used, records


@jit
def count_pairs(arrays, ask, first_graph, last_graph, n_kept, scratch, lengths, records):
    """How many ordered pairs of nodes show each pair of balls, by radius r and distance d; returns as ``sum_patterns``.

    There is one row for each graph, r and d.
    """
    used = np.int64(0)
    n_rows = (ask.radius + 1) * (ask.distance + 1)
    order, distance = scratch.ball.order, scratch.ball.distance
    for g in range(first_graph, last_graph):
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        keys = _hold(g, arrays, ask, n_kept, scratch).keys
        first = used
        for u in range(n):
            n_visited = visit(u, ask.distance, base, arrays.indptr, arrays.indices, order, distance)
            records = _grow(n_visited * (ask.radius + 1), first, used, records)
            for i in range(n_visited):
                w = order[i]
                d = distance[w]
                distance[w] = -1
                for r in range(ask.radius + 1):
                    code = _pair_key(r, d, keys[u, r], keys[w, r])
                    used = _tally(r * (ask.distance + 1) + d, code, 1.0, first, used, records)
        _settle(first, used, n_rows, (g - first_graph) * n_rows, records, lengths)
    return used, records


# -------------------------------------------------------------------- colours of whole graphs


@jit
def walk_colours(arrays, ask, first_graph, last_graph, scratch):
    """Spectral colours (levels + 1, n) of the nodes of graphs first_graph .. last_graph - 1, in their whole graphs.

    A closed walk of length t stays within t / 2 hops where edges have no direction, within t - 1 where they have.
    """
    ball, local, walks = scratch
    start, centre = arrays.offsets[first_graph], np.int64(0)
    depth = ask.levels if arrays.directed else (ask.levels + 1) // 2
    colours = np.empty((ask.levels + 1, arrays.offsets[last_graph] - start), np.uint64)
    for g in range(first_graph, last_graph):
        base = arrays.offsets[g]
        for root in range(arrays.offsets[g + 1] - base):
            n = _enter(root, depth, base, arrays.indptr, arrays.indices, arrays.arc_hashes, ball)
            local[0, 0] = mix(arrays.node_hashes[base + root])
            _walk(centre, n, ball, walks, local)
            for level in range(ask.levels + 1):
                colours[level, base - start + root] = local[level, 0]
            _leave(n, ball)
    return colours
