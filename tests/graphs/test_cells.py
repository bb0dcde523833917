"""The rule for cells: what is missing, what is a number, what is refused; the same in every kind of table."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treegram as tg
from treegram.cli._data import load
from treegram.graphs.cells import convert_cells, name_texts
from treegram.graphs.graph_table import guess_task

SMILES = ["CO", "CCO", "CCCO", "CCCCO", "CCCCCO", "CCCCCCO"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, *lines):
    Path(name).write_text("\n".join(lines) + "\n")


def read_csv(cells):
    write("few.csv", "smiles,y", *(f'{smiles},"{cell}"' for smiles, cell in zip(SMILES, cells, strict=False)))
    return load("few.csv", Namespace(target=["y"]))


def read_smi(cells):
    write("few.smi", *(f"{smiles}\tname\t{cell}" for smiles, cell in zip(SMILES, cells, strict=False)))
    return load("few.smi", Namespace(target=["3"]))


def read_sdf(cells):
    chem = pytest.importorskip("rdkit.Chem")
    blocks = [chem.MolToMolBlock(chem.MolFromSmiles(smiles)) for smiles in SMILES]
    properties = [f">  <y>\n{cell}\n\n" if cell else "" for cell in cells]
    write("few.sdf", *(f"{block}{text}$$$$" for block, text in zip(blocks, properties, strict=False)))
    return load("few.sdf", Namespace(target=["y"]))


def read_node_tables(cells, kind="csv"):
    names = [f"g{i}" for i in range(len(cells))]
    write("nodes.csv", "graph,node", *(f"{name},{node}" for name in names for node in "ab"))
    write("edges.csv", "graph,source,target", *(f"{name},a,b" for name in names))
    write("graphs.csv", "graph,y", *(f'{name},"{cell}"' for name, cell in zip(names, cells, strict=True)))
    if kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(arrow.table({"graph": names, "y": list(cells)}), "graphs.parquet")
    return load(".", Namespace(target=["y"], graphs=Path(f"graphs.{kind}")))


def read_parquet(cells):
    return read_node_tables(cells, "parquet")


def read_values(read, cells):
    table = read(cells)
    return table.values(table.targets[0])


READERS = [read_csv, read_smi, read_sdf, read_node_tables, read_parquet]


# Readers are variants of a test, and cases are not: a reader that fails shows its first case.
VALUES = [
    (["1", "2", "-3", "+4"], [0, 1, 2, 3], [1, 2, -3, 4], "i"),
    (["1", "1.5", "1e1", ".5"], [0, 1, 2, 3], [1, 1.5, 10, 0.5], "f"),
    (["1.0", "0.0", "1e1", "3."], [0, 1, 2, 3], [1, 0, 10, 3], "i"),
    (["10.25", "NA", "n/a", "3"], [0, 3], [10.25, 3], "f"),
    (["-", "1", "?", "2"], [1, 3], [1, 2], "i"),
    (["None", "high", "NULL", "low"], [1, 3], ["high", "low"], "U"),
    (["nan", "NaN", "7", "8"], [2, 3], [7, 8], "i"),
    (["1_0", "2_0", "a", "b"], [0, 1, 2, 3], ["1_0", "2_0", "a", "b"], "U"),
    (["True", "False", "", "True"], [0, 1, 3], ["True", "False", "True"], "U"),
    (["1e19", "2", "3", "4"], [0, 1, 2, 3], [1e19, 2, 3, 4], "f"),
]


@pytest.mark.parametrize("read", READERS)
def test_every_reader_reads_cells_alike(read):
    for cells, ids, values, kind in VALUES:
        ids_with_value, y = read_values(read, cells)
        assert (ids_with_value.tolist(), y.tolist(), y.dtype.kind) == (ids, values, kind)


REFUSED = [
    (["1", "2", "inf", "4"], 2, "the column 'Y' has 'inf', which is not a finite number."),
    (["1", "2", "3", "-1e400"], 3, "has '-1e400', which is not a finite number."),
    (["1", "1e300", "3", "4"], 1, "has '1e300', which is too large to compute with."),
    (["1", "2", "9007199254740993", "9007199254740992"], 2, "has '9007199254740993', a whole number beyond 2**53"),
    (["1.5", "2", "low", "4"], 2, "has 'low', but .* has the number 1.5. A column must hold only numbers"),
    (["1_0", "20", "30", "40"], 0, "has '1_0', but .* has the number 20."),
    (["a", "inf", "b", "c"], 0, "has 'a', but .* has the number inf"),
    (["1,5", "2,5", "0,1", "-3,25"], 0, "has '1,5', a number with a decimal comma. Write it with a point."),
    (["1", "2", "0,1", "3"], 2, "has '0,1', a number with a decimal comma."),
]


@pytest.mark.parametrize("read", READERS)
def test_every_reader_refuses_alike(read):
    for cells, place, message in REFUSED:
        pattern = message.replace("'Y'", "'[y3]'").replace("**", r"\*\*")
        places = {
            read_csv: f"few.csv:{place + 2}",
            read_smi: f"few.smi:{place + 1}",
            read_sdf: f"few.sdf: record {place + 1}",
            read_node_tables: f"graphs.csv:{place + 2}",
            read_parquet: f"graphs.parquet: row {place}",
        }
        with pytest.raises(tg.exceptions.DatasetError, match=f"^{places[read]}: .*{pattern}"):
            read_values(read, cells)


# -------------------------------------------------------------------- tables in memory follow the same rule


def frame_of(library, columns):
    if library == "dict":
        return columns
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


def graphs_of_frames(library, cells, column):
    """Return graphs of two nodes each from tables in memory; the column is a target, a node's, an edge's or a graph's vector."""
    names = [f"g{i}" for i in range(len(cells))]
    nodes = {"graph": [name for name in names for _ in "ab"], "node": ["a", "b"] * len(names)}
    edges = {"graph": names, "source": ["a"] * len(names), "target": ["b"] * len(names)}
    graphs = {"graph": names}
    options = {"targets": "y"} if column == "targets" else {column: "y"}
    table = {"attributes": nodes, "edge_attributes": edges}.get(column, graphs)
    table["y"] = [cell for cell in cells for _ in "ab"] if table is nodes else list(cells)
    return tg.Graphs.from_tables(*(frame_of(library, table) for table in (nodes, edges, graphs)), **options)


