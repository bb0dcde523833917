"""Compare views of molecules in the automatic models, by leave-scaffold-out predictions on training tables alone.

    python benchmarks/molecule_views.py FOLDER --tables caco2_wang dili   # FOLDER/caco2_wang.csv has the columns Drug (SMILES) and Y
    python benchmarks/molecule_views.py FOLDER --time lipophilicity_astrazeneca   # milliseconds per molecule of 300

A table whose Y has two values is one of classes. Each table is a sample of molecules, the same for all views, in folds that share no
scaffold. Measurements become normal scores first, so that the CRPS of tables can be averaged. A view is better if the
CRPS is lower, and Spearman's correlation, AUROC and AUPRC are higher; the error is that of the mean over tables.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import norm, rankdata, spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GroupKFold

import treegram as tg
from common import best_of, machine, table

NUMBERS = [
    "caco2_wang",
    "half_life_obach",
    "vdss_lombardo",
    "clearance_microsome_az",
    "clearance_hepatocyte_az",
    "ppbr_az",
]
CLASSES = ["bioavailability_ma", "dili", "cyp2c9_substrate_carbonmangels", "cyp2d6_substrate_carbonmangels"]
RICH = ["element", "degree", "hydrogens", "formal_charge", "in_ring", "aromatic", "chirality"]
VIEWS: dict[str, dict[str, Any]] = {
    "elements and descriptors": {"descriptors": "rdkit2d"},
    "and ErG": {"descriptors": ["rdkit2d", "erg"]},
    "and pharmacophores": {"descriptors": "rdkit2d", "labels": ["element", "pharmacophore"]},
    "and rich labels": {"descriptors": "rdkit2d", "labels": RICH},
    "and ErG, pharmacophores": {"descriptors": ["rdkit2d", "erg"], "labels": ["element", "pharmacophore"]},
    "and all three": {"descriptors": ["rdkit2d", "erg"], "labels": [*RICH, "pharmacophore"]},
}
Floats = NDArray[np.float64]


def read(path: Path, most: int) -> tuple[list[str], Floats]:
    """Return a sample of the molecules of a table, without invalid ones, and their targets."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows = [rows[i] for i in np.sort(np.random.default_rng(0).permutation(len(rows))[:most])]
    invalid = tg.invalid_molecules([row["Drug"] for row in rows])
    rows = [row for i, row in enumerate(rows) if i not in invalid]
    return [row["Drug"] for row in rows], np.array([float(row["Y"]) for row in rows])


def convert(smiles: list[str], options: dict[str, Any]) -> tg.Graphs:
    """Return the graphs; rich labels become one text beside the element."""
    graphs = tg.Graphs.from_smiles(smiles, **options)
    if "degree" not in options.get("labels", ""):
        return graphs
    values = [(value[0], " ".join(map(str, value[: len(RICH)])), *value[len(RICH) :]) for value in graphs.label_values]
    return graphs.assign(labels=[values[code] for code in graphs.labels])


def score_numbers(graphs: tg.Graphs, z: Floats, splits: list[Any]) -> tuple[float, float]:
    """Return the CRPS of left-out predictions, and Spearman's correlation."""
    mean, std = np.empty_like(z), np.empty_like(z)
    for train, test in splits:
        model = tg.GraphRegressor().fit(graphs[train], z[train])
        mean[test], std[test] = model.predict(graphs[test], return_std=True)
    t = (z - mean) / std
    crps = std * (t * (2 * norm.cdf(t) - 1) + 2 * norm.pdf(t) - 1 / np.sqrt(np.pi))
    return float(crps.mean()), float(spearmanr(mean, z)[0])


def score_classes(graphs: tg.Graphs, y: Floats, splits: list[Any]) -> tuple[float, float]:
    """Return AUROC and AUPRC, means over the folds."""
    scores = []
    for train, test in splits:
        chances = tg.GraphClassifier().fit(graphs[train], y[train]).predict_proba(graphs[test])[:, 1]
        scores.append((roc_auc_score(y[test], chances), average_precision_score(y[test], chances)))
    auroc, auprc = np.mean(scores, axis=0)
    return float(auroc), float(auprc)


