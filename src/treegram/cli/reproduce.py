"""``treegram reproduce``: run a study, keep the result of every fold, and print the table."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from treegram.cli._data import load_data
from treegram.cli._parser import Parser
from treegram.cli._study import add_run_options, run_and_print
from treegram.study.study_file import shipped_studies

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram reproduce",
    "treegram reproduce paper --datasets ENZYMES BZR --kernels ODDCL_ST WL --repeats 1",
    "treegram reproduce my.toml --store my.sqlite",
)


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (the signature of all commands)
    """Add the arguments of the command."""
    parser.add_argument(
        "study",
        metavar="STUDY",
        nargs="?",
        default="paper",
        help=f"{', '.join(shipped_studies())}, or a study file of your own (default: paper)",
    )
    parser.add_argument("--datasets", metavar="NAME", nargs="+", help="run only these data sets of the study")
    parser.add_argument("--kernels", metavar="NAME", nargs="+", help="run only these kernels of the study")
    add_run_options(parser, repeats="all")


def run(args: argparse.Namespace) -> None:
    """Run what is asked for and not finished yet."""
    from treegram.study.study_file import read_study

    study = read_study(args.study)
    scope = study.scope(args.datasets, args.kernels, args.repeats)
    beside = Path(args.study).parent  # data sets may be in the folder of the study file
    folders = {name: beside / name for name in scope.datasets if args.data_dir is None and (beside / name).is_dir()}
    data = {name: load_data(str(folders.get(name, name)), args) for name in scope.datasets}
    # The store records the command without the folders of this machine.
    words = ["treegram", "reproduce", study.name]
    for option in ("datasets", "kernels"):
        words += [f"--{option}", *getattr(args, option)] if getattr(args, option) else []
    words += ["--repeats", str(args.repeats)] if args.repeats else []
    run_and_print(study, scope, data, args, shlex.join([*words, "--jobs", str(args.jobs)]))
