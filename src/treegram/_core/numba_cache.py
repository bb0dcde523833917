"""numba's cache of compiled code on disk, in which a damaged file or a full disk costs a compilation and never an error.

A folder that cannot be written to is read all the same if it holds compiled code: that of an image, or of a cluster's nodes.
"""

from __future__ import annotations

import contextlib
from functools import cache, wraps
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.extending import is_jitted

from treegram._core.interrupts import interrupts_wait

__all__ = ["cached"]


def cached(function: Any) -> Any:
    """Give a jitted function a cache on disk, if there is a folder for it; a function that is not compiled stays as it is.

    A Ctrl-C waits while its code is loaded or compiled: numba and LLVM do not stand a KeyboardInterrupt at any moment. One inside
    a question of LLVM's is lost, with the code that was asked for; one while numba looks for its own functions leaves these unknown.
    """
    if is_jitted(function):
        with contextlib.suppress(RuntimeError):  # numba finds no folder that it can write to
            function._cache = _ForgivingCache(function.py_func)
        function.compile = _uninterrupted(function.compile)
    return function


def _uninterrupted(compile_for: Any) -> Any:
    @wraps(compile_for)
    def compile_whole(signature: Any) -> Any:
        with interrupts_wait():
            return compile_for(signature)

    return compile_whole


@cache
def _reading(locator: Any) -> Any:
    """The same way to find a folder; one with compiled code will do even if nothing can be written there."""

    class Reading(locator):  # type: ignore[misc, unused-ignore]
        def ensure_cache_path(self) -> None:
            try:
                super().ensure_cache_path()
            except OSError:
                if not any(Path(self.get_cache_path()).glob("*.nbi")):
                    raise

    return Reading


class _Places(CompileResultCacheImpl):  # type: ignore[misc, unused-ignore]
    def __init__(self, py_func: Any) -> None:
        self._locator_classes = [_reading(locator) for locator in CompileResultCacheImpl._locator_classes]
        super().__init__(py_func)


class _ForgivingCache(FunctionCache):  # type: ignore[misc, unused-ignore]
    _impl_class = _Places

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code; None, which makes numba compile, where it is missing or cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a truncated or garbled pickle raises almost anything
            with contextlib.suppress(OSError):
                self.flush()  # else saving would stumble over the same file
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled code where that is possible; if not, the next process compiles again."""
        with contextlib.suppress(Exception):  # a full disk; an index that another process has damaged
            super().save_overload(sig, data)
