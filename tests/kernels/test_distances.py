"""Tests of distances between graphs: laws of a metric, agreement with literal ones, and similar graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.cluster import HDBSCAN
from sklearn.manifold import TSNE
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline

from strategies import collections
from treegram import (
    GIK,
    ODDCL,
    WL,
    WLOA,
    Graphs,
    KernelDistances,
    KernelSum,
    ScaleAttributes,
    StatisticsKernel,
    load_digits_graphs,
    similar_graphs,
)
from treegram.exceptions import ParameterError
from treegram.kernels.distances import _default_kernel

pd = pytest.importorskip("pandas")
KERNELS = [
    None,
    "wl",
    WL(2, normalize=False),
    WLOA(1, normalize="tanimoto"),
    KernelSum([WL(1), StatisticsKernel()], normalize=False),
]


@pytest.fixture(scope="module")
def digits():
    graphs, y = load_digits_graphs()
    return graphs[:90].assign(graph_names=[f"digit {i}" for i in range(90)]), y[:90]


@settings(max_examples=30, deadline=None)
@given(collections(min_graphs=1, max_graphs=6, scale="plain"))
@pytest.mark.filterwarnings("ignore:.* does not use the")
def test_distances_are_a_metric_and_equal_literal_ones(collection):
    graphs = collection.pack()
    for kernel in KERNELS:
        D = KernelDistances(kernel).fit_transform(graphs)
        assert not D.diagonal().any()
        np.testing.assert_array_equal(D, D.T)
        assert (D[:, None] <= D[:, :, None] + D[None] + 1e-5 * (1 + D.max())).all()
        literal = KernelDistances(kernel).fit(graphs)
        K = literal.kernel_.transform(graphs)
        for i in range(len(graphs)):
            for j in range(len(graphs)):
                square = K[i, i] + K[j, j] - 2 * K[i, j]
                assert D[i, j] == pytest.approx(max(square, 0) ** 0.5, abs=1e-5 * (1 + K.diagonal().max()))
        np.testing.assert_allclose(literal.transform(graphs), D, atol=1e-5 * (1 + D.max()))


@pytest.mark.parametrize("kernel", [None, make_pipeline(ScaleAttributes(), ODDCL(1)), GIK(normalize=False)])
def test_equal_graphs_have_distance_zero_and_new_graphs_are_compared(digits, kernel):
    graphs, _ = digits
    distances = KernelDistances(kernel).fit(graphs[:40])
    D = distances.transform(graphs[30:50])
    assert D.shape == (20, 40)
    assert [D[i, 30 + i] for i in range(10)] == [0.0] * 10
    assert (D[10:] > 0).all()


def test_nearest_are_near_and_estimators_take_the_distances(digits):
    graphs, y = digits
    model = make_pipeline(KernelDistances(), NearestNeighbors(n_neighbors=2, metric="precomputed")).fit(graphs)
    D, K = KernelDistances().fit_transform(graphs), _default_kernel(graphs).fit_transform(graphs)
    found = model[-1].kneighbors(D, return_distance=False)[:, 1]
    np.fill_diagonal(K, -np.inf)
    assert (K[np.arange(90), found] >= K.max(axis=1) - 1e-9).all()
    assert (y[found] == y).mean() > 0.7
    assert len(HDBSCAN(metric="precomputed", copy=True).fit_predict(D)) == 90
    assert len(LocalOutlierFactor(metric="precomputed").fit_predict(D)) == 90
    assert TSNE(metric="precomputed", init="random", perplexity=5, max_iter=250).fit_transform(D).shape == (90, 2)


def test_default_kernel_uses_what_the_graphs_have(digits):
    graphs, _ = digits
    parts = [repr(part) for part in _default_kernel(graphs).kernels]
    assert len(parts) == 3
    assert "gamma='narrow'" in parts[2]
    bare = Graphs.from_edges([[(0, 1)]] * 2, edge_labels=[["a"], ["b"]])
    assert KernelDistances().fit_transform(bare)[0, 1] > 0
    assert len(_default_kernel(bare).kernels) == 2


@pytest.mark.parametrize("kernel", [None, WLOA(2), WL(2, normalize=False)])
@pytest.mark.filterwarnings("ignore:.* does not use the")
def test_similar_graphs_are_those_of_the_highest_normalized_kernel(digits, kernel):
    graphs, _ = digits
    table = similar_graphs(graphs, [4, "digit 7"], k=3, kernel=kernel)
    K = (kernel or _default_kernel(graphs)).fit_transform(graphs)
    K /= np.sqrt(K.diagonal()[:, None] * K.diagonal())
    for i, rows in zip((4, 7), (table.iloc[:3], table.iloc[3:]), strict=True):
        others = sorted(set(range(90)) - {i}, key=lambda j, i=i: -round(K[i, j], 9))
        assert rows["to"].tolist() == [f"digit {i}"] * 3
        np.testing.assert_allclose(rows["similarity"], [K[i, j] for j in others[:3]])
        assert rows["name"].tolist() == [f"digit {j}" for j in rows["graph"]]
        np.testing.assert_allclose(K[i, rows["graph"]], rows["similarity"])


def test_new_graphs_may_be_equal_to_one_of_the_collection(digits):
    graphs, _ = digits
    unnamed = graphs.assign(graph_names=None)
    table = similar_graphs(unnamed[:20], graphs[[3, 25]], k=1)
    assert table["to"].tolist() == ["digit 3", "digit 25"]
    assert list(table) == ["to", "graph", "similarity"]
    assert table["graph"][0] == 3
    assert table["similarity"][0] == pytest.approx(1)
    assert len(similar_graphs(unnamed[:3], 0, k=10)) == 2
    assert similar_graphs(unnamed, np.int64(3), k=1)["to"].tolist() == [3]


def test_mistakes_are_explained(digits):
    graphs, _ = digits
    with pytest.raises(ParameterError, match="0 are named 'digit'; did you mean"):
        similar_graphs(graphs, "digit")
    with pytest.raises(ParameterError, match="2 are named 'a'"):
        similar_graphs(graphs[:2].assign(graph_names=["a", "a"]), "a")
    with pytest.raises(IndexError, match="graph index 90 is out of range"):
        similar_graphs(graphs, 90)
    with pytest.raises(ParameterError, match="kernel 'wll' is unknown; did you mean"):
        KernelDistances("wll").fit(graphs)
    with pytest.raises(ParameterError, match="kernel of KernelDistances must be a kernel or its name"):
        KernelDistances(3).fit(graphs)
    with pytest.raises(ParameterError, match="k of similar_graphs must be"):
        similar_graphs(graphs, 0, k=0)
