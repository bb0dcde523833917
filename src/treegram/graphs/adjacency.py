"""Convert adjacency matrices and GraKeL's input (edges or a matrix, then dictionaries of labels), without importing GraKeL."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.graphs.check import as_exact
from treegram.graphs.named import MISSING, NamedGraph, Roles, build_graphs

__all__ = ["read_adjacency", "read_grakel"]

_ENTRIES = ("edges", "edge_labels", "edge_attributes")
_KINDS = ("labels", "attributes")


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
    named = [_read(item, i) for i, item in enumerate(graphs)]
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
        pairs, weights, n_nodes = _matrix_edges(content, graph)
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
