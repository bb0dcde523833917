"""Graph invariants: which patterns (balls, pairs of balls) contain a node, and which color the node has in them.

A pattern is the ball N_r(u), the subgraph of all nodes within r hops of u, or the pair of the balls of two nodes at a certain
distance. A *vertex invariant* colors the nodes, in their whole graph or in the pattern alone; a *match* says which patterns
are compared. Both become 64-bit codes that depend on labels and edges alone, equal in any collection (see ``structure.wl``
for the risk of collisions): hashes of the nested tuples that define them, where a multiset is a sum of mixed codes. Where edges
have a direction, balls, hops and walks follow it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize as normalize_rows

from treegram._core.jit import inlined, jit
from treegram._core.machine import require
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features, gather, order_by_row
from treegram.structure.hashing import (
    GOLDEN,
    arc_hashes,
    empty_table,
    find,
    has_room,
    join,
    mix,
    mix_codes,
    node_hashes,
)
from treegram.structure.visits import (
    DONE,
    FIRST,
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
from treegram.structure.wl import refine, wl_colors

WL, SGK, NSPDK = 0, 1, 2
SIZE, INVARIANT, NONE = 0, 1, 2
INVARIANTS = {"wl": WL, "sgk": SGK, "nspdk": NSPDK}
MATCHES = {"size": SIZE, "invariant": INVARIANT, "none": NONE}
SCOPES = ("local", "global")
NODES_PER_TASK = 4096

# The graphs: CSR neighbors, hashes of labels, and the colors in the whole graphs (global scope), (n_colors, n_nodes), or none.
BallGraphs = namedtuple("BallGraphs", "offsets indptr indices node_hashes arc_hashes global_colors directed")
# What to compute: for the graphs first .. last - 1; see ``pattern_features`` for the rest. Without colors, pairs of balls are counted;
# with ``by_node``, one row per node.
Request = namedtuple("Request", "first last radius distance levels invariant match n_colors by_node", defaults=(False,))
# One ball. order[p] is the p-th node in breadth-first order; distance (-1 outside the ball) and position are those of a node.
# By position: neighbors targets[starts[p] .. starts[p + 1] - 1] with the hashes of their arcs, hops, queue and to_root.
Ball = namedtuple("Ball", "order distance position starts targets arcs hops queue to_root")
# BallScratch arrays: a ball, colors (levels + 1, n) and walks (2, n) by position.
BallScratch = namedtuple("BallScratch", "ball colors walks")
# The balls (root, r) of some graphs: the nodes nodes[starts[root, r] ..], sizes[root, r] of them, with their colors
# (n_members, n_colors), and the keys that two balls must share to match. Roots and nodes count from the first node of these graphs.
Balls = namedtuple("Balls", "starts sizes keys nodes colors")
Members = namedtuple("Members", "nodes colors")
# Sums by (row, code).
PatternRecords = namedtuple("PatternRecords", "rows codes values table")


def pattern_features(
    graphs: Graphs,
    *,
    invariant: str,
    scope: str,
    match: str,
    radius: int,
    levels: int,
    distance: int,
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Features:
    """Return psi: for each node and each pattern that contains it, 1 / (size of the pattern) under (match key, level, color).

    Time is linear in the sizes of all patterns, times the levels (WL), or times the nodes of each ball (the others).
    """
    distance = _check_extent(graphs, radius, levels, distance)
    n_colors = 1 if invariant == "nspdk" else levels + 1
    request = Request(0, len(graphs), radius, distance, levels, INVARIANTS[invariant], MATCHES[match], n_colors)
    arrays = _arrays(graphs, missing_labels, use_edge_labels=use_edge_labels)
    if scope == "global" and invariant == "wl":
        colors = wl_colors(
            graphs, levels, missing_labels=missing_labels, use_edge_labels=use_edge_labels, n_jobs=n_jobs
        )
        arrays = arrays._replace(global_colors=colors)
    elif scope == "global" and invariant == "sgk":
        colors = np.concatenate(_run(_walk_colors, graphs, arrays, request, n_jobs), axis=1)
        arrays = arrays._replace(global_colors=colors)
    return _join(_run(_count, graphs, arrays, request, n_jobs))


def ball_pair_features(
    graphs: Graphs,
    radius: int,
    distance: int,
    *,
    by_node: bool = False,
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Features:
    """Return the features of NSPDK, one row per graph: each pair of balls, counts scaled to length 1 for each (r, d).

    With ``by_node``, one row per node: a pair counts for its first node, and a graph's rows add up to its row. Without
    direction, every pair occurs in both orders, which count equally, so each node gets half.
    """
    distance = _check_extent(graphs, radius, 0, distance)
    request = Request(0, len(graphs), radius, distance, 0, NSPDK, INVARIANT, 0, by_node)
    arrays = _arrays(graphs, missing_labels, use_edge_labels=use_edge_labels)
    features = _join(_run(_count, graphs, arrays, request, n_jobs))
    counts, n_rows = features.counts, (radius + 1) * (distance + 1)  # per graph or node
    if by_node:
        graph_rows = (
            graphs.graph_ids[:, None] * n_rows + np.arange(n_rows)
        ).ravel()  # the row of the graph that each adds to
        joined = type(counts)(
            (np.ones(len(graph_rows)), (graph_rows, np.arange(len(graph_rows)))),
            shape=(len(graphs) * n_rows, len(graph_rows)),
        )
        totals = joined @ counts
        lengths = np.sqrt(np.asarray(totals.multiply(totals).sum(axis=1)).ravel())
        counts.data /= np.repeat(lengths[graph_rows], np.diff(counts.indptr))
    elif counts.nnz:
        counts = normalize_rows(counts)
    entries = (counts.data, counts.indices, counts.indptr[::n_rows])
    shape = (graphs.n_nodes if by_node else len(graphs), len(features.codes))
    return Features(type(counts)(entries, shape=shape), features.codes)


def _check_extent(graphs: Graphs, radius: int, levels: int, distance: int) -> int:
    """Return the distance, capped at the largest possible one; raise if balls of all radii and levels do not fit into memory."""
    for number, what in ((radius, "radius"), (levels, "number of levels")):
        require(24.0 * (float(number) + 1) * max(graphs.n_nodes, 1), f"Patterns with a {what} of {number}")
    return min(distance, max(int(graphs.sizes.max(initial=1)) - 1, 0))


def _arrays(graphs: Graphs, missing_labels: str, *, use_edge_labels: bool) -> Any:
    return BallGraphs(
        graphs.offsets,
        graphs.indptr,
        graphs.indices,
        node_hashes(graphs, missing_labels),
        arc_hashes(graphs, use_edge_labels=use_edge_labels),
        np.empty((0, 0), np.uint64),
        graphs.directed,
    )


# -------------------------------------------------------------------- some graphs at a time


def _run(function: Callable[..., Any], graphs: Graphs, arrays: Any, request: Any, n_jobs: int | None) -> list[Any]:
    tasks = [(arrays, request._replace(first=a, last=b)) for a, b in graph_spans(graphs, NODES_PER_TASK)]
    return list(run_tasks(function, tasks, n_jobs=n_jobs, label="patterns"))


def _join(results: list[tuple[Ints, Hashes, Floats]]) -> Features:
    """Join the rows of all tasks into one matrix; the list is emptied, so that its large arrays are not held twice."""
    columns = [list(column) for column in zip(*results, strict=True)]
    results.clear()
    lengths, codes, values = (np.concatenate(columns.pop(0)) for _ in range(3))
    return gather(np.concatenate([[0], np.cumsum(lengths)]), codes, values)[0]


def _walk_colors(arrays: Any, request: Any) -> Hashes:
    """Return the spectral colors (levels + 1, n) in whole graphs: each joins the closed walks from a node of length 2, 3, ...

    Walks are counted modulo 2^64. Those of length a + b from a node to itself are a steps to any node, and b steps back.
    """
    nodes = slice(int(arrays.offsets[request.first]), int(arrays.offsets[request.last]))
    indptr = arrays.indptr[nodes.start : nodes.stop + 1]
    targets = arrays.indices[indptr[0] : indptr[-1]] - nodes.start
    n = len(indptr) - 1
    step = sp.csr_matrix((np.ones(len(targets), np.uint64), targets, indptr - indptr[0]), shape=(n, n))
    colors, there, back = [mix_codes(arrays.node_hashes[nodes])], step, step.T.tocsr()
    for level in range(request.levels):
        closed = np.asarray(there.multiply(back).sum(axis=1)).ravel().astype(np.uint64)
        colors.append(mix_codes(colors[-1] + mix_codes(closed + GOLDEN) * GOLDEN))  # as ``join`` does
        if level % 2:
            back = step.T @ back
        else:
            there = there @ step
    return np.stack(colors)


def _count(arrays: Any, request: Any) -> tuple[Ints, Hashes, Floats]:
    """Return the lengths of the rows, codes and values of the patterns of some graphs."""
    n_nodes = _n_nodes(arrays, request)
    n_pairs = (
        (n_nodes if request.by_node else request.last - request.first) * (request.radius + 1) * (request.distance + 1)
    )
    n_rows = n_nodes if request.n_colors else n_pairs
    scratch, state = _scratch(arrays, request), start_at(request.first)
    balls = _find_balls(arrays, request, scratch)
    room = 16 * n_rows + 64
    records = PatternRecords(np.empty(room, np.int64), np.empty(room, np.uint64), np.empty(room), empty_table(0))

    def count(records: Any) -> int:
        return int(sum_patterns(arrays, request, scratch.ball, balls, state, records, STEPS_PER_CALL))

    records = run_loop(count, state, arrays.offsets, request.last, "patterns", records)
    order, ends = order_by_row(records.rows, n_rows)
    return np.diff(ends, prepend=0), records.codes[order], records.values[order]


def _find_balls(arrays: Any, request: Any, scratch: Any) -> Any:
    """Return the balls of all roots."""
    shape, state = (_n_nodes(arrays, request), request.radius + 1), start_at(request.first)
    extents = (np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape, np.uint64))
    room = 4 * extents[0].size + 64
    members = Members(np.empty(room, np.int64), np.empty((room, request.n_colors), np.uint64))

    def fill(members: Any) -> int:
        return int(fill_balls(arrays, request, scratch, state, extents, members, STEPS_PER_CALL))

    return Balls(*extents, *run_loop(fill, state, arrays.offsets, request.last, "balls", members))


def _n_nodes(arrays: Any, request: Any) -> int:
    return int(arrays.offsets[request.last] - arrays.offsets[request.first])


def _scratch(arrays: Any, request: Any) -> Any:
    """Return room for any ball of the largest of these graphs."""
    offsets = arrays.offsets[request.first : request.last + 1]
    n = int(np.diff(offsets).max(initial=0))
    n_arcs = int(np.diff(arrays.indptr[offsets]).max(initial=0))
    n_colors = 2 if request.invariant == NSPDK else request.levels + 1
    ball = Ball(
        order=np.empty(n, np.int64),
        distance=np.full(n, -1, np.int64),
        position=np.empty(n, np.int64),
        starts=np.empty(n + 1, np.int64),
        targets=np.empty(n_arcs, np.int64),
        arcs=np.empty(n_arcs, np.uint64),
        hops=np.empty(n, np.int64),
        queue=np.empty(n, np.int64),
        to_root=np.empty(n, np.int64),
    )
    return BallScratch(ball, np.empty((n_colors, n), np.uint64), np.empty((2, n), np.uint64))


# -------------------------------------------------------------------- compiled: one ball
#
# Nodes are numbered within their graph, whose first node is ``base``. Within a ball they are numbered in breadth-first order from
# its root, so that the ball of a smaller radius is a prefix: one visit serves all radii.


@inlined
def _number_code(n):
    """Return the code of a small number, including -1 (not reachable)."""
    return mix(np.uint64(n + 2) * GOLDEN)


@inlined
def _enter(root, depth, base, arrays, ball):
    """Visit the ball of one root: fill its nodes, and the arcs between them; return the number of nodes."""
    indptr, indices, arc_hashes = arrays.indptr, arrays.indices, arrays.arc_hashes
    n = visit(root, depth, base, indptr, indices, ball.order, ball.distance)
    for p in range(n):
        ball.position[ball.order[p]] = p
    used = 0
    for p in range(n):
        ball.starts[p] = used
        v = base + ball.order[p]
        for arc in range(indptr[v], indptr[v + 1]):
            if ball.distance[indices[arc] - base] >= 0:
                ball.targets[used] = ball.position[indices[arc] - base]
                ball.arcs[used] = arc_hashes[arc]
                used += 1
    ball.starts[n] = used
    return n


@jit
def _walk(p, n, ball, walks, colors):
    """Fill the spectral colors of one node: colors[i, p] joins its closed walks of length 2 .. i + 1 within the first n nodes.

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


