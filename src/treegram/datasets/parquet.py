"""Parquet files with one row per graph, in the layout of graph data sets on Hugging Face.

That layout has the columns ``edge_index`` (two lists), ``node_feat`` and ``edge_attr`` (a list of numbers per node or edge),
``y`` (a list) and ``num_nodes``. We add ``node_label`` and ``edge_label``, lists of whole numbers or strings, ``graph_name``,
``node_name`` and ``graph_attr``, and a JSON entry "treegram" in the metadata with what the columns do not show. Other
readers ignore these.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.files import replacing
from treegram._core.optional import optional_module
from treegram._core.params import Whole, check_value
from treegram._core.text import suggest
from treegram._core.types import Ints
from treegram.datasets.table import parse_label
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.check import MAX_NODES, shift_edges
from treegram.graphs.labels import split_one_hot

__all__ = ["iter_parquet", "load_parquet", "save_parquet"]

_import_arrow = partial(optional_module, "pyarrow", "Parquet files")
_KEY = b"treegram"
_ROWS = 256  # graphs per row group, the smallest unit that can be read
_LOAD_ROWS = 1 << 14  # graphs that load_parquet converts at once
_DEFAULTS = {
    "label": "node_label",
    "attributes": "node_feat",
    "edge_label": "edge_label",
    "edge_attributes": "edge_attr",
    "targets": "y",
}
_OWN = {"graph_names": "graph_name", "node_names": "node_name", "graph_attributes": "graph_attr"}  # only in our files
_NAMES_OF = {role: role[:-1] + "_names" for role in ("attributes", "edge_attributes", "graph_attributes")}


def load_parquet(
    path: str | os.PathLike[str],
    *,
    label: str | None = "node_label",
    attributes: str | None = "node_feat",
    edge_label: str | None = "edge_label",
    edge_attributes: str | None = "edge_attr",
    targets: str | None = "y",
    one_hot: bool | slice | Sequence[int] = False,
    directed: bool | None = None,
) -> tuple[Graphs, NDArray[Any] | None]:
    """Load graphs from a Parquet file with one row per graph.

    Files of :func:`save_parquet` load as an equal collection. Other files in the layout of graph data sets on Hugging
    Face have ``edge_index``, and may have ``node_feat``, ``edge_attr``, ``y`` and ``num_nodes``.

    Parameters
    ----------
    path : str or path-like
        The file.
    label : str or None, default="node_label"
        Column with the discrete label of each node: whole numbers, strings, or lists of whole numbers, which become tuples.
        A default name may be missing, here and below; any other name must exist.
    attributes : str or None, default="node_feat"
        Column with the vector of each node. The default is ignored if that column is the label.
    edge_label : str or None, default="edge_label"
        Column with the discrete label of each edge.
    edge_attributes : str or None, default="edge_attr"
        Column with the vector of each edge. The default is ignored if that column is the edge label.
    targets : str or None, default="y"
        Column with the class or regression target of each graph.
    one_hot : bool, slice or sequence of int, default=False
        Components of ``attributes`` that encode the label in one-hot form, as in :meth:`Graphs.from_pyg`.
    directed : bool, optional
        Whether edges are directed. By default, as recorded by :func:`save_parquet`, else False.

    Returns
    -------
    graphs : Graphs
        The graphs, in the order of the rows.
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
    reader = _Reader(
        path,
        one_hot=one_hot,
        directed=directed,
        label=label,
        attributes=attributes,
        edge_label=edge_label,
        edge_attributes=edge_attributes,
        targets=targets,
    )
    graphs = Graphs.concatenate(list(reader.read(_LOAD_ROWS)) or [reader.read_empty()])
    return graphs, None if graphs.targets is None else graphs.targets.copy()


