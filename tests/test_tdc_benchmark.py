"""Tests of benchmarks/tdc.py on small generated tables: what is split, predicted, resumed, registered, reported and shared."""

import argparse
import contextlib
import csv
import dataclasses
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treegram as tg
from treegram.cli import main
from treegram.graphs.digest import digest_graphs

pytest.importorskip("rdkit")
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("no benchmarks/ here", allow_module_level=True)
NUMBERS, CLASSES = "caco2_wang", "hia_hou"  # a task of each type


@pytest.fixture(scope="module")
def tdc():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import tdc

        yield tdc
    finally:
        sys.path.remove(str(BENCHMARKS))


def write_table(path, rows, names=("Drug_ID", "Drug", "Y")):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def write_task(folder, task, smiles, y):
    write_table(folder / f"{task}.csv", zip(range(len(y)), smiles, y, strict=True))


@pytest.fixture
def folder(tmp_path):
    """Return a folder with training tables of a task of each type; one molecule of each cannot be read."""
    smiles, y = tg.make_molecules(30, random_state=3)
    write_task(tmp_path / "train", NUMBERS, [*smiles, "C1CC"], [*y, 0.0])
    write_task(tmp_path / "train", CLASSES, ["C1CC", *smiles], [0, *(np.arange(30) % 2)])
    return tmp_path / "train"


@pytest.fixture
def run(tdc, monkeypatch, capsys):
    """Return a function that calls the script with some words, each model in this process, and returns what it prints."""
    monkeypatch.setattr(tdc, "in_process", lambda function, *args: function(*args))
    monkeypatch.setattr(tdc, "RESAMPLES", 20)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["tdc.py", *map(str, words)])
        with contextlib.suppress(SystemExit):
            tdc.main()
        return capsys.readouterr().out

    return call


# -------------------------------------------------------------------- splits and metrics


