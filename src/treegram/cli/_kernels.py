"""Kernels by name, and options made from the parameters of a class.

Kernels are imported only when the values of their options are read: ``--help`` does not need them.
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
    "NAMES",
    "add_kernel_options",
    "add_kernel_parameters",
    "add_search_options",
    "check_search_options",
    "kernel_class",
    "kernel_in",
    "read_values",
    "set_parameters",
    "users_of",
]

# The keys of treegram.kernels.base.KERNELS, from the public names: help must not import the kernels.
_SHORT = {"ODDCLApprox": "oddcl-approx", "ShortestPath": "sp"}
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
    kernels = {name: kernel_class(name) for name in NAMES}
    return [
        name
        for name, kernel in kernels.items()
        if feature in inspect.signature(kernel).parameters or getattr(kernel, feature, False) is True
    ]


def _read_name(names: Sequence[str], text: str) -> str:
    """Check the name of a kernel; for argparse."""
    name = text.lower()
    if name not in names:
        raise argparse.ArgumentTypeError(
            f"unknown kernel {text!r} (choose from {', '.join(names)}){suggest(text, names)}"
        )
    return name


# -------------------------------------------------------------------- one kernel: gram, features


def add_kernel_options(parser: Parser, names: Sequence[str], text: str) -> None:
    """Add ``--kernel`` for one kernel, whose own options :func:`add_kernel_parameters` adds."""
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        type=partial(_read_name, names),
        default="oddcl",
        help=f"{text} (default: oddcl). {parser.prog} --kernel NAME --help lists the options of a kernel",
    )


def kernel_in(arguments: Sequence[str], names: Sequence[str], prog: str) -> str | None:
    """Return the kernel that the arguments name; None for ``--help`` without a kernel, which then needs no import."""
    chooser = Parser(prog, "", (), add_help=False)
    chooser.add_argument("--kernel", type=partial(_read_name, names))
    name = chooser.parse_known_args(arguments)[0].kernel
    return name or (None if {"-h", "--help"} & set(arguments) else "oddcl")


def add_kernel_parameters(parser: Parser, name: str, estimator: type[Any]) -> None:
    """Add an option for each parameter of an estimator; an error about any other names the kernels that have it."""
    from treegram._core.params import FLAG, LIST, Number, Whole, Words, allowed_values

    group = parser.add_argument_group(f"options of the kernel {name}")
    texts, rules = parameter_texts(estimator), allowed_values(estimator)
    for parameter, default in _defaults(estimator).items():
        allowed, flag = rules[parameter], _flag(parameter)
        shown = {"True": "yes", "False": "no", "None": "none"}.get(str(default), default)
        text = texts.get(parameter, "").replace("%", "%%")
        if allowed == (FLAG,):
            text = f"{text} (default: {shown})"
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
        elif any(isinstance(rule, Whole | Number | Words) or rule is LIST for rule in allowed):
            read = partial(read_word, allowed)
            text = f"{text} Expected: {_expected(allowed)} (default: {shown})"
            group.add_argument(flag, type=read, metavar="VALUE", default=argparse.SUPPRESS, help=text)
    for other in NAMES:
        for parameter in _defaults(kernel_class(other)).keys() - _defaults(estimator).keys():
            owners = parser.elsewhere.get(_flag(parameter), f": the kernel {name} does not have it, only")
            parser.elsewhere[_flag(parameter)] = f"{owners}{'' if owners.endswith('only') else ','} {other}"


def set_parameters(args: argparse.Namespace, estimator: type[Any]) -> dict[str, Any]:
    """Return the parameters of an estimator that the command line sets."""
    values = {"n_jobs": args.jobs, **vars(args)}
    return {name: values[name] for name in inspect.signature(estimator).parameters if name in values}


def read_values(name: str, text: str) -> tuple[str, list[Any]]:
    """Read a parameter of a kernel and its values from ``depth=0,1,2``; for argparse."""
    from treegram._core.params import allowed_values

    parameter, equals, values = text.partition("=")
    known = allowed_values(kernel_class(name))
    if not equals or not values:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE,VALUE,..., such as depth=0,1,2, got {text!r}")
    if parameter not in known:
        raise argparse.ArgumentTypeError(
            f"the kernel {name} has no parameter {parameter!r} (it has {', '.join(known)}){suggest(parameter, known)}"
        )
    return parameter, [read_word(known[parameter], value) for value in values.split(",")]


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


def read_word(allowed: Allowed, text: str) -> Any:
    """Return the first allowed reading of the text: None, a list, a number or the text itself; for argparse."""
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
    if text.lower() == "none":
        yield None
    if "," in text:
        with contextlib.suppress(ValueError):
            yield [float(number) for number in text.split(",")]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            yield kind(text)
    yield text


# -------------------------------------------------------------------- several kernels: fit, evaluate


def add_search_options(parser: Parser, default: str, models: str) -> None:
    """Add the options that say what cross-validation chooses from, and the task; ``models`` describes the fitted models."""
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        dest="kernels",
        action="append",
        type=partial(_read_name, (*NAMES, AUTO)),
        help=f"{', '.join(NAMES)}, or auto, which tries many kernels and sums of the best; may be repeated (default: {default}). "
        "Parameters are chosen by cross-validation",
    )
    parser.add_argument(
        "--scale",
        metavar="NAME,...",
        type=_scales,
        help="scale the attributes: raw, standard or robust; cross-validation chooses among several (default: raw)",
    )
    parser.add_argument(
        "--gamma",
        metavar="X,...",
        type=_gammas,
        help="values of gamma to choose from: numbers, scale (one over the variance of the vectors) or none (one over their "
        "dimension, the default)",
    )
    parser.add_argument(
        "--use-edge-labels", action="store_true", help="use the labels of edges (auto decides by itself)"
    )
    parser.add_argument(
        "--task",
        choices=("classification", "regression"),
        help=f"{models} (default: regression if some target is not a whole number)",
    )
    parser.add_argument(
        "--folds", metavar="N", type=at_least(2), default=10, help="folds of cross-validation (default: 10)"
    )


def check_search_options(kernels: Sequence[str], args: argparse.Namespace) -> None:
    """Raise an error if an option has an effect on none of the kernels."""
    features = {
        "scale": "uses_attributes",
        "gamma": "gamma",
        "use_edge_labels": "use_edge_labels",
        "reseed": "random_state",
    }
    for option, feature in features.items():
        if getattr(args, option, None) and not set(kernels) & set(users := users_of(feature)):
            raise ValueError(
                f"{_flag(option)} has no effect on {', '.join(kernels)}; it is for --kernel {', '.join(users)}."
            )


def _scales(text: str) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in SCALES:
            raise argparse.ArgumentTypeError(f"expected {', '.join(SCALES)}, got {name!r}{suggest(name, SCALES)}")
    return names


def _gammas(text: str) -> list[float | str | None]:
    from treegram._core.params import NOTHING, Number, Words

    allowed = (Number(0, above=True), Words("scale"), NOTHING)
    return list(dict.fromkeys(read_word(allowed, word) for word in text.split(",")))
