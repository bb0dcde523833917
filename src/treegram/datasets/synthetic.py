"""Generated graphs: copies of one random graph, perturbed a little differently in each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from treegram._core.errors import ParameterError
from treegram._core.params import LIST, SEED, Allowed, Number, Whole, Words, check_value
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs

__all__ = ["make_synthetic"]


_ALLOWED: dict[str, Allowed] = {
    "n_graphs": (Whole(0),),
    "n_nodes": (Whole(0),),
    "n_edges": (Whole(0),),
    "rewired": (LIST,),
    "permuted": (LIST,),
    "noise": (Number(0),),
    "rewiring": (Words("swap", "move"),),
    "random_state": SEED,
}
_MAX_TRIES = 1000  # per swap; in a sparse graph nearly every try succeeds


def make_synthetic(
    n_graphs: int = 300,
    *,
    n_nodes: int = 100,
    n_edges: int = 196,
    rewired: Sequence[int] = (5, 10),
    permuted: Sequence[int] = (10, 5),
    noise: float = 0.45,
    rewiring: str = "swap",
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Graphs, Ints]:
    """Generate graphs whose classes differ in the number of perturbed edges and attributes.

    One random graph with one standard normal attribute per node is drawn. Each graph is a copy of it in which some
    edges are rewired, the attributes of some nodes are shuffled, and normal noise is added to every attribute; the
    numbers of edges and attributes depend on the class. The defaults are those of the data set SYNTHETIC.

    Parameters
    ----------
    n_graphs : int, default=300
        Number of graphs, divided evenly among the classes; the first classes get the remainder.
    n_nodes : int, default=100
        Nodes of each graph.
    n_edges : int, default=196
        Edges of each graph.
    rewired : sequence of int, default=(5, 10)
        Rewirings per graph, one number for each class.
    permuted : sequence of int, default=(10, 5)
        Nodes whose attributes are shuffled among each other, one number for each class.
    noise : float, default=0.45
        Standard deviation of the noise.
    rewiring : {"swap", "move"}, default="swap"
        "swap": two edges (a, b) and (c, d) become (a, d) and (c, b), which keeps all degrees, as in the files of
        SYNTHETICnew. "move": one edge is removed, and one is added between two nodes that had none.
    random_state : int, RandomState instance or None, default=None
        Seed; the same number gives the same graphs, to the bit.

    Returns
    -------
    graphs : Graphs
        The graphs, class after class, without labels: kernels then use degrees.
    y : ndarray of shape (n_graphs,)
        The classes, 0, 1, ...; class ``c`` was made with ``rewired[c]`` and ``permuted[c]``. Also kept as
        ``graphs.targets``.

    Examples
    --------
    >>> from treegram import make_synthetic
    >>> graphs, y = make_synthetic(10, random_state=0)
    >>> graphs
    Graphs(10 graphs, 1,000 nodes, 1,960 edges, undirected, no labels, 1 attribute, targets)
    >>> y
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    _check_parameters(locals())
    random = check_random_state(random_state)
    edges = _pairs(sample_without_replacement(_n_pairs(n_nodes), n_edges, random_state=random), n_nodes)
    attributes = random.standard_normal(n_nodes)
    y = np.sort(np.arange(n_graphs) % len(rewired))
    rewire = _swap if rewiring == "swap" else _move
    all_edges = [rewire(edges, n_nodes, rewired[c], random) for c in y]
    all_attributes = [_shuffle_some(attributes, permuted[c], random) for c in y]
    values = np.reshape(all_attributes, (-1, 1))
    graphs = Graphs.from_arrays(
        np.arange(n_graphs + 1) * n_nodes,
        np.concatenate([np.empty((0, 2), np.int64), *(e + i * n_nodes for i, e in enumerate(all_edges))]),
        attributes=values + noise * random.standard_normal(values.shape),
        targets=y,
    )
    return graphs, y


def _check_parameters(parameters: dict[str, Any]) -> None:
    for name, value in parameters.items():
        check_value(name, "make_synthetic", value, _ALLOWED[name])
    n_nodes, n_edges = parameters["n_nodes"], parameters["n_edges"]
    n_free = _n_pairs(n_nodes) - n_edges
    if n_free < 0:
        raise ParameterError(
            f"n_edges of make_synthetic must be at most {_n_pairs(n_nodes)} with n_nodes={n_nodes}; got {n_edges}."
        )
    if len(parameters["rewired"]) != len(parameters["permuted"]) or not len(parameters["rewired"]):
        raise ParameterError(
            "rewired and permuted of make_synthetic must have one number for each class; "
            f"got {parameters['rewired']!r} and {parameters['permuted']!r}."
        )
    most_edges = n_edges if parameters["rewiring"] == "swap" else min(n_edges, n_free)
    for name, most in (("rewired", most_edges), ("permuted", n_nodes)):
        for number in parameters[name]:
            if not isinstance(number, int | np.integer) or not 0 <= number <= most:
                raise ParameterError(
                    f"{name} of make_synthetic must hold whole numbers from 0 to {most}; got {parameters[name]!r}."
                )


def _n_pairs(n_nodes: int) -> int:
    return n_nodes * (n_nodes - 1) // 2


def _pairs(numbers: Ints, n_nodes: int) -> Ints:
    """Return the pairs (a, b) with a < b that have these numbers in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    n_larger = n_nodes - 1 - np.arange(n_nodes)
    first = np.cumsum(n_larger) - n_larger  # number of the first pair of each a
    a = np.searchsorted(first, numbers, side="right") - 1
    return np.stack([a, numbers - first[a] + a + 1], axis=1).astype(np.int64)


def _swap(edges: Ints, n_nodes: int, n_times: int, random: np.random.RandomState) -> Ints:  # noqa: ARG001 (as _move)
    """Swap the ends of random pairs of edges, n_times."""
    pairs = [(a, b) for a, b in edges.tolist()]
    present = set(pairs)
    for _ in range(n_times):
        for _ in range(_MAX_TRIES):
            i, j = random.randint(len(pairs), size=2)
            (a, b), (c, d) = pairs[i], pairs[j][:: random.choice((-1, 1))]  # an edge has no first end
            new = [(min(a, d), max(a, d)), (min(b, c), max(b, c))]
            if a != d and b != c and present.isdisjoint(new):
                break
        else:
            raise ParameterError(
                f"rewired of make_synthetic: no two of the {len(pairs)} edges could be swapped; the graph is too small or too dense."
            )
        present.difference_update((pairs[i], pairs[j]))
        present.update(new)
        pairs[i], pairs[j] = new
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _move(edges: Ints, n_nodes: int, n_times: int, random: np.random.RandomState) -> Ints:
    """Remove n_times edges and add as many between nodes that had none."""
    taken = {(a, b) for a, b in edges.tolist()}
    new: list[tuple[int, int]] = []
    while len(new) < n_times:
        [[a, b]] = _pairs(random.randint(_n_pairs(n_nodes), size=1), n_nodes).tolist()
        if (a, b) not in taken:
            taken.add((a, b))
            new.append((a, b))
    removed = sample_without_replacement(len(edges), n_times, random_state=random)
    return np.concatenate([np.delete(edges, removed, axis=0), np.array(new, dtype=np.int64).reshape(-1, 2)])


def _shuffle_some(values: Floats, n_moved: int, random: np.random.RandomState) -> Floats:
    nodes = sample_without_replacement(len(values), n_moved, random_state=random)
    shuffled = values.copy()
    shuffled[nodes] = values[random.permutation(nodes)]
    return shuffled
