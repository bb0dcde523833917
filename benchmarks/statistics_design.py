"""Compare designs of GraphStatistics and defaults of StatisticsKernel by leave-one-out accuracy.

    python benchmarks/statistics_design.py MUTAG ENZYMES     # default: all data sets of the design

A least-squares machine on the kernel predicts each graph from all others, in closed form (``treegram.models.auto``). Data
sets of more than 900 graphs are sampled. Rows are settings of the kernel, and the default without some columns.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.spatial.distance import pdist, squareform

import treegram as tg
from common import load, table
from treegram.models.auto import class_targets, fit_least_squares, most_likely

DESIGN_SETS = (
    *("MUTAG", "BZR_MD", "COX2_MD", "PROTEINS_full", "COIL-RAG", "ENZYMES", "MSRC_9", "Letter-high"),
    *("BZR", "COX2", "DHFR", "AIDS", "NCI1", "PROTEINS", "SYNTHETICnew", "Synthie", "Cuneiform"),
)
N_GRAPHS = 900
WIDTHS = {"default": 1.0, "width 0.5": 0.5, "width 2": 2.0}
# Columns as ranks or on robust scales, and their absolute or squared differences, in place of the kernel's.
OTHERS = {"robust": (True, "cityblock"), "rbf": (False, "sqeuclidean"), "robust, rbf": (True, "sqeuclidean")}
GROUPS = {
    "no distances": ("distance_",),
    "no degrees": ("degree",),
    "no labels": ("label=",),
    "no ends of edges": ("edge=",),
    "no edge labels": ("edge_label=",),
    "no edge vectors": ("edge_x",),
    "no differences": ("_edge_difference",),
    "no covariances": ("_degree_covariance",),
    "no means by label": ("_mean[",),
}


def accuracy(K: np.ndarray, codes: np.ndarray) -> float:
    machine = fit_least_squares(K, class_targets(codes, codes.max() + 1), np.ones(len(codes)))
    return 100 * float((most_likely(machine.loo_predictions) == codes).mean())


def other(kernel: tg.StatisticsKernel, graphs: tg.Graphs, is_robust: bool, metric: str) -> np.ndarray:
    columns = kernel._fitted.columns
    if is_robust:
        table = kernel._rounded(kernel._table(graphs))
        rows = tg.Graphs.from_arrays([0, len(table)], np.empty((0, 2), np.int64), attributes=table)
        columns = np.clip(tg.ScaleAttributes("robust").fit_transform(rows).attributes, -5, 5)
    distances = squareform(pdist(columns, metric))
    return np.exp(-distances / distances.mean())


def without(kernel: tg.StatisticsKernel, words: tuple[str, ...]) -> np.ndarray:
    is_left = [
        not any(name.startswith(w) or (w[0] == "_" and w in name) for w in words) for name in kernel.feature_names_in_
    ]
    distances = squareform(pdist(kernel._fitted.columns[:, is_left], "cityblock"))
    return np.exp(-distances / distances.mean())


def main(names: list[str]) -> None:
    rows: dict[str, list[str]] = {row: [] for row in (*WIDTHS, *OTHERS, *GROUPS)}
    for name in names:
        graphs = load(name)
        chosen = np.sort(np.random.default_rng(0).permutation(len(graphs))[:N_GRAPHS])
        graphs, codes = graphs[chosen], np.unique(graphs.targets[chosen], return_inverse=True)[1]
        for row, width in WIDTHS.items():
            rows[row].append(f"{accuracy(tg.StatisticsKernel(width=width).fit_transform(graphs), codes):.1f}")
        kernel = tg.StatisticsKernel().fit(graphs)
        for row, (is_robust, metric) in OTHERS.items():
            rows[row].append(f"{accuracy(other(kernel, graphs, is_robust, metric), codes):.1f}")
        for row, words in GROUPS.items():
            rows[row].append(f"{accuracy(without(kernel, words), codes):.1f}")
    print(table("Leave-one-out accuracy", ["", *names], [[row, *values] for row, values in rows.items()]))


if __name__ == "__main__":
    main(sys.argv[1:] or list(DESIGN_SETS))
