"""Hops: how often each node is at which position of a shortest path, for all shortest paths of its graph.

A path of b edges has the positions a = 0 to b; the node itself is the path of no edge. All shortest paths count, also several
between the same two nodes, and both directions of each. Where edges have a direction, paths follow it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.memory import allocate, require
from treegram._core.parallel import run_tasks
from treegram._core.types import Hashes, Ints
from treegram.graphs import Graphs
from treegram.structure.features import Features
from treegram.structure.loops import hops as loops
from treegram.structure.loops.hashing import GOLDEN, mix
from treegram.structure.loops.visits import DONE
from treegram.structure.visits import STEPS_PER_CALL, graph_spans, run_loop, start_at

__all__ = ["count_hops", "hop_features"]

NODES_PER_TASK = 4096
# Counts up to here have products that can be summed over any number of nodes before they overflow.
LARGEST_COUNT = 1e140


def hop_features(graphs: Graphs, blocks: Hashes, *, n_jobs: int | None = None) -> tuple[Features, NDArray[np.bool_]]:
    """The positions of all nodes on shortest paths, and for each column whether it stands for two positions.

    Nodes of different blocks share no column. Where edges have no direction, a position and the one that mirrors it have the
    same counts, and share a column.
    """
    counts = count_hops(graphs, n_jobs=n_jobs)
    n_positions = counts.shape[1]
    distinct, numbers = np.unique(blocks, return_inverse=True)
    # A column for each block and position, under a code that means the same in any collection.
    positions = np.arange(1, n_positions + 1, dtype=np.uint64) * GOLDEN
    codes = mix.py_func(distinct[:, None] + positions).ravel()
    order = np.argsort(codes)
    column = np.empty(len(order), np.int64)
    column[order] = np.arange(len(order))
    at = column[np.repeat(numbers, np.diff(counts.indptr)) * n_positions + counts.indices]
    matrix = sp.csr_matrix((counts.data, at, counts.indptr), shape=(len(blocks), len(codes)))
    is_pair = _is_pair(n_positions) if not graphs.directed else np.zeros(n_positions, bool)
    return Features(matrix, codes[order]), np.tile(is_pair, len(distinct))[order]


def _is_pair(n_columns: int) -> NDArray[np.bool_]:
    """Whether a column stands for two positions: the middle of a path mirrors itself."""
    pairs = np.zeros(n_columns, bool)
    b, column = 0, 0
    while column < n_columns:
        n_positions = b // 2 + 1
        pairs[column : column + n_positions] = 2 * np.arange(n_positions)[: n_columns - column] != b
        column += n_positions
        b += 1
    return pairs


def count_hops(graphs: Graphs, *, n_jobs: int | None = None) -> sp.csr_matrix:
    """Count the positions of all nodes on shortest paths, in one visit from each node: a row per node.

    Columns mean the same for any graphs: first the paths of no edge, then those of one, and so on; see ``loops.hops``.

    Time is nodes times edges times diameter for each graph, memory nodes times the square of the diameter.
    """
    numbers = np.zeros(graphs.n_nodes, np.int64)
    tasks = [(graphs, span, numbers) for span in graph_spans(graphs, NODES_PER_TASK)]
    parts = list(run_tasks(_count_some, tasks, n_jobs=n_jobs, label="hops"))
    columns, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    starts = np.concatenate([[0], np.cumsum(numbers)])
    if not counts.max(initial=0.0) < LARGEST_COUNT:  # also where a count is no number any more
        node = int(np.searchsorted(starts, (~(counts < LARGEST_COUNT)).argmax(), side="right")) - 1
        graph = int(np.searchsorted(graphs.offsets, node, side="right")) - 1
        raise InvalidGraphError(
            f"Graph {graph}: more than {LARGEST_COUNT:g} shortest paths lead through its node {node - graphs.offsets[graph]}, "
            "too many for double precision."
        )
    shape = (graphs.n_nodes, int(columns.max(initial=-1)) + 1)
    return sp.csr_matrix((counts, columns, starts), shape=shape)


def _fewest_records(diameter: int, *, halved: bool) -> float:
    """How many records a graph has at least: the positions of nodes of one longest path on the stretches of this path."""
    before = np.arange(diameter + 1.0)
    after = diameter - before
    if not halved:
        return float(((before + 1) * (after + 1)).sum())
    short, long = np.minimum(before, after), np.maximum(before, after)
    return float(((short + 1) * (long + 1) - short * (short + 1) / 2).sum())


def _count_some(graphs: Graphs, span: tuple[int, int], numbers: Ints) -> Any:
    """The records of some graphs; fills ``numbers``, how many each of their nodes has."""
    (first, last), halved = span, not graphs.directed
    arrays, sizes = (graphs.offsets, graphs.indptr, graphs.indices), np.diff(graphs.offsets)
    largest = int(sizes[first:last].max(initial=0))
    order, distance = np.empty(largest, np.int64), np.full(largest, -1, np.int64)
    diameters, state = np.zeros(len(graphs), np.int64), start_at(first)
    while loops.measure(arrays, last, order, distance, state, diameters, STEPS_PER_CALL) != DONE:
        pass
    # Paths take nodes times diameter, positions nodes times its square.
    sizes = sizes[first:last]
    n_columns = np.array([loops.first_column(d + 1, halved) for d in diameters[first:last]], np.float64)
    n_entries = sizes * n_columns
    worst = first + int(np.append(n_entries, 0.0).argmax())
    purpose = f"Graph {worst}: the positions of its nodes on shortest paths (nodes x diameter^2)"
    n_records = sum(_fewest_records(int(d), halved=halved) for d in diameters[first:last])
    require(max(8.0 * n_entries.max(initial=0) + 18.0 * n_records, 40.0 * n_records), purpose)
    scratch = loops.Scratch(
        order=order,
        distance=distance,
        inward=np.empty(largest),
        onward=allocate(int((sizes * (diameters[first:last] + 1)).max(initial=0)), np.float64, purpose),
        histogram=allocate(int(n_entries.max(initial=0)), np.float64, purpose),
    )
    records, state = loops.Records(np.empty(1024, np.int32), np.empty(1024)), start_at(first)

    def count(records: Any) -> int:
        asked = (halved, last)
        return int(loops.count_positions(arrays, asked, diameters, scratch, state, numbers, records, STEPS_PER_CALL))

    return run_loop(count, state, records, "the positions of its nodes on shortest paths")
