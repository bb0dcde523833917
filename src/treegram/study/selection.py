"""Select and fit a model on the training graphs of a fold, and describe it and its predictions as fields of a row.

Models are those on Gram matrices, the automatic model, and **baselines**, which are not kernels: models on numbers of each graph,
and a small neural network. A selection takes the protocol, all graphs, their targets, the ids of training and test graphs, and a
seed. It learns from the training graphs alone, and returns the fields of a row that it knows.

The graph isomorphism network (Xu et al. 2019) is in plain torch, for small graphs on one thread. Each layer adds up a node's
neighbors and itself and passes the sum through a small network; a linear map of the sums over the nodes of a graph, layer by
layer, gives the scores. Labels and numbers of edges are added to the messages (Hu et al. 2020). A tenth of the training graphs
decides when to stop, and which of a few sizes is best, as in Errica et al. (2020). All random numbers come from one generator,
so that the same seed gives the same network, whatever other threads do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from treegram._core.optional import optional_module
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.graphs.statistics import GraphStatistics
from treegram.models import GraphClassifier, GraphRegressor
from treegram.models.crossval import distinct, folds, select
from treegram.models.ridge import number_folds, select_ridge
from treegram.study.metrics import roc_auc
from treegram.study.protocol import Protocol, StudyEntry

_WIDTHS = (0.1, 1.0, 10.0)  # times one over the number of columns, which is scikit-learn's gamma="scale" here
_FOREST = {"max_features": ("sqrt", 0.3), "min_samples_leaf": (1, 3)}
_N_TREES = 200
_BOOSTING = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}
_GRID = {"layers": (2, 4), "width": (32, 64)}
_DROPOUT = 0.5  # before the linear map
_RATE = 0.01  # of Adam
_BATCH = 128  # graphs
_MAX_EPOCHS = 200
_PATIENCE = 25  # epochs without a lower loss on the held-out graphs
_HELD_OUT = 10  # one training graph in ten is held out
_N_BINS = 8  # of the histogram of one number


def baseline_versions(entries: Sequence[StudyEntry]) -> dict[str, str]:
    """Return versions of packages that only baselines need; raise ImportError early if one is missing."""
    return {"torch": str(_torch_module().__version__)} if any(one.baseline == "gin" for one in entries) else {}


@dataclass(frozen=True)
class Grams:
    """Gram matrices without repetitions, each with the first choice of kernel and parameters that gives it."""

    chosen: list[dict[str, Any]]
    matrices: list[Floats]

    @property
    def n_bytes(self) -> int:
        """Memory of the matrices, in bytes."""
        return sum(K.nbytes for K in self.matrices)


def unique(chosen: Sequence[dict[str, Any]], matrices: Sequence[Floats]) -> Grams:
    """Remove repeated Gram matrices."""
    kept, positions = distinct(matrices)
    return Grams([chosen[positions.index(i)] for i in range(len(kept))], kept)


def joined(grams: Sequence[Grams]) -> Grams:
    """Concatenate several, in this order, without repetitions."""
    if len(grams) == 1:
        return grams[0]
    return unique([chosen for one in grams for chosen in one.chosen], [K for one in grams for K in one.matrices])


def _row(
    actual: Any,
    predicted: Any,
    decisions: Floats | None,
    chosen: dict[str, Any],
    inner_score: float,
    n_fits: int,
    n_unconverged: int = 0,
) -> dict[str, Any]:
    """Return the fields of a row that a selection knows; there are decision values of classes only."""
    return {
        "actual": tuple(actual.tolist()),
        "predicted": tuple(predicted.tolist()),
        "chosen": chosen,
        "inner_score": float(inner_score),
        "n_fits": int(n_fits),
        "n_unconverged": int(n_unconverged),
        "roc_auc": None if decisions is None else roc_auc(actual, decisions.astype(np.float32)),
    }


def select_gram(protocol: Protocol, grams: Grams, targets: Any, train: Ints, test: Ints, seed: int) -> dict[str, Any]:
    """Select a Gram matrix and the regularization strength by inner cross-validation."""
    name, values = protocol.strengths
    strengths, n_folds = np.array(values, dtype=np.float64), protocol.inner_folds
    select_one = select_ridge if protocol.task == "regression" else select
    best = select_one(grams.matrices, targets, train, test, strengths, n_folds=n_folds, seed=seed)
    chosen = {**grams.chosen[best.gram], name: best.strength}
    fits = best.fits
    return _row(
        targets[test], best.predicted, best.decisions, chosen, best.inner_score, fits.n_fits, fits.n_unconverged
    )


def select_auto(
    protocol: Protocol,
    graphs: Graphs,
    targets: Any,
    train: Ints,
    test: Ints,
    seed: int,  # noqa: ARG001 (nothing in it is random)
) -> dict[str, Any]:
    """Fit the automatic model: its candidates, scales and weights follow from the training graphs alone.

    The inner score is the best leave-one-out score of one of its kernels.
    """
    model: Any = GraphRegressor() if protocol.task == "regression" else GraphClassifier()
    _fit_quietly(model, graphs[train], targets[train])
    used = [one for one in model.search_results_ if one["note"].startswith("weight")]
    chosen = {"kernel": " + ".join(sorted(str(one["candidate"]) for one in used))}
    score, n_fits = max(one["score"] for one in used), len(model.search_results_)
    decisions = None
    if protocol.task == "classification":
        decisions = _on_all_classes(model.decision_function(graphs[test]), model.classes_, targets)
    return _row(targets[test], model.predict(graphs[test]), decisions, chosen, score, n_fits)


def _on_all_classes(decisions: Floats, classes: Ints, targets: Ints) -> Floats:
    """Return decisions with a column for each class of the data set, also for those without training graphs."""
    n_classes = int(targets.max()) + 1
    if len(classes) == n_classes:
        return decisions
    shown = np.column_stack([-decisions, decisions]) if decisions.ndim == 1 else decisions
    filled = np.full((len(decisions), n_classes), shown.min(initial=0.0) - 1.0)
    filled[:, classes] = shown
    return filled


def _fit_quietly(model: Any, X: Any, y: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about single folds; the row counts fits that did not converge
        model.fit(X, y)


# -------------------------------------------------------------------- models on numbers of graphs


def _summary_svm(
    protocol: Protocol, graphs: Graphs, targets: Any, train: Ints, test: Ints, seed: int
) -> dict[str, Any]:
    """Select an SVM or ridge regression on summary statistics, after Cai and Wang (2019)."""
    rows = _summarize_graphs(graphs, train)
    distances = euclidean_distances(rows, squared=True) / rows.shape[1]
    grams = unique([{"gamma": width} for width in _WIDTHS], [np.exp(-width * distances) for width in _WIDTHS])
    return select_gram(protocol, grams, targets, train, test, seed)


def _summary_forest(
    protocol: Protocol, graphs: Graphs, targets: Any, train: Ints, test: Ints, seed: int
) -> dict[str, Any]:
    """Select a random forest by its out-of-bag score, which is as honest as inner folds and needs no other fits."""
    rows = _summarize_graphs(graphs, train)
    kind = RandomForestRegressor if protocol.task == "regression" else RandomForestClassifier
    points = [dict(zip(_FOREST, values, strict=True)) for values in product(*_FOREST.values())]
    forests = [
        kind(_N_TREES, oob_score=True, random_state=seed, **point).fit(rows[train], targets[train]) for point in points
    ]
    best = max(range(len(points)), key=lambda i: round(forests[i].oob_score_, 12))  # the first of ties
    return _predict_rows(forests[best], rows[test], targets, test, points[best], forests[best].oob_score_, len(points))


def _boosting(protocol: Protocol, graphs: Graphs, targets: Any, train: Ints, test: Ints, seed: int) -> dict[str, Any]:
    """Select gradient boosting on `GraphStatistics` by the inner folds."""
    statistics = GraphStatistics().fit(graphs[train])
    is_regression = protocol.task == "regression"
    kind = HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
    split = (
        number_folds(len(train), protocol.inner_folds, seed)
        if is_regression
        else folds(targets[train], protocol.inner_folds, seed)
    )
    search = GridSearchCV(kind(random_state=seed), _BOOSTING, cv=split)
    with threadpool_limits(1):  # folds compete for the cores
        _fit_quietly(search, statistics.transform(graphs[train]), targets[train])
    n_fits = len(split) * len(search.cv_results_["params"]) + 1
    rows = statistics.transform(graphs[test])
    return _predict_rows(search.best_estimator_, rows, targets, test, search.best_params_, search.best_score_, n_fits)


def _predict_rows(
    model: Any, rows: Floats, targets: Any, test: Ints, chosen: dict[str, Any], score: float, n_fits: int
) -> dict[str, Any]:
    """Predict the test graphs by a fitted model of scikit-learn."""
    decisions = None
    if hasattr(model, "classes_"):
        scores = np.zeros((len(test), int(targets.max()) + 1))
        scores[:, model.classes_] = model.predict_proba(rows)
        decisions = _decisions(scores)
    return _row(targets[test], model.predict(rows), decisions, chosen, score, n_fits)


def _decisions(scores: Floats) -> Floats:
    """Return scores of classes as decision values: for two classes one number, above 0 for the second."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


