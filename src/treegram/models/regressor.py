"""The automatic regressor of graphs: a Gaussian process on a sum of kernels with learned weights."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize, minimize_scalar

from treegram._core.parallel import one_blas_thread, verbosely
from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.models.auto import Candidate, Fitted, Screening, evenly_spaced
from treegram.models.base import CombiningModel, DecisionParts
from treegram.models.gp import PredictsByProcess, decompose, mean_diagonal

__all__ = ["GraphRegressor", "learn_weights"]

SAMPLE = 600  # at most this many graphs to learn weights on
MOST = 5000  # at most this many graphs are fitted
LEAST_SHARE = 0.005  # of a kernel in the sum
FIRST_NOISE = 0.1
BOUNDS = (-15.0, 6.0)  # of the logarithms of weights and noise
MAX_ROUNDS = 100


@parameters
class GraphRegressor(PredictsByProcess, CombiningModel):
    r"""Gaussian process regression on graphs, on a sum of kernels with learned weights.

    Targets, minus their mean and divided by their standard deviation, are modeled as a sample of

    .. math:: y \sim N\Bigl(0, s^2 \bigl(\sum_k w_k K_k + \rho I\bigr)\Bigr)

    The weights :math:`w_k` make the targets most likely, under a prior that keeps the model from relying on a single
    kernel: the logarithms of the weights are normally distributed around equal weights, with standard deviation 1. The
    noise :math:`\rho` and the scale :math:`s^2` also make the targets most likely. No graph is held out.

    Parameters
    ----------
    kernels : "auto" or list of GraphKernel, Pipeline or str, default="auto"
        "auto": all candidates that suit the graphs; see :doc:`/models`. Or kernels, pipelines that end in one, or names
        such as "wl", with their own parameters.
    n_jobs : int or None, default=None
        Threads to use for Gram matrices, as in joblib; -1 means all. None: the kernels' own number.
    verbose : int, default=0
        If above 0, print a line for each kernel tried; where neither a terminal nor a notebook shows progress, write a line
        to stderr every half minute.

    Attributes
    ----------
    kernels_ : list of GraphKernel or Pipeline
        The kernels of the sum, fitted; those whose share of the sum is below 0.005 are left out.
    weights_ : ndarray of shape (n_kernels,)
        Their weights :math:`w_k`, which sum to 1 for kernels with ones on the diagonal.
    noise_ : float
        The ratio of the variance of the noise to that of the signal, :math:`\rho`.
    scale_ : float
        The factor :math:`s^2`.
    dual_coef_ : ndarray of shape (n_graphs,)
        Coefficients of the fitted graphs, in units of the targets.
    intercept_ : float
        The mean of the fitted targets.
    log_marginal_likelihood_ : float
        Logarithm of the density of the normalized targets.
    calibration_ : ndarray of shape (n_graphs,)
        Errors for ``prediction_interval``, in standard deviations, ascending: leave-one-out errors of the fitted
        graphs, or errors on the graphs of ``calibrate``.
    search_results_ : list of dict
        One record for each kernel: candidate, reason, n_graphs, score (share of the variance explained by its own
        leave-one-out predictions), seconds, and a note (its weight, or why it was left out). ``search_summary()``
        returns it as a table.
    estimators_ : list of GraphRegressor
        Only if y has several columns: the fitted copies, one for each, which have all the other attributes. Explain
        them one by one: ``explain(model.estimators_[0], X)``.

    See Also
    --------
    GraphGP : a Gaussian process on one kernel, with a search over its parameters.
    GraphRidge : ridge regression on one kernel.
    GraphClassifier : for classes.

    Notes
    -----
    Weights are learned on at most 600 graphs, evenly drawn from the range of the targets; coefficients, noise and scale
    on up to 5,000. With more, 5,000 are drawn in the same way, with a warning. Nothing is random.

    Examples
    --------
    >>> from treegram import GraphRegressor, load_digits_graphs
    >>> graphs, _ = load_digits_graphs()
    >>> y = [graph.attributes[:, 2].mean() for graph in graphs[:104]]  # how dark the inked pixels are
    >>> model = GraphRegressor(["oddcl", "wlcl"]).fit(graphs[:100], y[:100])
    >>> mean, std = model.predict(graphs[100:104], return_std=True)
    >>> bool((abs(mean - y[100:]) < 3 * std).all())
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the weights of the kernels and the noise, and fit the model on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs,) or (n_graphs, n_targets)
            One number for each graph, or several, with NaN where a graph has no value: then a copy of the model is
            fitted for each column, on the graphs that have a value there.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        if np.ndim(y) == 2:
            return self._fit_columns(X, y)
        graphs, numbers = self._read_numbers(X, y)
        if len(numbers) > MOST:
            warnings.warn(
                f"A Gaussian process on {len(numbers):,} graphs takes too long: it is fitted on {MOST:,} of them, evenly drawn from "
                "the range of the targets. For all of them use Nystroem(kernel) before a linear model.",
                UserWarning,
                stacklevel=2,
            )
            ids = evenly_spaced(numbers[:, None], MOST)
            graphs, numbers = graphs[ids], numbers[ids]
        z = self._normalize(numbers)
        screening = Screening(graphs, z[:, None], np.ones(len(z)), is_auto=self._is_auto, verbose=self.verbose)
        with one_blas_thread(), verbosely(self.verbose):
            candidates = self._candidates(graphs, with_counts=True)
            self._fit_sum(screening, self._weigh(screening, candidates), z)
        self.search_results_ = screening.records
        return self

    def _weigh(self, screening: Screening, candidates: Sequence[Candidate]) -> list[tuple[Fitted, Floats, float]]:
        """Learn the weights of the candidates on a sample; return the relevant ones, with Gram matrices and shares."""
        ids = evenly_spaced(screening.Y, SAMPLE)
        grams: list[Floats] = []
        fitted = screening.try_all(candidates, ids, keep=grams.append)
        weights = learn_weights(grams, screening.Y[ids, 0])
        shares = weights / weights.sum()
        least = min(LEAST_SHARE, shares.max())
        for one, share in zip(fitted, shares, strict=True):
            one.record["note"] = f"weight {share:.3f}" if share >= least else f"left out: weight below {LEAST_SHARE}"
        return [(one, K, float(w)) for one, K, w in zip(fitted, grams, shares, strict=True) if w >= least]

    def _fit_sum(self, screening: Screening, chosen: list[tuple[Fitted, Floats, float]], z: Floats) -> None:
        """Fit the chosen kernels on all graphs, add up their Gram matrices, and find noise, scale and coefficients."""
        total = np.zeros((len(z), len(z)))
        self.kernels_, weights, priors = [], [], []
        for one, of_sample, share in chosen:
            kernel, K = one.kernel, of_sample
            if len(K) < len(z):
                kernel, K = screening.fit_kernel(one.candidate.kernel, screening.graphs)
            unit = mean_diagonal(K)
            total += share / unit * K
            self.kernels_.append(kernel)
            weights.append(share / unit)
            priors.append(unit)
        self.weights_, self._priors = np.array(weights), np.array(priors)
        values, vectors = decompose(total)
        products = vectors.T @ z

        def loss(log_noise: float) -> float:
            damped = values + np.exp(log_noise)
            return float(np.log(damped).sum() + len(z) * np.log(max((products**2 / damped).mean(), 1e-300)))

        best = minimize_scalar(loss, bounds=BOUNDS, method="bounded")
        self.noise_ = float(np.exp(best.x))
        self.log_marginal_likelihood_ = -0.5 * (float(best.fun) + len(z) * (np.log(2 * np.pi) + 1.0))
        self._solve(values, vectors, products, self.noise_)

    def _sum(self) -> tuple[list[tuple[Any, float, float]], float]:
        return list(zip(self.kernels_, self.weights_, self._priors, strict=True)), self.noise_

    def _decision_parts(self) -> DecisionParts:
        self._check_one_target()
        coefficients = self.dual_coef_[:, None]
        parts = [(kernel, weight * coefficients) for kernel, weight in zip(self.kernels_, self.weights_, strict=True)]
        return parts, np.array([self.intercept_]), ("prediction",)


