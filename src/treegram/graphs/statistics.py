"""Describe each graph as a whole by a row of numbers, for models on tables and for kernels on columns.

Values are sorted within their graph before they are added up, so that a row has the same bits for any order of the nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import BaseEstimator, TransformerMixin
from treegram._core.jit import jit
from treegram._core.params import Allowed, Checked, Whole, parameters
from treegram._core.types import Array, Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.check import check_fitted_columns

__all__ = ["CodedValues", "GraphStatistics"]

SUMMARIES = ("mean", "std", "min", "q25", "median", "q75", "max")
MAX_DEGREE = 4  # larger degrees have no column of their own
MAX_MEANS = 5  # labels with their own means of attributes
MAX_SOURCES = 500  # nodes of one graph from which distances are measured
STEPS_PER_CALL = 1 << 23  # compiled code cannot be interrupted: this takes a fraction of a second


@parameters
class GraphStatistics(Checked, TransformerMixin, BaseEstimator):
    """Turn each graph into a row of named numbers: size, degrees, distances, labels, vectors.

    Any scikit-learn model can use the table. It says little about which node is where, yet is enough on many data sets:
    compare with it before you trust a graph kernel.

    Parameters
    ----------
    max_labels : int, default=50
        Maximum number of node labels, the most frequent ones, with a column each; all others share one. The same
        applies to edge labels, and to edges by the labels of their ends.

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
    - ``x0_mean`` and so on, as for degrees: the values of each node attribute, by its name if attributes have names;
      ``x0_edge_difference``, the mean absolute difference between the ends of an edge; ``x0_degree_covariance``; and
      ``x0_mean[label=C]``, the mean over the nodes of each of the five most frequent labels;
    - ``edge_label=1``, ``edge=C-1-O`` (the share of the edges with these ends and this label; ``edge=C-O`` without edge labels)
      and ``edge_x0_mean`` and so on, for the attributes of edges.

    Distances, components, cycles, triangles and degrees ignore the direction of edges; if edges have one,
    ``out_degree_*`` and ``in_degree_*`` follow. Values that are undefined without nodes or edges are 0.

    The time is that of sorting each attribute within its graph, plus nodes times edges of each graph for distances. In
    graphs of more than 500 nodes, these are measured from 500 nodes, spread evenly over the range of degrees. The
    fitted graphs determine which labels have columns; labels that they lack count as rare.

    Examples
    --------
    >>> from treegram import Graphs, GraphStatistics
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2), (0, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "C"]])
    >>> table = GraphStatistics().set_output(transform="pandas").fit_transform(graphs)
    >>> table[["n_nodes", "transitivity", "distance_mean", "label=O", "edge=C-O"]].round(2)
       n_nodes  transitivity  distance_mean  label=O  edge=C-O
    0      3.0           1.0            1.0     0.33      0.67
    1      2.0           0.0            1.0     0.00      0.00
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
            Not used, present for API consistency by convention.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        graphs = as_graphs(X)
        self._directed, self._has_nodes, self._has_edges = graphs.directed, graphs.n_nodes > 0, graphs.n_edges > 0
        labels = _most_frequent(_node_labels(graphs), self.max_labels)
        # One node label says nothing about ends.
        ends = _most_frequent(_edge_ends(graphs) if len(labels.values) > 1 else CodedValues(), self.max_labels)
        self._set_values(labels, _most_frequent(_edge_labels(graphs), self.max_labels), ends)
        self._attributes = _names(graphs.n_attributes, graphs.attribute_names, "")
        self._edge_attributes = _names(graphs.n_edge_attributes, graphs.edge_attribute_names, "edge_")
        self._name_columns(graphs[:0])
        return self

    def _set_values(self, labels: CodedValues, edge_labels: CodedValues, edge_ends: CodedValues) -> None:
        """Give the most frequent values their columns."""
        self._values = labels, edge_labels, edge_ends
        self._labels = _Shares("label", labels, self.max_labels)
        self._edge_labels = _Shares("edge_label", edge_labels, self.max_labels)
        self._edge_ends = _Shares("edge", edge_ends, self.max_labels)

    def _name_columns(self, no_graphs: Graphs) -> None:
        self.n_attributes_in_ = len(self._attributes)
        self.feature_names_out_ = [name for names, _ in self._blocks(no_graphs) for name in names]

    def transform(self, X: Any) -> Floats:
        """Compute the table.

        Parameters
        ----------
        X : Graphs or list of graphs
            Training graphs or new ones.

        Returns
        -------
        ndarray of shape (n_graphs, n_columns)
            One row per graph, in the same order; a data frame after ``set_output(transform="pandas")``.
        """
        check_is_fitted(self)
        graphs = as_graphs(X)
        self._check_alike(graphs)
        return np.hstack([block for _, block in self._blocks(graphs)])

    def get_feature_names_out(self, input_features: object = None) -> Array:  # noqa: ARG002
        """Return the names of the columns.

        Parameters
        ----------
        input_features : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        ndarray of str objects
            One name per column.
        """
        check_is_fitted(self)
        return np.array(self.feature_names_out_, dtype=object)

    def _check_alike(self, graphs: Graphs) -> None:
        for field, fitted, prefix, has_both in (
            ("attributes", self._attributes, "", graphs.n_nodes and self._has_nodes),
            ("edge_attributes", self._edge_attributes, "edge_", graphs.n_edges and self._has_edges),
        ):
            names = [name.removeprefix(prefix) for name in fitted]
            if has_both:
                is_named = names != _names(len(names), None, "")
                check_fitted_columns(self, field, graphs, len(names), names if is_named else None)

    def _blocks(self, graphs: Graphs) -> Iterator[tuple[list[str], Floats]]:
        """Yield names and values of consecutive columns."""
        symmetric = join_directions(graphs)
        degrees = np.diff(symmetric.indptr)
        nodes, edges, arcs = graphs.offsets, *_edge_starts(graphs)
        yield _structure(graphs, symmetric)
        yield _distances(graphs, symmetric)
        yield _summarize(["degree"], nodes, degrees[:, None].astype(np.float64))
        shares = _shares(nodes, np.minimum(degrees, MAX_DEGREE + 1), MAX_DEGREE + 2)
        yield [f"degree={d}" for d in range(MAX_DEGREE + 1)], shares[:, :-1]
        if self._directed:
            ins = np.bincount(graphs.indices, minlength=graphs.n_nodes)
            both_ways = np.stack([graphs.degrees, ins], axis=1).astype(np.float64)
            yield _summarize(["out_degree", "in_degree"], nodes, both_ways)
        yield self._labels.shares(nodes, _node_labels(graphs))
        yield from self._attribute_blocks(graphs, degrees)
        yield self._edge_labels.shares(edges, _edge_labels(graphs))
        yield self._edge_ends.shares(edges, _edge_ends(graphs))
        vectors = None if graphs.edge_attributes is None else graphs.edge_attributes[arcs]
        yield _summarize(self._edge_attributes, edges, _rows(vectors, len(arcs), len(self._edge_attributes)))

    def _attribute_blocks(self, graphs: Graphs, degrees: Ints) -> Iterator[tuple[list[str], Floats]]:
        """Yield the columns of node attributes."""
        names, nodes, ids = self._attributes, graphs.offsets, graphs.graph_ids
        vectors = _rows(graphs.attributes, graphs.n_nodes, len(names))
        summaries, table = _summarize(names, nodes, vectors)
        yield summaries, table
        first, second = graphs.edges().T
        differences = np.abs(vectors[first] - vectors[second])
        yield [f"{name}_edge_difference" for name in names], _means(_edge_starts(graphs)[0], differences)
        centered = degrees - _means(nodes, degrees[:, None].astype(np.float64))[ids, 0]
        products = centered[:, None] * (vectors - table[ids, :: len(SUMMARIES)])
        yield [f"{name}_degree_covariance" for name in names], _means(nodes, products)
        labels = _node_labels(graphs)
        for value in self._labels.frequent:
            code = labels.values.index(value) if names and value in labels.values else -1
            labeled = np.flatnonzero(labels.codes == code)
            label = self._labels.names[self._labels.columns[value]]
            yield [f"{name}_mean[{label}]" for name in names], _means(np.searchsorted(labeled, nodes), vectors[labeled])


