"""SP: two graphs are similar when pairs of similar nodes are equally far apart in both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from treegram._core.params import Number, Words, parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import node_blocks, vectors_and_kernel
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.paths import PathEnds, group_equal, path_contributions, path_self_sums, path_sums
from treegram.structure.distances import count_distances


@dataclass(frozen=True)
class PathView:
    """Graphs as the sums over pairs of shortest paths see them."""

    ends: PathEnds
    node_kernel: NodeKernel


@parameters
class ShortestPath(GraphKernel):
    r"""Shortest path kernel with kernels on the ends and on the length of the paths (SP).

    Two pairs of nodes are similar when their first nodes are, their second nodes are, and their distances are:

    .. math::

        K(G, G') = \sum_{u \neq v \in G} \; \sum_{u' \neq v' \in G'} k(u, u') \, k(v, v') \,
                   k_{len}(d(u, v), d(u', v'))

    The sums run over ordered pairs of nodes with a path from the first to the second, and :math:`d` is the number of edges
    of a shortest one. :math:`k(u, u')` is ``node_kernel`` of the two vectors, by default
    :math:`\exp(-\gamma \|x_u - x_{u'}\|^2)`, and 0 for different labels if ``use_labels``. :math:`k_{len}(a, b)` is 1 for
    :math:`a = b` and 0 otherwise (``length_kernel="delta"``), or :math:`\max(0, c - |a - b|)` (``"brownian"``).

    Parameters
    ----------
    length_kernel : {"delta", "brownian"}, default="delta"
        Kernel of two distances: whether they are equal, or the Brownian bridge of width ``c``.
    c : float, default=2
        Distances that differ by ``c`` or more do not match under the Brownian bridge; 1 is the same as "delta".
    gamma : float, {"scale", "narrow", "white"} or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes). A word is a rule for the vectors of the fitted nodes: "scale" means 1 / (number of attributes *
        mean variance of an attribute), which suits attributes of any range; "narrow" means eight times that, which suits scaled
        vectors in clusters, and "white" 0.2, which suits whitened vectors; both at most 1 / (squared distance of the nearest
        twentieth of all pairs). Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
    use_labels : bool, default=False
        Whether only nodes with equal labels match. It is not known which of the two the published results used; on ENZYMES all
        four choices of ``use_labels`` and ``length_kernel`` agree with them.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value that was learned for a word; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    GraphHopper : compares all nodes of shortest paths, not only their ends.

    Notes
    -----
    Exact. For graphs with n and n' nodes the sum takes :math:`O(n^2 n' + n n'^2)`, not the :math:`O(n^2 n'^2)` of its
    definition: with :math:`A` the matrix of node kernels and :math:`S_d` that of the pairs at distance d, it is the sum of the
    entries of :math:`A \circ (S_d A S'_d)` over all d. Nodes of one graph with equal label and vector count as one. Memory
    is that of the distances, at most one number for each pair of nodes of a graph, and of the result.

    Where edges have a direction, so do distances. Pairs without a path between them are left out, so that a graph without
    edges has the kernel 0 with every graph, itself included. Without attributes the node kernel is 1, and with
    ``use_labels=True`` this is the shortest path kernel on discrete labels.

    References
    ----------
    K. Borgwardt, H.-P. Kriegel: Shortest-path kernels on graphs. IEEE International Conference on Data Mining, 2005.

    Examples
    --------
    >>> from treegram import Graphs, ShortestPath
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]]])
    >>> ShortestPath(normalize=False).fit_transform(graphs).round(3)
    array([[ 2.271,  4.541],
           [ 4.541, 13.083]])
    """

    _explained_by = "nodes"
    name = "sp"
    _allowed = {
        "length_kernel": (Words("delta", "brownian"),),
        "c": (Number(0, above=True),),
    }

    length_kernel: str = field(default="delta", kw_only=False)
    c: float = 2
    gamma: float | str | None = None
    node_kernel: str | NodeKernel = "rbf"
    use_labels: bool = False
    missing_labels: str = "degree"

    def _describe(self, graphs: Graphs, grid: Grid) -> PathView:  # noqa: ARG002 (no one-pass parameters)
        return self._view(graphs, join_equal=True)[0]

    def _view(self, graphs: Graphs, *, join_equal: bool) -> tuple[PathView, Ints]:
        """Return what the sums need, and one node of each group; equal nodes that are not joined are next to each other."""
        vectors, node_kernel = vectors_and_kernel(self, graphs)
        graph_ids, blocks = graphs.graph_ids, node_blocks(self, graphs)
        if node_kernel == Gaussian(0.0):  # it is 1 for all vectors, so they count as equal
            vectors = np.zeros((graphs.n_nodes, 1))
        groups, firsts = group_equal(graph_ids, blocks, vectors)
        if not join_equal:
            firsts = np.argsort(groups, kind="stable")
            groups = np.argsort(firsts)
        group_offsets = np.searchsorted(graph_ids[firsts], np.arange(len(graphs) + 1))
        ends = PathEnds(
            n_graphs=len(graphs),
            graph_ids=graph_ids[firsts],
            blocks=blocks[firsts],
            vectors=vectors[firsts],
            distances=count_distances(graphs, groups, group_offsets, n_jobs=self.n_jobs),
        )
        return PathView(ends, node_kernel), firsts

    def _length_weights(self, *ends: PathEnds) -> Floats:
        """Return the kernel of distances that differ by 0, 1, 2, ..., as far as it is not 0 and distances can differ."""
        if self.length_kernel == "delta":
            return np.ones(1)
        longest = max(int(each.distances.lengths.max(initial=1)) for each in ends)
        return float(self.c) - np.arange(min(longest, np.ceil(self.c)))

    def _pair_sums(self, left: PathView, right: PathView | None) -> Floats:
        fitted = left if right is None else right
        weights = self._length_weights(left.ends, fitted.ends)
        columns = None if right is None else right.ends
        return path_sums(left.ends, columns, fitted.node_kernel, weights, n_jobs=self.n_jobs)

    def _raw_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        """Divide what each pair of ends adds equally between the two."""
        used = np.flatnonzero(np.abs(weights).max(axis=1, initial=0.0) > 0)  # a support vector machine has few of these
        view = self._fitted if len(used) == len(weights) else self._view_graphs(self.graphs_[used])
        (alone, order), fitted, weights = self._view(graphs, join_equal=False), view.ends, weights[used]
        new = alone.ends
        lengths = self._length_weights(new, fitted)
        sums = partial(
            path_contributions,
            node_kernel=view.node_kernel,
            length_weights=lengths,
            weights=weights,
            n_jobs=self.n_jobs,
        )
        shares = np.empty((graphs.n_nodes, weights.shape[1]))
        shares[order] = sums(new, fitted)
        if graphs.directed:  # else a node ends as many paths as it starts
            shares[order] = 0.5 * (shares[order] + sums(new.reversed(), fitted.reversed()))
        return shares

    def _self_sums(self, view: PathView) -> Floats:
        weights = self._length_weights(view.ends)
        return path_self_sums(view.ends, view.node_kernel, weights, n_jobs=self.n_jobs)
