"""Sparse rows of features under 64-bit codes: the result of every structure, and the input of the pair sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram._core.jit import jit
from treegram._core.types import Floats, Hashes, Ints
from treegram.structure.hashing import number_codes

ABSENT, ONE_ROW, ONE_GRAPH, SHARED = 0, 1, 2, 3  # where a column has entries


@dataclass(frozen=True)
class Features:
    """Sparse rows whose columns are 64-bit codes: the same code means the same thing in any collection."""

    counts: sp.csr_matrix  # (n_rows, n_features)
    codes: Hashes  # of each column, sorted

    def aligned(self, codes: Hashes) -> sp.csr_matrix:
        """Return the rows with one column for each of the sorted ``codes``; columns of other codes are left out."""
        columns = np.full(len(self.codes), -1, self.counts.indices.dtype)
        if len(self.codes):
            candidates = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
            known = np.flatnonzero(self.codes[candidates] == codes)
            columns[candidates[known]] = known
        indices = columns[self.counts.indices]
        kept = np.flatnonzero(indices >= 0)
        indptr = np.searchsorted(kept, self.counts.indptr).astype(self.counts.indptr.dtype)
        return sp.csr_matrix((self.counts.data[kept], indices[kept], indptr), shape=(self.counts.shape[0], len(codes)))

    def kept(self, columns: NDArray[np.bool_]) -> Features:
        """Return only the columns of a mask."""
        return Features(_fold(self.counts, columns, with_rest=False), self.codes[columns])

    def is_shared(self, graph_ids: Ints) -> NDArray[np.bool_]:
        """Return a mask of the columns that several graphs have: only these matter for two different graphs."""
        return self._spread(graph_ids) >= SHARED

    def folded(self, graph_ids: Ints) -> sp.csr_matrix:
        """Return rows with the same inner products; the columns that only one row has are merged into one column per row."""
        return _fold(self.counts, self._spread(graph_ids) >= ONE_GRAPH, with_rest=True)

    def _spread(self, graph_ids: Ints) -> NDArray[np.int8]:
        matrix = self.counts
        spreads = np.zeros(matrix.shape[1], np.int8)
        classify_columns((matrix.indptr, matrix.indices), graph_ids, spreads, np.empty(len(spreads), np.int32))
        return spreads


def _fold(matrix: sp.csr_matrix, is_kept: NDArray[np.bool_], *, with_rest: bool) -> sp.csr_matrix:
    """Return the columns of a mask; with ``with_rest``, one more per row, the norm of its other entries."""
    n_kept = int(np.count_nonzero(is_kept))
    kept = np.where(is_kept, np.cumsum(is_kept, dtype=matrix.indices.dtype) - 1, -1).astype(matrix.indices.dtype)
    n_rest = matrix.shape[0] if with_rest else 0
    # The matrix may be long: count first, to allocate only what is filled.
    n_entries = int(np.count_nonzero(is_kept[matrix.indices])) + n_rest
    folded = (np.zeros_like(matrix.indptr), np.empty(n_entries, matrix.indices.dtype), np.empty(n_entries))
    fold_columns((matrix.indptr, matrix.indices, matrix.data), kept, n_kept, with_rest, folded)
    return sp.csr_matrix(folded[::-1], shape=(matrix.shape[0], n_kept + n_rest))


def add_rows(matrix: sp.csr_matrix, numbers: Ints, n_rows: int) -> sp.csr_matrix:
    """Return the matrix of ``n_rows`` rows whose row g is the sum of the rows v with numbers[v] == g."""
    indptr, indices = np.zeros(n_rows + 1, matrix.indptr.dtype), np.empty_like(matrix.indices)
    data = np.zeros(matrix.nnz)
    order, ends = order_by_row(numbers, n_rows)
    entry_of = np.full(matrix.shape[1], -1, np.int64)
    entries = (matrix.indptr, matrix.indices, matrix.data)
    n = add_ordered_rows(entries, order, ends, entry_of, (indptr, indices, data))
    return sp.csr_matrix((data[:n], indices[:n], indptr), shape=(n_rows, matrix.shape[1]))


def order_by_row(rows: Ints, n_rows: int) -> tuple[Ints, Ints]:
    """Sort items by row, stably; return the order, and where each row ends in it."""
    ends, order = np.zeros(n_rows + 1, np.int64), np.empty(len(rows), np.int64)
    count_and_order(rows, ends, order)
    return order, ends[:-1]


def gather(indptr: Ints, codes: Hashes, values: Floats) -> tuple[Features, NDArray[Any]]:
    """Return rows of (code, value) records as a sparse matrix, and for each of its columns the index of one record in it.

    Records with the same code in one row are not added up: call ``sum_duplicates`` on the counts if there are any.
    """
    columns, firsts = number_codes(codes)
    counts = sp.csr_matrix((values, columns, indptr), shape=(len(indptr) - 1, len(firsts)))
    return Features(counts, codes[firsts]), firsts


def runs(values: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Return where runs of equal values begin, each within one row starts[i] .. starts[i + 1] - 1, and the first run of each row."""
    is_first = np.ones(len(values), bool)
    is_first[1:] = values[1:] != values[:-1]
    is_first[starts[:-1][np.diff(starts) > 0]] = True
    firsts = np.flatnonzero(is_first)
    return firsts, np.searchsorted(firsts, starts)


