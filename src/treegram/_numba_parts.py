"""Functions that compiled code calls, compiled as parts of those that call them.

numba compiles every function on its own, with all that it calls: what is four calls deep is optimised and turned into
machine code five times, of which one is ever run. A part only becomes LLVM's intermediate code, which is linked into its
callers; these are optimised as a whole, once.

This uses inner parts of numba, so it is done only with versions that it was tested with. With others, all works as well, and
the first calls take longer.
"""

from __future__ import annotations

from typing import Any

from numba import njit, version_info
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

__all__ = ["as_part", "called_as_part"]

_IS_KNOWN = (0, 61) <= version_info.short <= (0, 68)


class _Part(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Intermediate code for linking; no machine code, so that neither Python nor a cache on disk can have it."""

    def _optimize_final_module(self) -> None:
        """Its callers are optimised with all their parts."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 (numba's signature)
        """No address."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What numba hands the function's environment to: Python objects, which a part cannot use."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing has a place for it."""


class _PartCompiler(Compiler):  # type: ignore[misc, unused-ignore]
    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:  # noqa: ARG002
        part = _Part(target_context.codegen(), "part")
        super().__init__(typing_context, target_context, part, *rest)


def as_part(function: Any, options: dict[str, Any]) -> Any:
    """The jitted function, for compiled code alone: calling it from Python crashes."""
    special = {"pipeline_class": _PartCompiler} if _IS_KNOWN else {}
    return njit(**(options | {"no_cpython_wrapper": True} | special))(function)


def called_as_part(jitted: Any, part: Any) -> Any:
    """The jitted function, which Python can call, and of which compiled code takes ``part`` instead."""
    if _IS_KNOWN:
        jitted.get_call_template, jitted.get_overload = part.get_call_template, part.get_overload
    return jitted
