"""Blocks of sparse rows for linear models: fitted transformers of graphs that cost time linear in their number.

A **block** has one of three contents:

- *features* of a kernel with explicit ones: the roots of their counts, rare features more than frequent ones, rows of length 1;
- *columns* of numbers of whole graphs: cells of graphs whose ranks among the fitted graphs are on the same side of random cuts;
- *mapped rows* of a kernel on vectors (:class:`FeatureMap`), or of any other kernel (:class:`Nystroem`).

A fitted block keeps codes and scales, but no graphs except for one with each label.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from treegram._core.types import Floats, Hashes, Ints, Masks
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.check import check_column_names
from treegram.graphs.statistics import GraphStatistics
from treegram.graphs.transforms import BinEdgeAttributes, DropAttributes, ScaleAttributes, SelectLabels
from treegram.kernels import NSPDK, WLCL, WLOA, FeatureMap, Nystroem, StatisticsKernel
from treegram.kernels.attribution import row_contributions
from treegram.kernels.explicit import ExplicitKernel, GraphRows
from treegram.kernels.feature_map import NamedFeatures, graphs_of_each_label
from treegram.kernels.grid import split_pipeline
from treegram.kernels.node_pairs import NodePairKernel
from treegram.kernels.statistics_kernel import DIGITS, given_columns, mean_distance
from treegram.models.auto import groups_of_attributes
from treegram.models.parts import Parts
from treegram.models.search import Candidate, with_jobs
from treegram.structure.features import Features

_MOST_RARE = 25_000  # graphs of which one at least must have a feature: without it, columns would grow with the graphs
_AT_ONCE = 1 << 13  # graphs whose features are in memory at the same time
_N_DRAWS, N_CELLS = 256, 512  # of cells of columns; columns that the cells of a draw are hashed to
_WIDTH = 0.5  # of the Laplacian kernel on ranks that cells stand for, relative to the mean distance
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
        return sp.vstack([self.rows(self.prepare(piece)) for piece in _pieces(graphs)], format="csr")

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
    """Rows of cells of numbers of whole graphs: each of many draws cuts the ranks of random columns at random places.

    Graphs on the same side of all cuts of a draw are in one cell. A row has one entry for each draw, in the column of the cell,
    so that the expected product of two rows is a :class:`StatisticsKernel` on ranks. Cells are hashed to a fixed number of columns.
    """

    columns: str  # as for StatisticsKernel
    group: str | None  # the same
    statistics: GraphStatistics | None
    names: list[str]  # of the columns
    units: Floats  # of the columns
    usual: Floats  # the most frequent value of each column in these units, which explanations compare with
    knots: Floats  # values of the columns in these units, (n_knots, n_columns), ascending
    ranks: Floats  # their ranks, from 0 to 1
    cut_columns: Ints  # of each cut, one draw after the other
    cut_ranks: Floats
    cut_keys: Ints  # those of a graph's cuts that lie below its ranks are added up to the number of its cell
    starts: Ints  # of the cuts of each draw, and their number

    map_ = "columns"

    @property
    def kernel_(self) -> ColumnBlock:
        """The block itself, which explains its columns as a kernel does."""
        return self

    @property
    def n_features_out_(self) -> int:
        """Number of columns of rows."""
        return (len(self.starts) - 1) * N_CELLS

    def rows(self, graphs: Graphs) -> sp.csr_matrix:
        """Compute the rows of prepared graphs."""
        cells = self._cells(self._above(self._table(graphs)))
        n_graphs, n_draws = cells.shape
        values, ends = np.full(cells.size, 1.0 / np.sqrt(n_draws)), n_draws * np.arange(n_graphs + 1)
        return sp.csr_matrix((values, cells.reshape(-1), ends), (n_graphs, self.n_features_out_))

    def _table(self, graphs: Graphs) -> Floats:
        """Return the columns in their units."""
        table, given = _table(self.columns, self.group, self.statistics, graphs)
        if table.shape[1] != len(self.units):
            raise InvalidGraphError(
                f"The new graphs (X) have {table.shape[1]} numbers of whole graphs, but the model was fitted on {len(self.units)}. "
                "Build them the same way as the training graphs."
            )
        if self.columns != "statistics":
            fitted = self.names[len(self.names) - len(given) :]
            are_named = fitted != [f"graph_x{i}" for i in range(len(given))]
            new = None if graphs.graph_attribute_names is None else given
            check_column_names(self, "graph attributes", new, fitted if are_named else None)
        return np.round(table / self.units, DIGITS)

    def _above(self, table: Floats) -> Masks:
        """Return whether ranks lie above cuts, (n_graphs, n_cuts)."""
        ranks = [np.interp(*of_column) for of_column in zip(table.T, self.knots.T, self.ranks.T, strict=True)]
        return (np.stack(ranks)[self.cut_columns] > self.cut_ranks[:, None]).T

    def _cells(self, above: Masks) -> Ints:
        """Return the column of each graph's cell for each draw, (n_graphs, n_draws)."""
        n_draws, n_cuts = len(self.starts) - 1, len(self.cut_keys)
        keys = sp.csr_matrix((self.cut_keys, np.arange(n_cuts), self.starts), (n_draws, n_cuts), dtype=np.int32)
        return (keys @ above.T).T % N_CELLS + N_CELLS * np.arange(n_draws)

    def _column_parts(self, graphs: Graphs, weights: Floats) -> tuple[Floats, Floats, list[str]]:
        """Return what each column adds, (n_graphs, n_columns, n_outputs), a constant, and the names of the columns.

        The constant is the sum for a graph whose columns have their usual values. The difference to it is shared, draw by draw, by
        the cuts that the graph and the usual values are on different sides of.
        """
        above, usual = self._above(self._table(graphs)), self._above(self.usual[None])
        weights = weights / np.sqrt(len(self.starts) - 1)
        of_usual = weights[self._cells(usual)[0]]
        gains = weights[self._cells(above)] - of_usual
        differs = (above != usual).astype(np.float64)
        n_different = np.add.reduceat(differs, self.starts[:-1], axis=1)
        draws = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        shares = differs / np.maximum(n_different, 1.0)[:, draws]
        owners = sp.csr_matrix(
            (np.ones(len(draws)), (np.arange(len(draws)), self.cut_columns)), (len(draws), len(self.names))
        )
        parts = [(shares * gains[:, draws, output]) @ owners for output in range(weights.shape[1])]
        return np.stack(parts, axis=2), of_usual.sum(axis=0), self.names


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
    candidates += groups_of_attributes(graphs)
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
        block = _fit_columns(candidate.name, steps, kernel, prepared)
    else:
        block = MapBlock(candidate.name, steps, _fit_map(kernel, prepared))
    return block, graphs.place.map(_rows_of_part, zip(graphs.parts, strict=True), block)


