"""The learned attributes of each class: read from a fitted estimator, and checked before a loaded one receives them.

Compiled code trusts lengths, indices and dtypes. A fitted kernel is saved as its parameters and graphs and fitted again when
loaded, so that compiled code receives the same input as after any ``fit``. For all other estimators, `_RULES` defines what
each attribute must be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from treegram.exceptions import ModelFileError
from treegram.graphs.digest import digest_graphs
from treegram.graphs.fields import fields_to_graphs, graphs_to_fields
from treegram.graphs.statistics import CodedValues, GraphStatistics
from treegram.kernels import FeatureMap, Nystroem
from treegram.kernels.base import GraphKernel
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import split_pipeline
from treegram.kernels.node_pairs import NodePairKernel, vectors_and_kernel
from treegram.models.base import SearchSummary, flat_steps
from treegram.models.blocks import BLOCKS, N_CELLS, Block, ColumnBlock, FeatureBlock, MapBlock
from treegram.models.multi_target import TakesSeveralTargets
from treegram.models.targets import TargetScale
from treegram.pairsum.maps import Constant, Fourier, PivotMap

LINEAR_MODELS = (LinearSVC, LogisticRegression, Ridge, SGDClassifier, SGDRegressor)
TOLERANCE = 1e-9  # relative difference of kernel values in the file and now: more than rounding on another machine

Sizes = dict[str, int]  # of one estimator: n_graphs, n_classes, ...


def learned_state(estimator: Any) -> dict[str, Any] | None:
    """Return the learned attributes of an estimator, or None if it is not fitted or never learns."""
    if isinstance(estimator, GraphKernel):
        return _kernel_state(estimator) if hasattr(estimator, "graphs_") else None
    rules = _rules_of(estimator, vars(estimator))
    state = {name: getattr(estimator, name) for name in rules if hasattr(estimator, name)}
    if "blocks_" in state:
        state["blocks_"] = [_block_state(block) for block in state["blocks_"]]
    if "_values" in state:
        state["_values"] = tuple(tuple(coded) for coded in state["_values"])
    if "component_indices_" in state:
        _check_nystroem_can_be_saved(estimator)
    if "map_" in state:
        state["map_"] = _map_state(state["map_"])
    if state.get("target_scale_") is not None:
        state["target_scale_"] = {name: getattr(state["target_scale_"], name) for name in _TARGET_SCALE}
    return state or None


def restore_state(estimator: Any, state: dict[str, Any]) -> None:
    """Set the learned attributes of an estimator; raise if they are inconsistent."""
    if isinstance(estimator, GraphKernel):
        _restore_kernel(estimator, state)
        return
    name = type(estimator).__name__
    rules, last_check = _rules_of(estimator, state), _LAST_CHECKS.get(name)
    if rules is _SEVERAL:
        last_check = None
    elif "blocks_" in rules:
        last_check = _restore_blocks
    if not rules:
        raise ModelFileError(f"a {name} learns nothing, but the file has learned values for it")
    unknown = set(state) - set(rules)
    if unknown:
        raise ModelFileError(f"{name} has no attribute {min(unknown)!r} in this version of treegram")
    sizes: Sizes = {"2": 2, "n_outputs": 1}  # a classifier of more than two classes has an output for each
    for attribute, rule in rules.items():
        _check(attribute, state.get(attribute), rule.split(), sizes)
    if "target_scale_" in rules:
        scale = state.get("target_scale_")
        state["target_scale_"] = None if scale is None else TargetScale(**scale)
    vars(estimator).update(state)
    if last_check is not None:
        last_check(estimator)


def _rules_of(estimator: Any, attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the rules for the learned attributes of an estimator that has these."""
    name = type(estimator).__name__
    if "estimators_" in attributes and isinstance(estimator, TakesSeveralTargets):
        return _SEVERAL
    return _RULES_OF_ROWS[name] if "blocks_" in attributes and name in _RULES_OF_ROWS else _RULES.get(name, {})


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


