"""Tests of the significance tests: worked values, the paper's own table, scipy, and properties."""

from math import inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from treegram.study.significance import (
    LEVEL,
    Posterior,
    bayesian_correlated_t_test,
    bayesian_signed_rank,
    corrected_resampled_t_test,
    friedman_nemenyi,
    holm,
    t_test_from_summary,
)

PAPER = {  # Table 1 of the paper, accuracy in percent: COX2, BZR, DHFR, ENZYMES, PROTEINS, SYNTHETIC
    "ODDCL_ST": (83.01, 92.85, 84.05, 73.40, 75.86, 95.83),
    "ODDCL_Approx": (79.99, 87.12, 81.48, 69.95, 75.93, 96.1),
    "P2K": (77.41, 82.06, 67.23, 67.99, 69.37, 75.16),
    "GIK_NSPDK": (71.68, 86.84, 70.76, 76.18, 70.78, 83.46),
    "GIK_SGK_GLOBAL": (78.09, 70.80, 81.41, 76.53, 71.38, 83.43),
    "GIK_SGK_LOCAL": (81.07, 86.23, 81.24, 76.22, 71.40, 83.83),
    "GIK_WL_GLOBAL": (81.63, 69.11, 81.46, 76.17, 70.21, 82.66),
    "GIK_WL_LOCAL": (71.66, 86.54, 71.66, 76.62, 71.85, 82.60),
    "WL": (81.45, 88.41, 82.76, 48.5, 75.6, 97.5),
    "ODD_ST": (82.76, 88.21, 83.75, 51.26, 73.85, 96.63),
}
PAPER_ON_THREE = {"GH": (68.3, 74.1, 78.3), "SP": (72.3, 75.5, 82.5)}  # ENZYMES, PROTEINS, SYNTHETIC

accuracies = st.integers(0, 50).map(lambda hits: hits / 50)  # as in a small test set, so that ties occur
tables = st.tuples(st.integers(2, 8), st.integers(3, 7)).flatmap(
    lambda shape: arrays(float, shape, elements=accuracies)
)
differences = st.integers(-40, 40).map(lambda points: points / 200)
folds = st.tuples(st.integers(1, 4), st.integers(2, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=differences)
)
shares = st.floats(0.05, 0.5)
few = settings(max_examples=40, deadline=None)


def named(table):
    return [f"kernel {column}" for column in range(table.shape[1])]


def rank(table):
    return friedman_nemenyi(table, named(table))


# -------------------------------------------------------------------- Friedman and Nemenyi


def test_paper_table_separates_its_kernel_only_from_p2k():
    ranking = friedman_nemenyi(np.transpose(list(PAPER.values())), list(PAPER))
    assert ranking.n_datasets == 6
    assert ranking.statistic == pytest.approx(22.25, abs=0.01)
    assert ranking.p_value == pytest.approx(0.008, abs=0.0005)
    assert ranking.critical_difference == pytest.approx(5.53, abs=0.005)
    ranks = dict(zip(ranking.names, ranking.mean_ranks, strict=True))
    assert ranks["ODDCL_ST"] == 2.5
    assert ranks["ODD_ST"] == pytest.approx(3.67, abs=0.01)
    assert ranks["WL"] == pytest.approx(3.83, abs=0.01)
    assert ranks["P2K"] == 9.0
    worse = {name for name, p in zip(ranking.names, ranking.p_values[0], strict=True) if p < 0.05}
    assert worse == {"P2K"}
    assert [set(PAPER) - set(group) for group in ranking.groups] == [{"P2K"}, {"ODDCL_ST"}]
    assert ranking.groups[0][:3] == ("ODDCL_ST", "ODD_ST", "WL")


def test_paper_table_of_three_data_sets_shows_no_difference():
    scores = {**{name: row[3:] for name, row in PAPER.items()}, **PAPER_ON_THREE}
    ranking = friedman_nemenyi(np.transpose(list(scores.values())), list(scores))
    assert ranking.statistic == pytest.approx(10.5, abs=0.05)
    assert ranking.p_value == pytest.approx(0.49, abs=0.005)
    assert ranking.critical_difference == pytest.approx(9.6, abs=0.05)
    assert [set(group) for group in ranking.groups] == [set(scores)]


