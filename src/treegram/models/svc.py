"""Support vector classifier of graphs: kernel, parameters and C are chosen by cross-validation, and the best is fitted on all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from treegram._core.params import FLAG, NOTHING, Allowed, Instance, Whole, Words, parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels import Nystroem
from treegram.kernels.registry import AUTO
from treegram.models.crossval import Decide, Fits, count_fits, decide_held_out, encode_classes, folds, score
from treegram.models.machines import decide as decide_by_machines
from treegram.models.machines import fit_machines, one_against_rest, vote
from treegram.models.model import STRENGTHS, CrossValidatedModel, list_splits
from treegram.models.probability import couple, fit_sigmoids
from treegram.models.rows import decide_rows_held_out, fit_rows, row_blocks
from treegram.models.scoring import ClassAnswers, Scorer, check_scoring, rate
from treegram.models.search import Blocks, Found, Given, Score, Splits

__all__ = ["GraphSVC"]

Weigh = Callable[[Ints], Floats | None]


def _gives_probabilities(model: Any) -> bool:
    if not model.probability:
        raise AttributeError("predict_proba needs probabilities: fit with GraphSVC(probability=True).")
    return True


@parameters
class GraphSVC(ClassifierMixin, CrossValidatedModel):
    """Support vector classifier of graphs that chooses its kernel, the kernel's parameters and C.

    All Gram matrices of a grid are made in one pass where the kernel can, each is scored with each C by stratified
    cross-validation on the same folds, and the best pair is fitted on all graphs. One machine for each pair of classes, and
    a vote, as in :class:`sklearn.svm.SVC`, which gives the same predictions.

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
    C : float or sequence of float, default=(0.01, 0.1, 1, 10, 100, 1000, 10000)
        Values of C to try: the larger, the fewer mistakes on the fitted graphs.
    class_weight : dict, "balanced" or None, default=None
        C is multiplied by the weight of a graph's class. "balanced": n_graphs / (n_classes * graphs of the class), counted in
        each training part.
    scoring : str, callable or None, default=None
        What the search maximizes: the name of a scikit-learn scorer such as "balanced_accuracy", or a function
        ``(model, X, y) -> number``. None: accuracy, the fastest.
    cv : int, splitter or iterable, default=10
        Number of stratified, shuffled folds, or a scikit-learn splitter, or pairs of (training ids, test ids).
    solver : {"exact", "landmarks"}, default="exact"
        "landmarks": linear machines with a squared hinge loss on the rows of :class:`Nystroem`, instead of Gram matrices, for
        more than some 10,000 graphs. Time and memory then grow with the number of graphs, not with its square.
    n_landmarks : int, default=500
        How many landmarks, for ``solver="landmarks"``.
    probability : bool, default=False
        Whether ``predict_proba`` will be asked for. It costs one more fit for each fold.
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
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    kernel_ : GraphKernel or Pipeline
        The best kernel with its parameters, fitted on all graphs.
    search_results_ : list of dict
        What was tried, in this order: candidate, reason, number of graphs, best score, seconds, and a note ("chosen", or why
        it was left out). ``search_summary()`` gives it as a table.
    best_params_ : dict
        Name of the best kernel, the parameters chosen for it, and C.
    best_score_ : float
        Its mean score over the folds. The choice favors candidates that were lucky, so this number is too high on average:
        cross-validate the whole model for an honest estimate.
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
    landmarks_ : Nystroem
        Only with ``solver="landmarks"``, instead of ``support_``, ``n_support_`` and ``dual_coef_``: what gives the rows.
    coef_ : ndarray of shape (n_pairs, n_landmarks)
        Only with ``solver="landmarks"``: the weights of the columns, for each pair of classes.
    sigmoids_ : ndarray of shape (n_pairs, 2)
        Only with ``probability=True``: slope and offset of each pair's sigmoid.
    n_fits_ : int
        How many machines were fitted, one for each candidate, fold and C at which something changed.
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
    slow down where Gram matrices are singular and C is large. Gram matrices are made in blocks of 1 GiB, or one at a time
    where a single one is larger; memory holds about three times as much.

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

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "C": STRENGTHS,
        "class_weight": (Words("balanced"), Instance((dict,), "a dict of weights"), NOTHING),
        "solver": (Words("exact", "landmarks"),),
        "n_landmarks": (Whole(1),),
        "probability": (FLAG,),
    }
    _strength = "C"

    C: float | Sequence[float] = (0.01, 0.1, 1, 10, 100, 1000, 10000)
    class_weight: Any = None
    solver: str = "exact"
    n_landmarks: int = 500
    probability: bool = False

    def _read_targets(self, given: NDArray[Any]) -> Ints:
        if type_of_target(given).startswith("continuous"):
            raise ValueError(
                f"y must be classes: integers, strings or booleans; got numbers such as {given.flat[0]}. For numbers use GraphRidge "
                "or GraphGP."
            )
        check_classification_targets(given)
        self.classes_, codes = encode_classes(given)
        return codes

    def _fold_score(self, given: Given) -> Score:
        score = partial(_score_machines, given=given, weigh=self._weighing(given), decide=self._hold_out())
        scorer = check_scoring(self.scoring)
        return score if scorer is None else partial(score, rated=(scorer, self.classes_))

    def _hold_out(self) -> Decide:
        return decide_held_out if self.solver == "exact" else decide_rows_held_out

    def _blocks(self) -> Blocks | None:
        return None if self.solver == "exact" else partial(row_blocks, self.n_landmarks)

    def _search(self, given: Given, strength: str) -> Found:
        if self.solver != "exact" and isinstance(self.kernel, str) and self.kernel == AUTO:
            raise ValueError(
                "kernel='auto' compares Gram matrices, and does not go with solver='landmarks'; name a kernel, or several."
            )
        return super()._search(given, strength)

    def _weighing(self, given: Given) -> Weigh:
        return partial(_weigh, self.class_weight, self.classes_, given.targets, given.weights)

    def _splits(self, targets: Ints, groups: Any) -> Splits:
        if not isinstance(self.cv, Integral):
            return list_splits(self.cv, targets, groups)
        counts = np.bincount(targets)
        if len(targets) and counts.max() < self.cv:
            raise ValueError(f"No class has {self.cv} graphs, one for each fold. Use {counts.max()} folds or fewer.")
        if counts.min() < self.cv:
            warnings.warn(
                f"Class {self.classes_[counts.argmin()]!s} has {counts.min()} of {len(targets)} graphs, fewer than there are "
                f"folds, {self.cv}: some folds are scored without it. Use fewer folds, or leave this class out.",
                UserWarning,
                stacklevel=3,
            )
        return folds(targets, int(self.cv), self.random_state)

    def _fit_best(self, given: Given, fits: Fits) -> None:
        codes, weigh = given.targets, self._weighing(given)
        Cs = given.strengths[given.strengths <= self.best_params_["C"]]
        everyone = np.arange(len(codes))
        if self.solver == "exact":
            K, own = self._fit_machines(given.graphs, codes, Cs, weigh(everyone))
        else:
            Cs = Cs[-1:]
            self.landmarks_ = Nystroem(self.kernel_, self.n_landmarks)
            K = self.landmarks_.fit_transform(given.graphs)
            coefficients, intercepts, own = fit_rows(K, codes, everyone, Cs, weigh(everyone))
            self.kernel_, self.coef_, self.intercept_ = self.landmarks_.kernel_, coefficients[0], intercepts[0]
        if self.probability:
            self.sigmoids_ = _calibrate(K, codes, Cs, given.splits, weigh, self._hold_out())
        fits += own
        self.n_fits_, self.n_unconverged_ = fits.n_fits, fits.n_unconverged
        if fits.n_unconverged:
            warnings.warn(
                f"{fits.n_unconverged} of {fits.n_fits} fits did not converge. Gram matrices must be positive "
                "semidefinite, and C times their entries not beyond 1e8 or so: normalize the kernel, or leave out large C.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fit_machines(self, graphs: Graphs, codes: Ints, Cs: Floats, weights: Floats | None) -> tuple[Floats, Fits]:
        """Fit the last C; gives the Gram matrix, too."""
        K = self.kernel_.fit_transform(graphs)
        machines = fit_machines(K, codes, len(self.classes_), np.arange(len(codes)), Cs, weights=weights)
        is_used = machines.coefficients[-1].any(axis=0)
        self.support_ = machines.order[is_used]
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_))
        self.dual_coef_ = machines.coefficients[-1][:, is_used]
        self.intercept_ = machines.intercepts[-1]
        return K, count_fits(machines.gaps[-1:])

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
        return one_against_rest(decisions, len(self.classes_))

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
        decisions = self._decide(X)
        return self.classes_[vote(decisions, len(self.classes_))]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_proba(self, X: Any) -> Floats:
        """How probable the classes of graphs are.

        A sigmoid for each pair of classes, fitted on decisions about held-out graphs of the inner folds, and coupling of the
        pairs, as in libsvm; see :doc:`/models`. The most probable class may differ from that of ``predict``.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs, n_classes)
            Probabilities, which sum to 1 for each graph; columns as in ``classes_``.
        """
        decisions = self._decide(X)
        return couple(decisions, self.sigmoids_, len(self.classes_))

    def _decide(self, X: Any) -> Floats:
        """For each graph and each pair of classes a number above 0 for the first, (n_graphs, n_pairs)."""
        check_is_fitted(self)
        if self.solver != "exact":
            decisions: Floats = self.landmarks_.transform(X) @ self.coef_.T + self.intercept_
            return decisions
        rows = self.kernel_.transform(X)[:, self.support_]
        offsets = np.concatenate([[0], np.cumsum(self.n_support_)])
        return decide_by_machines(rows, offsets, self.dual_coef_[None], self.intercept_[None])[0]


