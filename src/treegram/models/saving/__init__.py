"""Save fitted models, kernels and pipelines in files without code: arrays, and JSON that names classes of a fixed list.

``container`` reads and writes bytes; ``states`` lists the learned attributes of each class and checks them. A value that JSON
cannot express becomes an object with a single key that names its kind: ``{"array": 3}`` is array number 3, and
``{"estimator": [name, parameters, learned]}`` is an estimator, where ``learned`` is null unless it is fitted.
"""

from __future__ import annotations

import inspect
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from treegram import kernels, models
from treegram._core.errors import ModelFileError
from treegram._core.files import check_writable, replacing
from treegram._core.machine import package_versions
from treegram._core.params import Checked
from treegram.graphs import transforms
from treegram.graphs.molecules import MoleculeGraphs
from treegram.graphs.proteins import ProteinGraphs
from treegram.graphs.tables import TableGraphs
from treegram.kernels.base import KERNELS, GraphKernel
from treegram.models.saving.container import FORMAT, read_container, write_container
from treegram.models.saving.states import LINEAR_MODELS, check_pipeline, learned_state, restore_state
from treegram.models.search import Precomputed

__all__ = ["load_model", "save_model"]

_TRANSFORMERS = [
    "BinEdgeAttributes",
    "CentroidDistance",
    "DropAttributes",
    "NeighborMeans",
    "ScaleAttributes",
    "TruncateLabels",
]
# The classes that a model file may name, in addition to registered kernels, which it calls by their registered names.
_CLASSES: dict[str, type[Any]] = {
    **{name: getattr(kernels, name) for name in kernels.__all__},
    **{name: getattr(models, name) for name in models.__all__},
    **{name: getattr(transforms, name) for name in _TRANSFORMERS},
    **{kind.__name__: kind for kind in (MoleculeGraphs, ProteinGraphs, TableGraphs, *LINEAR_MODELS, Pipeline)},
}
# Limits on parameters: a kernel is fitted when it is loaded, and a file must not make that take years.
_LIMITS = {
    "depth": 100,
    "n_iterations": 100,
    "n_levels": 100,
    "radius": 100,
    "distance": 100,
    "n_steps": 100,
    "n_components": 10**6,
    "max_size": 6,  # of CSM, whose time grows exponentially with it
    "n_samples": 10**6,
    "n_jobs": 1024,
}


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, kernel or pipeline in a file that contains no code.

    Parameters
    ----------
    model : estimator
        Any model, kernel or transformer of treegram, or a pipeline of these, which may end in a linear model of
        scikit-learn. It may be fitted or not.
    path : str or path
        The file to write. An existing file is replaced once the new one is complete, and is unchanged otherwise.

    Raises
    ------
    ModelFileError
        If the model contains something that a file cannot: a function, a splitter, an estimator of another package, or
        a random state that is not a number.

    Notes
    -----
    The file contains the fitted graphs, without their targets: protect it like your data. It does not contain the
    tables of all candidates (``cv_results_``, ``results_``).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from treegram import WL, GraphSVC, load_digits_graphs, load_model, save_model
    >>> graphs, y = load_digits_graphs()
    >>> model = GraphSVC(WL(), C=1, cv=3).fit(graphs[:60], y[:60])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "digits.tgm")
    ...     loaded = load_model(Path(folder) / "digits.tgm")
    >>> bool((loaded.predict(graphs[60:]) == model.predict(graphs[60:])).all())
    True
    """
    target = Path(path)
    check_writable(target)
    arrays: list[NDArray[Any]] = []
    content = {"format": FORMAT, "versions": package_versions(), "model": _estimator_to_json(model, arrays)}
    with replacing(target) as file:
        write_container(file, content, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a file written by :func:`save_model`.

    Nothing in the file is executed: classes come from a fixed list, and every parameter and array is checked like user
    input. Kernels are fitted again on the graphs in the file, and must reproduce their saved values.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The model. With the same versions on the same kind of machine, its predictions equal those of the saved one bit for bit.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written by a newer version, or is inconsistent.
    """
    source = Path(path)
    try:
        content, arrays = read_container(source)
        model = _from_json(content["model"], arrays)
        if not hasattr(model, "get_params"):
            raise ModelFileError(f"it has a {type(model).__name__!r} where an estimator is expected")
        return model
    except OSError:
        raise
    except Exception as error:  # the file is the reason for any error here
        text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")[:500]
        reason = str(error).rstrip(".") if isinstance(error, ModelFileError) else f"it is inconsistent ({text})"
        raise ModelFileError(f"{source} cannot be loaded: {reason}.") from error


# -------------------------------------------------------------------- estimators as JSON


