"""Test which differences between kernels are more than chance: functions of arrays of accuracies, each returning one record.

Over many data sets: :func:`friedman_nemenyi` for all kernels at once, :func:`bayesian_signed_rank` for two. On one data set:
:func:`t_test_from_summary` where only a table is published, and two tests that allow for folds that share training graphs,
:func:`corrected_resampled_t_test` and :func:`bayesian_correlated_t_test`. :func:`holm` corrects p-values for the number of tests. Differences are always first
minus second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from treegram._core.types import Floats

LEVEL = 0.05  # of significance, in all tests
_DECIMALS = 10  # means of the same accuracies in another order differ in their last bits, but are ties
_CONFIDENCE = 0.95  # of all intervals
_N_SAMPLES = 50_000  # of the signed-rank test: the standard error of a probability is at most 0.0022
_PRIOR_STRENGTH = 0.5  # weight of the pseudo-observation, in data sets; the value of Benavoli et al.


@dataclass(frozen=True)
class Ranking:
    """Kernels ranked over several data sets, after Demsar (2006)."""

    names: tuple[str, ...]
    mean_ranks: tuple[float, ...]  # by kernel; 1 is best
    statistic: float  # Friedman's chi-square, corrected for ties
    p_value: float  # of the hypothesis that all kernels are equal
    critical_difference: float  # mean ranks that differ by at least this are significantly different, at `LEVEL`
    p_values: tuple[tuple[float, ...], ...]  # Nemenyi's, kernel by kernel
    groups: tuple[tuple[str, ...], ...]  # largest sets of two or more without a significant difference, best first
    n_datasets: int


@dataclass(frozen=True)
class TTest:
    """A two-sided t-test of the hypothesis that the mean difference is zero."""

    difference: float  # mean of first minus second
    statistic: float  # infinite if all differences are equal and not zero
    p_value: float
    degrees_of_freedom: float
    interval: tuple[float, float]  # of the difference, at 95 %


@dataclass(frozen=True)
class Posterior:
    """The probabilities of three outcomes, given the data; they sum to 1."""

    first_better: float
    practically_equal: float  # the difference is at most the rope
    second_better: float


def friedman_nemenyi(scores: ArrayLike, names: Sequence[str]) -> Ranking:
    r"""Rank kernels on each data set, and test whether the mean ranks differ.

    Friedman's test shows whether any do; Nemenyi's shows which, by one critical difference for all pairs. With k
    kernels and N data sets, it is

    .. math:: CD = q_k \sqrt{k (k + 1) / 6 N}

    where q is the 95 % quantile of the studentized range with infinitely many degrees of freedom, divided by the square root of 2.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_kernels)
        Mean accuracy of each kernel on each data set; higher is better. Equal scores share their mean rank.
    names : sequence of str
        The kernels, one name per column.

    Returns
    -------
    Ranking
        Mean ranks, both tests, and the groups of kernels without a significant difference.

    Examples
    --------
    >>> from treegram.study.significance import friedman_nemenyi
    >>> ranking = friedman_nemenyi([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.9, 0.7, 0.8]], ["A", "B", "C"])
    >>> ranking.mean_ranks[0], round(ranking.critical_difference, 2), ranking.groups
    (1.0, 1.91, (('A', 'B', 'C'),))
    """
    table = _check_table(scores, names)
    n_datasets, n_kernels = table.shape
    ranks = stats.rankdata(-np.round(table, _DECIMALS), axis=1)
    mean_ranks = ranks.mean(axis=0)
    statistic, p_value = _friedman(ranks)
    unit = sqrt(n_kernels * (n_kernels + 1) / (12 * n_datasets))  # a difference of mean ranks is a studentized range
    critical = float(stats.studentized_range.isf(LEVEL, n_kernels, np.inf)) * unit
    gaps, places = np.unique(np.abs(mean_ranks[:, None] - mean_ranks), return_inverse=True)
    p_values = np.clip(stats.studentized_range.sf(gaps / unit, n_kernels, np.inf), 0.0, 1.0)[places]
    return Ranking(
        names=tuple(names),
        mean_ranks=tuple(mean_ranks.tolist()),
        statistic=statistic,
        p_value=p_value,
        critical_difference=critical,
        p_values=tuple(map(tuple, p_values.reshape(n_kernels, n_kernels).tolist())),
        groups=_groups(mean_ranks, names, critical),
        n_datasets=n_datasets,
    )


def _friedman(ranks: Floats) -> tuple[float, float]:
    if (ranks == ranks[:, :1]).all():  # only ties: scipy would divide zero by zero
        return 0.0, 1.0
    result = stats.friedmanchisquare(*ranks.T)
    return float(result.statistic), float(result.pvalue)


def _groups(mean_ranks: Floats, names: Sequence[str], critical: float) -> tuple[tuple[str, ...], ...]:
    """Return maximal runs of kernels in order of rank whose ends differ by less than the critical difference."""
    order = np.argsort(mean_ranks, kind="stable")
    ends = np.searchsorted(mean_ranks[order], mean_ranks[order] + critical)
    groups: list[tuple[str, ...]] = []
    last = 0
    for start, end in enumerate(ends.tolist()):
        if end > max(last, start + 1):  # else a single kernel, or inside the previous run
            groups.append(tuple(names[kernel] for kernel in order[start:end]))
            last = end
    return tuple(groups)


def t_test_from_summary(means: tuple[float, float], deviations: tuple[float, float], n_repeats: int) -> TTest:
    """Test whether two published means differ if only means and standard deviations are known (Welch's t-test).

    Parameters
    ----------
    means : (float, float)
        Mean accuracy of the first and the second kernel over the repeats.
    deviations : (float, float)
        Their standard deviations over the repeats.
    n_repeats : int
        Number of repeats behind each.

    Returns
    -------
    TTest
        The test of first minus second. Repeats use the same graphs and are not independent, so the p-value is too small: with enough
        repeats, any difference is significant. See :func:`corrected_resampled_t_test`.
    """
    centers, spreads = _check_finite(means, "means", 1), _check_finite(deviations, "deviations", 1)
    if len(centers) != 2 or len(spreads) != 2 or (spreads < 0).any():
        raise ValueError(f"means and deviations must be pairs, none below zero; got {means!r} and {deviations!r}.")
    if n_repeats < 2:
        raise ValueError(f"n_repeats must be at least 2; got {n_repeats}.")
    largest = spreads.max()
    shares = (spreads / largest if largest else np.ones(2)) ** 2  # relative, so that no square is lost to underflow
    degrees = (n_repeats - 1) * shares.sum() ** 2 / (shares**2).sum()
    return _t_test(centers[0] - centers[1], np.hypot(*spreads) / sqrt(n_repeats), degrees)


def corrected_resampled_t_test(differences: ArrayLike, test_fraction: float) -> TTest:
    r"""Test whether two kernels differ on one data set, with all folds of repeated cross-validation as pairs.

    Folds share training graphs, so the variance of their mean is more than 1/n of their variance. Nadeau and Bengio
    (2003) add the part that does not vanish with more folds:

    .. math:: t = \bar d \, / \sqrt{(1/n + n_{test}/n_{train}) \, s^2}

    Parameters
    ----------
    differences : array-like of shape (n_repeats, n_folds)
        Accuracy of the first kernel minus that of the second, fold by fold on the same graphs.
    test_fraction : float
        Fraction of the graphs in the test set of a fold: 0.1 for ten folds.

    Returns
    -------
    TTest
        The test of the mean difference.

    Examples
    --------
    >>> from treegram.study.significance import corrected_resampled_t_test
    >>> test = corrected_resampled_t_test([[0.02, 0.03], [0.01, 0.04]], test_fraction=0.5)
    >>> round(test.difference, 3), round(test.p_value, 3)
    (0.025, 0.182)
    """
    return _t_test(*_correlated(differences, test_fraction))


def bayesian_correlated_t_test(differences: ArrayLike, test_fraction: float, rope: float = 0.01) -> Posterior:
    """Compute the probability that one kernel is better than another on one data set, by more than the rope.

    The posterior of the mean difference is Student's t around the mean with the scale that
    :func:`corrected_resampled_t_test` divides by (Benavoli et al. 2017, section 3).

    Parameters
    ----------
    differences : array-like of shape (n_repeats, n_folds)
        Accuracy of the first kernel minus that of the second, fold by fold on the same graphs.
    test_fraction : float
        Fraction of the graphs in the test set of a fold: 0.1 for ten folds.
    rope : float, default=0.01
        Differences up to this value, in the unit of `differences`, are of no practical importance.

    Returns
    -------
    Posterior
        The three probabilities.
    """
    _check_rope(rope)
    mean, scale, degrees = _correlated(differences, test_fraction)
    if scale == 0:  # all the mass is at one point
        worse, better = float(mean < -rope), float(mean > rope)
    else:
        worse = float(stats.t.cdf(-rope, degrees, mean, scale))
        better = float(stats.t.sf(rope, degrees, mean, scale))
    return Posterior(first_better=better, practically_equal=max(0.0, 1 - worse - better), second_better=worse)


def bayesian_signed_rank(differences: ArrayLike, rope: float = 0.01) -> Posterior:
    """Compute the probability that one kernel is better than another on data sets like these, by more than the rope.

    Data sets, and one pseudo-observation without a difference, get random weights from a Dirichlet distribution. Each weighted
    pair (i, j) of data sets votes: for the first kernel if the mean of their differences is above the rope, for the second if
    it is below minus the rope, else for neither. The outcome with the largest total weight wins the sample. The probabilities
    are the fractions of samples won (Benavoli et al. 2017, section 4).

    Parameters
    ----------
    differences : array-like of shape (n_datasets,)
        Mean accuracy of the first kernel minus that of the second on each data set.
    rope : float, default=0.01
        Differences up to this value, in the unit of `differences`, are of no practical importance.

    Returns
    -------
    Posterior
        The three probabilities; they do not depend on the order of the data sets.

    Examples
    --------
    >>> from treegram.study.significance import bayesian_signed_rank
    >>> bayesian_signed_rank([0.03, 0.05, 0.02, 0.04, 0.06, 0.03]).first_better > 0.99
    True
    """
    values = _check_finite(differences, "differences", 1)
    if not len(values):
        raise ValueError("differences must hold at least one data set; got none.")
    _check_rope(rope)
    observed = np.append(0.0, np.sort(values))
    pair_means = observed[:, None] / 2 + observed / 2
    strengths = np.append(_PRIOR_STRENGTH, np.ones(len(values)))
    weights = np.random.default_rng(0).dirichlet(strengths, _N_SAMPLES)
    better = ((weights @ (pair_means > rope)) * weights).sum(axis=1)
    worse = ((weights @ (pair_means < -rope)) * weights).sum(axis=1)
    winners = np.argmax([1 - better - worse, better, worse], axis=0)
    equal, first, second = (np.bincount(winners, minlength=3) / _N_SAMPLES).tolist()
    return Posterior(first_better=first, practically_equal=equal, second_better=second)


def holm(p_values: ArrayLike) -> list[float]:
    """Correct p-values for the number of tests: the probability of any false rejection at a level is at most that level.

    Holm's method: the smallest of m is multiplied by m, the next by m - 1, and so on; none becomes smaller than the
    previous one.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        The p-values, independent or not.

    Returns
    -------
    list of float
        The corrected p-values, in the same order.

    Examples
    --------
    >>> from treegram.study.significance import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = _check_finite(p_values, "p_values", 1)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    return [float(value) for value in corrected]


def _correlated(differences: ArrayLike, test_fraction: float) -> tuple[float, float, float]:
    """Return the mean of the folds' differences, its standard error after Nadeau and Bengio, and the degrees of freedom."""
    folds = _check_finite(differences, "differences", 2)
    if not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie between 0 and 1; got {test_fraction}.")
    if folds.size < 2:
        raise ValueError(f"differences must hold at least two folds; got shape {folds.shape}.")
    factor = 1 / folds.size + test_fraction / (1 - test_fraction)
    return float(folds.mean()), float(folds.std(ddof=1)) * sqrt(factor), float(folds.size - 1)


def _t_test(difference: float, standard_error: float, degrees: float) -> TTest:
    mean, error = float(difference), float(standard_error)
    if error > 0:
        statistic = mean / error
    else:
        statistic = copysign(inf, mean) if mean else 0.0
    margin = float(stats.t.isf((1 - _CONFIDENCE) / 2, degrees)) * error
    return TTest(
        difference=mean,
        statistic=statistic,
        p_value=float(2 * stats.t.sf(abs(statistic), degrees)),
        degrees_of_freedom=float(degrees),
        interval=(mean - margin, mean + margin),
    )


def _check_table(scores: ArrayLike, names: Sequence[str]) -> Floats:
    table = _check_finite(scores, "scores", 2)
    n_datasets, n_kernels = table.shape
    if n_kernels < 3 or n_datasets < 2:
        raise ValueError(
            f"scores must hold at least 2 data sets (rows) and 3 kernels (columns); got {n_datasets} and {n_kernels}. "
            "Two kernels are compared by bayesian_signed_rank."
        )
    if len(names) != n_kernels or len(set(names)) != n_kernels:
        raise ValueError(f"names must hold one name for each of the {n_kernels} kernels, all different; got {names!r}.")
    return table


def _check_finite(values: ArrayLike, argument: str, n_dimensions: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != n_dimensions:
        raise ValueError(f"{argument} must have {n_dimensions} dimension(s); got an array of shape {array.shape}.")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = tuple(bad[0].tolist())
        raise ValueError(
            f"{argument} must be finite; entry {place} is {array[place]}. Leave out what was not measured."
        )
    return array


def _check_rope(rope: float) -> None:
    if not 0 <= rope < inf:
        raise ValueError(f"rope must be zero or a positive number; got {rope}.")
