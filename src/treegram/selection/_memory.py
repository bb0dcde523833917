"""Whether Gram matrices fit into memory, said before the work begins."""

from __future__ import annotations

from pathlib import Path

__all__ = ["HELD_AT_ONCE", "available_bytes", "check_memory"]

HELD_AT_ONCE = 2**30  # bytes of Gram matrices that a search holds at once; one matrix where a single one is larger
_COPIES = 3  # a matrix, one more while it is made, and its parts in the folds


def check_memory(n_graphs: int) -> None:
    """Raise if a search over so many graphs would not fit, however few Gram matrices it holds at once."""
    needed = _COPIES * 8 * n_graphs**2
    available = available_bytes()
    if available is not None and needed > available:
        raise MemoryError(
            f"A search over {n_graphs:,} graphs needs {_gib(needed)} for Gram matrices, {_COPIES} of {n_graphs:,} x "
            f"{n_graphs:,} numbers; {_gib(available)} is available. Fit on fewer graphs, or use ODDCLFeatures with a linear "
            "model, which needs no Gram matrix."
        )


def available_bytes() -> int | None:
    """Memory that can be had without swapping, within the limit of a container; None where the system does not say."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        stat = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
        found += [int(limit) - int(stat["anon"])] if limit != "max" else []  # caches of files make room
    except (OSError, ValueError, KeyError, IndexError):
        pass
    return min(found, default=None)


def _gib(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"
