"""The search that all models share: every point of every kernel's grid, with every strength of regularization.

A model brings one function that fits on some graphs, predicts others, and scores all strengths at once. Whatever a kernel
learns from data it learns from all graphs of the search and from no target; models are selected within these graphs alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.pipeline import Pipeline

from treegram._core.parallel import run_tasks
from treegram._core.params import NOTHING, Allowed, Instance
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels import ODDCL
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import gram_grids, parameter_names, with_parameters
from treegram.kernels.pipelines import split_pipeline
from treegram.kernels.registry import AUTO, KERNELS
from treegram.models.crossval import Fits, choose, distinct
from treegram.models.diagonal import LEAST, nearest_similarity, warn_if_diagonal
from treegram.models.memory import HELD_AT_ONCE, check_memory

__all__ = [
    "KERNEL",
    "TIME_IS_UP",
    "Blocks",
    "Budget",
    "Entry",
    "Found",
    "Given",
    "Score",
    "Splits",
    "Tried",
    "check_strengths",
    "conclude",
    "list_entries",
    "named_kernel",
    "search",
    "split_grid",
    "tell",
    "try_entry",
    "try_grams",
    "with_jobs",
]

Grid = Mapping[str, Sequence[Any]]
Score = Callable[[Floats, Ints, Ints], tuple[Floats, Fits]]
Splits = list[tuple[Ints, Ints]]

KERNEL: Allowed = (
    Instance((GraphKernel, Pipeline), "a kernel"),
    Instance((str,), "the name of a kernel"),
    Instance((list, tuple), "a list of these"),
    NOTHING,
)
TIME_IS_UP = "left out: time was up"


@dataclass(frozen=True)
class Given:
    """What a model is fitted on, checked."""

    graphs: Graphs
    targets: NDArray[Any]  # codes of classes, or numbers
    weights: Floats | None  # of the graphs
    strengths: Floats  # of regularization, in the order in which they are tried
    splits: Splits  # (training, test) ids of the folds

    def taken(self, ids: Ints) -> Self:
        """The same for some of the graphs, by ascending ids; folds that have no training or test graphs left are dropped."""
        places = np.full(len(self.graphs), -1)
        places[ids] = np.arange(len(ids))
        parts = [tuple(places[part][places[part] >= 0] for part in split) for split in self.splits]
        weights = None if self.weights is None else self.weights[ids]
        splits = [(train, test) for train, test in parts if len(train) and len(test)]
        return type(self)(self.graphs[ids], self.targets[ids], weights, self.strengths, splits)


@dataclass(frozen=True, eq=False)
class Entry:
    """A kernel and the grid to search for it."""

    name: str
    kernel: Any  # a kernel, or a pipeline that ends in one
    grid: Grid
    reason: str = "given"  # why it is tried


Blocks = Callable[[Entry, Graphs], Iterator[tuple[list[dict[str, Any]], list[Floats]]]]  # points, each with a matrix


@dataclass(frozen=True, eq=False)
class Tried:
    """What came of an entry."""

    entry: Entry
    n_graphs: int
    note: str = ""
    seconds: float = 0.0
    points: Sequence[dict[str, Any]] = ()
    scores: Floats = field(default_factory=lambda: np.empty((0, 1, 1)))  # (n_points, n_folds, n_strengths)
    fits: Fits = field(default_factory=Fits)
    similarity: float = 1.0  # of a graph and the graph nearest to it, at the point where it is highest

    @property
    def score(self) -> float:
        """The best mean over the folds; less than any number where nothing was scored."""
        return float(self.scores.mean(axis=1).max(initial=-np.inf))

    @property
    def fold_scores(self) -> Floats:
        """The scores of its best point and strength, fold by fold."""
        point, strength = choose(self.scores.mean(axis=1))
        return self.scores[point, :, strength]

    def record(self) -> dict[str, Any]:
        """The same for people: plain values by name."""
        score = self.score if len(self.points) else None
        note = self.note or ("nearly diagonal" if self.similarity < LEAST else "")
        return {
            "candidate": self.entry.name,
            "reason": self.entry.reason,
            "graphs": self.n_graphs,
            "score": score,
            "seconds": self.seconds,
            "note": note,
        }


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    kernel: Any  # the best, not fitted
    index: int  # its place in the table
    table: dict[str, Any]  # as scikit-learn's cv_results_
    fits: Fits
    account: list[dict[str, Any]]  # what was tried, and what was not


class Budget:
    """Seconds that a search may begin new work in; None: as many as it takes."""

    def __init__(self, max_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._end = None if max_seconds is None else clock() + max_seconds

    def is_spent(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and self.clock() >= self._end


def list_entries(kernel: Any, grid: Any, n_jobs: int | None) -> list[Entry]:
    """The kernels that a user gave, each with its grid; ``n_jobs=None`` leaves each kernel its own number of threads."""
    kernels = list(kernel) if isinstance(kernel, list | tuple) else [ODDCL() if kernel is None else kernel]
    kernels = [named_kernel(one) if isinstance(one, str) else one for one in kernels]
    if not kernels:
        raise ValueError("kernel must be a kernel or a list of at least one; got an empty list.")
    grids = list(grid) if isinstance(grid, list | tuple) else [grid] * len(kernels)
    if len(grids) != len(kernels):
        raise ValueError(f"grid must have one entry for each kernel: {len(kernels)} kernels, got {len(grids)} entries.")
    names = _names(kernels)
    entries = []
    for i, (one, values) in enumerate(zip(kernels, grids, strict=True)):
        if values != "auto" and not isinstance(values, Mapping):
            raise ValueError(f"grid[{i}] must be 'auto' or a dict of parameter: list of values; got {values!r}.")
        grid = split_pipeline(one)[1].default_param_grid() if values == "auto" else values
        entries.append(Entry(names[i], with_jobs(one, n_jobs), grid))
    return entries


def with_jobs(kernel: Any, n_jobs: int | None) -> Any:
    """A copy of the kernel with this number of threads; None: with its own."""
    return with_parameters(
        kernel, {} if n_jobs is None or "n_jobs" not in parameter_names(kernel) else {"n_jobs": n_jobs}
    )


def named_kernel(name: str) -> GraphKernel:
    """The kernel that the command line and studies know by this name, with its default parameters."""
    if name == AUTO:
        raise ValueError("kernel 'auto' goes alone, not in a list: it has candidates of its own.")
    if name not in KERNELS:
        close = get_close_matches(name.lower(), KERNELS, n=3) or list(KERNELS)
        raise ValueError(f"kernel {name!r} is unknown. Did you mean {' or '.join(close)}?")
    kernel: GraphKernel = KERNELS[name]()
    return kernel


def _names(kernels: list[Any]) -> list[str]:
    """Classes of the steps; where two kernels are of the same classes, with their parameters."""
    steps = []
    for i, kernel in enumerate(kernels):
        before, final = split_pipeline(kernel, "kernel" if len(kernels) == 1 else f"kernel[{i}]")
        steps.append([*before, final])
    short = [" > ".join(type(step).__name__ for step in parts) for parts in steps]
    long = [" > ".join(" ".join(repr(step).split()) for step in parts) for parts in steps]
    return [name if short.count(name) == 1 else long[i] for i, name in enumerate(short)]


def check_strengths(name: str, values: Any) -> Floats:
    """Strengths of regularization, ascending, each once; ``name`` is the parameter that they came from."""
    try:
        strengths = np.unique(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or a list of numbers; got {values!r}.") from None
    if not strengths.size:
        raise ValueError(f"{name} must hold at least one value; got {values!r}.")
    if not (np.isfinite(strengths).all() and strengths[0] > 0):
        raise ValueError(f"{name} must be positive and finite; got {values!r}.")
    return strengths


def search(
    entries: Iterable[Entry],
    given: Given,
    score: Score,
    strength: str,
    *,
    budget: Budget,
    n_jobs: int | None,
    verbose: int = 0,
    blocks: Blocks | None = None,
) -> Found:
    """Score all candidates on the same folds, and choose the best.

    ``score(K, train, test)`` gives one score for each strength; with ``blocks`` K is what these give for each point, not a
    Gram matrix. Of equals the first kernel is chosen, of its points the
    first, and of its strengths the first. Gram matrices are made some at a time, and only scores are kept. When the budget is
    spent, no further entry is begun; the first one always is.
    """
    if blocks is None:
        check_memory(len(given.graphs))
    tried: list[Tried] = []
    for entry in entries:
        if tried and budget.is_spent():
            tried.append(Tried(entry, len(given.graphs), TIME_IS_UP))
            continue
        tried.append(try_entry(entry, given, score, budget.clock, n_jobs, blocks)[0])
        tell(tried[-1], verbose)
    return conclude(tried, given, strength)


def try_entry(
    entry: Entry,
    given: Given,
    score: Score,
    clock: Callable[[], float],
    n_jobs: int | None,
    blocks: Blocks | None = None,
) -> tuple[Tried, list[Floats]]:
    """Score all points of an entry's grid; the Gram matrices of the last block come along."""
    start = clock()
    points: list[dict[str, Any]] = []
    scores: list[Floats] = []
    grams: list[Floats] = []
    fits, similarity = Fits(), 0.0 if blocks is None else 1.0
    for some_points, grams in (blocks or _gram_blocks)(entry, given.graphs):
        some, counted_fits = try_grams(entry.name, grams, given, score, n_jobs)
        points += some_points
        scores.append(some)
        fits += counted_fits
        if blocks is None:
            similarity = max(similarity, *map(nearest_similarity, grams))
    tried = Tried(entry, len(given.graphs), "", clock() - start, points, np.concatenate(scores), fits, similarity)
    return tried, grams


