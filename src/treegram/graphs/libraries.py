"""Graphs of other libraries: networkx, igraph, PyTorch Geometric and GraKeL; none is imported to read them.

A reader turns the data of all nodes, edges and graphs into columns; ``tables.build_graphs`` takes labels, vectors and targets from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from treegram._core.optional import optional_module
from treegram._core.types import Array, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.cells import Cells, CellTable
from treegram.graphs.check import Finder, LabelValues, check_count, place_edges
from treegram.graphs.tables import ARGUMENTS, build_graphs, list_names

GraphNames = Sequence[str] | None
_STORAGE = {"num_nodes", "batch", "ptr"}  # keys of PyTorch Geometric that are not data
_DEFAULTS = ("label", "attributes", None, None)  # names that may be missing
_PYG_DEFAULTS = (None, "x", None, "edge_attr")


class _Item(NamedTuple):
    """One graph: the keys of its nodes, pairs of positions among these, and data of its nodes, of its edges and of the graph, by name."""

    keys: Sequence[Any]
    pairs: Any
    nodes: dict[str, Cells]
    edges: dict[str, Cells]
    data: Mapping[str, Any]


def _build(
    items: list[_Item],
    method: str,
    columns: Sequence[Any],
    defaults: Sequence[str | None],
    targets: Any,
    graph_names: GraphNames,
    *,
    directed: bool,
) -> Graphs:
    """Build a collection; ``columns`` are names of data in the order of the arguments, and ``targets`` may be one."""
    keys = [key for item in items for key in item.keys]
    blocks = [np.asarray(item.pairs, np.int64).reshape(-1, 2) for item in items]
    counts = {"edges": list(map(len, blocks))}, {"nodes": [len(item.keys) for item in items]}
    offsets, pairs = place_edges(np.concatenate([np.empty((0, 2), np.int64), *blocks]), *counts)
    node_names = _all_names(keys)
    if graph_names is None:
        graph_names = _all_names([item.data.get("name") for item in items])
    finder = Finder(offsets, None, None if all(isinstance(item.keys, range) for item in items) else keys)
    nodes = [(len(item.keys), item.nodes) for item in items]
    edges = [(len(item.pairs), item.edges) for item in items]
    tables = {
        "nodes": _join_columns("nodes", nodes, lambda row: f"{finder.graph_of(row)}: node {finder.node(row)}"),
        "edges": _join_columns(
            "edges", edges, lambda row: f"{finder.graph_of(int(pairs[row, 0]))}: edge {finder.edge(pairs[row])}"
        ),
    }
    if node_names is not None:
        tables["nodes"].used.add("name")  # as igraph calls it
    if isinstance(targets, str):
        data = [(1, {name: [value] for name, value in item.data.items()}) for item in items]
        values = _join_columns("graphs", data, finder.graph).labels(targets, "targets")
        targets = values if len(values) else None
    return build_graphs(
        method,
        dict(zip(ARGUMENTS, columns, strict=False)),
        tables,
        defaults=dict(zip(ARGUMENTS, defaults, strict=False)),
        offsets=offsets,
        edges=pairs,
        directed=directed,
        targets=targets,
        graph_names=graph_names,
        node_names=node_names,
    )


def _join_columns(
    things: str, parts: Sequence[tuple[int, Mapping[str, Cells]]], where: Callable[[int], str]
) -> CellTable:
    """Return one table of the rows of all parts, with None where a part lacks a column; ``parts`` have numbers of rows, and columns."""
    columns: dict[str, Cells] = {}
    for name in dict.fromkeys(name for _, part in parts for name in part):
        blocks = [part.get(name, [None] * n_rows) for n_rows, part in parts if n_rows]
        is_array = blocks and all(isinstance(block, np.ndarray) for block in blocks)
        if is_array and len({(block.dtype, block.shape[1:]) for block in blocks}) == 1:
            columns[str(name)] = np.concatenate(blocks)
        else:
            columns[str(name)] = [cell for block in blocks for cell in block]
    n_rows = sum(n_rows for n_rows, _ in parts)
    return CellTable(things, columns, n_rows, where, noun="attribute", error=InvalidGraphError)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values under each name, with None where it is missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _all_names(names: list[Any]) -> list[str] | None:
    """Return the names if all are nonempty strings, else None."""
    return names if names and all(isinstance(name, str) and name for name in names) else None


# -------------------------------------------------------------------- networkx and igraph


def read_networkx(graphs: Any, columns: Sequence[Any], targets: Any, graph_names: GraphNames) -> Graphs:
    """Build a collection from networkx graphs; see :meth:`treegram.Graphs.from_networkx`."""
    inputs, directed = _list_graphs(graphs, ("is_directed", "adj"), "a networkx", "to_undirected() or to_directed()")
    items = []
    for graph in inputs:
        number = {key: i for i, key in enumerate(graph.nodes)}
        edges = list(graph.edges(data=True))
        pairs = [(number[a], number[b]) for a, b, _ in edges]
        nodes = _columns([data for _, data in graph.nodes(data=True)])
        items.append(_Item(list(number), pairs, nodes, _columns([data for _, _, data in edges]), graph.graph))
    return _build(items, "Graphs.from_networkx", columns, _DEFAULTS, targets, graph_names, directed=directed)


def read_igraph(graphs: Any, columns: Sequence[Any], targets: Any, graph_names: GraphNames) -> Graphs:
    """Build a collection from igraph graphs; see :meth:`treegram.Graphs.from_igraph`."""
    inputs, directed = _list_graphs(graphs, ("get_edgelist", "vs"), "an igraph", "as_undirected() or as_directed()")
    items = []
    for graph in inputs:
        nodes = {name: graph.vs[name] for name in graph.vs.attributes()}
        edges = {name: graph.es[name] for name in graph.es.attributes()}
        data = {name: graph[name] for name in graph.attributes()}
        items.append(_Item(nodes.get("name", range(graph.vcount())), graph.get_edgelist(), nodes, edges, data))
    return _build(items, "Graphs.from_igraph", columns, _DEFAULTS, targets, graph_names, directed=directed)


def _list_graphs(graphs: Any, members: tuple[str, str], library: str, conversions: str) -> tuple[list[Any], bool]:
    """Return the graphs, which have these members, and whether they are directed."""
    items = list(graphs) if isinstance(graphs, Iterable) and not hasattr(graphs, members[0]) else [graphs]
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


def write_networkx(graphs: Graphs) -> list[Any]:
    """Return one networkx graph per graph; see :meth:`treegram.Graphs.to_networkx`."""
    nx = optional_module("networkx", "Graphs of networkx")
    return [_to_networkx(graph, nx.DiGraph() if graphs.directed else nx.Graph()) for graph in graphs]


def _to_networkx(graph: Graphs, result: Any) -> Any:
    keys: list[Any] = list(range(graph.n_nodes))
    if graph.node_names is not None and len(set(graph.node_names)) == graph.n_nodes:
        keys = graph.node_names.tolist()
    arcs = graph._edge_arcs()
    edge_labels = None if graph.edge_labels is None else graph.edge_labels[arcs]
    edge_vectors = None if graph.edge_attributes is None else graph.edge_attributes[arcs]
    nodes = _rows(graph.labels, graph.label_values, graph.attributes, graph.n_nodes)
    edges = _rows(edge_labels, graph.edge_label_values, edge_vectors, len(arcs))
    result.add_nodes_from(zip(keys, nodes, strict=True))
    result.add_edges_from((keys[a], keys[b], row) for (a, b), row in zip(graph.edges().tolist(), edges, strict=True))
    if graph.graph_names is not None:
        result.name = graph.graph_names[0]
    if graph.targets is not None:
        result.graph["target"] = graph.targets[0]
    return result


def _rows(codes: Ints | None, values: LabelValues, vectors: Any, length: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(length)]
    for row, code in zip(rows, () if codes is None else codes, strict=False):
        row["label"] = values[code]
    for row, vector in zip(rows, () if vectors is None else vectors.tolist(), strict=False):
        row["attributes"] = vector
    return rows


# -------------------------------------------------------------------- PyTorch Geometric


def read_pyg(data: Any, columns: Sequence[Any], targets: Any, graph_names: GraphNames, *, directed: bool) -> Graphs:
    """Build a collection from Data objects; see :meth:`treegram.Graphs.from_pyg`."""
    selected = {name for names in columns for name in ([names] if isinstance(names, str) else names or [])}
    items = [_from_pyg(item, i, selected, targets) for i, item in enumerate(_pyg_list(data))]
    for table in ("nodes", "edges"):  # what only some graphs have for each of their rows is no data of nodes or edges
        rows = [set(getattr(item, table)) for item in items if len(item.keys if table == "nodes" else item.pairs)]
        for item in items if rows else ():
            for key in getattr(item, table).keys() - set.intersection(*rows) - selected:
                del getattr(item, table)[key]
    if targets == "y" and not any("y" in item.data for item in items):
        targets = None
    return _build(items, "Graphs.from_pyg", columns, _PYG_DEFAULTS, targets, graph_names, directed=directed)


def _pyg_list(data: Any) -> list[Any]:
    # A data set may show the joined edge_index of its graphs, but has no number of nodes.
    if hasattr(data, "to_data_list") or (hasattr(data, "edge_index") and hasattr(data, "num_nodes")):
        items: Iterable[Any] = [data]  # a Batch or Data object
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):  # a list, a Dataset, a Subset of torch
        items = (data[i] for i in range(len(data)))
    elif isinstance(data, Iterable):
        items = data
    else:
        raise InvalidGraphError(f"data must be Data objects of PyTorch Geometric; got {type(data).__name__}.")
    return [part for item in items for part in (item.to_data_list() if hasattr(item, "to_data_list") else [item])]


def _from_pyg(item: Any, graph: int, selected: Set[str], target: Any) -> _Item:
    """Return a Data object as arrays; those that are not chosen and have another number of rows are no data of nodes or edges."""
    if hasattr(item, "node_types") or not hasattr(item, "keys") or not hasattr(item, "num_nodes"):
        raise InvalidGraphError(
            f"Graph {graph}: expected a Data object with one kind of nodes; got {type(item).__name__}."
        )
    keys = [key for key in item.keys() if key not in _STORAGE and item[key] is not None]  # noqa: SIM118 (no mapping)
    arrays = {key: _to_numpy(item[key]) for key in keys}
    if "edge_index" not in arrays:
        raise InvalidGraphError(f"Graph {graph}: there is no 'edge_index'; it has {list_names(arrays)}.")
    index = arrays.pop("edge_index")
    if index.ndim != 2 or index.shape[0] != 2 or (index.size and index.dtype.kind not in "iu"):
        raise InvalidGraphError(
            f"Graph {graph}: edge_index must be whole numbers of shape (2, n_edges); got dtype {index.dtype} and shape "
            f"{index.shape}."
        )
    n_nodes = 0 if item.num_nodes is None else check_count(item.num_nodes, f"Graph {graph}: num_nodes")
    parts: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    data: dict[str, Any] = dict(arrays)
    if isinstance(target, str) and target in arrays:
        data[target] = _pyg_target(arrays.pop(target), target, graph)
    for key, array in sorted(arrays.items()):
        is_of_edges = "edge" in key
        n_rows = index.shape[1] if is_of_edges else n_nodes
        if array.shape[:1] == (n_rows,):
            parts[is_of_edges][key] = array
        elif key in selected:
            raise InvalidGraphError(
                f"Graph {graph}: {key!r} must have one row for each of its {n_rows} {'edges' if is_of_edges else 'nodes'}; got an "
                f"array of shape {array.shape}."
            )
    return _Item(range(n_nodes), index.T, *parts, data)


def _to_numpy(value: Any) -> Array:
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu().numpy())
    is_list = isinstance(value, list | tuple)  # of names, perhaps: numpy would change some
    return np.fromiter(value, dtype=object, count=len(value)) if is_list else np.array(value)


def _pyg_target(value: Array, name: str, graph: int) -> Any:
    """Return the target of a graph: one value, or a row of values."""
    if value.size != 1 and not (value.ndim == 2 and len(value) == 1):
        raise InvalidGraphError(
            f"targets: {name!r} of graph {graph} has the shape {value.shape}; expected one entry, or one row, for the whole graph."
        )
    return value.item() if value.size == 1 else value[0]


# -------------------------------------------------------------------- GraKeL


def read_grakel(
    graphs: Iterable[Any], targets: ArrayLike | None, graph_names: GraphNames, *, node_data: str, directed: bool
) -> Graphs:
    """Build a collection from GraKeL's input; see :meth:`treegram.Graphs.from_grakel`."""
    if node_data not in ("labels", "attributes"):
        raise InvalidGraphError(f"node_data must be one of 'labels', 'attributes'; got {node_data!r}.")
    columns = ("data", None, "data", None) if node_data == "labels" else (None, "data", "data", None)
    items = [_from_grakel(item, i) for i, item in enumerate(graphs)]
    return _build(items, "Graphs.from_grakel", columns, columns, targets, graph_names, directed=directed)


