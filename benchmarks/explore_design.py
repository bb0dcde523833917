"""Compare kernels for users who name none: nearest graphs and clusters should agree with the classes.

    python benchmarks/explore_design.py MUTAG ENZYMES     # default: all data sets of the design

Prints the accuracy of the nearest other graph's class and, after a slash, the adjusted mutual information of classes and k-means
clusters (as many as classes, on the first 20 components of kernel PCA), both in percent. Data sets of more than 500 graphs are sampled.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import KernelPCA
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.pipeline import make_pipeline

import treegram as tg
from common import load, table

DESIGN_SETS = (
    *("MUTAG", "BZR", "COX2", "DHFR", "ENZYMES", "PROTEINS", "SYNTHETICnew", "Cuneiform", "AIDS", "NCI1"),
    *("MSRC_9", "Letter-high", "Synthie"),
)
N_GRAPHS = 500


def kernels(graphs: tg.Graphs) -> dict[str, tg.KernelSum]:
    """Return the kernels to compare; those on vectors are left out, and sums lose them, if there are none."""
    bonds = {"use_edge_labels": graphs.edge_labels is not None}
    options = {"normalize": "tanimoto", **bonds}

    def bare(kernel: object) -> object:
        return make_pipeline(tg.DropAttributes(), kernel) if graphs.n_attributes else kernel

    numbers = tg.StatisticsKernel()
    structure = {"WL(1)": tg.WL(1, **options), "WL(3)": tg.WL(3, **options)}
    structure |= {
        "WLOA(1)": tg.WLOA(1, **options),
        "WLOA(3)": tg.WLOA(3, **options),
        "ODDST(3)": tg.ODDST(3, lam=1.2, **bonds),
    }
    found: dict[str, object] = {name: bare(kernel) for name, kernel in structure.items()} | {"statistics": numbers}
    vectors = []
    if graphs.n_attributes:
        scale = tg.ScaleAttributes("robust")
        found["vectors 0"] = make_pipeline(scale, tg.WLCL(0, gamma="narrow", missing_labels="constant"))
        found["vectors 1"] = make_pipeline(scale, tg.WLCL(1, gamma="narrow", **bonds))
        found["vectors 3"] = make_pipeline(scale, tg.WLCL(3, gamma="narrow", **bonds))
        vectors = [found["vectors 1"]]
    for name in ("WL(1)", "WLOA(1)", "WLOA(3)"):
        found[f"{name} + statistics"] = tg.KernelSum([found[name], numbers])
        found[f"{name} + statistics + vectors 1"] = tg.KernelSum([found[name], numbers, *vectors])
        found[f"{name} + vectors 1"] = tg.KernelSum([found[name], *vectors])
    return found


def scores(K: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Return the accuracy of the nearest other graph, and the agreement of clusters with classes."""
    selves = K.diagonal()
    squares = selves[:, None] + selves - 2 * K
    np.fill_diagonal(squares, np.inf)
    nearest = float((codes[squares.argmin(axis=1)] == codes).mean())
    places = KernelPCA(20, kernel="precomputed", eigen_solver="dense").fit_transform(K)
    clusters = KMeans(codes.max() + 1, n_init=10, random_state=0).fit_predict(places)
    return 100 * nearest, 100 * float(adjusted_mutual_info_score(codes, clusters))


def main(names: list[str]) -> None:
    """Print the table."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        graphs = load(name)
        ids = np.sort(np.random.default_rng(0).permutation(len(graphs))[:N_GRAPHS])
        graphs, codes = graphs[ids], np.unique(graphs.targets[ids], return_inverse=True)[1]
        for kernel_name, kernel in kernels(graphs).items():
            with warnings.catch_warnings(action="ignore"):  # kernels do not use all data
                rows.setdefault(kernel_name, [(np.nan, np.nan)] * names.index(name)).append(
                    scores(kernel.fit_transform(graphs), codes)
                )
        for cells in rows.values():
            cells += [(np.nan, np.nan)] * (names.index(name) + 1 - len(cells))
        print(name, file=sys.stderr, flush=True)
    lines = []
    for kernel_name, cells in rows.items():
        means = np.nanmean(np.array(cells), axis=0)
        lines.append(
            [
                kernel_name,
                *(f"{a:.0f} / {b:.0f}" if a == a else "" for a, b in cells),
                f"{means[0]:.1f} / {means[1]:.1f}",
            ]
        )
    print(table("Nearest neighbor accuracy / cluster agreement", ["kernel", *names, "mean"], lines))


if __name__ == "__main__":
    main(sys.argv[1:] or list(DESIGN_SETS))
