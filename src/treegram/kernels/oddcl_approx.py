"""ODDCL_Approx: the paper's kernel with explicit vectors in the place of the node kernel."""

from __future__ import annotations

from dataclasses import field
from functools import cache, partial
from typing import Any

from treegram._core.parallel import one_blas_thread
from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid, GridPoint
from treegram.kernels.node_pairs import NodePairKernel, view_nodes
from treegram.kernels.oddcl import TREE_GRID, TREES, grid_pass, tree_groups
from treegram.kernels.vector_sums import (
    VECTOR_MAP,
    PairSample,
    choose_map,
    draw_seed,
    map_nodes,
    vector_pair_sums,
    vector_self_sums,
)
from treegram.structure.features import Features

__all__ = ["ODDCLApprox"]


@parameters
class ODDCLApprox(NodePairKernel):
    r"""Tree kernel for graphs with labels and vectors, the node kernel replaced by explicit vectors (ODDCL_Approx).

    The kernel of :class:`ODDCL` with :math:`\langle z(x), z(x') \rangle` in the place of :math:`k_A(x, x')`, so that a
    graph is one vector for each of its trees:

    .. math:: K(G, G') = \sum_t \lambda^{|t|} \langle Z_t(G), Z_t(G') \rangle, \quad
        Z_t(G) = \sum_{v \in G} F_{v,t} z(x_v)

    Here :math:`F_{v,t}` is how often the tree :math:`t` is rooted at the node :math:`v`, :math:`|t|` its number of nodes,
    :math:`\lambda` is ``lam``, and :math:`z` the map that ``method`` makes. Its error is measured on the graphs themselves: see
    ``estimated_error_``.

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
        of rows, shapes (n, d) and (m, d), that gives an (n, m) array. It must be positive semidefinite; others than "rbf"
        need ``method`` "nystroem" or "auto".
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
    method : {"auto", "rff", "orf", "qmc", "nystroem"}, default="auto"
        How z is made. "rff": random Fourier features, as in the paper; "orf": with orthogonal frequencies; "qmc": with
        frequencies from scrambled Sobol points; "nystroem": from pivots among the vectors of the fitted nodes, drawn by randomly
        pivoted Cholesky. "auto": no map but the exact kernel for up to 3e8 pairs of nodes with equal labels (about a thousand to
        some thousand graphs); else, with at most ``n_components`` distinct vectors, a factorization of their kernel matrix,
        which is exact; else "nystroem" up to the tolerance; and the exact kernel if that takes too many components.
    n_components : int or None, default=None
        Number of components of z (for "auto" the largest one; Nystroem stops where more would add nothing but rounding
        errors). None: 16, 24, 36, ... up to 1024, until the estimated error is within the tolerance. The paper has 1000.
        A Fourier map has a cosine and a sine for each frequency: an odd number becomes the next even one.
    tolerance : float, default=0.01
        Largest relative error of the Gram matrix wanted, where the number of components is chosen.
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    random_state : int, RandomState instance or None, default=0
        Seed of the map and of the sample of pairs; the same number gives the same bits.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    method_ : str
        The method used, "distinct" (exact factorization for few distinct vectors), or "exact".
    choice_ : str
        The reason for the choice, and the estimated error.
    n_components_ : int
        Number of components of z; 0 with the exact engine.
    estimated_error_ : float
        Relative Frobenius error of the (normalized) Gram matrix, estimated from a random sample of some two thousand pairs
        of fitted graphs whose exact kernel is computed.
    map_ : object
        The map z: ``map_(X)`` gives one row per attribute vector. None with the exact engine.
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value used for ``gamma="scale"``; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    ODDCL : the exact kernel, faster up to some thousand graphs.
    ODDCLFeatures : the same vectors as rows for linear models, for any number of graphs.

    Notes
    -----
    Positive semidefinite by construction. Random Fourier features in all three qualities are unbiased: the expected
    matrix, not normalized, is the exact one. Time is that of z for each distinct vector, of one addition of z for each
    node and tree, and of one matrix product for each tree over the graphs that have it; memory is the result's and some
    200 MiB at most. The map does not depend on targets, nor on the order of nodes.

    References
    ----------
    G. Da San Martino, N. Navarin, A. Sperduti: A tree-based kernel for graphs with continuous attributes.
    IEEE Transactions on Neural Networks and Learning Systems, 2018.

    N. M. Kriege, M. Neumann, C. Morris, K. Kersting, P. Mutzel: A unifying view of explicit and implicit feature maps of
    graph kernels. Data Mining and Knowledge Discovery, 2019.

    A. Rahimi, B. Recht: Random features for large-scale kernel machines. NIPS 2007. F. X. Yu et al.: Orthogonal random
    features. NIPS 2016. Y. Chen et al.: Randomly pivoted Cholesky. arXiv:2207.06503.

    Examples
    --------
    >>> from treegram import Graphs, ODDCLApprox
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["C", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> kernel = ODDCLApprox(depth=1, random_state=0)
    >>> kernel.fit_transform(graphs).round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    >>> kernel.choice_
    'exact: 6.5e+00 pairs of nodes with equal labels are few enough; estimated Gram error 0.0e+00.'
    """

    name = "oddcl-approx"
    _one_pass = ("depth", "lam")
    _explained_by = ""  # sums of vectors are not sums over nodes
    _default_param_grid = TREE_GRID
    _allowed = {**TREES, **VECTOR_MAP}

    depth: int = field(default=3, kw_only=False)
    lam: float = 1.0
    counting: str = "paper"
    use_edge_labels: bool = False
    method: str = "auto"
    n_components: int | None = None
    tolerance: float = 0.01
    random_state: Any = 0

    @property
    def learns_from_data(self) -> bool:
        """True if the map, its number of components or its gamma follows from the fitted nodes."""
        return super().learns_from_data or self.method in ("auto", "nystroem") or self.n_components is None

    def _learn(self, graphs: Graphs, grid: Grid) -> None:
        super()._learn(graphs, grid)  # the map is that of the kernel's own parameters, whatever the grid
        seed = draw_seed(self.random_state)
        with one_blas_thread():
            sample = cache(partial(PairSample.draw, self, graphs, seed))  # drawn when a map is tried
            view = view_nodes(self, graphs)
            choice = choose_map(
                self, view, graphs.n_attributes, lambda z: sample().error_of(z), seed, can_be_exact=True
            )
        self.map_ = choice.vector_map
        self.method_ = choice.method
        self.choice_ = choice.describe(choice.error)
        self.n_components_ = 0 if choice.vector_map is None else choice.vector_map.n_components
        self.estimated_error_ = choice.error
        self._is_complete = choice.is_complete
        choice.warn(self, choice.error, self.tolerance)

    def _features(self, graphs: Graphs, grid: Grid) -> list[Features]:
        return tree_groups(self, graphs, grid["depth"], grid["lam"])

    def _grid_pass(self, X: Graphs, X_new: Graphs, param_grid: Grid) -> list[GridPoint]:
        return grid_pass(partial(super()._grid_pass, X, X_new), self, X, param_grid)

    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        view = super()._describe(graphs, grid)
        return view if self.map_ is None else map_nodes(view)

    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        if self.map_ is None:
            return super()._pair_sums(left, right)
        if right is not None and self._is_complete:  # exact for new vectors too, which the map does not know
            return super()._pair_sums(left.view, right.view)
        with one_blas_thread():
            return vector_pair_sums(left, right, self.map_, self.n_jobs)

    def _self_sums(self, described: Any) -> Floats:
        if self.map_ is None:
            return super()._self_sums(described)
        if self._is_complete:
            return super()._self_sums(described.view)
        with one_blas_thread():
            return vector_self_sums(described, self.map_, self.n_jobs)
