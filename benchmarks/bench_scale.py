"""Measure a Dask cluster against threads, and a Gram matrix on disk whose writer is killed; SCALE.md has the results.

``python benchmarks/bench_scale.py`` measures both, ``python benchmarks/bench_scale.py zarr`` one of them; each replaces its own
part of the page. Where other work shares the machine, trust the ratios of processor times rather than wall times.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from distributed import Client, LocalCluster

import treegram as tg
from bench_memory import resident
from common import load, machine, table

GIB = 2**30
PAGE = Path(__file__).with_name("SCALE.md")
N_STORED, CHUNK = 20_000, 1024


# -------------------------------------------------------------------- workers and threads


def bench_dask(rounds: int = 5) -> str:
    """Compare two workers with two threads."""
    graphs = load("ENZYMES")
    graphs, kernel = graphs[np.tile(np.arange(len(graphs)), 4)], tg.ODDCL(depth=2, n_jobs=2)
    times = []
    with two_workers() as client:
        for _ in range(rounds + 1):  # both load compiled code in the first
            threads = measured(time.process_time, kernel.fit_transform, graphs)
            with joblib.parallel_config(backend="dask", client=client):
                workers = measured(partial(processor_seconds, client), kernel.fit_transform, graphs)
            assert np.array_equal(threads[2], workers[2])
            times.append((threads[0], workers[0], threads[1], workers[1]))
    best = np.min(times[1:], axis=0)
    rows = [
        ["wall time", f"{best[0]:.2f} s", f"{best[1]:.2f} s", f"**{best[1] / best[0]:.2f}**"],
        ["processor time", f"{best[2]:.2f} s", f"{best[3]:.2f} s", f"**{best[3] / best[2]:.2f}**"],
    ]
    header = ["ENZYMES x 4, 2,400 graphs, ODDCL(depth=2)", "two threads", "two Dask workers", "ratio"]
    return table(f"Dask workers against threads (best of {rounds})", header, rows) + "\nBoth give the same bits.\n"


@contextlib.contextmanager
def two_workers() -> Iterator[Client]:
    """Start two worker processes of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def processor_seconds(client: Client) -> float:
    """Return the processor time of this process, which is client and scheduler, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def measured(clock: Callable[[], float], function: Callable[..., Any], *args: Any) -> tuple[float, float, Any]:
    """Return wall time, another clock's time, and the result of function(*args)."""
    wall, other = time.perf_counter(), clock()
    result = function(*args)
    return time.perf_counter() - wall, clock() - other, result


# -------------------------------------------------------------------- a matrix larger than memory


def bench_zarr() -> str:
    """Write a matrix of 20,000 graphs in a process that is killed in the middle, and finish it in another one."""
    n_spans = ceil(N_STORED / CHUNK)
    total = n_spans * (n_spans + 1) // 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "K.zarr"
        start = time.perf_counter()
        with subprocess.Popen([sys.executable, __file__, "child", str(path)]) as process:
            while len(finished_blocks(path, n_spans)) < total // 3:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        first, killed = time.perf_counter() - start, time.time()
        before = finished_blocks(path, n_spans)
        halves = sum(1 for _ in path.glob("gram/c/*/*")) - sum(1 if i == j else 2 for i, j in before)
        done = subprocess.run(
            [sys.executable, __file__, "child", str(path)], check=True, capture_output=True, text=True
        )
        second, peak, error = map(float, done.stdout.split())
        written = {
            tuple(sorted(map(int, file.parts[-2:])))
            for file in path.glob("gram/c/*/*")
            if file.stat().st_mtime > killed
        }
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    rows = [
        ["blocks, all", total],
        ["finished when it was killed", len(before)],
        ["begun and not finished, with something on disk", halves],
        ["computed after that", f"**{len(written)}** (missing: {total - len(before)})"],
        ["finished ones computed again", f"**{len(written & before)}** (at most 0)"],
        ["peak memory of the process", f"**{peak:.0f} MiB** (at most 1024)"],
        ["store", f"{size / GIB:.2f} GiB"],
        ["seconds before and after the kill, wall", f"{first:.0f} + {second:.0f}"],
        ["largest error, of 300 graphs against fit_transform", f"{error:.1e}"],
    ]
    return table(
        "Zarr: 20,000 generated graphs of 20 nodes, ODDCL(depth=1), two threads, killed at a third", ["", ""], rows
    )


def finished_blocks(path: Path, n_spans: int) -> set[tuple[int, int]]:
    there = {tuple(map(int, file.parts[-2:])) for file in path.glob("gram/c/*/*") if file.name.isdigit()}
    return {(i, j) for j in range(n_spans) for i in range(j + 1) if (i, j) in there and (j, i) in there}


def zarr_child(path: str) -> None:
    graphs = tg.make_motifs(N_STORED, n_nodes=15, n_attributes=1, random_state=0)[0]
    kernel = tg.ODDCL(depth=1)
    start = time.perf_counter()
    K = tg.gram_to_zarr(kernel, graphs, path, chunk=CHUNK, n_jobs=2)
    seconds, peak = time.perf_counter() - start, resident("VmHWM")
    some = np.sort(np.random.default_rng(0).choice(len(graphs), 300, replace=False))
    stored = np.stack([K[int(i)][some] for i in some])
    print(seconds, peak, np.abs(stored - kernel.fit_transform(graphs[some])).max())


# -------------------------------------------------------------------- the page

PARTS = {"dask": bench_dask, "zarr": bench_zarr}


def read_page() -> dict[str, str]:
    """Return the parts of the page by name."""
    text = PAGE.read_text() if PAGE.exists() else ""
    parts = (part.partition(" -->\n") for part in text.split("<!-- part ")[1:])
    return {name: content.strip() for name, _, content in parts}


def main() -> None:
    chosen = sys.argv[1:] or list(PARTS)
    unknown = set(chosen) - set(PARTS)
    if unknown:
        sys.exit(f"Unknown part: {', '.join(sorted(unknown))}. There are: {', '.join(PARTS)}.")
    for name in chosen:
        content = f"{PARTS[name]()}\n`python benchmarks/bench_scale.py {name}`, {machine()}, {cluster_versions()}."
        print(content, flush=True)
        parts = {**read_page(), name: content}
        kept = [f"<!-- part {one} -->\n{parts[one]}\n" for one in parts]
        PAGE.write_text("# Past one machine: measured\n\nBy `make bench-scale`.\n\n" + "\n".join(kept))


def cluster_versions() -> str:
    import distributed
    import zarr

    return f"distributed {distributed.__version__}, zarr {zarr.__version__}, load {os.getloadavg()[0]:.0f}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        zarr_child(sys.argv[2])
    else:
        main()
