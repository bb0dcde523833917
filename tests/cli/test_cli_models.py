"""Tests of the commands that fit a model, predict with it, and compare data sets."""

import csv
import hashlib
import io
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from treegram import (
    ODDCL,
    WL,
    DropAttributes,
    FeatureMap,
    GraphClassifier,
    GraphGP,
    GraphHopper,
    GraphRegressor,
    Graphs,
    GraphSVC,
    KernelSum,
    ShortestPath,
    load_model,
    save_model,
    save_parquet,
    save_tu,
)
from treegram.study import Store

N_GRAPHS = 20
NUMBERS = np.arange(N_GRAPHS) / 8 + np.arange(N_GRAPHS) % 2 * 5  # a graph has two or three edges


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
    """Change to a working folder with data sets, and allow no download."""
    save_tu(make_graphs(), tmp_path / "TRAIN")
    save_tu(make_graphs(n_graphs=6), tmp_path / "NEW")
    save_tu(make_graphs(with_attributes=False), tmp_path / "BARE")
    save_tu(make_graphs(labels=(7, 8)), tmp_path / "STRANGE")
    save_tu(make_graphs(targets=NUMBERS), tmp_path / "NUMBERS")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    monkeypatch.delenv("TREEGRAM_MIRROR", raising=False)
    return tmp_path


def refused(run, words, message):
    """Assert that the command exits with a one-line error and changes no file."""

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


def fitted_scores(model, graphs):
    return model.fit(graphs, graphs.targets).loo_scores_


# -------------------------------------------------------------------- fit


