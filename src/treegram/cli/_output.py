"""What commands that write a file of results share: the options of the file, and the record of how it came about."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numba
import numpy as np

from treegram import __version__
from treegram.cli._parser import Parser

__all__ = ["add_output_arguments", "provenance", "shape_text"]


def add_output_arguments(parser: Parser, contents: str) -> None:
    """The file to write, whose help says what it will hold, and whether it may replace an older one."""
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help=f"file to write: {contents}")
    parser.add_argument("--force", action="store_true", help="replace the file if there is one")


def provenance(data: str, seconds: float) -> dict[str, Any]:
    """From which data, with which versions, when, and in how much time."""
    return {
        "data": data,
        "versions": {"treegram": __version__, "numpy": np.__version__, "numba": numba.__version__},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
    }


def shape_text(shape: tuple[int, ...]) -> str:
    """The shape of an array for people: 600 x 600."""
    return " x ".join(map(str, shape))
