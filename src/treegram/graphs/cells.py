"""One rule for the cells of every table: how files become columns, what is missing, what is a number.

A cell is missing if it is empty or one of ``MISSING``. A column holds whole numbers, numbers or text; all its cells decide. Names and
labels are text, and only an empty cell is missing there, so that "Na" stays sodium.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from treegram._core.optional import optional_module
from treegram._core.text import counted, suggest
from treegram._core.types import Array, Floats, Ints
from treegram.exceptions import DatasetError, InvalidGraphError, TreegramError
from treegram.graphs.check import as_vectors, refuse_masked

MISSING = frozenset({"", "na", "n/a", "nan", "none", "null", "-", "?"})
DELIMITERS = {".csv": ",", ".tsv": "\t"}
Cells: TypeAlias = Any  # a list or an array with an entry for each row
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
    """The cells of a table as they were read, by column; ``where`` returns the place of a row, for messages.

    ``problems`` says what is wrong with a row of a file, "" for nothing. ``used`` collects the columns that were asked for.
    """

    source: str
    columns: Mapping[str, Cells]
    n_rows: int
    where: Callable[[int], str]
    problems: list[str] = field(default_factory=list)
    noun: str = "column"
    error: type[TreegramError] = DatasetError
    used: set[str] = field(default_factory=set)

    def __contains__(self, column: object) -> bool:
        return str(column).lower() in map(str.lower, self.columns)

    def find(self, column: str, argument: str = "", advice: str = "") -> str:
        """Return the name of a column as the table spells it: case is ignored unless a column matches exactly.

        ``argument`` is what named the column, and ``advice`` what to do if there is none, for messages.
        """
        place = f"{argument}: {self.source}" if argument else self.source
        names = list(self.columns)
        matches = [name for name in names if name.lower() == column.lower()]
        matches = [column] if column in matches else matches
        if len(matches) > 1:
            listing = " and ".join(map(repr, matches))
            raise self.error(f"{place}: {listing} both match {column!r}; write it as in the file.")
        if not matches:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            listing = ", ".join(map(repr, names[:_MOST_NAMES])) + more
            hint = suggest(column, names) or f". {advice}".rstrip()
            raise self.error(f"{place}: no {self.noun} is called {column!r}; there are {listing or 'none'}{hint}")
        return matches[0]

    def cells(self, column: str, argument: str = "", advice: str = "") -> Cells:
        """Return the cells of a column, which a table without rows need not have."""
        if not self.n_rows and column not in self:
            return []
        name = self.find(column, argument, advice)
        self.used.add(name)
        return self.columns[name]

    def labels(self, column: str, argument: str = "", advice: str = "") -> Cells:
        """Return a column of names or labels, in which no cell may be empty."""
        cells = self.cells(column, argument, advice)
        if (row := next(_empty_rows(cells), None)) is not None:
            raise self._no_value(row, column)
        return cells

    def texts(self, column: str, advice: str = "") -> list[str]:
        """Return a column of names or labels as text, in which no cell may be empty."""
        return [str(cell) for cell in self.labels(column, advice=advice)]

    def values(self, column: str, argument: str = "") -> tuple[Ints, Array]:
        """Return the rows that have a value in a column, and the values: whole numbers, numbers, booleans or text."""
        return convert_cells(self.cells(column, argument), column, self.where, self.error)

    def complete_values(self, column: str, argument: str = "") -> Array:
        """Return the values of a column in which no cell may be missing."""
        rows, values = self.values(column, argument)
        if len(rows) < self.n_rows:
            raise self._no_value(min(set(range(self.n_rows)) - set(rows.tolist())), column)
        return values

    def vectors(self, columns: str | Sequence[str], argument: str = "") -> tuple[Floats, list[str]]:
        """Return the vectors that columns of numbers, or of vectors, form together, and a name for each of their numbers."""
        blocks, titles = [np.empty((self.n_rows, 0))], []
        for column in [columns] if isinstance(columns, str) else columns:
            block = self._vectors(column, argument)
            width = block.shape[1]
            blocks.append(block.reshape(self.n_rows, width))
            titles += [column] if width == 1 else [f"{column}[{j}]" for j in range(width)]
        return np.hstack(blocks), titles

    def _vectors(self, column: str, argument: str) -> Floats:
        cells = self.cells(column, argument)
        is_array = isinstance(cells, np.ndarray) and cells.dtype != object
        if cells.ndim > 1 if is_array else any(isinstance(cell, list | tuple | np.ndarray) for cell in cells):
            rows = list(cells)
            try:
                return as_vectors(rows, column, "row")
            except InvalidGraphError:
                shape = _shape(rows[0])
                row = next((i for i, cell in enumerate(rows) if shape is None or _shape(cell) != shape), 0)
                if has_no_value(rows[row]):
                    raise self._no_value(row, column) from None
                problem = f"expected vectors of numbers, all of one length, in the column {column!r}"
                raise self.error(f"{self.where(row)}: {problem}; got {rows[row]!r:.60}.") from None
        values = self.complete_values(column, argument)
        if values.dtype.kind == "U":
            raise self.error(f"{self.where(0)}: expected numbers in the column {column!r}; got {cells[0]!r:.60}.")
        return values.astype(np.float64)[:, None]

    def take(self, rows: Sequence[Any], where: Callable[[int], str]) -> CellTable:
        """Return a table of these rows, at these places; None is a row without values."""
        columns: dict[str, Cells] = {}
        for name, cells in self.columns.items():
            is_array = isinstance(cells, np.ndarray)
            columns[name] = cells[rows] if is_array else [None if row is None else cells[row] for row in rows]
        return replace(self, columns=columns, n_rows=len(rows), where=where, problems=[])

    def _no_value(self, row: int, column: str) -> TreegramError:
        return self.error(f"{self.where(row)}: no value for {column!r}. Fill or remove missing values first.")


def _empty_rows(cells: Cells) -> Iterator[int]:
    """Return the rows of names or labels that are empty."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iubf":
        is_nan = np.isnan(cells).any(axis=tuple(range(1, cells.ndim)))
        return iter(np.flatnonzero(is_nan).tolist())
    return (row for row, cell in enumerate(cells) if (not cell if type(cell) is str else has_no_value(cell)))


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a vector of numbers, and None for anything else."""
    try:
        shape = np.asarray(value, dtype=np.float64).shape
    except (TypeError, ValueError):
        return None
    return shape if len(shape) == 1 else None


def table_of(data: Any, name: str) -> CellTable:
    """Return a table of pandas, polars or Arrow, or a dictionary of columns, whose rows are numbered from 0 in messages."""
    if isinstance(data, CellTable):
        return data
    if not isinstance(data, Mapping) and not (hasattr(data, "columns") and hasattr(data, "__getitem__")):
        raise InvalidGraphError(
            f"{name} must be a table of pandas, polars or Arrow, or a dictionary of columns; got {type(data).__name__}."
        )
    # The ``columns`` of Arrow are no names.
    names = getattr(data, "column_names", None) or getattr(data, "columns", data)
    columns = {str(column): as_column(data[column], str(column)) for column in names}
    lengths = set(map(len, columns.values()))
    if len(lengths) > 1:
        raise InvalidGraphError(f"{name}: columns must be of one length; got {sorted(lengths)}.")
    return CellTable(name, columns, max(lengths, default=0), lambda row: f"{name}: row {row}", error=InvalidGraphError)


def as_column(values: Any, name: str) -> Cells:
    """Return the values of a column as an array, or as a list, so that numpy changes no entry."""
    if hasattr(values, "combine_chunks"):  # Arrow
        return values.to_numpy(zero_copy_only=False)
    plain = values.to_numpy() if hasattr(values, "to_numpy") else values
    refuse_masked(plain, f"the column {name!r}")
    return np.asarray(plain) if isinstance(plain, np.ndarray) else list(plain)


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
        check_header(names, source)
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
    return CellTable(source, columns, len(lines), lambda row: f"{source}:{lines[row]}", problems)


def _check_delimiter(names: list[str], source: str, delimiter: str) -> None:
    for other, word in {";": "semicolons", "\t": "tabs", ",": "commas"}.items():
        if len(names) == 1 and other != delimiter and other in names[0]:
            raise DatasetError(
                f"{source}:1: the file seems to be separated by {word}. Save it as .csv with commas, or as .tsv with tabs."
            )


def check_header(names: list[str], source: str) -> None:
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
    check_header(table.column_names, str(path))
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return CellTable(str(path), columns, len(table), lambda row: f"{path}: row {row}")


# -------------------------------------------------------------------- cells


def is_missing(cell: Any) -> bool:
    """Return whether a cell has no value."""
    return cell.lower() in MISSING if isinstance(cell, str) else has_no_value(cell)


def has_no_value(value: Any) -> bool:
    """Return whether a value is None, nan, or a missing value of numpy or pandas; text such as "NA" is a value."""
    is_nan = isinstance(value, float | np.generic) and value != value
    return value is None or bool(is_nan) or type(value).__name__ in ("NAType", "NaTType")


def holds_numbers(cells: Cells) -> bool:
    """Return whether all cells that have a value are numbers, and some cell has one."""
    numbers = _parse(cells)[1]
    return bool(numbers) and None not in numbers


def name_texts(cells: Cells) -> list[str | None]:
    """Return names or labels as text; only an empty cell is missing."""
    return [None if has_no_value(cell) or cell == "" else str(cell) for cell in cells]


def convert_cells(
    cells: Cells, name: str, where: Callable[[int], str], error: type[TreegramError] = DatasetError
) -> tuple[Ints, Array]:
    """Return the rows that have a value, and the values: whole numbers, numbers, booleans or text.

    ``name`` is the column's, and ``where`` says the place of a row. All cells decide what the column holds; a column of numbers and text
    is refused, and so is a number that could not be computed with.
    """
    rows, numbers = _parse(cells)
    ids = np.array(rows, dtype=np.int64)
    present = [cells[row] for row in rows] if None in numbers else []
    if present and all(isinstance(cell, bool | np.bool_) for cell in present):
        return ids, np.array(present, dtype=bool)
    for row, cell in zip(rows, present, strict=False):
        if isinstance(cell, list | tuple | dict | np.ndarray):
            raise error(f"{where(row)}: expected one value in the column {name!r}; got {cell!r:.60}.")
    if present:
        _check_texts(present, numbers, name, lambda i: where(rows[i]), error)
        return ids, np.array([str(cell) for cell in present])
    values: Floats = np.array(numbers, dtype=np.float64)
    is_wrong = ~(np.abs(values) <= _LARGEST)
    is_large = np.abs(values) >= _LARGEST_WHOLE
    for i in np.flatnonzero(is_wrong | is_large).tolist():
        cell = cells[rows[i]]
        shown = cell.item() if isinstance(cell, np.generic) else cell
        if is_wrong[i]:
            problem = "which is not a finite number" if np.isinf(values[i]) else "which is too large to compute with"
        elif isinstance(shown, int) or str(shown).lstrip("+-").isdigit():
            problem = "a whole number beyond 2**53, where different numbers become the same"
        else:
            continue
        raise error(f"{where(rows[i])}: the column {name!r} has {shown!r:.60}, {problem}.")
    is_whole = not is_large.any() and bool((values == np.round(values)).all())
    return ids, values.astype(np.int64) if is_whole else values


def _parse(cells: Cells) -> tuple[Sequence[int], list[float | None]]:
    """Return the rows that have a value, and the number in each of them, None for anything else."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
        present = np.flatnonzero(~np.isnan(cells))
        return present.tolist(), cells[present].tolist()
    try:  # large tables of texts without missing cells need a fast way
        if len(cells) and _DIGITS.fullmatch("".join(cells)):
            return range(len(cells)), list(map(float, cells))
    except (TypeError, ValueError):
        pass
    rows = [row for row, cell in enumerate(cells) if not is_missing(cell)]
    return rows, [_parse_number(cells[row]) for row in rows]


