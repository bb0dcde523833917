"""Describe each graph as a whole by a row of numbers, for models on tables and for kernels on columns.

Values are sorted within their graph before they are added up, so that a row has the same bits for any order of the nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import InvalidGraphError
from treegram._core.jit import jit
from treegram._core.params import Allowed, Checked, Whole, parameters
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs

__all__ = ["GraphStatistics"]

SUMMARIES = ("mean", "std", "min", "q25", "median", "q75", "max")
MAX_DEGREE = 4  # larger degrees have no share of their own
MAX_SOURCES = 500  # nodes of one graph from which distances are measured
STEPS_PER_CALL = 1 << 23  # compiled code cannot be interrupted: a fraction of a second


@parameters
class GraphStatistics(Checked, TransformerMixin, BaseEstimator):
    """Turn each graph into a row of named numbers: size, degrees, labels, vectors, distances.

    Any model of scikit-learn can use the table. It says nothing about which node is where, and on many data sets
    this is enough: compare with it before you trust a graph kernel.

    Parameters
    ----------
    max_labels : int, default=50
        The most frequent node labels, at most this many, have a column each; all others share one. The same for edge labels.

    Attributes
    ----------
    feature_names_out_ : list of str
        The names of the columns.
    n_attributes_in_ : int
        Dimension of the fitted node vectors.

    Notes
    -----
    The columns, in this order:

    - ``n_nodes``, ``n_edges``, ``density`` (edges per pair of nodes), ``n_components``, ``n_cycles`` (edges minus nodes plus
      components: the number of independent cycles) and ``transitivity`` (three times the triangles per pair of edges that
      share a node);
    - ``distance_mean``, ``distance_std`` and ``distance_max``, over all pairs of nodes with a path between them;
    - ``degree_mean``, ``degree_std``, ``degree_min``, ``degree_q25``, ``degree_median``, ``degree_q75``, ``degree_max``, and
      ``degree=0`` to ``degree=4``, the share of the nodes with this degree;
    - ``label=C``: the share of the nodes with this label; ``label=(other)`` pools the rare ones;
    - ``x0_mean`` and so on, as for degrees: the values of each node attribute, by name where attributes have names;
    - ``edge_label=1`` and ``edge_x0_mean``: the same for edges.

    Distances, components, cycles and triangles ignore the direction of edges, and so do degrees; where edges have a direction,
    ``out_degree_*`` and ``in_degree_*`` follow. What a graph without nodes or edges lacks is 0.

    Time is that of sorting each attribute, plus nodes times edges of each graph for distances. In graphs of more than 500 nodes
    these are measured from 500 nodes, spread evenly over the range of degrees. The columns depend on the fitted graphs in one way:
    which labels have a column. Labels that were not seen in ``fit`` count as rare.

    Examples
    --------
    >>> from treegram import Graphs, GraphStatistics
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2), (0, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "C"]])
    >>> table = GraphStatistics().set_output(transform="pandas").fit_transform(graphs)
    >>> table[["n_nodes", "transitivity", "distance_mean", "label=O"]].round(2)
       n_nodes  transitivity  distance_mean  label=O
    0      3.0           1.0            1.0     0.33
    1      2.0           0.0            1.0     0.00
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"max_labels": (Whole(1),)}

    max_labels: int = 50

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn which labels have a column.

        Parameters
        ----------
        X : Graphs or list of graphs
            The training graphs.
        y : ignored
            Present for compatibility with scikit-learn pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        graphs = as_graphs(X)
        self._directed = graphs.directed
        self._labels = _frequent(graphs.labels, graphs.label_values, self.max_labels)
        arcs = graphs._edge_arcs()
        edge_labels = None if graphs.edge_labels is None else graphs.edge_labels[arcs]
        self._edge_labels = _frequent(edge_labels, graphs.edge_label_values, self.max_labels)
        self._attributes = _names(graphs.n_attributes, getattr(graphs, "attribute_names", None), "")
        self._edge_attributes = _names(graphs.n_edge_attributes, getattr(graphs, "edge_attribute_names", None), "edge_")
        self.n_attributes_in_ = graphs.n_attributes
        self.feature_names_out_ = [name for names, _ in self._blocks(graphs[:0]) for name in names]
        return self

    def transform(self, X: Any) -> Floats:
        """Compute the table.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs, n_columns)
            One row per graph, in the same order; a data frame after ``set_output(transform="pandas")``.
        """
        check_is_fitted(self)
        graphs = as_graphs(X)
        self._check_alike(graphs)
        return np.hstack([block for _, block in self._blocks(graphs)])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the columns.

        Parameters
        ----------
        input_features : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        ndarray of str objects
            One name per column.
        """
        check_is_fitted(self)
        return np.array(self.feature_names_out_, dtype=object)

    def _check_alike(self, graphs: Graphs) -> None:
        for n_new, names, what in (
            (graphs.n_attributes, self._attributes, "nodes"),
            (graphs.n_edge_attributes, self._edge_attributes, "edges"),
        ):
            n_items = graphs.n_nodes if what == "nodes" else graphs.n_edges
            if n_items and n_new != len(names):
                raise InvalidGraphError(
                    f"The {what} of the new graphs (X) have {counted(n_new, 'attribute')}, but GraphStatistics was fitted on "
                    f"{what} with {len(names)}. Build them the same way as the training graphs."
                )

    def _blocks(self, graphs: Graphs) -> Iterator[tuple[list[str], Floats]]:
        """Yield names and values of consecutive columns."""
        symmetric = _symmetric(graphs)
        degrees = np.diff(symmetric.indptr).astype(np.float64)
        n_graphs, nodes = len(graphs), graphs.offsets
        yield _structure(graphs, symmetric)
        yield _distances(graphs, symmetric)
        yield _summarize(["degree"], nodes, degrees[:, None])
        shares = _shares(nodes, np.minimum(degrees, MAX_DEGREE + 1).astype(np.int64), MAX_DEGREE + 2)
        yield [f"degree={d}" for d in range(MAX_DEGREE + 1)], shares[:, :-1]
        if self._directed:
            ins = np.bincount(graphs.indices, minlength=graphs.n_nodes)
            yield _summarize(["out_degree", "in_degree"], nodes, np.stack([graphs.degrees, ins], axis=1).astype(float))
        yield _label_shares("label", self._labels, nodes, graphs.labels, graphs.label_values)
        yield _summarize(self._attributes, nodes, _rows(graphs.attributes, graphs.n_nodes, len(self._attributes)))
        arcs = graphs._edge_arcs()
        owners = np.repeat(graphs.graph_ids, graphs.degrees)[arcs]
        edges = np.searchsorted(owners, np.arange(n_graphs + 1))
        codes = None if graphs.edge_labels is None else graphs.edge_labels[arcs]
        yield _label_shares("edge_label", self._edge_labels, edges, codes, graphs.edge_label_values)
        vectors = None if graphs.edge_attributes is None else graphs.edge_attributes[arcs]
        yield _summarize(self._edge_attributes, edges, _rows(vectors, len(arcs), len(self._edge_attributes)))


# -------------------------------------------------------------------- labels and numbers


def _frequent(codes: Ints | None, values: tuple[Hashable, ...], n_most: int) -> tuple[list[Hashable], bool]:
    """Return the most frequent labels in their order, and whether there are others."""
    if codes is None:
        return [], False
    counts = np.bincount(codes, minlength=len(values))
    used = np.flatnonzero(counts)
    chosen = np.sort(used[np.argsort(-counts[used], kind="stable")][:n_most])
    return [values[code] for code in chosen], len(used) > n_most


def _names(n_columns: int, names: Sequence[str] | None, prefix: str) -> list[str]:
    return [f"{prefix}{name}" for name in names or [f"x{i}" for i in range(n_columns)]]


def _rows(vectors: Floats | None, n_items: int, n_columns: int) -> Floats:
    return np.zeros((n_items, n_columns)) if vectors is None else np.asarray(vectors, dtype=np.float64)


def _label_shares(
    what: str, learned: tuple[list[Hashable], bool], starts: Ints, codes: Ints | None, values: tuple[Hashable, ...]
) -> tuple[list[str], Floats]:
    known, has_others = learned
    written = [str(value) for value in known]
    names = [f"{what}={repr(v) if written.count(text) > 1 else text}" for v, text in zip(known, written, strict=True)]
    names += [f"{what}=(other)"] * has_others
    position = {value: i for i, value in enumerate(known)}
    columns = np.array([position.get(value, len(known)) for value in values], dtype=np.int64)
    found = np.zeros(int(starts[-1]), np.int64) if codes is None else columns[codes]
    if codes is None and known:  # graphs without nodes or edges
        found += len(known)
    return names, _shares(starts, found, len(known) + 1)[:, : len(names)]


def _shares(starts: Ints, codes: Ints, n_codes: int) -> Floats:
    """Return the share of each code among the items of each graph; those of graph i are starts[i] .. starts[i + 1] - 1."""
    sizes = np.diff(starts)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.bincount(owners * n_codes + codes, minlength=len(sizes) * n_codes).reshape(len(sizes), n_codes)
    return counts / np.maximum(sizes, 1)[:, None]


def _summarize(names: list[str], starts: Ints, numbers: Floats) -> tuple[list[str], Floats]:
    """Return moments and quantiles of each column over the items of each graph."""
    columns = [f"{name}_{summary}" for name in names for summary in SUMMARIES]
    table = np.zeros((len(starts) - 1, len(columns)))
    sizes = np.diff(starts)
    is_filled = sizes > 0
    sizes, firsts = sizes[is_filled], starts[:-1][is_filled]
    if not len(sizes):
        return columns, table
    owners = np.repeat(np.arange(len(sizes)), sizes)
    for i, column in enumerate(numbers.T):
        values = column[np.lexsort((column, owners))]
        # In units of a power of two, which rounds nothing, so that no square overflows.
        largest = np.maximum(np.abs(values[firsts]), np.abs(values[firsts + sizes - 1]))
        units = np.ldexp(1.0, np.frexp(largest)[1])
        units[largest == 0] = 1.0
        scaled = values / units[owners]
        means = np.add.reduceat(scaled, firsts) / sizes
        means = np.clip(means, scaled[firsts], scaled[firsts + sizes - 1])  # of equal values, exactly their value
        deviations = np.sqrt(np.add.reduceat((scaled - means[owners]) ** 2, firsts) / sizes)
        quantiles = [_quantiles(values, firsts, sizes, level) for level in (0.0, 0.25, 0.5, 0.75, 1.0)]
        found = np.stack([means * units, deviations * units, *quantiles], axis=1)
        table[is_filled, i * len(SUMMARIES) : (i + 1) * len(SUMMARIES)] = found
    return columns, table


def _quantiles(values: Floats, firsts: Ints, sizes: Ints, level: float) -> Floats:
    """Interpolate between sorted values, as ``np.quantile`` does."""
    places = level * (sizes - 1)
    below = places.astype(np.int64)
    low, high = values[firsts + below], values[firsts + np.minimum(below + 1, sizes - 1)]
    weights = places - below
    return low * (1 - weights) + high * weights


# -------------------------------------------------------------------- structure


def _symmetric(graphs: Graphs) -> sp.csr_array:
    """Return all graphs as one matrix, each edge in both directions."""
    shape = (graphs.n_nodes, graphs.n_nodes)
    arcs = sp.csr_array((np.ones(len(graphs.indices), np.int8), graphs.indices, graphs.indptr), shape=shape)
    return arcs.maximum(arcs.T).tocsr() if graphs.directed else arcs


def _structure(graphs: Graphs, symmetric: sp.csr_array) -> tuple[list[str], Floats]:
    n_graphs, n, ids = len(graphs), graphs.sizes, graphs.graph_ids
    degrees = np.diff(symmetric.indptr)
    m = np.bincount(ids, degrees, minlength=n_graphs) / 2
    n_components, component = connected_components(symmetric, directed=False)
    firsts = np.unique(component, return_index=True)[1] if n_components else np.empty(0, np.int64)
    components = np.bincount(ids[firsts], minlength=n_graphs)
    wedges = np.bincount(ids, degrees * (degrees - 1.0) / 2, minlength=n_graphs)
    density = m / np.maximum(n * (n - 1) / 2, 1)
    transitivity = 3 * _triangles(graphs, symmetric) / np.maximum(wedges, 1)
    names = ["n_nodes", "n_edges", "density", "n_components", "n_cycles", "transitivity"]
    return names, np.stack([n, m, density, components, m - n + components, transitivity], axis=1).astype(np.float64)


def _triangles(graphs: Graphs, symmetric: sp.csr_array) -> Ints:
    """Count the triangles of each graph."""
    degrees = np.diff(symmetric.indptr)
    sources = np.repeat(np.arange(graphs.n_nodes), degrees)
    # Each edge leads to the end of higher degree, so that no node has more than sqrt(2 edges) successors.
    ends = symmetric.indices
    is_kept = (degrees[sources] < degrees[ends]) | ((degrees[sources] == degrees[ends]) & (sources < ends))
    starts = np.concatenate([[0], np.cumsum(np.bincount(sources[is_kept], minlength=graphs.n_nodes))])
    marks, found = np.full(graphs.n_nodes, -1, np.int64), np.zeros(graphs.n_nodes, np.int64)
    count_triangles(starts, ends[is_kept].astype(np.int64), marks, found)
    return np.bincount(graphs.graph_ids, found, minlength=len(graphs))


def _distances(graphs: Graphs, symmetric: sp.csr_array) -> tuple[list[str], Floats]:
    """Return mean, deviation and maximum of the distances between different nodes."""
    sources = _sources(graphs, symmetric)
    n_graphs, largest = len(graphs), int(graphs.sizes.max(initial=0))
    totals = np.zeros((n_graphs, 4), np.int64)  # number of pairs, sum and sum of squares of distances, maximum
    queue, distance = np.empty(largest, np.int64), np.full(largest, -1, np.int64)
    arrays = (graphs.offsets, symmetric.indptr.astype(np.int64), symmetric.indices.astype(np.int64))
    ids = graphs.graph_ids[sources]
    costs = np.cumsum((graphs.sizes + np.diff(symmetric.indptr[graphs.offsets]))[ids])
    cuts = np.searchsorted(costs, np.arange(STEPS_PER_CALL, costs.max(initial=0), STEPS_PER_CALL))
    for first, last in pairwise([0, *cuts, len(sources)]):
        sum_distances(*arrays, sources[first:last], ids[first:last], queue, distance, totals)
    n_pairs = np.maximum(totals[:, 0], 1)
    means = totals[:, 1] / n_pairs
    deviations = np.sqrt(np.maximum(totals[:, 2] / n_pairs - means**2, 0.0))
    return ["distance_mean", "distance_std", "distance_max"], np.stack([means, deviations, totals[:, 3]], axis=1)


def _sources(graphs: Graphs, symmetric: sp.csr_array) -> Ints:
    """Return all nodes; of a graph with too many, some that are spread over the range of degrees.

    Among nodes of one degree, those of their neighbors and of the neighbors of these decide; only then the order of the nodes.
    """
    sources = np.arange(graphs.n_nodes)
    is_large = graphs.sizes > MAX_SOURCES
    if not is_large.any():
        return sources
    keys = [np.diff(symmetric.indptr)]
    for _ in range(3):
        keys.append(symmetric.astype(np.int64) @ keys[-1])
    order = np.lexsort((*keys[::-1], graphs.graph_ids))
    places = np.arange(graphs.n_nodes) - graphs.offsets[graphs.graph_ids]
    steps = places * MAX_SOURCES // graphs.sizes[graphs.graph_ids]
    is_first = (places == 0) | (steps != np.roll(steps, 1))
    is_kept = ~is_large[graphs.graph_ids] | is_first
    return np.sort(order[is_kept])


# -------------------------------------------------------------------- compiled


@jit
def count_triangles(starts, ends, marks, found):
    """Count, for each node, the pairs of its successors of which the second is a successor of the first."""
    for u in range(len(found)):
        for arc in range(starts[u], starts[u + 1]):
            marks[ends[arc]] = u
        for arc in range(starts[u], starts[u + 1]):
            v = ends[arc]
            for next_arc in range(starts[v], starts[v + 1]):
                if marks[ends[next_arc]] == u:
                    found[u] += 1


@jit
def sum_distances(offsets, indptr, indices, sources, ids, queue, distance, totals):
    """Add to ``totals`` the number, the sum and the sum of squares of the distances from each source, and their maximum.

    ``distance`` is -1 everywhere before and after.
    """
    for i in range(len(sources)):
        base = offsets[ids[i]]
        queue[0] = sources[i] - base
        distance[queue[0]] = 0
        head, n_seen = 0, 1
        while head < n_seen:
            v = queue[head]
            head += 1
            d = distance[v]
            totals[ids[i], 1] += d
            totals[ids[i], 2] += d * d
            totals[ids[i], 3] = max(totals[ids[i], 3], d)
            for arc in range(indptr[base + v], indptr[base + v + 1]):
                w = indices[arc] - base
                if distance[w] < 0:
                    distance[w] = d + 1
                    queue[n_seen] = w
                    n_seen += 1
        totals[ids[i], 0] += n_seen - 1
        for k in range(n_seen):
            distance[queue[k]] = -1