def iter_parquet(
    path: str | os.PathLike[str], chunk_size: Any = 1000, **kwargs: Any
) -> Iterator[tuple[Graphs, NDArray[Any] | None]]:
    """Iterate over a Parquet file with one row per graph, a chunk of graphs at a time.

    Parameters
    ----------
    path : str or path-like
        The file.
    chunk_size : int, default=1000
        Number of graphs per chunk; the last chunk may be smaller.
    **kwargs
        Other parameters of :func:`load_parquet`.

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
    reader = _Reader(path, **kwargs)
    return ((graphs, graphs.targets) for graphs in reader.read(int(chunk_size)))


def save_parquet(graphs: Any, path: str | os.PathLike[str], y: ArrayLike | None = None) -> None:
    """Write graphs to a Parquet file with one row per graph.

    :func:`load_parquet` restores an equal collection, bit for bit.

    Parameters
    ----------
    graphs : Graphs, list of graphs, or iterator
        The graphs. An iterator yields collections, or pairs of a collection and its targets as :func:`iter_tu` does; only
        one of them is held in memory at a time.
    path : str or path-like
        The file. An existing file is replaced once the new one is complete.
    y : array-like of shape (n_graphs,) or (n_graphs, n_columns), optional
        Targets to write instead of those of the graphs; not for iterators.

    Raises
    ------
    DatasetError
        If a later collection holds different kinds of data than the first, or the file cannot be written.

    See Also
    --------
    load_parquet : Read such a file.
    save_tu : Write text files, which other readers of the TU format understand.

    Notes
    -----
    The columns are those of graph data sets on Hugging Face: ``edge_index`` (undirected edges in both directions),
    ``node_feat``, ``edge_attr``, ``y`` and ``num_nodes``. Labels are in the additional columns ``node_label`` and
    ``edge_label``: whole numbers or strings, or JSON if labels are of another kind, such as tuples. Names and graph attributes
    are in ``graph_name``, ``node_name`` and ``graph_attr``, names of columns in the metadata.

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
    goal = Path(path).expanduser().absolute()
    chunks = _collections(graphs, y)
    first = next(chunks, Graphs.from_edges([]))
    schema = _to_table(first[:0]).schema
    try:
        # Measured vectors do not repeat values: without dictionaries, files are faster to read and usually smaller.
        with (
            replacing(goal) as file,
            parquet.ParquetWriter(file, schema, compression="lz4", use_dictionary=False) as out,
        ):
            for number, chunk in enumerate(chain([first], chunks)):
                for start in range(0, len(chunk), _ROWS):
                    table = _to_table(chunk[start : start + _ROWS])
                    if not table.schema.equals(schema, check_metadata=True):
                        raise DatasetError(
                            f"Collection {number} holds other kinds of labels, vectors, edges or targets than those before; "
                            f"all graphs of a file must be of one kind. Got\n{table.schema.to_string()}\nafter\n{schema.to_string()}"
                        )
                    out.write_table(table)
    except OSError as error:
        raise DatasetError(f"The file {goal} cannot be written ({error.strerror or error}).") from None


# -------------------------------------------------------------------- writing


def _collections(graphs: Any, y: ArrayLike | None) -> Iterator[Graphs]:
    """Yield the collections to write, with their targets."""
    if isinstance(graphs, Graphs | list | tuple | np.ndarray):
        graphs = as_graphs(graphs)
        yield graphs if y is None else graphs.assign(targets=y)
        return
    if y is not None:
        raise DatasetError("y can be passed with a collection or a list of graphs; an iterator has its own targets.")
    for item in graphs:
        chunk, targets = item if isinstance(item, tuple) else (item, None)
        yield from _collections(as_graphs(chunk), targets)


def _to_table(graphs: Graphs) -> Any:
    """Convert graphs to an Arrow table; its metadata records what the columns do not show."""
    arrow = _import_arrow()
    nodes, arcs, each = graphs.offsets, graphs.indptr[graphs.offsets], np.arange(len(graphs) + 1)
    notes: dict[str, Any] = {"directed": graphs.directed, "json": [], "widths": {}}
    notes |= {name: getattr(graphs, name) for name in _NAMES_OF.values() if getattr(graphs, name) is not None}
    columns = {"edge_index": _edge_index(graphs, np.diff(arcs)), "num_nodes": arrow.array(graphs.sizes)}
    for name, starts, vectors in (
        ("node_feat", nodes, graphs.attributes),
        ("edge_attr", arcs, graphs.edge_attributes),
        ("graph_attr", each, graphs.graph_attributes),
    ):
        if vectors is not None:
            notes["widths"][name] = vectors.shape[1]
            rows = _lists(np.arange(len(vectors) + 1) * vectors.shape[1], vectors.ravel())
            columns[name] = _lists(starts, rows)
    for name, starts, codes, values in (
        ("node_label", nodes, graphs.labels, graphs.label_values),
        ("edge_label", arcs, graphs.edge_labels, graphs.edge_label_values),
    ):
        if codes is not None:
            columns[name] = _lists(starts, _labels(codes, values, name, notes))
    if graphs.graph_names is not None:
        columns["graph_name"] = arrow.array(graphs.graph_names, arrow.string())
    if graphs.node_names is not None:
        columns["node_name"] = _lists(nodes, arrow.array(graphs.node_names, arrow.string()))
    if graphs.targets is not None:
        columns["y"] = _targets(graphs.targets)
    return arrow.table(columns, metadata={_KEY: json.dumps(notes)})


