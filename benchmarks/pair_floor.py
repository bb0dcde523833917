"""The floor that the exact engine is measured against.

For every pair of nodes with equal labels (half of them, by symmetry): one squared distance by matrix product and one
exponential, in tiles that stay in cache, numpy only. It computes no kernel: it is what any exact method that looks at
each such pair once must at least pay. Usage: pair_floor(X, labels, gamma) -> (seconds of process time, pairs).
"""

import time

import numpy as np


def pair_floor(X, labels, gamma, tile=512):
    pairs = 0
    start = time.process_time()
    for label in np.unique(labels):
        x = np.ascontiguousarray(X[labels == label], dtype=float)
        x -= x.mean(axis=0)
        norms = gamma * (x * x).sum(axis=1)
        scaled = x * (2 * gamma)
        for i in range(0, len(x), tile):
            for j in range(i, len(x), tile):
                block = scaled[i : i + tile] @ x[j : j + tile].T
                block -= norms[i : i + tile, None]
                block -= norms[None, j : j + tile]
                np.exp(block, out=block)
                pairs += block.size
    return time.process_time() - start, pairs
