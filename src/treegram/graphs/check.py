"""Checks of the data that users pass to ``from_edges``, ``from_arrays`` and ``assign``; all are linear in nodes and edges.

Discrete labels are plain Python values outside, and integer codes into a sorted tuple of values inside.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.text import counted
from treegram._core.types import Array, Floats, Ints, Masks
from treegram.exceptions import DatasetError, InvalidGraphError

if TYPE_CHECKING:
    from treegram.graphs import Graphs

# The fields with one row per node, arc or graph. Selecting, joining and comparing collections loop over them.
ROWS = {
    "nodes": ("labels", "attributes", "node_names", "positions"),
    "arcs": ("edge_labels", "edge_attributes"),
    "graphs": ("targets", "graph_names", "graph_attributes"),
}
# The fields that name the columns of another field.
COLUMN_NAMES = {
    "attribute_names": "attributes",
    "edge_attribute_names": "edge_attributes",
    "graph_attribute_names": "graph_attributes",
}

GROUP_END = ": "  # ends the name of a group in the name of a column of graph_attributes

NameArray = Array | None
LabelValues: TypeAlias = tuple[Hashable, ...]  # the distinct labels, sorted
T = TypeVar("T")
MAX_NODES = 2**31 - 1  # of a collection, so that the product of two node numbers fits into 64 bits


def _title(graph: int, names: NameArray) -> str:
    return f"Graph {graph}" if names is None else f"Graph {graph} ({names[graph]!r})"


class Finder(NamedTuple):
    """Describe graphs and nodes of a collection in messages: by number, and by name if there are names."""

    offsets: Ints
    graph_names: NameArray = None
    node_names: Any = None

    def graph(self, graph: int) -> str:
        """Return the title of a graph."""
        return _title(graph, self.graph_names)

    def graph_of(self, node: int) -> str:
        """Return the title of the graph of a node."""
        return self.graph(int(np.searchsorted(self.offsets, node, side="right")) - 1)

    def node(self, node: int) -> str:
        """Return the number of a node within its graph, and its name."""
        start = self.offsets[np.searchsorted(self.offsets, node, side="right") - 1]
        return f"{node - start}" + ("" if self.node_names is None else f" ({self.node_names[node]!r})")

    def edge(self, pair: ArrayLike) -> str:
        """Return the two nodes of an edge."""
        source, end = np.asarray(pair).tolist()
        return f"({self.node(source)}, {self.node(end)})"


def number_graphs(error: InvalidGraphError, noun: str, first: int) -> str:
    """Return the message of an error about graph i of a part as one about number ``first + i`` of the whole."""
    return re.sub(r"^Graph (\d+)", lambda match: f"{noun} {first + int(match[1])}", str(error))


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


def each_graph(convert: Callable[[Any], T], entries: Iterable[Any], graph_names: NameArray) -> list[T]:
    """Convert the entry of each graph; an error message begins with the graph."""
    converted: list[T] = []
    for entry in entries:
        try:
            converted.append(convert(entry))
        except InvalidGraphError as error:
            raise InvalidGraphError(f"{_title(len(converted), graph_names)}: {error}") from None
    return converted


def refuse_masked(values: object, name: str) -> None:
    """Raise if a masked array hides values."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidGraphError(
            f"{name} must have no masked values. Fill them first, or remove the nodes or edges that they belong to."
        )


def as_array(values: ArrayLike, name: str) -> Array:
    """Convert to an array without masked values."""
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InvalidGraphError(f"{name} must form a regular array ({error}).") from None


def as_exact(values: ArrayLike, name: str) -> Array:
    """Convert to an array; raise where numpy would turn numbers into strings, or round large integers."""
    array = as_array(values, name)
    if isinstance(values, list | tuple) and array.dtype.kind in "USf":
        original = np.array(values, dtype=object).ravel().tolist()
        stored = array.astype(object).ravel().tolist()  # plain numbers, which Python compares exactly
        for a, b in zip(original, stored, strict=True):
            if a != b and not (a != a and b != b):  # nan may stay nan
                raise InvalidGraphError(
                    f"{name} must be all strings, or all numbers that one array can hold; {a!r} would become {b!r}."
                )
    return array


