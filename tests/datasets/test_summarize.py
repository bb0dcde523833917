import json

import networkx as nx
import numpy as np
import pytest

from treegram import Graphs, summarize_graphs
from treegram.exceptions import InvalidGraphError


@pytest.fixture
def graphs():
    return Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C", "O"], ["C", "C", "C"]], targets=["a", "b"])


def test_summary_is_json_serializable(graphs):
    found = summarize_graphs(graphs)
    assert json.loads(json.dumps(found)) == found
    assert found["nodes"] == {"total": 5, "mean": 2.5, "min": 2, "max": 3}
    assert found["node_labels"] == [{"value": "C", "count": 4}, {"value": "O", "count": 1}]
    assert found["shape"]["distinct_structures"] == 2


def test_targets_default_to_those_of_the_graphs(graphs):
    assert [one["value"] for one in summarize_graphs(graphs)["targets"]["classes"]] == ["a", "b"]
    assert summarize_graphs(graphs, [0.5, 1.5])["targets"]["kind"] == "numbers"


def test_any_list_of_graphs_is_accepted():
    assert summarize_graphs([nx.path_graph(2), nx.path_graph(3)])["n_graphs"] == 2


@pytest.mark.parametrize("y", [[1], 1, np.zeros((3, 2))])
def test_targets_of_wrong_length_raise(graphs, y):
    with pytest.raises(InvalidGraphError, match="y must have one entry per graph: 2 graphs, got an array of shape"):
        summarize_graphs(graphs, y)


def chains(n_columns, n_graphs=20):
    """Return chains of 40 nodes with steps of about 1.4 in any direction."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(n_graphs, 40, n_columns))
    steps *= rng.uniform(1.2, 1.5, size=(n_graphs, 40, 1)) / np.linalg.norm(steps, axis=2, keepdims=True)
    return Graphs.from_edges([[(i, i + 1) for i in range(39)]] * n_graphs, attributes=list(steps.cumsum(axis=1)))


def test_coordinates_are_noticed():
    coordinates = chains(3)
    assert any("look like coordinates" in sentence for sentence in summarize_graphs(coordinates)["warnings"])
    shuffled = np.random.default_rng(1).permutation(np.asarray(coordinates.attributes))
    for graphs in (
        chains(2),
        coordinates.assign(attributes=shuffled),
        coordinates.assign(attributes=np.random.default_rng(0).normal(size=shuffled.shape)),
        Graphs.from_edges([[]], attributes=[np.zeros((1, 3))]),
        Graphs.from_edges([[(0, 1)]], attributes=[np.zeros((2, 3))]),
    ):
        assert not any("look like coordinates" in sentence for sentence in summarize_graphs(graphs)["warnings"])
