"""Whether some arrays are a collection of graphs: what ``Graphs(...)`` and ``dataclasses.replace`` check.

Compiled loops trust these arrays and know no bounds, so that nothing unchecked may become a collection. All checks are
linear in nodes and edges. The ways in (``Graphs.from_edges`` and so on) make arrays that are right, and skip them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from treegram._core.errors import InvalidGraphError
from treegram._core.types import Ints
from treegram.graphs.check import arcs_back, check_label, plain_label

__all__ = ["check_collection"]


def check_collection(fields: dict[str, Any]) -> None:
    """Raise if the fields of a Graphs do not fit together."""
    offsets = _check_starts(fields["offsets"], "offsets")
    n_nodes = int(offsets[-1])
    indptr = _check_starts(fields["indptr"], "indptr", n_nodes + 1)
    if not isinstance(fields["directed"], bool):
        raise InvalidGraphError(f"directed must be True or False; got {fields['directed']!r}.")
    n_arcs = int(indptr[-1])
    indices = _check_integers(fields["indices"], "indices", n_arcs, "one entry per arc, as indptr says")
    _check_neighbors(offsets, indptr, indices)
    _check_labels(fields["labels"], fields["label_values"], "label", n_nodes, "one per node")
    _check_labels(fields["edge_labels"], fields["edge_label_values"], "edge_label", n_arcs, "one per arc")
    _check_vectors(fields["edge_attributes"], "edge_attributes", n_arcs, "one per arc")
    if not fields["directed"]:
        _check_symmetry(indptr, indices, fields)
    _check_vectors(fields["attributes"], "attributes", n_nodes, "one per node")
    targets = fields["targets"]
    if targets is not None and not (
        isinstance(targets, np.ndarray) and targets.ndim and len(targets) == len(offsets) - 1
    ):
        raise InvalidGraphError(
            f"targets must be an array with one entry per graph, {len(offsets) - 1}; {_got(targets)}."
        )


def _check_integers(values: object, name: str, length: int | None, what: str) -> Ints:
    if (
        not isinstance(values, np.ndarray)
        or values.dtype != np.int64
        or values.ndim != 1
        or not values.flags.c_contiguous
        or (length is not None and len(values) != length)
    ):
        wanted = "" if length is None else f" of length {length}, {what}"
        raise InvalidGraphError(f"{name} must be a contiguous one-dimensional array of int64{wanted}; {_got(values)}.")
    return values


def _check_starts(values: object, name: str, length: int | None = None) -> Ints:
    starts = _check_integers(values, name, length, "one entry per node and one more")
    if not len(starts) or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise InvalidGraphError(f"{name} must start at 0 and never decrease.")
    return starts


def _check_neighbors(offsets: Ints, indptr: Ints, indices: Ints) -> None:
    """Neighbors are other nodes of the same graph, sorted, each once."""
    n_arcs = np.diff(indptr[offsets])
    low, high = np.repeat(offsets[:-1], n_arcs), np.repeat(offsets[1:], n_arcs)
    outside = (indices < low) | (indices >= high)
    if outside.any():
        graph = int(np.searchsorted(indptr[offsets], outside.argmax(), side="right")) - 1
        raise InvalidGraphError(f"Graph {graph}: a neighbor, {indices[outside.argmax()]}, is not a node of this graph.")
    sources = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    wrong = sources == indices
    wrong[1:] |= (sources[1:] == sources[:-1]) & (indices[1:] <= indices[:-1])
    if wrong.any():
        raise InvalidGraphError(
            f"Node {sources[wrong.argmax()]}: its neighbors must be other nodes, sorted, each once. Graphs.from_arrays takes any edges."
        )


def _check_symmetry(indptr: Ints, indices: Ints, fields: dict[str, Any]) -> None:
    """Every arc has its counterpart, with the same label and vector."""
    back = arcs_back(indptr, indices)
    if back is None:
        raise InvalidGraphError("Edges are not directed, but an arc lacks its counterpart in indices.")
    for name in ("edge_labels", "edge_attributes"):
        if fields[name] is not None and not np.array_equal(fields[name][back], fields[name]):
            raise InvalidGraphError(f"Edges are not directed, but the two arcs of an edge have different {name}.")


def _check_labels(codes: Any, values: tuple[Hashable, ...], name: str, length: int, what: str) -> None:
    if not isinstance(values, tuple):
        raise InvalidGraphError(f"{name}_values must be a tuple; {_got(values)}.")
    if codes is None:
        return
    _check_integers(codes, f"{name}s", length, what)
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(values)):
        raise InvalidGraphError(
            f"{name}s must be numbers from 0 to {len(values) - 1}, places in {name}_values; they go from {codes.min()} to {codes.max()}."
        )
    for i, value in enumerate(values):
        check_label(value, f"{name}_values", i)
        plain = plain_label(value)
        if type(plain) is not type(value):
            raise InvalidGraphError(f"{name}_values[{i}] must be a plain {type(plain).__name__}; {_got(value)}.")
    if len(set(values)) < len(values):
        raise InvalidGraphError(f"{name}_values must be distinct.")


def _check_vectors(vectors: Any, name: str, length: int, what: str) -> None:
    if vectors is None:
        return
    if (
        not isinstance(vectors, np.ndarray)
        or vectors.dtype != np.float64
        or vectors.ndim != 2
        or len(vectors) != length
        or not vectors.flags.c_contiguous
    ):
        raise InvalidGraphError(
            f"{name} must be a contiguous array of float64 with {length} rows, {what}; {_got(vectors)}."
        )
    if not np.isfinite(vectors).all():
        raise InvalidGraphError(f"{name} must be finite numbers.")


def _got(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"got an array of dtype {value.dtype} and shape {value.shape}"
    return f"got {type(value).__name__}"
