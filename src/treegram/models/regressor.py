"""The automatic regressor of graphs: a Gaussian process on a sum of kernels with learned weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize, minimize_scalar

from treegram._core.parallel import one_blas_thread, verbosely
from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.models import linear
from treegram.models.applicability import nearest_similarities, spread_ids
from treegram.models.auto import (
    Fitted,
    Screening,
    evenly_spaced,
    learned_nothing,
    raise_failures,
    warn_of_nothing,
)
from treegram.models.base import CombiningModel, DecisionParts, leave_out_weightless
from treegram.models.gp import PredictsByProcess, decompose, distance_from_prior, mean_diagonal, predict_left_out
from treegram.models.search import Candidate
from treegram.models.targets import blended_scales, choose_scale, target_scale

SAMPLE = 600  # at most this many graphs to learn weights on
LEAST_SHARE = 0.005  # of a kernel in the sum
FIRST_NOISE = 0.1
BOUNDS = (-15.0, 6.0)  # of the logarithms of weights and noise
NOTHING_BUT_NOISE = 30.0  # logarithm of the noise if nothing was learned: predictions are the mean to 12 digits
MAX_ROUNDS = 100


@parameters
class GraphRegressor(PredictsByProcess, CombiningModel):
    r"""Gaussian process regression on graphs, on a sum of kernels with learned weights.

    Targets, on a scale that suits them, minus their mean and divided by their standard deviation, are modeled as a sample of

    .. math:: y \sim N\Bigl(0, s^2 \bigl(\sum_k w_k K_k + \rho I\bigr)\Bigr)

    The weights :math:`w_k` make the targets most likely, under a prior that keeps the model from relying on a single
    kernel: the logarithms of the weights are normally distributed around equal weights, with standard deviation 1. The
    noise :math:`\rho` and the scale :math:`s^2` also make the targets most likely. No graph is held out.

    The scale of the targets is a blend of their normal scores and the plain numbers: skewed, bounded, heavy-tailed and tied
    targets become nearly normal, and predictions are converted back.

    Parameters
    ----------
    kernels : "auto" or list of GraphKernel, Pipeline or str, default="auto"
        "auto": all candidates that suit the graphs; see :doc:`/models`. Or kernels, pipelines that end in one, or names
        such as "wl", with their own parameters.
    target_transform : {"auto", None}, default="auto"
        "auto": targets are learned on normal scores blended with a share of the plain numbers, 0, 0.15, 0.3, 0.5, 0.7 or 1,
        chosen by the leave-one-out distributions of the targets; predictions are medians, and intervals are not symmetric.
        The logarithm of the noise has a prior, normal around that of 0.1 with standard deviation 1, so that graphs that are
        alike and agree by chance do not make error bars too short. None: the plain numbers, without that prior; for targets
        beyond the range of the fitted ones, which a blend with normal scores expects less.
    n_jobs : int or None, default=None
        Threads to use for Gram matrices, as in joblib; -1 means all. None: the kernels' own number.
    verbose : int, default=0
        If above 0, print a line for each kernel tried; where neither a terminal nor a notebook shows progress, write a line
        to stderr every half minute.

    Attributes
    ----------
    kernels_ : list of GraphKernel or Pipeline
        The kernels of the sum, fitted; those whose share of the sum is below 0.005 are left out.
    blocks_, coefs_ : list
        Only with more than 10,000 graphs, instead of ``kernels_``, ``dual_coef_`` and what describes the process: the blocks of rows,
        each with its ``name``, and their coefficients, (n_columns, 1).
    alphas_ : ndarray of shape (1,)
        With more than 10,000 graphs, the strength of regularization.
    weights_ : ndarray of shape (n_kernels,)
        Their shares of the variance of the signal, which sum to 1, the largest first. :math:`w_k` is the share divided by
        the mean diagonal of :math:`K_k`, which is 1 for normalized kernels.
    noise_ : float
        The ratio of the variance of the noise to that of the signal, :math:`\rho`.
    scale_ : float
        The factor :math:`s^2`.
    dual_coef_ : ndarray of shape (n_graphs,)
        Coefficients of the fitted graphs, on the scale of the targets.
    intercept_ : float
        The mean of the fitted targets, on their scale.
    target_scale_ : TargetScale or None
        The chosen scale of the targets, which prints in words; None for the plain numbers.
    log_marginal_likelihood_ : float
        Logarithm of the density of the normalized targets, on their scale.
    calibration_ : ndarray of shape (n_graphs,)
        Errors for ``prediction_interval``, in standard deviations, ascending: leave-one-out errors of the fitted
        graphs, or errors on the graphs of ``calibrate``.
    search_results_ : list of dict
        One record for each kernel: candidate, reason, n_graphs, weight (None if left out), score (R2 of its own leave-one-out
        predictions of the normal scores of the targets), seconds, and a note (why it was left out). ``search_summary()`` returns it as a table.
    loo_scores_ : dict
        "rmse", "mae" and "r2" of the leave-one-out predictions of the fitted graphs, in units of the targets. A little
        optimistic, since weights, noise and scale were chosen with these graphs.
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
    on all. A candidate whose cost is out of proportion is left out, with a note in ``search_results_``. Nothing is random.

    With more than 10,000 graphs, there is one linear model on sparse rows of all graphs instead, fitted by least squares, in time
    and memory that grow linearly: see :class:`GraphClassifier`. Predictions of graphs whose third is left out choose the scale and
    the strength of regularization, and take the place of leave-one-out predictions; standard deviations are the same for all graphs,
    on the scale of the targets.

    If left-out graphs are predicted no better than by the mean of the others, on the scale of the targets, ``fit`` warns, and
    the model predicts about the median of the targets for every graph, with their quantiles as intervals; with
    ``target_transform=None`` their mean and standard deviation.

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

    _score_name = "leave-one-out R2"

    target_transform: str | None = "auto"

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the weights of the kernels and the noise, and fit the model on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs. Or, without ``y``, **chunks**: an iterable of pairs (graphs, y), such as :func:`iter_parquet`, which is read
            once; or a list of Dask's delayed objects or futures of such pairs, which stay on the workers of the cluster.
        y : array-like of shape (n_graphs,) or (n_graphs, n_targets), default=None
            One number for each graph, or several, with NaN where a graph has no value: then a copy of the model is
            fitted for each column, on the graphs that have a value there. Chunks have one number for each graph.
        sample_weight : array-like of shape (n_graphs,), default=None
            How much graphs count: the variance of the noise of a graph is divided by its weight, relative to the mean weight.
            Graphs of weight 0 are left out. With chunks, in their order.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        if y is None:
            return self._fit_chunks(X, sample_weight)
        if np.ndim(y) == 2:
            return self._fit_columns(X, y, sample_weight=sample_weight)
        graphs, numbers = self._read_numbers(X, y)
        graphs, numbers, weights = leave_out_weightless(graphs, numbers, sample_weight)
        z = self._normal_scores(numbers, weights)
        screening = Screening(graphs, z[:, None], weights, is_auto=self._is_auto, verbose=self.verbose)
        with one_blas_thread(), verbosely(self.verbose):
            if len(numbers) > linear.SWITCH:
                self._fit_rows(screening, numbers)
            else:
                candidates = self._candidates(graphs, with_counts=True)
                self._fit_sum(screening, self._weigh(screening, candidates), numbers)
        self.search_results_ = screening.records
        return self

    def _weigh(self, screening: Screening, candidates: Sequence[Candidate]) -> list[tuple[Fitted, Floats, float]]:
        """Learn the weights of the candidates on a sample; return the relevant ones, with Gram matrices and weights."""
        ids = evenly_spaced(screening.Y, SAMPLE)
        grams: list[Floats] = []
        candidates = screening.affordable(candidates, screening.graphs[ids])
        fitted = screening.try_all(candidates, ids, keep=grams.append)
        shares = learn_weights(grams, screening.Y[ids, 0], screening.weights[ids])
        shares /= shares.sum()
        least = min(LEAST_SHARE, shares.max())
        for candidate, share in zip(fitted, shares, strict=True):
            candidate.record["note"] = "" if share >= least else f"left out with a weight below {LEAST_SHARE}"
        return [parts for parts in zip(fitted, grams, shares.tolist(), strict=True) if parts[2] >= least]

    def _fit_sum(self, screening: Screening, relevant: list[tuple[Fitted, Floats, float]], numbers: Floats) -> None:
        """Fit the relevant kernels on all graphs, add up their Gram matrices, and find the scale, noise and coefficients."""
        weights, n = screening.weights, len(numbers)
        total = np.zeros((n, n))
        kept = []
        for candidate, of_sample, share in relevant:
            with screening.leaving_out(candidate.record):
                kernel, K = candidate.kernel, of_sample
                if len(K) < n:
                    kernel, K = screening.fit_kernel(candidate.candidate.kernel, screening.graphs)
                unit = mean_diagonal(K)
                total += share / unit * K
                kept.append((share, unit, kernel, candidate.record))
        if not kept:
            raise_failures([candidate.record for candidate, _, _ in relevant])
        self.nearest_similarities_ = nearest_similarities(total[spread_ids(len(total))], total.diagonal())
        kept.sort(key=lambda member: -member[0])
        shares, units, self.kernels_, records = (list(column) for column in zip(*kept, strict=True))
        self.weights_, self._priors = np.array(shares) / sum(shares), np.array(units)
        for record, weight in zip(records, self.weights_.tolist(), strict=True):
            record["weight"] = weight
        total *= 1.0 / sum(shares)
        values, vectors = decompose(total, weights)

        def predict(z: Floats) -> tuple[Floats, Floats]:
            return predict_left_out(values, vectors, z, np.exp(self._choose_noise(values, vectors.T @ z)))

        z = self._blend(numbers, predict, weights)
        products = vectors.T @ z
        log_noise = self._choose_noise(values, products)
        errors = self._solve(values, vectors, products, float(np.exp(log_noise)))
        if learned_nothing((z - errors)[:, None], z[:, None], weights):
            warn_of_nothing(self._average())
            if self.target_scale_ is not None:
                self._use_scale(target_scale(numbers, 0.0))
                z = self._normalize(numbers, weights)
                products = vectors.T @ z
            log_noise = NOTHING_BUT_NOISE
            errors = self._solve(values, vectors, products, float(np.exp(log_noise)))
        self.noise_ = float(np.exp(log_noise))
        loss = _minus_log_likelihood(values, products, log_noise)
        self.log_marginal_likelihood_ = -0.5 * (loss + len(z) * (np.log(2 * np.pi) + 1.0))
        self.log_marginal_likelihood_ += 0.5 * float(np.log(weights).sum())
        missed, targets = self._unit * errors, self._unit * z
        if self.target_scale_ is not None:
            missed, targets = numbers - self._from_scale(self.intercept_ + targets - missed), numbers
        self.loo_scores_ = score_errors(missed, targets, weights)

    def _fit_rows(self, screening: Screening, numbers: Floats) -> None:
        """Fit a linear model on rows for each blend of the targets; keep that with the best distributions of left-out graphs."""
        weights, Y, best = screening.weights, screening.Y, 0
        blends = [] if self.target_scale_ is None else blended_scales(numbers)
        if blends:
            Y = np.stack([positions for _, positions in blends], axis=1)
        centers = np.average(Y, axis=0, weights=weights)
        units = np.sqrt(np.average((Y - centers) ** 2, axis=0, weights=weights))
        units[units == 0] = 1.0
        Z = (Y - centers) / units
        self.blocks_, model = linear.fit_blocks(screening, self._row_candidates, Z, "squared")
        spreads = np.sqrt(np.average((model.left_out - Z) ** 2, axis=0, weights=weights))
        if blends:
            means, deviations = centers + units * model.left_out, units * spreads
            left_out = list(zip(means.T, deviations, strict=True))
            best = choose_scale(numbers, [scale for scale, _ in blends], left_out, weights)
            self._use_scale(blends[best][0])
        z, left_out_z = self._normalize(numbers, weights), model.left_out[:, best]
        self.weights_, self.alphas_ = model.shares, model.penalties[[best]]
        self.coefs_ = [self._unit * coefficients[:, [best]] for coefficients in model.coefficients]
        self.intercept_, mean = self.intercept_ + self._unit * float(model.intercept[best]), self.intercept_
        if learned_nothing(left_out_z[:, None], z[:, None], weights):
            warn_of_nothing(self._average())
            if self.target_scale_ is not None:
                self._use_scale(target_scale(numbers, 0.0))
            z, left_out_z = self._normalize(numbers, weights), np.zeros(len(z))
            mean = self.intercept_
            self.coefs_ = [np.zeros_like(coefficients) for coefficients in self.coefs_]
            spreads[best] = 1.0
        self._spread = self._unit * float(spreads[best])
        self.calibration_ = np.sort(np.abs(z - left_out_z)) / max(float(spreads[best]), 1e-300)
        self.loo_scores_ = score_errors(numbers - self._from_scale(mean + self._unit * left_out_z), numbers, weights)

    def _choose_noise(self, values: Floats, products: Floats) -> float:
        """Return the logarithm of the most likely noise, from a decomposition of K and its products with z."""

        def loss(log_noise: float) -> float:
            prior = 0.0 if self.target_transform is None else distance_from_prior(log_noise)
            return _minus_log_likelihood(values, products, log_noise) + prior

        return float(minimize_scalar(loss, bounds=BOUNDS, method="bounded").x)

    def _describe_choice(self) -> str:
        has_noise_alone = getattr(self, "noise_", 0.0) == np.exp(NOTHING_BUT_NOISE)
        if has_noise_alone or (hasattr(self, "coefs_") and not any(c.any() for c in self.coefs_)):
            return f"nothing was learned: the {'mean' if self.target_scale_ is None else 'median'} of the targets"
        return "; ".join(filter(None, [super()._describe_choice(), self._describe_targets()]))

    def _average(self) -> str:
        return "the mean of the targets" if self.target_scale_ is None else "about the median of the targets"

    def _predict_on_scale(self, graphs: Graphs, *, with_std: bool) -> tuple[Floats, Floats | None]:
        if not hasattr(self, "blocks_"):
            return super()._predict_on_scale(graphs, with_std=with_std)
        rows = (block.transform(graphs) @ coefficients for block, coefficients in self._blocks())
        means: Floats = sum(rows, np.zeros((len(graphs), 1)))[:, 0] + self.intercept_
        return means, np.full(len(graphs), self._spread) if with_std else None

    def _blocks(self) -> list[tuple[Any, Floats]]:
        return list(zip(self.blocks_, self.coefs_, strict=True))

    def _summands(self) -> list[tuple[Any, float, float]]:
        return list(zip(self.kernels_, self.weights_ / self._priors, self._priors, strict=True))

    def _decision_parts(self) -> DecisionParts:
        self._check_one_target()
        if hasattr(self, "blocks_"):
            parts = self._blocks()
        else:
            parts = [(kernel, factor * self.dual_coef_[:, None]) for kernel, factor, _ in self._summands()]
        return parts, np.array([self.intercept_]), ("prediction",)


