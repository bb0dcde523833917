"""What the two ODD kernels share: their parameters, and how the size of a tree becomes its weight."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from treegram._types import Floats, Ints
from treegram.structure.trees import COUNTINGS, Phi

__all__ = ["ODD_CONSTRAINTS", "check_grid", "overflows", "refuse_overflow", "weigh"]


ODD_CONSTRAINTS: dict[str, list[Any]] = {
    "depth": [Interval(Integral, 0, None, closed="left")],
    "lam": [Interval(Real, 0, None, closed="neither")],
    "counting": [StrOptions(set(COUNTINGS))],
    "missing_labels": [StrOptions({"degree", "constant"})],
    "use_edge_labels": ["boolean"],
    "normalize": ["boolean"],
    "n_jobs": [Integral, None],
}

# lam ** size stays below 1e260: products of counts then have fifty orders of magnitude left before they overflow.
_LARGEST_EXPONENT = 260 * np.log(10)


def overflows(sizes: Floats, lam: float) -> bool:
    """Whether lam ** size of the largest tree is too large to be summed in double precision."""
    return bool(lam > 1 and sizes.max(initial=0.0) * np.log(lam) > _LARGEST_EXPONENT)


def refuse_overflow(sizes: Floats, lam: float, depth: int) -> None:
    """Raise if lam ** size overflows for the largest tree."""
    if overflows(sizes, lam):
        raise ValueError(
            f"lam ** size overflows: at depth={depth} the largest tree has {sizes.max():.0f} nodes, too many for "
            f"lam={lam:g}. Use a smaller lam (at most {np.exp(_LARGEST_EXPONENT / sizes.max()):.4g} here), a smaller "
            "depth, or normalize=True, where the kernel is rescaled exactly."
        )


def weigh(phi: Phi, lam: float, graph_ids: Ints, *, rescale: bool) -> Phi:
    """Phi with counts times lam ** (size / 2), so that inner products of rows carry the weight lam ** size.

    With ``rescale`` each graph's rows are divided by lam ** (s / 2), where s is the size of its largest tree: one factor
    per graph, which normalisation removes, and nothing overflows.
    """
    counts = phi.counts.copy()
    exponents = phi.sizes[counts.indices]
    if rescale and lam > 1:
        entry_graphs = np.repeat(graph_ids, np.diff(counts.indptr))
        largest = np.zeros(int(graph_ids.max(initial=-1)) + 1)
        np.maximum.at(largest, entry_graphs, exponents)
        exponents = exponents - largest[entry_graphs]
    counts.data = counts.data * np.exp(0.5 * np.log(lam) * exponents)
    return replace(phi, counts=counts)


def check_grid(depths: Any, lams: Any) -> tuple[list[int], list[float]]:
    """The two lists of a grid, checked."""
    depths, lams = list(np.atleast_1d(depths)), list(np.atleast_1d(lams))
    for depth in depths:
        if not isinstance(depth, Integral) or depth < 0:
            raise ValueError(f"depths must be whole numbers of at least 0; got {depth!r}.")
    for lam in lams:
        if not isinstance(lam, Real) or not 0 < float(lam) < np.inf:
            raise ValueError(f"lams must be numbers greater than 0; got {lam!r}.")
    if not depths or not lams:
        raise ValueError(f"depths and lams must not be empty; got {len(depths)} depths and {len(lams)} lams.")
    return [int(depth) for depth in depths], [float(lam) for lam in lams]
