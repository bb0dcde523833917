"""The search that all models share: every point of every kernel's grid, with every strength of regularisation.

A model brings one function that fits on some graphs, predicts others, and scores all strengths at once. Whatever a kernel
learns from data it learns from all graphs of the search and from no target; models are selected within these graphs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.pipeline import Pipeline

from treegram._parallel import run_tasks
from treegram._params import LIST, NOTHING, SEED, Allowed, Instance, Number, Whole, Words
from treegram._types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels import ODDCL
from treegram.kernels._base import GraphKernel
from treegram.kernels._grids import gram_grids, parameter_names, with_parameters
from treegram.kernels._pipelines import split_pipeline
from treegram.selection.crossval import Fits, check_targets, choose, distinct

__all__ = [
    "SEARCH",
    "STRENGTHS",
    "Entry",
    "Found",
    "check_fit",
    "check_strengths",
    "keep",
    "list_entries",
    "search",
    "takes_graphs",
]

Grid = Mapping[str, Sequence[Any]]
Score = Callable[[Floats, Ints, Ints], tuple[Floats, Fits]]

STRENGTHS: Allowed = (Number(0, above=True), LIST)
SEARCH: Mapping[str, Allowed] = {
    "kernel": (Instance((GraphKernel, Pipeline), "a kernel"), Instance((list, tuple), "a list of kernels"), NOTHING),
    "grid": (Words("auto"), Instance((dict,), "a dict of lists"), Instance((list, tuple), "a list of these")),
    "cv": (Whole(2),),
    "random_state": SEED,
    "n_jobs": (Whole(), NOTHING),
}


@dataclass(frozen=True)
class Entry:
    """A kernel and the grid to search for it."""

    name: str
    kernel: Any  # a kernel, or a pipeline that ends in one
    grid: Grid


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    kernel: Any  # the best, not fitted
    index: int  # its place in the table
    table: dict[str, Any]  # as scikit-learn's cv_results_
    fits: Fits


def list_entries(kernel: Any, grid: Any, n_jobs: int | None) -> list[Entry]:
    """The kernels that a user gave, each with its grid; ``n_jobs=None`` leaves each kernel its own number of threads."""
    kernels = list(kernel) if isinstance(kernel, list | tuple) else [ODDCL() if kernel is None else kernel]
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
        with_jobs = {} if n_jobs is None or "n_jobs" not in parameter_names(one) else {"n_jobs": n_jobs}
        entries.append(
            Entry(
                names[i],
                with_parameters(one, with_jobs),
                split_pipeline(one)[1].usual_grid() if values == "auto" else values,
            )
        )
    return entries


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
    """Strengths of regularisation, ascending, each once; ``name`` is the parameter that they came from."""
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
    graphs: Graphs,
    splits: Sequence[tuple[Ints, Ints]],
    score: Score,
    strengths: tuple[str, Floats],
    n_jobs: int | None,
) -> Found:
    """Score all candidates on the same folds, and choose the best.

    ``score(K, train, test)`` gives one score for each strength. Of equals the first kernel is chosen, of its points the
    first, and of its strengths the first.
    """
    name, values = strengths
    candidates: list[tuple[Entry, dict[str, Any]]] = []
    scores: list[Floats] = []
    fits = Fits()
    for entry in entries:
        points, some, counted = _score_entry(entry, graphs, splits, score, n_jobs)
        candidates += [(entry, point) for point in points]
        scores.append(some)
        fits += counted
    by_fold = np.concatenate(scores)  # (n_points, n_folds, n_strengths)
    point, strength = choose(by_fold.mean(axis=1))
    best, parameters = candidates[point]
    return Found(
        kernel=with_parameters(best.kernel, parameters),
        index=point * len(values) + strength,
        table=_tabulate(
            [{"kernel": entry.name, **point, name: float(value)} for entry, point in candidates for value in values],
            by_fold.swapaxes(1, 2).reshape(len(candidates) * len(values), len(splits)),
        ),
        fits=fits,
    )


def _score_entry(
    entry: Entry, graphs: Graphs, splits: Sequence[tuple[Ints, Ints]], score: Score, n_jobs: int | None
) -> tuple[list[dict[str, Any]], Floats, Fits]:
    """The points of one grid and their scores, (n_points, n_folds, n_strengths); equal matrices are scored once."""
    points, grams = gram_grids(entry.kernel, graphs, entry.grid)
    for point, K in zip(points, grams, strict=True):
        if not np.isfinite(K).all():
            raise ValueError(f"The Gram matrix of {entry.name} with {point} has entries that are not finite.")
    kept, positions = distinct(grams)
    tasks = [(K, train, test) for K in map(np.ascontiguousarray, kept) for train, test in splits]
    outcomes = list(run_tasks(score, tasks, n_jobs=n_jobs, label=f"cross-validating {entry.name}"))
    scores = np.array([some for some, _ in outcomes]).reshape(len(kept), len(splits), -1)
    return points, scores[positions], sum((counted for _, counted in outcomes), Fits())


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


# -------------------------------------------------------------------- what estimators do with it


def check_fit(X: Any, y: Any) -> tuple[Graphs, NDArray[Any]]:
    """The graphs and their targets, as many of one as of the other."""
    graphs, targets = as_graphs(X), check_targets(y)
    if len(graphs) != len(targets):
        raise ValueError(f"y must have one target for each graph: {len(graphs)} graphs, got {len(targets)} targets.")
    return graphs, targets


def keep(model: Any, found: Found) -> None:
    """Write down what a search has found; the kernel is fitted next."""
    model.kernel_ = found.kernel
    model.cv_results_ = found.table
    model.best_index_ = found.index
    model.best_params_ = found.table["params"][found.index]
    model.best_score_ = float(found.table["mean_test_score"][found.index])


def takes_graphs(tags: Any) -> Any:
    """The tags of an estimator whose X is a list of graphs, not a table."""
    tags.input_tags.two_d_array = False
    tags.input_tags.one_d_array = True
    return tags
