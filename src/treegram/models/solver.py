"""Support vector machines on a Gram matrix: one for each pair of classes, along a path of C, and their vote.

The dual problem in signed form: beta_i lies between 0 and bounds_i = C w_i y_i, where y_i is 1 or -1 and w_i > 0 is a weight;
all beta sum to zero, and beta' y - beta' K beta / 2 is maximized. f = y - K beta is its gradient. At the maximum there
is a b with f_i <= b wherever beta_i could grow and f_i >= b wherever it could shrink. The violation of this condition,
max f - min f over those sets, is the **gap**; the decision function is K beta + b. libsvm stops at the same gap.

Two kinds of steps share one state (beta, f), and each only ever improves the objective:

- a **pair step** (sequential minimal optimization, second order) moves two variables. It is cheap, and progress is fast
  at first; on a near-singular K at large C, millions are needed.
- a **face step** solves for all variables strictly inside their box at once, by a Cholesky factor that is updated as
  variables reach or leave their bounds. A few hundred changes reach the maximum up to rounding, whether K is singular
  or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from treegram._core.jit import reordered
from treegram._core.types import Floats, Ints

TOLERANCE = 1e-3  # the gap at which a machine has converged, as in libsvm

FRESH, BEGUN = False, True  # state of a C: not started, or started by an earlier call
DONE, MORE, SINGULAR, STUCK = 1, 2, 3, 4  # outcome of a walk; MORE: the allowed work is used up

_RIDGE = 1e-10  # times the largest diagonal entry: keeps factors of singular blocks positive, far below the tolerance
_LARGEST_RIDGE = 1e-2  # slightly indefinite matrices, such as those in single precision, need a larger ridge
_WORK = 1e8  # multiplications in one compiled call: tenths of a second, after which Ctrl-C is noticed


@dataclass(frozen=True)
class Path:
    """One two-class machine for each C."""

    betas: Floats  # (n_C, n_graphs)
    intercepts: Floats  # (n_C,)
    gaps: Floats  # (n_C,), the remaining gap; -1 where no fit was needed: the next smaller C has the same solution


def fit_path(K: Floats, y: Floats, Cs: Floats, tol: float = TOLERANCE, weights: Floats | None = None) -> Path:
    """Fit machines for all C, ascending, each starting from the previous solution.

    K must be C-contiguous, and y is 1 or -1; C is multiplied by the weight of a graph, which is above 0. First come as many
    pair steps as there are graphs, then face steps. If these fail because of rounding (K is not positive semidefinite), pair
    steps follow again, a thousand for each graph, before a fit is called unconverged.
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
        else:  # give up: the current state counts as the solution
            done = c + 1
            climb_path(K, y, weights, Cs[:done], c, BEGUN, np.inf, 0, *arrays)
            if (np.abs(beta) / weights).max() < Cs[c]:  # and no larger C would change it
                path.betas[done:], path.intercepts[done:], path.gaps[done:] = beta, path.intercepts[c], path.gaps[c]
                break
            done = climb_path(K, y, weights, Cs, done, FRESH, tol, n_steps, *arrays)
        c = done
    for c in np.flatnonzero(_RIDGE * K.diagonal().max() * Cs > tol):  # where the rounding of f's updates may exceed tol
        gap = _gap(K, y, weights * Cs[c] * y, path.betas[c])
        path.gaps[c] = gap if gap >= tol else path.gaps[c]
    return path


def _gap(K: Floats, y: Floats, bounds: Floats, beta: Floats) -> float:
    """Return the gap; see the module docstring."""
    f = y - K @ beta
    top = f[beta < np.maximum(bounds, 0.0)].max(initial=-np.inf)
    bottom = f[beta > np.minimum(bounds, 0.0)].min(initial=np.inf)
    return float(top - bottom)


