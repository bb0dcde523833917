"""Tests of GraphHopper: worked examples, the naive oracle, GraKeL, and special cases."""

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
from treegram import GraphHopper, Graphs, load_tu
from treegram.exceptions import InvalidGraphError
from treegram.kernels.graphhopper import count_hops
from zoo import COLLECTIONS, Collection

SEARCH = settings(max_examples=60, deadline=None)
q = math.exp(-1)

# -------------------------------------------------------------------- worked examples: BASELINES.md, section 10

P2, P3, Q3, K3, C4 = range(5)
EXAMPLES = Graphs.from_edges(
    [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (2, 3), (3, 0)]],
    labels=["AB", "ABA", "AAB", "AAB", "AAAA"],
    attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]], [[0.0], [0.0], [1.0]], [[0.0], [0.0], [1.0]], [[0.0]] * 4],
)
VALUES = {  # constant + factor * q
    (P2, P2): (6, 6),
    (P2, P3): (11, 11),
    (P2, K3): (15, 15),
    (P3, P3): (33, 20),
    (Q3, Q3): (33, 20),
    (P3, K3): (29, 28),
    (P3, Q3): (25, 28),
    (K3, K3): (45, 36),
    (K3, Q3): (33, 24),
    (C4, C4): (336, 0),
}


@pytest.mark.parametrize(("pair", "value"), VALUES.items(), ids=str)
def test_worked_examples(pair, value):
    constant, factor = value
    K = GraphHopper(normalize=False).fit_transform(EXAMPLES)
    assert K[pair] == pytest.approx(constant + factor * q, rel=1e-14)
    K = GraphHopper(normalize=False, use_labels=True).fit_transform(EXAMPLES)
    assert K[pair] == pytest.approx(constant, rel=1e-14)  # different labels have different vectors here


def positions(graphs):
    """Return {(a, b): count} of each node, zero-based, both halves."""
    dense, halved = count_hops(graphs).toarray(), not graphs.directed
    names = [(a, b) for b in range(9) for a in range(b // 2 + 1 if halved else b + 1)]
    found = [{names[i]: count for i, count in enumerate(row) if count} for row in dense]
    if halved:
        found = [row | {(b - a, b): count for (a, b), count in row.items()} for row in found]
    return found


END, MIDDLE = {(0, 0): 1, (0, 1): 1, (1, 1): 1, (0, 2): 1, (2, 2): 1}, {(0, 0): 1, (0, 1): 2, (1, 1): 2, (1, 2): 2}


def test_positions_match_a_hand_calculation():
    assert positions(EXAMPLES[P3]) == [END, MIDDLE, END]
    corner = {(0, 0): 1, (0, 1): 2, (1, 1): 2, (0, 2): 2, (1, 2): 2, (2, 2): 2}
    assert positions(EXAMPLES[C4]) == [corner] * 4


def test_directed_paths_match_a_hand_calculation():
    """0 -> 1 -> 2: the first node starts both longer paths, the last one ends them, and there is no way back."""
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]], directed=True)
    assert positions(graphs) == [
        {(0, 0): 1, (0, 1): 1, (0, 2): 1},
        {(0, 0): 1, (0, 1): 1, (1, 1): 1, (1, 2): 1},
        {(0, 0): 1, (1, 1): 1, (2, 2): 1},
    ]
    assert GraphHopper(normalize=False).fit_transform(graphs)[0, 0] == 9 + 2 * 4 + 3  # paths of 1, 2 and 3 nodes


def test_isolated_nodes_are_paths_of_one_node():
    graphs = Graphs.from_edges([[], [], []], n_nodes=[2, 1, 0], attributes=[[[0.0], [1.0]], [[0.0]], []])
    K = GraphHopper(normalize=False).fit_transform(graphs)
    np.testing.assert_allclose(K, [[2 + 2 * q, 1 + q, 0], [1 + q, 1, 0], [0, 0, 0]], rtol=1e-15)


def test_components_are_independent():
    """A path and an edge in one graph: the paths of both, and none between them."""
    both = Graphs.from_edges([[(0, 1), (1, 2), (3, 4)]])
    apart = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]])
    K = GraphHopper(normalize=False).fit(apart).transform(apart)
    assert GraphHopper(normalize=False).fit_transform(both)[0, 0] == K.sum()


def test_paths_are_counted_without_attributes():
    """K = sum over lengths l of l times the numbers of paths of l nodes."""
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]])
    K = GraphHopper(normalize=False, node_kernel="linear", gamma=3.0).fit_transform(graphs)
    assert K.tolist() == [[2 * 2 + 2 * 2 * 2, 2 * 3 + 2 * 2 * 4], [2 * 3 + 2 * 2 * 4, 3 * 3 + 2 * 4 * 4 + 3 * 2 * 2]]


# -------------------------------------------------------------------- the oracle

LABELS = [{}, {"use_labels": True}, {"use_labels": True, "missing_labels": "constant"}]


def default_gamma(collection):
    vectors = [vector for graph in collection.attributes or [] for vector in graph]
    return 1.0 / len(vectors[0]) if vectors else 1.0


def as_gram(values, shape):
    return np.array(values, dtype=float).reshape(shape)


@pytest.mark.parametrize("options", LABELS, ids=str)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_graphhopper_matches_the_oracle(collection, options):
    expected = naive_paths.graphhopper(collection, collection, naive.rbf(default_gamma(collection)), **options)
    kernel, graphs = GraphHopper(**options, normalize=False), collection.pack()
    K = kernel.fit_transform(graphs)
    assert_close(K, as_gram(expected, K.shape))
    assert_close(kernel.transform(graphs), as_gram(expected, K.shape))


