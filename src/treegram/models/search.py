"""The search shared by all models: every point of every kernel's grid with every strength of regularization.

A model provides one function that fits on some graphs, predicts others, and scores all strengths at once. Whatever a
kernel learns from data, it learns from all graphs of the search and never from targets; models are selected within
these graphs alone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isfunction
from math import prod
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_array

from treegram._core.bases import BaseEstimator, ClassifierMixin, RegressorMixin
from treegram._core.machine import require
from treegram._core.parallel import run_tasks
from treegram._core.text import counted, warn_user
from treegram._core.types import Array, Floats, Ints
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs
from treegram.kernels.grid import grid_points, parameter_names, split_pipeline, with_parameters
from treegram.kernels.registry import AUTO, PRECOMPUTED, kernel_by_name

Splits: TypeAlias = list[tuple[Ints, Ints]]
ParamGrid: TypeAlias = Mapping[str, Sequence[Any]]

HELD_AT_ONCE = 2**30  # bytes of Gram matrices that a search holds at once; one matrix if a single one is larger
_COPIES = 3  # of a Gram matrix: itself, one more while it is computed, and its blocks in the folds
_DIAGONAL = 0.1  # nearest similarity; typical data has 0.15 or more, badly scaled vectors 0.00 to 0.06
_ASYMMETRY = 1e-8  # of a Gram matrix, relative to its largest entry: more than rounding
_MIN_GRAPHS = 20  # needed to judge that similarity
_ROWS = 200  # examined for it, evenly spaced
_DIGITS = 12  # of Gram matrices and mean scores that are compared: the rest is rounding


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel, or a pipeline that ends in one, and the grid to search for it."""

    name: str
    kernel: Any
    param_grid: ParamGrid = field(default_factory=dict)
    reason: str = "requested"


@dataclass(frozen=True)
class Fits:
    """The number of fits, and the number of those that ended before the tolerance was met."""

    n_fits: int = 0
    n_unconverged: int = 0

    def __add__(self, other: Fits) -> Fits:
        return Fits(self.n_fits + other.n_fits, self.n_unconverged + other.n_unconverged)


@dataclass(frozen=True)
class Selection:
    """The choice made in the training part of a fold, and its predictions for the test part."""

    gram: int  # index of the Gram matrix
    strength: float  # C, or alpha
    inner_score: float  # mean over the inner folds
    predicted: Array  # (n_test,) class codes or regression targets
    # (n_test,) above 0 for the second of two classes, or (n_test, n_classes); None for regression
    decisions: Floats | None
    fits: Fits


@dataclass(frozen=True)
class Data:
    """Graphs with targets, folds, and the strengths of regularization to try on them."""

    graphs: Any  # Graphs, or for kernel="precomputed" their Gram matrix
    targets: Array  # class codes, or regression targets
    weights: Floats | None  # of the graphs
    strengths: Floats  # of regularization, in the order in which they are tried
    splits: Splits  # (training, test) ids of the folds


Score: TypeAlias = Callable[[Floats, Ints, Ints], tuple[Floats, Fits]]  # of a Gram matrix, training and test ids


@dataclass(frozen=True)
class SearchResult:
    """All scores, and the index of the best."""

    table: dict[str, Any]  # like scikit-learn's cv_results_
    index: int  # of the best row
    fits: Fits


# -------------------------------------------------------------------- Gram matrices of the user


class Precomputed(BaseEstimator):
    """The kernel for ``kernel="precomputed"``: it takes Gram matrices where other kernels take graphs."""

    def fit_transform(self, X: Floats) -> Floats:
        """Return the Gram matrix, which has already been checked."""
        self.n_graphs_ = len(X)
        return X

    def transform(self, X: Any) -> Floats:
        """Check and return the kernels of new graphs with the fitted ones."""
        rows = _check_matrix(X)
        if rows.shape[1] != self.n_graphs_:
            raise ValueError(
                f"X must have a column for each of the {self.n_graphs_} fitted graphs with kernel='precomputed'; got shape {rows.shape}."
            )
        return rows


def check_gram(X: Any) -> Floats:
    """Return the Gram matrix of the graphs to fit as an array; raise unless it is square, finite and symmetric."""
    K = _check_matrix(X)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X must be the square Gram matrix of the graphs to fit with kernel='precomputed'; got shape {K.shape}."
        )
    if np.abs(K - K.T).max(initial=0.0) > _ASYMMETRY * np.abs(K).max(initial=0.0):
        raise ValueError("X must be a symmetric matrix with kernel='precomputed'; X and its transpose differ.")
    return K


