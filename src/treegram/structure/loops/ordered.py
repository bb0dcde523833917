"""The hot loop of ``structure.ordered``: reading a shared tree out node by node."""

from __future__ import annotations

import numpy as np

from treegram._core.jit import jit


@jit(allocates=True)
def unroll(chosen, roots, starts, children, nodes):
    """Write the nodes of the chosen trees into the rows of ``nodes``, each before its children, in their order.

    The children of tree i are the trees children[starts[i] : starts[i + 1]]; all chosen trees have as many nodes as a row.
    """
    stack = np.empty(nodes.shape[1] + 1, np.int64)
    for row in range(len(chosen)):
        stack[0], n_waiting, n_read = chosen[row], 1, 0
        while n_waiting > 0:
            n_waiting -= 1
            tree = stack[n_waiting]
            nodes[row, n_read] = roots[tree]
            n_read += 1
            for i in range(starts[tree + 1] - 1, starts[tree] - 1, -1):
                stack[n_waiting] = children[i]
                n_waiting += 1
