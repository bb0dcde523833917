"""Least-squares models on Gram matrices: all strengths and all leave-one-out predictions from one decomposition.

A **model** (class `Machine`) predicts sum_i (K(G, G_i) / s + 1) c_i, with s the mean of K(G_i, G_i), and minimizes the squared
errors plus alpha times its squared norm; the 1 represents the intercept. Its leave-one-out predictions have a closed form, so
kernels, strengths and combinations are compared without any further fit. A **stack** adds the predictions of models with the
non-negative weights for which the leave-one-out predictions fit the targets best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize, minimize_scalar, nnls
from scipy.special import log_softmax

from treegram._core.types import Floats, Ints

__all__ = [
    "Machine",
    "all_classes",
    "class_targets",
    "fit_bias",
    "fit_machine",
    "fit_temperature",
    "most_likely",
    "stack",
]

ALPHAS = np.logspace(-4, 1, 11)
_JITTER = 1e-8  # times the mean diagonal: landmarks may be equal
_DIGITS = 12  # of errors that are compared: the rest is rounding
_LOG_TEMPERATURES = (-5.0, 3.0)


@dataclass(frozen=True, eq=False)
class Machine:
    """A fitted least-squares model, with its leave-one-out predictions of the fitted graphs."""

    alpha: float
    coefficients: Floats  # (n_landmarks, n_outputs), of K itself
    intercept: Floats  # (n_outputs,)
    held_out: Floats  # (n_graphs, n_outputs)
    error: float  # mean squared error of held_out


def fit_machine(
    K: Floats, Y: Floats, weights: Floats, landmarks: Ints | None = None, *, alpha: float | None = None
) -> Machine:
    """Fit a model, by default with the alpha of the smallest leave-one-out error; ties go to the largest alpha.

    ``K`` has a row for each graph and a column for each graph or, with ``landmarks``, for each landmark. Predictions
    are then combinations of kernels with the landmarks alone, fitted to all graphs, and alpha must be given. A weight
    of 0 is treated as a very small one.
    """
    weights = np.maximum(weights, 1e-9 * weights.max())
    roots = np.sqrt(weights)[:, None]
    own = K if landmarks is None else K[landmarks]
    unit = float(own.diagonal().mean()) or 1.0
    K = K / unit + 1.0
    if landmarks is not None:
        assert alpha is not None
        coefficients, left = _solve_landmarks(K, roots * Y, roots, landmarks, alpha)
    elif alpha is not None:
        coefficients, left = _solve(K, roots * Y, roots, alpha)
    else:
        alpha, coefficients, left = _solve_all(K, roots * Y, roots)
    error = _error(left, weights)
    return Machine(alpha, coefficients / unit, coefficients.sum(axis=0), Y - left / roots, error)


def _error(left: Floats, weights: Floats) -> float:
    return round(float((left**2).sum() / weights.sum() / left.shape[1]), _DIGITS)


def _solve_all(K: Floats, targets: Floats, roots: Floats) -> tuple[float, Floats, Floats]:
    """Return the best alpha, its coefficients, and the weighted residuals of the leave-one-out predictions."""
    values, V = np.linalg.eigh(roots * K * roots.T)
    values, products, squares = np.maximum(values, 0.0), V.T @ targets, V**2
    best: tuple[float, float, Floats, Floats] | None = None
    for alpha in ALPHAS[::-1]:
        solved = V @ (products / (values + alpha)[:, None])
        left = solved / (squares @ (1.0 / (values + alpha)))[:, None]
        error = _error(left, roots**2)
        if best is None or error < best[0]:
            best = error, float(alpha), roots * solved, left
    assert best is not None
    return best[1:]


def _solve(K: Floats, targets: Floats, roots: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return coefficients and residuals for one alpha, at a fraction of the cost of a decomposition."""
    A = roots * K * roots.T
    A[np.diag_indices(len(A))] += alpha
    L = cholesky(A, lower=True, overwrite_a=True)
    solved = cho_solve((L, True), targets)
    inverse = dpotri(L, lower=1, overwrite_c=1)[0]
    return roots * solved, solved / inverse.diagonal()[:, None]