# -------------------------------------------------------------------- discrete values


class CodedValues(NamedTuple):
    """The discrete values of all nodes or edges, as positions among the distinct ones; empty if there are none."""

    codes: Ints = np.empty(0, np.int64)
    values: Sequence[Hashable] = ()


def _node_labels(graphs: Graphs) -> CodedValues:
    return CodedValues() if graphs.labels is None else CodedValues(graphs.labels, graphs.label_values)


def _edge_labels(graphs: Graphs) -> CodedValues:
    """Return the label of each edge; undirected edges count once."""
    if graphs.edge_labels is None:
        return CodedValues()
    return CodedValues(graphs.edge_labels[graphs._edge_arcs()], graphs.edge_label_values)


def _edge_ends(graphs: Graphs) -> CodedValues:
    """Return the labels of both ends of each edge, with its own in between; ends of undirected edges are sorted."""
    if graphs.labels is None:
        return CodedValues()
    ends = graphs.labels[graphs.edges()]
    first, second = (ends if graphs.directed else np.sort(ends, axis=1)).T
    columns = [CodedValues(first, graphs.label_values), CodedValues(second, graphs.label_values)]
    if graphs.edge_labels is not None:
        columns.insert(1, _edge_labels(graphs))
    shape = tuple(len(column.values) for column in columns)
    joined = np.ravel_multi_index([column.codes for column in columns], shape)
    numbers, codes = np.unique(joined, return_inverse=True)
    rows = zip(*np.unravel_index(numbers, shape), strict=True)
    return CodedValues(codes, [tuple(column.values[i] for i, column in zip(row, columns, strict=True)) for row in rows])


