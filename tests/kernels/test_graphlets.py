"""Graphlets against all subsets of nodes, taken literally, and against the atlas of small graphs."""

from collections import Counter
from functools import cache
from itertools import combinations, permutations
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from checks import feature_names, feature_rows
from strategies import collections
from treegram import FeatureMap, Graphlets, Graphs, InvalidGraphError, load_tu
from treegram.kernels import graphlets
from zoo import COLLECTIONS


@cache
def canonical(labels, matrix):
    """The smallest way to write a labeled graph down, over all orders of its nodes."""
    orders = permutations(range(len(labels)))
    return min((tuple(labels[i] for i in order), tuple(matrix[i][j] for i in order for j in order)) for order in orders)


def is_connected(nodes, adjacent):
    reached, size = {nodes[0]}, 0
    while len(reached) > size:
        size = len(reached)
        reached |= {v for v in nodes if any(v in adjacent[w] or w in adjacent[v] for w in reached)}
    return size == len(nodes)


def count(collection, g, max_size, *, use_labels=False, use_edge_labels=False, missing_labels="degree"):
    adjacent = naive.neighbors(collection, g)
    labels = naive.node_labels(collection, g, missing_labels) if use_labels else [0] * len(adjacent)
    found = Counter()
    for size in range(1, max_size + 1):
        for nodes in combinations(range(len(adjacent)), size):
            if is_connected(nodes, adjacent):
                bonds = (
                    (repr(adjacent[a].get(b, "-")) if use_edge_labels else b in adjacent[a])
                    for a in nodes
                    for b in nodes
                )
                flat = list(bonds)
                rows = tuple(tuple(flat[i * size : (i + 1) * size]) for i in range(size))
                found[canonical(tuple(repr(labels[v]) for v in nodes), rows)] += 1
    return found


def literal(collection, max_size, **options):
    counts = [count(collection, g, max_size, **options) for g in range(len(collection))]
    values = [[sum(n * other[g] for g, n in own.items()) for other in counts] for own in counts]
    return np.array(values, float).reshape(len(counts), len(counts))


@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_the_zoo_equals_the_oracle(collection):
    K = Graphlets(4, normalize=False).fit_transform(collection.pack())
    np.testing.assert_array_equal(K, literal(collection, 4))


@settings(max_examples=60, deadline=None)
@given(collections(edge_labels=True), st.integers(1, 5), st.booleans(), st.booleans(), st.sampled_from([1, 1 << 20]))
def test_any_collection_equals_the_oracle(collection, max_size, use_labels, use_edge_labels, steps):
    options = {"use_edge_labels": use_edge_labels, "use_labels": use_labels}
    kernel = Graphlets(max_size, normalize=False, **options)
    expected = literal(collection, max_size, **options)
    with mock.patch.object(graphlets, "STEPS_PER_CALL", steps):  # loops stop and go on anywhere
        np.testing.assert_array_equal(kernel.fit(collection.pack()).transform(collection.pack()), expected)
    Z, names = feature_rows(kernel, collection.pack()), feature_names(kernel)
    np.testing.assert_array_equal((Z @ Z.T).toarray(), expected)
    assert len(names) == Z.shape[1]
    rows = kernel._node_features(collection.pack())
    sums = np.zeros(Z.shape)
    np.add.at(sums, collection.pack().graph_ids, rows.aligned(kernel._fitted_features.codes).toarray())
    np.testing.assert_allclose(sums, Z.toarray(), rtol=0, atol=1e-12)


