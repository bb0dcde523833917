"""Checks of the data that users pass to ``from_edges`` and ``from_arrays``; all are linear in nodes and edges."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs.labels import plain_label, refuse_masked

# The fields with one row per node, arc or graph. Selecting, joining and comparing collections loop over them.
ROWS = {
    "nodes": ("labels", "attributes", "node_names"),
    "arcs": ("edge_labels", "edge_attributes"),
    "graphs": ("targets", "graph_names", "graph_attributes"),
}
# The fields that name the columns of another field.
COLUMN_NAMES = {
    "attribute_names": "attributes",
    "edge_attribute_names": "edge_attributes",
    "graph_attribute_names": "graph_attributes",
}

Names = NDArray[Any] | None
MAX_NODES = 2**31 - 1  # of a collection, so that the product of two node numbers fits into 64 bits


# -------------------------------------------------------------------- sequences and arrays


def as_list(values: Iterable[Any], name: str, n_graphs: int | None = None) -> list[Any]:
    """Return a list with one entry per graph, by position: the index of a pandas object is ignored."""
    if isinstance(values, Mapping | Set) or not isinstance(values, Iterable):
        raise InvalidGraphError(f"{name} must be a sequence with one entry per graph; got {type(values).__name__}.")
    entries = list(values)
    if n_graphs is not None and len(entries) != n_graphs:
        graphs = counted(n_graphs, "graph")
        raise InvalidGraphError(f"{name} must have one entry per graph: {graphs}, got {len(entries)} entries.")
    return entries


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert to an array without masked values."""
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InvalidGraphError(f"{name} must form a regular array ({error}).") from None


def as_exact(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert to an array; raise where numpy would turn numbers into strings, or round large integers."""
    array = as_array(values, name)
    change = _first_change(values, array)
    if change is not None:
        raise InvalidGraphError(
            f"{name} must be all strings, or all numbers that one array can hold; {change[0]!r} would become {change[1]!r}."
        )
    return array


def as_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert to an array, of objects where numpy would change an entry."""
    array = as_array(values, name)
    return array if _first_change(values, array) is None else np.array(values, dtype=object)


def _first_change(values: ArrayLike, array: NDArray[Any]) -> tuple[Any, Any] | None:
    """Return the first entry of a list that its array does not hold exactly, and what the array holds."""
    if not isinstance(values, list | tuple) or array.dtype.kind not in "USf":
        return None
    original = np.array(values, dtype=object).ravel().tolist()
    held = array.astype(object).ravel().tolist()  # plain numbers, which Python compares exactly
    pairs = zip(original, held, strict=True)
    return next(((a, b) for a, b in pairs if a != b and not (a != a and b != b)), None)  # nan may stay nan


# -------------------------------------------------------------------- nodes and edges


def graph_title(graph: int, names: Names = None) -> str:
    """Describe a graph in a message: by its number, and by its name if it has one."""
    return f"Graph {graph}" if names is None else f"Graph {graph} ({names[graph]!r})"


def graph_sizes(titles: list[str], pairs: list[Ints], n_nodes: Sequence[int] | None, data: dict[str, Any]) -> list[int]:
    """Return the number of nodes of each graph from the data, which must agree, or else from the largest node of an edge."""
    sizes: list[int] = []
    for i, pair in enumerate(pairs):
        counts = {} if n_nodes is None else {"n_nodes": check_count(n_nodes[i], titles[i])}
        counts |= {name: _length(rows[i], titles[i], name) for name, rows in data.items() if rows is not None}
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{value} from {name}" for name, value in counts.items())
            raise InvalidGraphError(f"{titles[i]}: the numbers of nodes disagree: {shown}.")
        sizes.append(next(iter(counts.values())) if counts else int(pair.max(initial=-1)) + 1)
    return sizes


def check_count(count: Any, title: str, name: str = "n_nodes") -> int:
    """Convert the number of nodes of a graph."""
    try:
        number = operator.index(count)
    except TypeError:
        number = -1
    if number < 0:
        shown = count.item() if isinstance(count, np.generic) else count
        raise InvalidGraphError(f"{title}: {name} must be a whole number, at least 0; got {shown!r}.")
    return number


def _length(values: Any, title: str, name: str) -> int:
    try:
        return len(values)
    except TypeError:
        raise InvalidGraphError(f"{title}: {name} must be a list; got {values!r}.") from None


def check_offsets(offsets: ArrayLike) -> Ints:
    """Check and copy the first node of each graph."""
    starts = as_array(offsets, "offsets")
    if starts.ndim != 1 or not starts.size or starts.dtype.kind not in "iu":
        raise InvalidGraphError(
            f"offsets must be a one-dimensional array of integers; got dtype {starts.dtype} and shape {starts.shape}."
        )
    starts = starts.astype(np.int64)
    check_ascending(starts, "offsets")
    if starts[-1] > MAX_NODES:
        raise InvalidGraphError(
            f"offsets must end with the number of nodes, at most {MAX_NODES:,} in one collection; got {starts[-1]}."
        )
    return starts


def check_ascending(starts: Ints, name: str) -> None:
    """Raise if positions do not start at 0, or decrease."""
    if not len(starts) or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise InvalidGraphError(f"{name} must start at 0 and never decrease.")


def as_pairs(edges: ArrayLike, name: str) -> Ints:
    """Convert a list of edges to an array of shape (n_edges, 2)."""
    pairs = as_array(edges, name)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidGraphError(
            f"{name} must be pairs of node numbers, an integer array of shape (n_edges, 2); got dtype {pairs.dtype} and "
            f"shape {pairs.shape}."
        )
    return pairs.astype(np.int64, copy=False)


def check_edges(edges: ArrayLike, offsets: Ints, names: Names = None) -> Ints:
    """Convert edges to pairs of nodes, each pair within one graph."""
    pairs = as_pairs(edges, "edges")
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= offsets[-1]):
        row = int(((pairs < 0) | (pairs >= offsets[-1])).any(axis=1).argmax())
        raise InvalidGraphError(
            f"Edge {row} ({pairs[row, 0]}, {pairs[row, 1]}) names a node that does not exist; nodes are numbered from 0 to "
            f"{offsets[-1] - 1}."
        )
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[pairs]
    crossing = owner[:, 0] != owner[:, 1]
    if crossing.any():
        row = int(crossing.argmax())
        first, second = (graph_title(graph, names).removeprefix("Graph ") for graph in owner[row].tolist())
        raise InvalidGraphError(
            f"Edge {row} ({pairs[row, 0]}, {pairs[row, 1]}) joins two graphs, {first} and {second}; an edge must stay within "
            "its graph."
        )
    return pairs


