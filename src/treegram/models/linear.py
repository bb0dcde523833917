"""Linear models of very many graphs: time and memory grow linearly with their number, and no graph is left out.

Above `SWITCH` graphs, a Gram matrix costs more than it gives. The automatic models then use one linear model on the rows of a
few blocks, side by side, each with the same mean squared length.

The model minimizes the loss (logistic for classes, squared for numbers) plus half the penalty times the squared norm of the weights.
Fits that differ in penalty or in the graphs left out are columns of one block of vectors, so that each pass over the rows serves all
of them. Predictions of left-out graphs come from a few folds.

A decision is a sum over columns, hence over nodes: it can be explained exactly.
"""

from __future__ import annotations

import itertools
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
PENALTIES = (0.03, 0.1, 0.3, 1.0)
_MOST_FOR_PENALTY = 50_000  # graphs; of more, so many are enough to choose the penalty
_TOLERANCE = 1e-4  # of the mean loss
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
    n_columns: int


def measure_rows(place: Local, parts: list[Any]) -> BlockRows:
    """Wait until rows are computed, and return them with their size."""
    squares, columns = zip(*place.each(_size, zip(parts, strict=True)), strict=True)
    return BlockRows(parts, sum(squares), columns[0])


def fit_linear(graphs: Parts, blocks: Sequence[BlockRows], Y: Floats, weights: Floats, loss: str) -> LinearModel:
    """Fit a linear model for each output, with the penalty that predicts a left-out fold best.

    ``Y`` are the targets, (n_graphs, n_outputs): 0 or 1 for the loss "logistic", or numbers for "squared".
    """
    place, n, n_outputs = graphs.place, *Y.shape
    lengths = np.sqrt(np.array([rows.squares for rows in blocks]) / max(n, 1))
    factors = np.array([1.0 / (length * np.sqrt(len(blocks))) if length else 0.0 for length in lengths])
    starts = np.cumsum([0, *(rows.n_columns for rows in blocks)])
    X = replace(graphs, parts=place.map(_stack, zip(*(rows.parts for rows in blocks), strict=True), factors))
    all_coefficients, intercept = np.zeros((starts[-1], n_outputs)), np.zeros(n_outputs)
    penalties, left_out, by_block = np.zeros(n_outputs), np.zeros((n, n_outputs)), np.zeros((len(blocks), n, n_outputs))
    for output, y in enumerate(track(Y.T, n_outputs, f"fitting {counted(n_outputs, 'linear model')}")):
        folds = fold_of_each(y)
        penalties[output], V, b = _choose_penalty(X, y, folds, weights, loss, int(starts[-1]))
        is_fitted = np.stack([*(folds != fold for fold in range(N_FOLDS)), np.ones(n, bool)], axis=1)
        start = np.tile(V[:, None], N_FOLDS + 1), np.full(N_FOLDS + 1, b)
        same = np.full(N_FOLDS + 1, penalties[output])
        U, c = solve(place, _with_targets(X, y, weights[:, None] * is_fitted), same, loss, start, _TOLERANCE)
        all_coefficients[:, output], intercept[output] = U[:, -1], c[-1]
        rows = zip(X.parts, X.split(folds), strict=True)
        products = place.each(_products_of_blocks, rows, U[:, :-1], starts)
        by_block[:, :, output] = np.concatenate(list(products), axis=1)
        left_out[:, output] = by_block[:, :, output].sum(axis=0) + c[folds]
    variances = by_block.var(axis=1).sum(axis=1)
    shares = variances / variances.sum() if variances.any() else np.full(len(blocks), 1.0 / len(blocks))
    of_blocks = np.split(all_coefficients, starts[1:-1])
    coefficients = [factor * of_block for factor, of_block in zip(factors, of_blocks, strict=True)]
    return LinearModel(coefficients, intercept, penalties, left_out, shares)


def _choose_penalty(
    X: Parts, y: Floats, folds: Ints, weights: Floats, loss: str, n_columns: int
) -> tuple[float, Floats, float]:
    """Return the penalty that predicts the first fold best from the others, with its coefficients and intercept.

    Of very many graphs, some are enough to choose.
    """
    if len(y) > _MOST_FOR_PENALTY:
        ids = np.flatnonzero(np.random.default_rng(len(y)).permutation(len(y)) < _MOST_FOR_PENALTY)
        X, y, folds, weights = X[ids], y[ids], folds[ids], weights[ids]
    is_fitted = np.tile((folds != 0)[:, None], len(PENALTIES))
    start = np.zeros((n_columns, len(PENALTIES))), np.zeros(len(PENALTIES))
    rows = _with_targets(X, y, weights[:, None] * is_fitted)
    V, b = solve(X.place, rows, np.array(PENALTIES), loss, start, _TOLERANCE)
    left_out = _with_targets(X, y, weights[:, None] * ~is_fitted)
    losses, _, _ = _evaluate(X.place, left_out, V, b, np.arange(len(b)), np.zeros(len(b)), loss)
    best = len(losses) - 1 - int(np.argmin(np.round(losses[::-1], 9)))  # ties go to the largest penalty
    return PENALTIES[best], V[:, best], b[best]


