"""Compare the exact Gram matrix with two lower bounds, two threads with one, a grid with one Gram, twice the graphs.

The floor (``pair_floor.py``) is one distance and one exponential per pair of nodes with equal labels, in numpy: what any
exact method that looks at each such pair once must at least pay with numpy's own pieces. The second floor is the engine's own
Gaussians, for the pairs that remain after merging and windows: what is above it are features, merging, sorting and sums.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import treegram as tg
from common import PAPER_SETS, best_of, load, table
from pair_floor import gaussian_tiles, gaussians_alone, pair_floor
from treegram.pairsum import nodes, tiles
from treegram.structure import trees

DEPTHS, LAMS = [0, 1, 2, 3], [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]

TINY_SETS = ("Letter-high", "NCI1")


def warm_up(graphs: tg.Graphs) -> None:
    for n_jobs in (1, 2):
        tg.ODDCL(depth=3, lam=1.2, n_jobs=n_jobs).fit_transform(graphs[:10])
    tg.ODDCL().gram_grid(graphs[:10], {"depth": DEPTHS, "lam": LAMS})


def measure(name: str) -> tuple[list[object], ...]:
    graphs = load(name)
    warm_up(graphs)
    labels = graphs.degrees if graphs.labels is None else graphs.labels
    view = tg.ODDCL(depth=3, lam=1.2).fit(graphs)._fitted
    tiles = gaussian_tiles(replace(view.nodes, features=view.groups[0].counts), view.node_kernel)
    gaussians_alone(tiles)  # compiles
    floor, alone, one = best_of(
        lambda: pair_floor(graphs.attributes, labels, 1 / graphs.n_attributes),
        lambda: gaussians_alone(tiles),
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
    )
    share = share_on_one_thread(graphs)
    single, grid = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
        lambda: tg.ODDCL(n_jobs=1).gram_grid(graphs, {"depth": DEPTHS, "lam": LAMS}),
        rounds=3,
    )
    chosen = graphs[np.random.default_rng(0).permutation(len(graphs))]
    half, whole = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(chosen[: len(chosen) // 2]),
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(chosen),
        rounds=3,
    )
    return (
        [
            name,
            f"{floor:.2f} s",
            f"{alone:.2f} s",
            f"{one:.2f} s",
            f"**{one / floor:.2f}**",
            f"**{one / alone:.2f}**",
        ],
        [name, *two_threads(graphs), f"{share:.0%}", *(f"{most(share, n):.2f}" for n in (2, 4, 8, 16))],
        [name, f"{single:.2f} s", f"{grid:.2f} s", f"**{grid / single:.2f}**"],
        [name, f"{half:.2f} s", f"{whole:.2f} s", f"**{whole / half:.2f}**"],
    )


def two_threads(graphs: tg.Graphs) -> list[str]:
    """Measure wall time on one and on two threads; meaningless while other processes use the cores."""
    if os.getloadavg()[0] > 1.5:
        return 3 * ["busy"]
    one, two = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=2).fit_transform(graphs),
        rounds=15,  # many, because both threads must run undisturbed
        clock=time.perf_counter,
    )
    return [f"{one:.2f} s", f"{two:.2f} s", f"**{one / two:.2f}**"]


def most(share: float, n_threads: int) -> float:
    """Return the largest possible speed-up with this number of threads (Amdahl's law)."""
    return 1 / (share + (1 - share) / n_threads)


def share_on_one_thread(graphs: tg.Graphs) -> float:
    """Return the share of time outside of tasks, on one thread whatever ``n_jobs`` is, in the best of 15 rounds."""
    best = (np.inf, 0.0)
    for _ in range(15):
        inside: list[float] = []
        originals = [(module, module.run_tasks) for module in (nodes, tiles, trees)]
        for module, original in originals:
            module.run_tasks = timing_tasks(original, inside)  # type: ignore[attr-defined]
        start = time.process_time()
        tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs)
        total = time.process_time() - start
        for module, original in originals:
            module.run_tasks = original  # type: ignore[attr-defined]
        best = min(best, (total, 1 - sum(inside) / total))
    return best[1]


def timing_tasks(run_tasks: Callable[..., Any], inside: list[float]) -> Callable[..., Any]:
    """Wrap a function so that the process time of each task is appended to a list."""

    def run(function: Callable[..., Any], tasks: Any, **options: Any) -> Any:
        def timed(*task: Any) -> Any:
            start = time.process_time()
            result = function(*task)
            inside.append(time.process_time() - start)
            return result

        return run_tasks(timed, tasks, **options)

    return run


def measure_tiny(name: str) -> list[object]:
    """Compare a grid on thousands of small graphs with one Gram matrix, and with its 24 Gram matrices one by one."""
    graphs = load(name)
    warm_up(graphs)
    points = [{"depth": depth, "lam": lam} for depth in DEPTHS for lam in LAMS]
    single, grid, alone = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
        lambda: tg.ODDCL(n_jobs=1).gram_grid(graphs, {"depth": DEPTHS, "lam": LAMS}),
        lambda: [tg.ODDCL(**point, n_jobs=1).fit_transform(graphs) for point in points],
        rounds=5,  # fresh memory is slower in the first rounds
    )
    return [
        f"{name}, {len(graphs):,} graphs",
        *(f"{seconds:.2f} s" for seconds in (single, grid, alone)),
        f"**{grid / single:.2f}**",
        f"**{grid / alone:.2f}**",
    ]


def measure_fit(name: str) -> list[object]:
    graphs = load(name)
    warm_up(graphs)
    fit, whole = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit(graphs),
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
        rounds=3,
    )
    return [name, f"{fit:.2f} s", f"{whole:.2f} s", f"**{fit / whole:.2f}**"]


def main() -> str:
    with threadpool_limits(1):  # matrix products of the bound use one thread, like the engine
        rows = [measure(name) for name in PAPER_SETS]
        tiny = [measure_tiny(name) for name in TINY_SETS]
        fits = [measure_fit(name) for name in (*PAPER_SETS, *TINY_SETS)]
    floors, threads, grids, doubled = zip(*rows, strict=True)
    return "\n".join(
        [
            table(
                "Exact ODDCL Gram matrix, depth 3, features included (process time, one thread)",
                ["data set", "floor", "Gaussians alone", "Gram", "Gram / floor", "Gram / Gaussians alone"],
                floors,
            ),
            table(
                "Two threads (wall time), what one thread must do alone (process time), and the bounds that follow for more",
                [
                    "data set",
                    "one thread",
                    "two threads",
                    "speed-up",
                    "alone",
                    "at most",
                    "with 4",
                    "with 8",
                    "with 16",
                ],
                threads,
            ),
            table(
                "The paper's grid: 4 depths x 6 lambdas (process time, one thread)",
                ["data set", "one Gram, depth 3", "24 Grams", "24 / 1"],
                grids,
            ),
            table(
                "The same on sets of thousands of small graphs (process time, one thread)",
                ["data set", "one Gram, depth 3", "24 Grams", "24 single calls", "24 / 1", "24 / single calls"],
                tiny,
            ),
            table(
                "fit, which sums each graph with itself alone (process time, one thread)",
                ["data set", "fit", "fit_transform", "ratio"],
                fits,
            ),
            table(
                "Twice the graphs (process time, one thread)",
                ["data set", "half of the graphs", "all graphs", "all / half"],
                doubled,
            ),
        ]
    )


if __name__ == "__main__":
    print(main())
