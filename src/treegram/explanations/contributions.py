"""Exact explanations: a decision as a sum over the nodes, the features or the fitted graphs that made it.

Kernels here are sums over nodes, and a decision is a weighted sum of kernels, so it is a sum over nodes as well. Nothing is
sampled, fitted or approximated: the parts add up to the decision. How a kernel divides its sum among nodes is in the kernels
(``_node_shares``); here is what models make of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import ParameterError
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels import FeatureMap, KernelSum, Nystroem, ODDCLFeatures
from treegram.kernels.base import inverse_roots
from treegram.kernels.explicit import HasFeatures
from treegram.kernels.pipelines import split_pipeline
from treegram.models import GraphGP, GraphRidge, GraphSVC

__all__ = ["Explanation", "explain", "split_model"]


@dataclass(frozen=True)
class FeatureTable:
    """What each feature of some graphs adds."""

    shares: tuple[sp.csr_matrix, ...]  # (n_graphs, n_features) for each output
    read_name: Callable[[int], str]  # of a column, on demand: names take longer than numbers


@dataclass(frozen=True)
class Explanation:
    """What the parts of graphs add to the decisions of a model: see :func:`explain`, which makes it.

    Every view adds up, with the intercept, to the decision. Where the model gives one number for each graph, the axis
    ``n_outputs`` is left out.

    Attributes
    ----------
    outputs : tuple
        What the numbers speak for: the second of two classes; pairs (a, b) of classes, above 0 for a; the classes of a linear
        model; or "prediction" for a regressor.
    intercept : ndarray of shape (n_outputs,)
        What is added to the sum of all parts.
    decisions : ndarray of shape (n_graphs,) or (n_graphs, n_outputs)
        What the model says of each graph: the sum of its nodes and the intercept.
    nodes : list of ndarray of shape (n_nodes,) or (n_nodes, n_outputs)
        For each graph what its nodes add.
    graphs : ndarray of shape (n_graphs, n_fitted) or (n_graphs, n_fitted, n_outputs), or None
        What each fitted graph (of :class:`Nystroem`: each landmark) adds: above 0, it speaks for the output. None for linear
        models on a :class:`FeatureMap` or :class:`ODDCLFeatures`, which do not compare with fitted graphs.
    features : csr_matrix of shape (n_graphs, n_features), tuple of these, or None
        What each feature adds, one matrix for each output; on :class:`ODDCLFeatures`, each tree of the explained graphs. None
        for a kernel without explicit features.
    feature_names : list of str or None
        What the columns of ``features`` count.
    error : float
        The largest difference between the sum over nodes and that over fitted graphs, which is how the model decides (linear
        models: over features). It is rounding.
    """

    outputs: tuple[Any, ...]
    intercept: Floats
    _offsets: Ints = field(repr=False)
    _node_shares: Floats = field(repr=False)  # (n_nodes, n_outputs)
    _weights: Floats = field(
        repr=False
    )  # of the fitted graphs, or of the columns of a linear model, (n_columns, n_outputs)
    _has_graphs: bool = field(repr=False)  # whether columns are fitted graphs
    # On demand, as each costs another pass: the rows from which the model decides, and the table of features.
    _read_rows: Callable[[], Any] = field(repr=False)
    _read_table: Callable[[], FeatureTable | None] = field(repr=False)

    @property
    def decisions(self) -> Floats:
        """What the nodes of each graph and the intercept add up to."""
        ids = np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))
        sums = np.tile(self.intercept, (len(self._offsets) - 1, 1))
        np.add.at(sums, ids, self._node_shares)
        return self._squeezed(sums)

    @property
    def nodes(self) -> list[Floats]:
        """For each graph what its nodes add."""
        return np.split(self._squeezed(self._node_shares), self._offsets[1:-1]) if len(self._offsets) > 1 else []

    @property
    def graphs(self) -> Floats | None:
        """What each fitted graph adds."""
        return self._squeezed(self._rows[:, :, None] * self._weights) if self._has_graphs else None

    @cached_property
    def _rows(self) -> Any:
        return self._read_rows()

    @cached_property
    def _table(self) -> FeatureTable | None:
        return self._read_table()

    @property
    def features(self) -> Any:
        """What each feature adds."""
        if self._table is None:
            return None
        return self._table.shares[0] if len(self.outputs) == 1 else self._table.shares

    @property
    def feature_names(self) -> list[str] | None:
        """What the columns of ``features`` count."""
        if self._table is None:
            return None
        return [self._table.read_name(column) for column in range(self._table.shares[0].shape[1])]

    @property
    def error(self) -> float:
        """The largest difference between the sum over nodes and that from which the model decides."""
        sums = self._rows @ self._weights
        return float(np.abs(self._squeezed(sums + self.intercept) - self.decisions).max(initial=0.0))

    def top_features(self, graph: int, n: int = 10, *, output: int = 0) -> list[tuple[str, float]]:
        """The features that add most to a decision, for or against.

        Parameters
        ----------
        graph : int
            Which of the explained graphs.
        n : int, default=10
            How many features.
        output : int, default=0
            Which of ``outputs``.

        Returns
        -------
        list of (str, float)
            Name and share of each, the largest first; empty for a kernel without explicit features.
        """
        if self._table is None:
            return []
        shares = self._table.shares[output][[graph]].toarray()[0]
        order = np.argsort(-np.abs(shares), kind="stable")[:n]
        return [(self._table.read_name(column), float(shares[column])) for column in order.tolist() if shares[column]]

    def _squeezed(self, values: Floats) -> Floats:
        return values[..., 0] if len(self.outputs) == 1 else values


def explain(model: Any, X: Any, *, spread: bool = False) -> Explanation:
    r"""Say which nodes, features and fitted graphs made the decisions of a fitted model, exactly.

    A kernel that is a sum over nodes makes each decision one, :math:`f(G) = b + \sum_{v \in G} s_v`. The shares
    :math:`s_v` are found in one pass that sums each node as a graph of its own.

    Parameters
    ----------
    model : GraphSVC, GraphRidge, GraphGP or Pipeline
        The fitted model, or a fitted pipeline of transformers that ends in one, or in a :class:`FeatureMap`,
        :class:`ODDCLFeatures` or :class:`Nystroem` and a linear model. Its kernel must be CSM, GIK, GraphHopper, NSPDK, ODDCL,
        ODDST, P2K, ShortestPath, WL, WLCL or WLOA, or a sum or pipeline of these.
    X : Graphs or list of graphs
        The graphs to explain, new or not; molecules for a pipeline that begins with :class:`MoleculeGraphs`.
    spread : bool, default=False
        Whether what a tree adds is shared evenly by all nodes of the tree, rather than given to its root. For kernels of trees
        and colors: ODDCL, ODDCLFeatures, ODDST, WL, WLCL and WLOA.

    Returns
    -------
    Explanation
        Shares of nodes, features and fitted graphs, which add up to the decisions.

    Notes
    -----
    For two classes shares add up to ``decision_function``, above 0 for the second class. For more, GraphSVC decides between
    the classes of each pair, and the shares are those of each pair's decision. A pair of nodes (ShortestPath, NSPDK) counts
    half for each; of a directed pair of NSPDK, all counts for the first. Nodes of one color share equally what WLOA gives to
    their number. Time is about that of two calls of ``decision_function``; the views by fitted graph and by feature are computed
    when they are first asked for.

    Examples
    --------
    >>> from treegram import WL, Graphs, GraphRidge, explain
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)], []], labels=[["C", "C", "O"], ["C", "C"], ["O"]])
    >>> kernel = WL(n_iterations=1, normalize=False)
    >>> model = GraphRidge(kernel, grid={}, alpha=0.001, cv=2).fit(graphs, [1.0, 0.0, 1.0])
    >>> found = explain(model, graphs[:1])
    >>> found.nodes[0].round(2)
    array([-0.33,  0.17,  0.5 ])
    >>> bool(abs(found.nodes[0].sum() + found.intercept[0] - model.predict(graphs[:1])[0]) < 1e-9)
    True
    """
    steps, rows, final = split_model(model)
    weights, intercept, outputs = _read_model(final) if rows is None else _read_linear(final)
    if isinstance(rows, Nystroem):
        weights = rows._landmark_weights(weights)
    source: Any = rows  # of what nodes add, and of the rows from which the model decides
    if not isinstance(rows, ODDCLFeatures):
        inner, source = split_pipeline((rows or final).kernel_)
        steps += inner
    for step in steps:
        X = step.transform(X)
    graphs: Graphs = source._check_like_fitted(as_graphs(X)) if source is not rows else as_graphs(X)
    read_table: Callable[[], FeatureTable | None] = partial(_read_columns, source, graphs, weights)
    if isinstance(rows, FeatureMap):
        shares, read_rows = source._column_shares(graphs, weights, spread=spread), source.features
    else:
        shares, read_rows = source._node_shares(graphs, weights, spread=spread), source.transform
        read_table = partial(_feature_table, source, graphs, weights)
    has_graphs = not isinstance(rows, FeatureMap | ODDCLFeatures)
    read_rows = partial(read_rows, graphs)
    return Explanation(outputs, intercept, graphs.offsets, shares, weights, has_graphs, read_rows, read_table)


def split_model(model: Any) -> tuple[list[Any], FeatureMap | Nystroem | ODDCLFeatures | None, Any]:
    """The transformers of graphs before a model, what makes rows for it if it is a linear one, and the model itself."""
    *steps, final = _flat_steps(model)
    rows = steps.pop() if steps and isinstance(steps[-1], FeatureMap | Nystroem | ODDCLFeatures) else None
    return steps, rows, final


def _flat_steps(model: Any) -> list[Any]:
    """The steps of a pipeline, also of one within it; a model that is none is its only step."""
    if not isinstance(model, Pipeline):
        return [model]
    steps = (step for _, step in model.steps if step is not None and step != "passthrough")
    return [flat for step in steps for flat in _flat_steps(step)]


# -------------------------------------------------------------------- what models are made of


def _read_model(model: Any) -> tuple[Floats, Floats, tuple[Any, ...]]:
    """Weights of the fitted graphs (n_fitted, n_outputs), intercepts and the names of the outputs."""
    if not isinstance(model, GraphSVC | GraphRidge | GraphGP):
        raise ParameterError(
            "model of explain must be a GraphSVC, GraphRidge or GraphGP, a linear model on the rows of a FeatureMap, of "
            f"ODDCLFeatures or of Nystroem, or a pipeline that ends in one of these; got {model!r}."
        )
    check_is_fitted(model)
    if isinstance(model, GraphSVC):
        return _read_machines(model)
    return model.dual_coef_[:, None], np.array([model.intercept_]), ("prediction",)


def _read_machines(model: GraphSVC) -> tuple[Floats, Floats, tuple[Any, ...]]:
    if model.solver == "landmarks":
        raise ParameterError("A GraphSVC with solver='landmarks' cannot be explained; fit one with solver='exact'.")
    classes = model.classes_.tolist()
    pairs = list(combinations(range(len(classes)), 2))
    starts = np.concatenate([[0], np.cumsum(model.n_support_)])
    weights = np.zeros((len(split_pipeline(model.kernel_)[1].graphs_), len(pairs)))
    for pair, (i, j) in enumerate(pairs):
        for own, row in ((i, j - 1), (j, i)):  # where a class keeps its coefficients against the other
            members = slice(starts[own], starts[own + 1])
            weights[model.support_[members], pair] = model.dual_coef_[row, members]
    if len(classes) == 2:
        return -weights, -model.intercept_, (classes[1],)
    return weights, model.intercept_, tuple((classes[i], classes[j]) for i, j in pairs)


def _read_linear(linear: Any) -> tuple[Floats, Floats, tuple[Any, ...]]:
    """Weights of the features (n_features, n_outputs), intercepts and the names of the outputs."""
    if not hasattr(linear, "coef_") or hasattr(linear, "dual_coef_"):  # SVC has both, and decides by pairs of classes
        raise ParameterError(
            "The last step of a pipeline to explain must be a fitted linear model, with coef_, such as LogisticRegression, "
            f"LinearSVC or Ridge; got {linear!r}."
        )
    coef = linear.coef_.toarray() if sp.issparse(linear.coef_) else linear.coef_  # after sparsify()
    weights = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
    intercept = np.broadcast_to(np.asarray(linear.intercept_, dtype=np.float64), (weights.shape[1],))
    if not hasattr(linear, "classes_"):
        names = ("prediction",) if weights.shape[1] == 1 else tuple(range(weights.shape[1]))
        return weights, intercept, names
    classes = tuple(linear.classes_.tolist())
    return weights, intercept, classes[1:] if len(classes) == 2 else classes


def _read_columns(kernel: HasFeatures, graphs: Graphs, weights: Floats) -> FeatureTable:
    return FeatureTable(_weigh_columns(kernel.features(graphs), weights), kernel._name_reader())


def _weigh_columns(rows: sp.csr_matrix, weights: Floats) -> tuple[sp.csr_matrix, ...]:
    """Rows of features times the worth of each feature, for each output."""
    return tuple((rows @ sp.diags(column)).tocsr() for column in weights.T)


def _feature_table(kernel: Any, graphs: Graphs, weights: Floats) -> FeatureTable | None:
    """What the features of an explicit kernel, or of a sum of these, add; None for any other kernel."""
    if isinstance(kernel, ODDCLFeatures):
        return FeatureTable(*kernel._feature_shares(graphs, weights))
    if isinstance(kernel, HasFeatures):
        return _read_columns(kernel, graphs, kernel._feature_weights(weights))
    if not isinstance(kernel, KernelSum):
        return None
    tables, finals = [], []
    if kernel._self_kernels is not None:
        weights = weights * inverse_roots(kernel._self_kernels.reshape(-1))[:, None]
    for part in kernel.kernels_:
        steps, final = split_pipeline(part)
        seen = graphs
        for step in steps:
            seen = step.transform(seen)
        table = _feature_table(final, seen, weights)
        if table is None:
            return None
        tables.append(table)
        finals.append(type(final).__name__)
    own = inverse_roots(kernel._self_sums(kernel._describe(graphs, {}))) if kernel.normalize else np.ones(len(graphs))
    shares = tuple(
        (sp.diags(own) @ sp.hstack(parts)).tocsr() for parts in zip(*(table.shares for table in tables), strict=True)
    )
    starts = np.cumsum([0, *(table.shares[0].shape[1] for table in tables)])

    def read_name(column: int) -> str:
        part = int(np.searchsorted(starts, column, side="right")) - 1
        return f"{finals[part]}: {tables[part].read_name(column - int(starts[part]))}"

    return FeatureTable(shares, read_name)
