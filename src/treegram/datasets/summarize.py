"""What a collection of graphs holds, as a plain dict of numbers, and what is odd about it, as sentences.

Nothing here is printed; ``treegram info`` does that. All costs are linear in the data, up to sorting.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from treegram._core.errors import InvalidGraphError
from treegram._core.types import Floats, Ints
from treegram.datasets.oddities import oddities
from treegram.graphs import Graphs, as_graphs

__all__ = ["describe"]


_N_PAIRS = 20_000  # pairs of nodes that stand for all of them
_TINY, _ALIKE = 1e-6, 0.99  # node kernels below and above which vectors are "far apart" and "the same"


def describe(graphs: Any, y: ArrayLike | None = None) -> dict[str, Any]:
    """Tell what a collection holds, and what is odd about it.

    Parameters
    ----------
    graphs : Graphs or list of graphs
        The graphs.
    y : array-like of shape (n_graphs,) or (n_graphs, n_columns), optional
        Their targets; without it ``graphs.targets``.

    Returns
    -------
    dict
        Ready for JSON: ``n_graphs``, ``directed``, spreads of ``nodes``, ``edges`` and ``degrees``, ``targets``,
        ``node_labels``, ``edge_labels``, ``attributes``, ``edge_attributes``, ``shape`` and ``copies`` (counts of special
        graphs), and ``odd``, a list of sentences about what one should know or act on.

    Notes
    -----
    ``attributes["node_kernel"]`` is what the default node kernel gives for random pairs of nodes with equal labels.

    Examples
    --------
    >>> from treegram import Graphs, describe
    >>> found = describe(Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], targets=[0, 1]))
    >>> found["nodes"]["total"], found["odd"][0]
    (5, '2 classes have fewer than 10 graphs: too few for 10 stratified folds.')
    """
    graphs = as_graphs(graphs)
    targets = graphs.targets if y is None else np.asarray(y)
    if targets is not None and (not targets.ndim or len(targets) != len(graphs)):
        raise InvalidGraphError(
            f"y must have one entry per graph: {len(graphs)} graphs, got an array of shape {targets.shape}."
        )
    found = _survey(graphs, targets)
    return {**found, "odd": oddities(found)}


def _survey(graphs: Graphs, y: NDArray[Any] | None) -> dict[str, Any]:
    edges_per_graph = _edges_per_graph(graphs)
    return {
        "n_graphs": len(graphs),
        "directed": graphs.directed,
        "nodes": _spread(graphs.sizes),
        "edges": _spread(edges_per_graph),
        "degrees": _spread(graphs.degrees),
        "targets": None if y is None else _targets(y),
        "node_labels": _labels(graphs.labels, graphs.label_values),
        "edge_labels": _labels(graphs.edge_labels, graphs.edge_label_values),
        "attributes": _attributes(graphs),
        "edge_attributes": _edge_attributes(graphs),
        "shape": _shape(graphs, edges_per_graph),
        "copies": _copies(graphs, y),
    }


def _spread(values: NDArray[Any]) -> dict[str, Any]:
    """Sum, mean, smallest and largest of some numbers."""
    if not values.size:
        return {"total": 0, "mean": 0.0, "min": 0, "max": 0}
    return {
        "total": values.sum().item(),
        "mean": float(values.mean()),
        "min": values.min().item(),
        "max": values.max().item(),
    }


def _edges_per_graph(graphs: Graphs) -> Ints:
    arcs = np.diff(graphs.indptr[graphs.offsets])
    return arcs if graphs.directed else arcs // 2


def _targets(y: NDArray[Any]) -> dict[str, Any]:
    """Classes with their sizes, or the range of numbers."""
    if y.ndim > 1 or y.dtype.kind == "f":
        columns = y.reshape(len(y), -1)
        return {"kind": "numbers", "columns": [_spread(column) for column in columns.T]}
    classes, counts = np.unique(y, return_counts=True)
    return {
        "kind": "classes",
        "classes": [
            {"value": value, "count": count} for value, count in zip(classes.tolist(), counts.tolist(), strict=True)
        ],
        "majority": float(counts.max() / len(y)) if len(y) else 0.0,
    }


def _labels(codes: Ints | None, values: tuple[Any, ...]) -> list[dict[str, Any]] | None:
    """How often each label occurs, the most frequent first."""
    if codes is None:
        return None
    counts = np.bincount(codes, minlength=len(values))
    order = np.argsort(-counts, kind="stable")
    return [{"value": values[i], "count": int(counts[i])} for i in order if counts[i]]


# -------------------------------------------------------------------- vectors


def _attributes(graphs: Graphs) -> dict[str, Any] | None:
    if graphs.attributes is None:
        return None
    return {**_columns(graphs.attributes), "node_kernel": _node_kernel(graphs, graphs.attributes)}


def _edge_attributes(graphs: Graphs) -> dict[str, Any] | None:
    """Each edge counts once."""
    return None if graphs.edge_attributes is None else _columns(graphs.edge_attributes[graphs._edge_arcs()])


def _columns(vectors: Floats) -> dict[str, Any]:
    deviations = vectors.std(axis=0) if len(vectors) else np.zeros(vectors.shape[1])
    return {
        "n_columns": vectors.shape[1],
        "n_distinct": _n_distinct(vectors),
        "columns": [{**_spread(column), "sd": float(sd)} for column, sd in zip(vectors.T, deviations, strict=True)],
    }


def _n_distinct(vectors: Floats) -> int:
    if not vectors.size:
        return min(len(vectors), 1)
    rows = np.ascontiguousarray(vectors + 0.0)  # -0.0 becomes 0.0
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def _node_kernel(graphs: Graphs, vectors: Floats) -> dict[str, Any] | None:
    """How the default node kernel, exp(-|x - y|^2 / d), sees random pairs of nodes with equal labels."""
    if not vectors.size:
        return None
    labels = graphs.degrees if graphs.labels is None else graphs.labels
    pairs = np.random.default_rng(0).integers(graphs.n_nodes, size=(_N_PAIRS, 2))
    pairs = pairs[(labels[pairs[:, 0]] == labels[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])]
    if not len(pairs):
        return None
    values = np.exp(-((vectors[pairs[:, 0]] - vectors[pairs[:, 1]]) ** 2).mean(axis=1))
    return {
        "gamma": 1 / graphs.n_attributes,
        "median": float(np.median(values)),
        "far_apart": float((values < _TINY).mean()),
        "alike": float((values > _ALIKE).mean()),
    }


# -------------------------------------------------------------------- shape


def _shape(graphs: Graphs, edges_per_graph: Ints) -> dict[str, int]:
    """How many graphs and nodes are of a kind that one should know of."""
    arcs = csr_matrix(
        (np.ones(len(graphs.indices), np.int8), graphs.indices, graphs.indptr), shape=(graphs.n_nodes, graphs.n_nodes)
    )
    n_components, component = connected_components(arcs, directed=graphs.directed, connection="weak")
    owner = np.zeros(n_components, np.int64)
    owner[component] = graphs.graph_ids
    structures = {_digest(graphs, i, [], []) for i in range(len(graphs))}
    components_per_graph = np.bincount(owner, minlength=len(graphs))
    is_isolated = (graphs.degrees == 0) & (np.bincount(graphs.indices, minlength=graphs.n_nodes) == 0)
    return {
        "distinct_structures": len(structures),
        "isolated_nodes": int(is_isolated.sum()),
        "graphs_with_isolated_nodes": len(np.unique(graphs.graph_ids[is_isolated])),
        "disconnected_graphs": int((components_per_graph > 1).sum()),
        "graphs_without_nodes": int((graphs.sizes == 0).sum()),
        "graphs_without_edges": int(((edges_per_graph == 0) & (graphs.sizes > 0)).sum()),
    }


def _copies(graphs: Graphs, y: NDArray[Any] | None) -> dict[str, int]:
    """Graphs that are there more than once, node by node, and how many of those have another target."""
    at_nodes = [array for array in (graphs.labels, graphs.attributes) if array is not None]
    at_arcs = [array for array in (graphs.edge_labels, graphs.edge_attributes) if array is not None]
    first: dict[bytes, int] = {}
    found = Counter[str]()
    for i in range(len(graphs)):
        original = first.setdefault(_digest(graphs, i, at_nodes, at_arcs), i)
        found["graphs"] += original != i
        found["other_target"] += y is not None and bool(np.any(y[original] != y[i]))
    return {"graphs": found["graphs"], "other_target": found["other_target"]}


def _digest(graphs: Graphs, i: int, at_nodes: list[NDArray[Any]], at_arcs: list[NDArray[Any]]) -> bytes:
    """Equal for graphs that are equal, node by node, in their neighbors and the given arrays."""
    nodes = slice(graphs.offsets[i], graphs.offsets[i + 1])
    arcs = slice(graphs.indptr[nodes.start], graphs.indptr[nodes.stop])
    parts = [graphs.indptr[nodes] - arcs.start, graphs.indices[arcs] - nodes.start]
    parts += [array[nodes] for array in at_nodes] + [array[arcs] for array in at_arcs]
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.digest()
