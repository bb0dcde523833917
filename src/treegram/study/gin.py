"""A graph isomorphism network (Xu et al. 2019) in plain torch, for small graphs on one thread.

Each layer adds up a node's neighbors and itself and passes the sum through a small network; sums over the nodes of a graph, layer
by layer, are what the last, linear step sees. Where edges have labels or numbers, they are added to what a neighbor sends (Hu et
al. 2020). A tenth of the training graphs says when to stop, and which of a few sizes is best, as in Errica et al. (2020).

All chance comes from one generator, so that the same seed gives the same network, whatever other threads do.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any

import numpy as np

from treegram._core.optional import optional_module
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.models.crossval import folds
from treegram.study.graph_numbers import Items, arc_items, node_items, standardize

__all__ = ["select_gin", "torch_module"]

_GRID = {"layers": (2, 4), "width": (32, 64)}
_DROPOUT = 0.5  # of what the last step sees
_RATE = 0.01  # of Adam
_BATCH = 128  # graphs
_MOST_EPOCHS = 200
_PATIENCE = 25  # epochs without a lower loss on the graphs held out
_HELD_OUT = 10  # one graph in so many


@dataclass(frozen=True)
class Found:
    """The best network's scores of the classes of the test graphs, and how it was found."""

    scores: Floats  # (n_test, n_classes)
    chosen: dict[str, Any]
    inner_score: float  # accuracy on the graphs held out
    n_fits: int


def torch_module() -> Any:
    """The package torch."""
    return optional_module("torch", "gin", "Graph neural networks")


def select_gin(graphs: Graphs, targets: Ints, train: Ints, test: Ints, seed: int) -> Found:
    """Train a network of each size, and let the best on a tenth of the training graphs predict the test graphs."""
    torch = torch_module()
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # else sums depend on the machine, and threads of other folds are in the way
    try:
        kept, held_out = (train[ids] for ids in folds(targets[train], _HELD_OUT, seed)[0])
        inputs = _inputs(graphs, kept)
        classes = torch.tensor(targets)
        points = [dict(zip(_GRID, values, strict=True)) for values in product(*_GRID.values())]
        runs = [_train(torch, inputs, classes, point, kept, held_out, seed) for point in points]
        best = max(range(len(runs)), key=lambda i: (runs[i].accuracy, -runs[i].loss))  # of equals the first
        scores = _predict(torch, runs[best].model, inputs, test)
        return Found(scores.double().numpy(), points[best], runs[best].accuracy, len(points))
    finally:
        torch.set_num_threads(n_threads)


def _inputs(graphs: Graphs, train: Ints) -> Graphs:
    """The graphs with what the network sees as vectors: numbers in scales of the training graphs, a column for each label."""
    is_train = np.isin(np.arange(len(graphs)), train)
    nodes, arcs = (_encode(items, is_train[items.owner]) for items in (node_items(graphs), arc_items(graphs)))
    return replace(graphs, attributes=nodes, edge_attributes=arcs if arcs.shape[1] else None)


def _encode(items: Items, is_known: np.ndarray) -> Floats:
    labels = items.labels[:, None] == np.arange(items.n_labels)
    return np.hstack([standardize(items.numbers, is_known), labels.astype(np.float64)])


# -------------------------------------------------------------------- the network


def _build(torch: Any, inputs: Graphs, n_classes: int, layers: int, width: int, generator: Any) -> Any:
    """A new network, its numbers drawn by the generator."""
    nn = torch.nn

    def linear(n_in: int, n_out: int) -> Any:
        one, bound = nn.utils.skip_init(nn.Linear, n_in, n_out), n_in**-0.5
        with torch.no_grad():
            for numbers in one.parameters():
                numbers.uniform_(-bound, bound, generator=generator)
        return one

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
    return nn.ModuleDict({name: nn.ModuleList(found) for name, found in parts.items()})


def _forward(torch: Any, model: Any, graphs: Graphs, generator: Any = None) -> Any:
    """Scores of the classes of each graph; with a generator, some of what the last step sees is left out."""
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
            pooled = pooled * (torch.rand(pooled.shape, generator=generator) >= _DROPOUT) / (1 - _DROPOUT)
        scores = scores + last(pooled)
    return scores


def _batches(ids: Ints) -> list[Ints]:
    """Parts of about equal size: a rest of one graph would have no variance."""
    return np.array_split(ids, -(-len(ids) // _BATCH))


def _predict(torch: Any, model: Any, inputs: Graphs, ids: Ints) -> Any:
    model.eval()
    with torch.no_grad():
        return torch.cat([_forward(torch, model, inputs[batch]) for batch in _batches(ids)])


@dataclass(frozen=True)
class _Run:
    """A network as it was when its loss on the graphs held out was lowest."""

    model: Any
    loss: float
    accuracy: float


def _train(
    torch: Any, inputs: Graphs, classes: Any, point: dict[str, int], train: Ints, held_out: Ints, seed: int
) -> _Run:
    generator = torch.Generator().manual_seed(seed)
    model = _build(torch, inputs, int(classes.max()) + 1, **point, generator=generator)
    steps = torch.optim.Adam(model.parameters(), lr=_RATE)
    loss_of = torch.nn.functional.cross_entropy
    best, waited = _Run(model, inf, 0.0), 0
    for _ in range(_MOST_EPOCHS):
        model.train()
        order = torch.randperm(len(train), generator=generator).numpy()
        for batch in _batches(train[order]):
            steps.zero_grad()
            loss_of(_forward(torch, model, inputs[batch], generator), classes[batch]).backward()
            steps.step()
        scores = _predict(torch, model, inputs, held_out)
        loss = float(loss_of(scores, classes[held_out]))
        waited += 1
        if loss < best.loss:
            accuracy = float((scores.argmax(dim=1) == classes[held_out]).double().mean())
            best, waited = _Run(deepcopy(model), loss, accuracy), 0
        elif waited >= _PATIENCE:
            break
    return best
