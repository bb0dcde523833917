"""The features of an explicit kernel as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import ParameterError
from treegram._core.machine import require_rows
from treegram._core.params import FLAG, NOTHING, Checked, Instance
from treegram._core.types import Floats
from treegram.graphs import as_graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.explicit import HasFeatures
from treegram.kernels.wl import WL

__all__ = ["FeatureMap"]


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