def try_grams(name: str, grams: list[Floats], given: Given, score: Score, n_jobs: int | None) -> tuple[Floats, Fits]:
    """Scores of some Gram matrices, (n_grams, n_folds, n_strengths); equal matrices are scored once."""
    kept, positions = distinct(grams)
    tasks = [(K, train, test) for K in kept for train, test in given.splits]
    outcomes = list(run_tasks(score, tasks, n_jobs=n_jobs, label=f"cross-validating {name}"))
    scores = np.array([some for some, _ in outcomes], dtype=np.float64).reshape(len(kept), len(given.splits), -1)
    if not np.isfinite(scores).all():
        raise ValueError(f"scoring gave a score that is not a finite number for {name}.")
    return scores[positions], sum((some for _, some in outcomes), Fits())


def tell(tried: Tried, verbose: int) -> None:
    """Print a line about an entry, if that is wanted."""
    if verbose and len(tried.points):
        on = f"{counted(len(tried.points), 'point')}, best score {tried.score:.4f}, {tried.seconds:.1f} s"
        print(f"{tried.entry.name}: {on}")
    elif verbose:
        print(f"{tried.entry.name}: {tried.note}")


def conclude(tried: Sequence[Tried], given: Given, strength: str, chosen: Entry | None = None) -> Found:
    """The best of what was tried on all graphs, or of the chosen entry, and the table and the account of all."""
    scored = [one for one in tried if len(one.points) and one.n_graphs == len(given.graphs)]
    names = ", ".join(one.entry.name for one in scored)
    warn_if_diagonal([one.similarity for one in scored], names, has_attributes=given.graphs.n_attributes > 0)
    candidates = [(one.entry, point) for one in scored for point in one.points]
    by_fold = np.concatenate([one.scores for one in scored])  # (n_points, n_folds, n_strengths)
    is_open = np.array([chosen is None or one is chosen for one, _ in candidates])
    best, place = choose(np.where(is_open[:, None], by_fold.mean(axis=1), -np.inf))
    entry, point = candidates[best]
    params = [{"kernel": one.name, **some, strength: float(v)} for one, some in candidates for v in given.strengths]
    account = [one.record() for one in tried]
    next(r for r, one in zip(account, tried, strict=True) if one.entry is entry and one in scored)["note"] = "chosen"
    return Found(
        kernel=with_parameters(entry.kernel, point),
        index=best * len(given.strengths) + place,
        table=_tabulate(params, by_fold.swapaxes(1, 2).reshape(len(params), -1)),
        fits=sum((one.fits for one in tried), Fits()),
        account=account,
    )


