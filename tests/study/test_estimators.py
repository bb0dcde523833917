"""Tests of entries of a study that are scikit-learn estimators of graphs: in Python, by a registered name, by an import path."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from treegram import WL, FeatureMap, GraphStatistics, GraphSVC, make_synthetic
from treegram.cli import main
from treegram.exceptions import StudyError
from treegram.models.auto import seed_of
from treegram.models.svc import folds
from treegram.study import Store, Study, read_study, register_estimator, run_study, selection, summarize
from treegram.study.protocol import KernelSpec, Protocol, StudyEntry, entry_key, estimator_text
from treegram.study.report import bibliography
from treegram.study.report_tables import kernel_table

PROTOCOL = Protocol(repeats=2, outer_folds=3, inner_folds=2)
TOML = """
datasets = ["A"]
protocol = { repeats = 1, outer_folds = 2, inner_folds = 2 }
[[kernels]]
name = "mine"
estimator = "NAME"
"""
MODULE = """
from pathlib import Path
from sklearn.dummy import DummyClassifier
from treegram.study import register_estimator

class Largest(DummyClassifier):
    def fit(self, X, y):
        return super().fit([[0]] * len(X), y)

    def predict(self, X):
        return super().predict([[0]] * len(X))

    predict_proba = None

def prior(protocol):
    return Largest(strategy="prior" if protocol.outer_folds == 2 else "uniform")

