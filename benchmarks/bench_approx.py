"""Measure approximate and explicit ODDCL: errors, accuracy and memory against the exact kernel, and a stream of 100,000 graphs.

Figures that must reach something stand beside their target.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifierCV, SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import treegram as tg
from bench_memory import resident
from common import PAPER_SETS, best_of, load, table
from treegram import ODDCL, FeatureMap, ODDCLApprox

DEPTHS, LAMS = [0, 1, 2, 3], [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]
COMPONENTS = {"SYNTHETICnew": 64, "PROTEINS": 61}  # 512 elsewhere
ERROR_TARGETS = {"SYNTHETICnew": "at most 1e-6", "PROTEINS": "exact: rounding alone", "BZR": "at most 1e-2"}
NESTED = """The search above is coarse, so that it ends within minutes. Accuracies under the paper's own protocol (nested 10-fold x 10, its
whole grid), to which the target applies in the first place, are in results/paper.md.
"""
LINEAR_SETS = ("PROTEINS", "SYNTHETICnew", "DHFR")
REPEATS = 3
CHUNK = 1000
EXACT_SIZES = (1000, 2000, 4000)


def relative(K: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(K - exact) / np.linalg.norm(exact))


# -------------------------------------------------------------------- errors of the Gram matrix


def measure_errors(name: str) -> list[object]:
    graphs = load(name)
    n_components = COMPONENTS.get(name, 512)
    exact = tg.ODDCL(depth=3).fit_transform(graphs)
    errors, kernels = {}, {}
    for method in ("nystroem", "rff"):
        kernels[method] = kernel = ODDCLApprox(depth=3, method=method, n_components=n_components, random_state=0)
        errors[method] = relative(kernel.fit_transform(graphs), exact)
    return [
        name,
        n_components,
        f"**{errors['nystroem']:.1e}** ({kernels['nystroem'].map_.n_components})",
        ERROR_TARGETS.get(name, "none"),
        f"{errors['rff']:.1e}",
        f"{errors['rff'] / errors['nystroem']:.3g}",
    ]


# -------------------------------------------------------------------- accuracy


def folds(y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for repeat in range(REPEATS):
        yield from StratifiedKFold(10, shuffle=True, random_state=repeat).split(y, y)


def svm_score(grid: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    """Return the accuracy on the test fold of the matrix and C that are best in 3-fold cross-validation on the training part."""
    inner = list(StratifiedKFold(3, shuffle=True, random_state=0).split(train, y[train]))
    costs = (1, 10, 100) if len(y) > 1000 else (1, 10, 100, 1000)  # the SVM takes minutes for PROTEINS and C = 1000
    scores = {
        (k, C): np.mean([_fit_score(K, y, train[a], train[b], C) for a, b in inner])
        for (k, K), C in product(enumerate(grid), costs)
    }
    k, C = max(scores, key=scores.get)
    return _fit_score(grid[k], y, train, test, C)


def _fit_score(K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float) -> float:
    model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
    return model.score(K[np.ix_(test, train)], y[test])


def measure_accuracy(name: str) -> list[object]:
    graphs = load(name)
    y = graphs.targets
    grids = [
        [K for _, K in kernel.gram_grid(graphs, {"depth": [1, 3], "lam": [0.5, 1.2]})]
        for kernel in (
            tg.ODDCL(),
            ODDCLApprox(lam=1.2, random_state=0),
            ODDCLApprox(lam=1.2, method="rff", n_components=1000, random_state=0),
        )
    ]
    exact, nystroem, rff = (100 * np.mean([svm_score(grid, y, *fold) for fold in folds(y)]) for grid in grids)
    target = "none: reported" if name == "ENZYMES" else "within 0.5"
    return [
        name,
        f"{exact:.2f}",
        f"{nystroem:.2f}",
        f"**{nystroem - exact:+.2f}**",
        target,
        f"{rff:.2f}",
        f"{rff - exact:+.2f}",
    ]


def measure_linear(name: str) -> list[object]:
    graphs = load(name)
    y = graphs.targets
    features = FeatureMap(ODDCL(3), random_state=0)
    Z, K = features.fit_transform(graphs), tg.ODDCL(depth=3).fit_transform(graphs)

    def ridge_score(train: np.ndarray, test: np.ndarray) -> float:
        model = make_pipeline(StandardScaler(with_std=False), RidgeClassifierCV(10.0 ** np.arange(-6, 3)))
        return model.fit(Z[train], y[train]).score(Z[test], y[test])

    def svm_scorer(gram: np.ndarray) -> Callable[..., float]:
        return lambda train, test: svm_score(gram[None], y, train, test)

    # The same SVM on the hashed rows shows the cost of hashing; ridge is also another model.
    exact, same, linear = (
        100 * np.mean([score(*fold) for fold in folds(y)])
        for score in (svm_scorer(K), svm_scorer(Z @ Z.T), ridge_score)
    )
    error = f"{relative(Z @ Z.T, K):.1e}"
    differences = (f"**{score - exact:+.2f}**" for score in (same, linear))
    scores = (f"{score:.2f}" for score in (exact, same, linear))
    return [name, features.map_.n_components, error, *scores, *differences, "within 1"]


# -------------------------------------------------------------------- memory


def run_gram(name: str, what: str) -> float:
    graphs = load(name)
    run: Callable[[tg.Graphs], object] = {
        "nystroem": lambda g: ODDCLApprox(depth=3, random_state=0).fit_transform(g),
        "rff": lambda g: ODDCLApprox(depth=3, method="rff", n_components=1000, random_state=0).fit_transform(g),
        "grid": lambda g: ODDCLApprox(depth=3, random_state=0).gram_grid(g, {"depth": DEPTHS, "lam": LAMS}),
    }[what]
    run(graphs[:10])
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = resident("VmRSS")
    run(graphs)
    return resident("VmHWM") - before


# -------------------------------------------------------------------- a stream of generated graphs


def make_chunk(seed: int, n_graphs: int = CHUNK) -> tg.Graphs:
    """Generate graphs of 20 to 40 nodes: a tree of short branches, some rings, 5 labels, 3 attributes; rings and vectors differ by class."""
    random = np.random.default_rng(seed)
    y = random.integers(2, size=n_graphs)
    sizes = random.integers(20, 41, size=n_graphs)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    nodes = np.arange(offsets[-1])
    places, classes = nodes - np.repeat(offsets[:-1], sizes), np.repeat(y, sizes)
    back = np.minimum(random.integers(1, 4, size=len(nodes)), places)
    closes = (places >= 5) & (random.random(len(nodes)) < np.where(classes == 1, 0.2, 0.1))
    labels = np.searchsorted([0.6, 0.75, 0.87, 0.95], random.random(len(nodes)))
    attributes = random.standard_normal((len(nodes), 3))
    attributes[:, 0] += 0.5 * classes * (labels == 1)
    edges = np.concatenate([np.stack([nodes, nodes - back], 1)[places > 0], np.stack([nodes, nodes - 5], 1)[closes]])
    return tg.Graphs.from_arrays(offsets, edges, labels=labels, attributes=attributes, targets=y)


def run_stream(n_graphs: int) -> tuple[float, float, float, float]:
    """Return process times of the map and of the rest of training, peak memory, and accuracy on new graphs."""
    run = train(2 * CHUNK)
    run.predict(np.zeros((1, 4096)))
    Path("/proc/self/clear_refs").write_text("5")
    before, start = resident("VmRSS"), time.process_time()
    features = make_features().fit(make_chunk(0))
    fitted = time.process_time()
    model = fit_stream(features, n_graphs)
    end, peak = time.process_time(), resident("VmHWM") - before
    new = make_chunk(10**6)
    return fitted - start, end - fitted, peak, model.score(features.transform(new), new.targets)


def make_features() -> FeatureMap:
    return FeatureMap(ODDCL(3, n_jobs=1), random_state=0)


def fit_stream(features: FeatureMap, n_graphs: int) -> SGDClassifier:
    """Train a linear model on chunks, one after the other."""
    model = SGDClassifier(average=True, random_state=0)
    for i in range(n_graphs // CHUNK):
        chunk = make_chunk(i)
        rows = features.transform(chunk)
        model.partial_fit(rows, chunk.targets, classes=[0, 1])
    return model


def train(n_graphs: int) -> SGDClassifier:
    return fit_stream(make_features().fit(make_chunk(0)), n_graphs)


def measure_exact(n_graphs: int) -> float:
    graphs = tg.Graphs.concatenate([make_chunk(i) for i in range(n_graphs // CHUNK)])
    [seconds] = best_of(lambda: tg.ODDCL(depth=3, n_jobs=1).fit_transform(graphs), rounds=2)
    return seconds


def measure_stream() -> list[str]:
    tg.ODDCL(depth=3, n_jobs=1).fit_transform(make_chunk(0, 10))
    exact = {n: measure_exact(n) for n in EXACT_SIZES}
    few, many = (child("stream", str(n)) for n in (10_000, 100_000))
    return [stream_table(few, many), against_table(exact, sum(many[:2]))]


def stream_table(few: list[float], many: list[float]) -> str:
    """Report how time and memory grow; the map is always fitted on the first chunk, so the rest is also counted separately."""
    rows = [
        ["10,000", *(f"{t:.1f} s" for t in (*few[:2], sum(few[:2]))), "1", "1", f"{few[2]:.0f} MiB", f"{few[3]:.3f}"],
        [
            "100,000",
            *(f"{t:.1f} s" for t in (*many[:2], sum(many[:2]))),
            f"**{sum(many[:2]) / sum(few[:2]):.1f}**",
            f"**{many[1] / few[1]:.1f}**",
            f"**{many[2]:.0f} MiB**",
            f"{many[3]:.3f}",
        ],
        ["target", "", "", "", "at most 11", "at most 11", "at most 2048 MiB", ""],
    ]
    return table(
        "A stream of generated graphs, 30 nodes each: features and linear model, end to end (process time, one thread)",
        [
            "graphs",
            "map",
            "the rest",
            "time",
            "time / 10,000's",
            "the rest / 10,000's",
            "peak above the start",
            "accuracy",
        ],
        rows,
    )


def against_table(exact: dict[int, float], stream: float) -> str:
    """Compare the stream of 100,000 graphs with their exact Gram matrix, whose cost is extrapolated."""
    largest = max(exact)
    growth = np.log2(exact[largest] / exact[largest // 2])
    rows = []
    for label, power, target in (
        ("with the square of the number of graphs", 2, "at most 0.02"),
        (f"with the last measured exponent, {growth:.2f}", growth, ""),
    ):
        whole = exact[largest] * (100_000 / largest) ** power
        times = (f"{t:.1f} s" for t in (*exact.values(), whole, stream))
        rows.append([label, *times, f"**{stream / whole:.4f}**", target])
    sizes = (f"{n:,}" for n in exact)
    return table(
        "Against the exact Gram matrix alone, its time at 100,000 graphs extrapolated (process time, one thread)",
        ["exact Gram", *sizes, "100,000 (extrapolated)", "stream, 100,000", "ratio", "target"],
        rows,
    )


# -------------------------------------------------------------------- report


def child(*arguments: str) -> list[float]:
    """Return what this file prints in a separate process."""
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def measure_memory() -> str:
    rows = []
    for name in PAPER_SETS:
        one = len(load(name)) ** 2 * 8 / 2**20
        peaks = [child(name, what)[0] for what in ("nystroem", "rff", "grid")]
        rows.append([name, f"{one:.0f} MiB", *(f"**{peak:.0f} MiB**" for peak in peaks)])
    header = ["data set", "one matrix", "peak, nystroem", "peak, rff with 1000", "peak of the grid of 24, nystroem"]
    return table("Peak memory of ODDCLApprox above the inputs", header, rows)


def main() -> str:
    warnings.simplefilter("ignore", UserWarning)
    with threadpool_limits(1):
        errors = [measure_errors(name) for name in PAPER_SETS]
        accuracies = [measure_accuracy(name) for name in PAPER_SETS]
        linear = [measure_linear(name) for name in LINEAR_SETS]
        parts = [
            table(
                "Relative Frobenius error of the normalized Gram matrix, depth 3",
                ["data set", "components", "nystroem (used)", "target", "rff", "rff / nystroem"],
                errors,
            ),
            table(
                f"Accuracy, 10-fold x {REPEATS}, depth in (1, 3), lam in (0.5, 1.2) and C chosen on the training part",
                ["data set", "exact", "nystroem", "difference", "target", "rff with 1000", "difference"],
                accuracies,
            ),
            NESTED,
            table(
                f"4096 hashed columns against the exact SVM, 10-fold x {REPEATS}, depth 3, lam 1",
                [
                    "data set",
                    "components",
                    "error",
                    "exact SVM",
                    "SVM on rows",
                    "ridge on rows",
                    "SVM - exact",
                    "ridge - exact",
                    "target",
                ],
                linear,
            ),
        ]
    if Path("/proc/self/clear_refs").exists():
        parts += [measure_memory(), *measure_stream()]
    else:
        parts.append("## Memory and streams\n\nNot measured: this needs Linux.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    if sys.argv[1:2] == ["stream"]:
        print(*run_stream(int(sys.argv[2])))
    elif len(sys.argv) == 3:
        print(run_gram(sys.argv[1], sys.argv[2]))
    else:
        print(main())
