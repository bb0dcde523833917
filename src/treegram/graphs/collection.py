"""Graphs: one packed, immutable, validated collection of graphs.

All graphs of a collection share flat arrays: nodes are numbered consecutively, graph after graph, and neighbors are one CSR
structure over all of them. Everything is checked once, when a collection is created.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treegram._core.text import counted, suggest
from treegram._core.types import Array, Floats, Ints
from treegram.exceptions import InvalidGraphError
from treegram.graphs import check
from treegram.graphs.build import check_collection, compress_edges, join_fields, stack_vectors
from treegram.graphs.from_libraries import FromLibraries


@dataclass(frozen=True, eq=False, repr=False)
class Graphs(FromLibraries):
    """A packed, immutable collection of graphs with labels and vectors on the nodes.

    Create one with :meth:`from_edges`, :meth:`from_arrays`, :meth:`from_networkx` or :func:`treegram.load_tu`; the class
    itself takes the arrays below and checks that they fit together. Indexing with an integer, slice, mask or index array
    gives another collection; iterating yields collections of one graph each. Every array is read-only.
    ``numpy.asarray`` gives one row per graph: an array of objects with a single column.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_graphs + 1,)
        Graph ``i`` owns the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    indptr : ndarray of int64, shape (n_nodes + 1,)
        Node ``v`` owns the entries ``indptr[v]`` to ``indptr[v + 1] - 1`` of ``indices``.
    indices : ndarray of int64, shape (n_arcs,)
        Neighbors, sorted within each node; an undirected edge appears once for each of its ends.
    labels : ndarray of int64, shape (n_nodes,), or None
        Code of each node's label, an index into ``label_values``.
    label_values : tuple
        The distinct labels, sorted.
    attributes : ndarray of float64, shape (n_nodes, n_attributes), or None
        One real vector per node.
    edge_labels : ndarray of int64, shape (n_arcs,), or None
        Code of each arc's label, an index into ``edge_label_values``.
    edge_label_values : tuple
        The distinct edge labels, sorted.
    directed : bool
        Whether edges have a direction.
    targets : ndarray of shape (n_graphs,), or None
        One class or regression target per graph.
    edge_attributes : ndarray of float64, shape (n_arcs, n_edge_attributes), or None
        One real vector per arc. :class:`treegram.BinEdgeAttributes` turns them into edge labels, which kernels use.
    graph_names, node_names : ndarray of str objects, shape (n_graphs,) and (n_nodes,), or None
        Name of each graph and of each node, for messages, plots and tables. Names need not be distinct, and no kernel
        depends on them.
    attribute_names, edge_attribute_names : tuple of str, or None
        Name of each column of ``attributes`` and ``edge_attributes``.
    graph_attributes : ndarray of float64, shape (n_graphs, n_graph_attributes), or None
        One real vector per graph, such as a temperature or descriptors of a molecule.
    graph_attribute_names : tuple of str, or None
        Name of each column of ``graph_attributes``. Up to ": ", it is the name of a group of columns.
    positions : ndarray of float64, shape (n_nodes, 2) or (n_nodes, 3), or None
        Where drawings place each node. No kernel depends on them.

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
    targets: Array | None
    edge_attributes: Floats | None = None
    graph_names: Array | None = None
    node_names: Array | None = None
    attribute_names: tuple[str, ...] | None = None
    edge_attribute_names: tuple[str, ...] | None = None
    graph_attributes: Floats | None = None
    graph_attribute_names: tuple[str, ...] | None = None
    positions: Floats | None = None

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            if isinstance(value, np.ndarray) and not value.flags.owndata:
                self.__dict__[name] = value.copy()  # a view could change through another array
        check_collection(self.__dict__)
        self._freeze()

    @classmethod
    def _trusted(cls, **content: Any) -> Graphs:
        """Create a collection from arrays that are known to be valid; nothing is checked."""
        graphs = object.__new__(cls)
        graphs.__dict__.update(content)
        graphs._freeze()
        return graphs

    def _freeze(self) -> None:
        for value in self.__dict__.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # a file may hold anything, and pickle does not keep arrays read-only

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: FBT001 (numpy's protocol)
        """Return one row per graph, as scikit-learn expects; a single graph has one axis, so a list of graphs is an array of rows."""
        if dtype not in (None, np.dtype(object)) or copy is False:
            raise TypeError(f"Graphs become an array of dtype object, as a copy; got dtype={dtype}, copy={copy}.")
        rows = np.empty(len(self), dtype=object)
        for i in range(len(self)):
            rows[i] = self[i]
        return rows if len(self) == 1 else rows[:, None]

    # ---------------------------------------------------------------- creation

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[ArrayLike],
        *,
        n_nodes: Sequence[int] | None = None,
        labels: Sequence[Sequence[Hashable]] | None = None,
        attributes: Sequence[ArrayLike] | None = None,
        edge_labels: Sequence[Sequence[Hashable]] | None = None,
        edge_attributes: Sequence[ArrayLike] | None = None,
        directed: bool = False,
        targets: ArrayLike | None = None,
        graph_names: Sequence[str] | None = None,
        node_names: Sequence[Sequence[str]] | None = None,
        attribute_names: Sequence[str] | None = None,
        edge_attribute_names: Sequence[str] | None = None,
        graph_attributes: ArrayLike | Mapping[str, Any] | None = None,
        graph_attribute_names: Sequence[str] | None = None,
        positions: Sequence[ArrayLike] | None = None,
    ) -> Graphs:
        """Build a collection from one edge list per graph; nodes are numbered from 0 within each graph.

        Parameters
        ----------
        edges : iterable of array-like of shape (n_edges, 2)
            One list of node pairs per graph. Self loops are dropped and repeated edges count once.
        n_nodes : sequence of int, optional
            Number of nodes of each graph. By default it follows from ``labels`` or ``attributes``, else from the
            largest node number of an edge.
        labels : sequence of sequences, optional
            One discrete label per node and graph: integers, strings or tuples of these.
        attributes : sequence of array-like of shape (n_nodes, n_attributes), optional
            One real vector per node and graph.
        edge_labels : sequence of sequences, optional
            One discrete label per listed edge and graph.
        edge_attributes : sequence of array-like of shape (n_edges, n_edge_attributes), optional
            One real vector per listed edge and graph.
        directed : bool, default=False
            Whether an edge (a, b) leads from a to b only.
        targets : array-like of shape (n_graphs,), optional
            One class or regression target per graph.
        graph_names : sequence of str, optional
            Name of each graph.
        node_names : sequence of sequences of str, optional
            Name of each node of each graph.
        attribute_names, edge_attribute_names : sequence of str, optional
            Name of each column of ``attributes`` and ``edge_attributes``.
        graph_attributes : array-like of shape (n_graphs, n_graph_attributes), optional
            Real vector of each graph. The columns of a pandas table give the names. A dictionary of arrays makes named groups,
            such as ``{"maccs": bits}``, which automatic models compare one by one: the columns are named "maccs: 0" and so on.
        graph_attribute_names : sequence of str, optional
            Name of each column of ``graph_attributes``.
        positions : sequence of array-like of shape (n_nodes, 2) or (n_nodes, 3), optional
            Where drawings place each node of each graph.

        Returns
        -------
        Graphs
            The collection.
        """
        edges = check.as_list(edges, "edges")
        names = check.check_names(graph_names, len(edges), "graph_names", "graphs")
        pairs = check.each_graph(check.as_pairs, edges, names)
        edge_counts, node_counts = {"edges": list(map(len, pairs))}, {}
        if n_nodes is not None:
            counts = check.as_list(n_nodes, "n_nodes", len(pairs))
            node_counts["n_nodes"] = check.each_graph(check.check_count, counts, names)
        columns: dict[str, Any] = {}
        for name, data, counts_of_thing, thing in (
            ("labels", labels, node_counts, ""),
            ("attributes", attributes, node_counts, "node"),
            ("node_names", node_names, node_counts, ""),
            ("positions", positions, node_counts, "node"),
            ("edge_labels", edge_labels, edge_counts, ""),
            ("edge_attributes", edge_attributes, edge_counts, "edge"),
        ):
            if data is None:
                continue
            rows = check.as_list(data, name, len(pairs))
            if thing:  # that has vectors
                rows = check.each_graph(partial(check.as_vectors, name=name, thing=thing), rows, names)
            counts_of_thing[name] = check.count_rows(name, rows, names)
            columns[name] = stack_vectors(rows, name) if thing else list(chain.from_iterable(rows))
        joined = np.concatenate([np.empty((0, 2), np.int64), *pairs])
        offsets, joined = check.place_edges(joined, edge_counts, node_counts, names)
        return cls.from_arrays(
            offsets,
            joined,
            directed=directed,
            targets=targets,
            graph_names=None if names is None else names.tolist(),
            attribute_names=attribute_names,
            edge_attribute_names=edge_attribute_names,
            graph_attributes=graph_attributes,
            graph_attribute_names=graph_attribute_names,
            **columns,
        )

    @classmethod
    def from_arrays(
        cls,
        offsets: ArrayLike,
        edges: ArrayLike,
        *,
        labels: Sequence[Hashable] | Array | None = None,
        attributes: ArrayLike | None = None,
        edge_labels: Sequence[Hashable] | Array | None = None,
        edge_attributes: ArrayLike | None = None,
        directed: bool = False,
        targets: ArrayLike | None = None,
        graph_names: Sequence[str] | None = None,
        node_names: Sequence[str] | None = None,
        attribute_names: Sequence[str] | None = None,
        edge_attribute_names: Sequence[str] | None = None,
        graph_attributes: ArrayLike | Mapping[str, Any] | None = None,
        graph_attribute_names: Sequence[str] | None = None,
        positions: ArrayLike | None = None,
    ) -> Graphs:
        """Build a collection from flat arrays; nodes are numbered consecutively across all graphs.

        Parameters
        ----------
        offsets : array-like of int, shape (n_graphs + 1,)
            Graph ``i`` owns the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
        edges : array-like of int, shape (n_edges, 2)
            Node pairs. An undirected edge may be listed in either or both directions.
        labels : sequence or ndarray of shape (n_nodes,) or (n_nodes, n_columns), optional
            Discrete label of each node. Several columns make labels that are tuples.
        attributes : array-like of shape (n_nodes, n_attributes), optional
            Real vector of each node.
        edge_labels : sequence or ndarray of shape (n_edges,), optional
            Discrete label of each listed edge.
        edge_attributes : array-like of shape (n_edges, n_edge_attributes), optional
            Real vector of each listed edge. An edge that is listed twice must have the same vector twice.
        directed : bool, default=False
            Whether an edge (a, b) leads from a to b only.
        targets : array-like of shape (n_graphs,), optional
            One class or regression target per graph.
        graph_names : sequence of str, optional
            Name of each graph.
        node_names : sequence of str, optional
            Name of each node, numbered across all graphs.
        attribute_names, edge_attribute_names : sequence of str, optional
            Name of each column of ``attributes`` and ``edge_attributes``.
        graph_attributes : array-like of shape (n_graphs, n_graph_attributes), optional
            Real vector of each graph. The columns of a pandas table give the names. A dictionary of arrays makes named groups,
            such as ``{"maccs": bits}``, which automatic models compare one by one: the columns are named "maccs: 0" and so on.
        graph_attribute_names : sequence of str, optional
            Name of each column of ``graph_attributes``.
        positions : array-like of shape (n_nodes, 2) or (n_nodes, 3), optional
            Where drawings place each node.

        Returns
        -------
        Graphs
            The collection.
        """
        starts = check.check_offsets(offsets)
        n_nodes = int(starts[-1])
        finder = check.Finder(
            starts,
            check.check_names(graph_names, len(starts) - 1, "graph_names", "graphs"),
            check.check_names(node_names, n_nodes, "node_names", "nodes"),
        )
        pairs = check.check_edges(edges, finder)
        coded = _encoded("edge_label", edge_labels, len(pairs), "edges")
        edge_data: dict[str, Array] = {}
        if edge_labels is not None:
            edge_data["labels"] = coded["edge_labels"]
        if edge_attributes is not None:
            edge_data["attributes"] = check.check_edge_vectors(edge_attributes, pairs, finder)
        indptr, indices, arc_data = compress_edges(pairs, finder, edge_data, directed=directed)
        content: dict[str, Any] = {
            "offsets": starts,
            "indptr": indptr,
            "indices": indices,
            **_encoded("label", labels, n_nodes, "nodes"),
            **coded,
            "edge_labels": arc_data.get("labels"),
            "attributes": attributes,
            "edge_attributes": arc_data.get("attributes"),
            "directed": bool(directed),
            "targets": targets,
            "graph_names": finder.graph_names,
            "node_names": finder.node_names,
            "attribute_names": attribute_names,
            "edge_attribute_names": edge_attribute_names,
            "graph_attributes": graph_attributes,
            "graph_attribute_names": graph_attribute_names,
            "positions": positions,
        }
        check.check_extras(content)
        return cls._trusted(**content)

    @classmethod
    def concatenate(cls, parts: Iterable[Graphs]) -> Graphs:
        """Join collections, in order; ``a + b`` joins two.

        Parameters
        ----------
        parts : iterable of Graphs
            Collections of the same kind: with or without labels, attributes of the same dimension, directed or not.
            Targets, positions and the names of graphs and nodes are kept if all parts have them. Names of attributes must be the
            same in all parts that have them, and are kept if all do.

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
        """Number of graphs, and 1: to scikit-learn, a collection is an array with one row per graph and one column."""
        return (len(self), 1)

    @property
    def n_nodes(self) -> int:
        """Total number of nodes."""
        return int(self.offsets[-1])

    @property
    def n_edges(self) -> int:
        """Total number of edges, each undirected edge counted once."""
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
        """Graph that each node belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def edges(self) -> Ints:
        """Return each edge once as a pair of node numbers, the smaller first if edges are undirected.

        Returns
        -------
        ndarray of int64, shape (n_edges, 2)
            Nodes are numbered across all graphs, as in ``indices``.
        """
        return np.stack([np.repeat(np.arange(self.n_nodes), self.degrees), self.indices], axis=1)[self._edge_arcs()]

    def _adjacency(self) -> Any:
        """Return a sparse matrix of all nodes with a 1 for each arc."""
        from scipy.sparse import csr_matrix

        return csr_matrix((np.ones(len(self.indices)), self.indices, self.indptr), shape=(self.n_nodes, self.n_nodes))

    def _n_rows(self, things: str) -> int:
        """Return the number of rows of the fields of nodes, arcs or graphs, as in ``check.ROWS``."""
        if things == "graphs":
            return len(self)
        return self.n_nodes if things == "nodes" else len(self.indices)

    def _edge_arcs(self) -> Ints:
        """Return one position in ``indices`` per edge."""
        if self.directed:
            return np.arange(len(self.indices))
        return np.flatnonzero(np.repeat(np.arange(self.n_nodes), self.degrees) < self.indices)

    # ---------------------------------------------------------------- selection and comparison

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Graphs]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Graphs:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # as scikit-learn indexes objects with a shape
        numbers = self._graph_numbers(key)
        nodes = _ranges(self.offsets[:-1][numbers], self.sizes[numbers])
        arcs = _ranges(self.indptr[:-1][nodes], self.degrees[nodes])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[numbers])])
        # Within a graph, neighbors keep their offset from the graph's first node.
        shift = np.repeat(offsets[:-1] - self.offsets[:-1][numbers], self.sizes[numbers])
        return self._select(
            {"graphs": numbers, "nodes": nodes, "arcs": arcs},
            offsets=offsets,
            indptr=np.concatenate([[0], np.cumsum(self.degrees[nodes])]),
            indices=self.indices[arcs] + np.repeat(shift, self.degrees[nodes]),
        )

    def _select(self, rows: dict[str, Ints], **changed: Any) -> Graphs:
        """Return a collection of some nodes, arcs or graphs, with the changed fields."""
        for things, positions in rows.items():
            for name in check.ROWS[things]:
                values = getattr(self, name)
                changed[name] = None if values is None else values[positions]
        return self._with(**changed)

    def _with(self, **changed: Any) -> Graphs:
        """Return the collection with other fields, which are known to fit; nothing is checked."""
        return Graphs._trusted(**{**self.__dict__, **changed})

    def subgraph(self, nodes: ArrayLike) -> Graphs:
        """Return the same graphs with some of their nodes, and the edges between them.

        Parameters
        ----------
        nodes : array-like of int or bool
            Node numbers (across all graphs, each once, in any order), or a mask with one entry per node. The selected
            nodes keep their order.

        Returns
        -------
        Graphs
            The same number of graphs; some may have no nodes.

        Examples
        --------
        >>> from treegram import Graphs
        >>> ring = Graphs.from_edges([[(0, 1), (1, 2), (2, 3), (3, 0)]], labels=[["C", "C", "O", "C"]])
        >>> ring.subgraph([0, 1, 2]).edges().tolist()
        [[0, 1], [1, 2]]
        """
        is_kept = check.node_mask(nodes, self.n_nodes)
        numbers = np.cumsum(is_kept) - 1
        kept = np.flatnonzero(is_kept)
        sources = np.repeat(np.arange(self.n_nodes), self.degrees)
        arcs = np.flatnonzero(is_kept[sources] & is_kept[self.indices])
        n_arcs = np.bincount(numbers[sources[arcs]], minlength=len(kept))
        return self._select(
            {"nodes": kept, "arcs": arcs},
            offsets=np.concatenate([[0], np.cumsum(is_kept)])[self.offsets],
            indptr=np.concatenate([[0], np.cumsum(n_arcs)]),
            indices=numbers[self.indices[arcs]],
        )

    def assign(self, **kwargs: Any) -> Graphs:
        """Return the same graphs with new labels, attributes, targets, names or positions.

        Parameters
        ----------
        **kwargs
            Any of ``labels``, ``attributes``, ``targets``, ``graph_attributes``, ``graph_names``, ``node_names``, ``positions``,
            ``attribute_names``, ``edge_attribute_names`` and ``graph_attribute_names``, as in :meth:`from_arrays`; None removes
            them. New attributes lose their old names unless they come with new ones.

        Returns
        -------
        Graphs
            The collection with these values; everything else is unchanged.

        Examples
        --------
        >>> from treegram import Graphs
        >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1)]])
        >>> graphs.assign(attributes=[[0.5], [1.5], [0.5], [2.5]], attribute_names=["charge"], graph_names=["a", "b"])
        Graphs(2 graphs, 4 nodes, 2 edges, undirected, no labels, 1 attribute)
        """
        assignable = {*check.ROWS["nodes"], *check.ROWS["graphs"], *check.COLUMN_NAMES}
        for name in kwargs.keys() - assignable:
            hint = suggest(name, assignable) or f"; it takes {', '.join(sorted(assignable))}."
            raise TypeError(f"assign got an unexpected keyword argument {name!r}{hint}")
        unnamed = {name: None for name, owner in check.COLUMN_NAMES.items() if owner in kwargs}
        content = {**self.__dict__, **unnamed, **kwargs}
        if "labels" in kwargs:
            content |= _encoded("label", kwargs["labels"], self.n_nodes, "nodes")
        check.check_extras(content)
        return Graphs._trusted(**content)

    def _graph_numbers(self, key: Any) -> Ints:
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
        return np.arange(len(self))[key]

    def __add__(self, other: object) -> Graphs:
        if not isinstance(other, Graphs):
            return NotImplemented
        return Graphs.concatenate([self, other])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graphs):
            return NotImplemented
        names, labels = self.__dataclass_fields__, {"labels", "label_values", "edge_labels", "edge_label_values"}
        return (
            all(_same(getattr(self, name), getattr(other, name)) for name in names if name not in labels)
            and check.same_labels(self.labels, self.label_values, other.labels, other.label_values)
            and check.same_labels(self.edge_labels, self.edge_label_values, other.edge_labels, other.edge_label_values)
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
        if self.graph_attributes is not None:
            parts.append(counted(self.graph_attributes.shape[1], "graph attribute"))
        if self.targets is not None:
            parts.append("targets")
        return f"Graphs({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return the notebook view."""
        from treegram.graphs.drawing import graphs_to_html

        return graphs_to_html(self)


def _encoded(name: str, labels: Any, length: int, things: str) -> dict[str, Any]:
    """Return the fields of labels, which may be None: codes and values."""
    codes, values = (None, ()) if labels is None else check.encode_labels(labels, length, f"{name}s", things)
    return {f"{name}s": codes, f"{name}_values": values}


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return the numbers start, start + 1, ... of all ranges, concatenated."""
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)


# The constructor of Graphs that reads each kind of objects, and how to tell them; no library is imported for that.
_CONSTRUCTORS: dict[str, Callable[[Any], bool]] = {
    "from_networkx": lambda item: hasattr(item, "nodes") and hasattr(item, "adj"),
    "from_igraph": lambda item: hasattr(item, "get_edgelist"),
    "from_pyg": lambda item: hasattr(item, "edge_index") or hasattr(item, "to_data_list"),
    "from_rdkit": lambda item: item is None or hasattr(item, "GetAtoms"),  # RDKit's answer to an invalid SMILES is None
    "from_grakel": lambda item: (
        hasattr(item, "get_edge_dictionary")
        or (isinstance(item, list | tuple) and 1 <= len(item) <= 3 and isinstance(item[:2][-1], Mapping))
    ),
}
# Members of a single graph or table: what has one of these is not a list.
_SINGLE = ("adj", "get_edgelist", "num_nodes", "GetAtoms", "columns", "tocsr")
_FILES = "load_tu, load_parquet or load_molecules for files, or Graphs.from_pdb for protein structures"
# Constructors that take other things, by the first part of the name of the module of a type.
_ADVICE_BY_MODULE = {
    "builtins": "Graphs.from_smiles for SMILES (or MoleculeGraphs first in a pipeline), Graphs.from_edges for lists of edges, "
    f"Graphs.from_tables for tables, {_FILES}",
    "pathlib": _FILES,
    **dict.fromkeys(("numpy", "scipy"), "Graphs.from_edges; the edges of a matrix are np.argwhere(matrix)"),
    **dict.fromkeys(("pandas", "polars", "pyarrow"), "Graphs.from_tables"),
    "gemmi": "Graphs.from_pdb",
}


def as_graphs(X: Any) -> Graphs:
    """Convert X to one collection: X is a Graphs, or a list of Graphs or of graphs of other libraries."""
    if isinstance(X, Graphs):
        return X
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]  # one row per graph, as np.asarray gives it
    if hasattr(X, "to_data_list"):
        return Graphs.from_pyg(X, targets=None)  # a batch
    is_single = isinstance(X, str | bytes | Mapping) or any(hasattr(X, name) for name in _SINGLE)
    if is_single or not (isinstance(X, Iterable) or hasattr(X, "__getitem__")):
        raise _wrong_type(X, "")
    items = list(X)
    if all(isinstance(item, Graphs) for item in items):
        return Graphs.concatenate(items)
    for name, is_right in _CONSTRUCTORS.items():
        if all(map(is_right, items)):
            return getattr(Graphs, name)(items, targets=None)
    raise _wrong_type(next(item for item in items if not isinstance(item, Graphs)), "a list that holds ")


def _wrong_type(value: Any, place: str) -> InvalidGraphError:
    module = "builtins" if isinstance(value, str) else type(value).__module__.partition(".")[0]
    advice = _ADVICE_BY_MODULE.get(module, "a list of graphs that are all of one kind")
    return InvalidGraphError(
        f"X must be a Graphs collection or a list of graphs; got {place}{type(value).__name__}. Graphs of networkx, igraph, PyTorch "
        f"Geometric, GraKeL and RDKit are converted; here, use {advice}."
    )
