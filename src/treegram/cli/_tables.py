"""Tables in CSV, TSV and Parquet files: nodes, edges, and one row per graph with its targets."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treegram._core.errors import DatasetError
from treegram._core.optional import optional_module
from treegram._core.text import suggest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from treegram import Graphs, TableGraphs
    from treegram._core.types import Ints

    Values = tuple[Ints, NDArray[Any]]  # the ids of the graphs that have a value, and the values

__all__ = ["choose_columns", "read_graph_tables", "read_targets"]

Table = dict[str, "NDArray[Any]"]


def _read_table(path: Path, as_text: Collection[str]) -> Table:
    """Return the columns of a file by name; a column of numbers is float64 with nan for empty cells, others have None there.

    Columns in ``as_text`` are kept as text, such as names of graphs, which must match across tables.
    """
    import numpy as np

    if path.suffix.lower() == ".parquet":
        table = optional_module("pyarrow.parquet", "Parquet files").read_table(path)
        columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
        return {
            name: np.array([str(value) for value in column], dtype=object) if name in as_text else column
            for name, column in columns.items()
        }
    delimiter = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    if delimiter is None:
        raise DatasetError(f"{path}: the name of a table must end in .csv, .tsv or .parquet.")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = np.loadtxt(file, object, comments=None, delimiter=delimiter, quotechar='"', ndmin=2)
    except ValueError as error:  # rows of different lengths, or bytes that are not UTF-8
        raise DatasetError(f"{path}: {error}.") from error
    names = [name.strip() for name in rows[0]] if rows.size else []
    if not names:
        raise DatasetError(f"{path}: the file is empty; its first line must name the columns.")
    if len(set(names)) < len(names):
        raise DatasetError(f"{path}: two columns have the same name; the first line has {', '.join(names)}.")
    return {name: _column(cells, is_text=name in as_text) for name, cells in zip(names, rows[1:].T, strict=True)}


def _column(cells: Sequence[str], *, is_text: bool) -> NDArray[Any]:
    import numpy as np

    texts = [cell.strip() for cell in cells]
    if not is_text:
        try:
            return np.array([float(text) if text else math.nan for text in texts])
        except ValueError:
            pass
    return np.array([text or None for text in texts], dtype=object)


# -------------------------------------------------------------------- nodes and edges


def read_graph_tables(transformer: TableGraphs, nodes: Path, edges: Path, graphs: Path | None) -> dict[str, Table]:
    """Read the tables that the transformer needs; names of graphs and nodes, and labels, are read as text."""
    texts = {transformer.graph, transformer.node, transformer.source, transformer.target}
    tables = {
        "nodes": _read_table(nodes, {*texts, transformer.label or "label"}),
        "edges": _read_table(edges, {*texts, transformer.edge_label or "label"}),
    }
    if transformer.graph_attributes:
        if graphs is None:
            raise ValueError("--graphs FILE is needed: it has the vectors of graphs.")
        tables["graphs"] = _read_table(graphs, texts)
    return tables


def choose_columns(transformer: TableGraphs, tables: dict[str, Table], chosen: Collection[str]) -> None:
    """Set the parameters that are not chosen: the column "label", and as attributes all others that hold numbers."""
    ids = {
        "nodes": {transformer.graph, transformer.node},
        "edges": {transformer.graph, transformer.source, transformer.target},
    }
    for name, label, attributes in (("nodes", "label", "attributes"), ("edges", "edge_label", "edge_attributes")):
        columns = tables[name]
        if label not in chosen and "label" in columns:
            transformer.set_params(**{label: "label"})
        if attributes in chosen:
            continue
        others = [column for column in columns if column not in {*ids[name], getattr(transformer, label)}]
        numbers = [column for column in others if columns[column].dtype.kind in "fiu"]
        transformer.set_params(**{attributes: numbers or None})
        if len(numbers) < len(others):
            unused = ", ".join(column for column in others if column not in numbers)
            warnings.warn(
                f"The table of {name} has text columns that are not used: {unused}. To use one as the label, name it with "
                f"--{label.replace('_', '-')}.",
                stacklevel=2,
            )


# -------------------------------------------------------------------- one row per graph


def read_targets(path: Path, graph_column: str, target: str, graphs: Graphs) -> Values:
    """Return the values of a column for the graphs that have one; whole numbers are integers."""
    import numpy as np

    table = _read_table(path, {graph_column})
    for column, option in ((graph_column, "--graph-column"), (target, "--target")):
        if column not in table:
            hint = suggest(column, table) or f". Name the right one with {option}."
            raise DatasetError(f"{path}: no column is called {column!r}; there are {', '.join(table)}{hint}")
    values: dict[str, Any] = {}
    for name, value in zip(table[graph_column].tolist(), table[target].tolist(), strict=True):
        if name in values:
            raise DatasetError(f"{path}: the graph {name!r} has more than one row.")
        values[name] = value
    names = np.asarray(graphs.graph_names).tolist()
    if unknown := values.keys() - set(names):
        warnings.warn(
            f"{path}: {len(unknown)} of {len(values)} rows are for graphs that are not in the data, such as {min(map(str, unknown))!r}.",
            stacklevel=2,
        )
    found = [values.get(name) for name in names]
    ids = [i for i, value in enumerate(found) if value is not None and value == value]
    if not ids:
        raise DatasetError(f"{path}: no graph has a value for {target!r}.")
    y = np.array([found[i] for i in ids])
    is_whole = y.dtype.kind == "f" and bool((y == y.round()).all())
    return np.array(ids), y.astype(np.int64) if is_whole else y