def test_fit_saves_a_support_vector_machine(run):
    code, out, err = run("fit TRAIN --kernel wl --kernel oddst --folds 3 --jobs 1 -o model.tgm")
    assert (code, err) == (0, "")
    model = load_model("model.tgm")
    first, second, third = out.splitlines()
    assert first.startswith("model.tgm: GraphSVC of 20 graphs of TRAIN, ")
    assert re.match(r"Best of \d+ candidates by cross-validation: kernel=WL", second)
    assert second.endswith("its accuracy 1.000 is optimistic.")
    assert third.startswith("treegram evaluate, with the same data and kernels, estimates how well")
    assert isinstance(model, GraphSVC)
    assert list(map(repr, model.kernel)) == ["WL()", "ODDST()"]
    assert model.cv == 3
    assert model.predict(make_graphs()).tolist() == [-1, 1] * (N_GRAPHS // 2)


def test_fit_without_kernel_option_works(run):
    code, out, err = run("fit TRAIN -o m.tgm")
    assert (code, err) == (0, "")
    model = load_model("m.tgm")
    assert isinstance(model, GraphClassifier)
    assert out.startswith(str(model.search_summary()))
    assert "m.tgm: GraphClassifier of 20 graphs of TRAIN, " in out
    scores = "Leave-one-out accuracy 1.000 (the largest class: 0.500), AUC 1.000; optimistic, because kernels and weights were chosen"
    assert f"{scores} with the same graphs.\n" in out
    assert list(rows(run("predict m.tgm NEW")[1])[0]) == [
        "graph",
        "prediction",
        "probability of -1",
        "probability of 1",
        *("nearest", "similarity", "percentile", "unseen labels", "unseen colors", "verdict"),
    ]


def test_fit_weights_kernels_in_regression(run):
    code, out, err = run("fit NUMBERS -o m.tgm")
    assert (code, err) == (0, "")
    model = load_model("m.tgm")
    assert isinstance(model, GraphRegressor)
    assert "log marginal" not in out
    scores = fitted_scores(GraphRegressor(), make_graphs(targets=NUMBERS))
    errors = f"RMSE {scores['rmse']:.4g}, MAE {scores['mae']:.4g}, R2 {scores['r2']:.3f}"
    assert f"Leave-one-out {errors}, in units of the target; optimistic, because" in out
    assert out.count(f"targets: {model.target_scale_ or 'plain values'}\n") == 1
    assert list(rows(run("predict m.tgm NEW")[1])[0]) == [
        "graph",
        "prediction",
        "std",
        "nearest",
        "similarity",
        *("percentile", "unseen labels", "unseen colors", "verdict"),
    ]


def test_fit_prints_the_leave_one_out_accuracy_for_several_classes(run):
    save_parquet(make_graphs(targets=["a", "b", "a", "c"] * 5), "three.parquet")
    code, out, _ = run("fit three.parquet -o m.tgm")
    assert code == 0
    model = load_model("m.tgm")
    accuracy = float(re.search(r"Leave-one-out accuracy (\d\.\d+)", out)[1])
    scores = fitted_scores(GraphClassifier(), make_graphs(targets=["a", "b", "a", "c"] * 5))
    assert accuracy == pytest.approx(scores["accuracy"], abs=5e-4)
    assert "(the largest class: 0.500)" in out
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_auto_works_only_in_fit_and_evaluate_and_only_alone(run):
    refused(run, "fit TRAIN --kernel auto --kernel wl -o m.tgm", "--kernel auto cannot be combined with other kernels")
    refused(run, "gram TRAIN --kernel auto -o K.npz", "unknown kernel 'auto'")


def test_evaluate_compares_auto_with_kernels(run):
    code, out, _ = run("evaluate TRAIN --kernel auto --kernel wl --folds 2 --repeats 1 --jobs 1")
    assert code == 0
    assert "auto " in out
    with Store.open("TRAIN.sqlite") as store:
        rows = [row for row in store.rows() if row.kernel == "auto"]
    assert [row.fold for row in rows] == [0, 1]
    for row in rows:
        assert row.chosen.keys() == {"kernel"}
        assert len(row.predicted) == len(row.actual) == 10


def test_fit_searches_scales_and_gammas(run):
    words = "--kernel oddcl --kernel wl --scale raw,standard --gamma none,scale --folds 3 --jobs 1"
    code, _, err = run(f"fit TRAIN {words} -o model.tgm")
    assert (code, err) == (0, "")
    model = load_model("model.tgm")
    plain, scaled, colors = model.kernel
    assert list(map(repr, [plain, colors])) == ["ODDCL()", "WL()"]
    assert (scaled[0].method, repr(scaled[-1])) == ("standard", "ODDCL()")
    trees = {**ODDCL().default_param_grid(), "gamma": [None, "scale"]}
    assert model.param_grid == [trees, trees, WL().default_param_grid()]


def test_single_value_fixes_a_parameter_in_fit(run):
    assert run("fit TRAIN --kernel oddcl --depth 2 --normalize no --folds 3 --jobs 1 -o model.tgm")[0] == 0
    model = load_model("model.tgm")
    assert list(map(repr, model.kernel)) == ["ODDCL(depth=2, normalize=False)"]
    assert set(model.param_grid[0]) == set(ODDCL().default_param_grid()) - {"depth"}


def test_fit_uses_edge_labels_when_requested(run):
    """The graphs differ only in their edge labels: without these, all predictions are equal."""
    edge_labels = [[i % 2] * (2 + i // 2 % 2) for i in range(N_GRAPHS)]
    edges = [[(0, 1), (1, 2), (2, 3)][: len(labels)] for labels in edge_labels]
    graphs = Graphs.from_edges(
        edges, n_nodes=[4] * N_GRAPHS, labels=[[1] * 4] * N_GRAPHS, edge_labels=edge_labels, targets=[0, 1] * 10
    )
    save_tu(graphs, "BONDS")
    code, out, err = run("fit BONDS --kernel wl --kernel sp --use-edge-labels --folds 3 -o model.tgm")
    assert (code, err) == (0, "")
    assert "accuracy 1.000" in out
    model = load_model("model.tgm")
    assert list(map(repr, model.kernel)) == ["WL(use_edge_labels=True)", "ShortestPath()"]
    np.testing.assert_array_equal(model.predict(graphs), graphs.targets)
    assert run("gram BONDS --kernel wl --use-edge-labels -o K.npz")[0] == 0
    refused(
        run, "fit BONDS --kernel sp --use-edge-labels -o m.tgm", "--use-edge-labels: it has no effect on sp; it is for"
    )


@pytest.mark.parametrize("kernel", ["wl", "auto"])
def test_fit_rejects_scales_without_effect(run, kernel):
    message = f"--scale has no effect on {kernel}; it is for --kernel attributedwalk, csm,"
    refused(run, f"fit TRAIN --kernel {kernel} --scale standard -o model.tgm", message)


def test_multiple_targets_need_multiple_output_files(run):
    Path("molecules.csv").write_text("smiles,a,b\nCCO,0,1\nCCN,1,0\n")
    message = (
        "With several targets, each once, the output must contain {target}, as in model_{target}.tgm; got model.tgm."
    )
    refused(run, "fit molecules.csv --target a --target b -o model.tgm", message)
    refused(run, "fit molecules.csv --target a --target a -o model.tgm", message)
    refused(
        run, "info molecules.csv --target a --target b", "--target is given 2 times; only treegram fit takes several"
    )


@pytest.mark.parametrize("words", ["fit NUMBERS", "fit TRAIN --task regression"])
def test_fit_saves_a_gaussian_process_for_regression(run, words):
    code, out, err = run(f"{words} --kernel wl --jobs 1 -o model.tgm")
    assert (code, err) == (0, "")
    assert out.startswith("model.tgm: GraphGP of 20 graphs of ")
    assert "log marginal likelihood" in out
    assert isinstance(load_model("model.tgm"), GraphGP)


def test_fit_rejects_invalid_combinations(run):
    refused(
        run,
        "fit NUMBERS --task classification -o model.tgm",
        "y must be classes: integers, strings or booleans; got numbers such as 0.0.",
    )
    save_parquet(make_graphs(targets=["no", "yes"] * 10), "words.parquet")
    refused(
        run,
        "fit words.parquet --task regression -o model.tgm",
        "y must be real numbers; got an array of dtype <U3.",
    )
    refused(run, "fit TRAIN --task words -o model.tgm", "--task: invalid choice: 'words'")
    refused(run, "fit TRAIN --kernel lw -o model.tgm", "unknown kernel 'lw'")
    refused(run, "fit TRAIN -o no/model.tgm", "The folder no of the output file does not exist")
    Path("TRAIN/TRAIN_graph_labels.txt").unlink()
    refused(run, "fit TRAIN -o model.tgm", "TRAIN has no targets, so there is nothing to learn")


def test_fit_overwrites_a_file_only_with_force(run):
    Path("model.tgm").write_text("older")
    refused(run, "fit TRAIN --kernel wl --folds 2 -o model.tgm", "model.tgm exists already; use --force")
    assert run("fit TRAIN --kernel wl --folds 2 --jobs 1 -o model.tgm --force")[0] == 0
    assert isinstance(load_model("model.tgm"), GraphSVC)


# -------------------------------------------------------------------- predict


@pytest.fixture
def model():
    fitted = GraphSVC("oddcl", param_grid={}, C=1, cv=2).fit(make_graphs(), make_graphs().targets)
    save_model(fitted, "model.tgm")
    return fitted


def test_predict_writes_classes_and_probabilities(run):
    model = GraphClassifier(["oddcl"]).fit(make_graphs(), make_graphs().targets)
    save_model(model, "model.tgm")
    code, out, err = run("predict model.tgm NEW -o out.csv")
    assert code == 0
    assert err.startswith("treegram: note: 6 of 6 graphs were in the training data: how well the model predicts them")
    assert out == "out.csv: predictions of model.tgm for 6 graphs of NEW\n"
    graphs = make_graphs(n_graphs=6)
    table = rows(Path("out.csv").read_text())
    names = ["graph", "prediction", "probability of -1", "probability of 1", "nearest", "similarity"]
    names += ["percentile", "unseen labels", "unseen colors", "verdict"]
    assert list(table[0]) == names
    assert [row["nearest"] for row in table] == list("012345")
    assert {(float(row["similarity"]), row["verdict"]) for row in table} == {(1.0, "inside")}
    assert [row["graph"] for row in table] == list("012345")
    assert [int(row["prediction"]) for row in table] == model.predict(graphs).tolist()
    assert [float(row["probability of 1"]) for row in table] == model.predict_proba(graphs)[:, 1].tolist()
    assert run("predict model.tgm NEW")[1] == Path("out.csv").read_text()


@pytest.mark.parametrize("before", [[], [DropAttributes()]], ids=["model", "pipeline"])
def test_predict_writes_standard_deviations(run, before):
    graphs = make_graphs(targets=np.arange(N_GRAPHS) / 8)
    fitted = make_pipeline(*before, GraphGP(WL(), param_grid={})).fit(graphs, graphs.targets)
    save_model(fitted, "model.tgm")
    table = rows(run("predict model.tgm NEW")[1])
    mean, std = fitted.predict(make_graphs(n_graphs=6), return_std=True)
    assert [float(row["prediction"]) for row in table] == mean.tolist()
    assert [float(row["std"]) for row in table] == std.tolist()


def test_predict_without_probabilities_writes_only_predictions(run):
    save_model(GraphSVC("wl", param_grid={}, C=1, cv=2).fit(make_graphs(), ["a\x1b[2J", "b,c"] * 10), "model.tgm")
    table = rows(run("predict model.tgm NEW")[1])
    assert {tuple(row) for row in table} == {("graph", "prediction")}
    assert {row["prediction"] for row in table} == {
        r"'a\x1b[2J'",
        "b,c",
    }  # control characters in class names must not reach the terminal


def test_predict_rejects_incompatible_graphs(run, model):
    refused(
        run,
        "predict model.tgm BARE -o out.csv",
        "The nodes of the new graphs (X) have no attributes, but ODDCL was fitted on nodes with 2",
    )
    Path("NEW/NEW_node_labels.txt").unlink()
    for names in Path("NEW").glob("*label*names*"):
        names.unlink()
    refused(
        run,
        "predict model.tgm NEW -o out.csv",
        "The nodes of the new graphs (X) have no labels, but ODDCL was fitted on nodes with labels",
    )


def test_predict_rejects_files_that_are_not_models(run, model):
    save_model(WL().fit(make_graphs()), "kernel.tgm")
    refused(run, "predict kernel.tgm NEW -o out.csv", "kernel.tgm holds a WL, which cannot predict; fit a model with")
    refused(run, "predict NEW/NEW_A.txt NEW", "NEW_A.txt cannot be loaded: it is not a treegram model file.")
    refused(run, "predict missing.tgm NEW", "missing.tgm: No such file or directory")
    Path("half.tgm").write_bytes(Path("model.tgm").read_bytes()[:1000])
    refused(run, "predict half.tgm NEW -o out.csv", "half.tgm cannot be loaded: it is damaged")
    save_model(GraphSVC(), "unfitted.tgm")
    refused(run, "predict unfitted.tgm NEW -o out.csv", "This GraphSVC instance is not fitted yet.")


def test_predict_accepts_empty_graphs_and_a_single_graph(run, model):
    graphs = Graphs.from_edges(
        [[], [], [(0, 1)]], n_nodes=[0, 1, 2], labels=[[], [1], [1, 2]], attributes=[[], [[0.0, 1.0]], [[0.0, 1.0]] * 2]
    )
    for name, some in (("EMPTY", graphs), ("ONE", graphs[1:2])):
        save_tu(some, name)
        code, out, err = run(f"predict model.tgm {name}")
        assert (code, err) == (0, "")
        assert len(rows(out)) == len(some)


def test_predict_overwrites_a_file_only_with_force(run, model):
    Path("out.csv").write_text("older")
    refused(run, "predict model.tgm NEW -o out.csv", "out.csv exists already; use --force")
    assert run("predict model.tgm NEW -o out.csv --force")[0] == 0


@pytest.mark.filterwarnings("default")
def test_unseen_labels_are_reported(run, model):
    code, out, err = run("predict model.tgm STRANGE")
    assert code == 0
    assert len(rows(out)) == N_GRAPHS
    assert err == (
        "treegram predict: warning: No node of the new graphs (X) has a label that ODDCL was fitted on: they have 7, 8, the fitted ones have 1, 2. "
        "Do both use the same names for labels?\n"
    )


def test_kernels_warn_when_few_labels_are_shared():
    fitted, strange = WL().fit(make_graphs()), make_graphs(labels=(7, 8))
    with pytest.warns(UserWarning, match=r"WL was fitted on: they have 7, 8, the fitted ones have 1, 2\. Do") as caught:
        fitted.transform(strange)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"they have '1', '2', the fitted ones have 1, 2\. Do both use the same names"):
        fitted.transform(make_graphs(labels=("1", "2")))
    many = make_graphs(labels=("a", "b"))[:0] + Graphs.from_edges([[]], labels=[["a", "b", "c", "d"]])
    with pytest.warns(UserWarning, match=r"they have 'a', 'b', 'c', \.\.\., the fitted"):
        fitted.transform(many)
    few = Graphs.from_edges([[], []], labels=[[1, 7, 8, 9], [2, 7, 8]])
    with pytest.warns(
        UserWarning, match=r"Only 2 of 7 nodes of the new graphs \(X\) have a .*: they have 7, 8, 9, the fitted"
    ):
        fitted.transform(few)
    # Warnings are errors in tests: none of these calls warns.
    fitted.transform(Graphs.from_edges([[], []], labels=[[1, 7, 8], [2, 1, 9]]))
    fitted.transform(strange[:0])
    fitted.transform(Graphs.from_edges([[]], labels=[[]]))
    WL().fit(strange[:0]).transform(strange)
    ShortestPath(use_labels=False).fit(make_graphs()).transform(strange)
    KernelSum([ShortestPath(use_labels=False), GraphHopper()]).fit(make_graphs()).transform(strange)
    with pytest.warns(UserWarning, match=r"KernelSum was fitted on: they have 7, 8"):
        KernelSum([ShortestPath(use_labels=False), WL()]).fit(make_graphs()).transform(strange)
    both = strange + make_graphs()
    with pytest.warns(UserWarning, match="they have 7, 8, the fitted"):  # unused labels do not count
        WL().fit(both[N_GRAPHS:]).transform(both[:N_GRAPHS])


@pytest.mark.parametrize("n_features", [64, None])
def test_features_warn_when_no_label_is_shared(n_features, tmp_path):
    features = FeatureMap(ODDCL(1), n_components=4, n_features=n_features).fit(make_graphs())
    save_model(features, tmp_path / "features.tgm")
    for fitted in (features, load_model(tmp_path / "features.tgm")):
        with pytest.warns(
            UserWarning, match=r"ODDCL was fitted on: they have 7, 8, the fitted ones have 1, 2\. Do both use"
        ) as caught:
            fitted.transform(make_graphs(labels=(7, 8)))
        assert caught[0].filename == __file__
        few = make_graphs(labels=(2, 7), n_graphs=2) + make_graphs(labels=(8, 9), n_graphs=2)
        with pytest.warns(
            UserWarning, match=r"Only .* of .* nodes of .*: they have 7, 8, 9, the fitted ones have 1, 2\. Do"
        ):
            fitted.transform(few)
        fitted.transform(make_graphs(labels=(2, 7)))  # warnings are errors in tests
        fitted.transform(make_graphs()[:0])


# -------------------------------------------------------------------- gram --compare-with


def test_gram_compare_with_compares_new_graphs_with_fitted_graphs(run):
    code, out, err = run("gram TRAIN --compare-with NEW --kernel wl -o K.npz")
    assert (code, err) == (0, "")
    assert out.startswith("K.npz: 6 x 20 Gram matrix of NEW compared with TRAIN, wl")
    with np.load("K.npz", allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["K"], WL().fit(make_graphs()).transform(make_graphs(n_graphs=6)))
        np.testing.assert_array_equal(saved["graph_ids"], np.arange(6))
        np.testing.assert_array_equal(saved["y"], [-1, 1] * 3)
        np.testing.assert_array_equal(saved["fitted_ids"], np.arange(N_GRAPHS))
        np.testing.assert_array_equal(saved["fitted_y"], [-1, 1] * 10)
        meta = json.loads(str(saved["meta"]))
    assert (meta["data"], meta["compared_with"]) == ("TRAIN", "NEW")


def test_gram_compare_with_rejects_incompatible_options_and_graphs(run):
    refused(
        run,
        "gram TRAIN --compare-with BARE -o K.npz",
        "The nodes of the new graphs (X) have no attributes, but ODDCL was fitted on nodes with 2",
    )
    refused(
        run,
        "gram TRAIN --compare-with NEW --depth 0,1 -o K.npz",
        "--compare-with takes one value of each parameter; got several for depth",
    )
    refused(run, "gram TRAIN --compare-with nothing-here -o K.npz", "nothing-here")


# -------------------------------------------------------------------- explain


def test_explain_writes_one_html_page(run, model):
    code, out, err = run("explain model.tgm NEW -o page.html")
    assert (code, err) == (0, "")
    assert out.startswith(
        "page.html: 6 of 6 graphs of NEW, explained by model.tgm\n6 of 6 graphs were in the training data"
    )
    page = Path("page.html").read_text()
    assert page.count("<article") == 6
    assert 'class="truth"' in page
    code, _, _ = run(f"explain model.tgm {Path('NEW').absolute()} -o page.html --force")
    assert code == 0
    page = Path("page.html").read_text()
    assert "<title>NEW, explained by model.tgm</title>" in page
    assert str(Path.cwd()) not in page


def test_explain_does_not_score_training_graphs(run, model):
    graphs = make_graphs(n_graphs=6)
    known = graphs[:4]
    new = replace(graphs[4:], attributes=graphs[4:].attributes + 1)
    save_tu(known + new, "MIXED")
    code, out, _ = run("explain model.tgm MIXED -o page.html")
    assert code == 0
    assert "4 of 6 graphs were in the training data" in out
    n_correct = int((model.predict(new) == new.targets).sum())
    assert f"{n_correct} of 2" in Path("page.html").read_text()


def test_explain_accepts_a_selection_of_graphs(run, model):
    for words, numbers in (
        ("--select 0,1,4", [0, 1, 4]),
        ("--select 5", [5]),
    ):
        code, out, _ = run(f"explain model.tgm NEW {words} -o page.html --force")
        assert code == 0
        assert out.startswith(f"page.html: {len(numbers)} of 6 graphs")
        page = Path("page.html").read_text()
        assert [int(n) for n in re.findall(r">Graph (\d+)</a></h3>", page)] == numbers


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("NEW --select 4,6", "Graph 6 cannot be explained: NEW has 6 graphs, counted from 0."),
        ("NEW --select 4-6", "argument --select: expected a whole number of at least 0, got '4-6'"),
        ("NEW --select -1", "argument --select: expected a whole number of at least 0, got '-1'"),
        ("NEW --select 1,,2", "argument --select: expected a whole number of at least 0, got ''"),
        ("BARE", "The nodes of the new graphs (X) have no attributes, but ODDCL was fitted on nodes with 2"),
        ("nothing-here", "nothing-here"),
    ],
)
def test_explain_rejects_invalid_options(run, model, words, message):
    refused(run, f"explain model.tgm {words} -o page.html", message)


