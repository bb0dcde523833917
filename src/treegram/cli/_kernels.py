"""Kernels by name, and the options of each, read from its class.

To add a kernel, add its class to ``treegram.kernels.registry``. Names and defaults of its options come from its
signature, what is allowed from its ``_parameter_constraints``, and the help from the Parameters section of its
docstring. Parameters that no word on a command line can express (functions, arrays) get no option.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import re
from collections.abc import Iterator
from functools import partial
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import make_constraint

from treegram._wording import suggest
from treegram.cli._parser import Parser
from treegram.kernels import _grids
from treegram.kernels.registry import KERNELS

__all__ = [
    "KERNELS",
    "add_kernel_options",
    "add_options",
    "given_parameters",
    "grid_lists",
    "kernel_name",
    "option_types",
    "parameter_texts",
    "read_word",
]

_MOST_SHOWN = 4  # choices that stand in the place of the value; more of them are listed in the text


def kernel_name(text: str) -> str:
    """The name of a kernel, checked; for argparse."""
    name = text.lower()
    if name not in KERNELS:
        raise argparse.ArgumentTypeError(
            f"unknown kernel {text!r} (there are {', '.join(KERNELS)}){suggest(text, KERNELS)}"
        )
    return name


def add_kernel_options(parser: Parser, name: str) -> None:
    """One option for each parameter of the kernel; those of other kernels are explained when someone uses them."""
    add_options(parser, KERNELS[name], f"options of the kernel {name}")
    for flag, owners in _flags_of_others(name).items():
        parser.elsewhere[flag] = f": the kernel {name} has none, only {', '.join(owners)}"


def add_options(parser: Parser, estimator: type[Any], title: str) -> None:
    """One option for each parameter of an estimator, in a group of their own."""
    group = parser.add_argument_group(title)
    texts = parameter_texts(estimator)
    for parameter, default in _defaults(estimator).items():
        allowed = estimator._parameter_constraints[parameter]
        text = _help(texts.get(parameter, ""), allowed, default)
        if allowed == ["boolean"]:
            action = argparse.BooleanOptionalAction
            group.add_argument(_flag(parameter), action=action, default=argparse.SUPPRESS, help=text)
        elif (metavar := _metavar(allowed)) is not None:
            read = partial(read_word, allowed)
            group.add_argument(_flag(parameter), type=read, metavar=metavar, default=argparse.SUPPRESS, help=text)


def given_parameters(args: argparse.Namespace, estimator: type[Any]) -> dict[str, Any]:
    """The estimator's parameters that the command line sets."""
    return {key: value for key, value in vars(args).items() if key in _defaults(estimator)}


def grid_lists(name: str) -> dict[str, str]:
    """The lists that a kernel's ``gram_grid`` takes, each with the parameter in whose place its values stand."""
    return _grids.grid_lists(KERNELS[name]())


def option_types(name: str) -> dict[str, partial[Any]]:
    """For each parameter of a kernel, the function that reads its value from a word."""
    return {
        parameter: partial(read_word, allowed) for parameter, allowed in KERNELS[name]._parameter_constraints.items()
    }


def parameter_texts(estimator: type[Any]) -> dict[str, str]:
    """What a numpydoc docstring says about each parameter, in one line of plain text."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.getdoc(estimator) or "", re.M | re.S)
    entries = re.findall(r"^(\w+) : [^\n]*\n((?:[ \t]+[^\n]*\n?|\n)*)", section[1] if section else "", re.M)
    return {name: _plain(text) for name, text in entries}


def _plain(text: str) -> str:
    """The text without the marks of reStructuredText."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", " ".join(text.split()))
    text = re.sub(r"\\(\w+)\{([^{}]*)\}", r"\1(\2)", text)
    return text.replace("``", "").replace("\\", "")


def _defaults(estimator: type[Any]) -> dict[str, Any]:
    """The parameters of an estimator, with their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(estimator).parameters.items()}


def _flag(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")


def _flags_of_others(name: str) -> dict[str, list[str]]:
    own = _defaults(KERNELS[name])
    others: dict[str, list[str]] = {}
    for other, kernel in KERNELS.items():
        for parameter in _defaults(kernel):
            if parameter not in own:
                others.setdefault(_flag(parameter), []).append(other)
    return others


# -------------------------------------------------------------------- what is allowed


def _words(allowed: list[Any]) -> list[str]:
    """The words among the allowed values."""
    options = (make_constraint(one) for one in allowed)
    return sorted(word for one in options if getattr(one, "type", None) is str for word in one.options)


def _metavar(allowed: list[Any]) -> str | None:
    """What stands for the value in the help; None: no word can express it."""
    types = {getattr(make_constraint(one), "type", None) for one in allowed}
    words = _words(allowed)
    if words:
        return "{" + ",".join(words) + "}" if len(words) <= _MOST_SHOWN and types <= {str, None} else "NAME"
    if Real in types or "array-like" in allowed:
        return "X" if Real in types else "X,X,..."
    return "N" if Integral in types or "random_state" in allowed else None


def _help(text: str, allowed: list[Any], default: Any) -> str:
    words = _words(allowed)
    names = f" Names: {', '.join(words)}." if len(words) > _MOST_SHOWN else ""
    return f"{text}{names} (default: {_word(default)})".strip().replace("%", "%%")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def read_word(allowed: list[Any], text: str) -> Any:
    """The first reading of the text that is allowed; for argparse."""
    constraints = [make_constraint(one) for one in allowed if one is not callable]
    for value in _readings(text):
        if any(constraint.is_satisfied_by(value) for constraint in constraints):
            return value
    words = _words(allowed)
    wanted = [str(constraint) for constraint in constraints if getattr(constraint, "type", None) is not str]
    wanted += [f"one of {', '.join(words)}"] if words else []
    raise argparse.ArgumentTypeError(f"expected {' or '.join(wanted)}, got {text!r}{suggest(text, words)}")


def _readings(text: str) -> Iterator[Any]:
    if text.lower() == "none":
        yield None
    if "," in text:
        with contextlib.suppress(ValueError):
            yield [float(part) for part in text.split(",")]
    for kind in (int, float):
        try:
            yield kind(text)
        except ValueError:
            continue
    yield text
