"""Arrays of a collection, built from edges or by joining other collections. Everything was checked before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs.check import arcs_back, find_edge
from treegram.graphs.labels import join_codes

if TYPE_CHECKING:
    from treegram.graphs import Graphs

__all__ = ["compress_edges", "join_fields", "ranges", "stack_vectors"]


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return the numbers start, start + 1, ... of each range, one range after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def stack_vectors(blocks: list[Floats], name: str = "attributes") -> Floats:
    """Stack the vectors of all graphs, which must be of one length."""
    dimension: int | None = None
    for i, block in enumerate(blocks):
        if not len(block):
            continue
        if dimension is not None and block.shape[1] != dimension:
            raise InvalidGraphError(
                f"Graph {i}: {name} have {block.shape[1]} columns, those of earlier graphs {dimension}."
            )
        dimension = block.shape[1]
    return np.concatenate([np.empty((0, dimension or 0)), *(b for b in blocks if len(b))])


# -------------------------------------------------------------------- neighbors


def compress_edges(
    pairs: Ints, offsets: Ints, data: dict[str, NDArray[Any]], *, directed: bool
) -> tuple[Ints, Ints, dict[str, NDArray[Any]]]:
    """Convert node pairs to CSR neighbors: no self loops, each edge once, both directions unless directed.

    ``data`` has arrays with one row per pair, by a name for messages; they are returned with one row per arc.
    """
    n_nodes = int(offsets[-1])
    sources, ends = (np.ascontiguousarray(column) for column in pairs.T)
    if _is_compressed(sources, ends, n_nodes, data, directed=directed):
        return _starts(sources, n_nodes), ends.copy() if ends.base is not None else ends, data
    kept = np.flatnonzero(sources != ends)
    keys = sources[kept] * n_nodes + ends[kept]
    if not directed:
        keys = np.concatenate([keys, ends[kept] * n_nodes + sources[kept]])
        kept = np.tile(kept, 2)
    if not data:
        keys.sort()  # sorting and comparing neighbors takes a fifth of the time of np.unique
        arcs = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    else:
        arcs, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        for name, rows in data.items():
            _check_same(rows[kept], first, inverse, keys, offsets, name, directed=directed)
        data = {name: rows[kept[first]] for name, rows in data.items()}
    sources, ends = np.divmod(arcs, max(n_nodes, 1))
    return _starts(sources, n_nodes), ends, data


def _starts(sources: Ints, n_nodes: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n_nodes))])


def _is_compressed(sources: Ints, ends: Ints, n_nodes: int, data: dict[str, NDArray[Any]], *, directed: bool) -> bool:
    """Return whether arcs are already sorted, without loops, and in both directions if undirected, as in most files."""
    steps = np.diff(sources)
    if (sources == ends).any() or (steps < 0).any() or ((steps == 0) & (ends[1:] <= ends[:-1])).any():
        return False
    if directed or not len(sources):
        return True
    back = arcs_back(_starts(sources, n_nodes), ends)
    return back is not None and all(np.array_equal(rows, rows[back]) for rows in data.values())


def _check_same(
    rows: NDArray[Any], first: Ints, inverse: Ints, keys: Ints, offsets: Ints, name: str, *, directed: bool
) -> None:
    """Raise if an edge that is listed more than once has different data."""
    unequal = rows[first][inverse] != rows
    unequal = unequal.any(axis=1) if unequal.ndim > 1 else unequal
    if unequal.any():
        pair = np.array(divmod(int(keys[unequal.argmax()]), int(offsets[-1])))
        graph, (source, end) = find_edge(pair, offsets)
        raise InvalidGraphError(
            f"Graph {graph}: the edge between its nodes {source} and {end} is listed more than once with different {name}."
            + ("" if directed else f" If {name} depend on the direction, pass directed=True.")
        )


# -------------------------------------------------------------------- several collections as one


def join_fields(parts: list[Graphs]) -> dict[str, Any]:
    """Return the fields of a Graphs with all graphs of the first part, then all of the second, and so on."""
    _check_joinable(parts)
    # A part without nodes or edges may have vectors of another length.
    with_nodes = [p for p in parts if p.n_nodes] or parts[:1]
    with_arcs = [p for p in parts if len(p.indices)] or parts[:1]
    node_starts = np.cumsum([0] + [p.n_nodes for p in parts])
    arc_starts = np.cumsum([0] + [len(p.indices) for p in parts])
    labels, label_values = join_codes([p.labels for p in parts], [p.label_values for p in parts])
    edge_labels, edge_label_values = join_codes([p.edge_labels for p in parts], [p.edge_label_values for p in parts])
    return {
        "offsets": np.concatenate([[0], *(p.offsets[1:] + s for p, s in zip(parts, node_starts, strict=False))]),
        "indptr": np.concatenate([[0], *(p.indptr[1:] + s for p, s in zip(parts, arc_starts, strict=False))]),
        "indices": np.concatenate([p.indices + s for p, s in zip(parts, node_starts, strict=False)]),
        "labels": labels,
        "label_values": label_values,
        "attributes": _concatenate([p.attributes for p in with_nodes]),
        "edge_labels": edge_labels,
        "edge_label_values": edge_label_values,
        "edge_attributes": _concatenate([p.edge_attributes for p in with_arcs]),
        "directed": parts[0].directed,
        "targets": _concatenate([p.targets for p in parts]),
    }


def _concatenate(arrays: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Concatenate arrays, or return None if one is missing."""
    present = [a for a in arrays if a is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def _check_joinable(parts: list[Graphs]) -> None:
    """Raise if two parts differ in what they hold; vectors are compared only where there are nodes or edges."""
    first: dict[str, tuple[int, str]] = {}
    for i, part in enumerate(parts):
        kinds = {
            "labels": "no labels" if part.labels is None else "labels",
            "edge labels": "no edge labels" if part.edge_labels is None else "edge labels",
            "direction": f"{'directed' if part.directed else 'undirected'} edges",
        }
        if part.n_nodes:
            kinds["attributes"] = f"{counted(part.n_attributes, 'attribute')} per node"
        if len(part.indices):
            kinds["edge attributes"] = f"{counted(part.n_edge_attributes, 'attribute')} per edge"
        for kind, mine in kinds.items():
            other, theirs = first.setdefault(kind, (i, mine))
            if mine != theirs:
                raise InvalidGraphError(
                    f"Collections of different kinds cannot be joined: part {other} has {theirs}, part {i} has {mine}."
                )