def _self_kernels(kernel: GraphKernel) -> NDArray[np.float64]:
    normalizing = kernel._self_kernels
    return (kernel._self_sums(kernel._fitted) if normalizing is None else normalizing).reshape(-1)


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
        kernel._self_kernels = saved.reshape(kernel._self_kernels.shape)


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
        if not value and shape[0] in _OBJECTS:
            raise ModelFileError(f"{name} must not be empty")
        for i, entry in enumerate(value):
            _check(f"{name}[{i}]", entry, shape, sizes)
    elif requirement in _OBJECTS:
        _OBJECTS[requirement](name, value, sizes)
    elif not _follows(value, requirement, shape, sizes):
        wanted = f"an array of shape ({', '.join(str(sizes.get(n, n)) for n in shape)}):" if shape else "a value:"
        raise ModelFileError(f"{name} must be {wanted} {requirement}")


def _follows(value: Any, requirement: str, shape: list[str], sizes: Sizes) -> bool:
    """Return True if a value is an array of this shape, or a number if the shape is empty, and as required."""
    if requirement in ("str", "dict"):
        return type(value).__name__ == requirement
    if requirement == "flag":
        return type(value) is bool
    if requirement == "names":
        return isinstance(value, list) and all(type(name) is str for name in value)
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


def _meets(values: NDArray[Any], requirement: str) -> bool:
    if requirement in ("codes", "increasing"):
        return bool((values[1:] > values[:-1]).all())
    if requirement == "ascending":
        return bool((values[1:] >= values[:-1]).all())
    if requirement == "positive":
        return bool((values > 0).all())
    return requirement == "finite" or bool((values >= 0).all())


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


def _check_regressor(name: str, value: Any, sizes: Sizes) -> None:  # noqa: ARG001
    is_fitted = isinstance(value, TakesSeveralTargets) and learned_state(value) is not None
    if not is_fitted or hasattr(value, "estimators_"):
        raise ModelFileError(f"{name} must be a fitted regressor of one target")


def _check_block(name: str, value: Any, sizes: Sizes) -> None:  # noqa: ARG001
    if not isinstance(value, tuple) or not value or value[0] not in BLOCKS:
        raise ModelFileError(f"{name} must be a block of rows")
    if len(value) != 1 + len(fields(BLOCKS[value[0]])):
        raise ModelFileError(f"{name} must have all parts of a {value[0]}")


def _check_values(name: str, value: Any, sizes: Sizes) -> None:  # noqa: ARG001
    pairs = value if isinstance(value, tuple) and len(value) == 3 else [()]
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], list) for pair in pairs):
        raise ModelFileError(f"{name} must be codes and values of labels, of edge labels and of ends of edges")


def _check_target_scale(name: str, value: Any, sizes: Sizes) -> None:
    if not isinstance(value, dict) or value.keys() != _TARGET_SCALE.keys():
        raise ModelFileError(f"{name} must have {', '.join(_TARGET_SCALE)}")
    for attribute, rule in _TARGET_SCALE.items():
        _check(f"{attribute} of {name}", value[attribute], rule.split(), sizes)
    if sizes["n_knots"] < 2:
        raise ModelFileError(f"{name} must have at least two knots")


def _check_map(name: str, value: Any, sizes: Sizes) -> None:
    kind, *arrays = value
    if kind not in _MAPS:
        raise ModelFileError(f"{kind!r} is not a map of vectors")
    for array, (attribute, rule) in zip(arrays, _MAPS[kind].items(), strict=True):
        _check(f"{attribute} of {name}", array, rule.split(), sizes)


# -------------------------------------------------------------------- attributes that depend on each other


def _check_nystroem_can_be_saved(features: Any) -> None:
    final = split_pipeline(features.kernel_)[1]
    if final.learns_from_data:
        raise ModelFileError(
            f"Nystroem cannot be saved with {type(final).__name__} as it is: it has learned from all fitted graphs, of which "
            "only the components are left. Use a kernel that learns nothing from graphs (for gamma, a number), and put "
            "transformers before Nystroem in a pipeline."
        )


def _map_state(vector_map: Any) -> tuple[Any, ...] | None:
    if vector_map is None:
        return None
    name = type(vector_map).__name__
    return (name, *(getattr(vector_map, array) for array in _MAPS[name]))


