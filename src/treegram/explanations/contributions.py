"""Exact explanations: split a decision into contributions of nodes and columns, of features, or of training graphs.

Most kernels here are sums over nodes, and a decision is a weighted sum of kernels, so it is a sum over nodes as well.
Nothing is sampled, fitted or approximated: the contributions add up to the decision. Kernels split their own sums over
nodes (``kernels.attribution``) or over the columns of a table (``_column_parts``); models list their kernels with
weights (``_decision_parts``).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.check import COLUMN_NAMES
from treegram.graphs.digest import digest_each
from treegram.kernels import FeatureMap, KernelSum, Nystroem
from treegram.kernels.attribution import column_weights, kernel_contributions
from treegram.kernels.explicit import HasFeatures
from treegram.models.base import flat_steps
from treegram.models.blocks import Block
from treegram.models.solver import one_against_rest
from treegram.models.targets import TargetScale
from treegram.pairsum.tiles import inverse_roots

__all__ = ["Explanation", "explain"]

CONSTANT = "constant"  # the last column name
_SHOWN_IN_NOTEBOOKS = 10  # graphs
_DIGITS = 6  # of vectors, relative to the largest value in their column: transformers may round the rest differently


def explain(model: Any, X: Any, *, attribute_to: str = "tree") -> Explanation:
    r"""Split the decisions of a fitted model into exact contributions of nodes, columns, features and training graphs.

    If the kernel is a sum over nodes, so is each decision: :math:`f(G) = b + \sum_{v \in G} c_v`. The contributions
    :math:`c_v` are computed in one pass that treats each node as its own graph.

    Parameters
    ----------
    model : GraphClassifier, GraphRegressor, GraphSVC, GraphRidge, GraphGP or Pipeline
        The fitted model; or a fitted pipeline of transformers that ends in one, or in a :class:`FeatureMap`
        or :class:`Nystroem` followed by a linear model. Its kernels must be sums over nodes,
        such as WL or ODDCL, or a :class:`StatisticsKernel`, or sums or pipelines of these; otherwise, an error lists
        the supported kernels.
    X : Graphs or list of graphs
        The graphs to explain, new or not; molecules for a pipeline that begins with :class:`MoleculeGraphs`.
    attribute_to : {"tree", "root"}, default="tree"
        Where the contribution of a tree or WL color goes: split evenly among all nodes of the tree, or to its root alone.
        Planted motifs are found better with "tree". Kernels without trees (CSM, GIK, GraphHopper, NSPDK, P2K, ShortestPath)
        attribute to the node itself in both cases.

    Returns
    -------
    Explanation
        Contributions of nodes and columns, of features, and of training graphs, which add up to the decisions.

    Notes
    -----
    Regressors with ``target_transform="auto"`` are sums on the scale of their targets: contributions add up there, and
    ``slopes`` converts them to units of the targets, to first order.

    For two classes, contributions add up to ``decision_function``, where positive values favor the second class. For more,
    GraphSVC decides between the classes of each pair, and there are contributions to each pair's decision. A pair of nodes
    (ShortestPath, NSPDK) counts half for each; a directed pair of NSPDK counts for its first node alone. Nodes of the same
    color share equally what WLOA assigns to their number. It takes one to four times as long as ``decision_function``, and
    CSM longer; contributions of training graphs and of features are computed when they are first needed.

    Examples
    --------
    >>> from treegram import WL, Graphs, GraphRidge, explain
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)], []], labels=[["C", "C", "O"], ["C", "C"], ["O"]])
    >>> kernel = WL(n_iterations=1, normalize=False)
    >>> model = GraphRidge(kernel, param_grid={}, alpha=0.001, cv=2).fit(graphs, [1.0, 0.0, 1.0])  # two values stay plain
    >>> explanation = explain(model, graphs[:1], attribute_to="root")
    >>> contributions = explanation.node_contributions[0]
    >>> contributions.round(2)
    array([-0.33,  0.17,  0.5 ])
    >>> bool(abs(contributions.sum() + explanation.intercept[0] - model.predict(graphs[:1])[0]) < 1e-9)
    True
    """
    if attribute_to not in ("tree", "root"):
        raise ParameterError(f"attribute_to of explain must be 'tree' or 'root'; got {attribute_to!r}.")
    graphs, parts, intercept, outputs = _read_model(model, X)
    leaves = [leaf for part in parts for leaf in part.leaves()]
    graphs = _choose_graphs(graphs, [leaf.graphs for leaf in leaves if not leaf.has_columns])
    node_values = np.zeros((graphs.n_nodes, len(outputs)))
    tables, constants = [np.zeros((len(graphs), 0, len(outputs)))], np.zeros((len(graphs), len(outputs)))
    names: list[str] = []
    for leaf in leaves:
        if leaf.has_columns:
            values, constant, of_columns = leaf.kernel._column_parts(leaf.graphs, leaf.weights)
            tables.append(values * leaf.factors[:, None, None])
            constants += leaf.factors[:, None] * constant
            names += map(str, of_columns)
        else:
            node_values += leaf.factors[graphs.graph_ids, None] * leaf.node_values(spread=attribute_to == "tree")
    return Explanation(
        outputs=outputs,
        intercept=intercept,
        graphs=graphs,
        attribute_to=attribute_to,
        column_names=(*names, CONSTANT) if names else (),
        _model=model,
        _X=X,
        _parts=parts,
        _leaves=leaves,
        _node_values=node_values,
        _column_values=np.concatenate([*tables, constants[:, None]] if names else tables, axis=1),
    )


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Contributions to the decisions of a model; made by :func:`explain`.

    The contributions of all nodes of a graph and of its columns, if there are any, add up, with the intercept, to the decision.
    So do those of all training graphs, and those of all features if every kernel of the model has explicit features. If the
    model gives one number for each graph, the axis ``n_outputs`` is left out.

    Attributes
    ----------
    outputs : tuple
        What positive numbers favor: the second of two classes; the first of a pair (a, b) of classes; a class, if the
        model has a decision for each; or "prediction" for a regressor.
    intercept : ndarray of shape (n_outputs,)
        Number added to the sum of all contributions.
    graphs : Graphs
        The explained graphs.
    attribute_to : {"tree", "root"}
        Where the contributions of trees went.
    decisions : ndarray of shape (n_graphs,) or (n_graphs, n_outputs)
        Sum of the contributions of each graph's nodes and columns, and the intercept.
    predictions : ndarray of shape (n_graphs,)
        Predictions of the model; of a regressor with a scale of targets, the decisions in units of the targets.
    target_scale : TargetScale or None
        The scale on which contributions and decisions of a regressor are, which prints in words; None for classifiers, and for
        contributions in units of the targets.
    slopes : ndarray of shape (n_graphs,)
        Units of the targets for one unit of the scale, at each prediction: a contribution times the slope is its effect in
        units of the targets, to first order. 1 without a scale.
    in_training : ndarray of bool of shape (n_graphs,), or None
        True for graphs that the model was fitted on (equal node by node): predicting these well says nothing about new
        graphs. None if the model does not keep its training graphs (:class:`Nystroem`, mapped rows of :class:`FeatureMap`).
    node_contributions : list of ndarray of shape (n_nodes,) or (n_nodes, n_outputs)
        Contribution of each node, for each graph.
    column_contributions : ndarray of shape (n_graphs, n_columns) or (n_graphs, n_columns, n_outputs), or None
        Contribution of each number of the whole graph; None for a model that uses none.
    column_names : tuple of str
        Names of these numbers. The last is "constant": the contribution of such a kernel for a graph with the same
        numbers as every training graph; the other contributions are due to differences from the training graphs.
    graph_contributions : ndarray of shape (n_graphs, n_training) or (n_graphs, n_training, n_outputs), or None
        Contribution of each training graph (of :class:`Nystroem`: each component). None for linear models on a
        :class:`FeatureMap`, which does not compare with training graphs.
    feature_contributions : csr_matrix of shape (n_graphs, n_features), tuple of these, or None
        Contribution of each feature of the kernels with explicit features, one matrix for each output; for
        mapped rows, of each feature of the explained graphs. None if no kernel has explicit features.
    feature_names : list of str or None
        Names of the columns of ``feature_contributions``.
    residual : float
        Largest difference between the sum over nodes and columns and the sum over training graphs (linear models: over
        features), which is how the model decides. It is rounding error.
    """

    outputs: tuple[Any, ...]
    intercept: Floats
    graphs: Graphs
    attribute_to: str
    column_names: tuple[str, ...]
    _model: Any
    _X: Any
    _parts: list[Part]
    _leaves: list[Part]  # the parts, with sums replaced by their summands
    _node_values: Floats  # (n_nodes, n_outputs)
    _column_values: Floats  # (n_graphs, n_columns, n_outputs)

    @property
    def decisions(self) -> Floats:
        """Sum of the contributions of each graph's nodes and columns, and the intercept."""
        sums = self.intercept + self._column_values.sum(axis=1)
        np.add.at(sums, self.graphs.graph_ids, self._node_values)
        return self._squeeze(sums)

    @cached_property
    def predictions(self) -> NDArray[Any]:
        """Predictions of the model."""
        return self._model.predict(self._X)

    @property
    def target_scale(self) -> TargetScale | None:
        """The scale on which contributions and decisions of a regressor are; None for units of the targets."""
        return getattr(split_model(self._model)[-1], "target_scale_", None)

    @property
    def slopes(self) -> Floats:
        """Units of the targets for one unit of the scale, at each prediction."""
        return np.ones(len(self.graphs)) if self.target_scale is None else self.target_scale.slope(self.decisions)

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
    def column_contributions(self) -> Floats | None:
        """Contribution of each number of the whole graph; None for a model that uses none."""
        return self._squeeze(self._column_values) if self.column_names else None

    @property
    def graph_contributions(self) -> Floats | None:
        """Contribution of each training graph."""
        if not self._compares_graphs:
            return None
        values: Floats = sum(part.rows[:, :, None] * part.weights for part in self._parts)
        return self._squeeze(values)

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
        """Largest difference between the sum over nodes and columns and the sum from which the model decides."""
        sums: Floats = sum(part.rows @ part.weights for part in self._parts) + self.intercept
        return float(np.abs(self._squeeze(sums) - self.decisions).max(initial=0.0))

    def top_features(self, graph: int, n: int = 10, *, output: int | None = None) -> list[tuple[str, float]]:
        """Return the features that contribute most to a decision, in either direction.

        Parameters
        ----------
        graph : int
            Index of the explained graph.
        n : int, default=10
            Maximum number of features.
        output : int or None, default=None
            Index in ``outputs``. None: for more than two classes, the predicted class against the next best.

        Returns
        -------
        list of (str, float)
            Name and contribution of each, the largest first; empty if no kernel has explicit features.
        """
        contrast = self._contrast(graph, output)
        return [] if self._table is None else self._table.top(graph, contrast.combine, n)

    def similar_graphs(self, graph: int, n: int = 6, *, output: int | None = None) -> list[dict[str, Any]]:
        """Return the training graphs that are most similar to an explained graph.

        Parameters
        ----------
        graph : int
            Index of the explained graph, which is left out if it is a training graph itself.
        n : int, default=6
            Maximum number of training graphs.
        output : int or None, default=None
            Index in ``outputs``, for the contributions. None: as in :meth:`top_features`.

        Returns
        -------
        list of dict
            For each, the most similar first: ``index`` among the training graphs, ``name`` (None for graphs without names),
            ``target`` (its class or number; None if the model does not keep it), ``similarity``, and ``contribution`` to the
            decision. The similarity is the normalized kernel; for several kernels, their mean, weighted by how much the
            model relies on each. Empty for linear models that do not compare graphs.
        """
        contrast = self._contrast(graph, output)
        if not self._compares_graphs:
            return []
        contributions: Floats = sum(part.rows[graph] * (part.weights @ contrast.combine) for part in self._parts)
        similarities = self._similarities[graph]
        itself = -1 if self._training_indices is None else int(self._training_indices[graph])
        kernel, numbers = self._parts[0].kernel, self._parts[0].numbers
        names = kernel.graphs_.graph_names
        order = [position for position in np.argsort(-similarities, kind="stable").tolist() if position != itself]
        return [
            {
                "index": position if numbers is None else int(numbers[position]),
                "name": None if names is None else str(names[position]),
                "target": self._training_targets.get(position),
                "similarity": float(similarities[position]),
                "contribution": float(contributions[position]),
            }
            for position in order[:n]
        ]

    def summary(self, n: int = 100, *, output: int | None = None) -> list[dict[str, Any]]:
        """Summarize what matters across all explained graphs: features, columns and node labels.

        Parameters
        ----------
        n : int, default=100
            Maximum number of features, of columns and of labels, for each kind.
        output : int or None, default=None
            Index in ``outputs``. None: for more than two classes, each graph's predicted class against the next best.

        Returns
        -------
        list of dict
            One record for each, the largest mean absolute contribution first: ``kind`` ("feature", "column" or "label": all
            nodes with this label), ``name``, ``words`` (the name in words, such as "at least two C bonded to O"),
            ``mean_absolute`` and ``mean`` contribution to a decision, and ``n_graphs``, the number of graphs to which it
            contributes. Labels include the contributions of trees: the kinds are different views of the decisions, not parts
            of them.
        """
        from treegram.explanations.export import summarize

        return summarize(self, n, output)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        y: ArrayLike | None = None,
        molecules: Sequence[Any] | None = None,
        title: str = "Explained predictions",
    ) -> None:
        """Write predictions and their explanations as one HTML page.

        The page begins with a grid of pictures, whose nodes are colored by their contributions, with predictions and, if the truth
        is known, whether they are right; proteins also have a strip along their sequence. Details of each graph are the nodes,
        columns and features that contribute most, the most similar training graphs, and a check that the contributions add up. Then
        comes what matters across all graphs. Graphs can be filtered and ordered, ``page.html#graph-3`` opens the details of one, and
        hovering over a node shows its name, label, vector and contribution. The page needs no network, runs no script but
        its own, and treats names and labels as text. Graphs are shown with their ``graph_names``, or else
        numbered from 0.

        Parameters
        ----------
        path : str or path
            The file to write. An existing file is replaced once the page is complete.
        y : array-like of shape (n_graphs,), optional
            The true classes or numbers; by default the targets of the graphs, if any.
        molecules : sequence of RDKit molecules or str, optional
            Molecule or SMILES of each graph: RDKit then draws it. Its atoms must be the graph's nodes, in their order.
            By default the explained molecules, if the model begins with :class:`MoleculeGraphs`.
        title : str, default="Explained predictions"
            Title of the page.

        Notes
        -----
        For two classes, positive decisions and red nodes favor the second. For more, the page shows the decision between the
        predicted class and the next best; other classes can be chosen on the page. Predictions for training graphs are marked,
        and not counted as correct.

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

        write_page(self, path, y=y, molecules=molecules, title=title)

    def to_frame(self, by: str = "nodes") -> Any:
        """Return the contributions as a table. Requires pandas.

        Parameters
        ----------
        by : {"nodes", "columns", "features", "graphs"}, default="nodes"
            What the rows are: the nodes of the explained graphs; their numbers of the whole graph; the features that contribute
            to them; or the training graphs, with their similarities.

        Returns
        -------
        pandas.DataFrame
            The column "graph" numbers the explained graphs from 0, and "contribution" has the contributions. The others say what
            contributes: "node" (its number in the graph), "name" and "label", for residues also "chain" and "residue" (its
            number); "name" and "words" of features and columns; or "training_graph" and "similarity". There are also
            "graph_name", and "output" if the model gives several numbers for each graph. Names that the graphs do not have
            are left out.

        Examples
        --------
        >>> from treegram import WL, Graphs, GraphRidge, explain
        >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)], []], labels=[["C", "C", "O"], ["C", "C"], ["O"]])
        >>> model = GraphRidge(WL(n_iterations=1), param_grid={}, alpha=0.1, cv=2).fit(graphs, [1.0, 0.0, 1.0])
        >>> explain(model, graphs[:1]).to_frame().drop(columns="contribution")
           graph  node label
        0      0     0     C
        1      0     1     C
        2      0     2     O
        """
        from treegram.explanations.export import make_frame

        return make_frame(self, by)

    def to_structure(
        self, path: str | os.PathLike[str], structure: Any, graph: int = 0, *, output: int | None = None
    ) -> float:
        """Write a copy of a protein structure whose B-factors are contributions, for PyMOL or ChimeraX. Requires gemmi.

        All atoms of a residue get its contribution, in each model of the file; atoms of anything else get 0.

        Parameters
        ----------
        path : str or path
            The file to write; its ending, .pdb or .cif, is the format. An existing file is replaced.
        structure : path or gemmi.Structure
            The structure that the graph was made of, in PDB or mmCIF format.
        graph : int, default=0
            Index of the explained graph.
        output : int or None, default=None
            Index in ``outputs``. None: for more than two classes, the predicted class against the next best.

        Returns
        -------
        float
            The factor between contributions and B-factors: 1 in mmCIF. The PDB format has two digits after the point, so the
            factor is the largest power of ten that fits; a remark in the file says it.
        """
        from treegram.explanations.export import write_b_factors

        values = self._node_values_of(graph, self._contrast(graph, output))
        return write_b_factors(Path(path), structure, self.graphs[graph], values)

    def to_sdf(self, path: str | os.PathLike[str], *, molecules: Sequence[Any] | None = None) -> None:
        """Write molecules with the contributions of their atoms as an SDF file. Requires RDKit.

        The property "atom.dprop.contribution" lists the contributions in the order of the atoms, as RDKit reads and writes
        properties of atoms; for several outputs there is one property for each.

        Parameters
        ----------
        path : str or path
            The file to write. An existing file is replaced.
        molecules : sequence of RDKit molecules or str, optional
            Molecule or SMILES of each graph; by default the explained molecules, if the model begins with
            :class:`MoleculeGraphs`. Atoms are written as they are nodes: hydrogens are added or removed if need be, and
            molecules without coordinates get those of a drawing.
        """
        from treegram.explanations.export import write_atoms

        write_atoms(Path(path), self, molecules)

    def __repr__(self) -> str:
        sizes = f"{counted(len(self.graphs), 'graph')}, {counted(len(self.outputs), 'output')}"
        return f"Explanation({sizes}, attribute_to={self.attribute_to!r})"

    def _repr_html_(self) -> str:
        from treegram.explanations.page import render_summary

        return render_summary(self, _SHOWN_IN_NOTEBOOKS)

    # ---------------------------------------------------------------- two sides of a decision

    def _contrast(self, graph: int, output: int | None = None) -> Contrast:
        """Return the two sides of an output; by default, for more than two classes, the predicted class and the next best."""
        if not -len(self.graphs) <= graph < len(self.graphs):
            raise IndexError(f"The index of the graph must be from 0 to {len(self.graphs) - 1}; got {graph}.")
        if output is None:
            return next(self._contrasts(graph))
        if not 0 <= output < len(self.outputs):
            raise IndexError(f"output must be a number from 0 to {len(self.outputs) - 1}; got {output}.")
        name = self.outputs[output]
        if isinstance(name, tuple):
            above, below = map(str, name)
        elif not self._is_classifier:
            above, below = "a higher prediction", "a lower prediction"
        else:
            above, below = str(name), str(self._model.classes_[0]) if len(self.outputs) == 1 else "all other classes"
        return Contrast(above, below, np.eye(len(self.outputs))[output])

    def _contrasts(self, graph: int) -> Iterator[Contrast]:
        """Yield the contrasts of a decision: with several classes, the predicted one against all others, next best first."""
        if not self._is_classifier or len(self.outputs) == 1:
            yield from (self._contrast(graph, output) for output in range(len(self.outputs)))
            return
        classes = self._model.classes_.tolist()
        pairs = {pair: k for k, pair in enumerate(combinations(range(len(classes)), 2))}
        predicted, *rivals = self._ranking[graph].tolist()
        for rival in rivals:
            combine = np.zeros(len(self.outputs))
            if isinstance(self.outputs[0], tuple):
                combine[pairs[min(predicted, rival), max(predicted, rival)]] = 1.0 if predicted < rival else -1.0
            else:
                combine[predicted], combine[rival] = 1.0, -1.0
            yield Contrast(str(classes[predicted]), str(classes[rival]), combine)

    @cached_property
    def _ranking(self) -> Ints:
        """The classes for each graph, (n_graphs, n_classes): the predicted one, then the others, the best first."""
        scores = np.array(self.decisions)
        if isinstance(self.outputs[0], tuple):
            scores = np.array(one_against_rest(scores, len(self._model.classes_)))
        predicted = np.searchsorted(self._model.classes_, self.predictions)
        scores[np.arange(len(scores)), predicted] = np.inf
        return np.argsort(-scores, axis=1, kind="stable")

    def _node_values_of(self, graph: int, contrast: Contrast) -> Floats:
        """Return the contributions of a graph's nodes to one decision."""
        start, stop = self.graphs.offsets[:-1][graph], self.graphs.offsets[1:][graph]
        return self._node_values[start:stop] @ contrast.combine

    # ---------------------------------------------------------------- computed on demand: each costs another pass

    @property
    def _compares_graphs(self) -> bool:
        is_linear = any(part.feature_map for part in self._parts)
        return not is_linear and (len(self._parts) == 1 or all(part.numbers is None for part in self._parts))

    @property
    def _is_classifier(self) -> bool:
        return hasattr(self._model, "classes_")

    @cached_property
    def _table(self) -> FeatureTable | None:
        """The features of all kernels that have explicit ones, side by side."""
        tables = {leaf: table for leaf in self._leaves if (table := leaf.tabulate()) is not None}
        if len(self._leaves) == 1 or not tables:
            return next(iter(tables.values()), None)
        starts = np.cumsum([0, *(table.values[0].shape[1] for table in tables.values())])
        blocks = zip(*(table.values for table in tables.values()), strict=True)
        names = [(type(leaf.kernel).__name__, table.name_of) for leaf, table in tables.items()]

        def name_of(column: int) -> str:
            i = int(np.searchsorted(starts, column, side="right")) - 1
            return f"{names[i][0]}: {names[i][1](column - int(starts[i]))}"

        return FeatureTable(tuple(sp.hstack(block).tocsr() for block in blocks), name_of)

    @cached_property
    def _similarities(self) -> Floats:
        """Normalized kernel with the training graphs; for several kernels, the mean weighted by the norms of their weights."""
        sizes = [float(np.linalg.norm(part.weights)) for part in self._parts]
        total = np.zeros(self._parts[0].rows.shape)
        for size, part in zip(sizes, self._parts, strict=True):
            total += size / (sum(sizes) or 1.0) * part.similarities
        return total

    @cached_property
    def _training_targets(self) -> dict[int, Any]:
        """Targets of the training graphs, as far as the model keeps them."""
        final, fitted = split_model(self._model)[-1], self._parts[0].kernel.graphs_
        if hasattr(final, "train_codes_"):
            return dict(enumerate(final.classes_[final.train_codes_].tolist()))
        if hasattr(final, "n_support_"):  # a support vector machine knows the classes of its support vectors
            classes = np.repeat(final.classes_, final.n_support_)
            return dict(zip(final.support_.tolist(), classes.tolist(), strict=True))
        return {} if fitted.targets is None or fitted.targets.ndim > 1 else dict(enumerate(fitted.targets.tolist()))

    @cached_property
    def _training_indices(self) -> Ints | None:
        """Position of each explained graph among the training graphs; -1 if it is not one of them."""
        return _find_in_training(self._parts)

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
    name_of: Callable[[int], str]  # of a column, on demand: names take longer to compute than values

    def top(self, graph: int, combine: Floats, n: int) -> list[tuple[str, float]]:
        """Return the names and contributions of the features that contribute most to one decision."""
        used = np.flatnonzero(combine).tolist()
        values = np.sum([combine[output] * self.values[output][[graph]].toarray()[0] for output in used], axis=0)
        order = np.argsort(-np.abs(values), kind="stable")[:n]
        return [(self.name_of(column), float(values[column])) for column in order.tolist() if values[column]]


