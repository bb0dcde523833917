"""Data sets in the TU text format: find the folder, read it whole or in chunks, and write one.

``load_tu`` and ``iter_tu`` share all checks, so they accept the same folders with the same messages. The one exception:
``load_tu`` also reads folders whose nodes or edges are not listed graph by graph.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.files import scratch_folder
from treegram._core.params import Whole, check_value
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.datasets.fetch import data_home, fetch, is_known, unknown_set
from treegram.exceptions import DatasetError, InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.check import number_graphs

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_REQUIRED = ("A", "graph_indicator")
_NODE_TABLES = ("node_labels", "node_attributes")
_EDGE_TABLES = ("edge_labels", "edge_attributes")
_GRAPH_TABLES = ("graph_labels", "graph_attributes")
_MAX_EMPTY_GRAPHS = 1_000_000  # a larger gap between graph ids is a mistake, not a million graphs without nodes
_BLOCK = 1 << 16  # lines of edges that are counted at once
_LARGEST = 2**53 - 1  # up to here, every whole number has its own double
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK_LINE = "there is a blank line in the middle of the file."
_SHOWN = 60  # characters of a file in a message

_Files = dict[str, Path]  # the files that exist, by the name of their table


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
        labels make tuples. Attributes of nodes and edges are real vectors; graph attributes next to graph labels are
        ``graphs.graph_attributes``. Self loops are dropped and repeated edges count once.
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
        Once, if edge attributes are left out because they differ between the two directions of an edge; pass
        ``directed=True`` to keep them.

    See Also
    --------
    iter_tu : Read a data set that does not fit into memory.
    save_tu : Write a collection in this format.

    Notes
    -----
    A path takes precedence over a name, so a folder ``./ENZYMES`` hides the data set of that name. Numbers are those
    that Python would read, bit for bit.

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
    [graphs] = _read(folder, None, directed=directed)
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
        As in :func:`load_tu`.

    Notes
    -----
    Memory is that of one chunk, plus a number per node and the target of every graph. Many data sets are sorted by class: shuffle
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
    chunks = _read(folder, int(chunk_size), directed=directed)
    return ((graphs, None if graphs.targets is None else graphs.targets.copy()) for graphs in chunks)


def save_tu(graphs: Graphs, folder: str | os.PathLike[str], name: str | None = None) -> None:
    """Write a collection as a folder in the TU text format.

    :func:`load_tu` restores an equal collection, bit for bit, except for names. The format supports only whole numbers
    as labels and classes; :func:`save_parquet` writes others.

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
        If the folder is not empty or cannot be written, or if the format cannot hold the collection: with labels or
        classes that are not whole numbers, without nodes, with a last graph that has neither nodes nor a target, with
        vectors of length 0, or with graph attributes but without classes.

    See Also
    --------
    load_tu : Read a folder in this format.

    Notes
    -----
    The format records neither names of graphs, nodes and attributes nor whether edges are directed: load directed graphs with ``directed=True``.

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
    files = _format_tables(graphs)
    try:
        _write_folder(goal, {f"{name}_{table}": lines for table, lines in files.items()})
    except OSError as error:
        raise DatasetError(f"The folder {goal} cannot be written ({error.strerror or error}).") from None


# -------------------------------------------------------------------- where the files are


def find_folder(
    name_or_path: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None, *, download: bool
) -> Path:
    """Return the folder of a data set, after downloading it if necessary."""
    path = Path(name_or_path).expanduser()
    is_path = not isinstance(name_or_path, str) or {"/", os.sep} & set(name_or_path) or path.is_absolute()
    if is_path or _set_names(path):
        return path
    name, home = str(name_or_path), data_home(data_dir)
    if not _NAME.fullmatch(name):  # only a plain name is ever joined to the data directory
        raise unknown_set(name, home)
    folder = home / name
    if folder.is_dir() and any(folder.iterdir()):
        return folder
    if download:
        return fetch(name, home, _check_folder)
    if is_known(name):
        raise DatasetError(f"The data set {name!r} is not in {home}; load it with download=True, or pass its folder.")
    raise unknown_set(name, home)


