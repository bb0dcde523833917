"""Transformers from graphs to the same graphs with other node attributes, for pipelines that end in a kernel.

What is learned is learned in ``fit`` alone, so that in cross-validation nothing leaks from test graphs. Labels, edges and
targets pass through untouched. ``TRANSFORMATIONS`` has them by the names that study files use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import InvalidGraphError
from treegram._core.params import Allowed, Checked, Number, Words, parameters
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs

__all__ = [
    "TRANSFORMATIONS",
    "AttributeTransformer",
    "CentroidDistance",
    "DropAttributes",
    "NeighborMeans",
    "ScaleAttributes",
]

WIDEST_MIDDLE = (
    5.0  # the middle nine tenths of all values in units of the middle half, up to which that is a scale for all
)


class AttributeTransformer(Checked, TransformerMixin, BaseEstimator, ABC):
    """Base of all: graphs in, the same graphs with other attributes out; learns nothing unless a subclass says so."""

    @property
    def learns_from_data(self) -> bool:
        """Whether what a graph becomes depends on the fitted graphs, so that each fold needs a fit of its own."""
        return False

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn what the transformer needs of the graphs, if anything.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs to learn from.
        y : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        self._learn(as_graphs(X))
        return self

    def transform(self, X: Any) -> Graphs:
        """Give the graphs their new attributes.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        Graphs
            The same graphs in the same order, with other attributes.
        """
        check_is_fitted(self)
        self._check_parameters()
        return self._change(as_graphs(X))

    def __sklearn_is_fitted__(self) -> bool:
        return not self.learns_from_data

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.learns_from_data
        return tags

    def _learn(self, graphs: Graphs) -> None:
        """Nothing, unless a subclass does."""

    @abstractmethod
    def _change(self, graphs: Graphs) -> Graphs:
        """The graphs with their new attributes."""


@parameters
class ScaleAttributes(AttributeTransformer):
    """Scale each attribute by what its values are like over all nodes of the fitted graphs.

    The default k_A has one width for all attributes: one with a wide range, or a few outliers, drowns the others.

    Parameters
    ----------
    method : {"standard", "robust"}, default="standard"
        "standard": subtract the mean and divide by the standard deviation. "robust": subtract the median and divide by the
        interquartile range, which outliers do not move. That of an attribute which is nearly always the same, such as 0, is
        tiny and says nothing of its other values: where the middle nine tenths of all values are more than 5 times as wide
        as the middle half (2.4 times for a normal distribution, 3.4 times for a log-normal one), or the middle half has no
        width, the standard deviation takes its place. An attribute that never changes is not divided.

    Attributes
    ----------
    center_ : ndarray of shape (n_attributes,)
        What is subtracted.
    scale_ : ndarray of shape (n_attributes,)
        What the difference is divided by; never 0.
    n_attributes_in_ : int
        Dimension of the fitted vectors; 0 if there was no node to learn from, and then nothing is changed.

    Examples
    --------
    >>> from treegram import Graphs, ScaleAttributes
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[1], [2]], [[3], [4], [9]]])
    >>> ScaleAttributes("robust").fit_transform(graphs).attributes.ravel()
    array([-1. , -0.5,  0. ,  0.5,  3. ])
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"method": (Words("standard", "robust"),)}

    method: str = field(default="standard", kw_only=False)

    @property
    def learns_from_data(self) -> bool:
        """Whether what a graph becomes depends on the fitted graphs: always, center and scale are theirs."""
        return True

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scale_")

    def _learn(self, graphs: Graphs) -> None:
        vectors = _vectors(graphs, self)
        self.n_attributes_in_ = vectors.shape[1] if len(vectors) else 0
        # As shares of the largest value, so that no square overflows.
        peaks = np.abs(vectors).max(axis=0, initial=0.0)
        peaks[peaks == 0] = 1.0
        centers, scales = np.zeros(vectors.shape[1]), np.ones(vectors.shape[1])
        if len(vectors):
            centers, scales = _CENTERS_AND_SCALES[self.method](vectors / peaks)
        self.center_ = centers * peaks
        self.scale_ = scales * peaks
        self.scale_[self.scale_ == 0] = 1.0  # the same value in all nodes

    def _change(self, graphs: Graphs) -> Graphs:
        vectors = _vectors(graphs, self)
        if not len(vectors) or not self.n_attributes_in_:
            return graphs
        if vectors.shape[1] != self.n_attributes_in_:
            raise InvalidGraphError(
                f"The nodes of the new graphs (X) have {counted(vectors.shape[1], 'attribute')}, but ScaleAttributes was "
                f"fitted on nodes with {self.n_attributes_in_}."
            )
        with np.errstate(over="ignore"):
            return _with_vectors(graphs, (vectors - self.center_) / self.scale_, self)


