"""Compare the automatic models with what chemists would pick: FreeSolv, Photoswitch and BBBP, random and scaffold splits.

    python benchmarks/bench_molecules.py                                # the folder "molecules" next to the data sets
    python benchmarks/bench_molecules.py --page docs/molecules_compared.md
    python benchmarks/bench_molecules.py --chemprop /path/to/chemprop   # chemprop too, from its own environment
    python benchmarks/bench_molecules.py --study benchmarks/wide2_molecules.toml --folder FOLDER   # other data sets

Each split has 80 % of the molecules for training and 20 % for the test. In a scaffold split no scaffold is on both sides; a scaffold
with more molecules than half of the test part is always trained on, the others come in random order. All models get the same
molecules. None is tuned by hand: the models of treegram and the Gaussian process on fingerprints choose for themselves inside the training part.
chemprop, which takes minutes for a split, gets the first split of each kind.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import resource
import subprocess
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rdkit
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import Descriptors, rdFingerprintGenerator
from scipy.sparse import csr_array
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


@dataclass(frozen=True)
class Predictions:
    """Predicted numbers or probabilities of the second class; deviations and intervals of a model that has them."""

    values: Numbers
    std: Numbers | None = None
    intervals: list[Numbers] | None = None  # (n_test, 2) for each of COVERAGES


@dataclass(frozen=True)
class Model:
    """A method: features computed once per molecule, the fit and predictions of a split, and the lines of code a user writes."""

    prepare: Callable[[list[str]], Any]
    predict: Callable[[Any, Numbers, Any], Predictions]
    n_lines: int
    n_splits: int = 3  # of each kind


TEST = 0.2
COVERAGES = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class MoleculeSet:
    """A file of molecules, the columns of their SMILES and targets, and whether these are classes."""

    file: str
    smiles: str
    target: str
    is_class: bool = False
    tier: str = ""


SETS = {
    "FreeSolv": MoleculeSet("FreeSolv.csv", "smiles", "expt"),
    "Photoswitch": MoleculeSet("Photoswitch.csv", "SMILES", "E isomer pi-pi* wavelength in nm"),
    "BBBP": MoleculeSet("BBBP.csv", "smiles", "p_np", is_class=True),
}


# -------------------------------------------------------------------- data


def load_table(path: Path, smiles_column: str, target: str) -> tuple[list[str], Numbers]:
    """Return the molecules that have a SMILES that RDKit can read, and a target."""
    with path.open() as file:
        table = csv.DictReader(file)
        smiles_column, target = (_column(table.fieldnames or (), name) for name in (smiles_column, target))
        rows = [(row[smiles_column], row[target]) for row in table if row[smiles_column] and row[target]]
    invalid = tg.invalid_molecules([smiles for smiles, _ in rows])
    kept = [row for i, row in enumerate(rows) if i not in invalid]
    return [smiles for smiles, _ in kept], np.array([float(value) for _, value in kept])


def _column(names: Sequence[str], start: str) -> str:
    """Return the column of this name, or the one whose name begins with it."""
    (found,) = [start] if start in names else [name for name in names if name.lower().startswith(start.lower())]
    return found


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


def to_graphs(smiles: list[str]) -> tg.Graphs:
    return tg.Graphs.from_smiles(smiles)


def to_described_graphs(smiles: list[str]) -> tg.Graphs:
    return tg.Graphs.from_smiles(smiles, descriptors="rdkit2d")


def automatic_regressor(train: tg.Graphs, y: Numbers, test: tg.Graphs) -> Predictions:
    model = tg.GraphRegressor().fit(train, y)
    intervals = [model.prediction_interval(test, coverage) for coverage in COVERAGES]
    return Predictions(*model.predict(test, return_std=True), intervals)


def automatic_classifier(train: tg.Graphs, y: Numbers, test: tg.Graphs) -> Predictions:
    model = tg.GraphClassifier().fit(train, y.astype(int))
    return Predictions(model.predict_proba(test)[:, 1])


def morgan_counts(smiles: list[str]) -> Numbers:
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    return np.array([morgan.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles], dtype=np.float64)


def descriptors(smiles: list[str]) -> Numbers:
    rows = [
        list(Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(text), missingVal=np.nan).values()) for text in smiles
    ]
    values = np.array(rows, dtype=np.float64)
    return np.where(np.abs(values) < 1e6, values, np.nan)


def fitted_by(make: Callable[[], Any]) -> Callable[[Numbers, Numbers, Numbers], Predictions]:
    """Return the predictions of a model of scikit-learn; a classifier's probability of the second class."""

    def fit_and_predict(train: Numbers, y: Numbers, test: Numbers) -> Predictions:
        model = make().fit(train, y)
        return Predictions(model.predict_proba(test)[:, 1] if hasattr(model, "predict_proba") else model.predict(test))

    return fit_and_predict


