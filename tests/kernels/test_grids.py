"""All Gram matrices of a grid equal a plain loop, for every type of kernel, with and without new graphs."""

from itertools import product
from unittest import mock

import numpy as np
import pytest
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from checks import assert_close
from treegram import CSM, ODDCL, ODDST, P2K, WL, GraphHopper, KernelSum, NeighborMeans, ODDCLApprox, ScaleAttributes
from treegram.exceptions import InvalidGraphError
from treegram.kernels.grid import grid_points, learns_from_data, parameter_names, split_pipeline, with_parameters
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
    "learned width": (P2K(), {"n_iterations": [2, 0], "attribute_width": ["scale", 1.0]}),
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


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_grid_equals_the_loop(case):
    kernel, grid = CASES[case]
    before = repr(kernel)
    points = grid_points(kernel, OLD, grid)
    expected = list(literal(kernel, grid))
    assert [point.params for point in points] == [params for params, *_ in expected]
    for point, (_, K, _, _) in zip(points, expected, strict=True):
        assert_close(point.gram, K)
    assert repr(kernel) == before
    assert not hasattr(kernel, "graphs_")


@pytest.mark.parametrize("case", CASES)
def test_grid_with_new_graphs_matches_the_oracle(case):
    """The oracle is the plain loop, so that the fast tier runs every case; new graphs are transformed, but not fitted."""
    kernel, grid = CASES[case]
    points = grid_points(kernel, OLD, grid, NEW)
    expected = list(literal(kernel, grid))
    assert [point.params for point in points] == [params for params, *_ in expected]
    for point, (_, K, K_new, one) in zip(points, expected, strict=True):
        assert_close(point.gram, K)
        is_normalized = final(one).normalize
        if not isinstance(one, Pipeline):
            np.testing.assert_allclose(point.self_kernels, one.diag(NEW))
        scale = np.ones(len(NEW)) if is_normalized else one.fit(NEW).transform(NEW).diagonal()
        assert_close(point.rows, K_new, scale, K.diagonal())


def test_gram_grid_returns_points_and_matrices():
    kernel = ODDCL(1)
    found = kernel.gram_grid(OLD, {"lam": [0.5, 1.0], "gamma": [1.0]})
    assert [params for params, _ in found] == [{"lam": 0.5, "gamma": 1.0}, {"lam": 1.0, "gamma": 1.0}]
    np.testing.assert_allclose(found[1][1], ODDCL(1, gamma=1.0).fit_transform(OLD), atol=1e-14)
    default = kernel.gram_grid(OLD)
    assert [params for params, _ in default] == list(ParameterGrid(kernel.default_param_grid()))
    ((params, K),) = GraphHopper().gram_grid(OLD)  # without parameters to search
    assert params == {}
    np.testing.assert_array_equal(K, GraphHopper().fit_transform(OLD))


def test_one_pass_parameters_take_one_pass_and_transformers_one_fit():
    with (
        mock.patch.object(ODDCL, "_grid_pass", autospec=True, side_effect=ODDCL._grid_pass) as passes,
        mock.patch.object(ScaleAttributes, "_learn", autospec=True, side_effect=ScaleAttributes._learn) as fits,
        mock.patch.object(ODDCL, "fit_transform", side_effect=AssertionError),
    ):
        grid_points(SCALED, OLD, {"depth": [0, 1, 2], "gamma": [0.1, 1.0], "lam": [0.5, 1.0]}, NEW)
        assert (passes.call_count, fits.call_count) == (2, 1)
        grid_points(KernelSum([SCALED, ODDCL()]), OLD, {"depth": [0, 1, 2]}, NEW)
        assert (passes.call_count, fits.call_count) == (4, 2)


def test_empty_collections_are_valid():
    points = grid_points(ODDCL(), OLD[:0], {"depth": [0, 1]}, NEW)
    assert [point.gram.shape for point in points] == [(0, 0)] * 2
    assert [point.rows.shape for point in points] == [(len(NEW), 0)] * 2
    assert grid_points(KernelSum(), OLD, {}, NEW[:0])[0].rows.shape == (0, len(OLD))


@pytest.mark.parametrize("kernel", [ODDCL(), SCALED, KernelSum()], ids=["kernel", "pipeline", "sum"])
def test_invalid_grid_raises(kernel):
    with pytest.raises(ValueError, match=r"has no parameter 'height'.* Valid parameters are .*depth"):
        grid_points(kernel, OLD, {"depth": [1], "height": [2]})
    with pytest.raises(ValueError, match=r"param_grid: lam must be a list of at least one value; got \[\]"):
        grid_points(kernel, OLD, {"depth": [1], "lam": []})
    with pytest.raises(ValueError, match=r"param_grid: counting must be a list .* got 'visits'"):
        grid_points(kernel, OLD, {"counting": "visits"})
    with pytest.raises(ValueError, match=r"depth\[0\] of ODD\w+ must be a whole number of at least 0; got -1"):
        grid_points(kernel, OLD, {"depth": [-1]})
    with pytest.raises(InvalidGraphError, match="attributes"):
        grid_points(kernel, OLD, {"depth": [1]}, LAWS_HOLD_ON["no_attributes"].pack())


def test_non_kernels_raise():
    with pytest.raises(ValueError, match=r"kernel must be a graph kernel, or a pipeline .* got ScaleAttributes"):
        grid_points(ScaleAttributes(), OLD, {})
    with pytest.raises(ValueError, match="that ends in one; got Pipeline"):
        grid_points(make_pipeline(ScaleAttributes()), OLD, {})


def test_parameters_of_a_grid():
    assert parameter_names(KernelSum([GraphHopper()])) == {"kernels", "weights", *GraphHopper().get_params()}


def test_learns_from_data():
    assert not learns_from_data(make_pipeline(NeighborMeans(), "passthrough", ODDCL()))
    assert learns_from_data(SCALED)
    assert learns_from_data(make_pipeline(NeighborMeans(), P2K()))
    assert learns_from_data(KernelSum([ODDCL(), SCALED]))
    assert not learns_from_data(KernelSum())
    # A third-party transformer does not declare it.
    assert learns_from_data(make_pipeline(FunctionTransformer(), ODDCL()))
