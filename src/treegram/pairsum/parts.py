"""Connected parts of up to three nodes, counted: sums over matchings where the node kernel is 1 for all nodes of a block.

A matching then lays a part of one graph over a part of the same kind of the other, in as many ways as that kind has symmetries:

    S_s(G, G') = sum over kinds P of s connected nodes: |Aut(P)| N_P(G) N_P(G')

Parts are counted once for each graph, where sums over pairs of nodes would be made once for each pair of graphs. Counts are
whole numbers, so the sums are exact up to 2^53. A kind of part has a 64-bit code, made of the blocks of its nodes and the kinds
of its edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treegram._core.memory import allocate, require
from treegram._core.types import Floats, Hashes, Ints
from treegram.pairsum.loops import matching as loops
from treegram.pairsum.sparse import feature_products
from treegram.structure.features import Features, gather
from treegram.structure.hashing import GOLDEN, mix

__all__ = ["LARGEST_PART", "Parts", "count_parts", "list_triangles", "part_shares", "part_squares", "part_sums"]

LARGEST_PART = 3
_TRIANGLE_ORDERS = ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2))


class Parts(NamedTuple):
    """How many parts of each kind each graph has, or each node is in, and how many symmetries a kind has."""

    features: Features  # one row per graph, or per node
    symmetries: Floats


class _Found(NamedTuple):
    """Parts as they are found: any number of records for one kind and graph."""

    members: Ints  # (n_records, n_members); nodes of one graph
    codes: Hashes
    counts: Floats
    symmetries: Floats


class _Arcs(NamedTuple):
    """All arcs, sorted by source and target, with their kinds as seen from the source; each has its way back."""

    n: int
    sources: Ints
    targets: Ints
    kinds: Hashes

    def kinds_of(self, sources: Ints, targets: Ints) -> Hashes:
        """The kinds of the arcs between these nodes, which are there."""
        if (self.kinds == self.kinds[:1]).all():  # one kind: nothing to look up
            return (
                np.broadcast_to(self.kinds[:1], sources.shape) if len(self.kinds) else np.zeros(len(sources), np.uint64)
            )
        places = np.searchsorted(self.sources * self.n + self.targets, sources * self.n + targets)
        return self.kinds[places]


def part_sums(left: list[Parts], right: list[Parts] | None) -> Floats:
    """S_s of each pair of graphs for s = 1, 2, ..., shape (sizes, n_left, n_right); ``right=None``: left with itself."""
    sums = []
    for mine, theirs in zip(left, left if right is None else right, strict=True):
        weighted = theirs.features.counts.multiply(theirs.symmetries).tocsr()
        rows = mine.features.counts if right is None else mine.features.aligned(theirs.features.codes)
        sums.append(feature_products(rows, weighted))
    return np.stack(sums)


def part_squares(parts: list[Parts]) -> Floats:
    """S_s of each graph with itself, shape (sizes, n_graphs)."""
    squares = (some.features.counts.power(2) @ some.symmetries for some in parts)
    return np.stack(list(squares))


def part_shares(nodes: list[Parts], right: list[Parts], size_weights: Floats, weights: Floats) -> Floats:
    """What each node adds to the sums of size_weights[s] weights[i, j] S_s(G, G_i) over the graphs of the right.

    ``nodes`` are counted by node; the nodes of a part share it equally. Shape (n_nodes, n_outputs).
    """
    total: Floats = np.zeros((nodes[0].features.counts.shape[0], weights.shape[1]))
    for size, (mine, theirs) in enumerate(zip(nodes, right, strict=True), 1):
        worth = (theirs.features.counts.T @ weights) * theirs.symmetries[:, None]
        total += mine.features.aligned(theirs.features.codes) @ (worth * size_weights[size - 1] / size)
    return total


def count_parts(nodes: Any, max_size: int, *, by_node: bool = False) -> list[Parts]:
    """The connected parts of 1 .. max_size nodes of the graphs of ``pairsum.matching.Matchables``, one entry per size.

    With ``by_node``, a part counts once for each of its nodes.
    """
    n = len(nodes.blocks)
    arcs = _Arcs(n, np.repeat(np.arange(n), np.diff(nodes.indptr)), nodes.indices, nodes.kinds)
    found = [[_Found(np.arange(n)[:, None], _code(1, nodes.blocks), np.ones(n), np.ones(n))]]
    if max_size > 1:
        found.append([_edges(nodes.blocks, arcs)])
    if max_size > 2:
        triangles, _ = list_triangles(nodes)
        closed = [
            _closed_paths(nodes.blocks, arcs, triangles.take(order, 1)) for order in ((0, 1, 2), (1, 0, 2), (2, 0, 1))
        ]
        paths = _paths(nodes.blocks, arcs, with_ends=by_node)
        found.append([*paths, *closed, _triangles(nodes.blocks, arcs, triangles)])
    if by_node:
        return [_joined([_each_member(one) for one in some], np.arange(n), n) for some in found]
    graph_ids = np.repeat(np.arange(nodes.n_graphs), np.diff(nodes.offsets))
    return [_joined(some, graph_ids, nodes.n_graphs) for some in found]


def _each_member(found: _Found) -> _Found:
    """One record for each member of a part."""
    return _repeated(found, found.members.reshape(-1, 1), found.members.shape[1])


def _repeated(found: _Found, members: Ints, repeats: Any) -> _Found:
    """Each record so many times, with other members."""
    places = np.repeat(np.arange(len(found.codes)), repeats)
    return _Found(members, found.codes[places], found.counts[places], found.symmetries[places])


def _joined(found: list[_Found], owners: Ints, n_owners: int) -> Parts:
    """All records, each for the owner of its first member."""
    rows = owners[np.concatenate([one.members[:, 0] for one in found])]
    codes, counts, symmetries = (np.concatenate(column) for column in zip(*(one[1:] for one in found), strict=True))
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_owners))])
    features, firsts = gather(indptr, codes[order], counts[order])
    features.counts.sum_duplicates()
    features.counts.eliminate_zeros()
    return Parts(features, symmetries[order][firsts])


def _code(*parts: Any) -> Hashes:
    """One code for what comes in this order."""
    code: Any = np.zeros(1, np.uint64)
    for part in parts:
        code = mix.py_func(code * GOLDEN + np.asarray(part, np.uint64) + GOLDEN)
    return code


def _edges(blocks: Hashes, arcs: _Arcs) -> _Found:
    once = arcs.sources < arcs.targets
    u, v, there = arcs.sources[once], arcs.targets[once], arcs.kinds[once]
    back = arcs.kinds_of(v, u)
    forward, backward = _code(2, blocks[u], there, blocks[v]), _code(2, blocks[v], back, blocks[u])
    members = np.stack([u, v], axis=1)
    return _Found(members, np.minimum(forward, backward), np.ones(len(u)), 1.0 + (forward == backward))


def _path_code(blocks: Hashes, middle: Ints, one_end: Hashes, other_end: Hashes) -> Hashes:
    return _code(3, blocks[middle], np.minimum(one_end, other_end), np.maximum(one_end, other_end))


def _paths(blocks: Hashes, arcs: _Arcs, *, with_ends: bool) -> list[_Found]:
    """All paths of three nodes, their ends adjacent or not: pairs of arcs from one node, those of equal ends together.

    Their member is the middle; with ``with_ends``, they are found again at their ends.
    """
    ends = _code(blocks[arcs.targets], arcs.kinds)
    order = np.lexsort((ends, arcs.sources))
    sources, ends = arcs.sources[order], ends[order]
    is_new = np.ones(len(ends), bool)
    is_new[1:] = (ends[1:] != ends[:-1]) | (sources[1:] != sources[:-1])
    firsts = np.flatnonzero(is_new)
    numbers = np.diff(np.append(firsts, len(ends))).astype(np.float64)
    sources, ends = sources[firsts], ends[firsts]
    # Each kind of end with itself and with those behind it at the same node.
    n_behind = np.searchsorted(sources, sources, side="right") - np.arange(len(sources))
    require(64.0 * float(n_behind.sum()), "The paths of three nodes")
    one = np.repeat(np.arange(len(sources)), n_behind)
    other = one + np.arange(len(one)) - np.repeat(np.cumsum(n_behind) - n_behind, n_behind)
    same = one == other
    counts = np.where(same, numbers[one] * (numbers[one] - 1) / 2, numbers[one] * numbers[other])
    middle = sources[one]
    paths = _Found(middle[:, None], _path_code(blocks, middle, ends[one], ends[other]), counts, 1.0 + same)
    if not with_ends:
        return [paths]
    arcs_of = (firsts, numbers.astype(np.int64), arcs.targets[order])
    return [
        paths,
        _path_ends(paths._replace(counts=np.where(same, numbers[other] - 1, numbers[other])), one, arcs_of),
        _path_ends(paths._replace(counts=np.where(same, 0.0, numbers[one])), other, arcs_of),
    ]


def _path_ends(paths: _Found, ends: Ints, arcs_of: tuple[Ints, Ints, Ints]) -> _Found:
    """Paths again for each node of one kind of end; counts are the paths of one such node."""
    firsts, numbers, targets = arcs_of
    repeats = np.where(paths.counts > 0, numbers[ends], 0)
    n_ends = int(repeats.sum())
    require(64.0 * n_ends, "The ends of the paths of three nodes")
    places = np.arange(n_ends) + np.repeat(firsts[ends] - (np.cumsum(repeats) - repeats), repeats)
    return _repeated(paths, targets[places][:, None], repeats)


def _closed_paths(blocks: Hashes, arcs: _Arcs, triangles: Ints) -> _Found:
    """To take back: the paths whose ends are adjacent, one for each triangle and node of it, here the first."""
    middle, *others = triangles.T
    ends = [_code(blocks[end], arcs.kinds_of(middle, end)) for end in others]
    code = _path_code(blocks, middle, *ends)
    return _Found(triangles, code, np.full(len(middle), -1.0), 1.0 + (ends[0] == ends[1]))


def list_triangles(nodes: Any) -> tuple[Ints, Ints]:
    """All triangles (a < b < c), graph after graph, and where those of each graph start."""
    starts, triangles = np.zeros(nodes.n_graphs + 1, np.int64), np.empty((0, 3), np.int64)
    n_triangles = loops.list_triangles(nodes.offsets, nodes.indptr, nodes.indices, starts, triangles)
    most = int(np.diff(starts).argmax()) if nodes.n_graphs else 0
    triangles = allocate((n_triangles, 3), np.int64, f"Graph {most}: its triangles")
    loops.list_triangles(nodes.offsets, nodes.indptr, nodes.indices, starts, triangles)
    return triangles, starts


def _triangles(blocks: Hashes, arcs: _Arcs, triangles: Ints) -> _Found:
    """A triangle's code is the least over all orders of its nodes; as many orders give it as there are symmetries."""
    codes = []
    for order in _TRIANGLE_ORDERS:
        a, b, c = triangles.take(order, 1).T
        kinds = (arcs.kinds_of(a, b), arcs.kinds_of(b, c), arcs.kinds_of(c, a))
        codes.append(_code(4, blocks[a], kinds[0], blocks[b], kinds[1], blocks[c], kinds[2]))
    least = np.minimum.reduce(codes)
    symmetries = sum((code == least).astype(np.float64) for code in codes)
    return _Found(triangles, least, np.ones(len(triangles)), np.asarray(symmetries))
