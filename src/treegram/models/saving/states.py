"""What each class of estimators has learned: how it is taken from a fitted one, and checked and given to a new one."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import ModelFileError
from treegram.graphs import Graphs
from treegram.graphs.fields import fields_to_graphs, graphs_digest, graphs_to_fields
from treegram.kernels.base import GraphKernel
from treegram.kernels.node_sums import vectors_and_kernel
from treegram.kernels.pipelines import split_pipeline
from treegram.pairsum.maps import Constant, Fourier, PivotMap, VectorMap


def _floats(values: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """The array, if it has finite numbers and this shape."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != shape:
        raise ModelFileError(f"{name} must be an array of numbers of the shape {shape}")
    if not np.isfinite(values).all():
        raise ModelFileError(f"{name} must be finite")
    return values


def _whole(values: Any, length: int, name: str, below: int) -> NDArray[np.int64]:
    if not isinstance(values, np.ndarray) or values.dtype != np.int64 or values.shape != (length,):
        raise ModelFileError(f"{name} must be an array of {length} whole numbers")
    if length and not (values.min() >= 0 and values.max() < below):
        raise ModelFileError(f"{name} must be from 0 to {below - 1}")
    return values


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ModelFileError(f"{name} must be a finite number")
    return float(value)


# -------------------------------------------------------------------- kernels


def take_kernel(kernel: GraphKernel) -> dict[str, Any]:
    """The fitted graphs, and the kernel of each with itself."""
    selves = kernel._self_sums(kernel._fitted) if kernel._self_kernels is None else kernel._self_kernels
    graphs = kernel.graphs_
    return {"graphs": graphs_to_fields(graphs), "digest": graphs_digest(graphs), "self_kernels": selves.reshape(-1)}


def give_kernel(kernel: GraphKernel, learned: dict[str, Any]) -> None:
    """The fitted graphs, checked. The kernel is fitted on them again when it is first used: see ``GraphKernel._catch_up``."""
    graphs = fields_to_graphs(learned["graphs"])
    if learned["digest"] != graphs_digest(graphs):
        raise ModelFileError("its graphs are not those whose digest it has")
    kernel._resume(graphs, _floats(learned["self_kernels"], (len(graphs),), "self_kernels"))


def _fitted_kernel(value: Any) -> tuple[Any, int]:
    """A fitted kernel, or a pipeline that ends in one, and the number of its graphs."""
    _, final = split_pipeline(value, "kernel_")
    if not isinstance(final, GraphKernel) or not hasattr(final, "graphs_"):
        raise ModelFileError("kernel_ must be a fitted kernel")
    return value, len(final.graphs_)


# -------------------------------------------------------------------- transformers


def take_scale(scaler: Any) -> dict[str, Any]:
    """Centers and scales."""
    return {"center": scaler.center_, "scale": scaler.scale_, "n_attributes": scaler.n_attributes_in_}


def give_scale(scaler: Any, learned: dict[str, Any]) -> None:
    """Centers and scales; a scale of 0 cannot be."""
    shape = np.shape(learned["scale"])
    center, scale = (_floats(learned[name], shape, name) for name in ("center", "scale"))
    n_attributes = learned["n_attributes"]
    if len(shape) != 1 or type(n_attributes) is not int or n_attributes not in (0, len(scale)) or (scale <= 0).any():
        raise ModelFileError("scale must be one positive number for each attribute")
    scaler.center_, scaler.scale_, scaler.n_attributes_in_ = center, scale, n_attributes


def take_edges(transformer: Any) -> dict[str, Any]:
    """The thresholds of each column."""
    return {"thresholds": list(transformer.thresholds_)}


def give_edges(transformer: Any, learned: dict[str, Any]) -> None:
    """The same, if they are ascending."""
    thresholds = learned["thresholds"]
    if not isinstance(thresholds, list):
        raise ModelFileError("thresholds must be a list of arrays")
    for cuts in thresholds:
        _floats(cuts, np.shape(cuts), "thresholds")
        if cuts.ndim != 1 or (cuts[1:] <= cuts[:-1]).any():
            raise ModelFileError("thresholds must be ascending numbers for each column")
    transformer.thresholds_ = thresholds


