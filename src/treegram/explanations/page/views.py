"""What a page says of each graph: one decision, and the nodes, features and fitted graphs that add most to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.types import Floats, Ints
from treegram.explanations.contributions import Explanation, explain, split_model
from treegram.graphs import Graphs
from treegram.kernels.pipelines import split_pipeline
from treegram.models import GraphGP, GraphSVC

__all__ = ["Direction", "FittedGraph", "GraphView", "read_views"]

N_NODES, N_FEATURES, N_FITTED = 6, 6, 3


@dataclass(frozen=True)
class Direction:
    """Which output of an explanation is shown for a graph, and what numbers above and below 0 speak for."""

    output: int
    sign: float
    above: str
    below: str
    is_number: bool = False  # whether the output is the prediction itself


@dataclass(frozen=True)
class FittedGraph:
    """A fitted graph and what it adds."""

    number: int
    share: float
    target: str  # its class; "" where the model does not keep it


@dataclass(frozen=True)
class GraphView:
    """All that is shown of one graph."""

    number: int  # in the collection
    graph: Graphs
    prediction: str
    certainty: str  # probability or standard deviation; "" where the model has none
    truth: str  # "" where it is not known
    is_right: bool | None  # None: not known, or a number
    direction: Direction
    decision: float
    intercept: float
    shares: Floats  # of the nodes
    top_nodes: Ints
    features: list[tuple[str, float]] | None
    speaking_for: list[FittedGraph]
    speaking_against: list[FittedGraph]
    sums: dict[str, float]  # the decision as the sum of each view


def read_views(model: Any, graphs: Graphs, chosen: Ints, y: NDArray[Any] | None, *, spread: bool) -> list[GraphView]:
    """Explain the chosen graphs."""
    some = graphs[chosen]
    found = explain(model, some, spread=spread)
    predictions = model.predict(some)
    certainties = _certainties(model, some, predictions)
    directions = _directions(model, found, some, predictions)
    by_graph, by_feature, targets = found.graphs, found.features, _fitted_targets(split_model(model)[-1])
    tables = (by_feature,) if len(found.outputs) == 1 else by_feature
    views = []
    for i, number in enumerate(chosen.tolist()):
        one = directions[i]
        shares = one.sign * _column(found.nodes[i], one.output)
        fitted = None if by_graph is None else one.sign * _column(by_graph[i], one.output)
        table = None if by_feature is None else tables[one.output]
        intercept = one.sign * float(found.intercept[one.output])
        views.append(
            GraphView(
                number=number,
                graph=some[i],
                prediction=_shown(predictions[i]),
                certainty=certainties[i],
                truth="" if y is None else _shown(y[number]),
                is_right=bool(predictions[i] == y[number]) if y is not None and hasattr(model, "classes_") else None,
                direction=one,
                decision=float(shares.sum()) + intercept,
                intercept=intercept,
                shares=shares,
                top_nodes=np.argsort(-np.abs(shares), kind="stable")[:N_NODES],
                features=None if table is None else _features(found, i, one),
                speaking_for=_strongest(fitted, targets, 1.0),
                speaking_against=_strongest(fitted, targets, -1.0),
                sums=_sums(fitted, None if table is None else one.sign * table[[i]].sum(), intercept),
            )
        )
    return views


def _column(values: Floats, output: int) -> Floats:
    return values if values.ndim == 1 else values[:, output]


def _features(found: Explanation, i: int, one: Direction) -> list[tuple[str, float]]:
    return [(name, one.sign * share) for name, share in found.top_features(i, N_FEATURES, output=one.output)]


def _sums(fitted: Floats | None, features: float | None, intercept: float) -> dict[str, float]:
    parts = {"fitted graphs": None if fitted is None else float(fitted.sum()), "features": features}
    return {name: float(part) + intercept for name, part in parts.items() if part is not None}


def _strongest(fitted: Floats | None, targets: Sequence[str], sign: float) -> list[FittedGraph]:
    if fitted is None:
        return []
    order = np.argsort(-sign * fitted, kind="stable")[:N_FITTED].tolist()
    return [FittedGraph(g, float(fitted[g]), targets[g] if targets else "") for g in order if sign * fitted[g] > 0]


def _fitted_targets(model: Any) -> list[str]:
    """The classes of fitted graphs as far as the model keeps them: those of its support vectors."""
    if not isinstance(model, GraphSVC):
        return []
    targets = [""] * len(split_pipeline(model.kernel_)[1].graphs_)
    classes = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    for graph, code in zip(model.support_.tolist(), classes.tolist(), strict=True):
        targets[graph] = _shown(model.classes_[code])
    return targets


def _directions(model: Any, found: Explanation, graphs: Graphs, predictions: NDArray[Any]) -> list[Direction]:
    """For two classes the second against the first; for more the predicted one against the next best, or against all."""
    n = len(graphs)
    if not hasattr(model, "classes_"):
        return [Direction(0, 1.0, "a higher prediction", "a lower one", is_number=True)] * n
    classes = model.classes_.tolist()
    names = [_shown(name) for name in classes]
    if len(classes) == 2:
        return [Direction(0, 1.0, names[1], names[0])] * n
    best = np.searchsorted(model.classes_, predictions)
    if len(found.outputs) == len(classes) and not isinstance(found.outputs[0], tuple):
        return [Direction(int(c), 1.0, names[c], f"the other {len(classes) - 1} classes") for c in best]
    scores = np.array(model.decision_function(graphs))
    scores[np.arange(n), best] = -np.inf
    pairs = {pair: place for place, pair in enumerate(combinations(range(len(classes)), 2))}
    found_directions = []
    for first, second in zip(best.tolist(), scores.argmax(axis=1).tolist(), strict=True):
        place, sign = pairs[min(first, second), max(first, second)], 1.0 if first < second else -1.0
        found_directions.append(Direction(place, sign, names[first], names[second]))
    return found_directions


def _certainties(model: Any, graphs: Graphs, predictions: NDArray[Any]) -> list[str]:
    if isinstance(split_model(model)[-1], GraphGP):
        return [f"± {value:.3g}" for value in model.predict(graphs, return_std=True)[1].tolist()]
    if not hasattr(model, "predict_proba"):
        return [""] * len(graphs)
    rows = model.predict_proba(graphs)
    columns = np.searchsorted(model.classes_, predictions)
    found = [f"{100 * value:.1f} %" for value in rows[np.arange(len(rows)), columns].tolist()]
    for i in np.flatnonzero(rows.argmax(axis=1) != columns):  # held-out decisions may say otherwise than the machine
        best = int(rows[i].argmax())
        found[i] += f" ({_shown(model.classes_[best])}: {100 * rows[i, best]:.1f} %)"
    return found


def _shown(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{plain:.4g}" if isinstance(plain, float) else str(plain)
