"""Plot the numbers of a summary: mean ranks, scores and times.

Every function takes axes and returns them; without axes it makes a figure outside pyplot, 7 inches wide and as high as its
kernels need. matplotlib is imported only when a plot is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treegram._core.optional import blank_axes
from treegram.study.significance import LEVEL, Ranking
from treegram.study.summary import Cell, Summary

_WIDTH = 7.0  # inches
_ROW = 0.27  # inches for one kernel
_FONT = 10  # points
_BAR = 0.45  # from one bar of the diagram to the next, in rows of names
_MAX_TICKS = 12  # on the line of ranks; above this, every second one
_MAX_CHARACTERS = 32  # of a name; longer ones would leave no room for the rest
_OURS = {"color": "#0072B2", "marker": "o"}  # colors of Okabe and Ito, which color-blind readers can distinguish;
_PUBLISHED = {"color": "#D55E00", "marker": "D"}  # in print, the shapes differ
_INK, _PALE = "#222222", "#d9d9d9"
_TEXT: dict[str, Any] = {"fontsize": _FONT, "color": _INK}
_BESIDE: dict[str, Any] = {"textcoords": "offset points", "annotation_clip": False, **_TEXT}


def plot_ranks(ranking: Ranking | Summary, ax: Any = None) -> Any:
    """Plot mean ranks on a line, best on the left; thick bars join kernels without a significant difference.

    Parameters
    ----------
    ranking : Ranking or Summary
        The ranks; for a summary, those of the first comparison that has ranks of our numbers.
    ax : matplotlib axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib axes
        The critical-difference diagram.
    """
    if isinstance(ranking, Summary):
        first = next((comparison.ours for comparison in ranking.comparisons if comparison.ours), None)
        if first is None:
            raise ValueError(
                "The summary has no ranks: they need three kernels and two data sets, each with a complete repeat of every kernel."
            )
        ranking = first
    names, n_kernels = _short(ranking.names), len(ranking.names)
    order = np.argsort(ranking.mean_ranks, kind="stable").tolist()
    n_left = (n_kernels + 1) // 2
    spans = [_span(ranking, group) for group in ranking.groups]
    levels = _stack(spans)
    first_row = 0.8 + _BAR * (max(levels, default=-1) + 1)  # names begin below the bars
    bottom = first_row + n_left - 0.5
    if ax is None:
        ax = blank_axes((_WIDTH, _ROW * (bottom + 3.6)))
    _rank_axis(ax, ranking, bottom)
    for row, kernel in enumerate(order[:n_left]):
        _name_kernel(ax, names[kernel], ranking.mean_ranks[kernel], first_row + row, edge=1, side=-1)
    for row, kernel in enumerate(order[n_left:][::-1]):
        _name_kernel(ax, names[kernel], ranking.mean_ranks[kernel], first_row + row, edge=n_kernels, side=1)
    for span, level in zip(spans, levels, strict=True):
        y = 0.5 + _BAR * level
        ax.plot(span, [y, y], color=_OURS["color"], linewidth=4.5, clip_on=False, zorder=3, label="_group")
    y, ends = -1.45, (1, 1 + ranking.critical_difference)  # above the numbers of the axis
    ax.plot(ends, [y, y], color=_INK, linewidth=1.2, marker="|", markersize=8, clip_on=False, label="_CD")
    text = f"critical difference {ranking.critical_difference:.2f} (level {LEVEL:g})"
    ax.annotate(text, (1, y), (0, 6), **_BESIDE)
    friedman = f"Friedman: p = {ranking.p_value:.2g}"
    ax.set_xlabel(f"mean rank on {ranking.n_datasets} data sets, 1 is best; {friedman}", labelpad=2, **_TEXT)
    return ax


def _short(names: Iterable[str]) -> list[str]:
    """Shorten names so that they fit next to a plot and stay distinct."""
    half, names = _MAX_CHARACTERS // 2 - 1, list(names)
    short = [name if len(name) <= _MAX_CHARACTERS else f"{name[:half]}…{name[-half:]}" for name in names]
    return short if len(set(short)) == len(names) else [f"{i} {name}" for i, name in enumerate(short, start=1)]


def _span(ranking: Ranking, group: Sequence[str]) -> tuple[float, float]:
    """Return the start and end of the bar of a group: a little beyond its outermost ranks."""
    ranks = [ranking.mean_ranks[ranking.names.index(name)] for name in group]
    overhang = 0.008 * len(ranking.names)
    return min(ranks) - overhang, max(ranks) + overhang


def _stack(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return the level of each bar: the highest on which it touches no other. Spans are sorted by their left ends."""
    ends: list[float] = []  # right end of the last bar, by level
    levels = []
    for low, high in spans:
        level = next((level for level, end in enumerate(ends) if end < low - 0.1), len(ends))
        ends[level : level + 1] = [high]
        levels.append(level)
    return levels


def _rank_axis(ax: Any, ranking: Ranking, bottom: float) -> None:
    """Draw the line of ranks at y = 0; y counts rows of names downward, and the critical difference is above the line."""
    n_kernels = len(ranking.names)
    step = 1 if n_kernels <= _MAX_TICKS else 2
    right = max(float(n_kernels), 1 + ranking.critical_difference)
    ax.set(xlim=(1, right), ylim=(bottom, -2.4), xticks=range(1, n_kernels + 1, step), yticks=[])
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("bottom")
    ax.tick_params(axis="x", labelsize=_FONT, labelcolor=_INK, color=_INK)
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set(position=("data", 0), bounds=(1, n_kernels), color=_INK)


