"""Transformers from graphs to graphs, for pipelines that end in a kernel.

They change node attributes or labels, or turn edge attributes into edge labels; everything else passes through unchanged. Parameters
are learned in ``fit`` only, so nothing leaks from test graphs in cross-validation. ``TRANSFORMATIONS`` maps the names that
study files use to the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import BaseEstimator, TransformerMixin
from treegram._core.params import LIST, Allowed, Checked, Number, Whole, Words, parameters
from treegram._core.text import suggest
from treegram._core.types import Floats, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.check import Finder, LabelValues, check_fitted_columns, encode_labels

__all__ = [
    "TRANSFORMATIONS",
    "BinEdgeAttributes",
    "CentroidDistance",
    "DropAttributes",
    "GraphTransformer",
    "NeighborMeans",
    "ScaleAttributes",
    "SelectLabels",
]

# The interquartile range is a usable scale if the middle 90 % of the values is at most this many times as wide.
MAX_TAIL_RATIO = 5.0
_LEAST_VARIANCE = 1e-10  # of a principal component, relative to the largest: below this, it is rounding error


class GraphTransformer(Checked, TransformerMixin, BaseEstimator):
    """Base class: graphs in, graphs out. A subclass that learns from data overrides ``_learn``."""

    _learned: ClassVar[str | None] = None  # an attribute that exists after fit, in transformers that learn

    @property
    def learns_from_data(self) -> bool:
        """Return whether the result depends on the fitted graphs, so that each fold needs its own fit."""
        return self._learned is not None

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn from the graphs, if the transformer learns anything.

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
        self._learn(as_graphs(X))
        return self

    def transform(self, X: Any) -> Graphs:
        """Transform the graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs to transform.

        Returns
        -------
        Graphs
            The transformed graphs, in the same order.
        """
        check_is_fitted(self)
        self._check_parameters()
        return self._change(as_graphs(X))

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned is None or hasattr(self, self._learned)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.learns_from_data
        return tags

    def _learn(self, graphs: Graphs) -> None:
        """Set the learned attributes."""

    def _change(self, graphs: Graphs) -> Graphs:
        """Return the transformed graphs."""
        raise NotImplementedError


class Source(GraphTransformer):
    """Base class: molecules, files or tables in, graphs out, and nothing is learned."""

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Check the parameters; nothing is learned.

        Parameters
        ----------
        X : ignored
            The data that ``transform`` turns into graphs.
        y : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self
            The transformer.
        """
        self._check_parameters()
        return self


AnySource = TypeVar("AnySource", bound=Source)


def make_source(source_class: type[AnySource], options: dict[str, Any], owner: str) -> AnySource:
    """Return a transformer with checked parameters; ``owner`` is the function that an error names."""
    names = list(source_class._allowed)
    for name in options:
        if name not in names:
            hint = suggest(name, names) or f"; it takes {', '.join(names)}."
            raise TypeError(f"{owner} got an unexpected keyword argument {name!r}{hint}")
    source = source_class(**options)
    source._check_parameters()
    return source


# -------------------------------------------------------------------- node attributes


