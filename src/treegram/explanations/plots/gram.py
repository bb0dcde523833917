"""Gram matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.matplotlib import new_axes
from treegram._core.types import Floats, Ints

__all__ = ["check_gram", "plot_gram"]

_MOST_CLASSES = 40  # beyond, names and lines would cover the picture
_SHOWN = (0.01, 0.99)  # quantiles of the values off the diagonal between which the colors change


def plot_gram(
    K: ArrayLike,
    y: ArrayLike | None = None,
    *,
    ax: Any = None,
    title: str | None = None,
    cmap: str = "viridis",
    colorbar: bool = True,
) -> Any:
    """Draw a Gram matrix, its graphs sorted by class.

    Graphs of one class stay in their order; lines part the classes, and their names stand beside them. A kernel that
    tells the classes apart shows bright squares along the diagonal.

    Parameters
    ----------
    K : array-like of shape (n_graphs, n_graphs)
        The Gram matrix.
    y : array-like of shape (n_graphs,), optional
        Class of each graph. Without it the graphs stay in their order.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of pyplot.
    title : str, optional
        Title of the picture.
    cmap : str, default="viridis"
        Name of a matplotlib color map.
    colorbar : bool, default=True
        Whether to add a color bar.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the picture.

    Notes
    -----
    The colors span the values off the diagonal but for the smallest and the largest 1 %, so that a few pairs, or the
    diagonal, where each graph meets itself, do not take the contrast from all the rest. What lies beyond has the color
    of the end, and the color bar has a tip there.

    Examples
    --------
    >>> from treegram import plot_gram
    >>> ax = plot_gram([[1.0, 0.2], [0.2, 1.0]], ["a", "b"], title="Two graphs")
    >>> ax.get_title()
    'Two graphs'
    """
    matrix = check_gram(K)
    names, counts, order = _sort_by_class(y, len(matrix))
    if ax is None:
        ax = new_axes()
    low, high = _color_limits(matrix)
    # Where several numbers share a pixel, their mean is taken, not that of their colors: it is what the color bar says, and faster.
    how = {"interpolation": "antialiased", "interpolation_stage": "data"}
    image = ax.imshow(matrix[np.ix_(order, order)], cmap=cmap, vmin=low, vmax=high, **how)
    _name_classes(ax, names, counts)
    if title is not None:
        ax.set_title(title)
    if colorbar:
        beyond = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
        extend = beyond[bool(matrix.min() < low), bool(matrix.max() > high)]
        bar = ax.figure.colorbar(image, ax=ax, extend=extend, fraction=0.046, pad=0.03)
        bar.set_label("kernel value")
    return ax


def check_gram(K: ArrayLike) -> Floats:
    """A square matrix of finite numbers."""
    matrix = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"K must be a square matrix of at least one row; got an array of shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError("K must be finite; it holds NaN or infinity.")
    return matrix


def _color_limits(matrix: Floats) -> tuple[float, float]:
    """Where the colors begin and end: the range of the values off the diagonal, without the most extreme ones."""
    off_diagonal = matrix[~np.eye(len(matrix), dtype=bool)]
    low, high = np.quantile(off_diagonal if off_diagonal.size else matrix, _SHOWN)
    return float(low), float(high)


def _sort_by_class(y: ArrayLike | None, n_graphs: int) -> tuple[list[str], Ints, Ints]:
    """Names and sizes of the classes, and the order of the graphs."""
    if y is None:
        return [], np.empty(0, np.int64), np.arange(n_graphs)
    targets = np.asarray(y)
    if targets.shape != (n_graphs,):
        raise ValueError(f"y must have one entry per graph, shape ({n_graphs},); got shape {targets.shape}.")
    classes, counts = np.unique(targets, return_counts=True)
    return [str(name) for name in classes.tolist()], counts, np.argsort(targets, kind="stable")


def _name_classes(ax: Any, names: list[str], counts: Ints) -> None:
    """Lines between classes, and each class's name in the middle of its rows and columns."""
    if not names:
        ax.set(xlabel="graph", ylabel="graph")
        return
    if len(names) > _MOST_CLASSES:
        ax.set(xlabel="graph, sorted by target", ylabel="graph, sorted by target", xticks=[], yticks=[])
        return
    ends = np.cumsum(counts)
    for end in ends[:-1] - 0.5:
        ax.axhline(end, color="white", linewidth=0.8)
        ax.axvline(end, color="white", linewidth=0.8)
    middles = ends - counts / 2 - 0.5
    ax.set(xlabel="class", ylabel="class", yticks=middles, yticklabels=names)
    ax.set_xticks(middles, names, rotation=90 if max(map(len, names)) * len(names) > 60 else 0)
    ax.tick_params(length=0)
