"""Draw graphs: positions of the nodes, and the view of a collection in notebooks as HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from treegram._core.text import counted
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.check import COLUMN_NAMES

MOST_HOPS = 400  # nodes of a graph placed by hops, in time cubic in their number
_STEPS = 200
_STILL = 0.002  # hops that a node moves in a step: below this, the layout is done
_GAP = 1.5  # hops between components, in addition to half the largest diameter
# Attributes are coordinates if adjacent nodes are closer than this fraction of the mean distance of all pairs.
_NEAR = 0.6
_LONG = 40  # hops from the first node of a chain to the farthest: beyond this, it would be a thin line
_MOST_VALUES, _LONGEST = 8, 40  # labels or classes in a row of the table, and characters of each


def node_places(graph: Graphs, layout: str | ArrayLike) -> Floats:
    """Return positions of shape (n_nodes, 2) for a value of the plots' parameter ``layout``."""
    if not isinstance(layout, str):
        positions = np.asarray(layout, dtype=np.float64)
        if positions.shape != (graph.n_nodes, 2):
            raise ValueError(
                f"layout must have two coordinates per node, shape ({graph.n_nodes}, 2); got {positions.shape}."
            )
        return positions
    if layout == "auto":
        return _separate(node_places(graph, auto_layout(graph)))
    if layout == "hops":
        return hop_layout(graph)
    if layout == "rows":
        return _row_layout(graph.n_nodes)
    if layout != "attributes":
        raise ValueError(
            f"layout must be 'auto', 'hops', 'rows', 'attributes' or an array of positions; got {layout!r}."
        )
    coordinates = _coordinates(graph)
    if coordinates is None or coordinates.shape[1] < 2:
        raise ValueError(f"layout='attributes' needs two attributes per node; the graph has {graph.n_attributes}.")
    return np.asarray(coordinates) if coordinates.shape[1] == 2 else _flattened(coordinates)


def node_radius(n_nodes: int) -> float:
    """Return the largest radius of a node in a drawing whose longer side is 1."""
    return min(0.04, 0.16 / math.sqrt(max(n_nodes, 1)))


def auto_layout(graph: Graphs) -> str:
    """Return "attributes" for nodes with coordinates, "rows" for a long chain, and otherwise "hops"."""
    if _has_coordinates(graph):
        return "attributes"
    return "rows" if _is_long_chain(graph) else "hops"


def _coordinates(graph: Graphs) -> Floats | None:
    """Return the attributes named x, y and z if there are any, otherwise all."""
    columns = _coordinate_columns(graph)
    return graph.attributes if graph.attributes is None or len(columns) < 2 else graph.attributes[:, columns]


def _coordinate_columns(graph: Graphs) -> list[int]:
    names = [name.lower() for name in graph.attribute_names or ()]
    return [names.index(axis) for axis in "xyz" if axis in names]


def _has_coordinates(graph: Graphs) -> bool:
    """Return whether there are two or three attributes and adjacent nodes are close, as in molecules and scenes."""
    found = _coordinates(graph)
    if graph.attribute_names is not None and len(_coordinate_columns(graph)) < 2:
        return False
    if found is None or found.shape[1] not in (2, 3) or not len(graph.indices) or graph.n_nodes < 3:
        return False
    ends = found[graph.edges()]
    adjacent = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean()
    return bool(adjacent < _NEAR * pdist(found).mean())


def _is_long_chain(graph: Graphs) -> bool:
    """Return whether nearly all nodes are adjacent to the next one, and the ends are far apart."""
    n, edges = graph.n_nodes, graph.edges()
    if n <= _LONG or np.count_nonzero(np.abs(edges[:, 0] - edges[:, 1]) == 1) < 0.9 * (n - 1):
        return False
    hops = shortest_path(_adjacency(graph), directed=False, unweighted=True, indices=0)
    return bool(hops[np.isfinite(hops)].max() > _LONG)


def _adjacency(graph: Graphs) -> sp.csr_matrix:
    n = graph.n_nodes
    return sp.csr_matrix((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))


def _row_layout(n_nodes: int) -> Floats:
    """Place nodes in order in rows that alternate between left to right and right to left, the first on top."""
    width = math.ceil(math.sqrt(2 * n_nodes)) or 1
    row, column = np.divmod(np.arange(n_nodes), width)
    return np.column_stack([np.where(row % 2, width - 1 - column, column), -row]).astype(np.float64)


