"""What kernel="auto" was designed by: lists of candidates and rules of choice, nested, on the eight design sets.

    python benchmarks/auto_design.py score ENZYMES BZR --folder /tmp/auto   # Gram matrices and scores, kept in the folder
    python benchmarks/auto_design.py report --folder /tmp/auto              # tables, and leave-one-data-set-out
    python benchmarks/auto_design.py time ENZYMES generated                 # GraphSVC("auto").fit, seconds of processor time

Every Gram matrix is made once for a data set. Scales, widths and draws are learned from all of its graphs, never from a class;
the model itself learns them from training graphs alone. A variant is a list of candidates and a rule. Everything that a rule
learns from classes (scores, weights) it learns in the training part of an outer fold, and it is scored on the test part.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.pipeline import make_pipeline

import treegram as tg
from common import load, table
from treegram._core.parallel import one_blas_thread
from treegram.graphs.transforms import CentroidDistance, DropAttributes, NeighborMeans, ScaleAttributes
from treegram.kernels import ODDCL, ODDST, WL, WLCL, WLOA
from treegram.models.candidates import _edges, _pairs, _propagation, narrow_gamma
from treegram.models.crossval import choose, folds, score, seed_of
from treegram.pairsum.attributes import scaled_gamma

DESIGN_SETS = ("MUTAG", "BZR", "COX2", "DHFR", "ENZYMES", "PROTEINS", "SYNTHETICnew", "Cuneiform")
CS = np.array([0.01, 0.1, 1, 10, 100, 1000, 10000])
OUTER, INNER = 10, 10
FEWER_FOLDS = {"Cuneiform": (5, 5), "PROTEINS": (5, 5)}  # nine graphs of a class; the largest set
WIDTHS = (1, 4, 8)  # of scaled vectors, in units of "scale"; 8 has an upper end, see narrow_gamma

Floats = NDArray[np.float64]
Pool = dict[str, Callable[[tg.Graphs], Any]]


# -------------------------------------------------------------------- kernels


def viewed(
    make: Callable[..., Any], *steps: Callable[[], Any], times: float | None = None, is_capped: bool = False
) -> Any:
    """How to make a kernel for graphs that are seen through transformers, with a width that is a multiple of "scale"."""

    def made(graphs: tg.Graphs) -> Any:
        options: dict[str, Any] = {} if graphs.edge_labels is None else {"use_edge_labels": True}
        seen = graphs
        for step in steps:
            seen = step().fit_transform(seen)
        if times is not None:
            vectors = np.asarray(seen.attributes)
            options["gamma"] = narrow_gamma(vectors) if is_capped else times * scaled_gamma(vectors)
        return make_pipeline(*(step() for step in steps), make(**options)) if steps else make(**options)

    return made


def pool_of(graphs: tg.Graphs) -> Pool:
    """All kernels that lists are made of, by name; those of few graphs' kinds come first."""
    robust = partial(ScaleAttributes, "robust")
    trees: dict[str, Any] = {"lam": 1.5, "counting": "visits"}
    if not graphs.n_attributes:
        return {
            "colors 1": viewed(partial(WL, 1)),
            "colors 3": viewed(partial(WL, 3)),
            "matched 1": viewed(partial(WLOA, 1)),
            "matched 3": viewed(partial(WLOA, 3)),
            "trees 3": viewed(partial(ODDST, 3, **trees)),
            "edges": viewed(_edges),
            "propagation": lambda _: _propagation(),
            "pairs": viewed(_pairs),
        }
    pool = {
        "colors 3, none": viewed(partial(WL, 3), DropAttributes),
        "matched 1, none": viewed(partial(WLOA, 1), DropAttributes),
        "matched 3, none": viewed(partial(WLOA, 3), DropAttributes),
        "nodes, raw": viewed(partial(WLCL, 0, missing_labels="constant"), times=1),
        "colors 3, raw": viewed(partial(WLCL, 3), times=1),
        "colors 3, raw x1/4": viewed(partial(WLCL, 3), times=0.25),
    }
    if graphs.edge_labels is not None:
        pool["edges, none"] = viewed(_edges, DropAttributes)
    for times in WIDTHS:
        width = {"times": times, "is_capped": times == 8}
        pool |= {
            f"colors 1, scaled x{times}": viewed(partial(WLCL, 1), robust, **width),
            f"trees 1, scaled x{times}": viewed(partial(ODDCL, 1, counting="visits"), robust, **width),
            f"colors 1, neighbors x{times}": viewed(partial(WLCL, 1), robust, NeighborMeans, **width),
        }
    if graphs.n_attributes > 1:
        pool |= {
            "colors 3, centroid": viewed(partial(WLCL, 3), CentroidDistance, times=1),
            "trees 3, centroid": viewed(partial(ODDCL, 3, **trees), CentroidDistance, times=1),
        }
    pool |= {
        "propagation, densities": lambda _: _propagation(),
        "propagation, bins": lambda _: _propagation(mode="hash"),
    }
    for times in WIDTHS:
        pool[f"pairs, scaled x{times}"] = viewed(_pairs, robust, times=times, is_capped=times == 8)
    return pool


