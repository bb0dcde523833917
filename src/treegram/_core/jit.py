"""Compile hot loops with numba. This is the only module that touches numba's internals.

Compiled code releases the interpreter lock and is cached on disk, so that each loop compiles once per installation.
``contracted`` allows a * b + c as one instruction and nothing else: sums keep their order, so results are reproducible.
``reordered`` also allows sums in several lanes, for solvers that iterate until they meet a tolerance.

numba compiles every function together with everything that it calls, so a function four calls deep is optimized five
times. Here, compiled callers get the function's LLVM code and link it into theirs, which is optimized once. This halves the
time of the first calls but relies on numba's internals: it is tried on a small function before its first use, and if that
fails, numba compiles in its usual way.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, is_jitted

from treegram._core.parallel import is_watched

try:
    from numba.core import event as numba_event
    from numba.core.cpu import CPUTargetOptions

    _Listener: Any = numba_event.Listener
except ImportError:  # another version of numba: no message, and no private options
    numba_event = CPUTargetOptions = None
    _Listener = object

__all__ = ["as_bits", "as_float", "compilations", "contracted", "inlined", "jit", "pasted", "reordered"]

_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "_nrt": False}  # the last two save a quarter of the compile time


def jit(function: Any = None, /, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function when it is first called; other options are those of :func:`numba.njit`.

    A function that creates arrays must set ``allocates``. The others do without reference counts, which saves time both when
    compiling and when running.
    """
    if function is None:
        return partial(jit, allocates=allocates, **options)
    options = _supported(_OPTIONS | {"_nrt": allocates} | options)
    compiled = njit(**options)(function)
    if is_jitted(compiled):  # not with NUMBA_DISABLE_JIT
        with suppress(RuntimeError):  # numba finds no writable folder
            compiled.enable_caching()
        _link_into_callers(compiled, options)
    return compiled


contracted = partial(jit, fastmath={"contract"})
reordered = partial(jit, fastmath={"contract", "reassoc", "arcp", "nnan", "nsz"})
inlined = partial(jit, forceinline=True)
# Compiled with its callers, for arguments that are costly to pass: named tuples of arrays.
pasted = njit(inline="always")


@intrinsic
def as_bits(typing_context, x):  # type: ignore[no-untyped-def] # noqa: ARG001 (numba's signature)
    """Return the bits of a double as an integer; in compiled code only."""
    return types.int64(types.float64), lambda *args: args[1].bitcast(args[3][0], ir.IntType(64))


@intrinsic
def as_float(typing_context, bits):  # type: ignore[no-untyped-def] # noqa: ARG001
    """Return the double with these bits; in compiled code only."""
    return types.float64(types.int64), lambda *args: args[1].bitcast(args[3][0], ir.DoubleType())


def _supported(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out private options that this version of numba does not have."""
    private = ("no_cfunc_wrapper", "_nrt")
    return {name: value for name, value in options.items() if name not in private or hasattr(CPUTargetOptions, name)}


# -------------------------------------------------------------------- linking


def _link_into_callers(compiled: Any, options: dict[str, Any]) -> None:
    """Let compiled callers link the function's code; Python calls the function as numba compiles it."""
    own_template, own_overload = compiled.get_call_template, compiled.get_overload

    @cache
    def part() -> Any:
        return njit(**options | {"no_cpython_wrapper": True, "pipeline_class": _linking_compiler()})(compiled.py_func)

    def get_call_template(args: Any, keywords: Any) -> Any:
        if _linking_compiler() is None:
            return own_template(args, keywords)
        # A constant argument is a number like any other: the function is not compiled again for each.
        return part().get_call_template([types.unliteral(kind) for kind in args], keywords)

    def get_overload(signature: Any) -> Any:
        return (own_overload if _linking_compiler() is None else part().get_overload)(signature)

    compiled.get_call_template, compiled.get_overload = get_call_template, get_overload


@cache
def _linking_compiler() -> Any:
    """Return a compiler that stops at LLVM code to be linked, or None if numba's internals are not as expected."""
    try:
        compiler = _make_linking_compiler()
        inner = njit(no_cpython_wrapper=True, pipeline_class=compiler)(lambda x: x + 1)
        outer = njit(lambda x: inner(x) * 2)
        return compiler if outer(3) == 8 else None
    except Exception:
        return None


def _make_linking_compiler() -> Any:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
        """LLVM code without machine code, which neither Python nor the disk cache can use."""

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            """Leave this to the callers, which are optimized with everything they call."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 (numba's signature)
            self._ensure_finalized()
            return 0

        @property
        def codegen(self) -> Any:  # numba sets the environment of Python objects on it
            return self

        def set_env(self, env_name: str, env: Any) -> None:
            """Ignore the environment: the code uses no Python objects."""

    class LinkingCompiler(Compiler):  # type: ignore[misc, unused-ignore]
        def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
            super().__init__(typing_context, target_context, library, *rest)
            self.state.library = LinkedLibrary(target_context.codegen(), "treegram")
            self.state.library.enable_object_caching()

    return LinkingCompiler


# -------------------------------------------------------------------- a message to the user


class _Compilations(_Listener):  # type: ignore[misc, unused-ignore]
    """Count the functions that were compiled, and say once, on a terminal or in a notebook, why the first calls take time."""

    def __init__(self) -> None:
        self.count = 0
        self._depth = 0  # inner functions are compiled within outer ones
        self._is_announced = False

    def on_start(self, event: Any) -> None:
        """Announce the first compilation."""
        self._depth += 1
        module = str(event.data["dispatcher"].py_func.__module__)  # None for code without a file
        if not self._is_announced and module.startswith("treegram.") and is_watched():
            self._is_announced = True
            print("treegram: compiling, which takes up to half a minute, once per installation ...", file=sys.stderr)

    def on_end(self, event: Any) -> None:  # noqa: ARG002 (numba's signature)
        """Count a function together with the functions that were compiled for it."""
        self._depth -= 1
        self.count += self._depth == 0


compilations = _Compilations()
if numba_event is not None:
    numba_event.register("numba:compile", compilations)
