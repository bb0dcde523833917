"""All kernels by the names that they have in the command and in study files."""

from __future__ import annotations

from typing import Any

from treegram import kernels

__all__ = ["KERNELS"]

_CLASSES = [kind for kind in vars(kernels).values() if isinstance(kind, type) and getattr(kind, "name", "")]
KERNELS: dict[str, type[Any]] = {kind.name: kind for kind in sorted(_CLASSES, key=lambda kind: kind.name)}
