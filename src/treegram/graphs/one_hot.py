"""Columns that say a label by which of them is 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.types import Ints

__all__ = ["OneHot", "split_one_hot"]

OneHot: TypeAlias = bool | slice | Sequence[int]


def split_one_hot(rows: NDArray[Any], one_hot: OneHot, where: str) -> tuple[Ints, NDArray[Any] | None]:
    """The label of each row, the number of its 1 among the given columns, and the other columns, if there are any.

    ``one_hot`` is True for all columns, or a slice or the numbers of some. ``where`` begins the message of an error.
    """
    if rows.ndim != 2:
        raise InvalidGraphError(f"{where}: one_hot needs rows of columns; got an array of shape {rows.shape}.")
    n_columns = rows.shape[1]
    try:
        columns = np.arange(n_columns)[slice(None) if one_hot is True else one_hot]
    except IndexError:
        raise InvalidGraphError(f"{where}: one_hot={one_hot!r}, but there are only {n_columns} columns.") from None
    block = rows[:, columns]
    wrong = ((block != 0) & (block != 1)).any(axis=1) | (block.sum(axis=1) != 1)
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidGraphError(
            f"{where}: one_hot columns must have a single 1 and zeros; row {row} has {block[row].tolist()}. "
            "Give the columns of the label, such as one_hot=slice(3, None)."
        )
    rest = np.delete(rows, columns, axis=1)
    return block.argmax(axis=1).astype(np.int64), rest if rest.shape[1] else None
