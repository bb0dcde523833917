"""Tests of plots: what is drawn where; the look is checked by eye."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from treegram import (
    Explanation,
    Graphs,
    plot_explanation,
    plot_gram,
    plot_graph,
    plot_tree,
)
from treegram._core.optional import blank_axes
from treegram.exceptions import ParameterError
from treegram.explanations.drawing import contribution_colors
from treegram.graphs.drawing import hop_layout, node_positions

K = np.array([[1.0, 0.1, 0.8], [0.1, 1.0, 0.2], [0.8, 0.2, 1.0]])


def drawn(ax):
    return ax.images[0].get_array()


def test_graphs_are_sorted_by_class_and_classes_are_labeled():
    ax = blank_axes()
    assert plot_gram(K, ["b", "a", "b"], ax=ax, title="A title") is ax
    np.testing.assert_array_equal(drawn(ax), K[np.ix_([1, 0, 2], [1, 0, 2])])
    assert ax.get_title() == "A title"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]
    np.testing.assert_allclose(ax.get_yticks(), [0.0, 1.5])
    assert {tuple(line.get_xdata()) for line in ax.lines} == {(0, 1), (0.5, 0.5)}
    assert ax.figure.axes[1].get_ylabel() == "kernel value"


def test_without_classes_the_order_is_kept():
    ax = plot_gram(K, ax=blank_axes(), colorbar=False)
    np.testing.assert_array_equal(drawn(ax), K)
    assert not ax.lines
    assert len(ax.figure.axes) == 1


def test_continuous_targets_are_sorted_but_not_labeled():
    n = 50
    ax = plot_gram(np.eye(n), np.arange(n)[::-1] / 3, ax=blank_axes())
    assert not ax.lines
    assert ax.get_xlabel() == "graph, sorted by target"


def test_color_range_spans_the_off_diagonal_values():
    ax = plot_gram(K, ax=blank_axes())
    low, high = ax.images[0].get_clim()
    assert 0.1 <= low < 0.11
    assert 0.78 < high <= 0.8


@pytest.mark.parametrize("matrix", [[[1.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0]]])
def test_constant_matrices_can_be_plotted(matrix, tmp_path):
    ax = plot_gram(matrix, [3] * len(matrix), ax=blank_axes())
    ax.figure.savefig(tmp_path / "gram.png")


def test_new_figure_is_created_without_axes():
    from matplotlib import pyplot

    ax = plot_gram(K)
    assert ax.figure in map(pyplot.figure, pyplot.get_fignums())
    pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("matrix", "y", "message"),
    [
        (K[:2], None, r"K must be a square matrix of at least one row; got an array of shape \(2, 3\)"),
        (np.empty((0, 0)), None, r"got an array of shape \(0, 0\)"),
        (K * np.nan, None, "K must be finite"),
        (K, [1, 2], r"y must have one entry per graph, shape \(3,\); got shape \(2,\)"),
    ],
)
def test_invalid_matrices_raise(matrix, y, message):
    with pytest.raises(ValueError, match=message):
        plot_gram(matrix, y)


def test_missing_matplotlib_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        plot_gram(K)


# -------------------------------------------------------------------- graphs


CHAIN = Graphs.from_edges(
    [[], [(0, 1), (1, 2)]],
    n_nodes=[1, 3],
    labels=[["C"], ["N", "C", "O"]],
    attributes=[[[0, 0]], [[0, 1], [2, 3], [4, 5]]],
)


def test_colors_are_centered_at_zero():
    ax = blank_axes()
    assert plot_graph(CHAIN, 1, values=[0.5, -2.0, 0.0], ax=ax, title="A title") is ax
    nodes = ax.collections[1]
    assert nodes.get_clim() == (-2.0, 2.0)
    np.testing.assert_array_equal(nodes.get_array(), [0.5, -2.0, 0.0])
    assert [text.get_text() for text in ax.texts] == ["N", "C", "O"]
    assert len(ax.collections[0].get_segments()) == 2
    assert len(ax.figure.axes) == 2


def test_nodes_of_a_chain_have_margins_on_all_sides():
    ax = plot_graph(CHAIN, 1, layout=[[0, 0], [5, 0], [10, 0]], ax=blank_axes())
    assert ax.get_ylim() == (-1.5, 1.5)
    assert ax.get_xlim() == (-1.5, 11.5)


def test_single_label_is_not_repeated_on_every_node():
    assert not plot_graph(Graphs.from_edges([[(0, 1)]], labels=[["C", "C"]]), ax=blank_axes()).texts


def test_positions_can_be_arrays():
    ax = plot_graph(CHAIN, 1, layout=[[0, 0], [5, 5], [9, 9]], ax=blank_axes())
    np.testing.assert_array_equal(ax.collections[1].get_offsets(), [[0, 0], [5, 5], [9, 9]])


def test_coordinates_are_found_where_connected_nodes_are_close():
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(9)]
    line = np.column_stack([np.arange(10.0), 0.1 * rng.normal(size=10)])
    for vectors, is_used in ((line, True), (rng.normal(size=(10, 2)), False), (np.hstack([line, line]), False)):
        graph = Graphs.from_edges([edges], attributes=[vectors])
        assert np.array_equal(node_positions(graph), vectors) == is_used
    turned = line @ np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]  # the same line in 3D
    places = node_positions(Graphs.from_edges([edges], attributes=[turned]))
    distances = [np.linalg.norm(one[:, None] - one[None], axis=2) for one in (places, line)]
    np.testing.assert_allclose(*distances, atol=1e-9)


def test_hop_layout_keeps_distances():
    chain = Graphs.from_edges([[(i, i + 1) for i in range(5)]])
    places = hop_layout(chain)
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.testing.assert_allclose(gaps, np.abs(np.subtract.outer(range(6), range(6))), atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "directed", "no_labels"])
def test_any_graph_can_be_drawn(name, tmp_path):
    graphs = zoo.LAWS_HOLD_ON[name].pack()
    for index in range(len(graphs)):
        assert np.isfinite(hop_layout(graphs[index])).all()
        ax = plot_graph(graphs, index, values=np.zeros(graphs.sizes[index]), ax=blank_axes())
        ax.figure.savefig(tmp_path / "graph.png", dpi=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": [1.0]}, r"one number per node, shape \(3,\); got shape \(1,\)"),
        ({"layout": [[0, 0]]}, r"shape \(3, 2\); got shape \(1, 2\)"),
    ],
)
def test_plot_graph_rejects_invalid_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        plot_graph(CHAIN, 1, ax=blank_axes(), **options)


def explained(outputs, intercept, values, **learned):
    """Explain CHAIN without a kernel; ``learned`` are the fitted attributes of its model."""
    fields = dict.fromkeys(("_X", "_parts", "_leaves"))
    return Explanation(
        outputs=outputs,
        intercept=np.array(intercept),
        graphs=CHAIN,
        attribute_to="tree",
        column_names=(),
        _column_values=np.zeros((2, 0, len(outputs))),
        _model=SimpleNamespace(**learned),
        _node_values=np.array(values),
        **fields,
    )


TWO = explained(("yes",), [0.5], [[1.0], [-2.0], [0.0], [0.25]], classes_=np.array(["no", "yes"]))


def test_explanations_are_drawn_with_their_decision():
    ax = plot_explanation(TWO, 1, ax=blank_axes())
    assert ax.get_title() == "yes rather than no: \N{MINUS SIGN}1.25"
    assert ax.figure.axes[1].get_ylabel() == "contribution to the decision"
    ax = plot_explanation(explained(("prediction",), [0.5], np.ones((4, 1))), -1, ax=blank_axes())
    assert ax.get_title() == "prediction: +3.5"
    assert ax.figure.axes[1].get_ylabel() == "contribution to the prediction"


def test_multiclass_explanation_draws_predicted_class_against_runner_up():
    pairs = explained(
        (("a", "b"), ("a", "c"), ("b", "c")),
        [0.0, 1.0, 0.0],
        np.eye(4, 3),
        classes_=np.array(["a", "b", "c"]),
        predict=lambda _: np.array(["a", "c"]),
    )
    ax = plot_explanation(pairs, 1, ax=blank_axes())
    assert ax.get_title() == "c rather than a: \N{MINUS SIGN}2"
    np.testing.assert_array_equal(ax.collections[1].get_array(), [-1.0, 0.0, 0.0])
    ax = plot_explanation(pairs, 1, output=1, ax=blank_axes())
    assert ax.get_title() == "a rather than c: +2"
    with pytest.raises(IndexError, match="index of the graph must be from 0 to 1; got 2"):
        plot_explanation(TWO, 2, ax=blank_axes())
    with pytest.raises(IndexError, match="output must be a number from 0 to 2; got 3"):
        plot_explanation(pairs, 1, output=3, ax=blank_axes())


def test_molecules_are_drawn_by_rdkit():
    pytest.importorskip("rdkit")
    ax = plot_explanation(TWO, 1, molecule="NCO", ax=blank_axes())
    image = ax.images[0].get_array()
    assert ax.get_title() == "yes rather than no: \N{MINUS SIGN}1.25"
    red, blue = (image[..., one] > image[..., other] + 0.03 for one, other in ((0, 2), (2, 0)))
    assert red.any()  # the O, weakly
    assert blue.any()  # the N
    ends = ax.figure.axes[1].collections[-1].get_cmap()([0.0, 1.0])[:, :3]  # the color bar matches the atoms
    atom = image[..., :3].reshape(-1, 3)
    assert (np.abs(atom - ends[0]).max(axis=1) < 0.01).any()
    assert ax.figure.axes[1].get_ylim() == (-2.0, 2.0)
    assert ax.figure.axes[1].get_ylabel() == "contribution to the decision"
    plain = plot_explanation(TWO, 1, molecule="NCO", ax=blank_axes(), colorbar=False)
    assert len(plain.figure.axes) == 1
    with pytest.raises(ValueError, match="molecule: its atom 0 is O, but the node's label is 'N'"):
        plot_explanation(TWO, 1, molecule="OCN", ax=blank_axes())


@pytest.mark.parametrize("numbers", [["7", "9", "3"], ["52", "52A", "3"]])
def test_residues_are_drawn_along_the_sequence_with_a_row_for_each_chain(numbers):
    names = ["A/1 GLY", *(f"{chain}/{number} CYS" for chain, number in zip("AAB", numbers, strict=True))]
    found = replace(TWO, graphs=TWO.graphs.assign(node_names=names))
    ax = plot_explanation(found, 1, sequence=True, ax=blank_axes())
    values = found._node_values_of(1, found._contrast(1))
    are_numbers = numbers[0] == "7"
    bars = [bar.get_bbox() for bar in ax.patches]
    assert [0.5 * (bar.x0 + bar.x1) for bar in bars] == ([7, 9, 3] if are_numbers else [1, 2, 1])
    assert [round(0.5 * (bar.y0 + bar.y1)) for bar in bars] == [0, 0, 1]
    assert ax.get_xlabel() == ("residue number" if are_numbers else "residue, counted along the chain")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["chain A", "chain B"]
    strongest = np.argsort(-np.abs(values), kind="stable")
    assert [text.get_text() for text in ax.texts] == [f"Cys{numbers[node]}" for node in strongest]
    colors = contribution_colors(values, np.abs(values).max())
    np.testing.assert_allclose([bar.get_facecolor()[:3] for bar in ax.patches], colors)
    assert ax.figure.axes[1].get_ylabel() == "contribution to the decision"
    with pytest.raises(ParameterError, match="needs residues, with names such as 'A/141 CYS'"):
        plot_explanation(TWO, 1, sequence=True, ax=blank_axes())


# -------------------------------------------------------------------- trees


def texts(ax):
    return {text.get_text(): text.get_position() for text in ax.texts}


def test_trees_have_their_root_on_top():
    ax = plot_tree("C(N,S(O,P))", ax=blank_axes())
    places = texts(ax)
    assert {name: -y for name, (_, y) in places.items()} == {"C": 0, "N": 1, "S": 1, "O": 2, "P": 2}
    assert places["N"][0] < places["O"][0] < places["P"][0]
    assert places["S"][0] == (places["O"][0] + places["P"][0]) / 2
    assert ax.get_title() == "C(N,S(O,P))"


def test_edge_labels_are_next_to_edges():
    places = texts(plot_tree("C(1:N,2:O)", ax=blank_axes()))
    assert places.keys() == {"C", "N", "O", "1", "2"}
    assert places["1"][1] == -0.5


@pytest.mark.parametrize("name", ["C", "C()", "C #2", "C(N) #1"])
def test_feature_names_of_all_kernels_can_be_drawn(name):
    assert "C" in " ".join(texts(plot_tree(name, ax=blank_axes())))


@pytest.mark.parametrize("name", ["", "C(", "C)", "C,N", "(C)"])
def test_invalid_trees_raise(name):
    with pytest.raises(ValueError, match="name must be "):
        plot_tree(name, ax=blank_axes())
