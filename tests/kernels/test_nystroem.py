"""Tests of Nystroem: rows for any kernel from exact columns, with a known approximation error."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from treegram import (
    CSM,
    GIK,
    ODDCL,
    ODDST,
    P2K,
    WL,
    GraphHopper,
    Graphs,
    KernelSum,
    Nystroem,
    ScaleAttributes,
    ShortestPath,
    load_digits_graphs,
    load_model,
    make_synthetic,
    save_model,
)
from treegram.exceptions import ModelFileError, ParameterError

KERNELS = [
    ODDCL(depth=1),
    ODDCL(depth=1, gamma="scale"),
    ODDCL(depth=2, normalize=False),
    ODDST(depth=2),
    WL(2),
    P2K(),
    GIK(radius=1),
    GraphHopper(),
    ShortestPath(),
    CSM(max_size=2),
    KernelSum([ODDST(depth=1), make_pipeline(ScaleAttributes(), ODDCL(depth=1))]),
    make_pipeline(ScaleAttributes("robust"), ODDCL(depth=1)),
]


@pytest.fixture(scope="module")
def graphs():
    return make_synthetic(40, random_state=0)[0]


def residual(K, chosen):
    """Return the residual of a matrix after eliminating the chosen rows and columns."""
    K = K.copy()
    for i in chosen:
        K -= np.outer(K[:, i], K[i]) / K[i, i]
    return K


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: " ".join(repr(kernel).split()))
def test_rows_match_explicit_elimination(kernel, graphs):
    landmarks = Nystroem(kernel, 12)
    Z = landmarks.fit_transform(graphs)
    K = clone(kernel).fit_transform(graphs)
    left = residual(K, landmarks.component_indices_)
    np.testing.assert_allclose(K - Z @ Z.T, left, atol=1e-8 * K.max())
    assert landmarks.trace_error_ == pytest.approx(np.trace(left) / np.trace(K), rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(
        Z[landmarks.component_indices_] @ Z.T, K[landmarks.component_indices_], atol=1e-8 * K.max()
    )
    np.testing.assert_allclose(landmarks.transform(graphs), Z, atol=1e-8 * np.sqrt(K.max()))
    assert (
        len(set(landmarks.component_indices_))
        == len(landmarks.component_indices_)
        == Z.shape[1]
        == landmarks.n_features_out_
    )


def test_new_graphs_are_compared_only_with_the_landmarks(graphs):
    landmarks = Nystroem(ODDCL(depth=1), 10).fit(graphs[:30])
    exact = ODDCL(depth=1).fit(graphs[:30]).transform(graphs[30:])
    products = landmarks.transform(graphs[30:]) @ landmarks.transform(graphs[:30])[landmarks.component_indices_].T
    np.testing.assert_allclose(products, exact[:, landmarks.component_indices_], atol=1e-10)
    assert len(landmarks.kernel_.graphs_) == 10


def test_all_graphs_as_landmarks_are_exact(graphs):
    Z = Nystroem(WL(3), len(graphs)).fit_transform(graphs)
    np.testing.assert_allclose(Z @ Z.T, WL(3).fit_transform(graphs), atol=1e-7)


def test_low_rank_kernel_needs_few_landmarks():
    graphs, _ = load_digits_graphs()
    landmarks = Nystroem(WL(0, missing_labels="constant"), 50).fit(graphs[:100])
    assert len(landmarks.component_indices_) == 1
    assert landmarks.trace_error_ == 0


def test_landmarks_are_sampled_by_residual():
    """The second of two landmarks is drawn in proportion to the residual of the first, one at a time or in batches."""
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]])
    kernel = WL(1, normalize=False)
    K = kernel.fit_transform(graphs)
    expected = np.zeros((4, 4))
    for i in range(4):
        left = np.maximum(residual(K, [i]).diagonal(), 0)
        expected[i] = K[i, i] / np.trace(K) * left / left.sum()
    counts = np.zeros((4, 4))
    for seed in range(800):
        first, second = Nystroem(kernel, 2, random_state=seed).fit(graphs).component_indices_
        counts[first, second] += 1
    np.testing.assert_allclose(counts / 800, expected, atol=0.06)


def test_graphs_with_zero_kernel_get_zeros():
    graphs = Graphs.from_edges([[], [(0, 1)]], n_nodes=[1, 2])  # a path needs two nodes
    landmarks = Nystroem(ShortestPath(), 2)
    np.testing.assert_allclose(landmarks.fit_transform(graphs), [[0.0], [1.0]])
    assert Nystroem(ShortestPath()).fit_transform(graphs[:1]).shape == (1, 0)


def test_linear_model_learns_from_the_rows(graphs):
    graphs, y = load_digits_graphs()
    model = make_pipeline(Nystroem(ODDCL(depth=1), 60), LogisticRegression(C=100, max_iter=2000))
    assert model.fit(graphs[:150], y[:150]).score(graphs[150:250], y[150:250]) > 0.6


def test_model_files_store_nystroem(tmp_path, graphs):
    y = np.arange(len(graphs)) % 2
    model = make_pipeline(ScaleAttributes(), Nystroem(ODDCL(depth=1), 8), LinearSVC()).fit(graphs, y)
    save_model(model, tmp_path / "m.tgm")
    loaded = load_model(tmp_path / "m.tgm")
    np.testing.assert_array_equal(loaded.decision_function(graphs), model.decision_function(graphs))
    assert loaded[1].trace_error_ == model[1].trace_error_
    learned = Nystroem(ODDCL(gamma="scale"), 8).fit(graphs)
    with pytest.raises(
        ModelFileError, match="Nystroem cannot be saved with ODDCL as it is: it has learned from all fitted graphs"
    ):
        save_model(learned, tmp_path / "no.tgm")


def test_invalid_parameters_raise(graphs):
    with pytest.raises(ParameterError, match="at least one graph"):
        Nystroem().fit([])
    with pytest.raises(ParameterError, match="kernel must be a graph kernel"):
        Nystroem(LinearSVC()).fit(graphs)
    with pytest.raises(ParameterError, match="n_components of Nystroem must be a whole number of at least 1"):
        Nystroem(n_components=0).fit(graphs)
