"""The distance of new graphs from the training graphs of a model, and whether its predictions can be expected to hold for them.

Two graphs are as similar as the cosine of the sum of the model's kernels says. Sums of kernels differ by data set in how
large a usual similarity is, so it is compared with those of the training graphs: how similar is each of them to the most similar
other? The verdict also uses what the model predicts. For a Gaussian process, it is about the variance that the training graphs
leave to the prediction; for a classifier, about the support by similar training graphs of the predicted class. Both
are compared with those of training graphs when they are left out.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treegram._core.optional import optional_module
from treegram._core.types import Array, Floats, Ints, Masks
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.grid import split_pipeline, through_pipeline
from treegram.kernels.input_checks import used_labels
from treegram.pairsum.tiles import inverse_roots
from treegram.structure.wl import wl_colors

MOST = 500  # training graphs whose nearest similarity is kept
EDGE, OUTSIDE = 0.10, 0.02  # shares of the training graphs whose predictions are supported as little
_DIGITS = 12  # of similarities: the rest is rounding
_N_NEAREST = 10  # training graphs that support a class
_ITERATIONS = 2  # of colors: a node, its neighbors, and theirs


@dataclass(frozen=True, eq=False)
class Applicability:
    """Similarity of graphs to the training graphs of a model; made by the method ``applicability`` of a model.

    Attributes
    ----------
    nearest : ndarray of shape (n_graphs,)
        Position of the most similar training graph among the graphs that the kernels were fitted on.
    nearest_names : tuple of str or None
        Its name, if the training graphs have names.
    similarity : ndarray of shape (n_graphs,)
        Its similarity: the cosine of the sum of the model's kernels.
    percentile : ndarray of shape (n_graphs,)
        Percentage of the training graphs whose most similar other training graph is less similar than that.
    unseen_labels : ndarray of shape (n_graphs,)
        Share of the nodes whose label no training graph has.
    unseen_colors : ndarray of shape (n_graphs,)
        Share of the nodes whose surroundings, two steps wide, no training graph has.
    verdict : ndarray of str of shape (n_graphs,)
        "inside", "at the edge" or "outside": 10 and 2 % of the training graphs, when left out, have predictions that the others
        support as little.
    """

    nearest: Ints
    nearest_names: tuple[str, ...] | None
    similarity: Floats
    percentile: Floats
    unseen_labels: Floats
    unseen_colors: Floats
    verdict: Array

    def to_frame(self) -> Any:
        """Return a table with a row for each graph. Requires pandas.

        Returns
        -------
        pandas.DataFrame
            A column for each attribute; without ``nearest_names`` if the training graphs have no names.
        """
        columns = {name: value for name, value in vars(self).items() if value is not None}
        return optional_module("pandas", "Data frames").DataFrame(columns)


class Compared(NamedTuple):
    """Graphs, and what the sum of the kernels says about them."""

    graphs: Graphs
    rows: Floats  # its values with the fitted graphs
    prior: Floats  # its value for each graph with itself, or the usual one if that is 0
    similarities: Floats  # cosines with the fitted graphs


class ComparesWithTraining:
    """Mixin for models on sums of kernels: how far new graphs are from the training graphs."""

    nearest_similarities_: Floats

    @abstractmethod
    def _summands(self) -> list[tuple[Any, float, float]]:
        """Return the fitted kernels with their weights and their usual values on the diagonal."""

    def applicability(self, X: Any) -> Applicability:
        """Compare graphs with the training graphs, and judge whether predictions can be expected to hold for them.

        "outside" means: the training graphs support the prediction less than they do for 98 % of themselves when left out; "at the
        edge": less than for 90 %. For a Gaussian process, support is small if much variance is left; for a classifier, if
        few of the ten most similar training graphs are very similar and have the predicted class. See :doc:`/new_graphs` for how
        large errors are.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not. A training graph is its own most similar one.

        Returns
        -------
        Applicability
            The most similar training graphs, similarities, shares of what the model has never seen, and verdicts.
        """
        self._check_one_target()  # type: ignore[attr-defined]
        if hasattr(self, "blocks_"):
            raise ParameterError(
                f"This {type(self).__name__} is a linear model on rows of features, as it is for more than 10,000 graphs, and "
                "keeps no training graphs to compare with."
            )
        graphs, kernels = as_graphs(X), self._summands()
        rows, (selves, prior) = self._rows(graphs), self._selves(graphs)
        fitted = sum((weight * fitted_selves(kernel) for kernel, weight, _ in kernels), np.zeros(1))
        similarities = np.round(rows * inverse_roots(selves)[:, None] * inverse_roots(fitted), _DIGITS)
        nearest = similarities.argmax(axis=1)
        similarity = np.take_along_axis(similarities, nearest[:, None], axis=1)[:, 0]
        doubt, usual_doubt = self._measure_doubt(Compared(graphs, rows, prior, similarities))
        edge, outside = np.quantile(usual_doubt, [1 - EDGE, 1 - OUTSIDE])
        verdict = np.where(doubt > outside, "outside", np.where(doubt > edge, "at the edge", "inside"))
        ranks = np.searchsorted(self.nearest_similarities_, similarity)
        closest = min((kernel for kernel, _, _ in kernels), key=lambda kernel: len(split_pipeline(kernel)[0]))
        final, view = through_pipeline(closest, graphs)
        names = final.graphs_.graph_names
        return Applicability(
            nearest=nearest,
            nearest_names=None if names is None else tuple(str(names[i]) for i in nearest.tolist()),
            similarity=similarity,
            percentile=100.0 * ranks / len(self.nearest_similarities_),
            unseen_labels=_unseen_labels(final.graphs_, view),
            unseen_colors=_unseen_colors(final.graphs_, view),
            verdict=verdict,
        )

    def _rows(self, graphs: Graphs) -> Floats:
        """Return the sum of the kernels with the fitted graphs."""
        products = (weight * kernel.transform(graphs) for kernel, weight, _ in self._summands())
        return sum(products, np.zeros((len(graphs), 1)))

    def _selves(self, graphs: Graphs) -> tuple[Floats, Floats]:
        """Return the sum of the kernels of each graph with itself, as it is, and with usual values where a kernel is 0."""
        selves, prior = np.zeros(len(graphs)), np.zeros(len(graphs))
        for kernel, weight, usual in self._summands():
            final, view = through_pipeline(kernel, graphs)
            of_graphs = final.diag(view)
            selves += weight * of_graphs
            prior += weight * np.where(of_graphs > 0, of_graphs, usual)
        return selves, prior

    @abstractmethod
    def _measure_doubt(self, compared: Compared) -> tuple[Floats, Floats]:
        """Return a number for each graph that grows with its distance from the training graphs, and those of training graphs."""


def spread_ids(n_graphs: int) -> Ints:
    """Return the positions of the graphs whose nearest similarity is kept: at most ``MOST``, evenly spaced."""
    return np.linspace(0, max(n_graphs - 1, 0), min(n_graphs, MOST)).astype(np.int64)


def left_out_similarities(rows: Floats, selves: Floats) -> Floats:
    """Return the similarities of fitted graphs to all others, and minus infinity to themselves.

    ``rows`` are those of ``spread_ids`` in a Gram matrix, and ``selves`` is its diagonal.
    """
    ids = spread_ids(len(selves))
    similarities = np.round(rows * inverse_roots(selves[ids])[:, None] * inverse_roots(selves), _DIGITS)
    similarities[np.arange(len(ids)), ids] = -np.inf
    return similarities


def nearest_similarities(rows: Floats, selves: Floats) -> Floats:
    """Return the similarities of fitted graphs to their most similar other graph, ascending; see `left_out_similarities`."""
    return np.sort(left_out_similarities(rows, selves).max(axis=1))


def class_support(similarities: Floats, codes: Ints, predicted: Ints) -> Floats:
    """Return the sum of similarities to those of the nearest fitted graphs that have the predicted class."""
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :_N_NEAREST]
    values = np.maximum(np.take_along_axis(similarities, nearest, axis=1), 0.0)
    return np.round((values * (codes[nearest] == predicted[:, None])).sum(axis=1), _DIGITS)


def fitted_selves(kernel: Any) -> Floats:
    """Return the kernel of each fitted graph with itself."""
    return split_pipeline(kernel)[1]._fitted_diag


def _unseen_labels(fitted: Graphs, graphs: Graphs) -> Floats:
    if fitted.labels is None or graphs.labels is None:
        return np.zeros(len(graphs))
    fitted_labels = set(used_labels(fitted))
    is_unseen = np.array([value not in fitted_labels for value in graphs.label_values], dtype=bool)
    return _share_by_graph(graphs, is_unseen[graphs.labels])


def _unseen_colors(fitted: Graphs, graphs: Graphs) -> Floats:
    has_edge_labels = fitted.edge_labels is not None and graphs.edge_labels is not None
    collections = (fitted, graphs)
    fitted_colors, colors = (wl_colors(part, _ITERATIONS, use_edge_labels=has_edge_labels)[-1] for part in collections)
    return _share_by_graph(graphs, ~np.isin(colors, fitted_colors))


def _share_by_graph(graphs: Graphs, is_unseen: Masks) -> Floats:
    counts = np.bincount(graphs.graph_ids[is_unseen], minlength=len(graphs))
    return counts / np.maximum(graphs.sizes, 1)
