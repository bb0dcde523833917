"""Graphs that do not fit into memory: a stream of chunks in, rows or a trained linear model out.

A stream is any iterable of ``Graphs``; :class:`treegram.TUChunks` makes one of a folder in the TU text format. One chunk is
held at a time, with its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from treegram.graphs import Graphs, as_graphs

__all__ = ["embed_chunks", "fit_chunks"]


# -------------------------------------------------------------------- rows and models


def embed_chunks(features: Any, chunks: Iterable[Graphs]) -> Iterator[tuple[Any, NDArray[Any] | None]]:
    """Give the rows and targets of one chunk of graphs after the other.

    Parameters
    ----------
    features : ODDCLFeatures, or another transformer of graphs, or None
        Used as it is if it is fitted or needs no fitting, else fitted on the first chunk; None gives chunks as they are. Files are often sorted: if the
        first chunk is unlike the others, fit before, on a sample such as a chunk of ``TUChunks(..., shuffle=True)``.
    chunks : iterable of Graphs or lists of graphs
        The graphs.

    Yields
    ------
    rows : ndarray or csr_matrix of shape (n_graphs, n_features)
        The rows of a chunk.
    targets : ndarray of shape (n_graphs,), or None
        Its targets, if it has any.

    Examples
    --------
    >>> from treegram import ODDCLFeatures, embed_chunks, make_synthetic
    >>> graphs, _ = make_synthetic(10, random_state=0)
    >>> features = ODDCLFeatures(depth=1, method="orf", n_components=32, n_features=256, random_state=0)
    >>> [rows.shape for rows, targets in embed_chunks(features, [graphs[:6], graphs[6:]])]
    [(6, 256), (4, 256)]
    """
    if features is None:
        yield from chunks  # type: ignore[misc]
        return
    for chunk in map(as_graphs, chunks):
        if not _is_fitted(features):
            features.fit(chunk)
        yield features.transform(chunk), chunk.targets


def fit_chunks(
    model: Any, features: Any, chunks: Iterable[Graphs], *, classes: ArrayLike | None = None, n_epochs: int = 1
) -> Any:
    """Train a linear model on a stream of graphs, chunk by chunk, with its ``partial_fit``.

    Parameters
    ----------
    model : estimator with ``partial_fit``
        For instance :class:`sklearn.linear_model.SGDClassifier`; trained in place.
    features : ODDCLFeatures, or another transformer of graphs, or None
        Used as it is if it is fitted or needs no fitting, else fitted on the first chunk. None: the chunks are rows already,
        see :class:`treegram.Shards`.
    chunks : iterable of Graphs, or Shards
        The graphs with their targets. They should come in random order: a stream that shows one class after the other
        teaches each time to forget the class before (``TUChunks(..., shuffle=True)`` mixes a folder).
    classes : array-like, optional
        All classes that will occur, for a classifier; not needed if the stream knows them, as :class:`treegram.TUChunks` does.
    n_epochs : int, default=1
        How often to go through the stream, which must then be iterable again (no generator).

    Returns
    -------
    estimator
        The model.

    Notes
    -----
    Memory is that of one chunk and its rows. Rows are computed anew in each epoch.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from treegram import ODDCLFeatures, fit_chunks, make_synthetic
    >>> graphs, y = make_synthetic(20, random_state=0)
    >>> features = ODDCLFeatures(depth=1, method="orf", n_components=32, n_features=256, random_state=0)
    >>> model = fit_chunks(SGDClassifier(random_state=0), features, [graphs[::2], graphs[1::2]], classes=[0, 1])
    >>> model.predict(features.transform(graphs)).shape
    (20,)
    """
    if n_epochs < 1:
        raise ValueError(f"n_epochs must be at least 1; got {n_epochs}.")
    if not hasattr(model, "partial_fit"):
        raise TypeError(f"model must have partial_fit, to learn chunk by chunk, as SGDClassifier has; got {model!r}.")
    if n_epochs > 1 and iter(chunks) is chunks:
        raise ValueError(f"n_epochs={n_epochs} needs chunks that can be iterated again; got a {type(chunks).__name__}.")
    options = {"classes": _classes(chunks, classes)} if is_classifier(model) else {}
    for _ in range(n_epochs):
        for rows, targets in embed_chunks(features, chunks):
            if targets is None:
                raise ValueError("chunks must have targets to train on; got a chunk without.")
            model.partial_fit(rows, targets, **options)
    return model


def _is_fitted(features: Any) -> bool:
    try:
        check_is_fitted(features)
    except NotFittedError:
        return False
    return True


def _classes(chunks: Iterable[Graphs], classes: ArrayLike | None) -> NDArray[Any]:
    known = getattr(chunks, "classes", None) if classes is None else np.asarray(classes)
    if known is None:
        raise ValueError("A classifier must know all classes before the first chunk; give classes=[...].")
    return known
