"""What an experiment leaves behind: plain records, written once and never changed.

A **Row** is one outer fold of one kernel on one data set, the unit of work that survives a crash. Everything else about a
run (tables, statistics, pictures) is computed from these records.
"""

from __future__ import annotations

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
    accuracy: float  # on the fold's test graphs, 0 to 1
    chosen: Mapping[str, Any]  # what inner cross-validation chose: kernel, its parameters, C
    inner_accuracy: float  # the mean accuracy over the inner folds of what was chosen
    predicted: tuple[
        int, ...
    ]  # for each test graph, in ascending order of ids: index into the data set's sorted classes
    n_fits: int  # fits of an SVM that were needed, after skipping those with a known result
    n_unconverged: int  # of these, how many ended before the solver's tolerance was met
    seconds: float  # processor time
    run: int  # which process, see Run


@dataclass(frozen=True)
class GramTime:
    """The time of one full Gram matrix, on one thread."""

    dataset: str
    kernel: str
    parameters: Mapping[str, Any]
    seconds: float  # processor time
    run: int


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


@dataclass(frozen=True)
class Run:
    """One process that added to a store."""

    id: int
    started: str  # ISO 8601, UTC
    command: str
    versions: Mapping[str, str]  # of Python and of each package that matters
    machine: Mapping[str, Any]  # processor, cores, memory in GiB, system; never a host's name or a path
