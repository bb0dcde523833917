"""Linear models of very many graphs: time and memory grow linearly with their number, and no graph is left out.

Above `SWITCH` graphs, a Gram matrix costs more than it gives. The automatic models then use one linear model on the rows of a
few **blocks**, side by side, each with the same mean squared length:

- *features* of a kernel with explicit ones: the roots of their counts, rare features more than frequent ones, rows of length 1;
- *columns* of numbers of whole graphs: for each, a piecewise linear function of the rank among the fitted graphs;
- *mapped rows* of a kernel on vectors (:class:`FeatureMap`), or of any other kernel (:class:`Nystroem`).

The model minimizes the loss (logistic for classes, squared for numbers) plus half the penalty times the squared norm of the weights.
Fits that differ in penalty or in the graphs left out are columns of one block of vectors, so that each pass over the rows serves all
of them. Predictions of left-out graphs come from a few folds.

A decision is a sum over columns, hence over nodes: it can be explained exactly. A fitted block keeps codes and weights, but
no graphs except for one with each label.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from treegram._core.errors import InvalidGraphError
from treegram._core.parallel import track
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
from treegram.models.auto import Screening, raise_failures
from treegram.models.search import Candidate, with_jobs
from treegram.structure.features import Features

SWITCH = 8000  # graphs; above it, automatic models are linear models on rows
N_FOLDS = 3
PENALTIES = (0.03, 0.1, 0.3, 1.0)
_AT_ONCE = 1 << 13  # graphs whose features are in memory at the same time
_N_HATS = 8  # pieces of a function of a column, plus one
_N_KNOTS = 65  # of the ranks of a column
_N_COMPONENTS, _N_MAPPED = 128, 1024  # of the map of vectors; columns of mapped rows
_N_NYSTROEM = 1000  # graphs that kernels without rows are compared with
_TOLERANCE = 1e-4  # of the mean loss
_MOST_STEPS, _MOST_PRODUCTS, _MOST_HALVINGS = 30, 60, 20


# -------------------------------------------------------------------- blocks


@dataclass(frozen=True, eq=False)
class Block:
    """Fitted transformers of graphs, and what turns their output into rows."""

    name: str
    steps: Any  # a pipeline; None: the graphs as they are

    def prepare(self, graphs: Graphs) -> Graphs:
        """Return the graphs as the last step of the block receives them."""
        return graphs if self.steps is None else self.steps.transform(graphs)

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


def fit_block(candidate: Candidate, graphs: Graphs) -> tuple[Block, sp.csr_matrix]:
    """Return the fitted block of a candidate, and the rows of the graphs."""
    given, kernel = split_pipeline(candidate.kernel)
    steps = make_pipeline(*map(clone, given)).fit(graphs) if given else None
    prepared = graphs if steps is None else steps.transform(graphs)
    if isinstance(kernel, StatisticsKernel):
        block = _fit_columns(candidate.name, steps, kernel.columns, prepared)
    elif isinstance(kernel, ExplicitKernel) and not kernel.learns_from_data:
        return _fit_features(candidate.name, steps, kernel, prepared)
    else:
        block = MapBlock(candidate.name, steps, _fit_map(kernel, prepared))
    return block, block.transform(graphs)


# -------------------------------------------------------------------- rows of features


def _fit_features(name: str, steps: Any, kernel: Any, graphs: Graphs) -> tuple[Block, sp.csr_matrix]:
    """Return the block of features that at least two graphs have, and the rows of the graphs."""
    kernel = clone(kernel).set_params(normalize=False).fit(graphs_of_each_label(graphs))
    starts = range(0, max(len(graphs), 1), _AT_ONCE)
    parts = [_features(kernel, graphs[a : a + _AT_ONCE]) for a in starts]
    n_graphs_with = [np.bincount(part.counts.indices, minlength=len(part.codes)) for part in parts]
    codes, numbers = np.unique(np.concatenate([part.codes for part in parts]), return_inverse=True)
    n_graphs_with_code = np.bincount(numbers, np.concatenate(n_graphs_with), minlength=len(codes))
    is_kept = n_graphs_with_code >= 2
    codes, scales = codes[is_kept], np.sqrt(np.log1p(len(graphs) / n_graphs_with_code[is_kept]))
    rows = [_scaled(part.aligned(codes), scales) for part in parts]
    return FeatureBlock(name, steps, kernel, codes, scales), sp.vstack(rows, format="csr")


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


# -------------------------------------------------------------------- fits


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A fitted linear model on blocks of rows, with the predictions of each graph when its fold is left out."""

    coefficients: list[Floats]  # of each block: (n_columns, n_outputs)
    intercept: Floats  # (n_outputs,)
    penalties: Floats  # (n_outputs,)
    left_out: Floats  # (n_graphs, n_outputs)
    shares: Floats  # of each block, of the variance of these predictions


