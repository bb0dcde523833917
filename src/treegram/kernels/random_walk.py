"""RandomWalk: walks of any length, or sequences of labels along walks; AttributedWalk: pairs of walks whose nodes are similar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from treegram._core.machine import require
from treegram._core.params import NOTHING, Number, Whole, Words, parameters
from treegram._core.text import counted
from treegram._core.types import Floats, Hashes, Ints
from treegram.exceptions import InvalidGraphError, ParameterError
from treegram.graphs import Graphs
from treegram.kernels.base import GraphKernel
from treegram.kernels.explicit import ExplicitKernel
from treegram.kernels.grid import Grid
from treegram.kernels.node_pairs import node_blocks, vectors_and_kernel
from treegram.pairsum.attributes import Gaussian, NodeKernel
from treegram.pairsum.products import sum_rows
from treegram.pairsum.walks import WalkNodes, walk_contributions, walk_self_sums, walk_sums
from treegram.structure.features import Features, gather, order_by_row
from treegram.structure.hashing import GOLDEN, arc_hashes, edge_name, mix_codes, node_name

MOST_STEPS = 1000  # far beyond what makes a difference: compiled code assumes an entry for each
N_POWERS = 256  # of the adjacency matrix, for a bound on its largest eigenvalue
NEAREST = 0.99  # of decay times the squared eigenvalue: beyond, sums converge slowly
LARGEST_EXPONENT = 600.0  # of the exponential: e^600 is 1e260
MOST_SEQUENCES = 1 << 25  # entries of one number of steps, over all nodes: about 500 MB
ROUNDING = 1e-17


@dataclass(frozen=True)
class WalkFeatures(Features):
    """Sequences of labels, with one walk for each: its first node, its first arc, and the sequence from the second node onward."""

    steps: Ints
    nodes: Ints
    arcs: Ints  # -1 for walks without steps
    rests: Hashes


@parameters
class RandomWalk(ExplicitKernel):
    r"""Random walk kernel: common walks of all lengths, or sequences of labels along walks of at most ``n_steps`` steps.

    Two graphs are similar when their walks are. Without labels, all walks with the same number of steps match:

    .. math:: K(G, G') = \sum_{k=0}^{p} w_k \, (e^T A^k e) (e'^T A'^k e')

    Here :math:`e^T A^k e` is the number of walks of :math:`k` steps, and :math:`w_k` is :math:`\delta^k` ("geometric") or
    :math:`\delta^k / k!` ("exponential"). By default :math:`p = \infty`, and the sum is
    :math:`e_\times^T (I - \delta A \otimes A')^{-1} e_\times` or :math:`e_\times^T \exp(\delta A \otimes A') e_\times`. With labels,

    .. math:: K(G, G') = \sum_{k=0}^{p} w_k \sum_s f_s(G) f_s(G')

    where :math:`f_s(G)` is the number of walks along which the labels of the :math:`k + 1` nodes (and :math:`k` edges) are :math:`s`.

    Parameters
    ----------
    decay : float, default=0.01
        Weight of each step. Walks of all lengths converge only below 1 / (squared largest eigenvalue of a graph): a graph that
        is too dense for ``decay`` raises an error, in ``fit`` and in ``transform``, that says which values are possible.
    n_steps : int or None, default=None
        Largest number of steps. None means all lengths, which is possible only without labels.
    kind : {"geometric", "exponential"}, default="geometric"
        How weights decrease with the number of steps.
    use_labels : bool, default=False
        Whether walks must agree in the labels of their nodes; needs ``n_steps``.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether walks must agree in the labels of their edges; needs ``n_steps``.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib, where pairs of nodes are compared (see Notes); -1 means all. The result has the same bits
        for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    n_attributes_in_ : int
        Dimension of their vectors, which this kernel does not use.

    See Also
    --------
    AttributedWalk : walks with a kernel on the vectors of their nodes.

    Notes
    -----
    Exact up to rounding. The number of walks of k steps takes k products with the adjacency matrix, and a graph is the sequence
    of these numbers, as far as the rest, by the largest eigenvalue, is below rounding. All terms are positive, so nothing cancels,
    and several values of ``decay`` take one pass. The largest eigenvalue :math:`\mu` is bounded by :math:`\|A^{256}\|^{1/256}`,
    and :math:`\delta \mu^2` may be at most 0.99; where edges have a direction, walks follow it, and the bound is the largest
    number of arcs from a node.

    With labels, each node keeps its sequences of labels and their numbers, which takes time and memory linear in the number of
    different sequences of each node. Where these could be too many, as with the degrees of dense graphs, pairs of nodes are
    compared instead, as in :class:`AttributedWalk`; the values are the same, but there are no explicit features. A contribution
    in an explanation is that of the walks that start at a node.

    References
    ----------
    T. Gärtner, P. Flach, S. Wrobel: On graph kernels: hardness results and efficient alternatives. Conference on Learning Theory, 2003.
    S. V. N. Vishwanathan, N. N. Schraudolph, R. Kondor, K. M. Borgwardt: Graph kernels. Journal of Machine Learning Research, 2010.

    Examples
    --------
    >>> from treegram import FeatureMap, Graphs, RandomWalk
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["N", "C", "O"], ["C", "O"]])
    >>> RandomWalk(decay=0.1, normalize=False).fit_transform(graphs).round(3)
    array([[11.042,  6.939],
           [ 6.939,  4.444]])
    >>> sorted(FeatureMap(RandomWalk(n_steps=1, use_labels=True)).fit(graphs).get_feature_names_out())
    ['C', 'C-N', 'C-O', 'N', 'N-C', 'O', 'O-C']
    """

    name = "randomwalk"
    _one_pass = ("decay",)
    _explained_by = "nodes"
    _default_param_grid = {"decay": [0.0001, 0.001, 0.01]}
    _allowed = {
        "decay": (Number(0, above=True),),
        "n_steps": (Whole(0, MOST_STEPS), NOTHING),
        "kind": (Words("geometric", "exponential"),),
    }

    decay: float = field(default=0.01, kw_only=False)
    n_steps: int | None = None
    kind: str = "geometric"
    use_labels: bool = False
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _learn(self, graphs: Graphs, grid: Grid) -> None:  # noqa: ARG002
        self._has_labels = self.use_labels or self.use_edge_labels
        if self._has_labels and self.n_steps is None:
            raise ParameterError("n_steps of RandomWalk must be a number with use_labels or use_edge_labels; got None.")
        self._in_pairs = self._has_labels and _most_sequences(self, graphs) > MOST_SEQUENCES

    def _describe(self, graphs: Graphs, grid: Grid) -> Any:
        if not self._in_pairs:
            return super()._describe(graphs, grid)
        weights = self._weights(np.arange((self.n_steps or 0) + 1), grid["decay"])
        return _describe_walks(self, graphs, np.zeros((graphs.n_nodes, 1)), Gaussian(0.0), weights)

    def _pair_sums(self, left: Any, right: Any | None) -> Floats:
        return walk_sums(left, right, n_jobs=self.n_jobs) if self._in_pairs else super()._pair_sums(left, right)

    def _self_sums(self, nodes: Any) -> Floats:
        return walk_self_sums(nodes, n_jobs=self.n_jobs) if self._in_pairs else super()._self_sums(nodes)

    def _raw_contributions(self, graphs: Graphs, nodes: Any, weights: Floats, *, spread: bool) -> Floats:
        if self._in_pairs:
            return walk_contributions(nodes, self._fitted, weights, n_jobs=self.n_jobs)
        return super()._raw_contributions(graphs, nodes, weights, spread=spread)

    def _feature_rows(self, graphs: Graphs) -> sp.csr_matrix:
        if self._in_pairs:
            raise ParameterError("RandomWalk has too many sequences of labels to list; use a smaller n_steps.")
        return super()._feature_rows(graphs)

    def _features(self, graphs: Graphs, grid: Grid) -> list[WalkFeatures]:
        return self._weighted(graphs, grid["decay"], by_node=False)

    def _node_features(self, graphs: Graphs) -> WalkFeatures:
        return self._weighted(graphs, [self.decay], by_node=True)[0]

    def _weighted(self, graphs: Graphs, decays: Sequence[float], *, by_node: bool) -> list[WalkFeatures]:
        if self._has_labels:
            scale, sequences = 1.0, _label_sequences(self, graphs, self.n_steps or 0, by_node=by_node)
        else:
            scale, n_steps = self._extent(graphs, max(decays))
            sequences = _numbers_of_walks(graphs, n_steps, scale, by_node=by_node)
        weighted = []
        for weights in np.sqrt(self._weights(sequences.steps, decays, scale)):
            counts = sequences.counts.copy()
            counts.data *= weights[counts.indices]
            weighted.append(replace(sequences, counts=counts))
        return weighted

    def _weights(self, steps: Ints, decays: Sequence[float], scale: float = 1.0) -> Floats:
        """Return the weights of walks by their steps, for each decay, if numbers of walks are divided by scale ** steps."""
        logs = steps * np.log(np.array(decays, float) * scale**2)[:, None]
        return np.exp(logs - gammaln(steps + 1.0) if self.kind == "exponential" else logs)

    def _extent(self, graphs: Graphs, decay: float) -> tuple[float, int]:
        """Return a bound on all eigenvalues, and the number of steps after which the rest is below rounding; raise if it never is.

        With r = decay mu^2 < 1, walks of more than k steps sum to at most n n' r^(k / 2) / (1 - sqrt(r)) of a kernel of at least n n',
        whatever the other graph.
        """
        radii = _spectral_radii(graphs)
        radius = float(radii.max(initial=0.0)) or 1.0
        if self.n_steps is not None:
            return radius, self.n_steps
        limit = NEAREST if self.kind == "geometric" else LARGEST_EXPONENT
        if decay * radius**2 > limit:
            raise InvalidGraphError(
                f"Graph {radii.argmax()}: its walks of all lengths do not converge. Its largest eigenvalue is {radius:.4g}, so that decay of "
                f"RandomWalk must be at most {limit / radius**2:.3g}; got {decay:.3g}. Use a smaller decay, or limit n_steps."
            )
        root = np.sqrt(decay) * radius
        if self.kind == "geometric":
            return radius, 1 + int(np.log(ROUNDING * (1 - root)) / np.log(root))
        return radius, 60 + int(3 * np.sqrt(LARGEST_EXPONENT) * root)  # (e t / k)^k for t = sqrt(600) root

    def _name_feature(self, graphs: Graphs, features: Any, column: int) -> str:
        if not self._has_labels:
            return f"walks of {counted(int(features.steps[column]), 'step')}"
        node = int(features.nodes[column])
        name = node_name(graphs, node, self.missing_labels) if self.use_labels else "*"
        if not features.steps[column]:
            return name
        bond = f"{edge_name(graphs, int(features.arcs[column]))}:" if self.use_edge_labels else ""
        rest = int(np.searchsorted(features.codes, features.rests[column]))
        return f"{name}-{bond}{self._name_feature(graphs, features, rest)}"


@parameters
class AttributedWalk(GraphKernel):
    r"""Random walk kernel with a kernel on the nodes of the walks: attributed, or marginalized, walks of at most ``n_steps`` steps.

    Two walks are similar when they have the same number of steps and their nodes are similar, one by one:

    .. math::

        K(G, G') = \sum_{k=0}^{p} \delta^k \sum_{(v_0, \ldots, v_k) \in G} \; \sum_{(v'_0, \ldots, v'_k) \in G'} \;
                   \prod_{i=0}^{k} k(v_i, v'_i)

    The sums run over all walks of :math:`k` steps, :math:`p` is ``n_steps`` and :math:`\delta` is ``decay``. :math:`k(v, v')` is
    ``node_kernel`` of the two vectors, by default :math:`\exp(-\gamma \|x_v - x_{v'}\|^2)`, and 0 for different labels if
    ``use_labels``.

    Parameters
    ----------
    n_steps : int, default=3
        Largest number of steps. At 0 only nodes are compared.
    decay : float, default=0.1
        Weight of each step: walks of k steps count ``decay ** k``.
    gamma : float, {"scale", "narrow", "white"} or None, default=None
        How fast the node kernel decreases with the squared distance between two vectors: the larger, the narrower. None means
        1 / (number of attributes). A word is a rule for the vectors of the fitted nodes: "scale" means 1 / (number of attributes *
        mean variance of an attribute), which suits attributes of any range; "narrow" means eight times that, which suits scaled
        vectors in clusters, and "white" 0.2, which suits whitened vectors; both at most 1 / (squared distance of the nearest
        twentieth of all pairs). Other named kernels that have a gamma use it too.
    node_kernel : str or callable, default="rbf"
        Kernel of two vectors: a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two blocks
        of rows, shapes (n, d) and (m, d), that returns an (n, m) array. It must be positive semidefinite.
    use_labels : bool, default=True
        Whether only nodes with equal labels match.
    missing_labels : {"degree", "constant"}, default="degree"
        Labels for graphs that have none, if ``use_labels``: the degree of each node, or the same label for all nodes.
    use_edge_labels : bool, default=False
        Whether only edges with equal labels match.
    normalize : bool or "tanimoto", default=True
        Whether to divide by :math:`\sqrt{K(G, G) K(G', G')}` (True), by :math:`K(G, G) + K(G', G') - K(G, G')`
        ("tanimoto", which keeps sizes visible), or not at all (False).
    n_jobs : int or None, default=None
        Number of threads, as in joblib; -1 means all. The result has the same bits for any number.

    Attributes
    ----------
    graphs_ : Graphs
        The fitted graphs.
    gamma_ : float
        The value that was learned for a word; absent for any other ``gamma``.
    n_attributes_in_ : int
        Dimension of their vectors.

    See Also
    --------
    RandomWalk : walks without vectors, of any length.
    ShortestPath : shortest paths instead of walks.

    Notes
    -----
    Exact. With :math:`\kappa` the matrix of :math:`k(v, v')`, :math:`y_0 = \kappa` and :math:`y_{k+1} = \kappa \circ (A y_k A'^T)`,
    the sum over walks of k steps is that of the entries of :math:`y_k`. All numbers of steps and all values of ``decay`` come
    from one pass, which takes :math:`O(p \, (m n' + n m'))` for graphs with n and n' nodes and m and m' edges. Where edges have a
    direction, walks follow it. A contribution in an explanation is that of the walks that start at a node.

    References
    ----------
    H. Kashima, K. Tsuda, A. Inokuchi: Marginalized kernels between labeled graphs. International Conference on Machine Learning, 2003.
    T. Gärtner, P. Flach, S. Wrobel: On graph kernels: hardness results and efficient alternatives. Conference on Learning Theory, 2003.

    Examples
    --------
    >>> from treegram import AttributedWalk, Graphs
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], attributes=[[[0.0], [1.0]], [[0.0], [1.0], [0.0]]])
    >>> AttributedWalk(1, decay=1.0, use_labels=False, normalize=False).fit_transform(graphs).round(3)
    array([[ 5.006,  8.645],
           [ 8.645, 15.554]])
    """

    name = "attributedwalk"
    _explained_by = "nodes"
    _one_pass = ("n_steps", "decay")
    _default_param_grid = {"n_steps": [1, 2, 3, 4], "decay": [0.01, 0.1, 1.0]}
    _allowed = {"n_steps": (Whole(0, MOST_STEPS),), "decay": (Number(0, above=True),)}

    n_steps: int = field(default=3, kw_only=False)
    decay: float = 0.1
    gamma: float | str | None = None
    node_kernel: str | NodeKernel = "rbf"
    use_labels: bool = True
    missing_labels: str = "degree"
    use_edge_labels: bool = False

    def _describe(self, graphs: Graphs, grid: Grid) -> WalkNodes:
        every = np.arange(max(grid["n_steps"]) + 1)
        weights = [np.where(every <= n, float(decay) ** every, 0.0) for n in grid["n_steps"] for decay in grid["decay"]]
        return _describe_walks(self, graphs, *vectors_and_kernel(self, graphs), np.array(weights))

    def _pair_sums(self, left: WalkNodes, right: WalkNodes | None) -> Floats:
        return walk_sums(left, right, n_jobs=self.n_jobs)

    def _self_sums(self, nodes: WalkNodes) -> Floats:
        return walk_self_sums(nodes, n_jobs=self.n_jobs)

    def _raw_contributions(self, graphs: Graphs, nodes: WalkNodes, weights: Floats, *, spread: bool) -> Floats:  # noqa: ARG002
        return walk_contributions(nodes, self._fitted, weights, n_jobs=self.n_jobs)


def _describe_walks(
    kernel: Any, graphs: Graphs, vectors: Floats, node_kernel: NodeKernel, weights: Floats
) -> WalkNodes:
    """Return the graphs in the form that sums over walks need, as the kernel's parameters for labels specify."""
    blocks, arc_codes = node_blocks(kernel, graphs), arc_hashes(graphs, use_edge_labels=kernel.use_edge_labels)
    return WalkNodes(graphs.offsets, blocks, vectors, graphs.indptr, graphs.indices, arc_codes, node_kernel, weights)


