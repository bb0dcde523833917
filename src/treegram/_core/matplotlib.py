"""Where pictures are drawn. matplotlib is imported only when one is."""

from __future__ import annotations

from typing import Any

from treegram._core.optional import optional_module

__all__ = ["blank_axes", "matplotlib_module", "new_axes"]

_SIZE = (8, 7)  # inches


def new_axes(size: tuple[float, float] = _SIZE) -> Any:
    """Axes on a new figure of pyplot."""
    return matplotlib_module("pyplot").subplots(figsize=size, layout="constrained")[1]


def blank_axes() -> Any:
    """Axes on a figure of their own that pyplot does not know, so that no window can open."""
    return matplotlib_module("figure").Figure(figsize=_SIZE, layout="constrained").subplots()


def matplotlib_module(module: str) -> Any:
    """A module of matplotlib, such as "pyplot"."""
    return optional_module(f"matplotlib.{module}", "plot", "Pictures")
