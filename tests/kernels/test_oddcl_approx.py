"""Tests of ODDCLApprox: exact where documented, unbiased where random, and positive semidefinite."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

import naive
from checks import gram_array
from treegram import ODDCL, Graphs, ODDCLApprox, make_synthetic
from treegram.exceptions import InvalidGraphError
from treegram.pairsum import vectors
from zoo import COLLECTIONS, LAWS_HOLD_ON

MIXED = LAWS_HOLD_ON["mixed"]


def graphs_with(attributes, *, seed=0, n_graphs=60, n_nodes=12):
    """Return random graphs of three labels with the given attributes."""
    random = np.random.default_rng(seed)
    n = n_graphs * n_nodes
    nodes = np.arange(n)
    back = np.minimum(random.integers(1, 4, n), nodes % n_nodes)
    return Graphs.from_arrays(
        np.arange(n_graphs + 1) * n_nodes,
        np.stack([nodes, nodes - back], axis=1),
        labels=random.integers(3, size=n),
        attributes=np.asarray(attributes, dtype=float).reshape(n, -1),
        targets=np.arange(n_graphs) % 2,
    )


def smooth(**options):
    """Return two-dimensional attributes whose kernel has low rank."""
    return graphs_with(np.random.default_rng(1).standard_normal((720, 2)), **options)


def relative(K, expected):
    return np.linalg.norm(K - expected) / np.linalg.norm(expected)


# -------------------------------------------------------------------- few distinct vectors: exact


@pytest.mark.parametrize("options", [{}, {"counting": "visits", "lam": 1.2}, {"counting": "capped", "depth": 1}])
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_few_distinct_vectors_are_exact(collection, options):
    graphs = collection.pack()
    for normalize in (True, False):
        expected = ODDCL(**options, normalize=normalize).fit_transform(graphs)
        kernel = ODDCLApprox(**options, normalize=normalize)
        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        assert (np.abs(kernel.fit_transform(graphs) - expected) <= 1e-12 * scale).all()
        assert (np.abs(kernel.transform(graphs) - expected) <= 1e-12 * scale).all()


def test_sum_equals_that_of_the_paper():
    collection = COLLECTIONS["path"]
    expected = naive.oddcl(collection, collection, naive.rbf(0.5), depth=2, lam=0.7)
    K = ODDCLApprox(depth=2, lam=0.7, normalize=False).fit_transform(collection.pack())
    np.testing.assert_allclose(K, expected, rtol=1e-12)


@pytest.mark.parametrize("node_kernel", ["linear", "laplacian", "poly", lambda X, Y: (X @ Y.T) ** 2])
def test_other_node_kernels(node_kernel):
    graphs = COLLECTIONS["components"].pack()
    expected = ODDCL(node_kernel=node_kernel, normalize=False).fit_transform(graphs)
    for options in ({}, {"method": "nystroem", "n_components": 30}):
        K = ODDCLApprox(node_kernel=node_kernel, normalize=False, random_state=0, **options).fit_transform(graphs)
        np.testing.assert_allclose(K, expected, rtol=1e-9, atol=1e-9)


def test_random_features_require_the_gaussian():
    kernel = ODDCLApprox(method="rff", node_kernel="linear")
    with pytest.raises(ValueError, match="nystroem"):
        kernel.fit(MIXED.pack())


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_without_attributes_every_method_is_exact(method):
    graphs = COLLECTIONS["no_attributes"].pack()
    kernel = ODDCLApprox(method=method, n_components=7)
    np.testing.assert_allclose(kernel.fit_transform(graphs), ODDCL().fit_transform(graphs), atol=1e-12)
    assert kernel.map_.n_components == 1


# -------------------------------------------------------------------- random features: unbiased


@pytest.mark.slow
def test_expected_matrix_equals_the_exact_one():
    graphs = MIXED.take([1, 2, 3, 5, 6, 9]).pack()
    expected = ODDCL(depth=2, lam=0.8, normalize=False).fit_transform(graphs)
    samples = np.array(
        [
            ODDCLApprox(2, lam=0.8, method="rff", n_components=8, normalize=False, random_state=seed).fit_transform(
                graphs
            )
            for seed in range(250)
        ]
    )
    deviation = samples.std(axis=0) / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - expected) <= 5 * deviation + 1e-9 * expected.max()).all()


def test_error_decreases_with_the_number_of_components():
    graphs = smooth()
    expected = ODDCL().fit_transform(graphs)
    errors = [
        np.mean(
            [
                relative(ODDCLApprox(method="rff", n_components=n, random_state=seed).fit_transform(graphs), expected)
                for seed in range(4)
            ]
        )
        for n in (32, 1024)
    ]
    assert errors[1] < 2.5 * errors[0] * 32**-0.5


def test_nystroem_beats_random_features_with_the_same_number_of_components():
    graphs = smooth()
    expected = ODDCL().fit_transform(graphs)
    rff, nystroem = (
        relative(ODDCLApprox(method=method, n_components=48, random_state=0).fit_transform(graphs), expected)
        for method in ("rff", "nystroem")
    )
    assert nystroem < rff / 20


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_matrices_are_symmetric_and_positive_semidefinite(method):
    for normalize in (True, False):
        K = ODDCLApprox(method=method, n_components=4, normalize=normalize, random_state=0).fit_transform(smooth())
        np.testing.assert_allclose(K, K.T, rtol=1e-15, atol=0)
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]
        if normalize:
            np.testing.assert_allclose(K.diagonal(), 1.0, rtol=1e-14)


# -------------------------------------------------------------------- Nystroem


def test_distant_clusters_have_a_low_rank():
    random = np.random.default_rng(0)
    clusters = 1000 * random.integers(20, size=(720, 1)) + 0.1 * random.standard_normal((720, 1))
    graphs = graphs_with(clusters)
    K = ODDCLApprox(method="nystroem", n_components=200).fit_transform(graphs)
    assert relative(K, ODDCL().fit_transform(graphs)) <= 0.01


def test_nystroem_stops_when_complete():
    graphs = graphs_with(np.arange(720) % 20)
    kernel = ODDCLApprox(method="nystroem")
    assert relative(kernel.fit_transform(graphs), ODDCL().fit_transform(graphs)) < 1e-13
    assert kernel.map_.n_components == 20


# -------------------------------------------------------------------- reproducibility


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_same_seed_gives_the_same_bits_for_any_n_jobs(method):
    graphs, new = smooth(), smooth(seed=5)
    kernels = [ODDCLApprox(method=method, n_components=30, random_state=7, n_jobs=n) for n in (None, 1, 2, 4)]
    first, *others = [(kernel.fit_transform(graphs), kernel.transform(new)) for kernel in kernels]
    for other in others:
        np.testing.assert_array_equal(other[0], first[0])
        np.testing.assert_array_equal(other[1], first[1])
    assert not np.allclose(clone(kernels[0]).set_params(random_state=8).fit_transform(graphs), first[0])


def test_batch_size_does_not_change_the_result(monkeypatch):
    graphs, new = smooth(), smooth(seed=5)
    kernel = ODDCLApprox(method="rff", n_components=100, random_state=0)
    K, rows = kernel.fit_transform(graphs), kernel.transform(new)
    monkeypatch.setattr(vectors, "VECTOR_BYTES", 1)
    monkeypatch.setattr(vectors, "PORTION_BYTES", 1 << 12)
    np.testing.assert_allclose(clone(kernel).fit_transform(graphs), K, rtol=1e-12)
    np.testing.assert_allclose(kernel.transform(new), rows, rtol=1e-12)
    monkeypatch.setattr(vectors, "SMALL_PRODUCT", 0)
    np.testing.assert_allclose(clone(kernel).fit_transform(graphs), K, rtol=1e-12)
    monkeypatch.setattr(vectors, "SMALL_PRODUCT", 10**9)
    np.testing.assert_allclose(clone(kernel).fit_transform(graphs), K, rtol=1e-12)


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_transform_uses_the_fitted_map(method):
    graphs = smooth()
    kernel = ODDCLApprox(method=method, n_components=10, random_state=0)
    K = kernel.fit_transform(graphs)
    np.testing.assert_allclose(kernel.transform(graphs), K, rtol=1e-12)
    np.testing.assert_allclose(kernel.transform(graphs[40:]), K[40:], rtol=1e-12)
    Z = kernel.map_(np.asarray(graphs.attributes))
    exact = ODDCL(node_kernel=lambda X, Y: kernel.map_(X) @ kernel.map_(Y).T).fit_transform(graphs)
    np.testing.assert_allclose(K, exact, rtol=1e-9, atol=1e-12)
    assert Z.shape == (graphs.n_nodes, kernel.map_.n_components)


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_node_order_does_not_matter(method):
    kernel = ODDCLApprox(method=method, n_components=20, random_state=0)
    K = kernel.fit_transform(MIXED.pack())
    np.testing.assert_allclose(kernel.transform(MIXED.reversed_nodes().pack()), K, atol=1e-12)
    np.testing.assert_allclose(clone(kernel).fit_transform(MIXED.reversed_nodes().pack()), K, atol=1e-12)


def test_pivots_do_not_depend_on_node_order():
    """Entries used to change by up to 0.9 with 32 components."""
    graphs = smooth()
    order = np.concatenate([g * 12 + np.random.default_rng(g).permutation(12) for g in range(60)])
    sources = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)
    places = np.argsort(order)
    moved = Graphs.from_arrays(
        graphs.offsets,
        places[np.stack([sources, graphs.indices], axis=1)],
        labels=np.asarray(graphs.labels)[order],
        attributes=graphs.attributes[order],
    )
    kernel = ODDCLApprox(method="nystroem", n_components=8, random_state=0)
    K = kernel.fit_transform(graphs)
    np.testing.assert_allclose(clone(kernel).fit_transform(moved), K, atol=1e-9)


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_fitted_kernels_can_be_pickled(method):
    graphs, new = smooth(), smooth(seed=5)
    kernel = ODDCLApprox(method=method, n_components=100, random_state=0).fit(graphs)
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again.transform(new), kernel.transform(new))


# -------------------------------------------------------------------- grids

DEPTHS, LAMS = [0, 2, 1], [0.5, 1.0, 1.2]


@pytest.mark.parametrize("method", ["rff", "nystroem"])
@pytest.mark.parametrize("normalize", [True, False])
def test_grid_equals_single_fits(method, normalize):
    graphs = smooth()
    options = {"method": method, "n_components": 24, "normalize": normalize, "random_state": 0}
    grid = gram_array(ODDCLApprox(**options), graphs, depth=DEPTHS, lam=LAMS)
    assert grid.shape == (3, 3, 60, 60)
    for i, depth in enumerate(DEPTHS):
        for j, lam in enumerate(LAMS):
            np.testing.assert_allclose(
                grid[i, j], ODDCLApprox(depth, lam=lam, **options).fit_transform(graphs), rtol=1e-10
            )


def test_grid_of_few_distinct_vectors_equals_that_of_oddcl():
    expected = gram_array(ODDCL(), MIXED.pack(), depth=DEPTHS, lam=LAMS)
    np.testing.assert_allclose(gram_array(ODDCLApprox(), MIXED.pack(), depth=DEPTHS, lam=LAMS), expected, atol=1e-12)


def test_overflowing_lam_is_rescaled_in_the_grid_and_raises_without_normalization():
    graphs = smooth()
    options = {"method": "rff", "n_components": 8, "random_state": 0}
    grid = gram_array(ODDCLApprox(**options), graphs, depth=[2], lam=[1.0, 1e40])
    np.testing.assert_allclose(grid[0, 1], ODDCLApprox(2, lam=1e40, **options).fit_transform(graphs), rtol=1e-10)
    with pytest.raises(ValueError, match="overflows"):
        gram_array(ODDCLApprox(**options, normalize=False), graphs, depth=[2], lam=[1.0, 1e40])
    with pytest.raises(ValueError, match="overflows"):
        ODDCLApprox(2, lam=1e40, **options, normalize=False).fit(graphs)


# -------------------------------------------------------------------- edge cases and errors


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_empty_collections_give_an_empty_matrix(method):
    kernel = ODDCLApprox(method=method, n_components=64, random_state=0)
    graphs, nothing = smooth()[:4], smooth()[:0]
    assert kernel.fit_transform(nothing).shape == (0, 0)
    assert kernel.transform(graphs).shape == (4, 0)
    assert kernel.fit(graphs).transform(nothing).shape == (0, 4)
    assert gram_array(kernel, nothing, depth=[0, 1], lam=[1.0]).shape == (2, 1, 0, 0)


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_graphs_without_nodes_give_zeros(method):
    collection = COLLECTIONS["isolated_nodes"]
    kernel = ODDCLApprox(method=method, n_components=8, random_state=0)
    K = kernel.fit_transform(collection.pack())
    assert not K[2].any()
    assert K[0, 0] == pytest.approx(1.0)
    assert not kernel.transform(collection.take([2]).pack()).any()


def test_different_dimensions_raise():
    kernel = ODDCLApprox(random_state=0).fit(MIXED.pack())
    with pytest.raises(InvalidGraphError, match="attributes"):
        kernel.transform(COLLECTIONS["one_attribute"].pack())


@pytest.mark.parametrize(
    "options",
    [{"method": "magic"}, {"n_components": 0}, {"random_state": "x"}, {"depth": -1}, {"lam": 0.0}],
)
def test_invalid_parameters_raise(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ODDCLApprox(**options).fit(MIXED.pack())


def test_works_in_a_pipeline():
    graphs, y = make_synthetic(24, n_nodes=12, n_edges=18, random_state=0)
    model = Pipeline([("kernel", ODDCLApprox(random_state=0)), ("svm", SVC(kernel="precomputed"))])
    search = GridSearchCV(model, {"kernel__depth": [0, 1], "svm__C": [1.0, 10.0]}, cv=3).fit(graphs, y)
    assert search.predict(graphs).shape == y.shape


# -------------------------------------------------------------------- real data


@pytest.mark.parametrize(
    ("name", "options", "n_components", "bound"),
    [
        ("SYNTHETICnew", {"method": "nystroem", "n_components": 64}, 64, 1e-6),
        ("PROTEINS", {"method": "nystroem"}, 61, 1e-12),
        ("BZR", {"method": "nystroem", "n_components": 512}, 512, 0.01),
    ],
)
@pytest.mark.slow
def test_gram_errors_on_real_data(name, options, n_components, bound, data_dir):
    from treegram import load_tu

    graphs, _ = load_tu(name, data_dir=data_dir)
    kernel = ODDCLApprox(depth=3, random_state=0, **options)
    assert relative(kernel.fit_transform(graphs), ODDCL(depth=3).fit_transform(graphs)) <= bound
    assert kernel.map_.n_components <= n_components
