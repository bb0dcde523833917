"""Progress of work that takes its time, where people look: a line on a terminal, a bar in a notebook, lines in a log on request."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextvars import ContextVar
from html import escape
from typing import Any, Protocol, TypeVar

from treegram._core.machine import is_notebook

__all__ = ["track", "verbosely"]

T = TypeVar("T")

_PATIENCE = 2.0  # seconds before anything is shown
_is_verbose = ContextVar("is_verbose", default=False)


@contextlib.contextmanager
def verbosely(verbose: object) -> Iterator[None]:
    """Inside, work that nobody can watch on a terminal or in a notebook writes a line to stderr now and then."""
    token = _is_verbose.set(bool(verbose) or _is_verbose.get())
    try:
        yield
    finally:
        _is_verbose.reset(token)


def track(iterable: Iterable[T], total: int | None = None, label: str = "") -> Generator[T]:
    """Give the items one by one; show how many there were, and the time left where the total is known.

    A terminal shows it in one line, a notebook as a bar; both appear when the work has lasted two seconds, and are gone at the
    end, also after an error or Ctrl-C. Elsewhere there is nothing, or, inside of `verbosely`, a line every half minute and one
    at the end.
    """
    display = _display()
    if display is None:
        yield from iterable
        return
    done, start = 0, time.monotonic()
    due = start + display.patience
    try:
        for done, item in enumerate(iterable, start=1):
            yield item
            now = time.monotonic()
            if now >= due:
                display.update(_describe(done, total, label, now - start), min(done / total, 1.0) if total else None)
                due = now + display.period
    finally:
        display.close(_describe(done, None, label, elapsed := time.monotonic() - start), elapsed)


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


# -------------------------------------------------------------------- where it is shown


class _Display(Protocol):
    patience: float  # seconds before the first update
    period: float  # seconds between two updates

    def update(self, line: str, share: float | None) -> None:
        """Show the line, and the share of the work that is done where it is known."""

    def close(self, line: str, seconds: float) -> None:
        """End after so many seconds; the line says what was done."""


def _display() -> _Display | None:
    """What shows progress to whoever looks; None if nobody does."""
    if sys.stderr is not None and sys.stderr.isatty():
        return _TerminalLine()
    if is_notebook():
        return _NotebookBar()
    return _LogLines() if _is_verbose.get() and sys.stderr is not None else None


class _TerminalLine:
    patience, period = _PATIENCE, 0.2  # seen as alive, too rare to cost

    def __init__(self) -> None:
        self.width = 0

    def update(self, line: str, share: float | None) -> None:  # noqa: ARG002
        self.width = _show(line, self.width)

    def close(self, line: str, seconds: float) -> None:  # noqa: ARG002
        if self.width:
            _show("", self.width)


class _NotebookBar:
    patience, period = _PATIENCE, 0.5

    def __init__(self) -> None:
        self.handle: Any = None

    def update(self, line: str, share: float | None) -> None:
        value = "" if share is None else f' value="{share:.3f}"'
        self._display(f"<progress{value}></progress> {escape(line)}", line)

    def close(self, line: str, seconds: float) -> None:  # noqa: ARG002
        if self.handle is not None:
            self._display("", "")

    def _display(self, html: str, text: str) -> None:
        from IPython.display import display

        content = {"text/html": html, "text/plain": text}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)


class _LogLines:
    patience, period = 30.0, 30.0

    def update(self, line: str, share: float | None) -> None:  # noqa: ARG002
        print(line, file=sys.stderr, flush=True)

    def close(self, line: str, seconds: float) -> None:
        if seconds >= _PATIENCE:
            print(line, file=sys.stderr, flush=True)


def _show(line: str, width: int) -> int:
    """Write the line over an older one of the given width; gives the new width."""
    line = line[: shutil.get_terminal_size().columns - 1]
    sys.stderr.write("\r" + line.ljust(width) + ("" if line else "\r"))
    sys.stderr.flush()
    return len(line)
