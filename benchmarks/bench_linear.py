"""Measure linear models on rows beside the models on Gram matrices: processor seconds of fit, memory, and accuracy on left-out graphs.

``python benchmarks/bench_linear.py``: molecules of NCI1, a fifth of them left out; with ``TREEGRAM_MOLECULES``, a folder of tables of
molecules, also each table named on the command line, such as ``HIV.csv:smiles:HIV_active``, except rows whose ``split`` is
"test". Where a table has a split, its rows "train" are fitted and all others are left out; otherwise a fifth is left out. Large scenes
of three kinds come last. ``bench_scale.py`` goes on to a million molecules.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from sklearn.metrics import average_precision_score, roc_auc_score

import treegram as tg
from common import load, table
from treegram.models import linear

SIZES = (2000, 4000, 6000, 8000)
MOST_FOR_GRAMS = 10_500  # graphs
SCENES = ((32, 1300, True, 10), (60, 1000, True, 0), (60, 3000, False, 0))  # graphs, nodes, vectors, labels


def measure(graphs: tg.Graphs, y: np.ndarray, train: np.ndarray, test: np.ndarray, *, on_rows: bool) -> str:
    switch, linear.SWITCH = linear.SWITCH, 0 if on_rows else sys.maxsize
    is_class = len(np.unique(y)) == 2
    model: Any = tg.GraphClassifier() if is_class else tg.GraphRegressor()
    start = time.process_time()
    model.fit(graphs[train], y[train].astype(int) if is_class else y[train])
    seconds = time.process_time() - start
    linear.SWITCH = switch
    if not is_class:
        errors = np.abs(model.predict(graphs[test]) - y[test])
        return f"{seconds:.1f} s, MAE {errors.mean():.3f}"
    decisions = model.decision_function(graphs[test])
    accuracy = 100 * np.mean((decisions > 0) == y[test])
    area, precision = roc_auc_score(y[test], decisions), average_precision_score(y[test], decisions)
    return f"{seconds:.1f} s, {accuracy:.1f} %, AUC {area:.3f}, AP {precision:.3f}"


def read(name: str) -> tuple[tg.Graphs, np.ndarray, np.ndarray | None]:
    """Read ``file:column of SMILES:column of targets``; return graphs, targets, and whether each is in the training part."""
    file, smiles, target = name.split(":")
    with (Path(os.environ["TREEGRAM_MOLECULES"]) / file).open() as lines:
        rows = [row for row in csv.DictReader(lines) if row.get("split") != "test"]
    bad = set(tg.invalid_molecules([row[smiles] for row in rows]))
    rows = [row for i, row in enumerate(rows) if i not in bad]
    graphs, y = tg.Graphs.from_smiles([row[smiles] for row in rows]), np.array([float(row[target]) for row in rows])
    return graphs, y, np.array([row["split"] == "train" for row in rows]) if "split" in rows[0] else None


def compare(name: str, graphs: tg.Graphs, y: np.ndarray, is_train: np.ndarray | None) -> list[list[str]]:
    order = np.random.default_rng(0).permutation(len(y))
    test = np.sort(order[: len(y) // 5]) if is_train is None else np.flatnonzero(~is_train)
    train = np.setdiff1d(order, test, assume_unique=True)
    train = order[np.isin(order, train)]
    rows = []
    for size in [*(size for size in SIZES if size < len(train)), len(train)]:
        chosen = np.sort(train[:size])
        grams = measure(graphs, y, chosen, test, on_rows=False) if size <= MOST_FOR_GRAMS else "not run"
        rows.append([f"{name}, {size:,}", grams, measure(graphs, y, chosen, test, on_rows=True)])
    return rows


def scene(n_graphs: int, n: int, n_labels: int, *, has_vectors: bool) -> tg.Graphs:
    """Return random geometric graphs in three dimensions, with about six edges at each node."""
    rng = np.random.default_rng(0)
    places = [rng.random((n, 3)) for _ in range(n_graphs)]
    radius = (6 / n / 4.19) ** (1 / 3)
    return tg.Graphs.from_edges(
        [cKDTree(of_graph).query_pairs(radius, output_type="ndarray") for of_graph in places],
        n_nodes=[n] * n_graphs,
        labels=[rng.integers(n_labels, size=n).tolist() for _ in places] if n_labels else None,
        attributes=places if has_vectors else None,
    )


def large_graphs() -> list[list[str]]:
    rows = []
    for n_graphs, n, has_vectors, n_labels in SCENES:
        graphs, start = scene(n_graphs, n, n_labels, has_vectors=has_vectors), time.process_time()
        model = tg.GraphClassifier().fit(graphs, np.arange(n_graphs) % 2)
        left_out = [record["candidate"] for record in model.search_results_ if "it would take" in record["note"]]
        name = f"{n_graphs} graphs of {n:,} nodes" + ", with vectors" * has_vectors
        rows.append([name, f"{time.process_time() - start:.1f} s", ", ".join(left_out)])
    return rows


def main(names: list[str] | None = None) -> str:
    digits, classes = tg.load_digits_graphs()
    tg.GraphClassifier().fit(digits[:60], classes[:60])  # compiles
    graphs = load("NCI1")
    graphs, y = graphs.assign(targets=None), np.unique(graphs.targets, return_inverse=True)[1].astype(float)
    sets = [("NCI1", graphs, y, None), *((name.split(":")[0], *read(name)) for name in names or ())]
    for of_regime in (True, False):
        measure(graphs[:300], y[:300], np.arange(200), np.arange(200, 300), on_rows=of_regime)
    rows = [row for of_set in sets for row in compare(*of_set)]
    parts = [table("Fit and accuracy on left-out graphs", ["graphs", "Gram matrices", "rows"], rows)]
    parts.append(table("Large graphs", ["data", "fit", "left out as out of proportion"], large_graphs()))
    return "\n".join(parts)


if __name__ == "__main__":
    print(main(sys.argv[1:]))
