"""The learned attributes of each class: read from a fitted estimator, and checked before a loaded one receives them.

Compiled code trusts lengths, indices and dtypes. A fitted kernel is saved as its parameters and graphs and fitted again when
loaded, so that compiled code receives the same input as after any ``fit``. For all other estimators, and for the records that they
keep, `_RULES` defines what each attribute must be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from treegram._core.types import Array, Floats
from treegram.exceptions import ModelFileError
from treegram.graphs import Graphs
from treegram.graphs.digest import digest_graphs
from treegram.graphs.fields import fields_to_graphs, graphs_to_fields
from treegram.graphs.statistics import CodedValues, GraphStatistics
from treegram.kernels import FeatureMap, Nystroem
from treegram.kernels.base import GraphKernel
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import split_pipeline
from treegram.kernels.node_pairs import NodePairKernel, vectors_and_kernel
from treegram.models.base import SearchSummary, flat_steps
from treegram.models.blocks import N_CELLS, Block, ColumnBlock, FeatureBlock, MapBlock
from treegram.models.multi_target import TakesSeveralTargets
from treegram.models.targets import TargetScale
from treegram.pairsum.maps import Constant, Fourier, PivotMap

LINEAR_MODELS = (LinearSVC, LogisticRegression, Ridge, SGDClassifier, SGDRegressor)
TOLERANCE = 1e-9  # relative difference of kernel values in the file and now: more than rounding on another machine

Sizes = dict[str, int]  # of one estimator: n_graphs, n_classes, ...

# Variants of classes with rules of their own: automatic models of very many graphs, and regressors of several targets.
_ON_ROWS, _SEVERAL_TARGETS = " on rows", "regressor of several targets"


def learned_state(estimator: Any) -> dict[str, Any] | None:
    """Return the learned attributes of an estimator, or None if it is not fitted or never learns."""
    if isinstance(estimator, GraphKernel):
        return _kernel_state(estimator) if hasattr(estimator, "graphs_") else None
    names = _RULES.get(_variant(estimator, vars(estimator)), {})
    if isinstance(estimator, Nystroem) and hasattr(estimator, "kernel_"):
        _check_nystroem_can_be_saved(estimator)
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)} or None


def restore_state(estimator: Any, state: dict[str, Any]) -> None:
    """Set the learned attributes of an estimator; raise if they are inconsistent."""
    if isinstance(estimator, GraphKernel):
        _restore_kernel(estimator, state)
        return
    variant = _variant(estimator, state)
    if variant not in _RULES:
        raise ModelFileError(f"a {variant} learns nothing, but the file has learned values for it")
    _check_all(variant, state)
    if "target_scale_" in _RULES[variant]:
        state = {"target_scale_": None, **state}  # without one, the plain numbers
    vars(estimator).update(state)
    if variant in _LAST_CHECKS:
        _LAST_CHECKS[variant](estimator)


def record_state(record: Any) -> dict[str, Any]:
    """Return the values of a record that a file has."""
    return {name: getattr(record, name) for name in _RULES[type(record).__name__]}


def restore_record(name: Any, values: dict[str, Any]) -> Any:
    """Return the record of a class of `RECORDS` with these values; raise if they are inconsistent."""
    if name not in RECORDS:
        raise ModelFileError(f"{name!r} is not a kind of record")
    _check_all(name, values)
    unknown = {"node_kernel": None} if name == "PivotMap" else {}  # see `_restore_map`
    record = RECORDS[name](**values, **unknown)
    if name in _LAST_CHECKS:
        _LAST_CHECKS[name](record)
    return record


def _check_all(name: str, values: dict[str, Any]) -> None:
    """Check all values of an estimator or a record by the rules of this name."""
    unknown = set(values) - set(_RULES[name])
    if unknown:
        raise ModelFileError(f"{name} has no attribute {min(unknown)!r} in this version of treegram")
    sizes: Sizes = {"2": 2, "n_outputs": 1}  # a classifier of more than two classes has an output for each
    for attribute, rule in _RULES[name].items():
        title = f"{attribute} of a {name}" if name in RECORDS else attribute
        _check(title, values.get(attribute), rule.split(), sizes)


def _variant(estimator: Any, attributes: Mapping[str, Any]) -> str:
    """Return the name of the rules for an estimator that has these learned attributes: its class, or a variant of it."""
    if "estimators_" in attributes and isinstance(estimator, TakesSeveralTargets):
        return _SEVERAL_TARGETS
    name = type(estimator).__name__
    return name + _ON_ROWS if "blocks_" in attributes and name + _ON_ROWS in _RULES else name


# -------------------------------------------------------------------- kernels


def _kernel_state(kernel: GraphKernel) -> dict[str, Any]:
    """Return the fitted graphs, and the kernel of each with itself; raise if a second fit would draw other random numbers."""
    for key, value in kernel.get_params().items():
        if key.rpartition("__")[2] == "random_state" and not isinstance(value, int | np.integer):
            raise ModelFileError(
                f"random_state of {type(kernel).__name__} is {value!r}: a saved kernel is fitted again when it is loaded, and must draw "
                "the same numbers then. Fit it with an integer."
            )
    graphs = kernel.graphs_
    digest = digest_graphs(graphs, leave_out=("targets",))  # which a file does not have
    return {"graphs": graphs_to_fields(graphs), "digest": digest, "self_kernels": _self_kernels(kernel)}


def _self_kernels(kernel: GraphKernel) -> Floats:
    return kernel._selves(kernel._fitted) if kernel._self_kernels is None else kernel._self_kernels


def _restore_kernel(kernel: GraphKernel, state: dict[str, Any]) -> None:
    graphs, saved = fields_to_graphs(state["graphs"]), state["self_kernels"]
    if state["digest"] != digest_graphs(graphs):
        raise ModelFileError("its graphs do not match their digest")
    _check("self_kernels", saved, ["finite", "n_graphs"], {"n_graphs": len(graphs)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the kernel was first fitted
        kernel.fit(graphs)
    if not np.allclose(_self_kernels(kernel), saved, rtol=TOLERANCE, atol=0.0):
        raise ModelFileError(
            f"{type(kernel).__name__} gives other values on its fitted graphs than when it was saved. Use the versions that the file "
            "was saved with, or fit the model again"
        )
    if kernel._self_kernels is not None:  # fit and fit_transform differ in the last bit: use the saved values
        kernel._self_kernels = saved


# -------------------------------------------------------------------- rules


def _check(name: str, value: Any, rule: list[str], sizes: Sizes) -> None:
    """Raise unless a value follows its rule; see `_RULES`."""
    requirement, *shape = rule
    if requirement == "optional":
        if value is not None:
            _check(name, value, shape, sizes)
    elif requirement == "each":
        if not isinstance(value, list) or len(value) != sizes.setdefault("n_entries", len(value)):
            raise ModelFileError(f"{name} must be a list, as long as the other lists of the estimator")
        if not value and shape[0] in {*_OBJECTS, *_INSTANCES}:
            raise ModelFileError(f"{name} must not be empty")
        for i, entry in enumerate(value):
            _check(f"{name}[{i}]", entry, shape, sizes)
    elif requirement in _INSTANCES:
        _check_instance(name, value, *_INSTANCES[requirement])
    elif requirement in _OBJECTS:
        _OBJECTS[requirement](name, value, sizes)
    elif not _follows(value, requirement, shape, sizes):
        wanted = f"an array of shape ({', '.join(str(sizes.get(n, n)) for n in shape)}):" if shape else "a value:"
        raise ModelFileError(f"{name} must be {wanted} {requirement}")


def _follows(value: Any, requirement: str, shape: list[str], sizes: Sizes) -> bool:
    """Return True if a value is an array of this shape, or a number if the shape is empty, and as required."""
    if requirement == "names":
        is_list = isinstance(value, list) and all(type(name) is str for name in value)
        return is_list and all(sizes.setdefault(size, len(value)) == len(value) for size in shape)
    if requirement == "size":
        return type(value) is int and 0 <= value < 2**32 and value == sizes.setdefault(shape[0], value)
    dtype = np.dtype({"whole": np.int64, "codes": np.uint64}.get(requirement, np.float64))
    if not shape and (type(value) is int or (type(value) is float and dtype == np.float64)):
        value = np.array(value, dtype)
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(shape):
        return False
    for size, length in zip(shape, value.shape, strict=True):
        if size != "*" and length != sizes.setdefault(size, length):
            return False
    return bool(np.isfinite(value).all()) and _meets(value, requirement)


def _meets(values: Array, requirement: str) -> bool:
    if requirement in ("codes", "increasing"):
        return bool((values[1:] > values[:-1]).all())
    if requirement == "ascending":
        return bool((values[1:] >= values[:-1]).all())
    if requirement == "positive":
        return bool((values > 0).all())
    return requirement == "finite" or bool((values >= 0).all())


def _check_instance(name: str, value: Any, text: str, *classes: type[Any]) -> None:
    """Raise unless a value is an instance; estimators other than pipelines must be fitted, on a single target."""
    is_right = isinstance(value, classes)
    if is_right and isinstance(value, BaseEstimator) and not isinstance(value, Pipeline):
        is_right = learned_state(value) is not None and not hasattr(value, "estimators_")
    if not is_right:
        raise ModelFileError(f"{name} must be {text}")


def _check_kernel(name: str, value: Any, sizes: Sizes) -> None:
    final = split_pipeline(value, name)[1]
    if not isinstance(final, GraphKernel) or not hasattr(final, "graphs_"):
        raise ModelFileError(f"{name} must be a fitted kernel")
    if len(final.graphs_) != sizes.setdefault("n_graphs", len(final.graphs_)):
        raise ModelFileError(f"{name} must be fitted on as many graphs as the other kernels")


def _check_classes(name: str, value: Any, sizes: Sizes) -> None:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or len(value) < 2:
        raise ModelFileError(f"{name} must be an array of at least two classes")
    if not np.array_equal(np.unique(value), value):
        raise ModelFileError(f"{name} must be sorted and distinct")
    n = len(value)
    sizes |= {"n_classes": n, "n_others": n - 1, "n_pairs": n * (n - 1) // 2, "n_outputs": 1 if n == 2 else n}


def _check_intercepts(name: str, value: Any, sizes: Sizes) -> None:
    """Check the intercepts of a linear model: an array, or a number if scikit-learn has one."""
    _check(name, value, ["finite", "n_outputs"] if isinstance(value, np.ndarray) else ["finite"], sizes)


def _check_records(name: str, value: Any, sizes: Sizes) -> None:  # noqa: ARG001 (all checks have one signature)
    if not isinstance(value, list) or not all(isinstance(record, dict) for record in value):
        raise ModelFileError(f"{name} must be a list of records")
    str(SearchSummary(value, "score"))


def _check_scores(name: str, value: Any, sizes: Sizes) -> None:  # noqa: ARG001
    if not isinstance(value, dict) or not all(type(key) is str and type(value[key]) is float for key in value):
        raise ModelFileError(f"{name} must be a dict of numbers")


# -------------------------------------------------------------------- attributes that depend on each other


def _check_nystroem_can_be_saved(features: Any) -> None:
    final = split_pipeline(features.kernel_)[1]
    if final.learns_from_data:
        raise ModelFileError(
            f"Nystroem cannot be saved with {type(final).__name__} as it is: it has learned from all fitted graphs, of which "
            "only the components are left. Use a kernel that learns nothing from graphs (for gamma, a number), and put "
            "transformers before Nystroem in a pipeline."
        )


def _restore_map(features: Any) -> None:
    """Check the map of mapped rows, and give pivots their kernel again."""
    kernel = features.kernel_
    if (features.map_ is None) == isinstance(kernel, NodePairKernel):
        raise ModelFileError("map_ must be there for kernels on vectors alone")
    if features.map_ is None:
        return
    if features._seed is None or (features.n_features is None) == (features._codes is None):
        raise ModelFileError("_seed must be there, and _codes unless features are hashed")
    array, axis = {Fourier: ("frequencies", 0), PivotMap: ("pivots", 1)}.get(type(features.map_), ("", 0))
    if array and getattr(features.map_, array).shape[axis] != kernel.graphs_.n_attributes:
        raise ModelFileError("map_ must fit the vectors of the fitted graphs")
    if isinstance(features.map_, PivotMap):
        features.map_ = replace(features.map_, node_kernel=vectors_and_kernel(kernel, kernel.graphs_)[1])


def _restore_statistics(statistics: Any) -> None:
    """Give the most frequent values of a GraphStatistics their columns again."""
    statistics._set_values(*statistics._values)
    statistics._name_columns(Graphs.concatenate([]))


def _check_coefficients(model: Any) -> None:
    for block, coefficients in zip(model.blocks_, model.coefs_, strict=True):
        if len(coefficients) != block.n_features_out_:
            raise ModelFileError(f"coefs_ must have a row for each of the {block.n_features_out_} columns of a block")


def _check_features(block: FeatureBlock) -> None:
    if not isinstance(block.kernel_, ExplicitKernel) or block.kernel_.normalize:
        raise ModelFileError("kernel_ of a FeatureBlock must be an explicit kernel that is not normalized")


def _check_codes(coded: CodedValues) -> None:
    if not len(set(coded.values)) == len(coded.values) == len(coded.codes) == len(np.unique(coded.codes)):
        raise ModelFileError("codes and values of a CodedValues must be distinct, and as many")


def _check_knots(scale: TargetScale) -> None:
    if len(scale.targets) < 2:
        raise ModelFileError("a TargetScale must have at least two knots")


def _check_columns(block: ColumnBlock) -> None:
    if block.statistics is None and block.columns != "graph_attributes":
        raise ModelFileError("statistics of a ColumnBlock must be a fitted GraphStatistics")
    if not len(block.ranks) or block.ranks.min(initial=0.0) < 0 or block.ranks.max(initial=1.0) > 1:
        raise ModelFileError("ranks of a ColumnBlock must be from 0 to 1")
    if block.cut_columns.max(initial=0) >= len(block.names) or block.cut_keys.max(initial=0) >= N_CELLS:
        raise ModelFileError("cuts of a ColumnBlock must be of its columns, and their keys must be numbers of cells")
    starts = block.starts
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(block.cut_columns) or (np.diff(starts) < 1).any():
        raise ModelFileError("starts of a ColumnBlock must ascend from 0 to the number of cuts")


def _check_support(model: Any) -> None:
    n_graphs = len(split_pipeline(model.kernel_)[1].graphs_)
    if model.n_support_.sum() != len(model.support_) or model.support_.max(initial=0) >= n_graphs:
        raise ModelFileError("support_ must name fitted graphs, and n_support_ must count them")


def _check_train_codes(model: Any) -> None:
    if model.train_codes_.max(initial=0) >= len(model.classes_):
        raise ModelFileError("train_codes_ must be positions in classes_")


# -------------------------------------------------------------------- pipelines


def check_pipeline(pipeline: Pipeline) -> None:
    """Check the steps of a pipeline, and that the weights of a linear model fit the columns of the step before it."""
    if pipeline.memory is not None or not pipeline.steps:
        raise ModelFileError("a pipeline must have steps, and its memory must be None")
    for name, step in pipeline.steps:
        if not isinstance(name, str) or not (isinstance(step, BaseEstimator) or step in (None, "passthrough")):
            raise ModelFileError(f"a pipeline has a {type(step).__name__} as a step")
    pipeline._validate_names([name for name, _ in pipeline.steps])
    for name, step in pipeline.steps[:-1]:
        if isinstance(step, BaseEstimator) and not hasattr(step, "transform"):
            raise ModelFileError(f"step {name!r} of a pipeline is a {type(step).__name__}, which must be the last step")
    for before, step in pairwise(flat_steps(pipeline)):
        if isinstance(step, LINEAR_MODELS) and hasattr(step, "coef_") and step.n_features_in_ != _n_columns(before):
            raise ModelFileError(
                f"{type(step).__name__} has weights for {step.n_features_in_} features, but the step before it, "
                f"{type(before).__name__}, has {_n_columns(before)}"
            )


def _n_columns(step: Any) -> int | None:
    """Return the number of columns that a step outputs, or None if it is not fitted or outputs no columns."""
    if isinstance(step, GraphKernel):
        return len(step.graphs_) if hasattr(step, "graphs_") else None
    return getattr(step, "n_features_out_", getattr(step, "n_features", None))


# -------------------------------------------------------------------- the attributes of each class

_OBJECTS: dict[str, Callable[[str, Any, Sizes], None]] = {
    "classes": _check_classes,
    "intercepts": _check_intercepts,
    "kernel": _check_kernel,
    "records": _check_records,
    "scores": _check_scores,
}
_INSTANCES: dict[str, Any] = {
    "block": ("a block of rows", Block),
    "dict": ("a dict", dict),
    "flag": ("True or False", bool),
    "list": ("a list", list, tuple),
    "map": ("a map of vectors", Constant, Fourier, PivotMap),
    "pipeline": ("a pipeline", Pipeline),
    "regressor": ("a fitted regressor of one target", TakesSeveralTargets),
    "rows": ("a fitted FeatureMap or Nystroem", FeatureMap, Nystroem),
    "statistics": ("a fitted GraphStatistics", GraphStatistics),
    "str": ("a text", str),
    "target_scale": ("a scale of targets", TargetScale),
}
# The classes of objects that are no estimators, but attributes of these.
RECORDS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (CodedValues, ColumnBlock, Constant, FeatureBlock, Fourier, MapBlock, PivotMap, TargetScale)
}
# A rule is a kind of value and, for numeric arrays, the names of their dimensions; the first array with a name sets its
# size, and "*" is any size. "each": a list of such values; all lists of an estimator have n_entries. "optional": may be
# None or absent.
_BLOCK = {"name": "str", "steps": "optional pipeline"}
_CALIBRATED = {"calibration_": "optional ascending *"}
_COMPARED = {"nearest_similarities_": "ascending *"}
_SEARCHED = {"kernel_": "kernel", "best_params_": "dict", **_CALIBRATED}
_COMBINED = {
    "kernels_": "each kernel",
    "weights_": "nonnegative n_entries",
    "search_results_": "records",
    "loo_scores_": "scores",
    **_CALIBRATED,
    **_COMPARED,
}
_PROCESS = {
    "dual_coef_": "finite n_graphs",
    "intercept_": "finite",
    "log_marginal_likelihood_": "finite",
    "scale_": "nonnegative",
    "_unit": "nonnegative",
    "target_scale_": "optional target_scale",
    "_half_inverse": "finite n_graphs n_graphs",
}
_ROWS = {
    "blocks_": "each block",
    "coefs_": "each finite * n_outputs",
    "weights_": "nonnegative n_entries",
    "search_results_": "records",
    "loo_scores_": "scores",
    **_CALIBRATED,
    "alphas_": "positive n_outputs",
}
_LINEAR_REGRESSOR = {"n_features_in_": "size n_features", "coef_": "finite n_features", "intercept_": "intercepts"}
_LINEAR_CLASSIFIER = {"classes_": "classes", **_LINEAR_REGRESSOR, "coef_": "finite n_outputs n_features"}
_RULES: dict[str, dict[str, str]] = {
    "CodedValues": {"codes": "whole *", "values": "list"},
    "ColumnBlock": {
        **_BLOCK,
        "columns": "str",
        "group": "optional str",
        "statistics": "optional statistics",
        "names": "names n_columns",
        "units": "positive n_columns",
        "usual": "finite n_columns",
        "knots": "ascending n_knots n_columns",
        "ranks": "ascending n_knots n_columns",
        "cut_columns": "whole n_cuts",
        "cut_ranks": "finite n_cuts",
        "cut_keys": "whole n_cuts",
        "starts": "whole *",
    },
    "Constant": {},
    "FeatureBlock": {**_BLOCK, "kernel_": "kernel", "codes": "codes n_columns", "scales": "positive n_columns"},
    "Fourier": {"frequencies": "finite n_attributes n_frequencies"},
    "MapBlock": {**_BLOCK, "transformer": "rows"},
    "PivotMap": {"pivots": "finite n_pivots n_attributes", "mixing": "finite n_pivots n_pivots"},
    "TargetScale": {
        "blend": "nonnegative",
        "targets": "ascending n_knots",
        "scaled": "increasing n_knots",
        "slopes": "positive 2",
    },
    "BinEdgeAttributes": {"thresholds_": "each increasing *", "_names": "optional names"},
    "FeatureMap": {
        "kernel_": "kernel",
        "map_": "optional map",
        "_codes": "optional codes *",
        "_seed": "optional size seed",
    },
    "GraphClassifier": {
        **_COMBINED,
        "classes_": "classes",
        "alphas_": "finite n_entries",
        "dual_coefs_": "each finite n_graphs n_outputs",
        "intercept_": "finite n_outputs",
        "train_codes_": "whole n_graphs",
        "class_supports_": "ascending *",
        "temperature_": "positive",
    },
    "GraphStatistics": {
        "_directed": "flag",
        "_has_nodes": "flag",
        "_has_edges": "flag",
        "_values": "list",
        "_attributes": "names",
        "_edge_attributes": "names",
    },
    "GraphGP": {**_SEARCHED, **_COMPARED, **_PROCESS, "noise_": "positive", "_prior": "nonnegative"},
    "GraphRegressor": {**_COMBINED, **_PROCESS, "noise_": "nonnegative", "_priors": "positive n_entries"},
    "GraphRidge": {
        **_SEARCHED,
        "dual_coef_": "finite n_graphs",
        "intercept_": "finite",
        "best_score_": "finite",
        "target_scale_": "optional target_scale",
    },
    "GraphSVC": {
        **_SEARCHED,
        "classes_": "classes",
        "support_": "whole n_support",
        "n_support_": "whole n_classes",
        "dual_coef_": "finite n_others n_support",
        "intercept_": "finite n_pairs",
        "best_score_": "finite",
        "n_unconverged_": "finite",
    },
    "Nystroem": {
        "kernel_": "kernel",
        "component_indices_": "whole n_graphs",
        "n_features_out_": "size n_graphs",
        "_factor": "finite n_graphs n_graphs",
        "trace_error_": "finite",
    },
    "ScaleAttributes": {
        "scale_": "positive n_attributes",
        "center_": "finite n_attributes",
        "whitening_": "optional finite n_attributes n_attributes",
        "n_attributes_in_": "whole",
        "_names": "optional names",
    },
    "GraphClassifier" + _ON_ROWS: {
        "classes_": "classes",
        **_ROWS,
        "intercept_": "finite n_outputs",
        "temperature_": "positive",
    },
    "GraphRegressor" + _ON_ROWS: {
        **_ROWS,
        "intercept_": "finite",
        "_spread": "nonnegative",
        "target_scale_": "optional target_scale",
    },
    _SEVERAL_TARGETS: {"estimators_": "each regressor"},
    "LinearSVC": _LINEAR_CLASSIFIER,
    "LogisticRegression": _LINEAR_CLASSIFIER,
    "Ridge": _LINEAR_REGRESSOR,
    "SGDClassifier": _LINEAR_CLASSIFIER,
    "SGDRegressor": _LINEAR_REGRESSOR,
}
_LAST_CHECKS: dict[str, Callable[[Any], None]] = {
    "CodedValues": _check_codes,
    "ColumnBlock": _check_columns,
    "FeatureBlock": _check_features,
    "FeatureMap": _restore_map,
    "GraphClassifier": _check_train_codes,
    "GraphClassifier" + _ON_ROWS: _check_coefficients,
    "GraphRegressor" + _ON_ROWS: _check_coefficients,
    "GraphStatistics": _restore_statistics,
    "GraphSVC": _check_support,
    "TargetScale": _check_knots,
}