def forged(change):
    """Return the model file with changed text and a matching digest."""
    data = Path("model.tgm").read_bytes()
    head = len(b"treegram-model\n") + 8
    length = int.from_bytes(data[head - 8 : head], "little")
    content = json.loads(data[head : head + length])
    change(content)
    text = json.dumps(content).encode()
    whole = data[: head - 8] + len(text).to_bytes(8, "little") + text + data[head + length : -32]
    Path("forged.tgm").write_bytes(whole + hashlib.sha256(whole).digest())


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_newer_and_malicious_files_are_rejected(run, model, command):
    forged(lambda content: content.update(format=99))
    refused(
        run, f"{command} forged.tgm NEW -o out", "it has format 99, but this version of treegram reads format 2. Update"
    )

    def call_a_program(content):
        content["model"]["class"] = "os.system"

    forged(call_a_program)
    refused(run, f"{command} forged.tgm NEW -o out", "forged.tgm cannot be loaded")
    Path("pickled.tgm").write_bytes(pickle.dumps(print))
    refused(run, f"{command} pickled.tgm NEW -o out", "it is not a treegram model file")


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_single_graph_empty_graphs_and_missing_targets(run, model, command):
    empty = Graphs.from_edges(
        [[], [(0, 1)]], labels=[[], [1, 2]], attributes=[np.empty((0, 2)), [[0.0, 1.0], [1.0, 0.0]]]
    )
    save_tu(empty, "EMPTY")  # also without targets
    assert run(f"{command} model.tgm EMPTY -o out")[0] == 0
    text = Path("out").read_text()
    assert "true</th>" not in text
    if command == "explain":
        assert "This graph has no nodes." in text
    else:
        assert len(rows(text)) == 2
    save_tu(empty[1], "ONE")
    assert run(f"{command} model.tgm ONE -o out --force")[0] == 0


