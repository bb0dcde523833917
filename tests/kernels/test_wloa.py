"""Tests of WLOA against histograms of naive colors, against optimal assignments, and against GraKeL."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import naive_wl
from checks import feature_names, feature_rows
from strategies import collections
from treegram import WLOA, load_tu
from zoo import COLLECTIONS


def colors(collection, g, h, **options):
    """Return the colors of each node after 0 to h iterations."""
    adjacent, labels = naive_wl.read(collection, g, **options)
    return list(naive_wl.wl(adjacent, labels, h).values())


def intersection(left, right):
    """Return the number of (iteration, color) pairs that two graphs share, with multiplicity."""
    counts = (Counter((i, c) for node in nodes for i, c in enumerate(node)) for nodes in (left, right))
    return sum((next(counts) & next(counts)).values())


def best_assignment(left, right):
    """Return the largest sum of common colors over all assignments of nodes."""
    gains = np.array([[sum(a == b for a, b in zip(u, v, strict=True)) for v in right] for u in left])
    gains = gains.reshape(len(left), len(right))
    return gains[linear_sum_assignment(gains, maximize=True)].sum()


def literal(collection, h, value, **options):
    nodes = [colors(collection, g, h, **options) for g in range(len(collection))]
    return np.array([[value(a, b) for b in nodes] for a in nodes], float).reshape(len(nodes), len(nodes))


@pytest.mark.parametrize("value", [intersection, best_assignment])
@pytest.mark.parametrize("n_iterations", [0, 1, 3])
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_zoo_matches_the_oracle(collection, n_iterations, value):
    K = WLOA(n_iterations, normalize=False).fit_transform(collection.pack())
    np.testing.assert_array_equal(K, literal(collection, n_iterations, value))


@settings(max_examples=60, deadline=None)
@given(collections(edge_labels=True), st.integers(0, 3), st.booleans())
def test_any_collection_matches_the_oracle(collection, n_iterations, use_edge_labels):
    options = {"use_edge_labels": use_edge_labels and collection.edge_labels is not None}
    kernel = WLOA(n_iterations, normalize=False, **options).fit(collection.pack())
    expected = literal(collection, n_iterations, best_assignment, **options)
    np.testing.assert_array_equal(kernel.transform(collection.pack()), expected)
    Z = feature_rows(kernel, collection.pack())
    np.testing.assert_array_equal((Z @ Z.T).toarray(), expected)
    assert Z.shape[1] == len(set(feature_names(kernel)))


@pytest.mark.parametrize("name", ["MUTAG", "ENZYMES"])
def test_real_data_match_grakel(name, data_dir):
    """Except for graphs with isolated nodes, which GraKeL drops."""
    grakel = pytest.importorskip("grakel")
    graphs = load_tu(name, data_dir=data_dir)[0][:80]
    is_isolated = np.array([(graph.degrees == 0).any() for graph in graphs])
    graphs = graphs[~is_isolated][:60]
    theirs = []
    for graph in graphs:
        edges = [tuple(edge) for edge in np.concatenate([graph.edges(), graph.edges()[:, ::-1]]).tolist()]
        theirs.append(grakel.Graph(edges, node_labels=dict(enumerate(graph.labels.tolist()))))
    for h in (1, 3):
        expected = grakel.WeisfeilerLehmanOptimalAssignment(n_iter=h).fit_transform(theirs)
        np.testing.assert_array_equal(WLOA(h, normalize=False).fit_transform(graphs), expected)
