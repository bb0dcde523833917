from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import collections
from treegram import Graphs, iter_parquet, load_parquet, load_tu, make_synthetic, save_parquet, save_tu
from treegram.cli import main
from treegram.exceptions import DatasetError
from zoo import COLLECTIONS

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# Two graphs in the format of Hugging Face data sets: a path of three nodes, and an edge.
ROWS = {
    "edge_index": [[[0, 1, 1, 2], [1, 0, 2, 1]], [[0, 1], [1, 0]]],
    "node_feat": [[[1, 0], [0, 1], [0, 1]], [[1, 0], [1, 0]]],
    "edge_attr": [[[1], [1], [2], [2]], [[1], [1]]],
    "y": [[0], [1]],
    "num_nodes": [3, 2],
}
EDGES = [[(0, 1), (1, 2)], [(0, 1)]]


@pytest.fixture
def write(tmp_path):
    """Return a function that writes ROWS with the given changes; None leaves a column out."""

    def write(metadata=None, **changes):
        columns = {name: values for name, values in (ROWS | changes).items() if values is not None}
        table = pa.table(columns)
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet"

    return write


def test_file_without_rows_has_no_graphs_and_no_targets(write):
    columns = {name: pa.array(values)[:0] for name, values in ROWS.items()}
    graphs, y = load_parquet(write(**columns))
    assert (len(graphs), y.shape) == (0, (0,))


def test_graphs_without_nodes_have_columns_of_no_known_type(write):
    path = write(edge_index=[[[], []]] * 2, node_feat=None, edge_attr=None, node_label=[[], []], num_nodes=[0, 0])
    assert pq.read_table(path).schema.field("node_label").type == pa.list_(pa.null())
    graphs, y = load_parquet(path)
    assert (len(graphs), graphs.n_nodes, y.tolist()) == (2, 0, [0, 1])


def test_values_of_nodes_must_be_lists(write):
    with pytest.raises(
        DatasetError, match=r"column 'node_label' must hold a list in each row; it holds numbers or str"
    ):
        load_parquet(write(node_label=["C", "O"]))


# -------------------------------------------------------------------- round trips


@settings(deadline=None)  # writing waits for the disk
@given(collections(), st.booleans())
def test_any_collection_round_trips(tmp_path_factory, collection, with_vectors):
    graphs = collection.pack()
    if with_vectors:
        sums = np.repeat(np.arange(graphs.n_nodes), graphs.degrees) + graphs.indices
        graphs = Graphs(**{**graphs.__dict__, "edge_attributes": np.stack([0.1 * sums, -1.0 * sums], axis=1)})
    path = tmp_path_factory.mktemp("parquet") / "datasets.parquet"
    save_parquet(graphs, path)
    again, y = load_parquet(path)
    Graphs(**again.__dict__)
    assert again == graphs
    assert y is None


@pytest.mark.parametrize("name", sorted(COLLECTIONS))
def test_zoo_collections_round_trip(name, tmp_path):
    save_parquet(COLLECTIONS[name].pack(), tmp_path / "zoo.parquet")
    assert load_parquet(tmp_path / "zoo.parquet")[0] == COLLECTIONS[name].pack()


@pytest.mark.parametrize(
    "targets",
    [
        [1, -1, 1],
        [0.1, 0.2, 1e-300],
        ["yes", "no", "a word"],
        [True, False, True],
        [[1, 2], [3, 4], [5, 6]],
    ],
)
def test_targets_round_trip(targets, tmp_path):
    graphs = Graphs.from_edges([[], [], []], n_nodes=[1, 1, 1], targets=targets)
    save_parquet(graphs, tmp_path / "y.parquet")
    again, y = load_parquet(tmp_path / "y.parquet")
    assert y.tolist() == again.targets.tolist() == targets
    assert y.dtype.kind == np.array(targets).dtype.kind
    y[0] = y[1]  # the caller's own copy