def _to_json(value: Any, arrays: list[NDArray[Any]], what: str) -> Any:
    """Return a value as JSON and append its arrays to the list; errors call the value ``what``."""

    def convert(entry: Any) -> Any:
        return _to_json(entry, arrays, what)

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, str, int) or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubU" and value.ndim <= 2:
        return {"array": _add_array(arrays, value)}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
        return {"objects": [convert(entry) for entry in value]}
    if type(value) is list:
        return [convert(entry) for entry in value]
    if type(value) is tuple:
        return {"tuple": [convert(entry) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[convert(key), convert(entry)] for key, entry in value.items()]}
    if isinstance(value, BaseEstimator):
        return _estimator_to_json(value, arrays)
    raise ModelFileError(
        f"{what} is {value!r}, which a model file cannot hold: it holds plain values, arrays and treegram's own estimators, but no "
        "functions and no other objects. Replace it before saving the model."
    )


def _add_array(arrays: list[NDArray[Any]], array: NDArray[Any]) -> int:
    """Add an array to the list, in the file's dtype for its kind, and return its position.

    Equal arrays are stored once: the kernels of a model share their graphs.
    """
    wide = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64), "b": np.dtype(bool)}
    array = array.astype(wide.get(array.dtype.kind, array.dtype.str if array.dtype.itemsize else "<U1"))
    for i, known in enumerate(arrays):
        if (known.dtype, known.shape) == (array.dtype, array.shape) and known.tobytes() == array.tobytes():
            return i
    arrays.append(array)
    return len(arrays) - 1


def _estimator_to_json(estimator: Any, arrays: list[NDArray[Any]]) -> dict[str, Any]:
    """Return an estimator as JSON and append its arrays to the list."""
    if isinstance(estimator, Precomputed):
        raise ModelFileError(
            "A model with kernel='precomputed' cannot be saved in a model file: it knows neither graphs nor a kernel. Fit it on "
            "graphs with a kernel, or use joblib.dump."
        )
    kind = type(estimator)
    name = kind.__name__ if _CLASSES.get(kind.__name__) is kind else getattr(kind, "name", None)
    if _find_class(name) is not kind:
        is_kernel = isinstance(estimator, GraphKernel)
        advice = (
            "Register it first with treegram.kernels.register_kernel" if is_kernel else "Instead of SVC, use GraphSVC"
        )
        raise ModelFileError(
            f"A {kind.__module__}.{kind.__name__} cannot be saved in a model file, only {', '.join(_CLASSES)} and registered "
            f"kernels. {advice}."
        )
    _check_limits(estimator)
    parameters = estimator.get_params(deep=False)
    if not isinstance(estimator, Pipeline):  # its steps are parameters, and fitted
        parameters = clone(estimator).get_params(deep=False)
    learned = learned_state(estimator)
    state = learned and {key: _to_json(value, arrays, key) for key, value in learned.items()}
    return {"estimator": [name, {key: _to_json(value, arrays, key) for key, value in parameters.items()}, state]}


def _find_class(name: Any) -> type[Any] | None:
    """Return the class of this name in the fixed list, or the kernel registered under it; None if there is neither."""
    if name in _CLASSES:
        return _CLASSES[name]
    return KERNELS[name] if name in KERNELS else None  # noqa: SIM401 (get would not load kernels of other packages)


def _from_json(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Return the value that JSON describes; estimators are checked, and kernels are fitted."""
    if isinstance(value, list):
        return [_from_json(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array" and type(content) is int and 0 <= content < len(arrays):
        return arrays[content]
    if kind == "tuple":
        return tuple(_from_json(content, arrays))
    if kind == "objects":
        return _objects(content)
    if kind == "dict":
        return {_from_json(key, arrays): _from_json(entry, arrays) for key, entry in content}
    if kind == "estimator":
        name, parameters, learned = content
        return _estimator_from_json(name, parameters, learned, arrays)
    raise ModelFileError(f"{kind!r} is not a kind of value")


def _objects(entries: list[Any]) -> NDArray[Any]:
    if not all(isinstance(entry, str | int | float) for entry in entries):
        raise ModelFileError("an array of objects has entries that are neither texts nor numbers")
    return np.array(entries, dtype=object)


def _estimator_from_json(name: Any, parameters: Any, learned: Any, arrays: list[NDArray[Any]]) -> Any:
    kind = _find_class(name)
    if kind is None:
        raise ModelFileError(
            f"it names {name!r}, which is neither an estimator of treegram nor a kernel that is registered (register_kernel)"
        )
    unknown = set(parameters) - set(inspect.signature(kind).parameters)
    if unknown:
        raise ModelFileError(f"{name} has no parameter {min(unknown)!r} in this version of treegram")
    estimator = kind(**{key: _from_json(value, arrays) for key, value in parameters.items()})
    _check_limits(estimator)
    if isinstance(estimator, Pipeline):
        check_pipeline(estimator)
    elif isinstance(estimator, Checked):
        estimator._check_parameters()
    else:
        estimator._validate_params()
    if learned is not None:
        restore_state(estimator, {key: _from_json(value, arrays) for key, value in learned.items()})
    return estimator


def _check_limits(estimator: Any) -> None:
    """Raise if a parameter is larger than files allow."""
    for name, limit in _LIMITS.items():
        value = getattr(estimator, name, None)
        if isinstance(value, int | np.integer) and abs(int(value)) > limit:
            raise ModelFileError(
                f"{name} of {type(estimator).__name__} is {value}; in a model file it may be {limit} at most"
            )