# -------------------------------------------------------------------- graphs as numbers


@dataclass(frozen=True)
class _Items:
    """All nodes, or all arcs, of all graphs: for each its graph, its numbers, and its label."""

    owner: Ints
    numbers: Floats  # (n_items, n_numbers)
    labels: Ints  # all 0 where there are none
    n_labels: int  # 0 where there are none


def _node_items(graphs: Graphs) -> _Items:
    """Return the nodes; their numbers are degrees and vectors."""
    numbers = np.column_stack([graphs.degrees.astype(np.float64), *_columns(graphs.attributes)])
    return _as_items(graphs.graph_ids, numbers, graphs.labels, len(graphs.label_values or ()))


def _arc_items(graphs: Graphs) -> _Items:
    """Return the arcs; an undirected edge is two of them."""
    owner = np.repeat(graphs.graph_ids, graphs.degrees)
    numbers = np.column_stack([np.zeros((len(owner), 0)), *_columns(graphs.edge_attributes)])
    return _as_items(owner, numbers, graphs.edge_labels, len(graphs.edge_label_values or ()))


def _columns(vectors: Floats | None) -> list[Floats]:
    return [] if vectors is None else [np.asarray(vectors, dtype=np.float64)]


def _as_items(owner: Ints, numbers: Floats, labels: Ints | None, n_labels: int) -> _Items:
    known = np.zeros(len(owner), np.int64) if labels is None else labels.astype(np.int64)
    return _Items(owner.astype(np.int64), numbers, known, 0 if labels is None else n_labels)


