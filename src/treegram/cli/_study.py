"""The options and the end of a run that ``treegram evaluate`` and ``treegram reproduce`` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treegram.cli._data import add_folder_options
from treegram.cli._parser import Parser, add_jobs, at_least

if TYPE_CHECKING:
    from treegram import Graphs
    from treegram.study.protocol import Scope, Study

__all__ = ["add_run_options", "run_and_print"]


def add_run_options(parser: Parser, repeats: str) -> None:
    """Add the number of repeats and threads, the store, and the options that locate data sets."""
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
    add_folder_options(parser)


def run_and_print(
    study: Study, scope: Scope, data: Mapping[str, tuple[Graphs, Any]], args: argparse.Namespace, command: str
) -> None:
    """Run what is missing on the data sets, and print the table of all results."""
    from treegram.study.data import check_data
    from treegram.study.report import brief_text
    from treegram.study.run import run_checked
    from treegram.study.store import Store
    from treegram.study.summary import summarize

    path = args.store or Path(f"{study.name}.sqlite")
    checked = check_data(data, study.protocol)  # before there is a store: unusable data leave no file behind
    with Store.open(path) as store:
        try:
            run_checked(study, scope, checked, store, command=command, n_jobs=args.jobs)
        except KeyboardInterrupt:
            print(f"Interrupted; finished folds are in {path}. Run the same command to resume.", file=sys.stderr)
            raise SystemExit(130) from None
        print(brief_text(summarize(store, study)))
    print(f"\nResults: {path}. For a page of tables and statistics: treegram report {path}")
