"""The pieces that the page is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from treegram.experiments.report._markup import Markup, element, join

__all__ = ["against", "anchor", "bullets", "figure", "gallery", "paragraph", "row_name", "section", "small", "table"]

_TOGETHER = re.compile(" (?=[±=<>%\N{MULTIPLICATION SIGN}])|(?<=[±=<>]) (?=[0-9])")


def anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def section(title: str, content: Iterable[Markup]) -> tuple[str, Markup]:
    """A section and its title; empty if its content is."""
    body = join(*content)
    return title, element("section", element("h2", title), body, id=anchor(title)) if body else body


def paragraph(text: str, class_: str = "") -> Markup:
    return element("p", _unbroken(text), class_=class_) if text else Markup()


def _unbroken(text: str) -> str:
    """A sentence in which no line ends inside ``83.01 ± 1.95`` or ``p = 0.008``."""
    return _TOGETHER.sub("\N{NO-BREAK SPACE}", text)


def bullets(lines: Iterable[str]) -> Markup:
    items = [element("li", _unbroken(line)) for line in lines if line]
    return element("ul", *items) if items else Markup()


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Markup]], class_: str = "") -> Markup:
    """A table in a frame of its own, in which it scrolls under its caption; rows are made of cells."""
    top = element("thead", element("tr", *(element("th", one, scope="col") for one in head)))
    body = element("tbody", *(element("tr", *row) for row in rows))
    frame = element(
        "div",
        element("table", top, body, class_=class_),
        class_="frame",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
    return join(paragraph(caption, "caption"), frame)


def row_name(text: str, below: str = "") -> Markup:
    """The first cell of a row, which stays where it is while the others scroll."""
    return element("th", element("span", text, class_="name"), small(below, "name"), scope="row")


def small(text: str, class_: str = "") -> Markup:
    """A line of its own in a cell."""
    return element("span", text, class_=f"small {class_}".strip()) if text else Markup()


def against(theirs: str, difference: str, beyond: str = "") -> Markup:
    """A published number and how ours compares with it, in the line below ours."""
    if not theirs:
        return Markup()
    compared = [" ", element("span", difference, class_=f"change {beyond}".strip())] if difference else []
    return element("span", theirs, *compared, class_="small")


def figure(picture: Markup, caption: str) -> Markup:
    return element("figure", picture, element("figcaption", caption))


def gallery(pictures: Iterable[Markup]) -> Markup:
    """Figures side by side, as many as there is room for."""
    found = list(pictures)
    return element("div", *found, class_="figures") if found else Markup()
