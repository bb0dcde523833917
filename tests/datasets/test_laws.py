"""Laws of all readers and writers: errors name the right graph in every chunk, and every file is read back as it was written."""

import dataclasses
import io
import pickle
import re

import numpy as np
import pytest

from treegram import Graphs, iter_parquet, iter_tu, load_parquet, load_tu, save_parquet, save_tu
from treegram.exceptions import DatasetError
from treegram.graphs.digest import digest_graphs
from treegram.graphs.fields import fields_to_graphs, graphs_to_fields

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N_GRAPHS = 7
NAMES = [f"({i}): Graph 0" for i in range(N_GRAPHS)]  # names that a pattern could confuse


def outcome(read):
    """Return the message of the error that reading raises."""
    with pytest.raises(DatasetError) as error:
        read()
    return str(error.value)


def paths(**more):
    """Return paths of different lengths with labels at nodes and edges."""
    sizes = [i % 3 + 2 for i in range(N_GRAPHS)]
    edges = [[(a, a + 1) for a in range(n - 1)] for n in sizes]
    labels = {"labels": [[a % 2 for a in range(n)] for n in sizes], "edge_labels": [[1] * (n - 1) for n in sizes]}
    return Graphs.from_edges(edges, **labels, **more)


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize("bad", range(N_GRAPHS))
def test_errors_of_any_chunk_of_a_folder_name_the_same_graph(bad, tmp_path):
    """The graphs of a later chunk are numbered from 0 when it is built."""
    graphs = paths()
    save_tu(graphs, tmp_path / "SET")
    file = tmp_path / "SET" / "SET_edge_labels.txt"
    lines = file.read_text().splitlines()
    lines[graphs.indptr[graphs.offsets[bad]]] = "9"  # one of the two directions of its first edge
    file.write_text("\n".join(lines) + "\n")
    expected = outcome(lambda: load_tu(tmp_path / "SET"))
    assert f"SET: Graph {bad}: the edge between its nodes 1 and 0 is listed more than once" in expected
    for size in range(1, N_GRAPHS + 1):
        assert outcome(lambda size=size: list(iter_tu(tmp_path / "SET", size))) == expected


DAMAGE = {
    "edge_label": (lambda row: [7, *row["edge_label"][1:]], "the edge between its nodes"),
    "edge_index": (
        lambda row: [[0, 99], [99, 0]],
        r"edge \(0, 99\) names a node that does not exist|the numbers of edges",
    ),
    "node_label": (lambda row: [*row["node_label"], 1], "the numbers of nodes disagree"),
    "num_nodes": (lambda row: -1, "n_nodes must be a whole number|the numbers of nodes disagree"),
}


@pytest.mark.parametrize("names", [None, NAMES], ids=["unnamed", "named"])
@pytest.mark.parametrize("column", DAMAGE)
@pytest.mark.parametrize("bad", [0, 3, 6])
def test_errors_of_any_chunk_of_a_parquet_file_name_the_same_row(bad, column, names, tmp_path):
    save_parquet(paths(graph_names=names), tmp_path / "good.parquet")
    table = pq.read_table(tmp_path / "good.parquet")
    rows = table.to_pylist()
    change, message = DAMAGE[column]
    rows[bad][column] = change(rows[bad])
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / "bad.parquet")
    expected = outcome(lambda: load_parquet(tmp_path / "bad.parquet"))
    assert re.search(rf"bad.parquet: row {bad}( \(.*\))?: ({message})", expected), expected
    for size in range(1, N_GRAPHS + 1):
        assert outcome(lambda size=size: list(iter_parquet(tmp_path / "bad.parquet", size))) == expected


@pytest.mark.parametrize("column", ["edge_label", "edge_index", "node_label", "num_nodes"])
@pytest.mark.parametrize("bad", [0, 3, 6])
def test_missing_values_in_any_chunk_of_a_parquet_file_name_the_same_row(bad, column, tmp_path):
    """The last value of a row, which is deep within its lists."""
    save_parquet(paths(), tmp_path / "good.parquet")
    table = pq.read_table(tmp_path / "good.parquet")
    rows = table.to_pylist()
    value = rows[bad][column]
    ends = {"edge_index": lambda: [value[0], [*value[1][:-1], None]], "num_nodes": lambda: None}
    rows[bad][column] = ends.get(column, lambda: [*value[:-1], None])()
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / "bad.parquet")
    expected = f"{tmp_path / 'bad.parquet'}: row {bad}, column {column!r}: there is a missing value."
    assert outcome(lambda: load_parquet(tmp_path / "bad.parquet")) == expected
    for size in range(1, N_GRAPHS + 1):
        assert outcome(lambda size=size: list(iter_parquet(tmp_path / "bad.parquet", size))) == expected


@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n", b"\x1c\n"])
@pytest.mark.parametrize("kind", ["edge_labels", "graph_indicator", "graph_labels"])
def test_tables_without_numbers_raise_without_a_warning_of_numpy(kind, content, tmp_path):
    save_tu(paths(targets=np.arange(N_GRAPHS)), tmp_path / "SET")
    (tmp_path / "SET" / f"SET_{kind}.txt").write_bytes(content)
    for read in (lambda: load_tu(tmp_path / "SET"), lambda: list(iter_tu(tmp_path / "SET", 2))):
        assert f"SET_{kind}.txt" in outcome(read)


