"""Write Gram matrices that are larger than memory to a Zarr store: one chunk per block, written as soon as it is computed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone

from treegram._core.files import check_space, only_writer, scratch_folder
from treegram._core.machine import package_versions
from treegram._core.optional import optional_module
from treegram._core.parallel import send_tasks
from treegram._core.params import Whole, Words, check_value
from treegram._core.types import Floats
from treegram.exceptions import ParameterError, StoreError
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.digest import digest_graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import split_pipeline
from treegram.pairsum.tiles import complete_gram, normalize_gram

__all__ = ["gram_to_zarr"]

_ARRAYS = ("gram", "self_kernels")
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
        Number of rows and columns of a block. Each worker needs the memory of a few blocks, in addition to the graphs.
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
    zarr = _zarr()
    graphs, folder = as_graphs(X), Path(path)
    check_value("chunk", "gram_to_zarr", chunk, (Whole(1),))
    check_value("dtype", "gram_to_zarr", dtype, (Words("float32", "float64"),))
    split_pipeline(kernel)[1]._check_parameters()
    record = _record(kernel, graphs, chunk, dtype)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise StoreError(
            f"{folder} must be a folder, or a path where there is nothing; it is a file, a link or a device."
        )
    if not folder.exists() or not any(folder.iterdir()):
        _create(folder, record)
    with only_writer(folder):
        _check_record(folder, record)
        _remove_leftovers(folder)
        diagonal, above = _find_missing(folder, -(-len(graphs) // chunk))
        check_space(folder / "gram", (len(diagonal) + 2 * len(above)) * chunk**2 * np.dtype(dtype).itemsize)
        if diagonal or above:
            blocks, fitted = _fit(kernel, graphs, chunk)
            for missing in (diagonal, above):  # the diagonal first: it has the values that normalization needs
                tasks = [(i, j, blocks[i], blocks[j]) for i, j in missing]
                list(send_tasks(_write_block, (fitted, folder), tasks, n_jobs=n_jobs, label="blocks"))
    return zarr.open_array(folder / "gram", mode="r")


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
    without_values = ("targets", "graph_names", "node_names", "positions")  # that a kernel does not see
    digest = digest_graphs(graphs, leave_out=without_values)
    return {"kernel": text, "graphs": digest, "n_graphs": len(graphs), "chunk": chunk, "dtype": dtype}


# -------------------------------------------------------------------- blocks


def _fit(kernel: Any, graphs: Graphs, chunk: int) -> tuple[list[Graphs], GraphKernel]:
    """Fit the kernel and the transformers before it; return the graphs of each row of blocks, and the kernel."""
    steps, final = split_pipeline(clone(kernel))
    for step in steps:
        graphs = step.fit_transform(graphs)
    final.fit(graphs if final.learns_from_data else graphs[:1])
    final._keep(np.arange(1))  # workers need what it has learned, not the graphs
    return [graphs[first : first + chunk] for first in range(0, len(graphs), chunk)], final


def _write_block(shared: tuple[GraphKernel, Path], i: int, j: int, rows: Graphs, columns: Graphs) -> None:
    """Compute a block, and write it with its mirror image."""
    kernel, folder = shared
    K = kernel._gram(kernel._view_graphs(rows), None if i == j else kernel._view_graphs(columns))
    try:
        if i == j:
            self_kernels = kernel._finite(K.diagonal().copy())
            complete_gram(K, self_kernels, normalize=kernel.normalize)
            _write(folder / "gram", (i, i), K)
            _write(folder / "self_kernels", (i,), self_kernels)
        else:
            if kernel.normalize:
                self_kernels = _zarr().open_array(folder / "self_kernels", mode="r")
                left, right = (np.asarray(self_kernels.get_block_selection(block)) for block in (i, j))
                normalize_gram(K, left, right, normalize=kernel.normalize)
            _write(folder / "gram", (i, j), K)
            _write(folder / "gram", (j, i), K.T)
    except OSError as error:
        raise OSError(
            f"{folder} cannot be written ({error.strerror or error}). Finished blocks are kept: fix the cause and repeat the call."
        ) from error


def _write(path: Path, block: tuple[int, ...], values: Floats) -> None:
    """Write a block of an array; Zarr writes it under a temporary name and renames it."""
    array = _zarr().open_array(path, mode="r+")
    with np.errstate(over="ignore"):
        narrowed = values.astype(array.dtype)
    if not np.isfinite(narrowed).all():
        raise ValueError(f"Some kernel values are too large for {array.dtype}: use dtype='float64', or normalize=True.")
    array.set_block_selection(block, narrowed)


# -------------------------------------------------------------------- the store


def _create(folder: Path, record: dict[str, Any]) -> None:
    """Create an empty store; its folder appears when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(folder.parent) as scratch:
        group = _zarr().create_group(scratch / "store", zarr_format=3)
        _add_arrays(group, record)
        group.update_attributes({**record, "versions": package_versions()})
        try:
            if folder.exists():
                folder.rmdir()  # it is empty
            (scratch / "store").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster, and the lock decides who writes
                raise


