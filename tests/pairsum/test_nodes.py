"""Tests of the engine alone: any features and weights, all code paths, against four nested loops."""

import math
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram.pairsum import nodes as engine
from treegram.pairsum.attributes import Gaussian
from treegram.pairsum.nodes import Nodes, Weighting, self_sums
from treegram.pairsum.tiles import complete


def pair_sums(left, right, *args, **options):
    """Return whole matrices; the engine fills only the upper half of symmetric ones."""
    sums = engine.pair_sums(left, right, *args, **options)
    if right is None:
        complete(sums)
    return sums


def make_nodes(rng, sizes, *, n_blocks=3, n_features=12, dimension=2, spread=1.0, blocks=None, distinct=None):
    """Return random nodes; feature t belongs to block t % n_blocks, and block b is named 1000 + b."""
    n = sum(sizes)
    blocks = rng.integers(n_blocks, size=n) if blocks is None else np.resize(blocks, n)
    dense = rng.integers(0, 4, size=(n, n_features)) * rng.integers(0, 2, size=(n, n_features))
    dense[(np.arange(n_features) % n_blocks)[None, :] != blocks[:, None]] = 0
    vectors = spread * rng.normal(size=(n, dimension))
    if distinct:
        vectors = vectors[rng.permutation(np.arange(n) % distinct)]
    return Nodes(
        n_graphs=len(sizes),
        graph_ids=np.repeat(np.arange(len(sizes)), sizes),
        blocks=(1000 + blocks).astype(np.uint64),
        vectors=vectors,
        features=sp.csr_matrix(dense.astype(float)),
    )


def make_weighting(rng, n_features=12, *, n_groups=1, n_weights=1, n_kinds=4):
    """Divide the kinds among the groups; each has its own weights."""
    return Weighting(
        kinds=rng.integers(n_kinds, size=n_features),
        groups=np.sort(np.arange(n_kinds) % n_groups),
        weights=rng.uniform(0.1, 2.0, size=(n_kinds, n_weights)),
        n_groups=n_groups,
    )


def brute_force(left, right, k, weighting):
    """sum_{v, w} k(x_v, x_w) sum_t F[v, t] F[w, t] weight_t, for each group and weight."""
    out = np.zeros((weighting.n_groups, weighting.weights.shape[1], left.n_graphs, right.n_graphs))
    F, G = left.features.toarray(), right.features.toarray()
    for v in range(len(F)):
        for w in range(len(G)):
            for t in np.flatnonzero(F[v] * G[w]):
                kind = weighting.kinds[t]
                term = k(left.vectors[v], right.vectors[w]) * F[v, t] * G[w, t] * weighting.weights[kind]
                out[weighting.groups[kind], :, left.graph_ids[v], right.graph_ids[w]] += term
    return out


def gaussian(gamma):
    return lambda x, y: math.exp(-gamma * float(((x - y) ** 2).sum()))


def equal(x, y):
    return float((x == y).all())


def cauchy(X, Y):
    return 1.0 / (1.0 + ((X[:, None] - Y[None]) ** 2).sum(axis=2))


NODE_KERNELS = {
    "gaussian": (Gaussian(0.5), gaussian(0.5)),
    "constant": (Gaussian(0.0), gaussian(0.0)),
    "narrow": (Gaussian(60.0), gaussian(60.0)),
    "function": (cauchy, lambda x, y: cauchy(x[None], y[None])[0, 0]),
}
SIZES = [4, 0, 7, 1, 0, 0, 5, 3, 0]  # graphs without nodes at any position
OTHER_SIZES = [0, 2, 6, 0, 1]


def assert_sums(actual, left, right, literal, weighting, rtol=1e-13):
    """Compare entries relative to their value with k = 1, the scale of the summed and skipped terms."""
    expected = brute_force(left, right, literal, weighting)
    bound = brute_force(left, right, lambda x, y: 1.0, weighting)
    assert actual.shape == expected.shape
    assert (np.abs(actual - expected) <= rtol * bound).all(), (actual, expected)


