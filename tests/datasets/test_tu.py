import numpy as np
import pytest

from treegram import Graphs, iter_tu, load_tu
from treegram.exceptions import DatasetError

# Two graphs, a triangle and an edge, with everything that a folder can hold.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n3, 1\n1, 3\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "7\n7\n8\n7\n9\n",
    "node_attributes": "0.5, 1\n1.5, 1\n2.5, 1\n3.5, 1\n4.5, 1\n",
    "edge_labels": "1\n1\n2\n2\n1\n1\n3\n3\n",
}
EXPECTED = Graphs.from_edges(
    [[(0, 1), (1, 2), (0, 2)], [(0, 1)]],
    labels=[[7, 7, 8], [7, 9]],
    attributes=[[[0.5, 1], [1.5, 1], [2.5, 1]], [[3.5, 1], [4.5, 1]]],
    edge_labels=[[1, 2, 1], [3]],
    targets=[-1, 1],
)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a TU folder: FILES with the given changes; None leaves a file out."""

    def write(folder="SET", name="SET", **changes):
        path = tmp_path / folder
        path.mkdir(parents=True)
        for kind, text in (FILES | changes).items():
            if text is not None:
                (path / f"{name}_{kind}.txt").write_text(text)
        return path

    return write


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path_factory):
    """Allow no download, and hide the data of this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("TREEGRAM_DATA", raising=False)
    monkeypatch.setenv("TREEGRAM_MIRROR", "ftp://none")


# -------------------------------------------------------------------- content of a folder


def test_folder_with_all_files(write):
    graphs, y = load_tu(write())
    assert graphs == EXPECTED
    assert y.tolist() == [-1, 1]
    assert y.dtype == np.int64
    y[0] = 0  # the caller's own copy


def test_folder_with_only_the_required_files(write):
    optional = ("graph_labels", "node_labels", "node_attributes", "edge_labels")
    graphs, y = load_tu(write(**dict.fromkeys(optional)))
    assert y is None
    assert graphs == Graphs.from_edges([[(0, 1), (1, 2), (0, 2)], [(0, 1)]])


def test_name_comes_from_the_files_not_the_folder(write):
    assert load_tu(write(folder="elsewhere", name="Tox21_AR-LBD"))[0] == EXPECTED


def test_windows_line_endings_and_missing_final_newline_are_read(write):
    files = {kind: text.replace("\n", "\r\n").removesuffix("\r\n") for kind, text in FILES.items()}
    assert load_tu(write(**files))[0] == EXPECTED


def test_several_label_columns_make_tuples(write):
    graphs, _ = load_tu(write(node_labels="0, 1\n0, 2\n0, 1\n1, 1\n0, 1\n", edge_labels="1 0\n" * 6 + "2 1\n" * 2))
    assert graphs.label_values == ((0, 1), (0, 2), (1, 1))
    assert graphs.labels.tolist() == [0, 1, 0, 2, 0]
    assert graphs.edge_label_values == ((1, 0), (2, 1))
    assert graphs.edge_labels.tolist() == [0] * 6 + [1] * 2


def test_unsorted_graph_ids_keep_the_node_order_within_each_graph(write):
    # The nodes of FILES in the order 4, 1, 2, 5, 3.
    graphs, _ = load_tu(
        write(
            A="2, 3\n3, 5\n5, 2\n1, 4\n",
            graph_indicator="2\n1\n1\n2\n1\n",
            node_labels="7\n7\n7\n9\n8\n",
            node_attributes="3.5, 1\n0.5, 1\n1.5, 1\n4.5, 1\n2.5, 1\n",
            edge_labels="1\n2\n1\n3\n",
        )
    )
    assert graphs == EXPECTED


def test_ids_without_nodes_are_empty_graphs(write):
    graphs, y = load_tu(write(graph_indicator="2\n2\n2\n4\n4\n", graph_labels="5\n6\n7\n8\n9\n"))
    assert graphs.sizes.tolist() == [0, 3, 0, 2, 0]
    assert y.tolist() == [5, 6, 7, 8, 9]
    graphs, _ = load_tu(write(folder="OTHER", graph_indicator="2\n2\n2\n4\n4\n", graph_labels=None))
    assert graphs.sizes.tolist() == [0, 3, 0, 2]


