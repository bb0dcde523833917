"""Graphs: one packed, immutable, validated collection of graphs.

All graphs of a collection share flat arrays: nodes are numbered through, graph after graph, and neighbors are one
CSR structure over all of them. Everything is checked once, when a collection is made; nothing is checked later.
Reading files is the business of ``treegram.datasets``, what a kernel sees of a graph that of ``treegram.structure``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import InvalidGraphError
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.graphs.check import check_attributes, chosen_nodes, ranges, same_array, same_labels
from treegram.graphs.from_arrays import FromArrays
from treegram.graphs.from_libraries import FromLibraries
from treegram.graphs.join import join_fields
from treegram.graphs.validate import check_collection

__all__ = ["Graphs", "as_graphs"]


@dataclass(frozen=True, eq=False, repr=False)
class Graphs(FromArrays, FromLibraries):
    """A packed, immutable collection of graphs with labels and vectors at the nodes.

    Make one with :meth:`from_edges`, :meth:`from_arrays`, :meth:`from_networkx` or :func:`treegram.load_tu`; the class
    itself takes the arrays below and checks that they fit together. An integer, slice, mask or index array selects
    graphs and gives another collection; iterating gives collections of one graph each. Every array is read-only.
    ``numpy.asarray`` gives one row per graph: an array of objects with a single column.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_graphs + 1,)
        Graph ``i`` owns the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    indptr : ndarray of int64, shape (n_nodes + 1,)
        Node ``v`` owns the entries ``indptr[v]`` to ``indptr[v + 1] - 1`` of ``indices``.
    indices : ndarray of int64, shape (n_arcs,)
        Neighbors, sorted within each node; an undirected edge is there once for each of its ends.
    labels : ndarray of int64, shape (n_nodes,), or None
        Code of each node's label, an index into ``label_values``.
    label_values : tuple
        The distinct labels as they were given, sorted.
    attributes : ndarray of float64, shape (n_nodes, n_attributes), or None
        One real vector per node.
    edge_labels : ndarray of int64, shape (n_arcs,), or None
        Code of each arc's label, an index into ``edge_label_values``.
    edge_label_values : tuple
        The distinct edge labels as they were given, sorted.
    directed : bool
        Whether edges have a direction.
    targets : ndarray of shape (n_graphs,), or None
        One class or number per graph.
    edge_attributes : ndarray of float64, shape (n_arcs, n_edge_attributes), or None
        One real vector per arc. :class:`treegram.BinEdgeAttributes` makes edge labels of them, which kernels use.

    Examples
    --------
    >>> from treegram import Graphs
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], []], labels=[["C", "C", "O"], ["N"]])
    >>> graphs
    Graphs(2 graphs, 4 nodes, 2 edges, undirected, 3 labels)
    >>> graphs[0].n_nodes
    3
    """

    offsets: Ints
    indptr: Ints
    indices: Ints
    labels: Ints | None
    label_values: tuple[Hashable, ...]
    attributes: Floats | None
    edge_labels: Ints | None
    edge_label_values: tuple[Hashable, ...]
    directed: bool
    targets: NDArray[Any] | None
    edge_attributes: Floats | None = None

    def __post_init__(self) -> None:
        check_collection(self.__dict__)
        self._freeze()

    @classmethod
    def _trusted(cls, **content: Any) -> Graphs:
        """A collection from arrays that are known to be right: nothing is checked."""
        made = object.__new__(cls)
        made.__dict__.update(content)
        made._freeze()
        return made

    def _freeze(self) -> None:
        for value in self.__dict__.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"edge_attributes": None, **state})  # files of older versions have none
        self.__post_init__()  # pickle and copy forget that the arrays are read-only; a file may hold anything

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001 (numpy's protocol)
        """One row per graph, as scikit-learn wants it; in a list of graphs each is a row, so one graph has one axis."""
        if dtype not in (None, np.dtype(object)) or copy is False:
            raise TypeError(f"Graphs become an array of dtype object, as a copy; got dtype={dtype}, copy={copy}.")
        rows = np.empty(len(self), dtype=object)
        for i in range(len(self)):
            rows[i] = self[i]
        return rows if len(self) == 1 else rows[:, None]

    @classmethod
    def concatenate(cls, parts: Iterable[Graphs]) -> Graphs:
        """Join collections, in order; ``a + b`` is short for two.

        Parameters
        ----------
        parts : iterable of Graphs
            Collections that agree in what they hold: labels, attributes of one dimension, those of edges, direction.
            Targets are kept when all parts have them.

        Returns
        -------
        Graphs
            All graphs of the first part, then all of the second, and so on.
        """
        parts = list(parts)
        if not parts:
            return cls.from_arrays([0], np.empty((0, 2), np.int64))
        return parts[0] if len(parts) == 1 else cls._trusted(**join_fields(parts))

    # ---------------------------------------------------------------- sizes

    @property
    def shape(self) -> tuple[int, int]:
        """The number of graphs, and 1: to scikit-learn a collection is an array with one row per graph, of one column."""
        return (len(self), 1)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return int(self.offsets[-1])

    @property
    def n_edges(self) -> int:
        """Number of edges of all graphs together, each undirected edge counted once."""
        return len(self.indices) if self.directed else len(self.indices) // 2

    @property
    def n_attributes(self) -> int:
        """Dimension of the node vectors; 0 without attributes."""
        return 0 if self.attributes is None else self.attributes.shape[1]

    @property
    def n_edge_attributes(self) -> int:
        """Dimension of the edge vectors; 0 without edge attributes."""
        return 0 if self.edge_attributes is None else self.edge_attributes.shape[1]

    @property
    def sizes(self) -> Ints:
        """Number of nodes of each graph."""
        return np.diff(self.offsets)

    @property
    def degrees(self) -> Ints:
        """Number of neighbors of each node (out-degree where edges are directed)."""
        return np.diff(self.indptr)

    @property
    def graph_ids(self) -> Ints:
        """The graph that each node belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def edges(self) -> Ints:
        """Each edge once as a pair of node numbers, the smaller first where edges have no direction.

        Returns
        -------
        ndarray of int64, shape (n_edges, 2)
            Node numbers run through all graphs, as in ``indices``.
        """
        return np.stack([np.repeat(np.arange(self.n_nodes), self.degrees), self.indices], axis=1)[self._edge_arcs()]

    def _edge_arcs(self) -> Ints:
        """Positions in ``indices`` that stand for one edge each."""
        if self.directed:
            return np.arange(len(self.indices))
        return np.flatnonzero(np.repeat(np.arange(self.n_nodes), self.degrees) < self.indices)

    # ---------------------------------------------------------------- selection and comparison

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Graphs]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Graphs:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # how scikit-learn indexes what has a shape
            key = key[0]
        chosen = self._chosen(key)
        nodes = ranges(self.offsets[:-1][chosen], self.sizes[chosen])
        arcs = ranges(self.indptr[:-1][nodes], self.degrees[nodes])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[chosen])])
        # Within a graph neighbors keep their distance to the graph's first node.
        shift = np.repeat(offsets[:-1] - self.offsets[:-1][chosen], self.sizes[chosen])
        return self._part(
            nodes,
            arcs,
            offsets=offsets,
            indptr=np.concatenate([[0], np.cumsum(self.degrees[nodes])]),
            indices=self.indices[arcs] + np.repeat(shift, self.degrees[nodes]),
            targets=None if self.targets is None else self.targets[chosen],
        )

    def _part(self, nodes: Ints, arcs: Ints, **changed: Any) -> Graphs:
        """A collection of some nodes and arcs of this one, with the given arrays."""
        return Graphs._trusted(
            **{
                **self.__dict__,
                "labels": None if self.labels is None else self.labels[nodes],
                "attributes": None if self.attributes is None else self.attributes[nodes],
                "edge_labels": None if self.edge_labels is None else self.edge_labels[arcs],
                "edge_attributes": None if self.edge_attributes is None else self.edge_attributes[arcs],
                **changed,
            }
        )

    def subgraph(self, nodes: ArrayLike) -> Graphs:
        """The same graphs with some of their nodes, and the edges between these.

        Parameters
        ----------
        nodes : array-like of int or bool
            Node numbers that run through all graphs, each once, in any order; or one True or False per node. The nodes
            that stay keep their order.

        Returns
        -------
        Graphs
            As many graphs as before; one that keeps no node is a graph without nodes.

        Examples
        --------
        >>> from treegram import Graphs
        >>> ring = Graphs.from_edges([[(0, 1), (1, 2), (2, 3), (3, 0)]], labels=[["C", "C", "O", "C"]])
        >>> ring.subgraph([0, 1, 2]).edges().tolist()
        [[0, 1], [1, 2]]
        """
        is_kept = chosen_nodes(nodes, self.n_nodes)
        numbers = np.cumsum(is_kept) - 1
        kept = np.flatnonzero(is_kept)
        sources = np.repeat(np.arange(self.n_nodes), self.degrees)
        arcs = np.flatnonzero(is_kept[sources] & is_kept[self.indices])
        n_arcs = np.bincount(numbers[sources[arcs]], minlength=len(kept))
        return self._part(
            kept,
            arcs,
            offsets=np.concatenate([[0], np.cumsum(is_kept)])[self.offsets],
            indptr=np.concatenate([[0], np.cumsum(n_arcs)]),
            indices=numbers[self.indices[arcs]],
        )

    def with_attributes(self, attributes: ArrayLike | None) -> Graphs:
        """The same graphs with other vectors at their nodes.

        Parameters
        ----------
        attributes : array-like of shape (n_nodes, n_attributes), or None
            One real vector per node, numbered through all graphs; None: no attributes.

        Returns
        -------
        Graphs
            The collection with these attributes; all else stays as it is.

        Examples
        --------
        >>> from treegram import Graphs
        >>> Graphs.from_edges([[(0, 1)]]).with_attributes([[0.5], [1.5]])
        Graphs(1 graph, 2 nodes, 1 edge, undirected, no labels, 1 attribute)
        """
        vectors = None if attributes is None else check_attributes(attributes, self.offsets)
        return Graphs._trusted(**{**self.__dict__, "attributes": vectors})

    def _chosen(self, key: Any) -> Ints:
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(f"graph index {key} is out of range for {len(self)} graphs")
            return np.array([key % len(self)])
        if not isinstance(key, slice):
            key = np.asarray(key)
            if key.ndim != 1 or (key.size and key.dtype.kind not in "iub"):
                raise IndexError(
                    "graphs are selected by an integer, a slice, a boolean mask or an array of integers; "
                    f"got an array of dtype {key.dtype} and shape {key.shape}"
                )
            if not key.size and key.dtype != bool:
                key = key.astype(np.int64)
        chosen: Ints = np.arange(len(self))[key]
        return chosen

    def __add__(self, other: object) -> Graphs:
        if not isinstance(other, Graphs):
            return NotImplemented
        return Graphs.concatenate([self, other])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graphs):
            return NotImplemented
        if self.directed != other.directed:
            return False
        plain = ("offsets", "indptr", "indices", "attributes", "edge_attributes", "targets")
        return (
            all(same_array(getattr(self, name), getattr(other, name)) for name in plain)
            and same_labels(self.labels, self.label_values, other.labels, other.label_values)
            and same_labels(self.edge_labels, self.edge_label_values, other.edge_labels, other.edge_label_values)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [
            counted(len(self), "graph"),
            counted(self.n_nodes, "node"),
            counted(self.n_edges, "edge"),
            "directed" if self.directed else "undirected",
            "no labels" if self.labels is None else counted(len(self.label_values), "label"),
        ]
        if self.attributes is not None:
            parts.append(counted(self.n_attributes, "attribute"))
        if self.edge_labels is not None:
            parts.append(counted(len(self.edge_label_values), "edge label"))
        if self.edge_attributes is not None:
            parts.append(counted(self.n_edge_attributes, "edge attribute"))
        if self.targets is not None:
            parts.append("targets")
        return f"Graphs({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """The view in notebooks."""
        from treegram.graphs.html import graphs_to_html

        return graphs_to_html(self)


def as_graphs(X: Any) -> Graphs:
    """Give X as one collection: a Graphs, a list of Graphs, or a list of networkx graphs."""
    if isinstance(X, Graphs):
        return X
    if not isinstance(X, Iterable) or isinstance(X, str | bytes | dict):
        raise InvalidGraphError(f"X must be a Graphs collection or a list of graphs; got {type(X).__name__}.")
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]  # one row per graph, as np.asarray gives it
    items = list(X)
    if all(isinstance(item, Graphs) for item in items):
        return Graphs.concatenate(items)
    if all(hasattr(item, "nodes") and hasattr(item, "adj") for item in items):
        return Graphs.from_networkx(items)
    wrong = next(item for item in items if not isinstance(item, Graphs))
    raise InvalidGraphError(
        f"X must be a Graphs collection or a list of graphs; got a list that holds {type(wrong).__name__}. "
        "Make a collection with Graphs.from_edges, Graphs.from_networkx or load_tu."
    )