class _Faces:
    """The workspace of face steps on one matrix: allocated when first needed, used for all C."""

    def __init__(self, K: Floats, y: Floats) -> None:
        n = len(y)
        self.K, self.y = K, y
        self.scale = float(K.diagonal().max()) or 1.0
        self.L, self.scratch = np.empty((n, n)), np.empty((7, n))
        self.free, self.is_free, self.state = np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(2, np.int64)

    def walk(self, bounds: Floats, beta: Floats, f: Floats, tol: float) -> None:
        """Take face steps, in place, until the gap is below tol or variables have changed sides 20 times per graph."""
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
    """For each C, one machine for each pair of classes (0, 1), (0, 2), ..., (1, 2), ...; above 0 is the first of a pair.

    A graph of class i has a coefficient for each other class: that for j is in row j - 1 if j > i, else in row j.
    scikit-learn and libsvm store coefficients in the same way.
    """

    order: Ints  # (n_graphs,): ids of the fitted graphs, class by class
    offsets: Ints  # (n_classes + 1,): where each class begins in the order
    coefficients: Floats  # (n_C, n_classes - 1, n_graphs)
    intercepts: Floats  # (n_C, n_pairs)
    gaps: Floats  # (n_C,): the largest remaining gap of a machine; -1 where no machine had to be fitted


def decide(rows: Floats, offsets: Ints, coefficients: Floats, intercepts: Floats) -> Floats:
    """Return decisions, (n_C, n_new, n_pairs), from (n_new, n_graphs) kernels with the fitted graphs, in Machines' order."""
    n_C, n_others, _ = coefficients.shape
    if n_others == 1:  # two classes: one product suffices
        return (coefficients[:, 0] @ rows.T + intercepts)[:, :, None]
    decisions = np.repeat(intercepts[:, :, None], len(rows), axis=2)  # pair by pair: adding to whole rows is fast
    for i, pairs in enumerate(_pairs_by_class(n_others + 1)):
        own = slice(offsets[i], offsets[i + 1])
        parts = coefficients[:, :, own].reshape(n_C * n_others, -1) @ rows[:, own].T
        decisions[:, pairs] += parts.reshape(n_C, n_others, len(rows))
    return decisions.swapaxes(1, 2)


@cache
def _pairs_by_class(n_classes: int) -> Ints:
    """Return the number of the pair for each class and row of its coefficients, (n_classes, n_classes - 1)."""
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
    """Fit on the graphs ``train`` for all C, ascending; K is the Gram matrix of all graphs, and ``codes`` are classes from 0.

    ``weights``, one for each graph, multiply C; graphs of weight 0 are left out. A class without graphs gets no votes.
    """
    Cs = np.array(Cs, dtype=np.float64)  # for all callers: compiled code treats read-only arrays as another type
    if weights is not None:
        train = train[weights[train] > 0]
    order = train[np.argsort(codes[train], kind="stable")]
    offsets = np.searchsorted(codes[order], np.arange(n_classes + 1))
    square = K.take(order, axis=0).take(order, axis=1).astype(np.float64, copy=False)
    own_weights = np.ones(len(order)) if weights is None else weights[order]
    pairs = list(combinations(range(n_classes), 2))
    coefficients = np.zeros((len(Cs), n_classes - 1, len(order)))
    intercepts = np.empty((len(Cs), len(pairs)))
    gaps = np.full(len(Cs), -1.0)
    for pair, (i, j) in enumerate(pairs):
        own, other = (np.arange(offsets[code], offsets[code + 1]) for code in (i, j))
        if not len(own) or not len(other):  # a class without graphs never wins
            intercepts[:, pair] = 1.0 if len(own) else -1.0
            continue
        both = np.concatenate([own, other])
        block = square if len(both) == len(square) else square[np.ix_(both, both)]
        path = fit_path(block, np.repeat([1.0, -1.0], [len(own), len(other)]), Cs, tol, own_weights[both])
        coefficients[:, j - 1, own] = path.betas[:, : len(own)]
        coefficients[:, i, other] = path.betas[:, len(own) :]
        intercepts[:, pair] = path.intercepts
        np.maximum(gaps, path.gaps, out=gaps)
    return Machines(order, offsets, coefficients, intercepts, gaps)


