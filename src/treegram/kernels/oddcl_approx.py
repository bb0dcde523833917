"""Explicit maps of ODDCL: its node kernel replaced by inner products of vectors, as a kernel and as rows for linear models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import InvalidGraphError
from treegram._core.parallel import one_blas_thread
from treegram._core.params import FLAG, NOTHING, Checked, Whole, Words, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.base import (
    GraphKernel,
    inverse_roots,
    learn_gamma,
    node_vectors,
    options_of,
    unused_data,
    warn_of_unknown_labels,
    warn_of_unused,
)
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import (
    NodeView,
    WeightedFeatures,
    by_point,
    node_blocks,
    vectors_and_kernel,
    view_nodes,
)
from treegram.kernels.oddcl import ODDCL, TREES, count_trees, spread_counted_trees, tree_groups, weigh
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.maps import Constant, VectorMap, distinct_rows, evaluate, fourier_map, nystroem_map
from treegram.pairsum.products import sum_rows
from treegram.pairsum.vectors import (
    Entries,
    add_products,
    component_ranges,
    entry_products,
    hash_graphs,
    make_entries,
    place_trees,
    self_products,
    spread_rows,
)
from treegram.structure.features import Features
from treegram.structure.hashing import equal_rows, node_hashes
from treegram.structure.trees import Phi, read_tree

__all__ = ["ODDCLApprox", "ODDCLFeatures"]

METHODS = ("nystroem", "rff")
EXACT_PAIRS = 3e8  # pairs of nodes that the exact sums compare in about a second


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
        than "rbf" need ``method`` "nystroem" or "auto".
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
    method : {"auto", "rff", "nystroem"}, default="auto"
        How z is made. "rff": random Fourier features, as in the paper; "nystroem": from pivots among the vectors of the fitted
        nodes, drawn by randomly pivoted Cholesky. "auto": the exact kernel, without a map, for up to 3e8 pairs of nodes with
        equal labels (one to a few thousand graphs), else "nystroem".
    n_components : int, default=256
        Number of components of z. Nystroem stops when more would only add rounding errors. The paper uses 1000. A Fourier map
        has a cosine and a sine for each frequency: an odd number becomes the next even one.
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    random_state : int, RandomState instance or None, default=0
        Seed of the map; the same number gives the same bits.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    map_ : object
        The map z: ``map_(X)`` returns one row per attribute vector. None for the exact kernel.
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value that was learned for a word; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    ODDCL : the exact kernel, faster up to a few thousand graphs.
    ODDCLFeatures : the same vectors as rows for linear models, for any number of graphs.

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
    >>> ODDCLApprox(depth=1, method="nystroem").fit_transform(graphs).round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    """

    name = "oddcl-approx"
    _explained_by = ""  # sums of vectors are not sums over nodes
    _allowed = {"method": (Words("auto", *METHODS),), "n_components": (Whole(1),)}

    method: str = "auto"
    n_components: int = 256
    random_state: Any = 0

    @property
    def learns_from_data(self) -> bool:
        """True if the map or its gamma follows from the fitted nodes."""
        return super().learns_from_data or self.method != "rff"

    def _learn(self, graphs: Graphs, grid: Grid) -> None:
        super()._learn(graphs, grid)
        is_exact = self.method == "auto" and _count_pairs(self, graphs) <= EXACT_PAIRS
        self.map_ = None if is_exact else make_map(self, graphs, draw_seed(self.random_state))

    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        view = super()._describe(graphs, grid)
        return view if self.map_ is None else map_nodes(view)

    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        if self.map_ is None:
            return super()._pair_sums(left, right)
        with one_blas_thread():
            return vector_pair_sums(left, right, self.map_, self.n_jobs)

    def _self_sums(self, described: Any) -> Floats:
        if self.map_ is None:
            return super()._self_sums(described)
        with one_blas_thread():
            return vector_self_sums(described, self.map_, self.n_jobs)


