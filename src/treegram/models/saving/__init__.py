r"""Save fitted models, kernels and pipelines in files without code: arrays, and JSON that names classes of a fixed list.

::

    treegram-model\n         15 bytes that no other file starts with
    length                  8 bytes, little endian: length of the text
    text                    JSON: format, versions, dtype and shape of each array, and the model
    arrays                  the values of one array after another, little endian, without gaps
    SHA-256                 32 bytes: digest of everything before it

Nothing is compressed, so a small file cannot expand into a large one. Nothing has a path, so nothing can be written
elsewhere. The digest detects damage; it does not prove who wrote the file.

In the text, a value that JSON cannot express is an object with a single key that names its kind: ``{"array": 3}`` is
array number 3, ``{"estimator": [name, parameters, learned]}`` is an estimator, where ``learned`` is null unless it is
fitted, and ``{"record": [name, values]}`` is an object that an estimator keeps. ``states`` lists the attributes of each class and
checks them.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import re
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from treegram import kernels, models
from treegram._core.files import check_writable, replacing
from treegram._core.machine import package_versions
from treegram._core.params import Checked
from treegram._core.types import Array
from treegram.exceptions import ModelFileError
from treegram.graphs import transforms
from treegram.graphs.molecules import MoleculeGraphs
from treegram.graphs.proteins import ProteinGraphs
from treegram.graphs.statistics import GraphStatistics
from treegram.graphs.tables import TableGraphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.registry import KERNELS
from treegram.models.saving.states import (
    LINEAR_MODELS,
    RECORDS,
    check_pipeline,
    learned_state,
    record_state,
    restore_record,
    restore_state,
)
from treegram.models.search import Precomputed

__all__ = ["load_model", "save_model"]

FORMAT = 2  # increase it with every change of what a file says: parameters, learned attributes, or their meaning
MAGIC = b"treegram-model\n"
_HEAD = len(MAGIC) + 8
_DIGEST = 32
_NUMBERS = ("<f8", "<i8", "<u8", "|b1")
_MAX_CHARACTERS = 1000  # of one entry in an array of strings
_MAX_COLUMNS = 1000  # of an array without rows, since a small file could claim any number
# Objects parsed from JSON take up to 24 times the memory of the text, so the text must be a small part of a large file.
_TEXT_BYTES, _TEXT_FRACTION = 1 << 20, 8

_TRANSFORMERS = [
    "BinEdgeAttributes",
    "CentroidDistance",
    "DropAttributes",
    "NeighborMeans",
    "ScaleAttributes",
    "SelectLabels",
]
# The classes that a model file may name, in addition to registered kernels, which it calls by their registered names.
_CLASSES: dict[str, type[Any]] = {
    **{name: getattr(kernels, name) for name in kernels.__all__},
    **{name: getattr(models, name) for name in models.__all__},
    **{name: getattr(transforms, name) for name in _TRANSFORMERS},
    **{
        cls.__name__: cls
        for cls in (GraphStatistics, MoleculeGraphs, ProteinGraphs, TableGraphs, *LINEAR_MODELS, Pipeline)
    },
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
    arrays: list[Array] = []
    content = {"format": FORMAT, "versions": package_versions(), "model": _estimator_to_json(model, arrays)}
    with replacing(target) as file:
        _write_file(file, content, arrays)


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
        If the file is not a model file, is damaged, has the format of another version, or is inconsistent.
    """
    source = Path(path)
    try:
        content, arrays = _read_file(source)
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


def _to_json(value: Any, arrays: list[Array], title: str) -> Any:
    """Return a value as JSON and append its arrays to the list; errors begin with its title."""

    def convert(entry: Any) -> Any:
        return _to_json(entry, arrays, title)

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, str, int) or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubU" and value.ndim <= 2:
        return {"array": _add_array(arrays, value)}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
        return {"objects": [convert(entry) for entry in value]}
    if type(value) in (list, tuple):
        entries = [convert(entry) for entry in value]
        return entries if type(value) is list else {"tuple": entries}
    if isinstance(value, dict):
        return {"dict": [[convert(key), convert(entry)] for key, entry in value.items()]}
    if isinstance(value, BaseEstimator):
        return _estimator_to_json(value, arrays)
    if type(value) in RECORDS.values():
        return {"record": [type(value).__name__, convert(record_state(value))]}
    raise ModelFileError(
        f"{title} is {value!r}, which a model file cannot contain: it contains plain values, arrays and treegram's own estimators, but no "
        "functions and no other objects. Replace it before saving the model."
    )


