"""ODD_ST: the tree kernel on discrete labels alone, with its features in the open."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.params import parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import options_of
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.kernels.oddcl import TREE_GRID, TREES, count_trees, refuse_overflow, spread_counted_trees, weigh
from treegram.pairsum.products import sum_rows
from treegram.structure.features import Features
from treegram.structure.trees import Phi, read_tree

__all__ = ["ODDST"]


@parameters
class ODDST(ExplicitKernel):
    r"""Tree kernel on discrete labels (ODD_ST), with its explicit features.

    Two graphs are alike when the same labeled trees are rooted at their nodes:

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
            if self._normalization != "cosine":
                refuse_overflow(phi.sizes, max(grid["lam"]), depth)
            points += [self._weigh(phi, lam, np.arange(len(graphs))) for lam in grid["lam"]]
        return points

    def _weigh(self, phi: Phi, lam: float, graph_ids: Ints) -> Phi:
        return weigh(phi, lam, graph_ids, rescale=self._normalization == "cosine")

    def _node_features(self, graphs: Graphs) -> Phi:
        return self._weigh(count_trees(self, graphs, self.depth), self.lam, graphs.graph_ids)

    def _raw_column_contributions(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        if not spread:
            return super()._raw_column_contributions(graphs, described, weights, spread=False)
        phi = count_trees(self, graphs, self.depth)
        phi.counts.sort_indices()
        weighted = self._weigh(phi, self.lam, graphs.graph_ids)
        every_tree = Features(sp.identity(len(phi.codes), format="csr"), phi.codes)
        own_weights = every_tree.aligned(self._fitted_features.codes) @ weights  # of each column of these graphs
        values = weighted.counts.data[:, None] * own_weights[phi.counts.indices]
        return spread_counted_trees(self, graphs, phi, values)

    def _name_feature(self, fitted: Any, column: int) -> str:
        return read_tree(self.graphs_, fitted.seen[column], **options_of(self, "missing_labels", "use_edge_labels"))
