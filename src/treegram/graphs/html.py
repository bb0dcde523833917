"""Render a collection of graphs as HTML for notebooks: a table of its contents, and a few graphs as SVG."""

from __future__ import annotations

from html import escape

import numpy as np

from treegram._core.text import counted
from treegram._core.types import Floats
from treegram.graphs import Graphs
from treegram.graphs.layout import hop_layout

__all__ = ["graphs_to_html"]

_MOST_DRAWN = 4
_MOST_NODES = 60  # of a drawn graph: the layout costs the cube of them
_MOST_VALUES = 8  # labels or classes in a row of the table
_SIDE, _MARGIN = 180.0, 16.0  # pixels
_COLORS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d")


def graphs_to_html(graphs: Graphs) -> str:
    """Return the HTML; all text from the data is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in _rows(graphs)
    )
    small = np.flatnonzero((graphs.sizes > 0) & (graphs.sizes <= _MOST_NODES))[:_MOST_DRAWN]
    pictures = "".join(_figure(graphs, int(i)) for i in small)
    return f"<div><table>{rows}</table><div style='display:flex;flex-wrap:wrap;gap:12px'>{pictures}</div></div>"


def _rows(graphs: Graphs) -> list[tuple[str, str]]:
    per_graph = f", {graphs.n_nodes / len(graphs):.1f} per graph" if len(graphs) else ""
    rows = [
        ("graphs", f"{len(graphs):,}, {'directed' if graphs.directed else 'undirected'}"),
        ("nodes", f"{graphs.n_nodes:,}{per_graph}"),
        ("edges", f"{graphs.n_edges:,}"),
        ("labels", "none" if graphs.labels is None else _values(graphs.label_values)),
        ("attributes", _columns(graphs.attributes, graphs.attribute_names) or "none"),
    ]
    if graphs.edge_labels is not None:
        rows.append(("edge labels", _values(graphs.edge_label_values)))
    if graphs.edge_attributes is not None:
        rows.append(("edge attributes", _columns(graphs.edge_attributes, graphs.edge_attribute_names)))
    if graphs.graph_attributes is not None:
        rows.append(("graph attributes", _columns(graphs.graph_attributes, graphs.graph_attribute_names)))
    if graphs.targets is not None:
        rows.append(("targets", _target_text(graphs)))
    return rows


def _columns(vectors: Floats | None, names: tuple[str, ...] | None) -> str:
    if vectors is None:
        return ""
    return counted(vectors.shape[1], "column") if names is None else _values(names)


def _values(values: tuple[object, ...]) -> str:
    shown = ", ".join(_short(str(value), 40) for value in values[:_MOST_VALUES])
    return f"{len(values):,}: {shown}{', ...' if len(values) > _MOST_VALUES else ''}"


def _target_text(graphs: Graphs) -> str:
    targets = graphs.targets
    assert targets is not None
    if targets.ndim > 1:
        return f"{targets.shape[1]} columns"
    if targets.dtype.kind == "f":
        return f"numbers from {targets.min():.4g} to {targets.max():.4g}" if len(targets) else "numbers"
    return _values(tuple(dict.fromkeys(sorted(targets.tolist(), key=str))))


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


# -------------------------------------------------------------------- pictures


def _figure(graphs: Graphs, i: int) -> str:
    graph = graphs[i]
    target = "" if graph.targets is None or graph.targets.ndim > 1 else f": {_short(str(graph.targets[0]), 20)}"
    name = f"graph {i}" if graph.graph_names is None else _short(graph.graph_names[0], 40)
    caption = escape(f"{name}{target}")
    return (
        f"<figure style='margin:0'>{_svg(graph)}<figcaption style='text-align:center'>{caption}</figcaption></figure>"
    )


def _svg(graph: Graphs) -> str:
    positions = _fit(hop_layout(graph))
    ends = positions[graph.edges()]
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    radius = float(np.clip(0.35 * lengths.min(initial=26.0), 2.5, 9.0))  # joined nodes do not cover each other
    lines = "".join(
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='#999'/>" for (x1, y1), (x2, y2) in ends
    )
    nodes = "".join(_node(graph, v, x, y, radius) for v, (x, y) in enumerate(positions))
    return f"<svg width='{_SIDE:.0f}' height='{_SIDE:.0f}' xmlns='http://www.w3.org/2000/svg'>{lines}{nodes}</svg>"


def _fit(positions: Floats) -> Floats:
    """Scale and center the positions in the picture."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    scale = (_SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    return (positions - (low + high) / 2) * min(scale, _SIDE / 3) + _SIDE / 2


def _node(graph: Graphs, v: int, x: float, y: float, radius: float) -> str:
    code = 0 if graph.labels is None else int(graph.labels[v])
    circle = f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:.1f}' fill='{_COLORS[code % len(_COLORS)]}' stroke='#fff'/>"
    label = "" if graph.labels is None else str(graph.label_values[code])
    name = "" if graph.node_names is None else graph.node_names[v]
    if not label and not name:
        return circle
    title = f"<title>{escape(_short(': '.join(filter(None, (name, label))), 60))}</title>"
    text = f"<text x='{x:.1f}' y='{y + 3:.1f}' font-size='9' text-anchor='middle' fill='#fff'>{escape(label)}</text>"
    return f"<g>{title}{circle}{text if len(label) <= 2 and radius > 6 and len(graph.label_values) > 1 else ''}</g>"