# -------------------------------------------------------------------- parts of models


@dataclass(frozen=True, eq=False)
class Part:
    """A fitted kernel or feature map, the weights of its values in the decisions, and the graphs as it receives them."""

    kernel: Any  # the last step of a pipeline
    weights: Floats  # of fitted graphs or, with a feature map, of its columns: (n_columns, n_outputs)
    graphs: Graphs
    factors: Floats  # of each graph's values
    feature_map: Any = None  # a FeatureMap or a block, of a linear model on its rows
    numbers: Ints | None = None  # positions of the fitted graphs among the training graphs, if some were left out

    @property
    def has_columns(self) -> bool:
        """True for a kernel on graph-level columns."""
        return hasattr(self.kernel, "_column_parts")

    @cached_property
    def rows(self) -> Any:
        """Kernel values with the fitted graphs, or features."""
        return (self.feature_map or self.kernel).transform(self.graphs)

    @property
    def similarities(self) -> Floats:
        """Kernel values, normalized even if the kernel is not: otherwise large graphs would be similar to all others."""
        if self.kernel.normalize:
            return np.asarray(self.rows)
        factors, of_fitted = (inverse_roots(self.kernel.diag(graphs)) for graphs in (self.graphs, self.kernel.graphs_))
        return self.rows * factors[:, None] * of_fitted

    def leaves(self) -> Iterator[Part]:
        """Yield the part or, if it is a sum, its summands."""
        if not isinstance(self.kernel, KernelSum):
            yield self
            return
        summands, factors = self.kernel._split_sum(self.graphs, self.weights)
        for kernel, weights, graphs in summands:
            yield from Part(kernel, weights, graphs, self.factors * factors).leaves()

    def node_values(self, *, spread: bool) -> Floats:
        """Return the contribution of each node, (n_nodes, n_outputs), without the factors."""
        if self.feature_map is not None:
            return self.feature_map._node_contributions(self.graphs, self.weights, spread=spread)
        return kernel_contributions(self.kernel, self.graphs, self.weights, spread=spread)

    def tabulate(self) -> FeatureTable | None:
        """Return the contributions of the features; None for a kernel without explicit ones."""
        if self.has_columns:
            return None
        if self.feature_map is not None:
            return FeatureTable(*self.feature_map._feature_contributions(self.graphs, self.weights))
        if not isinstance(self.kernel, HasFeatures) or self.kernel.normalize == "tanimoto":
            return None
        weights = column_weights(self.kernel, self.weights)
        rows = sp.diags(self.factors) @ self.kernel._feature_rows(self.graphs)
        values = tuple((rows @ sp.diags(of_columns)).tocsr() for of_columns in weights.T)
        return FeatureTable(values, self.kernel._name_reader())


