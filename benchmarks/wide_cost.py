"""Measure the cost of the wide studies: one outer fold of each entry, on generated graphs of the sizes of their data sets.

    python benchmarks/wide_cost.py                        # all, hours
    python benchmarks/wide_cost.py NCI1 --kernels auto WL
    python benchmarks/wide_cost.py --study wide2_large Tox21_MMP --kernels auto WL

No data set is read, so that the study can be planned before any of its results exist. Prints processor time in seconds: of the
fold, and of the work that all folds share.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from treegram import Graphs
from treegram.study import Store, read_study
from treegram.study.data import check_data
from treegram.study.run import Runner

# Graphs, classes, mean and deviation of nodes, mean of edges (None: complete), labels, attributes, edge labels, edge attributes.
SIZES = {
    "MSRC_9": (221, 8, 40.6, 8, 97.9, 10, 0, 0, 0),
    "BZR_MD": (306, 2, 21.3, 4, None, 8, 0, 5, 1),
    "COX2_MD": (303, 2, 26.3, 3, None, 7, 0, 5, 1),
    "Synthie": (400, 4, 95, 6, 172.9, 0, 15, 0, 0),
    "PROTEINS_full": (1113, 2, 39.1, 45, 72.8, 3, 29, 0, 0),
    "AIDS": (2000, 2, 15.7, 10, 16.2, 38, 4, 3, 0),
    "Letter-high": (2250, 15, 4.7, 1.3, 4.5, 0, 2, 0, 0),
    "COIL-RAG": (3900, 100, 3.0, 1.5, 3.0, 0, 64, 0, 1),
    "NCI1": (4110, 2, 29.9, 13, 32.3, 37, 0, 0, 0),
    "GREC": (1100, 22, 11.5, 5, 12.2, 4, 2, 2, 2),
    "PTC_MR": (344, 2, 14.3, 8, 14.7, 18, 0, 4, 0),
    "ER_MD": (446, 2, 21.3, 4, None, 10, 0, 5, 1),
    "MSRC_21": (563, 20, 77.5, 10, 198.3, 22, 0, 0, 0),
    "IMDB-BINARY": (1000, 2, 19.8, 10, 96.5, 0, 0, 0, 0),
    "Fingerprint": (2800, 15, 5.4, 3, 4.4, 0, 2, 0, 2),
    "Mutagenicity": (4337, 2, 30.3, 20, 30.8, 14, 0, 3, 0),
    "Tox21_MMP": (7320, 2, 17.5, 9, 17.8, 50, 0, 4, 0),
    "Tox21_ARE": (7167, 2, 16.3, 9, 16.5, 50, 0, 4, 0),
    "Tox21_AHR": (8169, 2, 18.1, 9, 18.5, 50, 0, 4, 0),
}


def generate(name: str, seed: int = 0) -> tuple[Graphs, np.ndarray]:
    """Generate graphs whose labels and vectors depend a little on their class."""
    n_graphs, n_classes, mean, deviation, n_edges, n_labels, d, n_edge_labels, d_edges = SIZES[name]
    rng = np.random.default_rng(seed)
    y = np.arange(n_graphs) % n_classes
    shares, centers = rng.dirichlet(np.full(max(n_labels, 1), 2.0), n_classes), rng.normal(size=(n_classes, d))
    found: dict[str, list] = {"labels": [], "attributes": [], "edge_labels": [], "edge_attributes": []}
    sizes, edges = [], []
    for c in y:
        n = max(2 if mean < 10 else 4, round(rng.gamma((mean / deviation) ** 2, deviation**2 / mean)))
        pairs = _edges(n, None if n_edges is None else n_edges / mean, rng)
        sizes.append(n)
        edges.append(pairs)
        found["labels"].append(rng.choice(max(n_labels, 1), n, p=0.7 * shares.mean(axis=0) + 0.3 * shares[c]).tolist())
        found["attributes"].append(rng.normal(size=(n, d)) + 0.5 * centers[c])
        found["edge_labels"].append(rng.integers(max(n_edge_labels, 1), size=len(pairs)).tolist())
        found["edge_attributes"].append(rng.gamma(2, 2 + 0.3 * (c % 2), size=(len(pairs), d_edges)))
    has = {"labels": n_labels, "attributes": d, "edge_labels": n_edge_labels, "edge_attributes": d_edges}
    return Graphs.from_edges(edges, n_nodes=sizes, **{key: found[key] for key, there in has.items() if there}), y


def _edges(n: int, per_node: float | None, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return all pairs, or a tree and enough further edges."""
    if per_node is None:
        return [(i, j) for i in range(n) for j in range(i)]
    tree = [(i, int(rng.integers(max(0, i - 4), i))) for i in range(1, n)]
    n_more = max(0, round(n * per_node) - len(tree))
    more = [(int(i), int(j)) for i, j in rng.integers(n, size=(4 * n_more, 2)) if i > j]
    return list(dict.fromkeys(tree + more))[: len(tree) + n_more]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", choices=[[], *SIZES])
    parser.add_argument("--study", default="wide", help="wide, wide2 or wide2_large (default: wide)")
    parser.add_argument("--kernels", nargs="+")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    study = read_study(args.study)
    part = study.part(args.datasets or None, args.kernels)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "cost.sqlite") as store:
        runner = Runner(study, store, store.begin_run("benchmarks/wide_cost.py").id, 1, 0.0)
        for name in part.datasets:
            (data,) = check_data({name: generate(name)}, study.protocol)
            for entry in part.kernels:
                start = time.process_time()
                rows = runner.rows(0, data, entry)
                fold = next(rows).seconds
                rows.close()
                once = time.process_time() - start - fold
                planned = study.protocol.outer_folds * fold * study.repeats_of(entry, name) + once
                print(
                    f"{name:14} {entry.name:14} fold {fold:8.2f}  shared {once:8.2f}  planned {planned:8.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