def take_feature_map(features: Any) -> dict[str, Any]:
    """The fitted kernel."""
    return {"kernel": features.kernel_}


def give_feature_map(features: Any, learned: dict[str, Any]) -> None:
    """The fitted kernel, if it has features."""
    kernel, _ = _fitted_kernel(learned["kernel"])
    if not hasattr(kernel, "features"):
        raise ModelFileError(f"{type(kernel).__name__} has no explicit features")
    features.kernel_ = kernel


def take_landmarks(landmarks: Any) -> dict[str, Any]:
    """The kernel, fitted on the landmarks, and which graphs these are."""
    final = split_pipeline(landmarks.kernel_)[1]
    if final.learns_from_data:
        raise ModelFileError(
            f"Nystroem cannot be saved with {type(final).__name__} as it is: it has learned from all fitted graphs, of which "
            "only the landmarks are left. Use a kernel that learns nothing from graphs (for gamma, give a number), and put "
            "transformers before Nystroem in a pipeline."
        )
    names = ("kernel_", "component_indices_", "trace_error_")
    return {name: getattr(landmarks, name) for name in names} | {"factor": landmarks._factor}


def give_landmarks(landmarks: Any, learned: dict[str, Any]) -> None:
    """The same, with one column for each landmark."""
    kernel, n = _fitted_kernel(learned["kernel_"])
    landmarks.component_indices_ = _whole(learned["component_indices_"], n, "component_indices_", 2**62)
    landmarks._factor = _floats(learned["factor"], (n, n), "factor")
    if (landmarks._factor.diagonal() <= 0).any():
        raise ModelFileError("factor must have a positive diagonal")
    landmarks.trace_error_ = _number(learned["trace_error_"], "trace_error_")
    landmarks.kernel_, landmarks.n_features_out_ = kernel, n


def take_oddcl_features(features: Any) -> dict[str, Any]:
    """The map of vectors, the columns, and what is told about them."""
    kinds = {"Constant": (), "Fourier": ("frequencies",), "PivotMap": ("pivots", "mixing")}
    name = type(features.map_).__name__
    return {
        "map": (name, *(getattr(features.map_, part) for part in kinds[name])),
        "codes": features._codes,
        "labels": features._labels,
        "seed": int(features._seed),
        "kind": features._kind,
        "n_attributes": features.n_attributes_in_,
        "method": features.method_,
        "choice": features.choice_,
        "estimated_error": float(features.estimated_error_),
    }


def give_oddcl_features(features: Any, learned: dict[str, Any]) -> None:
    """The same, with a map of the right dimension and sorted columns."""
    n_attributes, kind, seed = learned["n_attributes"], learned["kind"], learned["seed"]
    if any(type(number) is not int or not 0 <= number < 2**32 for number in (n_attributes, seed)):
        raise ModelFileError("n_attributes and seed must be whole numbers")
    told = rf"{n_attributes} attributes, (no )?labels, (un)?directed edges"
    if kind is not None and not re.fullmatch(told, kind):
        raise ModelFileError(f"kind must say what the fitted graphs had; got {kind!r}")
    features.map_ = _vector_map(features, learned["map"], n_attributes)
    features._seed, features._kind, features.n_attributes_in_ = seed, kind, n_attributes
    features._codes = _codes(learned["codes"], is_wanted=features.n_features is None)
    features._labels = _codes(learned["labels"], is_wanted=True)
    features.n_components_ = features.map_.n_components
    features.n_features_out_ = (
        features.n_features if features._codes is None else len(features._codes) * features.n_components_
    )
    features.method_, features.choice_ = str(learned["method"]), str(learned["choice"])
    features.estimated_error_ = _number(learned["estimated_error"], "estimated_error")


