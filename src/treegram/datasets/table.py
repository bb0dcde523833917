"""Text tables of numbers; every error gives the file, the line, and the offending text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.text import counted

__all__ = ["LARGEST", "Table", "read_table"]

LARGEST = 2**53 - 1  # up to here, every whole number has its own double
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
        self._separator = b"," if b"," in first else None
        self.n_columns = n_columns or max(1, len(first.split(self._separator)))
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
        if n_rows is None and not self.n_read:  # much faster than a list of lines
            text = self.path.read_bytes().rstrip()
            rows = self._parse(os.fspath(self.path), "utf-8-sig", text.count(b"\n") + 1) if text else None
            if rows is not None:
                self.n_read, self._lines = len(rows), iter(())
                return rows
        lines = self._take_lines(n_rows)
        rows = self._parse(lines, "latin-1", len(lines))
        if rows is None:
            raise self._find_error(lines)
        self.n_read += len(rows)
        return rows

    def _parse(self, source: Any, encoding: str, n_rows: int) -> NDArray[Any] | None:
        """Return the rows of a file or of lines, or None if they are not a table."""
        rows = np.empty((0, self.n_columns))
        if n_rows:
            delimiter = None if self._separator is None else self._separator.decode()
            try:
                rows = np.loadtxt(source, delimiter=delimiter, comments=None, ndmin=2, encoding=encoding)
            except ValueError:
                return None
        if rows.shape != (n_rows, self.n_columns) or not np.isfinite(rows).all():
            return None
        if not self.whole:
            return rows
        is_whole = (np.abs(rows) <= LARGEST) & (rows == np.floor(rows))
        return rows.astype(np.int64) if is_whole.all() else None

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

    def _find_error(self, lines: list[bytes]) -> DatasetError:
        """Return an error about the first invalid line."""
        for row, line in enumerate(lines, self.n_read):
            tokens = line.split(self._separator)
            if line.isspace():
                return self.error(row, _BLANK_LINE)
            if len(tokens) != self.n_columns:
                expected = counted(self.n_columns, "number")
                return self.error(row, f"expected {expected}, got {len(tokens)}: {_show(line)}.")
            for token in tokens:
                number = _to_float(token)
                if not math.isfinite(number):
                    return self.error(row, f"expected a finite number, got {_show(token)}.")
                if self.whole and (abs(number) > LARGEST or not number.is_integer()):
                    return self.error(row, f"expected a whole number (of less than 2^53 in size), got {_show(token)}.")
        return self.error(
            self.n_read, f"expected {'whole' if self.whole else 'finite'} numbers in this line and below."
        )


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


def _to_float(token: bytes) -> float:
    """Convert a token to a number, or to nan if it is not one."""
    try:
        return math.nan if b"_" in token else float(token)
    except ValueError:
        return math.nan


def _show(text: bytes) -> str:
    """Return a piece of a file for a message: short, quoted, and without terminal control characters."""
    shown = text.strip().decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")
