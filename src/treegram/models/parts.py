"""Graphs in parts: slices of a collection, chunks that are read one after another, or partitions on a Dask cluster.

Linear models of very many graphs need only a few kinds of passes over the parts: a function of each part whose results stay where
they are (``map``) or come here (``each``), and the sum of its results (``total``). The functions are pure, so that Dask computes
again what was lost with a worker.

In one process all parts but the last have `PART` graphs, however the graphs were cut into chunks, and sums are added up in a fixed
order: chunks give the same bits as one collection. Partitions on a cluster stay as they are, so that sums differ in the last bits.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from numbers import Number
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import numpy as np

from treegram._core.parallel import track
from treegram._core.types import Array, Floats, Ints
from treegram.graphs import Graphs
from treegram.graphs.build import check_joinable

PART = 1 << 16  # graphs of a part
IN_MEMORY = 100_000  # graphs; rows of more are in temporary files
_SAMPLE = 50_000  # graphs that scales, ranks, bins and maps are learned on

Rows: TypeAlias = Iterable[Sequence[Any]]  # of arguments, one for each part
Pair: TypeAlias = tuple[Graphs, Array]  # graphs and their targets


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
        with warnings.catch_warnings():
            # Coefficients go to the workers once in a pass. Unlike scattered ones, they are not lost with a worker.
            warnings.filterwarnings("ignore", "Sending large graph")
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

    def __getitem__(self, ids: Ints) -> Parts:
        """Return the graphs or rows with these ascending ids."""
        of_parts = self._in_parts(ids)
        taken = self.place.map(_take, zip(self.parts, of_parts, strict=True))
        return Parts(self.place, taken, np.array([len(of_part) for of_part in of_parts]))

    def split(self, values: Array) -> list[Array]:
        """Return the values for the graphs of each part."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def sample(self) -> Ints:
        """Return the ids of the graphs that transformers learn from, ascending: all if there are few, else random ones."""
        if len(self) <= _SAMPLE:
            return np.arange(len(self))
        return np.sort(np.random.default_rng(len(self)).choice(len(self), _SAMPLE, replace=False))

    def gather(self, ids: Ints) -> Graphs:
        """Return the graphs with these ascending ids as one collection."""
        return Graphs.concatenate(self.place.each(_take, zip(self.parts, self._in_parts(ids), strict=True)))

    def _in_parts(self, ids: Ints) -> list[Ints]:
        """Return the positions of some graphs within each part."""
        ends = np.cumsum(self.sizes)
        cuts = np.searchsorted(ids, ends)[:-1]
        return [of_part - start for of_part, start in zip(np.split(ids, cuts), ends - self.sizes, strict=True)]


def _take(items: Any, ids: Ints) -> Any:
    return items[ids]


@contextlib.contextmanager
def in_parts(graphs: Graphs | Parts) -> Iterator[Parts]:
    """Split a collection into parts; their files, and those of all results that are kept, go at the end."""
    if isinstance(graphs, Parts):
        yield graphs
        return
    with contextlib.ExitStack() as stack:
        is_large = len(graphs) > IN_MEMORY
        yield _keep_parts(Local(stack.enter_context(_temporary_folder()) if is_large else None), [graphs])


def _keep_parts(place: Local, collections: Iterable[Graphs]) -> Parts:
    """Join collections and cut them into parts, in order; as little as possible is in memory at the same time."""
    parts, sizes = [], []
    for part in _cut(collections):
        sizes.append(len(part))
        parts.append(place.keep(part))
    return Parts(place, parts, np.array(sizes, np.int64))


def _cut(collections: Iterable[Graphs]) -> Iterator[Graphs]:
    waiting: list[Graphs] = []
    n_waiting = 0
    for graphs in collections:
        start = 0
        while n_waiting + len(graphs) - start > PART:
            stop = start + PART - n_waiting
            yield Graphs.concatenate([*waiting, graphs[start:stop]])
            start, waiting, n_waiting = stop, [], 0
        waiting.append(graphs[start:] if start else graphs)
        n_waiting += len(graphs) - start
    if waiting:
        yield Graphs.concatenate(waiting)


