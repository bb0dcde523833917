"""Pages that need nothing else: no network, no scripts, and text that is escaped unless it was made here."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from treegram._core.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Markup", "element", "join", "page", "render"]


def render(package: str, template: str, **values: object) -> str:
    """Render ``<package folder>/templates/<template>``, escaping every value that is not `markupsafe.Markup`.

    Templates can use ``stylesheet``, the stylesheet of all pages, and may include or extend other templates of the package.
    """
    return _environment(package).get_template(template).render(values)


@cache
def _environment(package: str) -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    templates = resources.files(package) / "templates"
    environment = Environment(
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
        keep_trailing_newline=True,
        loader=FunctionLoader(lambda name: (templates / name).read_text("utf-8")),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals["stylesheet"] = Markup((resources.files(__name__) / "style.css").read_text("utf-8"))
    return environment


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


def page(title: str, *, generator: str, head: Markup, contents: Markup, sections: Markup) -> str:
    """A whole page in the one style of all pages; its policy forbids scripts and the network."""
    files = resources.files("treegram._core.html")
    return Template((files / "template.html").read_text("utf-8")).substitute(
        title=join(title),
        generator=join(generator),
        style=(files / "style.css").read_text("utf-8"),
        head=head,
        contents=contents,
        sections=sections,
    )
