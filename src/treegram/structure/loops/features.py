"""The hot loops of ``structure.features``: numbering sorted codes, and leaving out what only one row or graph has."""

from __future__ import annotations

import numpy as np

from treegram._core.jit import jit

ABSENT, ONE_ROW, ONE_GRAPH, SHARED = 0, 1, 2, 3


@jit
def deal(codes, shift, ends, order, dealt):
    """Deal codes out to bins by their first bits, which are left of ``shift``: ``dealt`` has the codes bin by bin, ``order`` their places.

    Bin b has ends[b] .. ends[b + 1] - 1. ``ends``, one longer than there are bins, must be zero.
    """
    for i in range(len(codes)):
        ends[codes[i] >> shift] += 1
    total = 0
    for b in range(len(ends)):
        ends[b], total = total, total + ends[b]
    for i in range(len(codes)):
        b = codes[i] >> shift
        order[ends[b]], dealt[ends[b]] = i, codes[i]
        ends[b] += 1
    for b in range(len(ends) - 1, 0, -1):
        ends[b] = ends[b - 1]
    ends[0] = 0


@jit
def sort_bins(ends, order, dealt, most_moves):
    """Sort the codes of each bin by insertion, their places along with them; gives up and returns False after so many moves."""
    n_moves = 0
    for b in range(len(ends) - 1):
        for i in range(ends[b] + 1, ends[b + 1]):
            code, place, j = dealt[i], order[i], i
            while j > ends[b] and dealt[j - 1] > code:
                dealt[j], order[j] = dealt[j - 1], order[j - 1]
                j -= 1
            dealt[j], order[j] = code, place
            n_moves += i - j
            if n_moves > most_moves:
                return False
    return True


@jit
def number_sorted(codes, order, columns):
    """Number equal codes equally: columns[i] is the number of codes[i], in the order that ``order`` sorts them in.

    Returns how many differ; ``order`` then starts with one position of each.
    """
    n_distinct = 0
    for i in range(len(order)):
        at = order[i]
        if n_distinct == 0 or codes[at] != codes[order[n_distinct - 1]]:
            order[n_distinct] = at
            n_distinct += 1
        columns[at] = n_distinct - 1
    return n_distinct


@jit
def spread(matrix, graph_ids, kinds, owners):
    """How far each column of a sparse matrix spreads: one row, several rows of one graph, or several graphs.

    ``kinds`` must be ABSENT everywhere; ``owners`` is scratch.
    """
    indptr, indices, _ = matrix
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            t = indices[i]
            if kinds[t] == ABSENT:
                kinds[t], owners[t] = ONE_ROW, row
            elif graph_ids[row] != graph_ids[owners[t]]:
                kinds[t] = SHARED
            elif kinds[t] == ONE_ROW:
                kinds[t] = ONE_GRAPH


@jit
def fold(matrix, kept, n_kept, with_rest, folded):
    """The columns of a sparse matrix with kept[t] >= 0, renumbered so; if asked, one more per row: the length of the rest."""
    (indptr, indices, data), (new_indptr, new_indices, new_data) = matrix, folded
    used = 0
    for row in range(len(indptr) - 1):
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


@jit
def add_rows(matrix, numbers, ends, order, places, added):
    """Row g of the result is the sum of the rows v of a sparse matrix with numbers[v] == g. Returns the number of its entries.

    ``ends`` is zero and two longer than the result has rows; ``order`` has room for all rows, and ``added`` for all entries, its
    values zero; ``places`` is -1 for each column.
    """
    (indptr, indices, data), (new_indptr, new_indices, new_data) = matrix, added
    for v in range(len(numbers)):
        ends[numbers[v] + 2] += 1
    for g in range(2, len(ends)):
        ends[g] += ends[g - 1]
    for v in range(len(numbers)):
        order[ends[numbers[v] + 1]] = v
        ends[numbers[v] + 1] += 1
    used = 0
    for g in range(len(ends) - 2):
        first = used
        for i in range(ends[g], ends[g + 1]):
            for entry in range(indptr[order[i]], indptr[order[i] + 1]):
                t = indices[entry]
                is_new = places[t] < first
                place = used if is_new else places[t]  # without a branch: which it is cannot be foreseen
                places[t], new_indices[place] = place, t
                new_data[place] += data[entry]
                used += is_new
        new_indptr[g + 1] = used
    return used
