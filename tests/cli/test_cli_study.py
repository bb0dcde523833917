"""Tests of the commands that run and report studies: output, stored files and exit codes."""

import contextlib
import io
import shutil
import sqlite3
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from treegram import WL, GraphSVC, make_synthetic, save_tu
from treegram.cli import main
from treegram.exceptions import TreegramError
from treegram.study import data as checks
from treegram.study import evaluate
from treegram.study import run as runner
from treegram.study.store import Store
from treegram.study.study_file import parse_study

STUDY = """\
title = "A small study"
datasets = ["A", "B"]
[protocol]
repeats = 3
outer_folds = 3
inner_folds = 2
seed = 7
C = [0.1, 10]
[[kernels]]
name = "trees"
kernel = "oddst"
param_grid = { depth = [0, 1] }
[kernels.published]
accuracy = { A = 99.5, B = "out of time" }
deviation = { A = 0.1 }
[[kernels]]
name = "colors, scaled"
kernel = "wlcl"
attributes = ["robust"]
param_grid = { n_iterations = [0, 1] }
"""
N_ROWS = 2 * 2 * 3 * 3


@pytest.fixture(scope="module")
def sets():
    return {
        name: make_synthetic(24, n_nodes=8, n_edges=10, permuted=(3, 1), random_state=seed)[0]
        for name, seed in (("A", 0), ("B", 1))
    }


@pytest.fixture
def folder(sets, tmp_path, monkeypatch):
    """Change to a working folder with two data sets and a study, and allow no download."""
    prepare(tmp_path, sets)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    monkeypatch.delenv("TREEGRAM_MIRROR", raising=False)
    return tmp_path


def prepare(folder, sets):
    for name, graphs in sets.items():
        save_tu(graphs, folder / name)
    (folder / "small.toml").write_text(STUDY)