@pytest.fixture(params=[1, 4, 10**6], ids=lambda n: f"tile{n}")
def tiles(request, monkeypatch):
    """Vary the tile size from one graph per tile to one tile for all."""
    monkeypatch.setattr(engine, "TILE_COLUMNS", request.param)


@pytest.fixture(params=[0.0, 0.3, 2.0], ids=lambda fraction: f"dense{fraction}")
def dense_share(request, monkeypatch):
    """Store all, some or none of the features as dense rows."""
    monkeypatch.setattr(engine, "DENSE_FRACTION", request.param)


@pytest.fixture(params=[2, 1 << 14], ids=lambda rows: f"rows{rows}")
def rows_per_call(request, monkeypatch):
    monkeypatch.setattr(engine, "ROWS_PER_CALL", request.param)


# -------------------------------------------------------------------- all code paths


@pytest.mark.parametrize(("n_groups", "n_weights"), [(1, 1), (2, 3)])
@pytest.mark.parametrize("node_kernel", NODE_KERNELS)
@pytest.mark.usefixtures("tiles", "dense_share", "rows_per_call")
def test_pair_sums_match_four_nested_loops(node_kernel, n_groups, n_weights):
    rng = np.random.default_rng(n_groups + 10 * n_weights)
    left, right = make_nodes(rng, SIZES), make_nodes(rng, OTHER_SIZES)
    weighting = make_weighting(rng, n_groups=n_groups, n_weights=n_weights)
    kernel, literal = NODE_KERNELS[node_kernel]
    assert_sums(pair_sums(left, None, kernel, weighting), left, left, literal, weighting)
    assert_sums(pair_sums(left, right, kernel, weighting), left, right, literal, weighting)
    assert_sums(pair_sums(right, left, kernel, weighting), right, left, literal, weighting)


@pytest.mark.parametrize(("n_groups", "n_weights"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("node_kernel", NODE_KERNELS)
def test_self_sums_equal_the_diagonal(node_kernel, n_groups, n_weights):
    rng = np.random.default_rng(4)
    nodes, weighting = make_nodes(rng, SIZES), make_weighting(rng, n_groups=n_groups, n_weights=n_weights)
    kernel, literal = NODE_KERNELS[node_kernel]
    expected = np.einsum("...ii->...i", brute_force(nodes, nodes, literal, weighting))
    np.testing.assert_allclose(self_sums(nodes, kernel, weighting), expected, rtol=1e-13)


@pytest.mark.parametrize("node_kernel", NODE_KERNELS)
def test_self_sums_are_as_exact_as_the_matrix_and_computed_in_tasks(node_kernel, monkeypatch):
    rng = np.random.default_rng(22)
    nodes, weighting = make_nodes(rng, [400, 0, 3, 150, 1, 60]), make_weighting(rng, n_groups=2, n_weights=2)
    spans, own_sums = [], engine._own_sums
    monkeypatch.setattr(engine, "SELF_COLUMNS", 2)
    monkeypatch.setattr(engine, "_own_sums", lambda *task: spans.append(task[-1]) or own_sums(*task))
    kernel = NODE_KERNELS[node_kernel][0]
    one, two = (self_sums(nodes, kernel, weighting, n_jobs=n) for n in (1, 2))
    assert len(spans) >= 4
    np.testing.assert_array_equal(one, two)
    diagonal = np.einsum("...ii->...i", pair_sums(nodes, None, kernel, weighting))
    np.testing.assert_allclose(one, diagonal, rtol=3e-15)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 7, 8, 9])
def test_every_dimension_has_its_loop(dimension):
    rng = np.random.default_rng(dimension)
    nodes, weighting = make_nodes(rng, SIZES, dimension=dimension), make_weighting(rng)
    assert_sums(pair_sums(nodes, None, Gaussian(0.4), weighting), nodes, nodes, gaussian(0.4), weighting)
    expected = brute_force(nodes, nodes, gaussian(0.4), weighting)
    np.testing.assert_allclose(
        self_sums(nodes, Gaussian(0.4), weighting), np.einsum("...ii->...i", expected), rtol=1e-13
    )