def _rows_of_part(graphs: Graphs, block: Block) -> sp.csr_matrix:
    return block.transform(graphs)


# -------------------------------------------------------------------- rows of features


def _fit_features(name: str, steps: Any, kernel: Any, graphs: Parts) -> tuple[Block, list[Any]]:
    """Return the block of features that enough graphs have, and the rows of the graphs."""
    place, parts = graphs.place, list(zip(graphs.parts, strict=True))
    with_labels = Graphs.concatenate(place.each(_part_of_each_label, parts, steps))
    kernel = clone(kernel).set_params(normalize=False).fit(graphs_of_each_label(with_labels))
    features = list(zip(place.map(_features_of_part, parts, steps, kernel), strict=True))
    of_parts, n_graphs_with = zip(*place.each(_count_graphs, features), strict=True)
    codes, numbers = np.unique(np.concatenate(of_parts), return_inverse=True)
    n_graphs_with_code = np.bincount(numbers, np.concatenate(n_graphs_with), minlength=len(codes))
    is_kept = n_graphs_with_code >= max(2, len(graphs) / _MOST_RARE)
    codes, scales = codes[is_kept], np.sqrt(np.log1p(len(graphs) / n_graphs_with_code[is_kept]))
    return FeatureBlock(name, steps, kernel, codes, scales), place.map(_aligned_rows, features, codes, scales)


