"""The trees of the ODD kernels, and how the size of a tree becomes its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treegram._core.params import Allowed, Number, Whole, Words
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels.axes import GridAxes
from treegram.kernels.grid import Grid
from treegram.kernels.node_sums import NodeView, WeightedFeatures, view_nodes
from treegram.structure.features import Features
from treegram.structure.trees import COUNTINGS, Phi, tree_contributions, tree_features

__all__ = [
    "TREES",
    "TREE_GRID",
    "count_trees",
    "refuse_overflow",
    "separate_overflows",
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


def count_trees(kernel: Any, graphs: Graphs, depth: int) -> Phi:
    """The trees of each node as the kernel's parameters say, up to a depth."""
    return tree_features(
        graphs,
        depth,
        counting=kernel.counting,
        missing_labels=kernel.missing_labels,
        use_edge_labels=kernel.use_edge_labels,
        n_jobs=kernel.n_jobs,
    )


def spread_counted_trees(kernel: Any, graphs: Graphs, phi: Phi, values: Floats) -> Floats:
    """What each entry of :func:`count_trees` adds, shared by the nodes of its tree."""
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
    """The trees of each node with their weights, one group for each depth."""
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
    """Phi with counts times lam ** (size / 2), so that inner products of rows carry the weight lam ** size.

    With ``rescale`` each graph's rows are divided by lam ** (s / 2), where s is the size of its largest tree: one factor
    per graph, which normalization removes, and nothing overflows. ``in_place`` changes the counts of phi, which may be long.
    """
    counts = phi.counts if in_place else phi.counts.copy()
    exponents = np.take(phi.sizes, counts.indices)
    if rescale and lam > 1:
        starts = counts.indptr[np.flatnonzero(np.diff(graph_ids, prepend=-1))]  # entries are in the order of graphs
        lengths = np.diff(starts, append=len(exponents))
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        if len(starts):
            exponents -= np.repeat(np.maximum.reduceat(exponents, starts), lengths)
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


def separate_overflows(kernel: Any, graphs: Graphs, lists: Grid) -> list[dict[str, list[int]]]:
    """One pass for all lambdas that cannot overflow; any other gets one of its own, in which graphs are rescaled.

    A tree has at most as many nodes as there are walks of at most its depth from its root.
    """
    everything = {name: list(range(len(values))) for name, values in lists.items()}
    if not kernel.normalize or len(lists.get("lam", ())) < 2:
        return [everything]
    largest = _most_walks(graphs, max(lists.get("depth", [kernel.depth])))
    alone = [i for i, lam in enumerate(lists["lam"]) if _overflows(largest, lam)]
    safe = [i for i in everything["lam"] if i not in alone]
    return [{**everything, "lam": positions} for positions in [safe, *([i] for i in alone)] if positions]


def _most_walks(graphs: Graphs, depth: int) -> float:
    """The number of walks of at most so many steps from the node that has the most of them; infinity for too many."""
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
    """The graphs with the trees and weights that a kernel's own parameters say."""
    axes = GridAxes.of_points({"depth": [kernel.depth], "lam": [kernel.lam]})
    return view_nodes(kernel, graphs, tree_groups(kernel, graphs, [kernel.depth], [kernel.lam]), axes)
