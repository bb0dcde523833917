"""Explanations as one self-contained HTML page, and their short view in notebooks."""

from __future__ import annotations

import base64
import hashlib
import inspect
import math
import os
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from treegram._core.files import check_writable, replacing
from treegram._core.html import render
from treegram._core.machine import package_versions
from treegram._core.parallel import one_blas_thread, track
from treegram._core.text import counted
from treegram._core.types import Floats
from treegram.exceptions import ParameterError
from treegram.explanations.contributions import Contrast, Explanation, split_model
from treegram.explanations.drawing import (
    check_molecules,
    describe_nodes,
    draw_tree,
    minus,
    molecule_picture,
    node_words,
    read_molecule,
    sequence_strip,
    signed,
    strengths_of,
)
from treegram.explanations.words import column_words, feature_words, split_feature
from treegram.graphs.drawing import describe_positions, draw_graph, residues_of
from treegram.graphs.molecules import MoleculeGraphs

_PACKAGE = "treegram.explanations"
_N_NODES, _N_FEATURES, _N_COLUMNS, _N_SIMILAR, _N_SUMMARY = 6, 6, 6, 6, 8
_MOST_CONTRASTS = 9  # classes to compare the predicted one with on the page
_MOST_THUMBNAIL = 100  # nodes; larger training graphs are not drawn


def write_page(
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    y: ArrayLike | None,
    molecules: Sequence[Any] | None,
    title: str,
) -> None:
    """Write the page; see :meth:`Explanation.to_html`."""
    target = Path(path)
    check_writable(target)
    graphs, n = explanation.graphs, len(explanation.graphs)
    if not n:
        raise ParameterError("X of explain must have at least one graph for a page; it has none.")
    molecules = _check_molecules(explanation, molecules)
    targets = _check_targets(explanation, y)
    are_residues = all(residues_of(graph) for graph in graphs)
    nouns = ("molecule", "atom") if molecules else ("structure", "residue") if are_residues else ("graph", "node")
    names = [f"{nouns[0].title()} {i}" for i in range(n)] if graphs.graph_names is None else graphs.graph_names.tolist()
    find_similar = _similar_graphs(explanation, nouns)
    certainty, certainties = _certainties(explanation)
    cards = []
    with one_blas_thread():  # layouts are many small problems
        for i in track(range(n), n, "pictures"):
            card = _card(explanation, i, None if molecules is None else molecules[i], nouns[1])
            card |= {"index": i, "name": str(names[i]), "similar": find_similar(i)}
            card |= _prediction(explanation, i, certainties[i], targets)
            cards.append(card)
    sides = {(card["contrasts"][0]["above"], card["contrasts"][0]["below"]) for card in cards}
    script = (resources.files(_PACKAGE) / "templates" / "page.js").read_text("utf-8")
    page = render(
        _PACKAGE,
        "explanation.html",
        cards=cards,
        certainty=certainty,
        counted=counted,
        explanation=explanation,
        is_classifier=explanation._is_classifier,
        matters=_matters(explanation, nouns),
        nouns=nouns,
        score=_score(explanation, targets),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        sides=sides.pop() if len(sides) == 1 else None,
        signed=signed,
        title=title,
        versions=package_versions(),
        weights=_weights(explanation),
    )
    with replacing(target) as file:
        file.write(page.encode())


def render_summary(explanation: Explanation, n_shown: int) -> str:
    """Return a table of the first decisions, each between the predicted class and the next best, as HTML."""
    graphs, n = explanation.graphs, len(explanation.graphs)
    rows = []
    for i in range(min(n_shown, n)):
        contrast = _split_decision(explanation, i, explanation._contrast(i))
        name = str(i) if graphs.graph_names is None else str(graphs.graph_names[i])
        rows.append((name, _value_text(explanation.predictions[i]), contrast))
    model = type(split_model(explanation._model)[-1]).__name__
    return render(
        _PACKAGE,
        "summary.html",
        rows=rows,
        model=model,
        n_graphs=counted(n, "graph"),
        n_more=max(n - n_shown, 0),
        scale=explanation.target_scale,
        signed=signed,
    )


# -------------------------------------------------------------------- what is passed


def _check_targets(explanation: Explanation, y: ArrayLike | None) -> NDArray[Any] | None:
    n = len(explanation.graphs)
    targets = explanation.graphs.targets if y is None else np.asarray(y)
    if y is None and targets is not None and targets.ndim > 1:  # several targets; the model predicts one of them
        return None
    if targets is not None and targets.shape != (n,):
        raise ParameterError(f"y must have one entry per graph, shape ({n},); got shape {targets.shape}.")
    if targets is not None and explanation._is_classifier:
        classes = explanation._model.classes_.tolist()
        unknown = [target for target in dict.fromkeys(targets.tolist()) if target not in classes]
        if unknown:
            warnings.warn(
                f"y has {counted(len(unknown), 'class', 'classes')} that the model was not fitted on, such as {unknown[0]!r}: all "
                f"predictions for such graphs are wrong. It was fitted on classes such as {classes[0]!r}.",
                UserWarning,
                stacklevel=4,
            )
    return targets


