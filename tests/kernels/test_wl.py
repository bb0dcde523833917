"""Tests of WL and WLCL: worked examples, the naive oracle, GraKeL, grids, features, and names of colors."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_wl
from checks import feature_names, feature_rows, gram_array
from naive_wl import assert_normalized, assert_same_gram
from strategies import collections, in_two_parts, with_node_order
from treegram import NSPDK, ODDST, WL, WLCL, WLOA, Graphs, load_tu
from treegram.exceptions import InvalidGraphError
from treegram.structure.wl import wl_colors
from zoo import COLLECTIONS

SEARCH = settings(max_examples=60, deadline=None)
OPTIONS = st.fixed_dictionaries({"missing_labels": st.sampled_from(["degree", "constant"])})
WITH_EDGE_LABELS = {key: c for key, c in COLLECTIONS.items() if c.edge_labels is not None}

# -------------------------------------------------------------------- worked examples

P2, P3, K3, C4 = range(4)
EXAMPLES = Graphs.from_edges(
    [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (2, 3), (3, 0)]],
    labels=["AB", "ABA", "AAB", "AAAA"],
    attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]], [[0.0], [0.0], [1.0]], [[0.0]] * 4],
)
VALUES = {
    1: {(P2, P2): 4, (P2, P3): 5, (P3, P3): 10, (P2, K3): 3, (P3, K3): 6, (K3, K3): 10, (C4, C4): 32},
    2: {(P2, P2): 6, (P2, P3): 5, (P3, P3): 15, (P3, K3): 6, (K3, K3): 15, (C4, C4): 48},
}


@pytest.mark.parametrize("make", [WL, WLCL])
@pytest.mark.parametrize("iterations", VALUES)
def test_worked_examples(make, iterations):
    # Equal labels have equal vectors here, so the vectors change nothing.
    K = make(iterations, normalize=False).fit_transform(EXAMPLES)
    assert {pair: K[pair] for pair in VALUES[iterations]} == VALUES[iterations]


def test_wlcl_matches_a_hand_calculation():
    """An A next to a B, and a single A: after one iteration only the labels agree."""
    graphs = Graphs.from_edges([[(0, 1)], []], labels=["AB", "A"], attributes=[[[0.0], [5.0]], [[2.0]]])
    K = WLCL(1, gamma=0.5, normalize=False).fit_transform(graphs)
    np.testing.assert_allclose(K, [[4.0, np.exp(-2.0)], [np.exp(-2.0), 2.0]], rtol=1e-14)


# -------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("iterations", [0, 1, 2, 4])
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_wl_matches_the_oracle(collection, iterations):
    expected = naive_wl.wl_kernel(collection, collection, iterations)
    assert (WL(iterations, normalize=False).fit_transform(collection.pack()).tolist() if expected else []) == expected
    assert_normalized(WL(iterations).fit_transform(collection.pack()), expected)


@pytest.mark.parametrize("iterations", [0, 1, 3])
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_wlcl_matches_the_oracle(collection, iterations):
    expected = naive_wl.wlcl_kernel(collection, collection, naive.rbf(0.4), iterations)
    kernel = WLCL(iterations, gamma=0.4, normalize=False)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)
    assert_normalized(WLCL(iterations, gamma=0.4).fit_transform(collection.pack()), expected)


@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_wlcl_with_gamma_0_equals_wl(collection):
    K = WLCL(3, gamma=0.0, normalize=False).fit_transform(collection.pack())
    assert_same_gram(K, WL(3, normalize=False).fit_transform(collection.pack()))


@pytest.mark.parametrize("collection", WITH_EDGE_LABELS.values(), ids=WITH_EDGE_LABELS)
def test_edge_labels_match_the_oracle(collection):
    options = {"use_edge_labels": True, "normalize": False}
    expected = naive_wl.wl_kernel(collection, collection, 2, use_edge_labels=True)
    assert WL(2, **options).fit_transform(collection.pack()).tolist() == expected
    expected = naive_wl.wlcl_kernel(collection, collection, naive.rbf(0.4), 2, use_edge_labels=True)
    assert_same_gram(WLCL(2, gamma=0.4, **options).fit_transform(collection.pack()), expected)


def test_edge_labels_matter():
    graphs = COLLECTIONS["edge_labels"].pack()
    plain, labeled = (WL(2, use_edge_labels=use).fit_transform(graphs) for use in (False, True))
    assert np.abs(plain - labeled).max() > 0.01


def test_edge_labels_count_in_every_iteration():
    """All colors are equal after one iteration; the second one tells all but the last two nodes apart, and the first only by its edges."""
    edges = [(0, 1), (1, 3), (1, 5), (0, 2), (2, 4), (2, 6)]
    labels = ["L", "C", "C", "L", "L", "N", "O"]
    graphs = Graphs.from_edges([edges] * 2, labels=[labels] * 2, edge_labels=[[1, 2, 3, 2, 1, 3], [2, 1, 3, 1, 2, 3]])
    grid = {"n_iterations": [1, 2]}
    (_, first), (_, second) = WL(use_edge_labels=True, normalize=False).gram_grid(graphs, grid)
    assert first[0, 1] == first[0, 0]
    assert second[0, 1] == first[0, 1] + 2


@pytest.mark.parametrize("make", [WL, WLCL])
def test_missing_edge_labels_raise(make):
    with pytest.raises(InvalidGraphError, match="no edge labels"):
        make(use_edge_labels=True).fit(EXAMPLES)


@pytest.mark.parametrize("node_kernel", ["linear", "laplacian", "poly", lambda X, Y: X @ Y.T + 1.0])
def test_node_kernels_match_the_oracle(node_kernel):
    literal = {"linear": naive.linear, "laplacian": naive.laplacian(0.6), "poly": naive.poly(0.6)}
    literal = literal[node_kernel] if isinstance(node_kernel, str) else (lambda x, y: naive.linear(x, y) + 1.0)
    collection = COLLECTIONS["components"]
    expected = naive_wl.wlcl_kernel(collection, collection, literal, 2)
    kernel = WLCL(2, node_kernel=node_kernel, gamma=0.6, normalize=False)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)


@SEARCH
@given(collections(), st.integers(0, 3), OPTIONS)
def test_wl_matches_the_oracle_on_any_collection(collection, iterations, options):
    options["use_edge_labels"] = collection.edge_labels is not None
    expected = naive_wl.wl_kernel(collection, collection, iterations, **options)
    K = WL(iterations, normalize=False, **options).fit_transform(collection.pack())
    np.testing.assert_array_equal(K, np.reshape(expected, K.shape))


@SEARCH
@given(collections(scale="plain"), st.integers(0, 3), OPTIONS, st.sampled_from([0.0, 1e-3, 0.5, 20.0]))
def test_wlcl_matches_the_oracle_on_any_collection(collection, iterations, options, gamma):
    options["use_edge_labels"] = collection.edge_labels is not None
    expected = naive_wl.wlcl_kernel(collection, collection, naive.rbf(gamma), iterations, **options)
    kernel = WLCL(iterations, gamma=gamma, normalize=False, **options)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)


@SEARCH
@given(in_two_parts(scale="plain"), st.integers(0, 2))
def test_new_graphs_match_the_oracle(parts, iterations):
    """Labels and colors that only one part has do not contribute, except to the norm of its own graphs."""
    collection, is_first = parts
    fitted = collection.take([i for i, first in enumerate(is_first) if first])
    new = collection.take([i for i, first in enumerate(is_first) if not first])
    for make, oracle in (
        (WL, lambda a, b: naive_wl.wl_kernel(a, b, iterations)),
        (
            lambda h, **options: WLCL(h, gamma=0.4, **options),
            lambda a, b: naive_wl.wlcl_kernel(a, b, naive.rbf(0.4), iterations),
        ),
    ):
        expected, own, own_new = oracle(new, fitted), np.diag(oracle(fitted, fitted)), np.diag(oracle(new, new))
        own, own_new = own.reshape(len(fitted)), own_new.reshape(len(new))
        K = make(iterations, normalize=False).fit(fitted.pack()).transform(new.pack())
        assert_same_gram(K, expected, own_new, own)
        K = make(iterations).fit(fitted.pack()).transform(new.pack())
        np.testing.assert_allclose(K, np.reshape(naive.normalized(expected, own_new, own), K.shape), rtol=0, atol=1e-10)


@SEARCH
@given(with_node_order(), st.integers(0, 3))
def test_colors_do_not_depend_on_node_order(ordered, iterations):
    collection, places = ordered
    both = [WL(iterations).fit_transform(c.pack()) for c in (collection, collection.renumbered(places))]
    np.testing.assert_array_equal(*both)


def test_colors_do_not_depend_on_the_collection():
    graphs = COLLECTIONS["edge_labels"].pack()
    together = wl_colors(graphs, 3)
    alone = np.concatenate([wl_colors(graph, 3) for graph in graphs], axis=1)
    np.testing.assert_array_equal(together, alone)


# -------------------------------------------------------------------- grids


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("make", [WL, WLCL])
@pytest.mark.parametrize("wanted", [[0, 1, 2, 3], [3, 0, 0, 2], [2], np.array([4])], ids=str)
def test_grid_has_all_its_gram_matrices(make, normalize, wanted):
    graphs = COLLECTIONS["edge_labels"].pack()
    grid = gram_array(make(normalize=normalize), graphs, n_iterations=wanted)
    assert grid.shape == (len(wanted), len(graphs), len(graphs))
    for K, iterations in zip(grid, wanted, strict=True):
        expected = make(int(iterations), normalize=normalize).fit_transform(graphs)
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("make", [WL, WLCL])
@pytest.mark.parametrize("collection", ["empty", "only_empty_graphs", "one_node"])
def test_grids_on_nearly_empty_collections(make, collection):
    graphs = COLLECTIONS[collection].pack()
    grid = gram_array(make(), graphs, n_iterations=[0, 2])
    np.testing.assert_allclose(grid, [make(h).fit_transform(graphs) for h in (0, 2)], rtol=1e-15)


@pytest.mark.parametrize("make", [WL, WLCL])
@pytest.mark.parametrize("wanted", [[], [-1], [1.5], ["2"]], ids=str)
def test_grid_requires_non_negative_integers(make, wanted):
    with pytest.raises(ValueError, match="n_iterations"):
        gram_array(make(), EXAMPLES, n_iterations=wanted)


@pytest.mark.parametrize("make", [WL, WLCL])
@pytest.mark.parametrize(
    "parameter", [{"n_iterations": -1}, {"n_iterations": 1.0}, {"missing_labels": "none"}], ids=str
)
def test_invalid_parameters_raise(make, parameter):
    for use in (lambda kernel: kernel.fit(EXAMPLES), lambda kernel: gram_array(kernel, EXAMPLES, n_iterations=[1])):
        with pytest.raises(ValueError, match=f"{next(iter(parameter))} of {make.__name__} must be"):
            use(make(**parameter))


# -------------------------------------------------------------------- features


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_features_reproduce_the_kernel(collection, normalize):
    graphs = collection.pack()
    kernel = WL(2, normalize=normalize).fit(graphs)
    Z = feature_rows(kernel, graphs)
    assert Z.shape == (len(graphs), len(feature_names(kernel)))
    np.testing.assert_allclose((Z @ Z.T).toarray(), kernel.transform(graphs), rtol=1e-12, atol=1e-14)


def test_features_of_new_graphs_reproduce_the_kernel():
    graphs = COLLECTIONS["edge_labels"].pack()
    kernel = WL(2).fit(graphs[:6])
    new = feature_rows(kernel, graphs[6:])
    np.testing.assert_allclose(
        (new @ feature_rows(kernel, graphs[:6]).T).toarray(), kernel.transform(graphs[6:]), atol=1e-14
    )
    assert (new.multiply(new).sum(axis=1) < 1 - 1e-3).any()  # unseen colors


def test_names_of_colors():
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]], labels=["CNO"], edge_labels=[[1, 2]])
    kernel = WL(2).fit(graphs)
    words = set(zip(kernel._fitted_features.iterations, feature_names(kernel), strict=True))
    assert words == {
        *((0, word) for word in ("C", "N", "O")),
        *((1, word) for word in ("C(N)", "N(C,O)", "O(N)")),
        *((2, word) for word in ("C(N(C,O))", "N(C(N),O(N))", "O(N(C,O))")),
    }
    kernel = WL(1, use_edge_labels=True).fit(graphs)
    assert "N(1:C,2:O)" in feature_names(kernel)


@SEARCH
@given(collections(min_graphs=1, labeled=True, edge_labels=False), st.integers(0, 2))
def test_different_colors_have_different_names(collection, iterations):
    names = feature_names(WL(iterations).fit(collection.pack()))
    assert len(set(names)) == len(names)


def test_ambiguous_labels_are_quoted():
    labels = [["C,N", 1, "1", "C(N)"], ["", "C", "N", "a:b"]]
    graphs = Graphs.from_edges([[(0, 1), (2, 3)], []], labels=labels)
    names = feature_names(WL(1).fit(graphs))
    assert len(set(names)) == len(names)
    assert {'"C,N"', "1", '"1"', '"C(N)"', '""', "C", '1("C,N")', "C()"} <= set(names)


# -------------------------------------------------------------------- real data


def as_grakel(graphs):
    arcs = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)
    parts = []
    for g in range(len(graphs)):
        first, last = graphs.offsets[g], graphs.offsets[g + 1]
        span = slice(graphs.indptr[first], graphs.indptr[last])
        edges = set(zip((arcs[span] - first).tolist(), (graphs.indices[span] - first).tolist(), strict=True))
        parts.append([edges, dict(enumerate(graphs.labels[first:last].tolist()))])
    return parts


@pytest.mark.parametrize("name", ["MUTAG", "ENZYMES", "PROTEINS"])
def test_wl_matches_grakel(name, data_dir):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grakel = pytest.importorskip("grakel")
    graphs = load_tu(name, data_dir=data_dir)[0][::7]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = grakel.WeisfeilerLehman(n_iter=3).fit_transform(as_grakel(graphs))
    np.testing.assert_array_equal(WL(3, normalize=False).fit_transform(graphs), expected)
    np.testing.assert_array_equal(gram_array(WL(normalize=False), graphs, n_iterations=[1, 3])[1], expected)


def test_n_jobs_changes_no_bit(data_dir):
    graphs = load_tu("ENZYMES", data_dir=data_dir)[0][:80]
    for make in (WL, WLCL):
        np.testing.assert_array_equal(make(n_jobs=1).fit_transform(graphs), make(n_jobs=3).fit_transform(graphs))


@pytest.mark.parametrize("kernel", [WL(), WLOA(), ODDST(), NSPDK()], ids=lambda kernel: type(kernel).__name__)
def test_kernels_that_ignore_vectors_accept_graphs_with_and_without_them(kernel):
    edges, labels = [[(0, 1), (1, 2)], [(0, 1)]], [["C", "O", "C"], ["C", "O"]]
    bare = Graphs.from_edges(edges, labels=labels)
    full = Graphs.from_edges(edges, labels=labels, attributes=[[[1.0], [2.0], [3.0]], [[1.0], [2.0]]])
    for fitted, new in ((bare, full), (full, bare)):
        np.testing.assert_array_equal(kernel.fit(fitted).transform(new), kernel.transform(fitted))
