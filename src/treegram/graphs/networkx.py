"""Convert networkx graphs to Graphs and back. Reading does not import networkx."""

from __future__ import annotations

from typing import Any

from treegram._core.errors import InvalidGraphError
from treegram._core.optional import optional_module
from treegram.graphs import Graphs
from treegram.graphs.named import MISSING, NamedGraph, Roles, build_graphs, common_direction

__all__ = ["read_networkx", "write_networkx"]


def read_networkx(graphs: Any, roles: Roles) -> Graphs:
    """Build a collection from networkx graphs; see :meth:`treegram.Graphs.from_networkx`."""
    items = [graphs] if hasattr(graphs, "is_directed") else list(graphs)
    for i, graph in enumerate(items):
        if not hasattr(graph, "adj") or not hasattr(graph, "is_directed"):
            raise InvalidGraphError(f"Graph {i}: expected a networkx graph; got {type(graph).__name__}.")
    directions = [bool(graph.is_directed()) for graph in items]
    directed = common_direction(directions, "Convert them with to_undirected() or to_directed() first.")
    named = [_read(graph) for graph in items]
    return build_graphs(named, roles, "Graphs.from_networkx", directed=directed)


def _read(graph: Any) -> NamedGraph:
    names = list(graph.nodes)
    number = {node: i for i, node in enumerate(names)}
    edges = list(graph.edges(data=True))
    return NamedGraph(
        len(names),
        [(number[a], number[b]) for a, b, _ in edges],
        _columns([data for _, data in graph.nodes(data=True)]),
        _columns([data for _, _, data in edges]),
        graph.graph,
        names,
    )


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = {name: None for row in rows for name in row}
    return {name: [row.get(name, MISSING) for row in rows] for name in names}


def write_networkx(graphs: Graphs) -> list[Any]:
    """Return one networkx graph per graph; see :meth:`treegram.Graphs.to_networkx`."""
    nx = optional_module("networkx", "Graphs of networkx")
    return [_write(graph, nx.DiGraph() if graphs.directed else nx.Graph()) for graph in graphs]


def _write(graph: Graphs, made: Any) -> Any:
    node_labels = None if graph.labels is None else [graph.label_values[code] for code in graph.labels]
    made.add_nodes_from(enumerate(_rows(node_labels, graph.attributes, graph.n_nodes)))
    arcs = graph._edge_arcs()
    edge_labels = None if graph.edge_labels is None else [graph.edge_label_values[c] for c in graph.edge_labels[arcs]]
    vectors = None if graph.edge_attributes is None else graph.edge_attributes[arcs]
    rows = _rows(edge_labels, vectors, len(arcs))
    made.add_edges_from((a, b, row) for (a, b), row in zip(graph.edges().tolist(), rows, strict=True))
    if graph.targets is not None:
        made.graph["target"] = graph.targets[0]
    return made


def _rows(labels: Any, vectors: Any, length: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(length)]
    for name, values in (("label", labels), ("attributes", None if vectors is None else vectors.tolist())):
        for row, value in zip(rows, values or (), strict=False):
            row[name] = value
    return rows
