"""``treegram predict``: a model file and a data set in, a table of predictions out."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram import GraphGP, Graphs
from treegram._core.files import replacing
from treegram._core.text import counted
from treegram.cli._data import add_data_arguments, load_data
from treegram.cli._model_file import add_model_argument, check_output, load_predictor
from treegram.cli._molecules import load_for_model
from treegram.cli._parser import Parser
from treegram.explanations.contributions import split_model

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram predict enzymes.tgm ./new -o predictions.csv",
    "treegram predict enzymes.tgm ./new | head",
    "treegram predict molecules.tgm new.csv -o predictions.csv",
)


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    add_model_argument(parser)
    add_data_arguments(parser, for_model=True)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="CSV file to write: graph (numbered from 0), prediction, and either a probability for each class or the standard "
        "deviation of a new target, where the model has them (default: stdout)",
    )
    parser.add_argument("--force", action="store_true", help="replace the file if there is one")


def run(args: argparse.Namespace) -> None:
    """Predict and write; nothing is written unless all of it can be."""
    if args.output is not None:
        check_output(args.output, overwrite=args.force)
    model = load_predictor(args.model)
    molecules = load_for_model(model, args)
    if molecules is not None:
        model, graphs, numbers = molecules[:3]
    else:
        graphs, _ = load_data(args)
        numbers = np.arange(len(graphs))
    text = _table(numbers, *_predictions(model, graphs))
    if args.output is None:
        sys.stdout.write(text)
        return
    with replacing(args.output) as file:
        file.write(text.encode())
    print(f"{args.output}: predictions of {args.model} for {counted(len(graphs), 'graph')} of {args.data}")


def _predictions(model: Any, graphs: Graphs) -> tuple[list[str], list[Any]]:
    """The columns after the number of the graph: their names, and their values."""
    if isinstance(split_model(model)[-1], GraphGP):
        mean, std = model.predict(graphs, return_std=True)
        return ["prediction", "std"], [mean, std]
    columns = [model.predict(graphs)]
    if not hasattr(model, "predict_proba"):
        return ["prediction"], columns
    names = [f"probability of {name}" for name in model.classes_.tolist()]
    return ["prediction", *names], [*columns, *model.predict_proba(graphs).T]


def _table(numbers: NDArray[np.int64], names: list[str], columns: list[Any]) -> str:
    """The numbers of the graphs and the columns as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["graph", *map(_shown, names)])
    for i, *row in zip(*(column.tolist() for column in (numbers, *columns)), strict=True):
        writer.writerow([i, *map(_shown, row)])
    return text.getvalue()


def _shown(value: Any) -> Any:
    """The value; a text with characters that a terminal would obey is escaped."""
    return ascii(value) if isinstance(value, str) and not value.isprintable() else value
