"""Graphs of other libraries: networkx, igraph, GraKeL and adjacency matrices, none of which is imported to read them.

A reader turns each graph into a ``NamedGraph``; ``Roles`` says which of its data are labels, vectors and targets. A name that the
user chose must exist, and unused data are listed in one warning. Labels, vectors and edges are checked in ``Graphs.from_edges``.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.optional import optional_module
from treegram._core.text import suggest
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.graphs.check import as_exact, check_vectors

_MISSING: Final = object()  # the value of a node or an edge that has none under some name
_ENTRIES = ("edges", "edge_labels", "edge_attributes")
_KINDS = ("labels", "attributes")


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

    def column(self, graph: int, name: str, thing: str) -> Sequence[Any]:
        """Return the data of all nodes or edges under a name; raise if one has none."""
        data = self.node_data if thing == "node" else self.edge_data
        length = self.n_nodes if thing == "node" else len(self.edges)
        column = data.get(name, [_MISSING] * length)
        if not isinstance(column, np.ndarray):
            for i, value in enumerate(column):
                if value is _MISSING:
                    others = [key for key in data if data[key][i] is not _MISSING]
                    raise InvalidGraphError(
                        f"Graph {graph}: {self._spell(i, thing)} has no {name!r}; it has {list_names(others)}."
                    )
        return column

    def _spell(self, i: int, thing: str) -> str:
        def name(v: Any) -> Any:  # the ends of an edge need not be nodes
            return int(v) if self.names is None else self.names[v]

        if thing == "node":
            return f"node {name(i)!r}"
        source, end = np.asarray(self.edges)[i]
        return f"edge ({name(source)!r}, {name(end)!r})"


@dataclass(frozen=True)
class Roles:
    """The names of the label, the vector and so on; names equal to those in ``defaults`` may be missing."""

    label: str | None
    attributes: str | Sequence[str] | None
    edge_label: str | None
    edge_attributes: str | Sequence[str] | None
    targets: ArrayLike | Mapping[Any, Any] | str | None
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
    label, attributes = (_take(items, roles, argument, "node") for argument in ("label", "attributes"))
    edge_label, edge_attributes = (
        _take(items, roles, argument, "edge") for argument in ("edge_label", "edge_attributes")
    )
    targets, node_names = _targets(items, roles), _node_names(items)
    used = {*roles.names("label"), *roles.names("attributes"), *(["name"] if node_names else [])}
    used_at_edges = {*roles.names("edge_label"), *roles.names("edge_attributes")}
    warn_of_unused(_known(items, "node") - used, _known(items, "edge") - used_at_edges, method)
    return Graphs.from_edges(
        [item.edges for item in items],
        n_nodes=[item.n_nodes for item in items],
        labels=None if label is None else [columns[0] for columns in label],
        attributes=_join_columns(attributes, "attributes", "node"),
        edge_labels=None if edge_label is None else [columns[0] for columns in edge_label],
        edge_attributes=_join_columns(edge_attributes, "edge_attributes", "edge"),
        directed=directed,
        targets=targets,
        graph_names=_all_names([item.name for item in items]),
        node_names=node_names,
        attribute_names=_column_names(attributes, roles, "attributes"),
        edge_attribute_names=_column_names(edge_attributes, roles, "edge_attributes"),
    )


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
            f"{' '.join(parts)} The arguments of {method} select the label, the attributes, the edge label and the edge attributes.",
            UserWarning,
            stacklevel=stacklevel,
        )


def list_names(names: Iterable[Any]) -> str:
    """List names in a message."""
    return ", ".join(sorted(map(repr, names))) or "no data"


def name_columns(names: Sequence[str], blocks: Sequence[Any]) -> list[str]:
    """Name the columns of each block: "x" if it is a single one, else "x[0]", "x[1]" and so on."""
    widths = [np.shape(block)[1] if np.ndim(block) > 1 else 1 for block in blocks]
    return [
        name if width == 1 else f"{name}[{j}]" for name, width in zip(names, widths, strict=True) for j in range(width)
    ]


# -------------------------------------------------------------------- data of the nodes or edges of each graph

Columns = list[list[Sequence[Any]]]  # for each graph, the columns of each name


def _known(items: list[NamedGraph], thing: str) -> set[str]:
    return {name for item in items for name in (item.node_data if thing == "node" else item.edge_data)}


def _take(items: list[NamedGraph], roles: Roles, argument: str, thing: str) -> Columns | None:
    """Return the columns that an argument names; None if it names none, or a default that no graph has."""
    names, known = roles.names(argument), _known(items, thing)
    if not names or (roles.is_default(argument) and not known.intersection(names)):
        return None
    if any(item.n_nodes if thing == "node" else len(item.edges) for item in items):
        for name in names:
            if name not in known:
                raise missing_name(argument, name, known, f"no {thing} of any graph has")
    elif argument.endswith("label"):
        return None
    return [[item.column(i, name, thing) for name in names] for i, item in enumerate(items)]


def _join_columns(columns: Columns | None, argument: str, thing: str) -> list[Any] | None:
    """Return the vectors of each graph."""
    if columns is None:
        return None
    joined: list[Any] = []
    for i, parts in enumerate(columns):
        if len(parts) == 1:
            joined += parts
            continue
        blocks = [check_vectors(column, f"Graph {i}", argument, thing) for column in parts]
        joined.append(np.hstack(blocks) if blocks[0].ndim == 2 else blocks[0])
    return joined


def _column_names(columns: Columns | None, roles: Roles, argument: str) -> list[str] | None:
    """Return the names of the columns of the vectors; a default name says nothing about them."""
    full = next((parts for parts in columns or () if all(len(column) for column in parts)), None)
    return None if full is None or roles.is_default(argument) else name_columns(roles.names(argument), full)


def _all_names(names: Sequence[Any]) -> list[str] | None:
    """Return the names if all are strings, and none is empty."""
    return list(names) if names and all(isinstance(name, str) and name for name in names) else None


def _node_names(items: list[NamedGraph]) -> list[list[str]] | None:
    found = [_all_names(item.names or ()) if item.n_nodes else [] for item in items]
    named = [names for names in found if names is not None]
    return named if any(named) and len(named) == len(found) else None


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
    return {name: [row.get(name, _MISSING) for row in rows] for name in names}


def _from_igraph(graph: Any) -> NamedGraph:
    def columns(sequence: Any) -> dict[str, list[Any]]:  # igraph has None where no value was set
        return {
            name: [_MISSING if value is None else value for value in sequence[name]] for name in sequence.attributes()
        }

    graph_data = {name: graph[name] for name in graph.attributes()}
    nodes = columns(graph.vs)
    names = None if _MISSING in nodes.get("name", [_MISSING]) else nodes["name"]
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


# -------------------------------------------------------------------- adjacency matrices


def read_adjacency(
    matrices: Iterable[Any],
    *,
    labels: Sequence[Sequence[Hashable]] | None,
    attributes: Sequence[ArrayLike] | None,
    entries: str,
    directed: bool,
    targets: ArrayLike | None,
) -> Graphs:
    """Build a collection from adjacency matrices; see :meth:`treegram.Graphs.from_adjacency`."""
    if entries not in _ENTRIES:
        raise InvalidGraphError(f"entries must be one of {', '.join(map(repr, _ENTRIES))}; got {entries!r}.")
    if getattr(matrices, "ndim", None) == 2:
        raise InvalidGraphError("matrices must be a list with one matrix per graph: write [matrix] for a single graph.")
    found = [_matrix_edges(matrix, i, symmetric=not directed) for i, matrix in enumerate(matrices)]
    values: list[Any] = [weights for _, weights, _ in found]
    if entries == "edges" and any((weights != 1).any() for weights in values):
        warnings.warn(
            "The matrices have entries other than 0 and 1, which are not used. Graphs.from_adjacency takes "
            "entries='edge_labels' or entries='edge_attributes'.",
            UserWarning,
            stacklevel=3,
        )
    return Graphs.from_edges(
        [pairs for pairs, _, _ in found],
        n_nodes=[n_nodes for _, _, n_nodes in found],
        labels=labels,
        attributes=attributes,
        edge_labels=values if entries == "edge_labels" else None,
        edge_attributes=values if entries == "edge_attributes" else None,
        directed=directed,
        targets=targets,
    )


def _matrix_edges(matrix: Any, graph: int, *, symmetric: bool = False) -> tuple[Ints, NDArray[Any], int]:
    """Return the node pairs with a nonzero entry, these entries, and the number of nodes."""
    name = f"Graph {graph}: the adjacency matrix"
    square = matrix if sp.issparse(matrix) else as_exact(matrix, name)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or square.dtype.kind not in "biuf":
        raise InvalidGraphError(
            f"{name} must be square and hold numbers; got dtype {square.dtype} and shape {square.shape}."
        )
    entries = sp.coo_array(square)
    entries.sum_duplicates()  # also sorts
    kept = entries.data != 0
    sources, ends, values = entries.coords[0][kept], entries.coords[1][kept], entries.data[kept]
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).argmax())
        raise InvalidGraphError(f"{name} must be finite; its entry ({sources[row]}, {ends[row]}) is {values[row]}.")
    pairs = np.stack([sources, ends], axis=1).astype(np.int64)
    if symmetric:
        _check_symmetric(sp.csr_array(entries), name)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], values[order], square.shape[0]


def _check_symmetric(matrix: Any, name: str) -> None:
    unequal = (matrix != matrix.T).tocoo()
    if unequal.nnz:
        a, b = int(unequal.coords[0][0]), int(unequal.coords[1][0])
        raise InvalidGraphError(
            f"{name} must be symmetric; its entry ({a}, {b}) is {matrix[a, b]}, and ({b}, {a}) is {matrix[b, a]}. "
            "Pass directed=True if edges have a direction."
        )


# -------------------------------------------------------------------- GraKeL


def read_grakel(
    graphs: Iterable[Any], *, node_data: str, edge_data: str, directed: bool, targets: ArrayLike | None
) -> Graphs:
    """Build a collection from GraKeL's input; see :meth:`treegram.Graphs.from_grakel`."""
    for argument, value in (("node_data", node_data), ("edge_data", edge_data)):
        if value not in _KINDS:
            raise InvalidGraphError(f"{argument} must be one of 'labels', 'attributes'; got {value!r}.")
    named = [_from_grakel(item, i) for i, item in enumerate(graphs)]
    has_nodes, has_edges = any(item.node_data for item in named), any("data" in item.edge_data for item in named)
    node_name, edge_name = "data" if has_nodes else None, "data" if has_edges else None
    roles = Roles(
        node_name if node_data == "labels" else None,
        node_name if node_data == "attributes" else None,
        edge_name if edge_data == "labels" else None,
        edge_name if edge_data == "attributes" else None,
        targets,
        {"attributes": "data", "edge_attributes": "data"},
    )
    return build_graphs(named, roles, "Graphs.from_grakel", directed=directed)


