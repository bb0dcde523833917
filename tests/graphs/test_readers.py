"""Every reader gives the same graphs and the same Gram matrix, with objects made by the real libraries.

The PyTorch Geometric readers are skipped if torch is not installed, as in ``make test``; see CONTRIBUTING.md.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from treegram import ODDCL, WL, BinEdgeAttributes, Graphs
from treegram.exceptions import InvalidGraphError
from treegram.graphs import as_graphs

EDGES = [[(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)], [(0, 1), (2, 1)], []]
N_NODES = [4, 4, 1]
LABELS = [[0, 1, 1, 2], [1, 1, 0, 0], [2]]
VECTORS = [
    [[0.5, 1.0], [1.5, 0.0], [0.25, -1.0], [2.0, 2.0]],
    [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [3.0, 1.0]],
    [[9.0, 9.0]],
]
EDGE_LABELS = [[1, 2, 1, 1, 3], [2, 2], []]
LENGTHS = [[0.5, 1.5, 2.5, 0.75, 1.25], [3.5, 0.1], []]
TARGETS = [0, 1, 1]
EXPECTED = Graphs.from_edges(
    EDGES,
    n_nodes=N_NODES,
    labels=LABELS,
    attributes=VECTORS,
    edge_labels=EDGE_LABELS,
    edge_attributes=LENGTHS,
    targets=TARGETS,
)


def unnamed(graphs):
    """Return the same graphs without names."""
    return graphs.assign(graph_names=None, node_names=None, attribute_names=None, edge_attribute_names=None)


def both_ways(edges, data):
    return [*edges, *((b, a) for a, b in edges)], [*data, *data]


def networkx():
    nx = pytest.importorskip("networkx")
    made = []
    for edges, labels, vectors, kinds, lengths, y in zip(
        EDGES, LABELS, VECTORS, EDGE_LABELS, LENGTHS, TARGETS, strict=True
    ):
        graph = nx.Graph(y=y)
        for v, (label, vector) in enumerate(zip(labels, vectors, strict=True)):
            graph.add_node(f"node {v}", kind=label, x=vector[0], y=vector[1])
        for (a, b), kind, length in zip(edges, kinds, lengths, strict=True):
            graph.add_edge(f"node {a}", f"node {b}", kind=kind, length=length)
        made.append(graph)
    return Graphs.from_networkx(made, "kind", ["x", "y"], edge_label="kind", edge_attributes="length", targets="y")


def networkx_and_back():
    pytest.importorskip("networkx")
    return Graphs.from_networkx(
        EXPECTED.to_networkx(), edge_label="label", edge_attributes="attributes", targets="target"
    )


def igraph():
    ig = pytest.importorskip("igraph")
    made = []
    for edges, labels, vectors, kinds, lengths, y in zip(
        EDGES, LABELS, VECTORS, EDGE_LABELS, LENGTHS, TARGETS, strict=True
    ):
        graph = ig.Graph(n=len(labels), edges=edges)
        graph["y"] = y
        graph.vs["kind"], graph.vs["place"] = labels, vectors
        graph.es["kind"], graph.es["length"] = kinds, lengths
        made.append(graph)
    return Graphs.from_igraph(made, "kind", "place", edge_label="kind", edge_attributes="length", targets="y")


def data_objects():
    torch = pytest.importorskip("torch")
    Data = pytest.importorskip("torch_geometric.data").Data
    for edges, labels, vectors, kinds, lengths, y in zip(
        EDGES, LABELS, VECTORS, EDGE_LABELS, LENGTHS, TARGETS, strict=True
    ):
        pairs, kinds = both_ways(edges, kinds)
        yield Data(
            x=torch.tensor(vectors),
            z=torch.tensor(labels),
            edge_index=torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T,
            edge_attr=torch.tensor(lengths * 2, dtype=torch.double).reshape(-1, 1),
            edge_kind=torch.tensor(kinds, dtype=torch.long),
            y=torch.tensor([y]),
        )


def pyg():
    return Graphs.from_pyg(data_objects(), "z", edge_label="edge_kind")


def pyg_batch():
    Batch = pytest.importorskip("torch_geometric.data").Batch
    return Graphs.from_pyg(Batch.from_data_list(list(data_objects())), "z", edge_label="edge_kind")


def pyg_data_set():
    InMemoryDataset: Any = pytest.importorskip("torch_geometric.data").InMemoryDataset

    class Three(InMemoryDataset):
        def __init__(self):
            super().__init__(None)
            self.data, self.slices = self.collate(list(data_objects()))

    return Graphs.from_pyg(Three(), "z", edge_label="edge_kind")


def pyg_subset():
    """Return a part of a list like ``torch.utils.data.random_split``, with a length and indices but no iterator."""
    Subset = pytest.importorskip("torch.utils.data").Subset
    data = [None, *data_objects(), None]
    return Graphs.from_pyg(Subset(data, [1, 2, 3]), "z", edge_label="edge_kind")


def pyg_loader():
    loader = pytest.importorskip("torch_geometric.loader").DataLoader(list(data_objects()), batch_size=2)
    return Graphs.from_pyg(loader, "z", edge_label="edge_kind")


def columns():
    nodes = [(f"g{g}", v, LABELS[g][v], *VECTORS[g][v], TARGETS[g]) for g in range(3) for v in range(N_NODES[g])]
    edges = [
        (f"g{g}", a, b, kind, length)
        for g in range(3)
        for (a, b), kind, length in zip(EDGES[g], EDGE_LABELS[g], LENGTHS[g], strict=True)
    ]
    return (
        {
            name: list(column)
            for name, column in zip(["graph", "node", "kind", "x", "y", "class"], zip(*nodes, strict=True), strict=True)
        },
        {
            name: list(column)
            for name, column in zip(
                ["graph", "source", "target", "bond", "length"], zip(*edges, strict=True), strict=True
            )
        },
    )


def tables(make):
    nodes, edges = map(make, columns())
    return Graphs.from_tables(
        nodes, edges, label="kind", attributes=["x", "y"], edge_label="bond", edge_attributes="length", targets="class"
    )


def dictionaries():
    return tables(dict)


def pandas():
    return tables(pytest.importorskip("pandas").DataFrame)


def polars():
    return tables(pytest.importorskip("polars").DataFrame)


def arrow():
    return tables(pytest.importorskip("pyarrow").table)


def grakel_tuples():
    """Add the attributes in a second step, because GraKeL cannot hold labels and attributes at once."""
    made = []
    for edges, labels, kinds in zip(EDGES, LABELS, EDGE_LABELS, strict=True):
        pairs, both = both_ways(edges, kinds)
        made.append((set(pairs), dict(enumerate(labels)), dict(zip(pairs, both, strict=True))))
    return made


READERS = [
    networkx,
    networkx_and_back,
    igraph,
    pyg,
    pyg_batch,
    pyg_data_set,
    pyg_subset,
    pyg_loader,
    dictionaries,
    pandas,
    polars,
    arrow,
]


def gram(graphs):
    graphs = BinEdgeAttributes(3).fit_transform(graphs) if graphs.edge_attributes is not None else graphs
    use = graphs.edge_labels is not None
    return ODDCL(depth=2, use_edge_labels=use).fit_transform(graphs)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_gives_the_same_graphs_and_gram_matrix(reader):
    graphs = reader()
    assert unnamed(graphs) == EXPECTED
    np.testing.assert_array_equal(gram(graphs), gram(EXPECTED))


def without(graphs, *names):
    values = {name.replace("labels", "label_values"): () for name in names if name.endswith("labels")}
    return Graphs(**{**graphs.__dict__, **dict.fromkeys(names), **values})


GRAKEL = without(EXPECTED, "attributes", "edge_attributes", "targets")


def nested(edges, n):
    found = {v: {} for v in range(n)}
    for a, b in both_ways(edges, [])[0]:
        found[a][b] = 1
    return found


def dense(edges, n):
    matrix = np.zeros((n, n))
    for a, b in both_ways(edges, [])[0]:
        matrix[a, b] = 1
    return matrix


@pytest.mark.parametrize(
    "edges_of",
    [
        lambda edges, n: set(both_ways(edges, [])[0]),
        lambda edges, n: both_ways(edges, [])[0],
        lambda edges, n: [(a, b, 1.0) for a, b in both_ways(edges, [])[0]],
        lambda edges, n: dict.fromkeys(both_ways(edges, [])[0], 1.0),
        nested,
        lambda edges, n: {v: list(ends) for v, ends in nested(edges, n).items()},
        dense,
        lambda edges, n: dense(edges, n).tolist(),
        lambda edges, n: sp.csr_matrix(dense(edges, n)),
    ],
)
def test_every_grakel_input_gives_the_same_gram_matrix(edges_of):
    items = [
        (edges_of(edges, n), labels, kinds)
        for edges, n, (_, labels, kinds) in zip(EDGES, N_NODES, grakel_tuples(), strict=True)
    ]
    graphs = Graphs.from_grakel(items)
    assert graphs == GRAKEL
    np.testing.assert_array_equal(gram(graphs), gram(GRAKEL))


def test_grakel_accepts_the_same_tuples_and_its_graphs_can_be_read():
    grakel = pytest.importorskip("grakel")
    items = [
        (nested(edges, n), dict(enumerate(labels))) for edges, n, labels in zip(EDGES, N_NODES, LABELS, strict=True)
    ]
    plain = without(GRAKEL, "edge_labels")
    K = grakel.WeisfeilerLehman(n_iter=1, normalize=True).fit_transform(items)
    assert K.shape == (3, 3)
    made = Graphs.from_grakel([grakel.Graph(*item) for item in items])
    assert made == Graphs.from_grakel(items) == plain


def test_grakel_attributes_are_read():
    items = [
        (dense(edges, n), dict(enumerate(vectors))) for edges, n, vectors in zip(EDGES, N_NODES, VECTORS, strict=True)
    ]
    expected = without(EXPECTED, "labels", "edge_labels", "edge_attributes", "targets")
    assert Graphs.from_grakel(items, node_data="attributes") == expected


def test_single_graph_needs_no_list():
    nx, ig = pytest.importorskip("networkx"), pytest.importorskip("igraph")
    path = Graphs.from_edges([[(0, 1), (1, 2)]])
    assert Graphs.from_networkx(nx.path_graph(3)) == path
    assert Graphs.from_igraph(ig.Graph(edges=[(0, 1), (1, 2)])) == path


def test_text_in_numeric_columns_raises_and_names_the_column():
    nodes = {"graph": ["a", "a"], "node": [0, 1], "kind": ["C", "O"]}
    edges = {"graph": ["a"], "source": [0], "target": [1]}
    with pytest.raises(InvalidGraphError, match=r"^nodes: row 0: expected numbers in the column 'kind'; got 'C'"):
        Graphs.from_tables(nodes, edges, attributes="kind")
    with pytest.raises(InvalidGraphError, match=r"graph 'a' has 0.5 and, in nodes: row 1, 1.5\.$"):
        Graphs.from_tables(nodes | {"y": [0.5, 1.5]}, edges, label="kind", targets="y")
    with pytest.raises(InvalidGraphError, match=r"could not convert string to float: 'C'"):
        Graphs.from_edges([[(0, 1)]], attributes=[["C", "O"]])


@pytest.mark.parametrize("reader", [networkx, igraph, pyg, dictionaries])
def test_unknown_names_raise_and_list_the_known_ones(reader, monkeypatch):
    """For every source, each argument that takes a name rejects one that does not exist."""
    method = {"networkx": "networkx", "igraph": "igraph", "pyg": "pyg", "dictionaries": "tables"}[reader.__name__]
    real = getattr(Graphs, f"from_{method}")
    for argument in ("label", "attributes", "edge_label", "edge_attributes", "targets"):

        def misspelled(*args, argument=argument, **options):
            args = args[: 2 if method == "tables" else 1]
            return real(*args, **{**options, argument: "knid"})

        monkeypatch.setattr(Graphs, f"from_{method}", misspelled)
        with pytest.raises(InvalidGraphError, match=rf"^{argument}: .*'knid'; there are '.*"):
            reader()


@pytest.mark.parametrize("reader", [networkx, igraph, pyg])
def test_unused_data_is_listed_in_one_warning(reader, monkeypatch):
    method = reader.__name__
    real = getattr(Graphs, f"from_{method}")
    monkeypatch.setattr(Graphs, f"from_{method}", lambda *given, **options: real(given[0]))
    with pytest.warns(
        UserWarning, match=r"data of the nodes are not used: '.*data of the edges are not used: '"
    ) as caught:
        reader()
    assert len(caught) == 1


def test_tables_give_the_column_label_and_all_numbers_by_default():
    """As on the command line; columns of text that are not used are listed in one warning."""
    nodes, edges = columns()
    nodes |= {"Label": [f"kind {kind}" for kind in nodes["kind"]], "note": ["text"] * len(nodes["kind"])}
    with pytest.warns(UserWarning, match=r"^These data of the nodes are not used: 'note'\. The arg") as caught:
        graphs = Graphs.from_tables(nodes, edges, targets="class")
    assert len(caught) == 1
    assert graphs.label_values == ("kind 0", "kind 1", "kind 2")
    assert (graphs.attribute_names, graphs.edge_attribute_names) == (("kind", "x", "y"), ("bond", "length"))
    np.testing.assert_array_equal(graphs.attributes[:, 1:], EXPECTED.attributes)
    with pytest.warns(UserWarning, match=r"not used: 'Label', 'kind', 'note', 'x', 'y'\..*not used: 'bond', 'length'"):
        plain = Graphs.from_tables(nodes, edges, label=None, attributes=None, edge_attributes=False, targets="class")
    assert plain.labels is plain.attributes is plain.edge_attributes is None
    named = Graphs.from_tables(dict(nodes, Label=nodes["kind"], note=nodes["x"]), edges, graph_names=["a", "b", "c"])
    assert named.graph_names.tolist() == ["a", "b", "c"]


# -------------------------------------------------------------------- lists of other libraries' graphs as X


def grakel_items():
    return [({(0, 1): 1, (1, 0): 1}, {0: "C", 1: "O"}), ({(0, 1): 1, (1, 0): 1}, {0: "C", 1: "C"})]


class Tensors(dict):
    """What treegram needs of a Data object of PyTorch Geometric."""

    num_nodes = 2
    edge_index = property(lambda self: self["edge_index"])


def list_of(library):
    if library == "grakel":
        return grakel_items()
    if library == "grakel.Graph":
        grakel = pytest.importorskip("grakel")
        return [grakel.Graph(*item) for item in grakel_items()]
    if library == "rdkit":
        chem = pytest.importorskip("rdkit.Chem")
        return [chem.MolFromSmiles("CO"), chem.MolFromSmiles("CC")]
    if library == "pyg":
        pairs = np.array([[0, 1], [1, 0]])
        return [
            Tensors(edge_index=pairs, x=np.eye(2), y=np.zeros((2, 3, 4))),
            Tensors(edge_index=pairs, x=np.ones((2, 2))),
        ]
    made = Graphs.from_edges([[(0, 1)], [(0, 1)]], labels=[["C", "O"], ["C", "C"]])
    if library == "networkx":
        pytest.importorskip("networkx")
        return made.to_networkx()
    ig = pytest.importorskip("igraph")
    return [ig.Graph(2, [(0, 1)], vertex_attrs={"label": ["C", last]}) for last in "OC"]


CONSTRUCTORS = {
    "networkx": Graphs.from_networkx,
    "igraph": Graphs.from_igraph,
    "grakel": Graphs.from_grakel,
    "grakel.Graph": Graphs.from_grakel,
    "rdkit": Graphs.from_rdkit,
    "pyg": lambda items: Graphs.from_pyg(items, targets=None),
}


@pytest.mark.parametrize("library", CONSTRUCTORS)
def test_lists_of_other_libraries_graphs_are_taken_as_they_are(library):
    items = list_of(library)
    rows = np.empty((len(items), 1), dtype=object)
    rows[:, 0] = items
    expected = CONSTRUCTORS[library](items)
    for X in (items, tuple(items), rows, iter(items)):
        assert as_graphs(X) == expected
    kernel = ODDCL(depth=1) if library == "pyg" else WL(1)
    np.testing.assert_array_equal(kernel.fit_transform(items), kernel.fit_transform(expected))


def test_single_graphs_are_refused():
    for library in ("networkx", "igraph", "rdkit"):
        with pytest.raises(InvalidGraphError, match="here, use a list of graphs that are all of one kind"):
            as_graphs(list_of(library)[0])


def test_graphs_of_grakel_without_labels_and_invalid_molecules_are_recognized():
    assert as_graphs([({(0, 1): 1},), ({(0, 1): 1, (1, 2): 1},)]).sizes.tolist() == [2, 3]
    chem = pytest.importorskip("rdkit.Chem")
    with pytest.raises(InvalidGraphError, match=r"^Molecule 1 .*got None.*on_error='skip'"):
        as_graphs([chem.MolFromSmiles("C"), None])


def test_data_sets_and_batches_are_taken_as_they_are():
    class Batch:
        def to_data_list(self):
            return list_of("pyg")

    class DataSet:  # no iterable, and without a number of nodes
        edge_index = np.zeros((2, 0))

        def __len__(self):
            return 2

        def __getitem__(self, i):
            return list_of("pyg")[i]

    expected = CONSTRUCTORS["pyg"](list_of("pyg"))
    assert as_graphs(Batch()) == as_graphs(DataSet()) == expected


@pytest.mark.parametrize("library", CONSTRUCTORS)
def test_graph_names_can_be_given_to_every_constructor(library):
    constructor = CONSTRUCTORS[library] if library != "pyg" else partial(Graphs.from_pyg, targets=None)
    assert constructor(list_of(library), graph_names=["a", "b"]).graph_names.tolist() == ["a", "b"]


@pytest.mark.parametrize("name", [name for name in dir(Graphs) if name.startswith("from_")])
def test_error_about_an_unknown_parameter_speaks_of_graphs(name):
    with pytest.raises(TypeError, match=rf"Graphs\.{name}(\(\))? got an unexpected keyword argument 'colour'"):
        getattr(Graphs, name)([], *([[]] if name in ("from_tables", "from_arrays") else []), colour=1)


@pytest.mark.parametrize(
    ("X", "advice"),
    [
        (np.array(["CO"]), "holds str_.*use Graphs.from_smiles for SMILES"),
        ({"nodes": [], "edges": []}, "got dict.*Graphs.from_tables for tables"),
        (sp.eye_array(2), "got dia_array.*use Graphs.from_edges; the edges of a matrix"),
        ([Path("1abc.pdb")], "holds .*Path.*Graphs.from_pdb for protein structures"),
        (pd.DataFrame({"graph": [1]}), "got DataFrame.*use Graphs.from_tables"),
        ([pd.DataFrame({"graph": [1]})], "holds DataFrame.*use Graphs.from_tables"),
        (["CCO"], "holds str.*use Graphs.from_smiles for SMILES"),
        ([[(0, 1), (1, 2)]], "holds list.*Graphs.from_edges for lists of edges"),
        ([sp.eye_array(2)], "holds dia_array.*use Graphs.from_edges; the edges of a matrix"),
        ([*grakel_items(), Graphs.from_edges([[(0, 1)]])], "holds tuple.*"),
    ],
)
def test_anything_else_is_refused_with_the_right_constructor(X, advice):
    with pytest.raises(InvalidGraphError, match=advice):
        as_graphs(X)


@pytest.mark.parametrize("through", [list, as_graphs, WL().fit], ids=["reader", "list", "model"])
def test_warnings_show_the_line_of_the_user(through):
    """However many functions of the package lie between the user and the reader that warns."""
    nx = pytest.importorskip("networkx")
    graph = nx.Graph([(0, 1)])
    nx.set_node_attributes(graph, 1.5, "charge")
    with pytest.warns(UserWarning, match="data of the nodes are not used: 'charge'") as caught:
        Graphs.from_networkx([graph]) if through is list else through([graph])
    assert {warning.filename for warning in caught} == {__file__}
