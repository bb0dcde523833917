"""Products of histograms: for graphs whose nodes fall into bins, how many pairs of nodes share one.

A node has one bin for its label and one for each column of attributes; two nodes share a bin of a column if both are equal.
All numbers are whole and the sums are exact, so that their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from treegram._parallel import run_tasks
from treegram._types import Floats, Ints
from treegram.pairsum.loops import bins as loops

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
    for part in _parts(nodes, nodes):
        loops.add_squares(nodes.labels, nodes.columns[part], nodes.graph_ids, totals)
    return totals


def bin_counts(fitted: Binned, new: Binned) -> sp.csr_matrix:
    """How many nodes of each new graph are in each bin of the fitted graphs, shape (n_new, n_bins)."""
    rows, columns, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    n_bins, n_old = 0, len(fitted.labels)
    labels, graph_ids, _ = _joined(fitted, new, slice(0, 0))
    for j in range(len(fitted.columns)):
        bins = np.concatenate([fitted.columns[j], new.columns[j]])
        ids, starts, graphs, numbers = loops.count_column(labels, bins, graph_ids)
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
    if right is None:
        K = np.zeros((left.n_graphs, left.n_graphs))
        loops.add_products(left.labels, left.columns[part], left.graph_ids, 0, K)
        return K
    K = np.zeros((left.n_graphs, right.n_graphs))
    if K.size:
        labels, graph_ids, columns = _joined(left, right, part)
        loops.add_products(labels, columns, graph_ids, left.n_graphs, K)
    return K


def _joined(left: Binned, right: Binned, part: slice) -> tuple[Ints, Ints, Ints]:
    return (
        np.concatenate([left.labels, right.labels]),
        np.concatenate([left.graph_ids, left.n_graphs + right.graph_ids]),
        np.concatenate([left.columns[part], right.columns[part]], axis=1),
    )