@pytest.mark.usefixtures("tiles", "dense_share")
def test_pair_sums_of_one_collection_are_exactly_symmetric():
    rng = np.random.default_rng(5)
    nodes, weighting = make_nodes(rng, SIZES), make_weighting(rng, n_groups=2, n_weights=2)
    sums = pair_sums(nodes, None, Gaussian(0.5), weighting)
    np.testing.assert_array_equal(sums, sums.swapaxes(2, 3))


@pytest.mark.usefixtures("tiles", "dense_share")
@pytest.mark.parametrize("node_kernel", NODE_KERNELS)
def test_n_jobs_changes_no_bit(node_kernel):
    rng = np.random.default_rng(6)
    left, right, weighting = make_nodes(rng, SIZES), make_nodes(rng, OTHER_SIZES), make_weighting(rng, n_weights=2)
    for other in (None, right):
        one, two = (pair_sums(left, other, NODE_KERNELS[node_kernel][0], weighting, n_jobs=n) for n in (1, 2))
        np.testing.assert_array_equal(one, two)


def test_large_result_is_split_into_several_tiles(monkeypatch):
    rng = np.random.default_rng(7)
    nodes, weighting = make_nodes(rng, SIZES), make_weighting(rng)
    tiles, tile_sums = [], engine._tile_sums
    monkeypatch.setattr(engine, "TILE_BYTES", 64)
    monkeypatch.setattr(engine, "_tile_sums", lambda *task: tiles.append(task[1]) or tile_sums(*task))
    actual = pair_sums(nodes, None, Gaussian(0.5), weighting)
    assert_sums(actual, nodes, nodes, gaussian(0.5), weighting)
    assert len(tiles) > 2


SIZE_LISTS = st.lists(st.integers(0, 5), max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    left_sizes=SIZE_LISTS,
    right_sizes=st.none() | SIZE_LISTS,
    n_blocks=st.integers(1, 4),
    dimension=st.integers(1, 5),
    spread=st.sampled_from([1e-6, 1.0, 30.0, 1e6]),
    distinct=st.sampled_from([None, 1, 3]),
    n_groups=st.integers(1, 3),
    n_weights=st.integers(1, 3),
)
def test_pair_sums_match_four_nested_loops_on_any_nodes(seed, left_sizes, right_sizes, n_groups, n_weights, **options):
    rng = np.random.default_rng(seed)
    left = make_nodes(rng, left_sizes, **options)
    right = None if right_sizes is None else make_nodes(rng, right_sizes, **options)
    weighting = make_weighting(rng, n_groups=n_groups, n_weights=n_weights)
    actual = pair_sums(left, right, Gaussian(0.5), weighting)
    assert_sums(actual, left, left if right is None else right, gaussian(0.5), weighting)


