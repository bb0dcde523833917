"""Sums over pairs of nodes that are kept apart by node and feature, for explanations."""

from __future__ import annotations

import numpy as np

from treegram._types import Floats
from treegram.attributes import NodeKernel
from treegram.pairsum.loops.entries import add_entries
from treegram.pairsum.nodes import Nodes

__all__ = ["entry_sums"]

_PAIRS_AT_ONCE = 1 << 21  # of nodes: 16 MiB of k_A


def entry_sums(left: Nodes, right: Nodes, node_kernel: NodeKernel, coefficients: Floats) -> Floats:
    """What each feature of each node on the left adds to the sums over the nodes of the right, times their coefficients.

    For the entry (v, t) of the left features the sum over v' of phi(v, t) phi(v', t) k_A(x_v, x_v') coefficients[v'], of shape
    (n_entries, n_outputs), in the order of ``left.features.data``. Both sides have the same columns.
    """
    rows, columns = left.features, right.features.tocsc()
    sums = np.zeros((coefficients.shape[1], rows.nnz))
    places = np.empty(len(right.graph_ids), np.int64)  # of each node in its block
    blocks = [
        (np.flatnonzero(left.blocks == one), np.flatnonzero(right.blocks == one)) for one in np.unique(right.blocks)
    ]
    for _, others in blocks:
        places[others] = np.arange(len(others))
    members, weighted = places[columns.indices], columns.data * coefficients[columns.indices].T
    for own, others in blocks:
        step = max(1, _PAIRS_AT_ONCE // len(others))
        for first in range(0, len(own), step):
            some = own[first : first + step]
            alike = node_kernel(left.vectors[some], right.vectors[others])
            for of_output, values in zip(sums, weighted, strict=True):
                add_entries(some, (rows.indptr, rows.indices), (columns.indptr, members, values), alike, of_output)
    return sums.T * rows.data[:, None]
