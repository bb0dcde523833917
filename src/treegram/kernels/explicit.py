"""The family of kernels with explicit features: K(G, G') = <phi(G), phi(G')>, one sparse row per graph.

A kernel of this family is defined by its phi, the method ``_features``. :class:`FeatureMap` makes rows and names of columns public.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import normalize as normalize_rows
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import ParameterError
from treegram._core.machine import require_rows
from treegram._core.params import FLAG, NOTHING, Checked, Instance, parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.base import GraphKernel, inverse_roots
from treegram.kernels.grid import Grid
from treegram.pairsum.products import feature_products
from treegram.structure.features import Features

__all__ = ["ExplicitKernel", "FeatureMap", "HasFeatures"]


@dataclass(frozen=True)
class GraphRows:
    """Graphs as rows of features."""

    n_graphs: int
    groups: Sequence[Features]  # for each point of the grid


class HasFeatures(GraphKernel):
    """Base of the kernels whose rows of features :class:`~treegram.FeatureMap` and explanations read."""

    @property
    @abstractmethod
    def _fitted_counts(self) -> sp.csr_matrix:
        """The rows of the fitted graphs, not normalized."""

    @abstractmethod
    def _feature_rows(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of graphs; features that the fitted graphs do not have get no column.

        Normalized rows still take these into account, so that they are shorter than 1.
        """

    @abstractmethod
    def _name_reader(self) -> Callable[[int], str]:
        """Return a function that gives the name of a column."""

    @abstractmethod
    def _raw_column_contributions(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        """Return the same as ``_column_contributions``, without normalization."""

    def _feature_weights(self, weights: Floats) -> Floats:
        """Return the weight of each column if the fitted graphs have weights: (n_features, n_outputs)."""
        if self._self_kernels is not None:
            weights = weights * inverse_roots(self._self_kernels.reshape(-1))[:, None]
        column_weights: Floats = self._fitted_counts.T @ weights
        return column_weights

    def _column_contributions(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """Return what each node adds to the products of its graph's row with weights, (n_nodes, n_outputs)."""
        self._check_explained()
        described = self._describe(graphs, self._own_grid())
        spread = spread and self._explained_by == "trees"
        contributions = self._raw_column_contributions(graphs, described, weights, spread=spread)
        return self._normalized(graphs, described, contributions)

    def _raw_contributions(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        return self._raw_column_contributions(graphs, described, self._fitted_counts.T @ weights, spread=spread)


@parameters
class ExplicitKernel(HasFeatures):
    """A kernel that is the inner product of rows of features, and that does not use vectors."""

    uses_attributes: ClassVar[bool] = False

    @abstractmethod
    def _features(self, graphs: Graphs, grid: Grid) -> Sequence[Features]:
        """Compute phi: one row per graph, for each point of the grid of one-pass parameters.

        With ``_adds_up`` the values are ascending, and the features are those that a point adds.
        """

    def _name_feature(self, fitted: Features, column: int) -> str:
        """Return the name of a column of the fitted graphs' features: its code, unless a kernel can read it."""
        return f"{fitted.codes[column]:016x}"

    def _node_features(self, graphs: Graphs) -> Features:
        """Compute the features of each node, for explanations: the rows of a graph's nodes add up to its own row."""
        raise NotImplementedError

    @property
    def _fitted_features(self) -> Any:
        (features,) = self._fitted.groups
        return features

    @property
    def _fitted_counts(self) -> sp.csr_matrix:
        return self._fitted_features.counts

    def _feature_rows(self, graphs: Graphs) -> sp.csr_matrix:
        (found,) = self._describe(graphs, self._own_grid()).groups
        rows = found.counts
        if self.normalize and rows.nnz:  # scikit-learn refuses a matrix without rows or columns
            rows = normalize_rows(rows)
        return Features(rows, found.codes).aligned(self._fitted_features.codes)

    def _name_reader(self) -> Callable[[int], str]:
        return lambda column: self._name_feature(self._fitted_features, column)

    def _raw_column_contributions(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        contributions: Floats = self._node_features(graphs).aligned(self._fitted_features.codes) @ weights
        return contributions

    def _describe(self, graphs: Graphs, grid: Grid) -> GraphRows:
        return GraphRows(len(graphs), self._features(graphs, grid))

    def _pair_sums(self, left: GraphRows, right: GraphRows | None) -> Floats:
        columns = left if right is None else right
        sums = np.empty((len(left.groups), left.n_graphs, columns.n_graphs))
        for i, (mine, theirs) in enumerate(zip(left.groups, columns.groups, strict=True)):
            rows = mine.counts if right is None else mine.aligned(theirs.codes)
            feature_products(rows, None if right is None else theirs.counts, sums[i])
        return sums

    def _self_sums(self, described: GraphRows) -> Floats:
        sums = np.empty((len(described.groups), described.n_graphs))
        for i, group in enumerate(described.groups):
            sums[i] = np.asarray(group.counts.multiply(group.counts).sum(axis=1)).ravel()
        return sums


class FeatureMap(Checked, TransformerMixin, BaseEstimator):
    """Explicit features of graphs, one row per graph, for linear models and any other estimator that takes a table.

    Inner products of rows are the kernel's values; columns have readable names.

    Parameters
    ----------
    kernel : GraphKernel or None, default=None
        A kernel with explicit features: WL, WLOA, ODDST, NSPDK, P2K, Graphlets, RandomWalk, or one of your own. None means WL.
    sparse_output : bool, default=True
        Whether to return sparse rows. Dense rows can also be tables (``set_output``), with one column per feature.

    Attributes
    ----------
    kernel_ : GraphKernel
        The fitted kernel.
    n_features_out_ : int
        Number of columns: the features that the fitted graphs have.

    See Also
    --------
    ODDCLFeatures : rows for a kernel on vectors.
    Nystroem : approximate rows for any kernel.

    Notes
    -----
    Time is linear in the number of graphs. A feature that the fitted graphs do not have gets no column; normalized rows still
    take it into account, so that they are shorter than 1.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import FeatureMap, ODDST, load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> model = make_pipeline(FeatureMap(ODDST(depth=2)), LogisticRegression(C=100, max_iter=1000))
    >>> bool(model.fit(graphs[:200], y[:200]).score(graphs[200:300], y[200:300]) > 0.2)
    True
    >>> names = model[0].get_feature_names_out()
    >>> len(names) == model[0].n_features_out_
    True
    """

    _allowed = {
        "kernel": (Instance((GraphKernel,), "a kernel with explicit features"), NOTHING),
        "sparse_output": (FLAG,),
    }

    def __init__(self, kernel: GraphKernel | None = None, *, sparse_output: bool = True) -> None:
        self.kernel = kernel
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn the features of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        from treegram.kernels.wl import WL  # which imports this module

        kernel: Any = WL() if self.kernel is None else clone(self.kernel)
        if not isinstance(kernel, HasFeatures):
            raise ParameterError(
                f"kernel of FeatureMap must be a kernel with explicit features, such as WL or ODDST; got {kernel!r}. For ODDCL "
                "there is ODDCLFeatures."
            )
        if kernel._normalization == "tanimoto":
            raise ParameterError(
                f"FeatureMap cannot use {kernel!r}: rows whose inner products are Tanimoto kernels would be endless. Use "
                "normalize=True or normalize=False."
            )
        self.kernel_ = kernel.fit(X)
        return self

    @property
    def n_features_out_(self) -> int:
        """Number of columns: the features that the fitted graphs have."""
        return int(self.kernel_._fitted_counts.shape[1])

    def transform(self, X: Any) -> sp.csr_matrix | Floats:
        """Compute the rows of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        csr_matrix or ndarray of shape (n_graphs, n_features)
            One row per graph.
        """
        check_is_fitted(self)
        rows = self.kernel_._feature_rows(self.kernel_._check_like_fitted(as_graphs(X)))
        if self.sparse_output:
            return rows
        require_rows(rows.shape[0], float(rows.shape[0]) * rows.shape[1])
        return rows.toarray()

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002 (scikit-learn's signature)
        """Return what each column counts: a tree such as ``C(N,C(O))``, a color, or a bin.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        ndarray of str objects
            One name per column.
        """
        check_is_fitted(self)
        read = self.kernel_._name_reader()
        return np.asarray([read(column) for column in range(self.n_features_out_)], dtype=object)
