"""Support vector machines on a precomputed kernel: hot loops.

The dual problem in signed form: beta_i = y_i alpha_i lies in [0, C] where y_i = 1, in [-C, 0] where y_i = -1, all beta sum to
zero, and beta' y - beta' K beta / 2 is maximised. f = y - K beta is its gradient. At the maximum there is a b with f_i <= b
wherever beta_i could grow and f_i >= b wherever it could shrink; how far this is missed, max f - min f over those sets, is the
**gap**, and the decision function is K beta + b. libsvm stops at the same gap.

Two kinds of steps share one state (beta, f), and each only ever improves the objective:

- a **pair step** (sequential minimal optimisation, second order) moves two variables. Cheap, and fast at first; on a
  near-singular K at large C it takes millions.
- a **face step** solves for all variables strictly inside their box at once, by a Cholesky factor that is kept up to date while
  variables meet their bounds or leave them. A few hundred changes reach the maximum to rounding, singular K or not.
"""

from __future__ import annotations

import numpy as np

from treegram._numba import reordered

__all__ = ["CONVERGED", "SAME", "UNCONVERGED", "enlarge", "fit_pair", "intercept", "svc_path"]

SAME, CONVERGED, UNCONVERGED = 0, 1, 2  # what became of a fit; SAME: that of the next smaller C, no fit needed

_RIDGE = 1e-10  # times the largest diagonal entry: keeps factors of singular blocks positive, far below the tolerance
_LANES = 64  # the best of so many is found before the best of all


@reordered
def _take_pair_steps(K, y, C, beta, f, tol, max_steps):
    """Pair steps, in place, until the gap is below tol; float64 arrays (n, n), (n,); returns the gap."""
    n = len(y)
    barred_up, barred_down = np.zeros(n), np.zeros(n)  # -inf where a variable cannot move that way
    diagonal = np.empty(n)
    for k in range(n):
        diagonal[k] = K[k, k]
        _bar(y, C, beta, barred_up, barred_down, k)
    for _step in range(max_steps):
        i, top, bottom = _steepest(f, barred_up, barred_down)
        if top - bottom < tol:
            return top - bottom
        j = _best_partner(K[i], diagonal, f, barred_down, i, top)
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], 1e-12)
        room_i = (C if y[i] > 0 else 0.0) - beta[i]
        room_j = beta[j] - (0.0 if y[j] > 0 else -C)
        step = min((top - f[j]) / curvature, room_i, room_j)
        # A variable that meets its bound is set to it, so that rounding never leaves it beside.
        beta[i] = (C if y[i] > 0 else 0.0) if step == room_i else beta[i] + step
        beta[j] = (0.0 if y[j] > 0 else -C) if step == room_j else beta[j] - step
        _bar(y, C, beta, barred_up, barred_down, i)
        _bar(y, C, beta, barred_up, barred_down, j)
        row_i, row_j = K[i], K[j]
        for k in range(n):
            f[k] -= step * (row_i[k] - row_j[k])
    i, top, bottom = _steepest(f, barred_up, barred_down)
    return top - bottom


@reordered
def _bar(y, C, beta, barred_up, barred_down, k):
    """Note which ways variable k can move."""
    upper = C if y[k] > 0 else 0.0
    barred_up[k] = 0.0 if beta[k] < upper else -np.inf
    barred_down[k] = 0.0 if beta[k] > upper - C else -np.inf


@reordered
def _steepest(f, barred_up, barred_down):
    """Where f is largest among those that can grow, this value, and the smallest f among those that can shrink."""
    n = len(f)
    top, bottom, start = -np.inf, np.inf, 0
    for first in range(0, n, _LANES):
        high, low = -np.inf, np.inf
        for k in range(first, min(first + _LANES, n)):
            high = max(high, f[k] + barred_up[k])
            low = min(low, f[k] - barred_down[k])
        if high > top:
            top, start = high, first
        bottom = min(bottom, low)
    i = start
    while i < n - 1 and f[i] + barred_up[i] != top:
        i += 1
    return i, top, bottom


@reordered
def _best_partner(row, diagonal, f, barred_down, i, top):
    """The variable whose pair step with i gains most: (top - f_j)^2 / (K_ii + K_jj - 2 K_ij)."""
    best, partner = -1.0, i
    for k in range(len(f)):
        drop = max(top - f[k] + barred_down[k], 0.0)
        gain = drop * drop / max(diagonal[i] + diagonal[k] - 2.0 * row[k], 1e-12)
        if gain > best:
            best, partner = gain, k
    return partner


