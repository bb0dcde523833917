"""The search that all models share: every point of every kernel's grid with every strength of regularization.

A model provides one function that fits on some graphs, predicts others, and scores all strengths at once. Whatever a kernel
learns from data, it learns from all graphs of the search and from no target; models are selected within these graphs alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from treegram._core.errors import ParameterError
from treegram._core.machine import available_bytes, spell_bytes
from treegram._core.parallel import run_tasks
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.base import AUTO, KERNELS, PRECOMPUTED, GraphKernel
from treegram.kernels.grid import Grid, GridPoint, grid_points, parameter_names, split_pipeline, with_parameters
from treegram.models.crossval import Fits, choose, distinct

__all__ = [
    "CHOSEN",
    "HELD_AT_ONCE",
    "TIME_IS_UP",
    "Candidate",
    "Data",
    "MakeScore",
    "Precomputed",
    "Score",
    "Search",
    "SearchResult",
    "Splits",
    "Trial",
    "check_gram",
    "check_memory",
    "chosen_name",
    "list_candidates",
    "nearest_similarity",
    "warn_if_diagonal",
    "with_jobs",
]

ParamGrid: TypeAlias = Mapping[str, Sequence[Any]]
Splits: TypeAlias = list[tuple[Ints, Ints]]

CHOSEN = "chosen"
TIME_IS_UP = "left out: time was up"
HELD_AT_ONCE = 2**30  # bytes of Gram matrices that a search holds at once; one matrix where a single one is larger
_COPIES = 3  # of a Gram matrix: itself, one more while it is computed, and its blocks in the folds
_DIAGONAL = 0.1  # nearest similarity; usual data has 0.15 and more, vectors in too large a unit give 0.00 to 0.06
_ASYMMETRY = 1e-8  # of a Gram matrix, over its largest entry: more than rounding
_MIN_GRAPHS = 20  # to judge that similarity
_ROWS = 200  # that are examined for it, evenly spread
clock = time.monotonic  # measures max_seconds


@dataclass(frozen=True)
class Data:
    """Graphs with targets, folds, and the strengths of regularization to try on them."""

    graphs: Any  # Graphs, or for kernel="precomputed" their Gram matrix
    targets: NDArray[Any]  # codes of classes, or numbers
    weights: Floats | None  # of the graphs
    strengths: Floats  # of regularization, in the order in which they are tried
    splits: Splits  # (training, test) ids of the folds


Score: TypeAlias = Callable[[Floats, Ints, Ints], tuple[Floats, Fits]]  # of a Gram matrix, training and test ids
MakeScore: TypeAlias = Callable[[Data], Score]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel, or a pipeline that ends in one, and the grid to search for it."""

    name: str
    kernel: Any
    param_grid: ParamGrid = field(default_factory=dict)
    reason: str = "requested"


@dataclass(frozen=True, eq=False)
class Trial:
    """The scores of a candidate, or why it has none."""

    candidate: Candidate
    n_graphs: int
    note: str = ""
    seconds: float = 0.0
    points: Sequence[dict[str, Any]] = ()  # of the grid
    scores: Floats = field(default_factory=lambda: np.empty((0, 1, 1)))  # (n_points, n_folds, n_strengths)
    fits: Fits = field(default_factory=Fits)
    similarity: float = 1.0  # nearest_similarity of the best point

    @property
    def score(self) -> float:
        """Return the best mean over the folds, or -inf."""
        return float(self.scores.mean(axis=1).max(initial=-np.inf))

    def record(self) -> dict[str, Any]:
        """Return the trial as plain values, for ``search_results_``."""
        return {
            "candidate": self.candidate.name,
            "reason": self.candidate.reason,
            "n_graphs": self.n_graphs,
            "score": self.score if len(self.points) else None,
            "seconds": self.seconds,
            "note": self.note or ("nearly diagonal" if self.similarity < _DIAGONAL else ""),
        }


@dataclass(frozen=True)
class SearchResult:
    """The best kernel, not fitted, and all scores."""

    kernel: Any
    index: int  # of the best row of the table
    table: dict[str, Any]  # as scikit-learn's cv_results_
    fits: Fits
    records: list[dict[str, Any]]  # one for each trial


# -------------------------------------------------------------------- candidates of the user