def split_model(model: Any) -> tuple[list[Any], FeatureMap | Nystroem | None, Any]:
    """Split a model into its graph transformers, its feature map (None unless it is linear on one), and the final estimator."""
    *steps, final = flat_steps(model)
    features = steps.pop() if steps and isinstance(steps[-1], FeatureMap | Nystroem) else None
    return steps, features, final


def _read_model(model: Any, X: Any) -> tuple[Graphs, list[Part], Floats, tuple[Any, ...]]:
    """Return the first graphs made from X, the parts of the model, its intercepts and the names of its outputs."""
    steps, features, final = split_model(model)
    if features is not None:
        weights, intercept, outputs = _linear_weights(final)
        weighted = [(features.kernel_, weights)]
    elif hasattr(final, "_decision_parts"):
        weighted, intercept, outputs = final._decision_parts()
    else:
        raise ParameterError(
            "model of explain must be a model of graphs (such as GraphClassifier or GraphRegressor), a linear model on the rows of a "
            f"FeatureMap or of Nystroem, or a pipeline that ends in one of these; got {final!r}."
        )
    graphs = None
    for step in steps:
        graphs = X if graphs is None and isinstance(X, Graphs) else graphs
        X = step.transform(X)
    X = as_graphs(X)
    parts = [_make_part(kernel, weights, X, features, outputs, final) for kernel, weights in weighted]
    return X if graphs is None else graphs, parts, intercept, outputs


