"""Tests of GraphClassifier: closed forms match explicit refits, weights and probabilities are correct, no leakage."""

import pickle
import re
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

from treegram import (
    ODDCL,
    WL,
    WLCL,
    GraphClassifier,
    Graphs,
    GraphSVC,
    ScaleAttributes,
    explain,
    load_digits_graphs,
    load_model,
    save_model,
)
from treegram.models import auto
from treegram.models.auto import (
    ALPHAS,
    auto_candidates,
    class_targets,
    fit_bias,
    fit_least_squares,
    fit_temperature,
    predict_by_mean,
    stack,
)


@pytest.fixture(scope="module")
def digits():
    graphs, y = load_digits_graphs()
    return graphs[:150], y[:150]


@pytest.fixture(scope="module")
def fitted(digits):
    return GraphClassifier().fit(digits[0][:100], digits[1][:100])


def random_problem(rng, n, n_outputs, rank, scale=1.0):
    X = rng.normal(size=(n, rank))
    return scale * (X @ X.T), rng.normal(size=(n, n_outputs)), rng.random(n) + 0.2


# -------------------------------------------------------------------- closed forms


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 12), n_outputs=st.integers(1, 3), scale=st.sampled_from([1.0, 1e6]))
def test_leave_one_out_matches_refits_without_the_graph(seed, n, n_outputs, scale):
    rng = np.random.default_rng(seed)
    K, Y, weights = random_problem(rng, n, n_outputs, int(rng.integers(1, 8)), scale)
    model = fit_least_squares(K, Y, weights)
    unit = K.diagonal().mean()
    errors = []
    for alpha in ALPHAS:
        held_out = np.empty_like(Y)
        for i in range(n):
            others = np.delete(np.arange(n), i)
            A = K[np.ix_(others, others)] / unit + 1.0 + alpha * np.diag(1.0 / weights[others])
            held_out[i] = (K[i, others] / unit + 1.0) @ np.linalg.solve(A, Y[others])
        errors.append(np.average(((Y - held_out) ** 2).mean(axis=1), weights=weights))
        if alpha == model.alpha:
            np.testing.assert_allclose(model.loo_predictions, held_out, rtol=1e-6, atol=1e-7)
    assert model.error == pytest.approx(min(errors), rel=1e-6)
    coefficients = np.linalg.solve(K / unit + 1.0 + model.alpha * np.diag(1.0 / weights), Y)
    np.testing.assert_allclose(model.coefficients, coefficients / unit, rtol=1e-5, atol=1e-6 / unit)
    np.testing.assert_allclose(model.intercept, coefficients.sum(axis=0), rtol=1e-5, atol=1e-6)


def test_prediction_by_the_mean_matches_the_definition():
    rng = np.random.default_rng(0)
    Y, weights = rng.normal(size=(9, 2)), rng.random(9) + 0.1
    expected = [np.average(np.delete(Y, i, 0), axis=0, weights=np.delete(weights, i)) for i in range(9)]
    np.testing.assert_allclose(predict_by_mean(Y, weights), expected)


def test_both_solvers_agree():
    rng = np.random.default_rng(0)
    K, Y, weights = random_problem(rng, 30, 2, 40)
    best = fit_least_squares(K, Y, weights)
    other = fit_least_squares(K, Y, weights, alpha=best.alpha)
    assert other.alpha == best.alpha
    np.testing.assert_allclose(other.error, best.error, rtol=1e-5)
    np.testing.assert_allclose(other.loo_predictions, best.loo_predictions, atol=1e-5)
    np.testing.assert_allclose(other.coefficients, best.coefficients, atol=1e-4)
    np.testing.assert_allclose(other.intercept, best.intercept, atol=1e-4)


def test_stacking_weights_minimize_the_error():
    rng = np.random.default_rng(0)
    Y, weights = rng.normal(size=(40, 3)), rng.random(40) + 0.1
    held_out = [Y + s * rng.normal(size=Y.shape) for s in (0.5, 1.0, 3.0)] + [-Y]
    shares = stack(held_out, Y, weights)

    def error(w):
        return float(weights @ ((np.tensordot(w, held_out, 1) - Y) ** 2).sum(axis=1))

    best = minimize(error, np.full(4, 0.25), bounds=[(0, None)] * 4).x
    np.testing.assert_allclose(shares, best / best.sum(), atol=1e-4)
    assert shares[3] == 0
    np.testing.assert_array_equal(stack([-Y, -2 * Y], Y, weights), [1.0, 0.0])  # none is useful: the least bad one


