"""Tests of words: real names of features of each kernel, of columns and of labels, and names of any form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treegram import NSPDK, ODDST, P2K, WL, WLOA, Graphlets, Graphs, RandomWalk
from treegram.explanations.words import column_words, feature_words, label_words, parse_tree, split_edge

EDGES = [[(0, 1), (1, 2), (1, 3)], [(0, 1)], []]
LABELS = [["C", "C", "O", "N"], ["C", "O"], ["O"]]
BONDS = [["single", "double", "single"], ["single"], []]
TUPLES = [
    [("C", "hydrophobe"), ("C", ""), ("O", "acceptor"), ("N", "donor basic")],
    [("C", ""), ("O", "donor")],
    [("O", "")],
]


def words_of(kernel, labels=LABELS):
    graphs = Graphs.from_edges(EDGES, n_nodes=[4, 2, 1], labels=labels, edge_labels=BONDS)
    kernel.fit(graphs)
    name_of = kernel._name_reader()
    names = [name_of(column) for column in range(kernel._fitted_counts.shape[1])]
    return {name: feature_words(name) for name in names}


@pytest.mark.filterwarnings("ignore:.* does not use the edge labels")
@pytest.mark.parametrize(
    ("kernel", "labels", "expected"),
    [
        (WL(1), LABELS, {"C": "C", "C(C,N,O)": "C bonded to C, N and O", "O()": "O without neighbors"}),
        (WL(2), LABELS, {"C(C(C,N,O))": "C bonded to C (bonded to C, N and O)", "O()()": "O without neighbors"}),
        (
            WL(1, use_edge_labels=True),
            LABELS,
            {"C(double:O,single:C,single:N)": "C with a double bond to O and single bonds to C and N"},
        ),
        (WLOA(1), LABELS, {"C #2": "at least two C", "C(C) #1": "at least one C bonded to C"}),
        (WLOA(1), [["x", 3, 3, 3], ["x", 3], [3]], {"3(3,3,x) #1": "at least one node labeled 3 next to 3, 3 and x"}),
        (ODDST(depth=2), LABELS, {"N(C(C,O))": "N bonded to C (bonded to C and O)"}),
        (
            ODDST(depth=1),
            [["LYS", "GLY", "LYS", "LYS"], ["a b", "a/b"], [7]],
            {"GLY(LYS,LYS,LYS)": "GLY next to three LYS"},
        ),
        (
            WL(1),
            TUPLES,
            {
                "C/": "other C",
                "N/donor basic": "N (donor basic)",
                "C/(C/hydrophobe,N/donor basic,O/acceptor)": "other C bonded to C (hydrophobe), N (donor basic) and O (acceptor)",
            },
        ),
        (
            WLOA(0),
            [[1, 1, 1, 2], [1, 1], [2]],
            {"1 #3": "at least three nodes labeled 1", "2 #1": "at least one node labeled 2"},
        ),
        (RandomWalk(n_steps=1, use_labels=True, use_edge_labels=True), LABELS, {"C-double:O": "C-double:O"}),
        (Graphlets(max_size=4), LABELS, {"star 4": "star 4"}),
        (
            P2K(n_iterations=1),
            LABELS,
            {"iteration 0, bin 1": "nodes in bin 1", "iteration 1, bin 0": "nodes in bin 0 after 1 step"},
        ),
    ],
)
def test_real_names_in_words(kernel, labels, expected):
    words = words_of(kernel, labels)
    assert {name: words.get(name) for name in expected} == expected


@pytest.mark.filterwarnings("ignore:.* does not use the edge labels")
def test_hashes_of_nspdk_are_pairs_of_neighborhoods():
    for name, words in words_of(NSPDK(1, distance=1)).items():
        assert words == f"pair of neighborhoods {name}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("WLOA: O #1", "at least one O"),
        ("ODDST: C(C,C)", "C bonded to two C"),
        ("C #13", "at least 13 C"),
        ('"a(b" #2', "at least two a(b"),
        ('"a: b"(C)', "a: b next to C"),
        ('C("1":"a:b","1":N)', "C with edges labeled 1 to a:b and N"),
        ("C(double E:C)", "C with a double E bond to C"),
        ("C(aromatic:C)", "C with an aromatic bond to C"),
        ("C(single:C,single:C)", "C with single bonds to two C"),
        ("C(1:3,1:3)", "C with edges labeled 1 to 3 and 3"),
        ("C(C(C(C)))", "C bonded to C (bonded to C (bonded to C))"),
        ("C(" + ",".join(f"C(N{i},O{i},S{i})" for i in range(5)) + ")", "C with its surroundings, 2 steps deep"),
        ("C((", "C(("),
        ("", ""),
    ],
)
def test_names_of_any_form(name, words):
    assert feature_words(name) == words


def test_columns_and_labels():
    assert column_words("erg: donor acceptor 2") == "donor and acceptor, 2 bonds apart"
    assert column_words("donor donor 1") == "donor and donor, 1 bond apart"
    assert column_words("rdkit2d: TPSA") == "TPSA"
    assert column_words("degree_mean") == "degree_mean"
    assert label_words(("C", 1, "")) == "C (1)"
    assert label_words(("", "")) == "/"
    assert label_words((1, 2), is_plural=True) == "nodes labeled 1/2"
    assert label_words("N/A") == "N/A"


@given(st.text())
def test_words_never_raise(name):
    assert isinstance(feature_words(name), str)
    assert isinstance(column_words(name), str)
    label_words((name, name))


@given(st.text(), st.text())
def test_quoted_labels_are_read_back(edge, node):
    graphs = Graphs.from_edges([[(0, 1)]], labels=[["A", node]], edge_labels=[[edge]])
    kernel = WL(1, use_edge_labels=True).fit(graphs)
    names = [kernel._name_reader()(column) for column in range(kernel._fitted_counts.shape[1])]
    trees = [parse_tree(name) for name in names if name.startswith("A(")]
    assert [split_edge(tree[1][0][0]) for tree in trees] == [(edge, node)] * len(trees)
    assert trees