def _temporary_folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="treegram-", ignore_cleanup_errors=True)


# -------------------------------------------------------------------- chunks


@contextlib.contextmanager
def read_chunks(chunks: Any, check: Callable[..., Pair]) -> Iterator[tuple[Parts, Array]]:
    """Read pairs (graphs, y), or find them on a Dask cluster; return the graphs in parts, and all targets.

    ``check`` returns the graphs and targets of a pair. Chunks without graphs are left out.
    """
    if isinstance(chunks, Graphs | str) or not isinstance(chunks, Iterable):
        raise ValueError("y is missing: give one target for each graph, or chunks of graphs as pairs (graphs, y).")
    targets: dict[int, Array] = {}  # by the number of the chunk
    with contextlib.ExitStack() as stack:
        client = _client_of(chunks)
        if client is None:
            place = Local(stack.enter_context(_temporary_folder()))
            parts = _keep_parts(place, _read(chunks, check, targets))
        else:
            place = Cluster(client)
            pairs = place.map(_check_chunk, enumerate(client.compute(chunks)), check)
            of_all = track(place.each(itemgetter(1), zip(pairs, strict=True)), len(pairs), "reading partitions")
            targets |= {number: of_chunk for number, of_chunk in enumerate(of_all) if len(of_chunk)}
            full = [(pairs[number],) for number in targets]
            parts = Parts(place, place.map(itemgetter(0), full), np.array(list(map(len, targets.values())), np.int64))
        if not targets:
            raise ValueError("X has no graphs: it must give chunks, pairs (graphs, y), when it is iterated over.")
        yield parts, _join_targets(targets)


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


def _read(chunks: Iterable[Any], check: Callable[..., Pair], targets: dict[int, Array]) -> Iterator[Graphs]:
    """Yield the graphs of each chunk, and put its targets into a dictionary."""
    first = None
    n_chunks = len(chunks) if isinstance(chunks, list | tuple) else None
    for number, chunk in enumerate(track(chunks, n_chunks, "reading chunks")):
        graphs, of_chunk = _check_chunk(number, chunk, check)
        if not len(graphs):
            continue
        first = graphs if first is None else first
        try:
            check_joinable([first, graphs])
        except ValueError as error:
            error.add_note(f"Part 0 is the first chunk with graphs, and part 1 is chunk {number}, counted from 0.")
            raise
        targets[number] = of_chunk
        yield graphs


def _check_chunk(number: int, chunk: Any, check: Callable[..., Pair]) -> Pair:
    """Return the graphs and the targets of a chunk."""
    chunk = chunk.compute() if hasattr(chunk, "__dask_graph__") else chunk
    if not isinstance(chunk, tuple | list) or len(chunk) != 2:
        raise ValueError(
            f"y is missing, and X has no pairs (graphs, y): its item {number} is of type {type(chunk).__name__}. Give y, one "
            "target for each graph, or chunks of graphs with their targets."
        )
    try:
        graphs, targets = check(*chunk)
    except (TypeError, ValueError) as error:
        error.add_note(f"This is in chunk {number}, counted from 0.")
        raise
    return graphs.assign(targets=None), targets


def _join_targets(targets: dict[int, Array]) -> Array:
    """Return the targets of all chunks; raise if some are numbers and others are not, which numpy would turn into texts."""
    of_numbers = [number for number, of_chunk in targets.items() if isinstance(of_chunk[0], Number | np.bool_)]
    others = sorted(targets.keys() - set(of_numbers))
    if of_numbers and others:
        raise ValueError(
            f"y must be numbers in all chunks or in none; got numbers in chunk {of_numbers[0]}, and in chunk {others[0]}, "
            f"counted from 0, {str(targets[others[0]][0])!r}."
        )
    return np.concatenate(list(targets.values()))
