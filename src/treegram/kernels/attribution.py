"""Divide the values of fitted kernels among the nodes of graphs, for explanations.

A kernel that can be explained has ``_explained_by`` and ``_raw_contributions``; normalization is the same for all, and done here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treegram._core.types import Floats
from treegram.exceptions import ParameterError
from treegram.graphs import Graphs
from treegram.kernels.registry import KERNELS
from treegram.pairsum.tiles import inverse_roots


def kernel_contributions(kernel: Any, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
    """Return what each node adds to the sums of weights[i, j] K(G, G_i) over the fitted graphs G_i, (n_nodes, n_outputs).

    With ``spread``, what a node adds by the tree around it is divided among the nodes of that tree; a kernel without trees
    attributes it to the node itself.
    """
    _check_explained(kernel)
    spread = spread and kernel._explained_by == "trees"
    if kernel.normalize == "tanimoto":
        return _tanimoto_contributions(kernel, graphs, weights, spread=spread)
    view, weights = kernel._view_graphs(graphs), _divided_weights(kernel, weights)
    return _normalized(kernel, graphs, view, kernel._raw_contributions(graphs, view, weights, spread=spread))


def row_contributions(kernel: Any, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
    """Return what each node adds to the products of its graph's row of features with weights, (n_nodes, n_outputs)."""
    _check_explained(kernel)
    spread, view = spread and kernel._explained_by == "trees", kernel._view_graphs(graphs)
    return _normalized(kernel, graphs, view, kernel._raw_column_contributions(graphs, view, weights, spread=spread))


def column_weights(kernel: Any, weights: Floats) -> Floats:
    """Return the weight of each column of features if the fitted graphs have weights: (n_features, n_outputs)."""
    return kernel._fitted_counts.T @ _divided_weights(kernel, weights)


def _check_explained(kernel: Any) -> None:
    if not kernel._explained_by:
        kernels = (other for other in KERNELS.values() if other._explained_by or hasattr(other, "_column_parts"))
        names = ", ".join(sorted(other.__name__ for other in kernels))
        raise ParameterError(
            f"{type(kernel).__name__} cannot be explained. These kernels can be: {names}, and sums (KernelSum) "
            "and pipelines of these."
        )


def _divided_weights(kernel: Any, weights: Floats) -> Floats:
    """Divide the weights of the fitted graphs by the roots of their kernels with themselves, if the kernel is normalized."""
    if kernel._self_kernels is None:
        return weights
    return weights * inverse_roots(kernel._self_kernels)[:, None]


def _normalized(kernel: Any, graphs: Graphs, view: Any, contributions: Floats) -> Floats:
    if not kernel.normalize:
        return contributions
    return contributions * inverse_roots(kernel._selves(view))[graphs.graph_ids, None]


def _tanimoto_contributions(kernel: Any, graphs: Graphs, weights: Floats, *, spread: bool) -> Floats:
    """Return the same where each pair of graphs has its own divisor: one graph at a time."""
    contributions = [np.empty((0, weights.shape[1]))]
    for graph in graphs:
        view = kernel._view_graphs(graph)
        K = kernel._gram(view, kernel._fitted)[0]
        divisors = kernel._selves(view) + kernel._self_kernels - K
        divided = weights * np.divide(1.0, divisors, out=np.zeros_like(K), where=K != 0)[:, None]
        contributions.append(kernel._raw_contributions(graph, view, divided, spread=spread))
    return np.concatenate(contributions)
