"""A document as Markdown, as GitHub shows it: without pictures and details."""

from __future__ import annotations

import re
from collections.abc import Iterable

from treegram._core.text import visible
from treegram.study.report.document import (
    Block,
    Bullets,
    Document,
    Facts,
    Heading,
    Paragraph,
    Table,
    TableCell,
)
from treegram.study.report.format import ARROWS

__all__ = ["render_block", "render_compact_table", "render_markdown"]

_WRITTEN_BY = "<!-- written by treegram report -->"


def render_markdown(document: Document) -> str:
    """The document as Markdown, ending in an end of line; names and notes of the study are text in it, never markup."""
    shown = [_WRITTEN_BY, f"# {_text(document.title)}", *map(render_block, document.head)]
    for section in document.sections:
        if blocks := list(filter(None, map(render_block, section.blocks))):
            shown += [f"## {_text(section.title)}", *blocks]
    return "\n\n".join(filter(None, shown)) + "\n"


def render_compact_table(table: Table) -> str:
    """A table of numbers with one line per cell: ``86.7 (92.8) ▼``, what it is compared with in parentheses."""
    return _table(table.head, ([_text(name.text), *map(_compact, cells)] for name, *cells in table.rows)) + "\n"


def render_block(block: Block) -> str:
    """One block as Markdown; empty for pictures and details."""
    match block:
        case Heading(text):
            return f"### {_text(text)}"
        case Paragraph(text):
            return _text(text)
        case Bullets(items):
            return "\n".join(f"- {_text(item)}" for item in items if item)
        case Facts(items):
            return "\n".join(f"- {_text(f'{name}: {value}')}" for name, value in items)
        case Table():
            rows = ([_cell(cell) for cell in row] for row in block.rows)
            return f"{_text(block.caption)}\n\n{_table(block.head, rows)}"
        case _:
            return ""


def _text(value: str) -> str:
    """Any text as one line in which nothing is markup; an underscore inside a word is none, and stays as it is."""
    line = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", visible(" ".join(value.split())).replace("&", "&amp;"))
    return re.sub(r"[\\`*\[\]|~#]|\b_|_\b", r"\\\g<0>", line)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = [_text(name) for name in head]
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: TableCell) -> str:
    lines = [_text(line) for line in cell.text.split("\n")]
    if cell.is_best:
        lines[0] = f"**{lines[0]}**"
    if cell.published:
        change = f"**{_text(cell.change)}**" if cell.mark else _text(cell.change)
        lines.append(f"<sub>published {_text(cell.published)}{f', {change}' if change else ''}</sub>")
    remarks = filter(None, [*cell.remarks, cell.warning])
    return "<br>".join([*lines, *(f"<sub>{_text(remark)}</sub>" for remark in remarks)])


def _compact(cell: TableCell) -> str:
    published = f"({_text(cell.published)})" if cell.published else ""
    text = f"**{_text(cell.text)}**" if cell.is_best else _text(cell.text)
    return " ".join(
        filter(None, [text, published, ARROWS.get(cell.mark, ""), *(f"[{_text(r)}]" for r in cell.remarks)])
    )
