"""GraphHopper: nodes are similar when they are at the same positions of shortest paths, and their vectors are close."""

from __future__ import annotations

from collections import namedtuple
from itertools import count, islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import jit
from treegram._core.machine import allocate
from treegram._core.parallel import run_tasks
from treegram._core.params import parameters
from treegram._core.types import Hashes, Ints, Masks
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import NodePairKernel, WeightedFeatures, node_blocks
from treegram.structure.features import Features
from treegram.structure.hashing import GOLDEN, mix_codes
from treegram.structure.visits import (
    DONE,
    GRAPH,
    PAUSED,
    ROOT,
    STEPS_PER_CALL,
    USED,
    graph_spans,
    leave,
    run_loop,
    save,
    start_at,
    visit,
)

NODES_PER_TASK = 4096
LARGEST_COUNT = 1e140  # products of counts up to this can be summed over any number of nodes without overflow

# For one visit: order and distances; paths from the root to each node; paths onward from it, by their number of edges,
# and positions on paths, each as one flat array: as many entries per node as the graph's diameter needs.
PathScratch = namedtuple("PathScratch", "order distance inward onward histogram")
PositionRecords = namedtuple("PositionRecords", "columns counts")


@parameters
class GraphHopper(NodePairKernel):
    r"""Kernel that compares the nodes of equally long shortest paths, position by position.

    Two shortest paths with the same number of nodes are as similar as their nodes, first with first, second with second,
    and so on; two graphs are as similar as all their pairs of shortest paths:

    .. math::

        K(G, G') = \sum_{\pi \in P, \pi' \in P' : |\pi| = |\pi'|} \; \sum_{j=1}^{|\pi|} k(\pi_j, \pi'_j)
                 = \sum_{v \in G, v' \in G'} \langle M_v, M_{v'} \rangle \, k(v, v')

    Here :math:`P` holds all shortest paths of :math:`G`: several between the same two nodes all count, each in both
    directions, and so does each node alone. :math:`M_v[j, l]` is how many paths of :math:`l` nodes have :math:`v` at
    position :math:`j`, and :math:`k(v, v')` is ``node_kernel`` of the two vectors, by default :math:`\exp(-\gamma \|x_v -
    x_{v'}\|^2)`, and 0 for different labels if ``use_labels``.

    Parameters
    ----------
    gamma : float, {"scale", "narrow", "white"} or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes). A word is a rule for the vectors of the fitted nodes: "scale" means 1 / (number of attributes *
        mean variance of an attribute), which suits attributes of any range; "narrow" means eight times that, which suits scaled
        vectors in clusters, and "white" 0.2, which suits whitened vectors; both at most 1 / (squared distance of the nearest
        twentieth of all pairs). Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
    use_labels : bool, default=False
        Whether only nodes with equal labels match. The published results are those without labels; with them, ENZYMES and
        PROTEINS are classified better.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value that was learned for a word; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    ShortestPath : compares the two ends and the length of shortest paths.

    Notes
    -----
    Exact. Computing :math:`M` takes nodes times edges times diameter for each graph; then time is that of one node kernel for
    each pair of nodes, plus their common positions, and memory that of :math:`M`, at most nodes times the square of the
    diameter, and of the result. Where edges have no direction, :math:`M_v[j, l] = M_v[l + 1 - j, l]`, and half of it is
    enough; where they have one, paths follow it. An isolated node is on one path, itself. Without attributes the node
    kernel is 1.

    References
    ----------
    A. Feragen, N. Kasenburg, J. Petersen, M. de Bruijne, K. Borgwardt: Scalable kernels for graphs with continuous
    attributes. Advances in Neural Information Processing Systems, 2013.

    Examples
    --------
    >>> from treegram import GraphHopper, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]]])
    >>> GraphHopper(normalize=False).fit_transform(graphs).round(3)
    array([[ 8.207, 15.047],
           [15.047, 40.358]])
    """

    name = "graphhopper"

    use_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[WeightedFeatures]:  # noqa: ARG002 (one group)
        features, is_pair = hop_features(graphs, node_blocks(self, graphs), n_jobs=self.n_jobs)
        # A column for two positions counts twice.
        return [WeightedFeatures(features.counts, features.codes, is_pair.astype(np.int64), np.array([[1.0], [2.0]]))]


# -------------------------------------------------------------------- positions on shortest paths
#
# A path of b edges has the positions a = 0 to b; a node by itself is a path of no edges. Columns run through the numbers of edges
# b = 0, 1, 2, ... and, for each b, through the positions a = 0, 1, ...: all of them where edges have a direction, otherwise
# (``halved``) those up to the middle of the path.