def _standardize(numbers: Floats, is_known: np.ndarray) -> Floats:
    """Scale columns to mean 0 and deviation 1 over the known rows; a column that is constant there becomes 0."""
    mean, deviation = numbers[is_known].mean(axis=0), numbers[is_known].std(axis=0)
    is_constant = deviation <= 1e-12 * np.abs(mean)
    return np.where(is_constant, 0.0, (numbers - mean) / np.where(is_constant, 1.0, deviation))


def _summarize_graphs(graphs: Graphs, train: Ints) -> Floats:
    """Return a row for each graph: its size, and for nodes and edges mean, variance and histogram of each number.

    Bins and scales are those of the training graphs; columns are standardized.
    """
    nodes, arcs = _node_items(graphs), _arc_items(graphs)
    is_train = np.isin(np.arange(len(graphs)), train)
    arcs_of = np.bincount(arcs.owner, minlength=len(graphs))
    blocks = [np.column_stack([graphs.sizes, arcs_of]).astype(np.float64)]
    blocks += [_summarize(items, len(graphs), is_train[items.owner]) for items in (nodes, arcs)]
    return _standardize(np.hstack(blocks), is_train)


def _summarize(items: _Items, n_graphs: int, is_known: np.ndarray) -> Floats:
    n_items = len(items.owner)
    members = sparse.csr_array((np.ones(n_items), (items.owner, np.arange(n_items))), shape=(n_graphs, n_items))
    counts = np.maximum(np.bincount(items.owner, minlength=n_graphs), 1)[:, None]
    means = members @ items.numbers / counts
    variances = members @ (items.numbers - means[items.owner]) ** 2 / counts
    histograms = [_counts(items.owner, _bins(column, is_known), n_graphs, _N_BINS) for column in items.numbers.T]
    if items.n_labels:
        histograms.append(_counts(items.owner, items.labels, n_graphs, items.n_labels))
    return np.hstack([means, variances, *(histogram / counts for histogram in histograms)])


def _bins(column: Floats, is_known: np.ndarray) -> Ints:
    """Return the quantile bin of each number, by the quantiles of the known ones."""
    cuts = np.quantile(column[is_known], np.arange(1, _N_BINS) / _N_BINS) if is_known.any() else np.empty(0)
    return np.searchsorted(cuts, column, side="left")


