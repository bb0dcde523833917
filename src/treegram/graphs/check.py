"""From what a user gives to what Graphs stores: checks, label codes, CSR neighbors. Plain functions on arrays."""

from __future__ import annotations

import operator
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.text import counted
from treegram._core.types import Floats, Ints

MAX_NODES = 2**31 - 1  # of a collection, so that products of two node numbers fit into 64 bits

# -------------------------------------------------------------------- checks, each for one thing


def as_list(values: Iterable[Any], name: str, n_graphs: int | None = None) -> list[Any]:
    """One entry per graph, by position: an index of pandas says nothing about the order of the graphs."""
    if isinstance(values, Mapping | Set) or not isinstance(values, Iterable):
        raise InvalidGraphError(f"{name} must be a sequence with one entry per graph; got {type(values).__name__}.")
    entries = list(values)
    if n_graphs is not None and len(entries) != n_graphs:
        graphs = counted(n_graphs, "graph")
        raise InvalidGraphError(f"{name} must have one entry per graph: {graphs}, got {len(entries)} entries.")
    return entries


def refuse_masked(values: object, name: str) -> None:
    """Raise if some values of a masked array, or of the rows of a list, are hidden."""
    rows = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise InvalidGraphError(f"{name} must have no masked values. Fill them, or remove what they belong to, first.")


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InvalidGraphError(f"{name} must make a regular array ({error}).") from None


def as_exact(values: ArrayLike, name: str) -> NDArray[Any]:
    """As `as_array`; raise where numpy would make texts of numbers, or other numbers of large ones."""
    array = as_array(values, name)
    change = _first_change(values, array)
    if change is not None:
        raise InvalidGraphError(
            f"{name} must be all texts, or all numbers that one array can hold; {change[0]!r} would become {change[1]!r}."
        )
    return array


def as_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """As `as_array`; an array of objects where 1 and "C" in one list would both be texts, or large numbers others."""
    array = as_array(values, name)
    return array if _first_change(values, array) is None else np.array(values, dtype=object)


def _first_change(values: ArrayLike, array: NDArray[Any]) -> tuple[Any, Any] | None:
    """The first entry of a list that its array does not hold as it is, and what the array holds."""
    if not isinstance(values, list | tuple) or array.dtype.kind not in "USf":
        return None
    given = np.array(values, dtype=object).ravel().tolist()
    held = array.astype(object).ravel().tolist()  # plain numbers, which Python compares exactly
    pairs = zip(given, held, strict=True)
    return next(((a, b) for a, b in pairs if a != b and not (a != a and b != b)), None)  # nan may stay nan


def check_edge_list(edges: ArrayLike, graph: int) -> Ints:
    pairs = as_array(edges, f"Graph {graph}: edges")
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidGraphError(
            f"Graph {graph}: edges must be pairs of node numbers; got an array of dtype {pairs.dtype} and shape {pairs.shape}."
        )
    return pairs.astype(np.int64)


def as_vectors(vectors: ArrayLike, name: str, thing: str = "node") -> Floats:
    """Real numbers as a new array in double precision."""
    refuse_masked(vectors, name)
    try:
        given = np.asarray(vectors)
        if given.dtype.kind not in "cmM":  # whose conversion would lose a part, or make numbers of dates
            return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        reason = re.sub(r"np\.str_\((.*)\)", r"\1", str(error))
        raise InvalidGraphError(
            f"{name} must be one vector of numbers per {thing}, all of one length ({reason})."
        ) from None
    raise InvalidGraphError(
        f"{name} must be real numbers; got dtype {given.dtype}. Convert them to real numbers first."
    )


def check_vectors(vectors: ArrayLike, graph: int, name: str = "attributes", thing: str = "node") -> Floats:
    block = as_vectors(vectors, f"Graph {graph}: {name}", thing)
    if block.ndim == 1 and block.size:
        block = block[:, None]
    if block.ndim not in (1, 2):
        raise InvalidGraphError(
            f"Graph {graph}: {name} must have the shape (n_{thing}s, n_attributes); got {block.shape}."
        )
    return block


def stack_vectors(blocks: list[Floats], name: str = "attributes") -> Floats:
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


def check_count(n_nodes: int, graph: int) -> int:
    try:
        count = operator.index(n_nodes)
    except TypeError:
        count = -1
    if count < 0:
        shown = n_nodes.item() if isinstance(n_nodes, np.generic) else n_nodes
        raise InvalidGraphError(f"Graph {graph}: n_nodes must be a whole number, 0 or more; got {shown!r}.")
    return count


def count_of(values: Any, i: int, name: str) -> int:
    """How many values graph i has; an error if it has one value where there must be a list."""
    try:
        return len(values)
    except TypeError:
        raise InvalidGraphError(f"Graph {i}: {name} must be a list with one entry for each; got {values!r}.") from None


