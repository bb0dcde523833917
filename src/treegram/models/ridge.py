"""Kernel ridge regression on graphs: kernel, parameters and alpha are chosen by cross-validation, and the best is fitted on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from treegram._core.params import Allowed, parameters
from treegram._core.types import Floats, Ints
from treegram.models.crossval import Fits, choose
from treegram.models.model import STRENGTHS, CrossValidatedModel, check_numbers, list_splits
from treegram.models.scoring import NumberAnswers, Scorer, check_scoring, rate
from treegram.models.search import Given, Score, Splits
from treegram.pairsum.maps import one_blas_thread

__all__ = ["GraphRidge", "RidgeSelection", "number_folds", "select_ridge"]


@parameters
class GraphRidge(RegressorMixin, CrossValidatedModel):
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
        such as "wl", or several of these. None: :class:`ODDCL`. "auto": some twelve candidates that suit the graphs, and sums
        of the best, chosen by cross-validation; see :doc:`/models`.
    grid : "auto", dict, or list of these, default="auto"
        Values to try for each parameter of the kernel, such as ``{"depth": [1, 2], "lam": [0.5, 1]}``; ``{}`` takes the
        kernel as it is. "auto": values that are usual for the kernel, the paper's for ODDCL and ODDST (depth 0 to 3, lam
        0.1 to 1.2). A list has one entry for each kernel; one entry serves all.
    alpha : float or sequence of float, default=(0.0001, 0.001, 0.01, 0.1, 1, 10, 100)
        Values of alpha to try: the larger, the closer predictions stay to the mean.
    scoring : str, callable or None, default=None
        What the search maximizes: the name of a scikit-learn scorer such as "neg_mean_absolute_error", or a function
        ``(model, X, y) -> number``. None: 1 - (mean squared error) / (variance of all fitted targets).
    cv : int, splitter or iterable, default=10
        Number of shuffled folds, or a scikit-learn splitter, or pairs of (training ids, test ids).
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, where ``cv`` is a number.
    max_seconds : float or None, default=None
        After so many seconds no further kernel is begun. The first one always is, so that there is a model. Without a
        limit, the result depends on graphs, targets and seed alone.
    n_jobs : int or None, default=None
        Threads to use for Gram matrices and for fits, as in joblib; -1 means all. None: one for fits, and the kernel's own
        number for Gram matrices.
    verbose : int, default=0
        Above 0, a line is printed for each kernel that was searched; where no terminal and no notebook shows progress, stderr
        gets a line about it every half minute.

    Attributes
    ----------
    kernel_ : GraphKernel or Pipeline
        The best kernel with its parameters, fitted on all graphs.
    search_results_ : list of dict
        What was tried, in this order: candidate, reason, number of graphs, best score, seconds, and a note ("chosen", or why
        it was left out). ``search_summary()`` gives it as a table.
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
    n_fits_ : int
        How many machines were fitted, one for each candidate, fold and alpha.

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

    _allowed: ClassVar[Mapping[str, Allowed]] = {"alpha": STRENGTHS}
    _strength = "alpha"
    _order = slice(None, None, -1)

    alpha: float | Sequence[float] = (0.0001, 0.001, 0.01, 0.1, 1, 10, 100)

    def _read_targets(self, given: NDArray[Any]) -> Floats:
        return check_numbers(given)

    def _splits(self, targets: Floats, groups: Any) -> Splits:
        if not isinstance(self.cv, Integral):
            return list_splits(self.cv, targets, groups)
        if len(targets) < int(self.cv):
            raise ValueError(f"{len(targets)} graphs are too few for {self.cv} folds. Use fewer folds, or more graphs.")
        return number_folds(len(targets), int(self.cv), self.random_state)

    def _fold_score(self, given: Given) -> Score:
        return partial(_score_ridges, given=given, scorer=check_scoring(self.scoring))

    def _fit_best(self, given: Given, fits: Fits) -> None:
        self.n_fits_ = fits.n_fits
        self.intercept_ = float(np.average(given.targets, weights=given.weights))
        K, best = self.kernel_.fit_transform(given.graphs), np.array([self.best_params_["alpha"]])
        self.dual_coef_ = _ridge_coefficients(K, given.targets - self.intercept_, best, given.weights).ravel()

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


# -------------------------------------------------------------------- ridges


def number_folds(n_graphs: int, n_folds: int, seed: Any) -> list[tuple[Ints, Ints]]:
    """(training, test) ids of shuffled folds; both ascending."""
    splitter = KFold(n_folds, shuffle=True, random_state=seed)
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in splitter.split(np.empty(n_graphs))]


@dataclass(frozen=True)
class RidgeSelection:
    """What was selected in the training part of a fold, and what it says about the test part."""

    gram: int  # which Gram matrix
    alpha: float
    inner_score: float  # 1 - (mean squared error) / (variance of the training targets), mean over the inner folds
    predicted: Floats  # (n_test,) numbers
    fits: Fits


def select_ridge(
    grams: Sequence[Floats], y: Floats, train: Ints, test: Ints, alphas: Floats, *, n_folds: int, seed: int
) -> RidgeSelection:
    """Choose a Gram matrix and an alpha by cross-validation inside ``train``, fit on all of it, predict ``test``.

    Of equals, the first Gram matrix is chosen, and of its equals the first alpha. Rows of ``test`` are looked at by the last
    step alone, and only in the columns of ``train``.
    """
    variance = float(y[train].var()) or 1.0
    inner = [(train[a], train[b]) for a, b in number_folds(len(train), n_folds, seed)]
    scores = np.zeros((len(grams), len(alphas)))
    with one_blas_thread():
        for g, K in enumerate(grams):
            for part, held_out in inner:
                errors = (_predict_ridges(K, y, part, held_out, alphas) - y[held_out][:, None]) ** 2
                scores[g] += (1.0 - errors.mean(axis=0) / variance) / n_folds
        g, a = choose(scores)
        predicted = _predict_ridges(grams[g], y, train, test, alphas[a : a + 1])[:, 0]
    fits = Fits(len(grams) * len(inner) * len(alphas) + 1)
    return RidgeSelection(g, float(alphas[a]), float(scores[g, a]), predicted, fits)


def _predict_ridges(
    K: Floats, y: Floats, train: Ints, test: Ints, alphas: Floats, weights: Floats | None = None
) -> Floats:
    """Predictions of the test part for each alpha, (n_test, n_alphas)."""
    center = np.average(y[train], weights=weights)
    coefficients = _ridge_coefficients(K[np.ix_(train, train)], y[train] - center, alphas, weights)
    predicted: Floats = K[np.ix_(test, train)] @ coefficients + center
    return predicted


def _ridge_coefficients(K: Floats, y: Floats, alphas: Floats, weights: Floats | None) -> Floats:
    """(K + alpha / weights)^-1 y for all alphas, (n_graphs, n_alphas); eigenvalues that rounding has made negative count as 0."""
    roots = np.ones(len(y)) if weights is None else np.sqrt(weights)
    values, vectors = np.linalg.eigh(roots[:, None] * K * roots)
    shrunk = vectors @ ((vectors.T @ (roots * y))[:, None] / (np.maximum(values, 0.0)[:, None] + alphas))
    coefficients: Floats = roots[:, None] * shrunk
    return coefficients


def _score_ridges(K: Floats, train: Ints, test: Ints, *, given: Given, scorer: Scorer | None) -> tuple[Floats, Fits]:
    """The score on the test part for each alpha."""
    y, alphas = given.targets, given.strengths
    own, of_test = (None if given.weights is None else given.weights[part] for part in (train, test))
    predicted = _predict_ridges(K, y, train, test, alphas, own)
    if scorer is None:
        errors = np.average((predicted - y[test][:, None]) ** 2, axis=0, weights=of_test)
        return 1.0 - errors / (y.var() or 1.0), Fits(len(alphas))
    scores = [rate(scorer, NumberAnswers(column), given.graphs[test], y[test], of_test) for column in predicted.T]
    return np.array(scores, dtype=np.float64), Fits(len(alphas))
