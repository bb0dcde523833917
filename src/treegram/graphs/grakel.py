"""Convert GraKeL's graphs (edges or adjacency, then dictionaries of labels) to Graphs, without importing GraKeL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from treegram._core.errors import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.adjacency import matrix_edges
from treegram.graphs.named import MISSING, NamedGraph, Roles, build_graphs

__all__ = ["read_grakel"]

_KINDS = ("labels", "attributes")


def read_grakel(
    graphs: Iterable[Any], *, node_data: str, edge_data: str, directed: bool, targets: ArrayLike | None
) -> Graphs:
    """Build a collection from GraKeL's input; see :meth:`treegram.Graphs.from_grakel`."""
    for argument, value in (("node_data", node_data), ("edge_data", edge_data)):
        if value not in _KINDS:
            raise InvalidGraphError(f"{argument} must be one of 'labels', 'attributes'; got {value!r}.")
    named = [_read(item, i) for i, item in enumerate(graphs)]
    has_nodes, has_edges = any(item.node_data for item in named), any("data" in item.edge_data for item in named)
    node_name, edge_name = "data" if has_nodes else None, "data" if has_edges else None
    roles = Roles(
        node_name if node_data == "labels" else None,
        node_name if node_data == "attributes" else None,
        edge_name if edge_data == "labels" else None,
        edge_name if edge_data == "attributes" else None,
        targets,
    )
    return build_graphs(named, roles, "Graphs.from_grakel", directed=directed)


def _read(item: Any, graph: int) -> NamedGraph:
    if hasattr(item, "get_edge_dictionary"):  # a grakel.Graph
        item = (item.get_edge_dictionary(), item.get_labels(purpose="dictionary"), _edge_labels_of(item))
    if isinstance(item, Mapping | str) or not isinstance(item, Sequence) or not 1 <= len(item) <= 3:
        raise InvalidGraphError(
            f"Graph {graph}: expected a tuple (edges, node labels, edge labels) of which the last two may be left out; "
            f"got {type(item).__name__}."
        )
    content, labels, edge_labels = (*item, None, None)[:3]
    weights, names = _edges(content, graph)
    if isinstance(labels, Mapping):
        names = list(dict.fromkeys([*labels, *names]))
    nodes = {} if not labels else {"data": _column(labels, names)}
    number = {name: i for i, name in enumerate(names)}
    for name in dict.fromkeys(end for pair in edge_labels or () for end in pair):
        if name not in number:
            raise InvalidGraphError(
                f"Graph {graph}: edge labels name the node {name!r}, which the graph does not have."
            )
    pairs = list(weights)
    arcs: dict[str, Any] = {} if not edge_labels else {"data": [edge_labels.get(pair, MISSING) for pair in pairs]}
    if any(weight != 1 for weight in weights.values()):
        arcs["weight"] = list(weights.values())
    return NamedGraph(len(names), [(number[a], number[b]) for a, b in pairs], nodes, arcs, {}, names)


def _edge_labels_of(graph: Any) -> Any:
    try:
        return graph.get_labels(purpose="dictionary", label_type="edge")
    except ValueError:  # it has none
        return None


def _column(labels: Any, names: list[Any]) -> list[Any]:
    known = labels if isinstance(labels, Mapping) else dict(enumerate(labels))
    return [known.get(name, MISSING) for name in names]


def _edges(content: Any, graph: int) -> tuple[dict[tuple[Any, Any], Any], list[Any]]:
    """Return the weight of each edge, and the names of the nodes in order of appearance."""
    if _is_matrix(content):
        pairs, weights, n_nodes = matrix_edges(content, graph)
        return dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True)), list(range(n_nodes))
    try:
        listed = list(_listed(content))
    except (TypeError, ValueError):
        raise InvalidGraphError(
            f"Graph {graph}: expected a dictionary or list of edges, or an adjacency matrix; got {type(content).__name__}."
        ) from None
    names = dict.fromkeys([*(content if _is_nested(content) else ()), *(end for a, b, _ in listed for end in (a, b))])
    return {(a, b): weight for a, b, weight in listed}, list(names)


def _is_matrix(content: Any) -> bool:
    if sp.issparse(content) or isinstance(content, np.ndarray):
        return True
    return isinstance(content, list) and bool(content) and all(isinstance(row, list) for row in content)


def _is_nested(content: Any) -> bool:
    """Return whether a dictionary has the neighbors of each node, not the weight of each pair."""
    return isinstance(content, Mapping) and all(
        isinstance(value, Mapping | Sequence | Set) for value in content.values()
    )


def _listed(content: Any) -> Iterable[tuple[Any, Any, Any]]:
    if _is_nested(content):
        for source, ends in content.items():
            for end in ends:
                yield source, end, ends[end] if isinstance(ends, Mapping) else 1
    elif isinstance(content, Mapping):
        for (source, end), weight in content.items():
            yield source, end, weight
    else:
        for edge in sorted(content) if isinstance(content, Set) else content:
            source, end, weight = (*edge, 1)[:3]
            yield source, end, weight
