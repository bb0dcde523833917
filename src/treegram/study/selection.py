"""Select and fit a model on the training graphs of a fold, and describe it and its predictions as fields of a row.

The models are those on Gram matrices, the automatic model, and any scikit-learn estimator of graphs. A selection takes a fold,
learns from its training graphs alone, and returns its fields of a row.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from typing import Any

import numpy as np
from sklearn.base import clone

from treegram._core.text import suggest
from treegram._core.types import Floats, Ints
from treegram.exceptions import StudyError
from treegram.graphs import Graphs
from treegram.models import GraphClassifier, GraphRegressor
from treegram.models.ridge import select_ridge
from treegram.models.search import distinct
from treegram.models.svc import select
from treegram.study.metrics import roc_auc
from treegram.study.protocol import Protocol, StudyEntry

_ESTIMATORS: dict[str, Any] = {}  # by name; see register_estimator


@dataclass(frozen=True)
class Grams:
    """Gram matrices without repetitions, each with the first choice of kernel and parameters that gives it."""

    choices: list[dict[str, Any]]
    matrices: list[Floats]

    @property
    def n_bytes(self) -> int:
        """Memory of the matrices, in bytes."""
        return sum(K.nbytes for K in self.matrices)


def unique(choices: Sequence[dict[str, Any]], matrices: Sequence[Floats]) -> Grams:
    """Remove repeated Gram matrices."""
    kept, positions = distinct(matrices)
    return Grams([choices[positions.index(i)] for i in range(len(kept))], kept)


def joined(grams: Sequence[Grams]) -> Grams:
    """Concatenate several `Grams`, in this order, without repetitions."""
    if len(grams) == 1:
        return grams[0]
    return unique([choice for part in grams for choice in part.choices], [K for part in grams for K in part.matrices])


@dataclass(frozen=True)
class Fold:
    """One outer fold, and all that a selection may use; targets of test graphs are only for the row."""

    protocol: Protocol
    graphs: Graphs
    targets: Any  # regression targets, or positions among the sorted classes
    train: Ints
    test: Ints
    seed: int

    @property
    def is_regression(self) -> bool:
        """True if targets are numbers."""
        return self.protocol.task == "regression"

    def row(
        self,
        predicted: Any,
        chosen: dict[str, Any],
        inner_score: float | None,
        n_fits: int,
        decisions: Floats | None = None,
        n_unconverged: int = 0,
    ) -> dict[str, Any]:
        """Return the fields of a row that a selection knows; only classifiers have decision values."""
        actual = self.targets[self.test]
        return {
            "actual": tuple(actual.tolist()),
            "predicted": tuple(np.asarray(predicted).astype(actual.dtype).tolist()),
            "chosen": chosen,
            "inner_score": None if inner_score is None else float(inner_score),
            "n_fits": int(n_fits),
            "n_unconverged": int(n_unconverged),
            "roc_auc": None if decisions is None else roc_auc(actual, decisions.astype(np.float32)),
        }

    def row_of_model(
        self, model: Any, chosen: dict[str, Any], inner_score: float | None, n_fits: int, n_unconverged: int = 0
    ) -> dict[str, Any]:
        """Predict the test graphs with a fitted model."""
        test, decisions = self.graphs[self.test], None
        decide = getattr(model, "decision_function", None) or getattr(model, "predict_proba", None)
        if decide is not None and not self.is_regression:
            values = np.asarray(decide(test), dtype=np.float64)
            # A column for each class of the data set, including those without training graphs.
            decisions = np.zeros((len(values), int(self.targets.max()) + 1))
            decisions[:, model.classes_] = np.column_stack([-values, values]) if values.ndim == 1 else values
        return self.row(model.predict(test), chosen, inner_score, n_fits, decisions, n_unconverged)


def select_gram(fold: Fold, grams: Grams) -> dict[str, Any]:
    """Select a Gram matrix and the regularization strength by inner cross-validation."""
    name, values = fold.protocol.strengths
    choose: Callable[..., Any] = select_ridge
    if not fold.is_regression:
        choose = partial(select, weights=_class_weights(fold) if fold.protocol.class_weight else None)
    best = choose(
        grams.matrices,
        fold.targets,
        fold.train,
        fold.test,
        np.array(values, dtype=np.float64),
        n_folds=fold.protocol.inner_folds,
        seed=fold.seed,
    )
    chosen = {**grams.choices[best.gram], name: best.strength}
    return fold.row(best.predicted, chosen, best.inner_score, best.fits.n_fits, best.decisions, best.fits.n_unconverged)


def _class_weights(fold: Fold) -> Floats:
    """Return the weight of each graph: those of all classes in the training part sum to the same."""
    training = fold.targets[fold.train]
    counts = np.bincount(training, minlength=int(fold.targets.max()) + 1)
    weights: Floats = len(training) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return weights[fold.targets]


def select_auto(fold: Fold) -> dict[str, Any]:
    """Fit the automatic model: its candidates, scales and weights depend only on the training graphs.

    The inner score is the best leave-one-out score of one of its kernels.
    """
    model: Any = (
        GraphRegressor() if fold.is_regression else GraphClassifier(class_weight=fold.protocol.class_weight or None)
    )
    _fit_quietly(model, fold)
    used = [record for record in model.search_results_ if record["weight"] is not None]
    chosen = {"kernel": " + ".join(sorted(str(record["candidate"]) for record in used))}
    score, n_fits = max(record["score"] for record in used), len(model.search_results_)
    return fold.row_of_model(model, chosen, score, n_fits)


def _fit_quietly(model: Any, fold: Fold) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about single folds; the row counts fits that did not converge
        model.fit(fold.graphs[fold.train], fold.targets[fold.train])


# -------------------------------------------------------------------- any estimator of graphs


def select_estimator(fold: Fold, estimator: Any) -> dict[str, Any]:
    """Fit a copy of an estimator; random states that are None become the seed of the fold.

    The row has its ``best_params_``, ``best_score_``, ``n_fits_`` and ``n_unconverged_``, as far as it has these.
    """
    model = clone(estimator)
    for name, value in model.get_params().items():
        if value is None and name.rpartition("__")[2] == "random_state":
            model.set_params(**{name: fold.seed})
    _fit_quietly(model, fold)
    chosen = {name: _plain(value) for name, value in getattr(model, "best_params_", {}).items()}
    counts = getattr(model, "n_fits_", 1), getattr(model, "n_unconverged_", 0)
    return fold.row_of_model(model, chosen, getattr(model, "best_score_", None), *counts)


def _plain(value: Any) -> Any:
    """Return a chosen value as JSON has it; other objects become text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | None) else " ".join(repr(value).split())


