"""lam ** size for very large trees and very large or small lam gives an error or an exact result, never inf or NaN."""

from fractions import Fraction

import numpy as np
import pytest

import checks
import naive
from checks import feature_rows, gram_array
from treegram import ODDCL, ODDST, Graphs
from zoo import COLLECTIONS, LAWS_HOLD_ON, Collection

KERNELS = [ODDST, ODDCL]
MIXED = LAWS_HOLD_ON["mixed"]


def layers(width, n_layers):
    """Return layers of ``width`` nodes, each joined to the next: trees from one end have width^layers leaves."""
    edges = [
        (width * i + a, width * (i + 1) + b) for i in range(n_layers - 1) for a in range(width) for b in range(width)
    ]
    n = width * n_layers
    return Collection([edges, [(0, 1)]], [n, 2], [["C"] * n, ["C", "C"]], [[[0.1 * i] for i in range(n)], [[0], [1]]])


BIG = layers(4, 7)
BIG_SIZE = sum(4**j for j in range(7)) + 4 * 3  # the other nodes of the first layer are below the second
MESSAGE = rf"depth=6 the largest tree has {BIG_SIZE} nodes, too many for lam=1\.2\..*smaller lam.*normalize=True"


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.__name__)
def make(request):
    return request.param


# -------------------------------------------------------------------- the error


def test_overflow_raises_and_names_depth_lam_and_size(make):
    kernel = make(6, lam=1.2, normalize=False)
    for compute in (kernel.fit, kernel.fit_transform, lambda X: gram_array(kernel, X, depth=[1, 6], lam=[0.5, 1.2])):
        with pytest.raises(ValueError, match=MESSAGE):
            compute(BIG.pack())


def test_overflow_of_new_graphs_raises(make):
    kernel = make(6, lam=1.2, normalize=False).fit(BIG.take([1]).pack())
    with pytest.raises(ValueError, match=MESSAGE):
        kernel.transform(BIG.pack())


def test_lam_suggested_by_the_error_works(make):
    with pytest.raises(ValueError, match="lam") as caught:
        make(6, lam=1.2, normalize=False).fit(BIG.pack())
    proposed = float(str(caught.value).split("at most ")[1].split(" ")[0])
    K = make(6, lam=proposed - 1e-3, normalize=False).fit_transform(BIG.pack())
    assert np.isfinite(K).all()
    with pytest.raises(ValueError, match="overflows"):
        make(6, lam=proposed + 1e-3, normalize=False).fit(BIG.pack())


@pytest.mark.parametrize("lam", [1.0, 0.99, 1e-3])
def test_lam_of_at_most_1_never_overflows(make, lam):
    K = make(6, lam=lam, normalize=False).fit_transform(BIG.pack())
    assert np.isfinite(K).all()
    assert (K.diagonal() > 0).all()


# -------------------------------------------------------------------- the exact result


def exact_gram(make, collection, lam, **options):
    """Return the normalized matrix in exact arithmetic, rounded once."""
    if make is ODDST:
        K = naive.oddst(collection, collection, lam=Fraction(lam), **options)
    else:
        rbf = naive.rbf(0.5)
        K = naive.oddcl(collection, collection, lambda x, y: Fraction(rbf(x, y)), lam=Fraction(lam), **options)
    diagonal = [K[i][i] for i in range(len(K))]
    return np.array(naive.normalized(K, diagonal, diagonal))


