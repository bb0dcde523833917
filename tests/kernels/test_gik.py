"""Tests of GIK: worked examples, the naive oracle for every combination, and kernels that it reduces to."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_wl
from naive_wl import assert_normalized, assert_same_gram
from strategies import collections, in_two_parts, with_node_order
from treegram import GIK, WL, WLCL, Graphs, load_tu
from treegram.kernels import node_pairs as _node_sums
from treegram.structure import invariants, wl
from zoo import COLLECTIONS

SEARCH = settings(max_examples=60, deadline=None)
WITH_EDGE_LABELS = {key: c for key, c in COLLECTIONS.items() if c.edge_labels is not None}

# -------------------------------------------------------------------- worked examples

P2, P3, Q3, K3 = range(4)
EXAMPLES = Graphs.from_edges(
    [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]],
    labels=["AB", "ABA", "AAB", "AAB"],
    attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]], [[0.0], [0.0], [1.0]], [[0.0], [0.0], [1.0]]],
)
PAIRS = [(P2, P2), (P2, P3), (P3, P3), (P2, K3), (P3, K3), (K3, K3), (P2, Q3), (Q3, Q3)]
VALUES = [
    ({"n_levels": 1}, [8, 10, 136 / 9, 6, 12, 20, 9, 134 / 9]),
    ({"n_levels": 1, "scope": "global"}, [8, 8, 136 / 9, 3, 8, 20, 6.5, 116 / 9]),
    ({"n_levels": 1, "match": "invariant"}, [6, 8, 136 / 9, 6, 10, 140 / 9, 7, 125 / 9]),
    ({"n_levels": 1, "scope": "global", "match": "invariant"}, [6, 6.5, 136 / 9, 3, 6, 140 / 9, 4.75, 11.388889]),
    ({"invariant": "sgk", "n_levels": 2}, [12, 15, 68 / 3, 9, 17, 30, 15, 23.722222]),
    ({"invariant": "sgk", "n_levels": 2, "scope": "global"}, [12, 11, 68 / 3, 3, 8, 30, 11, 17.722222]),
    ({"invariant": "nspdk"}, [3, 4, 68 / 9, 3, 5, 62 / 9, 3.5, 19 / 3]),
    ({"invariant": "nspdk", "radius": 0, "distance": 1}, [3, 5, 9, 5, 9, 11, 4, 8]),
    ({"invariant": "nspdk", "distance": 1}, [4.5, 6, 13.795556, 5, 9, 15.333333, 4.5, 10.133333]),
]


@pytest.mark.parametrize(("parameters", "values"), VALUES, ids=lambda x: str(x) if isinstance(x, dict) else "")
def test_worked_examples(parameters, values):
    # Equal labels have equal vectors here, so the vectors change nothing.
    K = GIK(**{"radius": 1, **parameters}, gamma=1.0, normalize=False).fit_transform(EXAMPLES)
    assert [K[pair] for pair in PAIRS] == pytest.approx(values, rel=1e-7)


# -------------------------------------------------------------------- the oracle

SETTINGS = [
    {
        "invariant": invariant,
        "scope": scope,
        "match": match,
        "radius": radius,
        "n_levels": n_levels,
        "distance": distance,
    }
    for invariant, scope, match, radius, n_levels, distance in [
        ("wl", "local", "size", 2, 2, 0),
        ("wl", "global", "size", 1, 2, 0),
        ("wl", "local", "invariant", 1, 1, 0),
        ("wl", "global", "invariant", 2, 1, 1),
        ("wl", "local", "none", 1, 0, 1),
        ("sgk", "local", "size", 2, 3, 0),
        ("sgk", "global", "size", 1, 4, 0),
        ("sgk", "local", "invariant", 2, 2, 1),
        ("sgk", "global", "none", 0, 2, 0),
        ("nspdk", "local", "invariant", 2, 0, 0),
        ("nspdk", "local", "invariant", 1, 0, 2),
        ("nspdk", "global", "size", 1, 0, 1),
        ("nspdk", "local", "none", 2, 0, 0),
    ]
]


def name(options):
    return "-".join(str(value) for value in options.values())


@pytest.mark.parametrize("options", SETTINGS, ids=name)
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_gik_matches_the_oracle(collection, options):
    expected = naive_wl.gik_kernel(collection, collection, naive.rbf(0.4), **options)
    kernel = GIK(**options, gamma=0.4, normalize=False)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)
    assert_normalized(kernel.set_params(normalize=True).fit_transform(collection.pack()), expected)
    assert_normalized(kernel.fit(collection.pack()).transform(collection.pack()), expected)


@pytest.mark.parametrize("options", SETTINGS[::3], ids=name)
@pytest.mark.parametrize("collection", WITH_EDGE_LABELS.values(), ids=WITH_EDGE_LABELS)
def test_edge_labels_match_the_oracle(collection, options):
    options = {**options, "use_edge_labels": True}
    expected = naive_wl.gik_kernel(collection, collection, naive.rbf(0.4), **options)
    assert_same_gram(GIK(**options, gamma=0.4, normalize=False).fit_transform(collection.pack()), expected)


OPTIONS = st.fixed_dictionaries(
    {
        "invariant": st.sampled_from(["wl", "sgk", "nspdk"]),
        "scope": st.sampled_from(["local", "global"]),
        "match": st.sampled_from(["size", "invariant", "none"]),
        "radius": st.integers(0, 3),
        "n_levels": st.integers(0, 3),
        "distance": st.integers(0, 2),
        "missing_labels": st.sampled_from(["degree", "constant"]),
    }
)


@settings(max_examples=150, deadline=None)
@given(collections(max_graphs=3, scale="plain"), OPTIONS, st.sampled_from([0.0, 1e-3, 0.5, 20.0]))
def test_gik_matches_the_oracle_on_any_collection(collection, options, gamma):
    options["use_edge_labels"] = collection.edge_labels is not None
    expected = naive_wl.gik_kernel(collection, collection, naive.rbf(gamma), **options)
    kernel = GIK(**options, gamma=gamma, normalize=False)
    assert_same_gram(kernel.fit_transform(collection.pack()), expected)
    assert_same_gram(kernel.transform(collection.pack()), expected)


@SEARCH
@given(in_two_parts(scale="plain"), OPTIONS)
def test_new_graphs_match_the_oracle(parts, options):
    """Labels, colors and patterns that only one part has do not contribute, except to the norm of its own graphs."""
    collection, is_first = parts
    fitted = collection.take([i for i, first in enumerate(is_first) if first])
    new = collection.take([i for i, first in enumerate(is_first) if not first])
    expected, own, own_new = (
        naive_wl.gik_kernel(a, b, naive.rbf(0.4), **options) for a, b in ((new, fitted), (fitted, fitted), (new, new))
    )
    own, own_new = (np.diag(K).reshape(n) for K, n in ((own, len(fitted)), (own_new, len(new))))
    kernel = GIK(**options, gamma=0.4, normalize=False).fit(fitted.pack())
    assert_same_gram(kernel.transform(new.pack()), expected, own_new, own)
    K = kernel.set_params(normalize=True).fit(fitted.pack()).transform(new.pack())
    np.testing.assert_allclose(K, np.reshape(naive.normalized(expected, own_new, own), K.shape), rtol=0, atol=1e-10)


@SEARCH
@given(with_node_order(scale="plain"), OPTIONS)
def test_gik_is_invariant_to_node_order(ordered, options):
    collection, places = ordered
    both = [GIK(**options).fit_transform(c.pack()) for c in (collection, collection.renumbered(places))]
    np.testing.assert_allclose(*both, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "node_kernel", ["linear", "laplacian", lambda X, Y: X @ Y.T + 1.0], ids=["linear", "laplacian", "function"]
)
def test_node_kernels_match_the_oracle(node_kernel):
    literal = {"linear": naive.linear, "laplacian": naive.laplacian(0.6)}
    literal = literal[node_kernel] if isinstance(node_kernel, str) else (lambda x, y: naive.linear(x, y) + 1.0)
    collection = COLLECTIONS["components"]
    for options in SETTINGS[::3]:
        expected = naive_wl.gik_kernel(collection, collection, literal, **options)
        kernel = GIK(**options, node_kernel=node_kernel, gamma=0.6, normalize=False)
        assert_same_gram(kernel.fit_transform(collection.pack()), expected)
        assert_same_gram(kernel.transform(collection.pack()), expected)


@pytest.mark.parametrize("options", SETTINGS[::2], ids=name)
@pytest.mark.parametrize("collection", ["edge_labels", "no_labels", "directed", "only_empty_graphs"])
def test_task_size_and_folding_do_not_change_the_result(collection, options, monkeypatch):
    graphs = COLLECTIONS[collection].pack()
    kernel = GIK(**options, gamma=0.4, normalize=False)
    expected = kernel.fit_transform(graphs)
    monkeypatch.setattr(invariants, "NODES_PER_TASK", 1)
    monkeypatch.setattr(wl, "NODES_PER_TASK", 1)
    np.testing.assert_array_equal(kernel.fit_transform(graphs), expected)
    for long_row in (0, np.inf):
        monkeypatch.setattr(_node_sums, "LONG_ROW", long_row)
        assert_same_gram(kernel.fit_transform(graphs), expected)


# -------------------------------------------------------------------- reductions


@pytest.mark.parametrize("match", ["size", "invariant", "none"])
@pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)
def test_single_nodes_in_whole_graphs_equal_wl(collection, match):
    options = {"scope": "global", "match": match, "radius": 0, "n_levels": 3, "normalize": False}
    graphs = collection.pack()
    assert_same_gram(GIK(**options, gamma=0.0).fit_transform(graphs), WL(3, normalize=False).fit_transform(graphs))
    assert_same_gram(
        GIK(**options, gamma=0.4).fit_transform(graphs), WLCL(3, gamma=0.4, normalize=False).fit_transform(graphs)
    )


def test_one_label_without_iterations_counts_matching_patterns():
    """With k_A = k_inv = 1 each pair of matching patterns counts 1: all pairs of balls of one radius for "none"."""
    collection = COLLECTIONS["bare"]
    options = {"n_levels": 0, "missing_labels": "constant", "gamma": 0.0, "normalize": False}
    n = np.array(collection.n_nodes, dtype=float)
    K = GIK(match="none", radius=2, **options).fit_transform(collection.pack())
    np.testing.assert_allclose(K, 3 * np.outer(n, n), rtol=1e-12)


def test_auto_equals_the_published_match():
    for invariant, match in (("wl", "size"), ("sgk", "size"), ("nspdk", "invariant")):
        auto, named = (GIK(invariant, match=m).fit_transform(EXAMPLES) for m in ("auto", match))
        np.testing.assert_array_equal(auto, named)


def test_variants_differ():
    graphs = COLLECTIONS["edge_labels"].pack()
    variants = [GIK("nspdk")] + [
        GIK(invariant, scope=scope) for invariant, scope in itertools.product(("wl", "sgk"), ("local", "global"))
    ]
    for K, L in itertools.combinations([variant.fit_transform(graphs) for variant in variants], 2):
        assert np.abs(K - L).max() > 1e-3


def test_closed_walks_can_overflow():
    """A complete graph of 30 nodes has 29^14 closed walks of length 15: more than 64 bits, and still one color."""
    complete = [(a, b) for a in range(30) for b in range(a)]
    graphs = Graphs.from_edges([complete, complete[1:]], labels=["A" * 30, "A" * 30])
    for scope in ("local", "global"):
        K = GIK("sgk", scope=scope, radius=1, n_levels=14, normalize=False).fit_transform(graphs)
        assert K[0, 0] == pytest.approx(2 * 15 * 900, rel=1e-12)
        assert K[0, 1] < K[0, 0]


@pytest.mark.parametrize(
    "parameter",
    [
        {"invariant": "odd"},
        {"scope": "all"},
        {"match": None},
        {"radius": -1},
        {"n_levels": 0.5},
        {"distance": -1},
        {"gamma": -1},
    ],
    ids=str,
)
def test_invalid_parameters_raise(parameter):
    with pytest.raises(ValueError, match=f"{next(iter(parameter))} of GIK must be"):
        GIK(**parameter).fit(EXAMPLES)


@pytest.mark.parametrize("invariant", ["wl", "sgk", "nspdk"])
def test_n_jobs_changes_no_bit(invariant, data_dir):
    graphs = load_tu("ENZYMES", data_dir=data_dir)[0]
    assert graphs.n_nodes > 4 * 4096  # several tasks
    one, three = (GIK(invariant, scope="global", radius=1, n_jobs=n).fit_transform(graphs) for n in (1, 3))
    np.testing.assert_array_equal(one, three)
