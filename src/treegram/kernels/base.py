"""What every graph kernel shares: fit, transform, grids of parameters, normalization and the checks between them.

A kernel declares its name, its parameters, its usual grid and the parameters that one pass can vary, and computes by three methods:
``_describe`` turns graphs into what its sums need, ``_pair_sums`` gives the kernel of all pairs of graphs, ``_self_sums``
that of each graph with itself. All three work for a grid of the one-pass parameters; a single kernel is a grid of one point.
Most kernels have the three from a family: :class:`~treegram.kernels.node_pairs.NodePairKernel` or
:class:`~treegram.kernels.explicit.ExplicitKernel`. Think twice before adding anything here.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import InvalidGraphError, ParameterError
from treegram._core.memory import require_gram
from treegram._core.params import (
    FLAG,
    NOTHING,
    PRECISION,
    SEED,
    Allowed,
    Checked,
    Whole,
    Words,
    allowed_values,
    parameters,
)
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.grid import Grid, GridValues, grid_values
from treegram.kernels.node_sums import learn_gamma
from treegram.pairsum.tiles import complete

__all__ = [
    "GraphKernel",
    "complete_gram",
    "inverse_roots",
    "normalize_gram",
    "used_labels",
    "warn_of_edge_vectors",
    "warn_of_unknown_labels",
]

NARROW_ROWS = 1024  # computed in double precision before they are written in single precision
ROWS_AT_ONCE = 32  # that are normalized together: the factors of these stay in cache


@parameters
class GraphKernel(Checked, TransformerMixin, BaseEstimator, ABC):
    """Base of all kernels: scikit-learn transformers from graphs to rows of a Gram matrix."""

    name: ClassVar[str] = ""  # in the command and in study files; "" for a kernel that they cannot name
    one_pass: ClassVar[tuple[str, ...]] = ()  # parameters of which one pass can take many values
    uses_attributes: ClassVar[bool] = True
    # What explanations give each part of a kernel to: "" (it is no sum over nodes), "nodes", or "trees", which can be spread.
    explained_by: ClassVar[str] = ""
    _default_param_grid: ClassVar[Grid] = {}
    _allowed: ClassVar[Mapping[str, Allowed]] = {
        "missing_labels": (Words("degree", "constant"),),
        "use_labels": (FLAG,),
        "use_edge_labels": (FLAG,),
        "normalize": (FLAG,),
        "random_state": SEED,
        "dtype": (Words("float64", "float32"), PRECISION),
        "n_jobs": (Whole(), NOTHING),
    }

    normalize: bool = True
    dtype: Any = "float64"
    n_jobs: int | None = None

    @property
    def learns_from_data(self) -> bool:
        """Whether a value depends on more than its two graphs, such as a scale or a sample taken in ``fit``.

        Such a kernel must be fitted inside each fold; any other may be computed once for all graphs, and sliced.
        """
        return getattr(self, "gamma", None) == "scale"

    def default_param_grid(self) -> dict[str, list[Any]]:
        """The values that are usually searched for this kernel's parameters.

        Returns
        -------
        dict of str to list
            Values for each parameter; empty for a kernel that is used as it is.
        """
        return {name: list(values) for name, values in self._default_param_grid.items()}

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Learn the graphs that ``transform`` will compare with.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs to compare with.
        y : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted kernel.
        """
        self._remember(X)
        self._self_kernels = self._finite(self._self_sums(self._fitted)) if self.normalize else None
        return self

    def fit_transform(self, X: Any, y: object = None, **fit_params: object) -> Floats:  # noqa: ARG002
        """Fit, and give the Gram matrix of the graphs: ``fit(X).transform(X)`` at half the cost.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        y : ignored
            There for scikit-learn's pipelines.
        **fit_params : ignored
            There for scikit-learn's pipelines.

        Returns
        -------
        ndarray of shape (n_graphs, n_graphs)
            The Gram matrix, symmetric and positive semidefinite.
        """
        X = as_graphs(X)
        require_gram(len(X), len(X), n_bytes=self._bytes)
        if self._bytes < 8:
            return self.fit(X)._narrow_gram()
        self._remember(X)
        K = self._pair_sums(self._fitted, None)
        diagonals = self._finite(_diagonals(K))
        self._self_kernels = diagonals if self.normalize else None
        complete_gram(K, self._self_kernels, self.n_jobs)
        return K.reshape(K.shape[-2:])

    def transform(self, X: Any) -> Floats:
        """Compare graphs with the fitted ones.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not; what the fitted ones never showed (labels, trees) is legal.

        Returns
        -------
        ndarray of shape (n_graphs, n_fitted)
            One row per graph in X, one column per fitted graph.
        """
        check_is_fitted(self)
        graphs = self._check_like_fitted(X)
        require_gram(len(graphs), len(self.graphs_), n_bytes=self._bytes)
        if self._bytes < 8:
            K = np.empty((len(graphs), len(self.graphs_)), self.dtype)
            for rows in _spans(len(graphs)):
                K[rows] = self._narrow(self._rows(graphs[rows]))
            return K
        return self._rows(graphs)

    def diag(self, X: Any) -> Floats:
        """The kernel of each graph with itself, which costs far less than a matrix.

        Parameters
        ----------
        X : Graphs or list of graphs
            Graphs, new or not.

        Returns
        -------
        ndarray of shape (n_graphs,)
            Where the kernel is normalized, 1, and 0 for a graph whose kernel is 0 with every graph.
        """
        check_is_fitted(self)
        sums = self._self_sums(self._describe(self._check_like_fitted(X), self._own_grid())).reshape(-1)
        return np.where(sums > 0, 1.0, 0.0) if self.normalize else sums

    def gram_grid(self, X: Any, **lists: Sequence[Any]) -> Floats:
        """All Gram matrices for lists of parameters, in as few passes as the kernel can.

        Parameters
        ----------
        X : Graphs or list of graphs
            The graphs.
        **lists : sequences
            Values for parameters of the kernel, such as ``depth=[0, 1, 2]``. Lists for the parameters in ``one_pass`` are
            computed together; each value of any other takes a pass of its own.

        Returns
        -------
        ndarray of shape (..., n_graphs, n_graphs)
            One leading axis per list, in the order in which the lists are given; each matrix is what ``fit_transform``
            gives with these values.
        """
        self._check_parameters()
        grams = grid_values(self, as_graphs(X), None, lists).grams
        return grams if self._bytes == 8 else self._narrow(grams)

    # ---------------------------------------------------------------- matrices, and their numbers in single precision

    def _rows(self, graphs: Graphs) -> Floats:
        """The kernel of some graphs with the fitted ones."""
        described = self._describe(graphs, self._own_grid())
        K = self._pair_sums(described, self._fitted)
        if self._self_kernels is not None:
            normalize_gram(K, self._finite(self._self_sums(described)), self._self_kernels)
        return K.reshape(K.shape[-2:])

    @property
    def _bytes(self) -> int:
        """Of a number in a result."""
        return np.dtype(self.dtype).itemsize

    def _narrow_gram(self) -> Floats:
        """The Gram matrix of the fitted graphs, computed in double precision some rows at a time, each half of it once."""
        n = len(self.graphs_)
        gram = np.empty((n, n), self.dtype)
        for rows in _spans(n):
            own = self._describe(self.graphs_[rows], self._own_grid())
            K = self._pair_sums(own, None)
            complete_gram(K, None if self._self_kernels is None else self._self_kernels[..., rows], self.n_jobs)
            gram[rows, rows] = self._narrow(K.reshape(K.shape[-2:]))
            if rows.stop < n:
                rest = slice(rows.stop, n)
                K = self._pair_sums(own, self._describe(self.graphs_[rest], self._own_grid()))
                if self._self_kernels is not None:
                    normalize_gram(K, self._self_kernels[..., rows], self._self_kernels[..., rest])
                gram[rows, rest] = self._narrow(K.reshape(K.shape[-2:]))
                gram[rest, rows] = gram[rows, rest].T
        return gram

    def _narrow(self, K: Floats) -> Floats:
        """The numbers in single precision, if it can hold them."""
        with np.errstate(over="ignore"):
            narrow = K.astype(self.dtype)
        if not np.isfinite(narrow).all():
            raise ValueError(
                f"{type(self).__name__} gives numbers as large as {np.abs(K).max():.3g}, which dtype={self.dtype!r} cannot hold. Use "
                "normalize=True, or dtype='float64'."
            )
        return narrow

    # ---------------------------------------------------------------- one pass of a grid

    def _own_grid(self) -> Grid:
        """The grid of one point that the parameters are."""
        return {name: [getattr(self, name)] for name in self.one_pass}

    def _grid_names(self) -> dict[str, bool]:
        """The parameters that a grid may name, and whether one pass can vary them."""
        return {name: name in self.one_pass for name in self.get_params(deep=False)}

    def _grid_allowed(self, name: str) -> list[tuple[str, Allowed]]:
        """Who has the parameter of that name, and what it may be."""
        return [(type(self).__name__, allowed_values(type(self))[name])]

    def _with(self, values: Mapping[str, Any]) -> Self:
        """A copy with other values of some parameters of a grid."""
        copy: Self = clone(self).set_params(**values)
        return copy

    def _separate(self, graphs: Graphs, lists: Grid) -> list[dict[str, list[int]]]:  # noqa: ARG002
        """The grids, as positions in the lists, that one pass each can compute: usually one, of all positions."""
        return [{name: list(range(len(values))) for name, values in lists.items()}]

    def _grid_pass(self, X: Graphs, X_new: Graphs | None, lists: Grid) -> GridValues:
        """All matrices for lists of one-pass parameters, with one leading axis per list."""
        grid = {name: lists.get(name, [getattr(self, name)]) for name in self.one_pass}
        X_new = X[:0] if X_new is None else X_new
        require_gram(*(len(values) for values in grid.values()), len(X) + len(X_new), len(X))
        self._check_alike(X_new, X)
        worker = clone(self)
        worker._learn(X, grid)
        fitted = worker._describe(X, grid)
        grams = worker._pair_sums(fitted, None)
        diagonals = self._finite(_diagonals(grams))
        complete_gram(grams, diagonals if self.normalize else None, self.n_jobs)
        rows, selves = np.empty((*grams.shape[:-2], 0, len(X))), np.empty((*grams.shape[:-2], 0))
        if len(X_new):
            new = worker._describe(X_new, grid)
            rows, selves = worker._pair_sums(new, fitted), self._finite(worker._self_sums(new))
            if self.normalize:
                normalize_gram(rows, selves, diagonals)
                selves = np.where(selves > 0, 1.0, 0.0)
        order = [*(list(grid).index(name) for name in lists), *(i for i, name in enumerate(grid) if name not in lists)]
        values = GridValues(grams, rows, selves)
        return values.arranged(order, n_kept=len(lists))

    # ---------------------------------------------------------------- explanations

    def _node_shares(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """What each node adds to the sums of weights[i, j] K(G, G_i) over the fitted graphs G_i, shape (n_nodes, n_outputs).

        Normalization divides all that the nodes of a graph add by the same number. With ``spread``, what a node adds by the
        tree around it is shared by the nodes of that tree; a kernel without trees gives it to the node itself.
        """
        if self._self_kernels is not None:
            weights = weights * inverse_roots(self._self_kernels.reshape(-1))[:, None]
        self._check_explained()
        described = self._describe(graphs, self._own_grid())
        spread = spread and self.explained_by == "trees"
        return self._normalize_shares(graphs, described, self._raw_shares(graphs, described, weights, spread=spread))

    def _normalize_shares(self, graphs: Graphs, described: Any, shares: Floats) -> Floats:
        if self.normalize:
            shares = shares * inverse_roots(self._self_sums(described).reshape(-1))[graphs.graph_ids, None]
        return shares

    def _raw_shares(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        """The same without normalization; for kernels with ``explained_by``."""
        raise NotImplementedError

    def _check_explained(self) -> None:
        if not self.explained_by:
            raise ParameterError(
                f"{type(self).__name__} cannot be explained node by node. These kernels can be: "
                f"{', '.join(_explained_kernels())}, and sums (KernelSum) and pipelines of these."
            )

    # ---------------------------------------------------------------- fitted graphs

    def _remember(self, X: Any) -> None:
        self._check_parameters()
        graphs = as_graphs(X)
        warn_of_edge_vectors(self, graphs, stacklevel=4)
        self._learn(graphs, self._own_grid())
        self._fitted = self._describe(graphs, self._own_grid())
        self.graphs_ = graphs
        self.n_attributes_in_ = graphs.n_attributes

    def _check_like_fitted(self, X: Any) -> Graphs:
        """The graphs, if they are of the same kind as the fitted ones."""
        graphs = as_graphs(X)
        self._check_alike(graphs, self.graphs_)
        return graphs

    def _check_alike(self, graphs: Graphs, fitted: Graphs) -> None:
        if not graphs.n_nodes or not fitted.n_nodes:
            return
        if self.uses_attributes and graphs.n_attributes != fitted.n_attributes:
            new, old = _count_of(graphs.n_attributes), _count_of(fitted.n_attributes)
            self._refuse(f"The nodes of the new graphs (X) have {new}", f"on nodes with {old}")
        if (graphs.labels is None) != (fitted.labels is None):
            new, old = ("no labels", "with labels") if graphs.labels is None else ("labels", "without labels")
            self._refuse(f"The nodes of the new graphs (X) have {new}", f"on nodes {old}")
        if graphs.directed != fitted.directed:
            new, old = ("directed", "undirected") if graphs.directed else ("undirected", "directed")
            self._refuse(f"The edges of the new graphs (X) are {new}", f"on {old} ones")
        if self._uses_labels:
            known = used_labels(fitted)
            names = set(known)
            is_known = np.array([label in names for label in graphs.label_values], dtype=bool)
            if known:  # stacklevel: the caller of transform, which scikit-learn wraps
                warn_of_unknown_labels(self, graphs, is_known, f", the fitted ones have {_some(known)}", stacklevel=6)

    @property
    def _uses_labels(self) -> bool:
        return bool(getattr(self, "use_labels", True))

    def _refuse(self, now: str, then: str) -> None:
        raise InvalidGraphError(
            f"{now}, but {type(self).__name__} was fitted {then}. Make them as the fitted graphs were made."
        )

    def _own_kernels(self) -> Floats:
        """The kernel of each fitted graph with itself, as ``diag`` gives it."""
        known = self._self_kernels
        sums: Floats = (self._self_sums(self._fitted) if known is None else known).reshape(-1)
        return sums if known is None else (sums > 0).astype(float)

    def _columns(self, chosen: Ints) -> Floats:
        """The kernel of all fitted graphs with some of them."""
        K = self._pair_sums(self._fitted, self._describe(self.graphs_[chosen], self._own_grid()))
        if self._self_kernels is not None:
            normalize_gram(K, self._self_kernels, self._self_kernels[..., chosen])
        return K.reshape(K.shape[-2:])

    def _square(self, chosen: Ints) -> Floats:
        """The kernel of some fitted graphs with each other."""
        K = self._pair_sums(self._describe(self.graphs_[chosen], self._own_grid()), None)
        complete_gram(K, None if self._self_kernels is None else self._self_kernels[..., chosen], self.n_jobs)
        return K.reshape(K.shape[-2:])

    def _keep(self, chosen: Ints) -> None:
        """Forget all fitted graphs but some; what was learned from all of them stays."""
        self.graphs_ = self.graphs_[chosen]
        self._fitted = self._describe(self.graphs_, self._own_grid())
        if self._self_kernels is not None:
            self._self_kernels = self._self_kernels[..., chosen]

    def _finite(self, diagonals: Floats) -> Floats:
        """The kernels of graphs with themselves, the largest of all, if they are numbers."""
        is_finite = np.isfinite(diagonals)
        if not is_finite.all():
            graph = int(np.argwhere(~is_finite)[0, -1])
            raise ValueError(
                f"Graph {graph}: its {type(self).__name__} kernel with itself is too large for double precision. Scale its "
                "attributes first (ScaleAttributes), or use node_kernel='rbf'."
            )
        return diagonals

    # ---------------------------------------------------------------- what a kernel is made of

    def _learn(self, graphs: Graphs, grid: Grid) -> None:  # noqa: ARG002 (for kernels that learn more)
        """Learn from the fitted graphs what values depend on: the width of a node kernel, if it is to follow the data."""
        learn_gamma(self, graphs)

    @abstractmethod
    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        """What the sums need of the graphs."""

    @abstractmethod
    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        """The kernel of each pair of graphs, not normalized; ``right=None``: left with itself, of which the upper half counts.

        One leading axis for each one-pass parameter.
        """

    @abstractmethod
    def _self_sums(self, described: Any) -> Floats:
        """The kernel of each graph with itself, not normalized, with the same leading axes."""


def _spans(n: int) -> list[slice]:
    """The numbers below n in spans of so many rows as are computed at once where results are in single precision."""
    return [slice(first, min(first + NARROW_ROWS, n)) for first in range(0, n, NARROW_ROWS)]


def _explained_kernels() -> list[str]:
    """Return the names of treegram's kernels that can be explained node by node."""
    found, known = set(), [GraphKernel]
    while known:
        kernel = known.pop()
        known += kernel.__subclasses__()
        if kernel.explained_by and kernel.name and kernel.__module__.startswith("treegram."):
            found.add(kernel.__name__)
    return sorted(found)


def _count_of(n_attributes: int) -> str:
    return counted(n_attributes, "attribute") if n_attributes else "no attributes"


def warn_of_unknown_labels(
    kernel: object, graphs: Graphs, is_known: NDArray[np.bool_], known: str, *, stacklevel: int
) -> None:
    """Warn where less than half of the nodes have a label of the fitted graphs: it is hardly the same under the same name.

    ``is_known`` says it of each of the ``label_values``.
    """
    counts = np.bincount(np.empty(0, int) if graphs.labels is None else graphs.labels, minlength=len(is_known))
    n_known, n_nodes = int(counts[is_known].sum()), int(counts.sum())
    if 2 * n_known >= n_nodes:
        return
    new = [graphs.label_values[code] for code in np.flatnonzero((counts > 0) & ~is_known)]
    how_many = (
        f"Only {n_known} of {n_nodes} nodes of the new graphs (X) have"
        if n_known
        else "No node of the new graphs (X) has"
    )
    warnings.warn(
        f"{how_many} a label that {type(kernel).__name__} was fitted on: they have {_some(new)}{known}. Do both use the same names for "
        "labels?",
        UserWarning,
        stacklevel=stacklevel,
    )


def warn_of_edge_vectors(kernel: object, graphs: Graphs, *, stacklevel: int) -> None:
    """Warn where edges have vectors: no kernel compares these as they are."""
    if graphs.n_edge_attributes:
        warnings.warn(
            f"{type(kernel).__name__} does not use the vectors of the edges. Put BinEdgeAttributes() before a kernel with "
            "use_edge_labels=True, or leave edge_attributes out of the graphs.",
            UserWarning,
            stacklevel=stacklevel,
        )


def used_labels(graphs: Graphs) -> list[Hashable]:
    """The labels that some node has, in order; none for graphs without labels."""
    if graphs.labels is None:
        return []
    counts = np.bincount(graphs.labels, minlength=len(graphs.label_values))
    return [graphs.label_values[code] for code in np.flatnonzero(counts)]


def _some(labels: Sequence[Hashable], most: int = 3) -> str:
    return ", ".join(repr(label) for label in labels[:most]) + ", ..." * (len(labels) > most)


def _diagonals(grams: Floats) -> Floats:
    diagonals: Floats = np.einsum("...ii->...i", grams).copy()
    return diagonals


def complete_gram(K: Floats, diagonals: Floats | None, n_jobs: int | None) -> None:
    """Fill the lower halves of symmetric matrices from the upper ones, normalized unless there are no ``diagonals``, in place."""
    complete(K, None if diagonals is None else inverse_roots(diagonals))


def normalize_gram(K: Floats, rows: Floats, columns: Floats) -> None:
    """K / sqrt(rows columns), in place; a graph whose kernel with itself is 0 gets zeros.

    ``rows`` and ``columns`` are the kernels with themselves of the graphs along either axis, with the leading axes of K. The
    two factors are multiplied first, so that a symmetric matrix stays so in every bit.
    """
    row_factors, column_factors = (inverse_roots(diagonal) for diagonal in (rows, columns))
    factors = np.empty((min(ROWS_AT_ONCE, K.shape[-2]), K.shape[-1]))
    for point in np.ndindex(K.shape[:-2]):
        for first in range(0, K.shape[-2], ROWS_AT_ONCE):
            rows_here = K[point][first : first + ROWS_AT_ONCE]
            some = row_factors[point][first : first + ROWS_AT_ONCE, None]
            rows_here *= np.multiply(some, column_factors[point], out=factors[: len(some)])


def inverse_roots(diagonal: Floats) -> Floats:
    positive = diagonal > 0
    roots: Floats = np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)
    return roots
