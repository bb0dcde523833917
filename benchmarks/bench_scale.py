"""Measure the automatic classifier on up to a million molecules, a Dask cluster, and a Gram matrix on disk; SCALE.md has the results.

``python benchmarks/bench_scale.py`` measures all parts, ``python benchmarks/bench_scale.py zarr`` one of them; each replaces its own
part of the page. Where other work shares the machine, trust the ratios of processor times rather than wall times.

The parts "molhiv", "forest", "million" and "workers" need a folder ``TREEGRAM_MOLECULES`` with ``HIV.csv``, whose columns are smiles, HIV_active
and split; rows whose split is "test" are never used. Files of molecules that are made from it stay in the folder of temporary files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil, log
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import treegram as tg
from bench_linear import read
from bench_memory import resident
from common import load, machine, table
from treegram.models import linear

GIB = 2**30
PAGE = Path(__file__).with_name("SCALE.md")
N_STORED, CHUNK = 20_000, 1024
MOLHIV = "HIV.csv:smiles:HIV_active"
N_TREES, N_TREES_OF_FOLDS = 500, 100
FILES = Path(tempfile.gettempdir(), "treegram-bench-scale")
N_IN_FILE, N_IN_CHUNK = 100_000, 20_000  # molecules
NEW = 10  # the file with molecules to predict
SIZES, SIZE_OF_WORKERS = (100, 10_000, 100_000, 300_000, 1_000_000), 1_000_000
CLOCK = time.process_time


def child(*arguments: object) -> dict[str, Any]:
    """Return what a function of CHILDREN returns in a process of its own, whose products of matrices have one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "child", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **threads})
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compile_loops(graphs: tg.Graphs, y: np.ndarray) -> None:
    """Fit a small model of the kind that large ones are, and a model on Gram matrices."""
    ids = np.sort(np.concatenate([np.flatnonzero(y == label)[:150] for label in np.unique(y)]))
    switch = linear.SWITCH
    for linear.SWITCH in (0, switch):
        tg.GraphClassifier().fit(graphs[ids], y[ids])


# -------------------------------------------------------------------- molhiv


def bench_molhiv(*names: str) -> str:
    """Compare models on the molecules of molhiv, except for its test part."""
    rows = []
    for name in names:
        result = child("molhiv", name)
        areas = [f"{result[part]:.3f}" for part in ("left_out", "valid")]
        rows.append([MODELS[name], f"{result['seconds']:.0f} s", f"{result['memory'] / 1024:.1f} GiB", *areas])
    header = ["32,896 training molecules", "fit", "peak memory", "AUC, left out", "AUC, validation"]
    note = (
        "Processor seconds of one thread, after reading the molecules and with the rows that a model needs. *Left out*: each training molecule, "
        "predicted from the other two thirds, the same for all models. *Validation*: molecules with other scaffolds; 81 of them "
        "are active, so that the standard error is near 0.03.\n"
    )
    return table(f"OGB's molhiv, without its test part: {', '.join(names)}", header, rows) + "\n" + note


MODELS = {
    "treegram": "`GraphClassifier()`",
    "logistic": "logistic regression on `FeatureMap(WLOA(3))`",
    "forest": f"forest on Morgan counts, {N_TREES} trees, for left-out molecules {N_TREES_OF_FOLDS}",
}


def fit_molhiv(name: str) -> dict[str, Any]:
    graphs, y, is_train = read(MOLHIV)
    assert is_train is not None
    train, valid, classes = graphs[is_train], graphs[~is_train], y[is_train].astype(int)
    compile_loops(train, classes)
    start = CLOCK()
    if name == "treegram":
        model: Any = tg.GraphClassifier().fit(train, classes)
        seconds, left_out, decisions = CLOCK() - start, model.loo_decisions_, model.decision_function(valid)
    else:
        make = partial(make_model, name)
        rows, new = ROWS[name](train, valid)
        model = make(N_TREES).fit(rows, classes)
        seconds, decisions = CLOCK() - start, model.predict_proba(new)[:, 1]
        folds, left_out = linear.fold_of_each(y[is_train]), np.empty(len(classes))
        for fold in range(linear.N_FOLDS):
            of_fold = make(N_TREES_OF_FOLDS).fit(rows[folds != fold], classes[folds != fold])
            left_out[folds == fold] = of_fold.predict_proba(rows[folds == fold])[:, 1]
    areas = {"left_out": roc_auc_score(classes, left_out), "valid": roc_auc_score(y[~is_train], decisions)}
    return {"seconds": seconds, "memory": resident("VmHWM"), **areas}


def make_model(name: str, n_trees: int) -> Any:
    if name == "forest":
        return RandomForestClassifier(n_trees, random_state=0)
    return LogisticRegression(class_weight="balanced", max_iter=1000)


