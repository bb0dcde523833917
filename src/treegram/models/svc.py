"""Support vector classifier of graphs, with kernel, parameters and C chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import ClassifierMixin
from treegram._core.parallel import one_blas_thread
from treegram._core.params import NOTHING, Allowed, Instance, Words, parameters
from treegram._core.text import warn_user
from treegram._core.types import Array, Floats, Ints
from treegram.kernels.grid import split_pipeline
from treegram.models.auto import all_classes
from treegram.models.base import (
    STRENGTHS,
    CrossValidatedModel,
    DecisionParts,
    check_classes,
    weigh_classes,
)
from treegram.models.conformal import PredictsSets
from treegram.models.search import (
    ClassAnswers,
    Data,
    Fits,
    Score,
    Scorer,
    Selection,
    Splits,
    choose_by_folds,
    rate,
)
from treegram.models.solver import TOLERANCE, decide, fit_machines, one_against_rest, vote

Weigh = Callable[[Ints], Floats | None]


@parameters
class GraphSVC(PredictsSets, ClassifierMixin, CrossValidatedModel):
    """Support vector classifier of graphs that chooses its kernel, the kernel's parameters and C.

    All Gram matrices of a grid are computed in one pass if the kernel supports it, each is scored with each C by
    stratified cross-validation on the same folds, and the best pair is fitted on all graphs. There is one machine for each pair of
    classes, and a vote, as in :class:`sklearn.svm.SVC`, which gives the same predictions.

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
    C : float or sequence of float, default=(0.01, 0.1, 1, 10, 100, 1000, 10000)
        Values of C to try: the larger C, the fewer mistakes on the fitted graphs.
    class_weight : dict, "balanced" or None, default=None
        C is multiplied by the weight of a graph's class. "balanced": n_graphs / (n_classes * graphs of the class), counted in
        each training part.
    scoring : str, callable or None, default=None
        The score to maximize: the name of a scikit-learn scorer such as "balanced_accuracy", or a function
        ``(model, X, y) -> number``. None: accuracy, the fastest.
    cv : int, splitter or iterable, default=10
        Number of stratified, shuffled folds (fewer, with a warning, if no class has that many graphs), a scikit-learn
        splitter, or pairs of (training ids, test ids).
    n_jobs : int or None, default=None
        Threads to use for Gram matrices and for fits, as in joblib; -1 means all. None: one for fits, and the kernel's own
        number for Gram matrices.
    verbose : int, default=0
        If above 0, print a line for each kernel tried; where neither a terminal nor a notebook shows progress, write a line
        to stderr every half minute.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    kernel_ : GraphKernel or Pipeline
        The best kernel with its parameters, fitted on all graphs.
    best_params_ : dict
        Parameters for a model without a search: the best kernel, not fitted, an empty ``param_grid``, and C;
        ``GraphSVC(**model.best_params_)`` is such a model.
    best_score_ : float
        Its mean score over the folds. The choice favors lucky candidates, so this number is too high on average:
        cross-validate the whole model for an honest estimate.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : dict of arrays
        All candidates with their scores, as in :class:`sklearn.model_selection.GridSearchCV`; pass it to
        ``pandas.DataFrame``.
    support_ : ndarray of shape (n_support,)
        Indices of the support vectors among the fitted graphs, class by class.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support)
        Their coefficients. A graph of class i has one for each other class: that for class j is in row j - 1 if j > i, else
        in row j. Laid out as in :class:`sklearn.svm.SVC`; in each pair, the first class has the coefficients above 0.
    intercept_ : ndarray of shape (n_pairs,)
        The constant added to the weighted sum of kernels, for each pair of classes (0, 1), (0, 2), ..., (1, 2), ...; where the
        total is above 0, the first class of the pair gets the vote.
    n_fits_ : int
        Number of fits: one for each candidate, fold and C at which the solution changed.
    n_unconverged_ : int
        Number of fits that ended before the tolerance was met; there is a warning if it is not 0.

    See Also
    --------
    GraphRidge : for regression.
    GraphClassifier : for kernels chosen and combined automatically, with probabilities.
    Nystroem : for more than about 10,000 graphs, before a linear classifier such as :class:`sklearn.svm.LinearSVC`.

    Notes
    -----
    Ties go to the first kernel, then to the first point of its grid, then to the smallest C. A kernel or transformer that
    learns from data, such as :class:`ScaleAttributes`, learns from all fitted graphs, before they are divided into folds; it
    never sees a class. Machines are fitted to the tolerance of libsvm by a solver that does not slow down if Gram
    matrices are singular and C is large. Gram matrices are computed in blocks of 1 GiB, or one at a time if a single
    one is larger; peak memory is about three times that.

    ``CalibratedClassifierCV(GraphSVC("wl"), ensemble=False)`` of scikit-learn predicts probabilities.

    Examples
    --------
    >>> from treegram import ODDCL, GraphSVC, load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> model = GraphSVC(ODDCL(counting="visits"), C=[1, 100], cv=3).fit(graphs[:80], y[:80])
    >>> model.best_params_
    {'kernel': ODDCL(counting='visits', lam=1.2), 'param_grid': {}, 'C': 100.0}
    >>> model.predict(graphs[80:88])
    array([1, 7, 6, 3, 8, 1, 7, 4])
    >>> y[80:88]
    array([1, 7, 6, 3, 2, 1, 7, 4])
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "C": STRENGTHS,
        "class_weight": (Words("balanced"), Instance((dict,), "a dict of weights"), NOTHING),
    }
    _strength = "C"

    C: float | Sequence[float] = (0.01, 0.1, 1, 10, 100, 1000, 10000)
    class_weight: Any = None

    def _read_targets(self, labels: Array) -> Ints:
        self.classes_, codes = check_classes(labels)
        return codes

    def _make_score(self, data: Data) -> Score:
        scorer = get_scorer(self.scoring)
        return partial(_score_machines, data=data, weigh=self._weighing(data), scorer=scorer, classes=self.classes_)

    def _weighing(self, data: Data) -> Weigh:
        return partial(weigh_classes, self.class_weight, self.classes_, data.targets, data.weights)

    def _folds(self, targets: Ints, n_folds: int) -> Splits:
        counts = np.bincount(targets)
        n_possible = int(counts.max())
        if n_possible < 2:
            raise ValueError("Every class has a single graph: two folds need a class with at least two graphs.")
        text = ""
        if n_possible < n_folds:
            text = f"No class has {n_folds} graphs, one for each of cv={n_folds} folds: {n_possible} folds are used."
        elif counts.min() < n_folds:
            text = (
                f"Class {self.classes_[counts.argmin()]!s} has {counts.min()} of {len(targets)} graphs, fewer than there are "
                f"folds, {n_folds}: some folds are scored without it. Use fewer folds, or leave this class out."
            )
        if text:
            warn_user(text)
        return folds(targets, min(n_folds, n_possible), seed=0)

    def _fit_best(self, data: Data, fits: Fits) -> None:
        codes, weigh, n_classes = data.targets, self._weighing(data), len(self.classes_)
        Cs = data.strengths[data.strengths <= self.best_params_["C"]]
        everyone = np.arange(len(codes))
        K = self.kernel_.fit_transform(data.graphs)
        machines = fit_machines(K, codes, n_classes, everyone, Cs, weights=weigh(everyone))
        is_support = machines.coefficients[-1].any(axis=0)
        self.support_ = machines.order[is_support]
        self.n_support_ = np.bincount(codes[self.support_], minlength=n_classes)
        self.dual_coef_ = machines.coefficients[-1][:, is_support]
        self.intercept_ = machines.intercepts[-1]
        fits += count_fits(machines.gaps[-1:])
        self.n_fits_, self.n_unconverged_ = fits.n_fits, fits.n_unconverged
        if fits.n_unconverged:
            warn_user(
                f"{fits.n_unconverged} of {fits.n_fits} fits did not converge. Gram matrices must be positive "
                "semidefinite, and C times their entries at most about 1e8: normalize the kernel, or leave out large C.",
                ConvergenceWarning,
            )

    def decision_function(self, X: Any) -> Floats:
        """Return how clearly graphs belong to the classes.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,) or (n_graphs, n_classes)
            For two classes, the signed distance in units of the margin, above 0 for the second; for more, the votes for
            each class, with the confidence of the machines added as a fraction, as in :class:`sklearn.svm.SVC`.
        """
        decisions = self._decide(X)
        return one_against_rest(decisions, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Predict the classes of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,)
            For each graph, the class with the most votes; ties go to the first class.
        """
        decisions = self._decide(X)
        return self.classes_[vote(decisions, len(self.classes_))]

    def _decide(self, X: Any) -> Floats:
        """Return a number for each graph and pair of classes, above 0 for the first class, (n_graphs, n_pairs)."""
        check_is_fitted(self)
        rows = self.kernel_.transform(X)[:, self.support_]
        offsets = np.concatenate([[0], np.cumsum(self.n_support_)])
        return decide(rows, offsets, self.dual_coef_[None], self.intercept_[None])[0]

    def _class_scores(self, X: Any) -> Floats:
        decisions = self.decision_function(X)
        return all_classes(decisions.reshape(len(decisions), -1))

    def _decision_parts(self) -> DecisionParts:
        kernel, classes = self._kernel_on_graphs(), self.classes_.tolist()
        pairs = list(combinations(range(len(classes)), 2))
        starts = np.concatenate([[0], np.cumsum(self.n_support_)])
        weights = np.zeros((len(split_pipeline(kernel)[1].graphs_), len(pairs)))
        for pair, (i, j) in enumerate(pairs):
            for code, row in ((i, j - 1), (j, i)):  # the row with the coefficients of a class against the other
                members = slice(starts[code], starts[code + 1])
                weights[self.support_[members], pair] = self.dual_coef_[row, members]
        if len(classes) == 2:
            return [(kernel, -weights)], -self.intercept_, (classes[1],)
        return [(kernel, weights)], self.intercept_, tuple((classes[i], classes[j]) for i, j in pairs)


# -------------------------------------------------------------------- machines


def folds(codes: Ints, n_folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return the (training, test) ids of stratified, shuffled folds, both ascending."""
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # callers have their own warning
        parts = list(splitter.split(codes, codes))
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in parts]


