"""Compare the automatic models with what chemists would pick: FreeSolv, Photoswitch and BBBP, random and scaffold splits.

    python benchmarks/bench_molecules.py                                # the folder "molecules" beside the data sets
    python benchmarks/bench_molecules.py --chemprop /path/to/chemprop   # chemprop too, from an environment of its own

Each split has 80 % of the molecules for training and 20 % for the test. In a scaffold split no scaffold is on both sides; a scaffold
with more molecules than half of the test part is always trained on, the others come in random order. All models get the same
molecules. None is tuned by hand: the models of treegram and the Gaussian process on fingerprints choose for themselves inside the training part.
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rdkit
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import Descriptors, rdFingerprintGenerator
from scipy.spatial.distance import cdist
from scipy.stats import norm
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import roc_auc_score

import treegram as tg
from common import DATA_DIR, machine, table

Numbers = NDArray[np.float64]
Result = dict[str, float]
Model = Callable[
    [list[str], Numbers, list[str]], tuple[Numbers, Numbers | None]
]  # to predictions, and deviations or None

N_SPLITS, TEST = 3, 0.2
COVERAGES = (0.5, 0.8, 0.95)
SETS = {  # file: column of SMILES, target, and whether it is a class
    "FreeSolv": ("smiles", "expt", False),
    "Photoswitch": ("SMILES", "E isomer pi-pi* wavelength in nm", False),
    "BBBP": ("smiles", "p_np", True),
}


# -------------------------------------------------------------------- data


def load_table(path: Path, smiles_column: str, target: str) -> tuple[list[str], Numbers]:
    """Return the molecules that have a target and that RDKit can read."""
    with path.open() as file:
        rows = [(row[smiles_column], row[target]) for row in csv.DictReader(file) if row[target]]
    invalid = tg.invalid_molecules([smiles for smiles, _ in rows])
    kept = [row for i, row in enumerate(rows) if i not in invalid]
    return [smiles for smiles, _ in kept], np.array([float(value) for _, value in kept])


def random_split(smiles: list[str], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng(seed).permutation(len(smiles))
    n_test = round(TEST * len(smiles))
    return order[n_test:], order[:n_test]


def scaffold_split(smiles: list[str], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    _, groups = np.unique(tg.scaffold_groups(smiles), return_inverse=True)
    n_test = round(TEST * len(smiles))
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(sizes[order] > n_test / 2, kind="stable")]  # large scaffolds last
    is_test = np.isin(groups, order[np.cumsum(sizes[order]) <= n_test])
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


SPLITS = {"random": random_split, "scaffold": scaffold_split}


# -------------------------------------------------------------------- models


def automatic_regressor(train: list[str], y: Numbers, test: list[str]) -> tuple[Numbers, Numbers | None]:
    model = tg.GraphRegressor().fit(tg.Graphs.from_smiles(train), y)
    mean, std = model.predict(tg.Graphs.from_smiles(test), return_std=True)
    return mean, std


def automatic_classifier(train: list[str], y: Numbers, test: list[str]) -> tuple[Numbers, Numbers | None]:
    model = tg.GraphClassifier().fit(tg.Graphs.from_smiles(train), y.astype(int))
    return model.predict_proba(tg.Graphs.from_smiles(test))[:, 1], None


def morgan_counts(smiles: list[str]) -> Numbers:
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    return np.array([morgan.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles], dtype=np.float64)


def descriptors(smiles: list[str]) -> Numbers:
    rows = [
        list(Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(text), missingVal=np.nan).values()) for text in smiles
    ]
    values = np.array(rows, dtype=np.float64)
    return np.where(np.abs(values) < 1e6, values, np.nan)


def on_table(columns: Callable[[list[str]], Numbers], make: Callable[[], Any]) -> Model:
    """Return a model of scikit-learn on a table; a classifier gives the probability of the second class."""

    def fit_and_predict(train: list[str], y: Numbers, test: list[str]) -> tuple[Numbers, Numbers | None]:
        model = make().fit(columns(train), y)
        X = columns(test)
        return (model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)), None

    return fit_and_predict


def tanimoto_process(train: list[str], y: Numbers, test: list[str]) -> tuple[Numbers, Numbers | None]:
    """Fit a Gaussian process with the Tanimoto kernel of counts; scale and noise have the largest likelihood."""
    X, X_new = morgan_counts(train), morgan_counts(test)
    mean, unit = y.mean(), y.std()
    z = (y - mean) / unit
    values, vectors = np.linalg.eigh(tanimoto(X, X))
    noises = np.logspace(-4, 1, 51)
    damped = np.maximum(values, 0.0) + noises[:, None]
    scales = ((vectors.T @ z) ** 2 / damped).mean(axis=1)
    best = np.argmin(np.log(damped).sum(axis=1) + len(z) * np.log(scales))
    rows = tanimoto(X_new, X) @ vectors
    predicted = rows @ ((vectors.T @ z) / damped[best])
    variance = scales[best] * (1.0 + noises[best] - (rows**2 / damped[best]).sum(axis=1))
    return mean + unit * predicted, unit * np.sqrt(np.maximum(variance, 1e-12))


def tanimoto(X: Numbers, Y: Numbers) -> Numbers:
    totals, distances = X.sum(axis=1)[:, None] + Y.sum(axis=1), cdist(X, Y, "cityblock")
    similarities: Numbers = (totals - distances) / np.maximum(totals + distances, 1e-12)
    return similarities


def chemprop(command: str, kind: str) -> Model:
    """Return chemprop with its default settings, run as a command in a folder of its own."""

    def fit_and_predict(train: list[str], y: Numbers, test: list[str]) -> tuple[Numbers, Numbers | None]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _write_table(folder / "train.csv", train, y)
            _write_table(folder / "test.csv", test, None)
            options = ["--task-type", kind, "--output-dir", "model", "--accelerator", "cpu", "--num-workers", "0"]
            for words in (
                ["train", "--data-path", "train.csv", *options],
                ["predict", "--test-path", "test.csv", "--model-paths", "model", "--preds-path", "out.csv"],
            ):
                subprocess.run([command, *words], cwd=folder, check=True, capture_output=True)
            with (folder / "out.csv").open() as file:
                return np.array([float(row["y"]) for row in csv.DictReader(file)]), None

    return fit_and_predict


def _write_table(path: Path, smiles: list[str], y: Numbers | None) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles"] if y is None else ["smiles", "y"])
        writer.writerows([text] if y is None else [text, y[i]] for i, text in enumerate(smiles))


def models(is_class: bool, chemprop_command: str | None) -> dict[str, Model]:
    if is_class:
        found = {
            "treegram, GraphClassifier": automatic_classifier,
            "forest, Morgan counts": on_table(morgan_counts, lambda: RandomForestClassifier(500, random_state=0)),
            "boosting, descriptors": on_table(descriptors, lambda: HistGradientBoostingClassifier(random_state=0)),
        }
    else:
        found = {
            "treegram, GraphRegressor": automatic_regressor,
            "Gaussian process, Tanimoto of Morgan counts": tanimoto_process,
            "forest, Morgan counts": on_table(morgan_counts, lambda: RandomForestRegressor(500, random_state=0)),
            "boosting, descriptors": on_table(descriptors, lambda: HistGradientBoostingRegressor(random_state=0)),
        }
    if chemprop_command:
        found["chemprop, default settings"] = chemprop(chemprop_command, "classification" if is_class else "regression")
    return found


# -------------------------------------------------------------------- scores


def scores(y: Numbers, predicted: Numbers, std: Numbers | None, is_class: bool) -> Result:
    if is_class:
        return {"ROC AUC": float(roc_auc_score(y, predicted))}
    found = {"RMSE": float(np.sqrt(np.mean((predicted - y) ** 2)))}
    if std is not None:
        found["NLPD"] = float(-norm.logpdf(y, predicted, std).mean())
        for coverage in COVERAGES:
            half = norm.ppf(0.5 + coverage / 2) * std
            found[f"in {coverage:.0%} interval"] = float((np.abs(y - predicted) <= half).mean())
    return found


def processor_seconds() -> float:
    """Return the processor time of this process and of the commands that it ran."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def compare(name: str, folder: Path, chemprop_command: str | None) -> str:
    smiles_column, target, is_class = SETS[name]
    smiles, y = load_table(folder / f"{name}.csv", smiles_column, target)
    rows: list[list[object]] = []
    columns = ["ROC AUC"] if is_class else ["RMSE", "NLPD", *(f"in {c:.0%} interval" for c in COVERAGES)]
    for kind, split in SPLITS.items():
        for title, model in models(is_class, chemprop_command).items():
            results, seconds = [], 0.0
            for seed in range(N_SPLITS):
                train, test = split(smiles, seed)
                start = processor_seconds()
                predicted, std = model([smiles[i] for i in train], y[train], [smiles[i] for i in test])
                seconds += processor_seconds() - start
                results.append(scores(y[test], predicted, std, is_class))
            means = [f"{np.mean([one[key] for one in results]):.3f}" if key in results[0] else "" for key in columns]
            each = ", ".join(f"{one[columns[0]]:.3f}" for one in results)
            rows.append([kind, title, *means, each, f"{seconds / N_SPLITS:.1f}"])
    heading = f"{name}: {len(smiles)} molecules, {target}, means over {N_SPLITS} splits"
    return table(heading, ["split", "model", *columns, f"{columns[0]} of each split", "CPU s"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(DATA_DIR).parent / "molecules" if DATA_DIR else None
    parser.add_argument(
        "--folder", type=Path, default=default, help="folder with FreeSolv.csv, Photoswitch.csv and BBBP.csv"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--chemprop", help="the command chemprop")
    args = parser.parse_args()
    if args.folder is None:
        parser.error("--folder is needed: there is no folder of data sets")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in args.sets:
            print(compare(name, args.folder, args.chemprop), flush=True)
    print(f"{machine()}, rdkit {rdkit.__version__}")


if __name__ == "__main__":
    main()
