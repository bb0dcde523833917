"""Graph invariants: which patterns (balls, pairs of balls) hold a node, and what the node looks like in them.

A pattern is the ball N_r(u), the subgraph of all nodes within r hops of u, or the pair of the balls of two nodes at a given
distance. A *vertex invariant* colors the nodes, in their whole graph or in the pattern alone; a *match* says which patterns
are compared. Both become 64-bit codes that depend on labels and edges alone, equal in any collection (see ``structure.wl``
for what that risks). Where edges have a direction, balls, hops and walks follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize as normalize_rows

from treegram._core.memory import allocate, require
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features, gather
from treegram.structure.labels import arc_hashes, node_hashes
from treegram.structure.loops import invariants as loops
from treegram.structure.loops.visits import DONE, PLACE
from treegram.structure.visits import STEPS_PER_CALL, empty_table, graph_spans, run_loop, start_at
from treegram.structure.wl import wl_colors

__all__ = ["INVARIANTS", "MATCHES", "SCOPES", "ball_pair_features", "ball_pair_node_features", "pattern_features"]


INVARIANTS = {"wl": loops.WL, "sgk": loops.SGK, "nspdk": loops.NSPDK}
MATCHES = {"size": loops.SIZE, "invariant": loops.INVARIANT, "none": loops.NONE}
SCOPES = ("local", "global")
NODES_PER_TASK = 4096


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
    """psi: for each node and each pattern that holds it, 1 / (size of the pattern) under (match key, level, color).

    Time is linear in the sizes of all patterns, times the levels (WL), or times the nodes of each ball (the others).
    """
    distance = _check_extent(graphs, radius, levels, distance)
    ask = loops.Ask(0, len(graphs), radius, distance, levels, INVARIANTS[invariant], MATCHES[match])
    arrays = _arrays(graphs, missing_labels, use_edge_labels=use_edge_labels)
    if scope == "global" and invariant == "wl":
        given = wl_colors(
            graphs, levels, missing_labels=missing_labels, use_edge_labels=use_edge_labels, n_jobs=n_jobs
        )
        arrays = arrays._replace(given=given)
    elif scope == "global" and invariant == "sgk":
        parts = _run(_walk_part, graphs, arrays, ask, n_jobs)
        arrays = arrays._replace(given=np.concatenate(parts, axis=1))
    return _join(_run(_pattern_part, graphs, arrays, ask, n_jobs))


def ball_pair_features(
    graphs: Graphs,
    radius: int,
    distance: int,
    *,
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Features:
    """The features of NSPDK, one row per graph: each pair of balls, counts scaled to length 1 for each (r, d)."""
    distance = _check_extent(graphs, radius, 0, distance)
    ask = loops.Ask(0, len(graphs), radius, distance, 0, loops.NSPDK, loops.INVARIANT)
    arrays = _arrays(graphs, missing_labels, use_edge_labels=use_edge_labels)
    features = _join(_run(_pair_part, graphs, arrays, ask, n_jobs))
    scaled = normalize_rows(features.counts) if features.counts.nnz else features.counts
    n_rows = (radius + 1) * (distance + 1)  # per graph
    entries = (scaled.data, scaled.indices, scaled.indptr[::n_rows])
    return Features(type(scaled)(entries, shape=(len(graphs), len(features.codes))), features.codes)


def _check_extent(graphs: Graphs, radius: int, levels: int, distance: int) -> int:
    """The distance, as far as nodes can be apart; raises if balls of all radii and levels cannot be held at once."""
    for number, what in ((radius, "radius"), (levels, "number of levels")):
        require(24.0 * (float(number) + 1) * max(graphs.n_nodes, 1), f"Patterns with a {what} of {number}")
    return min(distance, max(int(graphs.sizes.max(initial=1)) - 1, 0))


def ball_pair_node_features(
    graphs: Graphs,
    radius: int,
    distance: int,
    *,
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Features:
    """The same features, one row per node: a pair counts for its first node, and a graph's rows add up to its own row.

    Without direction every pair is there in both orders, which count alike, so that both nodes get half.
    """
    distance = _check_extent(graphs, radius, 0, distance)
    ask = loops.Ask(0, len(graphs), radius, distance, 0, loops.NSPDK, loops.INVARIANT, by_node=True)
    arrays = _arrays(graphs, missing_labels, use_edge_labels=use_edge_labels)
    features = _join(_run(_pair_part, graphs, arrays, ask, n_jobs))
    counts, n_rows = features.counts, (radius + 1) * (distance + 1)  # per node
    own = (graphs.graph_ids[:, None] * n_rows + np.arange(n_rows)).ravel()  # the row of the graph that each adds to
    joined = type(counts)((np.ones(len(own)), (own, np.arange(len(own)))), shape=(len(graphs) * n_rows, len(own)))
    totals = joined @ counts
    lengths = np.sqrt(np.asarray(totals.multiply(totals).sum(axis=1)).ravel())
    data = counts.data / np.repeat(lengths[own], np.diff(counts.indptr))
    entries = (data, counts.indices, counts.indptr[::n_rows])
    return Features(type(counts)(entries, shape=(graphs.n_nodes, len(features.codes))), features.codes)


def _arrays(graphs: Graphs, missing_labels: str, *, use_edge_labels: bool) -> Any:
    return loops.Arrays(
        graphs.offsets,
        graphs.indptr,
        graphs.indices,
        node_hashes(graphs, missing_labels),
        arc_hashes(graphs, use_edge_labels=use_edge_labels),
        np.empty((0, 0), np.uint64),
        graphs.directed,
    )


# -------------------------------------------------------------------- some graphs at a time


def _run(part: Callable[..., Any], graphs: Graphs, arrays: Any, ask: Any, n_jobs: int | None) -> list[Any]:
    tasks = [(arrays, ask._replace(first=a, last=b)) for a, b in graph_spans(graphs, NODES_PER_TASK)]
    return list(run_tasks(part, tasks, n_jobs=n_jobs, label="patterns"))


def _join(parts: list[tuple[Ints, Hashes, Floats]]) -> Features:
    """One matrix of all parts, which are used up: they are the largest arrays, and not to be held twice."""
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()
    lengths, codes, values = (np.concatenate(columns.pop(0)) for _ in range(3))
    return gather(np.concatenate([[0], np.cumsum(lengths)]), codes, values)[0]


def _walk_part(arrays: Any, ask: Any) -> Hashes:
    colors = np.empty((ask.levels + 1, _n_nodes(arrays, ask)), np.uint64)
    scratch, state = _scratch(arrays, ask), start_at(ask.first)
    while loops.walk_colors(arrays, ask, scratch, state, colors, STEPS_PER_CALL) != DONE:
        pass
    return colors


def _pattern_part(arrays: Any, ask: Any) -> tuple[Ints, Hashes, Floats]:
    n_kept = 1 if ask.invariant == loops.NSPDK else ask.levels + 1
    return _count(loops.sum_patterns, arrays, ask, n_kept, _n_nodes(arrays, ask))


def _pair_part(arrays: Any, ask: Any) -> tuple[Ints, Hashes, Floats]:
    n_counted = _n_nodes(arrays, ask) if ask.by_node else ask.last - ask.first
    return _count(loops.count_pairs, arrays, ask, 0, n_counted * (ask.radius + 1) * (ask.distance + 1))


def _count(loop: Callable[..., int], arrays: Any, ask: Any, n_kept: int, n_rows: int) -> tuple[Ints, Hashes, Floats]:
    """Lengths of the rows, codes and values that one of the compiled loops gives for some graphs."""
    scratch, lengths, state = _scratch(arrays, ask), np.zeros(n_rows, np.int64), start_at(ask.first)
    held = _hold(arrays, ask, n_kept, scratch)
    room = 16 * n_rows + 64
    records = loops.Records(np.empty(room, np.int64), np.empty(room, np.uint64), np.empty(room), empty_table(0))

    def count(records: Any) -> int:
        return int(loop(arrays, ask, scratch.ball, held, state, lengths, records, STEPS_PER_CALL))

    records = run_loop(count, state, records, "its patterns")
    return lengths, records.codes, records.values


def _hold(arrays: Any, ask: Any, n_kept: int, scratch: Any) -> Any:
    """The balls of all roots, with ``n_kept`` colors for each of their nodes."""
    shape = (_n_nodes(arrays, ask), ask.radius + 1)
    _check_hubs(arrays, ask, n_kept)
    starts, sizes = np.empty(shape, np.int64), np.empty(shape, np.int64)
    state = start_at(ask.first)
    while loops.measure(arrays, ask, scratch.ball, state, starts, sizes, STEPS_PER_CALL) != DONE:
        pass
    total = int(state[PLACE])
    largest = ask.first + int(np.diff(arrays.offsets[ask.first : ask.last + 1]).argmax()) if shape[0] else ask.first
    purpose = _balls_of(largest, ask)
    require(8.0 * total * (1 + n_kept), purpose)
    nodes, colors = (
        allocate(size, dtype, purpose) for size, dtype in ((total, np.int64), ((total, n_kept), np.uint64))
    )
    held, state = loops.Held(starts, sizes, np.empty(shape, np.uint64), nodes, colors), start_at(ask.first)
    while loops.hold(arrays, ask, scratch, state, held, STEPS_PER_CALL) != DONE:
        pass
    return held


def _check_hubs(arrays: Any, ask: Any, n_kept: int) -> None:
    """The balls of a hub's neighbors hold all of them, from radius 2 on: enough to tell at once what stars can never fit."""
    degrees = np.diff(arrays.indptr[arrays.offsets[ask.first] : arrays.offsets[ask.last] + 1])
    if len(degrees) and not arrays.directed:
        hub = int(degrees.argmax())
        graph = int(np.searchsorted(arrays.offsets, arrays.offsets[ask.first] + hub, side="right")) - 1
        n_places = max(ask.radius - 1, 0) * float(degrees[hub]) ** 2
        require(8.0 * n_places * (1 + n_kept), _balls_of(graph, ask))


def _balls_of(graph: int, ask: Any) -> str:
    return f"Graph {graph}: its balls of radius {ask.radius}"


def _n_nodes(arrays: Any, ask: Any) -> int:
    return int(arrays.offsets[ask.last] - arrays.offsets[ask.first])


def _scratch(arrays: Any, ask: Any) -> Any:
    """Room for any ball of the largest of these graphs."""
    offsets = arrays.offsets[ask.first : ask.last + 1]
    n = int(np.diff(offsets).max(initial=0))
    n_arcs = int(np.diff(arrays.indptr[offsets]).max(initial=0))
    n_colors = 2 if ask.invariant == loops.NSPDK else ask.levels + 1
    ball = loops.Ball(
        order=np.empty(n, np.int64),
        distance=np.full(n, -1, np.int64),
        place=np.full(n, -1, np.int64),
        starts=np.empty(n + 1, np.int64),
        targets=np.empty(n_arcs, np.int64),
        arcs=np.empty(n_arcs, np.uint64),
        hops=np.empty(n, np.int64),
        queue=np.empty(n, np.int64),
        to_root=np.empty(n, np.int64),
    )
    return loops.Scratch(ball, np.empty((n_colors, n), np.uint64), np.empty((2, n), np.uint64))