@pytest.mark.parametrize("node_kernel", ["gaussian", "function"])
def test_more_rows_than_fit_in_one_call(node_kernel):
    """A user-defined node kernel gets some rows at a time."""
    rng = np.random.default_rng(21)
    left, right = make_nodes(rng, [900, 600], n_blocks=2), make_nodes(rng, [10, 20], n_blocks=2)
    weighting = Weighting.alike(12)
    kernel = NODE_KERNELS[node_kernel][0]
    k_A = kernel(left.vectors, right.vectors)
    products = (left.features @ right.features.T).toarray() * k_A
    expected = np.add.reduceat(np.add.reduceat(products, [0, 900], axis=0), [0, 10], axis=1)
    np.testing.assert_allclose(pair_sums(left, right, kernel, weighting)[0, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(pair_sums(right, left, kernel, weighting)[0, 0], expected.T, rtol=1e-12)


# -------------------------------------------------------------------- blocks and features on one side only


def test_blocks_on_one_side_only_contribute_nothing():
    rng = np.random.default_rng(8)
    left = make_nodes(rng, [3, 4], blocks=[0, 1])
    right = make_nodes(rng, [5, 2], blocks=[1, 2])
    weighting = make_weighting(rng)
    for kernel, literal in NODE_KERNELS.values():
        assert_sums(pair_sums(left, right, kernel, weighting), left, right, literal, weighting)
        assert_sums(pair_sums(right, left, kernel, weighting), right, left, literal, weighting)
    apart = make_nodes(rng, [3, 4], blocks=[0]), make_nodes(rng, [5, 2], blocks=[1])
    assert not pair_sums(*apart, Gaussian(0.5), weighting).any()


def test_node_kernel_is_called_only_for_nodes_of_equal_blocks():
    rng = np.random.default_rng(9)
    left, right = make_nodes(rng, [6, 5]), make_nodes(rng, [4, 4])

    def picky(X, Y):
        # The first coordinate is the block: the engine must not mix them.
        assert len(np.unique(np.concatenate([X[:, 0], Y[:, 0]]))) == 1
        return np.ones((len(X), len(Y)))

    for nodes in (left, right):
        nodes.vectors[:, 0] = nodes.blocks
    weighting = make_weighting(rng)
    actual = pair_sums(left, right, picky, weighting)
    assert_sums(actual, left, right, lambda x, y: 1.0, weighting)


def test_features_without_nodes_contribute_nothing():
    rng = np.random.default_rng(10)
    nodes, weighting = make_nodes(rng, [3, 4]), make_weighting(rng, 20)
    wider = Nodes(
        nodes.n_graphs, nodes.graph_ids, nodes.blocks, nodes.vectors,
        sp.csr_matrix(sp.hstack([nodes.features, sp.csr_matrix((7, 8))])),
    )  # fmt: skip
    assert_sums(pair_sums(wider, None, Gaussian(0.5), weighting), wider, wider, gaussian(0.5), weighting)


@pytest.mark.parametrize("sizes", [[], [0], [0, 0, 0]])
def test_sums_without_nodes_are_zero(sizes):
    rng = np.random.default_rng(11)
    nothing, something, weighting = make_nodes(rng, sizes), make_nodes(rng, [2, 3]), make_weighting(rng, n_groups=2)
    for kernel, _ in NODE_KERNELS.values():
        for left, right in ((nothing, None), (nothing, something), (something, nothing), (nothing, nothing)):
            n_right = (left if right is None else right).n_graphs
            np.testing.assert_array_equal(
                pair_sums(left, right, kernel, weighting), np.zeros((2, 1, left.n_graphs, n_right))
            )
        np.testing.assert_array_equal(self_sums(nothing, kernel, weighting), np.zeros((2, 1, len(sizes))))


# -------------------------------------------------------------------- merging


def test_nodes_of_one_graph_with_equal_block_and_vector_are_merged():
    rng = np.random.default_rng(12)
    nodes = make_nodes(rng, [20, 0, 30], distinct=3, n_blocks=2)
    merged = engine._condense(nodes, Gaussian(0.5))
    assert len(merged.graph_ids) <= 2 * 2 * 3  # graphs, blocks, vectors
    assert merged.features.sum() == nodes.features.sum()
    assert (np.diff(merged.graph_ids) >= 0).all()
    weighting = make_weighting(rng)
    assert_sums(pair_sums(nodes, None, Gaussian(0.5), weighting), nodes, nodes, gaussian(0.5), weighting)
    assert_sums(brute_force(merged, merged, gaussian(0.5), weighting), nodes, nodes, gaussian(0.5), weighting)


def test_zero_and_minus_zero_are_merged():
    nodes = make_nodes(np.random.default_rng(13), [2], n_blocks=1)
    nodes.vectors[:] = [[0.0, 1.0], [-0.0, 1.0]]
    assert len(engine._condense(nodes, Gaussian(0.5)).graph_ids) == 1


def test_nearly_equal_nodes_and_nodes_of_other_graphs_or_blocks_are_not_merged():
    nodes = make_nodes(np.random.default_rng(14), [2, 2], blocks=[0, 1, 0, 0])
    nodes.vectors[:] = [[0.5, 1.0], [0.5, 1.0], [0.5, 1.0], [0.5, np.nextafter(1.0, 2.0)]]
    assert engine._condense(nodes, Gaussian(0.5)) is nodes


def test_key_collisions_do_not_merge_different_nodes(monkeypatch):
    """Equal keys only suggest equal nodes. With all multipliers equal to 1, graph 0 and block 1001 have the key of graph 1 and block 1000."""

    class Zeros:
        def __init__(self, seed):
            pass

        def integers(self, high, size, dtype):
            return np.zeros(size, dtype)

    rng = np.random.default_rng(20)
    nodes, weighting = make_nodes(rng, [2, 2], blocks=[0, 1], n_blocks=2), make_weighting(rng)
    nodes.vectors[:] = 0.5
    monkeypatch.setattr(np.random, "default_rng", Zeros)
    assert_sums(pair_sums(nodes, None, Gaussian(0.5), weighting), nodes, nodes, gaussian(0.5), weighting)


@pytest.mark.usefixtures("tiles", "dense_share")
@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6, 18])
def test_vectors_of_any_length_compare_equally_in_single_rows_and_in_fours(dimension):
    rng = np.random.default_rng(dimension)
    nodes, weighting = make_nodes(rng, [13, 1, 30, 4], dimension=dimension, n_blocks=2), make_weighting(rng)
    for gamma in (0.3, 30.0):
        assert_sums(pair_sums(nodes, None, Gaussian(gamma), weighting), nodes, nodes, gaussian(gamma), weighting)


