"""Tests of sums of kernels: equal to a manual sum, and all laws hold."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from checks import APPLIES, GRIDS, LAWS, ONCE, assert_close, gram, gram_array
from strategies import in_two_parts
from treegram import (
    ODDCL,
    ODDST,
    P2K,
    WL,
    CentroidDistance,
    DropAttributes,
    GraphSVC,
    KernelSum,
    ScaleAttributes,
    ShortestPath,
    explain,
    load_digits_graphs,
    load_model,
    save_model,
)
from treegram.exceptions import ParameterError
from treegram.kernels.grid import with_parameters
from zoo import LAWS_HOLD_ON

SEARCH = settings(max_examples=25, deadline=None)
MIXED = LAWS_HOLD_ON["mixed"].pack()
SCALED = make_pipeline(ScaleAttributes("robust"), ODDCL(1, gamma=0.5))
SUMS = {
    "scaled and not": KernelSum([ODDCL(1), SCALED]),
    "stateless": KernelSum((make_pipeline(CentroidDistance(), ODDCL(1)), make_pipeline(DropAttributes(), WL(1)))),
    "not normalized": KernelSum([ODDCL(1, normalize=False), SCALED], normalize=False),
    "weighted": KernelSum([ODDCL(1), SCALED], weights=[0.25, 3]),
    "sum in a sum": KernelSum([KernelSum([WL(1), P2K(1)]), ODDCL(1)]),
}
# Lists of estimators compare by identity; which grids exist depends on the parts.
TESTED_HERE = {"clone_is_unfitted_and_equal", "grid_equals_single_computations"}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "law"),
    [(name, law) for name in SUMS for law in sorted(LAWS.keys() - ONCE - TESTED_HERE) if APPLIES[law](SUMS[name])],
)
def test_sums_obey_the_kernel_laws(name, law):
    LAWS[law](SUMS[name], LAWS_HOLD_ON["mixed"])


@pytest.mark.parametrize("law", sorted(ONCE))
def test_sums_work_in_model_selection(law):
    LAWS[law](SUMS["stateless"], LAWS_HOLD_ON["mixed"])


@pytest.mark.parametrize("name", SUMS)
def test_clone_is_unfitted_and_equal(name):
    fitted = clone(SUMS[name]).fit(MIXED)
    copy = clone(fitted)
    assert vars(copy).keys() == fitted.get_params(deep=False).keys()
    assert repr(copy) == repr(fitted)
    np.testing.assert_array_equal(gram(copy, MIXED), gram(SUMS[name], MIXED))


# -------------------------------------------------------------------- the sum


@given(drawn=in_two_parts(dimension=2, scale="plain", min_graphs=1))
@SEARCH
def test_sum_equals_the_manual_sum(drawn):
    collection, is_old = drawn
    graphs, is_old = collection.pack(), np.array(is_old)
    parts = [ShortestPath(), ODDCL(1, normalize=False), SCALED]
    old, new = graphs[is_old], graphs[~is_old]
    plain = KernelSum(parts, normalize=False)
    np.testing.assert_allclose(
        plain.fit_transform(old), sum(clone(part).fit_transform(old) for part in parts), rtol=1e-14, atol=1e-14
    )
    expected = sum(clone(part).fit(old).transform(new) for part in parts)
    np.testing.assert_allclose(plain.transform(new), expected, rtol=1e-12, atol=1e-12)


def test_normalized_sum_of_normalized_parts_is_their_mean():
    """If each part is nonzero: a graph without edges has no node pairs, and then only the other part counts."""
    parts = [ShortestPath(), ODDCL(1)]
    K = KernelSum(parts).fit(MIXED).transform(MIXED)
    paths, trees = (clone(part).fit_transform(MIXED) for part in parts)
    has_edges = np.array([graph.n_edges > 0 for graph in MIXED])
    both = np.ix_(has_edges, has_edges)
    np.testing.assert_allclose(K[both], (paths + trees)[both] / 2, atol=1e-12)
    no_edges = np.ix_(~has_edges, ~has_edges)
    np.testing.assert_allclose(K[no_edges], trees[no_edges], atol=1e-12)


def test_default_parts_are_trees_without_and_with_attributes():
    K = KernelSum(normalize=False).fit_transform(MIXED)
    np.testing.assert_array_equal(K, ODDST().fit_transform(MIXED) + ODDCL().fit_transform(MIXED))


def test_fitted_parts_are_available_and_the_given_ones_stay_unfitted():
    parts = [ODDST(1), clone(SCALED)]
    fitted = KernelSum(parts, n_jobs=2).fit(MIXED)
    assert [type(part) for part in fitted.kernels_] == [type(part) for part in parts]
    assert fitted.kernels_[0].n_jobs == fitted.kernels_[1][-1].n_jobs == 2
    assert parts[0].n_jobs is None
    assert not hasattr(parts[0], "graphs_")
    assert not hasattr(parts[1][0], "scale_")


# -------------------------------------------------------------------- grids and parameters


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("lists", [["depth", "lam"], ["lam", "n_iterations", "depth"], ["n_iterations"], []], ids=str)
def test_grid_equals_single_computations(lists, normalize):
    kernel = KernelSum([WL(1), SCALED, ODDST(1)], normalize=normalize)
    given_lists = {name: GRIDS[name] for name in lists}
    grid = gram_array(kernel, MIXED, **given_lists)
    shape = tuple(len(values) for values in given_lists.values())
    assert grid.shape == (*shape, len(MIXED), len(MIXED))
    for place in np.ndindex(shape):
        point = {name: values[i] for (name, values), i in zip(given_lists.items(), place, strict=True)}
        assert_close(grid[place], with_parameters(kernel, point).fit_transform(MIXED))
    assert not vars(kernel).keys() - kernel.get_params().keys(), "a grid leaves no trace"
    assert gram_array(kernel, MIXED[:0], **given_lists).shape == (*shape, 0, 0)


def test_parameter_that_no_part_has_raises():
    with pytest.raises(ParameterError, match="KernelSum has no parameter 'gammas'; did you mean gamma"):
        gram_array(KernelSum(), MIXED, gammas=[1.0])
    with pytest.raises(ParameterError, match=r"no parameter 'depth'.*Valid parameters are c, "):
        gram_array(KernelSum([ShortestPath()]), MIXED, depth=[1])
    with pytest.raises(ParameterError, match=r"depth\[1\] of ODDST must be a whole number of at least 0; got -1"):
        gram_array(KernelSum(), MIXED, depth=[1, -1])


def test_parameter_is_set_in_all_parts_that_have_it():
    parts = [WL(5), ODDST(5), clone(SCALED)]
    kernel = with_parameters(KernelSum(parts), {"depth": 2, "normalize": False})
    assert [kernel.kernels[1].depth, kernel.kernels[2][-1].depth] == [2, 2]
    assert kernel.kernels[0].get_params() == parts[0].get_params()
    assert (kernel.normalize, kernel.kernels[1].normalize) == (False, True)
    assert parts[1].depth == 5, "the given parts are not touched"
    assert [part.depth for part in with_parameters(KernelSum(), {"depth": 1}).kernels] == [1, 1]
    with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator KernelSum"):
        kernel.set_params(depth=2)


def test_each_part_has_its_parameters_under_its_index():
    parts = [WL(5), clone(SCALED)]
    kernel = KernelSum(parts)
    assert kernel.get_params()["0__n_iterations"] == 5
    assert kernel.get_params()["1__oddcl__gamma"] == 0.5
    assert kernel.set_params(**{"0__n_iterations": 2, "normalize": False}) is kernel
    assert (kernel.kernels[0].n_iterations, kernel.normalize) == (2, False)
    kernel.set_params(**{"1": ODDST(1), "1__depth": 2})
    assert isinstance(kernel.kernels[1], ODDST)
    assert kernel.kernels[1].depth == 2
    assert clone(kernel).get_params().keys() == kernel.get_params().keys()
    with pytest.raises(ValueError, match="Invalid parameter '2' for estimator KernelSum"):
        kernel.set_params(**{"2__depth": 2})


def test_grid_search_sets_parameters_of_the_parts():
    y = np.arange(len(MIXED)) % 2
    search = GridSearchCV(
        make_pipeline(KernelSum([ODDCL(), SCALED]), SVC(kernel="precomputed")), {"kernelsum__0__depth": [0, 2]}, cv=2
    ).fit(MIXED, y)
    for depth, score in zip([0, 2], search.cv_results_["mean_test_score"], strict=True):
        kernel = KernelSum([ODDCL(depth), SCALED])
        single = GridSearchCV(make_pipeline(kernel, SVC(kernel="precomputed")), {"svc__C": [1.0]}, cv=2).fit(MIXED, y)
        assert score == single.best_score_


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([], "kernels of KernelSum must hold at least one kernel; got an empty list"),
        ([ODDCL(), ScaleAttributes()], r"kernels\[1\] must be a graph kernel, .* got ScaleAttributes"),
        ([make_pipeline(ODDCL(), SVC())], r"kernels\[0\] must be .* got Pipeline"),
        ([ODDCL], r"kernels\[0\] must be .* got <class"),
        ([("name", ODDCL())], r"kernels\[0\] must be .* got \('name'"),
        (ODDCL(), "kernels of KernelSum must be"),
    ],
    ids=str,
)
def test_invalid_lists_of_kernels_raise(kernels, message):
    bad = KernelSum(kernels)
    for use in (bad.fit, bad.fit_transform, lambda X: gram_array(bad, X, depth=[1])):
        with pytest.raises(ValueError, match=message):
            use(MIXED)


def test_invalid_parameter_of_a_part_raises():
    with pytest.raises(ValueError, match="depth of ODDCL must be"):
        KernelSum([ODDST(), ODDCL(-1)]).fit(MIXED)


def test_repr_of_nested_sums_grows_linearly(monkeypatch):
    """scikit-learn's own repr took six times as long for each level, 47 s at depth 8."""
    n_calls = 0

    def counting_repr(self, N_CHAR_MAX=700):
        nonlocal n_calls
        n_calls += 1
        return "WL()"

    monkeypatch.setattr(WL, "__repr__", counting_repr)
    kernel, calls = WL(), []
    for _ in range(8):
        kernel, n_calls = KernelSum([kernel, WL()], normalize=False), 0
        assert "WL" in kernel._repr_html_()
        calls.append(n_calls)
    assert calls[-1] < 20 * calls[0]  # each level has a table of the parameters of all levels below it
    assert repr(kernel).startswith("KernelSum(kernels=[KernelSum(kernels=[")
    assert repr(KernelSum()) == "KernelSum()"


