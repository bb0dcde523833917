"""Places for the nodes of a graph: as far apart on paper as they are in hops."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from treegram._types import Floats
from treegram.graphs import Graphs

__all__ = ["hop_layout"]

_STEPS = 200
_GAP = 1.5  # hops between parts that are not joined, on top of the widest part


def hop_layout(graph: Graphs) -> Floats:
    """Places (n_nodes, 2) that minimise the stress sum (|p_v - p_w| - d(v, w))^2 / d(v, w)^2 over pairs of nodes.

    By majorisation, from classical scaling; the same places for the same graph.
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
    places = _scale_classically(hops)
    for _ in range(_STEPS):
        gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
        pull = weights * hops / np.where(gaps > 1e-9, gaps, np.inf)
        places = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ places)
    return places


def _scale_classically(distances: Floats) -> Floats:
    n = len(distances)
    centring = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    places: Floats = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0))
    # Nodes with equal distances to all others start at one place, where nothing would part them.
    return places + 0.05 * np.column_stack([np.sin(7.0 * np.arange(n)), np.cos(11.0 * np.arange(n))])
