"""Run a study: for each data set and entry all Gram matrices, then fold after fold, each kept as soon as it is done.

What is in the store is never computed again, so a run that was stopped, in whatever way, continues where it stopped. Folds and
seeds follow from names and numbers alone: the results do not depend on who computes them, when, or in which order.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.utils.multiclass import type_of_target

from treegram._parallel import run_tasks
from treegram._progress import track
from treegram._types import Floats, Ints
from treegram.datasets import load_tu
from treegram.errors import StudyError
from treegram.experiments.records import DatasetFacts, GramTime, Row
from treegram.experiments.store import Store
from treegram.experiments.study import Candidate, Protocol, Scope, Study, StudyEntry, entry_key
from treegram.graphs import Graphs
from treegram.kernels._grids import gram_grids, with_parameters
from treegram.kernels._pipelines import learns_from_data
from treegram.kernels.kernel_sum import KernelSum
from treegram.kernels.registry import KERNELS
from treegram.preprocessing import TRANSFORMATIONS
from treegram.selection.crossval import check_classes, check_targets, distinct, folds, seed_of, select

__all__ = ["CheckedData", "build_kernel", "check_data", "run_checked", "run_study"]


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
        The study, as :func:`~treegram.experiments.read_study` gives it.
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
    return run_checked(study, scope, checked, store, command="treegram.experiments.run_study", n_jobs=n_jobs)


def run_checked(
    study: Study, scope: Scope, data: Sequence[CheckedData], store: Store, *, command: str, n_jobs: int | None
) -> int:
    """As `run_study`, with data that is checked already; ``command`` is what the store says was asked for."""
    _refuse_other_data(data, store)
    store.put_study(study.name, study.text)
    run = store.begin_run(command).id
    for one in data:
        store.put_dataset(one.facts)
    job = _Job(study, store, run, n_jobs)
    n_planned = scope.repeats * study.protocol.outer_folds
    missing = sum(
        n_planned - sum(repeat < scope.repeats for repeat, _ in store.done(entry_key(study, entry, one.name)))
        for one in data
        for entry in scope.entries
    )
    rows = (row for one in data for entry in scope.entries for row in job.rows(one, entry, scope.repeats))
    return sum(1 for _row in track(rows, total=missing, label=study.name))


# -------------------------------------------------------------------- data and kernels


@dataclass(frozen=True)
class CheckedData:
    """A data set that can be cross-validated, with what a report says of it."""

    name: str
    graphs: Graphs
    codes: Ints
    facts: DatasetFacts


def check_data(data: Mapping[str, tuple[Graphs, Any]], protocol: Protocol) -> list[CheckedData]:
    """The data sets, each hashed; a `StudyError` names the first one that cannot be cross-validated."""
    return [_check_one(name, graphs, y, protocol) for name, (graphs, y) in data.items()]


def _check_one(name: str, graphs: Graphs, y: Any, protocol: Protocol) -> CheckedData:
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
    return CheckedData(name, graphs, codes, facts)


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


def _refuse_other_data(data: Sequence[CheckedData], store: Store) -> None:
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
                "Use another store."
            )


def build_kernel(candidate: Candidate, n_jobs: int | None = None) -> Any:
    """The estimator of a candidate, without its grid: a kernel, a sum, or a pipeline that ends in one of them."""
    if candidate.summands:
        kernel: Any = KernelSum([build_kernel(one, n_jobs) for one in candidate.summands])
    else:
        kernel = KERNELS[candidate.kernel](**candidate.parameters, n_jobs=n_jobs)
    steps = [TRANSFORMATIONS[name]() for name in candidate.attributes]
    return make_pipeline(*steps, kernel) if steps else kernel


def _describe(candidate: Candidate) -> dict[str, Any]:
    """What a reader needs to tell the candidates of one entry apart."""
    return {"kernel": " + ".join(map(_name, candidate.summands or (candidate,)))}


def _name(candidate: Candidate) -> str:
    fixed = (f"{key}={value}" for key, value in candidate.parameters.items())
    return " ".join([candidate.kernel, *fixed, *candidate.attributes])


@dataclass(frozen=True)
class _Grams:
    """Gram matrices without repetitions, each with the first choice of kernel and parameters that gives it."""

    chosen: list[dict[str, Any]]
    matrices: list[Floats]


def _unique(chosen: Sequence[dict[str, Any]], matrices: Sequence[Floats]) -> _Grams:
    kept, positions = distinct(matrices)
    return _Grams([chosen[positions.index(i)] for i in range(len(kept))], kept)


def _on_all(candidates: Sequence[Candidate], graphs: Graphs, n_jobs: int | None) -> _Grams:
    """The matrices over all graphs: for kernels that learn nothing from data, or are allowed to learn from all."""
    chosen, matrices = [], []
    for candidate in candidates:
        points, found = gram_grids(build_kernel(candidate, n_jobs), graphs, candidate.grid)
        chosen += [{**_describe(candidate), **point} for point in points]
        matrices += found
    return _unique(chosen, matrices)


def _on_training(candidates: Sequence[Candidate], graphs: Graphs, train: Ints, test: Ints) -> _Grams:
    """The matrices of one fold: kernels fitted on its training graphs alone; kernels between test graphs are 0."""
    chosen, matrices = [], []
    for candidate in candidates:
        points, squares, rows = gram_grids(build_kernel(candidate), graphs[train], candidate.grid, graphs[test])
        chosen += [{**_describe(candidate), **point} for point in points]
        for square, row in zip(squares, rows, strict=True):
            K = np.zeros((len(graphs), len(graphs)))
            K[np.ix_(train, train)] = square
            K[np.ix_(test, train)] = row
            matrices.append(K)
    return _unique(chosen, matrices)


# -------------------------------------------------------------------- units of work


@dataclass(frozen=True)
class _Job:
    study: Study
    store: Store
    run: int
    n_jobs: int | None

    def rows(self, data: CheckedData, entry: StudyEntry, repeats: int) -> Iterator[Row]:
        """Compute and keep what is missing of an entry on a data set; a row is given when it is in the store."""
        try:
            yield from self._rows(data, entry, repeats)
        except ValueError as error:
            raise StudyError(f"{entry.name} on {data.name}: {error}") from error

    def _rows(self, data: CheckedData, entry: StudyEntry, repeats: int) -> Iterator[Row]:
        key = entry_key(self.study, entry, data.name)
        shared: _Grams | None = None  # by all folds; none if each fold needs its own
        for repeat in range(repeats):
            if not self._missing(key, repeat) or not self.store.claim(f"{key} {repeat}"):
                continue
            missing = self._missing(key, repeat)  # asked again: somebody may just have finished it
            learns = any(learns_from_data(build_kernel(candidate)) for candidate in entry.candidates)
            if missing:
                self._time(key, data, entry, learns=learns)
            if missing and shared is None and not (learns and self._fitted_on(entry) == "training"):
                shared = _on_all(entry.candidates, data.graphs, self.n_jobs)
            split = self._folds(data, repeat)
            units = [(data, entry, shared, repeat, fold, *split[fold]) for fold in missing]
            with contextlib.closing(
                run_tasks(self._unit, units, n_jobs=self.n_jobs, label=None, in_order=False)
            ) as rows:
                for row in rows:
                    self.store.add_row(key, row)
                    yield row
            self.store.release(f"{key} {repeat}")

    def _missing(self, key: str, repeat: int) -> list[int]:
        """The folds of a repeat that the store does not have."""
        done = self.store.done(key)
        return [fold for fold in range(self.study.protocol.outer_folds) if (repeat, fold) not in done]

    def _folds(self, data: CheckedData, repeat: int) -> list[tuple[Ints, Ints]]:
        protocol = self.study.protocol
        return folds(data.codes, protocol.outer_folds, seed_of(protocol.seed, data.name, repeat))

    def _fitted_on(self, entry: StudyEntry) -> str:
        return entry.fitted_on or self.study.protocol.fitted_on

    def _time(self, key: str, data: CheckedData, entry: StudyEntry, *, learns: bool) -> None:
        """Note how long one Gram matrix takes on one thread."""
        if self.store.gram_times([key]):
            return
        kernel = with_parameters(build_kernel(entry.candidates[0]), entry.timed)
        kernel.fit_transform(data.graphs[:10])  # loops are compiled before the clock starts
        start = time.process_time()
        kernel.fit_transform(data.graphs)
        seconds = time.process_time() - start
        self.store.add_gram_time(key, GramTime(data.name, entry.name, dict(entry.timed), seconds, learns, self.run))

    def _unit(
        self,
        data: CheckedData,
        entry: StudyEntry,
        shared: _Grams | None,
        repeat: int,
        fold: int,
        train: Ints,
        test: Ints,
    ) -> Row:
        start = time.thread_time()
        grams = _on_training(entry.candidates, data.graphs, train, test) if shared is None else shared
        protocol = self.study.protocol
        seed = seed_of(protocol.seed, data.name, repeat, fold)
        Cs = np.sort(np.array(protocol.C, dtype=np.float64))
        best = select(grams.matrices, data.codes, train, test, Cs, n_folds=protocol.inner_folds, seed=seed)
        return Row(
            dataset=data.name,
            kernel=entry.name,
            repeat=repeat,
            fold=fold,
            actual=tuple(data.codes[test].tolist()),
            predicted=tuple(best.predicted.tolist()),
            chosen={**grams.chosen[best.gram], "C": best.C},
            inner_accuracy=best.inner_accuracy,
            n_fits=best.fits.n_fits,
            n_unconverged=best.fits.n_unconverged,
            seconds=time.thread_time() - start,
            run=self.run,
        )
