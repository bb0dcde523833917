"""Tests of weights, scorers, splitters, names and probabilities against scikit-learn's own search."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treegram
from treegram import ODDCL, WL, WLCL, GraphGP, GraphRidge, GraphSVC
from treegram._core.machine import available_bytes
from treegram.models import search as search_module
from treegram.models.search import _split_grid
from treegram.models.svc import couple, fit_sigmoid

CS = [0.1, 1.0, 100.0]
ALPHAS = [0.01, 1.0, 10.0]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def rare():
    """Return 45 threes, 12 eights and 9 nines, their Gram matrix, and weights."""
    graphs, y = treegram.load_digits_graphs()
    chosen = np.sort(np.concatenate([np.flatnonzero(y == d)[:n] for d, n in ((3, 45), (8, 12), (9, 9))]))
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 5, size=len(chosen)) / 2.0
    return graphs[chosen], y[chosen], ODDCL(depth=1).fit_transform(graphs[chosen]), weights


def theirs(K, y, *, cv=FOLDS, groups=None, scoring=None):
    return GridSearchCV(SVC(kernel="precomputed"), {"C": CS}, cv=cv, scoring=scoring).fit(K, y, groups=groups)


def assert_same_search(ours, search, graphs, K):
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=1e-12)
    np.testing.assert_allclose(ours.cv_results_["std_test_score"], search.cv_results_["std_test_score"], atol=1e-12)
    assert ours.best_params_["C"] == search.best_params_["C"]
    np.testing.assert_array_equal(ours.predict(graphs), search.predict(K))


# -------------------------------------------------------------------- weights


@pytest.mark.parametrize("class_weight", [None, "balanced", {3: 0.2, 9: 7.0}])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_weighted_search_matches_svc(rare, class_weight, is_weighted):
    graphs, y, K, weights = rare
    weights, means = weights if is_weighted else None, np.zeros(3)
    ours = GraphSVC(ODDCL(depth=1), param_grid={}, C=CS, cv=FOLDS, class_weight=class_weight)
    ours.fit(graphs, y, sample_weight=weights)
    for train, test in FOLDS.split(K, y):
        for c, C in enumerate(CS):
            svc = SVC(kernel="precomputed", C=C, class_weight=class_weight)
            svc.fit(K[np.ix_(train, train)], y[train], sample_weight=None if weights is None else weights[train])
            right = svc.predict(K[np.ix_(test, train)]) == y[test]
            means[c] += np.average(right, weights=None if weights is None else weights[test]) / 3
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], means, atol=1e-12)
    svc = SVC(kernel="precomputed", C=ours.best_params_["C"], class_weight=class_weight)
    decisions = svc.fit(K, y, sample_weight=weights).decision_function(K)
    np.testing.assert_allclose(ours.decision_function(graphs), decisions, atol=5e-3)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 3.0] * 5])
def test_coefficients_match_svc(rare, weights):
    graphs, y, K, _ = rare
    chosen = np.concatenate([np.flatnonzero(y == digit)[:10] for digit in (3, 8)])
    ours = GraphSVC(ODDCL(depth=1), param_grid={}, C=0.7, cv=2).fit(graphs[chosen], y[chosen], sample_weight=weights)
    svc = SVC(kernel="precomputed", C=0.7, tol=1e-6).fit(K[np.ix_(chosen, chosen)], y[chosen], sample_weight=weights)
    np.testing.assert_array_equal(ours.n_support_, svc.n_support_)
    np.testing.assert_array_equal(ours.support_, svc.support_)
    np.testing.assert_allclose(-ours.dual_coef_, svc.dual_coef_, atol=5e-3)  # our signs are those of the first class
    np.testing.assert_allclose(-ours.intercept_, svc.intercept_, atol=5e-3)


def test_zero_weight_equals_leaving_the_graph_out(rare):
    graphs, y, _, weights = rare
    kept = weights > 1
    model = GraphSVC(ODDCL(depth=1), param_grid={}, C=1, cv=[(np.arange(60), np.arange(60, 66))])
    weighted = model.fit(graphs, y, sample_weight=kept).decision_function(graphs)
    fewer = GraphSVC(ODDCL(depth=1), param_grid={}, C=1, cv=2).fit(graphs[kept], y[kept])
    np.testing.assert_allclose(weighted, fewer.decision_function(graphs), atol=5e-3)  # both within the tolerance


def test_balanced_weights_help_rare_classes(rare):
    graphs, y, _, _ = rare
    plain, balanced = (
        GraphSVC(ODDCL(depth=1), param_grid={}, C=0.1, cv=FOLDS, class_weight=weight).fit(graphs, y).predict(graphs)
        for weight in (None, "balanced")
    )
    assert balanced_accuracy_score(y, balanced) > balanced_accuracy_score(y, plain)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_ridge_weights_match_kernel_ridge(rare, is_weighted):
    graphs, _, K, weights = rare
    y = np.array([graph.attributes[:, 2].mean() for graph in graphs])
    weights = weights if is_weighted else None
    center = np.average(y, weights=weights)
    ours = GraphRidge(ODDCL(depth=1), param_grid={}, alpha=0.3, cv=3).fit(graphs, y, sample_weight=weights)
    ridge = KernelRidge(kernel="precomputed", alpha=0.3).fit(K, y - center, sample_weight=weights)
    np.testing.assert_allclose(ours.predict(graphs), ridge.predict(K) + center)


@pytest.mark.parametrize("kind", [GraphSVC, GraphRidge])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"one number for each of 66 graphs; got shape \(2,\)"),
        ([-1.0] * 66, r"sample_weight\[0\] is -1.0"),
        ([1.0] * 65 + [np.nan], r"sample_weight\[65\] is nan"),
        ([0.0] * 66, "and not 0 for all"),
    ],
)
def test_invalid_weights_raise(rare, kind, weights, message):
    with pytest.raises(ValueError, match=message):
        kind(ODDCL(), param_grid={}, cv=2).fit(*rare[:2], sample_weight=weights)


def test_weight_of_an_unknown_class_raises(rare):
    with pytest.raises(ValueError, match="class_weight names 4, which is not a class; the classes are"):
        GraphSVC(ODDCL(), param_grid={}, cv=2, class_weight={4: 1.0}).fit(*rare[:2])


# -------------------------------------------------------------------- scorers and splitters


def squared_share(model, X, y):
    assert len(X) == len(y)
    return float((model.predict(X) == y).mean() ** 2)


@pytest.mark.parametrize(
    "scoring", ["accuracy", "balanced_accuracy", "f1_macro", make_scorer(balanced_accuracy_score), squared_share]
)
def test_scorers_match_grid_search(rare, scoring):
    graphs, y, K, _ = rare
    ours = GraphSVC(ODDCL(depth=1), param_grid={}, C=CS, cv=FOLDS, scoring=scoring).fit(graphs, y)
    assert_same_search(ours, theirs(K, y, scoring=scoring), graphs, K)


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_scores_are_weighted(rare, scoring):
    """As newer versions of scikit-learn's own search."""
    graphs, y, K, weights = rare
    train, test = np.arange(0, 66, 2), np.arange(1, 66, 2)
    ours = GraphSVC(ODDCL(depth=1), param_grid={}, C=0.3, cv=[(train, test)], scoring=scoring)
    svc = SVC(kernel="precomputed", C=0.3).fit(K[np.ix_(train, train)], y[train], sample_weight=weights[train])
    metric = accuracy_score if scoring is None else balanced_accuracy_score
    expected = metric(y[test], svc.predict(K[np.ix_(test, train)]), sample_weight=weights[test])
    assert ours.fit(graphs, y, sample_weight=weights).best_score_ == pytest.approx(expected)