NODE_KERNELS = {
    "linear": ("linear", naive.linear),
    "laplacian": ("laplacian", naive.laplacian(0.6)),
    "function": (lambda X, Y: X @ Y.T + 1.0, lambda x, y: naive.linear(x, y) + 1.0),
}


@pytest.mark.parametrize("use_labels", [False, True])
@pytest.mark.parametrize("collection", ["isolated_nodes", "components", "equal_vectors", "diamonds"])
@pytest.mark.parametrize("node_kernel", NODE_KERNELS)
def test_node_kernels_match_the_oracle(node_kernel, collection, use_labels):
    given_kernel, literal = NODE_KERNELS[node_kernel]
    collection = COLLECTIONS[collection]
    kernel = GraphHopper(node_kernel=given_kernel, gamma=0.6, use_labels=use_labels, normalize=False)
    expected = naive_paths.graphhopper(collection, collection, literal, use_labels=use_labels)
    K = kernel.fit_transform(collection.pack())
    assert_close(K, as_gram(expected, K.shape))


@SEARCH
@given(collections(edge_labels=False), st.sampled_from(LABELS), st.sampled_from([1e-3, 0.5, None, 20.0]))
def test_graphhopper_matches_the_oracle_on_any_collection(collection, options, gamma):
    width = default_gamma(collection) if gamma is None else gamma
    expected = naive_paths.graphhopper(collection, collection, naive.rbf(width), **options)
    K = GraphHopper(**options, gamma=gamma, normalize=False).fit_transform(collection.pack())
    expected = as_gram(expected, K.shape)
    assert_close(K, expected)
    roots = np.sqrt(expected.diagonal())
    scale = np.outer(roots, roots)
    normalized = np.divide(expected, scale, out=np.zeros_like(expected), where=scale > 0)
    np.testing.assert_allclose(
        GraphHopper(**options, gamma=gamma).fit_transform(collection.pack()), normalized, rtol=0, atol=1e-10
    )


@SEARCH
@given(in_two_parts(edge_labels=False), st.sampled_from(LABELS))
def test_transform_equals_a_block_of_fit_transform(parts, options):
    """Each part may have path lengths and labels that the other has not."""
    collection, is_first = parts
    graphs, is_first = collection.pack(), np.array(is_first, dtype=bool)
    K = GraphHopper(**options, normalize=False).fit_transform(graphs)
    fitted = GraphHopper(**options, normalize=False).fit(graphs[is_first])
    diagonal = K.diagonal()
    assert_close(
        fitted.transform(graphs[~is_first]), K[~is_first][:, is_first], diagonal[~is_first], diagonal[is_first]
    )
    normalized = GraphHopper(**options).fit_transform(graphs)
    fitted = GraphHopper(**options).fit(graphs[is_first])
    np.testing.assert_allclose(
        fitted.transform(graphs[~is_first]), normalized[~is_first][:, is_first], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("name", ["directed", "edge_labels", "no_attributes"])
@pytest.mark.parametrize("options", LABELS, ids=str)
def test_gram_is_positive_semidefinite_and_invariant_to_node_order(name, options):
    collection = COLLECTIONS[name]
    K = GraphHopper(**options).fit_transform(collection.pack())
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    assert_close(GraphHopper(**options).fit_transform(collection.reversed_nodes().pack()), K)


# -------------------------------------------------------------------- many paths


def layers(width, n_layers):
    """Return layers of ``width`` nodes, each joined to the next: width ** (n_layers - 2) end-to-end paths."""
    edges = [
        (width * i + a, width * (i + 1) + b) for i in range(n_layers - 1) for a in range(width) for b in range(width)
    ]
    return Collection([[(0, 1)], edges], [2, width * n_layers]).pack()


def test_many_paths_are_counted_exactly():
    K = GraphHopper(normalize=False).fit_transform(layers(3, 30))
    assert np.isfinite(K).all()
    assert K[1, 1] > 3.0**56
    n_edges = 29 * 9
    assert K[0, 1] == 2 * 90 + 2 * 2 * 2 * n_edges


def test_too_many_paths_raise():
    """The limit of 1e140 takes graphs of a thousand nodes; a lower limit is tested instead."""
    graphs = layers(3, 30)
    kernel = GraphHopper().fit(graphs)
    message = r"Graph 1: more than 1e\+10 shortest paths lead through its node \d+, too many"
    with mock.patch("treegram.kernels.graphhopper.LARGEST_COUNT", 1e10):
        GraphHopper().fit(graphs[:1])
        for compute in (GraphHopper().fit, GraphHopper().fit_transform, kernel.transform):
            with pytest.raises(InvalidGraphError, match=message):
                compute(graphs)


# -------------------------------------------------------------------- GraKeL


def test_matches_grakel(data_dir):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grakel = pytest.importorskip("grakel")
    graphs, _ = load_tu("ENZYMES", data_dir=data_dir)
    small = np.flatnonzero(graphs.sizes < 40)[::10]  # it is slow on the others
    graphs = graphs[[i for i in small if graphs[i].degrees.all()][:10]]  # and it fails on isolated nodes
    theirs = grakel.GraphHopper(kernel_type=("gaussian", 1.0 / graphs.n_attributes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.fit_transform([as_grakel(grakel, graph) for graph in graphs])
    assert_close(GraphHopper(normalize=False).fit_transform(graphs), expected)


def as_grakel(grakel, graph):
    adjacency = np.zeros((graph.n_nodes, graph.n_nodes), dtype=int)
    adjacency[np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.indices] = 1
    return grakel.Graph(adjacency, node_labels=dict(enumerate(graph.attributes)))
