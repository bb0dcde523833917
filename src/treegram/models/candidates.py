"""The candidates of ``kernel="auto"``: a small grammar of views and structures, cheap ones first, the same for all data.

A **view** selects the vectors of the nodes: none, as they come, scaled, with those of their neighbors, or distances to the
centroid; and whether numbers at the edges count. The width of the node kernel follows from the vectors of a view, so it suits
any range and dimension. A **structure** says what else must be alike for two nodes to be compared: colors, trees, edges, or
pairs of nodes. What the graphs do not have (edge labels, vectors, more than one attribute) is left out. Nothing here looks at
targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.transforms import (
    BinEdgeAttributes,
    CentroidDistance,
    DropAttributes,
    NeighborMeans,
    ScaleAttributes,
)
from treegram.kernels import CSM, GIK, ODDCL, ODDST, P2K, WL, WLCL, WLOA, KernelSum, ShortestPath
from treegram.models.crossval import seed_of
from treegram.models.search import Candidate
from treegram.pairsum.attributes import scaled_gamma

__all__ = ["auto_candidates", "narrow_gamma"]

Make = Callable[..., Any]  # returns a kernel for options
N_PAIRS = 20_000  # of nodes, whose distances are sampled


@dataclass(frozen=True)
class Structure:
    """A kernel of labels and shape alone, and one that also compares vectors, with a gamma."""

    reason: str
    plain: Make | None = None
    with_vectors: Make | None = None


@dataclass(frozen=True)
class View:
    """Transformers of the graphs, the structures to try on them, and whether the node kernel on the vectors is narrow."""

    name: str
    reason: str
    steps: tuple[Callable[[], Any], ...]
    structures: tuple[str, ...]
    is_narrow: bool = False


def _pairs(gamma: float | str | None = None, **_: Any) -> KernelSum:
    """Return a kernel of pairs of nodes: balls around one node, nodes up to three steps apart, and all shortest paths."""
    return KernelSum(
        [
            GIK(invariant="nspdk", radius=0, distance=3, gamma=gamma),
            GIK(invariant="nspdk", radius=1, distance=0, gamma=gamma),
            ShortestPath(length_kernel="brownian", use_labels=True, gamma=gamma),
        ]
    )


def _nodes(gamma: float | str, **_: Any) -> WLCL:
    return WLCL(0, missing_labels="constant", gamma=gamma)


def _propagation(mode: str = "gmm", **_: Any) -> KernelSum:
    """Return the sum of three draws of bins: a single draw moves accuracy by half a point."""
    return KernelSum([P2K(n_iterations=2, mode=mode, random_state=seed) for seed in range(3)])


def _edges(**options: Any) -> CSM:
    return CSM(max_size=2, use_labels=True, **options)


_TREES: dict[str, Any] = {"lam": 1.5, "counting": "visits"}
_STRUCTURES = {
    "nodes": Structure("nodes of equal label, whatever is around them", None, _nodes),
    "colors 1": Structure("nodes whose neighbors have equal labels", partial(WL, 1), partial(WLCL, 1)),
    "colors 3": Structure("nodes with equal surroundings, up to three steps away", partial(WL, 3), partial(WLCL, 3)),
    "matched colors 1": Structure("as colors 1, but each node is matched once at most", partial(WLOA, 1)),
    "matched colors 3": Structure("as colors 3, but each node is matched once at most", partial(WLOA, 3)),
    "trees 1": Structure("nodes with equal trees, one step deep", None, partial(ODDCL, 1, counting="visits")),
    "trees 3": Structure(
        "nodes with equal trees, three steps deep, large ones weighted up",
        partial(ODDST, 3, **_TREES),
        partial(ODDCL, 3, **_TREES),
    ),
    "edges": Structure("edges one by one: where nodes have many, no two have equal surroundings", _edges),
    "propagation": Structure("labels and vectors spread along the edges", _propagation, _propagation),
    "spread labels": Structure("labels spread along the edges", None, partial(_propagation, "hash")),
    "pairs": Structure("pairs of nodes near and far", _pairs, _pairs),
}


def auto_candidates(graphs: Graphs) -> list[Candidate]:
    """Return the candidates that suit the graphs, cheap ones first."""
    views = _views_with_vectors(graphs) if graphs.n_attributes else _views_without_vectors(graphs)
    return [one for view in views for one in _in_view(view, graphs)]


def _views_without_vectors(graphs: Graphs) -> Iterator[View]:
    colors = ("colors 1", "colors 3", "matched colors 1", "matched colors 3")
    yield View("", "", (), (*colors, "trees 3", "edges", "propagation", "pairs"))
    if graphs.n_edge_attributes:
        reason = "numbers at the edges may matter"
        yield View("edge vectors in bins", reason, (BinEdgeAttributes,), ("edges", "colors 1"))


def _views_with_vectors(graphs: Graphs) -> Iterator[View]:
    scaled, alike = partial(ScaleAttributes, "robust"), "all attributes count alike"
    edges = ("edges",) if graphs.edge_labels is not None else ()
    plain = ("colors 3", "matched colors 1", "matched colors 3", *edges)
    yield View("no vectors", "labels and shape may be enough", (DropAttributes,), plain)
    if graphs.n_edge_attributes:
        reason = "numbers at the edges may matter"
        yield View("edge vectors in bins", reason, (DropAttributes, BinEdgeAttributes), ("edges",))
    yield View("raw vectors", "the ranges of attributes may mean something", (), ("nodes", "colors 3"))
    yield View("scaled vectors", alike, (scaled,), ("colors 1", "trees 1"), is_narrow=True)
    if graphs.n_edge_attributes:
        name, reason = "scaled vectors and edge vectors in bins", "numbers at nodes and edges may matter together"
        yield View(name, reason, (BinEdgeAttributes, scaled), ("colors 1",), is_narrow=True)
    reason = f"{alike}, and so do the neighbors'"
    yield View("neighbor means", reason, (scaled, NeighborMeans), ("colors 1",), is_narrow=True)
    if graphs.n_attributes > 1:
        reason = "they do not change when a graph is rotated"
        yield View("centroid distances", reason, (CentroidDistance,), ("colors 3", "trees 3"))
    yield View("densities in bins", "bins need no width of a node kernel", (), ("propagation",))
    reason = "bins need no width, and any one attribute may make nodes alike"
    yield View("attributes in bins", reason, (), ("spread labels",))
    yield View("scaled vectors", alike, (scaled,), ("pairs",), is_narrow=True)


def _in_view(view: View, graphs: Graphs) -> Iterator[Candidate]:
    """Yield the candidates of a view."""
    gamma = _gamma(view, graphs)
    options: dict[str, Any] = {} if gamma is None else {"gamma": gamma}
    has_edge_labels = graphs.edge_labels is not None or BinEdgeAttributes in view.steps
    options |= {"use_edge_labels": True} if has_edge_labels else {}
    for name in view.structures:
        structure = _STRUCTURES[name]
        make = structure.plain if gamma is None else structure.with_vectors
        assert make is not None  # no view names a structure that it cannot have
        steps, kernel = [step() for step in view.steps], make(**options)
        yield Candidate(
            ", ".join(filter(None, [name, view.name])),
            make_pipeline(*steps, kernel) if steps else kernel,
            reason="; ".join(filter(None, [structure.reason, view.reason])),
        )


def _gamma(view: View, graphs: Graphs) -> float | str | None:
    """Return the gamma that suits the vectors of a view, or None if it has no vectors."""
    try:
        for step in view.steps:
            graphs = step().fit_transform(graphs)
        if not graphs.n_attributes:
            return None
        return (narrow_gamma if view.is_narrow else scaled_gamma)(np.asarray(graphs.attributes))
    except ValueError:  # vectors are out of range: the kernels report this when they are tried
        return "scale"


def narrow_gamma(vectors: Floats) -> float:
    """Return eight times gamma="scale", or the gamma that reaches the nearest twentieth of all pairs, if that is less.

    Vectors in groups need a narrow kernel, and eight times is narrow enough for most. With many independent attributes, all
    pairs are about equally far apart, and so narrow a kernel would separate any two nodes.
    """
    rng = np.random.default_rng(seed_of("auto", len(vectors)))
    i, j = rng.integers(max(len(vectors), 1), size=(2, N_PAIRS if len(vectors) else 0))
    distances = ((vectors[i] - vectors[j]) ** 2).sum(axis=1)
    near = np.quantile(distances[distances > 0], 0.05) if distances.any() else 0.0
    gamma = 8.0 * scaled_gamma(vectors)
    return min(gamma, float(1.0 / near)) if near > 0 else gamma
