"""Tests of GraphSVC and GraphRidge: equal to the same search with scikit-learn, and the estimator interface."""

import pickle
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treegram
from checks import gram_array
from treegram import GIK, ODDCL, ODDST, WL, GraphHopper, GraphRidge, Graphs, GraphSVC, KernelSum, ScaleAttributes
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import parameter_names
from treegram.models.search import Fits
from treegram.models.svc import folds, score, select

CS = [0.1, 1.0, 100.0]
ALPHAS = [0.01, 1.0, 10.0]
GRID = {"depth": [0, 1], "lam": [0.5, 1.0]}
KERNELS = [
    getattr(treegram, name)
    for name in treegram.__all__
    if isinstance(getattr(treegram, name), type) and issubclass(getattr(treegram, name), GraphKernel)
]


def digits_of(classes, n_each):
    graphs, y = treegram.load_digits_graphs()
    chosen = np.sort(np.concatenate([np.flatnonzero(y == digit)[:n_each] for digit in classes]))
    return graphs[chosen], y[chosen]


@pytest.fixture(scope="module")
def two():
    """Return graphs of two classes: (training graphs, their classes, new graphs, their classes)."""
    graphs, y = digits_of((3, 8), 35)
    return graphs[:50], y[:50], graphs[50:], y[50:]


@pytest.fixture(scope="module")
def three():
    graphs, y = digits_of((3, 8, 9), 30)
    return graphs[:60], y[:60], graphs[60:], y[60:]


@pytest.fixture(scope="module")
def numbers():
    """Return graphs with the mean ink of their pixels."""
    graphs, _ = digits_of(range(10), 7)
    y = np.array([graph.attributes[:, 2].mean() for graph in graphs])
    return graphs[:50], y[:50], graphs[50:], y[50:]


@pytest.fixture(params=["two", "three"])
def data(request):
    return request.getfixturevalue(request.param)


# -------------------------------------------------------------------- classification


def test_scores_match_svc_on_the_same_folds(data):
    graphs, y, _, _ = data
    model = GraphSVC(ODDCL(), param_grid=GRID, C=CS, cv=StratifiedKFold(4, shuffle=True, random_state=3)).fit(graphs, y)
    results = model.cv_results_
    cv = StratifiedKFold(4, shuffle=True, random_state=3)
    for i, params in enumerate(results["params"]):
        K = params["kernel"].fit_transform(graphs)
        assert (params["kernel"].depth, params["kernel"].lam) == (results["param_depth"][i], results["param_lam"][i])
        theirs = cross_val_score(SVC(kernel="precomputed", C=params["C"]), K, y, cv=cv)
        np.testing.assert_allclose([results[f"split{fold}_test_score"][i] for fold in range(4)], theirs)
        assert results["mean_test_score"][i] == pytest.approx(theirs.mean())
        assert results["std_test_score"][i] == pytest.approx(theirs.std())
    assert len(results["params"]) == 12
    assert model.best_score_ == pytest.approx(results["mean_test_score"].max())
    assert model.best_params_ is results["params"][model.best_index_]
    assert results["rank_test_score"][model.best_index_] == 1
    assert model.n_unconverged_ == 0


def test_predictions_match_svc(data):
    graphs, y, new, _ = data
    for kernel, C in ((ODDCL(depth=1), 100.0), (ODDST(depth=2), 1.0)):
        model = GraphSVC(kernel, param_grid={}, C=C, cv=3).fit(graphs, y)
        assert repr(model.best_params_) == repr({"kernel": kernel, "param_grid": {}, "C": C})
        theirs = SVC(kernel="precomputed", C=C).fit(kernel.fit_transform(graphs), y)
        rows = kernel.transform(new)
        np.testing.assert_array_equal(model.predict(new), theirs.predict(rows))
        np.testing.assert_allclose(model.decision_function(new), theirs.decision_function(rows), atol=5e-3)


