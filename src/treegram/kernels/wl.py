"""Kernels on Weisfeiler-Lehman colors: WL counts them, WLOA matches nodes by them, WLCL adds a kernel on vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.params import Allowed, Whole, parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import options_of
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import NodePairKernel
from treegram.structure.features import Features, gather
from treegram.structure.hashing import GOLDEN, mix_codes
from treegram.structure.wl import ColorFeatures, color_features, read_color, wl_colors

COLORS: Mapping[str, Allowed] = {"n_iterations": (Whole(0),)}
COLOR_GRID: Grid = {"n_iterations": [0, 1, 2, 3, 4]}


@parameters
class WL(ExplicitKernel):
    r"""Weisfeiler-Lehman subtree kernel on discrete labels, with its explicit features.

    Two graphs are similar when their nodes have the same colors. A node's first color is its label; each iteration
    joins a node's color with the multiset of its neighbors' colors, so that it describes surroundings one step larger:

    .. math:: K(G, G') = \sum_{i=0}^{h} \sum_c f_{i,c}(G) f_{i,c}(G')

    Here :math:`f_{i,c}(G)` is the number of nodes of :math:`G` that have the color :math:`c` after :math:`i` iterations,
    and :math:`h` is ``n_iterations``. Vectors are not used. Where edges have a direction, a node's neighbors are those that
    its edges lead to.

    Parameters
    ----------
    n_iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the labels are compared.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether a neighbor's color counts together with the label of the edge to it.
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
    WLCL : the same colors, with a kernel on the vectors of the nodes that have them.
    ODDST : trees that never turn back, instead of colors.

    Notes
    -----
    Time is linear in the edges times the iterations, plus one sparse matrix product. Colors are 64-bit hashes that depend
    on labels and edges alone: new graphs need no dictionary of the fitted ones. Two different colors among a million are
    confused with a probability of 3e-8.

    References
    ----------
    N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn, K. M. Borgwardt: Weisfeiler-Lehman graph kernels.
    Journal of Machine Learning Research, 2011.

    Examples
    --------
    >>> from treegram import WL, FeatureMap, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    >>> WL(n_iterations=1, normalize=False).fit_transform(graphs)
    array([[6., 3.],
           [3., 4.]])
    >>> sorted(FeatureMap(WL(n_iterations=1)).fit(graphs).get_feature_names_out())
    ['C', 'C(N,O)', 'C(O)', 'N', 'N(C)', 'O', 'O(C)']
    """

    name = "wl"
    _one_pass = ("n_iterations",)
    _explained_by = "trees"
    _adds_up = True
    _default_param_grid = COLOR_GRID
    _allowed = COLORS

    n_iterations: int = field(default=3, kw_only=False)
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> Sequence[Features]:
        return color_groups(self, graphs, grid["n_iterations"], graphs.offsets)

    def _node_features(self, graphs: Graphs) -> ColorFeatures:
        return color_groups(self, graphs, [self.n_iterations], np.arange(graphs.n_nodes + 1))[0]

    def _raw_column_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:
        if not spread:
            return super()._raw_column_contributions(graphs, view, weights, spread=False)
        colors = self._node_features(graphs)
        levels = [colors.kept(colors.iterations == level) for level in range(self.n_iterations + 1)]
        contributions = np.stack([level.aligned(self._fitted_features.codes) @ weights for level in levels])
        return spread_over_trees(graphs, contributions)

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:
        return _name_color(self, graphs, features, column)


@dataclass(frozen=True)
class UnfoldedColors(Features):
    """One column for each color and number n: 1 for graphs with at least n nodes of that color."""

    colors: ColorFeatures
    places: Ints  # of each column: its color
    numbers: Ints  # of each column: its number, from 1


@parameters
class WLOA(WL):
    r"""Weisfeiler-Lehman optimal assignment kernel on discrete labels, with its explicit features.

    Each node of one graph is assigned to at most one node of the other, so that the assigned nodes have as many colors (see
    :class:`WL`) in common as possible. The value of the best assignment is an intersection of histograms:

    .. math:: K(G, G') = \sum_{i=0}^{h} \sum_c \min(f_{i,c}(G), f_{i,c}(G'))

    Here :math:`f_{i,c}(G)` is the number of nodes of :math:`G` that have the color :math:`c` after :math:`i` iterations, and
    :math:`h` is ``n_iterations``. Vectors are not used.

    Parameters
    ----------
    n_iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the labels are compared.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether a neighbor's color counts together with the label of the edge to it.
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
    WL : products of the same counts, so that colors that many nodes have weigh more.

    Notes
    -----
    A histogram with n nodes of a color is n features that are 1: the first to the n-th node of that color. Inner products
    of such rows are intersections, so that the kernel is positive semidefinite. Time is linear in the edges times the
    iterations, plus one sparse matrix product.

    References
    ----------
    N. M. Kriege, P.-L. Giscard, R. C. Wilson: On valid optimal assignment kernels and applications to graph classification.
    Advances in Neural Information Processing Systems, 2016.

    Examples
    --------
    >>> from treegram import WLOA, FeatureMap, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "O"]])
    >>> WLOA(n_iterations=1, normalize=False).fit_transform(graphs)
    array([[6., 3.],
           [3., 4.]])
    >>> sorted(FeatureMap(WLOA(n_iterations=1)).fit(graphs).get_feature_names_out())
    ['C #1', 'C #2', 'C(C) #1', 'C(C,O) #1', 'C(O) #1', 'O #1', 'O(C) #1']
    """

    name = "wloa"

    def _features(self, graphs: Graphs, grid: Grid) -> Sequence[Features]:
        return [_unfold(group) for group in color_groups(self, graphs, grid["n_iterations"], graphs.offsets)]

    def _raw_column_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:
        """Divide what the numbers 1 to n of a color add among its n nodes, which have no order."""
        (unfolded,) = view.groups
        nodes, colors = self._node_features(graphs), unfolded.colors
        every_column = Features(sp.identity(len(unfolded.codes), format="csr"), unfolded.codes)
        column_weights = every_column.aligned(self._fitted_features.codes) @ weights  # of each column of these graphs
        keys = _entry_keys(colors.counts, np.arange(len(graphs)), np.arange(len(colors.codes)))
        unfolded_keys = _entry_keys(unfolded.counts, np.arange(len(graphs)), unfolded.places, len(colors.codes))
        n = len(unfolded_keys)
        owned = sp.csr_matrix((np.ones(n), np.searchsorted(keys, unfolded_keys), np.arange(n + 1)), (n, len(keys)))
        totals = owned.T @ column_weights[unfolded.counts.indices]  # of each color of each graph
        node_keys = _entry_keys(nodes.counts, graphs.graph_ids, np.arange(len(colors.codes)))
        parts = (totals / colors.counts.data[:, None])[np.searchsorted(keys, node_keys)]
        levels = np.zeros((self.n_iterations + 1, graphs.n_nodes, weights.shape[1]))
        owners = np.repeat(np.arange(graphs.n_nodes), np.diff(nodes.counts.indptr))
        levels[nodes.iterations[nodes.counts.indices], owners] = parts  # a node has one color of each iteration
        return spread_over_trees(graphs, levels) if spread else levels.sum(axis=0)

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:
        color = _name_color(self, graphs, features.colors, features.places[column])
        return f"{color} #{features.numbers[column]}"


def _entry_keys(counts: sp.csr_matrix, graph_ids: Ints, colors: Ints, n_colors: int | None = None) -> Ints:
    """Return one number for the graph and the color of each entry, from the graphs of the rows and the colors of the columns."""
    width = len(colors) if n_colors is None else n_colors
    return np.repeat(graph_ids, np.diff(counts.indptr)) * width + colors[counts.indices]


def _unfold(colors: ColorFeatures) -> UnfoldedColors:
    """Write histograms as rows of ones: n nodes of a color are its numbers 1 to n."""
    counts = colors.counts.data.astype(np.int64)
    ends = np.cumsum(counts)
    places = np.repeat(colors.counts.indices, counts)
    numbers = np.arange(1, len(places) + 1) - np.repeat(ends - counts, counts)
    codes = mix_codes(colors.codes[places] + numbers.astype(np.uint64) * GOLDEN)
    indptr = np.concatenate([[0], ends])[colors.counts.indptr]
    features, examples = gather(indptr, codes, np.ones(len(codes)))
    return UnfoldedColors(features.counts, features.codes, colors, places[examples], numbers[examples])


@parameters
class WLCL(NodePairKernel):
    r"""Weisfeiler-Lehman subtree kernel for graphs with labels and vectors at the nodes.

    Two graphs are similar when they have nodes of the same colors (see :class:`WL`) whose vectors are close:

    .. math:: K(G, G') = \sum_{v \in G, v' \in G'} k_A(x_v, x_{v'}) \sum_{i=0}^{h} [c_i(v) = c_i(v')]

    Here :math:`c_i(v)` is the color of the node :math:`v` after :math:`i` iterations, :math:`h` is ``n_iterations``,
    :math:`x_v` the vector of :math:`v`, and :math:`k_A` is ``node_kernel``, by default
    :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`. The name is to WL what ODDCL is to ODD_ST: CL for continuous labels.

    Parameters
    ----------
    n_iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the nodes themselves are compared.
    gamma : float, {"scale", "narrow", "white"} or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes). A word is a rule for the vectors of the fitted nodes: "scale" means 1 / (number of attributes *
        mean variance of an attribute), which suits attributes of any range; "narrow" means eight times that, which suits scaled
        vectors in clusters, and "white" 0.2, which suits whitened vectors; both at most 1 / (squared distance of the nearest
        twentieth of all pairs). Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether a neighbor's color counts together with the label of the edge to it.
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
    WL : the same colors on labels alone, with explicit features.
    ODDCL : the same sum over trees.
    GIK : colors within patterns.

    Notes
    -----
    The sum is exact. Time is at most quadratic in the number of nodes with equal labels, with ``n_iterations + 1`` features
    per node; memory is that of the result. Without attributes k_A is 1 and the kernel is that of :class:`WL`.

    References
    ----------
    N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn, K. M. Borgwardt: Weisfeiler-Lehman graph kernels.
    Journal of Machine Learning Research, 2011 (the colors).

    Examples
    --------
    >>> from treegram import WLCL, Graphs
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["N", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> WLCL(n_iterations=1, normalize=False).fit_transform(graphs)
    array([[6., 3.],
           [3., 4.]])
    """

    name = "wlcl"
    _one_pass = ("n_iterations",)
    _explained_by = "trees"
    _adds_up = True
    _default_param_grid = COLOR_GRID
    _allowed = COLORS

    n_iterations: int = field(default=3, kw_only=False)
    use_edge_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[ColorFeatures]:
        return color_groups(self, graphs, grid["n_iterations"], np.arange(graphs.n_nodes + 1))

    def _spread_over_nodes(self, graphs: Graphs, features: Any, per_value: Floats) -> Floats:
        levels = np.zeros((self.n_iterations + 1, graphs.n_nodes, per_value.shape[1]))
        nodes = np.repeat(np.arange(graphs.n_nodes), np.diff(features.counts.indptr))
        iterations = features.iterations[features.counts.indices]
        levels[iterations, nodes] = per_value  # a node has one color of each iteration
        return spread_over_trees(graphs, levels)

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:
        return _name_color(self, graphs, features, column)


# -------------------------------------------------------------------- colors


def color_groups(kernel: Any, graphs: Graphs, n_iterations: Sequence[int], offsets: Ints) -> list[ColorFeatures]:
    """Count colors as the kernel's parameters specify, one group for what each of the ascending numbers of iterations adds.

    Row i counts the nodes offsets[i] to offsets[i + 1] - 1.
    """
    options = options_of(kernel, "missing_labels", "use_edge_labels", "n_jobs")
    colors = wl_colors(graphs, n_iterations[-1], **options)
    spans = pairwise([0, *(number + 1 for number in n_iterations)])
    return [color_features(colors[first:last], offsets, first=first) for first, last in spans]


def spread_over_trees(graphs: Graphs, levels: Floats) -> Floats:
    """Divide levels[i, v] evenly among the nodes of the tree of depth i that unrolls the walks from v; sums stay the same.

    ``levels`` has shape (n_levels, n_nodes, n_outputs). A node that is in a tree several times gets several parts. With c_i(v) the
    number of walks of at most i steps, node w gets the sum over v of levels[i, v] / c_i(v) times the number of these walks from v
    that end at w.
    """
    n, steps = graphs.n_nodes, graphs._adjacency()
    total = np.zeros_like(levels[0])
    walks, sizes = np.ones(n), np.zeros(n)  # of exactly and of at most i steps, from each node
    for depth, level in enumerate(levels):
        sizes += walks
        walks = steps @ walks
        moved = level / sizes[:, None]
        for _ in range(depth):
            total += moved
            moved = steps.T @ moved
        total += moved
    return total


def _name_color(kernel: Any, graphs: Graphs, colors: ColorFeatures, column: int) -> str:
    node, iteration = int(colors.nodes[column]), int(colors.iterations[column])
    return read_color(graphs, node, iteration, **options_of(kernel, "missing_labels", "use_edge_labels"))
