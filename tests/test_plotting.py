"""Pictures: what is drawn where; how it looks is for eyes."""

import sys

import numpy as np
import pytest

from treegram.plotting import blank_axes, plot_gram

K = np.array([[1.0, 0.1, 0.8], [0.1, 1.0, 0.2], [0.8, 0.2, 1.0]])


def drawn(ax):
    return ax.images[0].get_array()


def test_graphs_are_sorted_by_class_and_classes_named():
    ax = blank_axes()
    assert plot_gram(K, ["b", "a", "b"], ax=ax, title="A title") is ax
    np.testing.assert_array_equal(drawn(ax), K[np.ix_([1, 0, 2], [1, 0, 2])])
    assert ax.get_title() == "A title"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]
    np.testing.assert_allclose(ax.get_yticks(), [0.0, 1.5])
    assert {tuple(line.get_xdata()) for line in ax.lines} == {(0, 1), (0.5, 0.5)}
    assert ax.figure.axes[1].get_ylabel() == "kernel value"


def test_without_classes_the_order_stays():
    ax = plot_gram(K, ax=blank_axes(), colorbar=False)
    np.testing.assert_array_equal(drawn(ax), K)
    assert not ax.lines
    assert len(ax.figure.axes) == 1


def test_many_targets_are_sorted_but_not_named():
    n = 50
    ax = plot_gram(np.eye(n), np.arange(n)[::-1] / 3, ax=blank_axes())
    assert not ax.lines
    assert ax.get_xlabel() == "graph, sorted by target"


def test_colours_span_the_values_off_the_diagonal():
    ax = plot_gram(K, ax=blank_axes())
    low, high = ax.images[0].get_clim()
    assert 0.1 <= low < 0.11
    assert 0.78 < high <= 0.8


@pytest.mark.parametrize("matrix", [[[1.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0]]])
def test_matrices_of_one_value_can_be_drawn(matrix, tmp_path):
    ax = plot_gram(matrix, [3] * len(matrix), ax=blank_axes())
    ax.figure.savefig(tmp_path / "gram.png")


def test_without_axes_a_figure_is_made():
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
def test_wrong_numbers_are_refused(matrix, y, message):
    with pytest.raises(ValueError, match=message):
        plot_gram(matrix, y)


def test_missing_matplotlib_gives_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'treegram\[plot\]'"):
        plot_gram(K)
