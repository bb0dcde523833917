"""Packages that only some users have: imported when they are needed, with an error that says how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["optional_module"]


def optional_module(module: str, extra: str, purpose: str) -> Any:
    """The module, or an ImportError that names the extra. The purpose is the sentence's subject: "Parquet files"."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} need {module.split('.')[0]}: pip install 'treegram[{extra}]'") from error
