"""All Gram matrices of a grid of parameters, for any kernel, at the least cost that the kernel allows.

Lists that a kernel's ``gram_grid`` takes need one pass together; every other list of the grid is a plain loop. A pipeline's
transformers are fitted once, since the grid is one of the kernel alone; a sum asks its parts. New graphs may come along:
a kernel that learns nothing from data then sees old and new graphs in one pass, any other is fitted on the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from typing import Any, overload

import numpy as np
from sklearn.base import clone

from treegram._types import Floats
from treegram.graphs import Graphs, as_graphs
from treegram.kernels._base import GraphKernel
from treegram.kernels._pipelines import split_pipeline

__all__ = ["GridSums", "gram_grids", "grid_lists", "grid_sums", "parameter_names", "with_parameters"]

Parameters = dict[str, Any]


@overload
def gram_grids(
    kernel: Any, X: Any, grid: Mapping[str, Sequence[Any]], X_new: None = None
) -> tuple[list[Parameters], list[Floats]]: ...
@overload
def gram_grids(
    kernel: Any, X: Any, grid: Mapping[str, Sequence[Any]], X_new: Any
) -> tuple[list[Parameters], list[Floats], list[Floats]]: ...
def gram_grids(kernel: Any, X: Any, grid: Mapping[str, Sequence[Any]], X_new: Any = None) -> Any:
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
    All matrices are in memory at once, most of them as views of one array: copy what must outlive the others.
    """
    sums = grid_sums(kernel, as_graphs(X), None if X_new is None else as_graphs(X_new), grid)
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    places = list(np.ndindex(*(len(values) for values in grid.values())))
    grams = [sums.grams[place] for place in places]
    return (points, grams) if X_new is None else (points, grams, [sums.rows[place] for place in places])


# -------------------------------------------------------------------- what a kernel offers


def parameter_names(kernel: Any) -> set[str]:
    """The parameters that a grid may name: the kernel's own, and for a sum those of its parts."""
    final = split_pipeline(kernel)[1]
    return set(final.get_params(deep=False)).union(*(parameter_names(part) for part in _parts(final)))


def grid_lists(kernel: Any) -> dict[str, str]:
    """The lists that the kernel's ``gram_grid`` takes, each with the parameter in whose place its values stand."""
    final = split_pipeline(kernel)[1]
    if parts := _parts(final):
        return {plural: parameter for part in parts for plural, parameter in grid_lists(part).items()}
    if not hasattr(final, "gram_grid"):
        return {}
    own = final.get_params(deep=False)
    lists = [name for name in signature(final.gram_grid).parameters if name != "X"]
    return {plural: plural if plural in own else plural.removesuffix("s") for plural in lists}


def with_parameters(kernel: Any, values: Mapping[str, Any]) -> Any:
    """A copy of a kernel or pipeline with other values of the kernel's parameters."""
    copy = clone(kernel)
    split_pipeline(copy)[1].set_params(**values)
    return copy


def _parts(kernel: GraphKernel) -> list[Any]:
    """The parts of a sum; other kernels have none."""
    return kernel._parts() if hasattr(kernel, "_parts") else []


# -------------------------------------------------------------------- the matrices


@dataclass(frozen=True)
class GridSums:
    """Kernel values along one leading axis for each list of a grid, in the order of the grid."""

    grams: Floats  # (..., n_graphs, n_graphs)
    rows: Floats  # (..., n_new, n_graphs): new graphs with the fitted ones
    selves: Floats  # (..., n_new): new graphs with themselves