def _from_grakel(item: Any, graph: int) -> NamedGraph:
    if hasattr(item, "get_edge_dictionary"):  # a grakel.Graph
        item = (item.get_edge_dictionary(), item.get_labels(purpose="dictionary"), _grakel_edge_labels(item))
    if isinstance(item, Mapping | str) or not isinstance(item, Sequence) or not 1 <= len(item) <= 3:
        raise InvalidGraphError(
            f"Graph {graph}: expected a tuple (edges, node labels, edge labels) whose last two are optional; "
            f"got {type(item).__name__}."
        )
    content, labels, edge_labels = (*item, None, None)[:3]
    weights, names = _grakel_edges(content, graph)
    if isinstance(labels, Mapping):
        names = list(dict.fromkeys([*labels, *names]))
    nodes = {} if not labels else {"data": _grakel_column(labels, names)}
    number = {name: i for i, name in enumerate(names)}
    for name in dict.fromkeys(end for pair in edge_labels or () for end in pair):
        if name not in number:
            raise InvalidGraphError(
                f"Graph {graph}: edge labels refer to the node {name!r}, which the graph does not have."
            )
    pairs = list(weights)
    arcs: dict[str, Any] = {} if not edge_labels else {"data": [edge_labels.get(pair, _MISSING) for pair in pairs]}
    if any(weight != 1 for weight in weights.values()):
        arcs["weight"] = list(weights.values())
    return NamedGraph(len(names), [(number[a], number[b]) for a, b in pairs], nodes, arcs, {}, names)


