"""The arguments DATA and MODEL: data sets by name or folder, molecules, protein structures, tables, and saved models.

The kind of DATA follows from its name alone; see :func:`_input_type`. A transformer turns molecules, structures and tables
into graphs; ``treegram fit`` saves it with the model, so that new data are converted in the same way.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import treegram
from treegram._core.text import counted, listed
from treegram.cli._kernels import AUTO
from treegram.cli._parser import Parser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from treegram._core.types import Ints
    from treegram.graphs.graph_table import GraphTable

MOLECULE_FILES = (".smi", ".sdf", ".csv", ".tsv")
STRUCTURE_FILES = (".pdb", ".ent", ".cif", ".mmcif")
INPUTS = {
    "molecules": f"files of molecules ({', '.join(MOLECULE_FILES)})",
    "proteins": "protein structures (PDB or mmCIF)",
    "tables": "folders of tables (nodes.csv and edges.csv)",
    "graphs": "graphs (data sets and .parquet files)",
}
_TRANSFORMERS = {
    "molecules": "molecules.MoleculeGraphs",
    "proteins": "proteins.ProteinGraphs",
    "tables": "tables.TableGraphs",
}

# -------------------------------------------------------------------- options

DATA = (
    "a data set of the TU collection (ENZYMES), a folder in its format (./mine), a .parquet file, a file of molecules (mine.csv; - "
    "reads SMILES from standard input), a folder with the tables nodes.csv and edges.csv (or .tsv, .parquet), a folder of PDB or mmCIF "
    "files, or a built-in data set: digits, synthetic"
)
ATOM_LABELS = "element, degree, formal_charge, aromatic, hydrogens, hybridization, in_ring, chirality, pharmacophore"
ATOM_ATTRIBUTES = "partial_charge, mass, logp, refractivity, polar_surface, coordinates, centroid_distance"
LABEL = (
    "column with the label of nodes (default: label), or properties that make up the label of atoms: "
    f"{ATOM_LABELS} (default: element; with --kernel auto alone, element,pharmacophore)"
)
ATTRIBUTES = (
    "columns that make up the vector of nodes (default: all others that hold numbers), or properties that make up the vector of "
    f"atoms: {ATOM_ATTRIBUTES} (default: none), or of residues: invariant (default), coordinates or none"
)
EDGE_ATTRIBUTES = "columns that make up the vector of edges (default: all others that hold numbers)"
TARGET = "column of a table or property of an SDF file with the targets; number of the column in a .smi file; treegram fit takes several"
SKIP_INVALID = "skip invalid molecules, and residues without a CA atom, with a warning"
DESCRIPTORS = "add RDKit's 2D descriptors and ErG fingerprint of each molecule, about 5 ms for each (default: with --kernel auto, which uses them)"
CONTACT = "distance in ångströms up to which residues are joined by an edge (default: 8)"


class _Option(NamedTuple):
    """An option of DATA: its description for argparse, and by kind of data the transformer's parameter that it sets, if any."""

    details: dict[str, Any]
    parameters: dict[str, str]


def _value(metavar: str, text: str, read: Any = str, **parameters: str) -> _Option:
    return _Option({"metavar": metavar, "help": text, "type": read}, parameters)


def _flag(text: str, **parameters: str) -> _Option:
    return _Option({"action": "store_true", "help": text}, parameters)


def _names(text: str) -> str | list[str] | None:
    names = [name.strip() for name in text.split(",")]
    return None if text.lower() == "none" else names if len(names) > 1 else names[0]


_COMMON = {  # in the help of every command
    "target": _Option(
        {"action": "append", "metavar": "NAME", "help": TARGET}, {"molecules": "", "proteins": "", "tables": ""}
    ),
    "smiles_column": _value("NAME", "column with SMILES (default: smiles)", molecules="smiles_column"),
    "graphs": _value(
        "FILE",
        "table with one row per graph or protein structure (default: graphs.csv, .tsv or .parquet in the folder DATA)",
        Path,
        proteins="",
        tables="",
    ),
    "skip_invalid": _Option(
        {"action": "store_const", "const": "skip", "help": SKIP_INVALID}, {"molecules": "", "proteins": "missing"}
    ),
}
OPTIONS_BY_INPUT = {  # all commands that build graphs have these, and treegram info describes them
    "labels and vectors": {
        "label": _value("NAME,...", LABEL, _names, molecules="labels", tables="label"),
        "attributes": _value(
            "NAME,...", ATTRIBUTES, _names, molecules="attributes", proteins="attributes", tables="attributes"
        ),
    },
    "tables": {
        "graph_column": _value(
            "NAME", "column with the name of the graph (default: graph)", proteins="", tables="graph"
        ),
        "node_column": _value("NAME", "column with the name of the node (default: node)", tables="node"),
        "edge_from": _value("NAME", "column with the first node of an edge (default: source)", tables="source"),
        "edge_to": _value("NAME", "column with the second node of an edge (default: target)", tables="target"),
        "edge_label": _value("NAME", "column with the label of edges (default: label)", tables="edge_label"),
        "edge_attributes": _value("NAME,...", EDGE_ATTRIBUTES, _names, tables="edge_attributes"),
        "graph_attributes": _value(
            "NAME,...", "columns of the table of graphs that make up its vector", _names, tables="graph_attributes"
        ),
        "directed": _flag("edges are directed", tables="directed"),
    },
    "molecules": {
        "name_column": _value("NAME", "column or property with names of molecules (default: id or name)", molecules=""),
        "hydrogens": _flag("make all hydrogens nodes", molecules="hydrogens"),
        "descriptors": _Option({"action": argparse.BooleanOptionalAction, "help": DESCRIPTORS}, {"molecules": ""}),
    },
    "protein structures": {
        "contact": _value("X", CONTACT, float, proteins="contact"),
        "chains": _value("NAME,...", "chains to use (default: all)", _names, proteins="chains"),
    },
    "data sets": {
        "no_download": _flag("use only data sets that are on this computer", graphs=""),
    },
}
_OPTIONS = _COMMON | {name: option for options in OPTIONS_BY_INPUT.values() for name, option in options.items()}
_MORE = """\
treegram info --help lists more options of DATA by kind of input, such
as --label and --attributes; this command has them too."""