def tanimoto_process(train: Numbers, y: Numbers, test: Numbers) -> Predictions:
    """Fit a Gaussian process with the Tanimoto kernel of counts; scale and noise have the largest likelihood."""
    mean, unit = y.mean(), y.std()
    z = (y - mean) / unit
    values, vectors = np.linalg.eigh(tanimoto(train, train))
    noise, scale = likely_noise(values, vectors, z)
    damped = np.maximum(values, 0.0) + noise
    rows = tanimoto(test, train) @ vectors
    predicted = mean + unit * (rows @ ((vectors.T @ z) / damped))
    variance = scale * (1.0 + noise - (rows**2 / damped).sum(axis=1))
    std = unit * np.sqrt(np.maximum(variance, 1e-12))
    halves = [norm.ppf(0.5 + coverage / 2) * std for coverage in COVERAGES]
    return Predictions(predicted, std, [np.column_stack([predicted - half, predicted + half]) for half in halves])


def likely_noise(values: Numbers, vectors: Numbers, z: Numbers) -> tuple[float, float]:
    """Return the noise, as a share of the scale, and the scale of the largest likelihood, by a Gram matrix's decomposition."""
    noises = np.logspace(-4, 1, 51)
    damped = np.maximum(values, 0.0) + noises[:, None]
    scales = ((vectors.T @ z) ** 2 / damped).mean(axis=1)
    best = np.argmin(np.log(damped).sum(axis=1) + len(z) * np.log(scales))
    return noises[best], scales[best]


def tanimoto(X: Numbers, Y: Numbers) -> Numbers:
    """Return the Tanimoto similarities of counts; the smaller of two counts is the number of levels that both reach."""
    shared = np.zeros((len(X), len(Y)))
    for level in range(1, int(X.max(initial=0)) + 1):
        left, right = (csr_array(counts >= level, dtype=float) for counts in (X, Y))
        shared += (left @ right.T).toarray()
    totals = X.sum(axis=1)[:, None] + Y.sum(axis=1)
    similarities: Numbers = shared / np.maximum(totals - shared, 1e-12)
    return similarities


def chemprop(command: str, kind: str, *settings: str) -> Callable[[NDArray[Any], Numbers, NDArray[Any]], Predictions]:
    """Return chemprop with its default settings but for those given, run as a command in its own folder."""

    def fit_and_predict(train: NDArray[Any], y: Numbers, test: NDArray[Any]) -> Predictions:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _write_table(folder / "train.csv", train.tolist(), y)
            _write_table(folder / "test.csv", test.tolist(), None)
            options = ["--task-type", kind, "--output-dir", "model", "--accelerator", "cpu", "--num-workers", "0"]
            for words in (
                ["train", "--data-path", "train.csv", *options, *settings],
                ["predict", "--test-path", "test.csv", "--model-paths", "model", "--preds-path", "out.csv"],
            ):
                subprocess.run([command, *words], cwd=folder, check=True, capture_output=True)
            with (folder / "out.csv").open() as file:
                return Predictions(np.array([float(row["y"]) for row in csv.DictReader(file)]))

    return fit_and_predict


def _write_table(path: Path, smiles: list[str], y: Numbers | None) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles"] if y is None else ["smiles", "y"])
        writer.writerows([text] if y is None else [text, y[i]] for i, text in enumerate(smiles))


def models(is_class: bool, chemprop_command: str | None) -> dict[str, Model]:
    if is_class:
        forest, boosting = RandomForestClassifier, HistGradientBoostingClassifier
        found = {
            "treegram, GraphClassifier": Model(to_graphs, automatic_classifier, 3),
            "treegram, GraphClassifier, descriptors": Model(to_described_graphs, automatic_classifier, 3),
        }
    else:
        forest, boosting = RandomForestRegressor, HistGradientBoostingRegressor
        found = {
            "treegram, GraphRegressor": Model(to_graphs, automatic_regressor, 3),
            "treegram, GraphRegressor, descriptors": Model(to_described_graphs, automatic_regressor, 3),
            "Gaussian process, Tanimoto of Morgan counts": Model(morgan_counts, tanimoto_process, 17),
        }
    found["forest, Morgan counts"] = Model(morgan_counts, fitted_by(lambda: forest(200, random_state=0)), 6)
    found["boosting, descriptors"] = Model(descriptors, fitted_by(lambda: boosting(random_state=0)), 8)
    if chemprop_command:
        kind = "classification" if is_class else "regression"
        found["chemprop, default settings"] = Model(np.array, chemprop(chemprop_command, kind), 2, n_splits=1)
    return found


