"""GraphSVC with landmarks: the same answers where the rows are exact, and no Gram matrix anywhere."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from treegram import (
    ODDCL,
    WL,
    GraphSVC,
    ModelFileError,
    Nystroem,
    ParameterError,
    explain,
    load_digits_graphs,
    save_model,
)

GRAPHS, Y = load_digits_graphs()
GRAPHS, Y = GRAPHS[:90], Y[:90]


def test_the_machine_is_a_linear_one_on_rows_of_landmarks():
    chosen = Y < 2
    graphs, y = GRAPHS[np.flatnonzero(chosen)], Y[chosen]
    model = GraphSVC(ODDCL(depth=1), grid={}, C=10, cv=3, solver="landmarks", n_landmarks=6).fit(graphs, y)
    rows = Nystroem(ODDCL(depth=1), 6)
    expected = LinearSVC(C=10, dual=False).fit(rows.fit_transform(graphs), y)
    np.testing.assert_allclose(
        model.decision_function(GRAPHS), expected.decision_function(rows.transform(GRAPHS)), atol=1e-3
    )
    assert len(model.kernel_.graphs_) == 6  # the landmarks alone are kept


def test_many_classes_a_grid_weights_and_probabilities():
    model = GraphSVC(
        [ODDCL(depth=1), WL(1)],
        C=[1, 100],
        cv=3,
        solver="landmarks",
        n_landmarks=60,
        probability=True,
        class_weight="balanced",
    ).fit(GRAPHS, Y)
    exact = GraphSVC([ODDCL(depth=1), WL(1)], C=[1, 100], cv=3).fit(GRAPHS, Y)
    assert model.best_params_.keys() >= {"kernel", "C"}
    assert model.best_score_ > exact.best_score_ - 0.1
    assert (model.predict(GRAPHS) == Y).mean() > 0.9
    np.testing.assert_allclose(model.predict_proba(GRAPHS).sum(axis=1), 1)


def test_graphs_of_weight_zero_are_not_seen():
    weights = np.ones(len(Y))
    weights[Y == 9] = 0
    model = GraphSVC(WL(1), grid={}, C=1, cv=3, solver="landmarks", n_landmarks=20)
    model.fit(GRAPHS, Y, sample_weight=weights)
    assert 9 not in model.predict(GRAPHS)


def test_no_gram_matrix_is_computed(monkeypatch):
    monkeypatch.setattr(ODDCL, "fit_transform", None)
    monkeypatch.setattr(ODDCL, "gram_grid", None)
    monkeypatch.setattr("treegram.models.memory.available_bytes", lambda: 1000.0)  # none would fit
    model = GraphSVC(ODDCL(depth=1), grid={"lam": [0.5, 1]}, cv=3, solver="landmarks", n_landmarks=10).fit(GRAPHS, Y)
    assert model.landmarks_.n_features_out_ == 10
    with pytest.raises(MemoryError, match="solver='landmarks'"):
        GraphSVC(ODDCL(depth=1), grid={}, cv=3).fit(GRAPHS, Y)


def test_what_does_not_go_together_is_refused(tmp_path):
    with pytest.raises(ValueError, match="does not go with solver='landmarks'"):
        GraphSVC("auto", cv=3, solver="landmarks").fit(GRAPHS, Y)
    model = GraphSVC(WL(1), grid={}, C=1, cv=3, solver="landmarks", n_landmarks=5).fit(GRAPHS, Y)
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save_model(model, tmp_path / "model")
    with pytest.raises(ParameterError, match="cannot be explained"):
        explain(model, GRAPHS[:1])
