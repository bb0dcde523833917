"""Gram matrices larger than memory, in a Zarr store: a chunk for each block, written as soon as it is computed."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone

from treegram._core.errors import ParameterError, StoreError
from treegram._core.files import only_writer
from treegram._core.machine import package_versions
from treegram._core.memory import spell_bytes
from treegram._core.parallel import send_tasks
from treegram._core.params import Whole, Words, check_value
from treegram._core.types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.fields import graphs_digest
from treegram.kernels.blocks import GramBlocks
from treegram.kernels.cluster import using
from treegram.kernels.grid import split_pipeline

__all__ = ["gram_to_zarr"]

Block = tuple[int, int]  # its row and its column of blocks


def gram_to_zarr(
    kernel: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    chunk: int = 1024,
    dtype: str = "float64",
    n_jobs: int | None = None,
    client: Any = None,
) -> Any:
    """Write the Gram matrix of graphs to a Zarr store, block by block, and open it.

    A call that was stopped, by whatever means, goes on where it was when it is repeated: only blocks that are missing or
    damaged are computed. Half of the matrix is computed, and each block written together with its mirror image.

    Parameters
    ----------
    kernel : GraphKernel or Pipeline
        The kernel, or a pipeline of transformers that ends in one. It is not changed.
    X : Graphs or list of graphs
        The graphs.
    path : str or path
        Folder of the store. One that holds another matrix is refused, and not changed.
    chunk : int, default=1024
        Rows and columns of a block. Memory is that of a few blocks for each worker, besides the graphs.
    dtype : {"float64", "float32"}, default="float64"
        Type of the numbers in the store. All is computed in double precision; "float32" takes half of the space.
    n_jobs : int or None, default=None
        Threads to use, as in joblib.
    client : distributed.Client, optional
        A Dask cluster to compute on, as ``joblib.parallel_config("dask")`` would choose it. Its workers write the blocks
        themselves: ``path`` must be in a file system that they share.

    Returns
    -------
    zarr.Array of shape (n_graphs, n_graphs)
        The matrix, read-only. ``zarr.open_group(path)`` has it under ``"gram"``, the kernels of the graphs with themselves
        before normalization under ``"self_kernels"``, and the parameters, versions and a digest of the graphs as attributes.

    Raises
    ------
    StoreError
        If the store holds another matrix, or another process is writing to it.
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
    graphs, target = as_graphs(X), Path(path)
    check_value("chunk", "gram_to_zarr", chunk, (Whole(1),))
    final = split_pipeline(kernel)[1]
    final._check_parameters()
    check_value("dtype", "gram_to_zarr", dtype, (Words("float64", "float32"),))
    numbers = np.dtype(dtype)
    record = _record(kernel, graphs, chunk) | {"dtype": dtype}
    with only_writer(target), using(client):
        store = _Store.open(target, record, len(graphs), chunk, numbers)
        missing = store.missing()
        _check_room(target, missing, chunk, numbers)
        if missing:
            shared = (GramBlocks.prepare(kernel, graphs, chunk), store)
            for some in (missing[0], missing[1]):  # the diagonal first: it has what normalization needs
                for _ in send_tasks(_write, shared, some, n_jobs=n_jobs, label="blocks"):
                    pass
    return store.gram


def _write(shared: tuple[GramBlocks, _Store], i: int, j: int) -> None:
    """Compute a block, and write it with its mirror image."""
    blocks, store = shared
    try:
        if i == j:
            K, selves = blocks.square(i)
            store.write(i, i, K)
            store.open_array("self_kernels", "r+").set_block_selection(i, selves)
        else:
            K = blocks.block(i, j, store.selves(i), store.selves(j))
            store.write(i, j, K)
            store.write(j, i, K.T)
    except OSError as error:
        raise OSError(
            f"{store.path} cannot be written ({error.strerror or error}). Finished blocks are kept: mend the cause, and repeat the call."
        ) from error


# -------------------------------------------------------------------- the store


