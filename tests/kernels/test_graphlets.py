"""Tests of Graphlets against all subsets of nodes, enumerated naively, and against the atlas of small graphs."""

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
from treegram import FeatureMap, Graphlets, Graphs, load_tu
from treegram.exceptions import InvalidGraphError
from treegram.kernels import graphlets
from zoo import COLLECTIONS


@cache
def canonical(matrix):
    """Return the smallest adjacency code over all orders of the nodes."""
    return min(tuple(matrix[i][j] for i in order for j in order) for order in permutations(range(len(matrix))))


def is_connected(nodes, adjacent):
    reached, size = {nodes[0]}, 0
    while len(reached) > size:
        size = len(reached)
        reached |= {v for v in nodes if any(v in adjacent[w] or w in adjacent[v] for w in reached)}
    return size == len(nodes)


def count(collection, g, max_size):
    adjacent = naive.neighbors(collection, g)
    found = Counter()
    for size in range(1, max_size + 1):
        for nodes in combinations(range(len(adjacent)), size):
            if is_connected(nodes, adjacent):
                rows = tuple(tuple(b in adjacent[a] or a in adjacent[b] for b in nodes) for a in nodes)
                found[canonical(rows)] += 1
    return found


def literal(collection, max_size):
    counts = [count(collection, g, max_size) for g in range(len(collection))]
    values = [[sum(n * other[g] for g, n in own.items()) for other in counts] for own in counts]
    return np.array(values, float).reshape(len(counts), len(counts))


@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_zoo_matches_the_oracle(collection):
    K = Graphlets(4, normalize=False).fit_transform(collection.pack())
    np.testing.assert_array_equal(K, literal(collection, 4))


@settings(max_examples=60, deadline=None)
@given(collections(edge_labels=True), st.integers(1, 5), st.sampled_from([1, 1 << 20]))
def test_any_collection_matches_the_oracle(collection, max_size, n_nodes):
    kernel = Graphlets(max_size, normalize=False)
    expected = literal(collection, max_size)
    with mock.patch.object(graphlets, "NODES_PER_TASK", n_nodes):
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


def test_directions_are_ignored():
    edges = [[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 0), (2, 1)]]
    directed, undirected = (Graphs.from_edges(edges, directed=directed) for directed in (True, False))
    np.testing.assert_array_equal(Graphlets().fit_transform(directed), Graphlets().fit_transform(undirected))


def test_estimated_count_is_exact_for_trees_and_large_counts_raise():
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


def test_real_data_match_closed_formulas(data_dir):
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
