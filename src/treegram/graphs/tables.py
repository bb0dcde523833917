"""Build Graphs from named columns: tables of pandas, polars or Arrow, dictionaries, or the data of other libraries' graphs.

None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from treegram._core.params import FLAG, NOTHING, Allowed, Instance, parameters
from treegram._core.text import warn_user
from treegram._core.types import Array, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.cells import CellTable, holds_numbers, table_of
from treegram.graphs.check import plain_label
from treegram.graphs.transforms import Source

_NAME: Allowed = (Instance((str,), "a name"),)
_NAMES: Allowed = (Instance((str, list, tuple), "a name or a list of names"), NOTHING)


# -------------------------------------------------------------------- from columns to graphs


def list_names(names: Iterable[Any]) -> str:
    """List names in a message."""
    return ", ".join(sorted(map(repr, names))) or "no data"


# The arguments that name columns, and the table that has these.
ARGUMENTS = {
    "label": "nodes",
    "attributes": "nodes",
    "edge_label": "edges",
    "edge_attributes": "edges",
    "graph_attributes": "graphs",
}


def build_graphs(
    method: str,
    columns: Mapping[str, Any],
    tables: Mapping[str, CellTable],
    *,
    defaults: Mapping[str, str | None],
    **arrays: Any,
) -> Graphs:
    """Build a collection from the columns that arguments name, and further arguments of ``from_arrays``.

    ``method`` is the method that the user called. A name that equals its default may be missing.
    """
    for argument, things in ARGUMENTS.items():
        names, table = columns.get(argument), tables.get(things)
        is_default = names is not None and names == defaults.get(argument)
        if names in (None, False) or (is_default and (table is None or names not in table)):
            continue
        if table is None:
            raise InvalidGraphError(f"{argument} are columns of the table of graphs: pass it as graphs.")
        if argument.endswith("label"):
            arrays[f"{argument}s"] = table.labels(names, argument)
            continue
        arrays[argument], titles = table.vectors(names, argument)
        if not is_default and table.n_rows:  # a default name says nothing about the columns
            arrays[f"{argument[:-1]}_names"] = titles
    unused = [(things, tables[things].columns.keys() - tables[things].used) for things in ("nodes", "edges")]
    parts = [f"These data of the {things} are not used: {list_names(names)}." for things, names in unused if names]
    if parts:
        warn_user(
            f"{' '.join(parts)} The arguments of {method} select the label, the attributes, the edge label and the edge attributes."
        )
    return Graphs.from_arrays(**arrays)


# -------------------------------------------------------------------- tables


@parameters
class TableGraphs(Source):
    """Turn tables of nodes, edges and graphs into graphs: the first step of models that ``treegram fit`` saves for tables.

    Parameters
    ----------
    label : str, bool or None, default=True
        Column of the node table with the discrete label. True: the column "label" if there is one.
    attributes : str, list of str, bool or None, default=True
        Columns of the node table that form the vector of a node. True: all others that hold numbers.
    edge_label : str, bool or None, default=True
        Column of the edge table with the discrete label. True: the column "label" if there is one.
    edge_attributes : str, list of str, bool or None, default=True
        Columns of the edge table that form the vector of an edge. True: all others that hold numbers.
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
    >>> from treegram.graphs.tables import TableGraphs
    >>> nodes = {"graph": ["a", "a", "b"], "node": [1, 2, 1], "element": ["C", "O", "N"]}
    >>> edges = {"graph": ["a"], "source": [1], "target": [2]}
    >>> TableGraphs("element").fit_transform({"nodes": nodes, "edges": edges})
    Graphs(2 graphs, 3 nodes, 1 edge, undirected, 3 labels)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "label": (*_NAME, NOTHING, FLAG),
        "attributes": (*_NAMES, FLAG),
        "edge_label": (*_NAME, NOTHING, FLAG),
        "edge_attributes": (*_NAMES, FLAG),
        "graph_attributes": _NAMES,
        **dict.fromkeys(("graph", "node", "source", "target"), _NAME),
        "directed": (FLAG,),
    }

    label: str | bool | None = field(default=True, kw_only=False)
    attributes: str | Sequence[str] | bool | None = True
    edge_label: str | bool | None = True
    edge_attributes: str | Sequence[str] | bool | None = True
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


def choose_columns(options: TableGraphs, nodes: CellTable, edges: CellTable, targets: object = None) -> dict[str, Any]:
    """Return the parameters that name columns, where the defaults leave them to the tables."""
    selected: dict[str, Any] = {}
    for table, label, attributes, *ids in (
        (nodes, "label", "attributes", options.graph, options.node, targets),
        (edges, "edge_label", "edge_attributes", options.graph, options.source, options.target),
    ):
        selected[label] = getattr(options, label)
        if selected[label] is True:
            selected[label] = "label" if "label" in table else None
        if getattr(options, attributes) is True:
            used = {str(name).lower() for name in (*ids, selected[label])}
            unused = {name: cells for name, cells in table.columns.items() if name.lower() not in used}
            selected[attributes] = [name for name, cells in unused.items() if holds_numbers(cells)] or None
    return selected