@settings(max_examples=50)
@given(groups=st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_scaffold_split_puts_the_largest_scaffolds_into_training(tdc, groups):
    train, test = tdc.scaffold_split(np.array(groups).astype(str))
    assert sorted([*train, *test]) == list(range(len(groups)))
    in_train, in_test = ({groups[i] for i in rows} for rows in (train, test))
    assert not in_train & in_test
    sizes = {group: groups.count(group) for group in groups}
    assert min(sizes[group] for group in in_train) >= max((sizes[group] for group in in_test), default=0)
    assert len(train) >= 0.8 * len(groups)
    smallest = min(sizes[group] for group in in_train)
    assert len(train) - smallest < 0.8 * len(groups)


def test_metrics_are_the_official_ones(tdc):
    y, predicted = np.array([0.0, 1.0, 1.0, 0.0, 1.0]), np.array([0.1, 0.9, 0.3, 0.4, 0.8])
    values = {name: metric(y, predicted) for name, metric in tdc.METRICS.items()}
    assert values["MAE"] == pytest.approx((0.1 + 0.1 + 0.7 + 0.4 + 0.2) / 5)
    assert values["AUROC"] == pytest.approx(5 / 6)
    assert values["AUPRC"] == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert tdc.METRICS["Spearman"](np.array([3.0, 1.0, 2.0]), np.array([9.0, 1.0, 0.5])) == pytest.approx(0.5)
    assert tdc.METRICS["Spearman"](y, np.ones(5)) == 0.0
    names = list(tdc.TASKS.values())
    assert [names.count(name) for name in ("MAE", "Spearman", "AUPRC", "AUROC")] == [5, 4, 5, 8]


# -------------------------------------------------------------------- the run


def test_unreadable_molecules_are_left_out_of_training_and_predicted_as_its_mean(tdc, tmp_path, monkeypatch):
    write_task(tmp_path / "train", NUMBERS, ["CC", "C1CC", "CCC"], [1.0, 100.0, 4.0])
    write_task(tmp_path / "test", NUMBERS, ["C", "CCO", "N(C)(C)(C)C", "CN"], [2.0, 3.0, 5.0, 8.0])
    problems = []

    def predict(problem):
        problems.append(problem)
        return np.array([10.0, 20.0, 30.0])

    forest = dataclasses.replace(tdc.MODELS["forest"], read=np.array, fit_and_predict=predict)
    monkeypatch.setitem(tdc.MODELS, "forest", forest)
    args = argparse.Namespace(folder=tmp_path / "train", test=tmp_path / "test", most=None, cache=None)
    line = tdc.measure(NUMBERS, "forest", args)
    (problem,) = problems
    assert list(problem.train) == ["CC", "CCC"]
    assert list(problem.test) == ["C", "CCO", "CN"]
    assert problem.y.tolist() == [1.0, 4.0]
    assert (line["n_train"], line["n_train_unreadable"], line["n_test"], line["n_test_unreadable"]) == (2, 1, 4, 1)
    assert line["value"] == pytest.approx(np.abs(np.subtract([2, 3, 5, 8], [10, 20, 2.5, 30])).mean())
    assert np.std(line["resampled"], ddof=1) == pytest.approx(line["standard_error"], rel=1e-3)
    assert len(line["resampled"]) == 1000


def test_molhiv_is_fitted_on_its_training_rows_alone_and_runs_last(tdc, run, folder, tmp_path, monkeypatch):
    problems = []

    def predict(problem):
        problems.append(problem)
        return np.arange(len(problem.test), dtype=float)

    for name in ("treegram", "forest", "forest_morgan", "boosting"):
        model = dataclasses.replace(tdc.MODELS[name], read=np.array, fit_and_predict=predict, is_installed=lambda: True)
        monkeypatch.setitem(tdc.MODELS, name, model)
    monkeypatch.setattr(tdc, "version", lambda package: "of " + package)  # lightgbm need not be installed
    rows = [("C", 0, "test"), ("CC", 1, "train"), ("CCC", 1, "valid"), ("CCCC", 0, "train"), ("C1CC", 0, "train")]
    rows += [("N", 0, "valid"), ("bad(", 1, "test"), ("O", 1, "test")]
    write_table(tmp_path / "HIV.csv", rows, ("smiles", "HIV_active", "split"))
    words = [folder, "--molhiv", tmp_path / "HIV.csv", "--task", "molhiv", NUMBERS, "-o"]
    monkeypatch.setattr(tdc, "TDC_MODELS", ("treegram", "forest"))
    run(*words, tmp_path / "rehearsal")
    lines = tdc.read_lines(tmp_path / "rehearsal")
    assert [(line["task"], line["model"]) for line in lines] == [
        (NUMBERS, "treegram"),
        (NUMBERS, "forest"),
        ("molhiv", "treegram"),
        ("molhiv", "boosting"),
        ("molhiv", "forest_morgan"),
    ]
    assert all(list(problem.train) == ["CC", "CCCC"] for problem in problems[2:])
    assert all(list(problem.test) == ["CCC", "N"] for problem in problems[2:])
    assert (lines[-1]["value"], lines[-1]["n_train"], lines[-1]["n_test"]) == (0.0, 2, 2)
    assert "valid" not in lines[-1]
    write_task(tmp_path / "test", NUMBERS, ["CC", "CO"], [1.0, 2.0])
    monkeypatch.setattr(tdc, "check_registration", lambda *args: None)
    run(*words, tmp_path / "official", "--test", tmp_path / "test")
    line = tdc.read_lines(tmp_path / "official")[-1]
    assert list(problems[-1].train) == ["CC", "CCCC"]
    assert list(problems[-1].test) == ["CCC", "N", "C", "O"]
    assert (line["valid"], line["value"], line["n_test"], line["n_test_unreadable"]) == (0.0, 0.5, 3, 1)
    write_board(tmp_path / "board.csv", {NUMBERS: [0.5]})
    text = run("--report", tmp_path / "official", "--board", tmp_path / "board.csv")
    assert "| treegram | 0.000 | 0.500 ± " in text


def test_a_model_is_run_on_tables_up_to_its_limit_of_rows(tdc, run, folder, tmp_path, monkeypatch):
    forest = dataclasses.replace(tdc.MODELS["forest"], most_rows=31)  # as many as the tables of both tasks have
    monkeypatch.setitem(tdc.MODELS, "forest", forest)
    write_task(folder, CLASSES, ["C", "N"] * 16, [0, 1] * 16)
    run(folder, "--task", NUMBERS, CLASSES, "--model", "forest", "-o", tmp_path / "out")
    assert [line["task"] for line in tdc.read_lines(tmp_path / "out")] == [NUMBERS]


def test_graphs_are_read_as_the_command_line_reads_them_by_default(tdc, tmp_path):
    smiles, y = tg.make_molecules(24, random_state=0)
    write_table(tmp_path / "m.csv", zip(smiles, y, strict=True), ("smiles", "y"))
    assert main(["fit", str(tmp_path / "m.csv"), "--target", "y", "-o", str(tmp_path / "m.tgm")]) == 0
    transformer = tg.load_model(tmp_path / "m.tgm")[0]
    ours = tdc.MODELS["treegram"].read(list(smiles))
    assert digest_graphs(ours) == digest_graphs(transformer.transform(list(smiles)))


def test_resamples_are_the_same_rows_for_every_model(tdc, monkeypatch):
    monkeypatch.setattr(tdc, "RESAMPLES", 50)
    y = np.random.default_rng(1).normal(size=30)
    errors = tdc.resampled("MAE", y, y + 1.0)
    assert np.allclose(errors, 1.0)
    assert np.allclose(tdc.resampled("MAE", y, y + 3.0) - errors, 2.0)
    first, second = (tdc.resampled("MAE", y, np.full(30, value)) for value in (y.max(), y.min()))
    assert np.allclose(first + second, np.ptp(y))  # holds for every set of rows, but only if both have the same
    classes = np.array([0.0] * 9 + [1.0])
    assert np.isfinite(tdc.resampled("AUROC", classes, np.arange(10.0))).all()


def test_a_cut_off_run_resumes_and_keeps_its_lines(tdc, run, folder, tmp_path):
    words = [folder, "--task", NUMBERS, CLASSES, "--model", "forest", "treegram", "--most", 24, "-o", tmp_path / "out"]
    text = run(*words)
    assert "A rehearsal: the test part is the last fifth" in text
    whole = (tmp_path / "out").read_text()
    lines = tdc.read_lines(tmp_path / "out")
    assert [(line["task"], line["model"]) for line in lines] == [
        (task, model) for task in (NUMBERS, CLASSES) for model in ("forest", "treegram")
    ]
    for line in lines:
        assert line["value"] >= 0
        assert line["n_train"] + line["n_test"] + line["n_train_unreadable"] == 24
        assert line["peak_mb"] > 50
    (tmp_path / "out").write_text(whole[: whole.rindex('"standard_error"')])  # the last line is cut off
    text = run(*words)
    assert f"{CLASSES}, treegram" in text
    assert NUMBERS not in text
    resumed = tdc.read_lines(tmp_path / "out")
    assert resumed[:3] == lines[:3]
    unsteady = {"reading_seconds", "fit_and_predict_seconds", "peak_mb"}
    assert {k: v for k, v in resumed[3].items() if k not in unsteady} == {
        k: v for k, v in lines[3].items() if k not in unsteady
    }
    with pytest.raises(ValueError, match="lines of another script, source, table or option"):
        run(*words[:-4], "-o", tmp_path / "out")


def test_a_model_that_is_not_installed_or_fails_is_named_and_the_rest_runs(tdc, run, folder, tmp_path, monkeypatch):
    def fail(*args):
        if args[2] == "forest":
            raise RuntimeError("no memory")
        return {"metric": "MAE", "value": 1.0, "standard_error": 0.1, "fit_and_predict_seconds": 0, "peak_mb": 1}

    chemprop = dataclasses.replace(tdc.MODELS["chemprop"], is_installed=lambda: None)
    monkeypatch.setitem(tdc.MODELS, "chemprop", chemprop)
    monkeypatch.setattr(tdc, "in_process", fail)
    words = (folder, "--task", NUMBERS, "--model", "chemprop", "forest", "treegram", "-o", tmp_path / "out")
    text = run(*words)
    assert "chemprop is left out: it needs the command chemprop." in text
    assert f"{NUMBERS}, forest failed:\nno memory" in text
    assert len(tdc.read_lines(tmp_path / "out")) == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_models_run_in_their_process_and_errors_come_back(tdc):
    assert tdc.in_process(os.getpid) != os.getpid()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        tdc.in_process(divmod, 1, 0)
    with pytest.raises(RuntimeError, match="ended without a result"):
        tdc.in_process(os._exit, 3)


# -------------------------------------------------------------------- models


def test_columns_are_what_rdkit_computes_one_molecule_at_a_time(tdc):
    from rdkit import Chem
    from rdkit.Avalon.pyAvalonTools import GetAvalonCountFP
    from rdkit.Chem.rdFingerprintGenerator import GetMorganFeatureAtomInvGen, GetMorganGenerator
    from rdkit.Chem.rdReducedGraphs import GetErGFingerprint

    smiles, _ = tg.make_molecules(8, random_state=0)
    X = tdc.MODELS["boosting"].read(list(smiles))
    n_descriptors = X.shape[1] - 2048 - 315 - 1024 - 1024
    assert n_descriptors > 200
    features = GetMorganFeatureAtomInvGen()
    for row, text in zip(X, smiles, strict=True):
        molecule = Chem.MolFromSmiles(text)
        _, morgan, erg, fcfp, avalon = np.split(row, np.cumsum([n_descriptors, 2048, 315, 1024]))
        assert list(avalon) == list(GetAvalonCountFP(molecule, nBits=1024))
        assert avalon.any()
        assert np.allclose(erg, GetErGFingerprint(molecule))
        assert list(morgan) == list(GetMorganGenerator(radius=2, fpSize=2048).GetCountFingerprint(molecule))
        generator = GetMorganGenerator(radius=2, fpSize=1024, atomInvariantsGenerator=features)
        assert list(fcfp) == list(generator.GetCountFingerprint(molecule))


def problem_of(tdc, name, metric):
    """Return a problem whose target, or its sign, is a count of atoms that every model's reading contains."""
    smiles = ["C" * (1 + i % 9) + "O" * (1 + i % 3) + "N" * (i % 4) + "F" * (i % 2) for i in range(72)]
    y = np.array([len(text) for text in smiles], dtype=float)
    if metric != "MAE":
        y = (y > np.median(y)).astype(float)
    X = tdc.MODELS[name].read(smiles)
    return tdc.Problem(X[:54], y[:54], np.arange(54) % 9, X[54:], metric), y[54:]


@pytest.mark.parametrize("metric", ["MAE", "AUROC"])
@pytest.mark.parametrize("name", ["treegram", "forest", "tanimoto_gp", "boosting"])
def test_models_learn_and_give_the_same_values_again(tdc, name, metric):
    if name == "boosting":
        pytest.importorskip("lightgbm")
    problem, y = problem_of(tdc, name, metric)
    predicted = tdc.MODELS[name].fit_and_predict(problem)
    assert np.array_equal(predicted, tdc.MODELS[name].fit_and_predict(problem))
    value, guess = (tdc.METRICS[metric](y, each) for each in (predicted, np.full(len(y), problem.y.mean())))
    assert value < 0.5 * guess if metric == "MAE" else value > 0.9


def test_chemprop_is_run_as_a_command_where_there_is_one(tdc, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not tdc.MODELS["chemprop"].is_installed()
    command = tmp_path / "chemprop"  # one that predicts the length of each SMILES
    command.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if sys.argv[1] == 'predict':\n"
        "    smiles = open('test.csv').read().split()[1:]\n"
        "    open('out.csv', 'w').write('smiles,y\\n' + ''.join(f'{text},{len(text)}\\n' for text in smiles))\n"
        "else:\n"
        "    assert sys.argv[sys.argv.index('--task-type') + 1] == 'regression'\n"
        "    assert open('train.csv').read().split() == ['smiles,y', 'CC,1.0', 'CCC,2.0']\n"
    )
    command.chmod(0o755)
    model = tdc.MODELS["chemprop"]
    assert model.is_installed()
    X = model.read(["CC", "CCC", "O", "CCCC"])
    problem = tdc.Problem(X[:2], np.array([1.0, 2.0]), np.array(["", ""]), X[2:], "MAE")
    assert model.fit_and_predict(problem).tolist() == [1.0, 4.0]


# -------------------------------------------------------------------- the registration


def test_the_registered_run_needs_a_completed_registration_with_these_digests(tdc, run, folder, tmp_path):
    smiles, y = tg.make_molecules(10, random_state=8)
    write_task(tmp_path / "test", NUMBERS, smiles, y)
    path, output = tmp_path / "registration.md", tmp_path / "out"
    registration = (BENCHMARKS / "tdc_registration.md").read_text(encoding="utf-8")
    path.write_text("# Draft\n" + registration)
    words = (folder, "--test", tmp_path / "test", "--task", NUMBERS, "--model", "forest", "--registration", path)
    with pytest.raises(ValueError, match="is a draft"):
        run(*words, "-o", output)
    path.write_text(registration)
    with pytest.raises(ValueError, match="does not have the digests"):
        run(*words, "-o", output)
    run(folder, "--register", "--registration", path)
    text = path.read_text()
    assert "To be filled in" not in text
    assert text.count("| source | `") == 1
    run(folder, "--register", "--registration", path)
    assert path.read_text() == text
    run(*words, "-o", output)
    (line,) = tdc.read_lines(output)
    assert (line["run"]["test"], line["n_train"], line["n_test"]) == ("official", 30, 10)
    write_task(folder, CLASSES, ["CC", "CCC"], [0, 1])  # another table
    with pytest.raises(ValueError, match="does not have the digests"):
        run(*words, "-o", output)


# -------------------------------------------------------------------- the report


def write_run(path, values, test="official"):
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.01, size=100)
    with path.open("w") as file:
        for (task, model), value in values.items():
            line = {
                "task": task,
                "model": model,
                "value": value,
                "standard_error": 0.01,
                "run": {"test": test, "most": 9},
                "n_train": 80,
                "reading_seconds": 2.0,
                "fit_and_predict_seconds": 4.0,
                "peak_mb": 300,
                "measured": "2026-11-19, a processor",
            }
            resampled = value + noise + rng.normal(scale=0.02, size=100) * (model == "boosting")
            file.write(json.dumps(line | {"resampled": resampled.tolist()}) + "\n")


