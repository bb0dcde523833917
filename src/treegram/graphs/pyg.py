"""PyTorch Geometric's Data to Graphs. Neither torch nor torch_geometric is imported: the objects bring all that is needed."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.check import as_column
from treegram.graphs.named import Choice, NamedGraph, make_graphs
from treegram.graphs.one_hot import OneHot, split_one_hot

__all__ = ["read_pyg"]

_NO_DATA = {"edge_index", "num_nodes", "batch", "ptr"}  # what says how a graph is stored, not what it holds
_ONE_HOT = "one-hot label"


def read_pyg(data: Any, choice: Choice, *, one_hot: OneHot, directed: bool) -> Graphs:
    """Make a collection from Data objects; see :meth:`treegram.Graphs.from_pyg`."""
    items = _as_list(data)
    arrays = [_arrays(item, i) for i, item in enumerate(items)]
    sizes = [_n_nodes(item, known, i) for i, (item, known) in enumerate(zip(items, arrays, strict=True))]
    named = [_name(known, n_nodes, i) for i, (known, n_nodes) in enumerate(zip(arrays, sizes, strict=True))]
    kinds = _kinds(named, arrays, choice)
    named = [_sort(item, known, kinds, choice, i) for i, (item, known) in enumerate(zip(named, arrays, strict=True))]
    if one_hot is not False:
        named, choice = _split(named, choice, one_hot)
    return make_graphs(named, choice, "Graphs.from_pyg", directed=directed)


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
    """What a Data object holds, as arrays of numpy; what is no array, such as a text, has no length."""
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


def _n_nodes(item: Any, known: dict[str, NDArray[Any]], graph: int) -> int:
    if "edge_index" not in known:
        keys = ", ".join(map(repr, known)) or "no data"
        raise InvalidGraphError(f"Graph {graph}: there is no 'edge_index'; it has {keys}.")
    try:
        n_nodes = 0 if item.num_nodes is None else operator.index(item.num_nodes)
    except TypeError:
        n_nodes = -1
    if n_nodes < 0:
        raise InvalidGraphError(f"Graph {graph}: num_nodes must be a whole number, at least 0; got {item.num_nodes!r}.")
    return n_nodes


def _name(known: dict[str, NDArray[Any]], n_nodes: int, graph: int) -> NamedGraph:
    index = known["edge_index"]
    if index.ndim != 2 or index.shape[0] != 2 or (index.size and index.dtype.kind not in "iu"):
        raise InvalidGraphError(
            f"Graph {graph}: edge_index must be whole numbers of shape (2, n_edges); got dtype {index.dtype} and shape "
            f"{index.shape}."
        )
    return NamedGraph(n_nodes, index.T)


def _kinds(named: list[NamedGraph], arrays: list[dict[str, NDArray[Any]]], choice: Choice) -> dict[str, str]:
    """What each key is about: nodes, edges or whole graphs; what the user chose is what it was chosen for."""
    kinds: dict[str, str] = {}
    for key in dict.fromkeys(key for known in arrays for key in known if key not in _NO_DATA):
        things = "arcs" if "edge" in key else "nodes"
        lengths = [(len(item.edges) if things == "arcs" else item.n_nodes) for item in named]
        fits = all(
            known[key].ndim and len(known[key]) == length
            for known, length in zip(arrays, lengths, strict=True)
            if key in known
        )
        kinds[key] = things if fits else "whole"
    kinds |= dict.fromkeys(choice.names("label") + choice.names("attributes"), "nodes")
    kinds |= dict.fromkeys(choice.names("edge_label") + choice.names("edge_attributes"), "arcs")
    if isinstance(choice.targets, str):
        kinds[choice.targets] = "whole"
    return kinds


def _sort(
    item: NamedGraph, known: dict[str, NDArray[Any]], kinds: dict[str, str], choice: Choice, graph: int
) -> NamedGraph:
    parts: dict[str, dict[str, Any]] = {"nodes": {}, "arcs": {}, "whole": {}}
    for key, kind in kinds.items():
        if key in known:
            parts[kind][key] = known[key]
    for kind, length in (("nodes", item.n_nodes), ("arcs", len(item.edges))):
        for key, array in parts[kind].items():
            if not array.ndim or len(array) != length:
                raise InvalidGraphError(
                    f"Graph {graph}: {key!r} must have one row for each of its {length} {'edge' if kind == 'arcs' else 'node'}s; "
                    f"got an array of shape {array.shape}."
                )
    target = choice.targets if isinstance(choice.targets, str) else None
    if target in parts["whole"]:
        parts["whole"][target] = _one_target(parts["whole"][target], target, graph)
    return replace(item, nodes=parts["nodes"], arcs=parts["arcs"], whole=parts["whole"])


def _one_target(value: NDArray[Any], name: str, graph: int) -> Any:
    if value.size == 1:
        return value.reshape(-1)[0]
    if value.ndim == 2 and len(value) == 1:
        return value[0]
    raise InvalidGraphError(
        f"targets: {name!r} of graph {graph} has the shape {value.shape}; expected one entry, or one row, for the whole graph."
    )


def _split(named: list[NamedGraph], choice: Choice, one_hot: OneHot) -> tuple[list[NamedGraph], Choice]:
    """The label out of columns of the vectors."""
    if choice.label is not None or not isinstance(choice.attributes, str):
        raise InvalidGraphError(
            "one_hot takes the label from the columns of attributes: give one name there, and no label."
        )
    name, made, rests = choice.attributes, [], []
    for i, item in enumerate(named):
        if name not in item.nodes:
            raise InvalidGraphError(
                f"one_hot: graph {i} has no {name!r}; it has {', '.join(map(repr, item.nodes)) or 'no data'}."
            )
        codes, rest = split_one_hot(np.asarray(item.nodes[name]), one_hot, f"Graph {i}: {name!r}")
        rests.append(rest)
        others = {key: value for key, value in item.nodes.items() if key != name}
        made.append(replace(item, nodes={**others, _ONE_HOT: codes, **({} if rest is None else {name: rest})}))
    has_rest = any(rest is not None for rest in rests)
    return made, replace(choice, label=_ONE_HOT, attributes=name if has_rest else None)
