"""Ways into Graphs for plain numbers: edge lists and flat arrays. All other ways in end here, so that there is one set of checks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram.graphs.check import (
    as_list,
    check_attributes,
    check_edge_attributes,
    check_edge_data,
    check_edge_list,
    check_edges,
    check_offsets,
    check_targets,
    check_vectors,
    compress_edges,
    encode_labels,
    graph_sizes,
    join_edge_lists,
    stack_vectors,
)

if TYPE_CHECKING:
    from treegram.graphs import Graphs

__all__ = ["FromArrays"]


class FromArrays:
    """The part of Graphs that makes collections from numbers."""

    if TYPE_CHECKING:

        @classmethod
        def _trusted(cls, **content: Any) -> Graphs: ...

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
        edge_attributes : sequence of array-like of shape (n_edges, n_edge_attributes), optional
            One real vector per listed edge and graph.
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
        n_nodes, labels, attributes, edge_labels, edge_attributes = (
            None if lists is None else as_list(lists, name, len(pairs))
            for name, lists in (
                ("n_nodes", n_nodes),
                ("labels", labels),
                ("attributes", attributes),
                ("edge_labels", edge_labels),
                ("edge_attributes", edge_attributes),
            )
        )
        vectors = None if attributes is None else [check_vectors(a, i) for i, a in enumerate(attributes)]
        sizes = graph_sizes(pairs, n_nodes, labels, vectors)
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        joined = join_edge_lists(pairs, sizes, offsets)
        check_edge_data(edge_labels, pairs, "edge label")
        edge_vectors = None
        if edge_attributes is not None:
            edge_vectors = [check_vectors(a, i, "edge_attributes", "edge") for i, a in enumerate(edge_attributes)]
            check_edge_data(edge_vectors, pairs, "edge vector")
        return cls.from_arrays(
            offsets,
            joined,
            labels=None if labels is None else [label for graph in labels for label in graph],
            attributes=None if vectors is None else stack_vectors(vectors),
            edge_labels=None if edge_labels is None else [label for graph in edge_labels for label in graph],
            edge_attributes=None if edge_vectors is None else stack_vectors(edge_vectors, "edge_attributes"),
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
        edge_attributes: ArrayLike | None = None,
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
        edge_attributes : array-like of shape (n_edges, n_edge_attributes), optional
            Real vector of each listed edge. An edge that is listed twice has the same one twice.
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
        edge_data: dict[str, NDArray[Any]] = {}
        edge_values: tuple[Hashable, ...] = ()
        if edge_labels is not None:
            edge_data["labels"], edge_values = encode_labels(edge_labels, len(pairs), "edge_labels", "edges")
        if edge_attributes is not None:
            edge_data["attributes"] = check_edge_attributes(edge_attributes, pairs, starts)
        indptr, indices, arc_data = compress_edges(pairs, starts, edge_data, directed=directed)
        return cls._trusted(
            offsets=starts,
            indptr=indptr,
            indices=indices,
            labels=codes,
            label_values=values,
            attributes=None if attributes is None else check_attributes(attributes, starts),
            edge_labels=arc_data.get("labels"),
            edge_label_values=edge_values,
            edge_attributes=arc_data.get("attributes"),
            directed=bool(directed),
            targets=None if targets is None else check_targets(targets, len(starts) - 1),
        )
