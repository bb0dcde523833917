"""The sum of kernels, each of which may see the graphs through its own transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone

from treegram._core.params import LIST, NOTHING, Allowed, Instance, Number, check_value, parameters
from treegram._core.types import Floats, Ints
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import (
    Grid,
    GridPoint,
    grid_params,
    grid_points,
    grid_positions,
    learns_from_data,
    parameter_names,
    split_pipeline,
    through_pipeline,
    with_parameters,
)
from treegram.kernels.oddcl import ODDCL, ODDST
from treegram.pairsum.tiles import complete_gram, inverse_roots, normalize_gram


@dataclass(frozen=True)
class PartView:
    """Graphs as one part sees them."""

    view: Any
    selves: Floats  # the part's kernel of each graph with itself, not normalized


@parameters
class KernelSum(GraphKernel):
    r"""Weighted sum of graph kernels: two graphs are similar when any of the parts finds them similar.

    .. math:: K(G, G') = \sum_i w_i K_i(G, G')

    Here :math:`K_i` is what the i-th of ``kernels`` gives, normalized by itself unless its own ``normalize`` is False, and
    :math:`w_i` its weight, 1 by default.

    Parameters
    ----------
    kernels : list of GraphKernel or Pipeline, or None, default=None
        The parts: kernels, and pipelines of transformers that end in a kernel. None: ODDST and ODDCL, the same trees without
        and with the vectors.
    weights : list of float, or None, default=None
        The weight of each part, not negative; None: 1 for all.
    normalize : bool or "tanimoto", default=True
        Whether to divide the sum by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads for all parts, as in joblib; None keeps the number of each part.

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
    Time is that of the parts, one by one; two of their matrices are in memory at a time. A grid (:meth:`gram_grid`, models)
    names parameters of the parts: a value is set in all parts that have it.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from treegram import ODDCL, Graphs, KernelSum, ScaleAttributes
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1), (1, 2)], [(0, 1)]],
    ...     labels=[["C", "C", "O"], ["C", "O"]],
    ...     attributes=[[[0.0], [1.0], [2.0]], [[1.0], [2.0]]],
    ... )
    >>> scaled = make_pipeline(ScaleAttributes("robust"), ODDCL(depth=1))
    >>> KernelSum([ODDCL(depth=1), scaled]).fit_transform(graphs).round(3)
    array([[1.   , 0.838],
           [0.838, 1.   ]])
    """

    _allowed = {"kernels": (Instance((list, tuple), "a list of kernels"), NOTHING), "weights": (LIST, NOTHING)}

    kernels: Sequence[Any] | None = field(default=None, kw_only=False)
    weights: Sequence[float] | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 (scikit-learn's signature)
        """Return the parameters of the sum and, under the number of each part, those of the parts.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the parts: ``0__depth`` is the depth of the first.

        Returns
        -------
        dict
            Values by name.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        parts = self.kernels if deep and isinstance(self.kernels, list | tuple) else ()
        for i, part in enumerate(parts):
            params[str(i)] = part
            if hasattr(part, "get_params") and not isinstance(part, type):
                params |= {f"{i}__{name}": value for name, value in part.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the sum, parts by their number, and parameters of parts.

        Parameters
        ----------
        **params : dict
            Such as ``normalize=False``, or ``**{"0__depth": 2}`` for the first part.

        Returns
        -------
        self
            The sum.
        """
        names = self.get_params()
        numbered = {name: params.pop(name) for name in list(params) if name.isdigit() and name in names}
        if numbered:
            self.kernels = [numbered.get(str(i), part) for i, part in enumerate(self.kernels or ())]
        super().set_params(**params)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # Each part is written once: scikit-learn's own repr takes six times as long for each level of nested sums.
        shown, default = self.get_params(deep=False), type(self)()
        if get_config()["print_changed_only"]:
            shown = {name: value for name, value in shown.items() if value is not getattr(default, name)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def learns_from_data(self) -> bool:
        """True if any part, or a transformer before it, learns from the fitted graphs."""
        return any(learns_from_data(part) for part in self._parts())

    def default_param_grid(self) -> dict[str, list[Any]]:
        """Return the values that models search by default for the parameters of the parts.

        Returns
        -------
        dict of str to list
            Values for each parameter.
        """
        finals = (split_pipeline(part)[1] for part in self._parts())
        return {name: values for final in finals for name, values in final.default_param_grid().items()}

    # ---------------------------------------------------------------- parts

    def _parts(self) -> list[Any]:
        """Check the parts, and return unfitted copies with the sum's number of threads."""
        parts = [ODDST(), ODDCL()] if self.kernels is None else list(self.kernels)
        if not parts:
            raise ParameterError("kernels of KernelSum must hold at least one kernel; got an empty list.")
        for i, part in enumerate(parts):
            split_pipeline(part, f"kernels[{i}]")
        parts = [clone(part) for part in parts]
        for part in parts:
            if self.n_jobs is not None and "n_jobs" in parameter_names(part):
                split_pipeline(part)[1].set_params(n_jobs=self.n_jobs)
        return parts

    def _part_weights(self, n_parts: int) -> list[float]:
        """Check the weights, and return one for each part."""
        if self.weights is None:
            return [1.0] * n_parts
        for i, weight in enumerate(self.weights):
            check_value(f"weights[{i}]", "KernelSum", weight, (Number(0),))
        if len(self.weights) != n_parts or not any(self.weights):
            raise ParameterError(
                f"weights of KernelSum must be {n_parts} numbers, one for each kernel, and not all 0; got {self.weights!r}."
            )
        return [float(weight) for weight in self.weights]

    def _unused_data(self, graphs: Graphs) -> dict[str, str]:  # noqa: ARG002 (parts see other graphs)
        first, *later = (final._unused_data(final.graphs_) for final in self._finals())
        return {name: way for name, way in first.items() if all(name in unused for unused in later)}

    @property
    def _uses_labels(self) -> bool:
        return any(split_pipeline(part)[1]._uses_labels for part in self._parts())

    def _finals(self) -> list[GraphKernel]:
        """Return the fitted kernels at the ends of the parts."""
        return [split_pipeline(part)[1] for part in self.kernels_]

    # ---------------------------------------------------------------- grids

    def _grid_names(self) -> dict[str, bool]:
        parts = set().union(*(parameter_names(part) for part in self._parts()))
        return {**dict.fromkeys(parts, True), **super()._grid_names()}

    def _grid_allowed(self, name: str) -> list[tuple[str, Allowed]]:
        if name in self.get_params(deep=False):
            return super()._grid_allowed(name)
        finals = (split_pipeline(part)[1] for part in self._parts() if name in parameter_names(part))
        return [allowed for final in finals for allowed in final._grid_allowed(name)]

    def _with(self, values: Mapping[str, Any]) -> Self:
        names = self.get_params(deep=False)
        copy: Self = clone(self).set_params(**{name: value for name, value in values.items() if name in names})
        of_parts = {name: value for name, value in values.items() if name not in names}
        if of_parts:
            copy.kernels = [with_parameters(part, _those_of(part, of_parts)) for part in self._parts()]
        return copy

    def _grid_pass(self, X: Graphs, X_new: Graphs, param_grid: Grid) -> list[GridPoint]:
        n, n_new = len(X), len(X_new)
        totals = [
            GridPoint(params, np.zeros((n, n)), np.zeros((n_new, n)), np.zeros(n_new))
            for params in grid_params(param_grid)
        ]
        parts = self._parts()
        for part, weight in zip(parts, self._part_weights(len(parts)), strict=True):
            part_grid = _those_of(part, param_grid)
            axes = [list(param_grid).index(name) for name in part_grid]
            points = dict(zip(grid_positions(part_grid), grid_points(part, X, part_grid, X_new), strict=True))
            for at, total in zip(grid_positions(param_grid), totals, strict=True):
                point = points[tuple(at[axis] for axis in axes)]
                total.gram[...] += weight * point.gram
                total.rows[...] += weight * point.rows
                total.self_kernels[...] += weight * point.self_kernels
        for total in totals if self.normalize else ():
            diagonal = total.gram.diagonal().copy()
            normalize_gram(total.gram, diagonal, diagonal, normalize=self.normalize)
            normalize_gram(total.rows, total.self_kernels, diagonal, normalize=self.normalize)
            total.self_kernels[...] = total.self_kernels > 0
        return totals

    # ---------------------------------------------------------------- explanations

    def _split_sum(self, graphs: Graphs, weights: Floats) -> tuple[list[tuple[Any, Floats, Graphs]], Floats]:
        """Return the kernels of the parts, each with weights and the graphs it sees, and a factor for each graph's values."""
        if self.normalize == "tanimoto":
            raise ParameterError(
                "A KernelSum with normalize='tanimoto' cannot be explained: its divisor depends on both graphs and on all parts. Use "
                "normalize=True, with normalize='tanimoto' in the parts."
            )
        if self._self_kernels is not None:
            weights = weights * inverse_roots(self._self_kernels)[:, None]
        summands = []
        for part, weight in zip(self.kernels_, self._part_weights(len(self.kernels_)), strict=True):
            final, part_graphs = through_pipeline(part, graphs)
            summands.append((final, weight * weights, part_graphs))
        if not self.normalize:
            return summands, np.ones(len(graphs))
        return summands, inverse_roots(self._selves(self._view_graphs(graphs)))

    # ---------------------------------------------------------------- sums

    def _learn(self, graphs: Graphs, grid: Grid) -> None:  # noqa: ARG002 (see _grid_pass)
        self.kernels_ = self._parts()
        self._part_weights(len(self.kernels_))
        for part, final in zip(self.kernels_, self._finals(), strict=True):
            final._warns_of_unused = False  # another part may use data that this one does not
            part.fit(graphs)

    def _view_fitted(self, graphs: Graphs) -> list[PartView]:  # noqa: ARG002 (parts see other graphs)
        """Use that each part described the graphs when it was fitted, and summed each with itself if it normalizes."""
        return [_view_part(final, final._fitted, final._self_kernels) for final in self._finals()]

    def _keep(self, positions: Ints) -> None:
        for final in self._finals():
            final._keep(positions)
        super()._keep(positions)

    def _describe(self, graphs: Graphs, grid: Grid) -> list[PartView]:  # noqa: ARG002 (see _grid_pass)
        views = []
        for part in self.kernels_:
            final, part_graphs = through_pipeline(part, graphs)
            views.append(_view_part(final, final._view_graphs(part_graphs)))
        return views

    def _pair_sums(self, left: list[PartView], right: list[PartView] | None) -> Floats:
        columns = left if right is None else right
        total = np.zeros((len(left[0].selves), len(columns[0].selves)))
        weights = self._part_weights(len(left))
        for final, weight, mine, theirs in zip(self._finals(), weights, left, columns, strict=True):
            K = final._gram(mine.view, None if right is None else theirs.view)
            if right is None:
                complete_gram(K, K.diagonal().copy(), normalize=final.normalize)
            elif final.normalize:
                normalize_gram(K, mine.selves, theirs.selves, normalize=final.normalize)
            K *= weight
            total += K
        return total

    def _self_sums(self, views: list[PartView]) -> Floats:
        total = np.zeros(len(views[0].selves))
        for final, weight, part in zip(self._finals(), self._part_weights(len(views)), views, strict=True):
            total += weight * (part.selves > 0 if final.normalize else part.selves)
        return total


def _view_part(final: GraphKernel, view: Any, selves: Floats | None = None) -> PartView:
    """Return graphs as a part sees them, with the kernel of each with itself, which is computed if it is not known."""
    return PartView(view, final._selves(view) if selves is None else selves)


def _those_of(part: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Select the parameters that the part's kernel has."""
    names = parameter_names(part)
    return {name: value for name, value in parameters.items() if name in names}
