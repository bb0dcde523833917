"""Tests of attribute transformers: results, invariances, and what they must not change."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import SVC

from strategies import collections, with_node_order
from treegram import ODDCL, ODDST, CentroidDistance, DropAttributes, Graphs, NeighborMeans, ScaleAttributes
from treegram.exceptions import InvalidGraphError, ParameterError
from treegram.graphs import transforms
from zoo import ALL, COLLECTIONS, LAWS_HOLD_ON, NOTHING, ONE, collect

TRANSFORMATIONS = {name: make for name, make in transforms.TRANSFORMATIONS.items() if name != "edges"}
SEARCH = settings(max_examples=25, deadline=None)
TRANSFORMERS = [make() for make in TRANSFORMATIONS.values()] + [NeighborMeans(0.0), NeighborMeans(2)]
NEED_ATTRIBUTES = [one for one in TRANSFORMERS if not isinstance(one, DropAttributes)]
MIXED = LAWS_HOLD_ON["mixed"].pack()


def every(transformers):
    return pytest.mark.parametrize("transformer", transformers, ids=lambda one: repr(one))


def vectors(graphs):
    """Return the attributes, or an array without columns."""
    return np.zeros((graphs.n_nodes, 0)) if graphs.attributes is None else graphs.attributes


def plain(**options):
    """Draw collections whose sums are exact enough for tight tolerances."""
    return collections(scale="plain", **options)


# -------------------------------------------------------------------- all transformers


@every(TRANSFORMERS)
@given(collection=collections(dimension=2))
@SEARCH
def test_only_attributes_change_and_they_are_finite(transformer, collection):
    graphs = collection.pack()
    changed = clone(transformer).fit_transform(graphs)
    assert graphs == collection.pack()
    assert np.isfinite(vectors(changed)).all()
    assert len(vectors(changed)) == graphs.n_nodes
    assert changed.assign(attributes=None) == graphs.assign(attributes=None)
    for field in fields(changed):
        value = getattr(changed, field.name)
        assert not isinstance(value, np.ndarray) or not value.flags.writeable


@every(TRANSFORMERS)
@given(drawn=with_node_order(dimension=2, scale="plain"))
@SEARCH
def test_node_order_permutes_the_attributes(transformer, drawn):
    collection, places = drawn
    graphs, renumbered = collection.pack(), collection.renumbered(places).pack()
    here, there = (vectors(clone(transformer).fit_transform(one)) for one in (graphs, renumbered))
    flat = [start + place for start, graph in zip(graphs.offsets, places, strict=False) for place in graph]
    np.testing.assert_allclose(there[flat], here, rtol=1e-12, atol=1e-12)


@every(TRANSFORMERS)
@given(collection=plain(dimension=2, min_graphs=1), data=st.data())
@SEARCH
def test_transform_of_parts_equals_parts_of_fit_transform(transformer, collection, data):
    graphs = collection.pack()
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1))
    fitted = clone(transformer).fit(graphs)
    whole = clone(transformer).fit_transform(graphs)
    np.testing.assert_allclose(
        vectors(fitted.transform(graphs[chosen])), vectors(whole[chosen]), rtol=1e-15, atol=1e-15
    )


@every(TRANSFORMERS)
def test_transformer_can_be_cloned_and_pickled(transformer):
    fitted = clone(transformer).fit(MIXED)
    assert clone(fitted).get_params() == transformer.get_params()
    assert pickle.loads(pickle.dumps(fitted)).transform(MIXED) == fitted.transform(MIXED)
    assert fitted.transform(list(MIXED)) == fitted.transform(MIXED)


@every(TRANSFORMERS)
def test_only_transformers_that_learn_need_fit(transformer):
    unfitted = clone(transformer)
    if transformer.learns_from_data:
        with pytest.raises(NotFittedError, match=type(transformer).__name__):
            unfitted.transform(MIXED)
    else:
        assert unfitted.transform(MIXED) == clone(transformer).fit(MIXED[:1]).transform(MIXED)
    assert transformer.learns_from_data is isinstance(transformer, ScaleAttributes)
    assert transformer.__sklearn_tags__().requires_fit is transformer.learns_from_data


@every(TRANSFORMERS)
@pytest.mark.parametrize("name", ["empty", "no_node", "only_empty_graphs", "one_node"])
def test_collections_with_few_or_no_nodes_are_valid(transformer, name):
    graphs = COLLECTIONS[name].pack()
    fitted = clone(transformer).fit(graphs)
    assert len(fitted.transform(graphs)) == len(graphs)
    assert np.isfinite(vectors(fitted.transform(MIXED))).all()
    assert clone(transformer).fit(MIXED).transform(graphs).n_nodes == graphs.n_nodes
    assert len(make_pipeline(clone(transformer), ODDCL()).fit(MIXED).transform(graphs)) == len(graphs)


@every(NEED_ATTRIBUTES)
def test_graphs_without_attributes_raise(transformer):
    bare = LAWS_HOLD_ON["no_attributes"].pack()
    with pytest.raises(InvalidGraphError, match=rf"{type(transformer).__name__} changes node attributes.*have none"):
        clone(transformer).fit_transform(bare)
    with pytest.raises(InvalidGraphError, match="the graphs have none"):
        clone(transformer).fit(MIXED).transform(bare)


@pytest.mark.parametrize(
    "bad",
    [
        ScaleAttributes("minmax"),
        NeighborMeans(-1),
        NeighborMeans(np.nan),
        NeighborMeans(None),
    ],
    ids=repr,
)
def test_invalid_parameter_raises(bad):
    name = next(iter(bad.get_params()))
    for use in (bad.fit, bad.fit_transform):
        with pytest.raises(ParameterError, match=f"{name} of {type(bad).__name__} must be"):
            use(MIXED)


@every([CentroidDistance(), NeighborMeans(2), ScaleAttributes()])
def test_overflow_raises_and_names_the_node(transformer):
    """Differences and multiples of numbers near the largest double are infinite and must not become NaN."""
    small = Graphs.from_edges([[(0, 1), (1, 2)]], attributes=[[[0.0], [1.0], [1.0]]])
    large = Graphs.from_edges([[(0, 1), (1, 2)]], attributes=[[[-1.7e308], [1.7e308], [1.7e308]]])
    fitted = clone(transformer).fit(small)
    with pytest.raises(
        InvalidGraphError, match=rf"^Graph 1: {type(transformer).__name__} gives its node 0 .*not finite"
    ):
        fitted.transform(small + large)


def test_targets_are_kept():
    graphs = Graphs.from_edges([[(0, 1)], []], attributes=[[[0.0], [1.0]], [[2.0]]], targets=[1, 0])
    for transformer in TRANSFORMERS:
        np.testing.assert_array_equal(clone(transformer).fit_transform(graphs).targets, [1, 0])


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_cross_validation_fits_on_the_training_graphs(name):
    """In each fold the pipeline equals a manual fit without the test graphs."""
    graphs = Graphs.concatenate([MIXED, MIXED])
    y = np.arange(len(graphs)) % 2
    folds = StratifiedKFold(3)
    model = make_pipeline(TRANSFORMATIONS[name](), ODDCL(1), SVC(kernel="precomputed", C=10))
    expected = []
    for train, test in folds.split(y, y):
        transformer, kernel = TRANSFORMATIONS[name]().fit(graphs[train]), ODDCL(1)
        K = kernel.fit_transform(transformer.transform(graphs[train]))
        svc = SVC(kernel="precomputed", C=10).fit(K, y[train])
        expected.append(svc.score(kernel.transform(transformer.transform(graphs[test])), y[test]))
    np.testing.assert_array_equal(cross_val_score(model, graphs, y, cv=folds), expected)


# -------------------------------------------------------------------- ScaleAttributes


@pytest.mark.parametrize(("method", "scaler"), [("standard", StandardScaler()), ("robust", RobustScaler())])
def test_scaling_matches_scikit_learn(method, scaler):
    rng = np.random.default_rng(0)
    graphs = Graphs.from_arrays([0, 7, 40], np.empty((0, 2), int), attributes=rng.normal(3, [1, 50, 1e-4], (40, 3)))
    ours = ScaleAttributes(method).fit(graphs[:1])
    scaler.fit(graphs[:1].attributes)
    np.testing.assert_allclose(ours.transform(graphs).attributes, scaler.transform(graphs.attributes), rtol=1e-9)
    np.testing.assert_allclose(ours.scale_, scaler.scale_, rtol=1e-12)
    assert ours.n_attributes_in_ == 3


@pytest.mark.parametrize("method", ["standard", "robust"])
@given(collection=plain(min_graphs=1, dimension=2), factor=st.sampled_from([1e-200, 0.1, 7.0, 1e150]))
@SEARCH
def test_units_of_attributes_do_not_matter(method, collection, factor):
    graphs = collection.pack()
    assume(graphs.n_nodes and (np.ptp(graphs.attributes, axis=0) > 0).all())
    other = replace(graphs, attributes=graphs.attributes * factor)
    here, there = (ScaleAttributes(method).fit_transform(one).attributes for one in (graphs, other))
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


def test_single_outlier_does_not_change_the_robust_scale():
    values = np.linspace(-1, 1, 101)[:, None]
    kinds = [np.append(values, [[outlier]], axis=0) for outlier in (2.0, 1e9)]
    scaled = [
        ScaleAttributes("robust").fit_transform(Graphs.from_arrays([0, 102], np.empty((0, 2), int), attributes=kind))
        for kind in kinds
    ]
    np.testing.assert_array_equal(scaled[0].attributes[:-1], scaled[1].attributes[:-1])


def test_robust_scale_falls_back_to_the_standard_deviation_then_to_one():
    rare, constant = np.append(np.zeros(9), 30.0), np.full(10, 0.1)
    attributes = np.stack([rare, constant], axis=1)
    graphs = Graphs.from_arrays([0, 10], np.empty((0, 2), int), attributes=attributes)
    robust, standard = (ScaleAttributes(method).fit(graphs) for method in ("robust", "standard"))
    np.testing.assert_allclose(robust.scale_, [rare.std(), 1.0])
    np.testing.assert_allclose(standard.scale_, [rare.std(), 1.0])
    np.testing.assert_array_equal(robust.center_, [0.0, 0.1])
    new = Graphs.from_arrays([0, 1], np.empty((0, 2), int), attributes=[[0.0, 5.1]])
    np.testing.assert_allclose(robust.transform(new).attributes, [[0.0, 5.0]])


def test_tiny_quartile_range_is_not_used_as_scale():
    """Mostly zeros, with the upper quartile just above them: divided by it, all other values would be huge."""
    mostly_zero = np.concatenate([np.zeros(74), [1e-6] * 3, np.linspace(1, 2, 23)])
    wide = np.linspace(0, 1, 100) ** 3
    graphs = Graphs.from_arrays([0, 100], np.empty((0, 2), int), attributes=np.stack([mostly_zero, wide], axis=1))
    scaler = ScaleAttributes("robust").fit(graphs)
    np.testing.assert_allclose(scaler.scale_, [mostly_zero.std(), np.ptp(np.percentile(wide, [25, 75]))])
    assert np.abs(scaler.transform(graphs).attributes).max() < 4


def test_scaling_rejects_another_dimension():
    fitted = ScaleAttributes().fit(MIXED)
    with pytest.raises(InvalidGraphError, match="have 1 attribute, but ScaleAttributes was fitted on nodes with 2"):
        fitted.transform(COLLECTIONS["one_attribute"].pack())


# -------------------------------------------------------------------- CentroidDistance


@given(collection=plain(dimension=3), seed=st.integers(0, 99), shift=st.floats(-1e3, 1e3))
@SEARCH
def test_centroid_distances_are_invariant_under_isometries(collection, seed, shift):
    graphs = collection.pack()
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    moved = replace(graphs, attributes=vectors(graphs).reshape(-1, 3) @ turn + shift * graphs.graph_ids[:, None])
    here, there = (CentroidDistance().fit_transform(one).attributes for one in (graphs, moved))
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


@given(collection=plain(dimension=3))
@SEARCH
def test_centroid_distances_match_a_loop(collection):
    graphs = collection.pack()
    expected = [
        np.linalg.norm(np.array(vector) - np.mean(graph, axis=0)) for graph in collection.attributes for vector in graph
    ]
    distances = CentroidDistance().fit_transform(graphs).attributes
    np.testing.assert_allclose(distances.reshape(-1), expected, atol=1e-12)


def test_isolated_node_is_its_own_centroid():
    assert not CentroidDistance().fit_transform(collect(NOTHING, ONE, NOTHING, ONE).pack()).attributes.any()


def test_large_coordinates_do_not_overflow():
    graphs = Graphs.from_edges([[(0, 1)]], attributes=[[[3e200, 4e200], [-3e200, -4e200]]])
    np.testing.assert_allclose(CentroidDistance().transform(graphs).attributes, [[5e200], [5e200]], rtol=1e-15)


# -------------------------------------------------------------------- NeighborMeans


@given(collection=plain(dimension=2), weight=st.sampled_from([0.0, 0.5, 2.0]))
@SEARCH
def test_neighbor_means_match_a_loop(collection, weight):
    graphs = collection.pack()
    given_vectors = vectors(graphs)
    expected = []
    for node, vector in enumerate(given_vectors):
        neighbors = given_vectors[graphs.indices[graphs.indptr[node] : graphs.indptr[node + 1]]]
        expected.append([*vector, *(weight * (neighbors.mean(axis=0) if len(neighbors) else vector))])
    actual = NeighborMeans(weight).fit_transform(graphs).attributes
    np.testing.assert_allclose(actual, np.reshape(expected, actual.shape), atol=1e-12)


@given(collection=plain(dimension=2, min_graphs=1), shift=st.sampled_from([-3.0, 0.5, 100.0]))
@SEARCH
def test_distances_with_neighbor_means_do_not_depend_on_the_origin(collection, shift):
    """This is why a node without neighbors gets its own vector, and not zeros."""
    graphs = collection.pack()
    assume(graphs.n_nodes)
    moved = replace(graphs, attributes=graphs.attributes + shift)
    here, there = (NeighborMeans().fit_transform(one).attributes for one in (graphs, moved))
    np.testing.assert_allclose(cdist(there, there), cdist(here, here), atol=1e-9)


# -------------------------------------------------------------------- DropAttributes


def test_without_attributes_every_node_kernel_value_is_1():
    dropped = DropAttributes().fit_transform(MIXED)
    assert dropped.attributes is None
    assert DropAttributes().fit_transform(dropped) == dropped
    bare = ODDCL(2, normalize=False).fit_transform(dropped)
    np.testing.assert_array_equal(bare, ODDCL(2, gamma=0.0, normalize=False).fit_transform(MIXED))
    np.testing.assert_allclose(bare, ODDST(2, normalize=False).fit_transform(MIXED), rtol=1e-14)


def test_names_in_study_files():
    assert list(transforms.TRANSFORMATIONS) == [*TRANSFORMATIONS, "edges"]
    assert list(TRANSFORMATIONS) == ["standard", "robust", "whiten", "centroid", "neighbors", "none"]
    widths = {name: make().fit_transform(collect(*ALL).pack()).n_attributes for name, make in TRANSFORMATIONS.items()}
    assert list(widths.values()) == [2, 2, 2, 1, 4, 0]
    assert all(make() is not make() for make in TRANSFORMATIONS.values())


# -------------------------------------------------------------------- whitening


def test_whitened_attributes_have_unit_covariance_and_the_distances_of_pca():
    from sklearn.decomposition import PCA
    from sklearn.metrics import euclidean_distances

    rng = np.random.default_rng(0)
    raw = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) * [1.0, 1e6, 1e-6] + [5.0, 0.0, 1e-3]
    graphs = Graphs.from_edges([[], []], attributes=[raw[:40], raw[40:]], attribute_names=["x", "y", "z"])
    white = ScaleAttributes("whiten").fit_transform(graphs)
    assert white.attribute_names == ("x", "y", "z")
    np.testing.assert_allclose(np.cov(white.attributes.T, ddof=0), np.eye(3), atol=1e-9)
    expected = PCA(whiten=True).fit_transform((raw - raw.mean(axis=0)) / raw.std(axis=0)) * np.sqrt(60 / 59)
    distances = euclidean_distances(white.attributes)
    np.testing.assert_allclose(distances, euclidean_distances(expected), rtol=1e-7, atol=1e-7)
    mixed = graphs.assign(attributes=raw / raw.std(axis=0) @ rng.normal(size=(3, 3)))  # any linear map
    again = ScaleAttributes("whiten").fit_transform(mixed)
    np.testing.assert_allclose(euclidean_distances(again.attributes), distances, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("columns", "rank"),
    [
        (lambda x: [x, np.ones_like(x)], 1),  # a constant column
        (lambda x: [x, 2 * x + 1], 1),  # a linearly dependent one
        (lambda x: [np.full_like(x, 0.1), np.zeros_like(x)], 0),  # only constant columns
        (lambda x: [x, x**2, 1e-12 * x**3], 3),
        (lambda x: [1e300 * x, 1e-300 * x**2], 2),
    ],
)
def test_whitening_removes_directions_without_variance(columns, rank):
    vectors = np.stack(columns(np.arange(-5.0, 7.0)), axis=1)
    graphs = Graphs.from_edges([[(0, 1)]], n_nodes=[12], attributes=[vectors])
    scaler = ScaleAttributes("whiten").fit(graphs)
    assert np.linalg.matrix_rank(scaler.whitening_) == rank
    white = scaler.transform(graphs).attributes
    assert white.shape == vectors.shape
    np.testing.assert_allclose(np.linalg.eigvalsh(np.cov(white.T, ddof=0))[-rank:] if rank else 1.0, 1.0)


def test_whitening_without_nodes_changes_nothing():
    empty = Graphs.from_edges([], attributes=[])
    assert ScaleAttributes("whiten").fit(empty).transform(empty) == empty
    one = Graphs.from_edges([[]], attributes=[[[1.0, 2.0]]])
    assert ScaleAttributes("whiten").fit_transform(one).attributes.tolist() == [[0.0, 0.0]]
