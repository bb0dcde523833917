"""``treegram map``: write a page with the graphs of a data set as points, similar ones close to each other."""

from __future__ import annotations

import argparse

from treegram.cli._data import add_data_argument, load_data
from treegram.cli._kernels import add_kernel_name
from treegram.cli._parser import Parser, add_output, check_output, show

EXAMPLES = (
    "treegram map ENZYMES -o map.html",
    "treegram map molecules.csv --target solubility -o map.html",
    "treegram map ./structures --kernel wl -o map.html",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add_data_argument(parser)
    add_output(
        parser, "HTML page; hovering over a point shows the name of the graph and its target, which is also the color"
    )
    add_kernel_name(parser)


def run(args: argparse.Namespace) -> None:
    """Draw the map without opening a window, and write the page."""
    check_output(args.output, force=args.force)
    from treegram import plot_map
    from treegram._core.optional import blank_axes

    graphs, y = load_data(args.data, args)
    plot_map(graphs, y, kernel=args.kernel, ax=blank_axes(), title=f"Map of {args.data}", path=args.output)
    show(f"{args.output}: map of {len(graphs):,} graphs of {args.data}")
