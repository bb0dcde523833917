"""The learned attributes of each class: read from a fitted estimator, and checked before a loaded one has them.

Compiled code trusts lengths, indices and dtypes. A fitted kernel is its parameters and its graphs: it is fitted again, so that
compiled code receives what any ``fit`` gives it. All other arrays are checked here, also across the steps of a pipeline.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from treegram._core.errors import ModelFileError
from treegram.graphs import Graphs
from treegram.graphs.fields import fields_to_graphs, graphs_digest, graphs_to_fields
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import split_pipeline
from treegram.kernels.node_pairs import vectors_and_kernel
from treegram.pairsum.maps import Constant, Fourier, PivotMap, VectorMap

__all__ = ["LINEAR_MODELS", "check_pipeline", "learned_state", "restore_state"]

LINEAR_MODELS = (LinearSVC, LogisticRegression, Ridge, SGDClassifier, SGDRegressor)
TOLERANCE = 1e-9  # relative, between kernel values in the file and now: more than rounding on another machine


def learned_state(estimator: Any) -> dict[str, Any] | None:
    """Return what an estimator has learned, or None if it is not fitted or never learns."""
    if isinstance(estimator, GraphKernel):
        return _kernel_state(estimator) if hasattr(estimator, "graphs_") else None
    names, _ = _STATES.get(type(estimator).__name__, ((), None))
    if not names or not hasattr(estimator, names[0]):
        return None
    if type(estimator).__name__ == "Nystroem":
        _check_nystroem_can_be_saved(estimator)
    state = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    if "map_" in state:
        state["map_"] = _map_state(state["map_"])
    return state


def restore_state(estimator: Any, state: dict[str, Any]) -> None:
    """Give an estimator what it had learned; raise where this is inconsistent."""
    if isinstance(estimator, GraphKernel):
        _restore_kernel(estimator, state)
        return
    name = type(estimator).__name__
    names, check = _STATES.get(name, ((), None))
    if check is None:
        raise ModelFileError(f"a {name} learns nothing, but the file has learned values for it")
    unknown = set(state) - set(names)
    if unknown:
        raise ModelFileError(f"{name} has no attribute {min(unknown)!r} in this version of treegram")
    vars(estimator).update(state)
    check(estimator)


# -------------------------------------------------------------------- checks of values


def _floats(values: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != shape:
        raise ModelFileError(f"{name} must be an array of numbers of the shape {shape}")
    if not np.isfinite(values).all():
        raise ModelFileError(f"{name} must be finite")
    return values


def _integers(values: Any, length: int, name: str, below: int) -> None:
    if not isinstance(values, np.ndarray) or values.dtype != np.int64 or values.shape != (length,):
        raise ModelFileError(f"{name} must be an array of {length} integers")
    if length and not (values.min() >= 0 and values.max() < below):
        raise ModelFileError(f"{name} must be from 0 to {below - 1}")


def _numbers(estimator: Any, *names: str) -> None:
    for name in names:
        value = getattr(estimator, name)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ModelFileError(f"{name} must be a finite number")


def _whole(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < 2**32:
        raise ModelFileError(f"{name} must be an integer from 0 to 2**32 - 1")
    return value


def _check_classes(classes: Any) -> int:
    """Return the number of classes."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ModelFileError("classes_ must be an array of at least two classes")
    if not np.array_equal(np.unique(classes), classes):
        raise ModelFileError("classes_ must be sorted and distinct")
    return len(classes)


# -------------------------------------------------------------------- kernels


def _kernel_state(kernel: GraphKernel) -> dict[str, Any]:
    """Return the fitted graphs, and the kernel of each with itself; raise if a second fit would draw other numbers."""
    for key, value in kernel.get_params().items():
        if key.rpartition("__")[2] == "random_state" and not isinstance(value, int | np.integer):
            raise ModelFileError(
                f"random_state of {type(kernel).__name__} is {value!r}: a saved kernel is fitted again when it is loaded, and must draw "
                "the same numbers then. Fit it with an integer."
            )
    graphs = kernel.graphs_
    return {"graphs": graphs_to_fields(graphs), "digest": graphs_digest(graphs), "self_kernels": _self_kernels(kernel)}


