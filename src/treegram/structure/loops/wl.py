"""The hot loop of ``structure.wl``: each round of colors from the last, on flat arrays.

A color is a 64-bit hash of (own color, multiset of the neighbors' colors). The multiset is the sum of mixed colors, so
nothing is sorted and no dictionary is shared: equal surroundings have equal colors in any collection.
"""

from __future__ import annotations

import numpy as np

from treegram._core.jit import jit
from treegram.structure.loops.hashing import join, mix


@jit
def refine(arcs, hashes, level, first, last, colors):
    """colors[level] of the nodes first .. last - 1, from their hashes or from the level before."""
    (indptr, indices), (node_hashes, arc_hashes) = arcs, hashes
    for v in range(first, last):
        if level == 0:
            colors[0, v] = mix(node_hashes[v])
            continue
        around = np.uint64(0)
        for arc in range(indptr[v], indptr[v + 1]):
            around += mix(colors[level - 1, indices[arc]] + arc_hashes[arc])
        colors[level, v] = join(colors[level - 1, v], around)