# -------------------------------------------------------------------- round trips


def everything(directed):
    """Return graphs with every field; one has no nodes and one no edges."""
    rng = np.random.default_rng(0)
    sizes, edges = [3, 0, 1, 4], [[(0, 1), (1, 2)], [], [], [(0, 1), (2, 1), (3, 0)]]
    return Graphs.from_edges(
        edges,
        n_nodes=sizes,
        labels=[["C"] * n for n in sizes],
        attributes=[rng.normal(size=(n, 2)) for n in sizes],
        edge_labels=[[("a", 1)] * len(pairs) for pairs in edges],
        edge_attributes=[rng.normal(size=(len(pairs), 3)) for pairs in edges],
        directed=directed,
        targets=["x", "y", "x", "y"],
        graph_names=["", "é", "c", "c"],
        node_names=[[f"n{a}" for a in range(n)] for n in sizes],
        attribute_names=["mass", "charge"],
        edge_attribute_names=["x", "y", "z"],
        graph_attributes=rng.normal(size=(4, 1)),
        graph_attribute_names=["dose"],
        positions=[rng.normal(size=(n, 3)) for n in sizes],
    )


def through_parquet(graphs, folder):
    save_parquet(graphs, folder / "graphs.parquet")
    return load_parquet(folder / "graphs.parquet")[0]


def through_chunks_of_parquet(graphs, folder):
    save_parquet(graphs, folder / "graphs.parquet")
    return Graphs.concatenate(chunk for chunk, _ in iter_parquet(folder / "graphs.parquet", 1))


def through_pickle(graphs, _):
    return pickle.loads(pickle.dumps(graphs))


def through_model_files(graphs, _):
    return fields_to_graphs(graphs_to_fields(graphs)).assign(targets=graphs.targets)


def through_numpy(graphs, _):
    file = io.BytesIO()
    np.save(file, np.asarray(graphs), allow_pickle=True)
    file.seek(0)
    return Graphs.concatenate(np.load(file, allow_pickle=True).ravel().tolist())


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "through", [through_parquet, through_chunks_of_parquet, through_pickle, through_model_files, through_numpy]
)
def test_everything_is_read_back(through, directed, tmp_path):
    graphs = everything(directed)
    again = through(graphs, tmp_path)
    assert again == graphs
    assert digest_graphs(again) == digest_graphs(graphs)


ROWS_OF = {
    "offsets": ("labels", "attributes", "node_names", "positions"),
    "arcs": ("edge_labels", "edge_attributes"),
    "graphs": ("targets", "graph_names", "graph_attributes"),
}
OF_ALL = {"offsets", "indptr", "indices", "directed", "label_values", "edge_label_values"}


@pytest.mark.parametrize("directed", [False, True])
def test_selected_graphs_keep_their_rows_of_every_field(directed):
    graphs, order = everything(directed), [3, 0, 3, 1]
    rows_of_fields = [name for names in ROWS_OF.values() for name in names]
    names_of_columns = {"attribute_names", "edge_attribute_names", "graph_attribute_names"}
    assert {field.name for field in dataclasses.fields(Graphs)} == {*rows_of_fields, *OF_ALL, *names_of_columns}
    for new in (graphs[order], Graphs.concatenate([graphs[i] for i in order])):
        for place, i in enumerate(order):
            for things, names in ROWS_OF.items():
                starts = [
                    {"offsets": g.offsets, "arcs": g.indptr[g.offsets], "graphs": np.arange(len(g) + 1)}[things]
                    for g in (new, graphs)
                ]
                for name in names:
                    values = [
                        getattr(g, name)[s[k] : s[k + 1]]
                        for g, s, k in zip((new, graphs), starts, (place, i), strict=True)
                    ]
                    np.testing.assert_array_equal(*values, err_msg=name)


def without(graphs, *names):
    return graphs.assign(**dict.fromkeys(names))


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_graphs_are_read_back_without_names_of_columns(directed):
    pytest.importorskip("networkx")
    graphs = everything(directed).assign(graph_names=["a", "b", "c", "c"])
    keys = {"edge_label": "label", "edge_attributes": "attributes", "targets": "target"}
    again = Graphs.from_networkx(graphs.to_networkx(), **keys)
    expected = without(
        graphs, "attribute_names", "edge_attribute_names", "graph_attribute_names", "graph_attributes", "positions"
    )
    assert again.edge_attribute_names == ("attributes[0]", "attributes[1]", "attributes[2]")
    again = without(again, "edge_attribute_names")
    assert again == expected
    assert digest_graphs(again) == digest_graphs(expected)


@pytest.mark.parametrize("directed", [False, True])
def test_folders_are_read_back_without_names_and_positions(directed, tmp_path):
    full = everything(directed)
    kept = {name: getattr(full, name) for name in ("attributes", "directed", "graph_attributes")}
    graphs = Graphs.from_arrays(full.offsets, full.edges(), labels=[(1, 2)] * 8, targets=[1, -1, 1, -1], **kept)
    save_tu(graphs, tmp_path / "SET")
    again = load_tu(tmp_path / "SET", directed=directed)[0]
    assert again == graphs
    assert digest_graphs(again) == digest_graphs(graphs)
    for size in (1, 2, 3):
        chunks = [chunk for chunk, _ in iter_tu(tmp_path / "SET", size, directed=directed)]
        assert Graphs.concatenate(chunks) == graphs
