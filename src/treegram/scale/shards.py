"""Rows of features for graphs that do not fit into memory: computed chunk by chunk by any workers, kept as files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from treegram._files import only_writer, replacing
from treegram._parallel import send_tasks
from treegram.errors import StoreError
from treegram.graphs import as_graphs
from treegram.persistence import model_digest
from treegram.persistence._states import graphs_digest
from treegram.scale._cluster import using

__all__ = ["Shards", "features_to_shards"]

_RECORD = "shards.json"


class Chunks(Protocol):
    """Collections of graphs by number: a list of them, or a stream such as TUChunks."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> Any: ...


class Shards:
    """Rows of features in the files of a folder, one file for each chunk of graphs, in the order of the chunks.

    Iterating gives the rows and targets of one chunk after the other, as :func:`embed_chunks` does, as often as needed; so do
    positions: ``shards[3]``. :func:`fit_chunks` takes it in the place of chunks, with ``features=None``.

    Parameters
    ----------
    path : str or path
        The folder that :func:`features_to_shards` has written.

    Attributes
    ----------
    path : Path
        The folder.
    classes : ndarray or None
        The distinct targets, sorted, where the graphs have any.

    Raises
    ------
    StoreError
        If the folder has no shards, or not all of them.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._record = _read_record(self.path)
        missing = [i for i in range(len(self)) if not _file(self.path, i).is_file()]
        if missing:
            raise StoreError(
                f"{self.path} has {len(self) - len(missing)} of {len(self)} shards. Call features_to_shards again: it computes the "
                "missing ones."
            )
        classes = self._record["classes"]
        self.classes: NDArray[Any] | None = None if classes is None else np.array(classes)

    def __len__(self) -> int:
        """Number of shards."""
        return int(self._record["n_shards"])

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> tuple[Any, NDArray[Any] | None]:
        if not 0 <= i < len(self):
            raise IndexError(f"{self.path} has {len(self)} shards; got {i}.")
        file = _file(self.path, i)
        try:
            return _read(file)
        except Exception as error:  # cut or changed: zip, zlib, numpy and scipy each raise their own
            raise StoreError(
                f"{file} is damaged ({error}). Call features_to_shards again: it computes this shard anew."
            ) from error


def features_to_shards(
    features: Any,
    chunks: Chunks,
    path: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    client: Any = None,
) -> Shards:
    """Compute the rows of chunks of graphs by any number of workers, and keep each chunk's rows in a file.

    A call that was stopped, by whatever means, goes on where it was when it is repeated. The files do not depend on how many
    workers wrote them.

    Parameters
    ----------
    features : fitted transformer
        :class:`ODDCLFeatures`, :class:`FeatureMap`, :class:`Landmarks`, or a pipeline of transformers that ends in one.
    chunks : TUChunks, or a sequence of Graphs
        The graphs. Workers read the chunks themselves: files must be where they can reach them.
    path : str or path
        Folder for the files. One with other rows is refused, and not changed.
    n_jobs : int or None, default=None
        Threads to use, as in joblib.
    client : distributed.Client, optional
        A Dask cluster to compute on, as ``joblib.parallel_config("dask")`` would choose it. Its workers write the files
        themselves: ``path`` must be in a file system that they share.

    Returns
    -------
    Shards
        The rows.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import SGDClassifier
    >>> from treegram import ODDCLFeatures, features_to_shards, fit_chunks, make_synthetic
    >>> graphs, y = make_synthetic(20, random_state=0)
    >>> features = ODDCLFeatures(depth=1, method="orf", n_components=32, n_features=256).fit(graphs)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = features_to_shards(features, [graphs[::2], graphs[1::2]], folder)
    ...     model = fit_chunks(SGDClassifier(random_state=0), None, shards)
    >>> model.predict(features.transform(graphs)).shape
    (20,)
    """
    check_is_fitted(features)
    folder = Path(path)
    record = _record(features, chunks)
    with only_writer(folder), using(client):
        _begin(folder, record)
        missing = [(i,) for i in range(len(chunks)) if not _is_whole(_file(folder, i))]
        for _ in send_tasks(_write, (features, chunks, folder), missing, n_jobs=n_jobs, label="shards"):
            pass
    return Shards(folder)


def _write(shared: tuple[Any, Chunks, Path], i: int) -> None:
    features, chunks, folder = shared
    graphs = as_graphs(chunks[i])
    rows = sp.csr_matrix(features.transform(graphs))
    arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
    if graphs.targets is not None:
        arrays["y"] = graphs.targets
    with replacing(_file(folder, i)) as file:
        np.savez(file, **arrays)


def _file(folder: Path, i: int) -> Path:
    return folder / f"{i:06d}.npz"


def _read(file: Path) -> tuple[Any, NDArray[Any] | None]:
    with (
        file.open("rb") as content,
        np.load(content, allow_pickle=False) as arrays,
    ):  # the zip has a checksum of each array
        rows = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        return rows, arrays.get("y")


def _is_whole(file: Path) -> bool:
    try:
        _read(file)
    except Exception:  # missing, cut or changed: zip, zlib, numpy and scipy each raise their own
        return False
    return True


# -------------------------------------------------------------------- the record


def _record(features: Any, chunks: Chunks) -> dict[str, Any]:
    """What makes the files the same files."""
    classes = chunks.classes if hasattr(chunks, "classes") else _classes_of(chunks)
    return {
        "features": model_digest(features),
        "graphs": chunks.digest() if hasattr(chunks, "digest") else _digest_of(chunks),
        "n_shards": len(chunks),
        "classes": None if classes is None else classes.tolist(),
    }


def _classes_of(chunks: Chunks) -> NDArray[Any] | None:
    targets = [
        y for y in (as_graphs(chunk).targets for chunk in map(chunks.__getitem__, range(len(chunks)))) if y is not None
    ]
    return np.unique(np.concatenate(targets)) if targets and len(targets) == len(chunks) else None


def _digest_of(chunks: Chunks) -> str:
    whole = hashlib.sha256()
    for chunk in map(chunks.__getitem__, range(len(chunks))):
        whole.update(graphs_digest(as_graphs(chunk)).encode())
    return whole.hexdigest()


def _begin(folder: Path, record: dict[str, Any]) -> None:
    if not (folder / _RECORD).exists():
        with replacing(folder / _RECORD) as file:
            file.write(json.dumps(record).encode())
        return
    found = _read_record(folder)
    for name in ("features", "graphs", "n_shards"):
        if found[name] != record[name]:
            raise StoreError(
                f"{folder} holds other rows: they are of other {name.replace('n_', '')}. Choose another path, or remove the folder."
            )


def _read_record(folder: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        if set(record) != {"features", "graphs", "n_shards", "classes"} or not 0 <= record["n_shards"] < 10**6:
            raise ValueError("it is not complete")
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{folder} has no shards that can be read: {_RECORD} cannot be used ({error}).") from error
    return record
