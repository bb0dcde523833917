"""Run a study: for each data set and entry all Gram matrices, then fold after fold, each kept as soon as it is done.

What is in the store is never computed again, so a run that was stopped, in whatever way, goes on where it was. Folds and
seeds follow from names and numbers alone: the results do not depend on who computes them, when, or in which order.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.utils.multiclass import type_of_target

from treegram._parallel import run_tasks
from treegram._progress import track
from treegram._types import Floats, Ints
from treegram.errors import StudyError
from treegram.experiments.records import DatasetFacts, GramTime, Row
from treegram.experiments.store import Store
from treegram.experiments.study import Choice, Entry, Protocol, Study, entry_key
from treegram.graphs import Graphs
from treegram.kernels._grids import gram_grids, with_parameters
from treegram.kernels._pipelines import learns_from_data
from treegram.kernels.kernel_sum import KernelSum
from treegram.kernels.registry import KERNELS
from treegram.preprocessing import TRANSFORMATIONS
from treegram.selection.crossval import check_classes, check_targets, distinct, folds, seed_of, select

__all__ = ["Part", "build_kernel", "check_data", "run_study"]

Load = Callable[[str], tuple[Graphs, Any]]


@dataclass(frozen=True)
class Part:
    """Which part of a study to run; None: all that it has."""

    datasets: Collection[str] | None = None
    kernels: Collection[str] | None = None
    repeats: int | None = None  # the first so many

    def of(self, study: Study) -> tuple[list[str], list[Entry], int]:
        """The data sets, entries and number of repeats of this part."""
        entries = {entry.name: entry for entry in study.entries}
        for given, known, what in (
            (self.datasets, study.datasets, "data set"),
            (self.kernels, entries, "kernel"),
        ):
            for name in given or ():
                if name not in known:
                    raise StudyError(f"The study {study.name} has no {what} {name!r}; it has {', '.join(known)}.")
        repeats = study.protocol.repeats if self.repeats is None else self.repeats
        if repeats < 1:
            raise StudyError(f"The number of repeats must be at least 1; got {repeats}.")
        if repeats > study.protocol.repeats:
            raise StudyError(
                f"The study {study.name} has {study.protocol.repeats} repeats; got {repeats}. Change the number in its file."
            )
        datasets = [name for name in study.datasets if self.datasets is None or name in self.datasets]
        return datasets, [e for e in study.entries if self.kernels is None or e.name in self.kernels], repeats


def run_study(study: Study, store: Store, *, run: int, load: Load, part: Part, n_jobs: int | None = None) -> int:
    """Add what is missing to the store.

    Parameters
    ----------
    study : Study
        The study.
    store : Store
        Where rows are kept, and looked for.
    run : int
        Number of this run in the store.
    load : callable
        Gives the graphs and classes of a data set by its name.
    part : Part
        Which part to run.
    n_jobs : int or None
        Threads, as in joblib: they share the outer folds of a repeat.

    Returns
    -------
    int
        The number of rows that were added. Rows that another process works on are left to it.
    """
    names, entries, repeats = part.of(study)
    data = [check_data(name, *load(name), study.protocol) for name in names]  # all first: what is wrong is told at once
    _refuse_other_data(data, store)
    for one in data:
        store.put_dataset(one.facts)
    job = _Job(study, store, run, n_jobs)
    missing = sum(
        repeats * study.protocol.outer_folds
        - sum(repeat < repeats for repeat, _ in store.done(entry_key(study, entry, name)))
        for name in names
        for entry in entries
    )
    rows = (row for one in data for entry in entries for row in _naming(entry, one, job.rows(one, entry, repeats)))
    added = 0
    for _row in track(rows, total=missing, label=study.name):
        added += 1
    return added


def _naming(entry: Entry, data: _Data, rows: Iterator[Row]) -> Iterator[Row]:
    """The same rows; an error says which entry failed on which data set."""
    try:
        yield from rows
    except ValueError as error:
        raise StudyError(f"{entry.name} on {data.name}: {error}") from error


# -------------------------------------------------------------------- data and kernels


@dataclass(frozen=True)
class _Data:
    name: str
    graphs: Graphs
    codes: Ints
    facts: DatasetFacts


def check_data(name: str, graphs: Graphs, y: Any, protocol: Protocol) -> _Data:
    """The data set with what a report says of it; an error if it cannot be cross-validated."""
    if y is None:
        raise StudyError(f"{name} has no targets; a study needs a class for each graph.")
    try:
        if type_of_target(check_targets(y)).startswith("continuous"):
            raise ValueError("The targets are numbers, and a study needs classes; GraphRidge predicts numbers.")
        classes, codes = check_classes(y, protocol.outer_folds, protocol.inner_folds)
    except ValueError as error:
        raise StudyError(f"{name}: {error}") from error
    counts = {str(one): int(count) for one, count in zip(classes, np.bincount(codes), strict=True)}
    facts = DatasetFacts(
        name=name,
        n_graphs=len(graphs),
        class_counts=counts,
        mean_nodes=graphs.n_nodes / len(graphs),
        mean_edges=graphs.n_edges / len(graphs),
        n_attributes=graphs.n_attributes,
        digest=_digest(graphs, codes),
    )
    return _Data(name, graphs, codes, facts)


def _digest(graphs: Graphs, codes: Ints) -> str:
    """SHA-256 of every array and label of the graphs, and of their classes."""
    digest = hashlib.sha256()
    parts = {field.name: getattr(graphs, field.name) for field in fields(graphs)} | {"targets": codes}
    for name, value in parts.items():
        if isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype.str} {value.shape}".encode() + value.tobytes())
        else:
            digest.update(f"{name} {value}".encode())
    return digest.hexdigest()


def _refuse_other_data(data: Sequence[_Data], store: Store) -> None:
    """Raise if the store has results for a data set of the same name that is another one."""
    known = {facts.name: asdict(facts) for facts in store.datasets()}
    used = {row.dataset for row in store.rows()} if known else set()
    for one in data:
        now, then = asdict(one.facts), known.get(one.name, asdict(one.facts))
        if one.name in used and now != then:
            changed = [key for key in now if now[key] != then[key] and key != "digest"]
            changes = ", ".join(f"{key} is {now[key]} and was {then[key]}" for key in changed)
            raise StudyError(
                f"{one.name} is not the data set that {store.path} has results for: "
                f"{changes or 'as many graphs of the same sizes, but other edges, labels, vectors or classes'}. "
                "Give another store."
            )


def build_kernel(choice: Choice, n_jobs: int | None = None) -> Any:
    """The estimator of a choice, without its grid: a kernel, a sum, or a pipeline that ends in one of them."""
    if choice.parts:
        kernel: Any = KernelSum([build_kernel(part, n_jobs) for part in choice.parts])
    else:
        kernel = KERNELS[choice.kernel](**choice.parameters, n_jobs=n_jobs)
    steps = [TRANSFORMATIONS[name]() for name in choice.attributes]
    return make_pipeline(*steps, kernel) if steps else kernel


def _describe(choice: Choice) -> dict[str, Any]:
    """What a reader needs to tell the choices of one entry apart."""
    if choice.parts:
        return {"kernel": " + ".join(_name(part) for part in choice.parts)}
    return {"kernel": _name(choice)}


def _name(choice: Choice) -> str:
    return " ".join(
        [choice.kernel, *(f"{key}={value}" for key, value in choice.parameters.items()), *choice.attributes]
    )


@dataclass(frozen=True)
class _Candidates:
    """Gram matrices without repetitions, each with the first of the choices that give it."""

    chosen: list[dict[str, Any]]
    grams: list[Floats]


def _unique(chosen: Sequence[dict[str, Any]], grams: Sequence[Floats]) -> _Candidates:
    kept, positions = distinct(grams)
    return _Candidates([chosen[positions.index(i)] for i in range(len(kept))], kept)


def _on_all(choices: Sequence[Choice], graphs: Graphs, n_jobs: int | None) -> _Candidates:
    """The candidates over all graphs: for kernels that learn nothing from data, or may."""
    chosen, grams = [], []
    for choice in choices:
        points, matrices = gram_grids(build_kernel(choice, n_jobs), graphs, choice.grid)
        chosen += [{**_describe(choice), **point} for point in points]
        grams += matrices
    return _unique(chosen, grams)


def _on_training(choices: Sequence[Choice], graphs: Graphs, train: Ints, test: Ints) -> _Candidates:
    """The candidates of one fold: kernels fitted on its training graphs alone; kernels of test graphs among them are 0."""
    chosen, grams = [], []
    for choice in choices:
        points, squares, rows = gram_grids(build_kernel(choice), graphs[train], choice.grid, graphs[test])
        chosen += [{**_describe(choice), **point} for point in points]
        for square, row in zip(squares, rows, strict=True):
            K = np.zeros((len(graphs), len(graphs)))
            K[np.ix_(train, train)] = square
            K[np.ix_(test, train)] = row
            grams.append(K)
    return _unique(chosen, grams)


# -------------------------------------------------------------------- units of work


@dataclass(frozen=True)
class _Job:
    study: Study
    store: Store
    run: int
    n_jobs: int | None

    def rows(self, data: _Data, entry: Entry, repeats: int) -> Iterator[Row]:
        """Compute and keep what is missing of an entry on a data set; a row is given when it is in the store."""
        key = entry_key(self.study, entry, data.name)
        n_folds = self.study.protocol.outer_folds
        candidates: _Candidates | None = None
        for repeat in range(repeats):
            task = f"{key} {repeat}"
            if len({unit for unit in self.store.done(key) if unit[0] == repeat}) == n_folds:
                continue
            if not self.store.claim(task):
                continue
            done = {fold for at, fold in self.store.done(key) if at == repeat}  # somebody may just have finished it
            if len(done) < n_folds and candidates is None:
                self._time(key, data, entry)
                candidates = self._candidates(data, entry)
            units = [
                (data, entry, candidates, repeat, fold, train, test)
                for fold, (train, test) in enumerate(self._folds(data, repeat))
                if fold not in done
            ]
            with contextlib.closing(
                run_tasks(self._unit, units, n_jobs=self.n_jobs, label=None, in_order=False)
            ) as rows:
                for row in rows:
                    self.store.add_row(key, row)
                    yield row
            self.store.release(task)

    def _folds(self, data: _Data, repeat: int) -> list[tuple[Ints, Ints]]:
        protocol = self.study.protocol
        return folds(data.codes, protocol.outer_folds, seed_of(protocol.seed, data.name, repeat))

    def _learns(self, entry: Entry) -> bool:
        on_all = (entry.fitted_on or self.study.protocol.fitted_on) == "all"
        return not on_all and any(learns_from_data(build_kernel(choice)) for choice in entry.choices)

    def _candidates(self, data: _Data, entry: Entry) -> _Candidates:
        """Those of all folds; none here if each fold must have its own."""
        if self._learns(entry):
            return _Candidates([], [])
        return _on_all(entry.choices, data.graphs, self.n_jobs)

    def _time(self, key: str, data: _Data, entry: Entry) -> None:
        """Note how long one Gram matrix takes on one thread."""
        if self.store.gram_times([key]):
            return
        kernel = with_parameters(build_kernel(entry.choices[0]), entry.timed)
        kernel.fit_transform(data.graphs[:10])  # loops are compiled before the clock starts
        start = time.process_time()
        kernel.fit_transform(data.graphs)
        seconds = time.process_time() - start
        self.store.add_gram_time(key, GramTime(data.name, entry.name, dict(entry.timed), seconds, self.run))

    def _unit(
        self, data: _Data, entry: Entry, candidates: _Candidates, repeat: int, fold: int, train: Ints, test: Ints
    ) -> Row:
        start = time.thread_time()
        if not candidates.grams:
            candidates = _on_training(entry.choices, data.graphs, train, test)
        protocol = self.study.protocol
        seed = seed_of(protocol.seed, data.name, repeat, fold)
        Cs = np.sort(np.array(protocol.C, dtype=np.float64))
        best = select(candidates.grams, data.codes, train, test, Cs, n_folds=protocol.inner_folds, seed=seed)
        return Row(
            dataset=data.name,
            kernel=entry.name,
            repeat=repeat,
            fold=fold,
            accuracy=float((best.predicted == data.codes[test]).mean()),
            chosen={**candidates.chosen[best.gram], "C": best.C},
            inner_accuracy=best.inner_accuracy,
            predicted=tuple(best.predicted.tolist()),
            n_fits=best.fits.n_fits,
            n_unconverged=best.fits.n_unconverged,
            seconds=time.thread_time() - start,
            run=self.run,
        )
