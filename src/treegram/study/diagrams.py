"""Pictures of finished records: who ranks where, how accurate, how fast. Nothing is computed here but positions.

Every function takes plain sequences and axes, and returns the axes; without axes it makes a figure of its own that
pyplot does not know, 7 inches wide and as high as its kernels need. matplotlib is imported only when a picture is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treegram._core.optional import matplotlib_module
from treegram.study.statistics import Ranking

__all__ = ["critical_difference_diagram", "score_plot", "time_plot"]

_WIDTH = 7.0  # inches
_ROW = 0.27  # inches for one kernel
_FONT = 10  # points
_BAR = 0.45  # from one bar of the diagram to the next, in rows of names
_MOST_TICKS = 12  # on the line of ranks; beyond, every second one
_MOST_TIMES = 9  # as above, on an axis of times
_OURS = {"color": "#0072B2", "marker": "o"}  # colors of Okabe and Ito, told apart by the color-blind too;
_THEIRS = {"color": "#D55E00", "marker": "D"}  # the shapes tell them apart in print
_INK, _PALE = "#222222", "#d9d9d9"
_TEXT: dict[str, Any] = {"fontsize": _FONT, "color": _INK}
_BESIDE: dict[str, Any] = {"textcoords": "offset points", "annotation_clip": False, **_TEXT}
_TIMES = {
    1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min", 3600.0: "1 h",
    86400.0: "1 d", 864e3: "10 d", 864e4: "100 d",
}  # fmt: skip


def critical_difference_diagram(ranking: Ranking, ax: Any = None) -> Any:
    """Draw mean ranks on a line, best on the left; thick bars join kernels without a significant difference."""
    n_kernels = len(ranking.names)
    order = np.argsort(ranking.mean_ranks, kind="stable").tolist()
    n_left = (n_kernels + 1) // 2
    spans = [_span(ranking, group) for group in ranking.groups]
    levels = _stack(spans)
    first_row = 0.8 + _BAR * (max(levels, default=-1) + 1)  # names begin below the bars
    bottom = first_row + n_left - 0.5
    if ax is None:
        ax = _axes(bottom + 3.6)
    _rank_axis(ax, ranking, bottom)
    for row, kernel in enumerate(order[:n_left]):
        _name_kernel(ax, ranking, kernel, first_row + row, edge=1, side=-1)
    for row, kernel in enumerate(order[n_left:][::-1]):
        _name_kernel(ax, ranking, kernel, first_row + row, edge=n_kernels, side=1)
    for span, level in zip(spans, levels, strict=True):
        y = 0.5 + _BAR * level
        ax.plot(span, [y, y], color=_OURS["color"], linewidth=4.5, clip_on=False, zorder=3, label="_group")
    _critical_difference(ax, ranking)
    friedman = f"Friedman: p = {ranking.p_value:.2g}"
    ax.set_xlabel(f"mean rank on {ranking.n_datasets} data sets, 1 is best; {friedman}", labelpad=2, **_TEXT)
    return ax


def _span(ranking: Ranking, group: Sequence[str]) -> tuple[float, float]:
    """Return where the bar of a group begins and ends: a little beyond its outermost ranks."""
    ranks = [ranking.mean_ranks[ranking.names.index(name)] for name in group]
    overhang = 0.008 * len(ranking.names)
    return min(ranks) - overhang, max(ranks) + overhang


def _stack(spans: Sequence[tuple[float, float]]) -> list[int]:
    """The level of each bar: the highest on which it touches no other. Spans come in order of their left ends."""
    ends: list[float] = []  # right end of the last bar, by level
    levels = []
    for low, high in spans:
        level = next((level for level, end in enumerate(ends) if end < low - 0.1), len(ends))
        ends[level : level + 1] = [high]
        levels.append(level)
    return levels


def _rank_axis(ax: Any, ranking: Ranking, bottom: float) -> None:
    """The line of ranks at y = 0, in units of one row of names downwards; above it is room for the critical difference."""
    n_kernels = len(ranking.names)
    step = 1 if n_kernels <= _MOST_TICKS else 2
    right = max(float(n_kernels), 1 + ranking.critical_difference)
    ax.set(xlim=(1, right), ylim=(bottom, -2.4), xticks=range(1, n_kernels + 1, step), yticks=[])
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("bottom")
    ax.tick_params(axis="x", labelsize=_FONT, labelcolor=_INK, color=_INK)
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set(position=("data", 0), bounds=(1, n_kernels), color=_INK)


def _name_kernel(ax: Any, ranking: Ranking, kernel: int, y: float, edge: int, side: int) -> None:
    """A line from the kernel's rank down to its row and out to its name, on the left (side -1) or the right (1)."""
    rank, name = ranking.mean_ranks[kernel], ranking.names[kernel]
    ax.plot([rank, rank, edge], [0, y, y], color=_INK, linewidth=0.9, clip_on=False, zorder=2)
    text = f"{name}  {rank:.2f}" if side < 0 else f"{rank:.2f}  {name}"
    ax.annotate(text, (edge, y), (5 * side, 0), ha="right" if side < 0 else "left", va="center", **_BESIDE)


def _critical_difference(ax: Any, ranking: Ranking) -> None:
    """A bar as long as the critical difference, above the numbers of the axis."""
    y, ends = -1.45, (1, 1 + ranking.critical_difference)
    ax.plot(ends, [y, y], color=_INK, linewidth=1.2, marker="|", markersize=8, clip_on=False, label="_CD")
    text = f"critical difference {ranking.critical_difference:.2f} (level {ranking.alpha:g})"
    ax.annotate(text, (1, y), (0, 6), **_BESIDE)


