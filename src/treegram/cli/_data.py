"""The argument DATA: a data set by name, by folder, a file of molecules, or one that needs no file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram import DatasetError, Graphs, load_digits_graphs, load_parquet, load_tu, make_synthetic
from treegram._core.text import suggest
from treegram.cli._molecules import (
    add_molecule_arguments,
    check_no_molecule_options,
    is_molecule_file,
    load_molecule_file,
)

__all__ = ["BUILT_IN", "add_data_arguments", "add_folder_arguments", "are_numbers", "load_by_name", "load_data"]

BUILT_IN: dict[str, Callable[[], tuple[Graphs, NDArray[Any]]]] = {
    "digits": load_digits_graphs,
    "synthetic": partial(make_synthetic, random_state=0),
}


def add_data_arguments(parser: argparse.ArgumentParser, *, for_model: bool = False) -> None:
    """DATA itself, where its files are, and how files of molecules are read, unless a model says that."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="name of a data set of the TU collection (ENZYMES), a folder in its format (./mine), a .parquet file, "
        "a file of molecules (./mine.csv), or one that needs no file: digits, synthetic (seed 0)",
    )
    add_folder_arguments(parser)
    add_molecule_arguments(parser, for_model=for_model)


def add_folder_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the files of data sets are."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder that holds one folder per data set (default: TREEGRAM_DATA, else a cache folder)",
    )
    parser.add_argument("--no-download", action="store_true", help="use only data sets that are already there")


def are_numbers(y: NDArray[Any]) -> bool:
    """Whether some target is no whole number, so that they are not names of classes."""
    return y.dtype.kind == "f" and bool((y != np.round(y)).any())


def load_data(args: argparse.Namespace) -> tuple[Graphs, NDArray[Any] | None]:
    """The graphs and targets that the arguments of :func:`add_data_arguments` name."""
    return load_by_name(args.data, args)


def load_by_name(name: str, args: argparse.Namespace) -> tuple[Graphs, NDArray[Any] | None]:
    """The graphs and targets of a data set, in the folders that :func:`add_folder_arguments` names."""
    if is_molecule_file(name):
        return load_molecule_file(name, args)
    check_no_molecule_options(name, args)
    if name in BUILT_IN:
        return BUILT_IN[name]()
    if name.endswith(".parquet"):
        return load_parquet(name)
    try:
        return load_tu(name, data_dir=args.data_dir, download=not args.no_download)
    except DatasetError as error:
        hint = suggest(name, BUILT_IN)
        if not hint or not str(error).startswith("Unknown"):  # a known name that fails for another reason is no slip
            raise
        raise DatasetError(str(error).rstrip(".") + hint) from error