def colors_of(train: tg.Graphs, valid: tg.Graphs) -> tuple[Any, Any]:
    features = tg.FeatureMap(tg.WLOA(3, use_edge_labels=True)).fit(train)
    return features.transform(train), features.transform(valid)


def counts_of(train: tg.Graphs, valid: tg.Graphs) -> tuple[np.ndarray, np.ndarray]:
    from bench_molecules import morgan_counts

    return tuple(morgan_counts(list(graphs.graph_names)).astype(np.float32) for graphs in (train, valid))


ROWS: dict[str, Callable[..., tuple[Any, Any]]] = {"logistic": colors_of, "forest": counts_of}


# -------------------------------------------------------------------- a million molecules


def bench_million() -> str:
    """Fit models on Parquet files, chunk by chunk, in one process."""
    make_files()
    results = [child("million", size, 0) for size in SIZES]
    rows = []
    for size, result in zip(SIZES, results, strict=True):
        reading, seconds, predict = (f"{result[part]:.1f} s" for part in ("reading", "seconds", "predict"))
        first, growth = results[SIZES.index(N_IN_FILE)]["seconds"], ""
        if size > N_IN_FILE:
            growth = f"{log(result['seconds'] / first) / log(size / N_IN_FILE):.2f}"
        columns = f"{result['columns']:,}" if result["columns"] else ""
        rows.append([f"{size:,}", reading, seconds, growth, f"{result['memory'] / 1024:.1f} GiB", columns, predict])
    header = ["molecules", "reading", "fit", "exponent", "peak memory", "columns", f"predict {N_IN_FILE:,}"]
    note = (
        f"Processor seconds of one thread, a process of its own for each number. Chunks of {N_IN_CHUNK:,} come from Parquet files of "
        f"{N_IN_FILE:,}. *Exponent*: of the growth since {N_IN_FILE:,}. Peak memory is the largest resident set, mapped files "
        "included. Molecules are those of molhiv without its test part, drawn at random, with two atoms changed at random: as large as "
        "real ones, and nearly all different.\n"
    )
    return table("`GraphClassifier` on up to a million molecules", header, rows) + "\n" + note


def make_files() -> None:
    """Write the files of molecules that are not there; the last one is for predictions."""
    FILES.mkdir(exist_ok=True)
    missing = [number for number in range(NEW + 1) if not file_path(number).exists()]
    if missing:
        graphs, y, _ = read(MOLHIV)
    for number in missing:
        tg.save_parquet(vary(graphs.assign(graph_names=None), y.astype(int), number), file_path(number))


def file_path(number: int) -> Path:
    return FILES / f"{number}.parquet"


