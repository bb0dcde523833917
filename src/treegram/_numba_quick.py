"""A compiler of loops that does not look things up twice, and leaves out what they never have: for one version of numba.

For every operation numba tries a dozen ways to find out its type, and compares two dozen options each time. This compiler
remembers the answer for each combination of types and options. It leaves out steps for closures, generators, ``with``, array
expressions and constants that choose a branch, and for functions that make no arrays the search for where each variable is used
last. It reads an item of an array without a copy of what describes the array, and a part of a bundle without one of the bundle.
LLVM has a fifth to a third less to read, and makes as many instructions of it.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

from numba import np as numba_np
from numba.core import ir, typed_passes, types, untyped_passes
from numba.core.cgutils import alloca_once, gep_inbounds, get_item_pointer2, unpack_tuple
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.lowering import Lower
from numba.core.ssa import reconstruct_ssa
from numba.core.targetconfig import ConfigStack
from numba.core.types.containers import BaseTuple, StarArgTuple
from numba.core.typing import signature
from numba.cpython.builtins import do_minmax
from numba.extending import intrinsic

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


# -------------------------------------------------------------------- LLVM's code


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
        elif isinstance(whole, BaseTuple) and not self.context.enable_nrt:
            place = whole.fields.index(expression.attr) if expression.op == "getattr" else expression.index
            if isinstance(place, int) and place >= 0:
                return self.context.cast(self.builder, self._part(name, place), whole[place], kind)
        return super().lower_expr(kind, expression)

    def lower_getitem(self, kind: Any, expression: Any, value: Any, index: Any, signature: Any) -> Any:
        """One number of an array, or what numba makes of it."""
        pointer = self._item(value.name, index.name, signature.args[1])
        if pointer is None:
            return super().lower_getitem(kind, expression, value, index, signature)
        item = numba_np.arrayobj.load_item(self.context, self.builder, self.typeof(value.name), pointer)
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
        numba_np.arrayobj.store_item(self.context, self.builder, array, item, pointer)

    def _item(self, name: str, index: str, index_kind: Any) -> Any:
        """A pointer to the one number of an array that integers choose; None where something else is asked for."""
        array, is_tuple = self.typeof(name), isinstance(index_kind, BaseTuple)
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
            numba_np.arrayobj.fix_integer_index(self.context, self.builder, kind, place, length)
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
