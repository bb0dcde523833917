"""Tests of edge attributes: everything that splits or joins collections keeps them."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from strategies import collections, in_two_parts, with_node_order
from treegram import (
    ODDCL,
    BinEdgeAttributes,
    GraphClassifier,
    Graphs,
    GraphStatistics,
    ScaleAttributes,
    StatisticsKernel,
    load_model,
    load_tu,
    save_model,
    save_tu,
    summarize_graphs,
)
from treegram.exceptions import InvalidGraphError
from zoo import LAWS_HOLD_ON


def vector(collection, graph, a, b):
    """Return the attributes of edge (a, b): equal in both directions unless the graph is directed."""
    ends = (a, b) if collection.directed else (min(a, b), max(a, b))
    return [graph + 0.5 * ends[0], -1.0 * ends[1]]


def pack(collection):
    vectors = [[vector(collection, i, a, b) for a, b in edges] for i, edges in enumerate(collection.edges)]
    graphs = collection.pack()
    return Graphs.from_edges(
        collection.edges,
        n_nodes=collection.n_nodes,
        labels=collection.labels,
        attributes=collection.attributes,
        edge_labels=collection.edge_labels,
        edge_attributes=vectors,
        directed=collection.directed,
        targets=graphs.targets,
    )


def edge_vectors(graphs):
    """Return {(graph, node, node): vector} of all arcs."""
    sources = np.repeat(np.arange(graphs.n_nodes), graphs.degrees)
    owners = graphs.graph_ids[sources]
    starts = graphs.offsets[:-1][owners]
    keys = np.stack([owners, sources - starts, graphs.indices - starts], axis=1).tolist()
    return {tuple(key): value for key, value in zip(keys, graphs.edge_attributes.tolist(), strict=True)}


@given(collections())
def test_every_arc_has_the_vector_of_its_edge(collection):
    expected = {}
    for i, edges in enumerate(collection.edges):
        for a, b in edges:
            for pair in [(a, b)] if collection.directed else [(a, b), (b, a)]:
                if a != b:
                    expected[(i, *pair)] = vector(collection, i, a, b)
    graphs = pack(collection)
    assert edge_vectors(graphs) == expected
    Graphs(**graphs.__dict__)  # the result passes the checks
    assert pickle.loads(pickle.dumps(graphs)) == copy.deepcopy(graphs) == graphs
    assert (collection.pack() == graphs) is False or not len(graphs)


@given(in_two_parts())
def test_selection_and_concatenation_keep_edge_attributes(data):
    collection, is_first = data
    graphs, mask = pack(collection), np.array(is_first, dtype=bool)
    chosen = graphs[mask]
    numbers = np.flatnonzero(mask).tolist()
    assert edge_vectors(chosen) == {
        (numbers.index(g), a, b): v for (g, a, b), v in edge_vectors(graphs).items() if mask[g]
    }
    assert graphs[:1] + graphs[1:] == graphs
    assert Graphs.concatenate(list(graphs)) == graphs or not len(graphs)


@given(with_node_order(), st.data())
def test_subgraphs_keep_the_attributes_of_their_edges(data, draw):
    collection, _ = data
    graphs = pack(collection)
    mask = np.array(draw.draw(st.lists(st.booleans(), min_size=graphs.n_nodes, max_size=graphs.n_nodes)), dtype=bool)
    part = graphs.subgraph(mask)
    Graphs(**part.__dict__)
    assert part == graphs.subgraph(np.flatnonzero(mask)[::-1])
    kept = [np.flatnonzero(mask[graphs.offsets[i] : graphs.offsets[i + 1]]).tolist() for i in range(len(graphs))]
    expected = {
        (g, kept[g].index(a), kept[g].index(b)): v
        for (g, a, b), v in edge_vectors(graphs).items()
        if {a, b} <= set(kept[g])
    }
    assert edge_vectors(part) == expected
    assert part.sizes.tolist() == list(map(len, kept))
    if graphs.labels is not None:
        assert part.labels.tolist() == graphs.labels[mask].tolist()
    if graphs.attributes is not None:
        assert part.attributes.tolist() == graphs.attributes[mask].tolist()


def test_tu_folders_and_model_files_keep_edge_attributes(tmp_path):
    graphs = pack(LAWS_HOLD_ON["mixed"])
    numbered = graphs.assign(labels=graphs.labels)
    save_tu(numbered, tmp_path / "SET")
    assert load_tu(tmp_path / "SET")[0] == numbered
    with pytest.warns(UserWarning, match="does not use the .*edge vectors"):
        kernel = ODDCL(depth=1).fit(graphs)
    save_model(kernel, tmp_path / "model.tg")
    assert load_model(tmp_path / "model.tg").graphs_ == kernel.graphs_


def test_repr_and_summary_show_edge_attributes():
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], edge_attributes=[[0.5], [1.5, 2.5]])
    assert repr(graphs) == "Graphs(2 graphs, 5 nodes, 3 edges, undirected, no labels, 1 edge attribute)"
    found = summarize_graphs(graphs)
    assert found["edge_attributes"]["n_columns"] == 1
    assert found["edge_attributes"]["columns"][0]["max"] == 2.5
    assert any("BinEdgeAttributes" in sentence for sentence in found["warnings"])
    assert summarize_graphs(graphs + graphs[:1])["copies"]["graphs"] == 1
    other = Graphs.from_edges([[(0, 1)]], edge_attributes=[[7.0]])
    assert summarize_graphs(graphs + other)["copies"]["graphs"] == 0


@pytest.mark.parametrize(
    ("edges", "vectors", "message"),
    [
        (
            [[(0, 1), (1, 0)]],
            [[[1.0], [2.0]]],
            "Graph 0: the edge between its nodes 1 and 0 .* different attributes. If",
        ),
        ([[], [(0, 1)]], [[], [[np.nan]]], r"Graph 1: the attributes of its edge \(0, 1\) are not finite: \[nan\]"),
        ([[(0, 1)]], [[[1.0], [2.0]]], "Graph 0: the numbers of edges disagree: 1 from edges, 2 from edge_attributes"),
        (
            [[(0, 1)], [(0, 1)]],
            [[[1.0]], [[1.0, 2.0]]],
            "Graph 1: edge_attributes have 2 columns, those of earlier .* 1",
        ),
        ([[(0, 1)]], [[["a"]]], "Graph 0: edge_attributes must be one vector of numbers per edge"),
        ([[(0, 1)]], [[[[1.0]]]], r"Graph 0: edge_attributes must have the shape \(n_edges, n_attributes\)"),
        ([[(0, 1)]], [], "edge_attributes must have one entry per graph"),
    ],
)
def test_invalid_edge_attributes_raise(edges, vectors, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_edges(edges, edge_attributes=vectors)


def test_collections_with_different_edge_attributes_cannot_be_joined():
    one = Graphs.from_edges([[(0, 1)]], edge_attributes=[[[1.0]]])
    two = Graphs.from_edges([[(0, 1)]], edge_attributes=[[[1.0, 2.0]]])
    without = Graphs.from_edges([[(0, 1)]])
    for other, count in ((two, "2 attributes"), (without, "0 attributes")):
        with pytest.raises(InvalidGraphError, match=f"part 0 has 1 attribute per edge, part 1 has {count} per edge"):
            one + other
    assert (one + Graphs.from_edges([[]], n_nodes=[1])).edge_attributes.shape == (2, 1)  # no edge, no vector


def test_constructor_checks_edge_attributes():
    graphs = Graphs.from_edges([[(0, 1)]], edge_attributes=[[[1.0]]])
    content = graphs.__dict__
    for wrong, message in (
        (np.array([[1.0], [2.0]]), "in both directions, with the same label and attributes"),
        (
            np.array([[1.0]]),
            r"edge_attributes must have the shape \(2, n_attributes\), one row per edge; got \(1, 1\)",
        ),
        (np.array([[np.inf], [np.inf]]), r"Graph 0: the attributes of its edge \(0, 1\) are not finite"),
    ):
        with pytest.raises(InvalidGraphError, match=message):
            Graphs(**{**content, "edge_attributes": wrong})
    old = {name: value for name, value in content.items() if name != "edge_attributes"}
    assert Graphs(**old).edge_attributes is None


# -------------------------------------------------------------------- names of columns


def named(names, field="edge_attributes"):
    """Return twenty rings and chains with two columns of vectors at the edges, or at the nodes."""
    rng = np.random.default_rng(0)
    rings = [[(0, 1), (1, 2), (2, 3), *([(3, 0)] if i % 2 else [])] for i in range(20)]
    lengths = [4] * 20 if field == "attributes" else list(map(len, rings))
    vectors = [rng.normal(size=(length, 2)) + np.array([3 * (i >= 10), 0]) for i, length in enumerate(lengths)]
    return Graphs.from_edges(rings, **{field: vectors, f"{field[:-1]}_names": names}, targets=[0] * 10 + [1] * 10)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: BinEdgeAttributes(2), "edge_attributes"),
        (lambda: make_pipeline(BinEdgeAttributes(2), ODDCL(depth=1, use_edge_labels=True)), "edge_attributes"),
        (GraphStatistics, "edge_attributes"),
        (StatisticsKernel, "edge_attributes"),
        (GraphStatistics, "attributes"),
        (ScaleAttributes, "attributes"),
    ],
)
def test_columns_of_new_graphs_must_have_the_fitted_names(make, field, tmp_path):
    """In the fitted order, also for a loaded model; graphs without names are taken as they are."""
    fitted = make().fit(named(["a", "b"], field))
    save_model(fitted, tmp_path / "model.tgm")
    for estimator in (fitted, load_model(tmp_path / "model.tgm")):
        for names, place in [(["b", "a"], 0), (["a", "c"], 1)]:
            with pytest.raises(
                InvalidGraphError, match=rf"^Column {place} of the .*attributes of .* was fitted with '"
            ):
                estimator.transform(named(names, field))
        expected = fitted.transform(named(["a", "b"], field))
        unnamed = estimator.transform(named(None, field))
        if isinstance(expected, Graphs):
            given = {"attribute_names": expected.attribute_names, "edge_attribute_names": expected.edge_attribute_names}
            unnamed = unnamed.assign(**{name: value for name, value in given.items() if value is not None})
            assert unnamed == expected
        else:
            np.testing.assert_array_equal(unnamed, expected)


def test_the_automatic_model_compares_names_of_edge_attributes():
    model = GraphClassifier().fit(named(["a", "b"]), [0] * 10 + [1] * 10)  # only the vectors tell the classes apart
    with pytest.raises(InvalidGraphError, match=r"^Column 0 of the edge attributes of the new graphs"):
        model.predict(named(["b", "a"]))