def write_board(path, values):
    rows = [
        (task, f"entry {i}, v2", value, "copy of the board" if i else "from memory")
        for task, published in values.items()
        for i, value in enumerate(published)
    ]
    write_table(path, rows, ("task", "entry", "value", "source"))


def test_report_ranks_our_values_and_judges_the_criteria(tdc, run, tmp_path):
    metrics = tdc.TASKS
    better = {task: 0.1 if metrics[task] == "MAE" else 0.9 for task in metrics}
    write_board(tmp_path / "board.csv", {task: [0.2, 0.5, 0.6, 0.8] for task in metrics})
    values = {(task, "treegram"): value for task, value in better.items()}
    values |= {(task, "boosting"): value for task, value in better.items()}
    write_run(tmp_path / "out", values)
    text = run("--report", tmp_path / "out", "--board", tmp_path / "board.csv")
    assert text.count("**met**") == 4
    row = "| {} | {} | **{}** ± 0.010 | {} | equal | {} | 0.550 | 1 of 5 |"
    text = re.sub(r"[+-]0\.000 ± 0\.0\d+", "equal", text)
    assert row.format(NUMBERS, "MAE ↓", "0.100", "0.100", "0.200") in text
    assert row.format(CLASSES, "AUROC ↑", "0.900", "0.900", "0.800") in text
    assert "tuned on the test table" in text
    assert (
        "At or above the board's median on 22 of 22 tasks, first on 22, median rank 1; better than boosting by" in text
    )
    assert "by more than a standard error on 0, within one on 22, behind by more on 0." in text
    assert "among 88 values" in text
    assert "22 of them from memory" in text
    assert f"| {NUMBERS} | 80 | 6 / 300 | 6 / 300 |" in text
    assert "| all |  | 2.2 min | 2.2 min |" in text

    values[NUMBERS, "treegram"] = 0.57  # MAE: 0.2 and 0.5 are better, and so is the median
    values[CLASSES, "boosting"] = 0.93  # AUROC: ahead by more than the standard error of the difference, 0.02
    values["ames", "boosting"] = 0.91  # by less
    write_run(tmp_path / "out", values)
    text = run("--report", tmp_path / "out", "--board", tmp_path / "board.csv")
    assert f"no task below the board's median: **missed** (1 below {NUMBERS})" in text
    assert re.search(rf"\| {NUMBERS} \| .* \| -0.470 ± 0.0\d+ \| 0.200 \| 0.550 \| 3 of 5 \|", text)
    behind = text.partition("on every task: **missed** (behind on 2 ")[2].partition("\n")[0]
    assert NUMBERS in behind
    assert CLASSES in behind
    assert "ames" not in behind
    assert "median on 21 of 22 tasks, first on 21, median rank 1; better" in text
    assert "on 0, within one on 20, behind by more on 2." in text

    write_run(tmp_path / "out", {(task, "treegram"): 0.4 for task in list(metrics)[:5]})
    text = run("--report", tmp_path / "out", "--board", tmp_path / "board.csv")
    assert "Only 5 of 22 tasks have run" in text
    assert "**met**" not in text


