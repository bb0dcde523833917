"""Inner products of counts, for kernels without a node kernel: of sparse rows of features, and of histograms over bins.

A binned node has one bin for its label and one for each column of attributes; two nodes share a bin of a column if both are
equal. All counts are integers and their sums exact, so that the order of summation does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import jit
from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Ints
from treegram.structure.hashing import number_pairs

DENSE_FRACTION = 0.15  # a feature that this fraction of the rows has is multiplied densely; below, lists are faster
COLUMNS_AT_ONCE, ROWS_PER_CALL = (
    1024,
    1 << 14,
)  # of a product: columns stay in cache, and each call takes well under a second
ENTRIES_PER_TASK = 1 << 19  # nodes times columns of bins: a fraction of a second, and long enough for a task


def sum_rows(rows: sp.csr_matrix, offsets: Ints) -> sp.csr_matrix:
    """Return sums of consecutive rows: row i is the sum of the rows offsets[i] .. offsets[i + 1] - 1."""
    n = rows.shape[0]
    selector = sp.csr_matrix((np.ones(n), np.arange(n), offsets), shape=(len(offsets) - 1, n))
    return (selector @ rows).tocsr()


def feature_products(left: sp.csr_matrix, right: sp.csr_matrix | None, out: Floats | None = None) -> Floats:
    """Return all inner products of the rows of two sparse matrices as a dense array, written to ``out`` if there is one.

    ``right=None`` means left with itself: only the upper half is filled, see ``tiles.complete``.
    """
    columns = left if right is None else right
    out = np.empty((left.shape[0], columns.shape[0])) if out is None else out
    if right is None and not left.has_sorted_indices:
        # Entries (i, j) and (j, i) then add up the same products in the same order.
        left = columns = left.sorted_indices()
    rows = (left.indptr, left.indices, left.data)
    for base in range(0, columns.shape[0], COLUMNS_AT_ONCE):
        by_feature = columns[base : base + COLUMNS_AT_ONCE].T.tocsr()
        is_common = np.diff(by_feature.indptr) > DENSE_FRACTION * by_feature.shape[1]
        slots = np.where(is_common, np.cumsum(is_common) - 1, -1)
        dense = by_feature[is_common].toarray()
        lists = (by_feature.indptr, by_feature.indices.astype(np.uint32), by_feature.data)
        for first in range(0, len(out), ROWS_PER_CALL):
            span = (first, min(first + ROWS_PER_CALL, len(out)))
            multiply_rows(span, rows, slots, dense, lists, base, right is None, out)
    return out


# -------------------------------------------------------------------- bins


@dataclass(frozen=True)
class Binned:
    """The nodes of ``n_graphs`` graphs, in the order of the graphs, and their bins."""

    n_graphs: int
    graph_ids: Ints
    labels: Ints  # (n_nodes,)
    columns: Ints  # (n_columns, n_nodes)


def bin_products(left: Binned, right: Binned | None, *, n_jobs: int | None = None) -> Floats:
    """Return for each pair of graphs the number of pairs of nodes that share a bin, summed over all columns.

    ``right=None`` means left with itself, which costs half.
    """
    columns = left if right is None else right
    K = np.zeros((left.n_graphs, columns.n_graphs))
    step = max(1, ENTRIES_PER_TASK // max(len(left.labels), len(columns.labels), 1))
    tasks = [(left, right, slice(first, first + step)) for first in range(0, len(left.columns), step)]
    for product in run_tasks(_column_products, tasks, n_jobs=n_jobs, label="shared bins"):
        K += product
    if right is None:
        K += np.triu(K, 1).T
    return K


def bin_squares(nodes: Binned) -> Floats:
    """Return the same for each graph with itself: the diagonal of :func:`bin_products`."""
    totals = np.zeros(nodes.n_graphs)
    for column in nodes.columns:
        _, _, graphs, counts = _count_bins(nodes.labels, column, nodes.graph_ids)
        totals += np.bincount(graphs, weights=counts**2, minlength=nodes.n_graphs)
    return totals


def bin_counts(fitted: Binned, new: Binned) -> sp.csr_matrix:
    """Return how many nodes of each new graph are in each bin of the fitted graphs, shape (n_new, n_bins)."""
    labels, graph_ids, columns = _joined(fitted, new, slice(None))
    rows = [sp.csr_matrix((0, new.n_graphs))]
    for column in columns:
        numbers, starts, graphs, counts = _count_bins(labels, column, graph_ids)
        # Bins are numbered in order of appearance, and the fitted nodes come first.
        n_known = int(numbers[: len(fitted.labels)].max(initial=-1)) + 1
        shape = (len(starts) - 1, fitted.n_graphs + new.n_graphs)
        rows.append(sp.csr_matrix((counts, graphs, starts), shape)[:n_known, fitted.n_graphs :])
    return sp.vstack(rows, format="csr").T.tocsr()


def _column_products(left: Binned, right: Binned | None, part: slice) -> Floats:
    n_left = 0 if right is None else left.n_graphs
    K = np.zeros((left.n_graphs, left.n_graphs if right is None else right.n_graphs))
    if K.size:
        labels, graph_ids, columns = _joined(left, right, part)
        for column in columns:
            _, *counted = _count_bins(labels, column, graph_ids)
            add_products(*counted, n_left, K)
    return K


def _joined(left: Binned, right: Binned | None, part: slice) -> tuple[Ints, Ints, Ints]:
    """Return labels, graphs and the chosen columns of the nodes of both sides."""
    if right is None:
        return left.labels, left.graph_ids, left.columns[part]
    return (
        np.concatenate([left.labels, right.labels]),
        np.concatenate([left.graph_ids, left.n_graphs + right.graph_ids]),
        np.concatenate([left.columns[part], right.columns[part]], axis=1),
    )


def _count_bins(labels: Ints, column: Ints, graph_ids: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """Return the bin (label, bin) of each node, and the rows of a sparse matrix: starts, graphs and counts of each bin."""
    numbers, firsts = number_pairs(labels.view(np.uint64), column.view(np.uint64))
    starts = np.zeros(len(firsts) + 1, np.int64)
    graphs, counts = np.empty(len(numbers), np.int64), np.empty(len(numbers))
    used = count_graphs(numbers, graph_ids, starts, graphs, counts)
    return numbers, starts, graphs[:used], counts[:used]


# -------------------------------------------------------------------- compiled


@jit
def multiply_rows(span, rows, slots, dense, lists, base, is_symmetric, out):
    """Set out[i, base + j] to the product of row i of a sparse matrix with row j of another, for all i of a span and all j.

    The rows j with the feature t are dense[slots[t]], or listed if slots[t] < 0. With ``is_symmetric``, rows below all these
    columns' own are 0.
    """
    (indptr, indices, data), (starts, members, values) = rows, lists
    width = dense.shape[1]
    for i in range(span[0], span[1]):
        row = out[i, base : base + width]
        for j in range(width):
            row[j] = 0.0
        if is_symmetric and i >= base + width:
            continue
        for entry in range(indptr[i], indptr[i + 1]):
            t, value = indices[entry], data[entry]
            if slots[t] >= 0:
                others = dense[slots[t]]
                for j in range(width):
                    row[j] += value * others[j]
            else:
                for k in range(starts[t], starts[t + 1]):
                    row[members[k]] += value * values[k]


@jit
def count_graphs(bins, graph_ids, starts, graphs, counts):
    """List the graphs that have each bin, and how often: entries starts[i] .. starts[i + 1] - 1; return their number.

    ``starts`` must be 0. ``graph_ids`` must be sorted: then so are the graphs of each bin.
    """
    n_bins = len(starts) - 1
    for v in range(len(bins)):
        starts[bins[v] + 1] += 1
    for i in range(n_bins):
        starts[i + 1] += starts[i]
    for v in range(len(bins)):  # by bin: starts[i] becomes the end of bin i
        graphs[starts[bins[v]]] = graph_ids[v]
        starts[bins[v]] += 1
    used, begin = 0, 0
    for i in range(n_bins):
        end, starts[i] = starts[i], used
        for entry in range(begin, end):
            if used > starts[i] and graphs[used - 1] == graphs[entry]:
                counts[used - 1] += 1.0
            else:
                graphs[used], counts[used] = graphs[entry], 1.0
                used += 1
        begin = end
    starts[n_bins] = used
    return used


@jit
def add_products(starts, graphs, counts, n_left, K):
    """Add the products of the counts of equal bins to K[g, h].

    Graphs below ``n_left`` are rows, the others columns; ``n_left = 0``: all are both, and only K[g, h], g <= h, is added to.
    """
    for i in range(len(starts) - 1):
        middle = starts[i]
        while n_left > 0 and middle < starts[i + 1] and graphs[middle] < n_left:
            middle += 1
        for a in range(starts[i], middle if n_left > 0 else starts[i + 1]):
            row, count = K[graphs[a]], counts[a]
            for b in range(middle if n_left > 0 else a, starts[i + 1]):
                row[graphs[b] - n_left] += count * counts[b]
