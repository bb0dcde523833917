"""Run GraphClassifier() on published folds beside the published accuracies: ``python benchmarks/published_folds.py FOLDS``.

FOLDS is a folder with the files NAME_splits.json of Errica et al., "A fair comparison of graph neural networks for graph
classification" (ICLR 2020): ten test folds for each data set; everything else is training data. The folds of D&D, COLLAB and
REDDIT are used where TREEGRAM_DATA has their graphs. Our models get the information that the published ones had. The table is
written to results/published_folds.md.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from common import DATA_DIR, machine, table
from threadpoolctl import threadpool_limits

import treegram as tg

ROOT = Path(__file__).parents[1]
# For each set: the vectors that the published models had, then accuracies as published. Best: the best of DGCNN, DiffPool, ECC,
# GIN, GraphSAGE and their baseline without structure (Errica et al.), CGMM, ECGMM, iCGMM and GSPN on the same test folds.
PUBLISHED = {
    "ENZYMES": ("18 attributes", "65.2 ± 6.4, baseline without structure", "59.6"),
    "NCI1": ("none", "80.0 ± 1.4, GIN", "80.0"),
    "PROTEINS_full": ("none", "75.8 ± 3.7, baseline without structure", "73.3"),
    "IMDB-BINARY": ("none", "72.7 ± 3.6, CGMM", "71.2"),
    "IMDB-MULTI": ("none", "49.1 ± 3.5, baseline without structure", "48.5"),
    "DD": ("none", "", ""),
    "COLLAB": ("none", "", ""),
    "REDDIT-BINARY": ("none", "", ""),
    "REDDIT-MULTI-5K": ("none", "", ""),
}


def load(name: str, folds: Path) -> tuple[tg.Graphs, np.ndarray] | None:
    """Return a data set from the folder of the folds or from TREEGRAM_DATA, or None if neither has it."""
    for folder in (folds / "data", DATA_DIR):
        if folder is not None and (Path(folder) / name).is_dir():
            return tg.load_tu(name, data_dir=folder, download=False)
    return None


def run(graphs: tg.Graphs, y: np.ndarray, tests: list[list[int]]) -> tuple[np.ndarray, float]:
    """Return the accuracy in percent on each test fold, and the mean CPU seconds of a fit."""
    accuracies, seconds = [], []
    for test in tests:
        train = np.setdiff1d(np.arange(len(y)), test)
        start = time.process_time()
        model = tg.GraphClassifier(n_jobs=1).fit(graphs[train], y[train])
        seconds.append(time.process_time() - start)
        accuracies.append(100 * model.score(graphs[test], y[test]))
    return np.array(accuracies), float(np.mean(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folds", type=Path, metavar="FOLDS")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "results" / "published_folds.md")
    args = parser.parse_args()
    rows, missing = [], []
    for name, (vectors, best, gin) in PUBLISHED.items():
        data = load(name, args.folds)
        if data is None:
            missing.append(name)
            continue
        graphs, y = data
        if vectors == "none" and graphs.n_attributes:
            graphs = tg.DropAttributes().fit_transform(graphs)
        tests = [fold["test"] for fold in json.loads((args.folds / f"{name}_splits.json").read_text())]
        with threadpool_limits(1):
            accuracies, seconds = run(graphs, y, tests)
        ours = f"**{accuracies.mean():.1f} ± {accuracies.std():.1f}**"
        rows.append([name, vectors, ours, best or "not quoted", gin or "not quoted", f"{seconds:.1f}"])
        print(*rows[-1], sep=" | ", flush=True)
    header = ["data set", "vectors", "GraphClassifier()", "best published", "GIN", "CPU s a fit"]
    text = table("Published folds", header, rows)
    text += f"\nOne thread; mean and standard deviation over the ten test folds. {machine()}.\n"
    if missing:
        text += f"\nNot run, for lack of their graphs: {', '.join(missing)}.\n"
    args.output.write_text(text)


if __name__ == "__main__":
    main()