def test_features_of_single_nodes_contribute_only_to_the_diagonal():
    rng = np.random.default_rng(23)
    nodes, weighting = make_nodes(rng, [5, 0, 7], n_blocks=1), make_weighting(rng, n_groups=2, n_weights=3)
    entries = nodes.features.toarray()
    entries[:, :6] = 2.0 * np.eye(12)[:, 3:9]
    nodes = replace(nodes, features=sp.csr_matrix(entries))
    job = engine._NodeJob.prepare(nodes, nodes, Gaussian(0.5), weighting)
    assert np.bincount(job.entries.indices).min() > 1
    assert 0 < len(job.entries.indices) < nodes.features.nnz
    assert job.diagonal.shape == (2, 3, 3)
    assert job.diagonal.any()
    for kernel, k in ((Gaussian(0.5), gaussian(0.5)), (lambda x, y: x @ y.T, lambda x, y: float(x @ y))):
        assert_sums(pair_sums(nodes, None, kernel, weighting), nodes, nodes, k, weighting)


def test_pickled_job_of_many_nodes_gives_the_same_bits():
    """The direction of the projections comes from a sample of the nodes, and a worker must not compute it again."""
    rng = np.random.default_rng(32)
    nodes, weighting = make_nodes(rng, [40] * 30, n_blocks=2), Weighting.alike(12)
    job = engine._NodeJob.prepare(nodes, nodes, Gaussian(0.5), weighting)
    again = pickle.loads(pickle.dumps(job))
    np.testing.assert_array_equal(*(engine._tile_sums(each, (0, 30), (0, 30)) for each in (job, again)))


def test_gamma_0_merges_all_nodes_of_a_graph():
    rng = np.random.default_rng(19)
    nodes, weighting = make_nodes(rng, [9, 0, 9], blocks=[0, 1]), make_weighting(rng)
    assert len(engine._condense(nodes, Gaussian(0.0)).graph_ids) == 2
    assert_sums(pair_sums(nodes, None, Gaussian(0.0), weighting), nodes, nodes, gaussian(0.0), weighting)


# -------------------------------------------------------------------- windows


