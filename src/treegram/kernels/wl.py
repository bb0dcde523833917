"""WL: the Weisfeiler-Lehman subtree kernel, on labels alone."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treegram._core.params import parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.colors import COLOR_GRID, COLORS, color_groups
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.kernels.spread import spread_over_trees
from treegram.structure.wl import ColorFeatures, read_color

__all__ = ["WL"]


@parameters
class WL(ExplicitKernel):
    r"""Weisfeiler-Lehman subtree kernel on discrete labels, with its explicit features.

    Two graphs are alike when their nodes have the same colors. A node's first color is its label; each iteration joins
    a node's color with the multiset of its neighbors' colors, so that it tells of surroundings one step larger:

    .. math:: K(G, G') = \sum_{i=0}^{h} \sum_c f_{i,c}(G) f_{i,c}(G')

    Here :math:`f_{i,c}(G)` is the number of nodes of :math:`G` that have the color :math:`c` after :math:`i` iterations,
    and :math:`h` is ``n_iterations``. Vectors are not used. Where edges have a direction, a node's neighbors are those that
    its edges lead to.

    Parameters
    ----------
    n_iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the labels are compared.
    missing_labels : {"degree", "constant"}, default="degree"
        What stands for the labels of graphs that have none: each node's degree, or one label for all.
    use_edge_labels : bool, default=False
        Whether a neighbor's color counts together with the label of the edge to it.
    normalize : bool, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}`.
    dtype : {"float64", "float32"}, default="float64"
        Numbers of the result; numpy's types will do. All is computed in double precision: "float32" rounds each number of the
        result, by at most one part in 16 million, and halves the memory of a Gram matrix, at no gain in time.
    n_jobs : int or None, default=None
        Threads to use, as in joblib; -1 means all. The result has the same bits for any number.

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
    >>> from treegram import WL, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    >>> kernel = WL(n_iterations=1, normalize=False).fit(graphs)
    >>> kernel.transform(graphs)
    array([[6., 3.],
           [3., 4.]])
    >>> sorted(kernel.feature_names())
    ['C', 'C(N,O)', 'C(O)', 'N', 'N(C)', 'O', 'O(C)']
    """

    name = "wl"
    one_pass = ("n_iterations",)
    explained_by = "trees"
    adds_up = True
    _default_param_grid = COLOR_GRID
    _allowed = COLORS

    n_iterations: int = field(default=3, kw_only=False)

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

    def _raw_column_shares(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        if not spread:
            return super()._raw_column_shares(graphs, described, weights, spread=False)
        colors = self._node_features(graphs)
        levels = [colors.kept(colors.iterations == level) for level in range(self.n_iterations + 1)]
        shares = np.stack([level.aligned(self._fitted_features.codes) @ weights for level in levels])
        return spread_over_trees(graphs, shares)

    def _name_feature(self, fitted: Any, column: int) -> str:
        return read_color(
            self.graphs_,
            int(fitted.nodes[column]),
            int(fitted.iterations[column]),
            missing_labels=self.missing_labels,
            use_edge_labels=self.use_edge_labels,
        )
