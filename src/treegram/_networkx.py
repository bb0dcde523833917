"""networkx graphs → Graphs. networkx itself is not imported: its graphs bring all that is needed."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from treegram.errors import InvalidGraphError
from treegram.graphs import Graphs

__all__ = ["read_networkx"]


def read_networkx(
    graphs: Iterable[Any],
    label: str | None,
    attributes: str | Sequence[str] | None,
    edge_label: str | None,
    targets: ArrayLike | None,
) -> Graphs:
    """Make a collection from networkx graphs; see :meth:`treegram.Graphs.from_networkx`."""
    items = list(graphs)
    for i, graph in enumerate(items):
        if not hasattr(graph, "adj") or not hasattr(graph, "is_directed"):
            raise InvalidGraphError(f"Graph {i}: expected a networkx graph; got {type(graph).__name__}.")
    directions = [bool(graph.is_directed()) for graph in items]
    if len(set(directions)) > 1:
        raise InvalidGraphError(
            f"Graph {directions.index(not directions[0])} and graph 0 differ: one is directed and one is not. "
            "Convert them with to_undirected() or to_directed() first."
        )
    _check_names(items, label, attributes)
    numbers = [{node: i for i, node in enumerate(graph.nodes)} for graph in items]
    return Graphs.from_edges(
        [[(number[a], number[b]) for a, b in graph.edges()] for graph, number in zip(items, numbers, strict=True)],
        n_nodes=[len(number) for number in numbers],
        labels=_node_data(items, label),
        attributes=_vectors(items, attributes),
        edge_labels=None if edge_label is None else _edge_data(items, edge_label),
        directed=bool(directions) and directions[0],
        targets=targets,
    )


def _check_names(items: list[Any], label: str | None, attributes: str | Sequence[str] | None) -> None:
    """Raise if no node has a datum that was asked for; warn if nodes have data that were not."""
    known = {key for graph in items for _, data in graph.nodes(data=True) for key in data}
    names = [attributes] if isinstance(attributes, str) else list(attributes or ())
    asked = [("label", label, "label"), *(("attributes", name, "attributes") for name in names)]
    has_nodes = any(len(graph) for graph in items)
    for argument, name, default in asked:
        is_default = name in (None, default) and (argument == "label" or isinstance(attributes, str | None))
        if has_nodes and not is_default and name not in known:
            close = difflib.get_close_matches(str(name), [key for key in known if isinstance(key, str)], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InvalidGraphError(f"{argument}: no node of any graph has {name!r}; they have {_list(known)}.{hint}")
    if unused := known - {label, *names}:
        warnings.warn(
            f"These data of the nodes are not used: {_list(unused)}. Graphs.from_networkx takes the names of what is to be "
            "the label and the attributes.",
            UserWarning,
            stacklevel=4,
        )


def _list(keys: set[Any]) -> str:
    return ", ".join(sorted(map(repr, keys))) or "no data"


def _node_data(items: list[Any], name: str | None) -> list[list[Any]] | None:
    """One datum per node of each graph, or None where no node has it."""
    if name is None or not any(name in data for graph in items for _, data in graph.nodes(data=True)):
        return None
    return [
        [_datum(data, name, i, f"node {node!r}") for node, data in graph.nodes(data=True)]
        for i, graph in enumerate(items)
    ]


def _vectors(items: list[Any], names: str | Sequence[str] | None) -> list[list[Any]] | None:
    if names is None or isinstance(names, str):
        return _node_data(items, names)
    columns = [_node_data(items, name) or [[] for _ in items] for name in names]  # empty only where there is no node
    return [[list(vector) for vector in zip(*parts, strict=True)] for parts in zip(*columns, strict=True)]


def _edge_data(items: list[Any], name: str) -> list[list[Any]]:
    return [
        [_datum(data, name, i, f"edge ({a!r}, {b!r})") for a, b, data in graph.edges(data=True)]
        for i, graph in enumerate(items)
    ]


def _datum(data: dict[str, Any], name: str, graph: int, where: str) -> Any:
    if name not in data:
        known = ", ".join(repr(key) for key in data) or "no data"
        raise InvalidGraphError(f"Graph {graph}: {where} has no {name!r}; it has {known}.")
    return data[name]
