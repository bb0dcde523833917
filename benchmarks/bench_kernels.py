"""Measure the full Gram matrix of every kernel on every data set: process time on one thread, and peak memory above the inputs.

The paper's second table stands beside it: its times are for its own code on its own machine.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import treegram as tg
from bench_memory import resident
from common import PAPER_SETS, load, table

KERNELS = {
    "ODD_ST": lambda: tg.ODDST(depth=3, lam=1.2),
    "ODDCL_ST": lambda: tg.ODDCL(depth=3, lam=1.2),
    "ODDCL_Approx, RFF 1000": lambda: tg.ODDCLApprox(depth=3, lam=1.2, method="rff", n_components=1000, random_state=0),
    "WL": lambda: tg.WL(n_iterations=5),
    "WL x node kernel": lambda: tg.WLCL(n_iterations=3),
    "GraphHopper": lambda: tg.GraphHopper(),
    "SP": lambda: tg.ShortestPath(),
    "NSPDK": lambda: tg.NSPDK(radius=2, distance=2),
    "CSM, k = 3": lambda: tg.CSM(max_size=3),
    "graphlets of up to 5 nodes": lambda: tg.Graphlets(5),
    "random walks": lambda: tg.RandomWalk(0.001),
    "walks of 4 steps with labels": lambda: tg.RandomWalk(0.01, n_steps=4, use_labels=True),
    "walks of 4 steps with vectors": lambda: tg.AttributedWalk(4),
    "WWL": lambda: tg.WWL(n_iterations=3),
    "WWL, sliced": lambda: tg.WWL(n_iterations=3, method="sliced"),
    "P2K, hash": lambda: tg.P2K(mode="hash", n_iterations=6),
    "P2K, gmm": lambda: tg.P2K(mode="gmm", n_iterations=6),
    "C'_ST, depth 2": lambda: tg.OrderedTrees(depth=2),
    "GIK_WL_LOCAL": lambda: tg.GIK(invariant="wl", scope="local", radius=2, n_levels=2),
    "GIK_WL_GLOBAL": lambda: tg.GIK(invariant="wl", scope="global", radius=2, n_levels=2),
    "GIK_SGK_LOCAL": lambda: tg.GIK(invariant="sgk", scope="local", radius=2, n_levels=3),
    "GIK_SGK_GLOBAL": lambda: tg.GIK(invariant="sgk", scope="global", radius=2, n_levels=3),
    "GIK_NSPDK": lambda: tg.GIK(invariant="nspdk", radius=2, distance=1),
}
CAN_MEASURE = Path("/proc/self/clear_refs").exists()
# ENZYMES, PROTEINS and SYNTHETIC, as printed in the paper.
PAPER = {
    "ODDCL_ST": "35m / 21m / 23m",
    "ODDCL_Approx, RFF 1000": "1.8m / 5.2m / 7.5m",
    "GraphHopper": "12m10s / 2.8h / 12m10s",
    "SP": "3d / 7.7d / 3.4d",
    "CSM, k = 3": "- / out of memory / out of time (k not stated)",
    "P2K, gmm": "6s / 28s / 5s",
    **{name: "48m / 3h49m / 16.3m (mean of GIK)" for name in KERNELS if name.startswith("GIK")},
}


def child(data_set: str) -> None:
    """Measure all kernels on one data set in turn; print a line of JSON for each."""
    graphs = load(data_set)
    for name, make in KERNELS.items():
        print(json.dumps([name, *gram_of(make, graphs)]), flush=True)


def gram_of(make: Callable[[], Any], graphs: tg.Graphs) -> tuple[float, float]:
    """Return the process time of a Gram matrix in seconds, and its peak memory above the inputs in MiB."""
    make().fit_transform(graphs[:10])
    ctypes.CDLL(None).malloc_trim(0)  # return memory that earlier kernels have freed
    Path("/proc/self/clear_refs").write_text("5")
    before, start = resident("VmRSS"), time.process_time()
    K = make().fit_transform(graphs)
    seconds = time.process_time() - start
    assert np.isfinite(K).all()
    return seconds, resident("VmHWM") - before


def main() -> str:
    if not CAN_MEASURE:
        return "## Every kernel on every data set\n\nNot measured: this needs Linux.\n"
    cells: dict[str, list[str]] = {name: [] for name in KERNELS}
    for data_set in PAPER_SETS:
        command = [sys.executable, __file__, data_set]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        oddcl = next(seconds for name, seconds, _ in results if name == "ODDCL_ST")
        for name, seconds, memory in results:
            cells[name].append(f"{seconds:.2f} s ({seconds / oddcl:.2g}), {memory:.0f} MiB")
    rows = [[name, *row, PAPER.get(name, "")] for name, row in cells.items()]
    title = (
        "Every kernel's full Gram matrix, one run (process time on one thread, in parentheses its ratio to that of ODDCL_ST; "
        "peak memory above the inputs)"
    )
    return table(title, ["kernel", *PAPER_SETS, "paper: ENZYMES / PROTEINS / SYNTH"], rows)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        child(sys.argv[1])
    else:
        print(main())
