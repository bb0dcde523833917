"""Graphs with named data at nodes and edges, and the roles of these names: the common part of the readers of other libraries.

A name that the user chose must exist, and unused data are listed in one warning. Labels, vectors and edges are checked in
``Graphs.from_edges``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.text import suggest
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.graphs.check import as_exact, check_vectors

__all__ = [
    "MISSING",
    "NamedGraph",
    "OneHot",
    "Roles",
    "build_graphs",
    "common_direction",
    "missing_name",
    "split_one_hot",
    "warn_of_unused",
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
    names: Sequence[Any] | None = None  # of the nodes, for messages


@dataclass(frozen=True)
class Roles:
    """The names of the label, the vector and so on; names equal to those in ``defaults`` may be missing."""

    label: str | None
    attributes: str | Sequence[str] | None
    edge_label: str | None
    edge_attributes: str | Sequence[str] | None
    targets: ArrayLike | str | None
    defaults: Mapping[str, str] = field(default_factory=dict)

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
        known_nodes.difference(roles.names("label"), roles.names("attributes")),
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
    )


def missing_name(argument: str, name: str, known: Iterable[Any], subject: str) -> InvalidGraphError:
    """Return the error for a name that does not exist."""
    hint = suggest(str(name), [key for key in known if isinstance(key, str)])
    return InvalidGraphError(f"{argument}: {subject} {name!r}; they have {_list(known)}{hint or '.'}")


def warn_of_unused(nodes: set[str], edges: set[str], method: str, stacklevel: int = 5) -> None:
    """Warn of unused data, once."""
    parts = [
        f"These data of the {things} are not used: {_list(names)}."
        for things, names in (("nodes", nodes), ("edges", edges))
        if names
    ]
    if parts:
        warnings.warn(
            f"{' '.join(parts)} Pass to {method} which names are the label, the attributes, the edge label and the edge attributes.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _list(keys: Iterable[Any]) -> str:
    return ", ".join(sorted(map(repr, keys))) or "no data"


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


def _vectors(items: list[NamedGraph], roles: Roles, argument: str, known: set[str], kind: str) -> list[Any] | None:
    names = roles.names(argument)
    if not names or (not known.intersection(names) and roles.is_default(argument)):
        return None
    return [_vector_block(item, i, names, kind, argument) for i, item in enumerate(items)]


def _vector_block(item: NamedGraph, graph: int, names: list[str], kind: str, argument: str) -> Any:
    columns = [_column(item, graph, name, kind) for name in names]
    if len(columns) == 1:
        return columns[0]
    blocks = [check_vectors(column, graph, argument, kind[:-1]) for column in columns]
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
    known = ", ".join(sorted(map(repr, items[lacking[0]].graph_data))) or "no data"
    raise InvalidGraphError(f"targets: graph {lacking[0]} has no {name!r}; it has {known}.")


# -------------------------------------------------------------------- directions and one-hot labels


def common_direction(directions: Sequence[bool], advice: str) -> bool:
    """Return whether all graphs are directed; raise if only some are."""
    if len(set(directions)) > 1:
        raise InvalidGraphError(
            f"Graph {directions.index(not directions[0])} and graph 0 differ: one is directed and one is not. {advice}"
        )
    return bool(directions) and directions[0]


OneHot: TypeAlias = bool | slice | Sequence[int]


def split_one_hot(rows: NDArray[Any], one_hot: OneHot, where: str) -> tuple[Ints, NDArray[Any] | None]:
    """Split rows into the label that some columns encode in one-hot form, and the other columns, or None.

    ``one_hot`` is True for all columns, or a slice or the numbers of some. ``where`` begins the message of an error.
    """
    if rows.ndim != 2:
        raise InvalidGraphError(f"{where}: one_hot needs rows of columns; got an array of shape {rows.shape}.")
    n_columns = rows.shape[1]
    try:
        columns = np.arange(n_columns)[slice(None) if one_hot is True else one_hot]
    except IndexError:
        raise InvalidGraphError(f"{where}: one_hot={one_hot!r}, but there are only {n_columns} columns.") from None
    block = rows[:, columns]
    wrong = ((block != 0) & (block != 1)).any(axis=1) | (block.sum(axis=1) != 1)
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidGraphError(
            f"{where}: one_hot columns must have a single 1 and zeros; row {row} has {block[row].tolist()}. "
            "Pass the columns of the label, such as one_hot=slice(3, None)."
        )
    rest = np.delete(rows, columns, axis=1)
    return block.argmax(axis=1).astype(np.int64), rest if rest.shape[1] else None