def test_duplicate_edges_and_self_loops_are_removed(write):
    folder = write(A="1, 2\n1, 2\n3, 3\n4, 5\n", edge_labels="1\n1\n4\n3\n")
    graphs, _ = load_tu(folder)
    assert graphs.edges().tolist() == [[0, 1], [3, 4]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.5\n1e-3\n", [0.5, 0.001]), ("1\n2\n", [1.0, 2.0]), ("0.5, 1\n2, 3\n", [[0.5, 1.0], [2.0, 3.0]])],
)
def test_graph_attributes_are_targets_without_graph_labels(write, text, expected):
    graphs, y = load_tu(write(graph_labels=None, graph_attributes=text))
    assert y.tolist() == graphs.targets.tolist() == expected
    assert y.dtype == np.float64


def test_graph_attributes_with_graph_labels_are_kept(write):
    folder = write(graph_labels="1, 0\n0, 1\n", graph_attributes="0.5, 1\n0.25, 2\n")
    graphs, y = load_tu(folder)
    assert y.tolist() == [[1, 0], [0, 1]]
    assert graphs.graph_attributes.tolist() == [[0.5, 1.0], [0.25, 2.0]]
    assert [chunk.graph_attributes.tolist() for chunk, _ in iter_tu(folder, 1)] == [[[0.5, 1.0]], [[0.25, 2.0]]]


def test_graph_attributes_need_one_row_per_graph(write):
    with pytest.raises(DatasetError, match=r"SET_graph_attributes.txt:1: expected 2 lines, one per graph label, got 1"):
        load_tu(write(graph_attributes="0.5\n"))


def test_directed_edges_keep_their_direction_and_label(write):
    graphs, _ = load_tu(write(A="1, 2\n2, 1\n5, 4\n", edge_labels="1\n2\n3\n"), directed=True)
    assert graphs.directed
    assert graphs.edges().tolist() == [[0, 1], [1, 0], [4, 3]]
    assert graphs.edge_labels.tolist() == [0, 1, 2]


EDGE_VECTORS = "0.5, 1\n0.5, 1\n1.5, 1\n1.5, 1\n2.5, 1\n2.5, 1\n3.5, 1\n3.5, 1\n"


def test_edge_attributes_are_read(write):
    graphs, _ = load_tu(write(edge_attributes=EDGE_VECTORS))
    assert graphs.edges().tolist() == [[0, 1], [0, 2], [1, 2], [3, 4]]
    assert graphs.edge_attributes[graphs._edge_arcs()].tolist() == [[0.5, 1], [2.5, 1], [1.5, 1], [3.5, 1]]


def test_edge_attributes_that_depend_on_direction_are_dropped_with_a_warning(write):
    folder = write(edge_attributes=EDGE_VECTORS.replace("3.5, 1\n", "3.5, -1\n", 1))
    with pytest.warns(UserWarning, match=r"SET_edge_attributes.txt are left out: .* Load with directed=True") as told:
        assert load_tu(folder)[0] == EXPECTED
    assert len(told) == 1
    assert load_tu(folder, directed=True)[0].edge_attributes[-2:].tolist() == [[3.5, -1], [3.5, 1]]


def test_chunks_of_left_out_edge_attributes_are_checked_to_the_end(write):
    """The first chunk already shows that the attributes are left out, and the last one has a line too many."""
    text = EDGE_VECTORS.replace("0.5, 1\n", "0.5, -1\n", 1) + "1, 1\n"
    assert "-1" in text
    folder = write(edge_attributes=text)
    for read in (load_tu, lambda folder: list(iter_tu(folder, 1))):
        with pytest.raises(DatasetError, match=r"SET_edge_attributes\.txt:9: expected 8 lines"):
            read(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_attributes": "nobody"}, "SET_edge_attributes.txt:1: expected a finite number, got 'nobody'"),
        (
            {"edge_attributes": "1\n2\n"},
            "SET_edge_attributes.txt:2: expected 8 lines, one for each of the edges, got 2",
        ),
        (
            {"A": FILES["A"] + "1, 2\n", "edge_labels": None, "edge_attributes": "1\n" * 8 + "2\n"},
            r"SET: Graph 0: the edge between its nodes 0 and 1 is listed more than once with different attributes",
        ),
    ],
)
def test_invalid_edge_attributes_raise_with_line_numbers(write, changes, message):
    with pytest.raises(DatasetError, match=message):
        load_tu(write(**changes))


