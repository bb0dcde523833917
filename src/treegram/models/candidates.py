"""The kernels that a model tries: those that the user named, and those of ``"auto"``.

The latter are structures combined with views of the graphs, the same for all data. A **view** is the output of transformers of the graphs: full labels or only their first parts; no vectors, raw vectors,
scaled or whitened ones, or vectors with those of the neighbors; edge vectors in bins. The width of the node kernel follows
from the vectors of a view, so it suits any range and dimension. A **structure** is what else must match for two nodes to be
compared: colors, trees, edges, or pairs of nodes. Candidates that need something the graphs lack are left out. Nothing here
looks at targets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.pipeline import make_pipeline

from treegram._core.text import suggest
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.transforms import (
    BinEdgeAttributes,
    DropAttributes,
    NeighborMeans,
    ScaleAttributes,
    TruncateLabels,
)
from treegram.kernels import CSM, GIK, ODDCL, ODDST, P2K, WL, WLCL, WLOA, KernelSum, ShortestPath, StatisticsKernel
from treegram.kernels.base import AUTO, KERNELS, PRECOMPUTED
from treegram.kernels.grid import parameter_names, split_pipeline, with_parameters
from treegram.pairsum.attributes import scaled_gamma

__all__ = [
    "Candidate",
    "ParamGrid",
    "auto_candidates",
    "list_candidates",
    "narrow_gamma",
    "seed_of",
    "white_gamma",
    "with_jobs",
]

N_PAIRS = 20_000  # pairs of nodes whose distances are sampled

ParamGrid: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel, or a pipeline that ends in one, and the grid to search for it."""

    name: str
    kernel: Any
    param_grid: ParamGrid = field(default_factory=dict)
    reason: str = "requested"


def seed_of(*identity: Any) -> int:
    """Return a seed that depends only on an identity, so that adding a run never changes the others."""
    digest = hashlib.sha256(json.dumps(identity).encode()).digest()
    return int.from_bytes(digest[:4], "little")


# -------------------------------------------------------------------- candidates of the user


def list_candidates(kernel: Any, param_grid: Any, n_jobs: int | None) -> list[Candidate]:
    """Return the kernels that the user named, each with its grid; ``n_jobs=None`` keeps each kernel's own number of threads."""
    kernels = list(kernel) if isinstance(kernel, list | tuple) else [kernel]
    kernels = [_named_kernel(one) if isinstance(one, str) else one for one in kernels]
    if not kernels:
        raise ValueError("kernel must be a kernel or a list of at least one; got an empty list.")
    grids = list(param_grid) if isinstance(param_grid, list | tuple) else [param_grid] * len(kernels)
    if len(grids) != len(kernels):
        raise ValueError(
            f"param_grid must have one entry for each kernel: {len(kernels)} kernels, got {len(grids)} entries."
        )
    candidates = []
    for i, (name, one, grid) in enumerate(zip(_names(kernels), kernels, grids, strict=True)):
        if grid != "auto" and not isinstance(grid, Mapping):
            raise ValueError(f"param_grid[{i}] must be 'auto' or a dict of parameter: list of values; got {grid!r}.")
        values = split_pipeline(one)[1].default_param_grid() if grid == "auto" else grid
        candidates.append(Candidate(name, with_jobs(one, n_jobs), values))
    return candidates


def with_jobs(kernel: Any, n_jobs: int | None) -> Any:
    """Return a copy of the kernel with ``n_jobs`` threads; None keeps its own number."""
    has_jobs = n_jobs is not None and "n_jobs" in parameter_names(kernel)
    return with_parameters(kernel, {"n_jobs": n_jobs} if has_jobs else {})


def _named_kernel(name: str) -> Any:
    """Return the kernel with this name, as on the command line and in studies, with its default parameters."""
    if name in (AUTO, PRECOMPUTED):
        raise ValueError(
            f"kernel {name!r} must be the only one, not in a list; 'precomputed' is for GraphSVC and GraphRidge alone."
        )
    if name not in KERNELS:
        raise ValueError(f"kernel {name!r} is unknown{suggest(name, KERNELS) or '. Known are ' + ', '.join(KERNELS)}")
    return KERNELS[name]()


