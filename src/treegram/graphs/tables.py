"""Convert a table of nodes and a table of edges to Graphs: pandas, polars, Arrow, or a dictionary of arrays.

None of these libraries is imported, except pyarrow for a table that only has Arrow's stream interface.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.optional import optional_module
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.graphs.check import as_array, as_column, as_exact
from treegram.graphs.labels import plain_label
from treegram.graphs.libraries import list_names, missing_name, name_columns, warn_of_unused
from treegram.graphs.sources import TableGraphs


class Table:
    """A table whose columns are converted to numpy arrays on demand."""

    def __init__(self, table: Any, name: str) -> None:
        self.name = name
        if not isinstance(table, Mapping) and not (hasattr(table, "columns") and hasattr(table, "__getitem__")):
            if not hasattr(table, "__arrow_c_stream__"):
                raise InvalidGraphError(
                    f"{name} must be a table of pandas, polars or Arrow, or a dictionary of columns; got {type(table).__name__}."
                )
            table = optional_module("pyarrow", "Streams of Arrow").table(table)
        self._table = table
        listed = getattr(self._table, "column_names", None)  # Arrow: its columns are not their names
        self.names = [str(column) for column in (listed or getattr(self._table, "columns", self._table))]
        self.used: set[str] = set()
        lengths = {len(self._table[column]) for column in self.names}
        if len(lengths) > 1:
            raise InvalidGraphError(f"{name}: columns must be of one length; got {sorted(lengths)}.")
        self.n_rows: int = lengths.pop() if lengths else 0

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column, which must have no missing values."""
        self.used.add(column)
        found = self._table[column]
        if hasattr(found, "combine_chunks"):
            values = np.asarray(found.to_numpy(zero_copy_only=False))
        else:
            plain = found.to_numpy() if hasattr(found, "to_numpy") else found
            values = as_column(plain, f"{self.name}: the column {column!r}")
        is_missing = _missing(values)
        if is_missing.any():
            raise InvalidGraphError(
                f"{self.name}: the column {column!r} has no value in row {int(is_missing.argmax())}. Fill or remove such rows first."
            )
        return values

    def take(self, argument: str, column: str) -> NDArray[Any]:
        """Return the column that an argument names."""
        if column not in self.names:
            raise missing_name(argument, column, self.names, f"the columns of {self.name} do not include")
        return self[column]

    def unused(self) -> set[str]:
        """Return the columns that were not used."""
        return set(self.names) - self.used


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values are missing: nan, None, or a missing value of pandas."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype != object:
        return np.zeros(len(values), dtype=bool)
    return np.array([_is_missing(value) for value in values], dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def read_tables(nodes: Any, edges: Any, graphs: Any, options: TableGraphs, targets: Any) -> Graphs:
    """Build a collection from tables; see :meth:`treegram.Graphs.from_tables`."""
    node_table, edge_table = Table(nodes, "nodes"), Table(edges, "edges")
    graph_table = None if graphs is None else Table(graphs, "graphs")
    codes, graph_names = _numbered(_plain(node_table.take("graph", options.graph)))
    if graph_table is not None:
        codes, graph_names = _reorder(codes, graph_names, _plain(graph_table.take("graph", options.graph)))
    order = np.argsort(codes, kind="stable")
    ranks = np.argsort(order)
    owners = _plain(edge_table[options.graph]) if options.graph in edge_table.names else None
    node_names = _plain(node_table.take("node", options.node))
    number = _numbers(node_names, [graph_names[code] for code in codes] if owners is not None else None)
    ends = [
        _look_up(edge_table, argument, getattr(options, argument), number, owners) for argument in ("source", "target")
    ]
    labels = None if options.label is None else node_table.take("label", options.label)[order]
    edge_labels = None if options.edge_label is None else edge_table.take("edge_label", options.edge_label)
    vectors, attribute_names = _vectors(node_table, "attributes", options.attributes)
    edge_vectors, edge_attribute_names = _vectors(edge_table, "edge_attributes", options.edge_attributes)
    graph_vectors, graph_attribute_names = _vectors(graph_table, "graph_attributes", options.graph_attributes)
    y = _targets(targets, node_table, graph_table, codes, graph_names)
    warn_of_unused(node_table.unused(), edge_table.unused(), "Graphs.from_tables", stacklevel=4)
    return Graphs.from_arrays(
        np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(graph_names)))]),
        np.stack([ranks[end] for end in ends], axis=1),
        labels=labels,
        attributes=None if vectors is None else vectors[order],
        edge_labels=edge_labels,
        edge_attributes=edge_vectors,
        directed=options.directed,
        targets=y,
        graph_names=list(map(str, graph_names)),
        node_names=[str(node_names[row]) for row in order],
        attribute_names=attribute_names,
        edge_attribute_names=edge_attribute_names,
        graph_attributes=graph_vectors,
        graph_attribute_names=graph_attribute_names,
    )


# -------------------------------------------------------------------- names of graphs and nodes


def _plain(values: NDArray[Any]) -> list[Hashable]:
    return [plain_label(value) for value in values.tolist()]


def _numbered(names: Iterable[Hashable]) -> tuple[Ints, list[Hashable]]:
    """Number the names in order of first appearance, and return the distinct names."""
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in names]
    return np.array(codes, dtype=np.int64), list(numbers)