def kernel_of(make, **options):
    return make(**options) if make is ODDST else make(**options, gamma=0.5)


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("lam", [1e-300, 1e-100, 1e-5, 1e40, 1e100, 1e300])
@pytest.mark.parametrize("name", ["edge_labels", "no_labels", "diamonds"])
def test_normalized_results_are_exact_for_extreme_lam(make, name, lam, counting):
    options = {"depth": 2, "counting": counting}
    collection = COLLECTIONS[name]
    expected = exact_gram(make, collection, lam, **options)
    kernel = kernel_of(make, lam=lam, **options)
    np.testing.assert_allclose(kernel.fit_transform(collection.pack()), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(kernel.transform(collection.pack()), expected, rtol=0, atol=1e-11)


def test_normalized_results_are_exact_for_large_trees(make):
    """Sizes of more than a thousand nodes: 2 ** size is beyond the largest double."""
    collection = layers(3, 7)
    expected = exact_gram(make, collection, 2.0, depth=6, counting="visits")
    kernel = kernel_of(make, lam=2.0, depth=6, counting="visits")
    assert ODDST(6).fit(collection.pack())._fitted_features.sizes.max() > 1024
    np.testing.assert_allclose(kernel.fit_transform(collection.pack()), expected, rtol=0, atol=1e-11)


def test_graphs_with_the_same_huge_trees_are_equal(make):
    """Every weight overflows, and still equal graphs have similarity 1, and a third one a plausible value."""
    twins = Collection(
        [BIG.edges[0]] * 2 + [BIG.edges[0][1:]],
        [BIG.n_nodes[0]] * 3,
        [BIG.labels[0]] * 3,
        [BIG.attributes[0]] * 3,
    )
    K = make(6, lam=1.2).fit_transform(twins.pack())
    assert K[0, 1] == pytest.approx(1.0, abs=1e-12)
    assert 0 < K[0, 2] < 1


@pytest.mark.parametrize("lam", [1e40, 1e-200])
@pytest.mark.parametrize(
    "law",
    [
        "transform_equals_fit_transform",
        "transform_of_a_part_equals_the_block_of_the_whole",
        "normalized_diagonal_is_1",
        "gram_is_positive_semidefinite",
        "pickled_kernel_gives_the_same_result",
    ],
)
def test_laws_hold_for_extreme_lam(make, law, lam):
    checks.LAWS[law](make(2, lam=lam), MIXED)


@pytest.mark.parametrize("counting", naive.COUNTINGS)
def test_grid_with_and_without_overflow_equals_single_computations(make, counting):
    lams = [0.5, 1e40, 1.2, 1e150]
    grid = gram_array(make(counting=counting), MIXED.pack(), depth=[3, 0, 2], lam=lams)
    for i, depth in enumerate([3, 0, 2]):
        for j, lam in enumerate(lams):
            expected = make(depth, lam=lam, counting=counting).fit_transform(MIXED.pack())
            np.testing.assert_allclose(grid[i, j], expected, rtol=0, atol=1e-12)


def test_features_are_exact_for_extreme_lam():
    kernel = ODDST(2, lam=1e40).fit(MIXED.pack())
    Z = feature_rows(kernel, MIXED.pack())
    assert np.isfinite(Z.data).all()
    np.testing.assert_allclose((Z @ Z.T).toarray(), exact_gram(ODDST, MIXED, 1e40, depth=2), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [ODDCL, ODDST])
def test_integers_beyond_64_bits_are_accepted(kernel):
    graphs = LAWS_HOLD_ON["mixed"].pack()
    np.testing.assert_array_equal(
        kernel(depth=1, lam=10**30).fit_transform(graphs), kernel(depth=1, lam=1e30).fit_transform(graphs)
    )


@pytest.mark.parametrize("make", [ODDST, ODDCL])
@pytest.mark.parametrize("lam", [5e-324, 1e-310, 1e-101])
def test_tiny_lam_is_rescaled(make, lam):
    """Gram matrices used to be infinite without a warning. Trees of one node outweigh all others."""
    graphs = MIXED.pack()
    expected = make(lam=1e-60).fit_transform(graphs)
    np.testing.assert_allclose(make(lam=lam).fit_transform(graphs), expected, atol=1e-12)
    np.testing.assert_allclose(make(lam=lam).fit(graphs).transform(graphs), expected, atol=1e-12)
    (_, first), (_, second) = make().gram_grid(graphs, {"lam": [lam, 1e-60]})
    np.testing.assert_allclose(first, expected, atol=1e-12)
    np.testing.assert_allclose(second, expected, atol=1e-12)
    assert np.isfinite(make(lam=lam, normalize=False).fit_transform(graphs)).all()


def test_kernels_too_small_to_normalize_raise():
    graphs = Graphs.from_edges([[(0, 1)]] * 2, attributes=[[[1e-160], [2e-160]]] * 2)
    with pytest.raises(ValueError, match=r"Graph 0: its ODDCL kernel with itself is too small for double precision"):
        ODDCL(node_kernel="linear").fit_transform(graphs)
