"""GraphHopper: nodes are similar when they are at the same positions of shortest paths, and their vectors are close."""

from __future__ import annotations

import numpy as np

from treegram._core.params import parameters
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import NodePairKernel, WeightedFeatures, node_blocks
from treegram.structure.hops import hop_features

__all__ = ["GraphHopper"]


@parameters
class GraphHopper(NodePairKernel):
    r"""Kernel that compares the nodes of equally long shortest paths, position by position.

    Two shortest paths with the same number of nodes are as similar as their nodes, first with first, second with second,
    and so on; two graphs are as similar as all their pairs of shortest paths:

    .. math::

        K(G, G') = \sum_{\pi \in P, \pi' \in P' : |\pi| = |\pi'|} \; \sum_{j=1}^{|\pi|} k(\pi_j, \pi'_j)
                 = \sum_{v \in G, v' \in G'} \langle M_v, M_{v'} \rangle \, k(v, v')

    Here :math:`P` holds all shortest paths of :math:`G`: several between the same two nodes all count, each in both
    directions, and so does each node alone. :math:`M_v[j, l]` is how many paths of :math:`l` nodes have :math:`v` at
    position :math:`j`, and :math:`k(v, v')` is ``node_kernel`` of the two vectors, by default :math:`\exp(-\gamma \|x_v -
    x_{v'}\|^2)`, and 0 for different labels if ``use_labels``.

    Parameters
    ----------
    gamma : float, "scale" or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes); "scale" means 1 / (number of attributes * mean variance of an attribute over the fitted
        nodes), which suits attributes of any range. Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
    use_labels : bool, default=False
        Whether only nodes with equal labels match. The published results are those without labels; with them, ENZYMES and
        PROTEINS are classified better.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
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
    ShortestPath : compares the two ends and the length of shortest paths.

    Notes
    -----
    Exact. Computing :math:`M` takes nodes times edges times diameter for each graph; then time is that of one node kernel for
    each pair of nodes, plus their common positions, and memory that of :math:`M`, at most nodes times the square of the
    diameter, and of the result. Where edges have no direction, :math:`M_v[j, l] = M_v[l + 1 - j, l]`, and half of it is
    enough; where they have one, paths follow it. An isolated node is on one path, itself. Without attributes the node
    kernel is 1.

    References
    ----------
    A. Feragen, N. Kasenburg, J. Petersen, M. de Bruijne, K. Borgwardt: Scalable kernels for graphs with continuous
    attributes. Advances in Neural Information Processing Systems, 2013.

    Examples
    --------
    >>> from treegram import GraphHopper, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]]])
    >>> GraphHopper(normalize=False).fit_transform(graphs).round(3)
    array([[ 8.207, 15.047],
           [15.047, 40.358]])
    """

    name = "graphhopper"

    use_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[WeightedFeatures]:  # noqa: ARG002 (one group)
        features, is_pair = hop_features(graphs, node_blocks(self, graphs), n_jobs=self.n_jobs)
        # A column for two positions counts twice.
        return [WeightedFeatures(features.counts, features.codes, is_pair.astype(np.int64), np.array([[1.0], [2.0]]))]
