"""Graphs with named data at nodes and edges, and the roles of these names: networkx, igraph, and what other readers share.

A name that the user chose must exist, and unused data are listed in one warning. Labels, vectors and edges are checked in
``Graphs.from_edges``. Reading imports none of these libraries.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.errors import InvalidGraphError
from treegram._core.optional import optional_module
from treegram._core.text import suggest
from treegram.graphs import Graphs
from treegram.graphs.check import as_exact, check_vectors

__all__ = [
    "MISSING",
    "NamedGraph",
    "Roles",
    "all_names",
    "build_graphs",
    "list_names",
    "missing_name",
    "name_columns",
    "read_igraph",
    "read_networkx",
    "warn_of_unused",
    "write_networkx",
]

MISSING: Final = object()  # the value of a node or an edge that has none under some name


@dataclass(frozen=True)
class NamedGraph:
    """One graph: pairs of nodes numbered from 0, and data by name: one entry per node, per edge, or for the graph."""

    n_nodes: int
    edges: Any  # a list or an array of pairs
    node_data: Mapping[str, Any] = field(default_factory=dict)
    edge_data: Mapping[str, Any] = field(default_factory=dict)
    graph_data: Mapping[str, Any] = field(default_factory=dict)
    names: Sequence[Any] | None = None  # of the nodes
    name: Any = None  # of the graph


@dataclass(frozen=True)
class Roles:
    """The names of the label, the vector and so on; names equal to those in ``defaults`` may be missing."""

    label: str | None
    attributes: str | Sequence[str] | None
    edge_label: str | None
    edge_attributes: str | Sequence[str] | None
    targets: ArrayLike | Mapping[Any, Any] | str | None
    defaults: Mapping[str, str] = field(default_factory=dict)
    graph_attributes: str | Sequence[str] | None = None

    def names(self, argument: str) -> list[str]:
        """Return the names in an argument."""
        value: Any = getattr(self, argument)
        return [] if value is None else [value] if isinstance(value, str) else list(value)

    def is_default(self, argument: str) -> bool:
        """Return whether an argument has its default value."""
        return argument in self.defaults and getattr(self, argument) == self.defaults[argument]


def build_graphs(items: list[NamedGraph], roles: Roles, method: str, *, directed: bool) -> Graphs:
    """Build a collection; ``method`` is the method that the user called."""
    known_nodes = {name for item in items for name in item.node_data}
    known_edges = {name for item in items for name in item.edge_data}
    has_nodes, has_edges = any(item.n_nodes for item in items), any(len(item.edges) for item in items)
    for argument, known, things, exist in (
        ("label", known_nodes, "node", has_nodes),
        ("attributes", known_nodes, "node", has_nodes),
        ("edge_label", known_edges, "edge", has_edges),
        ("edge_attributes", known_edges, "edge", has_edges),
    ):
        for name in roles.names(argument):
            if exist and name not in known and not roles.is_default(argument):
                raise missing_name(argument, name, known, f"no {things} of any graph has")
    targets = _targets(items, roles)
    warn_of_unused(
        known_nodes.difference(roles.names("label"), roles.names("attributes"), ["name"] if _node_names(items) else []),
        known_edges.difference(roles.names("edge_label"), roles.names("edge_attributes")),
        method,
    )
    return Graphs.from_edges(
        [item.edges for item in items],
        n_nodes=[item.n_nodes for item in items],
        labels=_labels(items, roles.label, known_nodes, "nodes"),
        attributes=_vectors(items, roles, "attributes", known_nodes, "nodes"),
        edge_labels=_labels(items, roles.edge_label, known_edges, "edges"),
        edge_attributes=_vectors(items, roles, "edge_attributes", known_edges, "edges"),
        directed=directed,
        targets=targets,
        graph_names=all_names([item.name for item in items]),
        node_names=_node_names(items),
        attribute_names=_column_names(items, roles, "attributes", "node_data"),
        edge_attribute_names=_column_names(items, roles, "edge_attributes", "edge_data"),
    )


def all_names(names: Sequence[Any]) -> list[str] | None:
    """Return the names if all are strings, and not empty."""
    return list(names) if names and all(isinstance(name, str) and name for name in names) else None


def _node_names(items: list[NamedGraph]) -> list[list[str]] | None:
    found = [all_names(item.names or ()) if item.n_nodes else [] for item in items]
    named = [names for names in found if names is not None]
    return named if any(named) and len(named) == len(found) else None


def name_columns(names: Sequence[str], blocks: Sequence[Any]) -> list[str]:
    """Name the columns of each block: "x" if it is a single one, else "x[0]", "x[1]" and so on."""
    widths = [np.shape(block)[1] if np.ndim(block) > 1 else None for block in blocks]
    return [
        text
        for name, width in zip(names, widths, strict=True)
        for text in ([name] if width in (None, 1) else [f"{name}[{j}]" for j in range(width)])
    ]


def _column_names(items: list[NamedGraph], roles: Roles, argument: str, kind: str) -> list[str] | None:
    """Return the names of the columns of the vectors; those of a default name say nothing."""
    names = roles.names(argument)
    full = [data for data in (getattr(item, kind) for item in items) if all(len(data.get(name, ())) for name in names)]
    if not names or not full or roles.is_default(argument):
        return None
    return name_columns(names, [full[0][name] for name in names])


def missing_name(argument: str, name: str, known: Iterable[Any], subject: str) -> InvalidGraphError:
    """Return the error for a name that does not exist."""
    hint = suggest(str(name), [key for key in known if isinstance(key, str)])
    return InvalidGraphError(f"{argument}: {subject} {name!r}; they have {list_names(known)}{hint or '.'}")


def warn_of_unused(nodes: set[str], edges: set[str], method: str, stacklevel: int = 5) -> None:
    """Warn of unused data, once."""
    parts = [
        f"These data of the {things} are not used: {list_names(names)}."
        for things, names in (("nodes", nodes), ("edges", edges))
        if names
    ]
    if parts:
        warnings.warn(
            f"{' '.join(parts)} Pass to {method} which names are the label, the attributes, the edge label and the edge attributes.",
            UserWarning,
            stacklevel=stacklevel,
        )


def list_names(names: Iterable[Any]) -> str:
    """List names in a message."""
    return ", ".join(sorted(map(repr, names))) or "no data"


# -------------------------------------------------------------------- data of the nodes or edges of each graph


def _column(item: NamedGraph, graph: int, name: str, kind: str) -> Sequence[Any]:
    """Return the data of all nodes or edges of a graph under a name."""
    data = item.node_data if kind == "nodes" else item.edge_data
    length = item.n_nodes if kind == "nodes" else len(item.edges)
    column = data.get(name, [MISSING] * length)
    if not isinstance(column, np.ndarray):
        for i, value in enumerate(column):
            if value is MISSING:
                others = [key for key in data if data[key][i] is not MISSING]
                raise InvalidGraphError(
                    f"Graph {graph}: {_spell(item, i, kind)} has no {name!r}; it has {list_names(others)}."
                )
    return column


def _spell(item: NamedGraph, i: int, kind: str) -> str:
    def name(v: Any) -> Any:  # not all numbers that edges name need be nodes
        return int(v) if item.names is None else item.names[v]

    if kind == "nodes":
        return f"node {name(i)!r}"
    source, end = np.asarray(item.edges)[i]
    return f"edge ({name(source)!r}, {name(end)!r})"


def _labels(items: list[NamedGraph], name: str | None, known: set[str], kind: str) -> list[Sequence[Any]] | None:
    if name is None or name not in known:
        return None
    return [_column(item, i, name, kind) for i, item in enumerate(items)]


def _vectors(items: list[NamedGraph], roles: Roles, argument: str, known: set[str], kind: str) -> list[Any] | None:
    names = roles.names(argument)
    if not names or (not known.intersection(names) and roles.is_default(argument)):
        return None
    return [_vector_block(item, i, names, kind, argument) for i, item in enumerate(items)]


def _vector_block(item: NamedGraph, graph: int, names: list[str], kind: str, argument: str) -> Any:
    columns = [_column(item, graph, name, kind) for name in names]
    if len(columns) == 1:
        return columns[0]
    blocks = [check_vectors(column, f"Graph {graph}", argument, kind[:-1]) for column in columns]
    return np.hstack(blocks) if blocks[0].ndim == 2 else blocks[0]


def _targets(items: list[NamedGraph], roles: Roles) -> Any:
    name = roles.targets
    if not isinstance(name, str):
        return name
    lacking = [i for i, item in enumerate(items) if name not in item.graph_data]
    if not lacking:
        return as_exact([item.graph_data[name] for item in items], f"targets: {name!r}") if items else None
    if len(lacking) == len(items) and roles.is_default("targets"):
        return None
    known = items[lacking[0]].graph_data
    raise InvalidGraphError(f"targets: graph {lacking[0]} has no {name!r}; it has {list_names(known)}.")


# -------------------------------------------------------------------- networkx and igraph


def read_networkx(graphs: Any, roles: Roles) -> Graphs:
    """Build a collection from networkx graphs; see :meth:`treegram.Graphs.from_networkx`."""
    items, directed = _list_graphs(graphs, ("is_directed", "adj"), "a networkx", "to_undirected() or to_directed()")
    return build_graphs([_from_networkx(item) for item in items], roles, "Graphs.from_networkx", directed=directed)


def read_igraph(graphs: Any, roles: Roles) -> Graphs:
    """Build a collection from igraph graphs; see :meth:`treegram.Graphs.from_igraph`."""
    items, directed = _list_graphs(graphs, ("get_edgelist", "vs"), "an igraph", "as_undirected() or as_directed()")
    return build_graphs([_from_igraph(item) for item in items], roles, "Graphs.from_igraph", directed=directed)


def _list_graphs(graphs: Any, members: tuple[str, str], library: str, conversions: str) -> tuple[list[Any], bool]:
    """Return the graphs, which have these members, and whether they are directed."""
    items = [graphs] if hasattr(graphs, members[0]) else list(graphs)
    for i, graph in enumerate(items):
        if not all(hasattr(graph, member) for member in members):
            raise InvalidGraphError(f"Graph {i}: expected {library} graph; got {type(graph).__name__}.")
    directions = [bool(graph.is_directed()) for graph in items]
    if len(set(directions)) > 1:
        raise InvalidGraphError(
            f"Graph {directions.index(not directions[0])} and graph 0 differ: one is directed and one is not. Convert them with "
            f"{conversions} first."
        )
    return items, any(directions)


def _from_networkx(graph: Any) -> NamedGraph:
    names = list(graph.nodes)
    number = {node: i for i, node in enumerate(names)}
    edges = list(graph.edges(data=True))
    return NamedGraph(
        len(names),
        [(number[a], number[b]) for a, b, _ in edges],
        _to_columns([data for _, data in graph.nodes(data=True)]),
        _to_columns([data for _, _, data in edges]),
        graph.graph,
        names,
        graph.graph.get("name"),
    )


def _to_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = {name: None for row in rows for name in row}
    return {name: [row.get(name, MISSING) for row in rows] for name in names}


def _from_igraph(graph: Any) -> NamedGraph:
    def columns(sequence: Any) -> dict[str, list[Any]]:  # igraph has None where no value was set
        return {
            name: [MISSING if value is None else value for value in sequence[name]] for name in sequence.attributes()
        }

    graph_data = {name: graph[name] for name in graph.attributes()}
    nodes = columns(graph.vs)
    names = None if MISSING in nodes.get("name", [MISSING]) else nodes["name"]
    return NamedGraph(
        graph.vcount(), graph.get_edgelist(), nodes, columns(graph.es), graph_data, names, graph_data.get("name")
    )


def write_networkx(graphs: Graphs) -> list[Any]:
    """Return one networkx graph per graph; see :meth:`treegram.Graphs.to_networkx`."""
    nx = optional_module("networkx", "Graphs of networkx")
    return [_to_networkx(graph, nx.DiGraph() if graphs.directed else nx.Graph()) for graph in graphs]


def _to_networkx(graph: Graphs, made: Any) -> Any:
    node_labels = None if graph.labels is None else [graph.label_values[code] for code in graph.labels]
    keys: Any = np.arange(graph.n_nodes) if graph.node_names is None else graph.node_names
    keys = keys.tolist() if len(set(keys)) == len(keys) else list(range(graph.n_nodes))
    made.add_nodes_from(zip(keys, _rows(node_labels, graph.attributes, graph.n_nodes), strict=True))
    arcs = graph._edge_arcs()
    edge_labels = None if graph.edge_labels is None else [graph.edge_label_values[c] for c in graph.edge_labels[arcs]]
    vectors = None if graph.edge_attributes is None else graph.edge_attributes[arcs]
    rows = _rows(edge_labels, vectors, len(arcs))
    made.add_edges_from((keys[a], keys[b], row) for (a, b), row in zip(graph.edges().tolist(), rows, strict=True))
    if graph.graph_names is not None:
        made.name = graph.graph_names[0]
    if graph.targets is not None:
        made.graph["target"] = graph.targets[0]
    return made


def _rows(labels: Any, vectors: Any, length: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(length)]
    for name, values in (("label", labels), ("attributes", None if vectors is None else vectors.tolist())):
        for row, value in zip(rows, values or (), strict=False):
            row[name] = value
    return rows