# -------------------------------------------------------------------- lists


def _with_widths(*widths: int, bins: bool = False) -> Callable[[str], bool]:
    """Which names a list has: those without a width of scaled vectors, and those with one of these."""

    def has(name: str) -> bool:
        if name == "colors 3, raw x1/4":
            return False
        if name == "propagation, bins" or name.startswith("edges"):
            return bins
        return " x" not in name or int(name.rpartition(" x")[2]) in widths

    return has


LISTS: dict[str, Callable[[str], bool]] = {
    "D": _with_widths(8),
    "D x4": _with_widths(4),
    "D x1": _with_widths(1),
    "D x1, x8": _with_widths(1, 8),
    "E": _with_widths(8, bins=True),
    "E x4": _with_widths(4, bins=True),
    "E x1": _with_widths(1, bins=True),
    "E x1, x8": _with_widths(1, 8, bins=True),
    "all": lambda _: True,
}


# -------------------------------------------------------------------- scores, kept


class Bench:
    """The Gram matrices and the folds of a data set, and the scores of all combinations that were asked for so far."""

    def __init__(self, name: str, folder: Path, repeat: int = 0, part: str = "all") -> None:
        self.name, self.folder, self.repeat = name, folder, repeat
        folder.mkdir(parents=True, exist_ok=True)
        self.graphs = load(name)
        self.pool = pool_of(self.graphs)
        self.names = list(self.pool)
        self.codes = np.unique(self.graphs.targets, return_inverse=True)[1].astype(np.int64)
        n_outer, self.n_inner = FEWER_FOLDS.get(name, (OUTER, INNER))
        self.outer = folds(self.codes, n_outer, seed_of("auto_design", name, repeat))
        self.inner = [
            [
                (train[a], train[b])
                for a, b in folds(self.codes[train], self.n_inner, seed_of("auto_design", name, repeat, i))
            ]
            for i, (train, _) in enumerate(self.outer)
        ]
        self._grams: dict[str, Floats] = {}
        self._path = folder / f"{name}.{repeat}.{part}.scores"
        self._scores: dict[Any, tuple[Floats, Floats]] = {}
        for path in folder.glob(f"{name}.{repeat}.*.scores"):
            self._scores |= pickle.loads(path.read_bytes())
        self._alignments: dict[Any, Any] = {}

    def gram(self, name: str) -> Floats:
        """The Gram matrix of a candidate, made when it is first asked for."""
        path = self.folder / f"{self.name}.{name.replace('/', ':')}.npy"
        if name not in self._grams:
            if not path.exists():
                np.save(path, self.pool[name](self.graphs).fit_transform(self.graphs))
            self._grams[name] = np.load(path)
        return self._grams[name]

    def total(self, weights: dict[str, float]) -> Floats:
        """The weighted mean of Gram matrices."""
        total = sum(weight * self.gram(name) for name, weight in weights.items())
        return np.asarray(total) / sum(weights.values())

    def scores(self, fold: int, weights: dict[str, float]) -> tuple[Floats, Floats]:
        """Accuracies of a weighted sum: (inner folds, C) in the training part, and (C,) on the test part."""
        key = (fold, tuple(sorted(weights.items())))
        if key not in self._scores:
            K = self.total(weights)
            held_out = [score(K, self.codes, train, test, CS)[0] for train, test in self.inner[fold]]
            self._scores[key] = np.array(held_out), score(K, self.codes, *self.outer[fold], CS)[0]
        return self._scores[key]

    def best(self, fold: int, weights: dict[str, float]) -> tuple[float, Floats, float]:
        """The inner mean at the best C, fold by fold, and the accuracy on the test part there."""
        inner, test = self.scores(fold, weights)
        _, c = choose(inner.mean(axis=0)[None])
        return float(inner[:, c].mean()), inner[:, c], float(test[c])

    def align(self, fold: int, names: list[str]) -> tuple[Floats, Floats]:
        """Centered alignments in the training part: of each kernel with the classes, and of the kernels with each other."""
        if fold not in self._alignments:
            train = self.outer[fold][0]
            same = (self.codes[train][:, None] == self.codes[train]).astype(np.float64)
            centered = [
                _centered(one) for one in [same, *(self.gram(name)[np.ix_(train, train)] for name in self.names)]
            ]
            flat = np.array([one.ravel() / np.linalg.norm(one) for one in centered])
            self._alignments[fold] = flat @ flat.T
        products = self._alignments[fold]
        ids = [1 + self.names.index(name) for name in names]
        return products[0, ids], products[np.ix_(ids, ids)]

    def save(self) -> None:
        """Keep the scores for later runs."""
        _write(self._path, self._scores)


