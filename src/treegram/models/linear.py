"""Linear models of very many graphs: a pass over them costs time linear in their number, and no graph is left out.

Above `SWITCH` graphs, a Gram matrix costs more than it gives. The automatic models then use one linear model on the rows of a
few blocks, side by side, each with the same mean squared length.

The model minimizes the loss (logistic for classes, squared for numbers) plus half the penalty times the squared norm of the weights.
Predictions of left-out graphs come from a few folds.

A decision is a sum over columns, hence over nodes: it can be explained exactly.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from treegram._core.parallel import track
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.models.auto import LARGE_SAMPLE, Screening, evenly_spaced, raise_failures
from treegram.models.blocks import Block, fit_block
from treegram.models.forecast import forecast_rows, in_words
from treegram.models.parts import Local, Parts, in_parts
from treegram.models.search import Candidate

SWITCH = 10_000  # graphs; above it, automatic models are linear models on rows
N_FOLDS = 3
PENALTIES = (1.0, 0.3, 0.1, 0.03)
_MOST_FOR_PENALTY = 50_000  # graphs; of more, so many are enough to choose the penalty
_TOLERANCE = 1e-4  # of the mean loss
_LEAST_GAIN = 0.1  # of the tolerance, by one product
_MOST_STEPS, _MOST_PRODUCTS, _MOST_HALVINGS = 30, 60, 20


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


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The rows of one block for each part of the graphs."""

    parts: list[Any]
    squares: float  # the sum of their squares
    sizes: Ints  # of the columns: the number of graphs with an entry


def measure_rows(place: Local, parts: list[Any]) -> BlockRows:
    """Wait until rows are computed, and return them with their size."""
    squares, sizes = place.total(_size, zip(parts, strict=True))
    return BlockRows(parts, float(squares), sizes.astype(np.int64))


def fit_linear(graphs: Parts, blocks: list[BlockRows], Y: Floats, weights: Floats, loss: str) -> LinearModel:
    """Fit a linear model for each output, with the penalty that predicts a left-out fold best; empty the list of blocks.

    ``Y`` are the targets, (n_graphs, n_outputs): 0 or 1 for the loss "logistic", or numbers for "squared".
    """
    place, n_blocks, (n, n_outputs) = graphs.place, len(blocks), Y.shape
    lengths = np.sqrt(np.array([rows.squares for rows in blocks]) / max(n, 1))
    factors = np.array([1.0 / (length * np.sqrt(n_blocks)) if length else 0.0 for length in lengths])
    # Frequent columns come first: their coefficients stay in the processor's cache.
    order = np.argsort(-np.concatenate([rows.sizes for rows in blocks]), kind="stable")
    n_columns = [len(rows.sizes) for rows in blocks]
    owners = np.repeat(np.arange(n_blocks), n_columns)[order]
    places = np.argsort(order).astype(np.int32)
    X = replace(graphs, parts=place.map(_stack, zip(*(rows.parts for rows in blocks), strict=True), factors, places))
    blocks.clear()  # and remove files of rows, which are in X now
    all_coefficients, intercept = np.zeros((len(order), n_outputs)), np.zeros(n_outputs)
    penalties, left_out, by_block = np.zeros(n_outputs), np.zeros((n, n_outputs)), np.zeros((n_blocks, n, n_outputs))
    for output, y in enumerate(track(Y.T, n_outputs, f"fitting {counted(n_outputs, 'linear model')}")):
        folds = fold_of_each(y)
        penalty, start = _choose_penalty(X, y, folds, weights, loss, len(order))
        # A fit must not start from one that has seen the graphs of its fold, as the solver stops early.
        starts = [start] + [(np.zeros(len(order)), 0.0)] * (N_FOLDS - 1)
        of_folds = [_fit(X, y, weights * (folds != fold), penalty, loss, starts[fold]) for fold in range(N_FOLDS)]
        V, b = np.stack([v for v, _ in of_folds], axis=1), np.array([b for _, b in of_folds])
        rows = zip(X.parts, X.split(folds), strict=True)
        products = place.each(_products_of_blocks, rows, V, owners, n_blocks)
        by_block[:, :, output] = np.concatenate(list(products), axis=1)
        left_out[:, output] = by_block[:, :, output].sum(axis=0) + b[folds]
        of_all = _fit(X, y, weights, penalty, loss, (V.mean(axis=1), b.mean()))
        penalties[output], (all_coefficients[:, output], intercept[output]) = penalty, of_all
    variances = by_block.var(axis=1).sum(axis=1)
    shares = variances / variances.sum() if variances.any() else np.full(n_blocks, 1.0 / n_blocks)
    of_blocks = np.split(all_coefficients[places], np.cumsum(n_columns)[:-1])
    coefficients = [factor * of_block for factor, of_block in zip(factors, of_blocks, strict=True)]
    return LinearModel(coefficients, intercept, penalties, left_out, shares)


