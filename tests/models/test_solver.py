"""Tests of our support vector machines against scikit-learn's, and against the optimality conditions."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from treegram import ODDCL, load_tu
from treegram.models import solver
from treegram.models.solver import MORE, decide, fit_machines, fit_path, vote, walk_faces

CS = 10.0 ** np.arange(-2, 5)
SAME, CONVERGED, UNCONVERGED = range(3)  # status of the machines at one C; SAME: as at the next smaller C
FEW = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def problems(draw, max_classes=5):
    """Draw (K of all graphs, classes of all, ids to fit on, other ids): singular, with repeated graphs, of any scale."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, max_classes))
    n_train, n_test = draw(st.integers(2 * n_classes, 30)), 15
    rank = draw(st.sampled_from([1, 2, 3, 5, 60]))
    X = rng.normal(size=(n_train + n_test, rank))
    if draw(st.booleans()):
        X = np.round(X)
    if draw(st.booleans()):
        X[rng.integers(n_train, size=n_train // 2)] = X[0]
    codes = rng.integers(n_classes, size=len(X))
    codes[:n_classes] = np.arange(n_classes)
    K = X @ X.T * 10.0 ** draw(st.integers(-4, 2))
    return K, codes.astype(np.int64), np.arange(n_train), np.arange(n_train, len(X))


def reference(K, y, C, tol):
    """Fit SVC on few graphs; with singular K and large C it may not finish, so it may give up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel="precomputed", C=C, tol=tol, max_iter=200_000, decision_function_shape="ovo")
        return model.fit(K, y)


def fitted_path(K, y, Cs, tol):
    """Return (C, beta, b, gap) for each C, each fit warm-started from the one before."""
    path = fit_path(np.ascontiguousarray(K), y, np.array(Cs), tol)
    return list(zip(Cs, path.betas, path.intercepts, path.gaps, strict=True))


def svc_path(K, codes, n_classes, train, test, Cs, tol):
    """Return (predicted classes, (n_C, n_test); the worst status of the machines at each C)."""
    fitted = fit_machines(K, codes, n_classes, train, Cs, tol)
    predicted = vote(
        decide(K[np.ix_(test, fitted.order)], fitted.offsets, fitted.coefficients, fitted.intercepts), n_classes
    )
    return predicted, np.where(fitted.gaps < 0, SAME, np.where(fitted.gaps < tol, CONVERGED, UNCONVERGED))


def true_gap(K, y, C, beta):
    f = y - K @ beta
    upper = np.where(y > 0, C, 0.0)
    return f[beta < upper].max(initial=-np.inf) - f[beta > upper - C].min(initial=np.inf)


def objective(K, y, beta):
    return beta @ y - beta @ K @ beta / 2


# -------------------------------------------------------------------- one machine


@FEW
@given(problems(max_classes=2), st.sampled_from([1e-3, 1e-6]))
def test_fit_is_optimal(problem, tol):
    K, codes, train, _ = problem
    K, y = np.ascontiguousarray(K[np.ix_(train, train)]), np.where(codes[train] == 0, 1.0, -1.0)
    for C, beta, _, gap in fitted_path(K, y, CS, tol):
        upper = np.where(y > 0, C, 0.0)
        rounding = 1e-12 * len(y) * C
        assert (beta <= upper + rounding).all()
        assert (beta >= upper - C - rounding).all()
        assert abs(beta.sum()) <= rounding
        assert gap < tol
        if gap >= 0:
            assert gap == pytest.approx(max(true_gap(K, y, C, beta), 0), abs=1e-9 + rounding * np.abs(K).max())
        assert true_gap(K, y, C, beta) < 1.01 * tol
        theirs = reference(K, y, C, 1e-6)
        best = np.zeros(len(y))
        best[theirs.support_] = theirs.dual_coef_[0]
        # Concave: no feasible point is better by more than the gap times the feasible distance.
        slack = tol * np.abs(beta - best).sum() + 1e-9 * abs(objective(K, y, best))
        assert objective(K, y, beta) >= objective(K, y, best) - slack


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e4])
@pytest.mark.parametrize("rank", [1, 3, 40])
def test_tiny_and_huge_entries(scale, rank):
    rng = np.random.default_rng(rank)
    X = rng.normal(size=(40, rank))
    K, y = X @ X.T * scale, np.where(rng.random(40) < 0.4, 1.0, -1.0)
    for C, beta, _, gap in fitted_path(K, y, CS / scale, 1e-3):
        assert gap < 1e-3
        assert true_gap(K, y, C, beta) < 1.01e-3
        assert abs(beta.sum()) <= 1e-12 * 40 * C


@pytest.mark.parametrize(("n_first", "n_second"), [(1, 1), (2, 1), (1, 4), (3, 3)])
@pytest.mark.parametrize("C", [0.01, 0.4, 10.0])
def test_intercept_matches_svc(n_first, n_second, C):
    """With all coefficients at their bounds b may be anywhere in an interval; both use its midpoint."""
    y = np.repeat([1.0, -1.0], [n_first, n_second])
    K = np.eye(len(y)) + 0.25
    *_, (_, _, b, _) = fitted_path(K, y, [C], 1e-9)
    theirs = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K, y)
    assert b == pytest.approx(theirs.intercept_[0], abs=1e-6)


def test_zero_kernel():
    y = np.array([1.0, 1.0, 1.0, -1.0])
    *_, (_, _, b, gap) = fitted_path(np.zeros((4, 4)), y, CS, 1e-3)
    assert gap < 1e-3
    assert b == pytest.approx(1.0)


@pytest.mark.parametrize("work", [1.0, 1e4])
def test_work_in_small_batches_gives_the_same_machine(work, monkeypatch):
    """Compiled calls do a bounded amount of work, so that Ctrl-C is handled, and are resumed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    whole = fitted_path(X @ X.T, y, CS, 1e-6)
    monkeypatch.setattr(solver, "_WORK", work)
    calls = []
    monkeypatch.setattr(solver, "walk_faces", lambda *a: calls.append(walk_faces(*a)) or calls[-1])
    for (C, beta, b, _), (_, other, c, gap) in zip(whole, fitted_path(X @ X.T, y, CS, 1e-6), strict=True):
        assert gap < 1e-6
        assert objective(X @ X.T, y, other) == pytest.approx(objective(X @ X.T, y, beta), rel=1e-6, abs=1e-6 * C)
        assert c == pytest.approx(b, abs=1e-4)
    assert (MORE in calls) == (work == 1.0)


# -------------------------------------------------------------------- a vote of machines


@FEW
@given(problems())
def test_predictions_match_svc(problem):
    K, codes, train, test = problem
    n_classes = int(codes.max()) + 1
    predicted, status = svc_path(K, codes, n_classes, train, test, CS, 1e-6)
    assert (status != UNCONVERGED).all()
    for c, C in enumerate(CS):
        theirs = reference(K[np.ix_(train, train)], codes[train], C, 1e-6)
        if theirs.fit_status_ == 0:
            rows = K[np.ix_(test, train)]
            is_clear = (np.abs(theirs.decision_function(rows).reshape(len(test), -1)) > 1e-3).all(axis=1)
            np.testing.assert_array_equal(predicted[c][is_clear], theirs.predict(rows)[is_clear])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_larger_c_is_skipped_only_if_it_changes_nothing(seed, n_classes):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=90).astype(np.int64)
    X = rng.normal(size=(90, 60)) + codes[:, None]
    train, test = np.arange(60), np.arange(60, 90)
    predicted, status = svc_path(X @ X.T, codes, n_classes, train, test, CS, 1e-6)
    assert status[0] == CONVERGED
    assert status[-1] == SAME
    assert (np.diff(status) <= 0).all()
    for c in range(len(CS)):
        alone, status_alone = svc_path(X @ X.T, codes, n_classes, train, test, CS[c : c + 1], 1e-6)
        np.testing.assert_array_equal(predicted[c], alone[0])
        assert status_alone[0] == CONVERGED


def test_unfitted_class_is_never_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    codes = np.repeat([0, 2], 15)
    predicted, _ = svc_path(X @ X.T, codes, 4, np.arange(0, 30, 2), np.arange(1, 30, 2), CS, 1e-3)
    assert set(np.unique(predicted)) == {0, 2}


@pytest.mark.slow
def test_singular_real_data_at_the_largest_c(data_dir):
    """PROTEINS at depth 0: few distinct nodes, a matrix of low rank, and ten seconds per fit in libsvm for all graphs."""
    graphs, y = load_tu(data_dir / "PROTEINS")
    chosen = np.random.default_rng(0).choice(len(graphs), 220, replace=False)
    K = ODDCL(depth=0).fit_transform(graphs[chosen])
    codes = np.unique(y[chosen], return_inverse=True)[1].astype(np.int64)
    train, test = np.arange(150), np.arange(150, 220)
    predicted, status = svc_path(K, codes, 2, train, test, CS, 1e-3)
    assert (status == CONVERGED).all()
    theirs = SVC(kernel="precomputed", C=CS[-1]).fit(K[np.ix_(train, train)], codes[train])
    np.testing.assert_array_equal(predicted[-1], theirs.predict(K[np.ix_(test, train)]))


# -------------------------------------------------------------------- no convergence


@pytest.mark.parametrize("seed", range(5))
def test_indefinite_matrix_terminates_and_is_reported(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(25, 25))
    y = np.where(rng.random(25) < 0.5, 1.0, -1.0)
    for C, beta, _, gap in fitted_path(A + A.T, y, CS, 1e-3):
        assert np.isfinite(beta).all()
        assert abs(beta.sum()) <= 1e-9 * C
        assert gap == pytest.approx(max(true_gap(A + A.T, y, C, beta), 0), abs=1e-6, rel=1e-6)


def test_unreachable_tolerance_is_reported():
    """Two free coefficients have gradients that differ by 0 at best."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    codes = rng.integers(2, size=40).astype(np.int64)
    everyone = np.arange(40)
    _, status = svc_path(X @ X.T, codes, 2, everyone, everyone, CS[2:], 0.0)
    assert (status == UNCONVERGED).all()


@pytest.mark.parametrize("seed", range(4))
def test_rounding_errors_above_the_tolerance_are_reported(seed):
    """C times the entries is 1e12 here: rounding errors change f by more than the tolerance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    K = 1e8 * X @ X.T
    for C, beta, _, gap in fitted_path(K, y, CS, 1e-3):
        rounding = 1e-15 * np.abs(K).max() * np.abs(beta).sum()
        assert gap == pytest.approx(max(true_gap(K, y, C, beta), 0), abs=1e-6 + rounding)
    assert gap >= 1e-3