# -------------------------------------------------------------------- nodes and edges


def check_count(count: Any, name: str = "n_nodes") -> int:
    """Convert the number of nodes of a graph."""
    try:
        number = operator.index(count)
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_NODES:
        shown = count.item() if isinstance(count, np.generic) else count
        raise InvalidGraphError(f"{name} must be a whole number, at least 0 and at most {MAX_NODES:,}; got {shown!r}.")
    return number


def count_rows(name: str, entries: list[Any], graph_names: NameArray) -> list[int]:
    """Return the number of rows that each graph has in some data."""

    def length(entry: Any) -> int:
        if not hasattr(entry, "__len__"):
            raise InvalidGraphError(f"{name} must be a list; got {entry!r}.")
        return len(entry)

    return each_graph(length, entries, graph_names)


def _agreed(counts: Mapping[str, list[int]], graph_names: NameArray, thing: str) -> list[int] | None:
    """Return the number of nodes or edges of each graph, on which all data must agree; None without any."""
    first = next(iter(counts.values()), None)
    for numbers in counts.values():
        if first is not None and numbers != first:
            graph = next(i for i, number in enumerate(numbers) if number != first[i])
            shown = ", ".join(f"{rows[graph]} from {name}" for name, rows in counts.items())
            raise InvalidGraphError(f"{_title(graph, graph_names)}: the numbers of {thing}s disagree: {shown}.")
    return first


def place_edges(
    pairs: Ints,
    edge_counts: Mapping[str, list[int]],
    node_counts: Mapping[str, list[int]],
    graph_names: NameArray = None,
) -> tuple[Ints, Ints]:
    """Return the first node of each graph, and edges by node numbers across all graphs; ``pairs`` are numbered within each graph.

    Counts say how many edges and nodes each graph has; without any of nodes, there are as many as the edges name.
    """
    n_edges = _agreed(edge_counts, graph_names, "edge")
    owners = np.repeat(np.arange(len(n_edges or ())), np.asarray(n_edges or (), np.int64))
    sizes: Any = _agreed(node_counts, graph_names, "node")
    if sizes is None:
        sizes = np.zeros(len(n_edges or ()), np.int64)
        np.maximum.at(sizes, owners, pairs.max(axis=1, initial=-1) + 1)
    offsets = np.concatenate([[0], np.cumsum(each_graph(check_count, sizes, graph_names), dtype=np.int64)])
    n_nodes = np.diff(offsets)[owners]
    is_wrong = ((pairs < 0) | (pairs >= n_nodes[:, None])).any(axis=1)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InvalidGraphError(
            f"{_title(int(owners[row]), graph_names)}: edge ({pairs[row, 0]}, {pairs[row, 1]}) names a node that does not exist; the "
            f"graph has {n_nodes[row]} nodes, numbered from 0 to {n_nodes[row] - 1}."
        )
    return offsets, pairs + offsets[:-1][owners][:, None]


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


def as_pairs(edges: ArrayLike) -> Ints:
    """Convert a list of edges to an array of shape (n_edges, 2)."""
    pairs = as_array(edges, "edges")
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidGraphError(
            f"edges must be pairs of node numbers, an integer array of shape (n_edges, 2); got dtype {pairs.dtype} and "
            f"shape {pairs.shape}."
        )
    return pairs.astype(np.int64, copy=False)


def check_edges(edges: ArrayLike, finder: Finder) -> Ints:
    """Convert edges to pairs of nodes, each pair within one graph."""
    pairs = as_pairs(edges)
    offsets = finder.offsets
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
        first, second = (finder.graph(graph).removeprefix("Graph ") for graph in owner[row].tolist())
        raise InvalidGraphError(
            f"Edge {row} ({pairs[row, 0]}, {pairs[row, 1]}) joins two graphs, {first} and {second}; an edge must stay within "
            "its graph."
        )
    return pairs


