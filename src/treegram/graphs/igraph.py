"""igraph graphs to Graphs. igraph itself is not imported: its graphs bring all that is needed."""

from __future__ import annotations

from typing import Any

from treegram._core.errors import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.named import MISSING, Choice, NamedGraph, make_graphs

__all__ = ["read_igraph"]


def read_igraph(graphs: Any, choice: Choice) -> Graphs:
    """Make a collection from igraph graphs; see :meth:`treegram.Graphs.from_igraph`."""
    items = [graphs] if hasattr(graphs, "get_edgelist") else list(graphs)
    for i, graph in enumerate(items):
        if not hasattr(graph, "get_edgelist") or not hasattr(graph, "vs"):
            raise InvalidGraphError(f"Graph {i}: expected an igraph graph; got {type(graph).__name__}.")
    directions = [bool(graph.is_directed()) for graph in items]
    if len(set(directions)) > 1:
        raise InvalidGraphError(
            f"Graph {directions.index(not directions[0])} and graph 0 differ: one is directed and one is not. "
            "Convert them with as_undirected() or as_directed() first."
        )
    named = [_read(graph) for graph in items]
    return make_graphs(named, choice, "Graphs.from_igraph", directed=bool(directions) and directions[0])


def _read(graph: Any) -> NamedGraph:
    return NamedGraph(
        graph.vcount(),
        graph.get_edgelist(),
        {name: _present(graph.vs[name]) for name in graph.vs.attributes()},
        {name: _present(graph.es[name]) for name in graph.es.attributes()},
        {name: graph[name] for name in graph.attributes()},
    )


def _present(values: list[Any]) -> list[Any]:
    """The values; vertices and edges that have not been given one have None."""
    return [MISSING if value is None else value for value in values]
