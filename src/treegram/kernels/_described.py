"""What kernels of colours share: graphs as the engine's nodes, and the sums over pairs of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from treegram._types import Floats
from treegram.attributes import NODE_KERNEL_NAMES, NodeKernel, node_kernel_blocks
from treegram.graphs import Graphs
from treegram.pairsum.nodes import Nodes, Weighting, pair_sums, self_sums
from treegram.structure.features import Features
from treegram.structure.labels import node_hashes

__all__ = ["LABEL_CONSTRAINTS", "NODE_KERNEL_CONSTRAINTS", "Described"]


LABEL_CONSTRAINTS: dict[str, list[Any]] = {
    "missing_labels": [StrOptions({"degree", "constant"})],
    "use_edge_labels": ["boolean"],
    "normalize": ["boolean"],
    "n_jobs": [Integral, None],
}
NODE_KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "gamma": [Interval(Real, 0, None, closed="left"), None],
    "node_kernel": [StrOptions(set(NODE_KERNEL_NAMES)), callable],
}
LONG_ROW = 32  # features per node, from which on it pays to fold those that no other node has


@dataclass(frozen=True)
class Described:
    """Graphs as a kernel with a node kernel sees them."""

    features: Features  # one row per node
    nodes: Nodes  # with the rows of ``features``
    node_kernel: NodeKernel

    @classmethod
    def make(
        cls,
        graphs: Graphs,
        features: Features,
        *,
        node_kernel: str | NodeKernel,
        gamma: float | None,
        missing_labels: str,
    ) -> Self:
        """The features of a kernel in which nodes with different labels share none."""
        n_attributes = graphs.n_attributes
        nodes = Nodes(
            n_graphs=len(graphs),
            graph_ids=graphs.graph_ids,
            blocks=node_hashes(graphs, missing_labels),
            # Without attributes k_A is 1, the Gaussian of equal vectors.
            vectors=np.asarray(graphs.attributes) if n_attributes else np.zeros((graphs.n_nodes, 1)),
            features=features.counts,
        )
        return cls(features, nodes, node_kernel_blocks(node_kernel if n_attributes else "rbf", gamma, n_attributes))

    def pair_sums(self, other: Self | None, *, n_jobs: int | None) -> Floats:
        """The kernel of each graph here with each there; ``other=None``: with themselves."""
        if other is None:
            features = self.features.shared(self.nodes.graph_ids)
            K = _sums(self.nodes, features, None, None, self.node_kernel, n_jobs)
            np.fill_diagonal(K, self.self_sums())
            return K
        common = np.intersect1d(self.features.codes, other.features.codes, assume_unique=True)
        left, right = self.features.aligned(common), other.features.aligned(common)
        return _sums(self.nodes, left, other.nodes, right, other.node_kernel, n_jobs)

    def self_sums(self) -> Floats:
        """The kernel of each graph with itself."""
        counts = self.features.counts
        # Folding rounds (a root is squared again), so short rows of whole numbers are left as they are.
        is_long = counts.nnz > LONG_ROW * counts.shape[0]
        features = self.features.folded(self.nodes.graph_ids) if is_long else counts
        weighting = Weighting.alike(features.shape[1])
        return self_sums(replace(self.nodes, features=features), self.node_kernel, weighting)[0, 0]


def _sums(
    left: Nodes,
    left_features: sp.csr_matrix,
    right: Nodes | None,
    right_features: sp.csr_matrix | None,
    node_kernel: NodeKernel,
    n_jobs: int | None,
) -> Floats:
    weighting = Weighting.alike(left_features.shape[1])
    right = None if right is None else replace(right, features=right_features)
    return pair_sums(replace(left, features=left_features), right, node_kernel, weighting, n_jobs=n_jobs)[0, 0]
