"""Sums for kernels without vectors: one sparse row of features per graph, and products of such rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treegram._core.types import Floats, Ints

__all__ = ["feature_products", "sum_rows"]

ROWS_PER_PRODUCT = 1024  # a sparse product is held sparse and dense at once: this bounds the sparse half


def sum_rows(rows: sp.csr_matrix, offsets: Ints) -> sp.csr_matrix:
    """Sums of consecutive rows: row i of the result is the sum of rows offsets[i] .. offsets[i + 1] - 1."""
    n = rows.shape[0]
    selector = sp.csr_matrix((np.ones(n), np.arange(n), offsets), shape=(len(offsets) - 1, n))
    return (selector @ rows).tocsr()


def feature_products(left: sp.csr_matrix, right: sp.csr_matrix | None, out: Floats | None = None) -> Floats:
    """All inner products of the rows of two sparse matrices, as a dense array: ``out``, where one is given.

    ``right=None`` means left with itself: half of the products are computed, and the result is symmetric in every bit.
    """
    columns = left if right is None else right
    out = np.empty((left.shape[0], columns.shape[0])) if out is None else out
    if right is None and not left.has_sorted_indices:
        # Entries (i, j) and (j, i) then add up the same products in the same order.
        left = columns = left.sorted_indices()
    transposed = columns.T.tocsr()
    for first in range(0, left.shape[0], ROWS_PER_PRODUCT):
        part, rest = slice(first, first + ROWS_PER_PRODUCT), slice(first if right is None else 0, None)
        product = left[part] @ (transposed[:, rest] if rest.start else transposed)
        _write(product, out[part, rest])
        if right is None:
            out[part.stop :, part] = out[part, part.stop :].T
    return out


def _write(product: sp.csr_matrix, out: Floats) -> None:
    """The same numbers in a dense array: straight, where scipy can, since new memory costs as much as the product."""
    if out.flags.c_contiguous and product.dtype == out.dtype:
        product.toarray(out=out)
    else:
        out[...] = product.toarray()