def _counts(owner: Ints, codes: Ints, n_graphs: int, n_codes: int) -> Floats:
    """Count how often each graph has each code."""
    found = np.bincount(owner * n_codes + codes, minlength=n_graphs * n_codes)
    return found.reshape(n_graphs, n_codes).astype(np.float64)


# -------------------------------------------------------------------- a graph isomorphism network


def _torch_module() -> Any:
    """Import torch."""
    return optional_module("torch", "Graph neural networks")


def _gin(protocol: Protocol, graphs: Graphs, targets: Ints, train: Ints, test: Ints, seed: int) -> dict[str, Any]:  # noqa: ARG001
    """Train a network of each size, and predict with the best one on a tenth of the training graphs."""
    torch = _torch_module()
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # otherwise sums depend on the machine, and folds compete for cores
    try:
        kept, held_out = (train[ids] for ids in folds(targets[train], _HELD_OUT, seed)[0])
        inputs = _inputs(graphs, kept)
        classes = torch.tensor(targets)
        points = [dict(zip(_GRID, values, strict=True)) for values in product(*_GRID.values())]
        runs = [_train(torch, inputs, classes, point, kept, held_out, seed) for point in points]
        best = max(range(len(runs)), key=lambda i: (runs[i].accuracy, -runs[i].loss))  # the first of ties
        scores = _predict(torch, runs[best].model, inputs, test).double().numpy()
        predicted, accuracy = scores.argmax(axis=1), runs[best].accuracy
        return _row(targets[test], predicted, _decisions(scores), points[best], accuracy, len(points))
    finally:
        torch.set_num_threads(n_threads)


def _inputs(graphs: Graphs, train: Ints) -> Graphs:
    """Return the graphs with the network's inputs as vectors: scaled numbers, and a column for each label."""
    is_train = np.isin(np.arange(len(graphs)), train)
    nodes, arcs = (_encode(items, is_train[items.owner]) for items in (_node_items(graphs), _arc_items(graphs)))
    bare = replace(graphs, edge_attributes=arcs if arcs.shape[1] else None, edge_attribute_names=None)
    return bare.assign(attributes=nodes)


def _encode(items: _Items, is_known: np.ndarray) -> Floats:
    labels = items.labels[:, None] == np.arange(items.n_labels)
    return np.hstack([_standardize(items.numbers, is_known), labels.astype(np.float64)])


def _build(torch: Any, inputs: Graphs, n_classes: int, layers: int, width: int, generator: Any) -> Any:
    """Build a network with weights drawn by the generator."""
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
            pooled = pooled * (torch.rand(pooled.shape, generator=generator) >= _DROPOUT) / (1 - _DROPOUT)
        scores = scores + last(pooled)
    return scores


def _batches(ids: Ints) -> list[Ints]:
    """Split into batches of about equal size: a last batch of one graph would have no variance."""
    return np.array_split(ids, -(-len(ids) // _BATCH))


def _predict(torch: Any, model: Any, inputs: Graphs, ids: Ints) -> Any:
    model.eval()
    with torch.no_grad():
        return torch.cat([_forward(torch, model, inputs[batch]) for batch in _batches(ids)])


@dataclass(frozen=True)
class _Trained:
    """A network at the epoch of its lowest loss on the held-out graphs."""

    model: Any
    loss: float
    accuracy: float


def _train(
    torch: Any, inputs: Graphs, classes: Any, point: dict[str, int], train: Ints, held_out: Ints, seed: int
) -> _Trained:
    generator = torch.Generator().manual_seed(seed)
    model = _build(torch, inputs, int(classes.max()) + 1, **point, generator=generator)
    steps = torch.optim.Adam(model.parameters(), lr=_RATE)
    loss_of = torch.nn.functional.cross_entropy
    best, waited = _Trained(model, inf, 0.0), 0
    for _ in range(_MAX_EPOCHS):
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
            best, waited = _Trained(deepcopy(model), loss, accuracy), 0
        elif waited >= _PATIENCE:
            break
    return best


# By the names in `protocol.BASELINES`.
SELECTIONS: dict[str, Callable[[Protocol, Graphs, Ints, Ints, Ints, int], dict[str, Any]]] = {
    "summary-svm": _summary_svm,
    "summary-forest": _summary_forest,
    "boosting": _boosting,
    "gin": _gin,
}
