"""WLCL: Weisfeiler-Lehman colors with a kernel on the vectors of the nodes."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np

from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import NodePairKernel, node_contributions
from treegram.kernels.wl import COLOR_GRID, COLORS, color_groups, spread_over_trees
from treegram.structure.wl import ColorFeatures

__all__ = ["WLCL"]


@parameters
class WLCL(NodePairKernel):
    r"""Weisfeiler-Lehman subtree kernel for graphs with labels and vectors at the nodes.

    Two graphs are alike when they have nodes of the same colors (see :class:`WL`) whose vectors are close:

    .. math:: K(G, G') = \sum_{v \in G, v' \in G'} k_A(x_v, x_{v'}) \sum_{i=0}^{h} [c_i(v) = c_i(v')]

    Here :math:`c_i(v)` is the color of the node :math:`v` after :math:`i` iterations, :math:`h` is ``n_iterations``,
    :math:`x_v` the vector of :math:`v`, and :math:`k_A` is ``node_kernel``, by default
    :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`. The name is to WL what ODDCL is to ODD_ST: CL for continuous labels.

    Parameters
    ----------
    n_iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the nodes themselves are compared.
    gamma : float, "scale" or None, default=None
        How fast the node kernel decreases with the squared distance of two vectors: the larger, the narrower it is. None means
        1 / (number of attributes); "scale" means 1 / (number of attributes * mean variance of an attribute over the fitted
        nodes), which suits attributes of any range. Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that gives an (n, m) array. It must be positive semidefinite.
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
    gamma_ : float
        The value used for ``gamma="scale"``; absent for any other ``gamma``.
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
    per node; memory is the result's. Without attributes k_A is 1 and the kernel is that of :class:`WL`.

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

    def _spread_contributions(self, graphs: Graphs, described: Any, weights: Floats) -> Floats:
        new, fitted = (self._by_iteration(view) for view in (described, self._fitted))
        return spread_over_trees(graphs, node_contributions(new, fitted, weights, self.n_jobs))

    def _by_iteration(self, view: Any) -> Any:
        """Return the view with one group of colors for each iteration."""
        ((colors,), levels) = view.groups, range(self.n_iterations + 1)
        return replace(view, groups=[colors.kept(colors.iterations == level) for level in levels], positions=None)
