"""Explanations as one HTML page that needs nothing else, and their short view in notebooks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import ParameterError
from treegram._core.files import check_writable, replacing
from treegram._core.html import render
from treegram._core.machine import package_versions
from treegram._core.progress import track
from treegram._core.text import counted
from treegram._core.types import Floats, Ints
from treegram.explanations.contributions import Contrast, Explanation, split_model
from treegram.explanations.drawing import check_molecule, has_labels
from treegram.explanations.pictures import (
    color_stops,
    graph_picture,
    molecule_picture,
    node_label,
    signed,
    tree_picture,
)
from treegram.graphs import Graphs
from treegram.graphs.fields import graphs_digest
from treegram.kernels import Nystroem
from treegram.kernels.base import inverse_roots
from treegram.models import GraphGP, GraphSVC

__all__ = ["render_summary", "write_page"]

_N_NODES, _N_FEATURES, _N_SIMILAR = 6, 6, 6
_LONGEST_NAME = 90  # characters of a feature's name that are shown
_MOST_THUMBNAIL = 120  # nodes of a training graph that is drawn


def write_page(
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    y: ArrayLike | None,
    numbers: ArrayLike | None,
    molecules: Sequence[Any] | None,
    title: str,
    source: str,
) -> None:
    """Write the page; see :meth:`Explanation.to_html`."""
    target = Path(path)
    check_writable(target)
    graphs = explanation.graphs
    if not len(graphs):
        raise ParameterError("X of explain must have at least one graph for a page; it has none.")
    targets = graphs.targets if y is None else np.asarray(y)
    if targets is not None and targets.shape != (len(graphs),):
        raise ParameterError(f"y must have one entry per graph, shape ({len(graphs)},); got shape {targets.shape}.")
    shown_numbers = np.arange(len(graphs)) if numbers is None else np.asarray(numbers)
    if shown_numbers.shape != (len(graphs),) or shown_numbers.dtype.kind not in "iu":
        raise ParameterError(f"numbers must have one whole number per graph, {len(graphs)} in all; got {numbers!r}.")
    if molecules is not None:
        if len(molecules) != len(graphs):
            raise ParameterError(f"molecules must have one entry per graph, {len(graphs)}; it has {len(molecules)}.")
        molecules = [check_molecule(one, graphs[i], f"molecules[{i}]") for i, one in enumerate(molecules)]
    _warn_of_unknown_classes(explanation, targets)
    page = render(
        "treegram.explanations",
        "explanation.html",
        **_content(explanation, targets, shown_numbers, molecules, source),
        title=title,
    )
    with replacing(target) as file:
        file.write(page.encode())


def render_summary(explanation: Explanation, n_shown: int) -> str:
    """Return a table of the first decisions, each between the predicted class and the next best, as HTML."""
    rows = []
    for i in range(min(n_shown, len(explanation.graphs))):
        contrast = explanation._contrast(i)
        values = explanation._node_values_of(i, contrast)
        rows.append(
            {
                "prediction": _shown(explanation.predictions[i]),
                "decision": signed(float(values.sum() + explanation.intercept @ contrast.combine)),
                "above": contrast.above,
                "below": contrast.below,
                "strongest": _strongest(explanation.graphs[i], _largest(values)),
            }
        )
    return render(
        "treegram.explanations",
        "summary.html",
        n_graphs=counted(len(explanation.graphs), "graph"),
        model=type(split_model(explanation._model)[-1]).__name__,
        rows=rows,
        n_more=len(explanation.graphs) - len(rows),
    )


def _warn_of_unknown_classes(explanation: Explanation, targets: NDArray[Any] | None) -> None:
    if targets is None or not explanation._is_classifier:
        return
    known = explanation._model.classes_.tolist()
    unknown = [one for one in dict.fromkeys(targets.tolist()) if one not in set(known)]
    if unknown:
        warnings.warn(
            f"y has {'a class' if len(unknown) == 1 else 'classes'} that the model was not fitted on, so all predictions for "
            f"such graphs are wrong: {_some(unknown)}; it was fitted on {_some(known)}.",
            UserWarning,
            stacklevel=4,
        )


def _some(classes: list[Any]) -> str:
    return ", ".join(repr(one) for one in classes[:5]) + ", ..." * (len(classes) > 5)


# -------------------------------------------------------------------- content of the page


def _content(
    explanation: Explanation,
    targets: NDArray[Any] | None,
    numbers: Ints,
    molecules: Sequence[Any] | None,
    source: str,
) -> dict[str, Any]:
    training = _TrainingGraphs(explanation) if explanation._compares_graphs else None
    certainty, certainties = _certainties(explanation)
    cards = [
        _card(explanation, i, training, None if molecules is None else molecules[i])
        | {"number": int(numbers[i]), "certainty": certainties[i]}
        | _judge(explanation, i, targets)
        for i in track(range(len(explanation.graphs)), len(explanation.graphs), "pictures")
    ]
    is_classifier = explanation._is_classifier
    optional = {certainty: bool(certainty), "decision": is_classifier, "true": targets is not None}
    sides = {(card["above"], card["below"]) for card in cards}
    caption = ["A positive decision favors the first of the two classes below it."] * is_classifier
    caption += ["Labels of nodes are in parentheses."] * has_labels(explanation.graphs)
    return {
        "cards": cards,
        "caption": " ".join(caption),
        "certainty": certainty,
        "color_stops": color_stops(is_molecule=molecules is not None),
        "columns": ["graph", "prediction", *(name for name in optional if optional[name]), "nodes", "strongest nodes"],
        "facts": _facts(explanation, source),
        "is_classifier": is_classifier,
        "output_word": "decision" if is_classifier else "prediction",
        "sides": sides.pop() if len(sides) == 1 else None,
        "tiles": _tiles(explanation, cards),
    }


def _tiles(explanation: Explanation, cards: list[dict[str, Any]]) -> list[tuple[str, str]]:
    n = len(cards)
    tiles = [(str(n), f"{'graph' if n == 1 else 'graphs'} on this page")]
    judged = [card["verdict"] for card in cards if card["verdict"] in ("right", "wrong")]
    if explanation.in_training is not None and explanation.in_training.any():
        known = int(explanation.in_training.sum())
        tiles.append(
            (f"{known} of {n}", "graphs were in the training data; their predictions do not count as right or wrong")
        )
    if judged:
        tiles.append(
            (
                f"{judged.count('right')} of {len(judged)}",
                "predictions for other graphs are right" if len(judged) < n else "predictions are right",
            )
        )
    tiles.append(
        (_difference(max(card["residual"] for card in cards)), "largest difference between two sums (see sum check)")
    )
    return tiles


def _judge(explanation: Explanation, i: int, targets: NDArray[Any] | None) -> dict[str, str]:
    """Return the true target and the verdict on a prediction; a graph of the training data is neither right nor wrong."""
    truth = "" if targets is None else _shown(targets[i])
    if explanation.in_training is not None and explanation.in_training[i]:
        return {"truth": truth, "verdict": "in the training data"}
    if targets is None or not explanation._is_classifier:
        return {"truth": truth, "verdict": ""}
    return {"truth": truth, "verdict": "right" if explanation.predictions[i] == targets[i] else "wrong"}


def _card(explanation: Explanation, i: int, training: _TrainingGraphs | None, molecule: Any) -> dict[str, Any]:
    graph, contrast = explanation.graphs[i], explanation._contrast(i)
    values = explanation._node_values_of(i, contrast)
    intercept = float(explanation.intercept @ contrast.combine)
    decision = float(values.sum()) + intercept
    sums: dict[str, float] = {}
    if training is not None:
        sums["training graphs"] = float(training.contributions(i, contrast).sum()) + intercept
    features = None
    if explanation._table is not None:
        sums["features"] = float(explanation._feature_values(i, contrast).sum()) + intercept
        features = _bars([(_name(name), value) for name, value in explanation.top_features(i, _N_FEATURES)])
    top = _largest(values)
    strongest = "; ".join(f"node {node} {node_label(graph, node)} {signed(values[node])}" for node in top[:3])
    description = f"Graph with {counted(graph.n_nodes, 'node')}. Strongest: {strongest or 'none'}."
    limit = float(np.abs(values).max(initial=0.0))
    return {
        "above": contrast.above,
        "below": contrast.below,
        "prediction": _shown(explanation.predictions[i]),
        "decision": signed(decision),
        "n_nodes": f"{graph.n_nodes:,}",
        "has_nodes": graph.n_nodes > 0,
        "strongest": _strongest(graph, top),
        "picture": graph_picture(graph, values, description, numbered=tuple(top))
        if molecule is None
        else molecule_picture(molecule, values, description, tuple(top)),
        "scale": (signed(-limit), signed(limit)),
        "nodes": _bars([({"node": node, "label": node_label(graph, node)}, float(values[node])) for node in top]),
        "features": features,
        "similar": [] if training is None else training.most_similar(i, contrast),
        "counted_nodes": counted(graph.n_nodes, "node"),
        "node_sum": signed(float(values.sum()), 6),
        "intercept": signed(intercept, 6),
        "total": signed(decision, 6),
        "sums": [(name, signed(value, 6), _difference(value - decision)) for name, value in sums.items()],
        "residual": max((abs(value - decision) for value in sums.values()), default=0.0),
    }


def _largest(values: Floats) -> list[int]:
    """Return the nodes with the largest contributions in either direction."""
    largest: list[int] = np.argsort(-np.abs(values), kind="stable")[:_N_NODES].tolist()
    return largest


def _strongest(graph: Graphs, top: list[int]) -> str:
    labels = {node: node_label(graph, node) for node in top[:3]}
    return ", ".join(f"{node} ({label})" if label else str(node) for node, label in labels.items())


def _name(name: str) -> dict[str, Any]:
    """Return a feature's name, shortened, and its tree if it is one."""
    kernel, colon, rest = name.partition(": ")
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 30]} … {name[-25:]}"
    return {"name": name, "short": short, "tree": tree_picture(rest if colon and kernel.isidentifier() else name)}


