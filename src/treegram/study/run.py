"""Run a study repeat by repeat: all Gram matrices of an entry, then fold by fold, each stored as soon as it is done.

Results in the store are never computed again, so an interrupted run continues where it stopped. Folds and seeds are derived
from names and numbers alone: the results do not depend on which process computes them, when, or in which order.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from treegram._core.machine import available_bytes
from treegram._core.parallel import send_tasks, track
from treegram._core.text import suggest
from treegram._core.types import Ints
from treegram.datasets import load_tu
from treegram.exceptions import StudyError
from treegram.graphs import Graphs
from treegram.graphs.graph_table import choose_task
from treegram.graphs.transforms import TRANSFORMATIONS
from treegram.kernels.grid import grid_points, learns_from_data, with_parameters
from treegram.kernels.kernel_sum import KernelSum
from treegram.kernels.registry import AUTO, KERNELS
from treegram.models.auto import AUTO_VERSION, seed_of
from treegram.models.base import check_targets
from treegram.models.search import nearest_similarity, warn_if_diagonal
from treegram.study.data import CheckedData, Loaded, check_data, outer_folds, refuse_other_data
from treegram.study.protocol import KernelSpec, Protocol, Study, StudyEntry, changed_parameters, entry_key
from treegram.study.selection import (
    Fold,
    Grams,
    estimator_versions,
    find_estimators,
    joined,
    select_auto,
    select_estimator,
    select_gram,
    unique,
)
from treegram.study.store import GramTime, Row, Store
from treegram.study.study_file import check_study
from treegram.study.summary import Summary, summarize

_MOST_BYTES = 4 * 2**30  # bytes of Gram matrices that are kept for the next repeat
_DIGITS = 12  # of a digest, in the record of a run


def evaluate(
    data: Mapping[str, Loaded],
    kernels: Sequence[str] | Mapping[str, Any],
    store: str | os.PathLike[str],
    *,
    repeats: int = 10,
    folds: int = 10,
    task: str | None = None,
    n_jobs: int | None = None,
) -> Summary:
    """Compare kernels and other models on data sets by nested cross-validation, as the command ``treegram evaluate`` does.

    Parameters
    ----------
    data : mapping of str to (Graphs, targets)
        Data sets by name.
    kernels : list of str, or mapping of str to str, kernel or estimator
        What is compared. The name of a kernel, or "auto", is tuned in each fold; a kernel has the parameters that it has; an
        estimator of graphs, such as ``GraphSVC`` or a pipeline, chooses itself. Keys of a mapping are the names in the tables.
    store : str or path
        The file that keeps every finished fold: a call with the same file continues where an earlier one stopped.
    repeats : int, default=10
        Number of repeats with other folds.
    folds : int, default=10
        Number of outer folds and, to tune kernels, of inner folds.
    task : {"classification", "regression"}, optional
        The task; by default what the targets are for, where that is clear.
    n_jobs : int, optional
        Number of threads that share the outer folds of a repeat, as in joblib.

    Returns
    -------
    Summary
        Means, deviations and tests, for :func:`~treegram.study.write_report` and :func:`~treegram.study.write_latex`.

    Raises
    ------
    DatasetError
        If it is not clear what the targets are for.
    StudyError
        For the reasons of :func:`run_study`.
    """
    models = kernels if isinstance(kernels, Mapping) else {name: name for name in kernels}
    tasks = {
        name: task or choose_task(check_targets(targets), f"the targets of {name}")
        for name, (_, targets, *_) in data.items()
    }
    entries = [_entry(name, model) for name, model in models.items()]
    study = make_study(list(data), tasks, entries, folds=folds, repeats=repeats)
    run_study(study, store, data, n_jobs=n_jobs, command="treegram.study.evaluate")
    with Store.open(store) as opened:
        return summarize(opened, study)


def make_study(
    datasets: Sequence[str],
    tasks: Mapping[str, str],
    entries: Sequence[StudyEntry],
    *,
    folds: int,
    split: str = "",
    **protocol: Any,
) -> Study:
    """Return a study of data sets of one task, by as many inner as outer folds; data sets without targets have no task."""
    dataset_of = {task: name for name, task in tasks.items()}
    if len(dataset_of) > 1:
        raise StudyError(
            f"The targets of {dataset_of['classification']} are classes, and those of {dataset_of['regression']} measurements; evaluate "
            "these data sets one by one."
        )
    task = next(iter(dataset_of), "classification")
    return Study(
        name="-".join(filter(None, [*datasets, split])),  # a split gets its own store
        title=f"Kernels on {', '.join(datasets)}",
        datasets=tuple(datasets),
        kernels=tuple(entries),
        protocol=Protocol(outer_folds=folds, inner_folds=folds, task=task, split=split, **protocol),
    )


def _entry(name: str, model: Any) -> StudyEntry:
    if isinstance(model, str):
        return StudyEntry(name, tuned(model))
    if hasattr(model, "gram_grid"):
        return StudyEntry(name, (KernelSpec(model.name, changed_parameters(model)),))
    return StudyEntry(name, estimator=model)


def tuned(
    name: str, values: Mapping[str, Any] | None = None, scales: Sequence[str] = ("raw",)
) -> tuple[KernelSpec, ...]:
    """Return what inner cross-validation chooses from: each scale with values of parameters, by default those that models search."""
    if name == AUTO:
        return (KernelSpec(AUTO),)
    if name not in KERNELS:
        raise StudyError(f"There is no kernel {name!r}{suggest(name, KERNELS) or '.'}")
    grid = KERNELS[name]().default_param_grid() | dict(values or {})
    specs = (() if scale == "raw" else (scale,) for scale in scales)
    return tuple(
        KernelSpec(name, {}, {key: tuple(several) for key, several in grid.items()}, attributes) for attributes in specs
    )


def run_study(
    study: Study,
    store: Store | str | os.PathLike[str],
    data: Mapping[str, Loaded] | None = None,
    *,
    n_jobs: int | None = None,
    allow_import: Collection[str] = (),
    command: str = "treegram.study.run_study",
) -> int:
    """Run a study and add the missing results to a store.

    Results in the store are not computed again, so an interrupted run continues where it stopped. Folds and seeds
    depend only on the study: the same study on the same data gives the same rows. Several processes may share a store;
    a fold that two of them compute at the same time is stored once.

    Parameters
    ----------
    study : Study
        The study, from :func:`~treegram.study.read_study` or built in Python, or a part of it, from :meth:`Study.part`.
    store : Store, str or path
        Where every finished fold is kept. A file is opened or created only after everything else has been checked.
    data : mapping of str to (Graphs, targets) or (Graphs, targets, groups), optional
        Data sets by their names in the study; folds keep groups together if the protocol has a ``split``. Other data
        sets are loaded by :func:`treegram.load_tu`.
    n_jobs : int, optional
        Number of threads that share the outer folds of a repeat, as in joblib.
    allow_import : collection of str, default=()
        Modules that the study may name in ``estimator = "module:name"``. They are imported first, so that they may also register
        estimators under other names. No other code of a study runs.
    command : str, default="treegram.study.run_study"
        What the store records as the origin of the rows. It should not name a private folder.

    Returns
    -------
    int
        The number of rows that were computed.

    Raises
    ------
    StudyError
        If the study is not valid, or if a data set cannot be cross-validated or differs from the one that the store has
        results for. Nothing has been computed then.
    """
    study = check_study(study)
    estimators = find_estimators(study.kernels, study.protocol, allow_import)
    auto = {AUTO: AUTO_VERSION} if any(entry.is_auto for entry in study.kernels) else {}
    versions = {"study file": study.digest[:_DIGITS], **auto, **estimator_versions(estimators.values())}
    passed = data or {}
    loaded = {name: passed[name] if name in passed else load_tu(name) for name in study.datasets}
    checked = check_data(loaded, study.protocol)
    with contextlib.nullcontext(store) if isinstance(store, Store) else Store.open(store) as opened:
        refuse_other_data(checked, opened)
        _refuse_other_auto(study, opened)
        opened.put_study(study.name, study.text)
        run = opened.begin_run(command, versions).id
        for dataset in checked:
            opened.put_dataset(dataset.facts)
        runner = Runner(study, opened, run, estimators, n_jobs, min(_MOST_BYTES, available_bytes() / 4))
        # Repeat by repeat: an interrupted run leaves a complete study with fewer repeats.
        tasks = [
            (repeat, dataset, entry)
            for repeat in range(study.protocol.repeats)
            for dataset in checked
            for entry in study.kernels
            if repeat < study.repeats_of(entry, dataset.name)
        ]
        n_missing = sum(
            len(runner.missing(entry_key(study, entry, dataset.name), repeat)) for repeat, dataset, entry in tasks
        )
        rows = (row for task in tasks for row in runner.rows(*task))
        return sum(1 for _row in track(rows, total=n_missing, label=study.name))


def _refuse_other_auto(study: Study, store: Store) -> None:
    """Raise if the store has results from another version of "auto", which has the same key."""
    keys = [entry_key(study, entry, name) for entry in study.kernels if entry.is_auto for name in study.datasets]
    version_of_run = {run.id: run.versions.get(AUTO) for run in store.runs()}
    other_versions = {version_of_run.get(row.run) for row in store.rows(keys)} - {None, AUTO_VERSION}
    if other_versions:
        raise StudyError(
            f"{store.path} has results of another version of the kernel {AUTO!r}: {', '.join(map(str, other_versions))}, not "
            f"{AUTO_VERSION}. Use another store, or the treegram that began this one."
        )


# -------------------------------------------------------------------- kernels


def build_kernel(spec: KernelSpec, n_jobs: int | None = None, seed: int | None = None) -> Any:
    """Build a kernel, a sum, or a pipeline that ends in one; ``seed`` becomes each kernel's random_state."""
    if spec.sum:
        kernel: Any = KernelSum([build_kernel(term, n_jobs, seed) for term in spec.sum])
    else:
        seeded: dict[str, Any] = {} if seed is None else {"random_state": seed}
        kernel = KERNELS[spec.kernel](**spec.parameters, **seeded, n_jobs=n_jobs)
    steps = [TRANSFORMATIONS[name]() for name in spec.attributes]
    return make_pipeline(*steps, kernel) if steps else kernel


