"""The arguments DATA and MODEL: data sets by name or folder, molecules, protein structures, tables, and saved models.

What DATA is follows from its name alone, see :func:`_kind`. Molecules, structures and tables become graphs by a transformer, which
``treegram fit`` saves with the model, so that new data are converted in the same way.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import treegram
from treegram._core.text import counted, listed, suggest
from treegram.cli._parser import Parser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from treegram._core.types import Ints

__all__ = [
    "SOURCES",
    "LoadedInput",
    "Task",
    "add_data_argument",
    "add_folder_options",
    "add_model_argument",
    "data_words",
    "has_real_targets",
    "load_data",
    "load_grouped",
    "load_input",
    "load_tasks",
    "training_note",
]

MOLECULE_FILES = (".smi", ".sdf", ".csv", ".tsv")
STRUCTURE_FILES = (".pdb", ".ent", ".cif", ".mmcif")
ATOM_LABELS = "element, degree, formal_charge, aromatic, hydrogens, hybridization, in_ring, chirality"
ATOM_ATTRIBUTES = (
    "partial_charge, mass, logp, refractivity, polar_surface, coordinates, centroid_distance, distance_profile"
)
BUILT_IN = ("digits", "synthetic")
SOURCES = (
    "a data set of the TU collection (ENZYMES), a folder in its format (./mine), a .parquet file, a file of molecules (mine.csv; - "
    "reads SMILES from standard input), a folder of PDB or mmCIF files, or a built-in data set: digits, synthetic; or no DATA, but "
    "--nodes and --edges"
)
KINDS = {
    "molecules": f"files of molecules ({', '.join(MOLECULE_FILES)})",
    "proteins": "protein structures (PDB or mmCIF)",
    "tables": "tables (--nodes and --edges)",
}


class _Option(NamedTuple):
    """An option of DATA: the kinds of data that it is for, and its description for argparse."""

    kinds: str
    metavar: str
    text: str
    kind: Any = str


def _names(text: str) -> list[str]:
    return [] if text.lower() == "none" else [name.strip() for name in text.split(",")]


def _pair(text: str) -> list[str]:
    names = _names(text)
    if len(names) != 2:
        raise argparse.ArgumentTypeError(f"expected two names such as source,target, got {text!r}")
    return names


_FLAG = "flag"
_FOR_MODELS = {
    "nodes": _Option("tables", "FILE", "table of nodes (.csv, .tsv, .parquet)", Path),
    "edges": _Option("tables", "FILE", "table of edges", Path),
    "graphs": _Option("proteins tables", "FILE", "table with one row per graph or protein structure", Path),
    "smiles_column": _Option("molecules", "NAME", "column of a table of molecules with SMILES (default: smiles)"),
    "skip_invalid": _Option(
        "molecules proteins", "", "skip invalid molecules, and residues without a CA atom, with a warning", _FLAG
    ),
}
_FOR_TARGETS = {
    "target": _Option(
        "molecules proteins tables",
        "NAME",
        "column of a table or property of an SDF file with the targets; number of the column in a .smi file; treegram fit takes several",
    ),
}
_FOR_GRAPHS = {
    "label": _Option(
        "molecules tables",
        "NAME,...",
        f"column with the label of nodes (default: label), or properties that make up the label of atoms: {ATOM_LABELS} (default: "
        "element)",
        _names,
    ),
    "attributes": _Option(
        "molecules proteins tables",
        "NAME,...",
        "columns that make up the vector of nodes (default: all others that hold numbers), or properties that make up the vector of "
        f"atoms: {ATOM_ATTRIBUTES} (default: none), or of residues: coordinates (default), invariant or none",
        _names,
    ),
    "edge_label": _Option("tables", "NAME", "column with the label of edges (default: label)"),
    "edge_attributes": _Option(
        "tables", "NAME,...", "columns that make up the vector of edges (default: all others that hold numbers)", _names
    ),
    "graph_attributes": _Option("tables", "NAME,...", "columns of --graphs that make up the vector of graphs", _names),
    "graph_column": _Option("proteins tables", "NAME", "column with the name of the graph (default: graph)"),
    "node_column": _Option("tables", "NAME", "column with the name of the node (default: node)"),
    "edge_columns": _Option(
        "tables", "A,B", "columns with the names of the two nodes of an edge (default: source,target)", _pair
    ),
    "directed": _Option("tables", "", "edges are directed", _FLAG),
    "hydrogens": _Option("molecules", "", "make all hydrogens nodes", _FLAG),
    "descriptors": _Option(
        "molecules",
        "",
        "add RDKit's 2D descriptors of each molecule, for --kernel auto (about 10 ms per molecule)",
        _FLAG,
    ),
    "contact": _Option(
        "proteins", "X", "distance in ångströms up to which residues are joined by an edge (default: 8)", float
    ),
    "chains": _Option("proteins", "NAME,...", "chains to use (default: all)", _names),
}
_OPTIONS = _FOR_MODELS | _FOR_TARGETS | _FOR_GRAPHS

# -------------------------------------------------------------------- options


def add_data_argument(
    parser: Parser, *, several: bool = False, for_model: bool = False, with_targets: bool = True
) -> None:
    """Add DATA with all its options; where a saved model reads it, the model knows how data become graphs."""
    parser.add_argument("data", metavar="DATA", nargs="*" if several else "?", help=SOURCES)
    add_folder_options(parser)
    options = _FOR_MODELS | (_FOR_TARGETS if with_targets else {}) | ({} if for_model else _FOR_GRAPHS)
    group = parser.add_argument_group("molecules, tables and protein structures")
    for name, option in options.items():
        if option.kind is _FLAG:
            group.add_argument(_flag(name), action="store_true", help=option.text)
        elif name == "target":
            group.add_argument(_flag(name), action="append", default=[], metavar=option.metavar, help=option.text)
        else:
            group.add_argument(_flag(name), type=option.kind, metavar=option.metavar, help=option.text)
    parser.checks.append(_check_source)


def add_folder_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that locate data sets."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder with one folder per data set (default: TREEGRAM_DATA, or else a cache folder)",
    )
    parser.add_argument("--no-download", action="store_true", help="use only data sets that are on this machine")


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """Add MODEL."""
    parser.add_argument("model", metavar="MODEL", type=Path, help="file written by treegram fit or save_model")


def _check_source(parser: Parser, args: argparse.Namespace) -> None:
    """Require DATA, or both --nodes and --edges, whose DATA is the name of the table of nodes."""
    if (args.nodes is None) != (args.edges is None):
        parser.error("--nodes and --edges need each other")
    if args.nodes is not None and args.data:
        parser.error("give DATA, or --nodes and --edges, but not both")
    if args.nodes is None and not args.data:
        parser.error("the following arguments are required: DATA")
    if args.nodes is not None:
        args.data = [str(args.nodes)] if isinstance(args.data, list) else str(args.nodes)


def _set_options(args: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(args, name, None) for name in _OPTIONS}
    return {name: value for name, value in given.items() if value not in (None, False, [])}


def data_words(args: argparse.Namespace, *, with_folders: bool = False) -> list[str]:
    """Return the options for molecules, tables and structures that are set, as words of a command line."""
    words: list[str] = []
    for name, value in _set_options(args).items():
        if name == "target":
            words += [word for target in value for word in (_flag(name), target)]
        elif value is True:
            words.append(_flag(name))
        else:
            text = value.name if isinstance(value, Path) and not with_folders else str(value)
            words += [_flag(name), ",".join(value) if isinstance(value, list) else text]
    return words


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


# -------------------------------------------------------------------- what DATA is


def _kind(name: str, args: argparse.Namespace) -> str:
    """Return "tables", "molecules", "proteins" or "graphs"."""
    path = Path(name)
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if getattr(args, "nodes", None) is not None:
        return "tables"
    if path.is_dir():
        return "proteins" if _structures(path) else "graphs"
    if name == "-" or (suffixes[-1:] and suffixes[-1] in MOLECULE_FILES):
        return "molecules"
    return "proteins" if set(suffixes) & set(STRUCTURE_FILES) else "graphs"


def _structures(path: Path) -> list[Path]:
    """Return the structure files of a folder, by name."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if set(map(str.lower, file.suffixes[-2:])) & set(STRUCTURE_FILES)]


