"""``treegram predict``: predict new graphs with a saved model."""

from __future__ import annotations

import argparse
import csv
import inspect
import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import treegram
from treegram._core.files import replacing
from treegram._core.text import counted
from treegram.cli._data import LoadedInput, add_data_argument, add_model_argument, load_input, training_note
from treegram.cli._parser import Parser, add_output, check_output

__all__ = ["EXAMPLES", "add_arguments", "run"]

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
    add_data_argument(parser, for_model=True, with_targets=False)
    add_output(
        parser,
        "CSV file with the name of each graph (or else its number, from 0), the SMILES of molecules, the prediction, and the probability of each class or the standard deviation, where the "
        "model has them (default: stdout)",
        required=False,
    )
    parser.add_argument("--json", action="store_true", help="write JSON lines, one object per graph, instead of CSV")


def run(args: argparse.Namespace) -> None:
    """Predict and write; nothing is written unless everything can be."""
    if args.output is not None:
        check_output(args.output, force=args.force)
    from treegram.explanations.contributions import in_training

    loaded = load_input(args)
    columns = _names(loaded) | _predictions(loaded.model, loaded.graphs)
    text = _json_lines(columns) if args.json else _table(columns)
    if note := training_note(in_training(loaded.model, loaded.graphs)):
        print(f"treegram: note: {note}", file=sys.stderr)
    if args.output is None:
        sys.stdout.write(text)
        return
    with replacing(args.output) as file:
        file.write(text.encode())
    print(f"{args.output}: predictions of {args.model} for {counted(len(loaded.graphs), 'graph')} of {args.data}")


def _names(loaded: LoadedInput) -> dict[str, Any]:
    """Return the first columns: the name or else the number of each graph, and its SMILES if it is a molecule."""
    import numpy as np

    names = loaded.graphs.graph_names
    columns = {"graph": np.arange(len(loaded.graphs)) if names is None else names}
    return columns if loaded.smiles is None else columns | {"smiles": np.array(loaded.smiles, dtype=object)}


def _predictions(model: Any, graphs: treegram.Graphs) -> dict[str, Any]:
    """Return the other columns."""
    last = model[-1] if hasattr(model, "steps") else model
    if "return_std" in inspect.signature(last.predict).parameters:
        mean, std = model.predict(graphs, return_std=True)
        return {"prediction": mean, "std": std}
    columns = {"prediction": model.predict(graphs)}
    if hasattr(model, "predict_proba"):
        names = [f"probability of {name}" for name in model.classes_.tolist()]
        columns |= dict(zip(names, model.predict_proba(graphs).T, strict=True))
    return columns


def _rows(columns: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns.values()), strict=True)


def _json_lines(columns: dict[str, Any]) -> str:
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in _rows(columns))


def _table(columns: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (columns, *_rows(columns)):
        writer.writerow(map(_printable, row))
    return text.getvalue()


def _printable(value: Any) -> Any:
    """Return the value; escape a text with control characters, which a terminal would obey."""
    return ascii(value) if isinstance(value, str) and not value.isprintable() else value
