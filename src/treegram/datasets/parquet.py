"""Parquet files with one row per graph, in the layout of graph data sets on Hugging Face.

That layout has the columns ``edge_index`` (two lists), ``node_feat`` and ``edge_attr`` (a list of numbers per node or edge),
``y`` (a list) and ``num_nodes``. We add ``node_label`` and ``edge_label``, lists of whole numbers or strings, ``graph_name``,
``node_name`` and ``graph_attr``, and the entry "treegram" in the metadata, JSON, with what the columns do not show. Other readers
ignore these.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
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
from treegram._core.types import Floats, Ints
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
_COLUMN_NAMES = ("attribute_names", "edge_attribute_names", "graph_attribute_names")


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

    Files of :func:`save_parquet` give an equal collection back. Other files in the layout of graph data sets on Hugging Face
    have ``edge_index``, and may have ``node_feat``, ``edge_attr``, ``y`` and ``num_nodes``.

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
        Column with the class or number of each graph.
    one_hot : bool, slice or sequence of int, default=False
        Components of ``attributes`` that encode the label in one-hot form, as in :meth:`Graphs.from_pyg`.
    directed : bool, optional
        Whether edges are directed. By default what :func:`save_parquet` has recorded, else False.

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
        Once, if there are columns that are not used.

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
    reader.warn_of_unused()
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
    reader = _Reader(path, **{**_DEFAULTS, **kwargs})
    reader.warn_of_unused()
    return ((graphs, graphs.targets) for graphs in reader.read(int(chunk_size)))


def save_parquet(graphs: Any, path: str | os.PathLike[str], y: ArrayLike | None = None) -> None:
    """Write graphs to a Parquet file with one row per graph.

    :func:`load_parquet` gives an equal collection back, numbers to the last bit.

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
        If a later collection holds other kinds of data than the first, or the file cannot be written.

    See Also
    --------
    load_parquet : Read such a file.
    save_tu : Write text files, which other readers of the TU format know.

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
        # Without dictionaries of values, which measured vectors do not repeat, files are faster to read and mostly smaller.
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
        yield _with_targets(as_graphs(graphs), y)
        return
    if y is not None:
        raise DatasetError("y can be passed with a collection or a list of graphs; an iterator has its own targets.")
    for item in graphs:
        yield _with_targets(*item) if isinstance(item, tuple) else as_graphs(item)


def _with_targets(graphs: Graphs, y: ArrayLike | None) -> Graphs:
    return graphs if y is None else graphs.assign(targets=y)


def _to_table(graphs: Graphs) -> Any:
    """Convert graphs to an Arrow table; its metadata is what the columns do not show."""
    arrow = _import_arrow()
    nodes, arcs = graphs.offsets, graphs.indptr[graphs.offsets]
    notes: dict[str, Any] = {"directed": graphs.directed, "json": []}
    notes |= {name: getattr(graphs, name) for name in _COLUMN_NAMES if getattr(graphs, name) is not None}
    columns = {"edge_index": _edge_index(graphs, np.diff(arcs))}
    for name, starts, vectors in (
        ("node_feat", nodes, graphs.attributes),
        ("edge_attr", arcs, graphs.edge_attributes),
        ("graph_attr", None, graphs.graph_attributes),
    ):
        if vectors is not None:
            columns[name] = _vectors(vectors) if starts is None else _lists(starts, _vectors(vectors))
            notes[f"width of {name}"] = vectors.shape[1]
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
    columns["num_nodes"] = arrow.array(graphs.sizes)
    if graphs.targets is not None:
        columns["y"] = _targets(graphs.targets)
    return arrow.table(columns, metadata={_KEY: json.dumps(notes)})


def _lists(offsets: Ints, values: Any) -> Any:
    arrow = _import_arrow()
    return arrow.ListArray.from_arrays(offsets.astype(np.int32), arrow.array(values))


def _vectors(rows: Floats) -> Any:
    return _lists(np.arange(len(rows) + 1) * rows.shape[1], rows.ravel())


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
    """Return labels as whole numbers or strings, or as JSON, which ``notes`` then says."""
    if all(type(value) is int and abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)[codes]
    arrow = _import_arrow()
    texts: Sequence[Any] = values
    if not all(isinstance(value, str) and value.isprintable() for value in values):  # Arrow takes no half characters
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
    arrow = _import_arrow()
    rows = targets.reshape(len(targets), -1) if len(targets) else targets.reshape(0, 1)
    kind = arrow.string() if rows.dtype.kind in "UO" else None
    return _lists(np.arange(len(rows) + 1) * rows.shape[1], arrow.array(rows.ravel(), type=kind))


# -------------------------------------------------------------------- reading


