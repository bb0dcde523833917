"""Ordered trees: the occurrences of ODD trees node by node, with their children in sorted order.

``structure.trees`` counts trees by their labels; here each tree also lists the nodes of the graph that it consists of, so that
two equal trees can be compared node by node. For this, children need an order. They are sorted by their codes, which leaves
the order of equal subtrees open: a rule for ties decides it, and so determines which nodes are compared.
Subtrees are stored once. This is a plain reference implementation with dictionaries; nothing here is fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import jit
from treegram._core.parallel import track
from treegram._core.types import Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.hashing import arc_hashes, node_hashes
from treegram.structure.trees import CAPPED, COUNTINGS, PAPER, Phi, encode, new_visit
from treegram.structure.visits import leave, visit

__all__ = ["TIE_BREAKS", "Occurrences", "ordered_trees"]

TIE_BREAKS = ("lexicographic", "colexicographic", "given")


@dataclass(frozen=True)
class Occurrences:
    """Ordered trees at the nodes of some graphs, in the order of the graphs; the children of each are other trees."""

    graph_ids: Ints
    roots: Ints  # node at the root of each
    starts: Ints  # children of tree i: the trees children[starts[i] : starts[i + 1]]
    children: Ints
    phi: Phi  # one row for each occurrence, with one entry: how often it counts for its tree

    def nodes(self, chosen: Ints, size: int) -> Ints:
        """Return the nodes of the chosen trees, all of the same size: shape (n_chosen, size), parents before children."""
        nodes = np.empty((len(chosen), size), np.int64)
        unroll(chosen, self.roots, self.starts, self.children, nodes)
        return nodes


def ordered_trees(
    graphs: Graphs, depth: int, *, tie_break: str, counting: str, missing_labels: str, use_edge_labels: bool
) -> Occurrences:
    """Return all ordered trees of depth at most ``depth`` in the visits from all nodes, as ``structure.trees`` counts them.

    Ties between equal codes are broken by the attribute vectors along the whole subtrees, compared coordinate by
    coordinate from the first ("lexicographic") or the last ("colexicographic"), or by the nodes' numbers ("given"), the
    only rule that depends on how the nodes are numbered.
    """
    builder = _Builder()
    hashes = node_hashes(graphs, missing_labels)
    arc_codes = arc_hashes(graphs, use_edge_labels=use_edge_labels)
    ranks = _ranks(graphs, tie_break)
    for g in track(range(len(graphs)), total=len(graphs), label="trees"):
        builder.open(g)
        for one in _visits(graphs, g, depth, hashes, arc_codes):
            _add_visit(builder, one, arc_codes, ranks, depth, COUNTINGS[counting])
    return builder.close()


def _ranks(graphs: Graphs, tie_break: str) -> list[int] | None:
    """Return the rank of each node's vector among all vectors, equal for equal vectors; None: break ties by node number."""
    if tie_break == "given":
        return None
    if not graphs.n_attributes or not graphs.n_nodes:
        return [0] * graphs.n_nodes
    vectors = np.asarray(graphs.attributes) + 0.0  # so that -0.0 is 0.0
    columns = vectors.T if tie_break == "colexicographic" else vectors.T[::-1]
    order = np.lexsort(columns)
    changes = (vectors[order[1:]] != vectors[order[:-1]]).any(axis=1)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(changes)])
    return [int(rank) for rank in ranks]


@dataclass(frozen=True)
class _Visit:
    """The DAG of one root: its nodes in breadth-first order, and the codes and sizes of the trees below them."""

    order: list[int]
    distance: dict[int, int]
    children: dict[int, list[tuple[int, int]]]  # (arc, node), one step farther from the root
    codes: dict[int, list[int]]
    sizes: dict[int, list[float]]


def _visits(graphs: Graphs, g: int, depth: int, hashes: Hashes, arc_codes: Hashes) -> Iterator[_Visit]:
    base, n = int(graphs.offsets[g]), int(graphs.sizes[g])
    seen = new_visit(n, depth)
    order, distance, codes, sizes = seen
    indptr, indices = graphs.indptr, graphs.indices
    arcs = [[(arc, int(indices[arc])) for arc in range(indptr[v], indptr[v + 1])] for v in range(base, base + n)]
    for root in range(n):
        n_visited = visit(root, min(depth, n), base, indptr, indices, order, distance)
        encode(n_visited, distance[order[n_visited - 1]], base, (indptr, indices), (hashes, arc_codes), seen)
        visited = order[:n_visited].tolist()
        where = {base + v: int(distance[v]) for v in visited}
        yield _Visit(
            order=[base + v for v in visited],
            distance=where,
            children={
                base + v: [(arc, w) for arc, w in arcs[v] if where.get(w) == where[base + v] + 1] for v in visited
            },
            codes={base + v: codes[v].tolist() for v in visited},
            sizes={base + v: sizes[v].tolist() for v in visited},
        )
        leave(n_visited, order, distance)