def test_decision_function_scorers(rare):
    graphs, y, K, _ = rare
    two = np.flatnonzero(y != 9)
    names = np.where(y == 3, "no", "yes")[two]
    ours = GraphSVC(ODDCL(depth=1), param_grid={}, C=CS, cv=FOLDS, scoring="roc_auc").fit(graphs[two], names)
    expected = theirs(K[np.ix_(two, two)], names, scoring="roc_auc")
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=1e-12)


def test_probability_scorer_raises(rare):
    with pytest.raises(ValueError, match=r"scoring needs probabilities.*balanced_accuracy"):
        GraphSVC(ODDCL(), param_grid={}, cv=2, scoring="neg_log_loss").fit(*rare[:2])


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
def test_regression_scorers(rare, scoring):
    graphs, _, K, _ = rare
    y = np.array([graph.attributes[:, 2].mean() for graph in graphs])
    y -= y.mean()
    split = [(np.arange(0, 66, 2), np.arange(1, 66, 2))]
    ours = GraphRidge(ODDCL(depth=1), param_grid={}, alpha=ALPHAS, cv=split, scoring=scoring).fit(graphs, y)
    center = y[split[0][0]].mean()
    for alpha, score in zip(ours.cv_results_["param_alpha"], ours.cv_results_["mean_test_score"], strict=True):
        search = GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": [alpha]}, cv=split, scoring=scoring)
        assert score == pytest.approx(search.fit(K, y - center).best_score_)


