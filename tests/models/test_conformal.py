"""Tests of conformal intervals and sets: guaranteed coverage for all models and any error distribution."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from treegram import (
    WLCL,
    GraphClassifier,
    GraphGP,
    GraphRegressor,
    GraphRidge,
    Graphs,
    GraphSVC,
    load_model,
    save_model,
)

KERNEL = WLCL(0, missing_labels="constant", gamma=0.5)
REGRESSORS = [GraphRegressor([KERNEL]), GraphRidge(KERNEL, param_grid={}, cv=3), GraphGP(KERNEL, param_grid={})]
CLASSIFIERS = [GraphClassifier([KERNEL]), GraphSVC(KERNEL, param_grid={}, C=[1], cv=3)]


def draw(rng, n):
    """Return graphs of one node whose attribute predicts a target with heavy-tailed noise, and one of three classes."""
    x = rng.uniform(-2, 2, size=n)
    y = np.sin(2 * x) + 0.2 * rng.standard_t(2, size=n)
    return Graphs.from_edges([[]] * n, n_nodes=[1] * n, attributes=[[[v]] for v in x]), y, np.digitize(y, [-0.5, 0.5])


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_intervals_have_the_requested_coverage(model):
    rng = np.random.default_rng(0)
    graphs, y, _ = draw(rng, 80)
    model.fit(graphs, y)
    coverages, inside = [0.5, 0.8, 0.95], []
    for _ in range(25):  # the guarantee is an average over calibration graphs and new graphs
        graphs, y, _ = draw(rng, 99)
        model.calibrate(graphs[:39], y[:39])
        intervals = [model.prediction_interval(graphs[39:], coverage).T for coverage in coverages]
        inside.append([((low <= y[39:]) & (y[39:] <= high)).mean() for low, high in intervals])
    np.testing.assert_allclose(np.mean(inside, axis=0), coverages, atol=0.05)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_have_the_requested_coverage(model, n_classes):
    rng = np.random.default_rng(0)
    graphs, _, y = draw(rng, 80)
    names = np.array(["a", "b", "c"])[:n_classes]
    model.fit(graphs, names[y % n_classes])
    inside = []
    for _ in range(15):
        graphs, _, y = draw(rng, 60)
        y = y % n_classes
        sets = model.calibrate(graphs[:39], names[y[:39]]).prediction_set(graphs[39:], coverage=0.8)
        assert sets.shape == (21, n_classes)
        inside.append(sets[np.arange(21), y[39:]].mean())
    assert np.mean(inside) > 0.75  # ties make sets larger


def test_quantile_matches_the_definition():
    graphs, y, _ = draw(np.random.default_rng(1), 40)
    model = GraphRidge(KERNEL, param_grid={}, cv=3, target_transform=None).fit(graphs[:20], y[:20])
    model.calibrate(graphs[20:39], y[20:39])
    errors = np.sort(abs(y[20:39] - model.predict(graphs[20:39])))
    for coverage, rank in ((0.5, 10), (0.9, 18), (0.95, 19)):
        low, high = model.prediction_interval(graphs[39:], coverage)[0]
        assert (high - low) / 2 == pytest.approx(errors[rank - 1])
    np.testing.assert_array_equal(model.prediction_interval(graphs[39:], 0.96), [[-np.inf, np.inf]])


@pytest.mark.parametrize("model", [GraphRegressor([KERNEL]), GraphGP(KERNEL, param_grid={})], ids=["regressor", "gp"])
def test_without_calibration_graphs_intervals_use_leave_one_out_errors(model):
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(8):
        graphs, y, _ = draw(rng, 160)
        model.fit(graphs[:80], y[:80])
        intervals = [model.prediction_interval(graphs[80:], coverage).T for coverage in (0.5, 0.8, 0.95)]
        inside.append([((low <= y[80:]) & (y[80:] <= high)).mean() for low, high in intervals])
    np.testing.assert_allclose(np.mean(inside, axis=0), [0.5, 0.8, 0.95], atol=0.07)


def test_leave_one_out_errors_match_the_definition():
    """Compare with the process with the same noise and scale, conditioned on all graphs but one."""
    graphs, y, _ = draw(np.random.default_rng(4), 25)
    model = GraphRegressor([KERNEL]).fit(graphs, y)
    y = model.target_scale_.transform(y)
    K = model.weights_[0] * KERNEL.fit_transform(graphs) + model.noise_ * np.eye(25)
    z = (y - y.mean()) / y.std()
    errors = []
    for i in range(25):
        others = np.delete(np.arange(25), i)
        solved = np.linalg.solve(K[np.ix_(others, others)], np.column_stack([z[others], K[others, i]]))
        mean, explained = K[i, others] @ solved
        errors.append(abs(z[i] - mean) / np.sqrt(model.scale_ * (K[i, i] - explained)))
    np.testing.assert_allclose(model.calibration_, np.sort(errors), rtol=1e-6)


def test_without_calibration_graphs_sets_use_leave_one_out_scores():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(8):
        graphs, _, y = draw(rng, 160)
        sets = GraphClassifier([KERNEL]).fit(graphs[:80], y[:80]).prediction_set(graphs[80:], coverage=0.8)
        inside.append(sets[np.arange(80), y[80:]].mean())
    assert abs(np.mean(inside) - 0.8) < 0.07


def test_fit_resets_calibration_and_model_files_keep_it(tmp_path):
    graphs, y, classes = draw(np.random.default_rng(2), 60)
    models = (
        (GraphRegressor([KERNEL]), y),
        (GraphClassifier([KERNEL]), classes),
        (GraphRidge(KERNEL, param_grid={}, cv=3), y),
    )
    for model, targets in models:
        predict = "prediction_interval" if targets is y else "prediction_set"
        with pytest.raises(NotFittedError):
            getattr(model, predict)(graphs)
        model.fit(graphs[:30], targets[:30])
        if isinstance(model, GraphRidge):
            with pytest.raises(ValueError, match=r"not calibrated: call calibrate\(X, y\)"):
                getattr(model, predict)(graphs)
        model.calibrate(graphs[30:], targets[30:])
        save_model(model, tmp_path / "model.tgm")
        expected = getattr(model, predict)(graphs, coverage=0.7)
        np.testing.assert_allclose(getattr(load_model(tmp_path / "model.tgm"), predict)(graphs, coverage=0.7), expected)
        calibration = model.calibration_
        model.fit(graphs[:30], targets[:30])
        assert not np.array_equal(getattr(model, "calibration_", []), calibration)


def test_invalid_arguments_raise():
    graphs, _, classes = draw(np.random.default_rng(3), 40)
    model = GraphClassifier([KERNEL]).fit(graphs, classes)
    with pytest.raises(ValueError, match=r"y\[0\] is 7, which is not one of the fitted classes"):
        model.calibrate(graphs[:2], [7, 1])
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1; got 90"):
        model.calibrate(graphs, classes).prediction_set(graphs, coverage=90)
