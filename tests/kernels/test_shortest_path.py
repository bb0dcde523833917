"""Tests of ShortestPath: worked examples, the naive oracle, GraKeL, and special cases."""

import math
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_paths
from checks import assert_close
from strategies import collections, in_two_parts
from treegram import Graphs, ShortestPath, load_tu
from zoo import COLLECTIONS

SEARCH = settings(max_examples=60, deadline=None)
q = math.exp(-1)

# -------------------------------------------------------------------- worked examples: BASELINES.md, section 10

P2, P3, Q3, K3 = range(4)
EXAMPLES = Graphs.from_edges(
    [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]],
    labels=["AB", "ABA", "AAB", "AAB"],
    attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]], [[0.0], [0.0], [1.0]], [[0.0], [0.0], [1.0]]],
)
VALUES = {  # constant, factor of q, factor of q^2
    (P2, P2): (2, 0, 2),
    (P2, P3): (4, 0, 4),
    (P3, P3): (12, 0, 8),
    (P2, K3): (4, 4, 4),
    (K3, K3): (12, 16, 8),
    (P2, Q3): (2, 4, 2),
    (Q3, Q3): (8, 8, 4),
}
WITH_LABELS = {(P2, P2): 2, (P2, P3): 4, (P3, P3): 12, (P2, K3): 4, (K3, K3): 12, (P3, K3): 8, (P2, Q3): 2, (Q3, Q3): 8}


@pytest.mark.parametrize(("pair", "value"), VALUES.items(), ids=str)
def test_worked_examples(pair, value):
    K = ShortestPath(normalize=False).fit_transform(EXAMPLES)
    assert K[pair] == pytest.approx(value[0] + value[1] * q + value[2] * q * q, rel=1e-14)


@pytest.mark.parametrize(("pair", "value"), WITH_LABELS.items(), ids=str)
def test_worked_examples_with_labels(pair, value):
    K = ShortestPath(normalize=False, use_labels=True).fit_transform(EXAMPLES)
    assert K[pair] == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("c", [2, 3])
def test_worked_example_of_the_brownian_bridge(c):
    K = ShortestPath("brownian", c=c, normalize=False).fit_transform(EXAMPLES)
    assert K[P2, P3] == pytest.approx(c * (4 + 4 * q * q) + (c - 1) * 4 * q, rel=1e-14)


def test_bridge_of_width_1_equals_delta():
    K = ShortestPath(normalize=False).fit_transform(EXAMPLES)
    np.testing.assert_array_equal(ShortestPath("brownian", c=1, normalize=False).fit_transform(EXAMPLES), K)
    half = ShortestPath("brownian", c=0.5, normalize=False).fit_transform(EXAMPLES)
    np.testing.assert_allclose(half, 0.5 * K, rtol=1e-15)


def test_bridge_wider_than_all_distances_compares_only_ends():
    """c - |a - b| is nearly c: all pairs of pairs count, whatever their distances."""
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]])
    K = ShortestPath("brownian", c=1e9, normalize=False).fit_transform(graphs)
    np.testing.assert_allclose(K / 1e9, [[4, 12], [12, 36]], rtol=1e-8)


def test_directed_distances_match_a_hand_calculation():
    """0 -> 1 -> 2: two pairs at distance 1, one at 2, none back; 2 -> 0 closes a cycle with three pairs of each."""
    path, circle = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
    graphs = Graphs.from_edges([path, circle], directed=True)
    assert ShortestPath(normalize=False).fit_transform(graphs).tolist() == [[4 + 1, 6 + 3], [6 + 3, 9 + 9]]


def test_direction_of_a_pair_matters():
    """Also if undirected: both ends are compared in the order of the pair, so that one of the two orders matches."""
    there, back = [[0.0], [50.0]], [[50.0], [0.0]]
    undirected = Graphs.from_edges([[(0, 1)], [(0, 1)]], attributes=[there, back])
    directed = Graphs.from_edges([[(0, 1)], [(0, 1)]], attributes=[there, back], directed=True)
    assert ShortestPath(normalize=False).fit_transform(undirected).tolist() == [[2, 2], [2, 2]]
    assert ShortestPath(normalize=False).fit_transform(directed).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("normalize", [False, True])
def test_graphs_without_paths_give_zeros(normalize):
    """Graphs without nodes, of one node, and without edges: 0 with every graph, including themselves."""
    graphs = Graphs.from_edges([[], [], [], [(0, 1)]], n_nodes=[0, 1, 3, 2], attributes=[[], [0], [0, 0, 0], [0, 0]])
    expected = np.zeros((4, 4))
    expected[3, 3] = 1 if normalize else 4
    kernel = ShortestPath(normalize=normalize)
    np.testing.assert_allclose(kernel.fit_transform(graphs), expected, rtol=1e-15)
    np.testing.assert_allclose(kernel.transform(graphs), expected, rtol=1e-15)


