"""The exact Gram matrix against the floor, two threads against one, the grid against one Gram, twice the graphs.

The floor (``pair_floor.py``) is one distance and one exponential per pair of nodes with equal labels, in numpy: what any
exact method that looks at each such pair once must at least pay with numpy's own pieces.
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

import treegram as tg
from common import PAPER_SETS, best_of, load, table
from pair_floor import pair_floor

DEPTHS, LAMS = [0, 1, 2, 3], [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]


def warm_up(graphs: tg.Graphs) -> None:
    for n_jobs in (1, 2):
        tg.ODDCL(depth=3, lam=1.2, n_jobs=n_jobs).fit_transform(graphs[:10])
    tg.ODDCL().gram_grid(graphs[:10], depth=DEPTHS, lam=LAMS)


def measure(name: str) -> tuple[list[object], ...]:
    graphs = load(name)
    warm_up(graphs)
    labels = graphs.degrees if graphs.labels is None else graphs.labels
    floor, one = best_of(
        lambda: pair_floor(graphs.attributes, labels, 1 / graphs.n_attributes),
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
    )
    wall_one, wall_two = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=2).fit_transform(graphs),
        clock=time.perf_counter,
    )
    single, grid = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(graphs),
        lambda: tg.ODDCL(n_jobs=1).gram_grid(graphs, depth=DEPTHS, lam=LAMS),
        rounds=3,
    )
    chosen = graphs[np.random.default_rng(0).permutation(len(graphs))]
    half, whole = best_of(
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(chosen[: len(chosen) // 2]),
        lambda: tg.ODDCL(depth=3, lam=1.2, n_jobs=1).fit_transform(chosen),
        rounds=3,
    )
    return (
        [name, f"{floor:.2f} s", f"{one:.2f} s", f"**{one / floor:.2f}**"],
        [name, f"{wall_one:.2f} s", f"{wall_two:.2f} s", f"**{wall_one / wall_two:.2f}**"],
        [name, f"{single:.2f} s", f"{grid:.2f} s", f"**{grid / single:.2f}**"],
        [name, f"{half:.2f} s", f"{whole:.2f} s", f"**{whole / half:.2f}**"],
    )


def main() -> str:
    with threadpool_limits(1):  # the floor's matrix products on one thread, as the engine
        rows = [measure(name) for name in PAPER_SETS]
    floors, threads, grids, doubled = zip(*rows, strict=True)
    return "\n".join(
        [
            table(
                "Exact ODDCL Gram matrix, depth 3, features included (process time, one thread)",
                ["data set", "floor", "Gram", "Gram / floor"],
                floors,
            ),
            table("Two threads (wall time)", ["data set", "one thread", "two threads", "speed-up"], threads),
            table(
                "The paper's grid: 4 depths x 6 lambdas (process time, one thread)",
                ["data set", "one Gram, depth 3", "24 Grams", "24 / 1"],
                grids,
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
