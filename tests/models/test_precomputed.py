"""Tests of models on Gram matrices: equal to the same models on graphs, and sliced on both axes by scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treegram
from treegram import ODDCL, GraphGP, GraphRidge, GraphSVC, explain, save_model
from treegram.exceptions import ModelFileError

KERNEL = ODDCL(depth=1)


@pytest.fixture(scope="module")
def digits():
    """Return (graphs, their classes, their Gram matrix): three classes."""
    graphs, y = treegram.load_digits_graphs()
    few = np.flatnonzero(np.isin(y, (3, 8, 9)))[:90]
    return graphs[few], y[few], KERNEL.fit_transform(graphs[few])


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"scoring": "f1_macro"}], ids=repr)
def test_classifier_on_a_gram_matrix_equals_the_one_on_graphs(digits, options):
    graphs, y, K = digits
    options = {"C": [0.1, 1, 100], "cv": 4, **options}
    ours = GraphSVC("precomputed", **options).fit(K[:60, :60], y[:60])
    theirs = GraphSVC(KERNEL, param_grid={}, **options).fit(graphs[:60], y[:60])
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.best_params_ == {**theirs.best_params_, "kernel": "precomputed"}
    rows = K[60:, :60]
    for method in ("predict", "decision_function"):
        np.testing.assert_allclose(getattr(ours, method)(rows), getattr(theirs, method)(graphs[60:]), atol=1e-9)
    ours, theirs = ours.calibrate(rows, y[60:]), theirs.calibrate(graphs[60:], y[60:])
    np.testing.assert_array_equal(ours.prediction_set(rows), theirs.prediction_set(graphs[60:]))
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.predict(rows), ours.predict(rows))
    assert GraphSVC(**ours.best_params_, cv=2).fit(K, y).n_fits_ == 3


def test_regressor_on_a_gram_matrix_equals_the_one_on_graphs(digits):
    graphs, _, K = digits
    y = np.array([graph.attributes[:, 2].mean() for graph in graphs])
    ours = GraphRidge("precomputed", cv=4).fit(K[:60, :60].tolist(), y[:60])
    theirs = GraphRidge(KERNEL, param_grid={}, cv=4).fit(graphs[:60], y[:60])
    np.testing.assert_allclose(ours.predict(K[60:, :60]), theirs.predict(graphs[60:]), rtol=1e-9)


def test_scikit_learn_slices_rows_and_columns(digits):
    graphs, y, K = digits
    assert GraphSVC("precomputed").__sklearn_tags__().input_tags.pairwise
    assert not GraphSVC("wl").__sklearn_tags__().input_tags.pairwise
    cv = StratifiedKFold(3)
    scores = cross_val_score(GraphSVC("precomputed", C=10, cv=2), K, y, cv=cv, error_score="raise")
    np.testing.assert_array_equal(scores, cross_val_score(SVC(kernel="precomputed", C=10), K, y, cv=cv))
    search = GridSearchCV(GraphSVC("precomputed", cv=2), {"C": [1, 10]}, cv=KFold(3), error_score="raise").fit(K, y)
    assert search.predict(K).shape == y.shape
    model = make_pipeline(KERNEL, GraphSVC("precomputed", C=10, cv=2)).fit(graphs[:60], y[:60])
    np.testing.assert_array_equal(
        model.predict(graphs[60:]), SVC(kernel="precomputed", C=10).fit(K[:60, :60], y[:60]).predict(K[60:, :60])
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda K: K[:10], r"X must be the square Gram matrix .* got shape \(10, 90\)"),
        (lambda K: K[0], "Expected 2D array, got 1D array"),
        (lambda K: np.where(np.eye(90) * np.arange(90) == 7, np.nan, K), "Input X contains NaN"),
        (lambda K: K + np.triu(K, 80), "X must be a symmetric matrix"),
        (lambda K: [["a"] * 90] * 90, "could not convert string to float"),
        (lambda K: K[:80, :80], "80 graphs, got 90 targets"),
    ],
)
def test_invalid_gram_matrices_raise(digits, change, message):
    _, y, K = digits
    with pytest.raises(ValueError, match=message):
        GraphSVC("precomputed", cv=2).fit(change(K), y)


def test_unsupported_uses_raise(digits, tmp_path):
    graphs, y, K = digits
    with pytest.raises(ValueError, match="X must be a matrix with kernel='precomputed'; got graphs"):
        GraphSVC("precomputed").fit(graphs, y)
    with pytest.raises(ValueError, match="param_grid cannot be used with kernel='precomputed'"):
        GraphSVC("precomputed", param_grid={"depth": [1]}).fit(K, y)
    with pytest.raises(ValueError, match="'precomputed' must be the only one"):
        GraphSVC(["wl", "precomputed"]).fit(graphs, y)
    with pytest.raises(ValueError, match="it is for GraphSVC and GraphRidge"):
        GraphGP("precomputed").fit(graphs, y)
    model = GraphSVC("precomputed", C=1, cv=2).fit(K, y)
    with pytest.raises(ValueError, match=r"a column for each of the 90 fitted graphs.*got shape \(90, 60\)"):
        model.predict(K[:, :60])
    for one in (model, GraphRidge("precomputed", cv=2).fit(K, y)):
        with pytest.raises(ValueError, match="with kernel='precomputed' cannot be explained"):
            explain(one, graphs)
        with pytest.raises(ModelFileError, match="with kernel='precomputed' cannot be saved"):
            save_model(one, tmp_path / "model.tgm")
    assert not list(tmp_path.iterdir())
