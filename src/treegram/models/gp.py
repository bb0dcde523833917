"""Gaussian process regression on graphs, with kernel, parameters and noise chosen by marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import RegressorMixin
from treegram._core.parallel import one_blas_thread, verbosely
from treegram._core.params import Allowed, parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.models.applicability import Compared, ComparesWithTraining, nearest_similarities, spread_ids
from treegram.models.base import STRENGTHS, KernelModel, check_fit, check_numbers, check_strengths, leave_out_weightless
from treegram.models.conformal import PredictsIntervals
from treegram.models.multi_target import TakesSeveralTargets
from treegram.models.search import Data, Fits, Score
from treegram.models.targets import blended_scales, choose_scale, target_scale

USUAL_NOISE = 0.1  # of the variance of the signal: equal molecules, measured twice, differ by about as much
_TINY = float(np.finfo(np.float64).tiny)


class PredictsByProcess(TakesSeveralTargets, ComparesWithTraining, PredictsIntervals, RegressorMixin):
    """Mixin for Gaussian processes on a sum of kernels: the last step of ``fit``, and predictions with error bars."""

    intercept_: float  # the mean of the targets on their scale
    _unit: float  # their standard deviation
    dual_coef_: Floats
    noise_: float  # the ratio of the variance of the noise to that of the signal

    def _read_numbers(self, X: Any, y: Any) -> tuple[Graphs, Floats]:
        """Return the checked arguments of ``fit``."""
        graphs, targets = check_fit(X, y)
        numbers = check_numbers(targets)
        if len(numbers) < 2:
            raise ValueError(f"A Gaussian process needs at least two graphs; got {len(numbers)}.")
        self._forget()  # type: ignore[attr-defined]
        return graphs, numbers

    def _normalize(self, numbers: Floats, weights: Floats) -> Floats:
        """Return the targets on their scale, minus their mean, divided by their standard deviation."""
        numbers = self._to_scale(numbers)
        self.intercept_ = float(np.average(numbers, weights=weights))
        self._unit = float(np.sqrt(np.average((numbers - self.intercept_) ** 2, weights=weights))) or 1.0
        return (numbers - self.intercept_) / self._unit

    def _normal_scores(self, numbers: Floats, weights: Floats) -> Floats:
        """Return normal scores of the targets, which suit any targets; the plain numbers, normalized, if they stay plain."""
        self._use_scale(target_scale(numbers, 1.0 if self.target_transform is None else 0.0))
        return self._normalize(numbers, weights)

    def _blend(self, numbers: Floats, predict: Callable[[Floats], tuple[Floats, Floats]], weights: Floats) -> Floats:
        """Choose the blend of normal scores and plain numbers by leave-one-out predictions; return normalized targets."""
        if self.target_scale_ is not None:
            scales, positions = zip(*blended_scales(numbers), strict=True)
            left_out = []
            for of_graphs in positions:
                center = np.average(of_graphs, weights=weights)
                mean, std = predict(of_graphs - center)
                left_out.append((center + mean, std))
            self._use_scale(scales[choose_scale(numbers, scales, left_out, weights)])
        return self._normalize(numbers, weights)

    def _solve(self, values: Floats, vectors: Floats, products: Floats, noise: float) -> Floats:
        """Set scale and coefficients, from a decomposition of K and its products with z; return leave-one-out errors of z.

        z are the normalized targets. With A = (K + noise)^-1, leave-one-out predictions miss z by (A z)_i / A_ii, and have
        the standard deviations sqrt(scale / A_ii) (Rasmussen and Williams 2006, 5.4.2).
        """
        damped = values + noise
        self.scale_ = float((products**2 / damped).mean())
        self.dual_coef_ = self._unit * (vectors @ (products / damped))
        self._half_inverse = vectors / np.sqrt(damped)  # times its transpose: A
        diagonal = np.maximum((self._half_inverse**2).sum(axis=1), _TINY)
        coefficients = self.dual_coef_ / self._unit
        spreads = np.sqrt(np.maximum(self.scale_ * diagonal, _TINY))
        self.calibration_ = np.sort(np.abs(coefficients) / spreads)
        return coefficients / diagonal

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Floats: ...  # noqa: FBT002
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    @overload
    def predict(self, X: Any, return_std: bool) -> Any: ...  # noqa: FBT001
    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: FBT001, FBT002 (scikit-learn's signature)
        """Predict the targets of graphs, and their uncertainty.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.
        return_std : bool, default=False
            Whether to also return standard deviations.

        Returns
        -------
        median : ndarray of shape (n_graphs,) or (n_graphs, n_targets)
            A number for each graph, or for each graph and target: the median of its distribution, which is also its mean
            if the scale of the targets is plain.
        std : ndarray of the same shape
            Only with ``return_std``: the standard deviation of a new target around the prediction, including its noise;
            where the distribution is skewed, half the length of the interval that contains 68 %.
            Errors are rarely normal: use ``prediction_interval`` for intervals that contain 90 % of targets. A graph
            whose kernel with itself is 0 gets the mean prior variance of the fitted graphs.
        """
        check_is_fitted(self)
        if hasattr(self, "estimators_"):
            return self._predict_columns(X, return_std=return_std)
        mean, std = self._predict_on_scale(as_graphs(X), with_std=return_std)
        if std is None:
            return self._from_scale(mean)
        if self.target_scale_ is not None:
            std = (self._from_scale(mean + std) - self._from_scale(mean - std)) / 2
        return self._from_scale(mean), std

    def _predict_on_scale(self, graphs: Graphs, *, with_std: bool) -> tuple[Floats, Floats | None]:
        """Return means and standard deviations of the targets of graphs, on their scale."""
        rows = self._rows(graphs)
        means: Floats = rows @ self.dual_coef_ + self.intercept_
        if not with_std:
            return means, None
        variances = np.maximum(self._unexplained(rows, self._selves(graphs)[1]), 0.0) + self.noise_
        return means, self._unit * np.sqrt(self.scale_ * variances)

    def _unexplained(self, rows: Floats, prior: Floats) -> Floats:
        """Return the variances that the fitted graphs leave to others, without noise; their scale is that of the kernels."""
        return prior - ((rows @ self._half_inverse) ** 2).sum(axis=1)

    def _measure_doubt(self, compared: Compared) -> tuple[Floats, Floats]:
        """Return the variances that are left to graphs, and to fitted graphs when they are left out; their scale does not matter."""
        variances = self._unexplained(compared.rows, compared.prior) + self.noise_
        return variances, 1.0 / np.maximum((self._half_inverse**2).sum(axis=1), _TINY)

    def _mean_and_unit(self, X: Any) -> tuple[Floats, Floats]:
        mean, std = self._predict_on_scale(as_graphs(X), with_std=True)
        assert std is not None
        return mean, np.maximum(std, _TINY)


def mean_diagonal(K: Floats) -> float:
    """Return the mean of the positive diagonal entries; 1 if there are none."""
    diagonal = K.diagonal()
    return float(diagonal[diagonal > 0].mean()) if (diagonal > 0).any() else 1.0


@parameters
class GraphGP(PredictsByProcess, KernelModel):
    r"""Gaussian process regression on graphs that chooses its kernel, the kernel's parameters and the noise.

    Targets, minus their mean and divided by their standard deviation, are modeled as a sample of

    .. math:: y \sim N(0, s^2 (K + \rho I))

    Here :math:`K` is the Gram matrix, :math:`\rho` is a value of ``noise``, the ratio of the variance of the noise to
    that of the signal, and :math:`s^2` is the scale that makes the targets most likely, :math:`y^\top (K + \rho I)^{-1}
    y / n`. The kernel, its parameters and :math:`\rho` also maximize the likelihood of the targets. No graph is held
    out for the choice.

    Parameters
    ----------
    kernel : GraphKernel, Pipeline, str or list of these, default="oddcl"
        The kernels to choose from: a kernel, a pipeline of transformers that ends in one, the name of a kernel on the
        command line such as "wl", or a list of these.
    param_grid : "auto", dict, or list of these, default="auto"
        Values to try for each parameter of the kernel; see :class:`GraphSVC`.
    noise : float or sequence of float, default=(0.0001, 0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
        Values to try for the ratio of the variance of the noise to that of the signal, if K has ones on its diagonal.
    target_transform : {"auto", None}, default="auto"
        The scale of the targets; see :class:`GraphRegressor`. Candidates are compared on normal scores of the targets, and the
        scale is chosen for the best.
    n_jobs : int or None, default=None
        Threads to use for Gram matrices and for their decompositions, as in joblib; -1 means all.
    verbose : int, default=0
        If above 0, print a line for each kernel tried; where neither a terminal nor a notebook shows progress, write a line
        to stderr every half minute.

    Attributes
    ----------
    kernel_ : GraphKernel or Pipeline
        The best kernel with its parameters, fitted on all graphs.
    best_params_ : dict
        Parameters for a model without a search: the best kernel, not fitted, an empty ``param_grid``, and noise.
    log_marginal_likelihood_ : float
        Logarithm of the density of the normalized targets under the best candidate; with ``target_transform="auto"`` of
        their normal scores, times the prior of the noise.
    results_ : dict of arrays
        All candidates with their log marginal likelihoods; pass it to ``pandas.DataFrame``.
    noise_ : float
        The chosen ratio of the variance of the noise to that of the signal, :math:`\rho`.
    scale_ : float
        The factor :math:`s^2`.
    dual_coef_ : ndarray of shape (n_graphs,)
        Coefficients of the fitted graphs, on the scale of the targets.
    intercept_ : float
        The mean of the fitted targets, on their scale.
    target_scale_ : TargetScale or None
        The chosen scale of the targets, which prints in words; None for the plain numbers.
    calibration_ : ndarray of shape (n_graphs,)
        Errors for ``prediction_interval``, in standard deviations, ascending: leave-one-out errors of the fitted
        graphs, or errors on the graphs of ``calibrate``.
    estimators_ : list of GraphGP
        Only if y has several columns: the fitted copies, one for each, which have all the other attributes. Explain
        them one by one: ``explain(model.estimators_[0], X)``.

    See Also
    --------
    GraphRegressor : a Gaussian process on kernels that are chosen and combined automatically.
    GraphRidge : the same predictions for the same noise, chosen by cross-validation, without error bars.

    Notes
    -----
    One eigendecomposition of each Gram matrix serves all values of the noise. Ties go to the first kernel, then to the
    first point of its grid, then to the largest noise. Gram matrices are computed in blocks of 1 GiB, or one at a time
    if a single one is larger; each thread also holds a decomposition.

    Examples
    --------
    >>> from treegram import ODDCL, GraphGP, load_digits_graphs
    >>> graphs, _ = load_digits_graphs()
    >>> y = [graph.attributes[:, 2].mean() for graph in graphs[:104]]  # how dark the inked pixels are
    >>> model = GraphGP(ODDCL(), param_grid={"depth": [0, 1]}).fit(graphs[:100], y[:100])
    >>> mean, std = model.predict(graphs[100:104], return_std=True)
    >>> bool((abs(mean - y[100:]) < 3 * std).all())
    True
    """

    _allowed: ClassVar[Mapping[str, Allowed]] = {"noise": STRENGTHS}

    noise: float | Sequence[float] = (0.0001, 0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
    target_transform: str | None = "auto"

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Choose a kernel, its parameters and the noise, and fit the model on all graphs.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : array-like of shape (n_graphs,) or (n_graphs, n_targets)
            One number for each graph, or several, with NaN where a graph has no value: then a copy of the model is
            fitted for each column, on the graphs that have a value there.
        sample_weight : array-like of shape (n_graphs,), default=None
            How much graphs count, as in :class:`GraphRegressor`: the variance of the noise of a graph is divided by its weight,
            relative to the mean weight. Graphs of weight 0 are left out.

        Returns
        -------
        self
            The fitted model.
        """
        self._check_parameters()
        if np.ndim(y) == 2:
            return self._fit_columns(X, y, sample_weight=sample_weight)
        graphs, numbers, weights = leave_out_weightless(*self._read_numbers(X, y), sample_weight)
        noises = check_strengths("noise", self.noise)[::-1]
        z = self._normal_scores(numbers, weights)
        with one_blas_thread(), verbosely(self.verbose):
            everyone = np.arange(len(z))  # no graph is held out
            result = self._search(Data(graphs, z, weights, noises, [(everyone, everyone)]), "noise")
            likelihoods = result.table["mean_test_score"]
            self.results_ = {name: column for name, column in result.table.items() if name.startswith("param")}
            self.results_["log_marginal_likelihood"] = likelihoods
            self.log_marginal_likelihood_ = float(likelihoods[result.index])
            K = self.kernel_.fit_transform(graphs)
            self._prior = mean_diagonal(K)
            self.nearest_similarities_ = nearest_similarities(K[spread_ids(len(K))], K.diagonal())
            values, vectors = decompose(K, weights)
            self.noise_ = self.best_params_["noise"]
            predict = partial(predict_left_out, values, vectors, noise=self.noise_)
            self._solve(values, vectors, vectors.T @ self._blend(numbers, predict, weights), self.noise_)
        return self

    def _make_score(self, data: Data) -> Score:
        return partial(_score_likelihoods, data=data, has_prior=self.target_transform is not None)

    def _summands(self) -> list[tuple[Any, float, float]]:
        return [(self.kernel_, 1.0, self._prior)]


# -------------------------------------------------------------------- likelihoods


def decompose(K: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors of K with rows and columns times the roots of weights; the vectors times these roots.

    Dividing the noise of a graph by its weight is the same. Negative eigenvalues, caused by rounding, become 0.
    """
    roots = np.sqrt(weights)
    values, vectors = np.linalg.eigh(roots[:, None] * K * roots)
    vectors *= roots[:, None]
    return np.maximum(values, 0.0), vectors


def predict_left_out(values: Floats, vectors: Floats, z: Floats, noise: float) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation of each z if it is left out, from a decomposition of K; see `_solve`."""
    products, damped = vectors.T @ z, values + noise
    diagonal = np.maximum(vectors**2 @ (1.0 / damped), _TINY)
    scale = float((products**2 / damped).mean())
    return z - vectors @ (products / damped) / diagonal, np.sqrt(np.maximum(scale / diagonal, _TINY))


def distance_from_prior(log_noise: Any) -> Any:
    """Return the squared distance of the logarithm of the noise from the center of its prior, in standard deviations.

    Near-equal graphs with near-equal targets may agree by chance, and the likelihood then takes all targets for exact.
    """
    return (log_noise - np.log(USUAL_NOISE)) ** 2


def _score_likelihoods(
    K: Floats,
    train: Ints,  # noqa: ARG001
    test: Ints,  # noqa: ARG001
    *,
    data: Data,
    has_prior: bool,
) -> tuple[Floats, Fits]:
    """Return the logarithm of the density of the targets for each noise, at the most likely scale, to 9 digits."""
    y, noises, weights = data.targets, data.strengths, data.weights
    assert weights is not None  # `fit` gives them
    values, vectors = decompose(K, weights)
    damped = values + noises[:, None]
    scales = ((vectors.T @ y) ** 2 / damped).mean(axis=1)
    # For a constant target, the likelihood grows without limit as the scale goes to 0.
    scales = np.maximum(scales, _TINY)
    likelihoods = -0.5 * (np.log(damped).sum(axis=1) + len(y) * (np.log(2 * np.pi * scales) + 1))
    likelihoods += 0.5 * np.log(weights).sum()
    if has_prior:
        likelihoods -= 0.5 * distance_from_prior(np.log(noises / mean_diagonal(K)))
    return np.round(likelihoods, 9), Fits(len(noises))  # the rest is rounding
