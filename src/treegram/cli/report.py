"""``treegram report``: write a page from the results of a study, and the files of a paper."""

from __future__ import annotations

import argparse
from pathlib import Path

from treegram.cli._parser import Parser, add_output, check_output, show

EXAMPLES = (
    "treegram report paper.sqlite",
    "treegram report paper.sqlite -o report.html",
    "treegram report paper.sqlite --paper files/",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("store", metavar="STORE", type=Path, help="results of treegram reproduce or evaluate")
    add_output(
        parser,
        "page to write, and a Markdown file next to it (default: the store's name with .html; with --paper, none)",
        required=False,
    )
    parser.add_argument(
        "--paper",
        metavar="DIR",
        type=Path,
        help="folder for LaTeX tables of scores, ranks and tests of all pairs of kernels, references.bib, figures as PDF and SVG, and "
        "folds.csv with the scores of every outer fold",
    )


def run(args: argparse.Namespace) -> None:
    """Check all outputs, summarize, and write."""
    from treegram.study.report import write_figures, write_folds, write_latex, write_report
    from treegram.study.store import Store
    from treegram.study.summary import summarize

    page = args.output or args.store.with_suffix(".html")
    if page.suffix != ".html":
        raise ValueError(f"The output file must end in .html; got {str(page)!r}.")
    files = [] if args.paper and not args.output else [page, page.with_suffix(".md")]
    folder = args.paper
    folds = [folder / "folds.csv"] if folder else []
    if args.store.resolve() in {path.resolve() for path in files + folds}:
        raise ValueError(f"An output file would replace the store {args.store}; give another name.")
    for path in files:
        check_output(path, force=args.force)
    if folder and (folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not args.force)):
        raise FileExistsError(f"{folder} is not an empty folder; use --force to replace files in it, or another name.")
    with Store.open(args.store, create=False) as store:
        summary = summarize(store)
        for path in files:
            write_report(summary, path)
        if folder:
            files += [*write_latex(summary, folder), *write_figures(summary, folder)]
        for path in folds:
            write_folds(store, path)
    for path in files + folds:
        show(str(path))
