"""Columns of some rows of a Parquet file to a collection: a fast path for edges that are in order, and the usual one for others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import DatasetError
from treegram._core.memory import require
from treegram._core.types import Ints
from treegram.datasets.parquet_columns import Column, Flat
from treegram.graphs import Graphs
from treegram.graphs.check import check_targets, encode_labels, join_codes

__all__ = ["Labels", "Parts", "make_graphs"]

_MOST_NODES = 2**31 - 1  # of rows that are read at once: numbers of two nodes are multiplied in 64 bits
_MOST_LONELY = 1_000_000  # nodes of a row without edges, labels and vectors: more are a slip, or meant to harm
_BYTES_PER_NODE = 40


class Labels(NamedTuple):
    """Whole numbers, or rows of them, and what they stand for, if they are codes."""

    flat: Flat
    names: list[Any] | None

    def encoded(self) -> tuple[Ints, tuple[Hashable, ...]]:
        """Codes and sorted values, as Graphs holds them."""
        values = self.flat.values
        if self.names is None:
            return encode_labels(values, len(values), "labels", "things")
        codes, sorted_values = join_codes([values.astype(np.int64)], [tuple(self.names)])
        assert codes is not None
        return codes, sorted_values


@dataclass(frozen=True)
class Parts:
    """What the columns of some rows say; columns are there for messages."""

    edges: Column
    n_nodes: Column | None
    labels: Labels | None
    vectors: Flat | None
    edge_labels: Labels | None
    edge_vectors: Flat | None
    columns: dict[str, Column]
    targets: NDArray[Any] | None
    directed: bool
    edges_once: bool  # whether each undirected edge is listed once, as save_parquet may have noted


def make_graphs(parts: Parts) -> Graphs:
    """The collection, if all parts fit together."""
    n_edges, lists = parts.edges.pairs()
    offsets = np.concatenate([[0], np.cumsum(_count_nodes(parts, n_edges, lists))])
    for argument, flat in (
        ("edge_label", parts.edge_labels and parts.edge_labels.flat),
        ("edge_attributes", parts.edge_vectors),
    ):
        if flat is not None and (flat.lengths != n_edges).any():
            row = int((flat.lengths != n_edges).argmax())
            text = f"expected {n_edges[row]} entries, one per edge; got {flat.lengths[row]}."
            raise parts.columns[argument].error(row, text)
    edge_codes, edge_values = (None, ()) if parts.edge_labels is None else parts.edge_labels.encoded()
    edge_vectors = _as_floats(parts.edge_vectors)
    vectors = _as_floats(parts.vectors)
    made = None
    if all(rows is None or np.isfinite(rows).all() for rows in (vectors, edge_vectors)):
        if parts.edges_once and not parts.directed:
            made, edge_codes, edge_vectors = _pack_once(lists, n_edges, offsets, edge_codes, edge_vectors)
        else:
            made = _pack(lists, n_edges, offsets, [edge_codes, edge_vectors], directed=parts.directed)
    if made is None:
        graphs = Graphs.from_arrays(
            offsets,
            _check_pairs(parts.edges, lists, n_edges, offsets),
            attributes=vectors,
            edge_labels=edge_codes,
            edge_attributes=edge_vectors,
            directed=parts.directed,
        )
        made = (graphs.indptr, graphs.indices)
        edge_vectors = graphs.edge_attributes
        if graphs.edge_labels is not None:  # codes of codes
            edge_codes = np.array(graphs.edge_label_values, dtype=np.int64)[graphs.edge_labels]
    codes, values = (None, ()) if parts.labels is None else parts.labels.encoded()
    return Graphs._trusted(
        offsets=offsets,
        indptr=made[0],
        indices=made[1],
        labels=codes,
        label_values=values,
        attributes=vectors,
        edge_labels=edge_codes,
        edge_label_values=edge_values,
        edge_attributes=edge_vectors,
        directed=parts.directed,
        targets=None if parts.targets is None else check_targets(parts.targets, len(n_edges)),
    )


def _as_floats(flat: Flat | None) -> Any:
    return None if flat is None else np.ascontiguousarray(flat.values, dtype=np.float64)


def _pack(
    lists: NDArray[Any], n_edges: Ints, offsets: Ints, data: list[NDArray[Any] | None], *, directed: bool
) -> tuple[Ints, Ints] | None:
    """Neighbors from edges that are sorted, and listed in both directions if undirected; None if they are not."""
    from treegram.datasets.loops.rows import pack_lists  # numba is loaded with the first file, not before

    indptr = np.zeros(int(offsets[-1]) + 1, np.int64)
    present = [rows for rows in data if rows is not None]
    indices, back = np.empty(len(lists) // 2, np.int64), np.empty(len(lists) // 2 if present else 0, np.int64)
    if not pack_lists(lists, n_edges, offsets, directed, indptr, indices, back):
        return None
    if not directed and not all(np.array_equal(rows, rows[back]) for rows in present):
        return None
    return indptr, indices


def _pack_once(
    lists: NDArray[Any], n_edges: Ints, offsets: Ints, codes: Any, vectors: Any
) -> tuple[tuple[Ints, Ints] | None, Any, Any]:
    """Neighbors from sorted edges that are listed once, with labels and vectors for each arc; None if they are not like this."""
    from treegram.datasets.loops.rows import pack_halves

    has_data = codes is not None or vectors is not None
    indptr = np.zeros(int(offsets[-1]) + 1, np.int64)
    indices, edges = np.empty(len(lists), np.int64), np.empty(len(lists) if has_data else 0, np.int64)
    if not pack_halves(lists, n_edges, offsets, indptr, indices, edges):
        return None, codes, vectors
    rows = [None if rows is None else np.ascontiguousarray(rows[edges]) for rows in (codes, vectors)]
    return (indptr, indices), rows[0], rows[1]


def _check_pairs(column: Column, lists: NDArray[Any], n_edges: Ints, offsets: Ints) -> Ints:
    """Node pairs numbered through all rows, if each names nodes of its own row."""
    owners = np.repeat(np.arange(len(n_edges)), n_edges)
    is_source = np.repeat(np.arange(2 * len(n_edges)) % 2 == 0, np.repeat(n_edges, 2))
    pairs = np.stack([lists[is_source], lists[~is_source]], axis=1)
    n_nodes = np.diff(offsets)[owners]
    wrong = (pairs < 0).any(axis=1) | (pairs >= n_nodes[:, None]).any(axis=1)
    if wrong.any():
        place = int(wrong.argmax())
        raise column.error(
            int(owners[place]),
            f"the edge ({pairs[place, 0]}, {pairs[place, 1]}) names a node that does not exist; the graph has {n_nodes[place]} "
            "nodes, numbered from 0.",
        )
    return pairs.astype(np.int64) + offsets[:-1][owners][:, None]


def _count_nodes(parts: Parts, n_edges: Ints, lists: NDArray[Any]) -> Ints:
    """The number of nodes of each row: as a column says, labels and vectors, or else by the largest node of an edge."""
    told = [flat.lengths for flat in (parts.labels and parts.labels.flat, parts.vectors) if flat is not None]
    if parts.n_nodes is not None:
        given = parts.n_nodes.scalars()
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise DatasetError(
                f"{parts.edges.path}: column 'num_nodes' must hold one whole number in each row; got {given.dtype}."
            )
        told.insert(0, given)
    if not told:
        starts = np.concatenate([[0], 2 * np.cumsum(n_edges)]).tolist()
        told = [np.array([int(lists[a:b].max(initial=-1)) + 1 for a, b in pairwise(starts)], np.int64)]
    for other in told[1:]:
        if (other != told[0]).any():
            row = int((other != told[0]).argmax())
            raise parts.edges.error(row, f"the number of nodes is contradictory: {told[0][row]} and {other[row]}.")
    _check_counts(parts.edges, told[0], None if len(told) > 1 else 2 * n_edges + _MOST_LONELY)
    return told[0].astype(np.int64)


def _check_counts(column: Column, counts: Ints, most: Ints | None) -> None:
    """Raise if counts are negative, or more than a row, and the memory, can have."""
    wrong = (counts < 0) | (counts > (_MOST_NODES if most is None else np.minimum(most, _MOST_NODES)))
    if not wrong.any() and counts.sum() > _MOST_NODES:
        wrong = counts == counts.max()
    if wrong.any():
        row = int(wrong.argmax())
        raise column.error(
            row,
            f"the number of nodes is {counts[row]}; expected 0 to {_MOST_NODES} in all rows that are read at once, and not more than "
            f"{_MOST_LONELY} in a row that nothing else speaks of.",
        )
    require(_BYTES_PER_NODE * float(counts.sum()), f"{column.path}: its rows from {column.first_row} on")
