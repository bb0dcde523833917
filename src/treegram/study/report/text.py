"""Blocks of a document as plain text, for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treegram._core.text import visible
from treegram.study.report.document import Block, Bullets, Facts, Heading, Paragraph, Table, TableCell
from treegram.study.report.format import NONE

__all__ = ["render_text"]


def render_text(blocks: Iterable[Block]) -> str:
    """The blocks as lines, the last one without its end; pictures and details are left out.

    In tables ``*`` marks a large difference from the published number, which stands in the line below.
    """
    return "\n".join(line for block in blocks for line in _block(block))


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text) | Paragraph(text):
            yield visible(text)
        case Bullets(items):
            yield from (f"- {visible(item)}" for item in items if item)
        case Facts(items):
            yield from (visible(f"{name}: {value}") for name, value in items)
        case Table():
            yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    lines = [list(table.head)]
    for name, *cells in table.rows:
        lines.append([name.text, *map(_cell, cells)])
        if any(cell.published for cell in cells):
            lines.append(["  published", *(cell.published or "-" for cell in cells)])
    lines = [[visible(" ".join(text.split("\n"))) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    head, *body = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    yield from (head, rule, *body, rule)


def _cell(cell: TableCell) -> str:
    return "-" if cell.text == NONE else cell.text + " *" * bool(cell.mark)
