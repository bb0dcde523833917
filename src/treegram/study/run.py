"""Run a study, repeat by repeat: all Gram matrices of an entry, then fold after fold, each kept as soon as it is done.

What is in the store is never computed again, so a run that was stopped, in whatever way, continues where it stopped. Folds and
seeds follow from names and numbers alone: the results do not depend on who computes them, when, or in which order.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from treegram._core.errors import StudyError
from treegram._core.memory import available_bytes
from treegram._core.parallel import send_tasks
from treegram._core.progress import track
from treegram._core.types import Ints
from treegram.datasets import load_tu
from treegram.graphs import Graphs
from treegram.kernels.grid import gram_grids, with_parameters
from treegram.kernels.kernel_sum import KernelSum
from treegram.kernels.pipelines import learns_from_data
from treegram.kernels.registry import AUTO, KERNELS
from treegram.models.crossval import folds, seed_of
from treegram.models.diagonal import nearest_similarity, warn_if_diagonal
from treegram.models.ridge import number_folds
from treegram.study.baselines import SELECTIONS, baseline_versions
from treegram.study.data import CheckedData, check_data, refuse_other_data
from treegram.study.describe_choices import chooses_itself
from treegram.study.parameters import transformations
from treegram.study.protocol import Candidate, Protocol, Scope, Study, StudyEntry, entry_key
from treegram.study.records import GramTime, Row
from treegram.study.selection import Grams, auto_recipe, joined, select_auto, select_gram, unique
from treegram.study.store import Store

__all__ = ["build_kernel", "run_checked", "run_study"]

_MOST_HELD = 4 * 2**30  # bytes of Gram matrices that wait for the next repeat
_DIGITS = 12  # of a digest, in what is said of a run


def run_study(
    study: Study,
    store: Store,
    data: Mapping[str, tuple[Graphs, Any]] | None = None,
    *,
    datasets: Collection[str] | None = None,
    kernels: Collection[str] | None = None,
    repeats: int | None = None,
    n_jobs: int | None = None,
) -> int:
    """Run a study, or a part of it, and add what is missing to a store.

    What the store holds is not computed again, so a run that was stopped continues where it stopped. Folds and seeds follow from
    the study alone: the same study on the same data gives the same rows.

    Parameters
    ----------
    study : Study
        The study, as :func:`~treegram.study.read_study` gives it.
    store : Store
        Where every finished fold is kept.
    data : mapping of str to (Graphs, targets), optional
        Data sets by their names in the study. Those that are not in it are loaded by :func:`treegram.load_tu`.
    datasets : collection of str, optional
        Run these data sets only.
    kernels : collection of str, optional
        Run these kernels only, named as in the study.
    repeats : int, optional
        Run the first so many repeats only.
    n_jobs : int, optional
        Threads, as in joblib: they share the outer folds of a repeat.

    Returns
    -------
    int
        The number of rows that were added. Rows that another process works on are left to it.

    Raises
    ------
    StudyError
        If the study does not have what is asked for, or if a data set cannot be cross-validated or is not the one that the
        store has results for. Nothing has been computed then.
    """
    scope = study.scope(datasets, kernels, repeats)
    found = data or {}
    loaded = {name: found[name] if name in found else load_tu(name) for name in scope.datasets}
    checked = check_data(loaded, study.protocol)
    return run_checked(study, scope, checked, store, command="treegram.study.run_study", n_jobs=n_jobs)


def run_checked(
    study: Study, scope: Scope, data: Sequence[CheckedData], store: Store, *, command: str, n_jobs: int | None
) -> int:
    """As `run_study`, with data that is checked already; ``command`` is what the store says was asked for."""
    made_of = _made_of(study, scope)
    refuse_other_data(data, store)
    _refuse_other_recipe(study, store)
    store.put_study(study.name, study.text)
    run = store.begin_run(command, made_of).id
    for one in data:
        store.put_dataset(one.facts)
    job = _Job(study, store, run, n_jobs, min(_MOST_HELD, available_bytes() / 4))
    # Whole repeats first: what a stopped run leaves is a smaller study of everything, not a part of it.
    tasks = [
        (repeat, one, entry)
        for repeat in range(scope.repeats)
        for one in data
        for entry in scope.entries
        if repeat < study.repeats_of(entry, one.name)
    ]
    n_missing = sum(len(job.missing(entry_key(study, entry, one.name), repeat)) for repeat, one, entry in tasks)
    rows = (row for task in tasks for row in job.rows(*task))
    return sum(1 for _row in track(rows, total=n_missing, label=study.name))


def _made_of(study: Study, scope: Scope) -> dict[str, str]:
    """Beside versions of packages, what a run's rows depend on: the study file, and the recipes of what chooses by itself."""
    recipe = {AUTO: auto_recipe()} if any(map(_is_auto, scope.entries)) else {}
    return {"study file": study.digest[:_DIGITS], **recipe, **baseline_versions(scope.entries)}


