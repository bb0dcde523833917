"""Text tables of numbers, read fast and strictly: every error names the file, the line, and what stands there.

A table is read in blocks of whole lines, so that the memory needed beside the numbers is that of a block. ``load_tu`` puts
the blocks together, ``TUChunks`` remembers where the rows of each chunk begin and reads them again; both meet the same
checks with the same messages.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.text import counted
from treegram._core.types import Floats, Ints

__all__ = ["Block", "join_blocks", "read_blocks", "read_span", "show"]

BLOCK_BYTES = 1 << 20
_MAX_LINE = 1 << 26  # bytes; a vector of two million numbers
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TOKEN = re.compile(rb"[^ ,\t\r\n]+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LARGEST = 2**53  # beyond, double precision skips whole numbers
_SHOWN = 60


class Block(NamedTuple):
    """Some consecutive rows of a table: the numbers, the number of the first row, its byte in the file, and the text."""

    rows: NDArray[Any]
    first_row: int
    offset: int
    text: NDArray[np.uint8]

    def starts(self) -> Ints:
        """The byte of the file at which each row starts, and the one after the last row."""
        ends = np.flatnonzero(self.text == ord("\n"))[: len(self.rows)] + 1
        return self.offset + np.concatenate([[0], ends])


def read_blocks(
    path: Path, *, whole: bool, n_columns: int | None = None, may_be_empty: bool = False
) -> Iterator[Block]:
    """Give the rows of a table of finite or whole numbers, a block at a time; at least one block.

    Blanks, tabs or a comma separate the numbers of a line. The last newline may be missing and blank lines may follow
    the last row; row ``i`` stands in line ``i + 1``. Without ``n_columns`` the first line tells the number of columns.
    7.0 and 1e3 are whole numbers too.
    """
    first_row, end = 0, None
    for offset, text in _read_lines(path):
        if end is not None:  # rows have ended with a blank line: nothing may follow
            _check_blank(text, path, end, n_columns or 1)
            continue
        n_columns = n_columns or _count_columns(text)
        rows, stop = _parse(text, path, first_row, n_columns, whole=whole)
        if stop < len(text):
            end = first_row + len(rows)
            _check_blank(text[stop:], path, end, n_columns)
        if len(rows):
            yield Block(rows, first_row, offset, text)
        first_row += len(rows)
    if not first_row:
        if not may_be_empty:
            raise DatasetError(f"{path}: the file is empty; expected {counted(n_columns or 1, 'number')} in each line.")
        yield Block(_no_rows(n_columns or 1, whole=whole), 0, 0, np.empty(0, np.uint8))


def join_blocks(blocks: Iterator[Block]) -> NDArray[Any]:
    """All rows of a table."""
    parts = [block.rows for block in blocks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_span(
    path: Path, span: tuple[int, int], shape: tuple[int, int], first_row: int, *, whole: bool
) -> NDArray[Any]:
    """Read again the rows between two bytes of a table that has been read before."""
    if not shape[0]:
        return _no_rows(shape[1], whole=whole)
    start, stop = span
    try:
        with path.open("rb") as file:
            file.seek(start)
            text = file.read(stop - start)
    except OSError as error:
        raise _unreadable(path, error) from None
    data = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
    rows, end = _parse(data, path, first_row, shape[1], whole=whole)
    if len(rows) != shape[0] or end < len(data):
        raise DatasetError(
            f"{path}:{first_row + 1}: the file has changed since it was first read; expected {shape[0]} lines here, "
            f"got {len(rows)}. Open it anew."
        )
    return rows


def _no_rows(n_columns: int, *, whole: bool) -> NDArray[Any]:
    return np.empty((0, n_columns), np.int64 if whole else np.float64)


# -------------------------------------------------------------------- bytes


def _read_lines(path: Path) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """The bytes of the file in blocks of whole lines, each with its place; a last newline is added, a mark left out."""
    offset, rest, size = 0, b"", BLOCK_BYTES
    try:
        with path.open("rb") as file:
            while block := file.read(size):
                lines, newline, after = block.rpartition(b"\n")
                if not newline:
                    rest += block
                    size = max(BLOCK_BYTES, len(rest))  # twice as much each time: a long line is not copied often
                    if len(rest) > _MAX_LINE:
                        raise DatasetError(
                            f"{path}: a line is longer than {_MAX_LINE} bytes; this is not a table of numbers."
                        )
                    continue
                text, rest, size = rest + lines + newline, after, BLOCK_BYTES
                yield _without_mark(offset, text)
                offset += len(text)
    except OSError as error:
        raise _unreadable(path, error) from None
    if rest:
        yield _without_mark(offset, rest + b"\n")


def _without_mark(offset: int, text: bytes) -> tuple[int, NDArray[np.uint8]]:
    data = np.frombuffer(text, np.uint8)
    if offset == 0 and text.startswith(_BYTE_ORDER_MARK):
        return len(_BYTE_ORDER_MARK), data[len(_BYTE_ORDER_MARK) :]
    return offset, data


def _unreadable(path: Path, error: OSError) -> DatasetError:
    return DatasetError(f"{path}: the file cannot be read ({error.strerror or error}).")


# -------------------------------------------------------------------- numbers


def _count_columns(text: NDArray[np.uint8]) -> int:
    first_line = text[: int((text == ord("\n")).argmax())]
    return max(1, len(_TOKEN.findall(first_line.tobytes())))


def _parse(
    text: NDArray[np.uint8], path: Path, first_row: int, n_columns: int, *, whole: bool
) -> tuple[NDArray[Any], int]:
    """The rows of some whole lines, and the byte where they end: the first blank line's, or the end of the text."""
    from treegram.datasets.loops.parse import read_long, scan_table  # numba is loaded with the first table, not before

    room = min(int(np.count_nonzero(text == ord("\n"))) * n_columns, len(text) // 2 + 1)
    values, left = np.empty(room), np.empty((room, 3), dtype=np.int64)
    found = np.zeros(2, np.int64)
    stop = scan_table(text, n_columns, values, left, found)
    n_values, n_left = found.tolist()
    if n_left:
        n_left = read_long(text, whole, values, left, n_left)
    for index, start, end in left[:n_left].tolist():
        token = text[start:end].tobytes()
        number = float(token) if _NUMBER.fullmatch(token) else math.nan
        if not math.isfinite(number):
            line = first_row + _count_lines(text[:start]) + 1
            raise DatasetError(f"{path}:{line}: expected a finite number, got {show(token)}.")
        values[index] = _exactly(token, number) if whole else number
    if stop < len(text):
        line_end = stop + int((text[stop:] == ord("\n")).argmax())
        if complaint := _complaint(text[stop:line_end].tobytes().rstrip(b"\r"), n_columns):
            raise DatasetError(f"{path}:{first_row + _count_lines(text[:stop]) + 1}: {complaint}")
    rows = values[:n_values].reshape(-1, n_columns)
    return (_as_integers(rows, text, path, first_row) if whole else rows), stop


def _exactly(token: bytes, number: float) -> float:
    """The number if the token stands for exactly this whole number, else nan."""
    try:
        return (
            number if decimal.Decimal(token.decode()) == decimal.Decimal(number) and number.is_integer() else math.nan
        )
    except decimal.DecimalException:  # an exponent beyond all bounds
        return math.nan


def _as_integers(rows: Floats, text: NDArray[np.uint8], path: Path, first_row: int) -> Ints:
    if not rows.size or max(rows.max(), -rows.min()) <= _LARGEST:  # not so if there is a nan
        integers = rows.astype(np.int64)
        if (integers == rows).all():
            return integers
    is_right = (np.abs(rows) <= _LARGEST) & (rows == np.floor(rows))
    row = int((~is_right).any(axis=1).argmax())
    line = text.tobytes().split(b"\n", row + 1)[row]
    token = _TOKEN.findall(line)[int((~is_right[row]).argmax())].decode()
    shown = token if len(token) <= _SHOWN else token[:_SHOWN] + "..."
    raise DatasetError(f"{path}:{first_row + row + 1}: expected a whole number (of at most 2^53 in size), got {shown}.")


# -------------------------------------------------------------------- what is wrong


def _check_blank(text: NDArray[np.uint8], path: Path, row: int, n_columns: int) -> None:
    if text.tobytes().strip(b" \t\r\n"):
        raise DatasetError(
            f"{path}:{row + 1}: expected {counted(n_columns, 'number')}, got a blank line in the middle of the file."
        )


def _complaint(line: bytes, n_columns: int) -> str:
    """What is wrong with a line that has not the right number of tokens; nothing is with a blank one."""
    tokens = _TOKEN.findall(line)
    if not tokens and b"," not in line:
        return ""
    if any(not field.strip(b" \t\r") for field in line.split(b",")):
        return f"expected a number on either side of each comma, got {show(line)}."
    return f"expected {counted(n_columns, 'number')}, got {len(tokens)}: {show(line)}."


def _count_lines(text: NDArray[np.uint8]) -> int:
    return int(np.count_nonzero(text == ord("\n")))


def show(piece: bytes) -> str:
    """A piece of a file for a message: short, quoted, and without anything that a terminal would obey."""
    shown = piece.decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")
