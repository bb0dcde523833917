"""Read data sets in the TU text format: find the folder, read its tables, check that they fit together."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._types import Ints
from treegram.datasets._fetch import data_home, fetch, is_known, unknown_set
from treegram.datasets._table import read_integers, read_numbers
from treegram.errors import DatasetError, InvalidGraphError
from treegram.graphs import Graphs

__all__ = ["find_folder", "load_tu"]


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_MAX_EMPTY_GRAPHS = 10_000_000  # a larger gap between graph ids is a slip, not ten million graphs without a node


def load_tu(
    name_or_path: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    directed: bool = False,
) -> tuple[Graphs, NDArray[Any] | None]:
    """Load a data set in the TU text format, from a folder or by its name in the public collection.

    A path names the folder that holds the files. A name is looked up as a folder here, then in the data directory;
    what is not there is downloaded into it once, and checked against known SHA-256 sums where there are any.

    Parameters
    ----------
    name_or_path : str or path-like
        A folder with ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and so on, or a name such as ``"ENZYMES"``.
    data_dir : str or path-like, optional
        Folder that holds one folder per data set. Without it: the environment variable ``TREEGRAM_DATA``, else
        ``treegram`` in the platform's folder for caches.
    download : bool, default=True
        Whether a data set that is not there may be downloaded. ``TREEGRAM_MIRROR`` names another place than
        https://www.chrsmrrs.com/graphkerneldatasets to take ``NAME.zip`` from (http, https or file).
    directed : bool, default=False
        Whether a line "a, b" means an edge from a to b only. The sets of the collection are undirected.

    Returns
    -------
    graphs : Graphs
        The graphs, in the order of their ids; ids that no node has are graphs without nodes. Several columns of
        node or edge labels make labels that are tuples. Edge attributes are not read.
    y : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        The graph labels as they are (-1 and 1 stay -1 and 1), else the graph attributes, else None; also kept as
        ``graphs.targets``.

    Raises
    ------
    DatasetError
        If the data set cannot be found, fetched or read; the message names the file and line.

    See Also
    --------
    save_tu : Write a collection in this format.

    Notes
    -----
    A path wins over a name, so a folder ``./ENZYMES`` hides the data set of that name. Reading takes a fifth of the
    time of ``numpy.loadtxt`` and gives the same numbers to the last bit.

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
    graphs = _read_folder(folder, directed=directed)
    return graphs, None if graphs.targets is None else graphs.targets.copy()


# -------------------------------------------------------------------- where the files are


def find_folder(
    name_or_path: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None, *, download: bool
) -> Path:
    path = Path(name_or_path).expanduser()
    if _set_names(path):
        return path
    if not isinstance(name_or_path, str) or {"/", os.sep} & set(name_or_path) or path.is_absolute():
        what = "holds no NAME_A.txt" if path.is_dir() else "is a file" if path.exists() else "does not exist"
        raise DatasetError(f"The folder {path} {what}; expected a folder with data in the TU format.")
    name, home = name_or_path, data_home(data_dir)
    if not _NAME.fullmatch(name):  # only a plain name is ever joined to the data directory
        raise unknown_set(name, home)
    folder = home / name
    if folder.is_dir() and any(folder.iterdir()):
        return folder
    if download:
        return fetch(name, home)
    if is_known(name):
        raise DatasetError(f"The data set {name!r} is not in {home}; load it with download=True, or name its folder.")
    raise unknown_set(name, home)


def _set_names(folder: Path) -> list[str]:
    """Names of the data sets that a folder holds, from its files."""
    if not folder.is_dir():
        return []
    found = {
        file.name.removesuffix(ending)
        for ending in ("_A.txt", "_graph_indicator.txt")
        for file in folder.glob("*" + ending)
    }
    return sorted(found)


def _set_name(folder: Path) -> str:
    names = _set_names(folder)
    if not names:
        raise DatasetError(f"{folder} holds no data in the TU format: there is no file NAME_A.txt.")
    if len(names) > 1 and folder.name not in names:
        raise DatasetError(f"{folder} holds several data sets ({', '.join(names)}); give each a folder of its own.")
    return names[0] if len(names) == 1 else folder.name


# -------------------------------------------------------------------- what the files say