def test_every_connected_graph_of_up_to_five_nodes_has_a_column_and_a_name():
    small = [g for g in nx.graph_atlas_g() if 0 < len(g) <= 5 and nx.is_connected(g)]
    rows = FeatureMap(Graphlets(5, normalize=False)).fit(Graphs.from_networkx(small))
    names = dict(zip(rows.get_feature_names_out(), range(rows.n_features_out_), strict=True))
    assert len(names) == len(small) == 31
    drawn = {
        "path 5": nx.path_graph(5),
        "star 5": nx.star_graph(4),
        "cycle 5": nx.cycle_graph(5),
        "complete 5": nx.complete_graph(5),
        "complete 2,3": nx.Graph([(a, b) for a in (0, 1) for b in (2, 3, 4)]),
        "house": nx.house_graph(),
        "bull": nx.bull_graph(),
        "wheel": nx.wheel_graph(5),
        "complete 4 with tail": nx.lollipop_graph(4, 1),
        "diamond": nx.diamond_graph(),
    }
    Z = rows.transform(Graphs.from_networkx(list(drawn.values()))).toarray()
    for i, name in enumerate(drawn):
        assert Z[i, names[name]] == 1
        assert Z[i, names["edge"]] == drawn[name].number_of_edges()


def test_every_directed_graph_of_up_to_four_nodes_has_a_column():
    """There are 1, 2, 13 and 199 connected ones up to isomorphism (OEIS A003085); the codes of colors tell them apart."""
    pairs = np.array(list(permutations(range(4), 2)))
    graph, pair = np.nonzero(np.arange(1 << 12)[:, None] >> np.arange(12) & 1)
    graphs = Graphs.from_arrays(np.arange(0, 4 * 4096 + 1, 4), pairs[pair] + 4 * graph[:, None], directed=True)
    assert [len(feature_names(Graphlets(size).fit(graphs))) for size in (1, 2, 3, 4)] == [1, 3, 16, 215]


def test_labels_are_in_the_names():
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["C", "N", "C"]], edge_labels=[["-", "="]])
    kernel = Graphlets(3, use_labels=True, use_edge_labels=True).fit(graphs)
    assert set(feature_names(kernel)) >= {"node: C#1", 'path 3: C#1-"-":N#2, N#2-"=":C#3'}


def test_the_forecast_is_exact_for_trees_and_large_counts_are_refused():
    with pytest.raises(
        InvalidGraphError, match=r"Graph 1 has about 1e\+13 connected subgraphs of 5 nodes.*smaller max_size"
    ):
        Graphlets(5).fit(Graphs.from_networkx([nx.path_graph(3), nx.star_graph(4000)]))
    for seed in range(5):
        tree = nx.random_labeled_tree(30, seed=seed)
        graphs = Graphs.from_networkx([tree])
        for size in (3, 4, 5):
            Z = feature_rows(Graphlets(size, normalize=False).fit(graphs), graphs)
            smaller = feature_rows(Graphlets(size - 1, normalize=False).fit(graphs), graphs)
            n_subgraphs = Z.sum() - smaller.sum()
            for limit, refused in ((n_subgraphs + 0.5, False), (n_subgraphs - 0.5, True)):
                with mock.patch.object(graphlets, "MOST_SUBGRAPHS", limit):
                    if refused:
                        with pytest.raises(InvalidGraphError, match="too many"):
                            Graphlets(size).fit(graphs)
                    else:
                        Graphlets(size).fit(graphs)


def test_real_data_equal_formulas(data_dir):
    """Triangles by the trace of the cubed adjacency matrix, paths by degrees."""
    graphs = load_tu("ENZYMES", data_dir=data_dir)[0][:40]
    rows = FeatureMap(Graphlets(3, normalize=False), sparse_output=False).fit(graphs)
    counts = dict(zip(rows.get_feature_names_out(), rows.transform(graphs).T, strict=True))
    for g, graph in enumerate(graphs):
        A = np.zeros((graph.n_nodes, graph.n_nodes))
        A[tuple(graph.edges().T)] = 1
        A = np.maximum(A, A.T)
        n_triangles = np.trace(A @ A @ A) / 6
        assert counts["triangle"][g] == n_triangles
        assert counts["path 3"][g] == (A.sum(0) * (A.sum(0) - 1) / 2).sum() - 3 * n_triangles