@pytest.mark.parametrize(
    ("n_kernels", "quantile"), [(3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (10, 3.164)]
)
def test_critical_difference_matches_published_quantiles(n_kernels, quantile):
    ranking = rank(np.random.default_rng(0).random((14, n_kernels)))
    expected = quantile * sqrt(n_kernels * (n_kernels + 1) / (6 * 14))
    assert ranking.critical_difference == pytest.approx(expected, rel=3e-4)


def test_clearly_different_kernels_are_in_separate_groups():
    scores = np.tile([0.1, 0.12, 0.5, 0.9, 0.92], (30, 1))
    scores[::2, [0, 1, 3, 4]] = scores[::2, [1, 0, 4, 3]]  # two pairs that alternate, and one kernel between them
    assert rank(scores).mean_ranks == (4.5, 4.5, 3.0, 1.5, 1.5)
    assert rank(scores).groups == (("kernel 3", "kernel 4"), ("kernel 0", "kernel 1"))


def test_kernels_that_all_differ_form_no_group():
    assert rank(np.tile([0.1, 0.5, 0.9], (30, 1))).groups == ()


def test_all_ties_give_no_difference():
    ranking = rank(np.full((4, 3), 0.7))
    assert (ranking.statistic, ranking.p_value) == (0.0, 1.0)
    assert ranking.mean_ranks == (2.0, 2.0, 2.0)
    np.testing.assert_allclose(ranking.p_values, 1.0)


def test_differences_in_the_last_bits_are_ties():
    scores = np.array([[0.1 + 0.2, 0.3, 0.9], [0.1, 0.2, 0.3]])
    assert rank(scores).mean_ranks == (2.75, 2.25, 1.0)


@few
@given(tables)
def test_ranking_agrees_with_scipy(table):
    ranking = rank(table)
    np.testing.assert_allclose(ranking.mean_ranks, stats.rankdata(-table, axis=1).mean(axis=0))
    if np.ptp(table, axis=1).any():
        expected = stats.friedmanchisquare(*table.T)
        np.testing.assert_allclose([ranking.statistic, ranking.p_value], [*expected], atol=1e-12)


@few
@given(tables, st.randoms(use_true_random=False))
def test_ranking_does_not_depend_on_the_order(table, random):
    rows = random.sample(range(len(table)), len(table))
    columns = random.sample(range(table.shape[1]), table.shape[1])
    names = named(table)
    first = friedman_nemenyi(table, names)
    second = friedman_nemenyi(table[np.ix_(rows, columns)], [names[column] for column in columns])
    np.testing.assert_array_equal(np.array(first.mean_ranks)[columns], second.mean_ranks)
    np.testing.assert_array_equal(np.array(first.p_values)[np.ix_(columns, columns)], second.p_values)
    assert second.p_value == pytest.approx(first.p_value, abs=1e-12)
    assert {frozenset(group) for group in first.groups} == {frozenset(group) for group in second.groups}


@few
@given(tables)
def test_groups_are_the_largest_sets_without_a_significant_pair(table):
    ranking = rank(table)
    p_values = np.array(ranking.p_values)
    np.testing.assert_array_equal(p_values, p_values.T)
    groups = [{ranking.names.index(name) for name in group} for group in ranking.groups]
    for group in groups:
        inside = sorted(group)
        assert (p_values[np.ix_(inside, inside)] > LEVEL).all()
        others = set(range(len(p_values))) - group
        assert all((p_values[other, inside] <= LEVEL).any() for other in others)
    for i, j in np.argwhere(np.triu(p_values > LEVEL, 1)):
        assert any({i, j} <= group for group in groups)


@pytest.mark.parametrize(
    ("scores", "names", "message"),
    [
        (np.ones((3, 2)), "ab", "at least 2 data sets .* and 3 kernels .* got 3 and 2.*bayesian_signed_rank"),
        (np.ones((1, 3)), "abc", "got 1 and 3"),
        (np.ones(3), "abc", r"scores must have 2 dimension\(s\); got an array of shape \(3,\)"),
        ([[1, 2, 3], [1, nan, 3]], "abc", r"scores must be finite; entry \(1, 1\) is nan"),
        (np.ones((2, 3)), "ab", "one name for each of the 3 kernels, all different; got 'ab'"),
        (np.ones((2, 3)), "aba", "all different"),
    ],
)
def test_invalid_tables_raise(scores, names, message):
    with pytest.raises(ValueError, match=message):
        friedman_nemenyi(scores, names)


# -------------------------------------------------------------------- t-tests


@few
@given(st.tuples(accuracies, accuracies), st.tuples(st.floats(1e-4, 0.1), st.floats(1e-4, 0.1)), st.integers(2, 30))
def test_summary_t_test_agrees_with_scipy(means, deviations, n_repeats):
    test = t_test_from_summary(means, deviations, n_repeats)
    first, second = zip(means, deviations, strict=True)
    expected = stats.ttest_ind_from_stats(*first, n_repeats, *second, n_repeats, equal_var=False)
    np.testing.assert_allclose([test.statistic, test.p_value], [*expected], rtol=1e-9, atol=1e-300)


def test_summary_t_test_has_the_interval_of_welch():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.8, 0.01, 10), rng.normal(0.79, 0.03, 10)
    test = t_test_from_summary((first.mean(), second.mean()), (first.std(ddof=1), second.std(ddof=1)), 10)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert test.degrees_of_freedom == pytest.approx(expected.df)
    np.testing.assert_allclose(test.interval, [*expected.confidence_interval(0.95)])


