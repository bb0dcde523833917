"""P2K: labels, and densities of attributes, spread and counted in bins; an explicit kernel that learns from its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from treegram._core.machine import require
from treegram._core.params import Number, Whole, Words, parameters
from treegram._core.types import Floats, Hashes, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import node_vectors
from treegram.kernels.explicit import HasFeatures
from treegram.kernels.grid import Grid
from treegram.kernels.wl import COLOR_GRID
from treegram.pairsum.products import Binned, bin_counts, bin_products, bin_squares
from treegram.pairsum.tiles import inverse_roots
from treegram.structure.hashing import node_hashes

# Densities of hundreds of attributes may exceed any number. Beyond this (1e260) all are in the farthest bin, however wide.
LARGEST_LOG_DENSITY = 600.0
FEW_LABELS = 64  # up to this many, distributions are stored as dense rows, beyond as sparse ones
FARTHEST_BIN = 2.0**62  # a bin's number fits into an integer; everything beyond is one bin
RIDGE = 0.01  # added to the covariance of the mixtures, as the authors' code does


@dataclass(frozen=True)
class BinView:
    """Graphs as the products of histograms see them."""

    n_graphs: int
    graph_ids: Ints
    labels: Ints  # (n_iterations + 1, n_nodes)
    columns: Floats  # (n_nodes, n_columns), at iteration 0
    step: sp.csr_matrix | None  # how the columns spread; None: they do not
    steps: Sequence[int]  # the numbers of iterations of the grid, ascending

    def add_up(self, terms: Iterator[Floats], *shape: int) -> Floats:
        """Sum terms of this shape, one for each iteration: those that each point of the grid adds to the one before."""
        sums = np.zeros((len(self.steps), *shape))
        for step, term in zip(np.searchsorted(self.steps, np.arange(len(self.labels))), terms, strict=True):
            sums[step] += term
        return sums


@parameters
class P2K(HasFeatures):
    r"""Propagation kernel for graphs with labels and vectors at the nodes (P2K).

    Two graphs are similar when their nodes' surroundings are. Labels, as distributions over labels, and attributes, as
    mixtures of Gaussians, spread along the edges; in each iteration the distributions and the densities of the mixtures at
    some points fall into random bins, nearby ones into the same bin more often than distant ones, and nodes in the same bin
    are counted. How much the attributes count depends on ``attribute_width``: by default it can be next to nothing (see
    Notes).

    .. math:: K(G, G') = \sum_{t=0}^{T} \sum_{j=1}^{q} \sum_{v \in G, v' \in G'}
                         [L_t(v) = L_t(v')] \, [H_{tj}(v) = H_{tj}(v')]

    Here :math:`T` is ``n_iterations``; :math:`L_t(v)` is the bin of the mean label distribution at a distance of t steps from
    :math:`v`, and :math:`H_{tj}(v)` that of the j-th column of attributes, :math:`\lfloor (\langle y, r \rangle + b) / w
    \rfloor` with the width :math:`w`, :math:`r` drawn from a Cauchy distribution, so that bins preserve the total variation (l1)
    distance, and :math:`b` uniformly, again for each t and j.

    Parameters
    ----------
    n_iterations : int, default=4
        Number of steps that labels and attributes spread, the literature's t_max.
    mode : {"gmm", "hash"}, default="gmm"
        What the columns are: the density of a mixture of Gaussians, one for each node's vector, all with the covariance of
        the fitted vectors, at ``n_samples`` of the fitted vectors ("gmm", columns spread along the edges); or the
        attributes themselves ("hash", which do not spread).
    label_width : float, default=1e-5
        Width of the bins for label distributions.
    attribute_width : float or "scale", default=1.0
        Width of the bins for columns. "scale": for each column its interquartile range over the nodes of the fitted graphs,
        or 1 where that is 0, which suits densities of any size. The default, the authors' choice, is far wider than the
        spread of densities of few attributes, so that most nodes share a bin; see Notes.
    n_samples : int, default=100
        Number of vectors at which densities are evaluated; all of them if there are fewer.
    use_labels : bool, default=True
        Whether labels count; otherwise all nodes have the same one, and shape counts only by how attributes spread.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    random_state : int, RandomState instance or None, default=0
        Seed of the draws; the same number gives the same kernel.
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors.
    mean_, scale_ : ndarray of shape (n_attributes,)
        What attributes are shifted and scaled by: to mean 0 and variance 1 in the fitted graphs.
    samples_ : ndarray of shape (n_samples, n_attributes)
        The vectors, scaled, at which densities are evaluated.
    covariance_ : ndarray of shape (n_attributes, n_attributes)
        The covariance of each Gaussian. Samples and covariance are empty with ``mode="hash"``.

    Notes
    -----
    Time is linear in nodes times columns times iterations, plus one product of counts for each column and iteration; memory
    is that of the columns and of the result.

    This kernel learns from the graphs that it is fitted on: mean, scale and covariance of their vectors and the sample
    points, never from targets. Inside cross-validation it must be fitted on the training part of each fold.
    Draws for labels follow from their values, so labels that the fitted graphs do not have are legal in new ones.

    The density of a Gaussian of d attributes with mean 0 and variance 1 is at most :math:`(2 \pi)^{-d/2}`, 0.06 for three
    coordinates, so that bins of width 1 hold nearly all nodes. The Gram matrix then hardly depends on the attributes: its
    correlation with that of the same graphs without attributes is 0.998 on BZR and COX2, 0.999 on DHFR.
    ``attribute_width="scale"`` brings that to 0.8 to 0.9, and ``mode="hash"`` to 0.7 to 0.8 (``benchmarks/p2k_bins.py``).
    The reverse happens with many correlated attributes: densities then far exceed 1.

    A node without edges has no distribution after the first step: its rows are zeros, as in the authors' code, and like any
    others they are put into bins and counted. Where edges have a direction, a node's neighbors are those that its edges lead to.
    Without attributes there is one column, the same for all nodes, and only labels count. As the authors' code does,
    variances and covariances are divided by n - 1, 0.01 is added to each variance, and each column has bins of its own.

    References
    ----------
    M. Neumann, R. Garnett, C. Bauckhage, K. Kersting: Propagation kernels: efficient graph kernels from propagated
    information. Machine Learning, 2016.

    Examples
    --------
    >>> from treegram import P2K, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["A", "B", "A"], ["A", "B"]])
    >>> kernel = P2K(n_iterations=1, normalize=False).fit(graphs)
    >>> kernel.transform(graphs)
    array([[10.,  6.],
           [ 6.,  4.]])
    """

    name = "p2k"
    _explained_by = "nodes"
    _one_pass = ("n_iterations",)
    _adds_up = True
    _default_param_grid = COLOR_GRID
    _allowed = {
        "n_iterations": (Whole(0),),
        "mode": (Words("gmm", "hash"),),
        "label_width": (Number(0, above=True),),
        "attribute_width": (Number(0, above=True), Words("scale")),
        "n_samples": (Whole(1),),
    }

    n_iterations: int = field(default=4, kw_only=False)
    mode: str = "gmm"
    label_width: float = 1e-05
    attribute_width: float | str = 1.0
    n_samples: int = 100
    use_labels: bool = True
    missing_labels: str = "degree"
    random_state: Any = 0

    @property
    def learns_from_data(self) -> bool:
        """Return True: the scale, the covariance and the sample points are those of the fitted graphs."""
        return True

    def _feature_rows(self, graphs: Graphs) -> sp.csr_matrix:
        view = self._view_graphs(graphs)
        rows = sp.hstack(self._bin_counts(view), format="csr")
        if self.normalize:
            rows = sp.csr_matrix(sp.diags_array(inverse_roots(self._self_sums(view)[0])) @ rows)
        return rows

    def _bin_counts(self, view: BinView) -> list[sp.csr_matrix]:
        """Count the nodes in each bin of the fitted graphs, for each iteration."""
        if view is self._fitted:
            return [bin_counts(fitted, fitted) for fitted in self._binned(view)]
        pairs = zip(self._binned(self._fitted), self._binned(view), strict=True)
        return [bin_counts(fitted, new) for fitted, new in pairs]

    # ---------------------------------------------------------------- explanations

    @property
    def _fitted_counts(self) -> sp.csr_matrix:
        return sp.hstack(self._bin_counts(self._fitted), format="csr")

    def _name_reader(self) -> Callable[[int], str]:
        n_bins = [counts.shape[1] for counts in self._bin_counts(self._fitted)]
        return [f"iteration {t}, bin {i}" for t, n in enumerate(n_bins) for i in range(n)].__getitem__

    def _raw_column_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        """Treat each node as its own graph: it contributes to the bins that it falls into."""
        alone = replace(view, n_graphs=graphs.n_nodes, graph_ids=np.arange(graphs.n_nodes))
        return sp.hstack(self._bin_counts(alone), format="csr") @ weights

    # ---------------------------------------------------------------- what is learned

    def _learn(self, graphs: Graphs, grid: Grid) -> None:
        n_iterations, is_gmm = max(grid["n_iterations"]), self.mode == "gmm"
        n_bins = (n_iterations + 1) * max(graphs.n_nodes, 1)
        require(16.0 * n_bins, f"The bins of all nodes after {n_iterations} iterations")
        rng, vectors = check_random_state(self.random_state), node_vectors(graphs)
        # In sorted order sums have the same bits, and samples are the same, however graphs and nodes are ordered.
        vectors = vectors[np.lexsort(vectors.T[::-1])] if vectors.size else vectors
        d = vectors.shape[1]
        self.mean_, self.scale_ = np.zeros(d), np.ones(d)
        if len(vectors) > 1:
            self.mean_, self.scale_ = _scaling(vectors)
        vectors = (vectors - self.mean_) / self.scale_
        self.samples_ = vectors[rng.permutation(len(vectors))[: self.n_samples]] if is_gmm else vectors[:0]
        self.covariance_ = RIDGE * np.eye(d) if is_gmm else np.zeros((0, 0))
        if is_gmm and d and len(vectors) > 1:
            self.covariance_ += np.cov(vectors, rowvar=False)
        # Without attributes there is one column, the same for all nodes.
        n_columns = (len(self.samples_) if is_gmm else d) if d else 1
        self._draws = draw(rng, n_iterations, n_columns)
        self._widths = np.full(n_columns, 1.0 if self.attribute_width == "scale" else float(self.attribute_width))
        if self.attribute_width == "scale" and vectors.size:
            lower, upper = np.percentile(self._start(vectors), [25, 75], axis=0)
            self._widths = np.where(upper > lower, upper - lower, 1.0)

    def _start(self, vectors: Floats) -> Floats:
        """Return the columns of scaled vectors at iteration 0: densities at the sample points, or the vectors themselves."""
        return _densities(vectors, self.samples_, self.covariance_) if self.mode == "gmm" else vectors

    # ---------------------------------------------------------------- what the sums need

    def _describe(self, graphs: Graphs, grid: Grid) -> BinView:
        labels = label_bins(
            graphs if self.use_labels else graphs._with(labels=None),
            self._draws,
            width=self.label_width,
            missing_labels=self.missing_labels if self.use_labels else "constant",
        )
        vectors, columns = node_vectors(graphs), np.zeros((graphs.n_nodes, len(self._widths)))
        if vectors.size and vectors.shape[1] == len(self.mean_):  # else the fitted graphs have no nodes
            columns = self._start((vectors - self.mean_) / self.scale_)
        return BinView(
            n_graphs=len(graphs),
            graph_ids=graphs.graph_ids,
            labels=labels,
            columns=columns,
            step=transition(graphs) if self.mode == "gmm" else None,
            steps=grid["n_iterations"],
        )

    def _binned(self, view: BinView) -> Iterator[Binned]:
        """Yield the bins of all nodes, iteration by iteration."""
        draws, widths, n_iterations = self._draws, self._widths[:, None], len(view.labels) - 1
        columns: Any = [view.columns] * (n_iterations + 1)
        if view.step is not None:
            columns = propagate(view.step, view.columns, n_iterations)
        for t, spread in enumerate(columns):
            projected = spread.T * draws.directions[t][:, None]
            bins = hash_values(projected, draws.offsets[t][:, None], widths)
            yield Binned(view.n_graphs, view.graph_ids, view.labels[t], bins)

    def _pair_sums(self, left: BinView, right: BinView | None) -> Floats:
        pairs = zip(self._binned(left), repeat(None) if right is None else self._binned(right), strict=False)
        products = (bin_products(*pair, n_jobs=self.n_jobs) for pair in pairs)
        return left.add_up(products, left.n_graphs, (left if right is None else right).n_graphs)

    def _self_sums(self, view: BinView) -> Floats:
        return view.add_up((bin_squares(binned) for binned in self._binned(view)), view.n_graphs)


def _scaling(vectors: Floats) -> tuple[Floats, Floats]:
    """Compute the mean and standard deviation of each attribute; 1 for a constant attribute."""
    extent = np.abs(vectors).max(axis=0)
    extent[extent == 0] = 1.0
    mean: Floats = (vectors / extent).mean(axis=0) * extent
    # Differences in units of the largest value: their squares do not overflow.
    scale: Floats = np.sqrt((((vectors - mean) / extent) ** 2).sum(axis=0) / (len(vectors) - 1)) * extent
    scale[scale == 0] = 1.0
    return mean, scale


def _densities(vectors: Floats, samples: Floats, covariance: Floats) -> Floats:
    """Compute the density of a Gaussian around each vector, at each sample."""
    root = np.linalg.cholesky(covariance)
    x, y = (solve_triangular(root, rows.T, lower=True).T for rows in (vectors, samples))
    log_scale = np.log(root.diagonal()).sum() + 0.5 * len(root) * np.log(2 * np.pi)
    log_densities = -0.5 * cdist(x, y, "sqeuclidean") - log_scale
    return np.exp(np.minimum(log_densities, LARGEST_LOG_DENSITY))


# -------------------------------------------------------------------- what spreads, and the bins that it falls into
#
# Random numbers are drawn once, iteration by iteration, so that those of fewer iterations are a prefix; a label's own draw depends
# on its value alone, so that labels never seen before also have one.


@dataclass(frozen=True)
class Draws:
    """Random numbers for each iteration: a direction and an offset for labels, and for each column of attributes."""

    label_seeds: Hashes  # (n_iterations + 1,): with a label's hash they give its coordinate
    label_offsets: Floats  # (n_iterations + 1,), as a fraction of the width
    directions: Floats  # (n_iterations + 1, n_columns)
    offsets: Floats  # (n_iterations + 1, n_columns), as a fraction of the width


def draw(rng: np.random.RandomState, iterations: int, n_columns: int) -> Draws:
    """Draw everything for iterations 0 .. ``iterations``."""
    rows: list[tuple[Any, ...]] = []
    for _ in range(iterations + 1):
        seed = rng.randint(0, 2**63 - 1, dtype=np.int64)
        offset = rng.uniform()
        directions = rng.standard_cauchy(n_columns)
        rows.append((seed, offset, directions, rng.uniform(size=n_columns)))
    seeds, label_offsets, all_directions, offsets = zip(*rows, strict=True)
    return Draws(np.array(seeds, np.uint64), np.array(label_offsets), np.array(all_directions), np.array(offsets))


def label_directions(hashes: Hashes, seed: np.uint64) -> Floats:
    """Return the coordinates of labels in a random direction, each drawn from a stream given by the seed and the label's hash."""
    streams = (np.random.RandomState(np.random.Philox(key=np.array([seed, h], np.uint64))) for h in hashes)
    return np.array([stream.standard_cauchy() for stream in streams], np.float64)


