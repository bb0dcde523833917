"""The hot loops over explicit vectors: sums per tree and graph, their products, and hashed rows.

Every sum has a fixed order, and no two threads ever write to one place: results have the same bits for any number of
threads. Loops over components run along contiguous memory, so that they vectorize.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from treegram._core.jit import contracted, jit
from treegram.structure.hashing import mix

_LOW_32 = np.uint64(0xFFFFFFFF)
_S32, _S63 = np.uint64(32), np.uint64(63)


@njit(inline="always")
def _add_scaled(a, x, out):
    """Add a * x to out, over the length of x."""
    for j in range(len(x)):
        out[j] += a * x[j]


@njit(inline="always")
def _inner(x, y):
    """<x, y>, in four interleaved sums that one vector register holds."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = len(x) // 4 * 4
    for j in range(0, n, 4):
        a += x[j] * y[j]
        b += x[j + 1] * y[j + 1]
        c += x[j + 2] * y[j + 2]
        d += x[j + 3] * y[j + 3]
    for j in range(n, len(x)):
        a += x[j] * y[j]
    return (a + b) + (c + d)


@contracted
def sum_vectors(first, last, starts, rows, values, vectors, out):
    """out[e - first] = sum of values[i] * vectors[rows[i]] over starts[e] <= i < starts[e + 1], for first <= e < last."""
    for e in range(first, last):
        total = out[e - first]
        total[:] = 0.0
        for i in range(starts[e], starts[e + 1]):
            _add_scaled(values[i], vectors[rows[i]], total)


@contracted
def add_small_products(trees, starts_left, graphs_left, left, starts_right, graphs_right, right, weights, most, out):
    """out[k, g, g'] += weights[t, k] <left entry of (t, g), right entry of (t, g')> for the trees[0] <= t < trees[1].

    Trees with more than ``most`` pairs of entries are left out: matrix products are faster for them. The entries of tree
    t are starts[t] .. starts[t + 1] - 1; ``left`` and ``right`` hold their vectors from the first tree on.
    """
    base_left, base_right = starts_left[trees[0]], starts_right[trees[0]]
    for t in range(trees[0], trees[1]):
        if (starts_left[t + 1] - starts_left[t]) * (starts_right[t + 1] - starts_right[t]) > most:
            continue
        for i in range(starts_left[t], starts_left[t + 1]):
            for j in range(starts_right[t], starts_right[t + 1]):
                product = _inner(left[i - base_left], right[j - base_right])
                for k in range(len(out)):
                    out[k, graphs_left[i], graphs_right[j]] += weights[t, k] * product


@contracted
def add_block(block, graphs_left, graphs_right, weights, out):
    """out[k, graphs_left[i], graphs_right[j]] += weights[k] * block[i, j]."""
    for k in range(len(out)):
        for i in range(len(graphs_left)):
            row = out[k, graphs_left[i]]
            for j in range(len(graphs_right)):
                row[graphs_right[j]] += weights[k] * block[i, j]


@contracted
def add_squares(first, last, graphs, vectors, out):
    """out[graphs[e]] += |vectors[e - first]|^2 for first <= e < last."""
    for e in range(first, last):
        out[graphs[e]] += _inner(vectors[e - first], vectors[e - first])


@jit
def place_trees(codes, seed, n_columns, columns, signs):
    """Fill first column and sign of each tree: 32 bits of a mixed code make the column, another bit the sign."""
    for t in range(len(codes)):
        bits = mix(mix(codes[t] + seed) ^ seed)
        columns[t] = np.int64(((bits & _LOW_32) * np.uint64(n_columns)) >> _S32)
        signs[t] = 1.0 if bits >> _S63 else -1.0


@contracted(allocates=True)
def hash_rows(first, last, offsets, indptr, indices, data, columns, signs, vectors, out):
    """out[g] = sum over the nodes v of g and their trees t of signs[t] F[v, t] vectors[v], moved to columns[t].

    For the graphs first <= g < last; ``vectors`` holds their nodes alone. A vector that runs over the last column goes on
    at the first one.
    """
    n_columns, width = out.shape[1], vectors.shape[1]
    row = np.empty(n_columns + width)  # one overhang instead of a test in the inner loop
    for g in range(first, last):
        row[:] = 0.0
        for v in range(offsets[g], offsets[g + 1]):
            vector = vectors[v - offsets[first]]
            for i in range(indptr[v], indptr[v + 1]):
                t = indices[i]
                _add_scaled(signs[t] * data[i], vector, row[columns[t] : columns[t] + width])
        total = out[g]
        total[:] = 0.0
        for j in range(n_columns + width):
            total[j % n_columns] += row[j]


@contracted
def entry_products(first, last, indptr, indices, data, columns, signs, vectors, weights, sums):
    """sums[e, o] = signs[t] F[v, t] <vectors[v], weights[o] from columns[t] on>, for the entries e = (v, t) of first <= v < last.

    ``vectors`` holds these nodes alone; a row of ``weights`` goes on beyond its last column with the first ones.
    """
    width = vectors.shape[1]
    for v in range(first, last):
        vector = vectors[v - first]
        for e in range(indptr[v], indptr[v + 1]):
            t = indices[e]
            if signs[t] != 0.0:
                for o in range(len(weights)):
                    product = _inner(vector, weights[o, columns[t] : columns[t] + width])
                    sums[e, o] = signs[t] * data[e] * product
