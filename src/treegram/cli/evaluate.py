"""``treegram evaluate``: kernels on a user's own data, compared as the paper does it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from treegram import Graphs
from treegram.cli._data import are_numbers, load_by_name
from treegram.cli._kernels import (
    add_attribute_options,
    attribute_choices,
    check_attribute_options,
    kernel_choice,
    users_of,
)
from treegram.cli._molecules import add_molecule_arguments, given_options
from treegram.cli._parser import Parser
from treegram.cli._study import add_run_arguments, at_least, run_and_print
from treegram.kernels.registry import AUTO, KERNELS
from treegram.study.protocol import CONTROLS
from treegram.study.study_file import parse_study

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram evaluate ENZYMES --kernel oddcl --kernel wl --repeats 10",
    "treegram evaluate ./mine --kernel oddcl --repeats 1 --folds 5",
    "treegram evaluate ./energies --task numbers --kernel wl",
    "treegram evaluate ./mine --kernel oddcl --scale raw,standard --gamma 0.01,scale",
)

_SEED = 0


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="+",
        help="names of data sets of the TU collection (ENZYMES), folders in its format (./mine), files of molecules "
        "(./mine.csv), digits, or synthetic",
    )
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        dest="kernels",
        action="append",
        type=kernel_choice,
        help=f"one of {', '.join(KERNELS)}, or auto, which tries many and sums of the best; may be given several times (default: "
        "oddcl). Its parameters are chosen by inner cross-validation, C (for classes) or alpha (for numbers) with them",
    )
    parser.add_argument(
        "--task",
        choices=["classes", "numbers"],
        help="what the targets are (default: numbers if any of them is not a whole number). Classes are predicted by support "
        "vector machines, numbers by kernel ridge regression",
    )
    add_attribute_options(parser, "Scales are learned from the training graphs of a fold")
    parser.add_argument(
        "--folds", metavar="N", type=at_least(2), default=10, help="outer and inner folds (default: 10)"
    )
    parser.add_argument(
        "--min-class-size",
        metavar="N",
        type=at_least(1),
        default=1,
        help="leave out the graphs of classes that have fewer than N (default: 1, none)",
    )
    parser.add_argument(
        "--control",
        choices=CONTROLS,
        metavar="NAME",
        help="change the data first, to see what scores rest on: "
        + "; ".join(f"{name} ({meaning})" for name, meaning in CONTROLS.items()),
    )
    parser.add_argument(
        "--redraw",
        action="store_true",
        help="draw random numbers anew in each repeat, for kernels that do (random_state is the number of the repeat): means are "
        "then over draws, too",
    )
    add_run_arguments(parser, repeats="10")
    add_molecule_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Write the study down, then run it as any other."""
    kernels = list(dict.fromkeys(args.kernels or ["oddcl"]))
    repeats = 10 if args.repeats is None else args.repeats
    # The store and the report say what a data set is called, not in which folder of this machine it is.
    sources = {_name(data): data for data in args.data}
    if len(sources) < len(args.data):
        raise ValueError(f"Data sets must have different names; got {', '.join(map(_name, args.data))}.")
    loaded = {name: load_by_name(source, args) for name, source in sources.items()}
    target = args.task or _kind_of_targets(loaded)
    protocol = {"repeats": repeats, "outer_folds": args.folds, "inner_folds": args.folds, "seed": _SEED}
    protocol |= _usual_left_out(target, args.min_class_size) | ({"control": args.control} if args.control else {})
    redrawn = _redrawn(kernels) if args.redraw else []
    text = study_text(list(sources), _candidates(kernels, args.scale, args.gamma), protocol, redrawn)
    # Under another name, so that a control gets a store of its own.
    study = parse_study("-".join([*sources, *filter(None, [args.control])]), text.encode(), "the command line")
    options = [*(f"--kernel {kernel}" for kernel in kernels), f"--folds {args.folds}", f"--repeats {repeats}"]
    options += given_options(args)
    for option in ("scale", "gamma"):
        given = getattr(args, option)
        options += [f"--{option} {','.join(_word(value) for value in given)}"] if given else []
    options += ["--task numbers"] if target == "numbers" else []
    options += [f"--min-class-size {args.min_class_size}"] if args.min_class_size > 1 else []
    options += [f"--control {args.control}"] if args.control else []
    options += ["--redraw"] if redrawn else []
    run_and_print(study, study.scope(), args, " ".join(["treegram evaluate", *sources, *options]), loaded)


