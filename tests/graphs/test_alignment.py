"""The law of alignment: shuffle, drop, repeat and spoil rows of any file, and everything stays with its graph.

Item number i is a chain of i + 2 nodes whose target is i / 4, so that a graph tells which cells belong to it.
"""

import gzip
import random
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treegram as tg
from treegram.cli._data import load

N_ITEMS = 9
GOOD, SPOILED, WITHOUT_TARGET = "good", "spoiled", "without target"
rows_of_items = st.lists(
    st.tuples(st.integers(0, N_ITEMS - 1), st.sampled_from([GOOD, GOOD, SPOILED, WITHOUT_TARGET])),
    min_size=2,
    max_size=12,
)
laws = settings(max_examples=25, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("alignment"))
        yield


def read(name, **options):
    return load(name, Namespace(**options), on_error="collect")


def target_of(item, state):
    return random.Random(item).choice(["NA", "", "-"]) if state == WITHOUT_TARGET else str(item / 4)


def check(table, items, *, names=True, target="y", group="group"):
    """Compare each row with the item that it was written from."""
    assert len(table.where) == len(table.names) == len(table.problems) == len(items)
    assert [not problem for problem in table.problems] == [state != SPOILED for _, state in items]
    assert table.kept.tolist() == [row for row, (_, state) in enumerate(items) if state != SPOILED]
    assert table.graphs.sizes.tolist() == [item + 2 for item, state in items if state != SPOILED]
    if names:
        assert table.names == [f"n{item}" for item, _ in items]
        assert [str(name) for name in table.graphs.graph_names] == [table.names[row] for row in table.kept]
    kept = [items[row] for row in table.kept]
    expected = {i: item / 4 for i, (item, state) in enumerate(kept) if state == GOOD}
    if not expected:
        with pytest.raises(tg.exceptions.DatasetError, match=r"^No graph of .* has a value for '[y3]'\.$"):
            table.values(target)
        return
    ids, y = table.values(target)
    assert dict(zip(ids.tolist(), y.tolist(), strict=True)) == expected
    if group:
        assert table.texts(group) == [f"group {item % 3}" for item, _ in kept]


# -------------------------------------------------------------------- molecules


def smiles_of(item, state):
    return "C(" if state == SPOILED else "C" * (item + 2)


def write_table(name, items, delimiter):
    lines = [delimiter.join(["y", "smiles", "group", "id"])]
    for item, state in items:
        lines.append(delimiter.join([target_of(item, state), smiles_of(item, state), f"group {item % 3}", f"n{item}"]))
    Path(name).write_text("\n".join(lines) + "\n")


@laws
@given(rows_of_items, st.sampled_from([("few.csv", ","), ("few.tsv", "\t")]))
def test_tables_of_molecules(items, file):
    write_table(file[0], items, file[1])
    if all(state == SPOILED for _, state in items):
        assert len(read(file[0], target=["y"]).graphs) == 0
    table = read(file[0], target=["y"])
    check(table, items)
    assert table.smiles == [smiles_of(*row) for row in items]


@laws
@given(rows_of_items, st.booleans(), st.booleans(), st.sampled_from([" ", "\t"]))
def test_lines_of_smiles(items, is_named, is_extended, delimiter):
    lines = ["SMILES name y".replace(" ", delimiter)] if is_named else []
    smiles = [f"{smiles_of(*row)} |$first {row[0]};;$|" if is_extended else smiles_of(*row) for row in items]
    for text, (item, state) in zip(smiles, items, strict=True):
        first = text.replace(" ", delimiter, 1) if item % 2 else text
        lines += ["", delimiter.join([first, f"n{item}", target_of(item, state) or "NA"])]
    Path("few.smi").write_text("\n".join(lines) + "\n")
    target = "y" if is_named else "3"
    table = read("few.smi", target=[target], name_column="name" if is_named else None)
    check(table, items, target=target, group=None)
    assert table.smiles == smiles


