"""GraphHopper: nodes are alike when they are at the same positions of shortest paths, and their vectors are close."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from treegram._types import Floats
from treegram.attributes import NODE_KERNEL_NAMES, NodeKernel, node_kernel_blocks
from treegram.graphs import Graphs
from treegram.kernels._base import GraphKernel
from treegram.pairsum.nodes import Nodes, Weighting, pair_sums, self_sums
from treegram.structure.hops import Hops, count_hops
from treegram.structure.labels import node_hashes

__all__ = ["GraphHopper"]


@dataclass(frozen=True)
class _Described:
    hops: Hops
    nodes: Nodes  # with the counts of hops as features
    node_kernel: NodeKernel


class GraphHopper(GraphKernel):
    r"""Kernel that compares the nodes of equally long shortest paths, one after the other.

    Two shortest paths with the same number of nodes are as alike as their nodes are, first with first, second with second,
    and so on; two graphs are as alike as all their pairs of shortest paths:

    .. math::

        K(G, G') = \sum_{\pi \in P, \pi' \in P' : |\pi| = |\pi'|} \; \sum_{j=1}^{|\pi|} k(\pi_j, \pi'_j)
                 = \sum_{v \in G, v' \in G'} \langle M_v, M_{v'} \rangle \, k(v, v')

    Here :math:`P` holds all shortest paths of :math:`G`: several between the same two nodes all count, each in both
    directions, and each node alone is one. :math:`M_v[j, l]` is how many paths of :math:`l` nodes have :math:`v` in place
    :math:`j`, and :math:`k(v, v')` is ``node_kernel`` of the two vectors, by default
    :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`, and 0 for different labels if ``use_labels``.

    Parameters
    ----------
    gamma : float or None, default=None
        Width of the node kernel; None means 1 / (number of attributes). Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that gives an (n, m) array. It must be positive semidefinite.
    use_labels : bool, default=False
        Whether only nodes of equal labels are alike. The published rows are those without labels; with them, ENZYMES and
        PROTEINS are classified better.
    missing_labels : {"degree", "constant"}, default="degree"
        What stands for the labels of graphs that have none if ``use_labels``: each node's degree, or one label for all.
    normalize : bool, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}`.
    n_jobs : int or None, default=None
        Threads to use, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    ShortestPath : compares the two ends and the length of shortest paths.

    Notes
    -----
    Exact. :math:`M` takes nodes times edges times diameter for each graph; then time is that of one node kernel for each pair
    of nodes, plus their common positions, and memory that of :math:`M`, at most nodes times the square of the diameter, and of
    the result. Where edges have no direction, :math:`M_v[j, l] = M_v[l + 1 - j, l]`, and half of it is enough; where they have
    one, paths follow it. An isolated node is on one path, that of itself. Without attributes the node kernel is 1.

    References
    ----------
    A. Feragen, N. Kasenburg, J. Petersen, M. de Bruijne, K. Borgwardt: Scalable kernels for graphs with continuous
    attributes. Advances in Neural Information Processing Systems, 2013.

    Examples
    --------
    >>> from treegram import Graphs
    >>> from treegram.kernels.graphhopper import GraphHopper
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]]])
    >>> GraphHopper(normalize=False).fit_transform(graphs).round(3)
    array([[ 8.207, 15.047],
           [15.047, 40.358]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "node_kernel": [StrOptions(set(NODE_KERNEL_NAMES)), callable],
        "use_labels": ["boolean"],
        "missing_labels": [StrOptions({"degree", "constant"})],
        "normalize": ["boolean"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        gamma: float | None = None,
        node_kernel: str | NodeKernel = "rbf",
        use_labels: bool = False,
        missing_labels: str = "degree",
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.node_kernel = node_kernel
        self.use_labels = use_labels
        self.missing_labels = missing_labels
        self.normalize = normalize
        self.n_jobs = n_jobs

    def _describe(self, graphs: Graphs) -> _Described:
        hops = count_hops(graphs, n_jobs=self.n_jobs)
        nodes = Nodes(
            n_graphs=len(graphs),
            graph_ids=graphs.graph_ids,
            blocks=node_hashes(graphs, self.missing_labels) if self.use_labels else np.zeros(graphs.n_nodes, np.uint64),
            # Without attributes the node kernel is 1, the Gaussian of equal vectors.
            vectors=np.asarray(graphs.attributes) if graphs.n_attributes else np.zeros((graphs.n_nodes, 1)),
            features=hops.counts,
        )
        name = self.node_kernel if graphs.n_attributes else "rbf"
        return _Described(hops, nodes, node_kernel_blocks(name, self.gamma, graphs.n_attributes))

    def _pair_sums(self, left: _Described, right: _Described | None) -> Floats:
        fitted = left if right is None else right
        rows, columns = _nodes_by_block(left, fitted), None if right is None else _nodes_by_block(right, right)
        return pair_sums(rows, columns, fitted.node_kernel, _weighting(fitted), n_jobs=self.n_jobs)[0, 0]

    def _self_sums(self, described: _Described) -> Floats:
        nodes = _nodes_by_block(described, described)
        return self_sums(nodes, described.node_kernel, _weighting(described))[0, 0]


def _nodes_by_block(described: _Described, fitted: _Described) -> Nodes:
    """The nodes with a set of columns for each block of the fitted ones: in the engine blocks share no feature.

    What the fitted nodes do not have, blocks or longer paths, meets nothing: such columns are dropped or never looked at.
    """
    n_columns = fitted.hops.counts.shape[1]
    counts = described.hops.aligned(n_columns)
    blocks = np.unique(fitted.nodes.blocks)
    numbers = np.searchsorted(blocks[:-1], described.nodes.blocks)
    columns = counts.indices + np.repeat(numbers * n_columns, np.diff(counts.indptr))
    shape = (counts.shape[0], len(blocks) * n_columns)
    return replace(described.nodes, features=sp.csr_matrix((counts.data, columns, counts.indptr), shape=shape))


def _weighting(fitted: _Described) -> Weighting:
    """A column that stands for two positions counts twice."""
    kinds = np.tile(fitted.hops.is_pair(), len(np.unique(fitted.nodes.blocks))).astype(np.int64)
    return Weighting(kinds, np.zeros(2, np.int64), np.array([[1.0], [2.0]]), 1)
