"""Kernels by name, and options made from their parameters.

Kernels are imported only when the command line names one: ``--help`` alone does not need them.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import treegram
from treegram._core.text import suggest
from treegram.cli._parser import Parser, at_least

if TYPE_CHECKING:
    from treegram._core.params import Allowed
    from treegram.kernels.base import GraphKernel

__all__ = [
    "AUTO",
    "NAMES",
    "add_kernel_options",
    "add_search_options",
    "kernel_class",
    "kernel_words",
    "parameter_values",
    "scales_of",
    "users_of",
]

# The names of the kernels in treegram.kernels, from the public names: help must not import the kernels.
_SHORT = {"ODDCLApprox": "oddcl-approx", "ShortestPath": "sp", "StatisticsKernel": "statistics"}
_OTHERS = {"FeatureMap", "KernelSum", "Nystroem", "ODDCLFeatures"}
NAMES = tuple(sorted(_SHORT.get(name, name.lower()) for name in treegram._HOMES["kernels"] if name not in _OTHERS))
AUTO = "auto"
SCALES = ("raw", "standard", "robust")


def kernel_class(name: str) -> type[GraphKernel]:
    """Return the class of a kernel."""
    from treegram.kernels.base import KERNELS

    return KERNELS[name]


def users_of(feature: str) -> list[str]:
    """Return the names of the kernels that have a parameter or a class attribute."""
    from treegram.kernels.base import KERNELS

    return [
        name
        for name, kernel in sorted(KERNELS.items())
        if feature in inspect.signature(kernel).parameters or getattr(kernel, feature, False) is True
    ]


def _read_name(names: Sequence[str], text: str) -> str:
    """Check the name of a kernel, which may be that of another package; for argparse."""
    if text.lower() in names:
        return text.lower()
    from treegram.kernels.base import KERNELS

    if text in KERNELS:
        return text
    raise argparse.ArgumentTypeError(f"unknown kernel {text!r} (choose from {', '.join(names)}){suggest(text, names)}")


# -------------------------------------------------------------------- options


def add_kernel_options(
    parser: Parser,
    arguments: Sequence[str],
    text: str,
    *,
    default: str,
    several: bool = False,
) -> None:
    """Add ``--kernel``, which with ``several`` may be repeated, and an option for each parameter of the named kernels."""
    names = (*NAMES, AUTO) if several else NAMES
    read = partial(_read_name, names)
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
    chooser.add_argument("--kernel", action="append", type=read, default=[])
    chosen = chooser.parse_known_args(arguments)[0].kernel
    if not chosen and not {"-h", "--help"} & set(arguments):
        chosen = [default]
    for name in dict.fromkeys(chosen):
        if name != AUTO:
            _add_parameters(parser, name, kernel_class(name))
    parser.explain_unknown = partial(_explain_unknown, chosen)


def _add_parameters(parser: Parser, name: str, estimator: type[Any]) -> None:
    """Add an option for each parameter that is not there yet."""
    from treegram._core.params import FLAG, LIST, Number, Whole, Words, allowed_values

    group = parser.add_argument_group(f"options of the kernel {name}")
    texts, rules = parameter_texts(estimator), allowed_values(estimator)
    for parameter, default in _defaults(estimator).items():
        allowed, flag = rules[parameter], _flag(parameter)
        if flag in parser._option_string_actions:  # another kernel has it, too
            continue
        shown = {"True": "yes", "False": "no", "None": "none"}.get(str(default), default)
        text = texts.get(parameter, "").replace("%", "%%")
        options: dict[str, Any] = {"dest": _dest(parameter), "default": argparse.SUPPRESS}
        if FLAG in allowed and len(allowed) > 1:
            text = f"{text} Expected: {_expected(allowed)} (default: {shown})"
            group.add_argument(flag, type=partial(_read_values, allowed), metavar="VALUE", help=text, **options)
            off = flag.replace("--", "--no-", 1)
            group.add_argument(off, action="store_const", const=[False], help=f"the same as {flag} no", **options)
        elif allowed == (FLAG,):
            group.add_argument(
                flag, action=argparse.BooleanOptionalAction, help=f"{text} (default: {shown})", **options
            )
        elif any(isinstance(rule, Whole | Number | Words) or rule is LIST for rule in allowed):
            text = f"{text} Expected: {_expected(allowed)} (default: {shown})"
            group.add_argument(flag, type=partial(_read_values, allowed), metavar="VALUE", help=text, **options)


def _explain_unknown(chosen: Sequence[str], option: str) -> str:
    """Return the end of the error about an option that no chosen kernel has, or "" if it is not an option of any kernel."""
    users = users_of(option.removeprefix("--").removeprefix("no-").replace("-", "_")) if chosen else []
    return f": it has no effect on {', '.join(chosen)}; it is for --kernel {', '.join(users)}" if users else ""


def parameter_values(args: argparse.Namespace, estimator: type[Any]) -> dict[str, list[Any]]:
    """Return the values on the command line of each parameter of an estimator that it sets."""
    given = {name: getattr(args, _dest(name), None) for name in _defaults(estimator)}
    return {name: value if isinstance(value, list) else [value] for name, value in given.items() if value is not None}


def kernel_words(args: argparse.Namespace) -> list[str]:
    """Return the options of kernels that are set, as words of a command line."""
    words: list[str] = []
    for name, value in vars(args).items():
        if name.startswith("kernel."):
            flag = _flag(name.removeprefix("kernel."))
            if isinstance(value, list):
                words += [flag, ",".join("none" if one is None else str(one) for one in value)]
            else:
                words.append(flag if value else flag.replace("--", "--no-", 1))
    return words


def parameter_texts(estimator: type[Any]) -> dict[str, str]:
    """Return the description of each parameter in a numpydoc docstring, as one line of plain text."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.getdoc(estimator) or "", re.M | re.S)
    entries = re.findall(r"^(\w+) : [^\n]*\n((?:[ \t]+[^\n]*\n?|\n)*)", section[1] if section else "", re.M)
    return {name: _plain(text) for name, text in entries}


