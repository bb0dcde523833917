"""Tests of the estimators in benchmarks/ that studies compare kernels with: learning, reproducibility and no leakage."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from treegram import Graphs
from treegram.models.svc import folds
from treegram.study import selection
from treegram.study.protocol import Protocol, StudyEntry
from treegram.study.selection import Fold, estimator_versions, find_estimators, select_auto, select_estimator

PROTOCOL = Protocol(inner_folds=3, C=(1.0, 10.0))
REGRESSION = replace(PROTOCOL, task="regression", alpha=(0.1, 1.0))
ON_STATISTICS = ["summary-svm", "summary-forest", "boosting"]
without_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install torch")
NAMES = [*ON_STATISTICS, pytest.param("gin", marks=without_torch)]


@pytest.fixture(scope="module", autouse=True)
def baselines():
    """Import the modules of benchmarks/, which register their estimators."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    known = dict(selection._ESTIMATORS)
    yield import_module("baselines")
    sys.path.pop(0)
    selection._ESTIMATORS.clear()
    selection._ESTIMATORS.update(known)
    sys.modules.pop("baselines")


@pytest.fixture
def epochs(monkeypatch, request):
    """Return a function that limits the epochs of the network, if torch is installed."""
    if find_spec("torch") is None:
        return lambda _: None
    return lambda number: monkeypatch.setattr(import_module("graph_network"), "MAX_EPOCHS", number)


