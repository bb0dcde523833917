"""The hot loops of ``pairsum.matching``: the graphs of some rows against one tile of columns that stays in cache.

Rows come graph by graph. Columns are the nodes of a few graphs, sorted by block and by their place along one direction of
the attribute space, so that the columns near a row are a contiguous window; their graphs are told apart only when sums
are handed out. A tile's node kernel kappa is held for one row graph at a time. No product graph is ever built.
"""

from __future__ import annotations

import numpy as np

from treegram._numba import contracted, jit
from treegram.pairsum.loops.nodes import _place_of, gaussian_row

# Marks of nodes that are matched already. No arc has these bits, and they differ: such a node is like no other node.
_ROW_MEMBER, _COLUMN_MEMBER = np.int64(1) << np.int64(62), np.int64(1) << np.int64(61)
MASK_BITS = 61


@jit
def _walk_triangles(offsets, indptr, indices, starts, triangles):
    """Write all triangles (a < b < c) into ``triangles`` as far as it has room; fills ``starts``, returns their number."""
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


@jit
def list_triangles(offsets, indptr, indices):
    """All triangles (a < b < c) graph after graph: their nodes (n, 3), and where each graph's triangles start."""
    starts = np.zeros(len(offsets), np.int64)
    n_triangles = _walk_triangles(offsets, indptr, indices, starts, np.empty((0, 3), np.int64))
    triangles = np.empty((n_triangles, 3), np.int64)
    _walk_triangles(offsets, indptr, indices, starts, triangles)
    return triangles, starts


@contracted
def _fill_kappa(first, last, rows, columns, given, limits, kappa, windows):
    """kappa[v - first, j] of the rows first .. last - 1 with all columns, and the window of each row outside of which it is 0.

    ``given`` holds the values of these rows if the node kernel is not the Gaussian one, which is computed here, and taken
    as 0 where places are farther apart than ``reach``.
    """
    blocks, vectors, places = rows
    block_starts, column_vectors, column_places = columns
    gamma, reach, threshold = limits
    for v in range(first, last):
        row = kappa[v - first]
        low, high = block_starts[blocks[v]], block_starts[blocks[v] + 1]
        row[:] = 0.0
        if len(given):
            for j in range(low, high):
                row[j] = given[v - first, j]
        else:
            start = low
            low = start + _place_of(places[v] - reach, column_places[start:high])
            high = start + _place_of(places[v] + reach, column_places[start:high])
            gaussian_row(gamma, vectors[v], column_vectors, low, high, row)
        if threshold > 0.0:
            for j in range(low, high):
                if abs(row[j]) <= threshold:
                    row[j] = 0.0
        windows[v - first, 0], windows[v - first, 1] = low, high


@jit
def _largest(offsets, first, last):
    largest = 0
    for g in range(first, last):
        largest = max(largest, offsets[g + 1] - offsets[g])
    return largest


# -------------------------------------------------------------------- closed forms, up to three nodes


@contracted
def _add(source, target):
    for j in range(len(target)):
        target[j] += source[j]


@contracted
def _add_neighbours(source, n_rows, indptr, indices, target):
    """target[v, j] = the sum of source[v] over the neighbours of j, for v < n_rows.

    Four rows at a time: what costs is finding the neighbours. The last row is done again where there are fewer than four.
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


@contracted
def _add_paths(kappa, right, left, both, two, three):
    """What one row adds to the sums of its columns: pairs, and paths of three nodes whose ends may be adjacent."""
    for j in range(len(kappa)):
        k, m, n, w = kappa[j], right[j], left[j], both[j]
        two[j] += k * w
        three[j] += k * w * (k + w) - m * n * (m + n)


@contracted
def _open_column_paths(kappa, left, triangles, three):
    """Take back one row's paths whose ends are adjacent in the columns' graphs: two for each triangle there."""
    for i in range(len(triangles)):
        a, b, c = triangles[i, 0], triangles[i, 1], triangles[i, 2]
        mixed = kappa[b] * left[c] + kappa[c] * left[b]
        three[a] -= 2.0 * (kappa[a] * (left[b] * left[c] - mixed) + left[a] * (mixed - kappa[b] * kappa[c]))


@contracted
def _open_row_paths(ka, kb, kc, ma, mb, mc, three):
    """The same for one triangle of the row's graph; here all columns at once."""
    for j in range(len(three)):
        mixed = kb[j] * mc[j] + kc[j] * mb[j]
        three[j] -= 2.0 * (ka[j] * (mb[j] * mc[j] - mixed) + ma[j] * (mixed - kb[j] * kc[j]))


