"""Exact explanations: split a decision into contributions of nodes, features or training graphs.

Kernels here are sums over nodes, and a decision is a weighted sum of kernels, so it is a sum over nodes as well. Nothing is
sampled, fitted or approximated: the contributions add up to the decision. The kernels split their own sums over nodes
(``_node_contributions``); this module applies the weights of the models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import ParameterError
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels import FeatureMap, KernelSum, Nystroem, ODDCLFeatures
from treegram.kernels.base import inverse_roots
from treegram.kernels.explicit import HasFeatures
from treegram.kernels.grid import split_pipeline
from treegram.models import GraphGP, GraphRidge, GraphSVC
from treegram.structure.hashing import arc_hashes, node_hashes

__all__ = ["Explanation", "explain"]

_SHOWN_IN_NOTEBOOKS = 10  # graphs


def explain(model: Any, X: Any, *, attribute_to: str = "tree") -> Explanation:
    r"""Split the decisions of a fitted model into exact contributions of nodes, features and training graphs.

    A kernel that is a sum over nodes turns each decision into one, :math:`f(G) = b + \sum_{v \in G} c_v`. The contributions
    :math:`c_v` are computed in one pass that treats each node as a graph of its own.

    Parameters
    ----------
    model : GraphSVC, GraphRidge, GraphGP or Pipeline
        The fitted model; or a fitted pipeline of transformers that ends in one, or in a :class:`FeatureMap`,
        :class:`ODDCLFeatures` or :class:`Nystroem` followed by a linear model. Its kernel must be CSM, GIK, GraphHopper,
        NSPDK, ODDCL, ODDST, P2K, ShortestPath, WL, WLCL or WLOA, or a sum or pipeline of these.
    X : Graphs or list of graphs
        The graphs to explain, new or not; molecules for a pipeline that begins with :class:`MoleculeGraphs`.
    attribute_to : {"tree", "root"}, default="tree"
        Where the contribution of a tree or WL color goes: split evenly among all nodes of the tree, or to its root alone.
        Planted motifs are found better with "tree". Kernels without trees (CSM, GIK, GraphHopper, NSPDK, P2K, ShortestPath)
        attribute to the node itself in both cases.

    Returns
    -------
    Explanation
        Contributions of nodes, features and training graphs, which add up to the decisions.

    Notes
    -----
    For two classes, contributions add up to ``decision_function``, where positive values favor the second class. For more,
    GraphSVC decides between the classes of each pair, and there are contributions to each pair's decision. A pair of nodes
    (ShortestPath, NSPDK) counts half for each; a directed pair of NSPDK counts for its first node alone. Nodes of the same
    color share equally what WLOA assigns to their number. The time is about that of two calls of ``decision_function``;
    contributions of training graphs and of features are computed when they are first needed.

    Examples
    --------
    >>> from treegram import WL, Graphs, GraphRidge, explain
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)], []], labels=[["C", "C", "O"], ["C", "C"], ["O"]])
    >>> kernel = WL(n_iterations=1, normalize=False)
    >>> model = GraphRidge(kernel, param_grid={}, alpha=0.001, cv=2).fit(graphs, [1.0, 0.0, 1.0])
    >>> explanation = explain(model, graphs[:1], attribute_to="root")
    >>> contributions = explanation.node_contributions[0]
    >>> contributions.round(2)
    array([-0.33,  0.17,  0.5 ])
    >>> bool(abs(contributions.sum() + explanation.intercept[0] - model.predict(graphs[:1])[0]) < 1e-9)
    True
    """
    if attribute_to not in ("tree", "root"):
        raise ParameterError(f"attribute_to of explain must be 'tree' or 'root'; got {attribute_to!r}.")
    steps, features, final = split_model(model)
    weights, intercept, outputs = _graph_model_weights(final) if features is None else _linear_weights(final)
    kernel: Any = features
    if not isinstance(features, ODDCLFeatures):
        inner, kernel = split_pipeline((features or final).kernel_)
        steps += inner
    # Compiled code reads one weight per column without looking at their number.
    _check_weights(weights, outputs, len(kernel.graphs_) if features is None else features.n_features_out_, final)
    if isinstance(features, Nystroem):
        weights = features._component_weights(weights)
    graphs, seen = None, X
    for step in steps:
        graphs = seen if graphs is None and isinstance(seen, Graphs) else graphs
        seen = step.transform(seen)
    seen = as_graphs(seen) if kernel is features else kernel._check_like_fitted(as_graphs(seen))
    if graphs is None or not np.array_equal(graphs.offsets, seen.offsets):
        graphs = seen
    split_nodes = kernel._column_contributions if isinstance(features, FeatureMap) else kernel._node_contributions
    return Explanation(
        outputs=outputs,
        intercept=intercept,
        graphs=graphs,
        attribute_to=attribute_to,
        _model=model,
        _X=X,
        _features=features,
        _kernel=kernel,
        _seen=seen,
        _weights=weights,
        _node_values=split_nodes(seen, weights, spread=attribute_to == "tree"),
    )


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Contributions to the decisions of a model; made by :func:`explain`.

    The contributions of all nodes of a graph, of all features, or of all training graphs add up, with the intercept, to the
    decision. If the model gives one number for each graph, the axis ``n_outputs`` is left out.

    Attributes
    ----------
    outputs : tuple
        What positive numbers favor: the second of two classes; the first of a pair (a, b) of classes; a class of a linear
        model; or "prediction" for a regressor.
    intercept : ndarray of shape (n_outputs,)
        Number that is added to the sum of all contributions.
    graphs : Graphs
        The explained graphs.
    attribute_to : {"tree", "root"}
        Where the contributions of trees went.
    decisions : ndarray of shape (n_graphs,) or (n_graphs, n_outputs)
        Sum of the contributions of each graph's nodes, and the intercept.
    predictions : ndarray of shape (n_graphs,)
        Predictions of the model.
    in_training : ndarray of bool of shape (n_graphs,), or None
        True for graphs that the model was fitted on (equal node by node): that it predicts these well says nothing about new
        graphs. None if the model does not keep its training graphs (:class:`Nystroem`, :class:`ODDCLFeatures`).
    node_contributions : list of ndarray of shape (n_nodes,) or (n_nodes, n_outputs)
        Contribution of each node, for each graph.
    graph_contributions : ndarray of shape (n_graphs, n_training) or (n_graphs, n_training, n_outputs), or None
        Contribution of each training graph (of :class:`Nystroem`: each component). None for linear models on a
        :class:`FeatureMap` or :class:`ODDCLFeatures`, which do not compare with training graphs.
    feature_contributions : csr_matrix of shape (n_graphs, n_features), tuple of these, or None
        Contribution of each feature, one matrix for each output; for :class:`ODDCLFeatures`, of each tree of the explained
        graphs. None for a kernel without explicit features.
    feature_names : list of str or None
        Names of the columns of ``feature_contributions``.
    residual : float
        Largest difference between the sum over nodes and the sum over training graphs (linear models: over features), which
        is how the model decides. It is rounding error.
    """

    outputs: tuple[Any, ...]
    intercept: Floats
    graphs: Graphs
    attribute_to: str
    _model: Any
    _X: Any
    _features: FeatureMap | Nystroem | ODDCLFeatures | None
    _kernel: Any  # the fitted kernel at the end of all steps; for ODDCLFeatures, itself
    _seen: Graphs  # the graphs as the kernel receives them
    _weights: Floats  # of training graphs or, for linear models on features, of columns: (n_columns, n_outputs)
    _node_values: Floats  # (n_nodes, n_outputs)

    @property
    def decisions(self) -> Floats:
        """Sum of the contributions of each graph's nodes, and the intercept."""
        sums = np.tile(self.intercept, (len(self.graphs), 1))
        np.add.at(sums, self.graphs.graph_ids, self._node_values)
        return self._squeeze(sums)

    @cached_property
    def predictions(self) -> NDArray[Any]:
        """Predictions of the model."""
        predictions: NDArray[Any] = self._model.predict(self._X)
        return predictions

    @property
    def in_training(self) -> NDArray[np.bool_] | None:
        """True for graphs that the model was fitted on; None if it does not keep its training graphs."""
        return None if self._training_indices is None else self._training_indices >= 0

    @property
    def node_contributions(self) -> list[Floats]:
        """Contribution of each node, for each graph."""
        offsets = self.graphs.offsets
        return np.split(self._squeeze(self._node_values), offsets[1:-1]) if len(offsets) > 1 else []

    @property
    def graph_contributions(self) -> Floats | None:
        """Contribution of each training graph."""
        return self._squeeze(self._rows[:, :, None] * self._weights) if self._compares_graphs else None

    @property
    def feature_contributions(self) -> Any:
        """Contribution of each feature."""
        if self._table is None:
            return None
        return self._table.values[0] if len(self.outputs) == 1 else self._table.values

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns of ``feature_contributions``."""
        if self._table is None:
            return None
        return [self._table.name_of(column) for column in range(self._table.values[0].shape[1])]

    @property
    def residual(self) -> float:
        """Largest difference between the sum over nodes and the sum from which the model decides."""
        sums = self._squeeze(self._rows @ self._weights + self.intercept)
        return float(np.abs(sums - self.decisions).max(initial=0.0))

    def top_features(self, graph: int, n: int = 10, *, output: int | None = None) -> list[tuple[str, float]]:
        """Return the features that contribute most to a decision, in either direction.

        Parameters
        ----------
        graph : int
            Index of the explained graph.
        n : int, default=10
            Largest number of features.
        output : int or None, default=None
            Index in ``outputs``. None: for more than two classes, the predicted class against the next best.

        Returns
        -------
        list of (str, float)
            Name and contribution of each, the largest first; empty for a kernel without explicit features.
        """
        if self._table is None:
            return []
        values = self._feature_values(graph, self._contrast(graph, output))
        order = np.argsort(-np.abs(values), kind="stable")[:n]
        return [(self._table.name_of(column), float(values[column])) for column in order.tolist() if values[column]]

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        y: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
        molecules: Sequence[Any] | None = None,
        title: str = "Explained predictions",
        source: str = "",
    ) -> None:
        """Write predictions and their explanations as one HTML page.

        The page has a table of predictions and, for each graph, a picture with its nodes colored by their contributions, the
        nodes and features that contribute most, the most similar training graphs, and a check that the contributions add
        up. It needs no network, runs no scripts, and treats names and labels as text.

        Parameters
        ----------
        path : str or path
            The file to write. An existing file is replaced once the page is complete.
        y : array-like of shape (n_graphs,), optional
            The true classes or numbers; by default the targets of the graphs, if any.
        numbers : array-like of int of shape (n_graphs,), optional
            Numbers by which the page calls the graphs, such as their positions in a larger collection; by default 0, 1, ...
        molecules : sequence of RDKit molecules or str, optional
            Molecule or SMILES of each graph: RDKit then draws it. Its atoms must be the graph's nodes, in their order.
        title : str, default="Explained predictions"
            Title of the page.
        source : str, default=""
            Where model and graphs come from, for the end of the page.

        Notes
        -----
        For two classes, positive decisions and red nodes favor the second. For more, the page shows the decision between the
        predicted class and the next best.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from treegram import WLOA, GraphSVC, explain, make_motifs
        >>> graphs, y, _ = make_motifs(20, random_state=0)
        >>> model = GraphSVC(WLOA(), param_grid={}, C=1, cv=2).fit(graphs[2:], y[2:])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explain(model, graphs[:2]).to_html(Path(folder) / "page.html")
        ...     page = (Path(folder) / "page.html").read_text()
        >>> page.count("<article")
        2
        """
        from treegram.explanations.page import write_page

        write_page(self, path, y=y, numbers=numbers, molecules=molecules, title=title, source=source)

    def _contrast(self, graph: int, output: int | None = None) -> Contrast:
        """Return the two sides of an output; by default, for more than two classes, of the predicted against the next best."""
        if not -len(self.graphs) <= graph < len(self.graphs):
            raise IndexError(f"The index of the graph must be from 0 to {len(self.graphs) - 1}; got {graph}.")
        if output is not None and not 0 <= output < len(self.outputs):
            raise IndexError(f"output must be a number from 0 to {len(self.outputs) - 1}; got {output}.")
        if output is None and self._is_classifier and len(self.outputs) > 1:
            return self._contrasts[graph]
        name = self.outputs[output or 0]
        if isinstance(name, tuple):
            above, below = map(str, name)
        elif not self._is_classifier:
            above, below = "a higher prediction", "a lower prediction"
        else:
            above, below = str(name), str(self._model.classes_[0]) if len(self.outputs) == 1 else "all other classes"
        return Contrast(above, below, np.eye(len(self.outputs))[output or 0])

    def __repr__(self) -> str:
        sizes = f"{counted(len(self.graphs), 'graph')}, {counted(len(self.outputs), 'output')}"
        return f"Explanation({sizes}, attribute_to={self.attribute_to!r})"

    def _repr_html_(self) -> str:
        from treegram.explanations.page import render_summary

        return render_summary(self, _SHOWN_IN_NOTEBOOKS)

    def _node_values_of(self, graph: int, contrast: Contrast) -> Floats:
        """Return the contributions of a graph's nodes to one decision."""
        first, last = self.graphs.offsets[:-1][graph], self.graphs.offsets[1:][graph]
        values: Floats = self._node_values[first:last] @ contrast.combine
        return values

    def _feature_values(self, graph: int, contrast: Contrast) -> Floats:
        """Return the contributions of all features to one decision."""
        assert self._table is not None
        used = np.flatnonzero(contrast.combine).tolist()
        rows = [contrast.combine[output] * self._table.values[output][[graph]].toarray()[0] for output in used]
        values: Floats = np.sum(rows, axis=0)
        return values

    # ---------------------------------------------------------------- computed on demand: each costs another pass

    @property
    def _compares_graphs(self) -> bool:
        return self._features is None or isinstance(self._features, Nystroem)

    @property
    def _is_classifier(self) -> bool:
        return hasattr(self._model, "classes_")

    @cached_property
    def _rows(self) -> Any:
        """Rows from which the model decides: kernel values with the training graphs, or features."""
        read = self._kernel._feature_rows if isinstance(self._features, FeatureMap) else self._kernel.transform
        return read(self._seen)

    @cached_property
    def _table(self) -> FeatureTable | None:
        if isinstance(self._features, FeatureMap):
            return FeatureTable(_weigh_columns(self._rows, self._weights), self._kernel._name_reader())
        return _tabulate_features(self._kernel, self._seen, self._weights)

    @cached_property
    def _contrasts(self) -> list[Contrast]:
        """The predicted one of several classes against the next best, for each graph."""
        names = self._model.classes_.tolist()
        pairs = {pair: k for k, pair in enumerate(combinations(range(len(names)), 2))}
        has_pairs = isinstance(self.outputs[0], tuple)
        scores = np.array(self._model.decision_function(self._X) if has_pairs else self.decisions)
        best = np.searchsorted(self._model.classes_, self.predictions)
        scores[np.arange(len(scores)), best] = -np.inf
        contrasts = []
        for first, second in zip(best.tolist(), scores.argmax(axis=1).tolist(), strict=True):
            combine = np.zeros(len(self.outputs))
            if has_pairs:
                combine[pairs[min(first, second), max(first, second)]] = 1.0 if first < second else -1.0
            else:
                combine[first], combine[second] = 1.0, -1.0
            contrasts.append(Contrast(str(names[first]), str(names[second]), combine))
        return contrasts

    @cached_property
    def _training_indices(self) -> Ints | None:
        """Position of each explained graph among the training graphs, -1 if it is not there."""
        if isinstance(self._features, Nystroem | ODDCLFeatures):
            return None
        known = {digest: index for index, digest in reversed(list(enumerate(_graph_digests(self._kernel.graphs_))))}
        return np.array([known.get(digest, -1) for digest in _graph_digests(self._seen)], dtype=np.int64)

    def _squeeze(self, values: Floats) -> Floats:
        return values[..., 0] if len(self.outputs) == 1 else values


