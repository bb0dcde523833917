"""Sparse rows of features under 64-bit codes: what every structure gives to the pair sums."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram._types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.loops import features as loops

__all__ = ["Features", "gather", "graph_spans"]


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
        spread: NDArray[np.int8] = loops.spread(matrix.indptr, matrix.indices, graph_ids, matrix.shape[1])
        return spread


def _fold(matrix: sp.csr_matrix, is_kept: NDArray[np.bool_], *, with_rest: bool) -> sp.csr_matrix:
    """The columns of a mask; if asked, one more per row, the length of the rest."""
    kept = np.cumsum(is_kept, dtype=matrix.indices.dtype)
    n_kept = int(kept[-1]) if len(kept) else 0
    kept -= 1
    kept[~is_kept] = -1
    indptr, indices, data = loops.fold(matrix.indptr, matrix.indices, matrix.data, kept, n_kept, with_rest)
    width = n_kept + (matrix.shape[0] if with_rest else 0)
    return sp.csr_matrix((data, indices, indptr), shape=(matrix.shape[0], width))


def gather(indptr: Ints, codes: Hashes, values: Floats) -> tuple[Features, NDArray[Any]]:
    """Rows of (code, value) records as a sparse matrix, and for each of its columns one record that went into it.

    Records of one code in one row are not added up: call ``sum_duplicates`` on the counts where there are any.
    """
    # These arrays may be the largest of all: short integers, and nothing is copied that need not be.
    index = np.int32 if len(codes) < 2**31 else np.int64
    order = np.argsort(codes).astype(index, copy=False)
    columns = np.empty(len(codes), index)
    distinct = loops.number_codes(codes, order, columns)
    counts = sp.csr_matrix((values, columns, indptr), shape=(len(indptr) - 1, len(distinct)))
    return Features(counts, distinct), order[: len(distinct)]


def graph_spans(graphs: Graphs, nodes_per_task: int) -> list[tuple[int, int]]:
    """Ranges of consecutive graphs with about so many nodes each; never none, and the same for any number of workers."""
    n_parts = max(1, min(len(graphs), graphs.n_nodes // nodes_per_task))
    cuts = np.searchsorted(graphs.offsets, graphs.n_nodes * np.arange(1, n_parts) / n_parts)
    return list(pairwise([0, *(int(cut) for cut in np.unique(cuts) if 0 < cut < len(graphs)), len(graphs)]))
