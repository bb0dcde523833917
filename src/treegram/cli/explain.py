"""``treegram explain``: write a page that shows which nodes drive the predictions of a saved model."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import treegram
from treegram._core.text import counted
from treegram.cli._data import add_data_argument, add_model_argument, load_model_and_data, training_note
from treegram.cli._parser import Parser, add_output, check_output

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = (
    "treegram explain mutag.tgm ./new -o page.html",
    "treegram explain mutag.tgm MUTAG --select 0-9,50 -o page.html",
)
_LIMIT = 20


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (the signature of all commands)
    """Add the arguments of the command."""
    add_model_argument(parser)
    add_data_argument(parser, for_model=True)
    add_output(parser, "one HTML page that needs no other file and no network")
    parser.add_argument(
        "--select",
        metavar="LIST",
        type=_numbers,
        help="numbers of the graphs to explain, from 0, such as 3,7,12-15 (default: the first 20)",
    )
    parser.add_argument(
        "--attribute-to",
        choices=("tree", "root"),
        default="tree",
        help="divide the contribution of a tree among its nodes, or give it to its root (default: tree)",
    )
    parser.add_argument(
        "--smiles",
        metavar="FILE",
        type=Path,
        help="file of molecules, such as .smi, with one molecule per graph of DATA, its atoms in the order of the nodes, to draw them",
    )


def run(args: argparse.Namespace) -> None:
    """Explain and write; check everything possible before the computation."""
    from treegram.graphs.molecule_files import read_records

    check_output(args.output, force=args.force)
    drawn = [record.molecule for record in read_records(args.smiles)] if args.smiles else None
    model, loaded = load_model_and_data(args)
    graphs, molecules = loaded.graphs, drawn or loaded.molecules
    if molecules is not None and len(molecules) != len(graphs):
        raise ValueError(
            f"{args.smiles}: molecules must have one entry per graph, {len(graphs)}; it has {len(molecules)}."
        )
    chosen = args.select or list(range(min(len(graphs), _LIMIT)))
    last = max(chosen, default=0)
    if last >= len(graphs):
        raise ValueError(f"Graph {last} cannot be explained: {args.data} has {len(graphs)} graphs, counted from 0.")
    targets = [y for ids, y in loaded.targets.values() if len(ids) == len(graphs)]
    name = Path(args.data).name
    explanation = treegram.explain(model, graphs[chosen], attribute_to=args.attribute_to)
    explanation.to_html(
        args.output,
        y=targets[0][chosen] if targets else None,
        names=None if graphs.graph_names is not None else [f"Graph {number}" for number in chosen],
        molecules=None if molecules is None else [molecules[i] for i in chosen],
        title=f"{name}, explained",
        source=f"treegram explain {args.model.name} {name}",
    )
    some = f"{len(chosen)} of {counted(len(graphs), 'graph')}"
    print(f"{args.output}: {some} of {args.data}, explained by {args.model}")
    if note := training_note(explanation.in_training):
        print(note)


def _numbers(text: str) -> list[int]:
    """Read ``0-3,7`` as numbers; for argparse."""
    numbers: list[int] = []
    for word in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,7})(?:-(\d{1,7}))?\s*", word)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise argparse.ArgumentTypeError(f"expected numbers and ranges such as 0-19 or 3,7,12-15; got {text!r}")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return list(dict.fromkeys(numbers))