def _names(kernels: list[Any]) -> list[str]:
    """Name kernels by the classes of their steps, with parameters where two have the same classes."""
    short, long = [], []
    for i, kernel in enumerate(kernels):
        before, final = split_pipeline(kernel, "kernel" if len(kernels) == 1 else f"kernel[{i}]")
        short.append(" > ".join(type(step).__name__ for step in [*before, final]))
        long.append(" > ".join(" ".join(repr(step).split()) for step in [*before, final]))
    return [name if short.count(name) == 1 else long[i] for i, name in enumerate(short)]


# -------------------------------------------------------------------- candidates of "auto"


@dataclass(frozen=True)
class View:
    """Transformers of the graphs, the structures to try on them, and the width of the node kernel, if there are vectors."""

    name: str
    reason: str
    steps: tuple[Callable[[], Any], ...]
    structures: tuple[str, ...]
    gamma: Callable[[Floats], float] | None = None


def auto_candidates(graphs: Graphs, *, with_counts: bool = False) -> list[Candidate]:
    """Return the candidates that suit the graphs; ``with_counts`` adds one for targets that grow with the size of a graph."""
    candidates = [Candidate("statistics", StatisticsKernel(), reason="numbers of whole graphs may be enough")]
    if graphs.graph_attributes is not None:
        reason = "what is known of each graph may matter"
        candidates.append(Candidate("graph attributes", StatisticsKernel("graph_attributes"), reason=reason))
    views = [
        *_views_of_labels(graphs, with_counts=with_counts),
        *_views_of_vectors(graphs),
        *_views_of_edge_vectors(graphs),
    ]
    return candidates + [one for view in views for one in _in_view(view, graphs)]


def _views_of_labels(graphs: Graphs, *, with_counts: bool) -> Iterator[View]:
    structures: tuple[str, ...] = ("colors 1", "colors 3", "matched colors 1", "matched colors 3", "trees 3", "edges")
    structures += ("number of matched colors 1",) if with_counts else ()
    steps: tuple[Callable[[], Any], ...] = (DropAttributes,)
    name, reason = "no vectors", "labels and shape may be enough"
    if not graphs.n_attributes:
        structures, steps, name, reason = (*structures, "pairs"), (), "", ""
    yield View(name, reason, steps, structures)
    if graphs.labels is not None and any(isinstance(value, tuple) for value in graphs.label_values or ()):
        reason = "the first part of the labels may be enough"
        yield View("first part of labels", reason, (*steps, TruncateLabels), structures)


def _views_of_vectors(graphs: Graphs) -> Iterator[View]:
    if not graphs.n_attributes:
        return
    alike, robust = "all attributes count alike", partial(ScaleAttributes, "robust")
    yield View("raw vectors", "the ranges of attributes may mean something", (), ("colors 3",), scaled_gamma)
    pairs = ("pairs",) if graphs.n_attributes == 1 else ()  # otherwise they use whitened vectors
    yield View("scaled vectors", alike, (robust,), ("colors 1", "trees 1", *pairs), narrow_gamma)
    yield View(
        "neighbor means", f"{alike}, and so do the neighbors'", (robust, NeighborMeans), ("colors 1",), narrow_gamma
    )
    if graphs.n_attributes > 1:
        structures, whiten = ("nodes", "colors 1", "trees 1", "pairs"), partial(ScaleAttributes, "whiten")
        reason = "attributes may be correlated, and say more without it"
        yield View("whitened vectors", reason, (whiten,), structures, white_gamma)
    reason = "bins need no width, and any one attribute may make nodes alike"
    yield View("attributes in bins", reason, (), ("spread labels",), scaled_gamma)


def _views_of_edge_vectors(graphs: Graphs) -> Iterator[View]:
    if not graphs.n_edge_attributes:
        return
    drop = (DropAttributes,) if graphs.n_attributes else ()
    reason = "numbers at the edges may matter"
    yield View("edge vectors in bins", reason, (*drop, BinEdgeAttributes), ("edges", "colors 1"))
    if graphs.n_attributes:
        name, reason = "scaled vectors and edge vectors in bins", "numbers at nodes and edges may matter together"
        steps = (BinEdgeAttributes, partial(ScaleAttributes, "robust"))
        yield View(name, reason, steps, ("colors 1",), narrow_gamma)


# -------------------------------------------------------------------- structures


_SIZES: dict[str, Any] = {"normalize": "tanimoto"}  # keeps the sizes of graphs visible, which the cosine hides


