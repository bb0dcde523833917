"""Tests of several targets: each column equals a regressor fitted on the graphs that have a value."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

import treegram
from treegram import (
    ODDCL,
    GraphClassifier,
    GraphGP,
    GraphRegressor,
    GraphRidge,
    GraphSVC,
    ScaleAttributes,
    explain,
)

GP = GraphGP(ODDCL(depth=0), param_grid={})
RIDGE = GraphRidge(ODDCL(depth=0), param_grid={}, alpha=[0.01, 1], cv=3)


@pytest.fixture(scope="module")
def digits():
    """Return (graphs, two targets; every third value is missing in the first, and some in the second)."""
    graphs, _ = treegram.load_digits_graphs()
    y = np.array([graph.attributes[:, 1:].mean(axis=0) for graph in graphs[:100]])
    y[::3, 0] = np.nan
    y[40:50, 1] = np.nan
    return graphs[:100], y


@pytest.mark.parametrize("estimator", [GP, RIDGE, make_pipeline(ScaleAttributes(), RIDGE)], ids=["gp", "ridge", "pipe"])
def test_each_column_equals_its_regressor_on_the_graphs_with_a_value(digits, estimator):
    graphs, y = digits
    model = clone(estimator).fit(graphs[:70], y[:70])
    predicted = model.predict(graphs)
    assert predicted.shape == (100, 2)
    # The scaler is fitted on all graphs.
    scaled = model[:-1].transform(graphs) if isinstance(model, Pipeline) else graphs
    final = model[-1] if isinstance(model, Pipeline) else model
    for j, column in enumerate(y[:70].T):
        kept = np.flatnonzero(~np.isnan(column))
        alone = clone(final).fit(scaled[kept], column[kept])
        np.testing.assert_array_equal(predicted[:, j], alone.predict(scaled))
        np.testing.assert_array_equal(final.estimators_[j].predict(scaled), predicted[:, j])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(graphs), predicted)


def test_weights_and_groups_are_per_graph(digits):
    graphs, y = digits
    weights, groups = 1.0 + np.arange(100) % 3, np.arange(100) % 5
    ridge = GraphRidge(ODDCL(depth=0), param_grid={}, cv=GroupKFold(3))
    model = clone(ridge).fit(graphs, y, sample_weight=weights, groups=groups)
    for j, column in enumerate(y.T):
        kept = np.flatnonzero(~np.isnan(column))
        alone = clone(ridge).fit(graphs[kept], column[kept], sample_weight=weights[kept], groups=groups[kept])
        np.testing.assert_array_equal(model.predict(graphs)[:, j], alone.predict(graphs))
    expected = np.mean(
        [
            one.score(graphs[k], y[k, j], weights[k])
            for j, one in enumerate(model.estimators_)
            for k in [np.flatnonzero(~np.isnan(y[:, j]))]
        ]
    )
    assert model.score(graphs, y, weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(ridge).fit(graphs, y, sample_weight=weights[:9])


def test_refit_discards_the_first_fit(digits):
    graphs, y = digits
    model = clone(GP).fit(graphs, y)
    with pytest.raises(ValueError, match=r"fitted on several targets.*model.estimators_\[0\]"):
        model.prediction_interval(graphs)
    for ask in (model.calibrate, lambda *_: explain(model, graphs)):
        with pytest.raises(ValueError, match=r"fitted on several targets"):
            ask(*[graphs, y[:, 0]] if ask == model.calibrate else [])
    kept = slice(50, 100)
    alone = clone(GP).fit(graphs[kept], y[kept, 1])
    np.testing.assert_array_equal(model.fit(graphs[kept], y[kept, 1]).predict(graphs), alone.predict(graphs))
    assert not hasattr(model, "estimators_")
    assert model.prediction_interval(graphs).shape == (100, 2)
    assert not hasattr(model.fit(graphs, y), "kernel_")


def test_standard_deviations(digits):
    graphs, y = digits
    model = clone(GP).fit(graphs, y.tolist())
    mean, std = model.predict(graphs[:7], return_std=True)
    assert mean.shape == std.shape == (7, 2)
    for j, one in enumerate(model.estimators_):
        np.testing.assert_array_equal(std[:, j], one.predict(graphs[:7], return_std=True)[1])
    with pytest.raises(TypeError, match="return_std"):
        clone(RIDGE).fit(graphs, y).predict(graphs, return_std=True)


def test_score_ignores_missing_values(digits):
    graphs, y = digits
    model = clone(GP).fit(graphs[:70], y[:70])
    expected = []
    for j in range(2):
        kept = 70 + np.flatnonzero(~np.isnan(y[70:, j]))
        expected.append(r2_score(y[kept, j], model.predict(graphs[kept])[:, j]))
    assert model.score(graphs[70:], y[70:]) == pytest.approx(np.mean(expected))
    assert np.isfinite(cross_val_score(clone(GP), graphs, y, cv=3, error_score="raise")).all()
    only = np.column_stack([np.full(30, np.nan), y[70:, 1]])
    assert model.score(graphs[70:], only) == pytest.approx(expected[1])
    with pytest.raises(ValueError, match="at least two values in some column"):
        model.score(graphs[:5], np.full((5, 2), np.nan))
    with pytest.raises(ValueError, match="y must have 2 columns, as in fit; got 1"):
        model.score(graphs[:5], y[:5, :1])


def test_single_column_stays_2d(digits):
    graphs, y = digits
    model = GraphRegressor().fit(graphs[:40], y[:40, 1:])
    assert isinstance(model.estimators_[0], GraphRegressor)
    assert is_regressor(model)
    assert model.predict(graphs[:3]).shape == (3, 1)


def test_each_column_is_explained_separately(digits):
    graphs, y = digits
    model = clone(RIDGE).fit(graphs, y)
    explanation = explain(model.estimators_[1], graphs[:4])
    np.testing.assert_allclose(explanation.predictions, model.predict(graphs[:4])[:, 1])
    predicted = model.estimators_[1]._from_scale(explanation.decisions)
    np.testing.assert_allclose(predicted, explanation.predictions)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y[:, :0], r"a column for each target; got shape \(100, 0\)"),
        (lambda y: y[:9], r"a row for each of 100 graphs .*; got shape \(9, 2\)"),
        (lambda y: [["a", "b"]] * 100, "could not convert string to float"),
        (lambda y: np.where(y == y[1, 1], np.inf, y), r"y\[1, 1\] is inf"),
        (lambda y: np.column_stack([y, [1.0] + [np.nan] * 99]), r"y\[:, 2\] must have a value for at least two.*got 1"),
    ],
)
def test_invalid_targets_raise(digits, change, message):
    graphs, y = digits
    with pytest.raises(ValueError, match=message):
        clone(GP).fit(graphs, change(y))


def test_error_of_single_target_models_names_those_that_take_several(digits):
    graphs, y = digits
    for model in (GraphSVC("wl"), GraphClassifier(), GraphRidge("precomputed")):
        X = np.eye(100) if "precomputed" in repr(model) else graphs
        with pytest.raises(ValueError, match="Only GraphRegressor, GraphRidge and GraphGP take several numbers"):
            model.fit(X, y)
