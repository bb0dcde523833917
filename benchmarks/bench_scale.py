"""Clusters, matrices larger than memory, landmarks, a million graphs: measured, and kept in SCALE.md.

``python benchmarks/bench_scale.py`` measures all, with names such as ``dask zarr`` these parts alone; each replaces its own part of the page.
Wall times are best of some rounds; where other work shares the machine, the ratios of processor times are the ones to trust.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil, log
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import treegram as tg
from bench_memory import resident
from common import load, machine, table
from treegram._core.parallel import send_tasks
from treegram.kernels import gram_store
from treegram.kernels.blocks import GramBlocks

GIB = 2**30
PAGE = Path(__file__).with_name("SCALE.md")


@contextlib.contextmanager
def two_workers(**options: Any) -> Iterator[Client]:
    """Two worker processes of one thread each."""
    given = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None} | options
    with LocalCluster(**given) as cluster, Client(cluster) as client:
        yield client


def processor_seconds(client: Client) -> float:
    """Of this process, which is client and scheduler, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def measured(clock: Callable[[], float], function: Callable[..., Any], *args: Any) -> tuple[float, float, Any]:
    """Wall time, another clock's time, and the result of function(*args)."""
    wall, other = time.perf_counter(), clock()
    result = function(*args)
    return time.perf_counter() - wall, clock() - other, result


# -------------------------------------------------------------------- workers and threads


def bench_dask(rounds: int = 5) -> str:
    """Two workers against two threads, and the bytes that each worker was sent."""
    graphs, kernel = enzymes(4), tg.ODDCL(depth=2, n_jobs=2)  # the client describes the graphs by two threads in both
    packed = len(pickle.dumps(graphs, protocol=5))
    times = []
    with two_workers() as client:
        client.run(received_bytes)
        for _ in range(rounds + 1):  # the first is for starting up: both load compiled code then
            threads = measured(time.process_time, kernel.fit_transform, graphs)
            before = client.run(received_bytes)
            with joblib.parallel_config(backend="dask", client=client):
                workers = measured(partial(processor_seconds, client), kernel.fit_transform, graphs)
            after = client.run(received_bytes)
            assert np.array_equal(threads[2], workers[2])
            sent = max(after[worker] - before[worker] for worker in after)
            times.append((threads[0], workers[0], threads[1], workers[1], sent))
    best = np.min(times[1:], axis=0)
    sent = best[4]
    rows = [
        ["wall time", f"{best[0]:.2f} s", f"{best[1]:.2f} s", f"**{best[1] / best[0]:.2f}**", "1.25"],
        ["processor time", f"{best[2]:.2f} s", f"{best[3]:.2f} s", f"**{best[3] / best[2]:.2f}**", ""],
        [
            "bytes sent to a worker, and of the packed graphs",
            f"{packed / 2**20:.1f} MiB",
            f"{sent / 2**20:.1f} MiB",
            f"**{sent / packed:.2f}**",
            "1.5",
        ],
    ]
    header = ["ENZYMES x 4, 2,400 graphs, ODDCL(depth=2)", "two threads", "two Dask workers", "ratio", "at most"]
    notes = "Both give the same bits. Wall times say little where the load, at the end of the next line, is above 1."
    return table(f"Dask workers against threads (best of {rounds})", header, rows) + f"\n{notes}\n"


def enzymes(times: int) -> tg.Graphs:
    graphs = load("ENZYMES")
    return graphs[np.tile(np.arange(len(graphs)), times)]


def received_bytes() -> int:
    """What the connections of this process have received since they were opened, as Linux counts it."""
    total = 0
    for number in (int(file.name) for file in Path("/proc/self/fd").iterdir()):
        if not Path(f"/proc/self/fd/{number}").is_socket():
            continue
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as connection:
            information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            total += struct.unpack_from("Q", information, 128)[0]
    return total


# -------------------------------------------------------------------- cost model

NETWORK = 1e9  # bytes in a second from one machine to another, assumed


