"""What an experiment leaves behind: plain records, checked when they are made, written once and never changed.

A **Row** is one outer fold of one kernel on one data set, the unit of work that survives a crash. Everything else about a
run (tables, statistics, pictures) is computed from these records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NUMBERS", "DatasetFacts", "GramTime", "Row", "Run"]

# Of targets that are numbers: lowest, highest, mean, standard deviation, and the mean absolute error of answering the mean.
NUMBERS = ("lowest", "highest", "mean", "deviation", "mean_error")


@dataclass(frozen=True)
class Row:
    """The result of one outer fold."""

    dataset: str
    kernel: str  # the entry's name in the study
    repeat: int  # from 0
    fold: int  # from 0
    # Of each test graph, in ascending order of ids: its class, an index into the sorted classes, or its number.
    actual: tuple[int, ...] | tuple[float, ...]
    predicted: tuple[int, ...] | tuple[float, ...]  # the same, as the model has it
    chosen: Mapping[str, Any]  # what inner cross-validation chose: kernel, its parameters, C or alpha
    inner_score: (
        float  # the mean over the inner folds of what was chosen: accuracy, or 1 - MSE / variance of the targets
    )
    n_fits: int  # fits of a model that were needed, after skipping those with a known result
    n_unconverged: int  # of these, how many ended before the solver's tolerance was met
    seconds: float  # processor time
    run: int  # which process, see Run
    # Of classes, graph by graph, in single precision: one number above 0 for the second of two classes, or one for each class.
    decisions: tuple[float, ...] = ()  # empty: not kept, as in stores of version 3, or none

    def __post_init__(self) -> None:
        _require(len(self.actual) == len(self.predicted) > 0, "a fold has as many predictions as test graphs")
        if self.target == "classes":
            _require(0 <= self.inner_score <= 1, f"an accuracy is between 0 and 1, not {self.inner_score}")
        else:
            _require(-math.inf < self.inner_score <= 1, f"1 - MSE / variance is at most 1, not {self.inner_score}")
        targets = (*self.actual, *self.predicted)
        _require(len({isinstance(one, float) for one in targets}) == 1, "targets are all classes or all numbers")
        _require_finite(targets, "targets")
        _require(len(self.decisions) % len(self.actual) == 0, "there are as many decisions for each test graph")
        _require_finite(self.decisions, "decisions")
        _require(min(self.repeat, self.fold) >= 0, "repeats and folds are numbered from 0")
        _require(0 <= self.n_unconverged <= self.n_fits, "no more fits can fail than are made")
        _require_amount(self.seconds, "seconds")

    @property
    def target(self) -> str:
        """What was predicted: "classes" for classes, "numbers" for numbers."""
        return "numbers" if isinstance(self.actual[0], float) else "classes"

    @property
    def score(self) -> float:
        """The accuracy, that is the share of right classes; for numbers the mean absolute error."""
        pairs = zip(self.actual, self.predicted, strict=True)
        if self.target == "classes":
            return sum(actual == predicted for actual, predicted in pairs) / len(self.actual)
        return sum(abs(actual - predicted) for actual, predicted in pairs) / len(self.actual)


@dataclass(frozen=True)
class GramTime:
    """The time of one full Gram matrix of a kernel, on one thread, and whether the kernel learns from data."""

    dataset: str
    kernel: str
    parameters: Mapping[str, Any]
    seconds: float  # processor time
    learns: bool  # whether the kernel, or a transformation before it, is fitted to graphs
    run: int

    def __post_init__(self) -> None:
        _require_amount(self.seconds, "seconds")


@dataclass(frozen=True)
class DatasetFacts:
    """What a report says about a data set."""

    name: str
    n_graphs: int
    class_counts: Mapping[str, int]  # by sorted class; empty for numbers
    mean_nodes: float
    mean_edges: float
    n_attributes: int
    digest: str  # SHA-256 of all that the graphs and their targets are: equal for equal data alone
    numbers: Mapping[str, float] = field(default_factory=dict)  # of targets that are numbers: see `NUMBERS`

    def __post_init__(self) -> None:
        _require(self.n_graphs > 0, f"a data set has graphs, not {self.n_graphs}")
        _require(bool(self.class_counts) != bool(self.numbers), "targets are either classes or numbers")
        if self.numbers:
            _require(tuple(self.numbers) == NUMBERS, f"of numbers one knows {', '.join(NUMBERS)}")
            _require_finite(tuple(self.numbers.values()), "targets")
            _require_amount(self.numbers["deviation"], "deviation")
            _require_amount(self.numbers["mean_error"], "mean_error")
        else:
            counts = self.class_counts.values()
            _require(min(counts) > 0, "every class has a graph")
            _require(sum(counts) == self.n_graphs, f"classes of {sum(counts)} graphs, and {self.n_graphs} graphs")
        for name in ("mean_nodes", "mean_edges", "n_attributes"):
            _require_amount(getattr(self, name), name)


@dataclass(frozen=True)
class Run:
    """One process that added to a store."""

    id: int
    started: str  # ISO 8601, UTC
    command: str
    versions: Mapping[str, str]  # of Python and of each package that matters
    machine: Mapping[str, Any]  # processor, cores, memory in GiB, system; never a host's name or a path


def _require(is_met: bool, requirement: str) -> None:  # noqa: FBT001 (as assert)
    if not is_met:
        raise ValueError(requirement)


def _require_finite(values: Iterable[float], name: str) -> None:
    _require(all(map(math.isfinite, values)), f"{name} must be finite numbers")


def _require_amount(value: float, name: str) -> None:
    _require(math.isfinite(value) and value >= 0, f"{name} must be a finite number of at least 0, not {value}")
