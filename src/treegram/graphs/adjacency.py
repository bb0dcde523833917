"""Convert adjacency matrices, dense or sparse, to Graphs."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.graphs.check import as_exact

__all__ = ["matrix_edges", "read_adjacency"]

_ENTRIES = ("edges", "edge_labels", "edge_attributes")


def read_adjacency(
    matrices: Iterable[Any],
    *,
    labels: Sequence[Sequence[Hashable]] | None,
    attributes: Sequence[ArrayLike] | None,
    entries: str,
    directed: bool,
    targets: ArrayLike | None,
) -> Graphs:
    """Build a collection from adjacency matrices; see :meth:`treegram.Graphs.from_adjacency`."""
    if entries not in _ENTRIES:
        raise InvalidGraphError(f"entries must be one of {', '.join(map(repr, _ENTRIES))}; got {entries!r}.")
    if getattr(matrices, "ndim", None) == 2:
        raise InvalidGraphError("matrices must be a list with one matrix per graph: write [matrix] for a single graph.")
    found = [matrix_edges(matrix, i, symmetric=not directed) for i, matrix in enumerate(matrices)]
    values: list[Any] = [weights for _, weights, _ in found]
    if entries == "edges" and any((weights != 1).any() for weights in values):
        warnings.warn(
            "The matrices have entries other than 0 and 1, which are not used. Graphs.from_adjacency takes "
            "entries='edge_labels' or entries='edge_attributes'.",
            UserWarning,
            stacklevel=3,
        )
    return Graphs.from_edges(
        [pairs for pairs, _, _ in found],
        n_nodes=[n_nodes for _, _, n_nodes in found],
        labels=labels,
        attributes=attributes,
        edge_labels=values if entries == "edge_labels" else None,
        edge_attributes=values if entries == "edge_attributes" else None,
        directed=directed,
        targets=targets,
    )


def matrix_edges(matrix: Any, graph: int, *, symmetric: bool = False) -> tuple[Ints, NDArray[Any], int]:
    """Return the node pairs with a nonzero entry, these entries, and the number of nodes."""
    name = f"Graph {graph}: the adjacency matrix"
    square = matrix if sp.issparse(matrix) else as_exact(matrix, name)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or square.dtype.kind not in "biuf":
        raise InvalidGraphError(
            f"{name} must be square and hold numbers; got dtype {square.dtype} and shape {square.shape}."
        )
    entries = sp.coo_array(square)
    entries.sum_duplicates()  # also sorts
    kept = entries.data != 0
    sources, ends, values = entries.coords[0][kept], entries.coords[1][kept], entries.data[kept]
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).argmax())
        raise InvalidGraphError(f"{name} must be finite; its entry ({sources[row]}, {ends[row]}) is {values[row]}.")
    pairs = np.stack([sources, ends], axis=1).astype(np.int64)
    if symmetric:
        _check_symmetric(sp.csr_array(entries), name)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], values[order], square.shape[0]


def _check_symmetric(matrix: Any, name: str) -> None:
    unequal = (matrix != matrix.T).tocoo()
    if unequal.nnz:
        a, b = int(unequal.coords[0][0]), int(unequal.coords[1][0])
        raise InvalidGraphError(
            f"{name} must be symmetric; its entry ({a}, {b}) is {matrix[a, b]}, and ({b}, {a}) is {matrix[b, a]}. "
            "Pass directed=True if edges have a direction."
        )
