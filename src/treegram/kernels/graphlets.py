"""Graphlets: counts of all small connected subgraphs."""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.jit import inlined, jit, pasted
from treegram._core.parallel import run_tasks
from treegram._core.params import Whole, parameters
from treegram._core.types import Floats, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.structure.features import Features
from treegram.structure.visits import graph_spans

LARGEST = 5  # nodes of a graphlet
MOST_SUBGRAPHS = 1e11  # minutes of enumeration
NODES_PER_TASK = 4096
# The connected graphs of up to 5 nodes, by the sorted degrees of their nodes and the number of triangles.
NAMES: Mapping[tuple[str, int], str] = {
    ("0", 0): "node", ("11", 0): "edge", ("112", 0): "path 3", ("222", 1): "triangle", ("1122", 0): "path 4",
    ("1113", 0): "star 4", ("2222", 0): "cycle 4", ("1223", 1): "paw", ("2233", 2): "diamond", ("3333", 4): "complete 4",
    ("11222", 0): "path 5", ("11123", 0): "fork", ("11114", 0): "star 5", ("22222", 0): "cycle 5", ("12223", 0): "banner",
    ("12223", 1): "lollipop", ("11233", 1): "bull", ("11224", 1): "cricket", ("22233", 0): "complete 2,3",
    ("22233", 1): "house", ("12333", 2): "kite", ("12234", 2): "dart", ("22224", 2): "butterfly", ("13334", 4): "complete 4 with tail",
    ("22334", 3): "gem", ("23333", 2): "house with diagonal", ("22244", 3): "complete 1,1,3", ("33334", 4): "wheel",
    ("23344", 5): "complete 5 without path 3", ("33444", 7): "complete 5 without edge", ("44444", 10): "complete 5",
}  # fmt: skip
SIZES = np.array([len(degrees) for degrees, _ in NAMES])

# The graphs, with neighbors in both directions, and the number of the shape of each subgraph by its size and bits.
NeighborLists = namedtuple("NeighborLists", "offsets indptr indices shapes")
# The subgraph being grown: members, bits of the pairs among the first ones, and for each node bits for the members next to it.
# Candidates for member i + 1 are queue[at[i]] .. queue[ends[i] - 1].
SubgraphScratch = namedtuple("SubgraphScratch", "members bits at ends beside queue")


@parameters
class Graphlets(ExplicitKernel):
    r"""Graphlet kernel: exact counts of all connected subgraphs of at most five nodes, with its explicit features.

    Two graphs are similar when they contain the same small subgraphs equally often:

    .. math:: K(G, G') = \sum_g f_g(G) f_g(G')

    The sum runs over all connected graphs :math:`g` of at most ``max_size`` nodes, up to isomorphism: 31 for five nodes.
    :math:`f_g(G)` is the number of sets of nodes of :math:`G` whose induced subgraph is :math:`g`. Labels, vectors and the
    directions of edges are not used.

    Parameters
    ----------
    max_size : int, default=4
        Number of nodes of the largest subgraphs, from 1 to 5. At 1 only nodes are counted, at 2 also edges.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors, which this kernel does not use.

    See Also
    --------
    CSM : small connected subgraphs with labels, and a kernel on the vectors of all their nodes.

    Notes
    -----
    Every subgraph is visited once (Wernicke's ESU), in a few nanoseconds; there is no sampling. Their number grows with the degrees
    to the power of ``max_size`` - 1. It is forecast from the degrees, and graphs are refused if all of them together would take
    more than minutes.

    References
    ----------
    N. Shervashidze, S. V. N. Vishwanathan, T. H. Petri, K. Mehlhorn, K. M. Borgwardt: Efficient graphlet kernels for large graph
    comparison. International Conference on Artificial Intelligence and Statistics, 2009.
    S. Wernicke: Efficient detection of network motifs. IEEE/ACM Transactions on Computational Biology and Bioinformatics, 2006.

    Examples
    --------
    >>> from treegram import FeatureMap, Graphlets, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 2)]])
    >>> Graphlets(normalize=False).fit_transform(graphs)
    array([[38., 22.],
           [22., 14.]])
    >>> sorted(FeatureMap(Graphlets()).fit(graphs).get_feature_names_out())
    ['edge', 'node', 'path 3', 'paw', 'triangle']
    """

    name = "graphlets"
    _one_pass = ("max_size",)
    _adds_up = True
    _explained_by = "nodes"
    _default_param_grid = {"max_size": [3, 4, 5]}
    _allowed = {"max_size": (Whole(1, LARGEST),)}

    max_size: int = field(default=4, kw_only=False)

    @property
    def _uses_labels(self) -> bool:
        return False

    def _features(self, graphs: Graphs, grid: Grid) -> list[Features]:
        sizes = grid["max_size"]
        counts = _count(graphs, sizes[-1], self.n_jobs, by_node=False)
        return [_columns(counts, low, high) for low, high in pairwise([0, *sizes])]

    def _node_features(self, graphs: Graphs) -> Features:
        """Divide the count of each subgraph evenly among its nodes."""
        return _columns(_count(graphs, self.max_size, self.n_jobs, by_node=True), 0, self.max_size)

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:  # noqa: ARG002
        return list(NAMES.values())[int(features.codes[column])]


def _columns(counts: Floats, low: int, high: int) -> Features:
    """Return the counts of the shapes with low < size <= high that occur."""
    shapes = np.flatnonzero((low < SIZES) & (high >= SIZES) & counts.any(axis=0))
    return Features(sp.csr_matrix(counts[:, shapes]), shapes.astype(np.uint64))


# -------------------------------------------------------------------- counting


