"""Nystroem: approximate rows for any kernel, from its columns for some graphs chosen by randomly pivoted Cholesky."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import BaseEstimator, TransformerMixin
from treegram._core.machine import require_rows
from treegram._core.parallel import one_blas_thread
from treegram._core.params import NOTHING, SEED, Checked, Instance, Whole, parameters
from treegram._core.types import Array, Floats, Ints
from treegram.exceptions import ParameterError
from treegram.graphs import as_graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import split_pipeline
from treegram.kernels.oddcl import ODDCL
from treegram.pairsum.maps import pivoted_cholesky
from treegram.pairsum.tiles import complete_gram, normalize_gram

SMALLEST = 1e-9  # fraction of a graph's own kernel that must be unexplained, else it adds only rounding errors


@parameters
class Nystroem(Checked, TransformerMixin, BaseEstimator):
    r"""Rows whose inner products approximate any kernel, from its columns for some training graphs (the Nystroem method).

    .. math:: K(G, G') \approx k_P(G)^T K_{PP}^{-1} k_P(G')

    Here :math:`P` are the chosen graphs, :math:`K_{PP}` is their Gram matrix, and :math:`k_P(G)` the kernel of :math:`G` with
    them. Randomly pivoted Cholesky [1]_ chooses them: a graph is drawn with a probability proportional to the part of its
    own kernel that earlier ones do not explain. Kernel values are exact, and only those with a chosen graph are computed.

    Parameters
    ----------
    kernel : GraphKernel or Pipeline or None, default=None
        The kernel, or a pipeline of transformers that ends in one. None: ODDCL.
    n_components : int, default=100
        Largest number of graphs to choose; fewer are chosen where more would only add rounding errors.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws.

    Attributes
    ----------
    kernel_ : GraphKernel or Pipeline
        The fitted kernel.
    component_indices_ : ndarray of shape (n_chosen,)
        Positions of the chosen graphs among the training graphs, in the order in which they were drawn.
    trace_error_ : float
        Fraction of the trace that is not explained: the exact error, not an estimate.
    n_features_out_ : int
        Number of columns.

    See Also
    --------
    FeatureMap : rows in linear time, without comparing graphs: exact or mapped, but not for all kernels.

    Notes
    -----
    Time: the kernel of each graph with each chosen graph, and ``n_graphs * n_components**2`` multiplications. Memory:
    ``n_graphs * n_components`` numbers. Both are linear in the number of graphs. Draws that those of the same round
    already explain are rejected [2]_, so that the result follows the same distribution as with one draw at a time.

    References
    ----------
    .. [1] Chen, Epperly, Tropp, Webber, "Randomly pivoted Cholesky: practical approximation of a kernel matrix with few
       entry evaluations", Communications on Pure and Applied Mathematics 78 (2025).
    .. [2] Epperly, Tropp, Webber, "Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky",
       arXiv:2410.03969 (2024).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import WL, Nystroem, load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> model = make_pipeline(Nystroem(WL(2), 50), LogisticRegression(C=100, max_iter=1000))
    >>> bool(model.fit(graphs[:200], y[:200]).score(graphs[200:300], y[200:300]) > 0.2)
    True
    >>> bool(model[0].trace_error_ < 0.5)
    True
    """

    _allowed = {
        "kernel": (Instance((BaseEstimator,), "a kernel"), NOTHING),
        "n_components": (Whole(1),),
        "random_state": SEED,
    }

    kernel: Any = field(default=None, kw_only=False)
    n_components: int = field(default=100, kw_only=False)
    random_state: Any = 0

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Choose graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs to choose from.
        y : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self
            The fitted transformer.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: object = None, **fit_params: object) -> Floats:  # noqa: ARG002
        """Choose graphs, and compute the rows of all graphs: ``fit(X).transform(X)`` without computing anything twice.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : ignored
            Not used, present for API consistency by convention.
        **fit_params : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        ndarray of shape (n_graphs, n_components)
            One row per graph.
        """
        with one_blas_thread():
            return self._choose(X)

    def transform(self, X: Any) -> Floats:
        """Compute the rows of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs, n_components)
            One row per graph. Inner products with the rows of the chosen graphs are exact.
        """
        check_is_fitted(self)
        with one_blas_thread():
            columns = self.kernel_.transform(as_graphs(X))
            rows: Floats = solve_triangular(self._factor, columns.T, lower=True, check_finite=False).T
            return np.ascontiguousarray(rows)

    def get_feature_names_out(self, input_features: object = None) -> Array:  # noqa: ARG002 (scikit-learn's signature)
        """Return a name for each column.

        Parameters
        ----------
        input_features : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        ndarray of str objects
            ``graph17`` is the column of training graph 17.
        """
        check_is_fitted(self)
        return np.asarray([f"graph{i}" for i in self.component_indices_], dtype=object)

    def _choose(self, X: Any) -> Floats:
        """Choose graphs, and return the rows of all graphs."""
        self._check_parameters()
        graphs = as_graphs(X)
        if not len(graphs):
            raise ParameterError("Nystroem must be fitted on at least one graph; got none.")
        self.kernel_ = clone(ODDCL() if self.kernel is None else self.kernel)
        _, final = split_pipeline(self.kernel_)
        self.kernel_.fit(graphs)
        n_most = min(self.n_components, len(graphs))
        require_rows(len(graphs), float(len(graphs)) * n_most, 2)  # twice while they grow
        selves, rng = final._fitted_diag, check_random_state(self.random_state)
        square, columns = partial(_square, final), partial(_columns, final)
        positions, rows, rest = pivoted_cholesky(selves, square, columns, n_most, rng, smallest=SMALLEST)
        final._keep(positions)
        self.trace_error_ = float(rest.sum() / selves.sum()) if selves.any() else 0.0
        self.component_indices_, self.n_features_out_ = positions, len(positions)
        self._factor = np.tril(rows[positions])
        return rows

    def _component_weights(self, coefficients: Floats) -> Floats:
        """Turn a linear model's coefficients of the columns into weights of the kernel with each chosen graph."""
        return solve_triangular(self._factor.T, coefficients, lower=False)


# -------------------------------------------------------------------- values of a fitted kernel on its own graphs


def _columns(kernel: GraphKernel, positions: Ints) -> Floats:
    """Compute the kernel of all fitted graphs with the chosen ones."""
    K = kernel._gram(kernel._fitted, kernel._view_graphs(kernel.graphs_[positions]))
    if kernel._self_kernels is not None:
        normalize_gram(K, kernel._self_kernels, kernel._self_kernels[positions], normalize=kernel.normalize)
    return K


def _square(kernel: GraphKernel, positions: Ints) -> Floats:
    """Compute the kernel of the chosen graphs with each other."""
    K = kernel._gram(kernel._view_graphs(kernel.graphs_[positions]), None)
    selves = K.diagonal().copy() if kernel._self_kernels is None else kernel._self_kernels[positions]
    complete_gram(K, selves, normalize=kernel.normalize)
    return K
