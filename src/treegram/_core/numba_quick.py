"""A compiler of loops that does not look things up twice, and leaves out what they never have: for one version of numba.

For every operation numba tries a dozen ways to find out its type, and compares two dozen options each time. This compiler
remembers the answer for each combination of types and options. It leaves out steps for closures, generators, ``with``, array
expressions and constants that choose a branch, and for functions that make no arrays the search for where each variable is used
last. ``min`` and ``max`` are instructions, not functions to compile for each combination of types.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

from numba.core import ir, typed_passes, types, untyped_passes
from numba.core.cgutils import unpack_tuple
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.ssa import reconstruct_ssa
from numba.core.targetconfig import ConfigStack
from numba.core.types.containers import StarArgTuple
from numba.core.typing import signature
from numba.cpython.builtins import do_minmax
from numba.extending import intrinsic

from treegram._core.interrupts import hear_interrupts

__all__ = ["QuickCompiler"]

# -------------------------------------------------------------------- types


class _Flags(Flags):  # type: ignore[misc, unused-ignore]
    """The options of a compilation, of which equal ones are one object: quick to compare."""

    __slots__ = ("_hash",)

    def copy(self) -> _Flags:
        """The one object with these options; numba asks for it once for each function, and does not change it."""
        key = repr(self)
        if key not in _KNOWN_FLAGS:
            _KNOWN_FLAGS[key] = _Flags(self)
            _KNOWN_FLAGS[key]._hash = hash(key)
        return _KNOWN_FLAGS[key]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return self._hash


_KNOWN_FLAGS: dict[str, _Flags] = {}


@cache
def _remembering(context: Any) -> Any:
    """The same typing context, sharing all that it has, which remembers the types of operations."""
    remembered: dict[Any, Any] = {}

    class Remembering(type(context)):  # type: ignore[misc, unused-ignore]
        def resolve_function_type(self, function: Any, args: Any, keywords: Any) -> Any:
            if keywords or isinstance(function, (str, types.Dispatcher)):
                return super().resolve_function_type(function, args, keywords)
            key = (function, tuple(args), ConfigStack.top_or_none())
            if key not in remembered:
                found = super().resolve_function_type(function, args, keywords)
                if found is None:
                    return None
                remembered[key] = found
            return remembered[key]

        def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
            return self.resolve_function_type(operator.setitem, (target, index, value), {})

    quick = object.__new__(Remembering)
    quick.__dict__ = context.__dict__
    return quick


# -------------------------------------------------------------------- steps


class QuickCompiler(Compiler):  # type: ignore[misc, unused-ignore]
    """numba's compiler with the steps that these loops need."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.typingctx, self.state.flags = _remembering(self.state.typingctx), _Flags(self.state.flags)

    def define_pipelines(self) -> list[PassManager]:
        """The steps that these loops need, in numba's order."""
        passes = _Steps("treegram")
        for step in (
            _Translate,
            untyped_passes.GenericRewrites,
            untyped_passes.InlineInlinables,
            _ReconstructSSA,
            typed_passes.NopythonTypeInference,
            _StripPhis,
            *((typed_passes.IRLegalization,) if self.state.flags.nrt else ()),
            typed_passes.AnnotateTypes,
            typed_passes.NativeLowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class _Steps(PassManager):  # type: ignore[misc, unused-ignore]
    def _runPass(self, index: int, step: Any, state: Any) -> None:  # noqa: ARG002, N802 (numba's name and signature)
        """One step, without timers, checks of its result and a new analysis of variables after it."""
        hear_interrupts()
        step.analysis = self._analysis
        step.run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Translate(untyped_passes.TranslateByteCode):  # type: ignore[misc, unused-ignore]
    def run_pass(self, state: Any) -> bool:
        """To numba's intermediate code, with ``min`` and ``max`` as instructions instead of functions to compile."""
        super().run_pass(state)
        state.nargs = state.func_ir.arg_count
        for block in state.func_ir.blocks.values():
            for assign in block.find_insts(ir.Assign):
                if isinstance(assign.value, ir.Global) and assign.value.name in _CHOICES:
                    assign.value.value = _CHOICES[assign.value.name]
        return True


def _choice(comparison: Any) -> Any:
    """The one of some numbers that comes first by a comparison, as numba chooses it."""

    def choice(context: Any, *kinds: Any) -> Any:
        def choose(context: Any, builder: Any, _: Any, values: Any) -> Any:
            return do_minmax(context, builder, kinds, unpack_tuple(builder, values[0]), comparison)

        return signature(context.unify_types(*kinds), StarArgTuple.from_types(kinds)), choose

    return intrinsic(choice)


_CHOICES = {"min": _choice(operator.lt), "max": _choice(operator.gt)}


@register_pass(mutates_CFG=True, analysis_only=False)
class _ReconstructSSA(untyped_passes.ReconstructSSA):  # type: ignore[misc, unused-ignore]
    def run_pass(self, state: Any) -> bool:
        """Without the analysis of variables."""
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _StripPhis(typed_passes.PreLowerStripPhis):  # type: ignore[misc, unused-ignore]
    def run_pass(self, state: Any) -> bool:
        """Without the analysis of variables."""
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        return True
