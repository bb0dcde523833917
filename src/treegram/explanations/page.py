"""Explanations as one HTML page that needs nothing else, and their short view in notebooks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import ParameterError
from treegram._core.files import check_writable, replacing
from treegram._core.html import render
from treegram._core.machine import package_versions
from treegram._core.parallel import track
from treegram._core.text import counted
from treegram.explanations.contributions import Explanation, split_model
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
    n = len(graphs)
    if not n:
        raise ParameterError("X of explain must have at least one graph for a page; it has none.")
    targets = graphs.targets if y is None else np.asarray(y)
    if y is None and targets is not None and targets.ndim > 1:  # several targets, of which the model predicts one
        targets = None
    if targets is not None and targets.shape != (n,):
        raise ParameterError(f"y must have one entry per graph, shape ({n},); got shape {targets.shape}.")
    shown_numbers = np.arange(n) if numbers is None else np.asarray(numbers)
    if shown_numbers.shape != (n,) or shown_numbers.dtype.kind not in "iu":
        raise ParameterError(f"numbers must have one whole number per graph, {n} in all; got {numbers!r}.")
    if molecules is not None:
        if len(molecules) != n:
            raise ParameterError(f"molecules must have one entry per graph, {n}; it has {len(molecules)}.")
        molecules = [check_molecule(one, graphs[i], f"molecules[{i}]") for i, one in enumerate(molecules)]
    _warn_of_unknown_classes(explanation, targets)
    similar = _MostSimilar(explanation) if explanation._compares_graphs else None
    cards = []
    for i in track(range(n), n, "pictures"):
        card = _card(explanation, i, None if molecules is None else molecules[i])
        card["number"] = int(shown_numbers[i])
        card["truth"] = "" if targets is None else _shown(targets[i])
        card["verdict"] = _verdict(explanation, i, targets)
        card["similar"] = [] if similar is None else similar.list(i)
        cards.append(card)
    certainty, certainties = _certainties(explanation)
    contrasts = {(card["contrast"].above, card["contrast"].below) for card in cards}
    page = render(
        "treegram.explanations",
        "explanation.html",
        cards=cards,
        certainty=certainty,
        certainties=certainties,
        color_stops=color_stops(is_molecule=molecules is not None),
        counted=counted,
        difference=_difference,
        facts=_facts(explanation, source),
        has_labels=has_labels(graphs),
        has_truth=targets is not None,
        is_classifier=explanation._is_classifier,
        node_label=node_label,
        sides=contrasts.pop() if len(contrasts) == 1 else None,
        signed=signed,
        tiles=_tiles(cards),
        title=title,
    )
    with replacing(target) as file:
        file.write(page.encode())


def render_summary(explanation: Explanation, n_shown: int) -> str:
    """Return a table of the first decisions, each between the predicted class and the next best, as HTML."""
    n = len(explanation.graphs)
    return render(
        "treegram.explanations",
        "summary.html",
        cards=[_split_decision(explanation, i) for i in range(min(n_shown, n))],
        model=type(split_model(explanation._model)[-1]).__name__,
        n_graphs=counted(n, "graph"),
        n_more=max(n - n_shown, 0),
        signed=signed,
    )


def _warn_of_unknown_classes(explanation: Explanation, targets: NDArray[Any] | None) -> None:
    if targets is None or not explanation._is_classifier:
        return
    known = explanation._model.classes_.tolist()
    unknown = [one for one in dict.fromkeys(targets.tolist()) if one not in set(known)]
    if unknown:
        warnings.warn(
            f"y has {counted(len(unknown), 'class', 'classes')} that the model was not fitted on, such as {unknown[0]!r}: all "
            f"predictions for such graphs are wrong. It was fitted on classes such as {known[0]!r}.",
            UserWarning,
            stacklevel=4,
        )


# -------------------------------------------------------------------- one graph


def _split_decision(explanation: Explanation, i: int) -> dict[str, Any]:
    """Return the decision about a graph, the contributions of its nodes, and the nodes that contribute most."""
    graph, contrast = explanation.graphs[i], explanation._contrast(i)
    values, intercept = explanation._node_values_of(i, contrast), float(explanation.intercept @ contrast.combine)
    top = np.argsort(-np.abs(values), kind="stable")[:_N_NODES].tolist()
    labels = {node: node_label(graph, node) for node in top[:3]}
    return {
        "graph": graph,
        "prediction": _shown(explanation.predictions[i]),
        "contrast": contrast,
        "values": values,
        "intercept": intercept,
        "decision": float(values.sum()) + intercept,
        "top": top,
        "strongest": ", ".join(f"{node} ({label})" if label else str(node) for node, label in labels.items()),
    }


def _card(explanation: Explanation, i: int, molecule: Any) -> dict[str, Any]:
    """Add to a decision its picture, its features, and its sums over features and over training graphs."""
    card = _split_decision(explanation, i)
    graph, contrast, values, top = card["graph"], card["contrast"], card["values"], tuple(card["top"])
    words = "; ".join(f"node {node} {node_label(graph, node)} {signed(values[node])}" for node in top[:3])
    description = f"Graph with {counted(graph.n_nodes, 'node')}. Strongest: {words or 'none'}."
    if molecule is None:
        card["picture"] = graph_picture(graph, values, description, numbered=top)
    else:
        card["picture"] = molecule_picture(molecule, values, description, top)
    card["limit"] = float(np.abs(values).max(initial=0.0))
    card["features"], sums = None, {}
    if explanation._compares_graphs:
        sums["training graphs"] = explanation._sums_of_rows[i] @ contrast.combine
    if explanation._table is not None:
        if explanation._table.is_complete:
            columns = explanation._column_values[i].sum(axis=0) @ contrast.combine
            sums["features"] = explanation._table.row(i, contrast.combine).sum() + columns
        card["features"] = [(*_draw_name(name), value) for name, value in explanation.top_features(i, _N_FEATURES)]
    card["sums"] = {name: float(value) + card["intercept"] for name, value in sums.items()}
    return card


def _draw_name(name: str) -> tuple[str, str, dict[str, Any] | None]:
    """Return a feature's name, a short version of it, and a picture if it is a tree."""
    kernel, colon, rest = name.partition(": ")
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 30]} … {name[-25:]}"
    return name, short, tree_picture(rest if colon and kernel.isidentifier() else name)


