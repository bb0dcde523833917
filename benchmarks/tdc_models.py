"""The models that are compared on TDC's tasks; see tdc.py."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, DataStructs
from rdkit.Avalon import pyAvalonTools
from rdkit.Chem import rdFingerprintGenerator, rdReducedGraphs
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import average_precision_score, mean_absolute_error, roc_auc_score
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.preprocessing import QuantileTransformer

import treegram as tg
from bench_molecules import chemprop, descriptors, likely_noise, morgan_counts, tanimoto
from tdc_report import Numbers, sign

METRICS: dict[str, Callable[[Numbers, Numbers], float]] = {
    "MAE": mean_absolute_error,
    "Spearman": lambda y, predicted: spearmanr(y, predicted).statistic if np.ptp(predicted) else 0.0,
    "AUPRC": average_precision_score,
    "AUROC": roc_auc_score,
}


def our_graphs(smiles: list[str]) -> tg.Graphs:
    """Return molecules as docs/molecules.md recommends to read them, and as ``treegram fit`` does by default."""
    return tg.Graphs.from_smiles(smiles, labels=["element", "pharmacophore"], descriptors=["rdkit2d", "erg"])


def columns(smiles: list[str]) -> NDArray[np.float32]:
    """Return RDKit's descriptors and ErG, and the counts of Morgan's neighborhoods of elements and of pharmacophores and Avalon.

    The first four are what our graphs have; RDKit calls the counts of pharmacophores FCFP.
    """
    pharmacophores = rdFingerprintGenerator.GetMorganGenerator(
        radius=2, fpSize=1024, atomInvariantsGenerator=rdFingerprintGenerator.GetMorganFeatureAtomInvGen()
    )
    erg, fcfp, avalon = [], [], np.zeros((len(smiles), 1024))
    for row, text in zip(avalon, smiles, strict=True):
        molecule = Chem.MolFromSmiles(text)
        erg.append(rdReducedGraphs.GetErGFingerprint(molecule).astype(np.float32))
        fcfp.append(pharmacophores.GetCountFingerprintAsNumPy(molecule).astype(np.float32))
        DataStructs.ConvertToNumpyArray(pyAvalonTools.GetAvalonCountFP(molecule, nBits=1024), row)
    parts = (descriptors(smiles), morgan_counts(smiles), np.array(erg), np.array(fcfp), avalon)
    return np.hstack([part.astype(np.float32) for part in parts])


@dataclass(frozen=True)
class Problem:
    """What a model gets: molecules as it reads them, the targets and scaffolds of training, and the metric that counts."""

    train: Any
    y: Numbers
    groups: NDArray[Any]
    test: Any
    metric: str

    @property
    def is_class(self) -> bool:
        """Whether the targets are 0 and 1."""
        return self.metric in ("AUPRC", "AUROC")


def treegram(problem: Problem) -> Numbers:
    if problem.is_class:
        return tg.GraphClassifier(n_jobs=1).fit(problem.train, problem.y).predict_proba(problem.test)[:, 1]
    return tg.GraphRegressor(n_jobs=1).fit(problem.train, problem.y).predict(problem.test)


def forest(problem: Problem) -> Numbers:
    if problem.is_class:
        classifier = RandomForestClassifier(500, random_state=0).fit(problem.train, problem.y)
        return classifier.predict_proba(problem.test)[:, 1]
    regressor = RandomForestRegressor(500, max_features=0.1, random_state=0)  # ten times as fast as with all columns
    return regressor.fit(problem.train, problem.y).predict(problem.test)


def tanimoto_gp(problem: Problem) -> Numbers:
    """Return the mean of a Gaussian process whose noise is the likeliest one on at most 3,000 training rows."""
    n_train, mean = len(problem.y), problem.y.mean()
    K, z = tanimoto(problem.train, problem.train), problem.y - mean
    rows = np.random.default_rng(0).permutation(n_train)[:3000]
    K[np.diag_indices(n_train)] += likely_noise(*np.linalg.eigh(K[np.ix_(rows, rows)]), z[rows])[0]
    return mean + tanimoto(problem.test, problem.train) @ cho_solve(cho_factor(K, overwrite_a=True), z)


def chemprop_command(problem: Problem) -> Numbers:
    """Run chemprop on nine tenths of the training rows and choose the epoch by the others; by default, a tenth is unused."""
    settings = ("--split-sizes", "0.9", "0.1", "0.0", "--pytorch-seed", "0")
    fit_and_predict = chemprop("chemprop", "classification" if problem.is_class else "regression", *settings)
    return fit_and_predict(problem.train, problem.y, problem.test).values


ROUNDS = (25, 50, 100, 200, 400)


def boosting(problem: Problem) -> Numbers:
    """Fit LightGBM with the best of 8 settings and 5 numbers of rounds, by the metric on three folds of scaffolds.

    Above 5,000 rows, there are 4 settings: the share of columns for each tree is not varied.
    """
    import lightgbm

    if problem.is_class:
        folds, varied = StratifiedGroupKFold(3, shuffle=True, random_state=0), {"min_data_in_leaf": (5, 20)}
    else:
        folds, varied = GroupKFold(3), {"normal_scores": (False, True)}
    varied |= {"num_leaves": (7, 31), "feature_fraction": (0.1, 0.3) if len(problem.y) <= 5000 else (0.2,)}
    settings = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    scores: dict[tuple[int, int], list[float]] = {}
    for rows, others in folds.split(problem.train, problem.y, problem.groups):
        data = lightgbm.Dataset(problem.train[rows], params=BOOSTING, free_raw_data=False)  # in bins once
        for i, setting in enumerate(settings):
            predict = boosted(data, problem.y[rows], problem.is_class, ROUNDS[-1], **setting)
            for n_rounds in ROUNDS:
                value = METRICS[problem.metric](problem.y[others], predict(problem.train[others], n_rounds))
                scores.setdefault((i, n_rounds), []).append(sign(problem.metric) * value)
    best, n_rounds = max(scores, key=lambda key: np.nanmean(scores[key]))
    data = lightgbm.Dataset(problem.train, params=BOOSTING, free_raw_data=False)
    return boosted(data, problem.y, problem.is_class, n_rounds, **settings[best])(problem.test, n_rounds)


BOOSTING = {"learning_rate": 0.1, "seed": 0, "num_threads": 1, "deterministic": True, "force_row_wise": True}
BOOSTING |= {"feature_pre_filter": False, "verbose": -1}


def boosted(
    data: Any, y: Numbers, is_class: bool, n_rounds: int, *, normal_scores: bool = False, **setting: float
) -> Callable[[Numbers, int], Numbers]:
    """Return the predictions of LightGBM as a function of rows and of a number of rounds."""
    import lightgbm

    scale = None
    if normal_scores:
        scale = QuantileTransformer(n_quantiles=min(len(y), 1000), output_distribution="normal", subsample=None)
        y = scale.fit_transform(y[:, None])[:, 0]
    objective = {"objective": "binary" if is_class else "regression"}
    booster = lightgbm.train({**BOOSTING, **objective, **setting}, data.set_label(y), n_rounds)

    def predict(X: Numbers, n_rounds: int) -> Numbers:
        values = booster.predict(X, num_iteration=n_rounds)
        return values if scale is None else scale.inverse_transform(values[:, None])[:, 0]

    return predict


@dataclass(frozen=True)
class Model:
    """How a model reads molecules, fits and predicts; what must be installed, and the largest table on which it is run."""

    read: Callable[[list[str]], Any]
    fit_and_predict: Callable[[Problem], Numbers]
    is_installed: Callable[[], Any] = lambda: True
    needs: str = ""
    most_rows: float = np.inf


MODELS = {
    "treegram": Model(our_graphs, treegram),
    "boosting": Model(columns, boosting, partial(importlib.util.find_spec, "lightgbm"), "the package lightgbm"),
    "forest": Model(columns, forest),
    "tanimoto_gp": Model(morgan_counts, tanimoto_gp),
    "forest_morgan": Model(morgan_counts, forest),
    "chemprop": Model(np.array, chemprop_command, partial(shutil.which, "chemprop"), "the command chemprop", 5000),
}
MOLHIV_MODELS = ("treegram", "boosting", "forest_morgan")
TDC_MODELS = tuple(name for name in MODELS if name != "forest_morgan")