@dataclass(frozen=True)
class Contrast:
    """Two sides of a decision, and the weights that combine the outputs of an explanation into it."""

    above: str  # what positive numbers favor
    below: str
    combine: Floats  # (n_outputs,)


@dataclass(frozen=True)
class FeatureTable:
    """Contributions of the features of some graphs."""

    values: tuple[sp.csr_matrix, ...]  # (n_graphs, n_features) for each output
    name_of: Callable[[int], str]  # of a column, on demand: names take longer than numbers


# -------------------------------------------------------------------- parts of models


def split_model(model: Any) -> tuple[list[Any], FeatureMap | Nystroem | ODDCLFeatures | None, Any]:
    """Split a model into its transformers of graphs, its features if it is linear on such, and the final estimator."""
    *steps, final = _flatten_pipeline(model)
    features = steps.pop() if steps and isinstance(steps[-1], FeatureMap | Nystroem | ODDCLFeatures) else None
    return steps, features, final


def _flatten_pipeline(model: Any) -> list[Any]:
    """List the steps of a pipeline and of pipelines within it; a model that is not a pipeline is its only step."""
    if not isinstance(model, Pipeline):
        return [model]
    steps = (step for _, step in model.steps if step is not None and step != "passthrough")
    return [flat for step in steps for flat in _flatten_pipeline(step)]


