"""Where pictures are drawn. matplotlib is imported only when one is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["blank_axes", "new_axes"]

_SIZE = (8, 7)  # inches


def new_axes(size: tuple[float, float] = _SIZE) -> Any:
    """Axes on a new figure of pyplot."""
    return matplotlib_module("pyplot").subplots(figsize=size, layout="constrained")[1]


def blank_axes() -> Any:
    """Axes on a figure of their own that pyplot does not know, so that no window can open."""
    return matplotlib_module("figure").Figure(figsize=_SIZE, layout="constrained").subplots()


def matplotlib_module(module: str) -> Any:
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'treegram[plot]'") from error