def _verdict(explanation: Explanation, i: int, targets: NDArray[Any] | None) -> str:
    """Return "right" or "wrong" if it is known; a prediction for a training graph is neither."""
    if explanation.in_training is not None and explanation.in_training[i]:
        return "training graph"
    if targets is None or not explanation._is_classifier:
        return ""
    return "right" if explanation.predictions[i] == targets[i] else "wrong"


class _MostSimilar:
    """Training graphs that are most similar to an explained graph."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        self.graphs: Graphs = explanation._parts[0].kernel.graphs_
        numbers = explanation._parts[0].numbers
        self.positions = {
            int(number): i for i, number in enumerate(range(len(self.graphs)) if numbers is None else numbers)
        }
        self.targets: dict[int, str] = {}
        final = split_model(explanation._model)[-1]
        if isinstance(final, GraphSVC):  # which keeps the classes of its support vectors
            classes = np.repeat(final.classes_, final.n_support_)
            self.targets = {int(graph): _shown(one) for graph, one in zip(final.support_, classes, strict=True)}
        self.draw = cache(self._draw)

    def list(self, i: int) -> list[dict[str, Any]]:
        """Return the most similar training graphs, without the explained graph itself."""
        found = self.explanation.similar_graphs(i, _N_SIMILAR)
        return [
            {**one, "target": self.targets.get(one["index"], ""), "picture": self.draw(one["index"])} for one in found
        ]

    def _draw(self, number: int) -> dict[str, Any]:
        one = self.graphs[self.positions[number]]
        if one.n_nodes > _MOST_THUMBNAIL:
            return {"undrawn": f"{one.n_nodes:,} nodes"}
        return graph_picture(one, None, f"Training graph {number}, {counted(one.n_nodes, 'node')}", size=1.5)


# -------------------------------------------------------------------- the whole page


def _tiles(cards: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page, with their words."""
    verdicts = [card["verdict"] for card in cards]
    n_right, n_judged = verdicts.count("right"), verdicts.count("right") + verdicts.count("wrong")
    n_known = verdicts.count("training graph")
    tiles = [(str(len(cards)), f"{'graph' if len(cards) == 1 else 'graphs'} on this page")]
    if n_known:
        tiles.append(
            (f"{n_known} of {len(cards)}", "graphs were in the training data; they do not show how good the model is")
        )
    if n_judged:
        tiles.append((f"{n_right} of {n_judged}", f"predictions{' for other graphs' * bool(n_known)} are right"))
    largest = max(abs(value - card["decision"]) for card in cards for value in card["sums"].values())
    return [*tiles, (_difference(largest), "largest difference between two sums (see sum check)")]


def _difference(value: float) -> str:
    return f"{abs(value):.0e}".replace("-", "\N{MINUS SIGN}") if value else "0"


def _shown(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{plain:.4g}".replace("-", "\N{MINUS SIGN}") if isinstance(plain, float) else str(plain)


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
        chosen = (
            f"{k} = {v:.6g}" if isinstance(v, float) else f"{k} = {v}"
            for k, v in final.best_params_.items()
            if k not in ("kernel", "param_grid")
        )
        facts += [("kernel", " ".join(repr(final.kernel_).split())), ("chosen", " ".join(", ".join(chosen).split()))]
    if explanation.in_training is not None:
        fitted = explanation._parts[0].kernel.graphs_
        facts.append(("training graphs", f"{len(fitted):,}, SHA-256 {graphs_digest(fitted)}"))
    facts.append(("explained graphs", f"{len(explanation.graphs):,}, SHA-256 {graphs_digest(explanation.graphs)}"))
    to = "split among the nodes of the tree" if explanation.attribute_to == "tree" else "given to the root of the tree"
    facts.append(("attribution", f"The contribution of a tree or color is {to}."))
    return [*facts, ("versions", ", ".join(f"{name} {version}" for name, version in package_versions().items()))]
