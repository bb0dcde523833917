"""WLOA: the best assignment of nodes to nodes, on Weisfeiler-Lehman colors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.params import parameters
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.kernels.wl import COLOR_GRID, COLORS, color_groups, spread_over_trees
from treegram.structure.features import Features, gather
from treegram.structure.hashing import GOLDEN, mix
from treegram.structure.wl import ColorFeatures, read_color

__all__ = ["WLOA"]


@dataclass(frozen=True)
class UnfoldedColors(Features):
    """One column for each color and number n: 1 for graphs with at least n nodes of that color."""

    colors: ColorFeatures
    places: Ints  # of each column: its color
    numbers: Ints  # of each column: its number, from 1


@parameters
class WLOA(ExplicitKernel):
    r"""Weisfeiler-Lehman optimal assignment kernel on discrete labels, with its explicit features.

    Each node of one graph is assigned to at most one node of the other, so that the assigned nodes have as many colors (see
    :class:`WL`) in common as can be. The value of the best assignment is an intersection of histograms:

    .. math:: K(G, G') = \sum_{i=0}^{h} \sum_c \min(f_{i,c}(G), f_{i,c}(G'))

    Here :math:`f_{i,c}(G)` is the number of nodes of :math:`G` that have the color :math:`c` after :math:`i` iterations, and
    :math:`h` is ``n_iterations``. Vectors are not used.

    Parameters
    ----------
    n_iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the labels are compared.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether a neighbor's color counts together with the label of the edge to it.
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors, which this kernel does not use.

    See Also
    --------
    WL : products of the same counts, so that colors that many nodes have weigh more.

    Notes
    -----
    A histogram with n nodes of a color is n features that are 1: the first to the n-th node of that color. Inner products
    of such rows are intersections, so that the kernel is positive semidefinite. Time is linear in the edges times the
    iterations, plus one sparse matrix product.

    References
    ----------
    N. M. Kriege, P.-L. Giscard, R. C. Wilson: On valid optimal assignment kernels and applications to graph classification.
    Advances in Neural Information Processing Systems, 2016.

    Examples
    --------
    >>> from treegram import WLOA, FeatureMap, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "O"]])
    >>> WLOA(n_iterations=1, normalize=False).fit_transform(graphs)
    array([[6., 3.],
           [3., 4.]])
    >>> sorted(FeatureMap(WLOA(n_iterations=1)).fit(graphs).get_feature_names_out())
    ['C #1', 'C #2', 'C(C) #1', 'C(C,O) #1', 'C(O) #1', 'O #1', 'O(C) #1']
    """

    name = "wloa"
    _one_pass = ("n_iterations",)
    _explained_by = "trees"
    _adds_up = True
    _default_param_grid = COLOR_GRID
    _allowed = COLORS

    n_iterations: int = field(default=3, kw_only=False)
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _features(self, graphs: Graphs, grid: Grid) -> list[UnfoldedColors]:
        return [_unfold(group) for group in color_groups(self, graphs, grid["n_iterations"], graphs.offsets)]

    def _node_features(self, graphs: Graphs) -> ColorFeatures:
        return color_groups(self, graphs, [self.n_iterations], np.arange(graphs.n_nodes + 1))[0]

    def _raw_column_contributions(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        """Divide what the numbers 1 to n of a color add among its n nodes: none of them is the first."""
        (unfolded,) = described.groups
        nodes, colors = self._node_features(graphs), unfolded.colors
        every_column = Features(sp.identity(len(unfolded.codes), format="csr"), unfolded.codes)
        own_weights = every_column.aligned(self._fitted_features.codes) @ weights  # of each column of these graphs
        keys = _entry_keys(colors.counts, np.arange(len(graphs)), np.arange(len(colors.codes)))
        unfolded_keys = _entry_keys(unfolded.counts, np.arange(len(graphs)), unfolded.places, len(colors.codes))
        n = len(unfolded_keys)
        owned = sp.csr_matrix((np.ones(n), np.searchsorted(keys, unfolded_keys), np.arange(n + 1)), (n, len(keys)))
        totals = owned.T @ own_weights[unfolded.counts.indices]  # of each color of each graph
        node_keys = _entry_keys(nodes.counts, graphs.graph_ids, np.arange(len(colors.codes)))
        parts = (totals / colors.counts.data[:, None])[np.searchsorted(keys, node_keys)]
        levels = np.zeros((self.n_iterations + 1, graphs.n_nodes, weights.shape[1]))
        owners = np.repeat(np.arange(graphs.n_nodes), np.diff(nodes.counts.indptr))
        levels[nodes.iterations[nodes.counts.indices], owners] = parts  # a node has one color of each iteration
        return spread_over_trees(graphs, levels) if spread else levels.sum(axis=0)

    def _name_feature(self, fitted: Any, column: int) -> str:
        colors, place = fitted.colors, fitted.places[column]
        color = read_color(
            self.graphs_,
            int(colors.nodes[place]),
            int(colors.iterations[place]),
            missing_labels=self.missing_labels,
            use_edge_labels=self.use_edge_labels,
        )
        return f"{color} #{fitted.numbers[column]}"


def _entry_keys(counts: sp.csr_matrix, graph_ids: Ints, colors: Ints, n_colors: int | None = None) -> Ints:
    """Return one number for the graph and the color of each entry, from the graphs of the rows and the colors of the columns."""
    width = len(colors) if n_colors is None else n_colors
    keys: Ints = np.repeat(graph_ids, np.diff(counts.indptr)) * width + colors[counts.indices]
    return keys


def _unfold(colors: ColorFeatures) -> UnfoldedColors:
    """Write histograms as rows of ones: n nodes of a color are its numbers 1 to n."""
    counts = colors.counts.data.astype(np.int64)
    ends = np.cumsum(counts)
    places = np.repeat(colors.counts.indices, counts)
    numbers = np.arange(1, len(places) + 1) - np.repeat(ends - counts, counts)
    codes = mix.py_func(colors.codes[places] + numbers.astype(np.uint64) * GOLDEN)
    indptr = np.concatenate([[0], ends])[colors.counts.indptr]
    features, seen = gather(indptr, codes, np.ones(len(codes)))
    return UnfoldedColors(features.counts, features.codes, colors, places[seen], numbers[seen])
