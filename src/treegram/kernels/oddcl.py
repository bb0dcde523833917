"""ODDCL_ST: the paper's kernel for graphs with labels and vectors at the nodes."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Any

from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid, GridPoint
from treegram.kernels.node_pairs import NodePairKernel, entry_contributions
from treegram.kernels.tree_weights import (
    TREE_GRID,
    TREES,
    count_trees,
    grid_pass,
    spread_counted_trees,
    tree_groups,
)
from treegram.structure.features import Features

__all__ = ["ODDCL"]


@parameters
class ODDCL(NodePairKernel):
    r"""Tree kernel for graphs with labels and vectors at the nodes (ODDCL_ST).

    Two graphs are alike when they have nodes at which the same labeled trees are rooted and whose vectors are close:

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
    gamma : float, "scale" or None, default=None
        How fast the node kernel decreases with the squared distance of two vectors: the larger, the narrower it is. None means
        1 / (number of attributes); "scale" means 1 / (number of attributes * mean variance of an attribute over the fitted
        nodes), which suits attributes of any range. Other named kernels that have a gamma use it too.
    counting : {"paper", "visits", "capped"}, default="paper"
        How often a tree counts: "paper", as in Algorithm 1 of the paper; "visits", over all visits, as in a related module of the
        authors' code (we infer that their ODDCL did the same); "capped", as in their ODD_ST code (a visit that has reached
        the whole component is not counted again).
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that gives an (n, m) array. It must be positive semidefinite.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
    normalize : bool, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}`.
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
    ODDST : the same trees without the vectors.

    Notes
    -----
    Exact: nothing is approximated. Time is that of one k_A for each pair of nodes with equal labels (nodes of one graph
    with equal label and vector count once, pairs too far apart to matter in double precision not at all); memory is the
    result's. Without attributes k_A is 1 and the kernel is that of :class:`ODDST`.

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
        return tree_groups(self, graphs, grid["depth"], grid["lam"])

    def _spread_contributions(self, graphs: Graphs, described: Any, weights: Floats) -> Floats:
        phi = count_trees(self, graphs, self.depth)
        return spread_counted_trees(self, graphs, phi, entry_contributions(described, self._fitted, weights))

    def _grid_pass(self, X: Graphs, X_new: Graphs, param_grid: Grid) -> list[GridPoint]:
        return grid_pass(partial(super()._grid_pass, X, X_new), self, X, param_grid)