def graph_sizes(
    pairs: list[Ints],
    n_nodes: Sequence[int] | None,
    labels: Sequence[Sequence[Hashable]] | None,
    vectors: list[Floats] | None,
) -> list[int]:
    """Number of nodes of each graph, from whatever tells it; sources that disagree are an error."""
    sizes: list[int] = []
    for i, pair in enumerate(pairs):
        told = {}
        if n_nodes is not None:
            told["n_nodes"] = check_count(n_nodes[i], i)
        if labels is not None:
            told["labels"] = count_of(labels[i], i, "labels")
        if vectors is not None:
            told["attributes"] = len(vectors[i])
        if len(set(told.values())) > 1:
            counts = ", ".join(f"{value} by {name}" for name, value in told.items())
            raise InvalidGraphError(f"Graph {i}: the number of nodes is contradictory: {counts}.")
        sizes.append(next(iter(told.values())) if told else int(pair.max(initial=-1)) + 1)
    return sizes


def join_edge_lists(pairs: list[Ints], sizes: list[int], offsets: Ints) -> Ints:
    """All edges with nodes numbered through, if each names nodes of its own graph."""
    for i, (pair, size) in enumerate(zip(pairs, sizes, strict=True)):
        if len(pair) and (pair.min() < 0 or pair.max() >= size):
            bad = pair[((pair < 0) | (pair >= size)).any(axis=1)][0]
            raise InvalidGraphError(
                f"Graph {i}: edge ({bad[0]}, {bad[1]}) names a node that does not exist; the graph has {size} nodes, "
                f"numbered from 0 to {size - 1}."
            )
    return np.concatenate([np.empty((0, 2), np.int64), *(p + o for p, o in zip(pairs, offsets[:-1], strict=True))])


def check_edge_data(data: Sequence[Any] | None, pairs: list[Ints], noun: str) -> None:
    """Raise if a graph has not as many edge labels or vectors as edges."""
    for i, (rows, pair) in enumerate(zip(data or (), pairs, strict=data is not None)):
        if count_of(rows, i, "edge_labels") != len(pair):
            raise InvalidGraphError(f"Graph {i}: {counted(len(pair), 'edge')} but {counted(len(rows), noun)}.")


def check_offsets(offsets: ArrayLike) -> Ints:
    starts = as_array(offsets, "offsets")
    if starts.ndim != 1 or not starts.size or starts.dtype.kind not in "iu":
        raise InvalidGraphError(
            f"offsets must be a one-dimensional array of integers; got dtype {starts.dtype} and shape {starts.shape}."
        )
    starts = starts.astype(np.int64)
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise InvalidGraphError("offsets must start at 0 and never decrease.")
    if starts[-1] > MAX_NODES:
        raise InvalidGraphError(
            f"offsets must end with the number of nodes, at most {MAX_NODES:,} in one collection; got {starts[-1]}."
        )
    return starts


def check_edges(edges: ArrayLike, offsets: Ints) -> Ints:
    pairs = as_array(edges, "edges")
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidGraphError(
            f"edges must be an integer array of shape (n_edges, 2); got dtype {pairs.dtype} and shape {pairs.shape}."
        )
    pairs = pairs.astype(np.int64, copy=False)
    if pairs.min() < 0 or pairs.max() >= offsets[-1]:
        row = int(((pairs < 0) | (pairs >= offsets[-1])).any(axis=1).argmax())
        raise InvalidGraphError(
            f"Edge {row} ({pairs[row, 0]}, {pairs[row, 1]}) names a node that does not exist; nodes are numbered from 0 to {offsets[-1] - 1}."
        )
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[pairs]
    crossing = owner[:, 0] != owner[:, 1]
    if crossing.any():
        row = int(crossing.argmax())
        raise InvalidGraphError(
            f"Edge {row} ({pairs[row, 0]}, {pairs[row, 1]}) joins two graphs, {owner[row, 0]} and {owner[row, 1]}; "
            "an edge must stay within its graph."
        )
    return pairs


def check_attributes(attributes: ArrayLike, offsets: Ints) -> Floats:
    vectors = _check_rows(attributes, int(offsets[-1]), "attributes", "node")
    node = _first_infinite(vectors)
    if node is not None:
        graph = int(np.searchsorted(offsets, node, side="right")) - 1
        raise InvalidGraphError(
            f"Graph {graph}: the attributes of its node {node - offsets[graph]} are not finite: {vectors[node].tolist()}. "
            "Replace or remove missing values first."
        )
    return vectors


