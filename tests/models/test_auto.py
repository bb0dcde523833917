"""Tests of the automatic choice of kernels: candidates, no leakage, failures, and a complete search_results_."""

import pickle
import re
import warnings
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from treegram import (
    GraphClassifier,
    GraphGP,
    GraphRegressor,
    GraphRidge,
    Graphs,
    GraphSVC,
    explain,
    load_digits_graphs,
    load_model,
    save_model,
)
from treegram.exceptions import StudyError
from treegram.models import auto
from treegram.models.auto import auto_candidates, class_targets


def used_names(model):
    return [record["candidate"] for record in model.search_results_ if record["weight"] is not None]


def loo_accuracy(graphs, y):
    return GraphClassifier().fit(graphs, y).loo_scores_["accuracy"]


@pytest.fixture(scope="module")
def digits():
    """Return digits of two classes with three attributes."""
    graphs, y = load_digits_graphs()
    chosen = np.flatnonzero(y < 2)[:40]
    return graphs[chosen], y[chosen]


@pytest.fixture(scope="module")
def fitted(digits):
    return GraphClassifier().fit(*digits)


def random_graphs(n_graphs, *, seed=0, labels=None, attributes=0, edge_labels=False):
    rng = np.random.default_rng(seed)
    edges = [[(i, i + 1) for i in range(3)] + [(0, 3)] * int(rng.integers(2)) for _ in range(n_graphs)]
    return Graphs.from_edges(
        edges,
        n_nodes=[4] * n_graphs,
        labels=None if labels is None else [rng.choice(labels, 4).tolist() for _ in edges],
        attributes=[rng.normal(size=(4, attributes)) for _ in edges] if attributes else None,
        edge_labels=[rng.integers(2, size=len(some)).tolist() for some in edges] if edge_labels else None,
    )


# -------------------------------------------------------------------- candidates


@pytest.mark.parametrize("labels", [None, ["C", "N"]])
@pytest.mark.parametrize("attributes", [0, 1, 3])
@pytest.mark.parametrize("edge_labels", [False, True])
def test_candidates_use_what_the_graphs_have(labels, attributes, edge_labels):
    graphs = random_graphs(8, labels=labels, attributes=attributes, edge_labels=edge_labels)
    candidates = auto_candidates(graphs)
    names = [one.name for one in candidates]
    assert len(set(names)) == len(names)
    assert all(one.reason for one in candidates)
    assert any("raw vectors" in name for name in names) == (attributes > 0)
    assert any("whitened" in name for name in names) == (attributes > 1)
    for one in candidates:
        K = one.kernel.fit_transform(graphs)
        np.testing.assert_allclose(K.diagonal(), 1.0)
        assert np.linalg.eigvalsh(K).min() > -1e-9
    values = {value for one in candidates for key, value in one.kernel.get_params().items() if "use_edge_labels" in key}
    assert (True in values) == edge_labels


def test_edge_labels_are_used():
    """Two classes that differ only in their edge labels."""
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)]] * 24, labels=[["C"] * 3] * 24, edge_labels=[[1 + i % 2] * 2 for i in range(24)]
    )
    assert loo_accuracy(graphs, [i % 2 for i in range(24)]) == 1.0


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e5])
def test_gammas_adapt_to_the_attributes(scale):
    """Attributes of any range and number give a Gram matrix that is neither the identity nor all ones."""
    rng = np.random.default_rng(0)
    ranges = scale * 10.0 ** np.linspace(-2, 3, 29)  # as different as those of PROTEINS_full
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)]] * 20,
        labels=[["C"] * 3] * 20,
        attributes=[ranges * rng.normal(size=(3, 29)) for _ in range(20)],
    )
    for one in auto_candidates(graphs):
        if "scaled" in one.name or "neighbor" in one.name or "raw" in one.name:
            K = one.kernel.fit_transform(graphs)
            others = K[~np.eye(20, dtype=bool)]
            assert 0.001 < others.mean() < 0.999, one.name


def test_candidates_do_not_depend_on_the_scale():
    graphs = random_graphs(12, attributes=3)
    larger = replace(graphs, attributes=1024.0 * graphs.attributes)
    for one, other in zip(auto_candidates(graphs), auto_candidates(larger), strict=True):
        np.testing.assert_allclose(
            one.kernel.fit_transform(graphs), other.kernel.fit_transform(larger), atol=1e-9, err_msg=one.name
        )


