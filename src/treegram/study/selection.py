"""Select and fit a model on the training graphs of a fold, and describe it and its predictions as fields of a row.

The models are those on Gram matrices, the automatic model, and **baselines** that are not graph kernels: models on
`GraphStatistics`, and a small neural network. A selection takes a fold, learns from its training graphs alone, and returns
its fields of a row.

The graph isomorphism network (Xu et al. 2019) is written in plain torch, for small graphs on one thread. Each layer
adds up a node's neighbors and itself and passes the sum through a small network; a linear map of the sums over the
nodes of a graph, layer by layer, gives the scores. Labels and vectors of edges are added to the messages (Hu et al.
2020). A tenth of the training graphs decides when to stop and which of a few sizes is best, as in Errica et al. (2020).
All random numbers come from one generator, so that the same seed gives the same network, whatever other threads do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, ParameterGrid
from threadpoolctl import threadpool_limits

from treegram._core.optional import optional_module
from treegram._core.types import Floats, Ints
from treegram.graphs import Graphs
from treegram.graphs.statistics import GraphStatistics
from treegram.models import GraphClassifier, GraphRegressor
from treegram.models.ridge import number_folds, select_ridge
from treegram.models.search import distinct
from treegram.models.svc import folds, select
from treegram.study.metrics import roc_auc
from treegram.study.protocol import Protocol, StudyEntry

_WIDTHS = (0.1, 1.0, 10.0)  # divided by the number of columns, which is scikit-learn's gamma="scale" here
_FOREST = {"max_features": ["sqrt", 0.3], "min_samples_leaf": [1, 3]}
_N_TREES = 200
_BOOSTING = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}
_NETWORKS = {"layers": [2, 4], "width": [32, 64]}
_DROPOUT = 0.5  # before the linear map
_RATE = 0.01  # of Adam
_BATCH = 128  # graphs
_MAX_EPOCHS = 200
_PATIENCE = 25  # epochs without an improved loss on the held-out graphs
_HELD_OUT = 10  # one training graph in ten is held out


def baseline_versions(entries: Sequence[StudyEntry]) -> dict[str, str]:
    """Return the versions of packages that only baselines need; raise ImportError early if one is missing."""
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
    """Concatenate several `Grams`, in this order, without repetitions."""
    if len(grams) == 1:
        return grams[0]
    return unique([chosen for one in grams for chosen in one.chosen], [K for one in grams for K in one.matrices])


@dataclass(frozen=True)
class Fold:
    """One outer fold, and all that a selection may use; targets of test graphs are only for the row."""

    protocol: Protocol
    graphs: Graphs
    targets: Any  # regression targets, or positions among the sorted classes
    train: Ints
    test: Ints
    seed: int

    @property
    def is_regression(self) -> bool:
        """True if targets are numbers."""
        return self.protocol.task == "regression"

    @property
    def y(self) -> Any:
        """The targets of the training graphs."""
        return self.targets[self.train]

    @property
    def class_weight(self) -> str | None:
        """The class weights of all models: "balanced" or None, as in scikit-learn."""
        return self.protocol.class_weight or None

    @property
    def weights_of_classes(self) -> Floats:
        """The weight of each class, by its share of the training graphs."""
        counts = np.bincount(self.y, minlength=int(self.targets.max()) + 1)
        if self.class_weight is None:
            return np.ones(len(counts))
        weights: Floats = len(self.y) / (np.count_nonzero(counts) * np.maximum(counts, 1))
        return weights

    def row(
        self,
        predicted: Any,
        chosen: dict[str, Any],
        inner_score: float,
        n_fits: int,
        decisions: Floats | None = None,
        n_unconverged: int = 0,
    ) -> dict[str, Any]:
        """Return the fields of a row that a selection knows; only classifiers have decision values."""
        actual = self.targets[self.test]
        return {
            "actual": tuple(actual.tolist()),
            "predicted": tuple(predicted.tolist()),
            "chosen": chosen,
            "inner_score": float(inner_score),
            "n_fits": int(n_fits),
            "n_unconverged": int(n_unconverged),
            "roc_auc": None if decisions is None else roc_auc(actual, decisions.astype(np.float32)),
        }

    def row_of_model(
        self, model: Any, test: Any, chosen: dict[str, Any], inner_score: float, n_fits: int, *, decide: str
    ) -> dict[str, Any]:
        """Predict the test graphs with a fitted model; a classifier's method ``decide`` gives its decision values."""
        decisions = None
        if not self.is_regression:
            known = getattr(model, decide)(test)
            # A column for each class of the data set, including those without training graphs.
            decisions = np.zeros((len(known), int(self.targets.max()) + 1))
            decisions[:, model.classes_] = np.column_stack([-known, known]) if known.ndim == 1 else known
        return self.row(model.predict(test), chosen, inner_score, n_fits, decisions)


