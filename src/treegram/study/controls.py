"""Controls: the same study on data from which something was taken, to see what its scores rest on.

Each changes a data set once, by a seed that follows from the study's: all kernels and repeats see the same change.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from treegram._core.text import counted
from treegram._core.types import Ints
from treegram.graphs import Graphs
from treegram.kernels.wl import WL

__all__ = ["apply_control", "first_twins"]

_ROUNDS = 4  # of Weisfeiler-Lehman, by which twins are found


def apply_control(control: str, name: str, graphs: Graphs, targets: Any, seed: int) -> tuple[Graphs, Any]:
    """The data set after a control of this name; an empty name changes nothing."""
    if not control:
        return graphs, targets
    return _CHANGES[control](name, graphs, targets, np.random.default_rng(seed))


def _permute_targets(_: str, graphs: Graphs, targets: Any, rng: np.random.Generator) -> tuple[Graphs, Any]:
    return graphs, targets[rng.permutation(len(targets))]


def _permute_vectors(_: str, graphs: Graphs, targets: Any, rng: np.random.Generator) -> tuple[Graphs, Any]:
    vectors = _vectors(graphs, 1, "permuted-vectors")
    return replace(graphs, attributes=vectors[rng.permutation(len(vectors))]), targets


def _turn(_: str, graphs: Graphs, targets: Any, rng: np.random.Generator) -> tuple[Graphs, Any]:
    """Turn the vectors of each graph about their mean, by a rotation that is uniform among all."""
    vectors = _vectors(graphs, 2, "turned").copy()
    for start, end in zip(graphs.offsets[:-1], graphs.offsets[1:], strict=True):
        if end > start:
            center = vectors[start:end].mean(axis=0)
            vectors[start:end] = (vectors[start:end] - center) @ _rotation(vectors.shape[1], rng) + center
    return replace(graphs, attributes=vectors), targets


def _rotation(d: int, rng: np.random.Generator) -> Any:
    """Orthogonal with determinant 1: a QR decomposition made unique, one column turned where it is a reflection."""
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    Q = Q * np.sign(R.diagonal())
    Q[:, 0] *= np.sign(np.linalg.det(Q))
    return Q


def _leave_out_twins(name: str, graphs: Graphs, targets: Any, _: np.random.Generator) -> tuple[Graphs, Any]:
    first = first_twins(graphs)
    kept = np.flatnonzero(first == np.arange(len(graphs)))
    n_others = int((targets != targets[first]).sum())
    warnings.warn(
        f"{name}: {counted(len(graphs) - len(kept), 'graph')} of {len(graphs)} left out, each equal to an earlier one; "
        f"{n_others} of these had another target.",
        stacklevel=7,
    )
    return graphs[kept], targets[kept]


def first_twins(graphs: Graphs) -> Ints:
    """For each graph the first that is equal to it: itself, or a graph whose labels, vectors and edges are the same but for order.

    Equal is what the Weisfeiler-Lehman test cannot tell apart, on labels and exact vectors together; edge labels are not
    looked at.
    """
    codes = _node_codes(graphs)
    colored = replace(graphs, labels=codes, label_values=tuple(range(int(codes.max(initial=-1)) + 1)), attributes=None)
    rows = WL(n_iterations=_ROUNDS, normalize=False).fit(colored).features(colored).tocsr()
    rows.sort_indices()
    seen: dict[tuple[bytes, bytes], int] = {}
    first = []
    for i, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        key = rows.indices[start:end].tobytes(), rows.data[start:end].tobytes()
        first.append(seen.setdefault(key, i))
    return np.array(first, dtype=np.int64)


def _node_codes(graphs: Graphs) -> Ints:
    """A number for each distinct pair of label and vector."""
    labels = np.zeros(graphs.n_nodes) if graphs.labels is None else graphs.labels
    vectors = np.zeros((graphs.n_nodes, 0)) if graphs.attributes is None else np.asarray(graphs.attributes)
    table = np.column_stack([labels, vectors])
    return np.unique(table, axis=0, return_inverse=True)[1].astype(np.int64).ravel()


def _vectors(graphs: Graphs, least: int, control: str) -> Any:
    if graphs.n_attributes < least:
        raise ValueError(
            f"The control {control} needs graphs with {counted(least, 'attribute')} or more; these have {graphs.n_attributes}."
        )
    return np.asarray(graphs.attributes)


_CHANGES: dict[str, Callable[[str, Graphs, Any, np.random.Generator], tuple[Graphs, Any]]] = {
    "permuted-targets": _permute_targets,
    "permuted-vectors": _permute_vectors,
    "turned": _turn,
    "without-twins": _leave_out_twins,
}
