"""The hot loops of ``pairsum.matching``: the graphs of some rows against one tile of columns that stays in cache.

The columns' graphs are told apart only when sums are handed out. A tile's node kernel kappa is held for one row graph at a
time. No product graph is ever built. Loops stop after about ``budget`` steps; their state and what they hold say where to go on.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from treegram._core.jit import contracted, jit
from treegram.pairsum.loops.tiles import add_scaled, clear, kernel_rows

# The row graphs: their nodes (as ``loops.tiles`` takes them), arcs with the kinds of their edges (from 1), and triangles.
# Neighbors are numbered within their graph.
Graphs = namedtuple("Graphs", "rows offsets indptr indices codes triangles triangle_starts")
# A tile of columns with the same; all of it is numbered by column.
Tile = namedtuple("Tile", "columns indptr indices codes triangles")
# The node kernel, and below which values it is 0; what a matching must weigh to count; bits of an arc's code.
Limits = namedtuple("Limits", "kernel threshold floor bits")
# What is held for one row graph: kappa, the window of each row outside of which it is 0, kappa summed over the columns'
# neighbors, and numbers per column.
Closed = namedtuple("Closed", "kappa windows right left both one two three")
# For enumeration: which members of the matching each node is adjacent to, pairs that may come next, the matching itself, the
# weights of its beginnings, and sums by the number of pairs. Where it is asked what each row adds: what a matching of so many
# pairs gives to each of its rows, and what each row has been given, by graph of the columns; else no rows.
Cliques = namedtuple("Cliques", "kappa windows masks column_masks listed stack weights totals size_weights shares")

# Marks of nodes that are matched already. No arc has these bits, and they differ: such a node is like no other node.
_ROW_MEMBER, _COLUMN_MEMBER = np.int64(1) << np.int64(62), np.int64(1) << np.int64(61)
MASK_BITS = 61

# State of both loops: the graph, where in it, the first graph (given kernel values start there), the one after the last, steps.
GRAPH, ROW, FIRST, LAST, BUDGET = range(5)
COLUMN, DEPTH = 5, 6  # of the enumeration: the column of its first pair, and how many pairs it has


@jit
def list_triangles(offsets, indptr, indices, starts, triangles):
    """Write all triangles (a < b < c), graph after graph, into ``triangles`` as far as it has room; returns their number.

    Those of graph g are starts[g] .. starts[g + 1] - 1.
    """
    used = 0
    for g in range(len(offsets) - 1):
        for a in range(offsets[g], offsets[g + 1]):
            for i in range(indptr[a], indptr[a + 1]):
                b = indices[i]
                x, y = i + 1, indptr[b]
                while b > a and x < indptr[a + 1] and y < indptr[b + 1]:
                    c, d = indices[x], indices[y]
                    if c == d:
                        if used < len(triangles):
                            triangles[used, 0], triangles[used, 1], triangles[used, 2] = a, b, c
                        used += 1
                    x += c <= d
                    y += d <= c
        starts[g + 1] = used
    return used


@contracted
def _fill_kappa(g, state, graphs, tile, limits, held):
    """Kappa of all rows of graph g with all columns."""
    first, last = graphs.offsets[g], graphs.offsets[g + 1]
    kappa, windows, threshold = held.kappa, held.windows, limits.threshold
    for v in range(last - first):
        clear(kappa[v])
    base = graphs.offsets[state[FIRST]]
    kernel_rows(first, last, base, graphs.rows, tile.columns, limits.kernel, kappa, windows)
    for v in range(last - first if threshold > 0.0 else 0):
        for j in range(windows[v, 0], windows[v, 1]):
            if abs(kappa[v, j]) <= threshold:
                kappa[v, j] = 0.0


# -------------------------------------------------------------------- closed forms, up to three nodes


@contracted
def _add_neighbors(source, n_rows, indptr, indices, target):
    """target[v, j] = the sum of source[v] over the neighbors of j, for v < n_rows.

    Four rows at a time: what costs is finding the neighbors. The last row is done again where there are fewer than four.
    """
    end = n_rows - 1
    for v in range(0, n_rows, 4):
        v1, v2, v3 = min(v + 1, end), min(v + 2, end), min(v + 3, end)
        s0, s1, s2, s3 = source[v], source[v1], source[v2], source[v3]
        for j in range(len(indptr) - 1):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(indptr[j], indptr[j + 1]):
                k = indices[i]
                a += s0[k]
                b += s1[k]
                c += s2[k]
                d += s3[k]
            target[v, j], target[v1, j], target[v2, j], target[v3, j] = a, b, c, d


@jit
def _first_triangle(column, triangles):
    """The first triangle whose first column is not before this one; they are sorted."""
    low, high = 0, len(triangles)
    while low < high:
        middle = (low + high) // 2
        if triangles[middle, 0] < column:
            low = middle + 1
        else:
            high = middle
    return low


@njit(inline="always")
def _hull(first, last, window):
    """The span first .. last - 1 with a window, which may be empty."""
    if window[0] == window[1]:
        return first, last
    return min(first, window[0]), max(last, window[1])


@contracted
def _add_paths(kappa, right, left, both, two, three):
    """What one row adds to the sums of its columns: pairs, and paths of three nodes whose ends may be adjacent."""
    for j in range(len(kappa)):
        k, m, n, w = kappa[j], right[j], left[j], both[j]
        two[j] += k * w
        three[j] += k * w * (k + w) - m * n * (m + n)


@contracted
def _open_column_paths(kappa, left, near, span, triangles, three):
    """Take back one row's paths whose ends are adjacent in the columns' graphs: two for each triangle there.

    Each has a column in the row's own window, and all three in the span that is its and its neighbors'.
    """
    first, last = span
    for i in range(_first_triangle(first, triangles), _first_triangle(near[1], triangles)):
        a, b, c = triangles[i, 0], triangles[i, 1], triangles[i, 2]
        if c < near[0] or c >= last:
            continue
        mixed = kappa[b] * left[c] + kappa[c] * left[b]
        three[a] -= 2.0 * (kappa[a] * (left[b] * left[c] - mixed) + left[a] * (mixed - kappa[b] * kappa[c]))


@contracted
def _open_row_paths(ka, kb, kc, ma, mb, mc, three):
    """The same for one triangle of the row's graph; here all columns at once."""
    for j in range(len(three)):
        mixed = kb[j] * mc[j] + kc[j] * mb[j]
        three[j] -= 2.0 * (ka[j] * (mb[j] * mc[j] - mixed) + ma[j] * (mixed - kb[j] * kc[j]))


