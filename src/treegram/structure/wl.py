"""Weisfeiler-Lehman colors: each node's surroundings, one step farther with each iteration.

A node's first color is its label; each iteration joins its color with the multiset of its neighbors' colors. Colors are
64-bit hashes that depend on labels and edges alone, so they are equal across runs, processes and collections. The multiset is a
sum of mixed colors, so nothing is sorted and no dictionary is shared. Two different colors among m get the same hash with a
probability of about m^2 / 2^65: 3e-8 for a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treegram._core.jit import jit
from treegram._core.machine import allocate
from treegram._core.parallel import run_tasks
from treegram._core.types import Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features, gather
from treegram.structure.hashing import arc_hashes, edge_name, join, mix, mix_codes, node_hashes, node_name
from treegram.structure.visits import graph_spans

NODES_PER_TASK = 1 << 16


@dataclass(frozen=True)
class ColorFeatures(Features):
    """Counts of each color in each row: a node, or a graph."""

    iterations: Ints  # the iteration of each color
    nodes: Ints  # one node of each color


def wl_colors(
    graphs: Graphs,
    iterations: int,
    *,
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Hashes:
    """Return the color of every node after 0, 1, ... iterations, shape (iterations + 1, n_nodes); linear in the edges."""
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    purpose = f"The colors of all nodes after each of {iterations} iterations"
    colors = allocate((iterations + 1, max(graphs.n_nodes, 1)), np.uint64, purpose)[:, : graphs.n_nodes]
    tasks = [(graphs, hashes, *span, colors) for span in graph_spans(graphs, NODES_PER_TASK)]
    list(run_tasks(_fill_colors, tasks, n_jobs=n_jobs, label="colors"))
    return colors


def _fill_colors(graphs: Graphs, hashes: tuple[Hashes, Hashes], first: int, last: int, colors: Hashes) -> None:
    start, stop = int(graphs.offsets[first]), int(graphs.offsets[last])
    colors[0, start:stop] = mix_codes(hashes[0][start:stop])
    for level in range(1, len(colors)):
        refine((graphs.indptr, graphs.indices), hashes[1], level, start, stop, colors)


def color_features(colors: Hashes, offsets: Ints, *, first: int = 0) -> ColorFeatures:
    """Count colors: row i of the result counts the nodes offsets[i] .. offsets[i + 1] - 1, over all iterations of ``colors``.

    ``colors`` has one row for each iteration, starting with ``first``.
    """
    n_rounds, n_nodes = colors.shape
    features, examples = gather(offsets * n_rounds, colors.T.ravel(), np.ones(n_rounds * n_nodes))
    features.counts.sum_duplicates()
    nodes, rounds = np.divmod(examples.astype(np.int64), n_rounds)
    return ColorFeatures(features.counts, features.codes, first + rounds, nodes)


def read_color(graphs: Graphs, node: int, level: int, *, missing_labels: str, use_edge_labels: bool) -> str:
    """Return a color as text: ``C(N,C)`` is a C whose neighbors are an N and a C; after two iterations ``C(C(C,O),N(C))``.

    With edge labels, ``C(1:N)`` is a C joined to an N by an edge labeled 1.
    """
    name = node_name(graphs, node, missing_labels)
    if level == 0:
        return name
    if graphs.indptr[node] == graphs.indptr[node + 1]:
        return name + level * "()"  # no neighbors: one more pair of parentheses in each iteration
    options: dict[str, Any] = {"missing_labels": missing_labels, "use_edge_labels": use_edge_labels}
    neighbors = []
    for arc in range(graphs.indptr[node], graphs.indptr[node + 1]):
        edge = f"{edge_name(graphs, arc)}:" if use_edge_labels else ""
        neighbors.append(edge + read_color(graphs, int(graphs.indices[arc]), level - 1, **options))
    return f"{name}({','.join(sorted(neighbors))})"


# -------------------------------------------------------------------- compiled


@jit
def refine(arcs, arc_hashes, level, first, last, colors):
    """Fill colors[level] (uint64) of the nodes first .. last - 1 from the previous level; arcs to nodes beyond do not count."""
    indptr, indices = arcs
    for v in range(first, last):
        around = np.uint64(0)
        for arc in range(indptr[v], indptr[v + 1]):
            if indices[arc] < last:
                around += mix(colors[level - 1, indices[arc]] + arc_hashes[arc])
        colors[level, v] = join(colors[level - 1, v], around)