def _restore_map(features: Any) -> None:
    """Build the map of mapped rows from its name and arrays."""
    kernel = features.kernel_
    if (features.map_ is None) == isinstance(kernel, NodePairKernel):
        raise ModelFileError("map_ must be there for kernels on vectors alone")
    if features.map_ is None:
        return
    if features._seed is None or (features.n_features is None) == (features._codes is None):
        raise ModelFileError("_seed must be there, and _codes unless features are hashed")
    name, *arrays = features.map_
    if name != "Constant" and arrays[0].shape[name == "PivotMap"] != kernel.graphs_.n_attributes:
        raise ModelFileError("map_ must fit the vectors of the fitted graphs")
    features.map_ = Fourier(*arrays) if name == "Fourier" else Constant()
    if name == "PivotMap":
        features.map_ = PivotMap(vectors_and_kernel(kernel, kernel.graphs_)[1], *arrays)


def _restore_statistics(statistics: Any) -> None:
    """Give the most frequent values of a GraphStatistics their columns again."""
    coded = [CodedValues(codes, values) for codes, values in statistics._values]
    for codes, values in coded:
        _check("codes of values", codes, ["whole", "n_values"], {"n_values": len(values)})
        if len(set(values)) < len(values) or len(np.unique(codes)) < len(codes):
            raise ModelFileError("the frequent values of a GraphStatistics must be distinct")
    statistics._set_values(*coded)
    statistics._name_columns()


def _block_state(block: Block) -> tuple[Any, ...]:
    return (type(block).__name__, *(getattr(block, part.name) for part in fields(block)))


def _restore_blocks(model: Any) -> None:
    """Build the blocks of a linear model from their fields, and check that the coefficients fit."""
    model.blocks_ = [_restore_block(*state) for state in model.blocks_]
    for block, coefficients in zip(model.blocks_, model.coefs_, strict=True):
        if len(coefficients) != block.n_features_out_:
            raise ModelFileError(f"coefs_ must have a row for each of the {block.n_features_out_} columns of a block")


def _restore_block(kind: Any, *values: Any) -> Block:
    if kind not in BLOCKS:
        raise ModelFileError(f"{kind!r} is not a kind of block")
    block = BLOCKS[kind](*values)
    sizes: Sizes = {}
    for attribute, rule in _BLOCK_RULES[kind].items():
        _check(f"{attribute} of a block", getattr(block, attribute), rule.split(), sizes)
    if block.steps is not None and not isinstance(block.steps, Pipeline):
        raise ModelFileError("steps of a block must be a pipeline")
    if isinstance(block, FeatureBlock) and (not isinstance(block.kernel_, ExplicitKernel) or block.kernel_.normalize):
        raise ModelFileError("kernel_ of a block must be an explicit kernel that is not normalized")
    if isinstance(block, ColumnBlock):
        _check_columns(block)
    if isinstance(block, MapBlock) and not (
        isinstance(block.transformer, FeatureMap | Nystroem) and hasattr(block.transformer, "kernel_")
    ):
        raise ModelFileError("transformer of a block must be a fitted FeatureMap or Nystroem")
    return block


def _check_columns(block: ColumnBlock) -> None:
    is_fitted = isinstance(block.statistics, GraphStatistics) and hasattr(block.statistics, "feature_names_out_")
    if not (is_fitted or (block.statistics is None and block.columns == "graph_attributes")):
        raise ModelFileError("statistics of a block must be a fitted GraphStatistics")
    if not all(type(name) is str for name in block.names) or len(block.names) != len(block.units):
        raise ModelFileError("names of a block must be texts, one for each column")
    if not len(block.ranks) or block.ranks.min(initial=0.0) < 0 or block.ranks.max(initial=1.0) > 1:
        raise ModelFileError("ranks of a block must be from 0 to 1")
    if block.group is not None and type(block.group) is not str:
        raise ModelFileError("group of a block must be a text or None")
    if block.cut_columns.max(initial=0) >= len(block.names) or block.cut_keys.max(initial=0) >= N_CELLS:
        raise ModelFileError("cuts of a block must be of its columns, and their keys must be numbers of cells")
    starts = block.starts
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(block.cut_columns) or (np.diff(starts) < 1).any():
        raise ModelFileError("starts of a block must ascend from 0 to the number of cuts")


def _check_support(model: Any) -> None:
    n_graphs = len(split_pipeline(model.kernel_)[1].graphs_)
    if model.n_support_.sum() != len(model.support_) or model.support_.max(initial=0) >= n_graphs:
        raise ModelFileError("support_ must name fitted graphs, and n_support_ must count them")