def test_unsupported_targets_raise_and_change_no_file(tmp_path):
    path = tmp_path / "y.parquet"
    path.write_bytes(b"before")
    with pytest.raises(DatasetError, match="targets that are numbers or strings"):
        save_parquet(Graphs.from_edges([[]], n_nodes=[1], targets=np.array([None], dtype=object)), path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(DatasetError, match="cannot be written"):
        save_parquet(Graphs.from_edges([[]]), tmp_path / "nowhere" / "y.parquet")


def test_labels_of_any_type_round_trip(tmp_path):
    graphs = Graphs.from_edges(
        [[(0, 1)], [(0, 1)], [], [(0, 1)]],
        labels=[["C", "O"], ["N", ("C", 1)], [], ["O\ud800", 2.5]],
        edge_labels=[["="], [2], [], ["="]],
        targets=["a", "b", "a", "b"],
    )
    save_parquet(graphs, tmp_path / "rows.parquet")
    assert load_parquet(tmp_path / "rows.parquet")[0] == graphs
    assert pq.read_table(tmp_path / "rows.parquet")["node_label"][1].as_py() == ['"N"', '["C", 1]']


def test_labels_that_are_tuples_of_equal_length_round_trip(tmp_path):
    graphs = Graphs.from_edges([[(0, 1)]], labels=[[("C", 1), ("O", 2)]])
    save_parquet(graphs, tmp_path / "rows.parquet")
    assert load_parquet(tmp_path / "rows.parquet")[0] == graphs


def test_columns_follow_hugging_face(tmp_path):
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)]], attributes=[[[1.0], [2.0], [3.0]]], edge_attributes=[[5.0, 6.0]], targets=[7]
    )
    save_parquet(graphs, tmp_path / "one.parquet")
    assert pq.read_table(tmp_path / "one.parquet").to_pylist() == [
        {
            "edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]],
            "node_feat": [[1.0], [2.0], [3.0]],
            "edge_attr": [[5.0], [5.0], [6.0], [6.0]],
            "num_nodes": 3,
            "y": [7],
        }
    ]


def test_names_and_graph_attributes_round_trip(tmp_path):
    graphs = Graphs.from_edges(
        [[(0, 1)], [], [(0, 1)]],
        n_nodes=[2, 0, 2],
        labels=[["C", "O"], [], ["N", "N"]],
        attributes=[[[1.0], [2.0]], [], [[3.0], [4.0]]],
        edge_attributes=[[[1.0, 2.0]], [], [[3.0, 4.0]]],
        attribute_names=["charge"],
        edge_attribute_names=["length", "order"],
        graph_names=["a", "b, c", "\u00e9"],
        node_names=[["u", "v"], [], ["w", "u"]],
        graph_attributes=[[1.5], [2.5], [-1.0]],
        graph_attribute_names=["age"],
    )
    path = tmp_path / "named.parquet"
    save_parquet(graphs, path)
    again, _ = load_parquet(path)
    assert again == graphs
    for name in ("graph_names", "node_names"):
        assert getattr(again, name).tolist() == getattr(graphs, name).tolist()
    for name in ("attribute_names", "edge_attribute_names", "graph_attribute_names"):
        assert getattr(again, name) == getattr(graphs, name)
    np.testing.assert_array_equal(again.graph_attributes, graphs.graph_attributes)
    assert [chunk.graph_names.tolist() for chunk, _ in iter_parquet(path, 2)] == [["a", "b, c"], ["\u00e9"]]
    save_parquet(graphs[:0], path)
    assert load_parquet(path)[0].graph_attribute_names == ("age",)
    bare = Graphs.from_edges([[]], graph_attributes=np.empty((1, 0)))
    save_parquet(bare, path)
    assert load_parquet(path)[0].graph_attributes.shape == (1, 0)


# -------------------------------------------------------------------- files of other programs


def test_plain_file_is_read(write):
    graphs, y = load_parquet(write())
    assert graphs == Graphs.from_edges(
        EDGES, attributes=ROWS["node_feat"], edge_attributes=[[[1], [2]], [[1]]], targets=[0, 1]
    )
    assert y.tolist() == [0, 1]


def test_labels_can_be_integers_lists_of_integers_or_strings(write):
    graphs, _ = load_parquet(write(node_label=ROWS["node_feat"], edge_label=ROWS["edge_attr"]))
    arcs = graphs._edge_arcs()
    assert [graphs.edge_label_values[code] for code in graphs.edge_labels[arcs]] == [1, 2, 1]
    assert [graphs.label_values[code] for code in graphs.labels] == [(1, 0), (0, 1), (0, 1), (1, 0), (1, 0)]
    texts, _ = load_parquet(write(node_label=[["C", "O", "C"], ["N", "C"]]))
    assert [texts.label_values[code] for code in texts.labels] == ["C", "O", "C", "N", "C"]


@pytest.mark.parametrize(
    "kind",
    [pa.large_list(pa.large_list(pa.int32())), pa.list_(pa.list_(pa.uint16()), 2), pa.list_(pa.list_(pa.int64()))],
)
def test_lists_of_any_arrow_type_are_read(write, kind):
    path = write(edge_index=pa.array(ROWS["edge_index"], kind))
    assert load_parquet(path)[0].edges().tolist() == [[0, 1], [1, 2], [3, 4]]


def test_number_of_nodes_is_inferred_from_the_other_columns(write):
    assert load_parquet(write(node_feat=None, num_nodes=None))[0].sizes.tolist() == [3, 2]
    assert load_parquet(write(node_feat=None, num_nodes=[5, 2]))[0].sizes.tolist() == [5, 2]
    assert load_parquet(write(num_nodes=None, node_feat=[[0.5, 1, 2, 3], [1, 2]]))[0].sizes.tolist() == [4, 2]


