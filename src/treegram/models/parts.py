"""Graphs in parts: slices of a collection, chunks that are read one after another, or partitions on a Dask cluster.

Linear models of very many graphs need only a few kinds of passes over the parts: a function of each part whose results stay where
they are (``map``) or come here (``each``), and the sum of its results (``total``). The functions are pure, so that Dask computes
again what was lost with a worker.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import numpy as np
from numpy.typing import NDArray

from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs

PART = 1 << 16  # graphs; smaller chunks are joined, larger ones stay as they are
IN_MEMORY = 100_000  # graphs; rows of more are in temporary files
_SAMPLE = 50_000  # graphs that scales, ranks, bins and maps are learned on

Rows: TypeAlias = Iterable[Sequence[Any]]  # of arguments, one for each part


class Local:
    """Calls functions in this process; keeps results in memory or, with a folder, in files there."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder, self._numbers = folder, count()

    def each(self, function: Callable[..., Any], rows: Rows, *shared: Any) -> Iterator[Any]:
        """Yield function(*row, *shared) for each row of arguments, in order."""
        return (function(*map(_load, row), *shared) for row in rows)

    def map(self, function: Callable[..., Any], rows: Rows, *shared: Any) -> list[Any]:
        """Return something that stands for each of these results, as an argument of the next call."""
        return [self.keep(result) for result in self.each(function, rows, *shared)]

    def total(self, function: Callable[..., Any], rows: Rows, *shared: Any) -> tuple[Floats, ...]:
        """Return the sum of these results, which are tuples of arrays, added up as on a cluster."""
        rows = list(rows)
        return _add_pairs(self.each(function, rows, *shared), len(rows))

    def keep(self, result: Any) -> Any:
        """Return what stands for a result."""
        return result if self._folder is None else _File(Path(self._folder, str(next(self._numbers))), result)


class _File:
    """A file with a result of a call, removed with this object."""

    def __init__(self, path: Path, result: Any) -> None:
        self.path = path
        joblib.dump(result, path)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # Windows keeps a file that is mapped; it goes with the folder
            self.path.unlink()


def _load(argument: Any) -> Any:
    # Mapped arrays take no memory until they are read. Compiled loops take them as they are, since they are writable: a copy.
    return joblib.load(argument.path, mmap_mode="c") if isinstance(argument, _File) else argument


def _add_pairs(results: Iterator[tuple[Floats, ...]], n: int) -> tuple[Floats, ...]:
    """Return the sum of the next n results: of the first, as many as a power of two, and of the others."""
    if n == 1:
        return next(results)
    half = 1 << (n - 1).bit_length() - 1
    return _add(_add_pairs(results, half), _add_pairs(results, n - half))


def _add(sums: tuple[Floats, ...], others: tuple[Floats, ...] | None = None) -> tuple[Floats, ...]:
    """Return the sum of two results, which may belong to a part and must not change."""
    return sums if others is None else tuple(map(np.add, sums, others))


