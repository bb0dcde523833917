"""Parquet files with one row per graph, in the layout of graph data sets on Hugging Face.

That layout has the columns ``edge_index`` (two lists), ``node_feat`` and ``edge_attr`` (a list of numbers per node or edge),
``y`` (a list) and ``num_nodes``. We add ``node_label`` and ``edge_label``, lists of whole numbers or strings, ``graph_name``,
``node_name``, ``node_position`` and ``graph_attr``, and a JSON entry "treegram" in the metadata with what the columns do not show. Other
readers ignore these.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treegram._core.files import replacing
from treegram._core.optional import optional_module
from treegram._core.params import Whole, check_value
from treegram._core.types import Ints
from treegram.exceptions import DatasetError, InvalidGraphError
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.check import number_graphs, parse_label, place_edges

__all__ = ["iter_parquet", "load_parquet", "save_parquet"]

_KEY = b"treegram"
_ROWS = 256  # graphs per row group, the smallest unit that can be read
_LOAD_ROWS = 1 << 14  # graphs that load_parquet converts at once
_FIELDS = (  # the field of Graphs, its column, what has one row each, and numpy's codes of the types of its values
    ("labels", "node_label", "nodes", "iubO"),
    ("attributes", "node_feat", "nodes", "iubf"),
    ("node_names", "node_name", "nodes", "O"),
    ("positions", "node_position", "nodes", "iubf"),
    ("edge_labels", "edge_label", "edges", "iubO"),
    ("edge_attributes", "edge_attr", "edges", "iubf"),
    ("targets", "y", "graphs", "iubfO"),
    ("graph_attributes", "graph_attr", "graphs", "iubf"),
    ("graph_names", "graph_name", "graphs", "O"),
)
_COLUMNS = {"edge_index", "num_nodes", *(column for _, column, _, _ in _FIELDS)}


def load_parquet(path: str | os.PathLike[str]) -> tuple[Graphs, NDArray[Any] | None]:
    """Load graphs from a Parquet file with one row per graph.

    Files of :func:`save_parquet` load as an equal collection. Other files in the layout of graph data sets on Hugging
    Face have ``edge_index``, and may have ``node_feat``, ``edge_attr``, ``y`` and ``num_nodes``.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    graphs : Graphs
        The graphs, in the order of the rows: undirected unless :func:`save_parquet` has recorded that they are directed.
        Discrete labels are in the columns ``node_label`` and ``edge_label``: whole numbers or strings. Vectors are in
        ``node_feat`` and ``edge_attr``.
    y : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        The targets; also kept as ``graphs.targets``.

    Raises
    ------
    DatasetError
        If the file cannot be read; the message names the row, counted from 0, and the column.

    Warns
    -----
    UserWarning
        Once, if some columns are not used.

    See Also
    --------
    iter_parquet : Read a file that does not fit into memory.
    save_parquet : Write such a file.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import Graphs, load_parquet, save_parquet
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C", "O"], ["C", "N", "C"]], targets=[-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parquet(graphs, folder + "/two.parquet")
    ...     load_parquet(folder + "/two.parquet")
    (Graphs(2 graphs, 5 nodes, 3 edges, undirected, 3 labels, targets), array([-1,  1]))
    """
    graphs = Graphs.concatenate(_read(*_open(path), _LOAD_ROWS))
    return graphs, None if graphs.targets is None else graphs.targets.copy()


def iter_parquet(path: str | os.PathLike[str], chunk_size: Any = 1000) -> Iterator[tuple[Graphs, NDArray[Any] | None]]:
    """Iterate over a Parquet file with one row per graph, a chunk of graphs at a time.

    Parameters
    ----------
    path : str or path-like
        The file.
    chunk_size : int, default=1000
        Number of graphs per chunk; the last chunk may be smaller.

    Yields
    ------
    graphs : Graphs
        The next graphs, in the order of the rows.
    y : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        Their targets.

    Raises
    ------
    DatasetError
        If the file cannot be read; errors in a row are raised when its chunk is reached.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import iter_parquet, make_synthetic, save_parquet
    >>> graphs, y = make_synthetic(10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parquet(graphs, folder + "/ten.parquet")
    ...     [len(chunk) for chunk, y in iter_parquet(folder + "/ten.parquet", chunk_size=4)]
    [4, 4, 2]
    """
    check_value("chunk_size", "iter_parquet", chunk_size, (Whole(1),))
    chunks = _read(*_open(path), int(chunk_size))
    return ((graphs, None if graphs.targets is None else graphs.targets.copy()) for graphs in chunks)


def save_parquet(graphs: Any, path: str | os.PathLike[str]) -> None:
    """Write graphs to a Parquet file with one row per graph.

    :func:`load_parquet` restores an equal collection, bit for bit.

    Parameters
    ----------
    graphs : Graphs or list of graphs
        The graphs, with their targets and names.
    path : str or path-like
        The file. An existing file is replaced once the new one is complete.

    Raises
    ------
    DatasetError
        If the targets are neither numbers nor strings, or the file cannot be written.

    See Also
    --------
    load_parquet : Read such a file.
    save_tu : Write text files, which other readers of the TU format understand.

    Notes
    -----
    The columns are those of graph data sets on Hugging Face: ``edge_index`` (undirected edges in both directions),
    ``node_feat``, ``edge_attr``, ``y`` and ``num_nodes``. Labels are in the additional columns ``node_label`` and
    ``edge_label``: whole numbers or strings, or JSON if labels are of another kind, such as tuples. Names, positions and
    graph attributes are in ``graph_name``, ``node_name``, ``node_position`` and ``graph_attr``, names of columns in the metadata.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import Graphs, load_parquet, save_parquet
    >>> graphs = Graphs.from_edges([[(0, 1)], []], attributes=[[0.1, 1e-9], [7.0]], targets=[0.5, 2.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parquet(graphs, folder + "/tiny.parquet")
    ...     load_parquet(folder + "/tiny.parquet")[0] == graphs
    True
    """
    parquet = optional_module("pyarrow.parquet", "Parquet files")
    table = _to_table(as_graphs(graphs))
    goal = Path(path).expanduser().absolute()
    try:
        with replacing(goal) as file:
            # Measured vectors do not repeat values: without dictionaries, files are faster to read and usually smaller.
            parquet.write_table(table, file, row_group_size=_ROWS, compression="lz4", use_dictionary=False)
    except OSError as error:
        raise DatasetError(f"The file {goal} cannot be written ({error.strerror or error}).") from None


# -------------------------------------------------------------------- writing


def _to_table(graphs: Graphs) -> Any:
    """Convert graphs to an Arrow table; its metadata records what the columns do not show."""
    import pyarrow as arrow

    starts = {"nodes": graphs.offsets, "edges": graphs.indptr[graphs.offsets]}
    notes: dict[str, Any] = {"directed": graphs.directed, "json": [], "widths": {}}
    columns = {"edge_index": _edge_index(graphs, np.diff(starts["edges"])), "num_nodes": arrow.array(graphs.sizes)}
    for field, column, unit, _ in _FIELDS:
        values = getattr(graphs, field)
        if values is None:
            continue
        if field.endswith("labels"):
            items = _labels(values, getattr(graphs, f"{field[:-1]}_values"), column, notes)
        elif field.endswith("names"):
            items = arrow.array(values, arrow.string())
        else:
            width = 1 if values.ndim == 1 else values.shape[1]
            notes["widths"][column] = width
            notes[f"{field[:-1]}_names"] = getattr(graphs, f"{field[:-1]}_names", None)
            numbers = _targets(values) if field == "targets" else values.ravel()
            items = _lists(np.arange(len(values) + 1) * width, numbers)
        columns[column] = items if unit == "graphs" else _lists(starts[unit], items)
    return arrow.table(columns, metadata={_KEY: json.dumps(notes)})


def _lists(offsets: Ints, values: Any) -> Any:
    import pyarrow as arrow

    return arrow.ListArray.from_arrays(offsets.astype(np.int32), arrow.array(values))


def _edge_index(graphs: Graphs, n_arcs: Ints) -> Any:
    """Return for each graph the list of sources, then the list of ends, numbered within the graph."""
    shift = np.repeat(graphs.offsets[:-1], n_arcs)
    sources = np.repeat(np.arange(graphs.n_nodes), graphs.degrees) - shift
    is_source = np.repeat(np.arange(2 * len(graphs)) % 2 == 0, np.repeat(n_arcs, 2))
    values = np.empty(len(is_source), np.int32)
    values[is_source], values[~is_source] = sources, graphs.indices - shift
    inner = _lists(np.concatenate([[0], np.cumsum(np.repeat(n_arcs, 2))]), values)
    return _lists(2 * np.arange(len(graphs) + 1), inner)


def _labels(codes: Ints, values: tuple[Hashable, ...], column: str, notes: dict[str, Any]) -> Any:
    """Return labels as whole numbers or strings, or as JSON, which is then recorded in ``notes``."""
    import pyarrow as arrow

    if all(type(value) is int and abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)[codes]
    texts: Sequence[Any] = values
    if not all(isinstance(value, str) and value.isprintable() for value in values):  # Arrow accepts no lone surrogates
        notes["json"].append(column)
        texts = [json.dumps(value) for value in values]
    return arrow.array(texts, arrow.string()).take(arrow.array(codes))


def _targets(targets: NDArray[Any]) -> Any:
    import pyarrow as arrow

    is_text = targets.dtype.kind == "U" or all(isinstance(value, str) for value in targets.ravel().tolist())
    if targets.ndim > 2 or targets.shape[1:] == (1,) or not (targets.dtype.kind in "biuf" or is_text):
        raise DatasetError(
            f"A Parquet file can hold targets that are numbers or strings, of shape (n_graphs,) or (n_graphs, n_columns) with "
            f"two columns or more; got {targets.dtype} of shape {targets.shape}."
        )
    return arrow.array(targets.ravel(), arrow.string() if targets.dtype.kind in "UO" else None)


# -------------------------------------------------------------------- reading


def _open(path: str | os.PathLike[str]) -> tuple[str, Any, dict[str, Any]]:
    """Return the path, the open file, and what its metadata record."""
    parquet = optional_module("pyarrow.parquet", "Parquet files")
    name = os.fspath(Path(path).expanduser())
    with _reading(name):
        file = parquet.ParquetFile(name)
    columns = file.schema_arrow.names
    if len(set(columns)) < len(columns) or "edge_index" not in columns:
        raise DatasetError(
            f"{name}: expected one row per graph with a column 'edge_index', and distinct column names; it has "
            f"{', '.join(map(repr, columns)) or 'no columns'}."
        )
    try:
        notes: Any = json.loads((file.schema_arrow.metadata or {}).get(_KEY, b"{}"))
    except (ValueError, RecursionError):
        notes = None
    if not isinstance(notes, dict) or not isinstance(notes.get("widths", {}), dict):
        raise DatasetError(f"{name}: the metadata 'treegram' cannot be read.")
    if unused := set(columns) - _COLUMNS:
        shown = ", ".join(sorted(map(repr, unused)))
        warnings.warn(f"{name}: these columns are not used: {shown}.", UserWarning, stacklevel=3)
    return name, file, notes


def _read(path: str, file: Any, notes: dict[str, Any], n_rows: int) -> Iterator[Graphs]:
    """Yield the graphs of ``n_rows`` rows at a time, or one empty collection."""
    columns = [name for name in file.schema_arrow.names if name in _COLUMNS]
    first_row = 0
    with _reading(path):
        for batch in file.iter_batches(n_rows, columns=columns):
            yield _Batch(batch, path, first_row, notes).to_graphs()
            first_row += len(batch)
        if not first_row:
            yield _Batch(file.schema_arrow.empty_table(), path, 0, notes).to_graphs()


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn the errors of pyarrow into a DatasetError."""
    try:
        yield
    except DatasetError:
        raise
    except (OSError, ValueError, LookupError, NotImplementedError, TypeError, MemoryError) as error:
        text = " ".join(str(error).split())
        raise DatasetError(f"{path}: the file cannot be read as Parquet ({text[:200]}).") from None


class _Batch(NamedTuple):
    """Some consecutive rows of a file; ``path`` and ``first_row`` are for messages."""

    table: Any
    path: str
    first_row: int
    notes: dict[str, Any]

    def to_graphs(self) -> Graphs:
        """Convert the rows to graphs."""
        n_edges, pairs = self._edges()
        counts: dict[str, Any] = {"nodes": {}, "edges": {"edge_index": n_edges.tolist()}, "graphs": {}}
        data: dict[str, Any] = {}
        names = self.table.schema.names
        if "num_nodes" in names:
            counts["nodes"]["num_nodes"] = self._rows("num_nodes", 0, "iu")[1][:, 0].tolist()
        for field, column, unit, type_codes in _FIELDS:
            if column in names:
                n_rows, rows = self._rows(column, int(unit != "graphs"), type_codes)
                counts[unit][column] = n_rows.tolist()
                data[field] = self._values(field, column, rows)
                if field.endswith("attributes"):
                    data[f"{field[:-1]}_names"] = self.notes.get(f"{field[:-1]}_names")
        try:
            offsets, edges = place_edges(pairs, counts["edges"], counts["nodes"])
            return Graphs.from_arrays(offsets, edges, directed=bool(self.notes.get("directed", False)), **data)
        except InvalidGraphError as error:
            raise DatasetError(f"{self.path}: {number_graphs(error, 'row', self.first_row)}") from None

    def _values(self, field: str, column: str, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a field: labels from JSON, one name or target per row, or vectors."""
        if column in self.notes.get("json", ()):
            texts, codes = np.unique(rows, return_inverse=True)
            labels = [parse_label(text, f"{self.path}: column {column!r}") for text in texts]
            return np.fromiter(labels, dtype=object, count=len(labels))[codes.ravel()]
        if field.endswith("attributes") or rows.shape[1] != 1:
            return rows
        return rows[:, 0].astype(str) if field == "targets" and rows.dtype == object else rows[:, 0]

    def _edges(self) -> tuple[Ints, Ints]:
        """Return the number of edges of each row, and all edges, numbered within their graphs."""
        levels, values = self._flatten("edge_index", "iu")
        if len(levels) != 2:
            raise DatasetError(f"{self.path}: column 'edge_index' must hold two lists of whole numbers in each row.")
        n_lists, lengths = levels
        is_wrong = n_lists != 2 if (n_lists != 2).any() else lengths[::2] != lengths[1::2]
        if is_wrong.any():
            row = int(is_wrong.argmax())
            raise self._error(row, "column 'edge_index': expected two lists of one length, the sources and the ends.")
        is_source = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
        return lengths[::2], np.stack([values[is_source], values[~is_source]], axis=1).astype(np.int64)

    def _rows(self, name: str, depth: int, type_codes: str) -> tuple[Ints, NDArray[Any]]:
        """Return the values of a column as one row per graph (``depth`` 0), or per node or edge (1), and the rows per graph.

        Everything nested deeper than ``depth`` belongs to one row, and all rows must have the same length.
        """
        levels, values = self._flatten(name, type_codes)
        if len(levels) < depth:
            raise DatasetError(
                f"{self.path}: column {name!r} must hold a list in each row; it holds numbers or strings."
            )
        counts = levels[0] if depth else np.ones(len(self.table), np.int64)
        lengths = np.ones(int(counts.sum()), np.int64)
        for level in levels[depth:]:
            ends = np.cumsum(np.concatenate([[0], level]))
            lengths = np.diff(ends[np.concatenate([[0], np.cumsum(lengths)])])
        width = int(lengths[0]) if len(lengths) else self.notes.get("widths", {}).get(name, 1)
        if (lengths != width).any():
            i = int((lengths != width).argmax())
            row = int(np.repeat(np.arange(len(counts)), counts)[i])
            raise self._error(row, f"column {name!r}: expected {width} values, as before; got {lengths[i]}.")
        return counts, values.reshape(len(lengths), width)

    def _flatten(self, name: str, type_codes: str) -> tuple[list[Ints], NDArray[Any]]:
        """Return the lengths of the lists at each level of a column, and all values."""
        from pyarrow import compute, types

        array = self.table[name]
        array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
        levels, owners = [], np.arange(len(array))
        while True:
            if array.null_count:
                row = int(owners[np.asarray(array.is_null()).argmax()])
                raise self._error(row, f"column {name!r}: there is a missing value.")
            if not any(
                is_list(array.type) for is_list in (types.is_list, types.is_large_list, types.is_fixed_size_list)
            ):
                break
            levels.append(np.asarray(compute.list_value_length(array)).astype(np.int64))
            array, owners = array.flatten(), np.repeat(owners, levels[-1])
        values = np.asarray(array.to_numpy(zero_copy_only=False))
        if types.is_null(array.type) and not len(values):  # an empty column of no known type
            values = np.empty(0, np.int64)
        is_text = types.is_string(array.type) or types.is_large_string(array.type)
        if values.dtype.kind not in type_codes or (values.dtype == object and not is_text):
            numbers = [] if "i" not in type_codes else ["numbers"] if "f" in type_codes else ["whole numbers"]
            expected = " or ".join(numbers + (["strings"] if "O" in type_codes else []))
            raise DatasetError(f"{self.path}: column {name!r} must hold {expected}; it holds {array.type}.")
        return levels, values

    def _error(self, row: int, text: str) -> DatasetError:
        return DatasetError(f"{self.path}: row {self.first_row + row}, {text}")
