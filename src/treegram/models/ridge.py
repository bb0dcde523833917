"""Kernel ridge regression on graphs, with kernel, parameters and alpha chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import RegressorMixin
from treegram._core.parallel import one_blas_thread
from treegram._core.params import NOTHING, Allowed, parameters
from treegram._core.text import warn_user
from treegram._core.types import Array, Floats, Ints
from treegram.models.base import SPLITS, STRENGTHS, CrossValidatedModel, check_numbers
from treegram.models.conformal import PredictsIntervals
from treegram.models.multi_target import TakesSeveralTargets
from treegram.models.search import (
    Data,
    Fits,
    NumberAnswers,
    Score,
    Scorer,
    Selection,
    Splits,
    choose_by_folds,
    rate,
)
from treegram.models.targets import TargetScale, blended_scales, choose_scale

# Those to choose from, with the positions of the training targets; a single one, None with the targets, if these stay plain.
Scales = Sequence[tuple[TargetScale | None, Floats]]

_SMALLEST_WEIGHT = 1e-9  # times the largest: replaces 0 in leave-one-out predictions


@parameters
class GraphRidge(TakesSeveralTargets, PredictsIntervals, RegressorMixin, CrossValidatedModel):
    r"""Kernel ridge regression on graphs that chooses its kernel, the kernel's parameters and alpha.

    All Gram matrices of a grid are computed in one pass if the kernel supports it, each is scored with each alpha by its
    predictions of left-out graphs, and the best pair is fitted on all graphs:

    .. math:: \hat y(G) = \bar y + \sum_i c_i K(G, G_i), \quad c = (K + \alpha I)^{-1} (y - \bar y)

    Here :math:`\bar y` is the mean of the fitted targets, and :math:`\alpha` is ``alpha``. This is
    :class:`sklearn.kernel_ridge.KernelRidge` on targets minus their mean, on a scale that suits them.

    Parameters
    ----------
    kernel : GraphKernel, Pipeline, str, list of these, or "precomputed", default="oddcl"
        The kernels to choose from: a kernel, a pipeline of transformers that ends in one, the name of a kernel on the
        command line such as "wl", or a list of these. "precomputed": X is a Gram matrix in ``fit``, and has a column for
        each fitted graph elsewhere; such a model can be pickled, but not explained or saved by :func:`save_model`.
    param_grid : "auto", dict, or list of these, default="auto"
        Values to try for each parameter of the kernel, such as ``{"depth": [1, 2], "lam": [0.5, 1]}``; ``{}`` uses the
        kernel as it is. "auto": its ``default_param_grid()``; for ODDCL and ODDST, this is the grid of the paper (depth
        0 to 3, lam 0.1 to 1.2). A list has one entry for each kernel; a single entry applies to all. Not with
        ``kernel="precomputed"``.
    alpha : float or sequence of float, default=(0.0001, 0.001, 0.01, 0.1, 1, 10, 100)
        Values of alpha to try: the larger, the closer predictions stay to the mean.
    target_transform : {"auto", None}, default="auto"
        The scale of the targets, chosen for each kernel and each alpha by leave-one-out predictions of the training graphs with
        normal errors; see :class:`GraphRegressor`. Scores are in units of the targets. None: the plain numbers.
    scoring : str, callable or None, default=None
        The score to maximize: the name of a scikit-learn scorer such as "neg_mean_absolute_error", or a function
        ``(model, X, y) -> number``. None: 1 - (mean absolute error) / (that of the median of all fitted targets), in units of the
        targets; if these stay plain, 1 - (mean squared error) / (variance of all fitted targets).
    cv : int, splitter, iterable or None, default=None
        None: every graph is left out once, in closed form, at the cost of a single fit. Or a number of shuffled folds,
        a scikit-learn splitter, or pairs of (training ids, test ids).
    n_jobs : int or None, default=None
        Threads to use for Gram matrices and for fits, as in joblib; -1 means all. None: one for fits, and the kernel's own
        number for Gram matrices.
    verbose : int, default=0
        If above 0, print a line for each kernel tried; where neither a terminal nor a notebook shows progress, write a line
        to stderr every half minute.

    Attributes
    ----------
    kernel_ : GraphKernel or Pipeline
        The best kernel with its parameters, fitted on all graphs.
    best_params_ : dict
        Parameters for a model without a search: the best kernel, not fitted, an empty ``param_grid``, and alpha.
    best_score_ : float
        Its mean score over the folds, or its leave-one-out score.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : dict of arrays
        All candidates with their scores, as in :class:`sklearn.model_selection.GridSearchCV`; pass it to
        ``pandas.DataFrame``.
    dual_coef_ : ndarray of shape (n_graphs,)
        The coefficients c, on the scale of the targets.
    intercept_ : float
        The weighted mean of the fitted targets, on their scale.
    target_scale_ : TargetScale or None
        The chosen scale of the targets, which prints in words; None for the plain numbers.
    n_fits_ : int
        Number of fits: one for each candidate, fold (leave-one-out counts as a single fold) and alpha.
    estimators_ : list of GraphRidge
        Only if y has several columns: the fitted copies, one for each, which have all the other attributes. Explain
        them one by one: ``explain(model.estimators_[0], X)``.

    See Also
    --------
    GraphRegressor : for kernels chosen and combined automatically, with error bars.
    GraphSVC : for classes.

    Notes
    -----
    Ties go to the first kernel, then to the first point of its grid, then to the largest alpha. A kernel or transformer that
    learns from data learns from all fitted graphs, including those that are left out; it never sees a target. One
    eigendecomposition for each matrix and fold serves all alphas. Gram matrices are computed in blocks of 1 GiB, or one
    at a time if a single one is larger; peak memory is about three times that.

    Examples
    --------
    >>> from treegram import ODDCL, GraphRidge, load_digits_graphs
    >>> graphs, _ = load_digits_graphs()
    >>> y = [graph.attributes[:, 2].mean() for graph in graphs[:104]]  # how dark the inked pixels are
    >>> model = GraphRidge(ODDCL()).fit(graphs[:100], y[:100])
    >>> model.best_params_
    {'kernel': ODDCL(depth=0, lam=0.1), 'param_grid': {}, 'alpha': 0.0001}
    >>> model.predict(graphs[100:104]).round(1)
    array([2.1, 2.1, 2.3, 2. ])
    >>> [round(float(number), 1) for number in y[100:]]
    [2.0, 2.1, 2.3, 1.9]
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"alpha": STRENGTHS, "cv": (NOTHING, *SPLITS)}
    _strength = "alpha"
    _order = slice(None, None, -1)

    alpha: float | Sequence[float] = (0.0001, 0.001, 0.01, 0.1, 1, 10, 100)
    target_transform: str | None = "auto"
    cv: Any = None

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose a kernel, its parameters and alpha, and fit the model on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs; with ``kernel="precomputed"`` their Gram matrix, an array of shape (n_graphs, n_graphs).
        y : array-like of shape (n_graphs,) or (n_graphs, n_targets)
            One number for each graph, or several, with NaN where a graph has no value: then a copy of the model is
            fitted for each column, on the graphs that have a value there. Not several with ``kernel="precomputed"``.
        sample_weight : array-like of shape (n_graphs,), default=None
            Weights of the squared errors of graphs, in fits and in scores of the search, except with your own
            ``scoring`` function.
        groups : array-like of shape (n_graphs,), default=None
            For a splitter that keeps groups together, such as :class:`sklearn.model_selection.GroupKFold`.

        Returns
        -------
        self
            The fitted model.
        """
        if np.ndim(y) == 2 and not self._is_precomputed:
            self._check_parameters()
            return self._fit_columns(X, y, sample_weight=sample_weight, groups=groups)
        return super().fit(X, y, sample_weight=sample_weight, groups=groups)

    def _read_targets(self, labels: Array) -> Floats:
        return check_numbers(labels)

    def _splits(self, targets: Floats, groups: Any) -> Splits:
        if len(targets) < 2:
            raise ValueError(f"GraphRidge needs at least two graphs; got {len(targets)}.")
        if self.cv is not None:
            return super()._splits(targets, groups)
        if groups is not None:
            raise ValueError(
                "groups need a splitter, such as cv=GroupKFold(5); without cv, single graphs are left out."
            )
        everyone = np.arange(len(targets))
        return [(everyone, everyone)]

    def _folds(self, targets: Floats, n_folds: int) -> Splits:
        n_graphs = len(targets)
        if n_graphs < n_folds:
            warn_user(f"{n_graphs} graphs are too few for cv={n_folds}: {n_graphs} folds are used.")
        return number_folds(n_graphs, min(n_graphs, n_folds), seed=0)

    def _make_score(self, data: Data) -> Score:
        scales = {train.tobytes(): self._scales(data, train) for train, _ in data.splits}
        scorer, leaves_one_out = get_scorer(self.scoring), self.cv is None
        return partial(_score_ridges, data=data, scorer=scorer, leaves_one_out=leaves_one_out, scales=scales)

    def _fit_best(self, data: Data, fits: Fits) -> None:
        self.n_fits_ = fits.n_fits
        z, weights = data.targets, data.weights
        K, best = self.kernel_.fit_transform(data.graphs), np.array([self.best_params_["alpha"]])
        self.target_scale_ = None
        scales = self._scales(data, np.arange(len(z)))
        if len(scales) > 1:
            self._use_scale(scales[_choose_scales(K, z, scales, best, weights)[0][0]][0])
            z = self._to_scale(z)
        self.intercept_ = float(np.average(z, weights=weights))
        self.dual_coef_ = _ridge_coefficients(K, z - self.intercept_, best, weights).ravel()

    def _scales(self, data: Data, train: Ints) -> Scales:
        """Return the scales to choose from in a training part."""
        y, weights = data.targets[train], None if data.weights is None else data.weights[train]
        scales = [] if self.target_transform is None else blended_scales(y, weights)
        return scales if scales and scales[0][0].blend < 1.0 else [(None, y)]

    def predict(self, X: Any) -> Floats:
        """Predict the targets of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,) or (n_graphs, n_targets)
            A number for each graph, or for each graph and target.
        """
        check_is_fitted(self)
        if hasattr(self, "estimators_"):
            return self._predict_columns(X)
        return self._from_scale(self._predict_on_scale(X))

    def _predict_on_scale(self, X: Any) -> Floats:
        return self.kernel_.transform(X) @ self.dual_coef_ + self.intercept_

    def _mean_and_unit(self, X: Any) -> tuple[Floats, Floats]:
        mean = self._predict_on_scale(X)
        return mean, np.ones(len(mean))


# -------------------------------------------------------------------- ridges


def number_folds(n_graphs: int, n_folds: int, seed: Any) -> list[tuple[Ints, Ints]]:
    """Return the (training, test) ids of shuffled folds, both ascending."""
    splitter = KFold(n_folds, shuffle=True, random_state=seed)
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in splitter.split(np.empty(n_graphs))]


def select_ridge(
    grams: Sequence[Floats], y: Floats, train: Ints, test: Ints, alphas: Floats, *, n_folds: int, seed: int
) -> Selection:
    """Choose a Gram matrix and an alpha by cross-validation inside ``train``, fit on all of it, and predict ``test``.

    The score is 1 - (mean squared error) / (variance of the training targets). Ties go to the first Gram matrix, then to the
    first alpha. Only the last step uses rows of ``test``, and only their columns of ``train``.
    """
    variance = float(y[train].var()) or 1.0
    inner = [(train[a], train[b]) for a, b in number_folds(len(train), n_folds, seed)]

    def score(K: Floats, part: Ints, held_out: Ints) -> tuple[Floats, Fits]:
        errors = (_predict_ridges(K, y, part, held_out, [(None, y[part])], alphas) - y[held_out][:, None]) ** 2
        return 1.0 - errors.mean(axis=0) / variance, Fits(len(alphas))

    with one_blas_thread():
        g, a, inner_score, fits = choose_by_folds(grams, len(alphas), inner, score)
        predicted = _predict_ridges(grams[g], y, train, test, [(None, y[train])], alphas[a : a + 1])[:, 0]
    return Selection(g, float(alphas[a]), inner_score, predicted, None, fits + Fits(1))


def _predict_ridges(
    K: Floats, y: Floats, train: Ints, test: Ints, scales: Scales, alphas: Floats, weights: Floats | None = None
) -> Floats:
    """Return predictions for the test part for each alpha, (n_test, n_alphas), each on the best scale of the training part."""
    within, best, z = K[np.ix_(train, train)], [0] * len(alphas), scales[0][1]
    if len(scales) > 1:
        best, _ = _choose_scales(within, y[train], scales, alphas, weights)
        z = np.column_stack([scales[k][1] for k in best])
    center = np.average(z, axis=0, weights=weights)
    predicted = K[np.ix_(test, train)] @ _ridge_coefficients(within, z - center, alphas, weights) + center
    return _from_scales(predicted, scales, best)


def _from_scales(predicted: Floats, scales: Scales, best: list[int]) -> Floats:
    """Return predictions in units of the targets; each column has a scale."""
    of_columns = zip([scales[k][0] for k in best], predicted.T, strict=True)
    return np.column_stack([column if scale is None else scale.inverse(column) for scale, column in of_columns])


def _ridge_coefficients(K: Floats, y: Floats, alphas: Floats, weights: Floats | None) -> Floats:
    """Return (K + alpha / weights)^-1 y for all alphas, (n_graphs, n_alphas); y is the same for all, or has a column for each.

    Negative eigenvalues (rounding) count as 0.
    """
    roots = np.ones(len(y)) if weights is None else np.sqrt(weights)
    values, vectors = np.linalg.eigh(roots[:, None] * K * roots)
    products = vectors.T @ (roots * y.T).T
    shrunk = vectors @ (products.reshape(len(y), -1) / (np.maximum(values, 0.0)[:, None] + alphas))
    return roots[:, None] * shrunk


def _predict_left_out(K: Floats, targets: Sequence[Floats], alphas: Floats, weights: Floats | None) -> list[Floats]:
    """Return the leave-one-out predictions of all graphs, (n_graphs, n_alphas), for each array of targets.

    With A = K + alpha / weights and m_i the mean of the other targets, the prediction misses y_i by
    (A^-1 (y - m_i))_i / (A^-1)_ii: one eigendecomposition serves all graphs and all alphas.
    """
    weights = np.ones(len(K)) if weights is None else np.maximum(weights, _SMALLEST_WEIGHT * weights.max())
    roots = np.sqrt(weights)[:, None]
    values, vectors = np.linalg.eigh(roots * K * roots.T)
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + alphas)  # eigenvalues, (n_graphs, n_alphas)
    from_ones = vectors @ (vectors.T @ roots * inverse)
    diagonal = roots * (vectors**2 @ inverse)
    predicted = []
    for y in targets:
        from_targets = vectors @ (vectors.T @ (roots * y[:, None]) * inverse)
        means_of_others = (weights @ y - weights * y) / (weights.sum() - weights)
        predicted.append(y[:, None] - (from_targets - means_of_others[:, None] * from_ones) / diagonal)
    return predicted


def _choose_scales(
    K: Floats, y: Floats, scales: Scales, alphas: Floats, weights: Floats | None
) -> tuple[list[int], Floats]:
    """Return the position of the best scale for each alpha, and the leave-one-out predictions on it, (n_graphs, n_alphas)."""
    candidates, positions = zip(*scales, strict=True)
    means = np.array(_predict_left_out(K, positions, alphas, weights))
    if len(scales) == 1:
        return [0] * len(alphas), means[0]
    squares = (means - np.array(positions)[:, :, None]) ** 2
    spreads = np.sqrt(np.average(squares, axis=1, weights=weights))  # (n_scales, n_alphas)
    best = [
        choose_scale(y, candidates, list(zip(means[:, :, a], spreads[:, a], strict=True)), weights)
        for a in range(len(alphas))
    ]
    return best, means[best, :, np.arange(len(alphas))].T


def _score_ridges(
    K: Floats,
    train: Ints,
    test: Ints,
    *,
    data: Data,
    scorer: Scorer | None,
    leaves_one_out: bool,
    scales: dict[bytes, Scales],
) -> tuple[Floats, Fits]:
    """Return the score on the test part for each alpha; ``scales`` are those of each training part, by its ids."""
    y, alphas, of_fold = data.targets, data.strengths, scales[train.tobytes()]
    of_train, of_test = (None if data.weights is None else data.weights[part] for part in (train, test))
    if leaves_one_out:
        best, left_out = _choose_scales(K, y, of_fold, alphas, of_train)
        predicted = _from_scales(left_out, of_fold, best)
    else:
        predicted = _predict_ridges(K, y, train, test, of_fold, alphas, of_train)
    missed = predicted - y[test][:, None]
    if scorer is None and any(
        len(of_part) > 1 for of_part in scales.values()
    ):  # predictions are medians, and a few large targets must not decide
        errors = np.average(np.abs(missed), axis=0, weights=of_test)
        return 1.0 - errors / (np.abs(y - np.median(y)).mean() or 1.0), Fits(len(alphas))
    if scorer is None:
        errors = np.average(missed**2, axis=0, weights=of_test)
        return 1.0 - errors / (y.var() or 1.0), Fits(len(alphas))
    scores = [rate(scorer, NumberAnswers(column), data.graphs[test], y[test], of_test) for column in predicted.T]
    return np.array(scores, dtype=np.float64), Fits(len(alphas))