def _add_arrays(group: Any, record: dict[str, Any]) -> None:
    n = record["n_graphs"]
    for name, shape, dtype in (("gram", (n, n), record["dtype"]), ("self_kernels", (n,), "float64")):
        group.create_array(
            name,
            shape=shape,
            chunks=(record["chunk"],) * len(shape),
            dtype=dtype,
            compressors=[_zarr().codecs.Crc32cCodec()],  # a checksum: the digits of kernel values cannot be compressed
            fill_value=np.nan,
        )


def _check_record(folder: Path, record: dict[str, Any]) -> None:
    """Raise if this is not the store of the record, or its arrays differ in anything from those of a new store."""
    new = _zarr().create_group(_zarr().storage.MemoryStore(), zarr_format=3)
    _add_arrays(new, record)
    expected = record | {
        f"{name} {key}": value for name in _ARRAYS for key, value in new[name].metadata.to_dict().items()
    }
    try:
        for name in ("", *_ARRAYS):
            if not (folder / name / "zarr.json").is_file():  # Zarr would wait for the other end of a pipe
                raise FileNotFoundError(f"it has no {Path(name, 'zarr.json')}")
        group = _zarr().open_group(folder, mode="r")
        stored = dict(group.attrs)
        stored |= {f"{name} {key}": value for name in _ARRAYS for key, value in group[name].metadata.to_dict().items()}
    except Exception as error:  # whatever Zarr raises for damaged metadata
        raise StoreError(
            f"{folder} cannot be read as a store of gram_to_zarr ({error}). Choose another path, or remove it."
        ) from error
    for name, value in expected.items():
        if stored.get(name) != value:
            raise StoreError(
                f"{folder} holds another matrix: its {name} is {stored.get(name)!r}, now it is {value!r}. Choose another "
                "path, or remove the folder."
            )


def _remove_leftovers(folder: Path) -> None:
    """Remove chunks that a killed process left unfinished."""
    files = list(folder.rglob("*"))
    for path in files:
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise StoreError(f"{path} is a symbolic link or a device, which a store cannot contain. Remove it.")
    for path in files:
        if _LEFTOVER.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _find_missing(folder: Path, n_blocks: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the blocks (i, j) on the diagonal and those above it that are missing or damaged, here or mirrored."""
    arrays = {name: _zarr().open_array(folder / name, mode="r") for name in ("gram", "self_kernels")}

    def exists(name: str, *block: int) -> bool:
        try:
            arrays[name].get_block_selection(block)
        except (ValueError, OSError):  # a wrong length or checksum, a folder in place of a file
            return False
        return folder.joinpath(name, "c", *map(str, block)).is_file()

    diagonal = [(i, i) for i in range(n_blocks) if not (exists("gram", i, i) and exists("self_kernels", i))]
    pairs = [(i, j) for j in range(n_blocks) for i in range(j)]
    return diagonal, [(i, j) for i, j in pairs if not (exists("gram", i, j) and exists("gram", j, i))]