def shift_edges(pairs: Ints, owners: Ints, offsets: Ints, names: Names = None) -> Ints:
    """Convert node numbers within each graph to numbers through all graphs; ``owners`` is the graph of each pair."""
    n_nodes = np.diff(offsets)[owners]
    is_wrong = ((pairs < 0) | (pairs >= n_nodes[:, None])).any(axis=1)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InvalidGraphError(
            f"{graph_title(int(owners[row]), names)}: edge ({pairs[row, 0]}, {pairs[row, 1]}) names a node that does not exist; the graph has "
            f"{n_nodes[row]} nodes, numbered from 0 to {n_nodes[row] - 1}."
        )
    return pairs + offsets[:-1][owners][:, None]


def check_edge_counts(titles: list[str], pairs: list[Ints], data: Sequence[Any] | None, noun: str) -> None:
    """Raise if a graph does not have one edge label or vector per edge."""
    for title, rows, pair in zip(titles, data or (), pairs, strict=data is not None):
        if _length(rows, title, "edge_labels") != len(pair):
            raise InvalidGraphError(f"{title}: {counted(len(pair), 'edge')} but {counted(len(rows), noun)}.")


class Finder(NamedTuple):
    """Describe graphs and nodes of a collection in messages: by number, and by name if there are names."""

    offsets: Ints
    graph_names: Names = None
    node_names: Names = None

    def graph_of(self, node: int) -> str:
        """Return the title of the graph of a node."""
        return graph_title(int(np.searchsorted(self.offsets, node, side="right")) - 1, self.graph_names)

    def node(self, node: int) -> str:
        """Return the number of a node within its graph, and its name."""
        start = self.offsets[np.searchsorted(self.offsets, node, side="right") - 1]
        return f"{node - start}" + ("" if self.node_names is None else f" ({self.node_names[node]!r})")

    def node_vector(self, node: int) -> str:
        """Return the subject of an error about the vector of a node."""
        return f"{self.graph_of(node)}: the attributes of its node {self.node(node)}"

    def edge_vector(self, pair: Ints) -> str:
        """Return the subject of an error about the vector of an edge."""
        source, end = pair.tolist()
        return f"{self.graph_of(source)}: the attributes of its edge ({self.node(source)}, {self.node(end)})"


def node_mask(nodes: ArrayLike, n_nodes: int) -> NDArray[np.bool_]:
    """Convert node numbers or a mask to a mask."""
    chosen = as_array(nodes, "nodes")
    if chosen.dtype == bool and chosen.shape == (n_nodes,):
        return chosen
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise InvalidGraphError(
            f"nodes must be whole numbers, or a mask of {n_nodes} entries; got an array of dtype {chosen.dtype} and shape "
            f"{chosen.shape}."
        )
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_nodes):
        wrong = chosen[(chosen < 0) | (chosen >= n_nodes)][0]
        raise InvalidGraphError(f"nodes must be numbers from 0 to {n_nodes - 1}; got {wrong}.")
    mask = np.zeros(n_nodes, dtype=bool)
    mask[chosen.astype(np.int64)] = True
    if np.count_nonzero(mask) < len(chosen):
        raise InvalidGraphError("nodes must name each node once.")
    return mask