@pytest.mark.parametrize("cv", [GroupKFold(3), KFold(4), ShuffleSplit(2, random_state=1)], ids=repr)
def test_splitters_and_groups(rare, cv):
    graphs, y, K, _ = rare
    groups = np.arange(len(y)) % 5 if isinstance(cv, GroupKFold) else None
    ours = GraphSVC(ODDCL(depth=1), param_grid={}, C=CS, cv=cv).fit(graphs, y, groups=groups)
    assert_same_search(ours, theirs(K, y, cv=cv, groups=groups), graphs, K)
    numbers = GraphRidge(ODDCL(depth=1), param_grid={}, alpha=ALPHAS, cv=cv).fit(graphs, y, groups=groups)
    assert len([name for name in numbers.cv_results_ if name.startswith("split")]) == cv.get_n_splits(y, y, groups)


def test_class_of_one_graph_does_not_stop_the_search(rare):
    graphs, y, K, _ = rare
    one = y.copy()
    one[np.flatnonzero(y == 9)[1:]] = 8
    with pytest.warns(UserWarning, match="Class 9 has 1 of 66 graphs, fewer than there are folds, 3"):
        ours = GraphSVC(ODDCL(depth=1), param_grid={}, C=CS, cv=3).fit(graphs, one)
    svc = SVC(kernel="precomputed", C=ours.best_params_["C"]).fit(K, one)
    np.testing.assert_array_equal(ours.predict(graphs), svc.predict(K))


# -------------------------------------------------------------------- names, verbosity, memory


def test_kernels_by_name(rare):
    graphs, y, _, _ = rare
    by_name = GraphSVC(["wl", ODDCL()], param_grid=[{"n_iterations": [0, 1]}, {}], C=1, cv=2).fit(graphs, y)
    by_class = GraphSVC([WL(), ODDCL()], param_grid=[{"n_iterations": [0, 1]}, {}], C=1, cv=2).fit(graphs, y)
    assert repr(by_name.cv_results_["params"]) == repr(by_class.cv_results_["params"])
    assert by_name.best_score_ == by_class.best_score_


def test_verbose_prints_a_line_per_kernel(rare, capsys):
    graphs, y, _, _ = rare
    for verbose in (0, 1):
        GraphSVC(["wl", "oddcl"], param_grid=[{"n_iterations": [0, 1]}, {}], C=1, cv=2, verbose=verbose).fit(graphs, y)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2 * verbose
    assert lines[0].startswith("WL: 2 points, best score 0.")
    assert lines[1].startswith("ODDCL: 1 point, best score 0.")


def test_screened_candidates_have_no_score(rare):
    """The likelihoods of a Gaussian process and the explained variances of a screening are not comparable."""
    graphs = rare[0]
    y = np.array([graph.attributes[:, 2].mean() for graph in graphs])
    model = GraphGP().fit(graphs, y)
    scores = [record["score"] for record in model.search_results_ if record["score"] is not None]
    assert len(scores) == 3
    assert max(scores) == model.log_marginal_likelihood_
    screened = [record for record in model.search_results_ if record["score"] is None]
    assert len(screened) == len(model.search_results_) - 3
    assert all("not among the best 3 of least squares (leave-one-out score " in one["note"] for one in screened)
    assert str(model.search_summary()).splitlines()[1].split()[0] == f"{max(scores):.4f}"