def test_report_of_a_rehearsal_has_no_board(run, tmp_path):
    write_board(tmp_path / "board.csv", {NUMBERS: [0.77]})
    write_run(tmp_path / "out", {(NUMBERS, "forest"): 0.3, (NUMBERS, "treegram"): 0.4}, "rehearsal")
    text = run("--report", tmp_path / "out", "--board", tmp_path / "board.csv")
    assert f"| {NUMBERS} | MAE ↓ | **0.400** ± 0.010 | 0.300 |" in text
    assert "0.770" not in text
    assert "cut to at most 9 molecules" in text


# -------------------------------------------------------------------- the overlap


def test_overlap_counts_molecules_in_other_tables_whatever_their_stereo(run, tmp_path):
    write_task(tmp_path / "train", NUMBERS, ["CCO", "c1ccccc1"], [1, 2])
    write_task(tmp_path / "train", CLASSES, ["N[C@@H](C)C(=O)O", "CCCC", "bad("], [0, 1, 1])
    write_task(tmp_path / "test", NUMBERS, ["OCC", "N[C@H](C)C(=O)O", "CCCCC", "CCCCCC", "bad("], [1, 2, 3, 4, 5])
    write_table(tmp_path / "design" / "HIV.csv", [("CCCCC", "train"), ("CCCCCC", "test")], ("smiles", "split"))
    write_table(tmp_path / "design" / "other.csv", [("x", 1)], ("name", "value"))
    text = run(
        tmp_path / "train", "--overlap", "--test", tmp_path / "test", "--task", NUMBERS, "--design", tmp_path / "design"
    )
    assert f"| {NUMBERS} | 4 | 1 / 1 | 1 / 1 | 1 / 1 | 2 / 2 |" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--report", "x"], "--report needs --board"),
        (["-o", "x"], "TRAIN_FOLDER is needed"),
        (["nowhere", "--overlap"], "--overlap needs --test"),
        (["nowhere"], "-o OUT.jsonl is needed"),
        (["nowhere", "-o", "x", "--task", "molhiv"], "--task molhiv needs --molhiv"),
        (["nowhere", "-o", "x", "--task", NUMBERS], f"has no table {NUMBERS}.csv"),
    ],
)
def test_missing_arguments_are_named(tdc, monkeypatch, capsys, words, message):
    monkeypatch.setattr(sys, "argv", ["tdc.py", *words])
    with pytest.raises(SystemExit):
        tdc.main()
    assert message in capsys.readouterr().err


