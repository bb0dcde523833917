"""Which estimators model files can hold, as plain values and back.

A class stands in ``CLASSES`` under its name, and in ``_STATES`` with two functions: one takes what the estimator has learned,
the other checks this and gives it to a new estimator. No class is looked up anywhere else. A fitted kernel is its parameters
and its graphs: it is fitted again when it is first used, so that compiled loops see what any ``fit`` would give them, and
loading takes no more memory than the file and its copies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from treegram import kernels, models
from treegram._core.errors import ModelFileError
from treegram._core.params import Checked
from treegram.graphs import transforms as preprocessing
from treegram.graphs.molecules import MoleculeGraphs
from treegram.kernels.base import GraphKernel
from treegram.models.saving import states as _states
from treegram.models.saving.values import Saved

__all__ = ["CLASSES", "restore", "to_saved"]

_OTHERS: tuple[type[Any], ...] = (
    preprocessing.BinEdgeAttributes,
    MoleculeGraphs,
    preprocessing.CentroidDistance,
    preprocessing.DropAttributes,
    preprocessing.NeighborMeans,
    preprocessing.ScaleAttributes,
    models.GraphGP,
    models.GraphRidge,
    models.GraphSVC,
    LinearSVC,
    LogisticRegression,
    Pipeline,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (*(getattr(kernels, name) for name in kernels.__all__), *_OTHERS)
}
_MOST_JOBS = 1024  # threads that a file may ask for
# What else a file may ask for: a kernel is fitted again, and should not take years.
_MOST = {
    "depth": 1000,
    "n_iterations": 1000,
    "n_levels": 1000,
    "radius": 1000,
    "distance": 1000,
    "n_components": 10**6,
    "max_size": 6,  # of CSM, whose time grows exponentially with it
    "n_samples": 10**6,
}

Take = Callable[[Any], dict[str, Any]]
Give = Callable[[Any, dict[str, Any]], None]
# For each class the attribute that shows whether it is fitted, what takes its learned state, and what gives it back.
_STATES: dict[str, tuple[str, Take, Give]] = {
    "BinEdgeAttributes": ("thresholds_", _states.take_edges, _states.give_edges),
    "FeatureMap": ("kernel_", _states.take_feature_map, _states.give_feature_map),
    "GraphGP": ("kernel_", _states.take_gp, _states.give_gp),
    "GraphRidge": ("kernel_", _states.take_ridge, _states.give_ridge),
    "GraphSVC": ("kernel_", _states.take_svc, _states.give_svc),
    "Nystroem": ("component_indices_", _states.take_landmarks, _states.give_landmarks),
    "ODDCLFeatures": ("map_", _states.take_oddcl_features, _states.give_oddcl_features),
    "ScaleAttributes": ("scale_", _states.take_scale, _states.give_scale),
    **dict.fromkeys(
        ("LinearSVC", "LogisticRegression", "Ridge", "SGDClassifier", "SGDRegressor"),
        ("coef_", _states.take_linear, _states.give_linear),
    ),
}
_KERNEL_STATE = ("graphs_", _states.take_kernel, _states.give_kernel)


def _state_of(kind: type[Any]) -> tuple[str, Take, Give] | None:
    return _KERNEL_STATE if issubclass(kind, GraphKernel) else _STATES.get(kind.__name__)


# -------------------------------------------------------------------- saving


def to_saved(estimator: Any, *, with_learned: bool = True) -> Saved:
    """An estimator as plain values."""
    name = type(estimator).__name__
    if CLASSES.get(name) is not type(estimator):
        raise ModelFileError(
            f"A {type(estimator).__module__}.{name} cannot be saved in a model file, only {', '.join(CLASSES)} and pipelines of "
            "these. For a support vector machine on a Gram matrix there is GraphSVC."
        )
    values = estimator.get_params(deep=False)
    if isinstance(estimator, Pipeline):
        steps = [(key, _plain(step, with_learned=with_learned)) for key, step in estimator.steps]
        return Saved(name, {**values, "steps": steps}, None)
    _check_demands(estimator)
    parameters = {key: _plain(value, with_learned=False) for key, value in values.items()}
    state = _state_of(type(estimator))
    if state is None or not with_learned or not hasattr(estimator, state[0]):
        return Saved(name, parameters, None)
    if isinstance(estimator, GraphKernel):
        _check_repeatable(estimator)
    learned = {key: _plain(value, with_learned=True) for key, value in state[1](estimator).items()}
    return Saved(name, parameters, learned)


def _plain(value: Any, *, with_learned: bool) -> Any:
    """The value with saved estimators in the place of estimators."""
    if isinstance(value, BaseEstimator):
        return to_saved(value, with_learned=with_learned)
    if type(value) in (list, tuple):
        return type(value)(_plain(entry, with_learned=with_learned) for entry in value)
    return value


def _check_repeatable(kernel: GraphKernel) -> None:
    """Raise if a second fit would draw other random numbers."""
    for key, value in kernel.get_params().items():
        if key.rpartition("__")[2] == "random_state" and not isinstance(value, int | np.integer):
            raise ModelFileError(
                f"random_state of {type(kernel).__name__} is {value!r}: a saved kernel is fitted again after it was loaded, and must draw "
                "the same numbers then. Fit it with a whole number."
            )


# -------------------------------------------------------------------- loading


def restore(saved: Any) -> Any:
    """The estimator that plain values describe; every value is checked before it is used."""
    if not isinstance(saved, Saved):
        raise ModelFileError(f"it has a {type(saved).__name__!r} where an estimator is expected")
    if saved.name not in CLASSES:
        raise ModelFileError(f"it names {saved.name!r}, which is no estimator that a model file may hold")
    kind = CLASSES[saved.name]
    unknown = set(saved.parameters) - set(inspect.signature(kind).parameters)
    if unknown:
        raise ModelFileError(f"{saved.name} has no parameter {min(unknown)!r} in this version of treegram")
    estimator = kind(**{key: _restored(value) for key, value in saved.parameters.items()})
    _check_parameters(estimator)
    state = _state_of(kind)
    if saved.learned is not None:
        if state is None:
            raise ModelFileError(f"a {saved.name} learns nothing, but something is given as learned")
        state[2](estimator, {key: _restored(value) for key, value in saved.learned.items()})
    return estimator


def _restored(value: Any) -> Any:
    if isinstance(value, Saved):
        return restore(value)
    return type(value)(_restored(entry) for entry in value) if type(value) in (list, tuple) else value


def _check_demands(estimator: Any) -> None:
    """Raise if a parameter asks for more than files may ask for."""
    for name, most in _MOST.items():
        value = getattr(estimator, name, None)
        if isinstance(value, int | np.integer) and value > most:
            raise ModelFileError(
                f"{name} of {type(estimator).__name__} is {value}; in a model file it may be {most} at most"
            )


def _check_parameters(estimator: Any) -> None:
    _check_demands(estimator)
    jobs = getattr(estimator, "n_jobs", None)
    if jobs is not None and not (type(jobs) is int and abs(jobs) <= _MOST_JOBS):
        raise ModelFileError(
            f"n_jobs of {type(estimator).__name__} is {jobs!r}; at most {_MOST_JOBS} threads can be asked for"
        )
    if isinstance(estimator, Checked):
        estimator._check_parameters()
    elif isinstance(estimator, Pipeline):
        _check_steps(estimator)
    else:
        estimator._validate_params()


def _check_steps(pipeline: Pipeline) -> None:
    if pipeline.memory is not None or not pipeline.steps:
        raise ModelFileError("a pipeline must have steps, and its memory must be None")
    for name, step in pipeline.steps:
        is_step = step in (None, "passthrough") if isinstance(step, str | None) else isinstance(step, BaseEstimator)
        if not isinstance(name, str) or not is_step:
            raise ModelFileError(f"a pipeline has a {type(step).__name__} as a step")
    pipeline._validate_names([name for name, _ in pipeline.steps])
