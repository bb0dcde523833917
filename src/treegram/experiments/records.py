"""What an experiment leaves behind: plain records, checked when they are made, written once and never changed.

A **Row** is one outer fold of one kernel on one data set, the unit of work that survives a crash. Everything else about a
run (tables, statistics, pictures) is computed from these records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["DatasetFacts", "GramTime", "Row", "Run"]


@dataclass(frozen=True)
class Row:
    """The result of one outer fold."""

    dataset: str
    kernel: str  # the entry's name in the study
    repeat: int  # from 0
    fold: int  # from 0
    actual: tuple[int, ...]  # class of each test graph, in ascending order of ids: index into the sorted classes
    predicted: tuple[int, ...]  # the same, as the model has it
    chosen: Mapping[str, Any]  # what inner cross-validation chose: kernel, its parameters, C
    inner_accuracy: float  # the mean accuracy over the inner folds of what was chosen
    n_fits: int  # fits of an SVM that were needed, after skipping those with a known result
    n_unconverged: int  # of these, how many ended before the solver's tolerance was met
    seconds: float  # processor time
    run: int  # which process, see Run

    def __post_init__(self) -> None:
        _require(len(self.actual) == len(self.predicted) > 0, "a fold has as many predicted classes as test graphs")
        _require(0 <= self.inner_accuracy <= 1, f"an accuracy is between 0 and 1, not {self.inner_accuracy}")
        _require(min(self.repeat, self.fold) >= 0, "repeats and folds are numbered from 0")
        _require(0 <= self.n_unconverged <= self.n_fits, "no more fits can fail than are made")
        _require_amount(self.seconds, "seconds")

    @property
    def accuracy(self) -> float:
        """The share of the test graphs whose class was predicted right."""
        pairs = zip(self.actual, self.predicted, strict=True)
        return sum(actual == predicted for actual, predicted in pairs) / len(self.actual)


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
    class_counts: Mapping[str, int]  # by sorted class
    mean_nodes: float
    mean_edges: float
    n_attributes: int
    digest: str  # SHA-256 of all that the graphs and their classes are: equal for equal data alone

    def __post_init__(self) -> None:
        counts = self.class_counts.values()
        _require(self.n_graphs > 0, f"a data set has graphs, not {self.n_graphs}")
        _require(min(counts, default=0) > 0, "every class has a graph")
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


def _require_amount(value: float, name: str) -> None:
    _require(math.isfinite(value) and value >= 0, f"{name} must be a finite number of at least 0, not {value}")
