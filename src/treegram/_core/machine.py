"""Describe what a run was computed with: versions and the kind of machine, but no names of owners, users or folders."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["describe_machine", "is_notebook", "package_versions"]

_PACKAGES = ("treegram", "numpy", "scipy", "scikit-learn", "numba")  # whose versions can change a result or a time


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, without importing IPython."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and hasattr(get_ipython(), "kernel")


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of each package that can change a result or a time."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}


def describe_machine() -> dict[str, Any]:
    """Return ``processor``, ``cores``, ``memory_gib`` (None where it is unknown) and ``system``."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}".strip(),  # not the release, which may contain a name
    }


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model, as exactly as the system reports it."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, other systems may lack these names
        return None