def test_paper_claim_against_wl_holds_only_on_some_data_sets():
    enzymes = t_test_from_summary((73.40, 48.5), (0.98, 0.7), 10)
    dhfr = t_test_from_summary((84.05, 82.76), (3.02, 0.41), 10)
    assert enzymes.p_value < 1e-15
    assert dhfr.p_value > 0.2


def test_correction_widens_the_interval_by_the_test_fraction():
    values = np.random.default_rng(2).normal(0.01, 0.05, (10, 10))
    test = corrected_resampled_t_test(values, 0.1)
    error = values.std(ddof=1) * sqrt(1 / 100 + 1 / 9)
    assert test.statistic == pytest.approx(values.mean() / error)
    assert test.p_value == pytest.approx(2 * stats.t.sf(abs(test.statistic), 99))
    assert test.degrees_of_freedom == 99
    np.testing.assert_allclose(test.interval, stats.t.interval(0.95, 99, values.mean(), error))


@few
@given(folds, shares)
def test_corrected_p_value_is_at_least_the_uncorrected_one(values, share):
    corrected = corrected_resampled_t_test(values, share)
    assert corrected.difference == pytest.approx(values.mean(), abs=1e-12)
    if np.ptp(values) > 1e-9:
        assert corrected.p_value >= stats.ttest_1samp(values.ravel(), 0.0).pvalue


@few
@given(folds, shares)
def test_swapping_the_kernels_negates_the_t_test(values, share):
    one, other = corrected_resampled_t_test(values, share), corrected_resampled_t_test(-values, share)
    assert (other.difference, other.statistic, other.p_value) == (-one.difference, -one.statistic, one.p_value)
    assert other.interval == (-one.interval[1], -one.interval[0])
    assert one.interval[0] <= one.difference <= one.interval[1]
    excludes_zero = one.interval[0] > 0 or one.interval[1] < 0
    assert excludes_zero == (one.p_value < 0.05)


@pytest.mark.parametrize(("constant", "statistic", "p_value"), [(0.0, 0.0, 1.0), (0.25, inf, 0.0), (-0.25, -inf, 0.0)])
def test_zero_variance_gives_a_certain_t_test(constant, statistic, p_value):
    for test in (
        t_test_from_summary((0.5 + constant, 0.5), (0.0, 0.0), 10),
        corrected_resampled_t_test(np.full((2, 5), constant), 0.2),
    ):
        assert (test.difference, test.statistic, test.p_value) == (constant, statistic, p_value)
        assert test.interval == (constant, constant)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t_test_from_summary((1, nan), (1, 1), 10), r"means must be finite; entry \(1,\) is nan"),
        (lambda: t_test_from_summary((1, 2), (1, -1), 10), r"none below zero; got \(1, 2\) and \(1, -1\)"),
        (lambda: t_test_from_summary((1, 2), (1, 1), 1), "n_repeats must be at least 2; got 1"),
        (lambda: corrected_resampled_t_test([0.1, 0.2], 0.1), r"differences must have 2 dimension\(s\)"),
        (lambda: corrected_resampled_t_test([[0.1]], 0.1), r"at least two folds; got shape \(1, 1\)"),
        (lambda: corrected_resampled_t_test([[0.1, inf]], 0.1), r"entry \(0, 1\) is inf"),
        (lambda: corrected_resampled_t_test([[0.1, 0.2]], 10), "test_fraction must lie between 0 and 1; got 10"),
        (lambda: bayesian_correlated_t_test([[0.1, 0.2]], 0.1, nan), "rope must be zero or a positive number; got nan"),
        (lambda: bayesian_signed_rank([]), "at least one data set; got none"),
        (lambda: bayesian_signed_rank([nan]), r"entry \(0,\) is nan"),
        (lambda: bayesian_signed_rank([0.1], rope=-1), "rope must be zero or a positive number; got -1"),
    ],
)
def test_invalid_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -------------------------------------------------------------------- Bayesian tests