def bench_model() -> str:
    """What blocks, graphs and tasks cost here, and what follows for many workers."""
    motifs = tg.make_motifs(2048, n_nodes=15, n_attributes=1, random_state=0)[0]
    per_task = seconds_per_task()
    costs = {
        "ENZYMES, 33 nodes, 18 attributes, depth 2": measure_costs(enzymes(4)[:2048], tg.ODDCL(depth=2)),
        "generated, 20 nodes, 1 attribute, depth 1": measure_costs(motifs, tg.ODDCL(depth=1)),
    }
    rows = [
        [
            name,
            *(f"{cost[key]:.3g}" for key in ("block", "square")),
            f"{cost['prepare'] * 1e6:.3g}",
            f"{cost['bytes']:.0f}",
        ]
        for name, cost in costs.items()
    ]
    header = [
        "graphs",
        "s per block of 1024 x 1024",
        "s per block on the diagonal",
        "µs per graph, client",
        "bytes per graph",
    ]
    parts = [table("Cost model: measured here", header, rows)]
    parts.append(f"A task costs client and scheduler {per_task * 1e3:.2f} ms. All are processor times of one thread.\n")
    for name, cost in costs.items():
        alone = predict(100_000, 1, cost, per_task)
        rows = [
            [
                workers,
                f"{(seconds := predict(100_000, workers, cost, per_task)):.0f} s",
                f"**{alone / workers / seconds:.0%}**",
                f"{2 * 1024**2 * 8 * workers / cost['block'] / 1e6:.0f} MB/s",
            ]
            for workers in (1, 16, 64, 256)
        ]
        header = ["workers", "predicted time", "efficiency", "written by all"]
        parts.append(table(f"Cost model: 100,000 graphs ({name})", header, rows))
    return "\n".join(parts)


def measure_costs(graphs: tg.Graphs, kernel: Any) -> dict[str, float]:
    """Processor seconds of what gram_to_zarr does, best of three."""
    with tempfile.TemporaryDirectory() as folder:
        best = {"prepare": np.inf, "block": np.inf, "square": np.inf, "unpack": np.inf}
        for i in range(3):
            path = Path(folder) / str(i)
            start = time.process_time()
            record = gram_store._record(kernel, graphs, 1024)
            shared = (
                GramBlocks.prepare(kernel, graphs, 1024),
                gram_store._Store.open(path, record, len(graphs), 1024, np.dtype(float)),
            )
            packed = pickle.dumps(shared, protocol=5)
            times = {"prepare": (time.process_time() - start) / len(graphs)}
            times["unpack"] = measured(time.process_time, pickle.loads, packed)[1] / len(graphs)
            times["square"] = measured(time.process_time, gram_store._write, shared, 0, 0)[1]
            gram_store._write(shared, 1, 1)
            times["block"] = measured(time.process_time, gram_store._write, shared, 0, 1)[1]
            best = {name: min(best[name], times[name]) for name in best}
    return best | {"bytes": len(packed) / len(graphs)}


def seconds_per_task(n_tasks: int = 1000) -> float:
    """Processor seconds of client and scheduler for a task that does nothing."""
    with two_workers() as client, joblib.parallel_config(backend="dask", client=client):
        tasks = [(i,) for i in range(n_tasks)]
        for _ in range(2):  # the first is for starting up
            seconds = measured(time.process_time, lambda: list(send_tasks(max, 0, tasks, n_jobs=None, label=None)))[1]
        return seconds / n_tasks


def predict(n_graphs: int, n_workers: int, cost: dict[str, float], per_task: float) -> float:
    """Seconds of gram_to_zarr on so many workers, as docs/cost_model.md has it."""
    n_spans = ceil(n_graphs / 1024)
    n_blocks = n_spans * (n_spans - 1) // 2
    if n_workers == 1:  # nothing is sent anywhere
        return n_graphs * cost["prepare"] + n_spans * cost["square"] + n_blocks * cost["block"]
    hops = 2 + 2 * log(n_workers, 3)  # to the scheduler, to a first worker, and from each that has them to two others
    start = n_graphs * (cost["prepare"] + cost["unpack"] + hops * cost["bytes"] / NETWORK)
    squares = max(ceil(n_spans / n_workers) * cost["square"], n_spans * per_task)
    return start + squares + max(ceil(n_blocks / n_workers) * cost["block"], n_blocks * per_task)


# -------------------------------------------------------------------- matrices larger than memory

N_STORED, CHUNK = 20_000, 1024


def bench_zarr() -> str:
    """A matrix of 20,000 graphs by a process that is killed in the middle, and by another one that finishes it."""
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


# -------------------------------------------------------------------- landmarks