@dataclass(frozen=True)
class _Store:
    """A Zarr group of blocks; only its path is sent to workers."""

    path: Path
    n_blocks: int

    @classmethod
    def open(cls, path: Path, record: dict[str, Any], n: int, chunk: int, dtype: np.dtype[Any]) -> _Store:
        """The store at this path, made if there is none."""
        import zarr
        from zarr.codecs import Crc32cCodec

        store = cls(path, -(-n // chunk))
        if any(path.glob("**/zarr.json")):
            store._check(record)
            return store
        group = zarr.create_group(path, zarr_format=3, overwrite=False)
        for name, shape, kind in (("gram", (n, n), dtype), ("self_kernels", (n,), np.dtype("float64"))):
            # A checksum and no compression: digits of kernel values are random.
            group.create_array(
                name,
                shape=shape,
                chunks=(chunk,) * len(shape),
                dtype=kind,
                compressors=[Crc32cCodec()],
                fill_value=np.nan,
            )
        noted = {**record, "layout": store._layout(), "versions": package_versions()}
        group.update_attributes(noted)  # last: a store without it is not begun
        return store

    @property
    def gram(self) -> Any:
        """The matrix, to read."""
        return self.open_array("gram", "r")

    def open_array(self, name: str, mode: Any) -> Any:
        """One of the two arrays."""
        import zarr

        return zarr.open_array(self.path / name, mode=mode)

    def write(self, i: int, j: int, K: Floats) -> None:
        """Write a block, under a temporary name that is then renamed, as Zarr does it."""
        self.open_array("gram", "r+").set_block_selection((i, j), K)

    def selves(self, i: int) -> Floats:
        """The kernels of a span of graphs with themselves."""
        return np.asarray(self.open_array("self_kernels", "r").get_block_selection(i))

    def missing(self) -> tuple[list[Block], list[Block]]:
        """The blocks on the diagonal and above it that are not there or are damaged, there or in their mirror image."""
        squares = [
            (i, i) for i in range(self.n_blocks) if not (self._has("gram", i, i) and self._has("self_kernels", i))
        ]
        others = [
            (i, j)
            for j in range(self.n_blocks)
            for i in range(j)
            if not (self._has("gram", i, j) and self._has("gram", j, i))
        ]
        return squares, others

    def _has(self, name: str, *place: int) -> bool:
        if not self.path.joinpath(name, "c", *map(str, place)).is_file():
            return False
        try:
            self.open_array(name, "r").get_block_selection(place)
        except (ValueError, OSError):  # a wrong length or checksum
            return False
        return True

    def _layout(self) -> str:
        """A digest of what Zarr noted about the arrays: their shapes, types and checksums."""
        texts = [(self.path / name / "zarr.json").read_bytes() for name in ("gram", "self_kernels")]
        return hashlib.sha256(b"".join(texts)).hexdigest()

    def _check(self, record: dict[str, Any]) -> None:
        import zarr

        try:
            found = dict(zarr.open_group(self.path, mode="r").attrs)
            record = {**record, "layout": self._layout()}
        except Exception as error:  # whatever the metadata of a damaged store makes Zarr raise
            raise StoreError(f"{self.path} cannot be read ({error}). Choose another path, or remove it.") from error
        for name, value in record.items():
            if found.get(name) != value:
                raise StoreError(
                    f"{self.path} holds another matrix: its {name} is {found.get(name)!r}, now it is {value!r}. Choose another path, "
                    "or remove the folder."
                )


def _record(kernel: Any, graphs: Graphs, chunk: int) -> dict[str, Any]:
    """What makes a matrix the same matrix."""
    plain = clone(kernel)
    parameters = plain.get_params()
    plain.set_params(**{name: None for name in parameters if name.rpartition("__")[2] == "n_jobs"})
    with sklearn.config_context(print_changed_only=False):
        text = " ".join(repr(plain).split())
    if " at 0x" in text:
        raise ParameterError(
            f"kernel of gram_to_zarr must not have functions as parameters, which cannot be written down; got {kernel!r}."
        )
    return {
        "kernel": text,
        "graphs": graphs_digest(graphs),
        "n_graphs": len(graphs),
        "chunk": chunk,
    }


def _check_room(path: Path, missing: tuple[list[Block], list[Block]], chunk: int, dtype: np.dtype[Any]) -> None:
    needed = (len(missing[0]) + 2 * len(missing[1])) * chunk**2 * dtype.itemsize
    free = shutil.disk_usage(path).free
    if needed > free:
        raise OSError(
            f"{path} needs {spell_bytes(needed)} more, but its disk has {spell_bytes(free)} left. Give it another disk, or "
            "dtype='float32' for half of it; Nystroem needs no matrix at all."
        )
