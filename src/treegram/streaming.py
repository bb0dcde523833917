"""Graphs that do not fit into memory: a stream of chunks in, rows or a trained linear model out.

A stream is any iterable of ``Graphs``; :class:`TUChunks` makes one of a folder in the TU text format. One chunk is held at
a time, with its rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treegram._types import Ints
from treegram.datasets._chunks import edge_borders, line_starts, node_borders, parse_rows, read_blocks, read_last
from treegram.errors import DatasetError
from treegram.graphs import Graphs, as_graphs

__all__ = ["TUChunks", "embed_chunks", "fit_chunks"]


PIECES_PER_CHUNK = 16  # shuffled: a chunk is made of so many stretches of the files


# -------------------------------------------------------------------- rows and models


def embed_chunks(features: Any, chunks: Iterable[Graphs]) -> Iterator[tuple[Any, NDArray[Any] | None]]:
    """Give the rows and targets of one chunk of graphs after the other.

    Parameters
    ----------
    features : ODDCLFeatures, or another transformer of graphs
        Used as it is if it is fitted or needs no fitting, else fitted on the first chunk. Files are often sorted: if the
        first chunk is unlike the others, fit before, on a sample such as a chunk of ``TUChunks(..., shuffle=True)``.
    chunks : iterable of Graphs or lists of graphs
        The graphs.

    Yields
    ------
    rows : ndarray or csr_matrix of shape (n_graphs, n_features)
        The rows of a chunk.
    targets : ndarray of shape (n_graphs,), or None
        Its targets, if it has any.

    Examples
    --------
    >>> from treegram import make_synthetic
    >>> from treegram.kernels.oddcl_features import ODDCLFeatures
    >>> from treegram.streaming import embed_chunks
    >>> graphs, _ = make_synthetic(10, random_state=0)
    >>> features = ODDCLFeatures(depth=1, method="orf", n_components=32, n_features=256, random_state=0)
    >>> [rows.shape for rows, targets in embed_chunks(features, [graphs[:6], graphs[6:]])]
    [(6, 256), (4, 256)]
    """
    for chunk in map(as_graphs, chunks):
        if not _is_fitted(features):
            features.fit(chunk)
        yield features.transform(chunk), chunk.targets


def fit_chunks(
    model: Any, features: Any, chunks: Iterable[Graphs], *, classes: ArrayLike | None = None, n_epochs: int = 1
) -> Any:
    """Train a linear model on a stream of graphs, chunk by chunk, with its ``partial_fit``.

    Parameters
    ----------
    model : estimator with ``partial_fit``
        For instance :class:`sklearn.linear_model.SGDClassifier`; trained in place.
    features : ODDCLFeatures, or another transformer of graphs
        Used as it is if it is fitted or needs no fitting, else fitted on the first chunk.
    chunks : iterable of Graphs
        The graphs with their targets. They should come in random order: a stream that shows one class after the other
        teaches each time to forget the class before (``TUChunks(..., shuffle=True)`` mixes a folder).
    classes : array-like, optional
        All classes that will occur, for a classifier; not needed if the stream knows them, as :class:`TUChunks` does.
    n_epochs : int, default=1
        How often to go through the stream, which must then be iterable again (no generator).

    Returns
    -------
    estimator
        The model.

    Notes
    -----
    Memory is that of one chunk and its rows. Rows are computed anew in each epoch.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from treegram import make_synthetic
    >>> from treegram.kernels.oddcl_features import ODDCLFeatures
    >>> from treegram.streaming import fit_chunks
    >>> graphs, y = make_synthetic(20, random_state=0)
    >>> features = ODDCLFeatures(depth=1, method="orf", n_components=32, n_features=256, random_state=0)
    >>> model = fit_chunks(SGDClassifier(random_state=0), features, [graphs[::2], graphs[1::2]], classes=[0, 1])
    >>> model.predict(features.transform(graphs)).shape
    (20,)
    """
    if n_epochs < 1:
        raise ValueError(f"n_epochs must be at least 1; got {n_epochs}.")
    if not hasattr(model, "partial_fit"):
        raise TypeError(f"model must have partial_fit, to learn chunk by chunk; {model!r} has not. SGDClassifier has.")
    if n_epochs > 1 and iter(chunks) is chunks:
        raise ValueError(f"n_epochs={n_epochs} needs chunks that can be iterated again; got a {type(chunks).__name__}.")
    options = {"classes": _classes(chunks, classes)} if is_classifier(model) else {}
    for _ in range(n_epochs):
        for rows, targets in embed_chunks(features, chunks):
            if targets is None:
                raise ValueError("chunks must have targets to train on; got a chunk without.")
            model.partial_fit(rows, targets, **options)
    return model


def _is_fitted(features: Any) -> bool:
    try:
        check_is_fitted(features)
    except NotFittedError:
        return False
    return True


def _classes(chunks: Iterable[Graphs], classes: ArrayLike | None) -> NDArray[Any]:
    known = getattr(chunks, "classes", None) if classes is None else np.asarray(classes)
    if known is None:
        raise ValueError("A classifier must know all classes before the first chunk: give classes=[...].")
    return known


# -------------------------------------------------------------------- folders


@dataclass(frozen=True)
class _Piece:
    """A stretch of consecutive graphs: which graphs, nodes and edges (rows of the tables, from 0) it has."""

    graphs: tuple[int, int]
    nodes: tuple[int, int]
    edges: tuple[int, int]
    spans: dict[str, tuple[int, int]]  # for each file, its bytes


class TUChunks:
    """A folder in the TU text format as a stream of chunks, each read from disk when its turn comes.

    The files are looked through once, when the object is made; afterwards each chunk is read from its place, as often and
    in whatever order it is needed. Files must list nodes and edges graph after graph, as those of the public collection
    do; :func:`treegram.load_tu` reads others.

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

    Notes
    -----
    Memory is that of a chunk, and of 8 bytes per graph for the targets.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import make_synthetic, save_tu
    >>> from treegram.streaming import TUChunks
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
        if not isinstance(chunk_size, int | np.integer) or chunk_size < 1:
            raise ValueError(f"chunk_size must be a whole number of at least 1; got {chunk_size!r}.")
        self.chunk_size: int = int(chunk_size)
        self.shuffle, self.random_state, self.directed = shuffle, random_state, directed
        self._prefix = _find_prefix(Path(folder))
        self.targets = self._read_targets()
        self.classes = None if self.targets is None else np.unique(self.targets)
        owners = self._path("graph_indicator")
        self.n_graphs = read_last(owners) if self.targets is None else len(self.targets)
        size = max(1, self.chunk_size // PIECES_PER_CHUNK) if shuffle else self.chunk_size
        self._pieces = list(self._index(np.append(np.arange(0, self.n_graphs, size), self.n_graphs)))

    def __len__(self) -> int:
        """Number of chunks."""
        return -(-len(self._pieces) // self._pieces_per_chunk)

    def __iter__(self) -> Iterator[Graphs]:
        order = np.arange(len(self._pieces))
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(order)
        for first in range(0, len(order), self._pieces_per_chunk):
            chosen = order[first : first + self._pieces_per_chunk]
            yield Graphs.concatenate([self._read(self._pieces[i]) for i in chosen])

    @property
    def _pieces_per_chunk(self) -> int:
        return min(PIECES_PER_CHUNK, self.chunk_size) if self.shuffle else 1

    def _path(self, table: str) -> Path:
        return Path(f"{self._prefix}_{table}.txt")

    def _read_targets(self) -> NDArray[Any] | None:
        for table, whole in (("graph_labels", True), ("graph_attributes", False)):
            path = self._path(table)
            if path.is_file():
                rows = np.concatenate(list(read_blocks(path, whole=whole)))
                return rows[:, 0] if rows.shape[1] == 1 else rows
        return None

    def _index(self, borders: Ints) -> Iterator[_Piece]:
        """The pieces between consecutive graph borders."""
        nodes = node_borders(self._path("graph_indicator"), borders)
        edges = edge_borders(self._path("A"), nodes)
        starts: dict[str, Ints] = {}
        for things, lines, tables in (
            ("nodes", nodes, ("graph_indicator", "node_labels", "node_attributes")),
            ("edges", edges, ("A", "edge_labels")),
        ):
            for table in tables:
                if self._path(table).is_file():
                    starts[table] = line_starts(self._path(table), lines, things)
        for i in range(len(borders) - 1):
            pair = slice(i, i + 2)
            yield _Piece(
                graphs=tuple(borders[pair].tolist()),
                nodes=tuple(nodes[pair].tolist()),
                edges=tuple(edges[pair].tolist()),
                spans={table: tuple(places[pair].tolist()) for table, places in starts.items()},
            )

    def _read(self, piece: _Piece) -> Graphs:
        """One piece as a collection."""
        n_graphs, n_nodes, n_edges = (b - a for a, b in (piece.graphs, piece.nodes, piece.edges))
        owners = self._read_table(piece, "graph_indicator", n_nodes, whole=True)
        edges = self._read_table(piece, "A", n_edges, whole=True)
        sizes = np.bincount(owners[:, 0] - 1 - piece.graphs[0], minlength=n_graphs)
        return Graphs.from_arrays(
            np.concatenate([[0], np.cumsum(sizes)]),
            edges.reshape(-1, 2) - 1 - piece.nodes[0],
            labels=self._read_table(piece, "node_labels", n_nodes, whole=True),
            attributes=self._read_table(piece, "node_attributes", n_nodes, whole=False),
            edge_labels=self._read_table(piece, "edge_labels", n_edges, whole=True),
            directed=self.directed,
            targets=None if self.targets is None else self.targets[slice(*piece.graphs)],
        )

    def _read_table(self, piece: _Piece, table: str, n_rows: int, *, whole: bool) -> Any:
        """A piece of a table, or None where there is no such table."""
        if table not in piece.spans:
            return None
        path, (start, stop) = self._path(table), piece.spans[table]
        with path.open("rb") as file:
            file.seek(start)
            text = file.read(stop - start)
        rows = parse_rows(text, path, whole=whole)
        if len(rows) != n_rows:
            raise DatasetError(f"{path}: expected {n_rows} rows between the bytes {start} and {stop}, got {len(rows)}.")
        return rows


def _find_prefix(folder: Path) -> Path:
    if not folder.is_dir():
        raise DatasetError(f"The folder {folder} does not exist; expected a folder with data in the TU format.")
    ending = "_graph_indicator.txt"
    names = sorted(file.name.removesuffix(ending) for file in folder.glob("*" + ending))
    name = folder.name if folder.name in names else (names or [""])[0]
    if not names or (len(names) > 1 and name != folder.name) or not (folder / f"{name}_A.txt").is_file():
        raise DatasetError(
            f"{folder} must hold one data set in the TU format (NAME_A.txt, NAME{ending}); found {names}."
        )
    return folder / name
