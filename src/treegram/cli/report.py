"""``treegram report``: write a page and its Markdown from the results of a study."""

from __future__ import annotations

import argparse
from pathlib import Path

from treegram.cli._parser import Parser

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = ("treegram report paper.sqlite", "treegram report paper.sqlite -o report.html")


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (the signature of all commands)
    """Add the arguments of the command."""
    parser.add_argument("store", metavar="STORE", type=Path, help="results of treegram reproduce or evaluate")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="page to write, with its Markdown beside it (default: the store's name with .html)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace existing files even if they are not reports by treegram"
    )


def run(args: argparse.Namespace) -> None:
    """Summarize, then write both files."""
    from treegram.study.report import check_page, write_report
    from treegram.study.store import Store
    from treegram.study.summary import summarize

    page = args.output or args.store.with_suffix(".html")
    if page.suffix != ".html":
        raise ValueError(f"The output file must end in .html; got {str(page)!r}.")
    pages = (page, page.with_suffix(".md"))
    if args.store.resolve() in {path.resolve() for path in pages}:
        raise ValueError(f"The page or its Markdown would replace the store {args.store}; give another name with -o.")
    for path in pages:
        check_page(path, overwrite=args.force)
    with Store.open(args.store, create=False) as store:
        summary = summarize(store)
    for path in pages:
        write_report(summary, path, overwrite=args.force)
        print(path)
