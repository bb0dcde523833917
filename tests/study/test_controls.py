"""Controls: each takes away what it says, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram import Graphs, make_synthetic
from treegram.study.data import _CHANGES, apply_control, first_twins
from treegram.study.protocol import CONTROLS


@pytest.fixture(scope="module")
def data():
    graphs, y = make_synthetic(20, n_nodes=12, n_edges=18, random_state=0)
    vectors = np.random.default_rng(0).normal(size=(graphs.n_nodes, 3))
    return replace(graphs, attributes=vectors), y


def parts(graphs):
    return np.split(graphs.attributes, graphs.offsets[1:-1])


def test_every_control_is_there():
    assert tuple(CONTROLS) == tuple(_CHANGES)


def test_no_control_changes_nothing(data):
    assert apply_control("", "A", *data, 0) == data


@pytest.mark.parametrize("control", ["permuted-targets", "permuted-vectors", "rotated"])
def test_a_seed_gives_the_same_data(data, control):
    first, again, other = (apply_control(control, "A", *data, seed) for seed in (1, 1, 2))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(getattr(one, "attributes", one), getattr(two, "attributes", two))
    changed = 1 if control == "permuted-targets" else 0
    pair = [getattr(found[changed], "attributes", found[changed]) for found in (first, other)]
    assert not np.array_equal(*pair)


def test_permuted_targets_are_the_same_ones(data):
    graphs, y = apply_control("permuted-targets", "A", *data, 0)
    assert graphs is data[0]
    assert sorted(y) == sorted(data[1])
    assert not np.array_equal(y, data[1])


def test_permuted_vectors_are_the_same_ones_elsewhere(data):
    graphs, y = apply_control("permuted-vectors", "A", *data, 0)
    assert y is data[1]
    assert sorted(map(tuple, graphs.attributes)) == sorted(map(tuple, data[0].attributes))
    assert np.mean((graphs.attributes == data[0].attributes).all(axis=1)) < 0.1


def test_turned_graphs_keep_means_distances_and_handedness(data):
    graphs, _ = apply_control("rotated", "A", *data, 0)
    for one, other in zip(parts(data[0]), parts(graphs), strict=True):
        np.testing.assert_allclose(one.mean(axis=0), other.mean(axis=0))
        apart = [np.linalg.norm(some[:, None] - some, axis=2) for some in (one, other)]
        np.testing.assert_allclose(*apart, atol=1e-12)
        volumes = [np.linalg.det(some[:3] - some[3]) for some in (one, other)]
        assert volumes[0] == pytest.approx(volumes[1])  # of a mirror image it would have the other sign
        assert np.abs(one - other).max() > 0.1


def test_a_control_needs_the_vectors_that_it_changes(data):
    with pytest.raises(ValueError, match="rotated needs graphs with 2 attributes or more; these have 1"):
        apply_control("rotated", "A", replace(data[0], attributes=data[0].attributes[:, :1].copy()), data[1], 0)
    with pytest.raises(ValueError, match="permuted-vectors needs graphs with 1 attribute or more; these have 0"):
        apply_control("permuted-vectors", "A", replace(data[0], attributes=None), data[1], 0)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_twins_are_found_in_any_order_of_nodes(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 8))
    edges, labels, vectors = rng.integers(0, n, (m, 2)), rng.integers(0, 2, n), rng.integers(0, 2, (n, 1)).astype(float)
    edges = np.array([[a, b] for a, b in edges if a != b], dtype=np.int64).reshape(-1, 2)
    order = rng.permutation(n)  # node i becomes node order[i]
    back = np.argsort(order)
    shifted = vectors.copy()
    shifted[0] += 0.5
    graphs = Graphs.from_edges(
        [edges, order[edges], edges],
        labels=[labels, labels[back], labels],
        attributes=[vectors, vectors[back], shifted],
    )
    assert first_twins(graphs).tolist() == [0, 0, 2]


def test_twins_are_left_out_and_counted(data):
    graphs, y = data
    ids = [*range(20), 3, 3, 7]
    targets = np.array([*y, y[3], 9, y[7]])
    with pytest.warns(
        UserWarning, match=r"A: 3 graphs of 23 left out, each equal to an earlier one; 1 of these had another"
    ):
        kept, left = apply_control("without-twins", "A", graphs[ids], targets, 0)
    assert len(kept) == 20
    np.testing.assert_array_equal(left, y)
