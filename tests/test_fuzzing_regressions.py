"""Regression tests of inputs found by fuzzing: each once raised another library's error, or was misread."""

import json

import numpy as np
import pytest

from treegram import WL, Graphs, gram_to_zarr
from treegram.exceptions import InvalidGraphError, StoreError

NODES = {"graph": ["a", "a"], "node": [1, 2], "x": [0.5, 1.0]}
EDGES = {"graph": ["a"], "source": [1], "target": [2]}
PAIR = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C", "O"], ["C", "C", "O"]])


class Data(dict):
    """The part of PyTorch Geometric's Data that the converter reads."""

    def __init__(self, num_nodes, **content):
        super().__init__(edge_index=np.array([[0], [1]]), **content)
        self.num_nodes = num_nodes


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (
            {"x": [[0.5], [1.0, 2.0]]},
            {},
            "nodes: row 1: expected vectors of numbers, all of one length, in the column 'x'; got",
        ),
        ({}, {"source": [[1, [2]]]}, "edges: row 0 has source .* which is not in the node table"),
        (
            {"y": [[0.5, 1.0], "ab"]},
            {},
            "nodes: row 1: expected vectors of numbers, all of one length, in the column 'y'; got 'ab'",
        ),
    ],
)
def test_irregular_columns_raise(nodes, edges, message):
    attributes = ["x", "y"] if "y" in nodes else "x"
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_tables({**NODES, **nodes}, {**EDGES, **edges}, attributes=attributes)


@pytest.mark.parametrize("n_nodes", [(2,), float("nan"), float("inf"), "2", -1, 2.5, 10**30])
def test_invalid_numbers_of_nodes_raise(n_nodes):
    with pytest.raises(InvalidGraphError, match=r"Graph 0: num_nodes must be a whole number, at least 0 .*; got"):
        Graphs.from_pyg([Data(n_nodes)])


def test_mixed_labels_in_one_list_keep_their_types():
    graphs = Graphs.from_pyg([Data(2, z=[1, "C"])], "z")
    assert graphs.label_values == (1, "C")


def test_mixed_labels_in_two_graphs_keep_their_types():
    graphs = Graphs.from_pyg([Data(2, z=np.array([1, 2])), Data(2, z=np.array(["1", "C"]))], "z")
    assert graphs.label_values == (1, 2, "1", "C")


def test_large_integers_keep_their_values():
    graphs = Graphs.from_pyg([Data(2, z=[2**63, 2**53 + 1])], "z")  # numpy would convert both to floats
    assert graphs.label_values == (2**53 + 1, 2**63)


def test_mixed_column_keeps_its_types():
    graphs = Graphs.from_tables({**NODES, "kind": [1, "1"]}, EDGES, label="kind", attributes="x")
    assert graphs.label_values == (1, "1")


def test_text_column_with_a_missing_value_raises():
    with pytest.raises(InvalidGraphError, match="nodes: row 1: no value for 'kind'"):
        Graphs.from_tables({**NODES, "kind": ["C", float("nan")]}, EDGES, label="kind", attributes="x")


@pytest.mark.parametrize("targets", [[1, "1"], ["a", b"a"], [2**63, 2**53 + 1], ["a", float("nan")]])
def test_targets_that_numpy_would_change_raise(targets):
    with pytest.raises(InvalidGraphError, match="targets must be all strings, or all numbers that one array can hold"):
        Graphs.from_edges([[(0, 1)]] * 2, targets=targets)


@pytest.mark.parametrize("targets", [[1, 0.5], [True, 0], ["a", "b"], [0.5, float("nan")], [None, "a"]])
def test_valid_targets_are_kept(targets):
    np.testing.assert_equal(Graphs.from_edges([[(0, 1)]] * 2, targets=targets).targets.tolist(), targets)


def test_edge_between_missing_nodes_raises():
    edgeless = Data(1, edge_kind=np.empty(0))
    edgeless["edge_index"] = np.empty((2, 0), np.int64)
    with pytest.raises(InvalidGraphError, match=r"Graph 1: edge \(0, 1\) names a node that does not exist"):
        Graphs.from_pyg([edgeless, Data(1)], edge_label="edge_kind")


def test_irregular_targets_raise():
    igraph = pytest.importorskip("igraph")
    graphs = [igraph.Graph.Ring(3), igraph.Graph.Ring(4)]
    graphs[0]["y"], graphs[1]["y"] = 1, (1, 2)
    with pytest.raises(InvalidGraphError, match="targets must form a regular array"):
        Graphs.from_igraph(graphs, targets="y")


def protein(x="0.000", name="ALA"):
    return f"ATOM      1  CA  {name} A   1    {x:>8}   0.000   0.000  1.00  0.00           C\nEND\n".encode("latin-1")


@pytest.mark.parametrize("content", [protein("nan"), protein(name="\xff\xfeA")])
def test_atoms_with_invalid_coordinates_or_names_raise(tmp_path, content):
    pytest.importorskip("gemmi")
    path = tmp_path / "one.pdb"
    path.write_bytes(protein())
    assert Graphs.from_pdb(path).n_nodes == 1
    path.write_bytes(content)
    with pytest.raises(
        (InvalidGraphError, ValueError), match=r"one.pdb: (a residue or an atom cannot be used|there is no)"
    ):
        Graphs.from_pdb(path)


@pytest.mark.parametrize("change", [lambda text: text[:40], lambda text: text.replace("2", "3", 1), None])
def test_gram_store_with_other_metadata_raises(tmp_path, change):
    pytest.importorskip("zarr")
    gram_to_zarr(WL(), PAIR, tmp_path / "K", chunk=1)
    if change is None:
        (tmp_path / "K" / "zarr.json").unlink()
    else:
        path = tmp_path / "K" / "gram" / "zarr.json"
        before = path.read_text()
        path.write_text(change(before))
        assert path.read_text() != before
        json.loads(before)
    with pytest.raises(StoreError, match=r"K (cannot be read|holds another matrix).*remove"):
        gram_to_zarr(WL(), PAIR, tmp_path / "K", chunk=1)
