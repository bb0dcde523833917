"""Tests of maps: positions keep distances, colors and names stay with their graphs."""

import re
from html import unescape

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from treegram import Graphs, load_digits_graphs, plot_map
from treegram.exceptions import ParameterError
from treegram.explanations.maps import _PALETTE
from treegram.graphs.drawing import scale_classically

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def digits():
    graphs, y = load_digits_graphs()
    return graphs[:40].assign(graph_names=[f"<{i}> & co" for i in range(40)]), y[:40]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=0, max_size=9))
def test_distances_in_the_plane_are_kept(points):
    D = squareform(pdist(np.array(points, float).reshape(-1, 2))) if len(points) > 1 else np.zeros((len(points),) * 2)
    places, share = scale_classically(D)
    np.testing.assert_allclose(squareform(pdist(places)) if len(points) > 1 else D, D, atol=1e-6)
    assert share == pytest.approx(1) or not D.any()


def test_colors_are_those_of_the_values(digits):
    graphs, y = digits
    ax = plot_map(graphs, y, title="Digits")
    points = ax.collections[0]
    assert len(points.get_offsets()) == 40
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [str(digit) for digit in sorted(set(y))]
    from matplotlib.colors import to_rgb

    order = sorted(set(y)).index
    np.testing.assert_allclose(points.get_facecolors()[:, :3], [to_rgb(_PALETTE[order(digit)]) for digit in y])
    scaled = plot_map(graphs, np.arange(40) / 2, ax=plt.subplots()[1])
    assert scaled.get_legend() is None
    assert len(scaled.figure.axes) == 2
    measured = plot_map(graphs, np.arange(40) % 3 / 2, ax=plt.subplots()[1])
    assert measured.get_legend() is None
    plain = plot_map(graphs.assign(targets=None))
    assert plain.get_legend() is None


def test_page_has_the_names_and_values_as_text(digits, tmp_path):
    graphs, y = digits
    ax = plot_map(graphs, y, path=tmp_path / "map.html", title="<b>")
    page = (tmp_path / "map.html").read_text()
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r=".75" fill="(#\w+)"><title>(.*?)</title>', page, re.S)
    assert [unescape(text) for *_, text in circles] == [f"<{i}> & co: {digit}" for i, digit in enumerate(y)]
    assert "<title>&lt;b&gt;</title>" in page
    assert "<script" not in page
    drawn = np.array([[float(x), -float(height)] for x, height, *_ in circles])
    places = np.asarray(ax.collections[0].get_offsets())
    factor = np.ptp(drawn[:, 0]) / np.ptp(places[:, 0])
    np.testing.assert_allclose(drawn - drawn.mean(axis=0), factor * (places - places.mean(axis=0)), atol=0.02)
    assert drawn[:, 0].min() >= 0
    assert drawn[:, 0].max() <= 100
    order = sorted(set(y)).index
    assert [fill for _, _, fill, _ in circles] == [_PALETTE[order(digit)] for digit in y]
    plot_map(graphs.assign(graph_names=None), np.arange(40) / 2, path=tmp_path / "scale.html")
    assert "0<i></i>19.5" in (tmp_path / "scale.html").read_text()
    assert "<title>graph 3: 1.5</title>" in (tmp_path / "scale.html").read_text()


def test_few_graphs_and_mistakes(digits):
    graphs, _ = digits
    for n in range(4):
        assert len(plot_map(graphs[:n]).collections[0].get_offsets()) == n
    assert len(plot_map(Graphs.from_edges([[(0, 1)]] * 3)).collections[0].get_offsets()) == 3
    with pytest.raises(ParameterError, match=r"values must have one entry per graph, shape \(40,\)"):
        plot_map(graphs, [1, 2])
    with pytest.raises(ParameterError, match="at most 20 distinct words; they have 40"):
        plot_map(graphs, [f"w{i}" for i in range(40)])
    with pytest.raises(ParameterError, match="values must be finite"):
        plot_map(graphs, [np.nan] * 40)
