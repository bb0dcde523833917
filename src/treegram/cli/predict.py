"""``treegram predict``: predict new graphs with a saved model."""

from __future__ import annotations

import argparse
import csv
import inspect
import io
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import treegram
from treegram._core.files import replacing
from treegram._core.text import counted
from treegram.cli._data import add_data_argument, add_model_argument, load_model_and_data, training_note
from treegram.cli._parser import Parser, add_output, check_output

EXAMPLES = (
    "treegram predict enzymes.tgm ./new -o predictions.csv",
    "treegram predict enzymes.tgm ./new | head",
    "treegram predict molecules.tgm new.csv -o predictions.csv",
    "echo CCO ethanol | treegram predict molecules.tgm - --json",
    "treegram predict own.tgm --nodes nodes.csv --edges edges.csv",
)


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:  # noqa: ARG001 (the signature of all commands)
    """Add the arguments of the command."""
    add_model_argument(parser)
    add_data_argument(parser, without=("target", "skip_invalid"), for_model=True)
    add_output(
        parser,
        "CSV file with the name of each graph (or else its number, from 0), the SMILES of molecules, the prediction, and the "
        "probability of each class or the standard deviation, where the model has them (default: stdout)",
        required=False,
    )
    parser.add_argument("--json", action="store_true", help="write JSON lines, one object per graph, instead of CSV")


def run(args: argparse.Namespace) -> None:
    """Predict and write; nothing is written unless everything can be."""
    if args.output is not None:
        check_output(args.output, force=args.force)
    from treegram.explanations.contributions import in_training

    model, loaded = load_model_and_data(args)
    names = loaded.graphs.graph_names
    columns = {"graph": list(range(len(loaded.graphs))) if names is None else names.tolist()}
    if loaded.smiles is not None:
        columns["smiles"] = loaded.smiles
    columns |= _predictions(model, loaded.graphs)
    rows = list(zip(*columns.values(), strict=True))
    if args.json:
        text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    else:
        with io.StringIO() as table:
            csv.writer(table, lineterminator="\n").writerows(map(_printable, [columns, *rows]))
            text = table.getvalue()
    if note := training_note(in_training(model, loaded.graphs)):
        print(f"treegram: note: {note}", file=sys.stderr)
    if args.output is None:
        sys.stdout.write(text)
        return
    with replacing(args.output) as file:
        file.write(text.encode())
    print(f"{args.output}: predictions of {args.model} for {counted(len(loaded.graphs), 'graph')} of {args.data}")


def _predictions(model: Any, graphs: treegram.Graphs) -> dict[str, list[Any]]:
    last = model[-1] if hasattr(model, "steps") else model
    if "return_std" in inspect.signature(last.predict).parameters:
        mean, std = model.predict(graphs, return_std=True)
        return {"prediction": mean.tolist(), "std": std.tolist()}
    columns = {"prediction": model.predict(graphs).tolist()}
    if hasattr(model, "predict_proba"):
        names = [f"probability of {name}" for name in model.classes_.tolist()]
        columns |= zip(names, model.predict_proba(graphs).T.tolist(), strict=True)
    return columns


def _printable(row: Iterable[Any]) -> list[Any]:
    """Return the row; escape texts with control characters, which a terminal would obey."""
    return [ascii(value) if isinstance(value, str) and not value.isprintable() else value for value in row]
