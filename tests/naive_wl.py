"""Sections 6 to 8 of BASELINES.md in the plainest form: WL colors, spectral colors, NSPDK codes, patterns, and their kernels.

The oracle for the fast code: nested tuples, dictionaries, plain loops. It imports nothing from treegram and
reads a collection as plain lists (see ``zoo.Collection``). Where edges have a direction, D(a, b) is the number of hops
from a to b.
"""

import math
from collections import Counter

import numpy as np

import naive

# -------------------------------------------------------------------- interning

_NUMBERS: dict = {}


def intern(value):
    """One number for each different value, ever: short to compare, and equal in all collections."""
    return _NUMBERS.setdefault(value, len(_NUMBERS))


def multiset(values):
    return tuple(sorted(values, key=repr))


# -------------------------------------------------------------------- graphs: adjacency as {node: {neighbor: edge label}}


def read(collection, g, *, missing_labels="degree", use_edge_labels=False):
    adjacent = dict(enumerate(naive.neighbors(collection, g)))
    if not use_edge_labels:
        adjacent = {v: dict.fromkeys(around) for v, around in adjacent.items()}
    return adjacent, dict(enumerate(naive.node_labels(collection, g, missing_labels)))


def induced(adjacent, nodes):
    return {v: {w: label for w, label in adjacent[v].items() if w in nodes} for v in nodes}


def ball(adjacent, root, r):
    """N_r(root): the subgraph induced by the nodes within r hops."""
    return induced(adjacent, {v for v, d in naive.distances(adjacent, root).items() if d <= r})


# -------------------------------------------------------------------- colors of the nodes of a graph or of a pattern


def wl(adjacent, labels, h):
    """c_0 .. c_h of each node."""
    color = {v: intern(("label", labels[v])) for v in adjacent}
    rounds = [color]
    for _ in range(h):
        color = {
            v: intern((color[v], multiset((label, color[w]) for w, label in adjacent[v].items()))) for v in adjacent
        }
        rounds.append(color)
    return {v: [color[v] for color in rounds] for v in adjacent}


def sgk(adjacent, labels, h):
    """(label, (A^2)_vv, ..., (A^(i + 1))_vv) for i = 0 .. h, in exact integers."""
    nodes = sorted(adjacent)
    A = [[int(w in adjacent[v]) for w in nodes] for v in nodes]
    powers = [A]
    for _ in range(h):
        powers.append(
            [[sum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*A, strict=True)] for row in powers[-1]]
        )
    return {
        v: [intern(("sgk", labels[v], *(power[i][i] for power in powers[1 : level + 1]))) for level in range(h + 1)]
        for i, v in enumerate(nodes)
    }


def nspdk_nodes(adjacent, labels, root):
    """code(v | g) = (label, D(v, root), multiset over w of (D(v, w), D(w, root), label of w)), hops within g."""
    D = {v: naive.distances(adjacent, v) for v in adjacent}
    return {
        v: intern((labels[v], D[v].get(root), multiset((D[v].get(w), D[w].get(root), labels[w]) for w in adjacent)))
        for v in adjacent
    }


def nspdk_ball(adjacent, labels, root, *, directed):
    """code(g): of the root, of all nodes, and of all edges by the codes of their ends."""
    code = nspdk_nodes(adjacent, labels, root)

    def edge(v, w, label):
        return ((code[v], code[w]) if directed else multiset((code[v], code[w])), label)

    edges = [edge(v, w, label) for v in adjacent for w, label in adjacent[v].items() if directed or v < w]
    return intern((code[root], multiset(code.values()), multiset(edges)))


# -------------------------------------------------------------------- kernels on labels


def wl_kernel(left, right, h, **options):
    def histograms(collection):
        counts = []
        for g in range(len(collection)):
            colors = wl(*read(collection, g, **options), h)
            counts.append(Counter((i, c) for rounds in colors.values() for i, c in enumerate(rounds)))
        return counts

    right = histograms(right)
    return [[sum(f[c] * f2[c] for c in f) for f2 in right] for f in histograms(left)]


def nspdk_kernel(left, right, radius, distance, **options):
    """Sum over r and d of kappa(G, G') / sqrt(kappa(G, G) kappa(G', G')), 0 where one of these is 0."""

    def pairs(collection):
        result = []
        for g in range(len(collection)):
            adjacent, labels = read(collection, g, **options)
            codes = {
                (r, v): nspdk_ball(ball(adjacent, v, r), labels, v, directed=collection.directed)
                for r in range(radius + 1)
                for v in adjacent
            }
            counts = {(r, d): Counter() for r in range(radius + 1) for d in range(distance + 1)}
            for u in adjacent:
                for w, d in naive.distances(adjacent, u).items():
                    for r in range(radius + 1 if d <= distance else 0):
                        counts[r, d][codes[r, u], codes[r, w]] += 1
            result.append(counts)
        return result

    def kappa(f, f2):
        return sum(f[pair] * f2[pair] for pair in f)

    def kernel(graph, graph2):
        total = 0.0
        for place in graph:
            own, own2 = kappa(graph[place], graph[place]), kappa(graph2[place], graph2[place])
            if own and own2:
                total += kappa(graph[place], graph2[place]) / math.sqrt(own * own2)
        return total

    right = pairs(right)
    return [[kernel(graph, graph2) for graph2 in right] for graph in pairs(left)]