def node_mask(nodes: ArrayLike, n_nodes: int) -> Masks:
    """Convert node numbers or a mask to a mask."""
    numbers = as_array(nodes, "nodes")
    if numbers.dtype == bool and numbers.shape == (n_nodes,):
        return numbers
    is_list = numbers.ndim == 1 and (numbers.dtype.kind in "iu" or not numbers.size)
    if not is_list or ((numbers < 0) | (numbers >= n_nodes)).any():
        raise InvalidGraphError(
            f"nodes must be numbers from 0 to {n_nodes - 1}, or a mask of {n_nodes} entries; got {numbers.tolist()!r:.60}."
        )
    mask = np.zeros(n_nodes, dtype=bool)
    mask[numbers.astype(np.int64)] = True
    return mask


# -------------------------------------------------------------------- labels


def plain_label(value: Hashable) -> Hashable:
    """Return a label as plain Python: numpy scalars, enum members, True and 1.0 become the int, float or str they equal."""
    if type(value) in (int, str):  # nearly always
        return value
    if isinstance(value, np.datetime64 | np.timedelta64 | np.ma.core.MaskedConstant):
        return value  # not a label: numpy would convert these to numbers, even missing ones
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)  # not str(value), which a subclass may override
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int.__index__(value) if isinstance(value, int) else int(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, tuple | list | np.ndarray):
        return tuple(plain_label(part) for part in value)
    return value


def check_label(value: Hashable, name: str, position: int) -> None:
    """Raise if a plain value cannot be a label."""
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, tuple):
            check_label(part, name, position)
        elif not isinstance(part, int | str) and not (isinstance(part, float) and np.isfinite(part)):
            raise InvalidGraphError(
                f"{name}[{position}] must be an integer, a string, a finite number or a tuple of these; got {part!r}."
            )


def parse_label(text: str, where: str) -> Hashable:
    """Parse a label that is written as JSON; ``where`` begins the message of an error."""
    try:
        label = plain_label(json.loads(text))
        check_label(label, "label", 0)
    except (ValueError, RecursionError):
        examples = '"C", 2.5 or ["C", 1]'
        raise DatasetError(f"{where}: expected a label as JSON, such as {examples}; got {text[:60]!r}.") from None
    return label


def encode_labels(labels: Sequence[Hashable] | Array, length: int, name: str, things: str) -> tuple[Ints, LabelValues]:
    """Return the codes and the sorted distinct values of one label per node or edge."""
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
    try:
        places = {value: i for i, value in enumerate(plain)}
    except TypeError:  # a label that is not hashable
        for i, value in enumerate(plain):
            check_label(value, name, i)
        raise
    for value, i in places.items():
        check_label(value, name, i)
    values = sorted(places, key=_sort_key)
    code = {value: i for i, value in enumerate(values)}
    return np.array([code[value] for value in plain], dtype=np.int64), tuple(values)


def _sort_key(value: Hashable) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return ("tuple", tuple(_sort_key(part) for part in value))
    return (type(value).__name__, value)


def join_codes(codes: list[Ints | None], values: list[LabelValues]) -> tuple[Ints | None, LabelValues]:
    """Join several arrays of codes, each with its own values, into one array with common, sorted values."""
    if codes[0] is None:
        return None, ()
    joined, moved = _common_codes(values)
    return np.concatenate([m[c] for m, c in zip(moved, codes, strict=True) if c is not None]), joined


def same_labels(codes: Ints | None, values: LabelValues, other_codes: Ints | None, other_values: LabelValues) -> bool:
    """Return whether two arrays of codes mean the same labels; unused values do not matter."""
    if codes is None or other_codes is None:
        return codes is other_codes
    _, (places, other_places) = _common_codes([values, other_values])
    return np.array_equal(places[codes], other_places[other_codes])


def _common_codes(values: list[LabelValues]) -> tuple[LabelValues, list[Ints]]:
    """Return the sorted union of several tuples of values, and the position in it of each value of each tuple."""
    joined = tuple(sorted({value for part in values for value in part}, key=_sort_key))
    position = {value: i for i, value in enumerate(joined)}
    return joined, [np.array([position[value] for value in part], dtype=np.int64) for part in values]


# -------------------------------------------------------------------- vectors and targets


