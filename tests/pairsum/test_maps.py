"""Tests of feature maps of vectors: unbiased if random, exact if complete, and never above the kernel."""

import pickle
from collections import Counter

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from treegram._core.parallel import one_blas_thread
from treegram.pairsum import maps
from treegram.pairsum.attributes import Gaussian, node_kernel_blocks
from treegram.pairsum.maps import (
    Constant,
    distinct_rows,
    evaluate,
    fourier_map,
    nystroem_map,
)

GAMMA = 0.4


def points(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def error(vector_map, X, kernel):
    K, Z = kernel(X, X), vector_map(X)
    return np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K)


def nystroem(X, n_components, kernel=None, **options):
    return nystroem_map(X, np.ones(len(X)), kernel or Gaussian(GAMMA), n_components, **{"seed": 0, **options})


# -------------------------------------------------------------------- random Fourier features


@pytest.mark.parametrize("d", [1, 3, 7])
def test_random_features_are_unbiased(d):
    X = points(5, d)
    products = []
    for seed in range(400):
        Z = fourier_map(d, 12, GAMMA, seed)(X)
        products.append(Z @ Z.T)
    mean, deviation = np.mean(products, axis=0), np.std(products, axis=0) / np.sqrt(len(products))
    assert (np.abs(mean - rbf_kernel(X, gamma=GAMMA)) <= 5 * deviation + 1e-12).all()


def test_random_features_have_unit_length():
    Z = fourier_map(3, 10, GAMMA, 0)(100 * points(20, 3))
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-14)


def test_error_decreases_with_the_square_root_of_the_number_of_components():
    X = points(60, 2)
    errors = [
        np.mean([error(fourier_map(2, n, GAMMA, seed), X, Gaussian(GAMMA)) for seed in range(10)]) for n in (64, 4096)
    ]
    assert errors[1] < 2 * errors[0] * 64**-0.5


@pytest.mark.parametrize("n_components", [1, 2, 3, 7, 64, 100])
def test_odd_numbers_of_components_are_rounded_up(n_components):
    vector_map = fourier_map(3, n_components, GAMMA, 0)
    assert vector_map.n_components == n_components + n_components % 2
    assert vector_map(points(4, 3)).shape == (4, vector_map.n_components)