def select(
    grams: Sequence[Floats],
    codes: Ints,
    train: Ints,
    test: Ints,
    Cs: Floats,
    *,
    n_folds: int,
    seed: int,
    weights: Floats | None = None,
) -> Selection:
    """Choose a Gram matrix and a C by cross-validation inside ``train``, fit on all of it, and predict ``test``.

    Only the last step uses rows of ``test``, and only their columns of ``train``. ``weights``, one for each graph,
    multiply C and weight the inner accuracies.
    """
    inner = [(train[a], train[b]) for a, b in folds(codes[train], n_folds, seed)]

    def accuracies(K: Floats, part: Ints, held_out: Ints) -> tuple[Floats, Fits]:
        return score(K, codes, part, held_out, Cs, weights, None if weights is None else weights[held_out])

    with one_blas_thread():
        g, c, accuracy, fits = choose_by_folds(grams, len(Cs), inner, accuracies)
        decisions, last = decide_held_out(grams[g], codes, train, test, Cs[: c + 1], weights)
    n_classes = int(codes.max()) + 1
    predicted, clear = vote(decisions[-1], n_classes), one_against_rest(decisions[-1], n_classes)
    return Selection(g, float(Cs[c]), accuracy, predicted, clear, fits + last)


def score(
    K: Floats,
    codes: Ints,
    train: Ints,
    test: Ints,
    Cs: Floats,
    weights: Floats | None = None,
    test_weights: Floats | None = None,
) -> tuple[Floats, Fits]:
    """Return the accuracy on the test part for each C, ascending; ``weights``, one for each graph, multiply C."""
    n_classes = int(codes.max()) + 1
    decisions, fits = decide_held_out(K, codes, train, test, Cs, weights)
    is_right = vote(decisions, n_classes) == codes[test]
    if test_weights is None or not test_weights.any():
        return is_right.mean(axis=1), fits
    return np.average(is_right, axis=1, weights=test_weights), fits


