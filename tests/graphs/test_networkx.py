import subprocess
import sys

import numpy as np
import pytest

import treegram
from treegram import ODDCL, Graphs
from treegram.exceptions import InvalidGraphError
from treegram.graphs import as_graphs

networkx = pytest.importorskip("networkx")
UNUSED = pytest.mark.filterwarnings("ignore:These data of the nodes are not used")  # not the subject of these tests


def molecule(kind=networkx.Graph):
    graph = kind()
    graph.add_node("a", label="C", attributes=[0.0, 1.0], charge=0.5, x=1)
    graph.add_node("b", label="O", attributes=[2.0, 3.0], charge=1.5, x=2)
    graph.add_node("c", label="C", attributes=[4.0, 5.0], charge=2.5, x=3)
    graph.add_edge("c", "a", bond=1)
    graph.add_edge("a", "b", bond=2)
    return graph


@UNUSED
def test_nodes_keep_their_order_labels_and_attributes():
    assert Graphs.from_networkx([molecule()], targets=["good"]) == Graphs.from_edges(
        [[(0, 2), (0, 1)]],
        labels=[["C", "O", "C"]],
        attributes=[[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]],
        targets=["good"],
        node_names=[["a", "b", "c"]],
    )


@UNUSED
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("charge", [[0.5], [1.5], [2.5]]),
        (["charge"], [[0.5], [1.5], [2.5]]),
        (["x", "charge"], [[1.0, 0.5], [2.0, 1.5], [3.0, 2.5]]),
    ],
)
def test_attributes_come_from_one_or_several_keys(names, expected):
    assert Graphs.from_networkx([molecule()], attributes=names).attributes.tolist() == expected


@UNUSED
def test_labels_come_from_any_key():
    assert Graphs.from_networkx([molecule()], label="x").label_values == (1, 2, 3)


@UNUSED
def test_none_disables_labels_and_attributes():
    graphs = Graphs.from_networkx([molecule()], label=None, attributes=None)
    assert graphs.labels is None
    assert graphs.attributes is None


def test_default_keys_may_be_missing():
    graphs = Graphs.from_networkx([networkx.path_graph(3)])
    assert graphs.labels is None
    assert graphs.attributes is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"label": "lable"},
            r"label: nodes: no attribute is called 'lable'; there are .*'attributes'.*; did you mean label\?",
        ),
        ({"attributes": "charges"}, r"attributes: nodes: no attribute is called 'charges'; .* did you mean charge\?"),
        (
            {"attributes": ["x", "charges"]},
            r"attributes: nodes: no attribute is called 'charges'; .* did you mean charge\?",
        ),
        (
            {"label": "zzz"},
            r"label: nodes: no attribute is called 'zzz'; there are 'label', 'attributes', 'charge', 'x'\.$",
        ),
    ],
)
def test_given_key_must_exist(arguments, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_networkx([molecule()], **arguments)
    assert len(Graphs.from_networkx([networkx.Graph()], **arguments)) == 1  # no node could have it


def test_nodes_without_data_raise():
    with pytest.raises(InvalidGraphError, match="nodes: no attribute is called 'element'; there are none"):
        Graphs.from_networkx([networkx.path_graph(2)], label="element")


@pytest.mark.parametrize(
    "make", [lambda graphs: Graphs.from_networkx(graphs), as_graphs, lambda graphs: ODDCL(depth=1).fit(graphs)]
)
def test_unused_data_warns_once(make):
    with pytest.warns(UserWarning, match="These data of the nodes are not used: 'charge', 'x'[.]") as told:
        make([molecule(), molecule()])
    assert len(told) == 1


def test_no_warning_if_all_data_is_used():
    graph = molecule()
    for node in graph:
        del graph.nodes[node]["attributes"]
    assert Graphs.from_networkx([graph], attributes=["charge", "x"], edge_label="bond").n_attributes == 2


@UNUSED
def test_edge_labels_are_read_if_requested():
    graphs = Graphs.from_networkx([molecule()], edge_label="bond")
    assert graphs.edges().tolist() == [[0, 1], [0, 2]]
    assert [graphs.edge_label_values[code] for code in graphs.edge_labels] == [2, 1, 2, 1]
    assert Graphs.from_networkx([molecule()]).edge_labels is None


@UNUSED
def test_directed_graphs_stay_directed():
    graphs = Graphs.from_networkx([molecule(networkx.DiGraph)])
    assert graphs.directed
    assert graphs.edges().tolist() == [[0, 1], [2, 0]]


def test_parallel_edges_count_once():
    graph = networkx.MultiGraph([(0, 1), (0, 1), (1, 1)])
    assert Graphs.from_networkx([graph]).edges().tolist() == [[0, 1]]


@pytest.mark.parametrize("graphs", [[], [networkx.Graph()], [networkx.empty_graph(2)]])
def test_graphs_without_nodes_or_edges_are_valid(graphs):
    made = Graphs.from_networkx(graphs)
    assert (len(made), made.n_nodes, made.n_edges) == (len(graphs), sum(map(len, graphs)), 0)


@UNUSED
def test_empty_graph_between_others_is_valid():
    graphs = Graphs.from_networkx([molecule(), networkx.Graph(), molecule()])
    assert graphs.sizes.tolist() == [3, 0, 3]
    assert graphs.n_attributes == 2


@UNUSED
def test_list_of_networkx_graphs_is_accepted():
    assert as_graphs([molecule(), molecule()]) == Graphs.from_networkx([molecule(), molecule()])


def without(node, name):
    graph = molecule()
    del graph.nodes[node][name]
    return graph


def vector_at_b(value):
    graph = molecule()
    graph.nodes["b"]["attributes"] = value
    return graph


@UNUSED
@pytest.mark.parametrize(
    ("graphs", "arguments", "message"),
    [
        ([molecule(), "C"], {}, "Graph 1: expected a networkx graph; got str"),
        (3, {}, "Graph 0: expected a networkx graph; got int"),
        ([molecule(), molecule(networkx.DiGraph)], {}, "Graph 1 and graph 0 differ: one is directed .* to_undirected"),
        (
            [molecule(), without("b", "label")],
            {},
            r"Graph 1: node 1 \('b'\): no value for 'label'",
        ),
        ([without("c", "attributes")], {}, r"Graph 0: node 2 \('c'\): no value for 'attributes'"),
        ([molecule()], {"attributes": ["x", "y"]}, "attributes: nodes: no attribute is called 'y'"),
        ([molecule()], {"edge_label": "color"}, "edge_label: edges: no attribute is called 'color'; there are 'bond'"),
        (
            [vector_at_b([1.0])],
            {},
            r"Graph 0: node 1 \('b'\): expected vectors of numbers, all of one length, .* got \[1.0\]",
        ),
        ([vector_at_b([1.0, np.nan])], {}, "Graph 0: the attributes of its node 1 .'b'. are not finite"),
        (
            [vector_at_b("ab")],
            {},
            r"Graph 0: node 1 \('b'\): expected vectors of numbers, all of one length, .* got 'ab'",
        ),
        ([molecule()], {"targets": [1, 2]}, "targets must have one entry per graph"),
    ],
)
def test_invalid_graphs_raise(graphs, arguments, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_networkx(graphs, **arguments)


def test_networkx_is_imported_only_when_used():
    code = "import sys, treegram; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, treegram.__file__


def test_keys_of_data_that_are_no_text_are_listed_too():
    graph = networkx.path_graph(2)
    graph.nodes[0][7] = "seven"
    with pytest.warns(UserWarning, match="These data of the nodes are not used: '7'"):
        assert as_graphs([graph]).n_nodes == 2