@pytest.mark.parametrize("text", ["", "\n", " \r\n\n"])
def test_graphs_without_edges_have_an_empty_file(write, text):
    graphs, _ = load_tu(write(A=text, edge_labels=text))
    assert (graphs.n_nodes, graphs.n_edges, len(graphs.edge_labels)) == (5, 0, 0)


# -------------------------------------------------------------------- invalid folders


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": None}, "SET_A.txt is missing; a TU data set needs it"),
        ({"graph_indicator": None}, "SET_graph_indicator.txt is missing; a TU data set needs it"),
        ({"A": ""}, "SET_edge_labels.txt:8: expected 0 lines, one for each of the edges, got 8"),
        ({"graph_indicator": ""}, "SET_graph_indicator.txt: the file is empty"),
        ({"node_labels": ""}, "SET_node_labels.txt: the file is empty"),
        ({"node_attributes": "\n"}, "SET_node_attributes.txt: the file is empty"),
        ({"graph_labels": ""}, "SET_graph_labels.txt: the file is empty"),
        ({"A": "1, 2\n2\n"}, "SET_A.txt:2: expected 2 numbers, got 1: '2'"),
        ({"A": "1, 2\n2, 1.5\n"}, "SET_A.txt:2: expected a whole number .* got '1.5"),
        ({"A": "1, 2\n2, 0\n"}, r"SET_A.txt:2: the edge \(2, 0\) names a node that does not exist; .* from 1 to 5"),
        ({"A": "1, 2\n6, 1\n"}, r"SET_A.txt:2: the edge \(6, 1\) names a node that does not exist; .* from 1 to 5"),
        ({"A": "1, 2\n3, 4\n"}, r"SET_A.txt:2: the edge \(3, 4\) joins two graphs, 1 and 2"),
        ({"graph_indicator": "1\n1\n1.5\n2\n2\n"}, "SET_graph_indicator.txt:3: expected a whole number .* got '1.5"),
        ({"graph_indicator": "1\n1\n0\n2\n2\n"}, "SET_graph_indicator.txt:3: expected a graph id of 1 or more, got 0"),
        (
            {"graph_indicator": "1\n-1\n1\n2\n2\n"},
            "SET_graph_indicator.txt:2: expected a graph id of 1 or more, got -1",
        ),
        ({"graph_indicator": "1\n1\n1, 1\n2\n2\n"}, "SET_graph_indicator.txt:3: expected 1 number, got 2: '1, 1'"),
        (
            {"graph_indicator": "1\n1\n1\n2\n1e12\n", "graph_labels": None},
            "indicator.txt:5: graph id 1000000000000 is too",
        ),
        (
            {"graph_labels": "1\n"},
            "SET_graph_labels.txt:1: expected 2 lines, .* got 1; .*indicator.txt:4 names graph 2",
        ),
        ({"graph_labels": "1\n0.5\n"}, "SET_graph_labels.txt:2: expected a whole number .* got '0.5"),
        (
            {"graph_labels": None, "graph_attributes": "1\n"},
            "SET_graph_attributes.txt:1: expected 2 lines, one per graph",
        ),
        (
            {"graph_labels": None, "graph_attributes": "1\nnan\n"},
            "SET_graph_attributes.txt:2: expected a finite number",
        ),
        ({"node_labels": "7\n7\n8\n7\n"}, "SET_node_labels.txt:4: expected 5 lines, one for each of the nodes, got 4"),
        ({"node_labels": "7\n7\n8\n7\n9\n9\n"}, "SET_node_labels.txt:6: expected 5 lines, one for each of the nodes"),
        ({"node_labels": "7\n7\nC\n7\n9\n"}, "SET_node_labels.txt:3: expected a finite number, got 'C'"),
        ({"node_labels": "7\n7\n0.5\n7\n9\n"}, "SET_node_labels.txt:3: expected a whole number .* got '0.5"),
        ({"node_attributes": "1\n2\n3\n4\n"}, "SET_node_attributes.txt:4: expected 5 lines, one for each of the nodes"),
        ({"node_attributes": "1\n2\nnan\n4\n5\n"}, "SET_node_attributes.txt:3: expected a finite number, got 'nan'"),
        ({"node_attributes": "1\n2\ninf\n4\n5\n"}, "SET_node_attributes.txt:3: expected a finite number, got 'inf'"),
        ({"node_attributes": "1, 2\n1\n1, 2\n1, 2\n1, 2\n"}, "SET_node_attributes.txt:2: expected 2 numbers, got 1"),
        ({"edge_labels": "1\n"}, "SET_edge_labels.txt:1: expected 8 lines, one for each of the edges, got 1"),
        (
            {"edge_labels": "1\n1\n2\n2\n1\n1\n3\n4\n"},
            r"SET: Graph 1: the edge between its nodes . and . is listed more than once with different labels.* directed=True",
        ),
    ],
)
def test_errors_name_file_and_line(write, changes, message):
    with pytest.raises(DatasetError, match=message):
        load_tu(write(**changes))