def _stack(*arguments: Any) -> sp.csr_matrix:
    """Return rows of each block side by side; the last argument are their factors."""
    *blocks, factors = arguments
    return sp.hstack([factor * rows for factor, rows in zip(factors, blocks, strict=True)], format="csr")


def _size(rows: sp.csr_matrix) -> tuple[float, int]:
    """Return the sum of squares, and the number of columns."""
    return rows.multiply(rows).sum(), rows.shape[1]


def _with_targets(X: Parts, y: Floats, weights: Floats) -> list[tuple[Any, Any]]:
    """Return the parts of X, each with its targets and weights, (n_graphs, n_fits)."""
    return list(zip(X.parts, X.place.map(_pair, zip(X.split(y), X.split(weights), strict=True)), strict=True))


def _pair(*pair: Any) -> tuple[Any, ...]:
    return pair


def _products_of_blocks(X: sp.csr_matrix, folds: Ints, V: Floats, starts: Ints) -> Floats:
    """Return what each block adds to the decision about each graph by the model without its fold: (n_blocks, n_graphs)."""
    products = []
    for start, stop in itertools.pairwise(starts):
        of_block = np.zeros_like(V)
        of_block[start:stop] = V[start:stop]
        products.append((X @ of_block)[np.arange(len(folds)), folds])
    return np.stack(products)


def fit_blocks(
    screening: Screening, list_candidates: Callable[[Graphs], list[Candidate]], Y: Floats, loss: str
) -> tuple[list[Block], LinearModel]:
    """Fit the blocks of candidates and a linear model on them; return both, blocks with the largest share first."""
    fitted = []
    with in_parts(screening.graphs) as graphs:
        ids = graphs.sample()
        sample = graphs.gather(ids)
        few = sample[evenly_spaced(Y[ids], LARGE_SAMPLE)].assign(
            attributes=None
        )  # mapped rows cost no more with vectors
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
                fitted.append((block, measure_rows(graphs.place, parts), record))
            record["seconds"] = time.monotonic() - start
            if screening.verbose:
                print(f"{candidate.name}: {len(graphs):,} rows, {record['seconds']:.1f} s")
        if not fitted:
            raise_failures(screening.records)
        model = fit_linear(graphs, [rows for _, rows, _ in fitted], Y, screening.weights, loss)
    order = np.argsort(-model.shares, kind="stable")
    for (_, _, record), share in zip(fitted, model.shares.tolist(), strict=True):
        record["weight"] = share
    screening.records.sort(key=lambda record: -(record["weight"] or 0.0))
    coefficients = [model.coefficients[i] for i in order]
    return [fitted[i][0] for i in order], replace(model, coefficients=coefficients, shares=model.shares[order])


# -------------------------------------------------------------------- the solver


def solve(
    place: Local,
    rows: Sequence[tuple[Any, Any]],
    penalties: Floats,
    loss: str,
    start: tuple[Floats, Floats],
    tolerance: float = 1e-10,
) -> tuple[Floats, Floats]:
    """Minimize the weighted loss plus penalties / 2 times squared norms; return coefficients, (n_columns, n_fits), and intercepts.

    ``rows`` are parts of a matrix, each with its targets and weights, which have a column for each fit; intercepts are not penalized.
    Newton's method: each step is solved by conjugate gradients, preconditioned by the diagonal, and halved for a fit whose loss would
    not fall. A fit ends when a step would lower its loss by less than ``tolerance`` for each unit of weight.

    All quantities are sums over parts: only vectors of the size of the coefficients leave a part.
    """
    V, b = start[0].copy(), start[1].copy()
    fits = np.arange(len(b))  # that have not ended: only these are computed
    objective, totals, expanded = _evaluate(place, rows, V, b, fits, penalties, loss)
    for _ in range(_MOST_STEPS):
        p = penalties[fits]
        with_derivatives = [(X, of_part) for (X, _), of_part in zip(rows, expanded, strict=True)]
        slopes, slopes_b, diagonal, diagonal_b = place.total(_add_up, with_derivatives)
        gradient = slopes + p * V[:, fits], slopes_b
        diagonals = diagonal + p, diagonal_b + 1e-9 * totals

        def curve(
            direction: Floats, of_intercept: Floats, active: Ints, parts: Any = with_derivatives, p: Floats = p
        ) -> tuple[Floats, ...]:
            image, image_b = place.total(_curve, parts, direction, of_intercept, active)
            return image + p[active] * direction, image_b

        step, step_b, decrease = _newton_step(curve, gradient, diagonals, exact=loss == "squared")
        is_open = decrease > tolerance * totals
        if not is_open.any():
            break
        fits, step, step_b, before = fits[is_open], step[:, is_open], step_b[is_open], objective[is_open]
        length, old_V, old_b = np.ones(len(fits)), V[:, fits], b[fits]
        for _ in range(_MOST_HALVINGS):
            V[:, fits], b[fits] = old_V + length * step, old_b + length * step_b
            objective, totals, expanded = _evaluate(place, rows, V, b, fits, penalties, loss)
            is_worse = objective > before * (1 + 1e-12)
            if not is_worse.any():
                break
            length[is_worse] /= 2
    return V, b


