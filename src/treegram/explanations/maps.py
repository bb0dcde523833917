"""Maps: graphs as points in the plane, similar graphs close to each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.files import replacing
from treegram._core.html import render
from treegram._core.optional import matplotlib_module, new_axes
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.drawing import scale_classically
from treegram.kernels.distances import KernelDistances

__all__ = ["plot_map"]

_MOST_GROUPS = 20  # distinct numbers; more are a scale
_PALETTE = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c564b", "#7f7f7f", "#9467bd"),
    *("#17becf", "#bcbd22", "#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5", "#c49c94", "#f7b6d2", "#dbdb8d"),
)
_WIDTH, _HEIGHT, _MARGIN = 100.0, 75.0, 3.0  # of the picture on a page


def plot_map(
    graphs: Any,
    values: ArrayLike | None = None,
    *,
    kernel: Any = None,
    ax: Any = None,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draw graphs as points in the plane, with distances close to those of a kernel.

    Positions are by classical scaling, which is kernel PCA: no other projection keeps the squared distances better on average.

    Parameters
    ----------
    graphs : Graphs or list of graphs
        The graphs.
    values : array-like of shape (n_graphs,), optional
        A class, word or number for each graph, for the colors; by default the targets of the graphs, if any.
        More than 20 distinct numbers, and numbers that are not whole, are shown as a scale.
    kernel : GraphKernel, Pipeline, str or None, default=None
        The kernel, or its name; None: as in :class:`KernelDistances`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new pyplot figure.
    title : str, optional
        Title of the plot.
    path : str or path, optional
        Also write the map as an HTML page on which hovering over a point shows the name of the graph and its value. The page needs no
        network, and shows in a notebook by ``IPython.display.HTML(filename=path)``. An existing file is replaced.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Examples
    --------
    >>> from treegram import load_digits_graphs, plot_map
    >>> graphs, y = load_digits_graphs()
    >>> ax = plot_map(graphs[:50], y[:50], title="Digits")
    >>> len(ax.collections[0].get_offsets())
    50
    """
    graphs = as_graphs(graphs)
    numbers = _check_values(graphs, values)
    places, share = scale_classically(KernelDistances(kernel).fit_transform(graphs))
    groups, codes = _find_groups(numbers)
    colors = matplotlib_module("colors")
    if groups is None:
        scale = matplotlib_module("cm").ScalarMappable(colors.Normalize(numbers.min(), numbers.max()), "viridis")
        shades = scale.to_rgba(numbers)[:, :3]
    else:
        shades = np.array([colors.to_rgb(_PALETTE[code % len(_PALETTE)]) for code in codes]).reshape(-1, 3)
    ax = new_axes() if ax is None else ax
    ax.scatter(*places.T, c=shades, s=26, linewidths=0.4, edgecolors="white")
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="first component", ylabel="second component")
    if groups is None:
        ax.figure.colorbar(scale, ax=ax, fraction=0.046, pad=0.03)
    elif len(groups) > 1:
        for group, color in zip(groups, _PALETTE, strict=False):
            ax.scatter([], [], color=color, label=group, s=26)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    if title is not None:
        ax.set_title(title)
    if path is not None:
        fills = [colors.to_hex(shade) for shade in shades]
        _write_page(Path(path), graphs, numbers, places, fills, groups, share, title or "Map of graphs")
    return ax


def _check_values(graphs: Graphs, values: ArrayLike | None) -> NDArray[Any]:
    """Return a value for each graph; without any, the same empty word for all."""
    if values is None and graphs.targets is not None and graphs.targets.ndim == 1:
        values = graphs.targets
    checked = np.full(len(graphs), "") if values is None else np.asarray(values)
    if checked.shape != (len(graphs),):
        raise ParameterError(
            f"values must have one entry per graph, shape ({len(graphs)},); got shape {checked.shape}."
        )
    if checked.dtype.kind == "f" and not np.isfinite(checked).all():
        raise ParameterError("values must be finite; they have NaN or infinity. Leave out the graphs without a value.")
    return checked


def _find_groups(values: NDArray[Any]) -> tuple[list[str] | None, Ints]:
    """Return the names of the groups and the group of each graph; no names if the values are a scale."""
    distinct, codes = np.unique(values.astype(str) if values.dtype.kind == "O" else values, return_inverse=True)
    are_measured = values.dtype.kind == "f" and bool((values % 1).any())
    if are_measured or (len(distinct) > _MOST_GROUPS and values.dtype.kind in "fiu"):
        return None, codes
    if len(distinct) > _MOST_GROUPS:
        raise ParameterError(f"values must have at most {_MOST_GROUPS} distinct words; they have {len(distinct)}.")
    return [str(value) for value in distinct.tolist()], codes


def _write_page(
    path: Path,
    graphs: Graphs,
    values: NDArray[Any],
    places: Floats,
    fills: list[str],
    groups: list[str] | None,
    share: float,
    title: str,
) -> None:
    low, high = (places.min(axis=0), places.max(axis=0)) if len(places) else (np.zeros(2), np.ones(2))
    spans = np.where(high > low, high - low, 1.0)
    factor = min((_WIDTH - 2 * _MARGIN) / spans[0], (_HEIGHT - 2 * _MARGIN) / spans[1])  # equal on both axes
    middle = np.array([_WIDTH, _HEIGHT]) / 2
    dots = middle + (places - (low + high) / 2) * factor * [1, -1]
    names = [f"graph {i}" for i in range(len(graphs))] if graphs.graph_names is None else graphs.graph_names
    texts = [f"{name}: {value}".removesuffix(": ") for name, value in zip(names, values.tolist(), strict=True)]
    page = render(
        "treegram.explanations",
        "map.html",
        title=title,
        size=(_WIDTH, _HEIGHT),
        points=list(zip(np.round(dots, 2).tolist(), fills, texts, strict=True)),
        groups=list(zip(groups, _PALETTE, strict=False)) if groups and len(groups) > 1 else [],
        bounds=None if groups is not None else [f"{values.min():.4g}", f"{values.max():.4g}"],
        n_graphs=counted(len(graphs), "graph"),
        share=f"{100 * share:.0f} %",
    )
    with replacing(path) as file:
        file.write(page.encode())
