"""Measure the held-out coverage of GraphGP's 90 % intervals on a generated regression task.

Random trees with 8 to 20 nodes and two standard normal attributes per node; the target is the mean over the edges of
cos(distance between the attributes of their ends), plus normal noise of a given share of its standard deviation.
"""

from __future__ import annotations

import numpy as np

import treegram as tg
from common import table

N_TRAIN, N_TEST, REPEATS = 150, 150, 10
NOISES = (0.1, 0.5, 1.0)
GRID = {"depth": [0, 1, 2], "lam": [0.5, 1.0, 1.2]}


def generate(n: int, noise: float, seed: int) -> tuple[tg.Graphs, np.ndarray]:
    rng = np.random.default_rng(seed)
    edges, attributes, targets = [], [], np.empty(n)
    for i in range(n):
        n_nodes = int(rng.integers(8, 21))
        ends = [(int(rng.integers(node)), node) for node in range(1, n_nodes)]
        X = rng.normal(size=(n_nodes, 2))
        edges.append(ends)
        attributes.append(X)
        targets[i] = np.mean([np.cos(np.linalg.norm(X[a] - X[b])) for a, b in ends])
    targets += noise * targets.std() * rng.normal(size=n)
    return tg.Graphs.from_edges(edges, attributes=attributes), targets


def measure(noise: float) -> list[object]:
    covered, r2, widths = [], [], []
    for repeat in range(REPEATS):
        graphs, y = generate(N_TRAIN + N_TEST, noise, repeat)
        model = tg.GraphGP(tg.ODDCL(), param_grid=GRID).fit(graphs[:N_TRAIN], y[:N_TRAIN])
        mean, std = model.predict(graphs[N_TRAIN:], return_std=True)
        covered.append(np.mean(np.abs(y[N_TRAIN:] - mean) <= 1.645 * std))
        r2.append(model.score(graphs[N_TRAIN:], y[N_TRAIN:]))
        widths.append(2 * 1.645 * std.mean() / y.std())
    return [
        f"{noise:g}",
        f"{np.mean(r2):.2f}",
        f"**{100 * np.mean(covered):.1f} %**",
        f"{100 * min(covered):.0f} to {100 * max(covered):.0f} %",
        f"{np.mean(widths):.2f}",
    ]


def main() -> str:
    return table(
        f"GraphGP: held-out coverage of 90 % intervals, {REPEATS} x {N_TRAIN} fitted and {N_TEST} held-out graphs",
        ["noise, of the target's deviation", "R2", "coverage", "over the repeats", "width, of the target's deviation"],
        [measure(noise) for noise in NOISES],
    )


if __name__ == "__main__":
    print(main())
