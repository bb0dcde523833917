"""What a node adds by the tree around it, shared by the nodes of that tree."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treegram._core.types import Floats
from treegram.graphs import Graphs

__all__ = ["spread_over_trees"]


def spread_over_trees(graphs: Graphs, levels: Floats) -> Floats:
    """Share levels[i, v] evenly among the nodes of the tree of depth i that unrolls the walks from v; sums stay the same.

    ``levels`` has shape (n_levels, n_nodes, n_outputs). A node that is in a tree several times has several parts of it. With
    c_i(v) the number of walks of at most i steps, node w gets the sum over v of levels[i, v] / c_i(v) times the number of these
    walks from v that end at w.
    """
    n = graphs.n_nodes
    steps = sp.csr_matrix((np.ones(len(graphs.indices)), graphs.indices, graphs.indptr), shape=(n, n))
    total = np.zeros_like(levels[0])
    walks, sizes = np.ones(n), np.zeros(n)  # of exactly and of at most i steps, from each node
    for depth, level in enumerate(levels):
        sizes += walks
        walks = steps @ walks
        moved = level / sizes[:, None]
        for _ in range(depth):
            total += moved
            moved = steps.T @ moved
        total += moved
    return total
