"""Sums over pairs of walks, exactly, for any number of steps up to a largest one.

    s_k(G, G') = sum over walks of k steps in G and in G' of the product of the node kernels of their nodes

With y_0(v, v') = k(v, v') and y_k(v, v') = k(v, v') times the sum of y_{k-1}(u, u') over all arcs v -> u and v' -> u' with equal
labels, it is the sum of all entries of y_k, for all k in one pass. Rows are those of one graph, columns those of a tile: for one v,
``reached`` is the sum of y_{k-1} over the arcs of v, by label, and each v' then collects it at the ends of its own arcs.

A Gaussian is skipped where that changes no entry of the normalized matrix by more than rounding does: with at most w walks in a
graph, walks with a node kernel below eps sum to at most eps w w', and K(G, G) >= w from the pairs of each walk with itself.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import contracted
from treegram._core.machine import require
from treegram._core.parallel import progress, run_tasks
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import NodeKernel
from treegram.pairsum.tiles import (
    Layout,
    Span,
    add_scaled,
    clear,
    cut,
    diagonal,
    fill_matrix,
    kernel_rows,
    number_alike,
    own_blocks,
)

TILE_COLUMNS = 512  # what the arcs of one row reach then stays in the first-level cache

# Arcs of each row, by its position in the collection, or those of each column: where their ends are in ``reached``.
Arcs = namedtuple("Arcs", "starts ends labels")
# For one row graph: the node kernel of its rows with all columns, windows, y_k and y_{k-1}, and what one row reaches.
WalkScratch = namedtuple("WalkScratch", "kernel windows walks reached")


@dataclass(frozen=True)
class WalkNodes:
    """The nodes and arcs of some graphs; nodes of different blocks, and arcs of different codes, never match."""

    offsets: Ints  # graph g has the nodes offsets[g] .. offsets[g + 1] - 1
    blocks: Hashes
    vectors: Floats
    indptr: Ints
    indices: Ints
    arc_codes: Hashes
    node_kernel: NodeKernel
    weights: Floats  # (n_points, n_steps + 1): sums are weighted by their steps

    def most_walks(self) -> float:
        """Return the largest number of walks in one graph, at least 1."""
        n = len(self.blocks)
        step = sp.csr_matrix((np.ones(len(self.indices)), self.indices, self.indptr), shape=(n, n))
        walks = total = np.ones(n)
        for _ in range(self.weights.shape[1] - 1):
            walks = step @ walks
            total = total + walks
        return float(np.diff(np.append(0.0, np.cumsum(total))[self.offsets]).max(initial=1.0))


def walk_sums(left: WalkNodes, right: WalkNodes | None, *, n_jobs: int | None = None) -> Floats:
    """Return the weighted sums for each pair of graphs: (n_points, n_left, n_right).

    ``right=None`` means left with itself, which costs half: only the upper half is filled.
    """
    columns = left if right is None else right
    sums = np.zeros((left.weights.shape[1], len(left.offsets) - 1, len(columns.offsets) - 1))
    if len(left.blocks) and len(columns.blocks):
        job = _WalkJob.prepare(left, columns)
        tiles = cut(columns.offsets, 1 + len(columns.blocks) // TILE_COLUMNS)
        fill_matrix(_tile_sums, job, tiles, sums, symmetric=right is None, n_jobs=n_jobs, label="walk sums")
    return np.einsum("pk,kij->pij", left.weights, sums)


def walk_self_sums(nodes: WalkNodes, *, n_jobs: int | None = None) -> Floats:
    """Return the sums of each graph with itself: the diagonals of :func:`walk_sums`."""
    if not len(nodes.blocks):
        return np.zeros((len(nodes.weights), len(nodes.offsets) - 1))
    graph_ids = np.repeat(np.arange(len(nodes.offsets) - 1), np.diff(nodes.offsets))
    alone = replace(nodes, blocks=own_blocks(graph_ids, nodes.blocks))
    return nodes.weights @ diagonal(_tile_sums, _WalkJob.prepare(alone, alone), n_jobs=n_jobs, label="walk sums")


def walk_contributions(nodes: WalkNodes, others: WalkNodes, weights: Floats, *, n_jobs: int | None = None) -> Floats:
    """Return what the walks from each node add to the sums of weights[i, j] K(G, G_i) over the other graphs: (n_nodes, n_outputs)."""
    contributions = np.zeros((len(nodes.blocks), weights.shape[1]))
    if len(nodes.blocks) and len(others.blocks):
        alone = replace(_WalkJob.prepare(others, nodes), by_graph=False)
        tiles = cut(nodes.offsets, 1 + len(nodes.blocks) // TILE_COLUMNS)
        tasks = [(alone, tile, (0, len(others.offsets) - 1)) for tile in tiles]
        for tile, sums in zip(tiles, run_tasks(_tile_sums, tasks, n_jobs=n_jobs, label="walk sums"), strict=True):
            contributions[alone.layout.columns(tile)[0]] = np.einsum("k,kij,io->jo", nodes.weights[0], sums, weights)
    return contributions


@dataclass(frozen=True)
class _WalkJob:
    """Everything that the tiles of one computation have in common."""

    layout: Layout
    n_steps: int
    n_labels: int
    row_arcs: Any  # Arcs
    column_arcs: Any
    by_graph: bool = True  # else there is one sum for each column

    @classmethod
    def prepare(cls, left: WalkNodes, right: WalkNodes) -> _WalkJob:
        exponent = 54 * np.log(2) + np.log(max(left.most_walks(), right.most_walks()))
        layout = Layout.make(left, right, right.node_kernel, exponent)
        n_labels, labels = number_alike(left.arc_codes, right.arc_codes)
        rows, columns = Arcs(left.indptr, left.indices, labels[0]), Arcs(right.indptr, right.indices, labels[1])
        return cls(layout, left.weights.shape[1] - 1, n_labels, rows, columns)


def _tile_sums(job: _WalkJob, tile: Span, graphs: Span) -> Floats:
    """Return the sums of some consecutive graphs on the left with those of a tile on the right, or with each of its nodes."""
    order, columns = job.layout.columns(tile)
    n, n_sums = len(order), tile[1] - tile[0]
    if not job.by_graph:
        columns, n_sums = columns._replace(graphs=np.arange(n)), n
    offsets, rows, ends = job.layout.left.offsets, job.layout.rows, _column_arcs(job.column_arcs, order)
    largest = int(np.diff(offsets[graphs[0] : graphs[1] + 1]).max(initial=0))
    require(8.0 * n * (3 * largest + job.n_labels), "The sums over walks of the largest graph")
    kernels, windows = np.empty((largest, n)), np.empty((largest, 2), np.int64)
    scratch = WalkScratch(kernels, windows, np.empty((2, largest, n)), np.empty((job.n_labels, n)))
    out = np.zeros((job.n_steps + 1, graphs[1] - graphs[0], n_sums))
    with progress(int(offsets[graphs[1]] - offsets[graphs[0]]), "walks") as advance:  # shown if one tile takes long
        for (start, stop), kernel in job.layout.calls(graphs, columns):
            sums = out[:, start - graphs[0] :]
            sum_walks(start, stop, offsets, rows, columns, kernel, job.row_arcs, ends, scratch, sums)
            advance(int(offsets[stop] - offsets[start]))
    return out


def _column_arcs(arcs: Any, order: Ints) -> Any:
    """Return the arcs of the columns of a tile, where column j is the node order[j], with the columns where they end."""
    first = order.min() if len(order) else 0
    lengths = np.diff(arcs.starts)[order]
    starts = np.append(0, np.cumsum(lengths))
    positions = np.arange(starts[-1]) + np.repeat(arcs.starts[order] - starts[:-1], lengths)
    return Arcs(starts, np.argsort(order)[arcs.ends[positions] - first], arcs.labels[positions])


# -------------------------------------------------------------------- compiled


@contracted
def _collect(kernel, low, high, arcs, reached, graphs, walks, totals):
    """Set walks[j] to kernel[j] times what is reached at the ends of the arcs of column j, and add it to totals[graph of j]."""
    starts, ends, labels = arcs
    for j in range(low, high):
        total = 0.0
        for arc in range(starts[j], starts[j + 1]):
            total += reached[labels[arc], ends[arc]]
        walks[j] = kernel[j] * total
        totals[graphs[j]] += walks[j]


@contracted
def sum_walks(first, last, offsets, rows, columns, kernel, row_arcs, column_arcs, scratch, out):
    """Add the sums of the graphs g = first .. last - 1 with one tile to out[k, g - first, graph of column], for all k."""
    starts, ends, labels = row_arcs
    values, windows, walks, reached = scratch
    graphs = columns.graphs
    for g in range(first, last):
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        kernel_rows(base, base + n, offsets[first], rows, columns, kernel, values, windows)
        for v in range(n):
            for j in range(windows[v, 0], windows[v, 1]):
                walks[0, v, j] = values[v, j]
                out[0, g - first, graphs[j]] += values[v, j]
        for k in range(1, len(out)):
            old, new = walks[(k + 1) % 2], walks[k % 2]
            for v in range(n):
                if windows[v, 0] == windows[v, 1]:
                    continue
                for label in range(len(reached)):
                    clear(reached[label])
                for arc in range(starts[base + v], starts[base + v + 1]):
                    u = ends[arc] - base
                    low, high = windows[u, 0], windows[u, 1]
                    add_scaled(1.0, old[u, low:high], reached[labels[arc], low:high])
                _collect(
                    values[v], windows[v, 0], windows[v, 1], column_arcs, reached, graphs, new[v], out[k, g - first]
                )