@contracted
def _add_triangles(ka, kb, kc, triangles, three):
    """One triangle of the row's graph against all of the columns': the permanent of kappa between them, with a weight.

    The six bijections count once as triangles. As paths, each was counted once and taken back twice for each of the three
    nodes that may be in the middle: to make it none, add three. Sums are halved later: 2 (1 + 3) = 8.
    """
    for i in range(len(triangles)):
        x, y, z = triangles[i, 0], triangles[i, 1], triangles[i, 2]
        three[x] += 8.0 * (
            ka[x] * (kb[y] * kc[z] + kb[z] * kc[y])
            + ka[y] * (kb[x] * kc[z] + kb[z] * kc[x])
            + ka[z] * (kb[x] * kc[y] + kb[y] * kc[x])
        )


@contracted
def _sum_rows(first, last, indptr, indices, windows, kappa, right, left, both, column_triangles, two, three):
    """Add what all rows of one graph give to the sums of their columns, its own triangles apart."""
    for v in range(last - first):
        if indptr[first + v] == indptr[first + v + 1]:
            continue
        left[:], both[:] = 0.0, 0.0
        for i in range(indptr[first + v], indptr[first + v + 1]):
            u = indices[i] - first
            low, high = windows[u]
            _add(kappa[u, low:high], left[low:high])
            _add(right[u], both)
        _add_paths(kappa[v], right[v], left, both, two, three)
        _open_column_paths(kappa[v], left, column_triangles, three)


@jit
def _hand_out(sums, factor, column_graphs, totals):
    """totals[graph of j] += factor * sums[j]."""
    for j in range(len(sums)):
        totals[column_graphs[j]] += factor * sums[j]


@contracted
def sum_closed(
    graphs, offsets, indptr, indices, triangles, triangle_starts, rows,
    column_graphs, column_indptr, column_indices, column_triangles, columns, given, limits, out,
):  # fmt: skip
    """out[graph of row, s, graph of column] = S_(s+1), the sum over matchings of s + 1 nodes, s < out.shape[1] <= 3.

    For the row graphs ``graphs[0] .. graphs[1] - 1``. With the node kernel kappa (rows x columns), the adjacency matrices A
    of the row's and B of the column's graph, M = kappa B, N = A kappa, W = A kappa B, all products elementwise:

    - S_1 = sum kappa, S_2 = 1/2 sum kappa W;
    - paths u - v - w, their ends adjacent or not: 1/2 sum (kappa W^2 - N M^2 - M N^2 + W kappa^2);
    - those with ends adjacent in the row's graph: one sum over columns for each of its triangles (a, b, c), of
      kappa_a M_b M_c + ... - kappa_a kappa_b M_c - ...; likewise with N for the columns' triangles;
    - triangles: the permanent of kappa between each two.
    """
    n_columns, max_size = len(column_graphs), out.shape[1]
    largest = _largest(offsets, graphs[0], graphs[1])
    kappa, right = np.empty((largest, n_columns)), np.empty((largest, n_columns))
    windows = np.empty((largest, 2), np.int64)
    left, both = np.empty(n_columns), np.empty(n_columns)
    one, two, three = np.empty(n_columns), np.empty(n_columns), np.empty(n_columns)
    for g in range(graphs[0], graphs[1]):
        first, last = offsets[g], offsets[g + 1]
        given_rows = given[first - offsets[graphs[0]] :]
        _fill_kappa(first, last, rows, columns, given_rows, limits, kappa, windows)
        one[:] = 0.0
        for v in range(last - first):
            low, high = windows[v]
            _add(kappa[v, low:high], one[low:high])
        _hand_out(one, 1.0, column_graphs, out[g, 0])
        if max_size == 1:
            continue
        two[:], three[:] = 0.0, 0.0
        _add_neighbours(kappa, last - first, column_indptr, column_indices, right)
        _sum_rows(first, last, indptr, indices, windows, kappa, right, left, both, column_triangles, two, three)
        _hand_out(two, 0.5, column_graphs, out[g, 1])
        for i in range(triangle_starts[g], triangle_starts[g + 1]):
            a, b, c = triangles[i, 0] - first, triangles[i, 1] - first, triangles[i, 2] - first
            _open_row_paths(kappa[a], kappa[b], kappa[c], right[a], right[b], right[c], three)
            _add_triangles(kappa[a], kappa[b], kappa[c], column_triangles, three)
        if max_size == 3:
            _hand_out(three, 0.5, column_graphs, out[g, 2])


