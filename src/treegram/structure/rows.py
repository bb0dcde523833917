"""Equal rows: the one home of "these vectors are the same"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._types import Floats, Hashes, Ints
from treegram.structure.features import number_pairs

__all__ = ["equal_rows"]


def equal_rows(vectors: Floats, *keys: NDArray[Any]) -> tuple[Ints, Ints]:
    """Number equal rows equally, in order of appearance; gives each row's number, and the first row of each number.

    Rows are equal if their vectors are (-0.0 equals 0.0) and all their keys, which are whole numbers.
    """
    vectors = vectors + 0.0  # -0.0 becomes 0.0: equal numbers have equal bits
    hashes = _hash_rows(vectors, *keys)
    numbers, first = number_pairs(hashes, hashes)
    return (numbers, first) if _is_same(first[numbers], vectors, *keys) else _equal_neighbours(vectors, *keys)


def _equal_neighbours(vectors: Floats, *keys: NDArray[Any]) -> tuple[Ints, Ints]:
    """The same by sorting: for two different rows that share a hash."""
    order = np.lexsort((*vectors.T, *keys))
    is_new = np.ones(len(order), bool)
    is_new[1:] = (vectors[order[1:]] != vectors[order[:-1]]).any(axis=1)
    for key in keys:
        is_new[1:] |= key[order[1:]] != key[order[:-1]]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    appearance = np.argsort(first)
    ranks = np.empty_like(appearance)
    ranks[appearance] = np.arange(len(appearance))
    return ranks[numbers], first[appearance]


def _is_same(others: Ints, vectors: Floats, *keys: NDArray[Any]) -> bool:
    return all(np.array_equal(values, values[others]) for values in (vectors, *keys))


def _hash_rows(vectors: Floats, *keys: NDArray[Any]) -> Hashes:
    """One hash per row: these only propose which rows are equal."""
    n, d = vectors.shape
    bits = np.ascontiguousarray(vectors).view(np.uint64).reshape(n, d)
    multipliers = np.random.default_rng(0).integers(2**63, size=d + len(keys), dtype=np.uint64) * 2 + 1
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(32))) * multipliers[:d]
        hashes: Hashes = (bits ^ (bits >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
        for key, multiplier in zip(keys, multipliers[d:], strict=True):
            hashes += key.astype(np.uint64) * multiplier
    return hashes
