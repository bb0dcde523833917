"""``treegram reproduce``: run a study, keep the result of every fold, and print the table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treegram.cli._data import OPTIONS_BY_INPUT, add_options, load_data
from treegram.cli._parser import Parser, add_jobs, at_least, show
from treegram.study.protocol import shipped_studies

if TYPE_CHECKING:
    from treegram.study.protocol import Study

EXAMPLES = (
    "treegram reproduce",
    "treegram reproduce paper --datasets ENZYMES BZR --kernels ODDCL_ST WL --repeats 1",
    "treegram reproduce my.toml --store my.sqlite",
)


def add_arguments(parser: Parser) -> None:
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
    parser.add_argument(
        "--allow-import",
        metavar="MODULE",
        action="append",
        default=[],
        help="run the code of this Python module, which the study needs for its estimators; may be repeated",
    )
    add_options(parser, OPTIONS_BY_INPUT["data sets"])


def run(args: argparse.Namespace) -> None:
    """Run whatever is requested and not finished yet."""
    from treegram.study.study_file import read_study

    study = read_study(args.study)
    part = study.part(args.datasets, args.kernels, args.repeats)
    beside = Path(args.study).parent  # data sets may be in the folder of the study file
    folders = {name: beside / name for name in part.datasets if (beside / name).is_dir()}
    data = {name: load_data(str(folders.get(name, name)), args) for name in part.datasets}
    run_and_print(study, part, data, args, allow_import=args.allow_import)


# -------------------------------------------------------------------- shared with treegram evaluate


def add_run_options(parser: Parser, repeats: str) -> None:
    """Add the number of repeats and threads, and the store."""
    parser.add_argument(
        "--repeats", metavar="N", type=at_least(1), help=f"run the first N repeats (default: {repeats})"
    )
    add_jobs(parser)
    parser.add_argument(
        "--store",
        metavar="FILE",
        type=Path,
        help="SQLite file that keeps every finished fold: a run with the same file resumes where it stopped, and several processes "
        "may share one (default: the study's name with .sqlite)",
    )


def run_and_print(
    study: Study, part: Study, data: Mapping[str, Any], args: argparse.Namespace, allow_import: Sequence[str] = ()
) -> None:
    """Run what is missing of a part of the study, and print the table of all results."""
    from treegram.study.report_tables import brief_text
    from treegram.study.run import run_study
    from treegram.study.store import Store
    from treegram.study.summary import summarize

    path = args.store or Path(f"{study.name}.sqlite")
    try:
        run_study(part, path, data, allow_import=allow_import, command=args.command_line, n_jobs=args.jobs)
    except KeyboardInterrupt:
        print(f"Interrupted; finished folds are in {path}. Run the same command to resume.", file=sys.stderr)
        raise SystemExit(130) from None
    with Store.open(path) as store:
        show(brief_text(summarize(store, study)))
    show(f"\nResults: {path}. For a page of tables and statistics: treegram report {path}")
