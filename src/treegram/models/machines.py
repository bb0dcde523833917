"""Support vector machines on a Gram matrix: one for each pair of classes, along a path of C, and their vote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from treegram._core.types import Floats, Ints
from treegram.models.loops.solver import BEGUN, FRESH, MORE, SINGULAR, climb_pairs, climb_path, walk_faces

__all__ = ["TOLERANCE", "Machines", "Path", "decide", "fit_machines", "fit_path", "one_against_rest", "vote"]

TOLERANCE = 1e-3  # the gap at which a machine has converged, as in libsvm

_RIDGE = 1e-10  # times the largest diagonal entry: keeps factors of singular blocks positive, far below the tolerance
_LARGEST_RIDGE = 1e-2  # a matrix that is a little indefinite, as one in single precision is, takes a larger one
_MANY = 20  # classes from which on the machines of small ones are fitted together
_SMALL = 200  # graphs of two such classes
_WORK = 1e8  # multiplications in one compiled call: tenths of a second, after which Ctrl-C is heard


@dataclass(frozen=True)
class Path:
    """One two-class machine for each C."""

    betas: Floats  # (n_C, n_graphs)
    intercepts: Floats  # (n_C,)
    gaps: Floats  # (n_C,), what is left of the gap; -1 where no fit was needed, since the next smaller C has the same solution


def fit_path(K: Floats, y: Floats, Cs: Floats, tol: float = TOLERANCE, weights: Floats | None = None) -> Path:
    """Fit machines for all C, ascending, each from the solution of the one before.

    K must be C-contiguous, y is 1 or -1; C is multiplied by the weight of a graph, which is above 0. Pair steps first, as many
    as there are graphs; then face steps. Should rounding defeat these (K not positive semidefinite), pair steps again, a
    thousand for each graph, before a fit is called unconverged.
    """
    n = len(y)
    weights = np.ones(n) if weights is None else weights
    beta, f, bars = np.zeros(n), y.copy(), np.empty((3, n))
    path = Path(np.empty((len(Cs), n)), np.empty(len(Cs)), np.empty(len(Cs)))
    arrays = (beta, f, bars, path.betas, path.intercepts, path.gaps)
    n_steps = min(n, int(_WORK / n) + 1)
    faces = None
    c = climb_path(K, y, weights, Cs, 0, FRESH, tol, n_steps, *arrays)
    while c < len(Cs):
        faces = faces or _Faces(K, y)
        faces.walk(weights * Cs[c] * y, beta, f, tol)
        for _ in range(1000 * n // n_steps):
            done = climb_path(K, y, weights, Cs, c, BEGUN, tol, n_steps, *arrays)
            if done > c:
                break
        else:  # given up: what there is counts as the solution
            done = c + 1
            climb_path(K, y, weights, Cs[:done], c, BEGUN, np.inf, 0, *arrays)
            if (np.abs(beta) / weights).max() < Cs[c]:  # nor would any larger C change it
                path.betas[done:], path.intercepts[done:], path.gaps[done:] = beta, path.intercepts[c], path.gaps[c]
                break
            done = climb_path(K, y, weights, Cs, done, FRESH, tol, n_steps, *arrays)
        c = done
    if _RIDGE * K.diagonal().max() * Cs[-1] > tol:
        _measure_gaps(K, y, weights, Cs, tol, path)
    return path


def _measure_gaps(K: Floats, y: Floats, weights: Floats, Cs: Floats, tol: float, path: Path) -> None:
    """Where the rounding of f's updates adds up to more than the tolerance, let the gaps be those of the coefficients."""
    for c in np.flatnonzero(_RIDGE * K.diagonal().max() * Cs > tol):
        gap = _gap(K, y, weights * Cs[c] * y, path.betas[c])
        path.gaps[c] = gap if gap >= tol else path.gaps[c]


def _gap(K: Floats, y: Floats, bounds: Floats, beta: Floats) -> float:
    """How far the maximum is missed; see loops/solver.py."""
    f = y - K @ beta
    top = f[beta < np.maximum(bounds, 0.0)].max(initial=-np.inf)
    bottom = f[beta > np.minimum(bounds, 0.0)].min(initial=np.inf)
    return float(top - bottom)


