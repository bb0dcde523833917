"""ODD trees: which trees are rooted at each node, over the visits from all roots.

From every root r a breadth-first visit of depth h gives a DAG of shortest-path edges. Unrolled from a node v and cut
after j edges, it gives the tree T_j(v). Trees are never built: each is a 64-bit code, the label's hash joined with the sum of
the mixed codes of the children. A sum does not depend on the order of the children, so nothing is ever sorted, and equal children
are all counted. Two different trees among m get the same code with a probability of about m^2 / 2^65: 3e-8 for a million distinct
trees. Codes depend on the labels' values alone, so they are equal across runs, processes and machines.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import jit, pasted
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features, first_from, order_by_row
from treegram.structure.hashing import (
    arc_hashes,
    edge_name,
    empty_table,
    find,
    has_room,
    join,
    mix,
    node_hashes,
    node_name,
    number_codes,
    number_pairs,
)
from treegram.structure.visits import (
    DONE,
    FIRST,
    GRAPH,
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

PAPER, VISITS, CAPPED = 0, 1, 2
COUNTINGS = {"paper": PAPER, "visits": VISITS, "capped": CAPPED}
NODES_PER_TASK = 4096
LARGEST_SIZE = 1e300  # finite, so that its product with log(1) is 0; no weight other than 0 and 1 survives such sizes

# Per record: node, code, count, size of the tree, and the root and depth j where it was first seen.
TreeRecords = namedtuple("TreeRecords", "nodes codes counts sizes roots depths table")
# For one visit: order and distances of its nodes, codes and sizes of the trees T_j at each (nodes x depths).
Visit = namedtuple("Visit", "order distance codes sizes")


@dataclass(frozen=True)
class Phi(Features):
    """Counts of the trees rooted at each node; columns are trees."""

    sizes: Floats  # nodes of each tree after unrolling; a float, because it grows exponentially with the depth
    examples: Ints  # (n_trees, 3): root, node and j of one occurrence of the tree


def tree_features(
    graphs: Graphs,
    depth: int,
    *,
    counting: str = "paper",
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Phi:
    """Count the trees of depth at most ``depth`` at every node.

    Time and memory are linear in the number of nodes times the size of their neighborhoods of that depth.
    """
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    tasks = [(graphs, hashes, depth, COUNTINGS[counting], span) for span in graph_spans(graphs, NODES_PER_TASK)]
    results = list(run_tasks(_count_trees, tasks, n_jobs=n_jobs, label="trees"))
    lengths, numbers, counts, codes, sizes, examples = (list(column) for column in zip(*results, strict=True))
    all_codes = np.concatenate(codes)
    columns, firsts = number_codes(all_codes)
    index = np.int32 if sum(map(len, counts)) < 2**31 else np.int64
    columns = columns.astype(index, copy=False)
    starts = np.cumsum([len(part) for part in codes])[:-1]
    entries = (
        np.concatenate(counts),
        np.concatenate([np.take(*part) for part in zip(np.split(columns, starts), numbers, strict=True)]),
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(index),
    )
    return Phi(
        counts=sp.csr_matrix(entries, shape=(graphs.n_nodes, len(firsts))),
        codes=np.take(all_codes, firsts),
        sizes=np.take(np.concatenate(sizes), firsts),
        examples=np.take(np.concatenate(examples), firsts, axis=0),  # takes a third of the time of [firsts]
    )


def _count_trees(
    graphs: Graphs, hashes: tuple[Hashes, Hashes], depth: int, counting: int, span: tuple[int, int]
) -> tuple[Any, ...]:
    """Count the trees of some graphs: the number of trees of each node, their numbers and counts, and :class:`Phi`'s columns by number."""
    base = int(graphs.offsets[span[0]])
    n_nodes = int(graphs.offsets[span[1]]) - base
    largest = int(np.diff(graphs.offsets[span[0] : span[1] + 1]).max(initial=0))
    room = 16 * n_nodes + 64
    records = TreeRecords(
        nodes=np.empty(room, np.int64),
        codes=np.empty(room, np.uint64),
        counts=np.empty(room),
        sizes=np.empty(room),
        roots=np.empty(room, np.int64),
        depths=np.empty(room, np.int64),
        table=empty_table(0),
    )
    visited, single, state = new_visit(largest, depth), np.zeros(largest), start_at(span[0])
    arrays, asked = (graphs.offsets, graphs.indptr, graphs.indices), (float(depth), counting, span[1])

    def count(records: Any) -> int:
        return int(count_trees(arrays, hashes, asked, visited, single, state, records, STEPS_PER_CALL))

    records = run_loop(count, state, graphs.offsets, span[1], "trees", records)
    order, ends = order_by_row(records.nodes - base, n_nodes)
    codes = records.codes[order]
    numbers, firsts = number_pairs(codes, codes)
    firsts = order[firsts]
    return (
        np.diff(ends, prepend=0),
        numbers,
        records.counts[order],
        records.codes[firsts],
        records.sizes[firsts],
        np.column_stack([records.roots[firsts], records.nodes[firsts], records.depths[firsts]]),
    )


