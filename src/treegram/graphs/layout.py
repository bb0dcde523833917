"""Positions of the nodes of a graph in a drawing: their coordinates, or distances as in hops."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import shortest_path

from treegram._core.types import Floats
from treegram.graphs import Graphs

__all__ = ["hop_layout", "node_places"]

_STEPS = 200
_GAP = 1.5  # hops between parts that are not joined, on top of the widest part
_NEAR = 0.6  # of the mean distance of all pairs of nodes: below, joined nodes are close, as in space


def node_places(graph: Graphs, layout: str | ArrayLike) -> Floats:
    """Return positions of shape (n_nodes, 2) as the parameter ``layout`` of the plots says."""
    if not isinstance(layout, str):
        positions = np.asarray(layout, dtype=np.float64)
        if positions.shape != (graph.n_nodes, 2):
            raise ValueError(
                f"layout must have two coordinates per node, shape ({graph.n_nodes}, 2); got {positions.shape}."
            )
        return positions
    if layout == "hops" or (layout == "auto" and not _has_coordinates(graph)):
        return hop_layout(graph)
    if layout not in ("auto", "attributes"):
        raise ValueError(f"layout must be 'auto', 'hops', 'attributes' or an array of positions; got {layout!r}.")
    if graph.attributes is None or graph.n_attributes < 2:
        raise ValueError(f"layout='attributes' needs two attributes per node; the graph has {graph.n_attributes}.")
    return np.asarray(graph.attributes) if graph.n_attributes == 2 else _flattened(graph.attributes)


def _has_coordinates(graph: Graphs) -> bool:
    """Return whether there are two or three attributes and adjacent nodes are close, as in molecules and scenes."""
    if graph.attributes is None or graph.n_attributes not in (2, 3) or not len(graph.indices) or graph.n_nodes < 3:
        return False
    ends = graph.attributes[graph.edges()]
    joined = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean()
    all_pairs = np.linalg.norm(graph.attributes[:, None] - graph.attributes[None], axis=2).sum()
    return bool(joined < _NEAR * all_pairs / (graph.n_nodes * (graph.n_nodes - 1)))


def _flattened(vectors: Floats) -> Floats:
    """Project vectors to their first two principal components."""
    centered = vectors - vectors.mean(axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:2]
    positions: Floats = centered @ axes.T
    return positions if positions.shape[1] == 2 else np.column_stack([positions, np.zeros(len(positions))])


def hop_layout(graph: Graphs) -> Floats:
    """Return positions (n_nodes, 2) that minimize the stress sum (|p_v - p_w| - d(v, w))^2 / d(v, w)^2 over pairs of nodes.

    By majorization, from classical scaling; deterministic.
    """
    n = graph.n_nodes
    if n < 3:
        return np.column_stack([np.arange(n, dtype=np.float64), np.zeros(n)])
    arcs = sp.csr_matrix((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    hops = shortest_path(arcs, directed=False, unweighted=True)
    joined = np.isfinite(hops)
    hops = np.where(joined, hops, 0.5 * hops[joined].max() + _GAP)
    weights = 1.0 / np.where(hops > 0, hops, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    positions = _scale_classically(hops)
    for _ in range(_STEPS):
        gaps = np.linalg.norm(positions[:, None] - positions[None], axis=2)
        pull = weights * hops / np.where(gaps > 1e-9, gaps, np.inf)
        positions = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ positions)
    return positions


def _scale_classically(distances: Floats) -> Floats:
    n = len(distances)
    centering = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centering @ distances**2 @ centering)
    positions: Floats = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0))
    # Nodes with equal distances to all others start at one place, where nothing would part them.
    return positions + 0.05 * np.column_stack([np.sin(7.0 * np.arange(n)), np.cos(11.0 * np.arange(n))])
