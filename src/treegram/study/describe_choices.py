"""What there was to choose from, and what inner cross-validation chose, as a reader writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treegram.study.protocol import Candidate, Protocol, StudyEntry
from treegram.study.records import Row

__all__ = ["Histogram", "chooses_itself", "combinations", "describe", "histograms", "shown"]


@dataclass(frozen=True)
class Histogram:
    """How often inner cross-validation chose each value of one parameter."""

    parameter: str
    values: tuple[str, ...]  # all that there were to choose from, in the study's order
    counts: tuple[int, ...]  # in outer folds


def shown(value: Any) -> str:
    """A value as a reader writes it, so that 1 and 1.0, a list and a tuple are the same."""
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def chooses_itself(entry: StudyEntry) -> bool:
    """Whether the study does not list what is chosen from: a baseline, or the kernel "auto"."""
    return bool(entry.baseline) or entry.candidates == (Candidate("auto"),)


def _parameters(entry: StudyEntry, protocol: Protocol, rows: Sequence[Row]) -> list[str]:
    """What is chosen: the kernel if there are several, the parameters of the grids, and C or alpha; or what rows name."""
    if chooses_itself(entry):
        found = {name for row in rows for name in row.chosen}
        return sorted(found, key=lambda name: (name != "kernel", name == protocol.strengths[0], name))
    names = dict.fromkeys(name for candidate in entry.candidates for name in candidate.grid)
    return [*(["kernel"] if len(entry.candidates) > 1 else []), *names, protocol.strengths[0]]


def combinations(entry: StudyEntry, protocol: Protocol, rows: Sequence[Row]) -> tuple[tuple[str, int], ...]:
    """Chosen combinations, most frequent first, each with its number of folds."""
    names = _parameters(entry, protocol, rows)
    counts = Counter(
        ", ".join(f"{name} {shown(row.chosen[name])}" for name in names if name in row.chosen) for row in rows
    )
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def histograms(entry: StudyEntry, protocol: Protocol, rows: Sequence[Row]) -> tuple[Histogram, ...]:
    """How often each value of each parameter was chosen, those that never were included."""
    offered: dict[str, dict[str, int]] = {name: {} for name in _parameters(entry, protocol, rows)}
    for candidate in entry.candidates:
        for name, values in candidate.grid.items():
            offered[name].update((shown(value), 0) for value in values)
    strength, values = protocol.strengths
    if strength in offered:
        offered[strength] = {shown(value): 0 for value in sorted(values)}
    for row in rows:
        for name in offered.keys() & row.chosen.keys():
            value = shown(row.chosen[name])
            offered[name][value] = offered[name].get(value, 0) + 1
    return tuple(Histogram(name, tuple(counts), tuple(counts.values())) for name, counts in offered.items())


def describe(candidate: Candidate) -> str:
    """Kernel, fixed parameters, attributes and grid."""
    grid = "; ".join(f"{name} in {{{shown(values)}}}" for name, values in candidate.grid.items())
    if candidate.summands:
        return "; ".join(filter(None, [" + ".join(f"({describe(one)})" for one in candidate.summands), grid]))
    fixed = ", ".join(f"{name} = {shown(value)}" for name, value in candidate.parameters.items())
    scaled = f"attributes {', then '.join(candidate.attributes)}" if candidate.attributes else ""
    return "; ".join(filter(None, [candidate.kernel, fixed, scaled, grid]))