@pytest.mark.parametrize("most", [1, 2, 3, 6, 100])
def test_grid_in_parts_equals_the_whole_grid(most):
    grid = {"a": [1, 2], "b": [5], "c": [7, 8, 9]}
    points = [dict(zip(part, values, strict=True)) for part in _split_grid(grid, most) for values in _product(part)]
    assert points == [dict(zip(grid, values, strict=True)) for values in _product(grid)]
    assert all(len(_product(part)) <= most for part in _split_grid(grid, most))


def _product(grid):
    return [(a, b, c) for a in grid["a"] for b in grid["b"] for c in grid["c"]]


@pytest.mark.parametrize("n_matrices", [1, 3])
def test_gram_matrices_in_blocks_give_the_same_search(rare, monkeypatch, n_matrices):
    graphs, y, _, _ = rare
    model = GraphSVC(ODDCL(), param_grid={"depth": [0, 1], "lam": [0.5, 1.0, 1.2]}, C=CS, cv=FOLDS)
    whole = model.fit(graphs, y).cv_results_
    sizes = []
    points_of = search_module.grid_points
    monkeypatch.setattr(search_module, "HELD_AT_ONCE", n_matrices * 8 * len(graphs) ** 2)
    monkeypatch.setattr(search_module, "grid_points", lambda *a: (sizes.append(len(points_of(*a))), points_of(*a))[1])
    parts = model.fit(graphs, y).cv_results_
    assert sizes == [n_matrices] * (6 // n_matrices)
    assert repr(parts["params"]) == repr(whole["params"])
    np.testing.assert_allclose(parts["mean_test_score"], whole["mean_test_score"], atol=1e-12)


def test_search_that_cannot_fit_in_memory_raises_before_it_starts(rare, monkeypatch):
    monkeypatch.setattr("treegram._core.machine.available_bytes", lambda: 1000)
    monkeypatch.setattr("treegram._core.machine.SMALL", 0)
    monkeypatch.setattr(search_module, "grid_points", None)
    with pytest.raises(
        MemoryError, match=r"66 graphs, .* would take 102 KiB .* 0\.977 KiB are free\. Fit on fewer graphs, or"
    ):
        GraphSVC(ODDCL(), param_grid={}, cv=2).fit(*rare[:2])


def test_free_memory_is_reported():
    assert available_bytes() > 2**20


# -------------------------------------------------------------------- probabilities


def test_sigmoid_matches_logistic_regression_on_platts_targets():
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=200)
    is_first = rng.random(200) < 1 / (1 + np.exp(-2 * decisions + 0.5))
    slope, offset = fit_sigmoid(decisions, is_first)
    n = is_first.sum()
    targets = np.where(is_first, (n + 1) / (n + 2), 1 / (202 - n))
    regression = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(
        np.tile(decisions, 2)[:, None], np.repeat([1, 0], 200), sample_weight=np.concatenate([targets, 1 - targets])
    )
    assert (-slope, -offset) == pytest.approx((regression.coef_[0, 0], regression.intercept_[0]), rel=1e-4)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("n", [2, 50])
