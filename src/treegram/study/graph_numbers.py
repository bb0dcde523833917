"""Graphs as plain numbers, for models that are no kernels: what nodes and edges are, and one row for each graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs

__all__ = ["Items", "arc_items", "node_items", "standardize", "summarize_graphs"]

_N_BINS = 8  # of the histogram of one number


@dataclass(frozen=True)
class Items:
    """All nodes, or all arcs, of all graphs: the graph that each belongs to, its numbers, and its label."""

    owner: Ints
    numbers: Floats  # (n_items, n_numbers)
    labels: Ints  # all 0 where there are none
    n_labels: int  # 0 where there are none


def node_items(graphs: Graphs) -> Items:
    """Degrees and vectors are the numbers of nodes."""
    numbers = np.column_stack([graphs.degrees.astype(np.float64), *_columns(graphs.attributes)])
    return _items(graphs.graph_ids, numbers, graphs.labels, len(graphs.label_values or ()))


def arc_items(graphs: Graphs) -> Items:
    """Arcs: an undirected edge is two of them."""
    owner = np.repeat(graphs.graph_ids, graphs.degrees)
    numbers = np.column_stack([np.zeros((len(owner), 0)), *_columns(graphs.edge_attributes)])
    return _items(owner, numbers, graphs.edge_labels, len(graphs.edge_label_values or ()))


def _columns(vectors: Floats | None) -> list[Floats]:
    return [] if vectors is None else [np.asarray(vectors, dtype=np.float64)]


def _items(owner: Ints, numbers: Floats, labels: Ints | None, n_labels: int) -> Items:
    known = np.zeros(len(owner), np.int64) if labels is None else labels.astype(np.int64)
    return Items(owner.astype(np.int64), numbers, known, 0 if labels is None else n_labels)


def standardize(numbers: Floats, is_known: np.ndarray) -> Floats:
    """Columns with mean 0 and deviation 1 over the rows that are known; a column that is constant there becomes 0."""
    mean, deviation = numbers[is_known].mean(axis=0), numbers[is_known].std(axis=0)
    is_constant = deviation <= 1e-12 * np.abs(mean)
    return np.where(is_constant, 0.0, (numbers - mean) / np.where(is_constant, 1.0, deviation))


def summarize_graphs(graphs: Graphs, train: Ints) -> Floats:
    """One row for each graph: its size, and for nodes and edges mean and variance of each number and histograms of all.

    Bins and scales are those of the training graphs; columns are standardized.
    """
    nodes, arcs = node_items(graphs), arc_items(graphs)
    is_train = np.isin(np.arange(len(graphs)), train)
    arcs_of = np.bincount(arcs.owner, minlength=len(graphs))
    blocks = [np.column_stack([graphs.sizes, arcs_of]).astype(np.float64)]
    blocks += [_summarize(items, len(graphs), is_train[items.owner]) for items in (nodes, arcs)]
    return standardize(np.hstack(blocks), is_train)


def _summarize(items: Items, n_graphs: int, is_known: np.ndarray) -> Floats:
    n_items = len(items.owner)
    members = sparse.csr_array((np.ones(n_items), (items.owner, np.arange(n_items))), shape=(n_graphs, n_items))
    counts = np.maximum(np.bincount(items.owner, minlength=n_graphs), 1)[:, None]
    means = members @ items.numbers / counts
    variances = members @ (items.numbers - means[items.owner]) ** 2 / counts
    histograms = [_shares(items.owner, _bins(column, is_known), n_graphs, _N_BINS) for column in items.numbers.T]
    if items.n_labels:
        histograms.append(_shares(items.owner, items.labels, n_graphs, items.n_labels))
    return np.hstack([means, variances, *(histogram / counts for histogram in histograms)])


def _bins(column: Floats, is_known: np.ndarray) -> Ints:
    """In which part of the known values each number lies; about equally many lie in each."""
    cuts = np.quantile(column[is_known], np.arange(1, _N_BINS) / _N_BINS) if is_known.any() else np.empty(0)
    return np.searchsorted(cuts, column, side="left")


def _shares(owner: Ints, codes: Ints, n_graphs: int, n_codes: int) -> Floats:
    """How often each graph has each code."""
    found = np.bincount(owner * n_codes + codes, minlength=n_graphs * n_codes)
    return found.reshape(n_graphs, n_codes).astype(np.float64)