def _check_train_codes(model: Any) -> None:
    if model.train_codes_.max(initial=0) >= len(model.classes_):
        raise ModelFileError("train_codes_ must be positions in classes_")


def _check_noise(model: Any) -> None:
    _check("noise", model.best_params_.get("noise"), ["positive"], {})


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
    "block": _check_block,
    "classes": _check_classes,
    "intercepts": _check_intercepts,
    "kernel": _check_kernel,
    "map": _check_map,
    "records": _check_records,
    "regressor": _check_regressor,
    "scores": _check_scores,
    "target_scale": _check_target_scale,
    "values": _check_values,
}
# A rule is a kind of value and, for numeric arrays, the names of their dimensions; the first array with a name sets its
# size, and "*" is any size. "each": a list of such values; all lists of an estimator have n_entries. "optional": may be
# None or absent.
_MAPS = {
    "Constant": {},
    "Fourier": {"frequencies": "finite n_attributes n_frequencies"},
    "PivotMap": {"pivots": "finite n_pivots n_attributes", "mixing": "finite n_pivots n_pivots"},
}
_TARGET_SCALE = {
    "blend": "nonnegative",
    "targets": "ascending n_knots",
    "scaled": "increasing n_knots",
    "slopes": "positive 2",
}
_CALIBRATED = {"calibration_": "optional ascending *"}
_COMPARED = {"nearest_similarities_": "optional ascending *"}
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
_SEVERAL = {"estimators_": "each regressor"}  # of a regressor of several targets
_LINEAR_REGRESSOR = {"n_features_in_": "size n_features", "coef_": "finite n_features", "intercept_": "intercepts"}
_LINEAR_CLASSIFIER = {"classes_": "classes", **_LINEAR_REGRESSOR, "coef_": "finite n_outputs n_features"}
_RULES: dict[str, dict[str, str]] = {
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
        "class_supports_": "optional ascending *",
        "temperature_": "positive",
    },
    "GraphStatistics": {
        "_directed": "flag",
        "_has_nodes": "flag",
        "_has_edges": "flag",
        "_values": "values",
        "_attributes": "names",
        "_edge_attributes": "names",
    },
    "GraphGP": {**_SEARCHED, **_COMPARED, **_PROCESS, "_prior": "nonnegative"},
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
    "LinearSVC": _LINEAR_CLASSIFIER,
    "LogisticRegression": _LINEAR_CLASSIFIER,
    "Ridge": _LINEAR_REGRESSOR,
    "SGDClassifier": _LINEAR_CLASSIFIER,
    "SGDRegressor": _LINEAR_REGRESSOR,
}
_ROWS = {
    "blocks_": "each block",
    "coefs_": "each finite * n_outputs",
    "weights_": "nonnegative n_entries",
    "search_results_": "records",
    "loo_scores_": "scores",
    **_CALIBRATED,
}
_RULES_OF_ROWS: dict[str, dict[str, str]] = {  # of automatic models of very many graphs
    "GraphClassifier": {
        "classes_": "classes",
        **_ROWS,
        "alphas_": "positive n_outputs",
        "intercept_": "finite n_outputs",
        "temperature_": "positive",
    },
}
_RULES_OF_ROWS["GraphRegressor"] = {
    **_ROWS,
    "alphas_": "positive n_outputs",
    "intercept_": "finite",
    "_spread": "nonnegative",
    "target_scale_": "optional target_scale",
}
_BLOCK_RULES = {
    "FeatureBlock": {"name": "str", "kernel_": "kernel", "codes": "codes n_columns", "scales": "positive n_columns"},
    "ColumnBlock": {
        "name": "str",
        "columns": "str",
        "names": "names",
        "units": "positive n_columns",
        "usual": "finite n_columns",
        "knots": "ascending n_knots n_columns",
        "ranks": "ascending n_knots n_columns",
        "cut_columns": "whole n_cuts",
        "cut_ranks": "finite n_cuts",
        "cut_keys": "whole n_cuts",
        "starts": "whole *",
    },
    "MapBlock": {"name": "str"},
}
_LAST_CHECKS: dict[str, Callable[[Any], None]] = {
    "FeatureMap": _restore_map,
    "GraphClassifier": _check_train_codes,
    "GraphGP": _check_noise,
    "GraphStatistics": _restore_statistics,
    "GraphSVC": _check_support,
}
