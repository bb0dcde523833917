"""Tests of CSM: worked examples, the naive oracle, GraKeL, and properties."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_matching
from checks import gram_array
from strategies import collections, in_two_parts
from treegram import CSM, Graphs
from treegram.exceptions import InvalidGraphError
from treegram.kernels.attribution import kernel_contributions
from treegram.pairsum import matching, tiles
from zoo import COLLECTIONS, Collection

SEARCH = settings(max_examples=60, deadline=None)
Q = math.exp(-1)


def scale_of(rows, columns):
    return np.sqrt(np.abs(rows))[:, None] * np.sqrt(np.abs(columns))[None, :]


def assert_same_gram(actual, expected, rows=None, columns=None):
    """Compare entries relative to sqrt(K(G, G) K(G', G')), the scale of a skipped matching."""
    expected = np.array(expected, dtype=float).reshape(actual.shape)
    rows, columns = (expected.diagonal() if d is None else np.array(d, dtype=float) for d in (rows, columns))
    assert np.isfinite(actual).all()
    assert (np.abs(actual - expected) <= 1e-12 * scale_of(rows, columns) + 1e-300).all(), (actual, expected)


def default_gamma(collection):
    vectors = [vector for graph in collection.attributes or [] for vector in graph]
    return 1.0 / len(vectors[0]) if vectors else 1.0


# -------------------------------------------------------------------- worked examples: BASELINES section 10

P2 = ([(0, 1)], [[0.0], [1.0]])
P3 = ([(0, 1), (1, 2)], [[0.0], [1.0], [0.0]])
K3 = ([(0, 1), (1, 2), (2, 0)], [[0.0], [0.0], [1.0]])
C4 = ([(0, 1), (1, 2), (2, 3), (3, 0)], [[0.0]] * 4)


def gram(*graphs, **options):
    packed = Graphs.from_edges([edges for edges, _ in graphs], attributes=[vectors for _, vectors in graphs])
    return CSM(normalize=False, **options).fit_transform(packed)


@pytest.mark.parametrize(
    ("first", "second", "by_size"),
    [
        pytest.param(P2, P2, [2 + 2 * Q, 1 + Q**2, 0], id="P2,P2"),
        pytest.param(P2, P3, [3 + 3 * Q, 2 + 2 * Q**2, 0], id="P2,P3"),
        pytest.param(P3, P3, [5 + 4 * Q, 4 + 4 * Q**2, 2], id="P3,P3"),
        pytest.param(P3, K3, [5 + 4 * Q, 4 + 4 * Q + 4 * Q**2, 0], id="P3,K3"),
        pytest.param(C4, C4, [16, 32, 32, 8], id="C4,C4"),
    ],
)
def test_worked_examples(first, second, by_size):
    for max_size in range(1, 6):
        expected = sum(by_size[:max_size])
        assert gram(first, second, max_size=max_size)[0, 1] == pytest.approx(expected, rel=1e-14)
    for size, value in enumerate(by_size):
        only = [0.0] * 5
        only[size] = 1.0
        assert gram(first, second, max_size=5, weights=only)[0, 1] == pytest.approx(value, rel=1e-14)


def test_printed_decimals():
    assert gram(P2, P3)[0, 1] == pytest.approx(6.374309, abs=5e-7)
    assert gram(P3, P3)[0, 0] == pytest.approx(13.012859, abs=5e-7)
    assert gram(P3, K3)[0, 1] == pytest.approx(12.484377, abs=5e-7)
    assert gram(C4, C4, max_size=4)[0, 1] == 88


# -------------------------------------------------------------------- the oracle

SETTINGS = [
    {"max_size": 1},
    {"max_size": 2, "weights": [0.5, 2.0]},
    {"max_size": 3},
    {"max_size": 3, "use_labels": True, "weights": [1.0, 0.0, 3.0, 7.0]},
    {"max_size": 3, "use_labels": True, "missing_labels": "constant"},
    {"max_size": 4, "use_labels": True},
]


def name(options):
    return "-".join(str(value) for value in options.values())


@pytest.mark.parametrize("options", SETTINGS, ids=name)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_zoo_matches_the_oracle(collection, options):
    expected = naive_matching.csm(collection, collection, naive.rbf(default_gamma(collection)), **options)
    assert_same_gram(CSM(**options, normalize=False).fit_transform(collection.pack()), expected)


WITH_EDGE_LABELS = {key: c for key, c in COLLECTIONS.items() if c.edge_labels is not None}


@pytest.mark.parametrize("collection", WITH_EDGE_LABELS.values(), ids=WITH_EDGE_LABELS)
@pytest.mark.parametrize("max_size", [2, 3])
def test_edge_labels_match_the_oracle(collection, max_size):
    options = {"max_size": max_size, "use_edge_labels": True}
    expected = naive_matching.csm(collection, collection, naive.rbf(default_gamma(collection)), **options)
    assert_same_gram(CSM(**options, normalize=False).fit_transform(collection.pack()), expected)


def finite_distances(collection):
    """Return whether |x - y|^2 is finite: 0 * inf is NaN, though exp(-0 |x - y|^2) is 1."""
    largest = max((abs(x) for g in collection.attributes or [] for v in g for x in v), default=0.0)
    return largest < 1e150


OPTIONS = st.fixed_dictionaries(
    {
        "max_size": st.integers(1, 5),
        "use_labels": st.booleans(),
        "missing_labels": st.sampled_from(["degree", "constant"]),
    }
)


@SEARCH
@given(collections(), OPTIONS, st.sampled_from([0.0, 1e-3, 0.5, None, 20.0]))
def test_any_collection_matches_the_oracle(collection, options, gamma):
    options["use_edge_labels"] = collection.edge_labels is not None
    literal = naive.rbf(default_gamma(collection) if gamma is None else gamma)
    if gamma == 0.0 and not finite_distances(collection):
        literal = lambda x, y: 1.0  # noqa: E731
    expected = np.reshape(naive_matching.csm(collection, collection, literal, **options), (len(collection),) * 2)
    fitted = CSM(**options, gamma=gamma, normalize=False)
    assert_same_gram(fitted.fit_transform(collection.pack()), expected)
    assert_same_gram(fitted.transform(collection.pack()), expected)
    normalized = CSM(**options, gamma=gamma).fit_transform(collection.pack())
    diagonal = expected.diagonal()
    expected = np.reshape(naive.normalized(expected, diagonal, diagonal), expected.shape)
    np.testing.assert_allclose(normalized, expected, rtol=0, atol=1e-12)


@SEARCH
@given(collections(directed=False, edge_labels=False, min_graphs=2), st.booleans())
def test_closed_forms_match_enumeration(collection, use_labels):
    """The sums for max_size=3 use closed forms, and those for max_size=4 include them by enumeration."""
    graphs = collection.pack()
    closed = CSM(3, use_labels=use_labels, normalize=False).fit_transform(graphs)
    enumerated = CSM(4, weights=[1, 1, 1, 0], use_labels=use_labels, normalize=False).fit_transform(graphs)
    assert_same_gram(closed, enumerated)


def rational(X, Y):
    return 1.0 / (1.0 + ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


NODE_KERNELS = {
    "linear": ("linear", naive.linear),
    "laplacian": ("laplacian", naive.laplacian(0.6)),
    "poly": ("poly", naive.poly(0.6)),
    "function": (rational, lambda x, y: 1.0 / (1.0 + sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))),
}


@SEARCH
@given(
    collections(dimension=2, scale="plain", directed=False, edge_labels=False),
    st.sampled_from(sorted(NODE_KERNELS)),
    st.integers(1, 4),
    st.booleans(),
)
def test_node_kernels_match_the_oracle(collection, node_kernel, max_size, use_labels):
    given_kernel, literal = NODE_KERNELS[node_kernel]
    options = {"max_size": max_size, "use_labels": use_labels}
    kernel = CSM(**options, gamma=0.6, node_kernel=given_kernel, normalize=False)
    expected = naive_matching.csm(collection, collection, literal, **options)
    # Values of both signs may cancel to 0: the scale is that of the terms, including those of the closed forms.
    bound = naive_matching.csm(collection, collection, lambda x, y: 1 + abs(literal(x, y)), **options)
    actual = kernel.fit_transform(collection.pack())
    difference = np.abs(actual - np.reshape(expected, actual.shape))
    assert (difference <= 1e-11 * (1 + np.reshape(bound, actual.shape))).all()
    assert_same_gram(kernel.transform(collection.pack()), actual, *[bound_diagonal(bound)] * 2)


def bound_diagonal(bound):
    return [row[i] for i, row in enumerate(bound)]


def test_node_kernel_does_not_matter_without_attributes():
    collection = COLLECTIONS["no_attributes"]
    expected = naive_matching.csm(collection, collection, None, max_size=3, use_labels=True)
    for node_kernel in ("rbf", "linear", rational):
        kernel = CSM(use_labels=True, node_kernel=node_kernel, normalize=False)
        assert_same_gram(kernel.fit_transform(collection.pack()), expected)


@SEARCH
@given(in_two_parts(directed=False, min_graphs=1), st.booleans(), st.sampled_from([3, 4]))
def test_transform_of_new_graphs_equals_the_block_of_the_whole(parts, use_labels, max_size):
    """The two parts are packed separately, so that each has labels that the other has not."""
    collection, in_first = parts
    options = {"max_size": max_size, "use_labels": use_labels, "use_edge_labels": collection.edge_labels is not None}
    old, new = np.flatnonzero(in_first), np.flatnonzero(~np.array(in_first))
    whole = CSM(**options, gamma=0.5).fit_transform(collection.pack())
    part = CSM(**options, gamma=0.5).fit(collection.take(old).pack()).transform(collection.take(new).pack())
    np.testing.assert_allclose(part, whole[np.ix_(new, old)], rtol=0, atol=1e-12)


# -------------------------------------------------------------------- explanations


def assert_same_shares(kernel, collection, literal, options):
    """Compare with one output per training graph, relative to the self-similarities."""
    fitted = kernel.fit(collection.pack())
    shares = kernel_contributions(fitted, fitted.graphs_, np.eye(len(collection)), spread=False)
    expected = naive_matching.csm_shares(collection, collection, literal, **options)
    rows = [np.array(row, dtype=float).reshape(len(collection), -1).T for row in expected]
    selves = np.array(bound_diagonal(naive_matching.csm(collection, collection, literal, **options)), dtype=float)
    for g, row in enumerate(rows):
        actual = shares[fitted.graphs_.offsets[g] : fitted.graphs_.offsets[g + 1]]
        bound = 1e-9 * np.sqrt(selves[g] * selves) + 1e-300
        assert (np.abs(actual - row) <= bound).all(), (g, actual, row)


@pytest.mark.parametrize("options", SETTINGS, ids=name)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_shares_of_the_zoo_match_the_oracle(collection, options):
    literal = naive.rbf(default_gamma(collection))
    assert_same_shares(CSM(**options, normalize=False), collection, literal, options)


@SEARCH
@given(
    collections(min_graphs=1),
    OPTIONS,
    st.sampled_from([0.0, 1e-3, 0.5, None, 20.0]),
    st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=5, max_size=5),
)
def test_shares_of_any_collection_match_the_oracle(collection, options, gamma, weights):
    options |= {"use_edge_labels": collection.edge_labels is not None, "weights": weights}
    literal = naive.rbf(default_gamma(collection) if gamma is None else gamma)
    if gamma == 0.0 and not finite_distances(collection):
        literal = lambda x, y: 1.0  # noqa: E731
    assert_same_shares(CSM(**options, gamma=gamma, normalize=False), collection, literal, options)


def test_shares_of_a_complete_graph_match_the_oracle():
    """Triangles in both graphs, with nodes that are all equal, equal by label, or close to each other."""
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(5, 2)).tolist() for _ in range(3)]
    edges = [list(combinations(range(5), 2)), [*combinations(range(4), 2), (3, 4)], [(0, 1), (1, 2), (0, 2)]]
    labels = [["a", "b", "a", "b", "a"]] * 3
    for given_labels, given_vectors in ((None, vectors), (labels, None), (labels, vectors), (None, None)):
        collection = Collection(edges, [5, 5, 5], labels=given_labels, attributes=given_vectors)
        options = {"max_size": 3, "use_labels": given_labels is not None}
        assert_same_shares(CSM(**options, normalize=False), collection, naive.rbf(0.5), options)


@pytest.mark.parametrize("options", [{}, {"max_size": 4}, {"node_kernel": "laplacian"}], ids=name)
def test_size_and_number_of_tasks_do_not_change_shares(monkeypatch, options):
    graphs = COLLECTIONS["edge_labels"].pack()
    weights = np.random.default_rng(0).normal(size=(len(graphs), 2))
    shares = kernel_contributions(CSM(**options).fit(graphs), graphs, weights, spread=False)
    monkeypatch.setattr(matching, "ROWS_PER_TASK", 5)
    several = [
        kernel_contributions(CSM(**options, n_jobs=n_jobs).fit(graphs), graphs, weights, spread=False)
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(several[0], several[1])
    monkeypatch.setattr(matching, "TILE_COLUMNS", 7)
    monkeypatch.setattr(matching, "STEPS_PER_CALL", 5)
    monkeypatch.setattr(tiles, "ROWS_PER_CALL", 3)
    small = kernel_contributions(CSM(**options).fit(graphs), graphs, weights, spread=False)
    np.testing.assert_allclose(small, shares, rtol=0, atol=1e-13)


# -------------------------------------------------------------------- properties


@pytest.mark.parametrize("options", [*SETTINGS, {"use_edge_labels": True}], ids=name)
@pytest.mark.parametrize("collection", ["edge_labels", "directed_edge_labels"])
def test_gram_is_positive_semidefinite_and_invariant_to_node_order(collection, options):
    collection = COLLECTIONS[collection]
    K = CSM(**options).fit_transform(collection.pack())
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_allclose(K, K.T, rtol=1e-15, atol=0)
    again = CSM(**options).fit_transform(collection.reversed_nodes().pack())
    np.testing.assert_allclose(again, K, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"max_size": 4}, {"node_kernel": "laplacian"}], ids=name)
def test_size_and_number_of_tasks_do_not_change_the_result(monkeypatch, options):
    graphs = COLLECTIONS["edge_labels"].pack()
    K = CSM(**options).fit_transform(graphs)
    monkeypatch.setattr(matching, "TILE_COLUMNS", 7)
    monkeypatch.setattr(matching, "STEPS_PER_CALL", 5)
    monkeypatch.setattr(tiles, "ROWS_PER_CALL", 3)
    small = [CSM(**options, n_jobs=n_jobs).fit_transform(graphs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(small[0], small[1])
    np.testing.assert_allclose(small[0], K, rtol=0, atol=1e-14)


def test_grid_equals_single_computations():
    graphs = COLLECTIONS["no_labels"].pack()
    for options in ({}, {"normalize": False, "weights": [1.0, 0.5, 0.25, 0.125]}):
        grid = gram_array(CSM(**options), graphs, max_size=[3, 1, 4])
        for max_size, K in zip([3, 1, 4], grid, strict=True):
            np.testing.assert_allclose(K, CSM(max_size, **options).fit_transform(graphs), rtol=1e-12, atol=1e-12)


def test_skipped_matchings_are_below_rounding():
    """The bound of ``pairsum.matching``: a long row of nodes just beyond the cutoff, against the exact sum."""
    n = 300
    edges = [[(i, i + 1) for i in range(n - 1)]] * 2
    far = math.sqrt(53 * math.log(2) + 8)
    vectors = [[[0.0]] * n, [[far + 0.001 * i] for i in range(n)]]
    K = CSM(gamma=1.0).fit_transform(Graphs.from_edges(edges, attributes=vectors))
    exact = sum(math.exp(-(x[0] ** 2)) for x in vectors[1]) * n
    assert abs(K[0, 1]) <= 2.0**-52
    assert exact < n * n * 2.0**-53


# -------------------------------------------------------------------- directed graphs


def test_direction_matters():
    there, back, both = [(0, 1)], [(1, 0)], [(0, 1), (1, 0)]
    graphs = Graphs.from_edges([there, back, both], labels=[["A", "B"]] * 3, directed=True)
    K = CSM(2, use_labels=True, normalize=False).fit_transform(graphs)
    np.testing.assert_array_equal(K, [[3, 2, 2], [2, 3, 2], [2, 2, 3]])


def test_edges_in_both_directions_equal_undirected_edges():
    collection = COLLECTIONS["no_labels"]
    twice = Collection(
        [[*graph, *((b, a) for a, b in graph)] for graph in collection.edges],
        collection.n_nodes,
        None,
        collection.attributes,
        directed=True,
    )
    np.testing.assert_array_equal(CSM().fit_transform(twice.pack()), CSM().fit_transform(collection.pack()))


# -------------------------------------------------------------------- invalid input


def test_invalid_weights_raise():
    graphs = COLLECTIONS["path"].pack()
    for weights in ([1.0, 2.0], [[1.0, 2.0, 3.0]], [1.0, -1.0, 1.0], [1.0, math.inf, 1.0]):
        with pytest.raises(ValueError, match="weights must be"):
            CSM(3, weights=weights).fit(graphs)
    for max_sizes in ([], [0], [1.5], ["3"]):
        with pytest.raises(ValueError, match=r"max_size(\[0\] of CSM)? must"):
            gram_array(CSM(), graphs, max_size=max_sizes)


def test_missing_edge_labels_raise():
    with pytest.raises(InvalidGraphError, match="no edge labels"):
        CSM(use_edge_labels=True).fit(COLLECTIONS["no_labels"].pack())


def test_too_many_edge_labels_for_a_size_raise():
    edges = [[(i, i + 1) for i in range(40)]]
    graphs = Graphs.from_edges(edges, edge_labels=[list(range(40))])
    assert CSM(1 + matching.MASK_BITS // 6, use_edge_labels=True).fit_transform(graphs)[0, 0] == 1
    with pytest.raises(ValueError, match="smaller max_size"):
        CSM(2 + matching.MASK_BITS // 6, use_edge_labels=True).fit(graphs)


# -------------------------------------------------------------------- GraKeL


def grakel_graphs(graphs):
    grakel = pytest.importorskip("grakel")
    for graph in graphs:
        edges = [(int(a), int(b)) for a, b in graph.edges()]
        edges += [(b, a) for a, b in edges]
        nodes = {v: tuple(x) for v, x in enumerate(graph.attributes)}
        yield grakel.Graph(edges, node_labels=nodes, edge_labels=dict.fromkeys(edges, 0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("max_size", [2, 3, 4])
def test_grakel_gives_the_same_values_on_real_graphs(data_dir, max_size):
    grakel = pytest.importorskip("grakel")
    from treegram import load_tu

    graphs, _ = load_tu("ENZYMES", data_dir=data_dir)
    # Built from edges, a GraKeL graph has no isolated nodes.
    graphs = graphs[[graph.n_nodes <= 9 and graph.degrees.all() for graph in graphs]][:6]
    assert len(graphs) == 6

    def kv(x, y):
        return math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / len(x))

    theirs = grakel.SubgraphMatching(k=max_size, kv=kv, ke=lambda a, b: 1.0).fit_transform(grakel_graphs(graphs))
    assert_same_gram(CSM(max_size, normalize=False).fit_transform(graphs), theirs)


# -------------------------------------------------------------------- counting instead of matching


@SEARCH
@given(collections(min_graphs=2), st.integers(1, 3), st.booleans())
def test_subgraph_counts_match_the_oracle(collection, max_size, use_labels):
    """gamma=0 makes the node kernel 1: directed or not, with and without edge labels."""
    options = {"max_size": max_size, "use_labels": use_labels, "use_edge_labels": collection.edge_labels is not None}
    expected = naive_matching.csm(collection, collection, lambda x, y: 1, **options)
    kernel = CSM(**options, gamma=0.0, normalize=False)
    graphs = collection.pack()
    np.testing.assert_array_equal(kernel.fit_transform(graphs), np.reshape(expected, (len(graphs), len(graphs))))
    np.testing.assert_array_equal(kernel.transform(graphs[1:]), np.reshape(expected, (len(graphs), len(graphs)))[1:])
    np.testing.assert_array_equal(kernel.diag(graphs), np.diagonal(np.reshape(expected, (len(graphs), len(graphs)))))


@pytest.mark.slow
def test_complete_graphs_without_attributes_are_counted():
    """One type of subgraph per size: s nodes of either graph, in any order. Enumeration would take minutes."""
    sizes = [60, 45, 30]
    graphs = Graphs.from_edges([list(combinations(range(n), 2)) for n in sizes])
    expected = [
        [sum(math.factorial(s) * math.comb(n, s) * math.comb(m, s) for s in (1, 2, 3)) for m in sizes] for n in sizes
    ]
    np.testing.assert_array_equal(CSM(normalize=False).fit_transform(graphs), expected)


def test_edges_in_both_directions_do_not_collide():
    """Node and edge labels have equal hashes here, and sums of these once made two edges equal."""
    edges = [(0, 2), (1, 0), (0, 1), (2, 1), (1, 2)]
    options = {"labels": [[1, -7, 0]], "edge_labels": [[0, 0, 1, 1, 1]], "directed": True}
    kernel = CSM(max_size=2, use_labels=True, use_edge_labels=True, normalize=False)
    assert (
        kernel.fit_transform(Graphs.from_edges([edges], **options)) == 6
    )  # three nodes and three edges, all different