@inlined
def _hop(p, n, ball):
    """Set ball.hops[q] to the hops from p to q within the first n nodes, -1 if there is no path."""
    for q in range(n):
        ball.hops[q] = -1
    visit(p, n, np.int64(0), ball.starts, ball.targets, ball.queue[:n], ball.hops)


@inlined
def _encode(n, ball, directed, labels, codes):
    """Set codes[p] to (label, hops to the root, multiset of (hops to w, hops from w to the root, label of w) over the ball)."""
    for p in range(n):
        ball.to_root[p] = ball.distance[ball.order[p]]
        if directed:  # the way back to the root is a different one
            _hop(p, n, ball)
            ball.to_root[p] = ball.hops[0]
    for p in range(n):
        _hop(p, n, ball)
        around = np.uint64(0)
        for q in range(n):
            around += mix(labels[q] + join(_number_code(ball.hops[q]), _number_code(ball.to_root[q])))
        codes[p] = join(join(labels[p], _number_code(ball.to_root[p])), around)


@inlined
def _whole(n, ball, codes, with_arcs):
    """Return the code of a ball: that of its root, the multiset of its nodes', and (NSPDK) that of its arcs'."""
    members, arcs = np.uint64(0), np.uint64(0)
    for p in range(n):
        members += mix(codes[p] + GOLDEN)
        for a in range(ball.starts[p], ball.starts[p + 1] if with_arcs else ball.starts[p]):
            if ball.targets[a] < n:
                arcs += mix(join(codes[p], codes[ball.targets[a]]) + ball.arcs[a])
    return join(join(codes[0], members), arcs)


