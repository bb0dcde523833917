"""Hypothesis strategies: collections of small attributed graphs, as plain lists (``zoo.Collection``)."""

from hypothesis import strategies as st

from zoo import Collection

MAX_NODES = 6

# Few values each, so that equal vectors, near vectors and vectors far apart all occur within one collection.
SCALES = {
    "plain": [-1.5, -0.5, 0.0, 0.25, 1.0],
    "near": [0.0, 1e-6, -1e-6, 2e-6, 1.0],
    "far": [0.0, 1.0, 1e6, -1e6, 1e6 + 1.0],
    "huge": [0.0, 1.0, 1e160, -1e160, 5e159],
}
LABELS = {
    "integers": [0, 1, -7],
    "strings": ["C", "N", "a label, in words"],
    "tuples": [("C", 0), ("C", 1), ("N", (0, "x"))],
}


def attributes(n_nodes, scale, dimension):
    vector = st.lists(st.sampled_from(SCALES[scale]), min_size=dimension, max_size=dimension)
    return st.lists(vector, min_size=n_nodes, max_size=n_nodes)


@st.composite
def edge_lists(draw, n_nodes):
    """Draw pairs of nodes, including self loops and repetitions; isolated nodes and components occur as well."""
    if n_nodes == 0:
        return []
    node = st.integers(0, n_nodes - 1)
    return draw(st.lists(st.tuples(node, node), max_size=2 * n_nodes))


def labels_of(draw, edges, *, directed):
    """Draw a label for each listed edge; repeated edges get the same label."""
    given = {}
    for a, b in edges:
        key = (a, b) if directed else (min(a, b), max(a, b))
        if key not in given:
            given[key] = draw(st.integers(0, 1))
    return [given[(a, b) if directed else (min(a, b), max(a, b))] for a, b in edges]


@st.composite
def collections(
    draw, *, min_graphs=0, max_graphs=4, directed=None, labeled=None, dimension=None, edge_labels=None, scale=None
):
    """Draw collections of up to ``max_graphs`` graphs; whatever is not fixed is drawn. ``dimension=0``: no attributes."""
    sizes = draw(st.lists(st.integers(0, MAX_NODES), min_size=min_graphs, max_size=max_graphs))
    directed = draw(st.booleans()) if directed is None else directed
    labeled = draw(st.booleans()) if labeled is None else labeled
    edge_labels = draw(st.booleans()) if edge_labels is None else edge_labels
    dimension = draw(st.sampled_from([0, 1, 2, 3, 5])) if dimension is None else dimension
    scale = draw(st.sampled_from(sorted(SCALES))) if scale is None else scale
    alphabet = LABELS[draw(st.sampled_from(sorted(LABELS)))]
    edges = [draw(edge_lists(n)) for n in sizes]
    return Collection(
        edges=edges,
        n_nodes=sizes,
        labels=[draw(st.lists(st.sampled_from(alphabet), min_size=n, max_size=n)) for n in sizes] if labeled else None,
        attributes=[draw(attributes(n, scale, dimension)) for n in sizes] if dimension else None,
        edge_labels=[labels_of(draw, graph, directed=directed) for graph in edges] if edge_labels else None,
        directed=directed,
    )


@st.composite
def with_node_order(draw, **options):
    """Draw a collection, and a permutation of the nodes of each of its graphs."""
    collection = draw(collections(**options))
    return collection, [draw(st.permutations(range(n))) for n in collection.n_nodes]


@st.composite
def with_graph_order(draw, **options):
    """Draw a collection, and a permutation of its graphs."""
    collection = draw(collections(**options))
    return collection, draw(st.permutations(range(len(collection))))


@st.composite
def in_two_parts(draw, **options):
    """Draw a collection, and which of its graphs belong to the first part."""
    collection = draw(collections(**options))
    n = len(collection)
    return collection, draw(st.lists(st.booleans(), min_size=n, max_size=n))
