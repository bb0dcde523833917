"""``treegram evaluate``: kernels on a user's own data, compared as the paper does it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treegram.cli._kernels import kernel_name
from treegram.cli._parser import Parser
from treegram.cli._study import add_run_arguments, at_least, run_and_print
from treegram.experiments.study_file import parse_study
from treegram.kernels.registry import KERNELS

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram evaluate ENZYMES --kernel oddcl --kernel wl --repeats 10",
    "treegram evaluate ./mine --kernel oddcl --repeats 1 --folds 5",
)

_SEED = 0


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="+",
        help="names of data sets of the TU collection (ENZYMES), folders in its format (./mine), digits, or synthetic",
    )
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        dest="kernels",
        action="append",
        type=kernel_name,
        help=f"one of {', '.join(KERNELS)}; may be given several times (default: oddcl). Its parameters and C are chosen "
        "by inner cross-validation",
    )
    parser.add_argument(
        "--folds", metavar="N", type=at_least(2), default=10, help="outer and inner folds (default: 10)"
    )
    add_run_arguments(parser, repeats="10")


def run(args: argparse.Namespace) -> None:
    """Write the study down, then run it as any other."""
    kernels = list(dict.fromkeys(args.kernels or ["oddcl"]))
    repeats = 10 if args.repeats is None else args.repeats
    # The store and the report say what a data set is called, not in which folder of this machine it is.
    sources = {_name(data): data for data in args.data}
    if len(sources) < len(args.data):
        raise ValueError(f"Data sets must have different names; got {', '.join(map(_name, args.data))}.")
    text = study_text(list(sources), kernels, folds=args.folds, repeats=repeats)
    options = [*(f"--kernel {kernel}" for kernel in kernels), f"--folds {args.folds}", f"--repeats {repeats}"]
    study = parse_study("-".join(sources), text.encode(), "the command line")
    run_and_print(study, study.scope(), args, " ".join(["treegram evaluate", *sources, *options]), sources)


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


def study_text(datasets: Sequence[str], kernels: Sequence[str], *, folds: int, repeats: int) -> str:
    """The study as a file: JSON's strings, numbers and lists are TOML's."""
    lines = [
        f"title = {_quoted('Kernels on ' + ', '.join(datasets))}",
        f"datasets = {_quoted(list(datasets))}",
        "[protocol]",
        f"repeats = {repeats}",
        f"outer_folds = {folds}",
        f"inner_folds = {folds}",
        f"seed = {_SEED}",
    ]
    for name in kernels:
        kernel = KERNELS[name]()
        lines += ["[[kernels]]", f'name = "{name}"', f'kernel = "{name}"', f"grid = {_inline(kernel.usual_grid())}"]
    return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # JSON writes an emoji as two escapes, which are no TOML


def _inline(grid: Mapping[str, Sequence[Any]]) -> str:
    return "{ " + ", ".join(f"{name} = {_quoted(list(values))}" for name, values in grid.items()) + " }"
