"""Generated graphs whose class is known to depend on certain nodes: a small motif planted in a random tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from treegram._core.errors import ParameterError
from treegram._core.params import LIST, SEED, Allowed, Number, Whole, check_value
from treegram._core.types import Ints
from treegram.graphs import Graphs

__all__ = ["make_motifs"]

MOTIFS: dict[str, list[tuple[int, int]]] = {
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "clique": [(a, b) for b in range(5) for a in range(b)],
    "wheel": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
}
MOTIF_NODES = 5  # of each motif, so that the size of a graph does not depend on its class
_ALLOWED: dict[str, Allowed] = {
    "n_graphs": (Whole(0),),
    "motifs": (LIST,),
    "n_nodes": (Whole(1),),
    "n_attributes": (Whole(0),),
    "shift": (Number(),),
    "random_state": SEED,
}


def make_motifs(
    n_graphs: int = 200,
    *,
    motifs: Sequence[str] = ("house", "cycle"),
    n_nodes: int = 20,
    n_attributes: int = 0,
    shift: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Graphs, Ints, NDArray[np.bool_]]:
    """Generate random trees with a motif of five nodes planted in each: the motif is the class.

    A tree grows node by node, each joined to an earlier one with a probability in proportion to its degree; an edge
    between random nodes of both joins the motif to it. Nodes are numbered at random. So the nodes that determine
    the class are known. The defaults are close to the data set BA-2Motifs.

    Parameters
    ----------
    n_graphs : int, default=200
        Number of graphs, divided evenly among the classes; the first classes get the remainder.
    motifs : sequence of {"house", "cycle", "clique", "wheel", "star"}, default=("house", "cycle")
        The motif of each class. Classes with the same motif differ in attributes alone.
    n_nodes : int, default=20
        Nodes of each tree, to which the motif's five are added.
    n_attributes : int, default=0
        Dimension of the vectors of the nodes: standard normal numbers.
    shift : float, default=0.0
        Added to attribute ``c % n_attributes`` of the motif's nodes in class ``c``.
    random_state : int, RandomState instance or None, default=None
        Seed; the same number gives the same graphs, to the bit.

    Returns
    -------
    graphs : Graphs
        The graphs, class after class, without labels: kernels then use degrees.
    y : ndarray of shape (n_graphs,)
        The classes, 0, 1, ...; also kept as ``graphs.targets``.
    is_motif : ndarray of bool, shape (n_nodes of all graphs,)
        Which nodes belong to a motif, in the order of the nodes of ``graphs``.

    References
    ----------
    D. Luo, W. Cheng, D. Xu, W. Yu, B. Zong, H. Chen, X. Zhang: Parameterized explainer for graph neural network. Advances in
    Neural Information Processing Systems, 2020 (BA-2Motifs).

    Examples
    --------
    >>> from treegram import make_motifs
    >>> graphs, y, is_motif = make_motifs(4, random_state=0)
    >>> graphs
    Graphs(4 graphs, 100 nodes, 102 edges, undirected, no labels, targets)
    >>> y
    array([0, 0, 1, 1])
    >>> int(is_motif.sum())
    20
    """
    _check_parameters(locals())
    random = check_random_state(random_state)
    y = np.sort(np.arange(n_graphs) % len(motifs))
    size = n_nodes + MOTIF_NODES
    edges, is_motif = [np.empty((0, 2), np.int64)], np.zeros((n_graphs, size), bool)
    for graph, c in enumerate(y):
        numbers = random.permutation(size)
        edges.append(graph * size + numbers[_plant(motifs[c], n_nodes, random)])
        is_motif[graph, numbers[n_nodes:]] = True
    vectors = random.standard_normal((n_graphs, size, n_attributes)) if n_attributes else None
    if vectors is not None:
        for c in range(len(motifs)):
            vectors[y == c, :, c % n_attributes] += shift * is_motif[y == c]
        vectors = vectors.reshape(-1, n_attributes)
    offsets = np.arange(n_graphs + 1) * size
    graphs = Graphs.from_arrays(offsets, np.concatenate(edges), attributes=vectors, targets=y)
    return graphs, y, is_motif.ravel()


def _check_parameters(parameters: dict[str, Any]) -> None:
    for name, value in parameters.items():
        check_value(name, "make_motifs", value, _ALLOWED[name])
    motifs = list(parameters["motifs"])
    if not motifs or any(motif not in MOTIFS for motif in motifs):
        raise ParameterError(
            f"motifs of make_motifs must hold names, one for each class, out of {', '.join(MOTIFS)}; got {motifs!r}."
        )


def _plant(motif: str, n_nodes: int, random: np.random.RandomState) -> Ints:
    """Return the edges of a tree of nodes 0 to n_nodes - 1, of the motif after it, and of one edge between them."""
    ends = [0]  # each node once per edge, and the first once more
    edges = []
    for node in range(1, n_nodes):
        other = ends[random.randint(len(ends))]
        edges.append((other, node))
        ends += [other, node]
    edges += [(n_nodes + a, n_nodes + b) for a, b in MOTIFS[motif]]
    edges.append((random.randint(n_nodes), n_nodes + random.randint(MOTIF_NODES)))
    return np.array(edges, dtype=np.int64)
