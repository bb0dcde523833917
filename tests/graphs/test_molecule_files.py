"""Tests of molecule files: what is read, what is rejected and where, and the commands that read them."""

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import rdDistGeom
from sklearn.pipeline import make_pipeline

import treegram as tg
from checks import rdkit_says
from treegram.cli import main
from treegram.graphs.molecule_files import read_molecule_rows

SMILES = ["CO", "CCO", "CC(C)O", "OCCC", "OC1CC1", "CCCCO", "CN", "CCN", "CC(C)N", "NCCC", "NC1CC1", "CCCCN"]
CLASSES = ["alcohol"] * 6 + ["amine"] * 6
NUMBERS = [len(smiles) / 4 + 0.1 for smiles in SMILES]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Change to a working folder with the same molecules in each format."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREEGRAM_MIRROR", "http://127.0.0.1:9")
    rows = zip(SMILES, CLASSES, NUMBERS, strict=True)
    write("molecules.csv", "name,smiles,y,z", *(f'"no. {i}, of 12",{s},{c},{n}' for i, (s, c, n) in enumerate(rows)))
    write("molecules.tsv", "smiles\ty", *map("\t".join, zip(SMILES, CLASSES, strict=True)))
    write("molecules.smi", *map(" ".join, zip(SMILES, CLASSES, strict=True)))
    write("named.smi", "SMILES y", *map(" ".join, zip(SMILES, CLASSES, strict=True)))
    write_sdf("molecules.sdf", SMILES, CLASSES)
    return tmp_path


def write(name, *lines):
    Path(name).write_text("\n".join(lines) + "\n")


def write_sdf(name, smiles, classes):
    with Chem.SDWriter(name) as writer:
        for text, target in zip(smiles, classes, strict=True):
            mol = Chem.AddHs(Chem.MolFromSmiles(text))
            rdDistGeom.EmbedMolecule(mol, randomSeed=5)
            mol.SetProp("y", target)
            writer.write(mol)


@pytest.fixture
def run(capfd):
    def run_command(words):
        code = main(words.split())
        return code, *capfd.readouterr()

    return run_command


# -------------------------------------------------------------------- formats

NAMES = {
    "molecules.csv": [f"no. {i}, of 12" for i in range(len(SMILES))],
    "molecules.tsv": SMILES,
    "molecules.smi": SMILES,
    "named.smi": SMILES,
    "molecules.sdf": [Chem.CanonSmiles(text) for text in SMILES],
}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("molecules.csv", "y"),
        ("molecules.tsv", "Y"),
        ("molecules.smi", "2"),
        ("named.smi", "y"),
        ("molecules.sdf", "y"),
    ],
)
def test_every_format_gives_the_same_graphs(name, target):
    graphs, y = tg.load_molecules(name, target=target, attributes=["mass"])
    assert graphs == tg.Graphs.from_smiles(SMILES, targets=CLASSES, attributes=["mass"], graph_names=NAMES[name])
    assert y.tolist() == CLASSES
    assert tg.load_molecules(name)[1] is None


def test_coordinates_in_a_file_are_used():
    graphs, _ = tg.load_molecules("molecules.sdf", attributes=["coordinates"], hydrogens=True)
    mols = list(Chem.SDMolSupplier("molecules.sdf", removeHs=False))
    np.testing.assert_array_equal(graphs.attributes, np.concatenate([m.GetConformer().GetPositions() for m in mols]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["1", "-2"], "int64"), (["1", "2.5"], "float64"), (["1e3", "2"], "int64"), (["a", "b"], "<U1")],
)
def test_targets_get_a_common_type(values, expected):
    write("few.csv", "smiles,y", *(f"C,{value}" for value in values))
    assert tg.load_molecules("few.csv", target="y")[1].dtype == expected


def test_byte_order_mark_windows_lines_and_blank_lines_are_read():
    Path("few.csv").write_bytes("\ufeffsmiles,y\r\nCCO,1\r\n\r\nCC,2\r\n".encode())
    assert tg.load_molecules("few.csv", target="y")[1].tolist() == [1, 2]