@parameters
class CentroidDistance(AttributeTransformer):
    """Describe each node by how far its vector is from the mean vector of its graph.

    For coordinates: the distance does not change when a molecule is turned, mirrored or moved, coordinates do.

    Parameters
    ----------
    mode : {"replace", "append"}, default="replace"
        Whether the distance takes the place of the vector, or becomes one more attribute after it.

    Examples
    --------
    >>> from treegram import CentroidDistance, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1)], []], attributes=[[[1.0, 2.0], [7.0, 10.0]], [[5.0, 5.0]]])
    >>> CentroidDistance().fit_transform(graphs).attributes.ravel()
    array([5., 5., 0.])
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"mode": (Words("replace", "append"),)}

    mode: str = field(default="replace", kw_only=False)

    def _change(self, graphs: Graphs) -> Graphs:
        vectors = _vectors(graphs, self)
        with np.errstate(over="ignore", invalid="ignore"):
            centroids = _means(graphs.offsets, np.arange(graphs.n_nodes), vectors)
            distances = _lengths(vectors - centroids[graphs.graph_ids])[:, None]
        joined = np.hstack([vectors, distances]) if self.mode == "append" else distances
        return _with_vectors(graphs, joined, self)


@parameters
class NeighborMeans(AttributeTransformer):
    """Append to each node's vector the weighted mean of its neighbors' vectors.

    Parameters
    ----------
    weight : float, default=0.5
        Factor of the means: how much the neighbors count compared with the node itself.

    Notes
    -----
    A node without neighbors stands in for them: its own vector is appended, times ``weight``. Zeros in that place would
    make distances between nodes depend on where the origin of the attributes is. Directed edges lead to neighbors in their
    direction only.

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
        is_alone = graphs.degrees == 0
        means[is_alone] = vectors[is_alone]
        with np.errstate(over="ignore"):
            return _with_vectors(graphs, np.hstack([vectors, float(self.weight) * means]), self)


class DropAttributes(AttributeTransformer):
    """Take the attributes away: kernels then have k_A = 1 and compare labels and shape alone.

    Examples
    --------
    >>> from treegram import DropAttributes, Graphs
    >>> DropAttributes().fit_transform(Graphs.from_edges([[(0, 1)]], attributes=[[[1.0], [2.0]]]))
    Graphs(1 graph, 2 nodes, 1 edge, undirected, no labels)
    """

    def _change(self, graphs: Graphs) -> Graphs:
        return replace(graphs, attributes=None)


TRANSFORMATIONS: dict[str, Callable[[], AttributeTransformer]] = {
    "standard": ScaleAttributes,
    "robust": partial(ScaleAttributes, "robust"),
    "centroid": CentroidDistance,
    "centroid-append": partial(CentroidDistance, "append"),
    "neighbors": NeighborMeans,
    "none": DropAttributes,
}


# -------------------------------------------------------------------- vectors in and out


def _vectors(graphs: Graphs, transformer: AttributeTransformer) -> Floats:
    """One row per node; graphs without nodes have no rows, whether they have attributes or not."""
    if graphs.attributes is not None and (graphs.n_attributes or not graphs.n_nodes):
        return graphs.attributes
    if graphs.n_nodes:
        raise InvalidGraphError(
            f"{type(transformer).__name__} changes node attributes, but the graphs have none: {graphs!r}. Leave it out, or "
            "give attributes when the collection is made."
        )
    return np.zeros((0, 0))


def _with_vectors(graphs: Graphs, vectors: Floats, transformer: AttributeTransformer) -> Graphs:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        node = int((~finite).argmax())
        graph = int(graphs.graph_ids[node])
        raise InvalidGraphError(
            f"Graph {graph}: {type(transformer).__name__} gives its node {node - graphs.offsets[graph]} the attributes "
            f"{vectors[node].tolist()}, which are not finite. The given ones are too large: divide them all by one number."
        )
    return replace(graphs, attributes=np.ascontiguousarray(vectors))


# -------------------------------------------------------------------- numbers


def _means(offsets: Ints, members: Ints, vectors: Floats) -> Floats:
    """The mean of the rows ``members[offsets[i] : offsets[i + 1]]``, for each i; 0 where there are none."""
    counts = np.diff(offsets)
    shares = np.repeat(1.0 / np.maximum(counts, 1), counts)
    means: Floats = sp.csr_array((shares, members, offsets), shape=(len(counts), len(vectors))) @ vectors
    return means


def _lengths(vectors: Floats) -> Floats:
    """The Euclidean length of each row; squares of large numbers do not overflow."""
    peaks = np.abs(vectors).max(axis=1, initial=0.0)
    shares = vectors / np.where(peaks > 0, peaks, 1.0)[:, None]
    lengths: Floats = peaks * np.sqrt((shares**2).sum(axis=1))
    return lengths


def _standard(vectors: Floats) -> tuple[Floats, Floats]:
    # The computed deviation of equal numbers need not be 0: their mean is rounded.
    return vectors.mean(axis=0), np.where(np.ptp(vectors, axis=0) > 0, vectors.std(axis=0), 0.0)


def _robust(vectors: Floats) -> tuple[Floats, Floats]:
    lowest, lower, median, upper, highest = np.percentile(vectors, [5, 25, 50, 75, 95], axis=0)
    ranges = upper - lower
    is_told = (ranges > 0) & (WIDEST_MIDDLE * ranges >= highest - lowest)
    return median, np.where(is_told, ranges, _standard(vectors)[1])


_CENTERS_AND_SCALES: dict[str, Callable[[Floats], tuple[Floats, Floats]]] = {"standard": _standard, "robust": _robust}
