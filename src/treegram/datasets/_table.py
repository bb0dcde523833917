"""Text tables of numbers, read fast and strictly: every error names the file, the line, and what stands there."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treegram._types import Floats, Ints
from treegram.errors import DatasetError

__all__ = ["read_integers", "read_numbers"]


_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LARGEST = 2**53  # beyond, double precision skips whole numbers
_SHOWN = 60


def read_numbers(path: Path, n_columns: int | None = None) -> Floats:
    """Read a table of finite numbers.

    Blanks, tabs or a comma separate the numbers of a line. The last newline may be missing and blank lines may follow
    the last row; row ``i`` stands in line ``i + 1``. Without ``n_columns`` the first line tells the number of columns.
    """
    from treegram.datasets.loops.parse import (  # numba is loaded with the first table, not before
        scan_table,
        survey_table,
    )

    text = _read_bytes(path)
    n_lines, n_first = survey_table(text)
    n_columns = n_columns or max(1, n_first)
    room = min(n_lines * n_columns, len(text) // 2 + 1)
    values, left = np.empty(room), np.empty((room, 3), dtype=np.int64)
    stop, n_values, n_left = scan_table(text, n_columns, values, left)
    data = text.tobytes() if n_left else b""
    for index, start, end in left[:n_left].tolist():
        token = data[start:end]
        values[index] = float(token) if _NUMBER.fullmatch(token) else np.nan
        if not math.isfinite(values[index]):
            raise DatasetError(f"{path}:{_line_number(text, start)}: expected a finite number, got {_show(token)}.")
    rest = text[stop:].tobytes()
    if rest.strip():
        line = rest[: rest.index(b"\n")].rstrip(b"\r")
        raise DatasetError(f"{path}:{_line_number(text, stop)}: {_complaint(line, n_columns)}")
    if not n_values:
        raise DatasetError(f"{path}: the file is empty; expected {_count(n_columns)} in each line.")
    return values[:n_values].reshape(-1, n_columns)


def read_integers(path: Path, n_columns: int | None = None) -> Ints:
    """Read a table of whole numbers, as :func:`read_numbers` does; 7.0 and 1e3 are whole numbers too."""
    values = read_numbers(path, n_columns)
    if np.abs(values).max() <= _LARGEST:
        integers = values.astype(np.int64)
        wrong = integers != values
        if not wrong.any():
            return integers
    else:
        wrong = (np.abs(values) > _LARGEST) | (values != np.floor(values))
    row = int(wrong.any(axis=1).argmax())
    got = float(values[row][wrong[row]][0])
    raise DatasetError(f"{path}:{row + 1}: expected a whole number (of at most 2^53 in size), got {got!r}.")


def _read_bytes(path: Path) -> NDArray[np.uint8]:
    """All bytes of the file and a final newline, without a mark of the encoding."""
    try:
        size = path.stat().st_size
        text = np.empty(size + 1, dtype=np.uint8)
        with path.open("rb") as file:
            size = file.readinto(text.data[:size])
    except OSError as error:
        raise DatasetError(f"{path}: the file cannot be read ({error.strerror}).") from None
    text[size] = ord("\n")
    mark = len(_BYTE_ORDER_MARK) if text[:3].tobytes() == _BYTE_ORDER_MARK else 0
    return text[mark : size + 1]


def _complaint(line: bytes, n_columns: int) -> str:
    """What is wrong with a line that has not the right number of tokens."""
    tokens = line.replace(b",", b" ").split()
    if not tokens and b"," not in line:
        return f"expected {_count(n_columns)}, got a blank line in the middle of the file."
    if any(not field.strip() for field in line.split(b",")):
        return f"expected a number on either side of each comma, got {_show(line)}."
    return f"expected {_count(n_columns)}, got {len(tokens)}: {_show(line)}."


def _line_number(text: NDArray[np.uint8], position: int) -> int:
    return int(np.count_nonzero(text[:position] == ord("\n"))) + 1


def _count(n_columns: int) -> str:
    return f"{n_columns} number{'' if n_columns == 1 else 's'}"


def _show(piece: bytes) -> str:
    shown = piece.decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")