def score_plot(
    kernels: Sequence[str],
    ours: Sequence[float | None],
    deviations: Sequence[float | None] | None = None,
    published: Sequence[float | None] | None = None,
    published_deviations: Sequence[float | None] | None = None,
    *,
    baseline: tuple[str, float] | None = None,
    label: str = "accuracy, %",
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw the score of each kernel on one data set, from top to bottom, ours above the published one.

    A score is None where there is none; deviations are drawn to both sides. ``baseline``, a name and the score of no learning
    such as always answering the largest class, is a line. ``label`` says what the score is.
    """
    if ax is None:
        ax = _axes(len(kernels) + 4.5)
    _kernel_rows(ax, kernels)
    rows, apart = np.arange(len(kernels)), 0.17 if published is not None else 0.0
    x, spread = _numbers(ours, rows, "ours"), _numbers(deviations, rows, "deviations")
    _dots(ax, x, rows - apart, spread, "treegram", _OURS)
    if published is not None:
        x, spread = _numbers(published, rows, "published"), _numbers(published_deviations, rows, "published_deviations")
        _dots(ax, x, rows + apart, spread, "published", _THEIRS)
    ax.set_xlabel(label, **_TEXT)
    if baseline is not None:
        _baseline(ax, *baseline)
    _finish(ax, title)
    return ax


def _baseline(ax: Any, name: str, value: float) -> None:
    """A dashed line, unless the dots would lose more than a third of the width to it: then the legend must do."""
    low, high = ax.get_xlim()
    reach = (high - low) / 2
    is_near = low - reach < value < high + reach
    label = f"{name} {value:.3g}" + ("" if is_near else ", off the axis")
    ax.axvline(value, color="#666666", linewidth=1.2, linestyle=(0, (4, 3)), label=label)
    if not is_near:
        ax.set_xlim(low, high)


def time_plot(
    kernels: Sequence[str],
    ours: Sequence[float | None],
    published: Sequence[float | None] | None = None,
    *,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw the time of each kernel's Gram matrix on one data set, in seconds, on a logarithmic axis.

    None where there is none; a line joins ours with the published one.
    """
    rows = np.arange(len(kernels))
    if ax is None:
        ax = _axes(len(kernels) + 4.5)
    _kernel_rows(ax, kernels)
    ax.set_xscale("log")
    seconds = shown = _numbers(ours, rows, "ours")
    no_spread = np.full(len(rows), np.nan)
    _dots(ax, seconds, rows, no_spread, "treegram", _OURS)
    if published is not None:
        theirs = _numbers(published, rows, "published")
        _dots(ax, theirs, rows, no_spread, "published", _THEIRS)
        ax.hlines(rows, seconds, theirs, color="#999999", linewidth=1.5, zorder=1)
        shown = np.concatenate([seconds, theirs])
    _time_axis(ax, shown[shown > 0])
    _finish(ax, title)
    return ax


def _time_axis(ax: Any, seconds: Any) -> None:
    """Ticks at times that people say, from the last one below the data to the first one above."""
    ticks = np.array(list(_TIMES))
    low, high = (seconds.min(), seconds.max()) if len(seconds) else (1.0, 1.0)
    start, end = np.searchsorted(ticks, low, side="right") - 1, np.searchsorted(ticks, high) + 1
    ticks = ticks[max(start, 0) : end]
    ax.set_xlim(min(ticks[0], low) / 1.5, max(ticks[-1], high) * 1.5)
    ticks = ticks[:: 1 if len(ticks) <= _MOST_TIMES else 2]
    ax.set_xticks(ticks, [_TIMES[tick] for tick in ticks.tolist()])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("time of one Gram matrix", **_TEXT)


def _axes(n_rows: float) -> Any:
    return matplotlib_module("figure").Figure(figsize=(_WIDTH, _ROW * n_rows), layout="constrained").subplots()


def _numbers(values: Sequence[float | None] | None, rows: Any, argument: str) -> Any:
    """One number per row, NaN where there is none."""
    if values is None:
        return np.full(len(rows), np.nan)
    if len(values) != len(rows):
        raise ValueError(f"{argument} must hold one value for each of the {len(rows)} kernels; got {len(values)}.")
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _kernel_rows(ax: Any, kernels: Sequence[str]) -> None:
    """One pale line per kernel, its name on the left, the first on top."""
    ax.set(yticks=range(len(kernels)), yticklabels=kernels, ylim=(len(kernels) - 0.4, -0.6))
    ax.grid(axis="y", color=_PALE, linewidth=0.8)
    ax.grid(axis="x", color=_PALE, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.spines["bottom"].set_color(_PALE)


def _dots(ax: Any, x: Any, y: Any, spread: Any, label: str, style: dict[str, str]) -> None:
    """Dots where there is a number, with bars to both sides where there is a spread, and a line in the legend."""
    ax.hlines(y, x - spread, x + spread, color=style["color"], linewidth=1.6, zorder=3)
    fill = style["color"] if style is _OURS else "white"
    sizes = {"markersize": 6, "markeredgewidth": 1.4}
    ax.plot(x, y, **style, **sizes, label=label, linestyle="none", markerfacecolor=fill, zorder=4)


def _finish(ax: Any, title: str | None) -> None:
    """Sizes and colors of the text, the legend above the picture, the title above the legend."""
    ax.tick_params(labelsize=_FONT, labelcolor=_INK, length=0)
    spacing = {"handletextpad": 0.3, "columnspacing": 1.2, "borderaxespad": 0.2, "borderpad": 0.2}
    ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=_FONT, labelcolor=_INK, **spacing
    )
    if title is not None:
        ax.set_title(title, loc="left", fontsize=_FONT + 2, color=_INK, fontweight="bold", pad=24)
