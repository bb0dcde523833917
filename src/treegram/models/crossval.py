"""Nested cross-validation over Gram matrices: folds, scores of all candidates, and the choice among them.

A **candidate** is a Gram matrix with one C. Within the training part of an outer fold, each candidate is scored by inner
cross-validation; the best is fitted on the whole training part and predicts the test part, which nothing has used before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import isfunction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold

from treegram._core.parallel import one_blas_thread
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.models.solver import TOLERANCE, decide, fit_machines, one_against_rest, vote

Scorer: TypeAlias = Callable[[Any, Any, Any], float]

_DIGITS = 12  # of Gram matrices and mean accuracies that are compared: the rest is rounding


@dataclass(frozen=True)
class Fits:
    """The number of fits, and the number of those that ended before the tolerance was met."""

    n_fits: int = 0
    n_unconverged: int = 0

    def __add__(self, other: Fits) -> Fits:
        return Fits(self.n_fits + other.n_fits, self.n_unconverged + other.n_unconverged)


@dataclass(frozen=True)
class Selection:
    """The choice made in the training part of a fold, and its predictions for the test part."""

    gram: int  # index of the Gram matrix
    strength: float  # C, or alpha
    inner_score: float  # mean over the inner folds
    predicted: NDArray[Any]  # (n_test,) class codes or regression targets
    decisions: (
        Floats | None
    )  # (n_test,) above 0 for the second of two classes, or (n_test, n_classes); None for regression
    fits: Fits


def seed_of(*identity: Any) -> int:
    """Return a seed that depends only on an identity, so that adding a run never changes the others."""
    digest = hashlib.sha256(json.dumps(identity).encode()).digest()
    return int.from_bytes(digest[:4], "little")


def encode_classes(y: Any) -> tuple[NDArray[Any], Ints]:
    """Return the sorted classes and the code of each graph's class; raise if there are fewer than two classes."""
    classes, codes = np.unique(check_targets(y), return_inverse=True)
    if len(classes) < 2:
        found = f"{counted(len(codes), 'graph')} of class {classes[0]!s} alone" if len(classes) else "no graphs"
        raise ValueError(f"Classification needs at least two classes; got {found}.")
    return classes, codes.astype(np.int64)


def check_targets(y: Any) -> NDArray[Any]:
    """Return the targets as a one-dimensional array; raise if any is missing."""
    if y is None:
        raise ValueError("y is missing: give one target for each graph.")
    targets = np.asarray(y)
    if targets.ndim != 1:
        raise ValueError(
            f"y must have one target for each graph; got an array of shape {targets.shape}. Only GraphRegressor, GraphRidge and "
            "GraphGP take several numbers for each graph, and not with kernel='precomputed'."
        )
    # Look at the original values: numpy turns a NaN among strings into a string, and drops a mask.
    for i, target in enumerate(y.tolist() if isinstance(y, np.ndarray) else y):
        if _is_missing(target):
            raise ValueError(f"y[{i}] is {target}: the target of graph {i} is missing. Leave this graph out.")
    return targets


def _is_missing(target: Any) -> bool:
    try:
        return target is None or bool(target != target)  # NaN and NaT are not equal to themselves
    except TypeError:  # pandas.NA: comparisons are neither True nor False
        return True


