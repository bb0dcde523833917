"""All kernels by the names that they have in the command and in study files."""

from __future__ import annotations

from treegram import kernels
from treegram.kernels.base import GraphKernel

__all__ = ["AUTO", "KERNELS"]

AUTO = "auto"  # in the place of a name: models choose among candidates of their own

_CLASSES = [getattr(kernels, name) for name in kernels.__all__]
_NAMED: list[type[GraphKernel]] = [kind for kind in _CLASSES if issubclass(kind, GraphKernel) and kind.name]
KERNELS = {kind.name: kind for kind in sorted(_NAMED, key=lambda kind: kind.name)}
