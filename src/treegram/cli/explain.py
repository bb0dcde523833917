"""``treegram explain``: write a page that shows which nodes drive the predictions of a saved model."""

from __future__ import annotations

import argparse
from pathlib import Path

import treegram
from treegram._core.text import counted
from treegram.cli._data import add_data_argument, add_model_argument, load_model_and_data, training_note
from treegram.cli._parser import Parser, add_output, at_least, check_output, show

EXAMPLES = (
    "treegram explain mutag.tgm ./new -o page.html",
    "treegram explain mutag.tgm MUTAG --select 0,3,50 -o page.html",
)
_LIMIT = 20


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add_model_argument(parser)
    add_data_argument(parser, for_model=True)
    add_output(parser, "one HTML page that needs no other file and no network")
    parser.add_argument(
        "--select",
        metavar="N,...",
        type=lambda text: [at_least(0)(word) for word in text.split(",")],
        help="numbers of the graphs to explain, from 0, such as 3,7,12 (default: the first 20)",
    )


def run(args: argparse.Namespace) -> None:
    """Explain and write; check everything possible before the computation."""
    check_output(args.output, force=args.force)
    model, table = load_model_and_data(args)
    graphs = table.graphs
    ids = args.select or list(range(min(len(graphs), _LIMIT)))
    last = max(ids, default=0)
    if last >= len(graphs):
        raise ValueError(f"Graph {last} cannot be explained: {args.data} has {len(graphs)} graphs, counted from 0.")
    if graphs.graph_names is None:
        graphs = graphs.assign(graph_names=[f"Graph {i}" for i in range(len(graphs))])
    targets = [y for with_value, y in map(table.values, table.targets) if len(with_value) == len(graphs)]
    explanation = treegram.explain(model, graphs[ids])
    explanation.to_html(
        args.output,
        y=targets[0][ids] if targets else None,
        molecules=None if table.molecules is None else [table.molecules[row] for row in table.kept[ids]],
        title=f"{Path(args.data).name}, explained by {args.model.name}",
    )
    share = f"{len(ids)} of {counted(len(graphs), 'graph')}"
    show(f"{args.output}: {share} of {args.data}, explained by {args.model}")
    if note := training_note(explanation.in_training):
        print(note)
