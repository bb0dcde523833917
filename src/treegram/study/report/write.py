"""A report as a file, complete or not there at all."""

from __future__ import annotations

import os
from pathlib import Path

from treegram._core.files import replacing
from treegram.study.report.build import build_document
from treegram.study.report.html import render_html
from treegram.study.report.markdown import render_markdown
from treegram.study.summary import Summary

__all__ = ["check_page", "write_report"]

_RENDERERS = {".html": render_html, ".md": render_markdown}
# The beginning of our own pages (template.html, markdown.py): they may be replaced unasked.
_MARKS = (b'<meta name="generator" content="treegram report">', b"<!-- written by treegram report -->")
_BEGINNING = 1000  # bytes in which a mark must stand


def write_report(summary: Summary, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the report of a study as one page.

    Parameters
    ----------
    summary : Summary
        The numbers, as :func:`~treegram.study.summarize` gives them.
    path : str or path
        The file: ``.html`` for a page with pictures that needs no network, ``.md`` for Markdown without pictures.
    overwrite : bool, default=False
        Whether a file that is not such a report may be replaced. An older report is always replaced.

    Raises
    ------
    FileExistsError
        If there is such a file.
    ImportError
        If the page needs matplotlib, and it is not installed.
    """
    page = Path(path)
    check_page(page, overwrite=overwrite)
    content = _RENDERERS[page.suffix](build_document(summary))
    with replacing(page) as file:
        file.write(content.encode())


def check_page(path: Path, *, overwrite: bool) -> None:
    """Raise if a report cannot be written to this path."""
    if path.suffix not in _RENDERERS:
        raise ValueError(f"A report must end in {' or '.join(_RENDERERS)}; got {str(path)!r}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} of the output file does not exist; create it first.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; the report must be a file.")
    if not overwrite and path.exists() and not _is_report(path):
        raise FileExistsError(
            f"{path} exists and was not written by treegram report; give --force (overwrite=True in Python) to replace it, "
            "or another name."
        )


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING)
    return any(mark in beginning for mark in _MARKS)