def test_fit_rejects_a_single_graph_and_a_single_class(run):
    save_tu(make_graphs()[:1], "ONE")
    refused(run, "fit ONE --kernel wl -o model.tgm", "class")
    save_tu(make_graphs(targets=[1] * N_GRAPHS), "SAME")
    refused(run, "fit SAME --kernel wl -o model.tgm", "class")


@pytest.mark.filterwarnings("default")
def test_unseen_classes_are_reported_and_count_as_errors(run, model):
    graphs = make_graphs(targets=[5, 6] * 10)
    save_tu(replace(graphs, attributes=graphs.attributes + 1), "OTHERS")
    code, _, err = run("explain model.tgm OTHERS -o page.html --select 0,1,2")
    assert code == 0
    assert "warning: y has 2 classes that the model was not fitted on" in err
    assert "0 of 3" in Path("page.html").read_text()


@pytest.mark.filterwarnings("ignore:1 molecule of 3 skipped")
@pytest.mark.parametrize("suffix", ["csv", "smi"])
def test_explain_builds_and_draws_molecules_as_the_model_does(run, suffix):
    pytest.importorskip("rdkit")
    rows = ["CCO", "CCCO", "CCCCO", "OCCO", "c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "c1ccncc1"] * 3
    Path("train.csv").write_text("smiles,y\n" + "".join(f"{one},{i % 8 // 4}\n" for i, one in enumerate(rows)))
    assert run("fit train.csv --target y --kernel wl --folds 3 -o m.tgm")[0] == 0
    head = "smiles\n" if suffix == "csv" else ""
    Path(f"new.{suffix}").write_text(head + "CCCCCO\nnonsense\nCCCc1ccccc1\n")
    code, out, _ = run(f"explain m.tgm new.{suffix} --skip-invalid -o page.html")
    assert code == 0
    assert "2 of 2 graphs" in out
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.count("<article") == 2
    assert page.count('class="molecule"') > 2  # and similar training molecules


def test_explain_rejects_models_it_cannot_explain(run, model):
    save_model(WL().fit(make_graphs()), "kernel.tgm")
    refused(run, "explain kernel.tgm NEW -o page.html", "kernel.tgm holds a WL, which cannot predict")
    refused(run, "explain NEW/NEW_A.txt NEW -o page.html", "it is not a treegram model file")
    Path("half.tgm").write_bytes(Path("model.tgm").read_bytes()[:1000])
    refused(run, "explain half.tgm NEW -o page.html", "it is damaged")
    save_model(
        GraphSVC("orderedtrees", param_grid={}, C=1, cv=2).fit(make_graphs(), make_graphs().targets), "ordered.tgm"
    )
    refused(run, "explain ordered.tgm NEW -o page.html", "OrderedTrees cannot be explained")
    save_model(GraphSVC(), "unfitted.tgm")
    refused(run, "explain unfitted.tgm NEW -o page.html", "This GraphSVC instance is not fitted yet.")
    Path("page.html").write_text("older")
    refused(run, "explain model.tgm NEW -o page.html", "page.html exists already; use --force")
