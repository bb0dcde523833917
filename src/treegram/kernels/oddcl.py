"""ODDCL_ST: the paper's kernel for graphs with labels and vectors at the nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from treegram._types import Floats
from treegram.attributes import NODE_KERNEL_NAMES, NodeKernel, node_kernel_blocks
from treegram.graphs import Graphs, as_graphs
from treegram.kernels._base import GraphKernel, normalize_gram
from treegram.kernels._odd import ODD_CONSTRAINTS, check_grid, overflows, refuse_overflow, weigh
from treegram.pairsum.nodes import Nodes, Weighting, pair_sums, self_sums
from treegram.structure.labels import node_hashes
from treegram.structure.trees import Phi, tree_features

__all__ = ["ODDCL"]


@dataclass(frozen=True)
class _Described:
    phi: Phi
    nodes: Nodes  # with the weighed counts of phi as features
    node_kernel: NodeKernel


class ODDCL(GraphKernel):
    r"""Tree kernel for graphs with labels and vectors at the nodes (ODDCL_ST).

    Two graphs are alike when they have nodes at which the same labelled trees are rooted and whose vectors are close:

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
    gamma : float or None, default=None
        Width of the node kernel; None means 1 / (number of attributes). Other named kernels that have a gamma use it too.
    counting : {"algorithm", "visits", "capped"}, default="algorithm"
        Which trees are counted how often: as the paper's Algorithm 1 prints it, as the authors' ODDCL code does, or as
        their ODD_ST code does (a visit that has reached the whole component is not counted again).
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that gives an (n, m) array. It must be positive semidefinite.
    missing_labels : {"degree", "constant"}, default="degree"
        What stands for the labels of graphs that have none: each node's degree, or one label for all.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ODD_CONSTRAINTS,
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "node_kernel": [StrOptions(set(NODE_KERNEL_NAMES)), callable],
    }

    def __init__(
        self,
        depth: int = 3,
        *,
        lam: float = 1.0,
        gamma: float | None = None,
        counting: str = "algorithm",
        node_kernel: str | NodeKernel = "rbf",
        missing_labels: str = "degree",
        use_edge_labels: bool = False,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.depth = depth
        self.lam = lam
        self.gamma = gamma
        self.counting = counting
        self.node_kernel = node_kernel
        self.missing_labels = missing_labels
        self.use_edge_labels = use_edge_labels
        self.normalize = normalize
        self.n_jobs = n_jobs

    def gram_grid(self, X: Any, depths: Any, lams: Any) -> Floats:
        """All Gram matrices for lists of depths and lambdas, each node kernel value computed once.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        depths : sequence of int
            Values in the place of ``depth``.
        lams : sequence of float
            Values in the place of ``lam``.

        Returns
        -------
        ndarray of shape (n_depths, n_lams, n_graphs, n_graphs)
            ``[i, j]`` is what ``fit_transform`` gives with ``depth=depths[i], lam=lams[j]``.
        """
        self._validate_params()
        depths, lams = check_grid(depths, lams)
        graphs = as_graphs(X)
        phis = [self._phi(graphs, depth) for depth in depths]
        # Trees of a smaller depth are all among those of a larger one, so one numbering serves.
        widest = phis[int(np.argmax(depths))]
        safe = [not overflows(widest.sizes, lam) for lam in lams]
        if not self.normalize:
            refuse_overflow(widest.sizes, max(lams), max(depths))
        features = sp.hstack([phi.aligned(widest.codes) for phi in phis], format="csr")
        # A lambda that overflows counts with weight 0 in the common pass, and gets one of its own, rescaled, after it.
        weighting = _weighting(widest.sizes, len(depths), np.where(safe, lams, 0.0))
        sums = pair_sums(self._nodes(graphs, features), None, self._kernel(graphs), weighting, n_jobs=self.n_jobs)
        for j in np.flatnonzero(~np.array(safe)):
            for i, phi in enumerate(phis):
                sums[i, j] = self._pair_sums(self._weighed(graphs, phi, lams[j]), None)
        if self.normalize:
            diagonal = np.einsum("...ii->...i", sums).copy()
            normalize_gram(sums, diagonal, diagonal)
        return sums

    def _phi(self, graphs: Graphs, depth: int) -> Phi:
        return tree_features(
            graphs,
            depth,
            counting=self.counting,
            missing_labels=self.missing_labels,
            use_edge_labels=self.use_edge_labels,
            n_jobs=self.n_jobs,
        )

    def _nodes(self, graphs: Graphs, features: sp.csr_matrix) -> Nodes:
        return Nodes(
            n_graphs=len(graphs),
            graph_ids=graphs.graph_ids,
            blocks=node_hashes(graphs, self.missing_labels),
            # Without attributes k_A is 1, the Gaussian of equal vectors.
            vectors=np.zeros((graphs.n_nodes, 1)) if not graphs.n_attributes else np.asarray(graphs.attributes),
            features=features,
        )

    def _kernel(self, graphs: Graphs) -> NodeKernel:
        return node_kernel_blocks(self.node_kernel if graphs.n_attributes else "rbf", self.gamma, graphs.n_attributes)

    def _weighed(self, graphs: Graphs, phi: Phi, lam: float) -> _Described:
        phi = weigh(phi, lam, graphs.graph_ids, rescale=self.normalize)
        return _Described(phi, self._nodes(graphs, phi.counts), self._kernel(graphs))

    def _describe(self, graphs: Graphs) -> _Described:
        phi = self._phi(graphs, self.depth)
        if not self.normalize:
            refuse_overflow(phi.sizes, self.lam, self.depth)
        return self._weighed(graphs, phi, self.lam)

    def _pair_sums(self, left: _Described, right: _Described | None) -> Floats:
        if right is None:
            weighting = Weighting.alike(len(left.phi.codes))
            return pair_sums(left.nodes, None, left.node_kernel, weighting, n_jobs=self.n_jobs)[0, 0]
        nodes = replace(left.nodes, features=left.phi.aligned(right.phi.codes))
        weighting = Weighting.alike(len(right.phi.codes))
        return pair_sums(nodes, right.nodes, right.node_kernel, weighting, n_jobs=self.n_jobs)[0, 0]

    def _self_sums(self, described: _Described) -> Floats:
        weighting = Weighting.alike(len(described.phi.codes))
        return self_sums(described.nodes, described.node_kernel, weighting)[0, 0]


def _weighting(sizes: Floats, n_depths: int, lams: Floats) -> Weighting:
    """One group per depth, one weight per lambda; the columns of all depths stand side by side."""
    distinct, kinds = np.unique(sizes, return_inverse=True)
    return Weighting(
        kinds=np.concatenate([kinds + i * len(distinct) for i in range(n_depths)]),
        groups=np.repeat(np.arange(n_depths), len(distinct)),
        weights=np.tile(np.power(lams[None, :], distinct[:, None]), (n_depths, 1)),
        n_groups=n_depths,
    )
