"""numba's cache of compiled code on disk, in which a damaged file or a full disk costs a compilation and never an error."""

from __future__ import annotations

import contextlib
from typing import Any

from numba.core.caching import FunctionCache
from numba.extending import is_jitted

__all__ = ["cached"]


def cached(function: Any) -> Any:
    """Give a jitted function a cache on disk, if there is a folder for it; a function that is not compiled stays as it is."""
    if is_jitted(function):
        with contextlib.suppress(RuntimeError):  # numba finds no folder that it can write to
            function._cache = _ForgivingCache(function.py_func)
    return function


class _ForgivingCache(FunctionCache):  # type: ignore[misc, unused-ignore]
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
