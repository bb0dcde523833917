"""Tests of RandomWalk and AttributedWalk against enumerated walks, linear systems, and GraKeL."""

import math
from collections import Counter
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import naive
from checks import assert_close, feature_names, feature_rows
from naive_paths import node_kernels
from strategies import collections
from treegram import AttributedWalk, Graphs, RandomWalk, explain, load_tu
from treegram.exceptions import InvalidGraphError, ParameterError
from treegram.kernels import random_walk
from treegram.kernels.attribution import kernel_contributions
from treegram.models.ridge import GraphRidge
from zoo import COLLECTIONS, LAWS_HOLD_ON

SEARCH = settings(max_examples=40, deadline=None)

# -------------------------------------------------------------------- the oracle


def walks(adjacent, n_steps):
    """Return all walks of n_steps steps, as lists of nodes."""
    if n_steps == 0:
        return [[v] for v in range(len(adjacent))]
    return [[*walk, w] for walk in walks(adjacent, n_steps - 1) for w in adjacent[walk[-1]]]


def attributed(collection, node_kernel, n_steps, decay, *, use_labels=True, use_edge_labels=False):
    n = len(collection)
    K = np.zeros((n, n))
    adjacent = [naive.neighbors(collection, g) for g in range(n)]
    for g in range(n):
        for h in range(g, n):
            kappa = node_kernels(collection, g, collection, h, node_kernel, use_labels=use_labels)
            for k in range(n_steps + 1):
                for a in walks(adjacent[g], k):
                    for b in walks(adjacent[h], k):
                        value = math.prod(kappa[v][w] for v, w in zip(a, b, strict=True))
                        if use_edge_labels and value:
                            value *= bonds(adjacent[g], a) == bonds(adjacent[h], b)
                        K[g, h] += decay**k * value
            K[h, g] = K[g, h]
    return K


def bonds(adjacent, walk):
    return [adjacent[v][w] for v, w in pairwise(walk)]


def sequences(collection, g, n_steps, *, use_labels, use_edge_labels):
    adjacent, labels = naive.neighbors(collection, g), naive.node_labels(collection, g)
    found = Counter()
    for k in range(n_steps + 1):
        for walk in walks(adjacent, k):
            nodes = tuple(labels[v] for v in walk) if use_labels else ()
            found[k, nodes, tuple(bonds(adjacent, walk)) if use_edge_labels else ()] += 1
    return found


def labeled(collection, n_steps, weight, **options):
    counts = [sequences(collection, g, n_steps, **options) for g in range(len(collection))]
    values = [[sum(weight(s[0]) * n * b[s] for s, n in a.items()) for b in counts] for a in counts]
    return np.array(values, float).reshape(len(counts), len(counts))


def system(collection, decay, kind):
    """Return sums over walks of all lengths in the product graph, by a linear system or a matrix exponential."""
    matrices = []
    for g in range(len(collection)):
        A = np.zeros((collection.n_nodes[g],) * 2)
        for v, around in enumerate(naive.neighbors(collection, g)):
            A[v, list(around)] = 1
        matrices.append(A)

    def value(A, B):
        M = decay * np.kron(A, B)
        total = np.linalg.inv(np.eye(len(M)) - M) if kind == "geometric" else expm(M)
        return total.sum()

    return np.array([[value(A, B) for B in matrices] for A in matrices]).reshape(len(matrices), len(matrices))


# -------------------------------------------------------------------- AttributedWalk


@SEARCH
@given(
    collections(edge_labels=True, max_graphs=3),
    st.integers(0, 2),
    st.sampled_from([0.3, 1.5]),
    st.booleans(),
    st.booleans(),
)
def test_any_collection_matches_all_pairs_of_walks(collection, n_steps, decay, use_labels, use_edge_labels):
    options = {"use_labels": use_labels, "use_edge_labels": use_edge_labels}
    kernel = AttributedWalk(n_steps, decay=decay, gamma=0.3, normalize=False, **options)
    expected = attributed(collection, naive.rbf(0.3), n_steps, decay, **options)
    assert_close(kernel.fit_transform(collection.pack()), expected)
    assert_close(kernel.fit(collection.pack()).transform(collection.pack()), expected)
    np.testing.assert_allclose(kernel.diag(collection.pack()), expected.diagonal(), rtol=1e-12)


