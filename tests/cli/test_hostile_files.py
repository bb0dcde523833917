"""Files that nobody should have written, through info, fit and predict: a right result or one plain line, never a traceback.

A right result keeps every row: a graph that is the same as in the clean file gets the same prediction, under its own name.
"""

import csv
import io
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import treegram as tg

N_GRAPHS = 12
N_QUICK, N_ALL = 15, 200
CELLS = [
    "",
    "NA",
    "-",
    "?",
    "None",
    "inf",
    "-inf",
    "nan",
    "1e400",
    "1e300",
    "1e19",
    "9007199254740993",
    "1,5",
    "1_0",
    "٣",
    "0x10",
    "true",
]
CELLS += [
    '"',
    "a\nb",
    "\x1b[2J",
    "\x00",
    "=1+1",
    "CCO",
    "C(",
    "|&1:1|",
    "g0",
    "\ufeff",
    "é" * 50,
    " ",
    "'",
    "{",
    "1 2",
    "🦀",
    "\u202e",
    "9" * 400,
]
BYTES = [
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\r\n",
    b"\n\n",
    b",,,",
    b'"',
    b"\t",
    b";",
    b"inf",
    b"-1",
    b"99999999999999999999",
]
BYTES += [
    b"\x1b[31m",
    b"********",
    b"$$$$\n",
    b"M  END\n",
    b"END\n",
    b"\xc3",
    b"nan",
    b"1e999",
    b" ",
    b"#",
    b"|",
    b"0",
    b"1, 2\n",
]


def write(path, rows, delimiter=","):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", delimiter=delimiter).writerows(rows)
    Path(path).parent.mkdir(exist_ok=True, parents=True)
    Path(path).write_text(text.getvalue(), encoding="utf-8")


# -------------------------------------------------------------------- clean data of each kind


def molecules():
    return [("C" * (1 + i % 6) + "ONF"[i % 3], round(0.37 * i + 0.2, 3), f"m{i}") for i in range(N_GRAPHS)]


def make_csv(folder):
    write(folder / "x.csv", [("smiles", "y", "id"), *molecules()])
    return f"{folder}/x.csv", ["--target", "y"], []


def make_smi(folder):
    write(folder / "x.smi", [(smiles, name, y) for smiles, y, name in molecules()], " ")
    return f"{folder}/x.smi", ["--target", "3"], []


def make_sdf(folder):
    chem = pytest.importorskip("rdkit.Chem")
    folder.mkdir(exist_ok=True)
    with chem.SDWriter(str(folder / "x.sdf")) as writer:
        for smiles, y, name in molecules():
            molecule = chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", name)
            molecule.SetProp("y", str(y))
            writer.write(molecule)
    return f"{folder}/x.sdf", ["--target", "y"], []


def make_tables(folder):
    nodes, edges, graphs = [("graph", "node", "label", "x")], [("graph", "source", "target", "label")], [("graph", "y")]
    for i in range(N_GRAPHS):
        size = 2 + i % 4
        nodes += [(f"g{i}", f"n{j}", "CON"[(i + j) % 3], 0.5 * j + i) for j in range(size)]
        edges += [(f"g{i}", f"n{j}", f"n{j + 1}", "-=-="[j]) for j in range(size - 1)]
        graphs.append((f"g{i}", round(0.37 * i + 0.2, 3)))
    for name, rows in (("nodes", nodes), ("edges", edges), ("graphs", graphs)):
        write(folder / f"{name}.csv", rows)
    return str(folder), ["--target", "y"], []


def make_proteins(folder):
    pytest.importorskip("gemmi")
    folder.mkdir(exist_ok=True)
    for i in range(N_GRAPHS):
        form = "ATOM  {0:5d}  CA  {1} A{0:4d}    {2:8.3f}{3:8.3f}{4:8.3f}  1.00  0.00           C  "
        names = ["ALA", "GLY", ("CYS", "SER", "LYS")[i % 3], "LEU"] * (1 + i % 3)
        lines = [form.format(j + 1, name, 3.3 * j, 1.9 * (j % 2), 0.1 * i) for j, name in enumerate(names)]
        (folder / f"p{i}.pdb").write_text("\n".join([*lines, "TER", "END", ""]))
    write(folder.parent / f"{folder.name}.csv", [("graph", "y"), *((f"p{i}", 0.37 * i + 0.2) for i in range(N_GRAPHS))])
    return str(folder), ["--graphs", f"{folder}.csv", "--target", "y"], []


def make_graphs():
    edges = [[(0, 1), (1, 2), (2, 3)][: 1 + i % 3] for i in range(N_GRAPHS)]
    labels = [[(i + j) % 3 for j in range(2 + i % 3)] for i in range(N_GRAPHS)]
    return tg.Graphs.from_edges(edges, labels=labels, targets=np.arange(N_GRAPHS) * 0.37 + 0.2)


def make_folder(folder):
    tg.save_tu(make_graphs(), folder)
    return str(folder), [], []


def make_parquet(folder):
    pytest.importorskip("pyarrow")
    folder.mkdir(exist_ok=True)
    tg.save_parquet(make_graphs(), folder / "x.parquet")
    return f"{folder}/x.parquet", [], []


KINDS = {
    "csv": make_csv,
    "smi": make_smi,
    "sdf": make_sdf,
    "tables": make_tables,
    "proteins": make_proteins,
    "folder": make_folder,
    "parquet": make_parquet,
}


# -------------------------------------------------------------------- mutants