def _flattened(vectors: Floats) -> Floats:
    """Project vectors onto their first two principal components."""
    centered = vectors - vectors.mean(axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:2]
    positions: Floats = centered @ axes.T
    return positions if positions.shape[1] == 2 else np.column_stack([positions, np.zeros(len(positions))])


def _separate(positions: Floats) -> Floats:
    """Push apart nodes that would overlap when drawn."""
    if len(positions) < 2:
        return positions
    distance = 2.2 * node_radius(len(positions)) * (float(np.ptp(positions, axis=0).max()) or 1.0)
    for _ in range(_STEPS):
        first, second = cKDTree(positions).query_pairs(distance, output_type="ndarray").T
        if not len(first):
            break
        gaps = positions[second] - positions[first]
        lengths = np.linalg.norm(gaps, axis=1)
        apart = np.column_stack([np.cos(second), np.sin(second)])  # for nodes at the same place
        is_apart = lengths > 1e-6 * distance
        apart[is_apart] = gaps[is_apart] / lengths[is_apart, None]
        moves = 0.5 * (1.02 * distance - lengths)[:, None] * apart
        positions = positions.copy()
        np.add.at(positions, first, -moves)
        np.add.at(positions, second, moves)
    return positions


def hop_layout(graph: Graphs) -> Floats:
    """Return positions (n_nodes, 2) that minimize the stress sum (|p_v - p_w| - d(v, w))^2 / d(v, w)^2 over pairs of nodes.

    Uses majorization, starting from classical scaling; deterministic.
    """
    n = graph.n_nodes
    if n < 3:
        return np.column_stack([np.arange(n, dtype=np.float64), np.zeros(n)])
    hops = shortest_path(_adjacency(graph), directed=False, unweighted=True)
    joined = np.isfinite(hops)
    hops = np.where(joined, hops, 0.5 * hops[joined].max() + _GAP)
    weights = 1.0 / np.where(hops > 0, hops, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1.0 / n)  # the pseudoinverse, up to a translation
    positions = _scale_classically(hops)
    for _ in range(_STEPS):
        gaps = squareform(pdist(positions))
        pull = weights * hops / np.where(gaps > 1e-9, gaps, np.inf)
        before, positions = positions, inverse @ (pull.sum(axis=1)[:, None] * positions - pull @ positions)
        if np.abs(positions - before).max() < _STILL:
            break
    return positions


def _scale_classically(distances: Floats) -> Floats:
    n = len(distances)
    centering = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centering @ distances**2 @ centering)
    positions: Floats = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0))
    # Nodes with equal distances to all others would start at the same place and never separate.
    return positions + 0.05 * np.column_stack([np.sin(7.0 * np.arange(n)), np.cos(11.0 * np.arange(n))])


# -------------------------------------------------------------------- a collection as HTML


def graphs_to_html(graphs: Graphs) -> str:
    """Return a collection as HTML; all text from the data is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in _rows(graphs)
    )
    return f"<table>{rows}</table>"


def _rows(graphs: Graphs) -> list[tuple[str, str]]:
    """Return a name and a description for each kind of content."""
    per_graph = f", {graphs.n_nodes / len(graphs):.1f} per graph" if len(graphs) else ""
    rows = [
        ("graphs", f"{len(graphs):,}, {'directed' if graphs.directed else 'undirected'}"),
        ("nodes", f"{graphs.n_nodes:,}{per_graph}"),
        ("edges", f"{graphs.n_edges:,}"),
    ]
    if graphs.labels is not None:
        rows.append(("labels", _list_values(graphs.label_values)))
    if graphs.edge_labels is not None:
        rows.append(("edge labels", _list_values(graphs.edge_label_values)))
    for names, vectors in COLUMN_NAMES.items():
        table, titles = getattr(graphs, vectors), getattr(graphs, names)
        if table is not None:
            rows.append((vectors, _list_values(titles) if titles else counted(table.shape[1], "column")))
    if graphs.targets is not None:
        is_list = graphs.targets.ndim == 1 and graphs.targets.dtype.kind != "f"
        values = sorted(set(graphs.targets.tolist()), key=str) if is_list else ()
        rows.append(("targets", _list_values(values) if is_list else "numbers"))
    return [(name.replace("_", " "), text) for name, text in rows]


def _list_values(values: Sequence[object]) -> str:
    texts = [str(value) for value in values[:_MOST_VALUES]]
    shown = ", ".join(text if len(text) <= _LONGEST else text[:_LONGEST] + "…" for text in texts)
    return f"{len(values):,}: {shown}{', ...' if len(values) > _MOST_VALUES else ''}"