@reordered
def _take_face_steps(K, y, C, beta, f, L, tol, max_changes):
    """Face steps, in place, until the gap is below tol or so many variables have changed sides; returns the gap.

    L is a workspace (n, n): rows 0..size of it are the Cholesky factor of K + ridge on the free variables, in the order of
    ``free``. Those that meet a bound leave it one by one; of those that violate optimality at a bound, the worst tenth joins.
    """
    n = len(y)
    free, is_free = np.empty(n, np.int64), np.zeros(n, np.bool_)
    size, ridge = _join_inner(K, y, C, beta, L, free, is_free, _ridge(K))
    changes = 0
    before = np.empty(n)
    while size >= 0:
        before[:] = beta
        size, left = _maximise_on_face(y, C, beta, f, L, free, is_free, size, ridge, 0.1 * tol)
        _follow(K, before, beta, f)
        gap, grows, shrinks = _gap(y, C, beta, f)
        if gap < tol:
            _refresh(K, y, beta, f)
            gap, grows, shrinks = _gap(y, C, beta, f)
        if gap < tol or changes > max_changes:
            return gap
        former = size
        if size < 2:
            for i in (grows, shrinks):
                if size >= 0 and not is_free[i]:
                    size = _join(K, L, free, is_free, size, i, ridge)
        else:
            size = _join_worst(K, y, C, beta, f, L, free, is_free, size, ridge, 0.1 * tol)
        if size < 0:
            size, ridge = _join_inner(K, y, C, beta, L, free, is_free, 100.0 * ridge)
        elif left == 0 and size == former:  # nothing left to change: rounding is in the way
            return gap
        changes += left + abs(size - former)
    return _gap(y, C, beta, f)[0]


@reordered
def _maximise_on_face(y, C, beta, f, L, free, is_free, size, ridge, tol):
    """Move beta to the maximum over the free variables, in place; those that meet a bound on the way leave.

    f is read, not changed. The ridge holds each step back a little, so steps are repeated until that is below tol.
    Returns the number of free variables, and how many have left.

    With K + ridge = L L', z = L^-1 gradient and w = L^-1 1, the multiplier of the sum is b = w'z / w'w, and the step is
    L'^-1 (z - b w). A variable that leaves turns z and w as it turns the rows of L, so that only this last system is solved anew.
    """
    gradient, z, w, step = np.empty(size), np.empty(size), np.ones(size), np.empty(size)
    for p in range(size):
        gradient[p] = f[free[p]]
    z[:] = gradient
    _solve_lower(L, size, z)
    _solve_lower(L, size, w)
    left, repeats = 0, 0
    while size > 1:
        b = _find_step(L, size, z, w, step)
        length, hit = 1.0, -1
        for p in range(size):
            upper = C if y[free[p]] > 0 else 0.0
            room = (upper if step[p] > 0 else upper - C) - beta[free[p]]
            if abs(step[p]) * length > abs(room):
                length, hit = room / step[p], p
        for p in range(size):
            beta[free[p]] += length * step[p]
            gradient[p] -= length * (gradient[p] - b - ridge * step[p])
            z[p] -= length * (z[p] - b * w[p])  # but for the ridge's share, of which the next round takes care
        if hit < 0:
            repeats += 1
            if ridge * np.abs(step[:size]).max() < tol or repeats == 100:
                break
            z[:size] = gradient[:size]
            _solve_lower(L, size, z)
            continue
        i = free[hit]
        upper = C if y[i] > 0 else 0.0
        beta[i] = upper if step[hit] > 0 else upper - C
        gradient[hit : size - 1] = gradient[hit + 1 : size].copy()
        size = _leave(L, free, is_free, size, hit, z, w)
        left += 1
    return size, left


@reordered
def _find_step(L, size, z, w, step):
    """The step to the maximum on the face, in place, from z = L^-1 gradient and w = L^-1 1; returns the multiplier b."""
    b = _dot(w, z, size) / _dot(w, w, size)
    for p in range(size):
        step[p] = z[p] - b * w[p]
    _solve_upper(L, size, step)
    excess = step[:size].sum()
    if abs(excess) > 1e-13 * np.abs(step[:size]).sum():  # cancellation: beta must go on summing to zero
        ones = w[:size].copy()
        _solve_upper(L, size, ones)
        step[:size] -= excess / ones.sum() * ones
    return b


@reordered
def _join_inner(K, y, C, beta, L, free, is_free, ridge):
    """Let all variables strictly inside their box join, and no others; returns their number, and the ridge that it took.

    A matrix that is a little indefinite, as one in single precision is, takes a larger one; -1 where none will do.
    """
    largest = 1e8 * _ridge(K)
    while ridge <= largest:
        is_free[:] = False
        size = 0
        for i in range(len(y)):
            upper = C if y[i] > 0 else 0.0
            if size >= 0 and upper - C < beta[i] < upper:
                size = _join(K, L, free, is_free, size, i, ridge)
        if size >= 0:
            return size, ridge
        ridge *= 100.0
    return -1, ridge


