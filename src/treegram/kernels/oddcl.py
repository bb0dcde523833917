"""The paper's kernels of trees, ODDCL_ST for labels and vectors and ODD_ST for labels, and the weighted trees of all ODD kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.params import Allowed, Number, Whole, Words, parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import options_of
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid, GridPoint, grid_params
from treegram.kernels.node_pairs import NodePairKernel, WeightedFeatures
from treegram.pairsum.products import sum_rows
from treegram.structure.features import Features
from treegram.structure.trees import COUNTINGS, Phi, read_tree, tree_contributions, tree_features

TREES: Mapping[str, Allowed] = {
    "depth": (Whole(0),),
    "lam": (Number(0, above=True),),
    "counting": (Words(*COUNTINGS),),
}
TREE_GRID: Grid = {"depth": [0, 1, 2, 3], "lam": [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]}  # the paper's
TREE_OPTIONS = ("counting", "missing_labels", "use_edge_labels")

# lam ** size stays below 1e260: products of counts then have fifty orders of magnitude left before they overflow.
_LARGEST_EXPONENT = 260 * np.log(10)
# Below this, weights are rescaled if the kernel is normalized: kernels of graphs with themselves may be 0.
SMALLEST_LAM = 1e-100


@parameters
class ODDCL(NodePairKernel):
    r"""Tree kernel for graphs with labels and vectors at the nodes (ODDCL_ST).

    Two graphs are similar when they have nodes at which the same labeled trees are rooted and whose vectors are close:

    .. math:: K(G, G') = \sum_{v \in G, v' \in G'} k_A(x_v, x_{v'}) \sum_t \lambda^{|t|} F_{v,t} F_{v',t}

    Here :math:`F_{v,t}` is how often the tree :math:`t` is rooted at the node :math:`v` in the visits of depth ``depth``
    from all nodes (``counting``), :math:`|t|` its number of nodes, :math:`\lambda` is ``lam``, :math:`x_v` the vector of
    :math:`v`, and :math:`k_A` is ``node_kernel``, by default :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`.

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
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
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
    ODDST : the same trees without the vectors.

    Notes
    -----
    Exact: nothing is approximated. Time is that of one k_A for each pair of nodes with equal labels (nodes of one graph
    with equal label and vector count once, pairs too far apart to matter in double precision not at all); memory is
    that of the result. Without attributes k_A is 1 and the kernel is that of :class:`ODDST`.

    References
    ----------
    G. Da San Martino, N. Navarin, A. Sperduti: A tree-based kernel for graphs with continuous attributes.
    IEEE Transactions on Neural Networks and Learning Systems, 2018.

    Examples
    --------
    >>> from treegram import ODDCL, Graphs
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["C", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> ODDCL(depth=1).fit_transform(graphs).round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    """

    name = "oddcl"
    _one_pass = ("depth", "lam")
    _explained_by = "trees"
    _default_param_grid = TREE_GRID
    _allowed = TREES

    depth: int = field(default=3, kw_only=False)
    lam: float = 1.0
    counting: str = "paper"
    use_edge_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[Features]:
        lams, rescale, groups = grid["lam"], rescales(self), list[Features]()
        for depth in grid["depth"]:
            phi = count_trees(self, graphs, depth)
            if not rescale:
                refuse_overflow(phi.sizes, max(lams), depth)
            if len(lams) == 1:
                groups.append(weigh(phi, lams[0], graphs.graph_ids, rescale=rescale, in_place=True))
                continue
            sizes, kinds = np.unique(phi.sizes, return_inverse=True)
            weights = np.power(np.asarray(lams, np.float64), sizes[:, None])
            groups.append(WeightedFeatures(phi.counts, phi.codes, kinds, weights))
        return groups

    def _spread_over_nodes(self, graphs: Graphs, features: Any, per_value: Floats) -> Floats:
        factors = tree_weights(features, self.lam, graphs.graph_ids, rescale=rescales(self))
        return spread_counted_trees(self, graphs, features, per_value * factors[:, None])

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:
        return _name_tree(self, graphs, features, column)

    def _grid_pass(self, X: Graphs, X_new: Graphs, param_grid: Grid) -> list[GridPoint]:
        """Compute a grid in one pass, and each lambda that could overflow or vanish in a separate pass, which rescales graphs.

        A tree has at most as many nodes as there are walks of at most its depth from its root.
        """
        one_pass, lams = partial(super()._grid_pass, X, X_new), param_grid.get("lam", ())
        if not rescales(self) or len(lams) < 2:
            return one_pass(param_grid)
        largest = _most_walks(X, max(param_grid.get("depth", [self.depth])))
        alone = [lam for lam in lams if _overflows(largest, lam) or lam < SMALLEST_LAM]
        if not alone:
            return one_pass(param_grid)
        passes = [[lam for lam in lams if lam not in alone], *([lam] for lam in alone)]
        points = [point for together in passes if together for point in one_pass({**param_grid, "lam": together})]
        by_params = {tuple(point.params.values()): point for point in points}
        return [by_params[tuple(params.values())] for params in grid_params(param_grid)]


@parameters
class ODDST(ExplicitKernel):
    r"""Tree kernel on discrete labels (ODD_ST), with its explicit features.

    Two graphs are similar when the same labeled trees are rooted at their nodes:

    .. math:: K(G, G') = \sum_t \lambda^{|t|} f_t(G) f_t(G')

    Here :math:`f_t(G)` is how often the tree :math:`t` is rooted at a node of :math:`G` in the visits of depth ``depth``
    from all nodes (``counting``), :math:`|t|` its number of nodes, and :math:`\lambda` is ``lam``. Vectors are not used.

    Parameters
    ----------
    depth : int, default=3
        Depth of the visits, the paper's h. At 0 only the nodes themselves are compared.
    lam : float, default=1.0
        Weight of large trees: each tree node multiplies a tree's weight by ``lam``.
    counting : {"paper", "visits", "capped"}, default="paper"
        How often a tree counts: "paper", as in Algorithm 1 of the paper; "visits", over all visits, as in a related module of the
        authors' code (we infer that their ODDCL did the same); "capped", as in their ODD_ST code (a visit that has reached
        the whole component is not counted again).
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
    n_attributes_in_ : int
        Dimension of their vectors, which this kernel does not use.

    See Also
    --------
    ODDCL : the same trees, with a kernel on the vectors of their roots.

    Notes
    -----
    Time is linear in the nodes times the size of their neighborhoods, plus one sparse matrix product.

    References
    ----------
    G. Da San Martino, N. Navarin, A. Sperduti: A tree-based kernel for graphs. SIAM International Conference on Data
    Mining, 2012.

    Examples
    --------
    >>> from treegram import ODDST, FeatureMap, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    >>> ODDST(depth=1, normalize=False).fit_transform(graphs)
    array([[46., 25.],
           [25., 20.]])
    >>> sorted(FeatureMap(ODDST(depth=1)).fit(graphs).get_feature_names_out())
    ['C', 'C(N,O)', 'C(O)', 'N', 'N(C)', 'O', 'O(C)']
    """

    name = "oddst"
    _one_pass = ("depth", "lam")
    _explained_by = "trees"
    _default_param_grid = TREE_GRID
    _allowed = TREES

    depth: int = field(default=3, kw_only=False)
    lam: float = 1.0
    counting: str = "paper"
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[Phi]:
        points = []
        for depth in grid["depth"]:
            phi = count_trees(self, graphs, depth)
            phi = replace(phi, counts=sum_rows(phi.counts, graphs.offsets))
            if not rescales(self):
                refuse_overflow(phi.sizes, max(grid["lam"]), depth)
            points += [self._weigh(phi, lam, np.arange(len(graphs))) for lam in grid["lam"]]
        return points

    def _weigh(self, phi: Phi, lam: float, graph_ids: Ints) -> Phi:
        return weigh(phi, lam, graph_ids, rescale=rescales(self))

    def _node_features(self, graphs: Graphs) -> Phi:
        return self._weigh(count_trees(self, graphs, self.depth), self.lam, graphs.graph_ids)

    def _raw_column_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:
        if not spread:
            return super()._raw_column_contributions(graphs, view, weights, spread=False)
        phi = count_trees(self, graphs, self.depth)
        phi.counts.sort_indices()
        factors = tree_weights(phi, self.lam, graphs.graph_ids, rescale=rescales(self))
        every_tree = Features(sp.identity(len(phi.codes), format="csr"), phi.codes)
        column_weights = every_tree.aligned(self._fitted_features.codes) @ weights  # of the columns of these graphs
        return spread_counted_trees(self, graphs, phi, factors[:, None] * column_weights[phi.counts.indices])

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:
        return _name_tree(self, graphs, features, column)


# -------------------------------------------------------------------- weighted trees


def count_trees(kernel: Any, graphs: Graphs, depth: int) -> Phi:
    """Count the trees of each node up to a depth, as the kernel's parameters specify."""
    return tree_features(graphs, depth, n_jobs=kernel.n_jobs, **options_of(kernel, *TREE_OPTIONS))


def rescales(kernel: Any) -> bool:
    """Return whether a factor for each graph does not matter, because normalization removes it."""
    return bool(kernel.normalize) and kernel.normalize != "tanimoto"


def _name_tree(kernel: Any, graphs: Graphs, trees: Phi, column: int) -> str:
    return read_tree(graphs, trees.examples[column], **options_of(kernel, "missing_labels", "use_edge_labels"))


def spread_counted_trees(kernel: Any, graphs: Graphs, phi: Phi, per_count: Floats) -> Floats:
    """Divide what each entry of :func:`count_trees` adds, ``per_count`` each time it counts, among the nodes of its tree."""
    return tree_contributions(graphs, phi, per_count, kernel.depth, **options_of(kernel, *TREE_OPTIONS))


def weigh(phi: Phi, lam: float, graph_ids: Ints, *, rescale: bool, in_place: bool = False) -> Phi:
    """Multiply counts by :func:`tree_weights`; ``in_place`` changes the counts of phi, which may be long."""
    counts = phi.counts if in_place else phi.counts.copy()
    counts.data *= tree_weights(phi, lam, graph_ids, rescale=rescale)
    return replace(phi, counts=counts)


def tree_weights(phi: Phi, lam: float, graph_ids: Ints, *, rescale: bool) -> Floats:
    """Return lam ** (size / 2) for each entry of phi, so that inner products of rows carry the weight lam ** size.

    With ``rescale`` and an extreme lam each graph's rows are divided by lam ** (s / 2), where s is the size of its largest tree
    for lam above 1, and of its smallest tree, a single node, for a tiny lam: one factor per graph, which normalization removes,
    so that nothing overflows or vanishes.
    """
    exponents = np.take(phi.sizes, phi.counts.indices)
    if rescale and lam > 1:
        starts = phi.counts.indptr[np.flatnonzero(np.diff(graph_ids, prepend=-1))]  # entries are in the order of graphs
        lengths = np.diff(starts, append=len(exponents))
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        if len(starts):
            exponents -= np.repeat(np.maximum.reduceat(exponents, starts), lengths)
    elif rescale and lam < SMALLEST_LAM:
        exponents -= 1.0
    exponents *= 0.5 * np.log(float(lam))  # in place: these arrays are long
    return np.exp(exponents, out=exponents)


def refuse_overflow(sizes: Floats, lam: float, depth: int) -> None:
    """Raise if lam ** size of the largest tree is too large to be summed in double precision."""
    largest = float(sizes.max(initial=0.0))
    if _overflows(largest, lam):
        raise ValueError(
            f"lam ** size overflows: at depth={depth} the largest tree has {largest:.0f} nodes, too many for "
            f"lam={lam:g}. Use a smaller lam (at most {np.exp(_LARGEST_EXPONENT / largest):.4g} here), a smaller "
            "depth, or normalize=True, where the kernel is rescaled exactly."
        )


def _most_walks(graphs: Graphs, depth: int) -> float:
    """Return the largest number of walks of at most ``depth`` steps from a node; infinity for too many."""
    neighbors = graphs._adjacency()
    walks = total = np.ones(graphs.n_nodes)
    for _ in range(min(depth, int(graphs.sizes.max(initial=0)))):  # shortest paths are no longer than this
        walks = neighbors @ walks
        total = total + walks
        if not walks.any() or np.isinf(walks).any():
            break
    return float(total.max(initial=0.0))


def _overflows(largest: float, lam: float) -> bool:
    return bool(lam > 1 and largest * np.log(float(lam)) > _LARGEST_EXPONENT)