def _vector_map(features: Any, saved: Any, n_attributes: int) -> VectorMap:
    kind, *parts = saved
    if kind == "Constant" and not parts:
        return Constant()
    if kind == "Fourier":
        (frequencies,) = parts
        return Fourier(_floats(frequencies, (n_attributes, np.shape(frequencies)[1]), "frequencies"))
    if kind == "PivotMap":
        pivots, mixing = parts
        n = len(pivots)
        nothing = Graphs.from_arrays([0], np.empty((0, 2), np.int64))
        nothing = replace(nothing, attributes=np.empty((0, n_attributes)))
        _, node_kernel = vectors_and_kernel(features, nothing)
        shapes = (n, n_attributes), (n, n)
        return PivotMap(node_kernel, _floats(pivots, shapes[0], "pivots"), _floats(mixing, shapes[1], "mixing"))
    raise ModelFileError(f"{kind!r} is not a map of vectors")


def _codes(codes: Any, *, is_wanted: bool) -> Any:
    if not is_wanted and codes is None:
        return None
    if not is_wanted or not isinstance(codes, np.ndarray) or codes.dtype != np.uint64 or codes.ndim != 1:
        raise ModelFileError(
            "codes, where n_features is None, and labels must be arrays of 64-bit codes, and nothing else"
        )
    if (codes[1:] <= codes[:-1]).any():
        raise ModelFileError("codes and labels must be sorted, each once")
    return codes


# -------------------------------------------------------------------- models


def take_svc(model: Any) -> dict[str, Any]:
    """All that predictions need, and what was chosen; not the table of all candidates."""
    if model.solver == "landmarks":
        raise ModelFileError(
            "A GraphSVC with solver='landmarks' cannot be saved in a model file; a pipeline of Nystroem and LinearSVC can."
        )
    names = ("kernel_", "classes_", "best_params_", "support_", "n_support_", "dual_coef_", "intercept_")
    learned = {name: getattr(model, name) for name in names}
    learned |= {"best_score_": model.best_score_, "n_unconverged_": int(model.n_unconverged_)}
    return {**learned, "sigmoids_": getattr(model, "sigmoids_", None), "search_results_": model.search_results_}


def give_svc(model: Any, learned: dict[str, Any]) -> None:
    """The same, if classes, machines and fitted graphs go together."""
    kernel, n_graphs = _fitted_kernel(learned["kernel_"])
    classes = _check_classes(learned["classes_"])
    n_classes, n_pairs = len(classes), len(classes) * (len(classes) - 1) // 2
    support = _whole(learned["support_"], len(learned["support_"]), "support_", n_graphs)
    n_support = _whole(learned["n_support_"], n_classes, "n_support_", n_graphs + 1)
    if n_support.sum() != len(support):
        raise ModelFileError("n_support_ must count support_")
    sigmoids = learned["sigmoids_"]
    if sigmoids is not None:
        model.sigmoids_ = _floats(sigmoids, (n_pairs, 2), "sigmoids_")
    elif model.probability:
        raise ModelFileError("sigmoids_ are missing")
    model.dual_coef_ = _floats(learned["dual_coef_"], (n_classes - 1, len(support)), "dual_coef_")
    model.intercept_ = _floats(learned["intercept_"], (n_pairs,), "intercept_")
    model.classes_, model.support_, model.n_support_ = classes, support, n_support
    model.best_score_ = _number(learned["best_score_"], "best_score_")
    model.best_params_ = dict(learned["best_params_"])
    model.search_results_ = _account(learned.get("search_results_", []))
    model.n_unconverged_ = int(_number(learned["n_unconverged_"], "n_unconverged_"))
    model.kernel_ = kernel


def _account(records: Any) -> list[dict[str, Any]]:
    """What a search has tried, in the form that tables are made of; files of older versions have none."""
    kinds = {"candidate": str, "reason": str, "graphs": int, "score": float | None, "seconds": float, "note": str}
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ModelFileError("search_results_ must be a list of records")
    for record in records:
        if record.keys() != kinds.keys() or not all(isinstance(record[name], kind) for name, kind in kinds.items()):
            raise ModelFileError(f"a record of search_results_ must have {', '.join(kinds)}")
    return [dict(record) for record in records]