@reordered
def _join_worst(K, y, C, beta, f, L, free, is_free, size, ridge, least):
    """Let the variables at a bound that violate optimality most join the free ones; returns the new size, or -1."""
    n = len(f)
    b = 0.0
    for p in range(size):
        b += f[free[p]] / size
    violations = np.zeros(n)
    for i in range(n):
        if not is_free[i]:
            upper = C if y[i] > 0 else 0.0
            violations[i] = f[i] - b if beta[i] < upper else b - f[i]
    order = np.argsort(-violations)
    threshold = max(0.3 * violations[order[0]], least)
    for i in order[: max(1, size // 10)]:
        if size >= 0 and violations[i] > threshold:
            size = _join(K, L, free, is_free, size, i, ridge)
    return size


@reordered
def _gap(y, C, beta, f):
    """(gap, variable that should grow most, variable that should shrink most)."""
    top, bottom, grows, shrinks = -np.inf, np.inf, 0, 0
    for i in range(len(f)):
        upper = C if y[i] > 0 else 0.0
        if beta[i] < upper and f[i] > top:
            top, grows = f[i], i
        if beta[i] > upper - C and f[i] < bottom:
            bottom, shrinks = f[i], i
    return top - bottom, grows, shrinks


@reordered
def _ridge(K):
    largest = 0.0
    for i in range(len(K)):
        largest = max(largest, K[i, i])
    return _RIDGE * largest if largest > 0 else _RIDGE


@reordered
def _follow(K, before, beta, f):
    """Bring f in line with what has changed in beta."""
    for i in range(len(f)):
        if beta[i] != before[i]:
            _subtract(beta[i] - before[i], K[i], f, len(f))


@reordered
def _refresh(K, y, beta, f):
    """Set f to y - K beta, without the rounding of many updates."""
    f[:] = y
    for i in range(len(y)):
        if beta[i] != 0.0:
            _subtract(beta[i], K[i], f, len(y))


# ------------------------------------------------------------- a Cholesky factor that variables join and leave


@reordered
def _join(K, L, free, is_free, size, i, ridge):
    """Append variable i to the factor; returns the new size, or -1 where the matrix would not be positive definite."""
    row, values = L[size], K[i]
    for p in range(size):
        row[p] = (values[free[p]] - _dot(L[p], row, p)) / L[p, p]
    pivot = values[i] + ridge - _dot(row, row, size)
    if pivot < 0.1 * ridge:
        return -1
    row[size] = np.sqrt(pivot)
    free[size] = i
    is_free[i] = True
    return size + 1


@reordered
def _leave(L, free, is_free, size, r, z, w):
    """Take the r-th variable out of the factor: a rank-one update of what stands below it; returns the new size.

    z and w are turned like rows of L, so that L z and L w lose their r-th entry and keep the others.
    """
    is_free[free[r]] = False
    free[r : size - 1] = free[r + 1 : size].copy()
    cosines, sines = np.empty(size), np.empty(size)
    for i in range(r + 1, size):
        L[i - 1, :r] = L[i, :r]
        extra = _turn(cosines, sines, L[i], L[i - 1], r, i)
        length = np.sqrt(L[i, i] * L[i, i] + extra * extra)
        cosines[i], sines[i] = L[i, i] / length, extra / length
        L[i - 1, i - 1] = length
    _turn(cosines, sines, z, z, r, size)
    _turn(cosines, sines, w, w, r, size)
    return size - 1


@reordered
def _turn(cosines, sines, source, target, r, end):
    """Rotate the entry at r with each of those after it up to ``end``, which move up by one; returns what is left of it."""
    extra = source[r]
    for p in range(r + 1, end):
        value = source[p]
        target[p - 1] = cosines[p] * value + sines[p] * extra
        extra = cosines[p] * extra - sines[p] * value
    return extra


@reordered
def _solve_lower(L, size, x):
    """Solve L z = x, in place."""
    for i in range(size):
        x[i] = (x[i] - _dot(L[i], x, i)) / L[i, i]


@reordered
def _solve_upper(L, size, x):
    """Solve L' z = x, in place."""
    for i in range(size - 1, -1, -1):
        x[i] /= L[i, i]
        _subtract(x[i], L[i], x, i)


@reordered
def _dot(a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@reordered
def _subtract(factor, x, y, n):
    """Subtract factor x from y, in place, for the first n."""
    for i in range(n):
        y[i] -= factor * x[i]


# ------------------------------------------------------------- a machine, a path of machines, a vote


@reordered
def fit_pair(K, y, C, beta, f, L, tol):
    """Fit one two-class machine from (beta, f), in place; returns the gap that is left, below tol if it converged.

    Pair steps first, as many as there are examples; then face steps. Should rounding defeat these (K not positive
    semidefinite), pair steps again, a thousand for each example, before the fit is called unconverged.
    """
    n = len(y)
    gap = _take_pair_steps(K, y, C, beta, f, tol, n)
    if gap >= tol:
        gap = _take_face_steps(K, y, C, beta, f, L, tol, 20 * n)
    if gap >= tol:
        _refresh(K, y, beta, f)
        gap = _take_pair_steps(K, y, C, beta, f, tol, 1000 * n)
    # Where C times the entries of K is huge, the rounding of f's updates adds up to more than the tolerance.
    if _ridge(K) * C > tol:
        _refresh(K, y, beta, f)
        gap, _grows, _shrinks = _gap(y, C, beta, f)
    return gap


@reordered
def enlarge(y, C, beta, f):
    """A start for the larger C: beta times the factor, in the new box, that is best for the objective; in place."""
    linear, quadratic, largest = 0.0, 0.0, 0.0
    for i in range(len(y)):
        linear += beta[i] * y[i]
        quadratic += beta[i] * (y[i] - f[i])
        largest = max(largest, abs(beta[i]))
    if quadratic <= 0.0 or largest == 0.0:
        return
    factor = min(max(linear / quadratic, 1.0), C / largest)
    for i in range(len(y)):
        f[i] = y[i] - factor * (y[i] - f[i])
        # Exactly C for what was at the bound: a product could be one bit beside it.
        beta[i] = factor * beta[i] if abs(beta[i]) < largest or factor * largest < C else np.sign(beta[i]) * C


@reordered
def intercept(y, C, beta, f):
    """b: the mean of f over the free variables, or the middle of what is allowed where none is free, as in libsvm."""
    total, count = 0.0, 0
    top, bottom = -np.inf, np.inf
    for i in range(len(y)):
        upper = C if y[i] > 0 else 0.0
        if upper - C < beta[i] < upper:
            total += f[i]
            count += 1
        elif beta[i] < upper:
            top = max(top, f[i])
        else:
            bottom = min(bottom, f[i])
    return total / count if count else 0.5 * (top + bottom)


@reordered
def svc_path(K, classes, n_classes, train, test, Cs, tol):
    """Predictions of a support vector machine for the test graphs, for each C in ascending order.

    K : float64 (n, n); classes : int64 (n,), from 0; train, test : int64 ids; Cs : float64. One machine for each pair of
    classes, and a vote, ties to the smaller class, as in libsvm. Returns int64 (n_C, n_test) predicted classes, and int64 (n_C,)
    the worst status of the machines at each C.
    """
    votes = np.zeros((len(Cs), len(test), n_classes), np.int64)
    status = np.zeros(len(Cs), np.int64)
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            members = train[(classes[train] == first) | (classes[train] == second)]
            if len(np.unique(classes[members])) == 2:
                _vote_along_path(K, classes, first, second, members, test, Cs, tol, votes, status)
    predicted = np.empty((len(Cs), len(test)), np.int64)
    for c in range(len(Cs)):
        for t in range(len(test)):
            predicted[c, t] = np.argmax(votes[c, t])
    return predicted, status


@reordered
def _vote_along_path(K, classes, first, second, members, test, Cs, tol, votes, status):
    """Votes of one pair of classes, added in place; once every dual coefficient is below C, larger C change nothing."""
    n = len(members)
    block = np.empty((n, n))
    y = np.empty(n)
    for i in range(n):
        y[i] = 1.0 if classes[members[i]] == first else -1.0
        for j in range(n):
            block[i, j] = K[members[i], members[j]]
    beta, f, L = np.zeros(n), y.copy(), np.empty((n, n))
    decisions = np.empty(len(test))
    largest = 0.0
    for c in range(len(Cs)):
        if c == 0 or largest >= Cs[c - 1]:  # rounding may have left one a bit above
            enlarge(y, Cs[c], beta, f)
            gap = fit_pair(block, y, Cs[c], beta, f, L, tol)
            status[c] = max(status[c], CONVERGED if gap < tol else UNCONVERGED)
            b = intercept(y, Cs[c], beta, f)
            largest = np.abs(beta).max()
            for t in range(len(test)):
                row = K[test[t]]
                decisions[t] = b
                for i in range(n):
                    decisions[t] += beta[i] * row[members[i]]
        elif gap >= tol:
            status[c] = UNCONVERGED
        for t in range(len(test)):
            votes[c, t, first if decisions[t] > 0 else second] += 1
