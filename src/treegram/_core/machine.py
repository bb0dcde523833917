"""Describe the machine: refuse work that does not fit into free memory, and record the versions and hardware of a run.

A memory error names what is too large, its size, and the free memory. A record has versions and the kind of machine,
but no names of owners, users or folders.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from treegram._core.text import spell_bytes
from treegram._core.types import Array

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

SMALL = 64 << 20  # bytes below which free memory is not looked up
_ADVICE = (
    "Leave such graphs out, use smaller parameters, or a kernel whose memory grows with the edges alone, such as WL or "
    "ODDCL."
)
_PACKAGES = ("treegram", "numpy", "scipy", "scikit-learn", "numba")  # whose versions can change a result or a time

# -------------------------------------------------------------------- memory


def available_bytes() -> float:
    """Return the memory that is free without swapping, within the limits of a container and of ``ulimit -v``, or infinity if unknown."""
    return min(_free_bytes(), _unused_address_space())


def _free_bytes() -> float:
    free = [float("inf")]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        statistics = Path("/sys/fs/cgroup/memory.stat").read_text(encoding="ascii")
        stat = dict(line.split() for line in statistics.splitlines())
        free += [float(limit) - int(stat["anon"])] if limit != "max" else []  # file caches are freed on demand
    except (OSError, ValueError, KeyError, IndexError):  # not Linux, or no container
        pass
    return min(free)


def _unused_address_space() -> float:
    """Return what this process may still allocate under ``ulimit -v``."""
    if resource is None:
        return float("inf")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return float("inf")
    try:
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):  # not Linux
        return float(limit)
    return max(0.0, float(limit - n_pages * resource.getpagesize()))


def require(n_bytes: float, purpose: str, advice: str = _ADVICE) -> None:
    """Raise MemoryError if this exceeds the free memory; ``purpose`` is its subject: "Graph 3: its distances"."""
    if n_bytes > SMALL and n_bytes > available_bytes():
        raise MemoryError(
            f"{purpose} would take {spell_bytes(n_bytes)} of memory; {spell_bytes(available_bytes())} are free. {advice}"
        )


def require_rows(n_rows: int, n_numbers: float, copies: int = 1) -> None:
    """Raise MemoryError if the feature rows of ``n_rows`` graphs, ``n_numbers`` in all, do not fit ``copies`` times."""
    require(
        8.0 * copies * n_numbers,
        f"Rows of features for {n_rows} graphs, {n_numbers:,.0f} numbers in all,",
        "Compute them chunk by chunk (transform, then partial_fit), or use fewer components or a smaller n_features.",
    )


def require_gram(*shape: int) -> None:
    """Raise MemoryError if a Gram matrix, or a grid of them, does not fit."""
    require(
        8 * float(np.prod(shape, dtype=float)),
        f"A Gram matrix of {' x '.join(map(str, shape))} numbers",
        "gram_to_zarr writes it to disk block by block; Nystroem and FeatureMap give rows for linear models, "
        "and need no matrix.",
    )


def allocate(shape: int | tuple[int, ...], dtype: Any, purpose: str) -> Array:
    """Return zeros, or raise a MemoryError that names their purpose."""
    n_bytes = float(np.prod(np.atleast_1d(shape), dtype=float)) * np.dtype(dtype).itemsize
    require(n_bytes, purpose)
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError):  # ValueError: more than any machine could address
        raise MemoryError(
            f"{purpose} would take {spell_bytes(n_bytes)} of memory, more than can be had. {_ADVICE}"
        ) from None


# -------------------------------------------------------------------- records of a run


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of each package that can change a result or a time."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}


def describe_checkout(folder: Path = Path(__file__).parents[3]) -> dict[str, str]:
    """Return the ``commit`` of the code, and whether its ``tree`` is "clean" or "changed"; nothing without git and a checkout."""
    if not (folder / ".git").exists() or not (folder / "src" / "treegram").is_dir():
        return {}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    answers = []
    for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", "src", "benchmarks"]):
        command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, env=environment, check=True)
        except (OSError, subprocess.SubprocessError):  # no git, or not our repository
            return {}
        answers.append(done.stdout.strip())
    return {"commit": answers[0], "tree": "changed" if answers[1] else "clean"}


def describe_machine() -> dict[str, Any]:
    """Return ``processor``, ``cores``, ``memory_gib`` (None if unknown) and ``system``."""
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
