"""The hot loops of ``pairsum.entries``."""

from __future__ import annotations

import numpy as np

from treegram._core.jit import contracted, reordered
from treegram.pairsum.loops.tiles import first_from, kernel_rows


@reordered
def _sum_run(alike, values):
    """The sum of alike[i] * values[i]."""
    total = 0.0
    for i in range(len(values)):
        total += alike[i] * values[i]
    return total


@reordered
def _sum_listed(alike, members, values):
    """The sum of alike[members[i]] * values[i]."""
    total = 0.0
    for i in range(len(values)):
        total += alike[members[i]] * values[i]
    return total


@contracted
def _add_all(alike, members, values, sums):
    """sums[o] += alike[members[i]] * values[i, o], over all i and o."""
    for i in range(len(members)):
        weight = alike[members[i]]
        for o in range(len(sums)):
            sums[o] += weight * values[i, o]


@contracted(allocates=True)
def add_entries(span, rows, features, columns, kernel, lists, sums):
    """sums[e] += the sum over the columns j that have t of k(v, j) values[j, t], for the entries e = (v, t) of some rows v.

    ``lists`` has for each feature its columns, ascending, and their values, one for each output.
    """
    (indptr, indices), (starts, members, values) = features, lists
    held, windows = np.empty((1, len(columns.graphs))), np.empty((1, 2), np.int64)
    is_single, alike = values.shape[1] == 1, held[0]
    for v in range(span[0], span[1]):
        kernel_rows(v, v + 1, span[0], rows, columns, kernel, held, windows)
        low, high = windows[0, 0], windows[0, 1]
        for entry in range(indptr[v], indptr[v + 1]):
            start, stop = starts[indices[entry]], starts[indices[entry] + 1]
            if start < stop and members[start] < low:
                start = first_from(low, start, stop, members)
            if start < stop and members[stop - 1] >= high:
                stop = first_from(high, start, stop, members)
            if start == stop:
                continue
            first, last = members[start], members[stop - 1] + 1
            if not is_single:
                _add_all(alike, members[start:stop], values[start:stop], sums[entry])
            elif last - first == stop - start:  # all columns of a span have it
                sums[entry, 0] += _sum_run(alike[first:last], values[start:stop, 0])
            else:
                sums[entry, 0] += _sum_listed(alike, members[start:stop], values[start:stop, 0])
