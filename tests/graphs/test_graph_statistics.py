"""Tests of GraphStatistics against a naive computation on plain lists; names, pooling, limits, errors."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from strategies import collections, with_node_order
from treegram import Graphs, GraphStatistics
from treegram.exceptions import InvalidGraphError
from treegram.graphs import statistics
from zoo import COLLECTIONS


def summary_of(name, values):
    """Return moments and quantiles as numpy defines them; zeros without values."""
    values = np.array(values, dtype=float)
    if not len(values):
        return dict.fromkeys((f"{name}_{one}" for one in statistics.SUMMARIES), 0.0)
    scale = max(np.abs(values).max(), 1e-300)
    return {
        f"{name}_mean": (values / scale).mean() * scale,
        f"{name}_std": (values / scale).std() * scale,
        f"{name}_min": values.min(),
        f"{name}_q25": np.quantile(values, 0.25),
        f"{name}_median": np.median(values),
        f"{name}_q75": np.quantile(values, 0.75),
        f"{name}_max": values.max(),
    }


def expected_row(collection, i, *, is_mixed, frequent):
    """Return all columns of one graph, by name; ``is_mixed``: nodes of all graphs have several labels."""
    kind = nx.DiGraph if collection.directed else nx.Graph
    arcs = kind()
    arcs.add_nodes_from(range(collection.n_nodes[i]))
    arcs.add_edges_from((a, b) for a, b in collection.edges[i] if a != b)
    graph = nx.Graph(arcs)
    n, m = graph.number_of_nodes(), graph.number_of_edges()
    n_components = nx.number_connected_components(graph) if n else 0
    row = {
        "n_nodes": n,
        "n_edges": m,
        "density": m / (n * (n - 1) / 2) if n > 1 else 0,
        "n_components": n_components,
        "n_cycles": m - n + n_components,
        "transitivity": nx.transitivity(graph),
    }
    lengths = [d for _, found in nx.all_pairs_shortest_path_length(graph) for d in found.values() if d]
    row |= (
        {"distance_mean": np.mean(lengths), "distance_std": np.std(lengths), "distance_max": max(lengths)} if m else {}
    )
    degrees = [d for _, d in graph.degree()]
    row |= summary_of("degree", degrees) | {f"degree={d}": degrees.count(d) / max(n, 1) for d in range(5)}
    if collection.directed:
        row |= summary_of("out_degree", [d for _, d in arcs.out_degree()])
        row |= summary_of("in_degree", [d for _, d in arcs.in_degree()])
    labels = None if collection.labels is None else collection.labels[i]
    vectors = None if collection.attributes is None else np.array(collection.attributes[i], dtype=float)
    if labels is not None:
        row |= {f"label={written(label)}": labels.count(label) / n for label in labels}
    if vectors is not None and n:
        mean = np.array([summary_of("x", column)["x_mean"] for column in vectors.T])
        for j, column in enumerate(vectors.T):
            row |= summary_of(f"x{j}", column)
            row[f"x{j}_edge_difference"] = np.mean([abs(column[a] - column[b]) for a, b in arcs.edges()]) if m else 0
            row[f"x{j}_degree_covariance"] = np.mean((column - mean[j]) * (degrees - np.mean(degrees)))
            for label in frequent:
                own = [x for x, one in zip(column, labels, strict=True) if one == label]
                row[f"x{j}_mean[label={written(label)}]"] = summary_of("x", own)["x_mean"]
    if collection.edge_labels is not None:
        known = {}
        for (a, b), label in zip(collection.edges[i], collection.edge_labels[i], strict=True):
            known[(a, b)] = label
            known.setdefault((b, a), label)
        found = [known[pair] for pair in arcs.edges()]
        row |= {f"edge_label={label}": found.count(label) / len(found) for label in found}
    if labels is not None and is_mixed:
        ends = [[labels[a], labels[b]] for a, b in arcs.edges()]
        ends = ends if collection.directed else [sorted(pair) for pair in ends]
        middles = [[]] * len(ends) if collection.edge_labels is None else [[label] for label in found]
        names = ["-".join(map(written, [a, *e, b])) for (a, b), e in zip(ends, middles, strict=True)]
        row |= {f"edge={name}": names.count(name) / len(names) for name in names}
    return row


def written(value):
    return "-".join(map(written, value)) if isinstance(value, tuple) else str(value)


def assert_table_is_correct(collection):
    transformer = GraphStatistics()
    table = transformer.fit_transform(collection.pack())
    names = list(transformer.get_feature_names_out())
    assert table.shape == (len(collection), len(names))
    assert len(set(names)) == len(names)
    counts = Counter(label for labels in collection.labels or [] for label in labels)
    by_count = sorted(counts, key=lambda label: (-counts[label], label))
    frequent = by_count[:5] if len(counts) > 1 else []
    for i, row in enumerate(table):
        expected = expected_row(collection, i, is_mixed=len(counts) > 1, frequent=frequent)
        assert expected.keys() <= set(names)
        wanted = np.array([expected.get(name, 0.0) for name in names])
        largest = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(row / largest, wanted / largest, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_column_on_hand_drawn_graphs(name):
    assert_table_is_correct(COLLECTIONS[name])


@settings(deadline=None)
@given(collections())
def test_every_column_on_generated_graphs(collection):
    assert_table_is_correct(collection)


@settings(deadline=None)
@given(with_node_order())
def test_node_order_changes_no_bit(drawn):
    collection, places = drawn
    table = GraphStatistics().fit_transform(collection.pack())
    np.testing.assert_array_equal(GraphStatistics().fit_transform(collection.renumbered(places).pack()), table)


@settings(deadline=None)
@given(collections(min_graphs=1))
def test_row_depends_only_on_its_graph_and_the_columns(collection):
    graphs = collection.pack()
    transformer = GraphStatistics().fit(graphs)
    table = transformer.transform(graphs)
    for i in range(len(graphs)):
        np.testing.assert_array_equal(transformer.transform(collection.take([i]).pack())[0], table[i])


def test_edge_attributes_count_each_edge_once():
    edges, lengths = [[(0, 1), (1, 2), (0, 2)], [(0, 1)], []], [[[1.0], [2.0], [6.0]], [[4.0]], []]
    graphs = Graphs.from_edges(edges, n_nodes=[3, 2, 1], edge_attributes=lengths)
    transformer = GraphStatistics().set_output(transform="pandas")
    table = transformer.fit_transform(graphs)
    assert table["edge_x0_mean"].tolist() == [3.0, 4.0, 0.0]
    assert table["edge_x0_median"].tolist() == [2.0, 4.0, 0.0]


def test_equal_values_have_their_exact_mean_and_zero_deviation():
    graphs = Graphs.from_edges([[]] * 40, n_nodes=range(1, 41), attributes=[[[0.1]] * n for n in range(1, 41)])
    table = GraphStatistics().set_output(transform="pandas").fit_transform(graphs)
    assert set(table["x0_mean"]) == {0.1}
    assert set(table["x0_std"]) == {0.0}


# -------------------------------------------------------------------- labels


def test_rare_and_unseen_labels_share_a_column():
    graphs = Graphs.from_edges([[], []], n_nodes=[4, 4], labels=[["a", "a", "b", "c"], ["a", "b", "b", "d"]])
    transformer = GraphStatistics(max_labels=2).fit(graphs)
    names = list(transformer.get_feature_names_out())
    columns = [names.index(name) for name in ("label=a", "label=b", "label=(other)")]
    np.testing.assert_array_equal(transformer.transform(graphs)[:, columns], [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    new = Graphs.from_edges([[]], n_nodes=[2], labels=[["z", "a"]])
    np.testing.assert_array_equal(transformer.transform(new)[:, columns], [[0.5, 0.0, 0.5]])
    assert "label=(other)" not in GraphStatistics().fit(graphs).get_feature_names_out()


def test_forty_thousand_labels_give_fifty_one_columns():
    labels = [[f"word {i}" for i in range(first, first + 100)] for first in range(0, 40_000, 100)]
    transformer = GraphStatistics().fit(Graphs.from_edges([[]] * 400, n_nodes=[100] * 400, labels=labels))
    assert sum(name.startswith("label=") for name in transformer.get_feature_names_out()) == 51


def test_labels_with_the_same_repr_have_different_names():
    graphs = Graphs.from_edges([[]], n_nodes=[2], labels=[[1, "1"]])
    names = list(GraphStatistics().fit(graphs).get_feature_names_out())
    assert names[-2:] == ["label=1", "label='1'"]


# -------------------------------------------------------------------- distances in large graphs


def test_distances_in_large_graphs_are_sampled(monkeypatch):
    rng = np.random.default_rng(0)
    big = [list(map(tuple, rng.integers(0, 300, (900, 2)))) for _ in range(3)]
    graphs = Graphs.from_edges([[(0, 1)], *big, []], n_nodes=[2, 300, 300, 300, 1])
    exact = GraphStatistics().fit_transform(graphs)
    monkeypatch.setattr(statistics, "MAX_SOURCES", 50)
    transformer = GraphStatistics().fit(graphs)
    sampled = transformer.transform(graphs)
    is_distance = np.char.startswith(transformer.get_feature_names_out().astype(str), "distance")
    np.testing.assert_array_equal(sampled[:, ~is_distance], exact[:, ~is_distance])
    np.testing.assert_array_equal(sampled[[0, 4]], exact[[0, 4]])
    np.testing.assert_allclose(sampled[:, is_distance][:, 0], exact[:, is_distance][:, 0], rtol=0.05)
    assert (sampled[1:4, is_distance] != exact[1:4, is_distance]).any()
    assert len(statistics._sources(graphs, statistics.join_directions(graphs))) == 2 + 3 * 50 + 1


def test_splitting_the_work_into_short_calls_changes_nothing(monkeypatch):
    graphs = COLLECTIONS["edge_labels"].pack()
    expected = GraphStatistics().fit_transform(graphs)
    monkeypatch.setattr(statistics, "STEPS_PER_CALL", 7)
    np.testing.assert_array_equal(GraphStatistics().fit_transform(graphs), expected)


# -------------------------------------------------------------------- the transformer


def test_works_in_a_scikit_learn_pipeline():
    graphs = COLLECTIONS["edge_labels"].pack()
    y = [i % 2 for i in range(len(graphs))]
    model = make_pipeline(GraphStatistics(), RandomForestClassifier(10, random_state=0)).fit(list(graphs), y)
    assert model.predict(graphs).shape == (len(graphs),)
    assert model[0].n_attributes_in_ == 2
    assert clone(model[0]).get_params() == {"max_labels": 50}


def test_pandas_output_has_the_column_names():
    transformer = GraphStatistics().set_output(transform="pandas")
    table = transformer.fit_transform(COLLECTIONS["edge_labels"].pack())
    assert list(table.columns) == list(transformer.get_feature_names_out())
    assert table.isna().sum().sum() == 0


def test_different_attributes_than_in_fit_raise():
    transformer = GraphStatistics().fit(COLLECTIONS["edge_labels"].pack())
    with pytest.raises(InvalidGraphError, match=r"nodes of the new graphs .* have 1 attribute, but .* nodes with 2"):
        transformer.transform(COLLECTIONS["one_attribute"].pack())
    assert transformer.transform(COLLECTIONS["one_attribute"].pack()[:0]).shape[0] == 0
    bare = Graphs.from_edges([[]], n_nodes=[0])
    assert transformer.transform(bare).shape[0] == 1


def test_attribute_names_appear_in_column_names():
    names = {"attribute_names": ["charge"], "edge_attribute_names": ["length"]}
    graphs = Graphs.from_edges([[(0, 1)]], attributes=[[[1.0], [3.0]]], edge_attributes=[[[2.5]]], **names)
    table = GraphStatistics().set_output(transform="pandas").fit_transform(graphs)
    assert table.loc[0, ["charge_mean", "charge_edge_difference", "edge_length_max"]].tolist() == [2.0, 2.0, 2.5]