def _lists(offsets: Ints, values: Any) -> Any:
    arrow = _import_arrow()
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
    if all(type(value) is int and abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)[codes]
    arrow = _import_arrow()
    texts: Sequence[Any] = values
    if not all(isinstance(value, str) and value.isprintable() for value in values):  # Arrow accepts no lone surrogates
        notes["json"].append(column)
        texts = [json.dumps(value) for value in values]
    return arrow.array(texts, arrow.string()).take(arrow.array(codes))


def _targets(targets: NDArray[Any]) -> Any:
    is_text = targets.dtype.kind == "U" or all(isinstance(value, str) for value in targets.ravel().tolist())
    if targets.ndim > 2 or targets.shape[1:] == (1,) or not (targets.dtype.kind in "biuf" or is_text):
        raise DatasetError(
            f"A Parquet file can hold targets that are numbers or strings, of shape (n_graphs,) or (n_graphs, n_columns) with "
            f"two columns or more; got {targets.dtype} of shape {targets.shape}."
        )
    width = 1 if targets.ndim == 1 else targets.shape[1]
    arrow = _import_arrow()
    values = arrow.array(targets.ravel(), arrow.string() if targets.dtype.kind in "UO" else None)
    return _lists(np.arange(len(targets) + 1) * width, values)


# -------------------------------------------------------------------- reading