def describe(graphs, **options):
    """Return one line per candidate."""
    return [f"{one.name} = {' '.join(repr(one.kernel).split())}" for one in auto_candidates(graphs, **options)]


def test_candidates_match_the_recorded_version():
    """A change of the list must increase AUTO_VERSION and add a new file: stored studies rely on it."""
    labels, vectors = (random_graphs(8, labels=["C", "N"], edge_labels=True, attributes=n) for n in (0, 2))
    expected = Path(__file__).with_name(f"auto_version_{auto.AUTO_VERSION}.txt").read_text().splitlines()
    known = replace(labels, graph_attributes=np.arange(8.0)[:, None])
    more = [line for line in describe(known, with_counts=True) if line not in describe(labels)]
    parts = labels.assign(
        labels=[("C", i % 2) for i in range(labels.n_nodes)], graph_attributes={"a": np.arange(8.0), "b": np.ones(8)}
    )
    views = [line for line in describe(parts) if line not in describe(labels)]
    sections = {"labels": describe(labels), "vectors": describe(vectors), "attributes, counts": more}
    sections |= {"parts of labels, groups of attributes": views}
    assert [line for title, lines in sections.items() for line in (f"# {title}", *lines)] == expected


def test_study_of_another_version_is_not_continued():
    from treegram.study import Store, read_study
    from treegram.study.run import _refuse_other_auto

    with Store.open(Path(__file__).parents[2] / "results" / "wide.sqlite") as store:
        assert {run.versions["auto"] for run in store.runs()} <= {"c3a7b50daad4", "1"}
        with pytest.raises(StudyError, match="another version of the kernel 'auto': c3a7b50daad4, not 5"):
            _refuse_other_auto(read_study("wide"), store)


# -------------------------------------------------------------------- selection


def test_search_results_list_every_candidate(digits, fitted):
    records = fitted.search_results_
    assert sorted(record["candidate"] for record in records) == sorted(one.name for one in auto_candidates(digits[0]))
    assert all(record["reason"] and record["seconds"] >= 0 for record in records)
    weights = [record["weight"] for record in records if record["weight"] is not None]
    assert sorted(weights, reverse=True) == fitted.weights_.tolist()
    assert sum(weights) == pytest.approx(1.0)
    assert all((record["weight"] is None) == record["note"].startswith("left out") for record in records)


@pytest.mark.parametrize("kind", [GraphClassifier, GraphRegressor])
def test_summary_and_repr_name_the_same_kernels_in_the_same_order(kind, digits):
    graphs, y = digits
    model = kind().fit(graphs, y if kind is GraphClassifier else [graph.attributes[:, 2].mean() for graph in graphs])
    summary = model.search_summary()
    lines = str(summary).splitlines()
    columns = ["weight", model._score_name, "graphs", "seconds", "candidate", "reason"]
    assert re.split("  +", lines[0].strip()) == columns
    notes = [f"targets: {model.target_scale_ or 'plain values'}"] if kind is GraphRegressor else []
    assert lines[len(model.search_results_) + 1 :] == notes
    shown = re.findall(r"(?:# |\+ )(\d\.\d\d) ([^+;]*?)(?= \+|;|$)", repr(model))
    for line, (weight, name), exact in zip(lines[1:], shown, model.weights_, strict=False):
        assert f" {name} " in line
        assert float(weight) == pytest.approx(exact, abs=0.005)
        assert float(line.split()[0]) == pytest.approx(exact, abs=0.0005)
    assert not any(line.count(":") > 2 for line in lines)
    assert escape(shown[0][1]) in model._repr_mimebundle_()["text/html"]
    assert "#" not in repr(clone(model))
    assert repr(summary) == str(summary)
    assert summary._repr_html_().count("<tr>") == len(model.search_results_) + 1


def test_no_warning_about_kernels_that_the_user_did_not_name():
    rng = np.random.default_rng(0)
    edges = [[(0, 1), (1, 2)]] * 24
    graphs = Graphs.from_edges(
        edges,
        labels=[["C", "N", "C"] if i % 2 else ["C", "C", "C"] for i in range(24)],
        edge_attributes=[rng.normal(size=(2, 2)) for _ in edges],
    )
    model = GraphClassifier().fit(graphs, [i % 2 for i in range(24)])  # a warning would be an error
    assert not any("edge vectors" in name for name in used_names(model))
    with pytest.warns(UserWarning, match="does not use the .*edge vectors"):
        GraphClassifier(["wl"]).fit(graphs, [i % 2 for i in range(24)])


