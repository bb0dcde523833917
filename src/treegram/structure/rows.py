"""Equal rows: the one home of "these vectors are the same"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.types import Floats, Ints
from treegram.structure.loops import hashing

__all__ = ["equal_rows"]


def equal_rows(vectors: Floats, *keys: NDArray[Any]) -> tuple[Ints, Ints]:
    """Number equal rows equally, in order of appearance; gives each row's number, and the first row of each number.

    Rows are equal if their vectors are (-0.0 equals 0.0) and all their keys, which are whole numbers.
    """
    n, d = vectors.shape
    bits = np.empty((n, d + len(keys)), np.uint64)
    np.add(vectors, 0.0, out=bits[:, :d].view(np.float64))  # -0.0 becomes 0.0: equal numbers have equal bits
    for i, key in enumerate(keys, start=d):
        bits[:, i] = key
    table = np.empty(1 << (2 * n + 16).bit_length(), np.int64)
    numbers, first = np.empty(n, np.int64), np.empty(n, np.int64)
    return numbers, first[: hashing.number_rows(bits, table, numbers, first)]
