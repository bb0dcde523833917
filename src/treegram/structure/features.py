"""Sparse rows of features under 64-bit codes: what every structure gives to the pair sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram._core.types import Floats, Hashes, Ints
from treegram.structure.loops import features as loops
from treegram.structure.loops import hashing

__all__ = [
    "Features",
    "add_rows",
    "common_codes",
    "gather",
    "number_by_order",
    "number_codes",
    "number_pairs",
    "sorted_order",
]

CODES_PER_BIN = 2  # on average, or up to twice as many, where codes are sorted
MOVES_PER_CODE = 16  # after which they are not as evenly spread as hashes are


@dataclass(frozen=True)
class Features:
    """Sparse rows whose columns are 64-bit codes: the same code means the same thing in any collection."""

    counts: sp.csr_matrix  # (n_rows, n_features)
    codes: Hashes  # of each column, sorted

    def aligned(self, codes: Hashes) -> sp.csr_matrix:
        """The rows with one column for each of the given sorted codes; what has no column is left out."""
        columns = np.full(len(self.codes), -1, self.counts.indices.dtype)
        if len(self.codes):
            places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
            known = np.flatnonzero(self.codes[places] == codes)
            columns[places[known]] = known
        indices = columns[self.counts.indices]
        kept = np.flatnonzero(indices >= 0)
        indptr = np.searchsorted(kept, self.counts.indptr).astype(self.counts.indptr.dtype)
        return sp.csr_matrix((self.counts.data[kept], indices[kept], indptr), shape=(self.counts.shape[0], len(codes)))

    def kept(self, columns: NDArray[np.bool_]) -> Features:
        """Only the columns of a mask."""
        return Features(_fold(self.counts, columns, with_rest=False), self.codes[columns])

    def is_shared(self, graph_ids: Ints) -> NDArray[np.bool_]:
        """Which columns several graphs have: all that counts for two different graphs."""
        return self._spread(graph_ids) >= loops.SHARED

    def folded(self, graph_ids: Ints) -> sp.csr_matrix:
        """Rows of the same inner products, in which the columns that only one row has are one column per row."""
        return _fold(self.counts, self._spread(graph_ids) >= loops.ONE_GRAPH, with_rest=True)

    def _spread(self, graph_ids: Ints) -> NDArray[np.int8]:
        matrix = self.counts
        kinds = np.zeros(matrix.shape[1], np.int8)
        loops.spread((matrix.indptr, matrix.indices, matrix.data), graph_ids, kinds, np.empty(len(kinds), np.int32))
        return kinds


def _fold(matrix: sp.csr_matrix, is_kept: NDArray[np.bool_], *, with_rest: bool) -> sp.csr_matrix:
    """The columns of a mask; if asked, one more per row, the length of the rest."""
    n_kept = int(np.count_nonzero(is_kept))
    kept = np.where(is_kept, np.cumsum(is_kept, dtype=matrix.indices.dtype) - 1, -1).astype(matrix.indices.dtype)
    # The matrix may be long: counting first, so that nothing is allocated that is not filled.
    n_entries = int(np.count_nonzero(is_kept[matrix.indices])) + (matrix.shape[0] if with_rest else 0)
    folded = (np.zeros_like(matrix.indptr), np.empty(n_entries, matrix.indices.dtype), np.empty(n_entries))
    loops.fold((matrix.indptr, matrix.indices, matrix.data), kept, n_kept, with_rest, folded)
    width = n_kept + (matrix.shape[0] if with_rest else 0)
    return sp.csr_matrix(folded[::-1], shape=(matrix.shape[0], width))


def add_rows(matrix: sp.csr_matrix, numbers: Ints, n_rows: int) -> sp.csr_matrix:
    """The matrix in which all rows of one number are added up to one row."""
    indptr, indices = np.zeros(n_rows + 1, matrix.indptr.dtype), np.empty_like(matrix.indices)
    data = np.zeros(matrix.nnz)
    ends, order = np.zeros(n_rows + 2, np.int64), np.empty(len(numbers), np.int64)
    places = np.full(matrix.shape[1], -1, np.int64)
    entries = (matrix.indptr, matrix.indices, matrix.data)
    n = loops.add_rows(entries, numbers, ends, order, places, (indptr, indices, data))
    return sp.csr_matrix((data[:n], indices[:n], indptr), shape=(n_rows, matrix.shape[1]))


def gather(indptr: Ints, codes: Hashes, values: Floats) -> tuple[Features, NDArray[Any]]:
    """Rows of (code, value) records as a sparse matrix, and for each of its columns one record that went into it.

    Records of one code in one row are not added up: call ``sum_duplicates`` on the counts where there are any.
    """
    columns, firsts = number_by_order(codes)
    counts = sp.csr_matrix((values, columns, indptr), shape=(len(indptr) - 1, len(firsts)))
    return Features(counts, codes[firsts]), firsts


def number_by_order(codes: Hashes) -> tuple[NDArray[Any], NDArray[Any]]:
    """Number equal codes equally, in ascending order; gives each code's number, and the first place of each number."""
    order = sorted_order(codes)
    numbers = np.empty_like(order)
    return numbers, order[: loops.number_sorted(codes, order, numbers)]


def sorted_order(codes: Hashes) -> NDArray[Any]:
    """The order in which the codes are sorted, equal ones as they come.

    Hashes are spread evenly over all numbers: dealt out to bins of a few each by their first bits, they are nearly sorted.
    """
    # These arrays may be the largest of all: short integers, and nothing is copied that need not be.
    index = np.int32 if len(codes) < 2**31 else np.int64
    codes = np.ascontiguousarray(codes)  # a stride would compile it a second time
    n_bits = max(1, (len(codes) // CODES_PER_BIN).bit_length())
    ends = np.zeros((1 << n_bits) + 1, np.int64)
    order, dealt = np.empty(len(codes), index), np.empty_like(codes)
    loops.deal(codes, np.uint64(64 - n_bits), ends, order, dealt)
    if not loops.sort_bins(ends, order, dealt, MOVES_PER_CODE * len(codes)):
        order = np.argsort(codes, kind="stable").astype(index, copy=False)
    return order


def common_codes(some: Hashes, others: Hashes) -> Hashes:
    """The codes that are in both of two sorted arrays, each of which has a code once."""
    few, many = sorted((some, others), key=len)
    if not len(few):
        return few
    places = np.minimum(np.searchsorted(many, few), len(many) - 1)
    found: Hashes = few[many[places] == few]
    return found


def number_codes(codes: Hashes) -> tuple[Ints, Ints]:
    """Number equal codes equally, in ascending order; gives each code's number, and the first place of each number.

    By a hash table: faster than :func:`number_by_order` where most codes are repeated.
    """
    numbers, firsts = number_pairs(codes, codes)
    order = np.argsort(codes[firsts])
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks[numbers], firsts[order]


def number_pairs(first: Hashes, second: Hashes) -> tuple[Ints, Ints]:
    """Number equal pairs (first[i], second[i]) equally, in order of appearance; gives also each number's first place."""
    table = np.empty(1 << (2 * len(first) + 16).bit_length(), np.int64)
    numbers, seen = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)  # a stride would compile it a second time
    n_distinct = hashing.number_pairs(first, second, table, numbers, seen)
    return numbers, seen[:n_distinct]
