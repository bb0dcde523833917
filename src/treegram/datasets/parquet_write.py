"""Graphs as rows of a Parquet file."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import DatasetError
from treegram._core.files import replacing
from treegram._core.optional import optional_module
from treegram._core.types import Floats, Ints
from treegram.datasets.label_names import name_lines
from treegram.datasets.parquet_read import KEY, VERSION
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.check import check_targets

__all__ = ["write_rows"]

_ROWS = 256  # graphs in a row group, the least that can be read at once


def write_rows(graphs: Any, path: str | os.PathLike[str], y: ArrayLike | None, *, both_directions: bool) -> None:
    """Write a file; see :func:`treegram.save_parquet`."""
    parquet = optional_module("pyarrow.parquet", "parquet", "Parquet files")
    goal = Path(path).expanduser().absolute()
    chunks = _chunks(graphs, y)
    first = next(chunks, Graphs.from_edges([]))
    rows = _Rows(first, both_directions=both_directions)
    try:
        # Without dictionaries of values, which measured vectors do not repeat, files are faster to read and mostly smaller.
        options = {"compression": "lz4", "use_dictionary": False}
        with replacing(goal) as file, parquet.ParquetWriter(file, rows.schema, **options) as out:
            for number, chunk in enumerate(chain([first], chunks)):
                rows.check(chunk, number)
                for start in range(0, len(chunk), _ROWS):
                    out.write_batch(rows.batch(chunk[start : start + _ROWS]))
            out.add_key_value_metadata({KEY.decode(): json.dumps(rows.notes())})
    except OSError as error:
        raise DatasetError(f"The file {goal} cannot be written ({error.strerror or error}).") from None


def _chunks(graphs: Any, y: ArrayLike | None) -> Iterator[Graphs]:
    """The collections to write, one after the other."""
    if isinstance(graphs, Graphs | list | tuple | np.ndarray):
        whole = as_graphs(graphs)
        targets = whole.targets if y is None else check_targets(y, len(whole))
        yield Graphs._trusted(**{**whole.__dict__, "targets": targets})
        return
    if y is not None:
        raise DatasetError("y can be given with a collection or a list of graphs; a stream has its own targets.")
    yield from map(as_graphs, graphs)


class _Rows:
    """Makes batches of rows; labels keep the numbers that they get when they first come."""

    def __init__(self, first: Graphs, *, both_directions: bool) -> None:
        self._once = not both_directions and not first.directed
        self._arrow = optional_module("pyarrow", "parquet", "Parquet files")
        self._first = first
        self._numbers: dict[str, dict[Hashable, int]] = {"node_label": {}, "edge_label": {}}
        self._shapes = _shapes(first)
        if first.targets is not None and (first.targets.ndim > 2 or not self._storable(first.targets)):
            raise DatasetError(
                f"A Parquet file can hold targets that are numbers or texts, one or a row for each graph; got {first.targets.dtype} "
                f"of shape {first.targets.shape}."
            )
        self.schema = self.batch(first[:0]).schema

    def _storable(self, targets: NDArray[Any]) -> bool:
        return targets.dtype.kind in "biufU" or all(isinstance(value, str) for value in targets.ravel().tolist())

    def check(self, chunk: Graphs, number: int) -> None:
        """Raise if a collection holds other kinds of data than the first."""
        shapes = _shapes(chunk)
        for name, mine in shapes.items():
            if mine is not None and self._shapes[name] is None and name.startswith("width"):
                self._shapes[name] = mine  # the first with a vector tells how long they are
            elif mine != self._shapes[name] and not (mine is None and name.startswith("width")):
                raise DatasetError(
                    f"Collection {number} differs from those before in what it holds ({name}: {mine}, not {self._shapes[name]}); one "
                    "file holds one kind of graphs."
                )

    def notes(self) -> dict[str, Any]:
        """What a reader must know beside the columns."""
        first = self._first
        notes: dict[str, Any] = {"version": VERSION, "directed": first.directed, "edges_once": self._once}
        if first.attributes is not None:
            notes["n_attributes"] = self._shapes["width of attributes"] or first.n_attributes
        if first.edge_attributes is not None:
            notes["n_edge_attributes"] = self._shapes["width of edge attributes"] or first.n_edge_attributes
        if first.targets is not None:
            notes["n_target_axes"] = first.targets.ndim
        for column, codes in (("node_label", first.labels), ("edge_label", first.edge_labels)):
            if codes is not None:
                notes[f"{column}s"] = name_lines(list(self._numbers[column]))
        return notes

    def batch(self, graphs: Graphs) -> Any:
        """Some graphs as rows."""
        sources = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)
        chosen = graphs._edge_arcs() if self._once else slice(None)
        pairs = sources[chosen], graphs.indices[chosen]
        n_arcs = np.bincount(graphs.graph_ids[pairs[0]], minlength=len(graphs))
        arcs = np.concatenate([[0], np.cumsum(n_arcs)])
        columns = {"edge_index": self._edge_index(graphs, pairs, n_arcs)}
        if graphs.attributes is not None:
            columns["node_feat"] = self._lists(graphs.offsets, self._vectors(graphs.attributes))
        if graphs.labels is not None:
            columns["node_label"] = self._lists(
                graphs.offsets, self._coded("node_label", graphs.labels, graphs.label_values)
            )
        if graphs.edge_attributes is not None:
            columns["edge_attr"] = self._lists(arcs, self._vectors(graphs.edge_attributes[chosen]))
        if graphs.edge_labels is not None:
            columns["edge_label"] = self._lists(
                arcs, self._coded("edge_label", graphs.edge_labels[chosen], graphs.edge_label_values)
            )
        columns["num_nodes"] = self._arrow.array(graphs.sizes)
        if graphs.targets is not None:
            columns["y"] = self._targets(graphs.targets)
        fields = [self._arrow.field(name, array.type, nullable=False) for name, array in columns.items()]
        return self._arrow.record_batch(list(columns.values()), schema=self._arrow.schema(fields))

    def _lists(self, offsets: Ints, values: Any) -> Any:
        """Lists that have no room for missing values, which makes them faster to read."""
        kind = self._arrow.list_(self._arrow.field("element", values.type, nullable=False))
        return self._arrow.ListArray.from_arrays(self._arrow.array(offsets.astype(np.int32)), values, type=kind)

    def _vectors(self, rows: Floats) -> Any:
        offsets = np.arange(len(rows) + 1) * rows.shape[1]
        return self._lists(offsets, self._arrow.array(rows.ravel()))

    def _coded(self, column: str, codes: Ints, values: tuple[Hashable, ...]) -> Any:
        numbers = self._numbers[column]
        table = np.zeros(len(values), np.int32)
        for code in np.unique(codes).tolist():
            table[code] = numbers.setdefault(values[code], len(numbers))
        return self._arrow.array(table[codes])

    def _edge_index(self, graphs: Graphs, pairs: tuple[Ints, Ints], n_arcs: Ints) -> Any:
        """For each graph the list of sources, then the list of ends."""
        sources, ends = pairs
        owners = np.repeat(np.arange(len(graphs)), n_arcs)
        first_nodes, first_arcs = graphs.offsets[:-1][owners], np.repeat(np.cumsum(n_arcs) - n_arcs, n_arcs)
        places = np.arange(len(sources)) + first_arcs
        flat = np.empty(2 * len(sources), np.int32)
        flat[places] = sources - first_nodes
        flat[places + n_arcs[owners]] = ends - first_nodes
        inner = self._lists(np.concatenate([[0], np.cumsum(np.repeat(n_arcs, 2))]), self._arrow.array(flat))
        return self._lists(2 * np.arange(len(graphs) + 1), inner)

    def _targets(self, targets: NDArray[Any]) -> Any:
        rows = targets[:, None] if targets.ndim == 1 else targets
        kind = self._arrow.string() if rows.dtype.kind in "UO" else None
        values = self._arrow.array(rows.ravel(), type=kind)
        return self._lists(np.arange(len(rows) + 1) * rows.shape[1], values)


def _shapes(graphs: Graphs) -> dict[str, Any]:
    """What all collections of one file have in common; a width is None where no vector tells it."""
    return {
        "directed": graphs.directed,
        "labels": graphs.labels is not None,
        "attributes": graphs.attributes is not None,
        "edge labels": graphs.edge_labels is not None,
        "edge attributes": graphs.edge_attributes is not None,
        "targets": None if graphs.targets is None else (graphs.targets.dtype.kind, graphs.targets.shape[1:]),
        "width of attributes": graphs.n_attributes if graphs.n_nodes and graphs.attributes is not None else None,
        "width of edge attributes": graphs.n_edge_attributes if len(graphs.indices) else None,
    }
