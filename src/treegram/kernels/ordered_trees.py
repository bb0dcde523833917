"""C'_ST: the paper's first attempt, which compares trees node by node in an order that must be chosen; a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

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
BATCH_BYTES = 32 << 20  # of the vectors along trees that are in memory at a time


@dataclass(frozen=True)
class TreeView:
    """Graphs as the sums over pairs of whole trees see them: the ordered trees of each graph, each once."""

    n_graphs: int
    graph_ids: Ints  # of each tree, ascending
    trees: Sequence[tuple[int, ...]]  # the nodes of each tree, parents before children
    phi: Phi  # one row for each tree, with one entry: how often it counts
    weights: Floats  # of each tree
    vectors: Floats  # of each node
    node_kernel: NodeKernel

    @property
    def columns(self) -> Ints:
        """The code of each tree, as an index into ``phi.codes``."""
        return self.phi.counts.indices


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
        options = options_of(self, "tie_break", *TREE_OPTIONS)
        graph_ids, trees, phi = ordered_trees(graphs, self.depth, **options)
        if not rescales(self):
            refuse_overflow(phi.sizes, self.lam, self.depth)
        weights = weigh(phi, self.lam, graph_ids, rescale=rescales(self)).counts.data
        return TreeView(len(graphs), graph_ids, trees, phi, weights, *vectors_and_kernel(self, graphs))

    def _pair_sums(self, left: TreeView, right: TreeView | None) -> Floats:
        columns = left if right is None else right
        K = np.zeros((left.n_graphs, columns.n_graphs))
        for codes, size in _batches(_shared(left, right), left, columns):
            rows = _as_nodes(left, codes, size)
            column_nodes = None if right is None else _as_nodes(right, codes, size)
            weighting = Weighting.alike(len(codes))
            K += pair_sums(rows, column_nodes, columns.node_kernel, weighting, n_jobs=self.n_jobs)[0, 0]
        if right is None:
            np.fill_diagonal(K, self._self_sums(left))
        return K

    def _self_sums(self, view: TreeView) -> Floats:
        totals = np.zeros(view.n_graphs)
        for codes, size in _batches(view.phi.codes, view, view):
            nodes = _as_nodes(view, codes, size)
            totals += self_sums(nodes, view.node_kernel, Weighting.alike(len(codes)))[0, 0]
        return totals


def _shared(left: TreeView, right: TreeView | None) -> Hashes:
    """Return the sorted codes of the trees that two different graphs, one from each side, may have in common."""
    codes = left.phi.codes
    if right is not None:
        return common_codes(codes, right.phi.codes)
    # Trees are in the order of graphs: a code is in several if its first and its last are.
    first, last = np.full(len(codes), -1), np.full(len(codes), -1)
    last[left.columns] = left.graph_ids
    first[left.columns[::-1]] = left.graph_ids[::-1]
    return codes[first < last]


def _batches(codes: Hashes, left: TreeView, right: TreeView) -> Iterator[tuple[Hashes, int]]:
    """Yield groups of codes of equal size, so small that the vectors along their trees fit into BATCH_BYTES."""
    sizes = left.phi.sizes[np.searchsorted(left.phi.codes, codes)]
    for size in np.unique(sizes):
        group = codes[sizes == size]
        n_trees = sum(_count_trees(side, group) for side in (left, right))
        step = BATCH_BYTES / (8 * size * left.vectors.shape[1])
        parts = np.cumsum(n_trees) // max(step, 1)
        for part in np.split(group, np.flatnonzero(np.diff(parts)) + 1):
            yield part, int(size)


def _count_trees(view: TreeView, codes: Hashes) -> Ints:
    """Count the trees of each code."""
    counts = np.bincount(view.columns, minlength=len(view.phi.codes))
    return counts[np.searchsorted(view.phi.codes, codes)]


def _as_nodes(view: TreeView, codes: Hashes, size: int) -> Nodes:
    """Describe the trees of these codes, all of one size, as nodes of the engine: a tree's vectors are one long vector."""
    places = np.full(len(view.phi.codes), -1, np.int64)
    places[np.searchsorted(view.phi.codes, codes)] = np.arange(len(codes))
    positions = np.flatnonzero(places[view.columns] >= 0)
    columns = places[view.columns[positions]]
    entries = (view.weights[positions], columns, np.arange(len(positions) + 1))
    nodes = np.array([view.trees[i] for i in positions.tolist()], np.int64).reshape(len(positions), size)
    return Nodes(
        n_graphs=view.n_graphs,
        graph_ids=view.graph_ids[positions],
        blocks=codes[columns],
        vectors=view.vectors[nodes].reshape(len(positions), size * view.vectors.shape[1]),
        features=sp.csr_matrix(entries, shape=(len(positions), len(codes))),
    )


