"""How alike two attribute vectors are: k_A by name, or as the user's own function of two blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from treegram._types import Floats

__all__ = ["NODE_KERNEL_NAMES", "Gaussian", "NodeKernel", "node_kernel_blocks"]

NodeKernel = Callable[[Floats, Floats], Floats]
NODE_KERNEL_NAMES = frozenset(PAIRWISE_KERNEL_FUNCTIONS)


@dataclass(frozen=True)
class Gaussian:
    """exp(-gamma |x - y|^2): the one node kernel that the engine evaluates in its own loops."""

    gamma: float

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The kernel of each row of X with each row of Y."""
        block: Floats = pairwise_kernels(X, Y, metric="rbf", gamma=self.gamma)
        return block


def node_kernel_blocks(node_kernel: str | NodeKernel, gamma: float | None, n_attributes: int) -> NodeKernel:
    """The node kernel as a function of two blocks of rows; ``gamma=None`` means 1 / n_attributes."""
    if callable(node_kernel):
        return partial(_checked, node_kernel)
    width = 1.0 / max(n_attributes, 1) if gamma is None else float(gamma)
    if node_kernel == "rbf":
        return Gaussian(width)
    return partial(pairwise_kernels, metric=node_kernel, filter_params=True, gamma=width)


def _checked(node_kernel: NodeKernel, X: Floats, Y: Floats) -> Floats:
    """What the user's function gives, if it has the right shape and is finite."""
    block: Any = np.asarray(node_kernel(X, Y), dtype=np.float64)
    if block.shape != (len(X), len(Y)):
        raise ValueError(
            f"node_kernel must give an array of shape ({len(X)}, {len(Y)}) for blocks of {len(X)} and {len(Y)} rows; "
            f"got {block.shape}."
        )
    if not np.isfinite(block).all():
        raise ValueError("node_kernel gave values that are not finite (NaN or infinity).")
    return block