def _write(path: Path, value: object) -> None:
    """Whole or not at all: other processes read it."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(pickle.dumps(value))
    unfinished.replace(path)


def _centered(K: Floats) -> Floats:
    means = K.mean(axis=0)
    centered: Floats = K - means - means[:, None] + means.mean()
    return centered


# -------------------------------------------------------------------- rules


Rule = Callable[[Bench, int, list[str]], dict[str, float]]


def single(bench: Bench, fold: int, names: list[str]) -> dict[str, float]:
    return {_ranked(bench, fold, names)[0]: 1.0}


def top(n: int, bench: Bench, fold: int, names: list[str]) -> dict[str, float]:
    return dict.fromkeys(_ranked(bench, fold, names)[:n], 1.0)


def greedy(margin: float, bench: Bench, fold: int, names: list[str]) -> dict[str, float]:
    """Up to three of the six best, added while the score rises by more than so many standard errors of the difference."""
    held = _ranked(bench, fold, names)[:6]
    parts = {held[0]: 1.0}
    by_fold = bench.best(fold, parts)[1]
    while len(parts) < 3:
        sums = [{**parts, name: 1.0} for name in held if name not in parts]
        if not sums:
            break
        best = max(sums, key=lambda some: round(bench.best(fold, some)[0], 12))
        top_by_fold = bench.best(fold, best)[1]
        gains = top_by_fold - by_fold
        if not gains.mean() > margin * gains.std(ddof=1) / np.sqrt(len(gains)) + 1e-12:
            break
        parts, by_fold = best, top_by_fold
    return parts


def aligned(bench: Bench, fold: int, names: list[str]) -> dict[str, float]:
    """Each kernel, centered and of norm 1, weighted by its alignment with the classes (Cortes, Mohri and Rostamizadeh 2012)."""
    with_classes, _ = bench.align(fold, names)
    return _of_norm_one(bench, fold, names, np.maximum(with_classes, 0.0))


def aligned_together(bench: Bench, fold: int, names: list[str]) -> dict[str, float]:
    """The non-negative weights whose sum aligns best with the classes (the same paper's alignf)."""
    with_classes, among = bench.align(fold, names)
    root = np.linalg.cholesky(among + 1e-8 * np.eye(len(names))).T
    return _of_norm_one(bench, fold, names, nnls(root, np.linalg.solve(root.T, with_classes))[0])


def aligned_best(n: int, bench: Bench, fold: int, names: list[str]) -> dict[str, float]:
    """The same over the best few by cross-validation alone."""
    return aligned_together(bench, fold, _ranked(bench, fold, names)[:n])


def or_single(rule: Rule, bench: Bench, fold: int, names: list[str]) -> dict[str, float]:
    """The best single kernel, unless a rule's sum is better by more than one standard error of the difference.

    The weights have seen the classes of the whole training part, so that the inner score of such a sum is a little high.
    """
    alone, both = single(bench, fold, names), rule(bench, fold, names)
    gains = bench.best(fold, both)[1] - bench.best(fold, alone)[1]
    return both if gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)) + 1e-12 else alone


