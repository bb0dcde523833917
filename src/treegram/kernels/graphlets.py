"""Graphlets: counts of all small connected subgraphs."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.jit import jit
from treegram._core.parallel import run_tasks
from treegram._core.params import Whole, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.structure.features import Features, gather, order_by_row
from treegram.structure.hashing import (
    arc_hashes,
    edge_name,
    empty_table,
    find,
    has_room,
    join,
    mix,
    node_hashes,
    node_name,
)
from treegram.structure.visits import (
    DONE,
    FIRST,
    GRAPH,
    ITEM,
    PAUSED,
    ROOT,
    STEPS_PER_CALL,
    USED,
    graph_spans,
    run_loop,
    save,
    start_at,
)

__all__ = ["Graphlets"]

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

# The graphs: CSR neighbors in both directions, and, where labels or directions count, arcs as they are with hashes of their labels.
Arrays = namedtuple("Arrays", "offsets indptr indices node_hashes arc_starts arc_ends arc_hashes has_labels has_arcs")
Records = namedtuple("Records", "rows codes values examples table")
# The subgraph being grown: members, bits of the pairs among the first ones, and for each node bits for the members next to it.
# Candidates for member i + 1 are queue[at[i]] .. queue[ends[i] - 1]. Without labels, by size and bits: the code, and the record.
Scratch = namedtuple("Scratch", "members bits at ends beside queue pairs colors codes slots")
N_PAIRS = LARGEST * (LARGEST - 1) // 2


@dataclass(frozen=True)
class GraphletFeatures(Features):
    """Counts of graphlets, with the nodes of one subgraph for each column, -1 beyond its size."""

    examples: Ints  # (n_columns, LARGEST)

    def of_sizes(self, low: int, high: int) -> GraphletFeatures:
        """Return the columns of graphlets with low < size <= high."""
        sizes = (self.examples >= 0).sum(axis=1)
        chosen = (low < sizes) & (sizes <= high)
        return GraphletFeatures(self.kept(chosen).counts, self.codes[chosen], self.examples[chosen])


@parameters
class Graphlets(ExplicitKernel):
    r"""Graphlet kernel: exact counts of all connected subgraphs of at most five nodes, with its explicit features.

    Two graphs are alike when they contain the same small subgraphs equally often:

    .. math:: K(G, G') = \sum_g f_g(G) f_g(G')

    The sum runs over all connected graphs :math:`g` of at most ``max_size`` nodes, up to isomorphism: 31 for five nodes.
    :math:`f_g(G)` is the number of sets of nodes of :math:`G` whose induced subgraph is :math:`g`. Vectors are not used.

    Parameters
    ----------
    max_size : int, default=4
        Number of nodes of the largest subgraphs, from 1 to 5. At 1 only nodes are counted, at 2 also edges.
    use_labels : bool, default=False
        Whether isomorphic subgraphs must agree in the labels of their nodes. As published, labels do not count.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether isomorphic subgraphs must agree in the labels of their edges.
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
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
    CSM : small connected subgraphs with a kernel on the vectors of all their nodes.

    Notes
    -----
    Every subgraph is visited once (Wernicke's ESU), in a few nanoseconds; there is no sampling. Their number grows with the degrees to the power of ``max_size`` - 1. It is forecast from the degrees, and graphs are
    refused where all of them together would take more than minutes. Where edges have a direction, isomorphic subgraphs agree in it,
    and a subgraph is connected if it is without directions.

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
    use_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[GraphletFeatures]:
        sizes = grid["max_size"]
        found = _count(self, graphs, sizes[-1], by_node=False)
        return [found.of_sizes(*span) for span in pairwise([0, *sizes])]

    def _node_features(self, graphs: Graphs) -> GraphletFeatures:
        """Divide the count of each subgraph evenly among its nodes."""
        return _count(self, graphs, self.max_size, by_node=True)

    def _name_feature(self, fitted: Any, column: int) -> str:
        nodes = [int(node) for node in fitted.examples[column] if node >= 0]
        arcs = {(a, b): arc for a in nodes for b in nodes if (arc := _find_arc(self.graphs_, a, b)) >= 0}
        edges = [pair for pair in combinations(nodes, 2) if pair in arcs or pair[::-1] in arcs]
        degrees = {node: sum(node in edge for edge in edges) for node in nodes}
        n_triangles = sum({(a, b), (a, c), (b, c)} <= {*edges} for a, b, c in combinations(nodes, 3))
        shape = NAMES["".join(map(str, sorted(degrees.values()))), n_triangles]
        if not (self.use_labels or self.use_edge_labels or self.graphs_.directed):
            return shape
        labels = [node_name(self.graphs_, node, self.missing_labels) if self.use_labels else "" for node in nodes]
        names = {node: f"{label}#{i}" for i, (node, label) in enumerate(zip(nodes, labels, strict=True), start=1)}
        ends = [pair for pair in arcs if self.graphs_.directed or pair[0] < pair[1]]
        dash = "->" if self.graphs_.directed else "-"
        bonds = [f"{edge_name(self.graphs_, arcs[pair])}:" if self.use_edge_labels else "" for pair in ends]
        drawn = [f"{names[a]}{dash}{bond}{names[b]}" for (a, b), bond in zip(ends, bonds, strict=True)]
        return f"{shape}: {', '.join(drawn or names.values())}"


def _find_arc(graphs: Graphs, source: int, target: int) -> int:
    """Return the position of an arc, or -1."""
    first, last = graphs.indptr[source : source + 2]
    found = np.flatnonzero(graphs.indices[first:last] == target)
    return int(first + found[0]) if len(found) else -1


# -------------------------------------------------------------------- counting


def _count(kernel: Graphlets, graphs: Graphs, max_size: int, *, by_node: bool) -> GraphletFeatures:
    """Count the subgraphs of at most ``max_size`` nodes of each graph; or of each node, which gets an equal part of each."""
    arrays = _arrays(kernel, graphs)
    _check_forecast(arrays, max_size)
    spans = graph_spans(graphs, NODES_PER_TASK)
    tasks = [(arrays, span, max_size, by_node) for span in spans]
    results = list(run_tasks(_count_some, tasks, n_jobs=kernel.n_jobs, label="graphlets"))
    lengths, codes, values, examples = (np.concatenate(column) for column in zip(*results, strict=True))
    features, seen = gather(np.concatenate([[0], np.cumsum(lengths)]), codes, values)
    return GraphletFeatures(features.counts, features.codes, examples[seen])


def _arrays(kernel: Graphlets, graphs: Graphs) -> Any:
    n, arcs = graphs.n_nodes, (graphs.indptr, graphs.indices)
    hashes = node_hashes(graphs, kernel.missing_labels) if kernel.use_labels else np.zeros(n, np.uint64)
    neighbors = arcs
    if graphs.directed:
        matrix = sp.csr_matrix((np.ones(len(arcs[1]), np.int8), arcs[1], arcs[0]), shape=(n, n))
        both = (matrix + matrix.T).tocsr()
        neighbors = (both.indptr.astype(arcs[0].dtype), both.indices.astype(arcs[1].dtype))
    arc_codes = arc_hashes(graphs, use_edge_labels=kernel.use_edge_labels)
    has_arcs = graphs.directed or kernel.use_edge_labels
    return Arrays(graphs.offsets, *neighbors, hashes, *arcs, arc_codes, kernel.use_labels or has_arcs, has_arcs)


def _check_forecast(arrays: Any, max_size: int) -> None:
    """Raise if enumeration is hopeless, by the number of trees of ``max_size`` nodes, of which each subgraph contains one."""
    degrees = np.diff(arrays.indptr).astype(float)
    n, more = len(degrees), np.maximum(degrees - 1, 0)  # a neighbor's other neighbors
    step = sp.csr_matrix((np.ones(len(arrays.indices)), arrays.indices, arrays.indptr), shape=(n, n))
    paths = step @ more  # of two edges, from each node
    n_trees = [
        np.ones(n), degrees / 2, degrees * more / 2,
        degrees * more * (degrees - 2) / 6 + more * paths / 2,
        degrees * more * (degrees - 2) * (degrees - 3) / 24 + paths * more * (degrees - 2) / 2
        + (paths**2 - step @ more**2) / 2,
    ][max_size - 1]  # fmt: skip
    totals = np.add.reduceat(np.append(n_trees, 0.0), arrays.offsets[:-1]) * (np.diff(arrays.offsets) > 0)
    if totals.sum() > MOST_SUBGRAPHS:
        worst = int(totals.argmax())
        raise InvalidGraphError(
            f"Graph {worst} has about {totals[worst]:.1g} connected subgraphs of {max_size} nodes, and all graphs together "
            f"{totals.sum():.1g}: too many to count. Use a smaller max_size, or leave out graphs with nodes of high degree."
        )


def _count_some(
    arrays: Any,
    span: tuple[int, int],
    max_size: int,
    by_node: bool,  # noqa: FBT001 (a task)
) -> tuple[Ints, Hashes, Floats, NDArray[Any]]:
    """Return the lengths of the rows of some graphs, and their codes, values and examples."""
    offsets, state = arrays.offsets[span[0] : span[1] + 1], start_at(span[0])
    largest, n_rows = (
        int(np.diff(offsets).max(initial=0)),
        int(offsets[-1] - offsets[0] if by_node else len(offsets) - 1),
    )
    members, bits, at, ends = np.zeros((4, LARGEST), np.int64)
    beside, queue = np.zeros((2, largest), np.int64)
    pairs, colors = np.zeros((LARGEST, LARGEST), np.uint64), np.zeros((2, LARGEST), np.uint64)
    codes, slots = np.zeros((LARGEST + 1, 1 << N_PAIRS), np.uint64), np.full((LARGEST + 1, 1 << N_PAIRS), -1)
    scratch = Scratch(members, bits, at, ends, beside, queue, pairs, colors, codes, slots)
    room = 16 * n_rows + 64
    records = Records(
        np.empty(room, np.int64),
        np.empty(room, np.uint64),
        np.empty(room),
        np.empty((room, LARGEST), np.int64),
        empty_table(0),
    )

    def count(records: Any) -> int:
        request = (span[0], span[1], max_size, by_node)
        return int(count_subgraphs(arrays, request, scratch, state, records, STEPS_PER_CALL))

    records = run_loop(count, state, arrays.offsets, span[1], "graphlets", records)
    order, row_ends = order_by_row(records.rows, n_rows)
    return np.diff(row_ends, prepend=0), records.codes[order], records.values[order], records.examples[order]


# -------------------------------------------------------------------- compiled


@jit
def _arc_hash(source, target, arrays):
    """Return the hash of an arc's label, or 0 without such an arc."""
    for arc in range(arrays.arc_starts[source], arrays.arc_starts[source + 1]):
        if arrays.arc_ends[arc] == target:
            return arrays.arc_hashes[arc]
    return np.uint64(0)


@jit
def _subgraph_code(size, bits, base, arrays, scratch):
    """Return the code of a subgraph, by Weisfeiler-Lehman colors, which tell all graphs of at most five nodes apart.

    Two colored graphs that they do not tell apart have equal numbers of neighbors within and between colors, and up to five nodes
    leave a single graph for these.
    """
    members, pairs, colors = scratch.members, scratch.pairs, scratch.colors
    for i in range(size):
        colors[0, i] = mix(arrays.node_hashes[base + members[i]] + np.uint64(size))
        for j in range(i):
            v, w, is_edge = base + members[i], base + members[j], bits >> (i * (i - 1) // 2 + j) & 1
            pairs[i, j] = pairs[j, i] = is_edge
            if is_edge and arrays.has_arcs:
                forth, back = _arc_hash(v, w, arrays), _arc_hash(w, v, arrays)
                pairs[i, j], pairs[j, i] = join(forth, back), join(back, forth)
    for level in range(size):
        old, new, total = level % 2, (level + 1) % 2, np.uint64(0)
        for i in range(size):
            around = np.uint64(0)
            for j in range(size):
                if i != j and pairs[i, j]:
                    around += mix(colors[old, j] + pairs[i, j])
            colors[new, i] = join(colors[old, i], around)
            total += mix(colors[new, i])
    return mix(total)


@jit
def _record(size, bits, row, base, by_node, arrays, scratch, first, used, records):
    """Add a subgraph to the records of its graph or of its nodes; return the number of records."""
    members, slots, is_plain = scratch.members, scratch.slots, not arrays.has_labels
    if is_plain and not by_node and slots[size, bits] >= first:
        records.values[slots[size, bits]] += 1.0
        return used
    code = scratch.codes[size, bits]
    if not is_plain or code == 0:
        code = _subgraph_code(size, bits, base, arrays, scratch)
        scratch.codes[size, bits] = code
    for i in range(size if by_node else 1):
        at = find(row + members[i] if by_node else row, code, first, used, records.rows, records.codes, records.table)
        slots[size, bits] = at
        if at == used:
            records.values[used] = 0.0
            for j in range(len(members)):
                records.examples[used, j] = base + members[j] if j < size else -1
            used += 1
        records.values[at] += 1.0 / size if by_node else 1.0
    return used


@jit
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
def count_subgraphs(arrays, request, scratch, state, records, budget):
    """Count the connected subgraphs of some graphs: each is grown from its first node, by candidates in the order of the queue.

    A queued node is a candidate for all later places; each is new at the place where it was queued, so no set of nodes is met twice.
    Stops as ``structure.visits`` describes; state[ITEM] is the number of members.
    """
    first_graph, last_graph, max_size, by_node = request
    used, first, g, root, size = state[USED], state[FIRST], state[GRAPH], state[ROOT], state[ITEM]
    members, bits, at, ends, beside, queue = scratch[:6]
    steps = 0
    while g < last_graph:
        base, n = arrays.offsets[g], arrays.offsets[g + 1] - arrays.offsets[g]
        row = base - arrays.offsets[first_graph] if by_node else g - first_graph
        while root < n:
            n_candidates = ends[size - 1] - at[size - 1] if size > 0 else 1
            needed = used + (n_candidates + 1) * max_size
            is_room = has_room(needed, first, records.rows, records.table)
            if steps > budget or not is_room:
                save(state, used, first, g, root, size)
                return PAUSED if is_room else needed
            steps += n_candidates + 4
            if size == 0:
                members[0], bits[0] = root, 0
                used = _record(1, 0, row, base, by_node, arrays, scratch, first, used, records)
                if max_size == 1:
                    root += 1
                    continue
                at[0], ends[0], size = 0, _push(root, 0, root, base, arrays, scratch, 0), 1
            shift = size * (size - 1) // 2
            while at[size - 1] < ends[size - 1]:
                v = queue[at[size - 1]]
                at[size - 1] += 1
                members[size], bits[size] = v, bits[size - 1] | beside[v] << shift
                used = _record(size + 1, bits[size], row, base, by_node, arrays, scratch, first, used, records)
                if size + 1 < max_size:
                    ends[size] = _push(v, size, root, base, arrays, scratch, ends[size - 1])
                    at[size] = at[size - 1]
                    size += 1
                    break
            else:
                size -= 1
                v = base + members[size]
                for arc in range(arrays.indptr[v], arrays.indptr[v + 1]):
                    beside[arrays.indices[arc] - base] &= ~(1 << size)
                if size == 0:
                    root += 1
        g, root, first = g + 1, 0, used
    save(state, used, first, g, root, 0)
    return DONE
