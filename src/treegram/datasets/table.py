"""Text tables of numbers, read fast and strictly: every error names the file, the line, and the offending text.

A table is read in blocks of whole lines, so that the memory needed beyond the numbers is that of one block. Most numbers
are converted by a compiled loop; numbers with an exponent or with many digits are left to Python's ``float``. Results are
correctly rounded in both cases.

The TU format knows only whole numbers as labels. Line ``i + 1`` of ``SET_node_label_names.txt`` is the label with the number
``i`` in ``SET_node_labels.txt``, as JSON: ``"C"`` is a string, ``2.5`` a number and ``["C", 1]`` a tuple. Edge labels and
classes have files of their own. Other readers of the format ignore these files.
"""

from __future__ import annotations

import decimal
import json
import math
import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.jit import jit
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.graphs.labels import check_label, join_codes, plain_label

__all__ = [
    "LARGEST",
    "Block",
    "LabelNames",
    "check_named",
    "class_names",
    "join_blocks",
    "parse_label",
    "read_blocks",
    "read_label_names",
    "with_label_names",
]

BLOCK_BYTES = 1 << 20
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TOKEN = re.compile(rb"[^ ,\t\r\n]+")
_PYTHON_ONLY = (b"_", b"\v", b"\f")  # float() ignores underscores between digits and other white space around a number
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LARGEST = 2**53  # beyond this, not every whole number has a double
_SHOWN = 60  # characters of a file in a message


class Block(NamedTuple):
    """Consecutive rows of a table; row ``i`` of the table is in line ``i + 1`` of the file."""

    rows: NDArray[Any]
    first_row: int


def read_blocks(
    path: Path, *, whole: bool, n_columns: int | None = None, may_be_empty: bool = False
) -> Iterator[Block]:
    """Yield the rows of a table of finite or whole numbers, a block at a time; at least one block.

    Spaces, tabs or a comma separate the numbers of a line. The last newline may be missing and blank lines may follow
    the last row. Without ``n_columns`` the first line determines the number of columns. 7.0 and 1e3 count as whole numbers.
    """
    first_row, end = 0, None
    for text in _read_lines(path):
        if end is not None:  # a blank line ended the rows: nothing may follow
            _check_blank(text, path, end, n_columns or 1)
            continue
        n_columns = n_columns or max(1, len(_TOKEN.findall(text[: text.index(b"\n")])))
        rows, stop = _parse(text, path, first_row, n_columns, whole=whole)
        if stop < len(text):
            end = first_row + len(rows)
            _check_blank(text[stop:], path, end, n_columns)
        if len(rows):
            yield Block(rows, first_row)
        first_row += len(rows)
    if not first_row:
        if not may_be_empty:
            raise DatasetError(f"{path}: the file is empty; expected {counted(n_columns or 1, 'number')} in each line.")
        yield Block(np.empty((0, n_columns or 1), np.int64 if whole else np.float64), 0)


def join_blocks(blocks: Iterator[Block]) -> NDArray[Any]:
    """Return all rows of a table."""
    return np.concatenate([block.rows for block in blocks])


def _show(text: bytes) -> str:
    """Return a piece of a file for a message: short, quoted, and without terminal control characters."""
    shown = text.decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")