def common_codes(codes: Hashes, others: Hashes) -> Hashes:
    """Return the codes that are in both of two sorted arrays without duplicates."""
    few, many = sorted((codes, others), key=len)
    if not len(few):
        return few
    candidates = np.minimum(np.searchsorted(many, few), len(many) - 1)
    return few[many[candidates] == few]


# -------------------------------------------------------------------- compiled: sorting


@jit
def first_from(value, start, stop, values):
    """Return the first index from start to stop at which the sorted values reach ``value``."""
    while start < stop:
        middle = (start + stop) // 2
        if values[middle] < value:
            start = middle + 1
        else:
            stop = middle
    return start


@jit
def count_and_order(rows, ends, order):
    """Fill ``order`` with the indices of ``rows`` sorted by row, stably, and ends[r] with the end of row r in it.

    ``ends``, one longer than there are rows, must be zero.
    """
    for i in range(len(rows)):
        ends[rows[i] + 1] += 1
    for r in range(1, len(ends)):
        ends[r] += ends[r - 1]
    for i in range(len(rows)):
        order[ends[rows[i]]] = i
        ends[rows[i]] += 1


# -------------------------------------------------------------------- compiled: sparse rows


@jit
def classify_columns(matrix, graph_ids, spreads, owners):
    """Set kinds[t] to where column t of a sparse matrix has entries: ONE_ROW, several rows of ONE_GRAPH, or several graphs (SHARED).

    ``kinds`` (int8) must be ABSENT everywhere; ``owners`` is scratch.
    """
    indptr, indices = matrix
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            t = indices[i]
            if spreads[t] == ABSENT:
                spreads[t], owners[t] = ONE_ROW, row
            elif graph_ids[row] != graph_ids[owners[t]]:
                spreads[t] = SHARED
            elif spreads[t] == ONE_ROW:
                spreads[t] = ONE_GRAPH


@jit
def fold_columns(matrix, kept, n_kept, with_rest, folded):
    """Write the columns of a sparse matrix with kept[t] >= 0 under these numbers; with ``with_rest``, the norm of the rest of each row."""
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
def add_ordered_rows(matrix, order, ends, entry_of, added):
    """Add up the rows order[ends[g - 1] .. ends[g] - 1] of a sparse matrix to row g; return the number of entries.

    ``added`` has room for all entries, its values zero; ``entry_of`` is -1 for each column.
    """
    (indptr, indices, data), (new_indptr, new_indices, new_data) = matrix, added
    used = 0
    for g in range(len(ends)):
        first = used
        for i in range(ends[g - 1] if g > 0 else 0, ends[g]):
            for j in range(indptr[order[i]], indptr[order[i] + 1]):
                t = indices[j]
                is_new = entry_of[t] < first
                entry = used if is_new else entry_of[t]  # no branch: it would be unpredictable
                entry_of[t], new_indices[entry] = entry, t
                new_data[entry] += data[j]
                used += is_new
        new_indptr[g + 1] = used
    return used
