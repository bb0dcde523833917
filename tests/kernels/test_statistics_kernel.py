"""Tests of StatisticsKernel: a naive computation, new graphs, columns, sums, pipelines, models and files."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import rankdata
from sklearn.pipeline import make_pipeline

from strategies import collections, with_node_order
from treegram import (
    WL,
    Graphs,
    GraphStatistics,
    GraphSVC,
    KernelSum,
    ScaleAttributes,
    StatisticsKernel,
    load_digits_graphs,
    load_model,
    save_model,
)
from treegram.exceptions import InvalidGraphError
from treegram.kernels import statistics_kernel
from treegram.kernels.registry import KERNELS
from zoo import COLLECTIONS

MIXED = COLLECTIONS["edge_labels"]


def expected_gram(graphs, width=1.0):
    """Compute ranks by scipy, distances and their mean pair by pair."""
    table = GraphStatistics().fit_transform(graphs)[graphs.sizes > 0]
    peaks = np.abs(table).max(axis=0, initial=0.0)
    rounded = np.round(table / np.where(peaks > 0, peaks, 1.0), 10)
    ranks = np.stack([rankdata(column) / max(len(column), 1) for column in rounded.T], axis=1)
    pairs = np.array([[sum(abs(a - b)) for b in ranks] for a in ranks])
    K = np.zeros((len(graphs), len(graphs)))
    filled = np.flatnonzero(graphs.sizes)
    if len(filled):
        K[np.ix_(filled, filled)] = np.exp(-pairs / (width * pairs.mean())) if pairs.any() else 1.0
    return K


@pytest.mark.parametrize("name", COLLECTIONS)
def test_matches_its_formula_on_hand_drawn_graphs(name):
    graphs = COLLECTIONS[name].pack()
    np.testing.assert_allclose(StatisticsKernel().fit_transform(graphs), expected_gram(graphs), atol=1e-12)
    narrow = StatisticsKernel(width=0.5).fit_transform(graphs)
    np.testing.assert_allclose(narrow, expected_gram(graphs, 0.5), atol=1e-12)


@settings(deadline=None)
@given(collections())
def test_matches_its_formula_on_generated_graphs(collection):
    graphs = collection.pack()
    np.testing.assert_allclose(StatisticsKernel().fit_transform(graphs), expected_gram(graphs), atol=1e-12)


@settings(deadline=None)
@given(with_node_order())
def test_node_order_changes_no_bit(drawn):
    collection, places = drawn
    K = StatisticsKernel().fit_transform(collection.pack())
    np.testing.assert_array_equal(StatisticsKernel().fit_transform(collection.renumbered(places).pack()), K)


@settings(deadline=None)
@given(collections(min_graphs=1))
def test_transform_has_the_rows_of_fit_transform(collection):
    graphs = collection.pack()
    kernel = StatisticsKernel()
    K = kernel.fit_transform(graphs)
    np.testing.assert_array_equal(kernel.transform(graphs), K)
    for i in range(len(graphs)):
        np.testing.assert_array_equal(kernel.transform(collection.take([i]).pack())[0], K[i])


def paths(*sizes):
    return Graphs.from_edges([[(i, i + 1) for i in range(n - 1)] for n in sizes], n_nodes=sizes)


def test_ranks_of_new_graphs_are_interpolated():
    kernel = StatisticsKernel().fit(paths(2, 4, 8, 8))
    column = kernel.feature_names_in_.index("n_nodes")
    ranks = kernel._view_graphs(paths(1, 2, 3, 4, 6, 8, 99)).columns[:, column]
    np.testing.assert_allclose(ranks, [0.125, 0.125, 0.25, 0.375, 0.5625, 0.75, 0.75])


def test_values_that_differ_only_by_rounding_share_a_rank():
    values = [[0.1, 0.2, 0.4, 0.5], [0.1, 0.1, 0.5, 0.5], [0.3] * 4, [0.1 * 3] * 4]
    graphs = Graphs.from_edges([[]] * 4, n_nodes=[4] * 4, attributes=[[[x] for x in row] for row in values])
    kernel = StatisticsKernel().fit(graphs)
    column = kernel.feature_names_in_.index("x0_mean")
    assert len(set(GraphStatistics().fit_transform(graphs)[:, column])) > 1
    assert len(set(kernel._fitted.columns[:, column])) == 1


def test_tasks_change_no_bit(monkeypatch):
    graphs, _ = load_digits_graphs()
    expected = StatisticsKernel().fit_transform(graphs[:60])
    monkeypatch.setattr(statistics_kernel, "ROWS_PER_TASK", 7)
    np.testing.assert_array_equal(StatisticsKernel(n_jobs=2).fit_transform(graphs[:60]), expected)


# -------------------------------------------------------------------- columns


@settings(deadline=None)
@given(collections(min_graphs=2))
def test_columns_sum_to_the_decision(collection):
    graphs = collection.pack()
    weights = np.random.default_rng(0).normal(size=(len(graphs) - 1, 2))
    for kernel in (StatisticsKernel(), StatisticsKernel(width=0.7)):
        kernel.fit(graphs[1:])
        values, constant, names = kernel._column_parts(graphs, weights)
        assert values.shape == (len(graphs), len(names), 2)
        np.testing.assert_allclose(values.sum(axis=1) + constant, kernel.transform(graphs) @ weights, atol=1e-10)


def test_equal_columns_contribute_nothing():
    kernel = StatisticsKernel().fit(paths(2, 4, 8))
    values, _, names = kernel._column_parts(paths(4, 5), np.ones((3, 1)))
    assert not values[:, names.index("n_components")].any()
    assert values[0, names.index("n_nodes")] < 0


# -------------------------------------------------------------------- in models, sums, pipelines and files


def test_models_sums_pipelines_and_files_accept_it(tmp_path):
    graphs, y = (found[:60] for found in load_digits_graphs())
    kernel = KernelSum([WL(2), StatisticsKernel()])
    model = GraphSVC(kernel, param_grid={"width": [0.5, 1.0]}, C=[1, 10], cv=3).fit(graphs[:40], y[:40])
    save_model(model, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    np.testing.assert_array_equal(loaded.decision_function(graphs), model.decision_function(graphs))
    scaled = make_pipeline(ScaleAttributes(), StatisticsKernel())
    np.testing.assert_allclose(  # ranks do not change
        scaled.fit_transform(MIXED.pack()), StatisticsKernel().fit_transform(MIXED.pack()), atol=0.05
    )
    assert KERNELS["statistics"] is StatisticsKernel
    assert StatisticsKernel().learns_from_data


def test_nothing_is_reported_as_unused(recwarn):
    StatisticsKernel().fit(MIXED.pack())
    assert not recwarn.list


def test_missing_graph_attributes_raise():
    with pytest.raises(InvalidGraphError, match="needs graphs with graph_attributes"):
        StatisticsKernel("graph_attributes").fit(paths(2, 3))


def with_numbers(values, names=None):
    return paths(*[2] * len(values)).assign(graph_attributes=values, graph_attribute_names=names)


def test_graph_attributes_are_columns_like_others(tmp_path):
    graphs = with_numbers([[1.0, 0.0], [2.0, 0.0], [5.0, 1.0]], ["age", "is_old"])
    kernel = StatisticsKernel("graph_attributes")
    K = kernel.fit_transform(graphs)
    assert kernel.feature_names_in_ == ["age", "is_old"]
    distances = np.array([[0, 1 / 3, 7 / 6], [1 / 3, 0, 5 / 6], [7 / 6, 5 / 6, 0]])
    np.testing.assert_allclose(K, np.exp(-distances / distances.mean()))
    np.testing.assert_array_equal(kernel.transform(graphs[::-1]), K[::-1])
    save_model(kernel, tmp_path / "kernel.tgm")
    np.testing.assert_array_equal(load_model(tmp_path / "kernel.tgm").transform(graphs), K)
    both = StatisticsKernel("both").fit(graphs)
    assert both.feature_names_in_ == [*StatisticsKernel().fit(graphs).feature_names_in_, "age", "is_old"]
    assert StatisticsKernel("graph_attributes").fit(with_numbers([[1.0]])).feature_names_in_ == ["graph_x0"]


def test_graphs_without_nodes_have_graph_attributes():
    graphs = Graphs.from_edges([[], [(0, 1)]], n_nodes=[0, 2], graph_attributes=[[1.0], [2.0]])
    assert StatisticsKernel("graph_attributes").fit_transform(graphs)[0, 1] > 0
    assert StatisticsKernel("both").fit_transform(graphs)[0, 1] == 0


def test_different_number_of_graph_attributes_raises():
    kernel = StatisticsKernel("both").fit(with_numbers([[1.0, 2.0]] * 3))
    with pytest.raises(InvalidGraphError, match=r"new graphs \(X\) have 1 graph attribute, but .* graphs with 2"):
        kernel.transform(with_numbers([[1.0]]))
