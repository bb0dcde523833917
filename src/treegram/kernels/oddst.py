"""ODD_ST: the tree kernel on discrete labels alone, with its features in the open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize as normalize_rows
from sklearn.utils.validation import check_is_fitted

from treegram._types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.kernels._base import GraphKernel, normalize_gram
from treegram.kernels._odd import ODD_CONSTRAINTS, check_grid, refuse_overflow, weigh
from treegram.pairsum.sparse import feature_products, sum_rows
from treegram.structure.trees import Phi, read_tree, tree_features

__all__ = ["ODDST"]


@dataclass(frozen=True)
class _Described:
    phi: Phi  # one row per graph


class ODDST(GraphKernel):
    r"""Tree kernel on discrete labels (ODD_ST), with its explicit features.

    Two graphs are alike when the same labelled trees are rooted at their nodes:

    .. math:: K(G, G') = \sum_t \lambda^{|t|} f_t(G) f_t(G')

    Here :math:`f_t(G)` is how often the tree :math:`t` is rooted at a node of :math:`G` in the visits of depth ``depth``
    from all nodes (``counting``), :math:`|t|` its number of nodes, and :math:`\lambda` is ``lam``. Vectors are not used.

    Parameters
    ----------
    depth : int, default=3
        Depth of the visits, the paper's h. At 0 only the nodes themselves are compared.
    lam : float, default=1.0
        Weight of large trees: each tree node multiplies a tree's weight by ``lam``.
    counting : {"algorithm", "visits", "capped"}, default="algorithm"
        Which trees are counted how often: as the paper's Algorithm 1 prints it, as the authors' ODDCL code does, or as
        their ODD_ST code does (a visit that has reached the whole component is not counted again).
    missing_labels : {"degree", "constant"}, default="degree"
        What stands for the labels of graphs that have none: each node's degree, or one label for all.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
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
    n_trees_ : int
        Number of distinct trees in the fitted graphs.
    tree_sizes_ : ndarray of shape (n_trees,)
        Number of nodes of each tree after unrolling.

    See Also
    --------
    ODDCL : the same trees, with a kernel on the vectors of their roots.

    Notes
    -----
    Time is linear in the nodes times the size of their neighbourhoods, plus one sparse matrix product.

    References
    ----------
    G. Da San Martino, N. Navarin, A. Sperduti: A tree-based kernel for graphs. SIAM International Conference on Data
    Mining, 2012.

    Examples
    --------
    >>> from treegram import ODDST, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    >>> kernel = ODDST(depth=1, normalize=False).fit(graphs)
    >>> kernel.transform(graphs)
    array([[46., 25.],
           [25., 20.]])
    >>> sorted(kernel.tree(i) for i in range(kernel.n_trees_))
    ['C', 'C(N,O)', 'C(O)', 'N', 'N(C)', 'O', 'O(C)']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**ODD_CONSTRAINTS}

    def __init__(
        self,
        depth: int = 3,
        *,
        lam: float = 1.0,
        counting: str = "algorithm",
        missing_labels: str = "degree",
        use_edge_labels: bool = False,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.depth = depth
        self.lam = lam
        self.counting = counting
        self.missing_labels = missing_labels
        self.use_edge_labels = use_edge_labels
        self.normalize = normalize
        self.n_jobs = n_jobs

    @property
    def n_trees_(self) -> int:
        """Number of distinct trees in the fitted graphs."""
        return len(self.tree_sizes_)

    @property
    def tree_sizes_(self) -> Floats:
        """Number of nodes of each tree after unrolling."""
        check_is_fitted(self)
        sizes: Floats = self._described.phi.sizes
        return sizes

    def features(self, X: Any) -> sp.csr_matrix:
        """The explicit features of graphs: inner products of rows are the kernel.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not. Trees that the fitted graphs do not have get no column; normalised rows still take them
            into account, so that they are shorter than 1.

        Returns
        -------
        csr_matrix of shape (n_graphs, n_trees)
            Column t holds the count of tree t times ``lam ** (size / 2)``; :meth:`tree` says which tree it is.
        """
        check_is_fitted(self)
        graphs = as_graphs(X)
        self._check_like_fitted(graphs)
        phi = self._describe(graphs).phi
        rows = phi.counts
        if self.normalize and rows.nnz:  # scikit-learn refuses a matrix without rows or columns
            rows = normalize_rows(rows)
        return replace(phi, counts=rows).aligned(self._described.phi.codes)

    def tree(self, feature: int) -> str:
        """A feature in words: ``C(N,C(O))`` is a C over an N and over a C that is over an O.

        Parameters
        ----------
        feature : int
            A column of :meth:`features`.

        Returns
        -------
        str
            Labels, each with its children in parentheses; with edge labels, ``C(1:N)`` has an edge labelled 1.
        """
        check_is_fitted(self)
        if not -self.n_trees_ <= feature < self.n_trees_:
            raise IndexError(f"feature must be a column of features(X), from 0 to {self.n_trees_ - 1}; got {feature}.")
        return read_tree(
            self.graphs_,
            self._described.phi.seen[feature],
            missing_labels=self.missing_labels,
            use_edge_labels=self.use_edge_labels,
        )

    def gram_grid(self, X: Any, depths: Any, lams: Any) -> Floats:
        """All Gram matrices for lists of depths and lambdas, each depth's trees counted once.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        depths : sequence of int
            Values in the place of ``depth``.
        lams : sequence of float
            Values in the place of ``lam``.

        Returns
        -------
        ndarray of shape (n_depths, n_lams, n_graphs, n_graphs)
            ``[i, j]`` is what ``fit_transform`` gives with ``depth=depths[i], lam=lams[j]``.
        """
        self._validate_params()
        depths, lams = check_grid(depths, lams)
        graphs = as_graphs(X)
        grid = np.empty((len(depths), len(lams), len(graphs), len(graphs)))
        for i, depth in enumerate(depths):
            phi = self._phi(graphs, depth)
            for j, lam in enumerate(lams):
                grid[i, j] = self._pair_sums(self._weighed(phi, lam, depth), None)
                if self.normalize:
                    diagonal = grid[i, j].diagonal().copy()
                    normalize_gram(grid[i, j], diagonal, diagonal)
        return grid

    def _phi(self, graphs: Graphs, depth: int) -> Phi:
        phi = tree_features(
            graphs,
            depth,
            counting=self.counting,
            missing_labels=self.missing_labels,
            use_edge_labels=self.use_edge_labels,
            n_jobs=self.n_jobs,
        )
        return replace(phi, counts=sum_rows(phi.counts, graphs.offsets))

    def _weighed(self, phi: Phi, lam: float, depth: int) -> _Described:
        if not self.normalize:
            refuse_overflow(phi.sizes, lam, depth)
        return _Described(weigh(phi, lam, np.arange(phi.counts.shape[0]), rescale=self.normalize))

    def _describe(self, graphs: Graphs) -> _Described:
        return self._weighed(self._phi(graphs, self.depth), self.lam, self.depth)

    def _pair_sums(self, left: _Described, right: _Described | None) -> Floats:
        if right is None:
            return feature_products(left.phi.counts, left.phi.counts)
        return feature_products(left.phi.aligned(right.phi.codes), right.phi.counts)

    def _self_sums(self, described: _Described) -> Floats:
        squares: Floats = np.asarray(described.phi.counts.multiply(described.phi.counts).sum(axis=1)).ravel()
        return squares