def tree_contributions(
    graphs: Graphs,
    phi: Phi,
    per_count: Floats,
    depth: int,
    *,
    counting: str,
    missing_labels: str,
    use_edge_labels: bool,
) -> Floats:
    """Divide the contribution of each tree at each node equally among the tree's nodes.

    ``per_count`` has a row for each entry of Phi, which must be sorted: what the tree contributes each time that it counts.
    A tree that is rooted at a node in several visits may have different nodes in each: all visits in which it is counted get
    the same amount. A node that occurs several times in an unrolled tree gets several portions. Shape (n_nodes,
    n_outputs).
    """
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    largest = int(graphs.sizes.max(initial=0))
    visited, state = new_visit(largest, depth), start_at(0)
    mass = np.zeros((*visited.codes.shape, per_count.shape[1]))
    contributions = np.zeros((graphs.n_nodes, per_count.shape[1]))
    codes = phi.codes[phi.counts.indices]  # ascending in each row, because columns are sorted by code
    entries = (phi.counts.indptr.astype(np.int64), codes, np.ascontiguousarray(per_count))
    arrays, asked = (graphs.offsets, graphs.indptr, graphs.indices), (float(depth), COUNTINGS[counting])

    def divide(_: None) -> int:
        return int(divide_trees(arrays, hashes, asked, visited, entries, mass, state, contributions, STEPS_PER_CALL))

    run_loop(divide, state, graphs.offsets, len(graphs), "contributions of trees")
    return contributions


def new_visit(n: int, depth: int) -> Any:
    """Return arrays for a visit of up to n nodes, none of which can be farther than n - 1 from the first."""
    n_depths = min(depth, max(n - 1, 0)) + 1
    return Visit(
        order=np.empty(n, np.int64),
        distance=np.full(n, -1, np.int64),
        codes=np.empty((n, n_depths), np.uint64),
        sizes=np.empty((n, n_depths)),
    )


def read_tree(graphs: Graphs, example: Ints, *, missing_labels: str, use_edge_labels: bool) -> str:
    """Return the tree at (root, node, j) as text: ``C(N,C(O))``, children in alphabetical order.

    With edge labels, ``C(1:N)`` is a C joined to an N by an edge labeled 1.
    """
    root, node, j = (int(x) for x in example)
    distance, queue = {root: 0}, [root]
    for v in queue:
        for w in graphs.indices[graphs.indptr[v] : graphs.indptr[v + 1]].tolist():
            if w not in distance:
                distance[w] = distance[v] + 1
                queue.append(w)
    words: dict[tuple[int, int], str] = {}

    def spell(v: int, below: int) -> str:
        if (v, below) not in words:
            children = []
            for arc in range(graphs.indptr[v], graphs.indptr[v + 1]) if below else ():
                w = int(graphs.indices[arc])
                if distance.get(w) == distance[v] + 1:
                    edge = f"{edge_name(graphs, arc)}:" if use_edge_labels else ""
                    children.append(edge + spell(w, below - 1))
            words[v, below] = node_name(graphs, v, missing_labels) + (
                f"({','.join(sorted(children))})" if children else ""
            )
        return words[v, below]

    return spell(node, j)


# -------------------------------------------------------------------- compiled: counting


@jit
def encode(n_visited, depth, base, arcs, hashes, visited):
    """Fill codes (uint64) and sizes of T_j(v) for all nodes v of one visit and 1 <= j <= depth - distance, leaves first."""
    (indptr, indices), (node_hashes, arc_hashes) = arcs, hashes
    order, distance, codes, sizes = visited
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


@pasted
def extra_count(counting, beyond, distance):
    """Return how many extra times the largest tree of a node in a visit counts.

    Trees cut below the DAG's lowest level repeat the last one: the paper's Algorithm 1 counts T_j for every j up to depth, "visits"
    those up to depth - distance.
    """
    extra = 0.0 if counting == CAPPED else beyond
    return extra + distance if counting == PAPER else extra


