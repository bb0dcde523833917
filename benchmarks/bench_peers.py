"""Compare kernels with those of GraKeL, on ENZYMES, one thread, in one run.

Where GraKeL is too slow for all 600 graphs, it is timed on some of them, and the figure is extrapolated by the number of pairs
that it goes through, of nodes or, for shortest paths, of pairs of nodes; for labeled walks, by the third power of these, as it multiplies
matrices of pairs of nodes; such figures say so. GraKeL's GraphHopper raises an error on isolated nodes, so graphs that have any are left
out for both. GraKeL has no attributed walks and no WWL: the latter is compared with the authors' package, if it is installed
(``pip install --no-deps wwl pot``), by the time of its distances.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import treegram as tg
from common import load, table


def for_grakel(graphs: tg.Graphs, *, attributes: bool) -> list[Any]:
    """Return the input of GraKeL: edges, labels or vectors of the nodes, each graph numbered from 0."""
    from grakel import Graph

    converted = []
    for graph in graphs:
        values = graph.attributes if attributes else graph.degrees if graph.labels is None else graph.labels
        edges = [(a, b) for a, b in np.concatenate([graph.edges(), graph.edges()[:, ::-1]]).tolist()]
        converted.append(
            Graph(edges, node_labels=dict(enumerate(values.tolist())), edge_labels=dict.fromkeys(edges, 1))
        )
    return converted


def rbf(x: Any, y: Any) -> float:
    return float(np.exp(-np.sum((np.asarray(x) - np.asarray(y)) ** 2) / len(x)))


def constant(*_: Any) -> float:
    return 1.0


class Wasserstein:
    """Compute distances with the package of the authors of WWL."""

    @staticmethod
    def convert(graphs: tg.Graphs) -> list[Any]:
        """Return graphs of igraph with labels."""
        import igraph

        converted = [igraph.Graph(n=graph.n_nodes, edges=graph.edges().tolist()) for graph in graphs]
        for graph, own in zip(converted, graphs, strict=True):
            graph.vs["label"] = own.labels.tolist()
        return converted

    def fit_transform(self, graphs: list[Any]) -> Any:
        """Compute the distances, without the messages."""
        from wwl import pairwise_wasserstein_distance

        with contextlib.redirect_stdout(io.StringIO()):
            return pairwise_wasserstein_distance(graphs, num_iterations=3)


def comparisons() -> list[tuple[str, Callable[[], Any], Callable[[], Any], bool, int, int]]:
    """Return name, our kernel, theirs, whether theirs uses vectors, number of graphs, and the exponent of their size in its cost."""
    from grakel import kernels as gk

    return [
        ("WL, 5 iterations", lambda: tg.WL(n_iterations=5), lambda: gk.WeisfeilerLehman(n_iter=5), False, 600, 1),
        (
            "WL optimal assignment, 5 iterations",
            lambda: tg.WLOA(n_iterations=5),
            lambda: gk.WeisfeilerLehmanOptimalAssignment(n_iter=5),
            False,
            600,
            1,
        ),
        ("ODD_ST, depth 3", lambda: tg.ODDST(depth=3), lambda: gk.OddSth(h=4), False, 600, 1),
        (
            "GraphHopper",
            lambda: tg.GraphHopper(),
            lambda: gk.GraphHopper(kernel_type=("gaussian", 1 / 18)),
            True,
            60,
            1,
        ),
        ("SP with attributes", lambda: tg.ShortestPath(), lambda: gk.ShortestPathAttr(metric=rbf), True, 10, 2),
        (
            "CSM, k = 3",
            lambda: tg.CSM(max_size=3),
            lambda: gk.SubgraphMatching(k=3, kv=rbf, ke=constant),
            True,
            24,
            1,
        ),
        (
            "P2K, hash mode (nearest peer)",
            lambda: tg.P2K(mode="hash", n_iterations=4),
            lambda: gk.PropagationAttr(t_max=5),
            True,
            600,
            1,
        ),
        (
            "random walks of all lengths, decay 0.01",
            lambda: tg.RandomWalk(0.01),
            lambda: gk.RandomWalk(lamda=0.01),
            False,
            200,
            1,
        ),
        (
            "walks of 4 steps with labels (its right method, baseline)",
            lambda: tg.RandomWalk(0.01, n_steps=4, use_labels=True),
            lambda: gk.RandomWalkLabeled(lamda=0.01, p=4, method_type="baseline"),
            False,
            6,
            3,
        ),
        (
            "graphlets of up to 5 nodes (all; 100 samples per graph)",
            lambda: tg.Graphlets(5),
            lambda: gk.GraphletSampling(k=5, sampling={"n_samples": 100}, random_state=0),
            False,
            600,
            1,
        ),
        ("WWL, 3 iterations (package wwl, distances alone)", lambda: tg.WWL(3), Wasserstein, False, 100, 1),
    ]


def timed(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def compare(
    graphs: tg.Graphs,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    attributes: bool,
    n_theirs: int,
    power: int,
) -> tuple[float, float]:
    ours().fit_transform(graphs[:10])
    our_time = min(timed(lambda: ours().fit_transform(graphs)) for _ in range(3))
    some = graphs[np.random.default_rng(0).permutation(len(graphs))[:n_theirs]]
    peer = theirs()
    converted = peer.convert(some) if hasattr(peer, "convert") else for_grakel(some, attributes=attributes)
    their_time = timed(lambda: peer.fit_transform(converted))
    return our_time, extrapolated(their_time, graphs, some, power)


def extrapolated(seconds: float, graphs: tg.Graphs, some: tg.Graphs, power: int) -> float:
    """Extrapolate the time of some graphs to all: with the squared number of nodes, or of their power in each graph."""
    work, part = (float((chosen.sizes.astype(float) ** power).sum()) for chosen in (graphs, some))
    return seconds * (work / part) ** 2


def main() -> str:
    try:
        rows = []
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = load("ENZYMES")
            lonely = np.unique(whole.graph_ids[whole.degrees == 0])
            connected = whole[np.setdiff1d(np.arange(len(whole)), lonely)]
            for name, ours, theirs, attributes, n_theirs, power in comparisons():
                if theirs is Wasserstein and find_spec("wwl") is None:
                    rows.append([name, "", "not measured: wwl is not installed", ""])
                    continue
                graphs = connected if name == "GraphHopper" else whole
                mine, peer = compare(graphs, ours, theirs, attributes=attributes, n_theirs=n_theirs, power=power)
                note = "measured" if n_theirs >= len(graphs) else f"extrapolated from {n_theirs} graphs"
                rows.append([name, f"{mine:.3g} s", f"{peer:.3g} s ({note})", f"**{peer / mine:,.0f} x**"])
    except ImportError:
        return "## Against GraKeL\n\nNot measured: GraKeL is not installed.\n"
    return table(
        "Against GraKeL 0.1.11: full ENZYMES, one thread, process time",
        ["kernel", "treegram", "GraKeL", "faster"],
        rows,
    )


if __name__ == "__main__":
    print(main())
