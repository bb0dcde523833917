"""Blocks of sparse rows for linear models: fitted transformers of graphs that cost time linear in their number.

A **block** has one of three contents:

- *features* of a kernel with explicit ones: the roots of their counts, rare features more than frequent ones, rows of length 1;
- *columns* of numbers of whole graphs: for each, a piecewise linear function of the rank among the fitted graphs;
- *mapped rows* of a kernel on vectors (:class:`FeatureMap`), or of any other kernel (:class:`Nystroem`).

A fitted block keeps codes and scales, but no graphs except for one with each label.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from treegram._core.errors import InvalidGraphError
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.graphs.statistics import GraphStatistics
from treegram.graphs.transforms import BinEdgeAttributes, DropAttributes, ScaleAttributes, SelectLabels
from treegram.kernels import NSPDK, WLCL, WLOA, FeatureMap, Nystroem, StatisticsKernel
from treegram.kernels.attribution import row_contributions
from treegram.kernels.explicit import ExplicitKernel, GraphRows
from treegram.kernels.feature_map import NamedFeatures, graphs_of_each_label
from treegram.kernels.grid import split_pipeline
from treegram.kernels.input_checks import check_column_names
from treegram.kernels.node_pairs import NodePairKernel
from treegram.kernels.statistics_kernel import DIGITS, given_columns
from treegram.models.parts import Parts
from treegram.models.search import Candidate, with_jobs
from treegram.structure.features import Features

_AT_ONCE = 1 << 13  # graphs whose features are in memory at the same time
_N_HATS = 8  # pieces of a function of a column, plus one
_N_KNOTS = 65  # of the ranks of a column
_N_COMPONENTS, _N_MAPPED = 128, 1024  # of the map of vectors; columns of mapped rows
_N_NYSTROEM = 1000  # graphs that kernels without rows are compared with


@dataclass(frozen=True, eq=False)
class Block:
    """Fitted transformers of graphs, and what turns their output into rows."""

    name: str
    steps: Any  # a pipeline; None: the graphs as they are

    def prepare(self, graphs: Graphs) -> Graphs:
        """Return the graphs as the last step of the block receives them."""
        return _prepared(graphs, self.steps)

    def transform(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of graphs, a part of them at a time."""
        starts = range(0, max(len(graphs), 1), _AT_ONCE)
        return sp.vstack([self.rows(self.prepare(graphs[a : a + _AT_ONCE])) for a in starts], format="csr")

    @property
    def features(self) -> Any:
        """Object that computes and explains the rows of prepared graphs, as a FeatureMap does."""
        return self

    @property
    def n_features_out_(self) -> int:
        """Number of columns."""
        raise NotImplementedError

    def rows(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of prepared graphs."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class FeatureBlock(Block):
    """Rows of a kernel with explicit features: roots of their values times scales, divided by the length of the row."""

    kernel_: Any  # not normalized; fitted on one graph with each label
    codes: Hashes  # of the columns, sorted
    scales: Floats  # of the columns

    map_ = "features"  # what a FeatureMap has if it does not keep the fitted graphs

    @property
    def n_features_out_(self) -> int:
        """Number of columns."""
        return len(self.codes)

    def rows(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of prepared graphs; features without a column do not count."""
        rows = _features(self.kernel_, self.kernel_._check_like_fitted(graphs)).aligned(self.codes)
        return _scaled(rows, self.scales)

    def _node_contributions(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """Return what each node adds to the products of its graph's row with weights, (n_nodes, n_outputs).

        The root of a count is shared equally by the occurrences, so that the weight of a feature depends on the graph: each is
        explained as the row of a kernel that was fitted on it alone.
        """
        contributions = [np.empty((0, weights.shape[1]))]
        for graph in graphs:
            itself = copy.copy(self.kernel_)
            features, values = self._products(graph, weights)
            itself._fitted = GraphRows(1, [features])
            of_columns = np.zeros((len(features.codes), weights.shape[1]))
            of_columns[features.counts.indices] = values / features.counts.data[:, None]
            contributions.append(row_contributions(itself, graph, of_columns, spread=spread))
        return np.concatenate(contributions)

    def _feature_contributions(self, graphs: Graphs, weights: Floats) -> NamedFeatures:
        """Return what each feature adds, for each output a matrix of graphs and features, and a function that names a feature."""
        features, values = self._products(graphs, weights)
        counts, kernel = features.counts, self.kernel_
        tables = tuple(
            sp.csr_matrix((of_output, counts.indices, counts.indptr), counts.shape) for of_output in values.T
        )
        return tables, lambda column: kernel._name_feature(graphs, features, column)

    def _products(self, graphs: Graphs, weights: Floats) -> tuple[Features, Floats]:
        """Return all features of graphs, and for each of their entries what it adds, (n_entries, n_outputs)."""
        features = _features(self.kernel_, graphs)
        places = np.searchsorted(self.codes, features.codes).clip(max=max(len(self.codes) - 1, 0))
        is_known = self.codes[places] == features.codes if len(self.codes) else np.zeros(len(places), bool)
        scales = np.where(is_known, self.scales[places] if len(self.scales) else 0.0, 0.0)
        of_columns = np.where(is_known[:, None], weights[places] if len(weights) else 0.0, 0.0)
        rows = _scaled(features.counts, scales)
        return features, rows.data[:, None] * of_columns[rows.indices]


@dataclass(frozen=True, eq=False)
class ColumnBlock(Block):
    """Rows of piecewise linear functions of numbers of whole graphs: the values of hat functions of their ranks."""

    columns: str  # as for StatisticsKernel
    statistics: GraphStatistics | None
    names: list[str]  # of the columns
    units: Floats  # of the columns
    usual: Floats  # the most frequent value of each column in these units, whose row is 0
    knots: Floats  # values of the columns in these units, (n_knots, n_columns), ascending
    ranks: Floats  # their ranks, from 0 to 1

    map_ = "columns"

    @property
    def kernel_(self) -> ColumnBlock:
        """The block itself, which explains its columns as a kernel does."""
        return self

    @property
    def n_features_out_(self) -> int:
        """Number of columns of rows."""
        return len(self.names) * _N_HATS

    def rows(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of prepared graphs: for each column, its hats minus those of its most frequent value."""
        table = self._table(graphs)
        i, j = np.nonzero(table != self.usual)
        places, left = self._hats(table)
        of_usual, left_of_usual = (of_row[0] for of_row in self._hats(self.usual[None]))
        places, left, of_usual, left_of_usual = places[i, j], left[i, j], of_usual[j], left_of_usual[j]
        columns = _N_HATS * j[:, None] + np.stack([places, places + 1, of_usual, of_usual + 1], axis=1)
        values = np.stack([left, 1.0 - left, -left_of_usual, left_of_usual - 1.0], axis=1)
        ends = 4 * np.searchsorted(i, np.arange(len(table) + 1))
        rows = sp.csr_matrix((values.reshape(-1), columns.reshape(-1), ends), (len(table), self.n_features_out_))
        rows.sum_duplicates()
        return rows

    def _table(self, graphs: Graphs) -> Floats:
        """Return the columns in their units."""
        table = _table(self.columns, self.statistics, graphs)
        if table.shape[1] != len(self.units):
            raise InvalidGraphError(
                f"The new graphs (X) have {table.shape[1]} numbers of whole graphs, but the model was fitted on {len(self.units)}. "
                "Build them the same way as the training graphs."
            )
        if self.columns != "statistics":
            n_given = len(self.names) - (0 if self.statistics is None else len(self.statistics.feature_names_out_))
            fitted = self.names[len(self.names) - n_given :]
            are_named = fitted != [f"graph_x{i}" for i in range(n_given)]
            check_column_names(self, "graph attributes", graphs.graph_attribute_names, fitted if are_named else None)
        return np.round(table / self.units, DIGITS)

    def _hats(self, table: Floats) -> tuple[Ints, Floats]:
        """Return the first of the two hats above each number, and its value; that of the second is 1 minus it."""
        ranks = [np.interp(*of_column) for of_column in zip(table.T, self.knots.T, self.ranks.T, strict=True)]
        positions = np.stack(ranks, axis=1) * (_N_HATS - 1) if ranks else table
        places = np.minimum(positions.astype(np.int64), _N_HATS - 2)
        return places, 1.0 - (positions - places)

    def _column_parts(self, graphs: Graphs, weights: Floats) -> tuple[Floats, Floats, list[str]]:
        """Return what each column adds, (n_graphs, n_columns, n_outputs), a constant of 0, and the names of the columns."""
        of_hats = weights.reshape(len(self.names), _N_HATS, -1)
        columns = np.arange(len(self.names))

        def values(table: Floats) -> Floats:
            places, left = self._hats(table)
            right = 1.0 - left
            sums: Floats = (
                left[:, :, None] * of_hats[columns, places] + right[:, :, None] * of_hats[columns, places + 1]
            )
            return sums

        return values(self._table(graphs)) - values(self.usual[None]), np.zeros(weights.shape[1]), self.names


@dataclass(frozen=True, eq=False)
class MapBlock(Block):
    """Rows of a fitted FeatureMap or Nystroem."""

    transformer: Any

    @property
    def features(self) -> Any:
        """The transformer, which computes and explains the rows of prepared graphs."""
        return self.transformer

    @property
    def n_features_out_(self) -> int:
        """Number of columns."""
        return int(self.transformer.n_features_out_)

    def rows(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of prepared graphs."""
        return sp.csr_matrix(self.transformer.transform(graphs))


BLOCKS: dict[str, type[Block]] = {cls.__name__: cls for cls in (FeatureBlock, ColumnBlock, MapBlock)}


def linear_candidates(graphs: Graphs, n_jobs: int | None = None) -> list[Candidate]:
    """Return the blocks that suit the graphs, as kernels whose features they have."""
    options: dict[str, Any] = {"use_edge_labels": graphs.edge_labels is not None}
    colors, pairs = WLOA(5, **options), NSPDK(radius=1, distance=3, **options)
    labels = [DropAttributes()] if graphs.n_attributes else []
    candidates = [
        _candidate("colors", "nodes with equal surroundings, up to five steps away", *labels, colors),
        _candidate("pairs", "pairs of nodes up to three steps apart, with equal neighbors", *labels, pairs),
        _candidate("statistics", "numbers of whole graphs may be enough", StatisticsKernel()),
    ]
    if graphs.graph_attributes is not None:
        reason = "what is known of each graph may matter"
        candidates.append(_candidate("graph attributes", reason, StatisticsKernel("graph_attributes")))
    if any(isinstance(value, tuple) for value in graphs.label_values or ()):
        reason = "the first part of the labels may be enough"
        candidates.append(_candidate("colors, first part of labels", reason, *labels, SelectLabels(), colors))
    if graphs.n_attributes:
        vectors = WLCL(1, gamma="narrow", **options)
        reason = "nodes whose neighbors have equal labels, and whose vectors are close"
        candidates.append(_candidate("vectors", reason, ScaleAttributes("robust"), vectors))
    if graphs.n_edge_attributes:
        colors = WLOA(1, use_edge_labels=True)
        reason = "numbers at the edges may matter"
        candidates.append(_candidate("colors, edge vectors in bins", reason, *labels, BinEdgeAttributes(), colors))
    if n_jobs is None:
        return candidates
    return [replace(candidate, kernel=with_jobs(candidate.kernel, n_jobs)) for candidate in candidates]


def _candidate(name: str, reason: str, *steps: Any) -> Candidate:
    return Candidate(name, make_pipeline(*steps) if len(steps) > 1 else steps[0], reason=reason)


def fit_block(candidate: Candidate, graphs: Parts, sample: Graphs) -> tuple[Block, list[Any]]:
    """Return the fitted block of a candidate, and the rows of each part of the graphs, where the part is.

    Features are those of all graphs; transformers, ranks and maps learn from the sample.
    """
    given, kernel = split_pipeline(candidate.kernel)
    steps = make_pipeline(*map(clone, given)).fit(sample) if given else None
    if isinstance(kernel, ExplicitKernel) and not kernel.learns_from_data:
        return _fit_features(candidate.name, steps, kernel, graphs)
    prepared = sample if steps is None else steps.transform(sample)
    if isinstance(kernel, StatisticsKernel):
        block = _fit_columns(candidate.name, steps, kernel.columns, prepared)
    else:
        block = MapBlock(candidate.name, steps, _fit_map(kernel, prepared))
    return block, graphs.place.map(_rows_of_part, zip(graphs.parts, strict=True), block)


def _rows_of_part(graphs: Graphs, block: Block) -> sp.csr_matrix:
    return block.transform(graphs)


# -------------------------------------------------------------------- rows of features


def _fit_features(name: str, steps: Any, kernel: Any, graphs: Parts) -> tuple[Block, list[Any]]:
    """Return the block of features that at least two graphs have, and the rows of the graphs."""
    place, parts = graphs.place, list(zip(graphs.parts, strict=True))
    with_labels = Graphs.concatenate(place.each(_part_of_each_label, parts, steps))
    kernel = clone(kernel).set_params(normalize=False).fit(graphs_of_each_label(with_labels))
    features = list(zip(place.map(_features_of_part, parts, steps, kernel), strict=True))
    of_parts, n_graphs_with = zip(*place.each(_count_graphs, features), strict=True)
    codes, numbers = np.unique(np.concatenate(of_parts), return_inverse=True)
    n_graphs_with_code = np.bincount(numbers, np.concatenate(n_graphs_with), minlength=len(codes))
    is_kept = n_graphs_with_code >= 2
    codes, scales = codes[is_kept], np.sqrt(np.log1p(len(graphs) / n_graphs_with_code[is_kept]))
    return FeatureBlock(name, steps, kernel, codes, scales), place.map(_aligned_rows, features, codes, scales)


def _prepared(graphs: Graphs, steps: Any) -> Graphs:
    return graphs if steps is None else steps.transform(graphs)


def _part_of_each_label(graphs: Graphs, steps: Any) -> Graphs:
    return graphs_of_each_label(_prepared(graphs, steps))


def _features_of_part(graphs: Graphs, steps: Any, kernel: Any) -> list[Features]:
    """Return the features of graphs, some of them at a time."""
    graphs = _prepared(graphs, steps)
    return [_features(kernel, graphs[start : start + _AT_ONCE]) for start in range(0, max(len(graphs), 1), _AT_ONCE)]


def _count_graphs(features: list[Features]) -> tuple[Hashes, Ints]:
    """Return the codes of features, and the number of graphs with each; a code may come several times."""
    n_graphs_with = [np.bincount(part.counts.indices, minlength=len(part.codes)) for part in features]
    return np.concatenate([part.codes for part in features]), np.concatenate(n_graphs_with)


def _aligned_rows(features: list[Features], codes: Hashes, scales: Floats) -> sp.csr_matrix:
    return sp.vstack([_scaled(part.aligned(codes), scales) for part in features], format="csr")


def _features(kernel: Any, graphs: Graphs) -> Any:
    """Return the features of graphs for the parameters of the kernel."""
    (features,) = kernel._features(graphs, kernel._single_grid())
    return features


def _scaled(rows: sp.csr_matrix, scales: Floats) -> sp.csr_matrix:
    """Return the roots of the entries times the scales of their columns, divided by the length of the row."""
    data = np.sqrt(rows.data) * scales[rows.indices]
    sizes = np.diff(rows.indptr)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    lengths = np.sqrt(np.bincount(owners, data**2, minlength=len(sizes)))
    lengths[lengths == 0] = 1.0
    return sp.csr_matrix((data / lengths[owners], rows.indices, rows.indptr), rows.shape)


def _fit_map(kernel: Any, graphs: Graphs) -> Any:
    """Return a fitted transformer to rows for any kernel."""
    kernel = clone(kernel)
    if isinstance(kernel, NodePairKernel):
        if kernel.normalize == "tanimoto":
            kernel.set_params(normalize=True)
        return FeatureMap(kernel, n_components=_N_COMPONENTS, n_features=_N_MAPPED).fit(graphs)
    return Nystroem(kernel, n_components=_N_NYSTROEM).fit(graphs)


# -------------------------------------------------------------------- rows of columns


def _fit_columns(name: str, steps: Any, columns: str, graphs: Graphs) -> Block:
    """Return the block of the columns of a :class:`StatisticsKernel`."""
    statistics = None if columns == "graph_attributes" else GraphStatistics().fit(graphs)
    starts = range(0, max(len(graphs), 1), _AT_ONCE)
    table = np.concatenate([_table(columns, statistics, graphs[a : a + _AT_ONCE]) for a in starts])
    names = [] if statistics is None else list(statistics.feature_names_out_)
    given = table.shape[1] - len(names)
    if given:
        names += graphs.graph_attribute_names or [f"graph_x{i}" for i in range(given)]
    units = np.abs(table).max(axis=0, initial=0.0)
    units[units == 0] = 1.0
    table = np.round(table / units, DIGITS)
    usual, (knots, ranks) = np.zeros(len(names)), np.empty((2, _N_KNOTS, len(names)))
    for j, column in enumerate(table.T):
        values, counts = np.unique(column, return_counts=True)
        usual[j] = values[np.argmax(counts)]
        of_values = (np.cumsum(counts) - counts / 2) / len(column)
        if len(values) <= _N_KNOTS:
            places = np.minimum(np.arange(_N_KNOTS), len(values) - 1)
        else:  # about as many graphs between any two
            places = np.searchsorted(of_values, np.linspace(of_values[0], of_values[-1], _N_KNOTS))
        knots[:, j], ranks[:, j] = values[places], of_values[places]
    return ColumnBlock(name, steps, columns, statistics, names, units, usual, knots, ranks)


def _table(columns: str, statistics: GraphStatistics | None, graphs: Graphs) -> Floats:
    """Return the columns as they are."""
    tables = [] if statistics is None else [statistics.transform(graphs)]
    tables += [] if columns == "statistics" else [given_columns(graphs)]
    return np.hstack(tables)