def _add_array(arrays: list[Array], array: Array) -> int:
    """Add an array to the list, in the file's dtype for its kind, and return its position.

    Equal arrays are stored once: the kernels of a model share their graphs.
    """
    wide = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64), "b": np.dtype(bool)}
    array = array.astype(wide.get(array.dtype.kind, array.dtype.str if array.dtype.itemsize else "<U1"))
    for i, earlier in enumerate(arrays):
        if (earlier.dtype, earlier.shape) == (array.dtype, array.shape) and earlier.tobytes() == array.tobytes():
            return i
    arrays.append(array)
    return len(arrays) - 1


def _estimator_to_json(estimator: Any, arrays: list[Array]) -> dict[str, Any]:
    """Return an estimator as JSON and append its arrays to the list."""
    if isinstance(estimator, Precomputed):
        raise ModelFileError(
            "A model with kernel='precomputed' cannot be saved in a model file: it knows neither graphs nor a kernel. Fit it on "
            "graphs with a kernel, or use joblib.dump."
        )
    cls = type(estimator)
    name = cls.__name__ if _CLASSES.get(cls.__name__) is cls else getattr(cls, "name", None)
    if _find_class(name) is not cls:
        is_kernel = isinstance(estimator, GraphKernel)
        advice = (
            "Register it first with treegram.kernels.register_kernel" if is_kernel else "Instead of SVC, use GraphSVC"
        )
        raise ModelFileError(
            f"A {cls.__module__}.{cls.__name__} cannot be saved in a model file, only {', '.join(_CLASSES)} and registered "
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


def _from_json(value: Any, arrays: list[Array]) -> Any:
    """Return the value that JSON describes; estimators are checked, and kernels are fitted."""
    if isinstance(value, list):
        return [_from_json(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((word, content),) = value.items()
    if word == "array" and type(content) is int and 0 <= content < len(arrays):
        return arrays[content]
    if word == "tuple":
        return tuple(_from_json(content, arrays))
    if word == "objects":
        if not all(isinstance(entry, str | int | float) for entry in content):
            raise ModelFileError("an array of objects has entries that are neither texts nor numbers")
        return np.array(content, dtype=object)
    if word == "dict":
        return {_from_json(key, arrays): _from_json(entry, arrays) for key, entry in content}
    if word == "record":
        name, values = content
        return restore_record(name, _from_json(values, arrays))
    if word == "estimator":
        name, parameters, learned = content
        return _estimator_from_json(name, parameters, learned, arrays)
    raise ModelFileError(f"{word!r} is not a kind of value")


def _estimator_from_json(name: Any, parameters: Any, learned: Any, arrays: list[Array]) -> Any:
    cls = _find_class(name)
    if cls is None:
        raise ModelFileError(
            f"it names {name!r}, which is neither an estimator of treegram nor a kernel that is registered (register_kernel)"
        )
    unknown = set(parameters) - set(inspect.signature(cls).parameters)
    if unknown:
        raise ModelFileError(f"{name} has no parameter {min(unknown)!r} in this version of treegram")
    estimator = cls(**{key: _from_json(value, arrays) for key, value in parameters.items()})
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


# -------------------------------------------------------------------- bytes of a file


def _write_file(file: IO[bytes], content: dict[str, Any], arrays: list[Array]) -> None:
    """Write the content, a JSON object, and the arrays that it refers to by index."""
    plain = [np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for array in arrays]
    for array in plain:
        _check_array(array.dtype.str, list(array.shape))
    headers = [[array.dtype.str, list(array.shape)] for array in plain]
    text = json.dumps({**content, "arrays": headers}, allow_nan=False, separators=(",", ":")).encode()
    n_bytes = _HEAD + len(text) + sum(array.nbytes for array in plain) + _DIGEST
    if len(text) > _max_text(n_bytes):
        raise ModelFileError(
            f"The model's labels and parameters make {len(text) / 1e6:.1f} MB of text, too much for a model file. Integer labels take "
            "no text: number the labels."
        )
    digest = hashlib.sha256()
    head = MAGIC + len(text).to_bytes(8, "little") + text
    for block in [memoryview(head), *(array.reshape(-1).view(np.uint8).data for array in plain)]:
        file.write(block)
        digest.update(block)
    file.write(digest.digest())


def _read_file(path: Path) -> tuple[dict[str, Any], list[Array]]:
    """Return the content and the arrays of a file; raise if anything in it was changed."""
    if not path.is_file():  # opening a pipe would wait for a writer
        path.stat()  # raises the usual error if the file does not exist
        raise ModelFileError("it is not a regular file")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ModelFileError("it is not a treegram model file")
        data = memoryview(MAGIC + file.read())
    end = len(data) - _DIGEST
    if end < _HEAD or hashlib.sha256(data[:end]).digest() != data[end:]:
        raise ModelFileError("it is damaged or incomplete: its digest does not match. Copy or save it again")
    start = _HEAD + int.from_bytes(data[len(MAGIC) : _HEAD], "little")
    if start > min(end, _HEAD + _max_text(len(data))):
        raise ModelFileError("its text is longer than allowed")
    content = json.loads(bytes(data[_HEAD:start]), parse_constant=_refuse_constant)
    number = content["format"] if isinstance(content, dict) else None
    if type(number) is not int or number < 1:
        raise ModelFileError("it does not name its format")
    if number != FORMAT:
        advice = "Update treegram" if number > FORMAT else "Fit the model again with this version, and save it"
        raise ModelFileError(f"it has format {number}, but this version of treegram reads format {FORMAT}. {advice}")
    return content, _read_arrays(data[start:end], content["arrays"])


def _max_text(n_bytes: int) -> int:
    return _TEXT_BYTES + n_bytes // _TEXT_FRACTION


def _refuse_constant(word: str) -> None:
    raise ModelFileError(f"its text has the number {word}, which is not finite")


def _check_array(name: str, shape: list[Any]) -> None:
    is_text = re.fullmatch("<U[1-9][0-9]{0,3}", name) is not None and int(name[2:]) <= _MAX_CHARACTERS
    if name not in _NUMBERS and not is_text:
        raise ModelFileError(f"an array of dtype {name!r} cannot be in a model file")
    is_valid = len(shape) <= 2 and all(type(n) is int and 0 <= n < 2**48 for n in shape)
    if not is_valid or (shape[:1] == [0] and shape[-1] > _MAX_COLUMNS):
        raise ModelFileError(f"an array of the shape {shape} cannot be in a model file")


def _read_arrays(data: memoryview, headers: list[Any]) -> list[Array]:
    """Return the arrays with these dtypes and shapes, which must fill the data exactly."""
    arrays: list[Array] = []
    start = 0
    for name, shape in headers:
        _check_array(name, shape)
        dtype = np.dtype(name)
        end = start + dtype.itemsize * math.prod(shape)
        if end > len(data):
            raise ModelFileError(f"array {len(arrays)} is longer than the file")
        block = data[start:end]
        if name == "|b1" and bytes(block).strip(b"\0\1"):
            raise ModelFileError("an array of True and False has other values")
        if dtype.kind == "U" and (np.frombuffer(block, "<u4") > 0x10FFFF).any():
            raise ModelFileError("an array of texts has characters that do not exist")
        values = np.frombuffer(block, dtype).reshape(shape)
        arrays.append(values.astype(dtype.newbyteorder("=")))  # an aligned copy, independent of the file
        start = end
    if start != len(data):
        raise ModelFileError(f"{len(data) - start} bytes are left over")
    return arrays
