"""AttributedWalk: pairs of walks whose nodes are alike, one by one, in labels and vectors."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from treegram._core.params import Number, Whole, parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import NODE_KERNEL, node_blocks, vectors_and_kernel
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.walks import WalkNodes, walk_contributions, walk_self_sums, walk_sums
from treegram.structure.hashing import arc_hashes

__all__ = ["MOST_STEPS", "AttributedWalk", "describe_walks"]

MOST_STEPS = 1000  # far beyond what makes a difference: compiled code trusts that there is an entry for each


@parameters
class AttributedWalk(GraphKernel):
    r"""Random walk kernel with a kernel on the nodes of the walks: attributed, or marginalized, walks of at most ``n_steps`` steps.

    Two walks are alike when they have equally many steps and their nodes are alike, one by one:

    .. math::

        K(G, G') = \sum_{k=0}^{p} \delta^k \sum_{(v_0, \ldots, v_k) \in G} \; \sum_{(v'_0, \ldots, v'_k) \in G'} \;
                   \prod_{i=0}^{k} k(v_i, v'_i)

    The sums run over all walks of :math:`k` steps, :math:`p` is ``n_steps`` and :math:`\delta` is ``decay``. :math:`k(v, v')` is
    ``node_kernel`` of the two vectors, by default :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`, and 0 for different labels if
    ``use_labels``.

    Parameters
    ----------
    n_steps : int, default=3
        Largest number of steps. At 0 only nodes are compared.
    decay : float, default=0.1
        Weight of each step: walks of k steps count ``decay ** k``.
    gamma : float, "scale" or None, default=None
        How fast the node kernel decreases with the squared distance of two vectors: the larger, the narrower it is. None means
        1 / (number of attributes); "scale" means 1 / (number of attributes * mean variance of an attribute over the fitted
        nodes), which suits attributes of any range. Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that gives an (n, m) array. It must be positive semidefinite.
    use_labels : bool, default=True
        Whether only nodes with equal labels are alike.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether only edges with equal labels are alike.
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
    RandomWalk : walks without vectors, of any length.
    ShortestPath : shortest paths instead of walks.

    Notes
    -----
    Exact. With :math:`\kappa` the matrix of :math:`k(v, v')`, :math:`y_0 = \kappa` and :math:`y_{k+1} = \kappa \circ (A y_k A'^T)`,
    the sum over walks of k steps is that of the entries of :math:`y_k`. All numbers of steps and all ``decay`` come from one pass,
    which takes :math:`O(p \, (m n' + n m'))` for graphs with n and n' nodes and m and m' edges. Where edges have a direction,
    walks follow it. A contribution in an explanation is that of the walks that start at a node.

    References
    ----------
    H. Kashima, K. Tsuda, A. Inokuchi: Marginalized kernels between labeled graphs. International Conference on Machine Learning, 2003.
    T. Gärtner, P. Flach, S. Wrobel: On graph kernels: hardness results and efficient alternatives. Conference on Learning Theory, 2003.

    Examples
    --------
    >>> from treegram import AttributedWalk, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]]])
    >>> AttributedWalk(1, decay=1.0, use_labels=False, normalize=False).fit_transform(graphs).round(3)
    array([[ 5.006,  8.645],
           [ 8.645, 15.554]])
    """

    name = "attributedwalk"
    _explained_by = "nodes"
    _one_pass = ("n_steps", "decay")
    _default_param_grid = {"n_steps": [1, 2, 3, 4], "decay": [0.01, 0.1, 1.0]}
    _allowed = {**NODE_KERNEL, "n_steps": (Whole(0, MOST_STEPS),), "decay": (Number(0, above=True),)}

    n_steps: int = field(default=3, kw_only=False)
    decay: float = 0.1
    gamma: float | str | None = None
    node_kernel: str | NodeKernel = "rbf"
    use_labels: bool = True
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _describe(self, graphs: Graphs, grid: Grid) -> WalkNodes:
        every = np.arange(max(grid["n_steps"]) + 1)
        weights = [np.where(every <= n, float(decay) ** every, 0.0) for n in grid["n_steps"] for decay in grid["decay"]]
        return describe_walks(self, graphs, *vectors_and_kernel(self, graphs), np.array(weights))

    def _pair_sums(self, left: WalkNodes, right: WalkNodes | None) -> Floats:
        return walk_sums(left, right, n_jobs=self.n_jobs)

    def _self_sums(self, described: WalkNodes) -> Floats:
        return walk_self_sums(described, n_jobs=self.n_jobs)

    def _raw_contributions(self, graphs: Graphs, described: WalkNodes, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        return walk_contributions(described, self._fitted, weights, n_jobs=self.n_jobs)


def describe_walks(kernel: Any, graphs: Graphs, vectors: Floats, node_kernel: NodeKernel, weights: Floats) -> WalkNodes:
    """Return what sums over walks need of the graphs, as the kernel's parameters for labels say."""
    blocks, arc_codes = node_blocks(kernel, graphs), arc_hashes(graphs, use_edge_labels=kernel.use_edge_labels)
    return WalkNodes(graphs.offsets, blocks, vectors, graphs.indptr, graphs.indices, arc_codes, node_kernel, weights)