def _from_grakel(item: Any, graph: int) -> _Item:
    if hasattr(item, "get_edge_dictionary"):  # a grakel.Graph
        item = (item.get_edge_dictionary(), item.get_labels(purpose="dictionary"), _grakel_edge_labels(item))
    if isinstance(item, Mapping | str) or not isinstance(item, Sequence) or not 1 <= len(item) <= 3:
        raise InvalidGraphError(
            f"Graph {graph}: expected a tuple (edges, node labels, edge labels) whose last two are optional; "
            f"got {type(item).__name__}."
        )
    content, labels, edge_labels = (*item, None, None)[:3]
    weights, names = _grakel_edges(content, graph)
    labels = labels if isinstance(labels, Mapping) else dict(enumerate(labels or ()))
    edge_labels = edge_labels or {}
    number = {name: i for i, name in enumerate(dict.fromkeys([*labels, *names]))}
    nodes = {"data": [labels.get(name) for name in number]} if labels else {}
    edges = {"data": [edge_labels.get(pair) for pair in weights]} if edge_labels else {}
    if any(weight != 1 for weight in weights.values()):
        edges["weight"] = list(weights.values())
    return _Item(list(number), [(number[a], number[b]) for a, b in weights], nodes, edges, {})


def _grakel_edge_labels(graph: Any) -> Any:
    try:
        return graph.get_labels(purpose="dictionary", label_type="edge")
    except ValueError:  # it has none
        return None


