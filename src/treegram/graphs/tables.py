"""Build Graphs from named columns: tables of pandas, polars or Arrow, dictionaries, or the data of other libraries' graphs.

None of these libraries is imported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from treegram._core.params import FLAG, NOTHING, Allowed, Instance, parameters
from treegram._core.text import suggest
from treegram._core.types import Floats, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.cells import has_no_value
from treegram.graphs.check import as_vectors, plain_label, refuse_masked
from treegram.graphs.transforms import Source

__all__ = ["TableGraphs"]

_NAME: Allowed = (Instance((str,), "a name"),)
_NAMES: Allowed = (Instance((str, list, tuple), "a name or a list of names"), NOTHING)


# -------------------------------------------------------------------- named columns


class NamedColumns:
    """Named columns with one row per node, edge or graph, which are converted to numpy arrays on demand.

    ``where`` describes a row in messages; ``rows`` selects and sorts the rows.
    """

    rows: Ints | slice = slice(None)

    def __init__(
        self, columns: Any, name: str, n_rows: int | None = None, where: Callable[[int], str] | None = None
    ) -> None:
        if not isinstance(columns, Mapping) and not (hasattr(columns, "columns") and hasattr(columns, "__getitem__")):
            raise InvalidGraphError(
                f"{name} must be a table of pandas, polars or Arrow, or a dictionary of columns; got {type(columns).__name__}."
            )
        listed = getattr(columns, "column_names", None)  # Arrow: its ``columns`` are not names
        self.columns, self.name = columns, name
        self.names = [str(column) for column in (listed or getattr(columns, "columns", columns))]
        self.used: set[str] = set()
        lengths = {len(columns[column]) for column in self.names}
        if len(lengths) > 1:
            raise InvalidGraphError(f"{name}: columns must be of one length; got {sorted(lengths)}.")
        self.n_rows: int = max(lengths, default=0) if n_rows is None else n_rows
        self.where = where or (lambda row: f"{name}: row {row}")

    def find(self, argument: str, column: str) -> NDArray[Any]:
        """Return the column that an argument names."""
        if column not in self.names:
            if not self.n_rows:
                return np.empty(0)
            hint = suggest(str(column), self.names)
            raise InvalidGraphError(
                f"{argument}: the {self.name} have no {column!r}; they have {list_names(self.names)}{hint or '.'}"
            )
        self.used.add(column)
        return as_column(self.columns[column], column)

    def take(self, argument: str, column: str) -> NDArray[Any]:
        """Return the column that an argument names, which must have no missing values."""
        values = self.find(argument, column)
        is_missing = _missing(values)
        if is_missing.any():
            row = int(is_missing.argmax())
            raise InvalidGraphError(
                f"{self.where(row)} has no value for {column!r}. Fill or remove missing values first."
            )
        return values[self.rows]

    def vectors(self, argument: str, names: str | Sequence[str]) -> tuple[Floats, list[str]]:
        """Return the columns that form the vectors, each of numbers or of vectors, and a name for each number."""
        blocks, titles = [np.empty((self.n_rows, 0))], []
        for name in [names] if isinstance(names, str) else names:
            column = self.take(argument, name)
            rows = column.tolist() if column.dtype == object else column
            try:
                block = as_vectors(rows, argument, self.name[:-1])
            except InvalidGraphError:
                row = next(
                    (i for i, value in enumerate(rows) if _shape(value) is None or _shape(value) != _shape(rows[0])), 0
                )
                raise InvalidGraphError(
                    f"{argument}: {self.where(row)} has {plain_label(rows[row])!r:.60} for {name!r}; expected a number, or "
                    "vectors of one length."
                ) from None
            width = block.shape[1]
            blocks.append(block)
            titles += [name] if width == 1 else [f"{name}[{j}]" for j in range(width)]
        return np.hstack(blocks), titles


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a number or a vector, and None for anything else."""
    try:
        shape = np.asarray(value, dtype=np.float64).shape
    except (TypeError, ValueError):
        return None
    return shape if len(shape) < 2 else None


