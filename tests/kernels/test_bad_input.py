"""Invalid input raises an error that says what was wrong, where, and what to do."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from checks import gram_array
from treegram import ODDCL, ODDST, FeatureMap, Graphs, StatisticsKernel
from treegram.exceptions import InvalidGraphError, ParameterError
from zoo import LAWS_HOLD_ON, Collection

GRAPHS = LAWS_HOLD_ON["mixed"].pack()
KERNELS = [ODDST, ODDCL]


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.__name__)
def make(request):
    return request.param


# -------------------------------------------------------------------- parameters

BAD_PARAMETERS: dict[str, list[Any]] = {
    "depth": [-1, 1.5, 2.0, "3", None, [1]],
    "lam": [0, 0.0, -1, float("nan"), float("inf"), "1", None],
    "counting": ["all", None, 0],
    "missing_labels": ["none", None],
    "use_edge_labels": ["yes", None, 2],
    "normalize": ["yes", None, 2],
    "n_jobs": [1.5, "all"],
}
ODDCL_ONLY: dict[str, list[Any]] = {
    "gamma": [-0.1, float("nan"), float("inf"), "auto"],
    "node_kernel": ["gauss", "precomputed", None, 3],
}


@pytest.mark.parametrize(
    ("kernel", "name", "value"),
    [
        *((kernel, name, value) for kernel in KERNELS for name, values in BAD_PARAMETERS.items() for value in values),
        *((ODDCL, name, value) for name, values in ODDCL_ONLY.items() for value in values),
    ],
)
def test_invalid_parameter_raises(kernel, name, value):
    bad = kernel(**{name: value})  # no error in the constructor, as scikit-learn requires
    message = rf"{name} of {kernel.__name__} must be .*; got "
    for compute in (bad.fit, bad.fit_transform, lambda X: gram_array(bad, X, depth=[1], lam=[1.0])):
        with pytest.raises(ParameterError, match=message):
            compute(GRAPHS)


def test_parameters_are_checked_before_the_graphs(make):
    with pytest.raises(ParameterError, match="depth"):
        make(-1).fit("nonsense")


def test_unknown_parameter_raises(make):
    with pytest.raises(TypeError, match="height"):
        make(height=3)


def test_zero_workers_raise(make):
    with pytest.raises(ValueError, match="n_jobs"):
        make(n_jobs=0).fit(GRAPHS)


@pytest.mark.parametrize(
    ("depths", "lams", "message"),
    [
        ([1, -1], [1.0], r"depth\[\d\] of ODD\w+ must be a whole number of at least 0; got .*-1"),
        ([1.5], [1.0], r"depth\[\d\] of ODD\w+ must be a whole number of at least 0; got .*1\.5"),
        (["1"], [1.0], r"depth\[\d\] of ODD\w+ must be a whole number of at least 0; got .*1"),
        ([1], [0.0], r"lam\[\d\] of ODD\w+ must be a number greater than 0; got .*0\.0"),
        ([1], [1.0, -2.0], r"lam\[\d\] of ODD\w+ must be a number greater than 0; got .*-2\.0"),
        ([1], [np.nan], r"lam\[\d\] of ODD\w+ must be a number greater than 0; got .*nan"),
        ([1], [np.inf], r"lam\[\d\] of ODD\w+ must be a number greater than 0; got .*inf"),
        ([1], ["a"], r"lam\[\d\] of ODD\w+ must be a number greater than 0; got .*a"),
        ([], [1.0], r"depth must be a list of at least one value"),
        ([1], [], r"lam must be a list of at least one value"),
    ],
)
def test_invalid_grid_raises(make, depths, lams, message):
    with pytest.raises(ValueError, match=message):
        gram_array(make(), GRAPHS, depth=depths, lam=lams)


# -------------------------------------------------------------------- X

PATH = nx.path_graph(3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (None, "X must be a Graphs collection or a list of graphs; got NoneType"),
        (3, "X must be a Graphs collection or a list of graphs; got int"),
        ("ENZYMES", "X must be a Graphs collection or a list of graphs; got str"),
        ({"a": 1}, "X must be a Graphs collection or a list of graphs; got dict"),
        ([1, 2], r"a list that holds int\. .* use .*Graphs\.from_edges.*load_tu"),
        ([[(0, 1)]], r"a list that holds list\. .* use .*Graphs\.from_edges for lists of edges"),
        (np.zeros((3, 3)), r"a list that holds ndarray\. .* use .*np\.argwhere"),
        (PATH, r"got Graph\. .* use a list of graphs"),
        ([GRAPHS, PATH], r"a list that holds Graph\. .* use a list of graphs that are all of one kind"),
        ([GRAPHS, None], r"a list that holds NoneType\. .* use"),
    ],
    ids=lambda value: str(value).partition(" object at ")[
        0
    ],  # no addresses: xdist workers must agree on the test names
)
def test_x_that_is_not_a_collection_of_graphs_raises(make, X, message):
    fitted = make(1).fit(GRAPHS)
    for compute in (
        make(1).fit,
        make(1).fit_transform,
        fitted.transform,
        lambda X: gram_array(fitted, X, depth=[1], lam=[1.0]),
    ):
        with pytest.raises(InvalidGraphError, match=message):
            compute(X)


def test_incompatible_graphs_raise(make):
    labeled, unlabeled = Graphs.from_edges([[(0, 1)]], labels=[["C", "N"]]), Graphs.from_edges([[(0, 1)]])
    with pytest.raises(InvalidGraphError, match="cannot be joined: part 0 has labels, part 1 has no labels"):
        make().fit([labeled, unlabeled])


def test_networkx_graphs_are_accepted(make):
    drawn = nx.path_graph(3)
    nx.set_node_attributes(drawn, {0: "C", 1: "C", 2: "O"}, "label")
    nx.set_node_attributes(drawn, {0: [0.0], 1: [1.0], 2: [2.0]}, "attributes")
    packed = Collection([[(0, 1), (1, 2)]], [3], [["C", "C", "O"]], [[[0.0], [1.0], [2.0]]]).pack()
    kernel = make(normalize=False).fit(packed)
    np.testing.assert_array_equal(kernel.transform([drawn]), kernel.transform(packed))


# -------------------------------------------------------------------- transform after fit on other graphs

BASE = Collection([[(0, 1)]], [2], [["C", "N"]], [[[0.0, 1.0], [1.0, 0.0]]], [[1]])


def changed(**fields):
    return Collection(**{**vars(BASE), **fields}).pack()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (changed(attributes=[[[0.0], [1.0]]]), "have 1 attribute, but ODDCL was fitted on nodes with 2 attributes"),
        (changed(attributes=None), "have no attributes, but ODDCL was fitted on nodes with 2 attributes"),
        (changed(labels=None), "have no labels, but ODDCL was fitted on nodes with labels"),
        (changed(directed=True), "are directed, but ODDCL was fitted on undirected ones"),
    ],
    ids=["dimension", "no_attributes", "no_labels", "directed"],
)
def test_fit_and_transform_on_incompatible_graphs_raise_both_ways(X, message):
    with pytest.raises(InvalidGraphError, match=message):
        ODDCL(1).fit(BASE.pack()).transform(X)
    with pytest.raises(InvalidGraphError, match="but ODDCL was fitted on"):
        ODDCL(1).fit(X).transform(BASE.pack())


@pytest.mark.parametrize("fields", [{"labels": None}, {"directed": True}], ids=str)
def test_oddst_rejects_incompatible_graphs(fields):
    kernel = ODDST(1).fit(BASE.pack())
    for compute in (kernel.transform, FeatureMap(ODDST(1)).fit(BASE.pack()).transform):
        with pytest.raises(InvalidGraphError, match="but ODDST was fitted on"):
            compute(changed(**fields))


def test_missing_edge_labels_raise_if_used(make):
    kernel = make(1, use_edge_labels=True)
    with pytest.raises(InvalidGraphError, match="use_edge_labels=True, but the graphs have no edge labels"):
        kernel.fit(changed(edge_labels=None))
    with pytest.raises(InvalidGraphError, match="use_edge_labels=True, but the graphs have no edge labels"):
        kernel.fit(BASE.pack()).transform(changed(edge_labels=None))


def test_failed_transform_does_not_change_the_kernel():
    kernel = ODDCL(1).fit(BASE.pack())
    expected = kernel.transform(BASE.pack())
    with pytest.raises(InvalidGraphError):
        kernel.transform(changed(labels=None))
    np.testing.assert_array_equal(kernel.transform(BASE.pack()), expected)


# -------------------------------------------------------------------- user-defined node kernels


def test_node_kernel_with_wrong_output_shape_raises():
    kernel = ODDCL(1, node_kernel=lambda X, Y: np.ones(len(X)))
    with pytest.raises(
        ValueError, match=r"node_kernel must return an array of shape \(\d+, \d+\) for blocks of .*; got"
    ):
        kernel.fit_transform(GRAPHS)


def test_node_kernel_of_single_vectors_raises():
    """The most likely mistake: a function of two vectors instead of two blocks."""
    kernel = ODDCL(1, node_kernel=lambda x, y: float(np.exp(-((x - y[: len(x)]) ** 2).sum())))
    with pytest.raises(ValueError, match=r"node_kernel must return an array of shape .*got \(\)"):
        kernel.fit(BASE.pack())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_node_kernel_with_non_finite_values_raises(value):
    kernel = ODDCL(1, node_kernel=lambda X, Y: np.full((len(X), len(Y)), value))
    for compute in (kernel.fit, kernel.fit_transform):
        with pytest.raises(ValueError, match=r"node_kernel returned values that are not finite"):
            compute(GRAPHS)


def test_error_in_the_node_kernel_is_not_hidden():
    def broken(X, Y):
        raise ZeroDivisionError("by the user")

    for n_jobs in (1, 2):
        with pytest.raises(ZeroDivisionError, match="by the user"):
            ODDCL(1, node_kernel=broken, n_jobs=n_jobs).fit_transform(GRAPHS)


# -------------------------------------------------------------------- labels that Python considers equal


@pytest.mark.parametrize("same", [(1, 1.0), (0, -0.0), (1, True)], ids=str)
def test_equal_labels_match_whatever_their_type(make, same):
    """1 == 1.0 == True: one label within a collection, and between fit and transform."""
    old, new = (Graphs.from_edges([[]], labels=[[label]]) for label in same)
    together = make(0).fit_transform(Graphs.from_edges([[], []], labels=[[label] for label in same]))
    assert make(0).fit(old).transform(new)[0, 0] == pytest.approx(together[0, 1])
    assert make(0).fit_transform([old, new])[0, 1] == pytest.approx(together[0, 1])


def test_columns_in_another_order_raise():
    """Names decide: columns that changed places would be taken for each other without a word."""
    edges, rng = [[(0, 1), (1, 2)]] * 12, np.random.default_rng(0)
    columns, vectors = rng.normal(size=(12, 2)), rng.normal(size=(12, 3, 2))

    def build(kernel, order, names):
        if isinstance(kernel, ODDCL):
            return Graphs.from_edges(edges, attributes=list(vectors[:, :, order]), attribute_names=names)
        return Graphs.from_edges(edges, graph_attributes=columns[:, order], graph_attribute_names=names)

    for kernel, message in (
        (ODDCL(1), "Column 0 of the attributes of the new graphs .* is 'y', but ODDCL was fitted with 'x'"),
        (StatisticsKernel("graph_attributes"), "Column 0 of the graph attributes .* is 'y', .* with 'x'"),
    ):
        named, moved, unnamed = (
            build(kernel, *case) for case in (([0, 1], ["x", "y"]), ([1, 0], ["y", "x"]), ([0, 1], None))
        )
        kernel.fit(named)
        with pytest.raises(InvalidGraphError, match=message):
            kernel.transform(moved)
        np.testing.assert_array_equal(kernel.transform(unnamed), kernel.transform(named))