def _minus_log_likelihood(values: Floats, products: Floats, log_noise: float) -> float:
    """Return minus twice the logarithm of the density of z, without a constant; see `PredictsByProcess._solve`."""
    damped = values + np.exp(log_noise)
    return float(np.log(damped).sum() + len(products) * np.log(max((products**2 / damped).mean(), 1e-300)))


def score_errors(errors: Floats, targets: Floats, weights: Floats) -> dict[str, float]:
    """Return the weighted RMSE, MAE and R2 of predictions that miss the targets by these errors."""
    mean_square = float(np.average(errors**2, weights=weights))
    variance = float(np.average((targets - np.average(targets, weights=weights)) ** 2, weights=weights))
    mae = float(np.average(np.abs(errors), weights=weights))
    return {"rmse": mean_square**0.5, "mae": mae, "r2": 1.0 - mean_square / variance if variance else 0.0}


# -------------------------------------------------------------------- weights


def learn_weights(grams: Sequence[Floats], z: Floats, weights: Floats) -> Floats:
    """Return the weights of Gram matrices, each divided by its mean diagonal, that maximize likelihood times prior.

    The noise of a graph is divided by its own weight: rows and columns are multiplied by the root instead.
    """
    n, n_kernels, roots = len(z), len(grams), np.sqrt(weights)
    z = roots * z
    flat = np.array([(roots[:, None] * K * (roots / mean_diagonal(K))).ravel() for K in grams])
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
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[BOUNDS] * len(start), options=options)
    return np.exp(best.x[:-1])