# -------------------------------------------------------------------- malformed files


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["smile,y", "C,1"],
            r"few\.csv: no column is called 'smiles'; there are 'smile', 'y'; did you mean smile\?",
        ),
        (["CCO,1", "CCN,2"], r"few\.csv: no column is called 'smiles'; there are 'CCO', '1'\."),
        (["smiles,x", "C,1"], r"few\.csv: no column is called 'y'; there are 'smiles', 'x'"),
        (["smiles,y,smiles", "C,1,C"], r"few\.csv:1: 2 columns are called 'smiles'"),
        (["smiles,y", "C,1", "C,2,3"], r"few\.csv:3 .*the line has 3 fields, but the first line names 2 columns"),
        (["smiles,y", "C"], r"few\.csv:2 .*the line has 1 field, but"),
        (["smiles,y", "C,1", "C,nan"], r"few\.csv:3 \('C'\): its target is 'nan', which is not a value"),
        (["smiles,y", "C,inf"], r"few\.csv:2: the column 'y' has 'inf', which is not a finite number"),
        (["smiles,y", "C,"], r"few\.csv:2 \('C'\): its target is missing"),
        (["smiles,y", ",1"], r"few\.csv:2 \(''\): the SMILES is missing"),
        (["smiles,y", "C,1", "C,low"], r"few\.csv:3: the column 'y' has 'low', but few\.csv:2 has the number 1"),
        (["smiles,y", "C1CC,1"], rf"few\.csv:2 \('C1CC'\): {rdkit_says('unclosed ring')}"),
        (["smiles,y", '"C,1', "C,2"], r"few\.csv:3: unexpected end of data"),
        (["smiles,y", "C" * 200_000 + ",1"], r"few\.csv:2: field larger than field limit"),
        (["smiles,y"], r"few\.csv has no valid molecule: it has no rows\."),
    ],
)
def test_invalid_table_raises_with_its_line(lines, message):
    write("few.csv", *lines)
    with pytest.raises(tg.exceptions.DatasetError, match=message):
        tg.load_molecules("few.csv", target="y")


@pytest.mark.parametrize(
    ("name", "content", "target", "message"),
    [
        ("few.csv", b"", None, "the file is empty; its first line must name the columns"),
        ("few.csv", b"smiles\n\xff\xfe\n", None, "few.csv:2: the file is not UTF-8 text: it has the byte 0xff"),
        ("few.mol2", b"C", None, "must end in .smi, .sdf, .csv, .tsv; got '.mol2'"),
        ("few.smi", b"C 1\n", "y", "few.smi: no column is called 'y'; there are 'smiles', '2'"),
        ("few.smi", b"CC 1\nC\n", "2", "few.smi:2 ('C'): its target is missing"),
        ("few.sdf", b"garbage\n", None, "few.sdf has no valid molecule"),
        ("few.sdf", b"", None, "has no valid molecule"),
    ],
)
def test_other_invalid_files_raise(name, content, target, message):
    Path(name).write_bytes(content)
    with pytest.raises(tg.exceptions.DatasetError) as caught:
        tg.load_molecules(name, target=target)
    assert message in str(caught.value)


def test_missing_rdkit_is_reported(monkeypatch):
    for name in ("rdkit", "rdkit.Chem"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install rdkit"):
        tg.load_molecules("molecules.csv")


def test_missing_file_and_invalid_columns_raise():
    with pytest.raises(tg.exceptions.DatasetError, match=r"^absent\.csv cannot be read: No such file"):
        tg.load_molecules("absent.csv")
    for name in ("molecules.sdf", "molecules.smi"):
        with pytest.raises(tg.exceptions.DatasetError, match="leave out the column"):
            tg.load_molecules(name, smiles_column="text")
    with pytest.raises(tg.exceptions.DatasetError, match=r"molecules\.sdf: no property is called 'z'; there are 'y'"):
        tg.load_molecules("molecules.sdf", target="z")


def test_invalid_records_are_skipped_and_reported():
    text = Path("molecules.sdf").read_text().split("$$$$\n")
    text[1] = text[1].replace("V2000", "V9999")
    text[2] = text[2][:200] + "\n"
    text[3] = text[3].replace(">  <y>", ">  <x>")
    Path("molecules.sdf").write_text("$$$$\n".join(text))
    with pytest.warns(
        UserWarning,
        match=r"^3 molecules of 12 skipped: molecules\.sdf: record 2 \(''\): RDKit .* record 4 \(''\): its target is missing",
    ):
        graphs, y = tg.load_molecules("molecules.sdf", target="y", on_error="skip")
    assert len(graphs) == 9
    assert y.tolist() == CLASSES[:1] + CLASSES[4:]
    write("few.csv", "smiles,y", "C1CC,1", "C,nan")
    with (
        pytest.warns(UserWarning, match="2 molecules of 2 skipped"),
        pytest.raises(tg.exceptions.DatasetError, match=f"no valid molecule: {rdkit_says('unclosed ring')}"),
    ):
        tg.load_molecules("few.csv", target="y", on_error="skip")


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(["few.csv", "few.smi", "few.sdf"]), st.binary(max_size=80), st.booleans())
def test_any_bytes_give_graphs_or_a_dataset_error(name, content, with_head):
    Path(name).write_bytes((b"smiles,y\n" if with_head else b"") + content)
    message = name
    try:
        graphs, y = tg.load_molecules(name, target="y" if with_head else None)
        assert y is None or len(y) == len(graphs)
    except tg.exceptions.DatasetError as error:
        message = str(error)
    assert name in message


