"""The hot loop of ``structure.wl``: each round of colours from the last, on flat arrays.

A colour is a 64-bit hash of (own colour, multiset of the neighbours' colours). The multiset is the sum of mixed colours, so
nothing is sorted and no dictionary is shared: equal surroundings have equal colours in any collection.
"""

from __future__ import annotations

import numpy as np

from treegram._numba import jit
from treegram.structure.loops.trees import GOLDEN, mix


@jit
def refine(indptr, indices, node_hashes, arc_hashes, iterations, first, last):
    """Colours (iterations + 1, last - first) of the nodes first .. last - 1, whose neighbours are all among them."""
    colours = np.empty((iterations + 1, last - first), np.uint64)
    for v in range(first, last):
        colours[0, v - first] = mix(node_hashes[v])
    for level in range(1, iterations + 1):
        for v in range(first, last):
            around = np.uint64(0)
            for arc in range(indptr[v], indptr[v + 1]):
                around += mix(colours[level - 1, indices[arc] - first] + arc_hashes[arc])
            colours[level, v - first] = mix(colours[level - 1, v - first] + around * GOLDEN)
    return colours
