"""HTML that is safe by construction: text is escaped unless it was made here."""

from __future__ import annotations

from html import escape

from treegram.experiments.report._format import visible

__all__ = ["Markup", "element", "join"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str) -> Markup:
    """An element with its content; an attribute that Python reserves ends in ``_``, and one that is empty is left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(visible(value))}"'
        for name, value in attributes.items()
        if value
    )
    return Markup(f"<{tag}{written}>{join(*content)}</{tag}>")


def join(*content: str) -> Markup:
    """Content side by side; what is not `Markup` is escaped."""
    return Markup("".join(one if isinstance(one, Markup) else escape(visible(one)) for one in content))