class _Reader:
    """An open file, and the column of each role."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        one_hot: bool | slice | Sequence[int] = False,
        directed: bool | None = None,
        **columns: str | None,
    ) -> None:
        if unknown := columns.keys() - _DEFAULTS.keys():
            raise TypeError(f"iter_parquet() got an unexpected keyword argument {unknown.pop()!r}")
        parquet = optional_module("pyarrow.parquet", "Parquet files")
        self.path, self.one_hot = os.fspath(Path(path).expanduser()), one_hot
        with _reading(self.path):
            self.file = parquet.ParquetFile(self.path)
        self.names = self.file.schema_arrow.names
        if len(set(self.names)) < len(self.names) or "edge_index" not in self.names:
            raise DatasetError(
                f"{self.path}: expected one row per graph with a column 'edge_index', and distinct column names; it has "
                f"{', '.join(map(repr, self.names)) or 'no columns'}."
            )
        columns = _DEFAULTS | columns | ({} if one_hot is False else {"label": None})
        for role, name in columns.items():
            if name is not None and name not in (*self.names, _DEFAULTS[role]):
                raise DatasetError(
                    f"{self.path}: {role}: there is no column {name!r}; there are {', '.join(map(repr, self.names))}"
                    f"{suggest(name, self.names) or '.'}"
                )
        for first, second in (("label", "attributes"), ("edge_label", "edge_attributes")):
            if columns[first] == columns[second]:
                columns[second] = None
        metadata = self.file.schema_arrow.metadata or {}
        self.notes = self._read_notes(metadata.get(_KEY, b"{}"))
        self.directed = bool(self.notes.get("directed", False) if directed is None else directed)
        columns |= _OWN if _KEY in metadata else {}
        self.columns = {role: name for role, name in columns.items() if name is not None and name in self.names}
        if unused := set(self.names).difference(self.columns.values(), ("edge_index", "num_nodes")):
            shown = ", ".join(sorted(map(repr, unused)))
            warnings.warn(f"{self.path}: these columns are not used: {shown}.", UserWarning, stacklevel=3)

    def read(self, n_rows: int) -> Iterator[Graphs]:
        """Yield the graphs of ``n_rows`` rows at a time."""
        wanted = [name for name in self.names if name in {"edge_index", "num_nodes", *self.columns.values()}]
        first_row = 0
        with _reading(self.path):
            for batch in self.file.iter_batches(n_rows, columns=wanted):
                yield self._convert(_Batch(batch, self.path, first_row))
                first_row += len(batch)

    def read_empty(self) -> Graphs:
        """Return an empty collection with the kinds of data that the columns have."""
        with _reading(self.path):
            return self._convert(_Batch(self.file.schema_arrow.empty_table(), self.path, 0))

    def _read_notes(self, text: bytes) -> dict[str, Any]:
        try:
            notes: Any = json.loads(text)
        except (ValueError, RecursionError):
            notes = None
        if not isinstance(notes, dict) or not isinstance(notes.get("widths", {}), dict):
            raise DatasetError(f"{self.path}: the metadata 'treegram' cannot be read.")
        return notes

    def _convert(self, batch: _Batch) -> Graphs:
        """Convert some rows to graphs."""
        n_edges, pairs = batch.edges()
        n_nodes: dict[str, Ints] = {}
        if "num_nodes" in self.names:
            n_nodes["num_nodes"] = batch.rows("num_nodes", 0, "iu")[1][:, 0]
        edge_counts = {"edge_index": n_edges}
        labels = self._read_labels("label", batch, n_nodes)
        vectors = self._read_vectors("attributes", batch, n_nodes)
        edge_labels = self._read_labels("edge_label", batch, edge_counts)
        edge_vectors = self._read_vectors("edge_attributes", batch, edge_counts)
        batch.check_equal(edge_counts, "number of edges")
        owners = np.repeat(np.arange(len(n_edges)), n_edges)
        if not n_nodes:
            sizes = np.zeros(len(n_edges), np.int64)
            np.maximum.at(sizes, owners, pairs.max(axis=1, initial=-1) + 1)
            n_nodes["edge_index"] = sizes
        batch.check_equal(n_nodes, "number of nodes")
        sizes = next(iter(n_nodes.values()))
        is_wrong = (sizes < 0) | (sizes > MAX_NODES)
        if is_wrong.any():
            row = int(is_wrong.argmax())
            raise batch.error(row, f"the number of nodes must be from 0 to {MAX_NODES}; got {sizes[row]}.")
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        try:
            if self.one_hot is not False and vectors is not None:
                labels, vectors = split_one_hot(vectors, self.one_hot, f"column {self.columns['attributes']!r}")
            graphs = Graphs.from_arrays(
                offsets,
                shift_edges(pairs, owners, offsets),
                labels=labels,
                attributes=vectors,
                edge_labels=edge_labels,
                edge_attributes=edge_vectors,
                directed=self.directed,
            )
            return graphs.assign(**self._read_extras(batch))
        except InvalidGraphError as error:
            graph = re.match(r"Graph (\d+): (.*)", str(error), re.DOTALL)
            text = f"row {batch.first_row + int(graph[1])}: {graph[2]}" if graph else str(error)
            raise DatasetError(f"{self.path}: {text}") from None

    def _read_labels(self, role: str, batch: _Batch, counts: dict[str, Ints]) -> NDArray[Any] | None:
        """Read discrete labels: whole numbers or rows of them, strings, or JSON in strings."""
        if role not in self.columns:
            return None
        name = self.columns[role]
        counts[name], rows = batch.rows(name, 1, "iubO")
        if rows.dtype != object:
            return rows
        texts, codes = np.unique(rows, return_inverse=True)
        is_json = name in self.notes.get("json", ())
        known = [parse_label(text.encode(), f"{self.path}: column {name!r}") if is_json else text for text in texts]
        return np.fromiter(known, dtype=object, count=len(known))[codes.ravel()]

    def _read_vectors(self, role: str, batch: _Batch, counts: dict[str, Ints]) -> NDArray[Any] | None:
        if role not in self.columns:
            return None
        name = self.columns[role]
        counts[name], rows = batch.rows(name, 1, "iubf")
        width = self.notes.get("widths", {}).get(name)
        return rows.reshape(len(rows), width) if not rows.size and isinstance(width, int) else rows

    def _read_extras(self, batch: _Batch) -> dict[str, Any]:
        """Return targets, names and graph attributes."""
        found: dict[str, Any] = {}
        if "targets" in self.columns:
            rows = batch.rows(self.columns["targets"], 0, "iubfO")[1]
            targets = rows[:, 0] if rows.shape[1] == 1 else rows
            found["targets"] = targets.astype(str) if targets.dtype == object else targets
        if "graph_names" in self.columns:
            found["graph_names"] = batch.rows("graph_name", 0, "O")[1][:, 0]
        if "node_names" in self.columns:
            found["node_names"] = batch.rows("node_name", 1, "O")[1][:, 0]
        found["graph_attributes"] = self._read_vectors("graph_attributes", batch, {})
        for role, name in _NAMES_OF.items():
            if role in self.columns and name in self.notes and not (role == "attributes" and self.one_hot is not False):
                found[name] = self.notes[name]
        return found


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


@dataclass(frozen=True)
class _Batch:
    """Some consecutive rows of a file; ``path`` and ``first_row`` are for messages."""

    table: Any
    path: str
    first_row: int

    def error(self, row: int, text: str) -> DatasetError:
        """Return the error for a row, counted within these rows."""
        return DatasetError(f"{self.path}: row {self.first_row + row}, {text}")

    def edges(self) -> tuple[Ints, Ints]:
        """Return the number of edges of each row, and all edges, numbered within their graphs."""
        levels, values = self._flatten("edge_index", "iu")
        if len(levels) != 2:
            raise DatasetError(f"{self.path}: column 'edge_index' must hold two lists of whole numbers in each row.")
        n_lists, lengths = levels
        is_wrong = n_lists != 2 if (n_lists != 2).any() else lengths[::2] != lengths[1::2]
        if is_wrong.any():
            row = int(is_wrong.argmax())
            raise self.error(row, "column 'edge_index': expected two lists of one length, the sources and the ends.")
        is_source = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
        return lengths[::2], np.stack([values[is_source], values[~is_source]], axis=1).astype(np.int64)

    def rows(self, name: str, depth: int, kinds: str) -> tuple[Ints, NDArray[Any]]:
        """Return the values of a column as one row per graph (``depth`` 0), or per node or edge (1), and the rows per graph.

        Everything nested deeper than ``depth`` belongs to one row, and all rows must have the same length.
        """
        levels, values = self._flatten(name, kinds)
        if len(levels) < depth:
            raise DatasetError(
                f"{self.path}: column {name!r} must hold a list in each row; it holds numbers or strings."
            )
        counts = levels[0] if depth else np.ones(len(self.table), np.int64)
        lengths = np.ones(int(counts.sum()), np.int64)
        for level in levels[depth:]:
            ends = np.cumsum(np.concatenate([[0], level]))
            lengths = np.diff(ends[np.concatenate([[0], np.cumsum(lengths)])])
        width = int(lengths[0]) if len(lengths) else 1
        if (lengths != width).any():
            i = int((lengths != width).argmax())
            row = int(np.repeat(np.arange(len(counts)), counts)[i])
            raise self.error(row, f"column {name!r}: expected {width} values, as before; got {lengths[i]}.")
        return counts, values.reshape(len(lengths), width)

    def check_equal(self, counts: dict[str, Ints], noun: str) -> None:
        """Raise if columns contradict each other."""
        (first, expected), *others = counts.items()
        for name, found in others:
            if (found != expected).any():
                row = int((found != expected).argmax())
                raise self.error(
                    row, f"the {noun} is contradictory: {expected[row]} in {first!r} and {found[row]} in {name!r}."
                )

    def _flatten(self, name: str, kinds: str) -> tuple[list[Ints], NDArray[Any]]:
        """Return the lengths of the lists at each level of a column, and all values."""
        compute = optional_module("pyarrow.compute", "Parquet files")
        array = self.table[name]
        array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
        levels, owners = [], np.arange(len(array))
        while True:
            if array.null_count:
                row = int(owners[np.asarray(array.is_null()).argmax()])
                raise self.error(row, f"column {name!r}: there is a missing value.")
            if not _is_list(array.type):
                break
            levels.append(np.asarray(compute.list_value_length(array)).astype(np.int64))
            array, owners = array.flatten(), np.repeat(owners, levels[-1])
        values = np.asarray(array.to_numpy(zero_copy_only=False))
        if not len(values) and str(array.type) == "null":  # an empty column of no known type
            values = np.empty(0, np.int64)
        is_text = "string" in str(array.type)
        if values.dtype.kind not in kinds or (values.dtype == object and not is_text):
            numbers = [] if "i" not in kinds else ["numbers"] if "f" in kinds else ["whole numbers"]
            expected = " or ".join(numbers + ["strings"] * ("O" in kinds))
            raise DatasetError(f"{self.path}: column {name!r} must hold {expected}; it holds {array.type}.")
        return levels, values


def _is_list(kind: Any) -> bool:
    return hasattr(kind, "value_type") and "list" in str(kind).split("<")[0]