def _pieces(graphs: Graphs) -> Iterator[Graphs]:
    """Yield as many graphs at a time as have their features in memory; at least one piece, which may be empty."""
    return (graphs[start : start + _AT_ONCE] for start in range(0, max(len(graphs), 1), _AT_ONCE))


def _prepared(graphs: Graphs, steps: Any) -> Graphs:
    return graphs if steps is None else steps.transform(graphs)


def _part_of_each_label(graphs: Graphs, steps: Any) -> Graphs:
    return graphs_of_each_label(_prepared(graphs, steps))


def _features_of_part(graphs: Graphs, steps: Any, kernel: Any) -> list[Features]:
    """Return the features of graphs, some of them at a time."""
    return [_features(kernel, piece) for piece in _pieces(_prepared(graphs, steps))]


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


def _fit_columns(name: str, steps: Any, kernel: StatisticsKernel, graphs: Graphs) -> Block:
    """Return the block of the columns of a :class:`StatisticsKernel`."""
    columns, group = kernel.columns, kernel.group
    statistics = None if columns == "graph_attributes" else GraphStatistics().fit(graphs)
    table = np.concatenate([_table(columns, group, statistics, piece)[0] for piece in _pieces(graphs)])
    names = [] if statistics is None else list(statistics.feature_names_out_)
    names += _table(columns, group, None, graphs[:1])[1]
    units = np.abs(table).max(axis=0, initial=0.0)
    units[units == 0] = 1.0
    table = np.round(table / units, DIGITS)
    usual, (knots, ranks), distance = np.zeros(len(names)), np.empty((2, _N_KNOTS, len(names))), 0.0
    for j, column in enumerate(table.T):
        values, numbers, counts = np.unique(column, return_inverse=True, return_counts=True)
        usual[j] = values[np.argmax(counts)]
        of_values = (np.cumsum(counts) - counts / 2) / len(column)
        distance += mean_distance(of_values[numbers][:, None])
        if len(values) <= _N_KNOTS:
            places = np.minimum(np.arange(_N_KNOTS), len(values) - 1)
        else:  # about as many graphs between any two
            places = np.searchsorted(of_values, np.linspace(of_values[0], of_values[-1], _N_KNOTS))
        knots[:, j], ranks[:, j] = values[places], of_values[places]
    return ColumnBlock(
        name, steps, columns, group, statistics, names, units, usual, knots, ranks, *_draw_cuts(len(names), distance)
    )


def _draw_cuts(n_columns: int, distance: float) -> tuple[Ints, Floats, Ints, Ints]:
    """Return columns, places and keys of random cuts, and where those of each draw start.

    As the number of cuts between two graphs has a Poisson distribution, they are in one cell with the probability exp(-d / s), for
    the sum d of the differences of their ranks. A draw has at least one cut.
    """
    rng = np.random.default_rng(n_columns)
    n_cuts = np.maximum(rng.poisson(n_columns / (_WIDTH * distance) if distance else 1.0, size=_N_DRAWS), 1)
    n_all = int(n_cuts.sum())
    cut_columns = rng.integers(n_columns, size=n_all)
    return cut_columns, rng.random(n_all), rng.integers(N_CELLS, size=n_all), np.cumsum([0, *n_cuts])


def _table(
    columns: str, group: str | None, statistics: GraphStatistics | None, graphs: Graphs
) -> tuple[Floats, list[str]]:
    """Return the columns as they are, and the names of those that are graph attributes."""
    tables = [] if statistics is None else [statistics.transform(graphs)]
    names: list[str] = []
    if columns != "statistics":
        given, names = given_columns(graphs, group)
        tables.append(given)
    return np.hstack(tables) if tables else np.empty((len(graphs), 0)), names
