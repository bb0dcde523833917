"""Tests of baselines without kernels: inputs, learning, reproducibility and no leakage."""

import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from treegram import Graphs, make_synthetic
from treegram.models.svc import folds
from treegram.study import selection as _gin
from treegram.study.metrics import other_metrics
from treegram.study.protocol import BASELINES, Protocol, StudyEntry
from treegram.study.run import run_study
from treegram.study.selection import (
    SELECTIONS,
    Fold,
    _inputs,
    _standardize,
    baseline_versions,
    select_auto,
)
from treegram.study.store import Store
from treegram.study.study_file import parse_study
from treegram.study.summary import summarize
from treegram.study.tables import kernel_table

PROTOCOL = Protocol(inner_folds=3, C=(1.0, 10.0))
REGRESSION = replace(PROTOCOL, task="regression", alpha=(0.1, 1.0))
without_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install torch")
NAMES = [pytest.param(name, marks=without_torch) if name == "gin" else name for name in BASELINES]


@pytest.fixture(scope="module")
def data():
    """Return graphs of three classes that labels roughly separate; edges have a number, and every fourth graph has no edge."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    edges = [[(0, 1), (1, 2), (2, 3), (3, 0)][: 4 * (i % 4 > 0)] for i in range(90)]
    labels = [rng.choice(3, 5, p=np.roll([0.7, 0.2, 0.1], c)).tolist() for c in y]
    vectors = [rng.normal(size=(5, 2)) + c for c in y]
    numbers = [rng.normal(size=(len(one), 1)) for one in edges]
    return Graphs.from_edges(edges, n_nodes=[5] * 90, labels=labels, attributes=vectors, edge_attributes=numbers), y


@pytest.fixture(scope="module")
def split(data):
    return folds(data[1], 3, 0)[0]


def test_every_declared_baseline_is_implemented():
    assert list(SELECTIONS) == list(BASELINES)


@pytest.mark.parametrize("name", NAMES)
def test_baseline_learns_and_is_reproducible(monkeypatch, data, split, name):
    monkeypatch.setattr(_gin, "_MAX_EPOCHS", 15)
    graphs, y = data
    train, test = split
    found, again = (SELECTIONS[name](Fold(PROTOCOL, graphs, y, train, test, 5)) for _ in range(2))
    assert found == again
    assert np.mean(np.array(found["predicted"]) == y[test]) > 0.6, "a third is chance"
    assert 0.5 < found["inner_score"] <= 1
    assert 0.5 < found["roc_auc"] <= 1


@pytest.mark.parametrize("name", [*NAMES, "auto"])
def test_balanced_class_weights_predict_a_rare_class_more_often(monkeypatch, name):
    monkeypatch.setattr(_gin, "_MAX_EPOCHS", 40)
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 10 == 0).astype(np.int64)
    edges = [[(0, 1), (1, 2)]] * 200
    graphs = Graphs.from_edges(edges, attributes=[rng.normal(size=(3, 1)) + 1.1 * c for c in y])
    train, test = folds(y, 2, 0)[0]
    select = select_auto if name == "auto" else SELECTIONS[name]
    balanced = replace(PROTOCOL, class_weight="balanced")
    plain, weighted = (select(Fold(one, graphs, y, train, test, 5)) for one in (PROTOCOL, balanced))
    assert sum(weighted["predicted"]) > sum(plain["predicted"])


@pytest.mark.parametrize("name", NAMES)
def test_test_targets_do_not_affect_predictions(monkeypatch, data, split, name):
    monkeypatch.setattr(_gin, "_MAX_EPOCHS", 2)
    graphs, y = data
    train, test = split
    others = y.copy()
    others[test] = (others[test] + 1) % 3
    first, second = (SELECTIONS[name](Fold(PROTOCOL, graphs, one, train, test, 5)) for one in (y, others))
    for known in ("predicted", "chosen", "inner_score", "n_fits"):
        assert first[known] == second[known]


@pytest.mark.parametrize("name", NAMES)
def test_one_test_graph_does_not_affect_other_predictions(monkeypatch, data, split, name):
    """Bins, scales and weights come from training graphs: changing one test graph keeps all other predictions."""
    monkeypatch.setattr(_gin, "_MAX_EPOCHS", 2)
    graphs, y = data
    train, test = split
    vectors = np.array(graphs.attributes)
    vectors[graphs.graph_ids == test[-1]] *= 1000
    other = replace(graphs, attributes=vectors)
    first, second = (SELECTIONS[name](Fold(PROTOCOL, one, y, train, test, 5))["predicted"] for one in (graphs, other))
    assert first[:-1] == second[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_predicted_class_has_the_higher_decision_value(monkeypatch, data, split, name):
    monkeypatch.setattr(_gin, "_MAX_EPOCHS", 3)
    graphs, y = data
    train, test = split
    seen = []
    monkeypatch.setattr(_gin, "roc_auc", lambda _actual, decisions: seen.append(decisions))
    found = SELECTIONS[name](Fold(PROTOCOL, graphs, np.minimum(y, 1), train, test, 5))
    (decisions,) = seen
    if decisions.ndim == 2:
        decisions = decisions[:, 1] - decisions[:, 0]
    clear = np.abs(decisions) > 1e-9
    assert decisions.shape == test.shape
    assert ((decisions > 0) == (np.array(found["predicted"]) == 1))[clear].all()


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "gin"])
def test_baselines_do_regression(data, split, name):
    graphs, y = data
    train, test = split
    numbers = y + 0.5 * graphs.sizes
    found, again = (SELECTIONS[name](Fold(REGRESSION, graphs, numbers, train, test, 5)) for _ in range(2))
    assert found == again
    error = np.mean((np.array(found["predicted"]) - numbers[test]) ** 2)
    assert error < 0.5 * numbers[test].var()
    assert found["roc_auc"] is None
    assert all(isinstance(value, float) for value in found["actual"])


@pytest.mark.parametrize("protocol", [PROTOCOL, REGRESSION], ids=["classes", "numbers"])
def test_auto_learns_only_from_training_graphs(data, split, protocol):
    graphs, y = data
    train, test = split
    targets = y.astype(np.float64) if protocol is REGRESSION else y
    others = targets.copy()
    others[test] = others[test][::-1]
    first, second = (select_auto(Fold(protocol, graphs, one, train, test, 5)) for one in (targets, others))
    for known in ("predicted", "chosen", "inner_score", "n_fits"):
        assert first[known] == second[known]
    assert first["chosen"]["kernel"]
    assert 0.4 < first["inner_score"] <= 1
    predicted = np.array(first["predicted"])
    assert np.mean(np.round(predicted) == y[test]) > 0.6


# -------------------------------------------------------------------- inputs of the network


def test_network_inputs_are_scaled_and_one_hot_encoded(data):
    graphs, _ = data
    train = np.arange(60)
    inputs = _inputs(graphs, train)
    assert (inputs.n_attributes, inputs.n_edge_attributes) == (1 + 2 + 3, 1), "degree, two numbers, three labels"
    nodes = np.array(inputs.attributes)
    np.testing.assert_allclose(nodes[graphs.graph_ids < 60, :3].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_array_equal(nodes[:, 3:].argmax(axis=1), graphs.labels)
    np.testing.assert_array_equal(nodes[:, 3:].sum(axis=1), 1)


def test_graphs_without_labels_and_attributes_use_degrees():
    inputs = _inputs(Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)], []], n_nodes=[2, 3, 0]), np.arange(2))
    assert (inputs.n_attributes, inputs.n_edge_attributes) == (1, 0)
    assert np.isfinite(inputs.attributes).all()


def test_constant_column_becomes_zero():
    numbers = np.array([[1e9, 1.0], [1e9, 2.0], [5.0, 3.0]])
    assert _standardize(numbers, np.array([True, True, False])).tolist() == [[0, -1], [0, 1], [0, 3]]


# -------------------------------------------------------------------- in a study

STUDY = """
title = "Kernels and others"
datasets = ["A", "B"]
protocol = { repeats = 2, outer_folds = 3, inner_folds = 2, C = [1, 10] }
[[kernels]]
name = "colors"
kernel = "wl"
[[kernels]]
name = "forest"
baseline = "summary-forest"
[[kernels]]
name = "machine"
baseline = "summary-svm"
repeats = 1
"""


@pytest.mark.slow
def test_baselines_run_like_kernels_in_a_study(tmp_path):
    study = parse_study("s", STUDY.encode(), "s.toml")
    loaded = {name: make_synthetic(24, n_nodes=12, n_edges=18, random_state=i) for i, name in enumerate("AB")}
    with Store.open(tmp_path / "s.sqlite") as store:
        assert run_study(study, store, loaded, n_jobs=2) == 2 * 3 * 2 * 2 + 2 * 3
        first = store.rows()
        assert run_study(study, store, loaded) == 0
        summary = summarize(store)
    assert all(row.seconds > 0 and row.roc_auc is not None for row in first)
    by_name = {cell.kernel: cell for cell in summary.column("A")}
    assert [len(by_name[name].repeats) for name in ("colors", "forest", "machine")] == [2, 2, 1]
    assert [len(other_metrics(Protocol(task="classification"))), None] == [
        len(by_name["forest"].others),
        by_name["forest"].gram_seconds,
    ]
    assert all(mean is not None for mean, _ in by_name["forest"].others.values())
    assert re.fullmatch(r"max_features .*, min_samples_leaf .", by_name["forest"].chosen[0][0])
    rows = {row[0].text: row[1:3] for row in kernel_table(summary).rows}
    assert [cell.text for cell in rows["forest"]] == [BASELINES["summary-forest"], "training graphs"]


def test_missing_torch_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"Graph neural networks need torch: pip install torch"):
        baseline_versions([StudyEntry("net", (), baseline="gin")])
    assert baseline_versions([StudyEntry("forest", (), baseline="summary-forest")]) == {}


@without_torch
def test_number_of_torch_threads_is_restored(monkeypatch, data, split):
    torch = _gin._torch_module()
    monkeypatch.setattr(_gin, "_MAX_EPOCHS", 1)
    before = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _gin._gin(Fold(PROTOCOL, *data, *split, 0))
    assert torch.get_num_threads() == before
    assert baseline_versions([StudyEntry("net", (), baseline="gin")]) == {"torch": torch.__version__}


@without_torch
def test_concurrent_training_does_not_change_networks(monkeypatch, data, split):
    monkeypatch.setattr(_gin, "_MAX_EPOCHS", 3)
    alone = [_gin._gin(Fold(PROTOCOL, *data, *split, seed)) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda seed: _gin._gin(Fold(PROTOCOL, *data, *split, seed)), (1, 2)))
    assert alone == together
    assert alone[0] != alone[1]


@without_torch
def test_network_stops_early_and_keeps_the_best_weights(monkeypatch, data, split):
    """With little patience it stops long before the last epoch, and the kept network has the lowest loss."""
    torch = _gin._torch_module()
    graphs, y = data
    kept, held_out = split
    inputs, classes = _gin._inputs(graphs, kept), torch.tensor(y)
    losses = []
    loss_of = torch.nn.functional.cross_entropy

    def recording_cross_entropy(scores, wanted, **options):
        loss = loss_of(scores, wanted, **options)
        if not loss.requires_grad:
            losses.append(float(loss))
        return loss

    monkeypatch.setattr(_gin, "_PATIENCE", 2)
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", recording_cross_entropy)
    run = _gin._train(torch, inputs, classes, torch.ones(3), {"layers": 2, "width": 8}, kept, held_out, 0)
    assert 2 < len(losses) < 200
    assert run.loss == min(losses) == losses[-3]
    assert float(loss_of(_gin._predict(torch, run.model, inputs, held_out), classes[held_out])) == run.loss


@without_torch
def test_networks_are_ranked_by_probability(monkeypatch):
    """Outputs that differ by a constant between graphs do not change the AUC."""
    torch = _gin._torch_module()
    graphs, y = Graphs.from_edges([[(0, 1)]] * 24, n_nodes=[2] * 24), np.arange(24) % 2
    outputs = torch.tensor([[9.0, 8.0], [8.0, 9.0], [1.0, 0.0], [0.0, 1.0]])
    monkeypatch.setattr(_gin, "_train", lambda *_: _gin._Trained(None, 0.0, 1.0))
    monkeypatch.setattr(_gin, "_predict", lambda *_: outputs)
    row = _gin._gin(Fold(PROTOCOL, graphs, y, np.arange(4, 24), np.arange(4), 0))
    assert row["roc_auc"] == 1
