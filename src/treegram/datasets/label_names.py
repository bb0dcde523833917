"""Names of the numbers in a table of labels: the companion files by which labels that are no numbers keep their values.

The TU format knows whole numbers as labels. ``SET_node_label_names.txt`` says what the numbers of ``SET_node_labels.txt``
stand for (``edge_label``, ``graph_label`` alike): line ``i + 1`` is the label with the number ``i``, as JSON, so that
``"C"`` is a string, ``2.5`` a number and ``["C", 1]`` a tuple. Other readers of the format look for the files that they
know, and take no notice of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.types import Ints
from treegram.datasets.table import Block, show
from treegram.graphs.check import join_codes, plain_label

__all__ = ["Names", "apply_names", "check_named", "class_names", "name_lines", "parse_name", "read_names"]

_MAX_BYTES = 1 << 26
_MAX_WIDTH = 100  # characters
_MAX_DEPTH = 16  # of tuples in tuples


class Names(NamedTuple):
    """The file of the names, and the name of each number from 0 on."""

    path: Path
    values: tuple[Hashable, ...]


def name_lines(values: Sequence[Hashable]) -> list[str]:
    """The lines of the file for some labels."""
    return [json.dumps(value) for value in values]


def read_names(path: Path, *, are_classes: bool) -> Names:
    """Read and check a file of names; classes are strings, labels also numbers and tuples."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DatasetError(f"{path}: the file is larger than {_MAX_BYTES} bytes; expected one name per label.")
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DatasetError(f"{path}: the file cannot be read ({error.strerror or error}).") from None
    if not lines[-1].strip():
        lines.pop()
    first: dict[Hashable, int] = {}
    for number, line in enumerate(lines):
        name = parse_name(line, f"{path}:{number + 1}", are_classes=are_classes)
        if first.setdefault(name, number) != number:
            raise DatasetError(f"{path}:{number + 1}: {show(line)} is also the name in line {first[name] + 1}.")
    if not first:
        raise DatasetError(f"{path}: the file is empty; expected one name per label.")
    return Names(path, tuple(first))


def check_named(block: Block, path: Path, names: Names | None) -> None:
    """Raise if a row of a table of labels is not one number that has a name."""
    if names is None:
        return
    rows = block.rows
    if rows.shape[1] != 1:
        raise DatasetError(
            f"{path}:{block.first_row + 1}: expected 1 number, which {names.path.name} names, got {rows.shape[1]}."
        )
    wrong = (rows[:, 0] < 0) | (rows[:, 0] >= len(names.values))
    if wrong.any():
        row = int(wrong.argmax())
        raise DatasetError(
            f"{path}:{block.first_row + row + 1}: expected a number from 0 to {len(names.values) - 1}, which "
            f"{names.path.name} names, got {rows[row, 0]}."
        )


def class_names(names: Names) -> NDArray[Any]:
    """The names as an array; that of numpy's strings is as wide as the longest one for every graph, so long ones are objects."""
    width = max(len(str(name)) for name in names.values)
    return np.array(names.values, dtype=str if width <= _MAX_WIDTH else object)


def apply_names(
    codes: Ints | None, numbers: tuple[Any, ...], names: Names | None
) -> tuple[Ints | None, tuple[Hashable, ...]]:
    """Codes and values of labels whose values so far are the numbers that the file names."""
    if names is None:
        return codes, numbers
    return join_codes([codes], [tuple(names.values[number] for number in numbers)])


def parse_name(line: bytes, where: str, *, are_classes: bool) -> Hashable:
    """The label that a line stands for."""
    try:
        name = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError
        raise DatasetError(f'{where}: expected a name as JSON, such as "C", got {show(line)}.') from None
    if are_classes and (not isinstance(name, str) or name.endswith("\0")):  # numpy drops final NULs
        raise DatasetError(f"{where}: expected the name of a class in quotes, got {show(line)}.")
    if not _is_label(name):
        raise DatasetError(f"{where}: expected a string, a finite number or a list of these, got {show(line)}.")
    return plain_label(name)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _is_label(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list):
        return depth < _MAX_DEPTH and all(_is_label(part, depth + 1) for part in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int) and not isinstance(value, bool)
