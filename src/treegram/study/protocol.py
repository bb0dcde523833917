"""What a study is: kernels, grids, data sets, folds, seeds and, for a paper, its published numbers.

It is written as a file, which ``study_file`` reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from treegram._core.errors import StudyError
from treegram._core.text import suggest

__all__ = [
    "BASELINES",
    "CONTROLS",
    "Candidate",
    "Comparison",
    "Pair",
    "Protocol",
    "Published",
    "Scope",
    "Study",
    "StudyEntry",
    "entry_key",
]


# What a study may do to its data sets, to see what scores rest on; `controls` has the functions.
CONTROLS = {
    "permuted-targets": "the targets are permuted among the graphs, so that nothing can be learned",
    "permuted-vectors": "the vectors are permuted among all nodes of all graphs",
    "turned": "the vectors of each graph are turned at random about their mean, as coordinates without a common frame",
    "without-twins": "of graphs that are equal in labels, vectors and edges only the first is kept",
}

# What an entry may be instead of kernels; `baselines` has the functions.
BASELINES = {
    "summary-svm": "a support vector machine on means, variances and histograms of each graph's labels, vectors and degrees",
    "summary-forest": "a random forest on the same numbers",
    "gin": "a graph isomorphism network, with early stopping",
}


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
    candidates: tuple[Candidate, ...]  # empty for a baseline
    timed: Mapping[str, Any] = field(default_factory=dict)  # parameters for the time of one Gram matrix
    note: str = ""
    published: Published = field(default_factory=Published)
    fitted_on: str = ""  # overrides the protocol's unless empty
    datasets: tuple[str, ...] = ()  # of the study's; empty: all
    baseline: str = ""  # a name in BASELINES, in place of candidates
    repeats: int | None = None  # at most so many, for what is expensive
    redraw: bool = False  # whether random_state is the number of the repeat, so that means are over draws, too

    def is_for(self, dataset: str) -> bool:
        """Whether the entry is run on this data set of the study."""
        return not self.datasets or dataset in self.datasets


@dataclass(frozen=True)
class Protocol:
    """How the kernels are compared."""

    repeats: int = 10
    outer_folds: int = 10
    inner_folds: int = 10
    seed: int = 0
    C: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)  # of a support vector machine
    fitted_on: str = (
        "training"  # what learns from data sees: "training" graphs of the outer fold, or "all" (declared label-free)
    )
    target: str = "classes"  # or "numbers": targets are numbers
    alpha: tuple[float, ...] = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)  # of ridge regression
    min_class_size: int = 1  # graphs of classes with fewer are left out
    control: str = ""  # a name in CONTROLS; empty: data as they are
    repeats_on: Mapping[str, int] = field(default_factory=dict)  # data set -> at most so many repeats

    @property
    def strengths(self) -> tuple[str, tuple[float, ...]]:
        """What the model's strength of regularization is called, and the values to choose from, as the model orders them."""
        if self.target == "numbers":
            return "alpha", tuple(sorted(self.alpha, reverse=True))
        return "C", tuple(sorted(self.C))


@dataclass(frozen=True)
class Comparison:
    """A set of kernels and data sets on which a Friedman test is run, and the pairs that are tested one by one."""

    name: str
    kernels: tuple[str, ...]
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two kernels that are compared data set by data set."""

    kernel: str
    baselines: tuple[str, ...]  # from several, the one with the best mean on each data set
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Scope:
    """What of a study is run: these data sets, these entries, the first so many repeats."""

    datasets: tuple[str, ...]
    entries: tuple[StudyEntry, ...]
    repeats: int


@dataclass(frozen=True)
class Study:
    """A whole study, checked. Make it by `treegram.study.read_study`."""

    name: str
    title: str
    datasets: tuple[str, ...]
    entries: tuple[StudyEntry, ...]
    protocol: Protocol = field(default_factory=Protocol)
    about: str = ""  # a paragraph for the report
    reference: str = ""
    remarks: tuple[str, ...] = ()  # what a reader of the table of accuracies should know
    comparisons: tuple[Comparison, ...] = ()
    pairs: tuple[Pair, ...] = ()
    dataset_notes: Mapping[str, str] = field(default_factory=dict)  # data set -> what a reader should know
    text: str = field(default="", compare=False)  # the file it was read from

    @property
    def digest(self) -> str:
        """SHA-256 of the file, as ``sha256sum`` gives it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def repeats_of(self, entry: StudyEntry, dataset: str) -> int:
        """How many repeats are planned of an entry on a data set: none where it is for other data sets."""
        if not entry.is_for(dataset):
            return 0
        most = self.protocol.repeats
        return min(most, entry.repeats or most, self.protocol.repeats_on.get(dataset, most))

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

    Equal keys mean equal rows: the key covers the candidates, the folds, the seed, the kind of target and the values of C or alpha, and
    nothing else. A
    new entry, another data set, more repeats, a note or another name do not change it; a changed grid does.
    """
    protocol = study.protocol
    content = {
        "dataset": dataset,
        "choices": [_content(candidate) for candidate in entry.candidates],
        "outer_folds": protocol.outer_folds,
        "inner_folds": protocol.inner_folds,
        "seed": protocol.seed,
        "fitted_on": entry.fitted_on or protocol.fitted_on,
        **_target_content(protocol),
        **({"baseline": entry.baseline} if entry.baseline else {}),
        **({"redraw": True} if entry.redraw else {}),
    }
    words = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _target_content(protocol: Protocol) -> dict[str, Any]:
    """What is usual is left out, so that the keys of older stores stay."""
    control = {"control": protocol.control} if protocol.control else {}
    if protocol.target == "numbers":
        return {"target": protocol.target, "alpha": _canonical(protocol.alpha), **control}
    smallest = {"min_class_size": protocol.min_class_size} if protocol.min_class_size > 1 else {}
    return {"C": _canonical(protocol.C), **smallest, **control}


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
