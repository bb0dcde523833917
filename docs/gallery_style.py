"""The style of the gallery's figures; sphinx-gallery calls :func:`use` before each example."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import matplotlib as mpl
from cycler import cycler

__all__ = ["use"]

# The green of the pages, then colors of Okabe and Ito, which color-blind readers can distinguish.
COLORS = ["#1b6b50", "#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#5b4b8a", "#8c8c3c", "#7f7f7f", "#17becf"]


def use(gallery_conf: Any = None, fname: Any = None) -> None:  # noqa: ARG001 (the signature that sphinx-gallery calls)
    """Set matplotlib's parameters, and silence what writing a PDF logs and what examples do on purpose."""
    # Examples compare kernels with and without vectors; a warning would show the path of this machine.
    warnings.filterwarnings("ignore", message=r"\w+ does not use the node vectors", category=UserWarning)
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLORS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "font.size": 10,
            "figure.dpi": 100,
        }
    )
