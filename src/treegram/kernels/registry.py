"""All kernels by the names that they have in the command and in study files."""

from __future__ import annotations

from typing import Any

from treegram import kernels

__all__ = ["KERNELS"]

_CLASSES = [getattr(kernels, name) for name in kernels.__all__]
KERNELS: dict[str, type[Any]] = {kind.name: kind for kind in _CLASSES if getattr(kind, "name", "")}
