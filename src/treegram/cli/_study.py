"""What the commands that run a study share: which part, where the results go, and how a run ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from treegram._params import Whole
from treegram.cli._data import add_folder_arguments, load_by_name
from treegram.cli._kernels import read_word
from treegram.cli._parser import Parser
from treegram.experiments.run import Part, check_data, run_study
from treegram.experiments.store import Store
from treegram.experiments.study import Study
from treegram.experiments.summary import summarise, text_table

__all__ = ["add_run_arguments", "at_least", "run_and_tell"]

_THREADS = (Whole(1), Whole(None, -1))


def at_least(least: int) -> partial[int]:
    """What reads a whole number of at least this; for argparse."""
    return partial(read_word, (Whole(least),))


def add_run_arguments(parser: Parser, repeats: str) -> None:
    """The store, the number of repeats (with what it is by default) and threads, and where data sets are."""
    parser.add_argument(
        "--repeats", metavar="N", type=at_least(1), help=f"run the first N repeats (default: {repeats})"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=partial(read_word, _THREADS), default=-1, help="threads to use (default: -1, all)"
    )
    parser.add_argument(
        "--store",
        metavar="FILE",
        type=Path,
        help="SQLite file that keeps every finished fold; a run with the same file goes on where it was, and several "
        "may share one (default: the study's name with .sqlite)",
    )
    add_folder_arguments(parser)


def run_and_tell(
    study: Study, args: argparse.Namespace, part: Part, command: str, sources: Mapping[str, str] | None = None
) -> None:
    """Run what is missing, and print the table of all that is there.

    ``sources`` says for data sets that are not found under their names what to load.
    """
    path = args.store or Path(f"{study.name}.sqlite")
    # Before there is a store: a mistyped name, or data that cannot be used, leaves no file behind.
    data = {name: load_by_name((sources or {}).get(name, name), args) for name in part.of(study)[0]}
    for name, (graphs, y) in data.items():
        check_data(name, graphs, y, study.protocol)
    with Store.open(path) as store:
        store.put_study(study.name, study.text)
        run = store.begin_run(command)
        try:
            run_study(study, store, run=run.id, load=data.__getitem__, part=part, n_jobs=args.jobs)
        except KeyboardInterrupt:
            print(f"Stopped. What was finished is in {path}; the same command goes on from there.", file=sys.stderr)
            raise SystemExit(130) from None
        print(text_table(summarise(study, store)))
    print(f"\nResults: {path}. A page with all of it: treegram report {path}")
