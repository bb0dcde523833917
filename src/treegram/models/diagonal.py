"""A Gram matrix that is nearly the identity says that no two graphs are alike, and nothing can be learned from it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from treegram._core.types import Floats

__all__ = ["LEAST", "nearest_similarity", "warn_if_diagonal"]

LEAST = 0.1  # usual data has 0.15 and more; vectors in too large a unit give 0.00 to 0.06
_FEWEST = 20  # graphs
_ROWS = 200  # that are looked at, evenly spread


def nearest_similarity(K: Floats) -> float:
    """How alike a graph and the graph nearest to it are, from 0 to 1: the median over graphs, after normalization.

    Of few graphs, it is 1: among these none need be alike.
    """
    if len(K) < _FEWEST:
        return 1.0
    rows = np.unique(np.linspace(0, len(K) - 1, _ROWS).astype(np.int64))
    roots = np.sqrt(np.maximum(K.diagonal(), 0.0))
    alike = K[rows] / np.maximum(np.outer(roots[rows], roots), np.finfo(np.float64).tiny)
    alike[np.arange(len(rows)), rows] = -np.inf
    return float(np.median(alike.max(axis=1)))


def warn_if_diagonal(similarities: Iterable[float], name: str, *, has_attributes: bool) -> None:
    """Say it, and what to do, if all Gram matrices of a kernel are nearly the identity, by their `nearest_similarity`."""
    highest = 0.0
    for similarity in similarities:
        highest = max(highest, similarity)
        if highest >= LEAST:
            return
    cure = (
        "The vectors are far apart for the width of the node kernel: scale them (ScaleAttributes, --scale standard), or make it "
        "wider (gamma='scale', --gamma scale)."
        if has_attributes
        else "Hardly any label or structure occurs in two graphs: use fewer distinct labels, or smaller depths."
    )
    warnings.warn(
        f"{name}: the Gram matrices are nearly diagonal. Even the nearest graph has a similarity of only {highest:.2g} "
        f"(median over graphs), so that little can be learned. {cure}",
        stacklevel=2,
    )
