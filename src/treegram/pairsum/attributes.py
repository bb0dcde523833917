"""Node kernels: k_A of two attribute vectors, by name, or as the user's own function of two blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from treegram._core.types import Floats

NodeKernel = Callable[[Floats, Floats], Floats]
NODE_KERNEL_NAMES = frozenset(PAIRWISE_KERNEL_FUNCTIONS)
LARGEST_VALUE = 1e250  # of k_A: sums over many nodes, times their features, stay within double precision
_N_PAIRS = 20_000  # pairs of nodes whose distances are sampled


@dataclass(frozen=True)
class Gaussian:
    """The node kernel exp(-gamma |x - y|^2): the only one that compiled loops evaluate."""

    gamma: float

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Return the kernel of each row of X with each row of Y, from differences: far from the origin no precision is lost."""
        block: Any = cdist(X, Y, "sqeuclidean")
        np.minimum(block, np.finfo(np.float64).max, out=block)  # not infinite: gamma may be 0
        block *= -self.gamma
        return np.exp(block, out=block)


def node_kernel_blocks(node_kernel: str | NodeKernel, gamma: float | None, n_attributes: int) -> NodeKernel:
    """Return the node kernel as a function of two blocks of rows; ``gamma=None`` means 1 / n_attributes."""
    if callable(node_kernel):
        return partial(_checked, node_kernel)
    width = 1.0 / max(n_attributes, 1) if gamma is None else float(gamma)
    if node_kernel == "rbf":
        return Gaussian(width)
    return partial(_named, node_kernel, width)


def is_one(node_kernel: NodeKernel, *vectors: Floats) -> bool:
    """Check that the node kernel of any two of these vectors is 1: sums over pairs of nodes are then products of counts."""
    if not isinstance(node_kernel, Gaussian):
        return False
    sides = [rows for rows in vectors if len(rows)]
    return node_kernel.gamma == 0 or all(bool((rows == sides[0][0]).all()) for rows in sides)


def scaled_gamma(vectors: Floats) -> float:
    """Return 1 / (number of attributes * mean variance of an attribute): the mean of gamma |x - y|^2 over all pairs is then 2.

    If all attributes are constant, or there are none, this is the same as for ``gamma=None``.
    """
    peak = float(np.abs(vectors).max(initial=0.0))
    if not peak or not (np.ptp(vectors, axis=0) > 0).any():
        return 1.0 / max(vectors.shape[1], 1)
    total = float((vectors / peak).var(axis=0).sum())  # in units of the largest value, so that no square overflows
    with np.errstate(over="ignore"):
        gamma = float(np.float64(1.0 / total) / peak / peak)
    if not 0 < gamma < np.inf:
        raise ValueError(
            f"No gamma follows from these vectors, because it is out of the range of numbers: attributes are as large as {peak:.3g}. "
            "Scale them first (ScaleAttributes), or give gamma as a number."
        )
    return gamma


def narrow_gamma(vectors: Floats) -> float:
    """Return eight times the scaled gamma, or less: see `_reaching`. Vectors in clusters need a narrow kernel."""
    return _reaching(vectors, 8.0 * scaled_gamma(vectors))


def white_gamma(vectors: Floats) -> float:
    """Return 0.2 for whitened vectors, or less: see `_reaching`."""
    return _reaching(vectors, 0.2)


GAMMA_RULES: Mapping[str, Callable[[Floats], float]] = {
    "scale": scaled_gamma,
    "narrow": narrow_gamma,
    "white": white_gamma,
}


def _reaching(vectors: Floats, gamma: float) -> float:
    """Return gamma, or the value that reaches the nearest twentieth of all pairs if that is smaller.

    With many independent attributes, all pairs are about equally far apart, and a narrow kernel would separate any two nodes.
    """
    rng = np.random.default_rng(len(vectors))
    i, j = rng.integers(max(len(vectors), 1), size=(2, _N_PAIRS if len(vectors) else 0))
    with np.errstate(over="ignore"):
        distances = ((vectors[i] - vectors[j]) ** 2).sum(axis=1)
    distances = distances[(distances > 0) & (distances < np.inf)]
    return min(gamma, float(1.0 / np.quantile(distances, 0.05))) if len(distances) else gamma


def _named(name: str, gamma: float, X: Floats, Y: Floats) -> Floats:
    """Compute a scikit-learn kernel, whose compiled loops refuse read-only arrays."""
    X, Y = (np.require(rows, requirements="W") for rows in (X, Y))
    if name == "cosine":  # lengths do not matter, but their squares may overflow
        X, Y = (rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0.0), 1.0) for rows in (X, Y))
    with np.errstate(over="ignore", invalid="ignore"):
        block: Floats = pairwise_kernels(X, Y, metric=name, filter_params=True, gamma=gamma)
        largest = float(np.abs(block).max(initial=0.0))
    if not largest <= LARGEST_VALUE:
        peak = max(float(np.abs(rows).max(initial=0.0)) for rows in (X, Y))
        raise ValueError(
            f"node_kernel={name!r} gives values too large for double precision: attributes are as large as {peak:.3g}. "
            "Scale them first (ScaleAttributes), or use node_kernel='rbf'."
        )
    return block


def _checked(node_kernel: NodeKernel, X: Floats, Y: Floats) -> Floats:
    """Return the values of the user's function; raise if their shape is wrong or they are not finite."""
    block: Any = np.asarray(node_kernel(X, Y), dtype=np.float64)
    if block.shape != (len(X), len(Y)):
        raise ValueError(
            f"node_kernel must return an array of shape ({len(X)}, {len(Y)}) for blocks of {len(X)} and {len(Y)} rows; "
            f"got {block.shape}."
        )
    if not np.isfinite(block).all():
        raise ValueError("node_kernel returned values that are not finite (NaN or infinity).")
    return block