# -------------------------------------------------------------------- kernels with vectors


def vectors(collection, g):
    return collection.attributes[g] if collection.attributes is not None else [None] * collection.n_nodes[g]


def node_kernel_value(node_kernel, x, y):
    return 1.0 if x is None else node_kernel(x, y)


def wlcl_kernel(left, right, node_kernel, h, **options):
    """The sum over pairs of nodes of k_A times the number of iterations after which their colors are equal."""

    def nodes(collection):
        return [
            [(x, colors) for x, colors in zip(vectors(collection, g), _wl_list(collection, g, h, options), strict=True)]
            for g in range(len(collection))
        ]

    def pair(x, c, y, c2):
        agree = sum(a == b for a, b in zip(c, c2, strict=True))
        return agree * node_kernel_value(node_kernel, x, y) if agree else 0.0

    right = nodes(right)
    return [[sum(pair(*v, *w) for v in graph for w in graph2) for graph2 in right] for graph in nodes(left)]


def _wl_list(collection, g, h, options):
    colors = wl(*read(collection, g, **options), h)
    return [colors[v] for v in range(collection.n_nodes[g])]


def patterns(collection, g, *, invariant, scope, match, radius, n_levels, distance, **options):
    """All patterns of a graph: (match key, size, list of (node, colors))."""
    adjacent, labels = read(collection, g, **options)
    whole = {"wl": wl, "sgk": sgk}[invariant](adjacent, labels, n_levels) if invariant != "nspdk" else None
    found = []
    for r in range(radius + 1):
        keys, members = {}, {}
        for u in adjacent:
            inside = ball(adjacent, u, r)
            if invariant == "nspdk":
                local = {v: [code] for v, code in nspdk_nodes(inside, labels, u).items()}
                code = nspdk_ball(inside, labels, u, directed=collection.directed)
            else:
                local = {"wl": wl, "sgk": sgk}[invariant](inside, labels, n_levels)
                code = (local[u][-1], multiset(colors[-1] for colors in local.values()))
            keys[u] = {"size": len(inside), "invariant": code, "none": None}[match]
            seen = local if scope == "local" or invariant == "nspdk" else whole
            members[u] = [(v, seen[v]) for v in inside]
            found.append(((r, 0, keys[u]), len(inside), members[u]))
        for u in adjacent:
            for w, d in naive.distances(adjacent, u).items():
                if 1 <= d <= distance:
                    both = [
                        (v, [(role, c) for c in colors])
                        for role, ball_members in enumerate((members[u], members[w]))
                        for v, colors in ball_members
                    ]
                    found.append(((r, d, keys[u], keys[w]), len(both), both))
    return found


def gik_kernel(left, right, node_kernel, **options):
    """Sum over matching patterns and over pairs of their nodes of k_A k_inv / (|g| |g'|)."""

    def graphs(collection):
        return [(vectors(collection, g), patterns(collection, g, **options)) for g in range(len(collection))]

    def pair(key, size, members, x, key2, size2, members2, y):
        if key != key2:
            return 0.0
        total = 0.0
        for v, c in members:
            for w, c2 in members2:
                agree = sum(a == b for a, b in zip(c, c2, strict=True))
                if agree:
                    total += agree * node_kernel_value(node_kernel, x[v], y[w]) / (size * size2)
        return total

    right = graphs(right)
    return [
        [sum(pair(*p, x, *p2, y) for p in found for p2 in found2) for y, found2 in right] for x, found in graphs(left)
    ]


# -------------------------------------------------------------------- comparison


def assert_same_gram(actual, expected, rows=None, columns=None):
    """Entries agree to 1e-10 of sqrt(K(G, G) K(G', G')); the diagonals are expected's own unless given."""
    expected = np.array(expected, dtype=float).reshape(actual.shape)
    rows, columns = (expected.diagonal() if d is None else np.array(d, dtype=float) for d in (rows, columns))
    scale = np.sqrt(np.abs(rows))[:, None] * np.sqrt(np.abs(columns))[None, :]
    assert np.isfinite(actual).all()
    assert (np.abs(actual - expected) <= 1e-10 * scale + 1e-300).all(), (actual, expected)


def assert_normalized(actual, expected):
    diagonal = [row[i] for i, row in enumerate(expected)]
    expected = np.array(naive.normalized(expected, diagonal, diagonal), dtype=float).reshape(actual.shape)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)
