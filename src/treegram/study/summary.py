"""Compute everything that a report shows from the rows of a store.

:func:`summarize` returns one frozen `Summary` of plain data, which ``dataclasses.asdict`` makes ready for JSON.
Accuracies, deviations and differences are in percent throughout. The score of a regression is the mean absolute error,
in the unit of the targets; tests compare it in percent of the targets' standard deviation. The protocol may name
another score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import hypot, inf
from typing import Any

import numpy as np

from treegram._core.types import Floats
from treegram.exceptions import StoreError
from treegram.study.metrics import Metric, main_metric, other_metrics
from treegram.study.protocol import Comparison, Pair, Study, StudyEntry, entry_key
from treegram.study.significance import (
    Posterior,
    Ranking,
    TTest,
    bayesian_correlated_t_test,
    bayesian_signed_rank,
    corrected_resampled_t_test,
    friedman_nemenyi,
    holm,
    t_test_from_summary,
)
from treegram.study.store import DatasetFacts, Row, Run, Store
from treegram.study.study_file import parse_study

ROPE = 1.0  # differences of up to one point are of no practical importance

# A mean of the repeats' means, and their standard deviation with n - 1; None if there are too few.
Mean = tuple[float | None, float | None]


@dataclass(frozen=True)
class Cell:
    """One kernel on one data set."""

    kernel: str
    dataset: str
    n_planned: int  # repeats; 0 if the kernel is not run on this data set
    repeats: tuple[int, ...]  # numbers of the complete ones; everything below is based on these only
    folds: tuple[tuple[float, ...], ...]  # score by repeat and outer fold
    mean: float | None  # of the repeats' means
    deviation: float | None  # of the repeats' means, with n - 1; None for a single repeat
    other_scores: Mapping[str, Mean]  # mean and deviation of each other score, by its name
    published: float | None
    published_deviation: float | None
    published_words: str  # text printed in the paper instead of a number
    published_seconds: float | None  # of one Gram matrix
    chosen: tuple[tuple[str, int], ...]  # combinations, most frequent first, each with its number of folds
    n_fits: int
    n_unconverged: int
    cpu_seconds: float  # of all outer folds together
    gram_seconds: float | None
    learns: bool | None  # whether the kernel learns something from graphs; None before the first run

    @property
    def difference(self) -> float | None:
        """Our number minus the published one."""
        return None if self.mean is None or self.published is None else self.mean - self.published

    @property
    def margin(self) -> float | None:
        """Two standard deviations of the difference, 2 sqrt(s^2 + p^2); an unknown one counts as zero."""
        deviations = [value for value in (self.deviation, self.published_deviation) if value is not None]
        return 2 * hypot(*deviations) if deviations else None

    @property
    def mark(self) -> str:
        """The direction, "up" or "down", in which our number is more than two standard deviations from the published one."""
        if self.difference is None or self.margin is None or abs(self.difference) <= self.margin:
            return ""
        return "up" if self.difference > 0 else "down"


@dataclass(frozen=True)
class ComparisonSummary:
    """One Friedman test, on our numbers and on the published ones."""

    name: str
    kernels: tuple[str, ...]
    datasets: tuple[str, ...]
    ours: Ranking | None  # None unless all cells are available
    missing: tuple[tuple[str, str], ...]  # (kernel, data set) without a complete repeat that all kernels have
    published: Ranking | None  # None if fewer than three kernels have a number on every data set
    dropped: tuple[str, ...]  # kernels without a published number on every data set


@dataclass(frozen=True)
class PairTest:
    """Two kernels on one data set, first minus second; fields are None if there are not enough numbers."""

    kernel: str
    baseline: str  # the second kernel; of several, the one with the best mean on this data set
    dataset: str
    n_repeats: int  # that both have
    corrected: TTest | None  # over folds, after Nadeau and Bengio
    holm: float | None  # the p-value of the corrected test after Holm's correction for the tests beside it
    posterior: Posterior | None  # with the rope `ROPE`
    published: TTest | None  # from means and deviations alone


@dataclass(frozen=True)
class PairSummary:
    """Two kernels on several data sets, first minus second."""

    kernel: str
    baselines: tuple[str, ...]  # if several, the best on each data set, chosen in hindsight
    tests: tuple[PairTest, ...]  # by data set, which Holm's method corrects for
    posterior: Posterior | None  # Bayesian signed-rank over the data sets; None unless all are available

    @property
    def baseline(self) -> str:
        """The name of the baseline, or the number of baselines in words."""
        return self.baselines[0] if len(self.baselines) == 1 else f"the best of {len(self.baselines)} others"


@dataclass(frozen=True)
class Summary:
    """Everything that a report shows."""

    study: Study
    facts: Mapping[str, DatasetFacts]  # by data set; those that were not run yet are missing
    cells: tuple[Cell, ...]  # kernel by kernel, each with all data sets
    comparisons: tuple[ComparisonSummary, ...]
    pairs: tuple[PairSummary, ...]
    runs: tuple[Run, ...]

    def row(self, kernel: str) -> tuple[Cell, ...]:
        """Return the cells of a kernel, in the order of the data sets."""
        return tuple(cell for cell in self.cells if cell.kernel == kernel)

    def column(self, dataset: str) -> tuple[Cell, ...]:
        """Return the cells of a data set, in the order of the kernels."""
        return tuple(cell for cell in self.cells if cell.dataset == dataset)

    @property
    def metric(self) -> Metric:
        """The score that is shown first, and tested."""
        return main_metric(self.study.protocol)

    def best_mean(self, dataset: str) -> float | None:
        """Return the best mean of all kernels on a data set: the lowest for errors, the highest for other scores."""
        means = [cell.mean for cell in self.column(dataset) if cell.mean is not None]
        return (max if self.metric.higher_is_better else min)(means, default=None)

    @property
    def baseline_name(self) -> str:
        """The prediction without learning: the largest class, or the mean of the targets."""
        return "largest class" if self.study.protocol.task == "classification" else "mean of targets"

    def baseline(self, dataset: str) -> float | None:
        """Return the score of always predicting the largest class, or the mean target; None before the first run."""
        return self.metric.baseline(self.facts[dataset]) if dataset in self.facts else None

    def learns_from(self, entry: StudyEntry) -> str | None:
        """Return "training" (graphs of each outer fold), "all" (graphs), "" (nothing), or None before the first run."""
        if entry.chooses_itself:
            return "training"
        learns = [cell.learns for cell in self.row(entry.name) if cell.learns is not None]
        if not learns:
            return None
        return (entry.fitted_on or self.study.protocol.fitted_on) if any(learns) else ""

    @property
    def compared(self) -> tuple[Cell, ...]:
        """The cells that have a published number to compare with, and a margin."""
        return tuple(cell for cell in self.cells if cell.difference is not None and cell.margin is not None)

    @property
    def n_fits(self) -> int:
        """The number of fits of a model."""
        return sum(cell.n_fits for cell in self.cells)

    @property
    def has_published(self) -> bool:
        """True if any number is published."""
        return any(cell.published is not None or cell.published_words for cell in self.cells)

    @cached_property
    def pairwise(self) -> tuple[PairTest, ...]:
        """Tests of every pair of kernels, on every data set for which they have a common repeat.

        Differences are in points, as in `pairs`. On each data set, Holm's method corrects for the number of pairs.
        """
        results: list[PairTest] = []
        for dataset in self.study.datasets:
            pairs = combinations(self.column(dataset), 2)
            tests = [_test(first, [second], self.study, self.facts) for first, second in pairs]
            results += _after_holm([test for test in tests if test.corrected])
        return tuple(results)

    def to_latex(self, table: str = "scores") -> str:
        """Return a table as LaTeX; it needs the packages booktabs and amssymb.

        Parameters
        ----------
        table : str, default="scores"
            "scores": mean and standard deviation of each kernel on each data set. "ranks": mean ranks, one table for
            each comparison. "wins": on how many data sets each kernel is significantly better and worse than each other
            one. "pairs": the differences of all pairs of kernels, with p-values.

        Returns
        -------
        str
            The table, or "" if there are no such numbers.
        """
        from treegram.study.report_tables import to_latex

        return to_latex(self, table)


def summarize(store: Store, study: Study | None = None) -> Summary:
    """Compute all numbers of a report.

    Only complete repeats, with all outer folds, count.

    Parameters
    ----------
    store : Store
        The store with the rows; some or all may be missing, and rows of other studies are ignored.
    study : Study, optional
        The study; by default the one whose text is in the store.

    Returns
    -------
    Summary
        The numbers. They depend only on the study and the rows.

    Raises
    ------
    StoreError
        If the store contains no study, or an invalid record.
    """
    study = study or stored_study(store)
    facts = {dataset.name: dataset for dataset in store.datasets()}
    for name in study.datasets:
        if name in facts and bool(facts[name].targets) != (study.protocol.task == "regression"):
            raise StoreError(f"{store.path} is damaged: {name} has targets of another task than the study.")
    cells = {(entry.name, name): _cell(study, entry, name, store) for entry in study.kernels for name in study.datasets}
    return Summary(
        study=study,
        facts=facts,
        cells=tuple(cells.values()),
        comparisons=tuple(_comparison(comparison, cells, study) for comparison in _comparisons(study)),
        pairs=tuple(_pair(pair, cells, study, facts) for pair in _pairs(study)),
        runs=tuple(store.runs()),
    )


def stored_study(store: Store) -> Study:
    """Return the study in a store; its kernels need not exist in this version."""
    stored = store.study()
    if stored is None:
        raise StoreError(f"{store.path} holds no study yet; run one with this store first.")
    name, text = stored
    return parse_study(name, text.encode(), f"the study in {store.path}", is_stored=True)


# -------------------------------------------------------------------- cells


def _cell(study: Study, entry: StudyEntry, dataset: str, store: Store) -> Cell:
    key, metric = entry_key(study, entry, dataset), main_metric(study.protocol)
    n_planned = study.repeats_of(entry, dataset)
    rows = [row for row in store.rows([key]) if row.repeat < n_planned]  # the study may once have had more
    if any(row.task != study.protocol.task for row in rows):
        raise StoreError(f"{store.path} is damaged: {entry.name} on {dataset} has results of another task.")
    by_repeat = _complete((row for row in rows if metric.measure(row) is not None), study.protocol.outer_folds)
    complete = [row for repeat in by_repeat.values() for row in repeat]
    folds = _scores(metric, by_repeat)
    mean, deviation = _mean_over_repeats(folds)
    published = entry.published.accuracy.get(dataset)
    time = next(iter(store.gram_times([key])), None)
    return Cell(
        kernel=entry.name,
        dataset=dataset,
        n_planned=n_planned,
        repeats=tuple(by_repeat),
        folds=folds,
        mean=mean,
        deviation=deviation,
        other_scores={
            other.name: _mean_over_repeats(_scores(other, by_repeat)) for other in other_metrics(study.protocol)
        },
        published=None if isinstance(published, str) else published,
        published_deviation=entry.published.deviation.get(dataset),
        published_words=published if isinstance(published, str) else "",
        published_seconds=entry.published.seconds.get(dataset),
        chosen=_chosen(entry, complete),
        n_fits=sum(row.n_fits for row in complete),
        n_unconverged=sum(row.n_unconverged for row in complete),
        cpu_seconds=float(sum(row.seconds for row in complete)),
        gram_seconds=time.seconds if time else None,
        learns=time.learns if time else None,
    )


def _complete(rows: Iterable[Row], n_folds: int) -> dict[int, list[Row]]:
    """Return the rows of each complete repeat, in the order of the folds."""
    by_repeat: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.repeat, row.fold)):
        by_repeat.setdefault(row.repeat, []).append(row)
    return {repeat: complete for repeat, complete in by_repeat.items() if len(complete) == n_folds}


def _scores(metric: Metric, by_repeat: Mapping[int, Sequence[Row]]) -> tuple[tuple[float, ...], ...]:
    """Return the scores of each repeat in the folds that have one."""
    values = ((metric.value(row) for row in rows) for rows in by_repeat.values())
    return tuple(tuple(score for score in repeat if score is not None) for repeat in values)


def _mean_over_repeats(scores: Sequence[Sequence[float]]) -> Mean:
    """Return the mean and standard deviation (n - 1) of the repeats' means."""
    means = [float(np.mean(repeat)) for repeat in scores if repeat]
    return (float(np.mean(means)) if means else None, float(np.std(means, ddof=1)) if len(means) > 1 else None)