def _self_kernels(kernel: GraphKernel) -> NDArray[np.float64]:
    own = kernel._self_kernels
    return (kernel._self_sums(kernel._fitted) if own is None else own).reshape(-1)


def _restore_kernel(kernel: GraphKernel, state: dict[str, Any]) -> None:
    graphs = fields_to_graphs(state["graphs"])
    if state["digest"] != graphs_digest(graphs):
        raise ModelFileError("its graphs do not match their digest")
    saved = _floats(state["self_kernels"], (len(graphs),), "self_kernels")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the kernel was first fitted
        kernel.fit(graphs)
    if not np.allclose(_self_kernels(kernel), saved, rtol=TOLERANCE, atol=0.0):
        raise ModelFileError(
            f"{type(kernel).__name__} gives other values on its fitted graphs than when it was saved. Use the versions that the file "
            "was saved with, or fit the model again"
        )
    if kernel._self_kernels is not None:  # fit and fit_transform differ in the last bit: take those of the saved kernel
        kernel._self_kernels = saved.reshape(kernel._self_kernels.shape)


def _count_fitted(kernel: Any) -> int:
    """Return the number of graphs of a fitted kernel, or of a pipeline that ends in one."""
    _, final = split_pipeline(kernel, "kernel_")
    if not isinstance(final, GraphKernel) or not hasattr(final, "graphs_"):
        raise ModelFileError("kernel_ must be a fitted kernel")
    return len(final.graphs_)


# -------------------------------------------------------------------- transformers


def _check_scaler(scaler: Any) -> None:
    shape = np.shape(scaler.scale_)
    _floats(scaler.center_, shape, "center_")
    is_positive = (_floats(scaler.scale_, shape, "scale_") > 0).all()
    if len(shape) != 1 or _whole(scaler.n_attributes_in_, "n_attributes_in_") not in (0, *shape) or not is_positive:
        raise ModelFileError("scale_ must have one positive number for each attribute")
    if scaler.method == "whiten":
        _floats(scaler.whitening_, (*shape, *shape), "whitening_")
    elif scaler.whitening_ is not None:
        raise ModelFileError("whitening_ must be None unless vectors are whitened")


def _check_edge_bins(transformer: Any) -> None:
    if not isinstance(transformer.thresholds_, list):
        raise ModelFileError("thresholds_ must be a list of arrays")
    for thresholds in transformer.thresholds_:
        _floats(thresholds, np.shape(thresholds), "thresholds_")
        if thresholds.ndim != 1 or (thresholds[1:] <= thresholds[:-1]).any():
            raise ModelFileError("thresholds_ must be ascending for each column")


def _check_feature_map(features: Any) -> None:
    _count_fitted(features.kernel_)
    if not hasattr(features.kernel_, "_feature_rows"):
        raise ModelFileError(f"{type(features.kernel_).__name__} has no explicit features")


def _check_nystroem_can_be_saved(features: Any) -> None:
    final = split_pipeline(features.kernel_)[1]
    if final.learns_from_data:
        raise ModelFileError(
            f"Nystroem cannot be saved with {type(final).__name__} as it is: it has learned from all fitted graphs, of which "
            "only the components are left. Use a kernel that learns nothing from graphs (for gamma, a number), and put "
            "transformers before Nystroem in a pipeline."
        )


def _check_nystroem(features: Any) -> None:
    n = features.n_features_out_ = _count_fitted(features.kernel_)
    _integers(features.component_indices_, n, "component_indices_", 2**62)
    if (_floats(features._factor, (n, n), "factor").diagonal() <= 0).any():
        raise ModelFileError("factor must have a positive diagonal")
    _numbers(features, "trace_error_")


def _map_state(vector_map: Any) -> tuple[Any, ...]:
    arrays = {"Constant": (), "Fourier": ("frequencies",), "PivotMap": ("pivots", "mixing")}
    name = type(vector_map).__name__
    return (name, *(getattr(vector_map, array) for array in arrays[name]))


