"""Errors in objects of other libraries name the graph, row or column, what was expected, and what was found."""

import numpy as np
import pytest

from treegram import Graphs
from treegram.exceptions import InvalidGraphError
from treegram.graphs.tables import TableGraphs

NODES = {"graph": ["a", "a", "b"], "node": [1, 2, 3], "element": ["C", "O", "C"], "mass": [12.0, 16.0, 12.0]}
EDGES = {"source": [1], "target": [2]}


# -------------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        ({**NODES, "mass": [1.0]}, EDGES, {}, r"nodes: columns must be of one length; got \[1, 3\]"),
        ([1, 2], EDGES, {}, "nodes must be a table of pandas, polars or Arrow, or a dictionary of columns; got list"),
        (
            NODES,
            EDGES,
            {"graph": "molecule"},
            "graph: nodes: no column is called 'molecule'; there are 'graph', 'node', 'element', 'mass'",
        ),
        (NODES, EDGES, {"attributes": "mas"}, "attributes: nodes: no column is called 'mas'; .*did you mean mass"),
        (
            {**NODES, "mass": [1.0, np.nan, 2.0]},
            EDGES,
            {"attributes": "mass"},
            "nodes: row 1: no value for 'mass'",
        ),
        (
            {**NODES, "element": ["C", None, "C"]},
            EDGES,
            {"label": "element"},
            "nodes: row 1: no value for 'element'",
        ),
        (
            {**NODES, "element": np.array(["2020", "NaT", "2021"], "M8[Y]")},
            EDGES,
            {"label": "element"},
            "nodes: row 1: no value for 'element'",
        ),
        (
            {**NODES, "node": [1, 2, 1]},
            EDGES,
            {},
            "nodes: row 2 and nodes: row 0 have the same node 1. Edges need a column",
        ),
        (
            {**NODES, "node": [1, 1, 1]},
            {**EDGES, "graph": ["a"]},
            {},
            "nodes: row 1 and nodes: row 0 have the same node 1 of graph 'a'.$",
        ),
        (NODES, {"source": [1], "target": [9]}, {}, "edges: row 0 has target 9, which is not in the node table"),
        (
            NODES,
            {"source": [3], "target": [3], "graph": ["a"]},
            {},
            "edges: row 0 has source 3 of graph 'a', which is not in the node table",
        ),
        (
            NODES,
            EDGES,
            {"targets": "mass"},
            "'mass' must have one value per graph; graph 'a' has 12 and, in nodes: row 1, 16",
        ),
    ],
)
def test_invalid_tables_raise(nodes, edges, options, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_tables(nodes, edges, **options)


@pytest.mark.filterwarnings("ignore::UserWarning")  # about unused columns
def test_attribute_columns_can_hold_lists_or_be_empty():
    nodes = {**NODES, "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}
    vectors = np.empty(3, dtype=object)
    vectors[:] = nodes["vector"]
    graphs = Graphs.from_tables({**nodes, "vector": vectors}, EDGES, attributes="vector", targets=[0, 1])
    np.testing.assert_array_equal(graphs.attributes, nodes["vector"])
    assert graphs.targets.tolist() == [0, 1]
    assert Graphs.from_tables(nodes, EDGES, attributes=[]).n_attributes == 0


# -------------------------------------------------------------------- GraKeL's tuples, igraph


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (({(0, 1): 1},), {"node_data": "vectors"}, "node_data must be one of 'labels', 'attributes'; got 'vectors'"),
        ({(0, 1): 1}, {}, "Graph 0: expected a tuple .*; got dict"),
        ((5,), {}, "Graph 0: expected a dictionary or list of edges, or an adjacency matrix; got int"),
        (([["a"], ["b"]],), {}, "Graph 0: expected a dictionary or list of edges, or an adjacency matrix; got list"),
    ],
)
def test_invalid_grakel_tuples_raise(graph, options, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_grakel([graph], **options)


def test_invalid_igraph_graphs_raise():
    igraph = pytest.importorskip("igraph")
    with pytest.raises(InvalidGraphError, match="Graph 0: expected an igraph graph; got list"):
        Graphs.from_igraph([[(0, 1)]])
    with pytest.raises(InvalidGraphError, match="Graph 1 and graph 0 differ: one is directed and one is not"):
        Graphs.from_igraph([igraph.Graph([(0, 1)]), igraph.Graph([(0, 1)], directed=True)])


@pytest.mark.parametrize(
    ("argument", "place"), [("attributes", "node 0"), ("label", "node 0"), ("edge_attributes", r"edge \(0, 1\)")]
)
def test_a_column_that_one_graph_lacks_is_missing_there(argument, place):
    """Not 0, and not the values of the next graph."""
    igraph = pytest.importorskip("igraph")
    made = [igraph.Graph([(0, 1)], vertex_attrs={"x": [1, 2]}, edge_attrs={"x": [3]}) for _ in range(3)]
    made[1] = igraph.Graph([(0, 1)])
    with pytest.raises(InvalidGraphError, match=f"^Graph 1: {place}: no value for 'x'"):
        Graphs.from_igraph(made, **{argument: "x"})


# -------------------------------------------------------------------- PyTorch Geometric


class Tensor:
    """The used part of a torch tensor: torch itself may not be installed."""

    def __init__(self, values, dtype=None):
        self.values = np.array(values, dtype)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Data:
    """The used part of a torch_geometric Data object."""

    def __init__(self, num_nodes=3, **content):
        self.content, self.num_nodes = content, num_nodes

    def keys(self):
        return list(self.content)

    def __getitem__(self, key):
        return self.content[key]

    def __getattr__(self, name):
        try:
            return self.__dict__["content"][name]
        except KeyError:
            raise AttributeError(name) from None


class Batch:
    def __init__(self, items):
        self.items = items

    def to_data_list(self):
        return self.items


class DataSet:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]

    def get(self, i):
        return self.items[i]

    def indices(self):
        return range(len(self.items))


