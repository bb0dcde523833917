"""The arguments DATA and MODEL: data sets by name or folder, files of molecules, and saved models."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import treegram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "LoadedInput",
    "add_data_argument",
    "add_folder_options",
    "add_model_argument",
    "add_molecule_options",
    "has_real_targets",
    "load_data",
    "load_input",
    "molecule_words",
    "with_molecules",
]

MOLECULE_FILES = (".smi", ".sdf", ".csv", ".tsv")
ATOM_LABELS = "element, degree, formal_charge, aromatic, hydrogens, hybridization, in_ring, chirality"
ATOM_ATTRIBUTES = (
    "partial_charge, mass, logp, refractivity, polar_surface, coordinates, centroid_distance, distance_profile"
)
BUILT_IN = ("digits", "synthetic")
SOURCES = (
    "a data set of the TU collection (ENZYMES), a folder in its format (./mine), a .parquet file, a file of molecules (./mine.csv), "
    "or a built-in data set: digits, synthetic"
)

# -------------------------------------------------------------------- options


def add_data_argument(parser: argparse.ArgumentParser, *, for_model: bool = False) -> None:
    """Add DATA with all its options; where a saved model reads it, the model knows how molecules become graphs."""
    parser.add_argument("data", metavar="DATA", help=SOURCES)
    add_folder_options(parser)
    add_molecule_options(parser, for_model=for_model)


def add_folder_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that locate data sets."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder with one folder per data set (default: TREEGRAM_DATA, or else a cache folder)",
    )
    parser.add_argument("--no-download", action="store_true", help="use only data sets that are on this machine")


def add_molecule_options(parser: argparse.ArgumentParser, *, for_model: bool = False) -> None:
    """Add the options for files of molecules."""
    group = parser.add_argument_group(f"files of molecules ({', '.join(MOLECULE_FILES)})")
    default = "the model's, or smiles" if for_model else "smiles"
    group.add_argument("--smiles-column", metavar="NAME", help=f"column of a table with SMILES (default: {default})")
    group.add_argument("--skip-invalid", action="store_true", help="skip invalid molecules, with a warning")
    if for_model:
        return
    group.add_argument(
        "--target",
        metavar="NAME",
        help="column of a table or property of an SDF file with the targets; number of the column in a .smi file",
    )
    group.add_argument(
        "--atom-labels",
        metavar="NAME,...",
        type=_names,
        help=f"properties that make up the label of an atom: {ATOM_LABELS} (default: element)",
    )
    group.add_argument(
        "--atom-attributes",
        metavar="NAME,...",
        type=_names,
        help=f"properties that make up the vector of an atom: {ATOM_ATTRIBUTES} (default: none)",
    )
    group.add_argument("--hydrogens", action="store_true", help="make all hydrogens nodes")


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """Add MODEL."""
    parser.add_argument("model", metavar="MODEL", type=Path, help="file written by treegram fit or save_model")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def molecule_words(args: argparse.Namespace) -> list[str]:
    """Return the options for files of molecules that are set, as words of a command line."""
    words: list[str] = []
    for name in ("smiles_column", "target", "atom_labels", "atom_attributes", "hydrogens", "skip_invalid"):
        if value := getattr(args, name, None):
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, ",".join(value) if isinstance(value, list) else value]
    return words


# -------------------------------------------------------------------- data sets


def load_data(name: str, args: argparse.Namespace) -> tuple[treegram.Graphs, NDArray[Any] | None]:
    """Load the graphs and targets of a data set."""
    if _is_molecule_file(name):
        options = _molecule_graphs(args).get_params()
        return treegram.load_molecules(name, target=args.target, on_error=_on_error(args), **options)
    for word in molecule_words(args):
        hint = " Use --task to say whether targets are classes or numbers." if word == "--target" else ""
        raise ValueError(f"{word} is for files of molecules ({', '.join(MOLECULE_FILES)}), which {name} is not.{hint}")
    if name == "digits":
        return treegram.load_digits_graphs()
    if name == "synthetic":
        return treegram.make_synthetic(random_state=0)
    if name.endswith(".parquet"):
        return treegram.load_parquet(name)
    try:
        return treegram.load_tu(name, data_dir=args.data_dir, download=not args.no_download)
    except treegram.DatasetError as error:
        from treegram._core.text import suggest

        hint = suggest(name, BUILT_IN)
        if not hint or not str(error).startswith("Unknown"):
            raise
        raise treegram.DatasetError(str(error).rstrip(".") + hint) from error


def has_real_targets(y: NDArray[Any]) -> bool:
    """Return True if some target is not a whole number, so that targets cannot be classes."""
    return y.dtype.kind == "f" and bool((y != y.round()).any())


def _is_molecule_file(name: str) -> bool:
    path = Path(name)
    return path.suffix.lower() in MOLECULE_FILES and not path.is_dir()


def _molecule_graphs(args: argparse.Namespace) -> treegram.MoleculeGraphs:
    return treegram.MoleculeGraphs(
        labels=args.atom_labels or "element",
        attributes=args.atom_attributes,
        hydrogens=args.hydrogens,
        smiles_column=args.smiles_column,
    )


def _on_error(args: argparse.Namespace) -> str:
    return "skip" if args.skip_invalid else "raise"


# -------------------------------------------------------------------- models


class LoadedInput(NamedTuple):
    """A saved model and the graphs to apply it to."""

    model: Any  # without a first step that turns molecules into graphs
    graphs: treegram.Graphs
    y: NDArray[Any] | None
    numbers: NDArray[np.int64]  # of the graphs in the file: invalid molecules may have been skipped
    molecules: list[Any] | None  # to draw; None where the nodes are not their atoms in order


def with_molecules(model: Any, args: argparse.Namespace) -> Any:
    """Return the model; if DATA is a file of molecules, put the step before it that turns molecules into graphs."""
    from sklearn.pipeline import Pipeline

    if not _is_molecule_file(args.data):
        return model
    return Pipeline([("moleculegraphs", _molecule_graphs(args)), (type(model).__name__.lower(), model)])


def load_input(args: argparse.Namespace) -> LoadedInput:
    """Load MODEL and DATA."""
    import numpy as np

    model = _load_model(args.model)
    first = model[0] if hasattr(model, "steps") else None
    takes_molecules = isinstance(first, treegram.MoleculeGraphs)
    if takes_molecules and _is_molecule_file(args.data):
        return _load_molecules(model, args)
    if takes_molecules:
        raise ValueError(
            f"{args.model} takes molecules; {args.data} is not a file of molecules ({', '.join(MOLECULE_FILES)})."
        )
    if _is_molecule_file(args.data):
        raise ValueError(
            f"{args.model} takes graphs and does not know how molecules become graphs. Fit it with treegram fit on a file of "
            "molecules, or save a pipeline that starts with MoleculeGraphs."
        )
    graphs, y = load_data(args.data, args)
    return LoadedInput(model, graphs, y, np.arange(len(graphs)), None)


def _load_model(path: Path) -> Any:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    model = treegram.load_model(path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which cannot predict; fit a model with treegram fit.")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"{path} holds a {type(model).__name__} that is not fitted; fit it before saving.") from None
    return model


def _load_molecules(model: Any, args: argparse.Namespace) -> LoadedInput:
    import numpy as np

    from treegram.graphs.molecule_files import read_records
    from treegram.graphs.molecules import convert_file

    path, first = Path(args.data), model[0]
    is_table = path.suffix.lower() in (".csv", ".tsv")
    column = args.smiles_column or (first.smiles_column if is_table else None)
    converted = convert_file(path, first, target=None, smiles_column=column, on_error=_on_error(args))
    molecules = None
    if not first.hydrogens:
        records = list(read_records(path, column, None))
        molecules = [records[number].molecule for number in converted.kept]
    return LoadedInput(model[1:], converted.graphs(), None, np.array(converted.kept), molecules)
