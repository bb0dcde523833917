"""Scores by any scikit-learn scorer, for candidates with predictions but no estimator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from inspect import isfunction
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

__all__ = ["ClassAnswers", "NumberAnswers", "Scorer", "check_scoring", "rate"]

Scorer = Callable[[Any, Any, Any], float]


class _Answers(BaseEstimator):
    """A candidate as a scorer sees it: its classes, if any, predictions and decisions."""

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
    """Return the scorer of a name, or the function itself; None, for a model's own score, stays None."""
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
