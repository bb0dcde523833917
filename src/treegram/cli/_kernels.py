"""Kernels by name, and options made from their parameters.

Kernels are imported only when the command line names one: ``--help`` alone does not need them.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import treegram
from treegram._core.text import suggest
from treegram.cli._parser import SPELLED, Parser, at_least

if TYPE_CHECKING:
    from treegram._core.params import Allowed
    from treegram.graphs.graph_table import GraphTable
    from treegram.kernels.base import GraphKernel

# The names of the kernels in treegram.kernels, from the public names: help must not import the kernels.
_SHORT = {"ODDCLApprox": "oddcl-approx", "ShortestPath": "sp", "StatisticsKernel": "statistics"}
_OTHERS = {"FeatureMap", "KernelSum", "Nystroem"}
NAMES = tuple(sorted(_SHORT.get(name, name.lower()) for name in treegram._HOMES["kernels"] if name not in _OTHERS))
AUTO = "auto"
SCALES = ("raw", "standard", "robust")
_WORDS = {"none": None, "yes": True, "no": False}


def kernel_class(name: str) -> type[GraphKernel]:
    """Return the class of a kernel."""
    from treegram.kernels.registry import KERNELS

    return KERNELS[name]


def _users_of(feature: str) -> list[str]:
    """Return the kernels that have a parameter, or a true class attribute, of this name."""
    from treegram.kernels.registry import KERNELS

    return [
        name
        for name, kernel in sorted(KERNELS.items())
        if feature in inspect.signature(kernel).parameters or getattr(kernel, feature, False) is True
    ]


def _read_name(names: Sequence[str], text: str) -> str:
    """Check the name of a kernel, which may come from another package; for argparse."""
    if text.lower() in names:
        return text.lower()
    from treegram.kernels.registry import KERNELS

    if text in KERNELS:
        return text
    raise argparse.ArgumentTypeError(f"unknown kernel {text!r} (choose from {', '.join(names)}){suggest(text, names)}")


# -------------------------------------------------------------------- options


def add_kernel_name(parser: argparse.ArgumentParser) -> None:
    """Add ``--kernel`` for commands that compare graphs without a model."""
    text = "kernel (default: a sum that suits most graphs)"
    parser.add_argument("--kernel", choices=NAMES, metavar="NAME", help=text)


def add_kernel_options(parser: Parser, text: str, *, default: str, several: bool = False) -> None:
    """Add ``--kernel``, which with ``several`` may be repeated, and an option for each parameter of the named kernels."""
    read = partial(_read_name, (*NAMES, AUTO) if several else NAMES)
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        dest="kernels" if several else "kernel",
        action="append" if several else "store",
        type=read,
        default=None if several else default,
        help=f"{text} (default: {default}). {parser.prog} --kernel NAME --help lists the options of a kernel; an option that takes "
        "a value takes several, separated by commas",
    )
    chooser = Parser(parser.prog, "", (), add_help=False)
    chooser.add_argument("--kernel", action="append", type=read)
    names = chooser.parse_known_args(parser.arguments)[0].kernel
    if names is None:
        names = [] if {"-h", "--help"} & set(parser.arguments) else [default]
    for name in dict.fromkeys(names):
        if name != AUTO:
            _add_parameters(parser, name, kernel_class(name))
    parser.explain_unknown = partial(_explain_unknown, names)


def _explain_unknown(names: Sequence[str], option: str) -> str:
    """Return the end of the error about an option that none of these kernels has, or "" if it is not an option of any kernel."""
    users = _users_of(option.removeprefix("--").removeprefix("no-").replace("-", "_"))
    if not names or not users or {*users} & {*names}:
        return ""
    return f": it has no effect on {', '.join(names)}; it is for --kernel {', '.join(users)}"


def _add_parameters(parser: Parser, name: str, kernel: type[Any]) -> None:
    """Add an option for each parameter, unless another kernel has added it."""
    from treegram._core.params import FLAG, LIST, NOTHING, Number, Words, allowed_values

    group = parser.add_argument_group(f"options of the kernel {name}")
    texts, rules = parameter_texts(kernel), allowed_values(kernel)
    for parameter, default in _defaults(kernel).items():
        allowed = tuple(  # the kinds of values that can be written on a command line
            rule
            for rule in rules[parameter]
            if isinstance(rule, Number | Words) or rule in (FLAG, LIST, NOTHING) or rule.accepts("any text")
        )
        flag = "--" + parameter.replace("_", "-")
        is_flag = allowed == (FLAG,)
        if is_flag and default:
            flag = flag.replace("--", "--no-", 1)
        if not set(allowed) - {NOTHING} or flag in parser._option_string_actions:
            continue
        text = texts.get(parameter, "").replace("%", "%%")
        options: dict[str, Any] = {"dest": _dest(parameter), "default": argparse.SUPPRESS}
        if is_flag:
            help_text = f"turn off: {text}" if default else text
            group.add_argument(flag, action="store_const", const=[not default], help=help_text, **options)
        else:
            text = f"{text} Expected: {_expected(allowed)} (default: {SPELLED.get(str(default), default)})"
            group.add_argument(flag, type=partial(_read_values, allowed), metavar="VALUE", help=text, **options)


def parameter_values(args: argparse.Namespace, kernel: str) -> dict[str, list[Any]]:
    """Return the values of each parameter of a kernel that the command line sets."""
    names = [] if kernel == AUTO else _defaults(kernel_class(kernel))
    return {name: getattr(args, _dest(name)) for name in names if _dest(name) in args}


def parameter_texts(kernel: type[Any]) -> dict[str, str]:
    """Return the description of each parameter in a numpydoc docstring, as one line of plain text."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.getdoc(kernel) or "", re.M | re.S)
    entries = re.findall(r"^(\w+) : [^\n]*\n((?:[ \t]+[^\n]*\n?|\n)*)", section[1] if section else "", re.M)
    return {name: _plain(text) for name, text in entries}


