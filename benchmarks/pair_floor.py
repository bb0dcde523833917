"""Lower bounds of the time of the exact engine.

For every pair of nodes with equal labels (half of them, by symmetry): one squared distance by matrix product and one
exponential, in tiles that stay in cache, numpy only. It computes no kernel: it is what any exact method that looks at
each such pair once must at least pay. Usage: pair_floor(X, labels, gamma) -> (seconds of process time, pairs).

The Gaussians alone: the engine's own vectorized distance and exponential, for exactly the pairs of nodes that remain after
merging and windows. Features, merging, sorting and sums are left out. Usage: gaussians_alone(gaussian_tiles(nodes, k_A)).
"""

import time

import numpy as np

from treegram._core.jit import contracted
from treegram.pairsum import nodes as engine
from treegram.pairsum.nodes import _rows_at_once
from treegram.pairsum.tiles import aligned, gaussian_row, gaussian_rows, window_of


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


@contracted(allocates=True)
def meet(rows, columns, kernel, n_rows, out):
    """Compute the Gaussians of the first rows with the columns of a tile in their windows; return their number."""
    graphs, blocks, vectors, places, _, _, _ = rows
    _, block_starts, column_vectors, column_places = columns
    n_pairs, v, window = 0, 0, np.empty(2, np.int64)
    while v < n_rows:
        first, last = block_starts[blocks[v]], block_starts[blocks[v] + 1]
        window[0], window[1] = window_of(places[v], kernel.reach, column_places, first, last)
        n = 1
        if len(column_vectors) > 3:
            n = _rows_at_once(v, n_rows, window, graphs, blocks, places, kernel.reach, column_places, (first, last))
        low, high = window[0], window[1]
        if n == 1:
            gaussian_row(kernel.gamma, v, vectors, column_vectors, low, high, 0, out)
        else:
            gaussian_rows(kernel.gamma, v, vectors, column_vectors, low, high, out)
        n_pairs += n * (high - low)
        v += n
    return n_pairs


def gaussian_tiles(nodes, node_kernel):
    """Return the tiles of a symmetric Gram matrix of these nodes: equal nodes of a graph merged, columns sorted, windows known."""
    nodes = engine._condense(nodes, node_kernel)
    job = engine._NodeJob.prepare(nodes, nodes, node_kernel, engine.Weighting.alike(nodes.features.shape[1]))
    tiles = []
    for span in job.spans(8 * nodes.n_graphs**2):
        columns, n_rows = job.columns(span)[-1], int(job.layout.left.offsets[span[1]])
        tiles.append((job.rows, columns, job.layout.kernel((0, n_rows), columns), n_rows))
    return tiles


def gaussians_alone(tiles):
    """Compute only the node kernels of all pairs that remain after merging and windows, with the loop of the engine."""
    return sum(meet(*tile, aligned(4, len(tile[1].graphs))) for tile in tiles)
