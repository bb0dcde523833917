"""Tests of explanations: contributions of nodes, features and training graphs sum to the decisions."""

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC, LinearSVC

import naive
import strategies
import zoo
from checks import feature_names
from treegram import (
    CSM,
    GIK,
    NSPDK,
    ODDCL,
    ODDST,
    P2K,
    WL,
    WLCL,
    WLOA,
    FeatureMap,
    GraphClassifier,
    GraphGP,
    GraphHopper,
    GraphRegressor,
    GraphRidge,
    Graphs,
    GraphSVC,
    KernelSum,
    MoleculeGraphs,
    NeighborMeans,
    Nystroem,
    ODDCLApprox,
    OrderedTrees,
    ScaleAttributes,
    ShortestPath,
    StatisticsKernel,
    explain,
    make_motifs,
)
from treegram.exceptions import ParameterError
from treegram.explanations.contributions import in_training
from treegram.kernels import GraphKernel, feature_map, parameters
from treegram.kernels.attribution import kernel_contributions
from treegram.kernels.oddcl import count_trees
from treegram.kernels.registry import KERNELS as REGISTERED

KERNELS = {
    "ODDCL": ODDCL(depth=2, lam=0.8),
    "ODDCL, large trees": ODDCL(depth=3, lam=1.2),
    "ODDCL, not normalized": ODDCL(depth=1, normalize=False),
    "ODDCL, linear": ODDCL(depth=1, node_kernel="linear"),
    "WLCL": WLCL(n_iterations=2),
    "GraphHopper": GraphHopper(),
    "GraphHopper, labels": GraphHopper(use_labels=True, normalize=False),
    "GIK": GIK(radius=1, n_levels=1),
    "ODDST": ODDST(depth=2, lam=1.2, counting="visits"),
    "ODDST, not normalized": ODDST(depth=1, lam=0.5, normalize=False),
    "WL": WL(n_iterations=2, use_edge_labels=True),
    "WL, not normalized": WL(n_iterations=1, normalize=False),
    "WLOA": WLOA(n_iterations=2),
    "NSPDK": NSPDK(radius=1, distance=2),
    "P2K": P2K(n_iterations=2),
    "P2K, hash": P2K(n_iterations=1, mode="hash", normalize=False),
    "CSM": CSM(),
    "CSM, edges": CSM(max_size=2, use_labels=True, use_edge_labels=True, normalize=False),
    "ShortestPath": ShortestPath(),
    "ShortestPath, brownian": ShortestPath("brownian", c=3, use_labels=True),
    "KernelSum": KernelSum([ODDST(depth=1), make_pipeline(NeighborMeans(), ODDCL(depth=1)), WL(normalize=False)]),
    "KernelSum, not normalized": KernelSum([ShortestPath(), NSPDK()], normalize=False),
    "KernelSum, with and without trees": KernelSum([WL(), ShortestPath(), ODDCL(depth=1), GIK(radius=1, n_levels=1)]),
    "pipeline": make_pipeline(NeighborMeans(), ODDCL(depth=1)),
}
FAMILIES = (  # one for each way to split sums among nodes
    "ODDCL, large trees",
    "GIK",
    "P2K, hash",
    "CSM, edges",
    "ShortestPath, brownian",
    "KernelSum, with and without trees",
)
NEED_ATTRIBUTES = {"pipeline", "KernelSum"}
EXPLICIT = {
    name: KERNELS[name] for name in ("ODDST", "ODDST, not normalized", "WL", "WLOA", "NSPDK", "P2K", "P2K, hash")
}
TREES = {
    "WL": WL(),
    "WLOA": WLOA(),
    "WLCL": WLCL(),
    "ODDST": ODDST(depth=2, lam=1.2, counting="visits"),
    "ODDST, not normalized": ODDST(depth=2, lam=0.5, normalize=False),
    "ODDCL": ODDCL(depth=2, lam=0.8, counting="capped"),
    "ODDCL, deep": ODDCL(depth=30, lam=1.5),
    "sum": KernelSum([WL(), WLCL(), ODDCL(depth=1)]),
}
UNEXPLAINED = {"OrderedTrees": OrderedTrees(), "ODDCLApprox": ODDCLApprox()}
COLLECTIONS = {**zoo.LAWS_HOLD_ON, "edge_labels": zoo.COLLECTIONS["edge_labels"]}


def fitted_ridge(kernel, graphs):
    y = np.sin(np.arange(len(graphs)))
    return GraphRidge(kernel, param_grid={}, alpha=0.1, cv=2).fit(graphs, y)


def in_units(found, decisions):
    """Return decisions in units of the targets."""
    return decisions if found.target_scale is None else found.target_scale.inverse(decisions)


def node_sums(found):
    return np.array([contributions.sum(axis=0) for contributions in found.node_contributions]) + found.intercept


@pytest.mark.sampled
@pytest.mark.parametrize("name", KERNELS)
def test_node_contributions_sum_to_the_prediction(name):
    for collection in COLLECTIONS.values():
        graphs = collection.pack()
        if name in NEED_ATTRIBUTES and not graphs.n_attributes:
            continue  # its transformer needs attributes
        model = fitted_ridge(KERNELS[name], graphs[:7])
        for attribute_to in ("tree", "root"):
            found = explain(model, graphs, attribute_to=attribute_to)
            assert [len(own) for own in found.node_contributions] == graphs.sizes.tolist()
            np.testing.assert_allclose(in_units(found, node_sums(found)), model.predict(graphs), rtol=0, atol=1e-9)
            np.testing.assert_allclose(found.decisions, node_sums(found), rtol=0, atol=1e-9)
            by_graph = found.graph_contributions.sum(axis=1) + found.intercept
            np.testing.assert_allclose(by_graph, found.decisions, rtol=0, atol=1e-9)
            assert found.graph_contributions.shape == (len(graphs), 7)
            assert found.residual < 1e-9
            assert found.outputs == ("prediction",)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(collection=strategies.collections(min_graphs=2, dimension=2, edge_labels=True, labeled=True))
