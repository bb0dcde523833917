"""Convert Data objects of PyTorch Geometric to Graphs, without importing torch or torch_geometric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.check import as_column, check_count
from treegram.graphs.labels import OneHot, split_one_hot
from treegram.graphs.libraries import NamedGraph, Roles, build_graphs, list_names

_NO_DATA = {"edge_index", "num_nodes", "batch", "ptr"}  # keys about storage
_ONE_HOT = "one-hot label"


def read_pyg(data: Any, roles: Roles, *, one_hot: OneHot, directed: bool) -> Graphs:
    """Build a collection from Data objects; see :meth:`treegram.Graphs.from_pyg`."""
    items = _as_list(data)
    arrays = [_arrays(item, i) for i, item in enumerate(items)]
    named = [_name(item, known, i) for i, (item, known) in enumerate(zip(items, arrays, strict=True))]
    kinds = _kinds(named, arrays, roles)
    named = [_add_data(item, known, kinds, roles, i) for i, (item, known) in enumerate(zip(named, arrays, strict=True))]
    if one_hot is not False:
        named, roles = _split(named, roles, one_hot)
    return build_graphs(named, roles, "Graphs.from_pyg", directed=directed)


def _as_list(data: Any) -> list[Any]:
    if hasattr(data, "to_data_list"):  # a Batch
        return list(data.to_data_list())
    if hasattr(data, "edge_index") and hasattr(data, "num_nodes"):
        return [data]
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):  # a list, a Dataset, a Subset of torch
        items: Iterable[Any] = (data[i] for i in range(len(data)))
    elif isinstance(data, Iterable):
        items = data
    else:
        raise InvalidGraphError(f"data must be Data objects of PyTorch Geometric; got {type(data).__name__}.")
    return [part for item in items for part in (item.to_data_list() if hasattr(item, "to_data_list") else [item])]


def _arrays(item: Any, graph: int) -> dict[str, NDArray[Any]]:
    """Return the contents of a Data object as numpy arrays; other values, such as strings, become arrays without a length."""
    if hasattr(item, "node_types") or not hasattr(item, "keys") or not hasattr(item, "num_nodes"):
        raise InvalidGraphError(
            f"Graph {graph}: expected a Data object with one kind of nodes; got {type(item).__name__}."
        )
    return {key: _to_numpy(item[key]) for key in item.keys() if item[key] is not None}  # noqa: SIM118 (no mapping)


def _to_numpy(value: Any) -> NDArray[Any]:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        return as_column(value, "data")
    except InvalidGraphError:  # a ragged list
        return np.array(None)


def _name(item: Any, known: dict[str, NDArray[Any]], graph: int) -> NamedGraph:
    """Return the graph without its data."""
    if "edge_index" not in known:
        raise InvalidGraphError(f"Graph {graph}: there is no 'edge_index'; it has {list_names(known)}.")
    n_nodes = 0 if item.num_nodes is None else check_count(item.num_nodes, f"Graph {graph}", "num_nodes")
    index = known["edge_index"]
    if index.ndim != 2 or index.shape[0] != 2 or (index.size and index.dtype.kind not in "iu"):
        raise InvalidGraphError(
            f"Graph {graph}: edge_index must be whole numbers of shape (2, n_edges); got dtype {index.dtype} and shape "
            f"{index.shape}."
        )
    return NamedGraph(n_nodes, index.T)


def _kinds(named: list[NamedGraph], arrays: list[dict[str, NDArray[Any]]], roles: Roles) -> dict[str, str]:
    """Return whether each key is about nodes, edges or graphs: by its role, else by its name and its lengths in all graphs."""
    kinds: dict[str, str] = {}
    for key in dict.fromkeys(key for known in arrays for key in known if key not in _NO_DATA):
        things = "edge_data" if "edge" in key else "node_data"
        lengths = [(len(item.edges) if things == "edge_data" else item.n_nodes) for item in named]
        fits = all(
            known[key].ndim and len(known[key]) == length
            for known, length in zip(arrays, lengths, strict=True)
            if key in known
        )
        kinds[key] = things if fits else "graph_data"
    kinds |= dict.fromkeys(roles.names("label") + roles.names("attributes"), "node_data")
    kinds |= dict.fromkeys(roles.names("edge_label") + roles.names("edge_attributes"), "edge_data")
    if isinstance(roles.targets, str):
        kinds[roles.targets] = "graph_data"
    return kinds


def _add_data(
    item: NamedGraph, known: dict[str, NDArray[Any]], kinds: dict[str, str], roles: Roles, graph: int
) -> NamedGraph:
    """Return the graph with its data, sorted by kind and checked."""
    data: dict[str, dict[str, Any]] = {"node_data": {}, "edge_data": {}, "graph_data": {}}
    for key, kind in kinds.items():
        if key in known:
            data[kind][key] = known[key]
    for kind, length, noun in (("node_data", item.n_nodes, "nodes"), ("edge_data", len(item.edges), "edges")):
        for key, array in data[kind].items():
            if not array.ndim or len(array) != length:
                raise InvalidGraphError(
                    f"Graph {graph}: {key!r} must have one row for each of its {length} {noun}; got an array of shape "
                    f"{array.shape}."
                )
    if isinstance(roles.targets, str) and roles.targets in data["graph_data"]:
        data["graph_data"][roles.targets] = _one_target(known[roles.targets], roles.targets, graph)
    return replace(item, node_data=data["node_data"], edge_data=data["edge_data"], graph_data=data["graph_data"])


def _one_target(value: NDArray[Any], name: str, graph: int) -> Any:
    if value.size == 1:
        return value.reshape(-1)[0]
    if value.ndim == 2 and len(value) == 1:
        return value[0]
    raise InvalidGraphError(
        f"targets: {name!r} of graph {graph} has the shape {value.shape}; expected one entry, or one row, for the whole graph."
    )


def _split(named: list[NamedGraph], roles: Roles, one_hot: OneHot) -> tuple[list[NamedGraph], Roles]:
    """Take the labels out of the one-hot columns of the vectors."""
    if roles.label is not None or not isinstance(roles.attributes, str):
        raise InvalidGraphError(
            "one_hot takes the label from the columns of attributes: pass one name there, and no label."
        )
    name, made, rests = roles.attributes, [], []
    for i, item in enumerate(named):
        if name not in item.node_data:
            raise InvalidGraphError(f"one_hot: graph {i} has no {name!r}; it has {list_names(item.node_data)}.")
        codes, rest = split_one_hot(np.asarray(item.node_data[name]), one_hot, f"Graph {i}: {name!r}")
        rests.append(rest)
        others = {key: value for key, value in item.node_data.items() if key != name}
        made.append(replace(item, node_data={**others, _ONE_HOT: codes, **({} if rest is None else {name: rest})}))
    has_rest = any(rest is not None for rest in rests)
    return made, replace(roles, label=_ONE_HOT, attributes=name if has_rest else None)