@laws
@given(rows_of_items, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_records_of_sdf_files(items, line_end, has_title):
    chem = pytest.importorskip("rdkit.Chem")
    records = []
    for item, state in items:
        mol = chem.MolFromSmiles("C" * (item + 2))
        mol.SetProp("_Name", f"n{item}" if has_title else "")
        block = chem.MolToMolBlock(mol)
        block = block.replace("V2000", "V9999") if state == SPOILED else block
        text = target_of(item, state)
        target = f">  <y>  (1) \n{text}\n\n" if text else ""  # a record may lack a property
        records.append(f"{block}{target}> <group>\ngroup {item % 3}\n\n> <code>\nn{item}\n\n$$$$\n")
    Path("few.sdf").write_bytes("".join(records).replace("\n", line_end).encode())
    if not any(state == GOOD for _, state in items):
        return
    table = read("few.sdf", target=["y"], name_column=None if has_title else "code")
    check(table, items)


# -------------------------------------------------------------------- structures and tables with --graphs


def write_graph_table(items, order, column):
    rows = [f"{target_of(item, state)},group {item % 3},n{item}" for item, state in items]
    Path("graphs.csv").write_text("\n".join([f"y,group,{column}", *(rows[i] for i in order)]) + "\n")


@laws
@given(st.permutations(range(N_ITEMS)), st.permutations(range(N_ITEMS)), st.integers(1, N_ITEMS), st.randoms())
def test_tables_of_nodes_and_edges(items, order, n_graphs, shuffler):
    """Rows of the graph table that no graph has come last, and are the only ones with a problem."""
    rows = [(item, WITHOUT_TARGET if item % 4 == 3 else GOOD) for item in items]
    nodes = [f"n{item},{node},{item / 4}" for item in items[:n_graphs] for node in range(item + 2)]
    edges = [f"n{item},{node},{node + 1}" for item in items[:n_graphs] for node in range(item + 1)]
    shuffler.shuffle(edges)
    shuffler.shuffle(nodes)
    firsts = list(dict.fromkeys(int(line.split(",")[0][1:]) for line in nodes))
    Path("nodes.csv").write_text("\n".join(["graph,node,share", *nodes]) + "\n")
    Path("edges.csv").write_text("\n".join(["graph,source,target", *edges]) + "\n")
    write_graph_table(rows, order, "graph")
    state_of = dict(rows)
    expected = [(item, state_of[item]) for item in firsts]
    others = [(items[i], SPOILED) for i in order if i >= n_graphs]
    if others:
        with pytest.warns(
            UserWarning, match=f"{len(others)} of {N_ITEMS} rows are for graphs that are not in the data"
        ):
            table = read(".", target=["y"])
    else:
        table = read(".", target=["y"])
    check(table, expected + others)
    np.testing.assert_array_equal(table.graphs.attributes[:, 0], np.repeat(firsts, [item + 2 for item in firsts]) / 4)


@settings(max_examples=10, deadline=None)
@given(
    st.permutations(range(N_ITEMS)), st.sets(st.integers(0, N_ITEMS - 1), max_size=4), st.permutations(range(N_ITEMS))
)
def test_structures(items, spoiled, order):
    """File names sort in the order of the items; a damaged file is a row without a graph."""
    pytest.importorskip("gemmi")
    folder = Path("structures")
    folder.mkdir(exist_ok=True)
    rows = [
        (item, SPOILED if item in spoiled else WITHOUT_TARGET if item % 4 == 3 else GOOD) for item in range(N_ITEMS)
    ]
    for item, state in rows:
        lines = [
            f"ATOM  {i + 1:5d}  CA  ALA A{i + 1:4d}    {3.8 * i:8.3f}{0.0:8.3f}{0.0:8.3f}  1.00  0.00           C  "
            for i in range(item + 2)
        ]
        (folder / f"n{item}.pdb").write_text("damaged\n" if state == SPOILED else "\n".join([*lines, "END", ""]))
    write_graph_table([rows[item] for item in items], order, "graph")
    check(read("structures", graphs=Path("graphs.csv"), target=["y"]), rows)


def test_structures_whose_names_have_points_keep_them():
    gemmi = pytest.importorskip("gemmi")
    folder = Path("points")
    folder.mkdir()
    structure = gemmi.read_pdb_string(
        "ATOM      1  CA  ALA A   1       0.000   0.000   0.000  1.00  0.00           C  \nEND\n"
    )
    text = structure.make_pdb_string()
    (folder / "1abc.A.pdb").write_text(text)
    (folder / "1abc.B.ent").write_text("damaged\n")
    (folder / "1abc.C.pdb.gz").write_bytes(gzip.compress(text.encode()))
    table = read("points")
    assert table.names == ["1abc.A", "1abc.B", "1abc.C"]
    assert table.kept.tolist() == [0, 2]
    assert table.graphs.graph_names.tolist() == ["1abc.A", "1abc.C"]


# -------------------------------------------------------------------- files of graphs


@laws
@given(st.lists(st.integers(0, N_ITEMS - 1), min_size=1, max_size=12), st.sampled_from(["parquet", "tu"]))
def test_files_of_graphs(items, kind):
    graphs = tg.Graphs.from_edges(
        [[(node, node + 1) for node in range(item + 1)] for item in items],
        targets=[item / 4 for item in items],
        graph_names=[f"n{item}" for item in items],
    )
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        tg.save_parquet(graphs, "few.parquet")
        table = read("few.parquet")
    else:
        name = f"few{random.Random(str(items)).getrandbits(60)}"
        tg.save_tu(graphs, name)
        table = read(f"./{name}")
        assert table.task == "regression"
    assert table.targets == [""]
    check(table, [(item, GOOD) for item in items], names=kind == "parquet", target="", group=None)