def test_edges_listed_once_in_any_order_are_read(write):
    path = write(edge_index=[[[2, 0, 0, 1], [1, 1, 0, 0]], [[1], [0]]], edge_attr=None)
    assert load_parquet(path)[0].edges().tolist() == [[0, 1], [1, 2], [3, 4]]


def test_targets_can_be_scalars_or_nested_lists(write):
    assert load_parquet(write(y=[0.5, 1.5]))[1].tolist() == [0.5, 1.5]
    assert load_parquet(write(y=[[[1.0, 2.0]], [[3.0, 4.0]]]))[1].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert load_parquet(write(y=None))[1] is None


def test_warning_names_unused_columns(write):
    with pytest.warns(UserWarning, match="these columns are not used: 'name', 'source'") as told:
        load_parquet(write(name=["a", "b"], source=[1, 2]))
    assert len(told) == 1


# -------------------------------------------------------------------- malformed files


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": None}, "expected one row per graph with a column 'edge_index'"),
        ({"edge_index": [1, 2]}, "column 'edge_index' must hold two lists of whole numbers in each row"),
        ({"edge_index": [[["a"], ["b"]], [[], []]]}, "column 'edge_index' must hold whole numbers; it holds string"),
        ({"edge_index": [[[0.5], [1.5]], [[], []]]}, "column 'edge_index' must hold whole numbers; it holds double"),
        ({"edge_index": [ROWS["edge_index"][0], None]}, "row 1, column 'edge_index': there is a missing value"),
        ({"edge_index": [[[0], None], [[], []]]}, "row 0, column 'edge_index': there is a missing value"),
        ({"edge_index": [[[], []], [[0, None], [1, 0]]]}, "row 1, column 'edge_index': there is a missing value"),
        ({"edge_index": [[[], []], [[0]]]}, "row 1, column 'edge_index': expected two lists of one length"),
        (
            {"edge_index": [[[], []], [[0, 1], [0]]]},
            "row 1, column 'edge_index': expected two lists of one length",
        ),
        (
            {"edge_index": [[[], []], [[0], [2]]], "edge_attr": None},
            r"row 1: edge \(0, 2\) names a node that does not exist",
        ),
        ({"edge_index": [[[], []], [[0], [-1]]], "edge_attr": None}, r"row 1: edge \(0, -1\) names a node"),
        (
            {"edge_index": [[[], []], [[0], [2**62]]], "edge_attr": None},
            r"row 1: edge \(0, 4611686018427387904\)",
        ),
        ({"num_nodes": [3, -2]}, "row 1: the numbers of nodes disagree: -2 from num_nodes, 2 from node_feat"),
        ({"num_nodes": [3, -2], "node_feat": None}, "row 1: n_nodes must be a whole number, at least 0 .* got -2"),
        ({"num_nodes": [3, 2**62], "node_feat": None}, "row 1: n_nodes must be .* got 4611686018427387904"),
        ({"num_nodes": [2**31 - 1, 2**31 - 1], "node_feat": None}, "at most 2,147,483,647 in one collection"),
        ({"num_nodes": [3, None]}, "row 1, column 'num_nodes': there is a missing value"),
        ({"num_nodes": ["3", "2"]}, "column 'num_nodes' must hold whole numbers"),
        ({"num_nodes": [4, 2]}, "row 0: the numbers of nodes disagree: 4 from num_nodes, 3 from node_feat"),
        (
            {"node_feat": [[[1.0], [2.0], [3.0]], [[1.0], [1.0, 2.0]]]},
            "row 1, column 'node_feat': expected 1 values, as before; got 2",
        ),
        (
            {"node_feat": [[[1.0], [2.0], [3.0]], [[1.0], [None]]]},
            "row 1, column 'node_feat': there is a missing value",
        ),
        (
            {"node_feat": [[[1.0], [2.0], [3.0]], [[1.0], [np.nan]]]},
            "row 1: the attributes of its node 1 are not finite",
        ),
        ({"node_feat": [["a", "b", "c"], ["d", "e"]]}, "column 'node_feat' must hold numbers; it holds string"),
        (
            {"edge_attr": [[[1.0]] * 4, [[1.0]]]},
            "row 1: the numbers of edges disagree: 2 from edge_index, 1 from edge_attr",
        ),
        ({"edge_attr": [[[1.0]] * 4, [[1.0], [np.inf]]]}, r"row 1: the attributes of its edge \(1, 0\) are not finite"),
        (
            {"edge_attr": [[[1.0]] * 4, [[1.0], [2.0]]]},
            "row 1: the edge .* listed more than once with different attributes",
        ),
        ({"y": [[1], [2, 3]]}, "row 1, column 'y': expected 1 values, as before; got 2"),
        ({"y": [[1], None]}, "row 1, column 'y': there is a missing value"),
        ({"y": [{"a": 1}, {"a": 2}]}, "column 'y' must hold numbers or strings"),
        ({"metadata": {b"treegram": b"{"}}, "the metadata 'treegram' cannot be read"),
        ({"metadata": {b"treegram": b"[" * 100_000}}, "the metadata 'treegram' cannot be read"),
        ({"metadata": {b"treegram": b"3"}}, "the metadata 'treegram' cannot be read"),
        ({"metadata": {b"treegram": b'{"attribute_names": 3}'}}, "attribute_names must"),
        ({"metadata": {b"treegram": b'{"attribute_names": ["a"]}'}}, "attribute_names"),
        ({"metadata": {b"treegram": b"{}"}, "graph_name": [1, 2]}, "column 'graph_name' must hold strings"),
        (
            {"metadata": {b"treegram": b"{}"}, "node_name": [["a"], ["b"]]},
            "row 0: the numbers of nodes disagree: 3 from num_nodes, 3 from node_feat, 1 from node_name",
        ),
        (
            {"metadata": {b"treegram": b'{"json": ["node_label"]}'}, "node_label": [["C"] * 3, ["C"] * 2]},
            "column 'node_label': expected a label as JSON",
        ),
    ],
)
def test_malformed_rows_raise(write, changes, message):
    path = write(**changes)
    with pytest.raises(DatasetError, match=message):
        load_parquet(path)
    if "at most" not in message and "as before" not in message:  # these are checked for several rows at once
        with pytest.raises(DatasetError, match=r"rows.parquet: "):
            list(iter_parquet(path, chunk_size=1))