# -------------------------------------------------------------------- the model


def test_decision_is_the_weighted_sum_over_kernels(digits):
    """Compute the whole model explicitly: one model per kernel on all graphs, and their weighted sum."""
    graphs, y = digits
    train, test = graphs[:80], graphs[80:100]
    kernels = [ODDCL(depth=1), make_pipeline(ScaleAttributes(), WLCL(1)), WL(2)]
    model = GraphClassifier(kernels).fit(train, y[:80])
    Y, ones = class_targets(np.unique(y[:80], return_inverse=True)[1], 10), np.ones(80)
    fitted = [clone(kernel) for kernel in kernels]
    models = [fit_least_squares(kernel.fit_transform(train), Y, ones) for kernel in fitted]
    shares = stack([one.loo_predictions for one in models], Y, ones)
    kept = [i for i in range(3) if shares[i] >= 0.03]
    shares = stack([models[i].loo_predictions for i in kept], Y, ones)
    expected = sum(
        share * (fitted[i].transform(test) @ models[i].coefficients + models[i].intercept)
        for share, i in zip(shares, kept, strict=True)
    )
    np.testing.assert_allclose(model.decision_function(test), expected, atol=1e-10)
    np.testing.assert_array_equal(model.predict(test), model.classes_[expected.argmax(axis=1)])
    np.testing.assert_allclose(model.weights_, np.sort(shares)[::-1])
    assert model.weights_.sum() == pytest.approx(1.0)
    parts, intercept, outputs = model._decision_parts()
    assert outputs == tuple(range(10))
    total = sum(kernel.transform(test) @ weights for kernel, weights in parts) + intercept
    np.testing.assert_allclose(total, expected, atol=1e-10)


def test_leave_one_out_decisions_match_models_without_the_graph(digits):
    """With one kernel and its regularization, leaving out a graph and refitting gives the same decision."""
    graphs, y = digits
    y = (y >= 5)[:24]
    model = GraphClassifier([ODDCL(depth=1)]).fit(graphs[:24], y)
    for i in (0, 7, 23):
        others = np.delete(np.arange(24), i)
        Y = class_targets(y[others].astype(int), 2)
        kernel = ODDCL(depth=1)
        K = kernel.fit_transform(graphs[others])
        c = np.linalg.solve(K + 1.0 + model.alphas_[0] * np.eye(23), Y)
        expected = (kernel.transform(graphs[i : i + 1]) + 1.0) @ c
        assert model.loo_decisions_[i] == pytest.approx(expected.item(), abs=1e-9)


def test_default_model(digits, fitted):
    graphs, y = digits
    assert fitted.score(graphs[100:], y[100:]) > 0.85
    assert len(fitted.kernels_) == len(fitted.weights_) == len(fitted.dual_coefs_) == len(fitted.alphas_)
    assert fitted.weights_.min() > 0
    records = fitted.search_results_
    assert sum(record["weight"] is not None for record in records) == len(fitted.kernels_)
    names = {record["candidate"] for record in records}
    assert names == {one.name for one in auto_candidates(graphs[:100])}


def test_repeated_and_threaded_fits_are_equal(digits, fitted):
    graphs, y = digits
    again = GraphClassifier(n_jobs=2).fit(graphs[:100], y[:100])
    np.testing.assert_array_equal(again.decision_function(graphs[100:]), fitted.decision_function(graphs[100:]))
    np.testing.assert_array_equal(again.weights_, fitted.weights_)