def add_data_argument(
    parser: Parser,
    *,
    several: bool = False,
    without: Collection[str] = (),
    for_model: bool = False,
    in_full: bool = False,
) -> None:
    """Add DATA with its options, except those in ``without``; a saved model knows how its data become graphs.

    Help lists the options for one kind of data only with ``in_full``.
    """
    parser.add_argument("data", metavar="DATA", nargs="+" if several else None, help=DATA)
    common = _COMMON | {"name_column": _OPTIONS["name_column"]} if for_model else _COMMON
    group = parser.add_argument_group("DATA", None if for_model or in_full else _MORE)
    add_options(group, {name: option for name, option in common.items() if name not in without})
    parser._action_groups.insert(1, parser._action_groups.pop())  # before the options of the command
    for title, options in ({} if for_model else OPTIONS_BY_INPUT).items():
        group = parser.add_argument_group(title)
        add_options(group, options)
        if not in_full:
            parser._action_groups.remove(group)  # help and the page of commands skip it


def add_options(group: argparse._ActionsContainer, options: dict[str, _Option]) -> None:
    """Add options; those that are not given are not in the arguments."""
    for name, option in options.items():
        group.add_argument(_spelled(name), default=argparse.SUPPRESS, **option.details)


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """Add MODEL."""
    parser.add_argument("model", metavar="MODEL", type=Path, help="file written by treegram fit or save_model")


def _spelled(name: str) -> str:
    return "--" + name.replace("_", "-")


# -------------------------------------------------------------------- what DATA is


def _input_type(name: str, args: argparse.Namespace) -> str:
    """Return "tables", "molecules", "proteins" or "graphs"; raise if an option does not apply to such data."""
    if name == "-" or Path(name).suffix.lower() in MOLECULE_FILES:
        input_type = "molecules"
    elif _find_table(name, "nodes"):
        input_type = "tables"
    else:
        input_type = "proteins" if _structures(Path(name)) else "graphs"
    for option, (_, parameters) in _OPTIONS.items():
        if option in args and input_type not in parameters:
            inputs = listed([INPUTS[other] for other in parameters])
            raise ValueError(f"{_spelled(option)} is for {inputs}, which {name} is not.")
    return input_type


def _find_table(folder: str, table: str) -> Path | None:
    """Return the table of nodes, edges or graphs in a folder, or None if there is none."""
    paths = (Path(folder, table + ending) for ending in (".csv", ".tsv", ".parquet"))
    return next(filter(Path.is_file, paths), None)