LIBRARIES = ["dict", "pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_in_memory_read_cells_like_files(library):
    for cells, ids, values, kind in VALUES:
        if len(ids) < len(cells):
            row = min(set(range(len(cells))) - set(ids))
            with pytest.raises(tg.exceptions.InvalidGraphError, match=f"^graphs: row {row}: no value for 'y'"):
                graphs_of_frames(library, cells, "targets")
            continue
        y = graphs_of_frames(library, cells, "targets").targets
        assert (y.tolist(), y.dtype.kind) == (values, kind)
    for cells, place, message in REFUSED:
        pattern = message.replace("'Y'", "'y'").replace("**", r"\*\*")
        with pytest.raises(tg.exceptions.InvalidGraphError, match=f"^graphs: row {place}: .*{pattern}"):
            graphs_of_frames(library, cells, "targets")


@pytest.mark.parametrize("library", LIBRARIES)
def test_typed_tables_in_memory_follow_the_rule(library):
    for cells, kind in [([True, False], "b"), ([1, 2**40], "i"), ([1.5, -2.0], "f"), ([1.0, -2.0], "i")]:
        y = graphs_of_frames(library, cells, "targets").targets
        assert (y.tolist(), y.dtype.kind) == (cells, kind)
    for cells, row, message in [
        ([1.5, None], 1, "no value for 'y'"),
        ([1, None, 3], 1, "no value for 'y'"),
        ([0.5, float("inf")], 1, "the column 'y' has inf, which is not a finite number"),
        ([2**60, 1], 0, "the column 'y' has 1152921504606846976, a whole number beyond"),
        ([-1e300, 1.0], 0, r"the column 'y' has -1e\+300, which is too large"),
    ]:
        for column in ("targets", "attributes", "edge_attributes", "graph_attributes"):
            place = {"attributes": f"nodes: row {2 * row}", "edge_attributes": f"edges: row {row}"}.get(
                column, f"graphs: row {row}"
            )
            with pytest.raises(tg.exceptions.InvalidGraphError, match=f"^{place}: {message}"):
                graphs_of_frames(library, cells, column)


@pytest.mark.parametrize("column", ["attributes", "edge_attributes", "graph_attributes"])
def test_vectors_of_tables_in_memory_are_numbers(column):
    """Texts that are numbers are read as in files, booleans are 0 and 1, and other texts are refused."""
    cases: list[tuple[list[Any], list[float]]] = [
        (["1", "-2.5"], [1, -2.5]),
        ([True, False], [1, 0]),
        ([np.int64(3), np.float32(0.5)], [3, 0.5]),
    ]
    for cells, values in cases:
        graphs = graphs_of_frames("dict", cells, column)
        vectors = getattr(graphs, column).ravel().tolist()
        assert vectors == [value for value in values for _ in range(len(vectors) // len(values))]
    for cells, message in [
        (["low", "high"], "row 0: expected numbers in the column 'y'; got 'low'"),
        (["NA", "1"], "row 0: no value for 'y'"),
        ([np.datetime64("2020-01-01"), np.datetime64("NaT")], "row [12]: no value for 'y'|expected numbers"),
        ([[1.0, 2.0], [3.0]], "expected vectors of numbers, all of one length, in the column 'y'"),
        ([[1.0, 2.0], None], "row [12]: no value for 'y'"),
    ]:
        with pytest.raises(tg.exceptions.InvalidGraphError, match=message):
            graphs_of_frames("dict", cells, column)


def test_a_target_is_one_value():
    with pytest.raises(tg.exceptions.InvalidGraphError, match=r"^graphs: row 1: expected one value .*; got \[1, 2\]"):
        graphs_of_frames("dict", ["a", [1, 2]], "targets")


def test_labels_of_tables_in_memory_keep_their_type_and_only_an_empty_cell_is_missing():
    nodes = {"graph": ["g"] * 3, "node": [1, 2, 3]}
    edges = {"source": [1], "target": [2]}
    assert tg.Graphs.from_tables({**nodes, "label": ["Na", "NA", "-"]}, edges).label_values == ("-", "NA", "Na")
    assert tg.Graphs.from_tables({**nodes, "label": np.array([6.0, 8, 6])}, edges).label_values == (6, 8)
    with pytest.raises(tg.exceptions.InvalidGraphError, match=r"^nodes: row 1: no value for 'label'"):
        tg.Graphs.from_tables({**nodes, "label": ["C", "", "O"]}, edges)


# -------------------------------------------------------------------- one rule


def test_parquet_cells_keep_their_types():
    for cells, values, kind in [
        ([True, None, False], [True, False], "b"),
        ([1, None, 2**40], [1, 2**40], "i"),
        ([1.5, float("nan"), None], [1.5], "f"),
    ]:
        y = read_parquet(cells).values("y")[1]
        assert (y.tolist(), y.dtype.kind) == (values, kind)
    for cells, message in [
        ([2**60, 1], r"1152921504606846976, a whole number beyond"),
        ([float("inf"), 1.0], "has inf"),
    ]:
        with pytest.raises(tg.exceptions.DatasetError, match=f"graphs.parquet: row 0: .*{message}"):
            read_parquet(cells).values("y")


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(-1e9, 1e9).map(repr), st.integers(-(10**9), 10**9).map(str), st.sampled_from(["", "NA"])),
        max_size=8,
    )
)
def test_the_fast_way_and_the_careful_way_agree(cells):
    careful = convert_cells([*cells, ""], "y", str)  # a missing cell asks for care
    fast_ids = [i for i, cell in enumerate(cells) if cell not in ("", "NA")]
    ids, values = convert_cells([cells[i] for i in fast_ids], "y", str)
    assert careful[0].tolist() == [fast_ids[i] for i in ids]
    assert values.dtype == careful[1].dtype
    np.testing.assert_array_equal(values, careful[1])


