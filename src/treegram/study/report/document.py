"""What a report consists of: frozen blocks without a format. ``build`` makes them, and one renderer per format shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Block",
    "Bullets",
    "Details",
    "Document",
    "Facts",
    "Figure",
    "Heading",
    "Paragraph",
    "Section",
    "Table",
    "TableCell",
    "Tiles",
]


@dataclass(frozen=True)
class Heading:
    """The title of what follows inside a section."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str
    role: str = ""  # "lead", "reference" or "about": how much weight they have


@dataclass(frozen=True)
class Bullets:
    """One sentence or a few per point; empty ones are left out."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names with values."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Tiles:
    """The main numbers of a page, each with what it counts. They repeat what sentences say, and stand on pages alone."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableCell:
    """One cell. A line break in its text is a line break."""

    text: str
    published: str = ""  # what it is compared with
    change: str = ""  # how it compares
    mark: str = ""  # "up" or "down" where the change is large
    remarks: tuple[str, ...] = ()
    warning: str = ""
    is_best: bool = False
    bars: tuple[tuple[str, int], ...] = ()  # a histogram: values and counts, in place of a text


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head; the first cell of a row is its name."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    kind: str = ""  # "numbers": nothing wraps; "phrases": lines break after commas only


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when it is shown. Formats without pictures leave it out: a table has the same numbers."""

    name: str  # one of its kind in the document
    description: str  # for those who cannot see it
    caption: str
    draw: Callable[[], Any]  # gives matplotlib's axes


@dataclass(frozen=True)
class Details:
    """Tables for those who ask for them, each with its title. Only pages, where they can be folded, have them."""

    tables: tuple[tuple[str, Table], ...]
    heading: str = ""


Block = Heading | Paragraph | Bullets | Facts | Tiles | Table | Figure | Details


@dataclass(frozen=True)
class Section:
    """A part of the report with a title."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    origin: str  # what it was made from, in a few words
    head: tuple[Block, ...]
    sections: tuple[Section, ...]  # each with something in it