def as_column(values: Any, name: str) -> NDArray[Any]:
    """Convert the values of a column; a list becomes an array of objects, so that numpy changes no entry."""
    if hasattr(values, "combine_chunks"):  # Arrow
        return np.asarray(values.to_numpy(zero_copy_only=False))
    plain = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(plain, np.ndarray):
        refuse_masked(plain, f"the column {name!r}")
        return np.asarray(plain)
    return np.fromiter(plain, dtype=object, count=len(plain))


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values are missing: nan, None, or a missing value of pandas."""
    if values.dtype != object:
        return np.isnan(values) if values.ndim == 1 and values.dtype.kind in "fmM" else np.zeros(1, dtype=bool)
    return np.array(list(map(has_no_value, values)), dtype=bool)


def list_names(names: Iterable[Any]) -> str:
    """List names in a message."""
    return ", ".join(sorted(map(repr, names))) or "no data"


# -------------------------------------------------------------------- from columns to graphs


# The arguments that name columns, and the table that has these.
_ARGUMENTS = {
    "label": "nodes",
    "attributes": "nodes",
    "edge_label": "edges",
    "edge_attributes": "edges",
    "graph_attributes": "graphs",
}


def build_graphs(
    method: str,
    columns: Mapping[str, Any],
    tables: Mapping[str, NamedColumns],
    *,
    defaults: Mapping[str, str],
    stacklevel: int = 4,
    **arrays: Any,
) -> Graphs:
    """Build a collection from the columns that arguments name, and further arguments of ``from_arrays``.

    ``method`` is the method that the user called. A name that equals its default may be missing.
    """
    for argument, things in _ARGUMENTS.items():
        names, table = columns.get(argument), tables.get(things)
        is_default = names is not None and names == defaults.get(argument)
        if names is None or (is_default and (table is None or names not in table.names)):
            continue
        if table is None:
            raise InvalidGraphError(f"{argument} are columns of the table of graphs: pass it as graphs.")
        if argument.endswith("label"):
            arrays[f"{argument}s"] = table.take(argument, names)
            continue
        arrays[argument], titles = table.vectors(argument, names)
        if not is_default and table.n_rows:  # a default name says nothing about the columns
            arrays[f"{argument[:-1]}_names"] = titles
    unused = [(things, set(tables[things].names) - tables[things].used) for things in ("nodes", "edges")]
    parts = [f"These data of the {things} are not used: {list_names(names)}." for things, names in unused if names]
    if parts:
        warnings.warn(
            f"{' '.join(parts)} The arguments of {method} select the label, the attributes, the edge label and the edge attributes.",
            UserWarning,
            stacklevel=stacklevel,
        )
    return Graphs.from_arrays(**arrays)


# -------------------------------------------------------------------- tables


@parameters
class TableGraphs(Source):
    """Turn tables of nodes, edges and graphs into graphs, as the first step of a pipeline.

    Parameters
    ----------
    label : str or None, default=None
        Column of the node table with the discrete label.
    attributes : str, list of str or None, default=None
        Columns of the node table that form the vector of a node.
    edge_label : str or None, default=None
        Column of the edge table with the discrete label.
    edge_attributes : str, list of str or None, default=None
        Columns of the edge table that form the vector of an edge.
    graph_attributes : str, list of str or None, default=None
        Columns of the graph table that form the vector of a graph.
    graph : str, default="graph"
        Column with the name of the graph, in the tables of nodes and graphs, and in the edge table unless node names are
        unique.
    node : str, default="node"
        Column of the node table with the name of the node.
    source : str, default="source"
        Column of the edge table with the name of the first node.
    target : str, default="target"
        Column of the edge table with the name of the second node.
    directed : bool, default=False
        Whether edges are directed, from source to target.

    See Also
    --------
    Graphs.from_tables : Convert tables once.

    Examples
    --------
    >>> from treegram import TableGraphs
    >>> nodes = {"graph": ["a", "a", "b"], "node": [1, 2, 1], "element": ["C", "O", "N"]}
    >>> edges = {"graph": ["a"], "source": [1], "target": [2]}
    >>> TableGraphs("element").fit_transform({"nodes": nodes, "edges": edges})
    Graphs(2 graphs, 3 nodes, 1 edge, undirected, 3 labels)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "label": (*_NAME, NOTHING),
        "attributes": _NAMES,
        "edge_label": (*_NAME, NOTHING),
        "edge_attributes": _NAMES,
        "graph_attributes": _NAMES,
        **dict.fromkeys(("graph", "node", "source", "target"), _NAME),
        "directed": (FLAG,),
    }

    label: str | None = field(default=None, kw_only=False)
    attributes: str | Sequence[str] | None = None
    edge_label: str | None = None
    edge_attributes: str | Sequence[str] | None = None
    graph_attributes: str | Sequence[str] | None = None
    graph: str = "graph"
    node: str = "node"
    source: str = "source"
    target: str = "target"
    directed: bool = False

    def transform(self, X: Any) -> Graphs:
        """Turn tables into graphs.

        Parameters
        ----------
        X : dict with the keys "nodes", "edges" and, optionally, "graphs"
            The tables: pandas, polars, Arrow, or dictionaries of columns.

        Returns
        -------
        Graphs
            The graphs, in the order of the graph table, or else of their first appearance in the node table.
        """
        self._check_parameters()
        if not isinstance(X, Mapping) or not {"nodes", "edges"} <= set(X) <= {"nodes", "edges", "graphs"}:
            raise InvalidGraphError(
                "X must be a dict of tables, {'nodes': ..., 'edges': ...}, and 'graphs' if there is one."
            )
        return Graphs.from_tables(**X, **self.get_params())


