"""The search that all models share: every point of every kernel's grid, with every strength of regularisation.

A model brings one function that fits on some graphs, predicts others, and scores all strengths at once. Whatever a kernel
learns from data it learns from all graphs of the search and from no target; models are selected within these graphs alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline

from treegram._parallel import run_tasks
from treegram._params import FLAG, FUNCTION, LIST, NOTHING, SEED, SPLITTER, Allowed, Instance, Number, Whole, Words
from treegram._types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels import ODDCL
from treegram.kernels._base import GraphKernel
from treegram.kernels._grids import gram_grids, parameter_names, with_parameters
from treegram.kernels._pipelines import split_pipeline
from treegram.kernels.registry import KERNELS
from treegram.selection._memory import HELD_AT_ONCE, check_memory
from treegram.selection.crossval import Fits, check_targets, choose, distinct

__all__ = [
    "SEARCH",
    "STRENGTHS",
    "Entry",
    "Found",
    "check_fit",
    "check_strengths",
    "check_weights",
    "gram_blocks",
    "keep",
    "list_entries",
    "list_splits",
    "named_kernel",
    "search",
    "split_grid",
    "takes_graphs",
]

Grid = Mapping[str, Sequence[Any]]
Score = Callable[[Floats, Ints, Ints], tuple[Floats, Fits]]

STRENGTHS: Allowed = (Number(0, above=True), LIST)
SEARCH: Mapping[str, Allowed] = {
    "kernel": (
        Instance((GraphKernel, Pipeline), "a kernel"),
        Instance((str,), "the name of a kernel"),
        Instance((list, tuple), "a list of these"),
        NOTHING,
    ),
    "grid": (Words("auto"), Instance((dict,), "a dict of lists"), Instance((list, tuple), "a list of these")),
    "scoring": (Instance((str,), "the name of a scorer of scikit-learn"), FUNCTION, NOTHING),
    "cv": (Whole(2), SPLITTER, LIST),
    "random_state": SEED,
    "n_jobs": (Whole(), NOTHING),
    "verbose": (FLAG, Whole(0)),
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
        with_jobs = {} if n_jobs is None or "n_jobs" not in parameter_names(one) else {"n_jobs": n_jobs}
        entries.append(
            Entry(
                names[i],
                with_parameters(one, with_jobs),
                split_pipeline(one)[1].usual_grid() if values == "auto" else values,
            )
        )
    return entries


def named_kernel(name: str) -> GraphKernel:
    """The kernel that the command line and studies know by this name, with its default parameters."""
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
    *,
    n_jobs: int | None,
    verbose: int = 0,
) -> Found:
    """Score all candidates on the same folds, and choose the best.

    ``score(K, train, test)`` gives one score for each strength. Of equals the first kernel is chosen, of its points the
    first, and of its strengths the first. Gram matrices are made some at a time, and only scores are kept.
    """
    check_memory(len(graphs))
    name, values = strengths
    candidates: list[tuple[Entry, dict[str, Any]]] = []
    scores: list[Floats] = []
    fits = Fits()
    for entry in entries:
        start, first = time.monotonic(), len(candidates)
        for points, grams in gram_blocks(entry, graphs):
            some, counted = _score_block(entry.name, grams, splits, score, n_jobs)
            candidates += [(entry, point) for point in points]
            scores.append(some)
            fits += counted
        if verbose:
            n_points, best_score = len(candidates) - first, np.concatenate(scores)[first:].mean(axis=1).max()
            plural = "s" * (n_points > 1)
            print(
                f"{entry.name}: {n_points} point{plural}, best score {best_score:.4f}, {time.monotonic() - start:.1f} s"
            )
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


def gram_blocks(entry: Entry, graphs: Graphs) -> Iterator[tuple[list[dict[str, Any]], list[Floats]]]:
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


def _score_block(
    name: str, grams: list[Floats], splits: Sequence[tuple[Ints, Ints]], score: Score, n_jobs: int | None
) -> tuple[Floats, Fits]:
    """Scores of some Gram matrices, (n_grams, n_folds, n_strengths); equal matrices are scored once."""
    kept, positions = distinct(grams)
    tasks = [(K, train, test) for K in kept for train, test in splits]
    outcomes = list(run_tasks(score, tasks, n_jobs=n_jobs, label=f"cross-validating {name}"))
    scores = np.array([some for some, _ in outcomes], dtype=np.float64).reshape(len(kept), len(splits), -1)
    if not np.isfinite(scores).all():
        raise ValueError(f"scoring gave a score that is not a finite number for {name}.")
    return scores[positions], sum((counted for _, counted in outcomes), Fits())


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


def check_weights(sample_weight: Any, n_graphs: int) -> Floats | None:
    """Weights of graphs, finite and not negative; None for None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_graphs,):
        raise ValueError(
            f"sample_weight must have one number for each of {n_graphs} graphs; got shape {weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            f"sample_weight must be finite and not negative; sample_weight[{wrong[0]}] is {weights[wrong[0]]}."
        )
    return weights


def list_splits(cv: Any, y: NDArray[Any], groups: Any) -> list[tuple[Ints, Ints]]:
    """(training, test) ids of a splitter, or of an iterable of such pairs."""
    splits = list(check_cv(cv).split(np.zeros(len(y)), y, groups))
    if not splits:
        raise ValueError(f"cv must give at least one pair of training and test ids; got {cv!r}.")
    return [(np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)) for train, test in splits]


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