CHAIN = Tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def chain(**content):
    return Data(edge_index=CHAIN, **content)


@pytest.mark.parametrize("wrap", [list, Batch, DataSet], ids=["list", "batch", "data set"])
def test_pyg_objects_are_read(wrap):
    items = [
        chain(
            x=Tensor([[1.0], [2.0], [3.0]]),
            z=Tensor([6, 6, 8]),
            edge_kind=Tensor([1, 1, 2, 2]),
            y=Tensor([y]),
            note=None,
        )
        for y in (0, 1)
    ]
    graphs = Graphs.from_pyg(wrap(items), "z", edge_label="edge_kind")
    assert graphs.n_edges == 4
    assert graphs.label_values == (6, 8)
    assert graphs.edge_label_values == (1, 2)
    np.testing.assert_array_equal(graphs.attributes.ravel(), [1, 2, 3] * 2)
    assert graphs.targets.tolist() == [0, 1]
    assert len(Graphs.from_pyg(items[0], "z", edge_label="edge_kind")) == 1


def test_columns_of_pyg_features_can_become_labels():
    rows = Tensor([[0.5, 1.0, 0.0], [1.5, 0.0, 1.0], [2.5, 0.0, 1.0]])
    graphs = Graphs.from_pyg(chain(x=rows, y=Tensor([[0.1, 0.2]])))
    graphs = graphs.assign(labels=graphs.attributes[:, 1:].argmax(axis=1), attributes=graphs.attributes[:, :1])
    assert graphs.labels.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(graphs.attributes.ravel(), [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(graphs.targets, [[0.1, 0.2]])


@pytest.mark.filterwarnings("ignore::UserWarning")  # about unused data
@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (5, {}, "data must be Data objects of PyTorch Geometric; got int"),
        ([5], {}, "Graph 0: expected a Data object with one kind of nodes; got int"),
        ([Data(x=Tensor([[1.0]] * 3))], {}, "Graph 0: there is no 'edge_index'; it has 'x'"),
        ([Data(-1, edge_index=CHAIN)], {}, "Graph 0: num_nodes must be a whole number, at least 0 .*; got -1"),
        ([Data(edge_index=Tensor([0, 1]))], {}, r"edge_index must be whole numbers of shape \(2, n_edges\); .* \(2,\)"),
        ([Data(edge_index=Tensor([[0.5], [1.0]]))], {}, "edge_index must be whole numbers .* got dtype float64"),
        ([chain(z=Tensor([1]))], {"label": "z"}, r"Graph 0: 'z' must have one row for each of its 3 nodes; .* \(1,\)"),
        ([chain(edge_kind=Tensor([1]))], {"edge_label": "edge_kind"}, "must have one row for each of its 4 edges"),
        ([chain(y=Tensor([[1], [2]]))], {}, r"targets: 'y' of graph 0 has the shape \(2, 1\); expected one entry"),
    ],
)
def test_invalid_pyg_objects_raise(data, options, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_pyg(data, **options)


@pytest.mark.parametrize("tables", [[], {"nodes": {}}, {"nodes": {}, "edges": {}, "graph": {}}])
def test_a_model_of_tables_wants_them_by_name(tables):
    with pytest.raises(
        InvalidGraphError, match=r"X must be a dict of tables, \{'nodes': \.\.\., 'edges': \.\.\.\}, and 'graphs'"
    ):
        TableGraphs().transform(tables)
