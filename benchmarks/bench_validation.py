"""Measure time and memory of all usable kernels on data sets that nothing was tuned on, and of the same kernels in GraKeL.

Each set has a process of its own, so that peaks of memory are its own. GraKeL computes the matrix of some graphs only, drawn at
random; the time of all is extrapolated with the square of the number of pairs of nodes that it goes through (of pairs of nodes of
one graph, for shortest paths), and says so. A kernel that a set cannot have (attributes, labels) is left out there.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import treegram as tg
from bench_kernels import CAN_MEASURE, gram_of
from bench_peers import extrapolated, rbf
from common import load, table

SETS = ("AIDS", "Letter-high", "COIL-RAG", "NCI1", "PROTEINS_full", "Synthie")
KERNELS: dict[str, Callable[[], Any]] = {
    "ODDCL_ST": lambda: tg.ODDCL(depth=3),
    "ODDCL_Approx": lambda: tg.ODDCLApprox(depth=3),
    "ODD_ST": lambda: tg.ODDST(depth=3),
    "WL": lambda: tg.WL(n_iterations=5),
    "WL optimal assignment": lambda: tg.WLOA(n_iterations=5),
    "WL x node kernel": lambda: tg.WLCL(n_iterations=3),
    "GraphHopper": lambda: tg.GraphHopper(),
    "SP": lambda: tg.ShortestPath(),
    "CSM, k = 3": lambda: tg.CSM(max_size=3),
    "P2K, hash": lambda: tg.P2K(mode="hash", n_iterations=6),
    "GIK_WL_LOCAL": lambda: tg.GIK(invariant="wl", scope="local", radius=2, n_levels=2),
}
# Number of graphs for kernels that would take more than a minute; the cost of all follows from the pairs of nodes.
SOME: dict[tuple[str, str], int] = {("NCI1", "SP"): 1000, ("Synthie", "SP"): 100, ("PROTEINS_full", "SP"): 400}
PEER_GRAPHS = {"WL": 1000, "WL optimal assignment": 200, "ODD_ST": 100, "GraphHopper": 24, "SP": 8, "CSM, k = 3": 10}
WITH_ATTRIBUTES = ("GraphHopper", "SP", "CSM, k = 3")
PEER_SECONDS = 25  # processor time after which a peer is left out, with a remark


def child(data_set: str) -> None:
    """Measure all kernels on one data set in turn; print a line of JSON for each."""
    graphs = load(data_set)
    for name, make in KERNELS.items():
        n = SOME.get((data_set, name), len(graphs))
        some = graphs if n == len(graphs) else drawn(graphs, n)
        seconds, memory = gram_of(make, some)
        power = 2 if name == "SP" else 1
        print(json.dumps([name, n, extrapolated(seconds, graphs, some, power), memory]), flush=True)


def peer(data_set: str, name: str) -> None:
    """Measure the kernel of GraKeL on some graphs: number of graphs, and seconds extrapolated to all."""
    import resource

    from bench_peers import for_grakel, timed

    graphs = whole = load(data_set)
    if name in WITH_ATTRIBUTES and not graphs.n_attributes:
        print("GraKeL's needs attributes")
        return
    if name == "GraphHopper":  # GraKeL's raises an error on isolated nodes
        lonely = np.unique(graphs.graph_ids[graphs.degrees == 0])
        graphs = graphs[np.setdiff1d(np.flatnonzero(graphs.sizes > 0), lonely)]
    with_edges = np.setdiff1d(
        np.arange(len(graphs)), np.flatnonzero(np.bincount(graphs.graph_ids, graphs.degrees) == 0)
    )
    some = drawn(graphs[with_edges], min(PEER_GRAPHS[name], len(with_edges)))
    converted = for_grakel(some, attributes=name in WITH_ATTRIBUTES)
    power = 2 if name == "SP" else 1
    limit = math.ceil(time.process_time()) + PEER_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = timed(lambda: peers(graphs.n_attributes)[name]().fit_transform(converted))
    print(json.dumps([len(some), extrapolated(seconds, whole, some, power)]))


def drawn(graphs: tg.Graphs, n: int) -> tg.Graphs:
    return graphs[np.random.default_rng(0).permutation(len(graphs))[:n]]


def peers(n_attributes: int) -> dict[str, Callable[[], Any]]:
    from grakel import kernels as gk

    from bench_peers import constant

    return {
        "WL": lambda: gk.WeisfeilerLehman(n_iter=5),
        "WL optimal assignment": lambda: gk.WeisfeilerLehmanOptimalAssignment(n_iter=5),
        "ODD_ST": lambda: gk.OddSth(h=4),
        "GraphHopper": lambda: gk.GraphHopper(kernel_type=("gaussian", 1 / max(n_attributes, 1))),
        "SP": lambda: gk.ShortestPathAttr(metric=rbf),
        "CSM, k = 3": lambda: gk.SubgraphMatching(k=3, kv=rbf, ke=constant),
    }


def asked_peer(data_set: str, name: str) -> str:
    """Return the table cell for GraKeL: "N x", or why there is no number."""
    if name not in PEER_GRAPHS:
        return ""
    done = subprocess.run([sys.executable, __file__, data_set, name], capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        return f"GraKeL: over {PEER_SECONDS} s for {PEER_GRAPHS[name]} graphs"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["failed"])[-1]
        return f"GraKeL: {last.partition(':')[0]}"
    return done.stdout.strip()


def cell(data_set: str, name: str, n: int, seconds: float, memory: float, n_graphs: int) -> str:
    note = "" if n == n_graphs else f", extrapolated from {n} graphs"
    text = f"{seconds:.2f} s{note}, {memory:.0f} MiB"
    answer = asked_peer(data_set, name)
    if answer.startswith("["):
        n_theirs, theirs = json.loads(answer)
        return f"{text}; GraKeL **{theirs / seconds:,.0f} x** ({n_theirs} graphs)"
    return f"{text}; {answer}" if answer else text


def main() -> str:
    if not CAN_MEASURE:
        return "## Validation sets\n\nNot measured: this needs Linux.\n"
    cells: dict[str, dict[str, str]] = {name: {} for name in KERNELS}
    for data_set in SETS:
        done = subprocess.run([sys.executable, __file__, data_set], capture_output=True, text=True, check=True)
        n_graphs = len(load(data_set))
        for line in done.stdout.splitlines():
            name, n, seconds, memory = json.loads(line)
            cells[name][data_set] = cell(data_set, name, n, seconds, memory, n_graphs)
    rows = [[name, *(row.get(data_set, "") for data_set in SETS)] for name, row in cells.items()]
    title = (
        "Validation sets: every kernel's full Gram matrix (process time on one thread, peak memory above the inputs; how many times "
        "as long GraKeL 0.1.11 takes for the same kernel, extrapolated from as many graphs as stand beside it)"
    )
    return table(title, ["kernel", *SETS], rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        if len(sys.argv) == 3:
            peer(*sys.argv[1:])
        elif len(sys.argv) == 2:
            child(sys.argv[1])
        else:
            print(main())