@inlined
def _color(n, ball, invariant, directed, colors, walks):
    """Fill the local colors of the first n nodes; colors[0] holds the codes of their labels."""
    if invariant == WL:
        for level in range(1, len(colors)):
            refine(
                (ball.starts, ball.targets), ball.arcs, level, np.int64(0), n, colors
            )  # not a constant, for which numba would compile again
    elif invariant == SGK:
        for p in range(n):
            _walk(p, n, ball, walks, colors)
    else:  # one level: the label's code is replaced
        _encode(n, ball, directed, colors[0], colors[1])


# -------------------------------------------------------------------- compiled: the balls of some graphs


@inlined
def _key(n, ball, request, colors):
    """Return the key that another ball of the same radius must share to match."""
    if request.match == SIZE:
        return _number_code(n)
    if request.match == INVARIANT:
        return _whole(n, ball, colors[-1], request.invariant == NSPDK)
    return np.uint64(0)


@jit
def _fill_balls_of(root, row, base, n_visited, arrays, request, scratch, extents, members, used):
    """Fill the balls of one root, number ``row + root`` of all, and their members from ``used`` onward; return the number of members."""
    (ball, colors, walks), (starts, sizes, keys) = scratch, extents
    global_colors = arrays.global_colors
    is_local = len(global_colors) == 0 or request.match == INVARIANT
    for p in range(n_visited):
        colors[0, p] = mix(arrays.node_hashes[base + ball.order[p]])
    first_level, size, last_size = 1 if request.invariant == NSPDK else 0, 0, 0
    for r in range(request.radius + 1):
        while size < n_visited and ball.distance[ball.order[size]] <= r:
            size += 1
        if is_local and size > last_size:  # otherwise the ball is the same as the previous one
            _color(size, ball, request.invariant, arrays.directed, colors, walks)
        last_size = size
        starts[row + root, r], sizes[row + root, r] = used, size
        keys[row + root, r] = _key(size, ball, request, colors)
        for p in range(size):
            v = ball.order[p]
            members.nodes[used] = row + v
            for level in range(members.colors.shape[1]):
                color = global_colors[level, base + v] if len(global_colors) else colors[first_level + level, p]
                members.colors[used, level] = color
            used += 1
    return used


