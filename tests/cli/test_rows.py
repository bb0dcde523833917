"""Laws between files and answers: each prediction, name, group and target stays with its row, whatever the rows around it."""

import csv
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import treegram as tg

pytest.importorskip("rdkit")

SMILES = ["C" * length + end for end in ("O", "N", "Cl", "C=O") for length in range(1, 8)]
BAD = ["C(", "", "not-a-molecule", "C1CC"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("train.csv", ["smiles", "y", "kind"], [(s, len(s) / 7 + 0.1, "N" in s) for s in SMILES])


def write(path, header, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    Path(path).write_text(text.getvalue(), encoding="utf-8")


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def fit(run, target="y"):
    code, _, err = run(f"fit train.csv --target {target} --kernel wl --folds 3 --jobs 1 -o {target}.tgm")
    assert (code, err) == (0, "")
    return tg.load_model(f"{target}.tgm")[-1]


# -------------------------------------------------------------------- predict


@pytest.mark.parametrize("seed", range(3))
def test_each_row_has_its_prediction_among_any_other_rows(run, seed):
    model = fit(run)
    random = np.random.default_rng(seed)
    molecules = random.permutation([*SMILES, *SMILES[:5], *BAD, *BAD])
    write("new.csv", ["CAS", "weight", "smiles"], [(f"m{i}", i, s) for i, s in enumerate(molecules)])
    code, out, err = run("predict y.tgm new.csv --name-column CAS")
    assert code == 0
    assert "treegram: note: 8 of 41 rows have no predictions; the column problem says why.\n" in err
    table = rows(out)
    assert [row["graph"] for row in table] == [f"m{i}" for i in range(len(molecules))]
    expected = dict(zip(SMILES, model.predict(tg.Graphs.from_smiles(SMILES)), strict=True))
    for smiles, row in zip(molecules.tolist(), table, strict=True):
        assert row["smiles"] == smiles
        if smiles in BAD:
            assert (row["prediction"], row["std"]) == ("", "")
            assert row["problem"].startswith("RDKit says: " if smiles else "the SMILES is missing")
        else:
            assert float(row["prediction"]) == pytest.approx(expected[smiles], rel=1e-9)
            assert row["problem"] == ""
    judged = model.applicability(tg.Graphs.from_smiles([row["smiles"] for row in table if not row["problem"]]))
    answered = [row for row in table if not row["problem"]]
    assert [row["nearest"] for row in answered] == list(judged.nearest_names)
    for column in ("similarity", "percentile", "unseen_labels", "unseen_colors"):
        values = [float(row[column.replace("_", " ")]) for row in answered]
        np.testing.assert_allclose(values, getattr(judged, column), rtol=1e-9, err_msg=column)
    assert [row["verdict"] for row in answered] == judged.verdict.tolist()
    lines = [json.loads(line) for line in run("predict y.tgm new.csv --name-column CAS --json")[1].splitlines()]
    assert [line["graph"] for line in lines] == [row["graph"] for row in table]
    assert [line["prediction"] for line in lines] == [
        float(row["prediction"]) if row["prediction"] else None for row in table
    ]


def test_there_is_no_problem_column_without_a_problem(run):
    fit(run)
    write("new.csv", ["id", "smiles"], [("a", "CCO"), ("b", "CCN")])
    code, out, err = run("predict y.tgm new.csv")
    assert code == 0
    assert list(rows(out)[0]) == [
        *("graph", "smiles", "prediction", "std", "nearest"),
        *("similarity", "percentile", "unseen labels", "unseen colors", "verdict"),
    ]
    assert [row["graph"] for row in rows(out)] == ["a", "b"]
    assert "no prediction" not in err


def test_labels_that_the_model_has_never_seen_are_pointed_out(run):
    fit(run)
    write("new.csv", ["id", "smiles"], [("alcohol", "CCO"), ("ferrocene", "[CH-]1C=CC=C1.[CH-]1C=CC=C1.[Fe+2]")])
    code, out, err = run("predict y.tgm new.csv")
    assert code == 0
    assert [float(row["unseen labels"]) for row in rows(out)] == pytest.approx([0, 1 / 11])
    assert "treegram: note: 1 of 2 graphs has a node with a label that no training graph has.\n" in err


def test_new_surroundings_of_known_labels_are_not_called_new_labels(run):
    fit(run)
    write("new.csv", ["id", "smiles"], [("branched", "CC(C)(C)O"), ("chain", "CCO")])
    code, out, err = run("predict y.tgm new.csv")
    assert code == 0
    assert [float(row["unseen labels"]) for row in rows(out)] == [0, 0]
    assert [float(row["unseen colors"]) > 0 for row in rows(out)] == [True, False]
    assert "label" not in err


def test_a_file_without_any_molecule_that_can_be_read_has_its_rows(run):
    fit(run)
    write("new.csv", ["smiles"], [("C(",), ("C1",)])
    code, out, err = run("predict y.tgm new.csv -o out.csv")
    assert (code, out) == (0, "out.csv: predictions of y.tgm for 0 graphs of new.csv\n")
    table = rows(Path("out.csv").read_text())
    assert [(row["graph"], row["smiles"], row["prediction"]) for row in table] == [("0", "C(", ""), ("1", "C1", "")]
    assert all(row["problem"].startswith("RDKit says: ") for row in table)
    assert err == "treegram: note: 2 of 2 rows have no predictions; the column problem says why.\n"


def test_fit_still_refuses_invalid_molecules_unless_told_to_skip_them(run):
    write("spoilt.csv", ["smiles", "y"], [(s, i / 3) for i, s in enumerate([*SMILES, "C("])])
    code, _, err = run("fit spoilt.csv --target y --kernel wl -o m.tgm")
    assert code == 2
    assert "spoilt.csv:30 ('C('): RDKit says: " in err
    assert "skip invalid molecules with --skip-invalid" in err
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = run("fit spoilt.csv --target y --kernel wl --skip-invalid -o m.tgm")
    assert code == 0
    assert out.startswith("m.tgm: GraphGP of 28 graphs")
    assert "warning: 1 molecule of 29 skipped" in err


def test_formulas_of_spreadsheets_are_quoted_in_tables_only(run):
    fit(run)
    names = ["=HYPERLINK(A1)", "@SUM(A1)", "+cmd|x", "-a", "-1", "+2.5", "-", "a=b", "\x1b[2J"]
    write("new.csv", ["id", "smiles"], [(name, "CCO") for name in names])
    quoted = [row["graph"] for row in rows(run("predict y.tgm new.csv")[1])]
    assert quoted == ["'=HYPERLINK(A1)'", "'@SUM(A1)'", "'+cmd|x'", "'-a'", "-1", "+2.5", "-", "a=b", r"'\x1b[2J'"]
    lines = run("predict y.tgm new.csv --json")[1].splitlines()
    assert [json.loads(line)["graph"] for line in lines] == names


def test_coverage_adds_intervals_or_classes(run):
    model = fit(run)
    out = run("predict y.tgm train.csv --coverage 0.8")[1]
    expected = model.prediction_interval(tg.Graphs.from_smiles(SMILES), 0.8)
    got = np.array([[float(row["lower"]), float(row["upper"])] for row in rows(out)])
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert run("fit train.csv --target kind --no-descriptors --jobs 1 -o kind.tgm")[0] == 0
    molecules, model = tg.load_model("kind.tgm")
    sets = model.prediction_set(molecules.transform(SMILES), 0.9)
    table = rows(run("predict kind.tgm train.csv --coverage 0.9")[1])
    assert [row["classes"] for row in table] == [", ".join(map(str, model.classes_[likely])) for likely in sets]
    for value in ("0", "1", "nan", "x"):
        assert "--coverage: expected a number between 0 and 1" in run(f"predict y.tgm train.csv --coverage {value}")[2]


# -------------------------------------------------------------------- the task


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_the_task_is_asked_for_where_it_is_not_clear(run, command):
    write("whole.csv", ["smiles", "y"], [(s, i % 7) for i, s in enumerate(SMILES)])
    output = "-o m.tgm" if command == "fit" else "--repeats 1"
    code, out, err = run(f"{command} whole.csv --target y --kernel wl --folds 2 --jobs 1 {output}")
    assert (code, out) == (2, "")
    assert (
        "whether the values of 'y' are classes or measurements: the targets are whole numbers, 7 distinct ones for 28"
        in err
    )
    assert "Add --task classification or --task regression." in err
    assert run(f"{command} whole.csv --target y --kernel wl --folds 2 --jobs 1 --task regression {output}")[0] == 0


def test_many_whole_numbers_are_measurements(run):
    """Wavelengths in nm are whole numbers, and no classes (U1)."""
    write("waves.csv", ["smiles", "nm"], [(s, 300 + 3 * i) for i, s in enumerate(SMILES)])
    code, out, _ = run("fit waves.csv --target nm --kernel wl --jobs 1 -o m.tgm")
    assert code == 0
    assert out.startswith("m.tgm: GraphGP of 28 graphs")


# -------------------------------------------------------------------- evaluate


@pytest.mark.filterwarnings("ignore:Left out")
def test_groups_stay_with_their_graphs_where_targets_are_missing(run, monkeypatch):
    """A shift of groups against graphs is a silent leak between folds."""
    names = [f"batch{i % 3}" if i % 5 else "" for i in range(len(SMILES))]
    values = ["" if i % 4 == 1 else i / 8 for i in range(len(SMILES))]
    write("grouped.csv", ["smiles", "y", "batch"], zip(SMILES, values, names, strict=True))
    seen = {}
    monkeypatch.setattr("treegram.cli.evaluate.run_and_print", lambda study, part, data, args: seen.update(data))
    assert run("evaluate grouped.csv --target y --groups batch --kernel wl")[0] == 0
    graphs, y, groups = seen["grouped.csv"]
    kept = [i for i, value in enumerate(values) if value != ""]
    assert len(graphs) == len(kept)
    np.testing.assert_array_equal(y, [values[i] for i in kept])
    assert list(graphs.sizes) == tg.Graphs.from_smiles([SMILES[i] for i in kept]).sizes.tolist()
    assert [group == f"group {names[i]}" for group, i in zip(groups, kept, strict=True)] == [
        names[i] != "" for i in kept
    ]
    alone = [group for group, i in zip(groups, kept, strict=True) if names[i] == ""]
    assert len(set(alone)) == len(alone)


@pytest.mark.filterwarnings("ignore:Left out", "ignore:2 molecules")
def test_rows_of_a_gram_matrix_name_the_rows_of_the_file(run):
    values = ["" if i % 4 == 1 else i / 8 for i in range(len(SMILES))]
    table = [*zip(SMILES, values, strict=True)]
    table[3:3], table[9:9] = [("C(", 1.0)], [("C1", "")]
    write("spoilt.csv", ["smiles", "y"], table)
    assert run("gram spoilt.csv --target y --kernel wl --skip-invalid -o K.npz")[0] == 0
    expected = [i for i, (smiles, y) in enumerate(table) if smiles in SMILES and y != ""]
    with np.load("K.npz") as saved:
        assert saved["graph_ids"].tolist() == expected
        np.testing.assert_array_equal(saved["y"], [table[i][1] for i in expected])
        K = tg.WL().fit_transform(tg.Graphs.from_smiles([table[i][0] for i in expected]))
        np.testing.assert_allclose(saved["K"], K, rtol=1e-12)