def fold_of_each(targets: Floats, n_folds: int = N_FOLDS) -> Ints:
    """Return the number of a fold for each graph, so that targets are spread evenly; ties are in random order."""
    ties = np.random.default_rng(len(targets)).random(len(targets))
    folds = np.empty(len(targets), np.int64)
    folds[np.lexsort((ties, targets))] = np.arange(len(targets)) % n_folds
    return folds


def fit_linear(rows: Sequence[sp.csr_matrix], Y: Floats, weights: Floats, loss: str) -> LinearModel:
    """Fit a linear model for each output, with the penalty that predicts a left-out fold best.

    ``rows`` are those of each block, ``Y`` the targets, (n_graphs, n_outputs): 0 or 1 for the loss "logistic", or numbers for "squared".
    """
    lengths = [np.sqrt(of_block.multiply(of_block).sum() / max(of_block.shape[0], 1)) for of_block in rows]
    factors = np.array([1.0 / (length * np.sqrt(len(rows))) if length else 0.0 for length in lengths])
    X = sp.hstack([factor * of_block for factor, of_block in zip(factors, rows, strict=True)], format="csr")
    starts = np.cumsum([0, *(of_block.shape[1] for of_block in rows)])
    n, n_outputs = Y.shape
    all_coefficients, intercept = np.zeros((X.shape[1], n_outputs)), np.zeros(n_outputs)
    penalties, left_out, by_block = np.zeros(n_outputs), np.zeros((n, n_outputs)), np.zeros((len(rows), n, n_outputs))
    for output, y in enumerate(Y.T):
        folds = fold_of_each(y)
        is_fitted = [(folds != fold) * weights for fold in range(N_FOLDS)]
        V, b = solve(
            X, y, np.tile(is_fitted[0][:, None], len(PENALTIES)), np.array(PENALTIES), loss, tolerance=_TOLERANCE
        )
        held = np.flatnonzero(folds == 0)
        losses = [weights[held] @ LOSSES[loss](column, y[held])[0] for column in (X[held] @ V + b).T]
        best = len(losses) - 1 - int(np.argmin(np.round(losses[::-1], 9)))  # ties go to the largest penalty
        penalties[output] = PENALTIES[best]
        start = np.tile(V[:, [best]], N_FOLDS), np.tile(b[best], N_FOLDS)
        others = np.stack([*is_fitted[1:], weights], axis=1)
        U, c = solve(X, y, others, np.full(N_FOLDS, PENALTIES[best]), loss, start, _TOLERANCE)
        all_coefficients[:, output], intercept[output] = U[:, -1], c[-1]
        of_folds = np.column_stack([V[:, best], U[:, :-1]])
        for k, of_block in enumerate(rows):
            products = factors[k] * (of_block @ of_folds[starts[k] : starts[k + 1]])
            by_block[k, :, output] = products[np.arange(n), folds]
        left_out[:, output] = by_block[:, :, output].sum(axis=0) + np.append(b[best], c[:-1])[folds]
    variances = by_block.var(axis=1).sum(axis=1)
    shares = variances / variances.sum() if variances.any() else np.full(len(rows), 1.0 / len(rows))
    pieces = [
        factor * all_coefficients[start:stop]
        for factor, start, stop in zip(factors, starts[:-1], starts[1:], strict=True)
    ]
    return LinearModel(pieces, intercept, penalties, left_out, shares)


def fit_blocks(
    screening: Screening, candidates: Sequence[Candidate], Y: Floats, loss: str
) -> tuple[list[Block], LinearModel]:
    """Fit the blocks of candidates and a linear model on them; return both, blocks with the largest share first."""
    graphs, n_graphs = screening.graphs, len(screening.graphs)
    fitted = []
    without_vectors = graphs[screening.sample()].assign(attributes=None)  # mapped rows cost no more with vectors
    candidates = screening.affordable(candidates, without_vectors)
    for candidate in track(candidates, len(candidates), f"computing rows of {n_graphs:,} graphs"):
        record = screening.add_record(candidate, n_graphs)
        start = time.monotonic()
        with screening.leaving_out(record), warnings.catch_warnings():
            if screening.is_auto:
                warnings.simplefilter("ignore")  # about kernels that the user did not name
            fitted.append((*fit_block(candidate, graphs), record))
        record["seconds"] = time.monotonic() - start
    if not fitted:
        raise_failures(screening.records)
    model = fit_linear([rows for _, rows, _ in fitted], Y, screening.weights, loss)
    order = np.argsort(-model.shares, kind="stable")
    for (_, _, record), share in zip(fitted, model.shares.tolist(), strict=True):
        record["weight"] = share
    screening.records.sort(key=lambda record: -(record["weight"] or 0.0))
    coefficients = [model.coefficients[i] for i in order]
    return [fitted[i][0] for i in order], replace(model, coefficients=coefficients, shares=model.shares[order])