def test_other_node_kernels():
    collection = COLLECTIONS["components"]
    expected = attributed(collection, naive.linear, 2, 0.5)
    assert_close(
        AttributedWalk(2, decay=0.5, node_kernel="linear", normalize=False).fit_transform(collection.pack()), expected
    )


@pytest.mark.parametrize(
    "kernel", [AttributedWalk(2, decay=0.5), RandomWalk(n_steps=2, use_labels=True), RandomWalk(0.02)]
)
def test_node_contributions_sum_to_the_kernel(kernel):
    graphs, weights = COLLECTIONS["edge_labels"].pack(), np.random.default_rng(0).normal(size=(11, 2))
    kernel.fit(graphs)
    contributions = kernel_contributions(kernel, graphs, weights, spread=False)
    sums = np.zeros((len(graphs), 2))
    np.add.at(sums, graphs.graph_ids, contributions)
    np.testing.assert_allclose(sums, kernel.transform(graphs) @ weights, atol=1e-12)


def test_models_explain_walks():
    graphs = Graphs.concatenate([COLLECTIONS["edge_labels"].pack()[1:]] * 2)
    model = GraphRidge(AttributedWalk(1), alpha=0.1, param_grid={}, cv=2).fit(graphs, np.arange(len(graphs)) % 10)
    assert explain(model, graphs).residual < 1e-9


# -------------------------------------------------------------------- RandomWalk with labels


@SEARCH
@given(collections(edge_labels=True), st.integers(0, 3), st.booleans(), st.booleans(), st.booleans())
def test_any_collection_matches_all_sequences(collection, n_steps, use_labels, use_edge_labels, in_pairs):
    options = {"use_labels": use_labels, "use_edge_labels": use_edge_labels}
    expected = labeled(collection, n_steps, lambda k: 0.7**k / math.factorial(k), **options)
    kernel = RandomWalk(0.7, n_steps=n_steps, kind="exponential", normalize=False, **options)
    with mock.patch.object(random_walk, "MOST_SEQUENCES", -1 if in_pairs else 1e9):
        assert_close(kernel.fit_transform(collection.pack()), expected)
        assert kernel._in_pairs == (in_pairs and (use_labels or use_edge_labels))
        assert_close(kernel.fit(collection.pack()).transform(collection.pack()), expected)
    if not kernel._in_pairs:
        Z = feature_rows(kernel, collection.pack())
        assert_close((Z @ Z.T).toarray(), expected)
        assert Z.shape[1] == len(set(feature_names(kernel)))


def test_names_of_sequences():
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["C", "N", "O"]], edge_labels=[[1, 2]])
    kernel = RandomWalk(n_steps=2, use_labels=True, use_edge_labels=True).fit(graphs)
    assert {"C-1:N-2:O", "O-2:N-2:O", "N", "C-1:N"} <= set(feature_names(kernel))
    assert feature_names(RandomWalk(n_steps=1).fit(graphs)) == ["walks of 0 steps", "walks of 1 step"]


def test_dense_graphs_are_compared_in_pairs_and_have_no_explicit_features():
    rng = np.random.default_rng(0)
    edges = [[(a, b) for a in range(60) for b in range(a) if rng.random() < 0.3] for _ in range(4)]
    graphs = Graphs.from_edges(edges)
    kernel = RandomWalk(0.001, n_steps=8, use_labels=True)
    K = kernel.fit_transform(graphs)
    assert kernel._in_pairs
    np.testing.assert_allclose(kernel.transform(graphs), K, atol=1e-12)
    np.testing.assert_allclose(K, AttributedWalk(8, decay=0.001).fit_transform(graphs), atol=1e-12)
    with pytest.raises(ParameterError, match="too many sequences"):
        feature_rows(kernel, graphs)


@pytest.mark.parametrize("kernel", [AttributedWalk, RandomWalk])
def test_overflowing_number_of_steps_raises(kernel):
    """Found by fuzzing model files: compiled code wrote out of bounds."""
    graphs = LAWS_HOLD_ON["mixed"].pack()
    with pytest.raises(ParameterError, match=r"n_steps of .* must be a whole number"):
        kernel(n_steps=2**63).fit(graphs)


