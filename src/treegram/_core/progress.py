"""Show the progress of long work: a line on a terminal, a bar in a notebook, or, on request, lines in a log."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextvars import ContextVar
from html import escape
from typing import Any, TypeVar

from treegram._core.machine import is_notebook

__all__ = ["track", "verbosely"]

T = TypeVar("T")

_PATIENCE = 2.0  # seconds before anything is shown
_is_verbose = ContextVar("is_verbose", default=False)


@contextlib.contextmanager
def verbosely(verbose: object) -> Iterator[None]:
    """Within this context, write progress to stderr now and then if there is neither a terminal nor a notebook."""
    token = _is_verbose.set(bool(verbose) or _is_verbose.get())
    try:
        yield
    finally:
        _is_verbose.reset(token)


def track(iterable: Iterable[T], total: int | None = None, label: str = "") -> Generator[T]:
    """Yield the items; show how many are done, and the remaining time where the total is known.

    The line of a terminal and the bar of a notebook appear when the work has lasted two seconds, and disappear at the end, also
    after an error or Ctrl-C. Elsewhere nothing is shown, or, within `verbosely`, a line every half minute and one at the end.
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
    """Return the line: the label, how much is done, and the remaining time at the pace so far."""
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


class _Display:
    """A place to show progress; this one shows nothing."""

    patience, period = _PATIENCE, _PATIENCE  # seconds before the first update, and between two updates

    def update(self, line: str, fraction: float | None) -> None:
        """Show the line, and the fraction of the work that is done where it is known."""

    def close(self, line: str, seconds: float) -> None:
        """Finish after some seconds; the line summarizes the work."""


def _display() -> _Display | None:
    """Return the progress display, or None."""
    if sys.stderr is not None and sys.stderr.isatty():
        return _TerminalLine()
    if is_notebook():
        return _NotebookBar()
    return _LogLines() if _is_verbose.get() and sys.stderr is not None else None


class _TerminalLine(_Display):
    period = 0.2
    width = 0

    def update(self, line: str, fraction: float | None) -> None:  # noqa: ARG002
        line = line[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + line.ljust(self.width) + ("" if line else "\r"))
        sys.stderr.flush()
        self.width = len(line)

    def close(self, line: str, seconds: float) -> None:  # noqa: ARG002
        if self.width:
            self.update("", None)


class _NotebookBar(_Display):
    period = 0.5
    handle: Any = None

    def update(self, line: str, fraction: float | None) -> None:
        value = "" if fraction is None else f' value="{fraction:.3f}"'
        self._show(f"<progress{value}></progress> {escape(line)}", line)

    def close(self, line: str, seconds: float) -> None:  # noqa: ARG002
        if self.handle is not None:
            self._show("", "")

    def _show(self, html: str, text: str) -> None:
        from IPython.display import display

        content = {"text/html": html, "text/plain": text}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)


class _LogLines(_Display):
    patience = period = 30.0

    def update(self, line: str, fraction: float | None) -> None:  # noqa: ARG002
        print(line, file=sys.stderr, flush=True)

    def close(self, line: str, seconds: float) -> None:
        if seconds >= _PATIENCE:
            print(line, file=sys.stderr, flush=True)