def _structures(path: Path) -> list[Path]:
    """Return the structure files of a folder, by name, or the file itself if it is one."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if set(map(str.lower, file.suffixes[-2:])) & set(STRUCTURE_FILES)]


# -------------------------------------------------------------------- loading


def load_data(name: str, args: argparse.Namespace) -> tuple[treegram.Graphs, NDArray[Any] | None]:
    """Load the graphs and targets of a data set, without the graphs that have no value of --target."""
    return select_target(load(name, args))[:2]


def select_target(table: GraphTable) -> tuple[treegram.Graphs, NDArray[Any] | None, Ints]:
    """Return the graphs that have a value of --target, the values, and the positions of these graphs among all of them."""
    import numpy as np

    if len(table.targets) > 1:
        raise ValueError(f"--target is given {len(table.targets)} times; only treegram fit takes several targets.")
    if not table.targets:
        return table.graphs, None, np.arange(len(table.graphs))
    [target] = table.targets
    return *table.with_target(target), table.values(target)[0]


def load(
    name: str,
    args: argparse.Namespace,
    columns: Sequence[str] = (),
    saved: Any = None,
    *,
    kernels: Collection[str] = (),
    on_error: str = "",
) -> GraphTable:
    """Read DATA once, with each --target and other columns.

    ``saved`` is the transformer of a model, if any; ``kernels`` names those that the graphs are for. With
    ``on_error="collect"``, a molecule or structure that cannot be read is a row with a problem; the default is what
    --skip-invalid says.
    """
    input_type = _input_type(name, args)
    if input_type == "graphs":
        return _load_graphs(name, args)
    from sklearn.base import clone

    from treegram.cli._tables import read_graph_tables, read_structures
    from treegram.graphs.cells import DELIMITERS, read_cells
    from treegram.graphs.graph_table import join_cells, make_table

    set_options = {option: details.parameters.get(input_type) for option, details in _OPTIONS.items() if option in args}
    values = {parameter: getattr(args, option) for option, parameter in set_options.items() if parameter}
    if input_type == "molecules" and saved is None:
        if getattr(args, "descriptors", AUTO in kernels):
            values |= {"descriptors": ["rdkit2d", "erg"], "n_jobs": getattr(args, "jobs", None)}
        if list(kernels) == [AUTO]:
            values.setdefault("labels", ["element", "pharmacophore"])
    module, _, name_of_class = _TRANSFORMERS[input_type].partition(".")
    new = getattr(import_module(f"treegram.graphs.{module}"), name_of_class)
    transformer = new() if saved is None else clone(saved)
    transformer.set_params(**values)
    targets = getattr(args, "target", [])
    if input_type == "molecules":
        from treegram.graphs.molecules import read_molecule_table

        path, data = Path(name), None
        if name == "-":
            path, data = Path("stdin.csv" if "smiles_column" in args else "stdin.smi"), sys.stdin.buffer.read()
        has_columns = path.suffix.lower() in DELIMITERS or "smiles_column" in args
        return read_molecule_table(
            path,
            transformer,
            targets=targets,
            others=columns,
            smiles_column=transformer.smiles_column if has_columns else None,
            name_column=getattr(args, "name_column", None),
            on_error=on_error or getattr(args, "skip_invalid", "raise"),
            data=data,
        )
    graph_file = getattr(args, "graphs", _find_table(name, "graphs"))
    cells = None if graph_file is None else read_cells(graph_file)
    node_file = _find_table(name, "nodes")
    if node_file is None:
        table = read_structures(name, _structures(Path(name)), transformer, is_collected=on_error == "collect")
        graph_column = getattr(args, "graph_column", "graph")
    else:
        graphs = read_graph_tables(transformer, node_file, _find_table(name, "edges"), cells)
        table, graph_column = make_table(name, graphs), transformer.graph
    table = replace(table, targets=targets, transformer=transformer)
    if cells is not None:
        return join_cells(table, cells, graph_column, [*targets, *columns])
    if targets or columns:
        raise ValueError(f"--target needs a table with one row per graph: --graphs FILE, or graphs.csv in {name}.")
    return table


def _load_graphs(name: str, args: argparse.Namespace) -> GraphTable:
    """Load a data set; in the TU format, graph labels are classes and graph attributes are numbers."""
    from treegram.graphs.graph_table import make_table

    task = "classification"
    y: NDArray[Any] | None
    if name == "digits":
        graphs, y = treegram.load_digits_graphs()
    elif name == "synthetic":
        graphs, y = treegram.make_synthetic(random_state=0)
    elif name.endswith(".parquet"):
        graphs, y = treegram.load_parquet(name)
        task = ""
    else:
        graphs, y = treegram.load_tu(name, download="no_download" not in args)
        task = "regression" if y is not None and y.dtype.kind == "f" else "classification"
    return make_table(name, graphs, targets=() if y is None else [""], task=task)


# -------------------------------------------------------------------- models


def load_model_and_data(args: argparse.Namespace, *, on_error: str = "") -> tuple[Any, GraphTable]:
    """Load MODEL and DATA; a first step of the model that builds graphs is applied to DATA and removed."""
    model = treegram.load_model(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{args.model} holds a {type(model).__name__}, which cannot predict; fit a model with treegram fit."
        )
    type_of_class = {path.partition(".")[2]: input_type for input_type, path in _TRANSFORMERS.items()}
    first_step = model[0] if hasattr(model, "steps") else None
    model_type, data_type = type_of_class.get(type(first_step).__name__, "graphs"), _input_type(args.data, args)
    if model_type != data_type:
        raise ValueError(
            f"{args.model} was fitted on {INPUTS[model_type]}, so it cannot be used for {INPUTS[data_type]} such as {args.data}."
        )
    return model if model_type == "graphs" else model[1:], load(args.data, args, saved=first_step, on_error=on_error)


def training_note(in_training: NDArray[Any] | None) -> str:
    """Return a sentence about graphs that the model was fitted on, or "" if there are none or it is unknown."""
    if in_training is None or not in_training.any():
        return ""
    count = int(in_training.sum())
    were, them = ("was", "it") if count == 1 else ("were", "them")
    sentence = f"{count} of {counted(len(in_training), 'graph')} {were} in the training data"
    return f"{sentence}: how well the model predicts {them} says little about new graphs."