@contracted
def _add_triangles(ka, kb, kc, first, last, triangles, three):
    """One triangle of the row's graph against all of the columns': the permanent of kappa between them, with a weight.

    The six bijections count once as triangles. As paths, each was counted once and taken back twice for each of the three
    nodes that may be in the middle: to make it none, add three. Sums are halved later: 2 (1 + 3) = 8. Triangles whose first
    column is before ``first``, or from ``last`` on, have none of it.
    """
    for i in range(_first_triangle(first, triangles), _first_triangle(last, triangles)):
        x, y, z = triangles[i, 0], triangles[i, 1], triangles[i, 2]
        three[x] += 8.0 * (
            ka[x] * (kb[y] * kc[z] + kb[z] * kc[y])
            + ka[y] * (kb[x] * kc[z] + kb[z] * kc[x])
            + ka[z] * (kb[x] * kc[y] + kb[y] * kc[x])
        )


@jit
def _hand_out(sums, factor, column_graphs, totals):
    """totals[graph of j] += factor * sums[j]."""
    for j in range(len(sums)):
        totals[column_graphs[j]] += factor * sums[j]


@njit(inline="always")  # bundles of arrays are costly to hand over, row by row
def _sum_row(v, arcs, tile, held):
    """Add what one row of a graph gives to the sums of the columns, its graph's triangles apart."""
    indptr, indices = arcs
    windows = held.windows
    if indptr[v] == indptr[v + 1] or windows[v, 0] == windows[v, 1]:
        return
    first, last = windows[v, 0], windows[v, 1]
    for i in range(indptr[v], indptr[v + 1]):
        first, last = _hull(first, last, windows[indices[i]])
    left, both = held.left[first:last], held.both[first:last]
    clear(left)
    clear(both)
    for i in range(indptr[v], indptr[v + 1]):
        u = indices[i]
        low, high = windows[u, 0], windows[u, 1]
        add_scaled(1.0, held.kappa[u, low:high], held.left[low:high])
        add_scaled(1.0, held.right[u, first:last], both)
    two, three = held.two[first:last], held.three[first:last]
    _add_paths(held.kappa[v, first:last], held.right[v, first:last], left, both, two, three)
    _open_column_paths(held.kappa[v], held.left, windows[v], (first, last), tile.triangles, held.three)