def _transformer(kind: str, args: argparse.Namespace) -> Any:
    """Return the transformer that the options describe; None for graphs."""
    if kind == "molecules":
        return treegram.MoleculeGraphs(
            args.label or "element",
            args.attributes or None,
            hydrogens=args.hydrogens,
            descriptors="rdkit2d" if args.descriptors else None,
            smiles_column=args.smiles_column,
        )
    if kind == "proteins":
        attributes = "coordinates" if args.attributes is None else ",".join(args.attributes) or None
        missing = "skip" if args.skip_invalid else "error"
        contact = 8.0 if args.contact is None else args.contact
        return treegram.ProteinGraphs(attributes, contact=contact, chains=args.chains, missing=missing)
    if kind == "graphs":
        return None
    source, target = args.edge_columns or ("source", "target")
    return treegram.TableGraphs(
        ",".join(args.label or []) or None,
        attributes=args.attributes,
        edge_label=args.edge_label,
        edge_attributes=args.edge_attributes,
        graph_attributes=args.graph_attributes,
        graph=args.graph_column or "graph",
        node=args.node_column or "node",
        source=source,
        target=target,
        directed=args.directed,
    )


# -------------------------------------------------------------------- loading


class Task(NamedTuple):
    """A target, the graphs that have a value, their values, and the number of those that have none."""

    target: str
    graphs: treegram.Graphs
    y: NDArray[Any] | None
    n_missing: int = 0


