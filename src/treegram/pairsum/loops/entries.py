"""The hot loop of ``pairsum.entries``."""

from __future__ import annotations

from treegram._numba import reordered


@reordered
def add_entries(nodes, rows, columns, block, sums):
    """sums[e] for the entries e = (v, t) of some rows v: the sum over v' of block[v, v'] * value(v', t)."""
    (indptr, indices), (starts, members, values) = rows, columns
    for i in range(len(nodes)):
        alike = block[i]
        for entry in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            feature = indices[entry]
            total = 0.0
            for place in range(starts[feature], starts[feature + 1]):
                total += alike[members[place]] * values[place]
            sums[entry] = total