def check_edge_attributes(attributes: ArrayLike, pairs: Ints, offsets: Ints) -> Floats:
    vectors = _check_rows(attributes, len(pairs), "edge_attributes", "edge")
    edge = _first_infinite(vectors)
    if edge is not None:
        graph, ends = owner_and_ends(pairs[edge], offsets)
        raise InvalidGraphError(
            f"Graph {graph}: the attributes of its edge {ends} are not finite: {vectors[edge].tolist()}. "
            "Replace or remove missing values first."
        )
    return vectors


def owner_and_ends(pair: Ints, offsets: Ints) -> tuple[int, tuple[int, int]]:
    """The graph of an edge, and the numbers of its nodes within it."""
    graph = int(np.searchsorted(offsets, pair[0], side="right")) - 1
    return graph, (int(pair[0] - offsets[graph]), int(pair[1] - offsets[graph]))


def _check_rows(values: ArrayLike, length: int, name: str, thing: str) -> Floats:
    """One row of numbers for each node or edge."""
    vectors = as_vectors(values, name, thing)
    if vectors.ndim == 1:
        vectors = vectors[:, None]
    if vectors.ndim != 2 or len(vectors) != length:
        raise InvalidGraphError(
            f"{name} must have the shape ({length}, n_attributes), one row per {thing}; got {vectors.shape}."
        )
    return vectors


def _first_infinite(vectors: Floats) -> int | None:
    finite = np.isfinite(vectors).all(axis=1)
    return None if finite.all() else int((~finite).argmax())


def check_targets(targets: ArrayLike, n_graphs: int) -> NDArray[Any]:
    values = np.array(as_exact(targets, "targets"))
    if values.ndim < 1 or len(values) != n_graphs:
        raise InvalidGraphError(
            f"targets must have one entry per graph: {n_graphs} graphs, got an array of shape {values.shape}."
        )
    return values


# -------------------------------------------------------------------- labels


def plain_label(value: Hashable) -> Hashable:
    """A label as plain Python: numpy scalars, members of enumerations, True and 1.0 become what they are equal to."""
    if type(value) in (int, str):  # nearly all
        return value
    if isinstance(value, np.datetime64 | np.timedelta64 | np.ma.core.MaskedConstant):
        return value  # no label: numpy makes numbers of these, of missing ones too
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)  # not str(value), which a class of the user may have changed
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int.__index__(value) if isinstance(value, int) else int(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, tuple | list | np.ndarray):
        return tuple(plain_label(part) for part in value)
    return value


def label_order(value: Hashable) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return ("tuple", tuple(label_order(part) for part in value))
    return (type(value).__name__, value)


def is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_label(value: Hashable, name: str, position: int) -> None:
    parts = value if isinstance(value, tuple) else (value,)
    for part in parts:
        if isinstance(part, tuple):
            check_label(part, name, position)
        elif not isinstance(part, int | str) and not (isinstance(part, float) and np.isfinite(part)):
            raise InvalidGraphError(
                f"{name}[{position}] must be an integer, a string, a finite number or a tuple of these; got {part!r}."
            )


def encode_labels(
    labels: Sequence[Hashable] | NDArray[Any], length: int, name: str, things: str
) -> tuple[Ints, tuple[Hashable, ...]]:
    """Codes and sorted distinct values of one label per node or edge."""
    refuse_masked(labels, name)
    if isinstance(labels, Mapping | Set):
        raise InvalidGraphError(
            f"{name} must be a sequence with one entry for each of the {things}; got {type(labels).__name__}."
        )
    if len(labels) != length:
        raise InvalidGraphError(f"{name} must have one entry for each of the {length} {things}; got {len(labels)}.")
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iub":
        distinct, codes = np.unique(labels.astype(np.int64) if labels.dtype == bool else labels, return_inverse=True)
        return codes.astype(np.int64), tuple(distinct.tolist())
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.dtype.kind in "iu":
        rows, codes = np.unique(labels, axis=0, return_inverse=True)
        return codes.reshape(-1).astype(np.int64), tuple(tuple(row) for row in rows.tolist())
    plain = [plain_label(value) for value in labels]
    first: dict[Hashable, int] = {}
    for i, value in enumerate(plain):
        if not is_hashable(value) or value not in first:
            check_label(value, name, i)
            first[value] = i
    values = sorted(first, key=label_order)
    code = {value: i for i, value in enumerate(values)}
    return np.array([code[value] for value in plain], dtype=np.int64), tuple(values)


def join_codes(
    codes: list[Ints | None], values: list[tuple[Hashable, ...]]
) -> tuple[Ints | None, tuple[Hashable, ...]]:
    if codes[0] is None:
        return None, ()
    joined = sorted({value for part in values for value in part}, key=label_order)
    position = {value: i for i, value in enumerate(joined)}
    moved = [np.array([position[v] for v in part], dtype=np.int64) for part in values]
    return np.concatenate([m[c] for m, c in zip(moved, codes, strict=True) if c is not None]), tuple(joined)


