"""The style of the gallery's figures; sphinx-gallery calls :func:`use` before each example."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style

__all__ = ["use"]


def use(gallery_conf: Any = None, fname: Any = None) -> None:  # noqa: ARG001 (the signature that sphinx-gallery calls)
    """Set matplotlib's parameters, and silence what writing a PDF logs and what examples do on purpose."""
    # Examples compare kernels with and without vectors; a warning would show the path of this machine.
    warnings.filterwarnings("ignore", message=r"\w+ does not use the node vectors", category=UserWarning)
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    mpl.style.use(Path(__file__).with_name("figures.mplstyle"))
