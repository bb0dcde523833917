"""How the sums of groups of features become the points of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from treegram._core.types import Floats, Ints

__all__ = ["GridAxes"]


@dataclass(frozen=True)
class GridAxes:
    """One axis for each one-pass parameter of a kernel.

    Where a larger value of a parameter only adds features, as more iterations add colors, groups are what each step adds to
    the one before, and points are sums of steps.
    """

    steps: dict[str, list[Any]]  # for each parameter the values that have a group, ascending where groups add up
    places: tuple[Ints, ...] | None = None  # where groups add up: the step of each value that was asked for

    @classmethod
    def of_points(cls, grid: Mapping[str, Sequence[Any]]) -> Self:
        """One group for each point."""
        return cls({name: list(values) for name, values in grid.items()})

    @classmethod
    def of_steps(cls, grid: Mapping[str, Sequence[Any]]) -> Self:
        """Groups that add up."""
        steps = {name: np.unique(np.asarray(values)).tolist() for name, values in grid.items()}
        return cls(steps, tuple(np.searchsorted(steps[name], values) for name, values in grid.items()))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of steps along each axis."""
        return tuple(len(values) for values in self.steps.values())

    def points(self, sums: Floats, n_last: int) -> Floats:
        """The grid from the sums of all groups, whose last ``n_last`` axes are graphs."""
        sums = sums.reshape(self.shape + sums.shape[sums.ndim - n_last :])
        if self.places is None:
            return sums
        for axis, n in enumerate(self.shape):
            if n > 1:
                with np.errstate(
                    over="ignore", invalid="ignore"
                ):  # below the diagonal of a symmetric matrix is anything
                    np.cumsum(sums, axis=axis, out=sums)
        as_asked = all(np.array_equal(some, np.arange(n)) for some, n in zip(self.places, self.shape, strict=True))
        return sums if as_asked else sums[np.ix_(*self.places)]
