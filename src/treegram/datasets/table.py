"""Text tables of numbers, and files that name the numbers; every error gives the file, the line, and the offending text.

The TU format supports only whole numbers as labels. Line ``i + 1`` of ``SET_node_label_names.txt`` is the label with
the number ``i`` in ``SET_node_labels.txt``, as JSON: ``"C"`` is a string, ``2.5`` a number and ``["C", 1]`` a tuple.
Edge labels and classes have files of their own. Other readers of the format ignore these files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.text import counted
from treegram.graphs.labels import check_label, plain_label

__all__ = ["LARGEST", "LabelNames", "Table", "parse_label", "read_table"]

LARGEST = 2**53 - 1  # up to here, every whole number has its own double
_INTEGER_BYTES = b"0123456789+-, \t\r\n"
_ENCODING = "latin-1"  # turns any byte into a character
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK_LINE = "there is a blank line in the middle of the file."
_SHOWN = 60  # characters of a file in a message


class Table:
    """A table of finite or whole numbers that is read from top to bottom, some rows at a time.

    The first line determines whether commas or white space separate the numbers and, without ``n_columns``, how many there are.
    7.0 and 1e3 count as whole numbers. Blank lines may follow the last row.
    """

    def __init__(self, path: Path, *, whole: bool, n_columns: int | None = None, may_be_empty: bool = False) -> None:
        self.path, self.whole = path, whole
        lines = _read_lines(path)
        first = next(lines, b"").removeprefix(_BYTE_ORDER_MARK)
        self._separator = "," if b"," in first else None
        self.n_columns = n_columns or max(1, len(self._split(first)))
        self.n_read = 0  # row i of the table is in line i + 1 of the file
        self._lines = chain([first], lines) if first.strip() else lines
        if not first.strip():
            if not all(map(bytes.isspace, lines)):
                raise self.error(0, _BLANK_LINE)
            if not may_be_empty:
                raise DatasetError(
                    f"{path}: the file is empty; expected {counted(self.n_columns, 'number')} in each line."
                )

    def read(self, n_rows: int | None = None) -> NDArray[Any]:
        """Return the next rows, by default all that are left; fewer at the end of the table."""
        lines = self._take_lines(n_rows)
        if not lines:
            return np.empty((0, self.n_columns), np.int64 if self.whole else np.float64)
        is_integer = self.whole and not b"".join(lines).translate(None, _INTEGER_BYTES)
        try:
            rows = np.loadtxt(
                lines,
                dtype=np.int64 if is_integer else np.float64,
                delimiter=self._separator,
                comments=None,
                ndmin=2,
                encoding=_ENCODING,
            )
        except ValueError:
            rows = np.full((1, 1), np.nan)
        is_right = np.abs(rows) <= LARGEST if self.whole else np.isfinite(rows)
        if self.whole and not is_integer:
            is_right &= rows == np.floor(rows)
        if rows.shape != (len(lines), self.n_columns) or not is_right.all():
            self._raise(lines)
        self.n_read += len(rows)
        return rows.astype(np.int64) if self.whole else rows

    def count_rows(self) -> int:
        """Skip the rest of the table, and return its number of rows."""
        self.n_read += len(self._take_lines(None))
        return self.n_read

    def error(self, row: int, text: str) -> DatasetError:
        """Return an error that names the line of a row."""
        return DatasetError(f"{self.path}:{row + 1}: {text}")

    def _take_lines(self, n_lines: int | None) -> list[bytes]:
        """Return the next lines; only the end of the file may be blank."""
        lines = list(islice(self._lines, n_lines))
        n_taken = len(lines)
        while lines and lines[-1].isspace():
            lines.pop()
        if len(lines) < n_taken and not all(map(bytes.isspace, self._lines)):
            raise self.error(self.n_read + len(lines), _BLANK_LINE)
        return lines

    def _split(self, line: bytes) -> list[str]:
        return line.decode(_ENCODING).split(self._separator)

    def _raise(self, lines: list[bytes]) -> None:
        """Raise an error about the first invalid line."""
        for row, line in enumerate(lines, self.n_read):
            tokens = self._split(line)
            if line.isspace():
                raise self.error(row, _BLANK_LINE)
            if len(tokens) != self.n_columns:
                expected = counted(self.n_columns, "number")
                raise self.error(row, f"expected {expected}, got {len(tokens)}: {_show(line)}.")
            for token in tokens:
                number = _to_float(token)
                if not math.isfinite(number):
                    raise self.error(row, f"expected a finite number, got {_show(token.encode(_ENCODING))}.")
                if self.whole and (abs(number) > LARGEST or not number.is_integer()):
                    raise self.error(
                        row,
                        f"expected a whole number (of less than 2^53 in size), got {_show(token.encode(_ENCODING))}.",
                    )
        raise self.error(self.n_read, f"expected {'whole' if self.whole else 'finite'} numbers in this line and below.")


def read_table(path: Path, *, whole: bool, n_columns: int | None = None) -> NDArray[Any]:
    """Read a whole table of at least one row."""
    return Table(path, whole=whole, n_columns=n_columns).read()


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file."""
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise DatasetError(f"{path}: the file cannot be read ({error.strerror or error}).") from None


def _to_float(token: str) -> float:
    """Convert a token to a number, or to nan if it is not one."""
    try:
        return math.nan if "_" in token else float(token)
    except ValueError:
        return math.nan


def _show(text: bytes) -> str:
    """Return a piece of a file for a message: short, quoted, and without terminal control characters."""
    shown = text.strip().decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")


# -------------------------------------------------------------------- names of numbers


class LabelNames:
    """The labels or classes that a file of names assigns to the numbers 0, 1, ..."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = list(_read_lines(path))
        if not lines:
            raise DatasetError(f"{path}: the file is empty; expected one name per label.")
        line_of: dict[Hashable, int] = {}
        for number, line in enumerate(lines, 1):
            name = parse_label(line, f"{path}:{number}")
            if line_of.setdefault(name, number) != number:
                raise DatasetError(f"{path}:{number}: {_show(line)} is also the name in line {line_of[name]}.")
        self.values = np.fromiter(line_of, dtype=object, count=len(line_of))

    def apply(self, rows: NDArray[Any], table: Table) -> NDArray[Any]:
        """Return the names of the rows that were last read from a table."""
        if rows.shape[1] != 1:
            raise table.error(0, f"expected 1 number, which {self.path.name} names, got {rows.shape[1]}.")
        numbers = rows[:, 0]
        is_wrong = (numbers < 0) | (numbers >= len(self.values))
        if is_wrong.any():
            i = int(is_wrong.argmax())
            raise table.error(
                table.n_read - len(rows) + i,
                f"expected a number from 0 to {len(self.values) - 1}, which {self.path.name} names, got {numbers[i]}.",
            )
        return self.values[numbers]


def parse_label(line: bytes, where: str) -> Hashable:
    """Parse a label that is written as JSON."""
    try:
        label = plain_label(json.loads(line.decode("utf-8")))
        check_label(label, "label", 0)
    except (ValueError, RecursionError):
        raise DatasetError(
            f'{where}: expected a label as JSON, such as "C", 2.5 or ["C", 1]; got {_show(line)}.'
        ) from None
    return label
