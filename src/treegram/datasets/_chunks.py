"""Tables of numbers in text files, read a block or a stretch at a time; where in them the graphs of a TU folder end.

What ``treegram.streaming`` needs of files that do not fit into memory. Files are looked through once, to learn at which row
and byte each stretch of graphs starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._types import Ints
from treegram.errors import DatasetError

__all__ = ["edge_borders", "line_starts", "node_borders", "parse_rows", "read_blocks", "read_last"]


BLOCK_BYTES = 4 << 20


def _blocks(path: Path) -> Iterator[bytes]:
    """The file's bytes in blocks of whole lines."""
    rest = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            lines, newline, rest = (rest + block).rpartition(b"\n")
            if newline:
                yield lines + newline
    if rest.strip():
        yield rest


def read_blocks(path: Path, *, whole: bool = True) -> Iterator[NDArray[Any]]:
    """The table's rows, a block at a time."""
    return (parse_rows(block, path, whole=whole) for block in _blocks(path) if block.strip())


def parse_rows(text: bytes, path: Path, *, whole: bool) -> NDArray[Any]:
    """The rows of a piece of a table, numbers apart by blanks or commas."""
    from treegram.datasets.loops.parse import (  # numba is loaded with the first table, not before
        scan_table,
        survey_table,
    )

    data = np.frombuffer(text.removeprefix(b"\xef\xbb\xbf").strip() + b"\n", np.uint8)
    n_lines, n_columns = survey_table(data) if len(data) > 1 else (0, 1)
    values, left = np.empty(n_lines * n_columns), np.empty((n_lines * n_columns, 3), np.int64)
    stop, n_values, n_left = scan_table(data, max(n_columns, 1), values, left) if n_lines else (len(data), 0, 0)
    try:
        for index, start, end in left[:n_left].tolist():
            values[index] = float(data[start:end].tobytes())
    except ValueError:
        stop = 0
    numbers = values[:n_values]
    if stop < len(data) or not np.isfinite(numbers).all() or (whole and (numbers != np.floor(numbers)).any()):
        kind = "whole" if whole else "finite"
        raise DatasetError(
            f"{path}: expected {kind} numbers, {n_columns} in each line; load_tu names the first line that differs."
        )
    rows = numbers.reshape(-1, max(n_columns, 1))
    return rows.astype(np.int64) if whole else rows


def read_last(path: Path) -> int:
    """The last number of a table of one column."""
    return max((int(rows[-1, 0]) for rows in read_blocks(path)), default=0)


def node_borders(path: Path, graph_borders: Ints) -> Ints:
    """How many nodes the graphs before each border have."""
    borders = np.zeros(len(graph_borders), np.int64)
    before = 1
    for rows in read_blocks(path):
        owners = rows[:, 0]
        if owners[0] < before or (np.diff(owners) < 0).any() or owners[-1] > graph_borders[-1]:
            raise DatasetError(
                f"{path}: nodes must come graph by graph, from graph 1 to {graph_borders[-1]}, to be read in chunks; load_tu reads them in any order."
            )
        before = owners[-1]
        borders += np.searchsorted(owners, graph_borders, side="right")
    return borders


def edge_borders(path: Path, node_borders: Ints) -> Ints:
    """How many edges the graphs before each border have."""
    borders = np.zeros(len(node_borders), np.int64)
    before = 0
    for rows in read_blocks(path):
        low, high = (np.searchsorted(node_borders, ends, side="left") for ends in (rows.min(axis=1), rows.max(axis=1)))
        if low[0] < max(before, 1) or (low != high).any() or (np.diff(low) < 0).any() or low[-1] >= len(borders):
            raise DatasetError(
                f"{path}: edges must come graph by graph, between nodes 1 to {node_borders[-1]}, to be read in chunks; load_tu reads them in any order."
            )
        before = low[-1]
        borders += np.searchsorted(low, np.arange(len(borders)), side="right")
    return borders


def line_starts(path: Path, lines: Ints, things: str) -> Ints:
    """The byte at which each of the given lines (ascending, from 0) starts; the last one is the end of the table."""
    starts = np.full(len(lines), path.stat().st_size, np.int64)
    starts[lines == 0] = 0
    n_lines, n_bytes, n_rows = 0, 0, 0
    for block in _blocks(path):
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        inside = (lines > n_lines) & (lines <= n_lines + len(ends))
        starts[inside] = n_bytes + ends[lines[inside] - n_lines - 1] + 1
        if filled := block.rstrip():
            n_rows = n_lines + filled.count(b"\n") + 1
        n_lines, n_bytes = n_lines + len(ends), n_bytes + len(block)
    if n_rows != lines[-1]:
        raise DatasetError(f"{path}: expected {lines[-1]} rows, one for each of the {things}, got {n_rows}.")
    return starts
