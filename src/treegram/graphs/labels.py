"""Discrete labels: plain Python values outside, integer codes into a sorted tuple of values inside."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.types import Ints


def refuse_masked(values: object, name: str) -> None:
    """Raise if a masked array hides values."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidGraphError(
            f"{name} must have no masked values. Fill them first, or remove the nodes or edges that they belong to."
        )


def plain_label(value: Hashable) -> Hashable:
    """Return a label as plain Python: numpy scalars, enum members, True and 1.0 become the int, float or str they equal."""
    if type(value) in (int, str):  # nearly always
        return value
    if isinstance(value, np.datetime64 | np.timedelta64 | np.ma.core.MaskedConstant):
        return value  # not a label: numpy would convert these to numbers, even missing ones
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)  # not str(value), which a subclass may override
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int.__index__(value) if isinstance(value, int) else int(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, tuple | list | np.ndarray):
        return tuple(plain_label(part) for part in value)
    return value


def check_label(value: Hashable, name: str, position: int) -> None:
    """Raise if a plain value cannot be a label."""
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, tuple):
            check_label(part, name, position)
        elif not isinstance(part, int | str) and not (isinstance(part, float) and np.isfinite(part)):
            raise InvalidGraphError(
                f"{name}[{position}] must be an integer, a string, a finite number or a tuple of these; got {part!r}."
            )


def parse_label(text: str, where: str) -> Hashable:
    """Parse a label that is written as JSON; ``where`` begins the message of an error."""
    try:
        label = plain_label(json.loads(text))
        check_label(label, "label", 0)
    except (ValueError, RecursionError):
        raise DatasetError(
            f'{where}: expected a label as JSON, such as "C", 2.5 or ["C", 1]; got {text[:60]!r}.'
        ) from None
    return label


def encode_labels(
    labels: Sequence[Hashable] | NDArray[Any], length: int, name: str, things: str
) -> tuple[Ints, tuple[Hashable, ...]]:
    """Return the codes and the sorted distinct values of one label per node or edge."""
    refuse_masked(labels, name)
    if isinstance(labels, Mapping | Set):
        raise InvalidGraphError(
            f"{name} must be a sequence with one entry for each of the {things}; got {type(labels).__name__}."
        )
    if len(labels) != length:
        raise InvalidGraphError(f"{name} must have one entry for each of the {length} {things}; got {len(labels)}.")
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iub":
        distinct, codes = np.unique(labels.astype(np.int64) if labels.dtype == bool else labels, return_inverse=True)
        return codes.astype(np.int64), tuple(distinct.tolist())
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.dtype.kind in "iu":
        rows, codes = np.unique(labels, axis=0, return_inverse=True)
        return codes.reshape(-1).astype(np.int64), tuple(tuple(row) for row in rows.tolist())
    plain = [plain_label(value) for value in labels]
    try:
        found = {value: i for i, value in enumerate(plain)}
    except TypeError:  # a label that is not hashable
        for i, value in enumerate(plain):
            check_label(value, name, i)
        raise
    for value, i in found.items():
        check_label(value, name, i)
    values = sorted(found, key=_sort_key)
    code = {value: i for i, value in enumerate(values)}
    return np.array([code[value] for value in plain], dtype=np.int64), tuple(values)


def _sort_key(value: Hashable) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return ("tuple", tuple(_sort_key(part) for part in value))
    return (type(value).__name__, value)


def join_codes(
    codes: list[Ints | None], values: list[tuple[Hashable, ...]]
) -> tuple[Ints | None, tuple[Hashable, ...]]:
    """Join several arrays of codes, each with its own values, into one array with common, sorted values."""
    if codes[0] is None:
        return None, ()
    joined, moved = _common_codes(values)
    return np.concatenate([m[c] for m, c in zip(moved, codes, strict=True) if c is not None]), joined


def same_labels(
    codes: Ints | None,
    values: tuple[Hashable, ...],
    other_codes: Ints | None,
    other_values: tuple[Hashable, ...],
) -> bool:
    """Return whether two arrays of codes mean the same labels; unused values do not matter."""
    if codes is None or other_codes is None:
        return codes is other_codes
    _, (left, right) = _common_codes([values, other_values])
    return np.array_equal(left[codes], right[other_codes])


def _common_codes(values: list[tuple[Hashable, ...]]) -> tuple[tuple[Hashable, ...], list[Ints]]:
    """Return the sorted union of several tuples of values, and the position in it of each value of each tuple."""
    joined = tuple(sorted({value for one in values for value in one}, key=_sort_key))
    position = {value: i for i, value in enumerate(joined)}
    return joined, [np.array([position[value] for value in one], dtype=np.int64) for one in values]
