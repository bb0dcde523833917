"""ODDST and ODDCL against the naive oracle, on the zoo and on collections drawn by hypothesis."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from strategies import collections
from treegram import ODDCL, ODDST
from zoo import COLLECTIONS

TOLERANCE = 1e-10

# Every depth and counting with every collection, and lam below, at and above 1.
SETTINGS = [
    {"depth": depth, "counting": counting, "lam": lam}
    for depth, lam in enumerate([1.0, 0.3, 2.0, 1.2])
    for counting in naive.COUNTINGS
]


def name(options):
    return "-".join(str(value) for value in options.values())


def assert_same_gram(actual, expected, rows=None, columns=None):
    """Compare entries relative to sqrt(K(G, G) K(G', G')), the scale of a skipped node pair."""
    expected = np.array(expected, dtype=float).reshape(actual.shape)
    rows, columns = (expected.diagonal() if d is None else np.array(d, dtype=float) for d in (rows, columns))
    scale = np.sqrt(np.abs(rows))[:, None] * np.sqrt(np.abs(columns))[None, :]
    assert np.isfinite(actual).all()
    assert (np.abs(actual - expected) <= TOLERANCE * scale + 1e-300).all(), (actual, expected)


def default_gamma(collection):
    vectors = [vector for graph in collection.attributes or [] for vector in graph]
    return 1.0 / len(vectors[0]) if vectors else 1.0


def assert_normalized(actual, expected):
    diagonal = [row[i] for i, row in enumerate(expected)]
    expected = np.array(naive.normalized(expected, diagonal, diagonal), dtype=float).reshape(actual.shape)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE)


# -------------------------------------------------------------------- the zoo


@pytest.mark.parametrize("options", SETTINGS, ids=name)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_oddst_matches_the_oracle(collection, options):
    expected = naive.oddst(collection, collection, **options)
    assert_same_gram(ODDST(**options, normalize=False).fit_transform(collection.pack()), expected)
    assert_normalized(ODDST(**options).fit_transform(collection.pack()), expected)


@pytest.mark.parametrize("options", SETTINGS, ids=name)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_oddcl_matches_the_oracle(collection, options):
    expected = naive.oddcl(collection, collection, naive.rbf(default_gamma(collection)), **options)
    assert_same_gram(ODDCL(**options, normalize=False).fit_transform(collection.pack()), expected)
    assert_normalized(ODDCL(**options).fit_transform(collection.pack()), expected)


@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
@pytest.mark.parametrize("counting", naive.COUNTINGS)
def test_gamma_0_equals_odd_st(collection, counting):
    expected = naive.oddst(collection, collection, depth=2, counting=counting)
    kernel = ODDCL(depth=2, counting=counting, gamma=0.0, normalize=False)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)


WITH_EDGE_LABELS = {key: c for key, c in COLLECTIONS.items() if c.edge_labels is not None}


@pytest.mark.parametrize("collection", WITH_EDGE_LABELS.values(), ids=WITH_EDGE_LABELS)
@pytest.mark.parametrize("counting", naive.COUNTINGS)
def test_edge_labels_match_the_oracle(collection, counting):
    options = {"depth": 2, "lam": 0.7, "counting": counting, "use_edge_labels": True}
    expected = naive.oddst(collection, collection, **options)
    assert_same_gram(ODDST(**options, normalize=False).fit_transform(collection.pack()), expected)
    expected = naive.oddcl(collection, collection, naive.rbf(0.4), **options)
    assert_same_gram(ODDCL(**options, gamma=0.4, normalize=False).fit_transform(collection.pack()), expected)


def test_edge_labels_matter():
    graphs = COLLECTIONS["edge_labels"].pack()
    plain, labeled = (ODDST(depth=2, use_edge_labels=use).fit_transform(graphs) for use in (False, True))
    assert np.abs(plain - labeled).max() > 0.01


@pytest.mark.parametrize("missing_labels", ["degree", "constant"])
@pytest.mark.parametrize("collection", ["no_labels", "bare", "path"])
def test_missing_labels_match_the_oracle(collection, missing_labels):
    collection = COLLECTIONS[collection]
    options = {"depth": 2, "lam": 0.7, "missing_labels": missing_labels}
    expected = naive.oddst(collection, collection, **options)
    assert_same_gram(ODDST(**options, normalize=False).fit_transform(collection.pack()), expected)
    expected = naive.oddcl(collection, collection, naive.rbf(0.4), **options)
    assert_same_gram(ODDCL(**options, gamma=0.4, normalize=False).fit_transform(collection.pack()), expected)


# -------------------------------------------------------------------- other node kernels


def tanimoto_like(X, Y):
    """Return 1 / (1 + |x - y|^2), the rational quadratic, as a user-defined kernel."""
    return 1.0 / (1.0 + ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


NODE_KERNELS = {
    "rbf": ("rbf", naive.rbf(0.6)),
    "linear": ("linear", naive.linear),
    "laplacian": ("laplacian", naive.laplacian(0.6)),
    "poly": ("poly", naive.poly(0.6)),
    "function": (tanimoto_like, lambda x, y: 1.0 / (1.0 + sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))),
    "lambda": (lambda X, Y: X @ Y.T + 1.0, lambda x, y: naive.linear(x, y) + 1.0),
}
TAME = ["isolated_nodes", "path", "components", "equal_vectors", "repeated_edges", "directed", "no_labels", "diamonds"]


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("collection", TAME)
@pytest.mark.parametrize("node_kernel", NODE_KERNELS)
def test_node_kernels_match_the_oracle(node_kernel, collection, counting):
    given_kernel, literal = NODE_KERNELS[node_kernel]
    collection = COLLECTIONS[collection]
    if collection in (COLLECTIONS["directed"], COLLECTIONS["no_labels"]):
        collection = collection.take(range(len(collection) - 1))  # values of 1e6 are only for the Gaussian
    options = {"depth": 2, "lam": 0.8, "counting": counting}
    kernel = ODDCL(**options, gamma=0.6, node_kernel=given_kernel, normalize=False)
    expected = naive.oddcl(collection, collection, literal, **options)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)
    kernel.set_params(normalize=True)
    assert_normalized(kernel.fit_transform(collection.pack()), expected)
    assert_normalized(kernel.fit(collection.pack()).transform(collection.pack()), expected)


def test_node_kernels_use_the_default_gamma():
    collection = COLLECTIONS["path"]
    for node_kernel, literal in (("laplacian", naive.laplacian(0.5)), ("poly", naive.poly(0.5))):
        actual = ODDCL(depth=1, node_kernel=node_kernel, normalize=False).fit_transform(collection.pack())
        assert_same_gram(actual, naive.oddcl(collection, collection, literal, depth=1))


def test_node_kernel_does_not_matter_without_attributes():
    collection = COLLECTIONS["no_attributes"]
    expected = naive.oddst(collection, collection, depth=2)
    for node_kernel in ("linear", "laplacian", tanimoto_like):
        actual = ODDCL(depth=2, node_kernel=node_kernel, normalize=False).fit_transform(collection.pack())
        assert_same_gram(actual, expected)


def test_node_kernel_is_called_only_for_pairs_of_equal_labels():
    """Blocks of different labels are not compared, so a function is not called more than needed."""
    collection, asked = COLLECTIONS["components"], []

    def spy(X, Y):
        asked.append((len(X), len(Y)))
        return np.ones((len(X), len(Y)))

    ODDCL(depth=1, node_kernel=spy).fit_transform(collection.pack())
    n_nodes = sum(collection.n_nodes)
    assert sum(rows * columns for rows, columns in asked) < n_nodes * n_nodes


# -------------------------------------------------------------------- hypothesis

SEARCH = settings(max_examples=60, deadline=None)
OPTIONS = st.fixed_dictionaries(
    {
        "depth": st.integers(0, 3),
        "counting": st.sampled_from(naive.COUNTINGS),
        "lam": st.sampled_from([0.1, 0.5, 1.0, 1.2, 3.0]),
        "missing_labels": st.sampled_from(["degree", "constant"]),
    }
)


@SEARCH
@given(collections(), OPTIONS)
def test_oddst_matches_the_oracle_on_any_collection(collection, options):
    options["use_edge_labels"] = collection.edge_labels is not None
    expected = naive.oddst(collection, collection, **options)
    assert_same_gram(ODDST(**options, normalize=False).fit_transform(collection.pack()), expected)
    assert_normalized(ODDST(**options).fit_transform(collection.pack()), expected)


@SEARCH
@given(collections(), OPTIONS, st.sampled_from([0.0, 1e-3, 0.5, None, 20.0]))
def test_oddcl_matches_the_oracle_on_any_collection(collection, options, gamma):
    options["use_edge_labels"] = collection.edge_labels is not None
    width = default_gamma(collection) if gamma is None else gamma
    # 1 by definition, though 0 times an infinite squared distance is NaN.
    literal = naive.rbf(width) if width else lambda x, y: 1.0
    expected = naive.oddcl(collection, collection, literal, **options)
    assert_same_gram(ODDCL(**options, gamma=gamma, normalize=False).fit_transform(collection.pack()), expected)
    assert_normalized(ODDCL(**options, gamma=gamma).fit_transform(collection.pack()), expected)


@SEARCH
@given(
    collections(dimension=2, scale="plain"),
    st.sampled_from(sorted(NODE_KERNELS)),
    st.sampled_from(naive.COUNTINGS),
)
def test_node_kernels_match_the_oracle_on_any_collection(collection, node_kernel, counting):
    given_kernel, literal = NODE_KERNELS[node_kernel]
    options = {"depth": 2, "counting": counting, "lam": 0.8}
    kernel = ODDCL(**options, gamma=0.6, node_kernel=given_kernel, normalize=False)
    expected = naive.oddcl(collection, collection, literal, **options)
    actual = kernel.fit_transform(collection.pack())
    # A linear kernel may cancel to 0: the scale is that of the terms, not of their sum.
    bound = naive.oddcl(collection, collection, lambda x, y: abs(literal(x, y)), **options)
    np.testing.assert_array_less(
        np.abs(actual - np.reshape(expected, actual.shape)), 1e-12 * np.reshape(bound, actual.shape) + 1e-15
    )


@SEARCH
@given(collections(dimension=2), collections(dimension=2), OPTIONS)
def test_transform_of_other_graphs_matches_the_oracle(fitted, new, options):
    new = _like(new, fitted)
    literal = naive.rbf(0.5)
    rows, columns, K = (naive.oddcl(a, b, literal, **options) for a, b in ((new, new), (fitted, fitted), (new, fitted)))
    rows, columns = ([K2[i][i] for i in range(len(K2))] for K2 in (rows, columns))
    kernel = ODDCL(**options, gamma=0.5, normalize=False).fit(fitted.pack())
    assert_same_gram(kernel.transform(new.pack()), K, rows, columns)
    actual = ODDCL(**options, gamma=0.5).fit(fitted.pack()).transform(new.pack())
    expected = np.array(naive.normalized(K, rows, columns), dtype=float).reshape(actual.shape)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE)


def _like(new, fitted):
    """Return the collection with the direction of the other one, and with labels only if that one has them."""
    labels = new.labels or [["C"] * n for n in new.n_nodes]
    return type(new)(
        edges=new.edges,
        n_nodes=new.n_nodes,
        labels=None if fitted.labels is None else labels,
        attributes=new.attributes,
        directed=fitted.directed,
    )


# -------------------------------------------------------------------- large offsets


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9, 1e12])
def test_vectors_far_from_the_origin_keep_their_distances(offset):
    """Only differences matter: 1e9 and 1e9 + 1 are exact, and their distance is 1."""
    collection = COLLECTIONS["one_attribute"].take([1, 2])
    vectors = [[[offset]], [[offset], [offset + 1.0], [offset + 2.0], [offset - 1.0]]]
    moved = type(collection)(collection.edges, collection.n_nodes, [["C"], ["C"] * 4], vectors)
    K = ODDCL(depth=0, gamma=0.3, normalize=False).fit(moved.take([1]).pack()).transform(moved.take([0]).pack())
    assert K[0, 0] == pytest.approx(1 + 2 * math.exp(-0.3) + math.exp(-1.2), rel=1e-12)