def test_equals_one_step_of_nested_cross_validation(data):
    graphs, y, _, _ = data
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    grams = list(gram_array(ODDCL(), graphs, depth=GRID["depth"], lam=GRID["lam"]).reshape(4, len(graphs), -1))
    for train, test in folds(codes, 3, 0):
        expected = select(grams, codes, train, test, np.array(CS), n_folds=4, seed=5)
        inner = StratifiedKFold(4, shuffle=True, random_state=5)
        model = GraphSVC(ODDCL(), param_grid=GRID, C=CS, cv=inner).fit(graphs[train], y[train])
        assert model.best_score_ == pytest.approx(expected.inner_score)
        assert model.best_params_["C"] == expected.strength
        np.testing.assert_array_equal(model.predict(graphs[test]), model.classes_[expected.predicted])


def test_equal_matrices_are_scored_once(two):
    graphs, y, _, _ = two
    with mock.patch("treegram.models.svc.score", side_effect=score) as scored:
        model = GraphSVC(ODDCL(), param_grid={"depth": [0, 1], "lam": [0.5, 0.7, 1.0]}, C=CS, cv=3).fit(graphs, y)
    assert scored.call_count == 4 * 3  # at depth 0 lam cancels in the normalization
    np.testing.assert_array_equal(model.cv_results_["mean_test_score"][:3], model.cv_results_["mean_test_score"][3:6])


def test_ties_go_to_the_first_kernel_point_and_smallest_c(two):
    graphs, y, _, _ = two
    with mock.patch("treegram.models.svc.score", return_value=(np.full(3, 0.5), Fits())):
        model = GraphSVC([WL(), ODDCL()], param_grid=[{"n_iterations": [2, 1]}, GRID], C=CS[::-1], cv=3).fit(graphs, y)
    assert repr(model.best_params_) == repr({"kernel": WL(n_iterations=2), "param_grid": {}, "C": 0.1})
    assert (model.cv_results_["rank_test_score"] == 1).all()


def test_best_of_several_kernels_is_chosen(two):
    graphs, y, new, y_new = two
    kernels = [WL(), make_pipeline(ScaleAttributes(), ODDCL()), ODDCL()]
    model = GraphSVC(kernels, param_grid=[{"n_iterations": [0, 1]}, {"depth": [0]}, {}], C=CS, cv=3).fit(graphs, y)
    results = model.cv_results_
    names = ["WL"] * 6 + ["ScaleAttributes > ODDCL"] * 3 + ["ODDCL"] * 3
    assert list(results["param_kernel"]) == names
    assert list(results["param_n_iterations"].mask) == [False] * 6 + [True] * 6
    assert list(results["param_depth"].mask) == [True] * 6 + [False] * 3 + [True] * 3
    assert list(results["param_C"]) == CS * 4
    assert not isinstance(model.best_params_["kernel"], WL)  # it ignores attributes, and all pixels have one label
    assert model.score(new, y_new) > 0.8


def test_kernels_of_the_same_class_have_different_names(two):
    graphs, y, _, _ = two
    kernels = [ODDCL(depth=0), ODDCL(depth=1, counting="visits")]
    model = GraphSVC(kernels, param_grid={}, C=1, cv=3).fit(graphs, y)
    assert list(model.cv_results_["param_kernel"]) == [repr(kernel) for kernel in kernels]


def test_pipeline_is_fitted_only_on_the_training_graphs(two):
    graphs, y, new, _ = two
    pipeline = make_pipeline(ScaleAttributes(), ODDCL(depth=1))
    model = GraphSVC(pipeline, param_grid={}, C=10, cv=3).fit(graphs, y)
    theirs = SVC(kernel="precomputed", C=10).fit(pipeline.fit_transform(graphs), y)
    np.testing.assert_array_equal(model.predict(new), theirs.predict(pipeline.transform(new)))
    np.testing.assert_array_equal(model.kernel_[0].center_, ScaleAttributes().fit(graphs).center_)


@pytest.mark.parametrize("names", [["b", "a"], [True, False], [-1.0, 7.0], [3, 1]])
def test_classes_of_any_type(two, names):
    graphs, y, new, y_new = two
    classes = np.array(names)
    model = GraphSVC(ODDCL(depth=0), param_grid={}, C=10, cv=3).fit(graphs, classes[(y == 8).astype(int)])
    np.testing.assert_array_equal(model.classes_, np.unique(classes))
    assert model.predict(new).dtype == classes.dtype
    assert model.score(new, classes[(y_new == 8).astype(int)]) > 0.8


