"""Which explicit map stands for k_A: chosen by what the data look like and by the measured error of the Gram matrix.

The error of a map is always measured, never believed; how, is the caller's business (``kernels._mapped.PairSample``).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from treegram._types import Floats, Hashes, Ints
from treegram.attributes import Gaussian, NodeKernel
from treegram.maps import FREQUENCIES, Constant, VectorMap, distinct_rows, fourier_map, kernel_block, nystroem_map

__all__ = ["APPROX_CONSTRAINTS", "Choice", "Wish", "choose_map"]

ErrorOf = Callable[[VectorMap], float]

APPROX_CONSTRAINTS: dict[str, list[Any]] = {
    "method": [StrOptions({*FREQUENCIES, "nystroem", "auto"})],
    "n_components": [Interval(Integral, 1, None, closed="left"), None],
    "tolerance": [Interval(Real, 0, None, closed="neither")],
    "random_state": ["random_state"],
}

MAX_COMPONENTS = 1024  # where no number is given; beyond, the exact kernel costs less than the vectors
FEWEST_COMPONENTS = 16  # the first number tried; then half as many again, and so on
SAMPLE_NODES = 2000  # for a look at the data
SPARSE_MEDIAN = 1e-6  # a median k_A below this: most pairs of nodes do not see each other at all
LOW_RANK_TRACE = 0.05  # unexplained share of the trace below which a sample is said to have a low rank


@dataclass(frozen=True)
class Wish:
    """What the user asked for, and the node vectors it is asked for."""

    method: str
    n_components: int | None
    tolerance: float
    seed: int
    node_kernel: NodeKernel
    vectors: Floats  # (n_nodes, n_attributes); no columns: the graphs have no attributes
    blocks: Hashes  # nodes of different blocks never meet
    exact_is_there: bool  # whether the exact engine may take over

    @property
    def most(self) -> int:
        """The largest number of components."""
        return MAX_COMPONENTS if self.n_components is None else self.n_components


@dataclass(frozen=True)
class Choice:
    """The map, how it was found, and why; ``vector_map=None`` means the exact engine."""

    vector_map: VectorMap | None
    method: str
    sentence: str
    error: float
    is_complete: bool = False  # whether every distinct vector could be a pivot, so that nothing is approximated


def choose_map(wish: Wish, error_of: ErrorOf) -> Choice:
    """The map that was asked for, or with ``method="auto"`` the one that suits the data; its error is ``error_of`` it."""
    if not wish.vectors.size:
        constant = Constant()
        sentence = "No attributes: k_A is 1, and one component is exact."
        return Choice(constant, "distinct", sentence, error_of(constant), is_complete=True)
    if wish.method in FREQUENCIES and not isinstance(wish.node_kernel, Gaussian):
        raise ValueError(
            f"method={wish.method!r} approximates the Gaussian kernel alone; with another node_kernel than 'rbf' use "
            "method='nystroem' or 'auto'."
        )
    if wish.method == "auto":
        return _choose_by_data(wish, error_of)
    make = _maker(wish, wish.method)
    if wish.n_components is not None:
        vector_map = make(wish.n_components)
        sentence = f"As asked for: {wish.method} with {vector_map.n_components} components."
        is_complete = wish.method == "nystroem" and _few_distinct(wish) is not None
        return Choice(vector_map, wish.method, sentence, error_of(vector_map), is_complete)
    choice = _grow(wish, wish.method, error_of)
    _warn_if_poor(wish, choice)
    return choice


def _choose_by_data(wish: Wish, error_of: ErrorOf) -> Choice:
    few = _few_distinct(wish)
    if few is not None:
        vector_map = nystroem_map(few, np.ones(len(few)), wish.node_kernel, len(few), seed=0)  # nothing random is left
        sentence = f"{len(few)} distinct vectors: their kernel matrix is factorised, which is exact."
        return Choice(vector_map, "distinct", sentence, error_of(vector_map), is_complete=True)
    sample = _sample_nodes(wish)
    median = _median_kernel(wish, sample)
    if median < SPARSE_MEDIAN and not _has_low_rank(wish, sample):
        return _treat_sparse(wish, error_of, median)
    choice = _grow(wish, "nystroem", error_of)
    if choice.error > wish.tolerance:
        choice = _better_of(wish, error_of, choice)
        _warn_if_poor(wish, choice)
    return choice


def _treat_sparse(wish: Wish, error_of: ErrorOf, median: float) -> Choice:
    """The exact engine where it is there; else the best of what does not fit."""
    state = f"k_A is nearly sparse: its median over pairs of nodes with equal labels is {median:.0e}, and it has no low rank"
    advice = "Scale the attributes (ScaleAttributes) or lower gamma if nodes should see each other"
    if wish.exact_is_there:
        sentence = f"{state}, so the exact engine is used."
        warnings.warn(f"{sentence} ODDCL does the same at once. {advice}.", UserWarning, stacklevel=_outside())
        return Choice(None, "exact", sentence, 0.0)
    choice = _better_of(wish, error_of, _fixed(wish, "nystroem", error_of))
    warnings.warn(
        f"{state}: explicit features keep an estimated Gram error of {choice.error:.1%}. {advice}, or use the exact kernel ODDCL.",
        UserWarning,
        stacklevel=_outside(),
    )
    return choice


# -------------------------------------------------------------------- maps of some method


def _maker(wish: Wish, method: str) -> Callable[[int], VectorMap]:
    """A function that makes the method's map with a given number of components."""
    if method in FREQUENCIES:
        gamma, d = wish.node_kernel.gamma, wish.vectors.shape[1]  # type: ignore[attr-defined]
        return lambda n_components: fourier_map(method, d, n_components, gamma, wish.seed)
    few = _few_distinct(wish)
    vectors, weights = (wish.vectors, np.ones(len(wish.vectors))) if few is None else _counted(wish.vectors)
    return lambda n_components: nystroem_map(vectors, weights, wish.node_kernel, n_components, seed=wish.seed)