def list_candidates(kernel: Any, param_grid: Any, n_jobs: int | None) -> list[Candidate]:
    """Return the kernels that a user named, each with its grid; ``n_jobs=None`` leaves each kernel its own number of threads."""
    kernels = list(kernel) if isinstance(kernel, list | tuple) else [kernel]
    kernels = [_named_kernel(one) if isinstance(one, str) else one for one in kernels]
    if not kernels:
        raise ValueError("kernel must be a kernel or a list of at least one; got an empty list.")
    grids = list(param_grid) if isinstance(param_grid, list | tuple) else [param_grid] * len(kernels)
    if len(grids) != len(kernels):
        raise ValueError(
            f"param_grid must have one entry for each kernel: {len(kernels)} kernels, got {len(grids)} entries."
        )
    names = _names(kernels)
    candidates = []
    for i, (one, grid) in enumerate(zip(kernels, grids, strict=True)):
        if grid != "auto" and not isinstance(grid, Mapping):
            raise ValueError(f"param_grid[{i}] must be 'auto' or a dict of parameter: list of values; got {grid!r}.")
        values = split_pipeline(one)[1].default_param_grid() if grid == "auto" else grid
        candidates.append(Candidate(names[i], with_jobs(one, n_jobs), values))
    return candidates


def with_jobs(kernel: Any, n_jobs: int | None) -> Any:
    """Return a copy of the kernel with this number of threads; None keeps its own."""
    has_jobs = n_jobs is not None and "n_jobs" in parameter_names(kernel)
    return with_parameters(kernel, {"n_jobs": n_jobs} if has_jobs else {})


def _named_kernel(name: str) -> GraphKernel:
    """Return the kernel of this name on the command line and in studies, with its default parameters."""
    if name == AUTO:
        raise ValueError("kernel 'auto' must be the only one, not in a list: it has candidates of its own.")
    if name == PRECOMPUTED:
        raise ValueError(
            "kernel 'precomputed' must be the only one, not in a list, and only GraphSVC and GraphRidge take it."
        )
    if name not in KERNELS:
        close = get_close_matches(name.lower(), KERNELS, n=3) or list(KERNELS)
        raise ValueError(f"kernel {name!r} is unknown. Did you mean {' or '.join(close)}?")
    kernel: GraphKernel = KERNELS[name]()
    return kernel


def _names(kernels: list[Any]) -> list[str]:
    """Name kernels by the classes of their steps, with parameters where two have the same classes."""
    steps = []
    for i, kernel in enumerate(kernels):
        before, final = split_pipeline(kernel, "kernel" if len(kernels) == 1 else f"kernel[{i}]")
        steps.append([*before, final])
    short = [" > ".join(type(step).__name__ for step in some) for some in steps]
    long = [" > ".join(" ".join(repr(step).split()) for step in some) for some in steps]
    return [name if short.count(name) == 1 else long[i] for i, name in enumerate(short)]


# -------------------------------------------------------------------- Gram matrices of the user


class Precomputed(BaseEstimator):
    """The kernel of ``kernel="precomputed"``: it takes Gram matrices where other kernels take graphs."""

    def fit_transform(self, X: Floats) -> Floats:
        """Return the Gram matrix, which has been checked."""
        self.n_graphs_ = len(X)
        return X

    def transform(self, X: Any) -> Floats:
        """Return the checked kernels of new graphs with the fitted ones."""
        rows = _check_matrix(X)
        if rows.shape[1] != self.n_graphs_:
            raise ValueError(
                f"X must have a column for each of the {self.n_graphs_} fitted graphs, as kernel='precomputed' takes kernels of new "
                f"graphs with these; got shape {rows.shape}."
            )
        return rows

    def _grid_names(self) -> dict[str, bool]:
        return {}

    def _with(self, values: Mapping[str, Any]) -> Precomputed:  # noqa: ARG002
        return Precomputed()

    def _check_parameters(self) -> None:
        """Do nothing: there are no parameters."""

    def _grid_pass(self, X: Floats, X_new: Floats, param_grid: Grid) -> list[GridPoint]:  # noqa: ARG002
        return [GridPoint({}, X, X_new, np.empty(0))]


def check_gram(X: Any) -> Floats:
    """Return the Gram matrix of graphs to fit as an array; raise unless it is square, finite and symmetric."""
    K = _check_matrix(X)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X must be the square Gram matrix of the graphs to fit with kernel='precomputed'; got shape {K.shape}."
        )
    difference = np.abs(K - K.T)
    if difference.max(initial=0.0) > _ASYMMETRY * np.abs(K).max(initial=0.0):
        i, j = np.unravel_index(int(difference.argmax()), K.shape)
        raise ValueError(f"X must be a symmetric matrix; X[{i}, {j}] is {K[i, j]} and X[{j}, {i}] is {K[j, i]}.")
    return K