def _plain(text: str) -> str:
    """Remove the markup of reStructuredText."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", " ".join(text.split()))
    text = re.sub(r"\\(\w+)\{([^{}]*)\}", r"\1(\2)", text)
    return text.replace("``", "").replace("\\", "")


def _defaults(estimator: type[Any]) -> dict[str, Any]:
    """Return the parameters of an estimator with their defaults; ``--jobs`` sets n_jobs for all commands."""
    signature = inspect.signature(estimator).parameters
    return {name: parameter.default for name, parameter in signature.items() if name != "n_jobs"}


def _flag(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")


def _dest(parameter: str) -> str:
    return f"kernel.{parameter}"


def _read_values(allowed: Allowed, text: str) -> list[Any]:
    """Return the values in a text, separated by commas; for argparse."""
    from treegram._core.params import LIST

    words = [text] if LIST in allowed else text.split(",")
    return list({repr(value): value for value in (_read_word(allowed, word) for word in words)}.values())


def _read_word(allowed: Allowed, text: str) -> Any:
    """Return the first allowed reading of the text: None, a list, a number or the text itself."""
    from treegram._core.params import FUNCTION, words_of

    for value in _readings(text):
        if any(rule.accepts(value) for rule in allowed if rule is not FUNCTION):
            return value
    hint = suggest(text, words_of(allowed))
    raise argparse.ArgumentTypeError(f"expected {_expected(allowed)}, got {text!r}{hint}")


def _expected(allowed: Allowed) -> str:
    from treegram._core.params import FUNCTION

    return " or ".join(str(rule) for rule in allowed if rule is not FUNCTION)


def _readings(text: str) -> Iterator[Any]:
    words = {"none": None, "yes": True, "true": True, "no": False, "false": False}
    if text.lower() in words:
        yield words[text.lower()]
    if "," in text:
        with contextlib.suppress(ValueError):
            yield [float(number) for number in text.split(",")]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            yield kind(text)
    yield text


# -------------------------------------------------------------------- several kernels: fit, evaluate


def add_search_options(parser: Parser, arguments: Sequence[str], default: str, models: str) -> None:
    """Add the options that say what cross-validation chooses from, and the task; ``models`` describes the fitted models."""
    text = f"{', '.join(NAMES)}, or auto, which tries many kernels and combines the best; may be repeated"
    add_kernel_options(parser, arguments, text, default=default, several=True)
    parser.add_argument(
        "--scale",
        metavar="NAME,...",
        type=_scales,
        help="scale the attributes: raw, standard or robust; cross-validation chooses among several (default: raw)",
    )
    parser.add_argument(
        "--task",
        choices=("classification", "regression"),
        help=f"{models} (default: regression if some target is not a whole number)",
    )
    parser.add_argument(
        "--folds",
        metavar="N",
        type=at_least(2),
        default=10,
        help="folds of cross-validation (default: 10); auto needs none to fit",
    )


def scales_of(args: argparse.Namespace, kernels: Sequence[str]) -> dict[str, list[str]]:
    """Return the scales to try with each kernel; raise an error if ``--scale`` has an effect on none."""
    users = users_of("uses_attributes") if args.scale else []
    if args.scale and not set(kernels) & set(users):
        raise ValueError(f"--scale has no effect on {', '.join(kernels)}; it is for --kernel {', '.join(users)}.")
    return {name: args.scale if name in users else ["raw"] for name in kernels}


def _scales(text: str) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in SCALES:
            raise argparse.ArgumentTypeError(f"expected {', '.join(SCALES)}, got {name!r}{suggest(name, SCALES)}")
    return names
