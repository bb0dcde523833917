"""Regression on molecules: Gaussian processes on graph kernels against Morgan fingerprints with a forest, on the same folds.

Two kinds of data: generated molecules (``make_molecules``: solubility is computed by Delaney's equation, with noise of 0.5, so that
no model can come far below 0.5), and measured activities that RDKit brings along (CHEMBL2321810 of its Free-Wilson example). Each
repeat has 400 other molecules, since one sample can favor either side, and five folds of them.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rdkit
from numpy.typing import NDArray
from rdkit import Chem, RDConfig
from rdkit.Chem import rdFingerprintGenerator
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import treegram as tg
from common import machine, table

N_MOLECULES, N_FOLDS, N_REPEATS = 400, 5, 3
RICH = ["element", "aromatic", "hydrogens", "formal_charge"]
VECTORS = ["partial_charge", "polar_surface", "refractivity"]  # not logp, which the generated targets are made of

Numbers = NDArray[np.float64]
Model = tuple[Any, Callable[[], Any]]


def generated(repeat: int) -> tuple[list[str], Numbers]:
    return tg.make_molecules(N_MOLECULES, random_state=repeat)


def measured(repeat: int) -> tuple[list[str], Numbers]:
    """A random sample of the activities in RDKit's Free-Wilson example."""
    folder = Path(RDConfig.RDContribDir) / "FreeWilson" / "data"
    with (folder / "CHEMBL2321810_act.csv").open() as file:
        activity = {row["Name"]: float(row["Act"]) for row in csv.DictReader(file)}
    lines = (folder / "CHEMBL2321810.smi").read_text().splitlines()
    chosen = np.random.default_rng(repeat).permutation(len(lines))[:N_MOLECULES]
    pairs = [lines[i].split() for i in chosen]
    return [smiles for smiles, _ in pairs], np.array([activity[name] for _, name in pairs])


def fingerprints(smiles: list[str], *, counts: bool) -> NDArray[Any]:
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    make = morgan.GetCountFingerprintAsNumPy if counts else morgan.GetFingerprintAsNumPy
    return np.array([make(Chem.MolFromSmiles(text)) for text in smiles])


def forest() -> RandomForestRegressor:
    return RandomForestRegressor(random_state=0)


def models(smiles: list[str]) -> dict[str, Model]:
    """What each model takes, and how it is made; GraphGP chooses its parameters by marginal likelihood."""
    plain = tg.Graphs.from_smiles(smiles)
    rich = tg.Graphs.from_smiles(smiles, labels=RICH, attributes=VECTORS)
    bits, counts = (fingerprints(smiles, counts=wanted) for wanted in (False, True))
    return {
        "always the mean": (bits, DummyRegressor),
        "forest of 100 trees, Morgan bits": (bits, forest),
        "forest of 100 trees, Morgan counts": (counts, forest),
        "GraphGP, WL, elements": (plain, lambda: tg.GraphGP("wl")),
        "GraphGP, WL, rich labels": (rich, lambda: tg.GraphGP("wl")),
        "GraphGP, ODDST, rich labels": (rich, lambda: tg.GraphGP("oddst")),
        "GraphGP, WLCL, rich labels and vectors": (
            rich,
            lambda: tg.GraphGP(make_pipeline(tg.ScaleAttributes(), tg.WLCL())),
        ),
    }


def errors(model: Model, y: Numbers) -> list[float]:
    """The root mean squared error of each fold."""
    X, make = model
    splits = KFold(N_FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a chosen parameter at the end of its grid
        residuals = [make().fit(X[train], y[train]).predict(X[test]) - y[test] for train, test in splits]
    return [float(np.sqrt(np.mean(residual**2))) for residual in residuals]


def compare(title: str, draw: Callable[[int], tuple[list[str], Numbers]]) -> str:
    found: dict[str, list[float]] = {}
    for repeat in range(N_REPEATS):
        smiles, y = draw(repeat)
        for name, model in models(smiles).items():
            found.setdefault(name, []).extend(errors(model, y))
    best = min((rmse for name, rmse in found.items() if name.startswith("forest")), key=sum)
    return table(
        f"{title}: {N_REPEATS} samples of {N_MOLECULES} molecules, {N_FOLDS} folds each",
        ["model", "RMSE", "deviation over folds", *(f"sample {i}" for i in range(N_REPEATS)), "folds won"],
        [_row(name, np.array(rmse), np.array(best)) for name, rmse in found.items()],
    )


def _row(name: str, rmse: Numbers, best_forest: Numbers) -> list[object]:
    """Mean and deviation over all folds, the mean of each sample, and how often it was below the better forest."""
    samples = [f"{mean:.3f}" for mean in rmse.reshape(N_REPEATS, N_FOLDS).mean(axis=1)]
    won = f"{(rmse < best_forest).sum()} of {len(rmse)}"
    return [name, f"**{rmse.mean():.3f}**", f"{rmse.std(ddof=1):.3f}", *samples, won]


def main() -> str:
    return "\n".join(
        [compare("Generated, solubility computed", generated), compare("Measured activities, CHEMBL2321810", measured)]
    )


if __name__ == "__main__":
    print(main())
    print(f"{machine()}, rdkit {rdkit.__version__}")
