"""Tests of running a study: rows, partial runs, kills, and errors."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC

from treegram import ODDCL, Graphs, load_tu, make_synthetic, save_tu
from treegram.exceptions import StudyError
from treegram.models.auto import AUTO_VERSION, seed_of
from treegram.models.base import encode_classes
from treegram.models.svc import folds
from treegram.study.metrics import roc_auc
from treegram.study.protocol import KernelSpec, StudyEntry, entry_key
from treegram.study.run import build_kernel, run_study
from treegram.study.store import Store
from treegram.study.study_file import parse_study

STUDY = """
title = "A small study"
datasets = ["A", "B"]
[protocol]
repeats = 3
outer_folds = 3
inner_folds = 2
seed = 7
C = [0.1, 1, 10, 1000]
[[kernels]]
name = "trees"
kernel = "oddcl"
param_grid = { depth = [0, 1], lam = [0.5, 1] }
[[kernels]]
name = "colors"
kernel = "wl"
param_grid = { n_iterations = [0, 1, 2] }
[[kernels]]
name = "scaled"
attributes = ["robust"]
kernel = "oddcl"
param_grid = { depth = [0, 1] }
[[kernels]]
name = "either"
[[kernels.choices]]
kernel = "oddst"
param_grid = { depth = [1, 2] }
[[kernels.choices]]
sum = [{ kernel = "wl" }, { kernel = "oddcl", attributes = ["standard", "neighbors"] }]
"""


def data(seed):
    return make_synthetic(36, n_nodes=12, n_edges=18, random_state=seed)


@pytest.fixture(scope="module")
def loaded():
    sets = {"A": data(0), "B": data(1)}
    return sets.__getitem__


@pytest.fixture
def study():
    return parse_study("small", STUDY.encode(), "small.toml")


def results(store):
    """Return the rows of a store without run numbers and times."""
    return [replace(row, seconds=0.0, run=0) for row in store.rows()]


def run(study, path, load, n_jobs=None, **part):
    with Store.open(path) as store:
        data = {name: load(name) for name in study.datasets}
        return run_study(study.part(**part), store, data, n_jobs=n_jobs), results(store)


def test_study_gives_one_row_per_fold(study, loaded, tmp_path):
    added, rows = run(study, tmp_path / "s", loaded)
    assert added == len(rows) == 2 * 4 * 3 * 3
    assert {(row.dataset, row.kernel) for row in rows} == {(d, e.name) for d in "AB" for e in study.kernels}
    for row in rows:
        assert row.n_unconverged == 0
        assert row.n_fits > 0
        assert row.chosen["C"] in study.protocol.C
        _, codes = encode_classes(loaded(row.dataset)[1])
        test = folds(codes, 3, seed_of(7, row.dataset, row.repeat))[row.fold][1]
        assert row.score == pytest.approx(np.mean(np.array(row.predicted) == codes[test]))


def test_entry_runs_only_on_its_own_data_sets(study, loaded, tmp_path):
    trees, colors, *_ = study.kernels
    narrow = replace(study, kernels=(replace(trees, datasets=("B",)), colors))
    added, rows = run(narrow, tmp_path / "s", loaded, repeats=1)
    assert added == len(rows) == 3 * 3
    assert {(row.dataset, row.kernel) for row in rows} == {("B", "trees"), ("A", "colors"), ("B", "colors")}


def test_classification_row_matches_scikit_learn(study, loaded, tmp_path):
    """Compare one entry with GridSearchCV for each point of the kernel grid, on the same folds."""
    rows = run(study, tmp_path / "s", loaded, datasets=["A"], kernels=["trees"], repeats=1)[1]
    graphs, y = loaded("A")
    _, codes = encode_classes(y)
    for row, (train, test) in zip(rows, folds(codes, 3, seed_of(7, "A", 0)), strict=True):
        inner = StratifiedKFold(2, shuffle=True, random_state=seed_of(7, "A", 0, row.fold))
        searches = {}
        for depth in (0, 1):
            for lam in (0.5, 1):
                K = ODDCL(depth=depth, lam=lam).fit_transform(graphs)
                machine = GridSearchCV(SVC(kernel="precomputed", tol=1e-6), {"C": study.protocol.C}, cv=inner)
                searches[depth, lam] = machine.fit(K[np.ix_(train, train)], codes[train]), K[np.ix_(test, train)]
        best = max(search.best_score_ for search, _ in searches.values())
        assert row.inner_score == pytest.approx(best)
        search, tests = searches[row.chosen["depth"], row.chosen["lam"]]
        assert search.best_score_ == pytest.approx(best)
        assert search.best_params_["C"] == row.chosen["C"]
        assert (search.predict(tests) == np.array(row.predicted)).all()


def test_regression_row_matches_scikit_learn(study, loaded, tmp_path):
    """Compare one entry with KernelRidge on centered targets for each alpha and grid point, on the same folds."""
    study = replace(study, protocol=replace(study.protocol, task="regression", alpha=(0.01, 1.0, 100.0)))
    graphs = loaded("A")[0]
    y = np.array([graph.attributes.mean() + graph.n_edges for graph in graphs])
    rows = run(study, tmp_path / "s", lambda _: (graphs, y), datasets=["A"], kernels=["trees"], repeats=1)[1]
    grams = {(d, lam): ODDCL(depth=d, lam=lam).fit_transform(graphs) for d in (0, 1) for lam in (0.5, 1)}

    def predict(K, alpha, train, test):
        model = KernelRidge(alpha=alpha, kernel="precomputed").fit(K[np.ix_(train, train)], y[train] - y[train].mean())
        return model.predict(K[np.ix_(test, train)]) + y[train].mean()

    outer = KFold(3, shuffle=True, random_state=seed_of(7, "A", 0))
    for row, (train, test) in zip(rows, outer.split(y), strict=True):
        inner = KFold(2, shuffle=True, random_state=seed_of(7, "A", 0, row.fold))
        parts = [(train[a], train[b]) for a, b in inner.split(train)]
        scores = {
            (point, alpha): np.mean(
                [1 - np.mean((predict(K, alpha, a, b) - y[b]) ** 2) / y[train].var() for a, b in parts]
            )
            for point, K in grams.items()
            for alpha in (0.01, 1.0, 100.0)
        }
        point, alpha = (row.chosen["depth"], row.chosen["lam"]), row.chosen["alpha"]
        assert row.inner_score == pytest.approx(max(scores.values())) == pytest.approx(scores[point, alpha])
        np.testing.assert_allclose(row.actual, y[test])
        np.testing.assert_allclose(row.predicted, predict(grams[point], alpha, train, test))
        assert row.score == pytest.approx(np.abs(y[test] - row.predicted).mean())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_roc_auc_matches_decisions_of_scikit_learn(study, loaded, tmp_path, n_classes):
    graphs = loaded("A")[0]
    means = [graph.attributes.mean() for graph in graphs]
    y = np.argsort(np.argsort(means)) * n_classes // 36
    rows = run(study, tmp_path / "s", lambda _: (graphs, y), datasets=["A"], kernels=["trees"], repeats=1)[1]
    for row, (train, test) in zip(rows, folds(y, 3, seed_of(7, "A", 0)), strict=True):
        K = ODDCL(depth=row.chosen["depth"], lam=row.chosen["lam"]).fit_transform(graphs)
        machine = SVC(C=row.chosen["C"], kernel="precomputed", tol=1e-6).fit(K[np.ix_(train, train)], y[train])
        decisions = machine.decision_function(K[np.ix_(test, train)])
        assert len(set(decisions.ravel())) > 3
        assert row.roc_auc == pytest.approx(roc_auc(y[test], decisions), abs=0.02)


@pytest.mark.parametrize("n_rare", [1, 2])
def test_rare_class_warns(study, loaded, tmp_path, n_rare):
    y = [1] * 20 + [2] * (16 - n_rare) + [3] * n_rare
    with pytest.warns(UserWarning, match="A: class 3 has too few graphs for 3 outer and 2 inner folds"):
        rows = run(study, tmp_path / "s", lambda name: (loaded(name)[0], y), datasets=["A"], repeats=1)[1]
    assert sum(len(row.actual) for row in rows) == 4 * 36
    few = replace(study, protocol=replace(study.protocol, min_class_size=3))
    with pytest.warns(UserWarning, match="A: class 3 has fewer than 3 graphs and is left out"):
        rows = run(few, tmp_path / "t", lambda name: (loaded(name)[0], y), datasets=["A"], repeats=1)[1]
    assert sum(len(row.actual) for row in rows) == 4 * (36 - n_rare)
    kept = [i for i in range(36) if y[i] < 3]
    literal = run(
        study, tmp_path / "u", lambda name: (loaded(name)[0][kept], np.array(y)[kept]), datasets=["A"], repeats=1
    )[1]
    assert rows == literal


def test_threads_and_partial_runs_do_not_change_results(study, loaded, tmp_path):
    whole = run(study, tmp_path / "one", loaded)[1]
    assert run(study, tmp_path / "two", loaded, n_jobs=2)[1] == whole
    run(study, tmp_path / "parts", loaded, datasets=["B"], repeats=1)
    run(study, tmp_path / "parts", loaded, kernels=["scaled"])
    assert run(study, tmp_path / "parts", loaded)[1] == whole
    assert run(study, tmp_path / "parts", loaded)[0] == 0


def test_folds_are_shared_by_all_kernels_and_depend_only_on_names(study, loaded, tmp_path):
    rows = run(study, tmp_path / "s", loaded, repeats=1)[1]
    sizes = {}
    for row in rows:
        sizes.setdefault((row.dataset, row.fold), set()).add(len(row.predicted))
    assert all(len(found) == 1 for found in sizes.values())
    fewer = replace(study, datasets=("B",), kernels=study.kernels[1:2])
    assert run(fewer, tmp_path / "t", loaded, repeats=1)[1] == [
        row for row in rows if (row.dataset, row.kernel) == ("B", "colors")
    ]


def test_preprocessing_is_fitted_on_training_graphs_unless_declared(study, loaded, tmp_path):
    """An outlier in a test graph changes other predictions only if the scaler was fitted on all graphs."""
    graphs, y = loaded("A")
    _, codes = encode_classes(y)
    test = folds(codes, 3, seed_of(7, "A", 0))[0][1]
    outlier = graphs.attributes.copy()
    outlier[graphs.offsets[test[0]]] = 1e6
    changed = replace(graphs, attributes=outlier)

    def first_row(graphs, entry, name):
        one = replace(study, kernels=(entry,), datasets=("A",))
        return run(one, tmp_path / name, {"A": (graphs, y)}.__getitem__, repeats=1)[1][0]

    scaled = replace(study.kernels[2], choices=(replace(study.kernels[2].choices[0], attributes=("standard",)),))
    others = slice(1, None)  # the graph with the outlier is the first test graph
    before, after = first_row(graphs, scaled, "a"), first_row(changed, scaled, "b")
    assert (before.chosen, before.inner_score) == (after.chosen, after.inner_score)
    assert before.predicted[others] == after.predicted[others]
    everywhere = replace(scaled, fitted_on="all")
    assert first_row(graphs, everywhere, "c").chosen != first_row(changed, everywhere, "d").chosen


def test_repeats_run_in_order_and_only_as_many_as_planned(study, loaded, tmp_path):
    study = replace(study, protocol=replace(study.protocol, repeats_on={"B": 1}))
    study = replace(study, kernels=(study.kernels[1], replace(study.kernels[0], repeats=2)))
    order = []
    with Store.open(tmp_path / "s") as store:
        add = store.add_row
        store.add_row = lambda key, row: (order.append((row.repeat, row.dataset, row.kernel)), add(key, row))
        run_study(study, store, {name: loaded(name) for name in "AB"})
    first = [(0, "A", "colors"), (0, "A", "trees"), (0, "B", "colors"), (0, "B", "trees")]
    assert order[::3] == [*first, (1, "A", "colors"), (1, "A", "trees"), (2, "A", "colors")]


@pytest.mark.parametrize(("most", "n_computed"), [(2**30, 1), (0, 3)], ids=["there is room", "there is none"])
def test_gram_matrices_are_cached_between_repeats_if_memory_allows(
    study, loaded, tmp_path, monkeypatch, most, n_computed
):
    from treegram.study import run as module

    calls = []
    monkeypatch.setattr(module, "_MOST_BYTES", most)
    monkeypatch.setattr(module, "_on_all", lambda *given, on_all=module._on_all: (calls.append(1), on_all(*given))[1])
    one = replace(study, kernels=study.kernels[1:2], datasets=("A",))
    assert run(one, tmp_path / "s", loaded)[0] == 9
    assert len(calls) == n_computed


def test_reseed_uses_another_seed_per_repeat(study, loaded, tmp_path):
    """Repeat r gives the rows of the same kernel with random_state=r."""
    drawn = StudyEntry("drawn", (KernelSpec("p2k", {"n_iterations": 1}),), reseed=True)
    fixed = StudyEntry("drawn", (KernelSpec("p2k", {"n_iterations": 1, "random_state": 2}),))
    found, of_two = (
        run(replace(study, kernels=(entry,), datasets=("A",)), tmp_path / str(i), loaded)[1]
        for i, entry in enumerate((drawn, fixed))
    )
    areas = [[row.roc_auc for row in rows] for rows in (found, of_two)]
    assert areas[0][6:] == areas[1][6:]
    assert areas[0][:6] != areas[1][:6]


def test_choices_that_need_missing_data_are_left_out(study, loaded, tmp_path):
    with_edges = KernelSpec("wl", {"use_edge_labels": True})
    entry = StudyEntry(
        "any",
        (
            KernelSpec("wl"),
            with_edges,
            replace(with_edges, attributes=("edges",)),
            KernelSpec("wlcl", attributes=("robust",)),
        ),
    )
    graphs, y = loaded("A")
    plain = replace(graphs, attributes=None)
    sums = np.repeat(np.arange(graphs.n_nodes), graphs.degrees) + graphs.indices
    rich = replace(plain, edge_attributes=sums[:, None] % 7.0)

    def kernels(graphs):
        return {row.chosen["kernel"] for row in run(one, tmp_path / f"{graphs!r}", {"A": (graphs, y)}.__getitem__)[1]}

    one = replace(study, kernels=(entry,), datasets=("A",))
    assert kernels(plain) == {"wl"}
    assert kernels(rich) <= {"wl", "wl use_edge_labels=True edges"}
    assert kernels(graphs) <= {"wl", "wlcl robust"}
    one = replace(study, kernels=(StudyEntry("only", (with_edges,)),), datasets=("A",))
    with pytest.raises(StudyError, match="only on A: use_edge_labels=True, but the graphs have no edge labels"):
        kernels(plain)


def test_run_records_versions_and_another_version_of_auto_raises(study, loaded, tmp_path, monkeypatch):
    from treegram.study import run as module

    automatic = replace(study, kernels=(StudyEntry("auto", (KernelSpec("auto"),)),), datasets=("A",), source="a text")
    monkeypatch.setattr(
        module,
        "select_auto",
        lambda fold: fold.row(fold.targets[fold.test], {"kernel": "k"}, 0.5, 1),
    )
    run(automatic, tmp_path / "s", loaded, repeats=1)
    with Store.open(tmp_path / "s") as store:
        versions = store.runs()[0].versions
    assert versions["auto"] == AUTO_VERSION
    assert versions["study file"] == automatic.digest[:12] == hashlib.sha256(b"a text").hexdigest()[:12]
    monkeypatch.setattr(module, "AUTO_VERSION", "another")
    with pytest.raises(StudyError, match=rf"has results of another version of the kernel 'auto': {AUTO_VERSION}, not"):
        run(automatic, tmp_path / "s", loaded)


def test_gram_times_are_recorded_once(study, loaded, tmp_path):
    for _ in range(2):
        run(study, tmp_path / "s", loaded, repeats=1)
    with Store.open(tmp_path / "s") as store:
        assert len(store.gram_times()) == 8
        assert all(time.seconds > 0 for time in store.gram_times())
        assert [facts.n_graphs for facts in store.datasets()] == [36, 36]


def test_kernels_are_built_from_their_specification():
    choice = KernelSpec("oddcl", {"depth": 2}, attributes=("robust", "neighbors"))
    assert [type(step).__name__ for step in build_kernel(choice)] == ["ScaleAttributes", "NeighborMeans", "ODDCL"]
    both = build_kernel(KernelSpec(sum=(choice, KernelSpec("wl", {"n_iterations": 1}))))
    assert [type(part).__name__ for part in both.kernels] == ["Pipeline", "WL"]


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "A has no targets"),
        ({"y": np.linspace(0, 1, 36)}, "A: The targets are numbers, not classes. Use --task regression"),
        ({"y": [1] * 35}, "There are 36 graphs, but 35 targets"),
        ({"y": [1] * 36}, "at least two classes; got 36 graphs of class 1 alone"),
        (
            {"y": [*range(18)] * 2},
            "The largest class, 0, has 2 graphs, too few for 3 outer and 2 inner folds, which need 3. Use fewer folds",
        ),
        (
            {"y": [*range(6)] * 6, "inner_folds": 5},
            "6 graphs, too few for 3 outer and 5 inner folds, which need 8",
        ),
        ({"y": [0.5] * 36, "task": "regression"}, "A: All targets are 0.5: there is nothing to learn"),
        ({"y": [*"abc"] * 12, "task": "regression"}, "A: y must be real numbers"),
        ({"y": np.arange(36), "task": "regression", "inner_folds": 30}, "too few graphs, 36, for 3 outer and 30 inner"),
    ],
)
def test_invalid_targets_raise_before_anything_runs(study, loaded, tmp_path, change, message):
    protocol = {"inner_folds": change.get("inner_folds", 2), "task": change.get("task", "classification")}
    study = replace(study, protocol=replace(study.protocol, **protocol))
    with pytest.raises(StudyError, match=message):
        run(study, tmp_path / "s", lambda name: (loaded(name)[0], change["y"]))
    with Store.open(tmp_path / "s") as store:
        assert not store.rows()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"datasets": ["C"]}, "no data set 'C'; it has A, B"),
        ({"kernels": ["tree"]}, "no kernel 'tree'; it has trees, colors"),
        ({"repeats": 0}, "must be between 1 and 3, which the study small has; got 0"),
        ({"repeats": 4}, "must be between 1 and 3, which the study small has; got 4"),
    ],
)
def test_unknown_parts_raise(study, loaded, tmp_path, part, message):
    with pytest.raises(StudyError, match=message):
        run(study, tmp_path / "s", loaded, **part)


def test_other_data_under_the_same_name_raises(study, loaded, tmp_path):
    run(study, tmp_path / "s", loaded, kernels=["colors"], repeats=1)
    graphs, y = loaded("A")
    sets = {"A": (graphs[1:], y[1:]), "B": loaded("B")}
    with pytest.raises(StudyError, match=r"A is not the data set that .* n_graphs is 35 and was 36"):
        run(study, tmp_path / "s", sets.__getitem__, kernels=["colors"])
    assert run(study, tmp_path / "s", loaded, datasets=["B"], kernels=["colors"])[0] == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda graphs, y: (replace(graphs, attributes=graphs.attributes * 2), y),
        lambda graphs, y: (replace(graphs, labels=np.zeros(graphs.n_nodes, np.int64), label_values=("C",)), y),
        lambda graphs, y: (graphs[::-1], y[::-1]),
        lambda graphs, y: (graphs, np.roll(y, 1)),
    ],
    ids=["vectors", "labels", "order", "classes"],
)
def test_other_data_with_equal_counts_raises(study, loaded, tmp_path, change):
    run(study, tmp_path / "s", loaded, datasets=["A"], kernels=["colors"], repeats=1)
    with pytest.raises(StudyError, match=r"A is not the data set .*: digest is \w+ and was \w+\. Use another store"):
        run(study, tmp_path / "s", lambda name: change(*loaded(name)), datasets=["A"], kernels=["colors"])


def test_error_in_one_entry_keeps_finished_rows(study, loaded, tmp_path):
    """Graphs without attributes cannot be scaled: the third entry fails, rows of the first two are kept."""
    graphs, y = loaded("A")
    bare = replace(graphs, attributes=None)
    with pytest.raises(ValueError, match="scaled on A"):
        run(replace(study, datasets=("A",)), tmp_path / "s", {"A": (bare, y)}.__getitem__)
    with Store.open(tmp_path / "s") as store:
        assert {row.kernel for row in store.rows()} == {"trees", "colors"}


# -------------------------------------------------------------------- killed and concurrent processes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with two data sets and the study, for separate processes."""
    folder = tmp_path_factory.mktemp("killed")
    for name, seed in (("A", 0), ("B", 1)):
        graphs, y = data(seed)
        save_tu(Graphs(**{**vars(graphs), "targets": y}) if graphs.targets is None else graphs, folder / name)
    (folder / "small.toml").write_text(STUDY)
    return folder


