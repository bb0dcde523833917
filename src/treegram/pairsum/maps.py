"""Explicit maps z of vectors, whose inner products equal or approximate a node kernel: <z(x), z(y)> ~ k_A(x, y).

A map is a frozen object: ``map(X)`` returns one row per vector, ``map(X, columns)`` only some components, so that callers need
not hold all of them. Random Fourier features of three kinds do not depend on data; a pivot map is made of pivots among the
vectors. ``treegram.pairsum.vectors`` sums mapped vectors over graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.stats.qmc import MultivariateNormalQMC

from treegram._core.parallel import run_tasks
from treegram._core.types import Floats, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.structure.hashing import equal_rows

__all__ = [
    "FREQUENCIES",
    "Constant",
    "Fourier",
    "PivotMap",
    "VectorMap",
    "distinct_rows",
    "evaluate",
    "fourier_map",
    "kernel_block",
    "nystroem_map",
]


ROWS_PER_CALL = 2048  # vectors mapped at once: what is computed on the way to their rows stays small
PIVOTS_PER_ROUND = 64  # pivots proposed together: enough for fast matrix products, few enough that most are accepted
CANDIDATES, CANDIDATES_PER_PIVOT = 8192, 8  # vectors looked at, in all at least and for each pivot: more gain little
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

    .. math:: z(x) = m^{-1/2} (\cos w_1 x, \sin w_1 x, \dots, \cos w_m x, \sin w_m x)

    With :math:`w \sim N(0, 2 \gamma I)` the expected inner product is :math:`\exp(-\gamma \|x - y\|^2)`. Pairs of cosine
    and sine, unlike cosines with random phases (:class:`sklearn.kernel_approximation.RBFSampler`), give
    :math:`\|z(x)\| = 1` exactly and a smaller variance for near vectors.
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
        rows: Floats = kernel_block(self.node_kernel, X, self.pivots[:stop]) @ self.mixing[:stop, start:stop]
        return rows


def evaluate(vector_map: VectorMap, X: Floats, columns: slice = slice(None), *, n_jobs: int | None = None) -> Floats:
    """Map the rows of X, some vectors at a time; the same bits for any ``n_jobs``."""
    start, stop, _ = columns.indices(vector_map.n_components)
    rows = np.empty((len(X), stop - start))
    tasks = [(vector_map, X, columns, first, rows) for first in range(0, len(X), ROWS_PER_CALL)]
    for _ in run_tasks(_fill_rows, tasks, n_jobs=n_jobs, label="vectors"):
        pass
    return rows


def _fill_rows(vector_map: VectorMap, X: Floats, columns: slice, first: int, rows: Floats) -> None:
    rows[first : first + ROWS_PER_CALL] = vector_map(X[first : first + ROWS_PER_CALL], columns)


# -------------------------------------------------------------------- random Fourier features


def _independent(n: int, d: int, random: np.random.Generator) -> Floats:
    """Draw n standard normal vectors of dimension d."""
    return random.standard_normal((n, d))


def _orthogonal(n: int, d: int, random: np.random.Generator) -> Floats:
    """Draw standard normal vectors, d at a time orthogonal to each other (Yu et al. 2016)."""
    directions = [_rotation(d, random) for _ in range(-(-n // d))]
    lengths = np.sqrt(random.chisquare(d, n))
    rows: Floats = np.concatenate(directions)[:n] * lengths[:, None]
    return rows


def _rotation(d: int, random: np.random.Generator) -> Floats:
    """Draw a random orthogonal matrix; the signs make it uniform (QR alone is not)."""
    q, r = np.linalg.qr(random.standard_normal((d, d)))
    rotation: Floats = q * np.sign(r.diagonal())
    return rotation


def _quasi_random(n: int, d: int, random: np.random.Generator) -> Floats:
    """Map scrambled Sobol points to normal quantiles: each point is normal, and together they are spread evenly."""
    points: Floats = MultivariateNormalQMC(np.zeros(d), seed=random).random(1 << max(n - 1, 0).bit_length())
    return points[:n]  # Sobol points come in powers of two; the first n of them are spread nearly as well


FREQUENCIES: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "orf": _orthogonal,
    "qmc": _quasi_random,
    "rff": _independent,
}


def fourier_map(method: str, n_attributes: int, n_components: int, gamma: float, seed: int) -> Fourier:
    """Make random Fourier features with frequencies drawn by ``method``; an odd number of components is raised by one.

    The same arguments give the same map on any machine: it does not depend on data.
    """
    n = (n_components + 1) // 2
    frequencies = FREQUENCIES[method](n, n_attributes, np.random.default_rng(seed))
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
    """Draw pivots by randomly pivoted Cholesky: each in proportion to what those before it leave unexplained.

    ``weights`` are the numbers of occurrences of the vectors. Fewer than ``n_components`` pivots are taken where these leave
    nothing but rounding error.

    With N vectors looked at and k pivots: k N kernel values, k^2 N operations, k N numbers of memory, where N is at most
    8 k (or 8192). Pivots are proposed in rounds and accepted at random, which draws them as if one by one.

    References
    ----------
    Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber: Randomly pivoted Cholesky. arXiv:2207.06503.
    E. N. Epperly, J. A. Tropp, R. J. Webber: Embrace rejection: kernel matrix approximation by accelerated randomly
    pivoted Cholesky. arXiv:2410.03969.
    """
    random = np.random.default_rng(seed)
    n_candidates = max(CANDIDATES_PER_PIVOT * n_components, CANDIDATES)
    if len(vectors) > n_candidates:
        chosen = np.sort(random.choice(len(vectors), n_candidates, replace=False, p=weights / weights.sum()))
        vectors, weights = vectors[chosen], np.ones(n_candidates)
    factor, pivots = _pivoted_cholesky(vectors, weights, node_kernel, n_components, random)
    mixing = solve_triangular(factor[:, pivots], np.eye(len(pivots))) if len(pivots) else np.empty((0, 0))
    return PivotMap(node_kernel, vectors[pivots], np.ascontiguousarray(mixing))


def _pivoted_cholesky(
    vectors: Floats,
    weights: Floats,
    node_kernel: NodeKernel,
    n_components: int,
    random: np.random.Generator,
) -> tuple[Floats, Ints]:
    """Return rows F with F^T F close to the kernel matrix of the vectors, one per pivot, and the positions of the pivots."""
    n = len(vectors)
    n_components = min(n_components, n)
    factor, pivots = np.empty((n_components, n)), np.empty(0, np.int64)
    diagonal = _diagonal(node_kernel, vectors)
    residual = diagonal.copy()
    while len(pivots) < n_components and float(weights @ residual) > 0:
        odds = weights * residual
        drawn = random.choice(n, PIVOTS_PER_ROUND, p=odds / odds.sum())
        known = factor[: len(pivots)]
        unexplained = kernel_block(node_kernel, vectors[drawn], vectors[drawn]) - known[:, drawn].T @ known[:, drawn]
        floor = _ROUNDING * diagonal[drawn]
        residual[drawn[unexplained.diagonal() <= floor]] = 0.0  # computed again, and nothing is left: never drawn again
        kept, lower = _accept(unexplained, floor, n_components - len(pivots), random)
        if not len(kept):
            continue
        drawn = drawn[kept]
        rows = kernel_block(node_kernel, vectors[drawn], vectors) - known[:, drawn].T @ known
        new = factor[len(pivots) : len(pivots) + len(drawn)]
        new[:] = solve_triangular(lower, rows, lower=True, check_finite=False)
        pivots = np.concatenate([pivots, drawn])
        residual -= np.einsum("ij,ij->j", new, new)
        residual[residual <= _ROUNDING * diagonal] = 0.0
        residual[pivots] = 0.0
    return factor[: len(pivots)], pivots


def _accept(H: Floats, floor: Floats, most: int, random: np.random.Generator) -> tuple[Ints, Floats]:
    """Keep each proposed pivot with a probability: the fraction of its residual that those kept before it leave.

    ``H`` is the residual kernel matrix of the proposals; changed in place. Returns the kept ones and the Cholesky factor
    of their residual matrix.
    """
    proposed = H.diagonal().copy()
    kept: list[int] = []
    for i in range(len(H)):
        if len(kept) < most and H[i, i] > floor[i] and random.random() * proposed[i] < H[i, i]:
            H[i:, i] /= np.sqrt(H[i, i])
            H[i + 1 :, i + 1 :] -= np.outer(H[i + 1 :, i], H[i + 1 :, i])
            kept.append(i)
    return np.array(kept, np.int64), np.tril(H[np.ix_(kept, kept)])


# -------------------------------------------------------------------- kernel values


def kernel_block(node_kernel: NodeKernel, X: Floats, Y: Floats) -> Floats:
    """Compute the node kernel of two blocks; the Gaussian from differences, so that vectors far from the origin lose nothing."""
    if not len(X) or not len(Y):
        return np.zeros((len(X), len(Y)))
    if not isinstance(node_kernel, Gaussian):
        return node_kernel(X, Y)
    block: Any = cdist(X, Y, "sqeuclidean")
    np.minimum(block, np.finfo(np.float64).max, out=block)  # not infinite: gamma may be 0
    block *= -node_kernel.gamma
    return np.exp(block, out=block)


def _diagonal(node_kernel: NodeKernel, X: Floats) -> Floats:
    """Compute k(x, x) of each vector."""
    if isinstance(node_kernel, Gaussian):
        return np.ones(len(X))
    return np.concatenate([np.empty(0), *(node_kernel(x, x).ravel() for x in X[:, None, :])])