def _add_visit(
    builder: _Builder, one: _Visit, arc_codes: Hashes, ranks: list[int] | None, depth: int, counting: int
) -> None:
    """Build T_j(v) for all nodes of a visit, leaves first, and count them."""
    top = one.distance[one.order[-1]]
    trees: dict[int, list[int]] = {}
    for v in reversed(one.order):
        last = top - one.distance[v]
        trees[v] = []
        for j in range(last + 1):
            below = [
                ((int(arc_codes[arc]), one.codes[w][j - 1], w if ranks is None else builder.keys[trees[w][j - 1]]), w)
                for arc, w in (one.children[v] if j else ())
            ]
            children = tuple(trees[w][j - 1] for _, w in sorted(below, key=lambda pair: pair[0]))
            tree = builder.find(v, children, one.codes[v][j], one.sizes[v][j], 0 if ranks is None else ranks[v])
            trees[v].append(tree)
            # Trees cut below the DAG's lowest level repeat the last one, as in ``trees.extra_count``.
            again = one.distance[v] if counting == PAPER else 0
            again += depth - top if counting != CAPPED else 0
            builder.counts[tree] += 1.0 + (again if j == last else 0)


@dataclass
class _Builder:
    """Trees by root and children, each stored once; filled graph by graph."""

    graph: int = -1
    known: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)  # of the current graph only
    graph_ids: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    children: list[tuple[int, ...]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)  # nested tuples that sort like the vectors along the trees

    def open(self, graph: int) -> None:
        """Start a graph; trees of earlier graphs are no longer looked up."""
        self.graph = graph
        self.known = {}

    def find(self, root: int, children: tuple[int, ...], code: int, size: float, rank: int) -> int:
        """Return the number of a tree; add it if it is new."""
        tree = self.known.setdefault((root, children), len(self.roots))
        if tree == len(self.roots):
            self.graph_ids.append(self.graph)
            self.roots.append(root)
            self.children.append(children)
            self.codes.append(code)
            self.sizes.append(size)
            self.counts.append(0.0)
            self.keys.append((rank, *(self.keys[child] for child in children)))
        return tree

    def close(self) -> Occurrences:
        """Return all trees as arrays."""
        n = len(self.roots)
        codes, first, columns = np.unique(np.array(self.codes, np.uint64), return_index=True, return_inverse=True)
        counts = sp.csr_matrix((np.array(self.counts), columns, np.arange(n + 1)), shape=(n, len(codes)))
        sizes = np.array(self.sizes, np.float64)[first]
        return Occurrences(
            graph_ids=np.array(self.graph_ids, np.int64),
            roots=np.array(self.roots, np.int64),
            starts=np.concatenate([[0], np.cumsum([len(c) for c in self.children], dtype=np.int64)]).astype(np.int64),
            children=np.array([tree for c in self.children for tree in c], np.int64),
            phi=Phi(counts, codes, sizes, np.empty((len(codes), 3), np.int64)),
        )


# -------------------------------------------------------------------- compiled


@jit(allocates=True)
def unroll(chosen, roots, starts, children, nodes):
    """Write the nodes of the chosen trees into the rows of ``nodes`` (int64), each before its children, in their order.

    The children of tree i are the trees children[starts[i] : starts[i + 1]]; all chosen trees have as many nodes as a row.
    """
    stack = np.empty(nodes.shape[1] + 1, np.int64)
    for row in range(len(chosen)):
        stack[0], n_waiting, n_read = chosen[row], 1, 0
        while n_waiting > 0:
            n_waiting -= 1
            tree = stack[n_waiting]
            nodes[row, n_read] = roots[tree]
            n_read += 1
            for i in range(starts[tree + 1] - 1, starts[tree] - 1, -1):
                stack[n_waiting] = children[i]
                n_waiting += 1
