"""Compare new graphs with the fitted ones, and warn about data that a kernel does not use."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from treegram._core.text import listed, warn_user
from treegram.graphs import Graphs
from treegram.graphs.check import check_fitted_columns, refuse_unlike

_MOST_SHOWN = 3  # labels in a warning


def check_like_fitted(kernel: Any, graphs: Graphs, fitted: Graphs) -> None:
    """Raise if new graphs differ from the fitted ones in what their nodes and edges have; warn if their labels do."""
    if not graphs.n_nodes or not fitted.n_nodes:
        return
    if kernel._uses_vectors:
        check_fitted_columns(kernel, "attributes", graphs, fitted.n_attributes, fitted.attribute_names)
    if (graphs.labels is None) != (fitted.labels is None):
        new, old = ("no labels", "with labels") if graphs.labels is None else ("labels", "without labels")
        refuse_unlike(kernel, f"The nodes of the new graphs (X) have {new}", f"on nodes {old}")
    if graphs.directed != fitted.directed:
        new, old = ("directed", "undirected") if graphs.directed else ("undirected", "directed")
        refuse_unlike(kernel, f"The edges of the new graphs (X) are {new}", f"on {old} ones")
    if kernel._uses_labels and graphs.labels is not None:
        _warn_of_unknown_labels(kernel, graphs, used_labels(fitted))


def _warn_of_unknown_labels(kernel: object, graphs: Graphs, fitted_labels: list[Hashable]) -> None:
    """Warn if less than half of the nodes have a label that the fitted graphs have: the names probably mean different things."""
    label_set = set(fitted_labels)
    is_known = np.array([label in label_set for label in graphs.label_values], dtype=bool)
    counts = np.bincount(np.asarray(graphs.labels), minlength=len(is_known))
    n_known, n_nodes = int(counts[is_known].sum()), int(counts.sum())
    if 2 * n_known >= n_nodes:
        return
    new = [graphs.label_values[code] for code in np.flatnonzero((counts > 0) & ~is_known)]
    how_many = f"Only {n_known} of {n_nodes} nodes" if n_known else "No node"
    warn_user(
        f"{how_many} of the new graphs (X) {'have' if n_known else 'has'} a label that {type(kernel).__name__} was fitted on: they have "
        f"{_first(new)}, the fitted ones have {_first(fitted_labels)}. Do both use the same names for labels?",
    )


def warn_of_unused(kernel: object, unused: Mapping[str, str]) -> None:
    """Warn about data that a kernel does not use; ``unused`` has a way to use each."""
    ways = "; ".join(f"for {name}, {way}" for name, way in unused.items())
    advice = f"To use them: {ways}" if len(unused) > 1 else f"To use them, {''.join(unused.values())}"
    warn_user(
        f"{type(kernel).__name__} does not use the {listed(list(unused))} of these graphs. {advice}. To ignore them, "
        "leave them out of the graphs.",
    )


def used_labels(graphs: Graphs) -> list[Hashable]:
    """Return the labels that some node has, in order; none for graphs without labels."""
    if graphs.labels is None:
        return []
    counts = np.bincount(graphs.labels, minlength=len(graphs.label_values))
    return [graphs.label_values[code] for code in np.flatnonzero(counts)]


def _first(labels: Sequence[Hashable]) -> str:
    shown = [repr(label) for label in labels[:_MOST_SHOWN]]
    return ", ".join(shown if len(labels) <= _MOST_SHOWN else [*shown, "..."])
