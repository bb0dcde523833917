import copy
import dataclasses
import enum
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from treegram import WL, Graphs
from treegram.exceptions import InvalidGraphError
from treegram.graphs import as_graphs
from treegram.structure import hashing
from treegram.structure.hashing import hash_label
from zoo import COLLECTIONS


@pytest.fixture
def graphs():
    """Return a triangle with a tail, an empty graph, an isolated node and a path, with all optional fields."""
    return Graphs.from_edges(
        [[(0, 1), (1, 2), (2, 0), (2, 3)], [], [], [(0, 1), (1, 2)]],
        labels=[["C", "C", "O", "N"], [], ["C"], ["N", "O", "N"]],
        attributes=[[[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.5]], [], [[4.0, 4.0]], np.eye(3)[:, :2]],
        edge_labels=[[1, 1, 2, 1], [], [], [2, 2]],
        targets=[0, 1, 0, 1],
    )


@st.composite
def collections(draw, min_graphs=0):
    """Draw collections with and without labels, attributes, edge labels, direction, targets and empty graphs."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=min_graphs, max_size=5))
    edges = [draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=6)) if n else [] for n in sizes]
    directed = draw(st.booleans())
    label = draw(st.sampled_from([st.integers(-2, 2), st.sampled_from("abc"), st.tuples(st.integers(0, 1), st.text())]))
    dimension = draw(st.integers(1, 3))
    number = st.floats(-1e6, 1e6)
    ends = [[tuple(pair if directed else sorted(pair)) for pair in graph] for graph in edges]
    kinds = [dict.fromkeys(graph, None) for graph in ends]
    kinds = [{pair: draw(st.sampled_from("xyz")) for pair in graph} for graph in kinds]
    return Graphs.from_edges(
        edges,
        n_nodes=sizes,
        labels=draw(st.none() | st.tuples(*[st.lists(label, min_size=n, max_size=n) for n in sizes])),
        attributes=draw(
            st.none()
            | st.tuples(
                *[
                    st.lists(st.lists(number, min_size=dimension, max_size=dimension), min_size=n, max_size=n)
                    for n in sizes
                ]
            )
        ),
        edge_labels=draw(st.none() | st.just([[kinds[i][pair] for pair in graph] for i, graph in enumerate(ends)])),
        directed=directed,
        targets=draw(st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(sizes), max_size=len(sizes))),
    )


# -------------------------------------------------------------------- content


def test_from_edges_packs_nodes_neighbors_labels_and_vectors(graphs):
    assert graphs.offsets.tolist() == [0, 4, 4, 5, 8]
    assert graphs.indptr.tolist() == [0, 2, 4, 7, 8, 8, 9, 11, 12]
    assert graphs.indices.tolist() == [1, 2, 0, 2, 0, 1, 3, 2, 6, 5, 7, 6]
    assert [graphs.label_values[code] for code in graphs.labels] == list("CCONCNON")
    assert [graphs.edge_label_values[code] for code in graphs.edge_labels] == [1, 2, 1, 1, 2, 1, 1, 1, 2, 2, 2, 2]
    assert graphs.attributes[4].tolist() == [4.0, 4.0]
    assert graphs.targets.tolist() == [0, 1, 0, 1]


def test_sizes_degrees_and_ids(graphs):
    assert (len(graphs), graphs.shape, graphs.n_nodes, graphs.n_edges, graphs.n_attributes) == (4, (4, 1), 8, 6, 2)
    assert graphs.sizes.tolist() == [4, 0, 1, 3]
    assert graphs.degrees.tolist() == [2, 2, 3, 1, 0, 1, 2, 1]
    assert graphs.graph_ids.tolist() == [0, 0, 0, 0, 2, 3, 3, 3]
    assert graphs.edges().tolist() == [[0, 1], [0, 2], [1, 2], [2, 3], [5, 6], [6, 7]]


def test_self_loops_are_dropped_and_duplicate_edges_count_once():
    graphs = Graphs.from_edges([[(0, 0), (0, 1), (1, 0), (0, 1), (2, 2)]])
    assert graphs.n_nodes == 3
    assert graphs.edges().tolist() == [[0, 1]]


def test_directed_edges_go_one_way():
    graphs = Graphs.from_edges([[(1, 0), (1, 2), (2, 1)]], directed=True, edge_labels=[["a", "b", "c"]])
    assert graphs.edges().tolist() == [[1, 0], [1, 2], [2, 1]]
    assert graphs.degrees.tolist() == [0, 2, 1]
    assert graphs.edge_labels.tolist() == [0, 1, 2]


def test_from_arrays_agrees_with_from_edges(graphs):
    again = Graphs.from_arrays(
        [0, 4, 4, 5, 8],
        [(1, 0), (2, 1), (0, 2), (3, 2), (6, 5), (6, 7)],
        labels=list("CCONCNON"),
        attributes=graphs.attributes,
        edge_labels=[1, 1, 2, 1, 2, 2],
        targets=[0, 1, 0, 1],
    )
    assert again == graphs


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (np.array([5, -1, 5]), (-1, 5)),
        (np.array([True, False, True]), (0, 1)),
        (np.array([[1, 0], [0, 7], [1, 0]]), ((0, 7), (1, 0))),
        (np.array([[3], [2], [3]]), (2, 3)),
        (np.array([2**63 + 5, 1, 1], dtype=np.uint64), (1, 2**63 + 5)),
        (np.array(["b", "a", "b"]), ("a", "b")),
        ([np.int32(1), 2.5, "x"], (2.5, 1, "x")),
        ([[1, "a"], (1, "b"), np.array([1, 2])], ((1, 2), (1, "a"), (1, "b"))),
    ],
)
def test_labels_are_stored_as_plain_python_values(labels, values):
    graphs = Graphs.from_arrays([0, 3], [], labels=labels)
    assert graphs.label_values == values
    assert all(type(value) in (int, float, str, tuple) for value in graphs.label_values)


def test_multi_column_labels_can_be_given_per_graph():
    graphs = Graphs.from_edges([[], []], labels=[np.array([[0, 1], [1, 0]]), [(0, 1)]])
    assert graphs.label_values == ((0, 1), (1, 0))
    assert graphs.labels.tolist() == [0, 1, 0]


def test_number_of_nodes_defaults_to_the_largest_node_plus_one():
    assert Graphs.from_edges([[(0, 4)], []]).sizes.tolist() == [5, 0]


def test_attributes_can_be_scalars():
    graphs = Graphs.from_edges([[(0, 1)]], attributes=[[1.0, 2.0]])
    assert graphs.attributes.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("n_graphs", [0, 3])
def test_collections_without_nodes_are_valid(n_graphs):
    graphs = Graphs.from_edges([[]] * n_graphs)
    assert (len(graphs), graphs.n_nodes, graphs.n_edges, graphs.edges().shape) == (n_graphs, 0, 0, (0, 2))
    assert list(graphs) == [Graphs.from_edges([[]])] * n_graphs


def test_repr_describes_the_content(graphs):
    assert repr(graphs) == (
        "Graphs(4 graphs, 8 nodes, 6 edges, undirected, 3 labels, 2 attributes, 2 edge labels, targets)"
    )
    assert repr(Graphs.from_edges([[(0, 1)]], directed=True)) == "Graphs(1 graph, 2 nodes, 1 edge, directed, no labels)"


# -------------------------------------------------------------------- selection


@pytest.mark.parametrize(
    ("key", "chosen"),
    [
        (0, [0]),
        (-1, [3]),
        (np.int64(2), [2]),
        (slice(1, None), [1, 2, 3]),
        (slice(None, None, -2), [3, 1]),
        ([3, 0, 3], [3, 0, 3]),
        ([-1, -4], [3, 0]),
        (np.array([1, 2], dtype=np.uint8), [1, 2]),
        ([True, False, False, True], [0, 3]),
        (np.zeros(4, dtype=bool), []),
        ([], []),
        ((np.array([2, 0]), Ellipsis), [2, 0]),
    ],
)
def test_selection_keeps_the_given_order(graphs, key, chosen):
    singles = [graphs[i] for i in chosen]
    assert len(graphs[key]) == len(chosen)
    assert list(graphs[key]) == singles
    assert graphs[key].targets.tolist() == [graphs.targets[i] for i in chosen]


def test_single_graph_equals_its_input(graphs):
    assert graphs[3] == Graphs.from_edges(
        [[(0, 1), (1, 2)]],
        labels=[["N", "O", "N"]],
        attributes=[np.eye(3)[:, :2]],
        edge_labels=[[2, 2]],
        targets=[1],
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (4, "graph index 4 is out of range for 4 graphs"),
        (-5, "graph index -5 is out of range for 4 graphs"),
        ([0, 4], "out of bounds"),
        ([True, False], "boolean index did not match"),
        (1.0, "selected by an integer, a slice, a boolean mask .* dtype float64"),
        ([0.5], "selected by an integer, a slice, a boolean mask .* dtype float64"),
        ("a", "selected by an integer"),
        (None, "selected by an integer"),
        (True, "selected by an integer, .* dtype bool and shape \\(\\)"),
        ([[0, 1]], "selected by an integer, .* shape \\(1, 2\\)"),
    ],
)
def test_invalid_selection_raises_index_error(graphs, key, message):
    with pytest.raises(IndexError, match=message):
        graphs[key]


@settings(deadline=None)
@given(collections(), st.data())
def test_repeated_selection_equals_a_single_selection(graphs, data):
    index = st.lists(st.integers(0, len(graphs) - 1), max_size=6) if len(graphs) else st.just([])
    first = data.draw(index)
    second = data.draw(st.lists(st.integers(0, len(first) - 1), max_size=6) if first else st.just([]))
    assert graphs[first][second] == graphs[[first[i] for i in second]]


# -------------------------------------------------------------------- joining and comparing


@settings(deadline=None)
@given(collections(min_graphs=1))
def test_concatenating_the_single_graphs_gives_the_whole(graphs):
    assert Graphs.concatenate(graphs) == graphs
    assert as_graphs(list(graphs)) == graphs


@settings(deadline=None)
@given(collections(min_graphs=1), st.data())
def test_adding_halves_gives_the_whole(graphs, data):
    cut = data.draw(st.integers(0, len(graphs)))
    assert graphs[:cut] + graphs[cut:] == graphs


def test_concatenating_nothing_is_empty():
    assert len(Graphs.concatenate([])) == 0


def test_concatenation_merges_labels_by_value():
    joined = Graphs.from_edges([[]], labels=[["b", "c"]]) + Graphs.from_edges([[]], labels=[["a", "c"]])
    assert joined.label_values == ("a", "b", "c")
    assert joined.labels.tolist() == [1, 2, 0, 2]


def test_concatenation_keeps_targets_only_if_all_parts_have_them(graphs):
    without = Graphs.from_arrays(
        graphs.offsets, graphs.edges(), labels=["C"] * 8, attributes=graphs.attributes, edge_labels=[1] * 6
    )
    assert (graphs + without).targets is None
    assert (graphs + graphs).targets.tolist() == [0, 1, 0, 1] * 2


@pytest.mark.parametrize("empty", [Graphs.from_edges([[]]), Graphs.from_edges([[]], attributes=[[]])])
def test_empty_graph_can_be_joined_with_attributes_of_any_dimension(empty):
    pair = Graphs.from_edges([[(0, 1)]], attributes=[[[1.0, 2.0], [3.0, 4.0]]])
    for joined in (empty + pair, pair + empty, Graphs.concatenate([empty, empty, pair])):
        assert joined.attributes.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    other = Graphs.from_edges([[]], attributes=[[5.0]])
    with pytest.raises(
        InvalidGraphError, match="cannot be joined: part 1 has 2 attributes per node, part 2 has 1 attribute per node"
    ):
        Graphs.concatenate([empty, pair, other])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({}, "cannot be joined: part 0 has labels, part 1 has no labels"),
        (
            {"labels": [[1]], "attributes": [[[1.0]]]},
            "part 0 has 0 attributes per node, part 1 has 1 attribute per node",
        ),
        ({"labels": [[1]], "edge_labels": [[]]}, "part 0 has no edge labels, part 1 has edge labels"),
        ({"labels": [[1]], "directed": True}, "part 0 has undirected edges, part 1 has directed edges"),
    ],
)
def test_incompatible_collections_cannot_be_joined(other, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_edges([[]], labels=[[0]]) + Graphs.from_edges([[]], n_nodes=[1], **other)


def test_only_collections_can_be_added(graphs):
    with pytest.raises(TypeError, match="unsupported operand"):
        graphs + 1


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [[(0, 1), (0, 2)]]},
        {"labels": [["C", "O", "O"]]},
        {"labels": None},
        {"attributes": [[[0.0], [1.0], [3.0]]]},
        {"attributes": None},
        {"edge_labels": [[1, 3]]},
        {"edge_labels": None},
        {"targets": [2]},
        {"targets": None},
        {"directed": True},
    ],
)
def test_collections_that_differ_in_one_field_are_not_equal(change):
    content = {
        "edges": [[(0, 1), (1, 2)]],
        "labels": [["C", "O", "C"]],
        "attributes": [[[0.0], [1.0], [2.0]]],
        "edge_labels": [[1, 2]],
        "targets": [1],
    }
    assert Graphs.from_edges(**content) == Graphs.from_edges(**content)
    assert Graphs.from_edges(**content) != Graphs.from_edges(**(content | change))


def test_unused_labels_do_not_affect_equality():
    assert Graphs.from_edges([[], []], labels=[["a"], ["b"]])[1:] == Graphs.from_edges([[]], labels=[["b"]])


def test_collection_does_not_equal_other_types_and_is_not_hashable(graphs):
    assert graphs != "graphs"
    assert graphs != list(graphs)
    with pytest.raises(TypeError, match="unhashable"):
        hash(graphs)


# -------------------------------------------------------------------- immutability


def _arrays(graphs):
    names = ("offsets", "indptr", "indices", "labels", "attributes", "edge_labels", "targets")
    return [getattr(graphs, name) for name in names]


@pytest.mark.parametrize("copied", [lambda g: g, lambda g: pickle.loads(pickle.dumps(g)), copy.deepcopy, copy.copy])
def test_arrays_are_read_only(graphs, copied):
    same = copied(graphs)
    assert same == graphs
    for made in (same, same[1:], same + same, same[0]):
        for array in _arrays(made):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_fields_cannot_be_set(graphs):
    with pytest.raises(AttributeError, match="cannot assign to field 'directed'"):
        graphs.directed = True


def test_input_arrays_are_neither_kept_nor_frozen():
    content = {"labels": np.array([1, 2]), "attributes": np.zeros((2, 1)), "targets": np.array([7.0])}
    offsets, edges = np.array([0, 2]), np.array([[0, 1]])
    graphs = Graphs.from_arrays(offsets, edges, **content)
    for array in (offsets, edges, *content.values()):
        array[...] = 5
    assert graphs == Graphs.from_edges([[(0, 1)]], labels=[[1, 2]], attributes=[[0.0, 0.0]], targets=[7.0])


# -------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("splitter", [KFold(3), StratifiedKFold(3), ShuffleSplit(3, random_state=0)])
def test_splitters_split_collections_and_lists(splitter, as_list):
    y = np.array([0, 1] * 6)
    graphs = Graphs.from_edges([[]] * 12, n_nodes=range(12), targets=y)
    for train, test in splitter.split(list(graphs) if as_list else graphs, y):
        assert graphs[train].sizes.tolist() == train.tolist()
        assert graphs[test].targets.tolist() == y[test].tolist()


@pytest.mark.parametrize("as_list", [False, True])
def test_train_test_split_returns_the_input_type(as_list):
    y = np.array([0, 1] * 6)
    graphs = Graphs.from_edges([[]] * 12, n_nodes=range(12), targets=y)
    parts = train_test_split(list(graphs) if as_list else graphs, y, np.arange(12), stratify=y, random_state=0)
    for part, targets, numbers in (parts[0::2], parts[1::2]):
        assert isinstance(part, list if as_list else Graphs)
        chosen = as_graphs(part)
        assert chosen.sizes.tolist() == numbers.tolist()
        assert chosen.targets.tolist() == targets.tolist()


@pytest.mark.parametrize("given_as", [lambda g: g, list, lambda g: np.array(list(g), dtype=object), np.asarray])
def test_arrays_of_graphs_and_bagging(given_as):
    edges = [[(0, 1), (1, 2)], [(0, 1)]] * 12
    y = np.array([0, 1] * 12)
    graphs = Graphs.from_edges(edges, targets=y)
    X = given_as(graphs)
    assert as_graphs(X) == graphs
    model = BaggingClassifier(make_pipeline(WL(), SVC(kernel="precomputed")), n_estimators=2, random_state=0).fit(X, y)
    assert model.score(X, y) == 1


def test_array_of_graphs_has_one_row_per_graph(graphs):
    assert np.asarray(graphs).shape == np.array(list(graphs), dtype=object).shape == graphs.shape == (4, 1)
    assert np.asarray(graphs)[3, 0] == graphs[3]
    with pytest.raises((TypeError, ValueError)):
        np.asarray(graphs, dtype=float)


# -------------------------------------------------------------------- order of sequences


class Series(list):
    """A sequence with named entries, like a pandas Series: s[i] is the entry named i, wherever it is."""

    def __init__(self, entries, names):
        super().__init__(entries)
        self.names = names

    def __getitem__(self, name):
        return list(self)[self.names.index(name)]  # an unknown name fails


@pytest.mark.parametrize("names", [[2, 0, 1], [7, 8, 9]])
def test_sequences_are_read_by_position_and_not_by_index(names):
    content = {
        "edges": [[(0, 1)], [], [(0, 1), (1, 2)]],
        "n_nodes": [2, 1, 3],
        "labels": [["a", "b"], ["c"], ["d", "e", "f"]],
        "attributes": [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]],
        "edge_labels": [[7], [], [8, 9]],
    }
    assert Graphs.from_edges(**{name: Series(value, names) for name, value in content.items()}) == Graphs.from_edges(
        **content
    )


@pytest.mark.parametrize("name", ["edges", "n_nodes", "labels", "attributes", "edge_labels"])
@pytest.mark.parametrize("made", [lambda: {0: []}, lambda: {1}])
def test_unordered_inputs_raise(name, made):
    with pytest.raises(InvalidGraphError, match=f"{name} must be a sequence with one entry per graph; got (dict|set)"):
        Graphs.from_edges(**({"edges": [[]]} | {name: made()}))


# -------------------------------------------------------------------- labels that equal plain values


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


class Atom(enum.StrEnum):
    CARBON = "C"


class Shouting(str):
    __slots__ = ()

    def __str__(self):
        return self.upper()


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        (Color.RED, 1),
        (Atom.CARBON, "C"),
        (Shouting("c"), "c"),
        (np.str_("C"), "C"),
        (np.int16(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), 1),
        ((Color.BLUE, Atom.CARBON), (2, "C")),
    ],
)
def test_labels_of_special_types_are_converted_to_plain_values(label, plain):
    special, ordinary = (Graphs.from_edges([[]], labels=[[value]]) for value in (label, plain))
    assert special.label_values == (plain,)
    assert type(special.label_values[0]) is type(plain)
    assert hash_label(special.label_values[0]) == hash_label(plain)
    assert WL(normalize=False).fit(ordinary).transform(special) > 0


def test_only_used_labels_are_hashed(monkeypatch):
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1)]], labels=[["a", "b"], ["c", "d"]], edge_labels=[["x"], ["y"]])
    hashed = []
    monkeypatch.setattr(hashing, "hash_label", lambda value: hashed.append(value) or 1)
    hashing.node_hashes(graphs[1], "degree")
    hashing.arc_hashes(graphs[1], use_edge_labels=True)
    hashing.node_hashes(Graphs.from_edges([[(0, i) for i in range(1, 9)]]), "degree")
    assert hashed == ["c", "d", "y", 1, 8]


# -------------------------------------------------------------------- constructed from arrays


def test_collection_rebuilt_from_its_own_arrays_is_equal(graphs):
    assert dataclasses.replace(graphs) == graphs
    assert dataclasses.replace(graphs, attributes=None).attributes is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 4, 4, 5])}, "indptr must be .* of length 6"),
        ({"offsets": [0, 4, 4, 5, 8]}, "offsets must be a contiguous .* array of int64; got list"),
        ({"offsets": np.array([0, 5, 4, 5, 8])}, "offsets must start at 0 and never decrease"),
        ({"offsets": np.empty(0, np.int64)}, "offsets must start at 0"),
        ({"offsets": np.array([0, 4, 4, 6, 8])}, r"Edge \d+ .* joins two graphs"),
        ({"indptr": np.array([0, 2, 4, 7, 8, 8, 9, 11])}, "indptr must be .* of length 9"),
        ({"indptr": np.array([0, 2, 4, 7, 8, 8, 9, 11, 13])}, "indices must be .* of length 13"),
        (
            {"indices": np.array([1, 2, 0, 2, 0, 1, 99, 2, 6, 5, 7, 6])},
            r"Edge 6 \(2, 99\) names a node that does not exist",
        ),
        (
            {"indices": np.array([1, 2, 0, 2, 0, 1, -1, 2, 6, 5, 7, 6])},
            r"Edge 6 \(2, -1\) names a node that does not exist",
        ),
        ({"indices": np.array([1, 2, 0, 2, 0, 1, 4, 2, 6, 5, 7, 6])}, r"Edge 6 \(2, 4\) joins two graphs, 0 and 2"),
        (
            {"indices": np.array([2, 1, 0, 2, 0, 1, 3, 2, 6, 5, 7, 6])},
            "indices must list the neighbors of each node sorted",
        ),
        (
            {"indices": np.array([0, 2, 0, 2, 0, 1, 3, 2, 6, 5, 7, 6])},
            "indices must list the neighbors of each node sorted",
        ),
        ({"indices": np.array([1, 3, 0, 2, 0, 1, 3, 2, 6, 5, 7, 6])}, "an undirected edge in both directions"),
        ({"indices": np.zeros(12)}, "indices must be a contiguous .* got an array of dtype float64"),
        ({"edge_labels": np.array([1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1])}, "with the same label and attributes"),
        ({"edge_labels": np.full(12, 2)}, "edge_labels must be numbers from 0 to 1"),
        ({"labels": np.full(8, 3)}, "labels must be numbers from 0 to 2, .* they range from 3 to 3"),
        ({"labels": np.full(8, -1)}, "labels must be numbers from 0 to 2"),
        ({"labels": np.zeros(7, np.int64)}, "labels must be .* of length 8, one per node"),
        ({"label_values": ("C", "C", "O")}, "label_values must be distinct"),
        ({"label_values": ["C", "N", "O"]}, "label_values must be a tuple"),
        ({"label_values": ("C", None, "O")}, r"label_values\[1\] must be an integer, a string"),
        ({"label_values": ("C", Color.RED, "O")}, r"label_values\[1\] must be a plain int"),
        (
            {"attributes": np.zeros((7, 2))},
            r"attributes must have the shape \(8, n_attributes\), one row per node; got \(7, 2\)",
        ),
        ({"attributes": np.full((8, 2), np.nan)}, r"Graph 0: the attributes of its node 0 are not finite"),
        ({"targets": np.zeros(3)}, "targets must have one entry per graph: 4 graphs"),
        ({"directed": 1}, "directed must be True or False; got 1"),
    ],
)
def test_inconsistent_arrays_raise(graphs, change, message):
    with pytest.raises(InvalidGraphError, match=message):
        dataclasses.replace(graphs, **change)


def test_modified_pickle_raises(graphs):
    state = {**graphs.__dict__, "indices": graphs.indices + 5}
    with pytest.raises(InvalidGraphError, match="names a node that does not exist"):
        object.__new__(Graphs).__setstate__(state)


@settings(deadline=None)
@given(collections())
def test_every_constructor_gives_a_valid_collection(graphs):
    for made in (graphs, graphs[::-1], graphs[:1], graphs + graphs if len(graphs) else graphs):
        assert dataclasses.replace(made) == made


# -------------------------------------------------------------------- invalid input

MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"edges": [[(0, 1)], [(0, 1, 2)]]}, r"Graph 1: edges must be pairs of node numbers, .* shape \(1, 3\)"),
        ({"edges": [[(0, 1), (2,)]]}, "Graph 0: edges must form a regular array"),
        ({"edges": [[(0.0, 1.0)]]}, "Graph 0: edges must be pairs of node numbers, .* got dtype float64"),
        ({"edges": [[("a", "b")]]}, "Graph 0: edges must be pairs of node numbers"),
        (
            {"edges": [[], [(0, 2)]], "n_nodes": [1, 2]},
            r"Graph 1: edge \(0, 2\) names a node that does not exist.* 2 nodes",
        ),
        ({"edges": [[(0, -1)]]}, r"Graph 0: edge \(0, -1\) names a node that does not exist"),
        ({"edges": [[]], "n_nodes": [-1]}, "Graph 0: n_nodes must be a whole number, at least 0 .*; got -1"),
        ({"edges": [[]], "n_nodes": [np.int64(-1)]}, "n_nodes must be a whole number, at least 0 .*; got -1[.]"),
        ({"edges": [[]], "n_nodes": [2.5]}, "Graph 0: n_nodes must be a whole number, at least 0 .*; got 2.5"),
        ({"edges": [[]], "n_nodes": [1, 2]}, "n_nodes must have one entry per graph: 1 graph, got 2 entries"),
        ({"edges": [[]], "labels": []}, "labels must have one entry per graph: 1 graph, got 0 entries"),
        ({"edges": [[]], "attributes": [[], []]}, "attributes must have one entry per graph"),
        ({"edges": [[]], "edge_labels": []}, "edge_labels must have one entry per graph"),
        ({"edges": [[]], "n_nodes": [2], "labels": [[1]]}, "Graph 0: .* disagree: 2 from n_nodes, 1 from labels"),
        ({"edges": [[]], "labels": [[1]], "attributes": [[1.0, 2.0]]}, "1 from labels, 2 from attributes"),
        ({"edges": [[]], "labels": [[1, None]]}, r"labels\[1\] must be an integer, a string, .* got None"),
        ({"edges": [[]], "labels": [[NAN]]}, r"labels\[0\] must be .* got nan"),
        ({"edges": [[]], "labels": [[(1, INF)]]}, r"labels\[0\] must be .* got inf"),
        ({"edges": [[]], "labels": [[{}]]}, r"labels\[0\] must be .* got \{\}"),
        ({"edges": [[]], "labels": [[(1, {2})]]}, r"labels\[0\] must be .* got \{2\}"),
        (
            {"edges": [[(0, 1)]], "edge_labels": [[]]},
            "Graph 0: the numbers of edges disagree: 1 from edges, 0 from edge_labels",
        ),
        ({"edges": [[(0, 1)]], "edge_labels": [[b"x"]]}, r"edge_labels\[0\] must be .* got b'x'"),
        (
            {"edges": [[], [(0, 1), (1, 0)]], "edge_labels": [[], [1, 2]]},
            "Graph 1: the edge between its nodes .* different",
        ),
        (
            {"edges": [[(0, 1), (0, 1)]], "edge_labels": [[1, 2]], "directed": True},
            "Graph 0: the edge between its nodes 0 and 1 is listed more than once with different labels.$",
        ),
        ({"edges": [[], []], "attributes": [[1.0], [2.0, NAN]]}, r"Graph 1: the attributes of its node 1 .*\[nan\]"),
        ({"edges": [[]], "attributes": [[[1.0, -INF]]]}, r"Graph 0: .* node 0 are not finite: \[1.0, -inf\]"),
        (
            {"edges": [[]], "attributes": [[[1.0], [1.0, 2.0]]]},
            "Graph 0: attributes must be one vector .* of one length",
        ),
        (
            {"edges": [[], []], "attributes": [[[1.0]], [[1.0, 2.0]]]},
            "Graph 1: attributes have 2 columns, .* earlier graphs 1",
        ),
        ({"edges": [[]], "attributes": [[["a"]]]}, "Graph 0: attributes must be one vector of numbers"),
        ({"edges": [[]], "attributes": [[[[1.0]]]]}, r"Graph 0: attributes must have the shape .* got \(1, 1, 1\)"),
        ({"edges": [[]], "attributes": [3.0]}, r"Graph 0: attributes must have the shape .* got \(\)"),
        ({"edges": [[]], "targets": [1, 2]}, r"targets must have one entry per graph: 1 graphs, got .* \(2,\)"),
        ({"edges": [[]], "targets": 1}, r"targets must have one entry per graph: 1 graphs, got .* \(\)"),
        ({"edges": [[], []], "targets": [[1], [1, 2]]}, "targets must form a regular array"),
        ({"edges": [[]], "attributes": [MASKED]}, "Graph 0: attributes must have no masked values"),
        ({"edges": [np.ma.array([[0, 1]], mask=[[0, 1]])]}, "Graph 0: edges must have no masked values"),
        ({"edges": [[], []], "targets": MASKED}, "targets must have no masked values"),
        ({"edges": [[]], "labels": [np.ma.array([1, 2], mask=[0, 1])]}, r"labels\[1\] must be .* got masked"),
        (
            {"edges": [[]], "attributes": [np.array(["2020-01-01", "NaT"], "M8[D]")]},
            "must be one vector of numbers per node.*got dtype date",
        ),
        (
            {"edges": [[]], "attributes": [np.array([1, "NaT"], "m8[s]")]},
            "must be one vector of numbers per node.*got dtype timedelta64",
        ),
        ({"edges": [[]], "attributes": [[10**400]]}, "Graph 0: attributes must be one vector of numbers"),
        ({"edges": [[]], "attributes": [[1 + 2j]]}, "Graph 0: attributes must be one vector .*got dtype complex128"),
        ({"edges": [[]], "labels": [np.array(["NaT"], "M8[ns]")]}, r"labels\[0\] must be .* got np.datetime64"),
    ],
)
def test_from_edges_rejects_invalid_input(content, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_edges(**content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"offsets": []}, "offsets must be a one-dimensional array of integers; got dtype float64"),
        ({"offsets": [[0, 3]]}, r"offsets must be a one-dimensional array of integers; .* shape \(1, 2\)"),
        ({"offsets": [0.0, 3.0]}, "offsets must be .* got dtype float64"),
        ({"offsets": [0, [3]]}, "offsets must form a regular array"),
        ({"offsets": [1, 3]}, "offsets must start at 0 and never decrease"),
        ({"offsets": [0, 3, 2]}, "offsets must start at 0 and never decrease"),
        ({"edges": [0, 1]}, r"edges must be .* an integer array of shape \(n_edges, 2\); .* shape \(2,\)"),
        ({"edges": [(0, 1), (0,)]}, "edges must form a regular array"),
        ({"edges": [(0, 1), (0, 3)]}, r"Edge 1 \(0, 3\) names a node that does not exist; .* from 0 to 2"),
        ({"edges": [(-1, 0)]}, r"Edge 0 \(-1, 0\) names a node that does not exist"),
        ({"edges": [(0, 1), (1, 2)]}, r"Edge 1 \(1, 2\) joins two graphs, 0 and 1"),
        ({"labels": [1, 2]}, "labels must have one entry for each of the 3 nodes; got 2"),
        ({"edges": [(0, 1)], "edge_labels": [1, 2]}, "edge_labels must have one entry for each of the 1 edges; got 2"),
        ({"attributes": [1.0, 2.0]}, r"attributes must have the shape \(3, n_attributes\).* got \(2, 1\)"),
        ({"attributes": [[1.0], [], [2.0]]}, "attributes must be one vector of numbers per node, all of one length"),
        ({"attributes": [0.0, 0.0, NAN]}, r"Graph 1: the attributes of its node 0 are not finite: \[nan\]"),
        ({"targets": ["a"]}, r"targets must have one entry per graph: 2 graphs, got .* \(1,\)"),
        ({"labels": np.ma.array([1, 2, 3], mask=[0, 0, 1])}, "labels must have no masked values"),
        ({"labels": {0: 1, 1: 2, 2: 3}}, "labels must be a sequence with one entry for each of the nodes; got dict"),
        ({"offsets": np.ma.array([0, 2, 3], mask=[0, 0, 1])}, "offsets must have no masked values"),
        ({"attributes": np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 1])}, "attributes must have no masked values"),
        ({"attributes": np.array([1, 2, 3]) * 1j}, "attributes must be one vector of numbers .*got dtype complex128"),
    ],
)
def test_from_arrays_rejects_invalid_input(content, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_arrays(**({"offsets": [0, 2, 3], "edges": []} | content))


def test_masked_arrays_without_masked_values_are_accepted():
    graphs = Graphs.from_arrays([0, 2], [], attributes=np.ma.array([1.0, 2.0]), targets=np.ma.array([5]))
    assert type(graphs.attributes) is type(graphs.targets) is np.ndarray


@pytest.mark.parametrize(
    ("given_as", "message"),
    [
        (3, "X must be a Graphs collection or a list of graphs; got int"),
        ("MUTAG", "X must be a Graphs collection or a list of graphs; got str"),
        ({}, "X must be a Graphs collection or a list of graphs; got dict"),
        ([1, 2], r"got a list that holds int\. .* here, use Graphs.from_smiles for SMILES .*, Graphs.from_edges"),
        ([Graphs.from_edges([[]]), "C"], "got a list that holds str"),
    ],
)
def test_objects_that_are_not_lists_of_graphs_raise(given_as, message):
    with pytest.raises(InvalidGraphError, match=message):
        as_graphs(given_as)


# -------------------------------------------------------------------- notebook view and subgraphs


def test_notebook_view_has_a_table_and_drawings_and_is_escaped():
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)], [], [(i, i + 1) for i in range(99)]],
        labels=[["<b>", "C", "O"], ["C"], ["C"] * 100],
        attributes=[np.zeros((3, 2)), np.zeros((1, 2)), np.zeros((100, 2))],
        edge_labels=[["<i>", "-"], [], ["-"] * 99],
        edge_attributes=[[[0.5], [1.5]], [], [[1.0]] * 99],
        targets=["<script>", "b", "b"],
    )
    page = graphs._repr_html_()
    for tag in ("<script>", "<b>", "<i>"):
        assert tag not in page
        assert tag.replace("<", "&lt;").replace(">", "&gt;") in page
    for text in ("3, undirected", "104, 34.7 per graph", "2 columns", "1 column", "graph 1: b"):
        assert text in page
    assert all(
        page.count(f"<{tag}") == page.count(f"</{tag}>") for tag in ("table", "tr", "td", "svg", "figure", "div")
    )


def test_notebook_view_has_no_overlapping_nodes_and_omits_a_constant_label():
    path = Graphs.from_edges([[(i, i + 1) for i in range(20)]], labels=[["C"] * 21])
    page = path._repr_html_()
    circles = re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)" r="([\d.]+)"', page)
    x, y, r = np.array(circles, dtype=float).T
    assert (np.hypot(np.diff(x), np.diff(y)) > 2 * r[0]).all()
    assert "<text" not in page


@pytest.mark.parametrize("name", sorted(COLLECTIONS))
def test_every_collection_has_a_notebook_view(name):
    page = COLLECTIONS[name].pack()._repr_html_()
    assert page.startswith('<div style="overflow-x:auto">\n<table>')
    assert not re.search(r"\bnan\b", page)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 3], r"nodes must be numbers from 0 to 2, or a mask of 3 entries; got \[0, 3\]"),
        ([-1], r"nodes must be numbers from 0 to 2, .* got \[-1\]"),
        ([0.5], r"nodes must be numbers from 0 to 2, .* got \[0.5\]"),
        ([True, False], "or a mask of 3 entries; got"),
        ([[0]], r"nodes must be numbers .* got \[\[0\]\]"),
    ],
)
def test_subgraphs_rejects_invalid_nodes(nodes, message):
    with pytest.raises(InvalidGraphError, match=message):
        Graphs.from_edges([[(0, 1), (1, 2)]]).subgraph(nodes)


def test_replaced_attributes_are_checked_and_the_rest_is_kept():
    graphs = Graphs.from_edges([[(0, 1)]], labels=[["C", "O"]], attributes=[[[1.0], [2.0]]], targets=[1])
    other = graphs.assign(attributes=[[5.0, 6.0], [7.0, 8.0]])
    assert other.attributes.tolist() == [[5.0, 6.0], [7.0, 8.0]]
    assert other.assign(attributes=[1.0, 2.0]) == graphs
    assert graphs.assign(attributes=None) == Graphs.from_edges([[(0, 1)]], labels=[["C", "O"]], targets=[1])
    with pytest.raises(InvalidGraphError, match="one row per node"):
        graphs.assign(attributes=[[1.0]])
    with pytest.raises(InvalidGraphError, match="not finite"):
        graphs.assign(attributes=[[1.0], [np.nan]])
    assert graphs.assign(labels=["N", "N"]).label_values == ("N",)
    assert graphs.assign(labels=None).labels is None
    with pytest.raises(InvalidGraphError, match="labels must have one entry for each of the 2 nodes; got 1"):
        graphs.assign(labels=["N"])


@pytest.mark.parametrize("given", [{"labels": [["C", "O"], 3]}, {"edge_labels": [["-"], 1.5]}])
def test_scalar_instead_of_a_list_raises(given):
    # Found by benchmarks/fuzz.py.
    with pytest.raises(InvalidGraphError, match=f"Graph 1: {next(iter(given))} must be a list"):
        Graphs.from_edges([[(0, 1)], [(0, 1)]], **given)


# -------------------------------------------------------------------- mistakes reported by users


def test_input_view_is_copied_so_its_base_can_change():
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]], attributes=[[[1.0], [2.0], [3.0]]])
    base = np.arange(6.0)
    indices = np.append(graphs.indices, 0)
    same = dataclasses.replace(graphs, attributes=base.reshape(3, 2), indices=indices[:-1])
    base[:] = np.nan
    indices[:] = 10**6
    assert same.attributes.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert np.array_equal(same.indices, graphs.indices)


def test_too_many_nodes_raise():
    with pytest.raises(InvalidGraphError, match=r"offsets must end with the number of nodes, at most 2,147,483,647"):
        Graphs.from_arrays([0, 2**62], np.empty((0, 2), np.int64))


def test_smiles_raise_with_a_hint():
    with pytest.raises(InvalidGraphError, match=r"holds str\. .* use Graphs.from_smiles for SMILES"):
        as_graphs(["CCO", "CC"])
