"""Distances between graphs from any kernel, the graphs most similar to a given one, and a kernel for users who name none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import BaseEstimator, TransformerMixin
from treegram._core.optional import optional_module
from treegram._core.params import NOTHING, Allowed, Checked, Instance, Whole, check_value, parameters
from treegram._core.text import suggest
from treegram._core.types import Floats
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.transforms import DropAttributes, ScaleAttributes
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import split_pipeline, through_pipeline
from treegram.kernels.kernel_sum import KernelSum
from treegram.kernels.registry import kernel_by_name
from treegram.kernels.statistics_kernel import StatisticsKernel
from treegram.kernels.wl import WLCL, WLOA
from treegram.pairsum.tiles import inverse_roots

__all__ = ["KernelDistances", "similar_graphs"]

_ROUNDING = 1e-12  # of the squared distance, relative to the kernels of both graphs with themselves


@parameters
class KernelDistances(Checked, TransformerMixin, BaseEstimator):
    r"""Turn graphs into their distances under a kernel, for estimators with ``metric="precomputed"``.

    .. math:: d(G, G') = \sqrt{K(G, G) + K(G', G') - 2 K(G, G')}

    Put it before scikit-learn's NearestNeighbors, HDBSCAN, DBSCAN, LocalOutlierFactor or TSNE, or before UMAP. A Gram matrix in its place would give
    the farthest graphs instead of the nearest.

    Parameters
    ----------
    kernel : GraphKernel, Pipeline, str or None, default=None
        A kernel, a pipeline of transformers that ends in one, or the name of a kernel on the command line such as "wl". None: a
        kernel that suits the graphs; see the notes.

    Attributes
    ----------
    kernel_ : GraphKernel or Pipeline
        The kernel, fitted.

    See Also
    --------
    similar_graphs : The graphs that are most similar to a given one.
    plot_map : Graphs as points in the plane.

    Notes
    -----
    The distance is a metric, as every kernel is a scalar product, except that graphs which the kernel does not tell apart
    have a distance of 0. Differences that may be rounding errors count as 0 as well.

    Without a kernel, it is the :class:`KernelSum` of WLOA(3), StatisticsKernel and, for graphs with vectors, WLCL(1) on scaled vectors.
    Of 18 kernels, it has the highest accuracy of the nearest neighbor's class on 13 data sets: see :doc:`/auto_design_log`.

    Examples
    --------
    >>> from sklearn.neighbors import NearestNeighbors
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import Graphs, KernelDistances
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)], [(0, 2), (2, 1)]])
    >>> KernelDistances("wl").fit_transform(graphs).round(2)
    array([[0.  , 1.33, 0.  ],
           [1.33, 0.  , 1.33],
           [0.  , 1.33, 0.  ]])
    >>> nearest = make_pipeline(KernelDistances("wl"), NearestNeighbors(n_neighbors=1, metric="precomputed")).fit(graphs)
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "kernel": (Instance((GraphKernel, Pipeline, str), "a kernel or its name"), NOTHING)
    }

    kernel: Any = field(default=None, kw_only=False)

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Fit the kernel.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs from which distances will be computed.
        y : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self
            The fitted transformer.
        """
        graphs = as_graphs(X)
        self._choose_kernel(graphs).fit(graphs)
        self._selves = _self_kernels(self.kernel_, graphs)
        return self

    def fit_transform(self, X: Any, y: object = None, **fit_params: object) -> Floats:  # noqa: ARG002
        """Fit, and compute the distances of all pairs of graphs: ``fit(X).transform(X)`` at half the cost.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : ignored
            Not used, present for API consistency by convention.
        **fit_params : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        ndarray of shape (n_graphs, n_graphs)
            The distances, symmetric, with zeros on the diagonal.
        """
        graphs = as_graphs(X)
        K: Floats = self._choose_kernel(graphs).fit_transform(graphs)
        self._selves = K.diagonal().copy()
        return _distances(K, self._selves, self._selves)

    def transform(self, X: Any) -> Floats:
        """Compute the distances of graphs from the fitted ones.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs, n_fitted)
            One row per graph in X, one column per fitted graph.
        """
        check_is_fitted(self)
        graphs = as_graphs(X)
        return _distances(self.kernel_.transform(graphs), _self_kernels(self.kernel_, graphs), self._selves)

    def _choose_kernel(self, graphs: Graphs) -> Any:
        self._check_parameters()
        self.kernel_: Any = kernel_or_default(self.kernel, graphs)
        return self.kernel_


def similar_graphs(graphs: Any, to: Any, k: int = 5, *, kernel: Any = None) -> Any:
    """Find the graphs of a collection that are most similar to given ones. Requires pandas.

    Parameters
    ----------
    graphs : Graphs or list of graphs
        The collection to search.
    to : int, str, list of these, or Graphs
        The given graphs: positions or names in the collection, where they are not similar to themselves, or other graphs.
    k : int, default=5
        How many to find for each.
    kernel : GraphKernel, Pipeline, str or None, default=None
        The kernel, or its name; None: as in :class:`KernelDistances`.

    Returns
    -------
    pandas.DataFrame
        The columns "to" (the name of the given graph, or else its position), "graph" (position in the collection), "name"
        (if the collection has names) and "similarity", the normalized kernel: 1 for graphs that the kernel does not tell apart.
        The most similar come first; ties are in the order of the collection.

    Examples
    --------
    >>> from treegram import Graphs, similar_graphs
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)], [(0, 2), (2, 1)]], graph_names=["path", "triangle", "bent"]
    ... )
    >>> similar_graphs(graphs, "path", k=1, kernel="wl")
         to  graph  name  similarity
    0  path      2  bent         1.0
    """
    graphs = as_graphs(graphs)
    check_value("k", "similar_graphs", k, (Whole(1),))
    entries = [to] if isinstance(to, int | str | np.integer) else to
    positions = None
    if not isinstance(entries, Graphs) and all(isinstance(entry, int | str | np.integer) for entry in entries):
        positions = np.array([_position(graphs, entry) for entry in entries], np.int64)
    queries = as_graphs(entries) if positions is None else graphs[positions]
    fitted = kernel_or_default(kernel, graphs).fit(graphs)
    similarities = fitted.transform(queries) * inverse_roots(_self_kernels(fitted, queries))[:, None]
    similarities *= inverse_roots(_self_kernels(fitted, graphs))
    k = min(int(k), len(graphs) - (positions is not None))
    if positions is not None:
        similarities[np.arange(len(positions)), positions] = -np.inf
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    numbers = np.arange(len(queries)) if positions is None else positions
    names = numbers.tolist() if queries.graph_names is None else list(map(str, queries.graph_names))
    table: dict[str, Any] = {"to": np.repeat(np.array(names, dtype=object), k), "graph": order.ravel()}
    if graphs.graph_names is not None:
        table["name"] = np.asarray(graphs.graph_names, dtype=object)[order.ravel()]
    table["similarity"] = np.take_along_axis(similarities, order, axis=1).ravel()
    return optional_module("pandas", "Data frames").DataFrame(table)


def _position(graphs: Graphs, entry: Any) -> int:
    """Return the position of a graph that is given by its position or its name."""
    if not isinstance(entry, str):
        return int(graphs._graph_numbers(entry)[0])
    names = [] if graphs.graph_names is None else list(map(str, graphs.graph_names))
    if names.count(entry) != 1:
        raise ParameterError(
            f"to must name one graph of the collection; {names.count(entry)} are named {entry!r}{suggest(entry, names)}"
        )
    return names.index(entry)


# -------------------------------------------------------------------- kernels


def kernel_or_default(kernel: Any, graphs: Graphs) -> Any:
    """Return a copy of a kernel, the kernel of this name or, for None, the default for these graphs."""
    if kernel is None:
        return _default_kernel(graphs)
    if isinstance(kernel, str):
        return kernel_by_name(kernel)
    split_pipeline(kernel)
    return clone(kernel)


def _default_kernel(graphs: Graphs) -> KernelSum:
    """Return the kernel of the highest nearest neighbor accuracy in ``benchmarks/explore_design.py``."""
    bonds = graphs.edge_labels is not None
    colors: Any = WLOA(3, normalize="tanimoto", use_edge_labels=bonds)
    parts = [colors, StatisticsKernel()]
    if graphs.n_attributes:
        parts[0] = make_pipeline(DropAttributes(), colors)
        parts.append(make_pipeline(ScaleAttributes("robust"), WLCL(1, gamma="narrow", use_edge_labels=bonds)))
    return KernelSum(parts)


def _self_kernels(kernel: Any, graphs: Graphs) -> Floats:
    """Return the kernel of each graph with itself, after the transformers of a pipeline."""
    final, view = through_pipeline(kernel, graphs)
    return final.diag(view)


def _distances(K: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the distances of graphs from their kernels K with each other, and with themselves."""
    sums = rows[:, None] + columns
    squares = sums - 2.0 * K
    squares[squares <= _ROUNDING * sums] = 0.0
    return np.sqrt(squares)
