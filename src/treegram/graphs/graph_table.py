"""Every kind of data as one table: its rows as they were read, and the graphs that they became."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treegram._core.text import counted, warn_user
from treegram._core.types import Array, Ints
from treegram.exceptions import DatasetError
from treegram.graphs import Graphs
from treegram.graphs.cells import CellTable, is_missing

_MANY_CLASSES = 20  # more distinct whole numbers are rarely classes, unless each has many graphs,
_SHARE_OF_CLASSES = 0.2  # that is, unless there are fewer of them than this share of the graphs
_TOO_MANY_CLASSES = 200


@dataclass(frozen=True)
class GraphTable:
    """The rows of DATA in their order, read once; ``graphs`` are those of the rows ``kept``, and all else is by row.

    ``problems`` says why a row did not become a graph ("" for a row that did), and ``where`` its place, for messages. ``names`` are those that
    the data give, or None, and ``cells`` the columns. ``targets`` names the columns to learn, "" for the targets of a data set, and ``task``
    is the task that the kind of data implies, or "".
    """

    source: str
    where: list[str]
    names: list[str | None]
    problems: list[str]
    graphs: Graphs
    kept: Ints
    cells: CellTable | None = None
    targets: Sequence[str] = ()
    task: str = ""
    smiles: list[str] | None = None
    molecules: Sequence[Any] | None = None  # whose atoms are the nodes, for drawings
    transformer: Any = None  # that made the graphs; None for data sets

    def values(self, column: str) -> tuple[Ints, Array]:
        """Return the ids of the graphs that have a value in a column, and the values: numbers, booleans or text."""
        if not column and self.graphs.targets is not None:
            return np.arange(len(self.graphs)), self.graphs.targets.copy()  # of a data set
        rows, values = self._cells.values(column)
        graph_of_row = np.full(len(self.where), -1)
        graph_of_row[self.kept] = np.arange(len(self.kept))
        ids = graph_of_row[rows]
        if not (ids >= 0).any():
            raise DatasetError(f"No graph of {self.source} has a value for {column!r}.")
        return ids[ids >= 0], values[ids >= 0]

    @property
    def _cells(self) -> CellTable:
        return self.cells or CellTable(self.source, {}, len(self.where), self.where.__getitem__)

    def texts(self, column: str) -> list[str | None]:
        """Return the text of a column for each graph, such as its group; None for a graph without a value."""
        cells = self._cells.cells(column)
        return [None if is_missing(cells[row]) else str(cells[row]) for row in self.kept]

    def with_target(self, column: str) -> tuple[Graphs, Array]:
        """Return the graphs that have a value of a target, and the values; warn about the other graphs."""
        ids, y = self.values(column)
        n_missing = len(self.graphs) - len(ids)
        if not n_missing:
            return self.graphs, y
        warn_user(f"Left out {counted(n_missing, 'graph')} without a value for {column!r}.")
        return self.graphs[ids], y


def make_table(source: str, graphs: Graphs, **fields: Any) -> GraphTable:
    """Make the table of data in which every row is a graph."""
    names = [None] * len(graphs) if graphs.graph_names is None else graphs.graph_names.tolist()
    where = [f"{source}: graph {i}" for i in range(len(graphs))]
    return GraphTable(source, where, names, [""] * len(graphs), graphs, np.arange(len(graphs)), **fields)


def join_cells(table: GraphTable, cells: CellTable, graph_column: str, required: Sequence[str] = ()) -> GraphTable:
    """Add the columns of a file with one row per graph; rows of graphs that are not in the data come last, with a problem.

    ``required`` are columns that must exist.
    """
    for column in required:
        cells.find(column, advice="Name the right one with --target.")
    names = cells.texts(graph_column, "Name the right one with --graph-column.")
    row_of: dict[str | None, int] = {}
    for row, name in enumerate(names):
        if row_of.setdefault(name, row) != row:
            raise DatasetError(
                f"{cells.where(row)}: the graph {name!r} has more than one row, the first is {cells.where(row_of[name])}."
            )
    in_data = set(table.names)
    unknown = [name for name in row_of if name not in in_data]
    if unknown:
        warn_user(
            f"{cells.source}: {len(unknown)} of {len(names)} rows are for graphs that are not in the data, such as {unknown[0]!r}."
        )
    rows = [row_of.get(name) for name in [*table.names, *unknown]]
    places = [f"{cells.source}: no row" if row is None else cells.where(row) for row in rows]
    return replace(
        table,
        where=[*table.where, *places[len(table.where) :]],
        names=[*table.names, *unknown],
        problems=[*table.problems, *["the data have no graph of this name"] * len(unknown)],
        cells=cells.take(rows, places.__getitem__),
    )


def choose_task(values: Array, title: str) -> str:
    """Return what targets are for, "classification" or "regression"; raise if that is not clear. ``title`` names them."""
    task, reason = guess_task(values)
    if task is None:
        raise DatasetError(
            f"It is not clear whether {title} are classes or measurements: {reason}. Add task='classification' or "
            "task='regression'."
        )
    return task


def guess_task(values: Array) -> tuple[str | None, str]:
    """Guess what targets are for: "classification", "regression", or None if that is not clear; and say why.

    Text and booleans are classes, and so are two distinct numbers that are whole. Other numbers are for regression if some is
    not whole, or if there are so many that few graphs share one.
    """
    if values.dtype.kind in "UOb":
        return "classification", "the targets are text or booleans"
    if values.dtype.kind == "f" and not (values == np.round(values)).all():
        return "regression", "the targets are numbers that are not whole"
    n_values = len(np.unique(values))
    reason = f"the targets are whole numbers, {n_values:,} distinct ones for {counted(len(values), 'graph')}"
    if n_values <= 2:
        return "classification", reason
    if n_values > _TOO_MANY_CLASSES or n_values > max(_MANY_CLASSES, _SHARE_OF_CLASSES * len(values)):
        return "regression", reason
    return None, reason