def _edge_starts(graphs: Graphs) -> tuple[Ints, Ints]:
    """Return where the edges of each graph start, and the position of each edge among the arcs."""
    arcs = graphs._edge_arcs()
    return np.searchsorted(arcs, graphs.indptr[graphs.offsets]), arcs


def _most_frequent(coded: CodedValues, n_most: int) -> CodedValues:
    """Return the most frequent values with their codes, and one more to tell that there are others."""
    counts = np.bincount(coded.codes, minlength=len(coded.values))
    used = np.argsort(-counts, kind="stable")[: min(np.count_nonzero(counts), n_most + 1)]
    return CodedValues(used, [coded.values[code] for code in used])


class _Shares:
    """Columns of discrete values: one for each frequent value, and one for all others if there are any."""

    def __init__(self, prefix: str, most_frequent: CodedValues, n_most: int) -> None:
        used = most_frequent.values
        values = [used[i] for i in np.argsort(most_frequent.codes[:n_most])]
        texts = [_text(value) for value in values]
        self.columns = {value: i for i, value in enumerate(values)}
        self.names = [
            f"{prefix}={repr(value) if texts.count(text) > 1 else text}"
            for value, text in zip(values, texts, strict=True)
        ]
        if len(used) > n_most:
            self.names.append(f"{prefix}=(other)")
        self.frequent = list(used[: min(MAX_MEANS, n_most)]) if len(used) > 1 else []

    def shares(self, starts: Ints, coded: CodedValues) -> tuple[list[str], Floats]:
        """Return the names of the columns and their values."""
        columns = np.array([self.columns.get(value, len(self.columns)) for value in coded.values], dtype=np.int64)
        if not len(coded.codes):  # graphs without nodes or edges, or without labels
            return self.names, np.zeros((len(starts) - 1, len(self.names)))
        return self.names, _shares(starts, columns[coded.codes], len(self.columns) + 1)[:, : len(self.names)]


def _text(value: Hashable) -> str:
    return "-".join(map(_text, value)) if isinstance(value, tuple) else str(value)


def _shares(starts: Ints, codes: Ints, n_codes: int) -> Floats:
    """Return the share of each code among the items of each graph; those of graph i are starts[i] .. starts[i + 1] - 1."""
    sizes = np.diff(starts)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.bincount(owners * n_codes + codes, minlength=len(sizes) * n_codes).reshape(len(sizes), n_codes)
    return counts / np.maximum(sizes, 1)[:, None]


# -------------------------------------------------------------------- numbers


def _names(n_columns: int, names: Sequence[str] | None, prefix: str) -> list[str]:
    return [f"{prefix}{name}" for name in names or [f"x{i}" for i in range(n_columns)]]


def _rows(vectors: Floats | None, n_items: int, n_columns: int) -> Floats:
    """Return the vectors with the fitted number of columns, which is 0 if there was nothing to learn it from."""
    return np.zeros((n_items, n_columns)) if vectors is None or not n_items else vectors[:, :n_columns]


def _summarize(names: list[str], starts: Ints, numbers: Floats) -> tuple[list[str], Floats]:
    """Return moments and quantiles of each column over the items of each graph."""
    columns = [f"{name}_{summary}" for name in names for summary in SUMMARIES]
    table = np.zeros((len(starts) - 1, len(names), len(SUMMARIES)))
    for graphs, rows in _sorted_rows(starts, numbers):
        table[graphs] = _row_summaries(rows).transpose(1, 0, 2)
    return columns, table.reshape(len(table), len(columns))


def _means(starts: Ints, numbers: Floats) -> Floats:
    """Return the mean of each column over the items of each graph."""
    table = np.zeros((len(starts) - 1, numbers.shape[1]))
    for graphs, rows in _sorted_rows(starts, numbers):
        table[graphs] = rows.mean(axis=-1).T
    return table


