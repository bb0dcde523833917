"""Tests of the compiled parts of the engine."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from treegram.pairsum import nodes, tiles
from treegram.pairsum.attributes import Gaussian
from treegram.pairsum.tiles import complete


@njit
def powers_of(values, out):
    """Call it from compiled code, as the engine does."""
    for i in range(len(values)):
        out[i] = tiles.power_of_2(values[i])


def our_powers(values):
    out = np.empty_like(values)
    powers_of(values, out)
    return out


def test_powers_are_accurate_to_a_few_ulps():
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [-np.linspace(0, 1020, 200_001), -rng.uniform(0, 1020, 100_000), -(10.0 ** rng.uniform(-20, 2, 100_000))]
    )
    expected = np.exp2(values.astype(np.longdouble))
    error = np.abs(our_powers(values) - expected) / expected
    assert error.max() < 4e-16


def test_subnormal_powers_are_zero():
    values = -np.linspace(1010, 1080, 10_001)
    actual, expected = our_powers(values), np.exp2(values)
    assert np.isfinite(actual).all()
    assert (np.abs(actual - expected) <= 1e-15 * expected + 1e-307).all()
    assert not actual[values < -1021].any()


@pytest.mark.parametrize(
    ("x", "expected"),
    [(0.0, 1.0), (-0.0, 1.0), (-1e-300, 1.0), (-1.0, 0.5), (-1080.0, 0.0), (-1e308, 0.0), (-np.inf, 0.0)],
)
def test_powers_at_special_values(x, expected):
    assert our_powers(np.array([x]))[0] == expected


def test_powers_never_exceed_1():
    """k_A of two vectors is at most that of a vector with itself, so a matrix stays positive semidefinite."""
    assert our_powers(-(10.0 ** np.linspace(-30, 0, 10_001))).max() <= 1.0


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 8, 11])
def test_gaussian_rows_fill_only_their_window(dimension):
    rng = np.random.default_rng(dimension)
    x, columns, out = rng.normal(size=(6, dimension)), rng.normal(size=(dimension, 9)), np.full((4, 9), 7.0)
    expected = np.exp(-0.7 * ((x[:, :, None] - columns) ** 2).sum(axis=1))
    tiles.gaussian_row(0.7, 5, x, columns, 2, 6, 1, out)
    np.testing.assert_allclose(out[1, 2:6], expected[5, 2:6], rtol=1e-14)
    np.testing.assert_array_equal(np.delete(out[1], range(2, 6)), 7.0)
    np.testing.assert_array_equal(out[[0, 2, 3]], 7.0)
    tiles.gaussian_rows(0.7, 2, x, columns, 2, 6, out)
    np.testing.assert_allclose(out[:, 2:6], expected[2:, 2:6], rtol=1e-14)


def test_invert_keeps_every_entry_once():
    """Two blocks of four columns; features 0 to 3 are in the first, 4 and 5 in the second. 1, 3 and 5 are common."""
    matrix = np.zeros((8, 6))
    matrix[:4, :4] = np.random.default_rng(3).integers(0, 3, size=(4, 4))
    matrix[4:, 4:] = [[1, 2], [0, 3], [4, 0], [5, 6]]
    slots = np.array([-1, 0, -1, 1, -1, 0])
    features = sp.csr_matrix(matrix)
    inverted = nodes.Inverted(
        slots=slots.astype(np.int32),
        lanes=np.zeros(6, np.int32),
        lane_kinds=np.zeros((2, 2), np.int64),
        dense=np.zeros((2, 8)),
        ends=np.zeros(7, np.int32),
        listed=np.empty(features.nnz, np.int32),
        values=np.empty(features.nnz),
    )
    backwards = features[::-1]
    entries = nodes.FeatureEntries(backwards.indptr, backwards.indices, backwards.data)
    nodes.invert(entries, np.arange(8)[::-1].copy(), np.arange(8), inverted)
    dense, ends, listed, values = inverted[3:]
    rebuilt = np.zeros_like(matrix)
    for t in np.flatnonzero(slots < 0):
        span = slice(ends[t - 1] if t else 0, ends[t])
        rebuilt[listed[span], t] = values[span]
    rebuilt[:4, 1], rebuilt[:4, 3], rebuilt[4:, 5] = dense[0, :4], dense[1, :4], dense[0, 4:]
    np.testing.assert_array_equal(rebuilt, matrix)
    np.testing.assert_array_equal(dense[1, 4:], 0)


@pytest.mark.parametrize("n", [0, 1, 3, 63, 64, 66, 201])
def test_lower_halves_are_filled_and_both_halves_scaled(n):
    rng = np.random.default_rng(n)
    upper, factors = np.triu(rng.normal(size=(2, n, n))), rng.normal(size=(2, n))
    whole = upper + np.triu(upper, 1).swapaxes(1, 2)
    for scale, expected in ((None, whole), (factors, whole * (factors[:, :, None] * factors[:, None, :]))):
        K = np.where(np.tri(n, k=-1, dtype=bool), np.nan, upper)  # the lower half may hold anything
        complete(K, scale)
        np.testing.assert_array_equal(K, expected)


@pytest.mark.parametrize("n_keys", [1, 3, 300, 70_000])
def test_sort_by_keys_is_stable(n_keys):
    rng = np.random.default_rng(n_keys)
    keys, order = rng.integers(n_keys, size=500), rng.permutation(500)
    np.testing.assert_array_equal(tiles.order_by(keys, n_keys, order), order[np.argsort(keys[order], kind="stable")])


@pytest.mark.parametrize("spread", ["normal", "equal", "two values", "one far away", "huge", "tiny"])
def test_nodes_are_sorted_by_block_and_projection(spread):
    """Only nodes that differ by rounding may be in any order."""
    rng = np.random.default_rng(0)
    vectors = {
        "normal": rng.normal(size=(600, 2)),
        "equal": np.full((600, 2), 3.5),
        "two values": rng.choice([-1.0, 4.0], size=(600, 1)),
        "one far away": np.append(rng.normal(size=(599, 1)), [[1e9]], axis=0),
        "huge": 1.7e308 * rng.uniform(-1, 1, size=(600, 2)),
        "tiny": rng.uniform(0, 1e-307, size=(600, 2)),
    }[spread]
    n, d = vectors.shape
    nodes = SimpleNamespace(offsets=np.array([0, n]), blocks=rng.integers(4, size=n).astype(np.uint64), vectors=vectors)
    nothing = SimpleNamespace(offsets=np.zeros(2, int), blocks=np.zeros(0, np.uint64), vectors=np.zeros((0, d)))
    layout = tiles.Layout.make(nothing, nodes, Gaussian(1.0), 37.0)
    assert len(layout.left.by_block) == 0
    side = layout.right
    np.testing.assert_array_equal(np.sort(side.by_block), np.arange(n))
    blocks, projections = side.blocks[side.by_block], side.projections[side.by_block]
    assert (np.diff(blocks) >= 0).all()
    assert (np.diff(projections)[np.diff(blocks) == 0] >= -1e-15).all()
    order, columns = layout.columns((0, 1))
    np.testing.assert_array_equal(order, side.by_block)
    np.testing.assert_array_equal(columns.vectors.T, vectors[order])
