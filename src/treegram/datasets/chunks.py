"""A folder in the TU text format that does not fit into memory, read a chunk of graphs at a time.

All files are read and checked once, by the same code as for ``load_tu``, to learn at which row and byte each stretch of
graphs starts.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treegram._core.errors import DatasetError, InvalidGraphError
from treegram._core.types import Ints
from treegram.datasets.folder import (
    check_count,
    contradiction,
    count_repeated,
    depend_on_direction,
    edge_blocks,
    edges_left_out,
    find_tables,
    left_out,
    owner_blocks,
    read_all_names,
    read_targets,
    row_blocks,
    with_names,
)
from treegram.datasets.pieces import Pieces
from treegram.datasets.table import Block, read_span
from treegram.graphs import Graphs

__all__ = ["TUChunks"]


class _Span(NamedTuple):
    """Where the pieces of the stream are in one table: the byte at which each starts, and the last one ends."""

    starts: Ints
    n_columns: int


class TUChunks(Pieces):
    """A folder in the TU text format as a stream of chunks, each read from disk when its turn comes.

    The files are read and checked once, when the object is made, as :func:`treegram.load_tu` does; afterwards each chunk is
    read from its place, as often and in whatever order it is needed. Files must list nodes and edges graph after graph, as
    those of the public collection do; :func:`treegram.load_tu` reads others.

    Parameters
    ----------
    folder : str or path-like
        A folder with ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and so on.
    chunk_size : int, default=1000
        Graphs in a chunk.
    shuffle : bool, default=False
        Whether chunks come in random order, each mixed from 16 stretches of the files. Many data sets are sorted by
        class, on which a model that learns chunk by chunk fails.
    random_state : int, RandomState instance or None, default=None
        Seed of the order. A number gives the same order each time the stream is iterated.
    directed : bool, default=False
        Whether a line "a, b" means an edge from a to b only.

    Attributes
    ----------
    n_graphs : int
        Number of graphs.
    targets : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        Graph labels, else graph attributes, else None, in the order of the files.
    classes : ndarray or None
        The distinct targets, sorted.

    Raises
    ------
    DatasetError
        If the files cannot be read, or not in chunks; the message names the file and line.

    Warns
    -----
    UserWarning
        As :func:`treegram.load_tu` does; of repeated lines when the first chunk that has any is read.

    Notes
    -----
    Memory is that of a chunk, and of 16 bytes per graph for the targets and sizes.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import TUChunks, make_synthetic, save_tu
    >>> graphs, y = make_synthetic(10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tu(graphs, folder, name="TEN")
    ...     [len(chunk) for chunk in TUChunks(folder, chunk_size=4)]
    [4, 4, 2]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        chunk_size: Any = 1000,
        shuffle: bool = False,
        random_state: Any = None,
        directed: bool = False,
    ) -> None:
        super().__init__(chunk_size, shuffle=shuffle, random_state=random_state)
        self.directed = directed
        self._tables = find_tables(Path(folder).expanduser())
        self._names = read_all_names(self._tables)
        ids, counts = _read_sizes(self._tables["graph_indicator"])
        self.targets = read_targets(self._tables, self._names.get("graph_labels"))
        self.classes = None if self.targets is None else np.unique(self.targets)
        n_nodes = int(counts.sum())
        line = n_nodes - int(counts[ids == ids[-1]].sum()) + 1  # of the first node of the last graph
        self.n_graphs = check_count(self._tables, int(ids[-1]), line, n_nodes, self.targets)
        self._sizes = np.zeros(self.n_graphs, np.int64)
        np.add.at(self._sizes, ids - 1, counts)
        self._cut(self.n_graphs)
        self._find_pieces()

    @property
    def _files(self) -> list[Path]:
        return [file for _, file in sorted(self._tables.items())]

    def _find_pieces(self) -> None:
        """Read and check all tables, and note where in them the pieces are."""
        offsets = np.concatenate([[0], np.cumsum(self._sizes)])
        n_nodes = int(offsets[-1])
        self._nodes = offsets[self._graphs]
        edges = edge_blocks(self._tables["A"], n_nodes, lambda nodes: np.searchsorted(offsets, nodes, "right") - 1)
        self._edges, self._n_loops = _edge_borders(edges, self._nodes, self._tables["A"])
        n_edges = int(self._edges[-1])
        self._spans = {}
        for kind, lines, things in (
            ("node_labels", self._nodes, "nodes"),
            ("node_attributes", self._nodes, "nodes"),
            ("A", self._edges, "edges"),
            ("edge_labels", self._edges, "edges"),
            ("edge_attributes", self._edges, "edges"),
        ):
            if kind in self._tables:
                length = n_edges if things == "edges" else n_nodes
                blocks = row_blocks(
                    self._tables[kind],
                    length,
                    things,
                    whole=not kind.endswith("attributes"),
                    n_columns=2 if kind == "A" else None,
                    names=self._names.get(kind),
                )
                self._spans[kind] = _find_span(blocks, lines)
        notes = self._drop_directions() if "edge_attributes" in self._spans and not self.directed else []
        self._warn(notes + left_out(self._tables, self._n_loops, 0))

    def _drop_directions(self) -> list[str]:
        """Leave out edge attributes that undirected graphs cannot hold; gives a sentence that says so."""
        tables = (
            (self._read_table(kind, i, self._edges) for kind in ("A", "edge_attributes"))
            for i in range(len(self._graphs) - 1)
        )
        if not any(depend_on_direction(*pair) for pair in tables):
            return []
        del self._spans["edge_attributes"]
        return [edges_left_out(self._tables)]

    def _read_piece(self, i: int) -> Graphs:
        """One piece as a collection."""
        edges = self._read_table("A", i, self._edges)
        edge_data = {kind: self._read_table(kind, i, self._edges) for kind in ("edge_labels", "edge_attributes")}
        graphs = slice(self._graphs[i], self._graphs[i + 1])
        if n_repeated := count_repeated(edges):
            self._warn(left_out({"A": self._tables["A"]}, 0, n_repeated))
        try:
            made = Graphs.from_arrays(
                np.concatenate([[0], np.cumsum(self._sizes[graphs])]),
                edges - 1 - self._nodes[i],
                labels=self._read_table("node_labels", i, self._nodes),
                attributes=self._read_table("node_attributes", i, self._nodes),
                **edge_data,
                directed=self.directed,
                targets=None if self.targets is None else self.targets[graphs],
            )
        except InvalidGraphError:
            if not any(rows is not None for rows in edge_data.values()):
                raise
            first_row = int(self._edges[i])
            raise contradiction(self._tables, edges, edge_data, first_row, directed=self.directed) from None
        return with_names(made, self._names)

    def _read_table(self, kind: str, i: int, lines: Ints) -> Any:
        """The rows of a table that belong to a piece, or None where there is no such table."""
        if kind not in self._spans:
            return None
        starts, n_columns = self._spans[kind]
        first, last = lines[i : i + 2].tolist()
        start, stop = starts[i : i + 2].tolist()
        shape = (last - first, n_columns)
        return read_span(self._tables[kind], (start, stop), shape, first, whole=not kind.endswith("attributes"))

    def _warn(self, notes: list[str]) -> None:
        if notes:
            warnings.warn(f"{self._tables['A'].parent}: {' '.join(notes)}", UserWarning, stacklevel=3)


