import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from treegram import Graphs, load_tu, save_tu
from treegram.exceptions import DatasetError

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def storable(draw):
    """Draw collections with every kind of labels and targets, and any finite attributes."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    n_nodes = sum(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    inside = [st.tuples(*[st.integers(a, b - 1)] * 2) for a, b in itertools.pairwise(starts) if b > a]
    edges = sorted(draw(st.sets(st.one_of(inside).map(lambda pair: tuple(sorted(pair))), max_size=8))) if inside else []
    label = draw(
        st.sampled_from(
            [
                st.integers(-(2**53) + 1, 2**53 - 1),
                st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
            ]
        )
    )
    targets = draw(
        st.sampled_from(
            [
                st.none(),
                st.integers(-5, 5),
                FLOATS,
                st.tuples(FLOATS, FLOATS),
            ]
        )
    )
    dimension = draw(st.integers(1, 3))

    def maybe(values, length):
        return draw(st.none() | st.lists(values, min_size=length, max_size=length))

    return Graphs.from_arrays(
        starts,
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        labels=maybe(label, n_nodes),
        attributes=maybe(st.lists(FLOATS, min_size=dimension, max_size=dimension), n_nodes),
        edge_labels=maybe(label, len(edges)),
        directed=draw(st.booleans()),
        targets=None if (drawn := [draw(targets) for _ in sizes])[0] is None else drawn,
    )


@settings(deadline=None)
@given(storable())
def test_any_collection_round_trips(graphs):
    assume(graphs.n_nodes)
    assume(graphs.targets is not None or graphs.sizes[-1])
    with tempfile.TemporaryDirectory() as parent:
        save_tu(graphs, Path(parent) / "SET")
        again, y = load_tu(Path(parent) / "SET", directed=graphs.directed)
    assert again == graphs
    if graphs.attributes is not None:
        assert again.attributes.tobytes() == graphs.attributes.tobytes()  # including signs of zeros
    if graphs.targets is not None:
        assert y.dtype == graphs.targets.dtype
        assert y.tobytes() == graphs.targets.tobytes()


@pytest.mark.filterwarnings("ignore:.*edge attributes")
@pytest.mark.parametrize("name", ["MUTAG", "Cuneiform", "ENZYMES"])
def test_real_sets_round_trip(data_dir, tmp_path, name):
    graphs, _ = load_tu(name, data_dir=data_dir, download=False)
    save_tu(graphs[::7], tmp_path / name)
    assert load_tu(tmp_path / name)[0] == graphs[::7]


def test_files_follow_the_tu_format(tmp_path):
    graphs = Graphs.from_edges(
        [[(0, 1)], [], []],
        labels=[[(3, 0), (4, 1)], [(3, 0)], []],
        attributes=[[0.1, -0.0], [1e300], []],
        edge_labels=[[5], [], []],
        targets=[2, 1, 2],
    )
    save_tu(graphs, tmp_path / "folder", name="TINY")
    files = {file.name: file.read_bytes().decode() for file in (tmp_path / "folder").iterdir()}
    assert files == {
        "TINY_A.txt": "1, 2\n2, 1\n",
        "TINY_graph_indicator.txt": "1\n1\n2\n",
        "TINY_graph_labels.txt": "2\n1\n2\n",
        "TINY_node_labels.txt": "3, 0\n4, 1\n3, 0\n",
        "TINY_node_attributes.txt": "0.1\n-0.0\n1e+300\n",
        "TINY_edge_labels.txt": "5\n5\n",
    }


@pytest.mark.parametrize("edge_labels", [None, [[]], [[("a", 1)]]])
def test_collection_without_edges_writes_an_empty_file(tmp_path, edge_labels):
    graphs = Graphs.from_edges([[] if edge_labels != [[("a", 1)]] else [(0, 0)]], n_nodes=[2], edge_labels=edge_labels)
    save_tu(graphs, tmp_path / "SET")
    assert (tmp_path / "SET" / "SET_A.txt").read_text() == ""
    assert load_tu(tmp_path / "SET")[0] == graphs


@pytest.mark.parametrize(
    "labels",
    [
        [1, 2.5],
        [2**53 + 1, 0],
        [2**80, -(2**80)],
        [(1, 2), (1,)],
        [(1, 2), 3],
        [(1, 2.5), (1, 3.5)],
        ["7", 7],
        ["", " ", "\u2028", "\ud800", "\0", "\x1b", '"', "\\"],
        [(), ((),), ("a", (1, ("b",)))],
    ],
)
def test_labels_that_would_change_when_read_raise(tmp_path, labels):
    with pytest.raises(
        DatasetError, match=r"can hold labels that are whole numbers .*\. save_parquet has no such limits"
    ):
        save_tu(Graphs.from_edges([[]], labels=[labels]), tmp_path / "SET")
    assert list(tmp_path.iterdir()) == []


def test_unused_labels_do_not_matter(tmp_path):
    graphs = Graphs.from_edges([[], []], labels=[["a"], [7]])[1:]
    save_tu(graphs, tmp_path / "SET")
    assert load_tu(tmp_path / "SET")[0] == graphs


@pytest.mark.parametrize("targets", [[True, False], np.array([3, 4], dtype=np.uint8), np.float32([0.1, 0.2])])
def test_targets_of_other_dtypes_keep_their_values(tmp_path, targets):
    graphs = Graphs.from_edges([[], []], n_nodes=[1, 1], targets=targets)
    save_tu(graphs, tmp_path / "SET")
    assert load_tu(tmp_path / "SET")[0] == graphs


# -------------------------------------------------------------------- what cannot be saved


def one_node(**content):
    return Graphs.from_edges([[]], n_nodes=[1], **content)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (Graphs.from_edges([]), "cannot hold a collection without nodes; got Graphs"),
        (Graphs.from_edges([[], []], targets=[1, 2]), "cannot hold a collection without nodes"),
        (Graphs.from_edges([[], []], n_nodes=[1, 0]), "Graph 1, the last one, has no node: without targets"),
        (one_node(attributes=[np.empty((1, 0))]), "cannot hold attributes of length 0"),
        (
            one_node(targets=[np.nan]),
            "can hold targets that are whole numbers below 2.53 or finite numbers; got float64",
        ),
        (one_node(targets=[2**60]), "can hold targets .* got int64"),
        (one_node(targets=[1j]), "can hold targets .* got complex128"),
        (one_node(targets=[None]), "can hold targets .* got object"),
        (one_node(targets=["yes"]), "can hold targets .* got <U3 .* save_parquet also writes strings"),
        (one_node(targets=[[1]]), r"cannot hold targets of shape \(1, 1\)"),
        (one_node(targets=[[[1]]]), r"cannot hold targets of shape \(1, 1, 1\)"),
    ],
)
def test_unsupported_content_raises(tmp_path, graphs, message):
    with pytest.raises(DatasetError, match=message):
        save_tu(graphs, tmp_path / "SET")
    assert list(tmp_path.iterdir()) == []


def test_nonempty_folder_is_not_changed(tmp_path):
    (tmp_path / "SET").mkdir()
    (tmp_path / "SET" / "mine.txt").write_text("mine")
    with pytest.raises(DatasetError, match="SET exists and is not empty; nothing was written"):
        save_tu(one_node(), tmp_path / "SET")
    with pytest.raises(DatasetError, match=r"mine.txt exists and is not empty; nothing was written"):
        save_tu(one_node(), tmp_path / "SET" / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["SET"]
    assert [path.read_text() for path in (tmp_path / "SET").iterdir()] == ["mine"]


def test_empty_folder_is_filled(tmp_path):
    (tmp_path / "SET").mkdir()
    save_tu(one_node(), tmp_path / "SET")
    assert load_tu(tmp_path / "SET")[0] == one_node()
    assert [path.name for path in tmp_path.iterdir()] == ["SET"]


def test_missing_parent_folder_raises(tmp_path):
    with pytest.raises(DatasetError, match=r"SET cannot be written \(No such file or directory\)"):
        save_tu(one_node(), tmp_path / "none" / "SET")


def test_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def fail(self, data):
        if self.name.endswith("_graph_indicator.txt"):
            raise OSError(28, "No space left on device")
        return len(data)

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(DatasetError, match=r"SET cannot be written \(No space left on device\)"):
        save_tu(one_node(), tmp_path / "SET")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a b"])
def test_invalid_file_name_raises(tmp_path, name):
    with pytest.raises(DatasetError, match=r"name must be letters, digits .* got"):
        save_tu(one_node(), tmp_path / "SET", name=name)


def test_graph_attributes_round_trip_or_raise(tmp_path):
    graphs = Graphs.from_edges([[(0, 1)], []], n_nodes=[2, 1], targets=[0, 1], graph_attributes=[[0.1, 1], [-3e-9, 2]])
    save_tu(graphs, tmp_path / "SET")
    assert load_tu(tmp_path / "SET")[0] == graphs
    for other in (graphs.assign(targets=None), graphs.assign(targets=[0.5, 1.5])):
        with pytest.raises(DatasetError, match="graph attributes only beside targets that are classes"):
            save_tu(other, tmp_path / "OTHER")
    assert not (tmp_path / "OTHER").exists()
