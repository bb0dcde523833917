"""Tests of GraphGP against scikit-learn's Gaussian process on the same matrix, and of its intervals."""

import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone, is_regressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import treegram
from treegram import ODDCL, WL, GraphGP, GraphRidge, Graphs, KernelSum, ScaleAttributes


class Precomputed(Kernel):
    """A kernel that looks its values up: X are indices into a matrix."""

    def __init__(self, K, scale):
        self.K = K
        self.scale = scale

    def __call__(self, X, Y=None, eval_gradient=False):
        return self.scale * self.K[np.ix_(X[:, 0].astype(int), (X if Y is None else Y)[:, 0].astype(int))]

    def diag(self, X):
        return self.scale * self.K.diagonal()[X[:, 0].astype(int)]

    def is_stationary(self):
        return False


@pytest.fixture(scope="module")
def ink():
    """Return (graphs, how dark their pixels are, with some noise)."""
    graphs, _ = treegram.load_digits_graphs()
    y = np.array([graph.attributes[:, 2].mean() for graph in graphs[:120]])
    return graphs[:120], y + np.random.default_rng(0).normal(scale=0.05, size=120)


KERNELS = [
    ODDCL(depth=1),
    ODDCL(depth=1, normalize=False),
    make_pipeline(ScaleAttributes(), ODDCL(depth=0)),
    KernelSum([ODDCL(depth=0), ODDCL(depth=2)]),
]


@pytest.mark.parametrize("noise", [0.01, 1.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=["normalized", "not normalized", "pipeline", "sum"])
def test_means_deviations_and_likelihood_match_scikit_learn(ink, kernel, noise):
    graphs, y = ink
    train, test = np.arange(80)[:, None], np.arange(80, 120)[:, None]
    model = GraphGP(kernel, param_grid={}, noise=noise, target_transform=None).fit(graphs[:80], y[:80])
    fitted = clone(kernel).fit(graphs[:80])
    K = np.zeros((120, 120))
    K[:, :80] = fitted.transform(graphs)
    K[:80, 80:] = K[80:, :80].T
    alone = [clone(kernel).fit(graphs[i : i + 1]) for i in range(80, 120)]
    is_learned = hasattr(kernel, "steps")
    K[np.arange(80, 120), np.arange(80, 120)] = [
        1.0 if is_learned else one.transform(graphs[i : i + 1])[0, 0] for i, one in enumerate(alone, start=80)
    ]
    theirs = GaussianProcessRegressor(Precomputed(K, model.scale_), alpha=model.scale_ * noise, optimizer=None)
    center, unit = y[:80].mean(), y[:80].std()
    theirs.fit(train, (y[:80] - center) / unit)
    mean, std = theirs.predict(test, return_std=True)
    our_mean, our_std = model.predict(graphs[80:], return_std=True)
    np.testing.assert_allclose(our_mean, mean * unit + center, rtol=1e-6)
    np.testing.assert_allclose(our_std, unit * np.sqrt(std**2 + model.scale_ * noise), rtol=1e-4)  # of a new target
    assert model.noise_ == noise
    assert model.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(graphs[80:]), our_mean)


def test_scale_maximizes_the_likelihood(ink):
    graphs, y = ink
    model = GraphGP(ODDCL(depth=1), param_grid={}, noise=0.1, target_transform=None).fit(graphs, y)
    K, z, everyone = ODDCL(depth=1).fit_transform(graphs), (y - y.mean()) / y.std(), np.arange(120)[:, None]
    for factor in (0.9, 1.1):
        scale = factor * model.scale_
        other = GaussianProcessRegressor(Precomputed(K, scale), alpha=0.1 * scale, optimizer=None).fit(everyone, z)
        assert other.log_marginal_likelihood_value_ < model.log_marginal_likelihood_


def test_sample_weights_divide_the_noise(ink):
    graphs, y = ink
    graphs, y = graphs[:30], y[:30] + np.random.default_rng(0).normal(size=30) * y.std() / 3
    weights = 1.0 + np.arange(30) % 3
    model = GraphGP(ODDCL(depth=1), param_grid={}, noise=0.2, target_transform=None)
    model.fit(graphs, y, sample_weight=10 * weights)
    mean = np.average(y, weights=weights)
    unit = np.sqrt(np.average((y - mean) ** 2, weights=weights))
    z, K = (y - mean) / unit, ODDCL(depth=1).fit_transform(graphs)
    covariance = K + 0.2 * np.diag(weights.mean() / weights)
    np.testing.assert_allclose(model.predict(graphs), mean + unit * K @ np.linalg.solve(covariance, z), rtol=1e-8)
    density = multivariate_normal(np.zeros(30), model.scale_ * covariance).logpdf(z)
    assert model.log_marginal_likelihood_ == pytest.approx(density, rel=1e-6)
    alone = GraphGP("wl").fit(graphs[:20], y[:20]).predict(graphs)
    weighted = GraphGP("wl").fit(graphs, y, sample_weight=np.arange(30) < 20)
    np.testing.assert_allclose(weighted.predict(graphs), alone, rtol=1e-10)
    both = GraphGP("wl").fit(graphs, np.column_stack([y, -y]), sample_weight=np.arange(30) < 20)
    np.testing.assert_allclose(both.predict(graphs)[:, 0], alone, rtol=1e-10)


