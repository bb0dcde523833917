"""Graphs: one packed, immutable, validated collection of graphs.

All graphs of a collection share flat arrays: nodes are numbered through, graph after graph, and neighbours are one
CSR structure over all of them. Everything is checked once, when a collection is made; nothing is checked later.
Reading files is the business of ``treegram.datasets``, what a kernel sees of a graph that of ``treegram.structure``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._pack import (
    as_list,
    check_attributes,
    check_edge_list,
    check_edges,
    check_offsets,
    check_targets,
    check_vectors,
    compress_edges,
    concatenate_present,
    encode_labels,
    graph_sizes,
    join_codes,
    ranges,
    same_array,
    same_labels,
    stack_vectors,
)
from treegram._types import Floats, Ints
from treegram._validate import check_collection
from treegram.errors import InvalidGraphError

__all__ = ["Graphs", "as_graphs"]


@dataclass(frozen=True, eq=False, repr=False)
class Graphs:
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
        Neighbours, sorted within each node; an undirected edge is there once for each of its ends.
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
        self.__dict__.update(state)
        self.__post_init__()  # pickle and copy forget that the arrays are read-only; a file may hold anything

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001 (numpy's protocol)
        """One row per graph, as scikit-learn wants it; in a list of graphs each is a row, so one graph has one axis."""
        if dtype not in (None, np.dtype(object)) or copy is False:
            raise TypeError(f"Graphs become an array of dtype object, as a copy; got dtype={dtype}, copy={copy}.")
        rows = np.empty(len(self), dtype=object)
        for i in range(len(self)):
            rows[i] = self[i]
        return rows if len(self) == 1 else rows[:, None]

    # ---------------------------------------------------------------- ways in

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[ArrayLike],
        *,
        n_nodes: Sequence[int] | None = None,
        labels: Sequence[Sequence[Hashable]] | None = None,
        attributes: Sequence[ArrayLike] | None = None,
        edge_labels: Sequence[Sequence[Hashable]] | None = None,
        directed: bool = False,
        targets: ArrayLike | None = None,
    ) -> Graphs:
        """Make a collection from one edge list per graph, nodes numbered from 0 within each graph.

        Parameters
        ----------
        edges : iterable of array-like of shape (n_edges, 2)
            One list of node pairs per graph. Self loops are dropped and repeated edges count once.
        n_nodes : sequence of int, optional
            Nodes of each graph. Without it the number comes from ``labels`` or ``attributes``, else from the largest
            node that an edge names.
        labels : sequence of sequences, optional
            One discrete label per node and graph: integers, strings or tuples of these.
        attributes : sequence of array-like of shape (n_nodes, n_attributes), optional
            One real vector per node and graph.
        edge_labels : sequence of sequences, optional
            One discrete label per listed edge and graph.
        directed : bool, default=False
            Whether an edge (a, b) leads from a to b only.
        targets : array-like of shape (n_graphs,), optional
            One class or number per graph.

        Returns
        -------
        Graphs
            The collection.
        """
        pairs = [check_edge_list(e, i) for i, e in enumerate(as_list(edges, "edges"))]
        n_nodes, labels, attributes, edge_labels = (
            None if lists is None else as_list(lists, name, len(pairs))
            for name, lists in (
                ("n_nodes", n_nodes),
                ("labels", labels),
                ("attributes", attributes),
                ("edge_labels", edge_labels),
            )
        )
        vectors = None if attributes is None else [check_vectors(a, i) for i, a in enumerate(attributes)]
        sizes = graph_sizes(pairs, n_nodes, labels, vectors)
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        for i, (pair, size) in enumerate(zip(pairs, sizes, strict=True)):
            if len(pair) and (pair.min() < 0 or pair.max() >= size):
                bad = pair[((pair < 0) | (pair >= size)).any(axis=1)][0]
                raise InvalidGraphError(
                    f"Graph {i}: edge ({bad[0]}, {bad[1]}) names a node that does not exist; the graph has {size} nodes, "
                    f"numbered from 0 to {size - 1}."
                )
            if edge_labels is not None and len(edge_labels[i]) != len(pair):
                raise InvalidGraphError(
                    f"Graph {i}: {_count(len(pair), 'edge')} but {_count(len(edge_labels[i]), 'edge label')}."
                )
        return cls.from_arrays(
            offsets,
            np.concatenate([np.empty((0, 2), np.int64), *(p + o for p, o in zip(pairs, offsets[:-1], strict=True))]),
            labels=None if labels is None else [label for graph in labels for label in graph],
            attributes=None if vectors is None else stack_vectors(vectors),
            edge_labels=None if edge_labels is None else [label for graph in edge_labels for label in graph],
            directed=directed,
            targets=targets,
        )

    @classmethod
    def from_arrays(
        cls,
        offsets: ArrayLike,
        edges: ArrayLike,
        *,
        labels: Sequence[Hashable] | NDArray[Any] | None = None,
        attributes: ArrayLike | None = None,
        edge_labels: Sequence[Hashable] | NDArray[Any] | None = None,
        directed: bool = False,
        targets: ArrayLike | None = None,
    ) -> Graphs:
        """Make a collection from flat arrays, nodes numbered through all graphs.

        Parameters
        ----------
        offsets : array-like of int, shape (n_graphs + 1,)
            Graph ``i`` owns the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
        edges : array-like of int, shape (n_edges, 2)
            Node pairs. An undirected edge may be listed in either or both directions.
        labels : sequence or ndarray of shape (n_nodes,) or (n_nodes, n_columns), optional
            Discrete label of each node. Several columns make one label that is a tuple.
        attributes : array-like of shape (n_nodes, n_attributes), optional
            Real vector of each node.
        edge_labels : sequence or ndarray of shape (n_edges,), optional
            Discrete label of each listed edge.
        directed : bool, default=False
            Whether an edge (a, b) leads from a to b only.
        targets : array-like of shape (n_graphs,), optional
            One class or number per graph.

        Returns
        -------
        Graphs
            The collection.
        """
        starts = check_offsets(offsets)
        n_nodes = int(starts[-1])
        codes, values = (None, ()) if labels is None else encode_labels(labels, n_nodes, "labels", "nodes")
        pairs = check_edges(edges, starts)
        edge_codes, edge_values = (
            (None, ()) if edge_labels is None else encode_labels(edge_labels, len(pairs), "edge_labels", "edges")
        )
        indptr, indices, arc_codes = compress_edges(pairs, edge_codes, starts, directed=directed)
        return cls._trusted(
            offsets=starts,
            indptr=indptr,
            indices=indices,
            labels=codes,
            label_values=values,
            attributes=None if attributes is None else check_attributes(attributes, starts),
            edge_labels=arc_codes,
            edge_label_values=edge_values,
            directed=bool(directed),
            targets=None if targets is None else check_targets(targets, len(starts) - 1),
        )

    @classmethod
    def from_networkx(
        cls,
        graphs: Iterable[Any],
        label: str | None = "label",
        attributes: str | Sequence[str] | None = "attributes",
        *,
        edge_label: str | None = None,
        targets: ArrayLike | None = None,
    ) -> Graphs:
        """Make a collection from networkx graphs.

        Parameters
        ----------
        graphs : iterable of networkx.Graph or networkx.DiGraph
            Either all directed or all undirected. Nodes keep their order; their names are not kept.
        label : str or None, default="label"
            Name of the node datum that holds the discrete label; None: no labels. The default may be missing, any other
            name must exist.
        attributes : str, sequence of str, or None, default="attributes"
            Name of the node datum that holds the vector (or a number), or names of several numbers that make the
            vector; None: no attributes. The default may be missing, any other name must exist.
        edge_label : str or None, default=None
            Name of the edge datum that holds the discrete edge label.
        targets : array-like of shape (n_graphs,), optional
            One class or number per graph.

        Returns
        -------
        Graphs
            The collection.

        Warns
        -----
        UserWarning
            Once, if nodes have data that are not used.
        """
        from treegram._networkx import read_networkx

        return read_networkx(graphs, label, attributes, edge_label, targets)

    @classmethod
    def concatenate(cls, parts: Iterable[Graphs]) -> Graphs:
        """Join collections, in order; ``a + b`` is short for two.

        Parameters
        ----------
        parts : iterable of Graphs
            Collections that agree in what they hold: labels, attributes of one dimension, edge labels, direction.
            Targets are kept when all parts have them.

        Returns
        -------
        Graphs
            All graphs of the first part, then all of the second, and so on.
        """
        parts = list(parts)
        if not parts:
            return cls.from_arrays([0], np.empty((0, 2), np.int64))
        if len(parts) == 1:
            return parts[0]
        _check_joinable(parts)
        with_nodes = [p for p in parts if p.n_nodes] or parts[
            :1
        ]  # the others have no vector that could tell a dimension
        node_starts = np.cumsum([0] + [p.n_nodes for p in parts])
        arc_starts = np.cumsum([0] + [len(p.indices) for p in parts])
        labels, label_values = join_codes([p.labels for p in parts], [p.label_values for p in parts])
        edge_labels, edge_label_values = join_codes(
            [p.edge_labels for p in parts], [p.edge_label_values for p in parts]
        )
        return cls._trusted(
            offsets=np.concatenate([[0], *(p.offsets[1:] + s for p, s in zip(parts, node_starts, strict=False))]),
            indptr=np.concatenate([[0], *(p.indptr[1:] + s for p, s in zip(parts, arc_starts, strict=False))]),
            indices=np.concatenate([p.indices + s for p, s in zip(parts, node_starts, strict=False)]),
            labels=labels,
            label_values=label_values,
            attributes=concatenate_present([p.attributes for p in with_nodes]),
            edge_labels=edge_labels,
            edge_label_values=edge_label_values,
            directed=parts[0].directed,
            targets=concatenate_present([p.targets for p in parts]),
        )

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
    def sizes(self) -> Ints:
        """Number of nodes of each graph."""
        return np.diff(self.offsets)

    @property
    def degrees(self) -> Ints:
        """Number of neighbours of each node (out-degree where edges are directed)."""
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
        # Within a graph neighbours keep their distance to the graph's first node.
        shift = np.repeat(offsets[:-1] - self.offsets[:-1][chosen], self.sizes[chosen])
        return Graphs._trusted(
            offsets=offsets,
            indptr=np.concatenate([[0], np.cumsum(self.degrees[nodes])]),
            indices=self.indices[arcs] + np.repeat(shift, self.degrees[nodes]),
            labels=None if self.labels is None else self.labels[nodes],
            label_values=self.label_values,
            attributes=None if self.attributes is None else self.attributes[nodes],
            edge_labels=None if self.edge_labels is None else self.edge_labels[arcs],
            edge_label_values=self.edge_label_values,
            directed=self.directed,
            targets=None if self.targets is None else self.targets[chosen],
        )

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
        plain = ("offsets", "indptr", "indices", "attributes", "targets")
        return (
            all(same_array(getattr(self, name), getattr(other, name)) for name in plain)
            and same_labels(self.labels, self.label_values, other.labels, other.label_values)
            and same_labels(self.edge_labels, self.edge_label_values, other.edge_labels, other.edge_label_values)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [
            _count(len(self), "graph"),
            _count(self.n_nodes, "node"),
            _count(self.n_edges, "edge"),
            "directed" if self.directed else "undirected",
            "no labels" if self.labels is None else _count(len(self.label_values), "label"),
        ]
        if self.attributes is not None:
            parts.append(_count(self.n_attributes, "attribute"))
        if self.edge_labels is not None:
            parts.append(_count(len(self.edge_label_values), "edge label"))
        if self.targets is not None:
            parts.append("targets")
        return f"Graphs({', '.join(parts)})"


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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _check_joinable(parts: list[Graphs]) -> None:
    first = next((i for i, part in enumerate(parts) if part.n_nodes), 0)
    for i, part in enumerate(parts):
        for mine, theirs in zip(_contents(part), _contents(parts[first]), strict=True):
            if mine != theirs and (part.n_nodes or "attribute" not in mine):
                raise InvalidGraphError(
                    f"Collections of different kinds cannot be joined: part {first} has {theirs}, part {i} has {mine}."
                )


def _contents(graphs: Graphs) -> tuple[str, ...]:
    """What collections that are to be joined must have in common."""
    return (
        "no labels" if graphs.labels is None else "labels",
        "no edge labels" if graphs.edge_labels is None else "edge labels",
        f"{'directed' if graphs.directed else 'undirected'} edges",
        f"{_count(graphs.n_attributes, 'attribute')} per node",
    )
