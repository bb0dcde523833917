"""Tests of named node kernels in every kernel that has one, overflow, and gamma="scale"."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from checks import gram_array
from treegram import (
    CSM,
    GIK,
    ODDCL,
    WLCL,
    GraphHopper,
    Graphs,
    KernelSum,
    ODDCLApprox,
    ShortestPath,
)
from treegram.exceptions import ParameterError
from treegram.pairsum.attributes import GAMMA_RULES, NODE_KERNEL_NAMES

KERNELS = [ODDCL, WLCL, GIK, GraphHopper, ShortestPath, CSM, ODDCLApprox]
EDGES = [[(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3)]]


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.__name__)
def make(request):
    return request.param


def graphs_of(scale=1.0):
    rng = np.random.default_rng(3)
    sizes = (3, 3, 4)
    return Graphs.from_edges(
        EDGES, n_nodes=sizes, labels=[["C"] * n for n in sizes], attributes=[scale * rng.random((n, 2)) for n in sizes]
    )


@pytest.mark.parametrize("name", sorted(NODE_KERNEL_NAMES))
def test_every_named_kernel_equals_its_function(make, name):
    """Pass the function with the gamma that the name gets."""
    graphs = graphs_of()
    given = make(node_kernel=lambda X, Y: pairwise_kernels(X.copy(), Y.copy(), name, filter_params=True, gamma=0.5))
    named = make(node_kernel=name)
    np.testing.assert_allclose(named.fit_transform(graphs), given.fit_transform(graphs), rtol=1e-9)
    np.testing.assert_allclose(named.transform(graphs[1:]), given.transform(graphs[1:]), rtol=1e-9)


@pytest.mark.parametrize(("name", "scale"), [("linear", 1e160), ("polynomial", 1e110), ("linear", 1e307)])
def test_values_beyond_double_precision_raise(make, name, scale):
    with pytest.raises(ValueError, match=rf"node_kernel='{name}' gives values too large.*as large as [\d.]+e\+\d+"):
        make(node_kernel=name).fit_transform(graphs_of(scale))


def test_products_of_large_values_raise():
    """Each value of k_A is finite, the product of three is not."""
    kernel = CSM(3, node_kernel="linear")
    with pytest.raises(ValueError, match="with itself is too large for double precision"):
        kernel.fit_transform(graphs_of(1e80))
    with pytest.raises(ValueError, match="with itself is too large for double precision"):
        gram_array(kernel, graphs_of(1e80))


def test_cosine_ignores_the_length_of_vectors(make):
    near, far = (make(node_kernel="cosine").fit_transform(graphs_of(scale)) for scale in (1.0, 1e200))
    np.testing.assert_allclose(near, far, rtol=1e-9)


# -------------------------------------------------------------------- gamma="scale"


def test_gamma_scale_is_one_over_the_total_variance(make):
    graphs = graphs_of(1000.0)
    gamma = 1 / graphs.attributes.var(axis=0).sum()
    scaled, given = make(gamma="scale"), make(gamma=gamma)
    np.testing.assert_allclose(scaled.fit_transform(graphs), given.fit_transform(graphs), rtol=1e-12)
    assert scaled.gamma_ == pytest.approx(gamma, rel=1e-12)
    np.testing.assert_allclose(scaled.transform(graphs[1:]), given.transform(graphs[1:]), rtol=1e-12)
    assert scaled.gamma_ == pytest.approx(gamma, rel=1e-12)
    grid = gram_array(make(), graphs, gamma=["scale", 0.1])
    np.testing.assert_allclose(grid[0], given.fit_transform(graphs), rtol=1e-12)


def test_gamma_scale_learns_from_data(make):
    assert make(gamma="scale").learns_from_data
    assert KernelSum([make(gamma="scale")]).learns_from_data
    if make is not ODDCLApprox:
        assert not make().learns_from_data
    assert not hasattr(make().fit(graphs_of()), "gamma_")


def test_units_do_not_matter_with_gamma_scale(make):
    small, large = (clone(make(gamma="scale")).fit_transform(graphs_of(scale)) for scale in (1e-3, 1e6))
    np.testing.assert_allclose(small, large, rtol=1e-9)


@pytest.mark.parametrize("attributes", [None, [[[7.0]] * n for n in (3, 3, 4)]])
def test_without_variance_gamma_scale_is_the_default(make, attributes):
    graphs = Graphs.from_edges(EDGES, attributes=attributes)
    np.testing.assert_array_equal(make(gamma="scale").fit_transform(graphs), make().fit_transform(graphs))
    assert make(gamma="scale").fit(graphs[:0]).transform(graphs[:0]).shape == (0, 0)


@pytest.mark.parametrize("word", ["narrow", "white"])
def test_words_are_learned_in_fit_alone(make, word):
    graphs = graphs_of(1000.0)
    kernel = make(gamma=word)
    K, learned = kernel.fit_transform(graphs), kernel.gamma_
    given = make(gamma=GAMMA_RULES[word](graphs.attributes))
    assert learned == given.gamma
    np.testing.assert_allclose(K, given.fit_transform(graphs), rtol=1e-12)
    np.testing.assert_allclose(kernel.transform(graphs_of(3.0)), given.transform(graphs_of(3.0)), rtol=1e-12)
    assert kernel.gamma_ == learned
    assert kernel.learns_from_data
    np.testing.assert_allclose(gram_array(make(), graphs, gamma=[word])[0], K, rtol=1e-12)


def test_white_gamma_is_a_fifth_unless_all_vectors_are_far_apart():
    near, far = np.random.default_rng(0).normal(size=(2, 500, 3)) * np.array([1.0, 100.0])[:, None, None]
    assert GAMMA_RULES["white"](near) == 0.2
    assert GAMMA_RULES["white"](far) == pytest.approx(GAMMA_RULES["white"](10 * far) * 100)
    assert GAMMA_RULES["white"](1e200 * far) == 0.2  # squares overflow


@pytest.mark.parametrize("word", ["scale", "narrow"])
def test_gamma_of_huge_vectors_raises(make, word):
    with pytest.raises(ValueError, match=r"No gamma follows from these vectors.*as large as"):
        make(gamma=word).fit(graphs_of(1e200))


def test_unknown_gamma_string_raises(make):
    with pytest.raises(ParameterError, match=r"gamma of .* must be .*'scale'.*; got 'auto'"):
        make(gamma="auto").fit(graphs_of())