class _Loaded(NamedTuple):
    graphs: treegram.Graphs
    targets: dict[str, tuple[Ints, NDArray[Any]]]  # the ids of the graphs that have a value, and the values
    transformer: Any
    smiles: list[str] | None = None
    molecules: list[Any] | None = None  # to draw; None where the nodes are not their atoms in order


def load_data(name: str, args: argparse.Namespace) -> tuple[treegram.Graphs, NDArray[Any] | None]:
    """Load the graphs and targets of a data set, without the graphs that have no value of --target."""
    if len(getattr(args, "target", [])) > 1:
        raise ValueError(f"--target is given {len(args.target)} times; only treegram fit takes several targets.")
    task = load_tasks(name, args)[0][0]
    if task.n_missing:
        warnings.warn(f"{counted(task.n_missing, 'graph')} without a value of {task.target} left out.", stacklevel=2)
    return task.graphs, task.y


def load_tasks(name: str, args: argparse.Namespace) -> tuple[list[Task], Any]:
    """Load the graphs with each of their targets, and return the transformer that made them; None for a data set."""
    import numpy as np

    kind = _kind(name, args)
    _check_options(kind, name, args)
    if kind == "graphs":
        return [Task("", *_load_graphs(name, args))], None
    loaded = _load(kind, name, args, _transformer(kind, args))
    if not loaded.targets:
        return [Task("", loaded.graphs, None)], loaded.transformer
    tasks = []
    for target, (ids, y) in loaded.targets.items():
        if not len(ids):
            raise ValueError(f"{name}: no graph has a value of {target!r}.")
        n_missing = len(loaded.graphs) - len(ids)
        tasks.append(Task(target, loaded.graphs[ids] if n_missing else loaded.graphs, np.asarray(y), n_missing))
    return tasks, loaded.transformer


