"""The colors of the Weisfeiler-Lehman kernels, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from treegram._core.params import Allowed, Whole
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid
from treegram.structure.wl import ColorFeatures, color_features, wl_colors

__all__ = ["COLORS", "COLOR_GRID", "color_groups", "split_levels"]

COLORS: Mapping[str, Allowed] = {"n_iterations": (Whole(0),)}
COLOR_GRID: Grid = {"n_iterations": [0, 1, 2, 3, 4]}


def split_levels(view: Any) -> Any:
    """A view of nodes whose one group of colors is divided into one for each iteration."""
    (colors,), levels = view.groups, range(view.axes.steps["n_iterations"][-1] + 1)
    return replace(view, groups=[colors.kept(colors.iterations == level) for level in levels])


def color_groups(kernel: Any, graphs: Graphs, n_iterations: Sequence[int], offsets: Ints) -> list[ColorFeatures]:
    """Counts of colors as the kernel's parameters say, one group for what each of the ascending numbers adds.

    Row i counts the nodes offsets[i] to offsets[i + 1] - 1.
    """
    colors = wl_colors(
        graphs,
        n_iterations[-1],
        missing_labels=kernel.missing_labels,
        use_edge_labels=kernel.use_edge_labels,
        n_jobs=kernel.n_jobs,
    )
    spans = pairwise([0, *(number + 1 for number in n_iterations)])
    return [color_features(colors[first:last], offsets, first=first) for first, last in spans]
