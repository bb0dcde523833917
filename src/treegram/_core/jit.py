"""Compile hot loops with numba. No other module imports it.

Compiled code releases the interpreter lock and is cached on disk, so that each loop compiles once per installation.
``contracted`` allows a * b + c as one instruction and nothing else: sums keep their order, so results are reproducible.
``reordered`` also allows sums in several lanes, for solvers that iterate until they meet a tolerance.

With NUMBA_DISABLE_JIT=1, as for a debugger, all loops run in Python, slowly, with the same results.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, njit

from treegram._core.parallel import is_watched

try:
    from numba.core import event
    from numba.core.cpu import CPUTargetOptions
except ImportError:  # another version of numba: slower loops, and no message
    event = CPUTargetOptions = None

# Named tuples of arrays would count references at each access: 30 % of the time of some loops, and twice that of others.
_NO_COUNTS = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}


def jit(function: Any = None, /, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function when it is first called; other options are those of :func:`numba.njit`.

    A function that creates arrays must set ``allocates``. The others do without reference counts.
    """
    if function is None:
        return partial(jit, allocates=allocates, **options)
    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        return np.errstate(over="ignore")(function)  # hashes overflow on purpose; numpy's integers warn of it
    options = {"nogil": True, **({} if allocates else _NO_COUNTS), **options}
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable folder
        return njit(**options)(function)
    _remove_unreadable(Path(compiled.stats.cache_path), Path(function.__code__.co_filename))
    return compiled


contracted = partial(jit, fastmath={"contract"})
reordered = partial(jit, fastmath={"contract", "reassoc", "arcp", "nnan", "nsz"})
inlined = partial(jit, forceinline=True)
# Compiled with its callers, for arguments that are costly to pass: named tuples of arrays.
pasted = njit(inline="always")


@cache
def _remove_unreadable(folder: Path, source: Path) -> None:
    """Remove files of compiled code at which numba would fail in every call; without them, it compiles again.

    Those that a crash of the computer has cut (they are pickles, which end with a full stop), and those older than the source:
    numba reads these before it sees that, and fails if they name a class that is gone.
    """
    for path in folder.glob(f"{source.stem}.*.nb[ic]"):
        with suppress(FileNotFoundError):  # another process may be faster
            with path.open("rb") as file:
                file.seek(max(path.stat().st_size - 1, 0))
                is_whole = file.read(1) == b"."
            if not is_whole or path.stat().st_mtime < source.stat().st_mtime:
                path.unlink()


# -------------------------------------------------------------------- a message to the user


class _Compilations(event.Listener if event else object):  # type: ignore[misc]
    """Count the functions that were compiled, and say once, on a terminal or in a notebook, why the first calls take time."""

    def __init__(self) -> None:
        self.count = 0
        self._depth = 0  # a function is compiled together with those that it calls
        self._is_announced = False

    def on_start(self, event: Any) -> None:
        """Announce the first compilation."""
        self._depth += 1
        module = str(event.data["dispatcher"].py_func.__module__)  # None for code without a file
        if not self._is_announced and module.startswith("treegram.") and is_watched():
            self._is_announced = True
            print("treegram: compiling, which takes up to half a minute, once per installation ...", file=sys.stderr)

    def on_end(self, event: Any) -> None:  # noqa: ARG002 (numba's signature)
        """Count a function together with those that were compiled for it."""
        self._depth -= 1
        self.count += self._depth == 0


compilations = _Compilations()
if event:
    event.register("numba:compile", compilations)