def test_node_contributions_sum_to_the_prediction_on_any_graphs(name, collection):
    graphs = collection.pack()
    if not graphs.n_nodes:
        return
    found = explain(fitted_ridge(KERNELS[name], graphs), graphs)
    assert found.residual <= 1e-9 * max(1.0, np.abs(found.graph_contributions).sum(axis=1).max())


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=10, deadline=None)
@given(drawn=strategies.with_node_order(min_graphs=2, dimension=2, edge_labels=True, labeled=True, scale="plain"))
def test_contributions_are_permuted_with_the_nodes(name, drawn):
    collection, places = drawn
    graphs = collection.pack()
    if not graphs.n_nodes:
        return
    model = fitted_ridge(KERNELS[name], graphs)
    before, after = explain(model, graphs), explain(model, collection.renumbered(places).pack())
    for old, new, place in zip(before.node_contributions, after.node_contributions, places, strict=True):
        np.testing.assert_allclose(new[list(place)], old, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", EXPLICIT)
def test_feature_contributions_sum_and_have_names(name):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = fitted_ridge(EXPLICIT[name], graphs[:7])
    found = explain(model, graphs)
    sums = np.asarray(found.feature_contributions.sum(axis=1)).ravel() + found.intercept
    np.testing.assert_allclose(in_units(found, sums), model.predict(graphs), rtol=0, atol=1e-9)
    assert len(found.feature_names) == found.feature_contributions.shape[1]
    ((top, value),) = found.top_features(3, 1)
    assert top in found.feature_names
    assert abs(value) == np.abs(found.feature_contributions[[3]].toarray()).max()


def test_features_of_a_sum_are_prefixed_by_their_kernel():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    found = explain(fitted_ridge(KernelSum([WL(n_iterations=1), ODDST(depth=1)]), graphs), graphs)
    sums = np.asarray(found.feature_contributions.sum(axis=1)).ravel() + found.intercept
    np.testing.assert_allclose(sums, found.decisions, rtol=0, atol=1e-9)
    assert {name.split(":")[0] for name in found.feature_names} == {"WL", "ODDST"}
    partly = explain(fitted_ridge(KERNELS["KernelSum"], graphs), graphs)  # one of the three kernels has no features
    assert {name.split(":")[0] for name in partly.feature_names} == {"ODDST", "WL"}
    without = explain(fitted_ridge(ODDCL(), graphs), graphs)
    assert without.feature_contributions is None
    assert without.feature_names is None
    assert without.top_features(0) == []


def test_trees_are_counted_once():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = fitted_ridge(ODDCL(depth=2, lam=0.8), graphs)
    with mock.patch("treegram.kernels.oddcl.count_trees", wraps=count_trees) as counted:
        explain(model, graphs)
    assert counted.call_count == 1


def test_contributions_match_a_hand_calculation():
    """A path N-C-O against an edge C-O: N occurs only in the path; C and O match by label, O also by its neighbor."""
    graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    kernel = WL(n_iterations=1, normalize=False).fit(graphs[1])
    np.testing.assert_allclose(kernel_contributions(kernel, graphs[0], np.ones((1, 1)), spread=False)[:, 0], [0, 1, 2])
    # The tree O(C) has two nodes, and each gets half.
    np.testing.assert_allclose(
        kernel_contributions(kernel, graphs[0], np.ones((1, 1)), spread=True)[:, 0], [0, 1.5, 1.5]
    )
    paths = ShortestPath(use_labels=True, normalize=False).fit(graphs[1])
    np.testing.assert_allclose(kernel_contributions(paths, graphs[0], np.ones((1, 1)), spread=False)[:, 0], [0, 1, 1])
    assignment = WLOA(n_iterations=0, normalize=False).fit(Graphs.from_edges([[]], labels=[["C"]]))
    twice = Graphs.from_edges([[(0, 1)]], labels=[["C", "C"]])  # either of the two is assigned
    np.testing.assert_allclose(kernel_contributions(assignment, twice, np.ones((1, 1)), spread=False)[:, 0], [0.5, 0.5])


@pytest.mark.parametrize("counts", [(4, 4), (4, 4, 4)])
def test_classifiers(counts):
    rng = np.random.default_rng(0)
    y = np.repeat([f"class {i}" for i in range(len(counts))], counts)
    edges = [[(i, i + 1) for i in range(5)] for _ in y]
    graphs = Graphs.from_edges(
        edges, labels=[rng.integers(0, 2, 6).tolist() for _ in y], attributes=rng.normal(size=(len(y), 6, 2)).tolist()
    )
    model = GraphSVC(ODDCL(depth=1), param_grid={}, C=[10], cv=2).fit(graphs, y)
    found = explain(model, graphs)
    assert found.residual < 1e-9
    if len(counts) == 2:
        np.testing.assert_allclose(node_sums(found), model.decision_function(graphs), rtol=0, atol=1e-9)
        assert found.outputs == ("class 1",)
        return
    np.testing.assert_allclose(node_sums(found), model._decide(graphs), rtol=0, atol=1e-9)
    assert found.outputs == (("class 0", "class 1"), ("class 0", "class 2"), ("class 1", "class 2"))
    assert found.graph_contributions.shape == (12, 12, 3)
    np.testing.assert_array_equal(
        found.graph_contributions[:, 8:, 0], 0
    )  # the third class does not affect the first two


def test_gaussian_process():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = GraphGP(WLCL(), param_grid={}).fit(graphs, np.arange(len(graphs)))
    found = explain(model, graphs)
    np.testing.assert_allclose(in_units(found, node_sums(found)), model.predict(graphs), rtol=0, atol=1e-9)


@pytest.mark.parametrize("automatic", [GraphRegressor([WLCL()]), GraphGP(WLCL(), param_grid={}), GraphRidge(WLCL())])
def test_slopes_convert_small_contributions_to_units_of_the_targets(automatic):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = clone(automatic).fit(graphs, np.exp(graphs.sizes.astype(float)))
    found = explain(model, graphs)
    assert found.target_scale is model.target_scale_
    assert str(found.target_scale).startswith("normal scores")
    step = 1e-6
    moved = in_units(found, found.decisions + step) - in_units(found, found.decisions - step)
    np.testing.assert_allclose(found.slopes, moved / (2 * step), rtol=1e-4)
    plain = clone(automatic).set_params(target_transform=None).fit(graphs, np.exp(graphs.sizes.astype(float)))
    found = explain(plain, graphs)
    assert found.target_scale is None
    np.testing.assert_array_equal(found.slopes, 1.0)
    np.testing.assert_allclose(found.decisions, plain.predict(graphs))


@pytest.mark.parametrize("name", EXPLICIT)
def test_linear_models_on_explicit_features(name):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    y = np.arange(len(graphs)) % 3
    ridge = make_pipeline(NeighborMeans(), FeatureMap(EXPLICIT[name]), Ridge()).fit(graphs, y)
    found = explain(ridge, graphs)
    np.testing.assert_allclose(node_sums(found), ridge.predict(graphs), rtol=0, atol=1e-9)
    assert found.graph_contributions is None
    for classes in (y, y > 0):
        logistic = make_pipeline(FeatureMap(EXPLICIT[name]), LogisticRegression()).fit(graphs, classes)
        found = explain(logistic, graphs)
        np.testing.assert_allclose(node_sums(found), logistic.decision_function(graphs), rtol=0, atol=1e-9)
        assert found.outputs == ((0, 1, 2) if classes is y else (True,))
        features = found.feature_contributions if classes is y else (found.feature_contributions,)
        sums = np.column_stack([np.asarray(one.sum(axis=1)).ravel() for one in features]) + found.intercept
        np.testing.assert_allclose(sums.squeeze(), found.decisions, rtol=0, atol=1e-9)


HASHED = {
    "hashed": FeatureMap(ODDCL(2, lam=1.2), n_features=64),
    "few columns, not normalized": FeatureMap(ODDCL(1, normalize=False), n_features=5),
    "Fourier": FeatureMap(ODDCLApprox(1, method="rff", n_components=8), n_features=64),
    "a column for each": FeatureMap(ODDCL(2, gamma="scale"), n_features=None),
    "a column for each, not normalized": FeatureMap(ODDCL(1, lam=0.5, normalize=False), n_features=None),
}


@pytest.mark.parametrize("collection", ["mixed", "directed"])
@pytest.mark.parametrize("name", HASHED)
def test_linear_models_on_features_of_trees_and_attributes(name, collection):
    graphs = zoo.LAWS_HOLD_ON[collection].pack()
    y = np.arange(len(graphs)) % 3
    for final, targets in ((LogisticRegression(), y), (LinearSVC(), y > 0), (RidgeClassifier(), y), (Ridge(), y)):
        model = (
            make_pipeline(ScaleAttributes(), HASHED[name], final)
            if graphs.n_attributes
            else make_pipeline(HASHED[name], final)
        )
        model.fit(graphs[:8], targets[:8])  # the other graphs contain trees that these do not
        expected = model.predict(graphs) if isinstance(final, Ridge) else model.decision_function(graphs)
        for attribute_to in ("root", "tree"):
            found = explain(model, graphs, attribute_to=attribute_to)
            np.testing.assert_allclose(node_sums(found).reshape(expected.shape), expected, rtol=0, atol=1e-9)
            assert found.residual < 1e-9
        features = (
            found.feature_contributions
            if isinstance(found.feature_contributions, tuple)
            else (found.feature_contributions,)
        )
        sums = np.column_stack([np.asarray(one.sum(axis=1)).ravel() for one in features]) + found.intercept
        np.testing.assert_allclose(sums.reshape(expected.shape), expected, rtol=0, atol=1e-9)
        assert found.graph_contributions is None
    assert set(found.feature_names) == set(feature_names(ODDST(HASHED[name].kernel.depth).fit(graphs)))


@pytest.mark.parametrize("name", ["few columns, not normalized", "a column for each, not normalized"])
def test_contribution_of_a_node_comes_from_its_own_trees(name):
    """A row is linear in the tree counts: the counts of a single node give its contribution."""
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = make_pipeline(HASHED[name], Ridge()).fit(graphs, np.sin(np.arange(len(graphs))))
    features, found = model[0], explain(model, graphs, attribute_to="root")
    for graph, contributions in zip(graphs, found.node_contributions, strict=True):
        trees = feature_map._features_of(features.kernel_, graph)
        for node, value in enumerate(contributions):
            counts = (sp.diags((np.arange(graph.n_nodes) == node).astype(float)) @ trees.counts).tocsr()
            alone = replace(trees, counts=counts)
            with mock.patch.object(feature_map, "_features_of", return_value=alone):
                row = features.transform(graph)
            np.testing.assert_allclose(value, (row @ model[1].coef_).item(), rtol=0, atol=1e-9)


def test_models_that_are_not_linear_in_the_features_raise():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    y = np.arange(len(graphs)) % 2
    rows = FeatureMap(ODDCL(1), n_features=None)
    with pytest.raises(
        ParameterError, match=r"must be a fitted linear model, with coef_, such as LogisticRegression.*got KNeigh"
    ):
        explain(make_pipeline(rows, KNeighborsClassifier()).fit(graphs, y), graphs)
    between = make_pipeline(rows, MaxAbsScaler(), LogisticRegression()).fit(graphs, y)
    with pytest.raises(ParameterError, match="a linear model on the rows of a FeatureMap or of Nystroem"):
        explain(between, graphs)


@pytest.mark.parametrize("attribute_to", ["root", "tree"])
@pytest.mark.parametrize("kernel", [WL(), make_pipeline(NeighborMeans(), ODDCL(depth=1))], ids=["kernel", "pipeline"])
def test_linear_models_on_nystroem_features(kernel, attribute_to):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    y = np.arange(len(graphs)) % 3
    for classes in (y, y > 0):
        model = make_pipeline(NeighborMeans(), Nystroem(kernel, 6), LogisticRegression()).fit(graphs, classes)
        found = explain(model, graphs, attribute_to=attribute_to)
        np.testing.assert_allclose(node_sums(found), model.decision_function(graphs), rtol=0, atol=1e-9)
        assert found.graph_contributions.shape[:2] == (len(graphs), len(model[1].component_indices_))
        assert found.residual < 1e-9


@pytest.mark.parametrize("nested", [False, True])
def test_pipelines_ending_in_a_model(nested):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    end = GraphRidge(make_pipeline(ScaleAttributes(), ODDCL(depth=1)), param_grid={}, alpha=0.1, cv=2)
    end = make_pipeline(ScaleAttributes(), end) if nested else end
    model = make_pipeline(NeighborMeans(), "passthrough", end).fit(graphs, np.sin(np.arange(len(graphs))))
    found = explain(model, graphs)
    np.testing.assert_allclose(in_units(found, found.decisions), model.predict(graphs), rtol=0, atol=1e-9)
    assert found.residual < 1e-9


def test_pipeline_on_molecules_is_explained_atom_by_atom():
    pytest.importorskip("rdkit")
    smiles = ["CO", "CCO", "CC(C)O", "OCCC", "CN", "CCN", "CC(C)N", "NCCC"]
    model = make_pipeline(MoleculeGraphs(), GraphSVC(WL(), param_grid={}, C=1, cv=2)).fit(smiles, [0] * 4 + [1] * 4)
    found = explain(model, ["CCCCO", "CCCCN"])
    np.testing.assert_allclose(found.decisions, model.decision_function(["CCCCO", "CCCCN"]), rtol=0, atol=1e-9)
    assert [len(contributions) for contributions in found.node_contributions] == [5, 5]


def test_sparse_coefficients_of_linear_models():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = make_pipeline(FeatureMap(WL()), SGDClassifier(random_state=0)).fit(graphs, np.arange(len(graphs)) % 2)
    model[-1].sparsify()
    np.testing.assert_allclose(explain(model, graphs).decisions, model.decision_function(graphs), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", TREES)
def test_attribute_to_tree_differs_from_attribute_to_root(name):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = fitted_ridge(TREES[name], graphs)
    found, at_roots = explain(model, graphs), explain(model, graphs, attribute_to="root")
    assert found.residual < 1e-9
    assert (
        max(
            np.abs(a - b).max(initial=0)
            for a, b in zip(found.node_contributions, at_roots.node_contributions, strict=True)
        )
        > 1e-6
    )


@pytest.mark.parametrize("name", sorted(TREES.keys() - {"ODDCL, deep"}))
@settings(max_examples=15, deadline=None)
@given(collection=strategies.collections(min_graphs=2, dimension=2, edge_labels=True, labeled=True, scale="plain"))
def test_attributing_to_trees_keeps_the_sums_on_any_graphs(name, collection):
    graphs = collection.pack()
    if not graphs.n_nodes:
        return
    found = explain(fitted_ridge(TREES[name], graphs), graphs)
    assert found.residual <= 1e-9 * max(1.0, np.abs(found.graph_contributions).sum(axis=1).max())


def literal_trees(collection, g, depth, counting):
    """Yield each counted tree: its DAG, its root and its depth."""
    adjacent = naive.neighbors(collection, g)
    for r in range(len(adjacent)):
        if counting == "paper":
            children = naive.dag(adjacent, r, depth)
            yield from ((children, v, j) for v in children for j in range(depth + 1))
            continue
        last = depth if counting == "visits" else min(depth, max(naive.distances(adjacent, r).values()))
        for q in range(last + 1):
            children = naive.dag(adjacent, r, q)
            yield from ((children, v, q) for v in children)


def unrolled(children, v, j):
    """Return the nodes of T_j(v) with multiplicity."""
    return [v, *(u for w in children[v] if j for u in unrolled(children, w, j - 1))]


def literal_contributions(kernel, collection, n_fitted):
    """Return what each node adds to the kernel with each of the first graphs, each tree shared by its nodes, not normalized."""
    counts = [naive.tree_counts(collection, i, kernel.depth, counting=kernel.counting) for i in range(n_fitted)]
    contributions = []
    for g, n in enumerate(collection.n_nodes):
        of_graph, labels = np.zeros((n, n_fitted)), naive.node_labels(collection, g)
        bare = [dict.fromkeys(around) for around in naive.neighbors(collection, g)]
        for children, v, j in literal_trees(collection, g, kernel.depth, kernel.counting):
            t = naive.tree(children, labels, bare, v, j)
            totals = np.zeros(n_fitted)
            for i, fitted in enumerate(counts):
                for w, F in enumerate(fitted):
                    x, y = (collection.attributes[a][b] for a, b in ((g, v), (i, w)))
                    alike = naive.rbf(1 / len(x))(x, y) if isinstance(kernel, ODDCL) else 1.0
                    totals[i] += kernel.lam ** naive.size(t) * F[t] * alike
            nodes = unrolled(children, v, j)
            np.add.at(of_graph, nodes, totals / len(nodes))
        contributions.append(of_graph)
    return np.concatenate(contributions)


@pytest.mark.parametrize("counting", naive.COUNTINGS)
@pytest.mark.parametrize("kernel", [ODDST, ODDCL])
@settings(max_examples=10, deadline=None)
@given(
    collection=strategies.collections(min_graphs=1, max_graphs=3, dimension=2, labeled=True, scale="plain"),
    depth=st.integers(0, 3),
)
def test_trees_are_shared_equally_by_their_nodes(kernel, counting, collection, depth):
    graphs = collection.pack()
    if not graphs.n_nodes:
        return
    one = kernel(depth=depth, lam=0.7, counting=counting, normalize=False).fit(graphs)
    weights = np.sin(1.0 + np.arange(len(graphs)))
    contributions = kernel_contributions(one, graphs, weights[:, None], spread=True)[:, 0]
    expected = literal_contributions(one, collection, len(graphs)) @ weights
    np.testing.assert_allclose(contributions, expected, rtol=1e-9, atol=1e-9)


N_FITTED = 9
PLAIN_ODDCL, PLAIN_ODDST = ODDCL(depth=1, lam=0.7, normalize=False), ODDST(depth=1, lam=0.7, normalize=False)
CLASSIFIERS = {
    "GraphClassifier": GraphClassifier([PLAIN_ODDCL]),
    "GraphSVC": GraphSVC(PLAIN_ODDCL, param_grid={}, C=1, cv=2),
    "components": make_pipeline(Nystroem(PLAIN_ODDCL, N_FITTED), RidgeClassifier()),
}
REGRESSORS = {
    "GraphRegressor": GraphRegressor([PLAIN_ODDCL]),
    "GraphRidge": GraphRidge(PLAIN_ODDCL, param_grid={}, cv=2),
    "GraphGP": GraphGP(PLAIN_ODDCL, param_grid={}),
    "features": make_pipeline(FeatureMap(PLAIN_ODDST), Ridge()),
}


@pytest.fixture(scope="module")
def drawn():
    """Return small graphs with labels and vectors, and the literal contributions of their nodes to both kernels."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 5, 24)
    collection = zoo.Collection(
        [[(v, int(rng.integers(v))) for v in range(1, n)] for n in sizes],
        sizes.tolist(),
        labels=[rng.choice(["C", "O"], n).tolist() for n in sizes],
        attributes=[rng.normal(size=(n, 2)).tolist() for n in sizes],
    )
    literal = {
        type(kernel): literal_contributions(kernel, collection, N_FITTED) for kernel in (PLAIN_ODDCL, PLAIN_ODDST)
    }
    return collection.pack(), literal


def check_literal_sums(model, graphs, of_nodes, decisions):
    """A decision is b plus a weighted sum of literal kernel values: decisions on many graphs give b and the weights."""
    K = np.add.reduceat(of_nodes, graphs.offsets[:-1])
    weights = np.linalg.lstsq(np.column_stack([K, np.ones(len(K))]), decisions, rcond=1e-10)[0]
    scale = np.abs(decisions).max()
    np.testing.assert_allclose(K @ weights[:-1] + weights[-1], decisions, rtol=0, atol=1e-8 * scale)
    found = np.concatenate(explain(model, graphs).node_contributions)
    np.testing.assert_allclose(found, of_nodes @ weights[:-1], rtol=0, atol=1e-7 * scale)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_contributions_of_classifiers_are_literal_sums(name, n_classes, drawn):
    graphs, literal = drawn
    model = clone(CLASSIFIERS[name]).fit(graphs[:N_FITTED], np.arange(N_FITTED) % n_classes)
    decide = model._decide if name == "GraphSVC" and n_classes > 2 else model.decision_function  # by pairs of classes
    check_literal_sums(model, graphs, literal[ODDCL], decide(graphs))


@pytest.mark.parametrize("name", REGRESSORS)
def test_contributions_of_regressors_are_literal_sums(name, drawn):
    graphs, literal = drawn
    y = 100 + 20 * graphs.sizes[:N_FITTED] + np.sin(np.arange(N_FITTED))
    model = clone(REGRESSORS[name]).fit(graphs[:N_FITTED], y)
    decisions, scale = model.predict(graphs), getattr(model, "target_scale_", None)
    if scale is not None:
        decisions = scale.transform(decisions)
    check_literal_sums(model, graphs, literal[ODDST if name == "features" else ODDCL], decisions)


@pytest.mark.parametrize("name", ["ShortestPath", "NSPDK", "GIK", "P2K", "CSM", "KernelSum, not normalized"])
def test_kernels_without_trees_attribute_to_the_node_itself(name):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = fitted_ridge(KERNELS[name], graphs)
    both = (explain(model, graphs, attribute_to=one).node_contributions for one in ("tree", "root"))
    for own, at_root in zip(*both, strict=True):
        np.testing.assert_array_equal(own, at_root)


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_kernels_that_are_not_sums_over_nodes_raise(name):
    graphs = zoo.collect(zoo.PATH, zoo.CYCLE, zoo.STAR, zoo.TRIANGLE).pack()
    model = fitted_ridge(UNEXPLAINED[name], graphs)
    with pytest.raises(ParameterError, match=f"{name} cannot be explained. These kernels can be: .*CSM, GIK, "):
        explain(model, graphs)
    part = fitted_ridge(KernelSum([WL(), UNEXPLAINED[name]]), graphs)
    with pytest.raises(ParameterError, match=f"{name} cannot be explained"):
        explain(part, graphs)


def test_error_lists_all_explainable_kernels():
    """Every listed kernel can be explained, and every other kernel raises."""
    graphs = zoo.collect(zoo.PATH, zoo.CYCLE, zoo.STAR, zoo.TRIANGLE).pack()
    with pytest.raises(ParameterError) as caught:
        explain(fitted_ridge(OrderedTrees(), graphs), graphs)
    named = set(re.findall(r"\b[A-Z]\w+", str(caught.value).split("can be: ")[1])) - {"KernelSum"}
    explained = [cls for cls in REGISTERED.values() if cls._explained_by or hasattr(cls, "_column_parts")]
    assert named == {cls.__name__ for cls in explained}
    for cls in REGISTERED.values():
        if cls in explained:
            assert explain(fitted_ridge(cls(), graphs), graphs).residual < 1e-9
        else:
            with pytest.raises(ParameterError, match=f"{cls.__name__} cannot be explained"):
                explain(fitted_ridge(cls(), graphs), graphs)


def test_unsupported_models_raise():
    graphs, y = zoo.LAWS_HOLD_ON["mixed"].pack(), np.arange(11) % 2
    with pytest.raises(ParameterError, match="must be a model of graphs"):
        explain(WL().fit(graphs), graphs)
    neighbors = make_pipeline(FeatureMap(WL()), KNeighborsClassifier(1)).fit(graphs, y)
    with pytest.raises(ParameterError, match="must be a fitted linear model"):
        explain(neighbors, graphs)
    machine = make_pipeline(FeatureMap(WL()), SVC(kernel="linear")).fit(graphs, y)  # one-vs-one decisions
    with pytest.raises(ParameterError, match="must be a fitted linear model"):
        explain(machine, graphs)
    scaled = make_pipeline(FeatureMap(WL()), MaxAbsScaler(), Ridge()).fit(graphs, y)
    with pytest.raises(ParameterError, match="a linear model on the rows of a FeatureMap"):
        explain(scaled, graphs)


def test_weights_of_wrong_length_raise_before_compiled_code_reads_them():
    graphs, y = zoo.LAWS_HOLD_ON["mixed"].pack(), np.arange(11) % 2
    for features in (FeatureMap(ODDCL(1), n_features=64), FeatureMap(WL()), Nystroem(WL(), 4)):
        model = make_pipeline(features, LogisticRegression()).fit(graphs, y)
        n_columns = model[-1].coef_.shape[1]
        for wrong in (np.ones((1, 3)), np.ones((1, n_columns + 1)), np.ones((2, n_columns)), np.ones((1, 0))):
            model[-1].coef_ = wrong
            with pytest.raises(
                ParameterError, match=rf"of LogisticRegression do not fit .* there are {n_columns} columns"
            ):
                explain(model, graphs)
    ridge = fitted_ridge(ODDCL(depth=1), graphs)
    ridge.dual_coef_ = ridge.dual_coef_[:5]
    with pytest.raises(ParameterError, match="coefficients of GraphRidge do not fit its input: 5 for each"):
        explain(ridge, graphs)
    with pytest.raises(ParameterError, match="attribute_to of explain must be 'tree' or 'root'; got True"):
        explain(ridge, graphs, attribute_to=True)


# -------------------------------------------------------------------- contrasts and training graphs


@pytest.fixture(scope="module")
def three_classes():
    graphs, y, _ = make_motifs(45, motifs=("house", "cycle", "clique"), random_state=0)
    return graphs, np.array(["house", "cycle", "clique"])[y]


@pytest.mark.parametrize("is_linear", [False, True])
def test_multiclass_contrast_is_predicted_class_minus_runner_up(three_classes, is_linear):
    graphs, y = three_classes
    svc = GraphSVC(WL(), param_grid={}, C=1, cv=3)
    model = (make_pipeline(FeatureMap(WL()), LogisticRegression()) if is_linear else svc).fit(graphs[::2], y[::2])
    found = explain(model, graphs)
    scores, classes = model.decision_function(graphs), model.classes_.tolist()
    decisions = found.decisions if is_linear else dict(zip(found.outputs, found.decisions.T, strict=True))
    for i in range(len(graphs)):
        contrast = found._contrast(i)
        first, second = contrast.above, contrast.below
        assert first == model.predict(graphs[i])[0]
        scores[i, classes.index(first)] = -np.inf
        assert second == classes[scores[i].argmax()]
        if is_linear:
            expected = decisions[i, classes.index(first)] - decisions[i, classes.index(second)]
        else:
            expected = decisions[first, second][i] if first < second else -decisions[second, first][i]
        total = found._node_values_of(i, contrast).sum() + found.intercept @ contrast.combine
        assert total == pytest.approx(expected, abs=1e-9)
        by_features = sum(value for _, value in found.top_features(i, 10**6)) + found.intercept @ contrast.combine
        assert by_features == pytest.approx(expected, abs=1e-9)


def test_training_graphs_are_recognized(three_classes):
    graphs, y = three_classes
    model = GraphSVC(WL(), param_grid={}, C=1, cv=3).fit(graphs[::2], y[::2])
    copies = Graphs.concatenate([graphs[:7], graphs[7:]])  # another collection of the same graphs
    assert explain(model, copies).in_training.tolist() == [True, False] * 22 + [True]
    vectors, y2, _ = make_motifs(10, n_attributes=2, random_state=0)
    model = GraphSVC(make_pipeline(NeighborMeans(), WL()), param_grid={}, C=1, cv=2).fit(vectors[::2], y2[::2])
    assert explain(model, vectors).in_training.tolist() == [True, False] * 5
    labeled = Graphs.from_edges([[(0, 1)], [(0, 1)]], labels=[["C", "O"], ["C", "N"]])
    other = Graphs.from_edges([[(0, 1)], [(0, 1)], [(0, 1)]], labels=[["C", "N"], ["C", "C"], ["O", "C"]])
    assert explain(fitted_ridge(WL(), labeled), other).in_training.tolist() == [True, False, False]
    linear = make_pipeline(FeatureMap(WL()), LogisticRegression()).fit(graphs[::2], y[::2])
    assert explain(linear, graphs[:2]).in_training.tolist() == [True, False]
    components = make_pipeline(Nystroem(WL(), 5), LogisticRegression()).fit(graphs, y)
    assert explain(components, graphs).in_training is None


# -------------------------------------------------------------------- several kernels, and attributes of graphs


@parameters
class Sizes(GraphKernel):
    """Stand-in for a kernel on columns: exp(-|difference of nodes| - |difference of edges|)."""

    def _describe(self, graphs, grid):
        arcs = np.diff(graphs.indptr[graphs.offsets])
        return 0.1 * np.column_stack([graphs.sizes, arcs])

    def _pair_sums(self, left, right):
        return np.exp(-np.abs(left[:, None] - (left if right is None else right)[None]).sum(axis=2))

    def _self_sums(self, described):
        return np.ones(len(described))

    def _column_parts(self, graphs, weights):
        gaps = np.abs(self._describe(graphs, {})[:, None] - self._fitted[None])
        totals = gaps.sum(axis=2)
        shares = np.expm1(-totals) / np.where(totals > 0, totals, 1.0)
        return np.einsum("gf,gfc,fo->gco", shares, gaps, weights), weights.sum(axis=0), ["n_nodes", "n_arcs"]


class Combined:
    """Stand-in for a model of several kernels, with one output per class, or one for regression."""

    def __init__(self, kernels, graphs, n_outputs):
        rng = np.random.default_rng(0)
        self.parts = [(kernel.fit(graphs), rng.normal(size=(len(graphs), n_outputs))) for kernel in kernels]
        self.intercept = rng.normal(size=n_outputs)
        if n_outputs > 1:
            self.classes_ = np.array([f"class {i}" for i in range(n_outputs)])

    def _decision_parts(self):
        outputs = tuple(self.classes_.tolist()) if hasattr(self, "classes_") else ("prediction",)
        return self.parts, self.intercept, outputs

    def decision_function(self, X):
        return sum(kernel.transform(X) @ weights for kernel, weights in self.parts) + self.intercept

    def predict(self, X):
        decisions = self.decision_function(X)
        return self.classes_[decisions.argmax(axis=1)] if hasattr(self, "classes_") else decisions[:, 0]


PARTS = {
    "columns": lambda: [Sizes()],
    "columns and kernels": lambda: [WL(), Sizes(), make_pipeline(NeighborMeans(), ODDCL(depth=1))],
    "columns in a sum": lambda: [KernelSum([Sizes(), WL(n_iterations=1), ODDST(depth=1, normalize=False)]), WLOA()],
    "two kinds of columns": lambda: [Sizes(), KernelSum([Sizes(), ShortestPath()], normalize=False)],
}


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", PARTS)
def test_node_and_column_contributions_of_all_kernels_sum_to_the_decision(name, n_outputs):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = Combined(PARTS[name](), graphs[:7], n_outputs)
    found = explain(model, graphs)
    assert found.column_names[:2] == ("n_nodes", "n_arcs")
    assert found.column_names[-1] == "constant"
    expected = model.decision_function(graphs).reshape(found.decisions.shape)
    nodes = np.array([own.sum(axis=0) for own in found.node_contributions])
    columns = found.column_contributions.sum(axis=1)
    np.testing.assert_allclose(nodes + columns + found.intercept, expected, rtol=0, atol=1e-9)
    by_graph = found.graph_contributions.sum(axis=1) + found.intercept
    np.testing.assert_allclose(by_graph.reshape(expected.shape), expected, rtol=0, atol=1e-9)
    assert found.residual < 1e-9
    assert found.in_training.tolist() == [True] * 7 + [False] * 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("automatic", [GraphClassifier, GraphRegressor])
def test_contributions_of_automatic_models_sum_to_the_decision(automatic, n_classes):
    graphs, y, _ = make_motifs(60, motifs=("house", "cycle", "clique")[:n_classes], n_attributes=2, random_state=0)
    graphs = graphs.assign(graph_attributes=np.random.default_rng(0).normal(size=(60, 2)))
    model = automatic().fit(graphs[:45], y[:45])
    found = explain(model, graphs[40:])
    expected = model.decision_function(graphs[40:]) if hasattr(model, "classes_") else model.predict(graphs[40:])
    nodes = np.array([own.sum(axis=0) for own in found.node_contributions])
    columns = 0.0 if found.column_contributions is None else found.column_contributions.sum(axis=1)
    total = nodes + columns + found.intercept
    np.testing.assert_allclose(total.reshape(expected.shape), expected, rtol=0, atol=1e-9)
    assert found.residual < 1e-9
    assert found.in_training.tolist() == [True] * 5 + [False] * 15


def test_graph_attributes_are_explained_by_column():
    graphs, _, _ = make_motifs(30, random_state=0)
    kernel = KernelSum([StatisticsKernel(), WL()])
    found = explain(fitted_ridge(kernel, graphs[:20]), graphs)
    assert "n_nodes" in found.column_names
    assert found.residual < 1e-9
    assert {record["kind"] for record in found.summary()} == {"feature", "column"}


@settings(max_examples=25, deadline=None)
@given(collection=strategies.collections(min_graphs=2, dimension=2, labeled=True, scale="plain"))
def test_node_and_column_contributions_sum_on_any_graphs(collection):
    graphs = collection.pack()
    if not graphs.n_nodes:
        return
    model = Combined(PARTS["columns in a sum"](), graphs, 2)
    found = explain(model, graphs)
    assert found.residual <= 1e-9 * max(1.0, np.abs(found.graph_contributions).sum(axis=1).max())


def test_one_vs_rest_contrast_is_the_difference_of_two_outputs():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = Combined(PARTS["columns and kernels"](), graphs, 3)
    found, decisions = explain(model, graphs), model.decision_function(graphs)
    assert found.outputs == ("class 0", "class 1", "class 2")
    for i, own in enumerate(np.sort(decisions, axis=1)):
        contrast = found._contrast(i)
        assert contrast.above == model.predict(graphs)[i]
        columns = found._column_values[i].sum(axis=0) @ contrast.combine
        total = found._node_values_of(i, contrast).sum() + columns + found.intercept @ contrast.combine
        assert total == pytest.approx(own[-1] - own[-2], abs=1e-9)


def test_similar_graphs_are_the_nearest_under_all_kernels():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    kernels = [WL(normalize=False), Sizes()]
    model = Combined(kernels, graphs[:7], 1)
    found = explain(model, graphs)
    sizes = [np.linalg.norm(weights) for _, weights in model.parts]
    each = [clone(kernel).set_params(normalize=True).fit(graphs[:7]).transform(graphs) for kernel in kernels]
    expected = np.average(each, axis=0, weights=sizes)
    for i in (3, 9):
        similar = found.similar_graphs(i, 3)
        own = expected[i].copy()
        own[i if i < 7 else []] = -1  # the graph itself
        assert [one["index"] for one in similar] == np.argsort(-own, kind="stable")[:3].tolist()
        for one in similar:
            assert one["similarity"] == pytest.approx(own[one["index"]], abs=1e-12)
            assert one["contribution"] == pytest.approx(found.graph_contributions[i, one["index"]], abs=1e-12)
    linear = make_pipeline(FeatureMap(WL()), Ridge()).fit(graphs, np.arange(len(graphs)))
    assert explain(linear, graphs).similar_graphs(0) == []


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_summary_has_means_of_features_columns_and_labels(n_outputs):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    found = explain(Combined(PARTS["columns and kernels"](), graphs, n_outputs), graphs)
    table = pd.DataFrame(found.summary(10**6))
    assert table["mean_absolute"].is_monotonic_decreasing
    by_kind = {kind: rows.set_index("name") for kind, rows in table.groupby("kind")}
    assert set(by_kind) == {"feature", "column", "label"}
    assert set(by_kind["column"].index) == {"n_nodes", "n_arcs"}
    contrasts = [found._contrast(i) for i in range(len(graphs))]
    columns = np.array([own @ one.combine for own, one in zip(found._column_values, contrasts, strict=True)])
    for name, own in zip(("n_nodes", "n_arcs"), columns.T, strict=False):
        row = by_kind["column"].loc[name]
        assert row["mean"] == pytest.approx(own.mean())
        assert row["mean_absolute"] == pytest.approx(np.abs(own).mean())
        assert row["n_graphs"] == np.count_nonzero(own)
    total = np.mean([found._node_values_of(i, one).sum() for i, one in enumerate(contrasts)])
    assert by_kind["label"]["mean"].sum() == pytest.approx(total)
    features = np.mean([sum(value for _, value in found.top_features(i, 10**6)) for i in range(len(graphs))])
    assert by_kind["feature"]["mean"].sum() == pytest.approx(features)
    assert len(found.summary(1)) == 3
    assert pd.DataFrame(found.summary(output=0)).shape[1] == 6


CHANGES = {
    "labels": {"labels": ["C", "C", "N"]},
    "edges": {"edges": [(0, 1), (0, 2)]},
    "edge labels": {"edge_labels": ["single", "single"]},
    "attributes": {"attributes": [[0.0], [1.0], [2.5]]},
    "edge attributes": {"edge_attributes": [[0.5], [0.25]]},
    "graph attributes": {"graph_attributes": [1.0]},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_graph_that_differs_in_any_field_was_not_in_the_training_data(change):
    graph = {
        "edges": [(0, 1), (1, 2)],
        "labels": ["C", "C", "O"],
        "edge_labels": ["single", "double"],
        "attributes": [[0.0], [1.0], [2.0]],
        "edge_attributes": [[0.5], [0.5]],
        "graph_attributes": [0.0],
    }

    def pack(*records):
        return Graphs.from_edges(**{name: [record[name] for record in records] for name in graph})

    other = {**graph, "labels": ["N", "C", "O"], "edge_labels": ["single", "single"]}
    model = fitted_ridge(WL(), pack(graph, other))
    assert explain(model, pack(graph | CHANGES[change], other, graph)).in_training.tolist() == [False, True, True]


def test_contributions_of_molecules_with_leading_hydrogens_stay_with_their_atoms():
    chem = pytest.importorskip("rdkit.Chem")
    molecules = [chem.MolFromSmiles(smiles) for smiles in ("CCO", "CCN", "CC(C)O", "CC(C)N", "OCCC", "NCCC")]
    model = make_pipeline(MoleculeGraphs(attributes=["logp"]), GraphRidge(ODDCL(depth=1), param_grid={}, cv=2))
    model.fit(molecules, np.arange(6.0))
    expected = explain(model, molecules).node_contributions
    first = []
    for molecule in molecules:
        full = chem.AddHs(molecule)
        hydrogens = [atom.GetIdx() for atom in full.GetAtoms() if atom.GetSymbol() == "H"]
        first.append(chem.RenumberAtoms(full, [*hydrogens, *range(molecule.GetNumAtoms())]))
    found = explain(model, first)
    assert [graph.n_nodes for graph in found.graphs] == [len(values) for values in expected]
    for values, wanted in zip(found.node_contributions, expected, strict=True):
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-9)
    assert found.in_training.all()


def test_training_graphs_are_recognized_despite_rounding_in_a_transformer():
    graphs, _, _ = make_motifs(6, n_attributes=2, random_state=0)
    model = fitted_ridge(ODDCL(depth=1), graphs[:3])
    shaken = replace(graphs, attributes=graphs.attributes * (1 + 1e-14))
    assert explain(model, shaken).in_training.tolist() == [True] * 3 + [False] * 3


def test_training_graphs_are_found_without_an_explanation(three_classes):
    graphs, y = three_classes
    model = GraphSVC(WL(), param_grid={}, C=1, cv=3).fit(graphs[::2], y[::2])
    assert in_training(model, graphs[:4]).tolist() == [True, False, True, False]
    assert in_training(make_pipeline(Nystroem(WL(), 5), LogisticRegression()).fit(graphs, y), graphs) is None
    assert in_training(make_pipeline(FeatureMap(WL()), KNeighborsClassifier()).fit(graphs, y), graphs) is None


def test_notebook_view_is_short_and_escaped(three_classes):
    graphs, y = three_classes
    named = np.char.add("<b>", y)
    found = explain(GraphSVC(WL(), param_grid={}, C=1, cv=3).fit(graphs, named), graphs)
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + 10
    assert "35 more" in html
    assert "<b>" not in html
    assert repr(found) == "Explanation(45 graphs, 3 outputs, attribute_to='tree')"


def test_empty_collections_and_empty_graphs():
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = fitted_ridge(ODDCL(), graphs)
    assert explain(model, graphs[:0]).node_contributions == []
    (nothing,) = explain(model, graphs[0]).node_contributions
    assert nothing.shape == (0,)


def test_many_nodes_are_summed_in_batches(monkeypatch):
    graphs = zoo.LAWS_HOLD_ON["mixed"].pack()
    model = fitted_ridge(ODDCL(), graphs)
    expected = explain(model, graphs).node_contributions
    monkeypatch.setattr("treegram.kernels.node_pairs.CONTRIBUTIONS_AT_ONCE", 50)
    for some, all_at_once in zip(explain(model, graphs).node_contributions, expected, strict=True):
        np.testing.assert_allclose(some, all_at_once, rtol=1e-12, atol=1e-14)
