"""``treegram report``: a store of results in, one page (and its Markdown) out."""

from __future__ import annotations

import argparse
from pathlib import Path

from treegram._files import replacing
from treegram.cli._parser import Parser
from treegram.errors import StoreError
from treegram.experiments.report import write_html, write_markdown
from treegram.experiments.store import Store
from treegram.experiments.study import parse_study
from treegram.experiments.summary import summarise

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = ("treegram report paper.sqlite", "treegram report paper.sqlite -o report.html")


def add_arguments(parser: Parser, arguments: list[str]) -> None:  # noqa: ARG001 (what every command is given)
    """The arguments of the command."""
    parser.add_argument(
        "store", metavar="STORE", type=Path, help="the file in which reproduce or evaluate kept its results"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="page to write; its Markdown is written beside it (default: the store's name with .html)",
    )


def run(args: argparse.Namespace) -> None:
    """Summarise, then write both files."""
    page = args.output or args.store.with_suffix(".html")
    _check(page, args.store)
    with Store.open(args.store, create=False) as store:
        name, text = store.study_name(), store.study_text()
        if name is None or text is None:
            raise StoreError(f"{args.store} holds no study yet; run treegram reproduce with this store first.")
        summary = summarise(parse_study(name, text.encode(), f"the study in {args.store}"), store)
    for path, content in ((page, write_html(summary)), (page.with_suffix(".md"), write_markdown(summary))):
        with replacing(path) as file:
            file.write(content.encode())
        print(path)


def _check(page: Path, store: Path) -> None:
    """Raise if the page cannot be written, or its files would take the place of the store."""
    if page.suffix != ".html":
        raise ValueError(f"The output file must end in .html; got {str(page)!r}.")
    if not page.parent.is_dir():
        raise FileNotFoundError(f"The folder {page.parent} of the output file does not exist; make it first.")
    if store.resolve() in (page.resolve(), page.with_suffix(".md").resolve()):
        raise ValueError(f"The page or its Markdown would replace the store {store}; give another name with -o.")
