"""Neighbors of all nodes from lists of edges, graph by graph, in one pass: the numba code of the reader of Parquet files."""

from __future__ import annotations

from treegram._core.jit import jit

__all__ = ["pack_halves", "pack_lists"]


@jit
def pack_lists(values, n_edges, offsets, directed, indptr, indices, back):
    """CSR neighbors from sorted lists of edges; False if they are not as such neighbors are.

    Parameters: values (2 * n_arcs,) integer, for each graph its sources, then its ends, numbered within the graph; n_edges
    (n_graphs,) int64; offsets (n_graphs + 1,) int64, first nodes; indptr (n_nodes + 1,) int64, zeros; indices (n_arcs,) int64; back
    (n_arcs,) or (0,) int64. Fills indptr, indices and, unless directed or empty, back: the arc that leads back. Edges must be sorted, each once, without
    loops, within their graph, and in both directions unless directed; else what was filled is of no use.
    """
    arc = 0
    for graph in range(len(n_edges)):
        count = n_edges[graph]
        lists = values[2 * arc : 2 * (arc + count)]
        if not _pack_graph(lists, offsets[graph], offsets[graph + 1], indptr, indices[arc : arc + count]):
            return False
        arc += count
    return directed or _lead_back(indptr, indices, back)


@jit
def _pack_graph(lists, first, last, indptr, indices):
    """Neighbors of the nodes from ``first`` on, before ``last``; indptr of the nodes before is done."""
    count, n_nodes = len(indices), last - first
    before_source, before_end = -1, -1
    for k in range(count):
        source, end = lists[k], lists[count + k]
        if source < 0 or end < 0 or source >= n_nodes or end >= n_nodes or source == end:
            return False
        if source < before_source or (source == before_source and end <= before_end):
            return False
        before_source, before_end = source, end
        indptr[first + source + 1] += 1
        indices[k] = first + end
    for node in range(first, last):
        indptr[node + 1] += indptr[node]
    return True


@jit(allocates=True)
def _lead_back(indptr, indices, back):
    """Whether each arc has one that leads back; fills ``back`` with it unless it is empty."""
    places = indptr.copy()  # of each node the next arc that nothing has led back to
    for source in range(len(indptr) - 1):
        for forth in range(indptr[source], indptr[source + 1]):
            end = indices[forth]
            place = places[end]
            if place >= indptr[end + 1] or indices[place] != source:
                return False
            if len(back):
                back[forth] = place
            places[end] += 1
    return True


@jit
def pack_halves(values, n_edges, offsets, indptr, indices, edges):
    """CSR neighbors from sorted lists that have each undirected edge once, the smaller node first; False if they have not.

    As ``pack_lists``, but indices has two places for each edge, and edges (2 * n_edges,) int64, unless empty, is filled with the
    edge that each arc stands for.
    """
    n_done = 0
    for graph in range(len(n_edges)):
        count, first, n_nodes = n_edges[graph], offsets[graph], offsets[graph + 1] - offsets[graph]
        lists = values[2 * n_done : 2 * (n_done + count)]
        before_source, before_end = -1, -1
        for k in range(count):
            source, end = lists[k], lists[count + k]
            if source < 0 or end <= source or end >= n_nodes:
                return False
            if source < before_source or (source == before_source and end <= before_end):
                return False
            before_source, before_end = source, end
            indptr[first + source + 1] += 1
            indptr[first + end + 1] += 1
        n_done += count
    for node in range(len(indptr) - 1):
        indptr[node + 1] += indptr[node]
    _fill_both(values, n_edges, offsets, indptr, indices, edges)
    return True


@jit(allocates=True)
def _fill_both(values, n_edges, offsets, indptr, indices, edges):
    """Both arcs of each edge; edges are sorted, so that smaller neighbors of a node come before larger ones."""
    places = indptr.copy()
    n_done = 0
    for graph in range(len(n_edges)):
        count, first = n_edges[graph], offsets[graph]
        for k in range(n_done, n_done + count):
            source, end = first + values[n_done + k], first + values[n_done + count + k]
            indices[places[source]] = end
            indices[places[end]] = source
            if len(edges):
                edges[places[source]] = k
                edges[places[end]] = k
            places[source] += 1
            places[end] += 1
        n_done += count