def _suited(entry: StudyEntry, graphs: Graphs) -> StudyEntry:
    """Return the entry without choices that need something these graphs lack, unless none would be left."""
    kept = tuple(spec for spec in entry.choices if all(_suits(term, graphs) for term in spec.terms))
    return replace(entry, choices=kept) if kept else entry


def _suits(term: KernelSpec, graphs: Graphs) -> bool:
    """Return True if the graphs have the vectors, edge vectors and edge labels that the kernel needs."""
    bins_edges = "edges" in term.attributes
    needs_vectors = set(term.attributes) - {"edges", "none"}
    needs_labels = term.parameters.get("use_edge_labels", False) and not bins_edges
    return (
        (graphs.n_attributes > 0 or not needs_vectors)
        and (graphs.n_edge_attributes > 0 or not bins_edges)
        and (graphs.edge_labels is not None or not needs_labels)
    )


def _name(spec: KernelSpec, seed: int | None) -> str:
    """Name the kernel so that it differs from the other choices of its entry."""
    terms = []
    for term in spec.terms:
        parameters = {**term.parameters, **({} if seed is None else {"random_state": seed})}
        values = (f"{key}={value}" for key, value in parameters.items())
        terms.append(" ".join([term.kernel, *values, *term.attributes]))
    return " + ".join(terms)


