"""Convert igraph graphs to Graphs, without importing igraph."""

from __future__ import annotations

from typing import Any

from treegram._core.errors import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.named import MISSING, NamedGraph, Roles, build_graphs, common_direction

__all__ = ["read_igraph"]


def read_igraph(graphs: Any, roles: Roles) -> Graphs:
    """Build a collection from igraph graphs; see :meth:`treegram.Graphs.from_igraph`."""
    items = [graphs] if hasattr(graphs, "get_edgelist") else list(graphs)
    for i, graph in enumerate(items):
        if not hasattr(graph, "get_edgelist") or not hasattr(graph, "vs"):
            raise InvalidGraphError(f"Graph {i}: expected an igraph graph; got {type(graph).__name__}.")
    directions = [bool(graph.is_directed()) for graph in items]
    directed = common_direction(directions, "Convert them with as_undirected() or as_directed() first.")
    named = [_read(graph) for graph in items]
    return build_graphs(named, roles, "Graphs.from_igraph", directed=directed)


def _read(graph: Any) -> NamedGraph:
    return NamedGraph(
        graph.vcount(),
        graph.get_edgelist(),
        {name: _present(graph.vs[name]) for name in graph.vs.attributes()},
        {name: _present(graph.es[name]) for name in graph.es.attributes()},
        {name: graph[name] for name in graph.attributes()},
    )


def _present(values: list[Any]) -> list[Any]:
    """Return the values; igraph has None where none was set."""
    return [MISSING if value is None else value for value in values]
