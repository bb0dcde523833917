"""Work that cannot fit says so before it starts: which graph, how many bytes, how many there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["allocate", "available_bytes", "require", "require_gram", "require_rows", "spell_bytes"]

SMALL = 64 << 20  # bytes that are not worth a look at what there is
_WAYS_OUT = "Leave such graphs out, take smaller parameters, or a kernel whose memory grows with the edges alone, such as WL or ODDCL."


def available_bytes() -> float:
    """Bytes that can be had without swapping, within the limit of a container; infinity where the system does not say."""
    found = [float("inf")]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        stat = dict(
            line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text(encoding="ascii").splitlines()
        )
        found += [float(limit) - int(stat["anon"])] if limit != "max" else []  # caches of files make room
    except (OSError, ValueError, KeyError, IndexError):  # not Linux, or no container
        pass
    return min(found)


def require(n_bytes: float, purpose: str) -> None:
    """Raise MemoryError if so many bytes are not there. The purpose is the sentence's subject: "Graph 3: its distances"."""
    if n_bytes > SMALL and n_bytes > available_bytes():
        raise MemoryError(
            f"{purpose} would take {spell_bytes(n_bytes)} of memory; {spell_bytes(available_bytes())} are free. {_WAYS_OUT}"
        )


def require_rows(n_rows: int, n_numbers: float, copies: int = 1) -> None:
    """Raise MemoryError if the rows of features of so many graphs, so many numbers in all, do not fit so many times."""
    n_bytes = 8.0 * copies * n_numbers
    if n_bytes > SMALL and n_bytes > available_bytes():
        raise MemoryError(
            f"Rows of features for {n_rows} graphs, {n_numbers:,.0f} numbers in all, would take {spell_bytes(n_bytes)} of memory; "
            f"{spell_bytes(available_bytes())} are free. features_to_shards and embed_chunks compute them chunk by chunk; fewer "
            "components, or a smaller n_features, make them shorter."
        )


def require_gram(*shape: int, n_bytes: int = 8) -> None:
    """Raise MemoryError if a Gram matrix, or a grid of them, does not fit; the message has the ways out.

    ``n_bytes`` is what each of its numbers takes.
    """
    total = n_bytes * float(np.prod(shape, dtype=float))
    if total > SMALL and total > available_bytes():
        raise MemoryError(
            f"A Gram matrix of {' x '.join(map(str, shape))} numbers would take {spell_bytes(total)} of memory; "
            f"{spell_bytes(available_bytes())} are free. gram_to_zarr writes it to disk block by block; Nystroem, FeatureMap and "
            "ODDCLFeatures give rows for linear models, and need no matrix."
        )


def allocate(shape: int | tuple[int, ...], dtype: Any, purpose: str) -> NDArray[Any]:
    """Zeros, or a MemoryError that says what they were for."""
    n_bytes = float(np.prod(np.atleast_1d(shape), dtype=float)) * np.dtype(dtype).itemsize
    require(n_bytes, purpose)
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError):  # ValueError: more than any machine could address
        raise MemoryError(
            f"{purpose} would take {spell_bytes(n_bytes)} of memory, more than can be had. {_WAYS_OUT}"
        ) from None


def spell_bytes(n_bytes: float) -> str:
    """A number of bytes in words."""
    return f"{n_bytes / 2**30:.3g} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.3g} MiB"
