"""Gram matrices on disk: the matrix, the order of its graphs, and how it was made, complete or not there at all.

``K.npz`` holds ``K``, ``graph_ids`` (the original position of each row's graph), ``y`` where there are targets, and
``meta``, a JSON text. ``K.npy`` holds the matrix alone; ``K.json`` beside it has the rest, and the SHA-256 digest of
``K.npy``. A ``K.json`` that is there always describes the matrix beside it, even after a kill.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.files import check_writable, replacing, sync, sync_folder

__all__ = ["check_target", "write_gram"]

_ENDINGS = (".npz", ".npy")


def check_target(path: Path, *, overwrite: bool) -> None:
    """Raise if a Gram matrix cannot be written to this path, or may not be."""
    if path.suffix not in _ENDINGS:
        raise ValueError(f"The output file must end in {', '.join(_ENDINGS)} or .zarr; got {str(path)!r}.")
    for file in (path, path.with_suffix(".json")) if path.suffix == ".npy" else (path,):
        check_writable(file)
        if file.exists() and not overwrite:
            raise FileExistsError(f"{file} exists already; give --force to replace it, or another name.")


def write_gram(path: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
    """Write the arrays (``K`` is one of them) and the meta data; on any error no file is left or changed."""
    if path.suffix == ".npz":
        with replacing(path) as file:
            content: dict[str, Any] = {**arrays, "meta": np.array(json.dumps(meta))}
            np.savez(file, **content)
    else:
        _write_pair(path, arrays, meta)


def _write_pair(path: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
    """Write ``K.npy``, then ``K.json``, with no moment at which the JSON of one matrix lies beside another."""
    beside = path.with_suffix(".json")
    rest = {name: array.tolist() for name, array in arrays.items() if name != "K"}
    with replacing(beside) as text, replacing(path) as file:
        np.save(file, arrays["K"], allow_pickle=False)
        sync(file)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        text.write(json.dumps({**meta, **rest, "sha256": digest}).encode())
        sync(text)
        # All is on the disk. The old JSON goes before the matrix is replaced, the new one comes after it.
        beside.unlink(missing_ok=True)
        sync_folder(path.parent)
