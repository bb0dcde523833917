"""Gram matrices on disk: the matrix, the order of its graphs, and how it was made, complete or not there at all.

``K.npz`` holds ``K``, ``graph_ids`` (the original position of each row's graph), ``y`` where there are targets, and
``meta``, a JSON text. ``K.npy`` holds the matrix alone; ``K.json`` beside it has the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_space", "check_target", "replacing", "write_gram"]

_ENDINGS = (".npz", ".npy")
_MARGIN = 1 << 20  # bytes that the rest of a file may need


def check_target(path: Path, *, overwrite: bool) -> None:
    """Raise if a Gram matrix cannot be written to this path, so that nobody computes for an hour in vain."""
    if path.suffix not in _ENDINGS:
        raise ValueError(f"The output file must end in {' or '.join(_ENDINGS)}; got {str(path)!r}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} of the output file does not exist; make it first.")
    for file in _files(path):
        if file.is_dir():
            raise IsADirectoryError(f"{file} is a folder; the output must be a file.")
        if file.exists() and not overwrite:
            raise FileExistsError(f"{file} exists already; give --force to replace it, or another name.")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise PermissionError(f"The folder {path.parent} cannot be written to ({error.strerror}).") from error


def check_space(path: Path, n_bytes: int) -> None:
    """Raise if the disk has no room for so many bytes."""
    free = shutil.disk_usage(path.parent).free
    if n_bytes + _MARGIN > free:
        raise OSError(f"{path} would need {n_bytes / 1e9:.3g} GB, but the disk has only {free / 1e9:.3g} GB left.")


def write_gram(path: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
    """Write the arrays (``K`` is one of them) and the meta data; on any error no file is left or changed."""
    if path.suffix == ".npz":
        with replacing(path) as file:
            content: dict[str, Any] = {**arrays, "meta": np.array(json.dumps(meta))}
            np.savez(file, **content)
        return
    matrix, beside = _files(path)
    rest = {name: array.tolist() for name, array in arrays.items() if name != "K"}
    with replacing(matrix) as file, replacing(beside) as text:
        np.save(file, arrays["K"], allow_pickle=False)
        text.write(json.dumps({**meta, **rest}).encode())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes its place, and that of an older one, only when all has gone well."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _files(path: Path) -> tuple[Path, ...]:
    return (path,) if path.suffix == ".npz" else (path, path.with_suffix(".json"))