# -------------------------------------------------------------------- weights


def test_weights_multiply_the_parts(tmp_path):
    parts, weights = [WL(1), ODDCL(1, normalize=False), SCALED], np.array([2.0, 0.0, 0.5])
    grams = [clone(part).fit_transform(MIXED) for part in parts]
    total = sum(weight * K for weight, K in zip(weights, grams, strict=True))
    kernel = KernelSum(parts, weights=weights, normalize=False)
    assert_close(kernel.fit_transform(MIXED), total)
    assert_close(kernel.transform(MIXED), total)
    np.testing.assert_allclose(kernel.diag(MIXED), total.diagonal())
    roots = np.sqrt(np.where(total.diagonal() > 0, total.diagonal(), 1.0))
    assert_close(KernelSum(parts, weights=weights).fit_transform(MIXED), total / np.outer(roots, roots))
    save_model(kernel, tmp_path / "kernel.tgm")
    np.testing.assert_array_equal(load_model(tmp_path / "kernel.tgm").transform(MIXED), kernel.transform(MIXED))


def test_weights_can_be_searched_and_explained():
    kernel, lists = KernelSum([WL(), ODDCL(1)]), [[1.0, 0.0], [1, 3]]
    for params, K in kernel.gram_grid(MIXED, {"n_iterations": [0, 2], "weights": lists}):
        assert_close(
            K, KernelSum([WL(params["n_iterations"]), ODDCL(1)], weights=params["weights"]).fit_transform(MIXED)
        )
    graphs, y = (found[:40] for found in load_digits_graphs())
    model = GraphSVC(kernel, param_grid={"weights": lists}, C=10, cv=2).fit(graphs[:30], y[:30])
    assert model.best_params_["kernel"].weights in lists
    assert np.abs(explain(model, graphs[25:]).residual).max() < 1e-9


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "weights of KernelSum must be 2 numbers, one for each kernel, and not all 0; got [1.0]"),
        ([0, 0], "not all 0; got [0, 0]"),
        ([1, -1], "weights[1] of KernelSum must be a number of at least 0; got -1"),
        ([1, "a"], "weights[1] of KernelSum must be a number of at least 0; got 'a'"),
        (2.0, "weights of KernelSum must be a list of numbers or None; got 2.0"),
    ],
)
def test_invalid_weights_raise(weights, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        KernelSum([WL(), ODDCL()], weights=weights).fit(MIXED)
