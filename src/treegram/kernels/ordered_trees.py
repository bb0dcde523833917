"""C'_ST: the paper's first attempt, which compares trees node by node in an order that must be chosen; a reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.sparse as sp

from treegram._core.params import Words, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel, options_of
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import NODE_KERNEL, vectors_and_kernel
from treegram.kernels.oddcl import TREE_GRID, TREE_OPTIONS, TREES, refuse_overflow, weigh
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.nodes import Nodes, Weighting, pair_sums, self_sums
from treegram.structure.features import common_codes
from treegram.structure.ordered import TIE_BREAKS, Occurrences, ordered_trees

__all__ = ["OrderedTrees"]

BATCH_BYTES = 32 << 20  # of the vectors along trees that are held at a time


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

    Here :math:`ch_j` is the j-th child in sorted order, :math:`\lambda` is ``lam``, :math:`k_A` is ``node_kernel``, by default
    :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`. The kernel of two graphs is the sum of C' over all pairs of trees, counted as
    in :class:`ODDCL`. Equal subtrees have no order of their own: ``tie_break`` chooses one, and the value depends on it.

    Parameters
    ----------
    depth : int, default=3
        Depth of the visits, the paper's h. At 0 only the nodes themselves are compared.
    lam : float, default=1.0
        Weight of large trees: each tree node multiplies a tree's weight by ``lam``.
    gamma : float, "scale" or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes); "scale" means 1 / (number of attributes * mean variance of an attribute over the fitted
        nodes), which suits attributes of any range. Other named kernels that have a gamma use it too.
    counting : {"paper", "visits", "capped"}, default="paper"
        How often a tree counts: "paper", as in Algorithm 1 of the paper; "visits", over all visits, as in a related module of the
        authors' code (we infer that their ODDCL did the same); "capped", as in their ODD_ST code (a visit that has reached
        the whole component is not counted again).
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
    tie_break : {"lexicographic", "colexicographic", "given"}, default="lexicographic"
        The order of siblings with equal subtrees: by their vectors, first coordinate first, or last coordinate first, going
        down the subtrees where vectors are equal; or by the numbers of the nodes in the input. (Reversing an order
        changes nothing, because it is reversed on both sides.)
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value used for ``gamma="scale"``; absent for any other ``gamma``.
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
    _default_param_grid = TREE_GRID
    _allowed = {**TREES, **NODE_KERNEL, "tie_break": (Words(*TIE_BREAKS),)}

    depth: int = field(default=3, kw_only=False)
    lam: float = 1.0
    gamma: float | str | None = None
    counting: str = "paper"
    node_kernel: str | NodeKernel = "rbf"
    tie_break: str = "lexicographic"
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _describe(self, graphs: Graphs, grid: Grid) -> TreeView:  # noqa: ARG002 (no one-pass parameters)
        trees = ordered_trees(graphs, self.depth, tie_break=self.tie_break, **options_of(self, *TREE_OPTIONS))
        rescale = self._normalization == "cosine"
        if not rescale:
            refuse_overflow(trees.phi.sizes, self.lam, self.depth)
        weights = weigh(trees.phi, self.lam, trees.graph_ids, rescale=rescale).counts.data
        return TreeView(len(graphs), trees, weights, *vectors_and_kernel(self, graphs))

    def _pair_sums(self, left: TreeView, right: TreeView | None) -> Floats:
        columns = left if right is None else right
        K = np.zeros((left.n_graphs, columns.n_graphs))
        for codes, size in _batches(_shared(left, right), left, columns):
            rows = _as_nodes(left, codes, size)
            others = None if right is None else _as_nodes(right, codes, size)
            kernel = _along_trees(columns.node_kernel, size)
            K += pair_sums(rows, others, kernel, Weighting.alike(len(codes)), n_jobs=self.n_jobs)[0, 0]
        if right is None:
            np.fill_diagonal(K, self._self_sums(left))
        return K

    def _self_sums(self, described: TreeView) -> Floats:
        totals = np.zeros(described.n_graphs)
        for codes, size in _batches(described.trees.phi.codes, described, described):
            kernel = _along_trees(described.node_kernel, size)
            totals += self_sums(_as_nodes(described, codes, size), kernel, Weighting.alike(len(codes)))[0, 0]
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


def _along_trees(node_kernel: NodeKernel, size: int) -> NodeKernel:
    """Return the product of node kernels along trees; for Gaussians, the Gaussian of the long vectors."""
    return node_kernel if isinstance(node_kernel, Gaussian) else partial(_product, node_kernel, size)


def _product(node_kernel: NodeKernel, size: int, X: Floats, Y: Floats) -> Floats:
    d = X.shape[1] // size
    block = np.ones((len(X), len(Y)))
    # NaN is detected in the kernels of graphs with themselves.
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(0, size * d, d):
            block *= node_kernel(X[:, i : i + d], Y[:, i : i + d])
    return block
