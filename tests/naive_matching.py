"""CSM, P2K and C'_ST in the plainest form: subsets, bijections, dictionaries and recursion; nothing from treegram.

Collections are plain lists (``zoo.Collection``). Random draws of P2K are passed in as functions, so that the same draws can
be reproduced.
"""

import math
from collections import Counter
from itertools import combinations

import naive

# -------------------------------------------------------------------- CSM: BASELINES section 4.1


def csm(left, right, node_kernel, *, max_size, weights=None, use_labels=False, **options):
    """K(G, G') = sum over connected matchings of weights[size - 1] * product of kappa."""
    sums = csm_by_size(left, right, node_kernel, max_size=max_size, use_labels=use_labels, **options)
    weights = weights or [1] * max_size
    return [[sum(w * s for w, s in zip(weights, cell, strict=False)) for cell in row] for row in sums]


def csm_by_size(left, right, node_kernel, **options):
    """Return the sums over connected matchings of 1, 2, ... nodes."""
    weighed = _weighed_subsets(left, right, node_kernel, **options)
    return [[[sum(value for _, value in same) for same in cell] for cell in row] for row in weighed]


def csm_shares(left, right, node_kernel, *, max_size, weights=None, use_labels=False, **options):
    """Return the contribution of each node to K(G, G'), if the nodes of a matching share it equally."""
    options |= {"max_size": max_size, "use_labels": use_labels}
    weights = weights or [1] * max_size

    def shares(cell, n_nodes):
        own = [0.0] * n_nodes
        for weight, same in zip(weights, cell, strict=False):
            for subset, value in same:
                for v in subset:
                    own[v] += weight * value / len(subset)
        return own

    weighed = _weighed_subsets(left, right, node_kernel, **options)
    return [[shares(cell, n) for cell in row] for row, n in zip(weighed, left.n_nodes, strict=True)]


def _weighed_subsets(left, right, node_kernel, *, max_size, use_labels, missing_labels="degree", use_edge_labels=False):
    """For each pair of graphs and size all connected subsets of the first, with the sum over the matchings of each."""

    def graphs(collection):
        return [
            (
                _edge_kinds(collection, g, use_edge_labels),
                naive.node_labels(collection, g, missing_labels) if use_labels else [0] * collection.n_nodes[g],
                collection.attributes[g] if collection.attributes is not None else [None] * collection.n_nodes[g],
            )
            for g in range(len(collection))
        ]

    def kappa(label, x, label2, x2):
        return 0 if label != label2 else 1 if x is None else node_kernel(x, x2)

    def cell(graph, graph2):
        kinds, labels, vectors = graph
        kinds2, labels2, vectors2 = graph2
        table = [
            [kappa(*node, *node2) for node2 in zip(labels2, vectors2, strict=True)]
            for node in zip(labels, vectors, strict=True)
        ]
        return [
            [(subset, _matchings(subset, table, kinds, kinds2)) for subset in _connected(kinds, s)]
            for s in range(1, max_size + 1)
        ]

    right_graphs = graphs(right)
    return [[cell(graph, graph2) for graph2 in right_graphs] for graph in graphs(left)]


def _edge_kinds(collection, g, use_edge_labels):
    """kinds[u][v]: None without an edge from u to v, else what it must agree in."""
    adjacent = naive.neighbors(collection, g)
    return [{w: (label if use_edge_labels else True) for w, label in around.items()} for around in adjacent]


def _connected(kinds, size):
    """All sets of nodes that are connected, whatever the direction of their edges."""
    for subset in combinations(range(len(kinds)), size):
        reached, frontier = {subset[0]}, [subset[0]]
        for v in frontier:
            new = [w for w in subset if w not in reached and (w in kinds[v] or v in kinds[w])]
            reached.update(new)
            frontier.extend(new)
        if len(reached) == size:
            yield subset


def _matchings(subset, table, kinds, kinds2, image=()):
    """The sum over all ways to map the rest of the subset, given the image of its beginning."""
    if len(image) == len(subset):
        return math.prod(table[v][v2] for v, v2 in zip(subset, image, strict=True))
    u = subset[len(image)]
    return sum(
        _matchings(subset, table, kinds, kinds2, (*image, u2))
        for u2 in range(len(kinds2))
        if u2 not in image and table[u][u2] and _agree(u, u2, subset, image, kinds, kinds2)
    )


def _agree(u, u2, subset, image, kinds, kinds2):
    return all(
        kinds[u].get(v) == kinds2[u2].get(v2) and kinds[v].get(u) == kinds2[v2].get(u2)
        for v, v2 in zip(subset, image, strict=False)
    )


# -------------------------------------------------------------------- P2K: BASELINES section 5.1


def standardization(collection):
    """Mean and standard deviation (divided by n - 1) of each attribute over all nodes."""
    vectors = [vector for graph in collection.attributes for vector in graph]
    columns = list(zip(*vectors, strict=True))
    means = [math.fsum(column) / len(column) for column in columns]
    spread = [
        math.sqrt(math.fsum((x - m) ** 2 for x in column) / (len(column) - 1)) if len(column) > 1 else 0.0
        for column, m in zip(columns, means, strict=True)
    ]
    return means, [s or 1.0 for s in spread]


def spread_once(adjacent, rows):
    """Each row becomes the mean of the neighbors' rows; without neighbors, zeros."""
    width = len(rows[0]) if rows else 0
    return [
        [math.fsum(rows[w][i] for w in around) / len(around) for i in range(width)] if around else [0.0] * width
        for around in adjacent
    ]


def lsh(projected, offset, width):
    return math.floor((projected + offset * width) / width)