def test_names_and_labels_are_text_and_only_an_empty_cell_is_missing():
    assert name_texts(["Na", "", None, 1, float("nan"), "-", "none"]) == ["Na", None, None, "1", None, "-", "none"]
    write("nodes.csv", "graph,node,label", "g,1,Na", "g,2,NA")
    write("edges.csv", "graph,source,target,label", "g,1,2,-")
    table = load(".", Namespace())
    assert table.graphs.label_values == ("NA", "Na")


def test_ids_with_a_null_in_parquet_are_missing():
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    read_node_tables(["1", "2"])
    parquet.write_table(arrow.table({"graph": [1, None], "y": [1.5, 2.5]}), "graphs.parquet")
    with pytest.raises(tg.exceptions.DatasetError, match=r"^graphs\.parquet: row 1: no value for 'graph'"):
        load(".", Namespace(target=["y"], graphs=Path("graphs.parquet")))


FILES = [
        ("few.csv", b"id;smiles;y\n1;CCO;2\n", "few.csv:1: the file seems to be separated by semicolons. Save it as .csv with"),
        ("few.csv", b"id\tsmiles\n1\tCCO\n", "few.csv:1: the file seems to be separated by tabs."),
        ("few.csv", b"", "few.csv: the file is empty; its first line must name the columns."),
        ("few.csv", b"\n\n", "few.csv: the file is empty"),
        ("few.smi", b"\n", "few.smi: the file is empty; each line must begin with a SMILES."),
        ("few.csv", b"smiles,y,y\nC,1,2\n", "few.csv:1: 2 columns are called 'y'; rename all but one."),
        ("few.smi", b"smiles y y\nC 1 2\n", "few.smi:1: 2 columns are called 'y'; rename all but one."),
        ("few.csv", b"smiles,Y,y\nC,1,2\n", None),
        ("few.csv", b"\n\nsmiles,y\n\nC,1\n\n", None),
        ("few.csv", b"smiles,yY,Yy\nC,1,2\n", None),
        ("few.csv", "smiles,y,\nC,1,\n".encode("utf-8-sig"), None),
        ("few.csv", "smiles,y\nC,\xe4\n".encode("latin-1"), "few.csv:2: the file is not UTF-8 text: it has the byte 0xe4"),
        ("few.csv", "smiles,y\nC,1\n".encode("utf-16"), "few.csv:1: the file is not UTF-8 text: it has the byte 0xff"),
        ("few.csv", b"smiles,y\nC,1\nCC,1,2\n", "few.csv:3 (''): the line has 3 fields, but the first line names 2 columns"),
    ]  # fmt: skip