@pytest.fixture(scope="module")
def finished(sets, tmp_path_factory):
    """Return the output and the store of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("finished")
    prepare(folder, sets)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["reproduce", "small.toml"]) == 0
    return out.getvalue(), folder / "small.sqlite"


@pytest.fixture
def store(finished, folder):
    """Copy the store of the uninterrupted run to where the commands look for it."""
    return Path(shutil.copy(finished[1], folder / "small.sqlite"))


def new_files(folder):
    names = {path.name for path in folder.iterdir()} - {"A", "B", "small.toml"}
    return sorted(name for name in names if not name.endswith(".lock"))


def rows(path):
    """Return the rows of a store without the columns that vary between runs."""
    with Store.open(path, create=False) as store:
        return [replace(row, seconds=0.0, run=0) for row in store.rows()]


def repeats(path, dataset, kernel):
    """Return the mean accuracy of each repeat, in percent."""
    accuracies = [row.score for row in rows(path) if (row.dataset, row.kernel) == (dataset, kernel)]
    return 100 * np.reshape(accuracies, (3, 3)).mean(axis=1)


def commands(path):
    with Store.open(path, create=False) as store:
        return [run.command for run in store.runs()]


def is_one_line(code, out, err):
    """Return whether a command failed with one line, as on bad input."""
    return (code, out, err.count("\n")) == (2, "", 1)


def stop_after(monkeypatch, n_folds, error):
    """Raise an error in the fold after ``n_folds`` folds."""
    select, done = runner.select_gram, []

    def interrupted(*args, **options):
        if len(done) == n_folds:
            raise error
        done.append(1)
        return select(*args, **options)

    monkeypatch.setattr(runner, "select_gram", interrupted)


def forbid_computing(monkeypatch):
    """Turn every Gram matrix and every selection into a bug, which the command does not hide."""

    def computed(*args, **options):
        raise AssertionError("computed")

    monkeypatch.setattr(runner, "select_gram", computed)
    monkeypatch.setattr(runner, "grid_points", computed)


# -------------------------------------------------------------------- reproduce


def test_reproduce_stores_every_fold_and_prints_the_table(finished):
    out, path = finished
    found = rows(path)
    assert len(found) == N_ROWS
    lines = out.splitlines()
    assert lines[0].split() == ["accuracy,", "%", "A", "B"]
    assert lines[2].split() == ["largest", "class", "50.0", "50.0"]
    first, second = (repeats(path, name, "trees") for name in "AB")
    assert lines[3].split() == [
        "trees", f"{first.mean():.1f}", f"±{first.std(ddof=1):.1f}", "*", f"{second.mean():.1f}", f"±{second.std(ddof=1):.1f}",
    ]  # fmt: skip
    assert lines[4].split() == ["published", "99.5", "±0.1", "out", "of", "time"]
    assert "mean ± standard deviation over 3 repeats of 3-fold cross-validation" in lines
    assert "* differs from the published number by more than two standard deviations" in lines
    assert lines[-1] == "Results: small.sqlite. For a page of tables and statistics: treegram report small.sqlite"


def test_reproduce_runs_only_the_requested_part(run, folder, finished):
    code, out, err = run(
        "reproduce", "small.toml", "--datasets", "B", "--kernels", "colors, scaled", "--repeats", 1, "--jobs", 2
    )
    assert (code, err) == (0, "")
    assert "1 of 4 cells with fewer than 3 repeats" in out
    assert out.splitlines()[3].split() == ["trees", "-", "-"]
    part = [row for row in rows(finished[1]) if (row.dataset, row.kernel, row.repeat) == ("B", "colors, scaled", 0)]
    assert rows("small.sqlite") == part
    assert commands("small.sqlite") == [
        "treegram reproduce small.toml --datasets B --kernels 'colors, scaled' --repeats 1 --jobs 2"
    ]


@pytest.mark.slow
def test_parts_and_threads_give_the_same_rows_as_one_run(run, folder, finished):
    assert run("reproduce", "small.toml", "--datasets", "A", "--jobs", 2)[0] == 0
    assert run("reproduce", "small.toml", "--kernels", "trees", "--repeats", 2)[0] == 0
    assert run("reproduce", "small.toml", "--jobs", -1) == (0, finished[0], "")
    assert rows("small.sqlite") == rows(finished[1])


def test_finished_run_is_printed_without_computing(run, store, finished, monkeypatch):
    forbid_computing(monkeypatch)
    assert run("reproduce", "small.toml") == (0, finished[0], "")
    assert rows(store) == rows(finished[1])


def test_data_is_hashed_once(run, store, monkeypatch):
    digest, hashed = checks.digest_graphs, []
    monkeypatch.setattr(checks, "digest_graphs", lambda graphs: hashed.append(graphs) or digest(graphs))
    assert run("reproduce", "small.toml")[0] == 0
    assert len(hashed) == 2


def test_store_can_have_any_name(run, folder):
    code, out, _ = run("reproduce", "small.toml", "--repeats", 1, "--kernels", "trees", "--store", "A/other.db")
    assert code == 0
    assert out.endswith("Results: A/other.db. For a page of tables and statistics: treegram report A/other.db\n")
    assert new_files(folder) == []


def test_absolute_paths_are_not_stored(run, folder, finished, tmp_path_factory, monkeypatch):
    """Data sets may be in the data folder or next to the study; the folds depend only on their names."""
    elsewhere = tmp_path_factory.mktemp("secret") / "data"
    elsewhere.mkdir()
    shutil.move("A", elsewhere / "A")
    with monkeypatch.context() as patch:
        patch.setenv("TREEGRAM_DATA", str(elsewhere))
        assert run("reproduce", "small.toml", "--datasets", "A", "--repeats", 1)[0] == 0
    assert b"secret" not in Path("small.sqlite").read_bytes()
    shutil.move("small.toml", elsewhere / "moved.toml")
    assert run("reproduce", elsewhere / "moved.toml", "--datasets", "A", "--repeats", 1)[0] == 0
    assert b"secret" not in Path("moved.sqlite").read_bytes()
    assert commands("moved.sqlite") == ["treegram reproduce moved.toml --datasets A --repeats 1"]
    first = [row for row in rows(finished[1]) if (row.dataset, row.repeat) == ("A", 0)]
    assert rows("small.sqlite") == rows("moved.sqlite") == first


def test_ctrl_c_keeps_finished_folds(run, folder, finished, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 13, KeyboardInterrupt())
        code, out, err = run("reproduce", "small.toml", "--jobs", 1)  # with several jobs, other folds are running
    assert (code, out) == (130, "")
    assert err == "Interrupted; finished folds are in small.sqlite. Run the same command to resume.\n"
    assert len(rows("small.sqlite")) == 13
    assert run("report", "small.sqlite")[0] == 0
    stop_after(monkeypatch, N_ROWS - 13, AssertionError("computed what was there"))
    assert run("reproduce", "small.toml") == (0, finished[0], "")
    assert rows("small.sqlite") == rows(finished[1])


def test_full_disk_keeps_finished_folds(run, folder, finished, monkeypatch):
    open_store = Store.open

    def open_nearly_full(path):
        store = open_store(path)
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        return store

    with monkeypatch.context() as patch:
        patch.setattr(Store, "open", open_nearly_full)
        code, out, err = run("reproduce", "small.toml")
    assert is_one_line(code, out, err)
    assert "disk is full. Everything that was finished before is safe in it" in err
    kept = rows("small.sqlite")
    assert 0 < len(kept) < N_ROWS
    assert run("reproduce small.toml") == (0, finished[0], "")
    assert rows("small.sqlite") == rows(finished[1])


# -------------------------------------------------------------------- bad input to reproduce


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 7", "sed = 7", "small.toml: protocol.sed: unknown key; did you mean seed?"),
        (
            "depth = [0, 1]",
            "deep = [0, 1]",
            "small.toml: kernels[0].param_grid.deep[0]: the kernel 'oddst' has no parameter",
        ),
        ("repeats = 3", "repeats = ", "small.toml: not valid TOML"),
    ],
)
def test_study_error_names_its_key(run, folder, old, new, message):
    Path("small.toml").write_text(STUDY.replace(old, new))
    code, out, err = run("reproduce", "small.toml")
    assert is_one_line(code, out, err)
    assert err.startswith(f"treegram reproduce: error: {message}")
    assert new_files(folder) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "reproduce papr",
            "the name of a study that comes with the package: beyond, paper, wide, wide2, wide2_large; did you mean paper?",
        ),
        ("reproduce small.toml --datasets C", "The study small has no data set 'C'; it has A, B."),
        (
            "reproduce small.toml --kernels tree",
            "The study small has no kernel 'tree'; it has trees, colors, scaled; did you mean trees?",
        ),
        ("reproduce small.toml --repeats 0", "argument --repeats: expected a whole number of at least 1, got '0'"),
        ("reproduce small.toml --jobs 0", "argument --jobs: expected a whole number of at least 1"),
        ("reproduce small.toml --store none/s.sqlite", "The folder none of the store none/s.sqlite does not exist"),
        ("reproduce small.toml --store A", "A could not be read or written: unable to open database file"),
        ("evaluate", "treegram evaluate: error: the following arguments are required: DATA"),
        ("evaluate A --kernel odcl", "unknown kernel 'odcl' (choose from attributedwalk, csm, gik, "),
        ("evaluate A --folds 1", "argument --folds: expected a whole number of at least 2, got '1'"),
        ("evaluate A --repeats x", "argument --repeats: expected a whole number of at least 1, got 'x'"),
        ("evaluate A ./A", "Data sets must have different names; got A, ./A."),
        ("evaluate A none/B", "The folder none/B does not exist"),
        ("evaluate ENZMES --no-download", "Unknown data set 'ENZMES'"),
        ("report", "treegram report: error: the following arguments are required: STORE"),
        ("report none.sqlite", "There is no store none.sqlite; check its name, or run a study that writes it."),
        ("report none.sqlite -o page.txt", "The output file must end in .html; got 'page.txt'."),
        ("report none.sqlite -o none/page.html", "The folder none of the output file does not exist; create it first."),
        ("report small.toml", "small.toml is not a store of results, or it is damaged"),
    ],
)
def test_bad_input_prints_one_line_and_writes_nothing(run, folder, words, message):
    code, out, err = run(*words.split())
    assert is_one_line(code, out, err)
    assert message in err
    assert new_files(folder) == []
    assert Path("small.toml").read_text() == STUDY


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (None, "A has no targets; a study needs a class or a number for each graph."),
        ([3] * 24, "A: Classification needs at least two classes; got 24 graphs of class 3 alone."),
        (
            [*range(12)] * 2,
            "A: The largest class, 0, has 2 graphs, too few for 3 outer and INNER inner folds, which need ENOUGH. Use fewer folds.",
        ),
    ],
)
@pytest.mark.parametrize("command", ["reproduce small.toml", "evaluate A B --kernel wl --folds 3"])
def test_invalid_targets_are_reported_before_computing(run, folder, sets, monkeypatch, targets, message, command):
    shutil.rmtree("A")
    save_tu(replace(sets["A"], targets=None if targets is None else np.array(targets)), "A")
    forbid_computing(monkeypatch)
    code, out, err = run(*command.split())
    assert is_one_line(code, out, err)
    inner, enough = ("2", "3") if "reproduce" in command else ("3", "5")
    message = message.replace("INNER", inner).replace("ENOUGH", enough)
    assert err == f"treegram {command.split()[0]}: error: {message}\n"
    assert not list(folder.glob("*.sqlite*"))


def test_store_of_another_study_is_not_changed(run, store):
    Path("other.toml").write_text(STUDY.replace("repeats = 3", "repeats = 1"))
    before = rows(store)
    code, out, err = run("reproduce", "other.toml", "--store", "small.sqlite")
    assert is_one_line(code, out, err)
    assert "small.sqlite holds the study 'small'; use another file for the study 'other'." in err
    with Store.open(store) as opened:
        assert opened.study()[1] == STUDY
    assert rows(store) == before


@pytest.mark.parametrize("command", ["reproduce small.toml", "report small.sqlite"])
def test_damaged_store_is_reported_and_not_changed(run, store, command):
    content = store.read_bytes()
    store.write_bytes(content[: len(content) // 2])
    before = store.read_bytes()
    code, out, err = run(*command.split())
    assert is_one_line(code, out, err)
    assert "or it is damaged; use another file, or a copy from a backup" in err
    assert store.read_bytes() == before
    assert new_files(store.parent) == ["small.sqlite"]


def test_error_in_one_kernel_names_it_and_keeps_the_others(run, folder, sets):
    """Scaling fails without attributes: the second kernel fails, and the finished folds of the first are kept."""
    shutil.rmtree("A")
    save_tu(replace(sets["A"], attributes=None), "A")
    code, out, err = run("reproduce", "small.toml", "--datasets", "A")
    assert is_one_line(code, out, err)
    assert "error: colors, scaled on A: ScaleAttributes changes node attributes, but the graphs have none" in err
    assert [row.kernel for row in rows("small.sqlite")] == ["trees"] * 3


# -------------------------------------------------------------------- evaluate


def test_evaluate_compares_kernels_on_folders(run, folder):
    code, out, err = run(
        "evaluate", folder / "A", "./B", "--kernel", "wl", "--kernel", "ODDST", "--folds", 3, "--repeats", 2
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["accuracy,", "%", "A", "B"]
    assert [line.split()[0] for line in lines[3:5]] == ["wl", "oddst"]
    assert "mean ± standard deviation over 2 repeats of 3-fold cross-validation" in lines
    assert lines[-1].startswith("Results: A-B.sqlite. ")
    found = rows("A-B.sqlite")
    assert len(found) == 2 * 2 * 2 * 3
    assert {row.kernel for row in found if row.chosen.keys() == {"kernel", "depth", "lam", "C"}} == {"oddst"}
    assert commands("A-B.sqlite") == ["treegram evaluate A B --kernel wl --kernel ODDST --folds 3 --repeats 2"]


@pytest.mark.parametrize("numbers", [False, True])
def test_evaluate_in_python_gives_the_rows_of_the_command(run, folder, sets, numbers):
    data = {name: (graphs, graphs.targets + 0.5 if numbers else graphs.targets) for name, graphs in sets.items()}
    for name, (graphs, y) in data.items():
        shutil.rmtree(name)
        save_tu(replace(graphs, targets=y), name)
    words = "--kernel wl --kernel oddst --folds 3 --repeats 2 --store whole.sqlite"
    assert run(f"evaluate A B {words}")[0] == 0
    summary = evaluate(data, ["wl", "oddst"], "python.sqlite", repeats=2, folds=3)
    assert rows("python.sqlite") == rows("whole.sqlite")
    assert summary.study.protocol.task == ("regression" if numbers else "classification")
    assert {cell.repeats for cell in summary.cells} == {(0, 1)}


def test_evaluate_in_python_takes_kernels_and_estimators(folder, sets):
    data = {"A": (sets["A"], sets["A"].targets)}
    models = {"tuned": "wl", "fixed": WL(2), "other": GraphSVC(WL(2), param_grid={}, C=1.0), "plain": WL()}
    evaluate(data, models, "models.sqlite", repeats=1, folds=3)
    chosen = {row.kernel: row.chosen for row in rows("models.sqlite")}
    assert chosen["tuned"].keys() == {"kernel", "n_iterations", "C"}
    assert chosen["fixed"]["kernel"] == "wl n_iterations=2"
    assert chosen["plain"]["kernel"] == "wl"
    assert chosen["other"]["kernel"] == "WL(n_iterations=2)"


def test_evaluate_in_python_says_what_is_wrong(folder, sets):
    graphs, y = sets["A"], sets["A"].targets
    for data, models, message in (
        ({"A": (graphs, y)}, ["wll"], "There is no kernel 'wll'; did you mean"),
        (
            {"A": (graphs, y)},
            {"five": 5},
            "must be the name of an estimator, or in Python an estimator of graphs, got 5",
        ),
        (
            {"A": (graphs, np.arange(24) % 4)},
            ["wl"],
            "the targets of A are classes or measurements: the targets are whole numbers, 4 distinct ones for 24 graphs. Add",
        ),
        (
            {"A": (graphs, y), "B": (graphs, y + 0.5)},
            ["wl"],
            "The targets of A are classes, and those of B measurements",
        ),
    ):
        with pytest.raises(TreegramError, match=message):
            evaluate(data, models, "wrong.sqlite", repeats=1, folds=2)
    assert not Path("wrong.sqlite").exists()


def test_evaluate_stores_no_absolute_path(run, folder):
    Path("here").mkdir()
    with contextlib.chdir("here"):
        assert run("evaluate", folder / "A", "../B", "--kernel", "wl", "--folds", 2, "--repeats", 1)[0] == 0
        assert run("report", "A-B.sqlite")[0] == 0
        for file in ("A-B.sqlite", "A-B.html", "A-B.md"):
            content = Path(file).read_bytes()
            assert str(folder).encode() not in content
            assert b"../B" not in content


def test_evaluate_names_a_data_set_after_its_folder(run, folder):
    with contextlib.chdir("A"):
        code, out, _ = run("evaluate", "./", "--kernel", "wl", "--folds", 2, "--repeats", 1)
    assert code == 0
    assert out.splitlines()[0].split() == ["accuracy,", "%", "A"]
    assert (folder / "A" / "A.sqlite").exists()


def test_evaluate_continues_with_more_repeats(run, folder, monkeypatch):
    words = ("evaluate", "A", "--kernel", "wl", "--folds", 3, "--repeats")
    assert run(*words, 2, "--store", "whole.sqlite")[0] == 0
    assert "mean over one 3-fold cross-validation" in run(*words, 1)[1]
    stop_after(monkeypatch, 3, AssertionError("computed what was there"))
    assert run(*words, 2)[0] == 0
    assert rows("A.sqlite") == rows("whole.sqlite")


def test_evaluate_with_fewer_repeats_shows_only_these(run, folder):
    words = ("evaluate", "A", "--kernel", "wl", "--folds", 3, "--repeats")
    first = run(*words, 1)[1]
    assert run(*words, 3)[1] != first
    assert run(*words, 1)[1] == first


def save_with(sets, targets):
    shutil.rmtree("A")
    save_tu(replace(sets["A"], targets=np.array(targets)), "A")


def test_evaluate_uses_regression_for_continuous_targets(run, folder, sets):
    sizes = sets["A"].attributes.reshape(24, -1).mean(axis=1)
    save_with(sets, sizes)
    code, out, err = run("evaluate", "A", "--kernel", "oddcl", "--kernel", "wl", "--folds", 3, "--repeats", 2)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["mean", "absolute", "error", "A"]
    assert lines[2].split()[:3] == ["mean", "of", "targets"]
    assert float(lines[2].split()[3]) == pytest.approx(np.abs(sizes - sizes.mean()).mean(), rel=1e-3)
    assert "also   data set  RMSE" in out
    found = rows("A.sqlite")
    assert {row.task for row in found} == {"regression"}
    assert {tuple(sorted(row.chosen)) for row in found if row.kernel == "wl"} == {("alpha", "kernel", "n_iterations")}
    assert run("report", "A.sqlite") == (0, "A.html\nA.md\n", "")
    page = Path("A.md").read_text()
    for words in (
        "## Mean absolute error",
        "RMSE, mean",
        "R², mean",
        "Errors of wl minus those of oddcl",
        "kernel ridge regression",
    ):
        assert words in page
    assert "support vector" not in page


def test_evaluate_treats_integers_as_regression_when_requested(run, folder, sets):
    save_with(sets, np.arange(24))
    words = ("evaluate", "A", "--kernel", "wl", "--folds", 2, "--repeats", 1)
    assert "mean absolute error" in run(*words, "--task", "regression")[1]
    assert rows("A.sqlite")[0].task == "regression"


def test_evaluate_does_not_mix_classification_and_regression(run, folder, sets):
    save_with(sets, np.linspace(0, 1, 24))
    code, out, err = run("evaluate", "A", "B", "--kernel", "wl")
    assert is_one_line(code, out, err)
    assert "The targets of B are classes, and those of A measurements; evaluate these data sets one by one." in err
    code, out, err = run("evaluate", "A", "--task", "classification")
    assert is_one_line(code, out, err)
    assert "A: The targets are numbers, not classes. Use --task " in err
    code, out, err = run("evaluate", "A", "--min-class-size", 3)
    assert is_one_line(code, out, err)
    assert new_files(folder) == []


def test_evaluate_prints_other_classification_metrics(run, folder):
    code, out, err = run("evaluate", "A", "--kernel", "wl", "--folds", 3, "--repeats", 1)
    assert (code, err) == (0, "")
    assert "also  data set  balanced accuracy, %  macro F1, %  ROC AUC, %" in out
    assert all(row.roc_auc is not None for row in rows("A.sqlite"))


def test_evaluate_searches_scales_and_gammas(run, folder):
    words = ("evaluate", "A", "--kernel", "oddcl", "--kernel", "wl", "--folds", 2, "--repeats", 1)
    code, _, err = run(*words, "--scale", "raw,robust", "--gamma", "none,0.01,scale")
    assert (code, err) == (0, "")
    with Store.open("A.sqlite", create=False) as store:
        study = parse_study("A", store.study()[1].encode(), "A")
    trees, colors = study.kernels
    found = [(one.attributes, one.param_grid.get("gamma")) for one in trees.choices]
    assert found == [((), (None, 0.01, "scale")), (("robust",), (None, 0.01, "scale"))]
    assert [(one.attributes, one.param_grid.get("gamma")) for one in colors.choices] == [((), None)]
    assert commands("A.sqlite")[0].endswith("--scale raw,robust --gamma none,0.01,scale")


def test_evaluate_uses_edge_labels_when_requested(run, folder):
    code, _, err = run("evaluate A --kernel wl --kernel sp --use-edge-labels --folds 2 --repeats 1")
    assert code == 2
    assert "the graphs have no edge labels" in err
    code, _, err = run("evaluate A --kernel sp --use-edge-labels")
    assert code == 2
    assert "--use-edge-labels: it has no effect on sp" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--kernel oddcl --scale standrd", "expected raw, standard or robust, got 'standrd'; did you mean standard?"),
        ("--kernel oddcl --gamma -1", "expected a number of at least 0"),
        ("--kernel wl --gamma scale", "--gamma: it has no effect on wl; it is for --kernel attributedwalk, csm, gik"),
        ("--kernel wl --scale robust", "--scale has no effect on wl; it is for --kernel attributedwalk, csm, gik"),
    ],
)
def test_invalid_scales_and_gammas_are_reported(run, folder, words, message):
    code, out, err = run("evaluate", "A", *words.split())
    assert is_one_line(code, out, err)
    assert message in err
    assert new_files(folder) == []


@pytest.mark.filterwarnings("always")
def test_attributes_on_a_large_scale_are_reported_with_a_remedy(run, folder, sets):
    shutil.rmtree("A")
    save_tu(replace(sets["A"], attributes=sets["A"].attributes * 1e6), "A")
    words = ("evaluate", "A", "--kernel", "oddcl", "--folds", 2, "--repeats", 1)
    code, _, err = run(*words)
    assert code == 0
    assert err.startswith("treegram evaluate: warning: oddcl on A: the Gram matrices are nearly diagonal. ")
    assert "--scale standard" in err
    assert err.count("\n") == 1
    assert run(*words, "--scale", "standard", "--store", "scaled.sqlite")[2] == ""


MOLECULES = "smiles,logS,batch\n" + "".join(
    f"{smiles},{i / 4},{batch}\n"
    for i, (smiles, batch) in enumerate(
        [
            ("c1ccccc1C", "a"),
            ("c1ccccc1CC", "a"),
            ("C1CCCCC1", "b"),
            ("C1CCCCC1C", "b"),
            ("CCO", "c"),
            ("CCN", ""),
            ("CC", "c"),
        ]
    )
)


@pytest.mark.parametrize(("value", "split"), [("batch", "groups"), ("scaffold", "scaffold")])
def test_evaluate_keeps_groups_together(run, folder, value, split):
    pytest.importorskip("rdkit")
    Path("esol.csv").write_text(MOLECULES)
    words = ("evaluate", "esol.csv", "--target", "logS", "--kernel", "wl", "--folds", 2, "--repeats", 1)
    words += ("--groups", value)
    code, _, err = run(*words)
    assert (code, err) == (0, "")
    path = f"esol.csv-{split}.sqlite"
    assert commands(path)[0].endswith(f"--groups {value}")
    folds = [sorted(round(4 * number) for number in row.actual) for row in rows(path)]
    assert sorted(i for fold in folds for i in fold) == list(range(7))
    for together in ([0, 1], [2, 3], [4, 6]):
        assert sum(set(together) <= set(fold) for fold in folds) == 1
    assert run("report", path)[0] == 0
    assert "Outer folds keep " in Path(path).with_suffix(".md").read_text()
    code, out, err = run("evaluate", "esol.csv", "--folds", 2, "--groups", value)
    assert is_one_line(code, out, err)
    assert "esol.csv has no targets" in err
    code, out, err = run("evaluate", "A", "--folds", 2, "--groups", value)
    assert is_one_line(code, out, err)
    assert "--groups is for molecules, proteins and tables, which A is not." in err


def test_a_column_called_scaffold_is_not_taken_for_computed_ones(run, folder):
    pytest.importorskip("rdkit")
    Path("esol.csv").write_text(MOLECULES.replace("batch", "scaffold"))
    words = ("evaluate", "esol.csv", "--target", "logS", "--kernel", "wl", "--folds", 2, "--repeats", 1)
    code, out, err = run(*words, "--groups", "scaffold")
    assert is_one_line(code, out, err)
    assert "--groups scaffold computes scaffolds, but esol.csv has a column of this name; rename it." in err


RARE = [1] * 15 + [2] * 8 + [7]


@pytest.mark.filterwarnings("always")
def test_rare_class_is_reported_and_does_not_stop_the_run(run, folder, sets):
    save_with(sets, RARE)
    code, _, err = run("evaluate", "A", "--kernel", "wl", "--folds", 3, "--repeats", 1)
    assert code == 0
    assert err.startswith(
        "treegram evaluate: warning: A: class 7 has too few graphs for 3 outer and 3 inner folds, which need 5: some folds test or train "
        "without any. To leave out such classes, use --min-class-size 5, or min_class_size = 5 in the [protocol] of a study.\n"
    )
    assert sum(len(row.actual) for row in rows("A.sqlite")) == 24


@pytest.mark.filterwarnings("always")
def test_rare_classes_can_be_dropped(run, folder, sets):
    save_with(sets, RARE)
    code, out, err = run("evaluate", "A", "--kernel", "wl", "--folds", 3, "--repeats", 1, "--min-class-size", 5)
    assert code == 0
    assert err.startswith(
        "treegram evaluate: warning: A: class 7 has fewer than 5 graphs and is left out (--min-class-size).\n"
    )
    assert sum(len(row.actual) for row in rows("A.sqlite")) == 23
    assert commands("A.sqlite")[0].endswith("--min-class-size 5")
    code, out, err = run("evaluate", "A", "--kernel", "wl", "--folds", 3, "--min-class-size", 10, "--store", "b.sqlite")
    assert is_one_line(code, out, err)
    assert "Fewer than two classes have 10 graphs or more" in err


# -------------------------------------------------------------------- report


def test_report_writes_html_and_markdown(run, store):
    before = store.read_bytes()
    assert run("report", "small.sqlite") == (0, "small.html\nsmall.md\n", "")
    page, text = Path("small.html").read_text(), Path("small.md").read_text()
    assert page.startswith("<!doctype html>")
    cells = [repeats(store, name, "colors, scaled") for name in "AB"]
    shown = [f"{means.mean():.2f} ± {means.std(ddof=1):.2f}" for means in cells]
    assert f"| colors, scaled | {shown[0]} | {shown[1]} |" in text.replace("**", "")
    for words in ("A small study", "colors, scaled", *(f"{means.mean():.2f}" for means in cells)):
        assert words in page
    assert store.read_bytes() == before
    assert new_files(store.parent) == ["small.html", "small.md", "small.sqlite"]


def test_report_overwrites_files_only_with_force(run, store):
    Path("page.md").write_text("my own page")
    code, out, err = run("report", "small.sqlite", "-o", "page.html")
    assert is_one_line(code, out, err)
    assert "page.md exists already; use --force to replace it, or another name." in err
    assert Path("page.md").read_text() == "my own page"
    assert new_files(store.parent) == ["page.md", "small.sqlite"]
    assert run("report", "small.sqlite", "-o", "page.html", "--force")[0] == 0
    assert "A small study" in Path("page.md").read_text()


def test_report_writes_the_files_of_a_paper(run, store):
    code, out, err = run("report", "small.sqlite", "--paper", "files")
    assert (code, err) == (0, "")
    assert new_files(store.parent) == ["files", "small.sqlite"]
    figures = [f"{kind}_{name}.{ending}" for kind in ("scores", "times") for name in "AB" for ending in ("pdf", "svg")]
    names = sorted(["pairs.tex", "references.bib", "scores.tex", "wins.tex", "folds.csv", *figures])
    assert sorted(path.name for path in Path("files").iterdir()) == names
    assert sorted(Path(line).as_posix() for line in out.splitlines()) == [f"files/{name}" for name in names]
    assert len(Path("files/folds.csv").read_text().splitlines()) == 1 + N_ROWS
    code, out, err = run("report", "small.sqlite", "--paper", "files")
    assert is_one_line(code, out, err)
    assert "files is not an empty folder; use --force to replace files in it" in err
    assert run("report", "small.sqlite", "--paper", "files", "-o", "page.html", "--force")[0] == 0
    assert new_files(store.parent) == ["files", "page.html", "page.md", "small.sqlite"]
    store.rename("folds.csv")
    code, out, err = run("report", "folds.csv", "--paper", ".", "--force")
    assert is_one_line(code, out, err)
    assert "An output file would replace the store folds.csv; give another name." in err


@pytest.mark.parametrize("name", ["small.html", "small.md"])
def test_report_never_overwrites_the_store(run, store, name):
    store.rename(name)
    before = Path(name).read_bytes()
    code, out, err = run("report", name)
    assert is_one_line(code, out, err)
    assert f"would replace the store {name}; give another name." in err
    assert Path(name).read_bytes() == before
    assert run("report", name, "-o", "page.html")[0] == 0


def test_report_of_a_store_without_a_study_says_what_to_do(run, folder):
    Store.open("empty.sqlite").close()
    code, out, err = run("report", "empty.sqlite")
    assert is_one_line(code, out, err)
    assert "empty.sqlite holds no study yet; run one with this store first." in err
    assert new_files(folder) == ["empty.sqlite"]


def change_study(store, old, new):
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE study SET text = replace(text, ?, ?)", (old, new))
        connection.commit()


def test_report_does_not_trust_the_study_in_a_store(run, store):
    change_study(store, "repeats = 3", "repeats = 0")
    code, out, err = run("report small.sqlite")
    assert is_one_line(code, out, err)
    assert "protocol.repeats" in err


def test_report_works_with_unknown_kernels(run, store):
    """Rows are found by the study's keys, so rows of the renamed kernel are not found."""
    change_study(store, "wlcl", "nosuch")
    assert run("report", "small.sqlite")[0] == 0
    assert "nosuch; attributes robust" in Path("small.md").read_text()