def start(folder, store):
    command = [sys.executable, "-m", "treegram", "reproduce", "small.toml", "--store", store]
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_run_killed_ten_times_gives_the_same_table(folder):
    begin = time.monotonic()
    undisturbed = start(folder, "whole.sqlite")
    table = undisturbed.communicate()[0]
    lasted = time.monotonic() - begin
    assert undisturbed.returncode == 0
    chance = random.Random(0)
    for _ in range(10):
        process = start(folder, "killed.sqlite")
        time.sleep(chance.uniform(0.4, 1) * lasted)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    last = start(folder, "killed.sqlite")
    assert last.communicate()[0].replace("killed", "whole") == table
    assert last.returncode == 0
    with Store.open(folder / "whole.sqlite") as whole, Store.open(folder / "killed.sqlite") as killed:
        assert results(killed) == results(whole)
        assert len(killed.runs()) > 1


@pytest.mark.slow
def test_two_processes_can_run_one_study(folder):
    processes = [start(folder, "shared.sqlite") for _ in range(2)]
    for process in processes:
        assert process.wait() == 0
        process.communicate()
    study = parse_study("small", STUDY.encode(), "small.toml")
    with Store.open(folder / "shared.sqlite") as store:
        keys = [entry_key(study, entry, name) for entry in study.kernels for name in "AB"]
        assert all(len(store.done(key)) == 9 for key in keys)
        with Store.open(folder / "alone.sqlite") as alone:
            run_study(study, alone, {name: load_tu(name, data_dir=folder) for name in "AB"})
            assert results(store) == results(alone)
