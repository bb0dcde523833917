"""``treegram evaluate``: compare kernels on your data by nested cross-validation, as the paper does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treegram
from treegram.cli._data import add_data_argument, load, select_target
from treegram.cli._kernels import (
    add_search_options,
    find_task,
    parameter_values,
    scales_by_kernel,
)
from treegram.cli._parser import Parser, at_least
from treegram.cli.reproduce import add_run_options, run_and_print
from treegram.study.protocol import StudyEntry

if TYPE_CHECKING:
    from treegram.graphs.graph_table import GraphTable

SCAFFOLD = "scaffold"  # as a value of --groups, and as the split of a study
EXAMPLES = (
    "treegram evaluate ENZYMES",
    "treegram evaluate ENZYMES --kernel oddcl --kernel wl --repeats 10",
    "treegram evaluate ./mine --kernel oddcl --repeats 1 --folds 5",
    "treegram evaluate ./energies --task regression --kernel wl",
    "treegram evaluate esol.csv --target logS --groups scaffold",
    "treegram evaluate ./mine --kernel oddcl --scale raw,standard --gamma 0.01,scale",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser, several=True)
    models = "classification with support vector machines, or regression with kernel ridge regression"
    add_search_options(parser, models)
    parser.add_argument(
        "--min-class-size",
        metavar="N",
        type=at_least(1),
        default=1,
        help="leave out the graphs of classes with fewer than N (default: 1, none)",
    )
    parser.add_argument(
        "--groups",
        metavar="COLUMN",
        help="keep graphs with the same value in this column together in the outer folds: all of them are trained or tested on; or "
        '"scaffold": molecules with the same Bemis-Murcko scaffold',
    )
    add_run_options(parser, repeats="10")


def run(args: argparse.Namespace) -> None:
    """Build a study and run it like any other."""
    from treegram.study.run import make_study, tuned

    scales_of = scales_by_kernel(args)
    # Stores and reports show the name of a data set, not its folder on this machine.
    sources = {_name(data): data for data in args.data}
    if len(sources) < len(args.data):
        raise ValueError(f"Data sets must have different names; got {', '.join(args.data)}.")
    split = {None: "", SCAFFOLD: SCAFFOLD}.get(args.groups, "groups")
    columns = [args.groups] if split == "groups" else []
    tables = {name: load(source, args, columns=columns, kernels=scales_of) for name, source in sources.items()}
    tasks = {name: find_task(table, target, args) for name, table in tables.items() for target in table.targets}
    study = make_study(
        list(sources),
        tasks,
        [StudyEntry(name, tuned(name, parameter_values(args, name), scales)) for name, scales in scales_of.items()],
        folds=args.folds,
        repeats=args.repeats or 10,
        min_class_size=args.min_class_size,
        split=split,
    )
    data = {name: _targets_and_groups(table, args) for name, table in tables.items()}
    run_and_print(study, study, data, args)


def _name(data: str) -> str:
    path = Path(data)
    return path.resolve().name if path.name in ("", "..") else path.name


def _targets_and_groups(table: GraphTable, args: argparse.Namespace) -> tuple[Any, ...]:
    """Return the graphs with a target, their targets, and with --groups the group of each."""
    import numpy as np

    graphs, y, ids = select_target(table)
    if y is None or args.groups is None:
        return graphs, y
    if table.transformer is None:
        raise ValueError(f"--groups is for molecules, proteins and tables, which {table.source} is not.")
    if args.groups != SCAFFOLD:  # a graph without a value is a group of its own
        values = enumerate(table.texts(args.groups))
        groups = np.array([f"graph {i}" if value is None else f"group {value}" for i, value in values])
    elif table.smiles is None:
        raise ValueError(f"--groups scaffold is for molecules, which {table.source} is not.")
    elif table.cells is not None and SCAFFOLD in table.cells:
        raise ValueError(
            f"--groups scaffold computes scaffolds, but {table.source} has a column of this name; rename it."
        )
    else:
        groups = treegram.scaffold_groups([table.smiles[row] for row in table.kept])
    return graphs, y, groups[ids].astype(str)