def test_unconverged_fits_warn(two):
    graphs, y, _, _ = two
    huge = ODDCL(depth=0, node_kernel=lambda X, Y: 1e8 * X @ Y.T, normalize=False)
    with pytest.warns(ConvergenceWarning, match=r"\d+ of \d+ fits did not converge"):
        model = GraphSVC(huge, param_grid={}, C=[1, 10000], cv=3).fit(graphs, y)
    assert model.n_unconverged_ > 0


def test_non_finite_values_raise(two):
    graphs, y, _, _ = two
    broken = ODDCL(depth=0, node_kernel=lambda X, Y: np.full((len(X), len(Y)), np.nan), normalize=False)
    with pytest.raises(ValueError, match="finite"):
        GraphSVC(broken, param_grid={}, cv=3).fit(graphs, y)


# -------------------------------------------------------------------- regression


def test_scores_match_kernel_ridge_on_the_same_folds(numbers):
    graphs, y, _, _ = numbers
    model = GraphRidge(
        ODDCL(), param_grid=GRID, alpha=ALPHAS, cv=KFold(4, shuffle=True, random_state=3), target_transform=None
    ).fit(graphs, y)
    results = model.cv_results_
    for i, params in enumerate(results["params"]):
        K = params["kernel"].fit_transform(graphs)
        for fold, (train, test) in enumerate(KFold(4, shuffle=True, random_state=3).split(y)):
            center = y[train].mean()
            theirs = KernelRidge(kernel="precomputed", alpha=params["alpha"])
            theirs.fit(K[np.ix_(train, train)], y[train] - center)
            errors = theirs.predict(K[np.ix_(test, train)]) + center - y[test]
            assert results[f"split{fold}_test_score"][i] == pytest.approx(1 - (errors**2).mean() / y.var())
    assert model.best_score_ == results["mean_test_score"].max()


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 10.0])
def test_predictions_match_kernel_ridge(numbers, alpha):
    graphs, y, new, _ = numbers
    model = GraphRidge(ODDCL(depth=1), param_grid={}, alpha=alpha, cv=3, target_transform=None).fit(graphs, y)
    kernel = ODDCL(depth=1)
    theirs = KernelRidge(kernel="precomputed", alpha=alpha).fit(kernel.fit_transform(graphs), y - y.mean())
    np.testing.assert_allclose(model.predict(new), theirs.predict(kernel.transform(new)) + y.mean(), rtol=1e-6)
    assert model.intercept_ == pytest.approx(y.mean())


def test_regression_learns(numbers):
    graphs, y, new, y_new = numbers
    model = GraphRidge(ODDCL(), cv=5).fit(graphs, y)
    assert model.score(new, y_new) > 0.8
    assert model.best_params_["alpha"] < 1


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
@pytest.mark.parametrize("weights", [None, [0.5, 1, 2, 3] * 5])
def test_default_cv_leaves_out_each_graph_once(numbers, weights, scoring):
    """Compare with an explicit loop over the graphs."""
    graphs, y = numbers[0][:20], numbers[1][:20]
    model = GraphRidge(ODDCL(), param_grid=GRID, alpha=ALPHAS, scoring=scoring, target_transform=None).fit(
        graphs, y, sample_weight=weights
    )
    results = model.cv_results_
    for i, params in enumerate(results["params"]):
        K, predicted = params["kernel"].fit_transform(graphs), []
        for left_out in range(20):
            others = np.delete(np.arange(20), left_out)
            own = None if weights is None else np.array(weights)[others]
            center = np.average(y[others], weights=own)
            theirs = KernelRidge(kernel="precomputed", alpha=params["alpha"])
            theirs.fit(K[np.ix_(others, others)], y[others] - center, sample_weight=own)
            predicted.append(theirs.predict(K[left_out, others][None])[0] + center)
        errors = np.array(predicted) - y
        expected = -np.average(np.abs(errors), weights=weights)
        if scoring is None:
            expected = 1 - np.average(errors**2, weights=weights) / y.var()
        assert results["mean_test_score"][i] == pytest.approx(expected)
    assert model.best_score_ == results["mean_test_score"].max() == results["split0_test_score"].max()