# -------------------------------------------------------------------- ordered trees
#
# ``structure.trees`` counts trees by their labels; here each tree also lists the nodes of the graph that it consists of, with
# children in sorted order. This is a plain reference implementation with dictionaries, not a fast one.


def ordered_trees(
    graphs: Graphs, depth: int, *, tie_break: str, counting: str, missing_labels: str, use_edge_labels: bool
) -> tuple[Ints, list[tuple[int, ...]], Phi]:
    """Return the ordered trees of depth at most ``depth`` in the visits from all nodes: the graph and the nodes of each, and counts.

    They count as in ``structure.trees``. Ties between equal codes are broken by the attribute vectors along the whole subtrees,
    compared coordinate by coordinate from the first ("lexicographic") or the last ("colexicographic"), or by the nodes' numbers
    ("given"), the only rule that depends on how the nodes are numbered.
    """
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    ranks = _ranks(graphs, tie_break)
    counts = list[Counter[tuple[int, tuple[int, ...]]]]()  # for each graph, by the code and the nodes of a tree
    for g in track(range(len(graphs)), total=len(graphs), label="trees"):
        base, n = int(graphs.offsets[g]), int(graphs.sizes[g])
        visited = new_visit(n, depth)
        counts.append(Counter())
        for root in range(n):
            n_visited = visit(root, min(depth, n), base, graphs.indptr, graphs.indices, visited.order, visited.distance)
            top = int(visited.distance[visited.order[n_visited - 1]])
            encode(n_visited, top, base, (graphs.indptr, graphs.indices), hashes, visited)
            for v, j, code, nodes in _visited_trees(graphs, base, visited, n_visited, hashes[1], ranks):
                # Trees cut below the DAG's lowest level repeat the last one, as in ``trees.extra_count``.
                distance = int(visited.distance[v])
                again = distance if counting == "paper" else 0
                again += depth - top if counting != "capped" else 0
                counts[g][code, nodes] += 1 + (again if j == top - distance else 0)
            leave(n_visited, visited.order, visited.distance)
    trees = [nodes for count in counts for _, nodes in count]
    codes = np.array([code for count in counts for code, _ in count], np.uint64)
    codes, first, columns = np.unique(codes, return_index=True, return_inverse=True)
    numbers = np.array([number for count in counts for number in count.values()], np.float64)
    phi = Phi(
        counts=sp.csr_matrix((numbers, columns, np.arange(len(trees) + 1)), shape=(len(trees), len(codes))),
        codes=codes,
        sizes=np.array([len(trees[i]) for i in first.tolist()], np.float64),
        examples=np.empty((len(codes), 3), np.int64),
    )
    return np.repeat(np.arange(len(graphs)), [len(count) for count in counts]), trees, phi


def _ranks(graphs: Graphs, tie_break: str) -> list[int]:
    """Return the rank of each node among all nodes, by its vector or by its number; equal vectors have the same rank."""
    if tie_break == "given":
        return list(range(graphs.n_nodes))
    if not graphs.n_attributes or not graphs.n_nodes:
        return [0] * graphs.n_nodes
    vectors = np.asarray(graphs.attributes) + 0.0  # so that -0.0 is 0.0
    columns = vectors[:, ::-1] if tie_break == "colexicographic" else vectors
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel().tolist()


def _visited_trees(
    graphs: Graphs, base: int, visited: Any, n_visited: int, arc_codes: Hashes, ranks: list[int]
) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield v, j, and the code and the nodes of T_j(v), for all nodes v of a visit, leaves first."""
    order, distance, codes, _ = (array.tolist() for array in visited)
    top, trees = distance[order[n_visited - 1]], dict[int, list[tuple[int, ...]]]()
    for v in reversed(order[:n_visited]):
        arcs = range(graphs.indptr[base + v], graphs.indptr[base + v + 1])
        ends = [(int(arc_codes[arc]), int(graphs.indices[arc]) - base) for arc in arcs]
        ends = [(code, w) for code, w in ends if distance[w] == distance[v] + 1]
        trees[v] = []
        for j in range(top - distance[v] + 1):
            children = [
                (code, codes[w][j - 1], [ranks[node] for node in trees[w][j - 1]], trees[w][j - 1])
                for code, w in (ends if j else ())
            ]
            children.sort(key=lambda child: child[:3])
            trees[v].append((base + v, *(node for child in children for node in child[3])))
            yield v, j, codes[v][j], trees[v][j]