def _refuse_other_recipe(study: Study, store: Store) -> None:
    """Raise if the store has results of another "auto": its key says the name alone."""
    keys = [entry_key(study, entry, name) for entry in study.entries if _is_auto(entry) for name in study.datasets]
    runs = {run.id: run.versions.get(AUTO) for run in store.runs()} if keys else {}
    others = {runs.get(row.run) for row in store.rows(keys)} - {None, auto_recipe()} if keys else set()
    if others:
        raise StudyError(
            f"{store.path} has results of another version of the kernel {AUTO!r}: {', '.join(map(str, others))}, where this one is "
            f"{auto_recipe()}. Use another store, or the treegram that began this one."
        )


# -------------------------------------------------------------------- kernels


def _is_auto(entry: StudyEntry) -> bool:
    return entry.candidates == (Candidate(AUTO),)


def _drawn(entry: StudyEntry, repeat: int) -> StudyEntry:
    """The entry with this repeat's draw of random numbers."""
    return replace(entry, candidates=tuple(_seeded(one, repeat) for one in entry.candidates)) if entry.redraw else entry


def _seeded(candidate: Candidate, seed: int) -> Candidate:
    if candidate.summands:
        return replace(candidate, summands=tuple(_seeded(one, seed) for one in candidate.summands))
    return replace(candidate, parameters={**candidate.parameters, "random_state": seed})


def build_kernel(candidate: Candidate, n_jobs: int | None = None) -> Any:
    """The estimator of a candidate, without its grid: a kernel, a sum, or a pipeline that ends in one of them."""
    if candidate.summands:
        kernel: Any = KernelSum([build_kernel(one, n_jobs) for one in candidate.summands])
    else:
        kernel = KERNELS[candidate.kernel](**candidate.parameters, n_jobs=n_jobs)
    steps = [transformations()[name]() for name in candidate.attributes]
    return make_pipeline(*steps, kernel) if steps else kernel


def _suited(entry: StudyEntry, graphs: Graphs) -> StudyEntry:
    """The entry without choices that need what these graphs do not have; one that has no other choice says so itself."""
    kept = tuple(one for one in entry.candidates if _suits(one, graphs))
    return replace(entry, candidates=kept) if kept else entry


def _suits(candidate: Candidate, graphs: Graphs) -> bool:
    """Whether the graphs have the vectors, edge vectors and edge labels that the candidate is about."""
    if candidate.summands:
        return all(_suits(one, graphs) for one in candidate.summands)
    cuts_edges = "edges" in candidate.attributes
    needs_vectors = set(candidate.attributes) - {"edges", "none"}
    needs_labels = candidate.parameters.get("use_edge_labels", False) and not cuts_edges
    return (
        (graphs.n_attributes > 0 or not needs_vectors)
        and (graphs.n_edge_attributes > 0 or not cuts_edges)
        and (graphs.edge_labels is not None or not needs_labels)
    )


def _describe(candidate: Candidate) -> dict[str, Any]:
    """What a reader needs to tell the candidates of one entry apart."""
    return {"kernel": " + ".join(map(_name, candidate.summands or (candidate,)))}


def _name(candidate: Candidate) -> str:
    fixed = (f"{key}={value}" for key, value in candidate.parameters.items())
    return " ".join([candidate.kernel, *fixed, *candidate.attributes])


def _on_all(candidate: Candidate, graphs: Graphs, n_jobs: int | None) -> Grams:
    """The matrices over all graphs: of a kernel that learns nothing from data, or is allowed to learn from all."""
    points, found = gram_grids(build_kernel(candidate, n_jobs), graphs, candidate.grid)
    return unique([{**_describe(candidate), **point} for point in points], found)


def _on_training(candidate: Candidate, graphs: Graphs, train: Ints, test: Ints) -> Grams:
    """The matrices of one fold: a kernel fitted on its training graphs alone; kernels between test graphs are 0."""
    points, squares, rows = gram_grids(build_kernel(candidate), graphs[train], candidate.grid, graphs[test])
    matrices = []
    for square, row in zip(squares, rows, strict=True):
        K = np.zeros((len(graphs), len(graphs)))
        for ids, values in ((train, square), (test, row)):
            for i, own in zip(ids, values, strict=True):  # numpy sets rows one by one much faster than a block
                K[i, train] = own
        matrices.append(K)
    return unique([{**_describe(candidate), **point} for point in points], matrices)


# -------------------------------------------------------------------- units of work


