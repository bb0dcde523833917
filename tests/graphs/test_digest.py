"""Digests identify data: any change of any field changes them, and equal data have equal ones however they were built."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strategies import collections
from treegram import Graphs
from treegram.graphs.digest import digest_each, digest_graphs

EVERYTHING = {
    "edges": [[(0, 1), (1, 2)], [(0, 1)], []],
    "labels": [["C", "C", "O"], ["C", "N"], ["C"]],
    "attributes": [[[0.5, 1], [1, 1], [2, 0]], [[0, 0], [1, 5]], [[3, 3]]],
    "edge_labels": [["single", "double"], ["single"], []],
    "edge_attributes": [[[0.1], [0.2]], [[0.3]], []],
    "graph_attributes": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "targets": ["a", "b", "a"],
    "graph_names": ["first", "second", "third"],
    "node_names": [["x", "y", "z"], ["x", "y"], ["x"]],
    "attribute_names": ["mass", "charge"],
    "edge_attribute_names": ["length"],
    "graph_attribute_names": ["weight", "volume"],
    "positions": [[[0, 0], [1, 0], [2, 0]], [[0, 0], [1, 1]], [[3, 3]]],
}
# Another value for each argument of from_edges. Together they reach every field of a collection.
CHANGES = {
    "edges": [[(0, 1), (0, 2)], [(0, 1)], []],
    "labels": [["C", "C", "O"], ["C", "N"], ["N"]],
    "attributes": [[[0.5, 1], [1, 1], [2, 0]], [[0, 0], [1, 5]], [[3, 3 + 1e-15]]],
    "edge_labels": [["single", "double"], ["double"], []],
    "edge_attributes": [[[0.1], [0.2]], [[0.30000001]], []],
    "graph_attributes": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]],
    "targets": ["a", "b", "b"],
    "graph_names": ["first", "second", "3"],
    "node_names": [["x", "y", "z"], ["x", "y"], ["X"]],
    "attribute_names": ["charge", "mass"],
    "edge_attribute_names": ["width"],
    "graph_attribute_names": ["weight", "area"],
    "positions": [[[0, 0], [1, 0], [2, 0]], [[0, 0], [1, 1]], [[3, 4]]],
    "directed": True,
}
LABEL_TYPES = ([1, 2], ["1", "2"], [1.5, 2], [(1,), (2,)], [(1, "2"), 2])


def digests(graphs):
    return digest_graphs(graphs), *digest_each(graphs)


@pytest.mark.parametrize("name", CHANGES)
def test_another_value_of_any_field_changes_the_digest(name):
    graphs, changed = Graphs.from_edges(**EVERYTHING), Graphs.from_edges(**EVERYTHING | {name: CHANGES[name]})
    assert graphs != changed
    assert digest_graphs(graphs) != digest_graphs(changed)
    assert digest_each(graphs) != digest_each(changed)


@pytest.mark.parametrize("name", [name for name in EVERYTHING if name != "edges"])
def test_a_missing_field_changes_the_digest(name):
    columns = {f"{name.removesuffix('s')}_names"} if name.endswith("attributes") else set()
    fewer = {key: value for key, value in EVERYTHING.items() if key not in {name, *columns}}
    graphs, changed = Graphs.from_edges(**EVERYTHING), Graphs.from_edges(**fewer)
    assert digest_graphs(graphs) != digest_graphs(changed)
    assert all(a != b for a, b in zip(digest_each(graphs), digest_each(changed), strict=True))


def test_the_changes_reach_every_field_of_a_collection():
    reached = set()
    graphs = Graphs.from_edges(**EVERYTHING)
    for name, value in CHANGES.items():
        changed = Graphs.from_edges(**EVERYTHING | {name: value})
        for field in dataclasses.fields(Graphs):
            before, after = getattr(graphs, field.name), getattr(changed, field.name)
            if not np.array_equal(before, after):
                reached.add(field.name)
    values = {"label_values", "edge_label_values"}  # see the next test
    counts = {"offsets"}  # see test_equal_digests_mean_equal_collections
    assert reached | values | counts == {field.name for field in dataclasses.fields(Graphs)}


@pytest.mark.parametrize("field", ["labels", "edge_labels"])
def test_types_of_labels_count(field):
    two = {"edges": [[(0, 1), (1, 2)]], "n_nodes": [3]}
    given = [[*values, values[0]][: 3 if field == "labels" else 2] for values in LABEL_TYPES]
    collections = [Graphs.from_edges(**two, **{field: [values]}) for values in given]
    assert len({digest_graphs(graphs) for graphs in collections}) == len(LABEL_TYPES)
    assert len({tuple(digest_each(graphs)) for graphs in collections}) == len(LABEL_TYPES)


@given(collections(), collections())
def test_equal_digests_mean_equal_collections(first, second):
    a, b = first.pack(), second.pack()
    assert (digest_graphs(a) == digest_graphs(b)) == (a == b)
    assert (digest_each(a) == digest_each(b)) == (list(a) == list(b))


@given(collections(min_graphs=1), st.data())
def test_changing_one_number_or_label_changes_the_digest(collection, data):
    graphs = collection.pack()
    field = data.draw(st.sampled_from(["labels", "attributes", "edge_labels"]))
    content = getattr(collection, field)
    assume(content and any(len(rows) for rows in content))
    graph = data.draw(st.sampled_from([i for i, rows in enumerate(content) if len(rows)]))
    changed = [[list(row) if isinstance(row, list) else row for row in rows] for rows in content]
    row = data.draw(st.integers(0, len(changed[graph]) - 1))
    if field == "attributes":
        changed[graph][row][0] += 1.0 + abs(changed[graph][row][0])
    elif field == "edge_labels":
        a, b = collection.edges[graph][row]
        assume(a != b)
        for i, pair in enumerate(collection.edges[graph]):  # all mentions of this edge
            if pair == (a, b) or (not collection.directed and pair == (b, a)):
                changed[graph][i] = 99
    else:
        changed[graph][row] = "another"
    other = dataclasses.replace(collection, **{field: changed}).pack()
    assert digest_graphs(graphs) != digest_graphs(other)
    pairs = zip(digest_each(graphs), digest_each(other), strict=True)
    assert [a != b for a, b in pairs] == [i == graph for i in range(len(graphs))]


@given(collections(min_graphs=1), st.randoms(use_true_random=False))
def test_the_order_of_edges_and_the_types_of_arrays_do_not_matter(collection, random):
    graphs = collection.pack()
    orders = [random.sample(range(len(edges)), len(edges)) for edges in collection.edges]
    shuffled = dataclasses.replace(
        collection,
        edges=[[collection.edges[i][k] for k in order] for i, order in enumerate(orders)],
        edge_labels=collection.edge_labels
        and [[collection.edge_labels[i][k] for k in order] for i, order in enumerate(orders)],
    )
    assert digests(shuffled.pack()) == digests(graphs)
    n = len(graphs)
    for same in (np.arange(n, dtype=np.int8), np.arange(n, dtype=np.uint64), list(range(n))):
        assert digests(graphs.assign(targets=same)) == digests(graphs.assign(targets=np.arange(n)))
    words = [f"class {i}" for i in range(n)]
    for same in (np.array(words, dtype="U40"), np.array(words, dtype=object)):
        assert digests(graphs.assign(targets=same)) == digests(graphs.assign(targets=words))


@given(collections(), st.data())
def test_graphs_keep_their_digest_in_other_collections(collection, data):
    graphs = collection.pack()
    order = data.draw(st.permutations(range(len(graphs))))
    assert digest_each(graphs[list(order)]) == [digest_each(graphs)[i] for i in order]
    if len(graphs):
        assert digest_graphs(graphs + graphs[:0]) == digest_graphs(graphs)
        assert digest_graphs(graphs[:1]) == digest_graphs(graphs.subgraph(np.arange(graphs.n_nodes))[:1])


def test_label_values_without_nodes_do_not_matter():
    graphs = Graphs.from_edges(**EVERYTHING)
    alone = {name: values if "attribute_names" in name else values[1:2] for name, values in EVERYTHING.items()}
    assert digests(graphs[1:2]) == digests(Graphs.from_edges(**alone))


def test_fields_can_be_left_out():
    graphs = Graphs.from_edges(**EVERYTHING)
    left_out = ("targets", "graph_names", "edge_labels")
    fewer = Graphs.from_edges(**{name: value for name, value in EVERYTHING.items() if name not in left_out})
    assert digest_graphs(graphs, left_out) == digest_graphs(fewer)
    assert digest_each(graphs, left_out) == digest_each(fewer)


def test_digests_in_stores_and_files_never_change():
    graphs = Graphs.from_edges(**{**EVERYTHING, "positions": None})
    assert digest_graphs(graphs)[:16] == "8f37107a39497b08"
    assert digest_each(graphs)[0][:16] == "5111c16fbac16987"
    bare = Graphs.from_edges([[(0, 1)]], targets=[1])
    assert digest_graphs(bare)[:16] == "3cca00c8262c9840"  # as in stores of 2026-11
