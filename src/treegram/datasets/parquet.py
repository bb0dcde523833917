"""Parquet files with one row per graph, in the layout of graph data sets on Hugging Face: read, written, and read in chunks.

That layout has ``edge_index`` (two lists), ``node_feat`` and ``edge_attr`` (a list of numbers for each node and edge), ``y`` (a
list) and ``num_nodes``. What is ours: the columns ``node_label`` and ``edge_label`` (whole numbers), and an entry "treegram" in the
file's metadata, JSON, that says what these numbers stand for and whether edges are directed. Other readers do not notice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.progress import track
from treegram.datasets.parquet_read import ParquetRows
from treegram.datasets.parquet_write import write_rows
from treegram.datasets.pieces import Pieces
from treegram.graphs import Graphs

__all__ = ["ParquetChunks", "load_parquet", "save_parquet"]

_BLOCK = 64  # row groups that load_parquet reads at once


def load_parquet(
    path: str | os.PathLike[str],
    *,
    label: str | None = "node_label",
    attributes: str | None = "node_feat",
    edge_label: str | None = "edge_label",
    edge_attributes: str | None = "edge_attr",
    targets: str | None = "y",
    one_hot: bool | slice | Sequence[int] = False,
    directed: bool | None = None,
) -> tuple[Graphs, NDArray[Any] | None]:
    """Load graphs from a Parquet file with one row per graph.

    Files of :func:`save_parquet` give an equal collection back. Other files in the layout of graph data sets on Hugging Face
    have ``edge_index``, and may have ``node_feat``, ``edge_attr``, ``y`` and ``num_nodes``; which columns are labels is yours to say.

    Parameters
    ----------
    path : str or path-like
        The file.
    label : str or None, default="node_label"
        Column with the discrete label of each node: whole numbers, texts, or lists of whole numbers, which become tuples.
        This and the other default names may be missing, any other name must exist.
    attributes : str or None, default="node_feat"
        Column with the vector of each node. The default is passed over if it is the label.
    edge_label : str or None, default="edge_label"
        Column with the discrete label of each edge.
    edge_attributes : str or None, default="edge_attr"
        Column with the vector of each edge. The default is passed over if it is the edge label.
    targets : str or None, default="y"
        Column with the class or number of each graph.
    one_hot : bool, slice or sequence of int, default=False
        Columns of ``attributes`` that say the label by which of them is 1, as in :meth:`Graphs.from_pyg`.
    directed : bool, optional
        Whether edges have a direction. Without it, what :func:`save_parquet` has noted; else they have none.

    Returns
    -------
    graphs : Graphs
        The graphs, in the order of the rows.
    y : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        The targets; also kept as ``graphs.targets``.

    Raises
    ------
    DatasetError
        If the file cannot be read; the message names the row, counted from 0, and the column.

    Warns
    -----
    UserWarning
        Once, if there are columns that are not used.

    See Also
    --------
    save_parquet : Write such a file.
    ParquetChunks : Read one that does not fit into memory.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import Graphs, load_parquet, save_parquet
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C", "O"], ["C", "N", "C"]], targets=[-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parquet(graphs, folder + "/two.parquet")
    ...     load_parquet(folder + "/two.parquet")
    (Graphs(2 graphs, 5 nodes, 3 edges, undirected, 3 labels, targets), array([-1,  1]))
    """
    chosen = {
        "label": label,
        "attributes": attributes,
        "edge_label": edge_label,
        "edge_attributes": edge_attributes,
        "targets": targets,
    }
    file = ParquetRows.open(path, chosen, one_hot, directed=directed)
    file.warn_of_unused()
    starts = range(0, file.n_groups, _BLOCK)
    blocks = track(starts, total=len(starts), label="row groups")
    parts = [file.read(int(file.starts[i]), int(file.starts[min(i + _BLOCK, file.n_groups)])) for i in blocks]
    graphs = Graphs.concatenate(parts) if parts else file.read(0, 0)
    return graphs, None if graphs.targets is None else graphs.targets.copy()


class ParquetChunks(Pieces):
    """A Parquet file with one row per graph as a stream of chunks, each read from disk when its turn comes.

    Parameters
    ----------
    path : str or path-like
        The file.
    chunk_size : int, default=1000
        Graphs in a chunk.
    shuffle : bool, default=False
        Whether chunks come in random order, each mixed from 16 stretches of the file.
    random_state : int, RandomState instance or None, default=None
        Seed of the order. A number gives the same order each time the stream is iterated.
    label, attributes, edge_label, edge_attributes, targets : str or None
        Names of columns, as in :func:`load_parquet`.
    one_hot : bool, slice or sequence of int, default=False
        As in :func:`load_parquet`.
    directed : bool, optional
        As in :func:`load_parquet`.

    Attributes
    ----------
    n_graphs : int
        Number of graphs.
    targets : ndarray of shape (n_graphs,) or (n_graphs, n_columns), or None
        The targets, in the order of the rows.
    classes : ndarray or None
        The distinct targets, sorted.

    Raises
    ------
    DatasetError
        If the file cannot be read; of wrong rows, when their chunk is read.

    Notes
    -----
    Memory is that of a chunk and of the targets. Files are read in row groups, of 256 graphs as :func:`save_parquet` writes them:
    with ``shuffle`` and small chunks a group is read more than once.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import ParquetChunks, make_synthetic, save_parquet
    >>> graphs, y = make_synthetic(10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parquet(graphs, folder + "/ten.parquet")
    ...     [len(chunk) for chunk in ParquetChunks(folder + "/ten.parquet", chunk_size=4)]
    [4, 4, 2]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        chunk_size: Any = 1000,
        shuffle: bool = False,
        random_state: Any = None,
        label: str | None = "node_label",
        attributes: str | None = "node_feat",
        edge_label: str | None = "edge_label",
        edge_attributes: str | None = "edge_attr",
        targets: str | None = "y",
        one_hot: bool | slice | Sequence[int] = False,
        directed: bool | None = None,
    ) -> None:
        super().__init__(chunk_size, shuffle=shuffle, random_state=random_state)
        chosen = {
            "label": label,
            "attributes": attributes,
            "edge_label": edge_label,
            "edge_attributes": edge_attributes,
            "targets": targets,
        }
        self._file = ParquetRows.open(path, chosen, one_hot, directed=directed)
        self._file.warn_of_unused()
        self.targets = self._file.read_targets()
        self.classes = None if self.targets is None else np.unique(self.targets)
        self._cut(int(self._file.starts[-1]))

    @property
    def _files(self) -> list[Path]:
        return [Path(self._file.path)]

    def _read_piece(self, i: int) -> Graphs:
        return self._file.read(int(self._graphs[i]), int(self._graphs[i + 1]))