def spoil(path, rng):
    """Change a cell, some bytes or some lines of a file; return whether only one cell was changed."""
    data = path.read_bytes()
    way = rng.randrange(6)
    lines = data.splitlines(keepends=True)
    if way <= 1 and path.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(data.decode(errors="replace"), newline="")))
        row = rng.choice(rows[1:] or [[]])
        if row:
            row[rng.randrange(len(row))] = rng.choice(CELLS)
            write(path, rows)
            return True
    if way <= 2:
        place = rng.randrange(len(data) + 1)
        data = data[:place] + rng.choice(BYTES) + data[place + rng.choice((0, 0, 1, 5)) :]
    elif way == 3 and len(lines) > 1:
        index = rng.randrange(len(lines))
        lines[index : index + 1] = rng.choice(
            ([], [lines[index]] * 2, [rng.choice(lines)], [lines[index].replace(b",", b";")])
        )
        data = b"".join(lines)
    elif way == 4:
        data = data[: rng.randrange(len(data) + 1)]
    else:
        data = rng.choice(
            (data.decode("latin-1").encode("utf-16"), data.replace(b"\n", b"\r"), b"", b"\n" + data, data + data)
        )
    path.write_bytes(data)
    return False


def lines_of(files):
    """Return for each file its first line, and the lines that name each graph of tables."""
    contents = {file.name: file.read_text(encoding="utf-8", errors="replace").splitlines() for file in files}
    heads = {name: lines[:1] for name, lines in contents.items()}
    by_graph = {
        f"g{i}": {name: [line for line in lines if line.startswith(f"g{i},")] for name, lines in contents.items()}
        for i in range(N_GRAPHS)
    }
    return heads, by_graph


@pytest.mark.parametrize("kind", ["csv", "smi", "sdf"])
def test_a_few_hostile_molecules_give_a_right_result_or_one_plain_line(run, tmp_path, monkeypatch, kind):
    check_mutants(run, tmp_path, monkeypatch, kind, N_QUICK)


@pytest.mark.parametrize("kind", ["tables", "proteins", "folder", "parquet"])
def test_a_few_hostile_graphs_give_a_right_result_or_one_plain_line(run, tmp_path, monkeypatch, kind):
    check_mutants(run, tmp_path, monkeypatch, kind, N_QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_files_give_a_right_result_or_one_plain_line(run, tmp_path, monkeypatch, kind):
    check_mutants(run, tmp_path, monkeypatch, kind, N_ALL)


def check_mutants(run, tmp_path, monkeypatch, kind, n):
    if kind in ("csv", "smi"):
        pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    options = ["--task", "regression", "--kernel", "wl", "--n-iterations", "1", "--jobs", "1", "--force", "-o"]
    data, targets, words = KINDS[kind](Path("clean"))
    assert run("fit", *filter(None, [data]), *targets, *options, "model.tgm")[0] == 0
    clean = {row["graph"]: row for row in read(run("predict", "model.tgm", *filter(None, [data]), *words)[1])}
    clean_heads, clean_lines = lines_of(sorted(Path("clean").iterdir()))
    by_smiles = {row["smiles"]: row["prediction"] for row in clean.values() if "smiles" in row}
    n_results = dict.fromkeys(("info", "fit", "predict"), 0)
    for seed in range(n):
        rng = random.Random(f"{kind} {seed}")
        shutil.rmtree("bad", ignore_errors=True)
        data, targets, words = KINDS[kind](Path("bad"))
        files = sorted(path for path in Path().glob("bad*/**/*") if path.is_file())
        is_cell = [spoil(rng.choice(files), rng) for _ in range(rng.choice((1, 1, 2)))]
        task = options[2:] if len(is_cell) == 1 and is_cell[0] and not data.endswith("pdb") else options
        for command in (
            ["info", *filter(None, [data]), *targets],
            ["fit", *filter(None, [data]), *targets, *task, "other.tgm"],
            ["predict", "model.tgm", *filter(None, [data]), *words],
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                code, out, err = run(*command)
            errors = [line for line in err.splitlines() if ": warning: " not in line and ": note: " not in line]
            where = (kind, seed, command[0], err)
            assert code in (0, 2), where
            assert "\x1b" not in out + err, where
            assert [line.startswith(f"treegram {command[0]}: error: ") for line in errors] == [True] * (code == 2), (
                where
            )
            assert code == 0 or not out, where
            n_results[command[0]] += code == 0
            if command[0] == "fit" and code == 0:
                assert "GraphGP" in out, where  # one cell does not turn measurements into classes
            if command[0] == "predict" and code == 0:
                check_predictions(read(out), clean, by_smiles, kind, (clean_heads, clean_lines), files, where)
    assert all(count > 0 for count in n_results.values()), n_results
    assert any(count < n for count in n_results.values()), n_results


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def check_predictions(table, clean, by_smiles, kind, clean_lines, files, where):
    """Check that graphs that are not spoilt have their old prediction."""
    heads, lines = lines_of(files) if kind == "tables" else ({}, {})
    for row in table:
        assert (row["prediction"] == "") == bool(row.get("problem")), where
        if row["prediction"] == "":
            continue
        if row.get("smiles") in by_smiles:
            assert float(row["prediction"]) == pytest.approx(float(by_smiles[row["smiles"]]), rel=1e-9), where
        elif (
            kind == "tables"
            and heads == clean_lines[0]
            and lines.get(row["graph"]) == clean_lines[1].get(row["graph"], 0)
        ):
            assert float(row["prediction"]) == pytest.approx(float(clean[row["graph"]]["prediction"]), rel=1e-9), where
