"""What a graph is does not depend on how it is written: no order of nodes, graphs or batches changes an answer."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from treegram import GraphClassifier, GraphRegressor, Graphs, GraphStatistics, GraphSVC, StatisticsKernel

N_GRAPHS = 36


def content(seed=0):
    """Return the arguments of from_edges for graphs with every kind of data, and targets that depend on them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 9, N_GRAPHS)
    y = np.arange(N_GRAPHS) % 2
    edges = [[*((a, (a + 1) % n) for a in range(n)), (0, n // 2)] for n in sizes.tolist()]
    return {
        "edges": edges,
        "labels": [
            rng.choice(["C", "N", "O"], n, p=[0.6, 0.1 + 0.2 * c, 0.3 - 0.2 * c]).tolist()
            for n, c in zip(sizes, y, strict=True)
        ],
        "attributes": [rng.normal(c, 1, size=(n, 2)) for n, c in zip(sizes, y, strict=True)],
        "edge_labels": [[int(rng.integers(2))] * len(pairs) for pairs in edges],
        "graph_attributes": rng.normal(y[:, None], 1.0, size=(N_GRAPHS, 2)),
        "graph_names": [f"g{i}" for i in range(N_GRAPHS)],
    }, y


def renumbered(data, rng):
    """Return the same graphs with their nodes and edges in another order."""
    data = {name: list(values) for name, values in data.items()}
    for i, labels in enumerate(data["labels"]):
        order = rng.permutation(len(labels))  # the old number of each new node
        places = np.argsort(order)
        shuffled = rng.permutation(len(data["edges"][i]))
        pairs = places[np.array(data["edges"][i])][shuffled]
        data["edges"][i] = [pair[:: rng.choice((-1, 1))] for pair in pairs]
        data["edge_labels"][i] = [data["edge_labels"][i][edge] for edge in shuffled]
        data["labels"][i] = [labels[v] for v in order]
        data["attributes"][i] = data["attributes"][i][order]
    return data


MODELS: dict[str, Callable[[], Any]] = {
    "classifier": lambda: GraphClassifier(),
    "regressor": lambda: GraphRegressor(),
    "svc": lambda: GraphSVC("oddcl", C=1, cv=2),
    "statistics": lambda: GraphSVC(StatisticsKernel(), C=1, cv=2),
}


def answers(model, graphs):
    return np.asarray(model.decision_function(graphs) if hasattr(model, "decision_function") else model.predict(graphs))


@pytest.fixture(params=MODELS)
def fitted(request):
    data, y = content()
    graphs = Graphs.from_edges(**data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about little data
        return MODELS[request.param], MODELS[request.param]().fit(graphs[:24], y[:24]), data, graphs, y


@pytest.mark.filterwarnings("ignore")
def test_order_of_nodes_and_edges_changes_no_prediction(fitted):
    make, model, data, graphs, y = fitted
    other = Graphs.from_edges(**renumbered(data, np.random.default_rng(1)))
    expected = answers(model, graphs[24:])
    np.testing.assert_allclose(answers(model, other[24:]), expected, rtol=1e-9, atol=1e-9)
    again = make().fit(other[:24], y[:24])
    # Automatic models find the widths of their kernels from a sample of the nodes, by position.
    tolerance = 0.02 if isinstance(model, GraphClassifier | GraphRegressor) else 1e-6
    np.testing.assert_allclose(answers(again, graphs[24:]), expected, rtol=tolerance, atol=tolerance)


def test_batch_of_predict_changes_no_prediction(fitted):
    _, model, _, graphs, _ = fitted
    new = graphs[24:]
    expected = answers(model, new)
    for size in (1, 5):
        parts = [answers(model, new[first : first + size]) for first in range(0, len(new), size)]
        np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-11, atol=1e-11)
    order = np.random.default_rng(2).permutation(len(new))
    np.testing.assert_allclose(answers(model, new[order]), expected[order], rtol=1e-11, atol=1e-11)


def test_order_of_graphs_permutes_the_rows_of_statistics():
    graphs = Graphs.from_edges(**content()[0])
    order = np.random.default_rng(3).permutation(N_GRAPHS)
    first, second = GraphStatistics(max_labels=2).fit(graphs), GraphStatistics(max_labels=2).fit(graphs[order])
    assert first.feature_names_out_ == second.feature_names_out_
    np.testing.assert_array_equal(first.transform(graphs)[order], second.transform(graphs[order]))
    rows = [first.transform(graph) for graph in graphs]
    np.testing.assert_array_equal(np.vstack(rows), first.transform(graphs))
