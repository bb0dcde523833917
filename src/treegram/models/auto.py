"""The automatic choice: a least-squares model for each candidate, compared by leave-one-out predictions in closed form.

A **machine** predicts sum_i (K(G, G_i) / s + 1) c_i, with s the mean of K(G_i, G_i), and minimizes the squared errors plus
alpha times its squared norm; the 1 represents the intercept. One decomposition of a Gram matrix gives the best alpha and all
leave-one-out predictions, so kernels, strengths and combinations are compared without any further fit. A **stack** adds the
predictions of machines with the non-negative weights for which the leave-one-out predictions fit the targets best.

**Screening** fits candidates on a sample first, which costs little more than their Gram matrices; only the best few are fitted
on all graphs. If there are very many graphs, machines are combinations of kernels with some of them, the **landmarks**,
fitted to all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize, minimize_scalar, nnls
from scipy.special import log_softmax
from sklearn.base import clone

from treegram._core.parallel import track
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.models.candidates import Candidate, auto_candidates, seed_of, with_jobs

__all__ = [
    "AUTO_VERSION",
    "Fitted",
    "Screening",
    "all_classes",
    "choose_stack",
    "class_targets",
    "find_finalists",
    "fit_bias",
    "fit_machine",
    "fit_temperature",
    "most_likely",
    "stack",
]

# Increase it with every change to the candidates or the search that can change a choice: stored studies record it, and
# another version cannot continue them. tests/models/test_auto.py lists the candidates of this version.
AUTO_VERSION = "3"

SMALL_SAMPLE, LARGE_SAMPLE = 300, 1000  # graphs for screening: a third of all, but within these bounds
MANY = 2000  # graphs; above this, strengths are those of the sample, and fewer candidates go on
TOO_MANY, N_LANDMARKS = 6000, 4000  # graphs; above TOO_MANY, landmarks are used
N_FINALISTS, N_FINALISTS_OF_MANY = 5, 3  # candidates that go on from the sample to a stack
N_SEARCHED = 3  # candidates that go on to a search of C, alpha or noise
LEAST_SHARE = 0.03  # of a model in a stack
ALPHAS = np.logspace(-4, 1, 11)
_JITTER = 1e-8  # times the mean diagonal: landmarks may be equal
_DIGITS = 12  # of errors that are compared: the rest is rounding
_LOG_TEMPERATURES = (-5.0, 3.0)


# -------------------------------------------------------------------- least squares


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


# -------------------------------------------------------------------- screening


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate with its fitted kernel and least-squares model, and its record for ``search_results_``."""

    candidate: Candidate
    kernel: Any
    machine: Machine
    record: dict[str, Any]