def test_conflicting_labels_of_a_directed_edge_raise(write):
    folder = write(A="1, 2\n2, 1\n1, 2\n", edge_labels="1, 1\n2, 2\n1, 3\n")
    with pytest.raises(
        DatasetError, match=r"SET: Graph 0: the edge between its nodes 0 and 1 is .* different labels\.$"
    ):
        load_tu(folder, directed=True)


def test_several_data_sets_in_one_folder(write):
    folder = write(name="ONE")
    (folder / "TWO_A.txt").write_text("1, 2\n")
    with pytest.raises(DatasetError, match=r"holds several data sets \(ONE, TWO\); give each a folder of its own"):
        load_tu(folder)
    folder.rename(folder.parent / "ONE")
    assert load_tu(folder.parent / "ONE")[0] == EXPECTED


# -------------------------------------------------------------------- location of the folder


def test_folder_in_the_working_directory_comes_first(write, tmp_path, monkeypatch):
    write(folder="here/SET")
    write(folder="data/SET", graph_labels="3\n4\n")
    monkeypatch.chdir(tmp_path / "here")
    assert load_tu("SET", data_dir=tmp_path / "data")[1].tolist() == [-1, 1]


def test_search_order_is_argument_variable_cache(write, tmp_path, monkeypatch):
    for place, labels in (("argument", "1\n1\n"), ("variable", "2\n2\n"), ("cache/treegram", "3\n3\n")):
        write(folder=f"{place}/SET", graph_labels=labels)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert load_tu("SET")[1].tolist() == [3, 3]
    monkeypatch.setenv("TREEGRAM_DATA", str(tmp_path / "variable"))
    assert load_tu("SET")[1].tolist() == [2, 2]
    assert load_tu("SET", data_dir=tmp_path / "argument")[1].tolist() == [1, 1]


def test_working_directory_folder_without_data_is_skipped(write, tmp_path, monkeypatch):
    write(folder="data/SET")
    (tmp_path / "here" / "SET").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert load_tu("SET", data_dir=tmp_path / "data")[0] == EXPECTED


@pytest.mark.parametrize("path", ["no/such", "./SET", "../outside", "/nowhere/SET"])
def test_path_is_never_joined_to_the_data_folder(write, tmp_path, monkeypatch, path):
    write(folder="data/no/such")
    write(folder="data/SET")
    write(folder="outside")
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    with pytest.raises(
        DatasetError, match=r"The folder .* does not exist; expected a folder with data in the TU format"
    ):
        load_tu(path, data_dir=tmp_path / "data")


