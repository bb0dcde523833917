"""Sparse rows of features under 64-bit codes: what every structure gives to the pair sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram._types import Floats, Hashes, Ints
from treegram.structure.loops import features as loops
from treegram.structure.loops import hashing

__all__ = ["Features", "gather", "number_codes", "number_pairs"]


@dataclass(frozen=True)
class Features:
    """Sparse rows whose columns are 64-bit codes: the same code means the same thing in any collection."""

    counts: sp.csr_matrix  # (n_rows, n_features)
    codes: Hashes  # of each column, sorted

    def aligned(self, codes: Hashes) -> sp.csr_matrix:
        """The rows with one column for each of the given sorted codes; what has no column is left out."""
        columns = np.searchsorted(codes, self.codes)
        columns[columns == len(codes)] = 0
        known = codes[columns] == self.codes if len(codes) else np.zeros(len(self.codes), bool)
        kept = known[self.counts.indices]
        indptr = np.concatenate([[0], np.cumsum(kept)])[self.counts.indptr]
        entries = (self.counts.data[kept], columns[self.counts.indices[kept]], indptr)
        return sp.csr_matrix(entries, shape=(self.counts.shape[0], len(codes)))

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


def gather(indptr: Ints, codes: Hashes, values: Floats) -> tuple[Features, NDArray[Any]]:
    """Rows of (code, value) records as a sparse matrix, and for each of its columns one record that went into it.

    Records of one code in one row are not added up: call ``sum_duplicates`` on the counts where there are any.
    """
    # These arrays may be the largest of all: short integers, and nothing is copied that need not be.
    index = np.int32 if len(codes) < 2**31 else np.int64
    order = np.argsort(codes).astype(index, copy=False)
    columns = np.empty(len(codes), index)
    firsts = order[: loops.number_sorted(codes, order, columns)]
    counts = sp.csr_matrix((values, columns, indptr), shape=(len(indptr) - 1, len(firsts)))
    return Features(counts, codes[firsts]), firsts


def number_codes(codes: Hashes) -> tuple[Ints, Ints]:
    """Number equal codes equally, in ascending order; gives each code's number, and the first place of each number.

    By a hash table: faster than :func:`gather` where most codes are repeated.
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