@njit(inline="always")
def _sum_triangle(a, b, c, tile, held):
    """Add what one triangle of the row's graph gives; beyond the windows of its nodes it gives nothing."""
    wa, wb, wc = held.windows[a], held.windows[b], held.windows[c]
    if wa[0] == wa[1] or wb[0] == wb[1] or wc[0] == wc[1]:
        return
    ka, kb, kc = held.kappa[a], held.kappa[b], held.kappa[c]
    first, last = min(wa[0], wb[0], wc[0]), max(wa[1], wb[1], wc[1])
    _open_row_paths(
        ka[first:last], kb[first:last], kc[first:last],
        held.right[a, first:last], held.right[b, first:last], held.right[c, first:last], held.three[first:last],
    )  # fmt: skip
    # The first column of a triangle is not behind the window that ends first: some node has to be laid there or later.
    _add_triangles(ka, kb, kc, first, min(wa[1], wb[1], wc[1]), tile.triangles, held.three)


@contracted
def _begin_graph(g, state, graphs, tile, limits, held, totals):
    """Hold kappa of one row graph, hand out its sum, and make ready for larger matchings."""
    n = graphs.offsets[g + 1] - graphs.offsets[g]
    _fill_kappa(g, state, graphs, tile, limits, held)
    clear(held.one)
    for v in range(n):
        low, high = held.windows[v, 0], held.windows[v, 1]
        add_scaled(1.0, held.kappa[v, low:high], held.one[low:high])
    _hand_out(held.one, 1.0, tile.columns.graphs, totals[0])
    if len(totals) > 1:
        clear(held.two)
        clear(held.three)
        _add_neighbors(held.kappa, n, tile.indptr, tile.indices, held.right)


@contracted
def sum_closed(state, graphs, tile, limits, held, out):
    """out[graph of row, s, graph of column] = S_(s+1), the sum over matchings of s + 1 nodes, s < out.shape[1] <= 3.

    With the node kernel kappa (rows x columns), the adjacency matrices A of the row's and B of the column's graph, M = kappa B,
    N = A kappa, W = A kappa B, all products elementwise:

    - S_1 = sum kappa, S_2 = 1/2 sum kappa W;
    - paths u - v - w, their ends adjacent or not: 1/2 sum (kappa W^2 - N M^2 - M N^2 + W kappa^2);
    - those with ends adjacent in the row's graph: one sum over columns for each of its triangles (a, b, c), of
      kappa_a M_b M_c + ... - kappa_a kappa_b M_c - ...; likewise with N for the columns' triangles;
    - triangles: the permanent of kappa between each two.

    state[ROW] counts the rows of a graph, and then its triangles.
    """
    g, at, steps, max_size = state[GRAPH], state[ROW], 0, out.shape[1]
    n_columns = len(tile.columns.graphs)
    while g < state[LAST] and steps <= state[BUDGET]:
        first, n = graphs.offsets[g], graphs.offsets[g + 1] - graphs.offsets[g]
        n_parts = n + graphs.triangle_starts[g + 1] - graphs.triangle_starts[g]
        if at == 0:
            _begin_graph(g, state, graphs, tile, limits, held, out[g])
            steps += 8 * n * n_columns
        at = n_parts if max_size == 1 else at
        while at < n_parts and (at == 0 or steps <= state[BUDGET]):  # a graph that is begun is never begun again
            if at < n:
                _sum_row(at, (graphs.indptr[first:], graphs.indices), tile, held)
            else:
                i = graphs.triangle_starts[g] + at - n
                a, b, c = graphs.triangles[i, 0] - first, graphs.triangles[i, 1] - first, graphs.triangles[i, 2] - first
                _sum_triangle(a, b, c, tile, held)
            steps += 16 * n_columns + 8 * len(tile.triangles)
            at += 1
        if at < n_parts:
            break
        if max_size > 1:
            _hand_out(held.two, 0.5, tile.columns.graphs, out[g, 1])
        if max_size > 2:
            _hand_out(held.three, 0.5, tile.columns.graphs, out[g, 2])
        g, at = g + 1, 0
    state[GRAPH], state[ROW] = g, at