@jit
def fill_balls(arrays, request, scratch, state, extents, members, budget):
    """Fill the starts, sizes and keys of the balls of all roots (``extents``), and their members. Stops as described in ``structure.visits``."""
    used, g, root, steps, ball = state[USED], state[GRAPH], state[ROOT], 0, scratch.ball
    while g < request.last:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        row = base - arrays.offsets[request.first]
        while root < n:
            n_visited = _enter(root, request.radius, base, arrays, ball)
            needed = used + n_visited * (request.radius + 1)
            if steps > budget or needed > len(members.nodes):
                leave(n_visited, ball.order, ball.distance)
                save(state, used, 0, g, root, 0)
                return PAUSED if needed <= len(members.nodes) else needed
            used = _fill_balls_of(root, row, base, n_visited, arrays, request, scratch, extents, members, used)
            leave(n_visited, ball.order, ball.distance)
            n_colored = n_visited if request.invariant != WL else request.levels + 1
            steps += (n_visited + ball.starts[n_visited]) * n_colored
            root += 1
        g, root = g + 1, 0
    save(state, used, 0, g, root, 0)
    return DONE


# -------------------------------------------------------------------- compiled: sums over patterns


@inlined
def _add(row, code, value, first, used, records):
    """Add ``value`` to the record (row, code) of this graph, appending it if it is new; return the number of records."""
    i = find(row, code, first, used, records.rows, records.codes, records.table)
    if i < used:
        records.values[i] += value
        return used
    records.values[used] = value
    return used + 1


