"""The colours of the Weisfeiler-Lehman kernels, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from treegram._params import Allowed, Whole
from treegram._types import Ints
from treegram.graphs import Graphs
from treegram.kernels._grids import Grid
from treegram.structure.wl import ColourFeatures, colour_features, wl_colours

__all__ = ["COLOURS", "COLOUR_GRID", "colour_groups", "split_levels"]

COLOURS: Mapping[str, Allowed] = {"n_iterations": (Whole(0),)}
COLOUR_GRID: Grid = {"n_iterations": [0, 1, 2, 3, 4]}


def split_levels(view: Any) -> Any:
    """A view of nodes whose one group of colours is divided into one for each iteration."""
    (colours,), levels = view.groups, range(view.axes.steps["n_iterations"][-1] + 1)
    return replace(view, groups=[colours.kept(colours.iterations == level) for level in levels])


def colour_groups(kernel: Any, graphs: Graphs, n_iterations: Sequence[int], offsets: Ints) -> list[ColourFeatures]:
    """Counts of colours as the kernel's parameters say, one group for what each of the ascending numbers adds.

    Row i counts the nodes offsets[i] to offsets[i + 1] - 1.
    """
    colours = wl_colours(
        graphs,
        n_iterations[-1],
        missing_labels=kernel.missing_labels,
        use_edge_labels=kernel.use_edge_labels,
        n_jobs=kernel.n_jobs,
    )
    spans = pairwise([0, *(number + 1 for number in n_iterations)])
    return [colour_features(colours[first:last], offsets, first=first) for first, last in spans]
