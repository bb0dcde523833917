"""Names of the numbers in a table of labels: companion files for labels that are not whole numbers.

The TU format knows only whole numbers as labels. Line ``i + 1`` of ``SET_node_label_names.txt`` is the label with the number
``i`` in ``SET_node_labels.txt``, as JSON: ``"C"`` is a string, ``2.5`` a number and ``["C", 1]`` a tuple. Edge labels and
classes have files of their own. Other readers of the format ignore these files.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.types import Ints
from treegram.datasets.table import Block, show
from treegram.graphs import Graphs
from treegram.graphs.labels import check_label, join_codes, plain_label

__all__ = ["LabelNames", "check_named", "class_names", "parse_label", "read_label_names", "with_label_names"]

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
            raise DatasetError(f"{where}: expected the name of a class in quotes, got {show(line)}.")
        if first.setdefault(name, number) != number:
            raise DatasetError(f"{where}: {show(line)} is also the name in line {first[name] + 1}.")
    return LabelNames(path, tuple(first))


def parse_label(line: bytes, where: str) -> Hashable:
    """Parse a label that is written as JSON."""
    try:
        label = plain_label(json.loads(line.decode("utf-8")))
        check_label(label, "label", 0)
    except (ValueError, RecursionError):
        raise DatasetError(
            f'{where}: expected a label as JSON, such as "C", 2.5 or ["C", 1]; got {show(line)}.'
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
