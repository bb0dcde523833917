"""The argument DATA: a data set by name, by folder, or one that needs no file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from treegram import DatasetError, Graphs, load_digits_graphs, load_tu, make_synthetic
from treegram._wording import suggest

__all__ = ["BUILT_IN", "add_data_arguments", "add_folder_arguments", "load_by_name", "load_data"]

BUILT_IN: dict[str, Callable[[], tuple[Graphs, NDArray[Any]]]] = {
    "digits": load_digits_graphs,
    "synthetic": partial(make_synthetic, random_state=0),
}


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """DATA itself, and where its files are."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="name of a data set of the TU collection (ENZYMES), a folder in its format (./mine), "
        "or one that needs no file: digits, synthetic (seed 0)",
    )
    add_folder_arguments(parser)


def add_folder_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the files of data sets are."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder that holds one folder per data set (default: TREEGRAM_DATA, else a cache folder)",
    )
    parser.add_argument("--no-download", action="store_true", help="use only data sets that are already there")


def load_data(args: argparse.Namespace) -> tuple[Graphs, NDArray[Any] | None]:
    """The graphs and targets that the arguments of :func:`add_data_arguments` name."""
    return load_by_name(args.data, args)


def load_by_name(name: str, args: argparse.Namespace) -> tuple[Graphs, NDArray[Any] | None]:
    """The graphs and targets of a data set, in the folders that :func:`add_folder_arguments` names."""
    if name in BUILT_IN:
        return BUILT_IN[name]()
    try:
        return load_tu(name, data_dir=args.data_dir, download=not args.no_download)
    except DatasetError as error:
        hint = suggest(name, BUILT_IN)
        if not hint or not str(error).startswith("Unknown"):  # a known name that fails for another reason is no slip
            raise
        raise DatasetError(str(error).rstrip(".") + hint) from error