def _check_folder(folder: Path) -> None:
    """Raise if a downloaded folder cannot be read; ``load_tu`` warns when it reads the folder again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        list(_read(folder, None, directed=False))


def _set_names(folder: Path) -> set[str]:
    """Return the names of the data sets in a folder, from its files."""
    endings = [f"_{table}.txt" for table in _REQUIRED]
    return {file.name.removesuffix(ending) for ending in endings for file in folder.glob("*" + ending)}


def _find_files(folder: Path) -> _Files:
    """Return the files of the one data set in a folder."""
    if folder.is_file():
        raise DatasetError(
            f"{folder} is a file; expected a folder with data in the TU format. Other files must end in .parquet (graphs), "
            "or .smi, .sdf, .csv or .tsv (molecules)."
        )
    names = _set_names(folder)
    if not names:
        problem = "holds no NAME_A.txt" if folder.is_dir() else "does not exist"
        raise DatasetError(f"The folder {folder} {problem}; expected a folder with data in the TU format.")
    if len(names) > 1 and folder.name not in names:
        raise DatasetError(
            f"{folder} holds several data sets ({', '.join(sorted(names))}); give each a folder of its own."
        )
    name = folder.name if folder.name in names else names.pop()
    tables = (*_REQUIRED, *_NODE_TABLES, *_EDGE_TABLES, *_GRAPH_TABLES)
    files = {table: folder / f"{name}_{table}.txt" for table in tables}
    for table, path in files.items():
        if not os.path.lexists(path):
            if table in _REQUIRED:
                raise DatasetError(f"{path} is missing; a TU data set needs it.")
        elif not path.is_file():
            raise DatasetError(
                f"{path} is not a regular file, or a link to a file that does not exist (git annex get and dvc pull fetch "
                "such files)."
            )
    return {table: path for table, path in files.items() if path.is_file()}


# -------------------------------------------------------------------- reading
# Nodes and graphs are numbered from 1 in files, from 0 in arrays.


def _read(folder: Path, chunk_size: int | None, *, directed: bool) -> Iterator[Graphs]:
    """Yield the graphs in chunks, or all at once."""
    files = _find_files(folder)
    targets, graph_attributes = _read_targets(files)
    owners, n_graphs = _read_owners(files, targets)
    order = None if (np.diff(owners) >= 0).all() else np.argsort(owners, kind="stable")
    if chunk_size is not None and order is not None:
        raise _not_in_order(files["graph_indicator"], int((np.diff(owners) < 0).argmax()) + 1, "nodes")
    starts = np.append(np.arange(0, n_graphs, chunk_size or n_graphs), n_graphs)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n_graphs))])
    n_edges = _count_edges(files["A"], owners, offsets[starts]) if chunk_size else [None]
    tables = partial(_read_tables, files, owners, np.diff(offsets[starts]), n_edges)
    names = [name for name in (*_NODE_TABLES, *_EDGE_TABLES) if name in files]
    if not directed and "edge_attributes" in names:
        # A list: the file is read to its end, so that a wrong line is an error even if all lines are left out.
        depends = [_depends_on_direction(edges, rows["edge_attributes"]) for edges, rows in tables(["edge_attributes"])]
        if any(depends):
            names.remove("edge_attributes")
            warnings.warn(
                f"{folder}: The edge attributes in {files['edge_attributes'].name} are left out: they differ between the two "
                "directions of an edge. Load with directed=True to keep them.",
                UserWarning,
                stacklevel=3,
            )
    for (start, stop), (edges, data) in zip(pairwise(starts), tables(names), strict=True):
        pairs = edges - offsets[start]
        if order is not None:
            pairs = np.argsort(order)[edges]
            data |= {name: data[name][order] for name in _NODE_TABLES if name in data}
        try:
            yield Graphs.from_arrays(
                offsets[start : stop + 1] - offsets[start],
                pairs,
                labels=data.get("node_labels"),
                attributes=data.get("node_attributes"),
                edge_labels=data.get("edge_labels"),
                edge_attributes=data.get("edge_attributes"),
                directed=directed,
                targets=None if targets is None else targets[start:stop],
                graph_attributes=None if graph_attributes is None else graph_attributes[start:stop],
            )
        except InvalidGraphError as error:
            raise DatasetError(f"{folder}: {number_graphs(error, 'Graph', int(start))}") from None


def _read_targets(files: _Files) -> tuple[NDArray[Any] | None, Floats | None]:
    """Return the targets and the graph attributes; without graph labels, the graph attributes are the targets."""
    numbers = TextTable(files["graph_attributes"], whole=False).read() if "graph_attributes" in files else None
    if "graph_labels" not in files:
        return (numbers[:, 0] if numbers is not None and numbers.shape[1] == 1 else numbers), None
    labels = TextTable(files["graph_labels"], whole=True).read()
    if numbers is not None and len(numbers) != len(labels):
        raise DatasetError(
            f"{files['graph_attributes']}:{len(numbers)}: expected {len(labels)} lines, one per graph label, got {len(numbers)}."
        )
    return (labels[:, 0] if labels.shape[1] == 1 else labels), numbers


def _read_owners(files: _Files, targets: NDArray[Any] | None) -> tuple[Ints, int]:
    """Return the graph of each node, and the number of graphs."""
    table = TextTable(files["graph_indicator"], whole=True, n_columns=1)
    owners = table.read()[:, 0]
    if owners.min() < 1:
        row = int((owners < 1).argmax())
        raise table.error(row, f"expected a graph id of 1 or more, got {owners[row]}.")
    row, largest = int(owners.argmax()), int(owners.max())
    if targets is None:
        if largest > len(owners) + _MAX_EMPTY_GRAPHS:
            raise table.error(row, f"graph id {largest} is too large for a data set of {len(owners)} nodes.")
        return owners - 1, largest
    if len(targets) < largest:
        path = files["graph_labels" if "graph_labels" in files else "graph_attributes"]
        raise DatasetError(
            f"{path}:{len(targets)}: expected {largest} lines, one per graph, got {len(targets)}; "
            f"{table.path}:{row + 1} names graph {largest}."
        )
    return owners - 1, len(targets)


def _read_edges(table: TextTable, n_rows: int | None, owners: Ints) -> Ints:
    """Return the next node pairs, each within one graph."""
    edges = table.read(n_rows)
    first = table.n_read - len(edges)
    if edges.size and (edges.min() < 1 or edges.max() > len(owners)):
        row = int(((edges < 1) | (edges > len(owners))).any(axis=1).argmax())
        raise table.error(
            first + row,
            f"the edge ({edges[row, 0]}, {edges[row, 1]}) names a node that does not exist; expected numbers from 1 to "
            f"{len(owners)}, the number of nodes.",
        )
    graphs = owners[edges - 1] + 1
    is_crossing = graphs[:, 0] != graphs[:, 1]
    if is_crossing.any():
        row = int(is_crossing.argmax())
        raise table.error(
            first + row,
            f"the edge ({edges[row, 0]}, {edges[row, 1]}) joins two graphs, {graphs[row, 0]} and {graphs[row, 1]}; expected "
            "both ends in one graph.",
        )
    return edges - 1


def _count_edges(path: Path, owners: Ints, first_nodes: Ints) -> list[int]:
    """Count the lines of each chunk of nodes; they must be in the order of the chunks."""
    table = TextTable(path, whole=True, n_columns=2, may_be_empty=True)
    counts = np.zeros(len(first_nodes) - 1, np.int64)
    last = 0
    while len(edges := _read_edges(table, _BLOCK, owners)):
        chunks = np.searchsorted(first_nodes, edges[:, 0], "right") - 1
        steps = np.diff(chunks, prepend=last)
        if (steps < 0).any():
            raise _not_in_order(path, table.n_read - len(edges) + int((steps < 0).argmax()), "edges")
        last = chunks[-1]
        counts += np.bincount(chunks, minlength=len(counts))
    return counts.tolist()


def _read_tables(
    files: _Files, owners: Ints, n_nodes: Ints, n_edges: Sequence[int | None], names: list[str]
) -> Iterator[tuple[Ints, dict[str, NDArray[Any]]]]:
    """Yield the edges and the rows of some other tables, chunk by chunk."""
    pairs = TextTable(files["A"], whole=True, n_columns=2, may_be_empty=True)
    tables = {
        name: TextTable(files[name], whole=name.endswith("labels"), may_be_empty=name in _EDGE_TABLES) for name in names
    }
    for n_chunk_nodes, n_chunk_edges in zip(n_nodes.tolist(), n_edges, strict=True):
        edges = _read_edges(pairs, n_chunk_edges, owners)
        n_rows = dict.fromkeys(_NODE_TABLES, n_chunk_nodes) | dict.fromkeys(_EDGE_TABLES, len(edges))
        data = {name: table.read(n_rows[name] if len(n_nodes) > 1 else None) for name, table in tables.items()}
        if any(len(rows) != n_rows[name] for name, rows in data.items()):
            break
        yield edges, data
    for name, table in tables.items():
        n, noun = (len(owners), "nodes") if name in _NODE_TABLES else (pairs.count_rows(), "edges")
        if table.count_rows() != n:
            raise table.error(table.n_read - 1, f"expected {n} lines, one for each of the {noun}, got {table.n_read}.")


def _not_in_order(path: Path, row: int, noun: str) -> DatasetError:
    return DatasetError(
        f"{path}:{row + 1}: {noun} must be listed graph by graph to be read in chunks; load_tu reads them in any order."
    )


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


# -------------------------------------------------------------------- text tables; every error gives the file, the line, and the offending text


class TextTable:
    """A table of finite or whole numbers that is read from top to bottom, some rows at a time.

    The first line determines whether commas or white space separate the numbers and, without ``n_columns``, how many there are.
    7.0 and 1e3 count as whole numbers. Blank lines may follow the last row.
    """

    def __init__(self, path: Path, *, whole: bool, n_columns: int | None = None, may_be_empty: bool = False) -> None:
        self.path, self.whole = path, whole
        lines = _read_lines(path)
        first = next(lines, b"").removeprefix(_BYTE_ORDER_MARK)
        self._separator = b"," if b"," in first else None
        self.n_columns = n_columns or max(1, len(first.split(self._separator)))
        self.n_read = 0  # row i of the table is in line i + 1 of the file
        self._lines = chain([first], lines) if first.strip() else lines
        if not first.strip():
            if not all(map(bytes.isspace, lines)):
                raise self.error(0, _BLANK_LINE)
            if not may_be_empty:
                raise DatasetError(
                    f"{path}: the file is empty; expected {counted(self.n_columns, 'number')} in each line."
                )

    def read(self, n_rows: int | None = None) -> NDArray[Any]:
        """Return the next rows, by default all that are left; fewer at the end of the table."""
        if n_rows is None and not self.n_read:  # much faster than a list of lines
            text = self.path.read_bytes().rstrip()
            rows = self._parse(os.fspath(self.path), "utf-8-sig", text.count(b"\n") + 1) if text else None
            if rows is not None:
                self.n_read, self._lines = len(rows), iter(())
                return rows
        lines = self._take_lines(n_rows)
        rows = self._parse(lines, "latin-1", len(lines))
        if rows is None:
            raise self._find_error(lines)
        self.n_read += len(rows)
        return rows

    def _parse(self, source: Any, encoding: str, n_rows: int) -> NDArray[Any] | None:
        """Return the rows of a file or of lines, or None if they are not a table."""
        rows = np.empty((0, self.n_columns))
        if n_rows:
            delimiter = None if self._separator is None else self._separator.decode()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter(
                        "ignore"
                    )  # about a table without numbers, which is an error that names the line
                    rows = np.loadtxt(source, delimiter=delimiter, comments=None, ndmin=2, encoding=encoding)
            except ValueError:
                return None
        if rows.shape != (n_rows, self.n_columns) or not np.isfinite(rows).all():
            return None
        if not self.whole:
            return rows
        is_whole = (np.abs(rows) <= _LARGEST) & (rows == np.floor(rows))
        return rows.astype(np.int64) if is_whole.all() else None

    def count_rows(self) -> int:
        """Skip the rest of the table, and return its number of rows."""
        self.n_read += len(self._take_lines(None))
        return self.n_read

    def error(self, row: int, text: str) -> DatasetError:
        """Return an error that names the line of a row."""
        return DatasetError(f"{self.path}:{row + 1}: {text}")

    def _take_lines(self, n_lines: int | None) -> list[bytes]:
        """Return the next lines; only the end of the file may be blank."""
        lines = list(islice(self._lines, n_lines))
        n_taken = len(lines)
        while lines and lines[-1].isspace():
            lines.pop()
        if len(lines) < n_taken and not all(map(bytes.isspace, self._lines)):
            raise self.error(self.n_read + len(lines), _BLANK_LINE)
        return lines

    def _find_error(self, lines: list[bytes]) -> DatasetError:
        """Return an error about the first invalid line."""
        for row, line in enumerate(lines, self.n_read):
            tokens = line.split(self._separator)
            if line.isspace():
                return self.error(row, _BLANK_LINE)
            if len(tokens) != self.n_columns:
                expected = counted(self.n_columns, "number")
                return self.error(row, f"expected {expected}, got {len(tokens)}: {_show(line)}.")
            for token in tokens:
                number = _to_float(token)
                if not math.isfinite(number):
                    return self.error(row, f"expected a finite number, got {_show(token)}.")
                if self.whole and (abs(number) > _LARGEST or not number.is_integer()):
                    return self.error(row, f"expected a whole number (of less than 2^53 in size), got {_show(token)}.")
        return self.error(
            self.n_read, f"expected {'whole' if self.whole else 'finite'} numbers in this line and below."
        )


def _read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file."""
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise DatasetError(f"{path}: the file cannot be read ({error.strerror or error}).") from None


