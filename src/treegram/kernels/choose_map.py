"""Which explicit map stands for k_A: chosen by what the data look like and by the measured error of the Gram matrix.

The error of a map is always measured, never believed; how, is the caller's business (``kernels._vector_sums.PairSample``).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from treegram._core.params import NOTHING, SEED, Allowed, Number, Whole, Words
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.maps import (
    FREQUENCIES,
    Constant,
    VectorMap,
    distinct_rows,
    fourier_map,
    kernel_block,
    nystroem_map,
)

__all__ = ["VECTOR_MAP", "Costs", "MapChoice", "MapRequest", "choose_map"]

ErrorOf = Callable[[VectorMap], float]

VECTOR_MAP: Mapping[str, Allowed] = {
    "method": (Words(*FREQUENCIES, "nystroem", "auto"),),
    "n_components": (Whole(1), NOTHING),
    "tolerance": (Number(0, above=True),),
    "random_state": SEED,
}

MAX_COMPONENTS = 1024  # where no number is given; beyond, the exact kernel costs less than the vectors
FEWEST_COMPONENTS = 16  # the first number tried; then half as many again, and so on
SAMPLE_NODES = 2000  # for a look at the data
SPARSE_MEDIAN = 1e-6  # a median k_A below this: most pairs of nodes do not see each other at all
LOW_RANK_TRACE = 0.05  # unexplained share of the trace below which a sample is said to have a low rank
# Seconds on one thread of one machine (benchmarks/bench_approx.py). They are compared with each other alone, and counts alone
# are put in, never a clock: the choice is the same on every machine.
PAIR_SECONDS, PAIR_DIMENSION_SECONDS = 2.4e-9, 5e-11  # exact: a pair of nodes, and each dimension of it
CHOOSING_SECONDS, TRIAL_SECONDS = 0.15, 0.015  # to look at the data and draw a sample; to try a map on it
PRODUCT_SECONDS, ADDITION_SECONDS = 1e-10, 1e-9  # of matrix products; of one vector's component for one tree
TREES_PER_NODE = 10  # some
PATIENCE = 0.25  # share of the exact engine's time that may be spent on looking for something cheaper


@dataclass(frozen=True)
class Costs:
    """Estimated seconds of a Gram matrix, by the exact engine and with a map, from counts of what they go through."""

    n_pairs: float  # of nodes with equal labels, equal nodes of a graph merged
    n_vectors: int
    n_attributes: int

    @property
    def exact(self) -> float:
        """With the exact engine."""
        return self.n_pairs * (PAIR_SECONDS + PAIR_DIMENSION_SECONDS * self.n_attributes)

    @property
    def allowed(self) -> float:
        """For the search of a map."""
        return PATIENCE * self.exact

    def trial(self, n_components: int) -> float:
        """To make a map of so many components, and to try it on the sample."""
        return TRIAL_SECONDS + self._evaluation(n_components)

    def with_map(self, n_components: int) -> float:
        """With a map that is there."""
        additions = ADDITION_SECONDS * TREES_PER_NODE * self.n_vectors * n_components
        return self._evaluation(n_components) + additions

    def _evaluation(self, n_components: int) -> float:
        return PRODUCT_SECONDS * self.n_vectors * n_components * (n_components + self.n_attributes)


@dataclass(frozen=True)
class MapRequest:
    """What the user asked for, and the node vectors it is asked for."""

    method: str
    n_components: int | None
    tolerance: float
    seed: int
    node_kernel: NodeKernel
    vectors: Floats  # (n_nodes, n_attributes); no columns: the graphs have no attributes
    blocks: Hashes  # nodes of different blocks never meet
    costs: Costs | None  # None: the exact engine cannot take over

    @property
    def most(self) -> int:
        """The largest number of components."""
        return MAX_COMPONENTS if self.n_components is None else self.n_components


@dataclass(frozen=True)
class MapChoice:
    """The map, how it was found, and why; ``vector_map=None`` means the exact engine."""

    vector_map: VectorMap | None
    method: str
    sentence: str  # with {error} in the place of the error, which may grow by what the caller does with the map
    error: float
    is_complete: bool = False  # whether every distinct vector could be a pivot, so that nothing is approximated
    warning: str = ""  # what the user should know, likewise

    def told(self, error: float) -> str:
        """The sentence, with the error that the caller has measured."""
        return self.sentence.format(error=f"{error:.1e}")

    def warn(self, error: float) -> None:
        """Warn, if there is something to warn of."""
        if self.warning:
            warnings.warn(self.warning.format(error=f"{error:.1%}"), UserWarning, stacklevel=_outside())


def choose_map(request: MapRequest, error_of: ErrorOf) -> MapChoice:
    """The map that was asked for, or with ``method="auto"`` the one that suits the data; its error is ``error_of`` it."""
    if not request.vectors.size and request.method == "auto" and request.costs is not None:
        return MapChoice(
            None, "exact", "No attributes: k_A is 1, and the exact engine compares each graph as one node.", 0.0
        )
    if not request.vectors.size:
        constant = Constant()
        sentence = "No attributes: k_A is 1, and one component is exact."
        return MapChoice(constant, "distinct", sentence, error_of(constant), is_complete=True)
    if request.method in FREQUENCIES and not isinstance(request.node_kernel, Gaussian):
        raise ValueError(
            f"method={request.method!r} approximates the Gaussian kernel alone; with another node_kernel than 'rbf' use "
            "method='nystroem' or 'auto'."
        )
    if request.method == "auto":
        return _choose_by_data(request, error_of)
    make = _maker(request, request.method)
    if request.n_components is not None:
        vector_map = make(request.n_components)
        sentence = f"As asked for: {request.method} with {vector_map.n_components} components."
        is_complete = request.method == "nystroem" and _few_distinct(request) is not None
        return MapChoice(vector_map, request.method, sentence, error_of(vector_map), is_complete)
    return _with_warning(request, _grow(request, request.method, error_of))


def _choose_by_data(request: MapRequest, error_of: ErrorOf) -> MapChoice:
    costs = request.costs
    if costs is not None and costs.allowed < CHOOSING_SECONDS + costs.trial(min(FEWEST_COMPONENTS, request.most)):
        return _exact_for_time(costs, "less than the search for a map may cost")
    few = _few_distinct(request)
    if few is not None:
        if costs is not None and costs.exact < costs.with_map(len(few)):
            return _exact_for_time(costs, f"less than {len(few)} components, one for each distinct vector, would cost")
        vector_map = nystroem_map(
            few, np.ones(len(few)), request.node_kernel, len(few), seed=0
        )  # nothing random is left
        sentence = f"{len(few)} distinct vectors: their kernel matrix is factorised, which is exact."
        return MapChoice(vector_map, "distinct", sentence, error_of(vector_map), is_complete=True)
    sample = _sample_nodes(request)
    median = _median_kernel(request, sample)
    if median < SPARSE_MEDIAN and not _has_low_rank(request, sample):
        return _treat_sparse(request, error_of, median)
    choice = _grow(request, "nystroem", error_of)
    if choice.vector_map is None:
        return choice
    if choice.error > request.tolerance:
        choice = _better_of(request, error_of, choice)
    return _with_warning(request, choice)


def _exact_for_time(costs: Costs, why: str) -> MapChoice:
    sentence = f"The exact engine is used: {costs.n_pairs:.1e} pairs of nodes take it some {costs.exact:.2g} s, {why}."
    return MapChoice(None, "exact", sentence, 0.0)


def _treat_sparse(request: MapRequest, error_of: ErrorOf, median: float) -> MapChoice:
    """The exact engine where it is there; else the best of what does not fit."""
    state = f"k_A is nearly sparse: its median over pairs of nodes with equal labels is {median:.0e}, and it has no low rank"
    advice = "Scale the attributes (ScaleAttributes) or lower gamma if nodes should see each other"
    if request.costs is not None:
        sentence = f"{state}, so the exact engine is used."
        warning = f"{sentence} ODDCL does the same at once. {advice}."
        return MapChoice(None, "exact", sentence, 0.0, warning=warning)
    choice = _better_of(request, error_of, _fixed(request, "nystroem", error_of))
    warning = f"{state}: explicit features keep an estimated Gram error of {{error}}. {advice}, or use the exact kernel ODDCL."
    return replace(choice, warning=warning)


# -------------------------------------------------------------------- maps of some method


def _maker(request: MapRequest, method: str) -> Callable[[int], VectorMap]:
    """A function that makes the method's map with a given number of components."""
    if method in FREQUENCIES:
        gamma, d = request.node_kernel.gamma, request.vectors.shape[1]  # type: ignore[attr-defined]
        return lambda n_components: fourier_map(method, d, n_components, gamma, request.seed)
    few = _few_distinct(request)
    vectors, weights = (request.vectors, np.ones(len(request.vectors))) if few is None else _counted(request.vectors)
    return lambda n_components: nystroem_map(vectors, weights, request.node_kernel, n_components, seed=request.seed)