def _sorted_rows(starts: Ints, numbers: Floats) -> Iterator[tuple[Ints, Floats]]:
    """Yield graphs with the same number of items, and the values of each column in each of them, sorted."""
    sizes = np.diff(starts)
    for size in np.unique(sizes[sizes > 0]) if numbers.shape[1] else ():
        graphs = np.flatnonzero(sizes == size)
        yield graphs, np.sort(numbers.T[:, starts[graphs][:, None] + np.arange(size)], axis=-1)


def _row_summaries(rows: Floats) -> Floats:
    """Return the summaries of sorted rows along the last axis."""
    lowest, highest = rows[..., 0], rows[..., -1]
    # Scaled by a power of two, which is exact, so that no square overflows.
    units = np.ldexp(1.0, np.frexp(np.maximum(np.abs(lowest), np.abs(highest)))[1])
    scaled = rows / units[..., None]
    means = np.clip(scaled.mean(axis=-1), scaled[..., 0], scaled[..., -1])  # exact for equal values
    deviations = np.sqrt(((scaled - means[..., None]) ** 2).mean(axis=-1))
    quantiles = [_quantile(rows, level) for level in (0.25, 0.5, 0.75)]
    return np.stack([means * units, deviations * units, lowest, *quantiles, highest], axis=-1)


def _quantile(rows: Floats, level: float) -> Floats:
    """Interpolate between sorted values, as ``np.quantile`` does."""
    place = level * (rows.shape[-1] - 1)
    below = int(place)
    above = min(below + 1, rows.shape[-1] - 1)
    return rows[..., below] * (1 - (place - below)) + rows[..., above] * (place - below)


# -------------------------------------------------------------------- structure


def join_directions(graphs: Graphs) -> sp.csr_array:
    """Return all graphs as one matrix, each edge in both directions."""
    shape = (graphs.n_nodes, graphs.n_nodes)
    arcs = sp.csr_array((np.ones(len(graphs.indices), np.int8), graphs.indices, graphs.indptr), shape=shape)
    return arcs.maximum(arcs.T).tocsr() if graphs.directed else arcs


def count_components(graphs: Graphs, symmetric: sp.csr_array) -> Ints:
    """Count the connected components of each graph."""
    n_components, component = connected_components(symmetric, directed=False)
    firsts = np.unique(component, return_index=True)[1] if n_components else np.empty(0, np.int64)
    return np.bincount(graphs.graph_ids[firsts], minlength=len(graphs))


def _structure(graphs: Graphs, symmetric: sp.csr_array) -> tuple[list[str], Floats]:
    n_graphs, n, ids = len(graphs), graphs.sizes, graphs.graph_ids
    degrees = np.diff(symmetric.indptr)
    m = np.bincount(ids, degrees, minlength=n_graphs) / 2
    components = count_components(graphs, symmetric)
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
    ones = np.ones(np.count_nonzero(is_kept), np.int64)
    arcs = sp.csr_array((ones, (sources[is_kept], ends[is_kept])), shape=symmetric.shape)
    closed = (arcs @ arcs).multiply(arcs).sum(axis=1)
    return np.bincount(graphs.graph_ids, np.asarray(closed).reshape(-1), minlength=len(graphs))


def _distances(graphs: Graphs, symmetric: sp.csr_array) -> tuple[list[str], Floats]:
    """Return the mean, deviation and maximum of the distances between different nodes."""
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
    """Return all nodes, or, for a graph with too many, some that are spread over the range of degrees.

    Ties are broken by the degrees of neighbors and of their neighbors, and only then by the order of the nodes.
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
def sum_distances(offsets, indptr, indices, sources, ids, queue, distance, totals):
    """Add to ``totals`` the number, the sum and the sum of squares of the distances from each source, and their maximum.

    ``distance`` is -1 everywhere before and after.
    """
    for i in range(len(sources)):
        base, total, squares, d = offsets[ids[i]], 0, 0, 0
        queue[0] = sources[i] - base
        distance[queue[0]] = 0
        head, n_seen = 0, 1
        while head < n_seen:
            v = queue[head]
            head += 1
            d = distance[v]
            total += d
            squares += d * d
            for arc in range(indptr[base + v], indptr[base + v + 1]):
                w = indices[arc] - base
                if distance[w] < 0:
                    distance[w] = d + 1
                    queue[n_seen] = w
                    n_seen += 1
        total_row = totals[ids[i]]
        total_row[0] += n_seen - 1
        total_row[1] += total
        total_row[2] += squares
        total_row[3] = max(total_row[3], d)  # that of the last node
        for k in range(n_seen):
            distance[queue[k]] = -1