def _gram_blocks(entry: Entry, graphs: Graphs) -> Iterator[tuple[list[dict[str, Any]], list[Floats]]]:
    """The points of a grid with their Gram matrices, in the grid's order, as many at a time as HELD_AT_ONCE allows."""
    for part in split_grid(entry.grid, HELD_AT_ONCE // (8 * max(len(graphs), 1) ** 2)):
        points, grams = gram_grids(entry.kernel, graphs, part)
        for point, K in zip(points, grams, strict=True):
            if not np.isfinite(K).all():
                raise ValueError(f"The Gram matrix of {entry.name} with {point} has entries that are not finite.")
        yield points, grams


def split_grid(grid: Grid, most: int) -> list[Grid]:
    """Grids of at most so many points, or of one, that are the given one together, in its order."""
    sizes = {name: len(values) for name, values in grid.items() if hasattr(values, "__len__")}
    longer = next((name for name, size in sizes.items() if size > 1), None)
    if longer is None or prod(sizes.values()) <= most:
        return [grid]
    return [part for value in grid[longer] for part in split_grid({**grid, longer: [value]}, most)]


def _tabulate(candidates: list[dict[str, Any]], scores: Floats) -> dict[str, Any]:
    """A table as scikit-learn's ``GridSearchCV`` makes it, of (n_candidates, n_folds) scores."""
    means = scores.mean(axis=1)
    table: dict[str, Any] = {}
    for name in dict.fromkeys(name for candidate in candidates for name in candidate):
        # Masked where a kernel has no such parameter.
        column = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
        for i, candidate in enumerate(candidates):
            if name in candidate:
                column[i] = candidate[name]
        table[f"param_{name}"] = column
    table["params"] = candidates
    table |= {f"split{i}_test_score": column for i, column in enumerate(scores.T)}
    table["mean_test_score"] = means
    table["std_test_score"] = scores.std(axis=1)
    table["rank_test_score"] = rankdata(-np.round(means, 12), method="min").astype(np.int32)
    return table