@pytest.mark.parametrize("rope", [0.0, 0.01])
def test_zero_differences_are_practically_equal(rope):
    certain = Posterior(first_better=0.0, practically_equal=1.0, second_better=0.0)
    assert bayesian_signed_rank(np.zeros(6), rope) == certain
    assert bayesian_correlated_t_test(np.zeros((2, 5)), 0.2, rope) == certain


def test_constant_difference_is_certain():
    assert bayesian_correlated_t_test(np.full((2, 5), 0.25), 0.2).first_better == 1.0
    assert bayesian_correlated_t_test(np.full((2, 5), -0.25), 0.2).second_better == 1.0


@pytest.mark.parametrize(("difference", "prior_weight"), [(0.05, sqrt(0.5)), (0.015, 1 - sqrt(0.5)), (0.005, 0.0)])
def test_signed_rank_of_one_data_set_matches_the_closed_form(difference, prior_weight):
    """The pseudo-observation's weight w is Beta(1/2, 1): it is below x with probability sqrt(x).

    A difference above twice the rope wins unless w^2 > 1/2; one above the rope wins only if (1 - w)^2 > 1/2.
    """
    posterior = bayesian_signed_rank([difference], rope=0.01)
    assert posterior.first_better == pytest.approx(sqrt(prior_weight), abs=0.01)
    assert posterior.second_better == 0.0


def test_signed_rank_matches_an_explicit_loop():
    values, rope = [0.02, -0.015, 0.004, 0.031], 0.01
    z = [0.0, *values]
    rng = np.random.default_rng(5)
    wins = np.zeros(3)
    for weights in rng.dirichlet([0.5, 1, 1, 1, 1], 4000):
        thetas = np.zeros(3)
        for i in range(5):
            for j in range(5):
                outcome = 0 if z[i] + z[j] > 2 * rope else 2 if z[i] + z[j] < -2 * rope else 1
                thetas[outcome] += weights[i] * weights[j]
        wins[thetas.argmax()] += 1
    found = bayesian_signed_rank(values, rope)
    np.testing.assert_allclose(
        [found.first_better, found.practically_equal, found.second_better], wins / 4000, atol=0.03
    )


def test_signed_rank_is_always_the_same():
    values = [0.02, -0.01, 0.03]
    assert bayesian_signed_rank(values) == bayesian_signed_rank(values)


@settings(few, max_examples=20)
@given(st.lists(differences, min_size=1, max_size=8), st.floats(0, 0.05), st.randoms(use_true_random=False))
def test_signed_rank_laws(values, rope, random):
    posterior = bayesian_signed_rank(values, rope)
    shuffled = random.sample(values, len(values))
    assert bayesian_signed_rank(shuffled, rope) == posterior
    assert posterior.first_better + posterior.practically_equal + posterior.second_better == pytest.approx(1)
    swapped = bayesian_signed_rank(np.negative(values), rope)
    assert swapped.first_better == pytest.approx(posterior.second_better, abs=0.04)
    assert swapped.practically_equal == pytest.approx(posterior.practically_equal, abs=0.04)


@few
@given(folds, shares, st.floats(0, 0.05))
def test_correlated_test_laws(values, share, rope):
    posterior = bayesian_correlated_t_test(values, share, rope)
    swapped = bayesian_correlated_t_test(-values, share, rope)
    assert posterior.first_better + posterior.practically_equal + posterior.second_better == pytest.approx(1)
    np.testing.assert_allclose(
        [swapped.first_better, swapped.practically_equal, swapped.second_better],
        [posterior.second_better, posterior.practically_equal, posterior.first_better],
        atol=1e-12,
    )
    if values.std() > 1e-9:  # without a rope, the tail of the classical test
        tail = bayesian_correlated_t_test(values, share, rope=0.0)
        p_value = corrected_resampled_t_test(values, share).p_value
        assert min(tail.first_better, tail.second_better) == pytest.approx(p_value / 2, abs=1e-12)


# -------------------------------------------------------------------- multiple tests


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_matches_the_step_down_procedure(p_values):
    """Go from the smallest p-value up, and stop at the first that is not below level / (number left)."""
    level = 0.05
    rejected, left = set(), len(p_values)
    for i in sorted(range(len(p_values)), key=p_values.__getitem__):
        if p_values[i] * left >= level:
            break
        rejected.add(i)
        left -= 1
    assert {i for i, p in enumerate(holm(p_values)) if p < level} == rejected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_between_no_correction_and_bonferroni(p_values):
    corrected = holm(p_values)
    assert all(p <= one <= min(1.0, len(p_values) * p) for p, one in zip(p_values, corrected, strict=True))
    ordered = [corrected[i] for i in np.argsort(p_values, kind="stable")]
    assert ordered == sorted(ordered)