def _grakel_edges(content: Any, graph: int) -> tuple[dict[tuple[Any, Any], Any], list[Any]]:
    """Return the weight of each edge, and the names of the nodes in order of appearance."""
    is_list_of_rows = isinstance(content, list) and bool(content) and all(isinstance(row, list) for row in content)
    names: list[Any] = []
    try:
        if is_list_of_rows or sp.issparse(content) or isinstance(content, np.ndarray):
            # Rows of texts are no matrix, but SciPy 1.13 takes them.
            matrix = sp.coo_array(np.asarray(content, np.float64) if is_list_of_rows else content)
            names = list(range(matrix.shape[0]))
            entries = zip(*(part.tolist() for part in (*matrix.coords, matrix.data)), strict=True)
            weights = {(a, b): weight for a, b, weight in entries if weight}
        elif not isinstance(content, Mapping):
            edges = sorted(content) if isinstance(content, Set) else content
            weights = {(source, end): weight for source, end, weight in ((*edge, 1)[:3] for edge in edges)}
        elif all(isinstance(ends, Mapping | Sequence | Set) for ends in content.values()):  # the neighbors of each node
            names = list(content)
            weights = {(a, b): ends[b] if isinstance(ends, Mapping) else 1 for a, ends in content.items() for b in ends}
        else:
            weights = {(source, end): weight for (source, end), weight in content.items()}
    except (TypeError, ValueError):
        raise InvalidGraphError(
            f"Graph {graph}: expected a dictionary or list of edges, or an adjacency matrix; got {type(content).__name__}."
        ) from None
    return weights, list(dict.fromkeys([*names, *(end for pair in weights for end in pair)]))
