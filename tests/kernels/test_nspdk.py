"""Tests of NSPDK: the naive oracle, a hand calculation, and a difference from GraKeL."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_wl
from checks import feature_names, feature_rows
from naive_wl import assert_normalized, assert_same_gram
from strategies import collections, in_two_parts, with_node_order
from treegram import NSPDK, Graphs, load_tu
from zoo import COLLECTIONS

SEARCH = settings(max_examples=60, deadline=None)
SETTINGS = [(0, 0), (0, 2), (1, 0), (1, 1), (2, 1), (3, 4)]
WITH_EDGE_LABELS = {key: c for key, c in COLLECTIONS.items() if c.edge_labels is not None}


def test_matches_a_hand_calculation():
    """A - B against A - B - A: each count is divided by the norms of all counts of its radius and distance."""
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=["AB", "ABA"])
    K = NSPDK(1, distance=1, normalize=False).fit_transform(graphs)
    nodes = 3 / math.sqrt(2 * 5)  # r = 0, d = 0: A and B against twice A and B
    arcs = 4 / math.sqrt(2 * 8)  # r = 0, d = 1: AB and BA against twice AB and twice BA
    balls = 2 / math.sqrt(2 * 5)  # r = 1, d = 0: A(B) is in both, B(A) and B(A,A) differ; so do all pairs of d = 1
    np.testing.assert_allclose(K, [[4, nodes + arcs + balls], [nodes + arcs + balls, 4]], rtol=1e-14)


@pytest.mark.parametrize(("radius", "distance"), SETTINGS)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_nspdk_matches_the_oracle(collection, radius, distance):
    expected = naive_wl.nspdk_kernel(collection, collection, radius, distance)
    kernel = NSPDK(radius, distance=distance, normalize=False)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)
    assert_normalized(NSPDK(radius, distance=distance).fit_transform(collection.pack()), expected)


@pytest.mark.parametrize("collection", WITH_EDGE_LABELS.values(), ids=WITH_EDGE_LABELS)
def test_edge_labels_match_the_oracle(collection):
    expected = naive_wl.nspdk_kernel(collection, collection, 2, 1, use_edge_labels=True)
    assert_same_gram(
        NSPDK(2, distance=1, use_edge_labels=True, normalize=False).fit_transform(collection.pack()), expected
    )


@SEARCH
@given(
    collections(),
    st.integers(0, 2),
    st.integers(0, 3),
    st.sampled_from(["degree", "constant"]),
)
def test_nspdk_matches_the_oracle_on_any_collection(collection, radius, distance, missing_labels):
    options = {"missing_labels": missing_labels, "use_edge_labels": collection.edge_labels is not None}
    expected = naive_wl.nspdk_kernel(collection, collection, radius, distance, **options)
    assert_same_gram(
        NSPDK(radius, distance=distance, normalize=False, **options).fit_transform(collection.pack()), expected
    )


@SEARCH
@given(in_two_parts(), st.integers(0, 2), st.integers(0, 2))
def test_new_graphs_match_the_oracle(parts, radius, distance):
    collection, is_first = parts
    fitted = collection.take([i for i, first in enumerate(is_first) if first])
    new = collection.take([i for i, first in enumerate(is_first) if not first])
    kernel = NSPDK(radius, distance=distance, normalize=False).fit(fitted.pack())
    expected = naive_wl.nspdk_kernel(new, fitted, radius, distance)
    own, own_new = (
        np.diag(naive_wl.nspdk_kernel(part, part, radius, distance)).reshape(len(part)) for part in (fitted, new)
    )
    assert_same_gram(kernel.transform(new.pack()), expected, own_new, own)
    K = NSPDK(radius, distance=distance).fit(fitted.pack()).transform(new.pack())
    np.testing.assert_allclose(K, np.reshape(naive.normalized(expected, own_new, own), K.shape), rtol=0, atol=1e-10)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_features_reproduce_the_kernel(collection, normalize):
    graphs = collection.pack()
    kernel = NSPDK(2, distance=2, normalize=normalize).fit(graphs)
    Z = feature_rows(kernel, graphs)
    assert Z.shape == (len(graphs), len(feature_names(kernel)))
    np.testing.assert_allclose((Z @ Z.T).toarray(), kernel.transform(graphs), rtol=1e-12, atol=1e-14)


def test_features_of_new_graphs_reproduce_the_kernel():
    graphs = COLLECTIONS["edge_labels"].pack()
    kernel = NSPDK().fit(graphs[:6])
    product = feature_rows(kernel, graphs[6:]) @ feature_rows(kernel, graphs[:6]).T
    np.testing.assert_allclose(product.toarray(), kernel.transform(graphs[6:]), atol=1e-14)


@SEARCH
@given(with_node_order(), st.integers(0, 3), st.integers(0, 2))
def test_nspdk_is_invariant_to_node_order(ordered, radius, distance):
    collection, places = ordered
    both = [
        NSPDK(radius, distance=distance).fit_transform(c.pack()) for c in (collection, collection.renumbered(places))
    ]
    np.testing.assert_allclose(*both, rtol=0, atol=1e-14)


def test_permuted_copies_are_equal_unlike_in_grakel():
    """GraKeL's codes list nodes in the order of their numbers, so it cannot be an oracle for this kernel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grakel = pytest.importorskip("grakel")
    collection = COLLECTIONS["star"].take([0])
    copy = collection.renumbered([[3, 5, 0, 1, 4, 2]])
    K = NSPDK(2, distance=2).fit_transform([collection.pack(), copy.pack()])
    np.testing.assert_allclose(K, 1.0, rtol=1e-14)
    theirs = []
    for c in (collection, copy):
        arcs = {arc: "-" for a, b in c.edges[0] for arc in ((a, b), (b, a))}
        theirs.append([set(arcs), dict(enumerate(c.labels[0])), arcs])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        K = grakel.NeighborhoodSubgraphPairwiseDistance(r=2, d=2, normalize=True).fit_transform(theirs)
    assert K[0, 1] < 0.99


@pytest.mark.parametrize(
    "parameter", [{"radius": -1}, {"distance": -1}, {"radius": 1.0}, {"normalize": "yes"}], ids=str
)
def test_invalid_parameters_raise(parameter):
    with pytest.raises(ValueError, match=f"{next(iter(parameter))} of NSPDK must be"):
        NSPDK(**parameter).fit(COLLECTIONS["path"].pack())


def test_n_jobs_changes_no_bit(data_dir):
    graphs = load_tu("ENZYMES", data_dir=data_dir)[0]
    assert graphs.n_nodes > 4 * 4096  # several tasks
    np.testing.assert_array_equal(NSPDK(n_jobs=1).fit_transform(graphs), NSPDK(n_jobs=3).fit_transform(graphs))
