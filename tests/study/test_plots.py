"""Tests of plots of results: what is drawn where, and no overlapping text; the look is checked by eye."""

import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text

from treegram.study.plots import plot_ranks, plot_scores, plot_times
from treegram.study.protocol import KernelSpec, Protocol, Study, StudyEntry
from treegram.study.significance import friedman_nemenyi
from treegram.study.store import DatasetFacts, Store
from treegram.study.summary import summarize

KERNELS = ["ODDCL", "WL", "GraphHopper"]


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """Return the summary of a study of three kernels without results."""
    entries = tuple(StudyEntry(name, (KernelSpec("wl"),)) for name in KERNELS)
    with Store.open(tmp_path_factory.mktemp("store") / "s.sqlite") as store:
        return summarize(store, Study("s", ("ENZYMES",), entries, Protocol()))


def filled(summary, baseline=None, **columns):
    """Return the summary with these values; each column is a list with one value per cell."""
    cells = tuple(
        replace(cell, **{name: values[i] for name, values in columns.items()}) for i, cell in enumerate(summary.cells)
    )
    facts = DatasetFacts("ENZYMES", 1000, {"0": round(10 * (baseline or 0))}, 5.0, 5.0, 0, "d")
    return replace(summary, cells=cells, facts={} if baseline is None else {"ENZYMES": facts})


def ranking_of(n_kernels, n_datasets=20, spread=3.0):
    rng = np.random.default_rng(n_kernels)
    scores = rng.normal(np.linspace(0, spread, n_kernels), 1.0, (n_datasets, n_kernels))
    return friedman_nemenyi(scores, [f"kernel_number_{kernel}" for kernel in range(n_kernels)])


def texts(ax):
    """Return all visible text after the layout."""
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    x_ticks = [tick for tick in ax.get_xticklabels() if low <= tick.get_position()[0] <= high]
    legend = ax.get_legend()
    written = [*ax.texts, *x_ticks, *ax.get_yticklabels(), ax.xaxis.label, *(legend.get_texts() if legend else [])]
    titles = [child for child in ax.get_children() if isinstance(child, Text)]
    return [text for text in {*written, *titles} if text.get_text()]


def assert_readable(ax):
    found = texts(ax)
    page = ax.figure.bbox.padded(1)
    boxes = [(text.get_text(), text.get_window_extent()) for text in found]
    for text, box in boxes:
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, f"{text} is cut off"
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, f"{text} is cut off"
    for (one, first), (other, second) in combinations(boxes, 2):
        assert not first.padded(-1).overlaps(second.padded(-1)), f"{one} lies on {other}"
    assert min(text.get_fontsize() for text in found) >= 9
    assert ax.figure.get_figwidth() == 7


def lines(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


def markers(ax, label):
    return np.column_stack(lines(ax, label)[0].get_data())


# -------------------------------------------------------------------- critical differences


@pytest.mark.parametrize("n_kernels", [3, 5, 10, 13, 20])
@pytest.mark.parametrize("n_datasets", [2, 40])
def test_diagrams_of_any_size_are_readable(n_kernels, n_datasets):
    assert_readable(plot_ranks(ranking_of(n_kernels, n_datasets)))


def test_kernels_are_labeled_with_their_ranks_best_first():
    ranking = ranking_of(5)
    ax = plot_ranks(ranking)
    named = sorted(zip(ranking.mean_ranks, ranking.names, strict=True))
    written = [text.get_text() for text in ax.texts]
    assert written[:3] == [f"{name}  {rank:.2f}" for rank, name in named[:3]]
    assert written[3:5] == [f"{rank:.2f}  {name}" for rank, name in named[:2:-1]]
    hooks = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 3]
    assert sorted(hook[0] for hook in hooks) == sorted(ranking.mean_ranks)


def test_bars_connect_groups_and_show_the_critical_difference():
    ranking = ranking_of(8)
    assert len(ranking.groups) > 1
    ax = plot_ranks(ranking)
    (bar,) = lines(ax, "_CD")
    assert np.ptp(bar.get_xdata()) == pytest.approx(ranking.critical_difference)
    bars = lines(ax, "_group")
    rank_of = dict(zip(ranking.names, ranking.mean_ranks, strict=True))
    for group, bar in zip(ranking.groups, bars, strict=True):
        inside = [rank_of[name] for name in group]
        np.testing.assert_allclose(bar.get_xdata(), [min(inside), max(inside)], atol=0.1)
    for one, other in combinations(bars, 2):
        is_beside = one.get_xdata()[1] < other.get_xdata()[0]
        assert is_beside or one.get_ydata()[0] != other.get_ydata()[0]


