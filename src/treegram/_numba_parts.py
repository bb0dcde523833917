"""Functions that compiled code calls, compiled as parts of those that call them; and a compiler that does not look things up twice.

numba compiles every function on its own, with all that it calls: what is four calls deep is optimised and turned into
machine code five times, of which one is ever run. A part only becomes LLVM's intermediate code, which is linked into its
callers; these are optimised as a whole, once.

For every operation numba tries a dozen ways to find out its type, and compares two dozen options each time. The quick compiler
remembers the answer for each combination of types and options. It leaves out steps for what loops here never have: closures,
generators, ``with``, array expressions, constants that choose a branch. Functions that make no arrays have no need to know
where each variable is used last.

This uses inner parts of numba, so it is done only with versions that it was tested with. With others, all works as well, and
the first calls take longer.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

from numba import njit, version_info
from numba.core import ir, typed_passes, types, untyped_passes
from numba.core.cgutils import alloca_once, gep_inbounds, get_item_pointer2, unpack_tuple
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.lowering import Lower
from numba.core.ssa import reconstruct_ssa
from numba.core.targetconfig import ConfigStack
from numba.core.types.misc import unliteral
from numba.core.typing import signature
from numba.cpython.builtins import do_minmax
from numba.extending import intrinsic, is_jitted
from numba.np.arrayobj import fix_integer_index, load_item, store_item

__all__ = ["as_door", "as_part", "called_as_part"]

_IS_KNOWN = (0, 61) <= version_info.short <= (0, 68)
_IS_QUICK = version_info.short == (0, 68)


# -------------------------------------------------------------------- what becomes of a function


class _Whole(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Code of a function with all its parts, which is optimised once."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """The whole is optimised later; numba optimises each function beforehand as well."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Without numba's first, cheap round, which helps to remove counts of references: most loops have none."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Part(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Intermediate code for linking; no machine code, so that neither Python nor a cache on disk can have it."""

    _optimize_functions = _Whole._optimize_functions if _IS_QUICK else JITCodeLibrary._optimize_functions

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


# -------------------------------------------------------------------- the compiler


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


class _PlainCompiler(Compiler):  # type: ignore[misc, unused-ignore]
    _library_class: type[JITCodeLibrary]

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:  # noqa: ARG002
        super().__init__(typing_context, target_context, None, *rest)
        self.state.library = self._library_class(target_context.codegen(), "treegram")
        self.state.library.enable_object_caching()


class _QuickCompiler(_PlainCompiler):
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
            _NativeLowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class _Steps(PassManager):  # type: ignore[misc, unused-ignore]
    def _runPass(self, index: int, step: Any, state: Any) -> None:  # noqa: ARG002, N802 (numba's name and signature)
        """One step, without timers, checks of its result and a new analysis of variables after it."""
        step.analysis = self._analysis
        step.run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Translate(untyped_passes.TranslateByteCode):  # type: ignore[misc, unused-ignore]
    def run_pass(self, state: Any) -> bool:
        """To numba's intermediate code, with ``min`` and ``max`` that are an instruction instead of a function to compile."""
        super().run_pass(state)
        state.nargs = state.func_ir.arg_count
        for block in state.func_ir.blocks.values():
            for assign in block.find_insts(ir.Assign):
                if isinstance(assign.value, ir.Global) and assign.value.name in _CHOICES:
                    assign.value.value = _CHOICES[assign.value.name]
        return True


@intrinsic
def _least(context: Any, *kinds: Any) -> Any:
    return _choice(context, kinds, operator.lt)


@intrinsic
def _largest(context: Any, *kinds: Any) -> Any:
    return _choice(context, kinds, operator.gt)


def _choice(context: Any, kinds: Any, comparison: Any) -> Any:
    def choose(context: Any, builder: Any, _: Any, values: Any) -> Any:
        return do_minmax(context, builder, kinds, unpack_tuple(builder, values[0]), comparison)

    return signature(context.unify_types(*kinds), types.StarArgTuple.from_types(kinds)), choose


_CHOICES = {"min": _least, "max": _largest}


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


class _QuickLower(Lower):  # type: ignore[misc, unused-ignore]
    def lower_block(self, block: Any) -> None:
        """Without a message for each instruction, in case that it fails."""
        self.pre_block(block)
        for instruction in block.body:
            self.loc = instruction.loc
            self.lower_inst(instruction)
        self.post_block(block)

    def lower_inst(self, instruction: Any) -> None:
        """Items of arrays at constant places are items like any other: numba looks for a special way first."""
        if isinstance(instruction, ir.StaticSetItem) and isinstance(self.typeof(instruction.target.name), types.Array):
            signature = self.fndesc.calltypes[instruction]
            self.lower_setitem(instruction.target, instruction.index_var, instruction.value, signature)
        else:
            super().lower_inst(instruction)

    def lower_expr(self, kind: Any, expression: Any) -> Any:
        """Parts of bundles and items of arrays without a copy of the whole bundle or of what describes the array."""
        if expression.op not in ("getattr", "static_getitem"):
            return super().lower_expr(kind, expression)
        name, whole = expression.value.name, self.typeof(expression.value.name)
        if isinstance(whole, types.Array):
            if expression.op == "getattr" and expression.attr == "shape":
                return self._field(name, whole, "shape")
            if expression.op == "static_getitem" and expression.index_var is not None:
                signature = self.fndesc.calltypes[expression]
                return self.lower_getitem(kind, expression, expression.value, expression.index_var, signature)
        elif isinstance(whole, types.BaseTuple) and not self.context.enable_nrt:
            place = whole.fields.index(expression.attr) if expression.op == "getattr" else expression.index
            if isinstance(place, int) and place >= 0:
                return self.context.cast(self.builder, self._part(name, place), whole[place], kind)
        return super().lower_expr(kind, expression)

    def lower_getitem(self, kind: Any, expression: Any, value: Any, index: Any, signature: Any) -> Any:
        """One number of an array, or what numba makes of it."""
        pointer = self._item(value.name, index.name, signature.args[1])
        if pointer is None:
            return super().lower_getitem(kind, expression, value, index, signature)
        item = load_item(self.context, self.builder, self.typeof(value.name), pointer)
        return self.context.cast(self.builder, item, signature.return_type, kind)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> None:
        """One number of an array, or what numba makes of it."""
        pointer = self._item(target.name, index.name, signature.args[1])
        if pointer is None:
            super().lower_setitem(target, index, value, signature)
            return
        array, given = self.typeof(target.name), signature.args[2]
        item = self.context.cast(self.builder, self.loadvar(value.name), self.typeof(value.name), given)
        item = self.context.cast(self.builder, item, given, array.dtype)
        store_item(self.context, self.builder, array, item, pointer)

    def _item(self, name: str, index: str, index_kind: Any) -> Any:
        """A pointer to the one number of an array that integers choose; None where something else is asked for."""
        array, is_tuple = self.typeof(name), isinstance(index_kind, types.BaseTuple)
        kinds = tuple(index_kind) if is_tuple else (index_kind,)
        if (
            not isinstance(array, types.Array)
            or not isinstance(array.dtype, (types.Number, types.Boolean))
            or len(kinds) != array.ndim
            or not all(isinstance(kind, types.Integer) for kind in kinds)
            or self.context.enable_boundscheck
        ):
            return None
        given = self.context.cast(self.builder, self.loadvar(index), self.typeof(index), index_kind)
        places = unpack_tuple(self.builder, given, len(kinds)) if is_tuple else [given]
        # The length is needed to count a negative place from the end, and to skip rows.
        lengths = [self._field(name, array, "shape", i) if i or kind.signed else None for i, kind in enumerate(kinds)]
        strides = [self._field(name, array, "strides", i) for i in range(array.ndim)] if array.layout == "A" else []
        places = [
            fix_integer_index(self.context, self.builder, kind, place, length)
            for kind, place, length in zip(kinds, places, lengths, strict=True)
        ]
        data = self._field(name, array, "data")
        return get_item_pointer2(self.context, self.builder, data, lengths, strides, array.layout, places)

    def _field(self, name: str, kind: Any, field: str, *path: int) -> Any:
        """A field of what describes an array."""
        return self._part(name, self.context.data_model_manager[kind].get_field_position(field), *path)

    def _part(self, name: str, *path: int) -> Any:
        """A part of a variable."""
        if name in self._blk_local_varmap:
            return self.builder.extract_value(self._blk_local_varmap[name], path)
        return self.builder.load(gep_inbounds(self.builder, self.getvar(name), 0, *path))

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:  # noqa: ARG002 (numba's signature)
        """Room for a variable, without what debuggers want to know of it."""
        return alloca_once(self.builder, lltype, name=name, zfill=False)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Without a look at the old value, unless references to it are counted."""
        if self.context.enable_nrt or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))


@register_pass(mutates_CFG=True, analysis_only=False)
class _NativeLowering(typed_passes.NativeLowering):  # type: ignore[misc, unused-ignore]
    @property
    def lowering_class(self) -> type[Lower]:
        """What makes LLVM's code."""
        return _QuickLower


class _PartCompiler(_QuickCompiler if _IS_QUICK else _PlainCompiler):  # type: ignore[misc]
    _library_class = _Part


class _DoorCompiler(_QuickCompiler):
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
