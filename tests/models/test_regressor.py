"""Tests of GraphRegressor: weights are optimal, predictions are those of a Gaussian process, intervals have coverage."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from treegram import (
    ODDCL,
    WL,
    WLCL,
    GraphGP,
    GraphRegressor,
    GraphRidge,
    Graphs,
    ScaleAttributes,
    load_digits_graphs,
    load_model,
    save_model,
)
from treegram.models import regressor
from treegram.models.auto import auto_candidates
from treegram.models.regressor import learn_weights

KERNELS = [ODDCL(depth=1), make_pipeline(ScaleAttributes(), WLCL(1)), WL(2)]


@pytest.fixture(scope="module")
def ink():
    """Return digits and how dark their inked pixels are."""
    graphs, _ = load_digits_graphs()
    return graphs[:120], np.array([graph.attributes[:, 2].mean() for graph in graphs[:120]])


@pytest.fixture(scope="module")
def fitted(ink):
    return GraphRegressor(KERNELS).fit(ink[0][:80], ink[1][:80])


def test_weights_maximize_likelihood_and_prior():
    rng = np.random.default_rng(0)
    grams = []
    for scale in (1.0, 5.0, 0.2):
        X = rng.normal(size=(25, 4))
        grams.append(scale * (X @ X.T))
    unit = [K / K.diagonal().mean() for K in grams]
    z = rng.multivariate_normal(np.zeros(25), unit[0] + 0.3 * unit[1] + 0.1 * np.eye(25))

    def loss(at):
        K = np.tensordot(np.exp(at[:3]), unit, 1) + np.exp(at[3]) * np.eye(25)
        return -multivariate_normal(np.zeros(25), K).logpdf(z) + ((at[:3] + np.log(3)) ** 2).sum() / 2

    best = minimize(
        loss, np.array([0.0, 0.0, 0.0, -2.0]), method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-7}
    )
    np.testing.assert_allclose(learn_weights(grams, z, np.ones(25)), np.exp(best.x[:3]), rtol=1e-3)
    assert np.abs(approx_fprime(best.x, loss, 1e-6)).max() < 1e-2


@pytest.mark.parametrize("transform", ["auto", None])
def test_predictions_match_a_gaussian_process(ink, transform):
    graphs, y = ink
    train, test = graphs[:80], graphs[80:]
    fitted = GraphRegressor(KERNELS, target_transform=transform).fit(train, y[:80])
    kernels = [clone(kernel) for kernel in fitted.kernels_]
    K = sum(w * kernel.fit_transform(train) for w, kernel in zip(fitted.weights_, kernels, strict=True))
    rows = sum(w * kernel.transform(test) for w, kernel in zip(fitted.weights_, kernels, strict=True))
    scale = fitted.target_scale_
    assert (scale is None) == (transform is None)
    on_scale = y[:80] if scale is None else scale.transform(y[:80])
    z, unit = (on_scale - on_scale.mean()) / on_scale.std(), on_scale.std()
    A = np.linalg.inv(K + fitted.noise_ * np.eye(80))
    left = fitted.weights_.sum() - np.einsum("ij,jk,ik->i", rows, A, rows) + fitted.noise_
    center, spread = on_scale.mean() + unit * rows @ A @ z, unit * np.sqrt(z @ A @ z / 80 * left)
    ends = [center - spread, center, center + spread]
    low, middle, high = ends if scale is None else [scale.inverse(values) for values in ends]
    mean, std = fitted.predict(test, return_std=True)
    np.testing.assert_allclose(mean, middle, rtol=1e-6)
    np.testing.assert_allclose(std, (high - low) / 2, rtol=1e-6)
    density = multivariate_normal(np.zeros(80), fitted.scale_ * (K + fitted.noise_ * np.eye(80))).logpdf(z)
    assert fitted.log_marginal_likelihood_ == pytest.approx(density, rel=1e-6)
    np.testing.assert_array_equal(fitted.predict(test), mean)


def test_decision_parts_sum_to_the_prediction_on_the_scale(ink, fitted):
    graphs, _ = ink
    parts, intercept, outputs = fitted._decision_parts()
    total = sum(kernel.transform(graphs[80:]) @ weights for kernel, weights in parts) + intercept
    np.testing.assert_allclose(fitted.target_scale_.inverse(total[:, 0]), fitted.predict(graphs[80:]), atol=1e-9)
    assert outputs == ("prediction",)


def test_default_model(ink):
    graphs, y = ink
    model = GraphRegressor().fit(graphs[:80], y[:80])
    assert model.score(graphs[80:], y[80:]) > 0.9
    assert {record["candidate"] for record in model.search_results_} == {
        one.name for one in auto_candidates(graphs[:80], with_counts=True)
    }
    assert sum(record["weight"] is not None for record in model.search_results_) == len(model.kernels_)
    again = GraphRegressor(n_jobs=2).fit(graphs[:80], y[:80])
    np.testing.assert_array_equal(again.predict(graphs[80:]), model.predict(graphs[80:]))


def test_intervals_have_the_nominal_coverage():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=300)
    y = np.sin(2 * x) + 0.3 * rng.normal(size=300)
    graphs = Graphs.from_edges([[]] * 300, n_nodes=[1] * 300, attributes=[[[value]] for value in x])
    kernels = [WLCL(0, missing_labels="constant", gamma=gamma) for gamma in (0.1, 1.0, 10.0)]
    mean, std = GraphRegressor(kernels).fit(graphs[:200], y[:200]).predict(graphs[200:], return_std=True)
    for width, share in ((0.674, 0.5), (1.282, 0.8), (1.96, 0.95)):
        assert abs((abs(y[200:] - mean) < width * std).mean() - share) < 0.12


def test_dissimilar_graph_has_the_largest_standard_deviation():
    """K(G, G) = 0 must not mean certainty."""
    labels = [[1, 1], [1, 2, 1], []] * 5
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)], []] * 5, n_nodes=[2, 3, 0] * 5, labels=labels)
    known = np.flatnonzero(graphs.sizes > 0)
    y = np.arange(15.0) % 3 + 0.1 * np.random.default_rng(0).normal(size=15)
    _, std = GraphRegressor(["wl", "oddst"]).fit(graphs[known], y[known]).predict(graphs[:3], return_std=True)
    assert std[2] > 2 * std[:2].max()


def test_weights_are_learned_on_a_subsample(ink, fitted, monkeypatch):
    monkeypatch.setattr(regressor, "SAMPLE", 40)
    graphs, y = ink
    model = GraphRegressor(KERNELS).fit(graphs[:80], y[:80])
    assert {record["n_graphs"] for record in model.search_results_} == {40}
    assert len(model.dual_coef_) == 80
    assert model.score(graphs[80:], y[80:]) > fitted.score(graphs[80:], y[80:]) - 0.1


def test_model_files(ink, fitted, tmp_path):
    graphs, _ = ink
    save_model(fitted, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    for one, other in zip(loaded.predict(graphs[80:], True), fitted.predict(graphs[80:], True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert loaded.search_results_ == fitted.search_results_


@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.parametrize("y", [np.full(6, 2.5), np.arange(6.0)])
def test_tiny_data_sets(y):
    graphs = Graphs.from_edges([[(0, 1)], [], [(0, 1), (1, 2)]] * 2, n_nodes=[2, 1, 3] * 2)
    mean, std = GraphRegressor().fit(graphs, y).predict(graphs, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    if y.std() == 0:
        np.testing.assert_allclose(mean, 2.5)


@pytest.mark.parametrize(
    ("kernels", "y", "message"),
    [
        ("auto", ["a"] * 6, "y must be real numbers"),
        ("auto", [1.0, np.nan] * 3, "missing"),
        ([], np.arange(6.0), "at least one"),
        ("wl", np.arange(6.0), "kernels"),
    ],
)
def test_invalid_arguments_raise(ink, kernels, y, message):
    with pytest.raises(ValueError, match=message):
        GraphRegressor(kernels).fit(ink[0][:6], y)


# -------------------------------------------------------------------- weights, scores, and nothing learned


def test_weights_are_shares_of_the_variance(ink):
    """A kernel that is not normalized has a large diagonal: its share does not depend on it."""
    graphs, y = ink
    model = GraphRegressor([WLCL(1), WLCL(1, normalize=False), ODDCL(depth=1)]).fit(graphs[:80], y[:80])
    assert model.weights_.sum() == pytest.approx(1.0)
    assert (np.diff(model.weights_) <= 0).all()
    records = [record for record in model.search_results_ if record["weight"] is not None]
    assert sorted((record["weight"] for record in records), reverse=True) == model.weights_.tolist()
    signal = sum(
        share * kernel.diag(graphs[:80]).mean() / unit
        for share, kernel, unit in zip(model.weights_, model.kernels_, model._priors, strict=True)
    )
    assert signal == pytest.approx(1.0)


def test_sample_weights_divide_the_noise(ink):
    graphs, y = ink
    graphs, y = graphs[:30], y[:30] + np.random.default_rng(0).normal(size=30) * y.std() / 3
    weights = 1.0 + np.arange(30) % 3
    model = GraphRegressor([ODDCL(depth=1)], target_transform=None).fit(graphs, y, sample_weight=10 * weights)
    relative = weights / weights.mean()
    mean = np.average(y, weights=weights)
    unit = np.sqrt(np.average((y - mean) ** 2, weights=weights))
    z, K = (y - mean) / unit, ODDCL(depth=1).fit_transform(graphs)
    covariance = K + model.noise_ * np.diag(1 / relative)
    np.testing.assert_allclose(model.predict(graphs), mean + unit * K @ np.linalg.solve(covariance, z), rtol=1e-8)
    assert model.scale_ == pytest.approx(z @ np.linalg.solve(covariance, z) / 30)
    density = multivariate_normal(np.zeros(30), model.scale_ * covariance).logpdf(z)
    assert model.log_marginal_likelihood_ == pytest.approx(density, rel=1e-6)
    errors = []
    for i in range(30):
        others = np.delete(np.arange(30), i)
        errors.append(z[i] - K[i, others] @ np.linalg.solve(covariance[np.ix_(others, others)], z[others]))
    assert model.loo_scores_["rmse"] == pytest.approx(unit * np.sqrt(np.average(np.square(errors), weights=weights)))
    assert model.loo_scores_["mae"] == pytest.approx(unit * np.average(np.abs(errors), weights=weights))
    assert model.loo_scores_["r2"] == pytest.approx(1 - np.average(np.square(errors), weights=weights))


def test_graphs_of_weight_zero_are_left_out(ink):
    graphs, y = ink
    weighted = GraphRegressor(KERNELS).fit(graphs[:60], y[:60], sample_weight=np.arange(60) < 40)
    expected = GraphRegressor(KERNELS).fit(graphs[:40], y[:40])
    np.testing.assert_allclose(weighted.predict(graphs[60:]), expected.predict(graphs[60:]))
    two = np.column_stack([y, -y])[:60]
    both = GraphRegressor(KERNELS).fit(graphs[:60], two, sample_weight=np.arange(60) < 40)
    np.testing.assert_allclose(both.predict(graphs[60:])[:, 0], expected.predict(graphs[60:]))


@pytest.mark.parametrize("kind", [GraphRegressor, GraphRidge, GraphGP])
@pytest.mark.parametrize("transform", ["auto", None])
def test_column_of_targets_is_one_target(ink, kind, transform):
    """scikit-learn's own regressors predict a column for a column; so do these, which fit a copy for each."""
    graphs, y = ink
    weights = 1.0 + np.arange(40) % 2
    model = kind([ODDCL(depth=1)], target_transform=transform)
    column = clone(model).fit(graphs[:40], y[:40, None], sample_weight=weights).predict(graphs[40:60])
    alone = clone(model).fit(graphs[:40], y[:40], sample_weight=weights).predict(graphs[40:60])
    assert column.shape == (20, 1)
    np.testing.assert_array_equal(column[:, 0], alone)


