"""Tests of P2K: worked examples, the naive oracle with the same draws, expected values, and what is learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.base import clone

import naive_matching
from checks import feature_rows, gram_array
from strategies import collections
from treegram import P2K, Graphs
from treegram.kernels.p2k import draw, hash_values, label_directions, propagate, transition
from treegram.pairsum import products
from treegram.structure.hashing import hash_label
from zoo import COLLECTIONS, LAWS_HOLD_ON, collect

SEARCH = settings(max_examples=40, deadline=None)
P2 = {"n_nodes": 2, "edges": [(0, 1)], "labels": ["A", "B"], "attributes": [[0.0], [1.0]]}
P2_FAR = {**P2, "attributes": [[0.0], [2.0]]}

# -------------------------------------------------------------------- worked examples: BASELINES section 10


def test_hashes_of_a_path():
    """P3 with labels A, B, B; r = (1, 0), b = 0, w = 0.5."""
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]])
    one_hot = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    spread = list(propagate(transition(graphs), one_hot, 1))
    np.testing.assert_array_equal(spread[1], [[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]])
    hashes = [hash_values(rows @ [1.0, 0.0], 0.0, 0.5).tolist() for rows in spread]
    assert hashes == [[2, 0, 0], [0, 1, 0]]


def test_expected_value_of_the_worked_example():
    """Each iteration uses new draws, so the mean over many iterations is one over many seeds; all are alike here."""
    alike = 0.279364
    assert naive_matching.collision_probability(1.0, 1.0) == pytest.approx(alike, abs=5e-7)
    n = 20000
    width = 1 / np.std([0.0, 1.0, 0.0, 2.0], ddof=1)  # the example's width of 1, as attributes are scaled
    kernel = P2K(n - 1, mode="hash", attribute_width=width, normalize=False)
    mean = kernel.fit_transform(collect(P2, P2_FAR).pack())[0, 1] / n
    assert mean == pytest.approx(1 + alike, abs=4 * np.sqrt(alike * (1 - alike) / n))


@pytest.mark.parametrize(("distance", "probability"), [(2.0, 0.153110), (0.5, 0.448683), (0.0, 1.0)])
def test_printed_collision_probabilities_are_reproduced(distance, probability):
    assert naive_matching.collision_probability(distance, 1.0) == pytest.approx(probability, abs=5e-7)
    draws = draw(np.random.RandomState(0), 20000, 1)
    here, there = (hash_values(y * draws.directions, draws.offsets, 1.0) for y in (0.7, 0.7 + distance))
    assert (here == there).mean() == pytest.approx(probability, abs=0.012)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hash", "gmm"])
def test_mean_over_seeds_is_the_expected_kernel(mode):
    """All collisions counted with their probabilities, for labels that spread and columns that do or do not."""
    collection = LAWS_HOLD_ON["mixed"].take([1, 3, 6, 5])
    options = {"label_width": 0.7, "attribute_width": 0.5}
    kernels = [P2K(2, mode=mode, normalize=False, n_samples=1000, random_state=seed, **options) for seed in range(300)]
    draws = np.array([kernel.fit_transform(collection.pack()) for kernel in kernels])
    columns = literal_columns(kernels[0], collection, collection)
    if mode == "gmm":  # all vectors are sampled, in an order that does not affect the mean
        assert len(kernels[0].samples_) == sum(collection.n_nodes)
    expected = naive_matching.expected_p2k(collection, iterations=2, columns=columns, spreads=mode == "gmm", **options)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= 5 * error + 1e-9).all()


# -------------------------------------------------------------------- the oracle, with the draws of the fitted kernel


def literal_columns(kernel, fitted, collection):
    """Return the columns of all nodes at iteration 0 by the definition."""
    if collection.attributes is None:
        return [[[0.0]] * n for n in collection.n_nodes]
    means, spread = naive_matching.standardization(fitted)
    scaled = [
        [[(x - m) / s for x, m, s in zip(vector, means, spread, strict=True)] for vector in graph]
        for graph in collection.attributes
    ]
    if kernel.mode == "hash":
        return scaled
    at = [multivariate_normal(y, kernel.covariance_) for y in kernel.samples_]
    return [[[float(normal.pdf(x)) for normal in at] for x in graph] for graph in scaled]


def literal_draws(kernel):
    draws = kernel._draws

    def at(t):
        def coordinate(label):
            hashes = np.array([hash_label(label)], np.uint64)
            return float(label_directions(hashes, draws.label_seeds[t])[0])

        return coordinate, draws.label_offsets[t], draws.directions[t], draws.offsets[t]

    return at


def literal_histograms(kernel, fitted, collection):
    return [
        naive_matching.p2k_histograms(
            collection,
            g,
            iterations=kernel.n_iterations,
            columns=literal_columns(kernel, fitted, collection),
            spreads=kernel.mode == "gmm",
            draws=literal_draws(kernel),
            label_width=kernel.label_width,
            widths=literal_widths(kernel, fitted),
            missing_labels=kernel.missing_labels,
            use_labels=kernel.use_labels,
        )
        for g in range(len(collection))
    ]


def literal_widths(kernel, fitted):
    """Return one width for all columns, or the interquartile range of each over the training nodes."""
    columns = [row for graph in literal_columns(kernel, fitted, fitted) for row in graph]
    if kernel.attribute_width != "scale":
        return [kernel.attribute_width] * len(columns[0])
    ranges = [np.quantile(column, 0.75) - np.quantile(column, 0.25) for column in zip(*columns, strict=True)]
    return [one if one > 0 else 1.0 for one in ranges]


SETTINGS = [
    {"mode": "hash"},
    {"mode": "hash", "label_width": 0.3},
    {"mode": "hash", "attribute_width": 0.1, "missing_labels": "constant"},
    {"mode": "gmm"},
    {"mode": "gmm", "n_samples": 3, "attribute_width": 0.01},
    {"mode": "gmm", "attribute_width": "scale"},
    {"mode": "hash", "attribute_width": "scale", "use_labels": False},
]
ZOO = {key: collection for key, collection in COLLECTIONS.items() if sum(collection.n_nodes)}


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("collection", ZOO.values(), ids=ZOO)
def test_zoo_matches_the_oracle(collection, options):
    kernel = P2K(3, normalize=False, random_state=1, **options)
    K = kernel.fit_transform(collection.pack())
    histograms = literal_histograms(kernel, collection, collection)
    np.testing.assert_array_equal(K, naive_matching.p2k(histograms, histograms))
    np.testing.assert_array_equal(kernel.transform(collection.pack()), K)
    rows = feature_rows(kernel, collection.pack())
    np.testing.assert_array_equal((rows @ rows.T).toarray(), K)


@SEARCH
@given(collections(min_graphs=1, scale="plain"), st.sampled_from(SETTINGS), st.integers(0, 4), st.integers(0, 99))
def test_any_collection_matches_the_oracle(collection, options, iterations, seed):
    kernel = P2K(iterations, normalize=False, random_state=seed, **options)
    K = kernel.fit_transform(collection.pack())
    histograms = literal_histograms(kernel, collection, collection) if sum(collection.n_nodes) else []
    expected = naive_matching.p2k(histograms, histograms) if histograms else np.zeros(K.shape)
    np.testing.assert_array_equal(K, expected)


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: "-".join(map(str, options.values())))
def test_new_graphs_match_the_oracle(options):
    """The new graphs have labels that the training graphs do not have, and more distant vectors."""
    collection = COLLECTIONS["edge_labels"]
    fitted, new = collection.take([1, 4, 6]), collection.take([0, 2, 3, 5, 7, 10])
    kernel = P2K(3, normalize=False, **options).fit(fitted.pack())
    K = kernel.transform(new.pack())
    left, right = literal_histograms(kernel, fitted, new), literal_histograms(kernel, fitted, fitted)
    np.testing.assert_array_equal(K, naive_matching.p2k(left, right))
    np.testing.assert_array_equal(
        (feature_rows(kernel, new.pack()) @ feature_rows(kernel, fitted.pack()).T).toarray(), K
    )
    lengths = [np.sqrt(sum(n * n for n in h.values())) for h in left]
    normalized = clone(kernel).set_params(normalize=True).fit(fitted.pack())
    own = np.sqrt(kernel.transform(fitted.pack()).diagonal())
    expected = np.divide(K, np.outer(lengths, own), out=np.zeros_like(K), where=np.outer(lengths, own) > 0)
    np.testing.assert_allclose(normalized.transform(new.pack()), expected, rtol=1e-14, atol=0)
    rows, columns = (feature_rows(normalized, c.pack()).toarray() for c in (new, fitted))
    np.testing.assert_allclose(rows @ columns.T, expected, rtol=1e-13, atol=1e-15)


def test_many_labels_are_handled_sparsely():
    """More labels than are stored as dense rows; the same bins as with few."""
    n = 200
    edges = [[(i, i + 1) for i in range(n - 1)]]
    graphs = Graphs.from_edges(edges, labels=[list(range(n))])
    K = P2K(2, label_width=1e-10, normalize=False).fit_transform(graphs)
    assert K[0, 0] == 3 * n  # no two nodes are equal


# -------------------------------------------------------------------- properties


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: "-".join(map(str, options.values())))
def test_gram_is_positive_semidefinite_and_invariant_to_node_order(options):
    collection = COLLECTIONS["edge_labels"]
    kernel = P2K(**options)
    K = kernel.fit_transform(collection.pack())
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_array_equal(clone(kernel).fit_transform(collection.reversed_nodes().pack()), K)
    order = np.random.default_rng(0).permutation(len(collection))
    np.testing.assert_array_equal(clone(kernel).fit_transform(collection.take(order).pack()), K[np.ix_(order, order)])


@pytest.mark.parametrize("options", [{"mode": "hash"}, {"mode": "gmm", "normalize": False}])
def test_grid_equals_single_computations(options):
    graphs = COLLECTIONS["edge_labels"].pack()
    kernel = P2K(random_state=3, **options)
    grid = gram_array(kernel, graphs, n_iterations=[4, 0, 2])
    for iterations, K in zip([4, 0, 2], grid, strict=True):
        np.testing.assert_allclose(
            K, P2K(iterations, random_state=3, **options).fit_transform(graphs), rtol=1e-15, atol=0
        )
    assert not vars(kernel).keys() - kernel.get_params().keys(), "a grid leaves no trace"
    for iterations in ([], [-1], [1.5]):
        with pytest.raises(ValueError, match="n_iterations"):
            gram_array(kernel, graphs, n_iterations=iterations)


def test_size_and_number_of_tasks_change_no_bit(monkeypatch):
    graphs = COLLECTIONS["edge_labels"].pack()
    K = P2K().fit_transform(graphs)
    monkeypatch.setattr(products, "ENTRIES_PER_TASK", 5)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(P2K(n_jobs=n_jobs).fit_transform(graphs), K)


def test_same_seed_gives_the_same_kernel_and_another_seed_another():
    graphs = COLLECTIONS["edge_labels"].pack()
    K = P2K(random_state=7).fit_transform(graphs)
    np.testing.assert_array_equal(P2K(random_state=7).fit_transform(graphs), K)
    assert np.abs(P2K(random_state=8).fit_transform(graphs) - K).max() > 1e-6
    assert np.isfinite(P2K(random_state=None).fit_transform(graphs)).all()


def test_learned_values_come_from_the_training_graphs():
    collection = COLLECTIONS["edge_labels"]
    fitted = P2K(n_samples=4).fit(collection.take([3, 4]).pack())
    vectors = np.array(collection.attributes[3] + collection.attributes[4])
    np.testing.assert_allclose(fitted.mean_, vectors.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(fitted.scale_, vectors.std(axis=0, ddof=1), rtol=1e-14)
    scaled = (vectors - fitted.mean_) / fitted.scale_
    np.testing.assert_allclose(fitted.covariance_, np.cov(scaled.T) + 0.01 * np.eye(2), rtol=1e-13)
    assert len(fitted.samples_) == 4
    assert all(np.isclose(scaled, sample).all(axis=1).any() for sample in fitted.samples_)
    before = fitted.mean_.copy()
    fitted.transform(collection.pack())
    np.testing.assert_array_equal(fitted.mean_, before)


def test_constant_attributes_are_valid():
    graphs = COLLECTIONS["equal_vectors"].pack()
    for mode in ("hash", "gmm"):
        np.testing.assert_array_equal(
            P2K(mode=mode, normalize=False).fit_transform(graphs) > 0, np.ones((len(graphs),) * 2, bool)
        )


def test_huge_attributes_are_scaled():
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1)]], attributes=[[[0.0], [1e160]], [[5e159], [-1e160]]])
    for mode in ("hash", "gmm"):
        K = P2K(mode=mode).fit_transform(graphs)
        assert np.isfinite(K).all()
        small = Graphs.from_edges([[(0, 1)], [(0, 1)]], attributes=[[[0.0], [1.0]], [[0.5], [-1.0]]])
        np.testing.assert_array_equal(K, P2K(mode=mode).fit_transform(small))


@pytest.mark.parametrize("mode", ["hash", "gmm"])
def test_single_node_graphs_and_graphs_without_edges(mode):
    """A node without edges has zeros after the first step, and then equals any other such node."""
    graphs = Graphs.from_edges(
        [[], [], []], labels=[["A"], ["B"], ["A", "B"]], attributes=[[[0.0]], [[0.0]], [[0.0]] * 2]
    )
    K = P2K(2, mode=mode, normalize=False).fit_transform(graphs)
    q = 1 if mode == "hash" else 4
    np.testing.assert_array_equal(K, q * np.array([[3, 2, 5], [2, 3, 5], [5, 5, 10]]))


def test_densities_of_many_attributes_do_not_overflow():
    """With more attributes than nodes their covariance is nearly singular, and densities overflow."""
    rng = np.random.default_rng(0)
    edges = np.array([[i, i + 1] for i in range(19)])
    graphs = Graphs.from_arrays([0, 20, 40, 60], edges, attributes=rng.normal(size=(60, 1000)))
    K = P2K().fit_transform(graphs)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K.diagonal(), 1.0)
