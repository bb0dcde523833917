"""Summarize a collection of graphs as a plain dict of numbers, with warnings about likely problems.

Nothing is printed here; ``treegram info`` does that. All costs are linear in the data, up to sorting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.check import COLUMN_NAMES, ROWS
from treegram.graphs.digest import digest_each
from treegram.graphs.statistics import count_components, join_directions

_N_AXES = 3
_BOND_SPREAD = 0.35  # standard deviation of the lengths of edges, as a share of their mean
_BOND_SHARE = 0.6  # mean length of edges, as a share of the median distance in a graph
_N_PAIRS = 20_000  # sampled pairs of nodes
_FAR, _ALIKE = 1e-6, 0.99  # two vectors are far apart below, or similar above, these values of the node kernel
_SCALE_RATIO = 10  # of the standard deviations of two columns
_FEW_VECTORS = 0.05  # distinct vectors per node
_UNBALANCED = 1.5  # largest class divided by smallest class
_FOLDS = 10  # of a typical cross-validation
_LARGE = 10  # largest graph divided by mean graph
_NOT_STRUCTURE = {*chain.from_iterable(ROWS.values()), *COLUMN_NAMES}  # fields


def summarize_graphs(graphs: Any, y: ArrayLike | None = None) -> dict[str, Any]:
    """Summarize a collection of graphs and flag likely problems.

    Parameters
    ----------
    graphs : Graphs or list of graphs
        The graphs.
    y : array-like of shape (n_graphs,) or (n_graphs, n_columns), optional
        Their targets; by default ``graphs.targets``.

    Returns
    -------
    dict
        Ready for JSON: ``n_graphs``, ``directed``, the ranges of ``nodes``, ``edges`` and ``degrees``, ``targets``,
        ``node_labels``, ``edge_labels``, ``attributes``, ``edge_attributes``, ``graph_attributes``, ``shape`` and ``copies``
        (counts of special graphs), and ``warnings``, a list of sentences about what to know or fix.

    Notes
    -----
    ``attributes["node_kernel"]`` summarizes the default node kernel over random pairs of nodes with equal labels.

    Examples
    --------
    >>> from treegram import Graphs, summarize_graphs
    >>> summary = summarize_graphs(Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], targets=[0, 1]))
    >>> summary["nodes"]["total"], summary["warnings"][0]
    (5, '2 classes have fewer than 10 graphs: too few for 10 stratified folds.')
    """
    graphs = as_graphs(graphs)
    targets = graphs.targets if y is None else np.asarray(y)
    if targets is not None and (not targets.ndim or len(targets) != len(graphs)):
        raise InvalidGraphError(
            f"y must have one entry per graph: {len(graphs)} graphs, got an array of shape {targets.shape}."
        )
    arcs_per_graph = np.diff(graphs.indptr[graphs.offsets])
    edges_per_graph = arcs_per_graph if graphs.directed else arcs_per_graph // 2
    summary = {
        "n_graphs": len(graphs),
        "directed": graphs.directed,
        "nodes": _range(graphs.sizes),
        "edges": _range(edges_per_graph),
        "degrees": _range(graphs.degrees),
        "targets": None if targets is None else _targets(targets),
        "node_labels": _labels(graphs.labels, graphs.label_values),
        "edge_labels": _labels(graphs.edge_labels, graphs.edge_label_values),
        "attributes": _attributes(graphs),
        "edge_attributes": _columns(graphs.edge_attributes, graphs.edge_attribute_names, graphs._edge_arcs()),
        "graph_attributes": _columns(graphs.graph_attributes, graphs.graph_attribute_names),
        "shape": _shape(graphs, edges_per_graph),
        "copies": _copies(graphs, targets),
    }
    return {**summary, "warnings": list(_warnings(summary))}


def _range(values: NDArray[Any]) -> dict[str, Any]:
    values = values if values.size else np.zeros(1, np.int64)
    total, low, high = values.sum().item(), values.min().item(), values.max().item()
    return {"total": total, "mean": float(values.mean()), "min": low, "max": high}


def _targets(y: NDArray[Any]) -> dict[str, Any]:
    """Return the classes with their sizes, or the range of regression targets."""
    if y.ndim > 1 or y.dtype.kind == "f":
        columns = y.reshape(len(y), -1)
        return {"kind": "numbers", "columns": [_range(column) for column in columns.T]}
    classes, counts = np.unique(y, return_counts=True)
    return {
        "kind": "classes",
        "classes": [
            {"value": value, "count": count} for value, count in zip(classes.tolist(), counts.tolist(), strict=True)
        ],
        "majority": float(counts.max() / len(y)) if len(y) else 0.0,
    }


def _labels(codes: Ints | None, values: tuple[Any, ...]) -> list[dict[str, Any]] | None:
    """Count the labels, most frequent first."""
    if codes is None:
        return None
    counts = np.bincount(codes, minlength=len(values))
    order = np.argsort(-counts, kind="stable")
    return [{"value": values[i], "count": int(counts[i])} for i in order if counts[i]]


# -------------------------------------------------------------------- vectors


def _attributes(graphs: Graphs) -> dict[str, Any] | None:
    columns = _columns(graphs.attributes, graphs.attribute_names)
    if columns is None:
        return None
    vectors = np.asarray(graphs.attributes)
    return {
        **columns,
        "node_kernel": _node_kernel(graphs, vectors),
        "like_coordinates": _are_like_coordinates(graphs, vectors),
    }


def _are_like_coordinates(graphs: Graphs, vectors: Floats) -> bool:
    """Return whether vectors are like x, y, z: edges have nearly one length, well below that of other pairs in a graph."""
    if vectors.shape[1] != _N_AXES or not len(graphs.indices):
        return False
    random = np.random.default_rng(0)
    arcs = random.integers(len(graphs.indices), size=_N_PAIRS)
    starts = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)[arcs]
    partners = graphs.offsets[graphs.graph_ids[starts]] + random.integers(graphs.sizes[graphs.graph_ids[starts]])
    lengths = np.linalg.norm(vectors[starts] - vectors[graphs.indices[arcs]], axis=1)
    distances = np.linalg.norm(vectors[starts] - vectors[partners], axis=1)[starts != partners]
    return bool(lengths.std() < _BOND_SPREAD * lengths.mean() and lengths.mean() < _BOND_SHARE * np.median(distances))


def _columns(vectors: Floats | None, names: Sequence[str] | None, rows: Any = slice(None)) -> dict[str, Any] | None:
    """Summarize some rows of vectors, if there are any, by column; each undirected edge is one row."""
    if vectors is None:
        return None
    vectors = vectors[rows]
    deviations = vectors.std(axis=0) if len(vectors) else np.zeros(vectors.shape[1])
    return {
        "n_columns": vectors.shape[1],
        "n_distinct": len(np.unique(vectors, axis=0)) if vectors.size else min(len(vectors), 1),
        "columns": [
            {"name": name, **_range(column), "sd": float(sd)}
            for name, column, sd in zip(names or map(str, range(vectors.shape[1])), vectors.T, deviations, strict=True)
        ],
    }


def _node_kernel(graphs: Graphs, vectors: Floats) -> dict[str, Any] | None:
    """Sample the default node kernel, exp(-|x - y|^2 / d), over pairs of nodes with equal labels."""
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
        "far_apart": float((values < _FAR).mean()),
        "alike": float((values > _ALIKE).mean()),
    }


# -------------------------------------------------------------------- shape


def _shape(graphs: Graphs, edges_per_graph: Ints) -> dict[str, int]:
    """Count graphs and nodes of special kinds."""
    symmetric = join_directions(graphs)
    is_isolated = np.diff(symmetric.indptr) == 0
    return {
        "distinct_structures": len(set(digest_each(graphs, _NOT_STRUCTURE))),
        "isolated_nodes": int(is_isolated.sum()),
        "graphs_with_isolated_nodes": len(np.unique(graphs.graph_ids[is_isolated])),
        "disconnected_graphs": int((count_components(graphs, symmetric) > 1).sum()),
        "graphs_without_nodes": int((graphs.sizes == 0).sum()),
        "graphs_without_edges": int(((edges_per_graph == 0) & (graphs.sizes > 0)).sum()),
    }


def _copies(graphs: Graphs, y: NDArray[Any] | None) -> dict[str, int]:
    """Count graphs that equal an earlier one node by node, and those of them with a different target."""
    first: dict[str, int] = {}
    digests = digest_each(graphs, ("targets", "graph_names", "node_names", "positions"))
    originals = [first.setdefault(digest, i) for i, digest in enumerate(digests)]
    other = [y is not None and bool(np.any(y[original] != y[i])) for i, original in enumerate(originals)]
    return {"graphs": len(graphs) - len(first), "other_target": sum(other)}


# -------------------------------------------------------------------- warnings


def _warnings(summary: dict[str, Any]) -> Iterator[str]:
    """Yield one sentence per problem, most important first."""
    nodes = summary["nodes"]
    if not summary["n_graphs"]:
        yield "There are no graphs."
    if nodes["max"] > _LARGE * nodes["mean"]:
        yield f"The largest graph has {nodes['max']} nodes, {nodes['max'] / nodes['mean']:.0f} times the mean."
    yield from _warn_of_targets(summary["targets"])
    copies = summary["copies"]
    if copies["graphs"]:
        other = f", {copies['other_target']} of them with another target" if copies["other_target"] else ""
        yield f"{counted(copies['graphs'], 'graph is an exact copy', 'graphs are exact copies')} of an earlier one{other}."
    yield from _warn_of_shape(summary["shape"], summary["n_graphs"])
    labels = summary["node_labels"]
    if labels is None:
        yield 'There are no node labels: kernels use each node\'s degree (missing_labels="degree") or one label for all ("constant").'
    elif len(labels) == 1:
        yield "All nodes have the same label."
    if summary["attributes"] is None:
        yield "There are no attributes: ODDCL then equals ODDST."
    else:
        yield from _warn_of_attributes(summary["attributes"], nodes["total"])
        if summary["attributes"]["like_coordinates"]:
            yield (
                "The attributes look like coordinates: to kernels, a graph that was moved or turned is another graph. If it should not "
                "be, CentroidDistance replaces them by distances."
            )
    if summary["edge_attributes"]:
        yield "Kernels do not use edge attributes directly: BinEdgeAttributes turns them into edge labels."


def _warn_of_targets(targets: dict[str, Any] | None) -> Iterator[str]:
    if targets is None:
        yield "There are no targets: nothing can be learned or cross-validated."
    elif targets["kind"] == "classes":
        counts = [row["count"] for row in targets["classes"]]
        if len(counts) == 1:
            yield "There is only one class: nothing can be learned."
        elif counts and max(counts) >= _UNBALANCED * min(counts):
            yield (
                f"Classes are unbalanced ({max(counts)} to {min(counts)}): always guessing the largest is right in "
                f"{targets['majority']:.1%} of the cases."
            )
        if small := sum(count < _FOLDS for count in counts):
            yield f"{counted(small, 'class has', 'classes have')} fewer than {_FOLDS} graphs: too few for {_FOLDS} stratified folds."


def _warn_of_shape(shape: dict[str, int], n_graphs: int) -> Iterator[str]:
    if n_graphs > 1 and shape["distinct_structures"] == 1:
        yield "All graphs have the same structure, node by node: they can differ only in labels and attributes."
    for name, singular, plural, rest in (
        ("graphs_without_nodes", "graph has", "graphs have", "no nodes: kernel values are 0"),
        ("graphs_without_edges", "graph has", "graphs have", "nodes but no edges"),
        ("disconnected_graphs", "graph is", "graphs are", "not connected"),
        (
            "isolated_nodes",
            "node has",
            "nodes have",
            f"no neighbor, in {counted(shape['graphs_with_isolated_nodes'], 'graph')}",
        ),
    ):
        if shape[name]:
            yield f"{counted(shape[name], singular, plural)} {rest}."


def _warn_of_attributes(attributes: dict[str, Any], n_nodes: int) -> Iterator[str]:
    constant = [column["name"] for column in attributes["columns"] if column["min"] == column["max"]]
    if constant and n_nodes:
        words = ("column", "is") if len(constant) == 1 else ("columns", "are")
        yield f"Attribute {words[0]} {', '.join(constant)} {words[1]} constant."
    deviations = sorted((column["sd"], column["name"]) for column in attributes["columns"] if column["sd"] > 0)
    if deviations and deviations[-1][0] > _SCALE_RATIO * deviations[0][0]:
        (low, narrow), (high, wide) = deviations[0], deviations[-1]
        yield (
            f"Attribute scales differ by {high / low:.0f}x (standard deviation of column {wide}: {high:.3g}, of column "
            f"{narrow}: {low:.3g}): the wide ones dominate the node kernel."
        )
    if attributes["n_distinct"] < _FEW_VECTORS * n_nodes:
        yield f"Only {attributes['n_distinct']} distinct vectors at {n_nodes} nodes."
    kernel = attributes["node_kernel"] or {"far_apart": 0.0, "alike": 0.0}
    for name, bound, effect, change in (
        ("far_apart", "below 1e-6", "only nearly equal vectors count", "smaller"),
        ("alike", "above 0.99", "vectors hardly count", "larger"),
    ):
        if kernel[name] > 0.5:
            yield (
                f"At the default gamma = {kernel['gamma']:.3g} the node kernel is {bound} for {kernel[name]:.0%} of the node "
                f"pairs with equal labels: {effect}. Try a {change} gamma or scaled attributes."
            )
