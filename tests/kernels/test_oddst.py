"""Tests of the explicit features of ODDST: their values and names."""

import re
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import naive
from checks import feature_names, feature_rows
from strategies import in_two_parts
from treegram import ODDST, FeatureMap
from zoo import COLLECTIONS, Collection

MIXED = COLLECTIONS["edge_labels"]
OPTIONS = [
    {"depth": 2, "normalize": False},
    {"depth": 2, "normalize": True},
    {"depth": 3, "lam": 1.2, "counting": "visits", "normalize": True},
    {"depth": 3, "lam": 0.4, "counting": "capped", "normalize": False},
    {"depth": 2, "use_edge_labels": True, "normalize": False},
]


def names_of(kernel):
    return feature_names(kernel)


# -------------------------------------------------------------------- features


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_inner_products_of_features_equal_the_kernel(options):
    kernel = ODDST(**options).fit(MIXED.pack())
    Z = feature_rows(kernel, MIXED.pack())
    assert sp.issparse(Z)
    assert Z.shape == (len(MIXED), len(kernel._fitted_features.sizes))
    np.testing.assert_allclose((Z @ Z.T).toarray(), kernel.transform(MIXED.pack()), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_features_of_new_graphs_multiply_to_transform(options):
    """Trees that only new graphs have get no column but count in the norm."""
    old, new = MIXED.take([1, 3, 6]), MIXED.take([0, 2, 4, 5, 7, 8, 9])
    kernel = ODDST(**options).fit(old.pack())
    Z, Z_new = feature_rows(kernel, old.pack()), feature_rows(kernel, new.pack())
    assert Z_new.shape == (len(new), len(kernel._fitted_features.sizes))
    np.testing.assert_allclose((Z_new @ Z.T).toarray(), kernel.transform(new.pack()), rtol=1e-12, atol=1e-15)
    if options["normalize"]:
        lengths = np.sqrt(np.asarray(Z_new.multiply(Z_new).sum(axis=1))).ravel()
        assert lengths[1] == pytest.approx(1), "isolated nodes have no tree that is not known"
        assert 0 < lengths[2] < 1 - 1e-6, "a cycle has trees that no path or triangle has"


@settings(max_examples=40, deadline=None)
@given(in_two_parts(dimension=0), st.booleans())
def test_features_multiply_to_the_kernel_on_any_collection(drawn, normalize):
    collection, chosen = drawn
    old = collection.take([i for i, is_old in enumerate(chosen) if is_old]).pack()
    new = collection.take([i for i, is_old in enumerate(chosen) if not is_old]).pack()
    kernel = ODDST(depth=2, lam=1.1, normalize=normalize).fit(old)
    product = (feature_rows(kernel, new) @ feature_rows(kernel, old).T).toarray()
    np.testing.assert_allclose(product, kernel.transform(new), rtol=1e-12, atol=1e-15)


def test_features_are_counts_times_a_power_of_lam():
    for lam in (1.0, 0.25):
        kernel = ODDST(depth=2, lam=lam, normalize=False).fit(MIXED.pack())
        counts = feature_rows(kernel, MIXED.pack()).toarray() / lam ** (kernel._fitted_features.sizes / 2)
        np.testing.assert_allclose(counts, counts.round(), rtol=1e-12)
        assert counts.max() > 1


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("name", ["edge_labels", "no_labels", "directed", "components"])
def test_counts_by_name_match_the_oracle(name, counting):
    collection = COLLECTIONS[name]
    kernel = ODDST(depth=3, counting=counting, normalize=False).fit(collection.pack())
    names, Z = names_of(kernel), feature_rows(kernel, collection.pack())
    for g in range(len(collection)):
        literal = sum(naive.tree_counts(collection, g, 3, counting=counting), Counter())
        expected = Counter({naive.spell(t): n for t, n in literal.items()})
        assert Counter({names[t]: n for t, n in zip(Z[g].indices, Z[g].data, strict=True)}) == expected


def test_sizes_are_the_numbers_of_tree_nodes():
    kernel = ODDST(depth=3).fit(MIXED.pack())
    assert [len(re.findall("[CNO]", name)) for name in names_of(kernel)] == kernel._fitted_features.sizes.tolist()


# -------------------------------------------------------------------- parsing names of trees


def parse(text):
    """Parse the name of a tree into (labels, edges, edge labels); its root is node 0."""
    labels, edges, edge_labels, open_nodes, edge = [], [], [], [], None
    for token in re.findall(r"\w+:|\w+|[(),]", text):
        if token.endswith(":"):
            edge = token[:-1]
        elif token == ")":
            open_nodes.pop()
        elif token == "(":
            open_nodes.append(len(labels) - 1)
        elif token != ",":
            if open_nodes:
                edges.append((open_nodes[-1], len(labels)))
                edge_labels.append(edge)
            labels.append(token)
    return labels, edges, edge_labels


def test_parse_is_correct():
    assert parse("C(N,C(O))") == (["C", "N", "C", "O"], [(0, 1), (0, 2), (2, 3)], [None] * 3)
    assert parse("C(1:N)") == (["C", "N"], [(0, 1)], ["1"])


@pytest.mark.parametrize("use_edge_labels", [False, True])
def test_every_feature_can_be_parsed_and_encoded_again(use_edge_labels):
    """The parsed tree, as a graph of its own, has the feature that it came from."""
    edge_labels = [[f"e{label}" for label in graph] for graph in MIXED.edge_labels]
    collection = Collection(MIXED.edges, MIXED.n_nodes, MIXED.labels, None, edge_labels)
    kernel = ODDST(depth=3, counting="visits", use_edge_labels=use_edge_labels, normalize=False)
    kernel.fit(collection.pack())
    names = names_of(kernel)
    assert len(set(names)) == len(kernel._fitted_features.sizes) > 50
    parsed = [parse(name) for name in names]
    drawn = Collection(
        [edges for _, edges, _ in parsed],
        [len(labels) for labels, _, _ in parsed],
        [labels for labels, _, _ in parsed],
        None,
        [found for _, _, found in parsed] if use_edge_labels else None,
    )
    Z = feature_rows(kernel, drawn.pack())
    own = Z[np.arange(len(kernel._fitted_features.sizes)), np.arange(len(kernel._fitted_features.sizes))]
    assert (np.asarray(own) > 0).all()
    # No feature of a tree's graph is larger than the tree, and only those of equal size unroll all of it.
    sizes = kernel._fitted_features.sizes
    assert all((sizes[Z[t].indices] <= sizes[t]).all() for t in range(len(kernel._fitted_features.sizes)))


def test_feature_name_matches_the_documentation():
    path = Collection([[(0, 1), (1, 2), (1, 3)]], [4], [["N", "C", "C", "O"]])
    kernel = ODDST(depth=2).fit(path.pack())
    assert "N(C(C,O))" in names_of(kernel)
    chain = Collection([[(0, 1), (0, 2), (2, 3)]], [4], [["C", "N", "C", "O"]])
    assert "C(C(O),N)" in names_of(ODDST(depth=2).fit(chain.pack()))


def test_features_raise_before_fit():
    kernel = ODDST()
    for read in (
        lambda: kernel.transform(MIXED.pack()),
        lambda: FeatureMap(ODDST()).transform(MIXED.pack()),
    ):
        with pytest.raises(NotFittedError, match=r"ODDST|FeatureMap"):
            read()


def test_without_trees_there_are_no_features():
    kernel = ODDST().fit([])
    assert len(kernel._fitted_features.sizes) == 0
    assert feature_rows(kernel, MIXED.pack()).shape == (len(MIXED), 0)
    assert feature_names(kernel) == []
