"""The hot loops of ``structure.invariants``: balls, the colors of their nodes, and sums over patterns, on flat arrays.

Nodes are numbered within their graph, whose first node is ``base``. Within a ball they are numbered in breadth-first order
from its root, so that the ball of a smaller radius is a prefix: one visit serves all radii. Codes are 64-bit hashes of the
nested tuples that define them; a sorted list becomes a sum of mixed codes, which needs no sorting. All loops over graphs stop
and go on as ``loops.visits`` says.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from treegram._core.jit import inlined, jit
from treegram.structure.loops.hashing import GOLDEN, find, has_room, join, mix
from treegram.structure.loops.visits import DONE, FIRST, GRAPH, PAUSED, PLACE, ROOT, USED, leave, save, visit

WL, SGK, NSPDK = 0, 1, 2
SIZE, INVARIANT, NONE = 0, 1, 2

# order[p] is the node at the place p; distance and place are those of a node, -1 if it is not in the ball. Neighbors by
# place: targets[starts[p] .. starts[p + 1] - 1], with the hashes of the arcs to them. hops, queue and to_root are by place.
Ball = namedtuple("Ball", "order distance place starts targets arcs hops queue to_root")
# Balls (root, r) of some graphs, roots counted from the first node of all: nodes[starts[root, r] ..], sizes[root, r] of them,
# with their colors.
Held = namedtuple("Held", "starts sizes keys nodes colors")
# Sums by (row, code).
Records = namedtuple("Records", "rows codes values table")
# What all graphs share: CSR neighbors, hashes of labels, and colors given for the whole graphs (global scope) or none.
Arrays = namedtuple("Arrays", "offsets indptr indices node_hashes arc_hashes given directed")
# What is asked for: the graphs first .. last - 1; see ``structure.invariants`` for the rest.
Ask = namedtuple("Ask", "first last radius distance levels invariant match by_node", defaults=(False,))
# Arrays to work in: colors (levels + 1, n) and walks (2, n) by place.
Scratch = namedtuple("Scratch", "ball colors walks")


@inlined
def number(n):
    """The code of a small number, -1 (not reachable) included."""
    return mix(np.uint64(n + 2) * GOLDEN)


# -------------------------------------------------------------------- one ball


@jit
def _enter(root, depth, base, arrays, ball):
    """Visit the ball of one root: who is in it, and the arcs inside; returns the number of nodes."""
    indptr, indices, arc_hashes = arrays.indptr, arrays.indices, arrays.arc_hashes
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
def _refine(n, ball, colors):
    """Weisfeiler-Lehman colors within the first n nodes: colors[i, p] from colors[0, p]."""
    for level in range(1, len(colors)):
        for p in range(n):
            around = np.uint64(0)
            for a in range(ball.starts[p], ball.starts[p + 1]):
                if ball.targets[a] < n:
                    around += mix(colors[level - 1, ball.targets[a]] + ball.arcs[a])
            colors[level, p] = join(colors[level - 1, p], around)


@jit
def _walk(p, n, ball, walks, colors):
    """Spectral colors of one node: colors[i, p] joins the closed walks of length 2 .. i + 1 within the first n nodes.

    The number of walks of any length from q to p is summed modulo 2^64; ``walks`` (2, n) is scratch.
    """
    for q in range(n):
        walks[0, q] = 0
    walks[0, p] = 1
    for length in range(1, len(colors) + 1):
        old, new = walks[(length + 1) % 2], walks[length % 2]
        for q in range(n):
            total = np.uint64(0)
            for a in range(ball.starts[q], ball.starts[q + 1]):
                if ball.targets[a] < n:
                    total += old[ball.targets[a]]
            new[q] = total
        if length > 1:
            colors[length - 1, p] = join(colors[length - 2, p], mix(new[p] + GOLDEN))


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
def _color(n, ball, invariant, directed, colors, walks):
    """The local colors of the first n nodes; colors[0] holds their labels' codes."""
    if invariant == WL:
        _refine(n, ball, colors)
    elif invariant == SGK:
        for p in range(n):
            _walk(p, n, ball, walks, colors)
    else:  # one level: the label's code is replaced
        _encode(n, ball, directed, colors[0], colors[1])


# -------------------------------------------------------------------- the balls of some graphs


@jit
def measure(arrays, ask, ball, state, starts, sizes, budget):
    """Where the nodes of each ball (root, r) will stand: starts and sizes; state[PLACE] is how many places that takes."""
    g, root, total, steps = state[GRAPH], state[ROOT], state[PLACE], 0
    while g < ask.last:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        row = base - arrays.offsets[ask.first]
        while root < n:
            if steps > budget:
                save(state, 0, 0, g, root, total)
                return PAUSED
            n_visited = visit(root, ask.radius, base, arrays.indptr, arrays.indices, ball.order, ball.distance)
            p = 0
            for r in range(ask.radius + 1):
                while p < n_visited and ball.distance[ball.order[p]] <= r:
                    p += 1
                starts[row + root, r], sizes[row + root, r] = total, p
                total += p
            leave(n_visited, ball.order, ball.distance)
            steps += n_visited
            root += 1
        g, root = g + 1, 0
    save(state, 0, 0, g, root, total)
    return DONE