@parameters
class ScaleAttributes(GraphTransformer):
    """Scale each attribute by its distribution over all nodes of the fitted graphs.

    The default k_A has a single width for all attributes, so an attribute with a wide range or a few outliers would
    dominate the others.

    Parameters
    ----------
    method : {"standard", "robust", "whiten"}, default="standard"
        "standard": subtract the mean and divide by the standard deviation. "robust": subtract the median and divide by the
        interquartile range, which ignores outliers. For an attribute that is nearly constant, the interquartile range
        is tiny and says nothing about the remaining values. The standard deviation is used instead if the interquartile
        range is 0, or if the range of the middle 90 % of the values is more than 5 times as wide (2.4 times for a
        normal distribution, 3.4 times for a log-normal one). Constant attributes are not divided. "whiten": as
        "standard", then divide each principal component by its standard deviation and rotate back, so that correlated
        attributes do not count several times. Components without variance, due to constant or linearly dependent
        attributes, become 0.

    Attributes
    ----------
    center_ : ndarray of shape (n_attributes,)
        The values that are subtracted.
    scale_ : ndarray of shape (n_attributes,)
        The divisors; never 0.
    whitening_ : ndarray of shape (n_attributes, n_attributes), or None
        For "whiten": the symmetric matrix that scaled vectors are multiplied by.
    n_attributes_in_ : int
        Dimension of the fitted vectors; 0 if there were no nodes, in which case ``transform`` changes nothing.

    Examples
    --------
    >>> from treegram import Graphs, ScaleAttributes
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[1], [2]], [[3], [4], [9]]])
    >>> ScaleAttributes("robust").fit_transform(graphs).attributes.ravel()
    array([-1. , -0.5,  0. ,  0.5,  3. ])
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"method": (Words("standard", "robust", "whiten"),)}
    _learned: ClassVar[str | None] = "scale_"

    method: str = field(default="standard", kw_only=False)

    def _learn(self, graphs: Graphs) -> None:
        vectors = _vectors(graphs, self)
        self.n_attributes_in_ = vectors.shape[1] if len(vectors) else 0
        self._names = _listed(graphs.attribute_names)
        # Relative to the largest value, so that squares do not overflow.
        peaks = np.abs(vectors).max(axis=0, initial=0.0)
        peaks[peaks == 0] = 1.0
        centers, scales = np.zeros(vectors.shape[1]), np.ones(vectors.shape[1])
        if len(vectors):
            measure = _robust if self.method == "robust" else _standard
            centers, scales = measure(vectors / peaks)
        self.center_ = centers * peaks
        self.scale_ = scales * peaks
        self.scale_[self.scale_ == 0] = 1.0  # a constant attribute
        self.whitening_ = _whitening((vectors - self.center_) / self.scale_) if self.method == "whiten" else None

    def _change(self, graphs: Graphs) -> Graphs:
        vectors = _vectors(graphs, self)
        if not len(vectors) or not self.n_attributes_in_:
            return graphs
        check_fitted_columns(self, "attributes", graphs, self.n_attributes_in_, self._names)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (vectors - self.center_) / self.scale_
            if self.whitening_ is not None:
                scaled = scaled @ self.whitening_
            return _with_vectors(graphs, scaled, self, graphs.attribute_names)


class CentroidDistance(GraphTransformer):
    """Replace each node's vector by its distance to the mean vector of the graph.

    For coordinates, this distance does not change when a molecule is rotated, mirrored or moved.

    Examples
    --------
    >>> from treegram import CentroidDistance, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1)], []], attributes=[[[1.0, 2.0], [7.0, 10.0]], [[5.0, 5.0]]])
    >>> CentroidDistance().fit_transform(graphs).attributes.ravel()
    array([5., 5., 0.])
    """

    def _change(self, graphs: Graphs) -> Graphs:
        vectors = _vectors(graphs, self)
        with np.errstate(over="ignore", invalid="ignore"):
            centroids = _means(graphs.offsets, np.arange(graphs.n_nodes), vectors)
            distances = _lengths(vectors - centroids[graphs.graph_ids])[:, None]
        return _with_vectors(graphs, distances, self, ("distance to centroid",))


@parameters
class NeighborMeans(GraphTransformer):
    """Append to each node's vector the weighted mean of its neighbors' vectors.

    Parameters
    ----------
    weight : float, default=0.5
        Factor applied to the means: how much the neighbors count compared with the node itself.

    Notes
    -----
    For a node without neighbors, its own vector is appended, times ``weight``: zeros would make distances between nodes
    depend on the origin of the attributes. Directed edges count in their direction only.

    Examples
    --------
    >>> from treegram import Graphs, NeighborMeans
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], []], attributes=[[[2.0], [4.0], [6.0]], [[8.0]]])
    >>> NeighborMeans().fit_transform(graphs).attributes
    array([[2., 2.],
           [4., 2.],
           [6., 2.],
           [8., 4.]])
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"weight": (Number(0),)}

    weight: float = field(default=0.5, kw_only=False)

    def _change(self, graphs: Graphs) -> Graphs:
        vectors = _vectors(graphs, self)
        means = _means(graphs.indptr, graphs.indices, vectors)
        is_isolated = graphs.degrees == 0
        means[is_isolated] = vectors[is_isolated]
        names = graphs.attribute_names
        if names is not None:
            names += tuple(f"neighbor mean of {name}" for name in names)
        with np.errstate(over="ignore"):
            return _with_vectors(graphs, np.hstack([vectors, float(self.weight) * means]), self, names)


class DropAttributes(GraphTransformer):
    """Remove the node attributes: kernels then use k_A = 1 and compare labels and structure only.

    Examples
    --------
    >>> from treegram import DropAttributes, Graphs
    >>> DropAttributes().fit_transform(Graphs.from_edges([[(0, 1)]], attributes=[[[1.0], [2.0]]]))
    Graphs(1 graph, 2 nodes, 1 edge, undirected, no labels)
    """

    def _change(self, graphs: Graphs) -> Graphs:
        return graphs._with(attributes=None, attribute_names=None)