def _of_norm_one(bench: Bench, fold: int, names: list[str], weights: Floats) -> dict[str, float]:
    train = bench.outer[fold][0]
    norms = [np.linalg.norm(_centered(bench.gram(name)[np.ix_(train, train)])) for name in names]
    shares = weights / np.array(norms)
    if not shares.any():
        return single(bench, fold, names)
    return {name: float(w) for name, w in zip(names, shares / shares.max(), strict=True) if w > 1e-6 * shares.max()}


def _ranked(bench: Bench, fold: int, names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: -round(bench.best(fold, {name: 1.0})[0], 12))


RULES: dict[str, Rule] = {
    "single": single,
    "clear": partial(greedy, 1.0),
    "greedy": partial(greedy, 0.0),
    "clear 2": partial(greedy, 2.0),
    "top 2": partial(top, 2),
    "top 3": partial(top, 3),
    "align": aligned,
    "alignf": aligned_together,
    "alignf of 6": partial(aligned_best, 6),
    "alignf of 3": partial(aligned_best, 3),
    "alignf or single": partial(or_single, aligned_together),
}


# -------------------------------------------------------------------- commands


def score_folds(name: str, folder: Path, repeat: int, lists: list[str], rules: list[str], some: list[int]) -> None:
    """Only the scores of some outer folds, so that several processes share the work; score_set then finds them."""
    bench = Bench(name, folder, repeat, "folds " + " ".join(map(str, some)))
    for fold in some:
        for one in bench.names:
            bench.scores(fold, {one: 1.0})
        bench.save()
        for listed, ruled in ((a, b) for a in lists for b in rules):
            names = [one for one in bench.names if LISTS[listed](one)]
            bench.best(fold, RULES[ruled](bench, fold, names))
        bench.save()


def score_set(name: str, folder: Path, repeat: int, lists: list[str], rules: list[str]) -> None:
    """Accuracies of all variants on a data set, written to the folder."""
    bench = Bench(name, folder, repeat)
    start = time.process_time()
    for fold in range(len(bench.outer)):
        for one in bench.names:
            bench.scores(fold, {one: 1.0})
        bench.save()
    print(f"{name}: single kernels after {time.process_time() - start:.0f} s", flush=True)
    for one in bench.names:
        tests = [bench.best(fold, {one: 1.0})[2] for fold in range(len(bench.outer))]
        print(f"    {one}: {100 * np.mean(tests):.1f}")
    path = folder / f"{name}.{repeat}.results"
    results = pickle.loads(path.read_bytes()) if path.exists() else {}
    for listed, ruled in ((a, b) for a in lists for b in rules):
        names = [one for one in bench.names if LISTS[listed](one)]
        chosen = [RULES[ruled](bench, fold, names) for fold in range(len(bench.outer))]
        tests = [bench.best(fold, weights)[2] for fold, weights in enumerate(chosen)]
        results[listed, ruled] = tests
        bench.save()
        _write(path, results)
        counts: dict[str, int] = {}
        for weights in chosen:
            told = " + ".join(weights) if len(weights) <= 3 else f"{len(weights)} parts"
            counts[told] = counts.get(told, 0) + 1
        print(f"{name} {listed} / {ruled}: {100 * np.mean(tests):.1f}  {counts}", flush=True)
    print(f"{name}: done after {time.process_time() - start:.0f} s of processor time", flush=True)


def accuracies(folder: Path) -> tuple[list[str], list[tuple[str, str]], Floats]:
    """The sets scored, the variants that all of them have, and mean accuracies in percent, (n_variants, n_sets)."""
    found: dict[str, list[dict[Any, list[float]]]] = {}
    for name in DESIGN_SETS:
        paths = sorted(folder.glob(f"{name}.*.results"))
        if paths:
            found[name] = [pickle.loads(path.read_bytes()) for path in paths]
    runs = [run for some in found.values() for run in some]
    variants = [one for one in runs[0] if all(one in run for run in runs)]
    means = [[100 * np.mean([np.mean(run[one]) for run in some]) for some in found.values()] for one in variants]
    return list(found), variants, np.array(means)


