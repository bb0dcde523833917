"""Kernel ridge regression on graphs: kernel, parameters and alpha are chosen by cross-validation, and the best is fitted on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from treegram._params import Allowed, Checked
from treegram._types import Floats, Ints
from treegram.graphs import Graphs
from treegram.maps import one_blas_thread
from treegram.selection.crossval import Fits
from treegram.selection.scoring import NumberAnswers, Scorer, check_scoring, rate
from treegram.selection.search import (
    SEARCH,
    STRENGTHS,
    check_fit,
    check_strengths,
    check_weights,
    keep,
    list_entries,
    list_splits,
    search,
    takes_graphs,
)

__all__ = ["GraphRidge", "check_numbers"]


class GraphRidge(Checked, RegressorMixin, BaseEstimator):
    r"""Kernel ridge regression on graphs that chooses its kernel, the kernel's parameters and alpha.

    All Gram matrices of a grid are made in one pass where the kernel can, each is scored with each alpha by cross-validation
    on the same folds, and the best pair is fitted on all graphs:

    .. math:: \hat y(G) = \bar y + \sum_i c_i K(G, G_i), \quad c = (K + \alpha I)^{-1} (y - \bar y)

    Here :math:`\bar y` is the mean of the fitted targets, and :math:`\alpha` is ``alpha``. As
    :class:`sklearn.kernel_ridge.KernelRidge` on targets less their mean.

    Parameters
    ----------
    kernel : GraphKernel, Pipeline, str or list of these, default=None
        What to choose from: a kernel, a pipeline of transformers that ends in one, the name of a kernel on the command line
        such as "wl", or several of these. None: :class:`ODDCL`.
    grid : "auto", dict, or list of these, default="auto"
        Values to try for each parameter of the kernel, such as ``{"depth": [1, 2], "lam": [0.5, 1]}``; ``{}`` takes the
        kernel as it is. "auto": values that are usual for the kernel, the paper's for ODDCL and ODDST (depth 0 to 3, lam
        0.1 to 1.2). A list has one entry for each kernel; one entry serves all.
    alpha : float or sequence of float, default=(0.0001, 0.001, 0.01, 0.1, 1, 10, 100)
        Values of alpha to try: the larger, the closer predictions stay to the mean.
    scoring : str, callable or None, default=None
        What the search maximises: the name of a scikit-learn scorer such as "neg_mean_absolute_error", or a function
        ``(model, X, y) -> number``. None: 1 - (mean squared error) / (variance of all fitted targets).
    cv : int, splitter or iterable, default=10
        Number of shuffled folds, or a scikit-learn splitter, or pairs of (training ids, test ids).
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, where ``cv`` is a number.
    n_jobs : int or None, default=None
        Threads to use for Gram matrices and for fits, as in joblib; -1 means all. None: one for fits, and the kernel's own
        number for Gram matrices.
    verbose : int, default=0
        Above 0, a line is printed for each kernel that was searched.

    Attributes
    ----------
    kernel_ : GraphKernel or Pipeline
        The best kernel with its parameters, fitted on all graphs.
    best_params_ : dict
        Name of the best kernel, the parameters chosen for it, and alpha.
    best_score_ : float
        Its mean score over the folds.
    best_index_ : int
        Its place in ``cv_results_``.
    cv_results_ : dict of arrays
        All candidates with their scores, as in :class:`sklearn.model_selection.GridSearchCV`; a pandas table with one call.
    dual_coef_ : ndarray of shape (n_graphs,)
        The coefficients c.
    intercept_ : float
        The weighted mean of the fitted targets.

    See Also
    --------
    GraphSVC : for targets that are classes.

    Notes
    -----
    Of equal scores the first kernel is taken, then the first point of its grid, then the largest alpha. A kernel or
    transformer that learns from data learns from all fitted graphs, before they are divided into folds; it never sees a
    target. One eigendecomposition for each matrix and fold serves all alphas. Gram matrices are made in blocks of 1 GiB, or one
    at a time where a single one is larger; memory holds about three times as much.

    Examples
    --------
    >>> from treegram import ODDCL, GraphRidge, load_digits_graphs
    >>> graphs, _ = load_digits_graphs()
    >>> y = [graph.attributes[:, 2].mean() for graph in graphs[:104]]  # how dark the inked pixels are
    >>> model = GraphRidge(ODDCL(), cv=5).fit(graphs[:100], y[:100])
    >>> model.best_params_
    {'kernel': 'ODDCL', 'depth': 0, 'lam': 0.1, 'alpha': 0.0001}
    >>> model.predict(graphs[100:104]).round(1)
    array([2.1, 2.1, 2.3, 2. ])
    >>> [round(float(number), 1) for number in y[100:]]
    [2.0, 2.1, 2.3, 1.9]
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {**SEARCH, "alpha": STRENGTHS}

    def __init__(
        self,
        kernel: Any = None,
        *,
        grid: Any = "auto",
        alpha: float | Sequence[float] = (0.0001, 0.001, 0.01, 0.1, 1, 10, 100),
        scoring: Any = None,
        cv: Any = 10,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.alpha = alpha
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose a kernel, its parameters and alpha, and fit them on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs,)
            One number for each graph.
        sample_weight : array-like of shape (n_graphs,), default=None
            Weights of the squared errors, in each fit and in the scores of the search, but for a ``scoring`` function of your
            own.
        groups : array-like of shape (n_graphs,), default=None
            For a splitter that keeps groups together, such as :class:`sklearn.model_selection.GroupKFold`.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        graphs, targets = check_fit(X, y)
        numbers = check_numbers(targets)
        weights = check_weights(sample_weight, len(numbers))
        alphas = check_strengths("alpha", self.alpha)[::-1]
        scorer = check_scoring(self.scoring)
        splits = self._splits(numbers, groups)
        rate_fold = partial(_score_ridges, graphs=graphs, y=numbers, alphas=alphas, weights=weights, scorer=scorer)
        with one_blas_thread():
            entries = list_entries(self.kernel, self.grid, self.n_jobs)
            found = search(
                entries, graphs, splits, rate_fold, ("alpha", alphas), n_jobs=self.n_jobs, verbose=int(self.verbose)
            )
            keep(self, found)
            self.intercept_ = float(np.average(numbers, weights=weights))
            K = self.kernel_.fit_transform(graphs)
            best = np.array([self.best_params_["alpha"]])
            self.dual_coef_ = _ridge_coefficients(K, numbers - self.intercept_, best, weights).ravel()
        return self

    def _splits(self, y: Floats, groups: Any) -> list[tuple[Ints, Ints]]:
        if not isinstance(self.cv, Integral):
            return list_splits(self.cv, y, groups)
        if len(y) < int(self.cv):
            raise ValueError(f"{len(y)} graphs are too few for {self.cv} folds. Use fewer folds, or more graphs.")
        return list(KFold(int(self.cv), shuffle=True, random_state=self.random_state).split(y))

    def predict(self, X: Any) -> Floats:
        """The numbers that go with graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,)
            One number for each graph.
        """
        check_is_fitted(self)
        predicted: Floats = self.kernel_.transform(X) @ self.dual_coef_ + self.intercept_
        return predicted

    def __sklearn_tags__(self) -> Any:
        return takes_graphs(super().__sklearn_tags__())


