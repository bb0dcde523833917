"""Tests of names of graphs, nodes and columns, and of graph attributes: their sources and what keeps them."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import collections
from treegram import (
    WL,
    BinEdgeAttributes,
    CentroidDistance,
    DropAttributes,
    Graphs,
    GraphSVC,
    NeighborMeans,
    ScaleAttributes,
    StatisticsKernel,
    load_model,
    load_parquet,
    save_model,
    save_parquet,
)
from treegram.exceptions import InvalidGraphError
from treegram.graphs.check import column_groups
from treegram.graphs.digest import digest_graphs
from treegram.graphs.fields import fields_to_graphs, graphs_to_fields

NAMED = Graphs.from_edges(
    [[(0, 1), (1, 2)], [], [(0, 1)]],
    n_nodes=[3, 1, 2],
    labels=[["C", "C", "O"], ["N"], ["C", "O"]],
    attributes=[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0]], [[9.0, 10.0], [11.0, 12.0]]],
    edge_attributes=[[[1.5], [2.5]], [], [[3.5]]],
    targets=[0, 1, 0],
    graph_names=["one", "two", "drei 🙂"],
    node_names=[["a", "b", "c"], ["a"], ["x", "y"]],
    attribute_names=["mass", "charge"],
    edge_attribute_names=["length"],
    graph_attributes=[[290.0], [300.0], [310.0]],
    graph_attribute_names=["temperature"],
)
SEARCH = settings(max_examples=25, deadline=None)
NAME_FIELDS = ["graph_names", "node_names", "attribute_names", "edge_attribute_names", "graph_attribute_names"]


def with_names(graphs):
    """Return the graphs with a distinct name and vector for each graph and node."""
    return graphs.assign(
        graph_names=[f"g{i}" for i in range(len(graphs))],
        node_names=[f"v{i}" for i in range(graphs.n_nodes)],
        graph_attributes=np.arange(2.0 * len(graphs)).reshape(-1, 2),
        graph_attribute_names=["even", "odd"],
    )


def test_names_are_read_only_arrays_of_strings_and_tuples():
    assert NAMED.graph_names.tolist() == ["one", "two", "drei 🙂"]
    assert NAMED.node_names.dtype == object
    assert NAMED.attribute_names == ("mass", "charge")
    assert NAMED.graph_attributes.tolist() == [[290.0], [300.0], [310.0]]
    for array in (NAMED.graph_names, NAMED.node_names, NAMED.graph_attributes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


@given(collection=collections(), data=st.data())
@SEARCH
def test_indexing_keeps_names_of_graphs_and_nodes(collection, data):
    graphs = with_names(collection.pack())
    chosen = data.draw(st.lists(st.integers(0, max(len(graphs) - 1, 0)), max_size=6 if len(graphs) else 0))
    some = graphs[chosen]
    assert some.graph_names.tolist() == [f"g{i}" for i in chosen]
    assert some.node_names.tolist() == [
        f"v{v}" for i in chosen for v in range(graphs.offsets[i], graphs.offsets[i + 1])
    ]
    assert some.graph_attributes.tolist() == [[2.0 * i, 2.0 * i + 1] for i in chosen]
    assert some.graph_attribute_names == ("even", "odd")
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=graphs.n_nodes, max_size=graphs.n_nodes)), dtype=bool)
    less = graphs.subgraph(kept)
    assert less.node_names.tolist() == [f"v{v}" for v in np.flatnonzero(kept)]
    assert less.graph_names.tolist() == graphs.graph_names.tolist()


@given(collection=collections(), data=st.data())
@SEARCH
def test_concatenation_inverts_splitting(collection, data):
    graphs = with_names(collection.pack())
    cut = data.draw(st.integers(0, len(graphs)))
    assert graphs[:cut] + graphs[cut:] == graphs
    assert Graphs.concatenate(list(graphs)) == graphs or not len(graphs)


@given(collection=collections())
@SEARCH
def test_pickles_copies_and_fields_keep_names(collection):
    plain = collection.pack()
    graphs = with_names(plain)
    assert pickle.loads(pickle.dumps(graphs)) == copy.deepcopy(graphs) == graphs
    assert fields_to_graphs(graphs_to_fields(graphs)) == graphs
    bare = graphs.assign(graph_attributes=None)
    assert digest_graphs(bare) != digest_graphs(graphs)
    assert bare != plain or not len(plain)


def test_concatenation_keeps_common_names_and_rejects_other_columns():
    assert (NAMED + NAMED).node_names.tolist() == NAMED.node_names.tolist() * 2
    unnamed = NAMED.assign(graph_names=None, attribute_names=None)
    joined = NAMED + unnamed
    assert joined.graph_names is None
    assert joined.attribute_names is None
    assert joined.node_names.tolist() == NAMED.node_names.tolist() * 2
    with pytest.raises(
        InvalidGraphError, match="part 0 has the attributes mass, charge, part 1 has the attributes charge, mass"
    ):
        NAMED + NAMED.assign(attribute_names=["charge", "mass"])
    with pytest.raises(InvalidGraphError, match="part 0 has 1 attribute per graph, part 1 has 0 attributes per graph"):
        NAMED + NAMED.assign(graph_attributes=None)
    empty = Graphs.from_edges([], labels=[], attributes=[], edge_attributes=[])
    assert NAMED + empty == NAMED == empty + NAMED


@pytest.mark.parametrize("name", [*NAME_FIELDS, "graph_attributes"])
def test_names_and_graph_attributes_affect_equality(name):
    other = NAMED.assign(**{name: None})
    assert getattr(other, name) is None
    assert other != NAMED
    assert NAMED.assign(**{name: getattr(NAMED, name)}) != other


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"graph_names": ["a"]}, "graph_names must have one entry for each of the 3 graphs; got 1"),
        ({"graph_names": "abc"}, "graph_names must be a sequence of strings; got str"),
        ({"graph_names": ["a", None, "c"]}, r"graph_names\[1\] must be a string; got None"),
        ({"node_names": ["a"] * 5}, "node_names must have one entry for each of the 6 nodes; got 5"),
        ({"attribute_names": ["a"]}, "attribute_names must have one entry for each of the 2 columns of attributes; got 1"),
        ({"attributes": None, "attribute_names": ["a"]}, "attribute_names is given, but there are no attributes"),
        ({"graph_attributes": [1.0, 2.0]}, r"graph_attributes must have the shape \(3, n_attributes\), one row per graph"),
        (
            {"graph_attributes": [1.0, np.nan, 2.0]},
            r"Graph 1 \('two'\): its graph_attributes are not finite: \[nan\]",
        ),
        (
            {"attributes": [[1.0], [2.0], [np.inf], [1.0], [1.0], [1.0]]},
            r"Graph 0 \('one'\): the attributes of its node 2 \('c'\) are not finite",
        ),
    ],
)  # fmt: skip
def test_invalid_names_raise(data, message):
    with pytest.raises(InvalidGraphError, match=message):
        NAMED.assign(**data)


def test_constructor_errors_name_graphs_and_nodes():
    with pytest.raises(InvalidGraphError, match=r"Graph 1 \('b'\): edge \(0, 7\) names a node that does not exist"):
        Graphs.from_edges([[], [(0, 7)]], n_nodes=[1, 2], graph_names=["a", "b"])
    with pytest.raises(InvalidGraphError, match=r"Graph 0 \('a'\): the numbers of nodes disagree: .* 1 from node_na"):
        Graphs.from_edges([[]], n_nodes=[2], graph_names=["a"], node_names=[["v"]])
    with pytest.raises(InvalidGraphError, match=r"its nodes 1 \('w'\) and 0 \('v'\) is listed more than once"):
        Graphs.from_edges([[(0, 1), (1, 0)]], edge_labels=[[1, 2]], node_names=[["v", "w"]])
    with pytest.raises(InvalidGraphError, match=r"Edge 0 \(0, 1\) joins two graphs, 0 \('a'\) and 1 \('b'\)"):
        Graphs.from_arrays([0, 1, 2], [(0, 1)], graph_names=["a", "b"])
    with pytest.raises(TypeError, match="assign got an unexpected keyword argument 'names'"):
        NAMED.assign(names=["a"])
    changed = {**NAMED.__dict__, "graph_names": ["a", "b"]}
    with pytest.raises(InvalidGraphError, match="graph_names must have one entry for each of the 3 graphs"):
        Graphs(**changed)


def test_integers_become_names_and_a_dataframe_names_its_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": [1, 2, 3], "dose": [0.5, 0.25, 0.0]})
    graphs = NAMED.assign(graph_names=np.array([7, 8, 9]), graph_attributes=table)
    assert graphs.graph_names.tolist() == ["7", "8", "9"]
    assert graphs.graph_attribute_names == ("age", "dose")


@pytest.mark.parametrize(
    ("transformer", "expected"),
    [
        (ScaleAttributes(), ("mass", "charge")),
        (CentroidDistance(), ("distance to centroid",)),
        (NeighborMeans(), ("mass", "charge", "neighbor mean of mass", "neighbor mean of charge")),
        (DropAttributes(), None),
        (BinEdgeAttributes(), ("mass", "charge")),
    ],
)
def test_transformers_name_their_output_columns(transformer, expected):
    changed = transformer.fit_transform(NAMED)
    assert changed.attribute_names == expected
    assert changed.edge_attribute_names == (None if isinstance(transformer, BinEdgeAttributes) else ("length",))
    for name in ("graph_names", "node_names", "graph_attributes"):
        np.testing.assert_array_equal(getattr(changed, name), getattr(NAMED, name))


def test_model_files_keep_names(tmp_path):
    graphs = NAMED + NAMED
    model = GraphSVC(WL(), C=1, cv=2).fit(graphs, [0, 1] * 3)
    save_model(model, tmp_path / "model.tgm")
    assert load_model(tmp_path / "model.tgm").kernel_.graphs_ == graphs.assign(targets=None)


@pytest.mark.parametrize(
    "change",
    [
        lambda lengths, data: (lengths + 1, data),
        lambda lengths, data: (lengths * np.array([-1, 1, 3]), data),
        lambda lengths, data: (lengths[:2], data),
        lambda lengths, data: (np.concatenate([[2**62] * 4, lengths[1:]]), data),  # its sum overflows
        lambda lengths, data: (lengths, data | np.uint64(0x8080808080808080)),
    ],
)
def test_invalid_names_in_a_model_file_raise(change):
    fields = graphs_to_fields(NAMED)
    fields["graph_names"] = change(*fields["graph_names"])
    with pytest.raises((InvalidGraphError, UnicodeDecodeError)):
        fields_to_graphs(fields)


def test_html_shows_escaped_names():
    graphs = NAMED.assign(attribute_names=["mass", "<b>"])
    html = graphs._repr_html_()
    assert "2: mass, &lt;b&gt;" in html
    assert "1: temperature" in html
    assert "<b>" not in html
    assert "1 graph attribute" in repr(graphs)


# -------------------------------------------------------------------- readers


def test_tables_keep_ids_and_column_names():
    nodes = {
        "graph": ["b", "b", "a"],
        "node": [1, 2, 1],
        "x": [0.5, 1.5, 2.5],
        "y": [1.0, 2.0, 3.0],
        "z": [0.0, 0.0, 1.0],
    }
    edges = {"graph": ["b"], "source": [1], "target": [2], "length": [1.25]}
    table = {"graph": ["a", "b"], "age": [30, 40], "class": ["ill", "well"]}
    options = {"attributes": ["x", "y"], "edge_attributes": "length"}
    with pytest.warns(UserWarning, match="not used: 'z'"):
        graphs = Graphs.from_tables(nodes, edges, **options)
    assert graphs.graph_names.tolist() == ["b", "a"]
    assert graphs.node_names.tolist() == ["1", "2", "1"]
    assert graphs.attribute_names == ("x", "y")
    assert graphs.edge_attribute_names == ("length",)
    with pytest.warns(UserWarning, match="not used: 'z'"):
        both = Graphs.from_tables(nodes, edges, table, graph_attributes="age", targets="class", **options)
    assert both.graph_names.tolist() == ["a", "b"]
    assert both.graph_attributes.tolist() == [[30.0], [40.0]]
    assert both.graph_attribute_names == ("age",)
    assert both.targets.tolist() == ["ill", "well"]
    assert both.assign(graph_attributes=None, targets=None) == graphs[[1, 0]]


def test_targets_in_both_tables_are_those_of_the_graphs():
    nodes = {"graph": ["a", "a", "b"], "node": [1, 2, 1], "y": [9, 9, 8]}
    edges = {"graph": ["a"], "source": [1], "target": [2]}
    assert Graphs.from_tables(nodes, edges, targets="y").targets.tolist() == [9, 8]
    with pytest.warns(UserWarning, match="These data of the nodes are not used: 'y'"):
        graphs = Graphs.from_tables(nodes, edges, {"graph": ["b", "a"], "y": [1, 2]}, targets="y")
    assert graphs.targets.tolist() == [1, 2]
    assert graphs.attributes is None  # a target never becomes an attribute


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"graph": ["a", "a"]}, "graphs: row 1 has the graph 'a' of an earlier row"),
        ({"graph": ["b"]}, "nodes: row 0 is of graph 'a', which is not in the graph table"),
        ({"name": ["a"]}, "graph: graphs: no column is called 'graph'; there are 'name'"),
        (None, "graph_attributes are columns of the table of graphs: pass it as graphs"),
    ],
)
def test_invalid_graph_tables_raise(table, message):
    nodes, edges = {"graph": ["a"], "node": [1]}, {"source": [], "target": []}
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_tables(nodes, edges, table, graph_attributes="age")


def test_graph_without_nodes_can_be_in_the_graph_table():
    nodes, edges = {"graph": ["b"], "node": [1]}, {"source": [], "target": []}
    graphs = Graphs.from_tables(nodes, edges, {"graph": ["a", "b"], "y": [0, 1]}, targets="y")
    assert graphs.sizes.tolist() == [0, 1]
    assert graphs.graph_names.tolist() == ["a", "b"]
    assert graphs.targets.tolist() == [0, 1]


def test_networkx_keys_and_names_round_trip():
    networkx = pytest.importorskip("networkx")
    chain = networkx.Graph([("C1", "C2"), ("C2", "O")], name="ethanol")
    networkx.set_node_attributes(chain, {"C1": [0.0, 1.0], "C2": [1.0, 1.0], "O": [2.0, 1.0]}, "place")
    networkx.set_node_attributes(chain, 1.5, "charge")
    graphs = Graphs.from_networkx([chain], attributes=["place", "charge"])
    assert graphs.graph_names.tolist() == ["ethanol"]
    assert graphs.node_names.tolist() == ["C1", "C2", "O"]
    assert graphs.attribute_names == ("place[0]", "place[1]", "charge")
    (back,) = graphs.to_networkx()
    assert back.name == "ethanol"
    assert set(back.edges) == set(chain.edges)
    assert Graphs.from_networkx(back) == graphs.assign(attribute_names=None)
    same = graphs.assign(node_names=["C", "C", "O"]).to_networkx()[0]
    assert list(same.nodes) == [0, 1, 2]
    assert Graphs.from_networkx(networkx.path_graph(3)).node_names is None


def test_igraph_names():
    igraph = pytest.importorskip("igraph")
    ring = igraph.Graph.Ring(3)
    ring["name"], ring.vs["name"] = "ring", ["a", "b", "c"]
    graphs = Graphs.from_igraph([ring])
    assert graphs.graph_names.tolist() == ["ring"]
    assert graphs.node_names.tolist() == ["a", "b", "c"]


def test_pdb_files_name_graphs_and_residues(tmp_path):
    gemmi = pytest.importorskip("gemmi")
    lines = [
        f"ATOM  {i:5d}  CA  {name} A{number:4d}    {3.8 * i:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00           C"
        for i, (name, number) in enumerate([("CYS", 141), ("GLY", 142)])
    ]
    (tmp_path / "1abc.pdb").write_text("\n".join([*lines, "END"]) + "\n")
    graphs = Graphs.from_pdb(tmp_path / "1abc.pdb")
    assert graphs.graph_names.tolist() == ["1abc"]
    assert graphs.node_names.tolist() == ["A/141 CYS", "A/142 GLY"]
    assert graphs.attribute_names[0] == "burial"
    structure = gemmi.read_structure(str(tmp_path / "1abc.pdb"))
    structure.make_mmcif_document().write_file(str(tmp_path / "2xyz.1.cif"))
    assert Graphs.from_pdb([tmp_path / "2xyz.1.cif"], attributes=None).graph_names.tolist() == ["2xyz.1"]


def test_molecules_are_named_by_id_or_smiles(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    from treegram import load_molecules

    assert Graphs.from_smiles(["CCO", "C"]).graph_names.tolist() == ["CCO", "C"]
    with pytest.warns(UserWarning, match="skipped"):
        graphs = Graphs.from_smiles(["CCO", "C1", "C"], on_error="skip", graph_names=["a", "b", "c"])
    assert graphs.graph_names.tolist() == ["a", "c"]
    with pytest.raises(InvalidGraphError, match="graph_names must have one entry for each of the 1 molecules; got 2"):
        Graphs.from_smiles(["CCO"], graph_names=["a", "b"])
    mol = chem.AddHs(chem.MolFromSmiles("OCC"))
    assert Graphs.from_rdkit([mol]).graph_names.tolist() == ["CCO"]
    mol.SetProp("_Name", "ethanol")
    assert Graphs.from_rdkit([mol], attributes=["mass", "coordinates"])[0].attribute_names == (
        "mass",
        "coordinates x",
        "coordinates y",
        "coordinates z",
    )
    assert Graphs.from_rdkit([mol]).graph_names.tolist() == ["ethanol"]
    (tmp_path / "a.csv").write_text("ID,smiles,code,y\nfirst,CCO,X1,1\n,C,X2,2\n")
    assert load_molecules(tmp_path / "a.csv")[0].graph_names.tolist() == ["first", "C"]
    assert load_molecules(tmp_path / "a.csv", name_column="code")[0].graph_names.tolist() == ["X1", "X2"]
    (tmp_path / "b.smi").write_text("CCO ethanol 1\nC methane 2\n")
    assert load_molecules(tmp_path / "b.smi", target="3")[0].graph_names.tolist() == ["ethanol", "methane"]
    with chem.SDWriter(str(tmp_path / "c.sdf")) as writer:
        mol.SetProp("code", "X3")
        writer.write(mol)
    assert load_molecules(tmp_path / "c.sdf")[0].graph_names.tolist() == ["ethanol"]
    assert load_molecules(tmp_path / "c.sdf", name_column="code")[0].graph_names.tolist() == ["X3"]


# -------------------------------------------------------------------- named groups of graph attributes

GROUP_NAMES = st.text(st.characters(exclude_characters=":", codec="utf-8"), min_size=1, max_size=5)


@given(data=st.data())
@SEARCH
def test_groups_keep_their_names_and_columns(data, tmp_path_factory):
    """Selecting, joining, saving and loading keep each group, column by column."""
    n_graphs = data.draw(st.integers(1, 4))
    widths = data.draw(st.dictionaries(GROUP_NAMES, st.integers(1, 3), min_size=1, max_size=3))
    numbers = iter(range(100))
    groups = {
        name: np.array([[float(next(numbers)) for _ in range(width)] for _ in range(n_graphs)])
        for name, width in widths.items()
    }
    graphs = Graphs.from_edges([[(0, 1)]] * n_graphs, graph_attributes=groups)
    assert graphs == Graphs.from_edges([[(0, 1)]] * n_graphs).assign(graph_attributes=groups)
    chosen = data.draw(st.lists(st.integers(0, n_graphs - 1), min_size=1, max_size=4))
    path = tmp_path_factory.mktemp("groups") / "groups.parquet"
    save_parquet(graphs[chosen], path)
    joined = Graphs.concatenate([graphs[[i]] for i in chosen])
    for same in (graphs[chosen], joined, fields_to_graphs(graphs_to_fields(graphs[chosen])), load_parquet(path)[0]):
        columns = column_groups(same.graph_attribute_names, same.graph_attributes.shape[1])
        assert list(columns) == list(groups)
        for name, values in groups.items():
            np.testing.assert_array_equal(same.graph_attributes[:, columns[name]], values[chosen])
            kernel = StatisticsKernel("graph_attributes", group=name)
            alone = StatisticsKernel("graph_attributes").fit_transform(same.assign(graph_attributes=values[chosen]))
            np.testing.assert_array_equal(kernel.fit_transform(same), alone)
    renamed = graphs.assign(graph_attributes={f"{name}!": values for name, values in groups.items()})
    assert digest_graphs(renamed) != digest_graphs(graphs)


def test_columns_of_tables_name_the_columns_of_a_group():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=[7, 3])
    graphs = Graphs.from_edges([[(0, 1)], []], graph_attributes={"measured": table, "one": [5, 6]})
    assert graphs.graph_attribute_names == ("measured: a", "measured: b", "one: 0")
    assert graphs.graph_attributes.tolist() == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"": [1, 2]}, "the name of a group must be a text without ': '; got ''"),
        ({"a: b": [1, 2]}, "the name of a group must be a text without ': '; got 'a: b'"),
        ({3: [1, 2]}, "the name of a group must be a text without ': '; got 3"),
        ({"a": [1, 2], "b": [1]}, r"graph_attributes\['b'\] must have the shape \(2, n_attributes\)"),
        ({"a": [1, np.nan]}, r"graph_attributes\['a'\]: the values of graph 1 are not finite"),
    ],
)
def test_groups_that_cannot_be_columns_are_refused(groups, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_edges([[(0, 1)], []], graph_attributes=groups)


def test_names_of_columns_beside_groups_are_refused():
    with pytest.raises(InvalidGraphError, match="graph_attribute_names are for one array"):
        Graphs.from_edges([[]], graph_attributes={"a": [1]}, graph_attribute_names=["x"])


def test_a_group_that_is_missing_is_named_with_those_that_exist():
    graphs = Graphs.from_edges([[(0, 1)], []], graph_attributes={"maccs": [1, 2], "erg": [3, 5]})
    with pytest.raises(InvalidGraphError, match="needs graph attributes of the group 'macs'; did you mean maccs"):
        StatisticsKernel("graph_attributes", group="macs").fit(graphs)
    kernel = StatisticsKernel("graph_attributes", group="erg").fit(graphs)
    with pytest.raises(InvalidGraphError, match="'erg'; these graphs have 'x'"):
        kernel.transform(graphs.assign(graph_attributes={"x": [3, 5]}))
    assert (
        kernel.transform(graphs.assign(graph_attributes={"x": [1, 1], "erg": [3, 5]})).tolist()
        == kernel.transform(graphs).tolist()
    )
