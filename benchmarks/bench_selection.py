"""Compare the paper's protocol for ODDCL_ST with the same in scikit-learn; measure its memory, and the solver alone.

Both sides see the same outer and inner folds, and choose among the same 24 Gram matrices and 7 values of C. The plain side
computes each matrix by a ``fit_transform`` of its own, once for all outer folds, searches it by ``GridSearchCV`` over ``SVC``,
and fits the best pair once more. With few outer folds the Gram matrices weigh more than in the full protocol, whose 100 folds
use them all: the ratio for 100 is computed from the two parts, and stands beside the measured one.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import treegram as tg
from bench_memory import resident
from common import best_of, load, table
from treegram.kernels.grid import grid_points
from treegram.models.auto import seed_of
from treegram.models.search import Fits, Selection, distinct
from treegram.models.solver import fit_path
from treegram.models.svc import folds, select

GRID = {"depth": [0, 1, 2, 3], "lam": [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]}
CS = np.array([0.01, 0.1, 1, 10, 100, 1000, 10000])
INNER_FOLDS, OUTER_FOLDS, REPEATS, SEED = 10, 10, 10, 0
SPEED_FOLDS = {"BZR": 3, "ENZYMES": 1}  # outer folds of the first repeat
SOLVER_ROUNDS = {1.0: 5, 100.0: 5, 10000.0: 1}  # by C: libsvm needs seconds for the last
LARGE = "PROTEINS"
MIB_ALLOWED = 2048
RATIO_ALLOWED = 0.35

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """Return a data set, and its outer folds in the study ``paper``."""

    name: str
    graphs: tg.Graphs
    codes: Ints
    outer: list[tuple[Ints, Ints]]


def read(name: str) -> Data:
    graphs = load(name)
    codes = np.unique(graphs.targets, return_inverse=True)[1].astype(np.int64)
    return Data(name, graphs, codes, folds(codes, OUTER_FOLDS, seed_of(SEED, name, 0)))


# -------------------------------------------------------------------- both sides


def our_grams(graphs: tg.Graphs) -> list[Floats]:
    return distinct([point.gram for point in grid_points(tg.ODDCL(n_jobs=1), graphs, GRID)])[0]


def our_selection(data: Data, grams: list[Floats], fold: int) -> Selection:
    train, test = data.outer[fold]
    seed = seed_of(SEED, data.name, 0, fold)
    return select(grams, data.codes, train, test, CS, n_folds=INNER_FOLDS, seed=seed)


def plain_grams(graphs: tg.Graphs) -> list[Floats]:
    points = product(*GRID.values())
    return [tg.ODDCL(depth=depth, lam=lam, n_jobs=1).fit_transform(graphs) for depth, lam in points]


def plain_selection(data: Data, grams: list[Floats], fold: int) -> tuple[float, Ints]:
    """Return the best mean accuracy over the inner folds, and the predictions of its pair for the test part."""
    train, test = data.outer[fold]
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed_of(SEED, data.name, 0, fold))
    best_score, best = -1.0, (grams[0], CS[0])
    for K in grams:
        machine = GridSearchCV(SVC(kernel="precomputed"), {"C": CS}, cv=inner, refit=False)
        machine.fit(K[np.ix_(train, train)], data.codes[train])
        if machine.best_score_ > best_score:
            best_score, best = machine.best_score_, (K, machine.best_params_["C"])
    K, C = best
    fitted = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], data.codes[train])
    return best_score, fitted.predict(K[np.ix_(test, train)])


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


# -------------------------------------------------------------------- speed


def measure(name: str, n_folds: int) -> tuple[list[object], Fits]:
    data = read(name)
    warm_up(data)
    our_gram_time, ours = timed(our_grams, data.graphs)
    plain_gram_time, plain = timed(plain_grams, data.graphs)
    our_time = plain_time = worst = 0.0
    n_same = n_tested = 0
    scores, fits = [], Fits()
    for fold in range(n_folds):
        seconds, chosen = timed(our_selection, data, ours, fold)
        our_time += seconds
        seconds, (score, predicted) = timed(plain_selection, data, plain, fold)
        plain_time += seconds
        worst = max(worst, abs(chosen.inner_score - score))
        scores.append(f"{chosen.inner_score:.4f} / {score:.4f}")
        n_same += int((chosen.predicted == predicted).sum())
        n_tested += len(predicted)
        fits += chosen.fits
    more = REPEATS * OUTER_FOLDS / n_folds
    ratio = (our_gram_time + our_time) / (plain_gram_time + plain_time)
    full = (our_gram_time + more * our_time) / (plain_gram_time + more * plain_time)
    row = [
        f"{name}, {n_folds} outer",
        f"{plain_gram_time:.1f} + {plain_time:.1f} s",
        f"{our_gram_time:.1f} + {our_time:.1f} s",
        f"**{ratio:.2f}**",
        f"{full:.2f}",
        f"{', '.join(scores)}; {'equal' if worst < 1e-12 else f'differ by up to {worst:.1e}'}",
        f"{n_same} of {n_tested}",
    ]
    return row, fits


def warm_up(data: Data) -> None:
    """Compile all loops: kernels on a few graphs, the solver on few and on singular matrices."""
    grams = [*our_grams(data.graphs[:40]), *plain_grams(data.graphs[:10])[:1], np.ones((40, 40))]
    codes = np.arange(40) % 2
    select([grams[0], grams[-1]], codes, np.arange(30), np.arange(30, 40), CS, n_folds=2, seed=0)


# -------------------------------------------------------------------- memory


def child() -> None:
    """Run one outer fold of the largest data set with its Gram matrices; print peak memory and numbers of fits."""
    data = read(LARGE)
    grams = our_grams(data.graphs)
    fits = our_selection(data, grams, 0).fits
    print(resident("VmHWM"), fits.n_fits, fits.n_unconverged)


def peak_memory() -> tuple[float, Fits]:
    done = subprocess.run([sys.executable, __file__, "child"], capture_output=True, text=True, check=True)
    memory, n_fits, n_unconverged = done.stdout.split()
    return float(memory), Fits(int(n_fits), int(n_unconverged))


# -------------------------------------------------------------------- the solver


def measure_solver(data: Data, K: Floats, C: float, rounds: int) -> list[object]:
    """Compare one fit on an inner training part and its predictions; a higher dual objective is better."""
    outer_train = data.outer[0][0]
    inner = folds(data.codes[outer_train], INNER_FOLDS, seed_of(SEED, data.name, 0, 0))
    train, test = (outer_train[part] for part in inner[0])
    square, rows = np.ascontiguousarray(K[np.ix_(train, train)]), K[np.ix_(test, train)]
    y = np.where(data.codes[train] == 0, 1.0, -1.0)

    def plain() -> tuple[Floats, NDArray[np.bool_]]:
        machine = SVC(kernel="precomputed", C=C).fit(square, data.codes[train])
        beta = np.zeros(len(y))
        beta[machine.support_] = -machine.dual_coef_[0]  # scikit-learn's signs are those of the second class
        return beta, machine.predict(rows) == 0

    def ours() -> tuple[Floats, NDArray[np.bool_]]:
        path = fit_path(square, y, np.array([C]))
        return path.betas[0], rows @ path.betas[0] + path.intercepts[0] > 0

    plain_time, our_time = best_of(plain, ours, rounds=rounds)
    (their_beta, their_answers), (our_beta, our_answers) = plain(), ours()
    their_objective, our_objective = (beta @ y - beta @ square @ beta / 2 for beta in (their_beta, our_beta))
    return [
        f"{C:g}",
        f"{1000 * plain_time:.0f} ms",
        f"{1000 * our_time:.0f} ms",
        f"**{our_time / plain_time:.3f}**",
        f"{our_objective / their_objective - 1:+.0e}",
        f"{(our_answers != their_answers).sum()} of {len(test)}",
    ]


# -------------------------------------------------------------------- tables


def main() -> str:
    with threadpool_limits(1):
        measured = [measure(name, n_folds) for name, n_folds in SPEED_FOLDS.items()]
        data = read(LARGE)
        warm_up(data)
        K = tg.ODDCL(depth=0, n_jobs=1).fit_transform(data.graphs)
        solver = [measure_solver(data, K, C, rounds) for C, rounds in SOLVER_ROUNDS.items()]
    parts = [
        table(
            "The ODDCL_ST protocol, 24 grid points x 7 C x 10 inner folds (process time, one thread; Gram matrices + selection; "
            f"at most {RATIO_ALLOWED} allowed)",
            [
                "data set",
                "GridSearchCV",
                "treegram",
                "ratio",
                "for 100 outer folds, computed",
                "selected inner scores, ours / theirs",
                "equal predictions",
            ],
            [row for row, _ in measured],
        ),
        table(
            "One fit and its predictions, PROTEINS at depth 0, an inner training part (process time, one thread)",
            ["C", "SVC", "treegram", "ratio", "dual objective, ours against SVC's", "other predictions"],
            solver,
        ),
    ]
    fits = {str(row[0]): some for row, some in measured}
    if Path("/proc/self/status").exists():
        memory, fits[f"{LARGE}, 1 outer"] = peak_memory()
        row = [LARGE, f"**{memory:.0f} MiB**", f"{MIB_ALLOWED} MiB"]
        parts.append(
            table("Peak memory of the ODDCL_ST protocol, all of the process", ["data set", "peak", "allowed"], [row])
        )
    rows = [[name, f"{some.n_fits:,}", f"{some.n_fits - some.n_unconverged:,}"] for name, some in fits.items()]
    parts.append(table("Fits, those with a known result left out", ["data set", "fits", "converged"], rows))
    return "\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        child()
    else:
        print(main())
