"""A graph isomorphism network (Xu et al. 2019) as a scikit-learn classifier of graphs, in plain torch, for small graphs on one thread.

Each layer adds up a node's neighbors and itself and passes the sum through a small network; a linear map of the sums over the
nodes of a graph, layer by layer, gives the scores. Labels and vectors of edges are added to the messages (Hu et al.
2020). A tenth of the training graphs decides when to stop and which of a few sizes is best, as in Errica et al. (2020).
All random numbers come from one generator, so that the same seed gives the same network, whatever other threads do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import ParameterGrid
from sklearn.utils.class_weight import compute_class_weight

from treegram import Graphs
from treegram.models.svc import folds

SIZES = {"layers": [2, 4], "width": [32, 64]}
DROPOUT = 0.5  # before the linear map
RATE = 0.01  # of Adam
BATCH = 128  # graphs
MAX_EPOCHS = 200
PATIENCE = 25  # epochs without an improved loss on the held-out graphs
HELD_OUT = 10  # one training graph in ten is held out


class GIN(ClassifierMixin, BaseEstimator):
    """Train a network of each size, and keep the one that is best on a tenth of the training graphs."""

    def __init__(self, class_weight: Any = None, random_state: Any = None) -> None:
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Graphs, y: Any) -> GIN:
        """Train the networks."""
        if np.asarray(y).dtype.kind == "f":
            raise ValueError("GIN predicts classes; y must not have floats, which are targets of a regression.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        seed = self.random_state or 0
        with one_thread():
            kept, held_out = folds(codes, HELD_OUT, seed)[0]
            self.inputs_ = Inputs(X, kept)
            data = self.inputs_.of(X), torch.tensor(codes), torch.tensor(weights, dtype=torch.float32)
            points = list(ParameterGrid(SIZES))
            runs = [train_network(*data, point, kept, held_out, seed) for point in points]
        best = max(range(len(runs)), key=lambda i: (runs[i].accuracy, -runs[i].loss))  # ties go to the first
        self.network_, self.best_params_, self.best_score_ = runs[best].model, points[best], runs[best].accuracy
        self.n_fits_ = len(points)
        return self

    def predict_proba(self, X: Graphs) -> Any:
        """Return the probabilities of the classes; outputs for one class can be compared between graphs only like this."""
        with one_thread():
            scores = predict(self.network_, self.inputs_.of(X), np.arange(len(X)))
        return scores.double().softmax(dim=1).numpy()

    def predict(self, X: Graphs) -> Any:
        """Predict classes."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: otherwise sums depend on the machine, and folds of a study compete for cores."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


class Inputs:
    """What a network sees: scaled degrees and attributes, and a column for each label of the fitted graphs."""

    def __init__(self, graphs: Graphs, kept: Any) -> None:
        nodes = np.isin(np.arange(len(graphs)), kept)[graphs.graph_ids]
        arcs = np.repeat(nodes, graphs.degrees)
        self.degrees = scaling(graphs.degrees[:, None], nodes)
        self.attributes = scaling(graphs.attributes, nodes)
        self.edge_attributes = scaling(graphs.edge_attributes, arcs)
        self.label_values, self.edge_label_values = graphs.label_values, graphs.edge_label_values

    def of(self, graphs: Graphs) -> Graphs:
        """Return the graphs with these inputs as vectors of nodes and edges."""
        nodes = [scaled(graphs.degrees[:, None], self.degrees)]
        edges = []
        if graphs.attributes is not None:
            nodes.append(scaled(graphs.attributes, self.attributes))
        if graphs.labels is not None:
            nodes.append(one_hot(graphs.labels, graphs.label_values, self.label_values))
        if graphs.edge_attributes is not None:
            edges.append(scaled(graphs.edge_attributes, self.edge_attributes))
        if graphs.edge_labels is not None:
            edges.append(one_hot(graphs.edge_labels, graphs.edge_label_values, self.edge_label_values))
        bare = replace(graphs, edge_attributes=np.hstack(edges) if edges else None, edge_attribute_names=None)
        return bare.assign(attributes=np.hstack(nodes))


def scaling(numbers: Any, is_training: Any) -> Any:
    """Return the mean of each column over the training rows, and its deviation; infinity for a constant column."""
    if numbers is None:
        return None
    mean, deviation = numbers[is_training].mean(axis=0), numbers[is_training].std(axis=0)
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, inf)


def scaled(numbers: Any, known: Any) -> Any:
    mean, deviation = known
    return (numbers - mean) / deviation