@dataclass(frozen=True)
class _Job:
    study: Study
    store: Store
    run: int
    n_jobs: int | None
    most_held: float  # bytes of Gram matrices that are kept for the next repeats
    held: dict[str, list[Grams | None]] = field(default_factory=dict)  # by key

    def rows(self, repeat: int, data: CheckedData, entry: StudyEntry) -> Generator[Row]:
        """Compute and keep what is missing of a repeat; a row is given when it is in the store."""
        try:
            yield from self._rows(repeat, data, entry)
        except ValueError as error:
            raise StudyError(f"{entry.name} on {data.name}: {error}") from error

    def _rows(self, repeat: int, data: CheckedData, entry: StudyEntry) -> Generator[Row]:
        key = entry_key(self.study, entry, data.name)
        if not self.missing(key, repeat) or not self.store.claim(f"{key} {repeat}"):
            return
        if missing := self.missing(key, repeat):  # asked again: somebody may just have finished it
            entry = _drawn(_suited(entry, data.graphs), repeat)
            unit = _Unit(self.study.protocol, data, entry, self._shared(key, data, entry), self.run)
            split = self._folds(data, repeat)
            tasks = [(repeat, fold, *split[fold]) for fold in missing]
            # Workers send rows back; this process alone writes them.
            with contextlib.closing(send_tasks(_run_fold, unit, tasks, n_jobs=self.n_jobs, label=None)) as rows:
                for _, row in rows:
                    self.store.add_row(key, row)
                    yield row
        self.store.release(f"{key} {repeat}")

    def missing(self, key: str, repeat: int) -> list[int]:
        """The folds of a repeat that the store does not have."""
        done = self.store.done(key)
        return [fold for fold in range(self.study.protocol.outer_folds) if (repeat, fold) not in done]

    def _shared(self, key: str, data: CheckedData, entry: StudyEntry) -> list[Grams | None]:
        """The Gram matrices of each candidate, kept where there is room; None for one of which each fold needs its own."""
        if chooses_itself(entry):
            return []
        learns = [learns_from_data(build_kernel(one)) for one in entry.candidates]
        self._time(key, data, entry, learns=any(learns))
        if key in self.held:
            return self.held[key]
        is_own = (entry.fitted_on or self.study.protocol.fitted_on) == "training"
        found = [
            None if is_own and does_learn else _on_all(one, data.graphs, self.n_jobs)
            for one, does_learn in zip(entry.candidates, learns, strict=True)
        ]
        shared = [one for one in found if one]
        if len(shared) == len(found):
            similarities = (nearest_similarity(K) for one in shared for K in one.matrices)
            warn_if_diagonal(similarities, f"{entry.name} on {data.name}", has_attributes=data.graphs.n_attributes > 0)
        # Repeats come round in the same order, so that the first to come are as good to keep as the last.
        n_bytes = sum(one.n_bytes for one in shared)
        n_bytes += sum(one.n_bytes for grams in self.held.values() for one in grams if one)
        if not entry.redraw and n_bytes <= self.most_held:
            self.held[key] = found
        return found

    def _folds(self, data: CheckedData, repeat: int) -> list[tuple[Ints, Ints]]:
        protocol = self.study.protocol
        seed = seed_of(protocol.seed, data.name, repeat)
        if protocol.target == "numbers":
            return number_folds(len(data.targets), protocol.outer_folds, seed)
        return folds(data.targets, protocol.outer_folds, seed)

    def _time(self, key: str, data: CheckedData, entry: StudyEntry, *, learns: bool) -> None:
        """Note how long one Gram matrix takes on one thread."""
        if self.store.gram_times([key]):
            return
        first = entry.candidates[0]
        kernel = with_parameters(build_kernel(first), entry.timed)
        uses_edge_vectors = any("edges" in one.attributes for one in first.summands or (first,))
        graphs = data.graphs if uses_edge_vectors else replace(data.graphs, edge_attributes=None)
        kernel.fit_transform(graphs[:10])  # loops are compiled before the clock starts
        start = time.process_time()
        kernel.fit_transform(graphs)
        seconds = time.process_time() - start
        self.store.add_gram_time(key, GramTime(data.name, entry.name, dict(entry.timed), seconds, learns, self.run))


@dataclass(frozen=True)
class _Unit:
    """What all folds of an entry on a data set share."""

    protocol: Protocol
    data: CheckedData
    entry: StudyEntry
    grams: list[Grams | None]  # by candidate; None: each fold makes its own
    run: int


def _run_fold(unit: _Unit, repeat: int, fold: int, train: Ints, test: Ints) -> Row:
    start = time.thread_time()
    data, protocol = unit.data, unit.protocol
    seed = seed_of(protocol.seed, data.name, repeat, fold)
    if chooses_itself(unit.entry):
        select = SELECTIONS[unit.entry.baseline] if unit.entry.baseline else select_auto
        found = select(protocol, data.graphs, data.targets, train, test, seed)
    else:
        pairs = zip(unit.entry.candidates, unit.grams, strict=True)
        grams = [shared or _on_training(one, data.graphs, train, test) for one, shared in pairs]
        found = select_gram(protocol, joined(grams), data.targets, train, test, seed)
    return Row(
        dataset=data.name,
        kernel=unit.entry.name,
        repeat=repeat,
        fold=fold,
        actual=tuple(data.targets[test].tolist()),
        seconds=time.thread_time() - start,
        run=unit.run,
        **found,
    )