def read_tables(
    nodes: Any, edges: Any, graphs: Any, targets: Any, graph_names: Sequence[str] | None, options: TableGraphs
) -> Graphs:
    """Build a collection from tables; see :meth:`treegram.Graphs.from_tables`."""
    tables = {"nodes": table_of(nodes, "nodes"), "edges": table_of(edges, "edges")}
    if graphs is not None:
        tables["graphs"] = table_of(graphs, "graphs")
    columns = options.get_params() | choose_columns(options, tables["nodes"], tables["edges"], targets)
    owners = _names(tables["nodes"], options.graph, "graph")
    position = _number_graphs(owners, tables, options.graph)
    codes = np.array([position[name] for name in owners], dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    node_names = _names(tables["nodes"], options.node, "node")
    pairs = np.argsort(order)[_look_up_ends(node_names, owners, tables, options)]
    if isinstance(targets, str):
        targets = _read_targets(targets, tables, codes, list(position))
    places = tables["nodes"].where
    tables["nodes"] = tables["nodes"].take(order.tolist(), lambda row: places(int(order[row])))
    return build_graphs(
        "Graphs.from_tables",
        columns,
        tables,
        defaults={},
        offsets=np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(position)))]),
        edges=pairs,
        directed=options.directed,
        targets=targets,
        graph_names=list(map(str, position)) if graph_names is None else graph_names,
        node_names=[str(node_names[row]) for row in order],
    )


def _names(table: CellTable, column: str, argument: str) -> list[Hashable]:
    names = table.labels(column, argument)
    return [plain_label(name) for name in (names.tolist() if isinstance(names, np.ndarray) else names)]


def _number_graphs(owners: list[Hashable], tables: Mapping[str, CellTable], column: str) -> dict[Hashable, int]:
    """Return the position of each graph: in the table of graphs, or else by first appearance in the table of nodes."""
    if "graphs" not in tables:
        return {name: i for i, name in enumerate(dict.fromkeys(owners))}
    position: dict[Hashable, int] = {}
    for row, name in enumerate(_names(tables["graphs"], column, "graph")):
        if position.setdefault(name, row) != row:
            where = tables["graphs"].where
            raise tables["graphs"].error(
                f"{where(row)} has the graph {name!r} of an earlier row, {where(position[name])}."
            )
    for row, name in enumerate(owners):
        if name not in position:
            where = tables["nodes"].where
            raise tables["nodes"].error(f"{where(row)} is of graph {name!r}, which is not in the graph table.")
    return position


def _look_up_ends(
    names: list[Hashable], owners: list[Hashable], tables: Mapping[str, CellTable], options: TableGraphs
) -> Ints:
    """Return the rows of the ends of each edge in the node table: by graph and name, or by name if edges do not name their graph."""
    nodes, edges = tables["nodes"], tables["edges"]
    is_local = options.graph in edges
    number: dict[Hashable, int] = {}
    for row, key in enumerate(zip(owners, names, strict=True) if is_local else names):
        if number.setdefault(key, row) != row:
            hint = (
                f" of graph {owners[row]!r}."
                if is_local
                else ". Edges need a column with their graph unless names are unique."
            )
            first = nodes.where(number[key])
            raise nodes.error(f"{nodes.where(row)} and {first} have the same node {names[row]!r}{hint}")
    graphs = _names(edges, options.graph, "graph") if is_local else []
    rows = np.empty((edges.n_rows, 2), dtype=np.int64)
    for column, argument in enumerate(("source", "target")):
        ends = _names(edges, getattr(options, argument), argument)
        for row, key in enumerate(zip(graphs, ends, strict=True) if is_local else ends):
            if key not in number:
                place = f" of graph {graphs[row]!r}" if is_local else ""
                raise edges.error(
                    f"{edges.where(row)} has {argument} {ends[row]!r}{place}, which is not in the node table."
                )
            rows[row, column] = number[key]
    return rows


def _read_targets(column: str, tables: Mapping[str, CellTable], codes: Ints, graph_names: Sequence[Hashable]) -> Array:
    """Return one target per graph: from the graph table, or from the node table, where it is constant within each graph."""
    is_of_graphs = "graphs" in tables and (column in tables["graphs"] or column not in tables["nodes"])
    table = tables["graphs" if is_of_graphs else "nodes"]
    values = table.complete_values(column, "targets")
    if is_of_graphs:
        return values
    first = np.full(len(graph_names), -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    unequal = np.flatnonzero(values[first[codes]] != values)
    if len(unequal):
        row = unequal[0]
        raise table.error(
            f"targets: the column {column!r} must have one value per graph; graph {graph_names[codes[row]]!r} has "
            f"{plain_label(values[first[codes[row]]])!r} and, in {table.where(int(row))}, {plain_label(values[row])!r}."
        )
    return values[first]
