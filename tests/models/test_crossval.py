"""Tests of nested cross-validation: equal to a plain loop with scikit-learn, and without leakage."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from checks import gram_array
from treegram import ODDCL, load_digits_graphs
from treegram.models.auto import seed_of
from treegram.models.base import encode_classes
from treegram.models.search import Fits, choose, distinct
from treegram.models.svc import folds, score, select

CS = np.array([0.01, 1.0, 100.0, 10000.0])


@pytest.fixture(scope="module")
def digits():
    """Return (Gram matrices, classes from 0): 30 images each of 3, 8 and 9, which are easily confused."""
    graphs, y = load_digits_graphs()
    chosen = np.sort(np.concatenate([np.flatnonzero(y == digit)[:30] for digit in (3, 8, 9)]))
    grams = gram_array(ODDCL(gamma=1.0), graphs[chosen], depth=[0, 1], lam=[0.3, 1.2])
    codes = np.unique(y[chosen], return_inverse=True)[1].astype(np.int64)
    return [*grams[0, :1], *grams[1]], codes


def outer_split(codes):
    return folds(codes, 4, 7)[1]


# -------------------------------------------------------------------- the selection


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (3, 1)])
def test_selection_matches_a_loop_with_grid_search(digits, seed, n_classes):
    grams, codes = digits
    members = np.flatnonzero(codes < n_classes)
    grams, codes = [np.ascontiguousarray(K[np.ix_(members, members)]) for K in grams], codes[members]
    train, test = folds(codes, 4, seed)[0]
    ours = select(grams, codes, train, test, CS, n_folds=5, seed=seed)

    searches = []
    for K in grams:
        inner = StratifiedKFold(5, shuffle=True, random_state=seed)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": CS}, cv=inner)
        searches.append(search.fit(K[np.ix_(train, train)], codes[train]))
    # Ties go to the first Gram matrix and its smallest C.
    best = max(searches, key=lambda search: round(search.best_score_, 12))
    gram = searches.index(best)
    assert (ours.gram, ours.strength) == (gram, best.best_params_["C"])
    assert ours.inner_score == pytest.approx(best.best_score_, abs=1e-12)
    np.testing.assert_array_equal(ours.predicted, best.predict(grams[gram][np.ix_(test, train)]))
    assert ours.fits.n_fits > 0
    assert ours.fits.n_unconverged == 0


def test_selection_with_weights_matches_a_loop_over_weighted_svcs(digits):
    grams, codes = digits
    codes = (codes + (np.arange(len(codes)) % 5 == 0)) % 3  # with errors, or every accuracy would be 1
    train, test = outer_split(codes)
    weights = np.array([4.0, 1.0, 0.5])[codes]
    ours = select(grams, codes, train, test, CS, n_folds=3, seed=0, weights=weights)
    inner = [(train[a], train[b]) for a, b in folds(codes[train], 3, 0)]

    def fitted(K, C, ids):
        model = SVC(kernel="precomputed", C=C)
        return model.fit(K[np.ix_(ids, ids)], codes[ids], sample_weight=weights[ids])

    def mean_accuracy(K, C):
        models = [(fitted(K, C, a), K[np.ix_(b, a)], b) for a, b in inner]
        return np.mean([model.score(rows, codes[b], weights[b]) for model, rows, b in models])

    scores = np.array([[mean_accuracy(K, C) for C in CS] for K in grams])
    gram, c = choose(scores)
    assert (ours.gram, ours.strength) == (gram, CS[c])
    assert ours.inner_score == pytest.approx(scores[gram, c], abs=1e-12)
    expected = fitted(grams[gram], CS[c], train).predict(grams[gram][np.ix_(test, train)])
    np.testing.assert_array_equal(ours.predicted, expected)
    assert ours.inner_score != select(grams, codes, train, test, CS, n_folds=3, seed=0).inner_score


def test_scores_match_svc(digits):
    grams, codes = digits
    train, test = outer_split(codes)
    accuracies, fits = score(grams[1], codes, train, test, CS)
    for accuracy, C in zip(accuracies, CS, strict=True):
        model = SVC(kernel="precomputed", C=C).fit(grams[1][np.ix_(train, train)], codes[train])
        assert accuracy == model.score(grams[1][np.ix_(test, train)], codes[test])
    assert fits == Fits(3, 0)  # at 10000 no coefficient would differ from those at 100


def test_the_test_part_only_affects_its_own_predictions(digits):
    grams, codes = digits
    train, test = outer_split(codes)
    before = select(grams, codes, train, test, CS, n_folds=5, seed=0)
    rng = np.random.default_rng(0)
    scrambled = codes.copy()
    scrambled[test] = rng.permutation(scrambled[test])
    assert (scrambled != codes).any()
    noisy = [K.copy() for K in grams]
    for K in noisy:
        K[np.ix_(test, test)] = rng.normal(size=(len(test), len(test)))
        K[np.ix_(train, test)] = rng.normal(size=(len(train), len(test)))
    after = select(noisy, scrambled, train, test, CS, n_folds=5, seed=0)
    assert (after.gram, after.strength, after.inner_score) == (before.gram, before.strength, before.inner_score)
    np.testing.assert_array_equal(after.predicted, before.predicted)
    for K in noisy:
        K[np.ix_(test, train)] = -K[np.ix_(test, train)]
    turned = select(noisy, scrambled, train, test, CS, n_folds=5, seed=0)
    assert (turned.gram, turned.strength, turned.inner_score) == (before.gram, before.strength, before.inner_score)
    assert (turned.predicted != before.predicted).any()


def test_training_labels_matter(digits):
    """Without this check, the test above would also pass if nothing ever changed."""
    grams, codes = digits
    train, test = outer_split(codes)
    shuffled = codes.copy()
    shuffled[train] = np.random.default_rng(0).permutation(shuffled[train])
    before, after = (select(grams, y, train, test, CS, n_folds=5, seed=0) for y in (codes, shuffled))
    assert after.inner_score < before.inner_score - 0.2


def test_unconverged_fits_are_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    codes = rng.integers(2, size=60).astype(np.int64)
    train, test = folds(codes, 3, 0)[0]
    found = select([1e9 * X @ X.T], codes, train, test, CS, n_folds=3, seed=0)
    assert 0 < found.fits.n_unconverged < found.fits.n_fits
    assert select([X @ X.T], codes, train, test, CS, n_folds=3, seed=0).fits.n_unconverged == 0


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([[0.5, 0.7, 0.7], [0.7, 0.7, 0.6]], (0, 1)),
        ([[0.5, 0.5], [0.5, 0.9]], (1, 1)),
        ([[0.1 + 0.2, 0.3], [0.3, 0.3]], (0, 0)),
        ([[0.3, 0.1 + 0.2], [0.1 + 0.2, 0.3]], (0, 0)),  # 0.1 + 0.2 is above 0.3, by rounding
    ],
)
def test_ties_go_to_the_first_gram_and_smallest_c(scores, best):
    assert choose(np.array(scores)) == best


# -------------------------------------------------------------------- folds and seeds


@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_are_a_stratified_partition(n_folds):
    codes = np.repeat([0, 1, 2], [40, 20, 10]).astype(np.int64)
    parts = folds(codes, n_folds, 3)
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in parts])), np.arange(70))
    for train, test in parts:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(70))
        np.testing.assert_array_equal(np.bincount(codes[test]), np.array([40, 20, 10]) / n_folds)
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
        assert train.dtype == test.dtype == np.int64


def test_folds_depend_on_classes_and_seed():
    codes = np.tile([0, 1], 30)
    first, again, other = (folds(codes, 5, seed) for seed in (1, 1, 2))
    for (_, test), (_, same) in zip(first, again, strict=True):
        np.testing.assert_array_equal(test, same)
    assert any((test != different).any() for (_, test), (_, different) in zip(first, other, strict=True))


def test_seeds_depend_on_their_purpose():
    assert seed_of("BZR", 0, "outer") == seed_of("BZR", 0, "outer") == 256172798
    identities = [(name, repeat, level) for name in ("BZR", "COX2") for repeat in range(20) for level in ("a", "b")]
    seeds = {seed_of(*identity) for identity in identities}
    assert len(seeds) == len(identities)
    assert all(0 <= seed < 2**32 for seed in seeds)


# -------------------------------------------------------------------- matrices


def test_equal_matrices_are_kept_once():
    graphs, _ = load_digits_graphs()
    depths, lams = [0, 1, 2, 3], [0.1, 0.3, 0.5, 0.7, 1.0, 1.2]
    grams = gram_array(ODDCL(), graphs[:20], depth=depths, lam=lams).reshape(24, 20, 20)
    kept, positions = distinct(list(grams))
    assert len(kept) == 19  # at depth 0 lam cancels in the normalization
    assert positions == [0] * 6 + list(range(1, 19))
    for K, position in zip(grams, positions, strict=True):
        np.testing.assert_allclose(kept[position], K, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_equality_does_not_depend_on_the_scale(scale):
    K = np.eye(3) * scale
    nearly, other = K * (1 + 1e-14), K + np.diag([0, 0, 1e-6 * scale])
    assert distinct([K, nearly, other, other])[1] == [0, 0, 1, 1]


def test_matrices_of_different_sizes_and_empty_ones():
    assert distinct([np.eye(2), np.eye(3), np.eye(2)])[1] == [0, 1, 0]
    assert distinct([np.zeros((0, 0))] * 2)[1] == [0, 0]
    assert distinct([np.zeros((2, 2))] * 2)[1] == [0, 0]
    assert distinct([]) == ([], [])


# -------------------------------------------------------------------- classes


@pytest.mark.parametrize("y", [["b", "a", "b", "a"], [7, -1, 7, -1], [True, False, True, False], [0.5, 0.0, 0.5, 0.0]])
def test_classes_are_encoded_in_order(y):
    classes, codes = encode_classes(y)
    np.testing.assert_array_equal(classes, sorted(set(y)))
    np.testing.assert_array_equal(codes, [1, 0, 1, 0])
    assert codes.dtype == np.int64


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 5, "at least two classes; got 5 graphs of class a alone"),
        (["a"], "at least two classes; got 1 graph of class a alone"),
        ([], "at least two classes; got no graphs"),
        (None, "y is missing"),
        ([0, 1, None, 1], r"y\[2\] is None: the target of graph 2 is missing"),
        ([0.0, np.nan, 1.0], r"y\[1\] is nan: the target of graph 1 is missing"),
        (["a", "b", np.nan, "b"], r"y\[2\] is nan: the target of graph 2 is missing"),
        (np.ma.array([0, 1, 1], mask=[0, 1, 0]), r"y\[1\] is None: the target of graph 1 is missing"),
        ([[0, 1], [1, 0]], r"one target for each graph; got an array of shape \(2, 2\)"),
    ],
)
def test_invalid_targets_raise(y, message):
    with pytest.raises(ValueError, match=message):
        encode_classes(y)


def test_missing_values_of_pandas_raise():
    pandas = pytest.importorskip("pandas")
    for missing in (pandas.NA, pandas.NaT):
        with pytest.raises(ValueError, match=r"y\[1\] is .*: the target of graph 1 is missing"):
            encode_classes([0, missing, 1])


def test_fit_counts_are_added():
    assert Fits(3, 1) + Fits(4, 0) == Fits(7, 1)
