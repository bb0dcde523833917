"""Depths, radii, distances and sizes far beyond the graphs are capped if that changes nothing, and raise otherwise."""

import numpy as np
import pytest

import naive
from checks import gram_array
from treegram import CSM, GIK, NSPDK, ODDCL, ODDST, P2K, WL, WLCL, WLOA, ODDCLApprox, OrderedTrees
from treegram.structure.trees import new_visit
from zoo import COLLECTIONS, LAWS_HOLD_ON

MIXED = LAWS_HOLD_ON["mixed"]
GRAPHS = MIXED.pack()
HUGE = 2**64


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("name", ["edge_labels", "diamonds", "directed_edge_labels"])
def test_trees_deeper_than_the_graph_match_the_oracle(name, counting):
    collection = COLLECTIONS[name]
    expected = naive.oddst(collection, collection, depth=23, counting=counting)
    for kernel in (ODDST, ODDCL, OrderedTrees):
        options = {} if kernel is ODDST else {"gamma": 0.0}
        K = kernel(23, counting=counting, normalize=False, **options).fit_transform(collection.pack())
        np.testing.assert_allclose(K, np.reshape(expected, K.shape), rtol=1e-13)


def test_visits_have_at_most_as_many_depths_as_nodes():
    assert new_visit(5, HUGE).codes.shape == (5, 5)
    assert new_visit(0, HUGE).codes.shape == (0, 1)


@pytest.mark.parametrize("kernel", [ODDST, ODDCL, ODDCLApprox, OrderedTrees])
def test_trees_of_excessive_depth_equal_those_of_the_largest_distance(kernel):
    deep, enough = (kernel(depth, counting="capped").fit_transform(GRAPHS) for depth in (HUGE, 20))
    np.testing.assert_array_equal(deep, enough)


@pytest.mark.parametrize("kernel", [ODDST, ODDCL])
def test_grid_with_a_huge_depth_is_computed(kernel):
    grid = gram_array(kernel(), GRAPHS, depth=[1, HUGE], lam=[0.5, 1.2])
    np.testing.assert_allclose(grid[1, 1], kernel(HUGE, lam=1.2).fit_transform(GRAPHS), rtol=0, atol=1e-12)


def test_matchings_are_at_most_as_large_as_the_graphs():
    graphs = COLLECTIONS["no_labels"].pack()
    largest = int(graphs.sizes.max())
    for huge in (HUGE, largest + 1):
        np.testing.assert_array_equal(CSM(huge).fit_transform(graphs), CSM(largest).fit_transform(graphs))
    grid = gram_array(CSM(), graphs, max_size=[1, HUGE])
    np.testing.assert_allclose(grid[1], CSM(largest).fit_transform(graphs), rtol=0, atol=1e-14)
    kernel = CSM(largest + 2).fit(graphs[:1])
    np.testing.assert_allclose(kernel.transform(graphs), CSM(largest).fit(graphs[:1]).transform(graphs), atol=1e-14)


def test_huge_distances_equal_the_largest_distance_in_the_graph():
    far = GRAPHS.sizes.max() - 1
    np.testing.assert_array_equal(NSPDK(distance=HUGE).fit_transform(GRAPHS), NSPDK(distance=far).fit_transform(GRAPHS))
    huge, enough = (GIK("nspdk", distance=d).fit_transform(GRAPHS) for d in (HUGE, far))
    np.testing.assert_array_equal(huge, enough)


@pytest.mark.parametrize(
    "kernel",
    [WL(HUGE), WLCL(HUGE), WLOA(HUGE), P2K(HUGE), NSPDK(radius=HUGE), GIK(radius=HUGE), GIK(n_levels=HUGE)],
    ids=lambda kernel: f"{type(kernel).__name__}",
)
def test_parameters_that_cannot_be_capped_raise_memory_error(kernel):
    with pytest.raises(MemoryError, match=rf"{HUGE}.* would take .* of memory"):
        kernel.fit(GRAPHS)
