"""The base class of graph kernels: fit, transform, and grids of parameters.

A kernel declares its name, its parameters, its default grid and the parameters that one pass can vary, and computes values with
three methods: ``_describe`` turns graphs into the form that its sums need, ``_pair_sums`` computes the kernel of all pairs of
graphs, ``_self_sums`` that of each graph with itself. All three work for a grid of the one-pass parameters, and results have one
leading axis for its points; a single kernel is a grid of one point. Most kernels inherit the three from a family:
:class:`~treegram.kernels.node_pairs.NodePairKernel` or :class:`~treegram.kernels.explicit.ExplicitKernel`.

``registry`` knows kernels by name, ``attribution`` explains their values, and ``input_checks`` compares new graphs with fitted ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from treegram._core.bases import BaseEstimator, TransformerMixin
from treegram._core.machine import require_gram
from treegram._core.params import (
    FLAG,
    FUNCTION,
    NOTHING,
    SEED,
    Allowed,
    Checked,
    Number,
    Whole,
    Words,
    allowed_values,
    parameters,
)
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.grid import Grid, GridPoint, grid_params, grid_points
from treegram.kernels.input_checks import check_like_fitted, warn_of_unused
from treegram.pairsum.attributes import GAMMA_RULES, NODE_KERNEL_NAMES
from treegram.pairsum.tiles import complete_gram, normalize_gram


@parameters
class GraphKernel(Checked, TransformerMixin, BaseEstimator, ABC):
    """Base of all kernels: scikit-learn transformers from graphs to rows of a Gram matrix."""

    name: ClassVar[str] = ""  # in models, studies and the command line; "" for a kernel that they cannot name
    uses_attributes: ClassVar[bool] = True
    _warns_of_unused = True  # parts of a sum do not warn: the sum does
    _one_pass: ClassVar[tuple[str, ...]] = ()  # parameters that one pass can vary
    _adds_up: ClassVar[bool] = False  # whether a larger value of the only one-pass parameter just adds to the sums
    # What explanations attribute contributions to: "" (not a sum over nodes), "nodes", or "trees" around
    # nodes.
    _explained_by: ClassVar[str] = ""
    _default_param_grid: ClassVar[Grid] = {}
    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "missing_labels": (Words("degree", "constant"),),
        "use_labels": (FLAG,),
        "use_edge_labels": (FLAG,),
        "gamma": (Number(0), Words(*GAMMA_RULES), NOTHING),
        "node_kernel": (Words(*NODE_KERNEL_NAMES), FUNCTION),
        "normalize": (FLAG, Words("tanimoto")),
        "random_state": SEED,
        "n_jobs": (Whole(), NOTHING),
    }

    normalize: bool | str = True
    n_jobs: int | None = None

    @property
    def learns_from_data(self) -> bool:
        """True if a value depends on more than its two graphs, such as a scale or a sample taken in ``fit``.

        Such a kernel must be fitted inside each fold; any other may be computed once for all graphs, and sliced.
        """
        return isinstance(getattr(self, "gamma", None), str)

    def default_param_grid(self) -> dict[str, list[Any]]:
        """Return the values that models search by default.

        Returns
        -------
        dict of str to list
            Values for each parameter; empty for a kernel without parameters to search.
        """
        return {name: list(values) for name, values in self._default_param_grid.items()}

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn the graphs that ``transform`` will compare with.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs to compare with.
        y : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self
            The fitted kernel.
        """
        self._remember(X)
        self._self_kernels = self._finite(self._selves(self._fitted)) if self.normalize else None
        return self

    def fit_transform(self, X: Any, y: object = None, **fit_params: object) -> Floats:  # noqa: ARG002
        """Fit, and compute the Gram matrix of the graphs: ``fit(X).transform(X)`` at half the cost.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : ignored
            Not used, present for API consistency by convention.
        **fit_params : ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        ndarray of shape (n_graphs, n_graphs)
            The Gram matrix, symmetric and positive semidefinite.
        """
        X = as_graphs(X)
        require_gram(len(X), len(X))
        self._remember(X)
        K = self._gram(self._fitted, None)
        selves = self._finite(K.diagonal().copy())
        self._self_kernels = selves if self.normalize else None
        complete_gram(K, selves, normalize=self.normalize)
        return K

    def transform(self, X: Any) -> Floats:
        """Compare graphs with the fitted ones.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not; labels or trees that the fitted ones do not have are legal.

        Returns
        -------
        ndarray of shape (n_graphs, n_fitted)
            One row per graph in X, one column per fitted graph.
        """
        check_is_fitted(self)
        graphs = self._check_like_fitted(X)
        require_gram(len(graphs), len(self.graphs_))
        view = self._view_graphs(graphs)
        K = self._gram(view, self._fitted)
        if self._self_kernels is not None:
            normalize_gram(K, self._finite(self._selves(view)), self._self_kernels, normalize=self.normalize)
        return K

    def diag(self, X: Any) -> Floats:
        """Compute the kernel of each graph with itself, which costs far less than a matrix.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,)
            1 for a normalized kernel, or 0 for a graph whose kernel is 0 with every graph.
        """
        check_is_fitted(self)
        selves = self._selves(self._view_graphs(self._check_like_fitted(X)))
        return _unit_diagonal(selves) if self.normalize else selves

    def gram_grid(self, X: Any, param_grid: Grid | None = None) -> list[tuple[dict[str, Any], Floats]]:
        """Compute the Gram matrix of the graphs for each point of a grid, in as few passes as possible.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        param_grid : dict of str to list, or None, default=None
            Values for parameters of the kernel, such as ``{"depth": [0, 1, 2]}``. None: ``default_param_grid()``.

        Returns
        -------
        list of (dict, ndarray of shape (n_graphs, n_graphs))
            The parameters of each point, and the matrix that ``fit_transform`` computes with them. The last parameter of the
            grid changes fastest.
        """
        self._check_parameters()
        param_grid = self.default_param_grid() if param_grid is None else param_grid
        return [(point.params, point.gram) for point in grid_points(self, as_graphs(X), param_grid)]

    # ---------------------------------------------------------------- a grid of one point

    def _single_grid(self) -> Grid:
        """Return the parameters as a grid of one point."""
        return {name: [getattr(self, name)] for name in self._one_pass}

    def _view_graphs(self, graphs: Graphs) -> Any:
        """Describe graphs for the kernel's parameters."""
        return self._describe(graphs, self._single_grid())

    def _view_fitted(self, graphs: Graphs) -> Any:
        """Describe the graphs that the kernel has just learned from."""
        return self._view_graphs(graphs)

    def _gram(self, left: Any, right: Any | None) -> Floats:
        """Return ``_pair_sums`` of two views without the axis of points."""
        K = self._pair_sums(left, right)
        return K.reshape(K.shape[-2:])

    def _selves(self, view: Any) -> Floats:
        """Return ``_self_sums`` of a view without the axis of points."""
        return self._self_sums(view).reshape(-1)

    # ---------------------------------------------------------------- one pass of a grid

    def _grid_names(self) -> dict[str, bool]:
        """Return the parameters that a grid may name, and whether one pass can vary them."""
        names = dict.fromkeys([*self._one_pass, *self.get_params(deep=False)])
        return {name: name in self._one_pass for name in names}

    def _grid_allowed(self, name: str) -> list[tuple[str, Allowed]]:
        """Return the owners of a parameter, each with the values that it allows."""
        return [(type(self).__name__, allowed_values(type(self))[name])]

    def _with(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values of some parameters of a grid."""
        return clone(self).set_params(**values)

    def _grid_pass(self, X: Graphs, X_new: Graphs, param_grid: Grid) -> list[GridPoint]:
        """Compute all points of a grid of one-pass parameters, which are in the order of ``_one_pass``."""
        grid = {**self._single_grid(), **param_grid}
        points = grid_params(param_grid)
        require_gram(len(points), len(X) + len(X_new), len(X))
        check_like_fitted(self, X_new, X)
        n, order = len(points), np.arange(len(points))
        if self._adds_up:
            ((name, values),) = grid.items()
            steps, order = np.unique(np.asarray(values), return_inverse=True)
            n, grid = len(steps), {name: steps.tolist()}
        add_up = _cumulate if self._adds_up else np.asarray
        worker = clone(self)
        worker._learn(X, grid)
        fitted = worker._describe(X, grid)
        grams = add_up(worker._pair_sums(fitted, None).reshape(n, len(X), len(X)))
        selves = self._finite(np.einsum("...ii->...i", grams).copy())
        complete_gram(grams, selves, normalize=self.normalize)
        rows, new_selves = np.empty((n, 0, len(X))), np.empty((n, 0))
        if len(X_new):
            new = worker._describe(X_new, grid)
            rows = add_up(worker._pair_sums(new, fitted).reshape(n, len(X_new), len(X)))
            new_selves = self._finite(add_up(worker._self_sums(new).reshape(n, len(X_new))))
            if self.normalize:
                normalize_gram(rows, new_selves, selves, normalize=self.normalize)
                new_selves = _unit_diagonal(new_selves)
        return [GridPoint(params, grams[i], rows[i], new_selves[i]) for params, i in zip(points, order, strict=True)]

    # ---------------------------------------------------------------- fitted graphs

    def _remember(self, X: Any) -> None:
        self._check_parameters()
        graphs = as_graphs(X)
        self._learn(graphs, self._single_grid())
        if self._warns_of_unused and (unused := self._unused_data(graphs)):
            warn_of_unused(self, unused)
        self._fitted = self._view_fitted(graphs)
        self.graphs_ = graphs
        self.n_attributes_in_ = graphs.n_attributes

    def _check_like_fitted(self, X: Any) -> Graphs:
        """Return the graphs, if they are of the same kind as the fitted ones."""
        graphs = as_graphs(X)
        check_like_fitted(self, graphs, self.graphs_)
        return graphs

    @property
    def _uses_labels(self) -> bool:
        return bool(getattr(self, "use_labels", True))

    @property
    def _uses_vectors(self) -> bool:
        return self.uses_attributes

    def _unused_data(self, graphs: Graphs) -> dict[str, str]:
        """Return the data of the graphs that this kernel does not use, each with a way to use it."""
        unused = {}
        if not self._uses_labels and _vary(graphs.labels):
            unused["node labels"] = "set use_labels=True" if hasattr(self, "use_labels") else "use WL or ODDST"
        if not self._uses_vectors and graphs.n_attributes:
            unused["node vectors"] = "use WLCL, ODDCL or another kernel of vectors"
        if not getattr(self, "use_edge_labels", False) and _vary(graphs.edge_labels):
            has_option = hasattr(self, "use_edge_labels")
            unused["edge labels"] = f"{'set' if has_option else 'use WL, WLCL or ODDCL with'} use_edge_labels=True"
        if graphs.n_edge_attributes:
            unused["edge vectors"] = "put BinEdgeAttributes() before a kernel with use_edge_labels=True"
        return unused

    def _keep(self, positions: Ints) -> None:
        """Forget all but the chosen fitted graphs; keep what was learned from all of them."""
        self.graphs_ = self.graphs_[positions]
        self._fitted = self._view_graphs(self.graphs_)
        if self._self_kernels is not None:
            self._self_kernels = self._self_kernels[positions]

    @property
    def _fitted_diag(self) -> Floats:
        """The kernel of each fitted graph with itself, as ``diag`` returns it."""
        return self._selves(self._fitted) if self._self_kernels is None else _unit_diagonal(self._self_kernels)

    def _finite(self, selves: Floats) -> Floats:
        """Return the kernels of graphs with themselves, the largest values; raise if double precision cannot hold them."""
        is_bad, size = ~np.isfinite(selves), "large"
        if self.normalize and not is_bad.any():
            is_bad, size = (selves > 0) & (selves < np.finfo(np.float64).tiny), "small"
        if is_bad.any():
            raise ValueError(
                f"Graph {np.argwhere(is_bad)[0, -1]}: its {type(self).__name__} kernel with itself is too {size} for double "
                "precision. Scale its attributes first (ScaleAttributes), or use node_kernel='rbf'."
            )
        return selves

    # ---------------------------------------------------------------- to be implemented by each kernel

    def _learn(self, graphs: Graphs, grid: Grid) -> None:  # noqa: ARG002 (for kernels that learn more)
        """Learn from the fitted graphs what values depend on: by default gamma, if it depends on the data."""
        word = getattr(self, "gamma", None)
        if isinstance(word, str):
            self.gamma_ = GAMMA_RULES[word](node_vectors(graphs))

    @abstractmethod
    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        """Convert graphs into the form that the sums need."""

    @abstractmethod
    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        """Compute the kernel of each pair of graphs, not normalized: (n_points, n_left, n_right).

        ``right=None`` means left with itself, where only the upper half counts. Points are those of the grid of ``_describe``,
        the last parameter changing fastest; with a single point the first axis may be left out. With ``_adds_up`` the values
        of the grid are ascending, and a point has only what it adds to the one before.
        """

    @abstractmethod
    def _self_sums(self, view: Any) -> Floats:
        """Compute the kernel of each graph with itself, not normalized: (n_points, n_graphs)."""

    def _raw_contributions(self, graphs: Graphs, view: Any, weights: Floats, *, spread: bool) -> Floats:
        """Return what each node adds to the sums of weights[i, j] K(G, G_i), not normalized; for kernels with ``_explained_by``.

        Shape (n_nodes, n_outputs). With ``spread``, what a node adds by the tree around it is divided among the nodes of the tree.
        """
        raise NotImplementedError

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:  # noqa: ARG002
        """Return the name of a column of the features of graphs: its code, unless a kernel can read it."""
        return f"{features.codes[column]:016x}"


def options_of(kernel: Any, *names: str) -> dict[str, Any]:
    """Return some parameters of a kernel, to pass them on under the same names."""
    return {name: getattr(kernel, name) for name in names}


def node_vectors(graphs: Graphs) -> Floats:
    """Return the vectors of all nodes; without attributes they have no columns."""
    return np.zeros((graphs.n_nodes, 0)) if graphs.attributes is None else graphs.attributes


def _cumulate(sums: Floats) -> Floats:
    """Turn what each point of a grid adds to the one before, along the first axis, into totals, in place."""
    if len(sums) > 1:
        with np.errstate(over="ignore", invalid="ignore"):  # entries below a symmetric matrix's diagonal are arbitrary
            np.cumsum(sums, axis=0, out=sums)
    return sums


def _unit_diagonal(selves: Floats) -> Floats:
    """Return normalized kernels of graphs with themselves: 0 for a graph whose kernel is 0 with every graph."""
    return np.where(selves > 0, 1.0, 0.0)


def _vary(codes: Ints | None) -> bool:
    return codes is not None and len(codes) > 0 and bool((codes != codes[0]).any())