def _check_classes(classes: Any) -> NDArray[Any]:
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ModelFileError("classes_ must be an array of at least two classes")
    if not np.array_equal(np.unique(classes), classes):
        raise ModelFileError("classes_ must be sorted, each once")
    return classes


def take_ridge(model: Any) -> dict[str, Any]:
    """All that predictions need, and what was chosen."""
    names = ("kernel_", "best_params_", "best_score_", "dual_coef_", "intercept_", "search_results_")
    return {name: getattr(model, name) for name in names}


def give_ridge(model: Any, learned: dict[str, Any]) -> None:
    """The same, with one coefficient for each fitted graph."""
    kernel, n_graphs = _fitted_kernel(learned["kernel_"])
    model.dual_coef_ = _floats(learned["dual_coef_"], (n_graphs,), "dual_coef_")
    model.intercept_ = _number(learned["intercept_"], "intercept_")
    model.best_score_ = _number(learned["best_score_"], "best_score_")
    model.best_params_ = dict(learned["best_params_"])
    model.search_results_ = _account(learned.get("search_results_", []))
    model.kernel_ = kernel


def take_gp(model: Any) -> dict[str, Any]:
    """All that predictions and their error bars need, and what was chosen."""
    names = (
        "kernel_",
        "best_params_",
        "log_marginal_likelihood_",
        "scale_",
        "dual_coef_",
        "intercept_",
        "search_results_",
    )
    learned = {name: getattr(model, name) for name in names}
    return {**learned, "unit": model._unit, "half_inverse": model._half_inverse}


def give_gp(model: Any, learned: dict[str, Any]) -> None:
    """The same, with numbers for each fitted graph, and for each pair of them."""
    kernel, n_graphs = _fitted_kernel(learned["kernel_"])
    model.dual_coef_ = _floats(learned["dual_coef_"], (n_graphs,), "dual_coef_")
    model._half_inverse = _floats(learned["half_inverse"], (n_graphs, n_graphs), "half_inverse")
    for name in ("log_marginal_likelihood_", "scale_", "intercept_"):
        setattr(model, name, _number(learned[name], name))
    model._unit = _number(learned["unit"], "unit")
    model.best_params_ = dict(learned["best_params_"])
    model.search_results_ = _account(learned.get("search_results_", []))
    if min(model._unit, model.scale_, _number(model.best_params_["noise"], "noise")) < 0:
        raise ModelFileError("scale_, unit and noise must not be negative")
    model.kernel_ = kernel


# -------------------------------------------------------------------- linear models of scikit-learn


def take_linear(model: Any) -> dict[str, Any]:
    """Coefficients, and the classes of a classifier."""
    names = ("coef_", "intercept_", "n_features_in_", "classes_")
    return {name: getattr(model, name, None) for name in names}


def give_linear(model: Any, learned: dict[str, Any]) -> None:
    """The same, with one coefficient for each feature."""
    n_features, classes = learned["n_features_in_"], learned["classes_"]
    is_classifier = hasattr(type(model), "decision_function")
    if type(n_features) is not int or is_classifier != (classes is not None):
        raise ModelFileError("a linear model must have a number of features, and a classifier its classes")
    shape: tuple[int, ...] = (n_features,)
    if is_classifier:
        model.classes_ = _check_classes(classes)
        n_rows = 1 if len(classes) == 2 else len(classes)
        shape = (n_rows, n_features)
    model.coef_ = _floats(learned["coef_"], shape, "coef_")
    intercept = learned["intercept_"]
    if isinstance(intercept, np.ndarray):
        model.intercept_ = _floats(intercept, shape[:-1] or (1,), "intercept_")
    else:
        model.intercept_ = _number(intercept, "intercept_")
    model.n_features_in_ = n_features