@jit
def _key(n, ball, ask, colors):
    """What another ball of the same radius must share for the two to match."""
    if ask.match == SIZE:
        return number(n)
    if ask.match == INVARIANT:
        return _whole(n, ball, colors[-1], ask.invariant == NSPDK)
    return np.uint64(0)


@jit
def _keep(start, n, base, ball, given, colors, first_level, held):
    """Store the nodes of a ball with their colors: the given ones of the whole graph, if any, or those of the ball."""
    for p in range(n):
        v = ball.order[p]
        held.nodes[start + p] = v
        for level in range(held.colors.shape[1]):
            color = given[level, base + v] if len(given) else colors[first_level + level, p]
            held.colors[start + p, level] = color


@jit
def _hold_root(root, row, base, arrays, ask, scratch, held):
    """The balls of one root, whose row is ``row``; returns how many nodes the largest has."""
    ball, colors, walks = scratch
    is_local = len(arrays.given) == 0 or ask.match == INVARIANT
    n_visited = _enter(root, ask.radius, base, arrays, ball)
    for p in range(n_visited):
        colors[0, p] = mix(arrays.node_hashes[base + ball.order[p]])
    for r in range(ask.radius + 1):
        size = held.sizes[row, r]
        if is_local and (r == 0 or size > held.sizes[row, r - 1]):  # else the ball is the last one again
            _color(size, ball, ask.invariant, arrays.directed, colors, walks)
        held.keys[row, r] = _key(size, ball, ask, colors)
        first_level = 1 if ask.invariant == NSPDK else 0
        _keep(held.starts[row, r], size, base, ball, arrays.given, colors, first_level, held)
    _leave(n_visited, ball)
    return n_visited


@jit
def hold(arrays, ask, scratch, state, held, budget):
    """Fill the keys, nodes and colors of all balls that ``measure`` has laid out."""
    g, root, steps = state[GRAPH], state[ROOT], 0
    while g < ask.last:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        row = base - arrays.offsets[ask.first]
        while root < n:
            if steps > budget:
                save(state, 0, 0, g, root, 0)
                return PAUSED
            n_visited = _hold_root(root, row + root, base, arrays, ask, scratch, held)
            steps += n_visited * (n_visited if ask.invariant != WL else ask.levels + 1)
            root += 1
        g, root = g + 1, 0
    return DONE


# -------------------------------------------------------------------- sums over patterns


@jit
def _tally(row, code, value, first, used, records):
    """Add ``value`` to the record (row, code) of this graph, made if it is new; returns the number of records."""
    i = find(row, code, first, used, records.rows, records.codes, records.table)
    if i < used:
        records.values[i] += value
        return used
    records.values[used] = value
    return used + 1


@jit
def _tally_ball(row, r, key, value, held, first, used, records):
    """Every node of the ball (row, r), under each of its colors."""
    start = held.starts[row, r]
    for i in range(start, start + held.sizes[row, r]):
        for level in range(held.colors.shape[1]):
            used = _tally(held.nodes[i], mix(key + held.colors[i, level]), value, first, used, records)
    return used


@jit
def _settle(first, used, n_rows, at, records, lengths):
    """Sort the records of one graph by row, and say how many each row has: lengths[at ..], zero before.

    The graph has no more need of the table, whose places then say which record comes next; -1 once it is there.
    """
    rows, codes, values, table = records
    for i in range(first, used):
        lengths[at + rows[i]] += 1
    end = 0
    for row in range(at, at + n_rows):
        n, lengths[row] = lengths[row], end
        end += n
    for i in range(first, used):
        table[lengths[at + rows[i]]] = i
        lengths[at + rows[i]] += 1
    for row in range(at + n_rows - 1, at, -1):
        lengths[row] -= lengths[row - 1]
    for start in range(first, used):
        code, value, place = codes[start], values[start], start
        while table[place - first] >= 0:
            source = table[place - first]
            table[place - first] = -1
            if source == start:
                codes[place], values[place] = code, value
            else:
                codes[place], values[place] = codes[source], values[source]
            place = source


@inlined
def _pair_key(r, d, key, other):
    return join(join(join(number(r), number(d)), key), other)