def _check_molecules(explanation: Explanation, molecules: Sequence[Any] | None) -> list[Any] | None:
    """Return the molecules to draw; by default the model's inputs, if these are molecules."""
    transformer = next(iter(split_model(explanation._model)[0]), None)
    if molecules is None and isinstance(transformer, MoleculeGraphs) and not transformer.hydrogens:
        molecules = list(explanation._X)
    return None if molecules is None else check_molecules(molecules, explanation.graphs)


# -------------------------------------------------------------------- one graph


def _split_decision(explanation: Explanation, i: int, contrast: Contrast, noun: str = "node") -> dict[str, Any]:
    """Return a decision, the contributions of its nodes and columns, and those that contribute most."""
    graph = explanation.graphs[i]
    values = explanation._node_values_of(i, contrast)
    columns = explanation._column_values[i] @ contrast.combine
    intercept = float(explanation.intercept @ contrast.combine)
    top = np.argsort(-np.abs(values), kind="stable")[:_N_NODES].tolist()
    top_columns = np.argsort(-np.abs(columns[:-1]), kind="stable")[:_N_COLUMNS].tolist()
    nodes = [(v, *node_words(graph, v, noun), float(values[v])) for v in top]
    return {
        "above": contrast.above,
        "below": contrast.below,
        "values": values,
        "node_sum": float(values.sum()),
        "column_sum": float(columns.sum()),
        "intercept": intercept,
        "decision": float(values.sum() + columns.sum()) + intercept,
        "slope": None if explanation.target_scale is None else float(explanation.slopes[i]),
        "top": tuple(top),
        "nodes": nodes,
        "columns": [(column_words(explanation.column_names[c]), float(columns[c])) for c in top_columns if columns[c]],
        "strongest": ", ".join(f"{name} {label}".strip() for _, name, label, _ in nodes[:3]),
    }


def _card(explanation: Explanation, i: int, molecule: Any, noun: str) -> dict[str, Any]:
    """Return all decisions about a graph that the page can show, the default first, and a picture of it."""
    graph, table = explanation.graphs[i], explanation._table
    contrasts = []
    for contrast in islice(explanation._contrasts(i), _MOST_CONTRASTS):
        decision = _split_decision(explanation, i, contrast, noun)
        top = None if table is None else table.top(i, contrast.combine, _N_FEATURES)
        decision["features"] = None if top is None else [(_draw_feature(name), value) for name, value in top]
        contrasts.append(decision)
    first = contrasts[0]
    words = "; ".join(f"{name} {label} {signed(value)}" for _, name, label, value in first["nodes"][:3])
    description = f"Graph with {counted(graph.n_nodes, 'node')}. Strongest: {words or 'none'}."
    if molecule is None:
        titles, strengths = describe_nodes(graph, first["values"]), strengths_of(first["values"])
        picture = draw_graph(graph, description, titles=titles, strengths=strengths)
    else:
        picture = molecule_picture(molecule, graph, first["values"], description, first["top"])
    return {
        "graph": graph,
        "contrasts": contrasts,
        "picture": picture,
        "positions": "" if molecule else describe_positions(graph),
        "strengths": strengths_of(first["values"]).tolist(),
        "strip": sequence_strip(graph),
        "numbers": ";".join(_join_numbers(decision["values"]) for decision in contrasts),
    }


def _join_numbers(values: Floats) -> str:
    return " ".join(f"{value:.4g}" for value in values.tolist())


def _draw_feature(name: str) -> dict[str, Any]:
    """Return the name of a feature, its words, and a picture if it is a tree of two steps or more, which words describe badly."""
    tree, _ = split_feature(name)
    return {"name": name, "words": feature_words(name), "picture": draw_tree(tree) if tree.count("(") > 1 else None}


def _prediction(
    explanation: Explanation, i: int, certainty: float | None, targets: NDArray[Any] | None
) -> dict[str, Any]:
    """Return a prediction, how certain it is, the truth, and whether they agree, as text and as numbers to sort by."""
    value, truth = explanation.predictions[i], None if targets is None else targets[i]
    is_of_training = explanation.in_training is not None and explanation.in_training[i]
    is_number = not explanation._is_classifier and np.ndim(value) == 0
    verdict = "training graph" if is_of_training else ""
    if truth is not None and explanation._is_classifier and not is_of_training:
        verdict = "correct" if value == truth else "wrong"
    digits = max(0, 1 - math.floor(math.log10(certainty))) if is_number and certainty else None
    text = "" if certainty is None else f"± {certainty:.{digits or 0}f}" if is_number else _percent(certainty)
    return {
        "prediction": _value_text(value, digits),
        "number": float(value) if is_number else None,
        "certainty": text,
        "certainty_number": certainty,
        "truth": "" if truth is None else _value_text(truth, digits),
        "error": abs(float(value) - float(truth)) if is_number and truth is not None else None,
        "verdict": verdict,
    }


