"""Render HTML pages from Jinja2 templates that share one stylesheet and escape every value."""

from __future__ import annotations

from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from treegram._core.text import visible

__all__ = ["render"]


def render(package: str, template: str, **values: object) -> str:
    """Render ``<package folder>/templates/<template>``, escaping every value that is not `markupsafe.Markup`.

    Templates can use ``stylesheet``, which all pages share, and may include or extend other templates of the package.
    """
    return _environment(package).get_template(template).render(values)


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
        keep_trailing_newline=True,
        loader=PackageLoader(package),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals["stylesheet"] = Markup((resources.files(__name__) / "style.css").read_text("utf-8"))
    return environment
