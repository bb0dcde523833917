"""The hot loops of ``structure.features``: numbering codes, and leaving out what only one row or graph has."""

from __future__ import annotations

import numpy as np

from treegram._numba import jit


@jit
def number_codes(codes, order, columns):
    """Number equal codes equally: columns[i] is the number of codes[i], in the order that ``order`` sorts them in.

    Returns the distinct codes; ``order`` then starts with one position of each.
    """
    n_distinct = 0
    for i in range(len(order)):
        at = order[i]
        if n_distinct == 0 or codes[at] != codes[order[n_distinct - 1]]:
            order[n_distinct] = at
            n_distinct += 1
        columns[at] = n_distinct - 1
    distinct = np.empty(n_distinct, np.uint64)
    for t in range(n_distinct):
        distinct[t] = codes[order[t]]
    return distinct


ABSENT, ONE_ROW, ONE_GRAPH, SHARED = 0, 1, 2, 3


@jit
def spread(indptr, indices, graph_ids, n_columns):
    """How far each column of a sparse matrix spreads: one row, several rows of one graph, or several graphs."""
    kinds, owners = np.zeros(n_columns, np.int8), np.empty(n_columns, np.int32)
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            t = indices[i]
            if kinds[t] == ABSENT:
                kinds[t], owners[t] = ONE_ROW, row
            elif graph_ids[row] != graph_ids[owners[t]]:
                kinds[t] = SHARED
            elif kinds[t] == ONE_ROW:
                kinds[t] = ONE_GRAPH
    return kinds


@jit
def fold(indptr, indices, data, kept, n_kept, with_rest):
    """The columns of a sparse matrix with kept[t] >= 0, renumbered so; if asked, one more per row: the length of the rest.

    The matrix may be long: a first pass counts, so that nothing is allocated that is not filled.
    """
    n_rows, n_entries = len(indptr) - 1, 0
    for i in range(len(indices)):
        n_entries += kept[indices[i]] >= 0
    n_entries += n_rows if with_rest else 0
    new_indptr = np.zeros(n_rows + 1, indptr.dtype)
    new_indices, new_data = np.empty(n_entries, indices.dtype), np.empty(n_entries)
    used = 0
    for row in range(n_rows):
        rest = 0.0
        for i in range(indptr[row], indptr[row + 1]):
            t = kept[indices[i]]
            if t >= 0:
                new_indices[used], new_data[used] = t, data[i]
                used += 1
            else:
                rest += data[i] * data[i]
        if with_rest:
            new_indices[used], new_data[used] = n_kept + row, np.sqrt(rest)
            used += 1
        new_indptr[row + 1] = used
    return new_indptr, new_indices, new_data
