"""The hot loop of ``pairsum.matching.match_shares``: what each row adds to the closed forms of ``loops.matching``.

A matching lays a row on at most one column, so the sum over the matchings that contain row v is the derivative of S_s by a factor
of all kappa of that row: the sum of kappa[v, j] dS_s / dkappa[v, j]. With P the sum over paths of three nodes and M = kappa B,
N = A kappa, W = A kappa B as in ``loops.matching``, it is a sum over columns of

    kappa (W^2 / 2 + kappa W) - M N (M + N / 2) + kappa A dP/dN + M A dP/dW

where dP/dN = -M (M / 2 + N) and dP/dW = kappa (W + kappa / 2); products with B have been moved to the other factor. What triangles
of the columns' graphs take back adds to the first part and to dP/dN. Those of the row's graph have each of their three rows once,
so each of these gets all of it.
"""

from __future__ import annotations

from collections import namedtuple

from numba import njit

from treegram._core.jit import contracted
from treegram.pairsum.loops.matching import (
    BUDGET,
    FIRST,
    GRAPH,
    LAST,
    ROW,
    _add_neighbors,
    _fill_kappa,
    _first_triangle,
    _hand_out,
    _hull,
    _sum_triangle,
)
from treegram.pairsum.loops.tiles import add_scaled, clear, copy

# What is held for one row graph: kappa and its windows, M, N and W (then dP/dN and dP/dW), numbers per column, numbers per graph
# of the tile.
Held = namedtuple("Held", "kappa windows right left both row slopes three graphs")


@contracted
def _row_paths(kappa, right, left, both, weights, row, slopes):
    """What one row adds by itself to the pairs and paths that contain it, dP/dN into ``slopes``, and dP/dW in place of W."""
    for j in range(len(kappa)):
        k, m, n, w = kappa[j], right[j], left[j], both[j]
        row[j] = weights[0] * k + weights[1] * (k * w) + weights[2] * (k * w * (k + 0.5 * w) - m * n * (m + 0.5 * n))
        slopes[j] = -m * (n + 0.5 * m)
        both[j] = k * (w + 0.5 * k)


@contracted
def _open_column_paths(kappa, left, near, span, triangles, weight, row, slopes):
    """The same for what is taken back: paths whose ends are adjacent in the columns' graphs."""
    first, last = span
    for i in range(_first_triangle(first, triangles), _first_triangle(near[1], triangles)):
        a, b, c = triangles[i, 0], triangles[i, 1], triangles[i, 2]
        if c < near[0] or c >= last:
            continue
        ka, kb, kc, na, nb, nc = kappa[a], kappa[b], kappa[c], left[a], left[b], left[c]
        mixed = kb * nc + kc * nb
        row[a] -= weight * (ka * (nb * nc - 2.0 * mixed) + na * (mixed - 2.0 * kb * kc))
        slopes[a] -= mixed - kb * kc
        slopes[b] -= ka * nc + kc * na - ka * kc
        slopes[c] -= ka * nb + kb * na - ka * kb


@njit(inline="always")  # bundles of arrays are costly to hand over, row by row
def _hold_row(v, arcs, tile, weights, held, out):
    """Hand out what row v adds by itself, and hold what its neighbors need of it."""
    indptr, indices = arcs
    windows = held.windows
    first, last = windows[v, 0], windows[v, 1]
    if first < last and indptr[v] == indptr[v + 1]:
        _hand_out(held.kappa[v, first:last], weights[0], tile.columns.graphs[first:last], out)
    elif first < last:
        for i in range(indptr[v], indptr[v + 1]):
            first, last = _hull(first, last, windows[indices[i]])
        left, both = held.left[v], held.both[v]
        clear(left[first:last])
        clear(both[first:last])
        for i in range(indptr[v], indptr[v + 1]):
            u = indices[i]
            low, high = windows[u, 0], windows[u, 1]
            add_scaled(1.0, held.kappa[u, low:high], left[low:high])
            add_scaled(1.0, held.right[u, first:last], both[first:last])
        row, slopes = held.row[first:last], held.slopes[first:last]
        kappa, right = held.kappa[v, first:last], held.right[v, first:last]
        _row_paths(kappa, right, left[first:last], both[first:last], weights, row, slopes)
        _open_column_paths(
            held.kappa[v], left, windows[v], (first, last), tile.triangles, weights[2], held.row, held.slopes
        )
        copy(slopes, left[first:last])
        _hand_out(row, 1.0, tile.columns.graphs[first:last], out)