# -------------------------------------------------------------------- enumeration, any number of nodes


@jit
def _mark(v, mark, shift, arcs, masks):
    """Write down that v is matched, at itself and at each neighbor with the kind of their edge; twice: wipe it out."""
    indptr, indices, codes = arcs
    masks[v] ^= mark
    for i in range(indptr[v], indptr[v + 1]):
        masks[indices[i]] ^= codes[i] << shift


@contracted
def _list_new(pair, shift, root, sides, held, used):
    """List the pairs of neighbors of a pair that no earlier member is adjacent to, behind those listed already."""
    (indptr, indices, codes), (column_indptr, column_indices, _) = sides
    u, j = pair
    for x in range(indptr[u], indptr[u + 1]):
        w, alone = indices[x], codes[x] << shift
        if w <= root or held.masks[w] != alone:
            continue
        for y in range(column_indptr[j], column_indptr[j + 1]):
            i = column_indices[y]
            if held.column_masks[i] == alone and held.kappa[w, i] != 0.0:
                held.listed[used, 0], held.listed[used, 1] = w, i
                used += 1
    return used


@contracted
def _join(s, root, bits, sides, held):
    """Make the pair stack[s, :2] the s-th of the matching, and list what may come next; returns how many pairs are listed.

    Next may come what could before and still can, and what has become adjacent.
    """
    stack, listed, masks, column_masks = held.stack, held.listed, held.masks, held.column_masks
    u, i = stack[s, 0], stack[s, 1]
    used = stack[s - 1, 3] if s > 0 else 0
    stack[s, 2] = used
    _mark(u, _ROW_MEMBER, bits * s, sides[0], masks)
    _mark(i, _COLUMN_MEMBER, bits * s, sides[1], column_masks)
    for c in range(stack[s - 1, 2], stack[s - 1, 3]) if s > 0 else range(0):
        if masks[listed[c, 0]] == column_masks[listed[c, 1]]:
            listed[used, 0], listed[used, 1] = listed[c, 0], listed[c, 1]
            used += 1
    stack[s, 3] = _list_new((u, i), bits * s, root, sides, held, used)
    return stack[s, 3]


@contracted
def _advance(s, limits, sides, held):
    """Write down the next pair to try, of this matching or of the nearest shorter one that has any left, and its weight.

    Returns the place that the pair takes; 0: there is none.
    """
    stack = held.stack
    while s >= 0:
        while stack[s, 2] < stack[s, 3]:
            u, i = held.listed[stack[s, 2], 0], held.listed[stack[s, 2], 1]
            stack[s, 2] += 1
            weight = held.weights[s] * held.kappa[u, i]
            if abs(weight) > limits.floor:
                stack[s + 1, 0], stack[s + 1, 1], held.weights[s + 1] = u, i, weight
                return s + 1
        _mark(stack[s, 0], _ROW_MEMBER, limits.bits * s, sides[0], held.masks)
        _mark(stack[s, 1], _COLUMN_MEMBER, limits.bits * s, sides[1], held.column_masks)
        s -= 1
    return 0


@contracted
def _share(s, amount, stack, given):
    """Give the first s + 1 rows of the matching at hand an amount each."""
    for m in range(s + 1):
        given[stack[m, 0]] += amount


@contracted
def _share_last(s, used, weight, held, given):
    """Give what the matchings by one more pair weigh to all of their rows."""
    total = 0.0
    for c in range(held.stack[s, 2], used):
        u, i = held.listed[c, 0], held.listed[c, 1]
        total += held.kappa[u, i]
        given[u] += weight * held.kappa[u, i]
    _share(s, weight * total, held.stack, given)


