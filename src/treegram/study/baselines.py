"""Entries of a study that are no kernels: what a reader would try first, on the same folds, tuned inside them.

A **selection** gets the protocol, all graphs, their classes, the ids of training and test graphs, and a seed. It learns from the
training graphs alone, and gives those parts of a row that it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics.pairwise import euclidean_distances

from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.study.gin import select_gin, torch_module
from treegram.study.graph_numbers import summarize_graphs
from treegram.study.protocol import Protocol, StudyEntry
from treegram.study.selection import row_parts, select_gram, unique

__all__ = ["SELECTIONS", "baseline_versions"]

_WIDTHS = (0.1, 1.0, 10.0)  # times one over the number of columns, which is scikit-learn's gamma="scale" here
_FOREST = {"max_features": ("sqrt", 0.3), "min_samples_leaf": (1, 3)}
_N_TREES = 200


def baseline_versions(entries: Sequence[StudyEntry]) -> dict[str, str]:
    """Versions of packages that only baselines need; an ImportError if one is not there, before hours of work."""
    return {"torch": str(torch_module().__version__)} if any(one.baseline == "gin" for one in entries) else {}


def _summary_svm(
    protocol: Protocol, graphs: Graphs, targets: Ints, train: Ints, test: Ints, seed: int
) -> dict[str, Any]:
    """After Cai and Wang (2019), who find that statistics of degrees compete with graph kernels."""
    rows = summarize_graphs(graphs, train)
    distances = euclidean_distances(rows, squared=True) / rows.shape[1]
    grams = unique([{"gamma": width} for width in _WIDTHS], [np.exp(-width * distances) for width in _WIDTHS])
    return select_gram(protocol, grams, targets, train, test, seed)


def _summary_forest(
    protocol: Protocol,  # noqa: ARG001
    graphs: Graphs,
    targets: Ints,
    train: Ints,
    test: Ints,
    seed: int,
) -> dict[str, Any]:
    """Out-of-bag predictions of the training graphs choose: they are as honest as inner folds, and need no other fits."""
    rows = summarize_graphs(graphs, train)
    points = [dict(zip(_FOREST, values, strict=True)) for values in product(*_FOREST.values())]
    forests = [
        RandomForestClassifier(_N_TREES, oob_score=True, random_state=seed, **point).fit(rows[train], targets[train])
        for point in points
    ]
    best = max(range(len(points)), key=lambda i: round(forests[i].oob_score_, 12))  # of equals the first
    forest = forests[best]
    shares = np.zeros((len(test), int(targets.max()) + 1))
    shares[:, forest.classes_] = forest.predict_proba(rows[test])
    return row_parts(forest.predict(rows[test]), _decisions(shares), points[best], forest.oob_score_, len(points))


def _gin(protocol: Protocol, graphs: Graphs, targets: Ints, train: Ints, test: Ints, seed: int) -> dict[str, Any]:  # noqa: ARG001
    found = select_gin(graphs, targets, train, test, seed)
    predicted = found.scores.argmax(axis=1)
    return row_parts(predicted, _decisions(found.scores), found.chosen, found.inner_score, found.n_fits)


def _decisions(scores: Floats) -> Floats:
    """Scores of classes as rows have them: one number above 0 for the second of two classes."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


# By the names in `study.BASELINES`.
SELECTIONS: dict[str, Callable[[Protocol, Graphs, Ints, Ints, Ints, int], dict[str, Any]]] = {
    "summary-svm": _summary_svm,
    "summary-forest": _summary_forest,
    "gin": _gin,
}