def decide_held_out(
    K: Floats, codes: Ints, train: Ints, test: Ints, Cs: Floats, weights: Floats | None = None
) -> tuple[Floats, Fits]:
    """Return decisions on the test part for each C and each pair of classes, (n_C, n_test, n_pairs)."""
    machines = fit_machines(K, codes, int(codes.max()) + 1, train, Cs, weights=weights)
    rows = K.take(test, axis=0).take(machines.order, axis=1)
    return decide(rows, machines.offsets, machines.coefficients, machines.intercepts), count_fits(machines.gaps)


def count_fits(gaps: Floats) -> Fits:
    """Count one fit for each C at which any machine was fitted; it has converged if all machines have."""
    return Fits(int((gaps >= 0).sum()), int((gaps >= TOLERANCE).sum()))


def _score_machines(
    K: Floats, train: Ints, test: Ints, *, data: Data, weigh: Weigh, scorer: Scorer | None, classes: Array
) -> tuple[Floats, Fits]:
    """Return the accuracy on the test part for each C, or the score of a scorer."""
    codes, weights = data.targets, None if data.weights is None else data.weights[test]
    if scorer is None:
        return score(K, codes, train, test, data.strengths, weigh(train), weights)
    decisions, fits = decide_held_out(K, codes, train, test, data.strengths, weigh(train))
    predicted = classes[vote(decisions, len(classes))]
    of_test = (data.graphs[test], classes[codes[test]], weights)
    scores = [
        rate(scorer, ClassAnswers(answers, classes, one_against_rest(of_strength, len(classes))), *of_test)
        for answers, of_strength in zip(predicted, decisions, strict=True)
    ]
    return np.array(scores, dtype=np.float64), fits