def test_path_to_a_file_raises(tmp_path):
    (tmp_path / "data.txt").write_text("1, 2\n")
    with pytest.raises(DatasetError, match=r"data.txt is a file; expected a folder with data in the TU format"):
        load_tu(tmp_path / "data.txt")


def test_path_to_a_folder_without_data_raises(tmp_path):
    with pytest.raises(DatasetError, match=r"holds no NAME_A.txt; expected a folder with data in the TU format"):
        load_tu(tmp_path)


@pytest.mark.parametrize("name", ["..", ".", "SET\0", "SET name", "-x", "a:b", ""])
def test_invalid_name_is_never_looked_up(write, tmp_path, monkeypatch, name):
    write(folder="SET")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    with pytest.raises(DatasetError, match=r"Unknown data set|holds no NAME_A.txt|does not exist"):
        load_tu(name, data_dir=tmp_path / "data")


@pytest.mark.parametrize(
    ("name", "close"),
    [("ENZYMS", "ENZYMES"), ("mutag", "MUTAG"), ("imdb_binary", "IMDB-BINARY"), ("protein", "PROTEINS")],
)
@pytest.mark.parametrize("download", [True, False])
def test_unknown_name_suggests_the_three_closest(tmp_path, monkeypatch, name, close, download):
    monkeypatch.delenv("TREEGRAM_MIRROR")
    with pytest.raises(DatasetError, match=f"Unknown data set '{name}': .* Close names are .*{close}") as caught:
        load_tu(name, data_dir=tmp_path, download=download)
    assert len(str(caught.value).partition("Close names are ")[2].split(", ")) == 3


def test_known_name_without_download_raises(tmp_path):
    with pytest.raises(DatasetError, match=r"The data set 'MUTAG' is not in .*; load it with download=True"):
        load_tu("MUTAG", data_dir=tmp_path, download=False)


def test_damaged_folder_in_the_data_folder_is_not_replaced(write, tmp_path):
    write(folder="MUTAG", name="MUTAG", A=None)
    with pytest.raises(DatasetError, match=r"MUTAG_A.txt is missing"):
        load_tu("MUTAG", data_dir=tmp_path)


# -------------------------------------------------------------------- real data sets


@pytest.mark.filterwarnings("ignore:.*edge attributes")
@pytest.mark.parametrize(
    ("name", "n_graphs", "mean_nodes", "mean_edges", "n_labels", "n_attributes", "classes"),
    [
        ("ENZYMES", 600, 32.63, 62.14, 3, 18, [100] * 6),
        ("PROTEINS", 1113, 39.06, 72.82, 3, 1, [663, 450]),
        ("SYNTHETICnew", 300, 100, 196.25, 0, 1, [150, 150]),
        ("COX2", 467, 41.22, 43.45, 8, 3, [365, 102]),
        ("BZR", 405, 35.75, 38.36, 10, 3, [319, 86]),
        ("DHFR", 756, 42.43, 44.54, 9, 3, [295, 461]),
        ("MUTAG", 188, 17.93, 19.79, 7, 0, [63, 125]),
        ("Cuneiform", 267, 21.27, 44.80, 12, 3, None),
    ],
)
def test_real_sets_have_their_known_properties(
    data_dir, name, n_graphs, mean_nodes, mean_edges, n_labels, n_attributes, classes
):
    graphs, y = load_tu(name, data_dir=data_dir, download=False)
    assert len(graphs) == len(y) == n_graphs
    assert graphs.n_nodes / n_graphs == pytest.approx(mean_nodes, abs=0.006)
    assert graphs.n_edges / n_graphs == pytest.approx(mean_edges, abs=0.006)
    assert (len(graphs.label_values), graphs.n_attributes) == (n_labels, n_attributes)
    assert (graphs.edge_labels is not None) == (name in ("MUTAG", "Cuneiform"))
    counts = np.unique(y, return_counts=True)[1].tolist()
    assert len(counts) == 30 if classes is None else counts == classes