# -------------------------------------------------------------------- ridges


def check_numbers(targets: NDArray[Any]) -> Floats:
    """Targets as finite numbers."""
    try:
        numbers = targets.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y must be numbers; got an array of dtype {targets.dtype}. For classes use GraphSVC."
        ) from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"y must be finite numbers; got {numbers[~np.isfinite(numbers)][0]}.")
    return numbers


def _ridge_coefficients(K: Floats, y: Floats, alphas: Floats, weights: Floats | None) -> Floats:
    """(K + alpha / weights)^-1 y for all alphas, (n_graphs, n_alphas); eigenvalues that rounding has made negative count as 0."""
    roots = np.ones(len(y)) if weights is None else np.sqrt(weights)
    values, vectors = np.linalg.eigh(roots[:, None] * K * roots)
    shrunk = vectors @ ((vectors.T @ (roots * y))[:, None] / (np.maximum(values, 0.0)[:, None] + alphas))
    coefficients: Floats = roots[:, None] * shrunk
    return coefficients


def _score_ridges(
    K: Floats,
    train: Ints,
    test: Ints,
    *,
    graphs: Graphs,
    y: Floats,
    alphas: Floats,
    weights: Floats | None,
    scorer: Scorer | None,
) -> tuple[Floats, Fits]:
    """The score on the test part for each alpha."""
    own, of_test = (None if weights is None else weights[part] for part in (train, test))
    center = np.average(y[train], weights=own)
    coefficients = _ridge_coefficients(K[np.ix_(train, train)], y[train] - center, alphas, own)
    predicted = K[np.ix_(test, train)] @ coefficients + center
    if scorer is None:
        errors = np.average((predicted - y[test][:, None]) ** 2, axis=0, weights=of_test)
        return 1.0 - errors / (y.var() or 1.0), Fits(len(alphas))
    scores = [rate(scorer, NumberAnswers(column), graphs[test], y[test], of_test) for column in predicted.T]
    return np.array(scores, dtype=np.float64), Fits(len(alphas))
