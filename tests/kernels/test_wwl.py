"""Tests of WWL against optimal transport: of naive colors by assignments, of vectors by scipy along each direction."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import wasserstein_distance

import naive
import naive_wl
from strategies import collections
from treegram import WWL, load_tu
from treegram.kernels import wwl
from zoo import COLLECTIONS, LAWS_HOLD_ON

SEARCH = settings(max_examples=60, deadline=None)


def transport(costs):
    """Return the least mean cost of moving rows to columns, by an assignment of equally many copies of both."""
    n, m = costs.shape
    many = np.repeat(np.repeat(costs, m, axis=0), n, axis=1)
    return many[linear_sum_assignment(many)].mean()


def colors(collection, g, h, **options):
    return list(naive_wl.wl(*naive_wl.read(collection, g, **options), h).values())


def categorical(collection, h, width, **options):
    nodes = [colors(collection, g, h, **options) for g in range(len(collection))]

    def value(left, right):
        if not left or not right:
            return 0.0
        costs = np.array([[np.mean([a != b for a, b in zip(u, v, strict=True)]) for v in right] for u in left])
        return math.exp(-transport(costs) / width)

    return np.array([[value(a, b) for b in nodes] for a in nodes]).reshape(len(nodes), len(nodes))


def sliced(collection, h, width, kernel):
    """Use the directions and scales of the fitted kernel."""
    graphs = []
    for g in range(len(collection)):
        adjacent = naive.neighbors(collection, g)
        x = [[a / s for a, s in zip(row, kernel.scale_, strict=True)] for row in collection.attributes[g]]
        lists = [list(row) for row in x]
        for _ in range(h):
            means = [np.mean([x[w] for w in around], axis=0) if around else x[v] for v, around in enumerate(adjacent)]
            x = [[(a + b) / 2 for a, b in zip(row, mean, strict=True)] for row, mean in zip(x, means, strict=True)]
            lists = [[*long, *row] for long, row in zip(lists, x, strict=True)]
        graphs.append(np.array(lists))
    directions = kernel._directions[: h + 1].transpose(1, 0, 2).reshape(kernel._directions.shape[1], -1)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)

    def value(X, Y):
        if not len(X) or not len(Y):
            return 0.0
        return math.exp(-np.mean([wasserstein_distance(X @ d, Y @ d) for d in directions]) / width)

    return np.array([[value(X, Y) for Y in graphs] for X in graphs]).reshape(len(graphs), len(graphs))


@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_zoo_matches_optimal_transport(collection):
    np.testing.assert_allclose(WWL(2).fit_transform(collection.pack()), categorical(collection, 2, 0.1), atol=1e-12)


@SEARCH
@given(collections(edge_labels=True), st.integers(0, 3), st.sampled_from([0.05, 2.0]), st.booleans())
def test_any_collection_matches_optimal_transport(collection, h, width, use_edge_labels):
    kernel = WWL(h, width=width, use_edge_labels=use_edge_labels).fit(collection.pack())
    expected = categorical(collection, h, width, use_edge_labels=use_edge_labels)
    np.testing.assert_allclose(kernel.transform(collection.pack()), expected, atol=1e-12)


@SEARCH
@given(collections(dimension=2, scale="plain"), st.integers(0, 2))
def test_sliced_distances_are_exact_along_each_direction(collection, h):
    with mock.patch.object(wwl, "N_DIRECTIONS", 3):
        kernel = WWL(h, width=0.7, method="sliced", random_state=1).fit(collection.pack())
        K = kernel.transform(collection.pack())
    np.testing.assert_allclose(K, sliced(collection, h, 0.7, kernel), atol=1e-12)


def test_width_beyond_64_bits_is_accepted():
    """Found by fuzzing model files: numpy turns such integers into objects."""
    graphs = LAWS_HOLD_ON["mixed"].pack()
    np.testing.assert_array_equal(WWL(width=10**30).fit_transform(graphs), WWL(width=1e30).fit_transform(graphs))


def test_scales_come_from_the_training_graphs():
    graphs = COLLECTIONS["one_attribute"].pack()
    kernel = WWL(method="sliced").fit(graphs[:5])
    np.testing.assert_allclose(kernel.scale_, graphs[:5].attributes.std(axis=0))
    assert kernel.learns_from_data
    assert not WWL().learns_from_data
    other = WWL(method="sliced", random_state=5).fit(graphs[:5])
    assert (np.abs(other.transform(graphs) - kernel.transform(graphs)) > 1e-3).any()


def test_unused_data_warns(data_dir):
    graphs = load_tu("ENZYMES", data_dir=data_dir)[0][:20]
    with pytest.warns(UserWarning, match="does not use the node vectors"):
        WWL().fit(graphs)
    with pytest.warns(UserWarning, match="does not use the node labels"):
        WWL(method="sliced").fit(graphs)
