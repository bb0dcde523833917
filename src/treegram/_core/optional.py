"""Import optional packages when they are needed, with an error that says how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SIZE = (8, 7)  # of a figure, in inches


def optional_module(module: str, purpose: str) -> Any:
    """Import a module; ``purpose`` is the subject of the error message, in the plural, such as "Parquet files"."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} need {package}: pip install {package}") from error


def matplotlib_module(module: str) -> Any:
    """Import a module of matplotlib, such as "pyplot"."""
    return optional_module(f"matplotlib.{module}", "Pictures")


def new_axes(size: tuple[float, float] = _SIZE) -> Any:
    """Return axes on a new pyplot figure."""
    return matplotlib_module("pyplot").subplots(figsize=size, layout="constrained")[1]


def blank_axes(size: tuple[float, float] = _SIZE) -> Any:
    """Return axes on a figure that pyplot does not manage, so that no window can open."""
    return matplotlib_module("figure").Figure(figsize=size, layout="constrained").subplots()
