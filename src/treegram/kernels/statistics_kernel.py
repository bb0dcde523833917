"""StatisticsKernel: numbers that describe whole graphs, compared column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from treegram._core.parallel import run_tasks
from treegram._core.params import NOTHING, Allowed, Instance, Number, Words, parameters
from treegram._core.text import counted, suggest
from treegram._core.types import Floats, Masks
from treegram.exceptions import InvalidGraphError
from treegram.graphs import Graphs
from treegram.graphs.check import check_column_names, column_groups, refuse_unlike
from treegram.graphs.statistics import GraphStatistics
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import Grid

ROWS_PER_TASK = 256
DIGITS = 10  # of a column, in units of its largest value: values that differ by less are equal up to rounding


@dataclass(frozen=True)
class StatisticRows:
    """Graphs as rows of ranks."""

    has_data: Masks  # graphs without nodes have no statistics, and a kernel of 0 with every graph
    columns: Floats  # (n_graphs, n_columns)
    widths: Sequence[float]  # one for each point of the grid


@parameters
class StatisticsKernel(GraphKernel):
    r"""Kernel on numbers that describe whole graphs: the columns of :class:`GraphStatistics`, or your own for each graph.

    .. math:: K(G, G') = \exp\Bigl(-\frac{1}{w \bar d} \sum_j |z_j(G) - z_j(G')|\Bigr)

    Here :math:`z_j(G)` is the rank of the j-th column's value among those of the fitted graphs, from 0 to 1, with linear
    interpolation between them, :math:`\bar d` the mean of the sum over all pairs of fitted
    graphs, and :math:`w` the ``width``. It does not see which node is where; in a :class:`KernelSum`, or next to other
    kernels in a model, it adds what they do not see.

    Parameters
    ----------
    columns : {"statistics", "graph_attributes", "both"}, default="statistics"
        The columns of :class:`GraphStatistics`, the ``graph_attributes`` of the graphs, or both.
    group : str or None, default=None
        Use only the graph attributes of this named group, such as "erg"; "" means those that are in no group. None: all.
    width : float, default=1.0
        The width, in units of the mean distance between two fitted graphs. Above 1, distant graphs count more.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    feature_names_in_ : list of str
        The names of the columns.
    mean_distance_ : float
        The mean distance between two fitted graphs.
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors.

    Notes
    -----
    Positive semidefinite: ``exp(-|x - y|)`` is a kernel of numbers, and a product of kernels is one. K(G, G) is 1 by definition.
    The kernel of a graph without nodes is 0 with every graph, unless ``columns="graph_attributes"``.
    Time is that of :class:`GraphStatistics`, plus the number of pairs of graphs times the number of columns.

    Examples
    --------
    >>> from treegram import Graphs, StatisticsKernel
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)]])
    >>> StatisticsKernel().fit_transform(graphs).round(2)
    array([[1.  , 0.29, 0.19],
           [0.29, 1.  , 0.2 ],
           [0.19, 0.2 , 1.  ]])
    """

    name = "statistics"
    _one_pass = ("width",)
    _default_param_grid = {"width": [0.5, 1.0, 2.0]}
    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "columns": (Words("statistics", "graph_attributes", "both"),),
        "group": (Instance((str,), "the name of a group of graph attributes"), NOTHING),
        "width": (Number(0, above=True),),
    }

    columns: str = field(default="statistics", kw_only=False)
    group: str | None = None
    width: float = 1.0
    normalize: ClassVar[bool] = True  # type: ignore[misc] # not a parameter: K(G, G) is 1

    @property
    def learns_from_data(self) -> bool:
        """Return True: ranks, scales and the mean distance are those of the fitted graphs."""
        return True

    @property
    def _uses_labels(self) -> bool:
        return self.columns != "graph_attributes"

    def _unused_data(self, graphs: Graphs) -> dict[str, str]:  # noqa: ARG002
        return {}

    def _learn(self, graphs: Graphs, grid: Grid) -> None:  # noqa: ARG002
        self._statistics = None if self.columns == "graph_attributes" else GraphStatistics().fit(graphs)
        self._n_given, self.feature_names_in_ = 0, []
        if self._statistics is not None:
            self.feature_names_in_ += self._statistics.feature_names_out_
        if self.columns != "statistics":
            columns, names = given_columns(graphs, self.group)
            self._n_given = columns.shape[1]
            self._given_names = None if graphs.graph_attribute_names is None else names
            self.feature_names_in_ += names
        table = self._table(graphs)[self._has_data(graphs)]
        largest = np.abs(table).max(axis=0, initial=0.0)
        self._units = np.where(largest > 0, largest, 1.0)
        table = self._rounded(table)
        self._ranks = [_rank_values(column) for column in table.T]
        self.mean_distance_ = mean_distance(self._rank(table)) if len(table) else 0.0

    def _has_data(self, graphs: Graphs) -> Masks:
        return np.ones(len(graphs), bool) if self.columns == "graph_attributes" else graphs.sizes > 0

    def _table(self, graphs: Graphs) -> Floats:
        """Return the columns as they are."""
        tables = [np.empty((len(graphs), 0))]
        if self._statistics is not None:
            tables.append(self._statistics.transform(graphs))
        if self.columns != "statistics":
            columns, names = given_columns(graphs, self.group)
            tables.append(columns)
            if tables[-1].shape[1] != self._n_given:
                new = counted(tables[-1].shape[1], "graph attribute")
                refuse_unlike(self, f"The new graphs (X) have {new}", f"on graphs with {self._n_given}")
            if graphs.graph_attribute_names is not None:
                check_column_names(self, "graph attributes", names, self._given_names)
        return np.hstack(tables)

    def _rounded(self, table: Floats) -> Floats:
        return np.round(table / self._units, DIGITS)

    def _rank(self, table: Floats) -> Floats:
        """Interpolate between the values of the fitted graphs, column by column."""
        ranks = np.empty_like(table)
        for j, (values, of_values) in enumerate(self._ranks):
            ranks[:, j] = np.interp(table[:, j], values, of_values) if len(values) else table[:, j]
        return ranks

    def _describe(self, graphs: Graphs, grid: Grid) -> StatisticRows:
        has_data = self._has_data(graphs)
        columns = np.where(has_data[:, None], self._rank(self._rounded(self._table(graphs))), 0.0)
        return StatisticRows(has_data, columns, grid["width"])

    def _pair_sums(self, left: StatisticRows, right: StatisticRows | None) -> Floats:
        other = left if right is None else right
        K = np.empty((len(left.widths), len(left.columns), len(other.columns)))
        spans = [(first, first + ROWS_PER_TASK) for first in range(0, len(left.columns), ROWS_PER_TASK)]
        tasks = [(left, other, span, span[0] if right is None else 0, K) for span in spans]
        list(run_tasks(self._fill_rows, tasks, n_jobs=self.n_jobs, label="distances"))
        return K

    def _fill_rows(
        self, left: StatisticRows, right: StatisticRows, span: tuple[int, int], first: int, K: Floats
    ) -> None:
        """Fill some rows of K, from the column ``first`` onward."""
        rows = slice(*span)
        distances = self._distances(left.columns[rows], right.columns[first:])
        is_used = left.has_data[rows, None] & right.has_data[first:]
        for point, width in enumerate(left.widths):
            K[point, rows, first:] = np.where(is_used, np.exp(-distances / width), 0.0)

    def _distances(self, left: Floats, right: Floats) -> Floats:
        """Return distances in units of the mean distance."""
        if not self.mean_distance_:
            return np.zeros((len(left), len(right)))
        return cdist(left, right, "cityblock") / self.mean_distance_

    def _self_sums(self, view: StatisticRows) -> Floats:
        return np.tile(view.has_data.astype(np.float64), (len(view.widths), 1))

    def _column_parts(self, graphs: Graphs, weights: Floats) -> tuple[Floats, Floats, list[str]]:
        """Return what each column adds to the sums of weights[i, o] K(G, G_i) over the fitted graphs G_i.

        K is 1 minus a loss, which columns share in proportion to what they add to the distance. Returns (n_graphs, n_columns,
        n_outputs), the constant sum of the weights (n_outputs,), and the names of the columns. For a graph without nodes, the
        first column gets the whole loss.
        """
        new, old = self._view_graphs(self._check_like_fitted(graphs)), self._fitted
        weights = weights * old.has_data[:, None]
        constant = weights.sum(axis=0)
        parts = np.zeros((len(new.columns), len(self.feature_names_in_), weights.shape[1]))
        distances = self._distances(new.columns, old.columns)
        losses = np.expm1(-distances / self.width)
        shares = np.divide(losses, distances, out=np.zeros_like(losses), where=distances > 0)
        for j in range(parts.shape[1]):
            parts[:, j] = (shares * self._distances(new.columns[:, j : j + 1], old.columns[:, j : j + 1])) @ weights
        parts[~new.has_data] = 0.0
        parts[~new.has_data, :1] = -constant
        return parts, constant, self.feature_names_in_


def given_columns(graphs: Graphs, group: str | None) -> tuple[Floats, list[str]]:
    """Return the graph attributes of a group, or all of them, and their names; raise for graphs without any."""
    columns, names = graphs.graph_attributes, graphs.graph_attribute_names
    if columns is None:
        if len(graphs):
            raise InvalidGraphError(
                f"StatisticsKernel with columns 'graph_attributes' or 'both' needs graphs with graph_attributes; got {graphs!r}. Pass "
                "graph_attributes when creating the collection, for molecules descriptors='rdkit2d', or use columns='statistics'."
            )
        columns = np.empty((0, 0))
    groups = column_groups(names, columns.shape[1])
    if group is not None and group not in groups and len(graphs):
        hint = suggest(group, groups) or f"; these graphs have {', '.join(map(repr, groups)) or 'no columns'}."
        raise InvalidGraphError(f"StatisticsKernel needs graph attributes of the group {group!r}{hint}")
    used = list(range(columns.shape[1])) if group is None else groups.get(group, [])
    return np.asarray(columns)[:, used], [f"graph_x{i}" if names is None else names[i] for i in used]


def _rank_values(column: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values of a column, and the mean rank of each as a share of the number of rows."""
    values, counts = np.unique(column, return_counts=True)
    return values, (np.cumsum(counts) - counts / 2) / max(len(column), 1)


def mean_distance(rows: Floats) -> float:
    """Return the mean distance of all pairs of rows, without forming pairs: column by column, from sorted values."""
    n = len(rows)
    return float((2 * np.arange(n) - n + 1) @ np.sort(rows, axis=0).sum(axis=1)) * 2 / n**2
