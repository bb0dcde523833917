"""Sums over pairs of nodes that are kept apart by node and feature, for explanations.

The weights of the fitted graphs are known, so that all their nodes with equal block and vector are one column, whichever graph
they are of. Gaussians are computed in windows, as in ``pairsum.nodes``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treegram._core.types import Floats, Ints
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.loops.entries import add_entries
from treegram.pairsum.loops.tiles import Rows
from treegram.pairsum.nodes import Nodes
from treegram.pairsum.tiles import Layout
from treegram.structure.hashing import equal_rows

__all__ = ["entry_sums"]

PAIRS_PER_CALL = 1 << 24  # of rows and columns: each call stays well under a second, and given kernels small


def entry_sums(left: Nodes, right: Nodes, node_kernel: NodeKernel, coefficients: Floats) -> Floats:
    """What each feature of each node on the left adds to the sums over the nodes of the right, times their coefficients.

    For the entry (v, t) of the left features the sum over v' of phi(v, t) phi(v', t) k_A(x_v, x_v') coefficients[v'], of shape
    (n_entries, n_outputs), in the order of ``left.features.data``. Both sides have the same columns.
    """
    features, sums = left.features, np.zeros((left.features.nnz, coefficients.shape[1]))
    if not features.nnz or not right.features.nnz:
        return sums
    groups, first = equal_rows(right.vectors, right.blocks)
    distinct = Nodes(
        1, np.zeros(len(first), np.int64), right.blocks[first], right.vectors[first], right.features[first]
    )
    layout = Layout.make(left, distinct, node_kernel)
    order, columns = layout.columns((0, 1))
    lists = _weigh_columns(right, np.argsort(order)[groups], coefficients)
    largest = max(int(np.diff(nodes.offsets).max()) for nodes in (left, right))
    reach, side = layout.reach(53 * np.log(2) + np.log(largest + 1)), layout.left
    step = max(1, PAIRS_PER_CALL // len(order))
    for start in range(0, len(side.blocks), step):
        span = (start, min(start + step, len(side.blocks)))
        kernel = layout.kernel(span, columns, reach)
        rows = Rows(side.blocks, side.vectors, side.places)
        add_entries(span, rows, (features.indptr, features.indices), columns, kernel, lists, sums)
    return sums * features.data[:, None]


def _weigh_columns(nodes: Nodes, places: Ints, coefficients: Floats) -> tuple[Any, ...]:
    """For each feature where it starts in lists of its columns, ascending, and of values, those of equal columns added up."""
    by_place = np.argsort(places, kind="stable")
    features = nodes.features[by_place].tocsc()
    members = by_place[features.indices]
    columns = places[members]
    is_first = np.ones(len(columns), bool)
    is_first[1:] = columns[1:] != columns[:-1]
    is_first[features.indptr[:-1][np.diff(features.indptr) > 0]] = True
    firsts = np.flatnonzero(is_first)
    values = np.add.reduceat(features.data[:, None] * coefficients[members], firsts, axis=0)
    return np.searchsorted(firsts, features.indptr), columns[firsts], values
