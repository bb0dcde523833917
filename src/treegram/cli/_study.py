"""What the commands that run a study share: how much of it, where the results go, and how a run ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from treegram import Graphs
from treegram._core.params import Whole
from treegram.cli._cluster import add_cluster_arguments, on_cluster
from treegram.cli._data import add_folder_arguments
from treegram.cli._kernels import read_word
from treegram.cli._parser import Parser
from treegram.study.data import check_data
from treegram.study.protocol import Scope, Study
from treegram.study.report import brief_blocks, render_text
from treegram.study.run import run_checked
from treegram.study.store import Store
from treegram.study.summary import summarize

__all__ = ["add_run_arguments", "at_least", "run_and_print"]

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
        help="SQLite file that keeps every finished fold; a run with the same file continues where it stopped, and several "
        "may share one (default: the study's name with .sqlite)",
    )
    add_cluster_arguments(parser)
    add_folder_arguments(parser)


def run_and_print(
    study: Study, scope: Scope, args: argparse.Namespace, command: str, loaded: Mapping[str, tuple[Graphs, Any]]
) -> None:
    """Run what is missing on the data sets, which are given by name, and print the table of all that is there."""
    path = args.store or Path(f"{study.name}.sqlite")
    # Before there is a store: data that cannot be used leaves no file behind.
    data = check_data(loaded, study.protocol)
    with Store.open(path) as store:
        try:
            with on_cluster(args):
                run_checked(study, scope, data, store, command=command, n_jobs=args.jobs)
        except KeyboardInterrupt:
            print(f"Stopped. What was finished is in {path}; the same command continues from there.", file=sys.stderr)
            raise SystemExit(130) from None
        print(render_text(brief_blocks(summarize(store, study))))
    print(f"\nResults: {path}. A page with all of it: treegram report {path}")