@parameters
class SelectLabels(GraphTransformer):
    """Keep one part, or several parts, of node labels that are tuples.

    With molecules whose labels are element, charge and so on, a pipeline can thus compare atoms by all of these or by the
    element alone.

    Parameters
    ----------
    parts : int or list of int, default=0
        Position of the part that becomes the label, or positions of several, which become a tuple; -1 is the last. A label
        without such a part loses it, and labels that are no tuples do not change.

    Examples
    --------
    >>> from treegram import Graphs, SelectLabels
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[[("C", 1, 0), ("C", 2, 0), ("O", 1, 1)]])
    >>> SelectLabels().fit_transform(graphs).label_values
    ('C', 'O')
    >>> SelectLabels([0, 2]).fit_transform(graphs).label_values
    (('C', 0), ('O', 1))
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"parts": (Whole(), LIST)}

    parts: int | Sequence[int] = field(default=0, kw_only=False)

    def _change(self, graphs: Graphs) -> Graphs:
        if graphs.labels is None:
            return graphs
        selected = [self._select(value) for value in graphs.label_values]
        codes, values = encode_labels(selected, len(selected), "label_values", "labels")
        return graphs._with(labels=codes[graphs.labels], label_values=values)

    def _select(self, value: Hashable) -> Hashable:
        if not isinstance(value, tuple):
            return value
        if isinstance(self.parts, Sequence):
            return tuple(value[part] for part in self.parts if -len(value) <= part < len(value))
        return value[self.parts] if -len(value) <= self.parts < len(value) else ()


# -------------------------------------------------------------------- edge attributes


@parameters
class BinEdgeAttributes(GraphTransformer):
    """Turn edge attributes into edge labels by binning each column at quantiles.

    The bins of each column hold about the same number of fitted edges. An edge that already has a label keeps it as a
    part of the new label. A kernel with ``use_edge_labels=True`` then compares edges.

    Parameters
    ----------
    n_bins : int, default=4
        Number of bins per column; fewer if many values are equal.

    Attributes
    ----------
    thresholds_ : list of ndarray
        The ascending bin edges of each column: bin ``i`` holds the values above threshold ``i - 1``, up to and including
        threshold ``i``.

    Notes
    -----
    The kernel remains positive semidefinite. With its thresholds fixed, the transformer is a function T from graphs to graphs
    with edge labels, and K(T(G), T(G')) is positive semidefinite for every function T if K is: a sum of
    c_i c_j K(T(G_i), T(G_j)) is a sum of the same form over the graphs T(G_i). Thresholds are learned in ``fit``, and
    thus in cross-validation from training graphs only.

    Two values on either side of a threshold count as different however close they are. More bins compare edges more finely
    and find fewer equal ones. Each undirected edge counts once. Fitting sorts each column.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import ODDCL, BinEdgeAttributes, Graphs
    >>> lengths = [[[1.1], [1.2], [2.3]], [[1.1], [2.2]]]
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]], edge_attributes=lengths)
    >>> BinEdgeAttributes(n_bins=2).fit_transform(graphs)
    Graphs(2 graphs, 6 nodes, 5 edges, undirected, no labels, 2 edge labels)
    >>> make_pipeline(BinEdgeAttributes(n_bins=2), ODDCL(depth=1, use_edge_labels=True)).fit_transform(graphs).shape
    (2, 2)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"n_bins": (Whole(1),)}
    _learned: ClassVar[str | None] = "thresholds_"

    n_bins: int = field(default=4, kw_only=False)

    def _learn(self, graphs: Graphs) -> None:
        vectors = _vectors(graphs, self, "edge_attributes")[graphs._edge_arcs()]
        self._names = _listed(graphs.edge_attribute_names)
        levels = np.arange(1, self.n_bins) / self.n_bins
        self.thresholds_ = [_bin_edges(column, levels) for column in vectors.T] if len(vectors) else []

    def _change(self, graphs: Graphs) -> Graphs:
        vectors = _vectors(graphs, self, "edge_attributes")
        if self.thresholds_ and len(vectors):
            check_fitted_columns(self, "edge_attributes", graphs, len(self.thresholds_), self._names)
        bins = [
            np.searchsorted(thresholds, column, side="left")
            for thresholds, column in zip(self.thresholds_, vectors.T, strict=False)
        ] or [np.zeros(len(vectors), np.int64)]
        codes, values = _join_labels(graphs, np.stack(bins, axis=1))
        without_vectors = graphs._with(edge_attributes=None, edge_attribute_names=None)
        return without_vectors._with(edge_labels=codes, edge_label_values=values)


TRANSFORMATIONS: dict[str, Callable[[], GraphTransformer]] = {
    "standard": ScaleAttributes,
    "robust": partial(ScaleAttributes, "robust"),
    "whiten": partial(ScaleAttributes, "whiten"),
    "centroid": CentroidDistance,
    "neighbors": NeighborMeans,
    "none": DropAttributes,
    "edges": BinEdgeAttributes,
}


