"""Laws of regressors on a scale of their targets: units, error bars, near-copies, leave-one-out predictions, model files."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import KFold

from treegram import ODDCL, WLCL, GraphGP, GraphRegressor, GraphRidge, Graphs, load_model, save_model
from treegram.exceptions import ModelFileError, ParameterError
from treegram.models.gp import decompose, predict_left_out
from treegram.models.ridge import _choose_scales, _predict_left_out
from treegram.models.targets import blended_scales, choose_scale, target_scale

DOCS = Path(__file__).parents[2] / "docs"
KERNEL = WLCL(0, missing_labels="constant", gamma=0.5)
ALPHAS = [0.01, 0.1, 1.0]
MODELS = {
    "GraphRegressor": GraphRegressor([KERNEL]),
    "GraphGP": GraphGP(KERNEL, param_grid={}),
    "GraphRidge": GraphRidge(KERNEL, param_grid={}, alpha=ALPHAS),
    "GraphRidge, folds": GraphRidge(KERNEL, param_grid={}, alpha=ALPHAS, cv=3),
}


def draw(rng, n, shape=np.exp, noise=0.2):
    """Return graphs of one node whose attribute predicts a target: a function of a sine with noise."""
    x = rng.uniform(-2, 2, size=n)
    y = shape(2 * np.sin(2 * x) + noise * rng.normal(size=n))
    return Graphs.from_edges([[]] * n, n_nodes=[1] * n, attributes=[[[value]] for value in x]), y


@pytest.fixture(scope="module")
def skewed():
    return draw(np.random.default_rng(0), 120, lambda z: np.exp(2 * z))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("factor", "shift"), [(1000.0, -5.0), (-0.001, 2.0), (1e-12, 0.0)])
def test_predictions_follow_units_of_the_target(name, factor, shift, skewed):
    graphs, y = skewed
    y = y - 1.0  # so that nothing is special about 0
    mine = clone(MODELS[name]).fit(graphs[:80], y[:80])
    other = clone(MODELS[name]).fit(graphs[:80], factor * y[:80] + shift)
    tolerance = 1e-5 * abs(factor) * np.ptp(y)
    np.testing.assert_allclose(other.predict(graphs), factor * mine.predict(graphs) + shift, atol=tolerance)
    if "Ridge" in name:
        mine.calibrate(graphs[80:], y[80:])
        other.calibrate(graphs[80:], factor * y[80:] + shift)
    else:
        stds = [model.predict(graphs, return_std=True)[1] for model in (mine, other)]
        np.testing.assert_allclose(stds[1], abs(factor) * stds[0], rtol=1e-4)
    ends = np.sort(factor * mine.prediction_interval(graphs, 0.8) + shift, axis=1)
    np.testing.assert_allclose(other.prediction_interval(graphs, 0.8), ends, atol=10 * tolerance)


numbers = st.one_of(
    st.lists(st.integers(-3, 3).map(float), min_size=9, max_size=9),
    st.lists(st.floats(-1e6, 1e6), min_size=9, max_size=9),
    st.lists(st.floats(-300, 300).map(lambda power: float(np.exp(power))), min_size=9, max_size=9),
)


@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=25, deadline=None)
@given(y=numbers)
def test_predictions_of_any_numbers_are_finite_and_inside_their_intervals(name, y):
    graphs, _ = draw(np.random.default_rng(1), 15)
    y = np.array(y)
    model = clone(MODELS[name]).fit(graphs[:9], y)
    if "Ridge" in name:
        model.calibrate(graphs[:9], y)
        median = model.predict(graphs)
    else:
        median, std = model.predict(graphs, return_std=True)
        assert np.isfinite(std).all()
        assert (std >= 0).all()
    low, high = model.prediction_interval(graphs, 0.5).T
    rounding = 1e-9 * (np.abs(y).max() + 1e-300)
    assert np.isfinite([low, median, high]).all()
    assert (low <= median + rounding).all()
    assert (median <= high + rounding).all()


@pytest.mark.parametrize("name", ["GraphRegressor", "GraphGP"])
@pytest.mark.parametrize("shape", [np.exp, np.tanh, lambda z: np.round(np.maximum(z, 0.0), 1)])
def test_coverage_and_error_of_skewed_bounded_and_tied_targets(name, shape):
    rng = np.random.default_rng(0)
    inside, errors, of_plain = [], [], []
    for _ in range(6):
        graphs, y = draw(rng, 200, shape)
        model = clone(MODELS[name]).fit(graphs[:100], y[:100])
        intervals = [model.prediction_interval(graphs[100:], coverage).T for coverage in (0.8, 0.9, 0.95)]
        inside.append([((low <= y[100:]) & (y[100:] <= high)).mean() for low, high in intervals])
        plain = clone(model).set_params(target_transform=None).fit(graphs[:100], y[:100])
        errors.append(np.abs(model.predict(graphs[100:]) - y[100:]).mean())
        of_plain.append(np.abs(plain.predict(graphs[100:]) - y[100:]).mean())
    np.testing.assert_allclose(np.mean(inside, axis=0), [0.8, 0.9, 0.95], atol=0.05)
    assert np.mean(errors) < 1.02 * np.mean(of_plain)


def test_skewed_targets_have_skewed_intervals_that_stay_in_range(skewed):
    graphs, y = skewed
    model = GraphRegressor([KERNEL]).fit(graphs[:80], y[:80])
    assert model.target_scale_.blend < 0.5
    low, high = model.prediction_interval(graphs[80:], 0.9).T
    median = model.predict(graphs[80:])
    is_low = median < np.median(y)  # near 0, where there is more room above
    assert ((high - median) > 2 * (median - low))[is_low].mean() > 0.9
    plain = GraphRegressor([KERNEL], target_transform=None).fit(graphs[:80], y[:80])
    assert low.min() > y.min() - 0.2
    assert plain.prediction_interval(graphs[80:], 0.9).min() < -0.5
    assert model.loo_scores_["mae"] < plain.loo_scores_["mae"]


@pytest.mark.parametrize("kind", [GraphRegressor, GraphGP])
def test_near_copies_that_agree_by_chance_do_not_make_error_bars_vanish(kind):
    """Two pairs of equal graphs with nearly equal targets once drove the noise to 3e-7, and the interval to a point."""
    x = np.linspace(-2, 2, 60)
    graphs = Graphs.from_edges([[]] * 60, n_nodes=[1] * 60, attributes=[[[value]] for value in x])
    y = 2 * np.sin(2 * x) + 0.4 * np.random.default_rng(3).normal(size=60)
    train, targets = graphs[[*range(60), 0, 1]], np.append(y, y[:2] + 1e-6)
    options = {} if kind is GraphRegressor else {"param_grid": {}, "noise": tuple(np.logspace(-7, 1, 30))}
    narrow = ODDCL(depth=0, missing_labels="constant", gamma=100.0)  # 0.63 for neighbors
    stds = []
    for transform in (None, "auto"):
        model = kind([narrow], target_transform=transform, **options).fit(train, targets)
        stds.append(model.predict(graphs[:2], return_std=True)[1] / y.std())
    assert (stds[0] < 0.01).all()  # near-equal molecules differ by .1 to .8
    assert (stds[1] > 0.1).all()
    low, high = model.prediction_interval(graphs[:2], 0.95).T
    assert (low < y[:2] - 0.1 * y.std()).all()
    assert (high > y[:2] + 0.1 * y.std()).all()


# -------------------------------------------------------------------- leave-one-out predictions


@pytest.mark.parametrize("weights", [np.ones(25), 1.0 + np.arange(25) % 3], ids=["equal", "weighted"])
def test_left_out_distributions_equal_brute_force(skewed, weights):
    """The noise of a graph is divided by its weight."""
    graphs, y = skewed
    graphs, y, noises = graphs[:25], y[:25], 0.2 / weights
    K = KERNEL.fit_transform(graphs)
    values, vectors = decompose(K, weights)
    for _, z in blended_scales(y):
        mean, std = predict_left_out(values, vectors, z, 0.2)
        size = z @ np.linalg.solve(K + np.diag(noises), z) / 25
        for i in range(25):
            others = np.delete(np.arange(25), i)
            A = np.linalg.inv(K[np.ix_(others, others)] + np.diag(noises[others]))
            assert mean[i] == pytest.approx(K[i, others] @ A @ z[others], abs=1e-8)
            left = K[i, i] - K[i, others] @ A @ K[others, i] + noises[i]
            assert std[i] == pytest.approx(np.sqrt(size * left))


def test_regressor_has_the_scale_noise_and_scores_of_a_literal_search(skewed):
    graphs, y = skewed
    graphs, y = graphs[:40], y[:40]
    model = GraphRegressor([KERNEL]).fit(graphs, y)
    K, grid = KERNEL.fit_transform(graphs), np.linspace(-8, 3, 2001)
    values, vectors = np.linalg.eigh(K)
    scales, left_out, noises = [], [], []
    for scale, z in blended_scales(y):
        z = z - z.mean()
        squares = (vectors.T @ z) ** 2
        losses = [
            np.log(values + np.exp(at)).sum()
            + 40 * np.log((squares / (values + np.exp(at))).mean())
            + (at - np.log(0.1)) ** 2
            for at in grid
        ]
        noises.append(np.exp(grid[np.argmin(losses)]))
        scales.append(scale)
        left_out.append(predict_left_out(values, vectors, z, noises[-1]))
    best = choose_scale(y, scales, left_out)
    assert str(model.target_scale_) == str(scales[best])
    assert model.noise_ == pytest.approx(noises[best], rel=0.01)
    errors = y - scales[best].inverse(left_out[best][0])
    assert model.loo_scores_["mae"] == pytest.approx(np.abs(errors).mean(), rel=0.01)
    assert model.loo_scores_["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=0.01)
    assert model.loo_scores_["r2"] == pytest.approx(1 - (errors**2).mean() / y.var(), rel=0.01)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_ridge_scores_are_those_of_literal_predictions_in_units_of_the_target(skewed, is_weighted):
    graphs, y = skewed
    graphs, y = graphs[:36], y[:36]
    weights = np.arange(36) % 3 + (0.0 if is_weighted else 1.0)
    weights = weights if is_weighted else None
    K, alphas = KERNEL.fit_transform(graphs), np.array(ALPHAS)
    split = list(KFold(3, shuffle=True, random_state=0).split(y))
    model = GraphRidge(KERNEL, param_grid={}, alpha=ALPHAS, cv=split).fit(graphs, y, sample_weight=weights)
    for a, alpha in enumerate(ALPHAS):
        scores = []
        for train, test in split:
            parts = [None if weights is None else weights[part] for part in (train, test)]
            scales = blended_scales(y[train], parts[0])  # never sees a target of the test part
            within = K[np.ix_(train, train)]
            chosen, _ = _choose_scales(within, y[train], scales, alphas, parts[0])
            scale, z = scales[chosen[a]]
            of_noise = np.ones(len(train)) if parts[0] is None else parts[0]
            root = np.sqrt(of_noise)
            center = np.average(z, weights=of_noise)
            inner = np.linalg.solve(root[:, None] * within * root + alpha * np.eye(len(train)), root * (z - center))
            predicted = scale.inverse(K[np.ix_(test, train)] @ (root * inner) + center)
            errors = np.average(np.abs(predicted - y[test]), weights=parts[1])
            scores.append(1 - errors / np.abs(y - np.median(y)).mean())
        row = list(model.cv_results_["param_alpha"]).index(alpha)
        assert model.cv_results_["mean_test_score"][row] == pytest.approx(np.mean(scores))


def test_ridge_leaves_graphs_out_in_closed_form_on_each_scale(skewed):
    graphs, y = skewed
    y = y[:20]
    K, alphas = KERNEL.fit_transform(graphs[:20]), np.array([0.1, 1.0])
    positions = [z for _, z in blended_scales(y)]
    for z, predicted in zip(positions, _predict_left_out(K, positions, alphas, None), strict=True):
        for i in range(20):
            others = np.delete(np.arange(20), i)
            for a, alpha in enumerate(alphas):
                A = K[np.ix_(others, others)] + alpha * np.eye(19)
                mean = z[others].mean()
                literal = mean + K[i, others] @ np.linalg.solve(A, z[others] - mean)
                assert predicted[i, a] == pytest.approx(literal, abs=1e-8)


# -------------------------------------------------------------------- switches, words and files


@pytest.mark.parametrize("name", MODELS)
def test_few_distinct_targets_and_none_stay_plain(name, skewed):
    graphs, y = skewed
    plain = clone(MODELS[name]).set_params(target_transform=None).fit(graphs[:40], y[:40])
    assert plain.target_scale_ is None
    two = clone(MODELS[name]).fit(graphs[:40], (y[:40] > 1).astype(float))
    assert two.target_scale_ is None
    with pytest.raises(ParameterError, match=f"target_transform of {type(two).__name__} must be one of 'auto' or None"):
        clone(two).set_params(target_transform="log").fit(graphs, y)


def test_the_scale_is_said_in_words(skewed, tmp_path):
    graphs, y = skewed
    model = GraphRegressor([KERNEL]).fit(graphs, y)
    words = f"targets: {model.target_scale_}"
    assert re.fullmatch(r"targets: normal scores( blended with 0\.\d+ of the plain values)?", words)
    assert repr(model).endswith(f"; {words}")
    assert str(model.search_summary()).endswith(f"\n{words}")
    assert f"<p>{words}</p>" in model.search_summary()._repr_html_()
    assert "targets:" not in repr(GraphRegressor([KERNEL], target_transform=None).fit(graphs, y))
    assert str(target_scale(y, 1.0)) == "plain values"
    save_model(model, tmp_path / "model.tgm")
    assert repr(load_model(tmp_path / "model.tgm")) == repr(model)


@pytest.mark.parametrize("name", MODELS)
def test_files_and_pickles_keep_the_scale_bit_for_bit(name, skewed, tmp_path):
    graphs, y = skewed
    model = clone(MODELS[name]).fit(graphs[:80], y[:80])
    assert model.target_scale_ is not None
    if "Ridge" in name:
        model.calibrate(graphs[80:], y[80:])
    save_model(model, tmp_path / "model.tgm")
    for copy in (load_model(tmp_path / "model.tgm"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict(graphs), model.predict(graphs))
        np.testing.assert_array_equal(copy.prediction_interval(graphs), model.prediction_interval(graphs))
        assert str(copy.target_scale_) == str(model.target_scale_)


@pytest.mark.parametrize(
    ("attribute", "change", "message"),
    [
        ("targets", lambda values: values[::-1].copy(), "targets of a TargetScale must be .*: ascending"),
        ("targets", lambda values: np.where(values == values.max(), np.nan, values), "targets of .*: ascending"),
        ("scaled", lambda values: values[:-1], "scaled of a TargetScale must be an array of shape .16.: increasing"),
        ("scaled", lambda values: np.zeros(len(values)), "scaled of a TargetScale must be .*: increasing"),
        ("slopes", lambda values: -values, "slopes of a TargetScale must be .*: positive"),
        ("blend", lambda _: -1.0, "blend of a TargetScale must be a value: nonnegative"),
    ],
)
def test_loaded_scales_are_checked(attribute, change, message, skewed, tmp_path):
    graphs, y = skewed
    model = GraphRidge(KERNEL, param_grid={}).fit(graphs, y)
    object.__setattr__(model.target_scale_, attribute, change(getattr(model.target_scale_, attribute)))
    save_model(model, tmp_path / "model.tgm")
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "model.tgm")


def test_each_of_several_targets_has_a_scale(skewed):
    graphs, y = skewed
    model = GraphRegressor([KERNEL]).fit(graphs, np.column_stack([y, np.log(y), y > 1]))
    words = [str(estimator.target_scale_) for estimator in model.estimators_]
    assert words[0] != words[1]
    assert words[2] == "None"


def test_transformed_target_regressor_still_works(skewed):
    graphs, y = skewed
    inner = GraphRegressor([KERNEL], target_transform=None)
    wrapped = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp, check_inverse=False)
    expected = np.exp(clone(inner).fit(graphs[:80], np.log(y[:80])).predict(graphs[80:]))
    np.testing.assert_allclose(wrapped.fit(graphs[:80], y[:80]).predict(graphs[80:]), expected)
    both = TransformedTargetRegressor(GraphRegressor([KERNEL]), func=np.log, inverse_func=np.exp, check_inverse=False)
    assert np.isfinite(both.fit(graphs[:80], y[:80]).predict(graphs[80:])).all()


# -------------------------------------------------------------------- what the page says


def test_numbers_of_the_page_are_those_of_the_design_log():
    log = (DOCS / "auto_design_log.md").read_text().partition("## Scales of targets")[2]
    page = " ".join((DOCS / "regression.md").read_text().split())
    rows = [line.strip("| ").split(" | ") for line in log.splitlines() if line.startswith("| ")]
    scaffold = {row[0]: row for row in rows if row[1] == "scaffold"}
    assert len(scaffold) == 10
    gains = {name: -float(re.search(r"\(([-+][\d.]+) %\)", row[2])[1]) for name, row in scaffold.items()}
    said = re.search(
        r"errors are (\d+) % smaller on average than on the plain numbers, between ([\d.]+) and (\d+) %", page
    )
    assert [float(number) for number in said.groups()] == [
        round(np.mean(list(gains.values()))),
        min(gains.values()),
        round(max(gains.values())),
    ]
    ranks = re.search(r"for half-lives the rank correlation rises from ([\d.]+) to ([\d.]+)\.", page).groups()
    assert [float(number) for number in ranks] == [
        round(float(text), 2) for text in scaffold["half_life_obach"][4].split(" → ")
    ]
    worst = max(float(row[3].split(" ")[0]) for row in scaffold.values())
    assert f"rise by up to {worst:.0f} %" in page
    shares = {row[0]: [int(text) for text in row[2:]] for row in rows if row[0].startswith("random, new")}
    said = re.search(
        r"contain (\d+), (\d+) and (\d+) % of near-copies of .*?, and (\d+), (\d+) and (\d+) % of all", page
    )
    assert [int(text) for text in said.groups()] == shares["random, new, near-copies"] + shares["random, new, all"]