def test_bars_of_separate_groups_share_a_level():
    scores = np.tile([0.1, 0.12, 0.5, 0.9, 0.92], (30, 1))
    scores[::2, [0, 1, 3, 4]] = scores[::2, [1, 0, 4, 3]]
    ax = plot_ranks(friedman_nemenyi(scores, list("ABCDE")))
    assert len({bar.get_ydata()[0] for bar in lines(ax, "_group")}) == 1


def test_diagram_without_groups_can_be_drawn():
    ax = plot_ranks(friedman_nemenyi(np.tile([0.1, 0.5, 0.9], (30, 1)), list("ABC")))
    assert not lines(ax, "_group")
    assert_readable(ax)


# -------------------------------------------------------------------- accuracies


def test_accuracies_are_in_the_rows_of_their_kernels(empty):
    summary = filled(
        empty,
        mean=[72.0, 53.5, None],
        deviation=[1.0, None, None],
        published=[73.4, None, 68.3],
        published_deviation=[1.0, None, 1.3],
    )
    ax = plot_scores(summary, "ENZYMES")
    assert_readable(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == KERNELS
    ours, theirs = markers(ax, "treegram"), markers(ax, "published")
    np.testing.assert_array_equal(ours[:, 0], [72.0, 53.5, np.nan])
    np.testing.assert_array_equal(theirs[:, 0], [73.4, np.nan, 68.3])
    np.testing.assert_array_equal(np.round(ours[:, 1]), [0, 1, 2])
    assert (ours[:, 1] < theirs[:, 1]).all()
    spans = [segment[:, 0].tolist() for bars in ax.collections for segment in bars.get_segments() if len(segment)]
    assert [71.0, 73.0] in spans
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert ax.get_title(loc="left") == "ENZYMES"
    assert ax.get_xlabel() == "accuracy, %"


@pytest.mark.parametrize(("majority", "is_seen"), [(78.8, True), (16.7, False)])
def test_largest_class_is_a_line_if_it_is_near_the_results(empty, majority, is_seen):
    ax = plot_scores(filled(empty, majority, mean=[88.0, 87.0, 79.5]), "ENZYMES")
    low, high = ax.get_xlim()
    assert (low < majority < high) == is_seen
    label = f"largest class {majority}" + ("" if is_seen else ", off the axis")
    assert label in [text.get_text() for text in ax.get_legend().get_texts()]
    assert low < 79.5 < 88.0 < high


def test_without_published_numbers_markers_are_centered_in_their_rows(empty):
    numbers = [1.0, 2.0, 3.0]
    ax = plot_scores(filled(empty, mean=numbers), "ENZYMES")
    np.testing.assert_array_equal(markers(ax, "treegram"), [[1, 0], [2, 1], [3, 2]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["treegram"]
    assert_readable(ax)


def test_times_are_connected_to_published_ones_on_a_logarithmic_axis(empty):
    ax = plot_times(filled(empty, gram_seconds=[0.2, 3.0, None], published_seconds=[2100.0, None, 7.0]), "ENZYMES")
    assert_readable(ax)
    np.testing.assert_array_equal(markers(ax, "treegram")[:, 0], [0.2, 3.0, np.nan])
    np.testing.assert_array_equal(markers(ax, "published")[:, 0], [2100.0, np.nan, 7.0])
    spans = [segment[:, 0].tolist() for bars in ax.collections for segment in bars.get_segments() if len(segment)]
    assert [0.2, 2100.0] in spans
    low, high = ax.get_xlim()
    assert ax.get_xscale() == "log"
    assert 0 < low < 0.2 < 2100.0 < high


def test_given_axes_are_used(empty):
    from matplotlib.figure import Figure

    axes = Figure(figsize=(7, 9), layout="constrained").subplots(3)
    summary = filled(empty, mean=[1.0, 2.0, 3.0], gram_seconds=[1.0, 2.0, 3.0])
    assert plot_ranks(ranking_of(5), axes[0]) is axes[0]
    assert plot_scores(summary, "ENZYMES", axes[1]) is axes[1]
    assert plot_times(summary, "ENZYMES", axes[2]) is axes[2]
    axes[0].figure.draw_without_rendering()


def test_invalid_input_raises(empty):
    with pytest.raises(ValueError, match="no data set 'ENZYME'; it has ENZYMES"):
        plot_scores(empty, "ENZYME")
    with pytest.raises(ValueError, match="no ranks: they need three kernels and two data sets"):
        plot_ranks(empty)


def test_missing_matplotlib_error_says_what_to_install(empty, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        plot_scores(empty, "ENZYMES")
