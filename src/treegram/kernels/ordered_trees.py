"""C'_ST: the paper's first attempt, which compares trees node by node in an order that must be chosen; a reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import jit
from treegram._core.parallel import track
from treegram._core.params import Words, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel, options_of
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import vectors_and_kernel
from treegram.kernels.oddcl import TREE_GRID, TREE_OPTIONS, TREES, refuse_overflow, rescales, weigh
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.nodes import Nodes, Weighting, pair_sums, self_sums
from treegram.structure.features import common_codes
from treegram.structure.hashing import arc_hashes, node_hashes
from treegram.structure.trees import Phi, encode, new_visit
from treegram.structure.visits import leave, visit

TIE_BREAKS = ("lexicographic", "colexicographic", "given")
BATCH_BYTES = 32 << 20  # of the vectors along trees that are held at a time


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


@dataclass(frozen=True)
class TreeView:
    """Graphs as the sums over pairs of whole trees see them."""

    n_graphs: int
    trees: Occurrences
    weights: Floats  # of each occurrence
    vectors: Floats  # of each node
    node_kernel: NodeKernel

    @property
    def codes(self) -> Ints:
        """The tree of each occurrence, as an index into ``trees.phi.codes``."""
        codes: Ints = self.trees.phi.counts.indices
        return codes


@parameters
class OrderedTrees(GraphKernel):
    r"""Tree kernel that compares the vectors at all nodes of a tree, in sorted order (C'_ST); a reference.

    The paper's first attempt at ODDCL, kept to show why it was rejected. Two equal trees, at the roots
    :math:`v` and :math:`v'`, are aligned, and the vectors of all corresponding nodes are compared:

    .. math:: C'(v, v') = \lambda \, k_A(x_v, x_{v'}) \prod_j C'(ch_j(v), ch_j(v'))

    Here :math:`ch_j` is the j-th child in sorted order, :math:`\lambda` is ``lam``, :math:`k_A(x_v, x_{v'}) =
    \exp(-\gamma \|x_v - x_{v'}\|^2)`. The kernel of two graphs is the sum of C' over all pairs of trees, counted as
    in :class:`ODDCL`. Equal subtrees have no order of their own: ``tie_break`` chooses one, and the value depends on it.

    Parameters
    ----------
    depth : int, default=3
        Depth of the visits, the paper's h. At 0 only the nodes themselves are compared.
    lam : float, default=1.0
        Weight of large trees: each tree node multiplies a tree's weight by ``lam``.
    gamma : float, {"scale", "narrow", "white"} or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes). A word is a rule for the vectors of the fitted nodes: "scale" means 1 / (number of attributes *
        mean variance of an attribute), which suits attributes of any range; "narrow" means eight times that, which suits scaled
        vectors in clusters, and "white" 0.2, which suits whitened vectors; both at most 1 / (squared distance of the nearest
        twentieth of all pairs). Other named kernels that have a gamma use it too.
    counting : {"paper", "visits", "capped"}, default="paper"
        How often a tree counts: "paper", as in Algorithm 1 of the paper; "visits", over all visits, as in a related module of the
        authors' code (we infer that their ODDCL did the same); "capped", as in their ODD_ST code (a visit that has reached
        the whole component is not counted again).
    tie_break : {"lexicographic", "colexicographic", "given"}, default="lexicographic"
        The order of siblings with equal subtrees: by their vectors, first coordinate first, or last coordinate first, going
        down the subtrees where vectors are equal; or by the numbers of the nodes in the input. (Reversing an order
        changes nothing, because it is reversed on both sides.)
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value that was learned for a word; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    ODDCL : what the paper proposes instead: vectors at the roots alone, over all pairs, so that no order is needed.

    Notes
    -----
    Positive semidefinite for each ``tie_break``: it is a product of node kernels on the sequence of vectors that a tree
    defines once its order is fixed. Isomorphic graphs are equal under the first two rules, but not under "given". Yet under
    any rule the value jumps when a small change in a vector makes two siblings swap places, and different rules give
    different values. Without attributes, or with ``gamma=0``, this is the kernel of :class:`ODDST`.

    Trees are found by plain Python code, and compared as vectors of all their nodes, in batches: for hundreds of
    graphs, not for speed. Trees grow exponentially with ``depth``.

    References
    ----------
    G. Da San Martino, N. Navarin, A. Sperduti: A tree-based kernel for graphs with continuous attributes.
    IEEE Transactions on Neural Networks and Learning Systems, 2018, equation (4).

    Examples
    --------
    Two drawings of one star, whose leaves have the same label but not the same vectors:

    >>> from treegram import ODDCL, Graphs, OrderedTrees
    >>> stars = Graphs.from_edges([[(0, 1), (0, 2)]] * 2, labels=[["C"] * 3] * 2, attributes=[[[0], [1], [3]], [[0], [3], [1]]])
    >>> for tie_break in ("lexicographic", "given"):
    ...     print(OrderedTrees(depth=1, tie_break=tie_break).fit_transform(stars)[0, 1].round(3))
    1.0
    0.983
    >>> ODDCL(depth=1).fit_transform(stars)[0, 1].round(3)
    np.float64(1.0)
    """

    name = "orderedtrees"
    node_kernel = "rbf"  # the product of Gaussians along a tree is the Gaussian of its vectors, joined into one
    _default_param_grid = TREE_GRID
    _allowed = {**TREES, "tie_break": (Words(*TIE_BREAKS),)}

    depth: int = field(default=3, kw_only=False)
    lam: float = 1.0
    gamma: float | str | None = None
    counting: str = "paper"
    tie_break: str = "lexicographic"
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _describe(self, graphs: Graphs, grid: Grid) -> TreeView:  # noqa: ARG002 (no one-pass parameters)
        trees = ordered_trees(graphs, self.depth, tie_break=self.tie_break, **options_of(self, *TREE_OPTIONS))
        if not rescales(self):
            refuse_overflow(trees.phi.sizes, self.lam, self.depth)
        weights = weigh(trees.phi, self.lam, trees.graph_ids, rescale=rescales(self)).counts.data
        return TreeView(len(graphs), trees, weights, *vectors_and_kernel(self, graphs))

    def _pair_sums(self, left: TreeView, right: TreeView | None) -> Floats:
        columns = left if right is None else right
        K = np.zeros((left.n_graphs, columns.n_graphs))
        for codes, size in _batches(_shared(left, right), left, columns):
            rows = _as_nodes(left, codes, size)
            others = None if right is None else _as_nodes(right, codes, size)
            K += pair_sums(rows, others, columns.node_kernel, Weighting.alike(len(codes)), n_jobs=self.n_jobs)[0, 0]
        if right is None:
            np.fill_diagonal(K, self._self_sums(left))
        return K

    def _self_sums(self, described: TreeView) -> Floats:
        totals = np.zeros(described.n_graphs)
        for codes, size in _batches(described.trees.phi.codes, described, described):
            nodes = _as_nodes(described, codes, size)
            totals += self_sums(nodes, described.node_kernel, Weighting.alike(len(codes)))[0, 0]
        return totals


def _shared(left: TreeView, right: TreeView | None) -> Hashes:
    """Return the sorted codes of the trees that two different graphs, one from each side, may have in common."""
    codes = left.trees.phi.codes
    if right is not None:
        return common_codes(codes, right.trees.phi.codes)
    # A tree's occurrences are in the order of graphs: it is in several if its first and last are.
    graphs, columns = left.trees.graph_ids, left.codes
    first, last = np.full(len(codes), -1), np.full(len(codes), -1)
    last[columns] = graphs
    first[columns[::-1]] = graphs[::-1]
    return codes[first < last]


def _batches(codes: Hashes, left: TreeView, right: TreeView) -> Iterator[tuple[Hashes, int]]:
    """Yield groups of codes of equal size, so small that the vectors along their trees fit into BATCH_BYTES."""
    phi = left.trees.phi
    sizes = phi.sizes[np.searchsorted(phi.codes, codes)]
    for size in np.unique(sizes):
        group = codes[sizes == size]
        occurrences = sum(_occurrences(side, group) for side in (left, right))
        step = BATCH_BYTES / (8 * size * left.vectors.shape[1])
        parts = np.cumsum(occurrences) // max(step, 1)
        for part in np.split(group, np.flatnonzero(np.diff(parts)) + 1):
            yield part, int(size)


def _occurrences(side: TreeView, codes: Hashes) -> Ints:
    """Count the occurrences of each code."""
    known = side.trees.phi.codes
    return np.bincount(side.codes, minlength=len(known))[np.searchsorted(known, codes)]


def _as_nodes(side: TreeView, codes: Hashes, size: int) -> Nodes:
    """Describe occurrences of trees of one size as nodes of the engine: a tree's vectors are one long vector."""
    known = side.trees.phi.codes
    columns = np.full(len(known), -1, np.int64)
    columns[np.searchsorted(known, codes)] = np.arange(len(codes))
    columns = columns[side.codes]
    chosen = np.flatnonzero(columns >= 0)
    entries = (side.weights[chosen], columns[chosen], np.arange(len(chosen) + 1))
    return Nodes(
        n_graphs=side.n_graphs,
        graph_ids=side.trees.graph_ids[chosen],
        blocks=codes[columns[chosen]],
        vectors=side.vectors[side.trees.nodes(chosen, size)].reshape(len(chosen), size * side.vectors.shape[1]),
        features=sp.csr_matrix(entries, shape=(len(chosen), len(codes))),
    )


# -------------------------------------------------------------------- ordered trees
#
# ``structure.trees`` counts trees by their labels; here each tree also lists the nodes of the graph that it consists of, with
# children in sorted order. Subtrees are stored once. This is a plain reference implementation with dictionaries, not a fast one.


def ordered_trees(
    graphs: Graphs, depth: int, *, tie_break: str, counting: str, missing_labels: str, use_edge_labels: bool
) -> Occurrences:
    """Return all ordered trees of depth at most ``depth`` in the visits from all nodes, as ``structure.trees`` counts them.

    Ties between equal codes are broken by the attribute vectors along the whole subtrees, compared coordinate by
    coordinate from the first ("lexicographic") or the last ("colexicographic"), or by the nodes' numbers ("given"), the
    only rule that depends on how the nodes are numbered.
    """
    builder = _Builder()
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    ranks = _ranks(graphs, tie_break)
    for g in track(range(len(graphs)), total=len(graphs), label="trees"):
        builder.open(g)
        base, n = int(graphs.offsets[g]), int(graphs.sizes[g])
        seen = new_visit(n, depth)
        for root in range(n):
            n_visited = visit(root, min(depth, n), base, graphs.indptr, graphs.indices, seen.order, seen.distance)
            top = int(seen.distance[seen.order[n_visited - 1]])
            encode(n_visited, top, base, (graphs.indptr, graphs.indices), hashes, seen)
            for v, j, tree in _build_trees(builder, graphs, base, seen, n_visited, hashes[1], ranks):
                # Trees cut below the DAG's lowest level repeat the last one, as in ``trees.extra_count``.
                distance = int(seen.distance[v])
                again = distance if counting == "paper" else 0
                again += depth - top if counting != "capped" else 0
                builder.counts[tree] += 1.0 + (again if j == top - distance else 0)
            leave(n_visited, seen.order, seen.distance)
    return builder.close()


def _ranks(graphs: Graphs, tie_break: str) -> list[int] | None:
    """Return the rank of each node's vector among all vectors, equal for equal vectors; None: break ties by node number."""
    if tie_break == "given":
        return None
    if not graphs.n_attributes or not graphs.n_nodes:
        return [0] * graphs.n_nodes
    vectors = np.asarray(graphs.attributes) + 0.0  # so that -0.0 is 0.0
    columns = vectors[:, ::-1] if tie_break == "colexicographic" else vectors
    ranks: list[int] = np.unique(columns, axis=0, return_inverse=True)[1].ravel().tolist()
    return ranks


def _build_trees(
    builder: _Builder, graphs: Graphs, base: int, seen: Any, n_visited: int, arc_codes: Hashes, ranks: list[int] | None
) -> Iterator[tuple[int, int, int]]:
    """Build T_j(v) for all nodes v of a visit, leaves first; yield v, j and the number of the tree."""
    order, distance, codes, sizes = (array.tolist() for array in seen)
    top, trees = distance[order[n_visited - 1]], dict[int, list[int]]()
    for v in reversed(order[:n_visited]):
        arcs = range(graphs.indptr[base + v], graphs.indptr[base + v + 1])
        ends = [(int(arc_codes[arc]), int(graphs.indices[arc]) - base) for arc in arcs]
        ends = [(code, w) for code, w in ends if distance[w] == distance[v] + 1]
        trees[v] = []
        for j in range(top - distance[v] + 1):
            below = [
                ((code, codes[w][j - 1], w if ranks is None else builder.keys[trees[w][j - 1]]), w)
                for code, w in (ends if j else ())
            ]
            children = tuple(trees[w][j - 1] for _, w in sorted(below, key=lambda pair: pair[0]))
            rank = 0 if ranks is None else ranks[base + v]
            trees[v].append(builder.find(base + v, children, codes[v][j], sizes[v][j], rank))
            yield v, j, trees[v][j]


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