def test_files_with_a_problem_are_refused_in_one_sentence():
    for name, content, message in FILES:
        Path(name).write_bytes(content)
        if message is None:
            assert len(tg.load_molecules(name)[0]) == 1
            continue
        with pytest.raises(tg.exceptions.DatasetError) as caught:
            tg.load_molecules(name)
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_two_columns_that_differ_in_case_are_not_mixed_up():
    write("few.csv", "smiles,Y,y,Name", "C,1,2,methane")
    assert tg.load_molecules("few.csv", target="y")[1].tolist() == [2]
    assert tg.load_molecules("few.csv", target="Y")[1].tolist() == [1]
    write("few.csv", "smiles,aB,Ab", "C,1,2")
    with pytest.raises(
        tg.exceptions.DatasetError, match=r"^few\.csv: 'aB' and 'Ab' both match 'ab'; write it as in the file\."
    ):
        tg.load_molecules("few.csv", target="ab")


@pytest.mark.parametrize("target", ["Name", "name", "NAME"])
def test_a_target_gives_no_names_however_its_case_is_written(target):
    write("few.csv", "smiles,Name", "C,1.5", "CC,2.5")
    table = load("few.csv", Namespace(target=[target]))
    assert table.values(target)[1].tolist() == [1.5, 2.5]
    assert table.names == [None, None]
    assert load("few.csv", Namespace()).names == ["1.5", "2.5"]


TASKS = [
    (np.array(["a", "b", "c"]), "classification"),
    (np.array([True, False]), "classification"),
    (np.array([0.5, 1.0]), "regression"),
    (np.array([-1, 1] * 50), "classification"),
    (np.array([1.0, 2.0] * 50), "classification"),
    (np.arange(392) % 168 + 300, "regression"),  # wavelengths
    (np.arange(76) % 29, "regression"),
    (np.arange(5000) % 500, "regression"),
    (np.arange(600) % 6, None),  # six classes, or marks?
    (np.arange(3900) % 100, None),  # COIL-RAG, if it were a table
    (np.arange(267) % 30, None),  # Cuneiform, if it were a table
    (np.arange(12), None),
]


def test_the_task_is_guessed_only_where_it_is_clear():
    for values, task in TASKS:
        guess, reason = guess_task(values)
        assert guess == task
        assert reason.startswith("the targets are ")
