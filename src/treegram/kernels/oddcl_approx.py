"""ODDCL_Approx: the paper's approximation of ODDCL, with inner products of explicit vectors in place of its node kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.parallel import one_blas_thread
from treegram._core.params import Whole, Words, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import NodeView, WeightedFeatures, by_point, vectors_and_kernel
from treegram.kernels.oddcl import ODDCL
from treegram.pairsum.attributes import Gaussian
from treegram.pairsum.maps import VectorMap, distinct_rows, draw_seed, evaluate, fourier_map
from treegram.pairsum.vectors import Entries, add_products, component_ranges, make_entries, self_products
from treegram.structure.features import Features


@parameters
class ODDCLApprox(ODDCL):
    r"""Tree kernel for graphs with labels and vectors, the node kernel replaced by explicit vectors (ODDCL_Approx).

    The kernel of :class:`ODDCL` with :math:`\langle z(x), z(x') \rangle` in place of :math:`k_A(x, x')`, so that a
    graph is one vector for each of its trees:

    .. math:: K(G, G') = \sum_t \lambda^{|t|} \langle Z_t(G), Z_t(G') \rangle, \quad
        Z_t(G) = \sum_{v \in G} F_{v,t} z(x_v)

    Here :math:`F_{v,t}` is how often the tree :math:`t` is rooted at the node :math:`v`, :math:`|t|` its number of nodes,
    :math:`\lambda` is ``lam``, and :math:`z` the map that ``method`` makes.

    Parameters
    ----------
    depth : int, default=3
        Depth of the visits, the paper's h. At 0 only the nodes themselves are compared.
    lam : float, default=1.0
        Weight of large trees: each tree node multiplies a tree's weight by ``lam``.
    gamma : float, {"scale", "narrow", "white"} or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes). A word is a rule for the vectors of the fitted nodes: "scale" means 1 / (number of attributes *
        mean variance of an attribute), which suits attributes of any range; "narrow" means eight times that, which suits scaled
        vectors in clusters, and "white" 0.2, which suits whitened vectors; both at most 1 / (squared distance of the nearest
        twentieth of all pairs). Other named kernels that have a gamma use it too.
    counting : {"paper", "visits", "capped"}, default="paper"
        How often a tree counts: "paper", as in Algorithm 1 of the paper; "visits", over all visits, as in a related module of the
        authors' code (we infer that their ODDCL did the same); "capped", as in their ODD_ST code (a visit that has reached
        the whole component is not counted again).
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite; kernels other
        than "rbf" need ``method="nystroem"``.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
    method : {"nystroem", "rff"}, default="nystroem"
        How z is made. "nystroem": from pivots among the vectors of the fitted nodes, drawn by randomly pivoted Cholesky; "rff":
        random Fourier features, as in the paper, which do not look at the data.
    n_components : int, default=256
        Number of components of z. Nystroem stops when more would only add rounding errors. The paper uses 1000. A Fourier map
        has a cosine and a sine for each frequency: an odd number becomes the next even one.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    random_state : int, RandomState instance or None, default=0
        Seed of the map; the same number gives the same bits.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    map_ : object
        The map z: ``map_(X)`` returns one row per attribute vector.
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value that was learned for a word; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    ODDCL : the exact kernel, faster up to a few thousand graphs.
    FeatureMap : the same vectors as rows for linear models, for any number of graphs.

    Notes
    -----
    Positive semidefinite by construction. Random Fourier features are unbiased: the expected
    matrix, not normalized, is the exact one. Time is that of z for each distinct vector, of one addition of z for each
    node and tree, and of one matrix product for each tree over the graphs that have it; memory is that of the result
    plus about 200 MiB at most. The map does not depend on targets, nor on the order of nodes.

    References
    ----------
    G. Da San Martino, N. Navarin, A. Sperduti: A tree-based kernel for graphs with continuous attributes.
    IEEE Transactions on Neural Networks and Learning Systems, 2018.

    N. M. Kriege, M. Neumann, C. Morris, K. Kersting, P. Mutzel: A unifying view of explicit and implicit feature maps of
    graph kernels. Data Mining and Knowledge Discovery, 2019.

    A. Rahimi, B. Recht: Random features for large-scale kernel machines. NIPS 2007.

    Y. Chen et al.: Randomly pivoted Cholesky. arXiv:2207.06503.

    Examples
    --------
    >>> from treegram import Graphs, ODDCLApprox
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["C", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> ODDCLApprox(depth=1).fit_transform(graphs).round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    """

    name = "oddcl-approx"
    _explained_by = ""  # sums of vectors are not sums over nodes
    _allowed = {"method": (Words("nystroem", "rff"),), "n_components": (Whole(1),)}

    method: str = "nystroem"
    n_components: int = 256
    random_state: Any = 0

    @property
    def learns_from_data(self) -> bool:
        """True if the map or its gamma follows from the fitted nodes."""
        return super().learns_from_data or self.method != "rff"

    def _learn(self, graphs: Graphs, grid: Grid) -> None:
        super()._learn(graphs, grid)
        seed = draw_seed(self.random_state)
        if self.method == "nystroem" or not graphs.n_attributes or not graphs.n_nodes:
            self.map_ = super()._vector_map(graphs, self.n_components, seed)
            return
        _, node_kernel = vectors_and_kernel(self, graphs)
        if not isinstance(node_kernel, Gaussian):
            raise ValueError(
                "method='rff' approximates the Gaussian kernel alone; with another node_kernel than 'rbf' use "
                "method='nystroem'."
            )
        self.map_ = fourier_map(graphs.n_attributes, self.n_components, node_kernel.gamma, seed)

    def _vector_map(self, graphs: Graphs, n_components: int, seed: int) -> VectorMap:  # noqa: ARG002
        """Return the map of this kernel, which its own parameters determine."""
        return self.map_

    def _describe(self, graphs: Graphs, grid: Grid) -> MappedView:
        return map_nodes(super()._describe(graphs, grid))

    def _pair_sums(self, left: MappedView, right: MappedView | None) -> Floats:
        with one_blas_thread():
            return mapped_pair_sums(left, right, self.map_, self.n_jobs)

    def _self_sums(self, view: MappedView) -> Floats:
        with one_blas_thread():
            return mapped_self_sums(view, self.map_, self.n_jobs)


# -------------------------------------------------------------------- sums of mapped vectors
#
# A graph is one vector for each feature of its nodes: Z_t(G) = sum over v of phi(v)_t z(x_v).


@dataclass(frozen=True)
class MappedView:
    """Graphs as the sums of explicit vectors see them, for any map."""

    view: NodeView
    vectors: Floats  # the distinct attribute vectors
    rows: Ints  # of each node: its vector
    entries: list[Entries]  # for each group of features, which vectors make up the sums of each feature and graph

    def aligned(self, *codes: Hashes) -> list[Entries]:
        """Return the entries of the features with the given sorted codes, for each group, without other features."""
        matrices = (group.aligned(wanted) for group, wanted in zip(self.view.groups, codes, strict=True))
        return [_entries(self.view, matrix, self.rows) for matrix in matrices]


def map_nodes(view: NodeView) -> MappedView:
    """Find the distinct vectors, and those that make up the sums."""
    vectors, rows = distinct_rows(view.nodes.vectors)
    return MappedView(view, vectors, rows, [_entries(view, group.counts, rows) for group in view.groups])


def _entries(view: NodeView, counts: sp.csr_matrix, rows: Ints) -> Entries:
    return make_entries(counts, view.nodes.graph_ids, view.nodes.n_graphs, rows)


def _weights(group: Features) -> Floats:
    """Return the weights of each column, shape (n_columns, n_weights)."""
    return group.weights[group.kinds] if isinstance(group, WeightedFeatures) else np.ones((len(group.codes), 1))


def mapped_pair_sums(left: MappedView, right: MappedView | None, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of all pairs of graphs for each point of the grid, not normalized; ``right=None``: left with itself."""
    other = left if right is None else right
    entries = left.entries if right is None else left.aligned(*(group.codes for group in right.view.groups))
    weights = [_weights(group) for group in other.view.groups]
    shape = (len(weights), weights[0].shape[1], left.view.nodes.n_graphs, other.view.nodes.n_graphs)
    out = np.zeros(shape)
    for columns in component_ranges(vector_map.n_components, len(left.vectors) + len(other.vectors)):
        z = evaluate(vector_map, left.vectors, columns, n_jobs=n_jobs)
        y = z if right is None else evaluate(vector_map, right.vectors, columns, n_jobs=n_jobs)
        for mine, theirs, tree_weights, sums in zip(entries, other.entries, weights, out, strict=True):
            add_products(mine, z, theirs, y, tree_weights, sums, n_jobs=n_jobs)
    return by_point(out)


def mapped_self_sums(mapped: MappedView, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of each graph with itself for each point of the grid, not normalized."""
    weights = [_weights(group) for group in mapped.view.groups]
    scaled = [
        [_scaled(entries, column) for column in tree_weights.T]
        for entries, tree_weights in zip(mapped.entries, weights, strict=True)
    ]
    out = np.zeros((len(weights), weights[0].shape[1], mapped.view.nodes.n_graphs))
    for columns in component_ranges(vector_map.n_components, len(mapped.vectors)):
        z = evaluate(vector_map, mapped.vectors, columns, n_jobs=n_jobs)
        for i, by_weight in enumerate(scaled):
            for k, entries in enumerate(by_weight):
                self_products(entries, z, out[i, k], n_jobs=n_jobs)
    return by_point(out)


def _scaled(entries: Entries, weights: Floats) -> Entries:
    """Return entries whose squares carry the weights of their trees."""
    if (weights == 1.0).all():
        return entries
    n_terms = np.diff(entries.starts[entries.trees])
    return replace(entries, values=entries.values * np.repeat(np.sqrt(weights), n_terms))
