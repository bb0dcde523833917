"""Trees whose nodes are known: the occurrences of ODD trees, with their children in sorted order.

``structure.trees`` counts trees by their labels; here each tree also says which nodes of the graph it consists of, so that
two equal trees can be compared node by node. For this, children need an order. They are sorted by their codes, which leaves
the order of equal subtrees open: a rule for ties decides, and with it decides what is compared with what.
Trees that share subtrees are stored once. This is a plain reference, with dictionaries; nothing here is fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.types import Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.labels import arc_hashes, node_hashes
from treegram.structure.loops import ordered as loops
from treegram.structure.loops.trees import ALGORITHM, CAPPED, encode
from treegram.structure.loops.visits import leave
from treegram.structure.loops.visits import visit as visit_from
from treegram.structure.trees import COUNTINGS, Phi, new_visit

__all__ = ["TIE_BREAKS", "Occurrences", "ordered_trees"]


TIE_BREAKS = ("lexicographic", "colexicographic", "given")


@dataclass(frozen=True)
class Occurrences:
    """Ordered trees in the nodes of some graphs, in the order of the graphs; each is the root of a tree of others."""

    graph_ids: Ints
    roots: Ints  # node at the root of each
    starts: Ints  # children of tree i: the trees children[starts[i] : starts[i + 1]]
    children: Ints
    phi: Phi  # one row for each occurrence, with one entry: how often it counts for its tree

    def nodes(self, chosen: Ints, size: int) -> Ints:
        """The nodes of the chosen trees, all of the same size: shape (n_chosen, size), parents before children."""
        nodes = np.empty((len(chosen), size), np.int64)
        loops.unroll(chosen, self.roots, self.starts, self.children, nodes)
        return nodes


def ordered_trees(
    graphs: Graphs, depth: int, *, tie_break: str, counting: str, missing_labels: str, use_edge_labels: bool
) -> Occurrences:
    """All ordered trees of depth at most ``depth`` in the visits from all nodes, as ``structure.trees`` counts them.

    Ties between equal codes are broken by the attribute vectors along the whole subtrees, compared coordinate by
    coordinate from the first ("lexicographic") or the last ("colexicographic"), or by the nodes' numbers ("given"), which
    is the one rule that does not look the same after the nodes are renumbered.
    """
    table = _Table()
    hashes = node_hashes(graphs, missing_labels)
    arc_codes = arc_hashes(graphs, use_edge_labels=use_edge_labels)
    ranks = _ranks(graphs, tie_break)
    for g in range(len(graphs)):
        table.open(g)
        for visit in _visits(graphs, g, depth, hashes, arc_codes):
            _add_visit(table, visit, arc_codes, ranks, depth, COUNTINGS[counting])
    return table.close()


def _ranks(graphs: Graphs, tie_break: str) -> list[int] | None:
    """The place of each node's vector in the order of all vectors, equal ones alike; None: nodes are told by number."""
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


# -------------------------------------------------------------------- visits


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
        n_visited = visit_from(root, min(depth, n), base, indptr, indices, order, distance)
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
    table: _Table, visit: _Visit, arc_codes: Hashes, ranks: list[int] | None, depth: int, counting: int
) -> None:
    """Make T_j(v) for all nodes of a visit, leaves first, and count them."""
    top = visit.distance[visit.order[-1]]
    trees: dict[int, list[int]] = {}
    for v in reversed(visit.order):
        last = top - visit.distance[v]
        trees[v] = []
        for j in range(last + 1):
            below = [
                ((int(arc_codes[arc]), visit.codes[w][j - 1], w if ranks is None else table.keys[trees[w][j - 1]]), w)
                for arc, w in (visit.children[v] if j else ())
            ]
            children = tuple(trees[w][j - 1] for _, w in sorted(below, key=lambda pair: pair[0]))
            tree = table.find(v, children, visit.codes[v][j], visit.sizes[v][j], 0 if ranks is None else ranks[v])
            trees[v].append(tree)
            # Trees cut below the DAG's floor repeat the last one, as ``loops.trees`` counts them.
            again = visit.distance[v] if counting == ALGORITHM else 0
            again += depth - top if counting != CAPPED else 0
            table.counts[tree] += 1.0 + (again if j == last else 0)


# -------------------------------------------------------------------- the table of all trees


@dataclass
class _Table:
    """Trees by what they are made of, each once; filled graph by graph."""

    graph: int = -1
    found: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)  # of the current graph only
    graph_ids: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    children: list[tuple[int, ...]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)  # nested tuples that sort as the vectors along the trees do

    def open(self, graph: int) -> None:
        """Trees of other graphs are not looked up any more."""
        self.graph = graph
        self.found = {}

    def find(self, root: int, children: tuple[int, ...], code: int, size: float, rank: int) -> int:
        """The number of a tree, made if it is new."""
        tree = self.found.setdefault((root, children), len(self.roots))
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
        """What has been found, as arrays."""
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
