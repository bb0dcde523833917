"""Select a model on the training graphs of a fold, and describe it and its predictions as fields of a row."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import AUTO
from treegram.models import GraphRidge, GraphSVC
from treegram.models.crossval import distinct, select
from treegram.models.ridge import select_ridge
from treegram.models.search import chosen_name
from treegram.study.metrics import roc_auc
from treegram.study.protocol import Protocol

__all__ = ["Grams", "joined", "row_parts", "select_auto", "select_gram", "unique"]


@dataclass(frozen=True)
class Grams:
    """Gram matrices without repetitions, each with the first choice of kernel and parameters that gives it."""

    chosen: list[dict[str, Any]]
    matrices: list[Floats]

    @property
    def n_bytes(self) -> int:
        """The memory that they take."""
        return sum(K.nbytes for K in self.matrices)


def unique(chosen: Sequence[dict[str, Any]], matrices: Sequence[Floats]) -> Grams:
    """Remove repeated Gram matrices."""
    kept, positions = distinct(matrices)
    return Grams([chosen[positions.index(i)] for i in range(len(kept))], kept)


def joined(grams: Sequence[Grams]) -> Grams:
    """Concatenate several, in this order, without repetitions."""
    if len(grams) == 1:
        return grams[0]
    return unique([chosen for one in grams for chosen in one.chosen], [K for one in grams for K in one.matrices])


def row_parts(
    actual: Any,
    predicted: Any,
    decisions: Floats | None,
    chosen: dict[str, Any],
    inner_score: float,
    n_fits: int,
    n_unconverged: int = 0,
) -> dict[str, Any]:
    """Return the fields of a row that a selection knows; there are decision values of classes only."""
    return {
        "actual": tuple(actual.tolist()),
        "predicted": tuple(predicted.tolist()),
        "chosen": chosen,
        "inner_score": float(inner_score),
        "n_fits": int(n_fits),
        "n_unconverged": int(n_unconverged),
        "roc_auc": None if decisions is None else roc_auc(actual, decisions.astype(np.float32)),
    }


def select_gram(protocol: Protocol, grams: Grams, targets: Any, train: Ints, test: Ints, seed: int) -> dict[str, Any]:
    """Select a Gram matrix and the regularization strength by inner cross-validation."""
    name, values = protocol.strengths
    strengths, n_folds = np.array(values, dtype=np.float64), protocol.inner_folds
    best: Any
    if protocol.task == "regression":
        best = select_ridge(grams.matrices, targets, train, test, strengths, n_folds=n_folds, seed=seed)
        strength, inner_score, decisions = best.alpha, best.inner_score, None
    else:
        best = select(grams.matrices, targets, train, test, strengths, n_folds=n_folds, seed=seed)
        strength, inner_score, decisions = best.C, best.inner_accuracy, best.decisions
    chosen = {**grams.chosen[best.gram], name: strength}
    fits = best.fits
    return row_parts(targets[test], best.predicted, decisions, chosen, inner_score, fits.n_fits, fits.n_unconverged)


def select_auto(protocol: Protocol, graphs: Graphs, targets: Any, train: Ints, test: Ints, seed: int) -> dict[str, Any]:
    """Fit the model with ``kernel="auto"``: its candidates, scales and widths follow from the training graphs alone."""
    name, values = protocol.strengths
    kind = GraphRidge if protocol.task == "regression" else GraphSVC
    model: Any = kind(AUTO, cv=protocol.inner_folds, random_state=seed).set_params(**{name: values})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unconverged fits are counted in the row
        model.fit(graphs[train], targets[train])
    decisions = model.decision_function(graphs[test]) if kind is GraphSVC else None
    n_unconverged = getattr(model, "n_unconverged_", 0)
    return row_parts(
        targets[test],
        model.predict(graphs[test]),
        decisions,
        {"kernel": chosen_name(model.search_results_), name: model.best_params_[name]},
        model.best_score_,
        model.n_fits_,
        n_unconverged,
    )