def test_file_truncated_anywhere_raises(tmp_path):
    graphs, _ = make_synthetic(4, random_state=0)
    save_parquet(graphs, tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    for length in (0, 3, 4, 100, len(content) // 2, len(content) - 9, len(content) - 1):
        (tmp_path / "cut.parquet").write_bytes(content[:length])
        with pytest.raises(DatasetError, match=r"cut.parquet: the file cannot be read as Parquet"):
            load_parquet(tmp_path / "cut.parquet")
    with pytest.raises(DatasetError, match=r"nowhere.parquet: the file cannot be read"):
        load_parquet(tmp_path / "nowhere.parquet")


# -------------------------------------------------------------------- chunks


@pytest.fixture(scope="module")
def stream_file(tmp_path_factory):
    graphs, y = make_synthetic(600, random_state=0)
    path = tmp_path_factory.mktemp("stream") / "datasets.parquet"
    save_parquet(graphs, path)
    return path, graphs, y


@pytest.mark.parametrize("size", [1, 100, 256, 599, 600, 1000])
def test_chunks_concatenate_to_the_whole(stream_file, size):
    path, graphs, y = stream_file
    chunks = list(iter_parquet(path, size))
    assert [len(chunk) for chunk, _ in chunks] == [size] * (600 // size) + [600 % size] * (600 % size > 0)
    assert Graphs.concatenate([chunk for chunk, _ in chunks]) == graphs
    assert np.concatenate([part for _, part in chunks]).tolist() == y.tolist()
    assert all(part.flags.writeable for _, part in chunks)  # copies, as of the other readers


@pytest.mark.parametrize("size", [0, 1.5, "a", None])
def test_chunk_holds_whole_graphs(stream_file, size):
    with pytest.raises(ValueError, match="chunk_size of iter_parquet must be a whole number of at least 1"):
        iter_parquet(stream_file[0], size)


# -------------------------------------------------------------------- the command


def test_command_reads_parquet_files(stream_file, tmp_path, capsys):
    _, graphs, _ = stream_file
    few = tmp_path / "few.parquet"
    save_parquet(graphs[:20], few)
    assert main(["info", str(few)]) == 0
    assert "20 graphs, undirected" in capsys.readouterr().out
    assert main(["gram", str(few), "--kernel", "wl", "-o", str(tmp_path / "K.npz")]) == 0
    assert main(["info", str(tmp_path / "nowhere.parquet")]) == 2
    assert "nowhere.parquet: the file cannot be read as Parquet" in capsys.readouterr().err


def test_tu_and_parquet_files_hold_the_same_graphs(tmp_path, stream_file):
    _, graphs, _ = stream_file
    save_tu(graphs[:50], tmp_path / "TEXT")
    save_parquet(graphs[:50], tmp_path / "rows.parquet")
    assert load_tu(tmp_path / "TEXT")[0] == load_parquet(tmp_path / "rows.parquet")[0]
    assert Path(tmp_path / "rows.parquet").stat().st_size < sum(p.stat().st_size for p in (tmp_path / "TEXT").iterdir())