def _fixed(request: MapRequest, method: str, error_of: ErrorOf) -> MapChoice:
    vector_map = _maker(request, method)(request.most)
    return _made(vector_map, method, error_of(vector_map))


def _grow(request: MapRequest, method: str, error_of: ErrorOf) -> MapChoice:
    """Raise the number of components by half until the measured error is within the tolerance, or no more are allowed.

    With ``method="auto"`` the exact engine takes over as soon as it is the cheaper one, or the search has cost its share.
    """
    make = _maker(request, method)
    costs = request.costs if request.method == "auto" else None
    n_components, spent = min(FEWEST_COMPONENTS, request.most), CHOOSING_SECONDS
    while True:
        if costs is not None:
            spent += costs.trial(n_components)
            if spent > costs.allowed or costs.with_map(n_components) > costs.exact:
                return _exact_for_time(
                    costs, f"less than {n_components} components would cost, and fewer are not enough"
                )
        vector_map = make(n_components)
        error = error_of(vector_map)
        if error <= request.tolerance or n_components >= request.most:
            return _made(vector_map, method, error)
        n_components = min(n_components + n_components // 2, request.most)


def _better_of(request: MapRequest, error_of: ErrorOf, choice: MapChoice) -> MapChoice:
    """The choice, or quasi-random Fourier features of the same number if their measured error is smaller."""
    if not isinstance(request.node_kernel, Gaussian):
        return choice
    return min(choice, _fixed(request, "qmc", error_of), key=lambda candidate: candidate.error)


def _made(vector_map: VectorMap, method: str, error: float) -> MapChoice:
    sentence = f"{method} with {vector_map.n_components} components: estimated Gram error {{error}}."
    return MapChoice(vector_map, method, sentence, error)


def _with_warning(request: MapRequest, choice: MapChoice) -> MapChoice:
    """The choice, with a warning if its error is not within the tolerance."""
    if choice.error <= request.tolerance:
        return choice
    other = "" if request.method == "auto" else " try method='auto',"
    warning = (
        f"{choice.sentence} That is more than tolerance={request.tolerance:g}, with the largest number of components. "
        f"Give a larger n_components or tolerance,{other} or use the exact kernel ODDCL."
    )
    return replace(choice, warning=warning)


def _outside() -> int:
    """The level of the stack at which the user called into treegram."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("treegram", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level


# -------------------------------------------------------------------- a look at the data


def _sample_nodes(request: MapRequest) -> Ints:
    n = len(request.vectors)
    random = np.random.default_rng(request.seed)
    return np.sort(random.choice(n, min(n, SAMPLE_NODES), replace=False))


def _counted(vectors: Floats) -> tuple[Floats, Floats]:
    distinct, numbers = distinct_rows(vectors)
    return distinct, np.bincount(numbers).astype(np.float64)


def _few_distinct(request: MapRequest) -> Floats | None:
    """The distinct vectors if there are no more of them than components allowed; a sample tells most cases early."""
    if len(distinct_rows(request.vectors[_sample_nodes(request)])[0]) > request.most:
        return None
    distinct, _ = distinct_rows(request.vectors)
    return distinct if len(distinct) <= request.most else None


def _median_kernel(request: MapRequest, sample: Ints) -> float:
    """Median of k_A over pairs of different nodes of the sample with equal labels."""
    values = [np.empty(0)]
    for block in np.unique(request.blocks[sample]):
        rows = request.vectors[sample[request.blocks[sample] == block]]
        values.append(kernel_block(request.node_kernel, rows, rows)[np.triu_indices(len(rows), 1)])
    pooled = np.concatenate(values)
    return float(np.median(pooled)) if len(pooled) else 1.0


def _has_low_rank(request: MapRequest, sample: Ints) -> bool:
    """Whether half as many pivots as there are nodes in the sample explain nearly all of it."""
    most = min(MAX_COMPONENTS, len(sample) // 2)
    vectors = request.vectors[sample]
    pivots = nystroem_map(
        vectors, np.ones(len(sample)), request.node_kernel, most, tolerance=LOW_RANK_TRACE, seed=request.seed
    )
    return pivots.n_components < most