def test_sigmoids_of_separated_and_constant_decisions(scale, n):
    is_first = np.arange(n) < n // 2
    slope, offset = fit_sigmoid(np.where(is_first, scale, -scale), is_first)
    p = 1 / (1 + np.exp(slope * scale + offset))
    assert p == pytest.approx((n // 2 + 1) / (n // 2 + 2), rel=1e-3)
    slope, offset = fit_sigmoid(np.zeros(n), is_first)
    assert 1 / (1 + np.exp(offset)) == pytest.approx(0.5, abs=1e-3)


def test_coupling_recovers_consistent_probabilities():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=20)
    first, second = np.triu_indices(4, 1)
    pairs = p[:, first] / (p[:, first] + p[:, second])
    decisions = np.log(pairs / (1 - pairs))
    sigmoids = np.tile([-1.0, 0.0], (6, 1))
    np.testing.assert_allclose(couple(decisions, sigmoids, 4), p, atol=1e-5)


@pytest.mark.parametrize("classes", [(3, 8), (3, 8, 9)])
def test_probabilities_match_the_quality_of_calibrated_classifier(classes):
    graphs, y = treegram.load_digits_graphs()
    chosen = np.sort(np.concatenate([np.flatnonzero(y == digit)[:100] for digit in classes]))
    graphs, y = graphs[chosen], y[chosen]
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    model = GraphSVC(ODDCL(depth=1), param_grid={}, C=1.0, cv=5, probability=True).fit(graphs[train], y[train])
    p = model.predict_proba(graphs[test])
    assert p.shape == (len(test), len(classes))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()
    K = ODDCL(depth=1).fit_transform(graphs)
    calibrated = CalibratedClassifierCV(SVC(kernel="precomputed"), cv=5, ensemble=False).fit(
        K[np.ix_(train, train)], y[train]
    )
    loss = log_loss(y[test], p)
    assert loss < 1.15 * log_loss(y[test], calibrated.predict_proba(K[np.ix_(test, train)]))
    shares = np.unique(y[train], return_counts=True)[1] / len(train)
    assert loss < 0.5 * log_loss(y[test], np.tile(shares, (len(test), 1)))


def test_probabilities_must_be_requested_before_fit(rare):
    model = GraphSVC(ODDCL(), param_grid={}, C=1, cv=2).fit(*rare[:2])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        model.predict_proba(rare[0])
    assert "GraphSVC(probability=True)" in str(caught.value.__cause__)
    with pytest.raises(NotFittedError, match="fitted with probability=True"):
        model.set_params(probability=True).predict_proba(rare[0])


def calibration_error(p, codes, n_bins=10):
    """Return the mean difference between confidence and accuracy, over bins of confidence."""
    confidence, is_right = p.max(axis=1), p.argmax(axis=1) == codes
    bins = np.minimum((n_bins * confidence).astype(int), n_bins - 1)
    members = [bins == i for i in range(n_bins) if (bins == i).any()]
    return sum(some.mean() * abs(confidence[some].mean() - is_right[some].mean()) for some in members)


def test_multiclass_probabilities_are_calibrated_and_agree_with_predict():
    graphs, y = treegram.load_digits_graphs()
    order = np.random.default_rng(0).permutation(700)
    train, test = order[:400], order[400:]
    model = GraphSVC(WLCL(1, gamma="scale"), param_grid={}, C=10.0, cv=5, probability=True).fit(graphs[train], y[train])
    p = model.predict_proba(graphs[test])
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(graphs[test]))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    even = couple(model._decide(graphs[test]), model.sigmoids_, 10)
    assert model.temperature_ < 1
    assert calibration_error(p, y[test]) < 0.5 * calibration_error(even, y[test])
    assert log_loss(y[test], p) < log_loss(y[test], even)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_decision_parts_sum_to_the_decisions(n_classes):
    graphs, y = treegram.load_digits_graphs()
    few = np.flatnonzero(y < n_classes)[:60]
    kernel = make_pipeline(treegram.ScaleAttributes(), treegram.WLCL(1))
    svc = treegram.GraphSVC(kernel, param_grid={}, C=10, cv=2).fit(graphs[few], y[few])
    models = [
        svc,
        *(
            kind(kernel, param_grid={}).fit(graphs[few], y[few] * 1.5)
            for kind in (treegram.GraphRidge, treegram.GraphGP)
        ),
    ]
    for model in models:
        parts, intercept, outputs = model._decision_parts()
        decisions = sum(part.transform(graphs[:20]) @ weights for part, weights in parts) + intercept
        assert decisions.shape == (20, len(outputs))
        if model is not svc:
            expected = model.predict(graphs[:20])
        else:
            expected = model.decision_function(graphs[:20]) if n_classes == 2 else model._decide(graphs[:20])
        np.testing.assert_allclose(decisions, np.reshape(expected, decisions.shape), atol=1e-9)
