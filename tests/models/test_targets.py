"""Scales of targets: monotone, invertible, independent of units, and chosen by leave-one-out distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtri
from scipy.stats import norm

from treegram.models.targets import BLENDS, blended_scales, choose_scale, mean_pinball_loss, target_scale

# Whole numbers give ties, which are the hard case.
targets = st.one_of(
    arrays(np.float64, st.integers(3, 60), elements=st.integers(-5, 5).map(float)),
    arrays(np.float64, st.integers(3, 60), elements=st.floats(-3, 3, width=16)).map(np.exp),
)
blends = st.sampled_from(BLENDS)


@given(targets, blends)
def test_inverse_undoes_transform(y, blend):
    scale = target_scale(y, blend)
    np.testing.assert_allclose(scale.inverse(scale.transform(y)), y, rtol=1e-9, atol=1e-9 * (np.ptp(y) or 1.0))


@given(targets, blends)
def test_scale_is_increasing_also_beyond_the_targets(y, blend):
    scale = target_scale(y, blend)
    assert (np.diff(scale.inverse(np.linspace(-8, 8, 201))) > 0).all()
    below, above = y.min() - 3 * (np.ptp(y) or 1.0), y.max() + 3 * (np.ptp(y) or 1.0)
    far = np.array([below, above])
    np.testing.assert_allclose(scale.inverse(scale.transform(far)), far, rtol=1e-9, atol=1e-9 * np.ptp(far))


@given(targets, blends)
def test_scaled_targets_have_mean_0_and_deviation_1(y, blend):
    scaled = target_scale(y, blend).transform(y)
    assert abs(scaled.mean()) < 1e-6
    assert np.ptp(y) == 0 or abs(scaled.std() - 1) < 1e-6


@given(targets, blends, st.sampled_from([0.001, 3.0, 1000.0]), st.sampled_from([0.0, -7.0]))
def test_positions_do_not_depend_on_units(y, blend, factor, shift):
    mine, other = target_scale(y, blend), target_scale(factor * y + shift, blend)
    np.testing.assert_allclose(other.transform(factor * y + shift), mine.transform(y), atol=1e-5)


@given(targets, blends)
def test_slope_is_the_derivative_of_inverse(y, blend):
    scale, step = target_scale(y, blend), 1e-6
    at = np.linspace(-4, 4, 41)
    at = at[np.abs(at[:, None] - scale.scaled).min(axis=1) > 1e-3]  # slopes may jump at the ends
    rises = (scale.inverse(at + step) - scale.inverse(at - step)) / (2 * step)
    np.testing.assert_allclose(
        scale.slope(at), rises, rtol=1e-3, atol=1e-4 * (np.ptp(y) or 1.0) + 1e-9 * np.abs(y).max()
    )


def test_normal_scores_of_distinct_targets():
    y = np.random.default_rng(0).lognormal(sigma=2, size=400)
    ranks = np.argsort(np.argsort(y))
    np.testing.assert_allclose(target_scale(y, 0.0).transform(y), ndtri((ranks + 0.5) / 400), atol=0.15)


@pytest.mark.parametrize("y", [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
def test_fewer_than_three_distinct_targets_stay_plain(y):
    y = np.array(y)
    spread = y.std() if np.ptp(y) else 1.0
    np.testing.assert_allclose(target_scale(y, 0.0).transform(y), (y - y.mean()) / spread, atol=1e-12)


def test_pinball_loss_is_smallest_for_the_true_distribution():
    y = norm.ppf((np.arange(2000) + 0.5) / 2000)
    plain = target_scale(y, 1.0)
    losses = {std: mean_pinball_loss(plain, y, np.zeros(2000), np.full(2000, std)) for std in (0.5, 1.0, 2.0)}
    assert losses[1.0] == min(losses.values())


@given(targets, st.sampled_from([-50.0, 0.5, 1e3]))
def test_targets_of_weight_0_have_a_position_but_no_influence(y, other):
    mixed, weights = np.insert(y, [0, len(y)], other), np.ones(len(y) + 2)
    weights[[0, -1]] = 0
    for (scale, positions), (expected, of_known) in zip(blended_scales(mixed, weights), blended_scales(y), strict=True):
        for name in ("targets", "scaled", "slopes"):
            np.testing.assert_array_equal(getattr(scale, name), getattr(expected, name))
        np.testing.assert_array_equal(positions[1:-1], of_known)
        assert positions[0] == positions[-1] == expected.transform(np.array([other]))[0]


@given(targets, blends, st.integers(0, 1000))
def test_weighted_loss_is_the_loss_of_repeated_targets(y, blend, seed):
    rng = np.random.default_rng(seed)
    mean, std, counts = rng.normal(size=len(y)), rng.uniform(0.1, 1, len(y)), rng.integers(0, 4, len(y))
    counts[0] = 2
    scale = target_scale(y, blend)
    repeated = mean_pinball_loss(scale, *(np.repeat(values, counts) for values in (y, mean, std)))
    assert mean_pinball_loss(scale, y, mean, std, counts) == pytest.approx(repeated, rel=1e-9)


def test_skewed_targets_get_normal_scores_and_normal_targets_stay_nearly_plain():
    rng = np.random.default_rng(1)
    signal, noise = rng.normal(size=500), 0.3 * rng.normal(size=500)

    def choose(y):
        """Predict by the best line through a known signal, with the spread of its errors."""
        scales, positions = zip(*blended_scales(y), strict=True)
        means = [np.polyval(np.polyfit(signal, z, 1), signal) for z in positions]
        left_out = [(mean, np.full(500, (z - mean).std())) for mean, z in zip(means, positions, strict=True)]
        return scales[choose_scale(y, scales, left_out)]

    assert choose(np.exp(2 * (signal + noise))).blend <= 0.15
    # On a plain scale, a line through the signal is the truth; a blend of it is almost as good.
    plain = choose(signal + noise)
    at = np.linspace(-2, 2, 9)
    line = np.polyfit(at, plain.inverse(at), 1)
    np.testing.assert_allclose(plain.inverse(at), np.polyval(line, at), atol=0.15)