class _Reader:
    """An open file, and the roles of its columns."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        one_hot: bool | slice | Sequence[int] = False,
        directed: bool | None = None,
        **columns: str | None,
    ) -> None:
        for role in columns.keys() - _DEFAULTS.keys():
            raise TypeError(f"iter_parquet() got an unexpected keyword argument {role!r}")
        parquet = optional_module("pyarrow.parquet", "Parquet files")
        self.path = os.fspath(Path(path).expanduser())
        self.file = self._guarded(lambda: parquet.ParquetFile(self.path))
        self.names = self.file.schema_arrow.names
        if len(set(self.names)) < len(self.names) or "edge_index" not in self.names:
            raise DatasetError(
                f"{self.path}: expected one row per graph with a column 'edge_index', and distinct column names; it has "
                f"{', '.join(map(repr, self.names)) or 'no columns'}."
            )
        self.notes = self._read_notes(self.file.schema_arrow.metadata or {})
        self.directed = bool(self.notes.get("directed", False) if directed is None else directed)
        self.one_hot = one_hot
        if one_hot is not False:
            columns["label"] = None
        for first, second in (("label", "attributes"), ("edge_label", "edge_attributes")):
            if columns[first] == columns[second] == _DEFAULTS[second]:
                columns[second] = None
        own = _OWN if _KEY in (self.file.schema_arrow.metadata or {}) else {}
        self.columns = {role: name for role, name in (columns | own).items() if name is not None and name in self.names}
        for role, name in columns.items():
            if name is not None and name not in (*self.names, _DEFAULTS[role]):
                raise DatasetError(
                    f"{self.path}: {role}: there is no column {name!r}; there are {', '.join(map(repr, self.names))}"
                    f"{suggest(name, self.names) or '.'}"
                )

    def warn_of_unused(self) -> None:
        """Warn of columns without a role."""
        unused = set(self.names).difference(self.columns.values(), ("edge_index", "num_nodes"))
        if unused:
            shown = ", ".join(sorted(map(repr, unused)))
            warnings.warn(f"{self.path}: these columns are not used: {shown}.", UserWarning, stacklevel=3)

    def read(self, n_rows: int) -> Iterator[Graphs]:
        """Yield the graphs of n_rows rows at a time."""
        wanted = [name for name in self.names if name in {"edge_index", "num_nodes", *self.columns.values()}]
        batches = self._guarded(lambda: self.file.iter_batches(n_rows, columns=wanted))
        first_row = 0
        while (batch := self._guarded(lambda: next(batches, None))) is not None:
            yield self._convert(batch, first_row)
            first_row += len(batch)

    def read_empty(self) -> Graphs:
        """Return a collection of no graphs, with the kinds of data that the columns have."""
        arrow = _import_arrow()
        return self._convert(arrow.RecordBatch.from_pylist([], schema=self.file.schema_arrow), 0)

    def _guarded(self, action: Callable[[], Any]) -> Any:
        """Return the result of an action, with the errors of pyarrow turned into a DatasetError."""
        try:
            return action()
        except (OSError, ValueError, KeyError, NotImplementedError, TypeError, MemoryError) as error:
            text = " ".join(str(error).split())
            raise DatasetError(f"{self.path}: the file cannot be read as Parquet ({text[:200]}).") from None

    def _read_notes(self, metadata: dict[bytes, bytes]) -> dict[str, Any]:
        try:
            notes: Any = json.loads(metadata.get(_KEY, b"{}"))
        except (ValueError, RecursionError):
            notes = None
        if not isinstance(notes, dict):
            raise DatasetError(f"{self.path}: the metadata 'treegram' cannot be read.")
        return notes

    def _convert(self, batch: Any, first_row: int) -> Graphs:
        """Convert some rows to graphs."""
        data = {role: _Column(batch[name], name, self.path, first_row) for role, name in self.columns.items()}
        edges = _Column(batch["edge_index"], "edge_index", self.path, first_row)
        n_edges, sources, ends = edges.pairs()
        counts: dict[str, Ints] = {}
        if "num_nodes" in self.names:
            counts["num_nodes"] = _Column(batch["num_nodes"], "num_nodes", self.path, first_row).whole_numbers()
        labels = self._read_labels("label", data, counts)
        vectors = self._read_vectors("attributes", data, counts)
        if self.one_hot is not False and vectors is not None:
            where = f"{self.path}: column {self.columns['attributes']!r}"
            labels, vectors = split_one_hot(vectors, self.one_hot, where)
        edge_counts: dict[str, Ints] = {}
        edge_labels = self._read_labels("edge_label", data, edge_counts)
        edge_vectors = self._read_vectors("edge_attributes", data, edge_counts)
        for role, found in edge_counts.items():
            if (found != n_edges).any():
                row = int((found != n_edges).argmax())
                raise data[role].error(row, f"expected {n_edges[row]} entries, one per edge; got {found[row]}.")
        owners = np.repeat(np.arange(len(n_edges)), n_edges)
        sizes = _graph_sizes(edges, counts, owners, np.maximum(sources, ends))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        try:
            graphs = Graphs.from_arrays(
                offsets,
                shift_edges(np.stack([sources, ends], axis=1), owners, offsets),
                labels=labels,
                attributes=vectors,
                edge_labels=edge_labels,
                edge_attributes=edge_vectors,
                directed=self.directed,
                targets=data["targets"].targets() if "targets" in data else None,
            )
            return graphs.assign(**self._extras(data))
        except InvalidGraphError as error:
            graph = re.match(r"Graph (\d+): (.*)", str(error), re.DOTALL)
            text = f"row {first_row + int(graph[1])}: {graph[2]}" if graph else str(error)
            raise DatasetError(f"{self.path}: {text}") from None

    def _extras(self, data: dict[str, _Column]) -> dict[str, Any]:
        """Return names, and numbers about whole graphs."""
        found: dict[str, Any] = {}
        if "graph_names" in data:
            found["graph_names"] = data["graph_names"].strings(0)
        if "node_names" in data:
            found["node_names"] = data["node_names"].strings(1)
        if "graph_attributes" in data:
            rows = data["graph_attributes"].targets()
            width = self.notes.get("width of graph_attr")
            found["graph_attributes"] = rows.reshape(len(rows), width if isinstance(width, int) else -1)
        for role in ("attributes", "edge_attributes", "graph_attributes"):
            name = role.replace("attributes", "attribute_names")
            if role in data and name in self.notes and not (role == "attributes" and self.one_hot is not False):
                found[name] = self.notes[name]
        return found

    def _read_labels(self, role: str, data: dict[str, _Column], counts: dict[str, Ints]) -> NDArray[Any] | None:
        """Read discrete labels: whole numbers or rows of them, strings, or what JSON in strings describes."""
        if role not in data:
            return None
        column = data[role]
        if not column.holds_strings():
            counts[role], rows = column.vectors("iub")
            return rows
        (counts[role],), values, _ = column.flatten(1)
        encoded = values if hasattr(values, "dictionary") else values.dictionary_encode()
        known = encoded.dictionary.to_pylist()
        if column.name in self.notes.get("json", ()):
            known = [parse_label(text.encode(), f"{self.path}: column {column.name!r}") for text in known]
        labels = np.empty(len(known), dtype=object)
        labels[:] = known
        return labels[np.asarray(encoded.indices)]

    def _read_vectors(self, role: str, data: dict[str, _Column], counts: dict[str, Ints]) -> NDArray[Any] | None:
        if role not in data:
            return None
        counts[role], rows = data[role].vectors()
        width = self.notes.get(f"width of {data[role].name}")
        return rows.reshape(0, width) if not len(rows) and isinstance(width, int) else rows


def _graph_sizes(edges: _Column, counts: dict[str, Ints], owners: Ints, largest: Ints) -> Ints:
    """Return the number of nodes of each row: as columns say, or else from the largest node of an edge."""
    if not counts:
        sizes = np.zeros(len(edges.array), np.int64)
        np.maximum.at(sizes, owners, largest + 1)
        return sizes
    sizes, *others = counts.values()
    for other in others:
        if (other != sizes).any():
            row = int((other != sizes).argmax())
            raise edges.error(row, f"the number of nodes is contradictory: {sizes[row]} and {other[row]}.")
    is_wrong = (sizes < 0) | (sizes > MAX_NODES)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise edges.error(row, f"the number of nodes must be from 0 to {MAX_NODES}; got {sizes[row]}.")
    return sizes


@dataclass(frozen=True)
class _Column:
    """One column of some consecutive rows; ``path`` and ``first_row`` are for messages."""

    array: Any
    name: str
    path: str
    first_row: int

    def error(self, row: int, text: str) -> DatasetError:
        """Return the error for a row, counted within these rows."""
        return DatasetError(f"{self.path}: row {self.first_row + row}, column {self.name!r}: {text}")

    def whole_numbers(self) -> Ints:
        """Return one whole number per row."""
        return self._numbers(self.flatten(0)[1], "iu").astype(np.int64)

    def pairs(self) -> tuple[Ints, Ints, Ints]:
        """Return the number of edges of each row, and the sources and ends of all edges."""
        (n_lists, lengths), values, _ = self.flatten(2)
        if (n_lists != 2).any():
            row = int((n_lists != 2).argmax())
            raise self.error(row, f"expected two lists, the sources and the ends of the edges; got {n_lists[row]}.")
        if (lengths[::2] != lengths[1::2]).any():
            row = int((lengths[::2] != lengths[1::2]).argmax())
            raise self.error(
                row, f"expected two lists of one length; got {lengths[2 * row]} and {lengths[2 * row + 1]}."
            )
        nodes = self._numbers(values, "iu").astype(np.int64)
        is_source = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
        return lengths[::2], nodes[is_source], nodes[~is_source]

    def vectors(self, kinds: str = "iufb") -> tuple[Ints, NDArray[Any]]:
        """Return the number of vectors of each row, and all vectors; single numbers are vectors of length 1."""
        if not _is_list(self.array.type) or not _is_list(self.array.type.value_type):
            (counts,), values, _ = self.flatten(1)
            return counts, self._numbers(values, kinds)[:, None]
        (counts, lengths), values, _ = self.flatten(2)
        width = int(lengths[0]) if len(lengths) else 0
        if (lengths != width).any():
            i = int((lengths != width).argmax())
            row = int(np.repeat(np.arange(len(counts)), counts)[i])
            raise self.error(row, f"expected lists of {width} numbers, as before; got {lengths[i]}.")
        return counts, self._numbers(values, kinds).reshape(len(lengths), width)

    def holds_strings(self) -> bool:
        """Return whether rows are lists of strings."""
        return _is_list(self.array.type) and "string" in str(self.array.type.value_type)

    def strings(self, depth: int) -> list[str]:
        """Return the strings of all rows, or of the list in each row."""
        values = self.flatten(depth)[1]
        if "string" not in str(values.type):
            raise DatasetError(f"{self.path}: column {self.name!r} must hold strings; it holds {values.type}.")
        found: list[str] = values.to_pylist()
        return found

    def targets(self) -> NDArray[Any]:
        """Return one value, or one row of values, per row; a list in a list counts as its contents."""
        depth, kind = 0, self.array.type
        while _is_list(kind):
            depth, kind = depth + 1, kind.value_type
        _, values, owners = self.flatten(depth)
        counts = np.bincount(owners, minlength=len(self.array))
        if len(counts) and (counts != counts[0]).any():
            row = int((counts != counts[0]).argmax())
            raise self.error(row, f"expected {counts[0]} values, as in the row before; got {counts[row]}.")
        found = np.asarray(values.to_numpy(zero_copy_only=False))
        if "string" in str(values.type):
            found = np.array(found.tolist(), dtype=str) if len(found) else found
        elif found.dtype.kind not in "iufb":
            raise DatasetError(
                f"{self.path}: column {self.name!r} must hold numbers or strings; it holds {values.type}."
            )
        rows = found.reshape(len(counts), -1) if len(counts) else found[:, None]
        return rows[:, 0] if rows.shape[1] == 1 else rows

    def flatten(self, depth: int) -> tuple[list[Ints], Any, Ints]:
        """Return the lengths of the lists at each level, all values, and the row of each value."""
        arrow_compute = optional_module("pyarrow.compute", "Parquet files")
        levels, array, owners = [], self.array, np.arange(len(self.array))
        for _ in range(depth):
            if not _is_list(array.type):
                kind = "a list" if depth == 1 else "lists of lists"
                raise DatasetError(
                    f"{self.path}: column {self.name!r} must hold {kind} in each row; it holds {self.array.type}."
                )
            self._refuse_nulls(array, owners, "a missing list")
            lengths = np.asarray(arrow_compute.list_value_length(array)).astype(np.int64)
            levels.append(lengths)
            array, owners = array.flatten(), np.repeat(owners, lengths)
        self._refuse_nulls(array, owners, "a missing value")
        return levels, array, owners

    def _refuse_nulls(self, array: Any, owners: Ints, noun: str) -> None:
        if array.null_count:
            raise self.error(int(owners[np.asarray(array.is_null()).argmax()]), f"there is {noun}.")

    def _numbers(self, values: Any, kinds: str) -> NDArray[Any]:
        numbers = np.asarray(values.to_numpy(zero_copy_only=False))
        if numbers.dtype.kind in kinds:
            return numbers
        if not len(numbers) and numbers.dtype == object:  # an empty column of no known type
            return np.empty(0, np.int64)
        noun = "whole numbers" if "f" not in kinds else "numbers"
        raise DatasetError(f"{self.path}: column {self.name!r} must hold {noun}; it holds {values.type}.")


def _is_list(kind: Any) -> bool:
    return hasattr(kind, "value_type") and "list" in str(kind).split("<")[0]
