"""A document as one HTML page that needs nothing else: no network, no scripts, pictures inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from treegram._core.html import Markup, element, join, page
from treegram.study.report.document import (
    Block,
    Bullets,
    Details,
    Document,
    Facts,
    Figure,
    Heading,
    Paragraph,
    Section,
    Table,
    TableCell,
    Tiles,
)
from treegram.study.report.figures import draw

__all__ = ["render_html"]

_TOGETHER = re.compile(" (?=[±=<>%\N{MULTIPLICATION SIGN}])|(?<=[±=<>]) (?=[0-9])")
_WIDEST_BAR = 4.0  # em


def render_html(document: Document) -> str:
    """The document as one page, the same for the same document; an ImportError if there is no matplotlib.

    Names and notes of the study are text in it, never markup, and its policy forbids scripts and the network.
    """
    links = (element("a", section.title, href=f"#{_anchor(section)}") for section in document.sections)
    head = [element("p", document.origin, class_="kicker"), element("h1", document.title), *_blocks(document.head)]
    return page(
        document.title,
        generator="treegram report",
        head=join(*head),
        contents=join(*links),
        sections=join(*map(_section, document.sections)),
    )


def _section(section: Section) -> Markup:
    return element("section", element("h2", section.title), *_blocks(section.blocks), id=_anchor(section))


def _anchor(section: Section) -> str:
    return section.title.lower().replace(" ", "-")


def _blocks(blocks: Iterable[Block]) -> Iterator[Markup]:
    """Block after block; figures that follow each other stand side by side."""
    for kind, group in groupby(blocks, type):
        shown = map(_block, group)
        if kind is Figure:
            yield element("div", *shown, class_="figures")
        else:
            yield from shown


def _block(block: Block) -> Markup:
    match block:
        case Heading(text):
            return element("h3", text)
        case Paragraph(text, role):
            return element("p", _unbroken(text), class_=role)
        case Bullets(items):
            return element("ul", *(element("li", _unbroken(item)) for item in items if item))
        case Facts(items):
            return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in items))
        case Tiles(items):
            tiles = (element("div", element("b", number), element("span", text)) for number, text in items)
            return element("div", *tiles, class_="tiles")
        case Figure():
            picture = draw(block.name, block.description, block.draw)
            return element("figure", picture, element("figcaption", block.caption))
        case Details(tables, heading):
            folded = (element("details", element("summary", title), _table(table)) for title, table in tables)
            return join(element("h3", heading) if heading else Markup(), element("div", *folded, class_="chips"))
        case Table():
            return _table(block)


def _unbroken(text: str) -> str:
    """A sentence in which no line ends inside ``83.01 ± 1.95`` or ``p = 0.008``."""
    return _TOGETHER.sub("\N{NO-BREAK SPACE}", text)


# -------------------------------------------------------------------- tables


def _table(table: Table) -> Markup:
    """A table in a frame of its own, in which it scrolls under its caption."""
    head = element("thead", element("tr", *(element("th", one, scope="col") for one in table.head)))
    body = element("tbody", *(element("tr", *_row(row, table.kind)) for row in table.rows))
    content = element("table", head, body, class_=table.kind)
    frame = element("div", content, class_="frame", tabindex="0", role="region", aria_label=table.caption)
    return join(element("p", _unbroken(table.caption), class_="caption"), frame)


def _row(row: Sequence[TableCell], kind: str) -> Iterator[Markup]:
    """The name of the row, which stays where it is while the other cells scroll, and these."""
    name, *cells = row
    below = (_small(remark, "name") for remark in name.remarks)
    yield element("th", element("span", name.text, class_="name"), *below, scope="row")
    for cell in cells:
        yield _cell(cell, kind)


def _cell(cell: TableCell, kind: str) -> Markup:
    if cell.bars:
        return element("td", *_bars(cell.bars))
    text = _phrases(cell.text) if kind == "phrases" else _lines(cell.text)
    compared = _small(cell.published, "", cell.change, cell.mark) if cell.published else Markup()
    remarks = [_small(remark, "") for remark in cell.remarks]
    remarks += [_small(cell.warning, "down")] if cell.warning else []
    is_long = kind == "" and len(cell.text) > 30
    return element("td", element("b", text) if cell.is_best else text, compared, *remarks, class_="note" * is_long)


def _lines(text: str) -> Markup:
    lines = text.split("\n")
    return join(*(element("div", line) for line in lines)) if len(lines) > 1 else join(text)


def _phrases(text: str) -> Markup:
    return join(*(join(element("span", one, class_="whole"), " ") for one in re.split("(?<=,) ", text)))


def _small(text: str, role: str, change: str = "", mark: str = "") -> Markup:
    """A line of its own in a cell."""
    changed = [" ", element("span", change, class_=f"change {mark}".strip())] if change else []
    return element("span", text, *changed, class_=f"small {role}".strip())


def _bars(counts: Sequence[tuple[str, int]]) -> Iterator[Markup]:
    highest = max(count for _, count in counts)
    for value, count in counts:
        bar = element("i", style=f"width:{_WIDEST_BAR * count / highest if highest else 0:.2f}em")
        yield element("span", element("span", value), bar, str(count) if count else "", class_="bar")
