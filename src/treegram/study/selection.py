"""What a row says about the model that was selected on the training graphs of a fold, and about its predictions."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.registry import AUTO
from treegram.models import GraphRidge, GraphSVC
from treegram.models.crossval import distinct, select
from treegram.models.ridge import select_ridge
from treegram.study.protocol import Protocol

__all__ = ["Grams", "auto_recipe", "joined", "row_parts", "select_auto", "select_gram", "unique"]

_RECIPE = ("candidates.py", "auto.py", "search.py")


@dataclass(frozen=True)
class Grams:
    """Gram matrices without repetitions, each with the first choice of kernel and parameters that gives it."""

    chosen: list[dict[str, Any]]
    matrices: list[Floats]

    @property
    def n_bytes(self) -> int:
        """What they take of memory."""
        return sum(K.nbytes for K in self.matrices)


def unique(chosen: Sequence[dict[str, Any]], matrices: Sequence[Floats]) -> Grams:
    """The Gram matrices without repetitions."""
    kept, positions = distinct(matrices)
    return Grams([chosen[positions.index(i)] for i in range(len(kept))], kept)


def joined(grams: Sequence[Grams]) -> Grams:
    """All of them as one, in this order."""
    if len(grams) == 1:
        return grams[0]
    return unique([one for part in grams for one in part.chosen], [K for part in grams for K in part.matrices])


def row_parts(
    predicted: Any, decisions: Any, chosen: dict[str, Any], inner_score: float, n_fits: int, n_unconverged: int = 0
) -> dict[str, Any]:
    """Those parts of a row that a selection knows, as a row has them."""
    return {
        "predicted": tuple(predicted.tolist()),
        "chosen": chosen,
        "inner_score": float(inner_score),
        "n_fits": int(n_fits),
        "n_unconverged": int(n_unconverged),
        "decisions": tuple(decisions.astype(np.float32).ravel().tolist()),
    }


def select_gram(protocol: Protocol, grams: Grams, targets: Any, train: Ints, test: Ints, seed: int) -> dict[str, Any]:
    """The best Gram matrix and strength of regularization by inner cross-validation."""
    name, values = protocol.strengths
    strengths, n_folds = np.array(values, dtype=np.float64), protocol.inner_folds
    best: Any
    if protocol.target == "numbers":
        best = select_ridge(grams.matrices, targets, train, test, strengths, n_folds=n_folds, seed=seed)
        strength, inner_score, decisions = best.alpha, best.inner_score, np.empty(0)
    else:
        best = select(grams.matrices, targets, train, test, strengths, n_folds=n_folds, seed=seed)
        strength, inner_score, decisions = best.C, best.inner_accuracy, best.decisions
    chosen = {**grams.chosen[best.gram], name: strength}
    return row_parts(best.predicted, decisions, chosen, inner_score, best.fits.n_fits, best.fits.n_unconverged)


def select_auto(protocol: Protocol, graphs: Graphs, targets: Any, train: Ints, test: Ints, seed: int) -> dict[str, Any]:
    """The model with ``kernel="auto"``: its candidates, scales and widths follow from the training graphs alone."""
    name, values = protocol.strengths
    kind = GraphRidge if protocol.target == "numbers" else GraphSVC
    model: Any = kind(AUTO, cv=protocol.inner_folds, random_state=seed).set_params(**{name: values})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unconverged fits are counted in the row
        model.fit(graphs[train], targets[train])
    decisions = model.decision_function(graphs[test]) if kind is GraphSVC else np.empty(0)
    n_unconverged = getattr(model, "n_unconverged_", 0)
    return row_parts(
        model.predict(graphs[test]),
        decisions,
        dict(model.best_params_),
        model.best_score_,
        model.n_fits_,
        n_unconverged,
    )


@cache
def auto_recipe() -> str:
    """What the kernel "auto" is, beyond its name: the beginning of a SHA-256 of the code that lists and searches its candidates."""
    digest = hashlib.sha256()
    for name in _RECIPE:
        digest.update(resources.files("treegram.models").joinpath(name).read_bytes())
    return digest.hexdigest()[:12]