def test_labels_require_a_number_of_steps():
    with pytest.raises(ParameterError, match="n_steps of RandomWalk must be a number with use_labels"):
        RandomWalk(use_labels=True).fit(COLLECTIONS["path"].pack())


# -------------------------------------------------------------------- RandomWalk of all lengths


@SEARCH
@given(collections(), st.sampled_from([0.001, 0.01, 0.035]), st.sampled_from(["geometric", "exponential"]))
def test_any_collection_matches_the_linear_system(collection, decay, kind):
    kernel = RandomWalk(decay, kind=kind, normalize=False)
    expected = system(collection, decay, kind)
    assert_close(kernel.fit_transform(collection.pack()), expected)
    n = len(collection) // 2
    part = kernel.fit(collection.take(range(n)).pack()).transform(collection.pack())
    assert_close(part, expected[:, :n], expected.diagonal(), expected.diagonal()[:n])


def test_decay_near_the_limit_is_exact():
    """The largest eigenvalues of a ring, a star of four and a path of three are 2, 2 and sqrt(2)."""
    edges = [[(i, (i + 1) % 7) for i in range(7)], [(0, i) for i in range(1, 5)], [(0, 1), (1, 2)]]
    for decay in (0.2, 0.245):
        collection = COLLECTIONS["empty"].__class__(edges, [7, 5, 3])
        assert_close(
            RandomWalk(decay, normalize=False).fit_transform(collection.pack()), system(collection, decay, "geometric")
        )


def test_graph_that_exceeds_the_limit_raises():
    star, path = [(0, i) for i in range(1, 10)], [(0, 1), (1, 2)]
    graphs = Graphs.from_edges([path, path, star])
    message = r"Graph 2: .* largest eigenvalue is 3, so that decay of RandomWalk must be at most 0\.1.*; got 0\.2"
    with pytest.raises(InvalidGraphError, match=message):
        RandomWalk(0.2).fit(graphs)
    kernel = RandomWalk(0.2).fit(graphs[:2])
    with pytest.raises(InvalidGraphError, match=message):
        kernel.transform(graphs)
    assert RandomWalk(0.2, n_steps=5).fit_transform(graphs).shape == (3, 3)
    with pytest.raises(InvalidGraphError, match="at most 66"):
        RandomWalk(100.0, kind="exponential").fit(graphs)


@pytest.mark.parametrize("kind", ["geometric", "exponential"])
def test_real_data_match_grakel(kind, data_dir):
    grakel = pytest.importorskip("grakel")
    graphs = load_tu("MUTAG", data_dir=data_dir)[0]
    graphs = graphs[np.argsort(graphs.sizes)[:6]]  # GraKeL takes time of the sixth power of their size
    theirs = [both_ways(grakel, graph) for graph in graphs]
    expected = grakel.RandomWalk(lamda=0.05, kernel_type=kind, method_type="baseline").fit_transform(theirs)
    assert_close(RandomWalk(0.05, kind=kind, normalize=False).fit_transform(graphs), expected)


def test_real_data_match_labeled_walks_of_grakel(data_dir):
    """By its method "baseline", which counts walks without steps whatever their labels."""
    grakel = pytest.importorskip("grakel")
    graphs = load_tu("MUTAG", data_dir=data_dir)[0]
    graphs = graphs[np.argsort(graphs.sizes)[:6]]  # GraKeL takes time of the sixth power of their size
    theirs = [both_ways(grakel, graph) for graph in graphs]
    with pytest.warns(UserWarning, match="changing format"):
        expected = grakel.RandomWalkLabeled(lamda=0.05, p=3, method_type="baseline").fit_transform(theirs)
    K, nodes = (RandomWalk(0.05, n_steps=p, use_labels=True, normalize=False).fit_transform(graphs) for p in (3, 0))
    assert_close(K - nodes + np.outer(graphs.sizes, graphs.sizes), expected)


def both_ways(grakel, graph):
    edges = [tuple(edge) for edge in np.concatenate([graph.edges(), graph.edges()[:, ::-1]]).tolist()]
    return grakel.Graph(edges, node_labels=dict(enumerate(graph.labels.tolist())))
