"""ODDCL_Approx: the paper's kernel with explicit vectors in place of the node kernel, and the choice of these vectors.

The error of a map is always measured, on pairs of graphs whose exact kernel is computed. The rule of ``method="auto"``:

1. the exact sums, where the estimator can fall back to them and there are at most ``EXACT_PAIRS`` pairs of nodes;
2. where there are no more distinct vectors than components allowed, a factorization of their kernel matrix, which is exact;
3. Nystroem with 16, 24, 36, ... components until the error is within the tolerance;
4. if that takes too many components, the exact sums; where the estimator needs a map, Nystroem with the largest number of
   components, and a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from treegram._core.parallel import one_blas_thread
from treegram._core.params import NOTHING, Allowed, Number, Whole, Words, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import normalization_of, normalize_gram, outside_level
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import (
    NodeView,
    WeightedFeatures,
    by_point,
    node_pair_sums,
    node_self_sums,
    view_nodes,
)
from treegram.kernels.oddcl import ODDCL, view_trees
from treegram.pairsum.attributes import Gaussian
from treegram.pairsum.maps import FREQUENCIES, Constant, VectorMap, distinct_rows, evaluate, fourier_map, nystroem_map
from treegram.pairsum.vectors import Entries, add_products, component_ranges, make_entries, self_products
from treegram.structure.features import Features
from treegram.structure.hashing import equal_rows

__all__ = [
    "VECTOR_MAP",
    "ODDCLApprox",
    "PairSample",
    "choose_map",
    "draw_seed",
    "map_nodes",
    "show_choice",
    "vector_self_sums",
]

VECTOR_MAP: Mapping[str, Allowed] = {
    "method": (Words(*FREQUENCIES, "nystroem", "auto"),),
    "n_components": (Whole(1), NOTHING),
    "tolerance": (Number(0, above=True),),
}

MAX_COMPONENTS = 1024  # without n_components; beyond, the exact kernel costs less than the vectors
FEWEST_COMPONENTS = 16  # the first number tried; then half as many again, and so on
EXACT_PAIRS = 3e8  # pairs of nodes that the exact sums compare in about a second, the time of a search for a map
SAMPLE_GRAPHS = 48  # on either side of the sample of pairs: about two thousand pairs
SAMPLE_GRAPH_NODES = 20_000  # on either side, so that large graphs do not make the sample expensive


@parameters
class ODDCLApprox(ODDCL):
    r"""Tree kernel for graphs with labels and vectors, the node kernel replaced by explicit vectors (ODDCL_Approx).

    The kernel of :class:`ODDCL` with :math:`\langle z(x), z(x') \rangle` in place of :math:`k_A(x, x')`, so that a
    graph is one vector for each of its trees:

    .. math:: K(G, G') = \sum_t \lambda^{|t|} \langle Z_t(G), Z_t(G') \rangle, \quad
        Z_t(G) = \sum_{v \in G} F_{v,t} z(x_v)

    Here :math:`F_{v,t}` is how often the tree :math:`t` is rooted at the node :math:`v`, :math:`|t|` its number of nodes,
    :math:`\lambda` is ``lam``, and :math:`z` the map that ``method`` makes. Its error is measured on the graphs themselves: see
    ``estimated_error_``.

    Parameters
    ----------
    depth : int, default=3
        Depth of the visits, the paper's h. At 0 only the nodes themselves are compared.
    lam : float, default=1.0
        Weight of large trees: each tree node multiplies a tree's weight by ``lam``.
    gamma : float, "scale" or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes); "scale" means 1 / (number of attributes * mean variance of an attribute over the fitted
        nodes), which suits attributes of any range. Other named kernels that have a gamma use it too.
    counting : {"paper", "visits", "capped"}, default="paper"
        How often a tree counts: "paper", as in Algorithm 1 of the paper; "visits", over all visits, as in a related module of the
        authors' code (we infer that their ODDCL did the same); "capped", as in their ODD_ST code (a visit that has reached
        the whole component is not counted again).
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite; kernels other
        than "rbf" need ``method`` "nystroem" or "auto".
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether trees also carry the labels of their edges.
    method : {"auto", "rff", "qmc", "nystroem"}, default="auto"
        How z is made. "rff": random Fourier features, as in the paper; "qmc": with frequencies
        from scrambled Sobol points; "nystroem": from pivots among the vectors of the fitted nodes, drawn by randomly
        pivoted Cholesky. "auto": the exact kernel, without a map, for up to 3e8 pairs of nodes with equal labels (one to a few
        thousand graphs); else, with at most ``n_components`` distinct vectors, a factorization of their kernel matrix, which is
        exact; else "nystroem" up to the tolerance; and the exact kernel if that takes too many components.
    n_components : int or None, default=None
        Number of components of z (for "auto" the largest one; Nystroem stops when more would only add rounding errors).
        None: 16, 24, 36, ... up to 1024, until the estimated error is within the tolerance. The paper uses 1000. A
        Fourier map has a cosine and a sine for each frequency: an odd number becomes the next even one.
    tolerance : float, default=0.01
        Largest acceptable relative error of the Gram matrix, if the number of components is chosen.
    normalize : bool or {"cosine", "tanimoto"}, default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True, "cosine"), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    random_state : int, RandomState instance or None, default=0
        Seed of the map and of the sample of pairs; the same number gives the same bits.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    method_ : str
        The method used, "distinct" (exact factorization for few distinct vectors), or "exact".
    choice_ : str
        The reason for the choice, and the estimated error.
    n_components_ : int
        Number of components of z; 0 with the exact engine.
    estimated_error_ : float
        Relative Frobenius error of the (normalized) Gram matrix, estimated from a random sample of about two thousand
        pairs of fitted graphs whose exact kernel is computed.
    map_ : object
        The map z: ``map_(X)`` returns one row per attribute vector. None with the exact engine.
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value used for ``gamma="scale"``; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    ODDCL : the exact kernel, faster up to a few thousand graphs.
    ODDCLFeatures : the same vectors as rows for linear models, for any number of graphs.

    Notes
    -----
    Positive semidefinite by construction. Random Fourier features, of either kind, are unbiased: the expected
    matrix, not normalized, is the exact one. Time is that of z for each distinct vector, of one addition of z for each
    node and tree, and of one matrix product for each tree over the graphs that have it; memory is that of the result
    plus about 200 MiB at most. The map does not depend on targets, nor on the order of nodes.

    References
    ----------
    G. Da San Martino, N. Navarin, A. Sperduti: A tree-based kernel for graphs with continuous attributes.
    IEEE Transactions on Neural Networks and Learning Systems, 2018.

    N. M. Kriege, M. Neumann, C. Morris, K. Kersting, P. Mutzel: A unifying view of explicit and implicit feature maps of
    graph kernels. Data Mining and Knowledge Discovery, 2019.

    A. Rahimi, B. Recht: Random features for large-scale kernel machines. NIPS 2007. F. X. Yu et al.: Orthogonal random
    features. NIPS 2016. Y. Chen et al.: Randomly pivoted Cholesky. arXiv:2207.06503.

    Examples
    --------
    >>> from treegram import Graphs, ODDCLApprox
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["C", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> kernel = ODDCLApprox(depth=1, random_state=0)
    >>> kernel.fit_transform(graphs).round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    >>> kernel.choice_
    'exact: 6.5e+00 pairs of nodes with equal labels are few enough; estimated Gram error 0.0e+00.'
    """

    name = "oddcl-approx"
    _explained_by = ""  # sums of vectors are not sums over nodes
    _allowed = VECTOR_MAP

    method: str = "auto"
    n_components: int | None = None
    tolerance: float = 0.01
    random_state: Any = 0

    @property
    def learns_from_data(self) -> bool:
        """True if the map, its number of components or its gamma follows from the fitted nodes."""
        return super().learns_from_data or self.method in ("auto", "nystroem") or self.n_components is None

    def _learn(self, graphs: Graphs, grid: Grid) -> None:
        super()._learn(graphs, grid)  # the map is that of the kernel's own parameters, whatever the grid
        seed = draw_seed(self.random_state)
        with one_blas_thread():
            sample = cache(partial(PairSample.draw, self, graphs, seed))  # drawn when a map is tried
            choice = choose_map(self, graphs, lambda z: sample().error_of(z), seed, can_be_exact=True)
        self._is_complete = choice.is_complete
        show_choice(self, choice, choice.error, self.tolerance)

    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        view = super()._describe(graphs, grid)
        return view if self.map_ is None else map_nodes(view)

    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        if self.map_ is None:
            return super()._pair_sums(left, right)
        if right is not None and self._is_complete:  # exact for new vectors too, which the map does not know
            return super()._pair_sums(left.view, right.view)
        with one_blas_thread():
            return vector_pair_sums(left, right, self.map_, self.n_jobs)

    def _self_sums(self, described: Any) -> Floats:
        if self.map_ is None:
            return super()._self_sums(described)
        if self._is_complete:
            return super()._self_sums(described.view)
        with one_blas_thread():
            return vector_self_sums(described, self.map_, self.n_jobs)


# -------------------------------------------------------------------- sums of explicit vectors


@dataclass(frozen=True)
class MappedView:
    """Graphs as the sums of explicit vectors see them, for any map."""

    view: NodeView
    vectors: Floats  # the distinct attribute vectors
    rows: Ints  # of each node: its vector
    entries: list[Entries]  # for each group of features, which vectors make up the sums of each feature and graph

    def aligned(self, *codes: Hashes) -> list[Entries]:
        """Return the entries of the features with the given sorted codes, for each group, without other features."""
        matrices = (group.aligned(some) for group, some in zip(self.view.groups, codes, strict=True))
        return [_entries(self.view, matrix, self.rows) for matrix in matrices]


def map_nodes(view: NodeView) -> MappedView:
    """Find the distinct vectors, and those that make up the sums."""
    vectors, rows = distinct_rows(view.nodes.vectors)
    return MappedView(view, vectors, rows, [_entries(view, group.counts, rows) for group in view.groups])


def _entries(view: NodeView, counts: sp.csr_matrix, rows: Ints) -> Entries:
    return make_entries(counts, view.nodes.graph_ids, view.nodes.n_graphs, rows)


def _weights(group: Features) -> Floats:
    """Return the weights of each column, shape (n_columns, n_weights)."""
    return group.weights[group.kinds] if isinstance(group, WeightedFeatures) else np.ones((len(group.codes), 1))


def vector_pair_sums(left: MappedView, right: MappedView | None, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of all pairs of graphs for each point of the grid, not normalized; ``right=None``: left with itself."""
    other = left if right is None else right
    entries = left.entries if right is None else left.aligned(*(group.codes for group in right.view.groups))
    weights = [_weights(group) for group in other.view.groups]
    shape = (len(weights), weights[0].shape[1], left.view.nodes.n_graphs, other.view.nodes.n_graphs)
    out = np.zeros(shape)
    for columns in component_ranges(vector_map.n_components, len(left.vectors) + len(other.vectors)):
        z = evaluate(vector_map, left.vectors, columns, n_jobs=n_jobs)
        y = z if right is None else evaluate(vector_map, right.vectors, columns, n_jobs=n_jobs)
        for mine, theirs, some, sums in zip(entries, other.entries, weights, out, strict=True):
            add_products(mine, z, theirs, y, some, sums, n_jobs=n_jobs)
    return by_point(other.view, out)


def vector_self_sums(mapped: MappedView, vector_map: VectorMap, n_jobs: int | None) -> Floats:
    """Compute the kernel of each graph with itself for each point of the grid, not normalized."""
    weights = [_weights(group) for group in mapped.view.groups]
    scaled = [
        [_scaled(entries, column) for column in some.T] for entries, some in zip(mapped.entries, weights, strict=True)
    ]
    out = np.zeros((len(weights), weights[0].shape[1], mapped.view.nodes.n_graphs))
    for columns in component_ranges(vector_map.n_components, len(mapped.vectors)):
        z = evaluate(vector_map, mapped.vectors, columns, n_jobs=n_jobs)
        for i, some in enumerate(scaled):
            for k, entries in enumerate(some):
                self_products(entries, z, out[i, k], n_jobs=n_jobs)
    return by_point(mapped.view, out)


def _scaled(entries: Entries, weights: Floats) -> Entries:
    """Return entries whose squares carry the weights of their trees."""
    if (weights == 1.0).all():
        return entries
    n_terms = np.diff(entries.starts[entries.trees])
    return replace(entries, values=entries.values * np.repeat(np.sqrt(weights), n_terms))


# -------------------------------------------------------------------- the error of a map


@dataclass(frozen=True)
class PairSample:
    """Pairs of graphs whose exact kernel is known: all pairs between two random samples."""

    left: Graphs
    right: Graphs
    exact: Floats
    mapped: tuple[MappedView, MappedView]
    normalization: str
    n_jobs: int | None

    @classmethod
    def draw(cls, estimator: Any, graphs: Graphs, seed: int) -> PairSample:
        """Draw about two thousand pairs, fewer if graphs are few or large."""
        random = np.random.default_rng([seed, len(graphs)])
        left, right = (graphs[_draw_graphs(graphs, random)] for _ in range(2))
        views = (view_trees(estimator, left), view_trees(estimator, right))
        exact = node_pair_sums(*views, estimator.n_jobs)
        normalization = normalization_of(estimator)
        if normalization:
            rows, columns = (node_self_sums(view, estimator.n_jobs) for view in views)
            normalize_gram(exact, rows, columns, normalization)
        mapped = (map_nodes(views[0]), map_nodes(views[1]))
        return cls(left, right, exact.reshape(exact.shape[-2:]), mapped, normalization, estimator.n_jobs)

    def error_of(self, vector_map: VectorMap) -> float:
        """Return the relative error that a map makes on these pairs."""
        approximate = vector_pair_sums(*self.mapped, vector_map, self.n_jobs)
        if self.normalization:
            rows, columns = (vector_self_sums(side, vector_map, self.n_jobs) for side in self.mapped)
            normalize_gram(approximate, rows, columns, self.normalization)
        return self.error_against(approximate.reshape(self.exact.shape))

    def error_against(self, approximate: Floats) -> float:
        """Return the Frobenius norm of the difference divided by that of the exact values; 0 where both are 0."""
        difference, size = float(np.linalg.norm(approximate - self.exact)), float(np.linalg.norm(self.exact))
        return difference / size if size else float(difference > 0)


def _draw_graphs(graphs: Graphs, random: np.random.Generator) -> Ints:
    order = random.permutation(len(graphs))[:SAMPLE_GRAPHS]
    n_within = int((np.cumsum(graphs.sizes[order]) <= SAMPLE_GRAPH_NODES).sum())
    return np.sort(order[: max(1, n_within)])


# -------------------------------------------------------------------- the choice of a map


@dataclass(frozen=True)
class MapChoice:
    """A map, the method that made it, and the reason; ``vector_map=None`` means the exact sums."""

    vector_map: VectorMap | None
    method: str
    reason: str
    error: float = 0.0
    is_complete: bool = False  # whether every distinct vector could be a pivot, so that nothing is approximated


def draw_seed(random_state: Any) -> int:
    """Draw the number that determines everything random."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def choose_map(
    estimator: Any, graphs: Graphs, error_of: Callable[[VectorMap], float], seed: int, *, can_be_exact: bool
) -> MapChoice:
    """Make the map that the estimator's parameters specify, by the rule above for ``method="auto"``."""
    method, most, view = estimator.method, estimator.n_components or MAX_COMPONENTS, view_nodes(estimator, graphs)
    is_auto = method == "auto"
    if not graphs.n_attributes or not graphs.n_nodes:
        if is_auto and can_be_exact:
            return MapChoice(None, "exact", "exact: without attributes k_A is 1")
        reason = "distinct: without attributes k_A is 1, and one component is exact"
        return MapChoice(Constant(), "distinct", reason, is_complete=True)
    if method in FREQUENCIES and not isinstance(view.node_kernel, Gaussian):
        raise ValueError(
            f"method={method!r} approximates the Gaussian kernel alone; with another node_kernel than 'rbf' use "
            "method='nystroem' or 'auto'."
        )
    if is_auto and can_be_exact and (n_pairs := _count_pairs(view)) <= EXACT_PAIRS:
        return MapChoice(None, "exact", f"exact: {n_pairs:.1e} pairs of nodes with equal labels are few enough")
    vectors, numbers = distinct_rows(view.nodes.vectors)  # sorted: the map does not depend on the order of nodes
    if is_auto and len(vectors) <= most:
        found: VectorMap = nystroem_map(vectors, np.ones(len(vectors)), view.node_kernel, len(vectors), seed=0)
        reason = f"distinct: the kernel matrix of the {len(vectors)} distinct vectors is factorized, which is exact"
        return MapChoice(found, "distinct", reason, error_of(found), is_complete=True)
    weights = np.bincount(numbers).astype(np.float64)
    n = most if estimator.n_components is not None and not is_auto else min(FEWEST_COMPONENTS, most)
    while True:
        if isinstance(view.node_kernel, Gaussian) and method in FREQUENCIES:
            found = fourier_map(method, vectors.shape[1], n, view.node_kernel.gamma, seed)
        else:
            found = nystroem_map(vectors, weights, view.node_kernel, n, seed=seed)
        error = error_of(found)
        if error <= estimator.tolerance or n >= most:
            break
        n = min(n + n // 2, most)
    used = "nystroem" if is_auto else method
    reason = f"{used} with {found.n_components} components"
    if is_auto and can_be_exact and error > estimator.tolerance:
        return MapChoice(None, "exact", f"exact: {reason} would have an estimated Gram error of {error:.1e}")
    return MapChoice(found, used, reason, error, is_complete=method not in FREQUENCIES and len(vectors) <= n)


def _count_pairs(view: NodeView) -> float:
    """Return the number of pairs of nodes with equal labels, where equal nodes of a graph count once."""
    nodes = view.nodes
    _, first = equal_rows(nodes.vectors, nodes.graph_ids, nodes.blocks)
    sizes = np.unique(nodes.blocks[first], return_counts=True)[1].astype(np.float64)
    return float((sizes**2).sum()) / 2


def show_choice(estimator: Any, choice: MapChoice, error: float, limit: float) -> None:
    """Set the public attributes for a map, and warn if its number of components was chosen and its error is above the limit."""
    estimator.map_, estimator.method_, estimator.estimated_error_ = choice.vector_map, choice.method, error
    estimator.n_components_ = 0 if choice.vector_map is None else choice.vector_map.n_components
    estimator.choice_ = f"{choice.reason}; estimated Gram error {error:.1e}."
    if (estimator.method == "auto" or estimator.n_components is None) and error > limit:
        warnings.warn(
            f"{estimator.choice_} This is more than tolerance={estimator.tolerance:g}. Scale the attributes "
            "(ScaleAttributes) or lower gamma if nodes should be more alike, give a larger tolerance, n_components or "
            "n_features, or use the exact kernel ODDCL.",
            UserWarning,
            stacklevel=outside_level(),
        )
