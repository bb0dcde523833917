"""``treegram similar``: list the graphs of a data set that are most similar to given ones."""

from __future__ import annotations

import argparse

from treegram.cli._data import add_data_argument, load
from treegram.cli._kernels import add_kernel_name
from treegram.cli._parser import Parser, add_output, at_least, check_output, csv_text, write_output

EXAMPLES = (
    "treegram similar ENZYMES --to 3,7 -k 10",
    "treegram similar molecules.csv --name-column CAS --to 64-17-5 -o similar.csv",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser)
    parser.add_argument(
        "--to",
        required=True,
        metavar="NAMES",
        help="names of graphs, or their numbers from 0 if they have no names, with commas",
    )
    parser.add_argument("-k", type=at_least(1), default=5, metavar="N", help="how many for each (default: 5)")
    add_output(
        parser,
        "CSV file with the given graph, the position, name and similarity of each (default: stdout)",
        required=False,
    )
    add_kernel_name(parser)


def run(args: argparse.Namespace) -> None:
    """Find the graphs, and print or write the table."""
    check_output(args.output, force=args.force)
    from treegram import similar_graphs

    graphs = load(args.data, args).graphs
    names = [] if graphs.graph_names is None else graphs.graph_names.tolist()
    words = [args.to] if args.to in names else args.to.split(",")  # names of molecules may have commas
    to = [word if names or not word.isdigit() else int(word) for word in words]
    table = similar_graphs(graphs, to, args.k, kernel=args.kernel)
    text = csv_text([table.columns, *table.itertuples(index=False)])
    write_output(text, args.output, f"{len(table)} graphs of {args.data} similar to {args.to}")