def save_parquet(
    graphs: Any, path: str | os.PathLike[str], y: ArrayLike | None = None, *, both_directions: bool = True
) -> None:
    """Write graphs to a Parquet file with one row per graph.

    :func:`load_parquet` gives an equal collection back, numbers to the last bit.

    Parameters
    ----------
    graphs : Graphs, list of graphs, or another iterable of Graphs
        The graphs. Of an iterable that is no list, such as :class:`TUChunks`, one collection is held at a time, so that any
        number of graphs can be written.
    path : str or path-like
        The file. One that is there is replaced, when all has gone well.
    y : array-like of shape (n_graphs,) or (n_graphs, n_columns), optional
        Targets to write instead of those of the graphs; not for iterables.
    both_directions : bool, default=True
        Whether undirected edges are listed in both directions, as other readers of this layout expect. False lists each once,
        which makes files smaller and faster to read; :func:`load_parquet` reads both alike.

    Raises
    ------
    DatasetError
        If a later collection holds other kinds of data than the first, or the file cannot be written.

    See Also
    --------
    load_parquet : Read such a file.
    save_tu : Text files, which other readers of the TU format know.

    Notes
    -----
    The columns are those of graph data sets on Hugging Face: ``edge_index``,
    ``node_feat``, ``edge_attr``, ``y`` and ``num_nodes``. Labels are in columns of our own, ``node_label`` and ``edge_label``, as
    whole numbers; the entry "treegram" of the file's metadata, JSON, says what they stand for, as ``save_tu`` does in its files of
    names, and whether edges are directed. ``benchmarks/bench_formats.py`` compares size and speed with text.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import Graphs, load_parquet, save_parquet
    >>> graphs = Graphs.from_edges([[(0, 1)], []], attributes=[[0.1, 1e-9], [7.0]], targets=[0.5, 2.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_parquet(graphs, folder + "/tiny.parquet")
    ...     load_parquet(folder + "/tiny.parquet")[0] == graphs
    True
    """
    write_rows(graphs, path, y, both_directions=both_directions)