def _make_part(kernel: Any, weights: Floats, X: Graphs, features: Any, outputs: tuple[Any, ...], final: Any) -> Part:
    """Apply the steps before a kernel, and check that its weights fit: compiled code does not check their number."""
    if isinstance(kernel, Block):
        X, features = kernel.prepare(X), kernel.features
        kernel = features.kernel_
    *steps, kernel = flat_steps(kernel)
    for step in steps:
        X = step.transform(X)
    X = X if isinstance(kernel, Block) else kernel._check_like_fitted(X)
    n_columns = len(kernel.graphs_) if features is None else features.n_features_out_
    if weights.shape != (n_columns, len(outputs)):
        raise ParameterError(
            f"The coefficients of {type(final).__name__} do not fit its input: {weights.shape[0]} for each of "
            f"{weights.shape[1]} outputs, but there are {n_columns} columns and {len(outputs)} outputs. Fit the whole model "
            "again."
        )
    factors = np.ones(len(X))
    if isinstance(features, Nystroem):
        return Part(kernel, features._component_weights(weights), X, factors, numbers=features.component_indices_)
    return Part(kernel, weights, X, factors, feature_map=features)


def _linear_weights(linear: Any) -> tuple[Floats, Floats, tuple[Any, ...]]:
    """Return the weights of the columns, (n_columns, n_outputs), the intercepts and the names of the outputs."""
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