def _reorder(codes: Ints, names: list[Hashable], wanted: list[Hashable]) -> tuple[Ints, list[Hashable]]:
    """Number the graphs of the nodes in the order of the graph table, which must list each of them once."""
    _, distinct = _numbered(wanted)
    if len(distinct) < len(wanted):
        row = next(row for row, name in enumerate(wanted) if name in wanted[:row])
        raise InvalidGraphError(
            f"graphs: row {row} and row {wanted.index(wanted[row])} have the same graph {wanted[row]!r}."
        )
    position = {name: i for i, name in enumerate(wanted)}
    for name in names:
        if name not in position:
            raise InvalidGraphError(f"nodes: there are nodes of graph {name!r}, which is not in the graph table.")
    for row, name in enumerate(wanted):
        if name not in set(names):
            raise InvalidGraphError(f"graphs: row {row} has graph {name!r}, which has no node in the node table.")
    return np.array([position[name] for name in names], dtype=np.int64)[codes], wanted


def _numbers(names: list[Hashable], owners: list[Hashable] | None) -> dict[Hashable, int]:
    """Return the row of each node: by graph and name, or by name alone if edges do not name their graph."""
    keys: Sequence[Hashable] = names if owners is None else list(zip(owners, names, strict=True))
    number: dict[Hashable, int] = {}
    for row, key in enumerate(keys):
        if number.setdefault(key, row) != row:
            hint = (
                "" if owners is not None else " Edges need a column with their graph unless names of nodes are unique."
            )
            raise InvalidGraphError(
                f"nodes: row {row} and row {number[key]} have the same node {names[row]!r}"
                f"{'' if owners is None else f' of graph {owners[row]!r}'}.{hint}"
            )
    return number


def _look_up(
    table: Table, argument: str, column: str, number: Mapping[Hashable, int], owners: list[Hashable] | None
) -> Ints:
    names = _plain(table.take(argument, column))
    keys: Sequence[Hashable] = names if owners is None else list(zip(owners, names, strict=True))
    rows = np.array([number.get(key, -1) for key in keys], dtype=np.int64)
    if (rows < 0).any():
        row = int((rows < 0).argmax())
        where = "" if owners is None else f" of graph {owners[row]!r}"
        raise InvalidGraphError(
            f"edges: row {row} has {argument} {names[row]!r}{where}, which is not in the node table."
        )
    return rows


# -------------------------------------------------------------------- vectors and targets


def _vectors(
    table: Table | None, argument: str, chosen: str | Sequence[str] | None
) -> tuple[NDArray[Any] | None, list[str] | None]:
    """Return the columns that form the vectors, one of numbers or lists, or several of numbers; and the names of all."""
    if chosen is None:
        return None, None
    if table is None:
        raise InvalidGraphError(f"{argument} are columns of the table of graphs: pass it as graphs.")
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    columns = [_numbers_of(table, argument, name) for name in names]
    if len(columns) > 1 and any(column.ndim > 1 for column in columns):
        raise InvalidGraphError(f"{argument}: a column of lists must be the only one; got {list_names(names)}.")
    joined = np.stack(columns, axis=1) if len(columns) > 1 else (*columns, np.empty((table.n_rows, 0)))[0]
    return joined, name_columns(names, columns)


def _numbers_of(table: Table, argument: str, name: str) -> NDArray[Any]:
    column = table.take(argument, name)
    if column.dtype.kind in "OUS" and len(column) and isinstance(column[0], str):
        raise InvalidGraphError(
            f"{argument}: the column {name!r} of {table.name} holds text, such as {plain_label(column[0])!r}; numbers were expected."
        )
    if column.dtype == object and len(column):  # lists; Graphs reports what is not a vector
        return as_array(column.tolist(), f"{argument}: the column {name!r}")
    return column


def _targets(targets: Any, nodes: Table, graphs: Table | None, codes: Ints, graph_names: list[Hashable]) -> Any:
    """Return one target per graph: from a column, by the name of the graph, or in the order of the graphs."""
    if isinstance(targets, str) and graphs is not None and (targets in graphs.names or targets not in nodes.names):
        chosen = graphs.take("targets", targets)
        return as_exact(chosen.tolist(), f"targets: the column {targets!r}") if chosen.dtype == object else chosen
    if isinstance(targets, str):
        values = nodes.take("targets", targets)
        first = np.full(len(graph_names), -1)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        unequal = values[first[codes]] != values
        if np.any(unequal):
            row = int(np.argmax(unequal))
            raise InvalidGraphError(
                f"targets: the column {targets!r} must have one value per graph; graph {graph_names[codes[row]]!r} has "
                f"{plain_label(values[first[codes[row]]])!r} and, in row {row}, {plain_label(values[row])!r}."
            )
        chosen = values[first]
        return as_exact(chosen.tolist(), f"targets: the column {targets!r}") if chosen.dtype == object else chosen
    if isinstance(targets, Mapping):
        known = {plain_label(name): value for name, value in targets.items()}
        for name in graph_names:
            if name not in known:
                raise InvalidGraphError(f"targets: there is no target for graph {name!r}.")
        return as_exact([known[name] for name in graph_names], "targets")
    return targets
