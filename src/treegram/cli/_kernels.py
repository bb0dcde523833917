"""Kernels by name, and the options of each, read from its class.

Names and defaults of options come from the signature of a class, what is allowed from what it says its parameters may be
(``treegram._core.params``), and the help from the Parameters section of its docstring. Parameters that no word on a command line can express (functions, arrays) get no option.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from treegram._core.params import FLAG, FUNCTION, LIST, NOTHING, Allowed, Number, Whole, Words, allowed_values, words_of
from treegram._core.text import suggest
from treegram.cli._parser import Parser
from treegram.kernels.registry import AUTO, KERNELS

__all__ = [
    "KERNELS",
    "add_attribute_options",
    "add_kernel_options",
    "add_options",
    "attribute_choices",
    "check_attribute_options",
    "given_parameters",
    "kernel_choice",
    "kernel_name",
    "parameter_texts",
    "read_list",
    "read_word",
    "users_of",
]

_SCALES = ("raw", "standard", "robust")
_MOST_SHOWN = 4  # choices that stand in the place of the value; more of them are listed in the text


def kernel_name(text: str) -> str:
    """The name of a kernel, checked; for argparse."""
    return _one_of(text, list(KERNELS))


def kernel_choice(text: str) -> str:
    """The name of a kernel, or "auto" for a choice among many; for argparse."""
    return _one_of(text, [*KERNELS, AUTO])


def _one_of(text: str, names: list[str]) -> str:
    name = text.lower()
    if name not in names:
        raise argparse.ArgumentTypeError(
            f"unknown kernel {text!r} (there are {', '.join(names)}){suggest(text, names)}"
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
        allowed = allowed_values(estimator)[parameter]
        text = _help(texts.get(parameter, ""), allowed, default)
        if allowed == (FLAG,):
            action = argparse.BooleanOptionalAction
            group.add_argument(_flag(parameter), action=action, default=argparse.SUPPRESS, help=text)
        elif (metavar := _metavar(allowed)) is not None:
            read = partial(read_word, allowed)
            group.add_argument(_flag(parameter), type=read, metavar=metavar, default=argparse.SUPPRESS, help=text)


def given_parameters(args: argparse.Namespace, estimator: type[Any]) -> dict[str, Any]:
    """The estimator's parameters that the command line sets."""
    return {key: value for key, value in vars(args).items() if key in _defaults(estimator)}


def read_list(name: str, text: str) -> tuple[str, list[Any]]:
    """A parameter of a kernel and its values, from ``depth=0,1,2``; for argparse."""
    parameter, equals, values = text.partition("=")
    known = allowed_values(KERNELS[name])
    if not equals or not values:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE,VALUE,..., such as depth=0,1,2, got {text!r}")
    if parameter not in known:
        raise argparse.ArgumentTypeError(
            f"the kernel {name} has no parameter {parameter!r} (it has {', '.join(known)}){suggest(parameter, known)}"
        )
    return parameter, [read_word(known[parameter], value) for value in values.split(",")]


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


# -------------------------------------------------------------------- scales and widths to choose from


def add_attribute_options(parser: Parser, learned: str) -> None:
    """``--scale`` and ``--gamma``, which offer several ways to use the vectors; ``learned`` says what scales are learned from."""
    parser.add_argument(
        "--scale",
        metavar="NAME,...",
        type=_scales,
        help="scale the attributes before the kernel: standard or robust; from several, such as raw,standard, "
        f"cross-validation chooses (default: raw). {learned}",
    )
    parser.add_argument(
        "--gamma",
        metavar="X,...",
        type=_gammas,
        help="widths of the node kernel to choose from: numbers, scale (one over the spread of the vectors), none (one over "
        "their dimension, the default)",
    )


def _scales(text: str) -> list[str]:
    """Ways to scale, checked; for argparse."""
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in _SCALES:
            raise argparse.ArgumentTypeError(f"expected {', '.join(_SCALES)}, got {name!r}{suggest(name, _SCALES)}")
    return names


def _gammas(text: str) -> list[float | str | None]:
    """Widths, checked; for argparse."""
    return list(
        dict.fromkeys(read_word((Number(0, above=True), Words("scale"), NOTHING), one) for one in text.split(","))
    )


def check_attribute_options(kernels: Sequence[str], scales: Sequence[str] | None, gammas: Sequence[Any] | None) -> None:
    """Raise if one of the options is given, and means something to none of the kernels."""
    for option, given, users in (("scale", scales, users_of("uses_attributes")), ("gamma", gammas, users_of("gamma"))):
        if given and not set(kernels) & set(users):
            raise ValueError(
                f"--{option} means nothing to {', '.join(kernels)}; these kernels use it: {', '.join(users)}."
            )


def attribute_choices(
    kernel: str, scales: Sequence[str] | None, gammas: Sequence[Any] | None
) -> tuple[Sequence[str], Sequence[Any]]:
    """The scales and widths that mean something to a kernel; the defaults where none does."""
    return (
        scales if scales and kernel in users_of("uses_attributes") else ["raw"],
        gammas if gammas and kernel in users_of("gamma") else [None],
    )


def users_of(feature: str) -> list[str]:
    """The kernels that have a parameter, or whose class says so."""
    return [
        name
        for name, kernel in KERNELS.items()
        if feature in inspect.signature(kernel).parameters or getattr(kernel, feature, False) is True
    ]


# -------------------------------------------------------------------- what is allowed


def _metavar(allowed: Allowed) -> str | None:
    """What stands for the value in the help; None: no word can express it."""
    words = words_of(allowed)
    kinds = {type(one) for one in allowed}
    if words:
        numbers = kinds & {Whole, Number}
        return "NAME" if len(words) > _MOST_SHOWN or numbers else "{" + ",".join(words) + "}"
    if Number in kinds or LIST in allowed:
        return "X" if Number in kinds else "X,X,..."
    return "N" if Whole in kinds else None


def _help(text: str, allowed: Allowed, default: Any) -> str:
    words = words_of(allowed)
    names = f" Names: {', '.join(words)}." if len(words) > _MOST_SHOWN else ""
    return f"{text}{names} (default: {_word(default)})".strip().replace("%", "%%")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def read_word(allowed: Allowed, text: str) -> Any:
    """The first reading of the text that is allowed; for argparse."""
    sayable = [one for one in allowed if one is not FUNCTION]
    for value in _readings(text):
        if any(one.accepts(value) for one in sayable):
            return value
    words = words_of(allowed)
    raise argparse.ArgumentTypeError(
        f"expected {' or '.join(str(one) for one in sayable)}, got {text!r}{suggest(text, words)}"
    )


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
