"""Graphs of other libraries: networkx, igraph, PyTorch Geometric and GraKeL; none is imported to read them.

A reader turns the data of all nodes, edges and graphs into columns; ``tables.build_graphs`` takes labels, vectors and targets from them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from treegram._core.optional import optional_module
from treegram._core.types import Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.check import Finder, check_count, shift_edges
from treegram.graphs.tables import NamedColumns, as_column, build_graphs, list_names

Names = Sequence[str] | None
_STORAGE = {"num_nodes", "batch", "ptr"}  # keys of PyTorch Geometric that are not data
_DEFAULTS = {"label": "label", "attributes": "attributes"}  # names that may be missing
_PYG_DEFAULTS = {"attributes": "x", "edge_attributes": "edge_attr"}


class _Item(NamedTuple):
    """One graph: the keys of its nodes, pairs of positions among these, and data of each node, each edge and the graph."""

    keys: Sequence[Any]
    pairs: Sequence[tuple[int, int]]
    nodes: Sequence[Mapping[str, Any]]
    edges: Sequence[Mapping[str, Any]]
    data: Mapping[str, Any]


def _build(
    items: list[_Item],
    method: str,
    columns: dict[str, Any],
    defaults: dict[str, str],
    targets: Any,
    graph_names: Names,
    *,
    directed: bool,
) -> Graphs:
    """Build a collection; ``targets`` may be a name among the data of the graphs."""
    keys = [key for item in items for key in item.keys]
    offsets = np.concatenate([[0], np.cumsum([len(item.keys) for item in items], dtype=np.int64)])
    starts = zip(items, offsets.tolist(), strict=False)
    pairs = np.array([(start + a, start + b) for item, start in starts for a, b in item.pairs], dtype=np.int64)
    nodes = _columns([row for item in items for row in item.nodes])
    edges = _columns([row for item in items for row in item.edges])
    node_names = _all_names(keys)
    if graph_names is None:
        graph_names = _all_names([item.data.get("name") for item in items])
    tables = _tables(nodes, edges, Finder(offsets, None, keys), pairs.reshape(-1, 2))
    if node_names is not None:
        tables["nodes"].used.add("name")  # as igraph calls it
    if isinstance(targets, str):
        graph_data = NamedColumns(_columns([item.data for item in items]), "graphs", len(items))
        targets = graph_data.take("targets", targets).tolist()
    return build_graphs(
        method,
        columns,
        tables,
        defaults=defaults,
        stacklevel=5,
        offsets=offsets,
        edges=pairs,
        directed=directed,
        targets=targets,
        graph_names=graph_names,
        node_names=node_names,
    )


def _tables(nodes: dict[str, Any], edges: dict[str, Any], finder: Finder, pairs: Ints) -> dict[str, NamedColumns]:
    """Return the tables of nodes and edges, whose rows are described by graph and node."""

    def node(row: int) -> str:
        return f"{finder.graph_of(row)}: node {finder.node(row)}"

    def edge(row: int) -> str:
        return f"{finder.graph_of(int(pairs[row, 0]))}: edge {finder.edge(pairs[row])}"

    return {
        "nodes": NamedColumns(nodes, "nodes", int(finder.offsets[-1]), node),
        "edges": NamedColumns(edges, "edges", len(pairs), edge),
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values under each name, with None where it is missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _all_names(names: list[Any]) -> list[str] | None:
    """Return the names if all are nonempty strings, else None."""
    return names if names and all(isinstance(name, str) and name for name in names) else None


# -------------------------------------------------------------------- networkx and igraph


def read_networkx(graphs: Any, targets: Any, graph_names: Names, **columns: Any) -> Graphs:
    """Build a collection from networkx graphs; see :meth:`treegram.Graphs.from_networkx`."""
    inputs, directed = _list_graphs(graphs, ("is_directed", "adj"), "a networkx", "to_undirected() or to_directed()")
    items = []
    for graph in inputs:
        number = {key: i for i, key in enumerate(graph.nodes)}
        edges = list(graph.edges(data=True))
        pairs = [(number[a], number[b]) for a, b, _ in edges]
        nodes = [data for _, data in graph.nodes(data=True)]
        items.append(_Item(list(number), pairs, nodes, [data for _, _, data in edges], graph.graph))
    return _build(items, "Graphs.from_networkx", columns, _DEFAULTS, targets, graph_names, directed=directed)


def read_igraph(graphs: Any, targets: Any, graph_names: Names, **columns: Any) -> Graphs:
    """Build a collection from igraph graphs; see :meth:`treegram.Graphs.from_igraph`."""
    inputs, directed = _list_graphs(graphs, ("get_edgelist", "vs"), "an igraph", "as_undirected() or as_directed()")
    items = []
    for graph in inputs:
        nodes = [vertex.attributes() for vertex in graph.vs]
        edges = [edge.attributes() for edge in graph.es]
        keys = [row.get("name") for row in nodes]
        data = {name: graph[name] for name in graph.attributes()}
        items.append(_Item(keys, graph.get_edgelist(), nodes, edges, data))
    return _build(items, "Graphs.from_igraph", columns, _DEFAULTS, targets, graph_names, directed=directed)


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


def _rows(codes: Ints | None, values: tuple[Hashable, ...], vectors: Any, length: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(length)]
    for row, code in zip(rows, () if codes is None else codes, strict=False):
        row["label"] = values[code]
    for row, vector in zip(rows, () if vectors is None else vectors.tolist(), strict=False):
        row["attributes"] = vector
    return rows


# -------------------------------------------------------------------- PyTorch Geometric


def read_pyg(data: Any, targets: Any, graph_names: Names, *, directed: bool, **columns: Any) -> Graphs:
    """Build a collection from Data objects; see :meth:`treegram.Graphs.from_pyg`."""
    items = [_pyg_arrays(item, i) for i, item in enumerate(_pyg_list(data))]
    sizes, content = [size for size, _ in items], [arrays for _, arrays in items]
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    pairs = [arrays.pop("edge_index").T for arrays in content]
    n_edges = [len(pair) for pair in pairs]
    edges = np.concatenate([np.empty((0, 2), np.int64), *pairs])
    edges = shift_edges(edges, np.repeat(np.arange(len(items)), n_edges), offsets)
    if isinstance(targets, str):
        targets = _pyg_targets(content, targets)
    nodes = _pyg_columns(content, sizes, "nodes", [columns["label"], columns["attributes"]])
    arcs = _pyg_columns(content, n_edges, "edges", [columns["edge_label"], columns["edge_attributes"]])
    tables = _tables(nodes, arcs, Finder(offsets), edges)
    arrays = {"offsets": offsets, "edges": edges, "directed": directed, "targets": targets, "graph_names": graph_names}
    return build_graphs("Graphs.from_pyg", columns, tables, defaults=_PYG_DEFAULTS, **arrays)


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


def _pyg_arrays(item: Any, graph: int) -> tuple[int, dict[str, NDArray[Any]]]:
    """Return the number of nodes and the contents of a Data object as arrays; strings and the like have no length."""
    if hasattr(item, "node_types") or not hasattr(item, "keys") or not hasattr(item, "num_nodes"):
        raise InvalidGraphError(
            f"Graph {graph}: expected a Data object with one kind of nodes; got {type(item).__name__}."
        )
    keys = [key for key in item.keys() if key not in _STORAGE and item[key] is not None]  # noqa: SIM118 (no mapping)
    arrays = {key: _to_numpy(item[key], key) for key in keys}
    if "edge_index" not in arrays:
        raise InvalidGraphError(f"Graph {graph}: there is no 'edge_index'; it has {list_names(arrays)}.")
    index = arrays["edge_index"]
    if index.ndim != 2 or index.shape[0] != 2 or (index.size and index.dtype.kind not in "iu"):
        raise InvalidGraphError(
            f"Graph {graph}: edge_index must be whole numbers of shape (2, n_edges); got dtype {index.dtype} and shape "
            f"{index.shape}."
        )
    arrays["edge_index"] = index.astype(np.int64)
    return 0 if item.num_nodes is None else check_count(item.num_nodes, f"Graph {graph}: num_nodes"), arrays


def _to_numpy(value: Any, key: str) -> NDArray[Any]:
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu().numpy())
    return as_column(value, key) if isinstance(value, list | tuple | np.ndarray) else np.array(value)


def _pyg_columns(
    content: list[dict[str, NDArray[Any]]], lengths: list[int], things: str, roles: list[Any]
) -> dict[str, NDArray[Any]]:
    """Return the chosen data of all nodes or edges, and other data of equal length, to be reported as unused."""
    chosen = [name for names in roles if names for name in ([names] if isinstance(names, str) else names)]
    known = {key for arrays in content for key in arrays}
    columns = {}
    for key in [*chosen, *sorted(key for key in known if ("edge" in key) == (things == "edges"))]:
        blocks: dict[int, Any] = {
            i: content[i].get(key) for i, length in enumerate(lengths) if length or np.size(content[i].get(key, ()))
        }
        wrong = [i for i, block in blocks.items() if np.shape(block)[:1] != (lengths[i],)]
        if wrong and key in chosen and key in known:
            raise InvalidGraphError(
                f"Graph {wrong[0]}: {key!r} must have one row for each of its {lengths[wrong[0]]} {things}; got an array of shape "
                f"{np.shape(blocks[wrong[0]])}."
            )
        if len({np.shape(block)[1:] for block in blocks.values()}) > 1 and not wrong:
            raise InvalidGraphError(f"The rows of {key!r} must be of one length in all graphs.")
        if not wrong and key in known:
            types = {block.dtype for block in blocks.values()}
            common = types.pop() if len(types) == 1 else object  # numpy would turn numbers next to strings into strings
            columns[key] = np.concatenate(list(blocks.values()) or [np.empty(0)], dtype=common)
    return columns


def _pyg_targets(content: list[dict[str, NDArray[Any]]], name: str) -> list[Any] | None:
    """Return the target of each graph: one value, or a row of values; "y" may be missing."""
    if name == "y" and not any(name in arrays for arrays in content):
        return None
    targets = []
    for i, arrays in enumerate(content):
        if name not in arrays:
            raise InvalidGraphError(f"targets: graph {i} has no {name!r}; it has {list_names(arrays)}.")
        value = arrays.pop(name)
        if value.size != 1 and not (value.ndim == 2 and len(value) == 1):
            raise InvalidGraphError(
                f"targets: {name!r} of graph {i} has the shape {value.shape}; expected one entry, or one row, for the whole graph."
            )
        targets.append(value.item() if value.size == 1 else value[0])
    return targets


# -------------------------------------------------------------------- GraKeL


def read_grakel(
    graphs: Iterable[Any], targets: ArrayLike | None, graph_names: Names, *, node_data: str, directed: bool
) -> Graphs:
    """Build a collection from GraKeL's input; see :meth:`treegram.Graphs.from_grakel`."""
    if node_data not in ("labels", "attributes"):
        raise InvalidGraphError(f"node_data must be one of 'labels', 'attributes'; got {node_data!r}.")
    columns = {"label" if node_data == "labels" else "attributes": "data", "edge_label": "data"}
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
    nodes = [{"data": labels[name]} if name in labels else {} for name in number]
    edges: list[dict[str, Any]] = [{"data": edge_labels[pair]} if pair in edge_labels else {} for pair in weights]
    if any(weight != 1 for weight in weights.values()):
        edges = [{**row, "weight": weight} for row, weight in zip(edges, weights.values(), strict=True)]
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