# -------------------------------------------------------------------- lines and records that could shift others


@pytest.mark.parametrize(
    ("lines", "target", "names", "y"),
    [
        (["", "CO methanol", "CC", "CCO ethanol"], None, ["methanol", "CC", "ethanol"], None),
        (["CO", "CC ethane"], None, ["CO", "ethane"], None),
        (["C[C@H](O)F |&1:1| 102 2.5", "CC 103 1.5"], "3", ["102", "103"], [2.5, 1.5]),
        (["C[C@H](O)F |&1:1,atomProp:0.p.a b| 102 2.5", "CC 103 1.5"], "3", ["102", "103"], [2.5, 1.5]),
        (["C[C@H](O)F |&1:1|\t102\t2.5", "CC\tethyl alcohol\t1.5"], "3", ["102", "ethyl alcohol"], [2.5, 1.5]),
        (["C[C@H](O)F\t|&1:1|\t102\t2.5", "CC\t\t1.5"], "3", ["102", "CC"], [2.5, 1.5]),
        (["SMILES\tID\ty", "C[C@H](O)F |&1:1|\t102\t2.5", "CC\t\t1.5"], "y", ["102", "CC"], [2.5, 1.5]),
    ],
)
def test_columns_of_smi_files_do_not_shift(lines, target, names, y):
    write("few.smi", *lines)
    graphs, found = tg.load_molecules("few.smi", target=target)
    assert graphs.graph_names.tolist() == names
    assert (found if y is None else found.tolist()) == y


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["CC |&1:1 102"], "few.smi:1 ('CC'): its CXSMILES extension has no second '|'."),
        (["CC ethane\t2.5"], "few.smi:1 ('CC ethane'): spaces and tabs both separate its columns."),
        (["\tCC"], "few.smi:1 (''): the SMILES is missing."),
        (["smiles id", "CC 1 2"], "few.smi:2 ('CC'): the line has 3 fields, but the first line names 2 columns."),
        (["CC |bad|"], "few.smi:1 ('CC |bad|'): RDKit "),
    ],
)
def test_lines_that_could_shift_are_refused(lines, message):
    write("few.smi", *lines)
    with pytest.raises(tg.exceptions.DatasetError) as caught:
        tg.load_molecules("few.smi")
    assert str(caught.value).startswith(message)


def test_sdf_records_that_could_be_lost_are_refused():
    text = Path("molecules.sdf").read_text()
    Path("few.sdf").write_text(text.replace("$$$$\n", "", 1))
    with pytest.raises(
        tg.exceptions.DatasetError, match=r"^few\.sdf: record 1 holds 2 molecules: the line '\$\$\$\$', which ends"
    ):
        tg.load_molecules("few.sdf")
    Path("few.sdf").write_text(text[: -len("$$$$\n")])  # nothing follows the last record
    assert len(tg.load_molecules("few.sdf")[0]) == 12
    Path("few.sdf").write_text("\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n$$$$\n")
    with pytest.raises(tg.exceptions.DatasetError, match="the record has no atoms"):
        tg.load_molecules("few.sdf")
    Path("few.sdf").write_text(text.replace(" C  ", " Qq ", 1))
    reason = rdkit_says("Element 'Qq' not found")
    with pytest.raises(tg.exceptions.DatasetError, match=rf"record 1 \(''\): {reason}\. Correct it"):
        tg.load_molecules("few.sdf")


def test_names_of_sdf_records_that_cannot_be_read_are_kept():
    text = Path("molecules.sdf").read_text().split("$$$$\n")
    text[1] = text[1].replace("V2000", "V9999")
    Path("few.sdf").write_text("$$$$\n".join(f"m{i}{record}" for i, record in enumerate(text[:4])))
    rows = read_molecule_rows(Path("few.sdf"))
    assert rows.names == ["m0", "m1", "m2", "m3"]
    assert rows.cells.columns == {"y": CLASSES[:4]}


# -------------------------------------------------------------------- commands


def test_fit_on_a_table_and_predict_new_molecules(run):
    write("new.csv", "id,smiles", "1,CCCCCO", "2,CCCCCN")
    code, out, err = run("fit molecules.csv --smiles-column smiles --target y --kernel wl --folds 3 --jobs 1 -o model")
    assert (code, err) == (0, "")
    assert out.startswith("model: GraphSVC of 12 graphs of molecules.csv, ")
    assert run("predict model new.csv -o out.csv") == (0, "out.csv: predictions of model for 2 graphs of new.csv\n", "")
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    expected = [("1", "CCCCCO", "alcohol"), ("2", "CCCCCN", "amine")]
    assert [(row["graph"], row["smiles"], row["prediction"]) for row in rows] == expected
    assert tg.load_model("model").predict(["CCCCCO"]).tolist() == ["alcohol"]