# -------------------------------------------------------------------- enumeration, any number of nodes


@jit
def _mark(v, mark, shift, arcs, masks):
    """Write down that v is matched, at itself and at each neighbour with the kind of their edge; twice: wipe it out."""
    indptr, indices, codes = arcs
    masks[v] ^= mark
    for i in range(indptr[v], indptr[v + 1]):
        masks[indices[i]] ^= codes[i] << shift


@contracted
def _list_new(u, j, shift, root, arcs, column_arcs, masks, column_masks, kappa, listed, used):
    """List the pairs of neighbours of (u, j) that no earlier member is adjacent to, behind those listed already."""
    indptr, indices, codes = arcs
    column_indptr, column_indices, _ = column_arcs
    for x in range(indptr[u], indptr[u + 1]):
        w, alone = indices[x], codes[x] << shift
        if w <= root or masks[w] != alone:
            continue
        for y in range(column_indptr[j], column_indptr[j + 1]):
            i = column_indices[y]
            if column_masks[i] == alone and kappa[w, i] != 0.0:
                listed[used, 0], listed[used, 1] = w, i
                used += 1
    return used


@contracted
def _join(s, u, i, root, bits, arcs, column_arcs, masks, column_masks, kappa, listed, state):
    """Make (u, i) the s-th pair of the matching, and list what may come next; returns how many pairs are listed now.

    Next may come what could before and still can, and what has become adjacent.
    """
    used = state[s - 1, 3] if s > 0 else 0
    state[s, 0], state[s, 1], state[s, 2] = u, i, used
    _mark(u, _ROW_MEMBER, bits * s, arcs, masks)
    _mark(i, _COLUMN_MEMBER, bits * s, column_arcs, column_masks)
    for c in range(state[s - 1, 2], state[s - 1, 3]) if s > 0 else range(0):
        if masks[listed[c, 0]] == column_masks[listed[c, 1]]:
            listed[used, 0], listed[used, 1] = listed[c, 0], listed[c, 1]
            used += 1
    state[s, 3] = _list_new(u, i, bits * s, root, arcs, column_arcs, masks, column_masks, kappa, listed, used)
    return state[s, 3]


@contracted
def _advance(s, bits, floor, arcs, column_arcs, masks, column_masks, kappa, listed, state, weights):
    """The next pair to try, of this matching or of the nearest shorter one that has any left.

    Returns the place that the pair takes, the pair, and the weight of the matching with it; the place 0: there is none.
    """
    while s >= 0:
        while state[s, 2] < state[s, 3]:
            u, i = listed[state[s, 2], 0], listed[state[s, 2], 1]
            state[s, 2] += 1
            weight = weights[s] * kappa[u, i]
            if abs(weight) > floor:
                return s + 1, u, i, weight
        _mark(state[s, 0], _ROW_MEMBER, bits * s, arcs, masks)
        _mark(state[s, 1], _COLUMN_MEMBER, bits * s, column_arcs, column_masks)
        s -= 1
    return 0, 0, 0, 0.0