def test_components_are_independent():
    both = Graphs.from_edges([[(0, 1), (1, 2), (3, 4)]], n_nodes=[6])
    apart = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]])
    K = ShortestPath(normalize=False).fit_transform(apart)
    assert ShortestPath(normalize=False).fit_transform(both)[0, 0] == K.sum()


# -------------------------------------------------------------------- the oracle

LENGTHS = {
    "delta": ({}, naive_paths.delta),
    "bridge 2": ({"length_kernel": "brownian"}, naive_paths.brownian(2)),
    "bridge 3.5": ({"length_kernel": "brownian", "c": 3.5}, naive_paths.brownian(3.5)),
}
LABELS = [{}, {"use_labels": True}, {"use_labels": True, "missing_labels": "constant"}]


def default_gamma(collection):
    vectors = [vector for graph in collection.attributes or [] for vector in graph]
    return 1.0 / len(vectors[0]) if vectors else 1.0


def as_gram(values, shape):
    return np.array(values, dtype=float).reshape(shape)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("labels", LABELS[:2], ids=str)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_shortest_path_matches_the_oracle(collection, labels, length):
    options, literal = LENGTHS[length]
    width = default_gamma(collection)
    expected = naive_paths.shortest_path(collection, collection, naive.rbf(width), literal, **labels)
    kernel, graphs = ShortestPath(**options, **labels, normalize=False), collection.pack()
    K = kernel.fit_transform(graphs)
    assert_close(K, as_gram(expected, K.shape))
    assert_close(kernel.transform(graphs), as_gram(expected, K.shape))


NODE_KERNELS = {
    "linear": ("linear", naive.linear),
    "laplacian": ("laplacian", naive.laplacian(0.6)),
    "function": (lambda X, Y: X @ Y.T + 1.0, lambda x, y: naive.linear(x, y) + 1.0),
}


