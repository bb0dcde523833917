"""WWL: the cost of moving the nodes of one graph to those of another, by Weisfeiler-Lehman colors or by vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from treegram._core.jit import jit
from treegram._core.machine import require
from treegram._core.parallel import run_tasks
from treegram._core.params import Number, Whole, Words, parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel, node_vectors
from treegram.kernels.grid import Grid
from treegram.kernels.wl import COLOR_GRID, color_groups
from treegram.structure.features import Features, common_codes

GRAPHS_PER_TASK = 64
N_DIRECTIONS = 32


@dataclass(frozen=True)
class Distributions:
    """Graphs as distributions over colors, or over values along directions."""

    offsets: Ints
    widths: Sequence[float]
    n_iterations: Sequence[int]
    colors: Sequence[Features]  # the shares of nodes, one row per graph, for each number of iterations from 0 onward
    values: Floats  # (n numbers of iterations, n_directions, n_nodes): sorted within each graph


@parameters
class WWL(GraphKernel):
    r"""Wasserstein Weisfeiler-Lehman kernel: how far the nodes of one graph are from those of another, moved as a whole.

    .. math:: K(G, G') = \exp(-W(G, G') / w)

    :math:`w` is the ``width``, and :math:`W` the least mean distance over which all nodes of :math:`G`, each of weight
    :math:`1/n`, can be moved to those of :math:`G'`. With ``method="categorical"``, the distance between two nodes is the share
    of the iterations 0 to :math:`h` in which their colors differ (see :class:`WL`). Colors that differ once differ in all later
    iterations, so that :math:`W` has a closed form:

    .. math:: W(G, G') = 1 - \frac{1}{h + 1} \sum_{i=0}^{h} \sum_c \min\left(\frac{f_{i,c}(G)}{n}, \frac{f_{i,c}(G')}{n'}\right)

    Here :math:`f_{i,c}(G)` is the number of nodes with the color :math:`c` after :math:`i` iterations. With ``method="sliced"``, a
    node is the list of its vectors :math:`x_0, \ldots, x_h`, where :math:`x_0` is its own, scaled, and :math:`x_{i+1}` the mean of
    :math:`x_i` and the neighbors' mean of :math:`x_i`; :math:`W` is the mean of the exact distances along 32 random directions.

    Parameters
    ----------
    n_iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the labels, or vectors, are compared.
    width : float, default=0.1
        Width of the exponential. Distances of colors are between 0 and 1; those of scaled vectors are mostly below 2.
    method : {"categorical", "sliced"}, default="categorical"
        Whether to compare labels, exactly, or vectors, along random directions.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether a neighbor's color counts together with the label of the edge to it.
    random_state : int, RandomState instance or None, default=0
        Seed of the directions of "sliced"; the same number gives the same kernel.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors.
    scale_ : ndarray of shape (n_attributes,)
        The standard deviations of the fitted nodes' attributes, which "sliced" divides by; absent for "categorical".

    See Also
    --------
    WLOA : the sum of the same minima of counts, without the exponential.

    Notes
    -----
    "categorical" takes one pass for all numbers of iterations, linear in the edges, and a step for each color that a pair of graphs
    has in common. "sliced" takes :math:`n + n'` steps for each pair of graphs and direction; it learns the scales from the fitted
    graphs, so inside cross-validation it must be fitted on the training part of each fold.

    Both are positive semidefinite: :math:`W` is a distance of the form :math:`\sum_j |a_j - a'_j|`, between shares of colors on a
    tree, or between quantiles. The exact Wasserstein distance of vectors in more than one dimension is not of this form, and
    :math:`\exp(-W / w)` then has negative eigenvalues on public data, so it is not offered; sliced distances replace it.
    K(G, G) is 1 by definition, but a graph without nodes has the kernel 0 with every graph. A node without neighbors keeps its vector.

    References
    ----------
    M. Togninalli, E. Ghisu, F. Llinares-López, B. Rieck, K. Borgwardt: Wasserstein Weisfeiler-Lehman graph kernels. Advances in
    Neural Information Processing Systems, 2019.
    S. Kolouri, Y. Zou, G. K. Rohde: Sliced Wasserstein kernels for probability distributions. Conference on Computer Vision and
    Pattern Recognition, 2016.

    Examples
    --------
    >>> from treegram import WWL, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "O"]])
    >>> WWL(n_iterations=1, width=1.0).fit_transform(graphs).round(3)
    array([[1.   , 0.659],
           [0.659, 1.   ]])
    """

    name = "wwl"
    _one_pass = ("n_iterations", "width")
    _default_param_grid = {**COLOR_GRID, "width": [0.03, 0.1, 0.3, 1.0]}
    _allowed = {
        "n_iterations": (Whole(0),),
        "width": (Number(0, above=True),),
        "method": (Words("categorical", "sliced"),),
    }

    n_iterations: int = field(default=3, kw_only=False)
    width: float = 0.1
    method: str = "categorical"
    missing_labels: str = "degree"
    use_edge_labels: bool = False
    random_state: Any = 0
    normalize: ClassVar[bool] = True  # type: ignore[misc] # not a parameter: K(G, G) is 1

    @property
    def learns_from_data(self) -> bool:
        """True if vectors are scaled by the standard deviations of the fitted nodes."""
        return self.method == "sliced"

    @property
    def _uses_labels(self) -> bool:
        return self.method == "categorical"

    @property
    def _uses_vectors(self) -> bool:
        return self.method == "sliced"

    def _learn(self, graphs: Graphs, grid: Grid) -> None:
        if self.method == "sliced":
            vectors = node_vectors(graphs)
            peaks = np.maximum(np.abs(vectors).max(axis=0, initial=0.0), np.finfo(float).tiny)  # no square overflows
            spreads = (vectors / peaks).std(axis=0) * peaks if len(vectors) else np.zeros(vectors.shape[1])
            self.scale_ = np.where(spreads > 0, spreads, 1.0)
            shape = (max(grid["n_iterations"]) + 1, N_DIRECTIONS, vectors.shape[1])
            # More iterations only add to these.
            self._directions = check_random_state(self.random_state).standard_normal(shape)

    def _describe(self, graphs: Graphs, grid: Grid) -> Distributions:
        steps = grid["n_iterations"]
        colors, values = list[Features](), np.empty((0, 0, 0))
        if self.method == "sliced":
            values = self._sorted_values(graphs, steps)
        else:
            colors = list[Features](color_groups(self, graphs, range(max(steps) + 1), graphs.offsets))
            for level in colors:
                level.counts.data /= np.repeat(graphs.sizes, np.diff(level.counts.indptr))
        return Distributions(graphs.offsets, grid["width"], steps, colors, values)

    def _sorted_values(self, graphs: Graphs, n_iterations: Sequence[int]) -> Floats:
        """Return the nodes along each direction, sorted within each graph, for each number of iterations."""
        n, directions = graphs.n_nodes, self._directions
        require(16.0 * len(n_iterations) * N_DIRECTIONS * n, "The nodes along all directions")
        vectors = node_vectors(graphs)
        if vectors.shape[1] != len(self.scale_):  # the fitted graphs, or these, have no nodes
            vectors = np.zeros((n, len(self.scale_)))
        vectors = vectors / self.scale_
        step, degrees = graphs._adjacency(), np.diff(graphs.indptr)[:, None]
        values, total, squares = {}, np.zeros((N_DIRECTIONS, n)), np.zeros((N_DIRECTIONS, 1))
        for i, direction in enumerate(directions):
            total, squares = total + direction @ vectors.T, squares + (direction**2).sum(axis=1, keepdims=True)
            vectors = np.where(degrees > 0, (vectors + step @ vectors / np.maximum(degrees, 1)) / 2, vectors)
            if i in n_iterations:
                along = total / np.sqrt(np.maximum(squares, np.finfo(float).tiny))
                order = np.lexsort((along, np.broadcast_to(graphs.graph_ids, along.shape)), axis=-1)
                values[i] = np.take_along_axis(along, order, axis=-1)
        return np.stack([values[i] for i in n_iterations])

    def _pair_sums(self, left: Distributions, right: Distributions | None) -> Floats:
        columns = left if right is None else right
        sizes = [np.diff(side.offsets) for side in (left, columns)]
        distances = np.zeros((len(left.n_iterations), *map(len, sizes)))
        if self.method == "sliced":
            starts = range(0, len(sizes[0]), GRAPHS_PER_TASK)
            sides = (left.values, columns.values, left.offsets, columns.offsets)
            tasks = [(*sides, first, right is None, distances) for first in starts]
            list(run_tasks(fill_distances, tasks, n_jobs=self.n_jobs, label="distances"))
        else:
            shared = np.zeros(distances.shape[1:])  # over all iterations so far
            for iteration, (mine, theirs) in enumerate(zip(left.colors, columns.colors, strict=True)):
                codes = common_codes(mine.codes, theirs.codes)
                pair = [level.aligned(codes).tocsc() for level in (mine, theirs)]
                add_minima(*((m.indptr, m.indices, m.data) for m in pair), shared)
                for i in np.flatnonzero(np.equal(left.n_iterations, iteration)):
                    distances[i] = np.maximum(1.0 - shared / (iteration + 1), 0.0)
        has_nodes = (sizes[0] > 0)[:, None] & (sizes[1] > 0)
        widths = np.array(left.widths, dtype=np.float64)[:, None, None]
        K = np.where(has_nodes, np.exp(-distances[:, None] / widths), 0.0)
        return K.reshape(K.shape[0] * K.shape[1], *K.shape[2:])

    def _self_sums(self, view: Distributions) -> Floats:
        n_points = len(view.n_iterations) * len(view.widths)
        return np.tile((np.diff(view.offsets) > 0).astype(float), (n_points, 1))


# -------------------------------------------------------------------- compiled


@jit
def add_minima(left, right, out):
    """Add min(a, b) to out[g, h] for all entries (g, a) and (h, b) of each column of two sparse matrices."""
    (left_starts, left_rows, left_data), (right_starts, right_rows, right_data) = left, right
    for column in range(len(left_starts) - 1):
        for i in range(left_starts[column], left_starts[column + 1]):
            row, value = out[left_rows[i]], left_data[i]
            for j in range(right_starts[column], right_starts[column + 1]):
                row[right_rows[j]] += min(value, right_data[j])


@jit
def fill_distances(left, right, left_offsets, right_offsets, first, upper, out):
    """Set out[s, g, h] to the mean over directions of the area between two quantile functions, for GRAPHS_PER_TASK graphs g from first.

    ``left`` and ``right`` are values (n_steps, n_directions, n_nodes), sorted within each graph. With ``upper``, only h >= g.
    """
    n_steps, n_directions, _ = left.shape
    for g in range(first, min(first + GRAPHS_PER_TASK, len(left_offsets) - 1)):
        a, n = left_offsets[g], left_offsets[g + 1] - left_offsets[g]
        for h in range(g if upper else 0, len(right_offsets) - 1):
            b, m = right_offsets[h], right_offsets[h + 1] - right_offsets[h]
            for s in range(n_steps):
                total = 0.0
                for d in range(n_directions):
                    i, j, at = 0, 0, 0  # in units of 1 / (n m)
                    while i < n and j < m:
                        end = min((i + 1) * m, (j + 1) * n)
                        total += (end - at) * abs(left[s, d, a + i] - right[s, d, b + j])
                        i += (i + 1) * m == end
                        j += (j + 1) * n == end
                        at = end
                out[s, g, h] = total / max(1, n * m * n_directions)