def test_most_likely_candidate_is_chosen(ink):
    graphs, y = ink
    grid, noises = {"depth": [0, 1], "lam": [0.5, 1.0]}, [0.01, 0.1, 1.0]
    model = GraphGP(ODDCL(), param_grid=grid, noise=noises).fit(graphs, y)
    found = model.results_["log_marginal_likelihood"]
    assert len(found) == len(model.results_["params"]) == 12
    assert model.log_marginal_likelihood_ == max(found)
    for params, value in zip(model.results_["params"], found, strict=True):
        alone = GraphGP(**params).fit(graphs, y)
        assert alone.log_marginal_likelihood_ == pytest.approx(value)
    assert repr(model.best_params_["kernel"]) == repr(model.kernel_)
    assert list(model.results_["param_depth"]) == [0] * 6 + [1] * 6


def test_mean_equals_ridge(ink):
    graphs, y = ink
    plain = {"param_grid": {}, "target_transform": None}
    model = GraphGP(ODDCL(depth=1), noise=0.3, **plain).fit(graphs[:80], y[:80])
    ridge = GraphRidge(ODDCL(depth=1), alpha=0.3, cv=2, **plain).fit(graphs[:80], y[:80])
    np.testing.assert_allclose(model.predict(graphs[80:]), ridge.predict(graphs[80:]))


def test_intervals_have_the_nominal_coverage(ink):
    graphs, y = ink
    inside = []
    for fold in range(4):
        test = np.arange(120) % 4 == fold
        model = GraphGP(ODDCL(), param_grid={"depth": [0, 1]}).fit(graphs[~test], y[~test])
        mean, std = model.predict(graphs[test], return_std=True)
        inside.append(np.abs(y[test] - mean) < 1.645 * std)
    assert 0.8 < np.mean(inside) < 0.98


def test_estimator_interface(ink):
    graphs, y = ink
    model = GraphGP("oddcl", param_grid={"depth": [0]}, n_jobs=2)
    assert is_regressor(model)
    assert cross_val_score(model, graphs, y, cv=3).mean() > 0.7
    model.fit(graphs, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(graphs, return_std=True), model.predict(graphs, return_std=True))


def test_constant_target(ink):
    model = GraphGP(ODDCL(depth=0), param_grid={}).fit(ink[0][:10], np.full(10, 7.0))
    mean, std = model.predict(ink[0], return_std=True)
    np.testing.assert_allclose(mean, 7.0)
    np.testing.assert_allclose(std, 0.0)


@pytest.mark.parametrize(
    ("noise", "y", "message"),
    [
        ([1, 0], range(10), "noise must be positive and finite"),
        (1.0, ["a"] * 10, "y must be real numbers"),
        (1.0, [None] * 10, r"y\[0\] is None"),
        (1.0, range(9), "10 graphs, got 9 targets"),
    ],
)
def test_invalid_input_raises(ink, noise, y, message):
    with pytest.raises(ValueError, match=message):
        GraphGP(ODDCL(), param_grid={}, noise=noise).fit(ink[0][:10], list(y))


def test_single_graph_raises(ink):
    with pytest.raises(ValueError, match="at least two graphs; got 1"):
        GraphGP(ODDCL(), param_grid={}).fit(ink[0][:1], [1.0])


@pytest.mark.parametrize("kernel", [WL(), WL(normalize=False)], ids=["normalized", "not normalized"])
def test_graph_with_zero_kernel_is_not_more_certain_than_others(kernel):
    graphs = Graphs.from_edges([[(i, i + 1) for i in range(n)] for n in range(1, 9)])
    empty = Graphs.from_edges([[]], n_nodes=[0])
    model = GraphGP(kernel, param_grid={}, noise=0.1, target_transform=None).fit(graphs, np.arange(8.0))
    mean, std = model.predict(empty, return_std=True)
    assert mean[0] == model.intercept_
    prior = kernel.fit_transform(graphs).diagonal().mean()
    assert std[0] == pytest.approx(np.arange(8).std() * np.sqrt(model.scale_ * (prior + 0.1)))
    assert std[0] > model.predict(graphs, return_std=True)[1].max()