# -------------------------------------------------------------------- without labels


def _spectral_radii(graphs: Graphs) -> Floats:
    """Return upper bounds on the largest eigenvalues: |A^k|^(1 / k); with directions, where walks may grow faster, |A|."""
    step, sizes = graphs._adjacency(), graphs.sizes
    starts, walks, logs = graphs.offsets[:-1][sizes > 0], np.ones(graphs.n_nodes), np.zeros((sizes > 0).sum())
    n_powers = 1 if graphs.directed else N_POWERS
    for _ in range(n_powers if graphs.n_nodes else 0):
        walks = step @ walks
        peaks = np.maximum.reduceat(walks, starts)
        with np.errstate(divide="ignore"):
            logs += np.log(peaks)
        walks /= np.repeat(np.where(peaks > 0, peaks, 1.0), sizes[sizes > 0])
    radii = np.zeros(len(graphs))
    radii[sizes > 0] = np.exp(logs / n_powers)
    return radii


def _numbers_of_walks(graphs: Graphs, n_steps: int, scale: float, *, by_node: bool) -> WalkFeatures:
    """Count the walks of each number of steps, divided by scale ** steps: one row per graph, or per first node."""
    n, walks = graphs.n_nodes, np.ones(graphs.n_nodes)
    rows = np.arange(n + 1) if by_node else graphs.offsets
    require(24.0 * len(rows) * (n_steps + 1), f"Numbers of walks of up to {n_steps} steps")
    step, add = graphs._adjacency() / scale, sp.csr_matrix((walks, np.arange(n), rows), shape=(len(rows) - 1, n))
    counts, steps = np.empty((len(rows) - 1, n_steps + 1)), np.arange(n_steps + 1)
    for k in steps:
        counts[:, k] = add @ walks
        walks = step @ walks
    codes, nothing = steps.astype(np.uint64), np.zeros_like(steps)
    return WalkFeatures(sp.csr_matrix(counts), codes, steps, nothing, nothing, codes)