@njit(inline="always")  # bundles of arrays are costly to hand over, row by row
def _enumerate(s, budget, root, limits, sides, held, given):
    """Add all connected matchings whose first row node is the root to totals, from the pair stack[s] on.

    Returns the place of the pair before which it stopped because of the budget, or 0 when all are done; and the steps taken.
    The rows stack[s] = (u, i, start, end): the matching at hand has (u, i) as its s-th pair, and listed[start:end] are the
    pairs that may extend its first s + 1 pairs and have not been tried yet; dropping those tried keeps each matching from
    being met twice (the ESU scheme, on pairs of nodes). The masks hold to which members each node is adjacent: a pair may
    join if the masks of its two nodes are equal.
    """
    kappa, listed, stack, totals = held.kappa, held.listed, held.stack, held.totals
    last, steps = len(totals) - 1, 1
    while s < last:
        if steps > budget and s > 0:
            return s, steps
        used = _join(s, root, limits.bits, sides, held)
        steps += 1 + used - stack[s, 2]
        if s == last - 1:  # one more pair completes a matching: nothing follows, so nothing is written down
            total = 0.0
            for c in range(stack[s, 2], used):
                total += kappa[listed[c, 0], listed[c, 1]]
            totals[last] += held.weights[s] * total
            if len(given):
                _share_last(s, used, held.size_weights[last] * held.weights[s], held, given)
            stack[s, 2] = used
        s = _advance(s, limits, sides, held)
        if s == 0:
            break
        totals[s] += held.weights[s]
        if len(given):
            _share(s, held.size_weights[s] * held.weights[s], stack, given)
    return 0, steps


@njit(inline="always")  # bundles of arrays are costly to hand over, row by row
def _sum_pair(v, j, depth, budget, limits, sides, held, given):
    """All matchings that begin with the pair (v, j), from the place ``depth`` on; returns as ``_enumerate``."""
    if depth == 0:
        for s in range(len(held.totals)):
            held.totals[s] = 0.0
        held.stack[0, 0], held.stack[0, 1], held.weights[0] = v, j, held.kappa[v, j]
        held.totals[0] = held.kappa[v, j]
        if len(given):
            given[v] += held.size_weights[0] * held.kappa[v, j]
    return _enumerate(depth, budget, v, limits, sides, held, given)


@contracted
def sum_cliques(state, graphs, tile, limits, held, out):
    """out[graph of row, s, graph of column] += S_(s+1), the sum over connected matchings of s + 1 nodes, s < out.shape[1].

    held.shares, which begin with the rows of the graph state[FIRST], get size_weights[s] times the sum over those that contain
    the row. state[COLUMN] is -1 before a row is begun, state[ROW] and it before a graph is.
    """
    g, v, j, depth, budget = state[GRAPH], state[ROW], state[COLUMN], state[DEPTH], state[BUDGET]
    while g < state[LAST] and budget >= 0:
        first, n = graphs.offsets[g], graphs.offsets[g + 1] - graphs.offsets[g]
        sides = (
            (graphs.indptr[first:], graphs.indices, graphs.codes),
            (tile.indptr, tile.indices, tile.codes),
        )
        if v < 0:
            _fill_kappa(g, state, graphs, tile, limits, held)
            budget -= n * len(tile.columns.graphs)
            v = 0
        while v < n and budget >= 0:
            j = max(j, held.windows[v, 0])
            while j < held.windows[v, 1] and budget >= 0:
                if abs(held.kappa[v, j]) > limits.floor:
                    given = held.shares[first - graphs.offsets[state[FIRST]] :, tile.columns.graphs[j]]
                    depth, steps = _sum_pair(v, j, depth, budget, limits, sides, held, given)
                    budget -= steps
                    if depth > 0:
                        break
                    for s in range(out.shape[1]):
                        out[g, s, tile.columns.graphs[j]] += held.totals[s]
                j += 1
            if j < held.windows[v, 1]:
                break
            v, j = v + 1, -1
        if v < n:
            break
        g, v = g + 1, -1
    state[GRAPH], state[ROW], state[COLUMN], state[DEPTH] = g, v, j, depth
