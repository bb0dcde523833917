"""Tests of FeatureMap, explicit features as a pipeline step."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from checks import feature_names
from treegram import (
    ODDST,
    P2K,
    WL,
    WLCL,
    FeatureMap,
    KernelDistances,
    KernelSum,
    Nystroem,
    ShortestPath,
    StatisticsKernel,
    load_digits_graphs,
)
from treegram.exceptions import ParameterError
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.registry import KERNELS as KERNEL_CLASSES
from zoo import LAWS_HOLD_ON

MIXED = LAWS_HOLD_ON["mixed"].pack()
KERNELS = [
    *(kind() for kind in KERNEL_CLASSES.values() if issubclass(kind, ExplicitKernel)),
    P2K(2),
    P2K(1, mode="hash"),
]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_of_rows_equal_the_kernel(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    features = FeatureMap(kernel).fit(MIXED)
    Z = features.transform(MIXED)
    assert sp.issparse(Z)
    assert Z.shape == (len(MIXED), features.n_features_out_)
    K = clone(kernel).fit(MIXED).transform(MIXED)
    np.testing.assert_allclose((Z @ Z.T).toarray(), K, rtol=1e-10, atol=1e-12)
    names = features.get_feature_names_out()
    assert len(names) == features.n_features_out_
    assert all(isinstance(name, str) for name in names)
    np.testing.assert_array_equal(FeatureMap(kernel, sparse_output=False).fit_transform(MIXED), Z.toarray())


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_with_rows_of_new_graphs_equal_the_kernel(kernel, normalize):
    """Features that the fitted graphs do not have get no column, but count for the length of a row."""
    kernel = clone(kernel).set_params(normalize=normalize)
    old, new = MIXED[::2], MIXED[1::2]
    features = FeatureMap(kernel).fit(old)
    products = (features.transform(new) @ features.transform(old).T).toarray()
    np.testing.assert_allclose(products, clone(kernel).fit(old).transform(new), rtol=1e-10, atol=1e-12)


def test_feature_names_of_trees_and_colors_are_readable():
    assert "C(N,O)" in FeatureMap(WL(1)).fit(MIXED).get_feature_names_out()
    trees = FeatureMap(ODDST(2)).fit(MIXED).get_feature_names_out()
    assert len(set(trees)) == len(trees)
    assert any(name.count("(") == 2 for name in trees)


def test_default_kernel_is_wl():
    assert isinstance(FeatureMap().fit(MIXED).kernel_, WL)


def test_linear_model_learns_from_the_rows():
    graphs, y = load_digits_graphs(n_levels=3)
    keep = np.isin(y, (0, 1))
    graphs, y = graphs[keep][:120], y[keep][:120]
    model = make_pipeline(FeatureMap(WL()), LogisticRegression(C=10, max_iter=1000))
    search = GridSearchCV(model, {"featuremap__kernel__n_iterations": [0, 2]}, cv=2).fit(graphs, y)
    assert search.cv_results_["mean_test_score"].max() > max(y.mean(), 1 - y.mean())
    assert len(search.best_estimator_[:-1].get_feature_names_out()) == search.best_estimator_[-1].coef_.shape[1]


@pytest.mark.parametrize(
    "rows",
    [FeatureMap(WL(1), sparse_output=False), FeatureMap(WLCL(1), n_features=8), Nystroem(WL(1), 3)],
    ids=["exact", "mapped", "Nystroem"],
)
def test_dense_rows_can_be_dataframes(rows):
    pytest.importorskip("pandas")
    expected = clone(rows).fit_transform(MIXED)
    table = rows.set_output(transform="pandas").fit_transform(MIXED)
    assert list(table.columns) == list(rows.get_feature_names_out())
    np.testing.assert_array_equal(table.to_numpy(), expected)
    if isinstance(rows, FeatureMap) and rows.map_ is None:
        assert list(table.columns) == feature_names(FeatureMap(WL(1)).fit(MIXED).kernel_)


def test_sparse_rows_cannot_be_dataframes():
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"sparse matrix.*to a dense array"):
        FeatureMap(WL(1)).set_output(transform="pandas").fit_transform(MIXED)


def test_gram_matrices_stay_arrays_in_a_session_with_dataframes():
    """Their columns are graphs, not features; a kernel whose own rows would be tables computes the same."""
    pytest.importorskip("pandas")
    assert not hasattr(WL(), "set_output")
    expected = StatisticsKernel().fit_transform(MIXED)
    with config_context(transform_output="pandas"):
        K = StatisticsKernel().fit_transform(MIXED)
        distances = KernelDistances(KernelSum([WL(), StatisticsKernel()])).fit_transform(MIXED)
    assert type(K) is type(distances) is np.ndarray
    np.testing.assert_array_equal(K, expected)


def test_kernels_that_have_no_rows_raise():
    with pytest.raises(
        ParameterError, match=r"kernel of FeatureMap must .*, such as ODDCL or WLCL; got ShortestPath\(\)"
    ):
        FeatureMap(ShortestPath()).fit(MIXED)
    with pytest.raises(ParameterError, match="kernel of FeatureMap must be a kernel or None; got 'wl'"):
        FeatureMap("wl").fit(MIXED)
    with pytest.raises(ParameterError, match="FeatureMap cannot use WLCL"):
        FeatureMap(WLCL(normalize="tanimoto")).fit(MIXED)
    with pytest.raises(NotFittedError):
        FeatureMap().transform(MIXED)
    with pytest.raises(NotFittedError):
        FeatureMap().get_feature_names_out()
