"""WL: the Weisfeiler-Lehman subtree kernel, on labels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treegram._core.params import Allowed, Whole, parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import arc_matrix
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.structure.wl import ColorFeatures, color_features, read_color, wl_colors

__all__ = ["COLORS", "COLOR_GRID", "WL", "color_groups", "spread_over_trees"]

COLORS: Mapping[str, Allowed] = {"n_iterations": (Whole(0),)}
COLOR_GRID: Grid = {"n_iterations": [0, 1, 2, 3, 4]}


@parameters
class WL(ExplicitKernel):
    r"""Weisfeiler-Lehman subtree kernel on discrete labels, with its explicit features.

    Two graphs are alike when their nodes have the same colors. A node's first color is its label; each iteration joins
    a node's color with the multiset of its neighbors' colors, so that it describes surroundings one step larger:

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
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors, which this kernel does not use.
    color_iterations_ : ndarray of shape (n_colors,)
        The iteration that each color belongs to.

    See Also
    --------
    WLCL : the same colors, with a kernel on the vectors of the nodes that have them.
    ODDST : trees without ways back, instead of colors.

    Notes
    -----
    Time is linear in the edges times the iterations, plus one sparse matrix product. Colors are 64-bit hashes that depend
    on labels and edges alone: new graphs need no dictionary of the fitted ones. Two different colors among a million are
    taken for one with a probability of 3e-8.

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

    @property
    def color_iterations_(self) -> Ints:
        """The iteration that each color belongs to."""
        check_is_fitted(self)
        iterations: Ints = self._fitted_features.iterations
        return iterations

    def _features(self, graphs: Graphs, grid: Grid) -> list[ColorFeatures]:
        return color_groups(self, graphs, grid["n_iterations"], graphs.offsets)

    def _node_features(self, graphs: Graphs) -> ColorFeatures:
        return color_groups(self, graphs, [self.n_iterations], np.arange(graphs.n_nodes + 1))[0]

    def _raw_column_contributions(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        if not spread:
            return super()._raw_column_contributions(graphs, described, weights, spread=False)
        colors = self._node_features(graphs)
        levels = [colors.kept(colors.iterations == level) for level in range(self.n_iterations + 1)]
        contributions = np.stack([level.aligned(self._fitted_features.codes) @ weights for level in levels])
        return spread_over_trees(graphs, contributions)

    def _name_feature(self, fitted: Any, column: int) -> str:
        return read_color(
            self.graphs_,
            int(fitted.nodes[column]),
            int(fitted.iterations[column]),
            missing_labels=self.missing_labels,
            use_edge_labels=self.use_edge_labels,
        )


def color_groups(kernel: Any, graphs: Graphs, n_iterations: Sequence[int], offsets: Ints) -> list[ColorFeatures]:
    """Count colors as the kernel's parameters say, one group for what each of the ascending numbers of iterations adds.

    Row i counts the nodes offsets[i] to offsets[i + 1] - 1.
    """
    colors = wl_colors(
        graphs,
        n_iterations[-1],
        missing_labels=kernel.missing_labels,
        use_edge_labels=kernel.use_edge_labels,
        n_jobs=kernel.n_jobs,
    )
    spans = pairwise([0, *(number + 1 for number in n_iterations)])
    return [color_features(colors[first:last], offsets, first=first) for first, last in spans]


def spread_over_trees(graphs: Graphs, levels: Floats) -> Floats:
    """Divide levels[i, v] evenly among the nodes of the tree of depth i that unrolls the walks from v; sums stay the same.

    ``levels`` has shape (n_levels, n_nodes, n_outputs). A node that is in a tree several times gets several parts. With c_i(v) the
    number of walks of at most i steps, node w gets the sum over v of levels[i, v] / c_i(v) times the number of these walks from v
    that end at w.
    """
    n, steps = graphs.n_nodes, arc_matrix(graphs)
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