def vote(decisions: Floats, n_classes: int) -> Ints:
    """Return the class with the most votes for each row of (..., n_pairs) decisions; ties go to the first, as in libsvm."""
    is_first = decisions.swapaxes(-1, -2) > 0  # pair by pair, as decide() has them in memory
    if n_classes == 2:
        return np.where(is_first[..., 0, :], 0, 1)
    votes = np.empty((n_classes, *is_first.shape[:-2], is_first.shape[-1]), np.int16)
    for i, pairs in enumerate(_pairs_by_class(n_classes)):
        # Row j of class i is a pair in which i comes second for j < i, and first otherwise.
        won, lost = is_first[..., pairs[i:], :], is_first[..., pairs[:i], :]
        votes[i] = won.sum(axis=-2, dtype=np.int16) - lost.sum(axis=-2, dtype=np.int16) + i
    return votes.argmax(axis=0)


def one_against_rest(decisions: Floats, n_classes: int) -> Floats:
    """Return a score for each class from (n_graphs, n_pairs) decisions.

    For two classes, one number for each graph, above 0 for the second class. For more, the votes for each class, plus
    the confidence of the machines as a fraction below 1/3, as in :class:`sklearn.svm.SVC`.
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


# -------------------------------------------------------------------- compiled loops
# The functions without an underscore are called from Python. Each does a bounded amount of work, so that Ctrl-C is
# noticed soon, writes into the arrays that it receives, and returns one number. Loops are plain, and each helper is
# called in one place: an array expression, a sort, an allocation, or a helper that is compiled into several others
# would cost seconds at the first call. All arrays are C-contiguous and writeable, and float64, except for ``free`` and
# ``state`` (int64) and ``is_free`` (bool).

_loops = reordered(error_model="numpy")  # divisors are not checked, so there is less to compile
_FIRST = 1e300  # the violation of a variable that must join before all others
_LANES = 64  # the best of each block of this size is found first


# -------------------------------------------------------------------- pair steps, along a path of C


@_loops
def climb_path(K, y, weights, Cs, c, is_begun, tol, n_steps, beta, f, bars, betas, intercepts, gaps):
    """Fit one machine for each C from the c-th onward, as far as pair steps lead; return the number of C that are done.

    The state (beta, f) is updated in place; ``is_begun``: it already belongs to the c-th C. At most ``n_steps`` pair steps are
    taken for each C. For every C that is done, its coefficients, intercept and gap are in row c of the last three arrays. Once
    every coefficient is below C, larger C change nothing: their rows are copies, with a gap of -1. ``bars`` is a workspace of
    shape (3, n).
    """
    is_same = False
    while c < len(Cs):
        if not is_begun:
            _enlarge(y, weights, Cs[c], beta, f)
        gaps[c] = -1.0
        if not is_same:
            gaps[c] = max(_take_pair_steps(K, y, weights, Cs[c], beta, f, bars, tol, n_steps), 0.0)
        if gaps[c] >= tol:
            break
        intercepts[c] = intercepts[c - 1] if is_same else _intercept(y, weights, Cs[c], beta, f)
        largest = 0.0
        for i in range(len(y)):
            betas[c, i] = beta[i]
            largest = max(largest, abs(beta[i]) / weights[i])
        is_begun = is_same = largest < Cs[c]
        c += 1
    return c


@_loops
def _enlarge(y, weights, C, beta, f):
    """Scale beta, in place, by the factor within the new box that is best for the objective at a larger C."""
    linear, quadratic, largest = 0.0, 0.0, 0.0
    for i in range(len(y)):
        linear += beta[i] * y[i]
        quadratic += beta[i] * (y[i] - f[i])
        largest = max(largest, abs(beta[i]) / weights[i])
    if quadratic <= 0.0 or largest == 0.0:
        return
    factor = min(max(linear / quadratic, 1.0), C / largest)
    for i in range(len(y)):
        f[i] = y[i] - factor * (y[i] - f[i])
        beta[i] *= factor
        # Snap to the bound if only rounding separates beta from it.
        if abs(beta[i]) > (1.0 - 1e-15) * C * weights[i]:
            beta[i] = C * weights[i] * y[i]


@_loops
def _take_pair_steps(K, y, weights, C, beta, f, bars, tol, n_steps):
    """Take pair steps, in place, until the gap is below tol, but at most n_steps; return the gap.

    Rows of ``bars``: -inf where a variable cannot grow, -inf where it cannot shrink, and the diagonal of K.
    """
    n = len(y)
    barred_up, barred_down, diagonal = bars[0], bars[1], bars[2]
    for k in range(n):
        end = C * weights[k] * y[k]
        barred_up[k] = 0.0 if beta[k] < max(end, 0.0) else -np.inf
        barred_down[k] = 0.0 if beta[k] > min(end, 0.0) else -np.inf
        diagonal[k] = K[k, k]
    gap, i, j, step = np.inf, n - 1, n - 1, 0.0  # the first round moves nothing
    for step_number in range(n_steps + 1):
        i, top, bottom = _follow(K, i, j, step, f, barred_up, barred_down)
        gap = top - bottom
        if gap < tol or step_number == n_steps:
            break
        j = _best_partner(K, diagonal, f, barred_down, i, top)
        # A variable that reaches its bound is set to it exactly, whatever the rounding.
        end_i = C * weights[i] if y[i] > 0 else 0.0
        end_j = 0.0 if y[j] > 0 else -C * weights[j]
        room_i, room_j = end_i - beta[i], beta[j] - end_j
        step = min((top - f[j]) / max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], 1e-12), room_i, room_j)
        beta[i] = end_i if step == room_i else beta[i] + step
        beta[j] = end_j if step == room_j else beta[j] - step
        barred_up[i] = 0.0 if beta[i] < end_i else -np.inf
        barred_down[j] = 0.0 if beta[j] > end_j else -np.inf
        barred_down[i] = barred_up[j] = 0.0  # each has left the other end behind
    return gap


@_loops
def _follow(K, i, j, step, f, barred_up, barred_down):
    """Update f after a step of i upward and of j downward.

    Return the variable with the largest f among those that can grow, this value, and the smallest f among those that
    can shrink.
    """
    n = len(f)
    top, bottom, start = -np.inf, np.inf, 0
    for first in range(0, n, _LANES):
        high, low = -np.inf, np.inf
        for k in range(first, min(first + _LANES, n)):
            f[k] -= step * (K[i, k] - K[j, k])
            high = max(high, f[k] + barred_up[k])
            low = min(low, f[k] - barred_down[k])
        if high > top:
            top, start = high, first
        bottom = min(bottom, low)
    while start < n - 1 and f[start] + barred_up[start] != top:
        start += 1
    return start, top, bottom


@_loops
def _best_partner(K, diagonal, f, barred_down, i, top):
    """Return the variable whose pair step with i gains the most: (top - f_j)^2 / (K_ii + K_jj - 2 K_ij)."""
    best, partner = -1.0, i
    for k in range(len(f)):
        drop = max(top - f[k] + barred_down[k], 0.0)
        gain = drop * drop / max(diagonal[i] + diagonal[k] - 2.0 * K[i, k], 1e-12)
        if gain > best:
            best, partner = gain, k
    return partner


@_loops
def _intercept(y, weights, C, beta, f):
    """Return b: the mean of f over the free variables, or the middle of its range if none is free, as in libsvm."""
    total, count = 0.0, 0
    top, bottom = -np.inf, np.inf
    for i in range(len(y)):
        is_at_end = abs(beta[i]) >= C * weights[i]
        if beta[i] != 0.0 and not is_at_end:
            total += f[i]
            count += 1
        elif is_at_end == (y[i] < 0):  # it can only grow
            top = max(top, f[i])
        else:
            bottom = min(bottom, f[i])
    return total / count if count else 0.5 * (top + bottom)


# -------------------------------------------------------------------- face steps, at one C


@_loops
def walk_faces(K, bounds, beta, f, L, free, is_free, state, scratch, ridge, tol, work):
    """Take face steps, in place, until the gap is below tol; return DONE, MORE, SINGULAR or STUCK.

    The first ``state[0]`` rows of L, (n, n), are the Cholesky factor of K + ridge on the free variables, in the order of
    ``free``. Variables that reach a bound leave it one by one; of those that violate optimality at a bound, the worst
    tenth joins. ``state[1]`` counts both. ``work`` is roughly the number of multiplications allowed; ``scratch`` has
    shape (7, n).
    """
    n = len(bounds)
    before = scratch[0]
    while work > 0:
        for i in range(n):
            before[i] = beta[i]
        size = state[0]
        _maximize_on_face(bounds, beta, f, L, free, is_free, state, scratch, ridge, 0.1 * tol, work)
        left = size - state[0]
        work -= (left + 1) * size * size + n * size
        for i in range(n):
            change = beta[i] - before[i]
            if change != 0.0:
                for k in range(n):
                    f[k] -= change * K[i, k]
        joined = _join_worst(K, bounds, beta, f, L, free, is_free, state, before, ridge, tol, work)
        if joined < 0:
            return -joined
        if left + joined == 0:  # nothing left to change: rounding is in the way
            return STUCK
        state[1] += left + joined
        work -= joined * state[0] * state[0]
    return MORE


@_loops
def _maximize_on_face(bounds, beta, f, L, free, is_free, state, scratch, ridge, tol, work):
    """Move beta to the maximum over the free variables, in place; those that reach a bound on the way leave.

    f is read, not changed. The ridge shortens each step a little, so steps are repeated until this effect is below tol.

    With K + ridge = L L', z = L^-1 gradient and w = L^-1 1, the multiplier of the sum is b = w'z / w'w, and the step is
    L'^-1 (z - b w). When a variable leaves, z and w are rotated like the rows of L, so that only this last system is
    solved again.
    """
    gradient, z, w, step = scratch[1], scratch[2], scratch[3], scratch[4]
    size = state[0]
    for p in range(size):
        gradient[p] = f[free[p]]
    repeats, is_solved = 0, False
    while size > 1 and work > 0:
        work -= size * size
        if not is_solved:
            _solve_lower(L, size, gradient, z, w)
            is_solved = True
        b = _find_step(L, size, z, w, step)
        length, hit = 1.0, size
        for p in range(size):
            end = bounds[free[p]]
            room = (end if (end > 0) == (step[p] > 0) else 0.0) - beta[free[p]]
            if abs(step[p]) * length > abs(room):
                length, hit = room / step[p], p
        longest = 0.0
        for p in range(size):
            beta[free[p]] += length * step[p]
            gradient[p] -= length * (gradient[p] - b - ridge * step[p])
            z[p] -= length * (z[p] - b * w[p])  # except for the effect of the ridge, which the next round corrects
            longest = max(longest, abs(step[p]))
        if hit < size:
            end = bounds[free[hit]]
            beta[free[hit]] = end if (end > 0) == (step[hit] > 0) else 0.0
            _leave(L, free, is_free, size, hit, gradient, z, w, scratch[5], scratch[6])
            size -= 1
        else:
            repeats += 1
            if ridge * longest < tol or repeats == 100:
                break
            is_solved = False
    state[0] = size


@_loops
def _solve_lower(L, size, gradient, z, w):
    """Solve L z = gradient and L w = 1."""
    for i in range(size):
        first, second = gradient[i], 1.0
        for p in range(i):
            first -= L[i, p] * z[p]
            second -= L[i, p] * w[p]
        z[i], w[i] = first / L[i, i], second / L[i, i]


@_loops
def _find_step(L, size, z, w, step):
    """Compute the step to the maximum on the face, in place, from z = L^-1 gradient and w = L^-1 1; return the multiplier b."""
    above, below = 0.0, 0.0
    for p in range(size):
        above += w[p] * z[p]
        below += w[p] * w[p]
    b = above / below
    for p in range(size):
        step[p] = z[p] - b * w[p]
    excess = 0.0
    for i in range(size - 1, -1, -1):
        step[i] /= L[i, i]
        excess += step[i]
        for p in range(i):
            step[p] -= step[i] * L[i, p]
    for p in range(size):  # beta must keep summing to zero despite rounding
        step[p] -= excess / size
    return b


@_loops
def _join_worst(K, bounds, beta, f, L, free, is_free, state, violations, ridge, tol, work):
    """Let variables that violate optimality join the free ones; return their number, -DONE or -SINGULAR.

    All variables strictly inside their box come first: they are not free only because nothing is yet. The b of a face
    is the mean of f over its variables. Fewer than two variables have no face: then b is in the middle of the gap.
    """
    n, size = len(f), state[0]
    top, bottom, mean = -np.inf, np.inf, 0.0
    for i in range(n):
        if beta[i] < max(bounds[i], 0.0):
            top = max(top, f[i])
        if beta[i] > min(bounds[i], 0.0):
            bottom = min(bottom, f[i])
        mean += f[i] / size if is_free[i] else 0.0
    if top - bottom < tol:
        return -DONE
    b = mean if size > 1 else 0.5 * (top + bottom)
    worst = 0.0
    for i in range(n):
        is_inside = beta[i] != 0.0 and abs(beta[i]) < abs(bounds[i])
        can_grow = beta[i] < max(bounds[i], 0.0)
        violations[i] = 0.0 if is_free[i] else _FIRST if is_inside else f[i] - b if can_grow else b - f[i]
        worst = max(worst, violations[i])
    threshold = max(0.3 * worst, 0.1 * tol)
    most = n if worst == _FIRST else size + max(2, size // 10)
    for i in range(n):
        if violations[i] > threshold and state[0] < most and work > 0:
            work -= state[0] * state[0]
            if not _join(K, L, free, is_free, state, i, ridge):
                return -SINGULAR
    return state[0] - size


# -------------------------------------------------------------------- a Cholesky factor that variables join and leave


@_loops
def _join(K, L, free, is_free, state, i, ridge):
    """Append variable i to the factor; return False if the matrix would not be positive definite."""
    size = state[0]
    pivot = K[i, i] + ridge
    for p in range(size):
        value = K[i, free[p]]
        for q in range(p):
            value -= L[p, q] * L[size, q]
        L[size, p] = value / L[p, p]
        pivot -= L[size, p] * L[size, p]
    if pivot < 0.1 * ridge:
        return False
    L[size, size] = np.sqrt(pivot)
    free[size] = i
    is_free[i] = True
    state[0] = size + 1
    return True


@_loops
def _leave(L, free, is_free, size, r, gradient, z, w, cosines, sines):
    """Remove the r-th variable from the factor: a rank-one update of the rows below it.

    z and w are rotated like rows of L, so that L z and L w lose their r-th entry and keep the others.
    """
    is_free[free[r]] = False
    extra_z, extra_w = z[r], w[r]
    for i in range(r + 1, size):
        free[i - 1], gradient[i - 1] = free[i], gradient[i]
        for p in range(r):
            L[i - 1, p] = L[i, p]
        extra = L[i, r]
        for p in range(r + 1, i):
            value = L[i, p]
            L[i - 1, p - 1] = cosines[p] * value + sines[p] * extra
            extra = cosines[p] * extra - sines[p] * value
        length = np.sqrt(L[i, i] * L[i, i] + extra * extra)
        cosine, sine = L[i, i] / length, extra / length
        cosines[i], sines[i], L[i - 1, i - 1] = cosine, sine, length
        z[i - 1], extra_z = cosine * z[i] + sine * extra_z, cosine * extra_z - sine * z[i]
        w[i - 1], extra_w = cosine * w[i] + sine * extra_w, cosine * extra_w - sine * w[i]