def _plain(text: str) -> str:
    """Remove the markup of reStructuredText."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", " ".join(text.split()))
    text = re.sub(r"\\(\w+)\{([^{}]*)\}", r"\1(\2)", text)
    return text.replace("``", "").replace("\\", "")


def _defaults(kernel: type[Any]) -> dict[str, Any]:
    """Return the parameters of a kernel with their defaults; ``--jobs`` sets n_jobs for all commands."""
    signature = inspect.signature(kernel).parameters
    return {name: parameter.default for name, parameter in signature.items() if name != "n_jobs"}


def _dest(parameter: str) -> str:
    return f"kernel.{parameter}"


def _read_values(allowed: Allowed, text: str) -> list[Any]:
    """Return the values in a text, separated by commas; for argparse."""
    from treegram._core.params import LIST

    if LIST in allowed and "," in text:
        with contextlib.suppress(ValueError):
            return [[float(number) for number in text.split(",")]]
    return [_read_value(allowed, word) for word in text.split(",")]


def _read_value(allowed: Allowed, text: str) -> Any:
    """Return the first allowed reading of the text: None, True, False, a number or the text itself."""
    from treegram._core.params import words_of

    readings: list[Any] = [_WORDS.get(text.lower(), text)]
    for number_type in (int, float):
        with contextlib.suppress(ValueError):
            readings.append(number_type(text))
    for value in readings:
        if any(rule.accepts(value) for rule in allowed):
            return value
    raise argparse.ArgumentTypeError(f"expected {_expected(allowed)}, got {text!r}{suggest(text, words_of(allowed))}")


def _expected(allowed: Allowed) -> str:
    return " or ".join(map(str, allowed))


# -------------------------------------------------------------------- several kernels: fit, evaluate


def add_search_options(parser: Parser, models: str) -> None:
    """Add the options that say what cross-validation chooses from, and the task; ``models`` describes the fitted models."""
    text = f"{', '.join(NAMES)}, or auto, which tries many kernels and combines the best; may be repeated"
    add_kernel_options(parser, text, default=AUTO, several=True)
    parser.add_argument(
        "--scale",
        metavar="NAME,...",
        type=_scales,
        help="scale the attributes: raw, standard or robust; cross-validation chooses among several (default: raw)",
    )
    parser.add_argument(
        "--task",
        choices=("classification", "regression"),
        help=f"{models} (default: what the targets are for, where that is clear)",
    )
    parser.add_argument(
        "--folds",
        metavar="N",
        type=at_least(2),
        default=10,
        help="folds of cross-validation (default: 10); auto needs none to fit",
    )


def find_task(table: GraphTable, target: str, args: argparse.Namespace) -> str:
    """Return the task of ``--task``, or that of the data, or else that of the target if it is clear."""
    from treegram.graphs.graph_table import choose_task

    subject = f"the values of {target!r}" if target else "the targets"
    return args.task or table.task or choose_task(table.values(target)[1], subject)


def _scales(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in SCALES:
            raise argparse.ArgumentTypeError(f"expected raw, standard or robust, got {name!r}{suggest(name, SCALES)}")
    return names


def scales_by_kernel(args: argparse.Namespace) -> dict[str, list[str]]:
    """Return the kernels of ``--kernel``, each with the scales to try; raise an error if ``--scale`` affects none of them."""
    names = dict.fromkeys(args.kernels or [AUTO])
    users = _users_of("uses_attributes") if args.scale else []
    if args.scale and not names.keys() & set(users):
        raise ValueError(f"--scale has no effect on {', '.join(names)}; it is for --kernel {', '.join(users)}.")
    return {name: args.scale if name in users else ["raw"] for name in names}