def test_nothing_learned_predicts_the_mean(ink):
    graphs, y = ink[0], 5.0 + 2.0 * np.random.default_rng(0).normal(size=120)
    with pytest.warns(UserWarning, match="Nothing was learned.* the mean of the targets") as caught:
        model = GraphRegressor(target_transform=None).fit(graphs, y)
    assert caught[0].filename == __file__
    mean, std = model.predict(graphs[:5], return_std=True)
    np.testing.assert_allclose(mean, y.mean(), rtol=1e-9)
    np.testing.assert_allclose(std, y.std(), rtol=1e-6)
    assert model.loo_scores_["rmse"] == pytest.approx(y.std(), rel=0.02)
    assert repr(model).endswith("# nothing was learned: the mean of the targets")


def test_nothing_learned_predicts_the_quantiles_of_skewed_targets(ink, tmp_path):
    graphs, y = ink[0], np.exp(2.0 * np.random.default_rng(0).normal(size=120))
    with pytest.warns(UserWarning, match="Nothing was learned.* the median of the targets") as caught:
        model = GraphRegressor().fit(graphs, y)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(model.predict(graphs[:5]), np.median(y), rtol=0.1)
    low, high = model.prediction_interval(graphs[:1], 0.9)[0]
    np.testing.assert_allclose([low, high], np.quantile(y, [0.05, 0.95]), rtol=0.3)
    assert ((low <= y) & (y <= high)).mean() == pytest.approx(0.9, abs=0.03)
    assert repr(model).endswith("# nothing was learned: the median of the targets")
    save_model(model, tmp_path / "model.tgm")
    assert repr(load_model(tmp_path / "model.tgm")) == repr(model)


@pytest.mark.parametrize("kind", [GraphRegressor, GraphRidge, GraphGP])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.inf, "inf: targets must be finite"),
        (1e300, r"1e\+300: targets must be at most 1e\+150"),
        (2**53 + 1, "9007199254740993: whole numbers beyond 2.53 are not exact"),
        (-(2**60), "whole numbers beyond"),
        (2**70, "whole numbers beyond"),
        (10**400, "y must be real numbers"),
    ],
)
def test_numbers_that_a_float_cannot_hold_are_refused(ink, kind, value, message):
    numbers = [1, 2, 3, value, 5, 6]
    with pytest.raises(ValueError, match=message):
        kind([ODDCL(depth=0)]).fit(ink[0][:6], numbers)