def load_grouped(name: str, args: argparse.Namespace) -> tuple[treegram.Graphs, NDArray[Any] | None, NDArray[Any]]:
    """Load a data set with the group of each graph: its value in the column --groups, or the scaffold of the molecule."""
    import numpy as np

    kind = _kind(name, args)
    if kind == "graphs" or (kind != "molecules" and not args.groups):
        option, kinds = (
            ("--groups", "molecules, proteins and tables") if args.groups else ("--split scaffold", "molecules")
        )
        raise ValueError(f"{option} is for {kinds}, which {name} is not.")
    if len(args.target) != 1:
        raise ValueError(f"Groups need one --target; it is given {len(args.target)} times.")
    columns = [*args.target, *([args.groups] if args.groups else [])]
    with_groups = argparse.Namespace(**{**vars(args), "target": columns})
    _check_options(kind, name, with_groups)
    loaded = _load(kind, name, with_groups, _transformer(kind, args))
    if args.groups:
        ids, values = loaded.targets[args.groups]
        groups = np.array(
            [f"graph {i}" for i in range(len(loaded.graphs))], dtype=object
        )  # without a value: a group of its own
        groups[ids] = [f"group {value}" for value in values]
    else:
        groups = treegram.scaffold_groups(loaded.smiles)
    ids, y = loaded.targets[args.target[0]]
    if len(ids) < len(loaded.graphs):
        n_missing = len(loaded.graphs) - len(ids)
        warnings.warn(f"{counted(n_missing, 'graph')} without a value of {args.target[0]} left out.", stacklevel=2)
    return loaded.graphs[ids], np.asarray(y), groups[ids].astype(str)


def has_real_targets(y: NDArray[Any]) -> bool:
    """Return True if some target is not a whole number, so that targets cannot be classes."""
    return y.dtype.kind == "f" and bool((y != y.round()).any())


def _check_options(kind: str, name: str, args: argparse.Namespace) -> None:
    for option in _set_options(args):
        kinds = _OPTIONS[option].kinds.split()
        if kind not in kinds:
            texts = listed([KINDS[one] for one in kinds])
            hint = " Use --task to say whether targets are classes or numbers." if option == "target" else ""
            raise ValueError(f"{_flag(option)} is for {texts}, which {name} is not.{hint}")
    if kind in ("tables", "proteins") and getattr(args, "target", []) and args.graphs is None:
        raise ValueError("--target needs --graphs FILE, a table with one row per graph.")


def _load_graphs(name: str, args: argparse.Namespace) -> tuple[treegram.Graphs, NDArray[Any] | None]:
    if name == "digits":
        return treegram.load_digits_graphs()
    if name == "synthetic":
        return treegram.make_synthetic(random_state=0)
    if name.endswith(".parquet"):
        return treegram.load_parquet(name)
    try:
        return treegram.load_tu(name, data_dir=args.data_dir, download=not args.no_download)
    except treegram.DatasetError as error:
        hint = suggest(name, BUILT_IN)
        if not hint or not str(error).startswith("Unknown"):
            raise
        raise treegram.DatasetError(str(error).rstrip(".") + hint) from error


def _load(kind: str, name: str, args: argparse.Namespace, transformer: Any, *, is_new: bool = False) -> _Loaded:
    """Convert molecules, structures or tables; ``is_new`` if the transformer is that of a saved model."""
    if kind == "molecules":
        if name != "-":
            return _load_molecules(Path(name), args, transformer, is_new=is_new)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / ("stdin.csv" if args.smiles_column else "stdin.smi")
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            return _load_molecules(path, args, transformer, is_new=is_new)
    if kind == "proteins":
        graphs = transformer.transform(_structures(Path(name)))
        graph_column = getattr(args, "graph_column", None) or "graph"
    else:
        from treegram.cli._tables import choose_columns, read_graph_tables, used_columns

        tables = read_graph_tables(transformer, args.nodes, args.edges, args.graphs)
        transformer = transformer if is_new else choose_columns(transformer, tables)
        graphs = transformer.transform(used_columns(transformer, tables))
        graph_column = transformer.graph
    targets = {
        target: _table_target(args.graphs, graph_column, target, graphs) for target in getattr(args, "target", [])
    }
    return _Loaded(graphs, targets, transformer)