class _Faces:
    """The workspace of face steps on one matrix: made when it is first needed, used for all C."""

    def __init__(self, K: Floats, y: Floats) -> None:
        n = len(y)
        self.K, self.y = K, y
        self.scale = float(K.diagonal().max()) or 1.0
        self.L, self.scratch = np.empty((n, n)), np.empty((7, n))
        self.free, self.is_free, self.state = np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(2, np.int64)

    def walk(self, bounds: Floats, beta: Floats, f: Floats, tol: float) -> None:
        """Face steps, in place, until the gap is below tol or 20 variables for each graph have changed sides."""
        ridge, outcome = 0.01 * _RIDGE * self.scale, SINGULAR
        self.state[1] = 0
        while outcome in (MORE, SINGULAR) and self.state[1] <= 20 * len(beta):
            if outcome == SINGULAR:
                ridge *= 100.0
                if ridge > _LARGEST_RIDGE * self.scale:
                    break
                self.is_free[:] = False
                self.state[0] = 0
            outcome = walk_faces(
                self.K, bounds, beta, f, self.L, self.free, self.is_free, self.state, self.scratch, ridge, tol, _WORK
            )
        np.subtract(self.y, self.K @ beta, out=f)  # without the rounding of many updates


# -------------------------------------------------------------------- one machine for each pair of classes


@dataclass(frozen=True)
class Machines:
    """For each C one machine for each pair of classes (0, 1), (0, 2), ..., (1, 2), ...; of a pair, above 0 is the first class.

    A graph of class i has a coefficient for each other class: that for j is in row j - 1 if j > i, else in row j. scikit-learn
    and libsvm keep coefficients in the same way.
    """

    order: Ints  # (n_graphs,): ids of the fitted graphs, class by class
    offsets: Ints  # (n_classes + 1,): where each class begins in the order
    coefficients: Floats  # (n_C, n_classes - 1, n_graphs)
    intercepts: Floats  # (n_C, n_pairs)
    gaps: Floats  # (n_C,): the largest that a machine has left; -1 where no machine had to be fitted

    def decide(self, rows: Floats) -> Floats:
        """Decisions of all machines from (n_new, n_graphs) kernels with the fitted graphs in order; (n_C, n_new, n_pairs)."""
        return decide(rows, self.offsets, self.coefficients, self.intercepts)


def decide(rows: Floats, offsets: Ints, coefficients: Floats, intercepts: Floats) -> Floats:
    """Weighted sums of kernels and intercepts of all machines; see Machines for the arguments and their order."""
    n_C, n_others, _ = coefficients.shape
    if n_others == 1:  # two classes, and one product for both
        return (coefficients[:, 0] @ rows.T + intercepts)[:, :, None]
    decisions = np.repeat(intercepts[:, :, None], len(rows), axis=2)  # pair by pair: adding to whole rows is fast
    for i, pairs in enumerate(_pairs_by_class(n_others + 1)):
        own = slice(offsets[i], offsets[i + 1])
        parts = coefficients[:, :, own].reshape(n_C * n_others, -1) @ rows[:, own].T
        decisions[:, pairs] += parts.reshape(n_C, n_others, len(rows))
    return decisions.swapaxes(1, 2)


@cache
def _pairs_by_class(n_classes: int) -> Ints:
    """For each class and each row of its coefficients the number of the pair, (n_classes, n_classes - 1)."""
    pairs = np.zeros((n_classes, n_classes - 1), np.int64)
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        pairs[i, j - 1] = pairs[j, i] = pair
    pairs.flags.writeable = False
    return pairs


