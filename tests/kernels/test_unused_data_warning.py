"""A kernel that ignores labels or attributes of the graphs warns once and names a way to use them."""

import warnings

import pytest
from sklearn.pipeline import make_pipeline

from treegram import (
    ODDCL,
    ODDST,
    WL,
    WLCL,
    BinEdgeAttributes,
    DropAttributes,
    FeatureMap,
    GraphClassifier,
    GraphGP,
    GraphHopper,
    Graphs,
    KernelSum,
    ShortestPath,
)

EDGES = [[(0, 1), (1, 2)], [(0, 1)]] * 6
PLAIN = {"labels": [["C", "C", "O"], ["C", "O"]] * 6}
VECTORS = {"attributes": [[[0.0], [1.0], [2.0]], [[1.0], [2.0]]] * 6}
EDGE_LABELS = {"edge_labels": [["-", "="], ["-"]] * 6}
EDGE_VECTORS = {"edge_attributes": [[[0.0], [1.0]], [[2.0]]] * 6}
Y = [0, 1] * 6


def graphs_with(*fields):
    return Graphs.from_edges(EDGES, **{name: values for field in (PLAIN, *fields) for name, values in field.items()})


def messages(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert all(one.filename == __file__ for one in caught)  # reported at the caller's line
    return [str(one.message) for one in caught]


def test_one_warning_lists_all_unused_data_and_how_to_use_it():
    graphs = graphs_with(VECTORS, EDGE_LABELS)
    (message,) = messages(lambda: WL().fit(graphs))
    assert message.startswith("WL does not use the node vectors and edge labels of these graphs.")
    assert "for node vectors, use WLCL, ODDCL or another kernel of vectors" in message
    assert "for edge labels, set use_edge_labels=True" in message
    (message,) = messages(lambda: ShortestPath().fit_transform(graphs_with(EDGE_LABELS)))
    assert "node labels and edge labels" in message
    assert "set use_labels=True; for edge labels, use WL, WLCL or ODDCL with use_edge_labels=True" in message
    (message,) = messages(lambda: FeatureMap(ODDST()).fit(graphs_with(VECTORS)))
    assert message.startswith("ODDST does not use the node vectors")
    (message,) = messages(lambda: GraphGP("wl").fit(graphs_with(VECTORS), [0.0, 1.0] * 6))
    assert message.startswith("WL does not use the node vectors")
    (message,) = messages(lambda: FeatureMap(ODDCL(1), n_features=None).fit(graphs_with(VECTORS, EDGE_VECTORS)))
    assert message.startswith("ODDCL does not use the edge vectors")


@pytest.mark.parametrize(
    ("kernel", "fields"),
    [
        (WL(), ()),
        (WL(use_edge_labels=True), (EDGE_LABELS,)),
        (WLCL(), (VECTORS,)),
        (ODDCL(use_edge_labels=True), (VECTORS, EDGE_LABELS)),
        (GraphHopper(use_labels=True), (VECTORS,)),
        (make_pipeline(DropAttributes(), WL()), (VECTORS,)),
        (make_pipeline(BinEdgeAttributes(2), WL(use_edge_labels=True)), (EDGE_VECTORS,)),
        (KernelSum(), (VECTORS,)),
        (KernelSum([ODDCL(), make_pipeline(BinEdgeAttributes(2), WL(use_edge_labels=True))]), (VECTORS, EDGE_VECTORS)),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else " ".join(repr(value).split()),
)
def test_no_warning_if_everything_is_used(kernel, fields):
    assert messages(lambda: kernel.fit(graphs_with(*fields))) == []


def test_sum_warns_about_what_no_part_uses():
    (message,) = messages(lambda: KernelSum([WL(), KernelSum([ODDST()])]).fit(graphs_with(VECTORS)))
    assert message.startswith("KernelSum does not use the node vectors")


def test_constant_labels_do_not_warn():
    graphs = Graphs.from_edges(EDGES, labels=[["C"] * 3, ["C"] * 2] * 6, attributes=VECTORS["attributes"])
    assert messages(lambda: GraphHopper().fit(graphs)) == []


def test_auto_does_not_warn():
    graphs = graphs_with(VECTORS, EDGE_LABELS, EDGE_VECTORS)
    assert [text for text in messages(lambda: GraphClassifier().fit(graphs, Y)) if "does not use" in text] == []