register_estimator("largest class", Largest)
Path(__file__).with_suffix(".ran").touch()
"""


class Majority(ClassifierMixin, BaseEstimator):
    """Predict the largest class; no decision values, no scores."""

    def fit(self, X, y):
        assert len(X) == len(y)
        self.classes_ = np.unique(y)
        self.largest_ = np.bincount(y).argmax()
        return self

    def predict(self, X):
        return np.full(len(X), self.largest_)


class MeanNodes(RegressorMixin, BaseEstimator):
    """Predict a multiple of the number of nodes."""

    def fit(self, X, y):
        self.factor_ = np.mean(y) / X.sizes.mean()
        return self

    def predict(self, X):
        return self.factor_ * X.sizes


@pytest.fixture(scope="module")
def data():
    return {"A": make_synthetic(36, n_nodes=12, n_edges=18, random_state=0)}


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Let each test begin without registered estimators."""
    monkeypatch.setattr(selection, "_ESTIMATORS", {})


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module that leaves a file when it is imported, and make it importable."""
    (tmp_path / "stranger.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "stranger.ran"
    sys.modules.pop("stranger", None)


def entry(estimator, **options):
    return StudyEntry("mine", estimator=estimator, **options)


def rows_of(path, data, estimator, protocol=PROTOCOL, **options):
    study = Study("s", ("A",), (entry(estimator),), protocol)
    run_study(study, path, data, **options)
    with Store.open(path) as store:
        return store.rows([entry_key(study, study.kernels[0], "A")])


def test_pipeline_of_scikit_learn_is_an_entry(tmp_path, data):
    graphs, y = data["A"]
    codes = np.unique(y, return_inverse=True)[1]
    model = make_pipeline(FeatureMap(WL(n_iterations=1)), LogisticRegression())
    rows = rows_of(tmp_path / "s", data, model)
    assert len(rows) == 2 * 3
    for row in rows:
        train, test = folds(codes, 3, seed_of(0, "A", row.repeat))[row.fold]
        assert row.actual == tuple(codes[test])
        assert row.predicted == tuple(model.fit(graphs[train], codes[train]).predict(graphs[test]))
        assert (row.chosen, row.inner_score, row.n_fits) == ({}, None, 1)
        assert 0 <= row.roc_auc <= 1


def test_kernels_and_estimators_are_compared_on_the_same_folds(tmp_path, data):
    colors = StudyEntry("colors", (KernelSpec("wl", param_grid={"n_iterations": (0, 1)}),))
    searched = StudyEntry("searched", estimator=GraphSVC(WL(), param_grid={"n_iterations": [0, 1]}, C=[1, 10], cv=2))
    study = Study("s", ("A",), (colors, searched), replace(PROTOCOL, C=(1, 10)))
    run_study(study, tmp_path / "s", data, n_jobs=2)
    with Store.open(tmp_path / "s") as store:
        summary = summarize(store)
        by_entry = {name: [row for row in store.rows() if row.kernel == name] for name in ("colors", "searched")}
    assert [row.actual for row in by_entry["colors"]] == [row.actual for row in by_entry["searched"]]
    assert all(row.inner_score and row.n_fits > 1 for row in by_entry["searched"])
    assert {type(value) for row in by_entry["searched"] for value in row.chosen.values()} <= {str, int, float, dict}
    assert summary.pairs[0].tests[0].corrected is not None
    table = {row[0].text: [cell.text for cell in row[1:3]] for row in kernel_table(summary).rows}
    assert table["searched"][0].startswith("the estimator treegram.models.svc.GraphSVC(")
    assert table["searched"][1] == "training graphs"
    assert "No reference is known for" in bibliography(summary)


def test_estimators_without_decision_values_have_no_auc(tmp_path, data):
    rows = rows_of(tmp_path / "s", data, Majority())
    assert {(row.roc_auc, row.inner_score) for row in rows} == {(None, None)}
    with Store.open(tmp_path / "s") as store:
        (cell,) = summarize(store).cells
    assert cell.other_scores["ROC AUC"] == (None, None)
    assert cell.mean == pytest.approx(100 * np.mean([row.score for row in rows]))


def test_estimators_of_numbers(tmp_path, data):
    graphs, _ = data["A"]
    numbers = {"A": (graphs, np.arange(36) + 0.5)}
    rows = rows_of(tmp_path / "s", numbers, MeanNodes(), replace(PROTOCOL, task="regression"))
    assert all(isinstance(value, float) for row in rows for value in row.predicted)
    assert {row.roc_auc for row in rows} == {None}


def test_random_states_come_from_the_fold_unless_they_are_set(tmp_path, data):
    def forest(**options):
        return make_pipeline(GraphStatistics(), RandomForestClassifier(3, **options))

    noise = {"A": (data["A"][0], np.random.default_rng(0).permutation(data["A"][1]))}
    drawn, again, fixed = (
        [row.predicted for row in rows_of(tmp_path / name, noise, forest(**options))]
        for name, options in (("1", {}), ("2", {}), ("3", {"random_state": 0}))
    )
    assert drawn == again
    assert drawn != fixed


def test_results_are_kept_under_the_class_and_parameters(tmp_path, data):
    path = tmp_path / "s"
    assert len(rows_of(path, data, Majority())) == 6
    study = Study("s", ("A",), (entry(Majority()),), PROTOCOL)
    assert run_study(study, path, data) == 0
    assert run_study(replace(study, kernels=(entry(GraphSVC(WL(), param_grid={}, C=1, cv=2)),)), path, data) == 6
    assert run_study(replace(study, kernels=(entry(GraphSVC(WL(), param_grid={}, C=2, cv=2)),)), path, data) == 6
    many = LogisticRegression(class_weight=dict.fromkeys(range(500), 1.0))
    other = LogisticRegression(class_weight=dict.fromkeys(range(500), 1.0) | {400: 2.0})
    assert estimator_text(many) != estimator_text(other), "scikit-learn shortens long texts"
    function = entry(make_pipeline(FeatureMap(WL()), LogisticRegression(), memory=lambda: None))
    with pytest.raises(
        StudyError, match=r"kernels\[0\].estimator: must not have functions or other objects as parameters"
    ):
        run_study(replace(study, kernels=(function,)), path, data)


def test_class_weights_of_the_study_must_be_those_of_the_estimator(tmp_path, data):
    protocol = replace(PROTOCOL, class_weight="balanced")
    wrong = GraphSVC(WL(), param_grid={}, C=1, cv=2)
    with pytest.raises(StudyError, match=r"mine: the study has class_weight = 'balanced', .* it has None"):
        rows_of(tmp_path / "s", data, wrong, protocol)
    assert len(rows_of(tmp_path / "s", data, wrong.set_params(class_weight="balanced"), protocol)) == 6


# -------------------------------------------------------------------- study files


@pytest.mark.parametrize("name", ["stranger:Largest", "stranger:prior"])
def test_code_of_a_study_file_runs_only_if_it_is_allowed(tmp_path, data, module, name):
    (tmp_path / "s.toml").write_text(TOML.replace("NAME", name))
    study = read_study(tmp_path / "s.toml")
    for allowed in ((), ("json",)):
        with pytest.raises(StudyError, match="mine: the study would import the module 'stranger', which runs its code"):
            run_study(study, tmp_path / "s", data, allow_import=allowed)
    assert not module.exists()
    assert not (tmp_path / "s").exists()
    assert run_study(study, tmp_path / "s", data, allow_import=["stranger"]) == 2
    assert module.exists()
    with Store.open(tmp_path / "s") as store:
        summarize(store)


def test_allowed_modules_may_register_names(tmp_path, data, module):
    (tmp_path / "s.toml").write_text(TOML.replace("NAME", "largest class"))
    study = read_study(tmp_path / "s.toml")
    with pytest.raises(StudyError, match=r"mine: no estimator is registered as 'largest class'\. Allow the module"):
        run_study(study, tmp_path / "s", data)
    assert run_study(study, tmp_path / "s", data, allow_import=["stranger"]) == 2
    assert module.exists()
    register_estimator("largest classes", Majority())
    study = replace(study, kernels=(entry("largest clas"),))
    with pytest.raises(StudyError, match=r"did you mean 'largest class' or 'largest classes'\?"):
        run_study(study, tmp_path / "other", data)


@pytest.mark.parametrize(
    ("name", "allowed", "message"),
    [
        ("stranger:Nothing", "stranger", "mine: the module 'stranger' has no 'Nothing'"),
        ("missing:Model", "missing", "The module 'missing' that may be imported cannot be: No module named 'missing'"),
    ],
)
@pytest.mark.usefixtures("module")
def test_what_cannot_be_imported_is_named(tmp_path, data, name, allowed, message):
    with pytest.raises(StudyError, match=message):
        rows_of(tmp_path / "s", data, name, allow_import=[allowed])


def test_command_allows_imports(tmp_path, data, module, monkeypatch, capsys):
    from treegram import save_tu

    graphs, y = data["A"]
    save_tu(graphs.assign(targets=y), tmp_path / "A")
    (tmp_path / "s.toml").write_text(TOML.replace("NAME", "stranger:Largest"))
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "s.toml"]) != 0
    assert "--allow-import stranger" in capsys.readouterr().err
    assert not module.exists()
    assert main(["reproduce", "s.toml", "--allow-import", "stranger"]) == 0
    assert "mine" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["wide", "wide2", "wide2_large"])
def test_shipped_studies_need_their_baselines_only_to_run_them(tmp_path, data, name):
    study = read_study(name)
    study = replace(study, datasets=("A",), source="")
    study = replace(study, comparisons=(), pairs=(), dataset_notes={}, protocol=replace(study.protocol, repeats_on={}))
    kernels = [replace(entry, datasets=()) for entry in study.kernels if entry.estimator]
    with pytest.raises(StudyError, match=r"no estimator is registered as 'summary-svm'.*--allow-import MODULE"):
        run_study(replace(study, kernels=tuple(kernels)), tmp_path / "s", data)