def _pairs(gamma: float | str | None = None, **_: Any) -> KernelSum:
    """Return a kernel on pairs of nodes: balls around one node, nodes up to three steps apart, and all shortest paths."""
    return KernelSum(
        [
            GIK(invariant="nspdk", radius=0, distance=3, gamma=gamma),
            GIK(invariant="nspdk", radius=1, distance=0, gamma=gamma),
            ShortestPath(length_kernel="brownian", use_labels=True, gamma=gamma),
        ]
    )


def _nodes(gamma: float | str, **_: Any) -> WLCL:
    return WLCL(0, missing_labels="constant", gamma=gamma)


def _bins(**_: Any) -> KernelSum:
    """Return the sum of three draws of bins: with a single draw, accuracy varies by half a point."""
    return KernelSum([P2K(n_iterations=2, mode="hash", random_state=seed) for seed in range(3)])


def _colors(n_iterations: int, **options: Any) -> WL | WLCL:
    return WLCL(n_iterations, **options) if "gamma" in options else WL(n_iterations, **_SIZES, **options)


_STRUCTURES: dict[str, tuple[Callable[..., Any], str]] = {
    "nodes": (_nodes, "nodes of equal label, whatever is around them"),
    "colors 1": (partial(_colors, 1), "nodes whose neighbors have equal labels"),
    "colors 3": (partial(_colors, 3), "nodes with equal surroundings, up to three steps away"),
    "matched colors 1": (partial(WLOA, 1, **_SIZES), "as colors 1, but each node is matched once at most"),
    "matched colors 3": (partial(WLOA, 3, **_SIZES), "as colors 3, but each node is matched once at most"),
    "number of matched colors 1": (
        partial(WLOA, 1, normalize=False),
        "as matched colors 1, not normalized: a number may grow with the size of a graph",
    ),
    "trees 1": (partial(ODDCL, 1, counting="visits"), "nodes with equal trees, one step deep"),
    "trees 3": (partial(ODDST, 3, lam=1.2), "nodes with equal trees, three steps deep"),
    "edges": (
        partial(CSM, max_size=2, use_labels=True),
        "edges one by one: where nodes have many, no two have equal surroundings",
    ),
    "spread labels": (_bins, "labels spread along the edges"),
    "pairs": (_pairs, "pairs of nodes near and far"),
}


def _in_view(view: View, graphs: Graphs) -> Iterator[Candidate]:
    """Yield the candidates of a view."""
    gamma = _gamma(view, graphs)
    options: dict[str, Any] = {} if gamma is None else {"gamma": gamma}
    has_edge_labels = graphs.edge_labels is not None or BinEdgeAttributes in view.steps
    options |= {"use_edge_labels": True} if has_edge_labels else {}
    for name in view.structures:
        make, reason = _STRUCTURES[name]
        steps, kernel = [step() for step in view.steps], make(**options)
        yield Candidate(
            ", ".join(filter(None, [name, view.name])),
            make_pipeline(*steps, kernel) if steps else kernel,
            reason="; ".join(filter(None, [reason, view.reason])),
        )


# -------------------------------------------------------------------- widths


def _gamma(view: View, graphs: Graphs) -> float | str | None:
    """Return the gamma that suits the vectors of a view, or None if it has no vectors."""
    if view.gamma is None:
        return None
    try:
        for step in view.steps:
            graphs = step().fit_transform(graphs)
        return view.gamma(np.asarray(graphs.attributes))
    except ValueError:  # vectors are out of range: the kernels report this when they are tried
        return "scale"


def narrow_gamma(vectors: Floats) -> float:
    """Return eight times gamma="scale", or less: see `_reaching`. Vectors in clusters need a narrow kernel."""
    return _reaching(vectors, 8.0 * scaled_gamma(vectors))


def white_gamma(vectors: Floats) -> float:
    """Return 0.2 for whitened vectors, or less: see `_reaching`."""
    return _reaching(vectors, 0.2)


def _reaching(vectors: Floats, gamma: float) -> float:
    """Return gamma, or the value that reaches the nearest twentieth of all pairs if that is smaller.

    With many independent attributes, all pairs are about equally far apart, and a narrow kernel would separate any two nodes.
    """
    rng = np.random.default_rng(seed_of("auto", len(vectors)))
    i, j = rng.integers(max(len(vectors), 1), size=(2, N_PAIRS if len(vectors) else 0))
    distances = ((vectors[i] - vectors[j]) ** 2).sum(axis=1)
    near = np.quantile(distances[distances > 0], 0.05) if distances.any() else 0.0
    return min(gamma, float(1.0 / near)) if near > 0 else gamma
