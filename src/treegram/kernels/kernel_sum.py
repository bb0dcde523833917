"""The sum of kernels, each of which may see the graphs through transformers of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from treegram._types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.kernels._base import GraphKernel, normalize_gram
from treegram.kernels._grids import GridSums, grid_lists, grid_sums, parameter_names, with_parameters
from treegram.kernels._pipelines import learns_from_data, split_pipeline
from treegram.kernels.oddcl import ODDCL
from treegram.kernels.oddst import ODDST

__all__ = ["KernelSum"]


@dataclass(frozen=True)
class _Described:
    """Graphs as one part sees them."""

    described: Any
    self_sums: Floats  # the part's kernel of each graph with itself, not normalised


class KernelSum(GraphKernel):
    r"""Sum of graph kernels: two graphs are alike when they are so in the sense of any part.

    .. math:: K(G, G') = \sum_i K_i(G, G')

    Here :math:`K_i` is what the i-th of ``kernels`` gives, normalised by itself unless its own ``normalize`` is False, so
    that all parts have the same say.

    Parameters
    ----------
    kernels : list of GraphKernel or Pipeline, or None, default=None
        The parts: kernels, and pipelines of transformers that end in a kernel. None: ODDST and ODDCL, labels and shape
        alone, and the same with the vectors.
    normalize : bool, default=True
        Whether to divide the sum by :math:`\sqrt{K(G, G) K(G', G')}`.
    n_jobs : int or None, default=None
        Threads to use in all parts, as in joblib; None leaves each part its own number.

    Attributes
    ----------
    kernels_ : list of GraphKernel or Pipeline
        The fitted parts.
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors.

    Notes
    -----
    Time is that of the parts, one after the other; of their matrices two are in memory at a time. A part that counts twice
    is listed twice.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import ODDCL, Graphs, KernelSum, ScaleAttributes
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["C", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> scaled = make_pipeline(ScaleAttributes("robust"), ODDCL())
    >>> KernelSum([ODDCL(), scaled]).set_params(depth=1).fit_transform(graphs).round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernels": [list, tuple, None],
        "normalize": ["boolean"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self, kernels: Sequence[Any] | None = None, *, normalize: bool = True, n_jobs: int | None = None
    ) -> None:
        self.kernels = kernels
        self.normalize = normalize
        self.n_jobs = n_jobs

    @property
    def learns_from_data(self) -> bool:
        """Whether any part, or a transformer before it, learns from the fitted graphs."""
        return any(learns_from_data(part) for part in self._parts())

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the sum, and any other parameter in all parts whose kernel has it.

        Parameters
        ----------
        **params : dict
            Such as ``normalize=False`` for the sum, ``depth=2`` for its parts. Parts are replaced by changed copies.

        Returns
        -------
        self
            The sum.
        """
        own = self.get_params(deep=False)
        super().set_params(**{name: value for name, value in params.items() if name in own})
        others = {name: value for name, value in params.items() if name not in own}
        if others:
            known = set().union(*(parameter_names(part) for part in self._given()))
            if unknown := sorted(others.keys() - known):
                raise ValueError(
                    f"Invalid parameter {unknown[0]!r} for KernelSum: neither the sum nor any of its parts has it. "
                    f"There are {', '.join(sorted(known | own.keys()))}."
                )
            self.kernels = [with_parameters(part, _those_of(part, others)) for part in self._given()]
        return self

    def gram_grid(self, X: Any, **lists: Any) -> Floats:
        """All Gram matrices for lists of parameters of the parts, in one pass for each part.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        **lists : sequences
            The lists that the ``gram_grid`` of the parts take, such as ``depths`` and ``lams``. A part without such a
            parameter adds the same matrix everywhere.

        Returns
        -------
        ndarray of shape (..., n_graphs, n_graphs)
            One leading axis per list, in the order in which the lists are given; each matrix is what ``fit_transform``
            gives with that value set in all parts that have it.
        """
        self._validate_params()
        known = grid_lists(self)
        if unknown := [name for name in lists if name not in known]:
            raise ValueError(
                f"No part's gram_grid takes {unknown[0]!r}; the parts take {', '.join(known) or 'no lists at all'}."
            )
        grid = {known[name]: list(np.atleast_1d(values)) for name, values in lists.items()}
        return grid_sums(self, as_graphs(X), None, grid).grams

    # ---------------------------------------------------------------- parts

    def _given(self) -> list[Any]:
        """The parts as the user gave them, checked."""
        parts = [ODDST(), ODDCL()] if self.kernels is None else list(self.kernels)
        if not parts:
            raise ValueError("kernels must hold at least one kernel; got an empty list.")
        for i, part in enumerate(parts):
            split_pipeline(part, f"kernels[{i}]")
        return parts

    def _parts(self) -> list[Any]:
        """Unfitted copies of the parts, with the sum's number of threads."""
        parts = [clone(part) for part in self._given()]
        for part in parts:
            if self.n_jobs is not None and "n_jobs" in parameter_names(part):
                split_pipeline(part)[1].set_params(n_jobs=self.n_jobs)
        return parts

    def _finals(self) -> list[GraphKernel]:
        return [split_pipeline(part)[1] for part in self.kernels_]

    # ---------------------------------------------------------------- sums

    def _remember(self, graphs: Graphs) -> None:
        self.kernels_ = [part.fit(graphs) for part in self._parts()]
        # Each part has described the graphs when it was fitted, and has summed each with itself if it normalises.
        self._described = [
            _Described(final._described, final._self_sums(final._described) if final._self is None else final._self)
            for final in self._finals()
        ]
        self.graphs_ = graphs
        self.n_attributes_in_ = graphs.n_attributes

    def _describe(self, graphs: Graphs) -> list[_Described]:
        parts = []
        for part in self.kernels_:
            steps, final = split_pipeline(part)
            seen = graphs
            for step in steps:
                seen = step.transform(seen)
            described = final._describe(seen)
            parts.append(_Described(described, final._self_sums(described)))
        return parts

    def _pair_sums(self, left: list[_Described], right: list[_Described] | None) -> Floats:
        total = np.zeros((len(left[0].self_sums), len((right or left)[0].self_sums)))
        for i, final in enumerate(self._finals()):
            K = final._pair_sums(left[i].described, None if right is None else right[i].described)
            if final.normalize and right is None:
                diagonal = K.diagonal().copy()
                normalize_gram(K, diagonal, diagonal)
            elif final.normalize and right is not None:
                normalize_gram(K, left[i].self_sums, right[i].self_sums)
            total += K
        return total

    def _self_sums(self, described: list[_Described]) -> Floats:
        total = np.zeros(len(described[0].self_sums))
        for final, part in zip(self._finals(), described, strict=True):
            total += part.self_sums > 0 if final.normalize else part.self_sums
        return total

    def _grid_sums(self, X: Graphs, X_new: Graphs | None, grid: Mapping[str, Sequence[Any]]) -> GridSums:
        """All matrices of a grid of parameters of the parts."""
        shape = tuple(len(values) for values in grid.values())
        n, n_new = len(X), 0 if X_new is None else len(X_new)
        total = GridSums(np.zeros((*shape, n, n)), np.zeros((*shape, n_new, n)), np.zeros((*shape, n_new)))
        for part in self._parts():
            own = _those_of(part, grid)
            sums = grid_sums(part, X, X_new, own)
            places = tuple(slice(None) if name in own else None for name in grid)
            for name in ("grams", "rows", "selves"):
                getattr(total, name)[...] += getattr(sums, name)[places]
        if self.normalize:
            diagonals = np.einsum("...ii->...i", total.grams).copy()
            normalize_gram(total.grams, diagonals, diagonals)
            normalize_gram(total.rows, total.selves, diagonals)
            total.selves[...] = total.selves > 0
        return total


def _those_of(part: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Of the given parameters those that the part's kernel has."""
    known = parameter_names(part)
    return {name: value for name, value in parameters.items() if name in known}
