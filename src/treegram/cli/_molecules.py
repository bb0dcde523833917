"""Files of molecules as DATA: their options, how they are read, and models that remember how."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treegram import Graphs, MoleculeGraphs, load_molecules
from treegram._core.params import allowed_values, check_value
from treegram.graphs.molecule_files import DEFAULT_COLUMN, SUFFIXES, read_entries
from treegram.graphs.molecules import convert_file

__all__ = [
    "add_molecule_arguments",
    "check_no_molecule_options",
    "given_options",
    "is_molecule_file",
    "load_for_model",
    "load_molecule_file",
    "with_molecules",
]

_TABLES = (".csv", ".tsv")


def add_molecule_arguments(parser: argparse.ArgumentParser, *, for_model: bool = False) -> None:
    """The options of files of molecules; a saved model knows most of them."""
    group = parser.add_argument_group(f"files of molecules ({', '.join(SUFFIXES)})")
    group.add_argument(
        "--smiles-column",
        metavar="NAME",
        help="column of a table with the SMILES "
        + (f"(default: as in treegram fit, or {DEFAULT_COLUMN})" if for_model else f"(default: {DEFAULT_COLUMN})"),
    )
    group.add_argument(
        "--skip-bad", action="store_true", help="leave out molecules that cannot be used, with a warning that says why"
    )
    if for_model:
        return
    group.add_argument(
        "--target",
        metavar="NAME",
        help="column of a table or property of an SDF file with the targets; number of the column in a .smi file without names",
    )
    for option, what in (("labels", "label"), ("attributes", "vector")):
        names = str(allowed_values(MoleculeGraphs)[option][0]).partition(" or a list")[0].replace("'", "")
        group.add_argument(
            f"--atom-{option}",
            metavar="NAME,NAME,...",
            type=partial(_read_names, option),
            help=f"what the {what} of an atom says: {names}, or several with commas between (default: "
            + ("element)" if option == "labels" else "no vector)"),
        )
    group.add_argument("--hydrogens", action="store_true", help="make all hydrogens nodes, too")


def _read_names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    try:
        check_value("it", "", names, allowed_values(MoleculeGraphs)[option][:1])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).replace("it of  ", "names ").rstrip(".")) from error
    return names


def is_molecule_file(name: str) -> bool:
    """Whether the name is that of a file of molecules, there or not."""
    path = Path(name)
    return path.suffix.lower() in SUFFIXES and not path.is_dir()


def given_options(args: argparse.Namespace) -> list[str]:
    """The options of molecules that were given, as words."""
    words: list[str] = []
    for name in ("smiles_column", "target", "atom_labels", "atom_attributes", "hydrogens", "skip_bad"):
        value = getattr(args, name, None)
        if value:
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, ",".join(value) if isinstance(value, list) else value]
    return words


def check_no_molecule_options(name: str, args: argparse.Namespace) -> None:
    """Raise if options of molecules are given for other data: nothing is ignored in silence."""
    for word in given_options(args)[:1]:
        hint = ". Whether targets are classes or numbers is said with --task" if word == "--target" else ""
        raise ValueError(f"{word} is for files of molecules ({', '.join(SUFFIXES)}), which {name} is not{hint}.")


def _maker(args: argparse.Namespace) -> MoleculeGraphs:
    return MoleculeGraphs(
        labels=getattr(args, "atom_labels", None) or "element",
        attributes=getattr(args, "atom_attributes", None),
        hydrogens=getattr(args, "hydrogens", False),
        smiles_column=getattr(args, "smiles_column", None),
    )


def _on_error(args: argparse.Namespace) -> str:
    return "skip" if getattr(args, "skip_bad", False) else "raise"


def load_molecule_file(path: str, args: argparse.Namespace) -> tuple[Graphs, NDArray[Any] | None]:
    """The graphs and targets of a file of molecules, as the options of :func:`add_molecule_arguments` say."""
    options = _maker(args).get_params()
    column, target = options.pop("smiles_column"), getattr(args, "target", None)
    return load_molecules(path, target=target, smiles_column=column, on_error=_on_error(args), **options)


def with_molecules(model: Any, args: argparse.Namespace) -> Any:
    """The fitted model, as a pipeline that takes molecules where DATA was a file of them."""
    from sklearn.pipeline import Pipeline

    if not is_molecule_file(args.data):
        return model
    return Pipeline([("moleculegraphs", _maker(args)), (type(model).__name__.lower(), model)])


class ForModel(NamedTuple):
    """What a model that starts with MoleculeGraphs is asked about: the rest of it, graphs, their numbers, and the molecules."""

    model: Any
    graphs: Graphs
    numbers: NDArray[np.int64]
    molecules: list[Any] | None  # None where their atoms are not the nodes, in the same order


def load_for_model(model: Any, args: argparse.Namespace) -> ForModel | None:
    """The molecules of DATA as the first step of a model takes them; None for a model that takes graphs."""
    first = model[0] if hasattr(model, "steps") else None
    is_file = is_molecule_file(args.data)
    if isinstance(first, MoleculeGraphs) and is_file:
        is_table = Path(args.data).suffix.lower() in _TABLES
        column = args.smiles_column or (first.smiles_column if is_table else None)
        found = convert_file(args.data, first, target=None, smiles_column=column, on_error=_on_error(args))
        rest, kept = model[1:], set(found.kept)
        entries = enumerate(read_entries(Path(args.data), column, None))
        molecules = None if first.hydrogens else [entry.molecule for i, entry in entries if i in kept]
        return ForModel(rest, found.graphs(), np.array(found.kept), molecules)
    if isinstance(first, MoleculeGraphs):
        raise ValueError(
            f"{args.model} takes molecules; {args.data} is not a file of molecules ({', '.join(SUFFIXES)})."
        )
    if is_file:
        raise ValueError(
            f"{args.model} takes graphs and does not know how molecules become graphs. Fit it with treegram fit on a file of "
            "molecules, or save a pipeline that starts with MoleculeGraphs."
        )
    return None