def test_same_seed_gives_the_same_bits():
    first, again, other = (fourier_map(3, 20, GAMMA, seed)(points(5, 3)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_gamma_0_makes_all_vectors_equal():
    Z = fourier_map(2, 8, 0.0, 0)(points(4, 2))
    np.testing.assert_allclose(Z @ Z.T, 1.0)


# -------------------------------------------------------------------- Nystroem


def test_nystroem_is_exact_with_all_vectors_as_pivots():
    X = 3 * points(40, 3)
    vector_map = nystroem(X, 40)
    assert vector_map.n_components == 40
    assert error(vector_map, X, Gaussian(GAMMA)) < 1e-14


def test_nystroem_is_exact_against_its_pivots():
    X = points(300, 2)
    vector_map = nystroem(X, 12)
    new = points(50, 2, seed=1)
    expected = Gaussian(GAMMA)(new, vector_map.pivots)
    np.testing.assert_allclose(vector_map(new) @ vector_map(vector_map.pivots).T, expected, atol=1e-10)


def test_nystroem_is_at_most_the_kernel():
    X = points(200, 2)
    for n_components in (1, 5, 20):
        Z = nystroem(X, n_components)(X)
        assert np.linalg.eigvalsh(Gaussian(GAMMA)(X, X) - Z @ Z.T)[0] > -1e-12


def test_nystroem_error_decreases_fast():
    X = points(500, 1)
    errors = [error(nystroem(X, n), X, Gaussian(GAMMA)) for n in (4, 8, 16, 32)]
    assert errors[1] < errors[0] / 10
    assert errors[2] < errors[1] / 100
    assert errors[3] < 1e-12


def test_nystroem_stops_when_only_rounding_errors_are_left():
    vector_map = nystroem(points(2000, 1), 500)
    assert vector_map.n_components < 50


def test_proposals_at_rounding_level_terminate():
    """With some of these seeds a whole batch of proposals is already explained."""
    X = points(3000, 1)
    with one_blas_thread():
        assert all(nystroem(X, 375, Gaussian(0.3), seed=seed).n_components < 50 for seed in range(30))


@pytest.mark.parametrize(("name", "rank"), [("linear", 3), ("poly", 20)])
def test_nystroem_finds_the_rank_of_other_kernels(name, rank):
    X = points(100, 3)
    kernel = node_kernel_blocks(name, 0.5, 3)
    vector_map = nystroem(X, 60, kernel)
    assert vector_map.n_components == rank
    assert error(vector_map, X, kernel) < 1e-10


def test_nystroem_accepts_a_function():
    X = points(50, 2)
    kernel = node_kernel_blocks(lambda A, B: 1 / (1 + ((A[:, None] - B[None]) ** 2).sum(axis=2)), None, 2)
    assert error(nystroem(X, 50, kernel), X, kernel) < 1e-12


def test_equal_vectors_give_one_pivot():
    assert nystroem(np.ones((30, 2)), 10).n_components == 1
    assert nystroem(np.repeat([[0.0], [1.0]], 20, axis=0), 10).n_components == 2


def test_zero_kernel_has_no_component():
    vector_map = nystroem(np.zeros((5, 2)), 3, node_kernel_blocks("linear", None, 2))
    assert vector_map(np.zeros((4, 2))).shape == (4, 0)


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
def test_vectors_far_from_the_origin_keep_their_distances(offset):
    X = offset + np.arange(6.0)[:, None]
    assert error(nystroem(X, 6), X, lambda A, B: np.exp(-GAMMA * (A - B.T) ** 2)) < 1e-14


def test_vectors_whose_squared_distance_overflows_have_kernel_zero():
    Z = nystroem(np.array([[0.0], [1e200], [-1e200]]), 3)(np.array([[0.0], [1e200]]))
    np.testing.assert_array_equal(Z @ Z.T, np.eye(2))


def test_vectors_of_weight_zero_are_never_pivots():
    X = np.concatenate([points(10_000, 2), 100 + points(10_000, 2)])
    weights = np.repeat([1.0, 0.0], 10_000)
    assert (nystroem_map(X, weights, Gaussian(GAMMA), 30, seed=0).pivots < 50).all()


def test_randomly_pivoted_cholesky_beats_uniform_pivots_on_clusters():
    """Many vectors in one cluster, few in many clusters: uniform pivots miss most clusters."""
    places = 5 * np.stack(np.divmod(np.arange(40.0), 8), axis=1)
    X = np.concatenate([0.01 * points(960, 2), places])
    uniform = nystroem(X[np.random.default_rng(0).choice(1000, 60, replace=False)], 60)
    assert error(nystroem(X, 60), places, Gaussian(GAMMA)) < 0.01
    assert error(uniform, places, Gaussian(GAMMA)) > 0.5


def test_batched_pivots_have_the_sequential_distribution():
    """Batches of proposals and rejections give each sequence of pivots the probability of the sequential algorithm."""
    X = np.array([[0.0], [0.3], [1.0], [2.5]])
    weights = np.array([2.0, 1.0, 1.0, 1.0])
    K = Gaussian(1.0)(X, X)
    expected = {}
    for i in range(4):
        residual = weights * (1 - K[i] ** 2)
        for j in set(range(4)) - {i}:
            expected[i, j] = weights[i] / weights.sum() * residual[j] / residual.sum()
    n = 4000
    drawn = Counter()
    with one_blas_thread():
        for seed in range(n):
            pivots = nystroem_map(X, weights, Gaussian(1.0), 2, seed=seed).pivots[:, 0]
            drawn[tuple(np.searchsorted(X[:, 0], pivots))] += 1
    for pair, probability in expected.items():
        assert abs(drawn[pair] / n - probability) < 5 * np.sqrt(probability / n)


def test_redundant_proposals_are_rejected():
    """A batch proposes many pivots at once; of equal ones only the first is kept."""
    kept, lower = maps._accept(np.ones((4, 4)), np.arange(4), 1e-14, np.random.default_rng(0))
    assert kept.tolist() == [0]
    np.testing.assert_array_equal(lower, [[1.0]])


def test_same_seed_gives_the_same_pivots():
    X = points(5000, 3)
    first, again, other = (nystroem(X, 40, seed=seed).pivots for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


# -------------------------------------------------------------------- all maps

MAPS = {
    "constant": Constant(),
    "rff": fourier_map(3, 30, GAMMA, 0),
    "nystroem": nystroem(points(100, 3), 30),
}


@pytest.mark.parametrize("vector_map", MAPS.values(), ids=MAPS)
def test_range_of_components_equals_that_slice_of_all(vector_map):
    X = points(11, 3)
    whole = vector_map(X)
    assert whole.shape == (11, vector_map.n_components)
    for columns in (slice(0, 4), slice(4, 30), slice(28, 30), slice(6, None), slice(None)):
        np.testing.assert_allclose(vector_map(X, columns), whole[:, columns], rtol=0, atol=1e-13)


@pytest.mark.parametrize("vector_map", MAPS.values(), ids=MAPS)
def test_n_jobs_changes_no_bit_of_the_rows(vector_map):
    X = points(3 * maps.ROWS_PER_CALL + 5, 3)
    rows = evaluate(vector_map, X, n_jobs=1)
    np.testing.assert_allclose(rows, vector_map(X), rtol=0, atol=1e-12)
    for n_jobs in (2, 4):
        np.testing.assert_array_equal(evaluate(vector_map, X, n_jobs=n_jobs), rows)


@pytest.mark.parametrize("vector_map", MAPS.values(), ids=MAPS)
def test_no_vectors_give_no_rows(vector_map):
    assert evaluate(vector_map, np.empty((0, 3))).shape == (0, vector_map.n_components)


@pytest.mark.parametrize("vector_map", MAPS.values(), ids=MAPS)
def test_maps_can_be_pickled(vector_map):
    X = points(5, 3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(vector_map))(X), vector_map(X))


def test_distinct_rows_treats_both_zeros_as_equal():
    distinct, numbers = distinct_rows(np.array([[0.0, 1.0], [2.0, 2.0], [-0.0, 1.0]]))
    np.testing.assert_array_equal(distinct, [[0.0, 1.0], [2.0, 2.0]])
    assert numbers.tolist() == [0, 1, 0]