def _count(graphs: Graphs, max_size: int, n_jobs: int | None, *, by_node: bool) -> Floats:
    """Count the subgraphs of at most ``max_size`` nodes of each graph; or of each node, which gets an equal part of each."""
    step = graphs._adjacency()
    if graphs.directed:
        step = (step + step.T).sign().tocsr()
    _check_forecast(step, graphs.offsets, max_size)
    arrays = NeighborLists(graphs.offsets, step.indptr.astype(np.int64), step.indices.astype(np.int64), _shapes())
    counts = np.zeros((graphs.n_nodes if by_node else len(graphs), len(NAMES)))
    tasks = []
    for first, last in graph_spans(graphs, NODES_PER_TASK):
        largest = int(graphs.sizes[first:last].max(initial=0))
        scratch = SubgraphScratch(*np.zeros((4, LARGEST), np.int64), *np.zeros((2, largest), np.int64))
        tasks.append((first, last, max_size, by_node, arrays, scratch, counts))
    list(run_tasks(count_subgraphs, tasks, n_jobs=n_jobs, label="graphlets"))
    return counts


def _check_forecast(step: sp.csr_matrix, offsets: Ints, max_size: int) -> None:
    """Raise if enumeration would take too long, by the number of trees of ``max_size`` nodes; each subgraph contains one."""
    degrees = np.diff(step.indptr).astype(float)
    more = np.maximum(degrees - 1, 0)  # a neighbor's other neighbors
    paths = step @ more  # of two edges, from each node
    n_trees = [
        np.ones(len(degrees)), degrees / 2, degrees * more / 2,
        degrees * more * (degrees - 2) / 6 + more * paths / 2,
        degrees * more * (degrees - 2) * (degrees - 3) / 24 + paths * more * (degrees - 2) / 2
        + (paths**2 - step @ more**2) / 2,
    ][max_size - 1]  # fmt: skip
    totals = np.diff(np.append(0.0, np.cumsum(n_trees))[offsets])
    if totals.sum() > MOST_SUBGRAPHS:
        worst = int(totals.argmax())
        raise InvalidGraphError(
            f"Graph {worst} has about {totals[worst]:.1g} connected subgraphs of {max_size} nodes, and all graphs together "
            f"{totals.sum():.1g}: too many to count. Use a smaller max_size, or leave out graphs with nodes of high degree."
        )


@cache
def _shapes() -> Ints:
    """Return the number of each shape in ``NAMES``, by its size and its bits: bit i (i - 1) / 2 + j says whether i is next to j < i."""
    numbers = {key: number for number, key in enumerate(NAMES)}
    pairs = [(j, i) for i in range(LARGEST) for j in range(i)]
    shapes = np.zeros((LARGEST + 1, 1 << len(pairs)), np.int64)
    for size in range(1, LARGEST + 1):
        for bits in range(1 << size * (size - 1) // 2):
            edges = {pair for i, pair in enumerate(pairs) if bits >> i & 1}
            degrees = Counter(node for edge in edges for node in edge)
            n_triangles = sum({(a, b), (a, c), (b, c)} <= edges for a, b, c in combinations(range(size), 3))
            key = "".join(sorted(str(degrees[node]) for node in range(size))), n_triangles
            shapes[size, bits] = numbers.get(key, 0)  # no other shape is connected
    return shapes


# -------------------------------------------------------------------- compiled


@pasted
def _record(size, g, base, by_node, arrays, scratch, counts):
    """Count the subgraph of the first ``size`` members for its graph, or for each of its nodes."""
    shape = arrays.shapes[size, scratch.bits[size - 1]]
    if by_node:
        for i in range(size):
            counts[base + scratch.members[i], shape] += 1.0 / size
    else:
        counts[g, shape] += 1.0


@inlined
def _push(v, size, root, base, arrays, scratch, end):
    """Add a member: mark its neighbors, and queue those that are new and come after the root; return the end of the queue."""
    for arc in range(arrays.indptr[base + v], arrays.indptr[base + v + 1]):
        w = arrays.indices[arc] - base
        if scratch.beside[w] == 0 and w > root:
            scratch.queue[end] = w
            end += 1
        scratch.beside[w] |= 1 << size
    scratch.members[size] = v
    return end


@jit
def count_subgraphs(first, last, max_size, by_node, arrays, scratch, counts):
    """Count the connected subgraphs of the graphs first <= g < last: each is grown from its first node, by candidates from a queue.

    A queued node is a candidate for all later places; each is new at the place where it was queued, so no set of nodes is seen
    twice.
    """
    members, bits, at, ends, beside, queue = scratch
    for g in range(first, last):
        base = arrays.offsets[g]
        for root in range(arrays.offsets[g + 1] - base):
            members[0], bits[0] = root, 0
            _record(1, g, base, by_node, arrays, scratch, counts)
            if max_size == 1:
                continue
            at[0], ends[0], size = 0, _push(root, 0, root, base, arrays, scratch, 0), 1
            while size > 0:
                if at[size - 1] == ends[size - 1]:  # no candidate is left: remove the last member
                    size -= 1
                    v = base + members[size]
                    for arc in range(arrays.indptr[v], arrays.indptr[v + 1]):
                        beside[arrays.indices[arc] - base] &= ~(1 << size)
                    continue
                v = queue[at[size - 1]]
                at[size - 1] += 1
                members[size], bits[size] = v, bits[size - 1] | beside[v] << (size * (size - 1) // 2)
                _record(size + 1, g, base, by_node, arrays, scratch, counts)
                if size + 1 < max_size:
                    ends[size] = _push(v, size, root, base, arrays, scratch, ends[size - 1])
                    at[size] = at[size - 1]
                    size += 1
