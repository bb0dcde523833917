"""Shared parts of the benchmarks: data, interleaved timing, tables, and a description of the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import treegram as tg
from treegram._core.machine import describe_machine, package_versions

PAPER_SETS = ("ENZYMES", "BZR", "COX2", "DHFR", "SYNTHETICnew", "PROTEINS")
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA_DIR = os.environ.get("TREEGRAM_DATA") or (SHARED_DATA if SHARED_DATA.is_dir() else None)


def load(name: str) -> tg.Graphs:
    return tg.load_tu(name, data_dir=DATA_DIR)[0]


def best_of(
    *functions: Callable[[], object], rounds: int = 5, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Return the best time of each function; runs are interleaved, so that a busy machine affects all equally."""
    times = [[_timed(function, clock) for function in functions] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def _timed(function: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    function()
    return clock() - start


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table, with a title unless that is empty."""
    lines = [f"## {title}", ""] if title else []
    lines += [" | ".join(("", *header, "")).strip(), "|" + "---|" * len(header)]
    lines += [" | ".join(("", *(str(cell) for cell in row), "")).strip() for row in rows]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Return a line that says where and when this was measured."""
    host = describe_machine()
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    return f"{date.today()}, {host['processor']}, {host['cores']} cores, {versions}"