def _read_sizes(path: Path) -> tuple[Ints, Ints]:
    """The ids of the graphs that have nodes, ascending, and how many nodes each has."""
    ids, counts, before = [], [], 1
    for block in owner_blocks(path):
        owners = block.rows[:, 0]
        falls = np.diff(owners, prepend=before) < 0
        if falls.any():
            raise DatasetError(
                f"{path}:{block.first_row + int(falls.argmax()) + 1}: nodes must come graph by graph to be read in chunks; "
                "load_tu reads them in any order."
            )
        before = owners[-1]
        found, n_found = np.unique(owners, return_counts=True)
        ids.append(found)
        counts.append(n_found)
    return np.concatenate(ids), np.concatenate(counts)


def _edge_borders(blocks: Iterator[Block], node_borders: Ints, path: Path) -> tuple[Ints, int]:
    """How many edges the graphs before each border have, and how many self loops there are in all."""
    borders = np.zeros(len(node_borders), np.int64)
    before, n_loops = 0, 0
    for block in blocks:
        if not len(block.rows):
            break
        pieces = np.searchsorted(node_borders, block.rows[:, 0], side="left")  # from 1
        falls = np.diff(pieces, prepend=before) < 0
        if falls.any():
            raise DatasetError(
                f"{path}:{block.first_row + int(falls.argmax()) + 1}: edges must come graph by graph to be read in chunks; "
                "load_tu reads them in any order."
            )
        before = pieces[-1]
        borders += np.searchsorted(pieces, np.arange(len(borders)), side="right")
        n_loops += int(np.count_nonzero(block.rows[:, 0] == block.rows[:, 1]))
    return borders, n_loops


def _find_span(blocks: Iterator[Block], lines: Ints) -> _Span:
    """The bytes at which some lines (ascending, from 0) of a table start."""
    starts = np.zeros(len(lines), np.int64)
    n_columns = 1
    for block in blocks:
        n_columns = block.rows.shape[1]
        first = block.first_row
        inside = (lines >= first) & (lines <= first + len(block.rows))
        starts[inside] = block.starts()[lines[inside] - first]
    return _Span(starts, n_columns)
