"""Compare the probabilities of GraphSVC with scikit-learn's calibration: log loss and Brier score on held-out graphs.

Four ways from the same decisions of the inner folds: a sigmoid for each pair of classes, coupling and a temperature (GraphSVC),
the same without a temperature, a sigmoid for each class against the rest (normalized), and
``CalibratedClassifierCV(SVC(kernel="precomputed"), ensemble=False)``.
"""

from __future__ import annotations

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import treegram as tg
from common import load, table
from treegram.models.solver import decide, fit_machines, one_against_rest, vote
from treegram.models.svc import (
    class_probabilities,
    couple,
    decide_held_out,
    fit_sigmoid,
    fit_sigmoids,
    fit_temperature,
)

SETS = ("MUTAG", "ENZYMES", "BZR", "PROTEINS", "Cuneiform")
C = np.array([10.0])
OUTER, INNER = 5, 5


def brier(codes: np.ndarray, p: np.ndarray) -> float:
    return float(((p - np.eye(p.shape[1])[codes]) ** 2).sum(axis=1).mean())


def against_rest(held_out: np.ndarray, codes: np.ndarray, new: np.ndarray, n_classes: int) -> np.ndarray:
    known, asked = (
        np.atleast_2d(one_against_rest(d, n_classes).T).T if n_classes > 2 else np.column_stack([d[:, 0], -d[:, 0]])
        for d in (held_out, new)
    )
    p = np.empty((len(new), n_classes))
    for i in range(n_classes):
        slope, offset = fit_sigmoid(known[:, i], codes == i)
        p[:, i] = 1 / (1 + np.exp(np.clip(slope * asked[:, i] + offset, -700, 700)))
    return p / p.sum(axis=1, keepdims=True)


def measure(name: str) -> list[object]:
    graphs = load(name)
    codes = np.unique(graphs.targets, return_inverse=True)[1].astype(np.int64)
    n_classes = int(codes.max()) + 1
    K = tg.ODDCL(depth=1).fit_transform(graphs)
    losses: dict[str, list[tuple[float, float]]] = {"treegram": [], "pairs": [], "rest": [], "calibrated": []}
    for train, test in StratifiedKFold(OUTER, shuffle=True, random_state=0).split(codes, codes):
        folds = [
            (train[a], train[b])
            for a, b in StratifiedKFold(INNER, shuffle=True, random_state=1).split(train, codes[train])
        ]
        held_out = np.concatenate([decide_held_out(K, codes, a, b, C)[0][0] for a, b in folds])
        known = codes[np.concatenate([b for _, b in folds])]
        machines = fit_machines(K, codes, n_classes, train, C)
        new = decide(K[np.ix_(test, machines.order)], machines.offsets, machines.coefficients, machines.intercepts)[0]
        theirs = CalibratedClassifierCV(
            SVC(kernel="precomputed", C=C[0]),
            cv=StratifiedKFold(INNER, shuffle=True, random_state=1),
            ensemble=False,
        ).fit(K[np.ix_(train, train)], codes[train])
        sigmoids = fit_sigmoids(held_out, known, n_classes)
        temperature = fit_temperature(couple(held_out, sigmoids, n_classes), known)
        for way, p in (
            ("treegram", class_probabilities(new, sigmoids, temperature, vote(new, n_classes), n_classes)),
            ("pairs", couple(new, sigmoids, n_classes)),
            ("rest", against_rest(held_out, known, new, n_classes)),
            ("calibrated", theirs.predict_proba(K[np.ix_(test, train)])),
        ):
            losses[way].append((log_loss(codes[test], p, labels=range(n_classes)), brier(codes[test], p)))
    means = {way: np.mean(values, axis=0) for way, values in losses.items()}
    return [f"{name}, {n_classes} classes", *(f"{mean[0]:.3f} / {mean[1]:.3f}" for mean in means.values())]


def main() -> str:
    return table(
        f"Probabilities: log loss / Brier score on held-out graphs, mean of {OUTER} folds (ODDCL, depth 1, C = {C[0]:g})",
        ["data set", "GraphSVC", "without temperature", "sigmoid per class", "CalibratedClassifierCV"],
        [measure(name) for name in SETS],
    )


if __name__ == "__main__":
    print(main())
