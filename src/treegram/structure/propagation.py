"""Propagation: labels and attributes spread along the edges, and the random bins that they fall into.

A node's label is a distribution over labels; with each iteration it becomes the mean of its neighbors' distributions, so that
it describes surroundings one step larger. Locality-sensitive hashing turns such vectors into bins: nearby vectors fall
into the same bin more often than distant ones. Two graphs are then compared by how many of their nodes share a bin.

Random numbers are drawn once (:class:`Draws`), iteration by iteration, so that those of fewer iterations are a prefix; a label's
own draw depends on its value alone, so that labels never seen before also have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.hashing import node_hashes

__all__ = ["METRICS", "Draws", "draw", "hash_values", "label_bins", "label_directions", "propagate", "transition"]

METRICS = ("l1", "l2", "tv", "hellinger")
CAUCHY = {"l1", "tv"}  # projections onto Cauchy vectors preserve the l1 distance, onto normal ones the l2 distance
FEW_LABELS = 64  # up to this many, distributions are stored as dense rows, beyond as sparse ones
FARTHEST_BIN = 2.0**62  # a bin's number fits into an integer; everything beyond is one bin


@dataclass(frozen=True)
class Draws:
    """Random numbers for each iteration: a direction and an offset for labels, and for each column of attributes."""

    label_seeds: Hashes  # (n_iterations + 1,): with a label's hash they give its coordinate
    label_offsets: Floats  # (n_iterations + 1,), as a fraction of the width
    directions: Floats  # (n_iterations + 1, n_columns)
    offsets: Floats  # (n_iterations + 1, n_columns), as a fraction of the width


def draw(rng: np.random.RandomState, iterations: int, n_columns: int, attribute_metric: str) -> Draws:
    """Draw everything for iterations 0 .. ``iterations``; those of fewer iterations are a prefix."""
    rows: list[tuple[Any, ...]] = []
    for _ in range(iterations + 1):
        seed = rng.randint(0, 2**63 - 1, dtype=np.int64)
        offset = rng.uniform()
        cauchy = attribute_metric in CAUCHY
        directions = rng.standard_cauchy(n_columns) if cauchy else rng.standard_normal(n_columns)
        rows.append((seed, offset, directions, rng.uniform(size=n_columns)))
    seeds, label_offsets, all_directions, offsets = zip(*rows, strict=True)
    return Draws(np.array(seeds, np.uint64), np.array(label_offsets), np.array(all_directions), np.array(offsets))


def label_directions(hashes: Hashes, seed: np.uint64, metric: str) -> Floats:
    """Return the coordinates of labels in a random direction, each drawn from a stream given by the seed and the label's hash."""
    streams = (np.random.RandomState(np.random.Philox(key=np.array([seed, h], np.uint64))) for h in hashes)
    coordinates = [s.standard_cauchy() if metric in CAUCHY else s.standard_normal() for s in streams]
    return np.array(coordinates, np.float64)


def hash_values(projected: Floats, offset: Any, width: Any) -> Ints:
    """Return the bin of each projected vector: floor((y + b) / width), where the offset b = ``offset`` * width."""
    bins = np.floor(projected / width + offset)
    return np.clip(bins, -FARTHEST_BIN, FARTHEST_BIN).astype(np.int64)


def transition(graphs: Graphs) -> sp.csr_matrix:
    """Return the mean over neighbors as a matrix; a node without neighbors has a row of zeros."""
    degrees = graphs.degrees
    weights = np.repeat(1.0 / np.maximum(degrees, 1), degrees)
    return sp.csr_matrix((weights, graphs.indices, graphs.indptr), shape=(graphs.n_nodes, graphs.n_nodes))


def propagate(step: sp.csr_matrix, rows: Any, iterations: int) -> Iterator[Any]:
    """Yield the rows, their means over neighbors, the means of these, ...: iterations 0 .. ``iterations``."""
    yield rows
    for _ in range(iterations):
        rows = step @ rows
        yield rows


def label_bins(graphs: Graphs, draws: Draws, *, metric: str, width: float, missing_labels: str) -> Ints:
    """Return the bin of each node's distribution over labels, shape (n_iterations + 1, n_nodes)."""
    hashes, labels = np.unique(node_hashes(graphs, missing_labels), return_inverse=True)
    n = graphs.n_nodes
    rows: Any = sp.csr_matrix((np.ones(n), labels, np.arange(n + 1)), shape=(n, len(hashes)))
    if len(hashes) <= FEW_LABELS:
        rows = rows.toarray()
    bins = np.empty((len(draws.label_seeds), n), np.int64)
    for t, spread in enumerate(propagate(transition(graphs), rows, len(bins) - 1)):
        distributions = np.sqrt(spread) if metric == "hellinger" else spread
        directions = label_directions(hashes, draws.label_seeds[t], metric)
        bins[t] = hash_values(distributions @ directions, draws.label_offsets[t], width)
    return bins