@parameters
class ODDCLFeatures(Checked, TransformerMixin, BaseEstimator):
    r"""Explicit features of the tree kernel ODDCL, one row per graph: time and memory linear in the number of graphs.

    Inner products of rows are, or approximate, the kernel of :class:`ODDCL`; those of normalized rows the normalized
    kernel. A graph is one vector for each of its trees,

    .. math:: Z_t(G) = \lambda^{|t| / 2} \sum_{v \in G} F_{v,t} z(x_v),

    where :math:`F_{v,t}` is how often the tree :math:`t` is rooted at the node :math:`v`, :math:`|t|` its number of nodes,
    :math:`\lambda` is ``lam``, and :math:`z` an explicit map with :math:`\langle z(x), z(x') \rangle \approx k_A(x, x')`.
    Either these vectors are side by side in a sparse row (``n_features=None``), or each is moved to a column and sign given by
    a hash of its tree's code, and all are added up in ``n_features`` columns:

    .. math:: h(G) = \sum_t s_t R^{c_t} (\epsilon \circ Z_t(G))

    with random signs :math:`s_t` and :math:`\epsilon`, and :math:`R^c` a move by c columns, wrapping around at the end.

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
        How z is made, as in :class:`ODDCLApprox`. "rff" does not look at the data; "nystroem" is fitted on a sample of graphs,
        such as the first chunk of a stream.
    n_components : int, default=256
        Number of components of z. Nystroem stops when more would only add rounding errors. A Fourier map has a cosine and a
        sine for each frequency: an odd number becomes the next even one.
    n_features : int or None, default=4096
        Columns of a hashed row. None: not hashed; one column for each tree of the fitted graphs and component of z.
    normalize : bool, default=True
        Whether each row is divided by its length. A row without columns for all its trees (``n_features=None`` and trees
        that the fitted graphs do not have) is divided by the length it would have with them.
    random_state : int, RandomState instance or None, default=0
        Seed of the map and the hash. Only a number makes the columns reproducible.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    n_features_out_ : int
        Number of columns.
    map_ : object
        The map z: ``map_(X)`` returns one row per attribute vector.
    gamma_ : float
        The value that was learned for a word; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of the vectors of the fitted graphs.

    See Also
    --------
    ODDCL : the exact kernel matrix.
    ODDCLApprox : the kernel matrix from the same vectors.

    Notes
    -----
    Hashed rows are unbiased, as far as z is: the expected inner product, not normalized, is the kernel of z. The product
    of a tree with itself is exact; pairs of different trees add noise of standard deviation at most
    ``2 / sqrt(n_features)`` to an entry of the normalized kernel. As a vector z stays in one piece, a node costs one
    contiguous addition of z for each of its trees. Memory is that of the rows, ``8 n_features`` bytes per graph, and of
    the trees of the graphs that are transformed together: transform large collections in chunks.

    With ``method="rff"``, a ``gamma`` other than "scale", and numbers for ``n_features`` and ``random_state``, the columns do not
    depend on the fitted graphs: ``fit`` on any graphs with as many attributes gives the same ones, on any machine.

    References
    ----------
    K. Weinberger et al.: Feature hashing for large scale multitask learning. ICML 2009.

    N. M. Kriege, M. Neumann, C. Morris, K. Kersting, P. Mutzel: A unifying view of explicit and implicit feature maps of
    graph kernels. Data Mining and Knowledge Discovery, 2019.

    Examples
    --------
    >>> from treegram import Graphs, ODDCLFeatures
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["C", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> Z = ODDCLFeatures(depth=1, n_features=None).fit_transform(graphs)
    >>> (Z @ Z.T).toarray().round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    >>> ODDCLFeatures(depth=1, method="rff", n_components=64).fit_transform(graphs).shape
    (2, 4096)
    """

    _allowed = {
        **GraphKernel._allowed,
        **TREES,
        "method": (Words(*METHODS),),
        "n_components": (Whole(1),),
        "n_features": (Whole(1), NOTHING),
        "normalize": (FLAG,),
    }

    depth: int = field(default=3, kw_only=False)
    lam: float = 1.0
    gamma: float | str | None = None
    counting: str = "paper"
    node_kernel: str | NodeKernel = "rbf"
    missing_labels: str = "degree"
    use_edge_labels: bool = False
    method: str = "nystroem"
    n_components: int = 256
    n_features: int | None = 4096
    normalize: bool = True
    random_state: Any = 0
    n_jobs: int | None = None

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Make the map z on a sample of graphs, and learn their trees if each tree has its own columns.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs, or a sample of them.
        y : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        graphs = as_graphs(X)
        warn_of_unused(self, unused_data(self, graphs))
        learn_gamma(self, graphs)
        self._seed = draw_seed(self.random_state)
        self.map_ = make_map(self, graphs, self._seed)
        self.n_attributes_in_ = graphs.n_attributes
        self._kind = _kind(graphs)
        self._labels = _label_hashes(graphs)
        self._codes: Any = None if self.n_features is not None else count_trees(self, graphs, self.depth).codes
        return self

    @property
    def n_features_out_(self) -> int:
        """Number of columns."""
        return len(self._codes) * self.map_.n_components if self.n_features is None else self.n_features

    def transform(self, X: Any) -> Floats | sp.csr_matrix:
        """Compute the rows of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not. Labels and trees that the fitted ones do not have are legal; without hashing, such trees get no
            column.

        Returns
        -------
        ndarray of shape (n_graphs, n_features), or csr_matrix of shape (n_graphs, n_trees * n_components) if not hashed
            One row per graph.
        """
        with one_blas_thread():
            return self._rows(self._check_like_fitted(X))

    def _rows(self, graphs: Graphs) -> Floats | sp.csr_matrix:
        rows, squares = self._rows_and_squares(graphs)
        lengths = np.sqrt(np.where(squares > 0, squares, 1.0)) if self.normalize else np.ones(len(graphs))
        if sp.issparse(rows):
            rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        else:
            rows /= lengths[:, None]
        return rows

    def _rows_and_squares(self, graphs: Graphs) -> tuple[Any, Floats]:
        """Compute the rows before normalization, and the square of the length of each, with all its trees."""
        view = view_nodes(self, graphs, tree_groups(self, graphs, [self.depth], [self.lam]))
        if self.n_features is not None:
            (trees,) = view.groups
            rows: Any = hash_graphs(
                graphs.offsets,
                node_vectors(graphs),
                trees.counts,
                trees.codes,
                self.map_,
                self.n_features,
                self._seed,
                n_jobs=self.n_jobs,
            )
            return rows, np.einsum("ij,ij->i", rows, rows)
        mapped = map_nodes(view)
        vectors = evaluate(self.map_, mapped.vectors, n_jobs=self.n_jobs)
        rows = spread_rows(mapped.aligned(self._codes)[0], vectors, n_jobs=self.n_jobs)
        return rows, vector_self_sums(mapped, self.map_, self.n_jobs).ravel()

    # ---------------------------------------------------------------- explanations

    def _tree_contributions(self, graphs: Graphs, weights: Floats) -> tuple[Phi, Floats]:
        """Return the trees at each node, and what each adds to the products of rows with weights, (n_entries, n_outputs).

        A row is a sum over nodes and trees; the length of a graph's row divides all of them.
        """
        graphs = self._check_like_fitted(graphs)
        phi = count_trees(self, graphs, self.depth)
        phi.counts.sort_indices()
        weighted = weigh(phi, self.lam, graphs.graph_ids, rescale=self.normalize).counts
        n = self.map_.n_components
        with one_blas_thread():
            if self._codes is None:
                places = place_trees(phi.codes, n, len(weights), self._seed)
            else:
                is_known = np.isin(phi.codes, self._codes)
                columns = np.where(is_known, np.searchsorted(self._codes, phi.codes), 0)
                places = (columns * n, is_known.astype(float), np.ones(n))
            contributions = entry_products(node_vectors(graphs), weighted, places, self.map_, weights)
            if self.normalize:
                lengths = inverse_roots(self._rows_and_squares(graphs)[1])
                contributions *= np.repeat(lengths[graphs.graph_ids], np.diff(phi.counts.indptr))[:, None]
        return phi, contributions

    def _node_contributions(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """Return what each node adds to the products of its graph's row with weights, (n_nodes, n_outputs)."""
        phi, contributions = self._tree_contributions(graphs, weights)
        if spread:
            return spread_counted_trees(self, graphs, phi, contributions)
        owners = sp.csr_matrix((np.ones(phi.counts.nnz), np.arange(phi.counts.nnz), phi.counts.indptr))
        nodes: Floats = owners @ contributions
        return nodes

    def _feature_contributions(self, graphs: Graphs, weights: Floats) -> tuple[tuple[Any, ...], Callable[[int], str]]:
        """Return what each tree adds, for each output a matrix of graphs and trees, and a function that names a tree."""
        phi, contributions = self._tree_contributions(graphs, weights)
        options = options_of(self, "missing_labels", "use_edge_labels")
        per_output = (
            sp.csr_matrix((own, phi.counts.indices, phi.counts.indptr), phi.counts.shape) for own in contributions.T
        )
        return tuple(sum_rows(one, graphs.offsets) for one in per_output), lambda column: read_tree(
            graphs, phi.seen[column], **options
        )

    def _check_like_fitted(self, X: Any) -> Graphs:
        """Return the graphs, if they are of the same kind as the fitted ones."""
        check_is_fitted(self)
        graphs = as_graphs(X)
        new = _kind(graphs)
        if new is not None and self._kind is None and graphs.n_attributes:
            raise InvalidGraphError(
                f"{type(self).__name__} was fitted on graphs without nodes, and has no map for vectors. Fit it on graphs with nodes."
            )
        if new is not None and self._kind is not None and new != self._kind:
            raise InvalidGraphError(f"X has {new}, but {type(self).__name__} was fitted on graphs with {self._kind}.")
        if graphs.labels is not None and len(self._labels):
            is_known = np.zeros(len(graphs.label_values), bool)
            is_known[graphs.labels] = np.isin(node_hashes(graphs, "constant"), self._labels)
            warn_of_unknown_labels(self, graphs, is_known, "")
        return graphs


def _label_hashes(graphs: Graphs) -> Hashes:
    """Return the labels that some node has, as hashes (graphs are not kept); none for graphs without labels."""
    return np.unique(node_hashes(graphs, "constant")) if graphs.labels is not None else np.empty(0, np.uint64)


def _kind(graphs: Graphs) -> str | None:
    """Describe what graphs of one map have in common; None for graphs without nodes, which fit any map."""
    labels = "no labels" if graphs.labels is None else "labels"
    direction = "directed" if graphs.directed else "undirected"
    return f"{graphs.n_attributes} attributes, {labels}, {direction} edges" if graphs.n_nodes else None


# -------------------------------------------------------------------- the map


def draw_seed(random_state: Any) -> int:
    """Draw the number that determines everything random."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def make_map(estimator: Any, graphs: Graphs, seed: int) -> VectorMap:
    """Make the map that the estimator's parameters specify."""
    if not graphs.n_attributes or not graphs.n_nodes:
        return Constant()
    all_vectors, node_kernel = vectors_and_kernel(estimator, graphs)
    if estimator.method == "rff":
        if not isinstance(node_kernel, Gaussian):
            raise ValueError(
                "method='rff' approximates the Gaussian kernel alone; with another node_kernel than 'rbf' use "
                "method='nystroem'."
            )
        return fourier_map(graphs.n_attributes, estimator.n_components, node_kernel.gamma, seed)
    vectors, numbers = distinct_rows(all_vectors)  # sorted: the map does not depend on the order of nodes
    with one_blas_thread():
        weights = np.bincount(numbers).astype(np.float64)
        return nystroem_map(vectors, weights, node_kernel, estimator.n_components, seed=seed)


def _count_pairs(kernel: Any, graphs: Graphs) -> float:
    """Return the number of pairs of nodes with equal labels, where equal nodes of a graph count once."""
    vectors, blocks = vectors_and_kernel(kernel, graphs)[0], node_blocks(kernel, graphs)
    _, first = equal_rows(vectors, graphs.graph_ids, blocks)
    sizes = np.unique(blocks[first], return_counts=True)[1].astype(np.float64)
    return float((sizes**2).sum()) / 2


# -------------------------------------------------------------------- sums of explicit vectors


@dataclass(frozen=True)
class MappedView:
    """Graphs as the sums of explicit vectors see them, for any map."""

    view: NodeView
    vectors: Floats  # the distinct attribute vectors
    rows: Ints  # of each node: its vector
    entries: list[Entries]  # for each group of features, which vectors make up the sums of each feature and graph

    def aligned(self, *codes: Hashes) -> list[Entries]:
        """Return the entries of the features with the given sorted codes, for each group, without other features."""
        matrices = (group.aligned(some) for group, some in zip(self.view.groups, codes, strict=True))
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


def vector_pair_sums(left: MappedView, right: MappedView | None, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of all pairs of graphs for each point of the grid, not normalized; ``right=None``: left with itself."""
    other = left if right is None else right
    entries = left.entries if right is None else left.aligned(*(group.codes for group in right.view.groups))
    weights = [_weights(group) for group in other.view.groups]
    shape = (len(weights), weights[0].shape[1], left.view.nodes.n_graphs, other.view.nodes.n_graphs)
    out = np.zeros(shape)
    for columns in component_ranges(vector_map.n_components, len(left.vectors) + len(other.vectors)):
        z = evaluate(vector_map, left.vectors, columns, n_jobs=n_jobs)
        y = z if right is None else evaluate(vector_map, right.vectors, columns, n_jobs=n_jobs)
        for mine, theirs, some, sums in zip(entries, other.entries, weights, out, strict=True):
            add_products(mine, z, theirs, y, some, sums, n_jobs=n_jobs)
    return by_point(out)


def vector_self_sums(mapped: MappedView, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of each graph with itself for each point of the grid, not normalized."""
    weights = [_weights(group) for group in mapped.view.groups]
    scaled = [
        [_scaled(entries, column) for column in some.T] for entries, some in zip(mapped.entries, weights, strict=True)
    ]
    out = np.zeros((len(weights), weights[0].shape[1], mapped.view.nodes.n_graphs))
    for columns in component_ranges(vector_map.n_components, len(mapped.vectors)):
        z = evaluate(vector_map, mapped.vectors, columns, n_jobs=n_jobs)
        for i, some in enumerate(scaled):
            for k, entries in enumerate(some):
                self_products(entries, z, out[i, k], n_jobs=n_jobs)
    return by_point(out)


def _scaled(entries: Entries, weights: Floats) -> Entries:
    """Return entries whose squares carry the weights of their trees."""
    if (weights == 1.0).all():
        return entries
    n_terms = np.diff(entries.starts[entries.trees])
    return replace(entries, values=entries.values * np.repeat(np.sqrt(weights), n_terms))