@pytest.fixture(scope="module")
def data():
    """Return graphs of three classes that labels roughly separate; edges have a number, and every fourth graph has no edge."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    edges = [[(0, 1), (1, 2), (2, 3), (3, 0)][: 4 * (i % 4 > 0)] for i in range(90)]
    labels = [rng.choice(3, 5, p=np.roll([0.7, 0.2, 0.1], c)).tolist() for c in y]
    vectors = [rng.normal(size=(5, 2)) + c for c in y]
    numbers = [rng.normal(size=(len(pairs), 1)) for pairs in edges]
    return Graphs.from_edges(edges, n_nodes=[5] * 90, labels=labels, attributes=vectors, edge_attributes=numbers), y


@pytest.fixture(scope="module")
def split(data):
    return folds(data[1], 3, 0)[0]


def row(name, *arguments):
    fold = Fold(*arguments)
    if name == "auto":
        return select_auto(fold)
    return select_estimator(fold, find_estimators([StudyEntry("entry", estimator=name)], fold.protocol, ())["entry"])


@pytest.mark.parametrize("name", NAMES)
def test_baseline_learns_and_is_reproducible(epochs, data, split, name):
    epochs(15)
    graphs, y = data
    train, test = split
    first, again = (row(name, PROTOCOL, graphs, y, train, test, 5) for _ in range(2))
    assert first == again
    assert np.mean(np.array(first["predicted"]) == y[test]) > 0.6, "a third is chance"
    assert 0.5 < first["inner_score"] <= 1
    assert 0.5 < first["roc_auc"] <= 1
    assert first["chosen"]
    assert first["n_fits"] > 1


@pytest.mark.parametrize("name", [*NAMES, "auto"])
def test_balanced_class_weights_predict_a_rare_class_more_often(epochs, name):
    epochs(40)
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 10 == 0).astype(np.int64)
    edges = [[(0, 1), (1, 2)]] * 200
    graphs = Graphs.from_edges(edges, attributes=[rng.normal(size=(3, 1)) + 1.1 * c for c in y])
    train, test = folds(y, 2, 0)[0]
    balanced = replace(PROTOCOL, class_weight="balanced")
    plain, weighted = (row(name, protocol, graphs, y, train, test, 5) for protocol in (PROTOCOL, balanced))
    assert sum(weighted["predicted"]) > sum(plain["predicted"])


@pytest.mark.parametrize("name", NAMES)
def test_test_targets_do_not_affect_predictions(epochs, data, split, name):
    epochs(2)
    graphs, y = data
    train, test = split
    others = y.copy()
    others[test] = (others[test] + 1) % 3
    first, second = (row(name, PROTOCOL, graphs, targets, train, test, 5) for targets in (y, others))
    for key in ("predicted", "chosen", "inner_score", "n_fits"):
        assert first[key] == second[key]


@pytest.mark.parametrize("name", NAMES)
def test_one_test_graph_does_not_affect_other_predictions(epochs, data, split, name):
    """Bins, scales and weights come from training graphs: changing one test graph keeps all other predictions."""
    epochs(2)
    graphs, y = data
    train, test = split
    vectors = np.array(graphs.attributes)
    vectors[graphs.graph_ids == test[-1]] *= 1000
    other = replace(graphs, attributes=vectors)
    first, second = (row(name, PROTOCOL, changed, y, train, test, 5)["predicted"] for changed in (graphs, other))
    assert first[:-1] == second[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_predicted_class_has_the_higher_decision_value(epochs, monkeypatch, data, split, name):
    epochs(3)
    graphs, y = data
    train, test = split
    calls = []
    monkeypatch.setattr(selection, "roc_auc", lambda _actual, decisions: calls.append(decisions))
    predicted = np.array(row(name, PROTOCOL, graphs, np.minimum(y, 1), train, test, 5)["predicted"])
    (decisions,) = calls
    decisions = decisions[:, 1] - decisions[:, 0]
    clear = np.abs(decisions) > 1e-9
    assert decisions.shape == test.shape
    assert ((decisions > 0) == (predicted == 1))[clear].all()


@pytest.mark.parametrize("name", ON_STATISTICS)
def test_baselines_do_regression(data, split, name):
    graphs, y = data
    train, test = split
    numbers = y + 0.5 * graphs.sizes
    first, again = (row(name, REGRESSION, graphs, numbers, train, test, 5) for _ in range(2))
    assert first == again
    error = np.mean((np.array(first["predicted"]) - numbers[test]) ** 2)
    assert error < 0.5 * numbers[test].var()
    assert first["roc_auc"] is None
    assert all(isinstance(value, float) for value in first["actual"])


@pytest.mark.parametrize("protocol", [PROTOCOL, REGRESSION], ids=["classes", "numbers"])
def test_auto_learns_only_from_training_graphs(data, split, protocol):
    graphs, y = data
    train, test = split
    targets = y.astype(np.float64) if protocol is REGRESSION else y
    others = targets.copy()
    others[test] = others[test][::-1]
    first, second = (row("auto", protocol, graphs, numbers, train, test, 5) for numbers in (targets, others))
    for key in ("predicted", "chosen", "inner_score", "n_fits"):
        assert first[key] == second[key]
    assert first["chosen"]["kernel"]
    assert 0.4 < first["inner_score"] <= 1
    predicted = np.array(first["predicted"])
    assert np.mean(np.round(predicted) == y[test]) > 0.6


def test_constant_column_has_no_effect(baselines):
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)], [(0, 1)], [(0, 1), (1, 2)]] * 5)
    model = baselines.SummarySVM(cv=2, random_state=0).fit(graphs, np.arange(20) % 2)
    assert np.isfinite(model.fitted_).all()
    assert np.isinf(model.scale_).any()


# -------------------------------------------------------------------- the network


@without_torch
def test_network_inputs_are_scaled_and_one_hot_encoded(data):
    graphs, _ = data
    inputs = import_module("graph_network").Inputs(graphs, np.arange(60)).of(graphs)
    assert (inputs.n_attributes, inputs.n_edge_attributes) == (1 + 2 + 3, 1), "degree, two numbers, three labels"
    nodes = np.array(inputs.attributes)
    np.testing.assert_allclose(nodes[graphs.graph_ids < 60, :3].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_array_equal(nodes[:, 3:].argmax(axis=1), graphs.labels)
    np.testing.assert_array_equal(nodes[:, 3:].sum(axis=1), 1)


@without_torch
def test_labels_that_no_training_graph_has_become_zeros():
    fitted = Graphs.from_edges([[(0, 1)]], labels=[["C", "O"]])
    other = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["N", "O", "C"]])
    vectors = import_module("graph_network").Inputs(fitted, np.arange(1)).of(other).attributes
    assert vectors[:, 1:].tolist() == [[0, 0], [0, 1], [1, 0]]


@without_torch
def test_graphs_without_labels_and_attributes_use_degrees():
    graphs = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)], []], n_nodes=[2, 3, 0])
    inputs = import_module("graph_network").Inputs(graphs, np.arange(2)).of(graphs)
    assert (inputs.n_attributes, inputs.n_edge_attributes) == (1, 0)
    assert np.isfinite(inputs.attributes).all()


@without_torch
def test_number_of_torch_threads_is_restored(epochs, data):
    torch, network = import_module("torch"), import_module("graph_network").GIN()
    epochs(1)
    before = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network.fit(*data).predict(data[0])
    assert torch.get_num_threads() == before
    assert estimator_versions([network])["torch"] == torch.__version__


@without_torch
def test_concurrent_training_does_not_change_networks(epochs, data, split):
    epochs(3)
    alone = [row("gin", PROTOCOL, *data, *split, seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda seed: row("gin", PROTOCOL, *data, *split, seed), (1, 2)))
    assert alone == together
    assert alone[0] != alone[1]


@without_torch
def test_network_stops_early_and_keeps_the_best_weights(monkeypatch, data, split):
    """With little patience it stops long before the last epoch, and the kept network has the lowest loss."""
    torch, network = import_module("torch"), import_module("graph_network")
    graphs, y = data
    kept, held_out = split
    inputs, classes = network.Inputs(graphs, kept).of(graphs), torch.tensor(y)
    losses = []
    loss_of = torch.nn.functional.cross_entropy

    def recording_cross_entropy(scores, wanted, **options):
        loss = loss_of(scores, wanted, **options)
        if not loss.requires_grad:
            losses.append(float(loss))
        return loss

    monkeypatch.setattr(network, "PATIENCE", 2)
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", recording_cross_entropy)
    size = {"layers": 2, "width": 8}
    run = network.train_network(inputs, classes, torch.ones(3), size, kept, held_out, 0)
    assert 2 < len(losses) < 200
    assert run.loss == min(losses) == losses[-3]
    assert float(loss_of(network.predict(run.model, inputs, held_out), classes[held_out])) == run.loss


@without_torch
def test_networks_are_ranked_by_probability(monkeypatch):
    """Outputs that differ by a constant between graphs do not change the AUC."""
    torch, network = import_module("torch"), import_module("graph_network")
    graphs, y = Graphs.from_edges([[(0, 1)]] * 24, n_nodes=[2] * 24), np.arange(24) % 2
    outputs = torch.tensor([[9.0, 8.0], [8.0, 9.0], [1.0, 0.0], [0.0, 1.0]])
    monkeypatch.setattr(network, "train_network", lambda *_: network.Trained(None, 0.0, 1.0))
    monkeypatch.setattr(network, "predict", lambda *_: outputs)
    assert row("gin", PROTOCOL, graphs, y, np.arange(4, 24), np.arange(4), 0)["roc_auc"] == 1