def _check_matrix(X: Any) -> Floats:
    if isinstance(X, Graphs):
        raise ParameterError("X must be a matrix with kernel='precomputed'; got graphs. For graphs, use a kernel.")
    return check_array(X, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0, input_name="X")


# -------------------------------------------------------------------- kernels of the user


def list_candidates(kernel: Any, param_grid: Any, n_jobs: int | None) -> list[Candidate]:
    """Return the kernels that the user named, each with its grid; ``n_jobs=None`` keeps each kernel's own number of threads."""
    kernels = list(kernel) if isinstance(kernel, list | tuple) else [kernel]
    kernels = [_named_kernel(entry) if isinstance(entry, str) else entry for entry in kernels]
    if not kernels:
        raise ValueError("kernel must be a kernel or a list of at least one; got an empty list.")
    grids = list(param_grid) if isinstance(param_grid, list | tuple) else [param_grid] * len(kernels)
    if len(grids) != len(kernels):
        raise ValueError(
            f"param_grid must have one entry for each kernel: {len(kernels)} kernels, got {len(grids)} entries."
        )
    candidates = []
    for i, (name, entry, grid) in enumerate(zip(_names(kernels), kernels, grids, strict=True)):
        if grid != "auto" and not isinstance(grid, Mapping):
            raise ValueError(f"param_grid[{i}] must be 'auto' or a dict of parameter: list of values; got {grid!r}.")
        values = split_pipeline(entry)[1].default_param_grid() if grid == "auto" else grid
        candidates.append(Candidate(name, with_jobs(entry, n_jobs), values))
    return candidates


def with_jobs(kernel: Any, n_jobs: int | None) -> Any:
    """Return a copy of the kernel with ``n_jobs`` threads, or for None the kernel itself, with its own number."""
    if n_jobs is None:
        return kernel
    return with_parameters(kernel, {"n_jobs": n_jobs} if "n_jobs" in parameter_names(kernel) else {})


def _named_kernel(name: str) -> Any:
    """Return the kernel with this name, as on the command line and in studies, with its default parameters."""
    if name == AUTO:
        raise ValueError(
            "kernel 'auto' is not a kernel: GraphClassifier and GraphRegressor choose and combine kernels automatically."
        )
    if name == PRECOMPUTED:
        raise ValueError("kernel 'precomputed' must be the only one, not in a list; it is for GraphSVC and GraphRidge.")
    return kernel_by_name(name)


def _names(kernels: list[Any]) -> list[str]:
    """Name kernels by the classes of their steps, with parameters where two have the same classes."""
    short, long = [], []
    for i, kernel in enumerate(kernels):
        before, final = split_pipeline(kernel, "kernel" if len(kernels) == 1 else f"kernel[{i}]")
        short.append(" > ".join(type(step).__name__ for step in [*before, final]))
        long.append(" > ".join(" ".join(repr(step).split()) for step in [*before, final]))
    return [name if short.count(name) == 1 else long[i] for i, name in enumerate(short)]


# -------------------------------------------------------------------- the search


def check_memory(n_graphs: int) -> None:
    """Raise MemoryError if the Gram matrices of a search do not fit into free memory."""
    require(
        _COPIES * 8 * n_graphs**2,
        f"A search over {n_graphs:,} graphs, with {_COPIES} Gram matrices at once,",
        "Fit on fewer graphs, or avoid Gram matrices: make_pipeline(Nystroem(kernel), LinearSVC()).",
    )


