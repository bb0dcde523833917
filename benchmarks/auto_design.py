"""Compare the designs of the automatic classifier: lists of candidates and ways to combine them, on the design sets.

    python benchmarks/auto_design.py MUTAG BZR ENZYMES:300 --folder /tmp/auto   # accuracies of all lists and rules; "NAME:n" draws n graphs
    python benchmarks/auto_design.py --time ENZYMES                             # seconds and accuracy of GraphClassifier itself
    python benchmarks/auto_design.py --few MUTAG BZR                            # a few graphs: when nothing is learned, and log loss

Gram matrices are made once for a data set and kept in the folder: scales and widths are learned from all of its graphs, never from
a class; the model itself learns them from training graphs alone. Whatever a rule learns from classes, it learns in the training
part of an outer fold. Each candidate is one least-squares model; a rule weights their decisions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import treegram as tg
from common import load, table
from treegram._core.parallel import one_blas_thread
from treegram.models import auto
from treegram.models.auto import auto_candidates, class_targets, fit_least_squares, most_likely, stack
from treegram.models.svc import folds

DESIGN_SETS = [
    "MUTAG",
    "BZR_MD",
    "COX2_MD",
    "MSRC_9",
    "BZR",
    "COX2",
    "Cuneiform",
    "Synthie",
    "ENZYMES",
    "PROTEINS_full:600",
    "NCI1:800",
    "Letter-high:600",
]
OUTER = 10
FEW, N_DRAWS = (10, 20, 30, 60, 120), 3
Floats = NDArray[np.float64]


def draw(name: str) -> tg.Graphs:
    name, _, n = name.partition(":")
    graphs = load(name)
    return graphs[np.sort(np.random.default_rng(0).permutation(len(graphs))[: int(n)])] if n else graphs


def grams(name: str, graphs: tg.Graphs, folder: Path) -> dict[str, Floats]:
    """Return the Gram matrix of each candidate, from the folder if it is stored there."""
    by_name = {}
    for candidate in auto_candidates(graphs):
        path = folder / f"{name}.{candidate.name}.npy"
        if not path.exists():
            np.save(path, candidate.kernel.fit_transform(graphs))
        by_name[candidate.name] = np.load(path)
    return by_name


def single(errors: Floats, held_out: list[Floats], Y: Floats) -> Floats:  # noqa: ARG001
    return np.eye(len(errors))[errors.argmin()]


def mean_of(n: int, errors: Floats) -> Floats:
    weights = np.zeros(len(errors))
    weights[np.argsort(errors)[:n]] = 1.0 / n
    return weights


def stacked(n: int, held_out: list[Floats], Y: Floats) -> Floats:
    """Refit the stack with the candidates of the n largest weights."""
    ones = np.ones(len(Y))
    best = np.argsort(-stack(held_out, Y, ones))[:n]
    weights = np.zeros(len(held_out))
    weights[best] = stack([held_out[i] for i in best], Y, ones)
    return weights


RULES: dict[str, Callable[[Floats, list[Floats], Floats], Floats]] = {
    "single": single,
    "mean 3": lambda errors, held_out, Y: mean_of(3, errors),  # noqa: ARG005
    "stack 3": lambda errors, held_out, Y: stacked(3, held_out, Y),  # noqa: ARG005
    "stack 5": lambda errors, held_out, Y: stacked(5, held_out, Y),  # noqa: ARG005
    "stack": lambda errors, held_out, Y: stack(held_out, Y, np.ones(len(Y))),  # noqa: ARG005
}


def score_set(name: str, folder: Path) -> dict[tuple[str, str], float]:
    """Return accuracies in percent of each rule, with all candidates and without each of them."""
    graphs = draw(name)
    codes = np.unique(graphs.targets, return_inverse=True)[1].astype(np.int64)
    n_classes = int(codes.max()) + 1
    by_name = grams(name, graphs, folder)
    names = list(by_name)
    right: dict[tuple[str, str], list[bool]] = {}
    for train, test in folds(codes, min(OUTER, int(np.bincount(codes).max())), 7):
        Y, ones = class_targets(codes[train], n_classes), np.ones(len(train))
        models = [fit_least_squares(K[np.ix_(train, train)], Y, ones) for K in by_name.values()]
        decisions = [
            K[np.ix_(test, train)] @ model.coefficients + model.intercept
            for K, model in zip(by_name.values(), models, strict=True)
        ]
        for left_out in ["", *names]:
            kept = [i for i, candidate in enumerate(names) if candidate != left_out]
            errors, held_out = np.array([models[i].error for i in kept]), [models[i].loo_predictions for i in kept]
            for rule, weigh in RULES.items():
                total = np.tensordot(weigh(errors, held_out, Y), [decisions[i] for i in kept], 1)
                is_right = (most_likely(total) == codes[test]).tolist()
                right.setdefault((f"without {left_out}" if left_out else "all", rule), []).extend(is_right)
    return {key: 100 * float(np.mean(values)) for key, values in right.items()}


def report(scores: dict[str, dict[tuple[str, str], float]]) -> str:
    """Tabulate the variants that every set has, and for each set the variant that is best on the others."""
    variants = [key for key in next(iter(scores.values())) if all(key in some for some in scores.values())]
    means = np.array([[some[key] for some in scores.values()] for key in variants])
    rows = [[*key, *(f"{x:.1f}" for x in row), f"{row.mean():.2f}"] for key, row in zip(variants, means, strict=True)]
    left = []
    for i, name in enumerate(scores if len(scores) > 1 else []):
        best = int(np.argmax(np.delete(means, i, axis=1).mean(axis=1)))
        left.append([name, " / ".join(variants[best]), f"{means[best, i]:.1f}", f"{means[:, i].max():.1f}"])
    return "\n".join(
        [
            table("Variants, nested", ["candidates", "rule", *scores, "mean"], rows),
            table("Leave one data set out", ["left out", "best on the others", "scored", "best there"], left),
        ]
    )


def try_few(names: list[str]) -> str:
    """Fit a few graphs, with true and with shuffled classes; tabulate how often nothing is learned, and the log loss on others.

    "no doubt": the temperature is fitted without graphs of unknown class.
    """
    rows, rng = [], np.random.default_rng(0)
    sets = [draw(name) for name in names]
    for n in FEW:
        row: list[str] = [str(n)]
        for is_shuffled in (False, True):
            n_nothing, losses = 0, {0.0: [], 2.0: []}
            for graphs in [graphs for graphs in sets for _ in range(N_DRAWS)]:
                order = rng.permutation(len(graphs))
                train, test = order[:n], order[n : n + 150]
                codes = np.unique(graphs.targets, return_inverse=True)[1]
                codes = rng.permutation(codes) if is_shuffled else codes
                test = test[np.isin(codes[test], codes[train])]
                if len(np.unique(codes[train])) < 2:
                    continue
                for auto._UNKNOWN in losses:
                    model = tg.GraphClassifier().fit(graphs[train], codes[train])
                    p = model.predict_proba(graphs[test])
                    chosen = p[np.arange(len(test)), np.searchsorted(model.classes_, codes[test])]
                    losses[auto._UNKNOWN].append(-np.log(np.maximum(chosen, 1e-300)).mean())
                n_nothing += not any(coefficients.any() for coefficients in model.dual_coefs_)
            row.append(f"{100 * n_nothing / len(losses[2.0]):.0f} %")
            row += [] if is_shuffled else [f"{np.mean(losses[unknown]):.3f}" for unknown in losses]
        rows.append(row)
    header = ["graphs", "nothing learned", "log loss, no doubt", "log loss", "nothing learned, shuffled classes"]
    return table(f"A few graphs of {', '.join(names)}, {N_DRAWS} draws each", header, rows)


def time_model(name: str) -> None:
    """Fit GraphClassifier in each outer fold, with everything learned there."""
    graphs = draw(name)
    codes = np.unique(graphs.targets, return_inverse=True)[1].astype(np.int64)
    splits = folds(codes, min(OUTER, int(np.bincount(codes).max())), 7)
    right: list[bool] = []
    start = time.process_time()
    for train, test in splits:
        model = tg.GraphClassifier().fit(graphs[train], codes[train])
        right += (model.predict(graphs[test]) == codes[test]).tolist()
    seconds = (time.process_time() - start) / len(splits)
    print(
        f"{name}: {len(graphs)} graphs, {100 * np.mean(right):.1f} %, {seconds:.2f} s of processor time per fold",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=DESIGN_SETS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "auto_design")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--few", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        if args.time:
            for name in args.data:
                time_model(name)
        elif args.few:
            print(try_few(args.data))
        else:
            print(report({name: score_set(name, args.folder) for name in args.data}))


if __name__ == "__main__":
    main()
