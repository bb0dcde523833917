"""A Gram matrix in blocks that can be computed anywhere, each by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel, complete_gram, normalize_gram
from treegram.kernels.grid import split_pipeline

__all__ = ["GramBlocks"]


@dataclass(frozen=True)
class GramBlocks:
    """Graphs as a kernel sees them, in spans of ``size``, and the kernel with all that it learns from them."""

    kernel: GraphKernel
    graphs: Graphs
    size: int

    @classmethod
    def prepare(cls, kernel: Any, graphs: Graphs, size: int) -> Self:
        """Fit the transformers before the kernel, and the kernel itself as far as it learns from the graphs."""
        steps, final = split_pipeline(clone(kernel))
        for step in steps:
            graphs = step.fit_transform(graphs)
        final.fit(graphs if final.learns_from_data else graphs[:1])
        final._keep(np.arange(1))
        return cls(final, graphs, size)

    def __len__(self) -> int:
        return -(-len(self.graphs) // self.size)

    def span(self, i: int) -> slice:
        """The graphs of a row or column of blocks."""
        return slice(i * self.size, min((i + 1) * self.size, len(self.graphs)))

    def square(self, i: int) -> tuple[Floats, Floats]:
        """A block on the diagonal, and the kernels of its graphs with themselves before normalization."""
        K = self._sums(self._described(i), None)
        selves = self.kernel._finite(K.diagonal().copy())
        complete_gram(K, selves if self.kernel.normalize else None, self.kernel.n_jobs)
        return K, selves

    def block(self, i: int, j: int, row_selves: Floats, column_selves: Floats) -> Floats:
        """Any other block, with the kernels of its rows' and its columns' graphs with themselves."""
        return self._normalized(self._sums(self._described(i), self._described(j)), row_selves, column_selves)

    def _described(self, i: int) -> Any:
        return self.kernel._describe(self.graphs[self.span(i)], self.kernel._own_grid())

    def _sums(self, left: Any, right: Any | None) -> Floats:
        K = self.kernel._pair_sums(left, right)
        return K.reshape(K.shape[-2:])

    def _normalized(self, K: Floats, rows: Floats, columns: Floats) -> Floats:
        if self.kernel.normalize:
            normalize_gram(K, rows, columns)
        return K
