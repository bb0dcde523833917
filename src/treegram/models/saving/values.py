"""Plain values as JSON and arrays, and back: numbers, words, lists, tuples, dicts, arrays, and saved estimators.

What JSON has no word for is an object with a single key that says what it is: ``{"array": 3}`` is the array of that number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import ModelFileError

__all__ = ["Saved", "from_json", "to_json"]


@dataclass(frozen=True)
class Saved:
    """An estimator as plain values: its class by name, its parameters, and what it has learned, if it is fitted."""

    name: str
    parameters: dict[str, Any]
    learned: dict[str, Any] | None


def to_json(value: Any, arrays: list[NDArray[Any]], where: str) -> Any:
    """The value as JSON; arrays are appended to the list. ``where`` says in an error whose value it is."""
    value = _without_numpy(value)
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubU" and value.ndim <= 2:
        arrays.append(_widened(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
        return {"objects": [to_json(entry, arrays, where) for entry in value]}
    if isinstance(value, Saved):
        return {"estimator": [value.name, _fields(value.parameters, arrays), _fields(value.learned, arrays)]}
    if isinstance(value, list):
        return [to_json(entry, arrays, where) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [to_json(entry, arrays, where) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[to_json(part, arrays, where) for part in entry] for entry in value.items()]}
    raise ModelFileError(
        f"{where} is {value!r}, which a model file cannot hold: it has plain values, arrays and treegram's own estimators, but no "
        "functions and no other objects. Set it to such a value before the model is saved."
    )


def _without_numpy(value: Any) -> Any:
    """Numbers of numpy as Python's own, and its types of numbers by name."""
    if isinstance(value, np.generic):
        return value.item()
    is_type = isinstance(value, np.dtype) or value is np.float32 or value is np.float64
    return np.dtype(value).name if is_type else value


def _widened(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers in the one type that files have for their kind."""
    kinds = {"f": np.float64, "i": np.int64, "u": np.uint64}
    if array.dtype.kind == "U":
        return array if array.dtype.itemsize else array.astype("<U1")
    return array.astype(kinds.get(array.dtype.kind, array.dtype))


def _fields(values: dict[str, Any] | None, arrays: list[NDArray[Any]]) -> dict[str, Any] | None:
    return None if values is None else {name: to_json(value, arrays, name) for name, value in values.items()}


def from_json(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """The value that JSON stands for."""
    if isinstance(value, list):
        return [from_json(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array" and type(content) is int and 0 <= content < len(arrays):
        return arrays[content]
    if kind == "tuple":
        return tuple(from_json(content, arrays))
    if kind == "objects":
        return _objects(from_json(content, arrays))
    if kind == "dict":
        return {from_json(key, arrays): from_json(entry, arrays) for key, entry in content}
    if kind == "estimator":
        name, parameters, learned = content
        return Saved(name, _values(parameters, arrays), None if learned is None else _values(learned, arrays))
    raise ModelFileError(f"{kind!r} is not a kind of value")


def _values(fields: dict[str, Any], arrays: list[NDArray[Any]]) -> dict[str, Any]:
    return {name: from_json(value, arrays) for name, value in fields.items()}


def _objects(entries: list[Any]) -> NDArray[Any]:
    array = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        if not isinstance(entry, str | int | float):
            raise ModelFileError(f"entry {i} of an array is neither a text nor a number")
        array[i] = entry
    return array