def test_malicious_store_is_rejected_and_writes_no_page(run, store):
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE result SET inner_score = 9e999")
        connection.commit()
    code, out, err = run("report small.sqlite")
    assert is_one_line(code, out, err)
    assert "small.sqlite is damaged: it holds an impossible record" in err
    assert new_files(store.parent) == ["small.sqlite"]


def test_control_characters_in_a_store_are_escaped(run, store):
    text = "\x1b[31m\u009b\u202e<script>"
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE run SET command = ?, started = ?", (text, text))
        connection.commit()
    assert run("report", "small.sqlite")[0] == 0
    for page in ("small.html", "small.md"):
        content = Path(page).read_text()
        assert not {sign for sign in content if sign < " " and sign != "\n"} | (
            {"\x7f", "\x9b", "\u202e"} & set(content)
        )
        assert "<script" not in content


# -------------------------------------------------------------------- names of folders


def save_under(graphs, name):
    """Save a data set under any folder name; ``save_tu`` itself allows only plain names."""
    save_tu(graphs, "plain")
    for file in Path("plain").iterdir():
        file.rename(file.with_name(file.name.replace("plain", name)))
    Path("plain").rename(name)


@pytest.mark.parametrize("name", ["\N{DEER}", "graphs \N{GREEK SMALL LETTER BETA} & <b>", 'it\'s "quoted"'])
def test_folders_with_any_printable_name_can_be_evaluated_and_reported(run, folder, sets, name):
    save_under(sets["A"], name)
    code, out, err = run("evaluate", f"./{name}", "--kernel", "wl", "--folds", 2, "--repeats", 1, "--store", "s.sqlite")
    assert (code, err) == (0, "")
    assert name in out
    assert run("report", "s.sqlite")[0] == 0
    assert "<b>" not in Path("s.md").read_text()
    assert f"<title>Kernels on {name}</title>" in unescape(Path("s.html").read_text())