def one_hot(codes: Any, values: tuple[Any, ...], columns: tuple[Any, ...]) -> Any:
    """Return a column for each known label; a row of zeros for other labels."""
    position = {value: i for i, value in enumerate(columns)}
    table = np.zeros((len(values), len(columns)))
    for row, value in enumerate(values):
        if value in position:
            table[row, position[value]] = 1.0
    return table[codes]


# -------------------------------------------------------------------- the network


def build(inputs: Graphs, n_classes: int, layers: int, width: int, generator: Any) -> Any:
    """Build a network with random weights from the generator."""
    nn = torch.nn

    def linear(n_in: int, n_out: int) -> Any:
        layer, bound = nn.utils.skip_init(nn.Linear, n_in, n_out), n_in**-0.5
        with torch.no_grad():
            for numbers in layer.parameters():
                numbers.uniform_(-bound, bound, generator=generator)
        return layer

    def inner(n_in: int) -> Any:
        second = (linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
        return nn.Sequential(linear(n_in, width), nn.BatchNorm1d(width), nn.ReLU(), *second)

    sizes = [inputs.n_attributes, *[width] * layers]
    n_edge = inputs.n_edge_attributes
    parts = {
        "inner": [inner(size) for size in sizes[:-1]],
        "edges": [linear(n_edge, size) for size in sizes[:-1]] if n_edge else [],
        "last": [linear(size, n_classes) for size in sizes],
    }
    return nn.ModuleDict({name: nn.ModuleList(modules) for name, modules in parts.items()})


def forward(model: Any, graphs: Graphs, generator: Any = None) -> Any:
    """Return the class scores of each graph; with a generator, apply dropout before the linear map."""
    h = torch.tensor(graphs.attributes, dtype=torch.float32)
    source, owner = torch.tensor(graphs.indices, dtype=torch.int64), torch.tensor(graphs.graph_ids, dtype=torch.int64)
    target = torch.tensor(np.repeat(np.arange(graphs.n_nodes), graphs.degrees), dtype=torch.int64)
    edges = graphs.edge_attributes
    edges = None if edges is None else torch.tensor(edges, dtype=torch.float32)
    scores = 0.0
    for layer, last in enumerate(model["last"]):
        if layer:
            sent = h.index_select(0, source)
            if edges is not None:
                sent = torch.relu(sent + model["edges"][layer - 1](edges))
            h = model["inner"][layer - 1](h.index_add(0, target, sent))
        pooled = torch.zeros(len(graphs), h.shape[1]).index_add(0, owner, h)
        if generator is not None:
            pooled = pooled * (torch.rand(pooled.shape, generator=generator) >= DROPOUT) / (1 - DROPOUT)
        scores = scores + last(pooled)
    return scores


def batches(ids: Any) -> list[Any]:
    """Split ids into batches of about equal size: a last batch of one graph would have no variance."""
    return np.array_split(ids, -(-len(ids) // BATCH))


def predict(model: Any, inputs: Graphs, ids: Any) -> Any:
    model.eval()
    with torch.no_grad():
        return torch.cat([forward(model, inputs[batch]) for batch in batches(ids)])


@dataclass(frozen=True)
class Trained:
    """A network at the epoch of its lowest loss on the held-out graphs."""

    model: Any
    loss: float
    accuracy: float


def train_network(
    inputs: Graphs,
    classes: Any,
    weights: Any,
    point: dict[str, int],
    kept: Any,
    held_out: Any,
    seed: int,
) -> Trained:
    generator = torch.Generator().manual_seed(seed)
    model = build(inputs, len(weights), **point, generator=generator)
    steps = torch.optim.Adam(model.parameters(), lr=RATE)
    loss_of = torch.nn.CrossEntropyLoss(weight=weights)
    best, waited = Trained(model, inf, 0.0), 0
    for _ in range(MAX_EPOCHS):
        model.train()
        order = torch.randperm(len(kept), generator=generator).numpy()
        for batch in batches(kept[order]):
            steps.zero_grad()
            loss_of(forward(model, inputs[batch], generator), classes[batch]).backward()
            steps.step()
        scores = predict(model, inputs, held_out)
        loss = float(loss_of(scores, classes[held_out]))
        waited += 1
        if loss < best.loss:
            is_right = (scores.argmax(dim=1) == classes[held_out]).double()
            accuracy = float(np.average(is_right, weights=weights[classes[held_out]]))
            best, waited = Trained(deepcopy(model), loss, accuracy), 0
        elif waited >= PATIENCE:
            break
    return best
