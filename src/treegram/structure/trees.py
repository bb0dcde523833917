"""ODD trees: which trees are rooted at each node, over the visits from all roots (SPEC sections 2 and 3).

From every root r a breadth-first visit of depth h gives a DAG of shortest-path edges. Unrolled from a node v and cut
after j edges, it gives the tree T_j(v). Trees are never built: each is a 64-bit code, made from the label's hash and the
codes of the children. Two different trees among m get the same code with a probability of about m^2 / 2^65: 3e-8 for a
million distinct trees. Codes depend on the labels' values alone, so they are equal across runs, processes and machines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from treegram._parallel import run_tasks
from treegram._types import Floats, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features, graph_spans
from treegram.structure.labels import arc_hashes, edge_name, node_hashes, node_name
from treegram.structure.loops import trees as loops

__all__ = ["COUNTINGS", "Phi", "read_tree", "tree_features"]

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

    Time and memory are linear in the number of nodes times the size of their neighbourhoods of that depth.
    """
    arrays = (
        graphs.offsets,
        graphs.indptr,
        graphs.indices,
        node_hashes(graphs, missing_labels),
        arc_hashes(graphs, use_edge_labels=use_edge_labels),
        depth,
        COUNTINGS[counting],
    )
    tasks = [(*arrays, *span) for span in graph_spans(graphs, NODES_PER_TASK)]
    parts = list(run_tasks(loops.count_trees, tasks, n_jobs=n_jobs, label="trees"))
    nodes, codes, sizes, counts, seen = (np.concatenate(column) for column in zip(*parts, strict=True))
    ids, firsts = loops.intern(codes)
    order = np.argsort(codes[firsts])
    column = np.empty_like(order)
    column[order] = np.arange(len(order))
    firsts = firsts[order]
    matrix = sp.csr_matrix((counts, (nodes, column[ids])), shape=(graphs.n_nodes, len(firsts)))
    return Phi(
        counts=matrix,
        codes=codes[firsts],
        sizes=sizes[firsts],
        seen=np.column_stack([seen[firsts, 0], nodes[firsts], seen[firsts, 1]]),
    )


# -------------------------------------------------------------------- reading a code back


def read_tree(graphs: Graphs, seen: Ints, *, missing_labels: str, use_edge_labels: bool) -> str:
    """The tree seen at (root, node, j) in words: ``C(N,C(O))``, children in alphabetical order.

    With edge labels, ``C(1:N)`` is a C joined to an N by an edge labelled 1.
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