def _usual_left_out(target: str, min_class_size: int) -> dict[str, Any]:
    """What the protocol says of the targets, unless it is the usual; so that older stores can be continued."""
    if target == "numbers" and min_class_size > 1:
        raise ValueError("--min-class-size is for classes; the targets are numbers.")
    return ({"task": "regression"} if target == "numbers" else {}) | (
        {"min_class_size": min_class_size} if min_class_size > 1 else {}
    )


def _kind_of_targets(loaded: Mapping[str, tuple[Graphs, NDArray[Any] | None]]) -> str:
    """What the targets of all data sets are; those without any are found out later."""
    kinds = {name: "numbers" if are_numbers(y) else "classes" for name, (_, y) in loaded.items() if y is not None}
    if len(set(kinds.values())) > 1:
        found = ", ".join(f"{name} has {kind}" for name, kind in kinds.items())
        raise ValueError(f"Classes and numbers cannot be compared in one table: {found}. Evaluate them one by one.")
    return next(iter(kinds.values()), "classes")


def _name(data: str) -> str:
    """The name of a data set, which is that of its folder."""
    path = Path(data)
    name = path.resolve().name if path.name in ("", "..") else path.name
    if not name.isprintable() or name != name.strip():
        raise ValueError(
            f"The data set {name!r} cannot be used under this name, which tables and pages must show: it has characters that "
            "cannot be printed, or blanks at its ends. Rename the folder."
        )
    return name


def _word(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float | int) else value


def _candidates(
    kernels: Sequence[str], scales: Sequence[str] | None, gammas: Sequence[Any] | None
) -> dict[str, list[dict[str, Any]]]:
    """For each kernel what is chosen from, as a study says it; options go to the kernels that they mean something to."""
    check_attribute_options(kernels, scales, gammas)
    found: dict[str, list[dict[str, Any]]] = {}
    for name in kernels:
        if name == AUTO:
            found[name] = [{"kernel": name}]
            continue
        own_scales, own_gammas = attribute_choices(name, scales, gammas)
        found[name] = [
            {"kernel": name}
            | ({"attributes": [scale]} if scale != "raw" else {})
            | {"param_grid": KERNELS[name]().default_param_grid() | widths}
            for scale in own_scales
            for widths in _gamma_grids(own_gammas)
        ]
    return found


def _redrawn(kernels: Sequence[str]) -> list[str]:
    """Those kernels that draw random numbers."""
    users = users_of("random_state")
    if not set(kernels) & set(users):
        raise ValueError(
            f"--redraw means nothing to {', '.join(kernels)}; these kernels draw random numbers: {', '.join(users)}."
        )
    return [name for name in kernels if name in users]


def _gamma_grids(gammas: Sequence[Any]) -> list[dict[str, Any]]:
    """Parts of grids. A study has no word for None, so that the default width is a candidate of its own."""
    numbers = [one for one in gammas if one is not None]
    return ([{}] if None in gammas else []) + ([{"gamma": numbers}] if numbers else [])


def study_text(
    datasets: Sequence[str],
    kernels: Mapping[str, Sequence[Mapping[str, Any]]],
    protocol: Mapping[str, Any],
    redrawn: Sequence[str] = (),
) -> str:
    """The study as a file: JSON's strings, numbers and lists are TOML's. ``kernels`` are candidates by name."""
    lines = [
        f"title = {_quoted('Kernels on ' + ', '.join(datasets))}",
        f"datasets = {_quoted(list(datasets))}",
        "[protocol]",
        *(f"{name} = {_quoted(value)}" for name, value in protocol.items()),
    ]
    for name, candidates in kernels.items():
        lines += ["[[kernels]]", f'name = "{name}"', *(["reseed = true"] if name in redrawn else [])]
        for candidate in candidates:
            lines += ["[[kernels.choices]]"] if len(candidates) > 1 else []
            lines += [f"{key} = {_inline(value)}" for key, value in candidate.items()]
    return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # JSON writes an emoji as two escapes, which are no TOML


def _inline(value: Any) -> str:
    if not isinstance(value, Mapping):
        return _quoted(value)
    return "{ " + ", ".join(f"{name} = {_quoted(list(values))}" for name, values in value.items()) + " }"