class Cluster(Local):
    """Calls functions on the workers of a Dask cluster, where results stay; sums come here."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client

    def map(self, function: Callable[..., Any], rows: Rows, *shared: Any) -> list[Any]:
        """Return a future for each of the results."""
        sent = [self._submit(_same, argument) for argument in shared]
        return [self._submit(function, *row, *sent) for row in rows]

    def each(self, function: Callable[..., Any], rows: Rows, *shared: Any) -> Iterator[Any]:
        """Yield the results, in order."""
        futures = self.map(function, rows, *shared)[::-1]
        while futures:
            yield futures.pop().result()

    def total(self, function: Callable[..., Any], rows: Rows, *shared: Any) -> tuple[Floats, ...]:
        """Return the sum of the results, added up in pairs on the workers."""
        futures = self.map(function, rows, *shared)
        while len(futures) > 1:
            futures = [self._submit(_add, *futures[i : i + 2]) for i in range(0, len(futures), 2)]
        return futures[0].result()

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)


def _same(argument: Any) -> Any:
    return argument


# -------------------------------------------------------------------- graphs


@dataclass(frozen=True, eq=False)
class Parts:
    """Graphs or their rows in parts, and where they are."""

    place: Local
    parts: list[Any]
    sizes: Ints  # of the parts

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the values for the graphs of each part."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def sample(self) -> Ints:
        """Return the ids of the graphs that transformers learn from, ascending: all if there are few, else random ones."""
        if len(self) <= _SAMPLE:
            return np.arange(len(self))
        return np.sort(np.random.default_rng(len(self)).choice(len(self), _SAMPLE, replace=False))

    def take(self, is_taken: NDArray[np.bool_]) -> Parts:
        """Return some of the graphs or rows."""
        masks = self.split(is_taken)
        taken = self.place.map(_take, zip(self.parts, masks, strict=True))
        return Parts(self.place, taken, np.array(list(map(np.count_nonzero, masks))))

    def select(self, ids: Ints) -> Graphs:
        """Return the graphs with these ascending ids as one collection."""
        is_taken = np.zeros(len(self), bool)
        is_taken[ids] = True
        return Graphs.concatenate(self.place.each(_take, zip(self.parts, self.split(is_taken), strict=True)))


def _take(items: Any, is_taken: NDArray[np.bool_]) -> Any:
    return items[np.flatnonzero(is_taken)]


@contextlib.contextmanager
def in_parts(graphs: Graphs | Parts) -> Iterator[Parts]:
    """Split a collection into parts; their files, and those of all results that are kept, go at the end."""
    if isinstance(graphs, Parts):
        yield graphs
        return
    with contextlib.ExitStack() as stack:
        is_large = len(graphs) > IN_MEMORY
        place = Local(stack.enter_context(_temporary_folder()) if is_large else None)
        starts = np.arange(0, len(graphs), PART)
        parts = [place.keep(graphs[start : start + PART]) for start in starts.tolist()]
        yield Parts(place, parts, np.minimum(len(graphs) - starts, PART))


def _temporary_folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="treegram-", ignore_cleanup_errors=True)


@contextlib.contextmanager
def read_chunks(chunks: Any, check: Callable[..., tuple[Graphs, NDArray[Any]]]) -> Iterator[tuple[Parts, NDArray[Any]]]:
    """Read pairs (graphs, y), or find them on a Dask cluster; return the graphs in parts, and all targets.

    ``check`` returns the graphs and targets of a pair.
    """
    if isinstance(chunks, Graphs | str) or not isinstance(chunks, Iterable):
        raise ValueError("y is missing: give one target for each graph, or chunks of graphs as pairs (graphs, y).")
    with contextlib.ExitStack() as stack:
        client = _client_of(chunks)
        if client is None:
            place = Local(stack.enter_context(_temporary_folder()))
            parts, sizes, targets = _read_parts(place, chunks, check)
        else:
            place = Cluster(client)
            pairs = place.map(_check_chunk, enumerate(client.compute(chunks)), check)
            targets = list(place.each(_second, zip(pairs, strict=True)))
            parts, sizes = place.map(_first, zip(pairs, strict=True)), list(map(len, targets))
        if not sum(sizes):
            raise ValueError("X has no graphs: it must give chunks, pairs (graphs, y), when it is iterated over.")
        if len({array.dtype.kind in "biuf" for array in targets}) > 1:
            raise ValueError("The targets of some chunks are numbers and those of others are not.")
        yield Parts(place, parts, np.array(sizes)), np.concatenate(targets)


def _client_of(chunks: Any) -> Any:
    """Return the client of a cluster for a list of futures, or of delayed objects if there is a client; else None."""
    distributed = sys.modules.get("distributed")
    if distributed is None or not isinstance(chunks, list | tuple) or not chunks:
        return None
    if isinstance(chunks[0], distributed.Future):
        return chunks[0].client
    with contextlib.suppress(ValueError):  # there is no client
        return distributed.get_client() if hasattr(chunks[0], "__dask_graph__") else None
    return None


def _read_parts(
    place: Local, chunks: Iterable[Any], check: Callable[..., tuple[Graphs, NDArray[Any]]]
) -> tuple[list[Any], list[int], list[NDArray[Any]]]:
    """Read chunks once; return the parts, their sizes, and the targets of each chunk."""
    parts: list[Any] = []
    sizes: list[int] = []
    targets: list[NDArray[Any]] = []
    waiting: list[Graphs] = []
    for number, chunk in enumerate(chunks):
        graphs, of_chunk = _check_chunk(number, chunk, check)
        targets.append(of_chunk)
        waiting.append(graphs)
        if sum(map(len, waiting)) >= PART:
            sizes.append(sum(map(len, waiting)))
            parts.append(place.keep(Graphs.concatenate(waiting)))
            waiting = []
    if waiting:
        sizes.append(sum(map(len, waiting)))
        parts.append(place.keep(Graphs.concatenate(waiting)))
    return parts, sizes, targets


def _check_chunk(
    number: int, chunk: Any, check: Callable[..., tuple[Graphs, NDArray[Any]]]
) -> tuple[Graphs, NDArray[Any]]:
    """Return the graphs and the targets of a chunk."""
    chunk = chunk.compute() if hasattr(chunk, "__dask_graph__") else chunk
    if not isinstance(chunk, tuple | list) or len(chunk) != 2:
        raise ValueError(
            f"y is missing, and X has no pairs (graphs, y): its item {number} is of type {type(chunk).__name__}. Give y, one "
            "target for each graph, or chunks of graphs with their targets."
        )
    try:
        graphs, targets = check(*chunk)
    except ValueError as error:
        error.add_note(f"This is in chunk {number}, counted from 0.")
        raise
    return graphs.assign(targets=None), targets


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]
