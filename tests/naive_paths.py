"""Sections 2 and 3 of BASELINES.md in the plainest form: all shortest paths as lists of nodes, and loops over pairs of them.

The oracle for the fast code. It imports nothing from treegram and reads a collection as plain lists (see
``zoo.Collection``). Where edges have a direction, paths follow it. All numbers are Python's own.
"""

import naive


def rows(collection, g):
    """The vector of each node of graph g; None without attributes."""
    return collection.attributes[g] if collection.attributes is not None else [None] * collection.n_nodes[g]


def node_kernels(left, g, right, h, node_kernel, *, use_labels=False, missing_labels="degree"):
    """kappa: the kernel of each node of graph g on the left with each of graph h on the right; 1 without attributes."""
    labels, labels2 = (naive.node_labels(c, i, missing_labels) for c, i in ((left, g), (right, h)))

    def kappa(u, v):
        if use_labels and labels[u] != labels2[v]:
            return 0.0
        x, y = rows(left, g)[u], rows(right, h)[v]
        return 1.0 if x is None else node_kernel(x, y)

    return [[kappa(u, v) for v in range(right.n_nodes[h])] for u in range(left.n_nodes[g])]


# -------------------------------------------------------------------- GraphHopper


def shortest_paths(adjacent):
    """All shortest paths, each a list of nodes: from every node to every other, all of them, and every node alone."""
    paths = []
    for source in range(len(adjacent)):
        distance = naive.distances(adjacent, source)
        growing = [[source]]
        while growing:
            paths += growing
            growing = [[*path, w] for path in growing for w in adjacent[path[-1]] if distance[w] == len(path)]
    return paths


def graphhopper(left, right, node_kernel, **options):
    """K(G, G') = sum over shortest paths of equally many nodes, and over their places, of kappa of the nodes there."""
    left_paths, right_paths = (
        [shortest_paths(naive.neighbors(c, g)) for g in range(len(c))] for c in (left, right)
    )  # fmt: skip

    def kernel(g, h):
        kappa = node_kernels(left, g, right, h, node_kernel, **options)
        return sum(
            sum(kappa[v][w] for v, w in zip(path, path2, strict=True))
            for path in left_paths[g]
            for path2 in right_paths[h]
            if len(path) == len(path2)
        )

    return [[kernel(g, h) for h in range(len(right))] for g in range(len(left))]


# -------------------------------------------------------------------- SP


def delta(a, b):
    return 1.0 if a == b else 0.0


def brownian(c):
    return lambda a, b: max(0.0, c - abs(a - b))


def distant_pairs(adjacent):
    """(u, v, distance from u to v) for all ordered pairs of two nodes with a path from u to v."""
    return [(u, v, d) for u in range(len(adjacent)) for v, d in naive.distances(adjacent, u).items() if u != v]


def shortest_path(left, right, node_kernel, length_kernel=delta, **options):
    """K(G, G') = sum over pairs (u, v) and (u', v') of kappa(u, u') kappa(v, v') k_len(d(u, v), d(u', v'))."""
    left_pairs, right_pairs = ([distant_pairs(naive.neighbors(c, g)) for g in range(len(c))] for c in (left, right))

    def kernel(g, h):
        kappa = node_kernels(left, g, right, h, node_kernel, **options)
        return sum(
            kappa[u][u2] * kappa[v][v2] * length_kernel(d, d2)
            for u, v, d in left_pairs[g]
            for u2, v2, d2 in right_pairs[h]
        )

    return [[kernel(g, h) for h in range(len(right))] for g in range(len(left))]
