"""Tests of linear models on rows, which the automatic models use for very many graphs."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from treegram import (
    NSPDK,
    ODDCL,
    WL,
    WLOA,
    DropAttributes,
    FeatureMap,
    GraphClassifier,
    GraphRegressor,
    Graphs,
    GraphStatistics,
    ScaleAttributes,
    ShortestPath,
    StatisticsKernel,
    explain,
    load_digits_graphs,
    load_model,
    make_motifs,
    save_model,
)
from treegram.exceptions import ModelFileError
from treegram.models import blocks, linear
from treegram.models import parts as parts_module
from treegram.models.parts import Local, Parts, in_parts
from treegram.models.search import Candidate


@pytest.fixture(scope="module")
def digits():
    graphs, y = load_digits_graphs()
    chosen = np.flatnonzero(y < 3)[:120]
    return graphs[chosen], y[chosen]


@pytest.fixture
def few(monkeypatch):
    """Use linear models from 30 graphs on, and compute rows of a few graphs at a time."""
    monkeypatch.setattr(linear, "SWITCH", 30)
    monkeypatch.setattr(blocks, "_AT_ONCE", 17)
    monkeypatch.setattr(parts_module, "PART", 40)
    monkeypatch.setattr(blocks, "_N_MAPPED", 64)
    monkeypatch.setattr(blocks, "_N_COMPONENTS", 16)
    monkeypatch.setattr(blocks, "_N_NYSTROEM", 20)


def fitted_block(kernel, graphs):
    with in_parts(graphs) as parts:
        block, rows = blocks.fit_block(Candidate("name", kernel), parts, graphs)
    return block, sp.vstack(rows, format="csr")


def solve(X, y, weights, penalty, loss, start=None, tolerance=1e-13, cuts=(1 / 3, 1 / 2)):
    """Solve with the rows in parts."""
    start = (np.zeros(X.shape[1]), 0.0) if start is None else start
    ends = [0, *(int(cut * len(y)) for cut in cuts), len(y)]
    rows = [(X[a:b], (y[a:b], weights[a:b])) for a, b in pairwise(ends)]
    return linear.solve(Local(), rows, penalty, loss, start, tolerance)


# -------------------------------------------------------------------- the solver


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(12, 40),
    d=st.integers(1, 8),
    penalty=st.sampled_from([0.1, 1.0, 5.0]),
    loss=st.sampled_from(["logistic", "squared"]),
)
def test_solver_matches_scikit_learn(seed, n, d, penalty, loss):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    y = (y > np.median(y)).astype(float) if loss == "logistic" else y
    weights = rng.choice([0.0, 0.5, 2.0], size=n)
    weights[np.argsort(y)[[0, -1]]] = 1.0  # both classes are there
    v, b = solve(sp.csr_matrix(X), y, weights, penalty, loss)
    model = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000) if loss == "logistic" else Ridge(penalty)
    used = weights > 0  # weight 0 leaves a row out
    model.fit(X[used], y[used], sample_weight=weights[used])
    np.testing.assert_allclose(v, np.ravel(model.coef_), atol=1e-5)
    np.testing.assert_allclose(b, model.intercept_, atol=1e-5)


def test_solver_does_not_depend_on_the_start():
    rng = np.random.default_rng(0)
    X, y = sp.random(60, 90, 0.2, random_state=0, format="csr"), (rng.random(60) < 0.1).astype(float)
    v, b = solve(X, y, np.ones(60), 0.1, "logistic")
    u, c = solve(X, y, np.ones(60), 0.1, "logistic", (5 * rng.normal(size=90), 1.0))
    np.testing.assert_allclose(u, v, atol=1e-5)
    np.testing.assert_allclose(c, b, atol=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
def test_rounding_of_sums_does_not_grow(loss, tolerance):
    """A few columns are much longer than others and nearly the same: products alone let rounding grow by a factor of ten each."""
    rng = np.random.default_rng(0)
    size = rng.poisson(30, 400).astype(float)
    counts = np.stack([rng.binomial(size.astype(int), share) for share in (0.9, 0.5, 0.1)], axis=1)
    X = sp.hstack([counts, sp.random(400, 300, 0.05, random_state=0)], format="csr")
    y = size + rng.normal(size=400) if loss == "squared" else (size > 30).astype(float)
    solutions = [
        solve(X, y, np.ones(400), 0.03, loss, tolerance=tolerance, cuts=cuts) for cuts in ((), (0.3, 0.7), (0.1, 0.2))
    ]
    for v, b in solutions[1:]:
        np.testing.assert_allclose(v, solutions[0][0], atol=1e-10)
        np.testing.assert_allclose(b, solutions[0][1], atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_left_out_predictions_are_those_of_models_without_the_fold(loss, monkeypatch):
    monkeypatch.setattr(linear, "_TOLERANCE", 1e-14)
    rng = np.random.default_rng(1)
    rare = rng.normal(size=(90, 4)) * (
        rng.random((90, 4)) < (0.3, 0.9, 0.5, 0.8)
    )  # columns are solved in another order
    rows = [sp.csr_matrix(rare), sp.csr_matrix(10 * rng.normal(size=(90, 2)))]
    y = rows[0].toarray()[:, 1] + 0.5 * rng.normal(size=90)
    y = (y > 0).astype(float) if loss == "logistic" else y
    parts = Parts(Local(), [None, None], np.array([40, 50]))
    in_two = [[of_block[:40], of_block[40:]] for of_block in rows]
    measured = [linear.measure_rows(Local(), of_block) for of_block in in_two]
    model = linear.fit_linear(parts, measured, y[:, None], np.ones(90), loss)
    units = [np.sqrt(2 * (of_block.toarray() ** 2).sum() / 90) for of_block in rows]
    X = np.hstack([of_block.toarray() / unit for of_block, unit in zip(rows, units, strict=True)])
    folds, penalty = linear.fold_of_each(y), model.penalties[0]
    assert np.bincount(folds).tolist() == [30, 30, 30]
    of_blocks = np.empty((2, 90))
    for fold in range(3):
        train, test = folds != fold, folds == fold
        reference = LogisticRegression(C=1 / penalty, tol=1e-10) if loss == "logistic" else Ridge(alpha=penalty)
        reference.fit(X[train], y[train])
        decide = reference.decision_function if loss == "logistic" else reference.predict
        np.testing.assert_allclose(model.left_out[test, 0], decide(X[test]), atol=1e-5)
        coefficients = np.ravel(reference.coef_)
        of_blocks[:, test] = X[test, :4] @ coefficients[:4], X[test, 4:] @ coefficients[4:]
    decisions = sum(of_block @ c for of_block, c in zip(rows, model.coefficients, strict=True)) + model.intercept
    reference = (LogisticRegression(C=1 / penalty, tol=1e-10) if loss == "logistic" else Ridge(alpha=penalty)).fit(X, y)
    expected = reference.decision_function(X) if loss == "logistic" else reference.predict(X)
    np.testing.assert_allclose(decisions[:, 0], expected, atol=1e-5)
    assert model.shares.sum() == pytest.approx(1)
    variances = of_blocks.var(axis=1)
    np.testing.assert_allclose(model.shares, variances / variances.sum(), atol=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_left_out_predictions_do_not_depend_on_the_targets_of_their_fold(loss, monkeypatch):
    """No matter how early the solver stops."""
    monkeypatch.setattr(linear, "PENALTIES", (0.1,))
    rng = np.random.default_rng(0)
    graphs, X = Parts(Local(), [None], np.array([150])), sp.random(150, 200, 0.1, random_state=0, format="csr")
    y, folds = rng.integers(2, size=150).astype(float), rng.permutation(150) % 3
    monkeypatch.setattr(linear, "fold_of_each", lambda _: folds)
    rows = linear.measure_rows(Local(), [X])
    model = linear.fit_linear(graphs, [rows], y[:, None], np.ones(150), loss)
    for fold in range(3):
        changed = np.where(folds == fold, 1 - y, y)
        other = linear.fit_linear(graphs, [rows], changed[:, None], np.ones(150), loss)
        np.testing.assert_array_equal(other.left_out[folds == fold], model.left_out[folds == fold])
        assert not np.allclose(other.left_out[folds != fold], model.left_out[folds != fold])


@pytest.mark.parametrize("most_rare", [7, 30, 1000])
def test_rare_features_have_no_column(most_rare, few, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_RARE", most_rare)
    graphs, _, _ = make_motifs(60, random_state=0)
    counts = FeatureMap(WL(2, normalize=False)).fit_transform(graphs)
    of_feature = (counts > 0).sum(axis=0)
    _, rows = fitted_block(WL(2), graphs)
    assert rows.shape[1] == (of_feature >= max(2, 60 / most_rare)).sum()
    assert np.diff(rows.tocsc().indptr).min() >= max(2, 60 / most_rare)


# -------------------------------------------------------------------- rows


@pytest.mark.parametrize("kernel", [WL(2), WLOA(2), NSPDK(radius=1, distance=2)], ids=lambda kernel: kernel.name)
def test_rows_of_features_match_a_literal_loop(kernel, few):
    graphs, _, _ = make_motifs(50, random_state=0)
    block, rows = fitted_block(kernel, graphs)
    features = FeatureMap(kernel.set_params(normalize=False))
    counts = features.fit_transform(graphs).toarray()
    new = features.transform(make_motifs(20, random_state=1)[0]).toarray()
    kept = (counts > 0).sum(axis=0) >= 2
    for table, computed in ((counts, rows), (new, block.transform(make_motifs(20, random_state=1)[0]))):
        expected = []
        for row in table:
            values = [
                np.sqrt(value) * np.sqrt(np.log(1 + len(graphs) / (counts[:, j] > 0).sum()))
                for j, value in enumerate(row)
                if kept[j]
            ]
            length = np.sqrt(sum(value**2 for value in values))
            expected.append([value / length for value in values])
        order = np.lexsort(np.array(expected))
        np.testing.assert_allclose(np.sort(computed.toarray(), axis=1), np.sort(expected, axis=1), atol=1e-12)
        np.testing.assert_allclose(
            (computed @ computed.T).toarray(), np.array(expected) @ np.array(expected).T, atol=1e-12
        )
        assert len(order) == kept.sum()


def cells_of(block, table):
    """Return the cell of each row of columns for each draw of a block, cut by cut, with ranks by definition."""
    of_columns = [np.round(column / (np.abs(column).max() or 1.0), 10) for column in table.T]
    ranks = np.array([[((c < x).sum() + (c == x).sum() / 2) / len(c) for x in c] for c in of_columns]).T
    cells = []
    for of_graph in ranks:
        cells.append([])
        for draw, start in enumerate(block.starts[:-1]):
            cuts = range(start, block.starts[draw + 1])
            above = [cut for cut in cuts if of_graph[block.cut_columns[cut]] > block.cut_ranks[cut]]
            cells[-1].append(512 * draw + sum(block.cut_keys[above]) % 512)
    return np.array(cells)


def test_rows_of_columns_match_a_literal_loop(few):
    graphs, _, _ = make_motifs(60, random_state=0)
    block, rows = fitted_block(StatisticsKernel(), graphs)
    cells = cells_of(block, GraphStatistics().fit_transform(graphs))
    expected = np.zeros(rows.shape)
    np.put_along_axis(expected, cells, 1 / np.sqrt(256), axis=1)
    np.testing.assert_array_equal(rows.toarray(), expected)
    assert block.transform(graphs[:0]).shape == (0, rows.shape[1])


def test_products_of_rows_of_columns_are_a_kernel_on_ranks(monkeypatch):
    monkeypatch.setattr(blocks, "_N_DRAWS", 5000)
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=(40, 12)).tolist(), "b": rng.exponential(size=(40, 3)).tolist()}
    graphs = Graphs.from_edges([[(0, 1)]] * 40, graph_attributes=columns)
    for group in (None, "a"):
        _, rows = fitted_block(StatisticsKernel("graph_attributes", group=group), graphs)
        K = StatisticsKernel("graph_attributes", group=group, width=0.5).fit_transform(graphs)
        np.testing.assert_allclose((rows @ rows.T).toarray(), K, atol=0.04)  # 5.6 standard errors


def test_ranks_of_many_values_are_interpolated():
    column = np.random.default_rng(0).exponential(size=1000)
    graphs = Graphs.from_edges([[(0, 1)]] * 1000).assign(graph_attributes=column[:, None])
    block, _ = fitted_block(StatisticsKernel("graph_attributes"), graphs)
    ranks = (np.argsort(np.argsort(column)) + 0.5) / 1000
    known = np.interp(column / column.max(), block.knots[:, 0], block.ranks[:, 0])
    np.testing.assert_allclose(known, ranks, atol=0.02)
    assert len(block.knots) == 65


def test_columns_share_what_differs_from_usual_values(few):
    graphs, _, _ = make_motifs(60, random_state=0)
    block, rows = fitted_block(StatisticsKernel(), graphs)
    weights = np.random.default_rng(0).normal(size=(rows.shape[1], 2))
    parts, constant, names = block._column_parts(graphs, weights)
    np.testing.assert_allclose(parts.sum(axis=1) + constant, rows @ weights, atol=1e-12)
    table = GraphStatistics().fit_transform(graphs)
    assert parts.shape[1] == len(names) == table.shape[1]
    scaled = np.round(table / np.where(table.any(axis=0), np.abs(table).max(axis=0), 1.0), 10)
    assert (scaled == block.usual).any()
    assert not parts[scaled == block.usual].any()  # a usual value adds nothing


# -------------------------------------------------------------------- models


def kernels(kind):
    return (
        "auto"
        if kind == "auto"
        else [WL(2), make_pipeline(ScaleAttributes("robust"), ODDCL(1)), StatisticsKernel(), ShortestPath()]
    )


@pytest.mark.parametrize("kind", ["auto", "named"])
def test_classifier_on_rows(kind, digits, few, tmp_path):
    graphs, y = digits
    model = GraphClassifier(kernels(kind)).fit(graphs[:90], y[:90])
    assert not hasattr(model, "kernels_")
    assert len(model.blocks_) == 4
    assert model.weights_.sum() == pytest.approx(1)
    assert [record["candidate"] for record in model.search_results_] == [block.name for block in model.blocks_]
    assert model.score(graphs[90:], y[90:]) > 0.85
    assert model.loo_scores_["accuracy"] > 0.85
    assert model.loo_decisions_.shape == (90, 3)
    decisions = model.decision_function(graphs)
    one_by_one = np.concatenate([model.decision_function(graph) for graph in graphs[:5]])
    np.testing.assert_allclose(decisions[:5], one_by_one, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(graphs).sum(axis=1), 1)
    assert "blocks" not in repr(model)
    save_model(model, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    np.testing.assert_array_equal(loaded.decision_function(graphs), decisions)
    if kind == "auto":  # shortest paths without labels cannot be explained with vectors
        for attribute_to in ("tree", "root"):
            explanation = explain(loaded, graphs[85:95], attribute_to=attribute_to)
            np.testing.assert_allclose(explanation.decisions, decisions[85:95], atol=1e-9)
            assert explanation.residual < 1e-9
            assert explanation.in_training is None
            assert explanation.graph_contributions is None


def test_features_add_up_to_the_nodes(few):
    graphs, y, _ = make_motifs(80, random_state=0)
    model = GraphClassifier([WL(2), NSPDK(radius=1, distance=2), WLOA(1)]).fit(graphs[:60], y[:60])
    explanation = explain(model, graphs[60:])
    decisions = model.decision_function(graphs[60:])
    np.testing.assert_allclose(
        [v.sum() for v in explanation.node_contributions] + explanation.intercept, decisions, atol=1e-9
    )
    sums = np.ravel(explanation.feature_contributions.sum(axis=1)) + explanation.intercept
    np.testing.assert_allclose(sums, decisions, atol=1e-9)
    assert explanation.top_features(0)


def test_same_bits_again_and_in_threads(digits, few):
    graphs, y = digits
    first, second = (GraphClassifier(n_jobs=n_jobs).fit(graphs, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(first.decision_function(graphs), second.decision_function(graphs))
    np.testing.assert_array_equal(first.loo_decisions_, second.loo_decisions_)


def test_weights_of_graphs_and_classes(digits, few):
    graphs, y = digits
    weights = np.ones(len(y))
    weights[100:] = 0
    weighted = GraphClassifier(["wl"]).fit(graphs, y, sample_weight=weights)
    without = GraphClassifier(["wl"]).fit(graphs[:100], y[:100])
    np.testing.assert_array_equal(weighted.decision_function(graphs), without.decision_function(graphs))
    favored = GraphClassifier(["wl"], class_weight={1: 5.0}).fit(graphs, y)
    plain = GraphClassifier(["wl"]).fit(graphs, y)
    assert (favored.predict(graphs) == 1).sum() >= (plain.predict(graphs) == 1).sum()
    assert favored.intercept_[1] - favored.intercept_[0] > plain.intercept_[1] - plain.intercept_[0]


def test_balanced_weights_of_a_rare_class(few):
    graphs, y, _ = make_motifs(300, random_state=0)
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]])
    noisy = np.where(np.random.default_rng(0).random(len(rare)) < 0.02, 1, y[rare])
    balanced, plain = (
        GraphClassifier(["wl"], class_weight=weight).fit(graphs[rare], noisy) for weight in ("balanced", None)
    )
    assert balanced.intercept_[0] > plain.intercept_[0] + 1
    assert balanced.predict_proba(graphs[rare])[:, 1].mean() > plain.predict_proba(graphs[rare])[:, 1].mean()


def test_switch_forgets_the_other_model(digits, monkeypatch):
    graphs, y = digits
    monkeypatch.setattr(linear, "SWITCH", 80)
    model = GraphClassifier(["wl"]).fit(graphs, y)
    assert hasattr(model, "blocks_")
    model.fit(graphs[:80], y[:80])
    assert not hasattr(model, "blocks_")
    assert not hasattr(model, "coefs_")
    assert hasattr(model, "kernels_")


def test_nothing_learned_predicts_the_shares(few):
    graphs, _, _ = make_motifs(90, random_state=0)
    y = np.random.default_rng(0).permutation(np.arange(90) % 3 == 0)
    with pytest.warns(UserWarning, match="Nothing was learned"):
        model = GraphClassifier(["wl"]).fit(graphs, y)
    np.testing.assert_allclose(model.predict_proba(graphs[:2])[:, 1], 1 / 3)


def test_kernel_that_fails_is_left_out(digits, few, monkeypatch):
    graphs, y = digits
    fit = blocks._fit_features

    def fail(name, *arguments):
        if name == "pairs":
            raise MemoryError
        return fit(name, *arguments)

    monkeypatch.setattr(blocks, "_fit_features", fail)
    model = GraphClassifier().fit(graphs, y)
    notes = {record["candidate"]: record["note"] for record in model.search_results_}
    assert notes["pairs"] == "left out after MemoryError"
    assert "pairs" not in [block.name for block in model.blocks_]


# -------------------------------------------------------------------- numbers


@pytest.fixture(scope="module")
def ink():
    graphs, _ = load_digits_graphs()
    y = np.array([graph.attributes[:, 2].mean() for graph in graphs[:240]])
    return graphs[:240], np.exp((y - y.mean()) / y.std())  # a skewed target


@pytest.mark.parametrize("transform", ["auto", None])
def test_regressor_on_rows(transform, ink, few, tmp_path):
    graphs, y = ink
    model = GraphRegressor(target_transform=transform).fit(graphs[:180], y[:180])
    assert not hasattr(model, "kernels_")
    assert (model.target_scale_ is None) == (transform is None)
    predicted, std = model.predict(graphs, return_std=True)
    assert model.score(graphs[180:], y[180:]) > 0.5
    assert (std > 0).all()
    errors = np.abs(model._to_scale(y[180:]) - model._to_scale(predicted[180:]))
    assert model.loo_scores_["r2"] > 0.4
    low, high = model.prediction_interval(graphs[180:], 0.8).T
    assert 0.7 < ((low <= y[180:]) & (y[180:] <= high)).mean() < 0.99  # wide: errors are those of models on two thirds
    assert errors.std() < 2 * model._spread
    save_model(model, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    np.testing.assert_array_equal(loaded.predict(graphs), predicted)
    np.testing.assert_array_equal(loaded.prediction_interval(graphs[:9]), model.prediction_interval(graphs[:9]))
    explanation = explain(loaded, graphs[180:190])
    np.testing.assert_allclose(explanation.decisions, model._to_scale(predicted[180:190]), atol=1e-6)
    assert explanation.residual < 1e-9
    assert "vectors" in repr(model)


def test_regression_on_rows_matches_ridge(ink, few, monkeypatch):
    monkeypatch.setattr(linear, "_TOLERANCE", 1e-13)
    graphs, y = ink
    model = GraphRegressor(["wl"], target_transform=None).fit(graphs, y)
    rows = fitted_block(WL(), graphs)[1].toarray()
    ridge = Ridge(alpha=model.alphas_[0]).fit(rows, y / y.std())
    np.testing.assert_allclose(model.predict(graphs) / y.std(), ridge.predict(rows), atol=1e-5)


def test_regressor_that_learns_nothing_predicts_the_middle(ink, few):
    graphs, y = ink
    y = np.random.default_rng(0).permutation(y)
    with pytest.warns(UserWarning, match="Nothing was learned"):
        model = GraphRegressor(["wl"]).fit(graphs, y)
    np.testing.assert_allclose(model.predict(graphs[:3]), np.median(y), rtol=0.2)
    low, high = model.prediction_interval(graphs[:1], 0.9)[0]
    assert 0.85 < ((low <= y) & (y <= high)).mean() < 0.95


def test_several_targets_on_rows(ink, few):
    graphs, y = ink
    targets = np.stack([y, -y], axis=1)
    targets[:100, 1] = np.nan
    model = GraphRegressor(["wl"]).fit(graphs, targets)
    assert model.predict(graphs).shape == (240, 2)
    assert all(hasattr(copy, "blocks_") for copy in model.estimators_)


# -------------------------------------------------------------------- model files


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("kind", "attribute", "change"),
    [
        ("FeatureBlock", "codes", lambda codes: codes[::-1]),
        ("FeatureBlock", "scales", lambda scales: scales[:-1]),
        ("FeatureBlock", "kernel_", lambda kernel: ODDCL(1).fit(kernel.graphs_)),
        ("FeatureBlock", "steps", lambda _: DropAttributes()),
        ("ColumnBlock", "ranks", lambda ranks: 2 * ranks),
        ("ColumnBlock", "usual", lambda usual: usual[:-1]),
        ("ColumnBlock", "names", lambda names: names[:-1]),
        ("ColumnBlock", "statistics", lambda _: None),
        ("ColumnBlock", "group", lambda _: 1),
        ("ColumnBlock", "cut_columns", lambda columns: columns + 1000),
        ("ColumnBlock", "cut_keys", lambda keys: keys + 512),
        ("ColumnBlock", "cut_ranks", lambda ranks: ranks[:-1]),
        ("ColumnBlock", "starts", lambda starts: starts[::-1]),
        ("ColumnBlock", "starts", lambda starts: starts[:1]),
        ("MapBlock", "transformer", lambda _: FeatureMap()),
    ],
)
def test_damaged_blocks_are_refused(kind, attribute, change, few, tmp_path):
    graphs, y, _ = make_motifs(60, random_state=0)
    model = GraphClassifier([WL(1), StatisticsKernel(), ShortestPath()]).fit(graphs, y)
    (block,) = (block for block in model.blocks_ if type(block).__name__ == kind)
    vars(block)[attribute] = change(vars(block)[attribute])
    save_model(model, tmp_path / "model.tgm")
    with pytest.raises(ModelFileError, match=r" of a (Feature|Column|Map)Block must "):
        load_model(tmp_path / "model.tgm")


def test_coefficients_must_fit_the_blocks(few, tmp_path):
    graphs, y, _ = make_motifs(60, random_state=0)
    model = GraphClassifier([WL(1), StatisticsKernel()]).fit(graphs, y)
    model.coefs_[0] = model.coefs_[0][:-1]
    save_model(model, tmp_path / "model.tgm")
    with pytest.raises(ModelFileError, match="coefs_ must have a row for each of the"):
        load_model(tmp_path / "model.tgm")


def test_statistics_with_many_values_are_the_same_after_loading(tmp_path):
    rng = np.random.default_rng(0)
    edges = [[(0, 1), (1, 2)] for _ in range(40)]
    labels = [[(str(a), int(b)) for a, b in rng.integers(9, size=(3, 2))] for _ in edges]
    graphs = Graphs.from_edges(edges, labels=labels)
    statistics = GraphStatistics(max_labels=5).fit(graphs)
    save_model(statistics, tmp_path / "statistics.tgm")
    loaded = load_model(tmp_path / "statistics.tgm")
    assert loaded.feature_names_out_ == statistics.feature_names_out_
    np.testing.assert_array_equal(loaded.transform(graphs), statistics.transform(graphs))
    statistics._values[0].values[0] = statistics._values[0].values[1]
    save_model(statistics, tmp_path / "statistics.tgm")
    with pytest.raises(ModelFileError, match="distinct"):
        load_model(tmp_path / "statistics.tgm")
