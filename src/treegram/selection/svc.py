"""Support vector classifier of graphs: kernel, parameters and C are chosen by cross-validation, and the best is fitted on all."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from treegram._types import Floats, Ints
from treegram.selection.crossval import Fits, check_classes, count_fits, folds, score
from treegram.selection.machines import decide, fit_machines, vote
from treegram.selection.search import (
    SEARCH_CONSTRAINTS,
    STRENGTH_CONSTRAINTS,
    check_fit,
    check_strengths,
    keep,
    list_entries,
    search,
    takes_graphs,
)

__all__ = ["GraphSVC"]


class GraphSVC(ClassifierMixin, BaseEstimator):
    """Support vector classifier of graphs that chooses its kernel, the kernel's parameters and C.

    All Gram matrices of a grid are made in one pass where the kernel can, each is scored with each C by stratified
    cross-validation on the same folds, and the best pair is fitted on all graphs. One machine for each pair of classes, and
    a vote, as in :class:`sklearn.svm.SVC`, which gives the same predictions.

    Parameters
    ----------
    kernel : GraphKernel, Pipeline or list of these, default=None
        What to choose from: a kernel, a pipeline of transformers that ends in one, or several. None: :class:`ODDCL`.
    grid : "auto", dict, or list of these, default="auto"
        Values to try for each parameter of the kernel, such as ``{"depth": [1, 2], "lam": [0.5, 1]}``; ``{}`` takes the
        kernel as it is. "auto": values that are usual for the kernel, the paper's for ODDCL and ODDST (depth 0 to 3, lam
        0.1 to 1.2). A list has one entry for each kernel; one entry serves all.
    C : float or sequence of float, default=(0.01, 0.1, 1, 10, 100, 1000, 10000)
        Values of C to try: the larger, the fewer mistakes on the fitted graphs.
    cv : int, default=10
        Number of folds. Each class needs as many graphs.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds.
    n_jobs : int or None, default=None
        Threads to use for Gram matrices and for fits, as in joblib; -1 means all. None: one for fits, and the kernel's own
        number for Gram matrices.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    kernel_ : GraphKernel or Pipeline
        The best kernel with its parameters, fitted on all graphs.
    best_params_ : dict
        Name of the best kernel, the parameters chosen for it, and C.
    best_score_ : float
        Its mean accuracy over the folds. It was chosen for it: cross-validate the whole model for an honest estimate.
    best_index_ : int
        Its place in ``cv_results_``.
    cv_results_ : dict of arrays
        All candidates with their scores, as in :class:`sklearn.model_selection.GridSearchCV`; a pandas table with one call.
    support_ : ndarray of shape (n_support,)
        Positions of the fitted graphs that some machine needs, class by class.
    n_support_ : ndarray of shape (n_classes,)
        How many of these are of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support)
        Their coefficients. A graph of class i has one for each other class: that for class j is in row j - 1 if j > i, else
        in row j. Laid out as in :class:`sklearn.svm.SVC`; of a pair the first class has the coefficients above 0.
    intercept_ : ndarray of shape (n_pairs,)
        What is added to the weighted sum of kernels, for each pair of classes (0, 1), (0, 2), ..., (1, 2), ...; above 0 in
        total, the first class of the pair has its vote.
    n_unconverged_ : int
        How many fits ended before the tolerance was met; a warning says so if there were any.

    See Also
    --------
    GraphRidge : for targets that are numbers.

    Notes
    -----
    Of equal scores the first kernel is taken, then the first point of its grid, then the smallest C. A kernel or
    transformer that learns from data, such as :class:`ScaleAttributes`, learns from all fitted graphs, before they are
    divided into folds; it never sees a class. Machines are fitted to the tolerance of libsvm by a solver that does not
    slow down where Gram matrices are singular and C is large. Memory holds all Gram matrices of one grid.

    Examples
    --------
    >>> from treegram import ODDCL, GraphSVC, load_digits_graphs
    >>> graphs, y = load_digits_graphs()
    >>> model = GraphSVC(ODDCL(counting="visits"), C=[1, 100], cv=3).fit(graphs[:80], y[:80])
    >>> model.best_params_
    {'kernel': 'ODDCL', 'depth': 3, 'lam': 1.2, 'C': 100.0}
    >>> model.predict(graphs[80:88])
    array([1, 7, 6, 3, 8, 1, 7, 4])
    >>> y[80:88]
    array([1, 7, 6, 3, 2, 1, 7, 4])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**SEARCH_CONSTRAINTS, "C": STRENGTH_CONSTRAINTS}

    def __init__(
        self,
        kernel: Any = None,
        *,
        grid: Any = "auto",
        C: float | Sequence[float] = (0.01, 0.1, 1, 10, 100, 1000, 10000),
        cv: int = 10,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.C = C
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Choose a kernel, its parameters and C, and fit them on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs,)
            Their classes: integers, strings or booleans.

        Returns
        -------
        self
            The fitted model.
        """
        self._validate_params()
        graphs, targets = check_fit(X, y)
        check_classification_targets(targets)
        self.classes_, codes = check_classes(targets, 1, self.cv)
        Cs = check_strengths("C", self.C)
        found = search(
            list_entries(self.kernel, self.grid, self.n_jobs),
            graphs,
            folds(codes, self.cv, self.random_state),
            partial(_score_machines, codes=codes, Cs=Cs),
            ("C", Cs),
            self.n_jobs,
        )
        keep(self, found)
        K = self.kernel_.fit_transform(graphs)
        machines = fit_machines(K, codes, len(self.classes_), np.arange(len(codes)), Cs[Cs <= self.best_params_["C"]])
        is_used = machines.coefficients[-1].any(axis=0)
        self.support_ = machines.order[is_used]
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_))
        self.dual_coef_ = machines.coefficients[-1][:, is_used]
        self.intercept_ = machines.intercepts[-1]
        fits = found.fits + count_fits(machines.gaps[-1:])
        self.n_unconverged_ = fits.n_unconverged
        if fits.n_unconverged:
            warnings.warn(
                f"{fits.n_unconverged} of {fits.n_fits} fits did not converge. Gram matrices must be positive "
                "semidefinite, and C times their entries not beyond 1e8 or so: normalise the kernel, or leave out large C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: Any) -> Floats:
        """How clearly graphs belong to the classes.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,) or (n_graphs, n_classes)
            For two classes the signed distance, in units of the margin, above 0 for the second; for more the votes of
            each class, with what the machines say between them added as a fraction, as in :class:`sklearn.svm.SVC`.
        """
        decisions = self._decide(X)
        if len(self.classes_) == 2:
            return -decisions[:, 0]
        scores: Floats = _ovr_decision_function(decisions < 0, -decisions, len(self.classes_))
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes of graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,)
            For each graph the class with most votes; of equals the first.
        """
        return self.classes_[vote(self._decide(X), len(self.classes_))]

    def _decide(self, X: Any) -> Floats:
        """For each graph and each pair of classes a number above 0 for the first, (n_graphs, n_pairs)."""
        check_is_fitted(self)
        rows = self.kernel_.transform(X)[:, self.support_]
        offsets = np.concatenate([[0], np.cumsum(self.n_support_)])
        return decide(rows, offsets, self.dual_coef_[None], self.intercept_[None])[0]

    def __sklearn_tags__(self) -> Any:
        return takes_graphs(super().__sklearn_tags__())


# -------------------------------------------------------------------- machines


def _score_machines(K: Floats, train: Ints, test: Ints, *, codes: Ints, Cs: Floats) -> tuple[Floats, Fits]:
    return score(K, codes, train, test, Cs)