def _choose_penalty(
    X: Parts, y: Floats, folds: Ints, weights: Floats, loss: str, n_columns: int
) -> tuple[float, tuple[Floats, float]]:
    """Return the penalty that predicts the first fold best from the others, with its coefficients and intercept.

    Penalties are tried in order, each from the solution of the one before, until the predictions get worse. Of very many graphs,
    some are enough to choose.
    """
    if len(y) > _MOST_FOR_PENALTY:
        ids = np.flatnonzero(np.random.default_rng(len(y)).permutation(len(y)) < _MOST_FOR_PENALTY)
        X, y, folds, weights = X[ids], y[ids], folds[ids], weights[ids]
    best, v, least = PENALTIES[0], (np.zeros(n_columns), 0.0), np.inf
    for penalty in PENALTIES:
        new = _fit(X, y, weights * (folds != 0), penalty, loss, v)
        error, _, _ = _evaluate(X.place, _with_targets(X, y, weights * (folds == 0)), new, loss, 0.0)
        if error >= least * (1 - 1e-9):
            break
        best, v, least = penalty, new, error
    return best, v


def _fit(
    X: Parts, y: Floats, weights: Floats, penalty: float, loss: str, start: tuple[Floats, float]
) -> tuple[Floats, float]:
    """Return coefficients and intercept for one output."""
    return solve(X.place, _with_targets(X, y, weights), penalty, loss, start, _TOLERANCE)


def _stack(*arguments: Any) -> sp.csr_matrix:
    """Return rows of each block side by side; the last two arguments are their factors and the new places of their columns."""
    *blocks, factors, places = arguments
    X = sp.hstack([factor * rows for factor, rows in zip(factors, blocks, strict=True)], format="csr")
    X = sp.csr_matrix((X.data, places[X.indices], X.indptr), X.shape)
    X.sort_indices()
    return X


def _size(rows: sp.csr_matrix) -> tuple[Floats, Ints]:
    """Return the sum of squares, and the number of entries in each column."""
    return np.square(rows.data).sum(), np.bincount(rows.indices, minlength=rows.shape[1])


def _with_targets(X: Parts, y: Floats, weights: Floats) -> list[tuple[Any, Any]]:
    """Return the parts of X, each with its targets and weights."""
    return list(zip(X.parts, X.place.map(_pair, zip(X.split(y), X.split(weights), strict=True)), strict=True))


def _pair(*pair: Any) -> tuple[Any, ...]:
    return pair


def _products_of_blocks(X: sp.csr_matrix, folds: Ints, V: Floats, owners: Ints, n_blocks: int) -> Floats:
    """Return what each block adds to the decision about each graph by the model without its fold: (n_blocks, n_graphs)."""
    products = [X @ np.where((owners == block)[:, None], V, 0.0) for block in range(n_blocks)]
    return np.stack([of_block[np.arange(len(folds)), folds] for of_block in products])