def _graph_model_weights(model: Any) -> tuple[Floats, Floats, tuple[Any, ...]]:
    """Return the weights of the training graphs (n_training, n_outputs), intercepts and the names of the outputs."""
    if not isinstance(model, GraphSVC | GraphRidge | GraphGP):
        raise ParameterError(
            "model of explain must be a GraphSVC, GraphRidge or GraphGP, a linear model on the rows of a FeatureMap, of "
            f"ODDCLFeatures or of Nystroem, or a pipeline that ends in one of these; got {model!r}."
        )
    check_is_fitted(model)
    if not isinstance(model, GraphSVC):
        return model.dual_coef_[:, None], np.array([model.intercept_]), ("prediction",)
    classes = model.classes_.tolist()
    pairs = list(combinations(range(len(classes)), 2))
    starts = np.concatenate([[0], np.cumsum(model.n_support_)])
    weights = np.zeros((len(split_pipeline(model.kernel_)[1].graphs_), len(pairs)))
    for pair, (i, j) in enumerate(pairs):
        for own, row in ((i, j - 1), (j, i)):  # the row with the coefficients of a class against the other
            members = slice(starts[own], starts[own + 1])
            weights[model.support_[members], pair] = model.dual_coef_[row, members]
    if len(classes) == 2:
        return -weights, -model.intercept_, (classes[1],)
    return weights, model.intercept_, tuple((classes[i], classes[j]) for i, j in pairs)