def _grakel_edge_labels(graph: Any) -> Any:
    try:
        return graph.get_labels(purpose="dictionary", label_type="edge")
    except ValueError:  # it has none
        return None


def _grakel_column(labels: Any, names: list[Any]) -> list[Any]:
    known = labels if isinstance(labels, Mapping) else dict(enumerate(labels))
    return [known.get(name, _MISSING) for name in names]


def _grakel_edges(content: Any, graph: int) -> tuple[dict[tuple[Any, Any], Any], list[Any]]:
    """Return the weight of each edge, and the names of the nodes in order of appearance."""
    is_list_of_rows = isinstance(content, list) and bool(content) and all(isinstance(row, list) for row in content)
    if is_list_of_rows or sp.issparse(content) or isinstance(content, np.ndarray):
        pairs, weights, n_nodes = _matrix_edges(content, graph)
        return dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True)), list(range(n_nodes))
    names: list[Any] = []
    try:
        if not isinstance(content, Mapping):
            edges = sorted(content) if isinstance(content, Set) else content
            found = {(source, end): weight for source, end, weight in ((*edge, 1)[:3] for edge in edges)}
        elif all(isinstance(ends, Mapping | Sequence | Set) for ends in content.values()):  # the neighbors of each node
            names = list(content)
            found = {(a, b): ends[b] if isinstance(ends, Mapping) else 1 for a, ends in content.items() for b in ends}
        else:
            found = {(source, end): weight for (source, end), weight in content.items()}
    except (TypeError, ValueError):
        raise InvalidGraphError(
            f"Graph {graph}: expected a dictionary or list of edges, or an adjacency matrix; got {type(content).__name__}."
        ) from None
    return found, list(dict.fromkeys([*names, *(end for pair in found for end in pair)]))
