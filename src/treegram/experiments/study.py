"""What a study is: kernels, grids, data sets, folds, seeds and, for a paper, its published numbers.

It is written as a file, which ``study_file`` reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from treegram._wording import suggest
from treegram.errors import StudyError

__all__ = [
    "Candidate",
    "Comparison",
    "Protocol",
    "Published",
    "Scope",
    "Study",
    "StudyEntry",
    "entry_key",
]


@dataclass(frozen=True)
class Candidate:
    """One kernel with the lists that inner cross-validation chooses from."""

    kernel: str  # a key of treegram.kernels.registry.KERNELS, or "sum" (then summands is not empty)
    parameters: Mapping[str, Any] = field(default_factory=dict)  # fixed
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # parameter -> values, in order of preference
    attributes: tuple[str, ...] = ()  # names of transformations applied to the attributes first, in order
    summands: tuple[Candidate, ...] = ()  # of a sum; the grid of the sum is set in every one


@dataclass(frozen=True)
class Published:
    """Numbers that a paper prints for one kernel, by data set."""

    accuracy: Mapping[str, float | str] = field(default_factory=dict)  # percent, or words such as "out of memory"
    deviation: Mapping[str, float] = field(default_factory=dict)  # standard deviation over repeats, percent
    seconds: Mapping[str, float] = field(default_factory=dict)  # of one Gram matrix


@dataclass(frozen=True)
class StudyEntry:
    """One line of the study's table: what is selected from, under one name."""

    name: str
    candidates: tuple[Candidate, ...]
    timed: Mapping[str, Any] = field(default_factory=dict)  # parameters for the time of one Gram matrix
    note: str = ""
    published: Published = field(default_factory=Published)
    fitted_on: str = ""  # overrides the protocol's unless empty


@dataclass(frozen=True)
class Protocol:
    """How the kernels are compared."""

    repeats: int = 10
    outer_folds: int = 10
    inner_folds: int = 10
    seed: int = 0
    C: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
    fitted_on: str = (
        "training"  # what learns from data sees: "training" graphs of the outer fold, or "all" (declared label-free)
    )


@dataclass(frozen=True)
class Comparison:
    """A set of kernels and data sets on which a Friedman test is run, and the pairs that are tested one by one."""

    name: str
    kernels: tuple[str, ...]
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Scope:
    """What of a study is run: these data sets, these entries, the first so many repeats."""

    datasets: tuple[str, ...]
    entries: tuple[StudyEntry, ...]
    repeats: int


@dataclass(frozen=True)
class Study:
    """A whole study, checked. Make it by `treegram.experiments.read_study`."""

    name: str
    title: str
    datasets: tuple[str, ...]
    entries: tuple[StudyEntry, ...]
    protocol: Protocol = field(default_factory=Protocol)
    about: str = ""  # a paragraph for the report
    reference: str = ""
    remarks: tuple[str, ...] = ()  # what a reader of the table of accuracies should know
    comparisons: tuple[Comparison, ...] = ()
    pairs: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # (kernel, baseline, data sets) for the t-tests
    dataset_notes: Mapping[str, str] = field(default_factory=dict)  # data set -> what a reader should know
    text: str = field(default="", compare=False)  # the file it was read from

    def scope(
        self,
        datasets: Collection[str] | None = None,
        kernels: Collection[str] | None = None,
        repeats: int | None = None,
    ) -> Scope:
        """The part of the study that is asked for; None means all. A `StudyError` names what the study does not have."""
        entries = {entry.name: entry for entry in self.entries}
        for wanted, known, what in ((datasets, self.datasets, "data set"), (kernels, entries, "kernel")):
            for name in wanted or ():
                if name not in known:
                    hint = suggest(name, known) or "."
                    raise StudyError(f"The study {self.name} has no {what} {name!r}; it has {', '.join(known)}{hint}")
        planned = self.protocol.repeats
        if repeats is not None and repeats < 1:
            raise StudyError(f"The number of repeats must be at least 1; got {repeats}.")
        if repeats is not None and repeats > planned:
            raise StudyError(
                f"The study {self.name} has {planned} repeats; got {repeats}. Change the number in its file."
            )
        return Scope(
            tuple(name for name in self.datasets if datasets is None or name in datasets),
            tuple(entry for entry in self.entries if kernels is None or entry.name in kernels),
            planned if repeats is None else repeats,
        )


# -------------------------------------------------------------------- identity


def entry_key(study: Study, entry: StudyEntry, dataset: str) -> str:
    """What determines an entry's results on a data set, as 16 hexadecimal digits.

    Equal keys mean equal rows: the key covers the candidates, the folds, the seed and the values of C, and nothing else. A
    new entry, another data set, more repeats, a note or another name do not change it; a changed grid does.
    """
    protocol = study.protocol
    content = {
        "dataset": dataset,
        "choices": [_content(candidate) for candidate in entry.candidates],
        "outer_folds": protocol.outer_folds,
        "inner_folds": protocol.inner_folds,
        "seed": protocol.seed,
        "C": _canonical(protocol.C),
        "fitted_on": entry.fitted_on or protocol.fitted_on,
    }
    words = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _content(candidate: Candidate) -> dict[str, Any]:
    """A candidate as JSON has it; what is empty is left out, so that a new field with a default changes no old key."""
    content = {
        "kernel": candidate.kernel,
        "parameters": _canonical(candidate.parameters),
        # Pairs, as their order counts: of two equally good points of a grid, the first one is chosen.
        "grid": [[name, _canonical(values)] for name, values in candidate.grid.items()],
        "attributes": list(candidate.attributes),
        "parts": [_content(summand) for summand in candidate.summands],
    }
    return {name: value for name, value in content.items() if value}


def _canonical(value: Any) -> Any:
    """Equal values in one form: 1.0 is 1, a tuple is a list."""
    if isinstance(value, Mapping):
        return {name: _canonical(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_canonical(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
