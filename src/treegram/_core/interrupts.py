"""A Ctrl-C that waits: for code that does not stand a KeyboardInterrupt at any moment."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from typing import Any

__all__ = ["hear_interrupts", "interrupts_wait"]

_waiting: list[tuple[Any, list[Any]]] = []  # the handler that is to hear of interrupts later, and its arguments


@contextlib.contextmanager
def interrupts_wait() -> Generator[None]:
    """Let a Ctrl-C wait until the end of a block, or until :func:`hear_interrupts` inside of it."""
    before = signal.getsignal(signal.SIGINT)
    if _waiting or threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # other threads do not hear of signals; and without a handler in Python nothing is raised
        return
    arguments: list[Any] = []
    signal.signal(signal.SIGINT, lambda *received: arguments.append(received))
    try:
        _waiting.append((before, arguments))
        yield
    finally:
        _waiting.clear()
        signal.signal(signal.SIGINT, before)
        if arguments:
            before(*arguments[0])


def hear_interrupts() -> None:
    """Raise what waits, at a moment that does no harm."""
    if _waiting and threading.current_thread() is threading.main_thread():
        before, arguments = _waiting[0]
        if arguments:
            received = arguments[0]
            arguments.clear()
            before(*received)