@jit
def _add_ball(row, r, key, value, balls, first, used, records):
    """Add ``value`` for every node of the ball (row, r), under each of its colors."""
    start = balls.starts[row, r]
    for i in range(start, start + balls.sizes[row, r]):
        for level in range(balls.colors.shape[1]):
            used = _add(balls.nodes[i], mix(key + balls.colors[i, level]), value, first, used, records)
    return used


@inlined
def _pair_key(r, d, key, other):
    return join(join(join(_number_code(r), _number_code(d)), key), other)


@jit
def _add_patterns(u, w, d, directed, balls, first, used, records):
    """Add the patterns of all radii: the balls of u where d is 0, else those of u and w, each node in the role of its ball."""
    # Without direction the pair (w, u) has the second ball of (u, w) as its first: count the first twice.
    once = 1.0 if directed else np.sqrt(2.0)
    for r in range(balls.sizes.shape[1]):
        if d == 0:
            key = _pair_key(r, d, balls.keys[u, r], np.uint64(0))
            used = _add_ball(u, r, key, 1.0 / balls.sizes[u, r], balls, first, used, records)
            continue
        key = _pair_key(r, d, balls.keys[u, r], balls.keys[w, r])
        value = 1.0 / (balls.sizes[u, r] + balls.sizes[w, r])
        used = _add_ball(u, r, key, once * value, balls, first, used, records)
        if directed:
            used = _add_ball(w, r, mix(key + GOLDEN), value, balls, first, used, records)
    return used


@inlined
def _max_members(u, w, balls):
    """Return how many members the patterns of u and w have."""
    total = 0
    for r in range(balls.sizes.shape[1]):
        total += balls.sizes[u, r] + balls.sizes[w, r]
    return total


@inlined
def _count_pair(row, u, w, d, n_distances, balls, first, used, records):
    """Count the pair of balls of u and w, at distance d, for each radius, in the rows ``row`` + (r, d)."""
    for r in range(balls.sizes.shape[1]):
        code = _pair_key(r, d, balls.keys[u, r], balls.keys[w, r])
        used = _add(row + r * n_distances + d, code, 1.0, first, used, records)
    return used


@jit
def sum_patterns(arrays, request, ball, balls, state, records, budget):
    """Sum over the ordered pairs (u, w) of nodes within the distance, in the graphs state[GRAPH] .. request.last - 1.

    Where balls have colors, sum psi: for each pattern that contains a node, 1 / (its size), by (match key, color); rows are nodes.
    Otherwise count pairs of balls; rows are (graph, r, d) or, by node, (u, r, d). Stops as described in
    ``structure.visits``; state[ITEM] counts the nodes w of the visit from u.
    """
    used, first, g, u, i, steps = state[USED], state[FIRST], state[GRAPH], state[ROOT], state[ITEM], 0
    order, distance, n_colors, n_distances = ball.order, ball.distance, balls.colors.shape[1], request.distance + 1
    while g < request.last:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        row = base - arrays.offsets[request.first]
        while u < n:
            n_visited = visit(u, request.distance, base, arrays.indptr, arrays.indices, order, distance)
            while i < n_visited:
                w = order[i]
                more = _max_members(row + u, row + w, balls) * n_colors + request.radius + 1
                is_room = has_room(used + more, first, records.rows, records.table)
                if steps > budget or not is_room:
                    leave(n_visited, order, distance)
                    save(state, used, first, g, u, i)
                    return PAUSED if is_room else used + more
                if n_colors > 0:
                    used = _add_patterns(row + u, row + w, distance[w], arrays.directed, balls, first, used, records)
                else:
                    counted = row + u if request.by_node else g - request.first
                    counted_row = counted * (request.radius + 1) * n_distances
                    used = _count_pair(
                        counted_row, row + u, row + w, distance[w], n_distances, balls, first, used, records
                    )
                steps += more
                i += 1
            leave(n_visited, order, distance)
            u, i = u + 1, 0
        g, u, first = g + 1, 0, used
    save(state, used, first, g, u, i)
    return DONE
