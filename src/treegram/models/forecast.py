"""Forecasts of what candidates cost, from sizes that are known before anything is computed.

They are within a factor of about three of the CPU seconds of one thread, which is enough to leave out what is out of proportion: a
candidate may cost a thousand times what all others do together. They depend on the graphs alone, so that choices can be
repeated on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.statistics import MAX_SOURCES
from treegram.graphs.transforms import DropAttributes
from treegram.kernels import GIK, NSPDK, KernelSum, ShortestPath, StatisticsKernel
from treegram.kernels.grid import split_pipeline
from treegram.kernels.node_pairs import NodePairKernel
from treegram.models.search import Candidate
from treegram.structure.hashing import node_hashes

# Seconds, measured on ENZYMES, PROTEINS_full, BZR, AIDS, NCI1, SYNTHETICnew, Synthie and on geometric graphs of 300 to 3,000 nodes.
_PER_NODE = 2e-7  # or edge, whatever the kernel
_PER_PAIR_OF_GRAPHS = 1e-8
_PER_PAIR_OF_NODES = 2e-9  # of equal label, with vectors
_PER_PATHS = 4e-10  # for a node and two ends of a path
_PER_STEP = 4e-9  # of a search from one node
_PER_PAIR_OF_BALLS = 2e-8
# A candidate may take this long, or three times as long as all cheaper ones together.
PATIENCE, PROPORTION = 8.0, 3.0
_PER_NODE_OF_ROWS = 5e-6  # or edge, for the rows of a linear model, and again for each output; measured on molecules
_SHOWN = 10.0  # seconds from which on a forecast is shown


def forecast(kernel: Any, graphs: Graphs) -> float:
    """Return about how many seconds the Gram matrix of the graphs takes; ``kernel`` may be a pipeline that ends in one."""
    steps, final = split_pipeline(kernel)
    if isinstance(final, KernelSum):
        return sum(forecast(part, graphs) for part in final.kernels or ())
    sizes, n_arcs = graphs.sizes.astype(np.float64), np.diff(graphs.indptr[graphs.offsets]).astype(np.float64)
    has_vectors = graphs.n_attributes > 0 and not any(isinstance(step, DropAttributes) for step in steps)
    seconds = _PER_NODE * (sizes + n_arcs).sum() + _PER_PAIR_OF_GRAPHS * len(graphs) ** 2
    if isinstance(final, StatisticsKernel):
        n_sources = 0.0 * sizes if final.columns == "graph_attributes" else np.minimum(sizes, MAX_SOURCES)
        seconds += _PER_STEP * (n_sources * (sizes + n_arcs)).sum()
    if isinstance(final, ShortestPath):
        seconds += _PER_STEP * (sizes * (sizes + n_arcs)).sum()
        if has_vectors:
            seconds += _PER_PATHS * _share_of_equal_labels(final, graphs) * (sizes**2).sum() * sizes.sum()
    if isinstance(final, NodePairKernel) and has_vectors:
        seconds += _PER_PAIR_OF_NODES * _share_of_equal_labels(final, graphs) * sizes.sum() ** 2 / 2
    if isinstance(final, GIK | NSPDK):
        seconds += _PER_PAIR_OF_BALLS * _n_near_nodes(sizes, n_arcs, final.radius + final.distance)
    return float(seconds)


def forecast_rows(sample: Graphs, n_graphs: int, n_outputs: int) -> float:
    """Return about how many seconds a linear model on rows of graphs like those of the sample takes."""
    n_each = (sample.n_nodes + len(sample.indices)) / max(len(sample), 1)
    return _PER_NODE_OF_ROWS * n_graphs * n_each * (1 + n_outputs)


def in_words(seconds: float) -> str:
    """Return a forecast for the label of a progress bar; nothing if it is short."""
    return f", about {seconds:,.0f} s" if seconds > _SHOWN else ""


def _share_of_equal_labels(kernel: Any, graphs: Graphs) -> float:
    """Return the share of the pairs of nodes that have equal labels."""
    if not getattr(kernel, "use_labels", True) or not graphs.n_nodes:
        return 1.0
    counts = np.unique(node_hashes(graphs, kernel.missing_labels), return_counts=True)[1]
    return float(((counts / graphs.n_nodes) ** 2).sum())


def _n_near_nodes(sizes: Floats, n_arcs: Floats, n_steps: int) -> float:
    """Return about how many pairs of nodes of a graph are at most this far apart."""
    degrees = n_arcs / np.maximum(sizes, 1)
    n_near = np.minimum(sum(degrees**step for step in range(n_steps + 1)), sizes)
    return float((sizes * n_near).sum())


def out_of_proportion(candidates: Sequence[Candidate], graphs: Graphs) -> dict[int, str]:
    """Return the positions of candidates that would take far longer than all cheaper ones together, each with its forecast."""
    seconds = np.array([forecast(candidate.kernel, graphs) for candidate in candidates])
    notes: dict[int, str] = {}
    total = 0.0
    for i in np.argsort(seconds, kind="stable").tolist():
        if seconds[i] > max(PATIENCE, PROPORTION * total) and total > 0:
            notes[i] = (
                f"it would take about {seconds[i]:.0f} s on {len(graphs):,} graphs, and all cheaper candidates together {total:.0f} s"
            )
        else:
            total += seconds[i]
    return notes