def _chosen(entry: StudyEntry, rows: Sequence[Row]) -> tuple[tuple[str, int], ...]:
    """Return the chosen combinations, most frequent first, each with its number of folds."""
    names = ["kernel"] if len(entry.choices) != 1 or entry.is_auto else []  # else all rows have the same
    names += dict.fromkeys(name for spec in entry.choices for name in spec.param_grid)
    other_names = {name for row in rows for name in row.chosen} - {*names, "kernel"}
    names += sorted(other_names, key=lambda name: (name in ("C", "alpha"), name))
    counts = Counter(
        ", ".join(f"{name} {value_text(row.chosen[name])}" for name in names if name in row.chosen) for row in rows
    )
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def value_text(value: Any) -> str:
    """Return a value as text, the same for 1 and 1.0, and for a list and a tuple."""
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


# -------------------------------------------------------------------- ranks

Cells = Mapping[tuple[str, str], Cell]


def _comparisons(study: Study) -> tuple[Comparison, ...]:
    """Return the comparisons of the study; by default one of all kernels, if all are run on all data sets."""
    is_whole = not any(entry.datasets for entry in study.kernels)
    if study.comparisons or not is_whole or len(study.kernels) < 3 or len(study.datasets) < 2:
        return study.comparisons
    names = tuple(entry.name for entry in study.kernels)
    return (Comparison("all kernels, all data sets", names, study.datasets),)


