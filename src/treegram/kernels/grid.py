"""All Gram matrices of a grid of parameters, for any kernel, in as few passes as the kernel can.

A pass takes many values of the kernel's one-pass parameters, and one value of any other. A pipeline's transformers are fitted
once, since the grid is one of the kernel alone. New graphs may come along: a kernel is fitted on the old ones, and compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from treegram._core.errors import ParameterError
from treegram._core.params import check_value
from treegram._core.text import suggest
from treegram._core.types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.pipelines import split_pipeline

__all__ = ["Grid", "GridValues", "gram_grids", "grid_values", "parameter_names", "with_parameters"]

Grid: TypeAlias = Mapping[str, Sequence[Any]]
Positions: TypeAlias = dict[str, list[int]]  # for each parameter, which of its values


@dataclass(frozen=True)
class GridValues:
    """Kernel values with one leading axis for each list of a grid, in the order of the grid."""

    grams: Floats  # (..., n_graphs, n_graphs)
    rows: Floats  # (..., n_new, n_graphs): new graphs with the fitted ones
    selves: Floats  # (..., n_new): new graphs with themselves

    def arranged(self, order: Sequence[int], *, n_kept: int) -> Self:
        """Leading axes in another order, without those behind the first ``n_kept``, which have one position."""
        arrays = []
        for array in (self.grams, self.rows, self.selves):
            moved = array.transpose([*order, *range(len(order), array.ndim)])
            arrays.append(moved.reshape(moved.shape[:n_kept] + moved.shape[len(order) :]))
        return type(self)(*arrays)


def parameter_names(kernel: Any) -> set[str]:
    """The parameters that a grid may name: the kernel's own, and for a sum those of its parts."""
    return set(split_pipeline(kernel)[1]._grid_names())


def with_parameters(kernel: Any, values: Mapping[str, Any]) -> Any:
    """A copy of a kernel or pipeline with other values of the kernel's parameters."""
    if not hasattr(kernel, "steps"):
        return split_pipeline(kernel)[1]._with(values)
    copy = clone(kernel)
    copy.steps[-1] = (copy.steps[-1][0], with_parameters(copy.steps[-1][1], values))
    return copy


def grid_values(kernel: Any, X: Graphs, X_new: Graphs | None, grid: Grid) -> GridValues:
    """All matrices of a grid at once; without new graphs rows and selves are empty."""
    final, X, X_new = _prepare(kernel, X, X_new, grid)
    shape = tuple(len(values) for values in grid.values())
    whole: GridValues | None = None
    for values, positions in _passes(final, X, X_new, grid):
        if tuple(len(some) for some in positions.values()) == shape:
            return values
        if whole is None:
            n_axes = len(shape)
            pieces = (values.grams, values.rows, values.selves)
            whole = GridValues(*(np.empty(shape + piece.shape[n_axes:]) for piece in pieces))
        at = np.ix_(*positions.values())
        whole.grams[at], whole.rows[at], whole.selves[at] = values.grams, values.rows, values.selves
    assert whole is not None  # every list has a value
    return whole


def gram_grids(kernel: Any, X: Any, grid: Grid, X_new: Any = None) -> Any:
    """The Gram matrix of X for each point of a grid.

    Parameters
    ----------
    kernel : GraphKernel or Pipeline
        A kernel, or a pipeline of transformers that ends in one. It is not changed.
    X : Graphs or list of graphs
        The graphs.
    grid : mapping of str to sequence
        Values for parameters of the kernel; for a sum, for parameters of its parts. May be empty.
    X_new : Graphs or list of graphs, optional
        Graphs to compare with those in X, for a kernel fitted on X alone.

    Returns
    -------
    parameters : list of dict
        The points of the grid: the last parameter changes fastest.
    grams : list of ndarray of shape (n_graphs, n_graphs)
        For each point what ``fit_transform(X)`` gives.
    rows : list of ndarray of shape (n_new, n_graphs)
        Only with ``X_new``: for each point what ``transform(X_new)`` then gives.

    Notes
    -----
    All matrices are in memory at once, as views of one array: copy what must outlive the others.
    """
    values = grid_values(kernel, as_graphs(X), None if X_new is None else as_graphs(X_new), grid)
    points = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
    places = list(np.ndindex(*(len(some) for some in grid.values())))
    grams = [values.grams[place] for place in places]
    return (points, grams) if X_new is None else (points, grams, [values.rows[place] for place in places])


def _prepare(kernel: Any, X: Graphs, X_new: Graphs | None, grid: Grid) -> tuple[Any, Graphs, Graphs | None]:
    """The kernel itself, and the graphs as the transformers before it, fitted on X, let it see them."""
    steps, final = split_pipeline(kernel)
    _check_grid(final, grid)
    for step in steps:
        fitted = clone(step)
        X = fitted.fit_transform(X)
        X_new = None if X_new is None else fitted.transform(X_new)
    return final, X, X_new


def _check_grid(kernel: Any, grid: Mapping[str, Any]) -> None:
    known = kernel._grid_names()
    for name, values in grid.items():
        if name not in known:
            raise ParameterError(
                f"{type(kernel).__name__} has no parameter {name!r}{suggest(name, known) or '.'} "
                f"Valid parameters are {', '.join(sorted(known))}."
            )
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
            raise ParameterError(f"The grid's {name} must be a list of at least one value; got {values!r}.")
        for owner, allowed in kernel._grid_allowed(name):
            for i, value in enumerate(values):
                check_value(f"{name}[{i}]", owner, value, allowed)


def _passes(kernel: Any, X: Graphs, X_new: Graphs | None, grid: Grid) -> Iterator[tuple[GridValues, Positions]]:
    """The values of each pass, and the positions in the lists that they are for."""
    varies = kernel._grid_names()
    looped = {name: values for name, values in grid.items() if not varies[name]}
    together = {name: values for name, values in grid.items() if varies[name]}
    for point in product(*(range(len(values)) for values in looped.values())):
        fixed = dict(zip(looped, point, strict=True))
        one = kernel._with({name: looped[name][i] for name, i in fixed.items()})
        one._check_parameters()
        for part in one._separate(X, together):
            lists = {name: [together[name][i] for i in some] for name, some in part.items()}
            values = one._grid_pass(X, X_new, lists)
            positions = {name: part[name] if name in part else [fixed[name]] for name in grid}
            yield _with_all_axes(values, list(part), list(grid)), positions


def _with_all_axes(values: GridValues, present: list[str], wanted: list[str]) -> GridValues:
    """One leading axis for each wanted name; those not present get an axis of one position."""
    order = [present.index(name) for name in wanted if name in present]
    values = values.arranged(order, n_kept=len(order))
    axes = tuple(i for i, name in enumerate(wanted) if name not in present)
    return GridValues(*(np.expand_dims(array, axes) for array in (values.grams, values.rows, values.selves)))
