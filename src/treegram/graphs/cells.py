"""One rule for the cells of every table: how files become columns, what is missing, what is a number.

A cell is missing if it is empty or one of ``MISSING``. A column holds whole numbers, numbers or text; all its cells decide. Names and
labels are text, and only an empty cell is missing there, so that "Na" stays sodium.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.optional import optional_module
from treegram._core.text import counted, suggest
from treegram._core.types import Floats, Ints
from treegram.exceptions import DatasetError

MISSING = frozenset({"", "na", "n/a", "nan", "none", "null", "-", "?"})
DELIMITERS = {".csv": ",", ".tsv": "\t"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DIGITS = re.compile(r"[0-9.e+-]*", re.IGNORECASE)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_LARGEST_WHOLE = 2**53  # from here on, different whole numbers are the same floating-point number
_LARGEST = 1e100  # squares and sums of larger numbers overflow
_MOST_NAMES = 20  # in a message


# -------------------------------------------------------------------- files


@dataclass(frozen=True)
class CellTable:
    """The rows of a table as they were read, by column; ``problems`` says what is wrong with a row, "" for nothing."""

    source: str
    columns: Mapping[str, Sequence[Any]]
    problems: list[str]
    lines: Sequence[int]  # the line of each row
    noun: str = "column"
    marker: str = ":"  # between the source and the line, in messages

    def where(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return f"{self.source}{self.marker}{self.lines[row]}"

    def cells(self, column: str, advice: str = "") -> Sequence[Any]:
        """Return the cells of a column."""
        return self.columns[find_column(self.columns, column, self.source, advice, self.noun)]

    def texts(self, column: str, advice: str = "") -> Sequence[Any]:
        """Return a column of names or labels, in which no cell may be empty."""
        texts = name_texts(self.cells(column, advice))
        if None in texts:
            self._refuse_missing(texts.index(None), column)
        return texts

    def numbers(self, column: str) -> Sequence[Any] | Floats:
        """Return a column of numbers without missing cells, or of vectors, which only Parquet files have."""
        cells = self.cells(column)
        if any(isinstance(cell, list) for cell in cells):
            return cells
        rows, values = convert_cells(cells, column, self.where)
        if len(rows) < len(cells):
            self._refuse_missing(next(row for row, cell in enumerate(cells) if is_missing(cell)), column)
        if values.dtype.kind in "Ub":
            raise DatasetError(f"{self.where(0)}: expected numbers in the column {column!r}; got {cells[0]!r:.60}.")
        return values.astype(np.float64)

    def _refuse_missing(self, row: int, column: str) -> None:
        raise DatasetError(f"{self.where(row)}: no value for {column!r}. Fill or remove missing values first.")


def read_text(path: Path, source: str, data: bytes | None = None) -> str:
    """Read UTF-8 text, with or without a byte order mark, from a file unless its ``data`` are given."""
    try:
        data = path.read_bytes() if data is None else data
        return data.decode("utf-8-sig")
    except OSError as error:
        raise DatasetError(f"{source} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise DatasetError(
            f"{source}:{line}: the file is not UTF-8 text: it has the byte 0x{byte:02x} where a character is expected. Save it as UTF-8."
        ) from error


def read_cells(path: Path) -> CellTable:
    """Read a table (.csv, .tsv, .parquet) whose rows must all be complete."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(path)
    if suffix not in DELIMITERS:
        raise DatasetError(f"{path}: the name of a table must end in .csv, .tsv or .parquet.")
    table = parse_csv(read_text(path, str(path)), str(path), DELIMITERS[suffix])
    for row, problem in enumerate(table.problems):
        if problem:
            raise DatasetError(f"{table.where(row)}: {problem}.")
    return table


def parse_csv(text: str, source: str, delimiter: str) -> CellTable:
    """Split the text of a table into columns, named by the first line; a row with too few or too many fields has a problem."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    flat: list[str] = []  # all cells, row by row: a list for each row would keep the garbage collector busy
    lines, problems = [], []
    try:
        names = [name.strip() for name in next(filter(None, reader), [])]  # blank lines have no fields
        check_names(names, source)
        _check_delimiter(names, source, delimiter)
        width = len(names)
        for row in reader:
            if not row:
                continue
            is_ragged = len(row) != width
            flat.extend([""] * width if is_ragged else row)
            lines.append(reader.line_num)
            problems.append(describe_width(len(row), width) if is_ragged else "")
    except csv.Error as error:
        raise DatasetError(f"{source}:{reader.line_num}: {error}.") from error
    # Spreadsheets add columns without a name.
    columns = {name: list(map(str.strip, flat[i::width])) for i, name in enumerate(names) if name}
    return CellTable(source, columns, problems, lines)


def _check_delimiter(names: list[str], source: str, delimiter: str) -> None:
    for other, word in {";": "semicolons", "\t": "tabs", ",": "commas"}.items():
        if len(names) == 1 and other != delimiter and other in names[0]:
            raise DatasetError(
                f"{source}:1: the file seems to be separated by {word}. Save it as .csv with commas, or as .tsv with tabs."
            )


def check_names(names: list[str], source: str) -> None:
    """Require names of columns, each once."""
    if not any(names):
        raise DatasetError(f"{source}: the file is empty; its first line must name the columns.")
    for name in names:
        if name and names.count(name) > 1:
            raise DatasetError(f"{source}:1: {names.count(name)} columns are called {name!r}; rename all but one.")


def describe_width(n_fields: int, n_columns: int) -> str:
    """Describe a line that does not fit the first line."""
    return f"the line has {counted(n_fields, 'field')}, but the first line names {counted(n_columns, 'column')}"


def _read_parquet(path: Path) -> CellTable:
    parquet = optional_module("pyarrow.parquet", "Parquet files")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())[:200]}.") from None
    check_names(table.column_names, str(path))
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return CellTable(str(path), columns, [""] * len(table), range(len(table)), marker=": row ")


def find_column(names: Iterable[str], wanted: str, source: str, advice: str = "", noun: str = "column") -> str:
    """Return the name of a column as the file spells it; case is ignored unless a column matches exactly."""
    names = list(names)
    matches = [name for name in names if name == wanted] or [name for name in names if name.lower() == wanted.lower()]
    if len(matches) > 1:
        raise DatasetError(
            f"{source}: {' and '.join(map(repr, matches))} both match {wanted!r}; write it as in the file."
        )
    if not matches:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        shown = ", ".join(map(repr, names[:_MOST_NAMES])) + more
        hint = suggest(wanted, names) or f". {advice}".rstrip()
        raise DatasetError(f"{source}: no {noun} is called {wanted!r}; there are {shown or 'none'}{hint}")
    return matches[0]


# -------------------------------------------------------------------- cells


def is_missing(cell: Any) -> bool:
    """Return whether a cell of a file has no value."""
    return cell.lower() in MISSING if isinstance(cell, str) else has_no_value(cell)


def has_no_value(value: Any) -> bool:
    """Return whether a value is None, nan, or a missing value of pandas; text such as "NA" is a value."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def holds_numbers(cells: Sequence[Any]) -> bool:
    """Return whether all cells that have a value are numbers, and some cell has one."""
    if cells and _parse_plain(cells) is not None:
        return True
    present = [cell for cell in cells if not is_missing(cell)]
    return bool(present) and all(_parse_number(cell) is not None for cell in present)