def _choose_graphs(graphs: Graphs, transformed: list[Graphs]) -> Graphs:
    """Return the graphs with the nodes that all kernels see: the original graphs if transformers keep the nodes."""
    for candidate in (graphs, *transformed[:1]):
        if all(np.array_equal(candidate.offsets, seen.offsets) for seen in transformed):
            return candidate
    raise ParameterError("The model cannot be explained: its kernels see different nodes, as transformers change them.")


# -------------------------------------------------------------------- training graphs


def in_training(model: Any, X: Any) -> NDArray[np.bool_] | None:
    """Return True for graphs that a model was fitted on; None if it does not keep its training graphs."""
    with warnings.catch_warnings(action="ignore"):  # predict has warned already
        try:
            indices = _find_in_training(_read_model(model, X)[1])
        except ParameterError:  # a model of another kind
            return None
    return None if indices is None else indices >= 0


def _find_in_training(parts: list[Part]) -> Ints | None:
    """Return the position of each graph among the training graphs, or -1; None if the training graphs are unknown."""
    keys = []
    for part in parts:  # all of them: a kernel may not see all data
        if part.numbers is not None or (part.feature_map is not None and part.feature_map.map_ is not None):
            return None
        vectors = part.kernel.graphs_.attributes
        scales = None if vectors is None else np.abs(vectors).max(axis=0, initial=0.0)
        keys.append([_graph_keys(graphs, scales) for graphs in (part.kernel.graphs_, part.graphs)])
    fitted, new = (list(zip(*of_parts, strict=True)) for of_parts in zip(*keys, strict=True))
    index_of = {key: index for index, key in reversed(list(enumerate(fitted)))}
    return np.array([index_of.get(key, -1) for key in new], dtype=np.int64)


def _graph_keys(graphs: Graphs, scales: Floats | None) -> list[str]:
    """Return a key for each graph: the same for graphs that are equal node by node, even in another collection."""
    vectors = graphs.attributes
    if vectors is not None and scales is not None:
        vectors = np.round(vectors / np.where(scales > 0, scales, 1.0), _DIGITS) + 0.0  # 0 rather than -0
    names = ("graph_names", "node_names", "positions", *COLUMN_NAMES)
    return digest_each(graphs.assign(attributes=vectors), leave_out=("targets", *names))