def as_vectors(values: ArrayLike, name: str, thing: str) -> Floats:
    """Convert one vector per node, edge or graph to new rows; single numbers become vectors of length 1."""
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM":  # whose conversion would lose a part, or turn dates into numbers
            raise TypeError(f"got dtype {array.dtype}")
        vectors = np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        reason = re.sub(r"np\.str_\((.*)\)", r"\1", str(error))
        raise InvalidGraphError(
            f"{name} must be one vector of numbers per {thing}, all of one length ({reason})."
        ) from None
    if vectors.ndim == 1:
        vectors = vectors[:, None] if vectors.size else vectors.reshape(0, 0)
    if vectors.ndim != 2:
        raise InvalidGraphError(f"{name} must have the shape (n_{thing}s, n_attributes); got {vectors.shape}.")
    return vectors


def check_rows(values: ArrayLike, length: int, name: str, thing: str, describe: Callable[[int], str]) -> Floats:
    """Convert one finite vector per node, edge or graph; ``describe`` returns the subject of an error about a row."""
    vectors = as_vectors(values, name, thing)
    if len(vectors) != length:
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


def check_edge_vectors(values: ArrayLike, pairs: Ints, finder: Finder) -> Floats:
    """Convert one finite vector per pair of nodes."""

    def describe(row: int) -> str:
        return f"{finder.graph_of(int(pairs[row, 0]))}: the attributes of its edge {finder.edge(pairs[row])}"

    return check_rows(values, len(pairs), "edge_attributes", "edge", describe)


def check_extras(fields: dict[str, Any]) -> None:
    """Convert node vectors, targets, names and graph attributes in place; the other fields are already checked."""
    offsets = fields["offsets"]
    n_graphs, n_nodes = len(offsets) - 1, int(offsets[-1])
    graph_names = check_names(fields["graph_names"], n_graphs, "graph_names", "graphs")
    finder = Finder(offsets, graph_names, check_names(fields["node_names"], n_nodes, "node_names", "nodes"))
    fields.update(graph_names=finder.graph_names, node_names=finder.node_names)
    _name_columns(fields, n_graphs)
    for name, thing, length, describe in (
        ("attributes", "node", n_nodes, partial(_describe_node, finder, "attributes")),
        ("positions", "node", n_nodes, partial(_describe_node, finder, "positions")),
        ("graph_attributes", "graph", n_graphs, lambda graph: f"{finder.graph(graph)}: its graph_attributes"),
    ):
        if fields[name] is not None:
            fields[name] = check_rows(fields[name], length, name, thing, describe)
    if n_nodes and fields["positions"] is not None and fields["positions"].shape[1] not in (2, 3):
        raise InvalidGraphError(f"positions must have two or three columns; got the shape {fields['positions'].shape}.")
    for name, owner in COLUMN_NAMES.items():
        if fields[name] is not None:
            fields[name] = _check_column_names(fields, name, owner)
    if fields["targets"] is not None:
        targets = fields["targets"] = np.array(as_exact(fields["targets"], "targets"))
        if targets.ndim < 1 or len(targets) != n_graphs:
            raise InvalidGraphError(
                f"targets must have one entry per graph: {n_graphs} graphs, got an array of shape {targets.shape}."
            )


def _name_columns(fields: dict[str, Any], n_graphs: int) -> None:
    """Put named groups of graph attributes side by side; tables bring the names of their columns."""
    values, names = fields["graph_attributes"], fields["graph_attribute_names"]
    if isinstance(values, Mapping):
        if names is not None:
            raise InvalidGraphError("graph_attribute_names are for one array; the columns of named groups have names.")
        values, names = join_groups(values, n_graphs)
    elif values is not None and names is None:
        names = getattr(values, "columns", None)
    fields.update(graph_attributes=values, graph_attribute_names=names)