def _fixed(wish: Wish, method: str, error_of: ErrorOf) -> Choice:
    vector_map = _maker(wish, method)(wish.most)
    return _described(vector_map, method, error_of(vector_map))


def _grow(wish: Wish, method: str, error_of: ErrorOf) -> Choice:
    """Raise the number of components by half until the measured error is within the tolerance, or no more are allowed."""
    make = _maker(wish, method)
    n_components = min(FEWEST_COMPONENTS, wish.most)
    while True:
        vector_map = make(n_components)
        error = error_of(vector_map)
        if error <= wish.tolerance or n_components >= wish.most:
            return _described(vector_map, method, error)
        n_components = min(n_components + n_components // 2, wish.most)


def _better_of(wish: Wish, error_of: ErrorOf, choice: Choice) -> Choice:
    """The choice, or quasi-random Fourier features of the same number if their measured error is smaller."""
    if not isinstance(wish.node_kernel, Gaussian):
        return choice
    return min(choice, _fixed(wish, "qmc", error_of), key=lambda candidate: candidate.error)


def _described(vector_map: VectorMap, method: str, error: float) -> Choice:
    sentence = f"{method} with {vector_map.n_components} components: estimated Gram error {error:.1e}."
    return Choice(vector_map, method, sentence, error)


def _warn_if_poor(wish: Wish, choice: Choice) -> None:
    if choice.error > wish.tolerance:
        other = "" if wish.method == "auto" else " try method='auto',"
        warnings.warn(
            f"{choice.sentence} That is more than tolerance={wish.tolerance:g}, with the largest number of components. "
            f"Give a larger n_components or tolerance,{other} or use the exact kernel ODDCL.",
            UserWarning,
            stacklevel=_outside(),
        )


def _outside() -> int:
    """The level of the stack at which the user called into treegram."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("treegram", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level


# -------------------------------------------------------------------- a look at the data


def _sample_nodes(wish: Wish) -> Ints:
    n = len(wish.vectors)
    random = np.random.default_rng(wish.seed)
    return np.sort(random.choice(n, min(n, SAMPLE_NODES), replace=False))


def _counted(vectors: Floats) -> tuple[Floats, Floats]:
    distinct, numbers = distinct_rows(vectors)
    return distinct, np.bincount(numbers).astype(np.float64)


def _few_distinct(wish: Wish) -> Floats | None:
    """The distinct vectors if there are no more of them than components allowed; a sample tells most cases early."""
    if len(distinct_rows(wish.vectors[_sample_nodes(wish)])[0]) > wish.most:
        return None
    distinct, _ = distinct_rows(wish.vectors)
    return distinct if len(distinct) <= wish.most else None


def _median_kernel(wish: Wish, sample: Ints) -> float:
    """Median of k_A over pairs of different nodes of the sample with equal labels."""
    values = [np.empty(0)]
    for block in np.unique(wish.blocks[sample]):
        rows = wish.vectors[sample[wish.blocks[sample] == block]]
        values.append(kernel_block(wish.node_kernel, rows, rows)[np.triu_indices(len(rows), 1)])
    pooled = np.concatenate(values)
    return float(np.median(pooled)) if len(pooled) else 1.0


def _has_low_rank(wish: Wish, sample: Ints) -> bool:
    """Whether half as many pivots as there are nodes in the sample explain nearly all of it."""
    most = min(MAX_COMPONENTS, len(sample) // 2)
    vectors = wish.vectors[sample]
    pivots = nystroem_map(
        vectors, np.ones(len(sample)), wish.node_kernel, most, tolerance=LOW_RANK_TRACE, seed=wish.seed
    )
    return pivots.n_components < most
