"""``treegram predict``: predict new graphs with a saved model; each row of the input has a row in the output."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from typing import TYPE_CHECKING, Any

from treegram._core.text import counted
from treegram.cli._data import add_data_argument, add_model_argument, load_model_and_data, training_note
from treegram.cli._parser import Parser, add_output, check_output, csv_text, write_output

if TYPE_CHECKING:
    import treegram
    from treegram.graphs.graph_table import GraphTable

EXAMPLES = (
    "treegram predict enzymes.tgm ./new -o predictions.csv",
    "treegram predict enzymes.tgm ./new | head",
    "treegram predict molecules.tgm new.csv --name-column CAS -o predictions.csv",
    "echo CCO ethanol | treegram predict molecules.tgm - --json",
    "treegram predict own.tgm ./new_tables",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add_model_argument(parser)
    add_data_argument(parser, without=("target", "skip_invalid"), for_model=True)
    add_output(
        parser,
        "CSV file with a row for each row of the input: the name of the graph (or else its number, from 0), the SMILES of molecules, the "
        "prediction, the probability of each class or the standard deviation; and, where the model has them: the most similar training "
        "graph, its similarity, the percentage of training graphs that are less similar to all others, the shares of nodes whose label "
        "or surroundings no training graph has, and whether the graph is inside, at the edge or outside of the training data; and the "
        "problem, if some row could not be read (default: stdout)",
        required=False,
    )
    parser.add_argument("--json", action="store_true", help="write JSON lines, one object per row, instead of CSV")
    parser.add_argument(
        "--coverage",
        metavar="X",
        type=_share,
        help="add the interval, or the classes, that contain the truth with this probability, such as 0.9",
    )


def _share(text: str) -> float:
    try:
        if 0 < float(text) < 1:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")


def run(args: argparse.Namespace) -> None:
    """Predict and write; nothing is written unless everything can be."""
    check_output(args.output, force=args.force)
    from treegram.explanations.contributions import in_training

    model, table = load_model_and_data(args, on_error="collect")
    columns = _columns(table, _predictions(model, table.graphs, args.coverage) if len(table.graphs) else {})
    rows = list(zip(*columns.values(), strict=True))
    if args.json:
        text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    else:
        text = csv_text([columns, *rows])
    if n_problems := len(rows) - len(table.graphs):
        has_no = "has no prediction" if n_problems == 1 else "have no predictions"
        _note(f"{n_problems:,} of {counted(len(rows), 'row')} {has_no}; the column problem says why.")
    if n_new := sum(bool(share) for share in columns.get("unseen labels", [])):
        have = "has a node" if n_new == 1 else "have nodes"
        _note(f"{n_new:,} of {counted(len(table.graphs), 'graph')} {have} with a label that no training graph has.")
    if note := training_note(in_training(model, table.graphs)):
        _note(note)
    contents = f"predictions of {args.model} for {counted(len(table.graphs), 'graph')} of {args.data}"
    write_output(text, args.output, contents)


def _note(text: str) -> None:
    print(f"treegram: note: {text}", file=sys.stderr)


def _columns(table: GraphTable, predictions: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the columns of the output, with a value for each row of the input."""
    n_rows = len(table.where)
    columns: dict[str, list[Any]] = {"graph": [row if name is None else name for row, name in enumerate(table.names)]}
    if table.smiles is not None:
        columns["smiles"] = table.smiles
    for name, values in ({"prediction": []} | predictions).items():
        columns[name] = [None] * n_rows
        for row, value in zip(table.kept.tolist(), values, strict=True):
            columns[name][row] = value
    return columns | ({"problem": table.problems} if any(table.problems) else {})


def _predictions(model: Any, graphs: treegram.Graphs, coverage: float | None) -> dict[str, list[Any]]:
    *steps, model = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    for step in steps:
        graphs = step.transform(graphs)
    if "return_std" in inspect.signature(model.predict).parameters:
        mean, std = model.predict(graphs, return_std=True)
        columns = {"prediction": mean.tolist(), "std": std.tolist()}
    else:
        columns = {"prediction": model.predict(graphs).tolist()}
    if hasattr(model, "predict_proba"):
        names = [f"probability of {name}" for name in model.classes_.tolist()]
        columns |= zip(names, model.predict_proba(graphs).T.tolist(), strict=True)
    if hasattr(model, "nearest_similarities_"):  # what `applicability` needs: not in files of older versions
        judged = model.applicability(graphs)
        columns["nearest"] = judged.nearest.tolist() if judged.nearest_names is None else judged.nearest_names
        for name in ("similarity", "percentile", "unseen_labels", "unseen_colors", "verdict"):
            columns[name.replace("_", " ")] = getattr(judged, name).tolist()
    if coverage is None:
        return columns
    if hasattr(model, "prediction_interval"):
        lower, upper = model.prediction_interval(graphs, coverage).T.tolist()
        return columns | {"lower": lower, "upper": upper}
    sets = model.prediction_set(graphs, coverage)
    return columns | {"classes": [", ".join(map(str, model.classes_[is_likely])) for is_likely in sets]}