@jit
def _count_visit(n_visited, top, beyond, counting, visited, single, first, used, records):
    """Count the trees of one visit, those of one node in ``single``; return the number of records.

    The visit has no node farther than ``top``; ``beyond`` is by how much the depth exceeds it.
    """
    order, distance, codes, sizes = visited
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
    """Number the nodes of a finished graph among all, and add its trees of one node; return the number of records."""
    for i in range(first, used):
        records.nodes[i] += base
        records.roots[i] += base
    for v in range(n):  # the tree of one node is at every node: counted separately, never looked up
        records.nodes[used], records.codes[used], records.counts[used] = base + v, mix(node_hashes[base + v]), single[v]
        records.sizes[used], records.roots[used], records.depths[used] = 1.0, base + v, 0
        single[v] = 0.0
        used += 1
    return used


@jit
def count_trees(graphs, hashes, asked, visited, single, state, records, budget):
    """Count every tree at every node of the graphs state[GRAPH] .. last - 1, where ``asked`` is (depth, counting, last).

    The depth is a float: it may be far larger than any graph, and is then only a count. One record per node and tree, in an
    order that depends on the graph alone. Stops as described in ``structure.visits``.
    """
    (offsets, indptr, indices), (depth, counting, last) = graphs, asked
    used, first, g, root, steps = state[USED], state[FIRST], state[GRAPH], state[ROOT], 0
    while g < last:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        while root < n:
            n_visited = visit(root, np.int64(min(depth, n)), base, indptr, indices, visited.order, visited.distance)
            top = visited.distance[visited.order[n_visited - 1]]
            needed = used + n_visited * top + n
            is_room = has_room(needed, first, records.nodes, records.table)
            if steps > budget or not is_room:
                leave(n_visited, visited.order, visited.distance)
                save(state, used, first, g, root, 0)
                return PAUSED if is_room else needed
            encode(n_visited, top, base, (indptr, indices), hashes, visited)
            used = _count_visit(n_visited, top, depth - top, counting, visited, single, first, used, records)
            leave(n_visited, visited.order, visited.distance)
            steps += n_visited * (top + 1)
            root += 1
        used = _finish_graph(base, n, first, used, hashes[0], single, records)
        g, root, first = g + 1, 0, used
    save(state, used, first, g, root, 0)
    return DONE


# -------------------------------------------------------------------- compiled: contributions


@pasted
def _add_scaled(a, values, out):
    """Add a * values to out."""
    for o in range(len(out)):
        out[o] += a * values[o]


@jit
def _divide_visit(n_visited, top, beyond, counting, base, arcs, visited, entries, mass, contributions):
    """Divide what the trees of one visit contribute: each node of a tree gets the same amount, and passes it on to its children.

    ``mass[v, j, o]`` is what each node of T_j(v) gets, each time that T_j(v) is in a larger tree or is itself counted.
    """
    (indptr, indices), (order, distance, codes, sizes), (starts, entry_codes, per_count) = arcs, visited, entries
    for i in range(n_visited):
        mass[order[i], : top - distance[order[i]] + 1] = 0.0
    for i in range(n_visited):
        v = order[i]
        last = top - distance[v]
        for j in range(last + 1):
            count = 1.0 + extra_count(counting, beyond, distance[v]) if j == last else 1.0
            entry = first_from(codes[v, j], starts[base + v], starts[base + v + 1], entry_codes)
            _add_scaled(count / sizes[v, j], per_count[entry], mass[v, j])
            _add_scaled(1.0, mass[v, j], contributions[base + v])
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] == distance[v] + 1:
                for j in range(1, last + 1):
                    _add_scaled(1.0, mass[v, j], mass[w, j - 1])


@jit
def divide_trees(graphs, hashes, asked, visited, entries, mass, state, contributions, budget):
    """Divide what the trees at the nodes of the graphs state[GRAPH], ... contribute; ``asked`` is (depth, counting).

    ``entries`` are (starts, codes, per_count): the sorted codes of the trees at each node, and what each contributes per
    count, shape (n_entries, n_outputs). Stops as described in ``structure.visits``.
    """
    (offsets, indptr, indices), (depth, counting) = graphs, asked
    g, root, steps = state[GRAPH], state[ROOT], 0
    while g < len(offsets) - 1:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        while root < n:
            if steps > budget:
                save(state, 0, 0, g, root, 0)
                return PAUSED
            n_visited = visit(root, np.int64(min(depth, n)), base, indptr, indices, visited.order, visited.distance)
            top = visited.distance[visited.order[n_visited - 1]]
            encode(n_visited, top, base, (indptr, indices), hashes, visited)
            _divide_visit(
                n_visited, top, depth - top, counting, base, (indptr, indices), visited, entries, mass, contributions
            )
            leave(n_visited, visited.order, visited.distance)
            steps += n_visited * (top + 1)
            root += 1
        g, root = g + 1, 0
    return DONE