def _to_float(token: bytes) -> float:
    """Convert a token to a number, or to nan if it is not one."""
    try:
        return math.nan if b"_" in token else float(token)
    except ValueError:
        return math.nan


def _show(text: bytes) -> str:
    """Return a piece of a file for a message: short, quoted, and without terminal control characters."""
    shown = text.strip().decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")


# -------------------------------------------------------------------- writing


def _check_storable(graphs: Graphs) -> None:
    if not graphs.n_nodes:
        raise DatasetError(f"A TU folder cannot hold a collection without nodes; got {graphs!r}.")
    if graphs.targets is None and not graphs.sizes[-1]:
        raise DatasetError(
            f"Graph {len(graphs) - 1}, the last one, has no node: without targets a TU folder cannot represent it."
        )
    for name in ("attributes", "edge_attributes", "graph_attributes"):
        vectors = getattr(graphs, name)
        if vectors is not None and len(vectors) and not vectors.shape[1]:
            raise DatasetError(f"A TU folder cannot hold {name.replace('_', ' ')} of length 0.")


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


def _format_tables(graphs: Graphs) -> dict[str, list[str]]:
    """Return the lines of each file."""
    sources = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)
    rows: dict[str, NDArray[Any] | None] = {
        "A": np.stack([sources, graphs.indices], axis=1) + 1,
        "graph_indicator": graphs.graph_ids[:, None] + 1,
        "node_attributes": graphs.attributes,
        "edge_attributes": graphs.edge_attributes,
    }
    files = {table: _format_rows(values) for table, values in rows.items() if values is not None}
    if graphs.labels is not None:
        files["node_labels"] = _format_labels(graphs.labels, graphs.label_values, "labels")
    if graphs.edge_labels is not None:
        files["edge_labels"] = _format_labels(graphs.edge_labels, graphs.edge_label_values, "edge labels")
    if graphs.targets is not None:
        files |= _format_targets(graphs.targets)
    if graphs.graph_attributes is not None:
        if "graph_labels" not in files:
            raise DatasetError(
                "A TU folder can hold graph attributes only beside targets that are classes; save_parquet has no such limits."
            )
        files["graph_attributes"] = _format_rows(graphs.graph_attributes)
    return files