def test_groups_require_a_splitter(numbers):
    with pytest.raises(ValueError, match="groups need a splitter, such as cv=GroupKFold"):
        GraphRidge(ODDCL(), param_grid={}).fit(*numbers[:2], groups=np.arange(50))


def test_shifted_and_scaled_target_gives_shifted_and_scaled_predictions(numbers):
    graphs, y, new, _ = numbers
    model, moved = (GraphRidge(ODDCL(), param_grid=GRID, cv=4).fit(graphs, target) for target in (y, 1e-9 * y + 5))
    assert repr(moved.best_params_) == repr(model.best_params_)
    np.testing.assert_allclose((moved.predict(new) - 5) * 1e9, model.predict(new), rtol=1e-4)


def test_folds_of_one_graph_and_a_constant_target(numbers):
    graphs, y, _, _ = numbers
    by_folds = GraphRidge(ODDCL(), param_grid=GRID, cv=12, target_transform=None).fit(graphs[:12], y[:12])
    in_closed_form = GraphRidge(ODDCL(), param_grid=GRID, target_transform=None).fit(graphs[:12], y[:12])
    np.testing.assert_allclose(
        in_closed_form.cv_results_["mean_test_score"], by_folds.cv_results_["mean_test_score"], rtol=1e-6
    )
    constant = GraphRidge(ODDCL(), param_grid=GRID, alpha=ALPHAS, cv=3).fit(graphs, np.full(50, 7))
    np.testing.assert_allclose(constant.predict(graphs), 7)
    assert repr(constant.best_params_["kernel"]) == "ODDCL(depth=0, lam=0.5)"
    assert constant.best_params_["alpha"] == 10.0


# -------------------------------------------------------------------- grids


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_default_grids_name_parameters_of_the_kernel(kernel):
    grid = kernel().default_param_grid()
    assert grid.keys() <= parameter_names(kernel())
    assert all(len(values) > 1 for values in grid.values())
    assert bool(grid) == (kernel.__name__ not in ("GraphHopper", "ShortestPath"))


def test_default_grids_of_variants_sums_and_pipelines():
    trees = {"depth": [0, 1, 2, 3], "lam": [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]}
    assert ODDCL().default_param_grid() == ODDST().default_param_grid() == trees
    assert GIK("nspdk").default_param_grid().keys() == {"radius", "distance"}
    assert GIK("sgk").default_param_grid() != GIK("wl").default_param_grid()
    assert KernelSum([ODDST(), WL()]).default_param_grid().keys() == {"depth", "lam", "n_iterations"}
    assert KernelSum([GraphHopper()]).default_param_grid() == {}


def test_default_grid_of_oddcl_is_that_of_the_paper(two):
    graphs, y, _, _ = two
    model = GraphSVC(ODDCL(), cv=3).fit(graphs, y)
    assert len(model.cv_results_["params"]) == 24 * 7
    assert isinstance(model.kernel_, ODDCL)


# -------------------------------------------------------------------- estimator interface


@pytest.fixture(params=[GraphSVC, GraphRidge])
def model(request):
    strengths = {"C": CS} if request.param is GraphSVC else {"alpha": ALPHAS}
    return request.param(ODDCL(), param_grid=GRID, cv=3, **strengths)


def test_lists_of_graphs_equal_a_collection(model, two):
    graphs, y, new, _ = two
    expected = clone(model).fit(graphs, y).predict(new)
    np.testing.assert_array_equal(clone(model).fit(list(graphs), list(y)).predict(list(new)), expected)


def test_networkx_graphs_are_accepted(model):
    graphs = [nx.path_graph(n) for n in range(3, 13)] + [nx.complete_graph(n) for n in range(3, 13)]
    y = np.repeat([0, 1], 10)
    model.set_params(kernel=ODDST())
    packed = Graphs.from_networkx(graphs)
    fitted = clone(model).fit(graphs, y)
    np.testing.assert_array_equal(fitted.predict(graphs), clone(model).fit(packed, y).predict(packed))
    assert fitted.score(graphs, y) > 0.7


def test_n_jobs_does_not_change_the_result(model, two):
    graphs, y, _, _ = two
    one, several = (clone(model).set_params(n_jobs=n_jobs).fit(graphs, y) for n_jobs in (None, 3))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], several.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(one.dual_coef_, several.dual_coef_)
    assert several.kernel_.n_jobs == 3


