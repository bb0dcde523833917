"""FeatureMap: rows of features for linear models, exact for explicit kernels and mapped for kernels on labels times vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import BaseEstimator, TransformerMixin
from treegram._core.machine import require_rows
from treegram._core.parallel import one_blas_thread
from treegram._core.params import FLAG, NOTHING, SEED, Checked, Instance, Whole, parameters
from treegram._core.types import Array, Floats
from treegram.exceptions import InvalidGraphError, ParameterError
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.attribution import row_contributions
from treegram.kernels.base import GraphKernel, node_vectors
from treegram.kernels.explicit import HasFeatures
from treegram.kernels.input_checks import warn_of_unused
from treegram.kernels.node_pairs import NodePairKernel, view_nodes, weighted_columns
from treegram.kernels.oddcl_approx import map_nodes, mapped_self_sums
from treegram.kernels.wl import WL
from treegram.pairsum.maps import draw_seed, evaluate
from treegram.pairsum.products import sum_rows
from treegram.pairsum.tiles import inverse_roots
from treegram.pairsum.vectors import entry_products, hash_graphs, place_trees, spread_rows
from treegram.structure.features import Features

DenseOrSparse: TypeAlias = Floats | sp.csr_matrix
# A matrix for each output, and the name of a column.
NamedFeatures: TypeAlias = tuple[tuple[sp.csr_matrix, ...], Callable[[int], str]]


@parameters
class FeatureMap(Checked, TransformerMixin, BaseEstimator):
    r"""Features of graphs, one row per graph, for linear models and any other estimator that takes a table.

    Inner products of rows are, or approximate, the kernel's values, in time and memory linear in the number of graphs.

    **Exact rows** are those of kernels with explicit features: WL, WLOA, ODDST, NSPDK, P2K, Graphlets, RandomWalk, or one of
    your own. They have one column, with a readable name, for each feature of the fitted graphs.

    **Mapped rows** are those of kernels on labels times vectors: ODDCL, WLCL, GIK, GraphHopper, ODDCLApprox, or one of your own.
    With :math:`\phi(v)_t` the features of a node, a graph is one vector for each of them,

    .. math:: Z_t(G) = \sum_{v \in G} \phi(v)_t \, z(x_v), \quad \langle z(x), z(x') \rangle \approx k_A(x, x').

    The map :math:`z` consists of kernel values with some pivots among the vectors of the fitted nodes (the Nystroem method); with
    :class:`ODDCLApprox` it is the map of that kernel. These vectors are either side by side in a sparse row
    (``n_features=None``), or each is moved to a column and sign given by a hash of its feature, and all are added up in
    ``n_features`` columns:

    .. math:: h(G) = \sum_t s_t R^{c_t} (\epsilon \circ Z_t(G))

    with random signs :math:`s_t` and :math:`\epsilon`, and :math:`R^c` a move by c columns, wrapping around at the end.

    Parameters
    ----------
    kernel : GraphKernel or None, default=None
        The kernel. None means WL.
    n_components : int, default=256
        Number of components of z, for mapped rows. There are fewer where more would only add rounding errors.
    n_features : int or None, default=4096
        Columns of mapped rows. None: not hashed; one column for each feature of the fitted graphs and component of z.
    sparse_output : bool, default=True
        Whether rows that are not hashed are sparse. Dense rows can also be tables (``set_output``), with one column per feature.
    random_state : int, RandomState instance or None, default=0
        Seed of z and of the hash. Only a number makes the columns of mapped rows reproducible.

    Attributes
    ----------
    kernel_ : GraphKernel
        The fitted kernel. For mapped rows it keeps only as many graphs as it takes to have each label once.
    map_ : object or None
        The map z: ``map_(X)`` returns one row per attribute vector. None for exact rows.
    n_features_out_ : int
        Number of columns.

    See Also
    --------
    Nystroem : approximate rows for any kernel, from its values with some of the graphs.

    Notes
    -----
    A feature that the fitted graphs do not have gets no column, unless rows are hashed; normalized rows still take it into
    account, so that they are shorter than 1.

    Hashed rows are unbiased, as far as z is: the expected inner product, not normalized, is the kernel of z. The product
    of a feature with itself is exact; pairs of different features add noise of standard deviation at most
    ``2 / sqrt(n_features)`` to an entry of the normalized kernel. As a vector z stays in one piece, a node costs one
    contiguous addition of z for each of its features. Memory is that of the rows, ``8 n_features`` bytes per graph, and of
    the features of the graphs that are transformed together: transform large collections in chunks.

    Mapped rows of ``ODDCLApprox(method="rff")``, with a number or None for ``gamma``, do not depend on the fitted graphs: ``fit``
    on any graphs with as many attributes gives the same columns, on any machine.

    References
    ----------
    K. Weinberger et al.: Feature hashing for large scale multitask learning. ICML 2009.

    N. M. Kriege, M. Neumann, C. Morris, K. Kersting, P. Mutzel: A unifying view of explicit and implicit feature maps of
    graph kernels. Data Mining and Knowledge Discovery, 2019.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import FeatureMap, ODDCL, ODDST, load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> model = make_pipeline(FeatureMap(ODDST(depth=2)), LogisticRegression(C=100, max_iter=1000))
    >>> bool(model.fit(graphs[:200], y[:200]).score(graphs[200:300], y[200:300]) > 0.2)
    True
    >>> names = model[0].get_feature_names_out()
    >>> len(names) == model[0].n_features_out_
    True
    >>> FeatureMap(ODDCL(depth=1), n_components=64).fit_transform(graphs[:20]).shape
    (20, 4096)
    """

    _allowed = {
        "kernel": (Instance((GraphKernel,), "a kernel"), NOTHING),
        "n_components": (Whole(1),),
        "n_features": (Whole(1), NOTHING),
        "sparse_output": (FLAG,),
        "random_state": SEED,
    }

    kernel: GraphKernel | None = field(default=None, kw_only=False)
    n_components: int = 256
    n_features: int | None = 4096
    sparse_output: bool = True
    random_state: Any = 0

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn the features of graphs, or the map of their vectors.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs, or a sample of them, such as the first chunk of a stream.
        y : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        graphs = as_graphs(X)
        kernel: Any = WL() if self.kernel is None else clone(self.kernel)
        if kernel.normalize == "tanimoto":
            raise ParameterError(
                f"FeatureMap cannot use {kernel!r}: rows whose inner products are Tanimoto kernels would be endless. Use "
                "normalize=True or normalize=False."
            )
        if not isinstance(kernel, HasFeatures | NodePairKernel):
            raise ParameterError(
                "kernel of FeatureMap must be a kernel with explicit features, such as WL or ODDST, or one on labels times vectors, "
                f"such as ODDCL or WLCL; got {kernel!r}. Nystroem takes any kernel."
            )
        self.map_: Any = None
        if isinstance(kernel, NodePairKernel):
            self._learn_map(kernel, graphs)
            graphs = graphs_of_each_label(graphs)
        self.kernel_: Any = kernel.fit(graphs)
        return self

    def _learn_map(self, kernel: Any, graphs: Graphs) -> None:
        """Make the map, and learn the features if each has its own columns; the kernel keeps its gamma as a number."""
        if unused := kernel._unused_data(graphs):
            warn_of_unused(kernel, unused)
        kernel._warns_of_unused = False
        kernel._check_parameters()
        kernel._learn(graphs, kernel._single_grid())
        self._seed = draw_seed(self.random_state)
        self.map_ = kernel._vector_map(graphs, self.n_components, self._seed)
        if isinstance(kernel.gamma, str):
            kernel.set_params(gamma=kernel.gamma_)
        self._codes: Any = None if self.n_features is not None else _features_of(kernel, graphs).codes

    @property
    def n_features_out_(self) -> int:
        """Number of columns."""
        if self.map_ is None:
            return int(self.kernel_._fitted_counts.shape[1])
        return len(self._codes) * int(self.map_.n_components) if self.n_features is None else self.n_features

    def transform(self, X: Any) -> DenseOrSparse:
        """Compute the rows of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not. Labels and features that the fitted ones do not have are legal.

        Returns
        -------
        csr_matrix or ndarray of shape (n_graphs, n_features)
            One row per graph.
        """
        check_is_fitted(self)
        graphs = self.kernel_._check_like_fitted(as_graphs(X))
        rows: Any = self.kernel_._feature_rows(graphs) if self.map_ is None else self._mapped_rows(graphs)
        if sp.issparse(rows) and not self.sparse_output:
            require_rows(rows.shape[0], float(rows.shape[0]) * rows.shape[1])
            rows = rows.toarray()
        return rows

    def get_feature_names_out(self, input_features: object = None) -> Array:  # noqa: ARG002 (scikit-learn's signature)
        """Return what each column counts: a tree such as ``C(N,C(O))``, a color, or a bin.

        Parameters
        ----------
        input_features : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        ndarray of str objects
            One name per column; ``featuremap0``, ``featuremap1``, ... for mapped rows.
        """
        check_is_fitted(self)
        name_of = "featuremap{}".format if self.map_ is not None else self.kernel_._name_reader()
        return np.asarray([name_of(column) for column in range(self.n_features_out_)], dtype=object)

    # ---------------------------------------------------------------- mapped rows

    def _mapped_rows(self, graphs: Graphs) -> DenseOrSparse:
        """Return the rows of graphs: dense if they are hashed."""
        self._check_vectors(graphs)
        features = _features_of(self.kernel_, graphs)
        with one_blas_thread():
            rows: Any = self._unnormalized_rows(graphs, features)
            lengths = np.sqrt(self._squares(graphs, features, rows)) if self.kernel_.normalize else np.ones(len(graphs))
        lengths[lengths == 0] = 1.0
        if sp.issparse(rows):
            rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        else:
            rows /= lengths[:, None]
        return rows

    def _check_vectors(self, graphs: Graphs) -> None:
        if graphs.n_attributes and graphs.n_nodes and not self.kernel_.graphs_.n_nodes:
            raise InvalidGraphError(
                "FeatureMap was fitted on graphs without nodes, and has no map for vectors. Fit it on graphs with nodes."
            )

    def _unnormalized_rows(self, graphs: Graphs, features: Features) -> DenseOrSparse:
        """Return the rows before normalization."""
        n_jobs = self.kernel_.n_jobs
        if self.n_features is not None:
            counts, codes, vectors = features.counts, features.codes, node_vectors(graphs)
            options = (self.map_, self.n_features, self._seed)
            return hash_graphs(graphs.offsets, vectors, counts, codes, *options, n_jobs=n_jobs)
        nodes = map_nodes(view_nodes(self.kernel_, graphs, [features]))
        vectors = evaluate(self.map_, nodes.vectors, n_jobs=n_jobs)
        return spread_rows(nodes.aligned(self._codes)[0], vectors, n_jobs=n_jobs)

    def _squares(self, graphs: Graphs, features: Features, rows: DenseOrSparse) -> Floats:
        """Return the square of the length of each row, with all its features: also those without a column."""
        if self.n_features is not None:
            return np.einsum("ij,ij->i", rows, rows)
        view = view_nodes(self.kernel_, graphs, [features])
        return mapped_self_sums(map_nodes(view), self.map_, self.kernel_.n_jobs).ravel()

    # ---------------------------------------------------------------- explanations

    def _node_contributions(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """Return what each node adds to the products of its graph's row with weights, (n_nodes, n_outputs).

        With ``spread``, what a node adds by the tree around it is divided among the nodes of that tree.
        """
        if self.map_ is None:
            return row_contributions(self.kernel_, graphs, weights, spread=spread)
        features, per_value = self._entry_contributions(graphs, weights)
        if spread and type(self.kernel_)._spread_over_nodes is not NodePairKernel._spread_over_nodes:
            return self.kernel_._spread_over_nodes(graphs, features, per_value)
        sums = [matrix.sum(axis=1) for matrix in _times_values(features, per_value)]
        return np.asarray(np.hstack(sums))

    def _feature_contributions(self, graphs: Graphs, weights: Floats) -> NamedFeatures:
        """Return what each feature adds, for each output a matrix of graphs and features, and a function that names a feature."""
        if self.map_ is None:
            rows = self.kernel_._feature_rows(graphs)
            return tuple((rows @ sp.diags(output)).tocsr() for output in weights.T), self.kernel_._name_reader()
        features, per_value = self._entry_contributions(graphs, weights)
        values = tuple(sum_rows(matrix, graphs.offsets) for matrix in _times_values(features, per_value))
        return values, lambda column: self.kernel_._name_feature(graphs, features, column)

    def _entry_contributions(self, graphs: Graphs, weights: Floats) -> tuple[Features, Floats]:
        """Return the features of each node, and what each entry adds to mapped rows, divided by its value: (n_entries, n_outputs)."""
        self._check_vectors(graphs)
        features, n = _features_of(self.kernel_, graphs), self.map_.n_components
        counts = features.counts
        ones = sp.csr_matrix((np.ones(counts.nnz), counts.indices, counts.indptr), counts.shape)
        if self._codes is None:
            places = place_trees(features.codes, n, len(weights), self._seed)
        else:
            is_known = np.isin(features.codes, self._codes)
            columns = np.where(is_known, np.searchsorted(self._codes, features.codes), 0)
            places = (columns * n, is_known.astype(float), np.ones(n))
        with one_blas_thread():
            per_value = entry_products(node_vectors(graphs), ones, places, self.map_, weights)
            if self.kernel_.normalize:
                factors = inverse_roots(self._squares(graphs, features, self._unnormalized_rows(graphs, features)))
                per_value *= np.repeat(factors[graphs.graph_ids], np.diff(counts.indptr))[:, None]
        return features, per_value


def graphs_of_each_label(graphs: Graphs) -> Graphs:
    """Return the first graph with each label; the first with nodes for graphs without labels."""
    labels = np.zeros(graphs.n_nodes) if graphs.labels is None else graphs.labels
    nodes = np.unique(labels, return_index=True)[1]
    return graphs[np.unique(graphs.graph_ids[nodes])]


def _features_of(kernel: Any, graphs: Graphs) -> Any:
    """Return the features of each node with the roots of their weights, for the parameters of the kernel."""
    (features,) = kernel._features(graphs, kernel._single_grid())
    counts = weighted_columns(features)
    counts.sort_indices()
    return features if counts is features.counts else Features(counts, features.codes)


def _times_values(features: Features, per_value: Floats) -> list[sp.csr_matrix]:
    """Return the features times a factor for each entry, for each output."""
    counts = features.counts
    return [
        sp.csr_matrix((counts.data * output, counts.indices, counts.indptr), counts.shape) for output in per_value.T
    ]
