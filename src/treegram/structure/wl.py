"""Weisfeiler-Lehman colours: what each node sees of its surroundings, one step farther with each iteration.

A node's first colour is its label; each iteration joins its colour with the multiset of its neighbours' colours. Colours are
64-bit hashes that depend on labels and edges alone, so they are equal across runs, processes and collections; two different
ones among m are mistaken for each other with a probability of about m^2 / 2^65: 3e-8 for a million.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treegram._memory import allocate
from treegram._parallel import run_tasks
from treegram._types import Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features, gather
from treegram.structure.labels import arc_hashes, edge_name, node_hashes, node_name
from treegram.structure.loops import wl as loops
from treegram.structure.visits import graph_spans

__all__ = ["ColourFeatures", "colour_features", "read_colour", "wl_colours"]


NODES_PER_TASK = 1 << 16


@dataclass(frozen=True)
class ColourFeatures(Features):
    """How often each colour is in each row: a node, or a graph."""

    iterations: Ints  # that each colour belongs to
    nodes: Ints  # one node that has it


def wl_colours(
    graphs: Graphs,
    iterations: int,
    *,
    missing_labels: str = "degree",
    use_edge_labels: bool = False,
    n_jobs: int | None = None,
) -> Hashes:
    """The colour of every node after 0, 1, ... iterations, shape (iterations + 1, n_nodes); linear in the edges."""
    hashes = (node_hashes(graphs, missing_labels), arc_hashes(graphs, use_edge_labels=use_edge_labels))
    purpose = f"The colours of all nodes after each of {iterations} iterations"
    colours = allocate((iterations + 1, max(graphs.n_nodes, 1)), np.uint64, purpose)[:, : graphs.n_nodes]
    tasks = [(graphs, hashes, *span, colours) for span in graph_spans(graphs, NODES_PER_TASK)]
    for _ in run_tasks(_colour_some, tasks, n_jobs=n_jobs, label="colours"):
        pass
    return colours


def _colour_some(graphs: Graphs, hashes: tuple[Hashes, Hashes], first: int, last: int, colours: Hashes) -> None:
    start, stop = int(graphs.offsets[first]), int(graphs.offsets[last])
    for level in range(len(colours)):
        loops.refine((graphs.indptr, graphs.indices), hashes, level, start, stop, colours)


def colour_features(colours: Hashes, offsets: Ints, *, first: int = 0) -> ColourFeatures:
    """Count colours: row i of the result is the nodes offsets[i] to offsets[i + 1] - 1, over all iterations given.

    ``colours`` has one row for each iteration, of which ``first`` is the first.
    """
    n_rounds, n_nodes = colours.shape
    features, seen = gather(offsets * n_rounds, colours.T.ravel(), np.ones(n_rounds * n_nodes))
    features.counts.sum_duplicates()
    nodes, rounds = np.divmod(seen.astype(np.int64), n_rounds)
    return ColourFeatures(features.counts, features.codes, first + rounds, nodes)


def read_colour(graphs: Graphs, node: int, level: int, *, missing_labels: str, use_edge_labels: bool) -> str:
    """A colour in words: ``C(N,C)`` is a C whose neighbours are an N and a C; after two iterations ``C(C(C,O),N(C))``.

    With edge labels, ``C(1:N)`` is a C joined to an N by an edge labelled 1.
    """
    name = node_name(graphs, node, missing_labels)
    if level == 0:
        return name
    if graphs.indptr[node] == graphs.indptr[node + 1]:
        return name + level * "()"  # nobody around it, once more in each iteration
    around = []
    for arc in range(graphs.indptr[node], graphs.indptr[node + 1]):
        edge = f"{edge_name(graphs, arc)}:" if use_edge_labels else ""
        neighbour = int(graphs.indices[arc])
        around.append(
            edge
            + read_colour(graphs, neighbour, level - 1, missing_labels=missing_labels, use_edge_labels=use_edge_labels)
        )
    return f"{name}({','.join(sorted(around))})"