def select_gram(fold: Fold, grams: Grams) -> dict[str, Any]:
    """Select a Gram matrix and the regularization strength by inner cross-validation."""
    name, values = fold.protocol.strengths
    select_one: Any = select_ridge
    if not fold.is_regression:
        weights = fold.weights_of_classes[fold.targets] if fold.class_weight else None
        select_one = partial(select, weights=weights)
    best = select_one(
        grams.matrices,
        fold.targets,
        fold.train,
        fold.test,
        np.array(values, dtype=np.float64),
        n_folds=fold.protocol.inner_folds,
        seed=fold.seed,
    )
    chosen = {**grams.chosen[best.gram], name: best.strength}
    return fold.row(best.predicted, chosen, best.inner_score, best.fits.n_fits, best.decisions, best.fits.n_unconverged)


def select_auto(fold: Fold) -> dict[str, Any]:
    """Fit the automatic model: its candidates, scales and weights depend only on the training graphs.

    The inner score is the best leave-one-out score of one of its kernels.
    """
    model: Any = GraphRegressor() if fold.is_regression else GraphClassifier(class_weight=fold.class_weight)
    _fit_quietly(model, fold.graphs[fold.train], fold.y)
    used = [one for one in model.search_results_ if one["weight"] is not None]
    chosen = {"kernel": " + ".join(sorted(str(one["candidate"]) for one in used))}
    score, n_fits = max(one["score"] for one in used), len(model.search_results_)
    return fold.row_of_model(model, fold.graphs[fold.test], chosen, score, n_fits, decide="decision_function")


