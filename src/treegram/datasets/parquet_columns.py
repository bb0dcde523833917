"""Columns of lists, one list per graph, as flat arrays of numpy: what may be in them is checked, and errors name the row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.types import Ints

__all__ = ["Column", "Flat"]


@dataclass(frozen=True)
class Flat:
    """Lists of all rows as one array of values; row ``i`` owns ``values[offsets[i] : offsets[i + 1]]``."""

    offsets: Ints
    values: Any  # an array of Arrow, or of numpy

    @property
    def lengths(self) -> Ints:
        """How long each list is."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Column:
    """One column of some consecutive rows; ``first_row`` and ``path`` are for messages."""

    array: Any
    name: str
    path: str
    first_row: int

    def error(self, row: int, text: str) -> DatasetError:
        """An error in a row, counted within these rows."""
        return DatasetError(f"{self.path}: row {self.first_row + row}, column {self.name!r}: {text}")

    # ---------------------------------------------------------------- lists

    def is_nested(self) -> bool:
        """Whether there are lists in the lists."""
        return _is_list(self.array.type) and _is_list(self.array.type.value_type)

    def flat(self) -> Flat:
        """One list per row."""
        if not _is_list(self.array.type):
            raise DatasetError(
                f"{self.path}: column {self.name!r} must hold a list in each row; it holds {self.array.type}."
            )
        self._refuse_nulls(self.array, np.arange(len(self.array) + 1), "a missing list")
        return _flatten(self.array)

    def pairs(self) -> tuple[Ints, NDArray[Any]]:
        """Two lists of whole numbers, of the same length, in each row: this length, and the numbers of all lists."""
        inner, n_each = self._inner()
        if (inner.lengths != 2).any():
            row = int((inner.lengths != 2).argmax())
            raise self.error(
                row, f"expected two lists, the sources and the ends of the edges; got {inner.lengths[row]}."
            )
        lengths = n_each.lengths
        if (lengths[::2] != lengths[1::2]).any():
            row = int((lengths[::2] != lengths[1::2]).argmax())
            raise self.error(
                row, f"expected two lists of one length; got {lengths[2 * row]} and {lengths[2 * row + 1]}."
            )
        return lengths[::2], self._numbers(Flat(n_each.offsets[::2], n_each.values), kinds="iu")

    def rows(self, *, kinds: str = "iufb") -> Flat:
        """Rows of numbers, all of one length, or single numbers, for each node or edge: a Flat of an array with two axes."""
        if not self.is_nested():
            flat = self.flat()
            return Flat(flat.offsets, self._numbers(flat, kinds=kinds)[:, None])
        outer, inner = self._inner()
        width = int(inner.lengths[0]) if len(inner.lengths) else 0
        if (inner.lengths != width).any():
            place = int((inner.lengths != width).argmax())
            raise self.error(
                _owner(outer.offsets, place),
                f"expected lists of {width} numbers, as before; got {inner.lengths[place]}.",
            )
        numbers = self._numbers(Flat(inner.offsets[outer.offsets], inner.values), kinds=kinds)
        return Flat(outer.offsets, numbers.reshape(len(inner.lengths), width))

    def _inner(self) -> tuple[Flat, Flat]:
        """The lists of each row, and the numbers of each of these lists."""
        if not self.is_nested():
            raise DatasetError(
                f"{self.path}: column {self.name!r} must hold lists of lists; it holds {self.array.type}."
            )
        outer = self.flat()
        self._refuse_nulls(outer.values, outer.offsets, "a missing list")
        return outer, _flatten(outer.values)

    # ---------------------------------------------------------------- values

    def _numbers(self, flat: Flat, *, kinds: str) -> NDArray[Any]:
        """The values, if they are numbers of some kinds and none is missing."""
        self._refuse_nulls(flat.values, flat.offsets, "a missing value")
        numbers = np.asarray(flat.values.to_numpy(zero_copy_only=False))
        if numbers.dtype.kind not in kinds and not (not len(numbers) and numbers.dtype == object):
            what = "whole numbers" if kinds == "iu" else "numbers"
            raise DatasetError(f"{self.path}: column {self.name!r} must hold {what}; it holds {flat.values.type}.")
        return numbers if numbers.dtype.kind in kinds else np.empty(0, np.int64)

    def labels(self) -> tuple[Flat, list[Any] | None]:
        """Discrete labels: whole numbers or rows of them, or codes of texts and these texts."""
        if self.is_nested():
            return self.rows(kinds="iub"), None
        flat = self.flat()
        if "string" in str(flat.values.type):
            self._refuse_nulls(flat.values, flat.offsets, "a missing value")
            encoded = flat.values.dictionary_encode() if not hasattr(flat.values, "dictionary") else flat.values
            codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)
            return Flat(flat.offsets, codes), encoded.dictionary.to_pylist()
        return Flat(flat.offsets, self._numbers(flat, kinds="iub")), None

    def scalars(self) -> NDArray[Any]:
        """One value per row, or one row of values: a number, a text, or a list of these, all of one length."""
        if not _is_list(self.array.type):
            self._refuse_nulls(self.array, np.arange(len(self.array) + 1), "a missing value")
            return self._target_values(self.array)
        flat = self.rows_or_flat()
        if len(flat.lengths) and (flat.lengths != flat.lengths[0]).any():
            row = int((flat.lengths != flat.lengths[0]).argmax())
            raise self.error(row, f"expected {flat.lengths[0]} values, as in the row before; got {flat.lengths[row]}.")
        self._refuse_nulls(flat.values, flat.offsets, "a missing value")
        width = int(flat.lengths[0]) if len(flat.lengths) else 1  # numpy finds none for no rows
        values = self._target_values(flat.values).reshape(len(flat.lengths), width)
        return values[:, 0] if values.shape[1] == 1 else values

    def rows_or_flat(self) -> Flat:
        """The lists of each row; a list in a list, as some data sets have for a single target, counts as its content."""
        if not self.is_nested():
            return self.flat()
        outer, inner = self._inner()
        return Flat(inner.offsets[outer.offsets], inner.values)

    def _target_values(self, values: Any) -> NDArray[Any]:
        found = np.asarray(values.to_numpy(zero_copy_only=False))
        if found.dtype != object:
            return found
        if "string" in str(values.type):
            return np.array(found.tolist(), dtype=str) if len(found) else found
        raise DatasetError(f"{self.path}: column {self.name!r} must hold numbers or texts; it holds {values.type}.")

    def _refuse_nulls(self, array: Any, offsets: Ints, what: str) -> None:
        if array.null_count:
            place = int(np.asarray(array.is_null()).argmax())
            raise self.error(_owner(offsets, place), f"there is {what}.")


def _is_list(kind: Any) -> bool:
    return any(word in str(kind).split("<")[0] for word in ("list", "fixed_size_list")) and hasattr(kind, "value_type")


def _flatten(array: Any) -> Flat:
    """The lists of an array without nulls, values cut to those that belong to it."""
    if hasattr(array, "offsets"):
        offsets = np.asarray(array.offsets).astype(np.int64)
        return Flat(offsets - offsets[0], array.values[offsets[0] : offsets[-1]])
    return Flat(np.arange(len(array) + 1) * array.type.list_size, array.flatten())


def _owner(offsets: Ints, place: int) -> int:
    """The row that owns a place."""
    return int(np.searchsorted(offsets, place, side="right")) - 1
