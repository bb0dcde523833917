"""Colors of what is added to a decision: red for it, blue against it, white for nothing."""

from __future__ import annotations

import numpy as np

from treegram._core.types import Floats

__all__ = ["MOLECULE_LIMIT", "is_dark", "share_colors"]

_FOR, _AGAINST = np.array([0.698, 0.094, 0.169]), np.array([0.129, 0.4, 0.675])
MOLECULE_LIMIT = 1.4  # times the strongest share: RDKit writes in black, which full colors would hide
_DARK = 0.55  # of the way from white to an end


def share_colors(values: Floats, limit: float) -> Floats:
    """Red, green and blue from 0 to 1 for each value, shape (n_values, 3); full colors at ``limit`` and beyond."""
    parts = np.clip(np.abs(values) / (limit or 1.0), 0.0, 1.0)[:, None]
    ends = np.where((values > 0)[:, None], _FOR, _AGAINST)
    colors: Floats = 1.0 - parts + parts * ends
    return colors


def is_dark(value: float, limit: float) -> bool:
    """Whether text on the color of a value must be white."""
    return bool(abs(value) > _DARK * limit)