@pytest.mark.usefixtures("tiles", "dense_share")
@pytest.mark.parametrize("gamma", [1.0, 1e4])
def test_skipped_distant_pairs_do_not_change_the_sums(gamma):
    """Positions spread over many cutoffs: every row has its own window."""
    rng = np.random.default_rng(15)
    left, right = make_nodes(rng, [9, 9, 9], n_blocks=1), make_nodes(rng, [9, 9, 9], n_blocks=1)
    for nodes in (left, right):
        nodes.vectors[:] = np.stack([rng.permutation(27) * 1.5, np.zeros(27)], axis=1)
    weighting = make_weighting(rng)
    for other in (left, right):
        assert_sums(pair_sums(left, other, Gaussian(gamma), weighting), left, other, gaussian(gamma), weighting, 1e-15)


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("magnitude", [1e6, 1e18, 1e200])
def test_equal_vectors_match_at_any_magnitude(magnitude, dimension):
    """k_A of a vector with itself is 1, even if the cutoff of the window is below the floating-point spacing."""
    rng = np.random.default_rng(16)
    left, right = (make_nodes(rng, [1, 1, 1], n_blocks=1, dimension=dimension) for _ in range(2))
    vectors = magnitude * rng.normal(size=(3, dimension))
    left.vectors[:], right.vectors[:] = vectors, vectors[::-1]
    weighting = Weighting.alike(12)
    assert_sums(pair_sums(left, right, Gaussian(2.0), weighting), left, right, equal, weighting)
    own = np.einsum("...ii->...i", brute_force(left, left, equal, weighting))
    assert own.any()
    np.testing.assert_allclose(np.einsum("...ii->...i", pair_sums(left, None, Gaussian(2.0), weighting)), own)
    np.testing.assert_allclose(self_sums(left, Gaussian(2.0), weighting), own)


def test_numbers_near_the_largest_double_do_not_break_the_direction():
    nodes = make_nodes(np.random.default_rng(17), [2, 2], n_blocks=1, dimension=1)
    nodes.vectors[:] = [[1.5e308], [1.5e308], [1.5e308], [-1.5e308]]
    weighting = Weighting.alike(12)
    assert_sums(pair_sums(nodes, None, Gaussian(1.0), weighting), nodes, nodes, equal, weighting)


def test_skipped_terms_are_below_rounding():
    """The documented bound: by Cauchy-Schwarz at most 2^-53 sqrt(K(G, G) K(G', G'))."""
    rng = np.random.default_rng(18)
    nodes = make_nodes(rng, [30, 30], n_blocks=1, dimension=1)
    nodes.vectors[:, 0] = np.linspace(0, 12, 60)  # the cutoff is about 6.3: some pairs are within, some beyond
    weighting = Weighting.alike(12)
    actual = pair_sums(nodes, None, Gaussian(1.0), weighting)[0, 0]
    expected = brute_force(nodes, nodes, gaussian(1.0), weighting)[0, 0]
    scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    assert (np.abs(actual - expected) <= 1e-14 * scale).all()


@pytest.mark.parametrize("dimension", [64, 65, 90])
def test_pair_sums_of_many_dimensions_match_four_nested_loops(dimension):
    nodes = make_nodes(np.random.default_rng(dimension), [12, 9, 15], n_blocks=2, dimension=dimension)
    weighting = Weighting.alike(12)
    assert_sums(pair_sums(nodes, None, Gaussian(0.3), weighting), nodes, nodes, gaussian(0.3), weighting)


def test_processes_give_the_same_bits_as_threads():
    rng = np.random.default_rng(21)
    left, right, weighting = make_nodes(rng, SIZES), make_nodes(rng, OTHER_SIZES), make_weighting(rng, n_weights=2)
    for other in (None, right):
        threads = pair_sums(left, other, Gaussian(0.5), weighting)
        with joblib.parallel_config("loky", n_jobs=2):
            np.testing.assert_array_equal(pair_sums(left, other, Gaussian(0.5), weighting), threads)