def _name_kernel(ax: Any, name: str, rank: float, y: float, edge: int, side: int) -> None:
    """Draw a line from the kernel's rank down to its row and out to its name, on the left (side -1) or the right (1)."""
    ax.plot([rank, rank, edge], [0, y, y], color=_INK, linewidth=0.9, clip_on=False, zorder=2)
    text = f"{name}  {rank:.2f}" if side < 0 else f"{rank:.2f}  {name}"
    ax.annotate(text, (edge, y), (5 * side, 0), ha="right" if side < 0 else "left", va="center", **_BESIDE)


def plot_scores(summary: Summary, dataset: str, ax: Any = None) -> Any:
    """Plot the score of each kernel on a data set with its standard deviation, our score above the published one.

    Parameters
    ----------
    summary : Summary
        The numbers, from :func:`~treegram.study.summarize`.
    dataset : str
        Its name in the study.
    ax : matplotlib axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib axes
        The plot; a dashed line shows the score of always predicting the largest class, or the mean target.
    """
    ax, cells = _kernel_rows(summary, dataset, ax)
    has_published = any(cell.published for cell in cells)
    rows, apart = np.arange(len(cells)), 0.17 if has_published else 0.0
    _dots(ax, rows - apart, [(cell.mean, cell.deviation) for cell in cells], "treegram", _OURS)
    if has_published:
        published = [(cell.published, cell.published_deviation) for cell in cells]
        _dots(ax, rows + apart, published, "published", _PUBLISHED)
    baseline = summary.baseline(dataset)
    if baseline is not None:
        _baseline(ax, summary.baseline_name, baseline)
    ax.set_xlabel(summary.metric.title, **_TEXT)
    _finish(ax, dataset)
    return ax


def plot_times(summary: Summary, dataset: str, ax: Any = None) -> Any:
    """Plot the time of each kernel's Gram matrix on a data set; a line joins our time and the published one.

    Parameters
    ----------
    summary : Summary
        The numbers, from :func:`~treegram.study.summarize`.
    dataset : str
        Its name in the study.
    ax : matplotlib axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib axes
        The plot, with a logarithmic axis.
    """
    ax, cells = _kernel_rows(summary, dataset, ax)
    rows = np.arange(len(cells))
    ours = [(cell.gram_seconds, None) for cell in cells]
    published = [(cell.published_seconds, None) for cell in cells]
    ax.set_xscale("log")
    _dots(ax, rows, ours, "treegram", _OURS)
    if any(cell.published_seconds for cell in cells):
        _dots(ax, rows, published, "published", _PUBLISHED)
        ends = np.array([ours, published], dtype=np.float64)[..., 0]
        ax.hlines(rows, *ends, color="#999999", linewidth=1.5, zorder=1)
    ax.set_xlabel("seconds for one Gram matrix", **_TEXT)
    _finish(ax, dataset)
    return ax


def _kernel_rows(summary: Summary, dataset: str, ax: Any) -> tuple[Any, tuple[Cell, ...]]:
    """Return the cells of a data set, and axes with a row for each kernel, the first on top."""
    cells = summary.column(dataset)
    if not cells:
        raise ValueError(f"The study has no data set {dataset!r}; it has {', '.join(summary.study.datasets)}.")
    if ax is None:
        ax = blank_axes((_WIDTH, _ROW * (len(cells) + 4.5)))
    ax.set(yticks=range(len(cells)), yticklabels=_short(cell.kernel for cell in cells), ylim=(len(cells) - 0.4, -0.6))
    return ax, cells


def _finish(ax: Any, title: str) -> None:
    """Draw the grid, and put the legend above the plot and the title above the legend."""
    ax.grid(color=_PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.spines["bottom"].set_color(_PALE)
    ax.tick_params(labelsize=_FONT, labelcolor=_INK, length=0)
    spacing = {"handletextpad": 0.3, "columnspacing": 1.2, "borderaxespad": 0.2, "borderpad": 0.2}
    ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=_FONT, labelcolor=_INK, **spacing
    )
    ax.set_title(_short([title])[0], loc="left", fontsize=_FONT + 2, color=_INK, fontweight="bold", pad=24)


def _dots(
    ax: Any, y: Any, values: Sequence[tuple[float | None, float | None]], label: str, style: dict[str, str]
) -> None:
    """Draw a dot for each mean, with error bars if there is a deviation, and a line in the legend."""
    means, deviations = np.array(values, dtype=np.float64).T  # None becomes NaN
    ax.hlines(y, means - deviations, means + deviations, color=style["color"], linewidth=1.6, zorder=3)
    fill = style["color"] if style is _OURS else "white"
    sizes = {"markersize": 6, "markeredgewidth": 1.4}
    ax.plot(means, y, **style, **sizes, label=label, linestyle="none", markerfacecolor=fill, zorder=4)


def _baseline(ax: Any, name: str, value: float) -> None:
    """Draw a dashed line, unless it takes more than a third of the width from the dots: then only the legend has the value."""
    low, high = ax.get_xlim()
    reach = (high - low) / 2
    is_near = low - reach < value < high + reach
    label = f"{name} {value:.3g}" + ("" if is_near else ", off the axis")
    ax.axvline(value, color="#666666", linewidth=1.2, linestyle=(0, (4, 3)), label=label)
    if not is_near:
        ax.set_xlim(low, high)
