"""The commands that fit a model, predict by it, and compare one data set with another."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from treegram import WL, GraphGP, Graphs, GraphSVC, ShortestPath, load_model, save_model, save_tu
from treegram.cli import main

N_GRAPHS = 20


def make_graphs(labels=(1, 2), targets=None, *, with_attributes=True, n_graphs=N_GRAPHS):
    rng = np.random.default_rng(0)
    return Graphs.from_edges(
        [[(0, 1), (1, 2), (2, 3)][: 2 + i % 2] for i in range(n_graphs)],
        n_nodes=[4] * n_graphs,
        labels=[[*labels, *labels]] * n_graphs,
        attributes=[rng.normal(size=(4, 2)) for _ in range(n_graphs)] if with_attributes else None,
        targets=[-1, 1] * (n_graphs // 2) if targets is None else targets,
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working folder, with data sets and nothing to download."""
    save_tu(make_graphs(), tmp_path / "TRAIN")
    save_tu(make_graphs(n_graphs=6), tmp_path / "NEW")
    save_tu(make_graphs(with_attributes=False), tmp_path / "BARE")
    save_tu(make_graphs(labels=(7, 8)), tmp_path / "STRANGE")
    save_tu(make_graphs(targets=np.arange(N_GRAPHS) / 8), tmp_path / "NUMBERS")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    monkeypatch.delenv("TREEGRAM_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    def run_command(words):
        code = main(words.split())
        return code, *capsys.readouterr()

    return run_command


def refused(run, words, message):
    """The command ends with one line, and no file is new or changed."""

    def contents():
        return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}

    before = contents()
    code, out, err = run(words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert contents() == before


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


# -------------------------------------------------------------------- fit


def test_fit_saves_a_classifier_with_probabilities(run):
    code, out, err = run("fit TRAIN --kernel wl --kernel oddst --folds 3 --jobs 1 -o model.tgm")
    assert (code, err) == (0, "")
    assert out.startswith(
        "model.tgm: GraphSVC of 20 graphs of TRAIN, kernel WL, n_iterations 1, C 1, accuracy 1.000 on"
    )
    model = load_model("model.tgm")
    assert isinstance(model, GraphSVC)
    assert model.kernel == ["wl", "oddst"]
    assert model.cv == 3
    assert model.predict_proba(make_graphs()).shape == (N_GRAPHS, 2)


@pytest.mark.parametrize("words", ["fit NUMBERS", "fit TRAIN --target numbers"])
def test_fit_saves_a_gaussian_process_for_numbers(run, words):
    code, out, err = run(f"{words} --kernel wl --jobs 1 -o model.tgm")
    assert (code, err) == (0, "")
    assert out.startswith("model.tgm: GraphGP of 20 graphs of ")
    assert "log marginal likelihood" in out
    assert isinstance(load_model("model.tgm"), GraphGP)


def test_fit_refuses_what_cannot_be_fitted(run):
    refused(run, "fit NUMBERS --target classes -o model.tgm", "Unknown label type: continuous")
    refused(run, "fit TRAIN --folds 30 -o model.tgm", "Use 10 folds or fewer")
    refused(run, "fit TRAIN --target words -o model.tgm", "--target: invalid choice: 'words'")
    refused(run, "fit TRAIN --kernel lw -o model.tgm", "unknown kernel 'lw'")
    refused(run, "fit TRAIN -o no/model.tgm", "The folder no of the output file does not exist")
    Path("TRAIN/TRAIN_graph_labels.txt").unlink()
    refused(run, "fit TRAIN -o model.tgm", "TRAIN has no targets, so that there is nothing to learn")


def test_fit_replaces_a_file_only_by_force(run):
    Path("model.tgm").write_text("older")
    refused(run, "fit TRAIN --kernel wl --folds 2 -o model.tgm", "model.tgm exists already; give --force")
    assert run("fit TRAIN --kernel wl --folds 2 --jobs 1 -o model.tgm --force")[0] == 0
    assert isinstance(load_model("model.tgm"), GraphSVC)


# -------------------------------------------------------------------- predict


@pytest.fixture
def model():
    fitted = GraphSVC("oddcl", grid={}, C=1, cv=2, probability=True).fit(make_graphs(), make_graphs().targets)
    save_model(fitted, "model.tgm")
    return fitted


def test_predict_writes_classes_and_probabilities(run, model):
    code, out, err = run("predict model.tgm NEW -o out.csv")
    assert (code, err) == (0, "")
    assert out == "out.csv: predictions of model.tgm for 6 graphs of NEW\n"
    graphs = make_graphs(n_graphs=6)
    table = rows(Path("out.csv").read_text())
    assert list(table[0]) == ["graph", "prediction", "probability of -1", "probability of 1"]
    assert [row["graph"] for row in table] == list("012345")
    assert [int(row["prediction"]) for row in table] == model.predict(graphs).tolist()
    assert [float(row["probability of 1"]) for row in table] == model.predict_proba(graphs)[:, 1].tolist()
    assert run("predict model.tgm NEW")[1] == Path("out.csv").read_text()


def test_predict_writes_error_bars(run):
    graphs = make_graphs(targets=np.arange(N_GRAPHS) / 8)
    fitted = GraphGP(WL(), grid={}).fit(graphs, graphs.targets)
    save_model(fitted, "model.tgm")
    table = rows(run("predict model.tgm NEW")[1])
    mean, std = fitted.predict(make_graphs(n_graphs=6), return_std=True)
    assert [float(row["prediction"]) for row in table] == mean.tolist()
    assert [float(row["std"]) for row in table] == std.tolist()


def test_predict_without_probabilities_has_predictions_alone(run):
    save_model(GraphSVC("wl", grid={}, C=1, cv=2).fit(make_graphs(), ["a\x1b[2J", "b,c"] * 10), "model.tgm")
    table = rows(run("predict model.tgm NEW")[1])
    assert {tuple(row) for row in table} == {("graph", "prediction")}
    assert {row["prediction"] for row in table} == {r"'a\x1b[2J'", "b,c"}  # a terminal must not obey a class


def test_predict_refuses_graphs_of_another_kind(run, model):
    refused(
        run,
        "predict model.tgm BARE -o out.csv",
        "The nodes of X have no attributes, but ODDCL was fitted on nodes with 2",
    )
    Path("NEW/NEW_node_labels.txt").unlink()
    for names in Path("NEW").glob("*label*names*"):
        names.unlink()
    refused(
        run,
        "predict model.tgm NEW -o out.csv",
        "The nodes of X have no labels, but ODDCL was fitted on nodes with labels",
    )


def test_predict_refuses_files_that_hold_no_model(run, model):
    save_model(WL().fit(make_graphs()), "kernel.tgm")
    refused(run, "predict kernel.tgm NEW -o out.csv", "kernel.tgm holds a WL, which predicts nothing; fit a model with")
    refused(run, "predict NEW/NEW_A.txt NEW", "NEW_A.txt cannot be loaded: it is no model file of treegram.")
    refused(run, "predict missing.tgm NEW", "missing.tgm: No such file or directory")
    Path("half.tgm").write_bytes(Path("model.tgm").read_bytes()[:1000])
    refused(run, "predict half.tgm NEW -o out.csv", "half.tgm cannot be loaded: it is damaged or not complete")
    save_model(GraphSVC(), "unfitted.tgm")
    refused(run, "predict unfitted.tgm NEW -o out.csv", "This GraphSVC instance is not fitted yet")


def test_predict_replaces_a_file_only_by_force(run, model):
    Path("out.csv").write_text("older")
    refused(run, "predict model.tgm NEW -o out.csv", "out.csv exists already; give --force")
    assert run("predict model.tgm NEW -o out.csv --force")[0] == 0


@pytest.mark.filterwarnings("default")
def test_labels_that_were_never_fitted_are_told(run, model):
    code, out, err = run("predict model.tgm STRANGE")
    assert code == 0
    assert len(rows(out)) == N_GRAPHS
    assert err == (
        "treegram predict: warning: No node of X has a label that ODDCL was fitted on: X has 7, 8, the fitted graphs have 1, 2. "
        "Do both name their labels alike?\n"
    )


def test_kernels_warn_only_where_no_label_is_shared():
    fitted, strange = WL().fit(make_graphs()), make_graphs(labels=(7, 8))
    with pytest.warns(UserWarning, match=r"WL was fitted on: X has 7, 8, the fitted graphs have 1, 2\. Do") as caught:
        fitted.transform(strange)
    assert caught[0].filename == __file__
    many = make_graphs(labels=("a", "b"))[:0] + Graphs.from_edges([[]], labels=[["a", "b", "c", "d"]])
    with pytest.warns(UserWarning, match=r"X has 'a', 'b', 'c', \.\.\., the fitted"):
        fitted.transform(many)
    # Warnings are errors here: none of these warns.
    fitted.transform(make_graphs(labels=(2, 7)))
    fitted.transform(strange[:0])
    fitted.transform(Graphs.from_edges([[]], labels=[[]]))
    WL().fit(strange[:0]).transform(strange)
    ShortestPath(use_labels=False).fit(make_graphs()).transform(strange)
    both = strange + make_graphs()
    with pytest.warns(UserWarning, match="X has 7, 8, the fitted"):  # labels that no node has do not count
        WL().fit(both[N_GRAPHS:]).transform(both[:N_GRAPHS])


# -------------------------------------------------------------------- gram --against


def test_gram_against_compares_new_graphs_with_fitted_ones(run):
    code, out, err = run("gram TRAIN --against NEW --kernel wl -o K.npz")
    assert (code, err) == (0, "")
    assert out.startswith("K.npz: 6 x 20 Gram matrix of NEW against TRAIN, wl")
    with np.load("K.npz", allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["K"], WL().fit(make_graphs()).transform(make_graphs(n_graphs=6)))
        np.testing.assert_array_equal(saved["graph_ids"], np.arange(6))
        np.testing.assert_array_equal(saved["y"], [-1, 1] * 3)
        np.testing.assert_array_equal(saved["fitted_ids"], np.arange(N_GRAPHS))
        np.testing.assert_array_equal(saved["fitted_y"], [-1, 1] * 10)
        meta = json.loads(str(saved["meta"]))
    assert (meta["data"], meta["against"]) == ("TRAIN", "NEW")


def test_gram_against_refuses_what_does_not_go_together(run):
    refused(
        run,
        "gram TRAIN --against BARE -o K.npz",
        "The nodes of X have no attributes, but ODDCL was fitted on nodes with 2",
    )
    refused(run, "gram TRAIN --against NEW --grid depth=0,1 -o K.npz", "--grid and --against cannot be combined")
    refused(run, "gram TRAIN --against nothing-here -o K.npz", "nothing-here")
