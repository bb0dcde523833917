"""``treegram predict``: a model file and a data set in, a table of predictions out."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

from treegram import Graphs, load_model
from treegram._files import check_writable, replacing
from treegram._wording import counted
from treegram.cli._data import add_data_arguments, load_data
from treegram.cli._parser import Parser

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = ("treegram predict enzymes.tgm ./new -o predictions.csv", "treegram predict enzymes.tgm ./new | head")


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that treegram fit, or save_model, has written")
    add_data_arguments(parser)
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
        check_writable(args.output)
        if args.output.exists() and not args.force:
            raise FileExistsError(f"{args.output} exists already; give --force to replace it, or another name.")
    model = load_model(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{args.model} holds a {type(model).__name__}, which predicts nothing; fit a model with treegram fit."
        )
    graphs, _ = load_data(args)
    text = _table(*_predictions(model, graphs))
    if args.output is None:
        sys.stdout.write(text)
        return
    with replacing(args.output) as file:
        file.write(text.encode())
    print(f"{args.output}: predictions of {args.model} for {counted(len(graphs), 'graph')} of {args.data}")


def _predictions(model: Any, graphs: Graphs) -> tuple[list[str], list[Any]]:
    """The columns after the number of the graph: their names, and their values."""
    if hasattr(model, "log_marginal_likelihood_"):
        mean, std = model.predict(graphs, return_std=True)
        return ["prediction", "std"], [mean, std]
    columns = [model.predict(graphs)]
    if not hasattr(model, "predict_proba"):
        return ["prediction"], columns
    names = [f"probability of {name}" for name in model.classes_.tolist()]
    return ["prediction", *names], [*columns, *model.predict_proba(graphs).T]


def _table(names: list[str], columns: list[Any]) -> str:
    """The columns as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["graph", *map(_shown, names)])
    for i, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        writer.writerow([i, *map(_shown, row)])
    return text.getvalue()


def _shown(value: Any) -> Any:
    """The value; a text with characters that a terminal would obey is escaped."""
    return ascii(value) if isinstance(value, str) and not value.isprintable() else value