# -------------------------------------------------------------------- vectors and targets


def _as_floats(vectors: ArrayLike, name: str, thing: str) -> Floats:
    """Convert real numbers to a new array in double precision."""
    refuse_masked(vectors, name)
    try:
        array = np.asarray(vectors)
        if array.dtype.kind not in "cmM":  # whose conversion would lose a part, or turn dates into numbers
            return np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        reason = re.sub(r"np\.str_\((.*)\)", r"\1", str(error))
        raise InvalidGraphError(
            f"{name} must be one vector of numbers per {thing}, all of one length ({reason})."
        ) from None
    raise InvalidGraphError(
        f"{name} must be real numbers; got dtype {array.dtype}. Convert them to real numbers first."
    )


def check_vectors(vectors: ArrayLike, title: str, name: str = "attributes", thing: str = "node") -> Floats:
    """Convert the vectors of one graph; single numbers become vectors of length 1."""
    block = _as_floats(vectors, f"{title}: {name}", thing)
    if block.ndim == 1 and block.size:
        block = block[:, None]
    if block.ndim not in (1, 2):
        raise InvalidGraphError(f"{title}: {name} must have the shape (n_{thing}s, n_attributes); got {block.shape}.")
    return block


def check_rows(values: ArrayLike, length: int, name: str, thing: str, describe: Callable[[int], str]) -> Floats:
    """Convert one finite vector per node, edge or graph; ``describe`` returns the subject of an error about a row."""
    vectors = _as_floats(values, name, thing)
    if vectors.ndim == 1:
        vectors = vectors[:, None]
    if vectors.ndim != 2 or len(vectors) != length:
        raise InvalidGraphError(
            f"{name} must have the shape ({length}, n_attributes), one row per {thing}; got {vectors.shape}."
        )
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        row = int((~is_finite).argmax())
        raise InvalidGraphError(
            f"{describe(row)} are not finite: {vectors[row].tolist()}. Replace or remove missing values first."
        )
    return vectors


def check_targets(targets: ArrayLike, n_graphs: int) -> NDArray[Any]:
    """Copy one target per graph."""
    values = np.array(as_exact(targets, "targets"))
    if values.ndim < 1 or len(values) != n_graphs:
        raise InvalidGraphError(
            f"targets must have one entry per graph: {n_graphs} graphs, got an array of shape {values.shape}."
        )
    return values


# -------------------------------------------------------------------- names and graph attributes


def check_extras(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the names and graph attributes among the fields of a Graphs, whose other arrays were checked."""
    offsets = fields["offsets"]
    made: dict[str, Any] = {
        "graph_names": check_names(fields.get("graph_names"), len(offsets) - 1, "graph_names", "graphs"),
        "node_names": check_names(fields.get("node_names"), int(offsets[-1]), "node_names", "nodes"),
        "graph_attributes": fields.get("graph_attributes"),
    }
    columns = getattr(made["graph_attributes"], "columns", None)  # of a table
    if columns is not None and fields.get("graph_attribute_names") is None:
        fields = {**fields, "graph_attribute_names": columns}
    if made["graph_attributes"] is not None:
        made["graph_attributes"] = check_rows(
            made["graph_attributes"],
            len(offsets) - 1,
            "graph_attributes",
            "graph",
            lambda graph: f"{graph_title(graph, made['graph_names'])}: its graph_attributes",
        )
    for name, owner in COLUMN_NAMES.items():
        vectors: Any = made.get(owner, fields.get(owner))
        names = fields.get(name)
        if names is not None and vectors is None:
            raise InvalidGraphError(f"{name} is given, but there are no {owner}.")
        if names is not None and not len(vectors):  # without nodes or edges, vectors have no length of their own
            vectors = made[owner] = np.empty((0, len(names)))
        names = check_names(names, 0 if vectors is None else vectors.shape[1], name, f"columns of {owner}")
        made[name] = None if names is None else tuple(names)
    return made


def check_names(names: Iterable[Any] | None, length: int, name: str, things: str) -> Names:
    """Convert one name per graph, node or column to strings."""
    if names is None:
        return None
    if isinstance(names, str | Mapping | Set) or not isinstance(names, Iterable):
        raise InvalidGraphError(f"{name} must be a sequence of strings; got {type(names).__name__}.")
    entries = [plain_label(entry) for entry in names]
    if len(entries) != length:
        raise InvalidGraphError(f"{name} must have one entry for each of the {length} {things}; got {len(entries)}.")
    found = np.empty(length, dtype=object)
    for i, entry in enumerate(entries):
        if not isinstance(entry, str | int):
            raise InvalidGraphError(f"{name}[{i}] must be a string; got {entry!r}.")
        found[i] = str(entry)
    return found