def _parse_number(cell: Any) -> float | None:
    """Return the number that a cell holds, infinite if it is too large, and None for text and booleans."""
    if isinstance(cell, str):
        return float(cell) if _NUMBER.fullmatch(cell) or _INFINITE.fullmatch(cell) else None
    if isinstance(cell, bool) or not isinstance(cell, Real | Decimal):
        return None
    try:
        return float(cell)
    except OverflowError:
        return math.inf


def _check_texts(
    cells: Cells,
    numbers: Sequence[float | None],
    name: str,
    where: Callable[[int], str],
    error: type[TreegramError],
) -> None:
    """Refuse a column that mixes numbers and text, or writes numbers with decimal commas."""
    text = next(i for i, number in enumerate(numbers) if number is None)
    number = next((i for i, number in enumerate(numbers) if number is not None), None)
    texts = [str(cell) for cell, parsed in zip(cells, numbers, strict=True) if parsed is None]
    if all(map(_DECIMAL_COMMA.fullmatch, texts)):
        raise error(
            f"{where(text)}: the column {name!r} has {cells[text]!r:.60}, a number with a decimal comma. Write it with a point."
        )
    if number is not None:
        raise error(
            f"{where(text)}: the column {name!r} has {cells[text]!r:.60}, but {where(number)} has the number {cells[number]}. A column "
            "must hold only numbers, or only text; leave a cell empty if its value is missing."
        )
