"""Tests of rooted trees: codes, sizes and counts, against the nested tuples of the oracle."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from strategies import collections
from treegram import Graphs
from treegram.exceptions import InvalidGraphError
from treegram.structure import trees
from treegram.structure.hashing import arc_hashes, hash_label, node_hashes
from treegram.structure.trees import Phi, read_tree, tree_features
from treegram.structure.visits import visit
from zoo import COLLECTIONS, Collection

# Codes are stored in fitted kernels and must mean the same wherever these are loaded: they must never change.
LABEL_HASHES = {
    0: 0xEF1056F41B5A6E6A,
    -7: 0x0C385681BCAE4187,
    10**30: 0x0A54B24A31E81A89,
    1.5: 0x6812483DDAD81531,
    "C": 0x5523BEDB1A7B3627,
    "": 0xEAD05591ECCFEAEC,
    ("C", 1): 0x2E480E1908F9E045,
    ("C", ("x", 2)): 0xD17F11840DB54AEA,
}
TREE_CODES = {
    "C": 0x14C252702AE21FC4,
    "N": 0x97345CD198C7D3E2,
    "C(N)": 0x7A03BFA97455ABC0,
    "N(C,C,O)": 0xA9B73A5989B29EA6,
    "C(N(C,O))": 0xA64E64BA9211744B,
    "O(N(C,C))": 0x102AA4601BF6BE23,
}
EDGE_LABELED_CODES = {
    "C": 0x14C252702AE21FC4,
    "C(1:N)": 0xB2B434DC40A55A78,
    "C(2:N)": 0xF3F141FA3E19660A,
    "C(2:N(1:C,1:O))": 0x027E51D52445D4AC,
}
FORK = Graphs.from_edges([[(0, 1), (1, 2), (1, 3)]], labels=[["C", "N", "C", "O"]], edge_labels=[[1, 2, 1]])


def spelled(graphs, phi, *, missing_labels="degree", use_edge_labels=False):
    """Return the name of every tree of phi, in the order of its columns."""
    return [
        read_tree(graphs, example, missing_labels=missing_labels, use_edge_labels=use_edge_labels)
        for example in phi.examples
    ]


def codes_by_name(graphs, depth, **options):
    phi = tree_features(graphs, depth, **options)
    return dict(zip(spelled(graphs, phi, **_reading(options)), phi.codes.tolist(), strict=True))


def _reading(options):
    return {key: value for key, value in options.items() if key in ("missing_labels", "use_edge_labels")}


# -------------------------------------------------------------------- codes


@pytest.mark.parametrize("label", LABEL_HASHES, ids=repr)
def test_label_hashes_never_change(label):
    assert hash_label(label) == LABEL_HASHES[label]


def test_tree_codes_never_change():
    assert TREE_CODES.items() <= codes_by_name(FORK, 2).items()
    assert EDGE_LABELED_CODES.items() <= codes_by_name(FORK, 2, use_edge_labels=True).items()


def test_labels_of_different_type_or_nesting_have_different_hashes():
    labels = [
        0,
        "0",
        (0,),
        ((0,),),
        ("0",),
        (0, 0),
        ("0,0",),
        "(0)",
        "",
        (),
        ("",),
        "int:0",
        ("a", "b"),
        ("a,b",),
        ("a','b",),
    ]
    assert len({hash_label(label) for label in labels}) == len(labels)


def test_codes_are_equal_in_a_process_with_another_hash_seed():
    program = (
        "from treegram import Graphs\n"
        "from treegram.structure.trees import tree_features\n"
        "g = Graphs.from_edges([[(0, 1), (1, 2), (1, 3)]], labels=[[('C', 'x'), 'N', 0, ('C', 'x')]])\n"
        "print(*tree_features(g, 2).codes.tolist())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    graphs = Graphs.from_edges([[(0, 1), (1, 2), (1, 3)]], labels=[[("C", "x"), "N", 0, ("C", "x")]])
    assert printed.split() == [str(code) for code in tree_features(graphs, 2).codes.tolist()]


def test_codes_do_not_depend_on_the_rest_of_the_collection():
    """Label codes and node numbers differ between a single graph and a collection; tree codes do not."""
    collection = COLLECTIONS["edge_labels"]
    together = codes_by_name(collection.pack(), 3)
    for g in range(len(collection)):
        assert codes_by_name(collection.take([g]).pack(), 3).items() <= together.items()


def test_children_are_unordered_and_counted():
    left, right, fewer = (
        Graphs.from_edges([[(0, 1), (0, 2), (0, 3)][: len(labels) - 1]], labels=[labels])
        for labels in (["C", "N", "O", "N"], ["C", "N", "N", "O"], ["C", "N", "O"])
    )
    assert codes_by_name(left, 1)["C(N,N,O)"] == codes_by_name(right, 1)["C(N,N,O)"]
    assert codes_by_name(left, 1)["C(N,N,O)"] != codes_by_name(fewer, 1)["C(N,O)"]


def test_different_trees_have_different_codes():
    for name in ("edge_labels", "directed", "no_labels"):
        graphs = COLLECTIONS[name].pack()
        phi = tree_features(graphs, 3)
        assert len(set(spelled(graphs, phi))) == len(phi.codes)


# -------------------------------------------------------------------- counts and sizes, against the oracle


def assert_counts(collection, depth, **options):
    graphs = collection.pack()
    phi = tree_features(graphs, depth, **options)
    names = spelled(graphs, phi, **_reading(options))
    assert (np.diff(phi.codes.astype(object)) > 0).all()
    sizes = dict(zip(names, phi.sizes, strict=True))
    for g in range(len(collection)):
        F = naive.tree_counts(collection, g, depth, **options)
        for v, expected in enumerate(F):
            row = phi.counts[graphs.offsets[g] + v]
            actual = Counter({names[t]: count for t, count in zip(row.indices, row.data, strict=True)})
            use = options.get("use_edge_labels", False)
            assert actual == Counter({naive.spell(t, use_edge_labels=use): n for t, n in expected.items()})
            assert all(sizes[naive.spell(t, use_edge_labels=use)] == naive.size(t) for t in expected)


NAMED = [name for name in COLLECTIONS if name not in ("integer_labels", "tuple_labels")]


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("depth", [0, 1, 2, 4])
@pytest.mark.parametrize("name", NAMED)
def test_counts_match_the_oracle(name, depth, counting):
    assert_counts(COLLECTIONS[name], depth, counting=counting)


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("name", ["edge_labels", "directed_edge_labels"])
def test_counts_with_edge_labels_match_the_oracle(name, counting):
    assert_counts(COLLECTIONS[name], 2, counting=counting, use_edge_labels=True)


def test_counts_with_a_constant_label_match_the_oracle():
    assert_counts(COLLECTIONS["bare"], 3, missing_labels="constant")


@settings(max_examples=60, deadline=None)
@given(collections(dimension=0), st.integers(0, 4), st.sampled_from(naive.COUNTINGS))
def test_counts_match_the_oracle_on_any_collection(collection, depth, counting):
    if collection.labels is not None:  # names without commas, so that a tree can be parsed unambiguously
        known = {value: f"L{i}" for i, value in enumerate(dict.fromkeys(v for g in collection.labels for v in g))}
        collection = type(collection)(
            collection.edges,
            collection.n_nodes,
            [[known[value] for value in graph] for graph in collection.labels],
            None,
            collection.edge_labels,
            collection.directed,
        )
    assert_counts(collection, depth, counting=counting, use_edge_labels=collection.edge_labels is not None)


def test_visits_of_a_smaller_depth_are_part_of_those_of_a_larger_one():
    graphs = COLLECTIONS["edge_labels"].pack()
    for counting in ("visits", "capped"):
        small, large = (tree_features(graphs, depth, counting=counting) for depth in (1, 3))
        difference = large.counts - small.aligned(large.codes)
        assert difference.min() == 0
        assert difference.max() > 0


@pytest.mark.parametrize("nodes_per_task", [1, 7, 10**6])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_size_and_number_of_tasks_change_no_bit(monkeypatch, nodes_per_task, n_jobs):
    graphs = COLLECTIONS["edge_labels"].pack()
    expected = tree_features(graphs, 3)
    monkeypatch.setattr(trees, "NODES_PER_TASK", nodes_per_task)
    phi = tree_features(graphs, 3, n_jobs=n_jobs)
    np.testing.assert_array_equal(phi.codes, expected.codes)
    np.testing.assert_array_equal(phi.sizes, expected.sizes)
    np.testing.assert_array_equal(phi.counts.toarray(), expected.counts.toarray())


def test_tables_grow_for_many_trees_in_one_graph():
    """A graph with far more trees than initially allocated."""
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(59)] + rng.integers(60, size=(40, 2)).tolist()
    graphs = Graphs.from_edges([edges, [(0, 1)]], labels=[rng.integers(4, size=60).tolist(), [0, 1]])
    phi = tree_features(graphs, 6, counting="visits")
    assert phi.counts.nnz > 16 * graphs.n_nodes + 64
    # Each visit of depth q counts each of its nodes once.
    distances = [naive.distances([dict.fromkeys(_around(graphs, v)) for v in range(62)], r) for r in range(62)]
    expected = sum(sum(d <= q for d in distance.values()) for distance in distances for q in range(7))
    assert phi.counts.sum() == expected


def test_nodes_with_the_same_trees_have_separate_records():
    """On a long cycle all nodes share all trees: records differ only in their node."""
    short, long = (Graphs.from_edges([[(i, (i + 1) % n) for i in range(n)]], labels=[["C"] * n]) for n in (12, 700))
    small, large = tree_features(short, 4), tree_features(long, 4)
    np.testing.assert_array_equal(large.codes, small.codes)
    expected = naive.tree_counts(Collection([[(i, (i + 1) % 12) for i in range(12)]], [12], [["C"] * 12]), 0, 4)
    assert sorted(small.counts[0].data) == sorted(expected[0].values())
    np.testing.assert_array_equal(large.counts.toarray(), np.tile(small.counts[0].toarray(), (700, 1)))


def _around(graphs, v):
    return graphs.indices[graphs.indptr[v] : graphs.indptr[v + 1]].tolist()


# -------------------------------------------------------------------- sizes


def layers(width, n_layers, *, directed):
    """Return layers of ``width`` nodes, each joined to all nodes of the next layer."""
    edges = [
        (width * i + a, width * (i + 1) + b) for i in range(n_layers - 1) for a in range(width) for b in range(width)
    ]
    return Graphs.from_edges([edges], labels=[[0] * (width * n_layers)], directed=directed)


def test_sizes_of_the_trees_of_a_star():
    star = Graphs.from_edges([[(0, i) for i in range(1, 8)]], labels=[["C"] + ["O"] * 7])
    phi = tree_features(star, 1)
    assert dict(zip(spelled(star, phi), phi.sizes, strict=True)) == {"C": 1, "O": 1, "O(C)": 2, "C(O,O,O,O,O,O,O)": 8}


def test_sizes_grow_exponentially_and_stay_exact():
    phi = tree_features(layers(6, 9, directed=True), 8)
    assert phi.sizes.max() == sum(6**j for j in range(9))
    phi = tree_features(layers(6, 9, directed=False), 8)
    # Seen from one node of the first layer, its other nodes are below the second.
    assert phi.sizes.max() == sum(6**j for j in range(9)) + 6 * 5


def test_complete_bipartite_graphs_have_shallow_trees():
    n = 12
    graph = Graphs.from_edges([[(i, n + j) for i in range(n) for j in range(n)]], labels=[["C"] * n + ["O"] * n])
    phi = tree_features(graph, 8)
    assert phi.sizes.max() == 1 + n + n * (n - 1)


def test_star_of_stars_has_exact_sizes():
    arms = 9
    edges = [(0, i) for i in range(1, arms + 1)] + [
        (i, arms + 1 + (i - 1) * arms + j) for i in range(1, arms + 1) for j in range(arms)
    ]
    phi = tree_features(Graphs.from_edges([edges], labels=[[0] * (1 + arms + arms * arms)]), 8)
    assert phi.sizes.max() == 1 + arms + arms * arms


def test_sizes_beyond_2_to_the_53_stay_finite():
    phi = tree_features(layers(30, 15, directed=True), 14)
    assert np.isfinite(phi.sizes).all()
    assert phi.sizes.max() == pytest.approx(sum(30.0**j for j in range(15)), rel=1e-14)


def test_sizes_beyond_the_largest_double_stay_finite():
    """3^650 exceeds the largest double: a size must then be capped, or weights become inf - inf."""
    graphs, depth = layers(3, 656, directed=True), 655
    n = graphs.n_nodes
    seen, arcs = trees.new_visit(n, depth), (graphs.indptr, graphs.indices)
    seen.sizes[:] = 0.0
    n_visited = visit(0, depth, 0, *arcs, seen.order, seen.distance)
    assert n_visited == n - 2
    hashes = (node_hashes(graphs, "degree"), arc_hashes(graphs, use_edge_labels=False))
    trees.encode(n_visited, depth, 0, arcs, hashes, seen)
    assert np.isfinite(seen.sizes).all()


# -------------------------------------------------------------------- Phi


def make_phi(codes):
    n = len(codes)
    counts = sp.csr_matrix(np.arange(1.0, 2 * n + 1).reshape(2, n))
    return Phi(counts, np.array(codes, np.uint64), np.ones(n), np.zeros((n, 3), np.int64))


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([3, 5, 9], [[1, 2, 3], [4, 5, 6]]),
        ([5, 9], [[2, 3], [5, 6]]),
        ([1, 3, 4, 9, 2**64 - 1], [[0, 1, 0, 3, 0], [0, 4, 0, 6, 0]]),
        ([1, 2], [[0, 0], [0, 0]]),
        ([10, 11], [[0, 0], [0, 0]]),
        ([], [[], []]),
    ],
)
def test_aligned_moves_columns_to_the_given_codes(codes, expected):
    aligned = make_phi([3, 5, 9]).aligned(np.array(codes, np.uint64))
    assert aligned.shape == (2, len(codes))
    np.testing.assert_array_equal(aligned.toarray(), np.reshape(expected, aligned.shape))


def test_aligned_without_trees_has_empty_columns():
    assert not Phi(
        sp.csr_matrix((4, 0)), np.empty(0, np.uint64), np.empty(0), np.empty((0, 3), np.int64)
    ).aligned(np.array([7, 8], np.uint64)).toarray().any()  # fmt: skip


def test_each_tree_is_at_the_node_recorded_in_phi():
    graphs = COLLECTIONS["edge_labels"].pack()
    phi = tree_features(graphs, 3)
    for t, (root, node, j) in enumerate(phi.examples):
        assert graphs.graph_ids[root] == graphs.graph_ids[node]
        assert phi.counts[node, t] > 0
        assert 0 <= j <= 3


# -------------------------------------------------------------------- names of trees


def test_tree_name_sorts_the_children():
    graphs = Graphs.from_edges([[(0, 1), (0, 2), (2, 3)]], labels=[["C", "O", "N", "C"]])
    assert "C(N(C),O)" in codes_by_name(graphs, 2)


def test_tree_names_without_labels_show_degrees_or_zeros():
    path = Graphs.from_edges([[(0, 1), (1, 2)]])
    assert set(codes_by_name(path, 1)) == {"1", "2", "1(2)", "2(1,1)"}
    assert set(codes_by_name(path, 1, missing_labels="constant")) == {"0", "0(0)", "0(0,0)"}


def test_missing_edge_labels_raise():
    with pytest.raises(InvalidGraphError, match="use_edge_labels=True, but the graphs have no edge labels"):
        tree_features(Graphs.from_edges([[(0, 1)]]), 1, use_edge_labels=True)


def test_slice_hashes_only_its_own_labels(monkeypatch):
    """A collection keeps the values of all labels; a slice uses few of them, and does not hash the rest."""
    graphs = Graphs.from_edges([[(0, 1)]] * 50, labels=[[f"a{i}", f"b{i}"] for i in range(50)])
    hashed = []

    def listed(value):
        hashed.append(value)
        return hash_label(value)

    monkeypatch.setattr("treegram.structure.hashing.hash_label", listed)
    node_hashes(graphs[7:9], "degree")
    assert sorted(hashed) == ["a7", "a8", "b7", "b8"]