def _linear_weights(linear: Any) -> tuple[Floats, Floats, tuple[Any, ...]]:
    """Return the weights of the columns (n_columns, n_outputs), intercepts and the names of the outputs."""
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


def _check_weights(weights: Floats, outputs: tuple[Any, ...], n_columns: int | None, final: Any) -> None:
    if weights.shape != (n_columns, len(outputs)):
        raise ParameterError(
            f"The coefficients of {type(final).__name__} do not fit its input: {weights.shape[0]} for each of "
            f"{weights.shape[1]} outputs, but there are {n_columns} columns and {len(outputs)} outputs. Fit the whole model "
            "again."
        )


# -------------------------------------------------------------------- features


def _tabulate_features(kernel: Any, graphs: Graphs, weights: Floats) -> FeatureTable | None:
    """Return the contributions of the features of an explicit kernel, or of a sum of these; None for any other kernel."""
    if isinstance(kernel, ODDCLFeatures):
        return FeatureTable(*kernel._feature_contributions(graphs, weights))
    if isinstance(kernel, HasFeatures):
        values = _weigh_columns(kernel._feature_rows(graphs), kernel._feature_weights(weights))
        return FeatureTable(values, kernel._name_reader())
    if not isinstance(kernel, KernelSum):
        return None
    tables, names = [], []
    if kernel._self_kernels is not None:
        weights = weights * inverse_roots(kernel._self_kernels.reshape(-1))[:, None]
    for summand in kernel.kernels_:
        steps, final = split_pipeline(summand)
        seen = graphs
        for step in steps:
            seen = step.transform(seen)
        table = _tabulate_features(final, seen, weights)
        if table is None:
            return None
        tables.append(table)
        names.append(type(final).__name__)
    scales = np.ones(len(graphs))
    if kernel.normalize:
        scales = inverse_roots(kernel._self_sums(kernel._describe(graphs, {})))
    values = tuple(
        (sp.diags(scales) @ sp.hstack(blocks)).tocsr()
        for blocks in zip(*(table.values for table in tables), strict=True)
    )
    starts = np.cumsum([0, *(table.values[0].shape[1] for table in tables)])

    def name_of(column: int) -> str:
        summand = int(np.searchsorted(starts, column, side="right")) - 1
        return f"{names[summand]}: {tables[summand].name_of(column - int(starts[summand]))}"

    return FeatureTable(values, name_of)


