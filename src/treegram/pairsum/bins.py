"""Products of histograms: for graphs whose nodes fall into bins, how many pairs of nodes share one.

A node has one bin for its label and one for each column of attributes; two nodes share a bin of a column if both are equal.
All numbers are whole and the sums are exact, so that their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Ints
from treegram.pairsum.loops import bins as loops
from treegram.structure.hashing import number_pairs

__all__ = ["Binned", "bin_counts", "bin_products", "bin_squares"]


ENTRIES_PER_TASK = 1 << 19  # nodes times columns: a fraction of a second, and long enough to be worth a task


@dataclass(frozen=True)
class Binned:
    """The nodes of ``n_graphs`` graphs, in the order of the graphs, and their bins."""

    n_graphs: int
    graph_ids: Ints
    labels: Ints  # (n_nodes,)
    columns: Ints  # (n_columns, n_nodes)


def bin_products(left: Binned, right: Binned | None, *, n_jobs: int | None = None) -> Floats:
    """For each pair of graphs the number of pairs of nodes that share a bin, summed over all columns.

    ``right=None`` means left with itself, which costs half.
    """
    columns = left if right is None else right
    K = np.zeros((left.n_graphs, columns.n_graphs))
    tasks = [(left, right, part) for part in _parts(left, columns)]
    for product in run_tasks(_part_products, tasks, n_jobs=n_jobs, label="shared bins"):
        K += product
    if right is None:
        K += np.triu(K, 1).T
    return K


def bin_squares(nodes: Binned) -> Floats:
    """The same for each graph with itself: the diagonal of :func:`bin_products`."""
    totals = np.zeros(nodes.n_graphs)
    for column in nodes.columns:
        _, _, graphs, counts = _count_bins(nodes.labels, column, nodes.graph_ids)
        totals += np.bincount(graphs, weights=counts * counts, minlength=nodes.n_graphs)
    return totals


def bin_counts(fitted: Binned, new: Binned) -> sp.csr_matrix:
    """How many nodes of each new graph are in each bin of the fitted graphs, shape (n_new, n_bins)."""
    rows, columns, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    n_bins, n_old = 0, len(fitted.labels)
    labels, graph_ids, _ = _joined(fitted, new, slice(0, 0))
    for j in range(len(fitted.columns)):
        bins = np.concatenate([fitted.columns[j], new.columns[j]])
        ids, starts, graphs, numbers = _count_bins(labels, bins, graph_ids)
        n_known = int(ids[:n_old].max(initial=-1)) + 1  # numbered as they appear, and the fitted nodes come first
        of_new = graphs[: starts[n_known]] >= fitted.n_graphs
        rows.append(graphs[: starts[n_known]][of_new] - fitted.n_graphs)
        columns.append(n_bins + np.repeat(np.arange(n_known), np.diff(starts[: n_known + 1]))[of_new])
        counts.append(numbers[: starts[n_known]][of_new])
        n_bins += n_known
    entries = np.concatenate(counts), (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_matrix(entries, shape=(new.n_graphs, n_bins))


def _parts(left: Binned, right: Binned) -> Iterator[slice]:
    """Slices of columns, each a task."""
    n_nodes = max(len(left.labels), len(right.labels), 1)
    step = max(1, ENTRIES_PER_TASK // n_nodes)
    return (slice(first, first + step) for first in range(0, len(left.columns), step))


def _part_products(left: Binned, right: Binned | None, part: slice) -> Floats:
    n_left = 0 if right is None else left.n_graphs
    K = np.zeros((left.n_graphs, left.n_graphs if right is None else right.n_graphs))
    if K.size:
        labels, graph_ids, columns = _joined(left, right, part)
        for column in columns:
            _, *counted = _count_bins(labels, column, graph_ids)
            loops.add_products(*counted, n_left, K)
    return K


def _joined(left: Binned, right: Binned | None, part: slice) -> tuple[Ints, Ints, Ints]:
    if right is None:
        return left.labels, left.graph_ids, left.columns[part]
    return (
        np.concatenate([left.labels, right.labels]),
        np.concatenate([left.graph_ids, left.n_graphs + right.graph_ids]),
        np.concatenate([left.columns[part], right.columns[part]], axis=1),
    )


def _count_bins(labels: Ints, column: Ints, graph_ids: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """Numbers of the pairs (label, bin) in order of appearance, and for each its graphs and their counts, by ``starts``."""
    numbers, firsts = number_pairs(labels.view(np.uint64), column.view(np.uint64))
    starts = np.zeros(len(firsts) + 1, np.int64)
    graphs, counts = np.empty(len(numbers), np.int64), np.empty(len(numbers))
    used = loops.tally(numbers, graph_ids, starts, graphs, counts)
    return numbers, starts, graphs[:used], counts[:used]