def vary(graphs: tg.Graphs, y: np.ndarray, seed: int) -> tg.Graphs:
    """Draw graphs with repetitions, and give two random nodes of each a random label, but not the most frequent one."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(len(graphs), size=N_IN_FILE)
    drawn, codes = graphs[ids], graphs.labels
    others, labels = codes[codes != np.bincount(codes).argmax()], drawn.labels.copy()
    for _ in range(2):
        labels[drawn.offsets[:-1] + rng.integers(np.diff(drawn.offsets))] = rng.choice(others, size=len(ids))
    names = drawn.label_values
    return drawn.assign(labels=[names[code] for code in labels.tolist()], targets=y[ids])


def fit_million(n_graphs: str, n_workers: str) -> dict[str, Any]:
    size = int(n_graphs)
    paths = [file_path(number) for number in range(ceil(size / N_IN_FILE))]
    new, _ = tg.load_parquet(file_path(NEW))
    compile_loops(*next(tg.iter_parquet(paths[0], 3000)))
    if int(n_workers):
        with two_workers() as client:
            client.run(compile_in_worker, paths[0])
            start, reading = processor_seconds(client), 0.0
            model = tg.GraphClassifier().fit(client.map(tg.load_parquet, paths))
            seconds = processor_seconds(client) - start
            memory = max(client.run(resident, "VmHWM").values())
    else:
        chunks, start = Chunks(paths, min(size, N_IN_CHUNK)), CLOCK()
        model = tg.GraphClassifier().fit(chunks if size >= N_IN_CHUNK else [next(iter(chunks))])
        seconds, reading = CLOCK() - start - chunks.seconds, chunks.seconds
        memory = resident("VmHWM")
    start = CLOCK()
    decisions = model.decision_function(new)
    predict = CLOCK() - start
    np.save(FILES / f"{n_graphs}-{n_workers}.npy", decisions)
    columns = sum(map(len, getattr(model, "coefs_", [])))
    return {"seconds": seconds, "reading": reading, "memory": memory, "columns": columns, "predict": predict}


class Chunks:
    """Chunks of files, and the processor seconds that reading them has taken."""

    def __init__(self, paths: Sequence[Path], chunk_size: int) -> None:
        self.paths, self.chunk_size, self.seconds = paths, chunk_size, 0.0

    def __iter__(self) -> Iterator[tuple[tg.Graphs, np.ndarray]]:
        for path in self.paths:
            start = CLOCK()
            for graphs, y in tg.iter_parquet(path, self.chunk_size):
                self.seconds += CLOCK() - start
                assert y is not None
                yield graphs, y
                start = CLOCK()


# -------------------------------------------------------------------- two workers


def bench_workers() -> str:
    """Compare two workers with one process."""
    make_files()
    one, two = (child("million", SIZE_OF_WORKERS, n_workers) for n_workers in (0, 2))
    first, second = (np.load(FILES / f"{SIZE_OF_WORKERS}-{n_workers}.npy") for n_workers in (0, 2))
    rows = [
        ["processor time, with reading", f"{one['reading'] + one['seconds']:.0f} s", f"{two['seconds']:.0f} s"],
        ["peak memory of a process", *(f"{result['memory'] / 1024:.1f} GiB" for result in (one, two))],
        ["largest difference of a decision", "", f"{np.abs(first - second).max():.1e}"],
    ]
    title = f"`GraphClassifier` on {SIZE_OF_WORKERS:,} molecules, a partition for each {N_IN_FILE:,}"
    return table(title, ["", "one process", "two Dask workers"], rows)


def compile_in_worker(path: Path) -> None:
    compile_loops(*next(tg.iter_parquet(path, 3000)))


# -------------------------------------------------------------------- Gram matrices by workers and by threads


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
        with subprocess.Popen([sys.executable, __file__, "child", "zarr", str(path)]) as process:
            while len(finished_blocks(path, n_spans)) < total // 3:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        first, killed = time.perf_counter() - start, time.time()
        before = finished_blocks(path, n_spans)
        halves = sum(1 for _ in path.glob("gram/c/*/*")) - sum(1 if i == j else 2 for i, j in before)
        done = child("zarr", path)
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
        ["peak memory of the process", f"**{done['memory']:.0f} MiB** (at most 1024)"],
        ["store", f"{size / GIB:.2f} GiB"],
        ["seconds before and after the kill, wall", f"{first:.0f} + {done['seconds']:.0f}"],
        ["largest error, of 300 graphs against fit_transform", f"{done['error']:.1e}"],
    ]
    return table(
        "Zarr: 20,000 generated graphs of 20 nodes, ODDCL(depth=1), two threads, killed at a third", ["", ""], rows
    )


def finished_blocks(path: Path, n_spans: int) -> set[tuple[int, int]]:
    there = {tuple(map(int, file.parts[-2:])) for file in path.glob("gram/c/*/*") if file.name.isdigit()}
    return {(i, j) for j in range(n_spans) for i in range(j + 1) if (i, j) in there and (j, i) in there}


def write_zarr(path: str) -> dict[str, Any]:
    graphs = tg.make_motifs(N_STORED, n_nodes=15, n_attributes=1, random_state=0)[0]
    kernel = tg.ODDCL(depth=1)
    start = time.perf_counter()
    K = tg.gram_to_zarr(kernel, graphs, path, chunk=CHUNK, n_jobs=2)
    seconds, memory = time.perf_counter() - start, resident("VmHWM")
    some = np.sort(np.random.default_rng(0).choice(len(graphs), 300, replace=False))
    stored = np.stack([K[int(i)][some] for i in some])
    error = float(np.abs(stored - kernel.fit_transform(graphs[some])).max())
    return {"seconds": seconds, "memory": memory, "error": error}


# -------------------------------------------------------------------- the page

PARTS: dict[str, Callable[[], str]] = {
    "molhiv": partial(bench_molhiv, "treegram", "logistic"),
    "forest": partial(bench_molhiv, "forest"),  # takes ten times as long as all others
    "million": bench_million,
    "workers": bench_workers,
    "dask": bench_dask,
    "zarr": bench_zarr,
}
CHILDREN: dict[str, Callable[..., dict[str, Any]]] = {"molhiv": fit_molhiv, "million": fit_million, "zarr": write_zarr}


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
        contents = {**read_page(), name: content}
        parts = [f"<!-- part {part} -->\n{contents[part]}\n" for part in PARTS if part in contents]
        PAGE.write_text("\n".join(["# Very many graphs: measured\n\nBy `make bench-scale`.\n", *parts]))


def cluster_versions() -> str:
    import distributed
    import zarr

    return f"distributed {distributed.__version__}, zarr {zarr.__version__}, load {os.getloadavg()[0]:.0f}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(CHILDREN[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
