"""NSPDK: pairs of balls at a distance, on discrete labels alone."""

from __future__ import annotations

from dataclasses import field

from treegram._core.params import Whole, parameters
from treegram.graphs import Graphs
from treegram.kernels.base import options_of
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.structure.features import Features
from treegram.structure.invariants import ball_pair_features

__all__ = ["NSPDK"]


@parameters
class NSPDK(ExplicitKernel):
    r"""Neighborhood subgraph pairwise distance kernel on discrete labels, with its explicit features.

    Two graphs are alike when they have pairs of nodes, equally far apart, with equal surroundings. For each radius
    :math:`r` and distance :math:`d` equal pairs are counted, and each count is normalized by itself:

    .. math::
        K(G, G') = \sum_{r=0}^{R} \sum_{d=0}^{D}
        \frac{\kappa_{r,d}(G, G')}{\sqrt{\kappa_{r,d}(G, G) \, \kappa_{r,d}(G', G')}}

    Here :math:`\kappa_{r,d}(G, G')` is the number of ordered pairs :math:`(u, w)` of :math:`G` and :math:`(u', w')` of
    :math:`G'`, both pairs :math:`d` hops apart, in which the ball of radius :math:`r` around :math:`u` equals that around
    :math:`u'`, and the ball around :math:`w` that around :math:`w'`; :math:`R` is ``radius``, :math:`D` is ``distance``.
    A term is 0 where a graph has no such pair. Vectors are not used. Where edges have a direction, hops and balls follow
    it.

    Parameters
    ----------
    radius : int, default=1
        Largest radius of the balls. At 0 a ball is a node with its label.
    distance : int, default=1
        Largest distance between the two nodes of a pair. At 0 a pair is one node twice.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether equal balls must also have equal labels on their edges.
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide, on top, by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
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
    GIK : with ``invariant="nspdk"``, the same pairs with a kernel on the vectors of their nodes.

    Notes
    -----
    Whether two balls are equal is decided by an invariant, not by a search for an isomorphism: a ball's code holds, for
    each of its nodes, the label, the hops to the root and the multiset of (hops to w, hops from w to the root, label of w)
    over all its nodes w, and, for each of its edges, the two codes of its ends; hops are counted within the ball.
    Isomorphic balls always have equal codes. Codes are 64-bit hashes that depend on labels and edges alone: new graphs
    need no dictionary of the fitted ones.

    Time is linear in the number of nodes, times the nodes and edges of a ball, plus the pairs, plus one sparse matrix
    product.

    References
    ----------
    F. Costa, K. De Grave: Fast neighborhood subgraph pairwise distance kernel. International Conference on Machine
    Learning, 2010.

    Examples
    --------
    >>> from treegram import NSPDK, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    >>> NSPDK(radius=1, distance=1).fit_transform(graphs).round(3)
    array([[1.   , 0.483],
           [0.483, 1.   ]])
    """

    name = "nspdk"
    _explained_by = "nodes"
    _default_param_grid = {"radius": [1, 2], "distance": [0, 1, 2]}
    _allowed = {"radius": (Whole(0),), "distance": (Whole(0),)}

    radius: int = field(default=1, kw_only=False)
    distance: int = 1
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[Features]:  # noqa: ARG002 (one group)
        return [self._count(graphs, by_node=False)]

    def _node_features(self, graphs: Graphs) -> Features:
        return self._count(graphs, by_node=True)

    def _count(self, graphs: Graphs, *, by_node: bool) -> Features:
        options = options_of(self, "missing_labels", "use_edge_labels", "n_jobs")
        return ball_pair_features(graphs, self.radius, self.distance, by_node=by_node, **options)
