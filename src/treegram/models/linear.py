"""Linear models of very many graphs: time and memory grow linearly with their number, and no graph is left out.

Above `SWITCH` graphs, a Gram matrix costs more than it gives. The automatic models then use one linear model on the rows of a
few blocks, side by side, each with the same mean squared length.

The model minimizes the loss (logistic for classes, squared for numbers) plus half the penalty times the squared norm of the weights.
Fits that differ in penalty or in the graphs left out are columns of one block of vectors, so that each pass over the rows serves all
of them. Predictions of left-out graphs come from a few folds.

A decision is a sum over columns, hence over nodes: it can be explained exactly.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from treegram._core.parallel import track
from treegram._core.types import Floats, Ints
from treegram.models.auto import Screening, raise_failures
from treegram.models.blocks import Block, fit_block
from treegram.models.search import Candidate

SWITCH = 8000  # graphs; above it, automatic models are linear models on rows
N_FOLDS = 3
PENALTIES = (0.03, 0.1, 0.3, 1.0)
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