def test_repeated_and_threaded_fits_are_equal(digits, fitted):
    again = GraphClassifier(n_jobs=2).fit(*digits)

    def untimed_results(model):
        return [{key: value for key, value in one.items() if key != "seconds"} for one in model.search_results_]

    assert untimed_results(again) == untimed_results(fitted)
    np.testing.assert_array_equal(again.decision_function(digits[0]), fitted.decision_function(digits[0]))


@pytest.mark.slow
def test_permuted_classes_give_chance_accuracy():
    """Everything is learned from the training part: with random classes there is nothing to find."""
    graphs = random_graphs(60, labels=["C", "N"], attributes=2)
    scores = []
    for seed in range(3):
        y = np.random.default_rng(seed).permutation([0, 1] * 30)
        folds = StratifiedKFold(3, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Nothing was learned")
            scores.append(cross_val_score(GraphClassifier(), graphs, y, cv=folds).mean())
    assert 0.35 < np.mean(scores) < 0.65


def test_predictions_do_not_depend_on_the_other_test_graphs(digits):
    graphs, y = digits
    model = GraphClassifier().fit(graphs[:30], y[:30])
    alone = np.concatenate([model.decision_function(graphs[i : i + 1]) for i in range(30, 40)])
    np.testing.assert_allclose(model.decision_function(graphs[30:]), alone, atol=1e-12)


def test_candidates_are_screened_on_a_subsample(digits, monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SAMPLE", 20)
    fitted = GraphClassifier().fit(*digits)
    n_candidates, n_finalists = len(auto_candidates(digits[0])), auto.N_FINALISTS
    sizes = [record["n_graphs"] for record in fitted.search_results_]
    assert sizes == [20] * (n_candidates - n_finalists) + [40] * n_finalists


def test_subsample_has_all_classes(digits):
    _, y = digits
    ids = auto.evenly_spaced(class_targets(y, 2), 12)
    assert len(ids) == len(set(ids.tolist())) == 12
    assert np.bincount(y[ids]).min() >= 5


# -------------------------------------------------------------------- estimator interface


def test_estimator_interface(digits, fitted, tmp_path):
    graphs, _ = digits
    assert clone(fitted).get_params() == fitted.get_params()
    decisions = fitted.decision_function(graphs)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(graphs), decisions)
    save_model(fitted, tmp_path / "model.tgm")
    loaded = load_model(tmp_path / "model.tgm")
    np.testing.assert_allclose(loaded.decision_function(graphs), decisions, rtol=1e-9)
    assert loaded.search_results_ == fitted.search_results_
    assert loaded.kernels == "auto"
    assert repr(loaded) == repr(fitted)
    assert loaded.loo_scores_ == fitted.loo_scores_


def test_works_in_grid_search(digits):
    graphs, y = digits
    grid = {"kernels": ["auto", ["wlcl"]]}
    search = GridSearchCV(GraphClassifier(), grid, cv=2).fit(graphs[:20], y[:20])
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("attributes", [0, 2])
@pytest.mark.parametrize("edge_labels", [False, True])
def test_every_candidate_can_be_explained(attributes, edge_labels):
    graphs = random_graphs(6, labels=["C", "N"], attributes=attributes, edge_labels=edge_labels)
    for one in auto_candidates(graphs):
        ridge = GraphRidge(one.kernel, param_grid={}, alpha=0.1, cv=2, target_transform=None)
        model = ridge.fit(graphs, np.arange(6.0))
        found = explain(model, graphs)
        np.testing.assert_allclose(found.decisions, model.predict(graphs), atol=1e-9, err_msg=one.name)


def test_chosen_kernel_can_be_explained():
    edges = [[(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]] * 10  # paths and stars
    graphs = Graphs.from_edges(edges)
    fitted = GraphClassifier().fit(graphs, [0, 1] * 10)
    np.testing.assert_allclose(explain(fitted, graphs[:3]).decisions, fitted.decision_function(graphs[:3]), atol=1e-9)


def test_verbose_prints_each_candidate(digits, capsys):
    graphs, y = digits
    GraphClassifier(verbose=1).fit(graphs[:12], y[:12])
    names = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [one.name for one in auto_candidates(graphs)]


# -------------------------------------------------------------------- small and invalid data


@pytest.mark.parametrize(
    "graphs",
    [
        Graphs.from_edges([[(0, 1)], [], [(0, 1), (1, 2)], []] * 2, n_nodes=[2, 1, 3, 2] * 2),
        Graphs.from_edges([[]] * 8, n_nodes=[1, 2] * 4, attributes=[[[1.0]], [[2.0], [3.0]]] * 4),
        Graphs.from_edges([[]] * 8, n_nodes=[0, 1] * 4),
        Graphs.from_edges([[(0, 1)]] * 8, labels=[["C", "N"]] * 8, attributes=[[[1.0, 1.0]] * 2] * 8),
    ],
    ids=["a few edges", "no edges", "no nodes", "all alike"],
)
def test_tiny_data_sets(graphs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nothing was learned")
        model = GraphClassifier().fit(graphs, [0, 1] * 4)
    assert set(model.predict(graphs)) <= {0, 1}
    assert len(model.search_results_) >= len(auto_candidates(graphs))


# -------------------------------------------------------------------- various data


def small_graphs(n_graphs, n_classes, rng, n_attributes=64):
    """Return graphs of three nodes without labels; a third of the columns is constant, the rest near its class mean."""
    y = np.arange(n_graphs) % n_classes
    varies = np.arange(n_attributes) % 3 > 0
    middles = rng.normal(size=(n_classes, n_attributes))
    attributes = [np.where(varies, middles[c] + 0.3 * rng.normal(size=(3, n_attributes)), 7.0) for c in y]
    edges = [[(0, 1), (1, 2)] + [(0, 2)] * int(rng.integers(2)) for _ in y]
    return Graphs.from_edges(edges, n_nodes=[3] * n_graphs, attributes=attributes), y


def complete_graphs(n_graphs, rng, *, close=0.5):
    """Return complete graphs with node labels, and edge labels or distances that separate two classes."""
    y = np.arange(n_graphs) % 2
    sizes = rng.integers(9, 13, size=n_graphs)
    labels = [rng.choice(["C", "N", "O"], size).tolist() for size in sizes]
    edges = [[(i, j) for i in range(size) for j in range(i)] for size in sizes]
    kinds, distances = [], []
    for c, names, some in zip(y, labels, edges, strict=True):
        kinds.append((rng.random(len(some)) < (0.2 if c else 0.5)).astype(int).tolist())
        places = rng.normal(size=(len(names), 3))
        places[np.array(names) == "N"] *= close if c else 1.0
        distances.append([[float(np.linalg.norm(places[i] - places[j]))] for i, j in some])
    return {"edges": edges, "n_nodes": sizes.tolist(), "labels": labels}, kinds, distances, y


@pytest.mark.slow
def test_many_classes_of_tiny_graphs():
    graphs, y = small_graphs(140, 20, np.random.default_rng(0))
    model = GraphClassifier().fit(graphs[:120], y[:120])
    assert model.score(graphs[120:], y[120:]) > 0.9


@pytest.mark.slow
def test_many_classes_with_a_subsample(monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SAMPLE", 80)
    graphs, y = small_graphs(120, 20, np.random.default_rng(1))
    model = GraphClassifier().fit(graphs, y)
    assert {record["n_graphs"] for record in model.search_results_} == {80, 120}
    assert model.loo_scores_["accuracy"] > 0.9


def test_attribute_ranges_that_differ_by_a_hundred_thousand():
    """The attribute with the smallest range separates the classes."""
    rng = np.random.default_rng(0)
    ranges, y = 10.0 ** np.linspace(-2, 3, 8), np.arange(80) % 2
    attributes = [ranges * (rng.normal(size=(3, 8)) + 3.0 * c * (np.arange(8) == 0)) for c in y]
    graphs = Graphs.from_edges([[(0, 1), (1, 2)]] * 80, attributes=attributes)
    assert loo_accuracy(graphs, y) > 0.9


@pytest.mark.parametrize("with_labels", [True, False], ids=["labels", "no labels"])
def test_complete_graphs_with_edge_labels(with_labels):
    """No two nodes have equal neighborhoods; single edges separate the classes."""
    given, kinds, _, y = complete_graphs(48, np.random.default_rng(0))
    graphs = Graphs.from_edges(**given if with_labels else {**given, "labels": None}, edge_labels=kinds)
    assert loo_accuracy(graphs, y) > 0.9


@pytest.mark.parametrize("beside", ["nothing", "edge labels", "vectors"])
def test_edge_attributes_are_used(beside):
    rng = np.random.default_rng(0)
    given, _, distances, y = complete_graphs(60, rng, close=0.3)
    more = {
        "nothing": {},
        "edge labels": {"edge_labels": [[1 + (i + j) % 2 for i, j in some] for some in given["edges"]]},
        "vectors": {"attributes": [rng.normal(size=(size, 2)) for size in given["n_nodes"]]},
    }
    graphs = Graphs.from_edges(**given, **more[beside], edge_attributes=distances)
    model = GraphClassifier().fit(graphs, y)
    assert model.loo_scores_["accuracy"] > 0.85
    assert "edge vectors in bins" in used_names(model)[0]
    assert len(model.predict(graphs[:3])) == 3


def test_graphs_without_attributes_and_labels():
    rng = np.random.default_rng(0)
    edges = [[(i, (i + 1) % 8) for i in range(8)] if c else [(0, i) for i in range(1, 8)] for c in (0, 1) * 12]
    edges = [[edge for edge in some if rng.random() < 0.9] for some in edges]
    graphs = Graphs.from_edges(edges, n_nodes=[8] * 24)
    assert loo_accuracy(graphs, [0, 1] * 12) > 0.9


def test_one_tiny_class():
    graphs, _ = small_graphs(42, 2, np.random.default_rng(0), n_attributes=3)
    with pytest.warns(UserWarning, match="Nothing was learned"):
        model = GraphClassifier().fit(graphs, np.where(np.arange(42) < 40, 0, 1))
    assert set(model.predict(graphs)) == {0}


# -------------------------------------------------------------------- failures


def test_failing_candidate_is_left_out():
    rng = np.random.default_rng(0)
    graphs = Graphs.from_edges([[(0, 1)]] * 12, attributes=[1e200 * rng.normal(size=(2, 2)) for _ in range(12)])
    model = GraphClassifier().fit(graphs, [0, 1] * 6)
    notes = [record["note"] for record in model.search_results_ if record["score"] is None]
    assert notes
    assert all(re.match(r"left out after \w+Error: \w", note) for note in notes)


@pytest.mark.parametrize(
    "error", [MemoryError(), OverflowError("too large"), RuntimeError("no"), np.linalg.LinAlgError("x")]
)
@pytest.mark.parametrize("kind", [GraphClassifier, GraphRegressor])
def test_candidate_may_fail_for_any_reason(kind, error, digits, monkeypatch):
    """Trees fail on the sample, whitened vectors only on all graphs."""
    graphs, y = digits
    monkeypatch.setattr(auto, "SMALL_SAMPLE", 30)
    monkeypatch.setattr("treegram.models.regressor.SAMPLE", 30)
    fit_kernel = auto.Screening.fit_kernel

    def fail(screening, kernel, some_graphs):
        text = repr(kernel)
        if "ODDST" in text or ("whiten" in text and len(some_graphs) == 40):
            raise error
        return fit_kernel(screening, kernel, some_graphs)

    monkeypatch.setattr(auto.Screening, "fit_kernel", fail)
    model = kind().fit(graphs, y if kind is GraphClassifier else [graph.attributes[:, 2].mean() for graph in graphs])
    notes = {record["candidate"]: record["note"] for record in model.search_results_}
    assert notes["trees 3, no vectors"] == f"left out after {type(error).__name__}: {error}".rstrip(": ")
    assert not any("whitened" in name for name in used_names(model))
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.score(graphs, y) > 0.9 or kind is GraphRegressor


@pytest.mark.parametrize("kind", [GraphClassifier, GraphRegressor])
def test_error_says_why_all_candidates_failed(kind, digits, monkeypatch):
    def fail(*_):
        raise MemoryError("too large")

    monkeypatch.setattr(auto.Screening, "fit_kernel", fail)
    with pytest.raises(ValueError, match=r"All 1[67] candidates were left out after MemoryError: too large\."):
        kind().fit(*digits)


def test_named_kernel_that_fails_raises(digits, monkeypatch):
    def fail(*_):
        raise MemoryError("too large")

    monkeypatch.setattr(auto.Screening, "fit_kernel", fail)
    with pytest.raises(MemoryError, match="too large"):
        GraphClassifier(["wlcl"]).fit(*digits)


@pytest.mark.parametrize("kind", [GraphSVC, GraphRidge, GraphGP])
@pytest.mark.parametrize("kernel", ["auto", ["auto", "wl"]])
def test_models_of_one_kernel_have_no_automatic_choice(kind, kernel, digits):
    with pytest.raises(ValueError, match="GraphClassifier and GraphRegressor choose and combine kernels"):
        kind(kernel).fit(*digits)


def test_single_class_raises(digits):
    with pytest.raises(ValueError, match="at least two classes"):
        GraphClassifier().fit(digits[0], np.zeros(40))
