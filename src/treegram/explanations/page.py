"""Explanations as one self-contained HTML page, and their short view in notebooks."""

from __future__ import annotations

import base64
import hashlib
import inspect
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
    MOLECULE_LIMIT,
    check_molecule,
    contribution_colors,
    draw_explained,
    draw_tree,
    hex_color,
    minus,
    molecule_picture,
    read_molecule,
    signed,
)
from treegram.graphs import Graphs
from treegram.graphs.drawing import describe_positions, draw_graph, node_label, node_name
from treegram.graphs.molecules import MoleculeGraphs

_PACKAGE = "treegram.explanations"
_N_NODES, _N_FEATURES, _N_COLUMNS, _N_SIMILAR, _N_SUMMARY = 6, 6, 6, 6, 12
_MOST_CONTRASTS = 9  # classes to compare the predicted one with on the page
_LONGEST_NAME = 90  # characters of a feature's name that are shown
_MOST_THUMBNAIL = 250  # nodes; larger training graphs are not drawn


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
    names = [f"Graph {i}" for i in range(n)] if graphs.graph_names is None else graphs.graph_names.tolist()
    molecules = _check_molecules(explanation, molecules)
    targets = _check_targets(explanation, y)
    find_similar = _similar_graphs(explanation, are_molecules=molecules is not None)
    certainty, certainties = _certainties(explanation)
    cards = []
    with one_blas_thread():  # layouts are many small problems
        for i in track(range(n), n, "pictures"):
            card = _card(explanation, i, None if molecules is None else molecules[i])
            card |= {"index": i, "name": str(names[i]), "certainty": certainties[i], "similar": find_similar(i)}
            card["truth"] = "" if targets is None else _shown(targets[i])
            card["verdict"] = _verdict(explanation, i, targets)
            cards.append(card)
    sides = {(card["contrasts"][0]["above"], card["contrasts"][0]["below"]) for card in cards}
    limit = 1.0 if molecules is None else MOLECULE_LIMIT
    script = (resources.files(_PACKAGE) / "templates" / "page.js").read_text("utf-8")
    page = render(
        _PACKAGE,
        "explanation.html",
        cards=cards,
        certainty=certainty,
        color_stops=[hex_color(color) for color in contribution_colors(np.linspace(-1, 1, 21), limit)],
        counted=counted,
        has_truth=targets is not None,
        explanation=explanation,
        is_classifier=explanation._is_classifier,
        matters=[{**record, "drawn": _draw_name(record["name"])} for record in explanation.summary(_N_SUMMARY)],
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
        rows.append((name, _shown(explanation.predictions[i]), contrast))
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
        known = explanation._model.classes_.tolist()
        unknown = [target for target in dict.fromkeys(targets.tolist()) if target not in known]
        if unknown:
            warnings.warn(
                f"y has {counted(len(unknown), 'class', 'classes')} that the model was not fitted on, such as {unknown[0]!r}: all "
                f"predictions for such graphs are wrong. It was fitted on classes such as {known[0]!r}.",
                UserWarning,
                stacklevel=4,
            )
    return targets


def _check_molecules(explanation: Explanation, molecules: Sequence[Any] | None) -> list[Any] | None:
    """Return the molecules to draw; by default the model's inputs, if these are molecules."""
    graphs, n = explanation.graphs, len(explanation.graphs)
    first = next(iter(split_model(explanation._model)[0]), None)
    if molecules is None and isinstance(first, MoleculeGraphs) and not first.hydrogens:
        molecules = list(explanation._X)
    if molecules is None:
        return None
    if len(molecules) != n:
        raise ParameterError(f"molecules must have one entry per graph, {n}; it has {len(molecules)}.")
    return [check_molecule(molecule, graphs[i], f"molecules[{i}]") for i, molecule in enumerate(molecules)]


# -------------------------------------------------------------------- one graph


def _split_decision(explanation: Explanation, i: int, contrast: Contrast) -> dict[str, Any]:
    """Return a decision, the contributions of its nodes and columns, and those that contribute most."""
    graph = explanation.graphs[i]
    values = explanation._node_values_of(i, contrast)
    columns = explanation._column_values[i] @ contrast.combine
    intercept = float(explanation.intercept @ contrast.combine)
    top = np.argsort(-np.abs(values), kind="stable")[:_N_NODES].tolist()
    top_columns = np.argsort(-np.abs(columns[:-1]), kind="stable")[:_N_COLUMNS].tolist()
    nodes = [(v, *_node_words(graph, v), float(values[v])) for v in top]
    return {
        "above": contrast.above,
        "below": contrast.below,
        "values": values,
        "limit": float(np.abs(values).max(initial=0.0)),
        "node_sum": float(values.sum()),
        "column_sum": float(columns.sum()),
        "intercept": intercept,
        "decision": float(values.sum() + columns.sum()) + intercept,
        "slope": None if explanation.target_scale is None else float(explanation.slopes[i]),
        "top": tuple(top),
        "nodes": nodes,
        "columns": [(explanation.column_names[c], float(columns[c])) for c in top_columns if columns[c]],
        "strongest": ", ".join(f"{name} ({label})" if label else name for _, name, label, _ in nodes[:3]),
    }


def _node_words(graph: Graphs, node: int) -> tuple[str, str]:
    """Return the name of a node, and its label unless that is a word of the name."""
    name, label = node_name(graph, node), node_label(graph, node)
    return name, "" if graph.node_names is not None and label in name.split() else label


def _card(explanation: Explanation, i: int, molecule: Any) -> dict[str, Any]:
    """Return all decisions about a graph that the page can show, the default first, and a picture of it."""
    graph, table = explanation.graphs[i], explanation._table
    contrasts = []
    for contrast in islice(explanation._contrasts(i), _MOST_CONTRASTS):
        decision = _split_decision(explanation, i, contrast)
        top = None if table is None else table.top(i, contrast.combine, _N_FEATURES)
        decision["features"] = None if top is None else [(*_draw_name(name), value) for name, value in top]
        contrasts.append(decision)
    first = contrasts[0]
    words = "; ".join(f"{name} {label} {signed(value)}" for _, name, label, value in first["nodes"][:3])
    description = f"Graph with {counted(graph.n_nodes, 'node')}. Strongest: {words or 'none'}."
    if molecule is None:
        picture, positions = draw_explained(graph, first["values"], description), describe_positions(graph)
    else:
        picture, positions = molecule_picture(molecule, graph, first["values"], description, first["top"]), ""
    return {
        "graph": graph,
        "prediction": _shown(explanation.predictions[i]),
        "contrasts": contrasts,
        "picture": picture,
        "positions": positions,
        "numbers": ";".join(_join_numbers(decision["values"]) for decision in contrasts),
    }


def _join_numbers(values: Floats) -> str:
    return " ".join(f"{value:.4g}" for value in values.tolist())


def _draw_name(name: str) -> tuple[str, str, Markup | None]:
    """Return a feature's name, a short version of it, and a picture if it is a tree."""
    kernel, colon, rest = name.partition(": ")
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 30]} … {name[-25:]}"
    return name, short, draw_tree(rest if colon and kernel.isidentifier() else name)