# -------------------------------------------------------------------- sequences of labels


def _hashes(kernel: RandomWalk, graphs: Graphs) -> tuple[Hashes, Hashes]:
    return node_blocks(kernel, graphs), arc_hashes(graphs, use_edge_labels=kernel.use_edge_labels)


def _most_sequences(kernel: RandomWalk, graphs: Graphs) -> float:
    """Return a bound on the number of sequences of the longest walks, over all nodes: their walks, or all that labels allow."""
    n_labels = float(np.prod([len(np.unique(hashes)) for hashes in _hashes(kernel, graphs)]))
    step, most, limit = graphs._adjacency(), np.ones(graphs.n_nodes), 1.0
    for _ in range(kernel.n_steps or 0):
        limit = min(limit * n_labels, 1e300)
        most = np.minimum(step @ most, limit)
    return float(most.sum())


def _label_sequences(kernel: RandomWalk, graphs: Graphs, n_steps: int, *, by_node: bool) -> WalkFeatures:
    """Count the walks with each sequence of labels: one row per graph, or per first node."""
    n, (labels, bonds) = graphs.n_nodes, _hashes(kernel, graphs)
    sources = np.repeat(np.arange(n), np.diff(graphs.indptr))
    matrices = {}  # of the arcs with each label, by one of these arcs
    for example in np.unique(bonds, return_index=True)[1]:
        is_same = bonds == bonds[example]
        ends = (sources[is_same], graphs.indices[is_same])
        matrices[example] = sp.csr_matrix((np.ones(len(ends[0])), ends), shape=(n, n))
    level, nodes = gather(np.arange(n + 1), labels, np.ones(n))
    arcs, rests, levels = np.full(len(nodes), -1), np.zeros(len(nodes), np.uint64), []
    for k in range(n_steps + 1):
        if k:
            longer = [matrix @ level.counts for matrix in matrices.values()]
            longer = sp.vstack(longer or [level.counts[:0]], format="csr")
            n_walks = np.diff(longer.indptr)
            starts = np.repeat(np.tile(np.arange(n), len(matrices)), n_walks)
            arcs = np.repeat(np.repeat(np.array([*matrices], np.int64), n), n_walks)
            rests = level.codes[longer.indices]
            codes = mix_codes(mix_codes(rests + bonds[arcs] * GOLDEN) + labels[starts] * GOLDEN)
            order, stops = order_by_row(starts, n)
            level, examples = gather(np.append(0, stops), codes[order], longer.data[order])
            nodes, arcs, rests = (column[order[examples]] for column in (starts, arcs, rests))
        counts = level.counts if by_node else sum_rows(level.counts, graphs.offsets)
        levels.append((counts, level.codes, np.full(len(nodes), k), nodes, arcs, rests))
    all_counts, *columns = zip(*levels, strict=True)
    codes, *fields = map(np.concatenate, columns)
    order = np.argsort(codes)
    counts = sp.hstack(all_counts, format="csr")[:, order]
    counts.sort_indices()
    return WalkFeatures(counts, codes[order], *(column[order] for column in fields))
