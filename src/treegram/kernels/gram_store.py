"""Write Gram matrices that are larger than memory to a Zarr store: one chunk per block, written as soon as it is computed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone

from treegram._core.errors import ParameterError, StoreError
from treegram._core.files import only_writer, scratch_folder
from treegram._core.machine import package_versions, spell_bytes
from treegram._core.optional import optional_module
from treegram._core.parallel import send_tasks
from treegram._core.params import Whole, Words, check_value
from treegram._core.types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.fields import graphs_digest
from treegram.kernels.base import GraphKernel, complete_gram, normalize_gram
from treegram.kernels.grid import split_pipeline

__all__ = ["gram_to_zarr"]

_LEFTOVER = re.compile(r"\d+\.[0-9a-f]{32}\.partial")  # a chunk that Zarr was writing when its process was killed


def gram_to_zarr(
    kernel: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    chunk: int = 1024,
    dtype: str = "float64",
    n_jobs: int | None = None,
) -> Any:
    """Write the Gram matrix of graphs to a Zarr store, block by block, and open it.

    Repeat a call that was stopped, by whatever means, to resume it: only blocks that are missing or damaged are computed.
    Half of the matrix is computed; each block is written together with its mirror image.

    Blocks are computed by threads, or by the backend that you select with ``joblib.parallel_config``, such as a Dask cluster.
    Workers write the blocks themselves: ``path`` must be in a file system that they share.

    Parameters
    ----------
    kernel : GraphKernel or Pipeline
        The kernel, or a pipeline of transformers that ends in one. It is not changed.
    X : Graphs or list of graphs
        The graphs.
    path : str or path
        Folder of the store. A folder that contains anything else, such as another matrix, is refused and not changed.
    chunk : int, default=1024
        Number of rows and columns of a block. Each worker needs the memory of a few blocks, besides the graphs.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored values, which are always computed in double precision. "float32" halves the space.
    n_jobs : int or None, default=None
        Number of parallel workers, as in joblib.

    Returns
    -------
    zarr.Array of shape (n_graphs, n_graphs)
        The matrix, read-only. ``zarr.open_group(path)`` has it under ``"gram"``, the kernel of each graph with itself before
        normalization under ``"self_kernels"``, and the parameters, versions and a digest of the graphs as attributes.

    Raises
    ------
    StoreError
        If the folder contains anything else, or another process is writing to it.
    OSError
        If the disk is too small or full.

    Examples
    --------
    >>> import tempfile
    >>> from treegram import ODDCL, gram_to_zarr, make_synthetic
    >>> graphs, _ = make_synthetic(10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     K = gram_to_zarr(ODDCL(depth=1), graphs, f"{folder}/K.zarr", chunk=4)
    ...     K[:2, :2].round(3)
    array([[1.   , 0.963],
           [0.963, 1.   ]])
    """
    _zarr()
    graphs, folder = as_graphs(X), Path(path)
    check_value("chunk", "gram_to_zarr", chunk, (Whole(1),))
    check_value("dtype", "gram_to_zarr", dtype, (Words("float32", "float64"),))
    split_pipeline(kernel)[1]._check_parameters()
    record = _record(kernel, graphs, chunk, dtype)
    store = _Store(folder, n_blocks=-(-len(graphs) // chunk))
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        store.create(record, len(graphs), chunk, dtype)
    with only_writer(folder):
        store.check(record)
        diagonal, others = store.missing()
        _check_space(folder, (len(diagonal) + 2 * len(others)) * chunk**2 * np.dtype(dtype).itemsize)
        if diagonal or others:
            blocks, fitted = _fit(kernel, graphs, chunk)
            for missing in (diagonal, others):  # the diagonal first: it has the values that normalization needs
                tasks = [(i, j, blocks[i], blocks[j]) for i, j in missing]
                for _ in send_tasks(_write_block, (fitted, store), tasks, n_jobs=n_jobs, label="blocks"):
                    pass
    return store.open_array("gram", "r")


def _zarr() -> Any:
    return optional_module("zarr", "Gram matrices on disk")


def _record(kernel: Any, graphs: Graphs, chunk: int, dtype: str) -> dict[str, Any]:
    """Return everything that the values in a store depend on."""
    plain = clone(kernel)
    plain.set_params(**{name: None for name in plain.get_params() if name.rpartition("__")[2] == "n_jobs"})
    with sklearn.config_context(print_changed_only=False):
        text = " ".join(repr(plain).split())
    if " at 0x" in text:
        raise ParameterError(
            f"kernel of gram_to_zarr must not have functions as parameters, which a store cannot record; got {kernel!r}."
        )
    return {"kernel": text, "graphs": graphs_digest(graphs), "n_graphs": len(graphs), "chunk": chunk, "dtype": dtype}


def _check_space(folder: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OSError(
            f"{folder} needs {spell_bytes(n_bytes)} more, but its disk has {spell_bytes(free)} left. Use another disk, or "
            "dtype='float32' for half of the space; Nystroem needs no matrix at all."
        )


# -------------------------------------------------------------------- blocks


def _fit(kernel: Any, graphs: Graphs, chunk: int) -> tuple[list[Graphs], GraphKernel]:
    """Fit the kernel and the transformers before it; return the graphs of each row of blocks, and the kernel."""
    steps, final = split_pipeline(clone(kernel))
    for step in steps:
        graphs = step.fit_transform(graphs)
    final.fit(graphs if final.learns_from_data else graphs[:1])
    final._keep(np.arange(1))  # workers need what it has learned, not the graphs
    return [graphs[first : first + chunk] for first in range(0, len(graphs), chunk)], final


def _write_block(shared: tuple[GraphKernel, _Store], i: int, j: int, rows: Graphs, columns: Graphs) -> None:
    """Compute a block, and write it with its mirror image."""
    kernel, store = shared
    left = kernel._describe(rows, kernel._own_grid())
    right = None if i == j else kernel._describe(columns, kernel._own_grid())
    K = kernel._pair_sums(left, right)
    K = K.reshape(K.shape[-2:])
    try:
        if i == j:
            self_kernels = kernel._finite(K.diagonal().copy())
            complete_gram(K, self_kernels, kernel._normalization)
            store.write("gram", (i, i), K)
            store.write("self_kernels", (i,), self_kernels)
        else:
            if kernel.normalize:
                normalize_gram(K, store.self_kernels(i), store.self_kernels(j), kernel._normalization)
            store.write("gram", (i, j), K)
            store.write("gram", (j, i), K.T)
    except OSError as error:
        raise OSError(
            f"{store.folder} cannot be written ({error.strerror or error}). Finished blocks are kept: fix the cause and repeat "
            "the call."
        ) from error


# -------------------------------------------------------------------- the store


@dataclass(frozen=True)
class _Store:
    """A Zarr group on disk; workers get only its path."""

    folder: Path
    n_blocks: int

    def create(self, record: dict[str, Any], n: int, chunk: int, dtype: str) -> None:
        """Create an empty store; its folder appears when it is complete."""
        zarr = _zarr()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(self.folder.parent) as scratch:
            new = _Store(scratch / "store", self.n_blocks)
            group = zarr.create_group(new.folder, zarr_format=3)
            for name, shape, kind in (("gram", (n, n), dtype), ("self_kernels", (n,), "float64")):
                # A checksum and no compression: the digits of kernel values are random.
                compressors = [zarr.codecs.Crc32cCodec()]
                chunks = (chunk,) * len(shape)
                group.create_array(
                    name, shape=shape, chunks=chunks, dtype=kind, compressors=compressors, fill_value=np.nan
                )
            group.update_attributes({**record, "layout": new._layout(), "versions": package_versions()})
            try:
                if self.folder.exists():
                    self.folder.rmdir()  # an empty folder
                new.folder.rename(self.folder)
            except OSError:
                if not self.folder.exists():  # else another process was faster
                    raise

    def check(self, record: dict[str, Any]) -> None:
        """Check that this is the store of the record, and remove chunks that a killed process has left unfinished."""
        try:
            attributes = dict(_zarr().open_group(self.folder, mode="r").attrs)
            record = {**record, "layout": self._layout()}
        except Exception as error:  # whatever Zarr raises for damaged metadata
            raise StoreError(
                f"{self.folder} cannot be read as a store of gram_to_zarr ({error}). Choose another path, or remove it."
            ) from error
        for name, value in record.items():
            if attributes.get(name) != value:
                raise StoreError(
                    f"{self.folder} holds another matrix: its {name} is {attributes.get(name)!r}, now it is {value!r}. Choose "
                    "another path, or remove the folder."
                )
        files = list(self.folder.rglob("*"))
        for path in files:
            if path.is_symlink():
                raise StoreError(f"{path} is a symbolic link, which a store cannot contain. Remove it.")
        for path in files:
            if _LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def missing(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the blocks (i, j) on the diagonal and those above it that are missing or damaged, here or mirrored."""
        diagonal = [
            (i, i) for i in range(self.n_blocks) if not (self._has("gram", i, i) and self._has("self_kernels", i))
        ]
        others = [
            (i, j)
            for j in range(self.n_blocks)
            for i in range(j)
            if not (self._has("gram", i, j) and self._has("gram", j, i))
        ]
        return diagonal, others

    def open_array(self, name: str, mode: Any) -> Any:
        """Open one of the two arrays."""
        return _zarr().open_array(self.folder / name, mode=mode)

    def write(self, name: str, block: tuple[int, ...], values: Floats) -> None:
        """Write a block; Zarr writes it under a temporary name and renames it."""
        array = self.open_array(name, "r+")
        with np.errstate(over="ignore"):
            narrowed = values.astype(array.dtype)
        if not np.isfinite(narrowed).all():
            raise ValueError(
                f"Some kernel values are too large for {array.dtype}: use dtype='float64', or normalize=True."
            )
        array.set_block_selection(block, narrowed)

    def self_kernels(self, i: int) -> Floats:
        """Return the kernels of the graphs of a row of blocks with themselves."""
        return np.asarray(self.open_array("self_kernels", "r").get_block_selection(i))

    def _has(self, name: str, *block: int) -> bool:
        if not self.folder.joinpath(name, "c", *map(str, block)).is_file():
            return False
        try:
            self.open_array(name, "r").get_block_selection(block)
        except (ValueError, OSError):  # a wrong length or checksum
            return False
        return True

    def _layout(self) -> str:
        """Return a digest of Zarr's metadata of both arrays: their shapes, types and checksums."""
        texts = [(self.folder / name / "zarr.json").read_bytes() for name in ("gram", "self_kernels")]
        return hashlib.sha256(b"".join(texts)).hexdigest()