def hop_features(graphs: Graphs, blocks: Hashes, *, n_jobs: int | None = None) -> tuple[Features, Masks]:
    """Return the positions of all nodes on shortest paths, and a mask of the columns that represent two positions.

    Nodes of different blocks share no column. Where edges have no direction, a position and its mirror image have the same
    counts, and share a column.
    """
    counts = count_hops(graphs, n_jobs=n_jobs)
    n_positions = counts.shape[1]
    distinct, numbers = np.unique(blocks, return_inverse=True)
    # A column for each block and position, under a code that means the same in any collection.
    positions = np.arange(1, n_positions + 1, dtype=np.uint64) * GOLDEN
    codes = mix_codes(distinct[:, None] + positions).ravel()
    order = np.argsort(codes)
    column = np.empty(len(order), np.int64)
    column[order] = np.arange(len(order))
    at = column[np.repeat(numbers, np.diff(counts.indptr)) * n_positions + counts.indices]
    matrix = sp.csr_matrix((counts.data, at, counts.indptr), shape=(len(blocks), len(codes)))
    is_pair = _is_pair(n_positions) if not graphs.directed else np.zeros(n_positions, bool)
    return Features(matrix, codes[order]), np.tile(is_pair, len(distinct))[order]


def _is_pair(n_columns: int) -> Masks:
    """Return a mask of the halved columns that represent two positions: all but the middle of a path, which mirrors itself."""
    pairs = (2 * a != b for b in count() for a in range(b // 2 + 1))
    return np.fromiter(islice(pairs, n_columns), bool, n_columns)


def count_hops(graphs: Graphs, *, n_jobs: int | None = None) -> sp.csr_matrix:
    """Count the positions of all nodes on shortest paths, in one visit from each node: a row per node.

    Columns mean the same for any graphs. Time is nodes times edges times diameter for each graph, memory nodes times the
    square of the diameter.
    """
    numbers = np.zeros(graphs.n_nodes, np.int64)
    tasks = [(graphs, span, numbers) for span in graph_spans(graphs, NODES_PER_TASK)]
    results = list(run_tasks(_count_hops, tasks, n_jobs=n_jobs, label="hops"))
    columns, counts = (np.concatenate(column) for column in zip(*results, strict=True))
    starts = np.concatenate([[0], np.cumsum(numbers)])
    if not counts.max(initial=0.0) < LARGEST_COUNT:  # also if a count is infinite or NaN
        node = int(np.searchsorted(starts, (~(counts < LARGEST_COUNT)).argmax(), side="right")) - 1
        graph = int(np.searchsorted(graphs.offsets, node, side="right")) - 1
        raise InvalidGraphError(
            f"Graph {graph}: more than {LARGEST_COUNT:g} shortest paths lead through its node {node - graphs.offsets[graph]}, "
            "too many for double precision."
        )
    shape = (graphs.n_nodes, int(columns.max(initial=-1)) + 1)
    return sp.csr_matrix((counts, columns, starts), shape=shape)


def _count_hops(graphs: Graphs, span: tuple[int, int], numbers: Ints) -> Any:
    """Return the records of some graphs; fill ``numbers`` with the number of records of each of their nodes."""
    (first, last), halved = span, not graphs.directed
    arrays, sizes = (graphs.offsets, graphs.indptr, graphs.indices), np.diff(graphs.offsets)[first:last]
    largest = int(sizes.max(initial=0))
    order, distance = np.empty(largest, np.int64), np.full(largest, -1, np.int64)
    diameters, state = np.zeros(len(graphs), np.int64), start_at(first)

    def measure(_: None) -> int:
        return int(measure_diameters(arrays, last, order, distance, state, diameters, STEPS_PER_CALL))

    run_loop(measure, state, graphs.offsets, last, "diameters")
    # Paths take nodes times diameter, positions nodes times its square.
    n_columns = np.array([first_column(d + 1, halved) for d in diameters[first:last]], np.float64)
    n_entries = sizes * n_columns
    worst = first + int(np.append(n_entries, 0.0).argmax())
    purpose = f"Graph {worst}: the positions of its nodes on shortest paths"
    scratch = PathScratch(
        order=order,
        distance=distance,
        inward=np.empty(largest),
        onward=allocate(int((sizes * (diameters[first:last] + 1)).max(initial=0)), np.float64, purpose),
        histogram=allocate(int(n_entries.max(initial=0)), np.float64, purpose),
    )
    records, state = PositionRecords(np.empty(1024, np.int32), np.empty(1024)), start_at(first)

    def count_some(records: Any) -> int:
        asked = (halved, last)
        return int(count_positions(arrays, asked, diameters, scratch, state, numbers, records, STEPS_PER_CALL))

    return run_loop(count_some, state, graphs.offsets, last, "positions on shortest paths", records)


# -------------------------------------------------------------------- compiled


@jit
def first_column(b, halved):
    """Return the column of the first position on paths of b edges: the number of columns for all shorter paths."""
    if halved:
        return ((b + 1) // 2) * (b // 2 + 1)
    return b * (b + 1) // 2


@jit
def measure_diameters(graphs, last, order, distance, state, diameters, budget):
    """Set diameters[g] to the largest finite distance between two nodes of graph g. Stops as described in ``structure.visits``."""
    offsets, indptr, indices = graphs
    g, root, steps = state[GRAPH], state[ROOT], 0
    while g < last:
        base, n = offsets[g], offsets[g + 1] - offsets[g]
        while root < n:
            if steps > budget:
                save(state, 0, 0, g, root, 0)
                return PAUSED
            n_visited = visit(root, n, base, indptr, indices, order, distance)
            diameters[g] = max(diameters[g], distance[order[n_visited - 1]])
            leave(n_visited, order, distance)
            steps += n_visited
            root += 1
        g, root = g + 1, 0
    return DONE


@jit
def _count_paths(n_visited, base, indptr, indices, width, scratch):
    """Count the shortest paths of one visit: inward[v] from the root to v, onward[v, k] of k edges from v away from the root."""
    order, distance, inward, onward, _ = scratch
    top = distance[order[n_visited - 1]]
    for i in range(n_visited):
        v = order[i]
        inward[v] = 1.0 if i == 0 else 0.0
        onward[v * width] = 1.0
        for k in range(1, top - distance[v] + 1):
            onward[v * width + k] = 0.0
    for i in range(n_visited):
        v = order[i]
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] == distance[v] + 1:
                inward[w] += inward[v]
    for i in range(n_visited - 1, -1, -1):
        v = order[i]
        for arc in range(indptr[base + v], indptr[base + v + 1]):
            w = indices[arc] - base
            if distance[w] == distance[v] + 1:
                for k in range(top - distance[v]):
                    onward[v * width + k + 1] += onward[w * width + k]


@jit
def _add_positions(n_visited, halved, width, n_columns, scratch):
    """Add to histogram[v, (a, b)] the number of paths of b edges from the root on which v is at position a, its distance."""
    order, distance, inward, onward, histogram = scratch
    top = distance[order[n_visited - 1]]
    for i in range(n_visited):
        v = order[i]
        a = distance[v]
        for b in range(2 * a if halved else a, top + 1):
            histogram[v * n_columns + first_column(b, halved) + a] += inward[v] * onward[v * width + b - a]


@jit
def _write_histogram(n, n_columns, histogram, numbers, used, records):
    """Append the nonzero entries to the records, and clear the histogram; return the number of records."""
    for v in range(n):
        before = used
        for column in range(n_columns):
            i = v * n_columns + column
            if histogram[i] != 0.0:
                records.columns[used], records.counts[used] = column, histogram[i]
                histogram[i] = 0.0
                used += 1
        numbers[v] = used - before
    return used


@jit
def _count_nonzero(n, histogram):
    number = 0
    for i in range(n):
        number += histogram[i] != 0.0
    return number


@jit
def count_positions(graphs, asked, diameters, scratch, state, numbers, records, budget):
    """Count how often each node of the graphs state[GRAPH] .. last - 1 is at each position of a shortest path.

    ``asked`` is (halved, last). ``numbers[v]`` is the number of records of node v; they are sorted by column. Stops as
    described in ``structure.visits``.
    """
    (offsets, indptr, indices), (halved, last) = graphs, asked
    order, distance = scratch.order, scratch.distance
    used, g, root, steps = state[USED], state[GRAPH], state[ROOT], 0
    while g < last:
        base, n, width = offsets[g], offsets[g + 1] - offsets[g], diameters[g] + 1
        n_columns = first_column(width, halved)
        while root < n:
            if steps > budget:
                save(state, used, 0, g, root, 0)
                return PAUSED
            n_visited = visit(root, n, base, indptr, indices, order, distance)
            _count_paths(n_visited, base, indptr, indices, width, scratch)
            _add_positions(n_visited, halved, width, n_columns, scratch)
            leave(n_visited, order, distance)
            steps += n_visited * width
            root += 1
        needed = used + _count_nonzero(n * n_columns, scratch.histogram)
        if needed > len(records.counts):
            save(state, used, 0, g, root, 0)
            return needed
        used = _write_histogram(n, n_columns, scratch.histogram, numbers[base : base + n], used, records)
        steps += n * n_columns
        g, root = g + 1, 0
    save(state, used, 0, g, root, 0)
    return DONE
