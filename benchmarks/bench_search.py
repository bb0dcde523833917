"""Measure the automatic classifier: processor seconds of fit and predict, and accuracy, as the number of graphs grows.

Molecules of NCI1, a tenth of them held out, and 10,000 generated ones; one thread, after everything is compiled. Beside it the
search of the first version, as far as it takes minutes: a support vector machine on each candidate, all values of C, ten folds.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import treegram as tg
from common import load, table
from treegram.models.auto import auto_candidates
from treegram.models.svc import folds

SIZES = (200, 1000, 4000)
N_GENERATED = 10_000
MOST_FOR_FOLDS = 4000


def measure(model: Any, graphs: tg.Graphs, codes: np.ndarray) -> str:
    train, test = folds(codes, 10, 0)[0]
    start = time.process_time()
    model.fit(graphs[train], codes[train])
    fitted = time.process_time()
    accuracy = 100 * float((model.predict(graphs[test]) == codes[test]).mean())
    return f"{fitted - start:.1f} / {time.process_time() - fitted:.2f} s, {accuracy:.1f} %"


def sets() -> list[tuple[str, tg.Graphs, np.ndarray]]:
    graphs = load("NCI1")
    codes = np.unique(graphs.targets, return_inverse=True)[1].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(graphs))
    found = [(f"NCI1, {n:,}", graphs[np.sort(order[:n])], codes[np.sort(order[:n])]) for n in SIZES]
    smiles, numbers = tg.make_molecules(N_GENERATED, random_state=0)
    above = (numbers > np.median(numbers)).astype(np.int64)
    return [*found, (f"generated, {N_GENERATED:,}", tg.Graphs.from_smiles(smiles), above)]


def search_by_folds(graphs: tg.Graphs) -> tg.GraphSVC:
    return tg.GraphSVC([one.kernel for one in auto_candidates(graphs)], param_grid={})


def main() -> str:
    rows = []
    for name, graphs, codes in sets():
        if not rows:
            for model in (tg.GraphClassifier(), search_by_folds(graphs)):
                model.fit(graphs[:60], np.arange(60) % 2)  # compiles
        first = measure(search_by_folds(graphs), graphs, codes) if len(graphs) <= MOST_FOR_FOLDS else "not run"
        rows.append([name, measure(tg.GraphClassifier(), graphs, codes), first])
    return table(
        "The automatic classifier: fit / predict, processor seconds, and accuracy on a held-out tenth",
        ["graphs", "`GraphClassifier()`", "all candidates by cross-validation"],
        rows,
    )


if __name__ == "__main__":
    print(main())