def _bars(items: list[tuple[dict[str, Any], float]]) -> list[dict[str, Any]]:
    """Add to each item a bar from the middle to the left or right, as long as its contribution."""
    limit = max((abs(value) for _, value in items), default=0.0) or 1.0
    bars = []
    for item, value in items:
        width = 50 * abs(value) / limit
        left = 50 if value > 0 else 50 - width
        side = "for" if value > 0 else "against"
        bars.append({**item, "value": signed(value), "side": side, "left": f"{left:.1f}", "width": f"{width:.1f}"})
    return bars


def _difference(value: float) -> str:
    return f"{abs(value):.0e}".replace("-", "\N{MINUS SIGN}") if value else "0"


def _shown(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{plain:.4g}".replace("-", "\N{MINUS SIGN}") if isinstance(plain, float) else str(plain)


# -------------------------------------------------------------------- training graphs and certainty


class _TrainingGraphs:
    """Training graphs that a model compares with: how similar they are, and their contributions."""

    def __init__(self, explanation: Explanation) -> None:
        kernel = explanation._kernel
        self.explanation = explanation
        self.graphs: Graphs = kernel.graphs_
        self.similarities: Floats = explanation._rows
        if not kernel.normalize:  # large graphs would be similar to all
            scales = [inverse_roots(kernel.diag(graphs)) for graphs in (explanation._seen, self.graphs)]
            self.similarities = self.similarities * scales[0][:, None] * scales[1]
        features = explanation._features
        self.numbers = features.component_indices_ if isinstance(features, Nystroem) else np.arange(len(self.graphs))
        self.targets = [""] * len(self.graphs)
        final = split_model(explanation._model)[-1]
        if isinstance(final, GraphSVC):  # which keeps the classes of its support vectors
            codes = np.repeat(np.arange(len(final.classes_)), final.n_support_)
            for graph, code in zip(final.support_.tolist(), codes.tolist(), strict=True):
                self.targets[graph] = _shown(final.classes_[code])
        self.pictures: dict[int, dict[str, Any]] = {}

    def contributions(self, i: int, contrast: Contrast) -> Floats:
        """Return the contribution of each training graph to a decision."""
        values: Floats = self.explanation._rows[i] * (self.explanation._weights @ contrast.combine)
        return values

    def most_similar(self, i: int, contrast: Contrast) -> list[dict[str, Any]]:
        """Return the most similar training graphs, without the explained graph itself, and their contributions."""
        similarities, contributions = self.similarities[i], self.contributions(i, contrast)
        indices = self.explanation._training_indices
        own = -1 if indices is None else int(indices[i])
        order = [graph for graph in np.argsort(-similarities, kind="stable")[: _N_SIMILAR + 1].tolist() if graph != own]
        return [
            {
                "number": int(self.numbers[graph]),
                "target": self.targets[graph],
                "similarity": f"{similarities[graph]:.2f}".replace("-", "\N{MINUS SIGN}"),
                "value": signed(float(contributions[graph])) if contributions[graph] else "0",
                "picture": self._picture(graph),
            }
            for graph in order[:_N_SIMILAR]
        ]

    def _picture(self, graph: int) -> dict[str, Any]:
        if graph not in self.pictures:
            one = self.graphs[graph]
            words = f"Training graph {self.numbers[graph]}, {counted(one.n_nodes, 'node')}"
            is_large = one.n_nodes > _MOST_THUMBNAIL
            self.pictures[graph] = (
                {"undrawn": f"{one.n_nodes:,} nodes"} if is_large else graph_picture(one, None, words, size=1.5)
            )
        return self.pictures[graph]


def _certainties(explanation: Explanation) -> tuple[str, list[str]]:
    """Return "probability", "standard deviation" or "", and its value for each graph."""
    model, X = explanation._model, explanation._X
    if isinstance(split_model(model)[-1], GraphGP):
        return "standard deviation", [f"± {value:.3g}" for value in model.predict(X, return_std=True)[1].tolist()]
    if not hasattr(model, "predict_proba"):
        return "", [""] * len(explanation.graphs)
    rows = model.predict_proba(X)
    columns = np.searchsorted(model.classes_, explanation.predictions)
    texts = [f"{100 * value:.1f} %" for value in rows[np.arange(len(rows)), columns].tolist()]
    for i in np.flatnonzero(
        rows.argmax(axis=1) != columns
    ):  # sigmoids, fitted on held-out decisions, may favor another
        best = int(rows[i].argmax())
        texts[i] += f" ({_shown(model.classes_[best])}: {100 * rows[i, best]:.1f} %)"
    return "probability", texts


def _facts(explanation: Explanation, source: str) -> list[tuple[str, str]]:
    model, final = explanation._model, split_model(explanation._model)[-1]
    facts = [("source", source)] if source else []
    facts.append(("model", " ".join(repr(model).split())))
    if hasattr(final, "best_params_"):
        chosen = (f"{k} = {v:.6g}" if isinstance(v, float) else f"{k} = {v}" for k, v in final.best_params_.items())
        facts += [("kernel", " ".join(repr(final.kernel_).split())), ("chosen", " ".join(", ".join(chosen).split()))]
    if explanation.in_training is not None:
        fitted = explanation._kernel.graphs_
        facts.append(("training graphs", f"{len(fitted):,}, SHA-256 {graphs_digest(fitted)}"))
    facts.append(("explained graphs", f"{len(explanation.graphs):,}, SHA-256 {graphs_digest(explanation.graphs)}"))
    to = "split among the nodes of the tree" if explanation.attribute_to == "tree" else "given to the root of the tree"
    facts.append(("attribution", f"The contribution of a tree or color is {to}."))
    return [*facts, ("versions", ", ".join(f"{name} {version}" for name, version in package_versions().items()))]