# -------------------------------------------------------------------- machines


def _weigh(
    class_weight: Any, classes: NDArray[Any], codes: Ints, sample_weight: Floats | None, train: Ints
) -> Floats | None:
    """By what C is multiplied, one number for each graph of all; only those of ``train`` count. None: all are 1."""
    if class_weight is None:
        return sample_weight
    present = np.unique(codes[train])
    of_class = np.ones(len(classes))
    named = class_weight
    if isinstance(class_weight, dict):
        unknown = [name for name in class_weight if name not in classes]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class; the classes are {classes}.")
        named = {name: weight for name, weight in class_weight.items() if name in classes[present]}
    of_class[present] = compute_class_weight(named, classes=classes[present], y=classes[codes[train]])
    weights: Floats = of_class[codes] * (1.0 if sample_weight is None else sample_weight)
    return weights


def _score_machines(
    K: Floats,
    train: Ints,
    test: Ints,
    *,
    given: Given,
    weigh: Weigh,
    decide: Decide,
    rated: tuple[Scorer, NDArray[Any]] | None = None,
) -> tuple[Floats, Fits]:
    """Accuracy on the test part for each C, or what a scorer of the user's says of the classes."""
    codes, weights = given.targets, None if given.weights is None else given.weights[test]
    if rated is None:
        return score(K, codes, train, test, given.strengths, weigh(train), weights, decide)
    scorer, classes = rated
    decisions, fits = decide(K, codes, train, test, given.strengths, weigh(train))
    predicted = classes[vote(decisions, len(classes))]
    of_test = (given.graphs[test], classes[codes[test]], weights)
    scores = [
        rate(scorer, ClassAnswers(classes, some, one_against_rest(decided, len(classes))), *of_test)
        for some, decided in zip(predicted, decisions, strict=True)
    ]
    return np.array(scores, dtype=np.float64), fits


def _calibrate(K: Floats, codes: Ints, Cs: Floats, splits: Splits, weigh: Weigh, decide: Decide) -> Floats:
    """Sigmoids for the last C, fitted on what machines say about graphs that they have not seen."""
    n_classes = int(codes.max()) + 1
    decisions = [decide(K, codes, train, test, Cs, weigh(train))[0][-1] for train, test in splits]
    tested = np.concatenate([test for _, test in splits])
    return fit_sigmoids(np.concatenate(decisions), codes[tested], n_classes)