def test_fit_changes_no_parameter_and_can_be_repeated(model, two):
    graphs, y, new, _ = two
    before = {name: repr(value) for name, value in model.get_params().items()}
    assert model.fit(graphs, y) is model
    first = model.predict(new)
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    assert not hasattr(model.kernel, "graphs_")
    model.fit(graphs[::-1], y[::-1])
    np.testing.assert_array_equal(model.fit(graphs, y).predict(new), first)


def test_pickled_model_gives_the_same_result(model, two):
    graphs, y, new, _ = two
    model.fit(graphs, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), model.predict(new))


def test_multiclass_model_stores_no_coefficient_per_class_pair_and_graph():
    n_classes, n_graphs = 60, 120
    graphs = Graphs.from_edges([[(0, 1)]] * n_graphs, attributes=[[[g % n_classes], [g]] for g in range(n_graphs)])
    y = [f"class {g % n_classes}" for g in range(n_graphs)]
    model = GraphSVC(ODDCL(depth=0), param_grid={}, C=1, cv=2).fit(graphs, y)
    n_bytes = len(pickle.dumps(model)) - len(pickle.dumps(model.kernel_))
    assert n_bytes < 2 * 8 * n_classes * n_graphs + 8 * n_classes**2  # all pairs: 8 * 1770 * 120


def test_works_in_cross_validation_and_grid_search(model, two):
    graphs, y, _, _ = two
    scores = cross_validate(model, graphs, y, cv=3, return_estimator=True, error_score="raise")
    assert np.isfinite(scores["test_score"]).all()
    assert all(len(fitted.cv_results_["params"]) == 12 for fitted in scores["estimator"])
    search = GridSearchCV(
        clone(model).set_params(param_grid={}),
        {"kernel__depth": [0, 2], "kernel__gamma": [1.0]},
        cv=2,
        error_score="raise",
    )
    search.fit(graphs, y)
    assert search.best_estimator_.kernel_.depth == search.best_params_["kernel__depth"]


def test_nested_parameters_are_used_as_given_without_a_grid(model, two):
    graphs, y, _, _ = two
    model.set_params(param_grid={}, kernel__depth=2, kernel__lam=0.7)
    assert (model.kernel.depth, model.get_params()["kernel__lam"]) == (2, 0.7)
    fitted = model.fit(graphs, y)
    assert (fitted.kernel_.depth, fitted.kernel_.lam) == (2, 0.7)
    assert model.set_params(param_grid=GRID).fit(graphs, y).kernel_.depth in GRID["depth"]


def test_predict_on_no_graphs_is_empty(model, two):
    graphs, y, new, _ = two
    assert model.fit(graphs, y).predict(new[:0]).shape == (0,)


def test_estimator_types():
    assert is_classifier(GraphSVC())
    assert is_regressor(GraphRidge())
    with pytest.raises(NotFittedError):
        GraphSVC().decision_function(Graphs.from_edges([[(0, 1)]]))