def name_texts(cells: Sequence[Any]) -> list[str | None]:
    """Return names or labels as text; only an empty cell is missing."""
    if set(map(type, cells)) == {str}:  # fast for large tables
        return [cell or None for cell in cells]
    return [None if has_no_value(cell) or cell == "" else str(cell) for cell in cells]


def convert_cells(cells: Sequence[Any], name: str, where: Callable[[int], str]) -> tuple[Ints, NDArray[Any]]:
    """Return the rows that have a value, and the values: whole numbers, numbers, booleans or text.

    ``name`` is the column's, and ``where`` says the place of a row. All cells decide what the column holds; a column of numbers and text
    is refused, and so is a number that could not be computed with.
    """
    rows: Sequence[int] = range(len(cells))
    present, numbers = cells, _parse_plain(cells)
    if numbers is None:
        rows = [row for row, cell in enumerate(cells) if not is_missing(cell)]
        present = [cells[row] for row in rows]
        numbers = [_parse_number(cell) for cell in present]
    ids = np.array(rows, dtype=np.int64)
    if present and all(isinstance(cell, bool) for cell in present):
        return ids, np.array(present)
    if None in numbers:
        _check_texts(present, numbers, name, lambda i: where(rows[i]))
        return ids, np.array([str(cell) for cell in present])
    values: Floats = np.array(numbers, dtype=np.float64)
    is_wrong = ~(np.abs(values) <= _LARGEST)
    is_large = np.abs(values) >= _LARGEST_WHOLE
    for i in np.flatnonzero(is_wrong | is_large).tolist():
        if is_wrong[i]:
            problem = "which is not a finite number" if np.isinf(values[i]) else "which is too large to compute with"
        elif isinstance(present[i], int) or str(present[i]).lstrip("+-").isdigit():
            problem = "a whole number beyond 2**53, where different numbers become the same"
        else:
            continue
        raise DatasetError(f"{where(rows[i])}: the column {name!r} has {present[i]!r:.60}, {problem}.")
    is_whole = not is_large.any() and bool((values == np.round(values)).all())
    return ids, values.astype(np.int64) if is_whole else values


def _parse_plain(cells: Sequence[Any]) -> list[float | None] | None:
    """Return the numbers of a column of texts without missing cells, and None for any other: large tables need a fast way."""
    try:
        return list(map(float, cells)) if _DIGITS.fullmatch("".join(cells)) else None
    except (TypeError, ValueError):
        return None


def _parse_number(cell: Any) -> float | None:
    """Return the number that a cell holds, infinite if it is too large, and None for text."""
    if isinstance(cell, str):
        return float(cell) if _NUMBER.fullmatch(cell) or _INFINITE.fullmatch(cell) else None
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    try:
        return float(cell)
    except OverflowError:
        return math.inf


def _check_texts(cells: Sequence[Any], numbers: Sequence[float | None], name: str, where: Callable[[int], str]) -> None:
    """Refuse a column that mixes numbers and text, or writes numbers with decimal commas."""
    text = next(i for i, number in enumerate(numbers) if number is None)
    number = next((i for i, number in enumerate(numbers) if number is not None), None)
    has_comma = all(
        parsed is not None or _DECIMAL_COMMA.fullmatch(str(cell)) for cell, parsed in zip(cells, numbers, strict=True)
    )
    if has_comma:
        raise DatasetError(
            f"{where(text)}: the column {name!r} has {cells[text]!r:.60}, a number with a decimal comma. Write it with a point."
        )
    if number is not None:
        raise DatasetError(
            f"{where(text)}: the column {name!r} has {cells[text]!r:.60}, but {where(number)} has the number {cells[number]}. A column "
            "must hold only numbers, or only text; leave a cell empty if its value is missing."
        )
