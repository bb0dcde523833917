"""What commands that write a file of results share: the options of the file, and the record of how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from treegram._core.machine import package_versions
from treegram._core.text import counted
from treegram.cli._parser import Parser

__all__ = ["add_output_arguments", "approximation", "approximation_text", "provenance", "shape_text"]


def add_output_arguments(parser: Parser, contents: str) -> None:
    """The file to write, whose help says what it will hold, and whether it may replace an older one."""
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help=f"file to write: {contents}")
    parser.add_argument("--force", action="store_true", help="replace the file if there is one")


def provenance(data: str, seconds: float) -> dict[str, Any]:
    """From which data, with which versions, when, and in how much time."""
    return {
        "data": data,
        "versions": package_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
    }


def approximation(estimator: Any) -> dict[str, Any]:
    """Which approximation a fitted estimator has chosen, and its error; nothing for an exact kernel."""
    names = ("method", "n_components", "choice", "estimated_error")
    return {name: getattr(estimator, name + "_") for name in names} if hasattr(estimator, "choice_") else {}


def approximation_text(made: Mapping[str, Any]) -> str:
    """The same for people, after a comma."""
    if not made:
        return ""
    components = counted(made["n_components"], "component")
    return f", {made['method']} with {components}, estimated Gram error {made['estimated_error']:.1e}"


def shape_text(shape: tuple[int, ...]) -> str:
    """The shape of an array for people: 600 x 600."""
    return " x ".join(map(str, shape))
