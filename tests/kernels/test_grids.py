"""All Gram matrices of a grid equal the literal loop, for every kind of kernel, with and without new graphs."""

from itertools import product
from unittest import mock

import numpy as np
import pytest
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from checks import assert_close
from treegram import (
    CSM,
    ODDCL,
    ODDST,
    P2K,
    WL,
    GraphHopper,
    InvalidGraphError,
    KernelSum,
    NeighborMeans,
    ODDCLApprox,
    ScaleAttributes,
)
from treegram.kernels.grid import gram_grids, parameter_names, with_parameters
from treegram.kernels.pipelines import learns_from_data, split_pipeline
from zoo import LAWS_HOLD_ON

MIXED = LAWS_HOLD_ON["mixed"].pack()
OLD, NEW = MIXED[::2], MIXED[1::2]
FIXED_MAP = {"method": "rff", "n_components": 16, "random_state": 0}
SCALED = Pipeline([("scale", ScaleAttributes("robust")), ("skip", "passthrough"), ("kernel", ODDCL())])

CASES = {
    "all lists at once": (ODDCL(counting="visits"), {"depth": [2, 0], "lam": [0.5, 1.3]}),
    "in another order": (ODDCL(), {"lam": [0.5, 1.3, 1.0], "depth": [0, 2]}),
    "a loop first": (ODDCL(), {"gamma": [0.1, 1.0], "lam": [0.5, 1.3, 1.0], "depth": [0, 2]}),
    "a loop last": (ODDCL(normalize=False), {"depth": [0, 1, 2], "gamma": [0.1, 1.0]}),
    "loops around": (ODDCL(1), {"counting": ["visits", "capped"], "lam": [0.5, 1.3, 2.0], "gamma": [0.0]}),
    "one list of two": (ODDCL(2), {"lam": [0.5, 1.3]}),
    "only a loop": (ODDCL(1), {"gamma": [0.1, 1.0]}),
    "nothing": (ODDCL(1, lam=1.2), {}),
    "ODDST": (ODDST(), {"lam": [0.5, 1.3], "depth": [2, 0]}),
    "colors add up": (WL(), {"n_iterations": [2, 0], "missing_labels": ["degree"]}),
    "CSM": (CSM(), {"use_labels": [True, False], "max_size": [1, 3]}),
    "fixed map": (ODDCLApprox(**FIXED_MAP), {"gamma": [0.1, 1.0], "depth": [1, 0]}),
    "learned map": (ODDCLApprox(method="nystroem", n_components=4, random_state=0), {"depth": [1, 0]}),
    "now fixed, now learned": (ODDCLApprox(**FIXED_MAP), {"method": ["rff", "nystroem"], "depth": [1, 0]}),
    "learned scale": (P2K(), {"n_iterations": [2, 0], "standardize": [False, True]}),
    "no one-pass parameter": (GraphHopper(), {"gamma": [0.1, 1.0], "use_labels": [True, False]}),
    "pipeline": (SCALED, {"gamma": [0.1, 1.0], "depth": [1, 0]}),
    "pipeline in a pipeline": (make_pipeline(NeighborMeans(), SCALED), {"depth": [1, 0]}),
    "sum": (KernelSum(), {"lam": [0.5, 1.3, 1.0], "depth": [1, 0]}),
    "sum of unlike parts": (
        KernelSum([ODDCL(1), WL(), SCALED, GraphHopper()]),
        {"gamma": [0.1, 1.0], "n_iterations": [2, 0, 1], "depth": [2, 0]},
    ),
    "the sum's own": (
        KernelSum([ODDCL(1, normalize=False), P2K()]),
        {"lam": [0.5, 2.0], "normalize": [False, True], "n_iterations": [1]},
    ),
    "sum that learns": (
        make_pipeline(NeighborMeans(), KernelSum([KernelSum([SCALED], normalize=False), ODDCLApprox(**FIXED_MAP)])),
        {"depth": [1, 0], "method": ["nystroem", "rff"]},
    ),
}


def final(kernel):
    return split_pipeline(kernel)[1]


def literal(kernel, grid):
    for values in product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        one = with_parameters(kernel, point)
        yield point, one.fit_transform(OLD), one.transform(NEW), one


