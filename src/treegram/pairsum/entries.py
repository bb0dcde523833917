"""Sums over pairs of nodes by node and feature, for explanations.

The coefficients of the fitted graphs are known, so that all their nodes with equal block and vector are one column, whichever
graph they belong to. Gaussians are computed in windows, as in ``pairsum.nodes``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treegram._core.jit import contracted
from treegram._core.types import Floats, Ints
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.nodes import Nodes
from treegram.pairsum.tiles import Layout, kernel_rows
from treegram.structure.features import first_from, runs
from treegram.structure.hashing import equal_rows

PAIRS_PER_CALL = 1 << 24  # of rows and columns: each call stays well under a second, and kernel values stay small


def entry_sums(left: Nodes, right: Nodes, node_kernel: NodeKernel, coefficients: Floats) -> Floats:
    """Return what each feature of each node on the left adds to the sums over the nodes on the right, divided by its value.

    For the entry (v, t) of the left features: the sum over v' of phi(v', t) k_A(x_v, x_v') coefficients[v'], shape
    (n_entries, n_outputs), in the order of ``left.features.data``. Both sides have the same columns.
    """
    features, sums = left.features, np.zeros((left.features.nnz, coefficients.shape[1]))
    if not features.nnz or not right.features.nnz:
        return sums
    groups, first = equal_rows(right.vectors, right.blocks)
    distinct = Nodes(
        1, np.zeros(len(first), np.int64), right.blocks[first], right.vectors[first], right.features[first]
    )
    largest = max(int(np.diff(nodes.offsets).max()) for nodes in (left, right))
    layout = Layout.make(left, distinct, node_kernel, 53 * np.log(2) + np.log(largest + 1))
    order, columns = layout.columns((0, 1))
    lists = _list_columns(right, np.argsort(order)[groups], coefficients)
    step = max(1, PAIRS_PER_CALL // len(order))
    for start in range(0, len(left.blocks), step):
        span = (start, min(start + step, len(left.blocks)))
        kernel = layout.kernel(span, columns)
        add_entries(span, layout.rows, (features.indptr, features.indices), columns, kernel, lists, sums)
    return sums


def _list_columns(nodes: Nodes, positions: Ints, coefficients: Floats) -> tuple[Any, ...]:
    """Return the start of each feature in lists of its columns, ascending, and of values; those of equal columns are added up."""
    by_position = np.argsort(positions, kind="stable")
    features = nodes.features[by_position].tocsc()
    members = by_position[features.indices]
    columns = positions[members]
    firsts, starts = runs(columns, features.indptr)
    values = np.add.reduceat(features.data[:, None] * coefficients[members], firsts, axis=0)
    return starts, columns[firsts], values


# -------------------------------------------------------------------- compiled


@contracted
def _add_all(kernel, members, values, sums):
    """Add kernel[members[i]] * values[i, o] to sums[o], over all i and o."""
    for i in range(len(members)):
        weight = kernel[members[i]]
        for o in range(len(sums)):
            sums[o] += weight * values[i, o]


@contracted(allocates=True)
def add_entries(span, rows, features, columns, kernel, lists, sums):
    """Add to sums[e] the sum over the columns j that have t of k(v, j) values[j, t], for the entries e = (v, t) of some rows v.

    ``lists`` has for each feature its columns, ascending, and their values, one for each output.
    """
    (indptr, indices), (starts, members, values) = features, lists
    kernels, windows = np.empty((1, len(columns.graphs))), np.empty((1, 2), np.int64)
    row = kernels[0]
    for v in range(span[0], span[1]):
        kernel_rows(v, v + 1, span[0], rows, columns, kernel, kernels, windows)
        low, high = windows[0, 0], windows[0, 1]
        for entry in range(indptr[v], indptr[v + 1]):
            start, stop = starts[indices[entry]], starts[indices[entry] + 1]
            if start < stop and members[start] < low:
                start = first_from(low, start, stop, members)
            if start < stop and members[stop - 1] >= high:
                stop = first_from(high, start, stop, members)
            _add_all(row, members[start:stop], values[start:stop], sums[entry])
