"""``treegram reproduce``: a study in, every fold's result in a store, the table at the end."""

from __future__ import annotations

import argparse
from pathlib import Path

from treegram.cli._data import load_by_name
from treegram.cli._parser import Parser
from treegram.cli._study import add_run_arguments, run_and_print
from treegram.study.study_file import read_study, shipped_studies

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram reproduce",
    "treegram reproduce paper --datasets ENZYMES BZR --kernels ODDCL_ST WL --repeats 1",
    "treegram reproduce my.toml --store my.sqlite",
)


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    parser.add_argument(
        "study",
        metavar="STUDY",
        nargs="?",
        default="paper",
        help=f"{' or '.join(shipped_studies())}, or a file of your own in the same format (default: paper)",
    )
    parser.add_argument("--datasets", metavar="NAME", nargs="+", help="only these data sets of the study")
    parser.add_argument("--kernels", metavar="NAME", nargs="+", help="only these kernels of the study")
    add_run_arguments(parser, repeats="all of the study")


def run(args: argparse.Namespace) -> None:
    """Run the part of the study that is asked for and not yet done."""
    study = read_study(args.study)
    scope = study.scope(args.datasets, args.kernels, args.repeats)
    beside = {name: Path(args.study).parent / name for name in study.datasets if args.data_dir is None}
    sources = {name: str(folder) for name, folder in beside.items() if folder.is_dir()}
    loaded = {name: load_by_name(sources.get(name, name), args) for name in scope.datasets}
    run_and_print(study, scope, args, _command(study.name, args), loaded)


def _command(name: str, args: argparse.Namespace) -> str:
    """What was asked for, without the folders of this machine."""
    words = ["treegram reproduce", name]
    for option, values in (("datasets", args.datasets), ("kernels", args.kernels)):
        words += [f"--{option}", *(f'"{value}"' if " " in value else value for value in values)] if values else []
    for option in ("repeats", "jobs"):
        value = getattr(args, option)
        words += [f"--{option} {value}"] if value is not None else []
    return " ".join(words)