def _table_target(path: Path, graph_column: str, target: str, graphs: treegram.Graphs) -> tuple[Ints, NDArray[Any]]:
    import numpy as np

    from treegram.cli._tables import read_target

    found = read_target(path, graph_column, target, np.asarray(graphs.graph_names).tolist())
    ids = np.array([i for i, value in enumerate(found) if value is not None], dtype=np.int64)
    y = np.array([found[i] for i in ids])
    is_whole = y.dtype.kind == "f" and bool((y == y.round()).all())
    return ids, y.astype(np.int64) if is_whole else y


def _load_molecules(path: Path, args: argparse.Namespace, transformer: Any, *, is_new: bool) -> _Loaded:
    import numpy as np

    from treegram.graphs.molecule_files import read_records, read_targets
    from treegram.graphs.molecules import convert_file

    is_table = path.suffix.lower() in (".csv", ".tsv")
    column = args.smiles_column or (transformer.smiles_column if is_table else None)
    on_error = "skip" if args.skip_invalid else "raise"
    converted = convert_file(path, transformer, target=None, smiles_column=column, on_error=on_error)
    targets = {}
    for target in getattr(args, "target", []):
        all_records = list(read_records(path, column, target))
        records = [all_records[number] for number in converted.kept]
        ids = [i for i, record in enumerate(records) if not record.problem]
        targets[target] = np.array(ids, dtype=np.int64), read_targets([records[i] for i in ids])
    molecules = None
    if is_new and not transformer.hydrogens:
        all_records = list(read_records(path, column, None))
        molecules = [all_records[number].molecule for number in converted.kept]
    return _Loaded(converted.graphs(), targets, transformer, converted.smiles, molecules)


# -------------------------------------------------------------------- models


def training_note(in_training: NDArray[Any] | None) -> str:
    """Return a sentence about graphs that the model was fitted on, or "" if there are none or it is unknown."""
    if in_training is None or not in_training.any():
        return ""
    n_known = int(in_training.sum())
    were = "was" if n_known == 1 else "were"
    some = f"{n_known} of {counted(len(in_training), 'graph')} {were} in the training data"
    return f"{some}: how well the model predicts {'it' if n_known == 1 else 'them'} says little about new graphs."


class LoadedInput(NamedTuple):
    """A saved model and the graphs to apply it to."""

    model: Any  # without a first step that makes graphs
    graphs: treegram.Graphs
    y: NDArray[Any] | None
    smiles: list[str] | None = None
    molecules: list[Any] | None = None  # to draw; None where the nodes are not their atoms in order


def load_input(args: argparse.Namespace) -> LoadedInput:
    """Load MODEL and DATA."""
    model = _load_model(args.model)
    first = model[0] if hasattr(model, "steps") else None
    classes = {"MoleculeGraphs": "molecules", "ProteinGraphs": "proteins", "TableGraphs": "tables"}
    expected, kind = classes.get(type(first).__name__, "graphs"), _kind(args.data, args)
    _check_options(kind, args.data, args)
    if expected != kind and expected != "graphs":
        raise ValueError(f"{args.model} was fitted on {KINDS[expected]}; {args.data} is something else.")
    if expected != kind:
        raise ValueError(
            f"{args.model} takes graphs and does not know how {kind} become graphs. Fit it with treegram fit on {KINDS[kind]}, or save a "
            "pipeline that starts with MoleculeGraphs, ProteinGraphs or TableGraphs."
        )
    if kind == "graphs":
        graphs, y = _load_graphs(args.data, args)
        return LoadedInput(model, graphs, y)
    loaded = _load(kind, args.data, args, first, is_new=True)
    targets = [y for ids, y in loaded.targets.values() if len(ids) == len(loaded.graphs)]
    return LoadedInput(model[1:], loaded.graphs, targets[0] if targets else None, loaded.smiles, loaded.molecules)


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