def _fit_quietly(model: Any, X: Any, y: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about single folds; the row counts fits that did not converge
        model.fit(X, y)


# -------------------------------------------------------------------- models on statistics of graphs


def _statistics(fold: Fold) -> Floats:
    """Return a row of numbers for each graph; the training graphs determine the columns."""
    return GraphStatistics().fit(fold.graphs[fold.train]).transform(fold.graphs)


def _standardize(numbers: Floats, is_training: NDArray[np.bool_]) -> Floats:
    """Scale columns to mean 0 and deviation 1 over the training rows; a column that is constant there becomes 0."""
    mean, deviation = numbers[is_training].mean(axis=0), numbers[is_training].std(axis=0)
    return (numbers - mean) / np.where(deviation > 1e-12 * np.abs(mean), deviation, inf)


def _summary_svm(fold: Fold) -> dict[str, Any]:
    """Select an SVM or ridge regression on graph statistics, after Cai and Wang (2019)."""
    rows = _standardize(_statistics(fold), np.isin(np.arange(len(fold.graphs)), fold.train))
    distances = euclidean_distances(rows, squared=True) / rows.shape[1]
    grams = unique([{"gamma": width} for width in _WIDTHS], [np.exp(-width * distances) for width in _WIDTHS])
    return select_gram(fold, grams)


def _summary_forest(fold: Fold) -> dict[str, Any]:
    """Select a random forest by its out-of-bag score, which is as honest as inner folds and needs no further fits.

    With class weights, trees draw graphs of rare classes so often that few are left out: inner folds select instead.
    """
    rows, points = _statistics(fold), list(ParameterGrid(_FOREST))
    if fold.class_weight:
        forest = RandomForestClassifier(_N_TREES, class_weight=fold.class_weight, random_state=fold.seed)
        return _search_rows(fold, forest, _FOREST, rows)
    kind = RandomForestRegressor if fold.is_regression else RandomForestClassifier
    forests = [
        kind(_N_TREES, oob_score=True, random_state=fold.seed, **point).fit(rows[fold.train], fold.y)
        for point in points
    ]
    best = max(range(len(points)), key=lambda i: round(forests[i].oob_score_, 12))  # ties go to the first
    score, test = forests[best].oob_score_, rows[fold.test]
    return fold.row_of_model(forests[best], test, points[best], score, len(points), decide="predict_proba")


def _boosting(fold: Fold) -> dict[str, Any]:
    """Select gradient boosting by the inner folds."""
    if fold.is_regression:
        model: Any = HistGradientBoostingRegressor(random_state=fold.seed)
    else:
        model = HistGradientBoostingClassifier(random_state=fold.seed, class_weight=fold.class_weight)
    return _search_rows(fold, model, _BOOSTING, _statistics(fold))


def _search_rows(fold: Fold, model: Any, grid: Mapping[str, Any], rows: Floats) -> dict[str, Any]:
    """Select the parameters of a scikit-learn model by the inner folds, and predict the test graphs."""
    n_folds = fold.protocol.inner_folds
    if fold.is_regression:
        split = number_folds(len(fold.train), n_folds, fold.seed)
    else:
        split = folds(fold.y, n_folds, fold.seed)
    search = GridSearchCV(model, grid, cv=split, scoring="balanced_accuracy" if fold.class_weight else None)
    with threadpool_limits(1):  # folds compete for the cores
        _fit_quietly(search, rows[fold.train], fold.y)
    n_fits = n_folds * len(search.cv_results_["params"]) + 1
    chosen, score = search.best_params_, search.best_score_
    return fold.row_of_model(search, rows[fold.test], chosen, score, n_fits, decide="predict_proba")


# -------------------------------------------------------------------- a graph isomorphism network


def _torch_module() -> Any:
    """Import torch."""
    return optional_module("torch", "Graph neural networks")


def _gin(fold: Fold) -> dict[str, Any]:
    """Train a network of each size, and predict with the one that is best on a tenth of the training graphs."""
    torch = _torch_module()
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # otherwise sums depend on the machine, and folds compete for cores
    try:
        kept, held_out = (fold.train[ids] for ids in folds(fold.y, _HELD_OUT, fold.seed)[0])
        inputs, classes = _inputs(fold.graphs, kept), torch.tensor(fold.targets)
        points = list(ParameterGrid(_NETWORKS))
        weights = torch.tensor(fold.weights_of_classes, dtype=torch.float32)
        runs = [_train(torch, inputs, classes, weights, point, kept, held_out, fold.seed) for point in points]
        best = max(range(len(runs)), key=lambda i: (runs[i].accuracy, -runs[i].loss))  # ties go to the first
        # Outputs of one class can be compared between graphs only as probabilities.
        decisions = _predict(torch, runs[best].model, inputs, fold.test).double().softmax(dim=1).numpy()
        return fold.row(decisions.argmax(axis=1), points[best], runs[best].accuracy, len(points), decisions)
    finally:
        torch.set_num_threads(n_threads)


def _inputs(graphs: Graphs, train: Ints) -> Graphs:
    """Return the graphs with the network's inputs as vectors: scaled attributes, and a column for each label."""
    is_training = np.isin(np.arange(len(graphs)), train)[graphs.graph_ids]  # by node
    degrees = graphs.degrees[:, None].astype(np.float64)
    nodes = [_standardize(degrees, is_training)]
    if graphs.attributes is not None:
        nodes.append(_standardize(np.asarray(graphs.attributes), is_training))
    if graphs.labels is not None:
        nodes.append(np.eye(len(graphs.label_values))[graphs.labels])
    edges = []
    if graphs.edge_attributes is not None:
        edges.append(_standardize(np.asarray(graphs.edge_attributes), np.repeat(is_training, graphs.degrees)))
    if graphs.edge_labels is not None:
        edges.append(np.eye(len(graphs.edge_label_values))[graphs.edge_labels])
    bare = replace(graphs, edge_attributes=np.hstack(edges) if edges else None, edge_attribute_names=None)
    return bare.assign(attributes=np.hstack(nodes))


def _build(torch: Any, inputs: Graphs, n_classes: int, layers: int, width: int, generator: Any) -> Any:
    """Build a network with random weights from the generator."""
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
    """Split ids into batches of about equal size: a last batch of one graph would have no variance."""
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
    torch: Any,
    inputs: Graphs,
    classes: Any,
    weights: Any,
    point: dict[str, int],
    train: Ints,
    held_out: Ints,
    seed: int,
) -> _Trained:
    generator = torch.Generator().manual_seed(seed)
    model = _build(torch, inputs, int(classes.max()) + 1, **point, generator=generator)
    steps = torch.optim.Adam(model.parameters(), lr=_RATE)
    loss_of = torch.nn.CrossEntropyLoss(weight=weights)
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
            is_right = (scores.argmax(dim=1) == classes[held_out]).double()
            accuracy = float(np.average(is_right, weights=weights[classes[held_out]]))
            best, waited = _Trained(deepcopy(model), loss, accuracy), 0
        elif waited >= _PATIENCE:
            break
    return best


# By the names in `protocol.BASELINES`.
SELECTIONS: dict[str, Callable[[Fold], dict[str, Any]]] = {
    "summary-svm": _summary_svm,
    "summary-forest": _summary_forest,
    "boosting": _boosting,
    "gin": _gin,
}