def _solve_landmarks(K: Floats, targets: Floats, roots: Floats, landmarks: Ints, alpha: float) -> tuple[Floats, Floats]:
    """Return coefficients of the landmarks and residuals for one alpha; time grows linearly with the other graphs."""
    square = K[landmarks]
    square[np.diag_indices(len(square))] += _JITTER * square.diagonal().mean()
    L = cholesky(square, lower=True, overwrite_a=True)
    features = solve_triangular(L, (roots * K).T, lower=True, overwrite_b=True)  # (n_landmarks, n_graphs)
    A = features @ features.T
    A[np.diag_indices(len(A))] += alpha
    root = cholesky(A, lower=True, overwrite_a=True)
    solved = cho_solve((root, True), features @ targets)
    left = targets - features.T @ solved
    leverages = (solve_triangular(root, features, lower=True) ** 2).sum(axis=0)
    return solve_triangular(L.T, solved, lower=False), left / (1.0 - leverages)[:, None]


def stack(held_out: list[Floats], Y: Floats, weights: Floats) -> Floats:
    """Return the non-negative weights of models that sum to 1 and predict left-out graphs best, by squared error."""
    roots = np.sqrt(weights)[:, None]
    columns = np.column_stack([(roots * one).ravel() for one in [*held_out, Y]])
    triangle: Floats = np.asarray(np.linalg.qr(columns, mode="r"))
    shares = nnls(triangle[:, :-1], triangle[:, -1])[0]
    if not shares.any():  # no model is better than predicting 0: keep the one with the smallest error
        shares[np.argmin([((columns[:, -1] - column) ** 2).sum() for column in columns[:, :-1].T])] = 1.0
    normalized: Floats = shares / shares.sum()
    return normalized


# -------------------------------------------------------------------- classes


def class_targets(codes: Ints, n_classes: int) -> Floats:
    """Return 1 for a graph's class and -1 for the others, (n_graphs, n_classes); for two classes, only the second column."""
    Y = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    return Y[:, 1:] if n_classes == 2 else Y


def all_classes(decisions: Floats) -> Floats:
    """Return a column for each class; for two classes, ``decisions`` has a column for the second only."""
    return np.hstack([-decisions, decisions]) if decisions.shape[1] == 1 else decisions


def most_likely(decisions: Floats) -> Ints:
    """Return the code of the class with the highest decision; ties go to the first class."""
    return all_classes(decisions).argmax(axis=1)


def fit_bias(decisions: Floats, codes: Ints, weights: Floats) -> Floats:
    """Return what to add to decisions, (n_outputs,), so that the softmax of the sums makes the weighted classes most likely.

    The temperature of the softmax is fitted with it, and forgotten: see `fit_temperature`.
    """
    is_class = codes[:, None] == np.arange(all_classes(decisions).shape[1])
    weights = weights[:, None] / weights.sum()

    def loss(parameters: Floats) -> tuple[float, Floats]:
        scores = all_classes(decisions + parameters[1:]) / np.exp(parameters[0])
        logs = log_softmax(scores, axis=1)
        slopes = weights * (np.exp(logs) - is_class)  # by the scores
        of_bias = slopes.sum(axis=0) / np.exp(parameters[0])
        of_bias = of_bias[1:] - of_bias[:1] if decisions.shape[1] == 1 else of_bias
        return -float((weights * logs)[is_class].sum()), np.array([-(slopes * scores).sum(), *of_bias])

    start = np.zeros(1 + decisions.shape[1])
    bounds = [_LOG_TEMPERATURES, *[(-2.0, 2.0)] * decisions.shape[1]]
    found: Floats = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x[1:]
    return found


def fit_temperature(decisions: Floats, codes: Ints, weights: Floats) -> float:
    """Return the temperature for which softmax(decisions / temperature) makes the classes most likely."""
    rows, decisions = np.arange(len(codes)), all_classes(decisions)

    def loss(log_temperature: float) -> float:
        likelihoods = log_softmax(decisions / np.exp(log_temperature), axis=1)[rows, codes]
        return -float(likelihoods @ weights)

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))
