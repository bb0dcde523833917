"""Read data sets in the TU text format: find the folder, read its tables into one collection."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.types import Floats, Ints
from treegram.datasets.fetch import data_home, fetch, is_known, unknown_set
from treegram.datasets.folder import (
    Tables,
    check_count,
    check_folder,
    contradiction,
    count_repeated,
    depend_on_direction,
    edge_blocks,
    edges_left_out,
    find_tables,
    left_out,
    owner_blocks,
    read_all_names,
    read_targets,
    row_blocks,
    set_names,
    with_names,
)
from treegram.datasets.label_names import Names
from treegram.datasets.table import join_blocks
from treegram.graphs import Graphs

__all__ = ["find_folder", "load_tu"]


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def load_tu(
    name_or_path: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    directed: bool = False,
) -> tuple[Graphs, NDArray[Any] | None]:
    """Load a data set in the TU text format, from a folder or by its name in the public collection.

    A path names the folder that holds the files. A name is looked up as a folder here, then in the data directory;
    what is not there is downloaded into it once, and checked against known SHA-256 sums; where there are none, a warning
    says so. Archives of more than 1 GiB, or that unpack to more than 2 GiB, are refused.

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
        node or edge labels make labels that are tuples. Labels and classes that :func:`save_tu` has named are strings
        (or what else they were) again. Attributes of nodes and edges are real vectors.
    y : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        The graph labels as they are (-1 and 1 stay -1 and 1), else the graph attributes, else None; also kept as
        ``graphs.targets``.

    Raises
    ------
    DatasetError
        If the data set cannot be found, fetched or read; the message names the file and line.

    Warns
    -----
    UserWarning
        Once, if the files hold what the graphs do not show: graph attributes beside graph labels, self loops, repeated
        lines, and edge attributes that differ between the two directions of an edge, unless ``directed=True``.

    See Also
    --------
    save_tu : Write a collection in this format.

    Notes
    -----
    A path wins over a name, so a folder ``./ENZYMES`` hides the data set of that name. Reading and checking
    take a fifth to a half of the time of ``numpy.loadtxt``; the numbers are the same to the last bit.

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
    graphs, notes = _read_folder(find_tables(folder), directed=directed)
    if notes:
        warnings.warn(f"{folder}: {' '.join(notes)}", UserWarning, stacklevel=2)
    return graphs, None if graphs.targets is None else graphs.targets.copy()


# -------------------------------------------------------------------- where the files are


def find_folder(
    name_or_path: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None, *, download: bool
) -> Path:
    path = Path(name_or_path).expanduser()
    if set_names(path):
        return path
    if not isinstance(name_or_path, str) or {"/", os.sep} & set(name_or_path) or path.is_absolute():
        return check_folder(path)
    name, home = name_or_path, data_home(data_dir)
    if not _NAME.fullmatch(name):  # only a plain name is ever joined to the data directory
        raise unknown_set(name, home)
    folder = home / name
    if folder.is_dir() and any(folder.iterdir()):
        return folder
    if download:
        return fetch(name, home, lambda unpacked: _read_tables(find_tables(unpacked)))
    if is_known(name):
        raise DatasetError(f"The data set {name!r} is not in {home}; load it with download=True, or name its folder.")
    raise unknown_set(name, home)


# -------------------------------------------------------------------- what the files say


class _Contents(NamedTuple):
    """What the files say: nodes and graphs numbered from 0, nodes in the order of the files."""

    owners: Ints
    n_graphs: int
    edges: Ints
    labels: Ints | None
    attributes: Floats | None
    edge_labels: Ints | None
    edge_attributes: Floats | None
    targets: NDArray[Any] | None
    names: dict[str, Names]


def _read_tables(tables: Tables) -> _Contents:
    names = read_all_names(tables)
    owners = join_blocks(owner_blocks(tables["graph_indicator"]))[:, 0] - 1
    targets = read_targets(tables, names.get("graph_labels"))
    node = int(owners.argmax())
    n_graphs = check_count(tables, int(owners[node]) + 1, node + 1, len(owners), targets)
    edges = join_blocks(edge_blocks(tables["A"], len(owners), owners.__getitem__)) - 1
    labels = _read_rows(tables, "node_labels", len(owners), "nodes", names)
    attributes = _read_rows(tables, "node_attributes", len(owners), "nodes", names)
    edge_labels = _read_rows(tables, "edge_labels", len(edges), "edges", names)
    edge_attributes = _read_rows(tables, "edge_attributes", len(edges), "edges", names)
    return _Contents(owners, n_graphs, edges, labels, attributes, edge_labels, edge_attributes, targets, names)


def _read_folder(tables: Tables, *, directed: bool) -> tuple[Graphs, list[str]]:
    """The graphs, and sentences about what the files hold beyond them."""
    owners, n_graphs, edges, labels, attributes, edge_labels, edge_attributes, targets, names = _read_tables(tables)
    pairs = edges
    if (np.diff(owners) < 0).any():
        order = np.argsort(owners, kind="stable")
        pairs = np.argsort(order)[edges]
        labels = None if labels is None else labels[order]
        attributes = None if attributes is None else attributes[order]
    notes = []
    if edge_attributes is not None and not directed and depend_on_direction(edges, edge_attributes):
        notes, edge_attributes = [edges_left_out(tables)], None
    try:
        graphs = Graphs.from_arrays(
            np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n_graphs))]),
            pairs,
            labels=labels,
            attributes=attributes,
            edge_labels=edge_labels,
            edge_attributes=edge_attributes,
            directed=directed,
            targets=targets,
        )
    except InvalidGraphError:
        if edge_labels is None and edge_attributes is None:
            raise
        edge_data = {"edge_labels": edge_labels, "edge_attributes": edge_attributes}
        raise contradiction(tables, edges + 1, edge_data, directed=directed) from None
    n_loops = int(np.count_nonzero(edges[:, 0] == edges[:, 1]))
    return with_names(graphs, names), notes + left_out(tables, n_loops, count_repeated(edges))


def _read_rows(tables: Tables, kind: str, length: int, things: str, names: dict[str, Names]) -> NDArray[Any] | None:
    if kind not in tables:
        return None
    return join_blocks(
        row_blocks(tables[kind], length, things, whole=not kind.endswith("attributes"), names=names.get(kind))
    )
