"""Hand-drawn graphs, as the plain lists that a user would write, and collections of them.

``COLLECTIONS`` shows every case that a kernel may meet, one per entry; ``LAWS_HOLD_ON`` the few larger mixtures on which
the laws of ``checks.py`` are tested. All of the latter have edge labels: a kernel that does not use them ignores them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from treegram import Graphs


@dataclass(frozen=True)
class Collection:
    """Graphs as plain lists, exactly what ``Graphs.from_edges`` takes; the oracle reads the same lists."""

    edges: list[list[tuple[int, int]]]
    n_nodes: list[int]
    labels: list[list[Any]] | None = None
    attributes: list[list[list[float]]] | None = None
    edge_labels: list[list[Any]] | None = None
    directed: bool = False

    def __len__(self) -> int:
        return len(self.edges)

    def pack(self) -> Graphs:
        return Graphs.from_edges(
            self.edges,
            n_nodes=self.n_nodes,
            labels=self.labels,
            attributes=self.attributes,
            edge_labels=self.edge_labels,
            directed=self.directed,
        )

    def take(self, chosen: Sequence[int]) -> "Collection":
        """Return the chosen graphs, in the given order."""

        def pick(lists):
            return None if lists is None else [lists[i] for i in chosen]

        return Collection(
            [self.edges[i] for i in chosen],
            [self.n_nodes[i] for i in chosen],
            pick(self.labels),
            pick(self.attributes),
            pick(self.edge_labels),
            self.directed,
        )

    def renumbered(self, places: Sequence[Sequence[int]]) -> "Collection":
        """Return the same graphs with other node numbers: node v of graph g becomes node places[g][v]."""

        def move(lists):
            return None if lists is None else [_moved(values, p) for values, p in zip(lists, places, strict=True)]

        edges = [[(p[a], p[b]) for a, b in graph] for graph, p in zip(self.edges, places, strict=True)]
        return replace(self, edges=edges, labels=move(self.labels), attributes=move(self.attributes))

    def reversed_nodes(self) -> "Collection":
        return self.renumbered([list(range(n))[::-1] for n in self.n_nodes])


def _moved(values, places):
    moved = [None] * len(values)
    for value, place in zip(values, places, strict=True):
        moved[place] = value
    return moved


def collect(*graphs: dict[str, Any], directed: bool = False) -> Collection:
    """Collect graphs; all must have the fields of the first."""

    def column(name):
        return [g[name] for g in graphs] if graphs and name in graphs[0] else None

    return Collection(
        column("edges") or [],
        column("n_nodes") or [],
        column("labels"),
        column("attributes"),
        column("edge_labels"),
        directed,
    )


# -------------------------------------------------------------------- one graph each: labels, vectors of two, edge labels

NOTHING = {"n_nodes": 0, "edges": [], "labels": [], "attributes": [], "edge_labels": []}
ONE = {"n_nodes": 1, "edges": [], "labels": ["C"], "attributes": [[0.5, -0.25]], "edge_labels": []}
ISOLATED = {
    "n_nodes": 4,
    "edges": [],
    "labels": ["C", "N", "C", "O"],
    "attributes": [[0.0, 0.0], [1.0, 1.0], [0.5, 0.25], [0.0, 2.0]],
    "edge_labels": [],
}
PATH = {
    "n_nodes": 5,
    "edges": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "labels": ["C", "C", "O", "C", "N"],
    "attributes": [[0.0, 0.0], [0.1, 0.2], [0.3, -0.4], [1.5, 0.0], [0.0, 2.5]],
    "edge_labels": [1, 2, 1, 1],
}
CYCLE = {
    "n_nodes": 6,
    "edges": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)],
    "labels": ["C"] * 6,
    "attributes": [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.5, -0.5], [0.0, -1.0], [-0.5, 0.0]],
    "edge_labels": [1, 2, 1, 2, 1, 2],
}
STAR = {
    "n_nodes": 6,
    "edges": [(0, 1), (0, 2), (3, 0), (0, 4), (5, 0)],
    "labels": ["N", "C", "C", "C", "O", "O"],
    "attributes": [[0.2, 0.2], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.3, 0.3], [0.3, 0.3]],
    "edge_labels": [1, 1, 2, 1, 2],
}
TRIANGLE = {
    "n_nodes": 3,
    "edges": [(0, 1), (1, 2), (2, 0)],
    "labels": ["C", "C", "O"],
    "attributes": [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]],
    "edge_labels": [1, 1, 1],
}
COMPONENTS = {  # a triangle, an edge, an isolated node, and a square, with interleaved node numbers
    "n_nodes": 10,
    "edges": [(0, 2), (2, 4), (4, 0), (1, 3), (6, 7), (7, 8), (8, 9), (9, 6)],
    "labels": ["C", "O", "C", "C", "C", "N", "C", "C", "C", "O"],
    "attributes": [[0.1 * i, 0.3 * (i % 4)] for i in range(10)],
    "edge_labels": [1, 2, 1, 2, 1, 1, 2, 2],
}
REPEATED = {  # self loops and repeated edges, which do not count
    "n_nodes": 4,
    "edges": [(0, 0), (0, 1), (1, 0), (0, 1), (1, 2), (2, 2), (3, 2)],
    "labels": ["O", "C", "C", "N"],
    "attributes": [[0.0, 0.1], [0.2, 0.3], [0.4, 0.5], [0.6, 0.7]],
    "edge_labels": [2, 1, 1, 1, 2, 2, 1],
}
DIAMONDS = {  # two diamonds in a row: several shortest paths, so that trees share their branches
    "n_nodes": 7,
    "edges": [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)],
    "labels": ["C", "O", "O", "C", "O", "O", "C"],
    "attributes": [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
    "edge_labels": [1, 1, 1, 1, 2, 2, 2, 2],
}
FAR = {  # clusters whose vectors are so far apart that their kernel is 0 in double precision
    "n_nodes": 6,
    "edges": [(0, 1), (1, 2), (3, 4), (4, 5), (2, 3)],
    "labels": ["C", "C", "C", "C", "C", "O"],
    "attributes": [[0.0, 0.0], [1e6, 0.0], [1e-6, 0.0], [-1e3, 40.0], [-1e3, 40.5], [7.0, 7.0]],
    "edge_labels": [1, 1, 2, 2, 1],
}
ALL = (NOTHING, ONE, ISOLATED, PATH, CYCLE, STAR, TRIANGLE, COMPONENTS, REPEATED, DIAMONDS, FAR)


def _without(graph, *names):
    return {key: value for key, value in graph.items() if key not in names}


def _with(graph, **values):
    return {**graph, **values}


def _first_attribute(graph):
    return _with(graph, attributes=[[x] for x, _ in graph["attributes"]])


def _relabeled(graph, table):
    return _with(graph, labels=[table[label] for label in graph["labels"]])


_TUPLES = {"C": (6, "C"), "N": (7, "N"), "O": (8, "O")}
_NUMBERS = {"C": -3, "N": 10**12, "O": 0}

COLLECTIONS: dict[str, Collection] = {
    "empty": collect(),
    "no_node": collect(NOTHING),
    "only_empty_graphs": collect(NOTHING, NOTHING),
    "one_node": collect(ONE),
    "isolated_nodes": collect(ISOLATED, ONE, NOTHING),
    "path": collect(PATH),
    "cycle": collect(CYCLE, PATH),
    "star": collect(STAR, _with(STAR, labels=["C"] * 6)),
    "triangle": collect(TRIANGLE, CYCLE),
    "components": collect(COMPONENTS, TRIANGLE),
    "repeated_edges": collect(REPEATED, PATH),
    "diamonds": collect(DIAMONDS, PATH),
    "equal_vectors": collect(*(_with(g, attributes=[[0.5, 0.5]] * g["n_nodes"]) for g in (CYCLE, STAR, PATH))),
    "far_apart": collect(FAR, PATH, FAR),
    "directed": collect(*(_without(g, "edge_labels") for g in ALL), directed=True),
    "edge_labels": collect(*ALL),
    "directed_edge_labels": collect(*ALL, directed=True),
    "no_labels": collect(*(_without(g, "labels", "edge_labels") for g in ALL)),
    "no_attributes": collect(*(_without(g, "attributes") for g in ALL)),
    "bare": collect(*(_without(g, "labels", "attributes", "edge_labels") for g in ALL)),
    "one_attribute": collect(*(_first_attribute(g) for g in ALL)),
    "integer_labels": collect(*(_relabeled(g, _NUMBERS) for g in ALL)),
    "tuple_labels": collect(*(_relabeled(g, _TUPLES) for g in ALL)),
}

LAWS_HOLD_ON: dict[str, Collection] = {
    "mixed": collect(*ALL),
    "no_labels": collect(*(_without(_first_attribute(g), "labels") for g in ALL)),
    "directed": collect(*ALL, directed=True),
    "no_attributes": collect(*(_without(g, "attributes") for g in ALL)),
}