def _comparison(comparison: Comparison, cells: Cells, study: Study) -> ComparisonSummary:
    kernels, datasets = comparison.kernels, comparison.datasets
    common = {dataset: _common([cells[kernel, dataset] for kernel in kernels]) for dataset in datasets}
    ours = {kernel: [_mean(cells[kernel, dataset], common[dataset]) for dataset in datasets] for kernel in kernels}
    published = {kernel: [cells[kernel, dataset].published for dataset in datasets] for kernel in kernels}
    missing = [(kernel, datasets[i]) for kernel, means in ours.items() for i, mean in enumerate(means) if mean is None]
    dropped = tuple(kernel for kernel, numbers in published.items() if None in numbers)
    return ComparisonSummary(
        name=comparison.name,
        kernels=kernels,
        datasets=datasets,
        ours=None if missing else _ranking(ours, higher_is_better=main_metric(study.protocol).higher_is_better),
        missing=tuple(missing),
        published=_ranking({kernel: numbers for kernel, numbers in published.items() if kernel not in dropped}),
        dropped=dropped if len(dropped) < len(kernels) else (),
    )


def _common(cells: Sequence[Cell]) -> list[int]:
    """Return the repeats that are common to all cells that have any."""
    repeats = [set(cell.repeats) for cell in cells if cell.repeats]
    return sorted(set.intersection(*repeats)) if repeats else []