@contracted
def _enumerate(v, j, bits, floor, arcs, column_arcs, masks, column_masks, kappa, listed, state, weights, totals):
    """Add all connected matchings whose first row node is v, matched with column j, to totals[s]; returns the steps taken.

    The rows state[s] = (u, i, start, end): the matching at hand has (u, i) as its s-th pair, and listed[start:end] are the
    pairs that may extend its first s + 1 pairs and have not been tried yet; dropping those tried keeps each matching from
    being met twice (the ESU scheme, on pairs of nodes). The masks hold to which members each node is adjacent: a pair may
    join if the masks of its two nodes are equal.
    """
    last = len(totals) - 1
    weight, u, i = kappa[v, j], v, j
    steps, s = 1, 0
    totals[0] += weight
    while s < last:
        weights[s] = weight
        used = _join(s, u, i, v, bits, arcs, column_arcs, masks, column_masks, kappa, listed, state)
        steps += 1 + used - state[s, 2]
        if s == last - 1:  # one more pair completes a matching: nothing follows, so nothing is written down
            total = 0.0
            for c in range(state[s, 2], used):
                total += kappa[listed[c, 0], listed[c, 1]]
            totals[last] += weight * total
            state[s, 2] = used
        s, u, i, weight = _advance(
            s, bits, floor, arcs, column_arcs, masks, column_masks, kappa, listed, state, weights
        )  # fmt: skip
        if s == 0:
            break
        totals[s] += weight
    return steps


@contracted
def sum_cliques(
    graphs, start, offsets, arcs, rows, column_graphs, column_arcs, columns, given, limits, bits, floor, budget, out
):  # fmt: skip
    """out[graph of row, s, graph of column] += S_(s+1), the sum over connected matchings of s + 1 nodes, s < out.shape[1].

    For the row graphs graphs[0] .. graphs[1] - 1, from the pair ``start`` = (row, column) on; returns the pair before which it
    stopped because more than ``budget`` steps were taken. An arc's code is the kind of its edge, from 1, below 2^bits;
    matchings that weigh no more than ``floor`` are left out.
    """
    n_columns, max_size = len(column_graphs), out.shape[1]
    largest = _largest(offsets, graphs[0], graphs[1])
    kappa, windows = np.empty((largest, n_columns)), np.empty((largest, 2), np.int64)
    masks, column_masks = np.zeros(largest, np.int64), np.zeros(n_columns, np.int64)
    state, weights, totals = np.empty((max_size, 4), np.int64), np.empty(max_size), np.empty(max_size)
    indptr, indices, codes = arcs
    column_degree = _largest(column_arcs[0], 0, n_columns)
    steps = 0
    for g in range(graphs[0], graphs[1]):
        first, last = offsets[g], offsets[g + 1]
        if start[0] >= last:
            continue
        given_rows = given[first - offsets[graphs[0]] :]
        _fill_kappa(first, last, rows, columns, given_rows, limits, kappa, windows)
        local_arcs = (
            indptr[first : last + 1] - indptr[first],
            indices[indptr[first] : indptr[last]] - first,
            codes[indptr[first] : indptr[last]],
        )
        room = _largest(local_arcs[0], 0, last - first) * column_degree * (max_size * (max_size + 1) // 2)
        listed = np.empty((room, 2), np.int64)
        for v in range(max(start[0] - first, 0), last - first):
            low, high = windows[v]
            for j in range(max(low, start[1]) if first + v == start[0] else low, high):
                if abs(kappa[v, j]) <= floor:
                    continue
                if steps > budget:
                    return first + v, j
                totals[:] = 0.0
                steps += _enumerate(
                    v, j, bits, floor, local_arcs, column_arcs, masks, column_masks, kappa, listed, state, weights, totals
                )  # fmt: skip
                _add(totals, out[g, :, column_graphs[j]])
    return offsets[graphs[1]], 0
