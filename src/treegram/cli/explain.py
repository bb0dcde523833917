"""``treegram explain``: a model file and a data set in, one page out that shows what made the predictions."""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path

import numpy as np

from treegram import write_explanation_page
from treegram._core.params import Whole
from treegram._core.text import counted
from treegram._core.types import Ints
from treegram.cli._data import add_data_arguments, load_data
from treegram.cli._kernels import read_word
from treegram.cli._model_file import add_model_argument, check_output, load_predictor
from treegram.cli._molecules import load_for_model
from treegram.cli._output import add_output_arguments
from treegram.cli._parser import Parser

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram explain mutag.tgm ./new -o page.html",
    "treegram explain mutag.tgm MUTAG --graphs 0-9,50 --spread -o page.html",
)
_LIMIT = 20


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    add_model_argument(parser)
    add_data_arguments(parser, for_model=True)
    add_output_arguments(parser, "one HTML page that needs no other file and no network")
    parser.add_argument(
        "--graphs", metavar="LIST", type=_ranges, help="numbers of graphs to explain, from 0, such as 0-19 or 3,7,12-15"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=partial(read_word, (Whole(1),)),
        help=f"explain the first N graphs at most (default: {_LIMIT}, or all of --graphs)",
    )
    parser.add_argument(
        "--spread",
        action="store_true",
        help="share what a tree adds among its nodes instead of giving it to its root (kernels of trees and colors)",
    )
    parser.add_argument(
        "--smiles",
        metavar="FILE",
        type=Path,
        help="text file with one SMILES per graph of DATA, its atoms in the order of the nodes: RDKit draws the molecules",
    )


def run(args: argparse.Namespace) -> None:
    """Explain and write; all that can be checked is checked before the computation."""
    check_output(args.output, overwrite=args.force)
    model = load_predictor(args.model)
    drawn = None if args.smiles is None else _read_smiles(args.smiles)
    molecules = load_for_model(model, args)
    if molecules is None:
        graphs, y = load_data(args)
    else:
        model, graphs, y, drawn = molecules.model, molecules.graphs, None, drawn or molecules.molecules
    chosen = _chosen(args, len(graphs))
    write_explanation_page(
        model,
        graphs,
        args.output,
        y=y,
        chosen=chosen,
        spread=args.spread,
        molecules=drawn,
        title=f"{args.data}, explained",
        source=f"treegram explain {args.model.name} {args.data}",
    )
    some = f"{len(chosen)} of {counted(len(graphs), 'graph')}"
    print(f"{args.output}: {some} of {args.data}, explained by {args.model}")


def _ranges(text: str) -> list[range]:
    """``0-3,7`` as ranges; each must be whole."""
    ranges = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,12})(?:-(\d{1,12}))?\s*", part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise argparse.ArgumentTypeError(f"must be numbers and ranges such as 0-19 or 3,7,12-15; got {text!r}")
        ranges.append(range(int(found[1]), int(found[2] or found[1]) + 1))
    return ranges


def _chosen(args: argparse.Namespace, n_graphs: int) -> Ints:
    if not n_graphs:
        raise ValueError(f"{args.data} has no graphs, so there is nothing to explain.")
    if args.graphs is None:
        return np.arange(min(n_graphs, args.limit or _LIMIT))
    last = max(one[-1] for one in args.graphs)
    if last >= n_graphs:
        raise ValueError(f"--graphs names graph {last}, but {args.data} has graphs 0 to {n_graphs - 1} only.")
    numbers = list(dict.fromkeys(number for one in args.graphs for number in one))
    return np.array(numbers[: args.limit])


def _read_smiles(path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text.") from error
    return [line.split()[0] if line.strip() else "" for line in lines]
