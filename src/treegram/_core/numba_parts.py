"""Functions that compiled code calls, compiled as parts of those that call them.

numba compiles every function on its own, with all that it calls: what is four calls deep is optimized and turned into
machine code five times, of which one is ever run. A part only becomes LLVM's intermediate code, which is linked into its
callers; these are optimized as a whole, once.

This uses inner parts of numba, and so does the quick compiler (``_numba_quick``): both are used only with versions that they were
tested with. With others, all works as well, and the first calls take longer.
"""

from __future__ import annotations

from typing import Any

from numba import njit, version_info
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.types.misc import unliteral
from numba.extending import is_jitted

__all__ = ["as_door", "as_part", "called_as_part"]

_IS_KNOWN = (0, 61) <= version_info.short <= (0, 68)
_IS_QUICK = version_info.short == (0, 68)


# -------------------------------------------------------------------- what becomes of a function


class _Whole(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Code of a function with all its parts, which is optimized once."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """The whole is optimized later; numba optimizes each function beforehand as well."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Without numba's first, cheap round, which helps to remove counts of references: most loops have none."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Part(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Intermediate code for linking; no machine code, so that neither Python nor a cache on disk can have it."""

    _optimize_functions = _Whole._optimize_functions if _IS_QUICK else JITCodeLibrary._optimize_functions

    def _optimize_final_module(self) -> None:
        """Its callers are optimized with all their parts."""

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


# -------------------------------------------------------------------- the compiler


_BASE: Any = Compiler
if _IS_QUICK:
    from treegram._core.numba_quick import QuickCompiler

    _BASE = QuickCompiler


class _Compiler(_BASE):  # type: ignore[misc, unused-ignore]
    _library_class: type[JITCodeLibrary]

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:  # noqa: ARG002
        super().__init__(typing_context, target_context, None, *rest)
        self.state.library = self._library_class(target_context.codegen(), "treegram")
        self.state.library.enable_object_caching()


class _PartCompiler(_Compiler):
    _library_class = _Part


class _DoorCompiler(_Compiler):
    _library_class = _Whole


def as_door(function: Any, options: dict[str, Any]) -> Any:
    """The jitted function, which Python can call."""
    return njit(**(options | ({"pipeline_class": _DoorCompiler} if _IS_QUICK else {})))(function)


def as_part(function: Any, options: dict[str, Any]) -> Any:
    """The jitted function, for compiled code alone: calling it from Python crashes.

    A constant among its arguments is a number like any other, so that it is not compiled again for each.
    """
    special = {"pipeline_class": _PartCompiler} if _IS_KNOWN else {}
    part = njit(**(options | {"no_cpython_wrapper": True} | special))(function)
    if _IS_KNOWN and is_jitted(part):
        find = part.get_call_template
        part.get_call_template = lambda args, keywords: find([unliteral(kind) for kind in args], keywords)
    return part


def called_as_part(jitted: Any, part: Any) -> Any:
    """The jitted function, which Python can call, and of which compiled code takes ``part`` instead."""
    if _IS_KNOWN:
        jitted.get_call_template, jitted.get_overload = part.get_call_template, part.get_overload
    return jitted