def _folds(cell: Cell, repeats: Sequence[int]) -> Floats:
    return np.array([cell.folds[cell.repeats.index(repeat)] for repeat in repeats], dtype=np.float64)


def _mean(cell: Cell, repeats: Sequence[int]) -> float | None:
    """Return the mean over these repeats, so that kernels are compared on the same folds; None if the cell has none."""
    return float(_folds(cell, repeats).mean(axis=1).mean()) if cell.repeats and repeats else None


def _ranking(scores: Mapping[str, Sequence[float | None]], *, higher_is_better: bool = True) -> Ranking | None:
    if len(scores) < 3:
        return None
    sign = 1.0 if higher_is_better else -1.0
    return friedman_nemenyi(sign * np.array(list(scores.values()), dtype=np.float64).T, list(scores))


# -------------------------------------------------------------------- pairs


def _pairs(study: Study) -> tuple[Pair, ...]:
    """Return the pairs of the study; by default its kernels if there are exactly two."""
    if study.pairs or len(study.kernels) != 2:
        return study.pairs
    first, second = study.kernels
    common = tuple(name for name in study.datasets if first.is_for(name) and second.is_for(name))
    return (Pair(first.name, second.name, common),) if common else ()


def _pair(pair: Pair, cells: Cells, study: Study, facts: Mapping[str, DatasetFacts]) -> PairSummary:
    tests = _after_holm(
        [
            _test(cells[pair.kernel, name], [cells[baseline, name] for baseline in pair.baselines], study, facts)
            for name in pair.datasets
        ]
    )
    differences = [test.corrected.difference for test in tests if test.corrected]
    # One data set is not a sample of data sets.
    is_sample = len(differences) == len(tests) > 1
    posterior = bayesian_signed_rank(differences, rope=ROPE) if is_sample else None
    return PairSummary(pair.kernel, pair.baselines, tuple(tests), posterior)


def _after_holm(tests: Sequence[PairTest]) -> list[PairTest]:
    corrected = iter(holm([test.corrected.p_value for test in tests if test.corrected]))
    return [replace(test, holm=next(corrected)) if test.corrected else test for test in tests]


def _test(first: Cell, rivals: Sequence[Cell], study: Study, facts: Mapping[str, DatasetFacts]) -> PairTest:
    """Compare two kernels on the repeats that both have: their folds are the same, so differences are paired."""
    unit = main_metric(study.protocol).points_of(facts.get(first.dataset))

    def score(cell: Cell) -> float:
        common = _common([first, cell])
        return unit * float(_folds(cell, common).mean()) if cell.repeats and common else -inf

    second = max(rivals, key=score)
    common = sorted(set(first.repeats) & set(second.repeats))
    ours, theirs = (unit * _folds(cell, common) for cell in (first, second))
    share = 1 / study.protocol.outer_folds
    return PairTest(
        kernel=first.kernel,
        baseline=second.kernel,
        dataset=first.dataset,
        n_repeats=len(common),
        corrected=corrected_resampled_t_test(ours - theirs, share) if common else None,
        holm=None,
        posterior=bayesian_correlated_t_test(ours - theirs, share, rope=ROPE) if common else None,
        published=_published_test(first, second, study.protocol.repeats) if len(rivals) == 1 else None,
    )


def _published_test(first: Cell, second: Cell, n_repeats: int) -> TTest | None:
    means = (first.published, second.published)
    deviations = (first.published_deviation, second.published_deviation)
    if None in means or None in deviations or n_repeats < 2:
        return None
    return t_test_from_summary(means, deviations, n_repeats)  # type: ignore[arg-type]  # no None is left
