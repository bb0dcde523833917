"""Pictures as SVG that can stand in one HTML page with others: text stays text, and no two share an id."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

from treegram._core.html import Markup
from treegram._core.matplotlib import matplotlib_module

__all__ = ["draw", "labels"]

_MOST_SIGNS = 32  # of a name in a picture; longer ones would leave no room for the rest

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "treegram",  # else ids are random
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # the second is as wide, and where the first is not
    "text.parse_math": False,  # a dollar in a kernel's name is a dollar
}


def labels(names: Sequence[str]) -> list[str]:
    """Names that fit beside a picture, all different: what is too long loses its middle."""
    half = _MOST_SIGNS // 2 - 1
    short = [name if len(name) <= _MOST_SIGNS else f"{name[:half]}…{name[-half:]}" for name in names]
    return short if len(set(short)) == len(names) else [f"{i} {name}" for i, name in enumerate(short, start=1)]


def draw(name: str, description: str, plot: Callable[[], Any]) -> Markup:
    """Draw; ids begin with the name, and the description is for those who cannot see."""
    with matplotlib_module("style").context(_STYLE), warnings.catch_warnings(), io.BytesIO() as file:
        # It measures with its own font; a browser finds one that has the sign.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        plot().figure.savefig(file, format="svg", metadata={"Date": None})
        root = ElementTree.fromstring(file.getvalue())
    _make_inline(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _make_inline(root: ElementTree.Element, name: str) -> None:
    """Without namespaces, metadata and style sheets, which would be those of the whole page; references renamed."""
    for parent in root.iter():
        parent.tag = _local(parent.tag)
        for child in [one for one in parent if _local(one.tag) in ("metadata", "style")]:
            parent.remove(child)
        parent.attrib = {_local(key): value for key, value in parent.attrib.items()}
        for key, value in parent.attrib.items():
            if key == "id":
                parent.set(key, f"{name}-{value}")
            elif key == "href":
                parent.set(key, value.replace("#", f"#{name}-", 1))
            else:
                parent.set(key, re.sub(r"url\(#", f"url(#{name}-", value))


def _local(name: str) -> str:
    return name.rpartition("}")[2]