def _format_rows(rows: NDArray[Any]) -> list[str]:
    """Format one line per row; repr gives the shortest digits that read back as the same double."""
    return [", ".join(map(repr, row)) for row in rows.tolist()]


def _format_labels(codes: Ints, values: Sequence[Hashable], name: str) -> list[str]:
    """Format one line per label."""
    used, numbers = np.unique(codes, return_inverse=True)
    labels: list[Any] = [values[code] for code in used]
    rows = [label if isinstance(label, tuple) and len(label) > 1 else (label,) for label in labels]
    for label, row in zip(labels, rows, strict=True):
        if len(row) != len(rows[0]) or not all(isinstance(number, int) and abs(number) <= _LARGEST for number in row):
            raise DatasetError(
                f"A TU folder can hold {name} that are whole numbers below 2^53, or tuples of them, all of one length; got "
                f"{label!r}. save_parquet has no such limits."
            )
    texts = [", ".join(map(str, row)) for row in rows]
    return [texts[number] for number in numbers.tolist()]


def _format_targets(targets: NDArray[Any]) -> dict[str, list[str]]:
    """Format the targets: whole numbers are classes, other numbers are regression targets."""
    rows = targets[:, None] if targets.ndim == 1 else targets
    if rows.ndim != 2 or (targets.ndim == 2 and rows.shape[1] < 2):
        raise DatasetError(f"A TU folder cannot hold targets of shape {targets.shape}.")
    if rows.dtype.kind in "biu" and (not rows.size or int(np.abs(rows.astype(object)).max()) <= _LARGEST):
        return {"graph_labels": _format_rows(rows.astype(np.int64))}
    if rows.dtype.kind == "f" and rows.dtype.itemsize <= 8 and np.isfinite(rows).all():
        return {"graph_attributes": _format_rows(rows.astype(np.float64))}
    raise DatasetError(
        f"A TU folder can hold targets that are whole numbers below 2^53 or finite numbers; got {targets.dtype} "
        f"{targets!r}. save_parquet also writes strings."
    )