def read_tables(nodes: Any, edges: Any, graphs: Any, options: TableGraphs, targets: Any) -> Graphs:
    """Build a collection from tables; see :meth:`treegram.Graphs.from_tables`."""
    node_table, edge_table = NamedColumns(nodes, "nodes"), NamedColumns(edges, "edges")
    tables = {"nodes": node_table, "edges": edge_table}
    graph_table = None
    if graphs is not None:
        graph_table = tables["graphs"] = NamedColumns(graphs, "graphs")
    owners = _plain(node_table.take("graph", options.graph))
    listed = owners if graph_table is None else _plain(graph_table.take("graph", options.graph))
    position: dict[Hashable, int] = {}
    for row, name in enumerate(listed):
        if position.setdefault(name, len(position)) != row and graph_table is not None:
            raise InvalidGraphError(f"graphs: row {row} has the graph {name!r} of an earlier row.")
    for row, name in enumerate(owners):
        if name not in position:
            raise InvalidGraphError(f"nodes: row {row} is of graph {name!r}, which is not in the graph table.")
    graph_names = list(position)
    codes = np.array([position[name] for name in owners], dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    node_names = _plain(node_table.take("node", options.node))
    pairs = np.argsort(order)[_look_up_ends(node_names, owners, edge_table, options)]
    if isinstance(targets, str):
        targets = _targets(targets, node_table, graph_table, codes, graph_names)
    node_table.rows = order
    return build_graphs(
        "Graphs.from_tables",
        options.get_params(),
        tables,
        defaults={},
        offsets=np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(graph_names)))]),
        edges=pairs,
        directed=options.directed,
        targets=targets,
        graph_names=list(map(str, graph_names)),
        node_names=[str(node_names[row]) for row in order],
    )


def _plain(values: NDArray[Any]) -> list[Hashable]:
    return [plain_label(value) for value in values.tolist()]


def _look_up_ends(names: list[Hashable], owners: list[Hashable], edges: NamedColumns, options: TableGraphs) -> Ints:
    """Return the rows of the ends of each edge in the node table: by graph and name, or by name if edges do not name their graph."""
    is_local = options.graph in edges.names
    number: dict[Hashable, int] = {}
    for row, key in enumerate(zip(owners, names, strict=True) if is_local else names):
        if number.setdefault(key, row) != row:
            hint = ". Edges need a column with their graph unless names are unique."
            if is_local:
                hint = f" of graph {owners[row]!r}."
            raise InvalidGraphError(
                f"nodes: row {row} and nodes: row {number[key]} have the same node {names[row]!r}{hint}"
            )
    graphs = _plain(edges.take("graph", options.graph)) if is_local else []
    rows = np.empty((edges.n_rows, 2), dtype=np.int64)
    for column, argument in enumerate(("source", "target")):
        ends = _plain(edges.take(argument, getattr(options, argument)))
        for row, key in enumerate(zip(graphs, ends, strict=True) if is_local else ends):
            if key not in number:
                where = f" of graph {graphs[row]!r}" if is_local else ""
                raise InvalidGraphError(
                    f"edges: row {row} has {argument} {ends[row]!r}{where}, which is not in the node table."
                )
            rows[row, column] = number[key]
    return rows


def _targets(
    name: str, nodes: NamedColumns, graphs: NamedColumns | None, codes: Ints, graph_names: list[Hashable]
) -> Any:
    """Return one target per graph: from the graph table, or from the node table, where it is constant within each graph."""
    if graphs is not None and (name in graphs.names or name not in nodes.names):
        values = graphs.take("targets", name)
    else:
        values = nodes.take("targets", name)
        first = np.full(len(graph_names), -1)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        unequal = np.flatnonzero(values[first[codes]] != values)
        if len(unequal):
            row = unequal[0]
            raise InvalidGraphError(
                f"targets: the column {name!r} must have one value per graph; graph {graph_names[codes[row]]!r} has "
                f"{plain_label(values[first[codes[row]]])!r} and, in row {row}, {plain_label(values[row])!r}."
            )
        values = values[first]
    return values.tolist() if values.dtype == object else values
