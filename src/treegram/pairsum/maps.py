"""Explicit maps z of vectors, whose inner products equal or approximate a node kernel: <z(x), z(y)> ~ k_A(x, y).

A map is a frozen object: ``map(X)`` returns one row per vector, ``map(X, columns)`` only some components, so that callers need
not hold all of them. Random Fourier features do not depend on data; a pivot map is made from pivots among the vectors. ``treegram.pairsum.vectors`` sums mapped vectors over graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils import check_random_state

from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.structure.hashing import equal_rows

ROWS_PER_CALL = 2048  # vectors mapped at once: intermediate results stay small
PROPOSALS = 384  # pivots proposed at a time: enough for a pass over all items to pay off
CANDIDATES, CANDIDATES_PER_PIVOT = 8192, 8  # vectors considered, at least in total and for each pivot: more gain little
_ROUNDING = 1e-14  # a residual below this fraction of k(x, x) is rounding error


class VectorMap(Protocol):
    """Rows of explicit features for rows of attributes."""

    @property
    def n_components(self) -> int:
        """Length of each row."""

    def __call__(self, X: Floats, columns: slice = ...) -> Floats:
        """Map the rows of X: all components, or those of a range (with an even start for cos and sin)."""


@dataclass(frozen=True)
class Constant:
    """One component, 1: exact where k_A = 1, as it is without attributes."""

    n_components: int = 1

    def __call__(self, X: Floats, columns: slice = slice(None)) -> Floats:
        """Return a column of ones."""
        return np.ones((len(X), 1))[:, columns]


@dataclass(frozen=True)
class Fourier:
    r"""Cosines and sines along m frequencies, for the Gaussian kernel.

    .. math:: z(x) = m^{-1/2} (\cos w_1 x, \sin w_1 x, \ldots, \cos w_m x, \sin w_m x)

    With :math:`w \sim N(0, 2 \gamma I)` the expected inner product is :math:`\exp(-\gamma \|x - y\|^2)`. Pairs of cosine
    and sine, unlike cosines with random phases (:class:`sklearn.kernel_approximation.RBFSampler`), give
    :math:`\|z(x)\| = 1` exactly and a smaller variance for nearby vectors.
    """

    frequencies: Floats  # (n_attributes, m)

    @property
    def n_components(self) -> int:
        """Two for each frequency."""
        return 2 * self.frequencies.shape[1]

    def __call__(self, X: Floats, columns: slice = slice(None)) -> Floats:
        """Map the rows of X; a range of columns must start and end with a pair."""
        start, stop, _ = columns.indices(self.n_components)
        angles = X @ self.frequencies[:, start // 2 : stop // 2]
        rows = np.empty((len(X), stop - start))
        np.cos(angles, out=rows[:, 0::2])
        np.sin(angles, out=rows[:, 1::2])
        rows /= np.sqrt(self.frequencies.shape[1])
        return rows


@dataclass(frozen=True)
class PivotMap:
    r"""Kernel values with some pivots, made orthonormal: :math:`z(x) = L^{-1} k_A(P, x)` with :math:`L L^T = k_A(P, P)`.

    Inner products with a pivot are exact; the error of all others is positive semidefinite.
    """

    node_kernel: NodeKernel
    pivots: Floats  # (n_components, n_attributes)
    mixing: Floats  # inverse of L, transposed

    @property
    def n_components(self) -> int:
        """One for each pivot."""
        return len(self.pivots)

    def __call__(self, X: Floats, columns: slice = slice(None)) -> Floats:
        """Map the rows of X; the mixing is triangular, so that early components need early pivots only."""
        start, stop, _ = columns.indices(self.n_components)
        return kernel_block(self.node_kernel, X, self.pivots[:stop]) @ self.mixing[:stop, start:stop]


def evaluate(vector_map: VectorMap, X: Floats, columns: slice = slice(None), *, n_jobs: int | None = None) -> Floats:
    """Map the rows of X, a batch of vectors at a time; the same bits for any ``n_jobs``."""
    start, stop, _ = columns.indices(vector_map.n_components)
    rows = np.empty((len(X), stop - start))
    tasks = [(vector_map, X, columns, first, rows) for first in range(0, len(X), ROWS_PER_CALL)]
    list(run_tasks(_fill_rows, tasks, n_jobs=n_jobs, label="vectors"))
    return rows


def _fill_rows(vector_map: VectorMap, X: Floats, columns: slice, first: int, rows: Floats) -> None:
    rows[first : first + ROWS_PER_CALL] = vector_map(X[first : first + ROWS_PER_CALL], columns)


# -------------------------------------------------------------------- random Fourier features


def draw_seed(random_state: Any) -> int:
    """Draw the number that determines everything random."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def fourier_map(n_attributes: int, n_components: int, gamma: float, seed: int) -> Fourier:
    """Make random Fourier features; an odd number of components is raised by one.

    The same arguments give the same map on any machine: it does not depend on data.
    """
    frequencies = np.random.default_rng(seed).standard_normal(((n_components + 1) // 2, n_attributes))
    return Fourier(np.ascontiguousarray(np.sqrt(2.0 * gamma) * frequencies.T))


# -------------------------------------------------------------------- Nystroem


def distinct_rows(X: Floats) -> tuple[Floats, Ints]:
    """Return the distinct rows of X in ascending order, and for each row of X its position among them."""
    numbers, first = equal_rows(X)
    distinct = X[first] + 0.0  # -0.0 becomes 0.0
    order = np.lexsort(distinct.T[::-1])
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return distinct[order], ranks[numbers]


def nystroem_map(
    vectors: Floats, weights: Floats, node_kernel: NodeKernel, n_components: int, *, seed: int
) -> PivotMap:
    """Choose pivots among the vectors by :func:`pivoted_cholesky`.

    ``weights`` are the numbers of occurrences of the vectors. With N vectors considered and k pivots, it takes k N kernel
    values, k^2 N operations and memory for k N numbers, where N is at most 8 k (or 8192).
    """
    random = np.random.default_rng(seed)
    n_candidates = max(CANDIDATES_PER_PIVOT * n_components, CANDIDATES)
    if len(vectors) > n_candidates:
        sample = np.sort(random.choice(len(vectors), n_candidates, replace=False, p=weights / weights.sum()))
        vectors, weights = vectors[sample], np.ones(n_candidates)
    pivots, rows, _ = pivoted_cholesky(
        _diagonal(node_kernel, vectors),
        lambda positions: kernel_block(node_kernel, vectors[positions], vectors[positions]),
        lambda positions: kernel_block(node_kernel, vectors, vectors[positions]),
        n_components,
        random,
        weights=weights,
        smallest=_ROUNDING,
    )
    inverse = solve_triangular(rows[pivots], np.eye(len(pivots)), lower=True) if len(pivots) else np.empty((0, 0))
    return PivotMap(node_kernel, vectors[pivots], np.ascontiguousarray(inverse.T))


def pivoted_cholesky(
    diagonal: Floats,
    square: Callable[[Ints], Floats],
    columns: Callable[[Ints], Floats],
    n_most: int,
    random: Any,
    *,
    weights: Floats | float = 1.0,
    smallest: float,
) -> tuple[Ints, Floats, Floats]:
    """Choose pivots of a positive semidefinite matrix, each with probability proportional to what earlier ones leave unexplained.

    ``square(chosen)`` returns the matrix of some items with each other, ``columns(chosen)`` that of all items with them. Pivots are
    proposed in rounds and accepted at random, which draws them as if one by one. Stops at ``n_most`` pivots, or when
    only rounding error is left, a fraction ``smallest`` of the (weighted) trace.
    Returns the pivots, one row per item whose inner products approximate the matrix, and what is left of the diagonal.

    References
    ----------
    Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber: Randomly pivoted Cholesky. arXiv:2207.06503.
    E. N. Epperly, J. A. Tropp, R. J. Webber: Embrace rejection: kernel matrix approximation by accelerated randomly
    pivoted Cholesky. arXiv:2410.03969.
    """
    pivots, rows = np.empty(0, np.int64), np.empty((len(diagonal), 0))
    rest, trace = np.where(diagonal > 0, diagonal, 0.0), float(np.sum(weights * diagonal))
    while len(pivots) < n_most and (odds := weights * rest).sum() > smallest * trace:
        n_proposals = min(PROPOSALS, 16 + 2 * (n_most - len(pivots)))  # some of them will be rejected
        proposals = random.choice(len(rest), n_proposals, p=odds / odds.sum())
        distinct, position = np.unique(proposals, return_inverse=True)
        # Compare them with each other first: columns, which cost the most, are computed only for those kept.
        kept, lower = _accept(square(distinct) - rows[distinct] @ rows[distinct].T, position, smallest, random)
        kept = distinct[kept[: n_most - len(pivots)]]
        if not len(kept):  # only rounding error is left of them
            rest[distinct] = 0.0
            continue
        added = columns(kept) - rows @ rows[kept].T
        added[pivots] = 0.0  # explained before: what is left of them is rounding error
        lower = lower[: len(kept), : len(kept)]
        added = solve_triangular(lower, added.T, lower=True, overwrite_b=True, check_finite=False).T
        left = rest.sum() - np.cumsum(np.einsum("ij,ij->j", added, added))
        n_needed = 1 + int(np.count_nonzero(left[:-1] > 0.0))  # the last ones may be too many
        pivots, added = np.concatenate([pivots, kept[:n_needed]]), added[:, :n_needed]
        rows = np.hstack([rows, added])
        rest = np.maximum(rest - np.einsum("ij,ij->i", added, added), 0.0)
        rest[pivots] = 0.0
        rest[rest < smallest * diagonal] = 0.0
    return pivots, rows, rest


def _accept(square: Floats, proposals: Ints, smallest: float, random: Any) -> tuple[Ints, Floats]:
    """Select the proposals (rows of their unexplained matrix) to keep, in order; also return their Cholesky factor.

    A proposal was drawn by what earlier rounds leave unexplained of it. It is kept with a probability equal to the fraction of
    this that those kept earlier in this round leave unexplained.
    """
    before, kept = square.diagonal(), list[int]()
    left, factor = before.copy(), np.empty_like(square)
    for proposal, chance in zip(proposals, random.uniform(size=len(proposals)), strict=True):
        unexplained = left[proposal]
        if unexplained > smallest * before[proposal] and chance * before[proposal] < unexplained:
            explained = factor[:, : len(kept)] @ factor[proposal, : len(kept)]
            factor[:, len(kept)] = (square[:, proposal] - explained) / np.sqrt(unexplained)
            left -= factor[:, len(kept)] ** 2
            kept.append(int(proposal))
    return np.array(kept, np.int64), np.tril(factor[kept, : len(kept)])


# -------------------------------------------------------------------- kernel values


def kernel_block(node_kernel: NodeKernel, X: Floats, Y: Floats) -> Floats:
    """Compute the node kernel of two blocks, which may be empty: scikit-learn's kernels refuse these."""
    return node_kernel(X, Y) if len(X) and len(Y) else np.zeros((len(X), len(Y)))


def _diagonal(node_kernel: NodeKernel, X: Floats) -> Floats:
    """Compute k(x, x) of each vector."""
    if isinstance(node_kernel, Gaussian):
        return np.ones(len(X))
    return np.concatenate([np.empty(0), *(node_kernel(x, x).ravel() for x in X[:, None, :])])
