"""The family of kernels that sum over pairs of nodes: K(G, G') = sum over v, v' of <phi(v), phi(v')> k_A(x_v, x_v').

A kernel of this family is its phi, the method ``_features``. Everything else is in ``_node_sums`` and ``pairsum.nodes``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from treegram._core.params import parameters
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.kernels.axes import GridAxes
from treegram.kernels.base import GraphKernel
from treegram.kernels.grid import Grid
from treegram.kernels.node_sums import NODE_KERNEL, node_pair_sums, node_self_sums, node_shares, view_nodes
from treegram.pairsum.attributes import NodeKernel
from treegram.structure.features import Features

__all__ = ["NodePairKernel"]


@parameters
class NodePairKernel(GraphKernel):
    """A kernel that is a sum over pairs of nodes: of the products of their features, times a kernel on their vectors."""

    explained_by = "nodes"
    adds_up: ClassVar[bool] = False  # whether a larger value of a one-pass parameter only adds features
    _allowed = NODE_KERNEL

    gamma: float | str | None = None
    node_kernel: str | NodeKernel = "rbf"
    missing_labels: str = "degree"

    @abstractmethod
    def _features(self, graphs: Graphs, grid: Grid) -> Sequence[Features]:
        """phi: one row per node, one group for each value of the first one-pass parameter.

        Nodes with different labels share no feature. With ``adds_up`` the values are ascending, and a group is what its value
        adds to the one before. Weighted features have one weight for each value of the second one-pass parameter.
        """

    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        axes = GridAxes.of_steps(grid) if self.adds_up else GridAxes.of_points(grid)
        return view_nodes(self, graphs, self._features(graphs, axes.steps), axes)

    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        return node_pair_sums(left, right, self.n_jobs)

    def _raw_shares(self, graphs: Graphs, described: Any, weights: Floats, *, spread: bool) -> Floats:
        if spread:
            return self._spread_shares(graphs, described, weights)
        (shares,) = node_shares(described, self._fitted, weights, self.n_jobs)
        return shares

    def _spread_shares(self, graphs: Graphs, described: Any, weights: Floats) -> Floats:
        """The same, shared by the nodes of trees; for kernels with ``explained_by = "trees"``."""
        raise NotImplementedError

    def _self_sums(self, described: Any) -> Floats:
        return node_self_sums(described, self.n_jobs)
