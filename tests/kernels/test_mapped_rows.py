"""Tests of mapped rows of FeatureMap: inner products equal the kernel, exactly or in expectation; linear models can use the rows."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from treegram import GIK, ODDCL, WLCL, FeatureMap, GraphHopper, Graphs, ODDCLApprox, make_synthetic
from treegram.exceptions import InvalidGraphError
from treegram.pairsum import vectors as vector_sums
from zoo import COLLECTIONS, LAWS_HOLD_ON

MIXED = LAWS_HOLD_ON["mixed"]


def stateless(*, depth=3, n_features=128, random_state=3, **options):
    """Return a feature map whose columns do not depend on data."""
    kernel = ODDCLApprox(depth, method="rff", n_components=20, random_state=random_state, **options)
    return FeatureMap(kernel, n_features=n_features, random_state=random_state)


def some_graphs(n_graphs=40, d=2, seed=0, n_nodes=10):
    random = np.random.default_rng(seed)
    nodes = np.arange(n_graphs * n_nodes)
    back = np.minimum(random.integers(1, 4, len(nodes)), nodes % n_nodes)
    y = random.integers(2, size=n_graphs)
    return Graphs.from_arrays(
        np.arange(n_graphs + 1) * n_nodes,
        np.stack([nodes, nodes - back], axis=1),
        labels=random.integers(3, size=len(nodes)),
        attributes=random.standard_normal((len(nodes), d)) + 2.0 * np.repeat(y, n_nodes)[:, None],
        targets=y,
    )


def hashed_products(features, graphs, n_seeds):
    """Return products of rows under many hashes and one map."""
    for seed in range(n_seeds):
        features._seed = seed
        yield products(features.transform(graphs))


def products(left, right=None):
    K = left @ (left if right is None else right).T
    return K.toarray() if sp.issparse(K) else K


# -------------------------------------------------------------------- one column per tree and component


KERNELS = {
    "default": ODDCL(),
    "visits": ODDCL(counting="visits", lam=1.2),
    "labels": ODDCL(0),
    "colors": WLCL(2),
    "colors and edges": WLCL(1, use_edge_labels=True, missing_labels="constant"),
    "patterns": GIK(radius=1),
    "paths": GraphHopper(use_labels=True),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_rows_have_the_exact_products(collection, kernel):
    """With as many components as distinct vectors nothing is approximated."""
    graphs = collection.pack()
    for normalize in (True, False):
        kernel = clone(kernel).set_params(normalize=normalize)
        features = FeatureMap(kernel, n_features=None)
        Z = features.fit_transform(graphs)
        expected = clone(kernel).fit_transform(graphs)
        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        assert (np.abs(products(Z) - expected) <= 1e-12 * scale).all()
        assert Z.shape == (len(collection), features.n_features_out_)
        assert len(features.get_feature_names_out()) == Z.shape[1]


@pytest.mark.parametrize("kernel", [WLCL(2), GIK(radius=1), GraphHopper(), ODDCL(2)], ids=lambda kernel: kernel.name)
def test_hashed_rows_approximate_the_kernel(kernel):
    graphs = some_graphs()
    rows = FeatureMap(kernel, n_features=8192).fit(graphs[:20]).transform(graphs)
    expected = clone(kernel).fit_transform(graphs)
    assert np.abs(rows @ rows.T - expected).max() < 6 / np.sqrt(8192)


def test_explicit_rows_are_sparse_and_ready_for_liblinear():
    Z = FeatureMap(ODDCL(), n_features=None).fit_transform(MIXED.pack())
    assert sp.issparse(Z)
    assert Z.format == "csr"
    assert Z.indices.dtype == np.int32
    assert Z.has_sorted_indices


def test_unseen_trees_have_no_column_but_count_in_the_norm():
    old, new = MIXED.take([1, 2, 3]).pack(), MIXED.take([4, 5, 7]).pack()
    features = FeatureMap(ODDCL(), n_features=None).fit(old)
    Z = features.transform(new)
    assert Z.shape[1] == features.n_features_out_
    assert (np.linalg.norm(Z.toarray(), axis=1) < 0.999).all()
    plain = FeatureMap(ODDCL(normalize=False), n_features=None).fit(old)
    expected = ODDCL(normalize=False).fit(old).transform(new)
    np.testing.assert_allclose(products(plain.transform(new), plain.transform(old)), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["rff", "nystroem"])
def test_explicit_rows_give_the_kernel_of_their_map(method):
    graphs = some_graphs()
    kernel = ODDCLApprox(method=method, n_components=10) if method == "rff" else ODDCL()
    features = FeatureMap(kernel, n_components=10, n_features=None, random_state=0).fit(graphs)
    expected = ODDCL(node_kernel=lambda X, Y: features.map_(X) @ features.map_(Y).T).fit_transform(graphs)
    np.testing.assert_allclose(products(features.transform(graphs)), expected, rtol=1e-9)


# -------------------------------------------------------------------- hashed


@pytest.mark.parametrize(("collection", "n_features"), [("mixed", 4), ("directed", 16)])
@pytest.mark.slow
def test_hashed_rows_are_unbiased(collection, n_features):
    """Also with fewer columns than components, where vectors collide with themselves."""
    graphs = LAWS_HOLD_ON[collection].take([1, 3, 5, 6, 9]).pack()
    expected = ODDCL(depth=2, lam=0.8, normalize=False).fit_transform(graphs)
    features = FeatureMap(ODDCL(2, lam=0.8, normalize=False), n_features=n_features).fit(graphs)
    samples = np.array(list(hashed_products(features, graphs, 400)))
    deviation = samples.std(axis=0) / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - expected) <= 5 * deviation + 1e-9 * expected.max()).all()


@pytest.mark.slow
def test_hashed_random_features_are_unbiased():
    graphs = MIXED.take([1, 3, 5, 6]).pack()
    expected = ODDCL(depth=1, normalize=False).fit_transform(graphs)
    samples = np.array(
        [
            products(
                FeatureMap(
                    ODDCLApprox(1, normalize=False, method="rff", n_components=6, random_state=seed),
                    n_features=32,
                    random_state=seed,
                )
                .fit(graphs[:2])
                .transform(graphs)
            )
            for seed in range(400)
        ]
    )
    deviation = samples.std(axis=0) / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - expected) <= 5 * deviation).all()


@pytest.mark.parametrize("n_features", [64, 1024])
def test_hashing_noise_is_within_its_bound(n_features):
    graphs = some_graphs(12)
    features = FeatureMap(ODDCL(normalize=False), n_components=24, n_features=n_features)
    map_products = products(clone(features).set_params(n_features=None, random_state=0).fit_transform(graphs))
    samples = np.array(list(hashed_products(features.set_params(random_state=0).fit(graphs), graphs, 200)))
    noise = np.sqrt(np.mean((samples - map_products) ** 2, axis=0))
    lengths = np.sqrt(map_products.diagonal())
    assert (noise <= 2 / np.sqrt(n_features) * np.outer(lengths, lengths)).all()


def test_tree_does_not_collide_with_itself():
    """One label and depth 0: all graphs share one tree, and hashing changes no product."""
    graphs = Graphs.from_edges(
        [[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[0.0], [1.0]], [[0.5], [2.0], [3.0]]], labels=[["C"] * 2, ["C"] * 3]
    )
    expected = ODDCL(depth=0).fit_transform(graphs)
    for seed in range(20):
        Z = FeatureMap(ODDCL(0), n_features=8, random_state=seed).fit_transform(graphs)
        np.testing.assert_allclose(products(Z), expected, rtol=1e-12)


def test_error_decreases_with_the_number_of_columns():
    graphs = some_graphs()
    expected = ODDCL().fit_transform(graphs)
    errors = [
        np.mean(
            [
                np.linalg.norm(
                    products(FeatureMap(ODDCL(), n_features=n, random_state=s).fit_transform(graphs)) - expected
                )
                for s in range(3)
            ]
        )
        for n in (64, 4096)
    ]
    assert errors[1] < errors[0] / 4


def test_normalized_rows_have_length_1():
    Z = stateless().fit_transform(MIXED.pack())
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), np.array(MIXED.n_nodes) > 0, rtol=1e-14)


def test_columns_and_signs_are_uniformly_distributed():
    codes = np.arange(40_000, dtype=np.uint64)
    columns, signs, _ = vector_sums.place_trees(codes, 1, 40, 5)
    counts = np.bincount(columns, minlength=40)
    assert columns.min() >= 0
    assert ((counts - 1000) ** 2 / 1000).sum() < 80  # chi-square with 39 degrees of freedom
    assert abs(signs.sum()) < 5 * np.sqrt(len(codes))
    other, _, _ = vector_sums.place_trees(codes, 1, 40, 6)
    assert abs((columns == other).mean() - 1 / 40) < 0.005


# -------------------------------------------------------------------- fitting


def test_columns_of_data_independent_features_do_not_depend_on_the_training_graphs():
    features = stateless()
    graphs = some_graphs()
    Z = features.fit_transform(graphs)
    np.testing.assert_array_equal(clone(features).fit(some_graphs(seed=9)[:3]).transform(graphs), Z)


def test_unfitted_features_raise():
    with pytest.raises(NotFittedError):
        stateless().transform(some_graphs())


def test_parameters_are_checked_in_fit():
    with pytest.raises(ValueError, match="depth"):
        stateless(depth=-1).fit(some_graphs())
    with pytest.raises(ValueError, match="node_kernel"):
        stateless(node_kernel="linear").fit(some_graphs())


# BLAS rounds products of few rows differently from those of many, and Nystroem's inverse root amplifies this: by up to
# 5e-10 on an AMD EPYC with numpy 2.4.6.
@pytest.mark.parametrize(
    ("features", "tolerance"),
    [(stateless(), 1e-13), (FeatureMap(ODDCL()), 1e-8), (FeatureMap(WLCL(), n_features=None), 1e-8)],
    ids=["rff", "hashed", "a column for each"],
)
def test_rows_do_not_depend_on_the_other_graphs_in_transform(features, tolerance):
    graphs = some_graphs()
    features = clone(features).fit(graphs[:20])
    whole = features.transform(graphs)
    parts = [features.transform(graphs[a:b]) for a, b in ((0, 7), (7, 8), (8, 40))]
    joined = sp.vstack(parts).toarray() if sp.issparse(whole) else np.concatenate(parts)
    np.testing.assert_allclose(joined, whole.toarray() if sp.issparse(whole) else whole, rtol=0, atol=tolerance)


def test_without_attributes_one_component_is_exact():
    graphs = COLLECTIONS["no_attributes"].pack()
    features = stateless().fit(graphs)
    assert features.map_.n_components == 1
    K = products(FeatureMap(ODDCL(), n_features=None).fit_transform(graphs))
    np.testing.assert_allclose(K, ODDCL().fit_transform(graphs), atol=1e-12)


# -------------------------------------------------------------------- reproducibility


@pytest.mark.parametrize(
    "features",
    [stateless(), FeatureMap(ODDCL()), FeatureMap(WLCL(), n_features=None)],
    ids=["rff", "hashed", "a column for each"],
)
def test_same_seed_gives_the_same_bits_for_any_n_jobs(features, monkeypatch):
    monkeypatch.setattr(vector_sums, "NODES_PER_TASK", 30)
    graphs = some_graphs()
    first, *others = (clone(features).set_params(kernel__n_jobs=n).fit_transform(graphs) for n in (None, 1, 2, 4))
    for other in others:
        assert (other != first).sum() == 0


def test_other_seeds_give_other_columns():
    graphs = some_graphs()
    first, other = (stateless(random_state=seed).fit_transform(graphs) for seed in (1, 2))
    assert not np.allclose(first, other)


@pytest.mark.parametrize("n_features", [None, 64])
def test_node_order_does_not_matter(n_features):
    features = stateless(n_features=n_features).fit(MIXED.pack())
    rows, reordered = (features.transform(c.pack()) for c in (MIXED, MIXED.reversed_nodes()))
    assert np.abs(rows - reordered).max() < 1e-12


@pytest.mark.parametrize("n_features", [None, 64])
def test_fitted_features_can_be_pickled(n_features):
    graphs = some_graphs()
    features = FeatureMap(ODDCL(), n_features=n_features, random_state=0).fit(graphs[:20])
    again = pickle.loads(pickle.dumps(features))
    assert (again.transform(graphs) != features.transform(graphs)).sum() == 0


# -------------------------------------------------------------------- linear models


@pytest.mark.parametrize("n_features", [None, 256])
@pytest.mark.parametrize(
    "model",
    [LinearSVC(dual=True, max_iter=10_000), Ridge(), SGDClassifier(random_state=0)],
    ids=["svm", "ridge", "sgd"],
)
def test_linear_models_learn_from_the_rows(model, n_features):
    train, test = some_graphs(80), some_graphs(80, seed=1)
    pipeline = make_pipeline(FeatureMap(ODDCL(1), n_features=n_features, random_state=0), clone(model))
    pipeline.fit(train, train.targets)
    right = (pipeline.predict(test) > 0.5) == (test.targets > 0.5)
    assert right.mean() > 0.9


def test_partial_fit_learns_from_chunks():
    train, test = some_graphs(200), some_graphs(80, seed=1)
    features, model = stateless(depth=1).fit(train[:20]), SGDClassifier(random_state=0)
    for first in range(0, 200, 20):
        chunk = train[first : first + 20]
        model.partial_fit(features.transform(chunk), chunk.targets, classes=[0, 1])
    assert model.score(features.transform(test), test.targets) > 0.9


def test_works_in_a_grid_search():
    graphs, y = make_synthetic(24, n_nodes=12, n_edges=18, random_state=0)
    model = make_pipeline(FeatureMap(ODDCL(), n_features=64, random_state=0), LinearSVC(dual=True, max_iter=10_000))
    search = GridSearchCV(model, {"featuremap__kernel__depth": [0, 1]}, cv=3).fit(graphs, y)
    assert search.predict(graphs).shape == y.shape


# -------------------------------------------------------------------- edge cases and errors


@pytest.mark.parametrize("n_features", [None, 64])
def test_empty_collections_give_no_rows_and_empty_graphs_zeros(n_features):
    graphs = COLLECTIONS["isolated_nodes"].pack()
    features = FeatureMap(ODDCL(), n_features=n_features, random_state=0).fit(graphs)
    assert features.transform(graphs[:0]).shape == (0, features.n_features_out_)
    assert abs(features.transform(graphs[2])).sum() == 0
    empty = FeatureMap(ODDCL(), n_features=n_features, random_state=0).fit(graphs[:0])
    assert empty.n_features_out_ == (n_features or 0)
    assert empty.transform(graphs[2]).shape == (1, empty.n_features_out_)
    assert empty.transform(COLLECTIONS["no_attributes"].pack()).shape == (11, empty.n_features_out_)
    with pytest.raises(InvalidGraphError, match="fitted on graphs without nodes"):
        empty.transform(graphs)


def test_incompatible_graphs_raise():
    features = FeatureMap(ODDCL(), random_state=0).fit(MIXED.pack())
    for name, difference in (("one_attribute", "1 attribute"), ("no_labels", "no labels"), ("directed", "directed")):
        with pytest.raises(InvalidGraphError, match=f"new graphs .X. (have|are) {difference}, but ODDCL was fitted on"):
            features.transform(COLLECTIONS[name].pack())


def test_only_the_first_graphs_with_each_label_are_kept():
    graphs = some_graphs()
    kept = FeatureMap(WLCL()).fit(graphs).kernel_.graphs_
    assert len(kept) <= len(graphs.label_values)
    assert set(kept.labels) == set(graphs.labels)
    without = Graphs.from_arrays([0, 2, 3], [(0, 1)], attributes=np.ones((3, 1)))
    assert len(FeatureMap(WLCL()).fit(without).kernel_.graphs_) == 1


def test_gamma_is_learned_from_all_graphs_and_kept_as_a_number():
    graphs = some_graphs()
    features = FeatureMap(ODDCL(1, gamma="scale"), n_features=None, n_components=1000).fit(graphs)
    expected = ODDCL(1, gamma="scale").fit(graphs)
    assert features.kernel_.gamma == expected.gamma_
    Z = features.transform(graphs)
    np.testing.assert_allclose(products(Z), expected.transform(graphs), atol=1e-6)


def test_overflowing_lam_is_rescaled_or_raises():
    graphs = some_graphs()
    expected = ODDCL(2, lam=1e40).fit_transform(graphs)
    Z = FeatureMap(ODDCL(2, lam=1e40), n_features=None, n_components=400, random_state=0)
    np.testing.assert_allclose(products(Z.fit_transform(graphs)), expected, atol=1e-8)
    with pytest.raises(ValueError, match="overflows"):
        FeatureMap(ODDCL(2, lam=1e40, normalize=False)).fit_transform(graphs)


@pytest.mark.parametrize("options", [{"n_features": 0}, {"n_components": 0}])
def test_invalid_parameters_raise(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        FeatureMap(ODDCL(), **options).fit(MIXED.pack())
