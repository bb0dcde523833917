"""Tests of weights, scorers, splitters, names and probabilities against scikit-learn's own search."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import accuracy_score, balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treegram
from treegram import ODDCL, WL, GraphRidge, GraphSVC
from treegram._core.machine import available_bytes
from treegram.models import search as search_module
from treegram.models.search import _split_grid

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
    ours = GraphRidge(ODDCL(depth=1), param_grid={}, alpha=0.3, cv=3, target_transform=None)
    ours.fit(graphs, y, sample_weight=weights)
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
    plain = GraphRidge(ODDCL(depth=1), param_grid={}, alpha=ALPHAS, cv=split, scoring=scoring, target_transform=None)
    ours = plain.fit(graphs, y)
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


@pytest.mark.parametrize("classes", [(3, 8), (3, 8, 9)])
def test_calibrated_classifier_gives_probabilities(classes):
    """The line of the documentation: on graphs, it equals scikit-learn's SVC on the Gram matrix."""
    graphs, y = treegram.load_digits_graphs()
    chosen = np.sort(np.concatenate([np.flatnonzero(y == digit)[:60] for digit in classes]))
    graphs, y = graphs[chosen], y[chosen]
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    svc = GraphSVC(ODDCL(depth=1), param_grid={}, C=1.0, cv=2)
    ours = CalibratedClassifierCV(svc, cv=FOLDS, ensemble=False).fit(graphs[train], y[train])
    K = ODDCL(depth=1).fit_transform(graphs)
    theirs = CalibratedClassifierCV(SVC(kernel="precomputed"), cv=FOLDS, ensemble=False)
    theirs.fit(K[np.ix_(train, train)], y[train])
    p = ours.predict_proba(graphs[test])
    np.testing.assert_allclose(p, theirs.predict_proba(K[np.ix_(test, train)]), atol=2e-3)
    assert (ours.classes_[p.argmax(axis=1)] == y[test]).mean() > 0.8
    assert not hasattr(svc, "predict_proba")


@pytest.mark.parametrize("n_classes", [2, 4])
def test_decision_parts_sum_to_the_decisions(n_classes):
    graphs, y = treegram.load_digits_graphs()
    few = np.flatnonzero(y < n_classes)[:60]
    kernel = make_pipeline(treegram.ScaleAttributes(), treegram.WLCL(1))
    svc = treegram.GraphSVC(kernel, param_grid={}, C=10, cv=2).fit(graphs[few], y[few])
    models = [
        svc,
        *(
            kind(kernel, param_grid={}, target_transform=None).fit(graphs[few], y[few] * 1.5)
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


def test_class_weights_are_counted_in_the_training_part(rare):
    """The classes of the fold's training part are balanced, those of all graphs are not: then weights must be 1."""
    graphs, y, K, _ = rare
    train = np.concatenate([np.flatnonzero(y == digit)[:9] for digit in (3, 8)])
    test = np.setdiff1d(np.flatnonzero(y != 9), train)

    def mean_decision(model, X, y):
        return float(model.decision_function(X).mean())

    two = np.flatnonzero(y != 9)
    folds = [(np.searchsorted(two, train), np.searchsorted(two, test))]
    options = {"param_grid": {}, "C": 0.1, "cv": folds, "scoring": mean_decision}
    means = [
        GraphSVC(ODDCL(depth=1), class_weight=class_weight, **options).fit(graphs[two], y[two]).best_score_
        for class_weight in ("balanced", None)
    ]
    expected = SVC(kernel="precomputed", C=0.1, tol=1e-8).fit(K[np.ix_(train, train)], y[train])
    assert means[0] == means[1]
    assert means[0] == pytest.approx(expected.decision_function(K[np.ix_(test, train)]).mean(), abs=2e-3)