def grid_sums(kernel: Any, X: Graphs, X_new: Graphs | None, grid: Mapping[str, Sequence[Any]]) -> GridSums:
    """All matrices of the grid; without new graphs rows and selves are empty."""
    steps, final = split_pipeline(kernel)
    _check_grid(final, grid)
    for step in steps:
        fitted = clone(step)
        X = fitted.fit_transform(X)
        X_new = None if X_new is None else fitted.transform(X_new)
    at_once = _lists_at_once(final, grid)
    looped = {name: values for name, values in grid.items() if name not in at_once}
    kernels = _looped(final, looped)
    if X_new is not None and not _parts(final) and any(one.learns_from_data for one in kernels):
        # In one pass such a kernel would learn from the new graphs too.
        at_once, looped, kernels = [], dict(grid), _looped(final, grid)
    lists = {name: grid[name] for name in at_once}
    pieces = [_one_pass(one, X, X_new, lists) for one in kernels]
    lengths = [len(values) for values in looped.values()]
    axes = [list(grid).index(name) for name in [*looped, *lists]]
    return GridSums(
        _arranged([piece.grams for piece in pieces], lengths, axes),
        _arranged([piece.rows for piece in pieces], lengths, axes),
        _arranged([piece.selves for piece in pieces], lengths, axes),
    )


def _check_grid(kernel: GraphKernel, grid: Mapping[str, Any]) -> None:
    known = parameter_names(kernel)
    for name, values in grid.items():
        if name not in known:
            raise ValueError(
                f"grid names {name!r}, which is no parameter of {kernel!r}; there are {', '.join(sorted(known))}."
            )
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
            raise ValueError(f"grid[{name!r}] must be a list of at least one value; got {values!r}.")


def _lists_at_once(kernel: GraphKernel, grid: Mapping[str, Sequence[Any]]) -> list[str]:
    """The parameters of the grid whose values need no loop here."""
    if _parts(kernel):  # the parts see to their own parameters
        return [name for name in grid if name not in kernel.get_params(deep=False)]
    return [name for name in grid if name in grid_lists(kernel).values()]


def _looped(kernel: GraphKernel, grid: Mapping[str, Sequence[Any]]) -> list[Any]:
    return [with_parameters(kernel, dict(zip(grid, values, strict=True))) for values in product(*grid.values())]


def _one_pass(kernel: Any, X: Graphs, X_new: Graphs | None, lists: Mapping[str, Sequence[Any]]) -> GridSums:
    if _parts(kernel):
        sums: GridSums = kernel._grid_sums(X, X_new, lists)
        return sums
    if not lists:
        return _single(kernel, X, X_new)
    plurals = grid_lists(kernel)
    given = {plural: lists.get(name, [getattr(kernel, name)]) for plural, name in plurals.items()}
    matrices = kernel.gram_grid(X if X_new is None else X + X_new, **given)
    # One axis per list that gram_grid takes, in its order: those that were not asked for have one value, the kernel's own.
    asked = [name for name in plurals.values() if name in lists]
    matrices = matrices.reshape([len(lists[name]) for name in asked] + list(matrices.shape[-2:]))
    matrices = np.moveaxis(matrices, range(len(asked)), [list(lists).index(name) for name in asked])
    n = len(X)
    diagonals = np.einsum("...ii->...i", matrices)
    return GridSums(matrices[..., :n, :n], matrices[..., n:, :n], diagonals[..., n:])


def _single(kernel: Any, X: Graphs, X_new: Graphs | None) -> GridSums:
    gram = kernel.fit_transform(X)
    if X_new is None:
        return GridSums(gram, np.zeros((0, len(X))), np.zeros(0))
    selves = kernel._self_sums(kernel._describe(X_new))
    return GridSums(gram, kernel.transform(X_new), np.where(selves > 0, 1.0, 0.0) if kernel.normalize else selves)


def _arranged(pieces: list[Floats], lengths: list[int], axes: list[int]) -> Floats:
    """Pieces of a product of lists as one array, its leading axes moved to the places given."""
    array = pieces[0][None] if len(pieces) == 1 else np.stack(pieces)
    array = array.reshape(lengths + list(array.shape[1:]))
    return np.moveaxis(array, range(len(axes)), axes)