# -------------------------------------------------------------------- from bytes to numbers


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of whole lines; the last newline is added if it is missing."""
    is_first = True
    try:
        with path.open("rb") as file:
            while text := file.read(BLOCK_BYTES) + file.readline():
                if is_first:
                    text, is_first = text.removeprefix(_BYTE_ORDER_MARK), False
                yield text if text.endswith(b"\n") else text + b"\n"
    except OSError as error:
        raise DatasetError(f"{path}: the file cannot be read ({error.strerror or error}).") from None


def _parse(text: bytes, path: Path, first_row: int, n_columns: int, *, whole: bool) -> tuple[NDArray[Any], int]:
    """Return the rows of some lines, and the byte where they end: at the first blank line, or at the end of the text."""
    data = np.frombuffer(text, np.uint8)
    room = min(text.count(b"\n") * n_columns, len(text) // 2 + 1)
    values, skipped = np.empty(room), np.empty((room, 3), dtype=np.int64)
    counts = np.zeros(2, np.int64)
    stop = scan_table(data, n_columns, values, skipped, counts)
    n_values, n_skipped = counts.tolist()
    if n_skipped:
        _convert_skipped(text, values, skipped[:n_skipped], path, first_row, whole=whole)
    if stop < len(text):
        line = text[stop : text.index(b"\n", stop)].rstrip(b"\r")
        if problem := _find_problem(line, n_columns):
            number = first_row + text.count(b"\n", 0, stop) + 1
            raise DatasetError(f"{path}:{number}: {problem}")
    rows = values[:n_values].reshape(-1, n_columns)
    return (_as_integers(rows, text, path, first_row) if whole else rows), stop


def _convert_skipped(text: bytes, values: Floats, skipped: Ints, path: Path, first_row: int, *, whole: bool) -> None:
    """Convert the tokens that the compiled loop has skipped, and put them into ``values``."""
    starts, ends = skipped[:, 1].tolist(), skipped[:, 2].tolist()
    tokens = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    numbers = _to_floats(tokens)
    if any(mark in text for mark in _PYTHON_ONLY) or not np.isfinite(numbers).all():
        for token, start in zip(tokens, starts, strict=True):
            if not _NUMBER.fullmatch(token) or not math.isfinite(float(token)):
                line = first_row + text.count(b"\n", 0, start) + 1
                raise DatasetError(f"{path}:{line}: expected a finite number, got {_show(token)}.")
    values[skipped[:, 0]] = list(map(_to_whole, tokens)) if whole else numbers


def _to_floats(tokens: list[bytes]) -> Floats:
    """Convert tokens; all are nan if one is not a number."""
    try:
        return np.array(list(map(float, tokens)))
    except ValueError:
        return np.full(len(tokens), np.nan)


def _to_whole(token: bytes) -> float:
    """Return the number if the token is exactly a whole number, else nan."""
    number = float(token)
    try:
        is_exact = number.is_integer() and decimal.Decimal(token.decode()) == decimal.Decimal(number)
    except decimal.DecimalException:  # an exponent out of range
        return math.nan
    return number if is_exact else math.nan


def _as_integers(rows: Floats, text: bytes, path: Path, first_row: int) -> Ints:
    is_right = (np.abs(rows) <= LARGEST) & (rows == np.floor(rows))  # False for nan
    if is_right.all():
        return rows.astype(np.int64)
    row = int((~is_right).any(axis=1).argmax())
    line = text.split(b"\n", row + 1)[row]
    token = _TOKEN.findall(line)[int((~is_right[row]).argmax())].decode()
    shown = token if len(token) <= _SHOWN else token[:_SHOWN] + "..."
    raise DatasetError(f"{path}:{first_row + row + 1}: expected a whole number (of at most 2^53 in size), got {shown}.")


def _check_blank(text: bytes, path: Path, row: int, n_columns: int) -> None:
    if text.strip(b" \t\r\n"):
        raise DatasetError(
            f"{path}:{row + 1}: expected {counted(n_columns, 'number')}, got a blank line in the middle of the file."
        )


def _find_problem(line: bytes, n_columns: int) -> str:
    """Describe what is wrong with a line at which the loop stopped; a blank one is not wrong."""
    tokens = _TOKEN.findall(line)
    if not tokens and b"," not in line:
        return ""
    if any(not field.strip(b" \t\r") for field in line.split(b",")):
        return f"expected a number on either side of each comma, got {_show(line)}."
    return f"expected {counted(n_columns, 'number')}, got {len(tokens)}: {_show(line)}."


# -------------------------------------------------------------------- names of numbers

_MAX_WIDTH = 100  # characters of a class name in an array of strings, where every entry takes as much as the longest


class LabelNames(NamedTuple):
    """A file of names, and the name of each number from 0 on."""

    path: Path
    values: tuple[Hashable, ...]


def read_label_names(files: dict[str, Path]) -> dict[str, LabelNames]:
    """Read the names of node labels, edge labels and classes, by the table that they belong to."""
    found: dict[str, LabelNames] = {}
    for kind in ("node_labels", "edge_labels", "graph_labels"):
        path = files.get(f"{kind.removesuffix('s')}_names")
        if path is None:
            continue
        if kind not in files:
            raise DatasetError(f"{path} names the numbers of a table of {kind.replace('_', ' ')}, but there is none.")
        found[kind] = _read_file(path, are_classes=kind == "graph_labels")
    return found


def _read_file(path: Path, *, are_classes: bool) -> LabelNames:
    """Read and check a file of names; classes are strings, labels also numbers and tuples."""
    try:
        lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    except OSError as error:
        raise DatasetError(f"{path}: the file cannot be read ({error.strerror or error}).") from None
    if lines == [b""]:
        raise DatasetError(f"{path}: the file is empty; expected one name per label.")
    first: dict[Hashable, int] = {}
    for number, line in enumerate(lines):
        where = f"{path}:{number + 1}"
        name = parse_label(line, where)
        if are_classes and (not isinstance(name, str) or name.endswith("\0")):  # numpy drops final NULs
            raise DatasetError(f"{where}: expected the name of a class in quotes, got {_show(line)}.")
        if first.setdefault(name, number) != number:
            raise DatasetError(f"{where}: {_show(line)} is also the name in line {first[name] + 1}.")
    return LabelNames(path, tuple(first))


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


def check_named(block: Block, path: Path, names: LabelNames | None) -> None:
    """Raise if a row of a table of labels is not one number that has a name."""
    if names is None:
        return
    rows = block.rows
    if rows.shape[1] != 1:
        raise DatasetError(
            f"{path}:{block.first_row + 1}: expected 1 number, which {names.path.name} names, got {rows.shape[1]}."
        )
    is_wrong = (rows[:, 0] < 0) | (rows[:, 0] >= len(names.values))
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise DatasetError(
            f"{path}:{block.first_row + row + 1}: expected a number from 0 to {len(names.values) - 1}, which "
            f"{names.path.name} names, got {rows[row, 0]}."
        )


def class_names(names: LabelNames) -> NDArray[Any]:
    """Return the names as an array of strings, or of objects if some are long."""
    width = max(len(str(name)) for name in names.values)
    return np.array(names.values, dtype=str if width <= _MAX_WIDTH else object)


def with_label_names(graphs: Graphs, names: dict[str, LabelNames]) -> Graphs:
    """Replace numbers by their names."""
    if not {"node_labels", "edge_labels"} & names.keys():
        return graphs
    labels, values = _apply(graphs.labels, graphs.label_values, names.get("node_labels"))
    edge_labels, edge_values = _apply(graphs.edge_labels, graphs.edge_label_values, names.get("edge_labels"))
    return replace(graphs, labels=labels, label_values=values, edge_labels=edge_labels, edge_label_values=edge_values)


def _apply(
    codes: Ints | None, numbers: tuple[Any, ...], names: LabelNames | None
) -> tuple[Ints | None, tuple[Hashable, ...]]:
    if names is None:
        return codes, numbers
    return join_codes([codes], [tuple(names.values[number] for number in numbers)])


# -------------------------------------------------------------------- the compiled loop

_TAB, _NEWLINE, _RETURN, _SPACE, _COMMA, _MINUS, _POINT, _ZERO, _NINE = 9, 10, 13, 32, 44, 45, 46, 48, 57
_MAX_DIGITS = 18  # always fit into a signed 64-bit integer
_POWERS = np.array([float(10**i) for i in range(_MAX_DIGITS + 1)])


@jit(error_model="numpy")
def scan_table(  # noqa: C901 (one loop over bytes: split into functions on the array it takes twice the time)
    text: NDArray[np.uint8], n_columns: int, values: Floats, skipped: Ints, counts: Ints
) -> int:
    """Read lines of n_columns numbers each, separated by spaces, tabs or one comma, into ``values``, row after row.

    ``text`` ends with a newline. Digits that form an integer of at most 2^53, divided by a power of ten up to 10^22, give
    a correctly rounded double. For every other token ``skipped`` receives a row: index into values, first byte, byte after
    the last. Returns the first byte of a line that is blank or has another number of tokens, or len(text); ``counts``
    receives the number of tokens read and the number of rows of ``skipped``.
    """
    n_values, n_skipped, column, line, start = 0, 0, 0, 0, 0
    mantissa, n_digits, point, is_negative, is_plain, is_open = 0, 0, -1, False, True, False
    for i in range(len(text)):
        byte = int(text[i])
        if _ZERO <= byte <= _NINE:
            mantissa = 10 * mantissa + byte - _ZERO
            n_digits += 1
        elif byte == _POINT:
            is_plain = is_plain and point < 0
            point = n_digits
        elif byte in (_COMMA, _SPACE, _NEWLINE, _TAB, _RETURN):
            if i > start:
                if column == n_columns:
                    break
                if is_plain and 0 < n_digits <= _MAX_DIGITS and mantissa <= LARGEST:
                    value = mantissa / _POWERS[n_digits - point if point >= 0 else 0]
                    values[n_values] = -value if is_negative else value
                else:
                    skipped[n_skipped, 0], skipped[n_skipped, 1], skipped[n_skipped, 2] = n_values, start, i
                    n_skipped += 1
                n_values += 1
                column += 1
                mantissa, n_digits, point, is_negative, is_plain, is_open = 0, 0, -1, False, True, False
            start = i + 1
            if byte == _NEWLINE:
                if column != n_columns or is_open:
                    break
                column, line = 0, start
            elif byte == _COMMA:
                if column == 0 or is_open:
                    break
                is_open = True  # a number must follow
        elif byte == _MINUS and i == start:
            is_negative = True
        else:
            is_plain = False
    counts[0], counts[1] = n_values, n_skipped
    return line
