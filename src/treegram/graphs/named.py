"""Graphs whose nodes and edges carry data under names, and what the user chose of them: the common part of all converters.

A name that the user gave must exist, and data that nobody chose is named in one warning. What is right about labels, vectors and
edges is checked where every collection is made, in ``Graphs.from_edges``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.errors import InvalidGraphError
from treegram._core.text import suggest
from treegram.graphs import Graphs
from treegram.graphs.check import as_exact, check_vectors

__all__ = ["MISSING", "Choice", "NamedGraph", "make_graphs", "missing_name", "warn_of_unused"]

MISSING: Final = object()  # what a node or an edge has under a name that only others have


@dataclass(frozen=True)
class NamedGraph:
    """One graph: pairs of nodes numbered from 0, and data by name, one entry per node, per pair, or for the whole graph."""

    n_nodes: int
    edges: Any  # a list or an array of pairs
    nodes: Mapping[str, Any] = field(default_factory=dict)
    arcs: Mapping[str, Any] = field(default_factory=dict)
    whole: Mapping[str, Any] = field(default_factory=dict)
    names: Sequence[Any] | None = None  # of the nodes, for messages


@dataclass(frozen=True)
class Choice:
    """Which names are the label, the vector and so on; ``usual`` are names that may be missing, since nobody gave them."""

    label: str | None
    attributes: str | Sequence[str] | None
    edge_label: str | None
    edge_attributes: str | Sequence[str] | None
    targets: ArrayLike | str | None
    usual: Mapping[str, str] = field(default_factory=dict)

    def names(self, argument: str) -> list[str]:
        """The names that an argument gives."""
        given: Any = getattr(self, argument)
        return [] if given is None else [given] if isinstance(given, str) else list(given)

    def is_usual(self, argument: str) -> bool:
        """Whether an argument has its default value."""
        return argument in self.usual and getattr(self, argument) == self.usual[argument]


def make_graphs(items: list[NamedGraph], choice: Choice, door: str, *, directed: bool) -> Graphs:
    """The collection; ``door`` is the method that the user called."""
    known_nodes = {name for item in items for name in item.nodes}
    known_edges = {name for item in items for name in item.arcs}
    has_nodes, has_edges = any(item.n_nodes for item in items), any(len(item.edges) for item in items)
    for argument, known, things, exist in (
        ("label", known_nodes, "node", has_nodes),
        ("attributes", known_nodes, "node", has_nodes),
        ("edge_label", known_edges, "edge", has_edges),
        ("edge_attributes", known_edges, "edge", has_edges),
    ):
        for name in choice.names(argument):
            if exist and name not in known and not choice.is_usual(argument):
                raise missing_name(argument, name, known, f"no {things} of any graph has")
    targets = _targets(items, choice)
    warn_of_unused(
        known_nodes.difference(choice.names("label"), choice.names("attributes")),
        known_edges.difference(choice.names("edge_label"), choice.names("edge_attributes")),
        door,
    )
    return Graphs.from_edges(
        [item.edges for item in items],
        n_nodes=[item.n_nodes for item in items],
        labels=_labels(items, choice.label, known_nodes, "nodes"),
        attributes=_vectors(items, choice, "attributes", known_nodes, "nodes"),
        edge_labels=_labels(items, choice.edge_label, known_edges, "arcs"),
        edge_attributes=_vectors(items, choice, "edge_attributes", known_edges, "arcs"),
        directed=directed,
        targets=targets,
    )


def missing_name(argument: str, name: str, known: Iterable[Any], nobody: str) -> InvalidGraphError:
    """The error for a name that does not exist."""
    hint = suggest(str(name), [key for key in known if isinstance(key, str)])
    return InvalidGraphError(f"{argument}: {nobody} {name!r}; they have {_list(known)}{hint or '.'}")


def warn_of_unused(nodes: set[str], edges: set[str], door: str, stacklevel: int = 5) -> None:
    """Name data that nobody chose, once."""
    parts = [
        f"These data of the {things} are not used: {_list(names)}."
        for things, names in (("nodes", nodes), ("edges", edges))
        if names
    ]
    if parts:
        warnings.warn(
            f"{' '.join(parts)} {door} takes the names of what is to be the label, the attributes, the edge label and the edge "
            "attributes.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _list(keys: Iterable[Any]) -> str:
    return ", ".join(sorted(map(repr, keys))) or "no data"


# -------------------------------------------------------------------- data of the nodes or edges of each graph


def _column(item: NamedGraph, graph: int, name: str, kind: str) -> Sequence[Any]:
    """What the nodes or edges of a graph have under a name, if all have it."""
    data = item.nodes if kind == "nodes" else item.arcs
    length = item.n_nodes if kind == "nodes" else len(item.edges)
    column = data.get(name, [MISSING] * length)
    if not isinstance(column, np.ndarray):
        for i, value in enumerate(column):
            if value is MISSING:
                others = [key for key in data if data[key][i] is not MISSING]
                raise InvalidGraphError(
                    f"Graph {graph}: {_spell(item, i, kind)} has no {name!r}; it has {', '.join(map(repr, others)) or 'no data'}."
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


def _vectors(items: list[NamedGraph], choice: Choice, argument: str, known: set[str], kind: str) -> list[Any] | None:
    names = choice.names(argument)
    if not names or (not known.intersection(names) and choice.is_usual(argument)):
        return None
    return [_vector_block(item, i, names, kind, argument) for i, item in enumerate(items)]


def _vector_block(item: NamedGraph, graph: int, names: list[str], kind: str, argument: str) -> Any:
    columns = [_column(item, graph, name, kind) for name in names]
    if len(columns) == 1:
        return columns[0]
    blocks = [check_vectors(column, graph, argument, kind[:-1]) for column in columns]
    return np.hstack(blocks) if blocks[0].ndim == 2 else blocks[0]


def _targets(items: list[NamedGraph], choice: Choice) -> Any:
    name = choice.targets
    if not isinstance(name, str):
        return name
    lacking = [i for i, item in enumerate(items) if name not in item.whole]
    if not lacking:
        return as_exact([item.whole[name] for item in items], f"targets: {name!r}") if items else None
    if len(lacking) == len(items) and choice.is_usual("targets"):
        return None
    known = ", ".join(sorted(map(repr, items[lacking[0]].whole))) or "no data"
    raise InvalidGraphError(f"targets: graph {lacking[0]} has no {name!r}; it has {known}.")