def solve(
    X: sp.csr_matrix,
    y: Floats,
    weights: Floats,
    penalties: Floats,
    loss: str,
    start: tuple[Floats, Floats] | None = None,
    tolerance: float = 1e-10,
) -> tuple[Floats, Floats]:
    """Minimize the weighted loss plus penalties / 2 times squared norms; return coefficients, (n_columns, n_fits), and intercepts.

    ``weights`` has a column for each fit; intercepts are not penalized. Newton's method: each step is solved by conjugate gradients,
    preconditioned by the diagonal, and halved for a fit whose loss would not fall. A fit ends when a step would lower its
    loss by less than ``tolerance`` for each unit of weight.
    """
    n_fits = weights.shape[1]
    V, b = (np.zeros((X.shape[1], n_fits)), np.zeros(n_fits)) if start is None else (start[0].copy(), start[1].copy())
    squares = sp.csr_matrix((X.data**2, X.indices, X.indptr), X.shape)
    totals = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    active = np.arange(n_fits)
    F = X @ V + b
    for _ in range(_MOST_STEPS):
        W, p = weights[:, active], penalties[active]
        values, slopes, curvatures = LOSSES[loss](F[:, active], y[:, None])
        objective = _column_sums(W, values) + 0.5 * p * _column_sums(V[:, active], V[:, active])
        slopes *= W
        curvatures *= W
        gradient = X.T @ slopes + p * V[:, active], slopes.sum(axis=0)
        diagonal = squares.T @ curvatures + p, curvatures.sum(axis=0) + 1e-9 * totals[active]
        step, of_intercept, decrease = _newton_step(X, curvatures, p, gradient, diagonal, exact=loss == "squared")
        is_open = decrease > tolerance * totals[active]
        if not is_open.any():
            break
        moved = X @ step + of_intercept
        length = is_open.astype(np.float64)
        for _ in range(_MOST_HALVINGS):
            new_F, new_V = F[:, active] + length * moved, V[:, active] + length * step
            new_values = LOSSES[loss](new_F, y[:, None])[0]
            is_worse = _column_sums(W, new_values) + 0.5 * p * _column_sums(new_V, new_V) > objective * (1 + 1e-12)
            if not is_worse.any():
                break
            length[is_worse] /= 2
        F[:, active], V[:, active], b[active] = new_F, new_V, b[active] + length * of_intercept
        active = active[is_open]
    return V, b


def _newton_step(
    X: sp.csr_matrix,
    curvatures: Floats,
    p: Floats,
    gradient: tuple[Floats, Floats],
    diagonal: tuple[Floats, Floats],
    *,
    exact: bool,
) -> tuple[Floats, Floats, Floats]:
    """Return the step of the coefficients and of the intercepts, and half its product with the gradient: the loss to gain."""
    step, of_intercept = np.zeros_like(gradient[0]), np.zeros_like(gradient[1])
    left, left_b = -gradient[0], -gradient[1]
    z, z_b = left / diagonal[0], left_b / diagonal[1]
    direction, direction_b = z.copy(), z_b.copy()
    product = _column_sums(left, z) + left_b * z_b
    enough = (1e-4 if exact else 0.1) * product
    for _ in range(_MOST_PRODUCTS):
        u = curvatures * (X @ direction + direction_b)
        image, image_b = X.T @ u + p * direction, u.sum(axis=0)
        bent = _column_sums(direction, image) + direction_b * image_b
        length = np.where((bent > 0) & (product > enough), product / np.maximum(bent, 1e-300), 0.0)
        step += length * direction
        of_intercept += length * direction_b
        left -= length * image
        left_b -= length * image_b
        z, z_b = left / diagonal[0], left_b / diagonal[1]
        new = _column_sums(left, z) + left_b * z_b
        if (new <= enough).all():
            break
        ratio = new / np.maximum(product, 1e-300)
        direction *= ratio
        direction += z
        direction_b = z_b + ratio * direction_b
        product = new
    decrease = -0.5 * (_column_sums(step, gradient[0]) + of_intercept * gradient[1])
    return step, of_intercept, decrease


def _column_sums(A: Floats, B: Floats) -> Floats:
    sums: Floats = np.einsum("ij,ij->j", A, B)
    return sums


def _logistic(F: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    p = expit(F)
    return np.logaddexp(0.0, F) - y * F, p - y, p * (1.0 - p)


def _squared(F: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    errors = F - y
    return 0.5 * errors**2, errors, np.ones_like(F)


# For each decision and target: the loss, and its first and second derivative.
LOSSES = {"logistic": _logistic, "squared": _squared}
