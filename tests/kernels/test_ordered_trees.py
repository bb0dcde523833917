"""Tests of C'_ST: the naive oracle, and that its value depends on the order of equal siblings, unlike that of ODDCL."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_matching
from strategies import collections
from treegram import ODDCL, ODDST, OrderedTrees
from treegram.kernels import ordered_trees
from zoo import COLLECTIONS, collect

SEARCH = settings(max_examples=40, deadline=None)
TIE_BREAKS = ("lexicographic", "colexicographic", "given")


def default_gamma(collection):
    vectors = [vector for graph in collection.attributes or [] for vector in graph]
    return 1.0 / len(vectors[0]) if vectors else 1.0


def assert_same_gram(actual, expected):
    expected = np.array(expected, dtype=float).reshape(actual.shape)
    roots = np.sqrt(np.abs(expected.diagonal()))
    assert np.isfinite(actual).all()
    assert (np.abs(actual - expected) <= 1e-12 * np.outer(roots, roots) + 1e-300).all(), (actual, expected)


# -------------------------------------------------------------------- the oracle

SETTINGS = [
    {"depth": 0},
    {"depth": 1, "lam": 0.7, "tie_break": "colexicographic"},
    {"depth": 2, "counting": "visits", "tie_break": "given"},
    {"depth": 2, "counting": "capped", "lam": 1.2},
]


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_zoo_matches_the_oracle(collection, options):
    literal = naive.rbf(default_gamma(collection))
    expected = naive_matching.ordered_st(collection, collection, literal, **{"tie_break": "lexicographic", **options})
    kernel = OrderedTrees(**options, normalize=False)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)


@SEARCH
@given(
    collections(scale="plain"),
    st.integers(0, 3),
    st.sampled_from(TIE_BREAKS),
    st.sampled_from(naive.COUNTINGS),
    st.sampled_from([0.5, 1.0, 1.5]),
)
def test_any_collection_matches_the_oracle(collection, depth, tie_break, counting, lam):
    options = {"depth": depth, "tie_break": tie_break, "counting": counting, "lam": lam}
    options["use_edge_labels"] = collection.edge_labels is not None
    expected = naive_matching.ordered_st(collection, collection, naive.rbf(0.4), **options)
    plain = OrderedTrees(**options, gamma=0.4, normalize=False).fit_transform(collection.pack())
    assert_same_gram(plain, expected)
    n = len(collection)
    diagonal = [expected[i][i] for i in range(n)]
    normalized = np.reshape(naive.normalized(expected, diagonal, diagonal), (n, n))
    actual = OrderedTrees(**options, gamma=0.4).fit_transform(collection.pack())
    np.testing.assert_allclose(actual, normalized, rtol=0, atol=1e-12)


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_without_attributes_it_equals_odd_st(tie_break, counting):
    graphs = COLLECTIONS["edge_labels"].pack()
    expected = ODDST(depth=2, counting=counting, lam=0.8).fit_transform(graphs)
    options = {"depth": 2, "counting": counting, "lam": 0.8, "tie_break": tie_break}
    np.testing.assert_allclose(OrderedTrees(**options, gamma=0.0).fit_transform(graphs), expected, rtol=0, atol=1e-13)
    bare = COLLECTIONS["no_attributes"].pack()
    np.testing.assert_allclose(
        OrderedTrees(**options).fit_transform(bare),
        ODDST(depth=2, counting=counting, lam=0.8).fit_transform(bare),
        rtol=0,
        atol=1e-13,
    )


# -------------------------------------------------------------------- why the paper rejects it


def star(*vectors):
    """Return a star whose leaves have one label and the given vectors."""
    edges = [(0, i + 1) for i in range(len(vectors))]
    nodes = [[0.0] * len(vectors[0]), *map(list, vectors)]
    return {"n_nodes": len(nodes), "edges": edges, "labels": ["C"] * len(nodes), "attributes": nodes}


def value(kernel, *graphs):
    return kernel.fit_transform(collect(*graphs).pack())[0, 1]


def test_isomorphic_graphs_differ_when_ties_are_broken_by_number():
    """The same star twice, with leaves numbered differently; 1 would mean that they are equal."""
    one, same = star([1.0], [3.0]), star([3.0], [1.0])
    assert value(OrderedTrees(1, tie_break="given"), one, same) == pytest.approx(0.98258618, abs=1e-8)
    for kernel in (OrderedTrees(1), OrderedTrees(1, tie_break="colexicographic"), ODDCL(1)):
        assert value(kernel, one, same) == pytest.approx(1.0, abs=1e-14)


def test_value_depends_on_the_tie_rule():
    """First coordinates pair the leaves one way, last coordinates the other; ODDCL needs no rule."""
    one, other = star([0.0, 0.0], [1.0, 2.0]), star([0.0, 2.0], [1.0, 0.0])
    first, last = (value(OrderedTrees(1, lam=3.0, tie_break=rule), one, other) for rule in TIE_BREAKS[:2])
    assert abs(first - last) > 0.005


def test_value_is_discontinuous_when_siblings_swap():
    """Leaves (0, 0) and (e, 5): their order, and so what they are compared with, depends on the sign of e."""
    fixed = star([0.0, 0.0], [1.0, 5.0])
    before, after = (value(OrderedTrees(1), fixed, star([0.0, 0.0], [e, 5.0])) for e in (-1e-9, 1e-9))
    assert abs(before - after) > 0.005
    smooth = [value(ODDCL(1), fixed, star([0.0, 0.0], [e, 5.0])) for e in (-1e-9, 1e-9)]
    assert smooth[0] == pytest.approx(smooth[1], abs=1e-8)


# -------------------------------------------------------------------- properties


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("collection", ["edge_labels", "directed", "no_labels"])
def test_gram_is_positive_semidefinite_under_every_rule(collection, tie_break):
    graphs = COLLECTIONS[collection].pack()
    for depth in range(4):
        assert np.linalg.eigvalsh(OrderedTrees(depth, tie_break=tie_break, gamma=0.3).fit_transform(graphs))[0] > -1e-12


@SEARCH
@given(collections(min_graphs=1), st.sampled_from(TIE_BREAKS[:2]))
def test_node_order_does_not_matter_under_the_first_two_rules(collection, tie_break):
    kernel = OrderedTrees(2, tie_break=tie_break, gamma=0.5)
    K = kernel.fit_transform(collection.pack())
    again = kernel.transform(collection.reversed_nodes().pack())
    np.testing.assert_allclose(again, K, rtol=0, atol=1e-12)


def test_batch_size_and_n_jobs_do_not_change_the_result(monkeypatch):
    graphs = COLLECTIONS["edge_labels"].pack()
    K = OrderedTrees(2).fit_transform(graphs)
    monkeypatch.setattr(ordered_trees, "BATCH_BYTES", 1)
    small = [OrderedTrees(2, n_jobs=n_jobs).fit_transform(graphs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(small[0], small[1])
    np.testing.assert_allclose(small[0], K, rtol=0, atol=1e-14)


def test_transform_of_new_graphs_equals_the_block_of_the_whole():
    """The parts are packed separately: the new graphs have labels and trees that the training graphs do not have."""
    collection = COLLECTIONS["edge_labels"]
    whole = OrderedTrees(2).fit_transform(collection.pack())
    for old, new in (([1, 2, 6], [0, 3, 4, 5, 7]), ([0], [3]), ([3], [0, 2])):
        part = OrderedTrees(2).fit(collection.take(old).pack()).transform(collection.take(new).pack())
        np.testing.assert_allclose(part, whole[np.ix_(new, old)], rtol=0, atol=1e-13)


def test_overflowing_weights_raise_or_are_rescaled():
    graphs = COLLECTIONS["diamonds"].pack()
    with pytest.raises(ValueError, match="overflows"):
        OrderedTrees(3, lam=1e60, normalize=False).fit(graphs)
    assert np.isfinite(OrderedTrees(3, lam=1e60).fit_transform(graphs)).all()


@pytest.mark.parametrize("name", ["BZR"])
def test_gram_of_real_graphs_is_positive_semidefinite_and_normalized(data_dir, name):
    from treegram import load_tu

    graphs = load_tu(name, data_dir=data_dir)[0][:150]
    K = OrderedTrees(2).fit_transform(graphs)
    assert np.linalg.eigvalsh(K)[0] > -1e-10
    np.testing.assert_allclose(K.diagonal(), 1.0, rtol=0, atol=1e-14)
