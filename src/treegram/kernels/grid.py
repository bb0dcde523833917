"""Kernels at the end of pipelines, and all Gram matrices of a grid of a kernel's parameters.

A pass takes many values of the kernel's one-pass parameters and one value of any other. The transformers of a pipeline are
fitted once, because a grid names parameters of the kernel alone. New graphs may be passed as well: the kernel is fitted on
the old ones and compares the new ones with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from treegram._core.params import check_value
from treegram._core.text import suggest
from treegram._core.types import Floats
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs

Grid: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class GridPoint:
    """Kernel values for one point of a grid."""

    params: dict[str, Any]
    gram: Floats  # (n_graphs, n_graphs)
    rows: Floats  # (n_new, n_graphs): new graphs with the fitted ones
    self_kernels: Floats  # (n_new,): new graphs with themselves


def grid_params(param_grid: Grid) -> list[dict[str, Any]]:
    """Return the points of a grid; the last parameter changes fastest."""
    return [dict(zip(param_grid, values, strict=True)) for values in product(*param_grid.values())]


def grid_points(kernel: Any, X: Graphs, param_grid: Grid, X_new: Graphs | None = None) -> list[GridPoint]:
    """Compute the Gram matrix of X, and the kernel of new graphs with X, for each point of a grid.

    ``kernel`` is a kernel or a pipeline that ends in one, and is not changed. Points are in the order of :func:`grid_params`.
    All matrices are in memory at once, most of them as views of one array: copy what must outlive the others.
    """
    steps, final = split_pipeline(kernel)
    _check_grid(final, param_grid)
    X_new = X[:0] if X_new is None else X_new
    for step in steps:
        fitted = clone(step)
        X = fitted.fit_transform(X)
        X_new = fitted.transform(X_new) if len(X_new) else X_new
    varies = final._grid_names()  # one-pass parameters in the order of the kernel
    together = {name: param_grid[name] for name in varies if name in param_grid and varies[name]}
    looped = {name: values for name, values in param_grid.items() if not varies[name]}
    computed: dict[tuple[int, ...], GridPoint] = {}
    for outer in grid_positions(looped):
        varied = final._with({name: looped[name][i] for name, i in zip(looped, outer, strict=True)})
        varied._check_parameters()
        for inner, point in zip(grid_positions(together), varied._grid_pass(X, X_new, together), strict=True):
            at = dict(zip((*looped, *together), (*outer, *inner), strict=True))
            computed[tuple(at[name] for name in param_grid)] = point
    points = zip(grid_params(param_grid), grid_positions(param_grid), strict=True)
    return [replace(computed[at], params=params) for params, at in points]


def grid_positions(grid: Grid) -> list[tuple[int, ...]]:
    """Return the position of each point in the lists of a grid."""
    return list(product(*(range(len(values)) for values in grid.values())))


def _check_grid(kernel: Any, param_grid: Mapping[str, Any]) -> None:
    names = kernel._grid_names()
    for name, values in param_grid.items():
        if name not in names:
            raise ParameterError(
                f"{type(kernel).__name__} has no parameter {name!r}{suggest(name, names) or '.'} "
                f"Valid parameters are {', '.join(sorted(names))}."
            )
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
            raise ParameterError(f"param_grid: {name} must be a list of at least one value; got {values!r}.")
        for owner, allowed in kernel._grid_allowed(name):
            for i, value in enumerate(values):
                check_value(f"{name}[{i}]", owner, value, allowed)


# -------------------------------------------------------------------- pipelines


def split_pipeline(kernel: Any, argument: str = "kernel") -> tuple[list[Any], Any]:
    """Return the transformers before a kernel, and the kernel itself; errors begin with the name of the argument."""
    steps, final = [], kernel
    while isinstance(final, Pipeline):
        *before, final = (step for _, step in final.steps)
        steps += [step for step in before if step is not None and step != "passthrough"]
    if isinstance(final, type) or not hasattr(final, "_grid_pass"):
        raise ParameterError(
            f"{argument} must be a graph kernel, or a pipeline of transformers that ends in one; got {kernel!r}."
        )
    return steps, final


def through_pipeline(kernel: Any, X: Any) -> tuple[Any, Any]:
    """Return the kernel at the end of a fitted pipeline, and X as its transformers pass it on."""
    steps, final = split_pipeline(kernel)
    for step in steps:
        X = step.transform(X)
    return final, X


def learns_from_data(kernel: Any) -> bool:
    """Return whether a kernel or a transformer before it must be fitted inside each fold; unknown transformers count as such."""
    steps, final = split_pipeline(kernel)
    return any(getattr(step, "learns_from_data", True) for step in [*steps, final])


def parameter_names(kernel: Any) -> set[str]:
    """Return the parameters that a grid may name: the kernel's own and, for a sum, those of its parts."""
    return set(split_pipeline(kernel)[1]._grid_names())


def with_parameters(kernel: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of a kernel or pipeline with other values of the kernel's parameters."""
    if not hasattr(kernel, "steps"):
        return split_pipeline(kernel)[1]._with(values)
    copy = clone(kernel)
    copy.steps[-1] = (copy.steps[-1][0], with_parameters(copy.steps[-1][1], values))
    return copy
