"""Tests of the law of round trips: a model that was saved and loaded predicts, explains, saves and fits as before, bit for bit."""

import warnings
from itertools import cycle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from treegram import (
    GIK,
    ODDCL,
    ODDST,
    P2K,
    WL,
    WLCL,
    WLOA,
    FeatureMap,
    GraphClassifier,
    GraphGP,
    GraphRegressor,
    GraphRidge,
    GraphSVC,
    KernelSum,
    Nystroem,
    ScaleAttributes,
    ShortestPath,
    StatisticsKernel,
    explain,
    load_model,
    make_motifs,
    save_model,
)

# Tables of the search, and numbers that refer to them.
NOT_SAVED = {"cv_results_", "results_", "best_index_", "n_fits_", "loo_decisions_"}
KERNELS = {
    "WL": lambda: WL(2),
    "ODDCL": lambda: ODDCL(depth=2, lam=1.2),
    "ODDCL, scaled": lambda: make_pipeline(ScaleAttributes(), ODDCL(depth=1)),
    "WLOA, Tanimoto": lambda: WLOA(1, normalize="tanimoto"),
    "ODDST, not normalized": lambda: ODDST(1, normalize=False),
    "P2K": lambda: P2K(n_iterations=1),
    "ShortestPath": lambda: ShortestPath(),
    "StatisticsKernel": lambda: StatisticsKernel(),
    "sum": lambda: KernelSum([WL(1), make_pipeline(ScaleAttributes(), WLCL(1)), GIK(radius=1, n_levels=1)]),
}
CLASSIFIERS = {
    "GraphClassifier": lambda kernel: GraphClassifier([kernel, "wl"]),
    "GraphSVC": lambda kernel: GraphSVC(kernel, param_grid={}, C=[1, 10], cv=2),
}
REGRESSORS = {
    "GraphRegressor": lambda kernel: GraphRegressor([kernel, "wl"]),
    "GraphRidge": lambda kernel: GraphRidge(kernel, param_grid={}, cv=2),
    "GraphGP": lambda kernel: GraphGP(kernel, param_grid={}),
}
PIPELINES = {
    "features": lambda: make_pipeline(FeatureMap(WL(1)), LogisticRegression()),
    "features of vectors": lambda: make_pipeline(ScaleAttributes(), FeatureMap(P2K(n_iterations=1)), Ridge()),
    "components": lambda: make_pipeline(ScaleAttributes(), Nystroem(ODDCL(1), 5), LinearSVC(random_state=0)),
}
# Every kernel in a classifier and in a regressor, and each of these models with three kernels or more.
CASES = {
    f"{model}, {kernel}": lambda make=models[model], kernel=kernel: make(KERNELS[kernel]())
    for models in (CLASSIFIERS, REGRESSORS)
    for kernel, model in zip(KERNELS, cycle(models), strict=False)
} | PIPELINES


@pytest.fixture(scope="module")
def data():
    graphs, y, _ = make_motifs(24, motifs=("house", "cycle", "clique"), n_attributes=2, random_state=0)
    rng = np.random.default_rng(0)
    order = rng.permutation(24)
    return graphs.assign(graph_attributes=rng.normal(size=(24, 2)))[order], y[order]


def explained(model, graphs):
    """Return everything that an explanation says."""
    explanation = explain(model, graphs)
    said = {
        "decisions": explanation.decisions,
        "intercept": explanation.intercept,
        "in_training": explanation.in_training,
        "predictions": explanation.predictions,
        "nodes": np.concatenate(explanation.node_contributions),
        "columns": explanation.column_contributions,
        "graphs": explanation.graph_contributions,
        "names": (explanation.outputs, explanation.column_names, explanation.feature_names),
        "summary": explanation.summary(5),
        "top": [explanation.top_features(i, 3) for i in range(len(graphs))],
        "similar": [[entry | {"target": None} for entry in explanation.similar_graphs(i)] for i in range(len(graphs))],
    }
    features = explanation.feature_contributions
    for i, matrix in enumerate(features if isinstance(features, tuple) else [features]):
        said[f"features {i}"] = None if matrix is None else matrix.toarray()
    return said


def predicted(model, graphs):
    """Return everything that a model predicts."""
    methods = [name for name in ("predict", "decision_function", "predict_proba") if hasattr(model, name)]
    said = {name: getattr(model, name)(graphs) for name in methods}
    if isinstance(model, GraphGP | GraphRegressor):
        said["predict"], said["std"] = model.predict(graphs, return_std=True)
    return said


def assert_same(new, old):
    assert new.keys() == old.keys()
    for name, value in old.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(new[name], value, err_msg=name)
        else:
            assert new[name] == value, name


def assert_close(new, old):
    """Compare values that may differ by rounding, and anything else, such as classes, exactly."""
    if old.dtype.kind == "f":
        np.testing.assert_allclose(new, old, rtol=0, atol=1e-12)
    else:
        np.testing.assert_array_equal(new, old)


def learned(model):
    return {name for name in vars(model) if name.endswith("_")} - NOT_SAVED


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_saved_and_loaded_model_is_the_same(name, data, tmp_path):
    graphs, y = data
    new, model = graphs[10:], CASES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about data that a kernel does not use
        model.fit(graphs[:16], y[:16])
        save_model(model, tmp_path / "model.tgm")
        loaded = load_model(tmp_path / "model.tgm")
        assert repr(loaded) == repr(model)
        assert learned(loaded) == learned(model)
        expected = predicted(model, new)
        assert_same(predicted(loaded, new), expected)
        assert_same(explained(loaded, new), explained(model, new))
        save_model(loaded, tmp_path / "again.tgm")
        assert (tmp_path / "again.tgm").read_bytes() == (tmp_path / "model.tgm").read_bytes()
        assert_same(predicted(clone(loaded).fit(graphs[:16], y[:16]), new), expected)
        assert_same(predicted(loaded.fit(graphs[:16], y[:16]), new), expected)


def batches(n_graphs):
    """Return parts of a collection: single graphs, a half, everything backwards, and one graph several times."""
    return [[0], [n_graphs - 1], list(range(0, n_graphs, 2)), list(range(n_graphs))[::-1], [1, 1, 0, 1]]


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_explanations_do_not_depend_on_the_other_graphs(name, data):
    graphs, y = data
    new, model = graphs[10:], CASES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(graphs[:16], y[:16])
        whole = explain(model, new)
        for batch in batches(len(new)):
            part = explain(model, new[batch])
            assert_close(part.decisions, whole.decisions[batch])
            assert_close(part.predictions, whole.predictions[batch])
            for i, values in zip(batch, part.node_contributions, strict=True):
                assert_close(values, whole.node_contributions[i])
            if whole.column_names:
                assert_close(part.column_contributions, whole.column_contributions[batch])
            if whole.in_training is not None:
                np.testing.assert_array_equal(part.in_training, whole.in_training[batch])
