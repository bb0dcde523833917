"""How all hot loops are compiled: one decorator, and a word to the user while the first calls compile.

Compiled code releases the interpreter lock and is cached on disk, so that each loop compiles once per installation.
``contracted`` lets a * b + c become one instruction and nothing else: sums keep their order, so results reproduce.
``reordered`` also lets sums be taken in several lanes: for solvers that iterate until a tolerance is met, whatever rounding does.
"""

from __future__ import annotations

import atexit
import gc
import sys
import time
from functools import partial
from typing import Any

from numba.core import event
from numba.extending import is_jitted

from treegram._core.machine import is_notebook
from treegram._core.numba_cache import cached
from treegram._core.numba_parts import as_door, as_part, called_as_part

__all__ = ["compilations", "contracted", "inlined", "jit", "reordered"]

# What is compiled, by the package that it belongs to, and the seconds that this usually takes (benchmarks/bench_start.py).
_PARTS = {
    "datasets": ("the reader of tables", 1),
    "structure": ("the loops over graphs", 2),
    "pairsum": ("the sums over pairs of nodes", 3),
    "selection": ("the solver", 3),
}


_USUAL = {"nogil": True, "no_cfunc_wrapper": True, "_nrt": False}


def jit(function: Any = None, /, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function when it is first called; other options are those of :func:`numba.njit`.

    One that makes arrays itself must say so. All others do without counts of references to arrays, which their callers hold:
    less to compile, and to run.

    A function that compiled code calls becomes a part of it. One whose name begins with an underscore is called by compiled
    code alone; others have a door to Python, are compiled again on their own if that uses it, and then kept on disk.
    """
    if function is None:
        return partial(jit, allocates=allocates, **options)
    options = _USUAL | {"_nrt": allocates} | options
    part = as_part(function, options)
    if function.__name__.startswith("_") or not is_jitted(part):
        return part
    return called_as_part(cached(as_door(function, options)), part)


def inlined(function: Any) -> Any:
    """A small function that becomes part of compiled code wherever that calls it; Python must not."""
    return as_part(function, _USUAL | {"forceinline": True})


contracted = partial(jit, fastmath={"contract"})
reordered = partial(jit, fastmath={"contract", "reassoc", "arcp", "nnan", "nsz"})


class _Compilations(event.Listener):  # type: ignore[misc, unused-ignore]
    """Counts compilations and their time, and says on a terminal or in a notebook why the first calls take theirs.

    numba reports one compilation at a time, under a lock; those of inner functions come within that of an outer one.
    Garbage is not collected meanwhile: compiling makes millions of small objects that live as long as it lasts, and
    looking through them takes a twentieth of the time.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self._depth = 0
        self._start = 0.0
        self._collects_garbage = False
        self._said = ""
        self._told = set[str]()  # in a notebook, where lines stay

    def on_start(self, event: Any) -> None:
        """A compilation begins."""
        self._depth += 1
        if self._depth > 1:
            return
        self._start = time.perf_counter()
        self._collects_garbage = gc.isenabled()
        gc.disable()
        package, _, rest = getattr(event.data["dispatcher"].py_func, "__module__", "").partition(".")
        if package == "treegram":
            what, usual = _PARTS.get(rest.partition(".")[0], ("a loop", 1))
            self._say(f"treegram: compiling {what}; this usually takes {usual} s, once per installation ...")

    def on_end(self, event: Any) -> None:  # noqa: ARG002 (numba's signature)
        """A compilation has ended, with an error or without."""
        self._depth -= 1
        self.count += 1
        if self._depth:
            return
        self.seconds += time.perf_counter() - self._start
        if self._collects_garbage:
            gc.enable()
        if self._said:
            self._wipe()

    def _say(self, line: str) -> None:
        if _is_terminal():
            if not self._said:
                atexit.register(self._sum_up)
            self._said = line
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
        elif line not in self._told and is_notebook():
            self._told.add(line)
            print(line, file=sys.stderr)

    def _wipe(self) -> None:
        if _is_terminal():
            sys.stderr.write("\r" + " " * len(self._said) + "\r")
            sys.stderr.flush()

    def _sum_up(self) -> None:
        if _is_terminal():
            print(f"treegram: compiling took {self.seconds:.0f} s; the next run will not need it.", file=sys.stderr)


def _is_terminal() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


compilations = _Compilations()
event.register("numba:compile", compilations)