def _read_folder(folder: Path, *, directed: bool) -> Graphs:
    prefix = str(folder / _set_name(folder))
    for needed in ("A", "graph_indicator"):
        if not Path(f"{prefix}_{needed}.txt").is_file():
            raise DatasetError(f"{prefix}_{needed}.txt is missing; a TU data set needs it.")
    owners = _read_owners(Path(f"{prefix}_graph_indicator.txt"))
    targets = _read_targets(prefix)
    n_graphs = _count_graphs(prefix, owners, targets)
    edges = _read_edges(Path(f"{prefix}_A.txt"), owners)
    labels = _read_rows(Path(f"{prefix}_node_labels.txt"), len(owners), "nodes", whole=True)
    attributes = _read_rows(Path(f"{prefix}_node_attributes.txt"), len(owners), "nodes", whole=False)
    edge_labels = _read_rows(Path(f"{prefix}_edge_labels.txt"), len(edges), "edges", whole=True)
    if (np.diff(owners) < 0).any():
        order = np.argsort(owners, kind="stable")
        edges = np.argsort(order)[edges]
        labels, attributes = (None if rows is None else rows[order] for rows in (labels, attributes))
    try:
        return Graphs.from_arrays(
            np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n_graphs))]),
            edges,
            labels=labels,
            attributes=attributes,
            edge_labels=edge_labels,
            directed=directed,
            targets=targets,
        )
    except InvalidGraphError:
        if edge_labels is None:
            raise
        raise _contradiction(prefix, edge_labels, directed=directed) from None


def _read_owners(path: Path) -> Ints:
    """The graph of each node, numbered from 0."""
    ids = read_integers(path, n_columns=1)[:, 0]
    if ids.min() < 1:
        row = int((ids < 1).argmax())
        raise DatasetError(f"{path}:{row + 1}: expected a graph id of 1 or more, got {ids[row]}.")
    return ids - 1


def _read_targets(prefix: str) -> NDArray[Any] | None:
    labels, attributes = Path(f"{prefix}_graph_labels.txt"), Path(f"{prefix}_graph_attributes.txt")
    values: NDArray[Any]
    if labels.is_file():
        values = read_integers(labels)
    elif attributes.is_file():
        values = read_numbers(attributes)
    else:
        return None
    return values[:, 0] if values.shape[1] == 1 else values


def _count_graphs(prefix: str, owners: Ints, targets: NDArray[Any] | None) -> int:
    node = int(owners.argmax())
    n_graphs = int(owners[node]) + 1
    where = f"{prefix}_graph_indicator.txt:{node + 1}"
    if targets is None:
        if n_graphs > len(owners) + _MAX_EMPTY_GRAPHS:
            raise DatasetError(f"{where}: graph id {n_graphs} is too large for a data set of {len(owners)} nodes.")
        return n_graphs
    if len(targets) < n_graphs:
        kind = "labels" if Path(f"{prefix}_graph_labels.txt").is_file() else "attributes"
        raise DatasetError(
            f"{prefix}_graph_{kind}.txt:{len(targets)}: expected {n_graphs} lines, one per graph, got {len(targets)}; "
            f"{where} names graph {n_graphs}."
        )
    return len(targets)


def _read_edges(path: Path, owners: Ints) -> Ints:
    """Node pairs, numbered from 0, each within one graph."""
    edges = read_integers(path, n_columns=2)
    if edges.min() < 1 or edges.max() > len(owners):
        row = int(((edges < 1) | (edges > len(owners))).any(axis=1).argmax())
        raise DatasetError(
            f"{path}:{row + 1}: the edge ({edges[row, 0]}, {edges[row, 1]}) names a node that does not exist; "
            f"expected numbers from 1 to {len(owners)}, the number of nodes."
        )
    edges -= 1
    crossing = owners[edges[:, 0]] != owners[edges[:, 1]]
    if crossing.any():
        row = int(crossing.argmax())
        a, b = edges[row]
        raise DatasetError(
            f"{path}:{row + 1}: the edge ({a + 1}, {b + 1}) joins two graphs, {owners[a] + 1} and {owners[b] + 1}; "
            "expected both ends in one graph."
        )
    return edges


def _read_rows(path: Path, length: int, things: str, *, whole: bool) -> NDArray[Any] | None:
    """A table with one row for each node or edge, or None where there is no such file."""
    if not path.is_file():
        return None
    rows: NDArray[Any] = read_integers(path) if whole else read_numbers(path)
    if len(rows) != length:
        raise DatasetError(
            f"{path}:{len(rows)}: expected {length} lines, one for each of the {things}, got {len(rows)}."
        )
    return rows


def _contradiction(prefix: str, labels: Ints, *, directed: bool) -> DatasetError:
    """The error for an edge that has two labels, with both lines."""
    edges = read_integers(Path(f"{prefix}_A.txt"), n_columns=2)
    seen: dict[tuple[int, ...], int] = {}
    for row, (pair, label) in enumerate(zip(edges.tolist(), labels.tolist(), strict=True)):
        first = seen.setdefault(tuple(pair if directed else sorted(pair)), row)
        if label != labels[first].tolist() and pair[0] != pair[1]:
            break
    hint = "" if directed else " If labels depend on the direction, load with directed=True."
    return DatasetError(
        f"{prefix}_edge_labels.txt:{row + 1}: the edge ({pair[0]}, {pair[1]}) has another label here, "
        f"{', '.join(map(str, label))}, than in line {first + 1}, {', '.join(map(str, labels[first].tolist()))}.{hint}"
    )
