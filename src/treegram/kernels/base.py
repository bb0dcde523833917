"""The base class of graph kernels: fit, transform, grids of parameters, normalization, and the checks between them.

A kernel declares its name, its parameters, its default grid and the parameters that one pass can vary, and computes values with
three methods: ``_describe`` turns graphs into the form that its sums need, ``_pair_sums`` computes the kernel of all pairs of
graphs, ``_self_sums`` that of each graph with itself. All three work for a grid of the one-pass parameters, and results have one
leading axis for its points; a single kernel is a grid of one point. Most kernels inherit the three from a family:
:class:`~treegram.kernels.node_pairs.NodePairKernel` or :class:`~treegram.kernels.explicit.ExplicitKernel`.

Your own kernel is a subclass with the decorator :func:`parameters`; :func:`register_kernel`, or an entry point of the
group ``treegram.kernels``, makes its name known to models, studies and the command line.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from treegram._core.errors import InvalidGraphError, ParameterError
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
from treegram._core.text import counted, listed
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs, as_graphs
from treegram.kernels.grid import Grid, GridPoint, grid_params, grid_points
from treegram.pairsum.attributes import GAMMA_RULES, NODE_KERNEL_NAMES
from treegram.pairsum.tiles import complete
from treegram.structure.features import Features, gather

# What your own kernels need; modules of the package also import helpers that are not listed.
__all__ = [
    "AUTO",
    "FLAG",
    "KERNELS",
    "PRECOMPUTED",
    "ExplicitKernel",
    "Features",
    "GraphKernel",
    "Grid",
    "NodePairKernel",
    "Number",
    "Whole",
    "Words",
    "gather",
    "parameters",
    "register_kernel",
]

ROWS_AT_ONCE = 32  # rows that are normalized together: their factors stay in cache

ENTRY_POINTS = "treegram.kernels"  # the group in which installed packages list their kernels, by name
AUTO = "auto"  # in place of a kernel's name: models choose among candidates of their own
PRECOMPUTED = "precomputed"  # in place of a kernel's name: models take Gram matrices


class _Registry(dict[str, "type[GraphKernel]"]):
    """Kernels by name; a name that is missing may be an entry point of an installed package, which is then loaded."""

    def __missing__(self, name: str) -> type[GraphKernel]:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            kind = entry.load()
            if not (isinstance(kind, type) and issubclass(kind, GraphKernel) and kind.name == name):
                raise ParameterError(
                    f"The entry point {entry.value!r} must be a subclass of GraphKernel whose name is {name!r}; got {kind!r}."
                )
            return register_kernel(kind)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or bool(entry_points(group=ENTRY_POINTS, name=str(name)))


KERNELS = _Registry()  # by the names that kernels have in models, studies and the command line
Kind = TypeVar("Kind", bound="type[GraphKernel]")


def register_kernel(kind: Kind) -> Kind:
    """Make a kernel known to models, studies and the command line by its ``name``; can be used as a decorator.

    A package can also list its kernels in the entry point group ``treegram.kernels``: they are loaded when their name is used.

    Parameters
    ----------
    kind : subclass of GraphKernel
        The kernel, with a ``name`` that no other kernel has.

    Returns
    -------
    subclass of GraphKernel
        The same class.
    """
    if kind.name in ("", AUTO, PRECOMPUTED):
        raise ParameterError(
            f"name of {kind.__name__} must be a word other than {AUTO!r} and {PRECOMPUTED!r}; got {kind.name!r}."
        )
    if KERNELS.setdefault(kind.name, kind) is not kind:
        raise ParameterError(f"name of {kind.__name__} is that of {KERNELS[kind.name].__name__}: {kind.name!r}.")
    return kind


def normalization_of(kernel: Any) -> str:
    """Return "cosine", "tanimoto", or "" for none."""
    return str(kernel.normalize) if isinstance(kernel.normalize, str) else "cosine" * bool(kernel.normalize)


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
        "normalize": (FLAG, Words("cosine", "tanimoto")),
        "random_state": SEED,
        "n_jobs": (Whole(), NOTHING),
    }

    normalize: bool | str = True
    n_jobs: int | None = None

    _normalization = property(normalization_of)

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
        """Fit, and compute the Gram matrix of the graphs: ``fit(X).transform(X)`` at half the cost.

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
        require_gram(len(X), len(X))
        self._remember(X)
        K = self._pair_sums(self._fitted, None)
        diagonals = self._finite(_diagonals(K))
        self._self_kernels = diagonals if self.normalize else None
        complete_gram(K, diagonals, self._normalization)
        return K.reshape(K.shape[-2:])

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
        described = self._describe(graphs, self._own_grid())
        K = self._pair_sums(described, self._fitted)
        if self._self_kernels is not None:
            normalize_gram(K, self._finite(self._self_sums(described)), self._self_kernels, self._normalization)
        return K.reshape(K.shape[-2:])

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
        sums = self._self_sums(self._describe(self._check_like_fitted(X), self._own_grid())).reshape(-1)
        return np.where(sums > 0, 1.0, 0.0) if self.normalize else sums

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

    # ---------------------------------------------------------------- one pass of a grid

    def _own_grid(self) -> Grid:
        """Return the parameters as a grid of one point."""
        return {name: [getattr(self, name)] for name in self._one_pass}

    def _grid_names(self) -> dict[str, bool]:
        """Return the parameters that a grid may name, and whether one pass can vary them."""
        return dict.fromkeys(self._one_pass, True) | {
            name: name in self._one_pass for name in self.get_params(deep=False)
        }

    def _grid_allowed(self, name: str) -> list[tuple[str, Allowed]]:
        """Return the owners of a parameter, each with the values that it allows."""
        return [(type(self).__name__, allowed_values(type(self))[name])]

    def _with(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values of some parameters of a grid."""
        copy: Self = clone(self).set_params(**values)
        return copy

    def _grid_pass(self, X: Graphs, X_new: Graphs, param_grid: Grid) -> list[GridPoint]:
        """Compute all points of a grid of one-pass parameters, which are in the order of ``_one_pass``."""
        grid = {**self._own_grid(), **param_grid}
        points = grid_params(param_grid)
        require_gram(len(points), len(X) + len(X_new), len(X))
        self._check_alike(X_new, X)
        n, order = len(points), np.arange(len(points))
        if self._adds_up:
            ((name, values),) = grid.items()
            steps, order = np.unique(np.asarray(values), return_inverse=True)
            n, grid = len(steps), {name: steps.tolist()}
        worker = clone(self)
        worker._learn(X, grid)
        fitted = worker._describe(X, grid)
        grams = self._totals(worker._pair_sums(fitted, None).reshape(n, len(X), len(X)))
        diagonals = self._finite(_diagonals(grams))
        complete_gram(grams, diagonals, self._normalization)
        rows, self_kernels = np.empty((n, 0, len(X))), np.empty((n, 0))
        if len(X_new):
            new = worker._describe(X_new, grid)
            rows = self._totals(worker._pair_sums(new, fitted).reshape(n, len(X_new), len(X)))
            self_kernels = self._finite(self._totals(worker._self_sums(new).reshape(n, len(X_new))))
            if self.normalize:
                normalize_gram(rows, self_kernels, diagonals, self._normalization)
                self_kernels = np.where(self_kernels > 0, 1.0, 0.0)
        return [GridPoint(params, grams[i], rows[i], self_kernels[i]) for params, i in zip(points, order, strict=True)]

    def _totals(self, sums: Floats) -> Floats:
        """Turn what each point adds to the one before, along the first axis, into totals, in place; see ``_adds_up``."""
        if self._adds_up and len(sums) > 1:
            # Entries below a symmetric matrix's diagonal are arbitrary.
            with np.errstate(over="ignore", invalid="ignore"):
                np.cumsum(sums, axis=0, out=sums)
        return sums

    # ---------------------------------------------------------------- explanations

    def _node_contributions(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """Return what each node adds to the sums of weights[i, j] K(G, G_i) over the fitted graphs G_i, (n_nodes, n_outputs).

        With ``spread``, what a node adds by the tree around it is divided among the nodes of that tree; a kernel without trees
        attributes it to the node itself.
        """
        self._check_explained()
        spread = spread and self._explained_by == "trees"
        if self._normalization == "tanimoto":
            return self._tanimoto_contributions(graphs, weights, spread=spread)
        if self._self_kernels is not None:
            weights = weights * inverse_roots(self._self_kernels.reshape(-1))[:, None]
        described = self._describe(graphs, self._own_grid())
        return self._normalized(graphs, described, self._raw_contributions(graphs, described, weights, spread=spread))

    def _tanimoto_contributions(self, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
        """Return the same where each pair of graphs has its own divisor: one graph at a time."""
        assert self._self_kernels is not None
        found = [np.empty((0, weights.shape[1]))]
        for graph in graphs:
            described = self._describe(graph, self._own_grid())
            K = self._pair_sums(described, self._fitted).reshape(-1)
            divisors = self._self_sums(described).reshape(-1) + self._self_kernels.reshape(-1) - K
            own = weights * np.divide(1.0, divisors, out=np.zeros_like(K), where=K != 0)[:, None]
            found.append(self._raw_contributions(graph, described, own, spread=spread))
        return np.concatenate(found)

    def _normalized(self, graphs: Graphs, described: Any, contributions: Floats) -> Floats:
        if self.normalize:
            factors = inverse_roots(self._self_sums(described).reshape(-1))
            contributions = contributions * factors[graphs.graph_ids, None]
        return contributions

    def _raw_contributions(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        """Return the same without normalization; for kernels with ``_explained_by``."""
        raise NotImplementedError

    def _check_explained(self) -> None:
        if not self._explained_by:
            kinds = (kind for kind in KERNELS.values() if kind._explained_by or hasattr(kind, "_column_parts"))
            known = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ParameterError(
                f"{type(self).__name__} cannot be explained. These kernels can be: {known}, and sums (KernelSum) "
                "and pipelines of these."
            )

    # ---------------------------------------------------------------- fitted graphs

    def _remember(self, X: Any) -> None:
        self._check_parameters()
        graphs = as_graphs(X)
        if self._warns_of_unused:
            warn_of_unused(self, self._unused_data(graphs))
        self._learn(graphs, self._own_grid())
        self._fitted = self._describe(graphs, self._own_grid())
        self.graphs_ = graphs
        self.n_attributes_in_ = graphs.n_attributes

    def _check_like_fitted(self, X: Any) -> Graphs:
        """Return the graphs, if they are of the same kind as the fitted ones."""
        graphs = as_graphs(X)
        self._check_alike(graphs, self.graphs_)
        return graphs

    def _check_alike(self, graphs: Graphs, fitted: Graphs) -> None:
        if not graphs.n_nodes or not fitted.n_nodes:
            return
        if self._uses_vectors and graphs.n_attributes != fitted.n_attributes:
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
            if known:
                warn_of_unknown_labels(self, graphs, is_known, f", the fitted ones have {_some(known)}")

    @property
    def _uses_labels(self) -> bool:
        return bool(getattr(self, "use_labels", True))

    @property
    def _uses_vectors(self) -> bool:
        return self.uses_attributes

    def _unused_data(self, graphs: Graphs) -> dict[str, str]:
        """Return the data of the graphs that this kernel does not use, each with a way to use it."""
        return unused_data(self, graphs, uses_labels=self._uses_labels, uses_vectors=self._uses_vectors)

    def _refuse(self, now: str, then: str) -> None:
        raise InvalidGraphError(
            f"{now}, but {type(self).__name__} was fitted {then}. Build them the same way as the training graphs."
        )

    def _own_kernels(self) -> Floats:
        """Return the kernel of each fitted graph with itself, as ``diag`` does."""
        known = self._self_kernels
        sums: Floats = (self._self_sums(self._fitted) if known is None else known).reshape(-1)
        return sums if known is None else (sums > 0).astype(float)

    def _columns(self, chosen: Ints) -> Floats:
        """Compute the kernel of all fitted graphs with some of them."""
        K = self._pair_sums(self._fitted, self._describe(self.graphs_[chosen], self._own_grid()))
        if self._self_kernels is not None:
            normalize_gram(K, self._self_kernels, self._self_kernels[..., chosen], self._normalization)
        return K.reshape(K.shape[-2:])

    def _square(self, chosen: Ints) -> Floats:
        """Compute the kernel of some fitted graphs with each other."""
        K = self._pair_sums(self._describe(self.graphs_[chosen], self._own_grid()), None)
        complete_gram(
            K, _diagonals(K) if self._self_kernels is None else self._self_kernels[..., chosen], self._normalization
        )
        return K.reshape(K.shape[-2:])

    def _keep(self, chosen: Ints) -> None:
        """Forget all but some of the fitted graphs; keep what was learned from all of them."""
        self.graphs_ = self.graphs_[chosen]
        self._fitted = self._describe(self.graphs_, self._own_grid())
        if self._self_kernels is not None:
            self._self_kernels = self._self_kernels[..., chosen]

    def _finite(self, self_kernels: Floats) -> Floats:
        """Return the kernels of graphs with themselves, the largest values; raise if double precision cannot hold them."""
        is_bad, size = ~np.isfinite(self_kernels), "large"
        if self.normalize and not is_bad.any():
            is_bad, size = (self_kernels > 0) & (self_kernels < np.finfo(np.float64).tiny), "small"
        if is_bad.any():
            raise ValueError(
                f"Graph {np.argwhere(is_bad)[0, -1]}: its {type(self).__name__} kernel with itself is too {size} for double "
                "precision. Scale its attributes first (ScaleAttributes), or use node_kernel='rbf'."
            )
        return self_kernels

    # ---------------------------------------------------------------- to be implemented by each kernel

    def _learn(self, graphs: Graphs, grid: Grid) -> None:  # noqa: ARG002 (for kernels that learn more)
        """Learn from the fitted graphs what values depend on: by default gamma, if it depends on the data."""
        learn_gamma(self, graphs)

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
    def _self_sums(self, described: Any) -> Floats:
        """Compute the kernel of each graph with itself, not normalized: (n_points, n_graphs)."""


def options_of(kernel: Any, *names: str) -> dict[str, Any]:
    """Return some parameters of a kernel, to pass them on under the same names."""
    return {name: getattr(kernel, name) for name in names}


def arc_matrix(graphs: Graphs) -> sp.csr_matrix:
    """Return the adjacency matrix of all nodes."""
    ones, n = np.ones(len(graphs.indices)), graphs.n_nodes
    return sp.csr_matrix((ones, graphs.indices, graphs.indptr), shape=(n, n))


def node_vectors(graphs: Graphs) -> Floats:
    """Return the vectors of all nodes; without attributes they have no columns."""
    return np.zeros((graphs.n_nodes, 0)) if graphs.attributes is None else graphs.attributes


def learn_gamma(kernel: Any, graphs: Graphs) -> None:
    """Set ``gamma_`` of a kernel whose gamma is a word, by the rule of that name, from the vectors of the fitted nodes."""
    word = getattr(kernel, "gamma", None)
    if isinstance(word, str):
        kernel.gamma_ = GAMMA_RULES[word](node_vectors(graphs))


def _count_of(n_attributes: int) -> str:
    return counted(n_attributes, "attribute") if n_attributes else "no attributes"


def outside_level() -> int:
    """Return the ``stacklevel`` with which a warning of the caller shows where the user called treegram or scikit-learn."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("treegram", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level


def warn_of_unknown_labels(kernel: object, graphs: Graphs, is_known: NDArray[np.bool_], known: str) -> None:
    """Warn if less than half of the nodes have a label that the fitted graphs have: the names probably mean different things.

    ``is_known`` has one entry for each of the ``label_values``.
    """
    counts = np.bincount(np.empty(0, int) if graphs.labels is None else graphs.labels, minlength=len(is_known))
    n_known, n_nodes = int(counts[is_known].sum()), int(counts.sum())
    if 2 * n_known >= n_nodes:
        return
    new = [graphs.label_values[code] for code in np.flatnonzero((counts > 0) & ~is_known)]
    how_many = f"Only {n_known} of {n_nodes} nodes" if n_known else "No node"
    warnings.warn(
        f"{how_many} of the new graphs (X) {'have' if n_known else 'has'} a label that {type(kernel).__name__} was fitted on: they have {_some(new)}{known}. Do both use the same names for "
        "labels?",
        UserWarning,
        stacklevel=outside_level(),
    )


def unused_data(
    estimator: Any, graphs: Graphs, *, uses_labels: bool = True, uses_vectors: bool = True
) -> dict[str, str]:
    """Return the data of the graphs that an estimator does not use, each with a way to use it."""
    unused = {}
    if not uses_labels and _vary(graphs.labels):
        unused["node labels"] = "set use_labels=True" if hasattr(estimator, "use_labels") else "use WL or ODDST"
    if not uses_vectors and graphs.n_attributes:
        unused["node vectors"] = "use WLCL, ODDCL or another kernel of vectors"
    if not getattr(estimator, "use_edge_labels", False) and _vary(graphs.edge_labels):
        has_option = hasattr(estimator, "use_edge_labels")
        unused["edge labels"] = f"{'set' if has_option else 'use WL, WLCL or ODDCL with'} use_edge_labels=True"
    if graphs.n_edge_attributes:
        unused["edge vectors"] = "put BinEdgeAttributes() before a kernel with use_edge_labels=True"
    return unused


def warn_of_unused(kernel: object, unused: Mapping[str, str]) -> None:
    """Warn about data that a kernel does not use."""
    if unused:
        ways = "; ".join(f"for {name}, {way}" for name, way in unused.items())
        advice = f"To use them: {ways}" if len(unused) > 1 else f"To use them, {''.join(unused.values())}"
        warnings.warn(
            f"{type(kernel).__name__} does not use the {listed(list(unused))} of these graphs. {advice}. To ignore them, "
            "leave them out of the graphs.",
            UserWarning,
            stacklevel=outside_level(),
        )


def _vary(codes: Ints | None) -> bool:
    return codes is not None and len(codes) > 0 and bool((codes != codes[0]).any())


def used_labels(graphs: Graphs) -> list[Hashable]:
    """Return the labels that some node has, in order; none for graphs without labels."""
    if graphs.labels is None:
        return []
    counts = np.bincount(graphs.labels, minlength=len(graphs.label_values))
    return [graphs.label_values[code] for code in np.flatnonzero(counts)]


def _some(labels: Sequence[Hashable], most: int = 3) -> str:
    return ", ".join(repr(label) for label in labels[:most]) + ", ..." * (len(labels) > most)


def _diagonals(grams: Floats) -> Floats:
    diagonals: Floats = np.einsum("...ii->...i", grams).copy()
    return diagonals


def complete_gram(K: Floats, diagonals: Floats, normalization: str) -> None:
    """Fill the lower halves of symmetric matrices from the upper ones, and normalize them, in place."""
    complete(K, inverse_roots(diagonals) if normalization == "cosine" else None)
    if normalization == "tanimoto":
        normalize_gram(K, diagonals, diagonals, normalization)


def normalize_gram(K: Floats, rows: Floats, columns: Floats, normalization: str) -> None:
    """Divide K by sqrt(rows columns) ("cosine") or by rows + columns - K ("tanimoto"), in place; 0 / 0 is 0.

    ``rows`` and ``columns`` are the kernels of the graphs along each axis with themselves, with the leading axes of K. The
    two are combined first, so that a symmetric matrix remains symmetric in every bit.
    """
    is_cosine = normalization == "cosine"
    if is_cosine:
        rows, columns = inverse_roots(rows), inverse_roots(columns)
    combine = np.multiply if is_cosine else np.add
    factors = np.empty((min(ROWS_AT_ONCE, K.shape[-2]), K.shape[-1]))
    for point in np.ndindex(K.shape[:-2]):
        for first in range(0, K.shape[-2], ROWS_AT_ONCE):
            block = K[point][first : first + ROWS_AT_ONCE]
            some = combine(rows[point][first : first + ROWS_AT_ONCE, None], columns[point], out=factors[: len(block)])
            if is_cosine:
                block *= some
            else:
                np.divide(block, some - block, out=block, where=block != 0)


def inverse_roots(diagonal: Floats) -> Floats:
    """Compute 1 / sqrt(diagonal); 0 for entries that are not positive."""
    positive = diagonal > 0
    roots: Floats = np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)
    return roots


# The families, so that your own kernel needs only this module; last, because they import it.
from treegram.kernels.explicit import ExplicitKernel  # noqa: E402
from treegram.kernels.node_pairs import NodePairKernel  # noqa: E402
