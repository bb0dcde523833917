"""Data sets in the TU text format: find the folder, read it whole or in chunks, and write one.

``load_tu`` and ``iter_tu`` share all checks, so they accept the same folders with the same messages. The one exception:
``load_tu`` also reads folders whose nodes or edges are not listed graph by graph.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.files import scratch_folder
from treegram._core.params import Whole, check_value
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.datasets.fetch import data_home, fetch, is_known, unknown_set
from treegram.datasets.table import (
    LARGEST,
    Block,
    LabelNames,
    check_named,
    class_names,
    join_blocks,
    read_blocks,
    read_label_names,
    with_label_names,
)
from treegram.graphs import Graphs

__all__ = ["find_folder", "iter_tu", "load_tu", "save_tu"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_REQUIRED = ("A", "graph_indicator")
_NODE_TABLES = ("node_labels", "node_attributes")
_EDGE_TABLES = ("edge_labels", "edge_attributes")
_GRAPH_TABLES = ("graph_labels", "graph_attributes")
_NAME_TABLES = ("node_label_names", "edge_label_names", "graph_label_names")
_MAX_EMPTY_GRAPHS = 1_000_000  # a larger gap between graph ids is a mistake, not a million graphs without nodes

_Files = dict[str, Path]  # the files that exist, by kind


def load_tu(
    name_or_path: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    directed: bool = False,
) -> tuple[Graphs, NDArray[Any] | None]:
    """Load a data set in the TU text format, from a folder or by its name in the public collection.

    A path is the folder that holds the files. A name is looked up as a folder in the working directory, then in the data
    directory; a data set that is not there is downloaded once and checked against known SHA-256 sums (with a warning if
    there are none).

    Parameters
    ----------
    name_or_path : str or path-like
        A folder with ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and so on, or a name such as ``"ENZYMES"``.
    data_dir : str or path-like, optional
        Folder that holds one folder per data set. By default the environment variable ``TREEGRAM_DATA``, else
        ``treegram`` in the user's cache directory.
    download : bool, default=True
        Whether a missing data set may be downloaded. The environment variable ``TREEGRAM_MIRROR`` replaces
        https://www.chrsmrrs.com/graphkerneldatasets as the address of ``NAME.zip``.
    directed : bool, default=False
        Whether a line "a, b" means an edge from a to b only. The sets of the collection are undirected.

    Returns
    -------
    graphs : Graphs
        The graphs, in the order of their ids; ids without nodes are graphs without nodes. Several columns of node or edge
        labels make tuples. Labels and classes that :func:`save_tu` has named get their names back. Attributes of nodes
        and edges are real vectors; graph attributes next to graph labels are ``graphs.graph_attributes``.
    y : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        The graph labels as they are (-1 and 1 stay -1 and 1), else the graph attributes, else None; also kept as
        ``graphs.targets``.

    Raises
    ------
    DatasetError
        If the data set cannot be found, downloaded or read; the message names the file and line.

    Warns
    -----
    UserWarning
        Once, if the graphs do not show everything in the files: self loops, repeated lines, and edge attributes that differ between the two directions of an edge, unless ``directed=True``.

    See Also
    --------
    iter_tu : Read a data set that does not fit into memory.
    save_tu : Write a collection in this format.

    Notes
    -----
    A path takes precedence over a name, so a folder ``./ENZYMES`` hides the data set of that name. Numbers are the same as
    Python reads them, to the last bit.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import Graphs, load_tu, save_tu
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tu(Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], targets=[-1, 1]), folder, name="PATHS")
    ...     load_tu(folder)
    (Graphs(2 graphs, 5 nodes, 3 edges, undirected, no labels, targets), array([-1,  1]))
    """
    folder = find_folder(name_or_path, data_dir, download=download)
    graphs, notes = _Reader(find_files(folder), directed=directed).read()
    if notes:
        warnings.warn(f"{folder}: {' '.join(notes)}", UserWarning, stacklevel=2)
    return graphs, None if graphs.targets is None else graphs.targets.copy()


def iter_tu(
    name_or_path: str | os.PathLike[str],
    chunk_size: Any = 1000,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    directed: bool = False,
) -> Iterator[tuple[Graphs, NDArray[Any] | None]]:
    """Iterate over a data set in the TU text format, a chunk of graphs at a time.

    Parameters
    ----------
    name_or_path : str or path-like
        A folder or a name, as in :func:`load_tu`. Nodes and edges must be listed graph by graph, as in the public
        collection; :func:`load_tu` reads them in any order.
    chunk_size : int, default=1000
        Number of graphs per chunk; the last chunk may be smaller.
    data_dir, download, directed : optional
        As in :func:`load_tu`.

    Yields
    ------
    graphs : Graphs
        The next graphs, in the order of their ids.
    y : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        Their targets.

    Raises
    ------
    DatasetError
        If the files cannot be read, or not in chunks; errors in a table are raised when the chunk is reached.

    Warns
    -----
    UserWarning
        As :func:`load_tu`, after the last chunk.

    Notes
    -----
    Memory is that of one chunk, plus the size and the target of every graph. Many data sets are sorted by class: shuffle
    such data before a model learns from it chunk by chunk.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import iter_tu, make_synthetic, save_tu
    >>> graphs, y = make_synthetic(10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tu(graphs, folder, name="TEN")
    ...     [len(chunk) for chunk, y in iter_tu(folder, chunk_size=4)]
    [4, 4, 2]
    """
    check_value("chunk_size", "iter_tu", chunk_size, (Whole(1),))
    folder = find_folder(name_or_path, data_dir, download=download)
    return _Reader(find_files(folder), directed=directed).read_chunks(int(chunk_size))


def save_tu(graphs: Graphs, folder: str | os.PathLike[str], name: str | None = None) -> None:
    """Write a collection as a folder in the TU text format.

    :func:`load_tu` gives an equal collection back, numbers to the last bit, except for names. The format knows only whole numbers as labels:
    other labels and targets, such as strings, are written as numbers, with an additional file that names them.

    Parameters
    ----------
    graphs : Graphs
        The collection. Tuples of whole numbers become several columns of labels; whole targets become graph labels,
        other numbers graph attributes.
    folder : str or path-like
        The folder to create. It may exist if it is empty; its parent must exist.
    name : str, optional
        Name of the data set, the prefix of each file; by default that of the folder.

    Raises
    ------
    DatasetError
        If the folder is not empty or cannot be written, or if the format cannot hold the collection: without nodes,
        with a last graph that has neither nodes nor a target, with vectors of length 0, or with graph attributes but without classes.

    See Also
    --------
    load_tu : Read a folder in this format.

    Notes
    -----
    Line ``i + 1`` of ``NAME_node_label_names.txt`` is the label with the number ``i`` in ``NAME_node_labels.txt``, as JSON:
    ``"C"``, ``2.5`` or ``["C", 1]`` for a tuple. ``NAME_edge_label_names.txt`` and ``NAME_graph_label_names.txt`` work the
    same way. Other readers of the format ignore these files. Numbers are assigned per folder, so the numbers of two folders
    cannot be compared.

    The format records neither names of graphs, nodes and attributes, which :func:`save_parquet` does, nor whether edges are
    directed: load directed graphs with ``directed=True``.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import Graphs, load_tu, save_tu
    >>> graphs = Graphs.from_edges([[(0, 1)], []], attributes=[[0.1, 1e-9], [7.0]], targets=[0.5, 2.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tu(graphs, folder, name="TINY")
    ...     load_tu(folder)[0] == graphs
    True
    """
    goal = Path(folder).expanduser().absolute()
    name = goal.name if name is None else name
    if not _NAME.fullmatch(name):
        raise DatasetError(f"name must be letters, digits and _ . + -, and begin with a letter or digit; got {name!r}.")
    _check_storable(graphs)
    files = _tables(graphs)
    try:
        _write_folder(goal, {f"{name}_{kind}": lines for kind, lines in files.items()})
    except OSError as error:
        raise DatasetError(f"The folder {goal} cannot be written ({error.strerror or error}).") from None


# -------------------------------------------------------------------- where the files are


def find_folder(
    name_or_path: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None, *, download: bool
) -> Path:
    """Return the folder of a data set, after downloading it if necessary."""
    path = Path(name_or_path).expanduser()
    if _set_names(path):
        return path
    if not isinstance(name_or_path, str) or {"/", os.sep} & set(name_or_path) or path.is_absolute():
        return _check_folder(path)
    name, home = name_or_path, data_home(data_dir)
    if not _NAME.fullmatch(name):  # only a plain name is ever joined to the data directory
        raise unknown_set(name, home)
    folder = home / name
    if folder.is_dir() and any(folder.iterdir()):
        return folder
    if download:
        return fetch(name, home, lambda unpacked: _Reader(find_files(unpacked), directed=False).read())
    if is_known(name):
        raise DatasetError(f"The data set {name!r} is not in {home}; load it with download=True, or pass its folder.")
    raise unknown_set(name, home)


def _set_names(folder: Path) -> list[str]:
    """Return the names of the data sets in a folder, from its files."""
    if not folder.is_dir():
        return []
    endings = [f"_{kind}.txt" for kind in _REQUIRED]
    return sorted({file.name.removesuffix(ending) for ending in endings for file in folder.glob("*" + ending)})


def _check_folder(folder: Path) -> Path:
    if not _set_names(folder):
        if folder.is_file():
            raise DatasetError(
                f"{folder} is a file; expected a folder with data in the TU format. Other files must end in .parquet (graphs), "
                "or .smi, .sdf, .csv or .tsv (molecules)."
            )
        problem = "holds no NAME_A.txt" if folder.is_dir() else "does not exist"
        raise DatasetError(f"The folder {folder} {problem}; expected a folder with data in the TU format.")
    return folder


def find_files(folder: Path) -> _Files:
    """Return the files of the one data set in a folder."""
    names = _set_names(_check_folder(folder))
    if len(names) > 1 and folder.name not in names:
        raise DatasetError(f"{folder} holds several data sets ({', '.join(names)}); give each a folder of its own.")
    name = names[0] if len(names) == 1 else folder.name
    kinds = (*_REQUIRED, *_NODE_TABLES, *_EDGE_TABLES, *_GRAPH_TABLES, *_NAME_TABLES)
    files = {kind: folder / f"{name}_{kind}.txt" for kind in kinds}
    for kind, path in files.items():
        if not os.path.lexists(path):
            if kind in _REQUIRED:
                raise DatasetError(f"{path} is missing; a TU data set needs it.")
        elif not path.is_file():
            raise DatasetError(
                f"{path} is not a regular file, or a link to a file that does not exist (git annex get and dvc pull fetch "
                "such files)."
            )
    return {kind: path for kind, path in files.items() if path.is_file()}


# -------------------------------------------------------------------- the reader


class _Reader:
    """Reads the files of one data set, whole or in chunks. Nodes and graphs are numbered from 1 in files, from 0 in arrays."""

    def __init__(self, files: _Files, *, directed: bool) -> None:
        self.files, self.directed = files, directed
        self.names = read_label_names(files)
        self.targets, self.graph_attributes = _read_targets(files, self.names.get("graph_labels"))
        self.skipped: set[str] = set()  # tables that undirected graphs cannot hold
        self.n_loops = self.n_repeated = 0

    def read(self) -> tuple[Graphs, list[str]]:
        """Return all graphs, and sentences about what the graphs do not show."""
        owners = join_blocks(_owner_blocks(self.files["graph_indicator"]))[:, 0] - 1
        largest = int(owners.argmax())
        n_graphs = self._count_graphs(int(owners[largest]) + 1, largest + 1, len(owners))
        sizes = np.bincount(owners, minlength=n_graphs)
        edges = join_blocks(_edge_blocks(self.files["A"], len(owners), owners.__getitem__)) - 1
        tables = {kind: join_blocks(self._blocks(kind, len(owners))) for kind in self._present(_NODE_TABLES)}
        tables |= {kind: join_blocks(self._blocks(kind, len(edges))) for kind in self._present(_EDGE_TABLES)}
        pairs = edges
        if (np.diff(owners) < 0).any():
            order = np.argsort(owners, kind="stable")
            pairs = np.argsort(order)[edges]
            tables |= {kind: tables[kind][order] for kind in self._present(_NODE_TABLES)}
        if (
            not self.directed
            and "edge_attributes" in tables
            and _depends_on_direction(edges, tables["edge_attributes"])
        ):
            self.skipped.add("edge_attributes")
        return self._build(slice(None), sizes, edges, pairs, tables, 0), self._notes()

    def read_chunks(self, chunk_size: int) -> Iterator[tuple[Graphs, NDArray[Any] | None]]:
        """Yield the graphs in chunks."""
        sizes = self._read_sizes()
        if not self.directed and "edge_attributes" in self.files:
            chunks = self._read_tables(sizes, chunk_size, ("edge_attributes",))
            if any(_depends_on_direction(edges, rows["edge_attributes"]) for edges, _, rows in chunks):
                self.skipped.add("edge_attributes")
        starts = range(0, len(sizes), chunk_size)
        first_node = 0
        for start, (edges, line, tables) in zip(
            starts, self._read_tables(sizes, chunk_size, (*_NODE_TABLES, *_EDGE_TABLES)), strict=True
        ):
            chosen = slice(start, start + chunk_size)
            graphs = self._build(chosen, sizes[chosen], edges, edges - first_node, tables, line)
            first_node += graphs.n_nodes
            yield graphs, None if graphs.targets is None else graphs.targets.copy()
        if notes := self._notes():
            warnings.warn(f"{self.files['A'].parent}: {' '.join(notes)}", UserWarning, stacklevel=2)

    def _read_sizes(self) -> Ints:
        """Return the number of nodes of each graph; the nodes must be listed graph by graph."""
        path = self.files["graph_indicator"]
        ids, counts, last = [], [], 1
        for block in _owner_blocks(path):
            owners = block.rows[:, 0]
            _check_order(owners, last, path, block.first_row, "nodes")
            last = int(owners[-1])
            found, n_found = np.unique(owners, return_counts=True)
            ids.append(found)
            counts.append(n_found)
        owners, n_nodes = np.concatenate(ids), np.concatenate(counts)
        first_line = int(n_nodes[owners < last].sum()) + 1
        sizes = np.zeros(self._count_graphs(last, first_line, int(n_nodes.sum())), np.int64)
        np.add.at(sizes, owners - 1, n_nodes)
        return sizes

    def _read_tables(
        self, sizes: Ints, chunk_size: int, kinds: tuple[str, ...]
    ) -> Iterator[tuple[Ints, int, dict[str, NDArray[Any]]]]:
        """Yield the edges, the number of lines before them, and the rows of some other tables, chunk by chunk."""
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        n_nodes = int(offsets[-1])
        path = self.files["A"]
        pairs = _Rows(_edge_blocks(path, n_nodes, lambda nodes: np.searchsorted(offsets, nodes, "right") - 1))
        tables = {kind: _Rows(self._blocks(kind)) for kind in self._present(kinds)}
        for start in range(0, len(sizes), chunk_size):
            first, last = offsets[start], offsets[min(start + chunk_size, len(sizes))]
            line = pairs.n_taken
            edges = pairs.take_up_to(last)
            _check_order(edges[:, 0], first + 1, path, line, "edges")
            lengths = {kind: int(last - first) if kind in _NODE_TABLES else len(edges) for kind in tables}
            rows = {kind: table.take(lengths[kind]) for kind, table in tables.items()}
            if any(len(rows[kind]) < lengths[kind] for kind in rows):
                break
            yield edges - 1, line, rows
        n_edges = pairs.count_all()
        for kind, table in tables.items():
            _check_length(self.files[kind], table.count_all(), n_nodes if kind in _NODE_TABLES else n_edges, kind)

    def _present(self, kinds: tuple[str, ...]) -> list[str]:
        return [kind for kind in kinds if kind in self.files and kind not in self.skipped]

    def _blocks(self, kind: str, length: int | None = None) -> Iterator[Block]:
        """Yield a table with one row per node or edge; ``length`` is the number of rows, if it is known."""
        n_rows = 0
        path, names = self.files[kind], self.names.get(kind)
        may_be_empty = length == 0 or (length is None and kind in _EDGE_TABLES)
        for block in read_blocks(path, whole=not kind.endswith("attributes"), may_be_empty=may_be_empty):
            check_named(block, path, names)
            n_rows += len(block.rows)
            yield block
        if length is not None:
            _check_length(path, n_rows, length, kind)

    def _count_graphs(self, largest: int, line: int, n_nodes: int) -> int:
        """Return the number of graphs; ``largest`` is the largest graph id, which is in the line ``line``."""
        where = f"{self.files['graph_indicator']}:{line}"
        if self.targets is None:
            if largest > n_nodes + _MAX_EMPTY_GRAPHS:
                raise DatasetError(f"{where}: graph id {largest} is too large for a data set of {n_nodes} nodes.")
            return largest
        if len(self.targets) < largest:
            path = next(self.files[kind] for kind in _GRAPH_TABLES if kind in self.files)
            raise DatasetError(
                f"{path}:{len(self.targets)}: expected {largest} lines, one per graph, got {len(self.targets)}; "
                f"{where} names graph {largest}."
            )
        return len(self.targets)

    def _build(
        self,
        chosen: slice,
        sizes: Ints,
        edges: Ints,
        pairs: Ints,
        tables: dict[str, NDArray[Any]],
        n_lines_before: int,
    ) -> Graphs:
        """Build the chosen graphs from tables; ``edges`` are numbered as in the files, ``pairs`` as in the collection."""
        edge_data: dict[str, Any] = {
            kind: tables[kind] for kind in _EDGE_TABLES if kind in tables and kind not in self.skipped
        }
        self.n_loops += int(np.count_nonzero(edges[:, 0] == edges[:, 1]))
        self.n_repeated += _count_repeated(edges)
        try:
            graphs = Graphs.from_arrays(
                np.concatenate([[0], np.cumsum(sizes)]),
                pairs,
                labels=tables.get("node_labels"),
                attributes=tables.get("node_attributes"),
                **edge_data,
                directed=self.directed,
                targets=None if self.targets is None else self.targets[chosen],
                graph_attributes=None if self.graph_attributes is None else self.graph_attributes[chosen],
            )
        except InvalidGraphError:
            if not edge_data:
                raise
            raise self._contradiction(edges, edge_data, n_lines_before) from None
        return with_label_names(graphs, self.names)

    def _contradiction(self, edges: Ints, edge_data: dict[str, NDArray[Any]], n_lines_before: int) -> DatasetError:
        """Return the error for an edge that has two labels or two vectors, with both lines."""
        kind, row, first = next(_contradictions(edges, edge_data, directed=self.directed))
        noun = "another label" if kind == "edge_labels" else "other attributes"
        values = [", ".join(map(str, edge_data[kind][i].tolist())) for i in (row, first)]
        hint = (
            ""
            if self.directed
            else f" If {kind.removeprefix('edge_')} depend on the direction, load with directed=True."
        )
        return DatasetError(
            f"{self.files[kind]}:{n_lines_before + row + 1}: the edge ({edges[row, 0] + 1}, {edges[row, 1] + 1}) has {noun} "
            f"here, {values[0]}, than in line {n_lines_before + first + 1}, {values[1]}.{hint}"
        )

    def _notes(self) -> list[str]:
        """Return one sentence for each thing in the files that the graphs do not show."""
        files, found = self.files, []
        if self.skipped:
            found.append(
                f"The edge attributes in {files['edge_attributes'].name} are left out: they differ between the two directions "
                "of an edge. Load with directed=True to keep them."
            )
        where = f"(in {files['A'].name})"
        if self.n_loops:
            found.append(f"{counted(self.n_loops, 'self loop is', 'self loops are')} dropped {where}.")
        if self.n_repeated:
            found.append(f"{counted(self.n_repeated, 'line repeats', 'lines repeat')} an earlier one {where}.")
        return found


class _Rows:
    """A table that is read piece by piece."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._rest = next(blocks).rows
        self.n_taken = 0

    def take(self, n_rows: int) -> NDArray[Any]:
        """Return the next rows; fewer at the end of the table."""
        while len(self._rest) < n_rows and self._read_block():
            pass
        return self._split(n_rows)

    def take_up_to(self, number: int) -> NDArray[Any]:
        """Return the next rows, up to the first row that begins with a larger number."""
        while not (self._rest[:, 0] > number).any() and self._read_block():
            pass
        return self._split(int(np.append(self._rest[:, 0] > number, True).argmax()))

    def count_all(self) -> int:
        """Read the rest of the table, and return its number of rows."""
        return self.n_taken + len(self._rest) + sum(len(block.rows) for block in self._blocks)

    def _read_block(self) -> bool:
        block = next(self._blocks, None)
        if block is not None:
            self._rest = np.concatenate([self._rest, block.rows])
        return block is not None

    def _split(self, n_rows: int) -> NDArray[Any]:
        rows, self._rest = self._rest[:n_rows], self._rest[n_rows:]
        self.n_taken += len(rows)
        return rows


# -------------------------------------------------------------------- tables


def _owner_blocks(path: Path) -> Iterator[Block]:
    """Yield the graph of each node, numbered from 1."""
    for block in read_blocks(path, whole=True, n_columns=1):
        if block.rows.min() < 1:
            row = int((block.rows[:, 0] < 1).argmax())
            raise DatasetError(
                f"{path}:{block.first_row + row + 1}: expected a graph id of 1 or more, got {block.rows[row, 0]}."
            )
        yield block


def _edge_blocks(path: Path, n_nodes: int, owner_of: Callable[[Ints], Ints]) -> Iterator[Block]:
    """Yield node pairs, numbered from 1, each within one graph; ``owner_of`` maps nodes to graphs, both from 0."""
    for block in read_blocks(path, whole=True, n_columns=2, may_be_empty=True):
        edges, first = block.rows, block.first_row + 1
        if edges.size and (edges.min() < 1 or edges.max() > n_nodes):
            row = int(((edges < 1) | (edges > n_nodes)).any(axis=1).argmax())
            raise DatasetError(
                f"{path}:{first + row}: the edge ({edges[row, 0]}, {edges[row, 1]}) names a node that does not exist; "
                f"expected numbers from 1 to {n_nodes}, the number of nodes."
            )
        owners = owner_of(edges - 1)
        crossing = owners[:, 0] != owners[:, 1]
        if crossing.any():
            row = int(crossing.argmax())
            raise DatasetError(
                f"{path}:{first + row}: the edge ({edges[row, 0]}, {edges[row, 1]}) joins two graphs, "
                f"{owners[row, 0] + 1} and {owners[row, 1] + 1}; expected both ends in one graph."
            )
        yield block


def _read_targets(files: _Files, names: LabelNames | None) -> tuple[NDArray[Any] | None, Floats | None]:
    """Return the targets and the graph attributes; without graph labels, the graph attributes are the targets."""
    tables = {kind: files[kind] for kind in _GRAPH_TABLES if kind in files}
    labels, numbers = (
        join_blocks(read_blocks(tables[kind], whole=kind == "graph_labels")) if kind in tables else None
        for kind in _GRAPH_TABLES
    )
    if labels is None:
        return (numbers[:, 0] if numbers is not None and numbers.shape[1] == 1 else numbers), None
    if numbers is not None and len(numbers) != len(labels):
        path = files["graph_attributes"]
        raise DatasetError(
            f"{path}:{len(numbers)}: expected {len(labels)} lines, one per graph label, got {len(numbers)}."
        )
    if names is not None:
        check_named(Block(labels, 0), files["graph_labels"], names)
        return class_names(names)[labels[:, 0]], numbers
    return (labels[:, 0] if labels.shape[1] == 1 else labels), numbers


def _check_length(path: Path, n_rows: int, length: int, kind: str) -> None:
    if n_rows != length:
        noun = "nodes" if kind in _NODE_TABLES else "edges"
        raise DatasetError(f"{path}:{n_rows}: expected {length} lines, one for each of the {noun}, got {n_rows}.")


def _check_order(numbers: Ints, first: int, path: Path, n_lines_before: int, noun: str) -> None:
    """Raise if nodes are not sorted by graph, or if an edge belongs to a graph of an earlier chunk."""
    is_wrong = np.diff(numbers, prepend=first) < 0 if noun == "nodes" else numbers < first
    if is_wrong.any():
        raise DatasetError(
            f"{path}:{n_lines_before + int(is_wrong.argmax()) + 1}: {noun} must be listed graph by graph to be read in "
            "chunks; load_tu reads them in any order."
        )


def _contradictions(
    edges: Ints, edge_data: dict[str, NDArray[Any]], *, directed: bool
) -> Iterator[tuple[str, int, int]]:
    """Yield each table, row and earlier row in which one edge has different data; self loops do not count."""
    for kind, rows in edge_data.items():
        seen: dict[tuple[int, ...], int] = {}
        for row, pair in enumerate(edges.tolist()):
            first = seen.setdefault(tuple(pair if directed else sorted(pair)), row)
            if (rows[row] != rows[first]).any() and pair[0] != pair[1]:
                yield kind, row, first


def _depends_on_direction(edges: Ints, vectors: Floats) -> bool:
    """Return whether some edge has different vectors in its two directions."""
    if not len(edges):
        return False
    size = int(edges.max()) + 1
    arcs, first = np.unique(edges @ np.array([size, 1]), return_index=True)
    back = edges[first] @ np.array([1, size])
    position = np.minimum(np.searchsorted(arcs, back), len(arcs) - 1)
    is_listed = arcs[position] == back
    return bool((vectors[first] != vectors[first[position]])[is_listed].any())


def _count_repeated(edges: Ints) -> int:
    """Count the lines that repeat an earlier line, except for self loops."""
    keys = edges[:, 1] * (int(edges.max(initial=0)) + 1) + edges[:, 0]
    if (keys[1:] > keys[:-1]).all():  # many files are sorted like this
        return 0
    keys = np.sort(keys[edges[:, 0] != edges[:, 1]])
    return int(np.count_nonzero(keys[1:] == keys[:-1]))


# -------------------------------------------------------------------- writing


def _check_storable(graphs: Graphs) -> None:
    if not graphs.n_nodes:
        raise DatasetError(f"A TU folder cannot hold a collection without nodes; got {graphs!r}.")
    if graphs.targets is None and not graphs.sizes[-1]:
        raise DatasetError(
            f"Graph {len(graphs) - 1}, the last one, has no node: without targets a TU folder cannot represent it."
        )
    for name, vectors in (("attributes", graphs.attributes), ("edge attributes", graphs.edge_attributes)):
        if vectors is not None and len(vectors) and not vectors.shape[1]:
            raise DatasetError(f"A TU folder cannot hold {name} of length 0.")


def _write_folder(goal: Path, files: dict[str, list[str]]) -> None:
    if goal.exists() and (not goal.is_dir() or any(goal.iterdir())):
        raise DatasetError(f"The folder {goal} exists and is not empty; nothing was written.")
    with scratch_folder(goal.parent) as work:
        (work / goal.name).mkdir()  # with default permissions; the scratch folder is private
        for file, lines in files.items():
            (work / goal.name / f"{file}.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
        if goal.exists():
            goal.rmdir()  # it is empty; renaming over it would fail on Windows
        (work / goal.name).rename(goal)


def _tables(graphs: Graphs) -> dict[str, list[str]]:
    sources = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)
    pairs = np.stack([sources, graphs.indices], axis=1) + 1
    files = {"A": _join(pairs.tolist()), "graph_indicator": _join((graphs.graph_ids[:, None] + 1).tolist())}
    if graphs.labels is not None:
        files |= _label_files("node_label", graphs.labels, graphs.label_values)
    if graphs.edge_labels is not None:
        files |= _label_files("edge_label", graphs.edge_labels, graphs.edge_label_values)
    if graphs.attributes is not None:
        files["node_attributes"] = _join(graphs.attributes.tolist())
    if graphs.edge_attributes is not None:
        files["edge_attributes"] = _join(graphs.edge_attributes.tolist())
    if graphs.targets is not None:
        files |= _target_files(graphs.targets)
    if graphs.graph_attributes is not None:
        if "graph_labels" not in files or not graphs.graph_attributes.shape[1]:
            raise DatasetError(
                "A TU folder can hold graph attributes only beside targets that are classes, and at least one; save_parquet has no "
                "such limits."
            )
        files["graph_attributes"] = _join(graphs.graph_attributes.tolist())
    return files


def _join(rows: Iterable[Sequence[float]]) -> list[str]:
    """Format one line per row; repr gives the shortest digits that read back as the same double."""
    return [", ".join(map(repr, row)) for row in rows]


def _label_files(kind: str, codes: Ints, values: Sequence[Hashable]) -> dict[str, list[str]]:
    """Format the table of labels, and the file of names if the labels are not whole numbers."""
    used, numbers = np.unique(codes, return_inverse=True)
    labels: list[Any] = [values[code] for code in used]
    names = []
    if all(map(_is_whole, labels)):
        texts = list(map(str, labels))
    elif _are_rows(labels):
        texts = [", ".join(map(str, label)) for label in labels]
    else:
        texts, names = list(map(str, range(len(labels)))), list(map(json.dumps, labels))
    files = {f"{kind}s": [texts[number] for number in numbers.tolist()]}
    return files | ({f"{kind}_names": names} if names else {})


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and abs(value) <= LARGEST


def _are_rows(labels: list[Any]) -> bool:
    """Return whether the labels are tuples of whole numbers, all of one length of at least 2."""
    if not all(isinstance(label, tuple) and all(map(_is_whole, label)) for label in labels):
        return False
    return len({len(label) for label in labels}) == 1 and len(labels[0]) > 1


def _target_files(targets: NDArray[Any]) -> dict[str, list[str]]:
    """Format the targets: whole numbers and strings are classes, other numbers are measured values."""
    rows = targets[:, None] if targets.ndim == 1 else targets
    if rows.ndim != 2 or (targets.ndim == 2 and rows.shape[1] < 2):
        raise DatasetError(f"A TU folder cannot hold targets of shape {targets.shape}.")
    if rows.dtype.kind in "biu" and (not rows.size or int(np.abs(rows.astype(object)).max()) <= LARGEST):
        return {"graph_labels": _join(rows.astype(np.int64).tolist())}
    if rows.dtype.kind == "f" and rows.dtype.itemsize <= 8 and np.isfinite(rows).all():
        return {"graph_attributes": _join(rows.astype(np.float64).tolist())}
    if targets.ndim == 1 and all(isinstance(target, str) and not target.endswith("\0") for target in targets.tolist()):
        classes, numbers = np.unique(targets.astype(object), return_inverse=True)
        return _label_files("graph_label", numbers, classes.tolist())
    raise DatasetError(
        f"A TU folder can hold targets that are whole numbers up to 2^53, finite numbers or strings; got {targets.dtype} {targets!r}."
    )
