"""Real vectors at the edges, made usable by every kernel that uses edge labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from treegram._core.errors import InvalidGraphError
from treegram._core.params import Allowed, Whole, parameters
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.graphs.pack import encode_labels
from treegram.graphs.transforms import AttributeTransformer

__all__ = ["BinEdgeAttributes"]


@parameters
class BinEdgeAttributes(AttributeTransformer):
    """Make edge labels of edge attributes: in which part of the fitted values each number lies.

    Each column of the edge attributes is cut at quantiles of its values over the fitted edges, so that about equally many of
    these lie in each part. Edges that have a label keep it: the new label is made of both. A kernel with
    ``use_edge_labels=True`` then compares edges.

    Parameters
    ----------
    n_bins : int, default=4
        Parts that each column is cut into. There are fewer where many values are equal.

    Attributes
    ----------
    thresholds_ : list of ndarray
        For each column the ascending numbers at which it is cut: part ``i`` holds the values above threshold ``i - 1``, up to
        and including threshold ``i``.

    Notes
    -----
    The kernel stays positive semidefinite. With its thresholds fixed, the transformer is a function T from graphs to graphs
    with edge labels, and K(T(G), T(G')) is positive semidefinite for every function T if K is: a sum of
    c_i c_j K(T(G_i), T(G_j)) is a sum of the same form over the graphs T(G_i). Thresholds are learned in ``fit``, so in
    cross-validation from training graphs alone.

    Two numbers on either side of a threshold count as different however close they are. More bins compare edges more finely,
    and find fewer equal ones. Each edge counts once for the quantiles. Fitting costs a sort of each column.

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

    n_bins: int = field(default=4, kw_only=False)

    @property
    def learns_from_data(self) -> bool:
        """Whether what a graph becomes depends on the fitted graphs: always, the thresholds are theirs."""
        return True

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "thresholds_")

    def _learn(self, graphs: Graphs) -> None:
        vectors = _edge_vectors(graphs)[graphs._edge_arcs()]
        shares = np.arange(1, self.n_bins) / self.n_bins
        self.thresholds_ = [_cuts(column, shares) for column in vectors.T] if len(vectors) else []

    def _change(self, graphs: Graphs) -> Graphs:
        vectors = _edge_vectors(graphs)
        if self.thresholds_ and len(vectors) and vectors.shape[1] != len(self.thresholds_):
            raise InvalidGraphError(
                f"The edges of the new graphs (X) have {counted(vectors.shape[1], 'attribute')}, but BinEdgeAttributes was fitted on edges with "
                f"{len(self.thresholds_)}."
            )
        parts = [
            np.searchsorted(cuts, column, side="left")
            for cuts, column in zip(self.thresholds_, vectors.T, strict=False)
        ] or [np.zeros(len(vectors), np.int64)]
        codes, values = _join_labels(graphs, np.stack(parts, axis=1))
        return replace(graphs, edge_labels=codes, edge_label_values=values, edge_attributes=None)


def _edge_vectors(graphs: Graphs) -> Floats:
    """One row per arc; graphs without edges have no rows, whether they have edge attributes or not."""
    if graphs.edge_attributes is not None:
        return graphs.edge_attributes
    if len(graphs.indices):
        raise InvalidGraphError(
            f"BinEdgeAttributes makes labels of edge attributes, but the graphs have none: {graphs!r}. Leave it out, or give "
            "edge_attributes when the collection is made."
        )
    return np.zeros((0, 0))


def _cuts(values: Floats, shares: Floats) -> Floats:
    """Quantiles at which to cut, each below the largest value, so that no part is empty."""
    found = np.unique(np.quantile(values, shares, method="inverted_cdf")) if len(shares) else np.empty(0)
    return found[found < values.max()]


def _join_labels(graphs: Graphs, parts: Ints) -> tuple[Ints, tuple[Hashable, ...]]:
    """Codes and values of labels that say the part in each column, after the label that the edge had, if any."""
    if graphs.edge_labels is not None:
        parts = np.column_stack([graphs.edge_labels, parts])
    rows, inverse = np.unique(parts, axis=0, return_inverse=True)
    labels: list[Any] = [tuple(row) for row in rows.tolist()]
    if graphs.edge_labels is not None:
        labels = [(graphs.edge_label_values[label], *places) for label, *places in labels]
    labels = [label[0] if len(label) == 1 else label for label in labels]
    codes, values = encode_labels(labels, len(labels), "edge_labels", "edges")
    return codes[inverse.reshape(-1)], values
