"""What every graph kernel shares: fit, transform, normalisation and the checks between them.

A kernel is three small methods on plain data: ``_describe`` turns graphs into whatever its sums need, ``_pair_sums`` gives
the kernel of all pairs of graphs, ``_self_sums`` that of each graph with itself. Think twice before adding anything here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from treegram._types import Floats
from treegram.errors import InvalidGraphError
from treegram.graphs import Graphs, as_graphs

__all__ = ["GraphKernel", "normalize_gram"]


class GraphKernel(TransformerMixin, BaseEstimator, ABC):
    """Base of all kernels: scikit-learn transformers from graphs to rows of a Gram matrix."""

    normalize: bool

    @property
    def learns_from_data(self) -> bool:
        """Whether a value depends on more than its two graphs, such as a scale or a sample taken in ``fit``.

        Such a kernel must be fitted inside each fold; any other may be computed once for all graphs, and sliced.
        """
        return False

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn the graphs that ``transform`` will compare with.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs to compare with.
        y : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted kernel.
        """
        self._validate_params()
        self._remember(as_graphs(X))
        self._self = self._self_sums(self._described) if self.normalize else None
        return self

    def fit_transform(self, X: Any, y: object = None, **fit_params: object) -> Floats:  # noqa: ARG002
        """Fit, and give the Gram matrix of the graphs: ``fit(X).transform(X)`` at half the cost.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : ignored
            There for scikit-learn's pipelines.
        **fit_params : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        ndarray of shape (n_graphs, n_graphs)
            The Gram matrix, symmetric and positive semidefinite.
        """
        self._validate_params()
        self._remember(as_graphs(X))
        K = self._pair_sums(self._described, None)
        self._self = K.diagonal().copy() if self.normalize else None
        return K if self._self is None else normalize_gram(K, self._self, self._self)

    def transform(self, X: Any) -> Floats:
        """Compare graphs with the fitted ones.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not; what the fitted ones never showed (labels, trees) is legal.

        Returns
        -------
        ndarray of shape (n_graphs, n_fitted)
            One row per graph in X, one column per fitted graph.
        """
        check_is_fitted(self)
        graphs = as_graphs(X)
        self._check_like_fitted(graphs)
        described = self._describe(graphs)
        K = self._pair_sums(described, self._described)
        return K if self._self is None else normalize_gram(K, self._self_sums(described), self._self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags

    def _remember(self, graphs: Graphs) -> None:
        self._described = self._describe(graphs)
        self.graphs_ = graphs
        self.n_attributes_in_ = graphs.n_attributes

    def _check_like_fitted(self, graphs: Graphs) -> None:
        if not graphs.n_nodes:
            return
        fitted = self.graphs_
        for what, new, old in (
            ("attributes", graphs.n_attributes, fitted.n_attributes),
            ("labels", graphs.labels is not None, fitted.labels is not None),
            ("directed edges", graphs.directed, fitted.directed),
        ):
            if new != old and fitted.n_nodes:
                raise InvalidGraphError(
                    f"X differs in its {what} from what {type(self).__name__} was fitted on: {old} then, {new} now."
                )

    @abstractmethod
    def _describe(self, graphs: Graphs) -> Any:
        """What the sums need of the graphs."""

    @abstractmethod
    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        """The kernel of each pair of graphs, not normalised; ``right=None``: left with itself."""

    @abstractmethod
    def _self_sums(self, described: Any) -> Floats:
        """The kernel of each graph with itself, not normalised."""


def normalize_gram(K: Floats, rows: Floats, columns: Floats) -> Floats:
    """K / sqrt(rows columns), in place; a graph whose kernel with itself is 0 gets zeros.

    ``rows`` and ``columns`` are the kernels with themselves of the graphs along either axis; leading axes of K and of these
    are matched, so that a whole grid is normalised at once.
    """
    factors = []
    for diagonal in (rows, columns):
        positive = diagonal > 0
        factors.append(np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0))
    K *= factors[0][..., :, None]
    K *= factors[1][..., None, :]
    return K
