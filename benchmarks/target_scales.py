"""Compare `GraphRegressor()` with `GraphRegressor(target_transform=None)` on tables of molecules, split at random and by scaffolds.

    python benchmarks/target_scales.py FOLDER [FILE.csv ...]

FOLDER has training tables of the TDC ADMET group, with columns Drug and Y; FILE.csv are others, with columns smiles and expt, such as
FreeSolv. At most 1,500 molecules of each, with RDKit descriptors; four folds, and everything is fitted in each training part.
Near-copies are test molecules whose cosine with a training molecule, by the summed kernel, is above 0.95, or that differ from one in
stereo alone.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rdkit import Chem
from scipy.stats import spearmanr

import treegram as tg
from treegram.models.targets import TargetScale, mean_pinball_loss

TABLES = (
    "caco2_wang",
    "lipophilicity_astrazeneca",
    "solubility_aqsoldb",
    "ppbr_az",
    "ld50_zhu",
    "vdss_lombardo",
    "half_life_obach",
    "clearance_microsome_az",
    "clearance_hepatocyte_az",
)
COLUMNS = (("Drug", "Y"), ("smiles", "expt"))
MOST = 1500
N_FOLDS = 4
COVERAGES = (0.8, 0.9, 0.95)
ALIKE = 0.95
PLAIN = TargetScale(1.0, np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.ones(2))


def read(path: Path) -> tuple[tg.Graphs, np.ndarray, list[str]]:
    """Return the molecules of a table as graphs, their targets and their SMILES."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    molecule, target = next(pair for pair in COLUMNS if pair[0] in rows[0])
    ids = np.sort(np.random.default_rng(0).permutation(len(rows))[:MOST])
    smiles = [rows[i][molecule] for i in ids]
    problems = tg.invalid_molecules(smiles)
    kept = [i for i in range(len(smiles)) if i not in problems]
    y = np.array([float(rows[ids[i]][target]) for i in kept])
    smiles = [smiles[i] for i in kept]
    return tg.Graphs.from_smiles(smiles, descriptors="rdkit2d"), y, smiles


def folds(smiles: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each kind of folds, and the fold of each molecule."""
    _, scaffolds = np.unique(tg.scaffold_groups(smiles), return_inverse=True)
    counts = np.bincount(scaffolds)
    sizes, of_scaffold = np.zeros(N_FOLDS), np.zeros(len(counts), int)
    order = np.random.default_rng(0).permutation(len(counts)).tolist()
    for scaffold in sorted(order, key=lambda scaffold: -counts[scaffold]):
        of_scaffold[scaffold] = smallest = int(np.argmin(sizes))
        sizes[smallest] += counts[scaffold]
    yield "scaffold", of_scaffold[scaffolds]
    yield "random", np.random.default_rng(1).permutation(len(smiles)) % N_FOLDS


def largest_cosines(model: tg.GraphRegressor, train: tg.Graphs, test: tg.Graphs) -> np.ndarray:
    """Return the largest cosine of each test graph with a training graph, by the summed kernel."""
    of_train, of_test = (model._selves(graphs)[0] for graphs in (train, test))
    return (model._rows(test) / np.sqrt(np.outer(of_test, of_train))).max(axis=1)


def evaluate(graphs: tg.Graphs, y: np.ndarray, fold_of: np.ndarray, flat: np.ndarray, transform: str | None) -> dict:
    """Return predictions, whether intervals contain the truth, cosines and scores of one kind of model."""
    n = len(y)
    predicted, inside, losses = np.zeros(n), np.zeros((len(COVERAGES), n), bool), np.zeros(N_FOLDS)
    are_alike, scales, start = np.zeros(n, bool), [], time.process_time()
    for fold in range(N_FOLDS):
        train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        model = tg.GraphRegressor(target_transform=transform).fit(graphs[train], y[train])
        scale = model.target_scale_ or PLAIN
        mean, unit = model._mean_and_unit(graphs[test])
        predicted[test] = scale.inverse(mean)
        losses[fold] = mean_pinball_loss(scale, y[test], mean, unit) * len(test)
        for row, coverage in zip(inside, COVERAGES, strict=True):
            half = model._largest_error(coverage) * unit
            row[test] = (scale.inverse(mean - half) <= y[test]) & (y[test] <= scale.inverse(mean + half))
        are_alike[test] = largest_cosines(model, graphs[train], graphs[test]) > ALIKE
        are_alike[test] |= np.isin(flat[test], flat[train])
        scales.append(scale.blend)
    return {
        "mae": np.abs(predicted - y).mean(),
        "rmse": np.sqrt(((predicted - y) ** 2).mean()),
        "rho": spearmanr(predicted, y)[0],
        "crps": losses.sum() / n,
        "inside": inside,
        "are_alike": are_alike,
        "scales": scales,
        "seconds": time.process_time() - start,
    }


def percents(inside: np.ndarray) -> str:
    return " ".join(f"{100 * share:.0f}" for share in inside.mean(axis=1)) if inside.shape[1] else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    args = parser.parse_args()
    print("| table | folds | MAE | RMSE | Spearman | CRPS | coverage | near-copies | blends | CPU seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    totals: dict[str, list[np.ndarray]] = {}
    for path in [*(args.folder / f"{name}.csv" for name in TABLES), *args.files]:
        graphs, y, smiles = read(path)
        flat = np.array([Chem.MolToSmiles(Chem.MolFromSmiles(text), isomericSmiles=False) for text in smiles])
        for name, fold_of in folds(smiles):
            old, new = (evaluate(graphs, y, fold_of, flat, transform) for transform in (None, "auto"))
            alike = new["are_alike"]
            mae, rmse, crps = (f"{100 * (new[score] / old[score] - 1):+.1f} %" for score in ("mae", "rmse", "crps"))
            of_alike = f"{percents(old['inside'][:, alike])} → {percents(new['inside'][:, alike])} ({alike.sum()})"
            cells = [
                path.stem,
                name,
                f"{old['mae']:.4g} → {new['mae']:.4g} ({mae})",
                rmse,
                f"{old['rho']:.3f} → {new['rho']:.3f}",
                crps,
                f"{percents(old['inside'])} → {percents(new['inside'])}",
                of_alike if alike.any() else "none",
                ", ".join(f"{blend:g}" for blend in new["scales"]),
                f"{old['seconds']:.0f} → {new['seconds']:.0f}",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
            for key, scores in (("old", old), ("new", new)):
                totals.setdefault(f"{name}, {key}, near-copies", []).append(scores["inside"][:, alike])
                totals.setdefault(f"{name}, {key}, all", []).append(scores["inside"])
    print()
    for key, parts in totals.items():
        inside = np.concatenate(parts, axis=1)
        print(f"{key}: {inside.shape[1]} molecules, coverage {percents(inside)}")


if __name__ == "__main__":
    main()