def _newton_step(
    curve: Callable[[Floats, Floats, Ints], tuple[Floats, ...]],
    gradient: tuple[Floats, Floats],
    diagonal: tuple[Floats, Floats],
    *,
    exact: bool,
) -> tuple[Floats, Floats, Floats]:
    """Return the step of the coefficients and of the intercepts, and half its product with the gradient: the loss to gain.

    ``curve`` multiplies directions of some fits by the second derivatives.
    """
    step, step_b = np.zeros_like(gradient[0]), np.zeros_like(gradient[1])
    active = np.arange(len(step_b))  # the fits whose step is not exact enough yet
    left, left_b = -gradient[0], -gradient[1]
    direction, direction_b = left / diagonal[0], left_b / diagonal[1]
    product = _column_sums(left, direction) + left_b * direction_b
    enough = (1e-4 if exact else 0.1) * product
    for _ in range(_MOST_PRODUCTS):
        image, image_b = curve(direction, direction_b, active)
        bent = _column_sums(direction, image) + direction_b * image_b
        length = np.where(bent > 0, product / np.maximum(bent, 1e-300), 0.0)
        step[:, active] += length * direction
        step_b[active] += length * direction_b
        left, left_b = left - length * image, left_b - length * image_b
        z, z_b = left / diagonal[0][:, active], left_b / diagonal[1][active]
        new = _column_sums(left, z) + left_b * z_b
        is_open = (bent > 0) & (new > enough[active])
        if not is_open.any():
            break
        ratio = (new / np.maximum(product, 1e-300))[is_open]
        direction, direction_b = direction[:, is_open], direction_b[is_open]
        direction, direction_b = z[:, is_open] + ratio * direction, z_b[is_open] + ratio * direction_b
        active, left, left_b, product = active[is_open], left[:, is_open], left_b[is_open], new[is_open]
    decrease = -0.5 * (_column_sums(step, gradient[0]) + step_b * gradient[1])
    return step, step_b, decrease


def _evaluate(
    place: Local,
    rows: Sequence[tuple[Any, Any]],
    V: Floats,
    b: Floats,
    fits: Ints,
    penalties: Floats,
    loss: str,
) -> tuple[Floats, Floats, list[Any]]:
    """Return what each of some fits minimizes, its total weight, and what stands for the derivatives of each part."""
    V, b = V[:, fits], b[fits]
    expanded = place.map(_expand, rows, V, b, fits, loss)
    losses, totals = place.total(itemgetter(0), zip(expanded, strict=True))
    objective = losses + 0.5 * _column_sums(V, penalties[fits] * V)
    return objective, np.maximum(totals, np.finfo(np.float64).tiny), expanded


def _expand(
    X: sp.csr_matrix, targets: tuple[Floats, Floats], V: Floats, b: Floats, fits: Ints, loss: str
) -> tuple[tuple[Floats, Floats], Floats, Floats]:
    """Return losses and weights, added up, and the weighted first and second derivatives by each decision."""
    y, weights = targets[0], targets[1][:, fits]
    values, slopes, curvatures = LOSSES[loss](X @ V + b, y[:, None])
    return (_column_sums(weights, values), weights.sum(axis=0)), weights * slopes, weights * curvatures


def _add_up(X: sp.csr_matrix, expanded: tuple[Any, Floats, Floats]) -> tuple[Floats, ...]:
    """Return the first derivatives by coefficients and intercepts, and the diagonal of the second."""
    _, slopes, curvatures = expanded
    squares = sp.csr_matrix((X.data**2, X.indices, X.indptr), X.shape)
    return X.T @ slopes, slopes.sum(axis=0), squares.T @ curvatures, curvatures.sum(axis=0)


def _curve(
    X: sp.csr_matrix, expanded: tuple[Any, Floats, Floats], direction: Floats, of_intercept: Floats, active: Ints
) -> tuple[Floats, Floats]:
    """Return the product of the second derivatives of some fits with a direction of each."""
    u = expanded[2][:, active] * (X @ direction + of_intercept)
    return X.T @ u, u.sum(axis=0)


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
