"""Classes: graphs in the plane of a kernel, and which classes a model takes for which."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.matplotlib import new_axes
from treegram._core.types import Floats
from treegram.explanations.plots.gram import check_gram

__all__ = ["plot_confusion", "plot_embedding"]

_MOST_CLASSES = 20  # in a legend


def plot_embedding(K: ArrayLike, y: ArrayLike | None = None, *, ax: Any = None, title: str | None = None) -> Any:
    """Draw graphs as points: the first two components of kernel PCA.

    Parameters
    ----------
    K : array-like of shape (n_graphs, n_graphs)
        The Gram matrix.
    y : array-like of shape (n_graphs,), optional
        Class or number of each graph, for the colors. Of more than twenty classes there is no legend; so many
        different numbers get a color bar.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of pyplot.
    title : str, optional
        Title of the picture.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the picture. Labels say which part of the variance a component has.

    Examples
    --------
    >>> from treegram import plot_embedding
    >>> ax = plot_embedding([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]], ["a", "a", "b"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    places, shares = _components(check_gram(K))
    targets = None if y is None else np.asarray(y)
    if targets is not None and targets.shape != (len(places),):
        raise ValueError(f"y must have one entry per graph, shape ({len(places)},); got shape {targets.shape}.")
    ax = new_axes() if ax is None else ax
    if targets is None:
        ax.scatter(*places.T, s=22)
    else:
        _scatter_classes(ax, places, targets)
    ax.set(xlabel=f"component 1, {shares[0]:.0%} of the variance", ylabel=f"component 2, {shares[1]:.0%}")
    if title is not None:
        ax.set_title(title)
    return ax


def _scatter_classes(ax: Any, places: Floats, targets: NDArray[Any]) -> None:
    classes, codes = np.unique(targets, return_inverse=True)
    if len(classes) <= _MOST_CLASSES:
        points = ax.scatter(*places.T, s=22, alpha=0.8, c=codes, cmap="tab10" if len(classes) <= 10 else "tab20")
        points.set_clim(0, 9 if len(classes) <= 10 else 19)
        handles = points.legend_elements(num=None)[0]
        ax.legend(handles, map(str, classes), title="class", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    elif targets.dtype.kind in "iuf":
        points = ax.scatter(*places.T, s=22, c=targets.astype(np.float64), cmap="viridis")
        ax.figure.colorbar(points, ax=ax, fraction=0.046, pad=0.03)
    else:
        ax.scatter(*places.T, s=22, c=codes, cmap="nipy_spectral")


def _components(K: Floats) -> tuple[Floats, Floats]:
    """Places on the first two components, and their parts of the variance."""
    n = len(K)
    centered = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = np.linalg.eigh(0.5 * (centered + centered.T))
    values = np.maximum(values[::-1], 0.0)
    places, shares = np.zeros((n, 2)), np.zeros(2)
    m = min(n, 2)
    # An eigenvector may point either way: the larger half of it points up.
    axes = vectors[:, ::-1][:, :m]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(m)] < 0, -1.0, 1.0)
    places[:, :m] = axes * np.sqrt(values[:m])
    shares[:m] = values[:m] / (values.sum() or 1.0)
    return places, shares


def plot_confusion(y_true: ArrayLike, y_pred: ArrayLike, *, ax: Any = None, title: str | None = None) -> Any:
    """Draw how often each class was taken for each other.

    Parameters
    ----------
    y_true : array-like of shape (n_graphs,)
        The classes.
    y_pred : array-like of shape (n_graphs,)
        What a model said.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure of pyplot.
    title : str, optional
        Title of the picture; by default the accuracy.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the picture. A cell has its number of graphs; its color is their part of the row's class.

    Examples
    --------
    >>> from treegram import plot_confusion
    >>> ax = plot_confusion(["a", "a", "b"], ["a", "b", "b"])
    >>> [text.get_text() for text in ax.texts]
    ['1', '1', '0', '1']
    """
    truth, said = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != said.shape or not len(truth):
        raise ValueError(
            f"y_true and y_pred must have one class per graph; got arrays of shapes {truth.shape} and {said.shape}."
        )
    classes, codes = np.unique(np.concatenate([truth, said]), return_inverse=True)
    n = len(classes)
    counts = np.bincount(codes[: len(truth)] * n + codes[len(truth) :], minlength=n * n).reshape(n, n)
    parts = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax = new_axes((6, 5.5)) if ax is None else ax
    ax.imshow(parts, cmap="Blues", vmin=0.0, vmax=1.0)
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if parts[row, column] > 0.55 else "black"
        ax.text(column, row, str(count), ha="center", va="center", color=color, fontsize=min(11.0, 90.0 / n + 4))
    names = [str(name) for name in classes.tolist()]
    ax.set_xticks(range(n), names, rotation=90 if max(map(len, names)) * n > 60 else 0)
    ax.set_yticks(range(n), names)
    ax.set(xlabel="predicted", ylabel="true")
    ax.set_title(f"{np.mean(truth == said):.1%} of {len(truth)} graphs right" if title is None else title)
    return ax
