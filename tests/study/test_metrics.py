"""Tests of fold scores against scikit-learn."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import make_row
from sklearn import metrics

from treegram.study.metrics import main_metric, other_metrics, roc_auc
from treegram.study.protocol import Protocol

ROW = make_row("D", "K", 0, 0, 0.5, {})
MEASURES = {
    metric.name: metric.measure
    for kind in ("classification", "regression")
    for metric in other_metrics(Protocol(task=kind))
}
codes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20)
numbers = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=20)


def fold(pairs):
    actual, predicted = zip(*pairs, strict=True)
    return replace(ROW, actual=actual, predicted=predicted)


@given(codes)
@settings(deadline=None)
def test_classification_scores_match_scikit_learn(pairs):
    row = fold(pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about predicted classes without a graph in the fold
        assert row.score == pytest.approx(metrics.accuracy_score(row.actual, row.predicted))
        balanced = metrics.balanced_accuracy_score(row.actual, row.predicted)
        assert MEASURES["balanced accuracy"](row) == pytest.approx(balanced)
        assert MEASURES["macro F1"](row) == pytest.approx(metrics.f1_score(row.actual, row.predicted, average="macro"))


@given(codes, st.data())
@settings(deadline=None)
def test_roc_auc_matches_scikit_learn_for_the_classes_in_a_fold(pairs, data):
    n, steps = len(pairs), st.integers(-3, 3).map(float)  # so that there are ties
    decisions = np.array(data.draw(st.lists(steps, min_size=4 * n, max_size=4 * n))).reshape(n, 4)
    actual = np.array([one for one, _ in pairs])
    areas = [
        metrics.roc_auc_score(actual == code, decisions[:, code]) for code in range(4) if 0 < (actual == code).sum() < n
    ]
    assert roc_auc(actual, decisions) == (pytest.approx(np.mean(areas)) if areas else None)
    two = np.minimum(actual, 1)
    expected = metrics.roc_auc_score(two, decisions[:, 0]) if len(set(two.tolist())) == 2 else None
    assert roc_auc(two, decisions[:, 0]) == pytest.approx(expected)


def test_multiclass_roc_auc_matches_scikit_learn_one_vs_rest():
    rng = np.random.default_rng(0)
    actual, chances = np.arange(30) % 3, rng.dirichlet([1, 1, 1], 30)
    assert roc_auc(actual, chances) == pytest.approx(metrics.roc_auc_score(actual, chances, multi_class="ovr"))


@given(numbers)
@settings(deadline=None)
def test_regression_scores_match_scikit_learn(pairs):
    row = fold(pairs)
    assert row.score == pytest.approx(metrics.mean_absolute_error(row.actual, row.predicted))
    assert MEASURES["RMSE"](row) == pytest.approx(
        metrics.root_mean_squared_error(row.actual, row.predicted), rel=1e-9, abs=1e-9
    )
    if np.std(row.actual) > 1e-3:
        assert MEASURES["R²"](row) == pytest.approx(metrics.r2_score(row.actual, row.predicted), rel=1e-9, abs=1e-9)


def test_undefined_scores_are_none():
    assert MEASURES["ROC AUC"](fold([(0, 0), (1, 1)])) is None  # not measured
    assert MEASURES["ROC AUC"](replace(ROW, roc_auc=0.25)) == 0.25
    assert roc_auc(np.array([0, 0]), np.array([1.0, 2.0])) is None  # a single class
    assert MEASURES["R²"](fold([(1.0, 2.0)])) is None


@pytest.mark.parametrize(
    ("value", "text"), [(1234.56, "1235"), (12.3456, "12.35"), (0.0123456, "0.01235"), (0.0, "0.00")]
)
def test_regression_errors_have_four_significant_digits(value, text):
    assert f"{value:.{main_metric(Protocol(task='regression')).decimals_of(value)}f}" == text
    assert main_metric(Protocol(task="classification")).decimals_of(value, 1) == 1
