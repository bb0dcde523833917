"""The kernels of SPEC.md in the plainest form: nested tuples as trees, dictionaries, recursion, loops.

The oracle for the fast code. It imports nothing from treegram, and reads a collection as the plain lists
that a user would give (see ``zoo.Collection``). All numbers are Python's own, so that a ``Fraction`` as ``lam``, and as the
value of the node kernel, makes every sum exact.
"""

import math
from collections import Counter
from fractions import Fraction

COUNTINGS = ("paper", "visits", "capped")

# -------------------------------------------------------------------- SPEC section 1: graphs


def neighbors(collection, g):
    """Return the neighbors of each node, each once, with the label of the edge; no self loops."""
    adjacent = [{} for _ in range(collection.n_nodes[g])]
    for i, (a, b) in enumerate(collection.edges[g]):
        label = None if collection.edge_labels is None else collection.edge_labels[g][i]
        if a != b:
            adjacent[a][b] = label
            if not collection.directed:
                adjacent[b][a] = label
    return adjacent


def node_labels(collection, g, missing_labels="degree"):
    if collection.labels is not None:
        return list(collection.labels[g])
    if missing_labels == "degree":
        return [len(around) for around in neighbors(collection, g)]
    return [0] * collection.n_nodes[g]


# -------------------------------------------------------------------- SPEC section 2: visits and trees


def distances(adjacent, root):
    """Return the hop distance from the root to every reachable node."""
    distance = {root: 0}
    frontier = [root]
    while frontier:
        reached = []
        for v in frontier:
            for w in adjacent[v]:
                if w not in distance:
                    distance[w] = distance[v] + 1
                    reached.append(w)
        frontier = reached
    return distance


def dag(adjacent, root, h):
    """DD(root, h): for each of its nodes the children, one step farther from the root."""
    distance = distances(adjacent, root)
    inside = [v for v in distance if distance[v] <= h]
    return {v: [w for w in adjacent[v] if w in inside and distance[w] == distance[v] + 1] for v in inside}


def tree(children, labels, edge_labels, v, j):
    """T_j(v): the label and the multiset of subtrees, as a sorted tuple; each with the label of the edge to it."""
    if j == 0:
        return (labels[v], ())
    subtrees = [(edge_labels[v][w], tree(children, labels, edge_labels, w, j - 1)) for w in children[v]]
    return (labels[v], tuple(sorted(subtrees, key=repr)))


def size(t):
    return 1 + sum(size(subtree) for _, subtree in t[1])


def spell(t, *, use_edge_labels=False):
    """Return a tree as text, as ``ODDST.tree`` gives it."""
    words = sorted(
        (f"{edge}:" if use_edge_labels else "") + spell(subtree, use_edge_labels=use_edge_labels)
        for edge, subtree in t[1]
    )
    return str(t[0]) + (f"({','.join(words)})" if words else "")


# -------------------------------------------------------------------- SPEC section 3: which trees are counted


def tree_counts(
    collection, g, depth, *, counting="paper", missing_labels="degree", use_edge_labels=False
) -> list[Counter]:
    """Return F: how often each tree is rooted at each node of graph g."""
    adjacent = neighbors(collection, g)
    labels = node_labels(collection, g, missing_labels)
    edge_labels = adjacent if use_edge_labels else [dict.fromkeys(around) for around in adjacent]
    F = [Counter() for _ in labels]
    for r in range(len(labels)):
        if counting == "paper":
            children = dag(adjacent, r, depth)
            for v in children:
                for j in range(depth + 1):
                    F[v][tree(children, labels, edge_labels, v, j)] += 1
        else:
            eccentricity = max(distances(adjacent, r).values())
            last = depth if counting == "visits" else min(depth, eccentricity)
            for q in range(last + 1):
                children = dag(adjacent, r, q)
                for v in children:
                    F[v][tree(children, labels, edge_labels, v, q)] += 1
    return F


# -------------------------------------------------------------------- SPEC section 4: kernels


def rbf(gamma):
    return lambda x, y: math.exp(-gamma * sum((a - b) * (a - b) for a, b in zip(x, y, strict=True)))


def laplacian(gamma):
    return lambda x, y: math.exp(-gamma * sum(abs(a - b) for a, b in zip(x, y, strict=True)))


def linear(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def poly(gamma):
    return lambda x, y: (gamma * linear(x, y) + 1) ** 3


def oddst(left, right, *, depth, lam=1.0, **options):
    """K(G, G') = sum_t lam^size(t) f_t(G) f_t(G')."""

    def totals(collection):
        return [sum(tree_counts(collection, g, depth, **options), Counter()) for g in range(len(collection))]

    def product(f, f2):
        return sum(lam ** size(t) * f[t] * f2[t] for t in f if t in f2)

    right_totals = totals(right)
    return [[product(f, f2) for f2 in right_totals] for f in totals(left)]


def oddcl(left, right, node_kernel, *, depth, lam=1.0, **options):
    """K(G, G') = sum_{v, v'} K_A(v, v') sum_t lam^size(t) F[v, t] F[v', t]; K_A = 1 without attributes."""

    def nodes(collection):
        return [
            list(
                zip(
                    collection.attributes[g] if collection.attributes is not None else [None] * collection.n_nodes[g],
                    tree_counts(collection, g, depth, **options),
                    strict=True,
                )
            )
            for g in range(len(collection))
        ]

    def pair(x, f, y, f2):
        shared = sum(lam ** size(t) * f[t] * f2[t] for t in f if t in f2)
        return shared * (1 if x is None else node_kernel(x, y)) if shared else 0

    right_nodes = nodes(right)
    return [
        [sum(pair(x, f, y, f2) for x, f in graph for y, f2 in graph2) for graph2 in right_nodes]
        for graph in nodes(left)
    ]


def normalized(K, rows, columns):
    """K(G, G') / sqrt(K(G, G) K(G', G')), and 0 where one of these is 0; fractions stay exact up to the last step."""

    def ratio(k, a, b):
        if a == 0 or b == 0 or k == 0:
            return 0.0
        if isinstance(k, Fraction):
            return math.sqrt(k * k / (a * b)) * (1 if k > 0 else -1)
        return k / math.sqrt(a) / math.sqrt(b)

    return [[ratio(k, a, b) for k, b in zip(row, columns, strict=True)] for row, a in zip(K, rows, strict=True)]