def bench_landmarks() -> str:
    """Rows from 500 landmarks against the exact matrix: how long they take."""
    vectors = tg.make_motifs(4000, n_nodes=20, n_attributes=2, random_state=0)[0]
    cases = [
        ("4,000 generated, 25 nodes, 2 attributes", vectors, tg.ODDCL(depth=2)),
        ("ENZYMES x 7, 4,200 graphs", enzymes(7), tg.ODDCL(depth=2)),
        ("NCI1, 4,110 molecules", load("NCI1"), tg.WLOA(3)),
    ]
    rows = []
    for name, graphs, kernel in cases:
        some = np.linspace(0, len(graphs) - 1, 500).astype(int)
        functions = (
            kernel.fit_transform,
            tg.Nystroem(kernel, 500).fit_transform,
            kernel.fit,
            lambda _, kernel=kernel, some=some: kernel._columns(some),
        )
        exact, rough, *parts = best_processor_times(graphs, *functions)
        shares = [f"{part / exact:.2f}" for part in (*parts, rough - sum(parts))]
        text = " ".join(repr(kernel).split())
        rows.append([name, text, f"{exact:.2f} s", f"{rough:.2f} s", f"**{rough / exact:.2f}**", *shares])
    header = ["graphs", "kernel", "exact Gram", "rows from 500 landmarks", "ratio", "fit", "500 columns", "rest"]
    notes = (
        "500 of 4,000 columns are 0.23 of the pairs of graphs that the exact one computes, so 0.2 cannot be reached where time "
        "goes by pairs, as with ODDCL. *fit* describes the graphs and has each one's kernel with itself. *500 columns* is one "
        "call for all of them. *rest* is what choosing them in rounds takes more: proposals compared with each other, sides "
        "prepared again, linear algebra."
    )
    title = f"Nystroem: time (processor time, one thread, best of {ROUNDS}; shares of the exact Gram)"
    return table(title, header, rows) + f"\n{notes}\n"


def bench_accuracy() -> str:
    """What models make of the exact matrix, of rows from n/4 landmarks, and of the best matrix of that rank."""
    rows = [row for name in ("DHFR", "PROTEINS", "ENZYMES") for row in accuracies(name)]
    header = ["data set", "matrix", "trace left out", "SVC", "difference", "LinearSVC", "difference"]
    tail = (
        "Differences, in points, are from SVC with the exact matrix. LinearSVC is fitted for each pair of classes, as SVC is, and as "
        "`GraphSVC(solver='landmarks')` does. No matrix of that rank is nearer to the exact one than the best: what is lost there "
        f"is lost to the rank, not to the choice of landmarks. Those were drawn {DRAWS} times: the mean, and the lowest and the highest difference."
    )
    title = "Nystroem: accuracy with n/4 of them (10 folds, 3 times, percent, best C of five)"
    return table(title, header, rows) + f"\n{tail}\n"


ROUNDS = 3


def best_processor_times(graphs: tg.Graphs, *functions: Callable[[tg.Graphs], Any]) -> list[float]:
    times = [[measured(time.process_time, function, graphs)[1] for function in functions] for _ in range(ROUNDS)]
    return [min(column) for column in zip(*times, strict=True)]


def accuracies(name: str) -> Iterator[list[str]]:
    """A row for each matrix, on the same folds, of the best C for each; landmarks are drawn several times."""
    graphs, y = tg.load_tu(name, data_dir=os.environ.get("TREEGRAM_DATA"))
    kernel, rank = make_pipeline(tg.ScaleAttributes(), tg.ODDCL(depth=2)), len(graphs) // 4
    K = kernel.fit_transform(graphs)
    draws = [tg.Nystroem(kernel, rank, random_state=seed).fit_transform(graphs) for seed in range(DRAWS)]
    machines = [SVC(kernel="precomputed", C=C) for C in STRENGTHS]
    linear = [OneVsOneClassifier(LinearSVC(C=C, dual=False, max_iter=10_000)) for C in STRENGTHS]
    exact = best_accuracy(K, y, machines)
    yield [name, f"exact, {len(graphs)} graphs", "0", f"{exact:.1f}", "", "", ""]
    for text, matrices in ((f"{rank} landmarks", draws), (f"best of rank {rank}", [best_rows(K, rank)])):
        left_out = np.mean([1 - np.square(X).sum() / K.trace() for X in matrices])
        by_svc = [best_accuracy(X @ X.T, y, machines) for X in matrices]
        by_linear = [best_accuracy(X, y, linear) for X in matrices]
        yield [name, text, f"{left_out:.2%}", *compared(by_svc, exact), *compared(by_linear, exact)]


