"""Tests of the commands on tables, protein structures and standard input, from file to prediction."""

import argparse
import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import treegram as tg
from treegram.cli._data import load
from treegram.cli.fit import _drop_unused_descriptors
from treegram.explanations.contributions import in_training
from treegram.graphs.tables import TableGraphs

N_GRAPHS = 24
TABLES = "mine"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    write_tables()


def write(path, header, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    Path(path).write_text(text.getvalue(), encoding="utf-8")


def write_tables(prefix="", first=0):
    """Write paths of three or four nodes; the long ones are of class "long", and y is the sum of their charges."""
    random = np.random.default_rng(first)
    nodes, edges, graphs = [], [], []
    for i in range(first, first + N_GRAPHS):
        n_nodes, charges = 3 + i % 2, random.normal(size=4).round(3)
        name = f"g{i}"
        nodes += [(name, f"n{j}", "CO"[j % 2], charges[j], 1.5 * j, "note") for j in range(n_nodes)]
        edges += [(name, f"n{j}", f"n{j + 1}", "single", 0.5) for j in range(n_nodes - 1)]
        total = charges[:n_nodes].sum().round(3)
        graphs.append((name, "long" if i % 2 else "short", total, total if i % 4 else ""))
    folder = f"{prefix}mine"
    Path(folder).mkdir()
    write(f"{folder}/nodes.csv", ["graph", "node", "label", "charge", "place", "remark"], nodes)
    write(f"{folder}/edges.csv", ["graph", "source", "target", "label", "length"], edges)
    write(f"{prefix}graphs.csv", ["graph", "class", "y", "some"], graphs[::-1])


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def refused(run, words, message):
    before = sorted(Path().rglob("*"))
    code, out, err = run(words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


# -------------------------------------------------------------------- tables


@pytest.mark.filterwarnings("always")
def test_info_reads_tables(run):
    code, out, err = run(f"info {TABLES} --graphs graphs.csv --target class")
    assert (code, err) == (0, "")
    for line in (
        "mine: 24 graphs, undirected",
        "classes       2: long (12), short (12)",
        "node labels   2: C (57.1%), O (42.9%)",
        "edge labels   1: single",
        "attributes    2 columns",
        "edge vectors  1 column",
        "The table of nodes has text columns that are not used: remark. To use one as the label, name it with --label.",
    ):
        assert line in out


@pytest.mark.filterwarnings("ignore:The table of nodes")
def test_command_reads_tables_like_the_python_api(run):
    assert run(f"gram {TABLES} --graphs graphs.csv --target y --kernel wl -o K.npz")[0] == 0
    columns = {name: list(column) for name, column in zip(*read_columns("mine/nodes.csv"), strict=True)}
    edges = {name: list(column) for name, column in zip(*read_columns("mine/edges.csv"), strict=True)}
    with pytest.warns(UserWarning, match="not used"):
        graphs = tg.Graphs.from_tables(columns, edges, label="label", edge_label="label")
    with np.load("K.npz") as saved:
        np.testing.assert_array_equal(saved["K"], tg.WL().fit_transform(graphs))
        by_name = {row["graph"]: float(row["y"]) for row in rows(Path("graphs.csv").read_text())}
        np.testing.assert_array_equal(saved["y"], [by_name[f"g{i}"] for i in range(N_GRAPHS)])


def read_columns(path):
    header, *cells = csv.reader(io.StringIO(Path(path).read_text()))
    return header, zip(*cells, strict=True)


@pytest.mark.filterwarnings("ignore:The table of nodes")
def test_model_remembers_the_columns(run):
    words = f"{TABLES} --graphs graphs.csv --target class --kernel oddcl --depth 1 --folds 3 --jobs 1"
    code, out, _ = run(f"fit {words} --attributes place -o model.tgm")
    assert code == 0
    assert out.startswith("model.tgm: GraphSVC of 24 graphs of mine, ")
    first = tg.load_model("model.tgm")[0]
    expected = TableGraphs("label", attributes="place", edge_label="label", edge_attributes=["length"])
    assert first.get_params() == expected.get_params()
    write_tables("new_", first=100)
    code, out, err = run("predict model.tgm new_mine")
    assert code == 0
    assert "24 of 24 graphs were in the training data" in err  # the same graphs with other column names
    assert [row["graph"] for row in rows(out)] == [f"g{i}" for i in range(100, 100 + N_GRAPHS)]
    assert [row["prediction"] for row in rows(out)] == ["short", "long"] * (N_GRAPHS // 2)
    text = Path("new_mine/nodes.csv").read_text().replace("place", "loading")
    Path("new_mine/nodes.csv").write_text(text)
    refused(run, "predict model.tgm new_mine", "'place'")


@pytest.mark.filterwarnings("always")
def test_each_target_gets_a_model_of_the_graphs_that_have_a_value(run):
    words = f"{TABLES} --graphs graphs.csv --target y --target some --kernel wl --jobs 1"
    code, out, err = run(f"fit {words} -o model_{{target}}.tgm")
    assert code == 0
    assert "treegram fit: warning: Left out 6 graphs without a value for 'some'.\n" in err
    assert "model_y.tgm: GraphGP of 24 graphs of mine, " in out
    assert "model_some.tgm: GraphGP of 18 graphs of mine, " in out
    assert len(tg.load_model("model_some.tgm")[-1].kernel_.graphs_) == 18
    assert "text columns that are not used: remark." in err
    _, out, err = run(f"predict model_some.tgm {TABLES}")
    assert len(rows(out)) == N_GRAPHS
    assert "not used" not in err  # the model has chosen its columns


def test_parquet_tables_give_the_same_graphs(run):
    pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    Path("arrow").mkdir()
    for name, path in (("nodes", "mine/nodes.csv"), ("edges", "mine/edges.csv"), ("graphs", "graphs.csv")):
        parquet.write_table(arrow_csv.read_csv(path), f"arrow/{name}.parquet")
    options = "--target y --label label --attributes charge,place"
    expected = run(f"info {TABLES} --graphs graphs.csv {options} --json")[1]
    found = run(f"info arrow {options} --json")[1]
    assert found == expected.replace("mine", "arrow")


@pytest.mark.filterwarnings("ignore:The table of nodes")
def test_evaluate_and_explain_read_tables(run):
    words = f"{TABLES} --graphs graphs.csv --target class"
    code, out, _ = run(f"evaluate {words} --kernel wl --folds 3 --repeats 1 --jobs 1")
    assert code == 0
    assert "accuracy, %    mine" in out
    assert run(f"fit {words} --kernel wl --folds 3 --jobs 1 -o model.tgm")[0] == 0
    assert run(f"explain model.tgm {words} --select 0,1,2,3 -o page.html")[0] == 0
    assert Path("page.html").read_text().count("<article") == 4


@pytest.mark.filterwarnings("ignore:The table of nodes")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("info alone", "alone has a table of nodes, but no edges.csv, edges.tsv or edges.parquet."),
        (f"info {TABLES} --target y", "--target needs a table with one row per graph: --graphs FILE, or graphs.csv in mine."),
        (f"info {TABLES} --graphs graphs.csv --target yy", "graphs.csv: no column is called 'yy'; there are 'graph', 'class', 'y', 'some'; did you mean y?"),
        (f"info {TABLES} --graphs mine/edges.csv --target length", "mine/edges.csv:3: the graph 'g0' has more than one row, the first is mine/edges.csv:2."),
        (f"info {TABLES} --attributes mass", "nodes.csv: no column is called 'mass'; there are 'graph', 'node', 'label', 'charge', 'place', 'remark'."),
        (f"info {TABLES} --attributes remark", "nodes.csv:2: expected numbers in the column 'remark'; got 'note'."),
        (f"info {TABLES} --graph-column molecule", "nodes.csv: no column is called 'molecule'"),
        (f"info {TABLES} --edge-from first", "edges.csv: no column is called 'first'"),
        (f"evaluate {TABLES} --graphs graphs.csv --target class --groups scaffold", "--groups scaffold is for molecules, which mine is not."),
        (f"info {TABLES} --hydrogens", "--hydrogens is for files of molecules (.smi, .sdf, .csv, .tsv), which mine is not."),
        (f"info {TABLES} --graphs graphs.txt --target y", "graphs.txt: the name of a table must end in .csv, .tsv or .parquet."),
        (f"info {TABLES} --graphs none.csv --target y", "none.csv cannot be read: No such file or directory"),
        ("info ragged", "ragged/nodes.csv:3: the line has 1 field, but the first line names 2 columns."),
        ("info twice", "twice/nodes.csv:1: 2 columns are called 'graph'; rename all but one."),
        ("info nothing", "nothing/nodes.csv: the file is empty; its first line must name the columns."),
        ("info holes", "holes/nodes.csv:3: no value for 'label'. Fill or remove missing values first."),
        ("fit digits --edge-label x -o m.tgm", "--edge-label is for folders of tables (nodes.csv and edges.csv), which digits is not."),
    ],
)  # fmt: skip
def test_invalid_tables_are_rejected(run, words, message):
    nodes = {
        "alone": "graph,node\ng0,n0\n",
        "ragged": "graph,node\ng0,n0\ng0\n",
        "nothing": "",
        "twice": "graph,graph\ng0,n0\n",
        "holes": "graph,node,label\ng0,n0,C\ng0,n1,\n",
    }
    for name, text in nodes.items():
        Path(name).mkdir()
        Path(name, "nodes.csv").write_text(text)
        if name != "alone":
            Path(name, "edges.csv").write_text("graph,source,target\ng0,n0,n1\n")
    refused(run, words, message)


@pytest.mark.filterwarnings("ignore:The table of nodes")
def test_targets_without_values_are_rejected(run):
    pytest.importorskip("rdkit")
    Path("empty.csv").write_text("graph,y\n" + "".join(f"g{i},\n" for i in range(N_GRAPHS)))
    refused(run, f"info {TABLES} --graphs empty.csv --target y", "No graph of mine has a value for 'y'.")
    Path("molecules.csv").write_text("smiles,y\nCCO,\nCCN,\n")
    refused(run, "info molecules.csv --target y", "No graph of molecules.csv has a value for 'y'.")
    Path("mine/nodes.csv").write_bytes(b"graph,node\n\xff\xfe,1\n")
    refused(run, "info mine", "mine/nodes.csv:2: the file is not UTF-8 text: it has the byte 0xff")


@pytest.mark.filterwarnings("always")
def test_rows_of_unknown_graphs_are_counted(run):
    with Path("graphs.csv").open("a") as file:
        file.write("g99,long,1,1\n")
    code, out, _ = run(f"info {TABLES} --graphs graphs.csv --target some --label label --attributes charge")
    assert code == 0
    assert "graphs.csv: 1 of 25 rows are for graphs that are not in the data, such as 'g99'." in out
    assert "Left out 6 graphs without a value for 'some'." in out


@pytest.mark.filterwarnings("ignore:The table of nodes")
def test_graph_attributes_are_read_from_tables(run):
    words = f"{TABLES} --graphs graphs.csv --graph-attributes y"
    assert "graph vectors 1 column, 24 distinct vectors\n    column" in run(f"info {words}")[1]
    code, _, err = run(f"fit {words} --target class --kernel wl --folds 3 --jobs 1 -o model.tgm")
    assert code == 0, err
    assert len(rows(run(f"predict model.tgm {TABLES} --graphs graphs.csv")[1])) == N_GRAPHS
    refused(
        run,
        f"predict model.tgm {TABLES}",
        "A table of graphs is needed, because it has their vectors: name it with --graphs FILE.",
    )


# -------------------------------------------------------------------- protein structures


def write_pdb(path, residues, turn):
    """Write a chain of CA atoms, 3.8 ångströms apart along a zigzag."""
    lines = []
    for i, name in enumerate(residues):
        x, y = 3.3 * i, turn * (i % 2)
        lines.append(
            f"ATOM  {i + 1:5d}  CA  {name} A{i + 1:4d}    {x:8.3f}{y:8.3f}{0.0:8.3f}  1.00  0.00           C  "
        )
    Path(path).write_text("\n".join([*lines, "TER", "END", ""]))


@pytest.fixture
def structures():
    pytest.importorskip("gemmi")
    Path("structures").mkdir()
    for i in range(12):
        write_pdb(f"structures/p{i:02d}.pdb", ["ALA", "GLY", "CYS" if i % 2 else "SER", "LEU"] * 3, 1.9)
    write("classes.csv", ["protein", "class"], [(f"p{i:02d}", "binding" if i % 2 else "other") for i in range(11)])


@pytest.mark.filterwarnings("always")
def test_folder_of_structures_from_fit_to_explain(run, structures):
    words = "structures --graphs classes.csv --graph-column protein --target class"
    code, out, err = run(
        f"fit {words} --contact 6 --attributes coordinates --kernel wl --folds 2 --jobs 1 -o model.tgm"
    )
    assert code == 0, err
    assert "GraphSVC of 11 graphs of structures, " in out
    assert "Left out 1 graph without a value for 'class'." in err
    assert repr(tg.load_model("model.tgm")[0]) == "ProteinGraphs(attributes='coordinates', contact=6.0)"
    Path("new").mkdir()
    write_pdb("new/7abc.pdb", ["ALA", "GLY", "CYS", "LEU"] * 4, 1.9)
    table = rows(run("predict model.tgm new")[1])
    assert [(row["graph"], row["prediction"]) for row in table] == [("7abc", "binding")]
    assert rows(run("predict model.tgm new/7abc.pdb")[1]) == table
    assert run("explain model.tgm new -o page.html")[0] == 0
    assert "A/3 CYS" in Path("page.html").read_text()
    refused(
        run,
        "predict model.tgm digits",
        "model.tgm was fitted on protein structures (PDB or mmCIF), so it cannot be used for graphs",
    )
    message = "so it cannot be used for folders of tables (nodes.csv and edges.csv) such as mine."
    refused(run, f"predict model.tgm {TABLES}", message)
    assert "nodes         16 in all" in run("info new/7abc.pdb")[1]


# -------------------------------------------------------------------- standard input, JSON lines


@pytest.fixture
def feed(monkeypatch):
    def feed_text(text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return feed_text


def test_predict_and_info_read_molecules_from_standard_input(run, feed):
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCCO", "CCCCO", "OCCO", "CCN", "CCCN", "CCCCN", "NCCN"] * 2
    write("train.csv", ["smiles", "y"], [(one, "O" in one) for one in smiles])
    assert run("fit train.csv --target y --kernel wl --folds 2 --jobs 1 -o model.tgm")[0] == 0
    feed("CCCCCO pentanol\nCCCCCN\n")
    code, out, err = run("predict model.tgm - --json")
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["prediction"] for line in lines] == ["True", "False"]
    assert [(line["graph"], line["smiles"]) for line in lines] == [("pentanol", "CCCCCO"), (1, "CCCCCN")]
    assert list(lines[0])[2:] == ["prediction"]
    feed("id,text\n1,CCCCCO\n")
    assert len(rows(run("predict model.tgm - --smiles-column text")[1])) == 1
    feed("CCO\nCCN\n")
    out = run("info - --json")[1]
    assert out.count("\n") == 1
    assert json.loads(out)["n_graphs"] == 2
    feed("C(\n")
    assert run("info -")[2].startswith("treegram info: error: standard input:1 ('C('): RDKit says: ")


def test_a_column_names_the_molecules(run):
    pytest.importorskip("rdkit")
    write("train.csv", ["id", "CAS", "smiles", "y"], [(i, f"64-{i}", "C" * (i + 1) + "O", i / 3) for i in range(9)])
    assert run("fit train.csv --target y --kernel wl --jobs 1 -o model.tgm")[0] == 0
    assert [row["graph"] for row in rows(run("predict model.tgm train.csv")[1])] == [str(i) for i in range(9)]
    table = rows(run("predict model.tgm train.csv --name-column cas")[1])
    assert [row["graph"] for row in table] == [f"64-{i}" for i in range(9)]
    refused(
        run,
        "predict model.tgm train.csv --name-column CSA",
        "train.csv: no column is called 'CSA'; there are 'id', 'CAS'",
    )


@pytest.mark.filterwarnings("ignore:The table of nodes")
def test_errors_in_tables_name_the_line(run):
    edges = Path("mine/edges.csv").read_text()
    for damaged, message in [
        (
            edges.replace("g0,n0,", "g0,n9,", 1),
            "mine/edges.csv:2 has source 'n9' of graph 'g0', which is not in the node table.",
        ),
        (
            edges.replace(",length\n", ",length\n\n\n").replace("g0,n0,", "g0,n9,", 1),
            "mine/edges.csv:4 has source 'n9'",
        ),
    ]:
        Path("mine/edges.csv").write_text(damaged)
        refused(run, f"info {TABLES}", message)
    Path("mine/edges.csv").write_text(edges)
    nodes = Path("mine/nodes.csv").read_text().splitlines()
    Path("mine/nodes.csv").write_text("\n".join([*nodes, nodes[1]]))
    refused(
        run,
        f"info {TABLES}",
        f"mine/nodes.csv:{len(nodes) + 1} and mine/nodes.csv:2 have the same node 'n0' of graph 'g0'.",
    )


@pytest.mark.filterwarnings("always")
def test_molecules_without_a_target_are_skipped_and_counted(run):
    pytest.importorskip("rdkit")
    values = ["1.5", "", "0.5", "NA", "2.5", "3.0"] * 3
    write("train.csv", ["smiles", "a", "b"], [("C" * (i + 1) + "O", value, i / 2) for i, value in enumerate(values)])
    code, out, err = run("fit train.csv --target a --target b --kernel wl --jobs 1 -o {target}.tgm")
    assert code == 0
    assert err == "treegram fit: warning: Left out 6 graphs without a value for 'a'.\n"
    assert "a.tgm: GraphGP of 12 graphs of train.csv, " in out
    assert "b.tgm: GraphGP of 18 graphs of train.csv, " in out
    assert "Left out 6 graphs without a value for 'a'." in run("info train.csv --target a")[1]


def test_molecule_descriptors_are_used_and_remembered(run):
    pytest.importorskip("rdkit")
    write("train.csv", ["smiles", "y"], [("C" * (i + 1) + "O", i / 3) for i in range(12)])
    code, out, _ = run("fit train.csv --target y --jobs 1 -o model.tgm")
    assert code == 0
    assert "graph attributes" in out
    for words in ("--no-descriptors", "--kernel wl"):
        code, out, _ = run(f"fit train.csv --target y {words} --jobs 1 -o other.tgm --force")
        assert code == 0
        assert "graph attributes" not in out
    assert type(tg.load_model("other.tgm")[0]).__name__ == "MoleculeGraphs"
    assert tg.load_model("other.tgm")[0].descriptors is None
    assert set(tg.load_model("model.tgm")[0].descriptors) <= {"rdkit2d", "erg"}
    assert tg.load_model("model.tgm")[0].labels == ["element", "pharmacophore"]
    code, out, _ = run("predict model.tgm train.csv")
    assert code == 0
    assert len(rows(out)) == 12


@pytest.mark.parametrize(
    ("kernels", "labels", "descriptors"),
    [
        (["auto"], ["element", "pharmacophore"], ["rdkit2d", "erg"]),
        (["auto", "wl"], "element", ["rdkit2d", "erg"]),  # wl gets the labels that it has alone
        (["wl"], "element", None),
    ],
)
def test_defaults_of_molecules_depend_on_the_kernels(kernels, labels, descriptors):
    pytest.importorskip("rdkit")
    write("some.csv", ["smiles"], [("CCO",)])
    transformer = load("some.csv", argparse.Namespace(), kernels=kernels).transformer
    assert (transformer.labels, transformer.descriptors) == (labels, descriptors)


@pytest.mark.parametrize("used", [("erg",), ("rdkit2d", "erg"), ()])
@pytest.mark.parametrize("is_sum", [False, True])
def test_descriptors_that_no_kernel_uses_are_not_computed_again(used, is_sum):
    pytest.importorskip("rdkit")
    smiles, y = tg.make_molecules(20, random_state=4)
    transformer = tg.MoleculeGraphs(descriptors=["rdkit2d", "erg"])
    kernels = [tg.WL(1), *(tg.StatisticsKernel("graph_attributes", group=group) for group in used)]
    kernels = [tg.KernelSum(kernels)] if is_sum else kernels
    graphs = transformer.transform(smiles)
    model = tg.GraphRegressor(kernels).fit(graphs, y)
    kept = [
        part.group
        for kernel in model.kernels_
        for part in getattr(kernel, "kernels_", [kernel])
        if isinstance(part, tg.StatisticsKernel)
    ]
    expected = model.predict(graphs[:5])
    smaller = _drop_unused_descriptors(transformer, model)
    assert (smaller.descriptors or []) == [group for group in transformer.descriptors if group in kept]
    assert transformer.descriptors == ["rdkit2d", "erg"]
    tg.save_model(make_pipeline(smaller, model), "smaller.tgm")
    loaded = tg.load_model("smaller.tgm")
    np.testing.assert_allclose(loaded.predict(smiles[:5]), expected, rtol=1e-12)
    assert in_training(loaded[1:], loaded[0].transform(smiles)).all()


@pytest.mark.parametrize("group", [None, "rdkit2d"])
def test_a_kernel_of_all_graph_attributes_keeps_all_descriptors(group):
    pytest.importorskip("rdkit")
    smiles, y = tg.make_molecules(12, random_state=4)
    transformer = tg.MoleculeGraphs(descriptors=["rdkit2d"])
    model = tg.GraphRegressor([tg.StatisticsKernel("graph_attributes", group=group)]).fit(
        transformer.transform(smiles), y
    )
    assert _drop_unused_descriptors(transformer, model) is transformer