# -------------------------------------------------------------------- weights


def learn_weights(grams: Sequence[Floats], z: Floats) -> Floats:
    """Return the weights of Gram matrices, each divided by its mean diagonal, that maximize likelihood times prior."""
    n, n_kernels = len(z), len(grams)
    flat = np.array([(K / mean_diagonal(K)).ravel() for K in grams])
    center, diagonal = -np.log(n_kernels), np.diag_indices(n)

    def loss(at: Floats) -> tuple[float, Floats]:
        sizes = np.exp(at)
        K = (sizes[:-1] @ flat).reshape(n, n)
        K[diagonal] += sizes[-1]
        L = cholesky(K, lower=True, overwrite_a=True)
        a = cho_solve((L, True), z)
        from_center = at[:-1] - center
        value = 0.5 * (z @ a + from_center @ from_center) + np.log(L.diagonal()).sum()
        inverse = dpotri(L, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        B = inverse - np.outer(a, a)
        slopes = 0.5 * sizes * np.append(flat @ B.ravel(), B.trace())
        slopes[:-1] += from_center
        return float(value), slopes

    start = np.append(np.full(n_kernels, center), np.log(FIRST_NOISE))
    options = {"maxiter": MAX_ROUNDS}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[BOUNDS] * len(start), options=options)
    weights: Floats = np.exp(found.x[:-1])
    return weights
