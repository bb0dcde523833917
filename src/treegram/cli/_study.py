"""What the commands that run a study share: which part, where the results go, and how a run ends."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from treegram.cli._data import add_folder_arguments, load_by_name
from treegram.cli._parser import Parser
from treegram.experiments.run import Part, run_study
from treegram.experiments.store import Store
from treegram.experiments.study import Study
from treegram.experiments.summary import summarise, text_table

__all__ = ["add_run_arguments", "run_and_tell"]


def add_run_arguments(parser: Parser) -> None:
    """The store, the number of repeats and threads, and where data sets are."""
    parser.add_argument("--repeats", metavar="N", type=int, help="run the first N repeats (default: all of the study)")
    parser.add_argument("--jobs", metavar="N", type=int, help="threads to use; -1: all (default: 1)")
    parser.add_argument(
        "--store",
        metavar="FILE",
        type=Path,
        help="SQLite file that keeps every finished fold; a run with the same file goes on where it was, and several "
        "may share one (default: the study's name with .sqlite)",
    )
    add_folder_arguments(parser)


def run_and_tell(study: Study, args: argparse.Namespace, part: Part, command: str) -> None:
    """Run what is missing, and print the table of all that is there."""
    path = args.store or Path(f"{study.name}.sqlite")
    load = partial(load_by_name, args=args)
    with Store.open(path) as store:
        store.put_study(study.name, study.text)
        run = store.begin_run(command)
        try:
            run_study(study, store, run=run.id, load=load, part=part, n_jobs=args.jobs)
        except KeyboardInterrupt:
            print(f"Stopped. What was finished is in {path}; the same command goes on from there.", file=sys.stderr)
            raise SystemExit(130) from None
        print(text_table(summarise(study, store)))
    print(f"\nResults: {path}. A page with all of it: treegram report {path}")
