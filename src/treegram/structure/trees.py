"""ODD trees: which trees are rooted at each node, over the visits from all roots.

From every root r a breadth-first visit of depth h gives a DAG of shortest-path edges. Unrolled from a node v and cut
after j edges, it gives the tree T_j(v). Trees are never built: each is a 64-bit code, made from the label's hash and the
codes of the children. Two different trees among m get the same code with a probability of about m^2 / 2^65: 3e-8 for a
million distinct trees. Codes depend on the labels' values alone, so they are equal across runs, processes and machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features, number_by_order, number_pairs
from treegram.structure.labels import arc_hashes, edge_name, node_hashes, node_name
from treegram.structure.loops import trees as loops
from treegram.structure.loops.tree_shares import share_trees
from treegram.structure.loops.visits import DONE
from treegram.structure.visits import STEPS_PER_CALL, empty_table, graph_spans, run_loop, start_at

__all__ = ["COUNTINGS", "Phi", "new_visit", "read_tree", "spread_trees", "tree_features"]

COUNTINGS = {"algorithm": loops.ALGORITHM, "visits": loops.VISITS, "capped": loops.CAPPED}
NODES_PER_TASK = 4096


@dataclass(frozen=True)
class Phi(Features):
    """Which trees are rooted at each node, how often; columns are trees."""

    sizes: Floats  # nodes of each tree after unrolling; a float, as it grows exponentially with the depth
    seen: Ints  # (n_trees, 3): root, node and j of one place where the tree is


def tree_features(
    graphs: Graphs,
    depth: int,
    *,
    counting: str = "algorithm",
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Phi:
    """Count the trees of depth at most ``depth`` at every node.

    Time and memory are linear in the number of nodes times the size of their neighborhoods of that depth.
    """
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    tasks = [(graphs, hashes, depth, COUNTINGS[counting], span) for span in graph_spans(graphs, NODES_PER_TASK)]
    parts = list(run_tasks(_count_some, tasks, n_jobs=n_jobs, label="trees"))
    lengths, numbers, counts, codes, sizes, seen = (list(column) for column in zip(*parts, strict=True))
    all_codes = np.concatenate(codes)
    columns, firsts = number_by_order(all_codes)
    index = np.int32 if sum(map(len, counts)) < 2**31 else np.int64
    columns = columns.astype(index, copy=False)
    starts = np.cumsum([len(some) for some in codes])[:-1]
    entries = (
        np.concatenate(counts),
        np.concatenate([np.take(own, some) for own, some in zip(np.split(columns, starts), numbers, strict=True)]),
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(index),
    )
    return Phi(
        counts=sp.csr_matrix(entries, shape=(graphs.n_nodes, len(firsts))),
        codes=np.take(all_codes, firsts),
        sizes=np.take(np.concatenate(sizes), firsts),
        seen=np.take(np.concatenate(seen), firsts, axis=0),  # in a third of the time that [firsts] takes
    )


def _count_some(
    graphs: Graphs, hashes: tuple[Hashes, Hashes], depth: int, counting: int, span: tuple[int, int]
) -> tuple[Any, ...]:
    """The trees of some graphs: how many each node has, by node their numbers and counts, and what :class:`Phi` has of each number."""
    base = int(graphs.offsets[span[0]])
    n_nodes = int(graphs.offsets[span[1]]) - base
    largest = int(np.diff(graphs.offsets[span[0] : span[1] + 1]).max(initial=0))
    room = 16 * n_nodes + 64
    records = loops.Records(
        nodes=np.empty(room, np.int64),
        codes=np.empty(room, np.uint64),
        counts=np.empty(room),
        sizes=np.empty(room),
        roots=np.empty(room, np.int64),
        depths=np.empty(room, np.int64),
        table=empty_table(0),
    )
    seen, single, state = new_visit(largest, depth), np.zeros(largest), start_at(span[0])
    arrays, asked = (graphs.offsets, graphs.indptr, graphs.indices), (float(depth), counting, span[1])

    def count(records: Any) -> int:
        return int(loops.count_trees(arrays, hashes, asked, seen, single, state, records, STEPS_PER_CALL))

    records = run_loop(count, state, records, "its trees")
    ends, order = np.zeros(n_nodes + 1, np.int64), np.empty(len(records.nodes), np.int64)
    loops.order_by_node(records.nodes, base, ends, order)
    codes = records.codes[order]
    numbers, firsts = number_pairs(codes, codes)
    firsts = order[firsts]
    return (
        np.diff(ends[:-1], prepend=0),
        numbers,
        records.counts[order],
        records.codes[firsts],
        records.sizes[firsts],
        np.column_stack([records.roots[firsts], records.nodes[firsts], records.depths[firsts]]),
    )


def spread_trees(
    graphs: Graphs,
    phi: Phi,
    values: Floats,
    depth: int,
    *,
    counting: str,
    missing_labels: str,
    use_edge_labels: bool,
) -> Floats:
    """Share what each tree at each node adds, one row of ``values`` for each entry of Phi, evenly among the tree's nodes.

    A tree that is rooted at a node in several visits may have other nodes in each: every visit in which it is counted has the
    same part. A node that is in an unrolled tree several times gets as many parts. Gives (n_nodes, n_outputs).
    """
    phi.counts.sort_indices()  # columns are sorted by their codes, and so are entries then
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    largest = int(graphs.sizes.max(initial=0))
    seen, state = new_visit(largest, depth), start_at(0)
    mass = np.zeros((*seen.codes.shape, values.shape[1]))
    shares = np.zeros((graphs.n_nodes, values.shape[1]))
    parts = np.ascontiguousarray(values / phi.counts.data[:, None])
    entries = (phi.counts.indptr.astype(np.int64), phi.codes[phi.counts.indices])
    arrays, asked = (graphs.offsets, graphs.indptr, graphs.indices), (float(depth), COUNTINGS[counting])
    while share_trees(arrays, hashes, asked, seen, entries, parts, mass, state, shares, STEPS_PER_CALL) != DONE:
        pass
    return shares


def new_visit(n: int, depth: int) -> Any:
    """Arrays for a visit of up to n nodes, none of which can be farther than n - 1 from the first."""
    n_depths = min(depth, max(n - 1, 0)) + 1
    return loops.Visit(
        order=np.empty(n, np.int64),
        distance=np.full(n, -1, np.int64),
        codes=np.empty((n, n_depths), np.uint64),
        sizes=np.empty((n, n_depths)),
    )


# -------------------------------------------------------------------- reading a code back


def read_tree(graphs: Graphs, seen: Ints, *, missing_labels: str, use_edge_labels: bool) -> str:
    """The tree seen at (root, node, j) in words: ``C(N,C(O))``, children in alphabetical order.

    With edge labels, ``C(1:N)`` is a C joined to an N by an edge labeled 1.
    """
    root, node, j = (int(x) for x in seen)
    distance = _distances(graphs, root)
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


def _distances(graphs: Graphs, root: int) -> dict[int, int]:
    distance, queue = {root: 0}, [root]
    for v in queue:
        for w in graphs.indices[graphs.indptr[v] : graphs.indptr[v + 1]].tolist():
            if w not in distance:
                distance[w] = distance[v] + 1
                queue.append(w)
    return distance