@pytest.mark.parametrize("case", CASES)
def test_a_grid_equals_the_loop(case):
    kernel, grid = CASES[case]
    before = repr(kernel)
    points, grams = gram_grids(kernel, OLD, grid)
    expected = list(literal(kernel, grid))
    assert points == [point for point, *_ in expected]
    for gram, (_, K, _, _) in zip(grams, expected, strict=True):
        assert_close(gram, K)
    assert repr(kernel) == before
    assert not hasattr(kernel, "graphs_")


@pytest.mark.parametrize("case", CASES)
def test_new_graphs_come_along_without_being_learned_from(case):
    kernel, grid = CASES[case]
    points, grams, rows = gram_grids(kernel, list(OLD), grid, list(NEW))
    expected = list(literal(kernel, grid))
    assert points == [point for point, *_ in expected]
    for gram, part, (_, K, K_new, one) in zip(grams, rows, expected, strict=True):
        assert_close(gram, K)
        is_normalized = final(one).normalize
        scale = np.ones(len(NEW)) if is_normalized else one.fit(NEW).transform(NEW).diagonal()
        assert_close(part, K_new, scale, K.diagonal())


def test_one_pass_parameters_take_one_pass_and_transformers_one_fit():
    with (
        mock.patch.object(ODDCL, "_grid_pass", autospec=True, side_effect=ODDCL._grid_pass) as passes,
        mock.patch.object(ScaleAttributes, "_learn", autospec=True, side_effect=ScaleAttributes._learn) as fits,
        mock.patch.object(ODDCL, "fit_transform", side_effect=AssertionError),
    ):
        gram_grids(SCALED, OLD, {"depth": [0, 1, 2], "gamma": [0.1, 1.0], "lam": [0.5, 1.0]}, NEW)
        assert (passes.call_count, fits.call_count) == (2, 1)
        gram_grids(KernelSum([SCALED, ODDCL()]), OLD, {"depth": [0, 1, 2]}, NEW)
        assert (passes.call_count, fits.call_count) == (4, 2)


def test_no_graphs_are_legal():
    points, grams, rows = gram_grids(ODDCL(), OLD[:0], {"depth": [0, 1]}, NEW)
    assert [gram.shape for gram in grams] == [(0, 0)] * 2
    assert [part.shape for part in rows] == [(len(NEW), 0)] * 2
    assert gram_grids(KernelSum(), OLD, {}, NEW[:0])[2][0].shape == (0, len(OLD))
    assert len(points) == 2


@pytest.mark.parametrize("kernel", [ODDCL(), SCALED, KernelSum()], ids=["kernel", "pipeline", "sum"])
def test_a_grid_that_makes_no_sense_is_refused(kernel):
    with pytest.raises(ValueError, match=r"has no parameter 'height'.* Valid parameters are .*depth"):
        gram_grids(kernel, OLD, {"depth": [1], "height": [2]})
    with pytest.raises(ValueError, match=r"The grid's lam must be a list of at least one value; got \[\]"):
        gram_grids(kernel, OLD, {"depth": [1], "lam": []})
    with pytest.raises(ValueError, match=r"The grid's counting must be a list .* got 'visits'"):
        gram_grids(kernel, OLD, {"counting": "visits"})
    with pytest.raises(ValueError, match=r"depth\[0\] of ODD\w+ must be a whole number of at least 0; got -1"):
        gram_grids(kernel, OLD, {"depth": [-1]})
    with pytest.raises(InvalidGraphError, match="attributes"):
        gram_grids(kernel, OLD, {"depth": [1]}, LAWS_HOLD_ON["no_attributes"].pack())


def test_what_is_no_kernel_is_refused():
    with pytest.raises(ValueError, match=r"kernel must be a graph kernel, or a pipeline .* got ScaleAttributes"):
        gram_grids(ScaleAttributes(), OLD, {})
    with pytest.raises(ValueError, match="that ends in one; got Pipeline"):
        gram_grids(make_pipeline(ScaleAttributes()), OLD, {})


def test_parameters_of_a_grid():
    assert parameter_names(KernelSum([GraphHopper()])) == {"kernels", *GraphHopper().get_params()}


def test_who_learns_from_data():
    assert not learns_from_data(make_pipeline(NeighborMeans(), "passthrough", ODDCL()))
    assert learns_from_data(SCALED)
    assert learns_from_data(make_pipeline(NeighborMeans(), P2K()))
    assert learns_from_data(KernelSum([ODDCL(), SCALED]))
    assert not learns_from_data(KernelSum())
    # A transformer that is not ours does not say.
    assert learns_from_data(make_pipeline(FunctionTransformer(), ODDCL()))
