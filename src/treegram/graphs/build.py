"""Arrays of a collection: built from edges, joined from other collections, and checked.

Compiled loops trust the arrays of a collection and do not check bounds, so nothing unchecked may become a collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from treegram._core.text import counted
from treegram._core.types import Array, Floats, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs.check import (
    COLUMN_NAMES,
    ROWS,
    Finder,
    LabelValues,
    check_ascending,
    check_edge_vectors,
    check_edges,
    check_extras,
    check_label,
    join_codes,
    plain_label,
)

if TYPE_CHECKING:
    from treegram.graphs import Graphs


def stack_vectors(blocks: list[Floats], name: str) -> Floats:
    """Stack the vectors of all graphs, which must have the same length; graphs without rows fit any length."""
    full = [block for block in blocks if len(block)]
    if len({block.shape[1] for block in full}) > 1:
        width = full[0].shape[1]
        graph = next(i for i, block in enumerate(blocks) if len(block) and block.shape[1] != width)
        raise InvalidGraphError(
            f"Graph {graph}: {name} have {blocks[graph].shape[1]} columns, those of earlier graphs {width}."
        )
    return np.concatenate(full) if full else np.empty((0, 0))


# -------------------------------------------------------------------- neighbors


def compress_edges(
    pairs: Ints, finder: Finder, data: dict[str, Array], *, directed: bool
) -> tuple[Ints, Ints, dict[str, Array]]:
    """Convert node pairs to CSR neighbors: no self loops, each edge once, both directions unless directed.

    ``data`` maps names for messages to arrays with one row per pair; they are returned with one row per arc.
    """
    n_nodes = int(finder.offsets[-1])
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
            _check_same(rows[kept], first, inverse, keys, finder, name, directed=directed)
        data = {name: rows[kept[first]] for name, rows in data.items()}
    sources, ends = np.divmod(arcs, max(n_nodes, 1))
    return _starts(sources, n_nodes), ends, data


def _starts(sources: Ints, n_nodes: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n_nodes))])


def _is_compressed(sources: Ints, ends: Ints, n_nodes: int, data: dict[str, Array], *, directed: bool) -> bool:
    """Return whether arcs are already sorted, without loops, and in both directions if undirected, as in most files."""
    steps = np.diff(sources)
    if (sources == ends).any() or (steps < 0).any() or ((steps == 0) & (ends[1:] <= ends[:-1])).any():
        return False
    if directed or not len(sources):
        return True
    back = _arcs_back(_starts(sources, n_nodes), ends)
    return back is not None and all(np.array_equal(rows, rows[back]) for rows in data.values())


def _arcs_back(indptr: Ints, indices: Ints) -> Ints | None:
    """Return the reverse of each arc of sorted neighbors, or None if one is missing."""
    from scipy.sparse import csr_matrix

    n_nodes = len(indptr) - 1
    small = np.int32 if max(len(indices), n_nodes) < 2**31 else np.int64
    arrays = (np.arange(len(indices), dtype=small), indices.astype(small), indptr.astype(small))
    arcs = csr_matrix(arrays, shape=(n_nodes, n_nodes))
    back = arcs.tocsc()  # its transpose, row by row, sorted
    is_symmetric = np.array_equal(back.indptr, arcs.indptr) and np.array_equal(back.indices, arcs.indices)
    return back.data if is_symmetric else None


def _check_same(
    rows: Array, first: Ints, inverse: Ints, keys: Ints, finder: Finder, name: str, *, directed: bool
) -> None:
    """Raise if an edge that is listed more than once has different data."""
    unequal = rows[first][inverse] != rows
    unequal = unequal.any(axis=1) if unequal.ndim > 1 else unequal
    if unequal.any():
        source, end = divmod(int(keys[unequal.argmax()]), int(finder.offsets[-1]))
        raise InvalidGraphError(
            f"{finder.graph_of(source)}: the edge between its nodes {finder.node(source)} and {finder.node(end)} is listed more "
            f"than once with different {name}."
            + ("" if directed else f" If {name} depend on the direction, pass directed=True.")
        )


# -------------------------------------------------------------------- several collections as one


def join_fields(parts: list[Graphs]) -> dict[str, Any]:
    """Return the fields of a Graphs with all graphs of the first part, then all of the second, and so on."""
    check_joinable(parts)
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
        "edge_labels": edge_labels,
        "edge_label_values": edge_label_values,
        "directed": parts[0].directed,
        **_join_rows(parts),
    }


def _join_rows(parts: list[Graphs]) -> dict[str, Any]:
    """Join the fields with rows other than labels, and the names of their columns; a field that a part lacks becomes None."""
    joined: dict[str, Any] = {}
    for things, names in ROWS.items():
        full = [part for part in parts if part._n_rows(things)] or parts[:1]  # others may have vectors of other lengths
        for name in set(names) - {"labels", "edge_labels"}:
            arrays = [getattr(part, name) for part in full]
            joined[name] = None if any(array is None for array in arrays) else np.concatenate(arrays)
        for name, owner in COLUMN_NAMES.items():
            if owner in names:
                joined[name] = full[0].__dict__[name] if all(getattr(part, name) for part in full) else None
    return joined


def check_joinable(parts: list[Graphs]) -> None:
    """Raise if two parts differ in what they hold; vectors are compared only where there are nodes or edges."""
    first: dict[str, tuple[int, Any, str]] = {}
    for i, part in enumerate(parts):
        for name, value, text in _describe(part):
            other, expected, other_text = first.setdefault(name, (i, value, text))
            if value != expected:
                raise InvalidGraphError(
                    f"Collections of different kinds cannot be joined: part {other} has {other_text}, part {i} has {text}."
                )


def _describe(part: Graphs) -> Iterator[tuple[str, Any, str]]:
    """Yield the name, the value and a description of everything that must be the same in all parts."""
    for name in ("labels", "edge_labels"):
        lacks = getattr(part, name) is None
        yield name, lacks, f"{'no ' if lacks else ''}{name.replace('_', ' ')}"
    yield "directed", part.directed, f"{'directed' if part.directed else 'undirected'} edges"
    for rows, thing, vectors in (
        ("nodes", "node", "attributes"),
        ("arcs", "edge", "edge_attributes"),
        ("graphs", "graph", "graph_attributes"),
    ):
        if part._n_rows(rows):
            array, names = getattr(part, vectors), getattr(part, f"{vectors[:-1]}_names")
            width = 0 if array is None else array.shape[1]
            yield vectors, width, f"{counted(width, 'attribute')} per {thing}"
            if names is not None:
                yield f"{vectors[:-1]}_names", names, f"the {vectors} {', '.join(names)}"
    if part.positions is not None and part.n_nodes:
        width = part.positions.shape[1]
        yield "positions", width, f"positions with {width} columns"


# -------------------------------------------------------------------- a finished collection


def check_collection(fields: dict[str, Any]) -> None:
    """Raise if the fields of a Graphs do not fit together; vectors, names and targets are converted."""
    if not isinstance(fields["directed"], bool):
        raise InvalidGraphError(f"directed must be True or False; got {fields['directed']!r}.")
    offsets = _check_ints(fields, "offsets")
    check_ascending(offsets, "offsets")
    n_nodes = int(offsets[-1])
    indptr = _check_ints(fields, "indptr", n_nodes + 1, "one entry per node and one more")
    check_ascending(indptr, "indptr")
    n_arcs = int(indptr[-1])
    indices = _check_ints(fields, "indices", n_arcs, "one entry per arc, as indptr says")
    _check_labels(fields, "label", n_nodes, "one per node")
    _check_labels(fields, "edge_label", n_arcs, "one per arc")
    sources = np.repeat(np.arange(n_nodes), np.diff(indptr))
    finder = Finder(offsets)
    arcs = check_edges(np.stack([sources, indices], axis=1), finder)
    if fields["edge_attributes"] is not None:
        fields["edge_attributes"] = check_edge_vectors(fields["edge_attributes"], arcs, finder)
    edge_data = {name: fields[name] for name in ("edge_labels", "edge_attributes") if fields[name] is not None}
    if not _is_compressed(sources, indices, n_nodes, edge_data, directed=fields["directed"]):
        raise InvalidGraphError(
            "indices must list the neighbors of each node sorted, each once and without the node itself, and an undirected edge "
            "in both directions, with the same label and attributes. Graphs.from_arrays takes edges in any order."
        )
    check_extras(fields)


def _check_ints(fields: dict[str, Any], name: str, length: int | None = None, meaning: str = "") -> Ints:
    array = fields[name]
    is_right = isinstance(array, np.ndarray) and array.dtype == np.int64 and array.ndim == 1
    if not is_right or not array.flags.c_contiguous or length not in (None, len(array)):
        wanted = "" if length is None else f" of length {length}, {meaning}"
        raise InvalidGraphError(f"{name} must be a contiguous 1-dimensional array of int64{wanted}; {_got(array)}.")
    return array


def _check_labels(fields: dict[str, Any], name: str, length: int, meaning: str) -> None:
    values: LabelValues = fields[f"{name}_values"]
    if not isinstance(values, tuple):
        raise InvalidGraphError(f"{name}_values must be a tuple; {_got(values)}.")
    if fields[f"{name}s"] is None:
        return
    codes = _check_ints(fields, f"{name}s", length, meaning)
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(values)):
        raise InvalidGraphError(
            f"{name}s must be numbers from 0 to {len(values) - 1}, indices into {name}_values; they range from {codes.min()} "
            f"to {codes.max()}."
        )
    for i, value in enumerate(values):
        check_label(value, f"{name}_values", i)
        plain = plain_label(value)
        if type(plain) is not type(value):
            raise InvalidGraphError(f"{name}_values[{i}] must be a plain {type(plain).__name__}; {_got(value)}.")
    if len(set(values)) < len(values):
        raise InvalidGraphError(f"{name}_values must be distinct.")


def _got(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"got an array of dtype {value.dtype} and shape {value.shape}"
    return f"got {type(value).__name__}"