def folds(codes: Ints, n_folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return the (training, test) ids of stratified, shuffled folds, both ascending."""
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # callers have their own warning
        parts = list(splitter.split(codes, codes))
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in parts]


def distinct(grams: Sequence[Floats]) -> tuple[list[Floats], list[int]]:
    """Return the distinct Gram matrices, and for each matrix its position among them.

    After normalization, depth 0 does not depend on lambda: a grid of 24 points has 19 matrices.
    """
    kept: list[Floats] = []
    positions: list[int] = []
    for K in grams:
        same = (i for i, other in enumerate(kept) if _are_equal(K[:1], other[:1]) and _are_equal(K, other))
        position = next(same, len(kept))
        if position == len(kept):
            kept.append(K)
        positions.append(position)
    return kept, positions


def _are_equal(K: Floats, other: Floats) -> bool:
    if K.shape != other.shape:
        return False
    # Relative to the largest entry, 1 in a normalized matrix: other matrices may have only small entries.
    return bool(np.abs(K - other).max(initial=0.0) <= 10.0**-_DIGITS * np.abs(K).max(initial=0.0))


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


def choose(scores: Floats) -> tuple[int, int]:
    """Return the indices of the best of (n_grams, n_C) mean accuracies; ties go to the first Gram matrix, then the first C."""
    gram, c = np.unravel_index(int(np.argmax(np.round(scores, _DIGITS))), scores.shape)
    return int(gram), int(c)


def choose_by_folds(
    grams: Sequence[Floats],
    n_strengths: int,
    splits: Sequence[tuple[Ints, Ints]],
    score_fold: Callable[[Floats, Ints, Ints], tuple[Floats, Fits]],
) -> tuple[int, int, float, Fits]:
    """Return the indices of the best Gram matrix and strength, their mean score over the folds, and the number of fits."""
    scores = np.zeros((len(grams), n_strengths))
    fits = Fits()
    for g, K in enumerate(grams):
        for train, test in splits:
            some, n_fits = score_fold(K, train, test)
            scores[g] += some / len(splits)
            fits += n_fits
    g, s = choose(scores)
    return g, s, float(scores[g, s]), fits


def select(
    grams: Sequence[Floats], codes: Ints, train: Ints, test: Ints, Cs: Floats, *, n_folds: int, seed: int
) -> Selection:
    """Choose a Gram matrix and a C by cross-validation inside ``train``, fit on all of it, and predict ``test``.

    Only the last step uses rows of ``test``, and only their columns of ``train``.
    """
    inner = [(train[a], train[b]) for a, b in folds(codes[train], n_folds, seed)]

    def accuracies(K: Floats, part: Ints, held_out: Ints) -> tuple[Floats, Fits]:
        return score(K, codes, part, held_out, Cs)

    with one_blas_thread():
        g, c, accuracy, fits = choose_by_folds(grams, len(Cs), inner, accuracies)
        decisions, last = decide_held_out(grams[g], codes, train, test, Cs[: c + 1])
    n_classes = int(codes.max()) + 1
    predicted, clear = vote(decisions[-1], n_classes), one_against_rest(decisions[-1], n_classes)
    return Selection(g, float(Cs[c]), accuracy, predicted, clear, fits + last)


def count_fits(gaps: Floats) -> Fits:
    """Count one fit for each C at which any machine was fitted; it has converged if all machines have."""
    return Fits(int((gaps >= 0).sum()), int((gaps >= TOLERANCE).sum()))


# -------------------------------------------------------------------- scores by any scorer of scikit-learn


class _Answers(BaseEstimator):
    """A candidate as a scorer sees it: its classes, if any, its predictions and its decisions."""

    def __init__(self, predicted: Any = None, classes_: Any = None, decisions: Any = None) -> None:
        self.predicted, self.classes_, self.decisions = predicted, classes_, decisions

    def predict(self, X: Any) -> Any:  # noqa: ARG002
        """Return the predictions, for any X."""
        return self.predicted

    def decision_function(self, X: Any) -> Any:  # noqa: ARG002
        """Return the decisions, for any X."""
        return self.decisions


class ClassAnswers(ClassifierMixin, _Answers):
    """The answers of a classifier."""


class NumberAnswers(RegressorMixin, _Answers):
    """The answers of a regressor."""


def check_scoring(scoring: Any) -> Scorer | None:
    """Return the scorer with this name, or the function itself; None, for a model's own score, stays None."""
    if scoring is None or callable(scoring):
        return scoring
    try:
        scorer: Scorer = get_scorer(scoring)
    except ValueError:
        raise ValueError(
            f"scoring must be the name of a scikit-learn scorer, such as 'balanced_accuracy' or 'r2', a function "
            f"(model, X, y) -> number, or None; got {scoring!r}. sklearn.metrics.get_scorer_names() lists the names."
        ) from None
    return scorer


def rate(scorer: Scorer, answers: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Return the score of one candidate on held-out graphs; pass weights to scikit-learn's scorers that accept them."""
    try:
        if weights is not None and not isfunction(scorer):
            with contextlib.suppress(TypeError):
                return scorer(answers, X, y, sample_weight=weights)  # type: ignore[call-arg]
        return scorer(answers, X, y)
    except AttributeError as error:
        if "predict_proba" not in str(error):
            raise
        raise ValueError(
            "scoring needs probabilities, which the candidates of a search do not have. Use a score of decisions or of "
            "predictions, such as 'roc_auc' for two classes, 'balanced_accuracy' or 'f1_macro'."
        ) from None