def same_labels(
    codes: Ints | None,
    values: tuple[Hashable, ...],
    other_codes: Ints | None,
    other_values: tuple[Hashable, ...],
) -> bool:
    """Whether two code arrays stand for the same labels; values that nobody uses do not matter."""
    if codes is None or other_codes is None:
        return codes is other_codes
    if values == other_values:
        return same_array(codes, other_codes)
    joined = sorted({*values, *other_values}, key=label_order)
    position = {value: i for i, value in enumerate(joined)}
    left, right = (np.array([position[v] for v in vals], dtype=np.int64) for vals in (values, other_values))
    return same_array(left[codes], right[other_codes])


# -------------------------------------------------------------------- arrays


def same_array(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    if a is None or b is None:
        return a is b
    return np.array_equal(a, b)


def concatenate_present(arrays: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    present = [a for a in arrays if a is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers start, start + 1, ... of each range, one range after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def chosen_nodes(nodes: ArrayLike, n_nodes: int) -> NDArray[np.bool_]:
    """Whether each node is among some, given as numbers or as a mask."""
    chosen = as_array(nodes, "nodes")
    if chosen.dtype == bool and chosen.shape == (n_nodes,):
        return chosen
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise InvalidGraphError(
            f"nodes must be whole numbers, or {n_nodes} times True or False; got an array of dtype {chosen.dtype} and "
            f"shape {chosen.shape}."
        )
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_nodes):
        wrong = chosen[(chosen < 0) | (chosen >= n_nodes)][0]
        raise InvalidGraphError(f"nodes must be numbers from 0 to {n_nodes - 1}; got {wrong}.")
    is_chosen = np.zeros(n_nodes, dtype=bool)
    is_chosen[chosen.astype(np.int64)] = True
    if np.count_nonzero(is_chosen) < len(chosen):
        raise InvalidGraphError("nodes must name each node once.")
    return is_chosen


def compress_edges(
    pairs: Ints, offsets: Ints, data: dict[str, NDArray[Any]], *, directed: bool
) -> tuple[Ints, Ints, dict[str, NDArray[Any]]]:
    """CSR neighbors from node pairs: no self loops, each edge once, both directions unless directed.

    ``data`` has arrays with one row per pair, by a name for messages; it comes back with one row per arc.
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
    """Where the arcs of each node start."""
    return np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n_nodes))])


def _is_compressed(sources: Ints, ends: Ints, n_nodes: int, data: dict[str, NDArray[Any]], *, directed: bool) -> bool:
    """Whether arcs are already in order, without loops, and in both directions if undirected: most files are like this."""
    steps = np.diff(sources)
    if (sources == ends).any() or (steps < 0).any() or ((steps == 0) & (ends[1:] <= ends[:-1])).any():
        return False
    if directed or not len(sources):
        return True
    back = arcs_back(_starts(sources, n_nodes), ends)
    return back is not None and all(np.array_equal(rows, rows[back]) for rows in data.values())


def arcs_back(indptr: Ints, indices: Ints) -> Ints | None:
    """For each arc of sorted neighbors the arc that leads back, or None if one does not."""
    from scipy.sparse import csr_matrix

    n_nodes = len(indptr) - 1
    small = np.int32 if max(len(indices), n_nodes) < 2**31 else np.int64
    arrays = (np.arange(len(indices), dtype=small), indices.astype(small), indptr.astype(small))
    arcs = csr_matrix(arrays, shape=(n_nodes, n_nodes))
    back = arcs.tocsc()  # its transpose, row by row, sorted
    is_symmetric = np.array_equal(back.indptr, arcs.indptr) and np.array_equal(back.indices, arcs.indices)
    return back.data if is_symmetric else None


def _check_same(
    rows: NDArray[Any], first: Ints, inverse: Ints, keys: Ints, offsets: Ints, name: str, *, directed: bool
) -> None:
    """Raise if an edge that is listed more than once has different data."""
    unequal = rows[first][inverse] != rows
    unequal = unequal.any(axis=1) if unequal.ndim > 1 else unequal
    if unequal.any():
        pair = np.array(divmod(int(keys[unequal.argmax()]), int(offsets[-1])))
        graph, (source, end) = owner_and_ends(pair, offsets)
        raise InvalidGraphError(
            f"Graph {graph}: the edge between its nodes {source} and {end} is listed more than once with different {name}."
            + ("" if directed else f" If {name} depend on the direction, give directed=True.")
        )
