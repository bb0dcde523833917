"""Weisfeiler-Lehman subtree kernels: on labels alone (WL), and with a kernel on the nodes' vectors (WLCL)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize as normalize_rows
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from treegram._types import Floats, Hashes, Ints
from treegram.attributes import NodeKernel
from treegram.graphs import Graphs, as_graphs
from treegram.kernels._base import GraphKernel, normalize_gram
from treegram.kernels._described import LABEL_CONSTRAINTS, NODE_KERNEL_CONSTRAINTS, Described
from treegram.pairsum.nodes import Weighting, pair_sums
from treegram.pairsum.sparse import feature_products
from treegram.structure.features import Features
from treegram.structure.wl import Colours, colour_features, read_colour, wl_colours

__all__ = ["WL", "WLCL"]


WL_CONSTRAINTS: dict[str, list[Any]] = {
    "iterations": [Interval(Integral, 0, None, closed="left")],
    **LABEL_CONSTRAINTS,
}


class WL(GraphKernel):
    r"""Weisfeiler-Lehman subtree kernel on discrete labels, with its explicit features.

    Two graphs are alike when their nodes have the same colours. A node's first colour is its label; each iteration joins
    a node's colour with the multiset of its neighbours' colours, so that it tells of surroundings one step larger:

    .. math:: K(G, G') = \sum_{i=0}^{h} \sum_c f_{i,c}(G) f_{i,c}(G')

    Here :math:`f_{i,c}(G)` is the number of nodes of :math:`G` that have the colour :math:`c` after :math:`i` iterations,
    and :math:`h` is ``iterations``. Vectors are not used. Where edges have a direction, a node's neighbours are those that
    its edges lead to.

    Parameters
    ----------
    iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the labels are compared.
    missing_labels : {"degree", "constant"}, default="degree"
        What stands for the labels of graphs that have none: each node's degree, or one label for all.
    use_edge_labels : bool, default=False
        Whether a neighbour's colour counts together with the label of the edge to it.
    normalize : bool, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}`.
    n_jobs : int or None, default=None
        Threads to use, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors, which this kernel does not use.
    n_colours_ : int
        Number of distinct colours of all iterations in the fitted graphs.
    colour_iterations_ : ndarray of shape (n_colours,)
        The iteration that each colour belongs to.

    See Also
    --------
    WLCL : the same colours, with a kernel on the vectors of the nodes that have them.
    ODDST : trees without ways back, instead of colours.

    Notes
    -----
    Time is linear in the edges times the iterations, plus one sparse matrix product. Colours are 64-bit hashes that depend
    on labels and edges alone: new graphs need no dictionary of the fitted ones. Two different colours among a million are
    taken for one with a probability of 3e-8.

    References
    ----------
    N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn, K. M. Borgwardt: Weisfeiler-Lehman graph kernels.
    Journal of Machine Learning Research, 2011.

    Examples
    --------
    >>> from treegram import Graphs
    >>> from treegram.kernels.wl import WL
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    >>> kernel = WL(iterations=1, normalize=False).fit(graphs)
    >>> kernel.transform(graphs)
    array([[6., 3.],
           [3., 4.]])
    >>> sorted(kernel.colour(i) for i in range(kernel.n_colours_))
    ['C', 'C(N,O)', 'C(O)', 'N', 'N(C)', 'O', 'O(C)']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**WL_CONSTRAINTS}

    def __init__(
        self,
        iterations: int = 3,
        *,
        missing_labels: str = "degree",
        use_edge_labels: bool = False,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.iterations = iterations
        self.missing_labels = missing_labels
        self.use_edge_labels = use_edge_labels
        self.normalize = normalize
        self.n_jobs = n_jobs

    @property
    def n_colours_(self) -> int:
        """Number of distinct colours of all iterations in the fitted graphs."""
        return len(self.colour_iterations_)

    @property
    def colour_iterations_(self) -> Ints:
        """The iteration that each colour belongs to."""
        check_is_fitted(self)
        levels: Ints = self._described.levels
        return levels

    def features(self, X: Any) -> sp.csr_matrix:
        """The explicit features of graphs: inner products of rows are the kernel.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not. Colours that the fitted graphs do not have get no column; normalised rows still take them
            into account, so that they are shorter than 1.

        Returns
        -------
        csr_matrix of shape (n_graphs, n_colours)
            Column c holds the number of nodes of colour c; :meth:`colour` says which colour it is.
        """
        check_is_fitted(self)
        graphs = as_graphs(X)
        self._check_like_fitted(graphs)
        found = self._describe(graphs).features
        rows = normalize_rows(found.counts) if self.normalize and found.counts.nnz else found.counts
        aligned: sp.csr_matrix = Features(rows, found.codes).aligned(self._described.features.codes)
        return aligned

    def colour(self, feature: int) -> str:
        """A feature in words: ``C(C(C,O),N(C))`` is a C whose neighbours are a C beside a C and an O, and an N beside a C.

        Parameters
        ----------
        feature : int
            A column of :meth:`features`.

        Returns
        -------
        str
            Labels, each with those around it in parentheses, as deep as the colour's iteration; with edge labels,
            ``C(1:N)`` has an edge labelled 1. Its length grows exponentially with the iteration.
        """
        check_is_fitted(self)
        if not -self.n_colours_ <= feature < self.n_colours_:
            raise IndexError(
                f"feature must be a column of features(X), from 0 to {self.n_colours_ - 1}; got {feature}."
            )
        return read_colour(
            self.graphs_,
            int(self._described.nodes[feature]),
            int(self._described.levels[feature]),
            missing_labels=self.missing_labels,
            use_edge_labels=self.use_edge_labels,
        )

    def gram_grid(self, X: Any, iterations: Any) -> Floats:
        """All Gram matrices for a list of iterations, each iteration's colours counted once.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        iterations : sequence of int
            Values in the place of ``iterations``.

        Returns
        -------
        ndarray of shape (n_iterations, n_graphs, n_graphs)
            ``[i]`` is what ``fit_transform`` gives with ``iterations=iterations[i]``.
        """
        self._validate_params()
        wanted = check_iterations(iterations)
        graphs = as_graphs(X)
        grid = np.empty((len(wanted), len(graphs), len(graphs)))
        K = np.zeros((len(graphs), len(graphs)))
        for i, colours in enumerate(_colours(self, graphs, max(wanted))):
            counts = colour_features(colours[None], graphs.offsets).features.counts
            K += feature_products(counts, counts)
            grid[[j for j, h in enumerate(wanted) if h == i]] = K
        return _normalized(grid) if self.normalize else grid

    def _describe(self, graphs: Graphs) -> Colours:
        return colour_features(_colours(self, graphs, self.iterations), graphs.offsets)

    def _pair_sums(self, left: Colours, right: Colours | None) -> Floats:
        if right is None:
            return feature_products(left.features.counts, left.features.counts)
        return feature_products(left.features.aligned(right.features.codes), right.features.counts)

    def _self_sums(self, described: Colours) -> Floats:
        counts = described.features.counts
        squares: Floats = np.asarray(counts.multiply(counts).sum(axis=1)).ravel()
        return squares


class WLCL(GraphKernel):
    r"""Weisfeiler-Lehman subtree kernel for graphs with labels and vectors at the nodes.

    Two graphs are alike when they have nodes of the same colours (see :class:`WL`) whose vectors are close:

    .. math:: K(G, G') = \sum_{v \in G, v' \in G'} k_A(x_v, x_{v'}) \sum_{i=0}^{h} [c_i(v) = c_i(v')]

    Here :math:`c_i(v)` is the colour of the node :math:`v` after :math:`i` iterations, :math:`h` is ``iterations``,
    :math:`x_v` the vector of :math:`v`, and :math:`k_A` is ``node_kernel``, by default
    :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`. The name is to WL what ODDCL is to ODD_ST: CL for continuous labels.

    Parameters
    ----------
    iterations : int, default=3
        Number of iterations, the paper's h. At 0 only the nodes themselves are compared.
    gamma : float or None, default=None
        Width of the node kernel; None means 1 / (number of attributes). Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that gives an (n, m) array. It must be positive semidefinite.
    missing_labels : {"degree", "constant"}, default="degree"
        What stands for the labels of graphs that have none: each node's degree, or one label for all.
    use_edge_labels : bool, default=False
        Whether a neighbour's colour counts together with the label of the edge to it.
    normalize : bool, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}`.
    n_jobs : int or None, default=None
        Threads to use, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    WL : the same colours on labels alone, with explicit features.
    ODDCL : the same sum over trees.
    GIK : colours within patterns.

    Notes
    -----
    The sum is exact. Time is at most quadratic in the number of nodes with equal labels, with ``iterations + 1`` features
    per node; memory is the result's. Without attributes k_A is 1 and the kernel is that of :class:`WL`.

    References
    ----------
    N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn, K. M. Borgwardt: Weisfeiler-Lehman graph kernels.
    Journal of Machine Learning Research, 2011 (the colours).

    Examples
    --------
    >>> from treegram import Graphs
    >>> from treegram.kernels.wl import WLCL
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["N", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> WLCL(iterations=1, normalize=False).fit_transform(graphs)
    array([[6., 3.],
           [3., 4.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**WL_CONSTRAINTS, **NODE_KERNEL_CONSTRAINTS}

    def __init__(
        self,
        iterations: int = 3,
        *,
        gamma: float | None = None,
        node_kernel: str | NodeKernel = "rbf",
        missing_labels: str = "degree",
        use_edge_labels: bool = False,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.iterations = iterations
        self.gamma = gamma
        self.node_kernel = node_kernel
        self.missing_labels = missing_labels
        self.use_edge_labels = use_edge_labels
        self.normalize = normalize
        self.n_jobs = n_jobs

    def gram_grid(self, X: Any, iterations: Any) -> Floats:
        """All Gram matrices for a list of iterations, each node kernel value computed once.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        iterations : sequence of int
            Values in the place of ``iterations``.

        Returns
        -------
        ndarray of shape (n_iterations, n_graphs, n_graphs)
            ``[i]`` is what ``fit_transform`` gives with ``iterations=iterations[i]``.
        """
        self._validate_params()
        wanted = check_iterations(iterations)
        graphs = as_graphs(X)
        steps = np.unique(wanted)
        colours = self._node_colours(graphs, int(steps[-1]))
        # The colours between one wanted number of iterations and the next are one group; kernels are sums of groups.
        kinds = np.searchsorted(steps, colours.levels)
        weighting = Weighting(kinds, np.arange(len(steps)), np.ones((len(steps), 1)), len(steps))
        described = self._described_by(graphs, colours)
        sums = pair_sums(described.nodes, None, described.node_kernel, weighting, n_jobs=self.n_jobs)[:, 0]
        np.cumsum(sums, axis=0, out=sums)
        grid = sums if np.array_equal(steps, wanted) else sums[np.searchsorted(steps, wanted)]
        return _normalized(grid) if self.normalize else grid

    def _node_colours(self, graphs: Graphs, iterations: int) -> Colours:
        return colour_features(_colours(self, graphs, iterations), np.arange(graphs.n_nodes + 1))

    def _described_by(self, graphs: Graphs, colours: Colours) -> Described:
        return Described.make(
            graphs,
            colours.features,
            node_kernel=self.node_kernel,
            gamma=self.gamma,
            missing_labels=self.missing_labels,
        )

    def _describe(self, graphs: Graphs) -> Described:
        return self._described_by(graphs, self._node_colours(graphs, self.iterations))

    def _pair_sums(self, left: Described, right: Described | None) -> Floats:
        return left.pair_sums(right, n_jobs=self.n_jobs)

    def _self_sums(self, described: Described) -> Floats:
        return described.self_sums()


def check_iterations(iterations: Any) -> list[int]:
    """The list of a grid, checked."""
    wanted = list(np.atleast_1d(iterations))
    for number in wanted:
        if not isinstance(number, Integral) or number < 0:
            raise ValueError(f"iterations must be whole numbers of at least 0; got {number!r}.")
    if not wanted:
        raise ValueError("iterations must not be empty.")
    return [int(number) for number in wanted]


def _colours(kernel: WL | WLCL, graphs: Graphs, iterations: int) -> Hashes:
    return wl_colours(
        graphs,
        iterations,
        missing_labels=kernel.missing_labels,
        use_edge_labels=kernel.use_edge_labels,
        n_jobs=kernel.n_jobs,
    )


def _normalized(grid: Floats) -> Floats:
    diagonal = np.einsum("...ii->...i", grid).copy()
    return normalize_gram(grid, diagonal, diagonal)