def hash_values(projected: Floats, offset: Any, width: Any) -> Ints:
    """Return the bin of each projected vector: floor((y + b) / width), where the offset b = ``offset`` * width."""
    bins = np.floor(projected / width + offset)
    return np.clip(bins, -FARTHEST_BIN, FARTHEST_BIN).astype(np.int64)


def transition(graphs: Graphs) -> sp.csr_matrix:
    """Return the mean over neighbors as a matrix; a node without neighbors has a row of zeros."""
    degrees = graphs.degrees
    weights = np.repeat(1.0 / np.maximum(degrees, 1), degrees)
    return sp.csr_matrix((weights, graphs.indices, graphs.indptr), shape=(graphs.n_nodes, graphs.n_nodes))


def propagate(step: sp.csr_matrix, rows: Any, iterations: int) -> Iterator[Any]:
    """Yield the rows, their means over neighbors, the means of these, ...: iterations 0 .. ``iterations``."""
    yield rows
    for _ in range(iterations):
        rows = step @ rows
        yield rows


def label_bins(graphs: Graphs, draws: Draws, *, width: float, missing_labels: str) -> Ints:
    """Return the bin of each node's distribution over labels, shape (n_iterations + 1, n_nodes)."""
    hashes, labels = np.unique(node_hashes(graphs, missing_labels), return_inverse=True)
    n = graphs.n_nodes
    rows: Any = sp.csr_matrix((np.ones(n), labels, np.arange(n + 1)), shape=(n, len(hashes)))
    if len(hashes) <= FEW_LABELS:
        rows = rows.toarray()
    bins = np.empty((len(draws.label_seeds), n), np.int64)
    for t, spread in enumerate(propagate(transition(graphs), rows, len(bins) - 1)):
        bins[t] = hash_values(spread @ label_directions(hashes, draws.label_seeds[t]), draws.label_offsets[t], width)
    return bins