@jit
def _tally_patterns(u, w, d, directed, held, first, used, records):
    """The patterns of all radii: the balls of u where d is 0, else those of u and w, each node in the role of its ball."""
    # Without direction the pair (w, u) shows the second ball of (u, w) as its first: count the first twice.
    once = 1.0 if directed else np.sqrt(2.0)
    for r in range(held.sizes.shape[1]):
        if d == 0:
            key = _pair_key(r, d, held.keys[u, r], np.uint64(0))
            used = _tally_ball(u, r, key, 1.0 / held.sizes[u, r], held, first, used, records)
            continue
        key = _pair_key(r, d, held.keys[u, r], held.keys[w, r])
        value = 1.0 / (held.sizes[u, r] + held.sizes[w, r])
        used = _tally_ball(u, r, key, once * value, held, first, used, records)
        if directed:
            used = _tally_ball(w, r, mix(key + GOLDEN), value, held, first, used, records)
    return used


@jit
def _n_places(u, w, held):
    """How many records the patterns of u and w may make."""
    total = 0
    for r in range(held.sizes.shape[1]):
        total += held.sizes[u, r] + held.sizes[w, r]
    return total * held.colors.shape[1]


@jit
def sum_patterns(arrays, ask, ball, held, state, lengths, records, budget):
    """Sum psi over the nodes of all graphs: for each pattern that holds a node, 1 / (its size).

    Fills ``lengths`` with how many records each node has, and these node by node: codes of (match key, color), and values.
    """
    used, first, g, u, i, steps = state[USED], state[FIRST], state[GRAPH], state[ROOT], state[PLACE], 0
    order, distance = ball.order, ball.distance
    while g < ask.last:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        row = base - arrays.offsets[ask.first]
        while u < n:
            n_visited = visit(u, ask.distance, base, arrays.indptr, arrays.indices, order, distance)
            while i < n_visited:
                w = order[i]
                more = _n_places(row + u, row + w, held)
                is_room = has_room(used + more, first, records.rows, records.table)
                if steps > budget or not is_room:
                    leave(n_visited, order, distance)
                    save(state, used, first, g, u, i)
                    return PAUSED if is_room else used + more
                used = _tally_patterns(row + u, row + w, distance[w], arrays.directed, held, first, used, records)
                steps += more
                i += 1
            leave(n_visited, order, distance)
            u, i = u + 1, 0
        _settle(first, used, n, row, records, lengths)
        g, u, first = g + 1, 0, used
    save(state, used, first, g, u, i)
    return DONE


@jit
def count_pairs(arrays, ask, ball, held, state, lengths, records, budget):
    """How many ordered pairs of nodes show each pair of balls, by radius r and distance d; fills as ``sum_patterns``.

    There is one row for each graph, r and d; or, by node, for each u, r and d.
    """
    used, first, g, u, steps = state[USED], state[FIRST], state[GRAPH], state[ROOT], 0
    n_rows = (ask.radius + 1) * (ask.distance + 1)
    order, distance, keys = ball.order, ball.distance, held.keys
    while g < ask.last:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        row = base - arrays.offsets[ask.first]
        while u < n:
            n_visited = visit(u, ask.distance, base, arrays.indptr, arrays.indices, order, distance)
            needed = used + n_visited * (ask.radius + 1)
            is_room = has_room(needed, first, records.rows, records.table)
            if steps > budget or not is_room:
                leave(n_visited, order, distance)
                save(state, used, first, g, u, 0)
                return PAUSED if is_room else needed
            for i in range(n_visited):
                w = order[i]
                d = distance[w]
                for r in range(ask.radius + 1):
                    code = _pair_key(r, d, keys[row + u, r], keys[row + w, r])
                    used = _tally(r * (ask.distance + 1) + d, code, 1.0, first, used, records)
            leave(n_visited, order, distance)
            steps += n_visited * (ask.radius + 1)
            if ask.by_node:
                _settle(first, used, n_rows, (row + u) * n_rows, records, lengths)
                first = used
            u += 1
        if not ask.by_node:
            _settle(first, used, n_rows, (g - ask.first) * n_rows, records, lengths)
        g, u, first = g + 1, 0, used
    save(state, used, first, g, u, 0)
    return DONE


# -------------------------------------------------------------------- colors of whole graphs


@jit
def walk_colors(arrays, ask, scratch, state, colors, budget):
    """Spectral colors (levels + 1, n) of the nodes of all graphs, in their whole graphs.

    A closed walk of length t stays within t / 2 hops where edges have no direction, within t - 1 where they have.
    """
    ball, local, walks = scratch
    start, center, steps = arrays.offsets[ask.first], np.int64(0), 0
    depth = ask.levels if arrays.directed else (ask.levels + 1) // 2
    g, root = state[GRAPH], state[ROOT]
    while g < ask.last:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        while root < n:
            if steps > budget:
                save(state, 0, 0, g, root, 0)
                return PAUSED
            n_visited = _enter(root, depth, base, arrays, ball)
            local[0, 0] = mix(arrays.node_hashes[base + root])
            _walk(center, n_visited, ball, walks, local)
            for level in range(ask.levels + 1):
                colors[level, base - start + root] = local[level, 0]
            _leave(n_visited, ball)
            steps += n_visited * (ask.levels + 1)
            root += 1
        g, root = g + 1, 0
    return DONE