def _check_oddcl_features(features: Any) -> None:
    n_attributes = _whole(features.n_attributes_in_, "n_attributes_in_")
    _whole(features._seed, "seed")
    kind = rf"{n_attributes} attributes, (no )?labels, (un)?directed edges"
    if features._kind is not None and not re.fullmatch(kind, features._kind):
        raise ModelFileError(f"kind must describe the fitted graphs; got {features._kind!r}")
    if features.gamma == "scale":
        _numbers(features, "gamma_")
    features.map_ = _restore_map(features, n_attributes)
    features.n_components_ = features.map_.n_components
    _check_codes(features._labels, "labels")
    if features.n_features is None:
        _check_codes(features._codes, "codes")
        features.n_features_out_ = len(features._codes) * features.n_components_
    elif features._codes is not None:
        raise ModelFileError("hashed features have no codes")
    else:
        features.n_features_out_ = features.n_features
    _numbers(features, "estimated_error_")
    if not isinstance(features.method_, str) or not isinstance(features.choice_, str):
        raise ModelFileError("method_ and choice_ must be texts")


def _restore_map(features: Any, n_attributes: int) -> VectorMap:
    kind, *arrays = features.map_
    if kind == "Constant" and not arrays:
        return Constant()
    if kind == "Fourier":
        (frequencies,) = arrays
        return Fourier(_floats(frequencies, (n_attributes, np.shape(frequencies)[1]), "frequencies"))
    if kind == "PivotMap":
        pivots, mixing = arrays
        n = len(pivots)
        empty = replace(Graphs.from_arrays([0], np.empty((0, 2), np.int64)), attributes=np.empty((0, n_attributes)))
        _, node_kernel = vectors_and_kernel(features, empty)
        return PivotMap(node_kernel, _floats(pivots, (n, n_attributes), "pivots"), _floats(mixing, (n, n), "mixing"))
    raise ModelFileError(f"{kind!r} is not a map of vectors")


def _check_codes(codes: Any, name: str) -> None:
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint64 or codes.ndim != 1:
        raise ModelFileError(f"{name} must be an array of 64-bit codes")
    if (codes[1:] <= codes[:-1]).any():
        raise ModelFileError(f"{name} must be ascending and distinct")


# -------------------------------------------------------------------- models


def _check_svc(model: Any) -> None:
    n_graphs, n_classes = _count_fitted(model.kernel_), _check_classes(model.classes_)
    n_pairs = n_classes * (n_classes - 1) // 2
    n_support = len(model.support_)
    _integers(model.support_, n_support, "support_", n_graphs)
    _integers(model.n_support_, n_classes, "n_support_", n_graphs + 1)
    if model.n_support_.sum() != n_support:
        raise ModelFileError("n_support_ must count support_")
    _floats(model.dual_coef_, (n_classes - 1, n_support), "dual_coef_")
    _floats(model.intercept_, (n_pairs,), "intercept_")
    if model.probability or hasattr(model, "sigmoids_"):
        _floats(model.sigmoids_, (n_pairs, 2), "sigmoids_")
        _numbers(model, "temperature_")
        if model.temperature_ <= 0:
            raise ModelFileError("temperature_ must be positive")
    _numbers(model, "best_score_", "n_unconverged_")
    _check_search(model)


def _check_ridge(model: Any) -> None:
    _floats(model.dual_coef_, (_count_fitted(model.kernel_),), "dual_coef_")
    _numbers(model, "intercept_", "best_score_")
    _check_search(model)


def _check_gp(model: Any) -> None:
    n_graphs = _count_fitted(model.kernel_)
    _floats(model.dual_coef_, (n_graphs,), "dual_coef_")
    _floats(model._half_inverse, (n_graphs, n_graphs), "half_inverse")
    _numbers(model, "log_marginal_likelihood_", "scale_", "intercept_", "_unit", "_prior")
    _check_search(model)
    noise = model.best_params_["noise"]
    if not (isinstance(noise, float) and min(model._unit, model._prior, model.scale_, noise) >= 0):
        raise ModelFileError("scale_, unit, prior and noise must not be negative")