@pytest.mark.parametrize("use_labels", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("collection", ["isolated_nodes", "components", "equal_vectors", "diamonds"])
@pytest.mark.parametrize("node_kernel", NODE_KERNELS)
def test_node_kernels_match_the_oracle(node_kernel, collection, length, use_labels):
    given_kernel, literal = NODE_KERNELS[node_kernel]
    options, length_kernel = LENGTHS[length]
    collection = COLLECTIONS[collection]
    kernel = ShortestPath(**options, node_kernel=given_kernel, gamma=0.6, use_labels=use_labels, normalize=False)
    expected = naive_paths.shortest_path(collection, collection, literal, length_kernel, use_labels=use_labels)
    K = kernel.fit_transform(collection.pack())
    assert_close(K, as_gram(expected, K.shape))


def test_node_kernel_does_not_matter_without_attributes():
    graphs = COLLECTIONS["no_attributes"].pack()
    K = ShortestPath(normalize=False).fit_transform(graphs)
    for options in ({"node_kernel": "linear"}, {"gamma": 7.0}, {"gamma": 0.0}):
        np.testing.assert_array_equal(ShortestPath(**options, normalize=False).fit_transform(graphs), K)


def test_gamma_0_ignores_the_vectors():
    graphs = COLLECTIONS["edge_labels"].pack()
    bare = COLLECTIONS["no_attributes"].pack()
    K = ShortestPath(gamma=0.0, use_labels=True, normalize=False).fit_transform(graphs)
    np.testing.assert_array_equal(K, ShortestPath(use_labels=True, normalize=False).fit_transform(bare))


@pytest.mark.parametrize(
    ("scale", "gamma"), [(1e-320, 1.0), (1e-200, 1e-200), (1e200, 1e200), (1e160, 1e-320), (1e9, 1.0)]
)
def test_vectors_of_any_magnitude(scale, gamma):
    """Negligible or very large distances: k is 1, or 0 for different vectors."""
    vectors = [[[0.0], [1.0], [0.0]], [[1.0], [1.0], [0.0]]]
    edges = [[(0, 1), (1, 2)]] * 2
    scaled = Graphs.from_edges(edges, attributes=[[[scale * x] for [x] in graph] for graph in vectors])
    plain = Graphs.from_edges(edges, attributes=vectors)
    width = 0.0 if scale < 1 else 1e9
    expected = ShortestPath(gamma=width, normalize=False).fit_transform(plain)
    np.testing.assert_array_equal(ShortestPath(gamma=gamma, normalize=False).fit_transform(scaled), expected)


@SEARCH
@given(
    collections(edge_labels=False),
    st.sampled_from(sorted(LENGTHS)),
    st.sampled_from(LABELS),
    st.sampled_from([1e-3, 0.5, None, 20.0]),
)
def test_shortest_path_matches_the_oracle_on_any_collection(collection, length, labels, gamma):
    options, literal = LENGTHS[length]
    width = default_gamma(collection) if gamma is None else gamma
    expected = naive_paths.shortest_path(collection, collection, naive.rbf(width), literal, **labels)
    K = ShortestPath(**options, **labels, gamma=gamma, normalize=False).fit_transform(collection.pack())
    expected = as_gram(expected, K.shape)
    assert_close(K, expected)
    roots = np.sqrt(expected.diagonal())
    scale = np.outer(roots, roots)
    normalized = np.divide(expected, scale, out=np.zeros_like(expected), where=scale > 0)
    kernel = ShortestPath(**options, **labels, gamma=gamma).fit(collection.pack())
    np.testing.assert_allclose(kernel.transform(collection.pack()), normalized, rtol=0, atol=1e-10)


@SEARCH
@given(in_two_parts(edge_labels=False), st.sampled_from(sorted(LENGTHS)), st.sampled_from(LABELS))
def test_transform_equals_a_block_of_fit_transform(parts, length, labels):
    """Each part may have distances and labels that the other has not."""
    collection, is_first = parts
    graphs, is_first = collection.pack(), np.array(is_first, dtype=bool)
    options = {**LENGTHS[length][0], **labels}
    K = ShortestPath(**options, normalize=False).fit_transform(graphs)
    diagonal = K.diagonal()
    part = ShortestPath(**options, normalize=False).fit(graphs[is_first]).transform(graphs[~is_first])
    assert_close(part, K[~is_first][:, is_first], diagonal[~is_first], diagonal[is_first])
    normalized = ShortestPath(**options).fit_transform(graphs)[~is_first][:, is_first]
    part = ShortestPath(**options).fit(graphs[is_first]).transform(graphs[~is_first])
    np.testing.assert_allclose(part, normalized, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["directed", "edge_labels", "no_attributes"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_gram_is_positive_semidefinite_and_invariant_to_node_order(name, length, labels):
    collection, options = COLLECTIONS[name], {**LENGTHS[length][0], **labels}
    K = ShortestPath(**options).fit_transform(collection.pack())
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    assert_close(ShortestPath(**options).fit_transform(collection.reversed_nodes().pack()), K)


@pytest.mark.parametrize("node_kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("length_kernel", ["delta", "brownian"])
def test_n_jobs_changes_no_bit_and_task_size_changes_nothing(length_kernel, node_kernel):
    graphs = COLLECTIONS["edge_labels"].pack()
    kernel = ShortestPath(length_kernel, node_kernel=node_kernel, normalize=False)
    K, part = kernel.fit_transform(graphs), kernel.transform(graphs[::2])
    with (
        mock.patch("treegram.pairsum.paths.TILE_COLUMNS", 3),
        mock.patch("treegram.pairsum.tiles.ROWS_PER_CALL", 5),
        mock.patch("treegram.structure.distances.NODES_PER_TASK", 4),
    ):
        small = [kernel.set_params(n_jobs=n_jobs).fit_transform(graphs) for n_jobs in (1, 2)]
        small_parts = [kernel.set_params(n_jobs=n_jobs).transform(graphs[::2]) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*small)
    np.testing.assert_array_equal(*small_parts)
    assert_close(small[0], K)
    assert_close(small_parts[0], part, K.diagonal()[::2], K.diagonal())


# -------------------------------------------------------------------- GraKeL


@pytest.fixture(scope="module")
def grakel():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("grakel")


def as_grakel(grakel, graph, values):
    adjacency = np.zeros((graph.n_nodes, graph.n_nodes), dtype=int)
    adjacency[np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.indices] = 1
    return grakel.Graph(adjacency, node_labels=dict(enumerate(values)))


def test_matches_grakel_with_attributes(data_dir, grakel):
    graphs, _ = load_tu("ENZYMES", data_dir=data_dir)
    graphs = graphs[np.argsort(graphs.sizes, kind="stable")[10:14]]  # small ones: it makes n^2 n'^2 Python calls
    gamma = 1.0 / graphs.n_attributes
    theirs = grakel.ShortestPathAttr(metric=lambda x, y: math.exp(-gamma * float(((x - y) ** 2).sum())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.fit_transform([as_grakel(grakel, graph, graph.attributes) for graph in graphs])
    assert_close(ShortestPath(normalize=False).fit_transform(graphs), expected)


@pytest.mark.parametrize("name", ["ENZYMES", "BZR"])
def test_labels_alone_match_grakel(name, data_dir, grakel):
    """The kernel on discrete labels: integers, and equal to the last bit."""
    graphs = load_tu(name, data_dir=data_dir)[0][:40]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = grakel.ShortestPath(with_labels=True, normalize=False)
        expected = theirs.fit_transform([as_grakel(grakel, graph, graph.labels.tolist()) for graph in graphs])
    K = ShortestPath(use_labels=True, gamma=0.0, normalize=False).fit_transform(graphs)
    np.testing.assert_array_equal(K, expected)