def time_parts(smiles: list[str]) -> str:
    """Return a table of the processor time of each part of a conversion, without reading SMILES."""
    from rdkit import Chem
    from rdkit.Chem import Descriptors

    def one_by_one(mols: list[Any]) -> None:
        for mol in mols:
            Descriptors.CalcMolDescriptors(Chem.RemoveHs(mol), missingVal=np.nan)

    def convert_with(**options: Any) -> Callable[[list[Any]], object]:
        return lambda mols: tg.Graphs.from_rdkit(mols, **options)

    parts = {
        "RDKit's descriptors, one by one": one_by_one,
        "graphs": convert_with(),
        "graphs with pharmacophores": convert_with(labels=["element", "pharmacophore"]),
        "graphs and rdkit2d": convert_with(descriptors="rdkit2d"),
        "graphs and erg": convert_with(descriptors="erg"),
    }
    times = dict.fromkeys(parts, np.inf)
    for _ in range(3):
        for name, convert_all in parts.items():
            mols = [Chem.MolFromSmiles(text) for text in smiles]  # RDKit keeps results on the molecule
            times[name] = min(times[name], best_of(lambda mols=mols, run=convert_all: run(mols), rounds=1)[0])
    rows = [[name, f"{1000 * seconds / len(smiles):.2f}"] for name, seconds in times.items()]
    return table("Milliseconds per molecule", ["part", "ms"], rows)


def summarize(scores: Floats, *, relative: bool) -> list[str]:
    """Return the mean change to the first view, with its standard error over tables; ``scores`` are (n_tables, n_views)."""
    changes = 100 * (scores / scores[:, :1] - 1 if relative else scores - scores[:, :1])
    errors = (
        changes.std(axis=0, ddof=1) / np.sqrt(len(changes)) if len(changes) > 1 else np.full(changes.shape[1], np.nan)
    )
    return [f"{change:+.2f} ± {error:.2f}" for change, error in zip(changes.mean(axis=0), errors, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", nargs="+", default=NUMBERS + CLASSES)
    parser.add_argument("--most", type=int, default=500, help="molecules of a table")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--time", metavar="TABLE", help="measure the conversion alone")
    args = parser.parse_args()
    if args.time:
        print(time_parts(read(args.folder / f"{args.time}.csv", 300)[0]))
        print(machine())
        return
    warnings.simplefilter("ignore")
    by_task: dict[str, list[list[tuple[float, float]]]] = {"numbers": [], "classes": []}
    rows = []
    for name in args.tables:
        smiles, y = read(args.folder / f"{name}.csv", args.most)
        splits = list(GroupKFold(args.folds).split(smiles, groups=tg.scaffold_groups(smiles)))
        is_class = len(np.unique(y)) == 2
        targets = y if is_class else ndtri((rankdata(y) - 0.5) / len(y))
        score = score_classes if is_class else score_numbers
        scores = [score(convert(smiles, options), targets, splits) for options in VIEWS.values()]
        by_task["classes" if is_class else "numbers"].append(scores)
        rows.append([name, len(y), *(f"{first:.4f}, {second:.4f}" for first, second in scores)])
        print(*rows[-1], sep=" | ", flush=True)
    print(table("CRPS and Spearman's correlation, or AUROC and AUPRC", ["table", "molecules", *VIEWS], rows))
    columns = [list(VIEWS)]
    for task, is_relative in (("numbers", (True, False)), ("classes", (False, False))):
        both = np.array(by_task[task]).reshape(-1, len(VIEWS), 2)
        columns += [
            summarize(both[:, :, i], relative=is_relative[i]) if len(both) else [""] * len(VIEWS) for i in (0, 1)
        ]
    header = ["view", "CRPS, %", "Spearman, points", "AUROC, points", "AUPRC, points"]
    print(table("Change to the first view", header, list(zip(*columns, strict=True))))
    print(machine())


if __name__ == "__main__":
    main()
