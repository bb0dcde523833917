"""The explicit features of ODDCL: one row per graph, for linear models and any number of graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import InvalidGraphError
from treegram._core.parallel import one_blas_thread
from treegram._core.params import FLAG, NOTHING, Checked, Whole, parameters
from treegram._core.types import Floats, Hashes
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
from treegram.kernels.node_pairs import NODE_KERNEL
from treegram.kernels.oddcl import TREES, count_trees, spread_counted_trees, view_trees, weigh
from treegram.kernels.oddcl_approx import (
    VECTOR_MAP,
    PairSample,
    choose_map,
    draw_seed,
    map_nodes,
    show_choice,
    vector_self_sums,
)
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.maps import evaluate
from treegram.pairsum.products import sum_rows
from treegram.pairsum.vectors import entry_products, hash_graphs, place_trees, spread_rows
from treegram.structure.hashing import node_hashes
from treegram.structure.trees import Phi, read_tree

__all__ = ["ODDCLFeatures"]

FAR = 10.0  # warn if hashing makes the error this many times as large as the tolerance


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
    gamma : float, "scale" or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes); "scale" means 1 / (number of attributes * mean variance of an attribute over the fitted
        nodes), which suits attributes of any range. Other named kernels that have a gamma use it too.
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
    method : {"auto", "rff", "qmc", "nystroem"}, default="auto"
        How z is made, as in :class:`ODDCLApprox`. "rff" and "qmc" do not look at the data; "nystroem" and "auto"
        are fitted on a sample of graphs, such as the first chunk of a stream.
    n_components : int or None, default=None
        Number of components of z (for "auto" the largest one). None: 16, 24, 36, ... up to 1024, until the error that z makes
        in the Gram matrix is within the tolerance, as estimated on the fitted graphs. A Fourier map has a cosine and a sine
        for each frequency: an odd number becomes the next even one.
    tolerance : float, default=0.01
        Largest acceptable relative error that z makes in the Gram matrix, if the number of components is chosen. If hashing
        makes it ten times as large, ``fit`` warns.
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
    method_ : str
        The method used, or "distinct" (exact factorization for few distinct vectors).
    choice_ : str
        The reason for the choice, and the estimated error.
    n_components_ : int
        Number of components of z.
    n_features_out_ : int
        Number of columns.
    estimated_error_ : float
        Relative Frobenius error of the inner products of rows against the exact (normalized) kernel, hashing included,
        estimated from a random sample of about two thousand pairs of fitted graphs.
    map_ : object
        The map z: ``map_(X)`` returns one row per attribute vector.
    gamma_ : float
        The value used for ``gamma="scale"``; absent for any other ``gamma``.
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

    With a data-independent ``method``, a ``gamma`` other than "scale", and numbers for ``n_components``, ``n_features`` and
    ``random_state``, the columns do not depend on the fitted graphs: ``fit`` on any graphs with as many attributes gives the same ones, on
    any machine.

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
    >>> ODDCLFeatures(depth=1, method="qmc", n_components=64, random_state=0).fit_transform(graphs).shape
    (2, 4096)
    """

    _allowed = {
        **GraphKernel._allowed,
        **TREES,
        **NODE_KERNEL,
        **VECTOR_MAP,
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
    method: str = "auto"
    n_components: int | None = None
    tolerance: float = 0.01
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
        self._seed = draw_seed(self.random_state)
        learn_gamma(self, graphs)
        with one_blas_thread():
            sample = PairSample.draw(self, graphs, self._seed)
            choice = choose_map(self, graphs, sample.error_of, self._seed, can_be_exact=False)
            assert choice.vector_map is not None  # the exact sums were not an option
            self.map_, self.n_components_ = choice.vector_map, choice.vector_map.n_components
            self.n_attributes_in_ = graphs.n_attributes
            self._kind = _kind(graphs)
            self._labels = _label_hashes(graphs)
            self._codes = None if self.n_features is not None else count_trees(self, graphs, self.depth).codes
            self.n_features_out_ = self.n_features if self._codes is None else len(self._codes) * self.n_components_
            error = self._error_on(sample)
        if self.n_features is not None:
            choice = replace(choice, reason=f"{choice.reason}, hashed to {self.n_features} columns")
        show_choice(self, choice, error, self.tolerance * (FAR if choice.error <= self.tolerance else 1.0))
        return self

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

    def estimate_error(self, X: Any) -> float:
        """Estimate the error of the fitted map on graphs, such as new ones.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        float
            Relative Frobenius error, as in ``estimated_error_``, from a random sample of pairs of these graphs.
        """
        graphs = self._check_like_fitted(X)
        with one_blas_thread():
            return self._error_on(PairSample.draw(self, graphs, self._seed))

    def _error_on(self, sample: PairSample) -> float:
        product: Any = self._rows(sample.left) @ self._rows(sample.right).T
        return sample.error_against(product.toarray() if sp.issparse(product) else product)

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
        view = view_trees(self, graphs)
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
        assert self._codes is not None
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
        n = self.n_components_
        with one_blas_thread():
            if self._codes is None:
                places = place_trees(phi.codes, n, len(weights), self._seed)
            else:
                columns = np.minimum(np.searchsorted(self._codes, phi.codes), max(len(self._codes) - 1, 0))
                is_known = self._codes[columns] == phi.codes if len(self._codes) else np.zeros(len(columns), bool)
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