def fit_machines(
    K: Floats,
    codes: Ints,
    n_classes: int,
    train: Ints,
    Cs: Floats,
    tol: float = TOLERANCE,
    weights: Floats | None = None,
) -> Machines:
    """Fit on the graphs ``train``, for all C, ascending; K is the Gram matrix of all graphs, ``codes`` are classes from 0.

    ``weights`` multiply C, one for each graph of all; graphs of weight 0 are left out. A class without graphs gets no votes.
    """
    Cs = np.array(Cs, dtype=np.float64)  # alike for all callers: compiled code knows read-only arrays as another type
    if weights is not None:
        train = train[weights[train] > 0]
    order = train[np.argsort(codes[train], kind="stable")]
    offsets = np.searchsorted(codes[order], np.arange(n_classes + 1))
    square = K.take(order, axis=0).take(order, axis=1).astype(np.float64, copy=False)
    starts = offsets.tolist()
    above, below = np.ones(len(order)), np.full(len(order), -1.0)
    own_weights = above if weights is None else weights[order]
    pairs = list(combinations(range(n_classes), 2))
    coefficients = np.zeros((len(Cs), n_classes - 1, len(order)))
    intercepts = np.empty((len(Cs), len(pairs)))
    gaps = np.full(len(Cs), -1.0)
    is_done = np.zeros(len(pairs), bool)
    if n_classes > _MANY and _RIDGE * square.diagonal().max() * Cs[-1] <= tol:
        is_done = _fit_small_pairs(
            np.array(pairs), square, offsets, own_weights, Cs, tol, coefficients, intercepts, gaps
        )
    for pair, (i, j) in enumerate(pairs):
        if is_done[pair]:
            continue
        own, other = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        n_own, n_other = own.stop - own.start, other.stop - other.start
        if not n_own or not n_other:  # never for a class without graphs
            intercepts[:, pair] = 1.0 if n_own else -1.0
            continue
        y = np.concatenate([above[own], below[other]])
        w = np.concatenate([own_weights[own], own_weights[other]])
        path = fit_path(_block(square, own, other), y, Cs, tol, w)
        coefficients[:, j - 1, own] = path.betas[:, :n_own]
        coefficients[:, i, other] = path.betas[:, n_own:]
        intercepts[:, pair] = path.intercepts
        np.maximum(gaps, path.gaps, out=gaps)
    return Machines(order, offsets, coefficients, intercepts, gaps)


def _fit_small_pairs(
    pairs: Ints,
    square: Floats,
    offsets: Ints,
    weights: Floats,
    Cs: Floats,
    tol: float,
    coefficients: Floats,
    intercepts: Floats,
    gaps: Floats,
) -> NDArray[np.bool_]:
    """Fit machines of many small classes by few calls, in place; True where that was enough."""
    sizes = np.diff(offsets)
    largest = 2 * int(sizes.max())
    n_done, at_once = np.zeros(len(pairs), np.int64), int(_WORK / (len(Cs) * largest**2)) + 1
    if sizes.min() > 0 and largest <= _SMALL:
        for first in range(0, len(pairs), at_once):
            last = min(first + at_once, len(pairs))
            climb_pairs(first, last, pairs, square, offsets, weights, Cs, tol, coefficients, intercepts, gaps, n_done)
    return n_done == len(Cs)


def _block(square: Floats, own: slice, other: slice) -> Floats:
    """The Gram matrix of two stretches of graphs."""
    n = own.stop - own.start
    size = n + other.stop - other.start
    if size == len(square):
        return square
    block = np.empty((size, size))
    block[:n, :n], block[:n, n:] = square[own, own], square[own, other]
    block[n:, :n], block[n:, n:] = square[other, own], square[other, other]
    return block


def vote(decisions: Floats, n_classes: int) -> Ints:
    """The class with most votes for each row of (..., n_pairs) decisions; of equals the first, as in libsvm."""
    is_first = decisions.swapaxes(-1, -2) > 0  # pair by pair, as decide() has them in memory
    if n_classes == 2:
        return np.where(is_first[..., 0, :], 0, 1)
    votes = np.empty((n_classes, *is_first.shape[:-2], is_first.shape[-1]), np.int16)
    for i, pairs in enumerate(_pairs_by_class(n_classes)):
        # Row j of class i: a pair in which i comes second for j < i, first for the others.
        won, lost = is_first[..., pairs[i:], :], is_first[..., pairs[:i], :]
        votes[i] = won.sum(axis=-2, dtype=np.int16) - lost.sum(axis=-2, dtype=np.int16) + i
    return votes.argmax(axis=0)


def one_against_rest(decisions: Floats, n_classes: int) -> Floats:
    """How clearly graphs belong to each class, from (n_graphs, n_pairs) decisions.

    For two classes one number for each graph, above 0 for the second class. For more, the votes of each class, with what the
    machines say between them as a fraction below 1/3, as in :class:`sklearn.svm.SVC`.
    """
    if n_classes == 2:
        return -decisions[:, 0]
    is_first = decisions >= 0
    scores = np.empty((len(decisions), n_classes))
    for i, pairs in enumerate(_pairs_by_class(n_classes)):
        votes = is_first[:, pairs[i:]].sum(axis=1) + (~is_first[:, pairs[:i]]).sum(axis=1)
        confidence = decisions[:, pairs[i:]].sum(axis=1) - decisions[:, pairs[:i]].sum(axis=1)
        scores[:, i] = votes + confidence / (3 * (np.abs(confidence) + 1))
    return scores