def _weigh_columns(rows: sp.csr_matrix, weights: Floats) -> tuple[sp.csr_matrix, ...]:
    """Multiply the columns of features by their weights, for each output."""
    return tuple((rows @ sp.diags(column)).tocsr() for column in weights.T)


# -------------------------------------------------------------------- training graphs


def _graph_digests(graphs: Graphs) -> list[bytes]:
    """Return a digest of each graph: equal for graphs that are equal node by node, also in another collection."""
    at_nodes = [graphs.attributes, None if graphs.labels is None else node_hashes(graphs, "constant")]
    has_edge_labels = graphs.edge_labels is not None
    at_arcs = [graphs.edge_attributes, arc_hashes(graphs, use_edge_labels=True) if has_edge_labels else None]
    digests = []
    for first, last in zip(graphs.offsets[:-1].tolist(), graphs.offsets[1:].tolist(), strict=True):
        nodes, arcs = slice(first, last), slice(graphs.indptr[first], graphs.indptr[last])
        digest = blake2b(digest_size=16)
        arrays = [np.diff(graphs.indptr[first : last + 1]), graphs.indices[arcs].astype(np.int64) - first]
        arrays += [array[nodes] for array in at_nodes if array is not None]
        arrays += [array[arcs] for array in at_arcs if array is not None]
        for array in arrays:
            digest.update(f"{array.shape} ".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        digests.append(digest.digest())
    return digests
