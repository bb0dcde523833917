"""CSM: connected subgraph matching, which counts common subgraphs of two graphs, weighted by their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from treegram._core.params import LIST, NOTHING, Whole, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import node_blocks, vectors_and_kernel
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.matching import Matchables, match_contributions, match_self_sums, match_sums
from treegram.structure.hashing import GOLDEN, arc_hashes, mix_codes


@dataclass(frozen=True)
class MatchView:
    """Graphs in the form that the sums over matchings need."""

    nodes: Matchables
    node_kernel: NodeKernel
    weights: Floats  # of matchings of 1, 2, ... nodes
    sizes: Sequence[int]  # the largest sizes of the grid, ascending


@parameters
class CSM(GraphKernel):
    r"""Connected subgraph matching kernel (CSM).

    Two graphs are similar when many of their connected subgraphs can be mapped to each other, edges to edges and non-edges to
    non-edges, with similar nodes on similar nodes:

    .. math:: K(G, G') = \sum_\varphi \lambda_{|\varphi|} \prod_{v} \kappa(v, \varphi(v))

    The sum is over all bijections :math:`\varphi` from a set of at most ``max_size`` nodes of :math:`G` to one of
    :math:`G'` that preserve edges, kinds of edges and the lack of edges, where the set is connected in :math:`G`;
    :math:`|\varphi|` is its size and :math:`\lambda` are the ``weights``. The node kernel is
    :math:`\kappa(v, v') = [l_v = l_{v'}] \, k_A(x_v, x_{v'})`, with :math:`k_A` the
    ``node_kernel`` of the two vectors, by default :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`; the labels :math:`l` count only
    if ``use_labels``.

    Parameters
    ----------
    max_size : int, default=3
        Largest number of nodes that are matched at once, k in the literature.
    weights : array-like of shape (max_size,) or None, default=None
        Weight of the matchings of 1, 2, ... nodes, at least 0; None means 1 for all.
    use_labels : bool, default=False
        Whether only nodes with equal labels match. It is not known which of the two the published results used.
    gamma : float, {"scale", "narrow", "white"} or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes). A word is a rule for the vectors of the fitted nodes: "scale" means 1 / (number of attributes *
        mean variance of an attribute), which suits attributes of any range; "narrow" means eight times that, which suits scaled
        vectors in clusters, and "white" 0.2, which suits whitened vectors; both at most 1 / (squared distance of the nearest
        twentieth of all pairs). Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether only edges with equal labels match.
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

    Notes
    -----
    Exact: only what cannot matter in double precision is left out. Up to ``max_size=3``, for
    undirected graphs without edge labels, time is the number of pairs of nodes times the mean degree, plus the number of
    pairs of triangles. If :math:`k_A` is 1, as it is without attributes, nodes and edges (``max_size=2``) are counted graph by
    graph, which is faster still. Otherwise each matching of fewer than ``max_size`` nodes is visited once, and their number grows
    exponentially with ``max_size``. The product graph, whose size makes other programs run out of memory, is never built:
    memory is that of the result.

    Directed graphs: an edge matches an edge of the same direction; a set of nodes is connected if it is when directions
    are ignored. Without attributes :math:`k_A` is 1.

    The original allows any kernel on nodes and edges; this one compares edge labels for equality.

    References
    ----------
    N. Kriege, P. Mutzel: Subgraph matching kernels for attributed graphs. International Conference on Machine Learning,
    2012.

    Examples
    --------
    >>> from treegram import CSM, Graphs
    >>> path, square = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> graphs = Graphs.from_edges([path, square], labels=[["C"] * 3, ["C"] * 4])
    >>> CSM(max_size=4, normalize=False).fit_transform(graphs)
    array([[19., 36.],
           [36., 88.]])
    """

    name = "csm"
    _explained_by = "nodes"
    _one_pass = ("max_size",)
    _adds_up = True
    _default_param_grid = {"max_size": [1, 2, 3]}
    _allowed = {
        "max_size": (Whole(1),),
        "weights": (LIST, NOTHING),
    }

    max_size: int = field(default=3, kw_only=False)
    weights: Any = None
    use_labels: bool = False
    gamma: float | str | None = None
    node_kernel: str | NodeKernel = "rbf"
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _check_weights(self, max_size: int, largest: int) -> Floats:
        """Return the weights of matchings of 1, 2, ... nodes, up to the size of the largest graph."""
        n_sizes = min(max_size, max(largest, 1))
        if self.weights is None:
            return np.ones(n_sizes)
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or len(weights) < max_size:
            raise ValueError(
                f"weights must be a list of one number for each size up to max_size={max_size}; got shape {weights.shape}."
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"weights must be finite numbers of at least 0; got {self.weights!r}.")
        return weights[:n_sizes]

    def _describe(self, graphs: Graphs, grid: Grid) -> MatchView:
        sizes = grid["max_size"]
        weights = self._check_weights(sizes[-1], int(graphs.sizes.max(initial=1)))
        vectors, node_kernel = vectors_and_kernel(self, graphs)
        arcs = _arcs(graphs, use_edge_labels=self.use_edge_labels)
        nodes = Matchables(graphs.offsets, node_blocks(self, graphs), vectors, *arcs)
        return MatchView(nodes, node_kernel, weights, sizes)

    def _pair_sums(self, left: MatchView, right: MatchView | None) -> Floats:
        fitted = left if right is None else right
        nodes = None if right is None else right.nodes
        sums = match_sums(left.nodes, nodes, fitted.node_kernel, len(fitted.weights), n_jobs=self.n_jobs)
        return _by_largest_size(sums, fitted)

    def _raw_contributions(self, graphs: Graphs, view: MatchView, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        """Divide each matching equally among its nodes."""
        used = np.flatnonzero(np.abs(weights).max(axis=1, initial=0.0) > 0)
        fitted = self._view_graphs(self.graphs_[used])
        sides = (view.nodes, fitted.nodes)
        return match_contributions(*sides, fitted.node_kernel, fitted.weights, weights[used], n_jobs=self.n_jobs)

    def _self_sums(self, view: MatchView) -> Floats:
        max_size = len(view.weights)
        sums = match_self_sums(view.nodes, view.node_kernel, max_size, n_jobs=self.n_jobs)
        return _by_largest_size(sums, view)


def _by_largest_size(sums: Floats, view: MatchView) -> Floats:
    """Return what each largest size adds to the kernel, from the sums over matchings of each size."""
    spans = pairwise([0, *view.sizes])
    return np.stack([np.tensordot(view.weights[first:last], sums[first:last], axes=1) for first, last in spans])


def _arcs(graphs: Graphs, *, use_edge_labels: bool) -> tuple[Ints, Ints, Hashes]:
    """Return the neighbors in either direction, and for each the kind of edge: its label and direction."""
    labels = arc_hashes(graphs, use_edge_labels=use_edge_labels)
    if not graphs.directed:
        return graphs.indptr, graphs.indices, labels
    n = graphs.n_nodes
    sources = np.repeat(np.arange(n), graphs.degrees)
    pairs = np.concatenate([sources * n + graphs.indices, graphs.indices * n + sources])
    # Seen from its other end, an edge is of a different kind. Labels are mixed before they are added: node and edge labels
    # may have equal hashes, and sums of these could be equal for different edges.
    keys, inverse = np.unique(pairs, return_inverse=True)
    codes = np.zeros(len(keys), np.uint64)
    np.add.at(codes, inverse, np.concatenate([mix_codes(labels), mix_codes(labels * GOLDEN)]))
    indptr = np.searchsorted(keys, np.arange(n + 1) * n)
    return indptr, keys % max(n, 1), codes