def _verdict(explanation: Explanation, i: int, targets: NDArray[Any] | None) -> str:
    """Return "correct" or "wrong" if known; a prediction for a training graph is neither."""
    if explanation.in_training is not None and explanation.in_training[i]:
        return "training graph"
    if targets is None or not explanation._is_classifier:
        return ""
    return "correct" if explanation.predictions[i] == targets[i] else "wrong"


def _similar_graphs(explanation: Explanation, *, are_molecules: bool) -> Callable[[int], list[dict[str, Any]]]:
    """Return a function that lists the training graphs most similar to an explained graph, with pictures."""
    # Draw the original graphs if any kernel sees them without a transformer.
    part = next((part for part in explanation._parts if part.graphs is explanation.graphs), explanation._parts[0])

    @cache
    def draw(number: int, name: str | None) -> Markup:
        position = number if part.numbers is None else int(np.flatnonzero(part.numbers == number)[0])
        graph = part.kernel.graphs_[position]
        molecule = read_molecule(name, graph) if are_molecules else None
        if molecule is not None:
            return molecule_picture(molecule, graph, None, f"The molecule {name}")
        if graph.n_nodes > _MOST_THUMBNAIL:
            return Markup(f"<p>{counted(graph.n_nodes, 'node')}</p>")
        return draw_graph(graph, f"Training graph with {counted(graph.n_nodes, 'node')}", size=1.5)

    def find(i: int) -> list[dict[str, Any]]:
        return [
            {
                **record,
                "target": "" if record["target"] is None else _shown(record["target"]),
                "picture": draw(record["index"], record["name"]),
                "name": record["name"] or f"Training graph {record['index']}",
            }
            for record in explanation.similar_graphs(i, _N_SIMILAR)
        ]

    return find


# -------------------------------------------------------------------- the whole page


def _shown(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return minus(f"{plain:.4g}") if isinstance(plain, float) else str(plain)


def _certainties(explanation: Explanation) -> tuple[str, list[str]]:
    """Return "probability", "standard deviation" or "", and its value for each graph."""
    model, X = explanation._model, explanation._X
    if "return_std" in inspect.signature(split_model(model)[-1].predict).parameters:
        return "standard deviation", [f"± {value:.3g}" for value in model.predict(X, return_std=True)[1].tolist()]
    if not hasattr(model, "predict_proba"):
        return "", [""] * len(explanation.graphs)
    rows = model.predict_proba(X)
    columns = np.searchsorted(model.classes_, explanation.predictions)
    return "probability", [_percent(value) for value in rows[np.arange(len(rows)), columns].tolist()]


def _weights(explanation: Explanation) -> list[tuple[float, str]]:
    """Return the weight and the name of each kernel of an automatic model, as in its search_summary, the largest first."""
    records = getattr(split_model(explanation._model)[-1], "search_results_", [])
    weighted = [(record["weight"], record["candidate"]) for record in records if record["weight"] is not None]
    return sorted(weighted, key=lambda pair: -pair[0])


def _percent(probability: float) -> str:
    """Return a percentage that is never rounded up to certainty."""
    return "> 99.9 %" if 0.9995 <= probability < 1 else f"{100 * probability:.1f} %"