def fit_blocks(
    screening: Screening, list_candidates: Callable[[Graphs], list[Candidate]], Y: Floats, loss: str
) -> tuple[list[Block], LinearModel]:
    """Fit the blocks of candidates and a linear model on them; return both, blocks with the largest share first."""
    fitted, rows = [], []
    with in_parts(screening.graphs) as graphs:
        ids = graphs.sample()
        sample = graphs.gather(ids)
        # Mapped rows cost no more with vectors.
        few = sample[evenly_spaced(Y[ids], LARGE_SAMPLE)].assign(attributes=None)
        candidates = screening.affordable(list_candidates(sample), few)
        seconds = in_words(forecast_rows(sample, len(graphs), Y.shape[1]))
        label = f"fitting a linear model on {len(graphs):,} graphs{seconds}"
        for candidate in track(candidates, len(candidates), label):
            record = screening.add_record(candidate, len(graphs))
            start = time.monotonic()
            with screening.leaving_out(record), warnings.catch_warnings():
                if screening.is_auto:
                    warnings.simplefilter("ignore")  # about kernels that the user did not name
                block, parts = fit_block(candidate, graphs, sample)
                rows.append(measure_rows(graphs.place, parts))
                fitted.append((block, record))
                del parts
            record["seconds"] = time.monotonic() - start
            if screening.verbose:
                print(f"{candidate.name}: {len(graphs):,} rows, {record['seconds']:.1f} s")
        if not fitted:
            raise_failures(screening.records)
        model = fit_linear(graphs, rows, Y, screening.weights, loss)
    order = np.argsort(-model.shares, kind="stable")
    for (_, record), share in zip(fitted, model.shares.tolist(), strict=True):
        record["weight"] = share
    screening.records.sort(key=lambda record: -(record["weight"] or 0.0))
    coefficients = [model.coefficients[i] for i in order]
    return [fitted[i][0] for i in order], replace(model, coefficients=coefficients, shares=model.shares[order])


# -------------------------------------------------------------------- the solver


def solve(
    place: Local,
    rows: Sequence[tuple[Any, Any]],
    penalty: float,
    loss: str,
    start: tuple[Floats, float],
    tolerance: float = 1e-10,
) -> tuple[Floats, float]:
    """Minimize the weighted loss plus penalty / 2 times the squared norm; return coefficients and intercept.

    ``rows`` are parts of a matrix, each with its targets and weights; the intercept is not penalized. Newton's method: each step is
    solved by conjugate gradients, preconditioned by the diagonal, and halved while the loss would not fall. It ends when a step
    would lower the loss by less than ``tolerance`` for each unit of weight.

    All quantities are sums over parts: only vectors of the size of the coefficients leave a part. Columns are centered, though not
    in memory: the last coefficient is the decision at their mean. This needs fewer products, and keeps rounding from growing.
    """
    sums, squares, n = place.total(_sum_rows, rows)
    n = np.maximum(n, np.finfo(np.float64).tiny)
    center = sums / n
    variances = np.append(np.maximum(squares / n - center**2, 0.0), 1.0)
    penalties = np.append(np.full(len(center), penalty), 0.0)
    v = np.append(start[0], start[1] + _dot(center, start[0]))
    objective, total, expanded = _evaluate(place, rows, _uncentered(v, center), loss, penalty)
    for _ in range(_MOST_STEPS):
        with_derivatives = [(X, of_part) for (X, _), of_part in zip(rows, expanded, strict=True)]
        slopes, slope, curvature = place.total(_add_up, with_derivatives)
        gradient = np.append(slopes - center * slope, slope) + penalties * v
        diagonal = (curvature + 1e-9 * total) * variances + penalties

        def curve(direction: Floats, parts: Any = with_derivatives) -> Floats:
            image, of_intercept = place.total(_curve, parts, *_uncentered(direction, center))
            return np.append(image - center * of_intercept, of_intercept) + penalties * direction

        step, gain = _newton_step(curve, gradient, diagonal, _ENOUGH[loss], _LEAST_GAIN * tolerance * total)
        if gain <= tolerance * total:
            break
        length, before, old = 1.0, objective, v
        for _ in range(_MOST_HALVINGS):
            v = old + length * step
            objective, total, expanded = _evaluate(place, rows, _uncentered(v, center), loss, penalty)
            if objective <= before * (1 + 1e-12):
                break
            length /= 2
    return _uncentered(v, center)


def _uncentered(v: Floats, center: Floats) -> tuple[Floats, float]:
    """Return coefficients and intercept of columns as they are."""
    return v[:-1], float(v[-1] - _dot(center, v[:-1]))


