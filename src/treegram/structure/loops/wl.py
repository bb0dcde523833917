"""The hot loop of ``structure.wl``: each round of colours from the last, on flat arrays.

A colour is a 64-bit hash of (own colour, multiset of the neighbours' colours). The multiset is the sum of mixed colours, so
nothing is sorted and no dictionary is shared: equal surroundings have equal colours in any collection.
"""

from __future__ import annotations

import numpy as np

from treegram._numba import jit
from treegram.structure.loops.hashing import join, mix


@jit
def refine(arcs, hashes, level, first, last, colours):
    """colours[level] of the nodes first .. last - 1, from their hashes or from the level before."""
    (indptr, indices), (node_hashes, arc_hashes) = arcs, hashes
    for v in range(first, last):
        if level == 0:
            colours[0, v] = mix(node_hashes[v])
            continue
        around = np.uint64(0)
        for arc in range(indptr[v], indptr[v + 1]):
            around += mix(colours[level - 1, indices[arc]] + arc_hashes[arc])
        colours[level, v] = join(colours[level - 1, v], around)