def _check_classifier(model: Any) -> None:
    n_classes = _check_classes(model.classes_)
    n_outputs = 1 if n_classes == 2 else n_classes
    n_kernels = _count_kernels(model)
    if not isinstance(model.dual_coefs_, list) or len(model.dual_coefs_) != n_kernels:
        raise ModelFileError(f"dual_coefs_ must be a list of {n_kernels} arrays")
    for kernel, coefficients in zip(model.kernels_, model.dual_coefs_, strict=True):
        _floats(coefficients, (_count_fitted(kernel), n_outputs), "dual_coefs_")
    _integers(model.train_codes_, len(model.dual_coefs_[0]), "train_codes_", n_classes)
    _floats(model.intercept_, (n_outputs,), "intercept_")
    _floats(model.alphas_, (n_kernels,), "alphas_")
    _numbers(model, "temperature_")
    if model.temperature_ <= 0:
        raise ModelFileError("temperature_ must be positive")


def _check_regressor(model: Any) -> None:
    n_kernels, n_graphs = _count_kernels(model), len(model.dual_coef_)
    if any(_count_fitted(kernel) != n_graphs for kernel in model.kernels_):
        raise ModelFileError("kernels_ must be fitted on as many graphs as dual_coef_ has numbers")
    _floats(model.dual_coef_, (n_graphs,), "dual_coef_")
    _floats(model._priors, (n_kernels,), "priors")
    _floats(model._half_inverse, (n_graphs, n_graphs), "half_inverse")
    _numbers(model, "intercept_", "noise_", "scale_", "log_marginal_likelihood_", "_unit")
    if min(model.noise_, model.scale_, model._unit, *model._priors) < 0:
        raise ModelFileError("noise_, scale_, unit and priors must not be negative")


def _count_kernels(model: Any) -> int:
    """Return the number of kernels of an automatic model, after a check of these, their weights and its records."""
    if not isinstance(model.kernels_, list) or not model.kernels_:
        raise ModelFileError("kernels_ must be a list of kernels")
    if (_floats(model.weights_, (len(model.kernels_),), "weights_") < 0).any():
        raise ModelFileError("weights_ must not be negative")
    _check_records(model)
    return len(model.kernels_)


def _check_search(model: Any) -> None:
    """Check what a search has tried, and its choice."""
    if not isinstance(model.best_params_, dict):
        raise ModelFileError("best_params_ must be a dict")
    _check_records(model)


def _check_records(model: Any) -> None:
    """Check the records of the candidates, and the errors on calibration graphs, if any."""
    if hasattr(model, "calibration_"):
        errors = _floats(model.calibration_, np.shape(model.calibration_), "calibration_")
        if errors.ndim != 1 or (errors[1:] < errors[:-1]).any():
            raise ModelFileError("calibration_ must be ascending")
    kinds = {"candidate": str, "reason": str, "n_graphs": int, "score": float | None, "seconds": float, "note": str}
    results = model.search_results_
    if not isinstance(results, list) or not all(isinstance(record, dict) for record in results):
        raise ModelFileError("search_results_ must be a list of records")
    for record in results:
        if record.keys() != kinds.keys() or not all(isinstance(record[name], kind) for name, kind in kinds.items()):
            raise ModelFileError(f"a record of search_results_ must have {', '.join(kinds)}")


def _check_linear(model: Any) -> None:
    n_features = model.n_features_in_
    is_classifier = hasattr(type(model), "decision_function")
    if type(n_features) is not int or is_classifier != hasattr(model, "classes_"):
        raise ModelFileError("a linear model must have a number of features, and a classifier its classes")
    shape: tuple[int, ...] = (n_features,)
    if is_classifier:
        n_classes = _check_classes(model.classes_)
        shape = (1 if n_classes == 2 else n_classes, n_features)
    _floats(model.coef_, shape, "coef_")
    if isinstance(model.intercept_, np.ndarray):
        _floats(model.intercept_, shape[:-1] or (1,), "intercept_")
    else:
        _numbers(model, "intercept_")


