"""Machines for more graphs than a Gram matrix is made for: linear ones, on rows that landmarks give."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.kernels import Nystroem
from treegram.kernels.grid import with_parameters
from treegram.models.crossval import Fits
from treegram.models.search import Entry, split_grid

__all__ = ["decide_rows_held_out", "fit_rows", "row_blocks"]

MOST_STEPS = 1000  # of the solver


def row_blocks(n_landmarks: int, entry: Entry, graphs: Graphs) -> Iterator[tuple[list[dict[str, Any]], list[Floats]]]:
    """The points of a grid, each with the rows of the graphs; landmarks are chosen for each point anew, and see no target."""
    for part in split_grid(entry.grid, 1):
        point = {name: next(iter(values)) for name, values in part.items()}
        yield [point], [Nystroem(with_parameters(entry.kernel, point), n_landmarks).fit_transform(graphs)]


def fit_rows(
    Z: Floats, codes: Ints, train: Ints, Cs: Floats, weights: Floats | None = None
) -> tuple[Floats, Floats, Fits]:
    """Coefficients (n_C, n_pairs, n_columns) and intercepts (n_C, n_pairs) of one machine for each C and pair of classes."""
    pairs = list(combinations(range(int(codes.max()) + 1), 2))
    coefficients, intercepts = np.zeros((len(Cs), len(pairs), Z.shape[1])), np.zeros((len(Cs), len(pairs)))
    n_fits = n_unconverged = 0
    train = train if weights is None else train[weights[train] > 0]
    for pair, (i, j) in enumerate(pairs):
        members = train[(codes[train] == i) | (codes[train] == j)]
        is_first = codes[members] == i
        if is_first.all() or not is_first.any():  # one class alone, or none: nothing to fit
            intercepts[:, pair] = 2.0 * is_first.mean() - 1.0 if len(members) else 0.0
            continue
        own = None if weights is None else weights[members]
        for c, C in enumerate(Cs):
            machine = LinearSVC(C=C, dual=False, max_iter=MOST_STEPS)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
                machine.fit(Z[members], is_first, sample_weight=own)
            coefficients[c, pair], intercepts[c, pair] = machine.coef_[0], machine.intercept_[0]
            n_fits, n_unconverged = n_fits + 1, n_unconverged + int(machine.n_iter_ >= MOST_STEPS)
    return coefficients, intercepts, Fits(n_fits, n_unconverged)


def decide_rows_held_out(
    Z: Floats, codes: Ints, train: Ints, test: Ints, Cs: Floats, weights: Floats | None = None
) -> tuple[Floats, Fits]:
    """Decisions on the test part for each C and each pair of classes, (n_C, n_test, n_pairs)."""
    coefficients, intercepts, fits = fit_rows(Z, codes, train, Cs, weights)
    return Z[test] @ coefficients.swapaxes(1, 2) + intercepts[:, None], fits
