"""The trees of the ODD kernels and their weights, lam ** size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.params import Allowed, Number, Whole, Words
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.grid import Grid, GridPoint, grid_params
from treegram.kernels.node_pairs import NodeView, WeightedFeatures, view_nodes
from treegram.structure.features import Features
from treegram.structure.trees import COUNTINGS, Phi, tree_contributions, tree_features

__all__ = [
    "TREES",
    "TREE_GRID",
    "count_trees",
    "grid_pass",
    "refuse_overflow",
    "spread_counted_trees",
    "tree_groups",
    "view_trees",
    "weigh",
]

TREES: Mapping[str, Allowed] = {
    "depth": (Whole(0),),
    "lam": (Number(0, above=True),),
    "counting": (Words(*COUNTINGS),),
}
TREE_GRID: Grid = {"depth": [0, 1, 2, 3], "lam": [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]}  # the paper's

# lam ** size stays below 1e260: products of counts then have fifty orders of magnitude left before they overflow.
_LARGEST_EXPONENT = 260 * np.log(10)
SMALLEST_LAM = (
    1e-100  # below, weights are rescaled where the kernel is normalized: kernels of graphs with themselves may be 0
)


def count_trees(kernel: Any, graphs: Graphs, depth: int) -> Phi:
    """Count the trees of each node up to a depth, as the kernel's parameters say."""
    return tree_features(
        graphs,
        depth,
        counting=kernel.counting,
        missing_labels=kernel.missing_labels,
        use_edge_labels=kernel.use_edge_labels,
        n_jobs=kernel.n_jobs,
    )


def spread_counted_trees(kernel: Any, graphs: Graphs, phi: Phi, values: Floats) -> Floats:
    """Divide what each entry of :func:`count_trees` adds among the nodes of its tree."""
    return tree_contributions(
        graphs,
        phi,
        values,
        kernel.depth,
        counting=kernel.counting,
        missing_labels=kernel.missing_labels,
        use_edge_labels=kernel.use_edge_labels,
    )


def tree_groups(kernel: Any, graphs: Graphs, depths: Sequence[int], lams: Sequence[float]) -> list[Features]:
    """Count the trees of each node with their weights, one group for each depth."""
    groups: list[Features] = []
    for depth in depths:
        phi = count_trees(kernel, graphs, depth)
        if not kernel.normalize:
            refuse_overflow(phi.sizes, max(lams), depth)
        if len(lams) == 1:
            groups.append(weigh(phi, lams[0], graphs.graph_ids, rescale=kernel.normalize, in_place=True))
            continue
        sizes, kinds = np.unique(phi.sizes, return_inverse=True)
        groups.append(
            WeightedFeatures(phi.counts, phi.codes, kinds, np.power(np.asarray(lams, np.float64), sizes[:, None]))
        )
    return groups


def weigh(phi: Phi, lam: float, graph_ids: Ints, *, rescale: bool, in_place: bool = False) -> Phi:
    """Multiply counts by lam ** (size / 2), so that inner products of rows carry the weight lam ** size.

    With ``rescale`` and an extreme lam each graph's rows are divided by lam ** (s / 2), where s is the size of its largest tree
    for lam above 1, and of its smallest tree, a single node, for a tiny lam: one factor per graph, which normalization removes,
    so that nothing overflows or vanishes. ``in_place`` changes the counts of phi, which may be long.
    """
    counts = phi.counts if in_place else phi.counts.copy()
    exponents = np.take(phi.sizes, counts.indices)
    if rescale and lam > 1:
        starts = counts.indptr[np.flatnonzero(np.diff(graph_ids, prepend=-1))]  # entries are in the order of graphs
        lengths = np.diff(starts, append=len(exponents))
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        if len(starts):
            exponents -= np.repeat(np.maximum.reduceat(exponents, starts), lengths)
    elif rescale and lam < SMALLEST_LAM:
        exponents -= 1.0
    exponents *= 0.5 * np.log(float(lam))  # in place: these arrays are long
    counts.data *= np.exp(exponents, out=exponents)
    return replace(phi, counts=counts)


def refuse_overflow(sizes: Floats, lam: float, depth: int) -> None:
    """Raise if lam ** size of the largest tree is too large to be summed in double precision."""
    largest = float(sizes.max(initial=0.0))
    if _overflows(largest, lam):
        raise ValueError(
            f"lam ** size overflows: at depth={depth} the largest tree has {largest:.0f} nodes, too many for "
            f"lam={lam:g}. Use a smaller lam (at most {np.exp(_LARGEST_EXPONENT / largest):.4g} here), a smaller "
            "depth, or normalize=True, where the kernel is rescaled exactly."
        )


def grid_pass(one_pass: Callable[[Grid], list[GridPoint]], kernel: Any, graphs: Graphs, grid: Grid) -> list[GridPoint]:
    """Compute a grid of depths and lambdas in one pass, and each lambda that could overflow in one of its own.

    A pass of a single lambda rescales graphs. A tree has at most as many nodes as there are walks of at most its depth from its
    root.
    """
    if not kernel.normalize or len(grid.get("lam", ())) < 2:
        return one_pass(grid)
    largest = _most_walks(graphs, max(grid.get("depth", [kernel.depth])))
    alone = [lam for lam in grid["lam"] if _overflows(largest, lam) or lam < SMALLEST_LAM]
    safe = [lam for lam in grid["lam"] if lam not in alone]
    if not alone:
        return one_pass(grid)
    passes = [{**grid, "lam": lams} for lams in [safe, *([lam] for lam in alone)] if lams]
    found = {tuple(point.params.values()): point for some in passes for point in one_pass(some)}
    return [found[tuple(params.values())] for params in grid_params(grid)]


def _most_walks(graphs: Graphs, depth: int) -> float:
    """Return the largest number of walks of at most ``depth`` steps from a node; infinity for too many."""
    n = graphs.n_nodes
    neighbors = sp.csr_matrix((np.ones(len(graphs.indices)), graphs.indices, graphs.indptr), shape=(n, n))
    walks = total = np.ones(n)
    for _ in range(min(depth, int(graphs.sizes.max(initial=0)))):  # no shortest path is longer
        walks = neighbors @ walks
        total = total + walks
        if not walks.any() or np.isinf(walks).any():
            break
    return float(total.max(initial=0.0))


def _overflows(largest: float, lam: float) -> bool:
    return bool(lam > 1 and largest * np.log(float(lam)) > _LARGEST_EXPONENT)


def view_trees(kernel: Any, graphs: Graphs) -> NodeView:
    """Describe the graphs with the trees and weights of a kernel's own parameters."""
    return view_nodes(kernel, graphs, tree_groups(kernel, graphs, [kernel.depth], [kernel.lam]))