def compared(found: list[float], exact: float) -> tuple[str, str]:
    """The mean, and how far it is from the exact one; with the lowest and the highest difference where there are several."""
    spread = f" ({min(found) - exact:+.1f} to {max(found) - exact:+.1f})" if len(found) > 1 else ""
    return f"{np.mean(found):.1f}", f"**{np.mean(found) - exact:+.1f}**{spread}"


def best_accuracy(X: Any, y: Any, machines: list[Any]) -> float:
    return 100 * max(np.mean([cross_val_score(m, X, y, cv=folds) for folds in thrice()]) for m in machines)


def best_rows(K: Any, rank: int) -> Any:
    """Rows of the matrix of this rank that is nearest to K: no choice of landmarks comes nearer."""
    values, vectors = np.linalg.eigh(K)
    return vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0))


STRENGTHS = (0.1, 1, 10, 100, 1000)
DRAWS = 5


def thrice() -> list[StratifiedKFold]:
    return [StratifiedKFold(10, shuffle=True, random_state=seed) for seed in range(3)]


# -------------------------------------------------------------------- a million graphs

STREAM_CHUNK = 10_000


def bench_million(sizes: tuple[int, ...] = (100_000, 1_000_000)) -> str:
    """Graphs in a Parquet file, rows of WL features by two workers, and a linear model, trained once through all."""
    sample = mixed_motifs(STREAM_CHUNK, 0)
    features = tg.FeatureMap(tg.WL(2)).fit(sample)
    new = mixed_motifs(STREAM_CHUNK, 1)
    rows, seconds = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        two_workers(memory_limit="1GiB", local_directory=folder) as client,
    ):
        tg.features_to_shards(features, [sample], Path(folder) / "warm", client=client)
        for n in sizes:
            file, shards = Path(folder) / f"{n}.parquet", Path(folder) / f"{n}.shards"
            tg.save_parquet((mixed_motifs(STREAM_CHUNK, 2 + i) for i in range(n // STREAM_CHUNK)), file)
            model = SGDClassifier(loss="log_loss", random_state=0)
            wall, processor, _ = measured(
                partial(processor_seconds, client), learn, model, features, file, shards, client
            )
            seconds.append((wall, processor))
            peaks = client.run(resident, "VmHWM").values()
            accuracy = np.mean(model.predict(features.transform(new)) == new.targets)
            rows.append(
                [
                    f"{n:,}",
                    f"{wall:.0f} s",
                    f"{processor:.0f} s",
                    f"{max(peaks):.0f} MiB",
                    f"{resident('VmHWM'):.0f} MiB",
                    f"{accuracy:.3f}",
                ]
            )
    ratios = [f"{later / first:.2f}" for first, later in zip(*seconds, strict=True)]
    header = [
        "graphs",
        "wall time",
        "processor time",
        "peak of a worker",
        "peak of the client",
        "accuracy on new graphs",
    ]
    title = "A million graphs of 20 nodes: FeatureMap(WL(2)), SGDClassifier, two workers of at most 1 GiB"
    tail = f"{sizes[-1] / sizes[0]:g} times the graphs take {ratios[0]} x the wall time and **{ratios[1]} x** the processor time."
    return table(title, header, rows) + f"\n{tail}\n"


def learn(model: Any, features: Any, file: Path, shards: Path, client: Client) -> None:
    """All that is measured: graphs are read, rows computed and written by the workers, and the model fitted here."""
    chunks = tg.ParquetChunks(file, chunk_size=STREAM_CHUNK)
    tg.fit_chunks(model, None, tg.features_to_shards(features, chunks, shards, client=client))


def mixed_motifs(n_graphs: int, seed: int) -> tg.Graphs:
    """Graphs of 20 nodes, classes in random order."""
    graphs = tg.make_motifs(n_graphs, n_nodes=15, random_state=seed)[0]
    return graphs[np.random.default_rng(seed).permutation(n_graphs)]


# -------------------------------------------------------------------- the page

PARTS = {
    "dask": bench_dask,
    "model": bench_model,
    "zarr": bench_zarr,
    "landmarks": bench_landmarks,
    "accuracy": bench_accuracy,
    "million": bench_million,
}


def read_page() -> dict[str, str]:
    """The parts of the page as it is, by name."""
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
        kept = [f"<!-- part {one} -->\n{parts[one]}\n" for one in PARTS if one in parts]
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