@contracted
def _row_ends(kappa, right, left, both, weight, row):
    """What a row adds as a neighbor of others."""
    for j in range(len(kappa)):
        row[j] = weight * (kappa[j] * left[j] + right[j] * both[j])


@njit(inline="always")
def _spread_row(v, arcs, tile, weights, held, out):
    """Hand out what row v adds to the paths that go on from its neighbors: kappa A dP/dN + M A dP/dW."""
    indptr, indices = arcs
    windows = held.windows
    low, high = windows[v, 0], windows[v, 1]
    if low == high or indptr[v] == indptr[v + 1]:
        return
    first, last = low, high
    for i in range(indptr[v], indptr[v + 1]):
        first, last = _hull(first, last, windows[indices[i]])
    left, both = held.slopes, held.three
    clear(left[first:last])
    clear(both[first:last])
    for i in range(indptr[v], indptr[v + 1]):
        u = indices[i]
        if windows[u, 0] < windows[u, 1]:
            add_scaled(1.0, held.left[u, low:high], left[low:high])
            add_scaled(1.0, held.both[u, windows[u, 0] : windows[u, 1]], both[windows[u, 0] : windows[u, 1]])
    row = held.row[first:last]
    kappa, right = held.kappa[v, first:last], held.right[v, first:last]
    _row_ends(kappa, right, left[first:last], both[first:last], weights[2], row)
    _hand_out(row, 1.0, tile.columns.graphs[first:last], out)


@njit(inline="always")
def _share_triangle(a, b, c, tile, weights, held, out):
    """Hand out to each of its rows what a triangle of the row's graph gives."""
    clear(held.three)
    _sum_triangle(a, b, c, tile, held)
    clear(held.graphs)
    _hand_out(held.three, 0.5 * weights[2], tile.columns.graphs, held.graphs)
    add_scaled(1.0, held.graphs, out[a])
    add_scaled(1.0, held.graphs, out[b])
    add_scaled(1.0, held.graphs, out[c])


@contracted
def share_closed(state, graphs, tile, limits, weights, held, out):
    """out[row, graph of column] += the sum over matchings of s + 1 nodes that contain the row, times weights[s], s < 3.

    Rows of ``out`` begin with those of the graph state[FIRST]. state[ROW] counts the rows of a graph, then these again, and
    then its triangles.
    """
    g, at, steps = state[GRAPH], state[ROW], 0
    n_columns = len(tile.columns.graphs)
    while g < state[LAST] and steps <= state[BUDGET]:
        first, n = graphs.offsets[g], graphs.offsets[g + 1] - graphs.offsets[g]
        arcs, own = (graphs.indptr[first:], graphs.indices), out[first - graphs.offsets[state[FIRST]] :]
        n_parts = n if weights[2] == 0.0 else 2 * n + graphs.triangle_starts[g + 1] - graphs.triangle_starts[g]
        if at == 0:
            _fill_kappa(g, state, graphs, tile, limits, held)
            _add_neighbors(held.kappa, n, tile.indptr, tile.indices, held.right)
            steps += 8 * n * n_columns
        while at < n_parts and (at == 0 or steps <= state[BUDGET]):  # a graph that is begun is never begun again
            if at < n:
                _hold_row(at, arcs, tile, weights, held, own[at])
            elif at < 2 * n:
                _spread_row(at - n, arcs, tile, weights, held, own[at - n])
            else:
                i = graphs.triangle_starts[g] + at - 2 * n
                a, b, c = graphs.triangles[i, 0] - first, graphs.triangles[i, 1] - first, graphs.triangles[i, 2] - first
                _share_triangle(a, b, c, tile, weights, held, own)
            steps += 16 * n_columns + 8 * len(tile.triangles)
            at += 1
        if at < n_parts:
            break
        g, at = g + 1, 0
    state[GRAPH], state[ROW] = g, at
