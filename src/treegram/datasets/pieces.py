"""Streams of graphs that are read piece by piece: in order, or shuffled so that each chunk is mixed from all over a file."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from treegram._core.types import Ints
from treegram.graphs import Graphs

__all__ = ["Pieces"]

PIECES_PER_CHUNK = 16  # shuffled: a chunk is made of so many stretches of the files


class Pieces(ABC):
    """Base of streams: which graphs each chunk has. A subclass calls ``_cut`` once, and reads pieces."""

    n_graphs: int

    def __init__(self, chunk_size: Any, *, shuffle: bool, random_state: Any) -> None:
        if not isinstance(chunk_size, int | np.integer) or chunk_size < 1:
            shown = chunk_size.item() if isinstance(chunk_size, np.generic) else chunk_size
            raise ValueError(f"chunk_size must be a whole number of at least 1; got {shown!r}.")
        self.chunk_size: int = int(chunk_size)
        self.shuffle, self.random_state = shuffle, random_state

    def _cut(self, n_graphs: int) -> None:
        """Note at which graph each piece starts."""
        self.n_graphs = n_graphs
        size = max(1, self.chunk_size // PIECES_PER_CHUNK) if self.shuffle else self.chunk_size
        self._graphs = np.append(np.arange(0, n_graphs, size), n_graphs)

    def __len__(self) -> int:
        """Number of chunks."""
        return -(-(len(self._graphs) - 1) // self._pieces_per_chunk)

    def __iter__(self) -> Iterator[Graphs]:
        order = self._order()
        return (self._read_chunk(order, i) for i in range(len(self)))

    def __getitem__(self, i: int) -> Graphs:
        """One chunk; of a shuffled stream only if ``random_state`` is a number, so that the order is always the same."""
        if not 0 <= i < len(self):
            raise IndexError(f"There are {len(self)} chunks; got {i}.")
        if self.shuffle and not isinstance(self.random_state, int | np.integer):
            raise ValueError(f"A chunk of a shuffled stream needs a number as random_state; got {self.random_state!r}.")
        return self._read_chunk(self._order(), i)

    def digest(self) -> str:
        """SHA-256 of the files and of how they are cut into chunks.

        Returns
        -------
        str
            The digest, in hexadecimal digits.
        """
        whole = hashlib.sha256(repr((self.chunk_size, self.shuffle, self.random_state)).encode())
        for file in self._files:
            with file.open("rb") as content:
                whole.update(hashlib.file_digest(content, "sha256").digest())
        return whole.hexdigest()

    def _order(self) -> Ints:
        order = np.arange(len(self._graphs) - 1)
        return check_random_state(self.random_state).permutation(order) if self.shuffle else order

    def _read_chunk(self, order: Ints, i: int) -> Graphs:
        chosen = order[i * self._pieces_per_chunk : (i + 1) * self._pieces_per_chunk]
        return Graphs.concatenate([self._read_piece(piece) for piece in chosen.tolist()])

    @property
    def _pieces_per_chunk(self) -> int:
        return min(PIECES_PER_CHUNK, self.chunk_size) if self.shuffle else 1

    @abstractmethod
    def _read_piece(self, i: int) -> Graphs:
        """One piece as a collection."""

    @property
    @abstractmethod
    def _files(self) -> list[Path]:
        """The files that are read, in an order that is always the same."""