# -------------------------------------------------------------------- scores


def scores(y: Numbers, found: Predictions, is_class: bool) -> Result:
    if is_class:
        return {"ROC AUC": float(roc_auc_score(y, found.values))}
    result = {"RMSE": float(np.sqrt(np.mean((found.values - y) ** 2)))}
    if found.std is not None:
        result["NLPD"] = float(-norm.logpdf(y, found.values, found.std).mean())
    for coverage, (low, high) in zip(COVERAGES, [one.T for one in found.intervals or ()], strict=False):
        result[f"in {coverage:.0%} interval"] = float(((low <= y) & (y <= high)).mean())
    return result


def processor_seconds() -> float:
    """Return the processor time of this process and of the commands that it ran."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def compare(name: str, one: MoleculeSet, folder: Path, chemprop_command: str | None) -> str:
    smiles, y = load_table(folder / one.file, one.smiles, one.target)
    is_class = one.is_class
    columns = ["ROC AUC"] if is_class else ["RMSE", "NLPD", *(f"in {c:.0%} interval" for c in COVERAGES)]
    rows: dict[str, list[list[object]]] = {kind: [] for kind in SPLITS}
    for title, model in models(is_class, chemprop_command).items():
        start = processor_seconds()
        X = model.prepare(smiles)
        preparation = processor_seconds() - start
        for kind, split in SPLITS.items():
            results, seconds = [], 0.0
            for seed in range(model.n_splits):
                train, test = split(smiles, seed)
                start = processor_seconds()
                found = model.predict(X[train], y[train], X[test])
                seconds += processor_seconds() - start
                results.append(scores(y[test], found, is_class))
            means = [f"{np.mean([some[key] for some in results]):.3f}" if key in results[0] else "" for key in columns]
            each = ", ".join(f"{some[columns[0]]:.3f}" for some in results)
            rows[kind].append(
                [kind, title, *means, each, f"{preparation:.1f}", f"{seconds / model.n_splits:.1f}", model.n_lines]
            )
            print(*rows[kind][-1], sep=" | ", flush=True)
    heading = ", ".join(filter(None, [f"{name}: {len(smiles)} molecules", one.target, one.tier]))
    header = ["split", "model", *columns, f"{columns[0]} of each split", "CPU s, molecules", "CPU s, split", "lines"]
    return table(heading, header, [row for kind in SPLITS for row in rows[kind]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(DATA_DIR).parent / "molecules" if DATA_DIR else None
    parser.add_argument(
        "--folder", type=Path, default=default, help="folder with FreeSolv.csv, Photoswitch.csv and BBBP.csv"
    )
    parser.add_argument("--study", type=Path, help="TOML file with other data sets")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="data sets to run (default: all)")
    parser.add_argument("--chemprop", help="the command chemprop")
    parser.add_argument(
        "--page", type=Path, help="file whose tables, from the first heading of a data set on, are replaced"
    )
    args = parser.parse_args()
    if args.folder is None:
        parser.error("--folder is needed: there is no folder of data sets")
    sets, digest = SETS, ""
    if args.study:
        content = args.study.read_bytes()
        sets = {name: MoleculeSet(**table) for name, table in tomllib.loads(content.decode())["sets"].items()}
        digest = f" {args.study.name} has the SHA-256 {hashlib.sha256(content).hexdigest()}."
    names = args.sets or list(sets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = [compare(name, sets[name], args.folder, args.chemprop) for name in names]
    text = (
        "\n".join(
            [*tables, f"Measured by `benchmarks/bench_molecules.py`: {machine()}, rdkit {rdkit.__version__}.{digest}"]
        )
        + "\n"
    )
    print(text)
    if args.page:
        before = args.page.read_text(encoding="utf-8").partition(f"## {names[0]}: ")[0]
        args.page.write_text(before + text, encoding="utf-8")


if __name__ == "__main__":
    main()