# -------------------------------------------------------------------- vectors in and out


def _vectors(graphs: Graphs, transformer: GraphTransformer, field: str = "attributes") -> Floats:
    """Return one row per node or arc; a collection without nodes or edges needs no vectors."""
    vectors: Floats | None = getattr(graphs, field)
    n_rows = graphs.n_nodes if field == "attributes" else len(graphs.indices)
    if vectors is not None and (vectors.shape[1] or not n_rows):
        return vectors
    if n_rows:
        action = "changes node attributes" if field == "attributes" else "bins edge attributes"
        raise InvalidGraphError(
            f"{type(transformer).__name__} {action}, but the graphs have none: {graphs!r}. Leave it out, or pass them when "
            "creating the collection."
        )
    return np.zeros((0, 0))


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


def _with_vectors(
    graphs: Graphs, vectors: Floats, transformer: GraphTransformer, names: tuple[str, ...] | None
) -> Graphs:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        node = int((~finite).argmax())
        finder = Finder(graphs.offsets, graphs.graph_names, graphs.node_names)
        raise InvalidGraphError(
            f"{finder.graph_of(node)}: {type(transformer).__name__} gives its node {finder.node(node)} the attributes "
            f"{vectors[node].tolist()}, which are not finite. The original attributes are too large: divide them all by a constant."
        )
    return graphs._with(attributes=np.ascontiguousarray(vectors), attribute_names=names)


# -------------------------------------------------------------------- numbers


def _means(offsets: Ints, members: Ints, vectors: Floats) -> Floats:
    """Average the rows ``members[offsets[i] : offsets[i + 1]]`` for each i; 0 if there are none."""
    counts = np.diff(offsets)
    weights = np.repeat(1.0 / np.maximum(counts, 1), counts)
    return sp.csr_array((weights, members, offsets), shape=(len(counts), len(vectors))) @ vectors


def _lengths(vectors: Floats) -> Floats:
    """Return the Euclidean length of each row without overflow in the squares."""
    peaks = np.abs(vectors).max(axis=1, initial=0.0)
    scaled = vectors / np.where(peaks > 0, peaks, 1.0)[:, None]
    return peaks * np.sqrt((scaled**2).sum(axis=1))


def _standard(vectors: Floats) -> tuple[Floats, Floats]:
    # The computed deviation of equal values need not be 0: their mean is rounded.
    return vectors.mean(axis=0), np.where(np.ptp(vectors, axis=0) > 0, vectors.std(axis=0), 0.0)


def _robust(vectors: Floats) -> tuple[Floats, Floats]:
    lowest, lower, median, upper, highest = np.percentile(vectors, [5, 25, 50, 75, 95], axis=0)
    ranges = upper - lower
    is_usable = (ranges > 0) & (MAX_TAIL_RATIO * ranges >= highest - lowest)
    return median, np.where(is_usable, ranges, _standard(vectors)[1])


def _whitening(vectors: Floats) -> Floats:
    """Return the inverse square root of the covariance of centered vectors; directions without variance become 0."""
    if not len(vectors):
        return np.eye(vectors.shape[1])
    variances, axes = np.linalg.eigh(vectors.T @ vectors / len(vectors))
    has_variance = variances > _LEAST_VARIANCE * variances[-1]
    factors = np.divide(1.0, np.sqrt(np.abs(variances)), out=np.zeros_like(variances), where=has_variance)
    return axes * factors @ axes.T


def _bin_edges(values: Floats, levels: Floats) -> Floats:
    """Return the quantiles at which to cut, each below the largest value, so that no bin is empty."""
    thresholds = np.unique(np.quantile(values, levels, method="inverted_cdf")) if len(levels) else np.empty(0)
    return thresholds[thresholds < values.max()]


def _join_labels(graphs: Graphs, bins: Ints) -> tuple[Ints, LabelValues]:
    """Encode labels made of the edge's old label, if any, and its bin in each column."""
    if graphs.edge_labels is not None:
        bins = np.column_stack([graphs.edge_labels, bins])
    rows, inverse = np.unique(bins, axis=0, return_inverse=True)
    labels: list[Any] = [tuple(row) for row in rows.tolist()]
    if graphs.edge_labels is not None:
        labels = [(graphs.edge_label_values[label], *rest) for label, *rest in labels]
    labels = [label[0] if len(label) == 1 else label for label in labels]
    codes, values = encode_labels(labels, len(labels), "edge_labels", "edges")
    return codes[inverse.reshape(-1)], values