def _check_matrix(X: Any) -> Floats:
    if isinstance(X, Graphs):
        raise ParameterError("X must be a matrix with kernel='precomputed'; got graphs. For graphs, use a kernel.")
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"X must be a matrix of numbers with kernel='precomputed'; got {type(X).__name__}.") from None
    if matrix.ndim != 2:
        raise ValueError(f"X must be a matrix with kernel='precomputed'; got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"X must be finite; X[{i}, {j}] is {matrix[i, j]}.")
    return matrix


# -------------------------------------------------------------------- the search


class Search:
    """One search: its data, the score of a model, and the trials so far."""

    def __init__(
        self,
        data: Data,
        make_score: MakeScore,
        strength: str,
        *,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        check_memory(len(data.graphs))
        self.data, self.make_score, self.strength = data, make_score, strength
        self.n_jobs, self.verbose = n_jobs, verbose
        self.clock = clock
        self.deadline = None if max_seconds is None else clock() + max_seconds
        self.trials: list[Trial] = []

    def is_out_of_time(self) -> bool:
        """Return whether no new work should begin."""
        return self.deadline is not None and self.clock() >= self.deadline

    def try_all(self, candidates: Iterable[Candidate]) -> None:
        """Try candidates while there is time, and the first in any case."""
        score = self.make_score(self.data)
        for candidate in candidates:
            if self.trials and self.is_out_of_time():
                self.add(Trial(candidate, len(self.data.graphs), TIME_IS_UP))
            else:
                self.add(self._try(candidate, score))

    def add(self, trial: Trial) -> None:
        """Record a trial, and print it if the search is verbose."""
        self.trials.append(trial)
        if self.verbose:
            scored = f"{counted(len(trial.points), 'point')}, best score {trial.score:.4f}, {trial.seconds:.1f} s"
            print(f"{trial.candidate.name}: {scored if len(trial.points) else trial.note}")

    def _try(self, candidate: Candidate, score: Score) -> Trial:
        """Score all points of a candidate's grid."""
        start, graphs = self.clock(), self.data.graphs
        points: list[dict[str, Any]] = []
        scores: list[Floats] = []
        fits, similarity = Fits(), 0.0
        for some_points, grams in _gram_blocks(candidate, graphs):
            some_scores, some_fits = self._score_grams(candidate.name, grams, score)
            points += some_points
            scores.append(some_scores)
            fits += some_fits
            similarity = max(similarity, *map(nearest_similarity, grams))
        seconds = self.clock() - start
        return Trial(candidate, len(graphs), "", seconds, points, np.concatenate(scores), fits, similarity)

    def _score_grams(self, name: str, grams: list[Floats], score: Score) -> tuple[Floats, Fits]:
        """Return the scores of some Gram matrices, (n_grams, n_folds, n_strengths); equal matrices are scored once."""
        kept, positions = distinct(grams)
        splits = self.data.splits
        tasks = [(K, train, test) for K in kept for train, test in splits]
        outcomes = list(run_tasks(score, tasks, n_jobs=self.n_jobs, label=f"cross-validating {name}"))
        scores = np.array([some for some, _ in outcomes], dtype=np.float64).reshape(len(kept), len(splits), -1)
        if not np.isfinite(scores).all():
            raise ValueError(f"scoring gave a score that is not a finite number for {name}.")
        return scores[positions], sum((some for _, some in outcomes), Fits())

    def conclude(self) -> SearchResult:
        """Return the best of all trials; ties go to the first candidate, then to the first point, then to the first strength."""
        data = self.data
        scored = [one for one in self.trials if len(one.points)]
        names = ", ".join(one.candidate.name for one in scored)
        has_attributes = data.graphs.n_attributes > 0 if isinstance(data.graphs, Graphs) else None
        warn_if_diagonal([one.similarity for one in scored], names, has_attributes=has_attributes)
        rows = [(one.candidate, point) for one in scored for point in one.points]
        by_fold = np.concatenate([one.scores for one in scored])  # (n_points, n_folds, n_strengths)
        best, at_strength = choose(by_fold.mean(axis=1))
        records = [one.record() for one in self.trials]
        best_trial = next(one for one in scored if one.candidate is rows[best][0])
        records[self.trials.index(best_trial)]["note"] = CHOSEN
        table = _tabulate(rows, self.strength, data.strengths, by_fold)
        index = best * len(data.strengths) + at_strength
        fits = sum((one.fits for one in self.trials), Fits())
        return SearchResult(table["params"][index]["kernel"], index, table, fits, records)


def chosen_name(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of the chosen candidate in ``search_results_``."""
    return next(str(record["candidate"]) for record in records if record["note"] == CHOSEN)


def check_memory(n_graphs: int) -> None:
    """Raise if a search over this number of graphs does not fit in memory, however few Gram matrices it holds at once."""
    needed = _COPIES * 8 * n_graphs**2
    available = available_bytes()
    if needed > available:
        raise MemoryError(
            f"A search over {n_graphs:,} graphs needs {spell_bytes(needed)} for Gram matrices, {_COPIES} of {n_graphs:,} x "
            f"{n_graphs:,} numbers; {spell_bytes(available)} is available. Fit on fewer graphs, or avoid Gram matrices: "
            "make_pipeline(Nystroem(kernel), LinearSVC()), or ODDCLFeatures before a linear model."
        )


def _gram_blocks(candidate: Candidate, graphs: Graphs) -> Iterator[tuple[list[dict[str, Any]], list[Floats]]]:
    """Yield the points of a grid with their Gram matrices, in the grid's order, as many at a time as HELD_AT_ONCE allows."""
    for grid in _split_grid(candidate.param_grid, HELD_AT_ONCE // (8 * max(len(graphs), 1) ** 2)):
        points = grid_points(candidate.kernel, graphs, grid)
        for point in points:
            if not np.isfinite(point.gram).all():
                raise ValueError(
                    f"The Gram matrix of {candidate.name} with {point.params} has entries that are not finite."
                )
        yield [point.params for point in points], [point.gram for point in points]


def _split_grid(grid: ParamGrid, n_points: int) -> list[ParamGrid]:
    """Split a grid into consecutive grids of at most n_points, or of one point."""
    sizes = {name: len(values) for name, values in grid.items() if hasattr(values, "__len__")}
    longer = next((name for name, size in sizes.items() if size > 1), None)
    if longer is None or prod(sizes.values()) <= n_points:
        return [grid]
    return [one for value in grid[longer] for one in _split_grid({**grid, longer: [value]}, n_points)]


def _tabulate(
    rows: list[tuple[Candidate, dict[str, Any]]], strength: str, strengths: Floats, by_fold: Floats
) -> dict[str, Any]:
    """Return a table like ``cv_results_`` of scikit-learn, with one row for each point and strength.

    ``params`` are parameters of a new model; the other columns name the kernel and the values of its grid.
    """
    values, params = [], []
    for candidate, point in rows:
        kernel = with_parameters(candidate.kernel, point)
        for number in strengths.tolist():
            values.append({"kernel": candidate.name, **point, strength: number})
            params.append({"kernel": kernel, "param_grid": {}, strength: number})
    table: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in values for name in row):
        # Masked where a kernel has no such parameter.
        column = np.ma.MaskedArray(np.empty(len(values), dtype=object), mask=True)
        for i, row in enumerate(values):
            if name in row:
                column[i] = row[name]
        table[f"param_{name}"] = column
    table["params"] = params
    scores = by_fold.swapaxes(1, 2).reshape(len(values), -1)
    means = scores.mean(axis=1)
    table |= {f"split{i}_test_score": column for i, column in enumerate(scores.T)}
    table["mean_test_score"] = means
    table["std_test_score"] = scores.std(axis=1)
    table["rank_test_score"] = rankdata(-np.round(means, 12), method="min").astype(np.int32)
    return table


# -------------------------------------------------------------------- Gram matrices from which nothing can be learned


def nearest_similarity(K: Floats) -> float:
    """Return the similarity of a graph and the graph nearest to it, from 0 to 1: the median over graphs, after normalization.

    For few graphs, return 1: no two of them need be alike.
    """
    if len(K) < _MIN_GRAPHS:
        return 1.0
    rows = np.unique(np.linspace(0, len(K) - 1, _ROWS).astype(np.int64))
    roots = np.sqrt(np.maximum(K.diagonal(), 0.0))
    similarities = K[rows] / np.maximum(np.outer(roots[rows], roots), np.finfo(np.float64).tiny)
    similarities[np.arange(len(rows)), rows] = -np.inf
    return float(np.median(similarities.max(axis=1)))


def warn_if_diagonal(similarities: Iterable[float], name: str, *, has_attributes: bool | None) -> None:
    """Warn, with a cure, if all Gram matrices of a kernel are nearly the identity, by their `nearest_similarity`.

    ``has_attributes`` is None for a matrix whose graphs are unknown.
    """
    highest = 0.0
    for similarity in similarities:
        highest = max(highest, similarity)
        if highest >= _DIAGONAL:
            return
    cure = (
        "The vectors are far apart for the width of the node kernel: scale them (ScaleAttributes, --scale standard), or make it "
        "wider (gamma='scale', --gamma scale)."
        if has_attributes
        else "Use a kernel under which graphs have more in common."
        if has_attributes is None
        else "Hardly any label or structure occurs in two graphs: use fewer distinct labels, or smaller depths."
    )
    warnings.warn(
        f"{name}: the Gram matrices are nearly diagonal. Even the nearest graph has a similarity of only {highest:.2g} "
        f"(median over graphs), so little can be learned. {cure}",
        stacklevel=2,
    )