def join_groups(groups: Mapping[Any, Any], n_graphs: int, thing: str = "graph") -> tuple[Floats, list[str]]:
    """Return the columns of named groups side by side, and their names: "maccs: 12" is the column 12 of the group "maccs"."""
    tables: list[Floats] = [np.empty((n_graphs, 0))]
    names: list[str] = []
    for group, values in groups.items():
        if type(group) is not str or not group or GROUP_END in group:
            raise InvalidGraphError(
                f"graph_attributes: the name of a group must be a text without {GROUP_END!r}; got {group!r}."
            )
        name = f"graph_attributes[{group!r}]"
        tables.append(check_rows(values, n_graphs, name, thing, partial("{}: the values of {} {}".format, name, thing)))
        columns = getattr(values, "columns", range(tables[-1].shape[1]))  # of a table
        names += [f"{group}{GROUP_END}{column}" for column in columns]
    return np.hstack(tables), names


def column_groups(names: Sequence[str] | None, n_columns: int) -> dict[str, list[int]]:
    """Return the columns of each group, by the name of the group; "" for columns whose name has none."""
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names if names is not None else [""] * n_columns):
        group, end, _ = name.partition(GROUP_END)
        groups.setdefault(group if end else "", []).append(column)
    return groups


# -------------------------------------------------------------------- new graphs and fitted ones


def check_fitted_columns(
    owner: object, field: str, graphs: Graphs, n_fitted: int, fitted_names: Sequence[str] | None
) -> None:
    """Raise if the vectors of new graphs have other columns than those that an estimator was fitted on."""
    things, vectors = "edges" if field == "edge_attributes" else "nodes", getattr(graphs, field)
    n_new = 0 if vectors is None else vectors.shape[1]
    if n_new != n_fitted:
        new, old = (counted(n, "attribute") if n else "no attributes" for n in (n_new, n_fitted))
        refuse_unlike(owner, f"The {things} of the new graphs (X) have {new}", f"on {things} with {old}")
    check_column_names(owner, field.replace("_", " "), getattr(graphs, f"{field[:-1]}_names"), fitted_names)


def check_column_names(owner: object, columns: str, new: Sequence[str] | None, fitted: Sequence[str] | None) -> None:
    """Raise if columns of new graphs have other names than those of the fitted ones, or another order; either may have none."""
    if new is None or fitted is None or list(new) == list(fitted):
        return
    place, now, then = next((i, a, b) for i, (a, b) in enumerate(zip(new, fitted, strict=True)) if a != b)
    refuse_unlike(
        owner, f"Column {place} of the {columns} of the new graphs (X) is {now!r}", f"with {then!r} in its place"
    )


def refuse_unlike(owner: object, now: str, then: str) -> None:
    """Raise because of what new graphs have, and what the fitted ones had."""
    raise InvalidGraphError(
        f"{now}, but {type(owner).__name__} was fitted {then}. Build them the same way as the training graphs."
    )


# -------------------------------------------------------------------- names


def _describe_node(finder: Finder, name: str, node: int) -> str:
    return f"{finder.graph_of(node)}: the {name} of its node {finder.node(node)}"


def _check_column_names(fields: dict[str, Any], name: str, owner: str) -> tuple[str, ...]:
    if fields[owner] is None:
        raise InvalidGraphError(f"{name} is given, but there are no {owner}.")
    if not len(fields[owner]):  # without nodes or edges, vectors have no length of their own
        fields[owner] = np.empty((0, len(fields[name])))
    names = check_names(fields[name], fields[owner].shape[1], name, f"columns of {owner}")
    return () if names is None else tuple(names)


def check_names(names: Iterable[Any] | None, length: int, name: str, things: str) -> NameArray:
    """Convert one name per graph, node or column to strings."""
    if names is None:
        return None
    if isinstance(names, str | Mapping | Set) or not isinstance(names, Iterable):
        raise InvalidGraphError(f"{name} must be a sequence of strings; got {type(names).__name__}.")
    entries = list(names)
    if len(entries) != length:
        raise InvalidGraphError(f"{name} must have one entry for each of the {length} {things}; got {len(entries)}.")
    for i, entry in enumerate(entries):
        if type(entry) is not str:  # rare
            plain = plain_label(entry)
            if not isinstance(plain, str | int):
                raise InvalidGraphError(f"{name}[{i}] must be a string; got {plain!r}.")
            entries[i] = str(plain)
    return np.fromiter(entries, dtype=object, count=length)
