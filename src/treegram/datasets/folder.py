"""The files of a TU folder: which there are, what each must say, and how they must fit together.

``load_tu`` and ``TUChunks`` both read through these functions, so that they accept the same folders with the same
messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.types import Floats, Ints
from treegram.datasets.label_names import Names, apply_names, check_named, class_names, read_names
from treegram.datasets.table import Block, join_blocks, read_blocks
from treegram.graphs import Graphs

__all__ = [
    "TABLES",
    "Tables",
    "check_count",
    "check_folder",
    "contradiction",
    "count_repeated",
    "depend_on_direction",
    "edge_blocks",
    "edges_left_out",
    "find_tables",
    "left_out",
    "owner_blocks",
    "read_all_names",
    "read_targets",
    "row_blocks",
    "set_names",
    "with_names",
]

_NAMED = ("node_labels", "edge_labels", "graph_labels")
_NEEDED = ("A", "graph_indicator")
TABLES = (
    *_NEEDED,
    *_NAMED,
    "node_attributes",
    "edge_attributes",
    "graph_attributes",
    *(f"{kind.removesuffix('s')}_names" for kind in _NAMED),
)
_MAX_EMPTY_GRAPHS = 1_000_000  # a larger gap between graph ids is a slip, not a million graphs without a node

Tables = dict[str, Path]  # the files that are there, by what they hold


def set_names(folder: Path) -> list[str]:
    """Names of the data sets that a folder holds, from its files."""
    if not folder.is_dir():
        return []
    found = {
        file.name.removesuffix(ending)
        for ending in (f"_{kind}.txt" for kind in _NEEDED)
        for file in folder.glob("*" + ending)
    }
    return sorted(found)


def check_folder(folder: Path) -> Path:
    """The folder, if it holds data."""
    if not set_names(folder):
        if folder.is_file():
            raise DatasetError(
                f"{folder} is a file; expected a folder with data in the TU format. Names of other files must end in .parquet (graphs), or "
                ".smi, .sdf, .csv or .tsv (molecules)."
            )
        what = "holds no NAME_A.txt" if folder.is_dir() else "does not exist"
        raise DatasetError(f"The folder {folder} {what}; expected a folder with data in the TU format.")
    return folder


def find_tables(folder: Path) -> Tables:
    """The files of the one data set in a folder."""
    names = set_names(check_folder(folder))
    if len(names) > 1 and folder.name not in names:
        raise DatasetError(f"{folder} holds several data sets ({', '.join(names)}); give each a folder of its own.")
    name = names[0] if len(names) == 1 else folder.name
    tables = {kind: folder / f"{name}_{kind}.txt" for kind in TABLES}
    present = {kind: path for kind, path in tables.items() if _is_there(path)}
    for kind in _NEEDED:
        if kind not in present:
            raise DatasetError(f"{tables[kind]} is missing; a TU data set needs it.")
    return present


def _is_there(path: Path) -> bool:
    """Whether the file exists; what has its name and cannot be read as a file is never passed over."""
    if path.is_file():
        return True
    if not os.path.lexists(path):
        return False
    if path.is_symlink() and not path.exists():
        raise DatasetError(
            f"{path} is a link to {os.fspath(path.readlink())!r}, which does not exist. Fetch the file (git annex get, dvc pull), "
            "or remove the link."
        )
    raise DatasetError(f"{path} is not a regular file; expected a text file.")


# -------------------------------------------------------------------- tables


def owner_blocks(path: Path) -> Iterator[Block]:
    """The graph of each node, numbered from 1."""
    for block in read_blocks(path, whole=True, n_columns=1):
        if block.rows.min() < 1:
            row = int((block.rows[:, 0] < 1).argmax())
            raise DatasetError(
                f"{path}:{block.first_row + row + 1}: expected a graph id of 1 or more, got {block.rows[row, 0]}."
            )
        yield block


def edge_blocks(path: Path, n_nodes: int, owner_of: Callable[[Ints], Ints]) -> Iterator[Block]:
    """Node pairs, numbered from 1, each within one graph; ``owner_of`` gives the graphs (from 0) of nodes (from 0)."""
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


def row_blocks(
    path: Path, length: int, things: str, *, whole: bool, n_columns: int | None = None, names: Names | None = None
) -> Iterator[Block]:
    """A table with one row for each node or edge."""
    n_rows = 0
    for block in read_blocks(path, whole=whole, n_columns=n_columns, may_be_empty=length == 0):
        check_named(block, path, names)
        n_rows += len(block.rows)
        yield block
    if n_rows != length:
        raise DatasetError(f"{path}:{n_rows}: expected {length} lines, one for each of the {things}, got {n_rows}.")


def read_targets(tables: Tables, names: Names | None) -> NDArray[Any] | None:
    """Graph labels, by name where they have names, else graph attributes, else None."""
    kind = next((kind for kind in ("graph_labels", "graph_attributes") if kind in tables), None)
    if kind is None:
        return None
    whole = kind == "graph_labels"
    blocks = []
    for block in read_blocks(tables[kind], whole=whole):
        check_named(block, tables[kind], names if whole else None)
        blocks.append(block)
    values = join_blocks(iter(blocks))
    if whole and names is not None:
        return class_names(names)[values[:, 0]]
    return values[:, 0] if values.shape[1] == 1 else values


def read_all_names(tables: Tables) -> dict[str, Names]:
    """The names of node labels, edge labels and classes, by the table that they belong to."""
    found = {}
    for kind in _NAMED:
        path = tables.get(f"{kind.removesuffix('s')}_names")
        if path is None:
            continue
        if kind not in tables:
            raise DatasetError(f"{path} names the numbers of a table of {kind.replace('_', ' ')}, but there is none.")
        found[kind] = read_names(path, are_classes=kind == "graph_labels")
    return found


# -------------------------------------------------------------------- how they fit together


def check_count(tables: Tables, largest: int, line: int, n_nodes: int, targets: NDArray[Any] | None) -> int:
    """The number of graphs; ``largest`` is the largest graph id, which stands in the given line."""
    where = f"{tables['graph_indicator']}:{line}"
    if targets is None:
        if largest > n_nodes + _MAX_EMPTY_GRAPHS:
            raise DatasetError(f"{where}: graph id {largest} is too large for a data set of {n_nodes} nodes.")
        return largest
    if len(targets) < largest:
        path = tables["graph_labels" if "graph_labels" in tables else "graph_attributes"]
        raise DatasetError(
            f"{path}:{len(targets)}: expected {largest} lines, one per graph, got {len(targets)}; "
            f"{where} names graph {largest}."
        )
    return len(targets)


def contradiction(
    tables: Tables, edges: Ints, data: dict[str, NDArray[Any] | None], first_row: int = 0, *, directed: bool
) -> DatasetError:
    """The error for an edge that has two labels or two vectors, with both lines; edges are numbered from 1."""
    kind, row, first = next(_contradictions(edges, data, directed=directed))
    rows: Any = data[kind]
    noun = "another label" if kind == "edge_labels" else "other attributes"
    hint = "" if directed else f" If {kind.removeprefix('edge_')} depend on the direction, load with directed=True."
    return DatasetError(
        f"{tables[kind]}:{first_row + row + 1}: the edge ({edges[row, 0]}, {edges[row, 1]}) has {noun} here, "
        f"{', '.join(map(str, rows[row].tolist()))}, than in line {first_row + first + 1}, "
        f"{', '.join(map(str, rows[first].tolist()))}.{hint}"
    )


def _contradictions(
    edges: Ints, data: dict[str, NDArray[Any] | None], *, directed: bool
) -> Iterator[tuple[str, int, int]]:
    """Each table, row and earlier row in which one edge has different data; self loops do not count."""
    for kind, rows in data.items():
        seen: dict[tuple[int, ...], int] = {}
        for row, pair in enumerate(edges.tolist() if rows is not None else ()):
            first = seen.setdefault(tuple(pair if directed else sorted(pair)), row)
            if rows is not None and (rows[row] != rows[first]).any() and pair[0] != pair[1]:
                yield kind, row, first


def depend_on_direction(edges: Ints, vectors: Floats) -> bool:
    """Whether some edge has another vector in one direction than in the other."""
    if not len(edges):
        return False
    size = int(edges.max()) + 1
    arcs, first = np.unique(edges @ np.array([size, 1]), return_index=True)
    back = edges[first] @ np.array([1, size])
    place = np.minimum(np.searchsorted(arcs, back), len(arcs) - 1)
    is_listed = arcs[place] == back
    return bool((vectors[first] != vectors[first[place]])[is_listed].any())


def edges_left_out(tables: Tables) -> str:
    """What to say of edge attributes that an undirected graph cannot hold."""
    return (
        f"The edge attributes in {tables['edge_attributes'].name} are left out: they differ between the two directions of an "
        "edge. Load with directed=True to keep them."
    )


def count_repeated(edges: Ints) -> int:
    """Lines that say again what an earlier line says, self loops apart."""
    keys = edges[:, 1] * (int(edges.max(initial=0)) + 1) + edges[:, 0]
    if (keys[1:] > keys[:-1]).all():  # many files are sorted like this
        return 0
    is_loop = edges[:, 0] == edges[:, 1]
    keys = keys[~is_loop] if is_loop.any() else keys
    keys.sort()
    return int(np.count_nonzero(keys[1:] == keys[:-1]))


def left_out(tables: Tables, n_loops: int, n_repeated: int) -> list[str]:
    """One sentence for each thing in the files that the graphs do not show."""
    found = []
    if "graph_labels" in tables and "graph_attributes" in tables:
        found.append(
            f"The graph attributes in {tables['graph_attributes'].name} are left out: the graph labels are the targets."
        )
    lines = f"of {tables['A'].name}"
    if n_loops:
        found.append(f"{n_loops} self loop{'s are' if n_loops > 1 else ' is'} dropped ({lines}).")
    if n_repeated:
        found.append(f"{n_repeated} line{'s repeat' if n_repeated > 1 else ' repeats'} an earlier one ({lines}).")
    return found


def with_names(graphs: Graphs, names: dict[str, Names]) -> Graphs:
    """The graphs with the labels that their numbers stand for."""
    if not {"node_labels", "edge_labels"} & names.keys():
        return graphs
    labels, values = apply_names(graphs.labels, graphs.label_values, names.get("node_labels"))
    edge_labels, edge_values = apply_names(graphs.edge_labels, graphs.edge_label_values, names.get("edge_labels"))
    return replace(graphs, labels=labels, label_values=values, edge_labels=edge_labels, edge_label_values=edge_values)
