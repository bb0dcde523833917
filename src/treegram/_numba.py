"""How all hot loops are compiled: one decorator, and a word to the user while the first call compiles.

Compiled code releases the interpreter lock and is cached on disk, so that each loop compiles once per installation.
``contracted`` lets a * b + c become one instruction and nothing else: sums keep their order, so results reproduce.
``reordered`` also lets sums be taken in several lanes: for solvers that iterate until a tolerance is met, whatever rounding does.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from numba import njit
from numba.core import event

from treegram._numba_cache import cached

__all__ = ["contracted", "jit", "reordered"]


def jit(function: Any = None, /, **options: Any) -> Any:
    """Compile a function when it is first called; options are those of :func:`numba.njit`."""
    return partial(jit, **options) if function is None else cached(njit(nogil=True, **options)(function))


contracted = partial(jit, fastmath={"contract"})
reordered = partial(jit, fastmath={"contract", "reassoc", "arcp", "nnan", "nsz"})


class _Announcer(event.Listener):  # type: ignore[misc, unused-ignore]
    """Says once, on a terminal, why the first call takes its time."""

    announced = False

    def on_start(self, event: Any) -> None:
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        if not self.announced and module.startswith("treegram.") and sys.stderr is not None and sys.stderr.isatty():
            self.announced = True
            print("treegram: compiling its loops; this happens once per installation ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Nothing to say: the result follows."""


event.register("numba:compile", _Announcer())