# -------------------------------------------------------------------- pipelines


def check_pipeline(pipeline: Pipeline) -> None:
    """Check the steps of a pipeline, and that the weights of a linear model fit the columns of the step before it."""
    if pipeline.memory is not None or not pipeline.steps:
        raise ModelFileError("a pipeline must have steps, and its memory must be None")
    for name, step in pipeline.steps:
        if not isinstance(name, str) or not (isinstance(step, BaseEstimator) or step in (None, "passthrough")):
            raise ModelFileError(f"a pipeline has a {type(step).__name__} as a step")
    pipeline._validate_names([name for name, _ in pipeline.steps])
    steps = _flat_steps(pipeline)
    for before, step in pairwise(steps):
        if isinstance(step, LINEAR_MODELS) and hasattr(step, "coef_") and step.n_features_in_ != _n_columns(before):
            raise ModelFileError(
                f"{type(step).__name__} has weights for {step.n_features_in_} features, but the step before it, "
                f"{type(before).__name__}, has {_n_columns(before)}"
            )


def _flat_steps(model: Any) -> list[Any]:
    if not isinstance(model, Pipeline):
        return [model]
    steps = (step for _, step in model.steps if step is not None and step != "passthrough")
    return [flat for step in steps for flat in _flat_steps(step)]


def _n_columns(step: Any) -> int | None:
    """Return the number of columns that a step gives, or None if it is not fitted or does not give columns."""
    if isinstance(step, GraphKernel):
        return len(step.graphs_) if hasattr(step, "graphs_") else None
    return getattr(step, "n_features_out_", getattr(step, "n_features", None))


# The names of the learned attributes, of which the first shows that an estimator is fitted, and their check.
_MODEL = ("kernel_", "best_params_", "search_results_", "dual_coef_", "intercept_", "calibration_")
_STATES: dict[str, tuple[tuple[str, ...], Callable[[Any], None]]] = {
    "BinEdgeAttributes": (("thresholds_",), _check_edge_bins),
    "FeatureMap": (("kernel_",), _check_feature_map),
    "GraphClassifier": (
        (
            "kernels_",
            "classes_",
            "weights_",
            "alphas_",
            "dual_coefs_",
            "intercept_",
            "train_codes_",
            "temperature_",
            "search_results_",
            "calibration_",
        ),
        _check_classifier,
    ),
    "GraphGP": ((*_MODEL, "log_marginal_likelihood_", "scale_", "_unit", "_prior", "_half_inverse"), _check_gp),
    "GraphRegressor": (
        (
            *(
                "kernels_",
                "weights_",
                "dual_coef_",
                "intercept_",
                "noise_",
                "scale_",
                "search_results_",
                "calibration_",
            ),
            *("log_marginal_likelihood_", "_unit", "_priors", "_half_inverse"),
        ),
        _check_regressor,
    ),
    "GraphRidge": ((*_MODEL, "best_score_"), _check_ridge),
    "GraphSVC": (
        (*_MODEL, "classes_", "support_", "n_support_", "best_score_", "n_unconverged_", "sigmoids_", "temperature_"),
        _check_svc,
    ),
    "Nystroem": (("component_indices_", "kernel_", "_factor", "trace_error_"), _check_nystroem),
    "ODDCLFeatures": (
        (
            *("map_", "gamma_", "n_attributes_in_", "method_", "choice_", "estimated_error_"),
            *("_codes", "_labels", "_seed", "_kind"),
        ),
        _check_oddcl_features,
    ),
    "ScaleAttributes": (("scale_", "center_", "whitening_", "n_attributes_in_"), _check_scaler),
    **dict.fromkeys(
        (kind.__name__ for kind in LINEAR_MODELS),
        (("coef_", "intercept_", "n_features_in_", "classes_"), _check_linear),
    ),
}