# -------------------------------------------------------------------- invalid input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": []}, "kernel must be a kernel or a list of at least one; got an empty list"),
        ({"kernel": [ODDCL(), ScaleAttributes()]}, r"kernel\[1\] must be a graph kernel, or a pipeline"),
        ({"kernel": make_pipeline(ScaleAttributes())}, "kernel must be a graph kernel, or a pipeline"),
        ({"kernel": 7}, "kernel of Graph"),
        ({"kernel": "odcl"}, "kernel 'odcl' is unknown; did you mean oddcl"),
        ({"kernel": [ODDCL(), "w"]}, "kernel 'w' is unknown; did you mean"),
        ({"scoring": "acuracy"}, "'acuracy' is not a valid scoring value.*get_scorer_names"),
        ({"scoring": lambda model, X, y: np.nan}, "score that is not a finite number for ODDCL"),
        ({"cv": []}, "cv must give at least one pair"),
        (
            {"param_grid": {"dept": [1]}},
            "ODDCL has no parameter 'dept'; did you mean depth.*counting, depth, gamma",
        ),
        ({"param_grid": {"depth": []}}, r"param_grid: depth must be a list of at least one value"),
        ({"param_grid": {"depth": 1}}, r"param_grid: depth must be a list of at least one value; got 1"),
        ({"param_grid": {"depth": None}}, r"param_grid: depth must be a list of at least one value; got None"),
        ({"param_grid": [{}, {}]}, "one entry for each kernel: 1 kernels, got 2 entries"),
        ({"param_grid": [[1, 2]]}, r"grid\[0\] must be 'auto' or a dict"),
        ({"param_grid": "default"}, "grid of Graph"),
        ({"cv": 1}, "cv of Graph"),
    ],
)
def test_invalid_parameters_raise(model, two, parameters, message):
    graphs, y, _, _ = two
    with pytest.raises(ValueError, match=message):
        model.set_params(**parameters).fit(graphs, y)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"must be positive and finite; got \[\]"),
        ([1, 0], r"must be positive and finite; got \[1, 0\]"),
        (["a"], r"must be positive and finite; got \['a'\]"),
        ([1, -1], "must be positive"),
        ([1, np.inf], "finite"),
        ([1, np.nan], "finite"),
        (-1.0, "of Graph"),
        (None, "of Graph"),
    ],
)
@pytest.mark.parametrize(("kind", "name"), [(GraphSVC, "C"), (GraphRidge, "alpha")])
def test_invalid_regularization_raises(two, kind, name, values, message):
    graphs, y, _, _ = two
    with pytest.raises(ValueError, match=message) as error:
        kind(ODDCL(), param_grid={}, cv=3, **{name: values}).fit(graphs, y)
    assert name in str(error.value)


@pytest.mark.filterwarnings("ignore:y has 20 distinct values")
@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        (GraphSVC, [1] * 20, "at least two classes; got 20 graphs of class 1 alone"),
        (GraphSVC, range(20), "Every class has a single graph"),
        (
            GraphSVC,
            np.linspace(0, 1, 20),
            "y must be classes: integers, strings or booleans; got numbers such as 0.0. For numbers use",
        ),
        (GraphSVC, np.zeros((20, 2)), r"shape \(20, 2\)"),
        (GraphRidge, [1j] * 20, "y must be real numbers; got an array of dtype complex128"),
        (
            GraphRidge,
            ["a", "b"] * 10,
            "y must be real numbers; got an array of dtype <U1. For classes use GraphClassifier",
        ),
        (GraphRidge, [1.0] * 19 + [np.inf], r"y\[19\] is inf: targets must be finite"),
        *[
            (kind, y, message)
            for kind in (GraphSVC, GraphRidge)
            for y, message in (
                (None, "y is missing"),
                ([0, 1] * 9 + [0, None], r"y\[19\] is None: the target of graph 19 is missing"),
                ([0, 1] * 9 + [np.nan, 0], r"y\[18\] is nan"),
                ([0, 1] * 9, "20 graphs, got 18 targets"),
                (np.zeros((20, 2, 2)), r"shape \(20, 2, 2\)"),
            )
        ],
    ],
)
def test_invalid_targets_raise(two, kind, y, message):
    with pytest.raises(ValueError, match=message):
        kind(ODDCL(), param_grid={}, cv=3).fit(two[0][:20], y)


def test_number_of_folds_is_reduced_for_few_graphs(two):
    graphs, y = two[0][:20], list("abcdefghij") * 2
    with pytest.warns(UserWarning, match="No class has 10 graphs, one for each of cv=10 folds: 2 folds") as caught:
        model = GraphSVC(ODDCL(depth=0), param_grid={}, C=1).fit(graphs, y)
    assert len(caught) == 1
    assert "split1_test_score" in model.cv_results_
    assert "split2_test_score" not in model.cv_results_
    with pytest.warns(UserWarning, match="4 graphs are too few for cv=10: 4 folds are used"):
        GraphRidge(ODDCL(depth=0), param_grid={}, cv=10).fit(graphs[:4], [1, 2, 3, 4])


def test_too_few_graphs_raise(two):
    with pytest.raises(ValueError, match="at least two graphs; got 1"):
        GraphRidge().fit(two[0][:1], [1])
    with pytest.raises(ValueError, match="got no graphs"):
        GraphSVC().fit(two[0][:0], [])
