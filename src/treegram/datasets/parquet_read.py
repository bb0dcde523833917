"""Rows of a Parquet file as Graphs: which columns are what, and how they must fit together."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.optional import optional_module
from treegram._core.text import suggest
from treegram._core.types import Ints
from treegram.datasets.label_names import parse_name
from treegram.datasets.parquet_columns import Column, Flat
from treegram.datasets.parquet_graphs import Labels, Parts, make_graphs
from treegram.graphs import Graphs
from treegram.graphs.one_hot import OneHot, split_one_hot

__all__ = ["KEY", "VERSION", "ParquetRows"]

KEY, VERSION = b"treegram", 1  # where save_parquet leaves its notes in the metadata of a file
_USUAL = {
    "label": "node_label",
    "attributes": "node_feat",
    "edge_label": "edge_label",
    "edge_attributes": "edge_attr",
    "targets": "y",
}
_TWICE = (("label", "attributes"), ("edge_label", "edge_attributes"))


@dataclass(frozen=True)
class ParquetRows:
    """An open file, and which of its columns are what."""

    path: str
    parquet: Any
    chosen: dict[str, str]  # argument: column, for columns that are there
    one_hot: OneHot
    directed: bool
    notes: dict[str, Any]  # what save_parquet has noted
    starts: Ints  # the first row of each row group, and the number of rows

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], given: dict[str, str | None], one_hot: OneHot, *, directed: bool | None
    ) -> ParquetRows:
        parquet = optional_module("pyarrow.parquet", "parquet", "Parquet files")
        name = os.fspath(Path(path).expanduser())
        file = _guarded(name, lambda: parquet.ParquetFile(name))
        names = file.schema_arrow.names
        if len(set(names)) < len(names) or "edge_index" not in names:
            raise DatasetError(
                f"{name}: expected one row per graph with a column 'edge_index', and names of columns that are distinct; it has "
                f"{', '.join(map(repr, names)) or 'no columns'}."
            )
        if one_hot is not False:
            given = {**given, "label": None}
        given = {
            **given,
            **{second: None for first, second in _TWICE if given[first] == given[second] == _USUAL[second]},
        }
        notes = _read_notes(file.metadata.metadata or {}, name)
        counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        return cls(
            name,
            file,
            _present(given, names, name),
            one_hot,
            notes.get("directed", False) if directed is None else bool(directed),
            notes,
            np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "parquet": None}  # an open file stays in its process

    def __setstate__(self, state: dict[str, Any]) -> None:
        parquet = optional_module("pyarrow.parquet", "parquet", "Parquet files")
        self.__dict__.update(state, parquet=_guarded(state["path"], lambda: parquet.ParquetFile(state["path"])))

    @property
    def n_groups(self) -> int:
        return len(self.starts) - 1

    def warn_of_unused(self) -> None:
        """Name columns that nobody chose."""
        unused = set(self.parquet.schema_arrow.names).difference(self.chosen.values(), ("edge_index", "num_nodes"))
        if unused:
            shown = ", ".join(sorted(map(repr, unused)))
            warnings.warn(f"{self.path}: these columns are not used: {shown}.", UserWarning, stacklevel=3)

    def _reopened(self) -> Any:
        """The file with a handle of its own, since several threads may read at once."""
        return type(self.parquet)(self.path, metadata=self.parquet.metadata)

    def columns(self, start: int, stop: int, names: list[str]) -> dict[str, Column]:
        """Some columns of some rows."""
        if stop <= start:
            table = self.parquet.schema_arrow.empty_table().select(names)
            return {name: Column(table[name].combine_chunks(), name, self.path, start) for name in names}
        first, last = (int(np.searchsorted(self.starts, row, side="right")) - 1 for row in (start, stop - 1))
        groups = range(first, last + 1)
        table = _guarded(self.path, lambda: self._reopened().read_row_groups(groups, columns=names))
        if len(table) != self.starts[last + 1] - self.starts[first]:
            raise DatasetError(f"{self.path}: the row groups {first} to {last} have not as many rows as the file says.")
        table = table.slice(start - int(self.starts[first]), stop - start)
        return {name: Column(_one_chunk(table[name]), name, self.path, start) for name in names}

    def read_targets(self) -> NDArray[Any] | None:
        """The targets of all rows."""
        if "targets" not in self.chosen:
            return None
        name = self.chosen["targets"]
        return self._shaped(self.columns(0, int(self.starts[-1]), [name])[name].scalars())

    def _shaped(self, targets: NDArray[Any]) -> NDArray[Any]:
        return targets[:, None] if self.notes.get("n_target_axes") == 2 and targets.ndim == 1 else targets

    def _parts(self, columns: dict[str, Column]) -> Parts:
        """What the chosen columns say."""
        data = {argument: columns[name] for argument, name in self.chosen.items()}
        labels = self._labels("label", data)
        vectors = data["attributes"].rows() if "attributes" in data else None
        if self.one_hot is not False and vectors is not None:
            codes, rest = split_one_hot(
                vectors.values, self.one_hot, f"{self.path}: column {data['attributes'].name!r}"
            )
            labels = Labels(Flat(vectors.offsets, codes), None)
            vectors = None if rest is None else Flat(vectors.offsets, rest)
        return Parts(
            columns["edge_index"],
            columns.get("num_nodes"),
            labels,
            _sized(vectors, self.notes.get("n_attributes")),
            self._labels("edge_label", data),
            _sized(data["edge_attributes"].rows(), self.notes.get("n_edge_attributes"))
            if "edge_attributes" in data
            else None,
            data,
            self._shaped(data["targets"].scalars()) if "targets" in data else None,
            self.directed,
            self.notes.get("edges_once") is True,
        )

    def _labels(self, argument: str, data: dict[str, Column]) -> Labels | None:
        if argument not in data:
            return None
        flat, names = data[argument].labels()
        noted = self.notes.get(f"{_USUAL[argument]}s") if data[argument].name == _USUAL[argument] else None
        if noted is None:
            return Labels(flat, names)
        if names is not None or flat.values.ndim > 1:
            raise DatasetError(
                f"{self.path}: column {data[argument].name!r} must hold whole numbers, which the file names."
            )
        wrong = (flat.values < 0) | (flat.values >= len(noted))
        if wrong.any():
            place = int(wrong.argmax())
            row = int(np.searchsorted(flat.offsets, place, side="right")) - 1
            raise data[argument].error(
                row, f"expected numbers from 0 to {len(noted) - 1}, which the file names; got {flat.values[place]}."
            )
        return Labels(flat, noted)

    def read(self, start: int, stop: int) -> Graphs:
        """Some rows as a collection."""
        known = set(self.parquet.schema_arrow.names)
        names = list(dict.fromkeys(["edge_index", *self.chosen.values(), *({"num_nodes"} & known)]))
        columns = self.columns(start, stop, names)
        try:
            return make_graphs(self._parts(columns))
        except InvalidGraphError as error:
            if stop - start == 1:
                text = str(error).removeprefix("Graph 0: ")
                raise DatasetError(f"{self.path}: row {start}: {text}") from None
            for row in range(start, stop):  # find the row
                self.read(row, row + 1)
            raise  # pragma: no cover (some row alone is wrong, too)


def _present(given: dict[str, str | None], names: list[str], path: str) -> dict[str, str]:
    """The chosen columns that are there; one that is missing must be a default."""
    chosen = {}
    for argument, name in given.items():
        if name in names:
            chosen[argument] = name
        elif name is not None and name != _USUAL[argument]:
            raise DatasetError(
                f"{path}: {argument}: there is no column {name!r}; there are {', '.join(map(repr, names))}"
                f"{suggest(name, names) or '.'}"
            )
    return chosen


def _guarded(path: str, action: Any) -> Any:
    """What an action on a file gives, or a DatasetError for whatever pyarrow raises."""
    try:
        return action()
    except (
        OSError,
        ValueError,
        KeyError,
        NotImplementedError,
        TypeError,
        MemoryError,
    ) as error:  # ArrowInvalid is a ValueError
        text = " ".join(str(error).split())
        raise DatasetError(f"{path}: the file cannot be read as Parquet ({text[:200]}).") from None


def _one_chunk(column: Any) -> Any:
    """A column as one array; of one without rows Arrow makes none."""
    joined = column.combine_chunks()
    return joined.combine_chunks() if hasattr(joined, "chunks") else joined


def _sized(part: Flat | None, width: int | None) -> Flat | None:
    """Vectors; where there is none, the file may have noted how long they are."""
    if part is None or len(part.values):
        return part
    return Flat(part.offsets, np.empty((0, width or part.values.shape[1])))


# -------------------------------------------------------------------- what save_parquet notes


def _read_notes(metadata: dict[bytes, bytes], path: str) -> dict[str, Any]:
    if KEY not in metadata:
        return {}
    where = f"{path}: the metadata 'treegram'"
    try:
        notes = json.loads(metadata[KEY])
        version = notes["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DatasetError(f"{where} cannot be read.") from None
    if version != VERSION:
        raise DatasetError(
            f"{where} is of version {version!r}; this treegram reads version {VERSION}. Update treegram."
        )
    if not isinstance(notes.get("directed"), bool):
        raise DatasetError(f"{where} must say whether edges are directed.")
    for name in ("n_attributes", "n_edge_attributes", "n_target_axes"):
        if name in notes and not (type(notes[name]) is int and 0 <= notes[name] < 2**20):
            raise DatasetError(f"{where}: {name} must be a whole number; got {notes[name]!r}.")
    for name in ("node_labels", "edge_labels"):
        if name in notes:
            notes[name] = _read_names(notes[name], f"{where}, {name}")
    return dict(notes)


def _read_names(lines: Any, where: str) -> list[Any]:
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise DatasetError(f"{where}: expected a list of texts.")
    names = [parse_name(line.encode("utf-8", "surrogatepass"), where, are_classes=False) for line in lines]
    if len(set(names)) < len(names):
        raise DatasetError(f"{where}: expected distinct names.")
    return names