def test_model_remembers_how_molecules_were_built(run):
    options = "--label element,degree --attributes mass,logp --hydrogens"
    write("odd.csv", "text,y", *(f"{s},{n}" for s, n in zip(SMILES, NUMBERS, strict=True)))
    assert run(f"fit odd.csv --smiles-column text --target y {options} --jobs 1 -o model")[0] == 0
    model = tg.load_model("model")
    expected = tg.MoleculeGraphs(
        ["element", "degree"],
        ["mass", "logp"],
        hydrogens=True,
        smiles_column="text",
        descriptors=model[0].descriptors,
        n_jobs=1,
    )
    assert set(model[0].descriptors or []) <= {"rdkit2d", "erg"}
    assert model[0].get_params() == expected.get_params()
    code, out, _ = run("predict model odd.csv")
    mean, std = model.predict(SMILES, return_std=True)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    np.testing.assert_allclose([float(row["prediction"]) for row in rows], mean, rtol=1e-12)
    np.testing.assert_allclose([float(row["std"]) for row in rows], std, rtol=1e-12)
    for words in ("molecules.smi", "molecules.csv --smiles-column smiles"):  # files with their own names
        named = csv.DictReader(io.StringIO(run(f"predict model {words}")[1]))
        assert [row | {"graph": str(number)} for number, row in enumerate(named)] == rows


@pytest.mark.filterwarnings("always")  # as in a separate process
def test_invalid_molecules_do_not_change_the_others(run):
    write("new.csv", "smiles", "CCCCCO", "C1CC", "CCCCCN")
    run("fit molecules.smi --target 2 --kernel wl --folds 3 --jobs 1 -o model")
    code, out, err = run("predict model new.csv")
    assert code == 0
    expected = [("CCCCCO", "alcohol", ""), ("C1CC", "", rdkit_says("unclosed ring")), ("CCCCCN", "amine", "")]
    assert [(row["smiles"], row["prediction"], row["problem"]) for row in csv.DictReader(io.StringIO(out))] == expected
    assert err == "treegram: note: 1 of 3 rows has no prediction; the column problem says why.\n"


@pytest.mark.parametrize("options", ["", "--hydrogens"])
def test_molecules_of_sdf_files_are_drawn(run, options):
    """Their hydrogens are atoms in the file, whether or not they are nodes."""
    assert run(f"fit molecules.sdf --target y --kernel wl --folds 2 --jobs 1 {options} -o model")[0] == 0
    code, _, err = run("explain model molecules.sdf --select 1,8 -o page.html")
    assert (code, err) == (0, "")
    assert Path("page.html").read_text().count("<article") == 2


def test_info_gram_and_evaluate_read_molecules(run):
    code, out, _ = run("info molecules.sdf --target y --attributes coordinates --json")
    report = json.loads(out)
    assert code == 0
    assert report["targets"]["kind"] == "classes"
    assert report["attributes"]["n_columns"] == 3
    assert run("gram molecules.smi --compare-with molecules.csv --kernel wl -o K.npz")[0] == 0
    with np.load("K.npz") as saved:
        np.testing.assert_allclose(np.diag(saved["K"]), 1)
    code, out, _ = run("evaluate molecules.csv --target y --kernel wl --folds 3 --repeats 1 --jobs 1")
    assert code == 0
    assert "molecules.csv" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit molecules.csv -o model", "molecules.csv has no targets, so there is nothing to learn; "),
        ("fit digits --target numbers -o model", "--target is for files of molecules (.smi, .sdf, .csv, .tsv), protein structures (PDB or mmCIF) and folders of tables (nodes.csv and edges.csv), which digits is not."),
        ("info digits --hydrogens", "--hydrogens is for files of molecules"),
        ("info molecules.csv --attributes mas", "must be one of 'centroid_distance', 'coordinates'"),
        ("info absent.csv", "absent.csv cannot be read: No such file"),
        ("predict graphs.tgm molecules.csv", "graphs.tgm was fitted on graphs (data sets and .parquet files), so it cannot be used for files of molecules (.smi, .sdf, .csv, .tsv) such as molecules.csv."),
        ("predict molecules.tgm digits", "molecules.tgm was fitted on files of molecules (.smi, .sdf, .csv, .tsv), so it cannot be used for graphs (data sets and .parquet files) such as digits."),
    ],
)  # fmt: skip
def test_invalid_options_are_rejected(run, words, message):
    graphs = tg.Graphs.from_smiles(SMILES)
    model = tg.GraphSVC("wl", C=1, cv=2).fit(graphs, CLASSES)
    tg.save_model(model, "graphs.tgm")
    tg.save_model(make_pipeline(tg.MoleculeGraphs(), model), "molecules.tgm")
    code, out, err = run(words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