def search(
    data: Data,
    candidates: Sequence[Candidate],
    score: Score,
    strength: str,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> SearchResult:
    """Score all points of the candidates' grids with all strengths, and choose the best.

    Ties go to the first candidate, then the first point, then the first strength.
    """
    rows: list[tuple[Candidate, dict[str, Any]]] = []  # candidates with points of their grids
    blocks: list[Floats] = []  # of scores, (n_points, n_folds, n_strengths)
    similarities, fits = [], Fits()
    for candidate in candidates:
        start, n_rows, best, nearest = time.monotonic(), len(rows), -np.inf, 0.0
        for points, grams in _gram_blocks(candidate, data.graphs):
            scores, n_fits = _score_grams(grams, data.splits, score, candidate.name, n_jobs)
            blocks.append(scores)
            rows += [(candidate, point) for point in points]
            fits += n_fits
            best = max(best, float(scores.mean(axis=1).max()))
            nearest = max(nearest, *map(nearest_similarity, grams))
        similarities.append(nearest)
        if verbose:
            seconds = time.monotonic() - start
            scored = f"{counted(len(rows) - n_rows, 'point')}, best score {best:.4f}, {seconds:.1f} s"
            print(f"{candidate.name}: {scored}")
    names = ", ".join(dict.fromkeys(candidate.name for candidate in candidates))
    has_attributes = data.graphs.n_attributes > 0 if isinstance(data.graphs, Graphs) else None
    warn_if_diagonal(similarities, names, has_attributes=has_attributes)
    all_scores = np.concatenate(blocks)
    row, at_strength = choose(all_scores.mean(axis=1))
    table = _tabulate(rows, strength, data.strengths, all_scores)
    return SearchResult(table, row * len(data.strengths) + at_strength, fits)


def _score_grams(
    grams: list[Floats], splits: Splits, score: Score, name: str, n_jobs: int | None
) -> tuple[Floats, Fits]:
    """Return the scores of Gram matrices, (n_grams, n_folds, n_strengths); equal matrices are scored once."""
    kept, positions = distinct(grams)
    tasks = [(K, train, test) for K in kept for train, test in splits]
    outcomes = list(run_tasks(score, tasks, n_jobs=n_jobs, label=f"cross-validating {name}"))
    scores = np.array([of_fold for of_fold, _ in outcomes], dtype=np.float64).reshape(len(kept), len(splits), -1)
    if not np.isfinite(scores).all():
        raise ValueError(f"scoring gave a score that is not a finite number for {name}.")
    return scores[positions], sum((fits for _, fits in outcomes), Fits())


def _gram_blocks(candidate: Candidate, graphs: Any) -> Iterator[tuple[list[dict[str, Any]], list[Floats]]]:
    """Yield blocks of grid points with their Gram matrices, in the grid's order, each as large as HELD_AT_ONCE allows."""
    if isinstance(candidate.kernel, Precomputed):
        yield [{}], [graphs]
        return
    for grid in _split_grid(candidate.param_grid, HELD_AT_ONCE // (8 * max(len(graphs), 1) ** 2)):
        points = grid_points(candidate.kernel, graphs, grid)
        for point in points:
            if not np.isfinite(point.gram).all():
                raise ValueError(
                    f"The Gram matrix of {candidate.name} with {point.params} has entries that are not finite."
                )
        yield [point.params for point in points], [point.gram for point in points]


def _split_grid(grid: ParamGrid, n_points: int) -> list[ParamGrid]:
    """Split a grid into consecutive grids of at most n_points points, but at least one."""
    sizes = {name: len(values) for name, values in grid.items() if hasattr(values, "__len__")}
    longer = next((name for name, size in sizes.items() if size > 1), None)
    if longer is None or prod(sizes.values()) <= n_points:
        return [grid]
    return [part for value in grid[longer] for part in _split_grid({**grid, longer: [value]}, n_points)]


def _tabulate(
    rows: list[tuple[Candidate, dict[str, Any]]], strength: str, strengths: Floats, by_fold: Floats
) -> dict[str, Any]:
    """Return a table like ``cv_results_`` of scikit-learn, with one row for each point and strength.

    ``params`` are parameters for a new model; the other columns name the kernel and the values of its grid.
    """
    values, params = [], []
    for candidate, point in rows:
        is_precomputed = isinstance(candidate.kernel, Precomputed)
        kernel = PRECOMPUTED if is_precomputed else with_parameters(candidate.kernel, point)
        for number in strengths.tolist():
            values.append({"kernel": candidate.name, **point, strength: number})
            params.append({"kernel": kernel, "param_grid": {}, strength: number})
    table: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in values for name in row):
        # Masked if a kernel has no such parameter.
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
    table["rank_test_score"] = rankdata(-np.round(means, _DIGITS), method="min").astype(np.int32)
    return table


# -------------------------------------------------------------------- the choice among scores


def distinct(grams: Sequence[Floats]) -> tuple[list[Floats], list[int]]:
    """Return the distinct Gram matrices, and for each matrix its position among them.

    After normalization, depth 0 does not depend on lambda: a grid of 24 points has 19 matrices.
    """
    kept: list[Floats] = []
    positions: list[int] = []
    for K in grams:
        same = (i for i, other in enumerate(kept) if _are_equal(K[:1], other[:1]) and _are_equal(K, other))
        position = next(same, len(kept))
        if position == len(kept):
            kept.append(K)
        positions.append(position)
    return kept, positions


def _are_equal(K: Floats, other: Floats) -> bool:
    if K.shape != other.shape:
        return False
    # Relative to the largest entry, 1 in a normalized matrix: other matrices may have only small entries.
    return bool(np.abs(K - other).max(initial=0.0) <= 10.0**-_DIGITS * np.abs(K).max(initial=0.0))


def choose(scores: Floats) -> tuple[int, int]:
    """Return the indices of the best of (n_grams, n_C) mean accuracies; ties go to the first Gram matrix, then the first C."""
    gram, c = np.unravel_index(int(np.argmax(np.round(scores, _DIGITS))), scores.shape)
    return int(gram), int(c)


def choose_by_folds(
    grams: Sequence[Floats],
    n_strengths: int,
    splits: Sequence[tuple[Ints, Ints]],
    score_fold: Callable[[Floats, Ints, Ints], tuple[Floats, Fits]],
) -> tuple[int, int, float, Fits]:
    """Return the indices of the best Gram matrix and strength, their mean score over the folds, and the number of fits."""
    scores = np.zeros((len(grams), n_strengths))
    fits = Fits()
    for g, K in enumerate(grams):
        for train, test in splits:
            of_fold, n_fits = score_fold(K, train, test)
            scores[g] += of_fold / len(splits)
            fits += n_fits
    g, s = choose(scores)
    return g, s, float(scores[g, s]), fits


# -------------------------------------------------------------------- scores by any scorer of scikit-learn

Scorer: TypeAlias = Callable[[Any, Any, Any], float]


class _Answers(BaseEstimator):
    """A candidate as a scorer sees it: its classes, if any, its predictions and its decisions."""

    def __init__(self, predicted: Any = None, classes_: Any = None, decisions: Any = None) -> None:
        self.predicted, self.classes_, self.decisions = predicted, classes_, decisions

    def predict(self, X: Any) -> Any:  # noqa: ARG002
        """Return the predictions, for any X."""
        return self.predicted

    def decision_function(self, X: Any) -> Any:  # noqa: ARG002
        """Return the decisions, for any X."""
        return self.decisions


class ClassAnswers(ClassifierMixin, _Answers):
    """The answers of a classifier."""


class NumberAnswers(RegressorMixin, _Answers):
    """The answers of a regressor."""


def rate(scorer: Scorer, answers: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Return the score of one candidate on held-out graphs; pass weights to scikit-learn's scorers that accept them."""
    try:
        if weights is not None and not isfunction(scorer):
            with contextlib.suppress(TypeError):
                return scorer(answers, X, y, sample_weight=weights)  # type: ignore[call-arg]
        return scorer(answers, X, y)
    except AttributeError as error:
        if "predict_proba" not in str(error):
            raise
        raise ValueError(
            "scoring needs probabilities, which the candidates of a search do not have. Use a score of decisions or of "
            "predictions, such as 'roc_auc' for two classes, 'balanced_accuracy' or 'f1_macro'."
        ) from None


# -------------------------------------------------------------------- Gram matrices from which nothing can be learned


def nearest_similarity(K: Floats) -> float:
    """Return the normalized similarity, from 0 to 1, of a graph and its nearest graph: the median over graphs.

    For few graphs, return 1: no two of them need to be similar.
    """
    if len(K) < _MIN_GRAPHS:
        return 1.0
    rows = np.unique(np.linspace(0, len(K) - 1, _ROWS).astype(np.int64))
    roots = np.sqrt(np.maximum(K.diagonal(), 0.0))
    similarities = K[rows] / np.maximum(np.outer(roots[rows], roots), np.finfo(np.float64).tiny)
    similarities[np.arange(len(rows)), rows] = -np.inf
    return float(np.median(similarities.max(axis=1)))


def warn_if_diagonal(similarities: Iterable[float], name: str, *, has_attributes: bool | None) -> None:
    """Warn, with a remedy, if all Gram matrices of a kernel are nearly the identity, by their `nearest_similarity`.

    ``has_attributes`` is None for a matrix whose graphs are unknown.
    """
    highest = 0.0
    for similarity in similarities:
        highest = max(highest, similarity)
        if highest >= _DIAGONAL:
            return
    cure = "Use a kernel under which graphs have more in common."
    if has_attributes:
        cure = (
            "The vectors are far apart for the width of the node kernel: scale them (ScaleAttributes), or make it wider "
            "(gamma='scale')."
        )
    elif has_attributes is False:
        cure = "Hardly any label or structure occurs in two graphs: use fewer distinct labels, or smaller depths."
    warn_user(
        f"{name}: the Gram matrices are nearly diagonal. Even the nearest graph has a similarity of only {highest:.2g} "
        f"(median over graphs), so little can be learned. {cure}",
    )