def test_kernels_are_screened_on_a_subsample_and_few_are_fitted_on_all(digits, monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SAMPLE", 60)
    graphs, y = digits
    model = GraphClassifier().fit(graphs[:100], y[:100])
    sizes = [record["n_graphs"] for record in model.search_results_]
    assert sizes == [60] * (len(sizes) - auto.N_FINALISTS) + [100] * auto.N_FINALISTS
    assert model.score(graphs[100:], y[100:]) > 0.8


def test_permuted_classes_give_chance_accuracy(digits):
    graphs, _ = digits
    y = np.random.default_rng(0).permutation([0, 1] * 30)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was learned")
        scores = cross_val_score(GraphClassifier(), graphs[:60], y, cv=StratifiedKFold(3, shuffle=True, random_state=0))
    assert 0.25 < np.mean(scores) < 0.75


# -------------------------------------------------------------------- probabilities and weights


@pytest.mark.parametrize("n_classes", [2, 10])
def test_probabilities(digits, n_classes):
    graphs, y = digits
    y = y % n_classes
    model = GraphClassifier([ODDCL(depth=1), WL(1)]).fit(graphs[:100], y[:100])
    p = model.predict_proba(graphs[100:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(graphs[100:]))
    frequencies = np.bincount(y[:100], minlength=n_classes) / 100
    assert log_loss(y[100:], p, labels=range(n_classes)) < log_loss(
        y[100:], np.tile(frequencies, (50, 1)), labels=range(n_classes)
    )


def test_probabilities_are_calibrated():
    """Classes are drawn with known probabilities; predictions must match their frequencies."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=400)
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * x))).astype(int)
    graphs = Graphs.from_edges([[]] * 400, n_nodes=[1] * 400, attributes=[[[value]] for value in x])
    p = cross_val_predict(
        GraphClassifier([WLCL(0, missing_labels="constant", gamma=0.5)]), graphs, y, cv=5, method="predict_proba"
    )[:, 1]
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
        inside = (p >= low) & (p <= high)
        assert abs(y[inside].mean() - p[inside].mean()) < 0.12


def test_equal_weights_and_zero_weights(digits):
    graphs, y = digits
    kernels = [ODDCL(depth=1), WL(1)]
    model = GraphClassifier(kernels).fit(graphs[:60], y[:60])
    doubled = GraphClassifier(kernels).fit(graphs[:60], y[:60], sample_weight=np.full(60, 2.0))
    np.testing.assert_allclose(doubled.decision_function(graphs), model.decision_function(graphs))
    some = GraphClassifier(kernels).fit(graphs[:70], y[:70], sample_weight=np.arange(70) < 60)
    np.testing.assert_allclose(some.decision_function(graphs), model.decision_function(graphs))


def test_class_weights_shift_the_decision():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 6 == 0
    graphs = Graphs.from_edges([[]] * 120, n_nodes=[1] * 120, attributes=[[[v]] for v in rng.normal(size=120) + y])
    kernels = [WLCL(0, missing_labels="constant", gamma=0.3)]
    plain = GraphClassifier(kernels).fit(graphs, y)
    balanced = GraphClassifier(kernels, class_weight="balanced").fit(graphs, y)
    named = GraphClassifier(kernels, class_weight={True: 3.0, False: 0.6}).fit(graphs, y)
    assert plain.predict(graphs).mean() < balanced.predict(graphs).mean()
    np.testing.assert_allclose(named.decision_function(graphs), balanced.decision_function(graphs))
    bias = balanced.intercept_ - plain.intercept_
    np.testing.assert_allclose(balanced.decision_function(graphs), plain.decision_function(graphs) + bias)
    np.testing.assert_allclose(balanced.loo_decisions_, plain.loo_decisions_ + bias)
    logistic = LogisticRegression(C=np.inf, class_weight="balanced").fit(plain.loo_decisions_[:, None], y)
    assert bias[0] == pytest.approx((logistic.intercept_ / logistic.coef_[:, 0])[0], abs=1e-3)
    with pytest.raises(ValueError, match="class_weight names 'x'"):
        GraphClassifier(kernels, class_weight={"x": 1}).fit(graphs, y)


# -------------------------------------------------------------------- what the model knows of itself


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_scores_match_scikit_learn(digits, n_classes):
    graphs, y = digits
    y = np.array(["a", "b", "c"])[y % n_classes]
    weights = 1.0 + np.arange(150) % 3
    model = GraphClassifier([ODDCL(depth=1)]).fit(graphs, y, sample_weight=weights)
    decisions = model.loo_decisions_
    columns = np.column_stack([-decisions, decisions]) if n_classes == 2 else decisions
    right = model.classes_[columns.argmax(axis=1)] == y
    areas = [roc_auc_score(y == c, columns[:, i], sample_weight=weights) for i, c in enumerate(model.classes_)]
    assert model.loo_scores_ == {
        "accuracy": pytest.approx(np.average(right, weights=weights)),
        "largest_class": pytest.approx(max(weights[y == c].sum() for c in "abc") / weights.sum()),
        "auc": pytest.approx(np.mean(areas)),
    }


def random_labels(n_graphs, n_nodes=6):
    rng = np.random.default_rng(0)
    return Graphs.from_edges(
        [[(i, i + 1) for i in range(n_nodes - 1)]] * n_graphs,
        labels=[rng.choice(["C", "N", "O"], n_nodes).tolist() for _ in range(n_graphs)],
    )


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.8), (0.5, 0.3, 0.2)])
def test_nothing_learned_predicts_the_shares(shares, class_weight, tmp_path):
    graphs, counts = random_labels(120), np.round(120 * np.array(shares)).astype(int)
    y = np.random.default_rng(1).permutation(np.repeat(np.arange(len(shares)), counts))
    model = GraphClassifier(class_weight=class_weight)
    with pytest.warns(UserWarning, match="Nothing was learned.* the shares of the classes for every graph") as caught:
        model.fit(graphs, y)
    assert caught[0].filename == __file__
    expected = np.full(len(shares), 1 / len(shares)) if class_weight else shares
    np.testing.assert_allclose(model.predict_proba(graphs[:4]), np.tile(expected, (4, 1)))
    assert set(model.predict(graphs)) == {np.argmax(expected)}
    assert model.loo_scores_["auc"] == 0.5
    assert model.loo_scores_["accuracy"] == pytest.approx(shares[np.argmax(expected)])
    assert repr(model).endswith("# nothing was learned: the shares of the classes")
    assert all(record["score"] > 0.1 for record in model.search_results_)  # not 0 on balanced classes
    np.testing.assert_allclose(explain(model, graphs[:2]).node_contributions[0], 0.0)
    save_model(model, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))
    assert repr(loaded) == repr(model)


@pytest.mark.parametrize("n_graphs", [40, 120])
def test_a_weak_signal_is_not_nothing(n_graphs):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=n_graphs), np.arange(n_graphs) % 2
    graphs = Graphs.from_edges([[]] * n_graphs, n_nodes=[1] * n_graphs, attributes=[[[v]] for v in x + 1.3 * y])
    model = GraphClassifier([WLCL(0, missing_labels="constant", gamma=0.3)]).fit(
        graphs, y
    )  # a warning would be an error
    assert model.loo_scores_["accuracy"] > 0.6


@pytest.mark.parametrize("n_classes", [2, 5])
def test_temperature_of_a_few_clear_decisions_allows_no_certainty(n_classes):
    """The most likely temperature is 0; two more graphs of unknown class leave a doubt that shrinks with more graphs."""
    doubts = []
    for n_graphs in (10, 100, 1000):
        codes = np.arange(n_graphs) % n_classes
        decisions = class_targets(codes, n_classes)
        temperature = fit_temperature(decisions, codes, np.ones(n_graphs))
        columns = np.hstack([-decisions, decisions]) if n_classes == 2 else decisions
        doubts.append(1.0 - softmax(columns / temperature, axis=1).max(axis=1).mean())
        assert doubts[-1] == pytest.approx(2 / (n_graphs + 2) * (n_classes - 1) / n_classes, rel=0.02)
    assert doubts == sorted(doubts, reverse=True)


# -------------------------------------------------------------------- targets that are no classes


@pytest.mark.parametrize(
    "kind", [partial(GraphClassifier, ["wlcl"]), partial(GraphSVC, "wlcl", cv=2, C=1, param_grid={})]
)
@pytest.mark.parametrize(
    ("y", "cure"),
    [
        (np.arange(60) // 2, "GraphRegressor"),
        (np.arange(60.0) // 2, "GraphRegressor"),
        ([f"name {min(i, 40)}" for i in range(60)], "Merge classes"),
    ],
)
def test_many_classes_warn(digits, kind, y, cure):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind().fit(digits[0][:60], y)
    (warning,) = (one for one in caught if "distinct values for 60 graphs" in str(one.message))
    assert cure in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize("kind", [GraphClassifier, GraphSVC])
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300, 2.0**53 + 2])
def test_numbers_that_are_no_classes_are_refused(digits, kind, value):
    with pytest.raises(ValueError, match=rf"y\[7\] is {re.escape(str(value))}: a class that is a number"):
        kind(["wlcl"]).fit(digits[0][:20], [1.0, 2.0] * 3 + [1.0, value] + [1.0, 2.0] * 6)


def test_large_whole_numbers_stay_different_classes(digits):
    graphs, y = digits
    large = 2**53 + (y < 5)
    model = GraphClassifier([ODDCL(depth=1)]).fit(graphs[:60], large[:60])
    assert model.classes_.tolist() == [2**53, 2**53 + 1]
    assert (model.predict(graphs[:60]) == large[:60]).mean() > 0.9


@pytest.mark.parametrize("kind", [GraphClassifier, GraphSVC])
def test_single_column_of_classes(digits, kind):
    graphs, y = digits
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = kind([ODDCL(depth=0)]).fit(graphs[:60], (y < 5)[:60, None])
    assert (
        model.predict(graphs[60:]).tolist()
        == kind([ODDCL(depth=0)]).fit(graphs[:60], (y < 5)[:60]).predict(graphs[60:]).tolist()
    )


# -------------------------------------------------------------------- files, small data, invalid arguments


def test_pickles_and_model_files(digits, fitted, tmp_path):
    graphs, _ = digits
    decisions = fitted.decision_function(graphs[100:])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(graphs[100:]), decisions)
    save_model(fitted, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    np.testing.assert_allclose(loaded.decision_function(graphs[100:]), decisions, rtol=1e-9)
    np.testing.assert_allclose(loaded.predict_proba(graphs[100:]), fitted.predict_proba(graphs[100:]), rtol=1e-9)
    assert loaded.search_results_ == fitted.search_results_


@pytest.mark.parametrize(
    "graphs",
    [
        Graphs.from_edges([[(0, 1)], [], [(0, 1), (1, 2)], []] * 2, n_nodes=[2, 1, 3, 2] * 2),
        Graphs.from_edges([[]] * 8, n_nodes=[0, 1] * 4),
        Graphs.from_edges([[(0, 1)]] * 8, labels=[["C", "N"]] * 8, attributes=[[[1.0, 1.0]] * 2] * 8),
    ],
    ids=["a few edges", "no nodes", "all alike"],
)
def test_tiny_data_sets(graphs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was learned")
        model = GraphClassifier().fit(graphs, ["a", "b"] * 4)
    assert set(model.predict(graphs)) <= {"a", "b"}
    assert np.isfinite(model.predict_proba(graphs)).all()


def test_class_of_one_graph_warns(digits):
    graphs, y = digits
    few = np.concatenate([np.flatnonzero(y == 0)[:5], np.flatnonzero(y == 1)[:5], np.flatnonzero(y == 2)[:1]])
    with pytest.warns(UserWarning, match="Class 2 has a single graph") as caught:
        model = GraphClassifier().fit(graphs[few], y[few])
    assert len(caught) == 1
    assert model.predict_proba(graphs[:3]).shape == (3, 3)


@pytest.mark.parametrize(
    ("arguments", "y", "message"),
    [
        ({}, np.zeros(20), "at least two classes"),
        ({}, np.arange(20) / 3, "y must be classes"),
        ({}, [0, 1], "one target for each graph"),
        ({"kernels": []}, [0, 1] * 10, "at least one"),
        ({"kernels": ["wll"]}, [0, 1] * 10, "unknown"),
        ({"kernels": "wl"}, [0, 1] * 10, "kernels"),
        ({"class_weight": "even"}, [0, 1] * 10, "class_weight"),
    ],
)
def test_invalid_arguments_raise(digits, arguments, y, message):
    with pytest.raises(ValueError, match=message):
        GraphClassifier(**arguments).fit(digits[0][:20], y)


def test_biases_of_many_classes_minimize_the_loss():
    rng = np.random.default_rng(0)
    codes = rng.choice(3, 300, p=[0.8, 0.15, 0.05])
    decisions = 2.0 * (codes[:, None] == np.arange(3)) - 1.0 + rng.normal(size=(300, 3))
    weights = 1.0 / np.bincount(codes)[codes]

    def loss(biases):
        logs = [
            log_softmax((decisions + biases) / t, axis=1)[np.arange(300), codes] @ weights
            for t in np.geomspace(0.1, 9, 400)
        ]
        return -max(logs)

    found = fit_bias(decisions, codes, weights)
    assert found[2] > found[1] > found[0]
    for step in 0.05 * np.vstack([np.eye(3), -np.eye(3)]):
        assert loss(found) <= loss(found + step) + 1e-9