def _newton_step(
    curve: Callable[[Floats], Floats], gradient: Floats, diagonal: Floats, enough: float, least_gain: float
) -> tuple[Floats, float]:
    """Return the step, and half its product with the gradient: the loss to gain.

    ``curve`` multiplies a direction by the second derivatives. The step is exact enough when the square of its residual is this
    share of the gradient's, or when a product gains less than ``least_gain``. Each residual is made orthogonal to all earlier ones,
    which it would be but for rounding: otherwise rounding grows until the step depends on the order of sums.
    """
    roots = np.sqrt(diagonal)
    step, residual = np.zeros_like(gradient), -gradient / roots
    direction, square, earlier = residual, _dot(residual, residual), list[tuple[Floats, float]]()
    small = enough * square
    for _ in range(_MOST_PRODUCTS):
        image = curve(direction / roots) / roots
        bent = _dot(direction, image)
        if bent <= 0.0:
            break
        length = square / bent
        step += length * direction
        earlier.append((residual, square))
        residual = residual - length * image
        for other, of_other in earlier:
            residual -= (_dot(other, residual) / of_other) * other
        gain, new = 0.5 * length * square, _dot(residual, residual)
        if new <= small or gain <= least_gain:
            break
        direction, square = residual + (new / square) * direction, new
    step /= roots
    return step, -0.5 * _dot(step, gradient)


def _evaluate(
    place: Local, rows: Sequence[tuple[Any, Any]], v: tuple[Floats, float], loss: str, penalty: float
) -> tuple[float, float, list[Any]]:
    """Return what coefficients and intercept minimize, the total weight, and what stands for the derivatives of each part."""
    expanded = place.map(_expand, rows, *v, loss)
    of_all, total = place.total(itemgetter(0), zip(expanded, strict=True))
    objective = float(of_all) + 0.5 * penalty * _dot(v[0], v[0])
    return objective, max(float(total), np.finfo(np.float64).tiny), expanded


def _sum_rows(X: sp.csr_matrix, targets: tuple[Floats, Floats]) -> tuple[Any, ...]:
    """Return the weighted sums of the rows and of their squares, and the sum of the weights."""
    weights = targets[1]
    squares = sp.csr_matrix((X.data**2, X.indices, X.indptr), X.shape)
    return X.T @ weights, squares.T @ weights, weights.sum()


def _expand(
    X: sp.csr_matrix, targets: tuple[Floats, Floats], v: Floats, intercept: float, loss: str
) -> tuple[tuple[float, float], Floats, Floats]:
    """Return losses and weights, added up, and the weighted first and second derivatives by each decision."""
    y, weights = targets
    values, slopes, curvatures = LOSSES[loss](X @ v + intercept, y)
    return (_dot(weights, values), weights.sum()), weights * slopes, weights * curvatures


def _add_up(X: sp.csr_matrix, expanded: tuple[Any, Floats, Floats]) -> tuple[Any, ...]:
    """Return the first derivatives by coefficients and intercept, and the sum of the second derivatives by the decisions."""
    _, slopes, curvatures = expanded
    return X.T @ slopes, slopes.sum(), curvatures.sum()


def _curve(
    X: sp.csr_matrix, expanded: tuple[Any, Floats, Floats], direction: Floats, of_intercept: float
) -> tuple[Floats, float]:
    """Return the product of the second derivatives with a direction."""
    u = expanded[2] * (X @ direction + of_intercept)
    return X.T @ u, u.sum()


def _dot(a: Floats, b: Floats) -> float:
    return float(np.einsum("i,i", a, b))  # the same bits for any number of threads


def _logistic(decisions: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    p = expit(decisions)
    return np.logaddexp(0.0, decisions) - y * decisions, p - y, p * (1.0 - p)


def _squared(decisions: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    errors = decisions - y
    return 0.5 * errors**2, errors, np.ones_like(errors)


# For each decision and target: the loss, and its first and second derivative.
LOSSES = {"logistic": _logistic, "squared": _squared}
# Squared errors need a single step. Another loss changes on the way, so that exact steps would be wasted.
_ENOUGH = {"logistic": 0.1, "squared": 0.0}