class Screening:
    """Candidates, the graphs and targets to try them on, and the records of all trials so far."""

    def __init__(
        self,
        graphs: Graphs,
        Y: Floats,
        weights: Floats | None,
        codes: Ints | None = None,
        *,
        is_auto: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.graphs, self.Y, self.codes = graphs, Y, codes
        self.weights = np.ones(len(Y)) if weights is None else weights
        self.is_auto, self.n_jobs, self.verbose = is_auto, n_jobs, verbose
        self.records: list[dict[str, Any]] = []

    def candidates(self, *, with_counts: bool = False) -> list[Candidate]:
        """Return the candidates of "auto" that suit the graphs."""
        found = auto_candidates(self.graphs, with_counts=with_counts)
        return [replace(one, kernel=with_jobs(one.kernel, self.n_jobs)) for one in found]

    def sample(self) -> Ints:
        """Return the ids of the graphs for screening, ascending; all of them if there are few."""
        size = min(max(len(self.graphs) // 3, SMALL_SAMPLE), LARGE_SAMPLE)
        return evenly_spaced(self.Y, size)

    def try_all(
        self,
        candidates: Sequence[Candidate],
        ids: Ints,
        *,
        alphas: Sequence[float] | None = None,
        keep: Callable[[Floats], None] | None = None,
    ) -> list[Fitted]:
        """Fit candidates on some graphs; skip candidates of "auto" that raise a ValueError, with a note.

        ``alphas`` are their strengths, by default the best for each; ``keep`` receives the Gram matrix of each returned
        candidate.
        """
        graphs, Y, weights = self.graphs[ids], self.Y[ids], self.weights[ids]
        landmarks = evenly_spaced(Y, N_LANDMARKS) if len(ids) > TOO_MANY else None
        fitted = []
        for i, one in enumerate(track(candidates, len(candidates), f"trying kernels on {len(ids):,} graphs")):
            start = time.monotonic()
            record: dict[str, Any] = {"candidate": one.name, "reason": one.reason, "n_graphs": len(ids)}
            record |= {"score": None, "seconds": 0.0, "note": ""}
            self.records.append(record)
            try:
                kernel, K = self.fit_kernel(one.kernel, graphs, landmarks)
            except ValueError as error:
                if not self.is_auto:
                    raise
                record["note"] = f"left out: {error}"
                continue
            machine = fit_machine(K, Y, weights, landmarks, alpha=None if alphas is None else alphas[i])
            if keep is not None:
                keep(K)
            score = self._score(machine.held_out, ids)
            record |= {"score": score, "seconds": time.monotonic() - start}
            fitted.append(Fitted(one, kernel, machine, record))
            if self.verbose:
                print(f"{one.name}: score {score:.4f} on {len(ids)} graphs, {record['seconds']:.1f} s")
        if not fitted:
            raise ValueError(f"No candidate could be used. The first: {self.records[0]['note']}.")
        return fitted

    def _score(self, held_out: Floats, ids: Ints) -> float:
        """Return the leave-one-out accuracy or, for regression, the share of the variance explained."""
        Y, weights = self.Y[ids], self.weights[ids]
        if self.codes is not None:
            return float(np.average(most_likely(held_out) == self.codes[ids], weights=weights))
        variance = np.average((Y - np.average(Y, axis=0, weights=weights)) ** 2, axis=0, weights=weights).mean()
        return 1.0 - float(np.average((held_out - Y) ** 2, axis=0, weights=weights).mean() / (variance or 1.0))

    def fit_kernel(self, kernel: Any, graphs: Graphs, landmarks: Ints | None = None) -> tuple[Any, Floats]:
        """Fit a copy of a kernel; return it with its values between all graphs, or between all graphs and the landmarks."""
        kernel = clone(kernel)
        with warnings.catch_warnings():
            if self.is_auto:
                warnings.simplefilter("ignore")  # about kernels that the user did not name
            if landmarks is None:
                K: Floats = kernel.fit_transform(graphs)
            else:
                K = np.empty((len(graphs), len(landmarks)))
                K[landmarks] = kernel.fit_transform(graphs[landmarks])
                others = np.setdiff1d(np.arange(len(graphs)), landmarks)
                K[others] = kernel.transform(graphs[others])
        if not np.isfinite(K).all():
            raise ValueError(f"The Gram matrix of {kernel!r} has entries that are not finite.")
        return kernel, K


def evenly_spaced(Y: Floats, size: int) -> Ints:
    """Return ids of graphs that are evenly spaced in the order of their targets, ascending; ties are in random order."""
    if len(Y) <= size:
        return np.arange(len(Y))
    ties = np.random.default_rng(seed_of("auto", len(Y))).random(len(Y))
    order = np.lexsort((ties, *Y.T))
    return np.sort(order[np.linspace(0, len(order) - 1, size).astype(np.int64)])


def choose_stack(screening: Screening, candidates: Sequence[Candidate]) -> tuple[list[Fitted], Floats]:
    """Return the models of a stack, fitted on all graphs, and their weights; candidates of "auto" are screened first."""
    n_graphs, ids, alphas = len(screening.graphs), screening.sample(), None
    if len(ids) < n_graphs and (screening.is_auto or n_graphs > MANY):
        fitted = screening.try_all(candidates, ids)
        if screening.is_auto:
            fitted = _finalists(screening, fitted, ids, N_FINALISTS if n_graphs <= MANY else N_FINALISTS_OF_MANY)
        candidates = [one.candidate for one in fitted]
        alphas = [one.machine.alpha for one in fitted] if n_graphs > MANY else None
        for one in fitted:
            screening.records.remove(one.record)
    fitted = screening.try_all(candidates, np.arange(n_graphs), alphas=alphas)
    shares = stack([one.machine.held_out for one in fitted], screening.Y, screening.weights)
    least = min(LEAST_SHARE, shares.max())
    kept = [one for one, share in zip(fitted, shares, strict=True) if share >= least]
    shares = stack([one.machine.held_out for one in kept], screening.Y, screening.weights)
    for one in fitted:
        one.record["note"] = f"left out: weight below {LEAST_SHARE}"
    for one, share in zip(kept, shares, strict=True):
        one.record["note"] = f"weight {share:.2f}"
    return kept, shares


def _finalists(screening: Screening, fitted: list[Fitted], ids: Ints, n_finalists: int) -> list[Fitted]:
    """Return the candidates with the largest weights in a stack, then those with the smallest errors."""
    shares = stack([one.machine.held_out for one in fitted], screening.Y[ids], screening.weights[ids])
    errors = np.array([one.machine.error for one in fitted])
    ranks = np.lexsort((errors, -np.where(shares >= LEAST_SHARE, shares, 0.0)))
    for i in ranks[n_finalists:]:
        fitted[i].record["note"] = f"left out: not among the best {n_finalists} on {len(ids)} graphs"
    return [fitted[i] for i in sorted(ranks[:n_finalists])]


def find_finalists(screening: Screening) -> tuple[list[Candidate], list[dict[str, Any]]]:
    """Return the best few candidates, for a search by the model's own score, and the records of the others."""
    fitted = screening.try_all(screening.candidates(), screening.sample())
    fitted.sort(key=lambda one: one.machine.error)  # stable: ties keep their order
    for one in fitted[N_SEARCHED:]:
        score, one.record["score"] = one.record["score"], None  # it is not the model's own
        one.record["note"] = (
            f"left out: not among the best {N_SEARCHED} of least squares (leave-one-out score {score:.4f})"
        )
    finalists = [one.candidate for one in fitted[:N_SEARCHED]]
    names = {one.name for one in finalists}
    return finalists, [one for one in screening.records if one["candidate"] not in names]
