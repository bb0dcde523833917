"""ODD trees: which trees are rooted at each node, over the visits from all roots (SPEC sections 2 and 3).

From every root r a breadth-first visit of depth h gives a DAG of shortest-path edges. Unrolled from a node v and cut
after j edges, it gives the tree T_j(v). Trees are never built: each is a 64-bit code, made from the label's hash and the
codes of the children. Two different trees among m get the same code with a probability of about m^2 / 2^65: 3e-8 for a
million distinct trees. Codes depend on the labels' values alone, so they are equal across runs, processes and machines.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram._parallel import run_tasks
from treegram.errors import InvalidGraphError
from treegram.graphs import Graphs
from treegram.structure import _trees

__all__ = ["COUNTINGS", "Phi", "hash_label", "node_hashes", "read_tree", "tree_features"]

COUNTINGS = {"algorithm": _trees.ALGORITHM, "visits": _trees.VISITS, "capped": _trees.CAPPED}
NODES_PER_TASK = 4096


@dataclass(frozen=True)
class Phi:
    """What each node's surroundings look like: how often each tree is rooted at each node."""

    counts: sp.csr_matrix  # (n_nodes, n_trees)
    codes: NDArray[np.uint64]  # of each tree, sorted
    sizes: NDArray[np.float64]  # nodes of each tree after unrolling; a float, as it grows exponentially with the depth
    seen: NDArray[np.int64]  # (n_trees, 3): root, node and j of one place where the tree is

    def aligned(self, codes: NDArray[np.uint64]) -> sp.csr_matrix:
        """The counts with one column for each of the given sorted codes; trees without a column are left out."""
        columns = np.searchsorted(codes, self.codes)
        columns[columns == len(codes)] = 0
        known = codes[columns] == self.codes if len(codes) else np.zeros(len(self.codes), bool)
        kept = known[self.counts.indices]
        indptr = np.concatenate([[0], np.cumsum(kept)])[self.counts.indptr]
        entries = (self.counts.data[kept], columns[self.counts.indices[kept]], indptr)
        return sp.csr_matrix(entries, shape=(self.counts.shape[0], len(codes)))


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
        _arc_hashes(graphs, use_edge_labels=use_edge_labels),
        depth,
        COUNTINGS[counting],
    )
    n_parts = max(1, min(len(graphs), graphs.n_nodes // NODES_PER_TASK))
    cuts = np.unique(np.searchsorted(graphs.offsets, graphs.n_nodes * np.arange(n_parts + 1) / n_parts))
    cuts = np.unique(np.concatenate([[0], cuts, [len(graphs)]]))
    tasks = [(*arrays, first, last) for first, last in pairwise(cuts)]
    parts = list(run_tasks(_trees.count_trees, tasks, n_jobs=n_jobs, label="trees"))
    if not parts:
        parts = [_trees.count_trees(*arrays, 0, 0)]
    nodes, codes, sizes, counts, seen = (np.concatenate(column) for column in zip(*parts, strict=True))
    ids, firsts = _trees.intern(codes)
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


# -------------------------------------------------------------------- labels


def hash_label(value: Hashable) -> int:
    """64 bits that depend on the label's value alone: never on the process, the machine or the data set."""
    return int.from_bytes(blake2b(_spell(value).encode(), digest_size=8, person=b"treegram").digest(), "little")


def _spell(value: Hashable) -> str:
    """A text that differs for different labels, the kind of value included."""
    if isinstance(value, tuple):
        return f"({','.join(_spell(part) for part in value)})"
    return f"{type(value).__name__}:{value!r}"


def node_hashes(graphs: Graphs, missing_labels: str) -> NDArray[np.uint64]:
    """The hash of each node's label; without labels, of its degree or of one constant."""
    if graphs.labels is not None:
        return np.array([hash_label(value) for value in graphs.label_values], np.uint64)[graphs.labels]
    codes = graphs.degrees if missing_labels == "degree" else np.zeros(graphs.n_nodes, np.int64)
    return np.array([hash_label(value) for value in range(int(codes.max(initial=0)) + 1)], np.uint64)[codes]


def _arc_hashes(graphs: Graphs, *, use_edge_labels: bool) -> NDArray[np.uint64]:
    if not use_edge_labels or not len(graphs.indices):
        return np.full(len(graphs.indices), _trees.GOLDEN)
    if graphs.edge_labels is None:
        raise InvalidGraphError("use_edge_labels=True, but the graphs have no edge labels.")
    return np.array([hash_label(value) for value in graphs.edge_label_values], np.uint64)[graphs.edge_labels]


# -------------------------------------------------------------------- reading a code back


def read_tree(graphs: Graphs, seen: NDArray[np.int64], *, missing_labels: str, use_edge_labels: bool) -> str:
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
                    edge = f"{_edge_name(graphs, arc)}:" if use_edge_labels else ""
                    children.append(edge + spell(w, below - 1))
            words[v, below] = _name(graphs, v, missing_labels) + (f"({','.join(sorted(children))})" if children else "")
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


def _name(graphs: Graphs, node: int, missing_labels: str) -> str:
    if graphs.labels is not None:
        return str(graphs.label_values[graphs.labels[node]])
    return str(graphs.degrees[node] if missing_labels == "degree" else 0)


def _edge_name(graphs: Graphs, arc: int) -> str:
    assert graphs.edge_labels is not None  # tree_features has checked it
    return str(graphs.edge_label_values[graphs.edge_labels[arc]])