def _score(explanation: Explanation, targets: NDArray[Any] | None) -> str:
    """Return how good the predictions for graphs outside the training data are, in words."""
    n = len(explanation.graphs)
    is_new = np.ones(n, dtype=bool) if explanation.in_training is None else ~explanation.in_training
    n_of_training, words = n - int(is_new.sum()), []
    if n_of_training:
        were = "was" if n_of_training == 1 else "were"
        words.append(f"{n_of_training} of {n} {were} in the training data and cannot show how good the model is")
    if targets is not None and is_new.any():
        scope = " for the others" if n_of_training else ""
        predictions, truths = explanation.predictions[is_new], targets[is_new]
        if explanation._is_classifier:
            words.append(f"{(predictions == truths).sum()} of {is_new.sum()} predictions{scope} are correct")
        elif predictions.ndim == 1:
            words.append(f"mean absolute error{scope}: {np.abs(predictions - truths).mean():.3g}")
    return "; ".join(words)


def _similar_graphs(explanation: Explanation, nouns: tuple[str, str]) -> Callable[[int], list[dict[str, Any]]]:
    """Return a function that lists the training graphs most similar to an explained graph, with pictures."""
    # Draw the original graphs if any kernel sees them without a transformer.
    part = next((part for part in explanation._parts if part.graphs is explanation.graphs), explanation._parts[0])

    @cache
    def draw(number: int, name: str | None) -> Markup:
        position = number if part.numbers is None else int(np.flatnonzero(part.numbers == number)[0])
        graph = part.kernel.graphs_[position]
        molecule = read_molecule(name, graph) if nouns[0] == "molecule" else None
        if molecule is not None:
            return molecule_picture(molecule, graph, None, f"The molecule {name}")
        if graph.n_nodes > _MOST_THUMBNAIL:
            return Markup(f'<p class="undrawn">{counted(graph.n_nodes, nouns[1])}</p>')
        return draw_graph(graph, f"Training graph with {counted(graph.n_nodes, nouns[1])}", size=1.5)

    def find(i: int) -> list[dict[str, Any]]:
        return [
            {
                **record,
                "target": "" if record["target"] is None else _value_text(record["target"]),
                "picture": draw(record["index"], record["name"]),
                "name": record["name"] or f"Training graph {record['index']}",
            }
            for record in explanation.similar_graphs(i, _N_SIMILAR)
        ]

    return find


# -------------------------------------------------------------------- the whole page


def _matters(explanation: Explanation, nouns: tuple[str, str]) -> list[tuple[str, list[tuple[dict[str, Any], float]]]]:
    """Return what matters across all graphs: a title and the largest contributions for each kind."""
    titles = {"label": f"Kinds of {nouns[1]}s", "feature": "Features", "column": f"Numbers of the whole {nouns[0]}"}
    records = explanation.summary(_N_SUMMARY)
    sections = []
    for kind, title in titles.items():
        items = [
            (record | _draw_feature(record["name"]) if kind == "feature" else record, record["mean"])
            for record in records
            if record["kind"] == kind
        ]
        if items:
            sections.append((title, items))
    return sections


def _value_text(value: Any, digits: int | None = None) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return (
        minus(f"{plain:.4g}" if digits is None else f"{plain:.{digits}f}") if isinstance(plain, float) else str(plain)
    )


def _certainties(explanation: Explanation) -> tuple[str, list[float | None]]:
    """Return "probability", "standard deviation" or "", and its value for each graph."""
    model, X = explanation._model, explanation._X
    if "return_std" in inspect.signature(split_model(model)[-1].predict).parameters:
        return "standard deviation", model.predict(X, return_std=True)[1].tolist()
    if not hasattr(model, "predict_proba"):
        return "", [None] * len(explanation.graphs)
    rows = model.predict_proba(X)
    columns = np.searchsorted(model.classes_, explanation.predictions)
    return "probability", rows[np.arange(len(rows)), columns].tolist()


def _weights(explanation: Explanation) -> list[tuple[float, str]]:
    """Return the weight and the name of each kernel of an automatic model, as in its search_summary, the largest first."""
    records = getattr(split_model(explanation._model)[-1], "search_results_", [])
    weighted = [(record["weight"], record["candidate"]) for record in records if record["weight"] is not None]
    return sorted(weighted, key=lambda pair: -pair[0])


def _percent(probability: float) -> str:
    """Return a percentage that is never rounded up to certainty."""
    return "> 99.9 %" if 0.9995 <= probability < 1 else f"{100 * probability:.1f} %"