def p2k_histograms(
    collection,
    g,
    *,
    iterations,
    columns,
    spreads,
    draws,
    label_width,
    widths,
    missing_labels="degree",
    use_labels=True,
):
    """Count the nodes of graph g with each (t, column, label bin, attribute bin).

    ``columns[g][v]`` are the values of a node at iteration 0; ``draws(t)`` gives a function of label values, their offset, and
    the directions and offsets of the columns.
    """
    adjacent = naive.neighbors(collection, g)
    labels = naive.node_labels(collection, g, missing_labels) if use_labels else [0] * collection.n_nodes[g]
    alphabet = sorted(set(labels), key=repr)
    distributions = [[1.0 if label == known else 0.0 for known in alphabet] for label in labels]
    rows, bins = columns[g], Counter()
    for t in range(iterations + 1):
        coordinate, label_offset, directions, offsets = draws(t)
        for F, A in zip(distributions, rows, strict=True):
            label_bin = lsh(sum(f * coordinate(a) for f, a in zip(F, alphabet, strict=True)), label_offset, label_width)
            for j, value in enumerate(A):
                bins[t, j, label_bin, lsh(value * directions[j], offsets[j], widths[j])] += 1
        distributions = spread_once(adjacent, distributions)
        rows = spread_once(adjacent, rows) if spreads else rows
    return bins


def p2k(histograms, histograms2):
    return [[sum(n * h2[key] for key, n in h.items()) for h2 in histograms2] for h in histograms]


def collision_probability(distance, width):
    """Return how often two values at this distance fall into the same bin (BASELINES section 5.2)."""
    if distance == 0:
        return 1.0
    c, w = distance, width
    return 2 / math.pi * math.atan(w / c) - c / (math.pi * w) * math.log1p((w / c) ** 2)


def expected_p2k(collection, *, iterations, columns, spreads, label_width, attribute_width):
    """Return the mean of K over all draws: each collision counts with its probability."""
    alphabet = sorted({label for g in range(len(collection)) for label in naive.node_labels(collection, g)}, key=repr)
    adjacent = [naive.neighbors(collection, g) for g in range(len(collection))]
    F = [[[float(x == a) for a in alphabet] for x in naive.node_labels(collection, g)] for g in range(len(collection))]
    A, n = columns, len(collection)
    K = [[0.0] * n for _ in range(n)]

    def alike(f, a, f2, a2):
        labels = sum(abs(x - y) for x, y in zip(f, f2, strict=True))
        return collision_probability(labels, label_width) * sum(
            collision_probability(abs(x - y), attribute_width) for x, y in zip(a, a2, strict=True)
        )

    for _ in range(iterations + 1):
        for g in range(n):
            for h in range(n):
                nodes, nodes2 = (list(zip(F[i], A[i], strict=True)) for i in (g, h))
                K[g][h] += sum(alike(*node, *node2) for node in nodes for node2 in nodes2)
        F = [spread_once(adjacent[g], F[g]) for g in range(n)]
        A = [spread_once(adjacent[g], A[g]) for g in range(n)] if spreads else A
    return K


# -------------------------------------------------------------------- C'_ST: equation (4)


def ordered_trees(collection, g, *, depth, tie_break, counting="paper", missing_labels="degree", use_edge_labels=False):
    """Count how often each ordered tree (node, label, vector, ((edge label, child), ...)) occurs in graph g."""
    adjacent = naive.neighbors(collection, g)
    labels = naive.node_labels(collection, g, missing_labels)
    edge_labels = adjacent if use_edge_labels else [dict.fromkeys(around) for around in adjacent]
    vectors = collection.attributes[g] if collection.attributes is not None else [None] * len(labels)

    def ordered(children, v, j):
        below = [(edge_labels[v][w], ordered(children, w, j - 1)) for w in (children[v] if j else ())]
        below.sort(key=lambda child: (repr((child[0], shape(child[1]))), tie_key(child[1], tie_break)))
        vector = None if vectors[v] is None else tuple(vectors[v])
        return (v, labels[v], vector, tuple(below))

    found = Counter()
    for root in range(len(labels)):
        depths = [depth] if counting == "paper" else range(depth + 1)
        if counting == "capped":
            depths = range(min(depth, max(naive.distances(adjacent, root).values())) + 1)
        for q in depths:
            children = naive.dag(adjacent, root, q)
            for v in children:
                for j in range(depth + 1) if counting == "paper" else [q]:
                    found[ordered(children, v, j)] += 1
    return found


def shape(tree):
    """The tree without nodes, vectors and order."""
    return (tree[1], tuple(sorted(((edge, shape(child)) for edge, child in tree[3]), key=repr)))


def tie_key(tree, tie_break):
    if tie_break == "given":
        return tree[0]
    vector = () if tree[2] is None else tree[2] if tie_break == "lexicographic" else tree[2][::-1]
    return (vector, *(tie_key(child, tie_break) for _, child in tree[3]))


def c_prime(tree, tree2, lam, node_kernel):
    """Equation (4)."""
    _, label, x, children = tree
    _, label2, x2, children2 = tree2
    if label != label2 or len(children) != len(children2):
        return 0
    value = lam * (1 if x is None else node_kernel(x, x2))
    for (edge, child), (edge2, child2) in zip(children, children2, strict=True):
        value *= c_prime(child, child2, lam, node_kernel) if edge == edge2 else 0
    return value


def ordered_st(left, right, node_kernel, *, lam=1.0, **options):
    """K(G, G') = the sum of C' over all pairs of trees."""
    found, found2 = ([ordered_trees(c, g, **options) for g in range(len(c))] for c in (left, right))
    return [
        [sum(n * n2 * c_prime(t, t2, lam, node_kernel) for t, n in f.items() for t2, n2 in f2.items()) for f2 in found2]
        for f in found
    ]
