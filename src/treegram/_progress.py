"""One progress line for the whole library: on a terminal, for work that takes its time, and gone when the work is done."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Generator, Iterable
from typing import TypeVar

__all__ = ["track"]

T = TypeVar("T")

_PATIENCE = 2.0  # seconds before anything is shown
_PERIOD = 0.2  # seconds between two updates: seen as alive, too rare to cost


def track(iterable: Iterable[T], total: int | None = None, label: str = "") -> Generator[T]:
    """Give the items one by one; show on stderr how many there were, and the time left where the total is known.

    Nothing is written unless stderr is a terminal and the work has lasted two seconds, and the line is wiped at the
    end, also after an error or Ctrl-C.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from iterable
        return
    start = time.monotonic()
    due = start + _PATIENCE
    width = 0
    try:
        for done, item in enumerate(iterable, start=1):
            yield item
            now = time.monotonic()
            if now >= due:
                width = _show(_describe(done, total, label, now - start), width)
                due = now + _PERIOD
    finally:
        if width:
            _show("", width)


def _describe(done: int, total: int | None, label: str, elapsed: float) -> str:
    """The line: what, how far, and how long still if it goes on at the pace so far."""
    if not total:
        return f"{label}: {done} done in {_duration(elapsed)}"
    left = elapsed / done * max(total - done, 0)
    return f"{label}: {min(done / total, 1):4.0%}, {_duration(left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _show(line: str, width: int) -> int:
    """Write the line over an older one of the given width; gives the new width."""
    line = line[: shutil.get_terminal_size().columns - 1]
    sys.stderr.write("\r" + line.ljust(width) + ("" if line else "\r"))
    sys.stderr.flush()
    return len(line)