def _on_all(spec: KernelSpec, seed: int | None, graphs: Graphs, n_jobs: int | None) -> Grams:
    """Compute the matrices over all graphs, for a kernel that learns nothing from data or may learn from all graphs."""
    points = grid_points(build_kernel(spec, n_jobs, seed), graphs, spec.param_grid)
    return unique([{"kernel": _name(spec, seed), **point.params} for point in points], [point.gram for point in points])


def _on_training(spec: KernelSpec, seed: int | None, graphs: Graphs, train: Ints, test: Ints) -> Grams:
    """Compute the matrices of one fold with a kernel fitted on its training graphs; entries between test graphs are 0."""
    points = grid_points(build_kernel(spec, None, seed), graphs[train], spec.param_grid, graphs[test])
    matrices = []
    for point in points:
        K = np.zeros((len(graphs), len(graphs)))
        for ids, values in ((train, point.gram), (test, point.rows)):
            for i, row in zip(ids, values, strict=True):  # numpy sets rows one by one much faster than a block
                K[i, train] = row
        matrices.append(K)
    return unique([{"kernel": _name(spec, seed), **point.params} for point in points], matrices)


# -------------------------------------------------------------------- units of work


@dataclass(frozen=True)
class Runner:
    """Compute the rows of a study and add them to a store."""

    study: Study
    store: Store
    run: int
    estimators: Mapping[str, Any]  # by entry
    n_jobs: int | None
    most_bytes: float  # bytes of Gram matrices that are kept for the next repeats
    kept: dict[str, list[Grams | None]] = field(default_factory=dict)  # by key

    def rows(self, repeat: int, data: CheckedData, entry: StudyEntry) -> Generator[Row]:
        """Compute the missing folds of a repeat; yield each row once it is in the store."""
        key = entry_key(self.study, entry, data.name)
        missing = self.missing(key, repeat)  # checked late: another process may have finished some
        if not missing:
            return
        try:
            protocol, entry = self.study.protocol, _suited(entry, data.graphs)
            seed = repeat if entry.reseed else None
            estimator = self.estimators.get(entry.name)
            shared = (protocol, data, entry, estimator, seed, self._shared(key, data, entry, seed), self.run)
            split = outer_folds(data, protocol.outer_folds, seed_of(protocol.seed, data.name, repeat))
            tasks = [(repeat, fold, *split[fold]) for fold in missing]
            # Workers send rows back; only this process writes them.
            with contextlib.closing(send_tasks(_run_fold, shared, tasks, n_jobs=self.n_jobs, label=None)) as rows:
                for _, row in rows:
                    self.store.add_row(key, row)
                    yield row
        except ValueError as error:
            raise StudyError(f"{entry.name} on {data.name}: {error}") from error

    def missing(self, key: str, repeat: int) -> list[int]:
        """Return the folds of a repeat that the store does not have."""
        done = self.store.done(key)
        return [fold for fold in range(self.study.protocol.outer_folds) if (repeat, fold) not in done]

    def _shared(self, key: str, data: CheckedData, entry: StudyEntry, seed: int | None) -> list[Grams | None]:
        """Compute the Gram matrices of each choice, or reuse kept ones; None if each fold computes its own."""
        if entry.chooses_itself:
            return []
        learns = [learns_from_data(build_kernel(spec, seed=seed)) for spec in entry.choices]
        self._time(key, data, entry, seed, learns=any(learns))
        if key in self.kept:
            return self.kept[key]
        only_training = (entry.fitted_on or self.study.protocol.fitted_on) == "training"
        grams = [
            None if only_training and does_learn else _on_all(spec, seed, data.graphs, self.n_jobs)
            for spec, does_learn in zip(entry.choices, learns, strict=True)
        ]
        shared = [matrices for matrices in grams if matrices]
        if len(shared) == len(grams):
            similarities = (nearest_similarity(K) for matrices in shared for K in matrices.matrices)
            warn_if_diagonal(similarities, f"{entry.name} on {data.name}", has_attributes=data.graphs.n_attributes > 0)
        # All repeats have the same order, so keeping the first matrices is as good as keeping the last.
        n_bytes = sum(part.n_bytes for parts in (grams, *self.kept.values()) for part in parts if part)
        if seed is None and n_bytes <= self.most_bytes:
            self.kept[key] = grams
        return grams

    def _time(self, key: str, data: CheckedData, entry: StudyEntry, seed: int | None, *, learns: bool) -> None:
        """Measure how long one Gram matrix takes on one thread, by default the first of the grid."""
        if self.store.gram_times([key]):
            return
        first = entry.choices[0]
        timed = dict(entry.timed) or {name: values[0] for name, values in first.param_grid.items() if not first.sum}
        kernel = with_parameters(build_kernel(first, seed=seed), timed)
        kernel.fit_transform(data.graphs[:10])  # compile the loops before the clock starts
        start = time.process_time()
        kernel.fit_transform(data.graphs)
        seconds = time.process_time() - start
        self.store.add_gram_time(key, GramTime(data.name, entry.name, timed, seconds, learns, self.run))


# What all folds of an entry on a data set share: its estimator, if it is one; the seed of the kernels' random numbers, or None for their own
# random_state; the Gram matrices of each choice, or None if each fold computes its own; and the id of the run.
_Shared = tuple[Protocol, CheckedData, StudyEntry, Any, int | None, list[Grams | None], int]


def _run_fold(shared: _Shared, repeat: int, fold: int, train: Ints, test: Ints) -> Row:
    start = time.thread_time()
    protocol, data, entry, estimator, kernel_seed, shared_grams, run = shared
    seed = seed_of(protocol.seed, data.name, repeat, fold)
    outer_fold = Fold(protocol, data.graphs, data.targets, train, test, seed)
    if estimator is not None:
        outcome = select_estimator(outer_fold, estimator)
    elif entry.is_auto:
        outcome = select_auto(outer_fold)
    else:
        grams = [
            on_all or _on_training(spec, kernel_seed, data.graphs, train, test)
            for spec, on_all in zip(entry.choices, shared_grams, strict=True)
        ]
        outcome = select_gram(outer_fold, joined(grams))
    seconds = time.thread_time() - start
    return Row(data.name, entry.name, repeat, fold, seconds=seconds, run=run, **outcome)