def leave_one_out(sets: list[str], variants: list[tuple[str, str]], means: Floats) -> Iterator[list[object]]:
    """For each set: the variant with the highest mean accuracy on the others, and its accuracy here."""
    for i, name in enumerate(sets):
        best = int(np.argmax(np.round(np.delete(means, i, axis=1).mean(axis=1), 9)))
        yield [name, " / ".join(variants[best]), f"{means[best, i]:.1f}", f"{means[:, i].max():.1f}"]


def report(folder: Path) -> str:
    sets, variants, means = accuracies(folder)
    rows = [
        [*variant, *(f"{x:.1f}" for x in row), f"{row.mean():.2f}"]
        for variant, row in zip(variants, means, strict=True)
    ]
    left = list(leave_one_out(sets, variants, means))
    left.append(["mean", "", f"{np.mean([float(str(row[2])) for row in left]):.2f}", ""])
    return "\n".join(
        [
            table("Variants, nested", ["list", "rule", *sets, "mean"], rows),
            table(
                "Leave one data set out",
                ["left out", "chosen on the others", "scored", "best of all variants there"],
                left,
            ),
        ]
    )


def generated(n_graphs: int = 4000, n_classes: int = 100, n_attributes: int = 64) -> tg.Graphs:
    """Tiny graphs of many classes: three nodes, no labels, a third of the columns constant."""
    rng = np.random.default_rng(0)
    y = np.arange(n_graphs) % n_classes
    varies, middles = np.arange(n_attributes) % 3 > 0, rng.normal(size=(n_classes, n_attributes))
    attributes = [np.where(varies, middles[c] + 2.0 * rng.normal(size=(3, n_attributes)), 7.0) for c in y]
    edges = [[(0, 1), (1, 2)] + [(0, 2)] * int(rng.integers(2)) for _ in y]
    return tg.Graphs.from_edges(edges, n_nodes=[3] * n_graphs, attributes=attributes, targets=y)


def time_fit(name: str) -> None:
    """Fit on nine tenths of a data set, after a fit on a few graphs that compiles everything."""
    graphs = generated() if name == "generated" else load(name)
    codes = np.unique(graphs.targets, return_inverse=True)[1].astype(np.int64)
    n_folds = min(OUTER, int(np.bincount(codes).max()))
    train = folds(codes, n_folds, 0)[0][0]
    few = train[np.argsort(codes[train], kind="stable")][:: max(1, len(train) // 40)]
    tg.GraphSVC("auto", cv=2, C=[1, 10000]).fit(graphs[few], np.arange(len(few)) % 2)
    start = time.process_time()
    model = tg.GraphSVC("auto", cv=min(INNER, int(np.bincount(codes[train]).max()))).fit(graphs[train], codes[train])
    seconds = time.process_time() - start
    print(f"{name}: {len(train)} graphs, {seconds:.1f} s of processor time, chosen {model.best_params_}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["score", "report", "time"])
    parser.add_argument("data", nargs="*", choices=[*DESIGN_SETS, "generated", []])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "auto_design")
    parser.add_argument("--repeat", type=int, default=0)
    parser.add_argument("--lists", nargs="+", choices=LISTS, default=list(LISTS))
    parser.add_argument("--rules", nargs="+", choices=RULES, default=["single"])
    parser.add_argument(
        "--folds", nargs="+", type=int, help="only so much as these outer folds need, for another run to find"
    )
    args = parser.parse_args()
    if args.command == "report":
        print(report(args.folder))
        return
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        for name in args.data:
            if args.command == "time":
                time_fit(name)
            elif args.folds:
                score_folds(name, args.folder, args.repeat, args.lists, args.rules, args.folds)
            else:
                score_set(name, args.folder, args.repeat, args.lists, args.rules)


if __name__ == "__main__":
    main()