def register_estimator(name: str, estimator: Any) -> None:
    """Make an estimator known by a name, ``estimator = "name"`` in study files.

    Parameters
    ----------
    name : str
        The name.
    estimator : estimator, class or function
        A scikit-learn estimator of graphs: ``fit(graphs, y)`` and ``predict(graphs)``, and for the area under the ROC curve
        ``decision_function`` or ``predict_proba``; ``y`` has whole numbers for classes and floats for regression. Or its class;
        or a function that takes the :class:`~treegram.study.protocol.Protocol` of the study and returns the estimator.
    """
    _ESTIMATORS[name] = estimator


def find_estimators(entries: Sequence[StudyEntry], protocol: Protocol, allow_import: Collection[str]) -> dict[str, Any]:
    """Return the estimators of entries by the names of the entries; only modules in ``allow_import`` are imported."""
    for module in allow_import:
        try:
            import_module(module)
        except ImportError as error:
            raise StudyError(f"The module {module!r} that may be imported cannot be: {error}") from error
    estimators: dict[str, Any] = {}
    for entry in entries:
        if entry.estimator is None:
            continue
        estimator = entry.estimator
        if isinstance(estimator, str):
            estimator = _look_up(estimator, entry.name, allow_import)
        if inspect.isclass(estimator):
            estimator = estimator()
        elif not hasattr(estimator, "fit"):
            estimator = estimator(protocol)
        weights = estimator.get_params().get("class_weight")
        if protocol.class_weight and weights != protocol.class_weight:
            raise StudyError(
                f"{entry.name}: the study has class_weight = {protocol.class_weight!r}, which its estimator does not; it has {weights!r}. "
                "Set this parameter of the estimator, or leave it out of the study."
            )
        estimators[entry.name] = estimator
    return estimators


def _look_up(text: str, entry: str, allow_import: Collection[str]) -> Any:
    module, colon, name = text.partition(":")
    if not colon and text in _ESTIMATORS:
        return _ESTIMATORS[text]
    if not colon:
        raise StudyError(
            f"{entry}: no estimator is registered as {text!r}{suggest(text, _ESTIMATORS) or '.'} Allow the module that registers it: "
            "--allow-import MODULE on the command line, allow_import=[MODULE] in Python."
        )
    if module not in allow_import:
        raise StudyError(
            f"{entry}: the study would import the module {module!r}, which runs its code. If you trust it, allow it: --allow-import {module} "
            f"on the command line, allow_import=[{module!r}] in Python."
        )
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        raise StudyError(f"{entry}: the module {module!r} has no {name!r}.") from None


def estimator_versions(estimators: Collection[Any]) -> dict[str, str]:
    """Return the versions of all packages that the modules of estimators import."""
    modules = {inspect.getmodule(type(estimator)) for estimator in estimators}
    imported = {value for module in modules for value in (module, *vars(module).values()) if inspect.ismodule(value)}
    distributions = metadata.packages_distributions()
    packages = {module.__name__.partition(".")[0] for module in imported} & distributions.keys()
    return {name: metadata.version(distributions[name][0]) for name in sorted(packages)}