# -------------------------------------------------------------------- the registered run


@pytest.fixture(scope="module")
def stored():
    """Return the folder with the lines of the registered run and its report."""
    results = BENCHMARKS.parent / "results"
    if not (results / "tdc.jsonl").exists():
        pytest.skip("benchmarks/tdc.py has not been run on the official test tables: no results/tdc.jsonl")
    return results


def test_the_stored_report_is_that_of_the_stored_lines(tdc, stored):
    """The board is not in the repository, so what follows from it is only checked against the ranks."""
    lines = tdc.read_lines(stored / "tdc.jsonl")
    report = (stored / "tdc.md").read_text(encoding="utf-8")
    assert {line["run"]["test"] for line in lines} == {"official"}
    ours = {line["task"]: line for line in lines if line["model"] == "treegram"}
    boosting = {line["task"]: line for line in lines if line["model"] == "boosting"}
    rows = {cells[0]: cells for cells in report_rows(report) if cells[0] in tdc.TASKS and " of " in cells[-1]}
    assert set(rows) == set(tdc.TASKS)
    ranks, leads = [], []
    for task, cells in rows.items():
        assert cells[2] == f"**{ours[task]['value']:.3f}** ± {ours[task]['standard_error']:.3f}"
        sign = -1 if tdc.TASKS[task] == "MAE" else 1
        gain = sign * (ours[task]["value"] - boosting[task]["value"])
        error = np.subtract(ours[task]["resampled"], boosting[task]["resampled"]).std(ddof=1)
        assert f"{gain:+.3f} ± {error:.3f}" in cells
        leads.append(gain / error)
        ranks.append(int(cells[-1].split()[0]))
    n_ahead, n_behind = sum(gain > 1 for gain in leads), sum(gain < -1 for gain in leads)
    assert f"first on {ranks.count(1)}, median rank {np.median(ranks):g}; better" in report
    counts = f"on {n_ahead}, within one on {len(leads) - n_ahead - n_behind}, behind by more on {n_behind}."
    assert counts in report
    for verdict, is_met in (
        ("median rank at most 3", np.median(ranks) <= 3),
        ("first on six tasks", ranks.count(1) >= 6),
        ("within one standard error of the difference, on every task", not n_behind),
    ):
        assert f"{verdict}: **{'met' if is_met else 'missed'}**" in report


def report_rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


def test_pages_quote_the_stored_report(stored):
    report = (stored / "tdc.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"^At or above the board's median .*$", report, re.MULTILINE)
    page = (BENCHMARKS.parent / "docs" / "results.md").read_text(encoding="utf-8")
    table = report.partition("\n\n")[2]
    assert f"<!-- folds: tdc -->\n\n{table}\n<!-- end of results -->" in page
    assert (stored.parent / "README.md").read_text(encoding="utf-8").count(sentence[0].lower() + sentence[1:-1]) == 1


def test_statements_about_the_registered_run_match_the_report(tdc, stored):
    """Those of the results page, in the words that it uses for this outcome."""
    report = (stored / "tdc.md").read_text(encoding="utf-8")
    page = (BENCHMARKS.parent / "docs" / "results.md").read_text(encoding="utf-8")
    verdicts = re.findall(r"\*\*(met|missed)\*\*", report)
    assert (len(verdicts), verdicts.count("met")) == (4, 3)
    assert (
        "Three of the four criteria are met: no task is below the board's median, the median rank is 3, and six" in page
    )
    ranks = [int(cells[-1].split()[0]) for cells in report_rows(report) if " of " in cells[-1]]
    assert (len(ranks), ranks.count(1), float(np.median(ranks))) == (22, 6, 3.0)
    (behind,) = re.findall(r"behind on 2 (.*)\)$", report, re.MULTILINE)
    tasks = re.findall(r"(\w+) \(", behind)
    assert f"by more than one standard error of the difference on `{tasks[0]}` and `{tasks[1]}`" in page
    lines = tdc.read_lines(stored / "tdc.jsonl")
    of_chemprop = {line["task"] for line in lines if line["model"] == "chemprop"}
    small = {line["task"] for line in lines if line["task"] in tdc.TASKS and line["n_train"] <= 5000}
    assert f"It ran on {len(of_chemprop)} of these {len(small)}" in page
    of_tasks = {task: {line["model"]: line["value"] for line in lines if line["task"] == task} for task in tdc.TASKS}
    n_best = sum(
        max(models, key=lambda name: (-1 if tdc.TASKS[task] == "MAE" else 1) * models[name]) == "treegram"
        for task, models in of_tasks.items()
    )
    assert f"treegram has the best value of the five models on {n_best} of the 22 tasks" in page
    overlap = {
        cells[0]: int(cells[1]) for cells in report_rows(page.partition("**Overlap**")[2]) if cells[0] in tdc.TASKS
    }
    assert overlap == {
        line["task"]: line["n_test"] - line["n_test_unreadable"]
        for line in lines
        if line["model"] == "treegram" and line["task"] in tdc.TASKS
    }
    values = {line["model"]: f"{line['value']:.3f}" for line in lines if line["task"] == tdc.MOLHIV}
    (words,) = re.findall(r"AUROC of (.*) on its test part", page)
    assert (
        words
        == f"{values['forest_morgan']} (forest), {values['treegram']} (treegram) and {values['boosting']} (boosting)"
    )


def test_the_registration_has_the_digests_of_the_stored_run(tdc, stored):
    text = (BENCHMARKS / "tdc_registration.md").read_text(encoding="utf-8")
    for line in tdc.read_lines(stored / "tdc.jsonl"):
        assert all(f"| {name} | `{line['run'][name]}` |" in text for name in ("script", "source", "training tables"))
